"""File systems under the working and the temporary directory, and the disks.

storage_facts(archive) returns {"storage.working.type": "nfs4", ...}.
"""

from __future__ import annotations

from typing import Any

from paribus.probes.archive import Archive, Unknown
from paribus.probes.devices import Device, numbered
from paribus.probes.values import chosen, scalar

_BLOCK = "/sys/block/"
_NETWORK = {"nfs", "nfs4", "cifs", "smb3", "lustre", "gpfs", "beegfs", "ceph", "glusterfs", "9p"}
_NETWORK |= {"fuse.sshfs", "fuse.glusterfs", "afs", "orangefs", "panfs", "virtiofs"}
_PLACES = ("lowerdir", "upperdir", "workdir", "fsid", "addr", "clientaddr", "mountaddr", "trans")
"""Mount options that say where something is: they differ on every node and are left out."""


def storage_facts(archive: Archive) -> dict[str, Any]:
    """Return type and options of the file systems that a launch uses, and the disks' settings."""
    facts: dict[str, Any] = {}
    mounts = archive.read("/proc/self/mountinfo")
    directories = dict(
        line.split(" ", 1) for line in archive.lists.get("directories", ()) if " " in line
    )
    for name, path in {**directories, "shm": "/dev/shm"}.items():
        if name in ("working", "temporary", "shm"):
            facts |= _file_system(f"storage.{name}", path, mounts)
    return facts | numbered(_disk(archive, disk) for disk in archive.names(_DISKS))


_DISKS = _BLOCK + "*/queue/rotational"


def _file_system(key: str, path: str, mounts: str | Unknown) -> dict[str, Any]:
    """Return type, options and whether it is remote, of the mount in `mounts` that holds `path`."""
    names = (f"{key}.type", f"{key}.options", f"{key}.remote")
    if isinstance(mounts, Unknown):
        return dict.fromkeys(names, mounts)
    best: tuple[int, str, str] | None = None  # length of the mount point, type, options
    for line in mounts.split("\n"):
        before, _, after = line.partition(" - ")
        left, right = before.split(" "), after.split(" ")
        if len(left) < 6 or len(right) < 3:
            continue
        point = left[4].replace("\\040", " ")
        inside = point == "/" or path == point or path.startswith(point + "/")
        # Of several mounts on one point the last is in force.
        if inside and (best is None or len(point) >= best[0]):
            best = len(point), right[0], _options(f"{left[5]},{right[2]}")
    if best is None:
        return dict.fromkeys(names, Unknown.ABSENT)
    return {names[0]: best[1], names[1]: best[2], names[2]: best[1] in _NETWORK}


def _options(text: str) -> str:
    options = {word for word in text.split(",") if word.partition("=")[0] not in _PLACES}
    return ",".join(sorted(options))


def _disk(archive: Archive, name: str) -> Device:
    base = f"{_BLOCK}{name}/queue/"
    hardware = {
        "rotational": scalar(archive.read(base + "rotational")),
        "block_bytes": scalar(archive.read(base + "logical_block_size")),
        "cache": scalar(archive.read(base + "write_cache")),
    }
    settings = {
        "scheduler": chosen(archive.read(base + "scheduler")),
        "read_ahead_kib": scalar(archive.read(base + "read_ahead_kb")),
        "requests": scalar(archive.read(base + "nr_requests")),
    }
    return Device("storage.disk", hardware, settings, {"name": name})
