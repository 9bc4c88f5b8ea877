"""Files that others may have put there: regular files only, and never more of one than is stated.

A device, a pipe or a file without end would fill the memory or block for ever; what is refused here
is refused before it is read. Bounds of what is read in parts stand where it is read: logs in
compare/reading.py, tables in tables/files.py. What Paribus writes goes into no file that a link
leads to: a study directory may come from anybody.
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
from pathlib import Path
from typing import Any

from paribus.border.outside import printable
from paribus.core import format_bytes

MOST_TEXT = 1 << 20
"""Bytes of a file that a person writes: a study, figures, reasons, a benchmark."""

MOST_DEPTH = 16
"""Parts of a dotted key, and levels of a nested value, in TOML; a study needs four.

The memory that tomllib takes for a key grows with the square of its parts (3.11 to 3.14).
"""

_PART = r"""(?:[A-Za-z0-9_-]+|(?<!\\)"(?:\\.|[^"\\\n])*"|'[^'\n]*')[ \t]*"""
_DEEP = re.compile(rf"(?<![A-Za-z0-9_-])(?:{_PART}\.[ \t]*){{{MOST_DEPTH}}}")
"""More than MOST_DEPTH words between dots, wherever they stand: texts and comments have none."""


def open_regular(path: Path | str) -> int:
    """Return a descriptor of the regular file at `path`, opened for reading, without blocking.

    Raises OSError; its strerror says so where the path is something else.
    """
    try:
        check_regular(path)  # before it is opened: that alone may act
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except ValueError:
        raise OSError(errno.EINVAL, "its name holds a NUL character", str(path)) from None
    return _regular(descriptor, path)


def open_own(path: Path, flags: int) -> int:
    """Return a descriptor of a file that Paribus keeps open or overwrites, made if not there.

    Raises OSError, also for a link: its strerror says so.
    """
    try:
        check_regular(path, links=False)
    except FileNotFoundError:
        flags |= os.O_CREAT
    most = flags | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW
    return _regular(os.open(path, most, 0o644), path)


def open_anew(path: Path, mode: str = "w", **how: Any) -> Any:
    """Return a new file at `path`, open to be written; what was there is removed, links unfollowed.

    Raises OSError.
    """
    path.unlink(missing_ok=True)
    return path.open(mode.replace("w", "x"), **how)


def check_regular(path: Path | str, *, links: bool = True) -> None:
    """Raise OSError unless a regular file is at `path`, or where `links` a link leads to one."""
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
    """Return what the regular file at `path` holds: at most `most` bytes, as `what` may have.

    Raises OSError, also for anything but a regular file and for a larger one; the strerror says it.
    """
    with open(open_regular(path), "rb") as file:
        data = file.read(min(os.fstat(file.fileno()).st_size, most) + 1)
        while len(data) <= most and (more := file.read(1 << 16)):  # as files of /proc: size 0
            data += more
    if len(data) > most:
        said = f"it is larger than {format_bytes(most)}, the most that {what} may have"
        raise OSError(errno.EFBIG, said, str(path))
    return data


def data_in(file: int) -> Iterator[tuple[int, int]]:
    """Yield where the data of an open file begin and end, between its holes."""
    size, end = os.fstat(file).st_size, 0
    while end < size:
        try:
            begin = os.lseek(file, end, os.SEEK_DATA)
        except OSError:  # ENXIO: there are no more
            return
        end = os.lseek(file, begin, os.SEEK_HOLE)
        yield begin, end


def data_of(path: Path) -> int:
    """Return the bytes that a regular file has without its holes; raises OSError."""
    file = open_regular(path)
    try:
        return sum(end - begin for begin, end in data_in(file))
    finally:
        os.close(file)


def read_json(
    path: Path, most: int, what: str, *, constant: Callable[[str], Any] | None = None
) -> Any:
    """Return the value in the JSON file at `path`; `constant` is given NaN and Infinity.

    Raises OSError as `read_bounded`, and for what the memory does not hold or is nested too deeply;
    ValueError for what is not JSON.
    """
    try:
        return json.loads(read_bounded(path, most, what), parse_constant=constant)
    except RecursionError:
        said = "it is nested more deeply than can be read"
    except MemoryError:
        said = "no memory is left for what it holds"
    raise OSError(errno.EFBIG, said, str(path))


_NOT_PLAIN = (
    (b"\x1f\x8b", "compressed", "unpack it first: gunzip"),
    (b"\x28\xb5\x2f\xfd", "compressed", "unpack it first: unzstd"),
    (b"\xfd7zXZ", "compressed", "unpack it first: unxz"),
    (b"BZh", "compressed", "unpack it first: bunzip2"),
    (b"PK\x03\x04", "a zip archive or a spreadsheet", "unpack it, or save the sheet as CSV"),
    (b"\xff\xfe", "not UTF-8 but UTF-16", "save it as UTF-8"),
    (b"\xfe\xff", "not UTF-8 but UTF-16", "save it as UTF-8"),
)


def not_plain(start: bytes) -> tuple[str, str] | None:
    """Return what a file is that begins with `start`, and what to do, where it is no plain text."""
    found = [(what, fix) for magic, what, fix in _NOT_PLAIN if start.startswith(magic)]
    return found[0] if found else None


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
    """Return the table in the TOML file at `path`: bounded, whole numbers of 64 bits, no NUL.

    Raises OSError as `read_bounded`, and ValueError with the cause, to stand after the file's name.
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
    """Return the text of a file in UTF-8; raises ValueError with what it is instead."""
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
    """Raise ValueError for a value that no study, and no figure, can mean."""
    left: list[tuple[tuple[str, ...], Any]] = [((), table)]
    while left:
        path, value = left.pop()
        if len(path) > MOST_DEPTH:
            raise ValueError(_TOO_DEEP)
        if isinstance(value, dict):
            left += [((*path, key), one) for key, one in value.items()]
        elif isinstance(value, list):
            left += [((*path, str(number)), one) for number, one in enumerate(value)]
        if "\0" in "".join(path[-1:]) or (isinstance(value, str) and "\0" in value):
            raise ValueError(f"{_named(path)} holds a NUL character, which no argument or path can")
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise ValueError(f"{_named(path)} is a whole number that does not fit 64 bits")


def _named(path: tuple[str, ...]) -> str:
    return printable(".".join(path))[:200]
