"""The noise gate: rules by which a launch was disturbed, never by what it measured.

Facts of a launch and of the load around it go in; out come sentences such as "7 % of the time of a
rank's cores was stolen". gate.toml has the limits, with their reasons.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from paribus.core import Facts, count, percent
from paribus.probes.load import load_between, of_gpus, used_gpus
from paribus.probes.values import parts_of_cores, placed

GATE = "gate.reasons"
"""The fact of a launch with the reasons why it is outside the noise gate."""


@cache
def limits() -> Mapping[str, float]:
    """Return the limit of each rule in gate.toml, by its name."""
    text = files("paribus.audit").joinpath("gate.toml").read_text(encoding="utf-8")
    return {name: float(rule["limit"]) for name, rule in tomllib.loads(text).items()}


def gate(
    before: Facts, after: Facts, launch: Facts, seconds: float, beside: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return sentences on why a launch is outside the gate, none if it is inside.

    `before` and `after` are the load facts (probes.machine.load_facts) around the launch, which
    took `seconds` in all; `launch` are the facts that it reported. Missing facts break no rule.
    Processes busy `beside` it are named if it is outside; they are no rule themselves.
    """
    grown = load_between(before, after)
    found = [*_preempted(launch), *_stolen(launch), *_states(launch)]
    if seconds > 0:
        used = used_gpus(after, launch)
        seen = {key: value for key, value in of_gpus(before, after).items() if key[0] in used}
        found += _gpus(seen, seconds)
        waited = grown.get("load.memory_pressure_us", 0.0) / (1e6 * seconds)
        if waited > limits()["memory_pressure"]:
            found.append(f"processes waited for memory {percent(round(waited, 2))} of the time")
        if "rank.cpu_s" not in launch:
            found += _crowded(grown, launch, seconds)
    if found and beside:
        found.append(f"busy beside it: {', '.join(beside)}")
    return tuple(found)


def _crowded(grown: Mapping[str, float], launch: Facts, seconds: float) -> list[str]:
    """Return a sentence if others kept a program waiting that does not report on its ranks.

    Its processes must have waited, and others must have used cores: a program with more processes
    than cores waits for itself, and others on idle cores do not disturb. If ranks are bound, only
    their cores count. If the use of others is unknown, waiting decides.
    """
    waited = grown.get("load.cpu_pressure_us", 0.0) / (1e6 * seconds)
    if seconds < limits()["cpu_pressure_s"] or waited <= limits()["cpu_pressure"]:
        return []
    text = f"processes waited for a core {percent(round(min(waited, 1.0), 2))} of the time"
    bound = grown.get("load.bound_busy_s")
    of_launch, busy = _number(launch.get("launch.cpu_s")), grown.get("load.busy_s")
    busy = busy if bound is None else bound
    if of_launch is None or busy is None:
        return [text]
    others = (busy - of_launch) / seconds
    if others <= limits()["others"]:
        return []
    return [f"{text}, and others used {others:.1f} cores" + " of its ranks" * (bound is not None)]


def _preempted(launch: Facts) -> list[str]:
    """Return a sentence for each rank that was preempted too long.

    A rank that sleeps in a system call is off its core too, but not preempted. Ranks that share
    cores by the plan preempt each other: each is expected to have only its part of them.
    """
    wall = _number(launch.get("wall_s"))
    cpu, switches = launch.get("rank.cpu_s"), launch.get("rank.involuntary")
    if not wall or not isinstance(cpu, list) or not isinstance(switches, list):
        return []
    found = []
    where = placed(launch.get("rank.machines"), launch.get("rank.affinity"))
    parts = parts_of_cores(where) if len(where) == len(cpu) else [1.0] * len(cpu)
    for rank, (used, lost, part) in enumerate(zip(cpu, switches, parts, strict=False)):
        had, times = _number(used), _number(lost)
        if had is None or times is None:
            continue
        off = 1 - had / wall / part
        if off > limits()["preempted"] and times / wall > limits()["preemptions"]:
            planned = f", of {percent(round(part, 2))} by the plan" if part < 1 else ""
            found.append(
                f"rank {rank} was preempted {count(round(times), 'time')} and had its core for"
                f" {percent(round(had / wall, 2))} of the time{planned}"
            )
    return found


def _stolen(launch: Facts) -> list[str]:
    """Return a sentence if a hypervisor took much time of a rank's cores, of the worst rank."""
    wall, stolen = _number(launch.get("wall_s")), _number(launch.get("steal_s"))
    if not wall or stolen is None or stolen < limits()["stolen_s"]:
        return []
    share = stolen / wall
    if share <= limits()["steal"]:
        return []
    return [f"{percent(round(share, 2))} of the time of a rank's cores was stolen"]


def _states(launch: Facts) -> list[str]:
    """Return a sentence for each figure of the state probe that changed during the launch."""
    found = []
    for name, means in (
        ("core_to_core_ns", "a cache line from core to core took"),
        ("clock_ghz", "the clock was"),
    ):
        before, after = (
            _number(launch.get(f"probe.{when}.{name}")) for when in ("before", "after")
        )
        if before and after and max(before / after, after / before) > limits()[name]:
            unit = name.rpartition("_")[2].replace("ghz", "GHz")
            was, became = (f"{v:,.0f}" if v >= 1000 else f"{v:.3g}" for v in (before, after))
            found.append(f"{means} {was} {unit} before and {became} {unit} after")
    return found


_SLOWED = {
    "throttled_heat_ns": "the heat of its memory or chip",
    "throttled_heat_hardware_ns": "heat, by hardware",
    "throttled_power_brake_ns": "the server's power brake",
}
"""External reasons for a lower clock of a GPU. The power cap is no such: the launch reaches it."""


def _gpus(seen: Mapping[tuple[str, str], float], seconds: float) -> list[str]:
    """Return a sentence for each GPU that was slowed down, or used by others.

    `seen` has counters by GPU and name, grown in `seconds`.
    """
    found = []
    for (gpu, what), value in seen.items():
        if what == "others_percent" and value / 100 > limits()["gpu_others"]:
            found.append(f"other processes used {percent(value / 100)} of {gpu}")
        slowed = value / (1e9 * seconds)
        if what in _SLOWED and slowed > limits()["gpu_slowed"]:
            by = f"{gpu} had its clock lowered {percent(round(min(slowed, 1.0), 2))} of the time by"
            found.append(f"{by} {_SLOWED[what]}")
    return found


def _number(value: Any) -> float | None:
    ok = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if ok else None
