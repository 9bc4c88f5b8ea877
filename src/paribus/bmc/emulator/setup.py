"""A directory with all that an emulated BMC needs, and all that a switch of its server needs.

`emulated` makes it and answers at a port of this machine; `listening` is the server behind TLS.
"""

from __future__ import annotations

import json
import secrets
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

from paribus.bmc.emulator.faults import FaultPlan
from paribus.bmc.emulator.hardware import ATTRIBUTE, GPUS, HOSTS, SHAPES, Hardware
from paribus.bmc.emulator.resources import BIOS, ENDPOINTS, FABRIC, OEM, SERIAL, ZONES
from paribus.bmc.emulator.service import Answer, Bmc, Dialect
from paribus.border import as_error
from paribus.core import UserError
from paribus.launch.local import capture

_MOST_BYTES = 1 << 20
_IDLE_S = 30.0
_WEB_PAGE = b"<html><body>It works!</body></html>"


class _Handler(BaseHTTPRequestHandler):
    """Passes requests to the BMC and writes its answers, or breaks them as their fault wants."""

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
        """Write an answer, or do what its fault wants."""
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
    """Return the bytes of an answer to `method`, with the time as the BMC's clock has it."""
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


_BROKEN = {  # status, type and body of the answers with these faults
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
    """The server of HTTPS on this machine; `over` is set when it ends."""

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


USER = "paribus"
_DAYS = "30"


@contextmanager
def emulated(
    directory: Path,
    *,
    dialect: Dialect = "actions",
    shape: str = "Balance",
    faults: dict[int, str] | None = None,
    boot_s: float = 0.0,
    port: int = 0,
) -> Iterator[tuple[Bmc, str]]:
    """Yield an emulated BMC and its address while it answers.

    `directory` gets host/, the files of /sys of the server, which is there while the server is on;
    ca.pem, key.pem and password; and bmc.toml, a profile file with the three topologies.
    """
    certificate, key = directory / "ca.pem", directory / "key.pem"
    password = secrets.token_urlsafe(18)
    with as_error(UserError, directory, "choose another directory"):
        directory.mkdir(parents=True, exist_ok=True)
        _make_certificate(certificate, key)
        _write_private(directory / "password", password + "\n")
    bmc = Bmc(Hardware(directory / "host", shape, boot_s), USER, password, dialect)
    bmc.faults = FaultPlan(dict(faults or {}))
    with listening(bmc, certificate, key, port) as address:
        (directory / "bmc.toml").write_text(profile_text(address, dialect))
        yield bmc, address


def _make_certificate(certificate: Path, key: Path) -> None:
    """Make a self-signed certificate of 127.0.0.1, unless it is there; needs openssl."""
    if certificate.exists() and key.exists():
        return
    _write_private(key, "")
    done = capture(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-days", _DAYS, "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"),
            *("-keyout", str(key), "-out", str(certificate)),
        ]
    )
    if done.exit_code != 0:
        raise UserError(
            f"no certificate: {(done.stderr.strip().splitlines() or ['?'])[-1][:200]}",
            place=str(certificate),
            fix="install openssl",
        )


def _write_private(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_text(text)


def profile_text(address: str, dialect: Dialect) -> str:
    """Return a profile file for the emulated server."""
    head = f"""\
# An emulated BMC: paribus topology emulate
[bmc]
address  = "{address}"
user     = "{USER}"
password = {{ file = "password" }}
ca       = "ca.pem"
serial   = "{SERIAL}"

[host]
idle     = "true"      # a command that succeeds where nobody uses the server
settle_s = 5
boot_s   = 30
"""
    return head + "".join(
        f'\n[profiles.{shape.lower()}]\nshape = "{shape}"\n{_STEPS[dialect](shape)}'
        for shape in SHAPES
    )


def _step(shape: str, name: str, *lines: str) -> str:
    """Return a step of a profile as TOML."""
    head = f'\n[[profiles.{shape.lower()}.steps]]\nname = "{name}"\n'
    return head + "".join(f"{line}\n" for line in lines)


def _zone_steps(shape: str, by: str) -> str:
    """Return the steps that put the endpoints of a shape into the zones, as TOML."""
    steps = ""
    for host in HOSTS:
        ends = [host, *(GPUS[:4] if host == "Host0a" else ())]
        ends += GPUS[4:] if host == SHAPES[shape] else ()
        listed = "".join(f'    "{ENDPOINTS}/{end}",\n' for end in ends)
        vendor = ('by = "patch"',) if by == "patch" else ()
        zone = f'zone = "{ZONES}/{host}"'
        ends_ = f"endpoints = [\n{listed}]"
        steps += _step(shape, f"port {host}", 'do = "zone"', zone, *vendor, ends_)
    return steps


def _bios_steps(shape: str) -> str:
    place = f'path = "{BIOS}"'
    return _step(
        shape,
        "BIOS setting",
        'do = "bios"',
        place,
        f'attribute = "{ATTRIBUTE}"',
        f'value = "{shape}"',
    )


def _oem_steps(shape: str) -> str:
    """Return the step that gives the server a shape by the vendor's action, as TOML."""
    before = "Balance" if shape != "Balance" else "Cascade"
    seen = f'path = "{FABRIC}", pointer = "/Oem/Emulated/Topology"'
    return _step(
        shape,
        "OEM action",
        'do = "action"',
        f'path = "{OEM}"',
        f'body = {{ Topology = "{shape}" }}',
        f'undo = {{ Topology = "{before}" }}',
        f'reads = {{ {seen}, value = "{shape}", before = "{before}" }}',
    )


_STEPS = {
    "actions": lambda shape: _zone_steps(shape, "actions"),
    "patch": lambda shape: _zone_steps(shape, "patch"),
    "bios": _bios_steps,
    "oem": _oem_steps,
}
