"""The three profiles of an 8-GPU server that ship: same devices, only the tree differs."""

from __future__ import annotations

from importlib import resources

from paribus.topology.nccl import read
from paribus.topology.tree import Tree

PROFILES = ("balance", "common", "cascade")
"""Written for Paribus after a server of study 3 (docs/topology.md): eight GPUs, x16 Gen3 each."""


def profile(name: str) -> Tree:
    """Return the tree of a profile, one of PROFILES."""
    return read(resources.files(__package__).joinpath("trees", f"{name}.xml").read_text())
