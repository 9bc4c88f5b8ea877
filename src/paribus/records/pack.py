"""A study directory as one zip file, with the SHA-256 of every file in it.

`sha256sum -c SHA256SUMS` checks it wherever it was unpacked by hand.
"""

from __future__ import annotations

import hashlib
import shutil
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from paribus.errors import StoreError
from paribus.outside import printable

SUMS = "SHA256SUMS"
MOST_FILES = 1_000_000
MOST_BYTES = 64 << 30
"""Bytes of what is unpacked: more is refused, not written."""

_DATE = (1980, 1, 1, 0, 0, 0)
_STEP = 1 << 20


def pack(directory: Path, names: Sequence[str], out: Path) -> int:
    """Write those of `names` that are in `directory` to the new zip file `out`; return how many.

    A name may be a directory, whose files are then taken. Links are left out: they lead out of the
    study. Equal studies give equal files. Raises StoreError where it cannot be written.
    """
    partial = out.with_name(f".{out.name}.partial")
    sums = []
    try:
        with zipfile.ZipFile(partial, "x", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
            for path in _files(directory, names):
                name = path.relative_to(directory).as_posix()
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
        partial.unlink(missing_ok=True)
    return len(sums)


def _files(directory: Path, names: Sequence[str]) -> Iterator[Path]:
    for name in sorted(names):
        path = directory / name
        inside = sorted(path.rglob("*")) if path.is_dir() and not path.is_symlink() else [path]
        yield from (one for one in inside if one.is_file() and not one.is_symlink())


def _add(archive: zipfile.ZipFile, path: Path, name: str) -> str:
    """Put a file into the archive, and return its SHA-256."""
    digest = hashlib.sha256()
    info = zipfile.ZipInfo(name, _DATE)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    with path.open("rb") as file, archive.open(info, "w", force_zip64=True) as target:
        while data := file.read(_STEP):
            digest.update(data)
            target.write(data)
    return digest.hexdigest()


def unpack(file: Path, directory: Path) -> int:
    """Unpack a file of `pack` into the new `directory`, each file checked; return how many.

    Raises StoreError for a file that is no such archive, is not whole, or holds what no study has;
    nothing of it is then left.
    """
    try:
        directory.mkdir()
    except OSError as error:
        raise StoreError(
            f"cannot be made: {error.strerror}",
            place=str(directory),
            fix="choose another with --out",
        ) from error
    try:
        with zipfile.ZipFile(file) as archive:
            sums = _sums(archive, file)
            for name, digest in sums.items():
                _extract(archive, file, name, digest, directory)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        shutil.rmtree(directory, ignore_errors=True)
        raise _refused(file, f"is not a whole zip file: {error}") from error
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    return len(sums)


def _sums(archive: zipfile.ZipFile, file: Path) -> dict[str, str]:
    """Return the SHA-256 of each file by name, when they are exactly those in the archive."""
    members = archive.infolist()
    if len(members) > MOST_FILES or sum(one.file_size for one in members) > MOST_BYTES:
        raise _refused(file, "holds more than a study can")
    names = [one.filename for one in members]
    if SUMS not in names:
        raise _refused(file, f"has no {SUMS}: `paribus pack` did not write it")
    lines = archive.read(SUMS).decode("utf-8", "replace").splitlines()
    rows = (line.partition("  ") for line in lines)
    sums = {name: digest for digest, _, name in rows}
    if sorted(names) != sorted([SUMS, *sums]):
        raise _refused(file, f"{SUMS} does not name the files that are in it")
    for name in sums:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name or not name:
            raise _refused(file, f"names a file outside of it: {printable(name)[:80]}")
    return sums


def _extract(archive: zipfile.ZipFile, file: Path, name: str, digest: str, directory: Path) -> None:
    target = directory / name
    target.parent.mkdir(parents=True, exist_ok=True)
    found, left = hashlib.sha256(), archive.getinfo(name).file_size
    with archive.open(name) as source, target.open("xb") as out:
        while data := source.read(_STEP):
            left -= len(data)
            if left < 0:
                raise _refused(file, f"{printable(name)} is larger than it says")
            found.update(data)
            out.write(data)
    if found.hexdigest() != digest:
        raise _refused(file, f"{printable(name)} has been changed since it was packed")


def _refused(file: Path, cause: str) -> StoreError:
    return StoreError(cause, place=str(file), fix="ask for the file anew")
