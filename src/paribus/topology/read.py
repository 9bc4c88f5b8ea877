"""A tree from a file or folder, whose format is recognised from its text."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import resources
from pathlib import Path

from paribus.border import decoded, is_directory, read_bounded
from paribus.core import ParseError, UserError
from paribus.probes.files import from_tar
from paribus.readers.text import line_of
from paribus.topology import grouped, hwloc, nccl, stored
from paribus.topology.sysfs import from_sysfs, tree_of
from paribus.topology.tree import Tree

PROFILES = ("balance", "common", "cascade")
"""The trees that ship, after study 3's server (docs/topology.md): eight GPUs, x16 Gen3 each."""


def profile(name: str) -> Tree:
    """Return the tree of a profile, one of PROFILES."""
    return nccl.read(resources.files(__package__).joinpath("trees", f"{name}.xml").read_text())


MOST_BYTES = 16 << 20
"""Bytes of the largest file with a tree: hwloc's of a server with 16 GPUs has 43 kB."""

TEXTS: dict[str, tuple[Callable[[str], bool], Callable[[str], Tree]]] = {
    "JSON of paribus topology show": (stored.recognise, stored.read),
    "hwloc XML": (hwloc.recognise, hwloc.read),
    "NCCL XML": (nccl.recognise, nccl.read),
    "nvidia-smi topo -m": (grouped.recognise, grouped.read),
}
"""The formats, each with a function that recognises it and one that reads it."""
_FIX = f"what is read: {', '.join(TEXTS)}, a recording, /"

_TWICE = re.compile(r"two devices have the address (\S+)")


def from_text(text: str) -> Tree:
    """Return the tree in `text`; raises ParseError with the line."""
    for recognise, read in TEXTS.values():
        if recognise(text):
            try:
                return read(text)
            except ParseError as error:
                if (twice := _TWICE.match(error.cause)) and not error.line:
                    first = text.find(f'"{twice[1]}"')
                    error.line = line_of(text, text.find(f'"{twice[1]}"', first + 1))
                raise
    raise ParseError("it holds no tree", fix=_FIX)


def from_path(path: Path) -> Tree:
    """Return the tree in a file, a recording of `paribus record`, or the root of a /sys.

    Raises UserError or ParseError with the file as the place.
    """
    if is_directory(path):
        return from_sysfs(path)
    try:
        data = read_bounded(path, MOST_BYTES, "a tree")
        if data.startswith(b"\x1f\x8b"):
            return tree_of(from_tar(path))
        return from_text(decoded(data))
    except (OSError, ValueError) as error:
        cause = f"cannot be read: {getattr(error, 'strerror', error)}"
        raise UserError(cause, place=str(path), fix=_FIX) from None
    except ParseError as error:
        at = f"{path}, line {error.line}" if error.line else str(path)
        raise ParseError(error.cause, line=error.line, place=at, fix=error.fix) from None
