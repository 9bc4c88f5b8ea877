"""What an arm asks a scheduler for, as study files write it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from paribus.border import Place, fields
from paribus.core import Arm, Scheduler, Study, count, nodes_of, parse_seconds

if TYPE_CHECKING:
    from paribus.schedulers.dialect import Dialect

MOST_NODES = 10_000
"""Nodes of an allocation."""

MOST_SLOTS = 10_000
"""Slots of a node."""


def scheduler_of(place: Place) -> Scheduler:
    """Return what the arm at `place` asks for; notes or raises StudyError as Place does."""
    from paribus.schedulers import manifest
    from paribus.schedulers.known import DIALECTS

    table = place.within(f"{place.path}.scheduler", place.table["scheduler"])
    name = table.need("name", fields.one_of(*DIALECTS), 'name = "slurm"')
    dialect = DIALECTS[name]
    own = ("nodes", "time", *dialect.KEYS, *(["options"] if dialect.GIVEN else []))
    for key in sorted({"options", *(key for one in DIALECTS.values() for key in one.KEYS)}):
        if key in table.table and key not in own:
            table.refuse(key, None, f"is not for {dialect.TITLE}", f"use: {', '.join(own)}")
    table.only(("name", *own))
    for key, example in dialect.NEEDED.items():
        if key not in table.table:
            table.refuse(key, None, "is missing", f"add it: {example}")
    word = _value if name == "slurm" else _word
    return Scheduler(
        name=name,
        nodes=table.need("nodes", fields.whole(1, MOST_NODES), "nodes = 2"),
        time_s=table.need("time", _minutes, 'time = "2 h"'),
        partition=table.read("partition", word, ""),
        account=table.read("account", word, ""),
        constraint=table.read("constraint", _labels if name == "kubernetes" else _value, ""),
        options=table.read("options", _options(dialect), ()),
        slots=table.read("slots", fields.whole(1, MOST_SLOTS), 0),
        parallel_environment=table.read("parallel_environment", word, ""),
        namespace=table.read("namespace", _label, ""),
        image=table.read("image", word, ""),
        resources=table.read("resources", _resources, ()),
        kind=table.read("kind", fields.one_of("Job", "JobSet", "MPIJob"), "Job"),
        autoscaled=table.read("autoscaled", fields.one_of(True, False), False),
        pod=table.read("pod", _fields(manifest.OF_POD), ""),
        container=table.read("container", _fields(manifest.OF_CONTAINER), ""),
    )


def check_one_scheduler(top: Place, arms: Sequence[Arm]) -> None:
    """Refuse arms whose nodes come from different batch systems, or parts of one."""
    every = [(a.name, a.hosts.scheduler) for a in arms if a.hosts and a.hosts.scheduler]
    if not every:
        return
    from paribus.schedulers.known import DIALECTS

    for name, asked in every:
        first = every[0][1]
        if asked.name != first.name:
            fix = f'use name = "{first.name}", or reach the nodes of the other as `hosts`'
            title = DIALECTS[first.name].TITLE
            cause = f"another arm asks {title}, and a study asks one scheduler"
            top.refuse(f"arms.{name}.scheduler.name", asked.name, cause, fix)
        for key in ("namespace", "kind"):
            ours, theirs = getattr(asked, key), getattr(first, key)
            if ours != theirs:
                cause = f"another arm asks for {theirs or 'none'}, and one command lists all pods"
                top.refuse(f"arms.{name}.scheduler.{key}", ours, cause, "use the same in all arms")


def check_same_nodes(top: Place, study: Study) -> None:
    """Refuse `same_nodes` where the arms cannot have the same nodes: those of one allocation."""
    if not study.settings.same_nodes:
        return
    from paribus.schedulers.known import DIALECTS

    first = study.arms[0]
    for arm in study.arms:
        asked = arm.hosts.scheduler if arm.hosts else None
        if asked is None:
            cause = f"arm {arm.name} asks no scheduler for nodes"
            top.refuse("plan.same_nodes", True, cause, "give each arm the same `scheduler`")
        elif not DIALECTS[asked.name].named(("n1",)):
            cause = f"Paribus does not ask {DIALECTS[asked.name].TITLE} for nodes by name"
            fix = "remove it: arms whose `scheduler` is equal share the nodes of each allocation"
            top.refuse("plan.same_nodes", True, cause, fix)
        elif first.hosts and asked != first.hosts.scheduler:
            cause = f"no node is in two allocations at a time, and {first.name} asks for another"
            fix = "ask for the same in all arms, which then share one; or remove plan.same_nodes"
            top.refuse(f"arms.{arm.name}.scheduler", None, cause, fix)
        for one in study.benchmarks:
            ours, theirs = (nodes_of(its, one) for its in (first, arm))
            if ours != theirs:
                cause = f"{one.label} has ranks on {count(theirs, 'node')}"
                cause += f", and on {ours} in {first.name}"
                fix = "give the arms the same ranks_per_host, or remove plan.same_nodes"
                top.refuse(f"arms.{arm.name}.ranks_per_host", None, cause, fix)


def _minutes(value: Any) -> float:
    """Return a duration in seconds that a batch system can count: whole minutes, at least one."""
    seconds = parse_seconds(value)
    if seconds < 60 or seconds % 60:
        raise ValueError('write whole minutes, as batch systems count them: "90 min"')
    return seconds


def _value(value: Any) -> str:
    """Return a text that is one word of an argument and one line of a script."""
    text = fields.text(value)
    if not text.isprintable() or " " in text:
        raise ValueError("write it as one word, without spaces")
    return text


def _word(value: Any) -> str:
    """Return a value that stands as a word of its own, which must be no option."""
    text = _value(value)
    if text.startswith("-"):
        raise ValueError("it must not begin with '-'")
    return text


def _label(value: Any) -> str:
    """Return a name of Kubernetes: RFC 1123's label."""
    word = fields.text(value)
    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", word):
        raise ValueError("write lower-case letters, digits and '-'")
    return word


def _labels(value: Any) -> str:
    """Return labels that a node must have: key=value, several with commas."""
    text = fields.text(value)
    one = r"[A-Za-z0-9][A-Za-z0-9./_-]*=[A-Za-z0-9._-]*"
    if not re.fullmatch(f"{one}(,{one})*", text):
        raise ValueError('write labels of nodes, several with commas: "gpu=h100,pool=hpc"')
    return text


def _resources(value: Any) -> tuple[tuple[str, str], ...]:
    """Return what each pod has: quantities by the names that Kubernetes gives resources."""
    found = fields.table(value)
    for name, amount in found.items():
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9./_-]*", name):
            raise ValueError(f"{name!r} is no name of a resource")
        if isinstance(amount, bool) or not re.fullmatch(
            r"[0-9]+(\.[0-9]+)?(m|k|[KMGTPE]i?)?", str(amount)
        ):
            raise ValueError(f'{name} = {amount!r}: write a quantity such as 16, "500m" or "64Gi"')
    if not {"cpu", "memory"} <= found.keys():
        example = '{ cpu = 16, memory = "64Gi" }'
        raise ValueError(f"name cpu and memory, or pods of others share them: {example}")
    return tuple((name, str(amount)) for name, amount in found.items())


def _fields(given: Sequence[str]) -> Callable[[Any], str]:
    """Return a reader of fields of a pod or container, as JSON, which refuses those `given`."""

    def read(value: Any) -> str:
        found = fields.table(value)
        if mine := sorted({*given} & found.keys()):
            raise ValueError(f"{mine[0]} is given by Paribus; remove it")
        return json.dumps(found, sort_keys=True, default=str)

    return read


def _options(dialect: Dialect) -> Callable[[Any], tuple[str, ...]]:
    """Return a reader of options for the scheduler's command, which refuses those of Paribus."""
    given = dialect.GIVEN

    def read(value: Any) -> tuple[str, ...]:
        options = fields.texts(value)
        for one in options:
            if not re.fullmatch(r"--?[^\s-]\S*( \S+)*", one) or not one.isprintable():
                raise ValueError(
                    f'{one!r} is no option; write one with its value: "--qos=short", "-P lab"'
                )
            for name in _names(one, dialect):
                fix = f"as `{given[name]}`" if given[name] else "so that launches find their nodes"
                raise ValueError(f"{name} is given by Paribus {fix}; remove it")
        return options

    return read


def _names(option: str, dialect: Dialect) -> list[str]:
    """Return which of the options that Paribus gives an option is, in a list of one or none."""
    word = re.split("[= ]", option)[0]
    letter = word[:2]
    name = letter if dialect.JOINED and letter in dialect.GIVEN else word
    return [name] if name in dialect.GIVEN else []
