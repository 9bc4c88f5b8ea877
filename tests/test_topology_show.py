"""`paribus topology show` and `diff`: what is drawn, written and said; the page's own commands."""

from __future__ import annotations

import re
import shlex
import shutil
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from archives import unpack
from paribus.__main__ import main
from paribus.probes.files import from_root
from paribus.topology import nvml
from paribus.topology.diff import difference, folded
from paribus.topology.read import PROFILES, from_path, from_text, profile
from paribus.topology.svg import svg, to_dot
from paribus.topology.sysfs import tree_of
from paribus.topology.tree import NVSWITCH, Link, Node, Tree
from paribus.topology.words import of_difference, of_warning, shares_of, warnings_of

HERE = Path(__file__).parent
TREES = HERE / "fixtures" / "topology"
PAGE = HERE.parent / "docs" / "topology.md"


def shown(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert main(["topology", *words]) == code
    return capsys.readouterr().out


def test_a_tree_is_drawn_with_its_matrix_and_shares(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "show", str(TREES / "hwloc2-8-vector-engines.xml"))
    assert text.startswith("Common (several trees of switches at one socket): 8 GPUs")
    assert "│        ├─ GPU0 0000:1b:00.0 [1bcf:001c] " in text
    assert "socket 1 (NUMA node 1): no device" in text
    assert re.search(r"switch 0000:18:00\.0 +4 +15\.8 GB/s +3\.9 GB/s", text)
    assert re.search(r"^  GPU0 +X +PIX +PIX +PIX +NODE", text, re.M)


def test_what_a_tree_is_written_as_can_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    tree = profile("cascade")
    assert from_text(shown(capsys, "show", "cascade", "--json")) == tree
    assert len(from_text(shown(capsys, "show", "cascade", "--nccl-xml")).gpus) == 8
    assert shown(capsys, "show", "cascade", "--dot") == to_dot(tree)


@pytest.mark.parametrize("name", sorted(path.name for path in TREES.glob("[hns]*.[xt]*")))
def test_every_tree_is_drawn(name: str) -> None:
    """Each device has a box of its own inside the picture, and a node in the graph."""
    tree = from_path(TREES / name)
    picture = ET.fromstring(svg(tree))
    assert picture.get("viewBox")
    width, height = (float(x) for x in picture.attrib["viewBox"].split()[2:])
    space = "{http://www.w3.org/2000/svg}"
    texts = [element.text for element in picture.iter(f"{space}text")]
    assert {gpu.name for gpu in tree.gpus} <= set(texts)
    places = [
        (float(r.attrib["x"]), float(r.attrib["y"]))
        for r in picture.iter(f"{space}rect")
        if r.get("height") == "34"
    ]
    assert len(places) == len(set(places)) == len(tree.sockets) + sum(1 for _ in tree.walk())
    assert all(0 <= x <= width - 92 and 0 <= y <= height - 34 for x, y in places)
    assert to_dot(tree).count("shape=box") == 1
    assert all(f'"{gpu.name}' in to_dot(tree) for gpu in tree.gpus)


def test_a_name_from_outside_is_no_markup() -> None:
    tree = profile("cascade")
    gpu = replace(tree.gpus[0], name='<b>"x\x1b[31m')
    bridge = Node("host-bridge", "pci0000:00", children=(gpu,))
    evil = replace(tree, sockets=(replace(tree.sockets[0], bridges=(bridge,)),))
    assert "<b>" not in svg(evil)
    assert "\x1b" not in svg(evil)
    ET.fromstring(svg(evil))


def test_what_moved_is_said_in_words() -> None:
    said = list(of_difference(difference(profile("balance"), profile("cascade"))))
    assert any(one.startswith("GPU4-7: socket 1 -> socket 0;") for one in said)
    assert "16 pairs of GPUs: SYS -> PXB." in said
    assert list(of_difference(difference(profile("common"), profile("common")))) == [
        "The trees are alike: every device hangs where it did."
    ]


def test_devices_are_known_by_their_keys() -> None:
    """Two GPUs that changed places are two that moved, whatever their numbers."""
    tree = profile("balance")

    def keyed(swap: dict[str, str]) -> Tree:
        return tree.mapped(
            lambda n: replace(n, key=swap.get(n.name, n.name) if n.kind == "gpu" else "")
        )

    found = difference(keyed({}), keyed({"GPU0": "GPU4", "GPU4": "GPU0"}))
    moved = {one.devices for one in found.moved if one.what == "socket"}
    assert moved == {("GPU0",), ("GPU4",)}
    found = difference(keyed({}), keyed({"GPU0": "another"}))
    assert (found.gone, found.new) == (("GPU0",), ("GPU0",))


def test_names_are_folded() -> None:
    assert folded(["GPU0", "GPU1", "GPU2", "GPU7", "NIC0", "mlx"]) == "GPU0-2, GPU7, NIC0, mlx"


def test_a_link_with_fewer_lanes_is_said() -> None:
    gpu = Node("gpu", "0000:18:00.0", "GPU0", link=Link(8.0, 8, 8.0, 16))
    port = Node("root-port", "0000:17:00.0", children=(gpu,))
    tree = profile("balance")
    bridge = Node("host-bridge", "pci0000:17", children=(port,))
    narrow = replace(tree, sockets=(replace(tree.sockets[0], bridges=(bridge,)),))
    (one,) = warnings_of(narrow)
    assert of_warning(one).startswith("GPU0 has 8 of 16 lanes.")


def test_gpus_far_from_the_adapter_are_said() -> None:
    tree = from_path(TREES / "smi-8gpu-balance-quda669.txt")
    (one,) = warnings_of(tree)
    assert (one.code, one.nodes) == ("far-adapter", ("GPU0", "GPU1", "GPU2", "GPU3"))
    assert "mlx5_0" in of_warning(one)


def test_access_control_that_redirects_is_said(tmp_path: Path) -> None:
    """The capability of ACS (000d) with request and completion redirect on, as root reads it."""
    unpack(HERE / "machines/hwloc/32intel64-2p8co2t+8ve.tar.xz", tmp_path)
    archive = from_root(tmp_path)
    lists = {
        "bridges": [
            "0000:19:08.0 0d00010000000c00",
            "0000:3c:04.0 0d00010000000000",
            "0000:3a:00.0 denied",
        ]
    }
    tree = tree_of(replace(archive, lists=lists))
    redirects = {n.address: n.redirects for n in tree.walk() if n.kind == "switch"}
    assert redirects == {"0000:18:00.0": True, "0000:3b:00.0": False}
    (one,) = [one for one in warnings_of(tree) if one.code == "redirect"]
    assert "0000:18:00.0" in of_warning(one)


def test_shares_are_of_links_that_gpus_have_in_common() -> None:
    shares = shares_of(profile("cascade"))
    assert [(one.gpus, round(one.each or 0, 2)) for one in shares] == [(8, 1.97), (4, 3.94)]


def test_nvml_adds_uuids_and_links() -> None:
    """A library that answers as NVML does for two GPUs at NVSwitches (no GPU is here)."""
    tree = profile("common")
    addresses = [gpu.address for gpu in tree.gpus]

    class NVMLError(Exception):
        pass

    def state(_gpu: int, link: int) -> int:
        if link > 3:
            raise NVMLError
        return link < 2

    library = SimpleNamespace(
        NVMLError=NVMLError,
        nvmlDeviceGetCount=lambda: 8,
        nvmlDeviceGetHandleByIndex=lambda number: number,
        nvmlDeviceGetPciInfo=lambda gpu: SimpleNamespace(busId=f"0000{addresses[gpu]}".upper()),
        nvmlDeviceGetUUID=lambda gpu: f"GPU-{gpu}".encode(),
        nvmlDeviceGetNvLinkState=state,
        nvmlDeviceGetNvLinkRemoteDeviceType=lambda _gpu, link: 2 if link == 0 else 0,
        nvmlDeviceGetNvLinkRemotePciInfo=lambda gpu, _: SimpleNamespace(
            busId=f"0000{addresses[gpu ^ 1]}".encode()
        ),
    )
    found = nvml.joined(replace(tree, lacks=("peers",)), library)
    assert [gpu.key for gpu in found.gpus] == [f"GPU-{number}" for number in range(8)]
    assert sum(peer.b == NVSWITCH for peer in found.peers) == 8
    assert {(p.a, p.b) for p in found.peers if p.b != NVSWITCH} == set(
        zip(addresses[::2], addresses[1::2], strict=True)
    )
    assert found.lacks == ()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["predict", *["balance"] * 7], "7 trees\n  name up to 6"),
        (["show", "missing.xml"], "missing.xml: no such file"),
        (["show", "/dev/null"], "it is a device"),
        (["show", "cascade", "--svg", "/nowhere/x.svg"], "cannot be written"),
    ],
)
def test_a_wrong_command_is_refused(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["topology", *words]) == 2
    assert said in capsys.readouterr().err


BLOCK = re.compile(r"```(sh|console)\n(.*?)```", re.S)


def test_the_commands_of_the_page_do_what_it_shows(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    shutil.copy(TREES / "hwloc2-8-vector-engines.xml", "lstopo.xml")
    shutil.copy(TREES / "nccl-8gpu-common-intel-mi50.xml", "nccl.xml")
    shutil.copy(TREES / "smi-8gpu-balance-quda669.txt", "topo.txt")
    carried = 0
    for kind, block in BLOCK.findall(PAGE.read_text().partition("\n## Switching")[0]):
        for command, output in re.findall(
            r"^(?:\$ )?(paribus .*)\n((?:(?!\$ |paribus ).*\n)*)", block, re.M
        ):
            typed, _, into = command.partition(" > ")
            words = shlex.split(typed, comments=True)
            assert main(words[1:]) in ((0, 3) if "diff" in words else (0,)), command
            text = capsys.readouterr().out
            if into:
                Path(into).write_text(text)
            for line in output.splitlines() if kind == "console" else ():
                assert line == "..." or line in text.splitlines(), f"{command}: {line}"
            carried += 1
    assert carried > 8
    assert set(PROFILES) <= set(re.findall(r"\w+", PAGE.read_text().lower()))
