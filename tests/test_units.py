"""Quantities in and out."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.core import units


def test_documented_examples_hold() -> None:
    found = doctest.testmod(units)
    assert found.attempted >= 7
    assert found.failed == 0


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
