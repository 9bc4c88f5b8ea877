"""Which logs can be compared: of one tool, with the same parameters, ranks, work and cases.

Everything else is left out by name, in sentences that say what differs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from paribus.benchmarks import BENCHMARKS
from paribus.compare.logs import Log
from paribus.model import Case, Scalar
from paribus.tables.cases import case_key
from paribus.units import count

WORK = "work."
"""Facts of a log under this prefix say what was computed: two arms must agree in them."""

SAME_WORK = 1e-6
"""Relative difference up to which figures of the work count as the same: rounding in a sum."""

SAME_TRAJECTORY = 0.01
"""The same for LAMMPS: atoms that differ in the last bit move apart within some hundred steps,
while temperature, energy and pressure of the same work stay close."""

Key = tuple[str, tuple[tuple[str, Scalar], ...], int | None]
"""What two logs must share to be compared: tool, parameters, ranks."""

Cell = tuple[str, Case]


@dataclass(slots=True)
class Comparable:
    """Logs that every arm has the like of, by the label of their kind; and what is left out.

    `apart`, `cases` and `partial` are as in Logs.
    """

    kinds: list[tuple[str, list[Log]]] = field(default_factory=list)
    apart: list[str] = field(default_factory=list)
    cases: list[str] = field(default_factory=list)
    partial: list[str] = field(default_factory=list)


def comparable(found: Sequence[Log], arms: Sequence[str]) -> Comparable:
    """Return which of the logs found can be compared, all logs of a kind with the same cases."""
    whole, apart = _of_every_arm(found, arms)
    alike = Comparable(apart=apart)
    for label, mine in _problems(whole, arms, apart):
        kept, lost, lacking = _with_common_cases(mine, arms)
        alike.cases += [f"{label}: {told}" for told in lost]
        alike.partial += [f"{label}, {told}" for told in lacking]
        if {log.arm for log in kept} == set(arms):
            alike.kinds.append((label, kept))
        else:
            apart.append(f"{label}: no case is in logs of every arm")
    return alike


def _key(log: Log) -> Key:
    reading = log.reading
    return reading.benchmark, tuple(sorted(reading.parameters.items())), reading.ranks


def _of_every_arm(logs: Sequence[Log], arms: Sequence[str]) -> tuple[list[Log], list[str]]:
    """Return the logs whose like every arm has, and sentences on the others."""
    having: dict[Key, Counter[str]] = {}
    for log in logs:
        having.setdefault(_key(log), Counter())[log.arm] += 1
    whole = {key for key, counts in having.items() if len(counts) == len(arms)}
    labels = _labels(logs)
    apart = []
    for key, counts in having.items():
        if key not in whole:
            has = ", ".join(
                f"{count(counts[arm], 'log')} of {arm}" for arm in arms if arm in counts
            )
            none = ", ".join(arm for arm in arms if arm not in counts)
            apart.append(f"{labels[key]}: {has}, none of {none}")
    return [log for log in logs if _key(log) in whole], apart


def _labels(logs: Iterable[Log]) -> dict[Key, str]:
    """Return what each kind of log is called: the tool, with what tells it from its like."""
    by_tool: dict[str, list[Key]] = {}
    for key in dict.fromkeys(map(_key, logs)):
        by_tool.setdefault(key[0], []).append(key)
    found = {}
    for tool, keys in by_tool.items():
        said = [{**dict(key[1]), "ranks": key[2]} for key in keys]
        names = list(dict.fromkeys(name for one in said for name in one))
        telling = [n for n in names if len({str(one.get(n)) for one in said}) > 1]
        for key, one in zip(keys, said, strict=True):
            parts = [_setting(name, one[name]) for name in telling if one.get(name) is not None]
            found[key] = f"{tool} ({', '.join(parts)})" if parts else tool
    return found


def _setting(name: str, value: Scalar | None) -> str:
    """Return a parameter as words: "window size 64", "no validation", "1 rank".

    >>> _setting("window_size", 64), _setting("validation", False), _setting("ranks", 1)
    ('window size 64', 'no validation', '1 rank')
    """
    words = name.replace("_", " ")
    if isinstance(value, bool):
        return words if value else f"no {words}"
    if name in ("ranks", "threads") and isinstance(value, int):
        return count(value, name.removesuffix("s"))
    return f"{words} {value}"


def _problems(
    logs: Sequence[Log], arms: Sequence[str], apart: list[str]
) -> list[tuple[str, list[Log]]]:
    """Return the logs of each kind under its label; several problems of one tool apart.

    An arm that solved several problems with the same parameters shows it in what was computed;
    each is compared with its like, and those that an arm has not are added to `apart`.
    """
    found: list[tuple[str, list[Log]]] = []
    for key, label in _labels(logs).items():
        mine = [log for log in logs if _key(log) == key]
        classes: list[list[Log]] = []
        for log in mine:
            like = next((c for c in classes if same_work(c[0], log)), None)
            classes.append([log]) if like is None else like.append(log)
        of_arm = [sum(any(log.arm == arm for log in c) for c in classes) for arm in arms]
        if max(of_arm) == 1:
            found.append((label, mine))
            continue
        for number, several in enumerate(classes, 1):
            named = f"{label}, problem {number}"
            if {log.arm for log in several} == set(arms):
                found.append((named, several))
            else:
                apart.append(f"{named} ({several[0].name}): in {several[0].arm} only")
    return found


def same_work(one: Log, other: Log) -> bool:
    """Return whether two logs say that they computed the same, as far as they say it."""
    return not other_work(one, other)


def other_work(one: Log, other: Log) -> list[str]:
    """Return the facts of the work in which two logs differ.

    What the figure of merit is divided by is none: a time per iteration is that of one iteration.
    """
    per = BENCHMARKS[one.reading.benchmark].metrics[0].name
    keys = [key for log in (one, other) for key in log.reading.facts if key.startswith(WORK)]
    tolerance = SAME_TRAJECTORY if one.reading.benchmark == "lammps" else SAME_WORK
    return [
        key
        for key in dict.fromkeys(keys)
        if key.rpartition(".")[2].removesuffix("s") != per
        and not _alike(one.reading.facts.get(key), other.reading.facts.get(key), tolerance)
    ]


def _alike(one: object, other: object, tolerance: float) -> bool:
    if isinstance(one, float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=tolerance, abs_tol=1e-12)
    return one == other


def _with_common_cases(
    logs: Sequence[Log], arms: Sequence[str]
) -> tuple[list[Log], list[str], list[str]]:
    """Return logs that all have the cases that every arm has; and what is left out, in sentences.

    A case is an arm's if half of its logs have it: one log that was cut short takes it from none.
    """
    cells = {id(log): {(s.metric, s.case) for s in log.reading.samples} for log in logs}
    of_arm: dict[str, set[Cell]] = {}
    for arm in arms:
        mine = [log for log in logs if log.arm == arm]
        counts = Counter(cell for log in mine for cell in cells[id(log)])
        of_arm[arm] = {cell for cell, n in counts.items() if 2 * n >= len(mine)}
    common = set.intersection(*of_arm.values())
    lost = []
    for arm, has in of_arm.items():
        if extra := sorted(has - common, key=_place):
            lost.append(f"{count(len(extra), 'case')} not in every arm, in {arm}: {_named(extra)}")
    kept, lacking = [], []
    for log in logs:
        if missing := sorted(common - cells[id(log)], key=_place):
            told = f"{log.arm}: {log.name} lacks {len(missing)} of {count(len(common), 'case')}"
            lacking.append(f"{told} ({_named(missing)})")
        elif common:
            samples = tuple(s for s in log.reading.samples if (s.metric, s.case) in common)
            kept.append(replace(log, reading=replace(log.reading, samples=samples)))
    return kept, lost, lacking


def _place(cell: Cell) -> tuple[str, object]:
    return cell[0], case_key(cell[1])


def _named(cells: Sequence[Cell]) -> str:
    several = len({metric for metric, _ in cells}) > 1
    told = [f"{metric} at {case}" if several else str(case) for metric, case in cells[:4]]
    return ", ".join(told) + (", ..." if len(cells) > 4 else "")
