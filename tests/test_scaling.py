"""Studies that scale: sizes in the study file, efficiencies with intervals, and how far arms go."""

from __future__ import annotations

import io
import json
import math
import random
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

import judgements
from judgements import printed
from paribus.benchmarks import benchmark_of
from paribus.core import (
    Address,
    Arm,
    Case,
    Comparison,
    Hosts,
    Judgement,
    Launch,
    Metric,
    Mpi,
    Scaling,
    Selection,
    Settings,
    Spread,
    State,
    Study,
    StudyError,
    Word,
)
from paribus.judge.evidence import Entry, Evidence
from paribus.judge.headlines import headlines
from paribus.launch.arms import Ready, slots_of
from paribus.lenses.scaling.efficiency import (
    Efficiency,
    Kind,
    Reach,
    efficiencies,
    log_efficiency,
    reach,
)
from paribus.lenses.scaling.lens import LENS
from paribus.plan import freeze, read_plan, write_plan
from paribus.report import export, stored
from paribus.report.printing import console_on
from paribus.studyfile.load import load_study
from stored import Script, Twist, judged

HOSTS = '[arms.a]\nhosts = "n[1-8]"\n[arms.b]\nhosts = "m[1-8]"\n'
TRIAD = '[[benchmarks]]\nname = "triad"\n'


def load(folder: Path, scaling: str, benchmarks: str = TRIAD, arms: str = HOSTS) -> Study:
    path = folder / "study.toml"
    path.write_text(
        f'question = "Which?"\nfactor = "cluster"\n{arms}[scaling]\n{scaling}\n{benchmarks}'
    )
    return load_study(path)


def test_each_benchmark_runs_at_each_size(tmp_path: Path) -> None:
    ranks = TRIAD.replace("triad", "allreduce") + "ranks = 4\nscaling = [1, 4]\n"
    found = load(tmp_path, "hosts = [2, 4, 8]", TRIAD + ranks)
    assert found.scaling == Scaling("hosts", "strong", 0.5)
    assert [(s.label, s.of, s.hosts, s.ranks, s.size) for s in found.benchmarks] == [
        *((f"triad on {n} hosts", "triad", n, n, n) for n in (2, 4, 8)),
        ("allreduce on 1 host", "allreduce", 1, 4, 1),
        ("allreduce on 4 hosts", "allreduce", 4, 16, 4),
    ]
    frozen = freeze(found, {})
    rounds = [one for one in frozen.launches if one.block == 1]
    assert {(one.benchmark, one.arm) for one in rounds} == {
        (s.label, arm) for s in found.benchmarks for arm in "ab"
    }
    (tmp_path / "out").mkdir()
    write_plan(frozen, tmp_path / "out")
    assert read_plan(tmp_path / "out").study == frozen.study


def test_sizes_may_be_ranks_of_this_machine(tmp_path: Path) -> None:
    said = 'ranks = [1, 2]\nkind = "weak"\nbound = "80 %"'
    found = load(tmp_path, said, arms="[arms.a]\n[arms.b]\n")
    assert found.scaling == Scaling("ranks", "weak", 0.8)
    assert [(s.label, s.hosts, s.ranks) for s in found.benchmarks] == [
        ("triad on 1 rank", 0, 1),
        ("triad on 2 ranks", 0, 2),
    ]


def test_a_value_may_be_given_for_each_size(tmp_path: Path) -> None:
    triad = TRIAD + 'bytes = { 2 = "1 MiB", 8 = "4 MiB" }\n'
    found = load(tmp_path, "hosts = [2, 8]", triad)
    assert [s.parameters["bytes"] for s in found.benchmarks] == [[1 << 20], [4 << 20]]


LATENCY = TRIAD.replace("triad", "latency")
STREAM = TRIAD.replace("triad", "stream")


@pytest.mark.parametrize(
    ("scaling", "benchmarks", "arms", "said"),
    [
        ("hosts = [4]", TRIAD, HOSTS, "name two sizes or more: one alone"),
        ("hosts = [4, 2]", TRIAD, HOSTS, "ascending order"),
        ("hosts = [2, 2]", TRIAD, HOSTS, "ascending order"),
        ("hosts = [0, 2]", TRIAD, HOSTS, "whole number from 1"),
        ("hosts = [2, 16]", TRIAD, HOSTS, "8 hosts, and sizes up to 16"),
        ("hosts = [1, 2]\nranks = [1, 2]", TRIAD, HOSTS, "names hosts and ranks"),
        ('kind = "weak"', TRIAD, HOSTS, "names no sizes"),
        ('hosts = [1, 2]\nkind = "super"', TRIAD, HOSTS, '"strong", "weak"'),
        ('hosts = [1, 2]\nbound = "0 %"', TRIAD, HOSTS, "outside 0 to 100 %"),
        ("host = [1, 2]", TRIAD, HOSTS, "did you mean 'hosts'"),
        ("hosts = [1, 2]", TRIAD, "[arms.a]\n[arms.b]\n", "has no hosts to scale over"),
        ("hosts = [2, 4]", LATENCY, HOSTS, "at 4 hosts: "),
        ("hosts = [1, 2]", STREAM, HOSTS, "is not started with MPI, so it has no size"),
        ("ranks = [1, 2]", TRIAD + "ranks = 2\n", HOSTS, "[scaling] says how many ranks"),
        ("hosts = [1, 2]", TRIAD + "bytes = { 1 = 8 }\n", HOSTS, "a value for each size"),
        ("hosts = [1, 2]", TRIAD, HOSTS + "ranks_per_host = 2\n", "counts the ranks of a host"),
        ("hosts = [1, 2]", TRIAD + "[plan]\nmonitor = true\n", HOSTS, "by its headlines"),
        ("hosts = [1, 2]", TRIAD + '[plan]\ndecides = "cases"\n', HOSTS, "by its headlines"),
    ],
)
def test_refuses(tmp_path: Path, scaling: str, benchmarks: str, arms: str, said: str) -> None:
    with pytest.raises(StudyError) as caught:
        load(tmp_path, scaling, benchmarks, arms)
    assert said in str(caught.value)
    assert str(caught.value).count(said) <= 2  # once for each arm, not at each size


def test_a_size_takes_the_first_hosts_whatever_their_slots() -> None:
    addresses = tuple(Address(f"n{n}", f"n{n}", slots=64) for n in range(1, 9))
    for hosts in (Hosts(addresses=addresses), Hosts(pocket=8)):
        ready = Ready(Arm("a", hosts=hosts), Mpi("openmpi", (5,), "mpirun", "mpicxx"), ())
        for size in (2, 4):
            one = Selection("x", "triad", 2 * size, {"bytes": [8], "samples": 1}, hosts=size)
            slots = slots_of(ready, one, benchmark_of(one))
            assert [slot.node for slot in slots] == [
                name for name in hosts.names[:size] for _ in range(2)
            ]


TIME, RATE = Metric("time", "s", "lower"), Metric("mops", "Mop/s", "higher")
DAYS = Metric("speed", "ns/day", "higher")


@pytest.mark.parametrize(
    ("metric", "kind", "first", "other", "efficiency"),
    [
        (TIME, "strong", 10.0, 5.0, 1.0),
        (TIME, "strong", 10.0, 10.0, 0.5),
        (RATE, "strong", 100.0, 150.0, 0.75),
        (DAYS, "strong", 100.0, 150.0, 0.75),
        (TIME, "weak", 10.0, 12.5, 0.8),
        (RATE, "weak", 100.0, 150.0, 0.75),
        (DAYS, "weak", 100.0, 75.0, 0.75),
    ],
)
def test_efficiency_is_the_share_of_the_ideal_speed(
    metric: Metric, kind: Kind, first: float, other: float, efficiency: float
) -> None:
    ours, theirs = (one if metric.better == "lower" else 1 / one for one in (first, other))
    same = log_efficiency({1: ours}, {1: theirs}, metric, kind, 2.0)
    assert math.exp(same[1]) == pytest.approx(efficiency)


def row(size: int, low: float = 0, high: float = 0, step: float = 1.5) -> Efficiency:
    if not high:
        return Efficiency("x", "a", size, TIME, SPREAD)
    known = Comparison(8, (low + high) / 2, low, high, 0.95)
    return Efficiency("x", "a", size, TIME, SPREAD, known, Comparison(8, step, step, step, 0.95))


SPREAD = Spread(8, 1.0, 0.9, 1.1)
NOTHING = tuple(Efficiency("x", "a", size, TIME, None) for size in (2, 4))


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ((row(2), row(4, 0.8, 0.9), row(8, 0.6, 0.7)), Reach(8)),
        ((row(2), row(4, 0.8, 0.9), row(8, 0.4, 0.49)), Reach(4, below=8)),
        ((row(2), row(4, 0.45, 0.6), row(8, 0.6, 0.7)), Reach(2, undecided=4)),
        ((row(2), row(4, 0.8, 0.9), row(8)), Reach(4, undecided=8)),
        ((row(2), row(4, 0.6, 0.7, 1.01), row(8, 0.3, 0.4, 0.9)), Reach(4, below=8, flat=4)),
        (NOTHING, Reach(0)),
    ],
)
def test_how_far_an_arm_scales(rows: tuple[Efficiency, ...], expected: Reach) -> None:
    assert reach(rows, 0.5) == expected


def test_without_data_no_size_is_said_to_be_ideal() -> None:
    full = judgements.scaling()
    nothing = {"value": None, "efficiency": None, "step": None, "against": None}
    none = tuple(replace(one, **nothing) for one in full.lenses["scaling"])
    file = io.StringIO()
    LENS.text(full, none, console_on(file, 100))
    said = file.getvalue()
    assert "no data at the smallest size, so no efficiency" in said
    assert "100" not in said.partition("ratio")[2]


# --- judged ------------------------------------------------------------------------------------

SIZES = (2, 4)
STUDIES = 120


def simulated(seed: int, keep: tuple[float, float]) -> tuple[Efficiency, ...]:
    """Return the efficiencies of a study that goes on until both sizes have their verdicts.

    `keep` is the true efficiency of each arm. All launches of a round share a disturbance.
    """
    chosen = tuple(Selection(f"x{n}", "npb_cg", n, {}, of="x", hosts=n) for n in SIZES)
    made = Study(
        "?", "nothing", (Arm("a"), Arm("b")), chosen, Settings(seed=seed), scaling=Scaling("hosts")
    )
    plan = freeze(made, {})
    evidence, draw = Evidence(plan.metrics), random.Random(seed)
    merit = plan.metrics["x2"][0]
    for before, look in pairwise((0, *plan.looks.at)):
        for block in range(before + 1, look + 1):
            common = draw.gauss(0, 0.02)
            for one in chosen:
                for arm, share in zip(("a", "b"), keep, strict=True):
                    slow = 1.025 if arm == "b" else 1.0
                    ideal = one.size * (share if one.size == SIZES[1] else 1) / slow
                    value = 100 * ideal * math.exp(common + draw.gauss(0, 0.015))
                    launch = Launch(0, block, one.label, arm, 0)
                    cells = {(merit.name, Case()): value}
                    evidence.add_entry(Entry(launch, State.OK, 0, 1, "", cells))
        heads = tuple(f for one in chosen for f in headlines(plan, evidence, one))
        if all(head.verdict.final for head in heads):
            break
    return efficiencies(plan, evidence, heads, {one.label: True for one in chosen})


def test_intervals_hold_the_truth_wherever_the_study_stopped() -> None:
    """95 % over all looks: in each arm, and between the arms, as a ratio of ratios."""
    keep = (0.70, 0.66)
    held, blocks = {"a": 0, "b": 0, "b/a": 0}, set()
    for seed in range(STUDIES):
        for one in simulated(seed, keep):
            if one.efficiency is None:
                continue
            blocks.add(one.efficiency.blocks)
            truth = dict(zip("ab", keep, strict=True))[one.arm]
            held[one.arm] += one.efficiency.low <= truth <= one.efficiency.high
            if one.against and one.against.comparison:
                known = one.against.comparison
                held["b/a"] += known.low <= keep[1] / keep[0] <= known.high
    assert len(blocks) > 2, "the studies should have stopped at different looks"
    least = STUDIES * (0.95 - 3 * math.sqrt(0.95 * 0.05 / STUDIES))
    assert min(held.values()) >= least, held


def found(judgement: Judgement, benchmark: str, arm: str) -> Efficiency:
    return next(
        one
        for one in judgement.lenses["scaling"]
        if (one.benchmark, one.arm) == (benchmark, arm) and one.size == 32
    )


def test_the_published_finding_of_study_four_can_be_read() -> None:
    """Speed per node of CG on 16 nodes 40 to 50 % above that on 32, and worse when virtual."""
    judgement = judgements.scaling()
    own = found(judgement, "npb_cg", "physical").efficiency
    assert own
    assert own.low < 1 / 1.45 < own.high
    against = found(judgement, "npb_cg", "virtual").against
    assert against
    assert against.comparison
    assert against.verdict.word is Word.SLOWER
    assert against.comparison.low < 1.004 / 1.52 < against.comparison.high


def test_a_verdict_on_scaling_rests_on_both_sizes(tmp_path: Path) -> None:
    """Launches that fail at one size in one arm leave nothing to say between the arms there."""

    def failing(launch: Launch, attempt: int) -> Twist:
        bad = launch.benchmark == "npb_cg on 32 hosts" and launch.arm == "b"
        return Twist(state=State.FAILED, error="no memory") if bad else Twist()

    chosen = tuple(
        Selection(f"npb_cg on {n} hosts", "npb_cg", n, {}, of="npb_cg", hosts=n) for n in (16, 32)
    )
    made = Study(
        "?", "nothing", (Arm("a"), Arm("b")), chosen, Settings(seed=1), scaling=Scaling("hosts")
    )
    script = Script({one.label: {} for one in chosen}, growth=0, samples=1, twist=failing)
    judgement = judged(made, script, name="failing")
    assert judgement.complete
    bad = found(judgement, "npb_cg", "b")
    assert bad.efficiency is None
    assert bad.against
    assert bad.against.verdict.word is Word.NO_DATA
    assert "b: efficiency above 50 % up to 16 hosts, undecided at 32" in printed(judgement)
    document = json.loads(json.dumps(export.to_json(judgement)))
    reaches = {one["arm"]: one for one in document["reaches"]}
    assert (reaches["b"]["up_to"], reaches["b"]["undecided"]) == (16, 32)
    (tmp_path / "verdict.json").write_text(json.dumps(document))
    assert stored.read_report(tmp_path).lenses["scaling"] == judgement.lenses["scaling"]


def test_a_withheld_headline_withholds_the_comparison_of_efficiencies() -> None:
    withheld = judgements.scaling("network")
    words = {one.against.verdict.word for one in withheld.lenses["scaling"] if one.against}
    assert words == {Word.WITHHELD}
    assert found(withheld, "npb_cg", "physical").efficiency  # one arm by itself is what it is


def test_the_table_has_every_digit() -> None:
    file = io.StringIO(newline="")
    name, rows = LENS.csv
    assert name == "scaling.csv"
    judgement = judgements.scaling()
    export.write_csv(rows(judgement, judgement.lenses["scaling"]), file)
    head, *lines = file.getvalue().splitlines()
    assert head.startswith("benchmark,metric,unit,better,arm,over,kind,size,value,efficiency,")
    cells = dict(zip(head.split(","), lines[7].split(","), strict=True))
    own = found(judgements.scaling(), "npb_cg", "virtual")
    assert own.efficiency
    assert (cells["benchmark"], cells["arm"], cells["size"]) == ("npb_cg", "virtual", "32")
    assert float(cells["efficiency"]) == own.efficiency.ratio
    assert cells["verdict"] == "slower"
