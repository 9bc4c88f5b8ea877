"""A pocket cluster: hosts that are nested namespaces of this machine, with a network between them.

The hosts are the containers of the engine `namespace` (containers/), in a fabric that lives as long
as this object instead of as long as a launch. docs/clusters.md draws the picture.
"""

from __future__ import annotations

import os
import re
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from paribus import containers
from paribus.border import cache_directory, find_program, search_path
from paribus.containers.fabric import (
    BRIDGE,
    HOST_FSTAB,
    MOST_HOSTS,
    NETWORK,
    SHARED_MEMORY,
    fabric_fstab,
    fstab_field,
    host_names,
    hosts_file,
    script,
)
from paribus.core import Container, Link, MachineError, UserError
from paribus.hosts.links import Wiring, wire
from paribus.hosts.reached import Host
from paribus.launch.launchers.openmpi import ROOT
from paribus.launch.local import capture, this_node
from paribus.launch.machine import beside
from paribus.launch.station import Node

# Files: each host has its own /run and /tmp, as machines have, so that files which programs and MPI
# write there do not collide. Entries of them that are needed, such as a checkout, stay visible.

HIDDEN = (Path("/run"), Path("/tmp"))
"""Directories of which every host has its own."""


def needed_here() -> list[str]:
    """Return the paths that hosts need: of Paribus, Python, the environment, and this directory."""
    variables = (os.environ.get(name, "") for name in ("PATH", "LD_LIBRARY_PATH"))
    found = [sys.prefix, sys.base_prefix, str(Path.cwd()), str(cache_directory())]
    return [*found, os.environ.get("HOME", ""), *(p for text in variables for p in text.split(":"))]


def temporary() -> Path:
    """Return the directory for temporary files of a host, one of its own."""
    own = Path(tempfile.gettempdir())
    return own if any(own.is_relative_to(place) for place in HIDDEN) else HIDDEN[1]


def kept(paths: Iterable[str]) -> list[Path]:
    """Return the entries of HIDDEN that hosts must still see, because `paths` lie in them.

    For /tmp/checkout/bin/x it is /tmp/checkout: programs need what lies beside them. An entry that
    holds the directory for temporary files is not shown, but one further down.
    """
    own, found = temporary(), dict[Path, None]()
    for text in paths:
        if not text.startswith("/") or "\n" in text:
            continue
        for path in (Path(os.path.normpath(text)), Path(text).resolve()):
            entries = [
                one
                for one in (path, *path.parents)
                if any(place in one.parents for place in HIDDEN) and not own.is_relative_to(one)
            ]
            if entries and entries[-1].exists():
                found[entries[-1]] = None
    return list(found)


START_S = 60.0
"""Seconds that the hosts may take to start; four take a fifth of a second."""

END_S = 10.0
"""Seconds that the controller may take to end everything, before it is killed."""

SYSTEM = ":/usr/sbin:/sbin"
"""Added to PATH for tc, since ordinary users do not have it everywhere."""

_SCRIPTS = {
    "pocket.sh": "pocket.sh",
    "enter.sh": "pocket_enter.sh",
    "joined.sh": "pocket_joined.sh",
    "more.sh": "pocket_host.sh",
    "start.sh": "start.sh",
    "fabric.sh": "fabric.sh",
    "engine.sh": "namespace.sh",
    "host.sh": "host.sh",
}

_FIRST = re.compile(r"^NSpid:.*\t1$", re.MULTILINE)
"""In /proc/PID/status of the first process of a namespace: "NSpid:\t4711\t1"."""


class Pocket:
    """`hosts` hosts h1, h2, ... on this machine, for as long as the context lasts.

    `directory` must not exist: it is made and removed. Below a station's scratch directory it is
    removed even if Paribus and the controller are killed at once. Set within the context: `hosts`;
    `nodes`, the name and cores of each, to which all its processes are pinned; `network` (CIDR);
    `pids`, the first process of each; `controller`, the process whose end ends all of it;
    `crowded`, whether several hosts share a core. `needed`: paths that hosts must see although they
    lie in HIDDEN.

    Raises UserError, before anything is made, where the machine cannot do it, with the fix; and
    MachineError, with all removed, where a host could not be made after all.
    """

    def __init__(
        self,
        hosts: int,
        *,
        link: Link | None = None,
        directory: str,
        needed: Iterable[str] = (),
    ) -> None:
        self.count, self.link = hosts, link
        self.needed = tuple(needed)
        self.directory = directory
        self.network = NETWORK
        self.names = host_names(hosts, "h")
        self.hosts: tuple[Host, ...] = ()
        self.nodes: tuple[Node, ...] = ()
        self.pids: tuple[int, ...] = ()
        self.controller = 0
        self.crowded = False
        self._controller: subprocess.Popen[bytes] | None = None
        self._env: dict[str, str] = {}

    def __enter__(self) -> Pocket:
        path = search_path(os.environ.get("PATH")) + SYSTEM
        self._env = {**os.environ, "PATH": path}
        _check(self.count, path)
        wiring = wire(self.link, self.names, path)
        cores = this_node().cores
        self.nodes = tuple(map(Node, self.names, shares(cores, self.count)))
        self.crowded = self.count > len(cores)
        try:
            Path(self.directory).mkdir(mode=0o700)
        except OSError as error:
            raise self._no_files(error) from error
        try:
            self._write(wiring)
            self._start(wiring)
            self._describe()
        except BaseException as error:
            printed = self._last_errors()
            self.__exit__(None, None, None)
            if isinstance(error, OSError):
                raise self._no_files(error) from error
            if isinstance(error, _NotUpError):
                raise MachineError(
                    f"the pocket cluster did not start: {printed or error}",
                    place=f"pocket:{self.count}",
                    fix="try again; with fewer hosts if memory or processes are short",
                ) from None
            raise
        return self

    def __exit__(self, *_: object) -> None:
        controller, self._controller = self._controller, None
        if controller is not None:
            assert controller.stdin is not None
            assert controller.stdout is not None
            with suppress(BrokenPipeError):
                controller.stdin.close()
            try:
                controller.wait(END_S)
            except subprocess.TimeoutExpired:
                controller.kill()
                controller.wait()
            controller.stdout.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _write(self, wiring: Wiring) -> None:
        """Write the files that the scripts of the hosts read."""
        own = Path(self.directory, "own")
        for place in HIDDEN:
            (own / place.name).mkdir(parents=True)
        at = fstab_field(str(own))
        files = {
            **{name: script(source) for name, source in _SCRIPTS.items()},
            "hosts": hosts_file(self.count, "h"),
            "fabric.fstab": fabric_fstab(self.directory),
            "host.fstab": HOST_FSTAB,
            "late.fstab": (
                f"{SHARED_MEMORY}host-run {at}/run tmpfs mode=755\n"
                f"host-tmp {at}/tmp tmpfs mode=1777\n"
            ),
            "temporary": f"{temporary()}\n",
            "kept": "".join(f"{one}\n" for one in kept([*needed_here(), *self.needed])),
            "bridge.ip": BRIDGE,
            **wiring.files,
            **{f"{node.name}.cores": f"{threads(node)}\n" for node in self.nodes},
        }
        for name, text in files.items():
            Path(self.directory, name).write_text(text)

    def _start(self, wiring: Wiring) -> None:
        """Start the controller and wait until all hosts are there; raises _NotUpError."""
        with Path(self.directory, "errors").open("wb") as errors:
            self._controller = subprocess.Popen(
                ["/bin/sh", f"{self.directory}/pocket.sh", str(self.count), *wiring.program],
                env=self._env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd="/",
                start_new_session=True,
            )
        self.controller = self._controller.pid
        out = self._controller.stdout
        assert out is not None
        if not select.select([out], [], [], START_S)[0]:
            raise _NotUpError(f"nothing after {START_S:g} s")
        if out.readline() != b"up\n":
            raise _NotUpError("it ended at once")

    def _no_files(self, error: OSError) -> MachineError:
        return MachineError(
            f"the files of a pocket cluster cannot be made: {error.strerror}",
            place=str(error.filename or self.directory),
            fix="free some space there, or set TMPDIR to a directory of your own",
        )

    def _last_errors(self) -> str:
        """Return the last two lines of the controller's standard error, "" for none."""
        with suppress(OSError):
            lines = Path(self.directory, "errors").read_text(errors="replace").split("\n")
            return "; ".join([line.strip() for line in lines if line.strip()][-2:])
        return ""

    def _describe(self) -> None:
        """Set `pids` and `hosts`; raises _NotUpError where the first process of one has ended."""
        found = dict(_first_processes(f"{self.directory}/host.sh"))
        if missing := [name for name in self.names if name not in found]:
            raise _NotUpError(f"{missing[0]} ended at once")
        self.pids = tuple(found[name] for name in self.names)
        user = self._own_users(self.pids[0])
        self.hosts = tuple(
            Host(node.name, _entered(self.directory, pid, node, user=user), places=beside())
            for node, pid in zip(self.nodes, self.pids, strict=True)
        )

    def _own_users(self, pid: int) -> bool:
        """Return whether the hosts are in a user namespace of their own."""
        return Path(f"/proc/{pid}/ns/user").readlink() != Path("/proc/self/ns/user").readlink()


class _NotUpError(Exception):
    """The hosts did not start."""


def shares(cores: Sequence[tuple[int, ...]], hosts: int) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """Return the cores of each host: neighbouring ones, as many as others have, or one more.

    With more hosts than cores each has one, in turn.

    >>> shares(((0,), (1,), (2,)), 2), shares(((0,), (1,)), 3)
    ((((0,), (1,)), ((2,),)), (((0,),), ((1,),), ((0,),)))
    """
    if hosts > len(cores):
        return tuple((cores[i % len(cores)],) for i in range(hosts))
    each, more = divmod(len(cores), hosts)
    ends = [(i + 1) * each + min(i + 1, more) for i in range(hosts)]
    return tuple(tuple(cores[begin:end]) for begin, end in zip([0, *ends[:-1]], ends, strict=True))


def threads(node: Node) -> str:
    """Return the hardware threads of a node's cores for taskset: "0,8,1,9"."""
    return ",".join(str(thread) for core in node.cores for thread in core)


def _entered(directory: str, pid: int, node: Node, *, user: bool) -> tuple[str, ...]:
    """Return the argv that starts a shell in the host whose first process is `pid`.

    A process that enters does not inherit that one's cores, so they are set again. In a user
    namespace the shell is root's, and Open MPI is allowed to start as root.
    """
    stat = Path(f"/proc/{pid}/stat").read_text()
    start = stat.rpartition(")")[2].split()[19]
    argv = ["/bin/sh", f"{directory}/enter.sh", str(pid), start]
    argv += ["taskset", "-c", threads(node), "nsenter", "-t", str(pid)]
    argv += ["-U", "--preserve-credentials"] if user else []
    argv += ["-m", "-u", "-n", "-i", "-p", "--"]
    argv += ["env", *(f"{name}={value}" for name, value in ROOT.items())] if user else []
    return (*argv, "/bin/sh")


def _first_processes(script: str) -> Iterable[tuple[str, int]]:
    """Yield (name, pid) of the first process of each namespace of pids that `script` made."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with suppress(OSError):
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            ours = len(words) > 4 and words[:2] == ["/bin/sh", script]
            # A shell forks before it executes a program: the copy has the same words, not pid 1.
            if ours and _FIRST.search((entry / "status").read_text()):
                yield words[3], int(entry.name)


def _check(hosts: int, path: str) -> None:
    """Raise UserError where so many hosts cannot be made here."""
    place = f"pocket:{hosts}"
    if not 1 <= hosts <= MOST_HOSTS:
        raise UserError(
            f"{hosts} hosts", place=place, fix=f"ask for 1 to {MOST_HOSTS}: a bridge takes no more"
        )
    ask = partial(capture, env={"PATH": path})
    if reason := containers.check(Container("namespace"), ask):
        cause, _, fix = reason.rpartition(": ")
        fix = fix.partition(", or use each")[0]
        raise UserError(f"no pocket cluster here: {cause}", place=place, fix=fix)
    if find_program("taskset", path) is None:
        raise UserError("`taskset` is not installed", place=place, fix="install util-linux")
