"""A metric has one unit in a comparison.

Where the files of a harness give it in units that are not converted to each other
(readers/units.py), or say other directions, its name says so: two names are never compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from paribus.core import Direction
from paribus.logs.logs import Log


def with_one_unit(logs: Sequence[Log]) -> list[Log]:
    """Return logs in which a metric of one test has one unit and direction, by another name."""
    of: dict[object, dict[str, set[tuple[str, Direction, bool]]]] = {}
    for log in logs:
        mine = of.setdefault(_test(log), {})
        for metric in log.metrics:
            mine.setdefault(metric.name, set()).add((metric.unit, metric.better, metric.unsaid))
    return [_by_unit(log, of[_test(log)]) if log.metrics else log for log in logs]


def _test(log: Log) -> object:
    return log.reading.benchmark, tuple(sorted(log.reading.parameters.items())), log.reading.ranks


def _by_unit(log: Log, said: Mapping[str, set[tuple[str, Direction, bool]]]) -> Log:
    """Return a log whose metrics are named with what not all files agree in."""
    names = {}
    for metric in log.metrics:
        several = said[metric.name]
        if len({unit for unit, *_ in several}) > 1:
            names[metric.name] = f"{metric.name} in {metric.unit}"
        elif len(several) > 1 and not metric.unsaid:
            names[metric.name] = f"{metric.name}, {metric.better} is better"
    if not names:
        return log
    metrics = tuple(replace(m, name=names.get(m.name, m.name)) for m in log.metrics)
    samples = tuple(s._replace(metric=names.get(s.metric, s.metric)) for s in log.reading.samples)
    return replace(log, metrics=metrics, reading=replace(log.reading, samples=samples))
