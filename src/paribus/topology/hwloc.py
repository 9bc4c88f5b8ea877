"""The tree from hwloc's XML, versions 2 and 3: `lstopo --of xml --whole-io`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from paribus.core import ParseError
from paribus.topology.fold import Raw, host_bridge, of_product
from paribus.topology.tree import NVSWITCH, Link, Node, Peer, PeerKind, Tree, by_socket, finished
from paribus.topology.xml import Element, parse

_BUSES = re.compile(r"([0-9a-f]{4,8}):\[([0-9a-f]{2})-[0-9a-f]{2}\]")  # 0000:[00-3f]
_TYPE = re.compile(r"([0-9a-f]{4}) \[([0-9a-f]{4}):([0-9a-f]{4})\]")  # 0302 [10de:20b0]
_KEYS = ("NVIDIAUUID", "AMDUUID", "NodeGUID", "SerialNumber")
_LINKS: dict[str, PeerKind] = {"NVLinkBandwidth": "nvlink", "XGMIBandwidth": "xgmi"}
_MOST_OBJECTS = 1024
"""Objects of a matrix of links, whose memory grows with the square."""


@dataclass(slots=True)
class _Found:
    """What a walk over the objects collects.

    `owners`: the package of each NUMA node; `placed`: that of host bridges, by address. `ends`: the
    device of each object that a link may lead to, by "TYPE:gp_index".
    """

    bridges: list[Node] = field(default_factory=list)
    owners: dict[int, int] = field(default_factory=dict)
    placed: dict[str, int] = field(default_factory=dict)
    packages: list[int] = field(default_factory=list)
    ends: dict[str, str] = field(default_factory=dict)


def recognise(text: str) -> bool:
    """Return whether `text` is hwloc's XML."""
    return "<topology" in text[:4096] and "<object" in text


def read(text: str) -> Tree:
    """Return the tree; raises ParseError, with the line, for a text that is not whole."""
    top = parse(text)
    if top.tag != "topology" or not top.all("object"):
        raise ParseError("no <topology> with objects in it", line=top.line)
    if top.get("version")[:1] not in ("2", "3"):
        version = top.get("version")[:8]
        raise ParseError(
            f"version {version or '1.x'!s} of hwloc's XML is neither 2 nor 3: export it again with"
            " hwloc 2 or newer (`lstopo --of xml`)"
        )
    found = _Found()
    machine = top.all("object")[0]
    _walk(machine, None, found)
    infos = _infos(machine) | _infos(top)
    kept = [bridge for bridge in found.bridges if bridge.children]
    return finished(
        Tree(
            "hwloc",
            by_socket(kept, found.owners, found.packages, found.placed),
            tuple(_peers(top, found.ends)),
            virtual=of_product(infos.get("DMISysVendor", ""), infos.get("DMIProductName", "")),
            product=infos.get("DMIProductName", "") or infos.get("PlatformModel", ""),
        )
    )


def _walk(element: Element, package: int | None, found: _Found) -> None:
    """Add the sockets, NUMA nodes and host bridges in an object that is no device to `found`."""
    kind = element.get("type")
    if kind == "Package":
        package = element.number("os_index")
        found.packages.append(package)
        found.ends[f"Package:{element.get('gp_index')}"] = f"cpu{package}"
    if kind == "NUMANode" and package is not None:
        found.owners[element.number("os_index")] = package
    nodes = _bits(element.get("nodeset"))
    for inner in element.all("object"):
        if inner.get("type") == "Bridge" and inner.get("bridge_type").startswith("0-"):
            buses = _BUSES.match(inner.get("bridge_pci"))
            if buses is None:
                raise ParseError("a host bridge without bridge_pci", line=inner.line)
            name = f"pci{buses[1]}:{buses[2]}"
            below = [_raw(device, found) for device in inner.all("object")]
            numa = nodes[0] if len(nodes) == 1 else None
            found.bridges.append(host_bridge(name, numa, below))
            if package is not None:
                found.placed[name] = package
        elif inner.get("type") in ("Bridge", "PCIDev"):
            raise ParseError(
                f"the device {inner.get('pci_busid')[:16]} hangs below no host bridge",
                line=inner.line,
                fix="save the tree with its bridges: lstopo --of xml --whole-io",
            )
        else:
            _walk(inner, package, found)


def _raw(element: Element, found: _Found) -> Raw:
    """Return a bridge or device from its element; raises ParseError for another one."""
    kind = _TYPE.match(element.get("pci_type"))
    address = element.get("pci_busid")
    if element.get("type") not in ("Bridge", "PCIDev") or kind is None or not address:
        raise ParseError("expected a bridge or a PCI device with its address", line=element.line)
    code, model = kind[1], f"{kind[2]}:{kind[3]}"
    if element.get("subtype") == "NVSwitch":
        code, model = "0680", "10de:" + kind[3]
        found.ends[f"PCIDev:{element.get('gp_index')}"] = NVSWITCH
    raw = Raw(address, code, model, link=Link(rate=_rate(element)))
    for inner in element.all("object"):
        if inner.get("type") == "OSDev":
            infos = _infos(inner)
            raw.key = raw.key or next((infos[key] for key in _KEYS if key in infos), "")
            if "NodeGUID" in infos or ("Address" in infos and not raw.name):
                raw.name = inner.get("name")
            found.ends[f"OSDev:{inner.get('gp_index')}"] = address
        elif inner.get("type") in ("Bridge", "PCIDev"):
            raw.below.append(_raw(inner, found))
    return raw


def _rate(element: Element) -> float | None:
    """Return the GB/s of a link in hwloc's XML; None for 0, by which it means "not known"."""
    try:
        rate = float(element.get("pci_link_speed") or 0)
    except ValueError:
        raise ParseError("pci_link_speed is no number", line=element.line) from None
    return rate if 0 < rate < 1e4 else None


def _peers(top: Element, ends: dict[str, str]) -> Iterator[Peer]:
    """Yield the links in hwloc's matrices of bandwidths (MB/s); a GPU's to NVSwitches are one."""
    for matrix in top.all("distances2hetero"):
        kind = _LINKS.get(matrix.get("name"))
        if kind is None:
            continue
        objects = [end for part in matrix.all("indexes") for end in part.text.split()]
        words = [word for part in matrix.all("u64values") for word in part.text.split()]
        whole = len(objects) <= _MOST_OBJECTS and len(words) == len(objects) ** 2
        if not whole or not all(word.isdecimal() and len(word) < 12 for word in words):
            raise ParseError("the matrix of links is not whole", line=matrix.line)
        places = [ends.get(end, "") for end in objects]
        rates: dict[tuple[str, str], int] = {}
        for at, word in enumerate(words):
            one, other = places[at // len(places)], places[at % len(places)]
            device = one not in (NVSWITCH, "") and not one.startswith("cpu")
            late = other not in (NVSWITCH, "") and not other.startswith("cpu") and one > other
            if device and other and one != other and not late and int(word):
                rates[one, other] = rates.get((one, other), 0) + int(word)
        for (one, other), rate in rates.items():
            yield Peer(one, other, kind, _count(rate), rate / 1000)


def _count(rate: int) -> int:
    """Return how many links have `rate` MB/s together: 20 GB/s each of NVLink 1, 25 of later ones.

    Only P100 has NVLink 1, with four links (NVIDIA Tesla P100 white paper, 2016).
    """
    each = 20_000 if rate % 25_000 and not rate % 20_000 and rate <= 80_000 else 25_000
    return max(1, round(rate / each))


def _infos(element: Element) -> dict[str, str]:
    return {info.get("name"): info.get("value") for info in element.all("info")}


def _bits(text: str) -> list[int]:
    """Return the numbers in a set such as 0x00000003, with commas between words of 32 bits."""
    words = text.split(",")
    if len(words) > 64 or not all(re.fullmatch("(0x)?[0-9a-f]{0,8}", word) for word in words):
        return []
    value = 0
    for word in words:
        value = value << 32 | int(word.removeprefix("0x") or "0", 16)
    return [bit for bit in range(value.bit_length()) if value >> bit & 1]
