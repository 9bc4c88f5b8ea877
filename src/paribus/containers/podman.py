"""Containers by podman: its own runtime, seccomp filter and bridge network, all inside a fabric.

podman leaves much behind: cgroups, named network namespaces, firewall chains, locks, records of its
network plugins. Here it runs in namespaces that end with the launch, and makes no cgroups at all.
docs/containers.md has what differs by that.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from paribus.containers.fabric import (
    BRIDGE,
    FABRIC,
    NETWORK,
    Capture,
    fstab_field,
    hosts_file,
    script,
)
from paribus.core import Command, Container

_SCRIPTS = {
    "start.sh": "start.sh",
    "fabric.sh": "fabric.sh",
    "runc.sh": "podman_runc.sh",
    "host.sh": "podman_host.sh",
    "environment.sh": "podman_environment.sh",
    "agent.sh": "podman_agent.sh",
    "enter.sh": "enter.sh",
}


def agent(scratch: str) -> str:
    """Return the path of the launch agent, which starts commands in a container by its name."""
    return f"{scratch}/agent.sh"


def wrap_launcher(command: Command, container: Container, *, hosts: int, scratch: str) -> Command:
    """Return `command` inside a fabric of `hosts` podman containers; as root and as a user.

    Their files are the machine's own; or, with an image, that of podman's local store, and the
    directories of the launcher, its program and other words that are paths outside /usr.
    """
    here = fstab_field(scratch)
    files = {
        **{name: script(source) for name, source in _SCRIPTS.items()},
        "engine.sh": script("podman_store.sh") + script("podman.sh"),
        "hosts": hosts_file(hosts),
        "fabric.fstab": (
            "fabric-proc /proc proc\n"
            "fabric-sys /sys sysfs\n"
            "fabric-run /run tmpfs mode=755\n"
            f"{here}/hosts /etc/hosts none bind\n"
        ),
        "bridge.ip": BRIDGE,
        "containers.conf": _configuration(scratch),
        "paribus.conflist": json.dumps(_CNI, indent=1),
        "paribus.json": json.dumps(_NETAVARK, indent=1),
    }
    if container.image is not None:
        files["image"] = f"{container.image}\n"
    return Command(
        ("/bin/sh", f"{scratch}/start.sh", *command.argv),
        env=command.env,
        files={**command.files, **files},
    )


def check(container: Container, capture: Capture) -> str | None:
    """Return None, or the sentence that says what podman lacks here; see containers.check.

    Writes the files of a trial launch into a temporary directory.
    """
    tools = "command -v podman >/dev/null || exit 3; command -v crun || command -v runc || exit 4"
    match capture(["/bin/sh", "-c", tools], timeout_s=10).exit_code:
        case 3:
            return "podman is not installed: install it"
        case 4:
            return "podman has no runtime here: install crun or runc"
    with tempfile.TemporaryDirectory(prefix="paribus-check-") as scratch:
        trial = Command((agent(scratch), "c1", "true"))
        trial = wrap_launcher(trial, container, hosts=1, scratch=scratch)
        for name, text in trial.files.items():
            path = Path(scratch, name)
            path.write_text(text, encoding="utf-8")
            path.chmod(0o700)
        # In /, for an image lacks the directory in which Paribus was started.
        tried = capture(("/bin/sh", "-c", 'cd / && exec "$@"', "sh", *trial.argv), timeout_s=60)
    if tried.exit_code == 0:
        return None
    lines = [line for line in tried.stderr.splitlines() if line.strip()]
    reason = lines[-1].strip() if lines else f"exit code {tried.exit_code}"
    return f"podman starts no container here ({reason}): fix that"


def _configuration(scratch: str) -> str:
    """Return containers.conf(5), read in place of the machine's and the user's."""
    return f"""\
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
lock_type = "file"
runtime_supports_nocgroup = ["crun", "runc"]
[engine.runtimes]
runc = ["{scratch}/runc.sh"]
[network]
network_config_dir = "/run/paribus/net"
"""


# The network as podman's own default one is, with our addresses, for either of podman's two
# back ends: CNI plugins (podman 3 and 4) and netavark (podman 4 and 5).
_CNI = {
    "cniVersion": "0.4.0",
    "name": "paribus",
    "plugins": [
        {
            "type": "bridge",
            "bridge": "br0",
            "isGateway": True,
            "ipMasq": True,
            "hairpinMode": True,
            "ipam": {
                "type": "host-local",
                "routes": [{"dst": "0.0.0.0/0"}],
                "ranges": [[{"subnet": NETWORK, "gateway": FABRIC}]],
            },
            "capabilities": {"ips": True},
        },
        {"type": "portmap", "capabilities": {"portMappings": True}},
        {"type": "firewall", "backend": ""},
        {"type": "tuning"},
    ],
}
_NETAVARK = {
    "name": "paribus",
    "id": "7061726962757300000000000000000000000000000000000000000000000000",
    "driver": "bridge",
    "network_interface": "br0",
    "created": "2026-01-01T00:00:00Z",
    "subnets": [{"subnet": NETWORK, "gateway": FABRIC}],
    "ipv6_enabled": False,
    "internal": False,
    "dns_enabled": False,
    "ipam_options": {"driver": "host-local"},
}
