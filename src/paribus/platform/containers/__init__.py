"""Containers around ranks or hosts: pure functions from a command to a command.

each = "host": a container stands for a host with a name and an address of its own. `placement`
tells the launcher where its ranks go, and `wrap_launcher` carries the whole launcher command out
inside a private network of such containers (a fabric), which exists exactly as long as it.
each = "rank": the launcher starts a container for every rank (`wrap_program`), on the network of
the machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from paribus.model import Command, Container, Placement
from paribus.platform.containers import namespace, podman
from paribus.platform.containers.fabric import MOST_HOSTS, NETWORK, Capture, host_names


class Engine(Protocol):
    """What an engine module offers; the functions below say what each returns."""

    def agent(self, scratch: str) -> str: ...
    def wrap_launcher(
        self, command: Command, container: Container, *, ranks: int, scratch: str
    ) -> Command: ...
    def check(self, container: Container, capture: Capture) -> str | None: ...


ENGINES: Mapping[str, Engine] = {"namespace": namespace, "podman": podman}


def placement(
    container: Container, *, ranks: int, cores: tuple[int, ...], scratch: str
) -> Placement:
    """Return where the launcher puts `ranks` ranks: one container each, or all on this machine.

    Raises ValueError, with the fix, for a container that cannot be (see `refusal`).
    """
    _refuse(container, ranks)
    if container.each == "rank":
        return Placement(cores=cores)
    return Placement(
        hosts=tuple((name, 1) for name in host_names(ranks)),
        agent=ENGINES[container.engine].agent(scratch),
        network=NETWORK,
        cores=cores,
    )


def wrap_program(command: Command, container: Container, *, scratch: str) -> Command:
    """Return the program as the launcher starts it for every rank: a container around it.

    Raises ValueError unless `container` holds a rank (each = "rank").
    """
    _refuse(container)
    if container.each != "rank":
        raise ValueError('each = "host": the container goes around the launcher, not the program')
    return namespace.wrap_program(command)


def wrap_launcher(command: Command, container: Container, *, ranks: int, scratch: str) -> Command:
    """Return the launcher's command, carried out in a fabric with one container per rank.

    The command ends as the launcher does; 125 means that the fabric could not be made. Raises
    ValueError unless `container` holds a host (each = "host").
    """
    _refuse(container, ranks)
    if container.each != "host":
        raise ValueError('each = "rank": the container goes around the program, not the launcher')
    return ENGINES[container.engine].wrap_launcher(command, container, ranks=ranks, scratch=scratch)


def check(container: Container, capture: Capture) -> str | None:
    """Return None if `container` works here, or a sentence: what forbids it, the fix.

    Tries in earnest: `capture(argv, timeout_s=...)` starts short commands that leave nothing
    behind and returns exit_code, stdout and stderr.
    """
    return refusal(container) or ENGINES[container.engine].check(container, capture)


def refusal(container: Container, ranks: int = 1) -> str | None:
    """Return why no machine can do what `container` asks for, with the fix; None if one can."""
    if container.each == "host" and container.network == "host":
        return (
            'network = "host" gives every container the same address, so none can stand for a'
            ' host: use network = "bridge", or each = "rank"'
        )
    if container.each == "rank" and container.network == "bridge":
        return (
            'each = "rank" with network = "bridge": a rank that the launcher started on this'
            " machine would have another address than the launcher gave to the others: use"
            ' each = "host", or network = "host"'
        )
    if container.engine == "podman" and container.each == "rank":
        return (
            "podman gives every container its own process numbers, and ranks on one machine that"
            ' have the same take each other for themselves: use each = "host", or engine ='
            ' "namespace"'
        )
    if container.engine == "namespace" and container.image is not None:
        return 'the engine "namespace" has no images: use engine = "podman", or leave image out'
    if ranks > MOST_HOSTS:
        return f"{ranks} containers: a bridge takes {MOST_HOSTS} at most"
    return None


def _refuse(container: Container, ranks: int = 1) -> None:
    if reason := refusal(container, ranks):
        raise ValueError(reason)
