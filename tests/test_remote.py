"""Launches on other hosts: real launchers, real kills, nothing left on any node."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mpis import each_mpi
from namespace_hosts import Cluster, namespace_hosts
from paribus.command import Command, Completed, Mpi, Placement, Slot
from paribus.errors import LaunchError
from paribus.platform.launchers import launch
from paribus.platform.local import LocalStation
from paribus.platform.remote import HostStation
from processes import children, ended, processes_with

NETWORK = "10.78.0.0/24"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with namespace_hosts(tmp_path_factory.mktemp("cluster"), 2) as cluster:
        yield cluster


@pytest.fixture
def station(cluster: Cluster) -> Iterator[HostStation]:
    before = cluster.left()
    with LocalStation() as local, HostStation(cluster.hosts(), local) as station:
        yield station
    assert cluster.left() == before


def start(
    station: HostStation, tmp_path: Path, command: Command | str, timeout_s: float = 30.0
) -> Completed:
    if isinstance(command, str):
        command = Command(("/bin/sh", "-c", command))
    return station.run(
        command,
        stdout=str(tmp_path / "out"),
        stderr=str(tmp_path / "err"),
        timeout_s=timeout_s,
        scratch=f"{station.scratch}/launch",
    )


def across(station: HostStation, mpi: Mpi, script: str) -> Command:
    """Return the command that starts a script once on each host."""
    return launch(
        Command(("/bin/sh", "-c", script)),
        ranks=2,
        mpi=mpi,
        placement=Placement((Slot("h1"), Slot("h2")), agent=station.agent, network=NETWORK),
        transport="tcp",
        scratch=f"{station.scratch}/launch",
    )


def test_a_launch_has_its_files_and_scratch_there_and_its_output_here(
    station: HostStation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOT_SENT", "secret")
    command = Command(
        ("/bin/sh", "-c", 'hostname; echo "$TMPDIR"; ./tool; env; printf "e\\n\\377" >&2; exit 3'),
        env={"MARK": "two words"},
        files={"tool": "#!/bin/sh\necho it\\'s a tool; echo late >late.out\n"},
        outputs=("*.out",),
    )
    done = start(station, tmp_path, command)
    assert done.exit_code == 3
    lines = (tmp_path / "out").read_text().splitlines()
    assert lines[:3] == ["h1", f"{station.scratch}/launch", "it's a tool"]
    assert "MARK=two words" in lines
    assert lines[-1] == "late"
    assert not any("NOT_SENT" in line for line in lines)
    assert (tmp_path / "err").read_bytes() == b"e\n\xff"


@pytest.mark.parametrize(("script", "code"), [("exit 104", 104), ("kill -SEGV $$", -11)])
def test_an_exit_code_comes_back_as_of_a_process_here(
    station: HostStation, tmp_path: Path, script: str, code: int
) -> None:
    assert start(station, tmp_path, script).exit_code == code


def test_a_variable_with_an_odd_name_is_set(station: HostStation, tmp_path: Path) -> None:
    start(station, tmp_path, Command(("env",), env={"odd.name": "x y"}))
    assert "odd.name=x y\n" in (tmp_path / "out").read_text()


def test_what_cannot_be_started_names_the_host(station: HostStation, tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match=r"h1: /no/such: .*not found"):
        start(station, tmp_path, Command(("/no/such",)))
    assert start(station, tmp_path, "true").exit_code == 0


def test_a_deadline_ends_what_is_deaf_to_term_and_in_a_session_of_its_own(
    station: HostStation, cluster: Cluster, tmp_path: Path
) -> None:
    begin = time.monotonic()
    script = "trap '' TERM; echo first; setsid sleep 1000 & sleep 1000; sleep 1000"
    done = start(station, tmp_path, script, timeout_s=0.5)
    assert done.timed_out
    assert time.monotonic() - begin < 8
    assert (tmp_path / "out").read_text() == "first\n"
    assert "launch" not in str(cluster.left())


def test_the_load_of_the_node_is_that_around_the_launch(
    station: HostStation, tmp_path: Path
) -> None:
    burn = f"{sys.executable} -S -c 'import time\nwhile time.process_time() < 0.3: pass'"
    done = start(station, tmp_path, burn)
    assert done.load is not None
    before, after = done.load
    assert before["load.node"] == "h1"
    assert after["load.busy_s"] - before["load.busy_s"] >= 0.2
    assert done.cpu_s is not None
    assert 0.25 < done.cpu_s < 0.6
    assert done.wall_s >= 0.25


@pytest.mark.parametrize("mpi", each_mpi())
def test_ranks_start_on_every_host(station: HostStation, tmp_path: Path, mpi: Mpi) -> None:
    done = start(station, tmp_path, across(station, mpi, 'hostname; echo "$TMPDIR"'))
    assert done.exit_code == 0, (tmp_path / "err").read_text()
    said = (tmp_path / "out").read_text().split()
    assert sorted(said) == sorted(["h1", "h2", *[f"{station.scratch}/launch"] * 2])


def test_an_agent_hands_back_how_a_command_ended_and_what_it_said(
    station: HostStation, tmp_path: Path
) -> None:
    script = (
        f"{station.agent} -x h2 'hostname >&2; exit 7'; echo $?; {station.agent} h3 true; echo $?"
    )
    start(station, tmp_path, script)
    assert (tmp_path / "out").read_text() == "7\n255\n"
    assert (tmp_path / "err").read_text() == "h2\nparibus: h3 is not a host of this arm\n"


def test_only_the_launch_in_flight_may_ask(station: HostStation, tmp_path: Path) -> None:
    script = f"PARIBUS_LAUNCH=0123 {station.agent} h2 true; echo $?"
    start(station, tmp_path, script)
    assert (tmp_path / "out").read_text() == "255\n"
    assert "no launch is in flight" in (tmp_path / "err").read_text()


SITTING = """
import sys
from pathlib import Path
sys.path[:0] = {path!r}
from namespace_hosts import inside
from paribus.command import Command, Mpi, Placement, Slot
from paribus.platform.hosts import Host
from paribus.platform.launchers import launch
from paribus.platform.local import LocalStation
from paribus.platform.remote import HostStation

hosts = {hosts!r}
mpi = {mpi!r}
with LocalStation() as local, HostStation(hosts, local) as station:
    print("begun", flush=True)
    for n in range(100):
        scratch = f"{{station.scratch}}/{{n}}"
        command = launch(
            Command(("/bin/sh", "-c", {script!r})), ranks=2, mpi=mpi,
            placement=Placement((Slot("h1"), Slot("h2")), agent=station.agent, network={network!r}),
            transport="tcp", scratch=scratch,
        )
        station.run(command, stdout="out", stderr="err", timeout_s=30, scratch=scratch)
"""


@pytest.mark.parametrize("mpi", each_mpi())
def test_a_killed_paribus_leaves_nothing_on_any_node(
    cluster: Cluster, tmp_path: Path, mpi: Mpi, request: pytest.FixtureRequest
) -> None:
    """At random moments of a sitting: before, at the start of, in and after a launch."""
    before = cluster.left()
    mark = f"72{os.getpid()}"
    script = f"trap '' TERM; setsid sleep {mark} & : >/dev/shm/mpich_shm_$$; sleep 0.3"
    text = SITTING.format(
        path=sys.path, hosts=cluster.hosts(), mpi=mpi, script=script, network=NETWORK
    )
    seed = random.randrange(1 << 30)
    draw = random.Random(seed)
    for _ in range(20 if request.config.getoption("--thorough") else 3):
        sitting = subprocess.Popen(
            [sys.executable, "-c", text], stdout=subprocess.PIPE, cwd=tmp_path, text=True
        )
        assert sitting.stdout.readline() == "begun\n"
        mine = below(sitting.pid)
        time.sleep(draw.uniform(0, 1.5))
        mine += below(sitting.pid)
        sitting.kill()
        sitting.wait()
        sitting.stdout.close()
        deadline = time.monotonic() + 10
        while (left := cluster.left()) != before and time.monotonic() < deadline:
            time.sleep(0.05)
        assert left == before, f"seed {seed}"
        assert ended(mine)
    assert not processes_with(f"sleep\0{mark}")


def below(pid: int) -> list[int]:
    """Return the pids of all descendants of a process."""
    return [one for child in children(pid) for one in (child, *below(child))]
