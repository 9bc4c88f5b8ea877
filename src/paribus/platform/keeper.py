"""The session that stays on a host for a sitting: connection, directory, what is asked there.

It is the only one that makes a connection; those of launches use it. Where it ends, however that
comes, sh/keeper.sh removes the directory of the sitting.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import tempfile
import threading
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import IO

from paribus.command import Room
from paribus.errors import MachineError, UserError
from paribus.platform.clients import close, end, send, start_client
from paribus.platform.guard import room_of
from paribus.platform.hosts import Host
from paribus.platform.space import lacking
from paribus.platform.ssh import why_no_connection

OPEN_S = 30.0
"""Seconds until a host must have answered: ssh's own limit is 10 for each step of the way."""

END_S = 15.0
"""Seconds that a keeper may take to wait for guards and to remove its directory."""

_ASKED = re.compile(rb"ask ([0-9]{1,9}-[0-9]{1,9}) +([0-9]{1,8})\n")

Asked = Callable[["Keeper", str, str], None]


@cache
def shell_script(name: str) -> str:
    """Return the text of one of the shell scripts for nodes."""
    return files("paribus.platform").joinpath("sh", name).read_text(encoding="utf-8")


class Keeper:
    """One host in a sitting. `asked(keeper, id, text)` hears, in a thread, what an agent asks for.

    After `open`: `scratch` is the directory of the sitting there, `boot` says which start of the
    system it is.
    """

    def __init__(self, host: Host, node: int, asked: Asked) -> None:
        self.host, self.node, self.asked = host, node, asked
        self.scratch = self.boot = ""
        self.rooms: list[Room] = []
        self._client: subprocess.Popen[bytes] | None = None
        self._said: list[str] = []
        self._failed = ""
        self._answered = threading.Event()
        self._nonce = b""
        self._writing = threading.Lock()

    def open(self, name: str, nonce: str, parent: str = "", *, again: bool = False) -> None:
        """Begin the sitting `name` on the host, below `parent` or where its TMPDIR is.

        With `again`, the directory may be there. Raises UserError with the fix.
        """
        self.rooms, self._said, self._failed = [], [], ""
        self._answered.clear()
        self._nonce = nonce.encode() + b" "
        with tempfile.TemporaryFile() as errors:
            argv = self.host.master or self.host.shell
            self._client = start_client(argv, subprocess.PIPE, errors)
            assert self._client.stdout is not None
            reading = threading.Thread(target=self._read, args=(self._client.stdout,), daemon=True)
            reading.start()
            send(self._client, _opening(name, nonce, parent, self.node, again=again))
            answered = self._answered.wait(OPEN_S)
            errors.seek(0)
            printed = errors.read(1 << 16).decode(errors="replace")
            if not self.scratch or self._said or self._failed or not answered:
                end(self._client, 1.0 if self._failed or not answered else END_S)
                raise self._why(printed, answered)
        for room in self.rooms:
            if lack := lacking(room):
                self.close()
                raise MachineError(
                    lack, place=f"{self.host.name}:{room.place}", fix="free some space there"
                )

    def alive(self) -> bool:
        """Return whether the session goes on."""
        return self._client is not None and self._client.poll() is None

    def reply(self, ident: str, code: int, said: bytes) -> None:
        """Answer the agent `ident`: the exit code of what it asked for, and what that printed."""
        text = "".join(
            chr(byte) if chr(byte).isascii() and chr(byte).isalnum() else f"\\0{byte:03o}"
            for byte in said
        )
        client = self._client
        if client is not None:
            with self._writing:
                send(client, f"{ident} {code} {text}\n")

    def close(self) -> None:
        """End the session; the directory is removed there."""
        if self._client is not None:
            end(self._client, END_S)

    def hang_up(self) -> None:
        """Begin to end the session, without waiting."""
        if self._client is not None:
            close(self._client)

    def _read(self, stream: IO[bytes]) -> None:
        """Hear what the host says until it says no more."""
        heard = b""
        while True:
            line, found, rest = heard.partition(b"\n")
            if not found:
                more = stream.read(1 << 16)
                if not more:
                    break
                heard += more
                continue
            heard = rest
            if not line.startswith(self._nonce):
                if not self._answered.is_set():
                    self._said.append(line.decode(errors="replace"))
                continue
            words = line[len(self._nonce) :]
            if asked := _ASKED.fullmatch(words + b"\n"):
                size = int(asked[2])
                while len(heard) < size and (more := stream.read(1 << 16)):
                    heard += more
                text, heard = heard[:size], heard[size:]
                self.asked(self, asked[1].decode(), text.decode(errors="replace"))
            else:
                self._hear(words.decode(errors="replace"))
        stream.close()
        self._answered.set()

    def _hear(self, words: str) -> None:
        word, _, rest = words.partition(" ")
        if word == "room" and (room := room_of(rest)):
            self.rooms.append(room)
        elif word == "failed":
            self._failed = rest
        elif word == "ready":
            self.boot, _, self.scratch = rest.partition(" ")
            self._answered.set()

    def _why(self, printed: str, answered: bool) -> UserError:
        """Return why the sitting could not begin here; `printed` is from stderr."""
        name, said = self.host.name, [line for line in self._said if line.strip()]
        if self._failed:
            detail = f" ({said[-1].strip()})" if said else ""
            return MachineError(
                f"no scratch directory can be created: {self._failed}{detail}",
                place=name,
                fix="free or repair that place, or set TMPDIR for logins there",
            )
        if self.scratch and said:
            return UserError(
                f"a login script there prints {said[0][:80]!r} on standard output, where the"
                " output of launches would be",
                place=name,
                fix="let it print only for a terminal: `case $- in *i*) ... ;; esac` in .bashrc",
            )
        if not answered:
            return MachineError(
                f"no answer within {OPEN_S:.0f} s",
                place=name,
                fix="see whether `ssh` there hangs: a login script that waits, or a full disk",
            )
        return why_no_connection(name, printed, said)


def _opening(name: str, nonce: str, parent: str, node: int, *, again: bool) -> str:
    """Return what the shell of a host is sent to begin a sitting."""
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
