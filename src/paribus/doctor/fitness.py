"""How fit this machine is to measure on: settings, company, clock, and what it can resolve.

Nothing is changed: each finding carries the command that would fix it, for the user to decide.
Out come `Finding`s, such as ("cores", "poor", "1 allowed (0)", what it means, a fix), of settings,
cores and memory (`room`), MPIs and engines (`tools`), and other processes (`watch`, `company`).
"""

from __future__ import annotations

import os
import pwd
import re
import resource
import time
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, NamedTuple

from paribus import containers
from paribus.border import find_program
from paribus.core import Container, Facts, UserError, percent
from paribus.launch import toolchain
from paribus.launch.local import capture
from paribus.launch.machine import HERE, first_errors
from paribus.probes.load import load_between
from paribus.probes.machine import cores, load_facts, processor_times
from paribus.schedulers.dialect import Dialect, without_log
from paribus.schedulers.known import DIALECTS, present

Grade = Literal["good", "fair", "poor", "unknown"]
"""How fit for measurements something is; Finding describes each."""

OBSERVE_S = 2.0
"""Seconds in which the machine is watched without disturbing it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing about the machine: what was found, how good that is, and what would fix it.

    "poor" likely disturbs figures, "fair" costs resolution or must be known when they are read;
    "unknown" could not be found out here. `fix` is a command or a sentence.
    """

    name: str
    grade: Grade
    found: str
    means: str = ""
    fix: str = ""


def rated(name: str, grade: Grade, found: str, means: str, fix: str) -> Finding:
    """Return a finding; one that is good gets neither a meaning nor a fix."""
    return Finding(name, grade, found, *(("", "") if grade == "good" else (means, fix)))


@dataclass(frozen=True, slots=True)
class Fitness:
    """All findings, and the smallest difference that a study of 60 blocks detects, by benchmark.

    `resolution` holds shares (0.015 is 1.5 %); it is empty where nothing could be launched.
    """

    findings: tuple[Finding, ...]
    resolution: Mapping[str, float] = field(default_factory=dict)

    @property
    def fit(self) -> bool:
        """Whether nothing was found that is likely to disturb figures."""
        return all(finding.grade != "poor" for finding in self.findings)


def settings(root: Path = Path("/")) -> list[Finding]:
    """Return a finding for each setting in the files under `root`, by the table fitness.toml."""
    found = []
    for row in rows("settings"):
        value = text_of(root / row["file"]).strip()
        if chosen := re.search(r"\[(.+?)\]", value):
            value = chosen[1]
        if value:
            found.append(_of_row(row, value))
        elif "absent" in row:
            found.append(Finding(row["name"], "unknown", row["absent"]))
    return found


def settings_of(facts: Facts) -> list[Finding]:
    """Return findings of the same settings from a node's facts; those not known are left out."""
    known = [(row, facts.get(row["fact"])) for row in rows("settings")]
    gpus = sorted({key.split(".")[1] for key in facts if re.match(r"gpu\.\d+\.", key)}, key=int)
    for row in rows("gpu"):
        several = dict.fromkeys(facts.get(f"gpu.{n}.{row['fact']}") for n in gpus if "fact" in row)
        known += [({**row, "name": f"GPU: {row['name']}"}, one) for one in several]
    return [_of_row(row, str(value)) for row, value in known if isinstance(value, str | int)]


def rows(table: Literal["settings", "gpu"]) -> list[dict[str, Any]]:
    """Return a table of fitness.toml."""
    text = files("paribus.doctor").joinpath("fitness.toml").read_text(encoding="utf-8")
    found: list[dict[str, Any]] = tomllib.loads(text)[table]
    return found


def _of_row(row: Mapping[str, Any], value: str) -> Finding:
    """Return the finding for a setting of this value, by its row of the table."""
    grade: Grade = "good" if value in row["good"] else row["otherwise"]
    return rated(row["name"], grade, value, row["means"], row["fix"])


def room(root: Path = Path("/")) -> list[Finding]:
    """Return findings of the cores, the memory and the limits that launches here would have."""
    allowed = cores(root, allowed=frozenset(os.sched_getaffinity(0)))
    some = ", ".join(map(str, sorted(allowed)[:8]))
    found = [
        rated(
            "cores",
            "good" if len(allowed) >= 2 else "poor",
            f"{len(allowed)} allowed ({some}{', ...' if len(allowed) > 8 else ''})",
            "two ranks would share a core, so latencies would show the scheduler",
            "allow more cores: taskset -c, or a larger cpuset",
        )
    ]
    if free := re.search(r"MemAvailable:\s+(\d+) kB", text_of(root / "proc/meminfo")):
        gib = int(free[1]) / 2**20
        fix = "end the processes that use the memory: ps aux --sort=-rss | head"
        means = "large cases do not fit, or are swapped"
        grade: Grade = "poor" if gib < 1 else "good"
        found.append(rated("free memory", grade, f"{gib:.1f} GiB", means, fix))
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    unlimited = soft == resource.RLIM_INFINITY
    locked = rated(
        "locked memory",
        "good" if unlimited else "fair",
        "unlimited" if unlimited else f"{soft // 1024} KiB",
        "RDMA registers memory against this limit; TCP and shared memory do not",
        "ulimit -l unlimited (as root: memlock in /etc/security/limits.conf)",
    )
    return [*found, locked]


def tools() -> list[Finding]:
    """Return which MPIs, container engines and batch systems are here and work."""
    found = []
    seen: dict[str, str] = {}
    why = ""
    for wanted in (None, *toolchain.FAMILIES):
        try:
            mpi = toolchain.find_mpi(wanted, HERE)
        except UserError as error:
            why = why or f"{error.cause}; {error.fix}"
            continue
        seen.setdefault(str(Path(mpi.mpicxx).resolve()), f"{mpi} ({mpi.mpirun})")
    means = "without an MPI, communication cannot be measured"
    names = "; ".join(seen.values()) or "none"
    found.append(rated("MPI", "good" if seen else "poor", names, means, why))
    found.append(_engine("namespace"))
    if find_program("podman"):
        found.append(_engine("podman"))
    else:
        found.append(
            Finding("containers: podman", "unknown", "not installed", fix="install podman")
        )
    others = [name for name in ("docker", "apptainer", "singularity") if find_program(name)]
    if others:
        found.append(Finding("containers: others", "good", f"on the PATH: {', '.join(others)}"))
    return [*found, scheduler()]


def _engine(engine: Literal["namespace", "podman"]) -> Finding:
    """Return whether an engine makes containers here: with a network of their own, or without."""
    name = f"containers: {engine}"
    refused = containers.check(Container(engine), capture)
    if not refused:
        return Finding(name, "good", "works")
    if forbidden := containers.check(Container(engine, network="host", each="rank"), capture):
        return Finding(name, "fair", "not usable here", "", forbidden)
    return Finding(
        name, "fair", "works with the machine's network", "a bridge cannot be made", refused
    )


def scheduler() -> Finding:
    """Return which batch system is here, and what it has to offer."""
    here = present()
    if not here:
        titles = ", ".join(one.TITLE for one in DIALECTS.values())
        return Finding("scheduler", "good", f"none on the PATH ({titles})")
    found = {one.TITLE: _offered(one) for one in here}
    offers = "; ".join(f"{title}: {offer}" for title, (offer, _) in found.items())
    if any(works for _, works in found.values()):
        return Finding("scheduler", "good", offers)
    fix = f"start studies with `scheduler` where `{' '.join(here[0].OFFER[:2])}` works"
    return Finding("scheduler", "unknown", offers, "", fix)


def _offered(dialect: Dialect) -> tuple[str, bool]:
    """Return (what a batch system offers, True), or (why it does not answer, False)."""
    answer = capture(dialect.OFFER, timeout_s=10.0)
    try:
        if answer.exit_code:
            raise ValueError(first_errors(replace(answer, stderr=without_log(answer.stderr))))
        return "; ".join(dialect.read_offer(answer.stdout)) or "nothing", True
    except ValueError as error:
        return f"is installed, but does not answer: {error}", False


# --- company -------------------------------------------------------------------------------------


class Consumer(NamedTuple):
    """A process, the share of a core that it takes, and its user: "" for the user of Paribus."""

    pid: int
    name: str
    share: float
    user: str = ""


@dataclass(frozen=True, slots=True)
class Watch:
    """What the kernel counted in `seconds`, and the processes that took most of a core.

    `pressure` is the share of the time in which something waited for a core, `steal` the share of
    all cores' time that the hypervisor gave to others; None where the kernel does not count it.
    """

    seconds: float
    pressure: float | None
    steal: float | None
    consumers: tuple[Consumer, ...] = ()


def watch(seconds: float = OBSERVE_S) -> Watch:
    """Return what the machine does while this process only sleeps."""
    root = Path("/")
    began, load, before = time.monotonic(), load_facts(root), processor_times(root)
    time.sleep(seconds)
    grown, after = load_between(load, load_facts(root)), processor_times(root)
    passed = time.monotonic() - began
    used = [
        Consumer(pid, name, (now - before.get(pid, ("", 0, 0.0))[2]) / passed, _user(pid))
        for pid, (name, _, now) in after.items()
        if pid != os.getpid()
    ]
    busiest = sorted((one for one in used if one.share >= 0.02), key=lambda one: -one.share)
    return Watch(
        passed,
        _share(grown.get("load.cpu_pressure_us"), 1e6 * passed),
        _share(grown.get("load.steal_s"), passed * (os.cpu_count() or 1)),
        tuple(busiest[:5]),
    )


def _user(pid: int) -> str:
    """Return the user of a process, "" for the one of Paribus, and for a process that has ended."""
    with suppress(OSError):
        owner = Path(f"/proc/{pid}").stat().st_uid
        if owner != os.geteuid():
            with suppress(KeyError):
                return pwd.getpwuid(owner).pw_name
            return str(owner)
    return ""


def company(seen: Watch) -> list[Finding]:
    """Return the findings of who else uses the machine: other processes, and other guests."""
    busy = ", ".join(
        f"{one.name} ({one.pid}{f' of {one.user}' if one.user else ''})"
        f" {percent(round(one.share, 2))}"
        for one in seen.consumers
    )
    load = sum(one.share for one in seen.consumers)
    waited = seen.pressure or 0.0
    grade: Grade = "poor" if load > 0.25 or waited > 0.1 else "fair" if load > 0.05 else "good"
    parts = [f"busy: {busy}" if busy else "no busy process"]
    if seen.pressure is not None:
        parts.insert(0, f"processes waited for a core {percent(round(waited, 2))} of the time")
    pids = " ".join(str(one.pid) for one in seen.consumers if not one.user)
    fixes = [f"stop your own during measurements (kill -STOP {pids}), or end them"] if pids else []
    if any(one.user for one in seen.consumers):
        fixes.append("reserve the machine, or ask the other users")
    means = "a process that takes a core from one rank stops all ranks that wait for it"
    others = rated("competing load", grade, "; ".join(parts), means, "; ".join(fixes))
    if seen.steal is None:
        return [others, Finding("steal", "unknown", "the kernel does not count it")]
    steal = rated(
        "steal",
        "poor" if seen.steal > 0.02 else "fair" if seen.steal > 0.002 else "good",
        f"{percent(round(seen.steal, 3))} of the core time went to other guests",
        "the hypervisor takes cores away, and programs cannot see it",
        "request dedicated cores, or measure at another time",
    )
    return [others, steal]


def _share(part: float | None, whole: float) -> float | None:
    """Return a part over the whole, None where it is not known."""
    return None if part is None else part / whole


def text_of(path: Path) -> str:
    """Return the text of a file, "" if it cannot be read."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
