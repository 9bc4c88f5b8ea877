"""Sort logs into kinds that can be compared: one tool, the same parameters, ranks, work and cases.

In go the logs of all arms; out come the kinds that every arm has, such as "osu_latency" and
"osu_allreduce (4 ranks)", and a list of everything that is left out, with the reason.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

from paribus.benchmarks import BENCHMARKS
from paribus.core import Case, Metric, Scalar, count, grouped, of_case
from paribus.logs.log import Log
from paribus.logs.tables.table import case_key
from paribus.readers.known import reader_of
from paribus.readers.reader import WORK

Key = tuple[str, tuple[tuple[str, Scalar], ...], int | None, str]
"""What two logs must share to be compared: tool, parameters, ranks, and cases (see `_kinds`)."""

PLACES = ("threads", "ranks", "cases", "label")
"""Settings that the label of a kind shows rather than others, if they distinguish the kind."""

Cell = tuple[str, Case]
"""Metric and case."""

Skipped = dict[str, Any]
"""What was left out of the logs of a kind: the figures of a notice (notices.py)."""


@dataclass(frozen=True, slots=True)
class Unmatched:
    """Logs of one kind that have no match in another arm.

    `label` is what the kind is called. `counts` is how many logs each arm has, some none; it is
    empty if every arm has some, but no case is in all of them. `example` is the name of one log,
    "" if none is needed; `settings` are the parameters and ranks of the kind.
    """

    label: str
    tool: str
    logs: Sequence[Log]
    counts: Mapping[str, int] = field(default_factory=dict)
    example: str = ""
    settings: Mapping[str, Scalar | None] = field(default_factory=dict)


@dataclass(slots=True)
class Comparable:
    """The kinds of logs that every arm has, each with its label and logs; and what is left out.

    `unmatched`, `cases` and `partial` are as in `pairing.Logs`.
    """

    kinds: list[tuple[str, list[Log]]] = field(default_factory=list)
    unmatched: list[Unmatched] = field(default_factory=list)
    cases: list[Skipped] = field(default_factory=list)
    partial: list[Skipped] = field(default_factory=list)


def comparable(found: Sequence[Log], arms: Sequence[str]) -> Comparable:
    """Return which of the logs found can be compared, all logs of a kind with the same cases."""
    result = Comparable()
    for label, of_kind in _of_every_arm(found, arms, result.unmatched):
        for name, logs in _problems(label, of_kind, arms, result.unmatched):
            kept, lost, lacking = _with_common_cases(logs, arms)
            result.cases += [{"label": name, **one} for one in lost]
            result.partial += [{"label": name, **one} for one in lacking]
            if kept:
                result.kinds.append((name, kept))
            else:
                result.unmatched.append(Unmatched(name, logs[0].reading.benchmark, logs))
    return result


def _of_every_arm(
    logs: Sequence[Log], arms: Sequence[str], unmatched: list[Unmatched]
) -> list[tuple[str, list[Log]]]:
    """Return the kinds that every arm has, with label and logs; add the others to `unmatched`."""
    kinds = _kinds(logs)
    having = {key: {log.arm for log in mine} for key, mine in kinds.items()}
    labels = _labels(kinds)
    unmatched += [
        Unmatched(
            *(labels[key], key[0], mine, _counts(mine, arms)),
            settings={**dict(key[1]), "ranks": key[2]},
        )
        for key, mine in kinds.items()
        if len(having[key]) < len(arms)
    ]
    labels = _labels([key for key in kinds if len(having[key]) == len(arms)])
    return [(label, kinds[key]) for key, label in labels.items()]


def _counts(logs: Sequence[Log], arms: Sequence[str]) -> dict[str, int]:
    counts = Counter(log.arm for log in logs)
    return {arm: counts[arm] for arm in arms}


def _kinds(logs: Sequence[Log]) -> dict[Key, list[Log]]:
    """Return logs by their kind.

    Logs of one test are of one kind if they have a case in common, or are linked by others that
    do. So logs that each measure another size are of several kinds.
    """
    found: dict[Key, list[Log]] = {}
    for test, mine in grouped((log.test, log) for log in logs).items():
        groups = _overlapping([_cells(log) for log in mine])
        names = distinguished(groups) if len(groups) > 1 else [""]
        place = {cell: name for group, name in zip(groups, names, strict=True) for cell in group}
        for log in mine:
            sample = log.reading.samples[0]
            found.setdefault((*test, place[sample.metric, sample.case]), []).append(log)
    return found


def _cells(log: Log) -> frozenset[Cell]:
    return frozenset([sample[:2] for sample in log.reading.samples])


def _overlapping(logs: Iterable[frozenset[Cell]]) -> list[frozenset[Cell]]:
    """Return all cells of logs in disjoint groups: the cells of each log are in one group."""
    groups: list[frozenset[Cell]] = []
    for cells in dict.fromkeys(logs):
        disjoint = [group for group in groups if group.isdisjoint(cells)]
        groups = [*disjoint, cells.union(*(group for group in groups if group not in disjoint))]
    return groups


def distinguished(groups: Sequence[frozenset[Cell]]) -> list[str]:
    """Return a name for each group of cells, by parameters that differ: "4 KiB", "p=1, q=2"."""
    cases = [{case: dict(case.items) for _, case in group} for group in groups]
    names = dict.fromkeys(name for several in cases for case in several for name, _ in case.items)
    telling = [  # parameters that have other values in another group
        name
        for name in names
        if len({frozenset(items.get(name) for items in one.values()) for one in cases}) > 1
    ]
    found = []
    for several in cases:
        parts = {Case(tuple(i for i in case.items if i[0] in telling)) for case in several}
        ordered = sorted(parts, key=case_key)
        found.append(" to ".join(map(str, dict.fromkeys((ordered[0], ordered[-1])))))
    if len(set(found)) == len(found):
        return found
    firsts = (min(group, key=_place) for group in groups)
    return [f"{metric}{of_case(case)}" for metric, case in firsts]


def _labels(keys: Iterable[Key]) -> dict[Key, str]:
    """Return the label of each kind: its tool, and the settings that distinguish it.

    A setting that follows from the others is left out, such as a size that grows with the ranks.
    """
    found = {}
    for tool, of_tool in grouped((key[0], key) for key in keys).items():
        settings = [{**dict(key[1]), "ranks": key[2], "cases": key[3] or None} for key in of_tool]
        names = list(dict.fromkeys(name for one in settings for name in one))
        telling = [n for n in names if len({str(one.get(n)) for one in settings}) > 1]
        last = [n for n in PLACES if n in telling]
        for name in [*(n for n in telling[::-1] if n not in PLACES), *last]:
            rest = [n for n in telling if n != name]
            if len({tuple(str(one.get(n)) for n in rest) for one in settings}) == len(of_tool):
                telling = rest
        for key, one in zip(of_tool, settings, strict=True):
            parts = [_setting(name, one[name]) for name in telling if one.get(name) is not None]
            found[key] = f"{tool} ({', '.join(parts)})" if parts else tool
    return found


def _setting(name: str, value: Scalar | None) -> str:
    """Return a parameter as words: "window size 64", "no validation", "1 rank".

    >>> _setting("window_size", 64), _setting("validation", False), _setting("ranks", 1)
    ('window size 64', 'no validation', '1 rank')
    """
    words = name.replace("_", " ")
    if name in ("cases", "label"):
        return str(value)
    if isinstance(value, bool):
        return words if value else f"no {words}"
    if name in ("ranks", "threads") and isinstance(value, int):
        return count(value, name.removesuffix("s"))
    return f"{words} {value}"


def _problems(
    label: str, logs: Sequence[Log], arms: Sequence[str], unmatched: list[Unmatched]
) -> list[tuple[str, Sequence[Log]]]:
    """Return the logs of a kind divided by the problem that was solved, each part with its label.

    Some tools solve several problems with the same parameters, which facts on the work distinguish,
    such as a final temperature. Problems that not every arm solved are added to `unmatched`. If
    each arm solved one only, the kind stays whole: `logged` then says that the arms' work differs.
    """
    problems: list[list[Log]] = []
    for log in logs:
        same = next((mine for mine in problems if same_work(mine[0], log)), None)
        problems.append([log]) if same is None else same.append(log)
    arms_of_each = [{log.arm for log in mine} for mine in problems]
    if all(sum(arm in of for of in arms_of_each) == 1 for arm in arms):
        return [(label, logs)]
    found: list[tuple[str, Sequence[Log]]] = []
    for name, mine in zip(_problem_names(problems), problems, strict=True):
        named, first = f"{label}, {name}", mine[0]
        if {log.arm for log in mine} == set(arms):
            found.append((named, mine))
        else:
            counts = _counts(mine, arms)
            unmatched.append(Unmatched(named, first.reading.benchmark, mine, counts, first.name))
    return found


def _problem_names(problems: Sequence[Sequence[Log]]) -> list[str]:
    """Return a name for each of several problems, such as "Temp 0.757", or numbers."""
    telling, *_ = other_work(problems[0][0], problems[1][0])
    values = [str(mine[0].reading.facts.get(telling, "not given")) for mine in problems]
    if len(set(values)) < len(values):
        return [f"problem {number}" for number in range(1, len(problems) + 1)]
    return [f"{telling.rpartition('.')[2]} {value}" for value in values]


def same_work(one: Log, other: Log) -> bool:
    """Return whether no fact in two logs shows that they computed something else."""
    return not other_work(one, other)


def other_work(one: Log, other: Log) -> list[str]:
    """Return the keys of the facts on the work in which two logs differ.

    The number by which the figure of merit is divided is none of them: a time per iteration is
    comparable however many iterations there were.
    """
    per = metrics_of(one)[0].name
    reader = reader_of(one.reading.benchmark)
    mine, others = reader.work(one.reading), reader.work(other.reading)
    return [
        key
        for key in {**mine.facts, **others.facts}
        if not _is_divisor(key, per)
        and not _alike(mine.facts.get(key), others.facts.get(key), mine.tolerance)
    ]


def metrics_of(log: Log) -> tuple[Metric, ...]:
    """Return the metrics of a log: those of its tool, or those that a harness's file names."""
    if log.metrics:
        return log.metrics
    benchmark = BENCHMARKS[log.reading.benchmark]
    return benchmark.choose(log.reading.parameters) if benchmark.choose else benchmark.metrics


def iterations(log: Log) -> Scalar | None:
    """Return the number of iterations by which a log's figure was divided, None if by none."""
    per = metrics_of(log)[0].name
    facts = log.reading.facts.items()
    return next((value for key, value in facts if _is_divisor(key, per)), None)


def _is_divisor(key: str, per: str) -> bool:
    """Return whether a fact is the number of what a metric is per: "work.x.iterations"."""
    return key.startswith(WORK) and key.rpartition(".")[2].removesuffix("s") == per


def _alike(one: object, other: object, tolerance: float) -> bool:
    if isinstance(one, float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=tolerance, abs_tol=1e-12)
    return one == other


def _with_common_cases(
    logs: Sequence[Log], arms: Sequence[str]
) -> tuple[list[Log], list[Skipped], list[Skipped]]:
    """Return logs with the cases that every arm has; the cases left out; and the logs left out.

    An arm has a case if half of its logs have it: so one log that was cut short takes it from none,
    and is left out itself. If no log of some arm has all such cases, those that every log has are
    compared.
    """
    cells = [_cells(log) for log in logs]
    of_arm: dict[str, set[Cell]] = {}
    for arm in arms:
        mine = [has for log, has in zip(logs, cells, strict=True) if log.arm == arm]
        counts = Counter(cell for has in mine for cell in has)
        of_arm[arm] = {cell for cell, n in counts.items() if 2 * n >= len(mine)}
    common = frozenset(set.intersection(*of_arm.values()))
    whole = {log.arm for log, has in zip(logs, cells, strict=True) if common and has >= common}
    every = frozenset().union(*cells)
    extra: dict[str, frozenset[Cell]] = {}
    if len(whole) == len(arms):
        extra = {arm: frozenset(mine - common) for arm, mine in of_arm.items()}
    elif common := frozenset.intersection(*cells):
        extra = {"": every - common}
    lost = [
        Skipped(arm=arm, cases=names_of_cases(more, every)) for arm, more in extra.items() if more
    ]
    kept: list[Log] = []
    lacking: dict[tuple[str, frozenset[Cell]], list[str]] = {}
    for log, has in zip(logs, cells, strict=True):
        if missing := common - has:
            lacking.setdefault((log.arm, missing), []).append(log.name)
        elif has == common:
            kept.append(log)
        elif common:
            samples = tuple(s for s in log.reading.samples if (s.metric, s.case) in common)
            kept.append(replace(log, reading=replace(log.reading, samples=samples)))
    of = len({case for _, case in common})
    cut_short = [
        Skipped(arm=arm, logs=names, lacking=names_of_cases(missing, every), of=of)
        for (arm, missing), names in lacking.items()
    ]
    return kept, lost, cut_short


def _place(cell: Cell) -> tuple[str, object]:
    return cell[0], case_key(cell[1])


def names_of_cases(cells: Set[Cell], every: Iterable[Cell]) -> list[str]:
    """Return the names of the cases of some cells, in order.

    With the metric if `every` has other metrics at the case that are not among the cells.
    """
    others = {case for metric, case in every if (metric, case) not in cells}
    names = (
        f"{metric}{of_case(case)}" if case in others else str(case)
        for metric, case in sorted(cells, key=_place)
    )
    return list(dict.fromkeys(names))
