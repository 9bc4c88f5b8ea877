"""An archive without what shows whose machine it is: names, addresses, serial numbers, users.

scrubbed(archive, ["alice"]) turns "/home/alice/run on n17" into "/home/user/run on node0".
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from paribus.probes.archive import Archive, Unknown
from paribus.probes.kernel import without_secrets
from paribus.probes.variables import of_session, prefixes, reported

UUID = re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b")
MAC = re.compile(r"(?<![0-9a-fA-F:])(?:[0-9a-fA-F]{2}:){5,19}[0-9a-fA-F]{2}(?![0-9a-fA-F:])")
LONG_HEX = re.compile(r"\b[0-9a-f]{32,}\b")
HOME = re.compile(
    r"(/(?:home|users?|u|root|scratch|work|projects?|data|lustre|gpfs|beegfs)/)[^/\s:,]+",
    re.IGNORECASE,
)
URL = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s,]+")
IPV4 = re.compile(r"(?<![0-9.])(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?![0-9.])")
_IPV6 = re.compile(r"(?<![0-9a-zA-Z:])(?:[0-9a-fA-F]{0,4}:){3,7}[0-9a-fA-F]{0,4}(?![0-9a-zA-Z:.])")
_PERSONAL_LINE = re.compile(
    r"serial|asset|uuid|configure host|configured by|configured on|built by|built on|build host|"
    r"config:(user|host|timestamp)|build:(user|host|timestamp)|hostname",
    re.IGNORECASE,
)
# Places of texts in which four numbers with dots are a version, and colons are in PCI addresses.
_VERSIONS = re.compile(
    r"/(bios|board|product|ec|fw|hw|sys|chassis)_?[a-z_]*$|version|release|/infiniband/|ethtool-i"
)
_HASHED = re.compile(r"X[0-9a-f]{8}")
_KEPT_LISTS = ("begin", "namespaces", "present", "bridges", "build_ids", "interrupts", "queues")


def scrubbed(archive: Archive, names: Iterable[str]) -> Archive:
    """Return `archive` without host names, MAC and IP addresses, UUIDs, serials, users, URLs.

    `names` are further words to take out (host, user). A variable that is no setting leaves a hash
    of its name, a setting whose value may be secret its name; only those mounts stay from which
    facts are made, and cgroup paths lose their ids.
    """
    full = {archive.host, *names}
    parts = {part for name in full for part in (name.partition(".")[0], name.partition(".")[2])}
    # The longest first: "n17" before "n17.cluster" would leave the cluster.
    words = sorted((word for word in full | parts if len(word) > 1), key=len, reverse=True)
    files = {path: _file(path, text, words) for path, text in archive.files.items()}
    lists = {name: list(archive.lists.get(name, ())) for name in _KEPT_LISTS}
    lists["environment"] = _environment(archive.lists.get("environment", ()), words)
    lists["directories"], mounts = _mounts(archive, words)
    if mounts is not None:
        files["/proc/self/mountinfo"] = mounts
    for name in ("libraries", "real"):
        lists[name] = [f"/lib/{path.rpartition('/')[2]}" for path in archive.lists.get(name, ())]
    for name in ("digests", "compiler"):
        lines = archive.lists.get(name, ())
        lists[name] = [_text("lists", re.sub(r"^/.*/", "/lib/", line), words) for line in lines]
    lists["consumers"] = [_unnamed(line) for line in archive.lists.get("consumers", ())]
    tools = {
        name: found
        if isinstance(found, Unknown)
        else (found[0], _text(f"tools/{name}", _without_personal_lines(found[1]), words))
        for name, found in archive.tools.items()
    }
    kept = {name: lines for name, lines in lists.items() if name in archive.lists}
    return replace(archive, files=files, tools=tools, lists=kept, host="node0")


def _unnamed(line: str) -> str:
    """Return a line "TICKS COMMAND" as "TICKS command": commands may be private."""
    return re.sub(r"^([0-9]+) .*", r"\1 command", line)


def _file(path: str, text: str | Unknown, words: Sequence[str]) -> str | Unknown:
    if isinstance(text, Unknown):
        return text
    if path == "/proc/net/route":
        rows = [line.split("\t") for line in text.split("\n")]
        kept = [
            row for row in rows if len(row) > 7 and (row[0] == "Iface" or not row[1].strip("0"))
        ]
        return "\n".join("\t".join([row[0], row[1], "0", *row[3:]]) for row in kept)
    if path == "/proc/cmdline":
        text = without_secrets(text)
    if path.endswith("/information") or path == "/proc/cpuinfo":
        text = _without_personal_lines(text)
    return _text(path, text, words)


def _text(place: str, text: str, words: Sequence[str]) -> str:
    """Return `text` without what shows whose it is; `place` is its path or "tools/NAME"."""
    text = UUID.sub("00000000-0000-0000-0000-000000000000", text)
    text = URL.sub("url", text)
    text = HOME.sub(r"\1user", text)
    text = LONG_HEX.sub("0" * 32, text)
    text = MAC.sub("00:00:00:00:00:00", text)
    if not _VERSIONS.search(place):
        text = IPV4.sub("0.0.0.0", text)
        text = _IPV6.sub(lambda m: m[0] if _pci(m[0]) else "::", text)
    for word in words:
        if len(word) > 3 or place == "/proc/cmdline" or place.startswith(("tools/", "env")):
            # A long word is also replaced as part of a path; a short one may be any directory.
            edge = r"[\w-]" if len(word) > 3 else r"[\w/-]"
            text = re.sub(rf"(?<!{edge}){re.escape(word)}(?!{edge})", "node0", text)
    return text


def _pci(text: str) -> bool:
    return re.match(r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}", text) is not None


def _without_personal_lines(text: str) -> str:
    return "\n".join(line for line in text.split("\n") if not _PERSONAL_LINE.search(line))


def _environment(lines: Sequence[str], words: Sequence[str]) -> list[str]:
    kept = []
    for line in lines:
        name, given, value = line.partition("=")
        if name.startswith(prefixes()):
            known = reported(name, value) if given else None
            kept.append(name if known is None else f"{name}={_text('env', known, words)}")
        elif name and not of_session(name):
            kept.append(hashed(name))
    return sorted(kept)


def hashed(name: str) -> str:
    """Return the stand-in for the name of a variable: "X1f3a5b7c"; a stand-in is returned as is."""
    if _HASHED.fullmatch(name):
        return name
    return f"X{hashlib.sha256(name.encode(errors='replace')).hexdigest()[:8]}"


def _mounts(archive: Archive, words: Sequence[str]) -> tuple[list[str], str | None]:
    """Return the lines of directories and the text of mountinfo, with paths such as /working.

    Of the mounts, only / and those that hold one of the directories or /dev/shm are kept. None in
    place of the text where it is unknown.
    """
    text = archive.files.get("/proc/self/mountinfo")
    directories = dict(
        line.split(" ", 1) for line in archive.lists.get("directories", ()) if " " in line
    )
    lines = text.split("\n") if isinstance(text, str) else []
    rows = [line.split(" ") for line in lines if " - " in line and len(line.split(" ")) > 9]
    kept = [row for row in rows if row[4] == "/"]
    for name, path in {**directories, "shm": "/dev/shm"}.items():
        inside = [
            row for row in rows if path == row[4] or path.startswith(row[4].rstrip("/") + "/")
        ]
        if inside:
            best = max(enumerate(inside), key=lambda pair: (len(pair[1][4]), pair[0]))[1]
            kept.append([*best[:4], "/dev/shm" if name == "shm" else f"/{name}", *best[5:]])
    for row in kept:
        row[3] = "/"
        row[row.index("-") + 2] = "none"
    whole = "\n".join(" ".join(row) for row in kept)
    mounts = _text("/proc/self/mountinfo", whole, words) if isinstance(text, str) else None
    return [f"{name} /{name}" for name in directories], mounts
