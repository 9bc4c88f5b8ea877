"""Ranks that share cores: what part each has, and when the report says so."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import judgements
from paribus.core import Launch, Notice, Outcome, State
from paribus.judge.notices import Lag
from paribus.probes.values import parts_of_cores, placed
from paribus.report.terminal import print_report
from paribus.stats.matrix import lagging
from paribus.store import Stored
from paribus.words.values import notice_text
from stored import Script, Twist, judged


def facts_of(
    hosts: Sequence[str], slow: Mapping[str, float], seed: int, preempted: int = 300
) -> dict[str, Any]:
    """Return what ranks report of a launch of 2 s, `slow` hosts with their share of the core."""
    noise = np.random.default_rng(seed)
    shares = [slow.get(host, 1.0) * float(noise.uniform(0.98, 1.0)) for host in hosts]
    return {
        "rank.hosts": list(hosts),
        "rank.cpu_s": [2.0 * share for share in shares],
        "rank.involuntary": [preempted if host in slow else 1 for host in hosts],
        "wall_s": 2.0,
    }


def found(several: Sequence[Mapping[str, Any]]) -> list[Notice]:
    lag = Lag()
    for number, facts in enumerate(several, 1):
        launch = Launch(number, number, "allreduce", "new", 1)
        lag.add(Stored(launch, 0, Outcome(State.OK, 1.0, 2.0, 0, ("x",), (), facts), None))
    return lag.notices()


@pytest.mark.parametrize("size", [3, 8, 300])
def test_a_host_with_four_fifths_of_a_core_is_named(size: int) -> None:
    hosts = [f"node{number}" for number in range(1, size + 1)]
    (notice,) = found([facts_of(hosts, {"node2": 0.8}, seed) for seed in range(6)])
    assert [one["host"] for one in notice.figures["slow"]] == ["node2"]
    assert notice.figures["slow"][0]["share"] == pytest.approx(0.79, abs=0.015)
    assert (notice.benchmarks, notice.figures["hosts"]) == (("allreduce",), size)
    said = f"on node2 (79%); on the other {size - 1} hosts 100% (6 launches)"
    assert said in notice_text(notice).replace("80%", "79%").replace(" %", "%")


def test_the_worst_rank_of_a_host_counts() -> None:
    hosts = [f"node{number}" for number in (1, 2, 3, 4) for _ in range(4)]
    several = [facts_of(hosts, {}, seed) for seed in range(6)]
    for facts in several:
        facts["rank.cpu_s"][6] *= 0.8
        facts["rank.involuntary"][6] = 300
    (notice,) = found(several)
    assert [one["host"] for one in notice.figures["slow"]] == ["node2"]


@pytest.mark.parametrize(
    ("launches", "hosts", "slow", "preempted"),
    [
        (6, 8, {}, 300),
        (2, 8, {"node2": 0.8}, 300),  # too few launches
        (6, 2, {"node2": 0.8}, 300),  # too few hosts
        (6, 8, {"node2": 0.97}, 300),  # does not matter
        (6, 8, {"node2": 0.8}, 1),  # a rank that sleeps gives up its core unasked
    ],
)
def test_nothing_else_is(
    launches: int, hosts: int, slow: Mapping[str, float], preempted: int
) -> None:
    names = [f"node{number}" for number in range(1, hosts + 1)]
    assert found([facts_of(names, slow, seed, preempted) for seed in range(launches)]) == []


def test_a_host_that_is_busy_in_one_launch_is_not_slow() -> None:
    names = [f"node{number}" for number in range(1, 9)]
    several = [facts_of(names, {f"node{seed % 8 + 1}": 0.6}, seed) for seed in range(24)]
    assert found(several) == []


@pytest.mark.parametrize("size", [3, 8, 50])
def test_equal_hosts_that_scatter_are_seldom_named(size: int) -> None:
    noise = np.random.default_rng(3)
    named = 0
    for _ in range(200):
        for_good = noise.normal(0, 0.03, size)
        named += bool(lagging(for_good + noise.normal(0, 0.03, (8, size))))
    assert named <= 20  # 5 % of 200, and three standard deviations


def test_the_report_names_the_host() -> None:
    hosts = ["node1", "node2", "node3"]
    selection = judgements.selection("allreduce", ranks=3)
    asked = judgements.study((), benchmarks=(selection,))
    script = Script(
        {"allreduce": {"bridged": 1.2}},
        samples=10,
        twist=lambda launch, attempt: Twist(
            facts=facts_of(hosts, {"node3": 0.8} if launch.arm == "bridged" else {}, launch.number)
        ),
    )
    judgement = judged(asked, script, name="slow", facts=judgements.FACTS)
    (notice,) = [one for one in judgement.notices if one.name == "slow hosts"]
    assert (notice.level, notice.figures["arm"]) == ("warning", "bridged")
    text = io.StringIO()
    print_report(judgement, Console(file=text, width=200, highlight=False))
    assert "ranks had only a part of their cores on node3" in text.getvalue()


def parts(machines: Any, lists: Any) -> list[float]:
    return parts_of_cores(placed(machines, lists))


def test_each_rank_has_its_part_of_the_cores_that_others_may_use_too() -> None:
    assert parts(["m"] * 4, ["0", "0", "1", "1"]) == [0.5] * 4
    assert parts(["m"] * 4, ["0-1"] * 4) == [0.5] * 4
    assert parts(["m", "m", "n", "n"], ["0", "1", "0", "1"]) == [1.0] * 4
    assert parts(["m"] * 3, ["0-3", "4-7", "8,10"]) == [1.0] * 3
    # The third may use the core of either, and each of them is in its way.
    assert parts(["m"] * 3, ["0", "1", "0-1"]) == [0.5, 0.5, 2 / 3]


def test_what_is_not_known_of_every_rank_is_not_known() -> None:
    for machines, lists in ((None, ["0"]), (["m"], None), (["m"], ["0", "0"]), (["m"], ["x"])):
        assert parts(machines, lists) == []
    assert parts(["m", "m"], ["0", ""]) == []


@given(
    st.lists(st.tuples(st.sampled_from("mn"), st.sets(st.integers(0, 9), min_size=1)), max_size=12)
)
def test_ranks_never_have_more_than_there_is(ranks: list[tuple[str, set[int]]]) -> None:
    lists = [",".join(map(str, sorted(cores))) for _, cores in ranks]
    machines = [machine for machine, _ in ranks]
    for machine in "mn":
        every = zip(parts(machines, lists), ranks, strict=True)
        mine = [(part, cores) for part, (where, cores) in every if where == machine]
        assert all(0 < part <= 1 for part, _ in mine)
        apart = len(set().union(*(cores for _, cores in mine))) == sum(len(c) for _, c in mine)
        assert not apart or all(part == 1 for part, _ in mine)


@pytest.mark.parametrize(
    ("bridged", "level", "said"),
    [
        (["0", "0"], "note", "of host and bridged share 1 core, so each waits"),
        (
            ["0", "1"],
            "warning",
            "of host share 1 core, so each waits for the turns of the others. It is",
        ),
    ],
)
def test_the_report_says_where_ranks_share_cores(bridged: list[str], level: str, said: str) -> None:
    lists = {"host": ["0", "0"], "bridged": bridged}
    asked = judgements.study((), benchmarks=(judgements.selection("allreduce", ranks=2),))
    script = Script(
        {"allreduce": {"bridged": 1.2}},
        samples=10,
        twist=lambda launch, attempt: Twist(
            facts={"rank.machines": ["m", "m"], "rank.affinity": lists[launch.arm]}
        ),
    )
    judgement = judged(asked, script, name="shared", facts=judgements.FACTS)
    (notice,) = [one for one in judgement.notices if one.name == "shared cores"]
    assert (notice.level, notice.benchmarks) == (level, ("allreduce",))
    assert said in notice_text(notice)
