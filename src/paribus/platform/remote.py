"""A station of hosts: launches are carried out on the first, which starts the ranks on the others.

Launchers start their daemons by an agent (sh/agent.sh) that asks Paribus, which carries the command
out over its own connection to the host asked for: no host needs a way to another for that, nor a
key. Everything is carried out inside a guard (sh/guard.sh), which ends it with its connection.
"""

from __future__ import annotations

import os
import secrets
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import TypeVar

from paribus.command import Command, Completed
from paribus.errors import LaunchError, MachineError, UserError
from paribus.model import Facts
from paribus.platform.clients import close, end, ended, send, start_client
from paribus.platform.guard import MOST_SAID, Guarded, Report, report_of, script, take
from paribus.platform.hosts import Host
from paribus.platform.keeper import Keeper
from paribus.platform.local import LocalStation
from paribus.platform.space import said_of
from paribus.probes.load import load_between

T = TypeVar("T")
R = TypeVar("R")

AT_ONCE = 64
"""Hosts that are connected to at the same time."""

ENDING_S = 6.0
"""Seconds that a guard may take to end what it guards: 2 by TERM, then KILL, and the files."""

LINGER_S = 1.0
"""Seconds that daemons on other nodes may take to end by themselves, after the launcher."""

PROBE_S = 15.0
"""Seconds in which a node must answer to count as there."""

REPLY_BYTES = 4096
"""Of what a daemon printed, what its launcher gets to show."""

_REFUSED = 255

_CLEAR = """
for tries in 1 2 3 4 5 6 7 8 9 10; do
    pids=
    for one in $(grep -slF "PARIBUS_LAUNCH=$nonce" /proc/[0-9]*/environ); do
        one=${one#/proc/}
        pids="$pids ${one%/environ}"
    done
    [ -n "$pids" ] || break
    kill -KILL $pids
    sleep 0.1
done 2>/dev/null
tries=0
for one in "$scratch/alive.$nonce".*; do
    while [ -e "$one" ] && [ "$tries" -lt 60 ]; do
        tries=$((tries + 1))
        sleep 0.1
    done
done
read -r boot </proc/sys/kernel/random/boot_id
echo "$nonce $boot"
exit
"""


@dataclass(slots=True)
class _Part:
    """What is carried out on one node for a launch. `report` is None until its guard has said."""

    node: int
    client: subprocess.Popen[bytes]
    report: Report | None = None
    thread: threading.Thread | None = None


@dataclass(slots=True)
class _Launch:
    """The launch in flight: `parts` by number, the launcher's first. `closed`: nothing is added."""

    command: Command
    name: str
    nonce: str
    told: bool
    parts: list[_Part] = field(default_factory=list)
    closed: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)


class HostStation:
    """Hosts: one launch at a time, on all of them. Use as a context manager.

    `local` is a station of this machine, entered before and left after. `scratch` is the directory
    of the sitting on every host, and `agent` starts commands there, for a launcher.
    """

    def __init__(self, hosts: Sequence[Host], local: LocalStation) -> None:
        self.hosts = tuple(hosts)
        self.scratch = ""
        self._local = local
        self._keepers: list[Keeper] = []
        self._launch: _Launch | None = None
        self._name = self._nonce = ""

    @property
    def here(self) -> str:
        """Its directory on this machine."""
        return self._local.here

    @property
    def agent(self) -> str:
        """The path, on every host, of the launch agent."""
        return f"{self.scratch}/agent.sh"

    def __enter__(self) -> HostStation:
        self._name = f"paribus-{os.urandom(4).hex()}"
        self._nonce = secrets.token_hex(16)
        self._keepers = [Keeper(host, i, self._asked) for i, host in enumerate(self.hosts)]
        first, *others = self._keepers
        try:
            # The path is the same everywhere, and the first host says where its TMPDIR is.
            first.open(self._name, self._nonce)
            self.scratch = first.scratch
            _all(others, lambda one: one.open(self._name, self._nonce, self._parent()))
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.cancel()
        for keeper in self._keepers:
            keeper.hang_up()
        for keeper in self._keepers:
            keeper.close()

    def run(
        self,
        command: Command,
        *,
        stdout: str,
        stderr: str,
        timeout_s: float,
        scratch: str,
        cwd: str = "",
        stay: bool = False,
    ) -> Completed:
        """Return how `command` ended on the first host; see station.Station.

        `wall_s` is measured there, to 10 ms. Raises LaunchError when the program could not be
        started or the connection to a node was lost, MachineError when a node lacks what a launch
        needs, or no longer answers.
        """
        parent, _, name = scratch.rpartition("/")
        if parent != self.scratch or not name:
            raise ValueError(f"{scratch} does not lie directly below {self.scratch}")
        self._reopen()
        try:
            out, err = open(stdout, "wb"), open(stderr, "w+b", 0)  # noqa: SIM115, PTH123
        except OSError as error:
            said = said_of(error.errno or 0, f"{error.strerror}: {error.filename}")
            raise MachineError(f"no place for output: {said}", place=stdout) from error
        with out, err:
            told = stat.S_ISREG(os.fstat(err.fileno()).st_mode)
            launch = _Launch(command, name, secrets.token_hex(16), told)
            guarded = Guarded(
                command, self.scratch, name, launch.nonce, 0, 0, cwd=cwd, stay=stay, told=told
            )
            main = _Part(0, start_client(self.hosts[0].shell, out, err))
            launch.parts.append(main)
            self._launch = launch
            try:
                send(main.client, script(guarded))
                timed_out = not ended(main.client, timeout_s)
            finally:
                # Also when interrupted: then the launch ends before that goes on.
                self._end(launch)
                self._launch = None
            if told:
                main.report = take(err, launch.nonce)
        return self._completed(launch, timed_out)

    def cancel(self) -> None:
        """End the launch in flight, if there is one, and all that it started."""
        launch = self._launch
        if launch is not None:
            close(launch.parts[0].client)

    def check_room(self, *others: str) -> None:
        """Raise MachineError unless a launch has room to write on this machine, and in `others`.

        The hosts are asked when the sitting begins and after a launch that failed.
        """
        self._local.check_room(*others)

    # --- the end of a launch ---------------------------------------------------------------

    def _end(self, launch: _Launch) -> None:
        """End the launcher if it goes on, and the daemons that do not end by themselves."""
        main = launch.parts[0]
        end(main.client, ENDING_S)
        with launch.lock:
            launch.closed = True
        threads = [part.thread for part in launch.parts if part.thread is not None]
        _join(threads, LINGER_S)
        for part in launch.parts:
            close(part.client)
        _join(threads, ENDING_S)
        for part in launch.parts:
            if part.client.poll() is None:
                part.client.kill()
        _join(threads, 1.0)

    def _completed(self, launch: _Launch, timed_out: bool) -> Completed:
        main, code = launch.parts[0], launch.parts[0].client.returncode
        silent = [part for part in launch.parts if part.report is None]
        if not launch.told:
            # 255 is ssh's own, and a guard gives no other code than that of its command.
            silent = [p for p in silent if p is not main or code == _REFUSED or code < 0]
        if silent:
            self._account(launch, sorted({part.node for part in silent}), timed_out)
        report = main.report
        if report is None:
            return Completed(128 - code if code > 128 else code, 0.0, timed_out)
        for part in launch.parts:
            if part.report is not None and part.report.refused:
                raise _not_started(self.hosts[part.node], part.report, launch.command.argv[0])
        load, beside, cpu_s = self._busiest(launch)
        rooms = [
            room._replace(place=f"{self.hosts[part.node].name}:{room.place}")
            for part in launch.parts
            if part.report is not None
            for room in part.report.rooms
        ]
        return Completed(
            report.exit_code, report.wall_s, timed_out, cpu_s, None, tuple(rooms), load, beside
        )

    def _busiest(
        self, launch: _Launch
    ) -> tuple[tuple[Facts, Facts], tuple[str, ...], float | None]:
        """Return load, who else was busy, and the launch's own seconds, on the busiest node.

        That is where most was waited for memory, and for cores that others used. Nodes of one start
        of a system are one machine: what the launch used on one is not another's.
        """
        found = []
        for part in launch.parts:
            if (report := part.report) is None:
                continue
            boot = self._keepers[part.node].boot
            same = [p for p in launch.parts if self._keepers[p.node].boot == boot and p.report]
            own = sum(p.report.cpu_s or 0.0 for p in same if p.report)
            grown = load_between(report.before, report.after)
            others = max(0.0, grown.get("load.busy_s", 0.0) - own)
            waited = min(grown.get("load.cpu_pressure_us", 0.0) / 1e6, others)
            waited += grown.get("load.memory_pressure_us", 0.0) / 1e6
            found.append((waited, -part.node, part.node, report, own))
        _, _, node, report, own = max(found, key=lambda one: one[:2])
        name = {"load.node": self.hosts[node].name}
        return ({**report.before, **name}, {**report.after, **name}), report.beside, own

    def _account(self, launch: _Launch, nodes: Sequence[int], timed_out: bool) -> None:
        """Find out what became of nodes whose guards said nothing; raises what it comes to."""
        boots = _all(nodes, lambda node: self._clear(node, launch.nonce))
        for node, boot in zip(nodes, boots, strict=True):
            name = self.hosts[node].name
            if not boot:
                raise MachineError(
                    "the connection was lost in mid-launch, and no answer came within"
                    f" {PROBE_S:g} s",
                    place=name,
                    fix="bring the node back, then continue with --resume: every stored launch is"
                    " kept",
                )
        known = [self._keepers[node].boot for node in nodes]
        self._reopen()
        for node, boot, before in zip(nodes, boots, known, strict=True):
            name = self.hosts[node].name
            if boot != before:
                raise LaunchError(f"{name} was rebooted in mid-launch", place=name)
            if not timed_out:
                raise LaunchError(f"the connection to {name} was lost in mid-launch", place=name)

    def _clear(self, node: int, nonce: str) -> str:
        """End what is left of a launch on a node; return its boot_id, "" if no answer came."""
        client = start_client(self.hosts[node].shell, subprocess.PIPE, subprocess.DEVNULL)
        text = f"nonce={nonce} scratch='{self.scratch}'\n{_CLEAR}"
        try:
            said, _ = client.communicate(text.encode(), PROBE_S)
        except subprocess.TimeoutExpired:
            client.kill()
            client.communicate()
            return ""
        for line in said.decode(errors="replace").splitlines():
            if line.startswith(f"{nonce} "):
                return line.partition(" ")[2]
        return ""

    def _reopen(self) -> None:
        """Connect again to hosts whose keeper has ended."""
        gone = [keeper for keeper in self._keepers if not keeper.alive()]
        if gone:
            _all(gone, lambda one: one.open(self._name, self._nonce, self._parent(), again=True))

    def _parent(self) -> str:
        return self.scratch.rpartition("/")[0] or "/"

    # --- what agents ask for ---------------------------------------------------------------

    def _asked(self, keeper: Keeper, ident: str, text: str) -> None:
        """Carry out what an agent asks for, if it belongs to the launch in flight."""
        nonce, name, command = (*text.split("\n", 2), "", "", "")[:3]
        launch, node = self._launch, self._node(name)
        if launch is None or not secrets.compare_digest(nonce.encode(), launch.nonce.encode()):
            keeper.reply(ident, _REFUSED, b"paribus: no launch is in flight that asks for this")
            return
        if node is None or not command:
            said = f"paribus: {name} is not a host of this arm"
            keeper.reply(ident, _REFUSED, said.encode()[:REPLY_BYTES])
            return
        with launch.lock:
            if launch.closed:
                keeper.reply(ident, _REFUSED, b"")
                return
            client = start_client(self.hosts[node].shell, subprocess.PIPE, subprocess.STDOUT)
            part = _Part(node, client)
            number = len(launch.parts)
            part.thread = threading.Thread(
                target=_follow, args=(part, launch.nonce, keeper, ident), daemon=True
            )
            launch.parts.append(part)
        # As sshd does it: by the login shell.
        run = Command(
            ("/bin/sh", "-c", 'exec "${SHELL:-/bin/sh}" -c "$1"', "paribus", command),
            files=launch.command.files,
        )
        guarded = Guarded(run, self.scratch, launch.name, launch.nonce, number, node)
        part.thread.start()
        send(client, script(guarded))

    def _node(self, name: str) -> int | None:
        """Return the host that a launcher means: its name, or that without the domain."""
        names = [host.name for host in self.hosts]
        if name in names:
            return names.index(name)
        short = [i for i, one in enumerate(names) if one.partition(".")[0] == name]
        return short[0] if len(short) == 1 else None


def _all(several: Sequence[T], do: Callable[[T], R]) -> list[R]:
    """Return what `do` returns of each, AT_ONCE at a time; raises what the first raised."""
    if not several:
        return []
    with ThreadPoolExecutor(min(AT_ONCE, len(several))) as pool:
        return list(pool.map(do, several))


def _follow(part: _Part, nonce: str, keeper: Keeper, ident: str) -> None:
    """Wait for a daemon, and answer the agent that asked for it."""
    said = b""
    assert part.client.stdout is not None
    with part.client.stdout as stream:
        while more := stream.read(1 << 16):
            said = (said + more)[-MOST_SAID:]
    code = part.client.wait()
    close(part.client)
    with suppress(ValueError, KeyError):
        part.report = report_of(said, nonce)
    printed = said.rpartition(f"{nonce}(\n".encode())[0] if part.report else said
    if part.report is None:
        code, printed = _REFUSED, printed or b"paribus: the connection was lost"
    elif part.report.refused:
        code, printed = _REFUSED, part.report.refused.encode()
    with suppress(OSError):
        keeper.reply(ident, code & 255, printed[-REPLY_BYTES:].strip() if code else b"")


def _join(threads: Sequence[threading.Thread], within_s: float) -> None:
    """Wait until all of `threads` have ended, `within_s` seconds in all."""
    deadline = time.monotonic() + within_s
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))


def _not_started(host: Host, report: Report, program: str) -> UserError | LaunchError:
    if report.program:
        return LaunchError(
            f"the launch could not be started: {report.refused}",
            place=f"{host.name}: {program}",
            fix="check that the program exists there and is executable",
        )
    return MachineError(
        f"the launch could not be started: {report.refused}",
        place=host.name,
        fix="fix this, then continue with --resume: every stored launch is kept",
    )
