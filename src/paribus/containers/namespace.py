"""Containers of our own: Linux namespaces, made with util-linux, and for a network iproute2.

A container has its network, UTS, IPC, mount and PID namespaces, with /proc, /sys, /dev/shm and
TMPDIR to itself; it sees the machine's files and nothing limits its resources, so an arm with it
differs from the host in the network and in little else. docs/containers.md draws the picture.
"""

from __future__ import annotations

from dataclasses import replace

from paribus.containers.fabric import (
    BRIDGE,
    HOST_FSTAB,
    SHARED_MEMORY,
    Capture,
    fabric_fstab,
    fstab_field,
    host_names,
    hosts_file,
    script,
)
from paribus.core import Command, Container

_SCRIPTS = {
    "start.sh": "start.sh",
    "fabric.sh": "fabric.sh",
    "engine.sh": "namespace.sh",
    "host.sh": "host.sh",
    "agent.sh": "agent.sh",
    "enter.sh": "enter.sh",
}


def agent(scratch: str) -> str:
    """Return the path of the launch agent, which starts commands in a container by its name."""
    return f"{scratch}/agent.sh"


def wrap_program(command: Command) -> Command:
    """Return `command` in mount and UTS namespaces of its own.

    The network, PIDs, IPC and /dev/shm stay the machine's: ranks share memory through them.
    """
    return replace(command, argv=("/bin/sh", "-c", script("rank.sh"), "paribus", *command.argv))


def wrap_launcher(command: Command, container: Container, *, hosts: int, scratch: str) -> Command:
    """Return `command` inside a fabric of `hosts` containers; works as root and as a user."""
    del container
    here = fstab_field(scratch)
    files = {
        **{name: script(source) for name, source in _SCRIPTS.items()},
        "hosts": hosts_file(hosts),
        "fabric.fstab": fabric_fstab(scratch),
        "host.fstab": (
            f"{HOST_FSTAB}{SHARED_MEMORY}host-tmp {here}/tmp tmpfs X-mount.mkdir,mode=1777\n"
        ),
        "bridge.ip": BRIDGE,
        "ports.ip": "".join(f"link set {name} master br0 up\n" for name in host_names(hosts)),
    }
    return Command(
        ("/bin/sh", f"{scratch}/start.sh", *command.argv),
        env=command.env,
        files={**command.files, **files},
    )


def check(kind: str, capture: Capture) -> str | None:
    """Return None, or a sentence on what forbids namespaces here; see containers.check."""
    tried = capture(["/bin/sh", "-c", script("check.sh"), "paribus", kind], timeout_s=20)
    if tried.exit_code == 0:
        return None
    word, _, rest = tried.stdout.partition("\n")
    settings = dict(line.replace("/", ".").split() for line in rest.splitlines())
    errors = tried.stderr.strip().splitlines()
    return _sentence(word, settings, errors[-1] if errors else f"exit code {tried.exit_code}")


_PACKAGES = {"ip": "iproute2 (iproute)", "hostname": "hostname", "grep": "grep"}


def _sentence(word: str, settings: dict[str, str], error: str) -> str:
    """Return the sentence on what check.sh found.

    `word`: the step that failed, such as "link veth"; `settings`: values of sysctl by name;
    `error`: the last line of its standard error.
    """
    step, _, name = word.partition(" ")
    if step == "missing":
        package = _PACKAGES.get(name, "util-linux")
        return f"`{name}` is not installed: install {package}"
    if step == "old":
        return f"unshare is too old to know {name}: install util-linux 2.32 or later"
    for key, value in settings.items():
        if key.startswith("user.max_") and value == "0":
            return f"{key} is 0, which forbids it: as root, `sysctl {key}=10000`"
    if settings.get("kernel.unprivileged_userns_clone") == "0":
        return (
            "kernel.unprivileged_userns_clone is 0, which forbids user namespaces to ordinary"
            " users: as root, `sysctl kernel.unprivileged_userns_clone=1`"
        )
    if settings.get("kernel.apparmor_restrict_unprivileged_userns") == "1":
        return (
            "kernel.apparmor_restrict_unprivileged_userns is 1, which takes all rights from user"
            " namespaces of ordinary users: as root, `sysctl"
            " kernel.apparmor_restrict_unprivileged_userns=0`"
        )
    if step == "link":
        return (
            f"this kernel makes no {name} here ({error}): as root, `modprobe {name}`, or use"
            ' each = "rank" with network = "host"'
        )
    if step == "mount":
        return (
            f"a namespace may not mount its own {name} ({error}): if this is itself a container,"
            " start it with `--privileged`, or with `--security-opt unmask=ALL`"
        )
    return (
        f"no CAP_SYS_ADMIN, and no user namespaces either ({error}): run as root; if this is"
        " itself a container, start it with `--privileged`"
    )
