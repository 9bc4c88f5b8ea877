"""A fleet that is screened in batches: one answer on all, with their shares of one error."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from paribus.core import StoreError, UserError
from paribus.screen import plan
from paribus.screen.answer import stored
from paribus.screen.course import looks
from paribus.store import Store
from screen.fleets import Node, executed, screen_of
from screen.test_rounds import nodes_of
from studies import paribus


def batch(folder: Path, number: int, nodes: list[Node], families: float) -> None:
    screen = replace(screen_of(nodes), families=families)
    plan.write(screen, folder / f"batch-{number}")
    executed(screen, nodes, folder / f"batch-{number}")


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """Of 24 nodes 12 and 11 in batches, the second with a node of the first; n23 was never free."""
    nodes = nodes_of(24, {5: 0.15, 17: 0.15})
    for number in (1, 2):
        (tmp_path / f"batch-{number}").mkdir()
    top = replace(screen_of(nodes[:12]), absent={"n20": "old", "n23": "allocated in Slurm"})
    plan.write(top, tmp_path)
    batch(tmp_path, 1, nodes[:12], 2.0)
    batch(tmp_path, 2, [*nodes[11:23]], 24 / 11)
    return tmp_path


def test_batches_are_one_answer(fleet: Path) -> None:
    answer = stored(fleet)
    assert [one.node for one in answer.having("slow")] == ["n5", "n17"]
    assert sorted(one.node for one in answer.lines) == sorted(f"n{i}" for i in range(24))
    [absent] = answer.having("not screened")
    assert (absent.node, absent.why) == ("n23", "allocated in Slurm")
    parts = [stored(one) for one in plan.batches(fleet)]
    assert answer.launches == sum(one.launches for one in parts)
    assert answer.whole
    assert len(answer.screen.nodes) == 23
    # Half of the error, and one more round until 2^-n is below it.
    assert parts[0].course.at[False] == looks(2) == tuple(n + 1 for n in looks(1))


def test_a_batch_that_was_cut_off_leaves_the_screen_incomplete(fleet: Path) -> None:
    (fleet / "batch-3").mkdir()
    nodes = nodes_of(24)
    screen = replace(screen_of([nodes[23], *nodes[:2]]), families=24.0)
    plan.write(screen, fleet / "batch-3")
    with Store(fleet / "batch-3", write=True) as store:
        store.bind_plan(screen.digest)
    answer = stored(fleet)
    assert not answer.whole
    assert [one.node for one in answer.having("undecided")] == ["n23"]


def test_a_batch_of_another_screen_is_refused(fleet: Path) -> None:
    (fleet / "batch-3").mkdir()
    other = replace(screen_of(nodes_of(12)), margins={"command": 0.4})
    plan.write(other, fleet / "batch-3")
    with pytest.raises(StoreError, match="margins: not what"):
        stored(fleet)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("n[1-9]",), "--wait: applies to --scheduler"),
        (("--scheduler", "slurm:p", "--links"), "links between batches"),
        (("--scheduler", "slurm:p", "--partners", "1"), "with two others"),
    ],
)
def test_what_cannot_wait_is_refused(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    done = paribus("screen", *words, "--wait", "1 h", cwd=tmp_path)
    assert done.returncode == UserError.exit_code
    assert said in done.stderr


def test_the_launches_of_a_round_begin_in_steps(tmp_path: Path) -> None:
    begun: list[float] = []

    def speed(_: int) -> float:
        begun.append(time.monotonic())
        return 100.0

    nodes = [Node(f"n{i}", speed) for i in range(5)]
    screen = replace(screen_of(nodes), step=2)
    executed(screen, nodes, tmp_path)
    first = [at - begun[0] for at in begun[:5]]
    assert first[1] < 0.9 < first[2] <= first[3] < 1.9 < first[4]
