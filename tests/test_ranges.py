"""Ranges of sizes: the band by simulation, its sentences, and a known delay from 64 KiB on."""

from __future__ import annotations

import io
import json
import math
import random
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import judgements
from mpis import any_mpi
from paribus.cli.exports import parse_rules
from paribus.core import (
    Case,
    Judgement,
    Launch,
    Metric,
    Outcome,
    Sample,
    Settings,
    Word,
    failing,
    unjudged,
)
from paribus.lenses.ranges import Size, Sweep, said, states_apart
from paribus.report import junit
from paribus.report.export import to_json
from paribus.report.gate import rule_of
from paribus.report.html import page
from paribus.report.printing import console_on
from paribus.report.short import print_short
from paribus.report.stored import read_report
from paribus.report.terminal import print_report
from paribus.stats.band import LEAST_BLOCKS, band
from paribus.stats.estimate import compare
from paribus.stats.looks import schedule
from stored import Script, Twist, judged
from studies import paribus
from test_report_export import faults

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tools"))
from validation.noise import NOISE  # noqa: E402  # the tools are no package
from validation.studies import intervals_of, pair_up, run_to_the_end  # noqa: E402

Floats = np.ndarray
SIZES, BLOCKS = 12, 60
LOOKS = schedule(BLOCKS)


def drawn(name: str, studies: int, common: float, seed: int) -> Floats:
    """Return log ratios (study, size, block) of identical arms.

    A launch has noise of its own in each size, and `common` times as much in all of them.
    """
    rng = np.random.default_rng([seed, list(NOISE).index(name)])
    shared = NOISE[name](rng, studies, 2 * BLOCKS)[:, None, :]
    own = NOISE[name](rng, studies * SIZES, 2 * BLOCKS).reshape(studies, SIZES, 2 * BLOCKS)
    return pair_up(rng, common * shared + own)


def missed(study: Floats, blocks: int, seed: int) -> bool:
    """Return whether the band of the first so many blocks leaves out 1 at any size."""
    series = [dict(enumerate(size[:blocks].tolist())) for size in study]
    found = band(series, LOOKS, seed=seed, error=0.05)
    return any(not one.low <= 1 <= one.high for one in found)


def missed_at_any_look(studies: Floats) -> float:
    at = [look for look in LOOKS.at if look >= LEAST_BLOCKS]
    return float(np.mean([any(missed(one, n, row) for n in at) for row, one in enumerate(studies)]))


def bound(studies: int) -> float:
    """Return 5 % and two standard errors."""
    return 0.05 + 2 * math.sqrt(0.05 * 0.95 / studies)


@pytest.mark.slow
@pytest.mark.parametrize("common", [0.0, 2.0])
@pytest.mark.parametrize("name", NOISE)
def test_the_level_holds_at_all_looks_together(name: str, common: float) -> None:
    """So it holds whatever stops a study."""
    assert missed_at_any_look(drawn(name, 400, common, 45)) <= bound(400)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["N1", "N2", "Drift", "Sticky", "Bimodal"])
def test_the_level_holds_where_the_headline_stops_the_study(name: str) -> None:
    studies = drawn(name, 500, 1.0, 46)
    ends = run_to_the_end(intervals_of(studies.mean(axis=1)), 0.02).blocks
    found = [
        n >= LEAST_BLOCKS and missed(one, int(n), row)
        for row, (one, n) in enumerate(zip(studies, ends, strict=True))
    ]
    assert np.mean(found) <= bound(500)


def _two_states(rng: np.random.Generator, shape: Sequence[int]) -> Floats:
    return rng.normal(0, 0.003, shape) + 0.12 * (rng.random(shape) < 0.4)


UNLIKE = {
    "skew": lambda rng, shape: rng.exponential(0.015, shape),
    "contaminated": lambda rng, shape: (
        rng.normal(0, 0.015, shape) * np.where(rng.random(shape) < 0.1, 6, 1)
    ),
    "two states": _two_states,
}
"""Noise of the arm alone; the reference has normal noise."""


def unlike(name: str, studies: int, *, together: bool) -> tuple[Floats, Floats, float]:
    """Return the log times of reference and arm, and what Hodges and Lehmann estimate of both.

    With `together` all sizes of a launch share the noise.
    """
    rng = np.random.default_rng([47, len(name), together])
    many = rng.normal(0, 0.015, (2, 1_000_000))
    pairs = UNLIKE[name](rng, many.shape) - many
    shape = (studies, 1 if together else SIZES, BLOCKS)
    whole = (studies, SIZES, BLOCKS)
    own = [rng.normal(0, 0.002 if together else 0.0, whole) for _ in range(2)]
    arms = rng.normal(0, 0.015, shape) + own[0], UNLIKE[name](rng, shape) + own[1]
    return *arms, float(np.median(pairs.mean(axis=0)))


def missed_when_widened(reference: Floats, arm: Floats, truth: float) -> float:
    """Return in which share of studies the band misses at any look, widened for unlike states."""
    found = 0
    for row, (ours, theirs) in enumerate(zip(reference, arm, strict=True)):
        found += any(
            missed_of(ours[:, :n], theirs[:, :n], row, truth) for n in LOOKS.at if n >= LEAST_BLOCKS
        )
    return found / len(reference)


def missed_of(reference: Floats, arm: Floats, seed: int, truth: float) -> bool:
    series = [dict(enumerate(one.tolist())) for one in arm - reference]
    bands = band(series, LOOKS, seed=seed, error=0.05)
    wrong = [n for n, one in enumerate(bands) if not one.low <= math.exp(truth) <= one.high]
    times = [[dict(enumerate(np.exp(one[n]))) for one in (reference, arm)] for n in wrong]
    wide = [states_apart(*both) for both in times]
    return any(
        not bands[n].low / factor <= math.exp(truth) <= bands[n].high * factor
        for n, factor in zip(wrong, wide, strict=True)
    )


@pytest.mark.slow
@pytest.mark.parametrize("together", [False, True], ids=["each size", "all sizes"])
@pytest.mark.parametrize("name", UNLIKE)
def test_the_level_holds_where_one_arm_alone_is_noisy(name: str, together: bool) -> None:
    """About the ratio that is estimated; in two states in unlike shares the band is wider."""
    assert missed_when_widened(*unlike(name, 300, together=together)) <= bound(300)


@pytest.mark.slow
@pytest.mark.parametrize(("blocks", "least"), [(12, 0.25), (18, 0.9), (40, 0.98)])
def test_a_step_is_found_where_it_is(blocks: int, least: float) -> None:
    """Of 5 % from the seventh of twelve sizes on, by launches that scatter by 2.1 %: no size wrong,
    and all of the six that are slower said to be."""
    studies = drawn("N1", 200, 1.0, 48)
    studies[:, 6:] += math.log(1.05)
    whole = 0
    for row, study in enumerate(studies):
        series = [dict(enumerate(size[:blocks].tolist())) for size in study]
        found = band(series, LOOKS, seed=row, error=0.05)
        slower = [one.low > 1.0 for one in found]
        whole += all(slower[6:]) and not any(slower[:6])
    assert whole / len(studies) >= least


logs = st.lists(st.floats(-0.5, 0.5), min_size=LEAST_BLOCKS, max_size=30)


@settings(max_examples=40, deadline=None)
@given(logs, st.integers(0, 2**32), st.integers(1, 6))
def test_a_band_is_wider_than_an_interval_and_no_wider_than_bonferroni(
    values: list[float], seed: int, sizes: int
) -> None:
    rng = np.random.default_rng(seed)
    series = [
        {n: d + e for n, (d, e) in enumerate(zip(values, rng.normal(0, 0.1, 30), strict=False))}
        for _ in range(sizes)
    ]
    found = band(series, LOOKS, seed=seed, error=0.05)
    for one, of in zip(series, found, strict=True):
        alone = compare(list(one.values()), 1 - LOOKS.nominal(0.05))
        apart = compare(list(one.values()), 1 - LOOKS.nominal(0.05 / sizes))
        assert of.ratio == alone.ratio
        assert apart.low <= of.low <= alone.low
        assert alone.high <= of.high <= apart.high
    again = band([series[0]] * 5, LOOKS, seed=seed, error=0.05)
    assert {(one.low, one.high) for one in again} == {(again[0].low, again[0].high)}
    # Sizes that say the same are nearly one; flips place the chance to within 0.7 %.
    assert again[0].level <= 1 - LOOKS.nominal(0.05 / 1.3)


def test_a_band_over_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no cases"):
        band([], LOOKS, seed=1, error=0.05)


# --- reports -----------------------------------------------------------------------------

WORDS = {"=": (1.0, 0.99, 1.01), "?": (1.03, 0.99, 1.07), "x": (1.0, 0.99, 1.01)}
WORDS |= {"s": (1.18, 1.16, 1.2), "S": (3.0, 2.9, 3.1), "f": (0.8, 0.78, 0.82)}
OF = {"=": Word.EQUIVALENT, "?": Word.UNDECIDED, "x": Word.WITHHELD, "f": Word.FASTER}


def sweep(signs: str, first: int = 1024) -> Sweep:
    sizes = [
        Size(first << n, *WORDS[sign], 0.02, OF.get(sign, Word.SLOWER))
        for n, sign in enumerate(signs)
    ]
    return Sweep("latency", "b", "", 18, tuple(sizes))


SENTENCES = """
===?sss  SLOWER from 16 KiB to 64 KiB; equivalent up to 4 KiB; the change lies\
 between 4 KiB and 16 KiB
==sss?  SLOWER from 4 KiB to 16 KiB; equivalent up to 2 KiB; undecided at 32 KiB; the change lies\
 between 2 KiB and 4 KiB
ffss  faster by 20 % [18, 22] up to 2 KiB; SLOWER from 4 KiB to 8 KiB; they cross\
 between 2 KiB and 4 KiB
==s==  SLOWER at 4 KiB alone (measure 3 KiB and 6 KiB too); equivalent up to 2 KiB and from 8 KiB\
 to 16 KiB
===s  SLOWER at 8 KiB alone (measure 6 KiB and 16 KiB too); equivalent up to 4 KiB
sSS  SLOWER (1 KiB) to 3.000x [2.900, 3.100] (4 KiB) at all 3 sizes, 1 KiB to 4 KiB
====  equivalent at all 4 sizes, 1 KiB to 8 KiB
ss?ss  SLOWER up to 2 KiB; SLOWER from 8 KiB to 16 KiB; undecided at 4 KiB
==xss  SLOWER from 8 KiB to 16 KiB; equivalent up to 2 KiB; withheld at 4 KiB
"""


@pytest.mark.parametrize("line", SENTENCES.strip().splitlines())
def test_ranges_in_a_sentence(line: str) -> None:
    signs, _, text = line.partition("  ")
    assert said(sweep(signs)) == text.replace("SLOWER", "slower by 18 % [16, 20]")


def test_sizes_beside_a_single_one_are_new() -> None:
    assert said(sweep("s?", first=1)).startswith("slower by 18 % [16, 20] at 1 B alone;")
    assert "(measure 24 B and 48 B too)" in said(sweep("=s=", first=16))


@pytest.mark.parametrize(
    "text", ["slower:5%@64KiB-", "slower@-8KiB", "slower:2.5%@1KiB-4MiB", "slower", "undecided"]
)
def test_a_rule_reads_what_it_writes(text: str) -> None:
    rule = rule_of(text)
    assert rule_of(str(rule)) == rule
    assert str(rule).replace(" ", "") == text


@pytest.mark.parametrize(
    "text", ["undecided@64KiB-", "slower@64KiB", "slower@-", "slower@8KiB-4KiB", "slower@64-x", "@"]
)
def test_rules_that_say_nothing_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        rule_of(text)


# --- the lens --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stepped(Script):
    """A script whose arm takes so many times longer from a size on."""

    steps: dict[int, float] = field(default_factory=dict)

    def outcome(
        self, launch: Launch, attempt: int, metric: Metric, cases: Sequence[Case], at: float
    ) -> tuple[Outcome, Twist]:
        outcome, twist = Script.outcome(self, launch, attempt, metric, cases, at)
        samples = []
        for one in outcome.samples:
            size = one.case.get("bytes")
            on = [t for least, t in self.steps.items() if isinstance(size, int) and size >= least]
            times = on[-1] if on and launch.arm == "bridged" else 1.0
            times = times if metric.better == "lower" else 1 / times
            samples.append(Sample(one.metric, one.case, tuple(v * times for v in one.values)))
        return replace(outcome, samples=tuple(samples)), twist


STEPPED = Stepped({"latency": {}, "bandwidth": {}}, steps={32768: 1.3}, usual=0.01, machine=0.0)


def stepped(blocks: int = 18, decides: Any = "sizes") -> Judgement:
    of = Settings(seed=5, blocks=blocks, margin=0.05, decides=decides)
    asked = judgements.study(("latency", "bandwidth"), settings=of)
    return judged(asked, STEPPED, name=f"stepped {blocks} {decides}", facts=judgements.FACTS)


def test_every_report_names_the_range(tmp_path: Path) -> None:
    judgement = stepped()
    table = to_json(judgement)
    assert faults(table) == []
    rows = table["ranges"]
    assert [(row["benchmark"], row["arm"], row["blocks"]) for row in rows] == [
        ("latency", "bridged", 12),
        ("bandwidth", "bridged", 12),
    ]
    file, screen = io.StringIO(), io.StringIO()
    print_report(judgement, console_on(file, 400))
    print_short(judgement, console_on(screen, 80))
    for row in rows:
        assert [one["word"] for one in row["sizes"]] == ["equivalent"] * 6 + ["slower"] * 4
        assert row["sizes"][6]["low"] < 1.3 < row["sizes"][6]["high"]
        assert "from 32 KiB to 2 MiB; equivalent up to 8 KiB; the change lies" in row["text"]
        assert f"bridged: {row['benchmark']}: {row['text']}" in file.getvalue()
        assert row["text"] in page(judgement, "")
        lines = screen.getvalue().splitlines()
        first = next(n for n, one in enumerate(lines) if one.startswith(f"{row['benchmark']}: "))
        assert " ".join(" ".join(lines[first : first + 2]).split()).endswith("8 KiB and 32 KiB")
    (tmp_path / "verdict.json").write_text(json.dumps(table))
    assert read_report(tmp_path / "verdict.json").lenses["ranges"] == judgement.lenses["ranges"]


def test_a_range_fails_a_pipeline(tmp_path: Path) -> None:
    judgement = stepped()
    (tmp_path / "verdict.json").write_text(json.dumps(to_json(judgement)))
    for rule, code in (
        ("slower:5%@32KiB-", 1),
        ("slower@1KiB-64KiB", 1),
        ("slower:40%@32KiB-", 0),
        ("slower:5%@-8KiB", 0),
        ("slower:5%@8MiB-", 0),
    ):
        done = paribus("report", "verdict.json", "--fail-on", rule, cwd=tmp_path, code=code)
        assert ("not judged" in done.stderr) == ("8MiB" in rule)
    ((_, text), _) = failing(judgement, ["slower:5%@32KiB-"])
    assert text.startswith("bridged: latency: slower by 29 % [27, 31] at")
    assert text.endswith("at 32 KiB, 128 KiB, 512 KiB, 2 MiB")
    assert 'type="slower:5 %@32KiB-"' in junit.document(judgement, parse_rules("slower:5%@32KiB-"))


def test_of_few_blocks_and_tables_nothing_is_said() -> None:
    few = stepped(decides="headline")
    assert {head.comparison.blocks for head in few.headlines if head.comparison} == {8}
    assert "ranges" not in few.lenses
    assert [rule for rule, _ in unjudged(few, ["slower:5%@32KiB-"])] == ["slower:5%@32KiB-"]
    assert "ranges" not in judgements.imported().lenses
    assert "ranges" not in judgements.monitor().lenses


def _half(launch: Launch, attempt: int) -> Twist:
    draw = random.Random(f"half {launch.number}")
    return Twist(times=1.5 if launch.arm == "bridged" and draw.random() < 0.5 else 1.0)


def test_intervals_are_wider_where_one_arm_alone_is_in_two_states() -> None:
    script = replace(STEPPED, twist=_half, steps={})
    asked = judgements.study(("latency",), settings=Settings(seed=5, blocks=18))
    judgement = judged(asked, script, name="half", facts=judgements.FACTS)
    (row,) = judgement.lenses["ranges"]
    for one in row.sizes:
        cases = [f for f in judgement.cases if f.case == Case.of(bytes=one.bytes)]
        (of,) = (f.comparison for f in cases if f.metric.endpoint == "median" and f.comparison)
        assert one.ratio == of.ratio
        assert one.low < of.low / 1.4
        assert one.high > of.high * 1.4
        assert one.word is Word.UNDECIDED


LATE = r"""
#include <mpi.h>
#include <time.h>
int MPI_Send(const void *buffer, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    int size;
    PMPI_Type_size(type, &size);
    if ((long)n * size >= 65536) {
        struct timespec a, b;
        clock_gettime(CLOCK_MONOTONIC, &a);
        do clock_gettime(CLOCK_MONOTONIC, &b);
        while ((b.tv_sec - a.tv_sec) * 1000000000L + b.tv_nsec - a.tv_nsec < 500000);
    }
    return PMPI_Send(buffer, n, type, to, tag, comm);
}
"""
"""A library that delays each message of 64 KiB or more by half a millisecond."""


@pytest.mark.slow
def test_a_known_delay_from_64_kib_on_is_named(tmp_path: Path) -> None:
    mpi = any_mpi()
    mpicc = shutil.which(str(Path(mpi.mpicxx).with_name("mpicc"))) or shutil.which("mpicc")
    if mpicc is None:
        pytest.skip("no mpicc")
    (tmp_path / "late.c").write_text(LATE)
    built = [mpicc, "-shared", "-fPIC", "-O1", "-o", "late.so", "late.c"]
    subprocess.run(built, cwd=tmp_path, check=True)
    (tmp_path / "late.toml").write_text(
        f"""
question = "From which size on is there a delay?"
factor = "env"
explains = ["lib."]
[arms.plain]
transport = "shm"
[arms.late]
transport = "shm"
env = {{ LD_PRELOAD = "{tmp_path / "late.so"}" }}
[[benchmarks]]
name = "latency"
bytes = ["8 B", "512 B", "16 KiB", "64 KiB", "128 KiB", "256 KiB"]
samples = 20
endpoints = ["median"]
[plan]
decides = "sizes"
margin = "90 %"
blocks = 18
seed = 4
"""
    )
    paribus("run", "late.toml", "--out", "out", "--fail-on", "slower@64KiB-", cwd=tmp_path, code=1)
    (row,) = json.loads((tmp_path / "out" / "verdict.json").read_text())["ranges"]
    assert row["text"].startswith("slower by ")
    assert "from 64 KiB to " in row["text"]
    words = {one["bytes"]: one["word"] for one in row["sizes"]}
    assert {words[2**n] for n in (16, 17)} == {"slower"}
    assert not {words[2**n] for n in (3, 9, 14)} & {"slower", "faster"}
