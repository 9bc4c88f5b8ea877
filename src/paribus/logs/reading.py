"""Read files of logs: the paths of files in, what each holds out (`Held`).

A file may be compressed by gzip. Sizes are bounded, nothing in a file is executed, and the error of
one file is a problem in its `Held`: the others are read.
"""

from __future__ import annotations

import json
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import FileIO
from pathlib import Path

from paribus.border import left_out, not_plain, open_regular, printable
from paribus.core import ParseError, Unreadable, UserError, count, format_bytes
from paribus.logs import words
from paribus.logs.divide import titles
from paribus.logs.hints import OURS, hint
from paribus.logs.log import Unread
from paribus.logs.recognise import Held, near, readings, shows
from paribus.logs.tables.files import is_table
from paribus.probes.discreet import discreet_value
from paribus.readers import nvidia_topo
from paribus.readers.heads import BRACES
from paribus.readers.json import in_array
from paribus.readers.known import complaints
from paribus.readers.launches import FAILED
from paribus.readers.tags import in_runs, unprefixed, untagged
from paribus.readers.text import HEAD, cleaned, line_at, plain, unpadded

MOST_BYTES = 256 << 20
"""A longer file is no log of these tools, and is not read."""

MOST_PACKED = 16 << 20
"""Bytes of a compressed file, at most."""

MOST_UNPACKED = 64 << 20
"""Bytes of an unpacked file, at most: a small compressed one may hold any number of zeros."""

MOST_WRAPPED = 16 << 20
"""Characters of a text that is searched as JSON of another program, at most."""

GZIP = b"\x1f\x8b"
"""How a file begins that gzip compressed."""


def _is_binary(raw: bytes) -> bool:
    """Return whether a file has more zeros than Open MPI's message of MPI_Init."""
    return 400 * len(re.findall(rb"\0+", raw)) > len(raw)


def is_log(path: Path) -> bool:
    """Return whether a file holds the output of a tool that is known here."""
    try:
        with open(open_regular(path), "rb") as file:  # noqa: PTH123 - of a descriptor
            raw = file.read(HEAD)
            more = b"" if raw.startswith(GZIP) else file.read(MOST_PACKED - len(raw))
        if raw.startswith(GZIP):
            raw = zlib.decompressobj(wbits=31).decompress(raw, HEAD)
        text = plain(raw.decode(errors="replace"))
        shown = shows(text) or any(map(titles, unprefixed(text)))
        return shown or (bool(more) and _has_title(raw + more))
    except (OSError, zlib.error):
        return False


def _has_title(raw: bytes) -> bool:
    """Return whether a text has a title anywhere: lines of each rank or step may stand above it."""
    if _is_binary(raw) or not_plain(raw):
        return False
    return bool(titles(plain(raw.decode(errors="replace"))))


def read_files(files: Sequence[tuple[str, int]]) -> Iterator[Held]:
    """Yield what each file holds, in their order; `files` are paths with their sizes in bytes."""
    for path, size in files:
        try:
            contents = _contents(*_texts(path, size))
        except OSError as error:
            contents = Held([], [Unread(Unreadable.CANNOT_BE_READ, error.strerror or "")])
        except _NotReadError as error:
            contents = Held([], [error.why])
        yield contents._replace(problems=list(map(_discreet, contents.problems)))


def _discreet(problem: Unread) -> Unread:
    """Return a problem without secrets in the lines that it quotes."""
    return replace(problem, detail=discreet_value("", problem.detail))


def _contents(text: str, tagged: str) -> Held:
    """Return what a text holds, or why it holds nothing; the arguments are those of `readings`."""
    contents = readings(text, tagged)
    if not (contents.found or titles(text[:HEAD]) or len(text) > MOST_WRAPPED):
        of_array = readings("\n".join(in_array(text)))
        contents = of_array if of_array.found else contents
    if not contents.found and (tools := _tools_within_json(text)):
        cause = f"{tools[0]}: it stands within JSON of another program: take it out with jq -r"
        return Held([], [Unread(Unreadable.REFUSED, cause, tools[0])])
    return contents if contents.found or contents.problems else Held([], [_no_tool(text)])


def _tools_within_json(text: str) -> list[str]:
    """Return the tools whose output stands in strings of JSON, if the JSON is of another program.

    Such as the field "stdout" of what a test harness wrote, or Ansible: "ok: [node1] => {...}".
    """
    text = text.strip()
    if text.endswith("}") and (document := re.search(r"\{.*", text, re.S)):
        text = document[0]
    if text[:1] not in BRACES or len(text) > MOST_WRAPPED or not (tools := near(text)):
        return []
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return []
    return [] if any(one.at == 0 for one in titles(text[:HEAD])) else tools


class _NotReadError(Exception):
    """A file that is not read, and `why`."""

    def __init__(self, why: Unread) -> None:
        self.why = why


def _decoded(raw: bytes) -> tuple[str, str]:
    """Return the text of a file without tags of ranks, and with them, "" if it has none."""
    tagged = cleaned(raw.decode(errors="replace"))
    text = untagged(tagged)
    if text == tagged:
        tagged, text = in_runs(tagged, lambda run: len(titles(run)))
        if text == tagged and not titles(text):
            text = tagged = next(filter(titles, unprefixed(text)), text)
    return unpadded(text), unpadded(tagged) if text != tagged else ""


def _texts(path: str, size: int) -> tuple[str, str]:
    """Return the text of a file as `_decoded` does; raises _NotReadError for one that is no log.

    Such a file is not read to its end.
    """
    if size > MOST_BYTES:
        raise _NotReadError(Unread(Unreadable.TOO_LARGE, format_bytes(MOST_BYTES)))
    if not size:
        raise _NotReadError(Unread(Unreadable.EMPTY))
    with FileIO(open_regular(path)) as opened:
        raw = opened.read(HEAD)
        if raw.startswith(GZIP):
            return _unpacked(raw + opened.read(MOST_PACKED - len(raw) + 1))
        _refuse_other(raw)
        if size > len(raw):
            text = plain(raw.decode(errors="replace"))
            if not shows(text):
                # A training prints much before the lines that we ask its script for.
                raw += opened.read(min(size, MOST_PACKED) - len(raw)) or b""
                if OURS.encode() not in raw and not _has_title(raw):
                    raise _NotReadError(_no_tool(text))
            raw += opened.read(size - len(raw)) or b""  # what is written meanwhile is not read
    whole = _decoded(raw)
    if missing := left_out(raw):
        raise _NotReadError(
            Unread(Unreadable.SHORTENED, f"{missing:,} B", "".join(near(whole[0])[:1]))
        )
    return whole


def _refuse_other(raw: bytes) -> None:
    """Raise _NotReadError for a file that is no text by its first bytes."""
    if other := not_plain(raw):
        raise _NotReadError(Unread(Unreadable.NOT_PLAIN, f"{other[0]} ({other[1]})"))
    if _is_binary(raw):
        raise _NotReadError(Unread(Unreadable.BINARY))


def text_of(path: str) -> str:
    """Return the text of a file that was read before, without tags of ranks; "" if it is gone."""
    try:
        return _texts(path, Path(path).stat().st_size)[0]
    except (OSError, _NotReadError):
        return ""


def _unpacked(packed: bytes) -> tuple[str, str]:
    """Return the text of a file that gzip compressed, as `_texts` does."""
    if len(packed) > MOST_PACKED:
        raise _NotReadError(Unread(Unreadable.TOO_LARGE, format_bytes(MOST_PACKED)))
    raw = b""
    while packed.startswith(GZIP):  # what was appended is another member
        inflate = zlib.decompressobj(wbits=31)
        try:
            raw += inflate.decompress(packed, MOST_UNPACKED + 1 - len(raw))
        except zlib.error as error:
            raise _NotReadError(Unread(Unreadable.CANNOT_BE_READ, str(error))) from error
        if len(raw) > MOST_UNPACKED:
            raise _NotReadError(Unread(Unreadable.TOO_LARGE, format_bytes(MOST_UNPACKED)))
        if not inflate.eof:
            raise _NotReadError(
                Unread(Unreadable.CANNOT_BE_READ, "what was compressed is not whole")
            )
        packed = inflate.unused_data
    _refuse_other(raw)
    return _decoded(raw)


def refuse_strange(paths: Sequence[Path]) -> None:
    """Raise UserError for the first file that is neither a log nor, by its first line, a table."""
    for path in paths:
        if is_table(path):
            continue
        with open(open_regular(path), "rb") as file:  # noqa: PTH123 - of a descriptor
            text = plain(file.read(MOST_PACKED).decode(errors="replace"))
        why = _discreet(_no_tool(text))
        raise UserError(
            words.unread(why.code, why.detail, lines=[why.line] if why.line else []),
            place=printable(str(path)),
            fix="`paribus list` names the tools and harnesses whose output is read; a table of"
            " numbers begins with a line of column names: arm, benchmark, metric, value, ...; one"
            " figure in the output of your own program is found by `--regex` of the verb ab",
        )


def _no_tool(text: str) -> Unread:
    """Return why a text is of no known tool, and of which it may be a part.

    A launch may have failed before its tool printed its name.
    """
    if nvidia_topo.recognise(text):
        return Unread(*_wiring(text))
    found = [at for phrase in (*FAILED, *complaints()) if (at := text.find(phrase)) >= 0]
    if found:
        return Unread(Unreadable.LAUNCH_FAILED, line_at(text, min(found)).strip()[:160])
    if shown := hint(text):
        return shown
    return Unread(Unreadable.UNKNOWN_TOOL)


def _wiring(text: str) -> tuple[Unreadable, str]:
    """Return code and detail for an output of `nvidia-smi topo -m`: how many pairs a link joins."""
    try:
        facts = nvidia_topo.read(text)
    except ParseError as error:
        return Unreadable.WIRING_DAMAGED, error.cause
    links = Counter(str(v) for k, v in facts.items() if k != "gpu.topology.gpus")
    pairs = ", ".join(f"{n} {link}" for link, n in sorted(links.items())) or "no pair"
    gpus = count(int(facts["gpu.topology.gpus"]), "GPU")
    return Unreadable.WIRING, f"{gpus} (nvidia-smi topo -m; pairs by link: {pairs})"
