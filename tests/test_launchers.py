"""Launchers: argv as each MPI wants it, and real launches that prove what the argv promises."""

from __future__ import annotations

import os
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpis import each_mpi
from paribus.benchmarks import get
from paribus.core import (
    Arm,
    Command,
    Mpi,
    Parsed,
    Placement,
    Request,
    Selection,
    Slot,
    Transport,
    UserError,
)
from paribus.launch.arms import Ready, compose
from paribus.launch.launchers import bind, launch
from paribus.launch.launchers.mpich import on_network
from paribus.launch.local import LocalStation
from paribus.launch.machine import HERE as THIS_MACHINE
from paribus.launch.toolchain import kernel_path, read_version
from processes import executable, ran

PROGRAM = Command(("/bin/app", "-n", "8"), {"COLOUR": "green"}, {"input": "text"})
FOUR = Mpi("openmpi", (4, 1, 4), "/o/bin/mpicxx", "/o/bin/mpirun")
FIVE = replace(FOUR, version=(5, 0, 11))
MPICH = Mpi("mpich", (5, 0, 2), "/m/bin/mpicxx", "/m/bin/mpirun")
INTEL = Mpi("intelmpi", (2021, 18), "/i/bin/mpicxx", "/i/bin/mpiexec", {"I_MPI_ROOT": "/i"})
ALL = (FOUR, FIVE, MPICH, INTEL)
HOSTS = Placement((Slot("c1", (0,)), Slot("c2", (1,))), agent="/s/agent", network="10.77.0.0/16")
CORES = sorted(os.sched_getaffinity(0))


HERE = Placement()


def slots(*cores: int) -> tuple[Slot, ...]:
    """Return slots on this machine, each with one of `cores`."""
    return tuple(Slot(cores=(core,)) for core in cores)


def here(*cores: int) -> Placement:
    return Placement(slots(*cores))


def built(mpi: Mpi, placement: Placement = HERE, transport: Transport = "auto") -> Command:
    return launch(
        PROGRAM, ranks=2, mpi=mpi, placement=placement, transport=transport, scratch="/tmp/launch-7"
    )


def options(command: Command, flag: str) -> dict[str, str]:
    """Return the settings given as `flag KEY VALUE`."""
    argv = command.argv
    return {argv[i + 1]: argv[i + 2] for i, word in enumerate(argv) if word == flag}


# --- argv -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mpi", ALL, ids=str)
@pytest.mark.parametrize("transport", ["auto", "shm", "tcp"])
@pytest.mark.parametrize("placement", [Placement(), HOSTS], ids=["here", "hosts"])
def test_the_program_stays_last_and_its_environment_and_files_stay(
    mpi: Mpi, transport: Transport, placement: Placement
) -> None:
    command = built(mpi, placement, transport)
    assert command.argv[-3:] == PROGRAM.argv
    assert mpi.mpirun in command.argv
    assert command.env["COLOUR"] == "green"
    assert mpi.env.items() <= command.env.items()
    assert command.files == PROGRAM.files
    # Binding is Paribus' own, so every launcher is asked not to bind.
    assert "none" in command.argv or command.env["I_MPI_PIN"] == "0"


@pytest.mark.parametrize("mpi", ALL, ids=str)
@pytest.mark.parametrize("transport", ["auto", "shm", "tcp"])
@pytest.mark.parametrize("placement", [here(*(0, 1)), HOSTS], ids=["here", "hosts"])
def test_variables_of_an_arm_win(mpi: Mpi, transport: Transport, placement: Placement) -> None:
    """What Paribus sets beside them would make them idle, and they may be the factor."""
    usual = built(mpi, placement, transport)
    mca = {"OMPI_MCA_": options(usual, "--mca"), "PRTE_MCA_": options(usual, "--prtemca")}
    names = {f"{prefix}{key}" for prefix, keys in mca.items() for key in keys}
    names |= {key for key in usual.env if not key.startswith("OMPI_ALLOW_RUN_AS_ROOT")}
    program = replace(PROGRAM, env=dict.fromkeys(names, "mine"))
    found = launch(
        program, ranks=2, mpi=mpi, placement=placement, transport=transport, scratch="/tmp/launch-7"
    )
    assert {name: found.env.get(name) for name in names} == program.env
    assert not options(found, "--mca") | options(found, "--prtemca")


def test_open_mpi_4_and_5_take_their_daemons_settings_differently() -> None:
    four, five = built(FOUR, HOSTS), built(FIVE, HOSTS)
    assert options(four, "--mca")["plm_rsh_agent"] == "/s/agent"
    assert options(four, "--mca")["oob_tcp_if_include"] == "10.77.0.0/16"
    assert options(five, "--prtemca")["plm_ssh_agent"] == "/s/agent"
    assert options(five, "--prtemca")["prte_if_include"] == "10.77.0.0/16"
    for command in (four, five):
        assert command.argv[command.argv.index("-H") + 1] == "c1:1,c2:1"
        assert ("-x", "COLOUR") in zip(command.argv, command.argv[1:], strict=False)


def test_ranks_take_hosts_in_turn() -> None:
    turns = Placement(tuple(Slot(name) for name in ("a", "b", "a", "b")))
    filled = Placement(tuple(Slot(name) for name in ("a", "a", "b", "b")))
    for mpi in (FOUR, FIVE):
        for placement, order in ((turns, "node:OVERSUBSCRIBE"), (filled, "slot:OVERSUBSCRIBE")):
            argv = built(mpi, placement).argv
            assert argv[argv.index("--map-by") + 1] == order
            assert argv[argv.index("-H") + 1] == "a:2,b:2"
    assert not here(0, 1).in_turn
    for mpi in (MPICH, INTEL):
        for placement, each in ((turns, "1"), (filled, "2")):
            argv = built(mpi, placement).argv
            assert argv[argv.index("-hosts") + 1] == "a,b"
            assert argv[argv.index("-ppn") + 1] == each
        with pytest.raises(UserError, match="only where all take as many"):
            built(mpi, Placement((Slot("a"), Slot("b"), Slot("a"), Slot("a"))))


MS_MPI = Mpi("msmpi", (10, 1, 12498, 18), "", "mpiexec")


def test_ms_mpi_as_its_documentation_writes_it() -> None:
    """mpiexec /hosts <num> <host1> [num1] <host2> [num2], /env <name> <value>: cc947675."""
    hosts = Placement((Slot("n1"), Slot("n1"), Slot("n2")), network="10.77.0.0/16")
    assert built(MS_MPI, hosts, "tcp").argv == (
        *("mpiexec", "-hosts", "2", "n1", "2", "n2", "1"),
        *("-env", "MSMPI_DISABLE_ND", "1", "-env", "MSMPI_DISABLE_SHM", "1"),
        *("-env", "COLOUR", "green"),
        *("-env", "MPICH_NETMASK", "10.77.0.0/255.255.0.0", *PROGRAM.argv),
    )
    assert built(MS_MPI).argv[:3] == ("mpiexec", "-n", "2")
    with pytest.raises(UserError, match="a range of IPv4 addresses"):
        built(MS_MPI, replace(hosts, network="eth0"))
    with pytest.raises(UserError, match="one host after the other"):
        built(MS_MPI, Placement((Slot("a"), Slot("b"), Slot("a"))))


def test_ms_mpi_states_its_version_above_its_help() -> None:
    """As printed in issue 36 of microsoft/Microsoft-MPI."""
    text = (
        "Microsoft MPI Startup Program [Version 10.0.12498.5]\n\n"
        "Launches an application on multiple hosts.\n\nUsage:\n\n"
        "    mpiexec [options] executable [args] [ : [options] exe [args] : ... ]\n"
    )
    assert read_version(text) == ("msmpi", (10, 0, 12498, 5))


def test_open_mpi_takes_one_transport_and_nothing_else() -> None:
    assert options(built(FIVE, transport="shm"), "--mca")["btl"] == "sm,self"
    assert options(built(FOUR, transport="shm"), "--mca")["btl"] == "vader,self"
    for mpi in (FOUR, FIVE):
        here = options(built(mpi, transport="tcp"), "--mca")
        assert (here["pml"], here["btl"]) == ("ob1", "tcp,self")
        assert here["btl_tcp_if_include"] == "lo"
        apart = options(built(mpi, HOSTS, "tcp"), "--mca")
        assert apart["btl_tcp_if_include"] == "10.77.0.0/16"
        assert "btl" not in options(built(mpi), "--mca")


def test_open_mpi_keeps_its_segments_where_the_host_removes_them() -> None:
    assert options(built(FIVE), "--mca")["btl_sm_backing_directory"] == "/dev/shm/tmp/launch-7"
    assert options(built(FOUR), "--mca")["btl_vader_backing_directory"] == "/dev/shm/tmp/launch-7"
    assert any("mkdir" in word for word in built(FIVE, HOSTS).argv)


@pytest.mark.parametrize("crowded", [False, True])
def test_open_mpi_waits_the_same_way_wherever_ranks_are(crowded: bool) -> None:
    same_cores = Placement((Slot("n1", (0, 1)), Slot("n2", (0, 1))))
    for placement in (Placement(), here(0, 1), HOSTS, same_cores):
        settings = options(built(FIVE, replace(placement, crowded=crowded)), "--mca")
        assert settings["mpi_yield_when_idle"] == str(int(crowded))


@pytest.mark.parametrize(("ranks", "waits"), [(2, "0"), (4, "0"), (5, "1")])
def test_hardware_threads_are_places_for_ranks(ranks: int, waits: str) -> None:
    """Two cores with two hardware threads each: only the fifth rank must wait for another."""
    kernels = {"barrier": ("/k",)}
    ready = Ready(Arm("a"), FIVE, (), kernels, share=2, parts=((0, 2, 1, 3),))
    barrier = Selection("barrier", "barrier", ranks, {})
    command = compose(ready, barrier, get("barrier"), seed=1, scratch="/tmp/l")
    assert options(command, "--mca")["mpi_yield_when_idle"] == waits


def test_cores_are_those_of_the_node_of_each_rank() -> None:
    """Ranks 2 and 3 are on another node, whose cores have the same numbers."""
    several = [Slot(node, (core,)) for node in ("n1", "n2") for core in CORES[:2]]
    for rank, slot in enumerate(several):
        bound = bind(Command(("sh", "-c", "taskset -cp $$")), several)
        done = ran(bound.argv, env={**os.environ, "PARIBUS_RANK": str(rank)}, code=0)
        assert done.stdout.split()[-1] == str(slot.cores[0])


def test_hydra_gets_ranks_per_host_and_an_agent_without_ssh_options() -> None:
    for mpi in (MPICH, INTEL):
        here = built(mpi).argv
        assert here[here.index("-ppn") + 1] == "2"
        apart = built(mpi, HOSTS).argv
        assert apart[apart.index("-ppn") + 1] == "1"
        assert apart[apart.index("-hosts") + 1] == "c1,c2"
        assert apart[apart.index("-launcher") + 1] == "rsh"
        assert apart[apart.index("-launcher-exec") + 1] == "/s/agent"
        uneven = built(mpi, Placement((Slot("c1"), Slot("c2"), Slot("c2"), Slot("c2")))).argv
        assert "-ppn" not in uneven


def test_no_launcher_is_rank_0() -> None:
    def serial(placement: Placement) -> Command:
        return launch(
            bind(PROGRAM, placement.slots),
            ranks=4,
            mpi=None,
            placement=placement,
            transport="auto",
            scratch="/s",
        )

    assert serial(Placement()).argv == PROGRAM.argv
    bound = serial(here(CORES[0]))
    assert bound.argv[-3:] == PROGRAM.argv
    agent, host, remote = serial(Placement((Slot("c1"),), agent="/s/agent")).argv
    assert (agent, host) == ("/s/agent", "c1")
    assert shlex.split(remote) == ["env", "COLOUR=green", "PARIBUS_RANK=0", *PROGRAM.argv]


def test_an_ipv6_range_is_refused_where_only_names_are_understood() -> None:
    with pytest.raises(UserError, match="IPv4"):
        built(MPICH, replace(HOSTS, network="fd00::/64"))


# --- binding --------------------------------------------------------------------------------------


def executed(command: Command, **rank: str) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if not k.endswith(("RANK", "PROCID"))}
    env = {**clean, **command.env, **rank}
    return ran(command.argv, env=env)


ALLOWED = Command(("grep", "Cpus_allowed_list", "/proc/self/status"))


@settings(max_examples=30, deadline=None)
@given(
    cores=st.lists(st.sampled_from(CORES), min_size=1, max_size=6),
    rank=st.integers(0, 7),
    variable=st.sampled_from(
        ["PARIBUS_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"]
    ),
)
def test_rank_n_gets_the_nth_core(cores: list[int], rank: int, variable: str) -> None:
    done = executed(bind(ALLOWED, slots(*cores)), **{variable: str(rank)})
    if rank < len(cores):
        assert done.stdout.split() == ["Cpus_allowed_list:", str(cores[rank])]
    else:
        assert (done.returncode, done.stdout) == (2, "")
        assert f"rank {rank} has no core" in done.stderr


@pytest.mark.parametrize("rank", [{}, {"PMI_RANK": ""}, {"PMI_RANK": "-1"}, {"PMI_RANK": "x y"}])
def test_no_rank_no_start(rank: dict[str, str]) -> None:
    done = executed(bind(ALLOWED, slots(0)), **rank)
    assert (done.returncode, done.stdout) == (2, "")
    assert "rank variable" in done.stderr


def test_a_core_that_is_not_there_is_an_error_not_another_core() -> None:
    done = executed(bind(ALLOWED, slots(100_000)), PMI_RANK="0")
    assert done.returncode != 0
    assert done.stdout == ""


def test_without_taskset_nothing_runs_unbound(tmp_path: Path) -> None:
    done = executed(bind(ALLOWED, slots(0)), PMI_RANK="0", PATH=str(tmp_path))
    assert done.returncode == 2
    assert "install util-linux" in done.stderr


def test_arguments_reach_the_program_as_they_are() -> None:
    words = ("a b", "$HOME", "'", '"', "\\", "*", "", "--", "-n", "ü\n")
    done = executed(bind(Command(("printf", "%s|", *words)), slots(CORES[0])), PMI_RANK="0")
    assert done.stdout == "".join(f"{word}|" for word in words)


def test_no_cores_no_binding() -> None:
    assert bind(PROGRAM, ()) == PROGRAM


# --- networks -------------------------------------------------------------------------------------

SHOW = Command(("/bin/sh", "-c", 'echo "$A $B"'))


def attached() -> list[tuple[str, str]]:
    """Return interface and range of every attached IPv4 network, from ip(8)'s own file format."""
    rows = [line.split() for line in Path("/proc/net/route").read_text().splitlines()[1:]]
    found = []
    for iface, dest, gateway, *_, mask in (row[:8] for row in rows):
        if gateway == "00000000" and mask != "00000000":
            octets = [str(b) for b in int(dest, 16).to_bytes(4, "little")]
            found.append((iface, f"{'.'.join(octets)}/{int(mask, 16).bit_count()}"))
    return found


def test_a_range_becomes_the_interface_that_is_in_it() -> None:
    for iface, network in attached():
        done = executed(on_network(SHOW, network, ("A", "B")))
        assert done.stdout.split() == [iface, iface], network
    for loopback in ("127.0.0.0/8", "127.0.0.1", "lo"):
        assert executed(on_network(SHOW, loopback, ("A", "B"))).stdout.split() == ["lo", "lo"]


def test_a_range_that_no_interface_is_in_is_refused() -> None:
    done = executed(on_network(SHOW, "203.0.113.0/24", ("A", "B")))
    assert (done.returncode, done.stdout) == (2, "")
    assert "no interface in 203.0.113.0/24" in done.stderr


# --- for real -------------------------------------------------------------------------------------


def loopback_bytes() -> int:
    lines = Path("/proc/net/dev").read_text().splitlines()
    return int(
        next(line for line in lines if line.strip().startswith("lo:")).split(":")[1].split()[0]
    )


def launched(
    kernel: str,
    parameters: dict[str, Any],
    mpi: Mpi,
    placement: Placement,
    transport: Transport,
    tmp_path: Path,
) -> tuple[Parsed, int]:
    """Return what a real launch on two ranks gave, and the bytes that crossed the loopback."""
    benchmark = get(kernel)
    defaults = {k: p.default for k, p in benchmark.parameters.items()}
    request = Request({**defaults, **parameters}, 2)
    program = benchmark.command(request)
    command = Command(
        (str(kernel_path(kernel, mpi, THIS_MACHINE)), *program.argv), {"COLOUR": "green"}
    )
    with LocalStation() as host:
        scratch = f"{host.scratch}/launch"
        command = launch(
            bind(command, placement.slots),
            ranks=2,
            mpi=mpi,
            placement=placement,
            transport=transport,
            scratch=scratch,
        )
        out, err = tmp_path / "out", tmp_path / "err"
        before = loopback_bytes()
        done = host.run(command, stdout=str(out), stderr=str(err), timeout_s=60, scratch=scratch)
    crossed = loopback_bytes() - before
    assert done.exit_code == 0, err.read_text()
    return benchmark.parse(out.read_text(), request), crossed


# Few and large messages: where others use the cores too, every message may wait for its turn.
SIZE, SAMPLES, ITERATIONS = 1 << 20, 20, 5
HEAVY = {"bytes": [SIZE], "samples": SAMPLES, "iterations": ITERATIONS}
PAYLOAD = 2 * SIZE * SAMPLES * ITERATIONS

needs_two_cores = pytest.mark.skipif(len(CORES) < 2, reason="needs 2 cores")


@pytest.mark.slow
@needs_two_cores
@pytest.mark.parametrize("mpi", each_mpi())
@pytest.mark.parametrize("transport", ["auto", "shm", "tcp"])
def test_ranks_cores_and_transport_are_as_asked(
    mpi: Mpi, transport: Transport, tmp_path: Path
) -> None:
    # In the order that no default would give.
    cores = (CORES[1], CORES[0])
    placement = here(*cores)
    parsed, crossed = launched("latency", HEAVY, mpi, placement, transport, tmp_path)
    assert parsed.facts["rank.affinity"] == [str(core) for core in cores]
    if transport == "tcp":
        assert crossed >= PAYLOAD
    if transport == "shm":
        # Others may use the loopback meanwhile; a transport that does always does.
        for again in range(5):
            if crossed < PAYLOAD / 4:
                break
            folder = tmp_path / str(again)
            folder.mkdir()
            _, crossed = launched("latency", HEAVY, mpi, placement, transport, folder)
        assert crossed < PAYLOAD / 4


@needs_two_cores
@pytest.mark.parametrize("mpi", each_mpi())
def test_collectives_take_tcp_too(mpi: Mpi, tmp_path: Path) -> None:
    placement = here(*CORES[:2])
    _, crossed = launched("allreduce", HEAVY, mpi, placement, "tcp", tmp_path)
    # Of two ranks, each needs the other's half at least.
    assert crossed >= PAYLOAD / 2


@pytest.mark.parametrize("mpi", each_mpi())
def test_two_ranks_on_one_core(mpi: Mpi, tmp_path: Path) -> None:
    placement = replace(here(CORES[0], CORES[0]), crowded=True)
    small = {"bytes": [8], "samples": 3, "iterations": 1}
    parsed, _ = launched("latency", small, mpi, placement, "shm", tmp_path)
    assert parsed.facts["rank.affinity"] == [str(CORES[0])] * 2


AGENT = """\
#!/bin/sh
# What ssh is between machines, on one: HOST COMMAND... Each host has its own name, for Open MPI
# waits for ever when two hosts have the same.
case $1 in
a | b) ;;
*) echo "agent: expected a host first, got $*" >&2; exit 255 ;;
esac
echo "$1" >>"${0%/*}/asked"
name=$1
shift
# shellcheck disable=SC2016 # for the inner shell
exec @ENTER@ /bin/sh -c 'hostname "$1" && exec env -i PATH="$PATH" TMPDIR="$TMPDIR" HOME=/ \
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 \
    PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1 /bin/sh -c "$2"' sh "$name" "$*"
"""


@pytest.fixture
def apart(tmp_path: Path) -> Placement:
    """A placement on two hosts, a and b, that an agent finds to be this machine."""
    enter = ["unshare", "--uts"] if os.geteuid() == 0 else ["unshare", "-r", "--uts"]
    if subprocess.run([*enter, "hostname", "a"], capture_output=True, check=False).returncode:
        pytest.skip(f"`{' '.join(enter)}` is forbidden here, so there is no second host name")
    agent = executable(tmp_path / "agent", AGENT.replace("@ENTER@", " ".join(enter)))
    network = next((network for _, network in attached()), None)
    two = tuple(Slot(name, (core,)) for name, core in zip("ab", CORES, strict=False))
    return Placement(two, str(agent), network)


@needs_two_cores
@pytest.mark.parametrize("mpi", each_mpi())
def test_ranks_on_other_hosts_have_their_environment_and_cores(
    mpi: Mpi, apart: Placement, tmp_path: Path
) -> None:
    look = f'echo "$COLOUR" $({shlex.join(ALLOWED.argv)})'
    reported = Command(("/bin/sh", "-c", look), {"COLOUR": "green blue"})
    with LocalStation() as host:
        scratch = f"{host.scratch}/launch"
        command = launch(
            bind(reported, apart.slots),
            ranks=2,
            mpi=mpi,
            placement=apart,
            transport="auto",
            scratch=scratch,
        )
        out, err = tmp_path / "out", tmp_path / "err"
        host.run(command, stdout=str(out), stderr=str(err), timeout_s=60, scratch=scratch)
    cores = sorted(f"green blue Cpus_allowed_list: {slot.cores[0]}" for slot in apart.slots)
    assert sorted(out.read_text().splitlines()) == cores, err.read_text()
    assert sorted((tmp_path / "asked").read_text().split()) == ["a", "b"]
