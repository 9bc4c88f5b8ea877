"""The hosts that a user names, reachable for as long as a context lasts."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from paribus.border import Place, exists
from paribus.cluster.session import AT_ONCE, Crowd, Session, nonce
from paribus.core import Hosts, UserError, count
from paribus.hosts import ssh
from paribus.hosts.hostkeys import Accepts, HostKey, accept, known, scan
from paribus.hosts.pocket import Pocket
from paribus.hosts.reached import Host
from paribus.launch.local import LocalStation
from paribus.studyfile.hosts import hosts_of

CONNECT_S = 30.0

THROUGH_JUMP = 8
"""Connections that are begun at once through a jump host: sshd turns more away (MaxStartups)."""


def asked_hosts(text: str, given: dict[str, Any], network: str) -> Hosts:
    """Return the hosts that a command line names: nodeset, hostfile, ports, pocket:N.

    Raises StudyError with the fix for what names no hosts.
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
    """Yield the hosts; what was started to reach them ends with the context.

    `mpi` is where MPI is installed, "" for its usual places. Host keys are looked for in
    `known_hosts`; those that `accepts` takes are added there. Raises UserError with the
    fingerprints where it takes them not.
    """
    # Its directory goes even when Paribus is killed.
    with LocalStation() as station:
        folder = station.here
        if hosts.pocket:
            directory = f"{folder}/pocket"
            with Pocket(hosts.pocket, link=hosts.link, directory=directory, needed=[mpi]) as pocket:
                yield pocket.hosts
            return
        config = ssh.configure(hosts, str(known_hosts.absolute()), Path(folder))
        there = ssh.reached_by(config, hosts.names)
        _accept_unknown(there, known_hosts, accepts)
        with ExitStack() as masters:
            at_once = THROUGH_JUMP if hosts.ssh.jump else AT_ONCE
            for first in range(0, len(there), at_once):
                group = [Host(one.name, one.master) for one in there[first : first + at_once]]
                crowd = masters.enter_context(Crowd(group, CONNECT_S))
                # Who cannot be reached is found when all are asked.
                crowd.each(_connect)
            yield there


def client_config(hosts: Hosts, known_hosts: Path) -> str:
    """Return an ssh_config(5) that leads to the hosts as Paribus reaches them."""
    with tempfile.TemporaryDirectory(prefix="paribus-") as folder:
        text = ssh.configure(hosts, str(known_hosts.absolute()), Path(folder)).read_text()
    return "".join(line for line in text.splitlines(True) if "ControlPath" not in line)


def _connect(_number: int, session: Session) -> None:
    mark = nonce()
    session.send(f"echo; echo {mark}\n")
    session.until(mark)


def _accept_unknown(hosts: Sequence[Host], file: Path, accepts: Accepts) -> None:
    unknown = [host for host in hosts if not known(host.name, str(file))]
    if not unknown:
        return
    with ThreadPoolExecutor(THROUGH_JUMP) as pool:
        keys = [key for found in pool.map(_scanned, unknown) for key in found]
    if not keys:
        return
    if not accepts(keys):
        shown = "".join(f"\n    {key.name} {key.fingerprint}" for key in keys)
        raise UserError(
            f"{count(len(keys), 'host key')} not known:{shown}",
            place=str(file),
            fix="compare them with what `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` prints"
            " on each node, then add --accept-host-keys; or name a file that has them:"
            " --known-hosts ~/.ssh/known_hosts",
        )
    file.parent.mkdir(mode=0o700, exist_ok=True)
    accept(keys, file)


def _scanned(host: Host) -> list[HostKey]:
    try:
        return scan([host])
    except UserError:
        return []  # It cannot be reached, as all will see who ask it.
