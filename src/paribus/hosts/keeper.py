"""The keeper of a host: one connection for a whole sitting, through which everything is run there.

A login for each launch would run login scripts each time. The script sh/keeper.sh reads lines such
as "start IDENT BYTES" from its input and answers with "done IDENT ..."; when its input is closed,
for whatever reason, it ends all that it runs and removes the directory of the sitting.
"""

from __future__ import annotations

import io
import os
import re
import select
import shlex
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from importlib.resources import files
from typing import IO, cast

from paribus.border import search_path
from paribus.core import MachineError, Room, UserError
from paribus.hosts.guard import room_of
from paribus.hosts.reached import Host
from paribus.hosts.ssh import why_no_connection
from paribus.launch.space import lacking

# Clients: processes of this machine that run a shell on another, as `Host.shell` says.
#
# A client reads its script from stdin, which stays open: what it runs there ends when stdin is
# closed, also by the death of this process.

_KEPT = (
    *("HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "SSH_AUTH_SOCK", "KRB5CCNAME"),
    "SLURM_CONF",
)
"""The variables that a client inherits beside PATH: ssh and srun need them; srun hands them on.

kubectl inherits all: it passes none to the pod, and its helpers, which fetch tokens, need some.
"""


def start_client(
    argv: Sequence[str], stdout: IO[bytes] | int, stderr: IO[bytes] | int
) -> subprocess.Popen[bytes]:
    """Start a client and return it; Ctrl-C in the terminal does not reach it."""
    every = argv[0] == "kubectl"
    env = {key: value for key, value in os.environ.items() if every or key in _KEPT}
    return subprocess.Popen(
        list(argv),
        env={**env, "PATH": search_path(os.environ.get("PATH"))},
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
        bufsize=0,
    )


def send(client: subprocess.Popen[bytes], text: str) -> None:
    """Write all of `text` to the stdin of a client; nothing happens if it has ended."""
    assert client.stdin is not None
    rest = memoryview(text.encode())
    with suppress(BrokenPipeError, ValueError):  # ValueError: closed by another thread
        while rest:
            rest = rest[client.stdin.write(rest) :]


def close(client: subprocess.Popen[bytes]) -> None:
    """Close the stdin of a client: what it runs there ends."""
    if client.stdin is not None:
        with suppress(BrokenPipeError):
            client.stdin.close()


def ended(client: subprocess.Popen[bytes], within_s: float) -> bool:
    """Return whether a client ends in time; Popen.wait would pause between its looks."""
    if client.poll() is not None:
        return True
    pid = os.pidfd_open(client.pid)
    try:
        poll = select.poll()
        poll.register(pid, select.POLLIN)
        poll.poll(max(0.0, within_s) * 1000)
    finally:
        os.close(pid)
    return client.poll() is not None


def end(client: subprocess.Popen[bytes], within_s: float) -> None:
    """Close the stdin of a client, and kill it if it does not end in time."""
    close(client)
    if not ended(client, within_s):
        client.kill()
        client.wait()


OPEN_S = 30.0
"""Seconds until a host must have answered: ssh's own limit is 10 for each step of the way."""

AGAIN_S = 1.0
"""Seconds before a step that was refused for now is asked for again."""

END_S = 15.0
"""Seconds that a keeper may take to wait for its guards and to remove its directory."""

HANG_UP_S = 1.0
"""Seconds for which another thread's write is waited for before the input is closed."""

_REFUSED_FOR_NOW = re.compile(r"Unable to create step for job.*: (Memory required|Requested nodes)")
"""Printed by srun at times for a job that has its nodes, such as while a controller restarts."""

_ASKED = re.compile(rb"ask ([0-9]{1,9}-[0-9]{1,9}) +([0-9]{1,8})")
"""From sh/keeper.sh: the id of a request by an agent, and the bytes of its text, which follows."""

_DONE = re.compile(rb"done ([0-9a-f]+\.[0-9]+) ([0-9]+) ([0-9]+) ([0-9]+) ([0-9]+)")
"""From sh/keeper.sh: a task's ident and exit code, and the bytes of stdout, stderr and report,
which follow in this order."""

Asked = Callable[["Keeper", str, str], None]
"""Called with the keeper, the id of a request by an agent, and its text."""


@cache
def shell_script(name: str) -> str:
    """Return the text of one of the shell scripts for nodes."""
    return files("paribus.hosts").joinpath("sh", name).read_text(encoding="utf-8")


class Task:
    """A script that a keeper runs; `over` is set when it has ended, or the connection has.

    `out`, `err`: called with what it printed, once it has ended. `report`: what its guard wrote,
    empty where the connection ended first, which is `lost` then.
    """

    def __init__(self, out: Callable[[bytes], object], err: Callable[[bytes], object]) -> None:
        self.out, self.err = out, err
        self.over = threading.Event()
        self.report = b""
        self.lost = True


class Keeper:
    """One host in a sitting. `asked` is called in a thread with each request of an agent.

    Set by `open`: `scratch`, the directory of the sitting there; `boot`, the boot_id; `machine`,
    the network namespace, and host name with machine-id; `rooms`, the space of file systems.
    """

    def __init__(self, host: Host, node: int, asked: Asked) -> None:
        self.host, self.node, self.asked = host, node, asked
        self.scratch = self.boot = ""
        self.machine: tuple[str, ...] = ()
        self.rooms: list[Room] = []
        self._client: subprocess.Popen[bytes] | None = None
        self._printed: list[str] = []  # lines before the answer, such as a banner
        self._failed = ""
        self._answered = threading.Event()
        self._nonce = b""
        self._writing = threading.Lock()
        self._tasks: dict[str, Task] = {}

    def open(self, name: str, nonce: str, parent: str = "", *, again: bool = False) -> None:
        """Connect, and make the directory `name` of the sitting below `parent`, or in TMPDIR there.

        With `again` the directory may exist. A scheduler that refuses a step for now is asked again
        for OPEN_S. Raises UserError with the fix.
        """
        deadline = time.monotonic() + OPEN_S
        while error := self._begin(name, nonce, parent, again=again):
            if not _REFUSED_FOR_NOW.search(error.cause) or time.monotonic() > deadline:
                raise error
            time.sleep(AGAIN_S)
        for room in self.rooms:
            if lack := lacking(room):
                self.close()
                raise MachineError(
                    lack, place=f"{self.host.name}:{room.place}", fix="free some space there"
                )

    def _begin(self, name: str, nonce: str, parent: str, *, again: bool) -> UserError | None:
        """Try to connect once; return why it failed, None if it did not."""
        self.drop()
        self.rooms, self._printed, self._failed, self.scratch = [], [], "", ""
        self._answered.clear()
        self._nonce = nonce.encode() + b" "
        with tempfile.TemporaryFile() as errors:
            argv = self.host.master or self.host.shell
            self._client = start_client(argv, subprocess.PIPE, errors)
            assert self._client.stdout is not None
            self._tasks = {}
            parts = (self._client.stdout, self._tasks)
            threading.Thread(target=self._read, args=parts, daemon=True).start()
            send(self._client, _opening(name, nonce, parent, self.node, again=again))
            answered = self._answered.wait(OPEN_S)
            errors.seek(0)
            printed = errors.read(1 << 16).decode(errors="replace")
            if not self.scratch or self._printed or self._failed or not answered:
                end(self._client, 1.0 if self._failed or not answered else END_S)
                return self._why(printed, answered)
        return None

    def alive(self) -> bool:
        """Return whether the connection is open."""
        return self._client is not None and self._client.poll() is None

    def start(self, ident: str, script: str, task: Task) -> None:
        """Run a script there as `ident`; its output goes where `task` says."""
        self._tasks[ident] = task
        self._send(f"start {ident} {len(script.encode())}\n{script}")
        if not self.alive():
            task.over.set()

    def stop(self, ident: str) -> None:
        """Begin to end what was started as `ident`."""
        self._send(f"stop {ident}\n")

    def reply(self, ident: str, code: int, printed: bytes) -> None:
        """Answer the request `ident` of an agent: the exit code, and what was `printed`."""
        text = "".join(
            chr(byte) if chr(byte).isascii() and chr(byte).isalnum() else f"\\0{byte:03o}"
            for byte in printed
        )
        self._send(f"reply {ident} {code} {text}\n")

    def _send(self, text: str) -> None:
        if self._client is not None:
            with self._writing:
                send(self._client, text)

    def drop(self) -> None:
        """End the connection at once."""
        if self._client is not None:
            self._client.kill()  # ends a write that blocks
            self.hang_up()
            end(self._client, 0.0)

    def close(self) -> None:
        """End the connection, and wait until the directory is removed there."""
        self.hang_up()
        if self._client is not None:
            end(self._client, END_S)

    def hang_up(self) -> None:
        """Begin to end the connection, without waiting."""
        # Never during a write of another thread: the file's number could be reused by then.
        if self._client is not None and self._writing.acquire(timeout=HANG_UP_S):
            close(self._client)
            self._writing.release()

    def _read(self, stream: IO[bytes], tasks: dict[str, Task]) -> None:
        """Handle all that the host prints, until it closes its output; run in a thread."""
        heard = io.BufferedReader(cast(io.RawIOBase, stream))
        with heard:
            while line := heard.readline():
                if not line.startswith(self._nonce):
                    if not self._answered.is_set():
                        self._printed.append(line.decode(errors="replace"))
                    continue
                words = line[len(self._nonce) :].rstrip()
                if asked := _ASKED.fullmatch(words):
                    text = heard.read(int(asked[2]))
                    self.asked(self, asked[1].decode(), text.decode(errors="replace"))
                elif done := _DONE.fullmatch(words):
                    task = tasks.pop(done[1].decode(), None) or Task(len, len)
                    _pass_on(heard, int(done[3]), task.out)
                    _pass_on(heard, int(done[4]), task.err)
                    task.report = heard.read(int(done[5]))
                    task.lost = False
                    task.over.set()
                else:
                    self._hear(words.decode(errors="replace"))
        for task in tasks.values():
            task.over.set()
        self._answered.set()

    def _hear(self, words: str) -> None:
        """Handle a line of sh/open.sh: room, machine, failed or ready."""
        word, _, rest = words.partition(" ")
        if word == "room" and (room := room_of(rest)):
            self.rooms.append(room)
        elif word == "machine":
            self.machine = tuple(rest.split(" ", 1))
        elif word == "failed":
            self._failed = rest
        elif word == "ready":
            self.boot, _, self.scratch = rest.partition(" ")
            self._answered.set()

    def _why(self, printed: str, answered: bool) -> UserError:
        """Return the error for a sitting that could not begin; `printed` is from stderr."""
        name, lines = self.host.name, [line for line in self._printed if line.strip()]
        if self._failed:
            detail = f" ({lines[-1].strip()})" if lines else ""
            return MachineError(
                f"no scratch directory can be created: {self._failed}{detail}",
                place=name,
                fix="free or repair that place, or set TMPDIR for logins there",
            )
        if self.scratch and lines:
            return UserError(
                f"a login script there prints {lines[0].strip()[:80]!r} on standard output",
                place=name,
                fix="let it print only for a terminal: `case $- in *i*) ... ;; esac` in .bashrc",
            )
        if not answered:
            return MachineError(
                f"no answer within {OPEN_S:.0f} s",
                place=name,
                fix="see whether `ssh` there hangs: a login script that waits, or a full disk",
            )
        return why_no_connection(name, printed, lines, self.host.shell)


def _pass_on(heard: IO[bytes], size: int, sink: Callable[[bytes], object]) -> None:
    """Pass `size` bytes from `heard` to `sink`, in pieces; an error of the sink is ignored."""
    while size > 0 and (piece := heard.read(min(size, 1 << 20))):
        size -= len(piece)
        with suppress(OSError, ValueError):
            sink(piece)


def _opening(name: str, nonce: str, parent: str, node: int, *, again: bool) -> str:
    """Return the script that opens a sitting: settings, the scripts to write there, sh/open.sh."""
    settings = {"name": name, "nonce": nonce, "parent": parent, "node": str(node)}
    settings["again"] = "yes" if again else ""
    scripts = "\n".join(
        f"cat >\"$scratch/{one}\" <<'{nonce}' || return\n{shell_script(one)}{nonce}"
        for one in ("guard.sh", "agent.sh", "keeper.sh")
    )
    return (
        "".join(f"{key}={shlex.quote(value)}\n" for key, value in settings.items())
        + f'written() {{\n{scripts}\nchmod 700 "$scratch/agent.sh"\n}}\n'
        + shell_script("open.sh")
    )
