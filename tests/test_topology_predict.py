"""Max-min shares against their definition, rings against all orders, rates against SimGrid's."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paribus.__main__ import main
from paribus.core import UserError
from paribus.topology.capacities import Capacities, read_capacities, shipped
from paribus.topology.predict import (
    LOADS,
    Network,
    Resource,
    Route,
    beside_published,
    best_order,
    forecasts,
    has_order,
    max_min,
    nccl_order,
    ring_rate,
    step_ms,
)
from paribus.topology.read import PROFILES, from_path, profile
from paribus.topology.tree import Link, Node, Peer, Socket, Tree, finished

TREES = Path(__file__).parent / "fixtures" / "topology"
STATED = read_capacities(shipped())
THREE = [profile(name) for name in PROFILES]
X16 = Link(8.0, 16)


def test_max_min_of_the_textbook() -> None:
    """One flow over two links, one over each: the first link is shared, the second has room."""
    a: Resource
    b: Resource
    a, b = ("a",), ("b",)
    routes: list[Route] = [{a: 1.0, b: 1.0}, {a: 1.0}, {b: 1.0}]
    rates = max_min(routes, {a: 1.0, b: 2.0})
    assert rates == pytest.approx([0.5, 0.5, 1.5])


ROUTES = st.lists(
    st.dictionaries(st.integers(0, 5), st.sampled_from([0.5, 1.0]), min_size=1),
    min_size=1,
    max_size=8,
)


@settings(max_examples=200, deadline=None)
@given(ROUTES, st.lists(st.floats(0.5, 50.0), min_size=6, max_size=6))
def test_max_min_is_what_its_definition_says(
    numbered: list[dict[int, float]], sizes: list[float]
) -> None:
    """No resource carries too much, and each flow has a full one on which none is faster."""
    routes: list[Route] = [{(str(n),): s for n, s in route.items()} for route in numbered]
    capacity: dict[Resource, float] = {(str(n),): size for n, size in enumerate(sizes)}
    rates = max_min(routes, capacity)
    used = {
        key: sum(r * route.get(key, 0.0) for r, route in zip(rates, routes, strict=True))
        for key in capacity
    }
    assert all(used[key] <= capacity[key] * (1 + 1e-6) for key in capacity)
    for rate, route in zip(rates, routes, strict=True):
        assert any(
            used[key] >= capacity[key] * (1 - 1e-6)
            and rate >= max(r for r, o in zip(rates, routes, strict=True) if key in o) - 1e-6
            for key in route
        )


def of(load: str, what: str, stated: Capacities = STATED) -> tuple[float, ...]:
    return next(one.values for one in forecasts(THREE, [load], stated) if one.of == what)


def test_rates_are_those_of_simgrid_for_the_same_trees() -> None:
    """SimGrid 3.32's S4U gave the rings of the same trees and capacities 4.5, 5.5 and 12.8 GB/s,
    and a fluid model that was written apart from this one gave the others."""
    assert of("ring-allreduce", "ring in the best order") == pytest.approx((4.5, 5.5, 12.8))
    assert of("ring-allreduce", "100 MB") == pytest.approx((38.89, 31.82, 13.67), abs=0.01)
    assert of("host-to-device", "each of all at once") == pytest.approx((3.2, 3.2, 1.6))
    assert of("host-to-device", "all together, spread memory") == pytest.approx((25.6, 20.0, 12.8))
    each = replace(STATED, shared=False)
    assert of("ring-allreduce", "ring in the best order", each) == pytest.approx((9.0, 11.0, 12.8))
    for share, expected in ((0.05, (1, 0.986, 0.952)), (0.2, (1, 0.947, 0.833))):
        stated = replace(STATED, host_share=share)
        assert of("hpl", "speed, the best tree's as 1", stated) == pytest.approx(expected, abs=6e-4)


def test_orderings_beside_those_that_were_published() -> None:
    found = {one.of: one.holds for one in beside_published(THREE, STATED)}
    assert found == {
        "p2p-within": ("yes", "yes"),
        "p2p-across": ("no", "no"),
        "hpl": ("yes", "yes"),
        "ResNet50": ("tie", "tie"),
        "VGG16": ("yes", "no"),
    }
    assert beside_published(THREE[:2], STATED) == []


def test_an_order_is_read_as_it_is_written() -> None:
    values = {"A": 3.0, "B": 2.0, "C": 2.001}
    assert has_order("A > B = C", values) == "yes"
    assert has_order("A > B > C", values) == "no"
    assert has_order("A", values) == "yes"
    assert has_order("C", {"A": 1.0, "B": 1.0, "C": 1.001}) == "tie"
    assert has_order("B", values) == "no"


def test_a_step_grows_with_what_is_exposed() -> None:
    rates = Network(THREE[2], STATED).rates
    hidden = replace(STATED, input_exposed=0.0, reduce_exposed=0.0)
    assert step_ms(rates, 100, 160, 50, hidden) == 50
    shown = replace(STATED, input_exposed=1.0, reduce_exposed=0.0)
    assert step_ms(rates, 100, 160, 50, shown) == pytest.approx(50 + 160 / 1.6)


def tree_of(seed: int) -> Tree:
    """Return a small server of six GPUs below switches at two sockets, wired at random."""
    chance = random.Random(seed)
    ports: list[list[Node]] = [[], [], []]
    for number in range(6):
        ports[chance.randrange(3)].append(Node("gpu", f"0000:{number + 16:02x}:00.0", link=X16))
    bridges: list[list[Node]] = [[], []]
    for number, gpus in enumerate(ports):
        inner = gpus
        if len(gpus) > 2:
            deeper = Node(
                "switch", f"0000:{number + 48:02x}:00.0", link=X16, children=tuple(gpus[2:])
            )
            inner = [*gpus[:2], deeper]
        if inner:
            top = Node("switch", f"0000:{number + 64:02x}:00.0", link=X16, children=tuple(inner))
            port = Node("root-port", f"0000:{number + 80:02x}:00.0", children=(top,))
            own = Node("host-bridge", f"pci0000:{number + 80:02x}", children=(port,))
            bridges[chance.randrange(2)].append(own)
    sockets = tuple(Socket(n, (n,), tuple(own)) for n, own in enumerate(bridges))
    peers = tuple(
        Peer(f"0000:{a + 16:02x}:00.0", f"0000:{b + 16:02x}:00.0", "nvlink", 1)
        for a in range(6)
        for b in range(a)
        if seed % 2 and chance.random() < 0.4
    )
    return finished(Tree("test", sockets, peers))


@pytest.mark.parametrize("seed", range(8))
def test_the_best_ring_is_the_best_of_all_orders(seed: int) -> None:
    network = Network(tree_of(seed), STATED)
    first, *others = [gpu.id for gpu in network.tree.gpus]
    fastest = max(ring_rate(network, [first, *order]) for order in permutations(others))
    found = ring_rate(network, best_order(network))
    if seed % 2:  # with direct links the best is searched for, not proved
        assert fastest * 0.5 <= found <= fastest * (1 + 1e-9)
    else:
        assert found == pytest.approx(fastest)


def test_nccls_order_is_a_ring_of_all_gpus() -> None:
    tree = from_path(TREES / "hwloc-dgx2-16xv100-nvswitch.xml")
    order = nccl_order(Network(tree, STATED))
    assert sorted(order) == sorted(gpu.id for gpu in tree.gpus)
    assert ring_rate(Network(tree, STATED), order) == 150.0


def test_a_switch_that_redirects_sends_its_gpus_through_the_processor() -> None:
    tree = THREE[2].mapped(lambda n: replace(n, redirects=True if n.kind == "switch" else None))
    network = Network(tree, STATED)
    one, other = (gpu.id for gpu in tree.gpus[:2])
    (rate,) = max_min([network.peer(one, other)], network.capacity)
    assert rate == STATED.peer


def test_a_link_to_the_processor_carries_input() -> None:
    """POWER8's GPUs read host memory over NVLink, two links of 20 GB/s."""
    network = Network(from_path(TREES / "hwloc-power8-4xp100-nvlink.xml"), STATED)
    (rate,) = max_min(network.local()[:1], network.capacity)
    assert rate == 40.0


def predicted(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["topology", "predict", *words]) == 0
    return capsys.readouterr().out


def test_every_line_of_a_prediction_says_that_it_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    text = predicted(capsys)
    assert text.startswith("Predicted, not measured")
    table = text.split("\n\n")[1].splitlines()[1:]
    rows = [row for row in table if row not in LOADS]
    assert len(table) - len(rows) == len(LOADS)
    assert all(row.endswith("predicted") for row in rows)


def test_each_pair_has_a_figure_and_each_ring_its_order(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["balance", "--load", "p2p", "--load", "p2p-all", "--load", "ring-allreduce"]
    lines = predicted(capsys, *words).splitlines()
    at = [lines.index(f"{load} on balance, from row to column") for load in ("p2p", "p2p-all")]
    alone, together = (lines[first + 1 : first + 10] for first in at)
    assert alone[0].split() == [f"GPU{n}" for n in range(8)]
    assert alone[1].split() == ["GPU0", "-", *["12.8"] * 3, *["9"] * 4, "GB/s,", "predicted"]
    # Sixteen ordered pairs of each direction share what the processors exchange.
    assert together[1].split()[5:9] == ["0.281"] * 4
    order = " ".join(f"GPU{n}" for n in range(8))
    assert "NCCL's order, predicted: " + order in " ".join(" ".join(lines).split())
    table = json.loads(predicted(capsys, "balance", "cascade", "--json"))
    balance, cascade = table["pairs"]
    assert (balance["alone"][0][0], balance["alone"][0][7]) == (None, 9.0)
    assert cascade["together"][7][0] == pytest.approx(0.8)
    assert len(set(cascade["best_ring"])) == 8


def test_a_prediction_is_nothing_that_was_measured(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Neither its JSON nor its table is data of an arm."""
    table = json.loads(predicted(capsys, "--json"))
    assert table["measured"] is False
    assert "predicted" in table
    for name, text in (("a.json", json.dumps(table)), ("b.txt", predicted(capsys))):
        for folder in ("one", "other"):
            (tmp_path / folder).mkdir(exist_ok=True)
            (tmp_path / folder / name).write_text(text)
        assert main(["compare", str(tmp_path / "one"), str(tmp_path / "other")]) in (2, 4)


def test_the_window_is_drawn_for_each_model(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    predicted(capsys, "--window", str(tmp_path / "w.svg"), "--load", "training")
    text = (tmp_path / "w.svg").read_text()
    assert "predicted, not measured" in text
    assert "ResNet50, 99 MB" in text
    assert "VGG16, 528 MB" in text


def test_a_model_of_ones_own(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--gradient-mb", "500", "--input-mb", "100", "--compute-ms", "200"]
    text = predicted(capsys, "cascade", *words, "--load", "training")
    assert "own, a step" in text
    assert main(["topology", "predict", "--gradient-mb", "500"]) == 2
    assert "three positive numbers" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "cause"),
    [
        ("efficiency = 0.8", "efficiency = 1.8", "links.efficiency = 1.8: cannot be used"),
        ("peer = 11.0", "pear = 11.0", "processor.pear: unknown key"),
        (
            "shared = true",
            "shared = 2",
            "processor.shared = 2: cannot be used\\n  .*write true or false",
        ),
        ("[hpl]", "[hpcg]", "hpcg: unknown key"),
        ("pcie = 16.0", "pcie = nan", "links.pcie = nan: cannot be used"),
        (
            "gradient_mb = 99.0",
            "gradient_mb = -1",
            "models.ResNet50.gradient_mb = -1: cannot be used",
        ),
        ("[links]", "[links", "is not TOML"),
    ],
)
def test_wrong_capacities_are_refused(old: str, new: str, cause: str, tmp_path: Path) -> None:
    text = shipped().read_text()
    assert old in text
    path = tmp_path / "capacities.toml"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(UserError, match=cause):
        read_capacities(path)


def test_one_gpu_has_nobody_to_talk_to(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = (Path(__file__).parent / "fixtures/nvidia_topo/real-one_gpu_one_nic.out").read_text()
    (tmp_path / "one.txt").write_text(text)
    assert main(["topology", "predict", str(tmp_path / "one.txt")]) == 2
    assert "fewer than two GPUs" in capsys.readouterr().err
