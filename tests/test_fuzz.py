"""A short, deterministic part of `./dev fuzz`: no reader hangs, breaks, or reads nothing."""

from __future__ import annotations

from itertools import islice

import pytest

from fuzz_readers import fault, inputs, outputs, readers
from paribus.benchmarks import BENCHMARKS

INPUTS = 120


@pytest.mark.parametrize("name", readers())
def test_damage_is_read_or_refused_within_the_limit(name: str) -> None:
    assert outputs(name)
    faults = {said for text in islice(inputs(name, 1), INPUTS) if (said := fault(name, text))}
    assert not faults


def test_a_pattern_that_hangs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fuzzing itself: a reader that backtracks without end, breaks, or says nothing."""
    import re
    from dataclasses import replace

    import fuzz_readers
    from paribus.model import Reading

    def reading(text: str) -> Reading:
        return Reading("bad", "1", {}, None, ())

    def hanging(text: str) -> Reading:
        re.match(r"(a+)+$", "a" * 60 + "b")
        return reading(text)

    def breaking(text: str) -> Reading:
        raise IndexError("no such column")

    monkeypatch.setattr(fuzz_readers, "LIMIT_S", 0.2)
    bad = {"hangs": hanging, "breaks": breaking, "silent": reading}
    monkeypatch.setattr(
        fuzz_readers,
        "BENCHMARKS",
        {name: replace(BENCHMARKS["osu_bw"], read=read) for name, read in bad.items()},
    )
    assert "takes longer" in fault("hangs", "x")
    assert "raises IndexError" in fault("breaks", "x")
    assert "without a word" in fault("silent", "x")
