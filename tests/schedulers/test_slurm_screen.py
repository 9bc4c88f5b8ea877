"""`paribus screen --scheduler` on a real Slurm: its idle nodes, and drains of nobody else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from mpis import any_mpi, installations
from paribus.screen import plan
from schedulers.slurm import Site, slurm
from schedulers.test_slurm import run

PARIBUS_SLOW = "sh -c 'case $(uname -n) in h2) echo rate: 80;; *) echo rate: 100;; esac'"
MEASURED = (
    *("--command", PARIBUS_SLOW, "--regex", "rate: (.*)", "--unit", "MB/s", "--higher"),
    *("--directory", "{scratch}"),
)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with slurm(5, {"p": [f"h{i}" for i in range(1, 6)]}) as there:
        yield there


def state(site: Site, node: str) -> str:
    return " ".join(site.ask("scontrol", "show", "node", node).split())


@pytest.mark.slow
def test_idle_nodes_are_screened_and_the_slow_one_is_drained(site: Site, tmp_path: Path) -> None:
    site.ask("scontrol", "update", "NodeName=h5", "State=DRAIN", "Reason=fan")
    words = ("screen", "--scheduler", "slurm:p", *MEASURED, "--time", "10 min", "--out", "out")
    said = run(site, tmp_path, *words, "--fail-on", "slow", code=1)
    assert "h2 is slow; 1 node not screened." in said
    assert "h5: drained in Slurm" in said
    assert "scontrol update NodeName=h2 State=DRAIN" in said
    assert site.jobs() == []
    assert "DRAIN" not in state(site, "h2")
    answer = json.loads((tmp_path / "out" / "answer.json").read_text())
    words_of = {one["node"]: one["word"] for one in answer["nodes"]}
    assert words_of == {
        "h2": "slow",
        **dict.fromkeys(("h1", "h3", "h4"), "no sign"),
        "h5": "not screened",
    }

    said = run(site, tmp_path, "screen", "out", "--drain", code=0)
    assert "h2: drained" in said
    assert "Reason=paribus: command -20.0 %" in state(site, "h2")

    # Somebody else's reason stays, whatever is slow.
    site.ask("scontrol", "update", "NodeName=h2", "State=DRAIN", "Reason=memory")
    said = run(site, tmp_path, "screen", "out", "--drain", code=0)
    assert "h2: left as it is" in said
    assert "Reason=memory" in state(site, "h2")
    for node in ("h2", "h5"):
        site.ask("scontrol", "update", f"NodeName={node}", "State=RESUME")
    site.until(lambda: all(" State=IDLE " in state(site, node) for node in ("h2", "h5")))


@pytest.mark.slow
def test_a_node_of_another_user_is_screened_when_it_comes_free(site: Site, tmp_path: Path) -> None:
    other = ("--uid=nobody", "--partition=p", "--exclusive", "--nodelist=h5")
    where = ("--parsable", "--output=/dev/null", "--chdir=/")
    job = site.ask("sbatch", *other, *where, "--wrap=sleep 600").strip()
    site.until(lambda: site.jobs() == [f"{job} wrap RUNNING"])
    words = ("screen", "--scheduler", "slurm:p", *MEASURED, "--time", "10 min", "--out", "out")
    beside = (*words, "--partners", "2", "--wait")
    said = run(site, tmp_path, *beside, "15 s", code=0)
    assert "batch-1: h[1-4]" in said
    planned = run(site, tmp_path, *beside, "15 s", "--dry-run", "--out", "planned", code=0)
    assert "a batch of 3 nodes, of h[1-3]" in planned
    assert "none is nominated: 3 rounds" in planned
    assert not (tmp_path / "planned").exists()
    assert "h2 is slow; 1 node not screened." in said
    assert "h5: not free in time: allocated in Slurm" in said
    assert site.jobs() == [f"{job} wrap RUNNING"]

    site.ask("scancel", job)
    site.until(lambda: site.jobs() == [])
    said = run(site, tmp_path, *beside, "2 min", "--resume", code=0)
    assert "batch-2: h[" in said
    assert "h2 is slow." in said
    assert site.jobs() == []
    answer = json.loads((tmp_path / "out" / "answer.json").read_text())
    words_of = {one["node"]: one["word"] for one in answer["nodes"]}
    assert words_of == {"h2": "slow", **dict.fromkeys(("h1", "h3", "h4", "h5"), "no sign")}
    assert answer["complete"]
    again = plan.read(tmp_path / "out" / "batch-2")
    assert "h2" not in again.nodes
    assert again.families == 5


@pytest.mark.slow
def test_links_are_measured_by_steps_of_slurm(site: Site, tmp_path: Path) -> None:
    """Over the network that the MPI chooses itself: each pair is reached and left anew."""
    mpi = next((one for one in installations() if one.family == "mpich"), any_mpi())
    words = ("--links", "--with", "bandwidth bytes=65536 samples=3", "--margin", "90%")
    mpis = ("--mpi", str(Path(mpi.mpicxx).parents[1]), "--time", "10 min")
    said = run(site, tmp_path, "screen", "--scheduler", "slurm:p", *words, *mpis, code=0)
    assert "no sign of slowness. bandwidth on 5 nodes: 5 rounds, 20 launches." in said
    assert "Traceback" not in said
    assert site.jobs() == []


@pytest.mark.slow
def test_an_unknown_partition_is_refused(site: Site, tmp_path: Path) -> None:
    said = run(site, tmp_path, "screen", "--scheduler", "slurm:no", *MEASURED, code=2)
    assert "has no nodes" in said or "Slurm refuses" in said
