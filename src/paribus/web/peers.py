"""Which user is at the other end of a connection, as far as this machine knows.

A file of its own, because no other of this room looks at the machine that it executes on.
"""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

_UCRED = struct.Struct("3i")
"""struct ucred: pid, uid, gid."""


class Connected(Protocol):
    """What is asked of a socket; those of asyncio are not of the class socket."""

    @property
    def family(self) -> int: ...
    def getsockname(self) -> tuple[str, int]: ...
    def getpeername(self) -> tuple[str, int]: ...
    def getsockopt(self, level: int, name: int, size: int, /) -> bytes: ...


def peers(connections: Sequence[Connected]) -> list[str]:
    """Return who is at the other end of each of `connections`: a user of this machine, or a host.

    A Unix socket says it itself (unix(7)); of a TCP socket of this machine, /proc/net/tcp (proc(5))
    says who made it. Where that is not known it is the address, "" of a connection that has ended.
    """
    users: dict[tuple[str, str], str] | None = None
    found = []
    for one in connections:
        who = ""
        with suppress(OSError):
            if one.family == socket.AF_UNIX:
                said = one.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
                _, uid, _ = _UCRED.unpack(said)
                who = f"user {uid}"
            else:
                users = _users() if users is None else users
                there, here = one.getpeername(), one.getsockname()
                user = users.get((_as_listed(there), _as_listed(here)))
                who = there[0] if user is None else f"user {user}"
        found.append(who)
    return found


def _users() -> dict[tuple[str, str], str]:
    """Return the uid of each TCP socket of this machine, by its own and the other address."""
    with suppress(OSError):
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        return {(row[1], row[2]): row[7] for row in rows}
    return {}


def _as_listed(address: tuple[str, int]) -> str:
    host, port = address
    return f"{int.from_bytes(socket.inet_aton(host), sys.byteorder):08X}:{port:04X}"
