"""Reading and writing files that others may have put there: regular files only, of bounded size.

A device, a pipe or a file without end would fill the memory or block for ever, so each is refused
before it is read. What is read in parts, such as logs and tables, is bounded where it is read.
What Paribus writes goes into no file that a link leads to: a study directory may come from anybody.
"""

from __future__ import annotations

import codecs
import errno
import json
import os
import re
import stat
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from paribus.border.outside import printable
from paribus.core import ParibusError, format_bytes

MOST_TEXT = 1 << 20
"""The most bytes of a file that a person writes: a study, figures, reasons, a benchmark."""

NO_PATH = (errno.ELOOP, errno.ENAMETOOLONG)
"""The errno values of a path at which nothing can be, whatever is done to files and rights."""

MOST_DEPTH = 16
"""The most parts of a dotted key, and levels of a nested value, in TOML; a study needs four.

The memory that tomllib takes for a key grows with the square of its parts (3.11 to 3.14).
"""

_PART = r"""(?:[A-Za-z0-9_-]+|(?<!\\)"(?:\\.|[^"\\\n])*"|'[^'\n]*')[ \t]*"""
_DEEP = re.compile(rf"(?<![A-Za-z0-9_-])(?:{_PART}\.[ \t]*){{{MOST_DEPTH}}}")
"""More than MOST_DEPTH words between dots, wherever they stand: texts and comments have none."""


@contextmanager
def as_error(
    kind: type[ParibusError],
    place: Path | str,
    fix: str = "",
    cause: str = "cannot be written",
    *,
    named: bool = False,
) -> Iterator[None]:
    """Raise `kind` in place of an OSError: "cannot be written: No space left on device".

    With `named` its place is the file that the system named, if it named one.
    """
    try:
        yield
    except OSError as error:
        where = (error.filename if named else "") or place
        raise kind(f"{cause}: {error.strerror or error}", place=str(where), fix=fix) from error


def open_regular(path: Path | str) -> int:
    """Return a descriptor of the regular file at `path`, opened for reading, without blocking.

    Raises OSError, also for a pipe, a socket or a device: its strerror then says which.
    """
    try:
        check_regular(path)  # first, because opening a device may already act on it
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except ValueError:
        raise OSError(errno.EINVAL, "its name holds a NUL character", str(path)) from None
    return _regular(descriptor, path)


def open_own(path: Path, flags: int) -> int:
    """Return a descriptor of a file that Paribus keeps open or overwrites; it is made if missing.

    `flags` are those of os.open. Raises OSError, also for a link: its strerror says so.
    """
    try:
        check_regular(path, links=False)
    except FileNotFoundError:
        flags |= os.O_CREAT
    most = flags | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW
    return _regular(os.open(path, most, 0o644), path)


def open_anew(path: Path, mode: str = "w", **how: Any) -> Any:
    """Return a new file at `path`, open for writing, in place of what was there; raises OSError.

    Of a link only the link is removed. `how` are arguments of Path.open.
    """
    path.unlink(missing_ok=True)
    return path.open(mode.replace("w", "x"), **how)


def check_regular(path: Path | str, *, links: bool = True) -> None:
    """Raise OSError unless a regular file is at `path`, or, with `links`, a link to one."""
    _refuse(os.stat(path, follow_symlinks=links), path)  # noqa: PTH116 - a file that is locked here


def _regular(descriptor: int, path: Path | str) -> int:
    try:
        _refuse(os.fstat(descriptor), path)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _refuse(status: os.stat_result, path: Path | str) -> None:
    kind = stat.S_IFMT(status.st_mode)
    if kind == stat.S_IFDIR:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if kind != stat.S_IFREG:
        kinds = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFLNK: "a link"}
        what = kinds.get(kind, "a device")
        raise OSError(errno.EINVAL, f"it is {what}, not a file", str(path))


def read_bounded(path: Path | str, most: int, what: str) -> bytes:
    """Return the contents of the regular file at `path`, of at most `most` bytes.

    Raises OSError, also for anything but a regular file, and for a larger one: the strerror then
    names `what` it was to be, such as "a study file".
    """
    with open(open_regular(path), "rb") as file:
        data = file.read(min(os.fstat(file.fileno()).st_size, most) + 1)
        while len(data) <= most and (more := file.read(1 << 16)):  # as files of /proc: size 0
            data += more
    if len(data) > most:
        cause = f"it is larger than {format_bytes(most)}, the most that {what} may have"
        raise OSError(errno.EFBIG, cause, str(path))
    return data


def data_in(file: int) -> Iterator[tuple[int, int]]:
    """Yield the offsets at which each stretch of data in a sparse file begins and ends."""
    size, end = os.fstat(file).st_size, 0
    while end < size:
        try:
            begin = os.lseek(file, end, os.SEEK_DATA)
        except OSError:  # ENXIO: there are no more
            return
        end = os.lseek(file, begin, os.SEEK_HOLE)
        yield begin, end


def data_of(path: Path) -> int:
    """Return the number of bytes of a regular file, its holes left out; raises OSError."""
    file = open_regular(path)
    try:
        return sum(end - begin for begin, end in data_in(file))
    finally:
        os.close(file)


def read_json(
    path: Path, most: int, what: str, *, constant: Callable[[str], Any] | None = None
) -> Any:
    """Return the value in the JSON file at `path`; `constant` makes the values of NaN and Infinity.

    Raises OSError as `read_bounded` does, and for a value that is nested too deeply or does not fit
    the memory; ValueError for what is not JSON.
    """
    try:
        return json.loads(read_bounded(path, most, what), parse_constant=constant)
    except RecursionError:
        cause = "it is nested more deeply than can be read"
    except MemoryError:
        cause = "no memory is left for what it holds"
    raise OSError(errno.EFBIG, cause, str(path))


_NOT_PLAIN = (
    (b"\x1f\x8b", "compressed", "unpack it first: gunzip"),
    (b"\x28\xb5\x2f\xfd", "compressed", "unpack it first: unzstd"),
    (b"\xfd7zXZ", "compressed", "unpack it first: unxz"),
    (b"BZh", "compressed", "unpack it first: bunzip2"),
    (b"PK\x03\x04", "a zip archive or a spreadsheet", "unpack it, or save the sheet as CSV"),
    (
        b"SQLite format 3",
        "a SQLite database",
        "print what it has; ReFrame: --describe-stored-sessions",
    ),
    (b"\xff\xfe", "not UTF-8 but UTF-16", "save it as UTF-8"),
    (b"\xfe\xff", "not UTF-8 but UTF-16", "save it as UTF-8"),
)


def not_plain(start: bytes) -> tuple[str, str] | None:
    """Return what a file that begins with `start` is ("compressed"), and what to do about it.

    None for plain text.
    """
    if start[257:262] == b"ustar":
        return "a tar archive", "unpack it first: tar -xf"
    return next(((what, fix) for magic, what, fix in _NOT_PLAIN if start.startswith(magic)), None)


def is_directory(path: Path) -> bool:
    """Return whether `path` is a directory; False for what no path can be."""
    return os.path.isdir(path)  # noqa: PTH112 - Path.is_dir raises for a name that is too long


def is_file(path: Path | str) -> bool:
    """Return whether `path` is a file; False for what no path can be."""
    return os.path.isfile(path)  # noqa: PTH113 - as in is_directory


def exists(path: Path) -> bool:
    """Return whether something is at `path`; False for what no path can be."""
    return os.path.exists(path)  # noqa: PTH110 - as in is_directory


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """Return the table in the TOML file at `path`, which is `what`: "a study file".

    Raises OSError as `read_bounded` does, and ValueError with a cause that follows the file's name
    ("is not UTF-8"), also for a whole number beyond 64 bits and for NUL.
    """
    text = decoded(read_bounded(path, MOST_TEXT, what))
    if deep := _DEEP.search(text):
        line = text.count("\n", 0, deep.start()) + 1
        raise ValueError(f"has a key of more than {MOST_DEPTH} parts (at line {line})")
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"is not TOML: {printable(str(error))}") from None
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    except ValueError:  # int() refuses more than some thousand digits
        raise ValueError("is not TOML: a whole number does not fit 64 bits") from None
    _check(table)
    return table


def decoded(data: bytes) -> str:
    """Return `data` decoded as UTF-8; raises ValueError, which names what it is instead."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ValueError("is text in UTF-16; save it as UTF-8")
    try:
        text = data.decode("utf-8-sig")  # some editors begin a file with a byte order mark
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        if b"\0" in data:
            raise ValueError("is a binary file, not text") from None
        raise ValueError(f"is not UTF-8 (at line {line}); save it as UTF-8") from None
    if "\0" in text:
        raise ValueError("is a binary file, not text")
    return text


_TOO_DEEP = f"is nested more than {MOST_DEPTH} levels deep"


def _check(table: dict[str, Any]) -> None:
    """Raise ValueError for nesting, texts and numbers that no study needs; without recursion."""
    todo: list[tuple[tuple[str, ...], Any]] = [((), table)]
    while todo:
        path, value = todo.pop()
        if len(path) > MOST_DEPTH:
            raise ValueError(_TOO_DEEP)
        if isinstance(value, dict):
            todo += [((*path, key), one) for key, one in value.items()]
        elif isinstance(value, list):
            todo += [((*path, str(number)), one) for number, one in enumerate(value)]
        if "\0" in "".join(path[-1:]) or (isinstance(value, str) and "\0" in value):
            raise ValueError(f"{_named(path)} holds a NUL character, which no argument or path can")
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise ValueError(f"{_named(path)} is a whole number that does not fit 64 bits")


def _named(path: tuple[str, ...]) -> str:
    return printable(".".join(path))[:200]
