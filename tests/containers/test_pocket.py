"""Pocket clusters for real: what a host has to itself, how it is entered, what is refused."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from containers.fabrics import namespaces
from containers.gates import Gate, gated
from containers.pockets import Held
from mpis import any_mpi
from paribus.__main__ import main
from paribus.benchmarks import benchmark_of
from paribus.cluster.answers import ask
from paribus.cluster.mpi import version_of
from paribus.core import Link, MachineError, UserError
from paribus.hosts.host_machine import HostMachine
from paribus.hosts.pocket import Pocket, shares
from paribus.launch import pilot
from paribus.launch.arms import compose
from paribus.launch.local import this_node
from paribus.launch.machine import HERE
from paribus.launch.ready import make_ready
from paribus.launch.stations import stations
from paribus.launch.toolchain import find_mpi
from paribus.studyfile.load import load_study
from processes import children, ended, executable, gone, needs, ran
from studies import write_arms

root = pytest.mark.skipif(os.geteuid() != 0, reason="sshd is started by root")


@pytest.mark.parametrize("identity", ["root", "user"])
def test_hosts_are_machines_of_their_own(identity: str) -> None:
    with Held(3, identity=identity) as held:
        assert (held.uid == 0) is (identity == "root")
        assert held.about["names"] == ["h1", "h2", "h3"]
        seen = [namespaces(Path(f"/proc/{pid}")) for pid in held.about["pids"]]
        own = namespaces(Path("/proc/self"))
        kinds = ("net", "uts", "ipc", "mnt", "pid")
        for several in (*seen, own):
            assert {link.partition(":")[0] for link in several} >= set(kinds)
        apart = [{s for s in several if s.startswith(kinds)} for several in (*seen, own)]
        assert not any(a & b for i, a in enumerate(apart) for b in apart[:i])
        cgroups = {Path(f"/proc/{pid}/cgroup").read_text() for pid in held.about["pids"]}
        assert cgroups == {Path("/proc/self/cgroup").read_text()}
        for host, name in enumerate(held.about["names"]):
            said = held.inside(host, "hostname; echo $$; ls /tmp /dev/shm; cat /proc/1/cmdline")
            assert said.splitlines()[0] == name
            assert f"{held.directory}/host.sh" in said
            held.inside(host, "echo x >/tmp/mine; echo x >/dev/shm/mine; echo x >/run/mine")
            mounts = held.inside(host, "cat /proc/mounts")
            for place in ("/tmp", "/run", "/dev/shm"):
                assert f" {place} tmpfs" in mounts
        for place in ("/tmp/mine", "/dev/shm/mine", "/run/mine"):
            assert not Path(place).exists()
        interfaces = held.inside(0, "ls /sys/class/net").split()
        assert {*interfaces} >= {"lo", "eth0"}
        assert not {"br0", "h1"} & {*interfaces}


@pytest.mark.parametrize("identity", ["root", "user"])
def test_hosts_reach_each_other_by_name(identity: str) -> None:
    server = (
        "import socket; s = socket.create_server(('', 5000)); print('', end='', flush=True)\n"
        "import os\nif os.fork(): raise SystemExit\n"
        "os.setsid(); [os.close(n) for n in (0, 1, 2)]; c, a = s.accept(); c.send(a[0].encode())"
    )
    client = "import socket; s = socket.create_connection(('h2', 5000)); print(s.recv(99).decode())"
    with Held(2, identity=identity) as held:
        held.python(1, server)
        begin = time.monotonic()
        assert held.python(0, client).strip() == "10.77.0.1"
        assert time.monotonic() - begin < 0.9  # a first packet that is lost costs a second


@pytest.mark.parametrize("identity", ["root", "user"])
def test_each_host_has_its_share_of_the_cores(identity: str) -> None:
    cores = len(this_node().cores)
    with Held(cores + 1, identity=identity) as held:
        assert held.about["crowded"] is True
        for host, share in enumerate(held.about["cores"]):
            threads = sorted(thread for core in share for thread in core)
            first = Path(f"/proc/{held.about['pids'][host]}/status").read_text()
            entered = held.inside(host, "cat /proc/self/status")
            for status in (first, entered):
                assert re.findall(r"Cpus_allowed_list:\t(.*)", status) == [
                    ",".join(map(str, threads))
                ]


def test_cores_are_divided_evenly_or_shared_in_turn() -> None:
    four = ((0, 4), (1, 5), (2, 6), (3, 7))
    assert shares(four, 1) == (four,)
    assert shares(four, 3) == (((0, 4), (1, 5)), ((2, 6),), ((3, 7),))
    assert shares(four, 4) == tuple((core,) for core in four)
    assert shares(four, 5) == tuple((four[i % 4],) for i in range(5))


@pytest.mark.parametrize("more", [0, 1])
def test_ranks_yield_where_hosts_share_a_core(tmp_path: Path, more: int) -> None:
    """Each host has a rank and a core; else a rank that polls keeps the core from the other's."""
    mpi = any_mpi()
    if mpi.family != "openmpi":
        pytest.skip(f"{mpi} has no such setting")
    hosts = len(this_node().cores) + more
    arm = f'hosts = "pocket:{hosts}"\nmpi = "{Path(mpi.mpirun).parent.parent}"'
    benchmark = f'name = "allreduce"\nranks = {hosts}'
    one = load_study(write_arms(tmp_path, arm, arm, benchmark=benchmark))
    with stations(one) as opened:
        ready = make_ready(one, lambda _: None, opened, build=False)["a"]
    selection = one.benchmarks[0]
    command = compose(ready, selection, benchmark_of(selection), seed=1, scratch="/tmp/a/b")
    assert f"--mca mpi_yield_when_idle {more}" in " ".join(command.argv)


def test_settings_of_the_machine_are_carried_over() -> None:
    names = ["tcp_congestion_control", "tcp_rmem", "tcp_wmem", "tcp_timestamps"]
    paths = [f"/proc/sys/net/ipv4/{name}" for name in names]
    with Held(1) as held:
        assert held.inside(0, f"cat {' '.join(paths)}") == "".join(
            Path(path).read_text() for path in paths
        )


def test_orphans_of_a_launch_do_not_stay() -> None:
    with Held(1) as held:
        held.inside(0, "(sleep 0.1 & sleep 0.1 &) >/dev/null 2>&1")
        time.sleep(1)
        assert "Z" not in held.inside(0, "cat /proc/[0-9]*/stat | sed 's/.*) //' | cut -c1").split()


@pytest.mark.slow
@pytest.mark.parametrize("link", [None, Link(delay_s=1e-3)], ids=["bridge", "link"])
def test_a_host_that_ends_is_not_there_and_the_others_are(
    link: Link | None, tmp_path: Path
) -> None:
    with Pocket(3, link=link, directory=f"{tmp_path}/p") as pocket:
        os.kill(pocket.pids[1], signal.SIGKILL)
        assert ended([pocket.pids[1]])
        codes = [
            subprocess.run(
                host.shell, input="ip link set eth0 up", text=True, check=False
            ).returncode
            for host in pocket.hosts
        ]
        assert codes == [0, 255, 0]
        # Nobody waits for it in a loop.
        fabric = children(children(pocket.controller)[0])[0]
        before = sum(map(processor_s, children(fabric)))
        time.sleep(2)
        assert sum(map(processor_s, children(fabric))) - before < 0.1
        # Its number may be that of another by now, such as this test.
        first, own = str(pocket.pids[1]), str(os.getpid())
        shell = [own if word == first else word for word in pocket.hosts[1].shell]
        assert entered(shell) == 255


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory below /tmp that is the one for temporary files; what is there is hidden."""
    if tmp_path.parts[1] != "tmp":
        pytest.skip("pytest's directory is not in /tmp")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def test_of_tmp_a_host_has_only_what_paribus_and_the_study_need(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An environment made in /tmp may hold the MPI of the study, and its program lie there."""
    for name in ("environment/bin", "path/bin", "study one", "else"):
        (temporary / name).mkdir(parents=True)
        (temporary / name / "file").touch()
    (temporary / "program").touch()
    monkeypatch.setattr(sys, "prefix", str(temporary / "environment"))
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{temporary}/path/bin")
    needed = [f"{temporary}/study one/none/there", f"{temporary}/program", str(temporary), "word"]
    with Pocket(2, directory=f"{temporary}/p", needed=needed) as pocket:
        first, second = (
            ran(host.shell, input=script, code=0).stdout.splitlines()
            for host, script in zip(
                pocket.hosts,
                ("cd $TMPDIR; touch own; find . | sort", "cd $TMPDIR; ls; echo >path/bin/shared"),
                strict=True,
            )
        )
    kept = ["environment", "path", "program", "study one"]
    assert second == kept
    assert {one.split("/")[1] for one in first if "/" in one} == {*kept, "own"}
    assert {"./environment/bin/file", "./study one/file"} <= {*first}
    assert (temporary / "path/bin/shared").exists()
    assert not (temporary / "own").exists()


def test_a_study_below_tmp_finds_its_program_and_files_on_pocket_hosts(
    temporary: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("study", "data", "out"):
        (temporary / name).mkdir()
    executable(temporary / "study/program", 'sleep 0.1\ncat "$DATA/file" && echo DONE')
    (temporary / "data/file").write_text("1\n")
    arm = f'hosts = "pocket:1"\nenv = {{ DATA = "{temporary}/data" }}\n'
    benchmark = 'name = "command"\nargv = ["./program"]\nsuccess = "DONE"'
    write_arms(temporary / "study", arm, arm, benchmark=benchmark)
    monkeypatch.chdir("/")
    monkeypatch.setattr(pilot, "ROUNDS", 1)
    assert main(["run", f"{temporary}/study/study.toml", "--dry-run"]) == 0, capsys.readouterr()


@pytest.mark.installed
def test_a_host_finds_the_mpi_that_this_machine_falls_back_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That of a wheel, beside the Python of Paribus."""
    bin_ = Path(any_mpi().mpicxx).parent
    others = [one for one in os.environ["PATH"].split(":") if Path(one) != bin_]
    monkeypatch.setenv("PATH", ":".join(others))
    monkeypatch.setattr(sys, "executable", f"{bin_}/python")
    here = find_mpi(None, HERE)
    with Pocket(1, directory=f"{tmp_path}/p") as pocket:
        (host,) = pocket.hosts
        assert find_mpi(None, HostMachine(host)) == here
        (answer,) = ask([host])
        assert version_of(answer) == (here.family, ".".join(map(str, here.version)))


def entered(shell: Sequence[str]) -> int:
    """Return the exit code of a shell that has nothing to do."""
    return subprocess.run(shell, stdin=subprocess.DEVNULL, check=False).returncode


def processor_s(pid: int) -> float:
    """Return the processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# --- ssh ------------------------------------------------------------------------------------------


@root
def test_each_host_accepts_the_key_of_this_cluster(tmp_path: Path) -> None:
    needs("ssh", "sshd")
    with gated(2, str(tmp_path / "pocket")) as gate:
        pocket = gate.pocket
        for (name, address), pid in zip(gate.addresses, pocket.pids, strict=True):
            done = over_ssh(gate, address, gate.identity, gate.known_hosts)
            assert done.stdout.split() == [
                name,
                str(pocket.nodes[pocket.names.index(name)].cores[0][0]),
            ]
            assert Path(f"/proc/{pid}/root/run/sshd.pid").exists()
        keys = {line.split()[2] for line in Path(gate.known_hosts).read_text().splitlines()}
        assert len(keys) == 2
        other = tmp_path / "other"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", other], check=True)
        address = gate.addresses[0][1]
        refused = over_ssh(gate, address, str(other), gate.known_hosts)
        assert refused.returncode == 255
        assert "Permission denied (publickey)" in refused.stderr


def over_ssh(
    gate: Gate, address: str, identity: str, known: str
) -> subprocess.CompletedProcess[str]:
    """Return what ssh from outside printed: the host's name and its cores."""
    options = ["StrictHostKeyChecking=yes", f"UserKnownHostsFile={known}", "BatchMode=yes"]
    options += ["IdentitiesOnly=yes", "IdentityAgent=none", "GlobalKnownHostsFile=/dev/null"]
    return ran(
        [*gate.prefix, "ssh", "-F", "/dev/null", "-i", identity, "-p", str(gate.port)]
        + [word for option in options for word in ("-o", option)]
        + [f"{gate.user}@{address}", "hostname; taskset -cp $$ | sed 's/.*: //'"],
        timeout=60,
    )


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, -1, 1001])
def test_no_hosts_or_more_than_a_bridge_takes_are_refused(count: int, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="1 to 1000"), Pocket(count, directory=f"{tmp_path}/p"):
        pass


@pytest.mark.parametrize(
    ("missing", "package"),
    [("taskset", "util-linux"), ("ip", "iproute2"), ("nsenter", "util-linux")],
)
def test_a_missing_tool_is_named_before_anything_starts(
    missing: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for place in ("/usr/bin", "/bin", "/usr/sbin", "/sbin"):
        for tool in Path(place).iterdir():
            if tool.name != missing and not (tools / tool.name).exists():
                (tools / tool.name).symlink_to(tool)
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setattr("paribus.hosts.pocket.SYSTEM", "")
    with pytest.raises(UserError) as raised, Pocket(2, directory=f"{tmp_path}/pocket"):
        pass
    assert missing in raised.value.cause
    assert package in raised.value.fix
    assert raised.value.place == "pocket:2"
    assert not (tmp_path / "pocket").exists()


def test_a_directory_that_is_there_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "precious").touch()
    with pytest.raises(MachineError, match="File exists"), Pocket(1, directory=str(tmp_path)):
        pass
    assert (tmp_path / "precious").exists()


def test_a_host_that_cannot_be_made_is_an_error_with_its_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executable(tmp_path / "taskset", "echo 'taskset: no such core' >&2\nexit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(MachineError) as raised, Pocket(2, directory=f"{tmp_path}/pocket"):
        pass
    assert "taskset: no such core" in raised.value.cause
    assert raised.value.place == "pocket:2"
    assert not (tmp_path / "pocket").exists()
    assert gone(f"{tmp_path}/pocket")
