"""The PCIe tree of a server from /sys: its shape, its hash, and what is refused."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from archives import unpack
from paribus.core import ParseError, UserError
from paribus.launch.gathering import read_answer
from paribus.probes import from_root
from paribus.topology import stored
from paribus.topology.labels import counts_of
from paribus.topology.shape import Shape, canonical_hash, shape_of
from paribus.topology.sysfs import from_sysfs, tree_of
from paribus.topology.tree import Node, Socket, Tree, finished

HWLOC = Path(__file__).parent / "machines" / "hwloc"
VECTOR = "32intel64-2p8co2t+8ve"


@pytest.fixture
def recorded(tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that unpacks a machine of hwloc's and returns its root."""

    def machine(name: str) -> Path:
        unpack(HWLOC / f"{name}.tar.xz", tmp_path / name)
        return tmp_path / name

    return machine


def test_a_recorded_server_of_eight_engines_has_the_common_shape(
    recorded: Callable[[str], Path],
) -> None:
    """Two switches below one processor, four engines and an adapter each (hwloc's answer)."""
    tree = from_sysfs(recorded(VECTOR))
    assert shape_of(tree) == Shape("Common", gpus=8, sockets=1, trees=2, depth=1)
    assert counts_of(tree) == {"PIX": 12, "NODE": 16}
    assert [(socket.package, socket.numa) for socket in tree.sockets] == [(0, (0,)), (1, (1,))]
    assert not tree.sockets[1].bridges
    assert len(tree.devices("nic")) == 4
    links = {gpu.link for gpu in tree.gpus}
    assert {(link.generation, link.width) for link in links} == {(3, 16)}
    assert {round(link.gbs or 0, 2) for link in links} == {15.75}  # as hwloc prints it


def test_the_bridge_of_a_card_is_no_switch(recorded: Callable[[str], Path]) -> None:
    """X722 brings a bridge of its maker for its two ports; the switches are of another maker."""
    kinds = {n.address: n.kind for n in from_sysfs(recorded(VECTOR)).walk() if n.address}
    assert kinds["0000:5e:00.0"] == "card-bridge"
    assert kinds["0000:18:00.0"] == kinds["0000:3b:00.0"] == "switch"


def test_the_archive_of_a_host_gives_the_same_tree(recorded: Callable[[str], Path]) -> None:
    """What facts.sh reads on a host of an arm is such an archive."""
    root = recorded(VECTOR)
    one, other = from_sysfs(root), tree_of(from_root(root))
    assert canonical_hash(one) == canonical_hash(other)
    assert shape_of(one) == shape_of(other)
    assert [gpu.link for gpu in one.gpus] == [gpu.link for gpu in other.gpus]


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
    def keyed(node: Node) -> Node:
        key = start + node.name if node.kind == "gpu" else ""
        return replace(node, key=key, children=tuple(map(keyed, node.children)))

    return replace(
        tree,
        sockets=tuple(replace(s, bridges=tuple(map(keyed, s.bridges))) for s in tree.sockets),
    )


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


def test_json_gives_the_tree_back(recorded: Callable[[str], Path]) -> None:
    tree = from_sysfs(recorded(VECTOR))
    assert stored.read(json.dumps(stored.to_json(tree))) == tree


def test_two_devices_with_one_address_are_refused() -> None:
    gpu = Node("gpu", "0000:18:00.0")
    bridges = tuple(Node("host-bridge", name, children=(gpu,)) for name in ("a", "b"))
    with pytest.raises(ParseError, match=r"two devices have the address 0000:18:00\.0"):
        finished(Tree("sysfs", (Socket(0, (0,), bridges),)))
