"""A verdict that rests on blocks of one order says that the order may be what it is about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count, islice
from pathlib import Path
from typing import Literal

import pytest

import judgements
from paribus.__main__ import main
from paribus.core import Judgement, Launch, Notice, NoticeName, Settings, Word
from paribus.plan import frozen as plans
from paribus.stats.schedule import EVEN, orders
from paribus.studyfile.load import load_study
from paribus.words.values import notice_text
from stored import Script, Twist, judged
from studies import launches_in, write_study

ARMS = ("host", "bridged")


def seeds(first: int, *, even: int = EVEN) -> Iterator[int]:
    """Yield seeds by which `bridged` comes first in so many of the first eight blocks."""
    for seed in count():
        drawn = islice(orders(ARMS, seed, "arms of latency", after=1, even=even), 1, 9)
        if sum(order[0] == "bridged" for order in drawn) == first:
            yield seed


def second_is_slower(
    seed: int, *, ratio: float = 1.0, layout: Literal["pairs", "duet"] = "pairs"
) -> Judgement:
    """Return a study whose second launch of a block takes 9 % longer, in whichever arm."""
    first: dict[int, int] = {}

    def twist(launch: Launch, attempt: int) -> Twist:
        second = first.setdefault(launch.block, launch.number) < launch.number
        return Twist(times=1.09 if second else 1.0)

    few = (judgements.selection("latency", parameters={"bytes": [8]}),)
    settings = Settings(seed=seed, blocks=8, layout=layout)
    asked = judgements.study((), benchmarks=few, settings=settings)
    script = Script({"latency": {"bridged": ratio}}, twist, growth=0, samples=4, machine=0.0)
    return judged(asked, script, name="x")


def one_sided(judgement: Judgement) -> list[Notice]:
    return [n for n in judgement.notices if n.name is NoticeName.ORDER_ONE_SIDED]


def test_all_blocks_of_one_order_in_a_plan_of_an_older_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Seen: an effect of the order alone made the arm that came first faster."""
    monkeypatch.setattr(plans, "EVEN", 0)
    for first, word, leads, follows in (
        (8, Word.FASTER, "bridged", "host"),
        (0, Word.SLOWER, "host", "bridged"),
    ):
        judgement = second_is_slower(next(seeds(first, even=0)))
        assert [head.verdict.word for head in judgement.headlines] == [word]
        (notice,) = one_sided(judgement)
        figures = {"arm": "bridged", "reference": "host", "first": first, "blocks": 8}
        assert (notice.level, dict(notice.figures)) == ("warning", figures)
        assert (
            f"{leads} was launched before {follows} in 8 of the 8 blocks that the"
            in notice_text(notice)
        )


def test_all_blocks_but_one_of_one_order_are_said_with_the_verdict() -> None:
    judgement = second_is_slower(next(seeds(7)), ratio=1.4)
    assert [head.verdict.word for head in judgement.headlines] == [Word.SLOWER]
    (notice,) = one_sided(judgement)
    assert "bridged was launched before host in 7 of the 8 blocks that the" in notice_text(notice)
    assert not one_sided(second_is_slower(next(seeds(7))))  # undecided: no verdict rests on it


def test_other_orders_and_launches_without_one_are_not_warned_of() -> None:
    for first in (2, 4, 6):
        assert not one_sided(second_is_slower(next(seeds(first)), ratio=1.4))
    assert not one_sided(second_is_slower(next(seeds(7)), ratio=1.4, layout="duet"))


def test_a_study_of_an_older_version_is_resumed_in_its_order(tmp_path: Path) -> None:
    """Each launch in the order that is on disk, and the report says what that order means."""
    seed = next(
        seed
        for seed in count()
        if sum(
            order[0] == "b"
            for order in islice(orders("ab", seed, "arms of steady", after=1, even=0), 1, 9)
        )
        == 8
    )
    study = write_study(tmp_path, plan="blocks = 8", script='echo "2.5$(($$ % 10))"')
    study.write_text(study.read_text().replace("seed = 1", f"seed = {seed}"))
    frozen = plans.freeze(load_study(study), plans.software())
    launches = tuple(plans.plan(frozen.study, 0))
    (tmp_path / "out").mkdir()
    older = plans.sealed(replace(frozen, even=0, launches=launches))
    plans.write_plan(older, tmp_path / "out")
    words = ["run", str(study), "--out", str(tmp_path / "out"), "--resume", "--anyway"]
    assert main([*words, "--trust", older.sha256]) in (0, 3)
    made = [
        (one.launch.block, one.launch.arm) for one in launches_in(tmp_path / "out", samples=False)
    ]
    assert made == [(one.block, one.arm) for one in launches]
    assert [arm for block, arm in made if block][::2] == ["b"] * 8
