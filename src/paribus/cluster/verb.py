"""`paribus cluster check|up|down|cloud-init HOSTS`: hosts checked, set up for MPI, taken down."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from paribus.cli import add_action
from paribus.cli.hosts import accepts_keys, add_host_keys, add_ssh, ssh_of

if TYPE_CHECKING:
    from paribus.cluster.preflight import Preflight
    from paribus.cluster.setup import Changed
    from paribus.core import Hosts
    from paribus.hosts.reached import Host

EXAMPLE = """\
example:
  paribus cluster check pocket:3                 # three hosts on this machine, to try it
  paribus cluster check hosts.txt --network 10.1.0.0/16 --ports 42000-42199
  paribus cluster up node[1-16] --user me --first-table
  paribus cluster down node[1-16]
  paribus cluster cloud-init node[1-4] --user me --key ~/.ssh/id_ed25519.pub

`check` changes nothing. `up` writes hostfiles, an ssh_config and an environment report into
./cluster-NAME, and gives the nodes a key with which they reach each other. `down` undoes that.
`cloud-init` writes user-data for virtual machines that are to be nodes, and reaches no host.
HOSTS is a nodeset (node[1-4,7]), a hostfile in any dialect, several ports of one address
(gate.example:2201-2216), or pocket:N.
"""

BROKEN = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions of the verb, each with its arguments."""
    parser.description = (
        "Test every precondition of MPI launches on hosts that ssh reaches, on all of them at once:"
        " identity, MPI, limits, clocks, disks, networks, and TCP connections between each pair."
    )
    actions = parser.add_subparsers(metavar="ACTION", title="actions", required=True)
    for name, summary, execute in (
        ("check", "test the hosts, and change nothing", _check),
        ("up", "test the hosts, and set them up as a cluster", _check_and_set_up),
    ):
        _add_check(add_action(actions, name, summary, execute))
    _add_hosts(add_action(actions, "down", "undo what `up` did", _down))
    _add_cloud_init(
        add_action(actions, "cloud-init", "write user-data for virtual machines", _cloud_init)
    )


def _add_hosts(parser: argparse.ArgumentParser) -> None:
    """Declare what every action takes: `down` too may be called as `up` was."""
    parser.add_argument("hosts", metavar="HOSTS", help="node[1-4], a hostfile, or pocket:N")
    parser.add_argument("--out", metavar="DIR", type=Path, help="directory (./cluster-NAME)")
    add_ssh(parser)
    add_host_keys(parser)


def _add_check(parser: argparse.ArgumentParser) -> None:
    _add_hosts(parser)
    parser.add_argument("--network", metavar="NET", default="", help="CIDR or interface for MPI")
    parser.add_argument("--mpi", metavar="PREFIX", default="", help="where MPI is on the nodes")
    parser.add_argument("--ports", metavar="FIRST-LAST", help="TCP ports that MPI is kept to")
    parser.add_argument(
        "--first-table",
        action="store_true",
        help="measure all pairs of nodes: latency and bandwidth, slow pairs and slow nodes",
    )
    parser.add_argument(
        "--json", action="store_true", help='print JSON, schema "paribus.cluster/1"'
    )


def _add_cloud_init(parser: argparse.ArgumentParser) -> None:
    _add_hosts(parser)
    parser.add_argument(
        "--key", metavar="FILE.pub", action="append", help="public key of the user (repeatable)"
    )
    parser.add_argument(
        "--packages",
        choices=("openmpi", "mpich", "none"),
        default="openmpi",
        help='MPI to install; "none" for an image that brings one (default: openmpi)',
    )
    parser.add_argument(
        "--distribution",
        choices=("debian", "rhel"),
        default="debian",
        help="names of packages: Debian and Ubuntu, or RHEL, Alma, Rocky, Fedora (default: debian)",
    )
    parser.add_argument(
        "--pin",
        action="store_true",
        help="a file for each node with a host key made here, so that it is known beforehand",
    )


def _cloud_init(arguments: argparse.Namespace) -> int:
    """Return the exit code of `paribus cluster cloud-init`."""
    from paribus.cluster.cloud_init import write
    from paribus.cluster.opened import asked_hosts

    hosts = asked_hosts(arguments.hosts, ssh_of(arguments))
    return write(arguments, hosts, _directory(arguments))


def _check_and_set_up(arguments: argparse.Namespace) -> int:
    """Return the exit code of `paribus cluster up`."""
    return _check(arguments, sets_up=True)


def _check(arguments: argparse.Namespace, *, sets_up: bool = False) -> int:
    """Return the exit code of `paribus cluster check`; with `sets_up`, that of `up`."""
    from paribus.cluster.links import Asked
    from paribus.cluster.opened import asked_hosts, opened
    from paribus.cluster.preflight import preflight

    first, last = _ports(arguments.ports)
    hosts = asked_hosts(arguments.hosts, ssh_of(arguments), arguments.network)
    directory = _directory(arguments)
    accepts = accepts_keys(arguments.accept_host_keys)
    with opened(hosts, _known(hosts, directory), accepts, mpi=arguments.mpi) as there:
        found = preflight(
            there, network=hosts.network, prefix=arguments.mpi, asked=Asked(first, last)
        )
        changed = None
        if sets_up and found.fine:
            found, changed = _up(hosts, directory, there, found)
        _show(found, as_json=arguments.json)
        if arguments.first_table and found.fine:
            from paribus.cluster.printed import show_first_table

            show_first_table(
                hosts,
                there,
                network=found.network,
                mpi=arguments.mpi,
                directory=directory,
                quiet=arguments.json,
            )
    if changed is not None:
        _print_changes(changed.files, "already set up")
        print(f"paribus: hostfiles and the environment report are in {directory}", file=sys.stderr)
    elif sets_up:
        print("paribus: nothing was set up: fix what is broken first", file=sys.stderr)
    return 0 if found.fine else BROKEN


def _up(
    hosts: Hosts, directory: Path, there: Sequence[Host], found: Preflight
) -> tuple[Preflight, Changed]:
    """Set the cluster up; return the preflight with its findings, and what was changed."""
    from paribus.cluster import setup
    from paribus.cluster.checks import worst_first

    begun = setup.begin(directory, hosts, found)
    changed, links = setup.up(begun, directory, there, found)
    # Findings on ssh of before the nodes had a key are dropped.
    findings = [one for one in found.findings if one.check != "ssh"] + list(changed.findings)
    if not changed.findings:
        from paribus.cluster.preflight import ssh_between

        findings += ssh_between(links)
    found = replace(found, findings=worst_first(findings))
    _write_reports(found, hosts, directory)
    return found, changed


def _write_reports(found: Preflight, hosts: Hosts, directory: Path) -> None:
    """Write the environment report, and an ssh_config by which this machine reaches the nodes."""
    from paribus.cluster.opened import client_config
    from paribus.cluster.preflight import to_json
    from paribus.cluster.printed import print_preflight
    from paribus.report.printing import console_on

    text = json.dumps(to_json(found), indent=2, allow_nan=False)
    (directory / "environment.json").write_text(f"{text}\n")
    with (directory / "environment.txt").open("w") as file:
        print_preflight(found, console_on(file, width=100))
    (directory / "ssh_config").write_text(client_config(hosts, _known(hosts, directory)))


def _down(arguments: argparse.Namespace) -> int:
    """Return the exit code of `paribus cluster down`."""
    from paribus.cluster import setup
    from paribus.cluster.opened import opened
    from paribus.cluster.printed import print_findings
    from paribus.core import UserError
    from paribus.report.printing import console_on

    directory = _directory(arguments)
    there = setup.read_cluster(directory)
    if there is None:
        raise UserError(
            "holds no cluster, so nothing is taken down",
            place=str(directory),
            fix="name the hosts as `up` did, or its directory with --out",
        )
    known = _known(there.hosts, directory)
    with opened(there.hosts, known, accepts_keys(arguments.accept_host_keys)) as hosts:
        changed = setup.down(there, directory, hosts)
    _print_changes(changed.files, "nothing was left")
    print_findings(changed.findings, len(there.hosts.names), console_on(sys.stdout))
    if changed.findings:
        print(f"paribus: {directory} stays until all nodes are taken down", file=sys.stderr)
    return BROKEN if changed.findings else 0


def _print_changes(files: Mapping[str, Sequence[str]], nothing: str) -> None:
    from paribus.core import fold

    alike: dict[tuple[str, ...], list[str]] = {}
    for name, several in files.items():
        alike.setdefault(tuple(several), []).append(name)
    for several, names in alike.items():
        print(f"paribus: {fold(names)}: changed {', '.join(several)}", file=sys.stderr)
    if not files:
        print(f"paribus: no node was changed: {nothing}", file=sys.stderr)


def _directory(arguments: argparse.Namespace) -> Path:
    if arguments.out:
        return Path(arguments.out)
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(arguments.hosts).name).strip("-.") or "hosts"
    return Path(f"cluster-{name[:64]}")


def _known(hosts: Hosts, directory: Path) -> Path:
    """Return the file of accepted host keys: the one that was named, or the cluster's own."""
    return Path(hosts.ssh.known_hosts) if hosts.ssh.known_hosts else directory / "known_hosts"


def _ports(text: str | None) -> tuple[int, int]:
    """Return the first and last port of a range such as "42000-42199", zeros for None."""
    from paribus.core import UserError

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
    """Print a check of a cluster."""
    if as_json:
        from paribus.cluster.preflight import to_json

        json.dump(to_json(found), sys.stdout, indent=2, allow_nan=False)
        print()
        return
    from paribus.cluster.printed import print_preflight
    from paribus.report.printing import console_on

    print_preflight(found, console_on(sys.stdout))
