"""The tree from /sys of this machine, of a recorded one, or of a host that facts.sh has read.

A device at /sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0 hangs below the root port 00:01.0 of
the host bridge pci0000:00.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from paribus.core import ParseError, UserError
from paribus.probes import Archive
from paribus.probes.archive import DEVICE_CLASSES, DEVICE_FILES, Unknown
from paribus.probes.pci import addresses, redirects
from paribus.probes.reading import files_of, read_file
from paribus.probes.values import ranges
from paribus.topology.fold import Raw, host_bridge, of_addresses, of_product
from paribus.topology.tree import Link, Node, Tree, by_socket, finished

_PCI = "/sys/bus/pci/devices/"
_DEEPEST = 64
"""The most bridges above a device: cascades of servers have ten."""

_HOST_BRIDGE = re.compile(r"/(pci[0-9a-f]{4,8}:[0-9a-f]{2})/")
_SPEED = re.compile(r"([0-9]{1,3}(?:\.[0-9])?) ?GT/s")
_UUID = re.compile(r"^GPU UUID:[ \t]*(GPU-\S+)", re.M)

_WANTED = re.compile(DEVICE_CLASSES.removesuffix(")") + "|0680)")
"""Classes of devices that are read; 0680, "other bridge", is that of NVSwitches."""

_FILES = (*DEVICE_FILES.split(), "local_cpulist", "unique_id")
_MACHINE = (
    "/sys/devices/system/node/node[0-9]*/cpulist",
    "/sys/devices/system/cpu/cpu[0-9]*/topology/physical_package_id",
    "/sys/class/dmi/id/sys_vendor",
    "/sys/class/dmi/id/product_name",
    "/proc/driver/nvidia/gpus/*/information",
    "/sys/class/infiniband/*/node_guid",
    "/sys/class/nvme/*/serial",
)
_NAMED = ("sys/class/infiniband/*/device", "sys/class/net/*/device", "sys/class/nvme/*/device")
"""Links with the names of devices; the first of a device counts."""


def from_sysfs(root: Path = Path("/")) -> Tree:
    """Return the tree of the files under `root`: of this machine, or of a recorded one.

    Raises UserError where `root` holds no PCI devices, and ParseError where they contradict.
    """
    root = root.resolve()  # links are resolved, and must lead below it
    links: dict[str, str] = {}
    bridges = []
    files = files_of(root, _MACHINE)
    for place in (root / "sys/bus/pci/devices").glob("*"):
        target = place.resolve()
        code = read_file(target / "class")
        if isinstance(code, str) and _WANTED.match(code) and target.is_relative_to(root):
            links[_PCI + place.name] = "/" + str(target.relative_to(root))
            files |= {f"{_PCI}{place.name}/{name}": read_file(target / name) for name in _FILES}
            if code.startswith("0x0604"):
                bridges.append(f"{place.name} {_config(target / 'config')}")
    for pattern in _NAMED:
        for place in root.glob(pattern):
            links["/" + str(place.relative_to(root))] = str(place.resolve())
    cpuinfo = root / "proc/cpuinfo"
    files["/proc/cpuinfo"] = read_file(cpuinfo) if cpuinfo.is_file() else Unknown.ABSENT
    if not any(path.startswith(_PCI) for path in files):
        fix = "name a file, the root of a /sys, a host or a profile"
        raise UserError("no PCI devices", place=str(root / "sys/bus/pci/devices"), fix=fix)
    return tree_of(Archive(files, links=links, lists={"bridges": bridges}))


def _config(path: Path) -> str:
    """Return the extended configuration space in hex, or "denied": only root can read it."""
    try:
        data = path.read_bytes()[0x100:0x1000]
    except OSError:
        return "denied"
    return data.hex() or "denied"


def tree_of(archive: Archive) -> Tree:
    """Return the tree in the files read of a machine; raises ParseError for contradictions."""
    raws: dict[str, Raw] = {}
    tops: dict[str, list[Raw]] = {}
    numa: dict[str, int] = {}
    cpus: dict[str, str] = {}
    names, keys, redirect = _names(archive), _keys(archive), redirects(archive)
    for address in archive.names(_PCI + "*/class"):
        path = archive.links.get(_PCI + address, "")
        host, chain = _HOST_BRIDGE.search(path), addresses(path)
        if host is None or not chain or chain[-1] != address:
            raise ParseError(
                f"the device {address} hangs below no host bridge", place=path or _PCI + address
            )
        if len(chain) > _DEEPEST:
            raise ParseError(f"{len(chain)} bridges above the device {address}")
        upper: Raw | None = None
        for at in chain:
            if at not in raws:
                raw = _raw(archive, at, names)
                raws[at] = replace(raw, key=keys.get(at, ""), redirects=redirect.get(at))
                (tops.setdefault(host[1], []) if upper is None else upper.below).append(raws[at])
            upper = raws[at]
        node = archive.text(f"{_PCI}{address}/numa_node")
        if node.isdecimal():
            numa.setdefault(host[1], int(node[:6]))
        if cpulist := archive.text(f"{_PCI}{address}/local_cpulist"):
            cpus.setdefault(host[1], cpulist)
    bridges = [host_bridge(name, numa.get(name), below) for name, below in tops.items()]
    owners, package_of = _packages(archive)
    placed = {
        name: next(iter(found))
        for name, text in cpus.items()
        if len(found := {package_of[cpu] for cpu in _cpus(text) if cpu in package_of}) == 1
    }
    kept = [bridge for bridge in bridges if bridge.children]
    return finished(
        Tree(
            "sysfs",
            by_socket(kept, owners, package_of.values(), placed),
            virtual=_virtual(archive, kept),
            lacks=("peers",),
            product=archive.text("/sys/class/dmi/id/product_name"),
        )
    )


def _raw(archive: Archive, address: str, names: dict[str, str]) -> Raw:
    """Return a bridge or device from its files."""
    base = f"{_PCI}{address}/"
    model = [archive.text(base + name).removeprefix("0x") for name in ("vendor", "device")]
    code = archive.text(base + "class").removeprefix("0x")[:4]
    link = Link(
        speed_of(archive.text(base + "current_link_speed")),
        width_of(archive.text(base + "current_link_width")),
        speed_of(archive.text(base + "max_link_speed")),
        width_of(archive.text(base + "max_link_width")),
    )
    return Raw(
        address,
        code or "0604",  # a bridge on the path that the recording lacks
        ":".join(model) if all(model) else "",
        names.get(address, "") if not code.startswith("03") else "",
        link=link,
    )


def speed_of(text: str) -> float | None:
    """Return the GT/s in "8 GT/s" or "16.0 GT/s PCIe", None without any."""
    found = _SPEED.match(text)
    return float(found[1]) or None if found else None


def width_of(text: str) -> int | None:
    """Return the number of lanes in `text`, None for 0, or 255 (all bits set), by which devices
    mean "unknown"."""
    width = int(text[:4]) if text[:4].isdecimal() else 0
    return width if 0 < width <= 32 else None


def _names(archive: Archive) -> dict[str, str]:
    """Return the names of network adapters and NVMe controllers by their addresses."""
    names: dict[str, str] = {}
    for pattern in _NAMED:
        start, _, rest = ("/" + pattern).partition("*")
        for path, target in archive.links.items():
            if path.startswith(start) and path.endswith(rest):
                for address in addresses(target)[-1:]:
                    names.setdefault(address, path.removeprefix(start).removesuffix(rest))
    return names


def _keys(archive: Archive) -> dict[str, str]:
    """Return the UUIDs, GUIDs and serial numbers of devices by their addresses."""
    keys = {}
    for address in archive.names(f"{_PCI}*/unique_id"):
        keys[address] = archive.text(f"{_PCI}{address}/unique_id")
    for address in archive.names("/proc/driver/nvidia/gpus/*/information"):
        found = _UUID.search(archive.text(f"/proc/driver/nvidia/gpus/{address}/information"))
        if found and "?" not in found[1]:  # the driver has "?" until the GPU was used
            keys[address] = found[1]
    for family, name in (("infiniband", "node_guid"), ("nvme", "serial")):
        for device in archive.names(f"/sys/class/{family}/*/{name}"):
            path = archive.links.get(f"/sys/class/{family}/{device}/device", "")
            for address in addresses(path)[-1:]:
                keys[address] = archive.text(f"/sys/class/{family}/{device}/{name}")
    return keys


def _packages(archive: Archive) -> tuple[dict[int, int], dict[int, int]]:
    """Return the package of each NUMA node that lies in a single one, and of each processor."""
    pattern = "/sys/devices/system/cpu/cpu*/topology/physical_package_id"
    package_of = {
        int(cpu): int(text)
        for cpu in archive.names(pattern)
        if cpu.isdecimal() and (text := archive.text(pattern.replace("*", cpu))).isdecimal()
    }
    owners: dict[int, int] = {}
    for node in archive.names("/sys/devices/system/node/node*/cpulist"):
        cpulist = archive.text(f"/sys/devices/system/node/node{node}/cpulist")
        found = {package_of[cpu] for cpu in _cpus(cpulist) if cpu in package_of}
        if len(found) == 1 and node.isdecimal():
            owners[int(node)] = found.pop()
    return owners, package_of


def _cpus(text: str) -> list[int]:
    spans = ranges(text)
    if isinstance(spans, Unknown):
        return []
    return [cpu for first, last in spans for cpu in range(first, min(last, first + 65_536) + 1)]


def _virtual(archive: Archive, bridges: list[Node]) -> str:
    """Return the sign by which a tree is made up by a hypervisor, "" for none; see Tree."""
    flags = re.search(r"^flags\s*:.*\bhypervisor\b", archive.text("/proc/cpuinfo"), re.M)
    if flags and bridges:
        return "hypervisor"
    dmi = "/sys/class/dmi/id/"
    vendor, product = archive.text(dmi + "sys_vendor"), archive.text(dmi + "product_name")
    nodes = [node for bridge in bridges for node in bridge.walk()]
    return of_product(vendor, product) or of_addresses(nodes)
