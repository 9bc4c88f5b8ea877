"""What the judgements behind the goldens show, and that their sentences agree."""

from __future__ import annotations

import math

import pytest

import judgements
from paribus.core import Finding, NoticeName
from paribus.words.values import notice_text

EVERY = judgements.ALL | judgements.MORE


def test_the_goldens_show_every_notice_that_there_is() -> None:
    shown = {notice.name for made in EVERY.values() for notice in made().notices}
    assert shown == set(NoticeName)


@pytest.mark.parametrize("name", EVERY)
def test_time_outs_withhold_a_size_in_the_notice_where_they_do_in_the_verdict(name: str) -> None:
    """Of 60 launches 1 is few, of the 40 up to the last look that was reached it is not."""
    found = EVERY[name]()
    unknown = {head.benchmark for head in found.headlines if not head.verdict.size_known}
    assert unknown == {
        label
        for notice in found.notices
        if notice.name is NoticeName.TIME_OUTS and notice.figures["size_withheld"]
        for label in notice.benchmarks
    }
    for case in found.cases:
        if case.verdict.word.value != "no data":
            assert case.verdict.size_known == (case.benchmark not in unknown)


@pytest.mark.parametrize("name", EVERY)
def test_no_size_is_infinite(name: str) -> None:
    """Launches that were cut off have an order and no size, also where reliability is judged."""
    found = EVERY[name]()
    several: tuple[Finding, ...] = (
        *found.headlines, *found.cases, *found.layers, *found.endpoints, *found.pairs
    )  # fmt: skip
    for one in several:
        if one.comparison and one.verdict.size_known:
            assert math.isfinite(one.comparison.ratio), one


def test_lost_launches_are_named_in_the_plural_where_they_are_several() -> None:
    (lost,) = [n for n in judgements.damaged().notices if n.name is NoticeName.LAUNCHES_LOST]
    assert "(numbers 7 to 8, 33 of the plan)" in notice_text(lost)
