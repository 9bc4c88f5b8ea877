"""The practical-equivalence margin: the difference below which nobody would act."""

from __future__ import annotations

import math
from collections.abc import Iterable

from paribus.core import Metric

_US = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}


def case_margin(metric: Metric, typical_reference: float) -> float:
    """Return the margin of a case as a share, from the reference's typical value there.

    It is `metric.margin`, but `metric.small_margin` for times below `metric.small_us`
    microseconds, where 2 % is a few ticks of a clock. Raises ValueError when a metric sets
    `small_us` and its unit is not one of time.
    """
    if not metric.small_us:
        return metric.margin
    if metric.unit not in _US:
        raise ValueError(f"metric {metric.name}: small_us is for times, not for {metric.unit}")
    small = typical_reference * _US[metric.unit] < metric.small_us
    return metric.small_margin if small else metric.margin


def headline_margin(case_margins: Iterable[float]) -> float:
    """Return the margin of the mean log ratio over cases: the mean of theirs on the log scale.

    Raises ValueError for no cases.
    """
    logs = [math.log1p(margin) for margin in case_margins]
    if not logs:
        raise ValueError("no cases, no margin")
    return math.expm1(math.fsum(logs) / len(logs))
