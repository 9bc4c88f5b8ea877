"""Containers that an engine makes of an image: docker, podman, apptainer, charliecloud.

An engine is started for each rank, or on each host around the launcher or its daemon, and its
container ends with that. sh/image.sh adds options that are known only where it runs: environment,
limits, user. docs/containers.md has the traps of each engine that these options avoid.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath

from paribus.containers.fabric import Capture, Output, script
from paribus.core import Command, Container, typed

STORED = ("docker", "podman")
"""Engines with a store of images, and one command line; those of the others are paths."""

PROGRAMS: Mapping[str, str] = {
    "docker": "docker",
    "podman": "podman",
    "apptainer": "apptainer",
    "singularity": "singularity",
    "charliecloud": "ch-run",
}

TRIAL_S = 120.0
"""Seconds that a first container may take: the engine may unpack the image."""

LONGEST = 300
"""Characters of an engine's own error that are shown."""

_IS_ERROR = re.compile(r"(docker: )?(FATAL|ERROR|Error|Cannot)\b")
_ADVICE = re.compile(r"(Run|See) 'docker run --help'")

_AS_ROOT = """\
[ "$(id -u)" -eq 0 ] || { shift 4; exec "$@"; }
exec unshare --mount --propagation private -- "$@"
"""

NEEDED = (
    "for tool in sh od awk grep sed tr head taskset; do"
    ' command -v "$tool" >/dev/null || echo "$tool"; done'
)


def own_words(container: Container) -> tuple[str, ...]:
    """Return the words after the engine's name that are known before it is started.

    By them ranks share the network, process numbers and shared memory of their machine.
    """
    engine = container.engine
    devices = container.devices
    if engine in STORED:
        return (
            *("run", "--rm", "--pull", "never", "--entrypoint", ""),
            *("--network", container.network if container.network == "none" else "host"),
            *("--pid", "host", "--ipc", "host", "--security-opt", "label=disable"),
            *(word for one in devices for word in ("--device", one)),
            *_gpu_of_store(container),
        )
    if engine == "charliecloud":
        return ()  # it shows all devices
    network = ("--net", "--network", "none") if container.network == "none" else ()
    gpu = {"": (), "nvidia": ("--nv",), "amd": ("--rocm",)}[container.gpu]
    shown = (word for one in devices for word in ("--bind", one))
    return ("exec", *network, *gpu, *shown)


def _gpu_of_store(container: Container) -> tuple[str, ...]:
    match container.gpu, container.engine:
        case "nvidia", "docker":
            return ("--gpus", "all")
        case "nvidia", _:
            return ("--device", "nvidia.com/gpu=all")
        case "amd", _:
            return ("--device", "/dev/kfd", "--device", "/dev/dri", "--group-add", "video")
    return ()


def wrap(command: Command, container: Container, *, scratch: str, prefix: str) -> Command:
    """Return `command` in a container of the image, or without one of the machine's files (podman).

    The sitting's directory, in which `scratch` lies, is bound in, and with `bind_mpi` the machine's
    MPI, whose `prefix` is given.
    """
    places = [str(PurePosixPath(scratch).parent)]
    if container.bind_mpi and prefix not in ("", "/usr"):
        places.append(prefix)
    argv = (
        *("/bin/sh", "-c", script("image.sh"), "paribus"),
        *(container.engine, container.image or "", "\n".join(places)),
        *(prefix, "yes" if container.bind_mpi else "", " ".join(command.env)),
        *(shlex.join(own_words(container)), shlex.join(container.options)),
        *command.argv,
    )
    return replace(command, argv=(*_before(container), *argv))


def _before(container: Container) -> tuple[str, ...]:
    """Return the words before podman that, as root, give it a private place for its state."""
    if container.engine != "podman":
        return ()
    private = ("/bin/sh", "-c", script("podman_store.sh") + script("podman_private.sh"), "paribus")
    return ("/bin/sh", "-c", _AS_ROOT, "paribus", *private)


def check(container: Container, capture: Capture, cache: str) -> str | None:
    """Return None, or a sentence on what is missing; see containers.check.

    Starts a container of the image, with the directory `cache` of kernels bound in.
    """
    engine, image = container.engine, container.image
    program = PROGRAMS[engine]
    if capture(["/bin/sh", "-c", f"command -v {program}"], timeout_s=10).exit_code:
        return f"{program} is not on the PATH: install {engine}"
    if image is not None and (missing := lacking(container, capture)):
        return missing
    words = ("/bin/sh", "-c", NEEDED, "paribus", f"{cache}/kernels")
    trial = wrap(Command(words), container, scratch="/tmp/paribus-trial", prefix="")
    tried = capture(("/bin/sh", "-c", 'cd / && exec "$@"', "sh", *trial.argv), timeout_s=TRIAL_S)
    if tried.exit_code:
        return f"{engine} starts no container here ({_complaint(tried)}): fix that"
    if tools := ", ".join(tried.stdout.split()):
        return (
            f"the image {image} has no {tools}, which binding and facts need: add util-linux,"
            " coreutils, awk, grep and sed to it"
        )
    return None


def lacking(container: Container, capture: Capture) -> str | None:
    """Return a sentence on an image that is missing, with how to get it; None if it is there."""
    engine, image = container.engine, container.image
    if engine in STORED:
        asked = capture(_inspect(container), timeout_s=TRIAL_S)
        if asked.exit_code == 0:
            return None
        error = _complaint(asked)
        if "no such image" in error.lower() or "not known" in error or "No such object" in error:
            get = typed((engine, "pull", image))
            return f"{engine} has no image {image}: `{get}`, on every host"
        return f"{engine} does not answer ({error}): fix that"
    if capture(["test", "-e", str(image)], timeout_s=10).exit_code == 0:
        return None
    by = ("ch-convert", "...") if engine == "charliecloud" else (engine, "pull")
    get = typed((*by, image)) + " ..." * (engine != "charliecloud")
    return f"there is no image {image}: make it with `{get}`, on every host"


def described(container: Container, capture: Capture) -> dict[str, str]:
    """Return the engine's version, and the digest of the image where it has one, as facts."""
    argv = [PROGRAMS[container.engine], "--version"]
    if container.engine == "docker":  # its client may have another
        argv = ["docker", "version", "--format", "{{.Server.Version}}"]
    # Charliecloud fails without USER.
    asked = capture(["env", "USER=root", *argv], timeout_s=30)
    version = re.search(r"\d+(?:\.\w+)+", asked.stdout + asked.stderr)
    facts = {"container.engine_version": version[0] if version else "not known"}
    if container.image is None:
        return facts
    argv = _inspect(container) if container.engine in STORED else ["sha256sum", container.image]
    found = capture(argv, timeout_s=TRIAL_S)  # of a directory there is none
    if found.exit_code == 0 and (words := found.stdout.split()):
        digest = words[0].removeprefix("sha256:")
        facts["container.image_digest"] = f"sha256:{digest}"
    return facts


def _inspect(container: Container) -> list[str]:
    words = [container.engine, "image", "inspect", "--format", "{{.Id}}", str(container.image)]
    return [*_before(container), *words]


def _complaint(output: Output) -> str:
    """Return the error of an engine: its standard error from "Error" on, else the last line."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", output.stderr)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if not _ADVICE.match(line)]
    begin = next((i for i, line in enumerate(lines) if _IS_ERROR.match(line)), len(lines) - 1)
    return " ".join(" ".join(lines[begin:]).split())[:LONGEST] or f"exit code {output.exit_code}"
