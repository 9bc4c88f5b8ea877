"""A Redfish client that sends each write once, and believes no more than a BMC must be believed.

Libraries send a PATCH again after a time-out, and again without If-Match after a 412 (measured:
docs/topology.md). A switch must know what it has sent: here a write is sent once, whatever
comes back, and reads alone are tried again. In go an `Access` and a password, out come
resources as JSON tables.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from paribus.bmc.profiles import Access
from paribus.border import printable
from paribus.core import ParibusError

MOST_BYTES = 4 << 20
"""Bytes of an answer: the largest resources of real services are below 1 MiB."""

_TRIES = 4
_LONGEST_WAIT_S = 30.0
_LONGEST_TOKEN = 4096
_SESSIONS = "/redfish/v1/SessionService/Sessions"


class BmcError(ParibusError):
    """A request to a BMC that gave nothing usable."""

    exit_code = 4


class NoAnswer(BmcError):  # noqa: N818 -- what happened, and no fault of the BMC's by itself
    """No connection, or no answer within the time: whether a write took effect is not known."""


class Distrusted(BmcError):  # noqa: N818 -- as above
    """The BMC or its answer is not what a BMC may be."""


class Refused(BmcError):  # noqa: N818 -- as above
    """The BMC refused the request; `status` is that of HTTP."""

    status = 0


@dataclass(frozen=True, slots=True)
class Resource:
    """What a GET gave: the resource, and its ETag ("" without one)."""

    table: dict[str, Any]
    etag: str = ""


@dataclass(slots=True)
class _Answer:
    """An answer of HTTP; `table` is its JSON object, empty without one."""

    status: int
    headers: http.client.HTTPMessage
    table: dict[str, Any] = field(default_factory=dict)


def connect(access: Access) -> http.client.HTTPConnection:
    """Return a connection whose other end is proven before anything is sent; raises BmcError."""
    made = http.client.HTTPSConnection(
        access.host, access.port, timeout=access.timeout_s, context=_context(access)
    )
    try:
        made.connect()
        seen = hashlib.sha256(made.sock.getpeercert(True) or b"").hexdigest()
    except ssl.SSLCertVerificationError as error:
        raise Distrusted(
            f"its certificate is not trusted: {error.verify_message}",
            place=access.place,
            fix="check `ca` of [bmc], or pin the certificate with `fingerprint`",
        ) from None
    except OSError as error:
        fix = "check `address` of [bmc], and that the BMC is on"
        raise NoAnswer(f"no connection: {_why(error)}", place=access.place, fix=fix) from None
    if access.fingerprint and seen != access.fingerprint:
        made.close()
        raise Distrusted(
            f"its certificate has the fingerprint sha256:{seen}, not the pinned one",
            place=access.place,
            fix="find out why, before anything is sent to it",
        )
    return made


class Client:
    """A connection to one BMC. Use as a context manager: it logs in, and always out again.

    `session` is the path of the Redfish session that was opened, "" for none. Each method raises
    BmcError: NoAnswer, Distrusted or Refused.
    """

    def __init__(
        self,
        access: Access,
        password: str,
        connect: Callable[[Access], http.client.HTTPConnection] = connect,
    ) -> None:
        self.access = access
        self._connect = connect
        self.session = ""
        self._password = password
        self._token = ""
        self._connection: http.client.HTTPConnection | None = None

    def __enter__(self) -> Client:
        try:
            self._log_in()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if self.session:
                self._send("DELETE", self.session)
        except BmcError:
            pass  # it ends by itself when its time is out
        finally:
            self.session = self._token = ""
            self._close()

    def end_session(self, path: str) -> None:
        """End a session that a killed Paribus has left, if it is still there."""
        with suppress(BmcError):  # it is gone, or ends by itself
            self._send("DELETE", self._local(path))

    def get(self, path: str) -> Resource:
        """Return a resource. A read that gets no answer, a 503 or a 401 is tried again."""
        for trial in range(_TRIES):
            try:
                answer = self._send("GET", path)
            except NoAnswer:
                if trial:
                    raise
                continue
            if answer.status == 503 and trial < _TRIES - 1:
                time.sleep(_wait_of(answer))
            elif answer.status == 401 and not trial and self.access.login == "session":
                self._log_in()
            else:
                break
        self._check(answer, "GET", path)
        if answer.status != 200:
            raise self._strange(f"status {answer.status} to a GET", path)
        return Resource(answer.table, answer.headers.get("ETag") or "")

    def write(self, method: str, path: str, table: dict[str, Any], etag: str = "") -> str:
        """Send a write once, `etag` as If-Match, and return the path of its task monitor, or ""."""
        self._close()  # a connection that is gone would be noticed only after the write
        headers = {"If-Match": etag} if etag else {}
        answer = self._send(method, path, table, headers)
        self._check(answer, method, path)
        if answer.status == 202:
            place = answer.headers.get("Location") or ""
            return self._local(place) if place else ""
        if answer.status not in (200, 201, 204):
            raise self._strange(f"status {answer.status} to a {method}", path)
        return ""

    def follow(self, monitor: str, deadline: float) -> str:
        """Return the state in which a task ends, "" where it has not by `deadline`.

        `monitor` is the path that `write` returned, `deadline` a time of time.monotonic().
        """
        while True:
            answer = self._send("GET", monitor)
            self._check(answer, "GET", monitor)
            state = str(answer.table.get("TaskState", "Completed"))
            if answer.status != 202 and state not in _UNDER_WAY:
                return printable(state[:40])
            if time.monotonic() >= deadline:
                return ""
            time.sleep(min(max(_wait_of(answer), 0.02), max(0.0, deadline - time.monotonic())))

    def _log_in(self) -> None:
        """Open a session and keep its token; basic authentication needs none."""
        self._token = self.session = ""
        if self.access.login == "basic":
            return
        login = {"UserName": self.access.user, "Password": self._password}
        answer = self._send("POST", _SESSIONS, login)
        if answer.status in (400, 401, 403):
            raise self._refused(answer, f"does not let {self.access.user} in", _SESSIONS)
        self._check(answer, "POST", _SESSIONS)
        token = answer.headers.get("X-Auth-Token") or ""
        if not 0 < len(token) <= _LONGEST_TOKEN or not (token.isascii() and token.isprintable()):
            raise self._strange("it opened a session without a usable X-Auth-Token", _SESSIONS)
        self._token = token
        self.session = self._local(answer.headers.get("Location") or "")

    def _send(
        self,
        method: str,
        path: str,
        table: dict[str, Any] | None = None,
        more: dict[str, str] | None = None,
    ) -> _Answer:
        """Send one request, with the headers `more`, and return its answer of whatever status.

        Raises NoAnswer where it does not come whole within the time, Distrusted as `_read`.
        """
        body = None if table is None else json.dumps(table).encode()
        headers = {"Accept": "application/json", "OData-Version": "4.0", **(more or {})}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if self.access.login == "basic":
            pair = f"{self.access.user}:{self._password}".encode()
            headers["Authorization"] = "Basic " + base64.b64encode(pair).decode()
        elif self._token:
            headers["X-Auth-Token"] = self._token
        connection = self._connected()
        late = threading.Timer(self.access.timeout_s, _cut, [connection.sock])
        late.daemon = True
        late.start()
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return self._read(answer, method, path)
        except (OSError, http.client.HTTPException) as error:
            self._close()
            fix = "see whether the BMC is well, then try again"
            cause, place = f"no complete answer ({_why(error)})", self._place(method, path)
            raise NoAnswer(cause, place=place, fix=fix) from None
        finally:
            late.cancel()

    def _read(self, answer: http.client.HTTPResponse, method: str, path: str) -> _Answer:
        """Return an answer with its JSON; raises Distrusted for one that no BMC may give."""
        data = answer.read(MOST_BYTES + 1)
        found = _Answer(answer.status, answer.headers)
        if answer.will_close or len(data) > MOST_BYTES:
            self._close()
        if 300 <= answer.status < 400:
            to = urlsplit(answer.headers.get("Location") or "").netloc
            raise self._strange(f"a redirect to {printable(to[:80]) or 'elsewhere'}", path)
        if len(data) > MOST_BYTES:
            raise self._strange(f"an answer of more than {MOST_BYTES >> 20} MiB", path)
        length = answer.headers.get("Content-Length", "")
        if length.isdecimal() and len(data) < int(length) and method != "HEAD":
            raise http.client.IncompleteRead(data)
        if not data:
            return found
        kind = answer.headers.get_content_type()
        if kind != "application/json":
            if answer.status >= 400:  # the status says enough
                return found
            raise self._strange(f"an answer of type {printable(kind[:60])}, not JSON", path)
        try:
            table = json.loads(data)
        except RecursionError:
            raise self._strange("JSON of too many levels", path) from None
        except ValueError:
            raise self._strange("an answer that is not JSON", path) from None
        if not isinstance(table, dict):
            raise self._strange("an answer that is no JSON object", path)
        found.table = table
        return found

    def _check(self, answer: _Answer, method: str, path: str) -> None:
        """Raise Refused for a status of 400 or more."""
        if answer.status >= 400:
            raise self._refused(answer, f"{method} gives {answer.status}", path)

    def _refused(self, answer: _Answer, what: str, path: str) -> Refused:
        """Return the error for a refusal: `what`, with the BMC's message, without secrets."""
        message = _message(answer.table)
        for secret in (self._password, self._token):
            message = message.replace(secret, "[secret]") if secret else message
        cause = f"{what}{': ' + message if message else ''}"
        fix = "check `user`, its rights and the paths in the profile file"
        refused = Refused(cause, place=self._place("", path), fix=fix)
        refused.status = answer.status
        return refused

    def _strange(self, what: str, path: str) -> Distrusted:
        """Return the error for an answer that no BMC may give."""
        return Distrusted(
            f"the BMC gave {what}; it is not trusted",
            place=self._place("", path),
            fix="check what answers at this address",
        )

    def _place(self, method: str, path: str) -> str:
        return f"{self.access.place} {method} {path}".replace("  ", " ")

    def _local(self, place: str) -> str:
        """Return the path of the URL `place`, which must be one of this BMC."""
        parts = urlsplit(place)
        here = ("", self.access.host, self.access.place)
        if parts.netloc not in here or not parts.path.startswith("/redfish/v1/"):
            raise self._strange(f"{printable(place[:80])!r} as a place of its own", "")
        return parts.path

    def _connected(self) -> http.client.HTTPConnection:
        if self._connection is None:
            self._connection = self._connect(self.access)
        return self._connection

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


_UNDER_WAY = {"New", "Starting", "Running", "Suspended", "Pending", "Stopping", "Cancelling"}
"""States of a task that has not ended (Task 1.7.4)."""


def _context(access: Access) -> ssl.SSLContext:
    """Return how TLS checks the certificate; a pinned one is compared after the handshake."""
    try:
        context = ssl.create_default_context(cafile=access.ca or None)
    except (OSError, ssl.SSLError) as error:
        raise Distrusted(
            f"cannot be used as certificates: {_why(error)}",
            place=access.ca,
            fix="name a file of PEM certificates",
        ) from None
    if access.fingerprint:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _cut(sock: socket.socket) -> None:
    """End a connection whose answer takes too long, however slowly it still comes."""
    with suppress(OSError):  # it has ended meanwhile
        socket.socket.shutdown(sock, socket.SHUT_RDWR)


def _why(error: BaseException) -> str:
    """Return the cause of a failed connection in a few words."""
    if isinstance(error, TimeoutError):
        return "time-out"
    if isinstance(error, http.client.IncompleteRead):
        return "it ends in the middle"
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return printable(text[:120])


def _wait_of(answer: _Answer) -> float:
    """Return the seconds to wait that an answer asks for (Retry-After), 1 without a number."""
    text = answer.headers.get("Retry-After") or "1"
    return min(float(text), _LONGEST_WAIT_S) if text.isdecimal() and len(text) < 9 else 1.0


def _message(table: dict[str, Any]) -> str:
    """Return the message of a Redfish error (DSP0266, 8.6), "" without one."""
    error = table.get("error")
    notes = error.get("@Message.ExtendedInfo") if isinstance(error, dict) else None
    first = notes[0] if isinstance(notes, list) and notes else error
    text = (first.get("Message") or first.get("message")) if isinstance(first, dict) else ""
    return printable(text[:200]) if isinstance(text, str) else ""
