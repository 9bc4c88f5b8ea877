"""The figures of launches of a table or of logs, as those of a study are given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from paribus.core import Case, Figures, Judgement, Metric
from paribus.logs.tables.launches import Arrangement, Group


@dataclass(frozen=True, slots=True)
class FiguresOfTable:
    """The figures of every launch of `found` that counts."""

    found: Arrangement
    metrics: Mapping[str, Sequence[Metric]]

    def __iter__(self) -> Iterator[Figures]:
        """Yield them by benchmark, arm and block or launch; launches are counted from 1."""
        times = [t for group in self.found.groups for t in (group.times or {}).values()]
        begin, number = min((at for of in times for at in of.values()), default=0.0), 0
        for group in self.found.groups:
            metrics = {metric.name: metric for metric in self.metrics[group.benchmark]}
            for arm in self.found.arms:
                for figures in _of_arm(group, arm, metrics, begin):
                    number += 1
                    yield figures._replace(launch=number)


def _of_arm(
    group: Group, arm: str, metrics: Mapping[str, Metric], begin: float
) -> Iterator[Figures]:
    """Yield the figures of each block, or launch without blocks, of an arm; not yet numbered."""
    values: dict[object, dict[tuple[str, Case], float]] = {}
    for cell, of_arms in group.figures.items():
        for launch, value in of_arms[arm].items():
            values.setdefault(launch, {})[cell] = value
    for launch, found in values.items():
        block = launch if group.numbers and isinstance(launch, int) else None
        at_s = group.times[arm][block] - begin if group.times and block else None
        file = group.files.get(arm, {}).get(launch, "")
        yield Figures(arm, block, 0, at_s, group.benchmark, metrics, found, file)


@dataclass(frozen=True, slots=True)
class Joined:
    """The figures of several parts, whose launches are numbered one part after the other."""

    parts: Sequence[Judgement]

    def __iter__(self) -> Iterator[Figures]:
        begin = min((one.started for one in self.parts if one.started is not None), default=0.0)
        number = 0
        for part in self.parts:
            later = (part.started or begin) - begin
            for one in part.figures:
                number += 1
                at_s = None if one.at_s is None else one.at_s + later
                yield one._replace(launch=number, at_s=at_s)


@dataclass(frozen=True, slots=True)
class WithUnpaired:
    """The figures of `paired` launches, and those of all others among `every` one.

    Of logs that are judged both ways: an output is known by where it was read.
    """

    paired: Iterable[Figures]
    every: Iterable[Figures]

    def __iter__(self) -> Iterator[Figures]:
        seen = set()
        number = 0
        for of in (self.paired, self.every):
            for one in of:
                key = (one.benchmark, one.arm, one.file)
                if of is self.paired or key not in seen:
                    number += 1
                    seen.add(key)
                    yield one._replace(launch=number)
