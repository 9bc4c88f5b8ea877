"""The first table of a cluster, with real launches on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from paribus.core import Arm, LaunchError
from paribus.launch.local import LocalStation
from paribus.launch.machine import HERE
from paribus.launch.ready import make_ready
from paribus.launch.toolchain import find_mpi
from paribus.lenses.matrices.first_table import asked, first_table
from paribus.lenses.matrices.lens import write_matrices

RANKS = 4


@pytest.fixture(scope="module")
def _mpi() -> None:
    try:
        find_mpi(None, HERE)
    except Exception as error:  # whatever is missing
        pytest.skip(str(error))


@pytest.mark.usefixtures("_mpi")
def test_all_pairs_of_four_ranks(tmp_path: Path) -> None:
    arm = Arm("here", transport="shm")
    study = asked(arm, RANKS, (8, 65536))
    heard: list[str] = []
    ready = make_ready(study, heard.append)["here"]
    with LocalStation() as station:
        found = first_table(station, ready, study, tmp_path, heard.append, launches=3)
    assert heard[-1] == "launch 3 of 3: all pairs of 4 nodes"
    assert [(m.metric.name, m.case.get("bytes"), m.launches) for m in found] == [
        ("latency", 8, 3),
        ("bandwidth", 65536, 3),
    ]
    latency, bandwidth = found
    assert len(latency.figures) == RANKS * (RANKS - 1) / 2
    assert len(bandwidth.figures) == RANKS * (RANKS - 1)
    assert all(m.judged and m.level == 0.75 for m in found)
    assert [name.partition(":")[2] for name in latency.nodes] == ["0", "1", "2", "3"]
    written = write_matrices(found, tmp_path / "pictures")
    kinds = sorted(path.suffix for path in written)
    assert kinds == [".pdf", ".pdf", ".png", ".png", ".svg", ".svg"]


@pytest.mark.usefixtures("_mpi")
def test_a_launch_that_fails_ends_the_table(tmp_path: Path) -> None:
    arm = Arm("here", transport="shm", env={"PARIBUS_DELAY_US": "much"})
    study = asked(arm, RANKS)
    ready = make_ready(study, lambda _: None)["here"]
    with (
        LocalStation() as station,
        pytest.raises(LaunchError, match=r"launch 1 of 5 failed: .*PARIBUS_DELAY_US=much"),
    ):
        first_table(station, ready, study, tmp_path, lambda _: None)
