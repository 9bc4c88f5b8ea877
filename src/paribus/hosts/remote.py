"""A station of hosts: launches are run on the first, which starts the ranks on the others.

Launchers start their daemons by an agent (sh/agent.sh), which takes the place of ssh: it asks
Paribus, which runs the command over its own connection to that host. So no host needs to reach
another for that, nor a key. Everything runs inside a guard (sh/guard.sh), which ends it with the
connection.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from paribus.core import Command, Completed, HostError, LaunchError, MachineError, UserError
from paribus.hosts.guard import (
    Guarded,
    Report,
    bound_on,
    busiest,
    carried_by,
    energy_of,
    report_of,
    script,
)
from paribus.hosts.keeper import Keeper, Task, shell_script, start_client
from paribus.hosts.reached import Host
from paribus.launch.local import LocalStation
from paribus.launch.machine import of_each
from paribus.launch.space import said_of
from paribus.launch.station import Lease

AT_ONCE = 64
"""Hosts that are connected to at the same time."""

ENDING_S = 6.0
"""Seconds that a guard may take to end its command: 2 after TERM, then KILL, then its files."""

LINGER_S = 1.0
"""Seconds that daemons on other nodes may take to end by themselves, after the launcher."""

AGAIN_S = 5.0
"""Seconds for which a lost connection is tried again: even a host that answers may drop one."""

PROBE_S = 15.0
"""Seconds in which a node must answer to count as there."""

REPLY_BYTES = 4096
"""Last bytes of a daemon's output that its launcher gets."""

_REFUSED = 255
_SILENT = "its guard was ended, or could not write, as where the disk is full"


@dataclass(slots=True)
class _Part:
    """A command that runs on one node for a launch; `printed`: the last bytes of its output.

    `silent`: its guard ended without a report while the launch went on.
    """

    guarded: Guarded
    task: Task
    printed: bytes = b""
    silent: bool = False

    @property
    def node(self) -> int:
        """The number of its host."""
        return self.guarded.node

    def keep(self, piece: bytes) -> None:
        """Add `piece` to its output, of which the last REPLY_BYTES are kept."""
        self.printed = (self.printed + piece)[-REPLY_BYTES:]


@dataclass(slots=True)
class _Launch:
    """The launch in flight: its `parts`, the launcher first. `closed`: no part is added."""

    command: Command
    name: str
    nonce: str
    parts: list[_Part] = field(default_factory=list)
    closed: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)


class HostStation:
    """Hosts: one launch at a time, on all of them. Use as a context manager.

    `local`: a station of this machine, entered before and left after. `scratch`: the directory of
    the sitting, the same path on every host. `agent`: the program by which launchers start commands
    on other hosts. `lease`: set where a scheduler lends the hosts. `asleep`: why they do not answer
    yet (guests.py).
    """

    lease: Lease | None = None
    asleep: MachineError | None = None

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
    def boots(self) -> tuple[str, ...]:
        """The boot_id of each host, once entered."""
        return tuple(one.boot for one in self._keepers)

    @property
    def machines(self) -> frozenset[tuple[str, ...]]:
        """The machine of each host: boot_id, network namespace, name; empty if one is not known."""
        found = [(one.boot, *one.machine) for one in self._keepers if all(one.machine)]
        return frozenset(found if len(found) == len(self.hosts) else ())

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
            # The path must be the same on all hosts: it begins with the first one's TMPDIR.
            first.open(self._name, self._nonce)
            self.scratch = first.scratch
            of_each(others, lambda one: one.open(self._name, self._nonce, self._parent()), AT_ONCE)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *_: object) -> None:
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
            out, err = open(stdout, "wb"), open(stderr, "wb")  # noqa: SIM115, PTH123
        except OSError as error:
            reason = said_of(error.errno or 0, f"{error.strerror}: {error.filename}")
            fix = "free some space there"
            raise MachineError(f"no place for output: {reason}", place=stdout, fix=fix) from error
        launch = _Launch(command, name, secrets.token_hex(16))
        guarded = Guarded(command, self.scratch, name, launch.nonce, 0, 0, cwd=cwd, stay=stay)
        with out, err:
            main = _Part(guarded, Task(out.write, err.write))
            launch.parts.append(main)
            self._launch = launch
            try:
                self._keepers[0].start(guarded.ident, script(guarded), main.task)
                timed_out = not main.task.over.wait(timeout_s)
            finally:
                # Also after an interrupt: the launch ends before the exception is passed on.
                self._end(launch)
                self._launch = None
        return self._completed(launch, timed_out)

    def cancel(self) -> None:
        """End the launch in flight, if there is one, and all that it started."""
        launch = self._launch
        if launch is not None:
            self._keepers[0].stop(launch.parts[0].guarded.ident)

    def check_room(self, *others: str) -> None:
        """Raise MachineError unless a launch has room to write on this machine, and in `others`.

        The hosts are asked when the sitting begins and after a launch that failed.
        """
        self._local.check_room(*others)

    def check_machines(self, place: str) -> None:
        """Raise UserError, of `place`, where two hosts are one machine under two names.

        Hosts with the same boot_id are one machine if they share a network namespace, or a name and
        a machine-id; pocket hosts and containers share neither.
        """
        seen: dict[tuple[str, int, str], str] = {}
        for keeper in self._keepers:
            for kind, value in enumerate(keeper.machine if all(keeper.machine) else ()):
                name = keeper.host.name
                first = seen.setdefault((keeper.boot, kind, value), name)
                if first != name:
                    raise UserError(
                        f"{first} and {name} are one machine under two names",
                        place=place,
                        fix="name each machine once; `ranks_per_host` or slots=N in a hostfile"
                        " place several ranks on it",
                    )

    # --- the end of a launch ---------------------------------------------------------------

    def _end(self, launch: _Launch) -> None:
        """End the launcher if it goes on, and the daemons that do not end by themselves."""
        main = launch.parts[0]
        if not main.task.over.is_set():
            self._keepers[0].stop(main.guarded.ident)
            main.task.over.wait(ENDING_S)
        with launch.lock:
            launch.closed = True
        daemons = launch.parts[1:]
        _wait(daemons, LINGER_S)
        for part in daemons:
            if not part.task.over.is_set():
                self._keepers[part.node].stop(part.guarded.ident)
        _wait(daemons, ENDING_S)

    def _completed(self, launch: _Launch, timed_out: bool) -> Completed:
        """Return how a launch ended, by the reports of its guards; raises as `run`."""
        lost = sorted({part.node for part in launch.parts if part.task.lost})
        if lost:
            self._account(launch, lost)
        known = []
        boots, names = self.boots, [one.name for one in self.hosts]
        cores = bound_on(launch.command.cores, names, boots)
        for part in launch.parts:
            report = report_of(part.task.report, cores[boots[part.node]])
            if report is not None and not report.refused:
                known.append((part.node, report))
            elif part is launch.parts[0] and report is None and timed_out:
                # The launcher could not be ended in time, and its guard was killed.
                return Completed(-signal.SIGKILL, 0.0, timed_out)
            elif part is launch.parts[0] or report is not None or part.silent:
                raise _not_started(self.hosts[part.node], report, part)
        load, beside, cpu_s = busiest(known, boots, names)
        rooms = tuple(
            room._replace(place=f"{self.hosts[node].name}:{room.place}")
            for node, report in known
            for room in report.rooms
        )
        main = known[0][1]
        return Completed(
            *(main.exit_code, main.wall_s, timed_out, cpu_s, None, rooms, load, beside),
            *(carried_by(known, names), energy_of(known, boots)),
        )

    def _account(self, launch: _Launch, nodes: Sequence[int]) -> None:
        """Raise what happened to nodes to which the connection was lost, after clearing them.

        MachineError: no answer any more; HostError: rebooted, or only the connection was lost.
        """
        boots = of_each(nodes, lambda node: self._clear(node, launch.nonce), AT_ONCE)
        for node, boot in zip(nodes, boots, strict=True):
            self._keepers[node].drop()
            if not boot:
                raise MachineError(
                    "the connection was lost in mid-launch, and there is no answer any more",
                    place=self.hosts[node].name,
                    fix="bring the node back, then continue with --resume: every stored launch is"
                    " kept",
                )
        known = [self._keepers[node].boot for node in nodes]
        self._reopen()
        for node, boot, before in zip(nodes, boots, known, strict=True):
            name = self.hosts[node].name
            if boot != before:
                raise HostError(f"{name} was rebooted in mid-launch", place=name)
        name = self.hosts[nodes[0]].name
        raise HostError(f"the connection to {name} was lost in mid-launch", place=name)

    def _clear(self, node: int, nonce: str) -> str:
        """End what is left of a launch on a node; return its boot_id, "" without an answer."""
        client = start_client(self.hosts[node].shell, subprocess.PIPE, subprocess.DEVNULL)
        text = f"nonce={nonce} scratch='{self.scratch}'\n{shell_script('clear.sh')}"
        try:
            answer, _ = client.communicate(text.encode(), PROBE_S)
        except subprocess.TimeoutExpired:
            client.kill()
            client.communicate()
            return ""
        for line in answer.decode(errors="replace").splitlines():
            if line.startswith(f"{nonce} "):
                return line.partition(" ")[2]
        return ""

    def _reopen(self) -> None:
        """Connect again to hosts whose keeper has ended; tries again for AGAIN_S seconds."""
        deadline = time.monotonic() + AGAIN_S
        while gone := [keeper for keeper in self._keepers if not keeper.alive()]:
            try:
                of_each(gone, self._open_again, AT_ONCE)
                return
            except UserError as error:
                if isinstance(error, MachineError) and time.monotonic() < deadline:
                    time.sleep(1.0)
                    continue
                fix = f"{error.fix}; then continue with --resume: every stored launch is kept"
                raise MachineError(error.cause, place=error.place, fix=fix) from error

    def _open_again(self, keeper: Keeper) -> None:
        keeper.open(self._name, self._nonce, self._parent(), again=True)

    def _parent(self) -> str:
        return self.scratch.rpartition("/")[0] or "/"

    # --- what agents ask for ---------------------------------------------------------------

    def _asked(self, keeper: Keeper, ident: str, text: str) -> None:
        """Run the command that an agent asks for, if it belongs to the launch in flight.

        `text` has three lines: the nonce of the launch, the name of a host, the command.
        """
        nonce, name, command = (*text.split("\n", 2), "", "", "")[:3]
        launch, node = self._launch, self._node(name)
        if launch is None or not secrets.compare_digest(nonce.encode(), launch.nonce.encode()):
            keeper.reply(ident, _REFUSED, b"paribus: no launch is in flight that asks for this")
            return
        if node is None or not command:
            reason = f"paribus: {name} is not a host of this arm"
            keeper.reply(ident, _REFUSED, reason.encode()[:REPLY_BYTES])
            return
        # By the login shell, as sshd does it.
        run = Command(
            ("/bin/sh", "-c", 'exec "${SHELL:-/bin/sh}" -c "$1"', "paribus", command),
            files=launch.command.files,
        )
        with launch.lock:
            if launch.closed:
                keeper.reply(ident, _REFUSED, b"")
                return
            number = len(launch.parts)
            guarded = Guarded(run, self.scratch, launch.name, launch.nonce, number, node)
            part = _Part(guarded, Task(len, len))
            part.task.out = part.task.err = part.keep
            launch.parts.append(part)
        arguments = (launch, part, keeper, ident)
        threading.Thread(target=self._follow, args=arguments, daemon=True).start()

    def _follow(self, launch: _Launch, part: _Part, keeper: Keeper, ident: str) -> None:
        """Run a part of a launch, and answer the agent that asked for it; run in a thread."""
        self._keepers[part.node].start(part.guarded.ident, script(part.guarded), part.task)
        part.task.over.wait()
        report = report_of(part.task.report)
        if part.task.lost:
            keeper.reply(ident, _REFUSED, part.printed or b"paribus: the connection was lost")
        elif report is None:
            part.silent = not launch.closed
            keeper.reply(ident, _REFUSED, f"paribus: {_SILENT}".encode())
        elif report.refused:
            keeper.reply(ident, _REFUSED, report.refused.encode()[-REPLY_BYTES:])
        else:
            printed = part.printed.strip() if report.exit_code else b""
            keeper.reply(ident, report.exit_code & 255, printed)

    def _node(self, name: str) -> int | None:
        """Return the number of the host that a launcher names, in full or without the domain."""
        names = [host.name for host in self.hosts]
        if name in names:
            return names.index(name)
        short = [i for i, one in enumerate(names) if one.partition(".")[0] == name]
        return short[0] if len(short) == 1 else None


def _wait(parts: Sequence[_Part], within_s: float) -> None:
    """Wait until all of `parts` are over, `within_s` seconds in all."""
    deadline = time.monotonic() + within_s
    for part in parts:
        part.task.over.wait(max(0.0, deadline - time.monotonic()))


def _not_started(host: Host, report: Report | None, part: _Part) -> UserError | LaunchError:
    """Return the error of a part that its guard did not start, or did not report on."""
    if report is not None and report.program:
        return LaunchError(
            f"the launch could not be started: {report.refused}",
            place=f"{host.name}: {part.guarded.command.argv[0]}",
            fix="check that the program exists there and is executable",
        )
    reason = report.refused if report else _SILENT
    return MachineError(
        f"the launch could not be started: {reason}",
        place=host.name,
        fix="fix this, then continue with --resume: every stored launch is kept",
    )
