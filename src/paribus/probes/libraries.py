"""The libraries that the loader gives the program in this environment, told apart by build-id."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from paribus.probes.archive import Archive, Unknown

_SONAME = re.compile(r"(.+?\.so)(?:\.[0-9.]+)?$")


def libraries_facts(archive: Archive) -> dict[str, Any]:
    """Return build-id and file of every library under lib.NAME, and the program's own build-id.

    NAME is without the version: lib.libblas.so.build_id. The file name behind a symbolic link says
    which BLAS was chosen. A file without a build-id has a `digest`: its size and a checksum of its
    ends (cksum of POSIX). No keys where no program was named.
    """
    paths = archive.lists.get("libraries")
    if not paths:
        return {}
    files, ids = archive.lists.get("real", ()), archive.lists.get("build_ids", ())
    whole = len(files) == len(ids) == len(paths)
    facts: dict[str, Any] = {}
    for at, path in enumerate(paths):
        key = _key(path, at)
        note = ids[at] if whole else ""
        facts[f"{key}.build_id"] = _build_id(note) if note else Unknown.UNREADABLE
        if at:
            facts[f"{key}.file"] = files[at].rpartition("/")[2] if whole else Unknown.UNREADABLE
    for line in archive.lists.get("digests", ()):
        path, _, sum_of_it = line.rpartition(" ")
        if path in paths:
            facts[f"{_key(path, paths.index(path))}.digest"] = sum_of_it or Unknown.UNREADABLE
    facts |= _nccl(facts) | _compiler(archive)
    missing = archive.tool("ldd")
    if isinstance(missing, str):
        lost = [line.split()[0] for line in missing.split("\n") if "not found" in line]
        facts["program.missing"] = sorted(lost)
    return facts


def _key(path: str, at: int) -> str:
    """Return lib.NAME without the version, "program" for the first of the paths."""
    name = path.rpartition("/")[2]
    match = _SONAME.match(name)
    return f"lib.{match[1] if match else name}" if at else "program"


def _nccl(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the version of NCCL, which NVIDIA writes into the name of the file."""
    for name in ("nccl", "rccl"):
        version = str(facts.get(f"lib.lib{name}.so.file", "")).partition(".so.")[2]
        if version:
            return {"nccl.version": version}
    return {}


def _compiler(archive: Archive) -> dict[str, Any]:
    """Return which compilers wrote the program, and the flags of those that left them in it."""
    if "compiler" not in archive.lists:
        return {}
    lines = [" ".join(line.split()) for line in archive.lists["compiler"] if line.strip()]
    flags = [line for line in lines if line.startswith("GNU ")]
    facts: dict[str, Any] = {"program.compiler": [line for line in lines if line not in flags]}
    return facts | ({"program.flags": flags} if flags else {})


def _build_id(note: str) -> str | Unknown:
    """Return the id of an ELF note in hex: name size 4, size, type 3, "GNU", then the id."""
    match = re.match(r"04000000([0-9a-f]{2})00000003000000474e5500([0-9a-f]*)", note)
    if not match:
        return Unknown.ABSENT
    length = 2 * int(match[1], 16)
    return match[2][:length] if len(match[2]) >= length > 0 else Unknown.CUT
