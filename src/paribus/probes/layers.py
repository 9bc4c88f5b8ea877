"""What lies between the program and the machine: virtual machines, containers, namespaces.

In Docker on a virtual machine of KVM, `layers.all` is ["kvm", "docker"].
"""

from __future__ import annotations

from typing import Any

from paribus.probes.archive import Archive, Unknown
from paribus.probes.values import fields, scalar

# Numbers of the first namespaces (include/linux/proc_ns.h). Before Linux 6.18 those of mnt and net
# were not fixed, but among the first that were given out, from 0xF0000000 on.
_FIRST = {
    "cgroup": 0xEFFFFFFB,
    "ipc": 0xEFFFFFFF,
    "mnt": 0xEFFFFFF8,
    "net": 0xEFFFFFF9,
    "pid": 0xEFFFFFFC,
    "time": 0xEFFFFFFA,
    "user": 0xEFFFFFFD,
    "uts": 0xEFFFFFFE,
}
_EARLY = range(0xF0000000, 0xF0000000 + 160)
# Words in the texts of firmware and clock, and the hypervisor that each shows.
_HYPERVISORS = {
    "kvm": "kvm",
    "qemu": "qemu",
    "vmware": "vmware",
    "virtualbox": "virtualbox",
    "innotek": "virtualbox",
    "xen": "xen",
    "amazon ec2": "amazon",
    "google compute engine": "google",
    "microsoft corporation virtual machine": "hyper-v",
    "hyperv": "hyper-v",
    "openstack": "openstack",
    "parallels": "parallels",
    "bhyve": "bhyve",
    "firecracker": "firecracker",
}
# Words in the names of control groups, and the engine of containers that each shows.
_ENGINES = {
    "docker": "docker",
    "libpod": "podman",
    "kubepods": "kubernetes",
    "containerd": "containerd",
    "lxc": "lxc",
    "machine.slice": "nspawn",
    "crio": "cri-o",
}
# Files that engines leave in each container.
_MARKS = {
    "/.dockerenv": "docker",
    "/run/.containerenv": "podman",
    "/.singularity.d": "apptainer",
}


def layers_facts(archive: Archive) -> dict[str, Any]:
    """Return every layer that shows, outermost first, and the namespaces that are not the host's.

    A layer that hides itself cannot be seen; a hypervisor that does not say its name is "vm".
    """
    machine, containers = _machine(archive), _containers(archive)
    groups, processor = archive.read("/proc/self/cgroup"), archive.read("/proc/cpuinfo")
    # An empty list is only known where there was something to see.
    known_machine = processor if isinstance(processor, Unknown) and not machine else machine
    known_containers = groups if isinstance(groups, Unknown) and not containers else containers
    unknown = [part for part in (known_machine, known_containers) if isinstance(part, Unknown)]
    return {
        "layers.machine": known_machine,
        "layers.containers": known_containers,
        "layers.namespaces": _namespaces(archive),
        "layers.all": unknown[0] if unknown else [*machine, *containers],
        "layers.root": _root(archive),
        "layers.user_map": scalar(archive.read("/proc/self/uid_map")),
    }


def _machine(archive: Archive) -> list[str]:
    """Return the hypervisors that show, sorted: ["kvm"], or [] where none does."""
    dmi = " ".join(
        archive.text(f"/sys/class/dmi/id/{name}")
        for name in ("sys_vendor", "product_name", "board_vendor", "bios_vendor")
    )
    texts = [dmi, archive.text("/sys/hypervisor/type")]
    clock = "/sys/devices/system/clocksource/clocksource0/"
    texts += [archive.text(clock + "available_clocksource")]
    whole = " ".join(texts).lower()
    found = sorted({name for word, name in _HYPERVISORS.items() if word in whole})
    detected = archive.tool("detect-vm")
    if isinstance(detected, str) and detected not in ("none", ""):
        found = sorted({*found, detected.split("\n")[0]})
    flags = archive.text("/proc/cpuinfo")
    virtual = any("hypervisor" in value.split() for key, value in fields(flags) if key == "flags")
    if "microsoft" in archive.text("/proc/sys/kernel/osrelease").lower():
        found.append("wsl")
    return found or (["vm"] if virtual else [])


def _containers(archive: Archive) -> list[str]:
    """Return the engines of the containers that we are in, sorted: ["docker"]."""
    found = {name for mark, name in _MARKS.items() if mark in archive.lists.get("present", ())}
    groups = archive.text("/proc/self/cgroup")
    found |= {name for word, name in _ENGINES.items() if word in groups}
    reported = archive.text("/run/systemd/container")
    detected = archive.tool("detect-container")
    if isinstance(detected, str) and detected != "none":
        reported = reported or detected
    found |= {reported.split("\n")[0]} if reported else set()
    names = {line.partition("=")[0] for line in archive.lists.get("environment", ())}
    if names & {"APPTAINER_CONTAINER", "SINGULARITY_CONTAINER"}:
        found.add("apptainer")
    if not found and "pid" in own_namespaces(archive) and "mnt" in own_namespaces(archive):
        found.add("container")  # of an engine that leaves no mark
    return sorted(found)


def own_namespaces(archive: Archive) -> list[str]:
    """Return the kinds of namespace in which we are not in the machine's first: ["mnt", "pid"]."""
    kinds = []
    for line in archive.lists.get("namespaces", ()):
        kind, _, digits = line.partition(" ")
        if kind in _FIRST and digits.isdecimal() and len(digits) < 20:
            number = int(digits)
            early = kind in ("mnt", "net") and number in _EARLY
            if number != _FIRST[kind] and not early:
                kinds.append(kind)
    return kinds


def _namespaces(archive: Archive) -> list[str] | Unknown:
    return own_namespaces(archive) if archive.lists.get("namespaces") else Unknown.ABSENT


def _root(archive: Archive) -> str | Unknown:
    """Return the type of the file system at /: "overlay" in most containers."""
    text = archive.read("/proc/self/mountinfo")
    if isinstance(text, Unknown):
        return text
    kinds = [
        line.partition(" - ")[2].split(" ")[0]
        for line in text.split("\n")
        if line.split(" ")[4:5] == ["/"]
    ]
    return kinds[-1] if kinds and kinds[-1] else Unknown.ABSENT
