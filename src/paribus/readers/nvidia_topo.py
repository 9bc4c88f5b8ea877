"""`nvidia-smi topo -m`: which link joins each pair of GPUs and network adapters.

Nothing is timed, so it is no benchmark and not in known.py: it gives facts on a machine, such as
`gpu.topology.GPU0.GPU1` = NV12, by which the audit compares the PCIe and NVLink topology of arms.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

from paribus.core import Scalar
from paribus.readers.text import line_of, plain, refuse

_HEADING = re.compile(r"^[ \t]*(GPU0(?:[ \t]+\S+)*?)[ \t]+CPU Affinity\b.*$", re.M)
_DEVICE = re.compile(r"GPU\d+|NIC\d+|mlx\d_\d+|\w+_\d+")
_LINK = re.compile(r"NV\d+|PIX|PXB|PHB|NODE|SYS|PSB|SOC")
_NUMA = "NUMA Affinity"
_NIC = re.compile(r"^[ \t]+(NIC\d+):[ \t]+(\S+)[ \t]*$", re.M)


def recognise(text: str) -> bool:
    """Return whether `text` holds such a matrix."""
    return _HEADING.search(plain(text)) is not None


@dataclass(frozen=True, slots=True)
class Matrix:
    """The devices, the link of each pair, and the rest of each row, from the CPU affinity on.

    `numa` is the NUMA node of each device whose row says it: the first of several, for the others
    have memory alone. Adapters called NIC0 and so on have their names by the NIC legend.
    """

    devices: tuple[str, ...]
    links: Mapping[tuple[str, str], str]
    rest: Mapping[str, tuple[str, ...]]
    numa: Mapping[str, int]


def read(text: str) -> dict[str, Scalar]:
    """Return facts: `gpu.topology.A.B` to the link between A and B, and `gpu.topology.gpus`.

    Raises ParseError as `matrix` does.
    """
    found = matrix(text)
    gpus = sum(device.startswith("GPU") for device in found.devices)
    facts: dict[str, Scalar] = {"gpu.topology.gpus": gpus}
    return facts | {f"gpu.topology.{a}.{b}": link for (a, b), link in found.links.items()}


def matrix(text: str) -> Matrix:
    """Return the matrix in `text`.

    Raises ParseError where it is not whole, contradicts itself, or is there twice.
    """
    text = plain(text)
    headings = list(_HEADING.finditer(text))
    if len(headings) != 1:
        refuse(f"the heading 'GPU0 ... CPU Affinity' is there {len(headings)} times, not once")
    at = headings[0].end() + 1
    devices = headings[0][1].split()
    first = line_of(text, at)
    if not all(_DEVICE.fullmatch(device) for device in devices):
        refuse("the heading names something that is neither GPU nor adapter", first - 1)
    names = dict(_NIC.findall(text))
    named = [names.get(device, device) for device in devices]
    rows: list[list[str]] = []
    rest = {}
    for number, line in enumerate(text[at:].split("\n")[: len(devices)], first):
        words = line.split()
        if words[:1] != [devices[len(rows)]]:
            refuse(f"expected the row of {devices[len(rows)]}, got {line.strip()[:60]!r}", number)
        cells = words[1 : 1 + len(devices)]
        for column, cell in enumerate(cells):
            if cell != "X" if column == len(rows) else not _LINK.fullmatch(cell):
                refuse(f"{cell!r} is no link", number)
        if len(cells) != len(devices):
            refuse(f"{len(cells)} links in a row of {len(devices)}", number)
        rest[named[len(rows)]] = tuple(words[1 + len(devices) :])
        rows.append(cells)
    if len(rows) != len(devices):
        refuse(f"{len(rows)} rows of {len(devices)} devices", first)
    links = {}
    for one, other in combinations(range(len(devices)), 2):
        if rows[one][other] != rows[other][one]:
            reported = f"{devices[one]} and {devices[other]} have two links in the table"
            refuse(reported, first + one)
        links[named[one], named[other]] = rows[one][other]
    numa = _numa(rest) if _NUMA in headings[0][0] else {}
    return Matrix(tuple(named), links, rest, numa)


def _numa(rest: Mapping[str, tuple[str, ...]]) -> dict[str, int]:
    """Return the NUMA node of each device whose row has CPU and NUMA affinity.

    >>> _numa({"GPU0": ("0-71", "0,2-17", "2"), "GPU1": ("0-71", "N/A", "N/A"), "NIC0": ()})
    {'GPU0': 0}
    """
    first = {
        device: re.match(r"\d{1,6}", cells[1]) for device, cells in rest.items() if len(cells) > 1
    }
    return {device: int(found[0]) for device, found in first.items() if found}
