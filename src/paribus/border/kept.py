"""What is kept of an output that is too long: its beginning, its end, and a line in between.

The line says how many bytes are left out. Whoever reads logs asks `left_out` first: an output with
such a line is not whole, and its figures are not all of its figures.
"""

from __future__ import annotations

import os
import re
from mmap import ACCESS_READ, mmap
from pathlib import Path

KEPT_BYTES = 16 << 20
"""Bytes from the beginning, and as many from the end, of each stream of a launch that are kept."""

UNREAD_BYTES = 64 << 10
"""The same of a launch that succeeded and from whose output no figure is read."""

LEFT_OUT = "launch.left_out"
"""The fact of a launch whose logs are not whole: bytes of both streams that are left out."""

KEPT = "launch.kept"
"""The fact of such a launch: bytes from each end that are kept."""

_START = b"[paribus: "
_LINE = re.compile(rb"^\[paribus: ([0-9][0-9,]*) bytes are left out here\]\r?$", re.MULTILINE)


def shorten(log: Path, kept: int | None = None) -> int:
    """Leave out what is neither at the beginning nor at the end of a file; return its bytes.

    `kept` bytes of each end stay, KEPT_BYTES unless given. Raises OSError. One that ends in
    mid-write leaves a damaged file: nothing that counts yet.
    """
    kept = KEPT_BYTES if kept is None else kept
    with log.open("r+b") as file:
        end = file.seek(0, os.SEEK_END) - kept
        missing = end - kept
        if missing <= 0:
            return 0
        file.seek(end)
        tail = file.read()
        file.seek(kept)
        file.write(b"\n%s%s bytes are left out here]\n" % (_START, f"{missing:,}".encode()))
        file.write(tail)
        file.truncate()
    return missing


def left_out(data: bytes | mmap) -> int:
    """Return how many bytes `shorten` left out of an output, 0 if it is whole."""
    if data.find(_START) < 0:  # by far the most: a hundred times as fast as the expression
        return 0
    return sum(int(found[1].replace(b",", b"")) for found in _LINE.finditer(data))


def left_out_of(log: Path) -> int:
    """Return the same of a file; raises OSError."""
    with log.open("rb") as file:
        if not os.fstat(file.fileno()).st_size:
            return 0
        with mmap(file.fileno(), 0, access=ACCESS_READ) as data:
            return left_out(data)
