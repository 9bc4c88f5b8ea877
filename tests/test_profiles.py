"""Advice by kind of application: what stands for a kind, and how far its interval carries."""

from __future__ import annotations

import json
from dataclasses import replace

import judgements
from judgements import FACTS, SCRIPT, printed, study
from paribus.core import Finding, Judgement, Kind, Launch, State, Word
from paribus.report import export
from stored import Script, Twist, judged

LATE = {"latency": {"bridged": 1.2}, "bandwidth": {"bridged": 1.0}}


def of(judgement: Judgement, kind: Kind) -> Finding:
    return next(one for one in kinds(judgement) if one.benchmark == kind)


def kinds(judgement: Judgement) -> tuple[Finding, ...]:
    found: tuple[Finding, ...] = judgement.lenses["profiles"].kinds
    return found


def test_latency_and_bandwidth_are_distinguished() -> None:
    """Small messages take 20 % longer, large ones do not: the headline says neither."""

    script = Script(LATE | {"triad": {"bridged": 1.0}}, growth=0, base={"triad": 5992.0})
    sizes = {"latency": {"bytes": [8, 64, 1024]}, "bandwidth": {"bytes": [65536, 4 << 20]}}
    asked = study(("latency", "bandwidth", "triad"))
    asked = replace(
        asked,
        benchmarks=tuple(
            replace(one, parameters={**one.parameters, **sizes.get(one.label, {})})
            for one in asked.benchmarks
        ),
    )
    judgement = judged(asked, script, name="two", facts=FACTS)
    latency, bandwidth = of(judgement, Kind.LATENCY), of(judgement, Kind.BANDWIDTH)
    assert latency.verdict.word is Word.SLOWER
    assert latency.comparison
    assert latency.comparison.low < 1.2 < latency.comparison.high
    assert bandwidth.verdict.word is Word.EQUIVALENT
    assert latency.verdict.figures["benchmarks"] == ["latency"]
    said = printed(judgement)
    assert "Kinds of application: bridged latency-bound" in said
    assert "latency-bound (small messages): slower, time +" in said
    assert "bandwidth-bound (large messages): equivalent, within the margin of 2 %" in said
    assert "memory-bound: equivalent" in said
    assert "Not measured: bound by the message rate" in said


def test_an_interval_across_the_margin_stays_undecided() -> None:
    script = replace(SCRIPT, ratios={"latency": {"bridged": 1.02}}, growth=0, usual=0.05)
    judgement = judged(study(("latency",)), script, name="noisy", facts=FACTS, most=12)
    assert of(judgement, Kind.LATENCY).verdict.word is Word.UNDECIDED
    assert "latency-bound (small messages): undecided, time " in printed(judgement)


def test_a_benchmark_without_data_leaves_its_kind_to_the_others() -> None:
    def failing(launch: Launch, attempt: int) -> Twist:
        bad = launch.benchmark == "allreduce" and launch.arm == "bridged"
        return Twist(state=State.FAILED, error="no memory") if bad else Twist()

    asked = study(("latency", "allreduce", "barrier"))
    judgement = judged(asked, replace(SCRIPT, twist=failing), name="one", facts=FACTS)
    found = of(judgement, Kind.SMALL_COLLECTIVES)
    assert found.verdict.figures["benchmarks"] == ["barrier"]
    assert Kind.LARGE_COLLECTIVES not in {one.benchmark for one in kinds(judgement)}


def test_our_own_ep_stands_for_compute_as_that_of_npb_does() -> None:
    """So a prediction needs no suite: what is outside MPI lies between `triad` and `ep`."""
    script = Script({"ep": {"bridged": 1.2}, "triad": {"bridged": 1.0}})
    judgement = judged(study(("ep", "triad")), script, name="x", facts=FACTS)
    assert of(judgement, Kind.COMPUTE).verdict.figures["benchmarks"] == ["ep"]


def test_one_kind_alone_is_no_advice() -> None:
    """It would repeat the headline; of a program of one's own there is no kind at all."""
    judgement = judgements.scaling()
    assert [one.benchmark for one in kinds(judgement)] == [Kind.COMPUTE]
    assert export.to_json(judgement)["advice"] == []
    assert "kinds of application" not in printed(judgement)
    assert "profiles" not in judgements.commands().lenses


def test_json_names_what_was_not_measured() -> None:
    advice = json.loads(json.dumps(export.to_json(judgements.two_arms())))["advice"]
    assert [one["kind"] for one in advice] == [kind.value for kind in Kind]
    assert {one["kind"] for one in advice if one["said"] is None} == {
        *("compute", "storage", "start_up", "gpu"),
    }
