"""Rounds on scripted stations: what one node does costs no other anything, and nothing is lost."""

from __future__ import annotations

import math
import random
import time
from dataclasses import replace
from pathlib import Path

import pytest

from paribus.core import StoreError
from paribus.screen import plan, rounds, words
from paribus.screen.answer import Answer, answer_of
from paribus.screen.known import known_of
from paribus.screen.nodes import ROUNDS
from paribus.screen.rounds import execute
from paribus.store import Store
from screen.fleets import Node, executed, fleet_of, screen_of


def nodes_of(number: int, slow: dict[int, float] | None = None, noise: float = 0.01) -> list[Node]:
    def node(i: int) -> Node:
        draw = random.Random(i)
        level = 1 - (slow or {}).get(i, 0.0)
        return Node(f"n{i}", lambda _: 100 * level * math.exp(draw.gauss(0, noise)))

    return [node(i) for i in range(number)]


def answered(screen: plan.Screen, folder: Path) -> Answer:
    with Store(folder) as store:
        return answer_of(screen, store)


def test_a_slow_node_is_named_and_what_is_said_of_it(tmp_path: Path) -> None:
    nodes = nodes_of(12, {5: 0.15})
    screen = screen_of(nodes)
    executed(screen, nodes, tmp_path)
    answer = answered(screen, tmp_path)
    [slow] = answer.having("slow")
    assert slow.node == "n5"
    assert answer.whole
    assert len(answer.having("no sign")) == 11
    assert words.headline(answer) == "n5 is slow."
    assert words.reason([slow]).startswith("paribus: command -1")


@pytest.mark.parametrize("does", ["hangs", "dies", "stuck"])
def test_a_node_that_fails_costs_nobody_else_a_round(
    does: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "LEAST_S", 0.5)
    monkeypatch.setattr(rounds, "ENDING_S", 0.5)
    nodes = nodes_of(8)
    nodes[3].does = {2: does}
    screen = screen_of(nodes)
    known, _ = executed(screen, nodes, tmp_path)
    nodes[3].released.set()
    table = known.tables["command"]
    assert math.isnan(table[2]["n3"])
    others = [row[f"n{i}"] for n, row in table.items() if n <= ROUNDS for i in range(8) if i != 3]
    assert len(others) == 7 * ROUNDS
    assert not any(map(math.isnan, others))
    if does == "stuck":  # it is launched no more: failed twice in a row
        assert nodes[3].launched == 2
        [failed] = answered(screen, tmp_path).having("failed")
        assert failed.node == "n3"
        assert "has not ended" in failed.why
    else:
        assert not math.isnan(table[3]["n3"])
        assert answered(screen, tmp_path).having("failed") == []


def test_a_dead_node_has_failed_with_its_reason(tmp_path: Path) -> None:
    nodes = nodes_of(8)
    nodes[2].does = dict.fromkeys(range(2, 40), "dies")
    screen = screen_of(nodes)
    executed(screen, nodes, tmp_path)
    [failed] = answered(screen, tmp_path).having("failed")
    assert failed.why == "there is no answer any more"


@pytest.mark.parametrize("after", [1, 13, 30, 47])
def test_an_interrupted_screen_goes_on_as_if_it_had_not_been(after: int, tmp_path: Path) -> None:
    """Launches that are stored are not made again, and the same are wanted."""
    whole = nodes_of(12, {5: 0.15})
    screen = screen_of(whole, at_once=1)
    executed(screen, whole, tmp_path / "whole")

    class StoppedError(Exception):
        pass

    count = 0
    nodes = nodes_of(12, {5: 0.15})

    def counted(node: Node) -> None:
        speed = node.speed

        def reported(number: int) -> float:
            nonlocal count
            count += 1
            if count == after:
                raise StoppedError
            return speed(number)

        node.speed = reported

    for node in nodes:
        counted(node)
    with pytest.raises(StoppedError):
        executed(screen, nodes, tmp_path / "part")
    known, _ = executed(screen, nodes, tmp_path / "part")
    reference = answered(screen, tmp_path / "whole")
    assert known.launches == reference.launches
    rows = {n: set(row) for n, row in known.tables["command"].items()}
    with Store(tmp_path / "whole") as store:
        other = known_of(screen, store.launches(void=True)).tables["command"]
    assert rows == {n: set(row) for n, row in other.items()}


def test_a_node_that_cannot_be_had_any_more_has_not_failed(tmp_path: Path) -> None:
    """As of another user's job when a screen of a partition goes on: it is not screened."""
    nodes = nodes_of(8)
    screen = screen_of(nodes)
    fleet = fleet_of(nodes)
    del fleet.stations["n4"]
    fleet.absent["n4"] = "allocated in Slurm"
    with Store(tmp_path, write=True) as store:
        store.bind_plan(screen.digest)
        execute(known_of(screen, ()), store, fleet, lambda _: None)
    answer = answered(screen, tmp_path)
    [one] = answer.having("not screened")
    assert (one.node, one.why) == ("n4", "allocated in Slurm")
    assert answer.having("failed") == []


def test_no_round_begins_beyond_the_budget(tmp_path: Path) -> None:
    nodes = nodes_of(8, {1: 0.2})
    screen = screen_of(nodes)
    said: list[str] = []
    with Store(tmp_path, write=True) as store:
        store.bind_plan(screen.digest)
        execute(known_of(screen, ()), store, fleet_of(nodes), said.append, budget_s=0.0)
    answer = answered(screen, tmp_path)
    assert answer.course.round <= 1
    assert not answer.whole
    assert "budget" in said[-1]
    assert words.measured(answer).endswith("Not complete: --resume goes on.")
    assert {one.word for one in answer.lines} == {"undecided"}
    assert "nothing is promised" in words.promise(answer)[0]


def test_a_plan_that_was_changed_is_refused(tmp_path: Path) -> None:
    screen = screen_of(nodes_of(4))
    plan.write(screen, tmp_path)
    assert plan.read(tmp_path) == screen
    path = tmp_path / plan.NAME
    path.write_text(path.read_text().replace('"command": 0.04', '"command": 0.4'))
    with pytest.raises(StoreError, match="changed since it was frozen"):
        plan.read(tmp_path)
    evil = replace(screen, selections=(replace(screen.selections[0], file="/tmp/x.py"),))
    path.unlink()
    plan.write(evil, tmp_path)
    with pytest.raises(StoreError, match="a file to execute"):
        plan.read(tmp_path)
    with pytest.raises(StoreError, match="holds a screen already"):
        plan.write(screen, tmp_path)


def test_a_screen_of_another_version_is_refused_with_that_reason(tmp_path: Path) -> None:
    path = tmp_path / plan.NAME
    path.write_text('{"schema": "paribus.screen-plan/1", "nodes": ["n1"]}')
    with pytest.raises(StoreError, match="of another version of Paribus") as reported:
        plan.read(tmp_path)
    assert reported.value.fix == "restore it, or screen again"


@pytest.mark.slow
def test_a_thousand_nodes_cost_the_driver_little(tmp_path: Path) -> None:
    """A fleet's launches, stored and answered: processor time of all of it, by launch."""
    nodes = nodes_of(1000, dict.fromkeys(range(0, 1000, 100), 0.12))
    screen = screen_of(nodes)
    begin = time.process_time()
    known, _ = executed(screen, nodes, tmp_path)
    answer = answered(screen, tmp_path)
    each = (time.process_time() - begin) / known.launches
    print(f"{known.launches} launches, {each * 1000:.1f} ms each")
    assert {one.node for one in answer.having("slow")} == {f"n{i}" for i in range(0, 1000, 100)}
    assert each < 0.006, f"{each * 1000:.1f} ms a launch"
