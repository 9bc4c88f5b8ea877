"""Clients: processes of this machine that run a shell on another, as `Host.shell` says.

A client gets its script on stdin, which then stays open: what goes on there ends when stdin is
closed, also by the death of this process.
"""

from __future__ import annotations

import os
import select
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from typing import IO

from paribus.border import search_path

_KEPT = (
    *("HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "SSH_AUTH_SOCK", "KRB5CCNAME"),
    "SLURM_CONF",
)
"""What a client inherits beside the PATH: what ssh and srun need, and no setting of a launch.

kubectl hands no variable on, and its helpers, which ask a cloud for tokens, need their own.
"""


def start_client(
    argv: Sequence[str], stdout: IO[bytes] | int, stderr: IO[bytes] | int
) -> subprocess.Popen[bytes]:
    """Return a client just started; Ctrl-C in the terminal does not reach it."""
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
    """Write all of `text` to the stdin of a client, which may be gone."""
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
    """Return whether a client ends in time; without the pauses of Popen.wait, which add up."""
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
