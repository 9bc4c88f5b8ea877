"""What pocket hosts hide of this machine's files, and what of it is needed there and stays.

Each host has its own /run and /tmp, as machines have, so that what programs and MPI write there
cannot meet. A checkout, an MPI or a study may lie there too.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from paribus.border import cache_directory

HIDDEN = (Path("/run"), Path("/tmp"))
"""Directories that every host has to itself."""


def needed_here() -> list[str]:
    """Return what Paribus, and what its environment names, takes from this machine's files."""
    variables = (os.environ.get(name, "") for name in ("PATH", "LD_LIBRARY_PATH"))
    found = [sys.prefix, sys.base_prefix, str(Path.cwd()), str(cache_directory())]
    return [*found, os.environ.get("HOME", ""), *(p for text in variables for p in text.split(":"))]


def temporary() -> Path:
    """Return the directory for temporary files of a host, which it has to itself."""
    own = Path(tempfile.gettempdir())
    return own if any(own.is_relative_to(place) for place in HIDDEN) else HIDDEN[1]


def kept(paths: Iterable[str]) -> list[Path]:
    """Return the entries of the hidden directories in which `paths` lie, those that are there.

    An entry is shown whole, for programs need what lies beside them. One that holds the directory
    for temporary files is not: then it is an entry of that one, or of a directory on the way to it.
    """
    own, found = temporary(), dict[Path, None]()
    for text in paths:
        if not text.startswith("/") or "\n" in text:
            continue
        for path in (Path(os.path.normpath(text)), Path(text).resolve()):
            entries = [
                one
                for one in (path, *path.parents)
                if any(place in one.parents for place in HIDDEN) and not own.is_relative_to(one)
            ]
            if entries and entries[-1].exists():
                found[entries[-1]] = None
    return list(found)
