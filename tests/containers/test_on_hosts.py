"""Containers on the hosts of an arm, for real on pocket hosts: one for each rank, or each host."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from mpis import any_mpi
from paribus import containers
from paribus.benchmarks import benchmark_of
from paribus.core import (
    Benchmark,
    Completed,
    Container,
    Facts,
    Parsed,
    Program,
    Request,
    Selection,
    UserError,
)
from paribus.hosts.host_machine import HostMachine
from paribus.hosts.reached import Host
from paribus.hosts.remote import HostStation
from paribus.launch.arms import Ready, compose
from paribus.launch.local import capture
from paribus.launch.ready import check_same_image, make_ready
from paribus.launch.station import Station
from paribus.launch.stations import stations
from paribus.studyfile.load import load_study
from processes import ran
from studies import write_arms

ARMS = {
    "bare": "",
    "own-ranks": 'engine = "namespace", each = "rank"',
    "own-network": 'engine = "namespace", network = "host"',
    "bridged": 'engine = "namespace"',
    "podman-ranks": 'engine = "podman", each = "rank"',
    "podman-host": 'engine = "podman", network = "host"',
    "podman-bridged": 'engine = "podman"',
}
PODMAN = os.geteuid() == 0 and shutil.which("podman")
STUDY = 'question = "?"\nfactor = "container"\n{}\n[[benchmarks]]\nname = "latency"\nranks = 2\n'


SERVER = """\
import socket, sys
server = socket.create_server(("", int(sys.argv[1])))
while True:
    client, address = server.accept()
    client.sendall(f"{socket.gethostname()} {address[0]}".encode())
    client.close()
"""
CLIENT = """\
import socket, sys
print(socket.create_connection((sys.argv[1], int(sys.argv[2]))).recv(100).decode())
"""


class Opened(NamedTuple):
    """A station of two pocket hosts, and the arms on them."""

    station: HostStation
    arms: Mapping[str, Ready]
    selection: Selection


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    """Two pocket hosts on which every arm is ready: its engine starts containers on both."""
    any_mpi()
    path = tmp_path_factory.mktemp("study") / "study.toml"
    tables = "".join(
        f'[arms.{name}]\nhosts = "pocket:2"\ntransport = "tcp"\n'
        + (f"container = {{ {text} }}\n" if text else "")
        for name, text in ARMS.items()
        if PODMAN or "podman" not in name
    )
    path.write_text(STUDY.format(tables) + 'bytes = [8]\nsamples = 5\n[plan]\nbind = "none"\n')
    study = load_study(path)
    if reason := containers.check(Container("namespace"), capture):
        pytest.skip(reason)
    with stations(study) as found:
        ready = make_ready(study, lambda _: None, found)
        station: Station = found["bare"]
        assert isinstance(station, HostStation)
        yield Opened(station, ready, study.benchmarks[0])


def starting(*argv: str, server: tuple[str, ...] = ()) -> Benchmark:
    """Return a benchmark that starts one process, of which nothing is read."""
    program = Program(argv, mpi=False, server=server)
    return Benchmark("own", "", "", (), lambda _: program, lambda _text, _request: Parsed(()))


def launched(
    opened: Opened, arm: str, benchmark: Benchmark, tmp_path: Path, *, timeout_s: float = 60
) -> tuple[Completed, str, str]:
    """Return how a launch of `benchmark` in an arm ended, and what it printed."""
    out, err = tmp_path / "out", tmp_path / "err"
    scratch = f"{opened.station.scratch}/{arm}"
    selection = replace(opened.selection, label=benchmark.name)
    command = compose(opened.arms[arm], selection, benchmark, seed=1, scratch=scratch)
    done = opened.station.run(
        command, stdout=str(out), stderr=str(err), timeout_s=timeout_s, scratch=scratch
    )
    return done, out.read_text(), err.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("arm", ARMS)
def test_ranks_on_two_hosts_talk_over_their_network(
    opened: Opened, tmp_path: Path, arm: str
) -> None:
    if arm not in opened.arms:
        pytest.skip("podman is not installed, or these tests are not root's")
    benchmark = benchmark_of(opened.selection)
    done, out, err = launched(opened, arm, benchmark, tmp_path)
    assert done.exit_code == 0, err
    facts: Facts = benchmark.parse(out, Request(opened.selection.parameters, 2)).facts
    assert facts["mpi.transport_taken"] == "network"
    assert facts["rank.hosts"] == ["h1", "h2"]


def test_ranks_in_turn_see_the_network_though_the_last_one_is_on_the_first_host(
    tmp_path: Path,
) -> None:
    """Ranks 0 and 2 share h1: the report said "shared memory" of all messages."""
    any_mpi()
    if reason := containers.check(Container("namespace"), capture):
        pytest.skip(reason)
    arm = 'hosts = "pocket:2"\norder = "host"'
    asked = 'name = "allreduce"\nranks = 3\nbytes = [8]\nsamples = 5'
    study = load_study(write_arms(tmp_path, arm, arm, benchmark=asked, plan='bind = "none"'))
    benchmark = benchmark_of(study.benchmarks[0])
    with stations(study) as found:
        ready = make_ready(study, lambda _: None, found)
        station = found["a"]
        assert isinstance(station, HostStation)
        opened = Opened(station, {"a": ready["a"]}, study.benchmarks[0])
        done, out, err = launched(opened, "a", benchmark, tmp_path)
    assert done.exit_code == 0, err
    facts = benchmark.parse(out, Request(study.benchmarks[0].parameters, 3)).facts
    assert facts["rank.hosts"] == ["h1", "h2", "h1"]
    assert facts["mpi.transport_taken"] == "network"


KINDS = ("net", "mnt", "pid")
LOOK = "ip -4 -o addr show eth0; readlink " + " ".join(f"/proc/self/ns/{kind}" for kind in KINDS)


@pytest.mark.parametrize(
    ("arm", "address", "own"),
    [
        ("bare", "10.77.0", ()),
        ("own-network", "10.77.0", ("mnt", "pid")),
        ("bridged", "10.78", ("net", "mnt", "pid")),
        ("podman-host", "10.77.0", ("mnt",)),
        ("podman-bridged", "10.78", ("net", "mnt")),
    ],
)
def test_what_a_container_that_stands_for_a_host_has(
    opened: Opened, tmp_path: Path, arm: str, address: str, own: tuple[str, ...]
) -> None:
    if arm not in opened.arms:
        pytest.skip("podman is not installed, or these tests are not root's")
    look = starting("/bin/sh", "-c", f"grep -w {{server}} /etc/hosts; {LOOK}; exit 7")
    done, out, err = launched(opened, arm, look, tmp_path)
    assert done.exit_code == 7, err
    name, shown, *inside = out.splitlines()
    assert name.split() == [f"{address}.1" if address == "10.77.0" else f"{address}.1.1", "h1"]
    assert f" {name.split()[0]}/" in shown
    _, *outside = asked(opened, LOOK)
    pairs = zip(KINDS, inside, outside, strict=True)
    assert {kind for kind, one, other in pairs if one != other} == set(own)


def test_a_server_is_in_the_container_of_another_host(opened: Opened, tmp_path: Path) -> None:
    """The client finds it by the name of the host, which means the container within."""
    client = (sys.executable, "-c", CLIENT, "{server}", "{port}")
    served = starting(*client, server=(sys.executable, "-c", SERVER, "{port}"))
    done, out, err = launched(opened, "bridged", served, tmp_path)
    assert done.exit_code == 0, err
    assert out.split() == ["h2", "10.78.1.1"]


def test_an_image_that_differs_between_hosts_is_refused() -> None:
    machines = [HostMachine(Host(name, ("true",))) for name in ("h1", "h2", "h3")]
    facts = [{"container.image_digest": f"sha256:{one}"} for one in "aab"]
    check_same_image(facts[:2], machines[:2], "study")
    with pytest.raises(UserError, match="sha256:b on h3, but sha256:a on h1") as refused:
        check_same_image(facts, machines, "study")
    assert "the same image, on every host" in refused.value.fix


@pytest.mark.slow
def test_nothing_is_left_on_a_host(opened: Opened, tmp_path: Path) -> None:
    arm = "podman-bridged" if PODMAN else "bridged"
    asleep = starting("/bin/sh", "-c", "echo up; sleep 79")
    done, out, err = launched(opened, arm, asleep, tmp_path, timeout_s=5)
    assert (done.timed_out, out) == (True, "up\n"), err
    assert "sleep\n79" not in "\n".join(asked(opened, "cat /proc/[0-9]*/cmdline | tr '\\0' '\\n'"))
    launched(opened, arm, benchmark_of(opened.selection), tmp_path)
    left = asked(opened, "ip link show; ip route; cat /proc/mounts /proc/sys/net/ipv4/ip_forward")
    # A new network takes this over from that of the machine.
    assert left[-1] == Path("/proc/sys/net/ipv4/ip_forward").read_text().strip()
    assert not [
        line for line in left if "paribus0" in line or "paribus1" in line or "10.78" in line
    ]
    assert not [line for line in left if "/run/paribus" in line]


def asked(opened: Opened, script: str) -> list[str]:
    """Return the lines that a script prints on the first host."""
    done = ran(opened.station.hosts[0].shell, input=script, code=0)
    return done.stdout.splitlines()
