"""The emulated BMC behind TLS on a port of this machine."""

from __future__ import annotations

import json
import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from paribus.bmc.emulator.answers import Answer
from paribus.bmc.emulator.service import Bmc

_MOST_BYTES = 1 << 20
_IDLE_S = 30.0
_WEB_PAGE = b"<html><body>It works!</body></html>"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _IDLE_S
    disable_nagle_algorithm = True
    server: _Server

    def __getattr__(self, name: str) -> Any:
        # Each method is answered, also those that nobody knows.
        if name.startswith("do_"):
            return self._serve
        raise AttributeError(name)

    def _serve(self) -> None:
        length = self.headers.get("Content-Length", "0")
        if not length.isdecimal() or int(length) > _MOST_BYTES:
            self.close_connection = True
            self._send(Answer(413, {}))
            return
        body = self.rfile.read(int(length))
        self._send(self.server.bmc.answer(self.command, self.path, self.headers, body))

    def _send(self, answer: Answer) -> None:
        how = answer.how
        if how.startswith("hang"):
            self.server.over.wait(_IDLE_S)
            self.close_connection = True
            return
        if how.startswith("reset"):
            self.close_connection = True
            linger = struct.pack("ii", 1, 0)  # closing then sends RST
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            return
        self.wfile.write(rendered(answer, self.command, self.server.bmc.skew_s))
        if how == "cut":
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- the library's name
        """Say nothing: `requests` of the BMC keep what was asked."""


def rendered(answer: Answer, method: str, skew_s: float) -> bytes:
    """Return the bytes of an answer, with the time as the BMC's clock has it."""
    how, status, headers = answer.how, answer.status, dict(answer.headers)
    data = b"" if answer.body is None else _bytes(answer.body)
    if how in _BROKEN:
        status, headers["Content-Type"], data = _BROKEN[how]
    if how == "redirect":
        headers["Location"] = "https://127.0.0.9/redfish/v1"
    headers["Date"] = formatdate(time.time() + skew_s, usegmt=True)
    bare = status in (204, 304)
    if not bare:
        headers["Content-Length"] = str(len(data) + 1000 * (how == "cut"))
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"]
    lines += [f"{name}: {text}" for name, text in headers.items()]
    head = "\r\n".join(lines).encode() + b"\r\n\r\n"
    return head if bare or method == "HEAD" else head + data


_BROKEN = {
    "html": (200, "text/html", _WEB_PAGE),
    "huge": (200, "application/json", b'{"a":"' + b"x" * 10_000_000 + b'"}'),
    "deep": (200, "application/json", b"[" * 100_000 + b"]" * 100_000),
    "redirect": (307, "application/json", b"{}"),
    "cut": (200, "application/json", b'{"a":'),
    "not-json": (200, "application/json", b"{'a': 1}"),
}


def _bytes(body: Any) -> bytes:
    return body.encode() if isinstance(body, str) else json.dumps(body).encode()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, bmc: Bmc, context: ssl.SSLContext, port: int) -> None:
        self.bmc = bmc
        self.context = context
        self.over = threading.Event()
        super().__init__(("127.0.0.1", port), _Handler)

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Answer one connection: the handshake is its thread's, so that none holds up others."""
        request.settimeout(_IDLE_S)
        try:
            wrapped = self.context.wrap_socket(request, server_side=True)
        except (OSError, ValueError):
            return
        try:
            super().finish_request(wrapped, client_address)
        finally:
            wrapped.close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of connections that clients have ended."""


@contextmanager
def listening(bmc: Bmc, certificate: Path, key: Path, port: int = 0) -> Iterator[str]:
    """Yield the address, HOST:PORT, at which the BMC answers meanwhile, on this machine only.

    A port of 0 means one that is free.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key)
    server = _Server(bmc, context, port)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()
        bmc.hardware.stop()
