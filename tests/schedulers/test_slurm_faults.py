"""A real Slurm that takes nodes back: nothing recorded is lost or doubled, no job is left."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from paribus.judge.allocations import JOB, NODES
from paribus.store import Store
from schedulers.slurm import Site
from schedulers.test_slurm import WAIT_S, Started, check_whole, shared, site, stored, study
from studies import launches_in

__all__ = ["shared", "site"]  # fixtures

# A launch takes that long, or until the test lets it go; its limit is never what ends it.
COMMAND = """\
name = "command"
argv = ["sh", "-c", "sleep {seconds}; while [ -e {hold} ]; do sleep 0.05; done"]
directory = "{{scratch}}"
timeout = "100 s"
"""

LAUNCHES = 18
"""Those of the study: a warm-up of each arm, and 8 blocks."""

SITTINGS = 3
"""After so many, a study that met one fault has ended."""


@dataclass
class Sitting:
    """A sitting of the study in `folder`, which waits in a launch while `hold` is there."""

    site: Site
    folder: Path
    started: Started
    draw: random.Random
    allocations: int = 1

    @property
    def hold(self) -> Path:
        return self.folder / "hold"

    def job(self) -> str:
        """Return a job that runs now, of one arm or the other."""
        return self.draw.choice(sorted(self.site.jobs())).split()[0]

    def until(self, done: Callable[[], bool]) -> None:
        """Wait for `done`, or for the end of the sitting."""
        deadline = time.monotonic() + WAIT_S
        while not done() and self.started.process.poll() is None:
            assert time.monotonic() < deadline, self.started.said()
            time.sleep(0.05)

    def again(self) -> bool:
        """Return whether it has left its allocations for the next ones."""
        return self.started.said().count("the next allocation") >= self.allocations

    def runs(self) -> bool:
        """Return whether all jobs of its allocations, one of each arm, have begun."""
        return self.started.said().count(": RUNNING") == 2 * self.allocations


@contextmanager
def drained(site: Site, nodes: str) -> Iterator[None]:
    """Drain nodes, and take them back into service."""
    change = ("scontrol", "update", f"NodeName={nodes}")
    site.ask(*change, "State=DRAIN", "Reason=test")
    try:
        yield
    finally:
        site.ask(*change, "State=RESUME")


def cancel(sitting: Sitting) -> None:
    """Somebody cancels a job."""
    sitting.site.ask("scancel", sitting.job())


def drain(sitting: Sitting) -> None:
    """A node of a job is drained, and the job cancelled: the next waits, or has other nodes."""
    site, job = sitting.site, sitting.job()
    nodes = site.ask("squeue", "--noheader", "--format=%N", f"--jobs={job}").strip()
    with drained(site, nodes):
        site.ask("scancel", job)
        sitting.until(lambda: sitting.again() and len(site.jobs()) == 2)


def run_out(sitting: Sitting) -> None:
    """A job reaches its time limit while a launch is in flight."""
    sitting.hold.touch()
    site, job = sitting.site, sitting.job()
    # A limit of a study is at least a minute; Slurm looks at limits every 30 s.
    site.ask("scontrol", "update", f"JobId={job}", "EndTime=now+1")
    try:
        site.until(lambda: all(line.split()[0] != job for line in site.jobs()))
    finally:
        sitting.hold.unlink()


def restart(sitting: Sitting) -> None:
    """The controller does not answer for a while."""
    sitting.site.controller.end()
    time.sleep(sitting.draw.uniform(0, 3))
    sitting.site.controller.start()


def kill(sitting: Sitting) -> None:
    """Paribus is killed, and the controller started again."""
    sitting.started.process.kill()
    sitting.started.process.wait()
    sitting.site.restart_controller()


# A limit that runs out takes half a minute.
KINDS = (cancel, drain, restart, kill, run_out, cancel, drain, restart, kill, restart)


@contextmanager
def sitting(site: Site, folder: Path, draw: random.Random) -> Iterator[Sitting]:
    # Nodes of a pocket have one core each, of different numbers; an arm may have first one of
    # them, then the other.
    words = ["--anyway", *(["--resume"] if stored(folder / "out") else [])]
    with Started(site, folder, "run", "study.toml", "--out", "out", *words) as started:
        yield Sitting(site, folder, started, draw)


def has(folder: Path, launches: int) -> bool:
    """Return whether so many launches are stored."""
    return stored(folder / "out") >= launches


def attempts(folder: Path) -> set[tuple[int, float]]:
    """Return number and start of every stored launch, those that do not count included."""
    if not stored(folder / "out"):
        return set()
    every = launches_in(folder / "out", samples=False, void=True)
    found = {(one.launch.number, one.outcome.started) for one in every}
    assert len(found) == len(every), "a launch is stored twice"
    return found


def check_ended(site: Site, folder: Path, before: set[tuple[int, float]]) -> None:
    """Assert that every planned launch counts once, all of `before` is there, and no job is."""
    check_whole(folder / "out")
    with Store(folder / "out") as store:
        assert len(store.counting()) == LAUNCHES
    assert attempts(folder) >= before, "a launch that was stored is lost"
    assert site.jobs() == []


@pytest.mark.slow
def test_a_study_meets_everything_that_a_site_does(site: Site, shared: Path) -> None:
    """A job cancelled, a limit reached, the controller restarted, then a node drained."""
    study(shared, COMMAND.format(hold=shared / "hold", seconds=0.3))
    draw = random.Random(1)
    with sitting(site, shared, draw) as one:
        for fault in (cancel, run_out, restart, drain):
            goal = stored(shared / "out") + 3  # a block and a half: fewer would end the study
            one.started.until(partial(has, shared, goal))
            before = attempts(shared)
            fault(one)
            one.allocations += fault is not restart
            one.started.until(one.runs)
        assert one.started.end() in (0, 3), one.started.said()
        said = one.started.said()
    assert said.count("submitted job") == 8
    assert said.count("has ended (") == 3
    check_ended(site, shared, before)


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed",
    # A job cancelled, a node drained, a controller restarted; the others with --long: a limit takes
    # half a minute to be reached.
    [*range(3), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(3, 20))],
)
def test_a_fault_at_any_moment_loses_and_doubles_nothing(
    site: Site, shared: Path, seed: int
) -> None:
    """Nodes of two or of one in each arm: with one, the next allocation may have the other."""
    draw = random.Random(seed)
    fault, at, nodes = KINDS[seed % len(KINDS)], draw.randrange(LAUNCHES - 2), draw.choice((1, 2))
    study(shared, COMMAND.format(hold=shared / "hold", seconds=0.05), nodes=nodes)
    with sitting(site, shared, draw) as one:
        one.started.until(lambda: has(shared, at) and len(site.jobs()) == 2)
        time.sleep(draw.uniform(0, 0.1))
        before = attempts(shared)
        fault(one)
        code = one.started.process.wait(WAIT_S)
        said = one.started.said()
    for _ in range(SITTINGS - 1):
        if code in (0, 3):
            break
        assert code in (2, -9), said
        with sitting(site, shared, draw) as one:
            code, said = one.started.process.wait(WAIT_S), one.started.said()
    assert code in (0, 3), said
    check_ended(site, shared, before)


@pytest.mark.slow
def test_same_nodes_are_those_of_the_first_allocation(site: Site, shared: Path) -> None:
    """One of two nodes, the one that Slurm would not choose by itself."""
    path = study(shared, COMMAND.format(hold=shared / "hold", seconds=0.3), nodes=1)
    text = path.read_text().replace('partition = "q"', 'partition = "p"')
    path.write_text(f"{text.replace('cluster', 'nothing')}same_nodes = true\n")
    with ExitStack() as stack:
        with drained(site, "h1"):
            one = stack.enter_context(sitting(site, shared, random.Random(1)))
            one.started.until(lambda: has(shared, 3))
        site.ask("scancel", one.job())
        assert one.started.end() in (0, 3), one.started.said()
        said = " ".join(one.started.said().split())
    seen = {(e.outcome.facts[JOB], e.outcome.facts[NODES]) for e in launches_in(shared / "out")}
    assert {nodes for _, nodes in seen} == {"h2"}
    assert len(seen) == 2
    assert "Within each allocation all arms had the same nodes: p 2 allocations (h2)" in said


@pytest.mark.slow
def test_blocks_are_divided_over_allocations_of_other_nodes(site: Site, shared: Path) -> None:
    """Of two nodes of a partition: the third allocation has one of them again, not the last."""
    path = study(shared, COMMAND.format(hold=shared / "hold", seconds=0.02), nodes=1)
    path.write_text(f"{path.read_text()}allocations = 3\n")
    with sitting(site, shared, random.Random(1)) as one:
        one.started.until(lambda: has(shared, 9))
        one.started.process.kill()  # in the second; what follows is in others
        one.started.process.wait()
    with sitting(site, shared, random.Random(1)) as one:
        assert one.started.end() in (0, 3), one.started.said()
        said = " ".join(one.started.said().split())
    check_ended(site, shared, set())
    shares: dict[str, set[int]] = {}
    launches = launches_in(shared / "out")
    for entry in launches:
        share = max(0, entry.launch.block - 1) * 3 // 8
        shares.setdefault(entry.outcome.facts[JOB], set()).add(share)
    assert {len(its) for its in shares.values()} == {1}
    nodes = {(entry.launch.arm, entry.outcome.facts[NODES]) for entry in launches}
    assert nodes == {("p", "h1"), ("p", "h2"), ("q", "h3"), ("q", "h4")}
    assert "the next allocation: block 7 is the first of share 3 of 3" in said
    assert "Slurm gives arm p no nodes beside h1,h2: asking for others" in said
    assert "p 3 allocations (h1, h2); q 3 allocations (h3, h4)" in said
