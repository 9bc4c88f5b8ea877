"""The preflight of a cluster, on namespaces of this machine, each damaged in turn."""

from __future__ import annotations

import io
import json
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import studies
from mpis import any_mpi
from paribus.cluster.answers import Answer, ask
from paribus.cluster.checks import Finding, rdma, same_machine
from paribus.cluster.links import Asked, Links, choose, groups_of, interfaces, peers_of
from paribus.cluster.preflight import CHECKS, Preflight, preflight, to_json
from paribus.cluster.printed import print_preflight
from paribus.cluster.setup import hostfiles
from paribus.core import UserError
from paribus.hosts.pocket import Pocket
from paribus.hosts.reached import Host
from processes import executable, ran

ASKED = Asked(ssh_s=0, answer_s=5)


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Host, ...]]:
    try:
        with Pocket(3, directory=str(tmp_path_factory.mktemp("p") / "pocket")) as pocket:
            yield pocket.hosts
    except UserError as error:
        pytest.skip(str(error))


def after(host: Host, script: str) -> Host:
    """Return a host whose login runs `script` first."""
    return replace(host, shell=(*host.shell[:-1], "/bin/sh", "-c", f"{script}\nexec /bin/sh"))


def on(host: Host, script: str) -> str:
    return ran(host.shell, input=script).stdout


def found(result: Preflight, check: str) -> list[Finding]:
    return [one for one in result.findings if one.check == check]


def left(hosts: tuple[Host, ...]) -> list[str]:
    """Return what a preflight could leave: files and processes of each host."""
    script = (
        "ls -d /tmp/* /dev/shm/* /var/tmp/paribus-* $HOME/.paribus-* 2>/dev/null;"
        " for p in /proc/[0-9]*; do [ ${p#/proc/} = $$ ] || tr '\\0' ' ' <$p/cmdline; echo; done"
    )
    # The listing's own subshells and the host's first processes.
    noise = ("tr ", "ls ", "/bin/sh ", "sleep ")
    return [line for h in hosts for line in on(h, script).split("\n") if not line.startswith(noise)]


def test_a_sound_cluster_is_fine_and_nothing_is_left(hosts: tuple[Host, ...]) -> None:
    before = left(hosts)
    result = preflight(hosts)
    assert [one for one in result.findings if one.grade in ("broken", "warning")] == []
    assert result.fine
    assert result.network == "10.77.0.0/16"
    assert [str(one.address.ip) for one in result.chosen.values()] == [
        f"10.77.0.{i}" for i in (1, 2, 3)
    ]
    assert "TCP is open both ways: 3 pairs of nodes" in found(result, "ports")[0].cause
    assert "share one kernel" in found(result, "identity")[0].cause
    assert len(result.links.ssh) == 6
    assert left(hosts) == before


MANY = "while :; do echo no shell but many words; done"
DAMAGED = {
    "silent": ("exec sleep 100", "reach", "broken", "no answer within 5 s"),
    "flood": (MANY, "reach", "broken", "prints without end"),
    "nologin": ("echo not available >&2; exit 1", "reach", "broken", "not available"),
    "banner": ("echo Welcome to h2!; echo", "banner", "warning", "'Welcome to h2!'"),
    "nofile": ("ulimit -n 64", "limits", "warning", "64 open files through ssh"),
    "hostname": ("hostname h1", "hostname", "broken", "call themselves 'h1'"),
    "home": ("unset HOME", "space", "broken", "no home directory"),
    "home kept": ("HOME=/proc/version", "space", "warning", "cannot be written"),
    "sysctl": (
        "echo 5 >/proc/sys/net/ipv4/tcp_mtu_probing || echo 1 >/proc/sys/net/ipv4/tcp_mtu_probing",
        "sysctl",
        "warning",
        "net.ipv4.tcp_mtu_probing differs",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_node_is_named_with_its_fix(name: str, hosts: tuple[Host, ...]) -> None:
    script, check, grade, said = DAMAGED[name]
    state = on(hosts[1], "hostname; cat /proc/sys/net/ipv4/tcp_mtu_probing").split()
    damaged = (hosts[0], after(hosts[1], script), hosts[2])
    try:
        result = preflight(damaged, asked=ASKED)
    finally:
        on(hosts[1], f"hostname {state[0]}; echo {state[1]} >/proc/sys/net/ipv4/tcp_mtu_probing")
    (one,) = (one for one in found(result, check) if said in one.cause)
    assert "h2" in one.nodes
    assert one.grade == grade
    assert one.fix
    assert result.fine == (grade != "broken")
    # The others are tested all the same.
    assert not [one for one in result.findings if one.nodes == ("h3",)]
    assert found(result, "ports")[0].grade == "ok"


def program(folder: Path, name: str, script: str) -> str:
    """Return a directory with a program in it."""
    folder.mkdir(exist_ok=True)
    executable(folder / name, script)
    return str(folder)


def test_a_clock_that_is_an_hour_off(hosts: tuple[Host, ...]) -> None:
    # /tmp of a pocket host is its own; /dev/fd leads out of it.
    script = 'case $1 in +%s*) exec /bin/date -d "1 hour ago" "$1" ;; esac; exec /bin/date "$@"'
    put = "mkdir -p /tmp/clock; cat >/tmp/clock/date; chmod 755 /tmp/clock/date"
    subprocess.run(
        (*hosts[2].shell, "-c", put), input=f"#!/bin/sh\n{script}\n", text=True, check=True
    )
    damaged = (*hosts[:2], after(hosts[2], "PATH=/tmp/clock:$PATH; export PATH"))
    try:
        result = preflight(damaged, asked=ASKED)
    finally:
        on(hosts[2], "rm -rf /tmp/clock")
    (one,) = found(result, "clock")
    assert (one.grade, one.nodes) == ("broken", ("h3",))
    assert "1 h 0 min behind" in one.cause
    assert result.answers[0].offset_error_s < 0.5


def test_a_clock_that_counts_seconds_is_not_called_off(hosts: tuple[Host, ...]) -> None:
    script = "date() { command date +%s.N; }"
    shell = (*hosts[0].shell[:-1], "/bin/sh", "-c", f"{script}\n. /dev/stdin")
    (answer,) = ask([replace(hosts[0], shell=shell)])
    assert abs(answer.offset_s) <= answer.offset_error_s
    assert 0.5 < answer.offset_error_s < 1.5


@pytest.mark.parametrize(
    ("mount", "said"),
    [
        ("mount -t tmpfs -o ro none /tmp", "/tmp cannot be written to: Read-only file system"),
        (
            "mount -t tmpfs -o size=16k none /tmp; head -c 16384 /dev/zero >/tmp/full",
            "/tmp is full: No space left on device",
        ),
        (
            "mount -t tmpfs -o nr_inodes=2 none /tmp; : >/tmp/full",
            "/tmp is full: No space left on device",
        ),
        ("mount -t tmpfs -o size=1m none /tmp", "/tmp has less than 256 MiB free"),
        ("mount -t tmpfs -o noexec none /tmp", "/tmp: nothing can be executed there"),
        ('mount -t tmpfs -o ro none "$HOME"', " cannot be written to: Read-only file system"),
    ],
)
def test_a_scratch_directory_that_cannot_be_used(
    mount: str, said: str, hosts: tuple[Host, ...]
) -> None:
    enter = (*hosts[0].shell[:-1], "unshare", "-m", "/bin/sh", "-c", f"{mount}\nexec /bin/sh")
    damaged = (replace(hosts[0], shell=enter), *hosts[1:])
    result = preflight(damaged, asked=ASKED)
    (one,) = found(result, "space")
    assert one.nodes == ("h1",)
    assert said in one.cause
    assert one.fix
    assert ("TMPDIR" in one.fix) == ("/tmp cannot" in said or "executed" in said)
    assert ("PARIBUS_CACHE" in one.fix) == ("HOME" in mount)
    # What must be put there for a moment finds another place.
    assert found(result, "ports")[0].grade == "ok"


def test_one_machine_under_two_names(hosts: tuple[Host, ...]) -> None:
    result = preflight((*hosts, replace(hosts[0], name="other")), asked=ASKED)
    (one,) = (one for one in found(result, "identity") if one.grade == "broken")
    assert one.nodes == ("h1", "other")
    assert "one machine" in one.cause


def without(programs: str) -> str:
    """Return a script after which only some programs of /usr/bin are on the PATH."""
    return (
        "mkdir -p /tmp/some && ln -sf /usr/bin/* /usr/sbin/* /tmp/some/ &&"
        f" cd /tmp/some && rm -f {programs}; cd /; PATH=/tmp/some; export PATH"
    )


def test_no_compiler_anywhere_is_broken_on_one_node_a_warning(hosts: tuple[Host, ...]) -> None:
    gone = without("c++* g++* clang++* *-c++* *-g++*")
    bare = tuple(after(host, gone) for host in hosts)
    try:
        some = preflight((bare[0], *hosts[1:]), asked=ASKED)
        none = preflight(bare, asked=ASKED)
    finally:
        for host in hosts:
            on(host, "rm -rf /tmp/some")
    (one,) = found(some, "compiler")
    assert (one.grade, one.nodes) == ("warning", ("h1",))
    assert found(some, "ports")[0].grade == "ok"
    (one,) = found(none, "compiler")
    assert (one.grade, one.nodes) == ("broken", ("h1", "h2", "h3"))
    assert "g++" in one.fix
    assert "not all TCP ports" in found(none, "ports")[0].cause


def test_busybox_is_enough(hosts: tuple[Host, ...]) -> None:
    if "no" in on(hosts[0], "command -v busybox >/dev/null || echo no"):
        pytest.skip("no busybox here")
    only = (
        "mkdir /tmp/bb; b=$(command -v busybox);"
        " for a in $($b --list); do ln -s $b /tmp/bb/$a; done;"
        " rm -f /tmp/bb/ip; for a in c++ as ld; do ln -s $(command -v $a) /tmp/bb/$a; done;"
        f" ln -s {any_mpi().mpirun} {any_mpi().mpicxx} /tmp/bb;"
        " PATH=/tmp/bb; export PATH; exec /tmp/bb/sh"
    )
    try:
        result = preflight([after(host, only) for host in hosts], asked=ASKED)
    finally:
        for host in hosts:
            on(host, "rm -rf /tmp/bb")
    assert result.fine, result.findings
    assert result.network == "10.77.0.0/16"  # from /proc/net: there is no ip
    assert found(result, "ports")[0].grade == "ok"
    assert not result.answers[0].all("address")


def test_mpi_of_another_family_and_none(hosts: tuple[Host, ...]) -> None:
    mpich = "printf '%s\\n' 'HYDRA build details:' '    Version:       4.0.2'"
    put = f"mkdir -p /tmp/mpi; printf '%s\\n' '#!/bin/sh' \"{mpich}\" >/tmp/mpi/mpirun"
    on(hosts[0], f"{put}; chmod 755 /tmp/mpi/mpirun")
    other = after(hosts[0], "PATH=/tmp/mpi:$PATH; export PATH")
    none = replace(after(hosts[1], without("mpi*")), places=())
    try:
        result = preflight((other, none, hosts[2]), asked=ASKED)
    finally:
        on(hosts[0], "rm -rf /tmp/mpi")
        on(hosts[1], "rm -rf /tmp/some")
    causes = {one.nodes: one.cause for one in found(result, "mpi")}
    assert "no MPI on the PATH" in causes["h2",]
    (differs,) = (cause for cause in causes.values() if "differs" in cause)
    assert "MPICH 4.0.2 (h1)" in differs


def test_mpi_is_looked_for_where_the_user_says(hosts: tuple[Host, ...]) -> None:
    mpi = any_mpi()
    on(hosts[0], f"mkdir -p /tmp/mpi/bin; ln -s {mpi.mpirun} {mpi.mpicxx} /tmp/mpi/bin")
    try:
        result = preflight(hosts[:2], prefix="/tmp/mpi", asked=ASKED)
    finally:
        on(hosts[0], "rm -rf /tmp/mpi")
    assert result.answers[0].one("mpi.launcher") == "/tmp/mpi/bin/mpirun"
    (one,) = found(result, "mpi")
    assert one.nodes == ("h2",)
    assert one.cause.startswith("no MPI in /tmp/mpi/bin")


def test_hostfiles_hold_the_slots() -> None:
    files = hostfiles({"a": 2, "b": 1})
    assert files["hostfile.openmpi"] == "a slots=2\nb slots=1\n"
    assert files["hostfile.mpich"] == files["hostfile.intel"] == "a:2\nb:1\n"
    assert files["hostfile.plain"] == "a\na\nb\n"


@pytest.fixture
def firewall(hosts: tuple[Host, ...]) -> Iterator[Host]:
    """Yield a host whose firewall the test may set; it is open again afterwards."""
    if "no" in on(hosts[0], "iptables -L >/dev/null 2>&1 || echo no"):
        pytest.skip("no iptables here")
    yield hosts[0]
    on(hosts[0], "iptables -F INPUT; iptables -P INPUT ACCEPT")


@pytest.mark.slow
def test_a_half_open_firewall_is_found_with_the_variables_that_pin_ports(
    hosts: tuple[Host, ...], firewall: Host
) -> None:
    on(firewall, "iptables -A INPUT -p tcp --syn -s 10.77.0.2 -j DROP")
    result = preflight(hosts, asked=ASKED)
    (one,) = found(result, "ports")
    assert one.grade == "broken"
    assert one.nodes == ("h1", "h2")
    assert one.cause.startswith("h2 does not reach h1 over TCP (ports 1024, ")
    assert "the other way is open" in one.cause
    assert "MPI hangs" in one.cause
    for variable in ("btl_tcp_port_min_v4=42000", "oob_tcp_dynamic_ipv4_ports=42100-42199"):
        assert variable in one.fix
    assert not result.fine


def test_a_firewall_that_opens_only_some_ports(hosts: tuple[Host, ...], firewall: Host) -> None:
    on(
        firewall,
        "iptables -A INPUT -m state --state ESTABLISHED -j ACCEPT;"
        "iptables -A INPUT -p tcp --dport 42000:42199 -j ACCEPT;"
        "iptables -A INPUT -p tcp -j REJECT",
    )
    closed = preflight(hosts, asked=ASKED)
    (one,) = found(closed, "ports")
    assert one.cause.startswith("h[2-3] do not reach h1")
    assert "refused" in one.cause
    opened = preflight(hosts, asked=replace(ASKED, first=42000, last=42199))
    assert found(opened, "ports")[0].grade == "ok"


def paribus(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return studies.paribus(*words, cwd=cwd, COLUMNS="200")


@pytest.mark.slow
def test_the_command_line(hosts: tuple[Host, ...], tmp_path: Path) -> None:
    done = paribus("cluster", "check", "pocket:2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("2 nodes: ready for MPI (")
    assert "h2     10.77.0.2" in done.stdout
    written = json.loads(paribus("cluster", "check", "pocket:2", "--json", cwd=tmp_path).stdout)
    assert written["schema"] == "paribus.cluster/1"
    assert [one["name"] for one in written["nodes"]] == ["h1", "h2"]
    assert written["links"]["tried"] == 1
    broken = paribus("cluster", "check", "pocket:2", "--network", "192.168.0.0/24", cwd=tmp_path)
    assert broken.returncode == 4
    assert "not ready for MPI; broken: network" in broken.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["pocket:0"], "write the number of hosts"),
        (["node1,,node2"], "nothing stands between two commas"),
        (["zero"], "line 1 of zero, 'node1 slots=0': it gives 0 slots"),
        (["pocket:2", "--ports", "9"], "write the first and the last"),
    ],
)
def test_what_names_no_cluster_is_a_user_error(words: list[str], said: str, tmp_path: Path) -> None:
    (tmp_path / "zero").write_text("node1 slots=0\n")
    done = paribus("cluster", "check", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr


@pytest.mark.slow
def test_the_pairs_of_sixty_four_hosts_are_sampled(tmp_path: Path) -> None:
    try:
        with Pocket(64, directory=str(tmp_path / "pocket")) as pocket:
            result = preflight(pocket.hosts)
    except UserError as error:
        pytest.skip(str(error))
    assert result.fine, result.findings
    assert "256 pairs of nodes, sampled from 2016" in str(result.findings)


KEYS = (
    *("user", "arch", "hostname", "boot", "net", "machine", "cpus", "siblings", "memory"),
    "address",
    *("interface", "route", "trie", "rdma", "mpi.said", "mpi.launcher", "mpi.build", "compiler"),
    *("tmp", "tmp.space", "tmp.refused", "shm.space", "limit.memlock", "missing", "connection"),
    "sysctl.net.ipv4.ip_local_port_range",
)
WORDS = (
    *("", "0", "9" * 1000, "-1", "eth0", "eth0 inet 10.0.0.1/33", "eth0 inet 10.0.0.1/8 x"),
    *("|", "\x1b[2J"),
)
VALUES = st.one_of(
    st.sampled_from((*WORDS, "mlx5|4: ACTIVE", "/32 host LOCAL", "|-- 999.1.1.1", "e 1 00000000")),
    st.text(max_size=20),
    st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join),
)


@given(
    st.lists(
        st.dictionaries(st.sampled_from(KEYS), st.lists(VALUES, min_size=1, max_size=3)),
        min_size=1,
        max_size=3,
    )
)
def test_whatever_nodes_say_is_judged_and_shown(said: list[dict[str, list[str]]]) -> None:
    answers = tuple(Answer(f"n{i}", facts) for i, facts in enumerate(said))
    findings = [one for check in CHECKS for one in check(answers)]
    network, chosen, more = choose(answers, "")
    result = Preflight(answers, network, chosen, Links(), tuple(findings + more), 1.0)
    json.dumps(to_json(result), allow_nan=False)
    out = io.StringIO()
    print_preflight(result, Console(file=out, width=100))
    assert "\x1b[2J" not in out.getvalue()


def test_pairs_of_many_nodes_are_sampled_and_tried_from_both_ends() -> None:
    nodes = [(Host(f"n{i}", ()), answer(f"n{i}", boot=f"b{i}")) for i in range(130)]
    groups = groups_of(nodes)
    assert [len(one) for one in groups] == [64, 64, 2, 64, 64, 2]
    for several in (nodes[:2], nodes[:7], nodes[:64]):
        assert groups_of(several) == [several]
        peers = peers_of(several)
        assert all(sorted([i, *one]) == list(range(len(several))) for i, one in enumerate(peers))
    one_kernel = [(host, answer(host.name, boot="b")) for host, _ in nodes[:64]]
    peers = peers_of(one_kernel)
    assert {len(one) for one in peers} == {8}
    assert all(i in peers[j] for i in range(64) for j in peers[i])


def answer(name: str, **facts: Any) -> Answer:
    return Answer(name, {k: v if isinstance(v, list) else [v] for k, v in facts.items()})


def test_rdma_ports_are_compared_by_what_they_are_not_by_name() -> None:
    a = answer("a", rdma=["mlx5_0/1|4: ACTIVE|100 Gb/sec (4X EDR)|InfiniBand"])
    b = answer("b", rdma=["mlx5_1/1|4: ACTIVE|100 Gb/sec (4X EDR)|InfiniBand"])
    slow = answer("c", rdma=["mlx5_0/1|4: ACTIVE|40 Gb/sec (4X QDR)|InfiniBand"])
    down = answer("d", rdma=["mlx5_0/1|1: DOWN|100 Gb/sec (4X EDR)|InfiniBand"])
    assert [one.grade for one in rdma([a, b])] == ["ok"]
    assert [(one.grade, one.nodes) for one in rdma([a, b, slow])] == [("broken", ("c",))]
    assert ("broken", ("d",)) in [(one.grade, one.nodes) for one in rdma([a, b, down])]
    assert [one.grade for one in rdma([answer("e")])] == ["information"]


def test_cloned_images_are_a_warning() -> None:
    same = [answer(name, boot=name, net="n", hostname=name, machine="m") for name in "ab"]
    (one,) = same_machine(same)
    assert (one.grade, one.nodes) == ("warning", ("a", "b"))


def test_of_several_networks_one_must_be_named() -> None:
    def node(i: int) -> Answer:
        return answer(
            f"n{i}",
            address=[
                "lo inet 127.0.0.1/8 scope host lo",
                f"eth0 inet 10.0.0.{i}/24 scope global eth0",
                f"ib0 inet 10.1.0.{i}/16 scope global ib0",
                "docker0 inet 172.17.0.1/16 scope global docker0",
            ],
            interface=["eth0 1500 up 1000", "ib0 2044 up 100000"],
        )

    nodes = [node(1), node(2)]
    network, chosen, findings = choose(nodes, "")
    assert network == "10.1.0.0/16"
    assert [one.name for one in chosen.values()] == ["ib0", "ib0"]
    assert findings[0].grade == "warning"
    assert "10.0.0.0/24" in findings[0].cause
    assert "172.17" not in findings[0].cause
    assert choose(nodes, "eth0")[0] == "10.0.0.0/24"
    assert choose(nodes, "10.0.0.0/8")[2][0].grade == "ok"
    assert choose(nodes, "10.9.0.0/16")[2][0].grade == "broken"


def test_addresses_without_ip_come_from_proc() -> None:
    trie = ["|-- 10.77.0.1", "/32 host LOCAL", "|-- 127.0.0.1", "/32 host LOCAL"]
    route = [
        "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT",
        "eth0 00004D0A 00000000 0001 0 0 0 0000FFFF 0 0 0",
    ]
    (one,) = interfaces(answer("a", trie=trie, route=route, interface=["eth0 1500 up 1000"]))
    assert (one.name, str(one.address), one.speed) == ("eth0", "10.77.0.1/16", 1000)


@pytest.mark.slow
def test_the_first_table_of_a_cluster(tmp_path: Path) -> None:
    """One command: preconditions, then all pairs of three nodes, with pictures."""
    done = paribus("cluster", "check", "pocket:3", "--first-table", "--out", "c", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "cluster: latency, 8 B (us)" in done.stdout
    assert "cluster: bandwidth, 1 MiB (MB/s)" in done.stdout
    made = {path.name for path in (tmp_path / "c" / "first-table").iterdir()}
    assert {"cluster-latency-8-b.png", "cluster-bandwidth-1-mib.svg", "pairs-5.out"} <= made
    alone = paribus("cluster", "check", "pocket:1", "--first-table", cwd=tmp_path)
    assert alone.returncode == 2
    assert "one node has no pairs" in alone.stderr


@pytest.mark.slow
def test_the_tree_of_a_host_is_that_of_its_machine(hosts: tuple[Host, ...], tmp_path: Path) -> None:
    """Pocket hosts are this machine: sh there sees the same /sys as Python here."""
    there = paribus("topology", "show", "pocket:1", "--json", cwd=tmp_path)
    assert there.returncode == 0, there.stderr
    here = paribus("topology", "show", "--json", cwd=tmp_path)
    one, other = json.loads(there.stdout), json.loads(here.stdout)
    assert one["hash"] == other["hash"]
    assert one["source"] == "sysfs"
    several = paribus("topology", "show", "pocket:2", cwd=tmp_path)
    assert several.returncode == 2
    assert "2 hosts" in several.stderr
