"""The container of an arm, as study files write it."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from paribus.benchmarks.tool import located
from paribus.border import Place, fields
from paribus.core import Container, Hosts, typed

KEYS = ("engine", "network", "each", "image", "bind_mpi", "devices", "gpu", "options")
ENGINES = ("namespace", "podman", "docker", "apptainer", "singularity", "charliecloud")


def container_of(arm: Place, folder: Path, hosts: Hosts | None) -> Container | None:
    """Return the container of the arm at `arm`, None if it has none; paths are from `folder`."""
    if "container" not in arm.table:
        return None
    from paribus import containers

    if hosts and hosts.launcher:
        fix = "remove `launcher`: the MPI's own starts ranks in containers"
        arm.refuse("container", None, "srun is not used with containers", fix)
    table = arm.table["container"]
    if isinstance(table, str):
        engine = table if table in ENGINES else (get_close_matches(table, ENGINES) or ["podman"])[0]
        fix = f'write it as a table: container = {{ engine = "{engine}" }}; the engines are'
        arm.refuse("container", table, "is not a table", f"{fix} {', '.join(ENGINES)}")
    place = arm.within(f"{arm.path}.container", table)
    place.only(KEYS)
    engine = place.need("engine", fields.one_of(*ENGINES), 'engine = "namespace"')
    stands: Literal["rank", "host"] = "host" if engine in containers.ENGINES else "rank"
    each = place.read("each", fields.one_of("rank", "host"), stands)
    networks = fields.one_of("bridge", "host", "none")
    image = place.read("image", fields.text, None)
    if image and engine not in ("docker", "podman", "namespace"):
        image = _path(place, folder, engine, image)
    elif image and "://" in image and engine != "namespace":
        get = f"`{typed((engine, 'pull', image))}`, then give the name that `{engine} images` shows"
        place.refuse("image", image, "is not a name of the local store", get)
    found = Container(
        engine=engine,
        network=place.read("network", networks, "bridge" if each == "host" else "host"),
        each=each,
        image=image,
        bind_mpi=place.read("bind_mpi", fields.one_of(True, False), True),
        devices=place.read("devices", fields.texts, ()),
        gpu=place.read("gpu", fields.one_of("nvidia", "amd"), ""),
        options=place.read("options", fields.texts, ()),
    )
    if hosts and not hosts.pocket and each == "host" and found.network == "bridge":
        fix = 'use network = "host", or hosts = "pocket:2"'
        arm.refuse("container", None, "only pocket hosts are joined by bridges of containers", fix)
    return found


def _path(place: Place, folder: Path, engine: str, image: str) -> str:
    """Return the path of an image that is a file or a directory."""
    if "://" in image:
        get = typed((engine, "pull", "image.sif", image))
        if engine == "charliecloud":
            get = typed(("ch-image", "pull", image.partition("://")[2]))
        place.refuse("image", image, "would be fetched by every rank", f"fetch it once: `{get}`")
    return located(folder, image if "/" in image else f"./{image}")
