"""The hosts that a command line names, connected for as long as a context lasts."""

from __future__ import annotations

import re
import shlex
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from paribus.border import Place, exists
from paribus.core import HostError, Hosts, UserError
from paribus.hosts import ssh
from paribus.hosts.pocket import Pocket
from paribus.hosts.reached import Host
from paribus.hosts.session import AT_ONCE, Crowd, Session, SessionError, nonce, with_each
from paribus.hosts.ssh import Accepts, HostKey, scan
from paribus.launch.local import LocalStation
from paribus.launch.machine import of_each
from paribus.probes import from_stream, script
from paribus.studyfile.hosts import hosts_of
from paribus.topology.sysfs import tree_of
from paribus.topology.tree import Tree

ANSWER_S = 60.0
"""Seconds that a host may take to answer; the script itself ends commands that hang."""


def tree_of_host(name: str, accepts: Accepts) -> Tree:
    """Return the PCIe tree of one host, read there with sh alone.

    Its known_hosts is that of `paribus cluster check`. Raises UserError where `name` is not one
    host, and HostError where it does not answer.
    """
    hosts = asked_hosts(name, {}, "")
    folder = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(name).name).strip("-.") or "hosts"
    known = Path(f"cluster-{folder[:64]}") / "known_hosts"
    with opened(hosts, known, accepts) as there:
        if len(there) != 1:
            raise UserError(f"{len(there)} hosts", place=name, fix="name one host")
        stream = with_each(there, ANSWER_S, _read)[0]
    if isinstance(stream, SessionError):
        cause = f"the host does not answer: {stream}"
        raise HostError(cause, place=name, fix="log in by ssh first")
    return tree_of(from_stream(stream))


def _read(session: Session) -> str:
    command = f"sh -c {shlex.quote(script())} facts {nonce()[:12]} files"
    return "\n".join(session.answer(f"{command} </dev/null; echo")) + "\n"


CONNECT_S = 30.0

THROUGH_JUMP = 8
"""Connections that are begun at once through a jump host: sshd refuses more (MaxStartups)."""


def asked_hosts(text: str, given: dict[str, Any], network: str = "") -> Hosts:
    """Return the hosts that a command line names as nodeset, hostfile, range of ports or pocket:N.

    `given`: options of ssh, as the table `ssh` of an arm. Raises StudyError, with the fix, for a
    text that names no hosts.
    """
    table: dict[str, Any] = {"hosts": text}
    if "/" not in text and exists(Path(text)):
        table["hosts"] = f"./{text}"
    if ssh_options := {key: value for key, value in given.items() if value}:
        table["ssh"] = ssh_options
    if network:
        table["network"] = network
    hosts = hosts_of(Place("command line", "", table), Path())
    assert hosts is not None
    return hosts


@contextmanager
def opened(
    hosts: Hosts, known_hosts: Path, accepts: Accepts, *, mpi: str = ""
) -> Iterator[Sequence[Host]]:
    """Yield the hosts; their connections, or the pocket cluster, end with the context.

    `mpi`: where MPI is installed, "" for its usual places. Host keys must be in `known_hosts`, or
    `accepts` adds them there; raises UserError, with the fingerprints, for others.
    """
    # A station's directory is removed even when Paribus is killed.
    with LocalStation() as station:
        folder = station.here
        if hosts.pocket:
            directory = f"{folder}/pocket"
            with Pocket(hosts.pocket, link=hosts.link, directory=directory, needed=[mpi]) as pocket:
                yield pocket.hosts
            return
        config = ssh.configure(hosts, str(known_hosts.absolute()), Path(folder))
        there = ssh.reached_by(config, hosts.names)
        fix = "or name a file that has them: --known-hosts ~/.ssh/known_hosts"
        for one in (*([hop] for hop in ssh.hops(hosts, config)), there):
            ssh.check_keys(one, known_hosts, accepts, fix, _keys)
        with ExitStack() as masters:
            at_once = THROUGH_JUMP if hosts.ssh.jump else AT_ONCE
            for first in range(0, len(there), at_once):
                group = [Host(one.name, one.master) for one in there[first : first + at_once]]
                crowd = masters.enter_context(Crowd(group, CONNECT_S))
                # A host that cannot be reached is reported later, when all are asked.
                crowd.each(_connect)
            yield there


def client_config(hosts: Hosts, known_hosts: Path) -> str:
    """Return an ssh_config(5) by which a user reaches the hosts as Paribus does."""
    with tempfile.TemporaryDirectory(prefix="paribus-") as folder:
        text = ssh.configure(hosts, str(known_hosts.absolute()), Path(folder)).read_text()
    return "".join(line for line in text.splitlines(True) if "ControlPath" not in line)


def _connect(_number: int, session: Session) -> None:
    session.answer(":")


def _keys(hosts: Sequence[Host]) -> list[HostKey]:
    """Return the keys of the hosts that can be reached; the others fail later, with the reason."""

    def keys(host: Host) -> list[HostKey]:
        with suppress(UserError):
            return scan([host])
        return []

    return [key for found in of_each(hosts, keys, THROUGH_JUMP) for key in found]
