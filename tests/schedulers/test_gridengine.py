"""Studies on the nodes of a real Grid Engine: two queues of two nodes on a pocket cluster."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paribus.core import Scheduler
from paribus.schedulers.dialect import Phase
from paribus.schedulers.known import DIALECTS
from schedulers.gridengine import Site, gridengine, missing
from schedulers.test_slurm import (
    COMMAND,
    LATENCY,
    Started,
    check_across,
    check_refused,
    check_whole,
    one_rank_each,
    run,
    stored,
)

dialect = DIALECTS["gridengine"]

STUDY = """\
question = "Is queue q slower than p?"
factor = "cluster"
[arms.p]
{mpi}{ssh}scheduler = {{ name = "gridengine", partition = "p.q", {asks} }}
[arms.q]
{mpi}{ssh}scheduler = {{ name = "gridengine", partition = "q.q", {asks} }}
[[benchmarks]]
{benchmark}
[plan]
blocks = 8
seed = 1
"""
ASKS = 'nodes = 2, slots = 2, parallel_environment = "whole", time = "10 min"'


@pytest.fixture(scope="module")
def cluster() -> Iterator[Site]:
    if lack := missing():
        pytest.skip(lack)
    with gridengine(4, {"p.q": ["h1", "h2"], "q.q": ["h3", "h4"]}) as there:
        yield there


@pytest.fixture
def site(cluster: Site) -> Site:
    """The cluster, without the jobs that an earlier test left when it failed."""
    for job in cluster.jobs():
        cluster.ask("qdel", "-f", job)
    cluster.until(lambda: cluster.jobs() == [])
    return cluster


def study(site: Site, folder: Path, benchmark: str = COMMAND, mpi: str = "") -> Path:
    gate = site.gate
    ssh = f'ssh = {{ identity = "{gate.identity}", known_hosts = "{gate.known_hosts}" }}\n'
    path = folder / "study.toml"
    path.write_text(STUDY.format(benchmark=benchmark, asks=ASKS, mpi=mpi, ssh=ssh))
    return path


@pytest.mark.slow
def test_ranks_across_the_nodes_of_two_queues(site: Site, tmp_path: Path) -> None:
    study(site, tmp_path, LATENCY, mpi=one_rank_each())
    said = check_across(site, tmp_path)
    assert "placement.scheduler: gridengine, partition p.q -> gridengine, partition q.q" in said


@pytest.mark.slow
def test_a_study_goes_on_after_a_job_was_deleted(site: Site, tmp_path: Path) -> None:
    """Paribus killed, and resumed; then a job deleted from outside."""
    study(site, tmp_path)
    out = tmp_path / "out"
    with Started(site, tmp_path, "run", "study.toml", "--out", "out") as started:
        started.until(lambda: stored(out) >= 4)
        started.process.kill()
        started.process.wait()
    assert len(site.jobs()) == 2, "nobody has deleted the jobs of the killed"
    with Started(site, tmp_path, "run", "study.toml", "--out", "out", "--resume") as started:
        begun = stored(out)
        started.until(lambda: stored(out) >= begun + 4)
        [other] = [name for name in site.jobs() if name.endswith("-q")]
        site.ask("qdel", other)
        started.until(lambda: "the next allocation" in started.said())
        assert started.end() in (0, 3), started.said()  # a verdict may be withheld
        said = " ".join(started.said().split())
    assert "cancelling what this study left in the queue: job" in said
    assert "the allocation of arm q, job" in said
    check_whole(out)
    assert [name for name in site.jobs() if "paribus" in name] == []


@pytest.mark.slow
def test_inside_a_job_its_nodes_are_taken_and_it_stays(site: Site, tmp_path: Path) -> None:
    path = study(site, tmp_path)
    same = path.read_text().replace("q.q", "p.q").replace('"cluster"', '"nothing"')
    path.write_text(same)
    asked = Scheduler("gridengine", 2, 600.0, "p.q", slots=2, parallel_environment="whole")
    (tmp_path / "job.sh").write_text(dialect.script(asked, "mine"))
    job = site.ask(*dialect.SUBMIT, str(tmp_path / "job.sh")).strip()
    inside: dict[str, Any] = {"JOB_ID": job, "SGE_TASK_ID": "undefined"}
    try:
        site.until(lambda: dialect.read_queue(site.ask(*dialect.queue()))[job].phase is Phase.RUNS)
        said = run(site, tmp_path, "run", "study.toml", "--out", "out", **inside)
        assert "submitted" not in said
        assert site.jobs() == ["mine"]
        check_whole(tmp_path / "out")
    finally:
        site.ask("qdel", job)


def test_a_dry_run_prints_the_jobs_and_submits_nothing(site: Site, tmp_path: Path) -> None:
    study(site, tmp_path)
    said = run(site, tmp_path, "run", "study.toml", "--dry-run", code=0)
    for arm in ("p", "q"):
        assert f"the job that arm {arm} waits for (qsub):" in said
        assert f"#$ -pe whole 4 #$ -l h_rt=600 #$ -q {arm}.q" in said
    assert site.jobs() == []


@pytest.mark.parametrize(
    ("old", "new", "cause"),
    [
        ("p.q", "nope.q", "arms.p.scheduler.partition = 'nope.q': Grid Engine refused the job"),
        ('"whole"', '"nope"', "arms.p.scheduler.parallel_environment = 'nope': Grid Engine"),
        ('"10 min"', '"100 h"', "Grid Engine refused the job: Unable to run job: error: no suit"),
        ('"10 min"', '"10 min", constraint = "gold=1"', "constraint = 'gold=1': Grid Engine"),
        ('"10 min"', '"10 min", options = ["-P lab"]', 'the requested project "lab" does not'),
    ],
)
def test_what_grid_engine_rejects_is_said_at_once(
    site: Site, tmp_path: Path, old: str, new: str, cause: str
) -> None:
    check_refused(site, study(site, tmp_path), old, new, cause)


def test_the_doctor_lists_the_queues(site: Site) -> None:
    code = "from paribus.doctor.fitness import scheduler; print(scheduler())"
    said = site.ask(sys.executable, "-c", code)
    assert "grade='good'" in said
    assert "Grid Engine: p.q: 4 slots, " in said


@pytest.mark.slow
def test_unknown_host_keys_are_accepted_in_the_allocation_that_shows_them(
    site: Site, tmp_path: Path
) -> None:
    """Else another is asked for, which waits in the queue again, and may have other nodes."""
    path = study(site, tmp_path)
    path.write_text(path.read_text().replace(site.gate.known_hosts, str(tmp_path / "known")))
    said = run(site, tmp_path, "run", "study.toml", "--out", "out", code=2)
    assert "2 host keys not known: h1 SHA256:" in said
    assert "name the file that has the keys of all, as `known_hosts` in the arm's `ssh`" in said
    assert site.jobs() == []
    said = run(site, tmp_path, "run", "study.toml", "--out", "out", "--accept-host-keys")
    assert said.count("submitted job") == 2
    assert said.count("shows the host key SHA256:") == 4
    check_whole(tmp_path / "out")
