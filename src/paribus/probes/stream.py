"""The answer of facts.sh, read: lines of others are skipped, lost or mixed ones are errors.

Each line is "NONCE HOST NUMBER TEXT", numbered from 1; "::NONCE files" as TEXT begins a section.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from paribus.core import ParseError
from paribus.probes.archive import FILE_BYTES, MOST_BYTES, Archive, Unknown

_BEGIN = re.compile(r"^(\S+) (\S+) [0-9]{1,9} ::\1 begin (\S+) (\S+)\r?$", re.MULTILINE)
_REASONS = {
    "No such file or directory": Unknown.ABSENT,
    "Not a directory": Unknown.ABSENT,
    "No such device": Unknown.ABSENT,
    "Permission denied": Unknown.DENIED,
    "Operation not permitted": Unknown.DENIED,
    "Timed out": Unknown.TIMED_OUT,
}
"""Errors of the system for files that cannot be read; any other is UNSUPPORTED."""

Section = tuple[str, list[str]]  # title and lines


def from_stream(text: str) -> Archive:
    """Return the archive of the node whose answer `text` holds.

    Raises ParseError that names what is wrong: no answer, half of one, several, lines lost or mixed
    up with others, too long.
    """
    if len(text) > MOST_BYTES:
        raise _error(f"{len(text) >> 20} MiB of facts: more than {MOST_BYTES >> 20} are not read")
    begins = list(_BEGIN.finditer(text))
    if not begins:
        start = text.strip()[:60]
        raise _error(f"no facts in what the node printed: {start!r}" if start else "no answer")
    nonces = {match[1] for match in begins}
    if len(nonces) > 1:
        raise _error(f"{len(nonces)} answers to different questions")
    nonce, host, version = begins[0].group(1, 2, 3)
    if hosts := {match[2] for match in begins} - {host}:
        raise _error(f"answers of {len(hosts) + 1} nodes where one was asked: {host}, {min(hosts)}")
    if len(begins) > 1:
        raise _error("two answers from hosts of the same name", host=host)
    if version != "1":
        raise _error(f"an answer of version {version!r}, not 1", host=host)
    return _archive(host, _own_lines(text, nonce, host), nonce)


def _own_lines(text: str, nonce: str, host: str) -> list[str]:
    """Return the texts of the answer's lines; raises ParseError unless each is there and whole."""
    texts: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        if nonce not in line:
            continue  # a banner, or the end of a line of ours that was broken: its start shows that
        mark, name, count, content = [*line.split(" ", 3), "", "", ""][:4]
        if (mark, name) != (nonce, host):
            if not texts and line.rstrip("\r").endswith(f"{nonce} {host} 1 "):
                texts.append("")  # a banner without an end of line, before our empty first line
            elif f"{nonce} {host} " in line:
                raise _error("its lines are mixed up with others", host=host, line=number)
            continue
        if nonce in content and not content.startswith(f"::{nonce} "):
            raise _error("its lines are mixed up with others", host=host, line=number)
        if count.rstrip("\r") != str(len(texts) + 1):
            raise _error(f"line {len(texts) + 1} of its answer is missing", host=host, line=number)
        texts.append(content.removesuffix("\r"))
    return texts


def _sections(lines: Sequence[str], nonce: str) -> Iterator[Section]:
    mark, title, body = f"::{nonce} ", "", list[str]()
    for line in lines:
        if line.startswith(mark):
            yield title, body
            title, body = line[len(mark) :], []
        else:
            body.append(line)
    yield title, body


def _archive(host: str, lines: Sequence[str], nonce: str) -> Archive:
    """Return the archive of the sections in `lines`; raises ParseError unless all are there."""
    if lines and lines[-1] == "::cut":
        raise _error("its answer is too long and was cut off", host=host)
    sections = list(_sections(lines, nonce))
    if sections[-1][0] != "end":
        last = next((line for line in reversed(lines) if line), "")[:60]
        raise _error(
            f"its answer stops after {len(lines)} lines, in {sections[-1][0]!r}: {last!r}",
            host=host,
        )
    asked: list[str] = []
    files: dict[str, str | Unknown] = {}
    tools: dict[str, tuple[int, str] | Unknown] = {}
    links: dict[str, str] = {}
    lists: dict[str, Sequence[str]] = {}
    for title, found in sections:
        word, _, name = title.partition(" ")
        body = found[:-1] if found and not found[-1] else found  # empty in front of every section
        if word == "asked":
            asked = body
        elif word in ("files", "again"):
            files = _files(asked, body)
        elif word == "errors":
            files |= _errors(body)
        elif word == "tool":
            tools[name] = _tool(body)
        elif word == "absent":
            tools[name] = Unknown.ABSENT
        elif word == "links":
            links = dict(line.split(" ", 1) for line in body if " " in line)
        else:
            lists[word] = body
    return Archive(files, tools, links, lists, host)


def _files(asked: Sequence[str], lines: Sequence[str]) -> dict[str, str | Unknown]:
    """Return the texts of files from lines PATH:LINE; "" for a path of `asked` without a line."""
    known, current = set(asked), ""
    texts: dict[str, list[str]] = {path: [] for path in asked}
    for line in lines:
        if not (current and line.startswith(current + ":")):
            at = line.find(":")
            while at >= 0 and line[:at] not in known:
                at = line.find(":", at + 1)
            if at < 0:
                continue
            current = line[:at]
        texts[current].append(line[len(current) + 1 :])
    return {path: _whole(found) for path, found in texts.items()}


def _whole(lines: Sequence[str]) -> str | Unknown:
    if any(line.endswith("::cut") for line in lines) or sum(map(len, lines)) > FILE_BYTES:
        return Unknown.CUT
    return "\n".join(lines)


def _errors(lines: Sequence[str]) -> dict[str, str | Unknown]:
    found: dict[str, str | Unknown] = {}
    for line in lines:
        # grep's own name comes first; GNU's and BusyBox's agree on the rest.
        path, _, reason = line.partition(": ")[2].rpartition(": ")
        if path.startswith("/"):
            found[path] = _REASONS.get(reason.strip(), Unknown.UNSUPPORTED)
    return found


def _tool(lines: Sequence[str]) -> tuple[int, str] | Unknown:
    """Return status and output of a tool, whose last line is "::status 0"."""
    status = lines[-1].removeprefix("::status ") if lines else ""
    if not status.isdecimal():
        return Unknown.CUT
    return int(status[:9]), "\n".join(lines[:-1]).strip()


def _error(cause: str, *, host: str = "", line: int = 0) -> ParseError:
    return ParseError(cause, line=line, place=f"facts of {host}" if host else "facts")
