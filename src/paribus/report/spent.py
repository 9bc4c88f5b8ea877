"""The figure of what a unit of work takes in each arm: time, money and energy, each as a ratio."""

from __future__ import annotations

from collections.abc import Iterator

from paribus.core import Judgement, Ratio, Word, format_changes, lenses, usable
from paribus.report.axes import Spec, new_spec, tooltip
from paribus.report.plots import sideways
from paribus.report.wording import band, clean
from paribus.stats.verdict import word_of

TITLE = "Time, cost and energy of a unit of work"


def figure(judgement: Judgement) -> Spec | None:
    """Return the ratios of arm to reference with their intervals, below 1 where it is less.

    None without a price, and where no node counts its energy.
    """
    rows = [*_rows(judgement)]
    if not rows:
        return None
    told = "; ".join(f"{r['line']}, {r['arm']}: {r['shown']}, {r['verdict']}" for r in rows)
    spec = new_spec(TITLE, f"Times as much as the reference, above 1 is more. {told}")
    title = f"times as much as {clean(judgement.reference)}"
    tips = tooltip(line="what", arm="arm", shown="change", verdict="verdict")
    return sideways(judgement, spec, rows, "line", (title, "(above 1: it takes more)"), tips)


def _rows(judgement: Judgement) -> Iterator[Spec]:
    beside = [one for lens, rows in lenses(judgement) for one in lens.ratios(judgement, rows)]
    for head in judgement.headlines:
        mine = [one for one in beside if (one.benchmark, one.arm) == (head.benchmark, head.arm)]
        known = usable(head)
        if known is not None and mine:
            times = known.times(head.metric.better)
            ends = (times.ratio, times.low, times.high)
            word = word_of(times.low, times.high, head.margin)
            said = (head.margin, str(word), word is not Word.UNDECIDED)
            yield _row(Ratio(head.benchmark, head.arm, "time", *ends, *said))
        yield from map(_row, mine)


def _row(one: Ratio) -> Spec:
    middle, least, most = format_changes((one.ratio, one.low, one.high))
    below, above = band(one.margin)
    return {
        "line": f"{clean(one.benchmark)}: {one.what}",
        "arm": clean(one.arm),
        **{key: getattr(one, key) for key in ("ratio", "low", "high")},
        "below": below,
        "above": above,
        "supported": one.decided,
        "shown": f"{middle} ({least} to {most})",
        "verdict": one.word,
    }
