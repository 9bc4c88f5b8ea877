"""Judgements as a study directory would give them, made by a seeded formula: no machine needed."""

from __future__ import annotations

import math
import random
from dataclasses import replace

from paribus.judgement import (
    Comparison,
    Difference,
    Finding,
    Judgement,
    Notice,
    Point,
    Progress,
    Spread,
    Tally,
    Verdict,
    Word,
)
from paribus.model import Arm, Case, Container, Launch, Metric, Selection, Settings, State, Study

LATENCY = Metric("latency", "us", "lower", margin=0.02, small_us=2.0)
BANDWIDTH = Metric("bandwidth", "MB/s", "higher")
TIME = Metric("time", "us", "lower", margin=0.05)
RATE = Metric("rate", "1/s", "higher")
TRIAD = Metric("triad", "GB/s", "higher")
COST = Metric("relative cost", "", "lower")
LOOKS = (8, 12, 18, 27, 40, 60)

SIZES = tuple(2**k for k in range(3, 23, 2))
HOSTILE = (
    '</script><script>window.broken=1</script><img src=x onerror="window.broken=2">&\x1b[31m\u202e'
)


def verdict(low: float, high: float, metric: Metric, margin: float, blocks: int) -> Verdict:
    """Return the word that an interval deserves: enough of the rule to make pages realistic."""
    better = Word.SLOWER if metric.better == "lower" else Word.FASTER
    worse = Word.FASTER if metric.better == "lower" else Word.SLOWER
    band = 1 / (1 + margin), 1 + margin
    if low > band[1]:
        return Verdict(better, "the interval lies wholly beyond the margin", True)
    if high < band[0]:
        return Verdict(worse, "the interval lies wholly beyond the margin", True)
    if band[0] < low and high < band[1]:
        return Verdict(Word.EQUIVALENT, "the interval lies wholly inside the margin", True)
    return Verdict(Word.UNDECIDED, "the interval reaches across the margin", True, blocks + 7)


def finding(
    benchmark: str,
    arm: str,
    metric: Metric,
    case: Case | None,
    value: float,
    ratio: float,
    *,
    half: float = 0.008,
    blocks: int = 12,
    word: Word | None = None,
) -> Finding:
    low, high = ratio * (1 - half), ratio * (1 + half)
    said = verdict(low, high, metric, metric.margin, blocks)
    if word is not None:
        said = Verdict(word, f"the audit or the launches say: {word}", True)
    return Finding(
        benchmark,
        arm,
        metric,
        case,
        metric.margin,
        Comparison(blocks, ratio, low, high, 0.987),
        said,
        Spread(blocks, value, value * 0.985, value * 1.03),
        Spread(blocks, value * ratio, value * ratio * 0.98, value * ratio * 1.04),
    )


def swept(
    label: str,
    arm: str,
    metric: Metric,
    factor: float,
    *,
    sizes: tuple[int, ...] = SIZES,
    half: float = 0.008,
    blocks: int = 12,
    word: Word | None = None,
) -> tuple[Finding, tuple[Finding, ...]]:
    """Return the headline and the cases of a benchmark whose ratio grows with message size."""
    cases = []
    for index, size in enumerate(sizes):
        time = 9.0 + size / 4200
        value = time if metric.better == "lower" else size / time
        ratio = factor ** (0.6 + 0.8 * index / max(1, len(sizes) - 1))
        cases.append(
            finding(
                label, arm, metric, Case.of(bytes=size), value, ratio,
                half=half * (1 + 0.5 * math.sin(index)), blocks=blocks, word=word,
            )
        )  # fmt: skip
    middle = math.exp(
        sum(math.log(c.reference_value.median) for c in cases if c.reference_value) / len(cases)
    )
    head = finding(
        label, arm, metric, None, middle, factor, half=half / 2, blocks=blocks, word=word
    )
    return head, tuple(cases)


def layer(name: str, arm: str, ratio: float, half: float = 0.01) -> Finding:
    """Return the headline of a layer: relative cost, no values."""
    found = finding(name, arm, COST, None, 1.0, ratio, half=half)
    return replace(found, reference_value=None, arm_value=None)


def beside(
    head: Finding, ratios: tuple[float, float, float], half: float = 0.012
) -> tuple[Finding, ...]:
    """Return the endpoints p99, p25 and min beside the headline `head`."""
    assert head.reference_value is not None
    found = []
    for endpoint, ratio, scale in zip(("p99", "p25", "min"), ratios, (1.4, 0.96, 0.9), strict=True):
        margin = 0.1 if endpoint == "p99" else head.metric.margin
        metric = replace(
            head.metric, name=f"{head.metric.name}.{endpoint}", endpoint=endpoint, margin=margin,
            sampled=head.metric.name,
        )  # fmt: skip
        value = head.reference_value.median * scale
        found.append(finding(head.benchmark, head.arm, metric, None, value, ratio, half=half))
    return tuple(found)


def points(
    label: str,
    arms: dict[str, float],
    *,
    blocks: int = 12,
    broken: tuple[int, ...] = (),
    start: float = 0.0,
    step: float = 1.4,
    first: int = 0,
) -> tuple[Point, ...]:
    rng = random.Random(label)
    made = []
    for block in range(blocks + 1):
        order = list(arms)
        rng.shuffle(order)
        for arm in order:
            number = first + len(made)
            slow = 1.25 if 0.45 < block / blocks < 0.6 else 1.0
            level = arms[arm] * slow * math.exp(rng.gauss(0, 0.015))
            state = State.FAILED if len(made) in broken else State.OK
            odd = len(made) == 9
            made.append(
                Point(
                    number, block, label, arm, start + step * len(made), state,
                    level * (1.4 if odd else 1) if state is State.OK else None,
                    "outlying: 1.4 times this arm's usual level" if odd else "",
                )
            )  # fmt: skip
    return tuple(made)


def study(labels: tuple[str, ...], arms: tuple[Arm, ...], **changes: object) -> Study:
    return replace(
        Study(
            "What does bridged container networking cost MPI on one host?",
            "network",
            arms,
            tuple(
                Selection(label, label, 2, {"bytes": list(SIZES), "samples": 200}, 60.0)
                for label in labels
            ),
            Settings(seed=20210),
            path="studies/container-network.toml",
        ),
        **changes,
    )


ARMS = (
    Arm("host", mpi="openmpi", transport="tcp"),
    Arm("bridged", mpi="openmpi", transport="tcp", container=Container("namespace")),
)


def two_arms() -> Judgement:
    """Return the demo: two arms, a sweep each way, a memory benchmark that is equivalent."""
    latency, latencies = swept("latency", "bridged", LATENCY, 1.187)
    bandwidth, bandwidths = swept("bandwidth", "bridged", BANDWIDTH, 0.871)
    allreduce, allreduces = swept("allreduce", "bridged", TIME, 1.052, half=0.04, blocks=60)
    triad = finding("triad", "bridged", TRIAD, None, 11.23, 1.002, half=0.006, blocks=8)
    triad_case = replace(triad, case=Case.of(array="64 MiB"))
    barrier = finding("barrier", "bridged", TIME, None, 21.4, 1.222, half=0.03, blocks=8)
    barrier_case = replace(barrier, case=Case())
    labels = ("latency", "bandwidth", "allreduce", "barrier", "triad")
    tracks = []
    for label, level, blocks in (
        ("latency", 1.187, 12), ("bandwidth", 0.871, 12), ("allreduce", 1.052, 60),
        ("barrier", 1.222, 8), ("triad", 1.002, 8),
    ):  # fmt: skip
        broken = (5, 61) if label == "allreduce" else ()
        tracks += points(
            label, {"host": 1.0, "bridged": level}, blocks=blocks, broken=broken,
            start=1.4 * len(tracks), first=len(tracks),
        )  # fmt: skip
    return Judgement(
        study(labels, ARMS),
        "3f9c" * 16,
        "container-network",
        "bridged is slower than host in latency, bandwidth and barrier, equivalent in triad; "
        "allreduce is undecided.",
        True,
        (latency, bandwidth, allreduce, barrier, triad),
        (*latencies, *bandwidths, *allreduces, barrier_case, triad_case),
        tuple(
            Tally(
                label, arm, blocks,
                1 if (label, arm) == ("allreduce", "bridged") else 0,
                1 if (label, arm) == ("allreduce", "bridged") else 0, 0,
                "mpirun: exit code 1 without a last line (logs/0033-1-bridged-allreduce.err)"
                if (label, arm) == ("allreduce", "bridged") else "",
            )
            for label, blocks in (
                ("latency", 12), ("bandwidth", 12), ("allreduce", 60), ("barrier", 8), ("triad", 8)
            )
            for arm in ("host", "bridged")
        ),
        tuple(tracks),
        (
            Difference("container.engine", "bridged", "none", "namespace", "factor"),
            Difference("net.mpi.interface", "bridged", "lo", "eth0", "factor"),
            Difference("net.mpi.mtu", "bridged", "65536", "1500", "factor"),
            Difference("host.load1", "bridged", "0.31", "0.44", "noted"),
        ),
        {
            arm: {
                "cpu.model": "AMD EPYC 7B13", "cpu.cores": 2, "kernel.release": "6.1.0",
                "mpi.version": "Open MPI 5.0.11", "net.mpi.mtu": mtu,
                "env.OMPI_MCA_btl": "tcp,self", "memory.total": 8_232_341_504,
            }
            for arm, mtu in (("host", 65536), ("bridged", 1500))
        },
        117,
        (
            Notice(
                "two states", "warning",
                "allreduce: launches fall into two groups 25 % apart; the machine changed its "
                "state.", ("allreduce",),
            ),
            Notice(
                "drift", "note",
                "launches of the same arm resemble their neighbours (rank autocorrelation 0.61); "
                "pairs cancel it.", ("latency",), "",
                {"autocorrelation": 0.61, "lags": [(1, 0.011), (2, 0.013), (4, 0.017)]},
            ),
            Notice(
                "order effect", "note",
                "the second launch of a block took 0.8 % longer than the first in bandwidth.",
                ("bandwidth",), "The order is balanced, so the ratio stands.",
            ),
        ),
        {"paribus": "0.1.0", "python": "3.11.9", "numpy": "2.1.0"},
        1_763_683_200.0,
        212.4,
        LOOKS,
        0.987,
        (
            layer("network", "bridged", 1.142),
            layer("memory", "bridged", 0.998, half=0.006),
        ),
        beside(latency, (1.312, 1.181, 1.174)) + beside(allreduce, (1.2, 1.03, 1.02), half=0.06),
        (),
        "Randomised pairs of launches, back to back; drift of the machine cancels.",
    )  # fmt: skip


def three_arms() -> Judgement:
    """Return a study with two arms against the reference and long names."""
    arms = (Arm("shared-memory"), Arm("tcp-loopback"), Arm("tcp-bridge"))
    heads, cases, tracks = [], [], []
    for label, metric, factors in (
        ("latency", LATENCY, (14.2, 21.7)),
        ("message_rate", RATE, (0.081, 0.079)),
    ):
        for arm, factor in zip(("tcp-loopback", "tcp-bridge"), factors, strict=True):
            head, rows = swept(label, arm, metric, factor)
            heads.append(head)
            cases += rows
        tracks += points(
            label,
            {"shared-memory": 1.0, "tcp-loopback": factors[0], "tcp-bridge": factors[1]},
            start=1.4 * len(tracks),
            first=len(tracks),
        )
    base = two_arms()
    return replace(
        base,
        study=study(
            ("latency", "message_rate"),
            arms,
            question="What does leaving shared memory cost?",
            factor="transport",
            path="studies/mpi-transport.toml",
        ),
        directory="mpi-transport",
        sentence="tcp-loopback and tcp-bridge are slower than shared-memory in latency and "
        "message_rate.",
        headlines=tuple(heads),
        cases=tuple(cases),
        tallies=tuple(
            Tally(label, arm.name, 12, 0, 0, 0)
            for label in ("latency", "message_rate")
            for arm in arms
        ),
        points=tuple(tracks),
        differences=tuple(
            Difference("mpi.transport", arm, "shm", "tcp", "factor")
            for arm in ("tcp-loopback", "tcp-bridge")
        ),
        facts={arm.name: {"cpu.model": "AMD EPYC 7B13"} for arm in arms},
        notices=(),
        layers=(
            layer("network", "tcp-loopback", 13.1),
            layer("network", "tcp-bridge", 17.5),
        ),
        endpoints=tuple(e for h in heads for e in beside(h, (1.3, 1.02, 1.0))),
        pairs=(
            *(replace(h, reference="shared-memory") for h in heads),
            replace(
                finding("latency", "tcp-bridge", LATENCY, None, 318.0, 1.528, half=0.01),
                reference="tcp-loopback",
            ),
            replace(
                finding("message_rate", "tcp-bridge", RATE, None, 14.8, 0.975, half=0.03),
                reference="tcp-loopback",
            ),
        ),
    )


def withheld() -> Judgement:
    """Return a study whose audit found a difference that the factor does not explain."""
    base = two_arms()
    said = Verdict(Word.WITHHELD, "cpu.governor differs and the factor does not explain it", True)
    return replace(
        base,
        sentence="No verdict: the arms differ in cpu.governor, which the factor does not explain.",
        headlines=tuple(replace(h, verdict=said) for h in base.headlines),
        cases=tuple(replace(c, verdict=said) for c in base.cases),
        differences=(
            *base.differences,
            Difference("cpu.governor", "bridged", "performance", "powersave", "unexplained"),
        ),
    )


def reliability() -> Judgement:
    """Return a study in which one arm fails far more often than the reference."""
    base = two_arms()
    said = Verdict(Word.RELIABILITY, "9 of 21 launches failed in bridged, 0 of 21 in host", True)
    return replace(
        base,
        sentence="bridged fails more often than host in allreduce; see the launches.",
        headlines=tuple(
            replace(h, verdict=said) if h.benchmark == "allreduce" else h for h in base.headlines
        ),
        tallies=tuple(
            replace(t, counted=22, failed=7, timed_out=2, invalid=1)
            if (t.benchmark, t.arm) == ("allreduce", "bridged")
            else t
            for t in base.tallies
        ),
    )


def no_data() -> Judgement:
    """Return a study in which no launch gave anything."""
    base = two_arms()
    said = Verdict(Word.NO_DATA, "all launches of bridged failed", True)
    bare = replace(
        base.headlines[0], comparison=None, verdict=said, reference_value=None, arm_value=None
    )
    return replace(
        base,
        study=study(("latency",), ARMS),
        sentence="No data: every launch of bridged failed.",
        headlines=(bare,),
        cases=(),
        tallies=(
            Tally("latency", "host", 0, 0, 0, 0),
            Tally("latency", "bridged", 8, 8, 0, 0, "mpirun: not found"),
        ),
        points=tuple(
            Point(n, 1 + n, "latency", "bridged", 2.0 * n, State.FAILED, None) for n in range(8)
        ),
        notices=(),
        layers=(),
        endpoints=(),
    )


def incomplete() -> Judgement:
    """Return a study that was interrupted before an interval exists."""
    base = two_arms()
    said = Verdict(Word.UNDECIDED, "5 blocks are too few for an interval; 8 are needed", False, 3)

    def early(row: Finding) -> Finding:
        assert row.comparison is not None
        early_comparison = Comparison(5, row.comparison.ratio, 0.0, math.inf, 0.987)
        return replace(row, comparison=early_comparison, verdict=said)

    return replace(
        base,
        sentence="Undecided so far: 5 of at most 60 blocks are done.",
        complete=False,
        headlines=tuple(early(h) for h in base.headlines),
        cases=tuple(early(c) for c in base.cases),
    )


def censored() -> Judgement:
    """Return a study in which so many launches were cut off that only the word stands."""
    base = two_arms()
    said = Verdict(Word.SLOWER, "7 % of the launches hit their limit", True, None, False)
    inf = Spread(60, math.inf, 23.0, math.inf)

    def cut(row: Finding) -> Finding:
        if row.benchmark != "allreduce":
            return row
        open_end = Comparison(60, 1.31, 1.06, math.inf, 0.987)
        return replace(row, comparison=open_end, verdict=said, arm_value=inf)

    one_sided = Comparison(12, 1.187, 1.15, math.inf, 0.987)
    first = replace(base.headlines[0], comparison=one_sided)
    return replace(
        base,
        sentence="bridged is slower than host.",
        headlines=tuple(cut(h) for h in (first, *base.headlines[1:])),
        cases=tuple(cut(c) for c in base.cases),
    )


def monitor() -> Judgement:
    """Return a study that watches without an end: no looks, words as of now."""
    base = two_arms()

    def now(row: Finding) -> Finding:
        return replace(row, verdict=replace(row.verdict, final=False))

    return replace(
        base,
        study=replace(base.study, settings=replace(base.study.settings, monitor=True)),
        sentence="As of now bridged is slower than host in latency, bandwidth and barrier.",
        complete=False,
        headlines=tuple(now(h) for h in base.headlines),
        cases=tuple(now(c) for c in base.cases),
        layers=(),
        looks=(),
        level=0.95,
        design="Randomised pairs of launches, judged by a confidence sequence, valid at any time.",
    )


def sessions() -> Judgement:
    """Return a study by session that is decided by the p99, with many notes on its data."""
    base = two_arms()
    settings = replace(base.study.settings, unit="session", launches=5, seed=7)
    tail = beside(base.headlines[0], (1.4, 1.19, 1.18))
    median = replace(base.headlines[0], metric=replace(base.headlines[0].metric, margin=0.02))
    head = replace(
        tail[0],
        arm_value=Spread(8, 41.2, 40.0, 44.0),
        reference_value=Spread(8, 31.4, 30.9, 31.6),
    )
    return replace(
        base,
        study=replace(
            study(("latency",), ARMS, question="What does the other BIOS setting cost?"),
            settings=settings,
        ),
        sentence="bridged is slower in latency (+31.2 %); one installation each.",
        headlines=(head,),
        cases=base.of_benchmark("latency", base.cases)[:3],
        points=points("latency", {"host": 1.0, "bridged": 1.3}, blocks=8),
        tallies=tuple(Tally("latency", arm, 40, 0, 0, 0) for arm in ("host", "bridged")),
        layers=(),
        endpoints=(median, *tail[1:]),
        notices=(
            Notice(
                "few switches", "warning",
                "the factor was switched 4 times per direction: one installation each, not "
                "attributable to the factor.", (), "Add pairs of sessions.",
            ),
            *(
                Notice(
                    f"finding {n}", "note",
                    "something about the data that takes a rather long sentence to be told, longer "
                    "than two lines of a narrow terminal, because it names every case of the "
                    "benchmark by its size in bytes: 8, 32, 128, 512, 2048, 8192 and so on.",
                    ("latency",),
                )
                for n in range(11)
            ),
        ),
        design="Randomised pairs of sessions; the median of a session is what counts.",
    )  # fmt: skip


def imported() -> Judgement:
    """Return what a table of numbers comes to: no facts, no seed, no launches, unpaired."""
    reason = (
        "the numbers are not paired, so drift between the arms cannot be told from a difference"
    )
    latency, latencies = swept("latency", "new", LATENCY, 1.04, sizes=(8, 1024))
    said = Verdict(Word.WITHHELD, reason, True)

    def bare(row: Finding) -> Finding:
        return replace(row, verdict=said)

    return Judgement(
        Study(
            "old against new", "not stated", (Arm("old"), Arm("new")),
            (Selection("latency", "", 0, {}),), Settings(), path="numbers.csv",
        ),
        "", "", "new has its verdict withheld in latency.", True,
        (bare(latency),), tuple(bare(c) for c in latencies), (), (), (), {}, 0,
        (
            Notice(
                "unpaired", "warning", "The table has no column block or time: the order of the "
                "measurements is unknown.", (), "Add a column block.",
            ),
        ),
        design="Unpaired values of unknown order; nothing was randomised.",
    )  # fmt: skip


def empty() -> Judgement:
    """Return a study directory in which nothing was launched yet."""
    return Judgement(
        study(("latency",), ARMS), "0" * 64, "fresh", "No data: nothing was launched yet.", False,
        (), (), (), (), (), {}, 0,
    )  # fmt: skip


def hostile() -> Judgement:
    """Return a study whose every text tries to be more than text."""
    arms = (Arm("host" + HOSTILE), Arm("[bold]x" + HOSTILE))
    metric = replace(LATENCY, name="lat" + HOSTILE, unit="us" + HOSTILE)
    label = "latency" + HOSTILE
    head, cases = swept(label, arms[1].name, metric, 1.2)
    return replace(
        two_arms(),
        study=study((label,), arms, question=HOSTILE, factor=HOSTILE, path="a'b\n" + HOSTILE),
        plan_sha256=HOSTILE,
        directory=HOSTILE,
        sentence=HOSTILE,
        headlines=(head,),
        cases=(*cases, replace(cases[0], case=Case.of(**{HOSTILE: HOSTILE}))),
        tallies=(Tally(label, arms[1].name, 12, 1, 0, 0, HOSTILE),),
        points=tuple(
            replace(p, flag=HOSTILE if p.flag else "")
            for p in points(label, {arms[0].name: 1.0, arms[1].name: 1.2}, broken=(3,))
        ),
        differences=(Difference(HOSTILE, arms[1].name, HOSTILE, HOSTILE, "unexplained"),),
        facts={arms[0].name: {HOSTILE: HOSTILE}, arms[1].name: {HOSTILE: [HOSTILE]}},
        notices=(
            Notice("two states" + HOSTILE, "warning", HOSTILE, (HOSTILE,), HOSTILE),
            Notice("drift", "note", HOSTILE, (HOSTILE,), HOSTILE, {HOSTILE: [(1, 0.1)]}),
        ),
        layers=(layer(HOSTILE, arms[1].name, 1.2),),
        endpoints=(replace(head, metric=replace(metric, endpoint="p99")),),
        pairs=(replace(head, reference=arms[0].name),),
        design=HOSTILE,
        versions={HOSTILE: HOSTILE},
    )


def large() -> Judgement:
    """Return 10 benchmarks x 20 sizes x 2 arms x 60 blocks: the size that must stay fast."""
    sizes = tuple(2**k for k in range(3, 23))
    heads, cases, tracks, labels = [], [], [], tuple(f"benchmark_{n}" for n in range(10))
    for n, label in enumerate(labels):
        metric = LATENCY if n % 2 else BANDWIDTH
        head, rows = swept(label, "bridged", metric, 1 + 0.02 * n, sizes=sizes, blocks=60)
        heads.append(head)
        cases += rows
        tracks += points(label, {"host": 1.0, "bridged": 1 + 0.02 * n}, blocks=60)
    return replace(
        two_arms(),
        study=study(labels, ARMS),
        headlines=tuple(heads),
        cases=tuple(cases),
        points=tuple(tracks),
        tallies=tuple(Tally(label, a.name, 60, 0, 0, 0) for label in labels for a in ARMS),
    )


def progress(
    judgement: Judgement, blocks: int, elapsed_s: float, *, launch: bool = True
) -> Progress:
    """Return what the study would have told after `blocks` blocks of every benchmark."""
    labels = [s.label for s in judgement.study.benchmarks]
    arm = judgement.study.arms[-1].name
    return Progress(
        Launch(2 * blocks * len(labels), blocks + 1, labels[0], arm, 7) if launch else None,
        dict.fromkeys(labels, blocks),
        60,
        2 * blocks * len(labels),
        120 * len(labels),
        elapsed_s,
        elapsed_s * 3 if launch else 0.0,
        judgement.headlines if blocks else (),
        1,
    )


ALL = {
    "two_arms": two_arms,
    "three_arms": three_arms,
    "withheld": withheld,
    "reliability": reliability,
    "no_data": no_data,
    "incomplete": incomplete,
    "censored": censored,
    "monitor": monitor,
    "sessions": sessions,
    "imported": imported,
    "empty": empty,
    "hostile": hostile,
}
