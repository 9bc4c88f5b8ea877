"""What tools on a node print: versions, queues, memory modules; libraries of the program.

tools_facts(archive) returns {"ucx.version": "1.16.0", "memory.slots": 16, ...}.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from paribus.probes.archive import Archive, Unknown
from paribus.probes.values import fields, one_or_list, scalar

_VERSION = re.compile(r"[0-9]+(?:\.[0-9]+)+[0-9A-Za-z.+-]*")


def tools_facts(archive: Archive) -> dict[str, Any]:
    """Return versions and queueing disciplines, how Open MPI was built, and memory modules.

    The latter need root; how Open MPI was built is only asked for in a deeper reading.
    """
    return {
        "mpi.command": _first_line(archive.tool("mpirun")),
        "ucx.version": _version(archive.tool("ucx_info")),
        "libfabric.version": _version(archive.tool("fi_info")),
        "net.qdiscs": _qdiscs(archive.tool("qdisc")),
        **_ompi_info(archive.tool("ompi_info")),
        **_memory_modules(archive.tool("dmidecode")),
    }


def _first_line(text: str | Unknown) -> Any:
    return text if isinstance(text, Unknown) else scalar(text.split("\n")[0])


def _version(text: str | Unknown) -> str | Unknown:
    if isinstance(text, Unknown):
        return text
    found = _VERSION.search(text)
    return found[0] if found else Unknown.UNREADABLE


def _qdiscs(text: str | Unknown) -> Any:
    """Return the queueing disciplines with their parameters: ["2 x fq_codel limit 10240p"].

    Lines are "qdisc fq_codel 0: dev eth0 root refcnt 2 limit 10240p"; handles and devices are left
    out.
    """
    if isinstance(text, Unknown):
        return text
    rows = []
    for line in text.split("\n"):
        words = line.split()
        if words[:1] == ["qdisc"] and len(words) > 4:
            rest = words[5:] if words[3] == "dev" else words[3:]
            kept, skip = [words[1]], False
            for word in rest:
                if skip or word in ("root", "refcnt", "parent", "offloaded", "dev"):
                    skip = not skip and word in ("refcnt", "parent", "dev")
                    continue
                kept.append(word)
            rows.append(" ".join(kept))
    counts = Counter(rows)
    return [f"{count} x {row}" if count > 1 else row for row, count in sorted(counts.items())]


def _ompi_info(text: str | Unknown) -> dict[str, Any]:
    """Return how Open MPI was built, from `ompi_info --parsable -c`."""
    if isinstance(text, Unknown):
        return {}
    wanted = {
        "compiler:c:command": "mpi.build.compiler",
        "compiler:c:version": "mpi.build.compiler_version",
        "option:cflags": "mpi.build.flags",
        "option:threads": "mpi.build.threads",
        "build:cflags": "mpi.build.flags",
    }
    rows = [line.rpartition(":") for line in text.split("\n")]
    return {wanted[name]: scalar(value) for name, _, value in rows if name in wanted}


def _memory_modules(text: str | Unknown) -> dict[str, Any]:
    """Return what `dmidecode -t memory` prints: slots, modules by kind, and error correction.

    A kind is "Size Type Speed Configured Rank".
    """
    if isinstance(text, Unknown):
        return {"memory.slots": text}
    slots = [dict(fields(part)) for part in text.split("\n\n") if "Memory Device\n" in part]
    filled = [slot for slot in slots if slot.get("Size", "No").split(" ")[0].isdecimal()]
    if not slots:
        return {"memory.slots": Unknown.ABSENT}
    kinds = Counter(
        " ".join(
            slot.get(name, "?").replace("Unknown", "?")
            for name in ("Size", "Type", "Speed", "Configured Memory Speed", "Rank")
        )
        for slot in filled
    )
    return {
        "memory.slots": len(slots),
        "memory.slots_filled": len(filled),
        "memory.slot_kinds": [f"{count} x {kind}" for kind, count in sorted(kinds.items())],
        "memory.slot_places": sorted(
            f"{slot.get('Bank Locator', '?')} {slot.get('Locator', '?')}" for slot in filled
        ),
        "memory.slot_ecc": one_or_list(
            value.replace("Unknown", "?")
            for key, value in fields(text)
            if key == "Error Correction Type"
        ),
    }


_SONAME = re.compile(r"(.+?\.so)(?:\.[0-9.]+)?$")


def libraries_facts(archive: Archive) -> dict[str, Any]:
    """Return build-id and file of each library under lib.NAME, and the program's own build-id.

    NAME is without the version: lib.libblas.so.build_id. The name of the file behind a symbolic
    link shows which BLAS was chosen. A file without a build-id has a `digest`: its size and a
    checksum of its ends (cksum of POSIX). {} where no program was named.
    """
    paths = archive.lists.get("libraries")
    if not paths:
        return {}
    files, ids = archive.lists.get("real", ()), archive.lists.get("build_ids", ())
    complete = len(files) == len(ids) == len(paths)
    facts: dict[str, Any] = {}
    for index, path in enumerate(paths):
        key = _key(path, index)
        note = ids[index] if complete else ""
        facts[f"{key}.build_id"] = _build_id(note) if note else Unknown.UNREADABLE
        if index:
            file = files[index].rpartition("/")[2] if complete else Unknown.UNREADABLE
            facts[f"{key}.file"] = file
    for line in archive.lists.get("digests", ()):
        path, _, digest = line.rpartition(" ")
        if path in paths:
            facts[f"{_key(path, paths.index(path))}.digest"] = digest or Unknown.UNREADABLE
    facts |= _nccl(facts) | _compiler(archive)
    resolved = archive.tool("ldd")
    if isinstance(resolved, str):
        missing = [line.split()[0] for line in resolved.split("\n") if "not found" in line]
        facts["program.missing"] = sorted(missing)
    return facts


def _key(path: str, index: int) -> str:
    """Return "program" for index 0, "lib.libblas.so" for any other path to libblas.so.3."""
    name = path.rpartition("/")[2]
    match = _SONAME.match(name)
    return f"lib.{match[1] if match else name}" if index else "program"


def _nccl(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the version of NCCL, which NVIDIA writes into the name of the file."""
    for name in ("nccl", "rccl"):
        version = str(facts.get(f"lib.lib{name}.so.file", "")).partition(".so.")[2]
        if version:
            return {"nccl.version": version}
    return {}


def _compiler(archive: Archive) -> dict[str, Any]:
    """Return the compilers that the program's file states, and the flags where it has them."""
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
