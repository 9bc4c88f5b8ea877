"""Screens of links on scripted stations: ends, paths and groups, in words, JSON and on the page."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from paribus.core import MachineError, UserError
from paribus.screen import plan, words
from paribus.screen.answer import Answer, answer_of
from paribus.screen.page import page
from paribus.screen.printed import to_json
from paribus.store import Store
from screen.fleets import Node, executed, linked, screen_of
from screen.test_answer import SCHEMA, Tags, text_of
from studies import paribus


def nodes_of(number: int) -> list[Node]:
    return [Node(f"n{i}", lambda _: 100.0) for i in range(1, number + 1)]


def answered(
    folder: Path, number: int, slow: Any, racks: dict[str, tuple[str, ...]] | None = None
) -> Answer:
    """Return the answer on so many nodes; `slow` is by how much, from a node to a node."""
    nodes, draw = nodes_of(number), random.Random(1)
    screen = screen_of(nodes, links=True, racks=racks or {})

    def speed(one: str, other: str) -> float:
        return 100 * (1 - slow(one, other)) * math.exp(draw.gauss(0, 0.005))

    plan.write(screen, folder)
    executed(screen, nodes, folder, linked(nodes, speed))
    with Store(folder) as store:
        return answer_of(plan.read(folder), store)


@pytest.fixture(scope="module")
def end(tmp_path_factory: pytest.TempPathFactory) -> Answer:
    """Eight nodes: what is sent to n3 is slow, and what n3 sends is not."""
    folder = tmp_path_factory.mktemp("end")
    return answered(folder, 8, lambda _, other: 0.2 * (other == "n3"))


def test_an_end_that_is_slow_one_way_is_named(end: Answer) -> None:
    [slow] = end.having("slow")
    assert (slow.node, end.ways, end.slow) == ("n3", (), True)
    assert words.headline(end) == "The end n3 is slow."
    speeds = end.speeds["command"]
    assert speeds["n1", "n3"] < 0.9 < speeds["n3", "n1"]
    assert len(speeds) == 8 * 7
    said = text_of(end)
    assert "Among healthy links" in said
    assert "an end" in said
    assert "--exclude=n3" in said


def test_the_answer_on_links_is_as_its_schema_says(end: Answer) -> None:
    found = to_json(end)
    jsonschema.validate(found, SCHEMA)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert len(found["pairs"]) == 8 * 7


def test_the_page_has_all_pairs_and_is_whole(end: Answer) -> None:
    tags = Tags()
    text = page(end)
    tags.feed(text)
    assert tags.open == []
    assert sum(" to " in title for title in tags.titles) == 8 * 7
    assert '<th class="named" scope="col">n3</th>' in text


def test_a_path_is_some_pairs(tmp_path: Path) -> None:
    answer = answered(tmp_path, 8, lambda one, other: 0.2 * ({one, other} == {"n2", "n6"}))
    [way] = answer.ways
    assert (way.kind, way.word, way.pairs) == ("path", "slow", ("n2 - n6",))
    assert words.headline(answer) == "The path n2 - n6: slow."
    assert answer.having("slow") == []
    assert "outline" in page(answer)
    jsonschema.validate(to_json(answer), SCHEMA)


def test_all_pairs_across_are_a_group(tmp_path: Path) -> None:
    names = [one.name for one in nodes_of(12)]
    racks = plan.racks_of(["n[1-4]", "n[5-8]"], names)
    assert [*racks] == ["n[1-4]", "n[5-8]", "n[9-12]"]
    of = {node: rack for rack, members in racks.items() for node in members}

    def slow(one: str, other: str) -> float:
        across = 0.5 * (of[one] != of[other])  # as it is for all
        return 1 - (1 - across) * (0.8 if {of[one], of[other]} == {"n[1-4]", "n[9-12]"} else 1)

    answer = answered(tmp_path, 12, slow, racks)
    [way] = answer.ways
    assert (way.kind, way.word, way.sides) == ("group", "slow", ("n[1-4]", "n[9-12]"))
    assert "all pairs between n[1-4] and n[9-12]" in " ".join(text_of(answer).split())
    assert answer.lines == tuple(answer.having("no sign"))


def test_a_pair_that_cannot_be_reached_ends_no_screen(tmp_path: Path) -> None:
    nodes = nodes_of(8)
    screen = screen_of(nodes, links=True)
    fleet = linked(nodes, lambda *_: 100.0)
    made = fleet.paired
    assert made is not None

    class Closed(Node):
        def __enter__(self) -> Node:
            raise MachineError("no route to host", place="n6", fix="")

    def paired(names: Any, network: str) -> Any:
        station, ready = made(names, network)
        closed = Closed("|".join(names), lambda _: 1.0)
        return (closed if {*names} == {"n2", "n6"} else station), ready

    fleet.paired = paired
    executed(screen, nodes, tmp_path, fleet)
    with Store(tmp_path) as store:
        answer = answer_of(screen, store)
    [way] = answer.ways
    assert (way.word, way.pairs) == ("failed", ("n2 - n6",))
    assert "no route to host" in way.why
    assert answer.having("failed") == []


def test_an_end_is_slow_over_one_of_two_networks(tmp_path: Path) -> None:
    """All networks share one error, and each has its own rows."""
    nodes, draw = nodes_of(8), random.Random(1)
    screen = screen_of(nodes, links=True)
    selections, networks = plan.over(screen.selections, ["ib0", "10.1.0.0/16"])
    assert networks == {"command.ib0": "ib0", "command.10.1.0.0-16": "10.1.0.0/16"}
    margins = dict.fromkeys(networks, 0.04)
    screen = replace(screen, selections=selections, margins=margins, networks=networks)

    def speed(one: str, other: str) -> float:
        return 100 * math.exp(draw.gauss(0, 0.005))

    def over_ib0(one: str, other: str) -> float:
        return speed(one, other) * (0.8 if "n3" in (one, other) else 1)

    plan.write(screen, tmp_path)
    executed(screen, nodes, tmp_path, linked(nodes, speed, {"ib0": over_ib0}))
    with Store(tmp_path) as store:
        answer = answer_of(plan.read(tmp_path), store)
    [slow] = answer.having("slow")
    assert slow.node == "n3"
    assert {one.metric for one in slow.suspects if one.word == "slow"} == {"command.ib0"}
    assert "command.ib0" in text_of(answer)
    jsonschema.validate(to_json(answer), SCHEMA)


def test_several_networks_are_for_links_alone(tmp_path: Path) -> None:
    networks = ("--network", "ib0", "--network", "eth0")
    done = paribus("screen", "pocket:4", *networks, cwd=tmp_path)
    assert done.returncode == 2
    assert "several networks matter to links alone" in done.stderr
    with pytest.raises(UserError, match="measured once"):
        plan.over(screen_of(nodes_of(4)).selections, ["ib0", "ib0"])


def test_racks_that_share_a_node_are_refused() -> None:
    with pytest.raises(UserError, match="n2 is in another rack too"):
        plan.racks_of(["n[1-2]", "n[2-3]"], ["n1", "n2", "n3"])
    assert plan.racks_of(["n[1-9]"], ["n1", "n2"]) == {}


@pytest.mark.parametrize(("benchmarks", "command"), [(["ep"], ""), ([], "true")])
def test_what_no_pair_can_measure_is_refused(benchmarks: list[str], command: str) -> None:
    with pytest.raises(UserError, match="measured by two processes"):
        plan.selections(benchmarks, command, {}, 1, links=True)


def test_racks_of_a_screen_of_nodes_are_refused(tmp_path: Path) -> None:
    done = paribus("screen", "pocket:4", "--rack", "h[1-2]", cwd=tmp_path)
    assert done.returncode == 2
    assert "--rack: applies to --links" in done.stderr
