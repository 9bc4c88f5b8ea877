"""`paribus serve DIR`: the workbench, a folder of studies in a browser."""

from __future__ import annotations

import argparse
import getpass
import os
import socket
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from paribus.core import UserError, typed

if TYPE_CHECKING:
    from paribus.web.gate import Doors

EXAMPLE = """\
examples:
  paribus serve                          # the studies in this directory; open the link it prints
  paribus serve studies/ --port 8080     # from a laptop: ssh -L 8080:127.0.0.1:8080 HOST
  paribus serve --share 24h              # also a link for colleagues, to look only
  paribus serve --socket run/web.sock --sign-in socket   # behind JupyterHub (docs/serve.md)
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Show a folder of studies in a browser: reports, launches, progress."
    parser.add_argument(
        "folders",
        metavar="DIR",
        type=Path,
        nargs="*",
        help="folders of studies (default: this one)",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--port", type=_port, default=0, help="port on 127.0.0.1 (default: a free one)"
    )
    where.add_argument(
        "--socket", metavar="PATH", type=Path, help="a Unix socket instead of a port"
    )
    parser.add_argument(
        "--sign-in",
        metavar="HOW",
        default="link",
        help="link: a link that works once; socket: whoever can open --socket is this user;"
        " NAME=VALUE: whoever has this header, which a proxy at --socket sets",
    )
    parser.add_argument(
        "--address",
        metavar="IP",
        default="127.0.0.1",
        help="another address of this host, for the portal of a site; it asks for --token-env",
    )
    parser.add_argument(
        "--token-env",
        metavar="NAME",
        help="a variable with a token that signs in as often as wanted, which the portal keeps",
    )
    parser.add_argument(
        "--prefix", metavar="PATH", default="/", help="where the portal shows it: /rnode/HOST/PORT/"
    )
    parser.add_argument(
        "--share",
        metavar="TIME",
        type=_seconds,
        help='print a read-only link valid for so long ("24 h")',
    )
    parser.add_argument(
        "--host-name", metavar="NAME", action="append", default=[],
        help="another name by which browsers reach the port (repeatable)",
    )  # fmt: skip
    parser.set_defaults(execute=serve)


def serve(arguments: argparse.Namespace) -> int:
    """Serve until stopped, and return the exit code; raises UserError."""
    missing = [name for name in ("starlette", "uvicorn") if find_spec(name) is None]
    if missing:
        raise UserError(
            f"{missing[0]} is not installed", place="paribus serve",
            fix="in the checkout of Paribus: pip install '.[serve]'",
        )  # fmt: skip
    from paribus.web import found, server

    elsewhere = arguments.socket or arguments.address != server.LOOPBACK
    by_link = arguments.sign_in == "link" and not arguments.token_env
    for option, idle in (("host_name", elsewhere), ("share", not by_link)):
        if getattr(arguments, option) and idle:
            place = f"--{option.replace('_', '-')}"
            raise UserError("is for links to a port here", place=place, fix="leave it out")
    folders = [folder.resolve() for folder in arguments.folders] or [Path.cwd()]
    found.check(folders)
    doors = _doors(arguments.sign_in, arguments.socket)
    doors.lasting = _token(arguments.token_env, arguments.address)
    listening = server.listen(arguments.port, arguments.socket, arguments.address)
    try:
        port = 0 if arguments.socket else listening.getsockname()[1]
        for line in _lines(arguments, doors, port):
            _notify(line)
        hosts = None if elsewhere else server.names(port, arguments.host_name)
        server.serve(
            folders, listening, doors, hosts=hosts, prefix=arguments.prefix, notify=_notify
        )
    finally:
        listening.close()
        if arguments.socket:
            arguments.socket.unlink(missing_ok=True)
    return 0


def _doors(how: str, at: Path | None) -> Doors:
    """Return the ways in that --sign-in asks for; raises UserError."""
    from paribus.web.gate import Doors, Header

    if how == "link":
        return Doors()
    if at is None:
        raise UserError(
            "on a port, any user of this machine would be let in",
            place=f"--sign-in {how}",
            fix="give a Unix socket with --socket",
        )
    if how == "socket":
        return Doors(trusted=True)
    name, equals, value = how.partition("=")
    if not (name and equals and value):
        raise UserError(
            "is none of link, socket and NAME=VALUE",
            place=f"--sign-in {how}",
            fix="a header, for example: --sign-in X-Forwarded-User=ada",
        )
    if os.geteuid() == 0:
        raise UserError(
            "root must not serve whom a proxy names",
            place=f"--sign-in {how}",
            fix="start it as the user whose studies these are",
        )
    return Doors(header=Header(name, value))


def _token(name: str | None, address: str) -> str:
    """Return the token in the variable that --token-env names; raises UserError."""
    if name is None:
        if address != "127.0.0.1":
            raise UserError(
                "on that address, the link would cross the network",
                place=f"--address {address}",
                fix="let the portal make a token, and give its variable with --token-env",
            )
        return ""
    token = os.environ.pop(name, "")  # programs that are started from here do not inherit it
    if len(token) < 16:
        raise UserError(
            "has fewer than 16 characters",
            place=f"--token-env {name}",
            fix=f"set it: {name}=$(openssl rand -hex 16)",
        )
    return token


def _lines(arguments: argparse.Namespace, doors: Doors, port: int) -> list[str]:
    """Return the text printed at the start: the links, and how to reach them from elsewhere."""
    from paribus.web import server

    if arguments.socket:
        lines = [f"listening at {arguments.socket}; stop with Ctrl-C"]
        if arguments.sign_in != "link":
            return lines
        port = 8080
        tunnel = ("ssh", "-L", f"{port}:{arguments.socket.absolute()}", _here())
        lines.append(f"from a laptop: {typed(tunnel)}")
    elif arguments.token_env:
        return [f"listening at {arguments.address}:{port}; stop with Ctrl-C"]
    else:
        lines = [f"from a laptop: ssh -L {port}:127.0.0.1:{port} {_here()}"]
    lines.append(f"open: {server.link(port, doors.once)}")
    if arguments.share is not None:
        lines.append(f"to look only: {server.link(port, doors.share(arguments.share))}")
    return lines


def _here() -> str:
    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (KeyError, OSError):  # a user without a name, as in containers
        return socket.gethostname()


def _notify(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _port(text: str) -> int:
    if text.isdecimal() and 0 < int(text) < 65536:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a port")


def _seconds(text: str) -> float:
    from paribus.core import parse_seconds

    try:
        return parse_seconds(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
