"""The hosts that a user names, reachable for as long as a context lasts."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from paribus.errors import UserError
from paribus.fields import Place
from paribus.hosts import Hosts
from paribus.inputs import exists
from paribus.platform.hosts import Host
from paribus.platform.pocket import Pocket
from paribus.study.hosts import hosts_of


def asked_hosts(text: str, ssh: dict[str, Any], network: str) -> Hosts:
    """Return the hosts that a command line names: nodeset, hostfile, ports, pocket:N.

    Raises StudyError with the fix for what names no hosts.
    """
    table: dict[str, Any] = {"hosts": text}
    if "/" not in text and exists(Path(text)):
        table["hosts"] = f"./{text}"
    if given := {key: value for key, value in ssh.items() if value}:
        table["ssh"] = given
    if network:
        table["network"] = network
    hosts = hosts_of(Place("command line", "", table), Path())
    assert hosts is not None
    return hosts


@contextmanager
def opened(hosts: Hosts) -> Iterator[Sequence[Host]]:
    """Yield the hosts; what was started to reach them ends with the context.

    Raises UserError where they cannot be had at all.
    """
    if not hosts.pocket:
        raise UserError("hosts over ssh are not there yet", fix='name "pocket:3"')
    with (
        tempfile.TemporaryDirectory(prefix="paribus-") as folder,
        Pocket(hosts.pocket, directory=f"{folder}/pocket") as pocket,
    ):
        yield pocket.hosts
