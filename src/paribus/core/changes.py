"""What two arms of a study differ in, as changes that can be switched one by one, or in groups.

A study that explains a difference (designs/explain.py) launches arms between its two: the
reference with some keys of the other. Arms with `mpi = "mpich"` and `env = { X = "1" }` against
defaults differ in the changes "mpi" and "env.X".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple

from paribus.core.design import Arm, Container, Study
from paribus.core.hosts import Hosts
from paribus.core.nodeset import fold

MOST = 8
"""The most changes that are explained at once: more take more launches than anybody waits for."""

ONE: Mapping[str, tuple[str, ...]] = {
    **{key: (key,) for key in ("mpi", "transport", "adapter", "ranks_per_host", "argv")},
    "wrap": ("wrap", "wrap_around"),
    "build": ("build", "source"),
    "switch": ("before", "after", "observe", "level"),
}
"""Fields of an arm that are switched together, by the key of that change."""

STACKS: Mapping[str, type] = {"container": Container, "hosts": Hosts}
"""Fields that are changes as a whole where one arm has none, else each of their fields is one."""

WHERE = tuple(f"hosts.{one}" for one in ("addresses", "pocket", "scheduler", "ssh", "hypervisors"))
"""Changes that only together say which hosts an arm has, and how they are reached."""

FACTORS = {
    "mpi": "mpi",
    "transport": "transport",
    "argv": "command",
    "build": "build",
    "wrap": "wrapper",
    "container": "container",
    "hosts": "cluster",
    "adapter": "interconnect",
    "hosts.launcher": "launcher",
    "hosts.network": "network",
    "hosts.link": "network",
    "container.network": "network",
    "ranks_per_host": "nodes",
    "hosts.order": "nodes",
}
"""The factor of the audit that explains the facts which follow from a change; that of `container`
or `hosts` stands for their fields that are not listed. A variable explains only itself."""


class Part(NamedTuple):
    """Changes that are switched together."""

    name: str
    keys: tuple[str, ...]  # of the changes: "mpi", "env.X"
    needs: tuple[int, ...] = ()  # indices of the study's parts that must be switched before


def values_of(arm: Arm) -> dict[str, Any]:
    """Return what an arm sets, by the key of the change that would switch it.

    Of a key of ONE the values of its fields, of one of STACKS whether the arm has such a layer.
    """
    found: dict[str, Any] = {f"env.{name}": value for name, value in sorted(arm.env.items())}
    for key, several in ONE.items():
        found[key] = tuple(getattr(arm, one) for one in several)
    for key, kind in STACKS.items():
        stack = getattr(arm, key)
        found[key] = stack is not None
        for one in fields(kind) if stack is not None else ():
            found[f"{key}.{one.name}"] = getattr(stack, one.name)
    return found


def changes(reference: Arm, arm: Arm) -> tuple[str, ...]:
    """Return the keys in which two arms differ: those of their fields where both have a layer."""
    ours, theirs = values_of(reference), values_of(arm)
    whole = {key for key in STACKS if ours[key] != theirs[key]}
    return tuple(
        key
        for key in {**ours, **theirs}
        if ours.get(key) != theirs.get(key) and (key in whole or key.partition(".")[0] not in whole)
    )


def combined(reference: Arm, arm: Arm, keys: Iterable[str], name: str) -> Arm:
    """Return `reference` with `keys` as they are in `arm`."""
    env, taken = dict(reference.env), dict[str, Any]()
    for key in keys:
        first, _, second = key.partition(".")
        if first == "env":
            env.pop(second, None)
            env |= {second: arm.env[second]} if second in arm.env else {}
        elif second:
            stack = taken.get(first, getattr(reference, first))
            taken[first] = replace(stack, **{second: getattr(getattr(arm, first), second)})
        else:
            taken |= {one: getattr(arm, one) for one in ONE.get(first, (first,))}
    return replace(reference, name=name, env=env, **taken)


def implied_needs(reference: Arm, keys: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the changes that each change needs: ranks_per_host needs hosts or a container."""
    if "ranks_per_host" in keys and reference.container is None and reference.hosts is None:
        return {"ranks_per_host": tuple(key for key in STACKS if key in keys)}
    return {}


def plain_name(keys: Sequence[str]) -> str:
    """Return the name of a part of these changes where the study gives it none."""
    if len(keys) > 2 and all(map(of_variable, keys)):
        return "environment"
    if set(keys) <= {*WHERE}:
        return "hosts"
    return " and ".join(key.partition(".")[2] or key for key in keys)


def of_variable(key: str) -> str:
    """Return the name of the variable that a change sets, "" for another change."""
    return key.removeprefix("env.") if key.startswith("env.") else ""


def value_text(key: str, arm: Arm) -> str:
    """Return a change as a reader knows it: "OMP_PROC_BIND = close", "mpi = mpich"."""
    first, _, second = key.partition(".")
    name = second if first == "env" else second or first
    value = values_of(arm).get(key)
    if first == "env":
        return f"{name} unset" if value is None else f"{name} = {value}"
    if key in WHERE and arm.hosts is not None:
        return f"hosts = {fold(arm.hosts.names)}"
    if second:
        plain = value if isinstance(value, str | int) else str(value or "none")
        return f"{name} = {plain}"
    if first in STACKS:
        stack = getattr(arm, first)
        if isinstance(stack, Container):
            return f"container = {stack.engine}, network {stack.network}"
        return f"hosts = {','.join(stack.names)}" if stack else f"no {first}"
    set_to = value[0] if isinstance(value, tuple) and value else value
    if isinstance(set_to, tuple):
        return name
    return f"{name} = {set_to or 'default'}"


def parts_of(study: Study) -> tuple[Part, ...]:
    """Return the parts of a study that explains a difference, as its plan has them; else none.

    Raises ValueError for more than MOST parts, or not two arms, LookupError and TypeError for
    values that are no parts.
    """
    parts = study.asked.get("parts")
    if not isinstance(parts, list | tuple):
        return ()
    if len(parts) > MOST:
        raise ValueError(f"more than {MOST} parts")
    if parts and len(study.arms) != 2:
        raise ValueError(f"parts of {len(study.arms)} arms")
    return tuple(Part(one["name"], tuple(one["keys"]), tuple(one["needs"])) for one in parts)


def divisible(part: Part) -> bool:
    """Return whether a part is a group whose changes a second study can explain: of variables."""
    return len(part.keys) > 1 and all(map(of_variable, part.keys))


def within_of(study: Study) -> tuple[str, ...]:
    """Return the groups that a study looks into, from the outermost to the one it explains."""
    names = study.asked.get("within")
    return tuple(map(str, names)) if isinstance(names, list | tuple) else ()


def confidence_of(study: Study, parts: Iterable[Part]) -> float:
    """Return the confidence of a study of these parts.

    Studies may follow within its groups: each leaves half of its error to the next.
    """
    stages = len(within_of(study)) + any(map(divisible, parts))
    error: float = (1 - study.settings.confidence) * 0.5**stages
    return 1 - error


def explained_factors(study: Study) -> tuple[str, ...]:
    """Return the factors of the audit that stand for the changes of a study."""
    keys = [key for part in parts_of(study) for key in part.keys]
    found = (FACTORS.get(key) or FACTORS.get(key.partition(".")[0]) for key in keys)
    return tuple(dict.fromkeys(name for name in found if name))
