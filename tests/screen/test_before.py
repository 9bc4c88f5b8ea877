"""`run --screen`: what a screen called slow is a fact of the nodes, and the audit compares it."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from paribus.audit.audit import Question, audit
from paribus.core import Address, Arm, Hosts, Settings, Study, UserError
from paribus.launch.gathering import SLOW, screened
from paribus.screen import plan
from paribus.screen.before import OLDEST_S, with_screen
from screen.fleets import carried_out, screen_of
from screen.test_rounds import nodes_of


def study(factor: str, *, first: str = "n1", second: str = "n5") -> Study:
    arms = tuple(
        Arm(name, hosts=Hosts((Address(node, node),)))
        for name, node in (("a", first), ("b", second))
    )
    return Study("Which is faster?", factor, arms, (), Settings())


@pytest.fixture(scope="module")
def screen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A screen of twelve nodes, of which n5 is slow, that was made now."""
    folder = tmp_path_factory.mktemp("screen")
    nodes = nodes_of(12, {5: 0.15})
    made = replace(screen_of(nodes), at=time.time())
    plan.write(made, folder)
    carried_out(made, nodes, folder)
    return folder


@pytest.mark.parametrize(
    ("factor", "kind"), [("mpi", "unexplained"), ("cluster", "factor"), ("instance", "factor")]
)
def test_a_node_that_is_slow_in_one_arm_withholds_unless_nodes_are_the_factor(
    factor: str, kind: str, screen: Path
) -> None:
    asked, told = with_screen(study(factor), screen, time.time())
    assert [one.partition(": command -")[0] for one in told] == [f"slow in {screen}: n5"]
    of = {name: {name: screened(asked, f"{name}.cluster")} for name in ("n1", "n5")}
    [found] = audit(of["n1"], of["n5"], Question(asked, "b", ["memory"])).differences
    assert (found.key, found.kind, found.rank) == (SLOW, kind, 3)
    assert found.reference_value == "no"
    assert found.arm_value.startswith("command -1")


def test_a_node_that_is_slow_in_both_arms_is_equal(screen: Path) -> None:
    asked, _ = with_screen(study("mpi", first="n5"), screen, time.time())
    facts = {"n5": screened(asked, "n5")}
    assert audit(facts, facts, Question(asked, "b")).differences == ()


def test_a_study_without_a_screen_has_no_such_fact() -> None:
    assert screened(study("mpi"), "n5") == {}


def test_an_old_screen_is_refused_and_nodes_that_are_not_in_it_are_told(screen: Path) -> None:
    _, told = with_screen(study("mpi", second="n77"), screen, time.time())
    assert told == [f"not screened in {screen}: n77"]
    with pytest.raises(UserError, match="a week is the most"):
        with_screen(study("mpi"), screen, time.time() + OLDEST_S + 60)
