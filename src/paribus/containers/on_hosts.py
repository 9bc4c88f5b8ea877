"""Containers that stand for the hosts of an arm: one on each, around its launcher or its daemon.

The launcher runs in the container of the first host, and its launch agent starts each daemon in
that of another. A container lives as long as its launcher or daemon.
"""

from __future__ import annotations

import shlex
from dataclasses import replace

from paribus.containers import images
from paribus.containers.fabric import script
from paribus.core import Command, Container

BRIDGED = "10.78.0.0/16"
"""The addresses of bridged containers: 10.78.N.1 on the Nth host."""

_AGENT, _ARGV = "container-agent.sh", "container.argv"


def agent(scratch: str) -> str:
    """Return the path of the launch agent that enters containers, on each host."""
    return f"{scratch}/{_AGENT}"


def wrap(
    command: Command, container: Container, *, hosts: int, scratch: str, prefix: str
) -> Command:
    """Return `command` in the container of the first host, with the agent for the others' daemons.

    `hosts`: how many hosts a pocket cluster has, whose bridges are joined. `prefix`: that of MPI.
    """
    nothing = Command((), env=command.env)
    if container.engine == "namespace":
        inner: tuple[str, ...] = ("/bin/sh", "-c", script("whole_host.sh"), "paribus")
    else:
        inner = images.wrap(nothing, container, scratch=scratch, prefix=prefix).argv
    if container.network == "bridge":
        inner = ("/bin/sh", "-c", script("bridged.sh"), "paribus", str(hosts), *inner)
    files = {_AGENT: script("host_agent.sh"), _ARGV: f"{shlex.join(inner)}\n"}
    return replace(command, argv=(*inner, *command.argv), files={**command.files, **files})
