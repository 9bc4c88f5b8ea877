"""A cluster is set up over ssh on namespaces that stand for machines, used, and taken down."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from containers.gates import gated
from paribus.cluster.links import Links
from paribus.cluster.setup import leaders
from paribus.core import UserError
from paribus.hosts.reached import Host
from processes import ran

PORT = 2222
HOSTS = "10.77.0.[1-3]"

# Each host gets a home of its own, and a sshd that reads the keys there.
PREPARE = f"""
mount -t tmpfs -o mode=700 none /root && mkdir -m 700 /root/.ssh
cat >/root/.ssh/authorized_keys
cat >/run/other_sshd <<END
Port {PORT}
HostKey /run/paribus/host_key
PidFile /run/other_sshd.pid
AuthenticationMethods publickey
UsePAM no
UseDNS no
MaxStartups 1000
END
$(command -v sshd || echo /usr/sbin/sshd) -f /run/other_sshd -E /run/other_sshd.log
"""


@dataclass
class Machines:
    """Hosts with a sshd each, and how a command reaches their network."""

    hosts: tuple[Host, ...]
    prefix: tuple[str, ...]
    identity: str

    def paribus(self, *words: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
        argv = [*self.prefix, sys.executable, "-m", "paribus", *words]
        env = {**os.environ, "COLUMNS": "160", **env}
        return ran(argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL)

    def cluster(self, what: str, *more: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        ssh = ("--port", str(PORT), "--user", "root", "--identity", self.identity)
        return self.paribus("cluster", what, HOSTS, *ssh, *more, cwd=cwd)

    def on(self, number: int, script: str) -> str:
        argv = [*self.hosts[number].shell, "-c", script]
        return ran(argv).stdout

    def homes(self) -> list[str]:
        """Return what the homes hold, with contents and rights."""
        script = "cd /root; ls -laR --time-style=+ . | grep -v total; find . -type f | xargs cksum"
        return [self.on(i, script) for i in range(len(self.hosts))]


@pytest.fixture
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    folder = tmp_path_factory.mktemp("p")
    try:
        with gated(3, str(folder / "pocket")) as gate:
            pocket = gate.pocket
            key = Path(f"{gate.identity}.pub").read_bytes()
            for i, host in enumerate(pocket.hosts):
                argv = [*host.shell, "-c", PREPARE]
                # One file without a newline at its end, one with a comment of the user's.
                data = key.rstrip() if i == 0 else b"# mine\n" + key
                subprocess.run(argv, input=data, check=True)
            yield Machines(pocket.hosts, gate.prefix, gate.identity)
    except UserError as error:
        pytest.skip(str(error))


@pytest.mark.slow
def test_up_check_use_up_again_and_down(machines: Machines, tmp_path: Path) -> None:
    before = machines.homes()
    done = machines.cluster("up", "--accept-host-keys", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr.count("shows the host key SHA256:") == 3
    assert "nodes reach each other by ssh: 6 of 6 tried pairs" in done.stdout
    folder = tmp_path / "cluster-10.77.0.-1-3"
    assert (folder / "hostfile.openmpi").read_text() == "".join(
        f"10.77.0.{i} slots=1\n" for i in (1, 2, 3)
    )
    assert (folder / "hostfile.mpich").read_text().splitlines()[0] == "10.77.0.1:1"
    assert (folder / "hostfile.intel").read_text().splitlines()[2] == "10.77.0.3:1"
    assert (folder / "hostfile.plain").read_text() == "10.77.0.1\n10.77.0.2\n10.77.0.3\n"
    report = json.loads((folder / "environment.json").read_text())
    assert report["schema"] == "paribus.cluster/1"
    assert "3 nodes: ready for MPI" in (folder / "environment.txt").read_text()
    # The ssh_config leads there from this machine.
    argv = [*machines.prefix, "ssh", "-F", str(folder / "ssh_config"), "10.77.0.2", "hostname"]
    done = ran(argv)
    assert done.stdout == "h2\n"

    # A user's own mpirun, on a node.
    mpirun = (
        "cd ~/.paribus-cluster-* && OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"
        " mpirun --hostfile hostfile.openmpi --mca plm_rsh_agent $PWD/ssh"
        " --mca btl_tcp_if_include 10.77.0.0/16 hostname"
    )
    if report["nodes"][0]["mpi"].startswith("Open MPI"):
        assert sorted(machines.on(0, mpirun).split()) == ["h1", "h2", "h3"]

    homes, files = machines.homes(), {p.name: p.read_bytes() for p in folder.iterdir()}
    again = machines.cluster("up", cwd=tmp_path)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "no node was changed: already set up" in again.stderr
    assert machines.homes() == homes
    for name, data in files.items():
        assert name.startswith("environment") or (folder / name).read_bytes() == data, name

    gone = machines.cluster("down", cwd=tmp_path)
    assert gone.returncode == 0, gone.stdout + gone.stderr
    assert machines.homes() == before
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_down_keeps_what_others_added_and_needs_all_nodes(
    machines: Machines, tmp_path: Path
) -> None:
    machines.on(2, "cp /root/.ssh/authorized_keys /root/k")
    assert machines.cluster("up", "--accept-host-keys", cwd=tmp_path).returncode == 0
    machines.on(1, "echo 'ssh-ed25519 AAAA other' >>/root/.ssh/authorized_keys")
    machines.on(2, "kill $(cat /run/other_sshd.pid)")
    part = machines.cluster("down", cwd=tmp_path)
    assert part.returncode == 4
    assert "10.77.0.3" in part.stdout
    assert (tmp_path / "cluster-10.77.0.-1-3" / "cluster.json").exists()
    machines.on(2, "/usr/sbin/sshd -f /run/other_sshd -E /run/other_sshd.log")
    assert machines.cluster("down", cwd=tmp_path).returncode == 0
    keys = machines.on(1, "cat /root/.ssh/authorized_keys")
    assert keys.startswith("# mine\n")
    assert keys.endswith("\nssh-ed25519 AAAA other\n")
    assert "paribus" not in keys
    assert machines.on(2, "cmp /root/.ssh/authorized_keys /root/k && echo same") == "same\n"


def test_what_is_broken_is_not_set_up(machines: Machines, tmp_path: Path) -> None:
    before = machines.homes()
    done = machines.cluster("up", "--accept-host-keys", "--network", "192.168.7.0/24", cwd=tmp_path)
    assert done.returncode == 4
    assert "nothing was set up" in done.stderr
    assert machines.homes() == before


@pytest.mark.slow
def test_ways_in_which_a_login_fails(machines: Machines, tmp_path: Path) -> None:
    unknown = machines.cluster("check", cwd=tmp_path)
    assert unknown.returncode == 2
    assert "3 host keys not known" in unknown.stderr
    assert "SHA256:" in unknown.stderr
    assert "--accept-host-keys" in unknown.stderr
    assert list(tmp_path.iterdir()) == []

    ssh = ("--port", str(PORT), "--identity", machines.identity, "--accept-host-keys")
    user = machines.paribus("cluster", "check", HOSTS, *ssh, "--user", "nobody", cwd=tmp_path)
    assert user.returncode == 4
    assert "the login was refused (publickey)" in user.stdout
    assert "no password prompt" in user.stdout

    names = "10.77.0.[1-2],10.77.0.99,10.77.0.1:2223"
    gone = machines.paribus("cluster", "check", names, *ssh, "--user", "root", cwd=tmp_path)
    assert gone.returncode == 4
    assert "No route to host" in gone.stdout
    assert "Connection refused" in gone.stdout
    assert "2 of 4 answer" in gone.stdout

    known = next(tmp_path.glob("cluster-*/known_hosts"))
    text = known.read_text().splitlines()
    kind, key = next(one.split()[1:3] for one in text if one.startswith("10.77.0.2 "))
    known.write_text("\n".join(f"{n} {kind} {key}" for n in ("10.77.0.1", "10.77.0.2")) + "\n")
    changed = machines.paribus(
        *("cluster", "check", "10.77.0.[1-2]", "--known-hosts", str(known), "--user", "root"),
        *("--port", str(PORT), "--identity", machines.identity),
        cwd=tmp_path,
    )
    assert changed.returncode == 4
    said = " ".join(changed.stdout.split())  # the fix is to remove the line
    assert f"{known}:1: the host key of 10.77.0.1 is not the one that is known" in said


def test_one_machine_under_two_names_over_ssh(machines: Machines, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("Host a b\n    HostName 10.77.0.1\n")
    words = ("--port", str(PORT), "--user", "root", "--identity", machines.identity)
    done = machines.paribus(
        *("cluster", "check", "a,b", "--accept-host-keys", "--ssh-config", str(config), *words),
        cwd=tmp_path,
    )
    assert done.returncode == 4
    assert "these names are one machine" in done.stdout


@pytest.mark.slow
def test_a_full_home_is_named_and_undone(machines: Machines, tmp_path: Path) -> None:
    machines.on(1, "mount -o remount,size=8k /root; head -c 100000 /dev/zero >/root/full")
    before = machines.homes()
    done = machines.cluster("up", "--accept-host-keys", cwd=tmp_path)
    assert done.returncode == 4, done.stdout
    assert "is the disk full?" in done.stdout or "is full" in done.stdout
    machines.cluster("down", cwd=tmp_path)
    assert machines.homes() == before


def test_nodes_that_share_a_home_are_set_up_once() -> None:
    homes = {"a": ("a",), "b": ("b", "c"), "c": ("b", "c"), "d": ()}
    assert leaders("abcd", Links(homes=homes)) == ("a", "b", "d")


@pytest.mark.slow
def test_one_home_for_all(machines: Machines, tmp_path: Path) -> None:
    """As with NFS: the key is in one file, once, and goes from there."""
    # Not below /tmp, of which each host has its own.
    with tempfile.TemporaryDirectory(dir="/var/tmp") as shared:
        Path(shared, ".ssh").mkdir(mode=0o700)
        keys = Path(shared, ".ssh", "authorized_keys")
        keys.write_bytes(before := Path(f"{machines.identity}.pub").read_bytes())
        for i in range(3):
            machines.on(i, f"mount --bind {shared} /root")
        done = machines.cluster("up", "--accept-host-keys", cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "all nodes share one home directory" in done.stdout
        assert keys.read_text().count("paribus-cluster-") == 1
        assert machines.cluster("down", cwd=tmp_path).returncode == 0
        assert keys.read_bytes() == before
        assert [one.name for one in Path(shared).iterdir()] == [".ssh"]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_ended_in_the_middle_it_leaves_nothing(
    machines: Machines, tmp_path: Path, number: signal.Signals
) -> None:
    assert machines.cluster("check", "--accept-host-keys", cwd=tmp_path).returncode == 0
    ours = ("--port", str(PORT), "--user", "root", "--identity", machines.identity)
    argv = [*machines.prefix, sys.executable, "-m", "paribus", "cluster", "check", HOSTS, *ours]
    files = "ls -d /tmp/* /dev/shm/* /root/.paribus*; ls /proc | grep -c '^[0-9]'"
    before: list[str] = []
    settled = time.monotonic() + 20
    while (now := [machines.on(i, files) for i in range(3)]) != before:
        assert time.monotonic() < settled, (before, now)
        before = now
        time.sleep(0.5)  # sessions of the check above are still ending
    temporary = tmp_path / "t"
    temporary.mkdir()
    for delay_s in (0.4, 0.8, 1.2, 1.6, 2.0):
        done = subprocess.Popen(argv, cwd=tmp_path, env={**os.environ, "TMPDIR": str(temporary)})
        time.sleep(delay_s)
        done.send_signal(number)
        done.wait(10)
        deadline = time.monotonic() + 10
        while (now := [machines.on(i, files) for i in range(3)]) != before or any(
            temporary.iterdir()
        ):
            assert time.monotonic() < deadline, (delay_s, now, list(temporary.iterdir()))
            time.sleep(0.1)


PAGE = Path(__file__).parent.parent / "docs" / "clusters.md"
# The machine's kernels, beneath the home that hides them: four hosts would compile them all anew.
KEPT = "mkdir -p /root/.cache/paribus /run/kept && mount --bind /root/.cache/paribus /run/kept"
SHOWN = "mkdir -p /root/.cache/paribus && mount --bind /run/kept /root/.cache/paribus"
HIDDEN = "umount /root/.cache/paribus && rm -r /root/.cache"
NAMED = """
mount --bind "$1" /etc/hosts && shift
eval "$(ssh-agent -s)" >/dev/null && trap 'ssh-agent -k >/dev/null' EXIT
ssh-add -q "$1" && shift
cd "$1" && shift
"$@"
"""


@pytest.mark.slow
def test_every_command_of_the_page(tmp_path: Path) -> None:
    """The page's commands, on hosts that are called as there; they answer on port 22."""
    if os.geteuid():
        pytest.skip("not root")
    page = PAGE.read_text().partition("\n## A cluster in Azure")[0]
    blocks = re.findall(r"^```(\w+)\n(.*?)^```", page, re.M | re.S)
    # That of cloud-init reaches no host: test_cloud_init.py has it.
    blocks = [(kind, text) for kind, text in blocks if "cloud-init" not in text]
    assert [kind for kind, _ in blocks].count("sh") == 7
    work = tmp_path / "work"
    work.mkdir()
    with gated(4, str(tmp_path / "pocket")) as gate:
        pocket = gate.pocket
        key = Path(f"{gate.identity}.pub").read_bytes()
        change = f"{KEPT}\nkill $(cat /run/sshd.pid)\nsleep 0.2\n{PREPARE.replace(str(PORT), '22')}"
        for host in pocket.hosts:
            subprocess.run([*host.shell, "-c", change], input=key, check=True)
        names = "".join(f"{a} node{n[1:]}\n" for n, a in gate.addresses)
        (tmp_path / "hosts").write_text(f"127.0.0.1 localhost\n{names}")
        prefix = [*gate.prefix, "unshare", "-m", "/bin/sh", "-c", NAMED, "sh"]
        prefix += [str(tmp_path / "hosts"), gate.identity, str(work)]
        machines = Machines(pocket.hosts, gate.prefix, gate.identity)
        before = machines.homes()
        for i in range(4):
            machines.on(i, SHOWN)
        codes = []
        for kind, text in blocks:
            if kind == "toml":
                (work / "pairs.toml").write_text(text)
                continue
            argv = [*prefix, sys.executable, "-m", *shlex.split(text)]
            done = ran(argv, input="")
            codes.append(done.returncode)
            if "run" in argv:
                assert "latency" in done.stdout, done.stderr
                assert "Cases" in done.stdout, done.stdout
            assert done.returncode in (0, 2), (text, done.stdout, done.stderr)
        # Only the first that meets unknown host keys stops.
        assert codes == [2, 0, 0, 0, 0, 0, 0]
        for i in range(4):
            machines.on(i, HIDDEN)
        assert machines.homes() == before
    left = ["cluster-node-1-4", "pairs.study", "pairs.toml"]
    assert sorted(one.name for one in work.iterdir()) == left
    assert [one.name for one in (work / left[0]).iterdir()] == ["first-table"]


def test_a_pocket_cluster_is_not_set_up(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "paribus", "cluster", "up", "pocket:2"]
    done = ran(argv, cwd=tmp_path, code=2)
    assert "a pocket cluster ends with this command" in done.stderr
    argv = [*argv[:-2], "down", "x"]
    down = ran(argv, cwd=tmp_path, code=2)
    assert "holds no cluster" in down.stderr
    assert list(tmp_path.iterdir()) == []
