"""Each GPU of a node is a unit where a benchmark uses one: it is shown alone, and named alone."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from paribus.core import AllocationError, Command, Completed, Hosts, MachineError, UserError
from paribus.hosts.reached import Host
from paribus.launch import station
from paribus.screen import fleet, operators, plan, words
from paribus.screen.answer import answer_of
from paribus.screen.fleet import gpus_of
from paribus.screen.plan import selections, uses_one_gpu
from paribus.screen.printed import to_json
from paribus.store import Gathered, Store
from screen.fleets import Node, executed, fleet_of, screen_of
from screen.test_answer import SCHEMA


class Gpus(Node):
    """A node whose GPU `slow` is slow; `at_once` is how many launches it had at a time."""

    def __init__(self, name: str, slow: str = "") -> None:
        super().__init__(name, lambda _: 100.0)
        self.slow, self.seen, self.now, self.most = slow, list[str](), 0, 0
        self.draw = random.Random(name)

    def figure(self, command: Command) -> float:
        assert command.env["CUDA_VISIBLE_DEVICES"] == command.env["HIP_VISIBLE_DEVICES"]
        assert command.env["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
        gpu = command.env["CUDA_VISIBLE_DEVICES"]
        self.seen.append(gpu)
        return 100 * (0.8 if gpu == self.slow else 1) * math.exp(self.draw.gauss(0, 0.01))


def test_a_slow_gpu_is_named_and_its_node_is_drained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "uses_one_gpu", lambda _: True)
    nodes = [Gpus(f"n{i}", "1" if i == 2 else "") for i in range(4)]
    screen = screen_of(nodes, gpus={"n0": 2, "n1": 2, "n2": 2})
    assert screen.units("command") == tuple(f"n{i}:gpu{k}" for i in range(3) for k in range(2))
    executed(screen, nodes, tmp_path)
    with Store(tmp_path) as store:
        answer = answer_of(screen, store)
    [slow] = answer.having("slow")
    assert slow.node == "n2:gpu1"
    assert nodes[0].seen.count("0") == nodes[0].seen.count("1") >= 3
    assert words.headline(answer) == "n2:gpu1 is slow; 1 node not screened."
    [gone] = answer.having("not screened")
    assert (gone.node, gone.why) == ("n3", "no GPU was found")
    assert operators.exclude(answer) == "--exclude=n2"
    [drain], _ = operators.commands(answer)
    assert "NodeName=n2 State=DRAIN 'Reason=paribus: gpu1 command -" in drain
    jsonschema.validate(to_json(answer), SCHEMA)


def test_all_gpus_of_a_node_whose_job_ends_cannot_be_had_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where each node is lent by itself, and to the others it is nothing."""
    monkeypatch.setattr(plan, "uses_one_gpu", lambda _: True)

    class Ends(Gpus):
        def run(self, command: Command, **how: Any) -> Completed:
            if self.launched == 1:
                raise AllocationError("its job was ended", place=self.name, fix="")
            return super().run(command, **how)

    nodes = [Ends("n0"), *(Gpus(f"n{i}") for i in (1, 2, 3))]
    screen, fleet = screen_of(nodes, gpus={f"n{i}": 2 for i in range(4)}), fleet_of(nodes)
    fleet.singly = True
    executed(screen, nodes, tmp_path, fleet)
    assert fleet.absent == {"n0": "its job was ended"}
    with Store(tmp_path) as store:
        answer = answer_of(screen, store)
    assert {one.node: one.why for one in answer.having("not screened")} == {
        "n0:gpu0": "its job was ended",
        "n0:gpu1": "its job was ended",
    }
    assert len(answer.having("no sign")) == 6


def test_a_round_in_which_no_node_could_be_had_is_the_last(tmp_path: Path) -> None:
    """As where the jobs of all nodes of a batch end at once; a table has no such round."""

    class Ends(Node):
        def run(self, command: Command, **how: Any) -> Completed:
            if self.launched == 1:
                raise AllocationError("its job was ended", place=self.name, fix="")
            return super().run(command, **how)

    nodes = [Ends(f"n{i}", lambda _: 100.0) for i in range(4)]
    screen, fleet = screen_of(nodes), fleet_of(nodes)
    fleet.singly = True
    known, said = executed(screen, nodes, tmp_path, fleet)
    assert said[-1] == "0 units can be had for round 3, too few to compare"
    assert (known.course.round, known.launches) == (2, 4)


def test_a_node_with_two_slow_gpus_is_drained_once(tmp_path: Path) -> None:
    nodes = [Node(f"n{i}", lambda _: 100.0 + random.random()) for i in range(4)]
    screen = screen_of(nodes)
    executed(screen, nodes, tmp_path)
    with Store(tmp_path) as store:
        answer = answer_of(screen, store)
    lines = tuple(
        replace(one, node=f"n0:gpu{i}", word="slow") for i, one in enumerate(answer.lines[:2])
    )
    [drain], _ = operators.commands(replace(answer, lines=lines))
    assert "NodeName=n0 " in drain


def test_benchmarks_of_one_gpu_are_those_that_measure_the_first() -> None:
    one, several, none = selections(["gpu_stream", "gpu_copy gpus=2", "ep"], "", {}, 2)
    assert [uses_one_gpu(each) for each in (one, several, none)] == [True, False, False]


def test_gpus_are_counted_by_the_facts_of_nodes() -> None:
    facts = [Gathered(name, name, 0.0, {"gpu.count": n}) for name, n in (("a", 8), ("b", 0))]
    assert gpus_of([*facts, Gathered("c", "c", 0.0, {})]) == {"a": 8}


def test_who_does_not_answer_or_has_fewer_cores_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    cores = {"n0": 4, "n1": 4, "n2": 2, "n4": 8}

    class Machine:
        def __init__(self, host: Host) -> None:
            self.name = host.name

        def node(self) -> station.Node:
            if self.name not in cores:
                raise MachineError("there is no such host", place=self.name, fix="")
            return station.Node("", tuple((i,) for i in range(cores[self.name])))

    monkeypatch.setattr(fleet, "HostMachine", Machine)
    hosts = [Host(f"n{i}", ("ssh", f"n{i}")) for i in range(5)]
    asked = fleet.Reached(Hosts(()), hosts, {"n9": "drained in Slurm"})
    found, usual = fleet.answering(asked)
    assert [one.name for one in found.there] == ["n0", "n1", "n4"]
    assert usual == 4
    assert found.absent == {
        "n2": "has 2 cores, most others have 4",
        "n3": "there is no such host",
        "n9": "drained in Slurm",
    }
    cores.clear()
    with pytest.raises(UserError, match="no node can be screened: there is no such host"):
        fleet.answering(asked)
