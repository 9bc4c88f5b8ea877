"""What the engines share: names and addresses of the containers of a fabric, and its scripts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Protocol

NETWORK = "10.77.0.0/16"
"""The fabric's addresses; in a network namespace of its own they collide with no others."""

FABRIC = "10.77.255.254"
"""The launcher's own address in the fabric, that of the bridge."""

BRIDGE = f"""\
link set lo up
link add br0 type bridge
addr add {FABRIC}/16 dev br0
link set br0 up
"""
"""The lines for `ip -batch` that make the bridge."""

MOST_HOSTS = 1000
"""A Linux bridge has 1023 ports at most (BR_PORT_BITS is 10)."""


class Output(Protocol):
    """How a short command ended, and what it printed."""

    @property
    def exit_code(self) -> int: ...
    @property
    def stdout(self) -> str: ...
    @property
    def stderr(self) -> str: ...


class Capture(Protocol):
    """A function that runs a short command; exit code 127 when the program is missing."""

    def __call__(self, argv: Sequence[str], *, timeout_s: float = ...) -> Output: ...


def host_names(count: int, letter: str = "c") -> tuple[str, ...]:
    """Return the names of `count` containers: c1, c2, ...; those of pocket hosts begin with h."""
    return tuple(f"{letter}{i}" for i in range(1, count + 1))


def address(index: int) -> str:
    """Return the address of container `index`, counted from 1."""
    high, low = divmod(index - 1, 250)
    return f"10.77.{high}.{low + 1}"


def hosts_file(count: int, letter: str = "c") -> str:
    """Return the /etc/hosts of the fabric: every container, and the launcher as `fabric`."""
    lines = ["127.0.0.1 localhost", f"{FABRIC} fabric"]
    lines += [f"{address(i)} {name}" for i, name in enumerate(host_names(count, letter), 1)]
    return "".join(f"{line}\n" for line in lines)


def fstab_field(path: str) -> str:
    r"""Return `path` as a field of fstab(5).

    >>> fstab_field("/tmp/my study")
    '/tmp/my\\040study'
    """
    return path.replace("\\", "\\134").replace(" ", "\\040").replace("\t", "\\011")


def fabric_fstab(scratch: str) -> str:
    """Return the fstab of what the fabric mounts, for `mount -T`."""
    hosts = f"{fstab_field(scratch)}/hosts"
    return f"fabric-proc /proc proc\nfabric-sys /sys sysfs\n{hosts} /etc/hosts none bind\n"


HOST_FSTAB = "host-proc /proc proc\nhost-sys /sys sysfs\n"
SHARED_MEMORY = "host-shm /dev/shm tmpfs mode=1777\n"
"""Lines of the fstab of what each host mounts for itself."""


@cache
def script(name: str) -> str:
    """Return the text of one of the shell scripts in sh/."""
    return files("paribus.containers").joinpath("sh", name).read_text(encoding="utf-8")
