"""Studies on the nodes of a real Slurm: two partitions of two nodes on a pocket cluster."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from mpis import any_mpi
from paribus.doctor.fitness import scheduler
from paribus.plan import read_plan
from paribus.schedulers.known import DIALECTS
from paribus.store import read_count
from processes import ran
from schedulers.slurm import Jobs, Site, slurm
from studies import launches_in

STUDY = """\
question = "Is partition q slower than p?"
factor = "cluster"
[arms.p]
{mpi}scheduler = {{ name = "slurm", partition = "p", nodes = {nodes}, time = "10 min" }}
[arms.q]
{mpi}scheduler = {{ name = "slurm", partition = "q", nodes = {nodes}, time = "10 min" }}
[[benchmarks]]
{benchmark}
[plan]
blocks = 8
seed = 1
"""
COMMAND = 'name = "command"\nargv = ["sleep", "0.02"]\ndirectory = "{scratch}"'
SLEEP = COMMAND.replace("0.02", "0.5")
# Of a nanosecond each: times of COMMAND on hosts have steps of 10 ms, and may all be alike.
FIGURE = """\
name = "command"
argv = ["date", "+1.%N"]
regex = "(.+)"
unit = "s"
better = "lower"
directory = "{scratch}\""""
LATENCY = 'name = "latency"\nbytes = ["8 B"]\nsamples = 20'
WAIT_S = 120.0


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with slurm(4, {"p": ["h1", "h2"], "q": ["h3", "h4"]}) as there:
        yield there


@pytest.fixture
def shared(site: Site) -> Iterator[Path]:
    """A directory that all nodes see; it outlives no test."""
    with TemporaryDirectory(dir=site.place) as folder:
        yield Path(folder)


def one_rank_each() -> str:
    """Return the keys of an arm with a rank of the MPI that is here on each of its nodes."""
    return f'mpi = "{Path(any_mpi().mpicxx).parents[1]}"\nranks_per_host = 1\n'


def study(folder: Path, benchmark: str = COMMAND, nodes: int = 2, mpi: str = "") -> Path:
    path = folder / "study.toml"
    path.write_text(STUDY.format(benchmark=benchmark, nodes=nodes, mpi=mpi))
    return path


class Started:
    """`paribus` with some words where users of a site log in; ends with the context."""

    def __init__(self, site: Jobs, folder: Path, *words: str, **env: str) -> None:
        self.out, self.err = folder / "out.txt", folder / "err.txt"
        argv = [*site.prefix, sys.executable, "-m", "paribus", *words]
        with self.out.open("w") as out, self.err.open("w") as err:
            self.process = subprocess.Popen(
                argv, cwd=folder, env={**site.env, **env}, stdout=out, stderr=err, stdin=-3
            )

    def __enter__(self) -> Started:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def end(self) -> int:
        return self.process.wait(WAIT_S)

    def until(self, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WAIT_S
        while not done():
            assert time.monotonic() < deadline, self.said()
            assert self.process.poll() is None, self.said()
            time.sleep(0.05)

    def said(self) -> str:
        return self.out.read_text() + self.err.read_text()


def run(site: Jobs, folder: Path, *words: str, code: int | None = None, **env: str) -> str:
    """Return in one line what `paribus WORDS` said; it has ended with `code`, or with any verdict.

    On a busy machine a verdict may be withheld.
    """
    with Started(site, folder, *words, **env) as started:
        assert started.end() in ((0, 3) if code is None else (code,)), started.said()
        return " ".join(started.said().split())


def submitted(site: Site) -> str:
    """Return a job of the test's own that has both nodes of a partition for some minutes."""
    nodes = ("--partition=p", "--nodes=2", "--exclusive")
    said = site.ask("sbatch", "--parsable", *nodes, "--output=/dev/null", "--wrap=sleep 300")
    return said.strip()


def stored(directory: Path) -> int:
    return read_count(directory).launches if directory.exists() else 0


def check_whole(directory: Path) -> None:
    """Assert that every planned launch counts once, and every block is one of both arms."""
    plan = read_plan(directory)
    wanted = [launch.number for block in plan.blocks() for launch in block]
    assert sorted(entry.launch.number for entry in launches_in(directory)) == sorted(wanted)


def check_interrupted(site: Jobs, folder: Path) -> None:
    """Assert that a study of SLEEP that is interrupted leaves no job."""
    with Started(site, folder, "run", "study.toml", "--out", "out") as started:
        started.until(lambda: stored(folder / "out") >= 2)
        started.process.send_signal(2)
        assert started.end() == 130, started.said()
    assert site.jobs() == []


def check_refused(site: Jobs, path: Path, old: str, new: str, cause: str) -> None:
    """Assert that a study in which `new` stands for `old` is refused, and asks for nothing."""
    path.write_text(path.read_text().replace(old, new))
    assert cause in run(site, path.parent, "run", "study.toml", "--out", "out", code=2)
    assert site.jobs() == []
    assert not (path.parent / "out").exists()


def check_across(site: Jobs, folder: Path) -> str:
    """Return what a study of LATENCY said, whose ranks were on the nodes that each arm asked for.

    One arm after the other in each block, while both allocations live.
    """
    said = run(site, folder, "run", "study.toml", "--out", "out")
    assert "Transport between ranks: network (seen by the ranks), in all arms" in said
    check_whole(folder / "out")
    launches = launches_in(folder / "out")
    seen = {(one.launch.arm, *sorted(one.outcome.facts["rank.hosts"])) for one in launches}
    assert seen == {("p", "h1", "h2"), ("q", "h3", "h4")}
    assert site.jobs() == []
    return said


@pytest.mark.slow
def test_ranks_across_the_nodes_of_two_partitions(site: Site, tmp_path: Path) -> None:
    study(tmp_path, LATENCY, mpi=one_rank_each())
    said = check_across(site, tmp_path)
    assert "placement.scheduler: slurm, partition p -> slurm, partition q" in said


@pytest.mark.slow
def test_a_study_goes_on_in_other_allocations_whatever_happens(site: Site, tmp_path: Path) -> None:
    """Paribus killed, a job cancelled from outside, the controller started again."""
    study(tmp_path)
    out = tmp_path / "out"
    with Started(site, tmp_path, "run", "study.toml", "--out", "out") as started:
        started.until(lambda: stored(out) >= 4)
        started.process.kill()
        started.process.wait()
    left = {line.split()[0] for line in site.jobs()}
    assert len(left) == 2, "nobody has cancelled the jobs of the killed"
    site.controller.end()
    with Started(site, tmp_path, "run", "study.toml", "--out", "out", "--resume") as started:
        begun = stored(out)
        time.sleep(2)
        site.controller.start()
        started.until(lambda: stored(out) >= begun + 4)
        jobs = {line.split()[0] for line in site.jobs() if line.split()[1].endswith("-q")}
        [other] = jobs - left  # a job that was cancelled may still be completing
        site.ask("scancel", other)
        started.until(lambda: "the next allocation" in started.said())
        site.restart_controller()
        assert started.end() in (0, 3), started.said()  # a busy machine may withhold a verdict
        said = " ".join(started.said().split())
    cleared = re.search(r"cancelling what this study left in the queue: job (\d+), (\d+)", said)
    assert cleared
    assert set(cleared.groups()) == left
    assert f"the allocation of arm q, job {other}, has ended" in said
    assert "command" in said
    check_whole(out)
    assert site.jobs() == []


@pytest.mark.slow
def test_an_interrupted_study_leaves_no_job(site: Site, tmp_path: Path) -> None:
    study(tmp_path, SLEEP)
    check_interrupted(site, tmp_path)


@pytest.mark.slow
def test_inside_a_job_its_nodes_are_taken_and_it_stays(site: Site, tmp_path: Path) -> None:
    path = study(tmp_path, FIGURE)
    same = path.read_text().replace('partition = "q"', 'partition = "p"')
    path.write_text(same.replace('"cluster"', '"nothing"'))
    job = submitted(site)
    try:
        site.until(lambda: any(f"{job} " in line and "RUN" in line for line in site.jobs()))
        said = run(site, tmp_path, "run", "study.toml", "--out", "out", SLURM_JOB_ID=job, code=0)
        assert "submitted" not in said
        assert [line.split()[0] for line in site.jobs()] == [job]
        check_whole(tmp_path / "out")
        said = run(site, tmp_path, "run", "study.toml", "--dry-run", SLURM_JOB_ID=job, code=0)
        assert said.count("node-hours (2 nodes), in launches") == 2
        assert "what is lent is held all the time" in said
        study(tmp_path)
        said = run(site, tmp_path, "run", "study.toml", "--out", "o", SLURM_JOB_ID=job, code=2)
        assert "ask for different allocations, and this job is one" in said
    finally:
        site.ask("scancel", job)


@pytest.mark.parametrize(
    ("old", "new", "cause"),
    [
        ('partition = "p"', 'partition = "nope"', "arms.p.scheduler.partition = 'nope'"),
        ('"10 min"', '"100 h"', "there is p: 2 nodes of 2 CPUs, at most 1:00:00; see also"),
        ('"10 min"', '"10 min", options = ["--mem=900G"]', "options = ('--mem=900G',): Slurm"),
        ('"10 min"', '"100 h"', "will not start the job as it was asked for: Partition"),
        ("nodes = 2", "nodes = 7", "will not start the job as it was asked for: Partition"),
        ('"10 min"', '"10 min", constraint = "gold"', "constraint = 'gold': Slurm refused the job"),
    ],
)
def test_what_slurm_rejects_is_said_before_anything_waits(
    site: Site, tmp_path: Path, old: str, new: str, cause: str
) -> None:
    check_refused(site, study(tmp_path), old, new, cause)


def test_json_and_text_of_a_real_squeue_agree(site: Site) -> None:
    """A job that runs, and one that waits for it; then none of theirs."""
    jobs = [submitted(site) for _ in range(2)]
    try:
        site.until(lambda: any(f"{jobs[0]} " in line and "RUN" in line for line in site.jobs()))
        dialect = DIALECTS["slurm"]
        said = site.ask(*dialect.queue(jobs))
        assert said.startswith("{")
        [text] = [one for one in dialect.queue(jobs)[2].splitlines() if one.startswith("exec")]
        plain = site.ask("/bin/sh", "-c", text, "squeue", *dialect.queue(jobs)[4:])
        now = time.time()
        read, wanted = dialect.read_queue(said), dialect.read_queue(plain, now)
        for job in jobs:
            assert replace(read[job], ends_at=0.0) == replace(wanted[job], ends_at=0.0)
            assert read[job].ends_at == pytest.approx(wanted[job].ends_at, abs=3.0)
        assert read[jobs[0]].nodes == ("h1", "h2")
    finally:
        for job in jobs:
            site.ask("scancel", job)


def test_the_doctor_lists_the_partitions(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "from paribus.doctor.fitness import scheduler; print(scheduler())"
    said = site.ask(sys.executable, "-c", code)
    assert "grade='good'" in said
    assert "p: 2 nodes of 2 CPUs, at most 1:00:00; q: 2 nodes" in said
    monkeypatch.delenv("SLURM_CONF", raising=False)
    assert scheduler().grade == "unknown"


def test_a_dry_run_prints_the_jobs_and_submits_nothing(tmp_path: Path) -> None:
    """Here, where no Slurm is configured: nothing is asked of one."""
    study(tmp_path)
    argv = [sys.executable, "-m", "paribus", "run", "study.toml", "--dry-run"]
    env = {key: value for key, value in os.environ.items() if key != "SLURM_JOB_ID"}
    done = ran(argv, cwd=tmp_path, env=env, code=0)
    for arm in ("p", "q"):
        assert f"the job that arm {arm} waits for (sbatch):" in done.stdout
        assert f"#SBATCH --partition={arm}" in done.stdout
    assert done.stdout.count("exec sleep 600") == 2
    assert done.stdout.endswith(
        "  p: 0.333 node-hours (2 nodes)\n  q: 0.333 node-hours (2 nodes)\n"
    )
    assert [one.name for one in tmp_path.iterdir()] == ["study.toml"]


def test_where_no_slurm_is_the_study_says_where_to_start_it(tmp_path: Path) -> None:
    study(tmp_path)
    (tmp_path / "bin").mkdir()
    argv = [sys.executable, "-m", "paribus", "run", "study.toml", "--out", "out"]
    env = {**os.environ, "PATH": str(tmp_path / "bin")}
    done = ran(argv, cwd=tmp_path, env=env, code=2)
    assert "arms.p.scheduler: Slurm is not here: no `sbatch` on the PATH" in done.stderr
    assert "a login node, or inside a job" in done.stderr
    assert not (tmp_path / "out").exists()
