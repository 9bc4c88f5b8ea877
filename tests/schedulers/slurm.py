"""A real Slurm on a pocket cluster: one controller in the fabric's network, a slurmd on each host.

Everything has ports, keys and directories of its own, and ends with the context.
"""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest

from containers.gates import gated
from paribus.containers.fabric import FABRIC

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scancel")
UP_S = 60.0

_CONF = """\
ClusterName=pocket
SlurmctldHost={host}({address})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={place}/munge/socket
CredType=cred/munge
SlurmctldPort=16817
SlurmdPort=16818
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool/%n
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/%n.pid
SlurmctldLogFile={place}/slurmctld.log
SlurmdLogFile={place}/%n.log
SwitchType=switch/none
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,bf_interval=2,batch_sched_delay=0
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
KillWait=2
MinJobAge=30
"""

# Cray's counters, which this plug-in reads, are files: those of a host are mounted there.
_ENERGY = """\
AcctGatherEnergyType=acct_gather_energy/pm_counters
JobAcctGatherType=jobacct_gather/{gather}
"""
_COUNTERS = """\
mount -t tmpfs none {over} && mkdir -p {over}/upper/cray/pm_counters {over}/work &&
mount -t overlay none -o lowerdir=/sys,upperdir={over}/upper,workdir={over}/work /sys &&
mount --bind {counters} /sys/cray/pm_counters && exec "$@"
"""


class Jobs(Protocol):
    """A site: how a program is started where its users log in, and the jobs that have not ended."""

    @property
    def prefix(self) -> tuple[str, ...]: ...

    @property
    def env(self) -> Mapping[str, str]: ...

    def jobs(self) -> list[str]: ...


class Daemon:
    """A process in the foreground, which ends with the context."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], out: Path) -> None:
        self.argv, self.env, self.out = list(argv), dict(env), out
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Daemon:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def start(self) -> None:
        """Start it."""
        with self.out.open("ab") as said:
            self.process = subprocess.Popen(
                self.argv, env=self.env, stdin=subprocess.DEVNULL, stdout=said, stderr=said
            )

    def end(self) -> None:
        """End it: by TERM, or after 10 s by KILL."""
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@dataclass(frozen=True)
class Site:
    """A running Slurm: how a program is started where its users log in, and its directory."""

    prefix: tuple[str, ...]
    env: Mapping[str, str]
    place: Path
    controller: Daemon

    def ask(self, *argv: str) -> str:
        """Return what a command printed; raises CalledProcessError."""
        return subprocess.run(
            [*self.prefix, *argv], env=dict(self.env), capture_output=True, text=True, check=True
        ).stdout

    def jobs(self) -> list[str]:
        """Return the jobs that have not ended: number, name, state."""
        listed = self.ask("squeue", "--noheader", "--format=%i %j %T").split("\n")[:-1]
        return [line for line in listed if not line.endswith("COMPLETING")]

    def until(self, done: Callable[[], bool]) -> None:
        """Wait for `done`."""
        until(done, self.place, "Slurm")

    def restart_controller(self) -> None:
        """End the controller and start it again."""
        self.controller.end()
        self.controller.start()


def missing() -> list[str]:
    """Return the programs that a Slurm needs and this machine lacks."""
    path = "/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin"
    return [one for one in PROGRAMS if shutil.which(one, path=path) is None]


class Meter:
    """Counts the energy of hosts of so many watts in files under `place`; ends with the context."""

    def __init__(self, place: Path, watts: Mapping[str, float]) -> None:
        self.place, self.watts = place, watts
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._count)

    def __enter__(self) -> Meter:
        for name in self.watts:
            (self.place / name).mkdir(parents=True)
        self._write(0.0)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _count(self) -> None:
        began = time.monotonic()
        while not self._over.wait(0.01):
            self._write(time.monotonic() - began)

    def _write(self, seconds: float) -> None:
        for name, watts in self.watts.items():
            now = int(time.time() * 1e6)
            values = {"energy": f"{int(1000 + watts * seconds)} J", "power": f"{watts:.0f} W"}
            for file, value in values.items():
                new = self.place / name / "new"
                new.write_text(f"{value} {now} us\n")
                new.replace(self.place / name / file)


@contextmanager
def slurm(
    hosts: int,
    partitions: Mapping[str, Sequence[str]],
    watts: Mapping[str, float] | None = None,
    gather: str = "linux",
) -> Iterator[Site]:
    """Start a Slurm of `hosts` nodes h1, h2, ... in `partitions`; end all of it.

    With `watts` of each node, it counts their energy, unless it does not `gather` it. Skips the
    test where there can be none.
    """
    if os.geteuid():
        pytest.skip("not root")
    if lack := missing():
        pytest.skip(f"Slurm is not installed: no {', '.join(lack)}")
    with ExitStack() as stack:
        # Hosts have a /tmp of their own, so what they share is elsewhere.
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/var/tmp")))
        gate = stack.enter_context(gated(hosts, str(place / "pocket")))
        for name in ("munge", "state", *(f"spool/{name}" for name in gate.pocket.names)):
            (place / name).mkdir(mode=0o755, parents=True)
        place.chmod(0o755)
        (place / "munge" / "key").write_bytes(b"paribus tests need no secret key" * 4)
        (place / "munge" / "key").chmod(0o400)
        nodes = [
            f"NodeName={name} NodeAddr={address} CPUs=2 RealMemory=500 State=UNKNOWN"
            for name, address in gate.addresses
        ]
        parts = [
            f"PartitionName={name} Nodes={','.join(its)} State=UP MaxTime=60"
            for name, its in partitions.items()
        ]
        conf = _CONF.format(host=socket.gethostname(), address=FABRIC, place=place)
        conf += _ENERGY.format(gather=gather) if watts else ""
        (place / "slurm.conf").write_text("\n".join([conf, *nodes, *parts, ""]))
        # Hosts have no control groups mounted: this plug-in does without until one is asked for.
        (place / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
        env = {**os.environ, "PATH": path, "SLURM_CONF": f"{place}/slurm.conf"}
        prefix = gate.prefix
        munge = place / "munge"
        munged = ["munged", "--foreground", "--force", f"--key-file={munge}/key"]
        munged += [f"--socket={munge}/socket", f"--log-file={munge}/log"]
        munged += [f"--pid-file={munge}/pid", f"--seed-file={munge}/seed"]
        stack.enter_context(Daemon(munged, env, place / "munged.out"))
        until((munge / "socket").exists, place, "Slurm")
        controller = stack.enter_context(
            Daemon([*prefix, "slurmctld", "-D", "-i"], env, place / "slurmctld.out")
        )
        stack.enter_context(Meter(place / "counters", watts or {}))
        for host in gate.pocket.hosts:
            start = f"exec env SLURM_CONF={place}/slurm.conf slurmd -D -N {host.name}"
            if watts:
                over = place / "over" / host.name
                over.mkdir(parents=True)
                mount = _COUNTERS.format(over=over, counters=place / "counters" / host.name)
                start = f"exec unshare -m /bin/sh -c {shlex.quote(mount)} sh {start[5:]}"
            stack.enter_context(Daemon([*host.shell, "-c", start], env, place / f"{host.name}.out"))
        site = Site(prefix, env, place, controller)
        until(lambda: _idle(site) == hosts, place, "Slurm")
        yield site
        for line in site.jobs():
            site.ask("scancel", line.split()[0])


def _idle(site: Site) -> int:
    try:
        return site.ask("sinfo", "--noheader", "--Node", "--format=%N %T").count(" idle\n")
    except subprocess.CalledProcessError:
        return 0


def until(done: Callable[[], bool], place: Path, who: str, within_s: float = UP_S) -> None:
    """Wait for `done`, which may fail meanwhile; in the end what the daemons printed is shown."""
    deadline = time.monotonic() + within_s
    while True:
        try:
            if done():
                return
        except AssertionError:
            if time.monotonic() > deadline:
                raise
        ends = {p.name: p.read_text(errors="replace")[-700:] for p in place.glob("*.out")}
        assert time.monotonic() < deadline, f"{who} does not come up: {ends}"
        time.sleep(0.05)
