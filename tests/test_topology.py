"""The PCIe tree of a server from /sys: its shape, its hash, and what is refused."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations, count
from pathlib import Path

import pytest

from archives import unpack
from paribus.core import ParseError, UserError
from paribus.launch.gathering import read_answer
from paribus.probes import Archive
from paribus.probes.files import from_root
from paribus.topology import grouped, hwloc, nccl, stored
from paribus.topology.printed import drawing
from paribus.topology.read import from_path, from_text
from paribus.topology.shape import ORDER, Shape, canonical_hash, matrix_of, shape_of
from paribus.topology.svg import svg
from paribus.topology.sysfs import from_sysfs, tree_of
from paribus.topology.tree import NVSWITCH, Node, Socket, Tree, finished

TREES = Path(__file__).parent / "fixtures" / "topology"
MATRICES = Path(__file__).parent / "fixtures" / "nvidia_topo"
RECORDED = Path(__file__).parent / "machines" / "hwloc" / "32intel64-2p8co2t+8ve.tar.xz"

# As fixtures/topology/SOURCES.md states each: GPUs, sockets with GPUs, trees, depth; PCIe labels.
SHAPES = {
    "nccl-8gpu-common-intel-mi50.xml": (Shape("Common", 8, 1, 2, 1), {"PXB": 12, "PHB": 16}),
    "smi-8gpu-balance-quda669.txt": (Shape("Balance", 8, 2, 2, 2), {"PIX": 4, "PXB": 8, "SYS": 16}),
    "smi-8xp40-cascade-paddle.txt": (Shape("Cascade", 8, 1, 1, 2), {"PIX": 12, "PXB": 16}),
    "nccl-8gpu-direct-rome-mi50.xml": (Shape("direct", 8, 2, 8, 0), {"PHB": 12, "SYS": 16}),
    "nccl-8gpu-xgmi-mi300x.xml": (Shape("direct", 8, 2, 8, 0), {"PHB": 12, "SYS": 16}),
    "nccl-azure-ndv2-8xv100.xml": (Shape("virtual", 8, 2, 8, 0), {"PHB": 12, "SYS": 16}),
    "nccl-azure-ndv4-8xa100.xml": (Shape("virtual", 8, 4, 4, 1), {"PIX": 4, "SYS": 24}),
    "nccl-azure-ndv5-8xh100.xml": (Shape("virtual", 8, 2, 8, 0), {"PHB": 12, "SYS": 16}),
    "hwloc-dgx2-16xv100-nvswitch.xml": (
        Shape("NVSwitch", 16, 2, 4, 2),
        {"PIX": 8, "PXB": 16, "NODE": 32, "SYS": 64},
    ),
    "hwloc-power8-4xp100-nvlink.xml": (Shape("direct", 4, 2, 4, 0), {"NODE": 2, "SYS": 4}),
    "hwloc-2socket-gpus-wholeio.xml": (
        Shape("direct", 4, 2, 3, 0),
        {"PIX": 1, "PHB": 2, "SYS": 3},
    ),
    "hwloc2-8-vector-engines.xml": (Shape("Common", 8, 1, 2, 1), {"PIX": 12, "NODE": 16}),
    "synthetic-nccl-balance.xml": (Shape("Balance", 8, 2, 2, 1), {"PIX": 12, "SYS": 16}),
    "synthetic-nccl-common.xml": (Shape("Common", 8, 1, 2, 1), {"PIX": 12, "PHB": 16}),
    "synthetic-nccl-cascade.xml": (Shape("Cascade", 8, 1, 1, 2), {"PIX": 12, "PXB": 16}),
}


def counts_of(tree: Tree, *, peers: bool = True) -> dict[str, int]:
    """Return how many pairs of GPUs have which label, the nearest first."""
    gpus = tree.gpus
    labels = matrix_of(tree, gpus, peers=peers)
    counts = Counter(
        labels[a.id, b.id] for number, a in enumerate(gpus) for b in gpus[number + 1 :]
    )
    rank = {label: number for number, label in enumerate(ORDER)}
    return {label: counts[label] for label in sorted(counts, key=lambda x: (rank.get(x, -1), x))}


def write_sysfs(tree: Tree, root: Path) -> None:
    """Write the files of /sys that a kernel would show for `tree`: ports of switches included."""
    links = root / "sys/bus/pci/devices"
    links.mkdir(parents=True)
    free = count()

    def device(folder: Path, address: str, code: str, model: str, numa: int | None) -> Path:
        own = folder / address
        own.mkdir(parents=True)
        vendor, _, number = model.partition(":")
        texts = {"class": f"0x{code}00", "vendor": f"0x{vendor}", "device": f"0x{number}"}
        for name, text in (texts | {"numa_node": str(-1 if numa is None else numa)}).items():
            (own / name).write_text(f"{text}\n")
        (links / address).symlink_to(own)
        return own

    def write(node: Node, folder: Path, numa: int | None) -> None:
        code = {"gpu": "0302", "nic": "0207", "nvme": "0108", "nvswitch": "0680"}.get(node.kind)
        own = device(folder, node.address, code or "0604", node.model, numa)
        for child in node.children:
            below = own
            if node.kind != "root-port":
                number = next(free)
                port = f"aaaa:{number // 32:02x}:{number % 32:02x}.0"
                below = device(own, port, "0604", node.model, numa)
            write(child, below, numa)

    for socket in tree.sockets:
        for numa in socket.numa:
            node = root / f"sys/devices/system/node/node{numa}"
            node.mkdir(parents=True)
            (node / "cpulist").write_text(f"{numa}\n")
            cpu = root / f"sys/devices/system/cpu/cpu{numa}/topology"
            cpu.mkdir(parents=True)
            (cpu / "physical_package_id").write_text(f"{socket.package}\n")
        for bridge in socket.bridges:
            for child in bridge.children:
                write(child, root / "sys/devices" / bridge.address, bridge.numa)


@pytest.mark.parametrize("name", [name for name in SHAPES if name.startswith("hwloc")])
def test_sysfs_and_hwloc_agree_on_the_same_tree(name: str, tmp_path: Path) -> None:
    """/sys as a kernel would show each of hwloc's machines, among them one of 16 GPUs."""
    tree = from_path(TREES / name)
    write_sysfs(tree, tmp_path)
    seen = from_sysfs(tmp_path)
    ids = [gpu.id for gpu in tree.gpus]
    assert [gpu.id for gpu in seen.gpus] == ids
    assert matrix_of(seen, seen.gpus) == matrix_of(tree, tree.gpus, peers=False)
    bare = replace(tree, peers=())
    assert shape_of(seen) == shape_of(bare)
    assert canonical_hash(seen, keys=False) == canonical_hash(bare, keys=False)


def test_every_sample_is_known() -> None:
    assert {path.name for path in TREES.iterdir()} - {"SOURCES.md"} == set(SHAPES)


@pytest.mark.parametrize("name", SHAPES)
def test_a_sample_has_the_shape_that_its_source_states(name: str) -> None:
    tree = from_path(TREES / name)
    assert (shape_of(tree), counts_of(tree, peers=False)) == SHAPES[name]
    assert stored.read(json.dumps(stored.to_json(tree))) == tree


@pytest.mark.parametrize("name", [name for name in SHAPES if name.endswith(".xml")])
def test_the_way_through_ncclss_xml_keeps_the_matrix(name: str) -> None:
    tree = from_path(TREES / name)
    again = nccl.read(nccl.to_nccl(tree))
    assert _labels(again) == _labels(tree)
    assert shape_of(again) == shape_of(tree)
    assert [gpu.link.generation for gpu in again.gpus if tree.gpus[0].link.speed] == [
        gpu.link.generation for gpu in tree.gpus if tree.gpus[0].link.speed
    ]


RECORDINGS = sorted((RECORDED.parents[1]).glob("*.tar.gz"))


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name)
def test_the_way_of_a_recording_through_ncclss_xml_keeps_sockets_and_matrix(path: Path) -> None:
    """Also of devices in a guest that are at no NUMA node, and so at no known socket."""
    tree = from_path(path)
    again = nccl.read(nccl.to_nccl(tree))
    assert _labels(again) == _labels(tree)
    assert _of_sockets(again) == _of_sockets(tree)


def _of_sockets(tree: Tree) -> list[tuple[int | None, tuple[int, ...], set[str]]]:
    """Return number, NUMA nodes and adapters of each socket."""
    return [
        (s.package, s.numa, {n.id for b in s.bridges for n in b.walk() if n.kind == "nic"})
        for s in tree.sockets
    ]


def _labels(tree: Tree) -> dict[tuple[str, str], str]:
    return matrix_of(tree, tree.devices("gpu", "nic"))


def test_sources_agree_on_one_machine(tmp_path: Path) -> None:
    """/sys, hwloc 2.9's own reading of the same /sys, and NCCL's form of it."""
    unpack(RECORDED, tmp_path)
    sysfs = from_sysfs(tmp_path)
    other = from_path(TREES / "hwloc2-8-vector-engines.xml")
    assert canonical_hash(sysfs) == canonical_hash(other)
    assert [s.package for s in sysfs.sockets] == [s.package for s in other.sockets]
    rates = [round(n.link.gbs or 0, 3) for n in sysfs.devices("gpu", "nic")]
    assert rates == [round(n.link.gbs or 0, 3) for n in other.devices("gpu", "nic")]
    third = nccl.read(nccl.to_nccl(sysfs))
    assert _labels(sysfs) == _labels(other) == _labels(third)
    assert canonical_hash(third) == canonical_hash(sysfs)


@pytest.mark.parametrize("name", ["balance", "common", "cascade"])
def test_a_matrix_gives_the_shape_of_the_tree_that_it_is_of(name: str) -> None:
    tree = from_path(TREES / f"synthetic-nccl-{name}.xml")
    seen = grouped.read(printed(tree))
    assert shape_of(seen) == shape_of(tree)
    assert counts_of(seen) == counts_of(tree)


def printed(tree: Tree) -> str:
    """Return the matrix of a tree's GPUs as nvidia-smi prints it."""
    gpus = tree.gpus
    labels = matrix_of(tree, gpus)
    rows = ["\t".join(["", *(gpu.name for gpu in gpus), "CPU Affinity"])]
    for one in gpus:
        cells = [labels[one.id, other.id].center(3) for other in gpus]
        rows.append("\t".join([one.name, *cells, "0-7"]))
    return "\n".join(rows) + "\n"


def test_links_beside_pcie() -> None:
    dgx = from_path(TREES / "hwloc-dgx2-16xv100-nvswitch.xml")
    assert {(peer.b, peer.count, peer.gbs) for peer in dgx.peers} == {(NVSWITCH, 6, 150.0)}
    assert counts_of(dgx) == {"NV6": 120}
    minsky = from_path(TREES / "hwloc-power8-4xp100-nvlink.xml")
    assert sorted((p.b, p.count) for p in minsky.peers if p.b.startswith("cpu")) == [
        *[("cpu0", 2)] * 2,
        *[("cpu1", 2)] * 2,
    ]
    assert sum(not p.b.startswith("cpu") for p in minsky.peers) == 2
    mesh = from_path(TREES / "nccl-8gpu-xgmi-mi300x.xml")
    assert {p.kind for p in mesh.peers} == {"xgmi"}
    assert {frozenset((p.a, p.b)) for p in mesh.peers} == {
        frozenset((a.id, b.id)) for a, b in combinations(mesh.gpus, 2)
    }


def test_a_tree_as_deep_as_is_read_is_drawn_and_stored() -> None:
    """The deepest file that is not refused; a level more is."""
    bridge = '<pci busid="0000:{:02x}:00.0" class="0x060400" vendor="0x10b5" device="0x8796">'
    for levels, fine in ((59, True), (80, False)):
        inner = "".join(bridge.format(n) for n in range(0x40, 0x40 + levels))
        text = SYSTEM.format(inner + PCI.format('<gpu dev="0"/>') + "</pci>" * levels)
        if not fine:
            with pytest.raises(ParseError, match="more elements than the tree of a server has"):
                from_text(text)
            continue
        tree = from_text(text)
        assert stored.read(json.dumps(stored.to_json(tree))) == tree
        assert svg(tree).count("<rect") == levels + 4
        assert list(drawing(tree))


def test_a_recording_with_a_path_that_is_too_deep_is_refused() -> None:
    path = "/sys/devices/pci0000:00" + "".join(f"/0000:{n:02x}:00.0" for n in range(1, 100))
    base = "/sys/bus/pci/devices/0000:63:00.0"
    archive = Archive({f"{base}/class": "0x030200"}, links={base: path})
    with pytest.raises(ParseError, match="99 bridges above the device"):
        tree_of(archive)


def test_c2c_leads_to_the_processor_with_its_bandwidth() -> None:
    """As NCCL writes it for Grace Hopper: MB/s of each link, and no target."""
    text = SYSTEM.format(PCI.format('<gpu dev="0"><c2c bw="45000" count="10"/></gpu>'))
    (peer,) = nccl.read(text).peers
    assert (peer.b, peer.kind, peer.count, peer.gbs) == ("cpu0", "c2c", 10, 450.0)
    assert nccl.read(nccl.to_nccl(nccl.read(text))).peers == (peer,)


def test_a_matrix_whose_links_hide_the_paths_has_no_name() -> None:
    assert shape_of(from_path(MATRICES / "real-a100_pairs.out")).name == "unknown"


BOMB = '<!DOCTYPE a [<!ENTITY b "bbbbbbbbbb"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]>\n'
PCI = '<pci busid="0000:18:00.0" class="0x030200" link_speed="8 GT/s" link_width="16">{}</pci>'
SYSTEM = '<system version="1">\n<cpu numaid="0">\n{}\n</cpu>\n</system>'
DEVICE = (
    '<topology version="2.0">\n<object type="Machine">\n<object type="PCIDev" {}/>'
    "</object></topology>"
)
WRONG = {
    "an XML bomb": (BOMB + SYSTEM.format(PCI.format("&c;")), "declares an entity", 1),
    "XML that is cut off": (SYSTEM.format(PCI)[:-12], "not XML", 4),
    "a GPU without a parent": (SYSTEM.format('<gpu dev="0"/>'), "without a <pci>", 3),
    "one address twice": (
        SYSTEM.format(PCI.format("") + "\n" + PCI.format("")),
        r"two devices have the address 0000:18:00\.0",
        4,
    ),
    "a bridge within itself": (
        SYSTEM.format(
            '<pci busid="0000:17:00.0" class="0x060400">' * 2 + PCI.format("") + "</pci>" * 2
        ),
        r"two devices have the address 0000:17:00\.0",
        3,
    ),
    "a link to itself": (
        SYSTEM.format(
            PCI.format(
                '<gpu dev="0"><nvlink target="0000:18:00.0" count="1" tclass="0x030200"/></gpu>'
            )
        ),
        "to itself",
        3,
    ),
    "a NUMA node twice": (SYSTEM.format("</cpu>\n<cpu numaid='0'>"), "NUMA node 0", 4),
    "hwloc's device below no bridge": (
        DEVICE.format('pci_busid="0000:18:00.0" pci_type="0302 [10de:1db4] [10de:1212] a1"'),
        "below no host bridge",
        3,
    ),
    "hwloc of a version to come": (
        '<topology version="4.0"><object type="Machine"/></topology>',
        "neither 2 nor 3",
        0,
    ),
    "nothing of a tree": ("GPU0 GPU1\n", "holds no tree", 0),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_no_tree_is_refused_with_its_line(what: str, tmp_path: Path) -> None:
    text, cause, line = WRONG[what]
    path = tmp_path / "tree"
    path.write_text(text)
    with pytest.raises(ParseError, match=cause) as caught:
        from_path(path)
    assert caught.value.line == line
    assert str(path) in caught.value.place


def test_a_matrix_that_contradicts_itself_is_refused() -> None:
    text = (TREES / "smi-8xp40-cascade-paddle.txt").read_text()
    wrong = text.replace("GPU0\t X \tPIX", "GPU0\t X \tSOC").replace("GPU1\tPIX", "GPU1\tSOC")
    assert wrong != text
    with pytest.raises(ParseError, match="GPU0 and GPU1 are SYS, but PIX"):
        from_text(wrong)


@pytest.mark.parametrize("lines", range(2, 9))
def test_a_matrix_that_is_cut_off_is_refused(lines: int) -> None:
    text = (TREES / "smi-8xp40-cascade-paddle.txt").read_text()
    with pytest.raises(ParseError):
        from_text("\n".join(text.split("\n")[:lines]))


def test_hwlocs_links_that_are_not_whole_are_refused() -> None:
    text = (TREES / "hwloc-dgx2-16xv100-nvswitch.xml").read_text()
    with pytest.raises(ParseError, match="matrix of links is not whole"):
        hwloc.read(text.replace("25000 25000 25000", "25000 25000", 1))


def test_a_matrix_without_addresses_is_no_file_for_nccl() -> None:
    with pytest.raises(UserError, match="no addresses"):
        nccl.to_nccl(from_path(TREES / "smi-8xp40-cascade-paddle.txt"))


HWLOC = Path(__file__).parent / "machines" / "hwloc"
VECTOR = "32intel64-2p8co2t+8ve"


@pytest.fixture
def recorded(tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that unpacks a machine of hwloc's and returns its root."""

    def machine(name: str) -> Path:
        unpack(HWLOC / f"{name}.tar.xz", tmp_path / name)
        return tmp_path / name

    return machine


def test_the_bridge_of_a_card_is_no_switch(recorded: Callable[[str], Path]) -> None:
    """X722 brings a bridge of its maker for its two ports; the switches are of another maker."""
    kinds = {n.address: n.kind for n in from_sysfs(recorded(VECTOR)).walk() if n.address}
    assert kinds["0000:5e:00.0"] == "card-bridge"
    assert kinds["0000:18:00.0"] == kinds["0000:3b:00.0"] == "switch"


def test_the_answer_of_a_node_has_its_tree_as_a_fact(recorded: Callable[[str], Path]) -> None:
    root = recorded(VECTOR)
    archive = from_root(root)
    text = {path: one for path, one in archive.files.items() if isinstance(one, str)}
    sections = [
        ["begin 1 files"],
        ["environment"],
        ["asked", *text],
        ["files", *(f"{path}:{line}" for path, one in text.items() for line in one.split("\n"))],
        ["errors"],
        ["links", *(f"{link} {target}" for link, target in archive.links.items())],
        ["end"],
    ]
    lines = [line for part in sections for line in (f"::4f1c {part[0]}", *part[1:], "")]
    answer = "".join(f"4f1c host {number} {line}\n" for number, line in enumerate(lines[:-1], 1))
    _, facts = read_answer(answer)
    assert canonical_hash(stored.read(facts["pci.tree"]), keys=False) == canonical_hash(
        from_sysfs(root), keys=False
    )


def test_a_tree_under_a_hypervisor_has_no_profile(recorded: Callable[[str], Path]) -> None:
    tree = from_sysfs(recorded("2pa-pcidomain32bits"))
    assert tree.virtual == "hypervisor"
    gpu = Node("gpu", "0000:09:00.0", model="10de:20b0")
    bridge = Node("host-bridge", "pci0000:00", children=(gpu,))
    owned = finished(replace(tree, sockets=(*tree.sockets[:1], Socket(1, (), (bridge,)))))
    assert shape_of(owned).name == "virtual"


def test_a_guest_is_known_by_its_maker_too(recorded: Callable[[str], Path]) -> None:
    """Processors of ARM state no hypervisor; the firmware of a guest names it."""
    archive = from_root(recorded(VECTOR))
    files = {**archive.files, "/sys/class/dmi/id/sys_vendor": "QEMU\n"}
    assert tree_of(replace(archive, files=files)).virtual == "product"


def test_a_device_without_a_parent_is_refused(recorded: Callable[[str], Path]) -> None:
    """hwloc's recording of this machine lacks the links that say where devices hang."""
    with pytest.raises(ParseError, match=r"0004:05:00\.0 hangs below no host bridge"):
        from_sysfs(recorded("nvidiagpunumanodes"))


def test_a_directory_without_devices_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no PCI devices"):
        from_sysfs(tmp_path)


def test_the_hash_ignores_numbers_of_buses(recorded: Callable[[str], Path]) -> None:
    tree = from_sysfs(recorded(VECTOR))
    text = json.dumps(stored.to_json(tree))
    numbers = {
        node.address[5:7] for node in tree.walk() if node.address and node.kind != "host-bridge"
    }
    fresh = dict(
        zip(sorted(numbers), random.Random(1).sample(range(0x50, 0xF0), len(numbers)), strict=True)
    )
    for old, new in fresh.items():
        text = text.replace(f"0000:{old}:", f"0000:#{new:02x}:")
    moved = stored.read(text.replace("#", ""))
    assert [gpu.address for gpu in moved.gpus] != [gpu.address for gpu in tree.gpus]
    assert canonical_hash(moved) == canonical_hash(tree)


def test_the_hash_knows_devices_by_their_keys(recorded: Callable[[str], Path]) -> None:
    tree = from_sysfs(recorded(VECTOR))
    keyed, other = (_keyed(tree, f"{letter}-") for letter in "ab")
    assert canonical_hash(keyed) != canonical_hash(tree) != canonical_hash(other)
    assert canonical_hash(keyed) != canonical_hash(other)
    hashes = {canonical_hash(one, keys=False) for one in (tree, keyed, other)}
    assert len(hashes) == 1


def _keyed(tree: Tree, start: str) -> Tree:
    return tree.mapped(lambda n: replace(n, key=start + n.name if n.kind == "gpu" else ""))


def test_the_hash_changes_with_the_wiring(recorded: Callable[[str], Path]) -> None:
    tree = from_sysfs(recorded(VECTOR))
    first, second = tree.sockets
    split = replace(
        tree,
        sockets=(
            replace(first, bridges=first.bridges[:1]),
            replace(second, bridges=first.bridges[1:]),
        ),
    )
    assert shape_of(split).name == "Balance"
    assert canonical_hash(split, keys=False) != canonical_hash(tree, keys=False)
