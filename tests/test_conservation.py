"""Every number of launches and of failures in a report adds up to the rows of the store."""

from __future__ import annotations

import csv
import io
import random
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from rich.console import Console

import judgements
from paribus.core import (
    Arm,
    Case,
    Judgement,
    Launch,
    NoticeName,
    Outcome,
    Sample,
    Settings,
    State,
    Study,
    Word,
)
from paribus.judge.conclude import conclude
from paribus.judge.evidence import collect
from paribus.launch.progress import progress
from paribus.paper.methods import methods
from paribus.plan import frozen as plans
from paribus.report import html
from paribus.report.advice import next_steps
from paribus.report.export import launches_csv, to_json
from paribus.report.sentences import launches_text
from paribus.report.terminal import print_report
from paribus.store import Store
from paribus.words.values import reason_of
from stored import MEMORY

RERUN = "a launch of this block failed; the block was rerun"
BAD = (State.FAILED, State.TIMEOUT, State.INVALID)
THREE = tuple(map(Arm, ("host", "bridged", "third")))
DESIGNS: Mapping[str, Study] = {
    name: judgements.study((), arms=arms, benchmarks=few, settings=settings)
    for few in [
        tuple(
            judgements.selection(label, parameters={"bytes": [8]}, endpoints=("median",))
            for label in ("latency", "barrier")
        )
    ]
    for name, arms, settings in (
        ("pairs", judgements.ARMS, Settings(seed=1, blocks=12)),
        ("three arms", THREE, Settings(seed=2, blocks=12)),
        ("few", judgements.ARMS, Settings(seed=3, blocks=12, design="few")),
        ("duet", judgements.ARMS, Settings(seed=4, blocks=12, layout="duet")),
        ("sessions", judgements.ARMS, Settings(seed=5, blocks=12, unit="session", launches=3)),
        ("monitor", judgements.ARMS, Settings(seed=6, monitor=True)),
    )
}


@dataclass(frozen=True, slots=True)
class Row:
    """A launch as it is stored."""

    number: int
    attempt: int
    benchmark: str
    arm: str
    block: int
    state: str
    void: str
    warm_up: bool


@dataclass(frozen=True, slots=True)
class Made:
    """A study of a generated store, with what is stored and what was said of it."""

    judgement: Judgement
    rows: tuple[Row, ...]
    failures_so_far: int

    def launches(self, labels: Iterable[str] = (), arms: Iterable[str] = ()) -> list[Row]:
        """Return the rows that are no warm-up, of some benchmarks and arms (none: all)."""
        return [
            row
            for row in self.rows
            if not row.warm_up
            if row.benchmark in (labels or (row.benchmark,)) and row.arm in (arms or (row.arm,))
        ]


def bad(rows: Iterable[Row]) -> int:
    return sum(row.state != "ok" for row in rows)


def first(rows: Iterable[Row]) -> list[Row]:
    """Return the first attempts of launches: of each the first one that no fault hit."""
    found: dict[int, Row] = {}
    for row in sorted(rows, key=lambda row: (row.number, row.attempt)):
        if row.state != "fault":
            found.setdefault(row.number, row)
    return list(found.values())


@cache
def made(design: str, seed: int) -> Made:
    """Return a study that ended somewhere, with failures and reruns, all as the seed drew them."""
    draw = random.Random(f"{design} {seed}")
    study = DESIGNS[design]
    frozen = plans.freeze(study, {})
    often = draw.choice((0.0, 0.02, 0.1, 0.3, 1.0))
    rerun = draw.choice((0.0, 0.05, 0.3, 1.0))
    alone = draw.choice((*(arm.name for arm in study.arms), ""))
    end = draw.randrange(1, 14)
    memory = MEMORY if MEMORY.is_dir() else None
    with TemporaryDirectory(prefix="paribus-adds-up-", dir=memory) as folder:
        with Store(Path(folder), write=True) as store:
            for block in frozen.blocks():
                if block[0].block > end:
                    break
                again = sum(draw.random() < rerun for _ in range(2))
                for attempt in range(again + 1):
                    for launch in block:
                        fails = alone in ("", launch.arm) and draw.random() < often
                        void = RERUN if attempt < again else None
                        states = (*BAD, *((State.FAULT,) if void else ()))
                        state = draw.choice(states) if fails else State.OK
                        at = float(len(block) * attempt + 10 * launch.number)
                        store.append(launch, outcome(launch, state, at), void=void)
        with Store(Path(folder)) as store:
            judgement = conclude(frozen, store)
            evidence = collect(frozen, store.launches(void=True))
        so_far = progress(
            frozen, evidence, None, undecided=(), elapsed_s=0, launches_s=0,
            findings=dict.fromkeys(frozen.metrics, ()),
        ).failures  # fmt: skip
        with closing(sqlite3.connect(Path(folder) / "launches.db")) as db:
            columns = "number, attempt, benchmark, arm, block, state, void, place"
            rows = tuple(
                Row(
                    number,
                    attempt,
                    label,
                    arm,
                    block,
                    state,
                    void or "",
                    not (place if frozen.session else block),
                )
                for number, attempt, label, arm, block, state, void, place in db.execute(
                    f"SELECT {columns} FROM launches"
                )
            )
    return Made(judgement, rows, so_far)


def outcome(launch: Launch, state: State, at: float) -> Outcome:
    value = (9.0 if launch.arm == "host" else 10.0) * (1 + launch.number % 7 / 1000)
    metric = "time" if launch.benchmark == "barrier" else "latency"
    samples = (Sample(metric, Case.of(bytes=8), (value,) * 4),)
    error = "" if state is State.OK else "generated to fail"
    return Outcome(state, at, 1.0, 0, (), samples if state is State.OK else (), {}, error)


def shown(judgement: Judgement) -> dict[str, str]:
    """Return what the report says, by where it says it, without lines and tags."""
    found = {"methods": methods(judgement)}
    for name, brief in (("terminal", False), ("brief", True)):
        file = io.StringIO()
        print_report(judgement, Console(file=file, width=200), brief=brief)
        found[name] = " ".join(file.getvalue().split())
    page = f"{launches_text(judgement)} {html.failures(judgement)}"
    found["html"] = " ".join(re.sub("<[^>]*>", " ", page).split())
    return found


FAILED = re.compile(r"(\d+) of (\d+) launches failed(?: \((\d+) of (\d+) first attempts\))?")
WHOLE = re.compile(
    r"(\d+) launch(?:es)?(?: in \d+ [a-z ]+)?(?: in [\d.]+ \w+(?: [\d.]+ \w+)?)?, (\d+) failed"
    r"(?: \((\d+) of (\d+) first attempts\))?"
)


def counts(rows: list[Row]) -> tuple[str, str, str, str]:
    """Return what must be reported of rows: failures, launches, and both of first attempts."""
    ones = first(rows)
    reported = bad(rows) and ones and len(ones) < len(rows)
    of_first = (str(bad(ones)), str(len(ones))) if reported else ("", "")
    return str(bad(rows)), str(len(rows)), *of_first


EVERY = [(design, seed) for design in DESIGNS for seed in range(30)]


@pytest.fixture
def several(sample: Callable[..., list[tuple[str, int]]]) -> list[Made]:
    return [made(design, seed) for design, seed in sample(EVERY)]


def test_every_row_is_in_the_json_once(several: list[Made]) -> None:
    for one in several:
        table = to_json(one.judgement)
        launches = [*table["launches"], *table["voided"]]
        reported = [(p["number"], p["attempt"], p["state"], p["void"]) for p in launches]
        assert sorted(reported) == sorted((r.number, r.attempt, r.state, r.void) for r in one.rows)
        for tally in table["tallies"]:
            name = (tally["benchmark"], tally["arm"])
            every = [row for row in one.rows if (row.benchmark, row.arm) == name]
            mine = [row for row in every if not row.warm_up]
            states = Counter(row.state for row in mine)
            kinds = ("failed", "timed_out", "invalid", "faults")
            assert [tally[kind] for kind in kinds] == [
                states[state] for state in ("failed", "timeout", "invalid", "fault")
            ]
            assert tally["rerun"] == sum(bool(row.void) for row in mine)
            assert tally["counted"] + tally["rerun"] == len(mine)
            assert (tally["first"], tally["first_failed"]) == (len(first(mine)), bad(first(mine)))
            warm_up = [row for row in every if row.warm_up]
            assert (tally["warm_up"], tally["warm_up_failed"]) == (len(warm_up), bad(warm_up))
            assert tally["wall_s"] == len(every)


def test_every_row_is_in_the_table_of_launches_once(several: list[Made]) -> None:
    for one in several:
        file = io.StringIO()
        launches_csv(one.judgement, file)
        file.seek(0)
        lines = list(csv.DictReader(file))
        columns = ("number", "attempt", "state", "void", "counted")
        assert sorted(tuple(line[column] for column in columns) for line in lines) == sorted(
            (*map(str, (r.number, r.attempt, r.state, r.void)), counts_as(r)) for r in one.rows
        )
        times = [float(line["at_s"]) for line in lines]
        assert times == sorted(times)


def counts_as(row: Row) -> str:
    return str(not row.void and not row.warm_up).lower()


def test_what_is_said_of_failures_is_what_is_stored(several: list[Made]) -> None:
    """Of each arm against the reference, of each benchmark and arm, and of all together."""
    for one in several:
        judgement, texts = one.judgement, shown(one.judgement)
        every = counts(one.launches())
        pairs = {
            counts(one.launches([head.benchmark], [judgement.reference, head.arm]))
            for head in judgement.headlines
        }
        for place, text in texts.items():
            for found in FAILED.findall(text):
                assert found in pairs | {every}, f"{place}: {found} of {pairs}"
            for launches, failures, *rest in WHOLE.findall(text):
                assert (failures, launches, *rest) == every, f"{place}: {text[:400]}"
        assert WHOLE.search(texts["terminal"]) or not one.launches()
        assert WHOLE.search(texts["html"]) or not one.launches()
        assert bool(FAILED.search(texts["methods"])) == bool(bad(one.launches()))
        if not any(row.state == "ok" and not row.void for row in one.rows):
            continue
        for failures, launches, *rest in pairs - {("0", "0", "", "")}:
            said = f"{failures} of {launches} launches failed"
            said += f" ({rest[0]} of {rest[1]} first attempts)" * bool(rest[0])
            said = "no failures" if failures == "0" else said
            assert said in texts["brief"], texts["brief"]
            assert said in texts["terminal"]


def test_each_arm_that_failed_is_listed_with_its_counts(several: list[Made]) -> None:
    kinds = {"failed": " failed", "timeout": " timed out", "invalid": " invalid output"}
    kinds["fault"] = " hit by a fault of a machine"
    for one in several:
        texts = shown(one.judgement)
        for label, arm in {(row.benchmark, row.arm) for row in one.rows}:
            rows = one.launches([label], [arm])
            states = Counter(row.state for row in rows)
            failed = ", ".join(f"{states[key]}{what}" for key, what in kinds.items() if states[key])
            _, launches, *rest = counts(rows)
            said = f"{label}, {arm}: {failed} of {launches} launch{'es' * (launches != '1')}"
            said += f" ({rest[0]} of {rest[1]} first attempts)" * bool(rest[0])
            assert said in texts["terminal"] or not failed, texts["terminal"]
            in_table = said.replace(f"{label}, {arm}: ", f"{label} {arm} ")
            assert in_table in texts["html"] or not failed, texts["html"]


def test_reliability_is_judged_by_first_attempts(several: list[Made]) -> None:
    seen = 0
    for one in several:
        for head in one.judgement.headlines:
            figures = head.verdict.figures
            if "reference_failed" not in figures or one.judgement.study.settings.unit == "session":
                continue
            seen += 1
            ones = {
                arm: {row.block: row for row in first(one.launches([head.benchmark], [arm]))}
                for arm in (one.judgement.reference, head.arm)
            }
            reference, arm = ones.values()
            both = reference.keys() & arm.keys()
            assert figures["blocks"] == len(both)
            assert figures["failed"] == bad(arm[block] for block in both)
            assert figures["reference_failed"] == bad(reference[block] for block in both)
            assert f"{figures['failed']} of {len(both)} first attempt" in reason_of(head.verdict)
    assert seen


def test_what_a_running_study_says_is_what_is_stored(several: list[Made]) -> None:
    for one in several:
        assert one.failures_so_far == bad(one.rows)
        rerun = [n for n in one.judgement.notices if n.name is NoticeName.BLOCKS_RERUN]
        assert sum(n.figures["launches"] for n in rerun) == sum(bool(row.void) for row in one.rows)
        hint = re.search(
            r"(\d+) launch(?:es)? without usable output", " ".join(next_steps(one.judgement))
        )
        assert (int(hint[1]) if hint else 0) == bad(one.rows)


def test_sessions_of_which_none_gives_a_figure_are_reported() -> None:
    """A report ended with "geometric mean of no values"."""
    seed = next(s for s in range(200) if "ok" not in {r.state for r in made("sessions", s).rows})
    assert {h.verdict.word for h in made("sessions", seed).judgement.headlines} == {Word.NO_DATA}
