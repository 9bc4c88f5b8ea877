"""Files that the nodes of a scheduler need, and whether only this machine may have them.

Only a node can show that it lacks a file; what can be seen here is reported before a submission.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from paribus.benchmarks import benchmark_of
from paribus.core import Arm, Study
from paribus.launch.arms import program
from paribus.launch.machine import HERE
from paribus.launch.programs import started
from paribus.probes.archive import Archive
from paribus.probes.reading import read_file
from paribus.probes.storage import storage_facts

INSTALLED = tuple(map(Path, ("/usr", "/opt", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/nix")))
"""Where a site installs what all of its machines have, each on its own disk."""


def needed(study: Study, directory: Path) -> list[Path]:
    """Return the files and directories here that nodes of a scheduler need at the same path.

    Programs that are built for a study are beside its `directory`. What this machine lacks is left
    out: the nodes may have it. So are arms whose nodes can be asked: in a job, in containers.
    """
    found = []
    for arm in study.arms:
        asked = arm.hosts.scheduler if arm.hosts else None
        if asked is None:
            continue
        from paribus.schedulers.known import in_job

        inside = asked.image or (arm.container and arm.container.image)
        if not inside and not in_job(asked.name):
            found += [Path(name) for name in _named(study, arm) if name.startswith("/")]
            found += [directory.absolute().parent] if arm.build else []
    return [
        path
        for path in dict.fromkeys(found)
        if path.exists() and not any(path.is_relative_to(place) for place in INSTALLED)
    ]


def shown(study: Study) -> list[str]:
    """Return the paths of this machine that pocket hosts must see."""
    found = [str(Path(study.path).absolute().parent)]
    for arm in study.arms:
        found += _named(study, arm)
        for one in study.benchmarks:
            wanted = program(arm, one, benchmark_of(one))
            found += [*arm.wrap, *wanted.argv, *wanted.server]
        found += [part for value in arm.env.values() for part in value.split(":")]
    return found


def _named(study: Study, arm: Arm) -> Iterator[str]:
    """Yield what the launches of `arm` need: names and paths of programs, files, directories."""
    if arm.mpi and "/" in arm.mpi:
        yield str(HERE.absolute(arm.mpi))
    yield from arm.wrap[:1]
    for one in study.benchmarks:
        wanted = program(arm, one, benchmark_of(one))
        yield from (*started(wanted), *wanted.needs, wanted.cwd)


def unshared(paths: Iterable[Path]) -> dict[Path, str]:
    """Return those of `paths` that are on no network file system, with the type of theirs."""
    real = {path: path.resolve() for path in paths}  # first, as this lets automounters mount
    mounts = read_file(Path("/proc/self/mountinfo"))
    found = {}
    for path, at in real.items():
        facts = storage_facts(
            Archive({"/proc/self/mountinfo": mounts}, lists={"directories": [f"working {at}"]})
        )
        kind = str(facts["storage.working.type"])
        if facts["storage.working.remote"] is False and not kind.startswith("fuse"):
            found[path] = kind
    return found
