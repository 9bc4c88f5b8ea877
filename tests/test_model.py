"""Samples and cases: what they refuse, and that a column of samples is no less strict than one."""

from __future__ import annotations

import copy
import math
import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.core import Case, Sample, units


@given(st.integers(0, 2**50))
def test_bytes_survive_the_way_out_and_in(size: int) -> None:
    assert units.parse_bytes(units.format_bytes(size)) == size


@pytest.mark.parametrize("text", ["", "4 KB", "4 kib", "-1 B", "1.5 B", "nan B", "4", "1e400 B"])
def test_unclear_sizes_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        units.parse_bytes(text)


@pytest.mark.parametrize("value", ["2", "2 m", "-2 s", 2, True, "s"])
def test_durations_need_a_unit(value: object) -> None:
    with pytest.raises(ValueError, match=r"unit|duration"):
        units.parse_seconds(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [2, 0, 1, "0 %", "200 %", "2", True, "2%%", -0.1])
def test_shares_outside_zero_to_one_are_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"share|outside"):
        units.parse_share(value)  # type: ignore[arg-type]


@given(st.floats(1e-9, 1e12))
def test_every_duration_can_be_written(seconds: float) -> None:
    assert units.format_seconds(seconds)


@given(st.floats(1e-6, 1e15))
def test_three_digits_are_kept(value: float) -> None:
    assert float(units.format_value(value).replace(",", "")) == pytest.approx(value, rel=0.006)


CASES = [Case.of(bytes=2**n) for n in range(6)]


@given(st.lists(st.floats(), max_size=6))
def test_a_column_is_the_samples_of_its_cells_and_refuses_what_they_refuse(
    values: list[float],
) -> None:
    cases = CASES[: len(values)]
    try:
        each = [Sample("time", case, (value,)) for case, value in zip(cases, values, strict=True)]
    except ValueError as refusal:
        with pytest.raises(ValueError, match=re.escape(str(refusal))):
            Sample.column("time", cases, values)
    else:
        column = Sample.column("time", cases, values)
        assert column == each
        assert all(type(sample) is Sample for sample in column)


def test_a_column_has_a_value_for_each_case() -> None:
    with pytest.raises(ValueError, match="time: 1 values at 2 cases"):
        Sample.column("time", CASES[:2], [1.0])


@pytest.mark.parametrize("values", [(), (0.0,), (-1.0,), (math.nan,), (1.0, math.inf), (1.0, 0.0)])
def test_no_number_is_better_than_a_wrong_one(values: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match=r"time at 8 B: .*(no values|is not a measurement)"):
        Sample("time", Case.of(bytes=8), values)


def test_a_batch_is_of_one_iteration_or_more() -> None:
    with pytest.raises(ValueError, match="a batch of 0"):
        Sample("time", Case(), (1.0,), 0)


def test_samples_are_copied_and_sent_as_what_they_are() -> None:
    sample = Sample("time", Case.of(bytes=8), (1.0, 2.0), 4)
    for other in (copy.deepcopy(sample), pickle.loads(pickle.dumps(sample))):
        assert other == sample
        assert type(other) is Sample
        assert type(other.case) is Case
