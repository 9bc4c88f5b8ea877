"""`before = { topology = ".." }` of an arm: the switch of a server, and the shape as its proof."""

from __future__ import annotations

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
_EXAMPLE = 'before = { topology = "cascade", through = "bmc.toml" }'
_WAITS = 64
"""Effects that a switch may wait for on one way; each has `settle_s`."""


def is_topology(value: Any) -> bool:
    """Return whether `before` of an arm names a topology, not commands."""
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
    name = table.need("topology", fields.text, _EXAMPLE)
    path = str((folder / table.need("through", fields.text, _EXAMPLE)).absolute())
    file = read_profiles(Path(path))
    profile = file.profile(name)
    asked = [step.name for step in profile.steps if step.kind == "person"]
    if asked:
        cause = f"the step {asked[0]!r} asks a person, and a study asks nobody"
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
    """Return the tree that `look` gives as a fact; none without a GPU.

    None either where a tree contradicts itself: `paribus topology show` says how.
    """
    from paribus.topology import stored

    try:
        tree = look()
    except ParibusError:
        return {}
    return {TREE: stored.to_line(tree)} if tree.gpus else {}


def server_tree(arm: Arm) -> Facts:
    """Return as `tree_fact` the tree of the server that an arm switches, if a path stands for it.

    That of a host is among the facts of the node itself.
    """
    for step in arm.observe:
        if step.argv[: len(_SHOW)] == _SHOW and "/" in (place := step.argv[len(_SHOW)]):
            from paribus.topology.sysfs import from_sysfs

            return tree_fact(partial(from_sysfs, Path(place)))
    return {}


def _host(table: Place, hosts: Hosts | None, folder: Path) -> str:
    """Return the server that is switched: that of the arm, or `host`; a path is a root of /sys."""
    if "host" in table.table:
        host = table.need("host", fields.text, 'host = "node7"')
        return str((folder / host).absolute()) if "/" in host else host
    if hosts is None or hosts.scheduler or len(hosts.names) != 1:
        cause = "the arm has not one host by name, so the server to switch is not known"
        table.refuse("host", None, cause, 'name it: hosts = "node7" of the arm, or host = "node7"')
    return hosts.names[0]


def _limit_s(file: ProfileFile) -> float:
    """Return the seconds that a switch and its way back may take, each wait at its longest.

    A switch ends its waits itself; this limit is for one that hangs.
    """
    return 2 * (file.boot_s + _WAITS * file.settle_s)
