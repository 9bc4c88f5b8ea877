"""A study directory as one zip file, with the SHA-256 of every file in it.

`sha256sum -c SHA256SUMS` checks one that was unpacked by hand. A file to unpack may come from
anybody: each part is bounded before it is read, and nothing is written before all names are
checked.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from paribus.border import as_error, check_regular, data_of, open_anew, open_regular, printable
from paribus.core import StoreError
from paribus.store.damage import ABSENT, unreadable

SUMS = "SHA256SUMS"
PLAN = "plan.json"
MOST_FILES = 300_000
MOST_LIST = 32 << 20
"""The most bytes of the list of files in a zip file; in memory it takes twenty times as much."""

MOST_BYTES = 64 << 30
"""The most bytes that are unpacked."""

LIKELY_BYTES = 1 << 30
MOST_RATIO = 200
"""Beyond LIKELY_BYTES, at most so many bytes are unpacked for each byte of the zip file.

Tables and databases of studies have 3 to 20.
"""

MOST_HOLES = 64 << 20
"""The most bytes of holes in a file that is packed: they take no space, and hours to pack."""

MOST_PARTS = 4
"""The most parts of a name; those of a study have two."""

_DATE = (1980, 1, 1, 0, 0, 0)
_STEP = 1 << 20


def pack(directory: Path, names: Sequence[str], out: Path) -> int:
    """Write those of `names` that are in `directory` to the new zip file `out`.

    Returns the number of files. Of a name that is a directory, all its files are packed. Equal
    studies give equal zip files. Raises StoreError if it cannot be written, and for a link or
    other entry that is no regular file: a link may lead out of the study.
    """
    partial = out.with_name(f".{out.name}.partial")
    sums, files = [], list(_files(directory, names))
    if len(files) > MOST_FILES:
        raise StoreError(
            f"holds {len(files):,} files; a packed study has at most {MOST_FILES:,}",
            place=str(directory),
            fix="pack it by hand: `tar -czf study.tar.gz DIR`",
        )
    try:
        with (
            open_anew(partial, "wb") as target,  # one may be left of a start that was killed
            zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive,
        ):
            for path in files:
                name = path.relative_to(directory).as_posix()
                if not _is_plain(name):
                    raise StoreError(
                        "no file of a study is called so",
                        place=str(path),
                        fix="remove or rename it",
                    )
                sums.append(f"{_add(archive, path, name)}  {name}\n")
            archive.writestr(zipfile.ZipInfo(SUMS, _DATE), "".join(sums))
        if out.exists():
            raise FileExistsError(17, "it is there already", str(out))
        partial.rename(out)
    except OSError as error:
        raise StoreError(
            f"cannot be written: {error.strerror}", place=str(out), fix="choose another with --out"
        ) from error
    finally:
        with suppress(OSError):  # the error above says why
            partial.unlink()
    return len(sums)


def _files(directory: Path, names: Sequence[str]) -> Iterator[Path]:
    """Yield the files to pack in a fixed order; missing ones are left out. Raises StoreError."""
    for name in sorted(names):
        path = directory / name
        inside = [path]
        if path.is_dir() and not path.is_symlink():
            inside = sorted(one for one in path.rglob("*") if one.is_symlink() or not one.is_dir())
        for one in inside:
            try:
                check_regular(one, links=False)
                if one.stat().st_size - data_of(one) > MOST_HOLES:
                    raise OSError(errno.EFBIG, "most of it are holes, as in no file of a study")
            except OSError as error:
                if error.errno not in ABSENT:
                    raise unreadable(error, one) from error
            else:
                yield one


def _add(archive: zipfile.ZipFile, path: Path, name: str) -> str:
    """Put a file into the archive, and return its SHA-256."""
    digest = hashlib.sha256()
    info = zipfile.ZipInfo(name, _DATE)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    with (
        os.fdopen(open_regular(path), "rb") as file,
        archive.open(info, "w", force_zip64=True) as target,
    ):
        while data := file.read(_STEP):
            digest.update(data)
            target.write(data)
    return digest.hexdigest()


def unpack(file: Path, directory: Path) -> int:
    """Unpack a zip file of `pack` into the new `directory`; return the number of files.

    Raises StoreError for a file that is no such archive, is damaged, or holds what no study has;
    then the directory is removed again.
    """
    fix = "give the file that `paribus pack` wrote"
    with as_error(StoreError, printable(str(file)), fix, "cannot be read"):
        source = os.fdopen(open_regular(file), "rb")
    with source, _damage(file), zipfile.ZipFile(_Bounded(source, file)) as archive:
        sums = _sums(archive, file)
        _check_room(sum(one.file_size for one in archive.infolist()), file, directory)
        with as_error(StoreError, directory, "choose another with --out", "cannot be made"):
            directory.mkdir()
        try:
            for name, digest in sums.items():
                _extract(archive, file, name, digest, directory)
        except BaseException:
            shutil.rmtree(directory, ignore_errors=True)
            raise
    return len(sums)


class _Bounded:
    """A zip file that refuses reads of more than MOST_LIST bytes at once, as a forged list asks."""

    def __init__(self, source: BinaryIO, file: Path) -> None:
        self._file = file
        self._source = source
        self.size = os.fstat(source.fileno()).st_size
        self.seek, self.tell, self.seekable = source.seek, source.tell, source.seekable

    def read(self, size: int = -1) -> bytes:
        left = max(0, self.size - self.tell())
        wanted = left if size < 0 else min(size, left)
        if wanted > MOST_LIST:
            raise _refused(self._file, "holds more than a study can")
        return self._source.read(wanted)


@contextmanager
def _damage(file: Path) -> Iterator[None]:
    """Turn what zipfile raises into StoreError.

    That is more than BadZipFile: also RuntimeError, NotImplementedError, EOFError, OSError,
    ValueError, IndexError, struct.error and zlib.error, by where the damage is.
    """
    try:
        yield
    except StoreError:
        raise
    except Exception as error:
        cause = printable(str(getattr(error, "strerror", None) or error))[:200]
        raise _refused(file, f"is not a whole zip file: {cause}") from error


def _sums(archive: zipfile.ZipFile, file: Path) -> dict[str, str]:
    """Return the SHA-256 of each file by name; raises StoreError unless all files are listed."""
    members = archive.infolist()
    names = [one.filename for one in members]
    if len(members) > MOST_FILES:
        raise _refused(file, "holds more than a study can")
    if names.count(SUMS) != 1:
        raise _refused(file, f"has no {SUMS}: `paribus pack` did not write it")
    for one in members:
        _check(one, file)
    # Each line of it has 64 digits of a hash, two blanks, a name and an end of line.
    size = sum(67 + len(name.encode("utf-8", "replace")) for name in names if name != SUMS)
    if archive.getinfo(SUMS).file_size != size:
        raise _refused(file, f"{SUMS} does not name the files that are in it")
    lines = archive.read(SUMS).decode("utf-8", "replace").split("\n")[:-1]
    rows = (line.partition("  ") for line in lines)
    sums = {name: digest for digest, _, name in rows}
    if sorted(names) != sorted([SUMS, *sums]):
        raise _refused(file, f"{SUMS} does not name the files that are in it")
    if PLAN not in sums:
        raise _refused(file, f"holds no study: it has no {PLAN}")
    return sums


def _check(member: zipfile.ZipInfo, file: Path) -> None:
    """Raise StoreError for a member that `pack` never writes; called before any is read."""
    name = member.filename
    shown = printable(name)[:80]
    if not _is_plain(name):
        raise _refused(file, f"names a file outside of it, or as no study does: {shown}")
    if member.flag_bits & 1:
        raise _refused(file, f"{shown} is encrypted")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise _refused(file, f"{shown} is compressed as `paribus pack` compresses nothing")
    if stat.S_IFMT(member.external_attr >> 16) not in (0, stat.S_IFREG):
        raise _refused(file, f"{shown} is no regular file")


def _is_plain(name: str) -> bool:
    """Return whether `name`, relative to a study directory, is one that a file of it may have."""
    path = PurePosixPath(name)
    inside = not path.is_absolute() and ".." not in path.parts and path.as_posix() == name
    return inside and name.isprintable() and "\\" not in name and 0 < len(path.parts) <= MOST_PARTS


def _check_room(size: int, file: Path, directory: Path) -> None:
    """Raise StoreError if `size` bytes to unpack are too many, implausible, or not free there."""
    likely = max(LIKELY_BYTES, MOST_RATIO * file.stat().st_size)
    if size > min(MOST_BYTES, likely):
        raise StoreError(
            f"would unpack to {size >> 20} MiB, {size // file.stat().st_size} times its own size",
            place=printable(str(file)),
            fix=f"if you trust it: unzip it by hand, then `sha256sum -c {SUMS}`",
        )
    try:
        free = shutil.disk_usage(directory.absolute().parent).free
    except OSError:
        return  # mkdir says it
    if size > free:
        raise StoreError(
            f"no space is left: {size >> 20} MiB would be unpacked, and {free >> 20} MiB are free",
            place=str(directory),
            fix="choose a directory with more space with --out",
        )


def _extract(archive: zipfile.ZipFile, file: Path, name: str, digest: str, directory: Path) -> None:
    found, left = hashlib.sha256(), archive.getinfo(name).file_size
    with archive.open(name) as source, _new(directory / name) as out:
        while data := source.read(_STEP):
            left -= len(data)
            if left < 0:
                raise _refused(file, f"{printable(name)} is larger than it says")
            found.update(data)
            _write(out, data, directory / name)
    if found.hexdigest() != digest:
        raise _refused(file, f"{printable(name)} has been changed since it was packed")


_ROOM = "free some space there, or choose another directory with --out"


def _new(target: Path) -> FileIO:
    with as_error(StoreError, target, _ROOM):
        target.parent.mkdir(parents=True, exist_ok=True)
        return target.open("xb", buffering=0)


def _write(out: FileIO, data: bytes, target: Path) -> None:
    left = memoryview(data)
    with as_error(StoreError, target, _ROOM):
        while left:
            left = left[out.write(left) :]


def _refused(file: Path, cause: str) -> StoreError:
    return StoreError(cause, place=printable(str(file)), fix="ask for the file anew")
