"""Join the two judgements of launches that no plan paired: unpaired, and in pairs of neighbours.

A verdict that the unpaired launches support stands; pairs can only add one where they do not. So
the same figures get the same verdict as logs and as a table, with and without their times.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from paribus.core import DatedBy, Figures, Finding, Judgement, Notice, NoticeName, Word
from paribus.judge.headlines import with_findings
from paribus.logs import words
from paribus.logs.shift import LEAST_LAUNCHES
from paribus.logs.tables.launches import alternating, neighbours

SAID = (Word.FASTER, Word.SLOWER, Word.EQUIVALENT)
"""Verdicts that say something."""


@dataclass(frozen=True, slots=True)
class Made:
    """When the launches of each arm of a benchmark were made.

    `by` is what says so, None for nothing. `times` are in seconds by arm; `dates` is whether they
    count from 1970.
    """

    by: DatedBy | None = None
    times: Mapping[str, Sequence[float]] = field(default_factory=dict)
    dates: bool = True

    @property
    def in_turns(self) -> bool:
        """Return whether the times show that the arms alternate."""
        return self.by is not None and alternate(self.times)


def alternate(times: Mapping[str, Sequence[float]]) -> bool:
    """Return whether enough launches have neighbours of the other arms for `pair_neighbours`."""
    placed = [(at, arm) for arm, several in times.items() for at in several]
    begins = neighbours([arm for _, arm in sorted(placed)], len(times))
    return alternating(len(begins), len(times), len(placed))


def enough(counts: Sequence[int]) -> bool:
    """Return whether the reference and another arm have launches enough for an unpaired interval.

    `counts` are the launches of each arm, those of the reference first.
    """
    reference, *others = counts
    return min(reference, max(others)) >= LEAST_LAUNCHES


def with_launches(paired: Judgement, alone: Judgement) -> Judgement:
    """Return the judgement of pairs, with the findings of launches `alone` that have a verdict."""
    return replace(
        paired,
        headlines=_stronger(alone.headlines, paired.headlines),
        others=_stronger(alone.others, paired.others),
        cases=_stronger(alone.cases, paired.cases),
        design=f"{paired.design} {words.TWO_INTERVALS}",
    )


def _stronger(alone: Sequence[Finding], paired: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return for each finding that of launches `alone` if it has a verdict, else that of pairs."""
    of = {(f.benchmark, f.arm, f.metric.name, f.case): f for f in alone}
    both = [(of[f.benchmark, f.arm, f.metric.name, f.case], f) for f in paired]
    return tuple(one if one.verdict.word in SAID else pair for one, pair in both)


def with_unpaired(paired: Sequence[Figures], every: Iterable[Figures]) -> list[Figures]:
    """Return the figures of paired launches, and behind them those of the others in `every`.

    Launches are the same if benchmark, arm and file are.
    """
    seen = {(one.benchmark, one.arm, one.file) for one in paired}
    others = (one for one in every if (one.benchmark, one.arm, one.file) not in seen)
    return numbered([*paired, *others])


def numbered(several: Iterable[Figures]) -> list[Figures]:
    """Return figures with the numbers of their launches, from 1."""
    return [one._replace(launch=number) for number, one in enumerate(several, 1)]


def stopping(source: str) -> Notice:
    """Return the notice that nothing shows whether the number of launches was fixed before."""
    return Notice(NoticeName.STOPPING_NOT_PLANNED, "warning", figures={"source": source})


def reserved(part: Judgement, made: Mapping[str, Made]) -> Judgement:
    """Return the judgement with a reservation in each verdict on arms not launched in turns.

    `made` is when the launches of each benchmark were made.
    """
    apart = {label for label, of in made.items() if not of.in_turns}

    def with_reservation(f: Finding) -> Finding:
        if f.verdict.word not in SAID or f.benchmark not in apart:
            return f
        unless = _between(made[f.benchmark], f.reference or part.reference, f.arm)
        return replace(
            f, verdict=replace(f.verdict, figures={**f.verdict.figures, "unless": unless})
        )

    return with_findings(part, with_reservation)


def _between(made: Made, *arms: str) -> dict[str, Any]:
    """Return the figures of the reservation: from when to when the launches of `arms` were made."""
    every = [at for arm in arms for at in made.times.get(arm, ())] if made.dates else []
    first, last = (
        (
            datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")
            for at in (min(every), max(every))
        )
        if every
        else (None, None)
    )
    return {"arms": list(arms), "dated_by": made.by, "first": first, "last": last}


def not_in_turns(arms: Sequence[str], several: Mapping[str, Made]) -> Iterable[Notice]:
    """Yield notices on benchmarks whose arms were not launched in turns, which `several` are.

    Benchmarks of which the same is known share a notice: that one arm was launched before the
    other, or that nothing shows the order.
    """
    alike: dict[tuple[str | None, str, str], list[str]] = {}
    for label, made in several.items():
        reference, *others = arms
        for arm in others:
            first = second = ""
            if made.by:
                one, other = sorted((reference, arm), key=lambda name: min(made.times[name]))
                if max(made.times[one]) < min(made.times[other]):
                    first, second = one, other
            labels = alike.setdefault((made.by, first, second), [])
            labels += [label] if label not in labels else []
    for (dated_by, first, second), labels in alike.items():
        figures = {"dated_by": dated_by}
        if first:
            figures |= {"first": first, "second": second}
        name = NoticeName.ONE_ARM_AFTER_THE_OTHER if first else NoticeName.NOT_IN_TURNS
        yield Notice(name, "warning", tuple(labels), figures)
