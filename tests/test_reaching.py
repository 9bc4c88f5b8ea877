"""Which hosts a launch across hosts could not start on: named, and waited for."""

from __future__ import annotations

from pathlib import Path

import pytest

from paribus.core import Address, Arm, Hosts, Mpi, Outcome, State
from paribus.launch import reaching
from paribus.launch.arms import Ready
from stations import Answer, ScriptedStation, prints

NO, YES = prints("", exit_code=1), prints("")


def said(folder: Path, names: list[str], *answers: Answer) -> str:
    """Return the error of a failed launch on `names` whose launches of `true` end as `answers`."""
    addresses = tuple(Address(name, name) for name in names)
    mpi = Mpi("openmpi", (4, 1, 4), "/o/bin/mpicxx", "/o/bin/mpirun")
    ready = Ready(Arm("a", hosts=Hosts(addresses)), mpi, ())
    failed = Outcome(State.FAILED, 1.0, 0.1, 1, ("x",), (), {}, "exit code 1")
    with ScriptedStation(folder, **{"": list(answers)}) as station:
        return reaching.checked_hosts(failed, ready, station, names)[0].error


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reaching, "PAUSE_S", 0.0)


def test_of_two_hosts_the_second_is_named_though_the_link_is_back(tmp_path: Path) -> None:
    error = said(tmp_path, ["h1", "h2"], NO, YES)
    assert error == "h2 (from h1): no launch started there for 0 s (exit code 1)"


def test_of_several_the_one_that_cannot_be_reached_is_named(tmp_path: Path) -> None:
    error = said(tmp_path, ["h1", "h2", "h3"], NO, YES, NO, YES)
    assert error == "h3 (from h1): no launch started there for 0 s (exit code 1)"


def test_a_launch_that_fails_by_itself_keeps_its_error(tmp_path: Path) -> None:
    assert said(tmp_path, ["h1", "h2"], YES) == "exit code 1"
