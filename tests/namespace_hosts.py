"""Hosts made of namespaces, each with its own name, address, processes and temporary files."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from paribus.hosts.reached import Host
from processes import children, ran, running

FABRIC = r"""
dir=$1 hosts=$2
mount -t proc proc /proc
hostname fabric
ip link set lo up
mount --bind "$dir/hosts" /etc/hosts
ip link add br0 type bridge
ip link set br0 up
i=0
while [ "$i" -lt "$hosts" ]; do
    i=$((i + 1))
    unshare --net --uts --ipc --mount --pid --fork --kill-child --propagation private -- \
        /bin/sh "$dir/host.sh" "$dir" "$i" &
    until read -r pid <"/proc/$!/task/$!/children"; [ -n "$pid" ]; do :; done
    ip link add "v$i" type veth peer name eth0 netns "${pid% }"
    ip link set "v$i" master br0 up
done
wait
"""

HOST = r"""
dir=$1 i=$2
mount -t proc proc /proc
hostname "h$i"
ip link set lo up
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs "$dir/tmp"
until ip addr add "10.78.0.$i/24" dev eth0 2>/dev/null; do sleep 0.01; done
ip link set eth0 up
touch "$dir/ready.$i"
while :; do sleep 1000 & wait; done
"""


def inside(host: int, pids: list[int]) -> tuple[str, ...]:
    """Return the argv that enters a host."""
    return ("nsenter", "-t", str(pids[host]), "-m", "-u", "-n", "-i", "-p")


class Cluster:
    """Hosts h1, h2...; `pids` are those of their first processes, seen from here."""

    def __init__(self, folder: Path, hosts: int) -> None:
        self.folder = folder
        (folder / "tmp").mkdir()
        (folder / "fabric.sh").write_text(FABRIC)
        (folder / "host.sh").write_text(HOST)
        names = "".join(f"10.78.0.{i} h{i}\n" for i in range(1, hosts + 1))
        (folder / "hosts").write_text(f"127.0.0.1 localhost\n{names}")
        argv = ["unshare", "--net", "--uts", "--mount", "--pid", "--fork", "--kill-child"]
        argv += ["--propagation", "private", "--", "/bin/sh", str(folder / "fabric.sh")]
        self.pids: list[int] = []
        self.controller = subprocess.Popen([*argv, str(folder), str(hosts)])

    def wait(self, hosts: int) -> None:
        """Wait until all hosts are there."""
        deadline = time.monotonic() + 20
        while not all((self.folder / f"ready.{i}").exists() for i in range(1, hosts + 1)):
            assert time.monotonic() < deadline, "no namespace hosts"
            time.sleep(0.01)
        (fabric,) = children(self.controller.pid)
        self.pids = [children(one)[0] for one in children(fabric)]

    def hosts(self) -> list[Host]:
        """Return them as Paribus knows hosts."""
        return [
            Host(
                f"h{i + 1}", (*inside(i, self.pids), "env", f"TMPDIR={self.folder}/tmp", "/bin/sh")
            )
            for i in range(len(self.pids))
        ]

    def ask(self, host: int, script: str) -> str:
        """Return what a shell on the nth host prints."""
        argv = [*inside(host, self.pids), "/bin/sh", "-c", script]
        return ran(argv).stdout

    def left(self) -> list[list[str]]:
        """Return, for each host, its processes and files."""
        found = []
        for i in range(len(self.pids)):
            names = []
            for one in self.processes(i):
                with suppress(OSError):
                    names.append(Path(f"/proc/{one}/cmdline").read_text())
            found.append([*names, *self.ask(i, f"find /dev/shm {self.folder}/tmp").split()])
        return found

    def processes(self, host: int) -> list[int]:
        """Return the processes that are on a host, without those that make it."""
        first = self.pids[host]
        own = {first, *children(first)}
        space = Path(f"/proc/{first}/ns/pid").readlink()
        return [one for one in _in(space) if one not in own and running(one)]

    def end(self) -> None:
        """End all of it."""
        self.controller.kill()
        self.controller.wait()


def _in(space: Path) -> list[int]:
    """Return the processes in a namespace of process numbers."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if (entry / "ns" / "pid").readlink() == space:
                    found.append(int(entry.name))
    return found


@contextmanager
def namespace_hosts(folder: Path, hosts: int) -> Iterator[Cluster]:
    """Yield a cluster that lives as long as the block; skips where namespaces are not to be had."""
    if os.geteuid():
        pytest.skip("namespace hosts with addresses need root")
    cluster = Cluster(folder, hosts)
    try:
        cluster.wait(hosts)
        yield cluster
    finally:
        cluster.end()
