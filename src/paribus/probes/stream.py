"""The answer of facts.sh, read: what is not ours is passed over, what is lost or mixed is named."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

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
"""What the system says of a file that cannot be read; anything else is "unsupported"."""

Section = tuple[str, list[str]]


def archives(text: str) -> dict[str, Archive]:
    """Return the archive of each node that answered in `text`, by host name.

    Raises ParseError that names what is wrong: no answer, half of one, lines lost or mixed up with
    another node's, too long.
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
    versions: dict[str, str] = {}
    for match in begins:
        if match[2] in versions:
            raise _error("two answers from hosts of the same name", host=match[2])
        if match[3] != "1":
            raise _error(f"an answer of version {match[3]!r}, not 1", host=match[2])
        versions[match[2]] = match[3]
    nonce = nonces.pop()
    own = _own_lines(text, nonce, versions)
    return {host: _archive(host, lines, nonce) for host, lines in own.items()}


def from_stream(text: str) -> Archive:
    """Return the archive of the one node that answered in `text`; raises ParseError as above."""
    found = archives(text)
    if len(found) > 1:
        raise _error(f"answers of {len(found)} nodes where one was asked: {', '.join(found)}")
    return next(iter(found.values()))


def _own_lines(text: str, nonce: str, hosts: Iterable[str]) -> dict[str, list[str]]:
    """Return the lines of each host without what is before them; each must be there, and whole."""
    own: dict[str, list[str]] = {host: [] for host in hosts}
    for number, line in enumerate(text.split("\n"), 1):
        if nonce not in line:
            continue  # a banner, or the rest of a line that something broke into: then that is seen
        mark, host, count, content = [*line.split(" ", 3), "", "", ""][:4]
        if mark != nonce or host not in own:
            at = next((name for name in own if f"{nonce} {name} " in line), "")
            if at and not own[at] and line.rstrip("\r").endswith(f"{nonce} {at} 1 "):
                own[at].append("")  # a banner without an end of line, before our empty first line
            elif at:
                raise _error("its lines are mixed up with others", host=at, line=number)
            continue
        lines = own[host]
        if nonce in content and not content.startswith(f"::{nonce} "):
            raise _error("its lines are mixed up with others", host=host, line=number)
        if count.rstrip("\r") != str(len(lines) + 1):
            raise _error(f"line {len(lines) + 1} of its answer is missing", host=host, line=number)
        lines.append(content.removesuffix("\r"))
    return own


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
    """Return the texts of "PATH:line" lines; a path that was asked and gave no line is empty."""
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
    status = lines[-1].removeprefix("::status ") if lines else ""
    if not status.isdecimal():
        return Unknown.CUT
    return int(status[:9]), "\n".join(lines[:-1]).strip()


def _error(cause: str, *, host: str = "", line: int = 0) -> ParseError:
    return ParseError(cause, line=line, place=f"facts of {host}" if host else "facts")
