"""The tree from NCCL's and RCCL's XML (NCCL_TOPO_DUMP_FILE), and such a file from a tree.

Attributes of our own, which NCCL ignores, hold what its format lacks: `package` of a cpu, and
`host_bridge` and `root_port` of a device.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from xml.sax.saxutils import quoteattr

from paribus.core import ParseError, UserError
from paribus.topology.fold import Raw, kind_of, of_addresses, switch
from paribus.topology.sysfs import speed_of, width_of
from paribus.topology.tree import (
    NVSWITCH,
    Link,
    Node,
    Peer,
    PeerKind,
    Socket,
    Tree,
    by_socket,
    finished,
)
from paribus.topology.xml import Element, parse

_PEERS: tuple[PeerKind, ...] = ("nvlink", "xgmi", "c2c")
_SPEEDS = (2.5, 5.0, 8.0, 16.0, 32.0, 64.0)
_UNKNOWN = "-1"
"""The number of a NUMA node, or a package, that is not known."""

_SWITCH, _PACKAGE = "0x068000", ("0x068001", "0x060000")
"""PCI classes of the ends of links: NVSwitch; the bridge of a POWER processor, and a processor."""


def recognise(text: str) -> bool:
    """Return whether `text` is NCCL's XML."""
    return "<system" in text[:4096] and "<cpu" in text


def read(text: str) -> Tree:
    """Return the tree; raises ParseError, with the line, for any other text."""
    top = parse(text)
    if top.tag != "system":
        raise ParseError(f"expected <system>, got <{top.tag[:40]}>", line=top.line)
    cpus = top.all("cpu")
    if not cpus:
        raise ParseError("no <cpu>", line=top.line)
    bridges: list[Node] = []
    owners: dict[int, int] = {}
    seen: set[int] = set()
    # With one or two NUMA nodes, and no packages, these are taken for sockets.
    guessed = len(cpus) <= 2
    for cpu in cpus:
        numa = _known(cpu, "numaid")
        package = _known(cpu, "package") if cpu.get("package") else numa
        if numa in seen:
            raise ParseError(f"the NUMA node {numa} is there twice", line=cpu.line)
        if numa is not None:
            seen.add(numa)
        if numa is not None and package is not None:
            owners[numa] = package
        bridges += _host_bridges(cpu, numa)
    for gpu in (gpu for element in (top, *cpus) for gpu in element.all("gpu")):
        raise ParseError("a GPU without a <pci> around it", line=gpu.line)
    nodes = [node for bridge in bridges for node in bridge.walk()]
    known = all(cpu.get("package") for cpu in cpus)
    tree = Tree("nccl", by_socket(bridges, owners), tuple(_peers(top, nodes)))
    lacks = () if known else ("packages", "host-bridges") if not guessed else ("host-bridges",)
    return finished(replace(tree, lacks=lacks, virtual=of_addresses(nodes)))


def _known(cpu: Element, name: str) -> int | None:
    """Return a number of a <cpu>, None for that of an unknown NUMA node or package."""
    return None if cpu.get(name) == _UNKNOWN else cpu.number(name)


def _host_bridges(cpu: Element, numa: int | None) -> list[Node]:
    """Return the host bridges of a <cpu>, with the address "" where the file has none."""
    ports: dict[tuple[str, str], list[tuple[Element, Node]]] = {}
    for pci in cpu.all("pci"):
        port = pci.get("root_port") or pci.get("busid").rpartition(".")[0]
        for node in _nodes(pci):
            ports.setdefault((pci.get("host_bridge"), port), []).append((pci, node))
    below: dict[str, list[Node]] = {}
    for (host, _), inner in ports.items():
        element = inner[0][0]
        children = tuple(node for _, node in inner)
        root = Node("root-port", element.get("root_port"), children=children)
        below.setdefault(host, []).append(root)
    return [
        Node("host-bridge", host, numa=numa, children=tuple(roots)) for host, roots in below.items()
    ]


def _nodes(pci: Element) -> list[Node]:
    """Return the switch or device of a <pci>, [] for anything else."""
    address = pci.get("busid")
    if not address:
        raise ParseError("<pci> without a busid", line=pci.line)
    code = pci.get("class").removeprefix("0x")[:4]
    parts = [pci.get(name).removeprefix("0x") for name in ("vendor", "device")]
    model = ":".join(parts) if all(parts) else ""
    link = Link(speed_of(pci.get("link_speed")), width_of(pci.get("link_width")))
    raw = Raw(address, code, model, link=link)
    if code == "0604":
        inner = tuple(node for child in pci.all("pci") for node in _nodes(child))
        return [switch(raw, inner)] if inner else []
    gpus, nets = pci.all("gpu"), [net for nic in pci.all("nic") for net in nic.all("net")]
    kind = "gpu" if gpus else "nic" if nets else kind_of(code, model)
    if kind is None:
        return []
    name = f"GPU{gpus[0].number('dev')}" if gpus else nets[0].get("name") if nets else ""
    return [Node(kind, address, name, model, link=link)]


def _peers(top: Element, nodes: list[Node]) -> Iterator[Peer]:
    """Yield the links beside PCIe, each once, without those to a GPU that the file lacks.

    A process that sees only some GPUs writes such files; NCCL leaves these links out, too.
    """
    found: dict[tuple[str, str, PeerKind], int] = {}
    rates: dict[tuple[str, str, PeerKind], float] = {}
    gpus = {node.address for node in nodes if node.kind == "gpu"}
    pending = [(cpu, cpu) for cpu in top.all("cpu")]
    while pending:
        element, cpu = pending.pop()
        pending += [(child, cpu) for child in element.all("pci")]
        for gpu in element.all("gpu"):
            for kind in _PEERS:
                for link in gpu.all(kind):
                    one, other = element.get("busid"), link.get("target")
                    if one == other:
                        raise ParseError(f"a link leads from {one} to itself", line=link.line)
                    if link.get("tclass") == _SWITCH:
                        other = NVSWITCH
                    elif kind == "c2c" or link.get("tclass") in _PACKAGE:
                        other = f"cpu{cpu.get('package') or cpu.get('numaid')}"
                    elif other not in gpus:
                        continue
                    if other in gpus and one > other:
                        one, other = other, one
                    count = link.number("count")
                    switched = other == NVSWITCH  # which the file lists port by port
                    found[one, other, kind] = count + found.get((one, other, kind), 0) * switched
                    if link.get("bw"):  # MB/s of each, which C2C states
                        rates[one, other, kind] = link.number("bw") * count / 1000
    return (Peer(*ends, count, rates.get(ends)) for ends, count in found.items())


# --- and back ----------------------------------------------------------------------------------


def to_nccl(tree: Tree) -> str:
    """Return `tree` as XML for NCCL_TOPO_FILE: GPUs, adapters and what joins them.

    Raises UserError where a GPU has no address, by which NCCL would know it.
    """
    if any(not gpu.address for gpu in tree.gpus):
        raise UserError(
            "a matrix has no addresses of GPUs, which NCCL needs",
            fix="take the tree from /sys or from hwloc's XML",
        )
    lines = ['<system version="1">']
    used = [numa for socket in tree.sockets for numa in _numas(socket)]
    for socket in tree.sockets:
        package = _UNKNOWN if socket.package is None else str(socket.package)
        numas: list[int | None] = [*sorted(_numas(socket))]
        if not numas and socket.package is not None:
            # Any number that no NUMA node has stands for that of a package without one.
            used.append(max(used, default=-1) + 1)
            numas = [used[-1]]
        first, *_ = numas = numas or [None]
        for numa in numas:
            number = _UNKNOWN if numa is None else numa
            lines.append(f'  <cpu numaid="{number}" package="{package}">')
            for bridge in socket.bridges:
                if numa == (first if bridge.numa is None else bridge.numa):
                    lines += [x for port in bridge.children for x in _exported(tree, port, bridge)]
            lines.append("  </cpu>")
    return "\n".join([*lines, "</system>"]) + "\n"


def _numas(socket: Socket) -> set[int]:
    """Return the NUMA nodes of a socket, as far as they are known."""
    return {bridge.numa for bridge in socket.bridges if bridge.numa is not None} | {*socket.numa}


def _exported(tree: Tree, port: Node, bridge: Node) -> list[str]:
    extra = {"host_bridge": bridge.address}
    if port.kind != "root-port":
        return _lines(tree, port, extra, 2)
    extra["root_port"] = port.address
    return [line for node in port.children for line in _lines(tree, node, extra, 2)]


_CODES = {"switch": "0x060400", "card-bridge": "0x060400", "gpu": "0x030200", "nic": "0x020000"}


def _lines(tree: Tree, node: Node, extra: dict[str, str], depth: int) -> list[str]:
    """Return the lines of a node and all below it; NVMe and NVSwitches have none."""
    if node.kind not in _CODES:
        return []
    vendor, _, device = node.model.partition(":")
    speed, width = _speed_and_width(node.link)
    attributes = {"busid": node.address, "class": _CODES[node.kind]}
    attributes |= {"vendor": f"0x{vendor}", "device": f"0x{device}"} if vendor else {}
    attributes |= {"link_speed": speed, "link_width": width}
    attributes |= {name: value for name, value in extra.items() if value}
    inner = [line for child in node.children for line in _lines(tree, child, {}, depth + 1)]
    if node.kind == "gpu":
        dev = node.name.removeprefix("GPU")
        links = [_link(peer, node.id) for peer in tree.peers if node.id in (peer.a, peer.b)]
        inner = _nested("gpu", {"dev": dev, "rank": dev, "gdr": "1"}, links, depth + 1)
    elif node.kind == "nic":
        inner = _nested("nic", {}, [f"<net name={quoteattr(node.name)}/>"], depth + 1)
    return _nested("pci", attributes, inner, depth)


def _nested(tag: str, attributes: dict[str, str], inner: list[str], depth: int) -> list[str]:
    space = "  " * depth
    written = "".join(f" {name}={quoteattr(value)}" for name, value in attributes.items())
    if not inner:
        return [f"{space}<{tag}{written}/>"]
    deeper = [line if line.startswith(" ") else f"{space}  {line}" for line in inner]
    return [f"{space}<{tag}{written}>", *deeper, f"{space}</{tag}>"]


def _link(peer: Peer, ident: str) -> str:
    """Return the element of a link between a GPU, `ident`, and its peer."""
    other = peer.b if peer.a == ident else peer.a
    target, code = other, "0x030200"
    if other == NVSWITCH:
        target, code = "ffff:ffff:ff", _SWITCH
    elif other.startswith("cpu"):
        target, code = "ffff:ffff:ff", _PACKAGE[0]
    if peer.kind == "c2c":
        rate = f' bw="{round(1000 * peer.gbs / peer.count)}"' if peer.gbs else ""
        return f'<c2c count="{peer.count}"{rate}/>'
    return f'<{peer.kind} target="{target}" count="{peer.count}" tclass="{code}"/>'


def _speed_and_width(link: Link) -> tuple[str, str]:
    """Return speed and width as NCCL reads them, for a mere rate those of the widest such link."""
    if link.speed and link.width:
        return f"{link.speed} GT/s PCIe", str(link.width)
    for width in (16, 8, 4, 2, 1):
        for speed in _SPEEDS:
            if link.rate and abs((Link(speed, width).gbs or 0) / link.rate - 1) < 0.01:
                return f"{speed} GT/s PCIe", str(width)
    return "", "0"
