"""The server: the socket on which it listens, the link that it prints, and uvicorn."""

from __future__ import annotations

import os
import socket
import stat
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from paribus.border import why_not
from paribus.core import UserError
from paribus.web.gate import TOKEN, Doors

LOOPBACK = "127.0.0.1"


def listen(port: int = 0, path: Path | None = None, address: str = LOOPBACK) -> socket.socket:
    """Return a socket that listens at a port of `address` (0: a free one), or a Unix one at `path`.

    Only this user can open the Unix socket. Raises UserError where it is not possible.
    """
    return _listen_port(address, port) if path is None else _listen_path(path)


def _listen_port(address: str, port: int) -> socket.socket:
    """Return a socket that listens at a port; raises UserError where it cannot."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((address, port))
    except OSError as error:
        listening.close()
        raise UserError(
            f"cannot listen there: {error.strerror}",
            place=f"--port {port}" if address == LOOPBACK else f"--address {address} --port {port}",
            fix="choose another port, or none: then a free one is taken",
        ) from error
    listening.listen(128)
    return listening


def _listen_path(path: Path) -> socket.socket:
    """Return a socket of the file system that listens; raises UserError where it cannot."""
    folder = path.absolute().parent
    if reason := why_not(folder):
        raise UserError(
            f"others could put another socket in its place: {reason}",
            place=f"--socket {path}",
            fix="use a directory that only you can write to",
        )
    if path.exists() and stat.S_ISSOCK(path.lstat().st_mode):
        if _answers(path):
            raise UserError(
                "another server listens there",
                place=f"--socket {path}",
                fix="stop it, or choose another path",
            )
        path.unlink()
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listening.bind(str(path))
    except OSError as error:
        listening.close()
        raise UserError(
            f"cannot listen there: {error.strerror}",
            place=f"--socket {path}",
            fix="use a path of fewer than 108 characters in a directory that is there",
        ) from error
    finally:
        os.umask(before)
    listening.listen(128)
    return listening


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        try:
            asking.connect(str(path))
        except OSError:
            return False
    return True


def names(port: int, more: Sequence[str]) -> frozenset[str]:
    """Return the values of the header Host that a server on the loopback accepts."""
    usual = (LOOPBACK, "localhost", *more)
    return frozenset(
        one.lower() for name in usual for one in ((name, f"{name}:{port}") if port else (name,))
    )


def link(port: int, token: str) -> str:
    """Return the address that signs in whoever opens it first."""
    return f"http://{LOOPBACK}:{port}/?{TOKEN}={token}"


def serve(
    folders: Sequence[Path],
    listening: socket.socket,
    doors: Doors,
    *,
    hosts: frozenset[str] | None,
    prefix: str,
    notify: Callable[[str], None],
) -> None:
    """Serve the studies in `folders` until SIGINT or SIGTERM.

    `hosts`, `prefix`: as Gate has them. `notify` is called with a line on the next link after each
    sign-in.
    """
    import uvicorn

    from paribus.web.app import make_app
    from paribus.web.connections import ACCEPTED, WAIT_S, Connection, admit
    from paribus.web.gate import Gate

    app = make_app(folders)
    port = 0 if listening.family == socket.AF_UNIX else listening.getsockname()[1]

    def entered() -> None:
        notify(f"signed in; the next link: {link(port, doors.once)}")

    config = uvicorn.Config(
        app,
        http=Connection,
        log_level="warning",
        access_log=False,  # addresses carry tokens, and headers the site's cookies
        lifespan="off",
        server_header=False,
        proxy_headers=False,  # any client could name another by a header
        backlog=ACCEPTED,
        timeout_graceful_shutdown=1,
        timeout_keep_alive=int(WAIT_S),
        h11_max_incomplete_event_size=1 << 16,
    )
    running = uvicorn.Server(config)
    config.app = Gate(
        app,
        doors,
        hosts=hosts,
        port=port,
        prefix=prefix,
        entered=entered,
        admit=partial(admit, running.server_state.connections),
    )
    # All studies are read once, before the first page is asked for.
    threading.Thread(target=app.state.bench.read, daemon=True).start()
    try:
        running.run(sockets=[listening])
    finally:
        app.state.bench.live.close()
