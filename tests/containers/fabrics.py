"""Launches in containers as local.py would start them, and what they could leave behind."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pytest

from mpis import installations
from paribus import containers
from paribus.core import Command, Container, Mpi, Placement, Slot
from paribus.launch.local import Captured, capture
from paribus.launch.machine import HERE
from paribus.launch.toolchain import find_mpi

USER = 12345
EngineName = Literal["namespace", "podman"]
Each = Literal["rank", "host"]
Network = Literal["bridge", "host", "none"]
ENGINES: tuple[EngineName, ...] = ("namespace", "podman")
PROGRAM = """\
#include <mpi.h>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>
int main(int argc, char **argv) {
  int rank, ranks;
  char host[64];
  static char buffer[1 << 20];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  gethostname(host, sizeof host);
  for (int i = 0; i < 16; i++)
    MPI_Sendrecv_replace(buffer, sizeof buffer, MPI_CHAR, (rank + 1) % ranks, 0,
                         (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  long received = -1;
  FILE *file = fopen("/sys/class/net/eth0/statistics/rx_bytes", "r");
  if (file && fscanf(file, "%ld", &received) != 1) received = -2;
  printf("rank %d of %d on %s received %ld\\n", rank, ranks, host, received);
  fflush(stdout);
  MPI_Finalize();
  return argc > 1 ? atoi(argv[1]) : 0;
}
"""


def _by_family() -> dict[str, Mpi]:
    """Return one MPI of each family whose launcher reaches containers by an agent.

    Rather one outside /usr: a container from an image has that, but no MPI of the machine.
    """
    known = [mpi for mpi in installations() if mpi.family in ("openmpi", "mpich")]
    if Path(sys.prefix, "bin", "mpicxx").exists():
        known.append(find_mpi(sys.prefix, HERE))
    return {
        mpi.family: mpi for mpi in sorted(known, key=lambda m: not m.mpirun.startswith("/usr/"))
    }


MPIS = list(_by_family().values())


class Launch:
    """A command in a container, prepared as local.py would, by whoever `identity` is."""

    def __init__(
        self, identity: list[str], folder: Path, engine: EngineName, each: Each, ranks: int = 2
    ) -> None:
        self.identity = identity
        self.mark = f"{engine}-{uuid.uuid4().hex[:12]}"
        self.scratch = folder / self.mark
        self.scratch.mkdir()
        self.scratch.chmod(0o777)
        self.engine, self.each, self.ranks = engine, each, ranks
        self.container = Container(
            engine, each=each, network="bridge" if each == "host" else "host"
        )
        self.env = {
            **os.environ,
            "TMPDIR": str(self.scratch),
            "HOME": str(self.scratch),
            "PARIBUS_TEST_MARK": self.mark,
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        }
        forbidden = containers.check(self.container, self.capture)
        if forbidden:
            pytest.skip(forbidden)

    def capture(self, argv: Sequence[str], *, timeout_s: float = 60.0) -> Captured:
        """Run a command of `check`, whose files belong to whoever made them: root."""
        if self.identity:
            for path in Path(tempfile.gettempdir()).glob("paribus-check-*"):
                os.chown(path, USER, USER)
                for file in path.iterdir():
                    os.chown(file, USER, USER)
        return capture([*self.identity, *argv], timeout_s=timeout_s, env=self.env)

    def place(self) -> Placement:
        return containers.placement(
            self.container, (Slot(),) * self.ranks, per_host=1, scratch=str(self.scratch)
        )

    def prepare(self, command: Command) -> list[str]:
        """Write the files of `command` and return its argv."""
        for name, text in command.files.items():
            (self.scratch / name).write_text(text)
            (self.scratch / name).chmod(0o755)
        self.env |= command.env
        return [*self.identity, *command.argv]

    def wrapped(self, *argv: str) -> list[str]:
        return self.prepare(
            containers.wrap_launcher(
                Command(argv), self.container, hosts=self.ranks, scratch=str(self.scratch)
            )
        )

    def start(self, argv: list[str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            argv,
            env=self.env,
            cwd=self.scratch,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def finish(self, argv: list[str]) -> subprocess.CompletedProcess[str]:
        with self.start(argv) as process:
            try:
                out, err = process.communicate(timeout=90)
            except subprocess.TimeoutExpired:
                self.end()
                raise
        return subprocess.CompletedProcess(argv, process.returncode, out, err)

    def launch(self, *argv: str) -> subprocess.CompletedProcess[str]:
        return self.finish(self.wrapped(*argv))

    def in_container(self, name: str, command: str) -> str:
        """Return a shell command that carries `command` out in the container `name`."""
        return f'{self.place().agent} {name} "{command}"'

    def processes(self) -> dict[int, set[str]]:
        """Return the namespaces of every process of this launch, by pid."""
        found = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                if (
                    self.mark.encode()
                    in (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
                ):
                    found[int(entry.name)] = namespaces(entry)
            except OSError:
                continue
        return found

    def end(self) -> None:
        """Kill what a failed test would leave."""
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def namespaces(process: Path) -> set[str]:
    found = set()
    for link in (process / "ns").iterdir():
        try:
            found.add(str(link.readlink()))
        except OSError:
            continue
    return found


def traces() -> set[str]:
    """Return what podman, its plugins and MPI are known to leave on a machine, as it is now."""
    places = {
        "/run/netns": "*",
        "/run": "*libpod*",
        "/run/libpod": "*",
        "/var/lib/cni": "*/*",
        "/var/lib/containers": "*/*",
        "/etc/cni/net.d": "*",
        "/dev/shm": "*libpod*",
        "/tmp": "*pr[dt]e*",
        "/sys/fs/cgroup": "**/*libpod*",
    }
    found = {str(p) for place, what in places.items() for p in Path(place).glob(what)}
    found.discard("/etc/cni/net.d/cni.lock")  # of podman itself, which makes it once
    # An ordinary user's files are these tests' own, unless a rank on this machine made them.
    for place in ("/tmp", "/var/tmp", "/run"):
        for path in Path(place).iterdir():
            try:
                if path.stat().st_uid == USER:
                    found.add(str(path))
            except OSError:
                continue
    found |= {f"interface {name}" for _, name in socket.if_nameindex()}
    found.add(f"ip_forward {Path('/proc/sys/net/ipv4/ip_forward').read_text()}")
    return found


def nothing_left(launch: Launch, before: set[str], seen: set[str]) -> None:
    """Demand that processes, namespaces, mounts and traces of `launch` are gone, within 5 s."""
    own = namespaces(Path("/proc/self"))
    deadline = time.monotonic() + 5
    while True:
        alive = launch.processes()
        spaces = set()
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    spaces |= namespaces(entry)
                except OSError:
                    continue
        left = (seen - own) & spaces
        if not alive and not left:
            break
        assert time.monotonic() < deadline, (alive, left)
        time.sleep(0.02)
    assert launch.mark not in Path("/proc/self/mountinfo").read_text()
    new = {t for t in traces() - before if not t.startswith("interface ")}
    assert not new
    assert not {n for _, n in socket.if_nameindex()} & {"br0", "c1", "c2"}
    shutil.rmtree(launch.scratch)


def reachable(launch: Launch, mpi: Mpi) -> None:
    # By a shell: what setpriv itself starts it still looks up with root's rights.
    if launch.capture(["/bin/sh", "-c", 'exec "$0" --version', mpi.mpirun]).exit_code:
        pytest.skip(f"{mpi.mpirun} is out of reach for an ordinary user")


def over_tcp(launch: Launch, mpi: Mpi, *argv: str) -> list[str]:
    """Return the launcher's argv, written by hand: as in docs/containers.md."""
    where = launch.place()
    hosts = ",".join(f"{name}:{ranks}" for name, ranks in where.hosts)
    if mpi.family == "mpich":
        own = ["-launcher", "rsh", "-launcher-exec", str(where.agent), "-hosts", hosts]
        own += ["-iface", "br0", "-ppn", "1", "-bind-to", "none"]
    else:
        said = capture([mpi.mpirun, "--version"]).stdout
        daemon, agent, network = (
            ("--mca", "plm_rsh_agent", "oob_tcp_if_include")
            if "Open MPI) 4" in said
            else ("--prtemca", "plm_ssh_agent", "prte_if_include")
        )
        own = ["-H", hosts, daemon, agent, str(where.agent), "--bind-to", "none"]
        own += [daemon, network, str(where.network)]
        own += ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self"]
        own += ["--mca", "btl_tcp_if_include", str(where.network)]
    return [mpi.mpirun, "-n", str(launch.ranks), *own, *argv]
