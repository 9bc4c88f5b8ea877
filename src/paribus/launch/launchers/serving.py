"""The two sides of a network benchmark as one command: a server, then the client.

As one launch holds both, the warden ends both, and a retry or a resume starts afresh. The client
is started once the server listens on the port; a port on which somebody listens before is an error.
"""

from __future__ import annotations

import shlex
from dataclasses import replace

from paribus.core import Command

READY_S = 20
"""Seconds that a server may take until it listens."""

# $1: the server's command line, $2: the command line that says whether it listens, $3: the port.
_SCRIPT = """\
server=$1 listens=$2 port=$3
shift 3
if eval "$listens"; then
  echo "paribus-serve: port $port is taken on the server's host" >&2
  exit 2
fi
eval "exec $server" </dev/null >&2 &
pid=$!
trap 'kill "$pid" 2>/dev/null' EXIT
trap 'exit 143' HUP INT TERM
tries=0
until eval "$listens"; do
  tries=$((tries + 1))
  if [ "$tries" -gt %d ]; then
    echo "paribus-serve: the server does not listen on port $port" >&2
    exit 2
  fi
  # A child that has ended stays as a zombie, which kill -0 takes for alive.
  case $(cat "/proc/$pid/stat" 2>/dev/null) in
  '' | *') Z '*)
    echo "paribus-serve: the server ended before it listened on port $port" >&2
    exit 2 ;;
  esac
  sleep 0.05
done
"$@"
"""

# TCP sockets that listen are in state 0A, UDP sockets without a peer in 07 (proc(5), tcp_states.h).
_LISTENS = (
    'for f in tcp tcp6; do grep -qE "^ *[0-9]+: [0-9A-F]+:$1 [0-9A-F]+:0000 0A " /proc/net/$f'
    " 2>/dev/null && exit 0; done;"
    ' for f in udp udp6; do grep -qE "^ *[0-9]+: [0-9A-F]+:$1 [0-9A-F]+:0000 07 " /proc/net/$f'
    " 2>/dev/null && exit 0; done; exit 1"
)


def listens(port: int) -> tuple[str, ...]:
    """Return the command that ends with 0 if something listens on `port` where it is executed."""
    return ("/bin/sh", "-c", _LISTENS, "paribus-listens", f"{port:04X}")


def serve(client: Command, server: Command, ready: Command, *, port: int) -> Command:
    """Return the command that starts `server`, then `client` once `ready` exits with 0.

    Its exit code is that of `client`, or 2, with a sentence, if the server does not start; the
    server is ended. What the server prints goes to stderr.
    """
    script = _SCRIPT % (READY_S * 20)
    return replace(
        client,
        argv=(
            *("/bin/sh", "-c", script, "paribus-serve"),
            *(_line(server), _line(ready), str(port)),
            *client.argv,
        ),
    )


def _line(command: Command) -> str:
    settings = [f"{key}={value}" for key, value in command.env.items()]
    return shlex.join(("env", *settings, *command.argv))
