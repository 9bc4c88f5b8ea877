"""Containers around ranks or hosts: pure functions from a command to a command.

each = "host": a container stands for a host with a name and an address of its own. `placement`
gives the launcher the names of these, and `wrap_launcher` makes of the launcher's command one that
runs it inside a private network of such containers (a fabric), which lives as long as the launch.
On the hosts of an arm there is one container on each (`on_hosts.wrap`).
each = "rank": the launcher starts a container for every rank (`wrap_program`), on the network of
the machine: `./solver` becomes `podman run ... ./solver`.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import NamedTuple, Protocol

from paribus.containers import images, namespace, podman
from paribus.containers.fabric import MOST_HOSTS, NETWORK, Capture, host_names
from paribus.core import Command, Container, Mpi, Placement, Slot, hosts_for


class Engine(Protocol):
    """The functions of a module whose engine makes containers that stand for hosts."""

    def agent(self, scratch: str) -> str: ...
    def wrap_launcher(
        self, command: Command, container: Container, *, hosts: int, scratch: str
    ) -> Command: ...


ENGINES: Mapping[str, Engine] = {"namespace": namespace, "podman": podman}


def placement(
    container: Container, slots: Sequence[Slot], *, per_host: int, scratch: str
) -> Placement:
    """Return the placement of ranks on `slots`: `per_host` in each container (0: all in one).

    With each = "rank" they stay on this machine. Raises ValueError, with the fix, as `refusal` has
    it.
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


def wrap_program(
    command: Command, container: Container, *, scratch: str, prefix: str = ""
) -> Command:
    """Return the command that the launcher starts for every rank: `command` in a container.

    `prefix`: that of the machine's MPI. Raises ValueError unless each = "rank".
    """
    _refuse(container)
    if container.each != "rank":
        raise ValueError('each = "host": the container goes around the launcher, not the program')
    if container.engine == "namespace":
        return namespace.wrap_program(command)
    return images.wrap(command, container, scratch=scratch, prefix=prefix)


def wrap_launcher(command: Command, container: Container, *, hosts: int, scratch: str) -> Command:
    """Return the command that runs the launcher in a fabric of `hosts` containers.

    Its exit code is the launcher's, or 125 where the fabric could not be made. Raises ValueError
    unless each = "host".
    """
    _refuse(container, hosts)
    if container.each != "host":
        raise ValueError('each = "rank": the container goes around the program, not the launcher')
    return ENGINES[container.engine].wrap_launcher(command, container, hosts=hosts, scratch=scratch)


def check(
    container: Container, capture: Capture, *, on_hosts: bool = False, cache: str = ""
) -> str | None:
    """Return None if `container` works on this machine, or a sentence: what forbids it, the fix.

    A container is really started, by `capture`, which runs short commands that leave nothing
    behind. `on_hosts`: the machine is a host of an arm. `cache`: the directory of kernels.
    """
    if reason := refusal(container, on_hosts=on_hosts):
        return reason.text
    bridged = container.network == "bridge"
    if bridged or container.engine == "namespace":
        forbidden = namespace.check("bridge" if bridged else container.each, capture)
        if forbidden or container.engine == "namespace":
            return forbidden
    if container.each == "host" and not on_hosts:
        # By its id: an ordinary user's podman finds no short name of an image in a fabric.
        known = images.described(container, capture).get("container.image_digest")
        failure = podman.check(replace(container, image=known or container.image), capture)
        # It only says that no container started; a missing image is often the cause.
        missing = images.lacking(container, capture) if failure and container.image else None
        return missing or failure
    return images.check(container, capture, cache)


class Refusal(NamedTuple):
    """Why a container is possible on no machine, and what to change in the study."""

    cause: str
    fix: str

    @property
    def text(self) -> str:
        """Cause and fix in one sentence."""
        return f"{self.cause}: {self.fix}"


def refusal(container: Container, hosts: int = 1, *, on_hosts: bool = False) -> Refusal | None:
    """Return why `container` is possible on no machine; None if it may be.

    `hosts`: how many hosts containers stand for; `on_hosts`: the arm has hosts of its own.
    """
    if container.engine == "namespace":
        if reason := _beyond_namespaces(container):
            return reason
    elif container.engine != "podman" and container.image is None:
        example = {"docker": "debian:12", "charliecloud": "./image"}.get(
            container.engine, "./image.sif"
        )
        return Refusal(f"{container.engine} needs an image", f'add image = "{example}"')
    if container.each == "host" and not on_hosts and container.engine not in ENGINES:
        return Refusal(
            f"{container.engine} makes no containers that stand for hosts of one machine",
            'use each = "rank", or give the arm hosts',
        )
    if reason := _network(container, on_hosts=on_hosts):
        return reason
    if container.gpu and container.engine == "charliecloud":
        return Refusal(
            "charliecloud has no option for GPUs",
            "put the driver's files into the image with `ch-fromhost`, and drop `gpu`",
        )
    sif = container.engine in ("apptainer", "singularity")
    if sif and set(container.options) & {"-e", "--cleanenv", "-C", "--containall"}:
        return Refusal(
            "--cleanenv takes the launcher's variables from the ranks, and each starts alone",
            "remove it (and --containall, which includes it) from `options`",
        )
    if hosts > MOST_HOSTS:
        return Refusal(f"{hosts} containers", f"a bridge takes {MOST_HOSTS} at most")
    return None


def _beyond_namespaces(container: Container) -> Refusal | None:
    """Return the refusal for what the engine "namespace" does not have; None otherwise."""
    if container.image is not None:
        fix = 'use engine = "podman", or leave image out'
        return Refusal('the engine "namespace" has no images', fix)
    if container.devices or container.gpu or container.options:
        fix = "leave devices, gpu and options out: it shows all devices"
        return Refusal('the engine "namespace" has no options', fix)
    return None


def _network(container: Container, *, on_hosts: bool) -> Refusal | None:
    """Return why containers cannot have the network that is asked for; None if they can."""
    if container.network == "none":
        if container.each == "host" or container.engine in ("namespace", "charliecloud"):
            fix = 'use network = "host", or each = "rank" with docker, podman or apptainer'
            who = container.engine if container.each == "rank" else 'each = "host"'
            return Refusal(f'{who} cannot go with network = "none"', fix)
        return None
    if container.each == "host" and container.network == "host" and not on_hosts:
        return Refusal(
            'network = "host" gives every container the same address, so none can stand for a host',
            'use network = "bridge", or each = "rank", or give the arm hosts',
        )
    if container.each == "rank" and container.network == "bridge":
        return Refusal(
            'each = "rank" with network = "bridge": a rank that the launcher started on this'
            " machine would have another address than the launcher gave to the others",
            'use each = "host", or network = "host"',
        )
    if container.network == "bridge" and container.engine == "docker":
        return Refusal(
            "docker's service makes its bridges on the machine, not in a network of Paribus",
            'use network = "host", or engine = "podman"',
        )
    return None


def misfit(container: Container, mpi: Mpi) -> Refusal | None:
    """Return why ranks in `container` cannot use `mpi`, None if they can."""
    prefix = prefix_of(mpi)
    if container.image and container.bind_mpi and prefix == "/usr":
        return Refusal(
            f"{mpi} lies in /usr, which an image has itself, so it cannot be bound in",
            'use the image\'s (bind_mpi = false), or name one elsewhere: mpi = "/opt/openmpi"',
        )
    if container.each == "rank" and container.network == "none":
        fix = 'use network = "host", or programs without MPI'
        return Refusal("ranks without a network cannot reach their launcher", fix)
    if container.each == "rank" and container.engine in images.STORED and mpi.family != "openmpi":
        return Refusal(
            f"{mpi} gives each rank an open socket, which {container.engine} does not hand on",
            "use Open MPI, apptainer or charliecloud",
        )
    return None


def asked(container: Container) -> dict[str, str]:
    """Return the settings of a container in the study, as facts."""
    facts = {f"container.{key}": getattr(container, key) for key in ("engine", "network", "each")}
    if container.image:
        facts["container.image"] = container.image
        facts["container.mpi"] = "of the machine" if container.bind_mpi else "of the image"
    if container.gpu:
        facts["container.gpu"] = container.gpu
    for key, words in (("devices", container.devices), ("options", container.options)):
        if words:
            facts[f"container.{key}"] = shlex.join(words)
    return facts


def prefix_of(mpi: Mpi | None) -> str:
    """Return the prefix of an installation, "" for none."""
    return str(PurePosixPath(mpi.mpirun).parent.parent) if mpi else ""


def _refuse(container: Container, hosts: int = 1) -> None:
    if reason := refusal(container, hosts):
        raise ValueError(reason.text)
