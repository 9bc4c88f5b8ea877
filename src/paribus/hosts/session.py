"""A dialogue with a shell on a host, limited in time and bytes: send a script, read lines.

Session is one, Crowd is one with each of many hosts at once.
"""

from __future__ import annotations

import os
import secrets
import select
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import IO, TypeVar

from paribus.border import search_path
from paribus.hosts.reached import Host

AT_ONCE = 64
"""Sessions that are open at once."""

MOST_BYTES = 1 << 20
"""Bytes that a host may print in one session."""

END_S = 1.0
"""Seconds that a shell has to end by itself, and after SIGTERM."""

_STDERR_BYTES = 4096

T = TypeVar("T")


class SessionError(Exception):
    """A host did not answer as a shell does: `kind` is "silent", "ended" or "flood".

    `stderr`: the last of what it printed there; `code`: the exit code of its shell (None: it had to
    be killed).
    """

    def __init__(self, kind: str, stderr: str = "", code: int | None = None) -> None:
        super().__init__(f"{kind}: {stderr}")
        self.kind, self.stderr, self.code = kind, stderr, code


class Session:
    """A shell on `host`, from `start` to `end`, for `timeout_s` at most.

    The other methods raise SessionError when the host is silent until then, ends, or prints more
    than `most` bytes. The shell reads its script as it comes: a line for a `read` in it may be sent
    only after the script has printed that it waits for it. `out`: what was printed and not yet
    returned; `err`: all of standard error; `code`: the exit code of the shell.
    """

    def __init__(self, host: Host, timeout_s: float, most: int = MOST_BYTES) -> None:
        self.host = host
        self.timeout_s = timeout_s
        self.out, self.err = bytearray(), bytearray()
        self.code: int | None = None
        self._deadline = 0.0
        self._process: subprocess.Popen[bytes] | None = None
        self._left = most
        self._silent: set[int] = set()

    def start(self) -> None:
        """Start the shell."""
        self._deadline = time.monotonic() + self.timeout_s
        try:
            # In a session of its own it has no terminal on which ssh could ask for a password.
            self._process = subprocess.Popen(
                self.host.shell,
                env={**os.environ, "PATH": search_path(os.environ.get("PATH"))},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            raise SessionError("ended", f"{self.host.shell[0]}: {error.strerror}", 255) from None
        for stream in self._streams():
            os.set_blocking(stream, False)

    def end(self, within_s: float = END_S) -> None:
        """End the shell by closing its input, so that it can clean up, then by signals."""
        if self._process is None:
            return
        process, stdin, stdout, stderr = self._parts()
        with suppress(OSError):
            stdin.close()
        for number in (0, signal.SIGTERM, signal.SIGKILL):
            self._signal(number)
            with suppress(subprocess.TimeoutExpired):
                self.code = process.wait(within_s)
                break
        # Not to its end: a connection in the background may keep it open.
        self.err += stderr.read(_STDERR_BYTES) or b""
        stdout.close()
        stderr.close()

    def kill(self) -> None:
        """End the session at once; a thread that waits for it gets a SessionError."""
        self._signal(signal.SIGTERM)

    def _signal(self, number: int) -> None:
        if self._process is not None and self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    def send(self, text: str) -> None:
        """Write `text` to the input of the shell."""
        data = memoryview(text.encode("utf-8", "surrogateescape"))
        into = self._streams()[0]
        while data:
            self._wait(write=True)
            try:
                data = data[os.write(into, data[:65536]) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                while True:  # Why it ended is on standard error.
                    self._wait()

    def line(self) -> str:
        """Return the next line that the host prints."""
        while b"\n" not in self.out:
            self._wait()
        line, _, self.out = self.out.partition(b"\n")
        return line.decode(errors="replace").rstrip("\r")

    def until(self, mark: str) -> list[str]:
        """Return the lines before the line `mark`."""
        lines = []
        while (line := self.line()) != mark:
            lines.append(line)
        return lines

    def answer(self, commands: str, mark: str = "") -> list[str]:
        """Return the lines that `commands` print, framed by `mark`: no banner is among them."""
        mark = mark or nonce()
        self.send(f"echo; echo {mark}; {commands}\necho {mark}\n")
        self.until(mark)
        return self.until(mark)

    def hear(self, last: str) -> None:
        """Wait until the host has printed a text that ends in `last`."""
        while not self.out.endswith(last.encode()):
            self._wait()

    def _parts(self) -> tuple[subprocess.Popen[bytes], IO[bytes], IO[bytes], IO[bytes]]:
        one = self._process
        assert one is not None
        assert one.stdin is not None
        assert one.stdout is not None
        assert one.stderr is not None
        return one, one.stdin, one.stdout, one.stderr

    def _streams(self) -> tuple[int, int, int]:
        _, stdin, stdout, stderr = self._parts()
        return stdin.fileno(), stdout.fileno(), stderr.fileno()

    def _wait(self, *, write: bool = False) -> None:
        """Read what there is, until something was read or (with `write`) can be written."""
        into, out, err = self._streams()
        left = self._deadline - time.monotonic()
        heard = {out, err} - self._silent
        reads, writes, _ = select.select(heard, [into] if write else [], [], max(0.0, left))
        if not reads and not writes:
            raise SessionError("silent", self._last_errors())
        for stream in reads:
            data = os.read(stream, 65536)
            self._left -= len(data)
            (self.out if stream == out else self.err).extend(data)
            if not data:
                self._silent.add(stream)
        if self._left < 0:
            raise SessionError("flood", self._last_errors())
        if out in self._silent:
            raise self._ended()

    def _ended(self) -> SessionError:
        process, _, _, stderr = self._parts()
        with suppress(subprocess.TimeoutExpired):
            self.code = process.wait(1.0)
        with suppress(BlockingIOError):
            self.err += os.read(stderr.fileno(), _STDERR_BYTES)
        return SessionError("ended", self._last_errors(), self.code)

    def _last_errors(self) -> str:
        return self.err[-_STDERR_BYTES:].decode(errors="replace").strip()


def nonce() -> str:
    """Return a random word, to frame answers by."""
    return secrets.token_hex(8)


class Crowd:
    """A session with each of `hosts`, all open at once, for as long as the context lasts.

    A host whose session has failed is left out: `each` returns its SessionError from then on. The
    sessions are ended when the caller is interrupted.
    """

    def __init__(self, hosts: Sequence[Host], timeout_s: float) -> None:
        self.sessions = [Session(host, timeout_s) for host in hosts]
        self._errors: list[SessionError | None] = [None] * len(hosts)
        self._pool = ThreadPoolExecutor(max(1, len(hosts)))

    def __enter__(self) -> Crowd:
        self.each(lambda _, session: session.start())
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            for session in self.sessions:
                session.kill()
        with self._pool:
            list(self._pool.map(Session.end, self.sessions))

    def each(self, talk: Callable[[int, Session], T]) -> list[T | SessionError]:
        """Call `talk` with the number and session of each host, all at once; return its results.

        A SessionError takes the place of a result; any other exception of `talk` is raised.
        """

        def one(number: int) -> T | SessionError:
            error = self._errors[number]
            if error is None:
                try:
                    return talk(number, self.sessions[number])
                except SessionError as failed:
                    error = self._errors[number] = failed
            return error

        try:
            return list(self._pool.map(one, range(len(self.sessions))))
        except BaseException:
            for session in self.sessions:
                session.kill()
            raise


def with_each(
    hosts: Sequence[Host], timeout_s: float, talk: Callable[[Session], T]
) -> list[T | SessionError]:
    """Return the result of `talk` for a session with each host, in their order, AT_ONCE at once."""
    found: list[T | SessionError] = []
    for first in range(0, len(hosts), AT_ONCE):
        with Crowd(hosts[first : first + AT_ONCE], timeout_s) as crowd:
            found += crowd.each(lambda _, session: talk(session))
    return found
