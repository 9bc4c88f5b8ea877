"""Judgements as a study directory would give them, made by a seeded formula: no machine needed."""

from __future__ import annotations

import math
from dataclasses import replace

from judgement_pieces import (
    ARMS,
    BANDWIDTH,
    HOSTILE,
    LATENCY,
    RATE,
    beside,
    finding,
    invented,
    invented_notice,
    layer,
    points,
    study,
    swept,
    two_arms,
)
from paribus.judgement import (
    Comparison,
    Difference,
    Finding,
    Judgement,
    Notice,
    Point,
    Spread,
    Tally,
    Word,
)
from paribus.model import Arm, Case, Selection, Settings, State, Study
from paribus.reasons import NoticeName


def three_arms() -> Judgement:
    """Return a study with two arms against the reference and long names."""
    arms = (Arm("shared-memory"), Arm("tcp-loopback"), Arm("tcp-bridge"))
    heads: list[Finding] = []
    cases: list[Finding] = []
    tracks: list[Point] = []
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
    said = invented(Word.WITHHELD, "cpu.governor differs and the factor does not explain it", True)
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
    said = invented(Word.RELIABILITY, "9 of 21 launches failed in bridged, 0 of 21 in host", True)
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
    said = invented(Word.NO_DATA, "all launches of bridged failed", True)
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
    said = invented(Word.UNDECIDED, "5 blocks are too few for an interval; 8 are needed", False, 3)

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
    said = invented(Word.SLOWER, "7 % of the launches hit their limit", True, None, False)
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
            invented_notice(
                NoticeName.ONE_INSTALLATION_EACH, "warning",
                "the factor was switched 4 times per direction: one installation each, not "
                "attributable to the factor.", (), "Add pairs of sessions.",
            ),
            *(
                invented_notice(
                    name, "note",
                    "latency: something about the data that takes a rather long sentence, longer "
                    "than two lines of a narrow terminal, because it names every case of the "
                    "benchmark by its size in bytes: 8, 32, 128, 512, 2048, 8192 and so on.",
                    ("latency",),
                )
                for name in list(NoticeName)[:11]
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
    said = invented(Word.WITHHELD, reason, True)

    def bare(row: Finding) -> Finding:
        return replace(row, verdict=said)

    return Judgement(
        Study(
            "old against new", "not stated", (Arm("old"), Arm("new")),
            (Selection("latency", "", 0, {}),), Settings(), path="numbers.csv",
        ),
        "", "", "no verdict for new in latency.", True,
        (bare(latency),), tuple(bare(c) for c in latencies), (), (), (), {}, 0,
        (
            invented_notice(
                NoticeName.ORDER_UNKNOWN, "warning",
                "The table has no column block or time: the order of the measurements is unknown.",
                (), "Add a column block.",
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
            replace(p, disturbed=(HOSTILE,) if p.flag else ())
            for p in points(label, {arms[0].name: 1.0, arms[1].name: 1.2}, broken=(3,))
        ),
        differences=(Difference(HOSTILE, arms[1].name, HOSTILE, HOSTILE, "unexplained"),),
        facts={arms[0].name: {HOSTILE: HOSTILE}, arms[1].name: {HOSTILE: [HOSTILE]}},
        notices=(
            Notice(
                NoticeName.CHANGED_FACTS, "warning", (HOSTILE,), {"arm": "a", "keys": [HOSTILE]}
            ),
            invented_notice(
                NoticeName.DRIFT, "note", HOSTILE, (HOSTILE,), HOSTILE, {HOSTILE: [(1, 0.1)]}
            ),
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
    heads: list[Finding] = []
    cases: list[Finding] = []
    tracks: list[Point] = []
    labels = tuple(f"benchmark_{n}" for n in range(10))
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
