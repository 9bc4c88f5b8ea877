"""How steady launches are in each arm, and steps within them: their scatter over the reference."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from paribus.core import Finding, Judgement, Lens, Open, Seen, Word, count
from paribus.core.units import percent, plural
from paribus.judge.evidence import Evidence
from paribus.judge.headlines import margin_of
from paribus.report.rows import kept, listed_as
from paribus.stats.steadiness import (
    LEAST_FOR_WORDS,
    Scatters,
    Unit,
    exceeding,
    scatters,
    scatters_within,
)
from paribus.words.lists import listed

if TYPE_CHECKING:
    pass

AS_STEADY = 2.0
"""Arms are as steady where the interval lies within this factor."""

WITH_STEPS = "application"
"""The layer of benchmarks whose samples are steps of a program: kernels repeat one operation."""

UNLIKE = 0.05
"""The p-value up to which the numbers of slow launches are worth a sentence."""


@dataclass(frozen=True, slots=True)
class Steadiness:
    """How far the launches of `benchmark` scatter in `arm`, over how far they do in the reference.

    `of`: or the sessions, or the steps of a launch, of which none are counted as slow.
    `ratio` is of `blocks` and has the interval [low, high]. `spreads` are the median absolute
    deviations of the reference and of the arm, as shares of their medians. `slow` are the launches
    of each that are slower than its median by more than `margin`; `p` is how likely so unlike
    numbers are by chance. `more` is how many blocks it would take for a word, where there is none.
    """

    benchmark: str
    arm: str
    blocks: int
    ratio: float
    low: float
    high: Open
    word: Literal["steadier", "less steady", "as steady", "undecided"]
    spreads: tuple[float, float]
    slow: tuple[int, int]
    margin: float
    p: float
    more: int = 0
    of: Literal["launch", "session", "build", "step"] = "launch"


Rows = tuple[Steadiness, ...]


def steadiness(seen: Seen) -> Rows | None:
    """Return the scatter of each benchmark and arm; None where nothing can be said of any.

    What counts in a block counts here: a launch, or the median of a session.
    """
    if not seen.launches:
        return None
    heads = [one for one in seen.judgement.headlines if one.verdict.word is not Word.WITHHELD]
    found = (of(seen, head) for head in heads for of in (_between, _within))
    return tuple(one for one in found if one is not None) or None


def _between(seen: Seen, head: Finding) -> Steadiness | None:
    reference = seen.plan.study.arms[0].name
    logs = [_times(seen.evidence, head, arm) for arm in (reference, head.arm)]
    blocks = sorted(logs[0].keys() & logs[1].keys())
    ours, theirs = ([one[block] for block in blocks] for one in logs)
    of = scatters(ours, theirs)
    if of is None:
        return None
    row = _row(seen, head, of, (_deviation(ours), _deviation(theirs)))
    *slow, p = exceeding(ours, theirs, row.margin)
    return replace(row, slow=(slow[0], slow[1]), p=p, of=seen.plan.design.unit)


def _within(seen: Seen, head: Finding) -> Steadiness | None:
    """Return how far steps of one launch lie apart, of an application that has them."""
    cells = seen.evidence.cells_of(head.benchmark, head.metric.name)
    if seen.plan.layers.get(head.benchmark) != WITH_STEPS or len(cells) != 1:
        return None
    arms = seen.plan.study.arms[0].name, head.arm
    units = [_steps(seen.evidence, head.benchmark, arm) for arm in arms]
    blocks = sorted(units[0].keys() & units[1].keys())
    ours, theirs = ([one[block] for block in blocks] for one in units)
    of = scatters_within(ours, theirs)
    if of is None:
        return None
    each = [[_deviation(steps) for unit in one for steps in unit] for one in (ours, theirs)]
    return _row(seen, head, of, (statistics.median(each[0]), statistics.median(each[1])))


def _row(seen: Seen, head: Finding, of: Scatters, spreads: tuple[float, float]) -> Steadiness:
    word = _word(of)
    return Steadiness(
        *(head.benchmark, head.arm, of.blocks, of.ratio, of.low, of.high, word, spreads),
        slow=(0, 0),
        margin=margin_of(seen.plan, seen.evidence, head.benchmark, head.metric),
        p=1.0,
        more=_more(of) if word == "undecided" else 0,
        of="step",
    )


def _steps(evidence: Evidence, label: str, arm: str) -> dict[int, Unit]:
    """Return the logs of the steps of each launch of an arm, by block."""
    found = {
        block: [
            list(map(math.log, entry.steps))
            for entry in arms.get(arm, ())
            if evidence.counted(entry.launch) and entry.steps
        ]
        for block, arms in evidence.launches.get(label, {}).items()
    }
    return {block: unit for block, unit in found.items() if unit}


def _times(evidence: Evidence, head: Finding, arm: str) -> dict[int, float]:
    """Return the logs of an arm by block as times: the mean over cases; a rate as its inverse."""
    cells = evidence.cells_of(head.benchmark, head.metric.name)
    series = [evidence.series(head.benchmark, arm, cell) for cell in cells]
    sign = 1 if head.metric.better == "lower" else -1
    return {
        block: sign * statistics.fmean(math.log(one[block]) for one in series)
        for block in (series[0] if series else ())
        if block > 0 and all(one.get(block, 0) > 0 for one in series)
    }


def _deviation(logs: Sequence[float]) -> float:
    middle = statistics.median(logs)
    return math.expm1(statistics.median(abs(one - middle) for one in logs))


def _word(of: Scatters) -> Literal["steadier", "less steady", "as steady", "undecided"]:
    if of.blocks >= LEAST_FOR_WORDS:
        if of.low > 1:
            return "less steady"
        if of.high < 1:
            return "steadier"
        if of.low > 1 / AS_STEADY and of.high < AS_STEADY:
            return "as steady"
    return "undecided"


def _more(of: Scatters) -> int:
    """Return how many blocks it takes for a word if the ratio stays; 0 where that is unknown.

    An interval narrows with the root of the blocks.
    """
    if not 0 < of.low <= of.high < math.inf:
        return 0
    away = abs(math.log(of.ratio))
    half = math.log(of.high / of.low) / 2
    room = max(away, math.log(AS_STEADY) - away)
    return max(LEAST_FOR_WORDS, of.blocks + 1, math.ceil(of.blocks * (half / room) ** 2))


# --- words -----------------------------------------------------------------------------------

TITLE = "Steadiness"


def _basis(rows: Rows) -> str:
    """Return what a ratio of scatters is of these rows."""
    what = listed([plural(one) for one in dict.fromkeys(row.of for row in rows)], last=" or ")
    return (
        f"Ratio of scatters: how far two {what} of the arm lie apart, over how far two of the"
        " reference do: the median over pairs. Scatter: median absolute deviation."
    )


def said(one: Steadiness, reference: str) -> str:
    """Return the word, the ratio of scatters, both scatters, and slow launches if they differ."""
    high = "infinity" if math.isinf(one.high) else f"{one.high:.2f}"
    word = {"undecided": "undecided which arm is steadier"}.get(one.word, one.word)
    ours, theirs = map(_share, one.spreads)
    what = "the steps of its launches" if one.of == "step" else f"its {plural(one.of)}"
    text = (
        f"{one.benchmark}: {word}: {what} scatter {one.ratio:.2f} times as far"
        f" [{one.low:.2f}, {high}] as on {reference} ({theirs} against {ours},"
        f" {count(one.blocks, 'block')})"
    )
    if one.p <= UNLIKE:
        ours, theirs = (f"{number} of {one.blocks}" for number in one.slow)
        text += f". Slower than their median by more than {percent(one.margin)}: {theirs},"
        text += f" against {ours} on {reference} (p = {one.p:.2g})"
    return f"{text}. A verdict takes about {count(one.more, 'block')}" if one.more else text


def _share(value: float) -> str:
    return f"{100 * value:.2g} %"


def _lines(judgement: Judgement, rows: Rows) -> list[tuple[str, str]]:
    return [(one.arm, said(one, judgement.reference)) for one in rows]


# --- reports ---------------------------------------------------------------------------------


def spread(judgement: Judgement, rows: Rows) -> Iterable[str]:
    """Return the benchmarks in which one arm is steadier."""
    return [one.benchmark for one in rows if one.word in ("steadier", "less steady")]


def failing(judgement: Judgement, rows: Rows, rule: str) -> Iterable[str]:
    """Return what is less steady in an arm than in the reference: the rule `less-steady`."""
    bad = (one for one in rows if one.word == "less steady")
    return [f"{one.arm}: {said(one, judgement.reference)}" for one in bad]


LENS = Lens(
    judge=steadiness,
    **kept("steadiness", Steadiness, lambda of, one: said(one, of.reference)),
    **listed_as(TITLE, "Steadiness", _lines, lambda rows: [_basis(rows)]),
    text_after="endpoints",
    html_after="rankings",
    failing=failing,
    spread=spread,
)
