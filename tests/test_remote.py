"""Launches on other hosts: real launchers, real kills, nothing left on any node."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mpis import each_mpi
from namespace_hosts import Cluster, namespace_hosts
from paribus.core import Command, Completed, LaunchError, MachineError, Mpi, Placement, Slot
from paribus.hosts.guard import Report, busiest, report_of
from paribus.hosts.keeper import Keeper
from paribus.hosts.reached import Host
from paribus.hosts.remote import HostStation
from paribus.launch.launchers import launch
from paribus.launch.local import LocalStation
from paribus.launch.space import fault_of
from processes import descendants, ended, processes_with
from stations import launched

NETWORK = "10.78.0.0/24"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with namespace_hosts(tmp_path_factory.mktemp("cluster"), 2) as cluster:
        yield cluster


def settled(cluster: Cluster, before: list[list[str]], within_s: float = 2.0) -> bool:
    """Return whether the hosts are as they were; the `sleep` of a killed shell ends by itself."""
    deadline = time.monotonic() + within_s
    while (left := cluster.left()) != before and time.monotonic() < deadline:
        time.sleep(0.02)
    return left == before


@pytest.fixture
def station(cluster: Cluster) -> Iterator[HostStation]:
    before = cluster.left()
    with LocalStation() as local, HostStation(cluster.hosts(), local) as station:
        yield station
    assert settled(cluster, before)


def start(
    station: HostStation, tmp_path: Path, command: Command | str, timeout_s: float = 30.0
) -> Completed:
    if isinstance(command, str):
        command = Command(("/bin/sh", "-c", command))
    return launched(station, command, tmp_path, timeout_s)


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


def test_seconds_of_short_commands_are_no_multiples_of_a_tick(
    station: HostStation, tmp_path: Path
) -> None:
    """The kernel's uptime has steps of 10 ms, date(1) has none."""
    walls = [start(station, tmp_path, "sleep 0.033").wall_s for _ in range(4)]
    assert all(wall_s >= 0.033 for wall_s in walls)
    assert any(round(wall_s * 1e4) % 100 for wall_s in walls)


@pytest.mark.parametrize(
    ("finely", "wall_s"),
    [
        ("1795924859.702261086 1795924859.735262086", 0.033),
        ("1795924859.%N 1795924859.%N", 0.04),  # busybox
        ("1795924859.702261086", 0.04),
        ("", 0.04),
        ("1795924859.702261086 1795924812.735262086", 0.04),  # the clock was set meanwhile
        ("nan 1795924859.735262086", 0.04),
        ("1795924859.702261086 1795924859.792262086", 0.04),  # date(1) was held up
    ],
)
def test_a_date_counts_where_it_agrees_with_the_uptime(finely: str, wall_s: float) -> None:
    head = f"exit 0\nown 1\nseconds 7.10 7.14\nfinely {finely}\nwindow 7.09 7.15"
    report = report_of(f"{head}\nbefore\n\nafter\n\nwhole\n".encode())
    assert report is not None
    assert report.wall_s == wall_s


def test_a_variable_with_an_odd_name_is_set(station: HostStation, tmp_path: Path) -> None:
    start(station, tmp_path, Command(("env",), env={"odd.name": "x y"}))
    assert "odd.name=x y\n" in (tmp_path / "out").read_text()


def test_a_command_may_work_in_another_directory(station: HostStation, tmp_path: Path) -> None:
    there = tmp_path / "a b"
    there.mkdir()
    start(station, tmp_path, Command(("/bin/sh", "-c", 'pwd; echo "$TMPDIR"'), cwd=str(there)))
    assert (tmp_path / "out").read_text() == f"{there}\n{station.scratch}/launch\n"
    there.rmdir()
    done = start(station, tmp_path, Command(("pwd",), cwd=str(there)))
    assert done.exit_code == 126
    assert "a b" in (tmp_path / "err").read_text()


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


def test_a_full_disk_on_a_node_is_no_fault_of_the_arm(
    station: HostStation, cluster: Cluster, tmp_path: Path
) -> None:
    filler = f"{cluster.folder}/tmp/filler"
    cluster.ask(0, f"mount -o remount,size=1m {cluster.folder}/tmp; cat /dev/zero >{filler}")
    try:
        with pytest.raises(MachineError, match="h1: the launch could not be started"):
            start(station, tmp_path, "true")
    finally:
        cluster.ask(0, f"rm {filler}; mount -o remount,size=50% {cluster.folder}/tmp")
    done = start(station, tmp_path, "exit 1")
    assert done.exit_code == 1
    assert [room.place for room in done.room] == [
        f"h1:{station.scratch}/launch",
        f"h1:/dev/shm/{Path(station.scratch).name}/launch",
    ]
    assert not fault_of(done.room, 1, "")
    short = [room._replace(bytes=1 << 20) for room in done.room]
    assert "bus error" in fault_of(short, -signal.SIGBUS, "")


@pytest.mark.parametrize("host", [0, 1])
def test_a_node_that_goes_is_named(tmp_path: Path, host: int) -> None:
    folder = tmp_path / "cluster"
    folder.mkdir()
    with (
        namespace_hosts(folder, 2) as cluster,
        LocalStation() as local,
        HostStation(cluster.hosts(), local) as station,
    ):
        ending = threading.Timer(1.0, os.kill, (cluster.pids[host], signal.SIGKILL))
        ending.start()
        with pytest.raises(MachineError, match=f"h{host + 1}: .*no answer") as caught:
            start(station, tmp_path, f"{station.agent} h2 'sleep 60'")
        assert "--resume" in caught.value.fix
        ending.join()


def test_a_node_that_was_rebooted_is_named(tmp_path: Path) -> None:
    """A new boot_id, and all that was there is gone."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    boot = (
        f"echo another >{folder}/boot; mount --bind {folder}/boot /proc/sys/kernel/random/boot_id"
    )
    with namespace_hosts(folder, 1) as cluster, LocalStation() as local:
        before = cluster.left()
        with HostStation(cluster.hosts(), local) as station:
            with pytest.raises(LaunchError, match="h1 was rebooted in mid-launch"):
                start(station, tmp_path, f"{boot}; read -r k <../keeper.0; kill -9 $k; sleep 60")
            assert start(station, tmp_path, "true").exit_code == 0
        assert settled(cluster, before)


def test_a_connection_that_is_dropped_once_is_made_again(tmp_path: Path) -> None:
    """The shells, in turn: the session, the look at what a lost one left, a drop, the session."""
    turn = tmp_path / "turn"
    script = (
        f"n=$(cat {turn} 2>/dev/null || echo 0); n=$((n + 1)); echo $n >{turn};"
        " [ $n != 3 ] || exit 255; exec /bin/sh"
    )
    host = Host("a", ("/bin/sh", "-c", script))
    with LocalStation() as local, HostStation([host], local) as station:
        with pytest.raises(LaunchError, match="the connection to a was lost in mid-launch"):
            start(station, tmp_path, "read -r k <../keeper.0; kill -9 $k; sleep 60")
        assert turn.read_text() == "4\n"
        assert start(station, tmp_path, "true").exit_code == 0


def test_a_step_that_is_refused_for_now_is_asked_for_again(tmp_path: Path) -> None:
    """The sentences are those of srun 22.05; the second is of a job that has ended."""
    turn = tmp_path / "turn"
    says = "srun: error: Unable to create step for job 11:"
    host = Host("a", ("/bin/sh", "-c", f"""
        n=$(cat {turn} 2>/dev/null || echo 0); n=$((n + 1)); echo $n >{turn}
        case $n in
        1) echo '{says} Memory required by task is not available' >&2; exit 1;;
        3) echo '{says} Job/step already completing or completed' >&2; exit 1;;
        esac
        exec /bin/sh"""))  # fmt: skip
    with LocalStation() as local, HostStation([host], local) as station:
        assert turn.read_text() == "2\n"
        assert start(station, tmp_path, "true").exit_code == 0
    with LocalStation() as local, pytest.raises(MachineError, match="already completing"):
        HostStation([host], local).__enter__()
    assert turn.read_text() == "3\n"


def test_hosts_that_share_their_files_share_the_directory(tmp_path: Path) -> None:
    hosts = [Host("a", ("/bin/sh",)), Host("b", ("/bin/sh",))]
    with LocalStation() as local, HostStation(hosts, local) as station:
        script = f"{station.agent} b 'touch left; echo said >&2; exit 5'; echo $?; ls left"
        done = start(station, tmp_path, script)
        assert done.exit_code == 0
        assert (tmp_path / "out").read_text() == "5\nleft\n"
        assert done.load is not None
        scratch = Path(station.scratch)
    assert not scratch.exists()


@pytest.mark.parametrize("shell", ["bash", "busybox"])
def test_other_shells_do_as_well(tmp_path: Path, shell: str) -> None:
    """As /bin/sh; with busybox, there is nothing else either."""
    program = shutil.which(shell)
    if program is None or os.geteuid():
        pytest.skip(f"needs {shell}, and root to mount it over /bin/sh")
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("grep", "mkdir", "rm", "cat", "stat", "head", "wc", "mkfifo", "sleep", "ls"):
        (tools / name).symlink_to(program if shell == "busybox" else shutil.which(name))
    for name in ("chmod", "env"):
        (tools / name).symlink_to(program if shell == "busybox" else shutil.which(name))
    script = f"mount --bind {program} /bin/sh && PATH={tools} exec /bin/sh"
    host, mark = Host("h1", ("unshare", "--mount", "/bin/sh", "-c", script)), f"76{os.getpid()}"
    with LocalStation() as local, HostStation([host], local) as station:
        asked = f"{station.agent} h1 'echo said >&2; exit 5'; echo $?; sleep {mark} & exit 3"
        done = start(station, tmp_path, asked)
        assert done.exit_code == 3
        assert (tmp_path / "out").read_text() == "5\n"
        assert (tmp_path / "err").read_text() == "said\n"
        assert done.load[1]["load.busy_s"] > 0
        assert len(done.room) == 4  # of the launcher, and of what the agent asked for
        assert start(station, tmp_path, f"sleep {mark}", timeout_s=0.3).timed_out
        with pytest.raises(LaunchError, match="not found"):
            start(station, tmp_path, Command(("/no/such",)))
        scratch = Path(station.scratch)
    assert not scratch.exists()
    assert not processes_with(f"sleep\0{mark}")


def test_the_busiest_node_is_the_one_that_counts() -> None:
    quiet = {"load.busy_s": 0.0, "load.cpu_pressure_us": 0, "load.memory_pressure_us": 0}
    busy = {"load.busy_s": 5.0, "load.cpu_pressure_us": 2e6, "load.memory_pressure_us": 0}
    own = {"load.busy_s": 3.0, "load.cpu_pressure_us": 2e6, "load.memory_pressure_us": 0}
    reports = [
        (0, Report(cpu_s=3.0, before=quiet, after=own)),
        (1, Report(cpu_s=1.0, before=quiet, after=busy, beside=("cc1 200%",))),
    ]
    load, beside, used = busiest(reports, ["one", "other"], ["h1", "h2"])
    assert (load[0]["load.node"], load[1]["load.node"]) == ("h2", "h2")
    assert (beside, used) == (("cc1 200%",), 1.0)
    # Where ranks are bound, others on cores that are no rank's are in nobody's way.
    elsewhere = {**busy, "load.bound_busy_s": 1.0}
    on_its_cores = {**own, "load.bound_busy_s": 3.5}
    quiet |= {"load.bound_busy_s": 0.0}
    bound = [
        (0, Report(cpu_s=3.0, before=quiet, after=on_its_cores)),
        (1, Report(cpu_s=1.0, before=quiet, after=elsewhere)),
    ]
    assert busiest(bound, ["one", "other"], ["h1", "h2"])[0][1]["load.node"] == "h1"
    # Two nodes of one machine: what a launch used on one is nobody else's on the other.
    (_, after), _, used = busiest(reports, ["same", "same"], ["h1", "h2"])
    assert (after["load.node"], used) == ("h2", 4.0)


SITTING = """
import sys
from pathlib import Path
sys.path[:0] = {path!r}
from namespace_hosts import inside
from paribus.core.command import Command, Mpi, Placement, Slot
from paribus.hosts.keeper import Keeper
from paribus.hosts.reached import Host
from paribus.launch.launchers import launch
from paribus.launch.local import LocalStation
from paribus.hosts.remote import HostStation

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


@pytest.mark.slow
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
    for _ in range(20 if request.config.getoption("--long") else 2):
        sitting = subprocess.Popen(
            [sys.executable, "-c", text], stdout=subprocess.PIPE, cwd=tmp_path, text=True
        )
        assert sitting.stdout.readline() == "begun\n"
        mine = descendants(sitting.pid)
        time.sleep(draw.uniform(0, 1.5))
        mine += descendants(sitting.pid)
        sitting.kill()
        sitting.wait()
        sitting.stdout.close()
        assert settled(cluster, before, within_s=10), f"seed {seed}"
        assert ended(mine)
    assert not processes_with(f"sleep\0{mark}")


def test_what_is_still_said_while_a_session_ends_goes_into_no_other_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    wrong: list[BaseException | None] = []
    monkeypatch.setattr(threading, "excepthook", lambda reported: wrong.append(reported.exc_value))
    for number in range(30):
        keeper, over = Keeper(Host("here", ("/bin/sh",)), 0, lambda *_: None), threading.Event()
        keeper.open(f"paribus-{number}", "0" * 32)

        def speak(keeper: Keeper = keeper, over: threading.Event = over) -> None:
            while not over.is_set():
                keeper.reply("1-1", 0, b"x")

        threads = [threading.Thread(target=speak) for _ in range(3)]
        for one in threads:
            one.start()
        keeper.hang_up()
        over.set()
        keeper.close()
        for one in threads:
            one.join()
    assert wrong == []
