"""What the tools on a node say: versions of MPI, UCX and libfabric; queues; memory modules."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from paribus.probes.archive import Archive, Unknown
from paribus.probes.values import fields, one_or_list, scalar

_VERSION = re.compile(r"[0-9]+(?:\.[0-9]+)+[0-9A-Za-z.+-]*")


def tools_facts(archive: Archive) -> dict[str, Any]:
    """Return versions, queueing disciplines and, where root or the depth allow, more."""
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
    """Return the queueing disciplines with their parameters, without handles and devices."""
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
    """Return what `dmidecode -t memory` says: modules by type and speed, the slots that they are
    in, and the error correction of the board."""
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
