"""Matrices of all pairs of nodes: judged, said in words, drawn, and in every form of the report."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import judgements
from judgements import printed
from paribus.core import Case, Judgement, Metric
from paribus.judge.evidence import Cell
from paribus.lenses.matrices import lens as heat
from paribus.lenses.matrices.lens import write_matrices
from paribus.lenses.matrices.matrix import Matrix, of_launches
from paribus.report.export import to_json
from paribus.report.figures import all_figures
from paribus.report.html import page
from stored import Script, judged
from test_report_export import SCHEMA, faults

LATENCY = Metric("latency", "us", "lower", small_us=2.0)
BANDWIDTH = Metric("bandwidth", "MB/s", "higher")


def measured(size: int, *, slow: int, link: tuple[int, int]) -> list[dict[Cell, float]]:
    """Return five launches: node `slow` takes 30 % longer, `link` two and a half times as long."""
    rng = np.random.default_rng(7)
    base = np.triu(rng.normal(0, 0.02, (size, size)), 1)
    base += base.T
    base[slow, :] += np.log(1.3)
    base[:, slow] += np.log(1.3)
    base[link] += np.log(2.5)
    base[link[::-1]] += np.log(2.5)
    launches = []
    for _ in range(5):
        noisy = np.exp(base + rng.normal(0, 0.01, (size, size)))
        one: dict[Cell, float] = {}
        for a in range(size):
            for b in range(size):
                if a < b:
                    one["latency", pair(a, b, 8)] = 1.6 * noisy[a, b]
                if a != b:
                    one["bandwidth", pair(a, b, 1 << 20)] = 12_000 / noisy[a, b]
        launches.append(one)
    return launches


def pair(a: int, b: int, size: int) -> Case:
    return Case((("from", a), ("to", b), ("bytes", size)))


@cache
def matrices(size: int, arm: str = "ib") -> tuple[Matrix, ...]:
    names = [f"node{number:02d}" for number in range(1, size + 1)]
    launches = measured(size, slow=2, link=(0, size - 1))
    return tuple(
        of_launches(
            launches, [LATENCY, BANDWIDTH], [{"rank.hosts": names}], benchmark="pairs", arm=arm
        )
    )


@cache
def study() -> Judgement:
    """Return a judged study of eight ranks in two arms, one latency for all pairs of an arm."""
    selection = judgements.selection("pairs", parameters={"bytes": [8, 1 << 20]}, ranks=8)
    asked = judgements.study((), benchmarks=(selection,))
    cells = [pair(a, b, 8) for a in range(8) for b in range(a + 1, 8)]
    script = Script({"pairs": {"bridged": 1.2}}, growth=0.0, samples=10)
    facts = judgements.FACTS
    return judged(asked, script, name="pairs", facts=facts, cases={"pairs": cells})


def with_matrices(rows: tuple[Matrix, ...]) -> Judgement:
    return replace(study(), lenses={**study().lenses, "matrices": rows})


@pytest.mark.parametrize("size", [8, 64])
def test_slow_nodes_and_pairs_are_named(size: int) -> None:
    latency, bandwidth = matrices(size)
    assert [one.node for one in latency.slow_nodes] == ["node03"]
    last = f"node{size:02d}"
    assert [(one.node, one.to) for one in latency.slow_pairs] == [("node01", last)]
    both = {(one.node, one.to) for one in bandwidth.slow_pairs}
    assert both == {("node01", last), (last, "node01")}
    whole, slow_node, slow_pair = latency.sentences
    assert re.fullmatch(r"Median pair 1\.\d+ us, all pairs 1\.\d+ to [34]\.\d+ us\.", whole)
    assert re.fullmatch(rf"1 of {size} nodes is slow: node03 \((29|30|31) % longer\)\.", slow_node)
    assert re.fullmatch(rf"1 pair is slow: node01 - {last} \(2\.[4-6] x as long\)\.", slow_pair)
    assert f"node01 to {last}" in bandwidth.sentences[2]


def test_few_launches_say_so() -> None:
    [latency] = of_launches(measured(8, slow=2, link=(0, 7))[:2], [LATENCY])
    assert latency.nodes == tuple("01234567")
    assert latency.sentences[1].startswith("2 launches of 8 nodes: too few to name slow ones")


def test_congestion_is_distinguished_from_a_slow_link() -> None:
    """What is slow alone too stays a slow pair, whatever it was in the crowd."""
    launches = measured(8, slow=2, link=(0, 7))
    crowd = {
        f"kernel.crowded.latency.{pair(4, 5, 8)}": 4.8,
        f"kernel.crowded.latency.{pair(0, 7, 8)}": 4.4,
        f"kernel.crowded.bandwidth.{pair(4, 5, 1 << 20)}": 5500.0,
    }
    seldom = {f"kernel.crowded.latency.{pair(1, 5, 8)}": 4.8}
    facts = [crowd, crowd, crowd, seldom, seldom]
    latency, bandwidth = of_launches(launches, [LATENCY, BANDWIDTH], facts)
    for matrix, ratio in ((latency, 3.0), (bandwidth, 12_000 / 5500)):
        [one] = matrix.crowded
        assert (one.node, one.to) == ("4", "5")
        assert one.ratio == pytest.approx(ratio, rel=0.05)
    said = latency.sentences[1]
    assert said.startswith("1 pair was slow only while others were measured (up to ")
    assert said.endswith("x as long): congestion.")
    assert [(one.node, one.to) for one in latency.slow_pairs] == [("0", "7")]


def test_a_pair_that_a_launch_lacks_gives_no_matrix() -> None:
    launches = measured(4, slow=2, link=(0, 3))
    del launches[1]["latency", pair(0, 1, 8)]
    [bandwidth] = of_launches(launches, [LATENCY, BANDWIDTH])
    assert bandwidth.metric == BANDWIDTH
    assert of_launches([], [LATENCY]) == []


@pytest.mark.parametrize("size", [4, 16, 64])
def test_the_heat_map_marks_what_is_slow(size: int, tmp_path: Path) -> None:
    for matrix in matrices(size):
        spec = heat.heat_map(matrix)
        cells = spec["data"]["values"]
        assert len(cells) == size * (size - 1)
        marks = [one["mark"]["type"] for one in spec["layer"]]
        assert ("text" in marks) == (size == 4)
        framed = [one["data"]["values"] for one in spec["layer"] if "stroke" in one["mark"]]
        slow = {cell["from"] for several in framed[:2] for cell in several}
        assert slow == {one.node for one in matrix.slow_nodes}
        ringed = {(c["from"], c["to"]) for c in framed[-1]} if matrix.slow_pairs else set()
        assert {(one.node, one.to) for one in matrix.slow_pairs} <= ringed
        labels = spec["layer"][0]["encoding"]["x"]["axis"]["values"]
        assert slow <= set(labels)
        assert len(labels) <= 25
    latency, bandwidth = (p.read_text() for p in write_matrices(matrices(size), tmp_path, {"svg"}))
    # The slow link is beyond the last colour; of four nodes half of the pairs are slow.
    assert (">≥ " in latency) == (">≤ " in bandwidth) == (size > 4)


def test_arms_share_a_scale() -> None:
    [one] = of_launches(measured(4, slow=2, link=(0, 3)), [LATENCY], arm="a")
    doubled = [
        {cell: 2 * value for cell, value in launch.items()}
        for launch in measured(4, slow=2, link=(0, 3))
    ]
    [other] = of_launches(doubled, [LATENCY], arm="b")
    [group] = heat.groups([one, other])
    domains = [
        heat.heat_map(m, group)["layer"][0]["encoding"]["color"]["scale"]["domain"] for m in group
    ]
    assert domains[0] == domains[1]
    assert domains[0][0] == one.figures[0]


def test_a_terminal_shows_the_matrix_where_there_is_room() -> None:
    latency, bandwidth = matrices(16)
    wide, narrow = heat.text_lines(latency, 120), heat.text_lines(latency, 80)
    assert len(wide) == len(narrow) == 17
    assert max(map(len, narrow)) <= 80 < max(map(len, wide))
    assert narrow[3].startswith("2 node03*")
    assert narrow[1].endswith("*")
    assert heat.text_lines(bandwidth, 120)[0].startswith("GB/s")
    assert heat.text_lines(latency, 40) == []
    assert heat.text_lines(matrices(64)[0], 1000) == []


def test_a_study_has_a_matrix_for_each_arm() -> None:
    judgement = study()
    assert [(m.benchmark, m.arm) for m in judgement.lenses["matrices"]] == [
        ("pairs", "host"),
        ("pairs", "bridged"),
    ]
    host, bridged = judgement.lenses["matrices"]
    assert len(host.figures) == 28
    assert bridged.figures[14] / host.figures[14] == pytest.approx(1.2, rel=0.05)
    assert host.sentences[1:] == ["No node and no pair stands out."]
    assert "All pairs of nodes" in printed(judgement)
    assert "bridged: latency, 8 B (us)" in printed(judgement)


def test_the_page_draws_heat_maps_in_place_of_cases() -> None:
    judgement = with_matrices(matrices(8, "host") + matrices(8, "bridged"))
    text = page(judgement, "")
    drawn = re.search(r'id="figures">(.*?)</script>', text, re.DOTALL)
    specs: list[dict[str, Any]] = json.loads(drawn[1])
    maps = [s for s in specs if any(one["mark"]["type"] == "rect" for one in s.get("layer", ()))]
    assert len([s for s in maps if len(s["data"]["values"]) == 56]) == 4
    assert "host: latency, 8 B (us)" in text
    assert "1 of 8 nodes is slow: node03" in text
    assert "cases.csv lists every pair of nodes." in text
    assert not any("median launch; shaded" in line for line in text.splitlines())
    names = [name for name, _ in all_figures(judgement)]
    assert len(set(names)) == len(names)
    assert "00-pairs-host-latency-8-b" in names


def test_the_json_has_the_matrices() -> None:
    judgement = with_matrices(matrices(8))
    found = to_json(judgement)
    assert faults(found, SCHEMA) == []
    assert found["matrices"][0]["slow_nodes"][0]["node"] == "node03"
    assert found["matrices"][0]["median"][1][0] is None
