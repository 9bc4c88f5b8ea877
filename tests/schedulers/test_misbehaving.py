"""Each scheduler's commands answer slowly, wrongly, with nothing or a part, then rightly."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from paribus.core import AllocationError, Scheduler, UserError
from paribus.schedulers import allocations
from paribus.schedulers.allocations import Allocations
from schedulers.misbehaving import MANNERS, Commands

FAULTS = ("wrong", "empty", "partial", "unreachable", "slow")


@pytest.fixture(params=MANNERS)
def commands(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Commands:
    found = Commands(tmp_path / "site", request.param)
    monkeypatch.setenv("PATH", f"{found.bin}:{os.environ['PATH']}")
    monkeypatch.setenv("PARIBUS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(allocations, "POLL_S", (0.01, 0.01))
    monkeypatch.setattr(allocations, "SUBMIT_S", 1.5)
    monkeypatch.setattr(allocations, "LATE_S", 10.0)
    return found


def asking(commands: Commands, reported: list[str]) -> Allocations:
    name = next(name for name, manners in MANNERS.items() if manners is commands.manners)
    name = name.partition(",")[0]
    asked = Scheduler(name, 2, 600.0, "p", slots=2, parallel_environment="mpi")  # type: ignore[arg-type]
    return Allocations({"a": asked}, "0123456789", "study.toml", reported.append)


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_what_was_submitted_is_found_however_the_command_answers(
    commands: Commands, fault: str
) -> None:
    """A job that was taken is found by its name: it is not submitted a second time."""
    commands.fault("submit", fault)
    reported: list[str] = []
    with asking(commands, reported) as lent:
        assert len(commands.jobs()) == 1, commands.asked("submit")
        [hosts] = lent.hosts.values()
        assert [host.name for host in hosts] == ["h1", "h2"]
        assert lent.ended() is None
    assert commands.jobs() == []
    again = fault == "unreachable"  # that one has taken nothing
    assert len(commands.asked("submit")) == 1 + again


@pytest.mark.slow
def test_a_queue_that_misbehaves_is_asked_again(commands: Commands) -> None:
    """No answer that is late, wrong or not whole is taken for the end of an allocation."""
    reported: list[str] = []
    with asking(commands, reported) as lent:
        for fault in FAULTS:
            commands.fault("queue", fault)
            assert lent.ended() is None, fault
        commands.fault("queue", "unknown")
        paused = lent.ended()
        assert "job 1" in paused.cause
        assert "does not run now (Y9" in paused.cause
        commands.fault("queue", *("partial", "empty", "wrong", "partial"))
        assert lent.ended() is None
        for job in commands.jobs():
            job.unlink()
        ended = lent.ended()
        assert "has ended (it is no longer in the queue)" in ended.cause
        assert ended.place == "study.toml: arms.a.scheduler"


def test_an_unknown_state_is_named_and_waited_on(commands: Commands) -> None:
    reported: list[str] = []
    commands.fault("queue", "unknown", "unknown")
    with asking(commands, reported) as lent:
        assert lent.ended() is None
    assert any("for arm a: Y9" in line for line in reported), reported


def test_a_queue_that_never_answers_is_given_up_with_its_words(
    commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[str] = []
    with asking(commands, reported) as lent:
        monkeypatch.setattr(allocations, "LATE_S", 0.2)
        commands.fault("queue", *("unreachable",) * 500)
        with pytest.raises(AllocationError) as ended:
            lent.ended()
    said = " ".join(commands.manners.unreachable.split())
    assert ended.value.cause == f"the scheduler does not answer: {said}"
    assert [line for line in reported if "waiting" in line] == [
        f"the scheduler does not answer: {said}; waiting for up to 0.2 s"
    ]
    assert commands.jobs() == []


def test_a_refusal_is_quoted_with_the_key_of_the_study(commands: Commands) -> None:
    commands.fault("submit", "refused")
    with pytest.raises(UserError) as refused, asking(commands, []):
        pass
    assert commands.manners.refused in refused.value.cause
    assert f"arms.a.scheduler.{commands.manners.key}" in refused.value.place
    assert commands.asked("submit") == ["refused"]


@pytest.mark.slow
def test_a_job_is_cancelled_however_late_the_command_answers(commands: Commands) -> None:
    with asking(commands, []):
        commands.fault("cancel", "unreachable", "slow")
        commands.fault("select", "unreachable")
    assert commands.jobs() == []


def test_what_a_killed_sitting_left_is_cancelled(commands: Commands) -> None:
    reported: list[str] = []
    left = asking(commands, reported)
    left.__enter__()
    assert left._locked
    left._locked.close()
    with asking(commands, reported):
        assert len(commands.jobs()) == 1
    assert any("cancelling what this study left in the queue: job 1" in line for line in reported)
    assert commands.jobs() == []


@pytest.mark.parametrize("commands", ["kubernetes"], indirect=True)
def test_where_no_cluster_answers_nothing_is_asked_for_and_nothing_cancelled(
    commands: Commands,
) -> None:
    """As where kubectl has no configuration: that is an error at once."""
    (commands.folder / "away").touch()
    with pytest.raises(UserError) as refused, asking(commands, []):
        pass
    said = commands.manners.unreachable
    assert refused.value.cause == f"Kubernetes does not answer: {said}"
    assert refused.value.fix == "see that `kubectl get nodes` works here"
    assert (commands.asked("submit"), commands.asked("cancel")) == ([], [])
