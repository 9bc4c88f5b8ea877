"""The ranking of more than two arms: the places of each that the verdicts on pairs leave open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from paribus.core import Comparison, Finding, Judgement, Spread, Word

_TURNED = {Word.FASTER: Word.SLOWER, Word.SLOWER: Word.FASTER}


@dataclass(frozen=True, slots=True)
class Place:
    """An arm in a ranking: it may have every place from `best` to `worst`."""

    arm: str
    value: Spread | None
    best: int
    worst: int
    above: Finding | None  # this arm against that in the line above, None in the first line


@dataclass(frozen=True, slots=True)
class Ranking:
    """The arms of one benchmark by geometric mean, as far as the supported orders allow.

    The verdicts on pairs are corrected as a family, so the places of all arms hold together.
    """

    benchmark: str
    places: tuple[Place, ...]
    pairs: tuple[Finding, ...]


def ranking(judgement: Judgement, benchmark: str) -> Ranking | None:
    """Return the ranking of the arms in `benchmark`, or None where no pairs were compared."""
    found = judgement.of_benchmark(benchmark, judgement.pairs)
    if not found:
        return None
    pairs = {(f.arm, f.reference): f for f in found}
    pairs |= {(f.reference, f.arm): _turned(f) for f in found}
    arms = [a.name for a in judgement.study.arms]
    faster = {key for key, f in pairs.items() if f.verdict.word is Word.FASTER}
    beaten_by = {arm: [a for a in arms if (a, arm) in faster] for arm in arms}
    beats = {arm: [a for a in arms if arm in beaten_by[a]] for arm in arms}
    values = _values(judgement, benchmark, pairs)
    better_low = found[0].metric.better == "lower"

    def order(arm: str) -> tuple[int, int, float]:
        value = values[arm]
        size = value.median if value else float("inf") if better_low else 0.0
        return len(beaten_by[arm]), -len(beats[arm]), size if better_low else -size

    arms.sort(key=order)
    places = tuple(
        Place(
            arm,
            values[arm],
            1 + len(beaten_by[arm]),
            len(arms) - len(beats[arm]),
            pairs.get((arm, arms[i - 1])) if i else None,
        )
        for i, arm in enumerate(arms)
    )
    return Ranking(benchmark, places, found)


def place_text(place: Place) -> str:
    """Return the places that are open to an arm: "1", or "2 to 3"."""
    return f"{place.best}" if place.best == place.worst else f"{place.best} to {place.worst}"


def _values(
    judgement: Judgement, benchmark: str, pairs: dict[tuple[str, str], Finding]
) -> dict[str, Spread | None]:
    """Return the absolute value of every arm, from the headlines where they have one."""
    values: dict[str, Spread | None] = {a.name: None for a in judgement.study.arms}
    rows: Sequence[Finding] = (
        *judgement.of_benchmark(benchmark, judgement.headlines),
        *pairs.values(),
    )
    for f in rows:
        for arm, value in (
            (f.reference or judgement.reference, f.reference_value),
            (f.arm, f.arm_value),
        ):
            values[arm] = values[arm] or value
    return values


def _turned(f: Finding) -> Finding:
    """Return the same finding with arm and reference exchanged."""
    word = _TURNED.get(f.verdict.word, f.verdict.word)
    return replace(
        f,
        arm=f.reference,
        reference=f.arm,
        comparison=None if f.comparison is None else f.comparison.turned(),
        verdict=replace(f.verdict, word=word, figures=_turned_figures(f.verdict.figures)),
        reference_value=f.arm_value,
        arm_value=f.reference_value,
    )


def _turned_figures(figures: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the figures of a verdict's reason; ratio and interval, if it has them, inverted."""
    if "low" not in figures:
        return figures
    other = Comparison(0, figures["ratio"], figures["low"], figures["high"], 0.0).turned()
    return {**figures, "low": other.low, "ratio": other.ratio, "high": other.high}
