"""Ranks that share cores: what part each has, and when the report says so."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import judgements
from paribus.probes.values import parts_of_cores, placed
from paribus.words.values import notice_text
from stored import Script, Twist, judged


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
