"""What a check returns: figures, each beside its bound."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

RELATIONS = {"<=": operator.le, ">=": operator.ge, "=": operator.eq}

MOST_SHOWN = 3
"""Values of a figure that the page shows one by one."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One or more values of one kind with the bound that each must keep.

    `values` maps what a value is of (a kind of noise, say; "" for a single one) to it. `unit` is
    "%" for shares (0.05 is 5 %), "ms", "blocks", "" for plain numbers. `timed` values differ from
    one machine and one moment to the next and are never asserted by the tests.
    """

    what: str
    values: Mapping[str, float]
    relation: Literal["<=", ">=", "="]
    bound: float
    unit: str = "%"
    timed: bool = False

    @property
    def passed(self) -> bool:
        """Whether every value keeps the bound; no value at all never does."""
        keeps = RELATIONS[self.relation]
        return bool(self.values) and all(keeps(value, self.bound) for value in self.values.values())

    @property
    def limit(self) -> str:
        """The bound in words, such as "≤ 5.7 %"."""
        sign = {"<=": "≤", ">=": "≥", "=": "="}[self.relation]
        return f"{sign} {show(self.bound, self.unit)}"

    @property
    def shown(self) -> str:
        """The values in words, such as "N1: 4.66 %, N2: 4.65 %"."""
        return ", ".join(
            f"{name}: {show(value, self.unit)}" if name else show(value, self.unit)
            for name, value in self.values.items()
        )

    @property
    def worst(self) -> str:
        """The values in words; of more than `MOST_SHOWN` the one nearest the bound."""
        if len(self.values) <= MOST_SHOWN:
            return self.shown
        name, value = (min if self.relation == ">=" else max)(
            self.values.items(), key=lambda item: item[1]
        )
        return f"{show(value, self.unit)} ({name}), the worst of {len(self.values)}"


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the proof. `done` says in a sentence what was done; `number` as on the page."""

    number: int
    name: str
    done: str
    figures: tuple[Figure, ...]

    @property
    def passed(self) -> bool:
        """Whether every figure keeps its bound."""
        return all(figure.passed for figure in self.figures)


def show(value: float, unit: str) -> str:
    """Return a value with its unit, as precisely as a reader can use it."""
    if unit == "%":
        return f"{value * 100:.3g} %"
    if isinstance(value, int) or value == int(value):
        return f"{int(value)} {unit}".strip()
    return f"{value:.3g} {unit}".strip()
