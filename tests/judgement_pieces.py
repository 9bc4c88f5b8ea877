"""What judgements in tests are made of, by a seeded formula: findings, launches; and one whole."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from paribus.judgement import (
    Comparison,
    Difference,
    Finding,
    Judgement,
    Notice,
    Point,
    Spread,
    Tally,
    Verdict,
    Word,
)
from paribus.model import Arm, Case, Container, Endpoint, Metric, Selection, Settings, State, Study
from paribus.reasons import NoticeName, Reason

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


CODES = {
    Word.FASTER: Reason.BEYOND_MARGIN,
    Word.SLOWER: Reason.BEYOND_MARGIN,
    Word.EQUIVALENT: Reason.WITHIN_MARGIN,
    Word.UNDECIDED: Reason.ACROSS_MARGIN,
    Word.RELIABILITY: Reason.FAILURES_DIFFER,
    Word.WITHHELD: Reason.UNEXPLAINED_DIFFERENCES,
    Word.NO_DATA: Reason.NO_COMPLETE_BLOCK,
}


@dataclass(frozen=True, slots=True)
class Invented(Verdict):
    """A verdict with a sentence of the test's own, not made of its code and figures."""

    said: str = ""

    @property
    def reason(self) -> str:
        return self.said


def invented(
    word: Word,
    said: str,
    final: bool = True,
    blocks_needed: int | None = None,
    size_known: bool = True,
) -> Verdict:
    """Return a verdict of `word` that gives `said` as its reason."""
    return Invented(word, CODES[word], final, blocks_needed, size_known, said=said)


@dataclass(frozen=True, slots=True)
class InventedNotice(Notice):
    """A notice with texts of the test's own, not made of its figures."""

    said: str = ""
    help: str = ""

    @property
    def text(self) -> str:
        return self.said

    @property
    def fix(self) -> str:
        return self.help


def invented_notice(
    name: NoticeName,
    level: Literal["warning", "note"],
    said: str,
    benchmarks: tuple[str, ...] = (),
    fix: str = "",
    figures: Mapping[str, Any] | None = None,
) -> Notice:
    """Return a notice that says `said`."""
    return InventedNotice(name, level, benchmarks, figures or {}, said=said, help=fix)


def verdict(low: float, high: float, metric: Metric, margin: float, blocks: int) -> Verdict:
    """Return the word that an interval deserves: enough of the rule to make pages realistic."""
    better = Word.SLOWER if metric.better == "lower" else Word.FASTER
    worse = Word.FASTER if metric.better == "lower" else Word.SLOWER
    band = 1 / (1 + margin), 1 + margin
    if low > band[1]:
        return invented(better, "the interval lies wholly beyond the margin", True)
    if high < band[0]:
        return invented(worse, "the interval lies wholly beyond the margin", True)
    if band[0] < low and high < band[1]:
        return invented(Word.EQUIVALENT, "the interval lies wholly inside the margin", True)
    return invented(Word.UNDECIDED, "the interval reaches across the margin", True, blocks + 7)


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
        said = invented(word, f"the audit or the launches say: {word}", True)
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
    names: tuple[Endpoint, ...] = ("p99", "p25", "min")
    for endpoint, ratio, scale in zip(names, ratios, (1.4, 0.96, 0.9), strict=True):
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
    made: list[Point] = []
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
                    1.4 if odd else None,
                )
            )  # fmt: skip
    return tuple(made)


def study(labels: tuple[str, ...], arms: tuple[Arm, ...], **changes: Any) -> Study:
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
    tracks: list[Point] = []
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
            invented_notice(
                NoticeName.TWO_STATES, "warning",
                "allreduce: launches fall into two groups 25 % apart; the machine changed its "
                "state.", ("allreduce",),
            ),
            invented_notice(
                NoticeName.DRIFT, "note",
                "latency: launches of the same arm resemble their neighbours (rank autocorrelation "
                "0.61); pairs cancel it.", ("latency",), "",
                {"autocorrelation": 0.61, "lags": [(1, 0.011), (2, 0.013), (4, 0.017)]},
            ),
            invented_notice(
                NoticeName.ORDER_EFFECT, "note",
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
