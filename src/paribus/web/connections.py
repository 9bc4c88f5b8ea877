"""Limits on connections: how many may wait, for how long, and how many requests a session has.

A connection *waits* unless a request of a session is under way on it: it is idle, or a stranger's.
Where too many wait, some are closed, first those of the peer that has most. So neither a scanner
nor a page that hangs keeps users out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from paribus.web.gate import Session
from paribus.web.peers import peers

WAIT_S = 30.0
"""Seconds after which a connection that waits is closed."""

MOST_WAITING = 256
MOST_AT_ONCE = 64
"""Requests of one session, or of all sessions of a shared link, under way at a time. With the
connections that wait, these stay below the 1,024 files that a process may usually open."""

ACCEPTED = 400
"""Connections that are accepted in one turn of the event loop, before any can be closed."""


class Connection(H11Protocol):
    """A connection to the server; `since`: when it last began to wait, or a request began."""

    def connection_made(self, transport: Any) -> None:
        """Begin to wait; close others where too many do."""
        super().connection_made(transport)
        self.since = self.loop.time()
        self._timer = self.loop.call_later(WAIT_S, self._look)
        waiting = [one for one in self.connections if isinstance(one, Connection) and one.waits()]
        if len(waiting) > MOST_WAITING:
            make_room(waiting)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self._timer.cancel()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Handle what was received; note the time where that is a new request."""
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            self.since = self.loop.time()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        self.since = self.loop.time()
        super().on_response_complete()

    def waits(self) -> bool:
        """Return whether no request of a session is under way, until its answer is read."""
        return self.who() is None

    def who(self) -> str | None:
        """Return Session.who of the request that is under way, None where none is."""
        asked: Mapping[str, object] = self.cycle.scope if self.cycle else {}
        session = asked.get("session")
        if not isinstance(session, Session):
            return None
        if self.cycle.response_complete and not self.transport.get_write_buffer_size():
            return None
        return session.who

    def leave(self) -> None:
        """Close the connection at once."""
        self.connections.discard(self)
        self.transport.abort()

    def _look(self) -> None:
        """Close the connection if it has waited for WAIT_S, else look again then."""
        left = self.since + WAIT_S - self.loop.time() if self.waits() else WAIT_S
        if left <= 0:
            self.leave()
        else:
            self._timer = self.loop.call_later(left, self._look)


def make_room(waiting: Collection[Connection]) -> None:
    """Close waiting connections until half of MOST_WAITING are left.

    Each time the peer with most of them loses the one that has waited longest.
    """
    sockets = [one.transport.get_extra_info("socket") for one in waiting]
    by_peer = defaultdict(list)
    for peer, one in zip(peers(sockets), waiting, strict=True):
        by_peer[peer].append(one)
    for several in by_peer.values():
        several.sort(key=lambda one: -one.since)
    for _ in range(len(waiting) - MOST_WAITING // 2):
        max(by_peer.values(), key=len).pop().leave()


def admit(connections: Collection[object], who: str) -> None:
    """Close the oldest request of `who` where MOST_AT_ONCE are under way, to admit another."""
    busy = [one for one in connections if isinstance(one, Connection) and one.who() == who]
    if len(busy) >= MOST_AT_ONCE:
        min(busy, key=lambda one: one.since).leave()
