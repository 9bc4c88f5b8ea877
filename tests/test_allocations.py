"""Nodes that scatter more than launches: what an interval over blocks holds for, and what not."""

from __future__ import annotations

import math
import random
from collections import Counter
from pathlib import Path

import pytest

import judgements
from paribus.core import (
    Case,
    Judgement,
    Launch,
    Notice,
    NoticeName,
    Settings,
    ShareError,
    State,
    StudyError,
    Word,
)
from paribus.judge.allocations import JOB, NODES, over_nodes
from paribus.judge.evidence import Entry, Evidence
from paribus.judge.headlines import headlines
from paribus.launch.lease import check_share
from paribus.plan import Plan
from paribus.plan import frozen as plans
from paribus.stats.looks import Looks
from paribus.studyfile.load import load_study
from paribus.words.values import notice_fix, notice_text
from stored import Script, Twist, judged
from studies import write_arms

STUDIES = 300
OF_NODES, OF_LAUNCHES = 0.05, 0.02
"""Standard deviations of the logarithms."""

WRONG = (Word.FASTER, Word.SLOWER)


def study(
    seed: int, per_allocation: int
) -> tuple[Plan, Evidence, dict[tuple[int, str], str], float]:
    """Return a study of equal arms whose nodes are drawn anew after so many blocks.

    With its nodes by block and arm, and the true log ratio of those of the first allocation.
    """
    plan = plans.freeze(judgements.study(("barrier",), settings=Settings(seed=seed)), {})
    [metric] = plan.metrics["barrier"][:1]
    draw, evidence = random.Random(seed), Evidence(plan.metrics)
    lent: dict[tuple[int, str], str] = {}
    effects: dict[str, float] = {}
    for launch in (launch for block in plan.blocks() for launch in block):
        number = max(0, launch.block - 1) // per_allocation
        lent[launch.block, launch.arm] = nodes = f"{launch.arm}{number}"
        effect = effects.setdefault(nodes, draw.gauss(0, OF_NODES))
        value = 20 * math.exp(effect + draw.gauss(0, OF_LAUNCHES))
        figures = {(metric.name, Case()): value}
        evidence.add_entry(Entry(launch, State.OK, float(launch.number), 1.0, "", figures))
    return plan, evidence, lent, effects["bridged0"] - effects["host0"]


def test_with_one_allocation_each_the_verdict_is_about_its_nodes() -> None:
    """Its interval holds their ratio; as a verdict on equal arms two in five would be wrong."""
    held = wrong = 0
    for seed in range(STUDIES):
        plan, evidence, lent, truth = study(seed, 1000)
        [head] = headlines(plan, evidence, plan.study.benchmarks[0], over=True)
        held += head.comparison.low <= math.exp(truth) <= head.comparison.high
        wrong += head.verdict.word in WRONG
        assert over_nodes(plan, evidence, "barrier", "bridged", lent, 8) == {}
    assert held >= 0.94 * STUDIES
    assert wrong >= 0.35 * STUDIES


def test_over_many_allocations_the_word_for_other_nodes_errs_in_few_studies() -> None:
    """The study ends as soon as its blocks decide, however many allocations that took."""
    words: Counter[str] = Counter()
    held = 0
    for seed in range(STUDIES):
        plan, evidence, lent, _ = study(seed, 1)
        [head] = headlines(plan, evidence, plan.study.benchmarks[0], over=True)
        assert head.comparison is not None
        so_far = {key: nodes for key, nodes in lent.items() if key[0] <= head.comparison.blocks}
        over = over_nodes(plan, evidence, "barrier", "bridged", so_far, 8)
        words[over["word"]] += 1
        held += over["low"] <= 1 <= over["high"]
    assert words[Word.FASTER] + words[Word.SLOWER] <= 0.05 * STUDIES, words
    assert held >= 0.94 * STUDIES


def test_a_few_allocations_give_an_interval_that_holds() -> None:
    """Of five blocks each: the blocks of an allocation count once, or most intervals would err."""
    held = by_blocks = 0
    for seed in range(STUDIES):
        plan, evidence, lent, _ = study(seed, 5)
        over = over_nodes(plan, evidence, "barrier", "bridged", lent, 8)
        assert over["allocations"] == 12
        held += over["low"] <= 1 <= over["high"]
        each = {key: f"{key}" for key in lent}
        alone = over_nodes(plan, evidence, "barrier", "bridged", each, 8)
        by_blocks += alone["low"] <= 1 <= alone["high"]
    assert held >= 0.96 * STUDIES  # 98.7 % is the level of a look
    assert by_blocks <= 0.8 * STUDIES


def lending(per_allocation: int, *, same: bool) -> Judgement:
    """Return a study whose launches were on nodes of a scheduler, drawn anew after some blocks."""

    def twist(launch: Launch, attempt: int) -> Twist:
        number = max(0, launch.block - 1) // per_allocation
        nodes = f"n{number}" if same else f"{launch.arm}{number}"
        return Twist(facts={JOB: f"{number}-{'' if same else launch.arm}", NODES: nodes})

    asked = judgements.study(("barrier",), settings=Settings(seed=3))
    script = Script({"barrier": {"bridged": 1.2}}, twist=twist, scatter={"barrier": 0.02})
    return judged(asked, script, name="lent")


def notice(judgement: Judgement) -> Notice:
    [found] = [one for one in judgement.notices if one.name is NoticeName.ALLOCATIONS]
    return found


def test_the_report_names_allocations_and_nodes() -> None:
    same = notice(lending(1000, same=True))
    assert same.level == "note"
    assert notice_text(same) == (
        "Within each allocation all arms had the same nodes: host 1 allocation (n0); bridged 1"
        " allocation (n0)."
    )
    once = notice(lending(1000, same=False))
    assert once.level == "warning"
    assert "host 1 allocation (host0); bridged 1 allocation (bridged0)" in notice_text(once)
    assert "The verdicts are about these nodes." in notice_text(once)
    assert f"that takes {once.figures['fewest']} allocations or more" in notice_text(once)
    assert "same_nodes = true" in notice_fix(once)
    assert "For a verdict on other nodes: allocations = 8 in [plan]." in notice_fix(once)
    often = notice(lending(1, same=False))
    assert often.figures["arms"]["host"]["allocations"] >= 8
    [other] = often.figures["others"]
    assert other["word"] == "slower"
    assert "For other nodes of the same kind: barrier, bridged slower, 1." in notice_text(often)
    assert not [n for n in of_no_scheduler() if n.name is NoticeName.ALLOCATIONS]


def of_no_scheduler() -> tuple[Notice, ...]:
    asked = judgements.study(("barrier",), settings=Settings(seed=3))
    return judged(asked, Script({"barrier": {"bridged": 1.2}}), name="own").notices


ASKED = 'scheduler = { name = "slurm", nodes = 2, time = "5 min"%s }'


@pytest.mark.parametrize(
    ("ours", "theirs", "cause"),
    [
        ("", ASKED % "", "plan.same_nodes = True: arm a asks no scheduler for nodes"),
        (ASKED % "", ASKED % ', partition = "q"', "no node is in two allocations at a time"),
        (
            ASKED.replace("slurm", "flux") % "",
            ASKED.replace("slurm", "flux") % "",
            "Paribus does not ask Flux for nodes by name",
        ),
        (
            f"{ASKED % ''}\nranks_per_host = 2",
            f"{ASKED % ''}\nranks_per_host = 1",
            "arms.b.ranks_per_host: latency has ranks on 2 nodes, and on 1 in a",
        ),
    ],
)
def test_same_nodes_are_refused_where_they_cannot_be_had(
    tmp_path: Path, ours: str, theirs: str, cause: str
) -> None:
    with pytest.raises(StudyError) as refused:
        load_study(write_arms(tmp_path, ours, theirs, plan="same_nodes = true"))
    assert cause in str(refused.value)


def divided(folder: Path, plan: str, arms: str = ASKED % "") -> Path:
    return write_arms(folder, arms, ASKED % ', partition = "q"', factor="cluster", plan=plan)


@pytest.mark.parametrize(
    ("plan", "arms", "cause"),
    [
        ("allocations = 9\nblocks = 8", ASKED % "", "allocations = 9: is more than there are blo"),
        ("allocations = 4", "", "plan.allocations = 4: arm a asks no scheduler for nodes"),
        ("allocations = 1", ASKED % "", "plan.allocations = 1"),
        ("allocations = 4\nsame_nodes = true", ASKED % "", "asks for other nodes, same_nodes for"),
        ("allocations = 4\nunit = 'session'", ASKED % "", "is of launches with an end"),
        ("allocations = 4\nmonitor = true", ASKED % "", "is of launches with an end"),
        ("allocations = 4\ndesign = 'few'", ASKED % "", "is a design of its own, and not few"),
        ("design = 'allocations'", ASKED % "", "divides the blocks over allocations"),
    ],
)
def test_allocations_that_make_no_sense_are_refused(
    tmp_path: Path, plan: str, arms: str, cause: str
) -> None:
    with pytest.raises(StudyError) as refused:
        load_study(divided(tmp_path, plan, arms))
    assert cause in str(refused.value)


def test_blocks_are_divided_over_allocations_and_judged_once_all_were_had(tmp_path: Path) -> None:
    plan = plans.freeze(load_study(divided(tmp_path, "allocations = 4\nblocks = 10")), {})
    shares = [plan.design.allocation(block) for block in range(11)]
    assert shares == [0, 0, 0, 0, 1, 1, 2, 2, 2, 3, 3]
    assert plan.looks == Looks((10,), 0.05)
    said = plan.design.to_come(plan.looks.at, plan.looks.confidence)
    assert said[-2:] == [
        "4 allocations of each arm, asked for anew after blocks 3, 5 and 8",
        "a verdict about other nodes takes 6 allocations",
    ]
    assert plan.design.launched().endswith("and allocated anew after blocks 3, 5 and 8.")
    rows = plan.design.rows(plan.looks.at, plan.looks.confidence)
    assert rows["Allocations"] == "4 of each arm, anew after blocks 3, 5 and 8"
    plans.write_plan(plan, tmp_path)
    assert plans.read_plan(tmp_path) == plan


def test_a_sitting_ends_where_the_next_share_begins(tmp_path: Path) -> None:
    plan = plans.freeze(load_study(divided(tmp_path, "allocations = 4\nblocks = 10")), {})
    share = check_share(plan, 0, None)
    assert check_share(plan, 3, share) == 0
    with pytest.raises(ShareError, match="block 4 is the first of share 2 of 4"):
        check_share(plan, 4, share)
    assert check_share(plan, 4, None) == 1  # of the sitting that goes on


def test_a_study_on_one_set_of_nodes_is_not_divided() -> None:
    plan = plans.freeze(judgements.study(("barrier",), settings=Settings(seed=1)), {})
    assert {check_share(plan, block, 0) for block in range(61)} == {0}
