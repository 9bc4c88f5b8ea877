"""The commands of an arm that switch its platform, and where they are run."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from paribus.border import Place, fields
from paribus.core import Hosts, Step
from paribus.studyfile.topologies import check_topologies, is_topology, topology_of

__all__ = ["KEYS", "check_topologies", "switched_by"]

KEYS = ("before", "after", "observe", "level")

_EXAMPLE = '{ on = "hyper1", run = "virsh start vm1" }'


def switched_by(place: Place, hosts: Hosts | None, folder: Path) -> Mapping[str, Any]:
    """Return the fields of an Arm that say how it is switched to; `hosts` are those of the arm.

    Notes or raises StudyError as Place does. `folder` is that of the study file.
    """
    reader = _steps(hosts)
    none: tuple[Step, ...] = ()
    if is_topology(place.table.get("before")):
        return {**topology_of(place, hosts, folder), "after": place.read("after", reader, none)}
    steps = {key: place.read(key, reader, none) for key in ("before", "after", "observe")}
    level = place.read("level", fields.text, "").strip()
    if level and not steps["observe"]:
        fix = 'add the command that prints the level: observe = "..."'
        place.refuse("level", level, "no command observes the level", fix)
    return {**steps, "level": level}


def _steps(hosts: Hosts | None) -> Callable[[Any], tuple[Step, ...]]:
    """Return a reader of commands: texts, or tables of `on` and `run`; one of them or a list."""

    def step(value: Any) -> Step:
        if not isinstance(value, dict):
            return Step(fields.command(value))
        if value.keys() != {"on", "run"}:
            raise ValueError(f"a command on a host has the keys `on` and `run`: {_EXAMPLE}")
        on, run = value["on"], value["run"]
        if not isinstance(on, str) or not isinstance(run, str) or not run.strip():
            raise ValueError(f"`on` and `run` are texts that are not blank: {_EXAMPLE}")
        names = [] if hosts is None else [one.name for one in hosts.hypervisors]
        names += [] if hosts is None or hosts.scheduler else hosts.names
        if on not in names:
            close = difflib.get_close_matches(on, names, n=1)
            hint = f"did you mean {close[0]!r}?" if close else "add it to `hypervisors` of the arm"
            raise ValueError(f"on = {on!r} is no host and no hypervisor of this arm; {hint}")
        return Step(fields.command(run), on)

    def read(value: Any) -> tuple[Step, ...]:
        return tuple(map(step, value if isinstance(value, list) else [value]))

    return read
