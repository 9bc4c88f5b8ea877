"""What an arm asks a scheduler for, as study files write it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from paribus import fields
from paribus.design import Arm, Study
from paribus.fields import Place
from paribus.hosts import Scheduler
from paribus.judge.cost import nodes_of
from paribus.platform.schedulers.dialect import Dialect
from paribus.platform.schedulers.known import DIALECTS
from paribus.units import count, parse_seconds

MOST_NODES = 10_000
"""Nodes of an allocation."""

MOST_SLOTS = 10_000
"""Slots of a node."""


def scheduler_of(place: Place) -> Scheduler:
    """Return what the arm at `place` asks for; notes or raises StudyError as Place does."""
    table = place.within(f"{place.path}.scheduler", place.table["scheduler"])
    name = table.need("name", fields.one_of(*DIALECTS), 'name = "slurm"')
    dialect = DIALECTS[name]
    for key in {key for one in DIALECTS.values() for key in one.KEYS} - {*dialect.KEYS}:
        if key in table.table:
            keys = ", ".join(("nodes", "time", *dialect.KEYS, "options"))
            table.refuse(key, None, f"is not for {dialect.TITLE}", f"use: {keys}")
    table.only(("name", "nodes", "time", *dialect.KEYS, "options"))
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
        constraint=table.read("constraint", _value, ""),
        options=table.read("options", _options(dialect), ()),
        slots=table.read("slots", fields.whole(1, MOST_SLOTS), 0),
        parallel_environment=table.read("parallel_environment", word, ""),
    )


def check_one_scheduler(top: Place, arms: Sequence[Arm]) -> None:
    """Refuse arms whose nodes come from different batch systems."""
    names = [arm.hosts.scheduler.name for arm in arms if arm.hosts and arm.hosts.scheduler]
    for arm in arms:
        asked = arm.hosts.scheduler if arm.hosts else None
        if asked and asked.name != names[0]:
            fix = f'use name = "{names[0]}", or reach the nodes of the other as `hosts`'
            cause = f"another arm asks {DIALECTS[names[0]].TITLE}, and a study asks one scheduler"
            top.refuse(f"arms.{arm.name}.scheduler.name", asked.name, cause, fix)


def check_same_nodes(top: Place, study: Study) -> None:
    """Refuse `same_nodes` where the arms cannot have the same nodes: those of one allocation."""
    if not study.settings.same_nodes:
        return
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
