"""Execution on a station that hangs, dies, lies or is slow: blocks stay whole, nothing is lost."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from paribus.core import (
    Completed,
    Judgement,
    MachineError,
    Outcome,
    Scaling,
    Scheduler,
    State,
    Word,
)
from paribus.judge.conclude import conclude
from paribus.judge.evidence import collect
from paribus.launch.execute import HELD_UP, RETRY, UNFINISHED, execute
from paribus.launch.lease import WINDOW_S, held_up
from paribus.launch.ready import make_ready
from paribus.launch.station import Lease
from paribus.plan import frozen as plans
from paribus.store import Store, Stored
from paribus.studyfile.load import load_study
from stations import Answer, ScriptedStation, hangs, prints
from studies import write_study

ARMS = '[arms.a]\nenv = { ARM = "a" }\n[arms.b]\nenv = { ARM = "b" }\n'


def executed(
    folder: Path,
    *,
    a: list[Answer],
    b: list[Answer],
    blocks: int = 8,
    sizes: tuple[int, ...] = (),
    lease: Lease | None = None,
    plan_keys: str = "",
) -> tuple[list[Stored], Judgement]:
    """Return what is stored of a study of 8 blocks on a station that answers so, and its verdict.

    The first answer is that to the warm-up. With `sizes` the study scales over them. In `folder`
    may be what an earlier sitting stored.
    """
    study = load_study(write_study(folder, arms=ARMS, plan=f"blocks = {blocks}\n{plan_keys}"))
    if sizes:
        (one,) = study.benchmarks
        several = (replace(one, label=f"steady_{n}", of="steady", ranks=n) for n in sizes)
        study = replace(study, benchmarks=tuple(several), scaling=Scaling("ranks"))
    ready = make_ready(study, lambda _: None)
    out = folder / "out"
    if out.exists():
        plan = plans.read_plan(out)
    else:
        out.mkdir()
        plan = plans.freeze(study, plans.software())
        plans.write_plan(plan, out)
    station = ScriptedStation(folder, a=a, b=b)
    station.lease = lease
    try:
        with Store(out, write=True) as store:
            store.bind_plan(plan.sha256)
            evidence = execute(plan, store, {"a": station, "b": station}, ready, lambda _: None)
            stored = list(store.launches(void=True))
            assert evidence == collect(plan, stored)
            judgement = conclude(plan, store, evidence)
            assert judgement == conclude(plan, store)
            return stored, judgement
    finally:
        Path(station.scratch).rmdir()


def test_a_launch_that_dies_takes_its_block_with_it_once(tmp_path: Path) -> None:
    dies = prints("", exit_code=1)
    stored, _ = executed(
        tmp_path, a=[prints("2.00017")], b=[prints("2.00017"), dies, prints("2.00013")]
    )
    voided = [one for one in stored if one.void]
    assert {one.void for one in voided} == {RETRY}
    assert sorted(one.launch.arm for one in voided) == ["a", "b"]
    assert {one.outcome.state for one in stored if not one.void} == {State.OK}


def test_a_launch_that_lies_is_no_figure(tmp_path: Path) -> None:
    """Exit code 0 with half an output, with two outputs, with none: never a value."""
    lies = [prints("2.00013"), *map(prints, ("nan", "2.0 2.1", "", "-1", "two") * 4)]
    stored, judgement = executed(tmp_path, a=[prints("2.00017")], b=lies)
    ended = {one.outcome.state for one in stored if one.launch.arm == "b" and one.launch.block > 0}
    assert ended == {State.INVALID}
    (finding,) = judgement.headlines
    assert finding.verdict.word not in (Word.FASTER, Word.SLOWER, Word.EQUIVALENT)


def test_a_launch_that_hangs_is_no_figure_either(tmp_path: Path) -> None:
    stored, _ = executed(tmp_path, a=[prints("2.00017")], b=[prints("2.00013"), hangs])
    ended = {one.outcome.state for one in stored if one.launch.arm == "b" and one.launch.block > 0}
    assert ended == {State.TIMEOUT}


def test_a_slow_station_has_slower_launches_not_other_figures(tmp_path: Path) -> None:
    """What a launch measured counts, not how long the station took over it."""
    quick, slow = [prints("2.00017", wall_s=0.01)], [prints("2.00017", wall_s=9.0)]
    stored, judgement = executed(tmp_path, a=quick, b=slow)
    assert max(one.outcome.wall_s for one in stored) == 9.0
    (finding,) = judgement.headlines
    assert finding.verdict.word is Word.EQUIVALENT
    assert finding.comparison.ratio == 1.0


class Lent:
    """A lease of a scheduler that, when asked, says by how long it was suspended."""

    ends_at = math.inf

    def __init__(self, *suspended_s: float) -> None:
        self.suspended_s = [*suspended_s]

    def ended(self) -> None: ...

    def job(self, asked: Scheduler) -> str:
        return "1"

    def nodes_of(self, asked: Scheduler) -> tuple[str, ...]:
        return ("n1",)

    def counters(self) -> dict[str, dict[str, int]]:
        return {}

    def prolonged_s(self) -> float:
        return self.suspended_s.pop(0) if self.suspended_s else 0.0


@pytest.mark.parametrize("arm", ["a", "b"])
def test_a_block_in_which_nodes_were_suspended_is_rerun_whichever_arm_it_met(
    tmp_path: Path, arm: str
) -> None:
    """Once, and whole. A launch that is slow by itself counts: only the scheduler is asked."""
    quick, slow = prints("2.00017"), prints("2.00013", wall_s=WINDOW_S + 1)
    met = {"a": [quick], "b": [quick]} | {arm: [quick, slow, quick, slow, quick]}
    lease = Lent(WINDOW_S + 5)
    stored, _ = executed(tmp_path, a=met["a"], b=met["b"], lease=lease)
    voided = [one for one in stored if one.void]
    assert {one.void for one in voided} == {HELD_UP}
    assert sorted(one.launch.arm for one in voided) == ["a", "b"]
    assert len({one.launch.block for one in voided}) == 1
    counted = [one.outcome.wall_s for one in stored if not one.void and one.launch.arm == arm]
    assert counted.count(WINDOW_S + 1) == 1


def test_a_launch_that_starts_late_after_the_one_before_is_held_up(tmp_path: Path) -> None:
    station = ScriptedStation(tmp_path)
    first = Outcome(State.OK, 1000.0, 2.0, 0, ("a",))
    for wait_s, late in ((1.0, False), (WINDOW_S + 1, True)):
        second = replace(first, started=first.started + first.wall_s + wait_s)
        station.lease = None
        assert not held_up([station], [first, second]), "nobody else's queue holds up own hosts"
        station.lease = Lent()
        assert held_up([station], [first, second]) == late


def test_a_machine_that_fails_ends_the_sitting_and_the_next_goes_on(tmp_path: Path) -> None:
    def gone(out: Path, err: Path) -> None:
        raise MachineError("the node is gone", place="b", fix="start it")

    good = prints("2.00017")
    with pytest.raises(MachineError, match="the node is gone"):
        executed(tmp_path, a=[good], b=[good, good, gone])
    with Store(tmp_path / "out") as store:
        before = len(store.counting())
    assert before >= 4
    stored, _ = executed(tmp_path, a=[good], b=[good])
    assert len([one for one in stored if not one.void]) == 18
    assert {one.void for one in stored if one.void} <= {UNFINISHED}


def test_the_sizes_of_a_benchmark_go_on_together(tmp_path: Path) -> None:
    """One that is decided early goes on as long as another: they are compared block by block."""

    def answers(out: Path, err: Path) -> Completed:
        number = int(out.name[:4])
        noisy = "steady_2" in out.name and out.name[5:].startswith("0-b")
        return prints(f"{(1, 2, 4)[number // 8 % 3] if noisy else 2.00017}")(out, err)

    stored, judgement = executed(tmp_path, a=[answers], b=[answers], blocks=12, sizes=(1, 2))
    early, late = judgement.headlines
    assert early.verdict.word is Word.EQUIVALENT
    assert early.comparison
    assert early.comparison.blocks == 8
    assert late.verdict.word is Word.UNDECIDED
    for name in ("steady_1", "steady_2"):
        blocks = {one.launch.block for one in stored if one.launch.benchmark == name}
        assert blocks == set(range(13))
    known = judgement.lenses["scaling"][1].efficiency
    assert known
    assert (known.blocks, known.ratio) == (12, pytest.approx(0.5))
