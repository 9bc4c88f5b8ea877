"""The gate before the application: it checks host name, rate, session and origin of each request.

Alone, the server prints a link with a token that works once, and gives a session for it. Behind a
site's own sign-in (JupyterHub, Open OnDemand, a reverse proxy with OIDC) whoever arrives has been
let in already: over a Unix socket that only this user can open, or with a header that names them.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response

Scope = MutableMapping[str, Any]
App = Callable[[Scope, Any, Any], Awaitable[None]]

COOKIE = "paribus-session"
TOKEN = "token"
CSRF = "x-paribus-csrf"
COOKIE_S = 400 * 86400
"""Seconds for which a browser keeps the cookie, the most that it may: the session ends before."""

MOST_BODY = 1 << 18
"""Bytes of the largest body of a request: a study file has some kilobytes."""

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; connect-src 'self';"
    " style-src 'self' 'unsafe-inline'; img-src 'self' data:; base-uri 'none'; form-action 'self';"
    " frame-ancestors 'self'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
"""'unsafe-inline' is for styles only, since Vega places its marks by style attributes."""

SESSION_S = 7 * 86400.0
"""Seconds that a session lasts without a request."""

MOST_SESSIONS = 1000


@dataclass(slots=True)
class Session:
    """A browser that is signed in, until `ends` (seconds of the clock of Doors).

    `csrf`: the token that each request which changes something must have. `lasts_s`: each request
    prolongs the session to so many seconds from then; None: it is not prolonged. `link`: the token
    of the shared link by which it came; all sessions of a link share their limits, since it can be
    opened without end.
    """

    csrf: str
    read_only: bool
    ends: float
    lasts_s: float | None = None
    link: str = ""

    @property
    def who(self) -> str:
        """The name by which requests are counted for limits."""
        return self.link or self.csrf


@dataclass(frozen=True, slots=True)
class Header:
    """A header that the site's proxy sets; a request with this value is signed in."""

    name: str
    value: str


@dataclass
class Doors:
    """The ways to sign in, and the open sessions, by their cookies.

    `trusted`: every request is signed in; `header`: those that have it. With neither: by a link
    with the token `once`, which works once, or with the `lasting` token, which the site's portal
    keeps. `shared`: the tokens of read-only links, with the time when each ends. Times are seconds
    of `clock`, which is monotonic.
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
        """Drop the sessions and shared links that have ended."""
        self.sessions = {k: s for k, s in self.sessions.items() if s.ends > now}
        self.shared = {k: ends for k, ends in self.shared.items() if ends > now}


class Crowd:
    """A limit on the rate of requests of each client: RATE a second, BURST at once."""

    RATE = 100.0
    BURST = 400.0
    MOST_CLIENTS = 10_000

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left: dict[str, tuple[float, float]] = {}

    def allows(self, client: str) -> bool:
        """Count a request of `client`; return whether it is within the limit."""
        now = self._clock()
        left, at = self._left.get(client, (self.BURST, now))
        left = min(self.BURST, left + (now - at) * self.RATE)
        if len(self._left) >= self.MOST_CLIENTS:
            self._left.clear()
        self._left[client] = max(0.0, left - 1), now
        return left >= 1


@dataclass(frozen=True, slots=True)
class Asked:
    """The parts of a request that the gate checks; headers by name in lower case.

    `cookies`: the values of the session's cookie; `token`: that of a link, "" without one.
    """

    method: str
    path: str
    headers: dict[str, str]
    cookies: tuple[str, ...]
    client: str
    token: str


class Gate:
    """An ASGI application around another: refuses strangers, and adds protective headers.

    `hosts`: the names by which the server may be addressed; None behind a proxy, which checks them.
    `port`: part of the cookie's name, since browsers send cookies to all ports of a host.
    `prefix`: the path of the cookie, so that others on the same portal do not receive it.
    `entered` is called after each sign-in by a link, `admit` with Session.who before each request.
    """

    def __init__(
        self,
        app: App,
        doors: Doors,
        *,
        hosts: frozenset[str] | None,
        port: int,
        prefix: str,
        entered: Callable[[], None],
        admit: Callable[[str], None],
    ) -> None:
        self._app = app
        self._doors = doors
        self._hosts = hosts
        self._cookie = f"{COOKIE}-{port}"
        self._prefix = prefix
        self._entered = entered
        self._admit = admit
        self._crowd = Crowd()

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # no web sockets here
            await send({"type": "websocket.close", "code": 1008})
            return
        asked = _asked(scope, self._cookie)
        known = (self._doors.session(one, asked.headers) for one in asked.cookies)
        session = next((one for one in known if one), None)
        refused = self._refusal(asked, session)
        if refused is not None:
            await refused(scope, receive, _protected(send))
            return
        assert session is not None  # a stranger is refused
        self._admit(session.who)
        scope["session"] = session
        await self._app(scope, _bounded(receive), _protected(send))

    def _refusal(self, asked: Asked, session: Session | None) -> Response | None:
        """Return the answer to a request that is refused, or that signs in; None for any other."""
        named = self._hosts is None or asked.headers.get("host", "").lower() in self._hosts
        entering = bool(asked.token) and asked.method == "GET"
        if named and entering and (cookie := self._doors.enter(asked.token)):
            return self._entry(cookie)  # not counted: a flood from the same address locks none out
        if not self._crowd.allows(session.who if session else asked.client):
            text = "too many requests: this client may make 100 in a second"
            return PlainTextResponse(text, 429, {"retry-after": "5"})
        if not named:
            text = "this server is not called that; open it by the link that it printed"
            return PlainTextResponse(text, 421)
        if session is None or entering:
            return HTMLResponse(STRANGER, 403)
        if asked.method in ("GET", "HEAD"):
            return None
        if asked.headers.get("sec-fetch-site", "same-origin") != "same-origin" or not _own(asked):
            return PlainTextResponse("refused: the request comes from another site", 403)
        if asked.headers.get(CSRF) != session.csrf:
            return PlainTextResponse("refused: open the page anew, then try again", 403)
        if session.read_only:
            return PlainTextResponse("refused: this link may look, not act", 403)
        if not asked.headers.get("content-length", "x").isdecimal():
            return PlainTextResponse("refused: its length is not given", 411)
        if int(asked.headers["content-length"]) > MOST_BODY:
            return PlainTextResponse("refused: more than 256 KiB", 413)
        return None

    def _entry(self, cookie: str) -> Response:
        """Return the answer to a valid link: a cookie, and a redirect to the page without token."""
        self._entered()
        response = RedirectResponse("./", 303)
        response.set_cookie(
            self._cookie,
            cookie,
            httponly=True,
            samesite="strict",
            max_age=COOKIE_S,
            path=self._prefix,
        )
        return response


def _asked(scope: Scope, cookie_name: str) -> Asked:
    lines = [(k.decode("latin-1").lower(), v.decode("latin-1")) for k, v in scope["headers"]]
    headers = dict(lines)
    cookies = _values(cookie_name, [value for name, value in lines if name == "cookie"])
    tokens = parse_qs(scope.get("query_string", b"").decode("latin-1")).get(TOKEN, [""])
    client = scope.get("client") or ("socket", 0)
    return Asked(scope["method"], scope["path"], headers, cookies, str(client[0]), tokens[0])


def _values(name: str, lines: Sequence[str]) -> tuple[str, ...]:
    """Return the values of the cookies called `name`, "" where there is none.

    Browsers also send cookies that other applications on this host have set, of any form.
    """
    pairs = (one.partition("=") for line in lines for one in line.split(";"))
    return tuple(value.strip() for key, _, value in pairs if key.strip() == name) or ("",)


def _own(asked: Asked) -> bool:
    """Return whether a request comes from a page of this server, by its header Origin."""
    origin = asked.headers.get("origin")
    if origin is None:
        return True
    host = origin.partition("://")[2]  # "" of Origin: null, which sandboxed pages send
    names = {asked.headers.get(one) for one in ("host", "x-forwarded-host")}
    return bool(host) and host in names


def _protected(send: Any) -> Any:
    """Return `send`, which adds HEADERS and forbids caching, where the answer does not set them."""

    async def protected(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            given = {k.lower() for k, _ in message.get("headers", [])}
            extra = {"cache-control": "no-store", **HEADERS}
            message["headers"] = [
                *message.get("headers", []),
                *((k.encode(), v.encode()) for k, v in extra.items() if k.encode() not in given),
            ]
        await send(message)

    return protected


def _bounded(receive: Any) -> Any:
    """Return `receive`, which ends a request whose body is longer than MOST_BODY."""
    taken = 0

    async def bounded() -> MutableMapping[str, Any]:
        nonlocal taken
        message: MutableMapping[str, Any] = await receive()
        taken += len(message.get("body", b""))
        return {"type": "http.disconnect"} if taken > MOST_BODY else message

    return bounded


STRANGER = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Sign in - Paribus</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<style>body { font: 16px/1.5 system-ui, sans-serif; margin: 24px; }</style></head>
<body><main><h1>Sign in to Paribus</h1>
<p>Open the link that <code>paribus serve</code> printed where it was started. A link works once;
after that, the next one is printed there. A session ends after seven days without a request.</p>
</main></body></html>
"""
