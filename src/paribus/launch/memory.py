"""Whether what kernels allocate fits in the memory of an arm's nodes, before the first launch.

Only the kernel knows how much a rank needs; it prints that with `--memory`, without a launcher. The
arrays of kernels for GPUs are made as large as fits: the kernel, called with `cards`, prints the
memory of each card as a launch will see it, also of a part of a card (MIG) and of AMD's.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache

from paribus.benchmarks import benchmark_of
from paribus.core import (
    GPU_ARRAY,
    Arm,
    Facts,
    MachineError,
    Program,
    Selection,
    Study,
    UserError,
    arm_at,
    count,
    format_bytes,
    hosts_for,
    together,
)
from paribus.launch.arms import Ready, names_of, program
from paribus.launch.machine import Machine

SHARE = 0.9
"""The share of a node's memory that ranks may take, as in the kernels themselves (kernel.cpp)."""

ASK_S = 15.0
"""Seconds in which a kernel must have printed what it needs. It takes some hundredths."""

CARDS_S = 60.0
"""The same for its cards: without persistence the driver takes a second or two to start each."""


def check_memory(study: Study, ready: Ready, nodes: Mapping[int, Facts]) -> None:
    """Raise UserError for the kernels whose ranks need more memory than a node of the arm has.

    `nodes` are the facts of the nodes that answered, by their index in the order of ranks.
    """
    problems = []
    for one in study.benchmarks:
        if one.label in ready.kernels and (lack := _lack(ready, one, nodes)):
            place = f"{study.path}: {one.label} in {ready.arm.name}"
            fix = "make it smaller, or spread its ranks over more hosts"
            problems.append(UserError(lack, place=place, fix=fix))
    if problems:
        raise together(problems, study.path)


def _lack(ready: Ready, selection: Selection, nodes: Mapping[int, Facts]) -> str:
    """Return a clause on what does not fit, and where; "" if all does or nothing is known."""
    wanted = program(ready.arm, selection, benchmark_of(selection))
    label = selection.label
    argv = (*ready.kernels[label], *wanted.argv, *ready.libraries.get(label, ()))
    env = {**(ready.mpi.env if ready.mpi else {}), **ready.arm.env}
    each, what = _need(argv, tuple(env.items()), ready.machine)
    for ranks, where, room in _rooms(arm_at(ready.arm, selection), wanted, selection.ranks, nodes):
        if ranks * each > SHARE * room:
            return (
                f"{what} not fit in memory ({_gib(ranks * each)} for {count(ranks, 'rank')} on"
                f" {where} with {_gib(room)})"
            )
    return ""


def _rooms(
    arm: Arm, wanted: Program, ranks: int, nodes: Mapping[int, Facts]
) -> Iterator[tuple[int, str, float]]:
    """Yield for each known memory how many ranks share it, its name, and its bytes.

    A node may have two: its machine's, and a control group's. Pocket hosts, and containers that
    stand for hosts, share that of one machine.
    """
    if arm.hosts:
        numbers = [arm.hosts.names.index(name) for name in names_of(arm, wanted, ranks)]
    else:
        one_host = hosts_for(arm.container, ranks, arm.ranks_per_host) == 1
        numbers = [0 if one_host else rank // arm.ranks_per_host for rank in range(ranks)]
    one_machine = arm.hosts is None or arm.hosts.pocket
    for number, here in Counter(numbers).items():
        facts = nodes.get(number, {})
        where = arm.hosts.names[number] if arm.hosts and not one_machine else "this machine"
        if isinstance(kib := facts.get("memory.total_kib"), int | float):
            yield (ranks if one_machine else here), where, kib * 1024
        if isinstance(limit := facts.get("cgroup.memory_bytes"), int | float):
            yield here, f"{where}, in a control group", limit


@cache
def _need(
    argv: tuple[str, ...], env: tuple[tuple[str, str], ...], machine: Machine
) -> tuple[float, str]:
    """Return the bytes that each rank of a kernel needs, and a clause on what needs them.

    0 for a kernel that does not print them: it refuses at its launch what does not fit.
    """
    answer = machine.capture([*argv, "--memory"], env=dict(env), timeout_s=ASK_S)
    try:
        need = json.loads(answer.stdout)
        return float(need["bytes"]), str(need["what"])
    except (ValueError, TypeError, KeyError):
        return 0.0, ""


def fitted(study: Study, ready: Mapping[str, Ready], notify: Callable[[str], None]) -> Study:
    """Return `study` with the sizes of arrays on GPUs that its file leaves open.

    That is GPU_ARRAY in all arms, or the largest power of two with which all arrays together take
    at most half of the memory of the smallest card that answers.
    """
    benchmarks = tuple(_fitted(one, ready, notify) for one in study.benchmarks)
    return replace(study, benchmarks=benchmarks)


def _fitted(one: Selection, ready: Mapping[str, Ready], notify: Callable[[str], None]) -> Selection:
    arrays = benchmark_of(one).arrays
    if not arrays or one.parameters["bytes"] is not None:
        return one
    cards = {name: _card(arm, one) for name, arm in ready.items() if one.label in arm.kernels}
    size, known = GPU_ARRAY, {name: memory for name, memory in cards.items() if memory}
    if known:
        least = min(known, key=known.__getitem__)
        while arrays * size > known[least] / 2 and size > 1:
            size //= 2
        if size < GPU_ARRAY:
            why = f"the smallest GPU, in {least}, has {_gib(known[least])}"
            notify(f"{one.label}: arrays of {format_bytes(size)} in all arms, for {why}")
    return replace(one, parameters={**one.parameters, "bytes": [size]})


def _card(ready: Ready, one: Selection) -> int:
    """Return the bytes of the smallest card that a benchmark uses in an arm, 0 if unknown."""
    env = {**(ready.mpi.env if ready.mpi else {}), **ready.arm.env}
    several = _cards(ready.kernels[one.label], tuple(env.items()), ready.machine)
    return min(several[: int(one.parameters["gpus"])], default=0)


@cache
def _cards(
    argv: tuple[str, ...], env: tuple[tuple[str, str], ...], machine: Machine
) -> tuple[int, ...]:
    try:
        answer = machine.capture([*argv, "cards"], env=dict(env), timeout_s=CARDS_S)
        return tuple(map(int, json.loads(answer.stdout)))
    except (MachineError, ValueError, TypeError):  # such as of hosts that are off for another arm
        return ()


def _gib(size: float) -> str:
    return f"{size / 2**30:.3g} GiB"
