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
    """The methods of a socket that are used here; asyncio's sockets are not of the class socket."""

    @property
    def family(self) -> int: ...
    def getsockname(self) -> tuple[str, int]: ...
    def getpeername(self) -> tuple[str, int]: ...
    def getsockopt(self, level: int, name: int, size: int, /) -> bytes: ...


def peers(connections: Sequence[Connected]) -> list[str]:
    """Return the peer of each connection: "user 1000" of this machine, or the address of a host.

    The user of a Unix socket is known by SO_PEERCRED (unix(7)), that of a TCP connection from this
    machine by /proc/net/tcp (proc(5)). It is "" for a connection that has ended.
    """
    users: dict[tuple[str, str], str] | None = None
    found = []
    for one in connections:
        who = ""
        with suppress(OSError):
            if one.family == socket.AF_UNIX:
                peer = one.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
                _, uid, _ = _UCRED.unpack(peer)
                who = f"user {uid}"
            else:
                users = _users() if users is None else users
                there, here = one.getpeername(), one.getsockname()
                user = users.get((_as_listed(there), _as_listed(here)))
                who = there[0] if user is None else f"user {user}"
        found.append(who)
    return found


def _users() -> dict[tuple[str, str], str]:
    """Return the uid of each TCP socket of this machine, by its local and remote address."""
    # "   0: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000 ..."
    with suppress(OSError):
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        return {(row[1], row[2]): row[7] for row in rows}
    return {}


def _as_listed(address: tuple[str, int]) -> str:
    """Return an address as /proc/net/tcp writes it: 127.0.0.1:8080 is "0100007F:1F90"."""
    host, port = address
    return f"{int.from_bytes(socket.inet_aton(host), sys.byteorder):08X}:{port:04X}"
