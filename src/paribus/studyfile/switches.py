"""The keys of an arm that switch its platform: `before`, `after`, `observe` and `level`.

They are commands, each run here or on a host of the arm ({ on = "hyper1", run = "virsh start
vm1" }), or the name of a PCIe topology, which Paribus itself switches through the server's BMC.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paribus.audit.classes import factors
from paribus.border import Place, fields
from paribus.core import TREE, Arm, Facts, Hosts, ParibusError, Step, Study
from paribus.designs import design_of

if TYPE_CHECKING:
    from paribus.bmc.profiles import ProfileFile
    from paribus.topology.tree import Tree


KEY = "topology"
_SHOW = ("paribus", "topology", "show")
_KEYS = ("topology", "through", "host")
_TOPOLOGY_EXAMPLE = 'before = { topology = "cascade", through = "bmc.toml" }'
_WAITS = 64
"""Effects that a switch may wait for in one direction, up to `settle_s` each."""


def is_topology(value: Any) -> bool:
    """Return whether `value`, the key `before` of an arm, names a topology and no commands."""
    return isinstance(value, dict) and KEY in value


def topology_of(place: Place, hosts: Hosts | None, folder: Path) -> Mapping[str, Any]:
    """Return `before`, `observe` and `level` of an arm whose `before` names a topology.

    Its profile file is read here. Raises StudyError, or UserError for what is wrong in that file.
    """
    from paribus.bmc.profiles import read_profiles

    for key in ("observe", "level"):
        if key in place.table:
            fix = "remove it: the level is the shape that the server's operating system finds"
            place.refuse(key, None, "is not needed beside `before` with a topology", fix)
    table = place.within(f"{place.path}.before", place.table["before"])
    table.only(_KEYS)
    name = table.need("topology", fields.text, _TOPOLOGY_EXAMPLE)
    path = str((folder / table.need("through", fields.text, _TOPOLOGY_EXAMPLE)).absolute())
    file = read_profiles(Path(path))
    profile = file.profile(name)
    manual = [step.name for step in profile.steps if step.kind == "person"]
    if manual:
        cause = f"the step {manual[0]!r} asks a person, and a study asks nobody"
        table.refuse("topology", name, cause, "use a profile without such steps")
    host = _host(table, hosts, folder)
    switch = ("paribus", "topology", "switch", host, name, "--through", path)
    limit_s = _limit_s(file)
    return {
        "before": (Step((*switch, "--yes", "--idle", "--json"), limit_s=limit_s),),
        "observe": (Step((*_SHOW, host, "--shape"), limit_s=limit_s),),
        "level": profile.shape,
    }


def check_topologies(top: Place, study: Study) -> None:
    """Refuse a study that switches topologies between launches, or whose factor is another."""
    switched = [arm.name for arm in study.arms if any(step.limit_s for step in arm.before)]
    if not switched:
        return
    design = design_of(study)
    if not design.session:
        cause = f"the topology of {switched[0]} is switched before every launch"
        top.refuse("plan.unit", design.unit, cause, 'add unit = "session"')
    factor = factors().get(study.factor)
    if "pci." not in (*(factor.explains if factor else ()), *study.explains):
        cause = "does not explain the facts of PCIe devices, which a switch of topology changes"
        top.refuse("factor", study.factor, cause, 'use factor = "pcie_topology"')


def tree_fact(look: Callable[[], Tree]) -> Facts:
    """Return the PCIe tree that `look` returns as the fact TREE; no fact without a GPU.

    No fact either if the tree contradicts itself: `paribus topology show` says how.
    """
    try:
        tree = look()
    except ParibusError:
        return {}
    if not tree.gpus:
        return {}
    from paribus.topology import stored

    return {TREE: stored.to_line(tree)}


def server_tree(arm: Arm) -> Facts:
    """Return the fact TREE of the server that an arm switches, if the study names it by a path.

    The path is a copy of /sys. If it names a host, the tree is among the facts of that node.
    """
    for step in arm.observe:
        if step.argv[: len(_SHOW)] == _SHOW and "/" in (place := step.argv[len(_SHOW)]):
            from paribus.topology.sysfs import from_sysfs

            return tree_fact(partial(from_sysfs, Path(place)))
    return {}


def _host(table: Place, hosts: Hosts | None, folder: Path) -> str:
    """Return the server that is switched: the key `host` (a name, or a path to a copy of /sys).

    Without the key, it is the one host of the arm.
    """
    if "host" in table.table:
        host = table.need("host", fields.text, 'host = "node7"')
        return str((folder / host).absolute()) if "/" in host else host
    if hosts is None or hosts.scheduler or len(hosts.names) != 1:
        cause = "the arm has not one host by name, so the server to switch is not known"
        table.refuse("host", None, cause, 'name it: hosts = "node7" of the arm, or host = "node7"')
    return hosts.names[0]


def _limit_s(file: ProfileFile) -> float:
    """Return the seconds after which a switch, or its way back, has hung: all its waits twice."""
    return 2 * (file.boot_s + _WAITS * file.settle_s)


KEYS = ("before", "after", "observe", "level")

_EXAMPLE = '{ on = "hyper1", run = "virsh start vm1" }'


def switched_by(place: Place, hosts: Hosts | None, folder: Path) -> Mapping[str, Any]:
    """Return the fields `before`, `after`, `observe` and `level` of the arm at `place`.

    `hosts` are those of the arm, `folder` that of the study file. Notes or raises StudyError as
    Place does.
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
    """Return a reader of one command or a list: each a text, or a table of `on` and `run`."""

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
