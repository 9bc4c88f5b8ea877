"""What p2pBandwidthLatencyTest of the CUDA samples prints."""

from __future__ import annotations

import re
from functools import lru_cache

from paribus.core import Case, Reading, Sample
from paribus.readers.heads import Head
from paribus.readers.reader import Reader
from paribus.readers.text import found, line_of, once, refuse
from paribus.tools.readers.matrix import matrix

_TITLE = "[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]"
_DEVICE = re.compile(r"Device: (\d+), (.+), pciBusID: (\w+), pciDeviceID: \w+, pciDomainID:", re.M)
_ACCESS = re.compile(r"Device=(\d+) (CAN|CANNOT) Access Peer Device=(\d+)[ \t]*$", re.M)
_MATRIX = re.compile(r"(.* Matrix \((?:GB/s|us)\))[ \t]*\n")
_KIND = re.compile(
    r"(?:(Unidirectional|Bidirectional) P2P=(Disabled|Enabled) Bandwidth"
    r"(?: \(P2P (Writes|Reads)\))? Matrix \(GB/s\)"
    r"|P2P=(Disabled|Enabled) Latency(?: \(P2P (Writes|Reads)\))? Matrix \(us\))"
)

Kind = tuple[str, str, str]
"""Metric; "one way" or "both ways"; peer access "off", or used by "writes" or "reads"."""


def kinds_of(*, reads: bool) -> tuple[Kind, ...]:
    """Return the kinds of the matrices in an output; `reads`: it was asked for reads as well."""
    access = ("off", "writes", "reads") if reads else ("off", "writes")
    one_way = [("bandwidth", "one way", peer) for peer in access]
    both = [("bandwidth", "both ways", peer) for peer in ("off", "writes")]
    return (*one_way, *both, *(("latency", "one way", peer) for peer in access))


# An output has up to eight matrices, and the next output those of the same pairs.
@lru_cache(maxsize=64)
def pairs_of(kind: Kind, gpus: int) -> tuple[Case | None, ...]:
    """Return the cases of a matrix, row after row; None on its diagonal."""
    _, direction, peer = kind
    return tuple(
        Case.of(direction=direction, peer=peer, source=one, target=other) if one != other else None
        for one in range(gpus)
        for other in range(gpus)
    )


def read(text: str) -> Reading:
    """Return the cells of all matrices but their diagonals, which are copies within a GPU."""
    once(text, _TITLE, "the title")
    devices = [match.groups() for match in found(text, "Device: ", _DEVICE)]
    gpus = len(devices)
    if [number for number, _, _ in devices] != [str(number) for number in range(gpus)]:
        refuse("the list of devices is damaged")
    if gpus < 2:
        refuse(f"{gpus} GPU: there is no pair to measure")
    samples: list[Sample] = []
    seen: list[Kind] = []
    for title in found(text, " Matrix (", _MATRIX):
        if (kind := _kind(title[1])) is None:
            refuse(f"no title of a matrix: {title[1][:80]!r}", line_of(text, title.start()))
        cells, columns, end = matrix(text, title.end(), gpus)
        if kind[0] == "latency" and text.startswith("   CPU", end + 1):
            matrix(text, end + 1, gpus)  # the CPU's time, no figure of ours, but it must be whole
        if columns != gpus or None in cells:
            refuse(f"a matrix that is not {gpus} x {gpus}", line_of(text, title.start()))
        seen.append(kind)
        samples += [
            Sample(kind[0], case, (value or 0.0,))
            for case, value in zip(pairs_of(kind, gpus), cells, strict=True)
            if case is not None
        ]
    reads = ("latency", "one way", "reads") in seen
    if sorted(seen) != sorted(kinds_of(reads=reads)) or text.count(" Matrix (") != len(seen):
        refuse(f"{len(seen)} whole matrices, {len(kinds_of(reads=reads))} were to be printed")
    access = [match.groups() for match in found(text, " Access Peer ", _ACCESS)]
    without = sorted({f"{one}-{to}" for one, word, to in access if word == "CANNOT"})
    facts = {
        "gpu.models": sorted({name for _, name, _ in devices}),
        "gpu.pairs_without_peer_access": without,
    }
    guards: tuple[str, ...] = ()
    if without:
        reported = f"{len(without)} pairs of GPUs have no peer access ({', '.join(without[:4])})"
        guards = (f"{reported}: with peer access on they were measured without it",)
    parameters = {"gpus": gpus, "reads": reads}
    return Reading("p2p_bandwidth", "CUDA samples", parameters, None, tuple(samples), facts, guards)


def _kind(title: str) -> Kind | None:
    """Return the kind of a matrix by its title, None if it is no such title."""
    match = _KIND.fullmatch(title)
    if match is None:
        return None
    way, one, how, other, how_latency = match.groups()
    peer = (how or how_latency or "Writes").lower() if "Enabled" in (one, other) else "off"
    direction = "both ways" if way == "Bidirectional" else "one way"
    return "bandwidth" if way else "latency", direction, peer


READER = Reader(
    "p2p_bandwidth",
    read,
    marks=(_TITLE,),
    heads=(Head(_TITLE),),
    versions="CUDA 9 to 13",
    proof=(
        "title once, devices numbered from 0, all matrices of that many rows and columns, two"
        " decimals in every cell"
    ),
    means=(
        "one mean of 5 copies of 160 MB, GB of 10^9 B; both ways is the sum; diagonals are copies"
        " within a GPU and left out, and so is the CPU's time to ask for a copy; pairs without peer"
        " access fall back to copies through the host (fact gpu.pairs_without_peer_access)"
    ),
)
