"""The PCIe tree of a host that a user names."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from paribus.cluster.opened import asked_hosts, opened
from paribus.cluster.session import Session, SessionError, nonce, with_each
from paribus.core import HostError, UserError
from paribus.hosts.hostkeys import Accepts
from paribus.probes import from_stream, script
from paribus.topology.sysfs import tree_of
from paribus.topology.tree import Tree

ANSWER_S = 60.0
"""Seconds in which a host answers: the script ends by itself what hangs."""


def tree_of_host(name: str, accepts: Accepts) -> Tree:
    """Return the tree of one host, read there with sh alone.

    Accepted host keys are those of `paribus cluster check`. Raises UserError where `name` is none
    or several, and HostError where it does not answer.
    """
    hosts = asked_hosts(name, {}, "")
    folder = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(name).name).strip("-.") or "hosts"
    known = Path(f"cluster-{folder[:64]}") / "known_hosts"
    with opened(hosts, known, accepts) as there:
        if len(there) != 1:
            raise UserError(f"{len(there)} hosts", place=name, fix="name one host")
        said = with_each(there, ANSWER_S, _read)[0]
    if isinstance(said, SessionError):
        raise HostError(f"the host does not answer: {said}", place=name, fix="log in by ssh first")
    return tree_of(from_stream(said))


def _read(session: Session) -> str:
    mark = nonce()
    command = f"sh -c {shlex.quote(script())} facts {nonce()[:12]} files"
    session.send(f"echo; echo {mark}; {command} </dev/null; echo; echo {mark}\n")
    session.until(mark)
    return "\n".join(session.until(mark)) + "\n"
