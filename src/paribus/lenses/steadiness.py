"""How steady the launches of each arm are, and the steps within them, against the reference.

Do two launches of an arm lie further apart than two of the reference? For each pair of blocks, d is
how far apart the two launches of an arm lie, in logs. The ratio of scatters is the median over all
pairs of blocks of the arm's d over the reference's. It needs no centre, and drift that the arms
share is in both. Whether it is 1 is tested by the mean over all pairs of the sign of the difference
of both d, a U-statistic of degree 2 (W. Hoeffding, Ann. Math. Stat. 19 (1948) 293), over its
jackknife error (J. N. Arvesen, Ann. Math. Stat. 40 (1969) 2076), against Student's t. A sign is
bounded, so the level holds whatever the shapes of the arms are; a test that swaps the arms would
reject unlike shapes of equal scatter.

Within launches that keep a series, as of training steps, d is how far two steps of one launch lie
apart. Each block has a mean sign of its own, over all pairs of differences of its launches: an
unbiased figure between -1 and 1, however few its steps and however they follow from each other.
Whether its expectation is 0 is bet on block by block; a bet that wins 40-fold has a chance of at
most 1 in 40 (J. Ville, 1939; I. Waudby-Smith, A. Ramdas, J. R. Stat. Soc. B 86 (2024) 1). So the
level holds for all shapes, and whenever a study stops. Student's t of the blocks does not hold it:
where one launch in 20 is eight times as noisy, it errs in 23 % of studies of 18 blocks.
docs/statistics-details.md has the measured error rates.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from paribus.core import Finding, Judgement, Lens, Open, Seen, Word, count
from paribus.core.units import percent, plural
from paribus.judge.evidence import Evidence
from paribus.judge.headlines import margin_of
from paribus.report.rows import kept, listed_as
from paribus.stats.student import quantile
from paribus.words.lists import listed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Apart = Sequence[NDArray[np.float64]]

Unit = Sequence[Sequence[float]]
"""The logs of the steps of each launch of a unit: of one launch, or of those of a session."""

LEAST_BLOCKS = 12
"""Blocks below which scatters are not compared."""

LEAST_FOR_WORDS = 18
"""Blocks from which on a word other than "undecided" is given."""

ERROR = 0.025
"""Nominal level of words and intervals: at most 0.057 in all noise models from 18 blocks on."""

BET_ERROR = 0.05
"""Level of words and intervals within launches, at most."""

BETS = [(2 * i + 1) / 32 for i in range(16)]
"""Bets on a block, as shares of what a bet has left."""

MOST_BLOCKS = 400
"""The number of latest blocks of which pairs are made, some 80,000."""

FURTHEST = 8.0
"""How far from the ratio, in logs, an end of the interval is sought: a factor of 3,000."""

AS_STEADY = 2.0
"""Arms are as steady where the interval lies within this factor."""

WITH_STEPS = "application"
"""The layer of benchmarks whose samples are steps of a program: kernels repeat one operation."""

UNLIKE = 0.05
"""The p-value up to which the numbers of slow launches are reported."""


@dataclass(frozen=True, slots=True)
class Steadiness:
    """How far the launches of `benchmark` scatter in `arm`, over how far they do in the reference.

    `of`: what scatters, launches, sessions, builds, or the steps of a launch. `ratio`, of `blocks`,
    has the interval [low, high]. `spreads`: the median absolute deviations of the reference and of
    the arm, as shares of their medians. `slow`: how many launches of each are slower than its
    median by more than `margin` (0 of steps); `p`: the chance of so unlike numbers. `more`: how
    many blocks would decide, where `word` is "undecided"; 0 if that is not known.
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
    """Return the scatters of each benchmark and arm; None where none can be compared.

    The value of a block is that of the study: a launch, or the median of a session.
    """
    if not seen.launches:
        return None
    heads = [one for one in seen.judgement.headlines if one.verdict.word is not Word.WITHHELD]
    found = (row_of(seen, head) for head in heads for row_of in (_between, _within))
    return tuple(one for one in found if one is not None) or None


def _between(seen: Seen, head: Finding) -> Steadiness | None:
    """Return how far launches, or sessions, lie apart."""
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
    """Return the log time of an arm by block, the mean over cases; a rate enters as its inverse.

    Infinity for a launch that the time limit cut off: it lies apart from all others.
    """
    cells = evidence.cells_of(head.benchmark, head.metric.name)
    series = [evidence.series(head.benchmark, arm, cell) for cell in cells]
    sign = 1 if head.metric.better == "lower" else -1
    known = {
        block: sign * statistics.fmean(math.log(one[block]) for one in series)
        for block in (series[0] if series else ())
        if block > 0 and all(one.get(block, 0) > 0 for one in series)
    }
    return known | dict.fromkeys(evidence.cut_off(head.benchmark, arm), math.inf)


def _deviation(logs: Sequence[float]) -> float:
    """Return the median absolute deviation of logs, as a share of the median value."""
    middle = statistics.median(logs)
    return statistics.median(abs(math.expm1(one - middle)) for one in logs)


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
    """Return how many blocks decide if the ratio stays as it is; 0 where that is not known.

    The interval narrows with the root of the blocks, until it leaves out 1, or AS_STEADY.
    """
    if not 0 < of.low <= of.high < math.inf:
        return 0
    distance = abs(math.log(of.ratio))
    half_width = math.log(of.high / of.low) / 2
    room = max(distance, math.log(AS_STEADY) - distance)
    return max(LEAST_FOR_WORDS, of.blocks + 1, math.ceil(of.blocks * (half_width / room) ** 2))


# --- statistics ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scatters:
    """The ratio of an arm's scatter to the reference's by so many blocks, in [low, high]."""

    blocks: int
    ratio: float
    low: float
    high: float


def scatters(reference: Sequence[float], arm: Sequence[float]) -> Scatters | None:
    """Return the ratio of scatters of two arms, whose logs are given block by block.

    None for fewer than LEAST_BLOCKS blocks, and where most launches of an arm have the same value,
    infinity too. The interval has the level 1 - ERROR; it may end at 0 or infinity.
    """
    import numpy as np

    ours, theirs = (np.asarray(one[-MOST_BLOCKS:], dtype=np.float64) for one in (reference, arm))
    n = len(ours)
    if n < LEAST_BLOCKS or not np.isfinite([np.median(ours), np.median(theirs)]).all():
        return None
    upper = np.triu_indices(n, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        each = [(one[:, None], one[None, :]) for one in (ours, theirs)]
        distances = tuple(np.where(a == b, 0.0, np.abs(a - b)) for a, b in each)
        quotients = distances[1][upper] / distances[0][upper]
    ratio = float(np.nanmedian(quotients)) if not np.isnan(quotients).all() else math.nan
    if not 0 < ratio < math.inf:
        return None
    enough = quantile(ERROR / 2, n - 1)
    return _with_interval(n, ratio, lambda at: _errors_from_0(distances, at) > enough)


def scatters_within(reference: Sequence[Unit], arm: Sequence[Unit]) -> Scatters | None:
    """Return the ratio of scatters within launches, whose steps' logs are given block by block.

    None for fewer than LEAST_BLOCKS blocks, and where most steps of an arm have the same value. The
    interval has the level 1 - BET_ERROR; it may end at 0 or infinity.
    """
    ours, theirs = ([steps_apart(unit) for unit in one[-MOST_BLOCKS:]] for one in (reference, arm))
    n = len(ours)
    if n < LEAST_BLOCKS:
        return None
    low, high = -FURTHEST, FURTHEST
    ends = (float(signs(ours, theirs, math.exp(end)).mean()) for end in (low, high))
    if not next(ends) > 0 > next(ends):
        return None
    for _ in range(40):
        middle = (low + high) / 2
        above = signs(ours, theirs, math.exp(middle)).mean() > 0
        low, high = (middle, high) if above else (low, middle)
    ratio = math.exp((low + high) / 2)
    return _with_interval(n, ratio, lambda at: won(signs(ours, theirs, at)) * BET_ERROR >= 2)


def signs(reference: Apart, arm: Apart, ratio: float) -> NDArray[np.float64]:
    """Return for each block the mean sign of a distance in `arm` less `ratio` times one in the
    reference, over all pairs of both.

    Each has, by block, how far steps of one launch lie apart, ascending, as from `steps_apart`.
    """
    import numpy as np

    found = []
    for ours, theirs in zip(reference, arm, strict=True):
        ranks = [np.searchsorted(ours, theirs / ratio, side) for side in ("left", "right")]
        found.append(float((ranks[0] + ranks[1]).mean()) / len(ours) - 1)
    return np.array(found)


def won(signs: NDArray[np.float64]) -> float:
    """Return the factor by which bets win that `signs`, of -1 to 1, have not the expectation 0.

    It is the mean over BETS, for the side, positive or negative, that wins more.
    """
    import numpy as np

    stakes = np.outer(BETS, signs)
    return max(float(np.exp(np.log1p(side * stakes).sum(1)).mean()) for side in (1, -1))


def steps_apart(unit: Unit) -> NDArray[np.float64]:
    """Return the distances, in logs, of all pairs of steps of the same launch, ascending."""
    import numpy as np

    found = []
    for steps in unit:
        one = np.asarray(steps, dtype=np.float64)
        upper = np.triu_indices(len(one), 1)
        found.append(np.abs(one[:, None] - one[None, :])[upper])
    return np.sort(np.concatenate(found))


def _with_interval(n: int, ratio: float, ruled_out: Callable[[float], bool]) -> Scatters:
    """Return a ratio of `n` blocks in the interval of all ratios that are not ruled out."""
    down, up = (_end(ruled_out, ratio, side) for side in (-FURTHEST, FURTHEST))
    low = ratio * math.exp(down) if down > -FURTHEST else 0.0
    return Scatters(n, ratio, low, ratio * math.exp(up) if up < FURTHEST else math.inf)


def _end(ruled_out: Callable[[float], bool], ratio: float, side: float) -> float:
    """Return how far the interval reaches from `ratio`, in logs; `side` where it has no end."""
    near, far = 0.0, side
    for _ in range(30):
        at = (near + far) / 2
        if ruled_out(ratio * math.exp(at)):
            far = at
        else:
            near = at
    return far


def _errors_from_0(distances: Apart, ratio: float) -> float:
    """Return how many jackknife errors the mean sign lies from 0 at a ratio of scatters.

    `distances`: of all pairs of blocks, a square for the reference and one for the arm.
    """
    import numpy as np

    with np.errstate(invalid="ignore"):  # both infinite: neither is further
        signs = np.nan_to_num(np.sign(distances[1] - ratio * distances[0]))
    n = len(signs)
    of_block = signs.sum(1)
    total = float(of_block.sum())
    without = (total - 2 * of_block) / ((n - 1) * (n - 2))
    error = math.sqrt((n - 1) / n * float(((without - without.mean()) ** 2).sum()))
    mean = abs(total) / (n * (n - 1))
    if error > 0:
        return mean / error
    return math.inf if mean > 0 else 0.0


def exceeding(
    reference: Sequence[float], arm: Sequence[float], margin: float
) -> tuple[int, int, float]:
    """Return how many launches of `reference` and `arm` are slow, and the p-value of both numbers.

    Values are logs of times, block by block; slow is slower than the arm's median by more than
    `margin`, a share. The test is McNemar's exact one, of the blocks in which only one of the two
    is slow (Q. McNemar, Psychometrika 12 (1947) 153).
    """
    slow = [
        [value > statistics.median(one) + math.log1p(margin) for value in one]
        for one in (reference, arm)
    ]
    only = [sum(a and not b for a, b in zip(*pair, strict=True)) for pair in (slow, slow[::-1])]
    n, k = sum(only), min(only)
    p = min(1.0, 2 * sum(math.comb(n, i) for i in range(k + 1)) / 2**n)
    return sum(slow[0]), sum(slow[1]), p


# --- words -----------------------------------------------------------------------------------

TITLE = "Steadiness"


def _basis(rows: Rows) -> str:
    """Return what the ratios of these rows mean."""
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
    """Return the benchmarks in which an arm is steadier, or less steady, than the reference."""
    return [one.benchmark for one in rows if one.word in ("steadier", "less steady")]


def failing(judgement: Judgement, rows: Rows, rule: str) -> Iterable[str]:
    """Return a sentence for each arm that is less steady: what fails by the rule `less-steady`."""
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
