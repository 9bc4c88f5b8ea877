"""`paribus cluster`: from a list of hosts to one that MPI can use, and back."""

from __future__ import annotations

import argparse
import json
import re
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paribus.cluster.preflight import Preflight

EXAMPLE = """\
example:
  paribus cluster check pocket:3                 # three hosts on this machine, to try it
  paribus cluster check node[1-16] --user me
  paribus cluster check hosts.txt --network 10.1.0.0/16 --ports 42000-42199

HOSTS is a nodeset (node[1-4,7]), a hostfile in any dialect, several ports of one address
(gate.example:2201-2216), or pocket:N.

exit codes: 0 ready for MPI, 2 user error, 4 a precondition is broken
"""

BROKEN = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    parser.description = (
        "Test every precondition of MPI launches on hosts that ssh reaches, on all of them at once:"
        " identity, MPI, limits, clocks, disks, networks, and TCP connections between each pair."
        " `check` changes nothing."
    )
    parser.epilog = EXAMPLE
    parser.add_argument("what", choices=("check",), metavar="check", help="what to do")
    parser.add_argument("hosts", metavar="HOSTS", help="node[1-4], a hostfile, or pocket:N")
    parser.add_argument("--network", metavar="NET", default="", help="CIDR or interface for MPI")
    parser.add_argument("--mpi", metavar="PREFIX", default="", help="where MPI is on the nodes")
    parser.add_argument("--ports", metavar="FIRST-LAST", help="TCP ports that MPI is kept to")
    for name, text in (
        ("user", "login on the hosts"),
        ("jump", "[USER@]HOST[:PORT] to go through"),
        ("identity", "private key"),
        ("known-hosts", "file of accepted host keys"),
        ("ssh-config", "ssh_config file to obey"),
    ):
        parser.add_argument(f"--{name}", metavar=name.upper(), default="", help=text)
    parser.add_argument("--port", type=int, default=0, help="port of sshd")
    parser.add_argument(
        "--json", action="store_true", help='print JSON, schema "paribus.cluster/1"'
    )
    parser.set_defaults(carry_out=cluster)


def cluster(arguments: argparse.Namespace) -> int:
    """Return the exit code of `paribus cluster`."""
    from paribus.cluster.links import Asked
    from paribus.cluster.opened import asked_hosts, opened
    from paribus.cluster.preflight import preflight

    first, last = _ports(arguments.ports)
    ssh = {
        "user": arguments.user,
        "port": arguments.port,
        "jump": arguments.jump,
        "identity": arguments.identity,
        "known_hosts": arguments.known_hosts,
        "config": arguments.ssh_config,
    }
    hosts = asked_hosts(arguments.hosts, ssh, arguments.network)
    with opened(hosts) as there:
        found = preflight(
            there, network=hosts.network, prefix=arguments.mpi, asked=Asked(first, last)
        )
    _show(found, as_json=arguments.json)
    return 0 if found.fine else BROKEN


def _ports(text: str | None) -> tuple[int, int]:
    """Return the range that `text` names, zeros for none; raises UserError."""
    from paribus.errors import UserError

    if text is None:
        return 0, 0
    match = re.fullmatch(r"([0-9]{1,5})[-:]([0-9]{1,5})", text)
    if match and 0 < int(match[1]) < int(match[2]) < 65536:
        return int(match[1]), int(match[2])
    raise UserError(
        "is no range of TCP ports",
        place=f"--ports {text}",
        fix="write the first and the last: --ports 42000-42199",
    )


def _show(found: Preflight, *, as_json: bool) -> None:
    if as_json:
        from paribus.cluster.environment import to_json

        json.dump(to_json(found), sys.stdout, indent=2, allow_nan=False)
        print()
        return
    from paribus.report.cluster import print_preflight
    from paribus.report.printing import console_on

    print_preflight(found, console_on(sys.stdout))
