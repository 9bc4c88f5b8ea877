"""Containers around ranks or hosts: pure functions from a command to a command.

each = "host": a container stands for a host with a name and an address of its own. `placement`
tells the launcher where its ranks go, and `wrap_launcher` carries the whole launcher command out
inside a private network of such containers (a fabric), which exists exactly as long as it.
each = "rank": the launcher starts a container for every rank (`wrap_program`), on the network of
the machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from paribus.command import Command, Placement, Slot
from paribus.design import Container
from paribus.platform.containers import namespace, podman
from paribus.platform.containers.fabric import MOST_HOSTS, NETWORK, Capture, host_names


class Engine(Protocol):
    """What an engine module offers; the functions below say what each returns."""

    def agent(self, scratch: str) -> str: ...
    def wrap_launcher(
        self, command: Command, container: Container, *, hosts: int, scratch: str
    ) -> Command: ...
    def check(self, container: Container, capture: Capture) -> str | None: ...


ENGINES: Mapping[str, Engine] = {"namespace": namespace, "podman": podman}


def placement(
    container: Container, slots: Sequence[Slot], *, per_host: int, scratch: str
) -> Placement:
    """Return `slots` with their nodes: `per_host` ranks in each container (0: all in one), or all
    on this machine.

    Raises ValueError, with the fix, for a container that cannot be (see `refusal`).
    """
    hosts = hosts_for(container, len(slots), per_host)
    _refuse(container, hosts)
    if container.each == "rank":
        return Placement(tuple(slots))
    names = host_names(hosts)
    return Placement(
        tuple(Slot(names[i // (per_host or len(slots))], s.cores) for i, s in enumerate(slots)),
        agent=ENGINES[container.engine].agent(scratch),
        network=NETWORK,
    )


def hosts_for(container: Container | None, ranks: int, per_host: int) -> int:
    """Return how many hosts `ranks` ranks see: containers that stand for hosts, or this machine."""
    if container is None or container.each == "rank" or not per_host:
        return 1
    return -(-ranks // per_host)


def wrap_program(command: Command, container: Container, *, scratch: str) -> Command:
    """Return the program as the launcher starts it for every rank: a container around it.

    Raises ValueError unless `container` holds a rank (each = "rank").
    """
    _refuse(container)
    if container.each != "rank":
        raise ValueError('each = "host": the container goes around the launcher, not the program')
    return namespace.wrap_program(command)


def wrap_launcher(command: Command, container: Container, *, hosts: int, scratch: str) -> Command:
    """Return the launcher's command, carried out in a fabric of `hosts` containers.

    The command ends as the launcher does; 125 means that the fabric could not be made. Raises
    ValueError unless `container` holds a host (each = "host").
    """
    _refuse(container, hosts)
    if container.each != "host":
        raise ValueError('each = "rank": the container goes around the program, not the launcher')
    return ENGINES[container.engine].wrap_launcher(command, container, hosts=hosts, scratch=scratch)


def check(container: Container, capture: Capture) -> str | None:
    """Return None if `container` works here, or a sentence: what forbids it, the fix.

    Tries in earnest: `capture(argv, timeout_s=...)` starts short commands that leave nothing
    behind and returns exit_code, stdout and stderr.
    """
    if reason := refusal(container):
        return reason.text
    return ENGINES[container.engine].check(container, capture)


class Refusal(NamedTuple):
    """Why no machine can do what a container asks for, and what to change."""

    cause: str
    fix: str

    @property
    def text(self) -> str:
        return f"{self.cause}: {self.fix}"


def refusal(container: Container, hosts: int = 1) -> Refusal | None:
    """Return why no machine can do what `container` asks for; None if one can."""
    if container.each == "host" and container.network == "host":
        return Refusal(
            'network = "host" gives every container the same address, so none can stand for a host',
            'use network = "bridge", or each = "rank"',
        )
    if container.each == "rank" and container.network == "bridge":
        return Refusal(
            'each = "rank" with network = "bridge": a rank that the launcher started on this'
            " machine would have another address than the launcher gave to the others",
            'use each = "host", or network = "host"',
        )
    if container.engine == "podman" and container.each == "rank":
        return Refusal(
            "podman gives every container its own process numbers, and ranks on one machine that"
            " have the same take each other for themselves",
            'use each = "host", or engine = "namespace"',
        )
    if container.engine == "namespace" and container.image is not None:
        return Refusal(
            'the engine "namespace" has no images', 'use engine = "podman", or leave image out'
        )
    if hosts > MOST_HOSTS:
        return Refusal(f"{hosts} containers", f"a bridge takes {MOST_HOSTS} at most")
    return None


def _refuse(container: Container, hosts: int = 1) -> None:
    if reason := refusal(container, hosts):
        raise ValueError(reason.text)
