"""The libraries that the loader gives the program in this environment, told apart by build-id."""

from __future__ import annotations

import re
from typing import Any

from paribus.probes.archive import Archive, Unknown

_SONAME = re.compile(r"(.+?\.so)(?:\.[0-9.]+)?$")


def libraries_facts(archive: Archive) -> dict[str, Any]:
    """Return build-id and file of every library under lib.NAME, and the program's own build-id.

    NAME is without the version: lib.libblas.so.build_id. The file name behind a symbolic link says
    which BLAS was chosen. No keys where no program was named.
    """
    paths = archive.lists.get("libraries")
    if not paths:
        return {}
    files, ids = archive.lists.get("real", ()), archive.lists.get("build_ids", ())
    whole = len(files) == len(ids) == len(paths)
    facts: dict[str, Any] = {}
    for at, path in enumerate(paths):
        name = path.rpartition("/")[2]
        match = _SONAME.match(name)
        key = f"lib.{match[1] if match else name}" if at else "program"
        note = ids[at] if whole else ""
        facts[f"{key}.build_id"] = _build_id(note) if note else Unknown.UNREADABLE
        if at:
            facts[f"{key}.file"] = files[at].rpartition("/")[2] if whole else Unknown.UNREADABLE
    missing = archive.tool("ldd")
    if isinstance(missing, str):
        lost = [line.split()[0] for line in missing.split("\n") if "not found" in line]
        facts["program.missing"] = sorted(lost)
    return facts


def _build_id(note: str) -> str | Unknown:
    """Return the id of an ELF note in hex: name size 4, size, type 3, "GNU", then the id."""
    match = re.match(r"04000000([0-9a-f]{2})00000003000000474e5500([0-9a-f]*)", note)
    if not match:
        return Unknown.ABSENT
    length = 2 * int(match[1], 16)
    return match[2][:length] if len(match[2]) >= length > 0 else Unknown.CUT
