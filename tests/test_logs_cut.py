"""Outputs of one tool after the other in one file are so many launches, each read by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from paribus.benchmarks import BENCHMARKS
from paribus.compare.recognise import look, readings
from paribus.readers.text import plain

FIXTURES = Path(__file__).parent / "fixtures"
GOOD = [
    path
    for name in ("incast", "iperf3", "netperf", "qperf", "sockperf", "ucx_perftest")
    for path in sorted((FIXTURES / name).glob("good-*.out"))
]


@pytest.mark.parametrize("between", ["", "\n\n", "$ ./measure again\n"])
@pytest.mark.parametrize("times", [2, 3])
@pytest.mark.parametrize("path", GOOD, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_outputs_after_each_other_are_taken_apart(path: Path, times: int, between: str) -> None:
    one = plain(path.read_text())
    read = BENCHMARKS[path.parent.name].read
    assert read is not None
    text = between.join([one] * times)
    found, problems = readings(text, look(text))
    assert problems == []
    assert [one.part for one in found] == list(range(1, times + 1))
    alone = read(one)
    for _, reading, *_ in found:
        assert reading.samples == alone.samples
        assert reading.parameters == alone.parameters


def test_one_that_was_cut_short_costs_the_others_nothing() -> None:
    one = plain((FIXTURES / "iperf3" / "good-tcp-text.out").read_text())
    text = one + one[: len(one) // 2] + "\n" + one
    found, problems = readings(text, look(text))
    assert [one.part for one in found] == [1, 3]
    assert len(problems) == 1
    assert problems[0].tool == "iperf3"


def test_an_incast_that_lacks_what_it_announced_is_refused() -> None:
    read = BENCHMARKS["incast"].read
    assert read is not None
    text = (FIXTURES / "incast" / "good-handmade-three-senders.out").read_text()
    assert read(text).parameters["senders"] == 3
    short = "\n".join(line for line in text.split("\n") if "/3 64]" not in line)
    for damaged, said in (
        (short, r"of 4 16 64 queue pairs there are 4 and 16"),
        (text.replace("[incast of 3]", "[incast of 4]"), "4 senders were to send"),
        (text.replace("[incast of 3]", "[incast of x]"), "a line of a sender is not whole"),
        (text + text, "twice"),
    ):
        with pytest.raises(Exception, match=said):
            read(damaged)
