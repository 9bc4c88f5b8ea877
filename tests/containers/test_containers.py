"""Containers for real: what they are asked for, what is inside, and MPI over their bridge."""

from __future__ import annotations

import os
import re
import shutil
import socket
from pathlib import Path

import pytest

from containers.fabrics import (
    ENGINES,
    Each,
    EngineName,
    Launch,
    Network,
    namespaces,
    nothing_left,
    over_tcp,
    reachable,
    traces,
)
from mpis import each_mpi
from paribus import containers
from paribus.benchmarks import BENCHMARKS
from paribus.containers import on_hosts
from paribus.containers.fabric import MOST_HOSTS, address, hosts_file
from paribus.core import Arm, Command, Container, Mpi, Request, Selection, Slot
from paribus.launch.arms import Ready, compose
from paribus.launch.local import LocalStation, capture
from paribus.launch.machine import HERE
from paribus.launch.toolchain import kernel_path
from stations import launched

# --- what is asked for ---------------------------------------------------------------------------


SLOTS = tuple(Slot(cores=(core,)) for core in range(3))


def test_every_container_has_a_name_and_its_ranks() -> None:
    where = containers.placement(Container("namespace"), SLOTS, per_host=1, scratch="/scratch")
    assert where.hosts == (("c1", 1), ("c2", 1), ("c3", 1))
    assert where.agent == "/scratch/agent.sh"
    assert where.network == "10.77.0.0/16"
    assert [slot.cores for slot in where.slots] == [slot.cores for slot in SLOTS]
    pairs = containers.placement(Container("namespace"), SLOTS, per_host=2, scratch="/scratch")
    assert pairs.hosts == (("c1", 2), ("c2", 1))


def test_a_container_around_a_rank_leaves_the_placement_to_this_machine() -> None:
    rank = Container("namespace", each="rank", network="host")
    where = containers.placement(rank, SLOTS, per_host=1, scratch="/scratch")
    assert (where.hosts, where.agent, where.network, where.slots) == ((), None, None, SLOTS)


def test_addresses_and_names_are_unique() -> None:
    addresses = [address(i) for i in range(1, MOST_HOSTS + 1)]
    assert len(set(addresses)) == MOST_HOSTS
    assert addresses[0] == "10.77.0.1"
    for text in addresses:
        socket.inet_aton(text)
        assert all(1 <= int(part) <= 250 for part in text.split(".")[3:])
    listed = ["10.77.255.254 fabric", "10.77.0.1 c1", "10.77.0.2 c2"]
    assert hosts_file(2).splitlines()[1:] == listed


@pytest.mark.parametrize(
    ("engine", "each", "network"),
    [
        ("namespace", "rank", "bridge"),
        ("namespace", "host", "host"),
        ("podman", "host", "host"),
        ("podman", "rank", "bridge"),
        ("namespace", "rank", "none"),
    ],
)
def test_what_cannot_be_is_refused_with_the_fix(
    engine: EngineName, each: Each, network: Network
) -> None:
    container = Container(engine, each=each, network=network)
    with pytest.raises(ValueError, match="use"):
        containers.placement(container, SLOTS, per_host=1, scratch="/s")
    with pytest.raises(ValueError, match="use"):
        containers.wrap_program(Command(("p",)), container, scratch="/s")
    with pytest.raises(ValueError, match="use"):
        containers.wrap_launcher(Command(("p",)), container, hosts=2, scratch="/s")
    assert "use" in (containers.check(container, capture) or "")


def test_a_wrapper_is_not_put_in_the_other_place() -> None:
    with pytest.raises(ValueError, match="around the launcher"):
        containers.wrap_program(Command(("p",)), Container("namespace"), scratch="/s")
    with pytest.raises(ValueError, match="around the program"):
        containers.wrap_launcher(
            Command(("p",)),
            Container("namespace", each="rank", network="host"),
            hosts=2,
            scratch="/s",
        )


@pytest.mark.parametrize("engine", ENGINES)
def test_a_wrapped_command_keeps_its_own_words_environment_and_files(engine: EngineName) -> None:
    command = Command(("mpirun", "a b", "$x"), env={"A": "1"}, files={"own": "text"})
    wrapped = [containers.wrap_launcher(command, Container(engine), hosts=2, scratch="/s")]
    if engine == "namespace":
        rank = Container(engine, each="rank", network="host")
        wrapped.append(containers.wrap_program(command, rank, scratch="/s"))
    for one in wrapped:
        assert one.argv[-3:] == command.argv
        assert one.env["A"] == "1"
        assert one.files["own"] == "text"


# --- inside --------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_every_container_has_a_name_address_and_files_of_its_own(
    engine: EngineName, identity: list[str], folder: Path
) -> None:
    launch = Launch(identity, folder, engine, "host")
    before = traces()
    look = (
        "hostname; hostname -I; tail -n1 /etc/hosts; pwd; ls /dev/shm \\$TMPDIR;"
        " touch /dev/shm/left.shm \\$TMPDIR/mine; ls -d /proc/[0-9]*"
    )
    text = f"{launch.in_container('c1', look)}; echo ---; {launch.in_container('c2', look)}; exit 7"
    done = launch.launch("/bin/sh", "-c", text)
    assert done.returncode == 7, done.stderr
    assert done.stderr == ""
    first, second = done.stdout.split("---\n")
    assert first.splitlines()[:2] == ["c1", "10.77.0.1 "]
    assert second.splitlines()[:2] == ["c2", "10.77.0.2 "]
    for part in (first, second):
        assert part.splitlines()[2:4] == ["10.77.0.2 c2", str(launch.scratch)]
        assert "mine" not in part
        assert ".shm" not in part
        assert f"/proc/{os.getpid()}" not in part.split()
    nothing_left(launch, before, set())


@pytest.mark.parametrize("engine", ENGINES)
def test_words_with_spaces_and_quotes_reach_the_launcher_whole(
    engine: EngineName, identity: list[str], folder: Path
) -> None:
    launch = Launch(identity, folder, engine, "host", ranks=1)
    done = launch.launch("/bin/sh", "-c", 'printf "%s|" "$@"; cat', "sh", "a b", "'", '"', "$x")
    assert done.stdout == "a b|'|\"|$x|", done.stderr
    assert done.returncode == 0


def test_a_scratch_directory_with_a_space(identity: list[str], folder: Path) -> None:
    spaced = folder / "a b"
    spaced.mkdir(exist_ok=True)
    launch = Launch(identity, spaced, "namespace", "host", ranks=1)
    done = launch.launch(str(launch.scratch / "agent.sh"), "c1", "hostname; echo $TMPDIR")
    assert done.stdout.splitlines()[0] == "c1", done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_a_first_packet_is_never_lost(
    engine: EngineName, identity: list[str], folder: Path
) -> None:
    """A link that does not forward yet costs the first connection a second (see namespace.sh)."""
    listen = (
        "import socket; s = socket.create_server(('', 5000));"
        " c, _ = s.accept(); c.sendall(b'x'); c.recv(1)"
    )
    connect = """
import socket, sys, time
while True:
    begin = time.monotonic()
    try:
        socket.create_connection(('c2', 5000)).recv(1)
        break
    except ConnectionRefusedError:
        time.sleep(0.001)
print(time.monotonic() - begin)
"""
    for _ in range(10 if engine == "namespace" else 2):
        launch = Launch(identity, folder, engine, "host")
        (launch.scratch / "listen.py").write_text(listen)
        (launch.scratch / "connect.py").write_text(connect)
        for name in ("listen.py", "connect.py"):
            (launch.scratch / name).chmod(0o755)
        agent, python = launch.place().agent, "/usr/bin/env python3"
        done = launch.launch(
            "/bin/sh",
            "-c",
            f"{agent} c2 {python} {launch.scratch}/listen.py &"
            f" exec {agent} c1 {python} {launch.scratch}/connect.py",
        )
        assert done.returncode == 0, done.stderr
        assert float(done.stdout) < 0.5


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change settings to be taken over")
@pytest.mark.parametrize("engine", ENGINES)
def test_containers_take_the_tcp_settings_of_the_machine(engine: EngineName, folder: Path) -> None:
    launch = Launch([], folder, engine, "host", ranks=1)
    settings = {
        "tcp_congestion_control": "reno",
        "tcp_rmem": "4096\t70000\t700000",
        "tcp_sack": "0",
    }
    change = "; ".join(f"printf '{v}' >/proc/sys/net/ipv4/{k}" for k, v in settings.items())
    show = "cd /proc/sys/net/ipv4; cat " + " ".join(settings)
    argv = launch.wrapped(str(launch.place().agent), "c1", show)
    done = launch.finish(["unshare", "--net", "/bin/sh", "-c", f'{change}; exec "$@"', "sh", *argv])
    assert done.stdout.splitlines() == list(settings.values()), done.stderr
    assert done.stderr == ""


def test_a_container_that_stands_for_a_host_has_its_network(
    identity: list[str], folder: Path
) -> None:
    """On hosts of an arm; mount(8) asks an ordinary user to be root in there."""
    launch = Launch(identity, folder, "namespace", "rank")
    one = Container("namespace", network="host")
    assert containers.check(one, launch.capture, on_hosts=True) is None
    look = Command(("/bin/sh", "-c", "id -u; readlink /proc/self/ns/net; echo /proc/[0-9]*"))
    wrapped = on_hosts.wrap(look, one, hosts=1, scratch=str(launch.scratch), prefix="")
    launch.env["PARIBUS_NODE"] = "0"
    done = launch.finish(launch.prepare(wrapped))
    assert done.returncode == 0, done.stderr
    user, network, processes = done.stdout.splitlines()
    assert (user, network) == ("0", str(Path("/proc/self/ns/net").readlink()))
    assert len(processes.split()) <= 2


# --- MPI -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_mpi_talks_over_the_bridge(
    engine: EngineName, identity: list[str], folder: Path, program: tuple[Mpi, str]
) -> None:
    mpi, binary = program
    launch = Launch(identity, folder, engine, "host")
    reachable(launch, mpi)
    before = traces()
    done = launch.launch(*over_tcp(launch, mpi, binary))
    assert done.returncode == 0, done.stderr
    ranks = re.findall(r"rank (\d) of 2 on (c\d) received (\d+)", done.stdout)
    assert sorted((rank, host) for rank, host, _ in ranks) == [("0", "c1"), ("1", "c2")]
    for _, _, received in ranks:
        assert int(received) > 16 << 20
    nothing_left(launch, before, set())


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_a_program_that_fails_fails_the_launch(
    engine: EngineName, identity: list[str], folder: Path, program: tuple[Mpi, str]
) -> None:
    mpi, binary = program
    launch = Launch(identity, folder, engine, "host")
    reachable(launch, mpi)
    before = traces()
    done = launch.launch(*over_tcp(launch, mpi, binary, "3"))
    assert done.returncode == 3, (done.stdout, done.stderr)
    nothing_left(launch, before, set())


def test_a_container_around_every_rank(
    identity: list[str], folder: Path, program: tuple[Mpi, str]
) -> None:
    mpi, binary = program
    launch = Launch(identity, folder, "namespace", "rank")
    reachable(launch, mpi)
    before = traces()
    wrapped = containers.wrap_program(
        Command((binary,)), launch.container, scratch=str(launch.scratch)
    )
    argv = launch.prepare(wrapped)[len(identity) :]
    show = ["/bin/sh", "-c", 'readlink /proc/self/ns/mnt; exec "$@"', "sh", binary]
    argv[argv.index(binary) :] = show
    own = ["--oversubscribe", "--bind-to", "none"] if mpi.family == "openmpi" else ["-ppn", "2"]
    done = launch.finish([*identity, mpi.mpirun, "-n", "2", *own, *argv])
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert sorted(re.findall(r"rank (\d of 2) on", done.stdout)) == ["0 of 2", "1 of 2"]
    mounts = set(re.findall(r"mnt:\[\d+\]", done.stdout))
    assert len(mounts - namespaces(Path("/proc/self"))) == 2
    nothing_left(launch, before, set())


IMAGE = """\
set -e
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /var/lib
[ ! -d /etc/cni ] || mount -t tmpfs tmpfs /etc/cni
cd "$1"
mkdir -p root/bin store
for program in sh cat hostname env; do
    cp "$(readlink -f "$(command -v $program)")" root/bin/$program
done
for library in $(ldd root/bin/* "$2" "$3" | grep -o '[[:space:]]/[^ ]*' | sort -u); do
    case $library in /lib/* | /lib64/* | /usr/lib/*) ;; *) continue ;; esac
    mkdir -p "root${library%/*}"
    cp "$(readlink -f "$library")" "root$library"
done
touch root/from-the-image
tar -C root -c . |
    podman --root "$1/store" --runroot /run/x --storage-driver overlay import -q - localhost/paribus
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="images are tested in root's store")
@pytest.mark.skipif(not shutil.which("podman"), reason="podman is not installed")
def test_containers_from_an_image(folder: Path, program: tuple[Mpi, str]) -> None:
    mpi, binary = program
    launch = Launch([], folder, "podman", "host")
    before = traces()
    where = folder / f"image-{mpi.family}"
    where.mkdir()
    made = capture(
        ["unshare", "--mount", "/bin/sh", "-c", IMAGE, "sh", str(where), mpi.mpirun, binary],
        timeout_s=120,
    )
    assert made.exit_code == 0, made.stderr
    launch.container = Container("podman", image="localhost/paribus")
    text = f"hostname; cat /from-the-image && exec {binary}"
    argv = launch.wrapped(*over_tcp(launch, mpi, "/bin/sh", "-c", text, binary))
    # The machine's own store stays as it is: another is mounted in its place.
    machine = (
        'set -e; mkdir -p "$0/lib/containers/storage"; mount --bind "$0/lib" /var/lib'
        '; mount --bind "$0/store" /var/lib/containers/storage; exec "$@"'
    )
    done = launch.finish(["unshare", "--mount", "/bin/sh", "-c", machine, str(where), *argv])
    assert done.returncode == 0, (done.stdout, done.stderr)
    ranks = sorted(re.findall(r"rank (\d of 2 on c\d)", done.stdout))
    assert ranks == ["0 of 2 on c1", "1 of 2 on c2"]
    nothing_left(launch, before, set())


@pytest.mark.slow
@pytest.mark.parametrize("mpi", each_mpi())
@pytest.mark.parametrize(("per_host", "hosts"), [(2, ["c1", "c1", "c2", "c2"]), (0, ["c1"] * 4)])
def test_ranks_share_a_container(mpi: Mpi, per_host: int, hosts: list[str], tmp_path: Path) -> None:
    """All of them by default, as containers on one machine are used; else as many as asked for."""
    container = Container("namespace")
    if forbidden := containers.check(container, capture):
        pytest.skip(forbidden)
    arm = Arm("a", container=container, ranks_per_host=per_host)
    benchmark = BENCHMARKS["allreduce"]
    small = {"bytes": [8], "samples": 3, "iterations": 1}
    parameters = {k: p.default for k, p in benchmark.parameters.items()} | small
    selection = Selection("allreduce", "allreduce", 4, parameters)
    kernels = {"allreduce": (str(kernel_path("allreduce", mpi, HERE)),)}
    ready = Ready(arm, mpi, (), kernels=kernels, share=2)
    with LocalStation() as station:
        scratch = f"{station.scratch}/launch"
        command = compose(ready, selection, benchmark, seed=1, scratch=scratch)
        done = launched(station, command, tmp_path, 100, scratch)
    assert done.exit_code == 0, (tmp_path / "err").read_text()
    parsed = benchmark.parse((tmp_path / "out").read_text(), Request(parameters, 4))
    assert parsed.facts["rank.hosts"] == hosts
