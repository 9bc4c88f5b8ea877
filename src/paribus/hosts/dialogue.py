"""Questions to a host's shell: what is sent, and an answer that is whole, or an error.

Nothing that a host prints is obeyed, and none of it is taken for an answer but what follows the
token of the question.
"""

from __future__ import annotations

import os
import secrets
import selectors
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib import resources
from typing import NamedTuple

from paribus.border import search_path
from paribus.core import UserError
from paribus.hosts.reached import Host

ANSWER_S = 60.0
"""Seconds that a host may take for a question that needs no time by itself."""

MOST = 2**20
"""Bytes of an answer that are read, unless more are asked for."""

END_S = 3.0
"""Seconds that a shell has to end what it began, after nobody listens any more."""

_LATE = "no answer within"
_PIECE = 4096  # what a pipe that is ready takes without waiting (PIPE_BUF)


class Answer(NamedTuple):
    """The values of an answer, and by their order what commands wrote to standard error."""

    values: list[str]
    errors: list[str]


class _Heard(NamedTuple):
    exit_code: int
    stdout: bytes
    stderr: bytes
    why: str


def ask(host: Host, question: str, *, timeout_s: float = ANSWER_S, most: int = MOST) -> Answer:
    """Return what `host` answers to `question`, calls of functions of sh/machine.sh.

    Raises UserError, naming the host, where it cannot be reached, does not answer in time, or
    answers anything but values: a banner, half an answer, more than `most` bytes.
    """
    token, last = secrets.token_hex(16), secrets.token_hex(16)
    script = f"{{\ntoken={token} last={last}\n{_functions()}\n{question}\nfinish\n}}\n"
    sent = script.encode("utf-8", "surrogateescape")
    heard = _talk(host.shell, sent, last.encode(), timeout_s, most)
    out, err = (text.decode("utf-8", "surrogateescape") for text in (heard.stdout, heard.stderr))
    answer, whole, _ = out.partition(last)
    before, *values = answer.split(token)
    said = _short(err.replace(token, " ").strip().rpartition("\n")[2])
    if heard.why:
        raise _error(host, f"{heard.why}{f': {said}' if said else ''}")
    if heard.exit_code and not (values or whole):
        raise _error(host, f"its shell ended with exit code {heard.exit_code}: {said}")
    if before:
        raise _error(
            host,
            f"it prints before it answers: {_short(before)}",
            "let start-up files of its shell (.bashrc, .profile) print only where [ -t 0 ]",
        )
    if not whole:
        raise _error(host, f"its answer is not whole: {_short(said or out.replace(token, ' '))}")
    return Answer(values, err.split(token)[1::2])


def not_understood(host: Host, values: list[str]) -> UserError:
    """Return the error for an answer of `host` that is not one to the question."""
    return _error(host, f"it answered something else than was asked: {_short(' '.join(values))}")


def quoted(*words: str) -> str:
    """Return `words` as sh reads them, whatever is in them.

    >>> print(quoted("a b", "$HOME", ""))
    'a b' '$HOME' ''
    """
    if any("\0" in word for word in words):
        raise UserError("holds a NUL character", place=_short(" ".join(words)), fix="remove it")
    return shlex.join(words)


@cache
def _functions() -> str:
    return (resources.files("paribus.hosts") / "sh" / "machine.sh").read_text()


def _error(host: Host, cause: str, fix: str = "") -> UserError:
    command = f"echo 'echo there' | {shlex.join(host.shell)}"
    return UserError(
        cause, place=host.name, fix=fix or f"this must print nothing but there: {command}"
    )


def _short(text: str) -> str:
    return " ".join(text.replace("\0", " ").split())[:200]


def _talk(argv: tuple[str, ...], script: bytes, last: bytes, timeout_s: float, most: int) -> _Heard:
    """Return what `argv` prints up to `last`, `script` being its standard input, which stays open.

    `why` says what was wrong with the way to it, "" for nothing.
    """
    env = {**os.environ, "PATH": search_path(os.environ.get("PATH"))}
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(
            argv, stdin=pipe, stdout=pipe, stderr=pipe, env=env, bufsize=0, start_new_session=True
        )
    except OSError as error:
        return _Heard(127, b"", b"", f"{argv[0]} cannot be started: {error.strerror}")
    assert process.stdin
    assert process.stdout
    assert process.stderr
    out, err = bytearray(), bytearray()
    heard = {process.stdout.fileno(): out, process.stderr.fileno(): err}
    try:
        why = _exchange(process, script, last, heard, time.monotonic() + timeout_s, most)
        if why == _LATE:
            why += f" {timeout_s:g} s"
    finally:
        process.stdin.close()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        # Not to its end: a connection in the background may keep it open.
        os.set_blocking(process.stderr.fileno(), False)
        err += process.stderr.read(most) or b""
        process.stdout.close()
        process.stderr.close()
    return _Heard(process.returncode, bytes(out), bytes(err), why)


def _exchange(
    process: subprocess.Popen[bytes],
    script: bytes,
    last: bytes,
    heard: Mapping[int, bytearray],
    deadline: float,
    most: int,
) -> str:
    """Send `script` and gather what comes up to `last`, or the end; returns what went wrong."""
    left = memoryview(script)
    assert process.stdin
    assert process.stdout
    stdout = process.stdout.fileno()
    with selectors.DefaultSelector() as ready:
        ready.register(process.stdin, selectors.EVENT_WRITE)
        for one in heard:
            ready.register(one, selectors.EVENT_READ)
        while (seconds := deadline - time.monotonic()) > 0:
            for key, _ in ready.select(seconds):
                if key.fileobj is process.stdin:
                    try:
                        left = left[os.write(key.fd, left[:_PIECE]) :]
                    except BrokenPipeError:
                        left = left[:0]
                    if not left:
                        ready.unregister(process.stdin)
                    continue
                piece = os.read(key.fd, 2**16)
                heard[key.fd].extend(piece)
                if len(heard[key.fd]) > most:
                    return f"it prints more than {most} bytes"
                if not piece:
                    ready.unregister(key.fd)
                if key.fileobj == stdout and (not piece or heard[stdout].endswith(last)):
                    return ""
    return _LATE
