"""A user's own command, run once with the profiler in each rank: where its time goes.

native/profile is the profiler. Each rank writes a record; here they become a `Taken`, the profile
with what else is known. `paribus profile -- mpirun -n 4 ./solver` shows it and writes it as TOML.
"""

from __future__ import annotations

import json
import math
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from operator import attrgetter
from pathlib import Path
from statistics import NormalDist
from tempfile import mkdtemp
from typing import Any, cast

from paribus.border import printable
from paribus.core import (
    FEW_CPUS,
    PARTS,
    Command,
    LaunchError,
    Mpi,
    Profile,
    Skeleton,
    UserError,
    count,
)
from paribus.launch.local import Captured, LocalStation
from paribus.launch.machine import HERE, first_errors
from paribus.launch.toolchain import find_mpi, profiler_path
from paribus.probes.discreet import discreet
from paribus.profile.calls import (
    WHOLE,
    Loop,
    Traced,
    compressed,
    match,
    read_trace,
    select,
    skeleton,
    timing,
)

LIMIT_S = 30 * 86400.0
"""Seconds that the command may take: a user ends it earlier, as without the profiler."""

TWO_SIDED = NormalDist().inv_cdf(0.975)
"""Standard errors within which a figure lies with 95 %."""

TRACES = "calls"
"""What the names of files with the order of calls begin with."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A profile, and what else is known of it.

    `seconds` are those of the longest rank between MPI_Init and MPI_Finalize; `own` is the share
    of the ranks' time that counting took, `timed` the share of the calls that were timed, and
    `error` how far a share may be off because others were not (95 %). `cpu` is the CPU time over
    time of the rank that got least: MPI polls, so below 1 it waited for a core, or for files.
    `least` and `most` are the shares over the ranks; `calls` has calls, seconds and bytes of
    all ranks for each MPI call. `skeleton` is what is beside that of the profile, `computing` the
    seconds that its ranks compute in the mean.
    """

    profile: Profile
    seconds: float
    own: float
    timed: float
    error: float
    cpu: float
    least: Mapping[str, float]
    most: Mapping[str, float]
    calls: Mapping[str, Mapping[str, float]]
    skeleton: Mapping[str, Any] = field(default_factory=dict)
    computing: float = 0.0


def take_middle(
    argv: Sequence[str], name: str, mpi: str | None, logs: Sequence[Path], loop: Loop, runs: int
) -> Taken:
    """Return the middle one, by how long it computes in its loop, of `runs` profiles of `argv`.

    Its `spread` is the longest such time over the shortest, less 1: replays differ in nothing else.
    `logs` are the files for output and errors, which keep those of the last run. Raises as `take`.
    """
    every = [take(argv, name, mpi, logs[0], logs[1], loop) for _ in range(runs)]
    if any(one.profile.skeleton is None for one in every):
        return every[len(every) // 2]
    every.sort(key=attrgetter("computing"))
    least = every[0].computing
    apart = every[-1].computing / least - 1 if least else 0.0
    middle = every[len(every) // 2]
    found = cast(Skeleton, middle.profile.skeleton)
    kept = replace(found, spread=round(min(max(apart, found.spread), 1.0), 4))
    return replace(middle, profile=replace(middle.profile, skeleton=kept))


def take(
    argv: Sequence[str], name: str, mpi: str | None, out: Path, err: Path, loop: Loop = WHOLE
) -> Taken:
    """Return the profile of the command `argv`, whose output goes to the files `out` and `err`.

    Records of ranks lie beside `out` until they are read, where other hosts can write them too.
    Raises UserError for a command that is not of MPI, LaunchError for one that fails.
    """
    command = printable(shlex.join(discreet(argv)))
    library = profiler_path(installation(argv[0], mpi), HERE)
    folder = Path(mkdtemp(prefix=".paribus-profile-", dir=out.absolute().parent))
    try:
        before = HERE.variable("LD_PRELOAD")
        env = {
            "LD_PRELOAD": f"{library}:{before}" if before else str(library),
            "PARIBUS_PROFILE": str(folder),
        }
        with LocalStation() as station:
            done = station.run(
                Command(tuple(argv), env=env),
                stdout=str(out),
                stderr=str(err),
                timeout_s=LIMIT_S,
                scratch="",
                cwd=str(Path.cwd()),
            )
        # The profiler itself ends a program of another MPI: records say it better.
        if done.exit_code and not any(folder.glob("other.*")):
            texts = [one.read_text(errors="replace")[-2000:] for one in (out, err)]
            cut = [path.stem for path in sorted(folder.iterdir()) if not path.stat().st_size]
            how = f"rank {cut[0]} ended without MPI_Finalize" if cut else "the command failed"
            cause = f"{how}: {first_errors(Captured(done.exit_code, *texts))}"
            fix = f"its output is in {out} and {err}"
            raise LaunchError(cause, place=argv[0], fix=fix)
        records = read_records(folder, command)
        traced = read_trace(sorted(folder.glob(f"{TRACES}*")))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return with_skeleton(summed(records, name, command), traced, loop)


def with_skeleton(taken: Taken, traced: Traced, loop: Loop) -> Taken:
    """Return `taken` with the skeleton of its calls in `loop`, without one where there is none.

    Raises UserError where a rank does not call what the loop is named by.
    """
    threads = len(traced.ranks) != taken.profile.ranks
    if traced.odd or threads:
        return taken
    match(traced)
    try:
        selected = select(traced, loop)
    except ValueError as error:
        fix = "name a collective that all ranks make: --loop MPI_Allreduce:2-100"
        raise UserError(str(error), place=f"--loop {loop}", fix=fix) from None
    known = timing(traced, selected)
    seconds = known.pop("seconds")
    computing = known.pop("computing")
    share = computing / known.pop("counted")
    text = skeleton(traced, selected)
    whole = not traced.full and sum(map(len, selected)) == sum(map(len, traced.ranks))
    # Beside others it computed slower, if not with less of its core: they use caches and memory.
    apart = 1 - taken.cpu if taken.cpu < FEW_CPUS else 0.0
    share, apart = round(min(share, 1.0), 4), round(apart, 4)
    found = Skeleton(compressed(text), round(seconds, 6), share, apart)
    beside = {
        "loop": str(loop),
        "events": sum(map(len, selected)),
        "whole": whole,
        **{key: round(one, 6) if isinstance(one, float) else one for key, one in known.items()},
    }
    profile = replace(taken.profile, skeleton=found)
    return replace(taken, profile=profile, skeleton=beside, computing=computing)


def installation(launcher: str, wanted: str | None) -> Mpi:
    """Return the MPI that `wanted` names, else the one beside the launcher, else the first.

    Raises UserError where there is none.
    """
    if wanted is not None:
        return find_mpi(wanted, HERE)
    found = HERE.find_program(launcher)
    if found is not None:
        try:
            return find_mpi(str(Path(found).absolute().parent), HERE)
        except UserError:
            pass  # srun, or a script of the user's: it has no compiler beside it
    return find_mpi(None, HERE)


def read_records(folder: Path, command: str) -> list[dict[str, Any]]:
    """Return the record of each rank, in order; raises UserError where they are not whole."""
    paths = sorted(path for path in folder.iterdir() if not path.name.startswith(TRACES))
    if not paths:
        raise UserError(
            "no rank called MPI_Init with the profiler loaded",
            place=command,
            fix="profile a program of MPI that is linked dynamically, with its launcher:"
            " paribus profile -- mpirun -n 4 ./solver (on hosts, Open MPI also needs"
            " -x LD_PRELOAD -x PARIBUS_PROFILE)",
        )
    if any(path.stem == "other" for path in paths):
        raise UserError(
            "the program uses another MPI than the launcher, or loads MPI while it is executed",
            place=command,
            fix="name the MPI that it is linked with: --mpi PREFIX (`ldd PROGRAM` shows it)",
        )
    if unfinished := [path.stem for path in paths if not path.stat().st_size]:
        cause = f"rank {unfinished[0]} ended without MPI_Finalize, so its counts are lost"
        raise UserError(cause, place=command, fix="let the program end normally: a shorter run")
    records = sorted((json.loads(path.read_text()) for path in paths), key=lambda one: one["rank"])
    ranks = records[0]["ranks"]
    if len({one["rank"] for one in records}) < len(records):
        cause = "the command started MPI more than once"
        raise UserError(cause, place=command, fix="profile one launch at a time")
    if len(records) < ranks:
        there = {one["rank"] for one in records}
        missing = next(rank for rank in range(ranks) if rank not in there)
        raise UserError(
            f"no record of {count(ranks - len(records), 'rank')}, the first of them rank {missing}",
            place=command,
            fix="give all hosts the variables (Open MPI: -x LD_PRELOAD -x PARIBUS_PROFILE), and"
            " take the profile in a directory that they share",
        )
    if ranks == 1:
        fix = "start two ranks or more: paribus profile -- mpirun -n 4 ./solver"
        raise UserError("one rank exchanges no messages", place=command, fix=fix)
    return records


def summed(records: Sequence[Mapping[str, Any]], name: str, command: str) -> Taken:
    """Return the profile of all ranks: the shares of their time, counted for each thread in MPI.

    A record has, for each MPI call: its name and part, how often, seconds, bytes, how many of the
    calls were timed, and the variance of the seconds because the others were not.
    """
    spent: list[dict[str, float]] = []
    calls: dict[str, dict[str, float]] = {}
    timed, variance = 0, 0.0
    for one in records:
        parts = dict.fromkeys(PARTS, 0.0)
        for call, part, number, seconds, size, clocked, squared in one["calls"]:
            timed += clocked
            variance += squared
            parts[part] += seconds
            row = calls.setdefault(call, {"calls": 0, "seconds": 0.0, "bytes": 0})
            row["calls"] += number
            row["seconds"] = round(row["seconds"] + seconds, 9)
            row["bytes"] += size
        whole = one["threads"] * one["seconds"]
        parts["outside"] = max(whole - math.fsum(parts.values()), 0.0)
        spent.append(parts)
    totals = [math.fsum(parts.values()) for parts in spent]
    each = {
        part: [parts[part] / total for parts, total in zip(spent, totals, strict=True)]
        for part in PARTS
    }
    shares = {part: math.fsum(p[part] for p in spent) / math.fsum(totals) for part in PARTS}
    profile = Profile(
        name=name,
        command=command,
        ranks=len(records),
        shares={part: round(share, 6) for part, share in shares.items()},
        taken=date.today().isoformat(),
        machine=_machine(),
        library=" ".join(records[0]["library"].partition(", package")[0].split()),
    )
    return Taken(
        profile,
        seconds=round(max(one["seconds"] for one in records), 6),
        cpu=round(min(one["cpu_s"] / one["seconds"] for one in records), 4),
        own=round(math.fsum(one["own_s"] for one in records) / math.fsum(totals), 6),
        timed=round(timed / max(1, sum(row["calls"] for row in calls.values())), 4),
        error=round(TWO_SIDED * math.sqrt(variance) / math.fsum(totals), 6),
        least={part: round(min(some), 6) for part, some in each.items()},
        most={part: round(max(some), 6) for part, some in each.items()},
        calls=calls,
    )


def _machine() -> str:
    """Return the processor of this machine and how many cores of it Paribus may use."""
    lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else HERE.architecture}, {len(names)} processors"
