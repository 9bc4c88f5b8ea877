"""JSON from outside as typed values: what is made, refused, and what a later version may add."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, NamedTuple

import pytest

from paribus.border import of_json
from paribus.core import Scalar, Spread
from paribus.report.stored import read_as


class _Word(Enum):
    FASTER = "faster"


class _Pair(NamedTuple):
    first: int
    second: float


@dataclass(frozen=True)
class _Row:
    name: str
    pair: _Pair | None = None


@pytest.mark.parametrize(
    ("kind", "value", "made"),
    [
        (_Row, {"name": "a", "pair": [1, 2.5]}, _Row("a", _Pair(1, 2.5))),
        (_Row, {"name": "a", "pair": None}, _Row("a")),
        (_Row, {"name": "a", "pair": _Pair(1, 2.5)}, _Row("a", _Pair(1, 2.5))),
        (Sequence[_Row], [{"name": "a"}], (_Row("a"),)),
        (tuple[int, str], [1, "a"], (1, "a")),
        (Mapping[str, Scalar], {"on": True, "low": -1.5}, {"on": True, "low": -1.5}),
        (_Word, "faster", _Word.FASTER),
    ],
)
def test_both_readers_make_the_same_values(kind: Any, value: Any, made: Any) -> None:
    assert of_json(kind, value) == made
    assert read_as(kind, value) == made


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (int, True),
        (int, 1.5),
        (float, math.nan),
        (str, None),
        (Literal["a", "b"], "c"),
        (Sequence[int], {"0": 1}),
        (Mapping[str, int], {"a": "1"}),
        (tuple[int, str], [1]),
        (_Row, {"pair": [1, 2.5]}),
        (_Row, {"name": "a", "pair": [1]}),
        (_Word, "slower"),
    ],
)
def test_both_readers_refuse_what_does_not_fit(kind: Any, value: Any) -> None:
    for read in (of_json, read_as):
        with pytest.raises((TypeError, ValueError, LookupError)):
            read(kind, value)


def test_only_verdicts_may_hold_what_a_later_version_adds() -> None:
    for kind, value, made in (
        (_Row, {"name": "a", "added": 1}, _Row("a")),
        (_Pair, [1, 2.5, "added"], _Pair(1, 2.5)),
    ):
        assert read_as(kind, value) == made
        with pytest.raises((TypeError, LookupError)):
            of_json(kind, value)


@pytest.mark.parametrize(("kind", "value"), [(float, -1.0), (float, 1e31), (_Row, ["a"])])
def test_verdicts_alone_refuse_figures_out_of_range_and_objects_as_lists(
    kind: Any, value: Any
) -> None:
    of_json(kind, value)
    with pytest.raises((TypeError, ValueError)):
        read_as(kind, value)


def test_a_launch_that_was_cut_off_has_no_figure_but_a_count() -> None:
    ends: dict[str, Any] = {"launches": 3, "median": 1.0, "low": 0.5, "high": None}
    assert read_as(Spread, ends) == Spread(3, 1.0, 0.5, math.inf)
    with pytest.raises(TypeError):
        read_as(Spread, ends | {"launches": None})
