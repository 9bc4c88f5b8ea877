"""Who may look, and who may act: links that work once, sessions, and sign-ins of the site.

Alone, the server prints a link with a token that works once, and gives a session for it. Behind a
site's own sign-in (JupyterHub, Open OnDemand, a reverse proxy with OIDC) whoever arrives has been
let in already: over a Unix socket that only this user can open, or with a header that names them.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field

SESSION_S = 7 * 86400.0
"""Seconds that a session lasts without a request."""

MOST_SESSIONS = 1000


@dataclass(slots=True)
class Session:
    """Somebody who is signed in. `csrf` goes with every request that changes something.

    `link` is the token of the shared link that it came from: it can be opened without end, so that
    what is limited for a session is limited for all of one link.
    """

    csrf: str
    read_only: bool
    ends: float
    lasts_s: float | None = None
    link: str = ""

    @property
    def who(self) -> str:
        """Whom limits are for."""
        return self.link or self.csrf


@dataclass(frozen=True, slots=True)
class Header:
    """A header that the site's proxy sets: signed in is who has this value."""

    name: str
    value: str


@dataclass
class Doors:
    """Every way in: `trusted` lets in whoever reaches the server, `header` who has it.

    With neither, a link that works once, or as often as wanted with a `lasting` token that the
    site's portal keeps. Shared links give read-only sessions until they expire.
    Times are of a clock that nobody sets.
    """

    trusted: bool = False
    header: Header | None = None
    lasting: str = ""
    clock: Callable[[], float] = time.monotonic
    sessions: dict[str, Session] = field(default_factory=dict)
    shared: dict[str, float] = field(default_factory=dict)
    once: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    _site: Session = field(
        default_factory=lambda: Session(secrets.token_urlsafe(24), False, float("inf"))
    )

    def enter(self, token: str) -> str | None:
        """Return the cookie of a new session for a link's token, None for one that is not valid.

        The token that works once is replaced: `once` is the next.
        """
        now = self.clock()
        self._forget(now)
        once = hmac.compare_digest(token.encode(), self.once.encode())
        if once or (self.lasting and hmac.compare_digest(token.encode(), self.lasting.encode())):
            self.once = secrets.token_urlsafe(24) if once else self.once
            return self._open(Session(secrets.token_urlsafe(24), False, now + SESSION_S, SESSION_S))
        for known, ends in self.shared.items():
            if hmac.compare_digest(token.encode(), known.encode()):
                return self._open(Session(secrets.token_urlsafe(24), True, ends, link=known))
        return None

    def session(self, cookie: str, headers: dict[str, str]) -> Session | None:
        """Return the session of a request, None for a stranger."""
        if self.trusted:
            return self._site
        if self.header is not None:
            given = headers.get(self.header.name.lower(), "")
            same = hmac.compare_digest(given.encode(), self.header.value.encode())
            return self._site if same else None
        one, now = self.sessions.get(cookie), self.clock()
        if one is None or one.ends <= now:
            return None
        if one.lasts_s is not None:
            one.ends = now + one.lasts_s
        return one

    def share(self, lasts_s: float) -> str:
        """Return the token of a read-only link that is valid for `lasts_s` seconds."""
        self._forget(self.clock())
        token = secrets.token_urlsafe(24)
        self.shared[token] = self.clock() + lasts_s
        return token

    def _open(self, session: Session) -> str:
        """Return the cookie of a new session; where there are too many, that which ends first goes.

        Those of shared links go before all others: nobody can keep the user out by opening one
        again and again.
        """
        if len(self.sessions) >= MOST_SESSIONS:
            order = {one: (not at.read_only, at.ends) for one, at in self.sessions.items()}
            del self.sessions[min(order, key=order.__getitem__)]
        cookie = secrets.token_urlsafe(24)
        self.sessions[cookie] = session
        return cookie

    def _forget(self, now: float) -> None:
        self.sessions = {k: s for k, s in self.sessions.items() if s.ends > now}
        self.shared = {k: ends for k, ends in self.shared.items() if ends > now}


class Crowd:
    """Counts requests: `allows` is False for a client that asks more than RATE a second."""

    RATE = 100.0
    BURST = 400.0
    MOST_CLIENTS = 10_000

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left: dict[str, tuple[float, float]] = {}

    def allows(self, client: str) -> bool:
        """Return whether `client` may ask once more now."""
        now = self._clock()
        left, at = self._left.get(client, (self.BURST, now))
        left = min(self.BURST, left + (now - at) * self.RATE)
        if len(self._left) >= self.MOST_CLIENTS:
            self._left.clear()
        self._left[client] = max(0.0, left - 1), now
        return left >= 1
