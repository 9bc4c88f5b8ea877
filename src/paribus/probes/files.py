"""Archives on disk: a machine's own files, or what `paribus record` wrote (tar or directory).

Such an archive has the files under their own paths, and beside them `tools/NAME` (status in the
first line), `lists/NAME`, `links.json` and `unknown.json`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paribus.border import as_error, read_bounded
from paribus.core import UserError
from paribus.probes.archive import (
    DEVICE_CLASSES,
    DEVICE_FILES,
    MOST_BYTES,
    Archive,
    Unknown,
    patterns,
)
from paribus.probes.reading import files_of, read_file

if TYPE_CHECKING:
    import tarfile

_MEMBERS = 20_000
_UNPACKED = MOST_BYTES + _MEMBERS * 2048
"""Bytes of the largest tar file that is read: each member has up to three blocks of header."""

_LARGER = "larger than facts are"
_FIX = "make one: paribus record"


def from_root(root: Path) -> Archive:
    """Return the archive of the files under `root`, "/" for this machine; no tools are started.

    A directory with `unknown.json` is an unpacked recording of `paribus record`. Raises UserError
    for a directory that is not there or cannot be read.
    """
    if (root / "unknown.json").is_file():
        return _archive(_parts(root), str(root))
    if not root.is_dir():
        raise UserError("no such directory", place=str(root), fix="name a root or an archive")
    root = root.resolve()  # or links would seem to lead out of it
    files = files_of(root, patterns()) | _devices(root)
    return Archive(files, links=dict(_links(root)))


def _devices(root: Path) -> dict[str, str | Unknown]:
    """Return the files of those PCI devices whose class is one of DEVICE_CLASSES."""
    wanted = re.compile(DEVICE_CLASSES)
    codes = {path: read_file(path) for path in root.glob("sys/bus/pci/devices/*/class")}
    names = [
        f"{path.parent.relative_to(root)}/{name}"
        for path, code in sorted(codes.items())
        if isinstance(code, str) and wanted.match(code)
        for name in DEVICE_FILES.split()
    ]
    return {"/" + name: read_file(root / name) for name in names}


def _parts(root: Path) -> dict[str, bytes]:
    """Return the files of an unpacked archive by their paths; raises UserError for too much."""
    parts: dict[str, bytes] = {}
    left = MOST_BYTES
    for path in root.rglob("*"):
        if path.is_symlink() or not path.is_file():
            continue
        with as_error(UserError, path, _FIX, "cannot be read"):
            parts[str(path.relative_to(root))] = data = read_bounded(path, left, "all facts")
        left -= len(data)
        if len(parts) > _MEMBERS:
            raise UserError(f"holds more than {_MEMBERS:,} files", place=str(root), fix=_FIX)
    return dict(sorted(parts.items()))


def from_tar(path: Path) -> Archive:
    """Return the archive that `paribus record` wrote to `path`; raises UserError for another file.

    Nothing is unpacked to disk. A file that would take too much memory or time is refused, and so
    is one with members that no recording has (links, devices, absolute names).
    """
    import io
    import tarfile

    parts: dict[str, bytes] = {}
    members = size = 0
    try:
        data = _unpacked(path)
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as tar:
            for member in tar:
                members, size = members + 1, size + member.size
                if members > _MEMBERS or size > MOST_BYTES:
                    raise UserError(_LARGER, place=str(path), fix=_FIX)
                name = _checked(member)
                content = tar.extractfile(member) if member.isreg() else None
                if content:
                    parts[name] = content.read()
    # Headers that refer to each other without end are a RecursionError of tarfile.
    except (OSError, EOFError, ValueError, RecursionError, tarfile.TarError) as error:
        cause = getattr(error, "strerror", None) or error  # without the path, which may be long
        why = "headers without end" if isinstance(error, RecursionError) else cause
        raise UserError(f"not an archive of facts ({why})", place=str(path), fix=_FIX) from error
    return _archive(parts, str(path))


def _unpacked(path: Path) -> bytes:
    """Return the tar file in the gzip file `path`; raises ValueError unless that has one part."""
    import zlib

    packed = read_bounded(path, MOST_BYTES, "a recording")
    unpacking = zlib.decompressobj(31)  # 31: a gzip header is expected (zlib.h, inflateInit2)
    try:
        data = unpacking.decompress(packed, _UNPACKED + 1)
    except zlib.error as error:
        raise ValueError(f"not gzip: {error}") from error
    if len(data) > _UNPACKED:
        raise UserError(_LARGER, place=str(path), fix=_FIX)
    if not unpacking.eof or unpacking.unused_data.strip(b"\0"):
        raise ValueError("cut off, or several files in one")
    return data


def _checked(member: tarfile.TarInfo) -> str:
    """Return the name of a member; raises ValueError unless it is a file or directory below "."."""
    name = member.name.removeprefix("./")
    if not (member.isreg() or member.isdir()) or member.size < 0:
        raise ValueError(f"{name[:80]!r} is no plain file")
    if name.startswith("/") or ".." in name.split("/"):
        raise ValueError(f"{name[:80]!r} is no name below it")
    return name


def to_tar(archive: Archive, path: Path) -> int:
    """Write `archive` to `path` as tar.gz, with the same bytes each time; return how many files."""
    import gzip
    import io
    import tarfile

    parts = {name.lstrip("/"): text for name, text in archive.files.items() if _text(text)}
    parts |= {
        f"tools/{name}": f"{found[0]}\n{found[1]}"
        for name, found in archive.tools.items()
        if not isinstance(found, Unknown)
    }
    parts |= {f"lists/{name}": "\n".join(lines) for name, lines in archive.lists.items()}
    unknown = {n: t.value for n, t in archive.files.items() if isinstance(t, Unknown)}
    unknown |= {f"tools/{n}": t.value for n, t in archive.tools.items() if isinstance(t, Unknown)}
    parts["unknown.json"] = json.dumps(unknown, indent=0, sort_keys=True)
    parts["links.json"] = json.dumps(archive.links, indent=0, sort_keys=True)
    parts["host"] = archive.host
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name in sorted(parts):
            member, data = tarfile.TarInfo(name), str(parts[name]).encode(errors="replace")
            member.size, member.mode = len(data), 0o644
            tar.addfile(member, io.BytesIO(data))
    path.write_bytes(gzip.compress(buffer.getvalue(), mtime=0))
    return len(parts)


def _text(text: str | Unknown) -> bool:
    return isinstance(text, str)


def _archive(parts: Mapping[str, bytes], place: str) -> Archive:
    """Return the archive of the files of a recording by their paths; see the module."""
    files: dict[str, str | Unknown] = {}
    tools: dict[str, tuple[int, str] | Unknown] = {}
    lists: dict[str, list[str]] = {}
    for name, data in parts.items():
        text = data.decode(errors="replace")
        if name.startswith("tools/"):
            status, _, output = text.partition("\n")
            tools[name[6:]] = (int(status[:9]), output) if status.isdecimal() else Unknown.CUT
        elif name.startswith("lists/"):
            lists[name[6:]] = text.split("\n") if text else []
        else:
            files["/" + name] = text
    unknown = _table(files.pop("/unknown.json", ""), place)
    links = _table(files.pop("/links.json", ""), place)
    host = files.pop("/host", "")
    for name, why in unknown.items():
        value = next((u for u in Unknown if u.value == why), Unknown.UNREADABLE)
        if name.startswith("tools/"):
            tools[name[6:]] = value
        else:
            files[name] = value
    return Archive(files, tools, links, lists, str(host))


def _table(text: str | Unknown, place: str) -> dict[str, str]:
    try:
        table: Any = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        table = None
    if not isinstance(table, dict) or not all(isinstance(v, str) for v in table.values()):
        raise UserError(
            "not an archive of facts", place=place, fix="make one with `paribus record`"
        )
    return table


def _links(root: Path) -> Iterator[tuple[str, str]]:
    """Yield the links of /sys to devices that facts.sh reads, and the paths where they lead."""
    for pattern in (
        *("sys/class/net/*/device", "sys/class/net/*/device/driver", "sys/class/net/*/master"),
        *("sys/class/infiniband/*/device", "sys/class/infiniband/*/device/driver"),
        *("sys/class/drm/card*/device", "sys/bus/pci/devices/*"),
    ):
        for link in root.glob(pattern):
            try:
                yield "/" + str(link.relative_to(root)), "/" + str(link.resolve().relative_to(root))
            except (OSError, ValueError):
                continue
