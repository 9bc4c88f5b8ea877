"""Samples and cases: what they refuse, and that a column of samples is no less strict than one."""

from __future__ import annotations

import copy
import math
import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.core import Case, Sample

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
