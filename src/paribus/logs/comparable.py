"""Which logs can be compared: of one tool, with the same parameters, ranks, work and cases.

Everything else is left out by name, with what differs.
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
from paribus.logs.tables.cases import case_key
from paribus.readers.known import reader_of
from paribus.readers.reader import WORK

Key = tuple[str, tuple[tuple[str, Scalar], ...], int | None, str]
"""What two logs must share to be compared: tool, parameters, ranks, and cases (see `_kinds`)."""

PLACES = ("threads", "ranks", "cases", "label")
"""Settings by which kinds of logs are called, if they distinguish them, rather than by others."""

Cell = tuple[str, Case]

Skipped = dict[str, Any]
"""What was left out of the logs of a kind: figures of the notices on logs."""


@dataclass(frozen=True, slots=True)
class Apart:
    """Logs of one kind that have no match: how many of them each arm has, some none.

    Without `counts` every arm has some, but no case is in all of them. `example` is the name of
    one log, `settings` are their parameters and ranks.
    """

    label: str
    tool: str
    logs: Sequence[Log]
    counts: Mapping[str, int] = field(default_factory=dict)
    example: str = ""
    settings: Mapping[str, Scalar | None] = field(default_factory=dict)


@dataclass(slots=True)
class Comparable:
    """Logs that every arm has the like of, by the label of their kind; and what is left out.

    `apart`, `cases` and `partial` are as in Logs.
    """

    kinds: list[tuple[str, list[Log]]] = field(default_factory=list)
    apart: list[Apart] = field(default_factory=list)
    cases: list[Skipped] = field(default_factory=list)
    partial: list[Skipped] = field(default_factory=list)


def comparable(found: Sequence[Log], arms: Sequence[str]) -> Comparable:
    """Return which of the logs found can be compared, all logs of a kind with the same cases."""
    alike = Comparable()
    for label, mine in _of_every_arm(found, arms, alike.apart):
        for problem, several in _problems(label, mine, arms, alike.apart):
            kept, lost, lacking = _with_common_cases(several, arms)
            alike.cases += [{"label": problem, **one} for one in lost]
            alike.partial += [{"label": problem, **one} for one in lacking]
            if kept:
                alike.kinds.append((problem, kept))
            else:
                alike.apart.append(Apart(problem, several[0].reading.benchmark, several))
    return alike


def _of_every_arm(
    logs: Sequence[Log], arms: Sequence[str], apart: list[Apart]
) -> list[tuple[str, list[Log]]]:
    """Return the logs of each kind that every arm has, labelled; the others in `apart`."""
    kinds = _kinds(logs)
    having = {key: {log.arm for log in mine} for key, mine in kinds.items()}
    labels = _labels(kinds)
    apart += [
        Apart(
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

    Logs that have no case in common, nor both with a third, are of several kinds: many measure
    each size in a log of its own.
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
    """Return the cells of several logs in groups, such that no two groups share a log's."""
    groups: list[frozenset[Cell]] = []
    for cells in dict.fromkeys(logs):
        apart = [group for group in groups if group.isdisjoint(cells)]
        groups = [*apart, cells.union(*(group for group in groups if group not in apart))]
    return groups


def distinguished(groups: Sequence[frozenset[Cell]]) -> list[str]:
    """Return by which parameters the cases of several groups differ: "4 KiB", "p=1, q=2"."""
    cases = [{case: dict(case.items) for _, case in group} for group in groups]
    names = dict.fromkeys(name for several in cases for case in several for name, _ in case.items)
    telling = [
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
    """Return what each kind of log is called: the tool, and what distinguishes the kind.

    What follows from the rest is left out, such as sizes that grow with the number of ranks.
    """
    found = {}
    for tool, alike in grouped((key[0], key) for key in keys).items():
        said = [{**dict(key[1]), "ranks": key[2], "cases": key[3] or None} for key in alike]
        names = list(dict.fromkeys(name for one in said for name in one))
        telling = [n for n in names if len({str(one.get(n)) for one in said}) > 1]
        last = [n for n in PLACES if n in telling]
        for name in [*(n for n in telling[::-1] if n not in PLACES), *last]:
            rest = [n for n in telling if n != name]
            if len({tuple(str(one.get(n)) for n in rest) for one in said}) == len(alike):
                telling = rest
        for key, one in zip(alike, said, strict=True):
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
    label: str, logs: Sequence[Log], arms: Sequence[str], apart: list[Apart]
) -> list[tuple[str, Sequence[Log]]]:
    """Return the logs of a kind under its label; several problems of one tool apart.

    An arm that solved several problems with the same parameters shows it in what was computed;
    each is compared with its like, and those that an arm has not are added to `apart`.
    """
    classes: list[list[Log]] = []
    for log in logs:
        like = next((c for c in classes if same_work(c[0], log)), None)
        classes.append([log]) if like is None else like.append(log)
    if all(sum(any(log.arm == arm for log in c) for c in classes) == 1 for arm in arms):
        return [(label, logs)]
    found: list[tuple[str, Sequence[Log]]] = []
    for name, several in zip(_problem_names(classes), classes, strict=True):
        named = f"{label}, {name}"
        if {log.arm for log in several} == set(arms):
            found.append((named, several))
        else:
            first = several[0]
            counts = _counts(several, arms)
            apart.append(Apart(named, first.reading.benchmark, several, counts, first.name))
    return found


def _problem_names(classes: Sequence[Sequence[Log]]) -> list[str]:
    """Return what distinguishes several problems, such as "Temp 0.757"; numbers if no fact does."""
    telling, *_ = other_work(classes[0][0], classes[1][0])
    values = [str(several[0].reading.facts.get(telling, "not given")) for several in classes]
    if len(set(values)) < len(values):
        return [f"problem {number}" for number in range(1, len(classes) + 1)]
    return [f"{telling.rpartition('.')[2]} {value}" for value in values]


def same_work(one: Log, other: Log) -> bool:
    """Return whether two logs say that they computed the same, as far as they say it."""
    return not other_work(one, other)


def other_work(one: Log, other: Log) -> list[str]:
    """Return the facts of the work in which two logs differ.

    What the figure of merit is divided by is none: a time per iteration is that of one iteration.
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
    """Return by how many iterations a log's figure of merit was divided, None if by none."""
    per = metrics_of(log)[0].name
    facts = log.reading.facts.items()
    return next((value for key, value in facts if _is_divisor(key, per)), None)


def _is_divisor(key: str, per: str) -> bool:
    return key.startswith(WORK) and key.rpartition(".")[2].removesuffix("s") == per


def _alike(one: object, other: object, tolerance: float) -> bool:
    if isinstance(one, float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=tolerance, abs_tol=1e-12)
    return one == other


def _with_common_cases(
    logs: Sequence[Log], arms: Sequence[str]
) -> tuple[list[Log], list[Skipped], list[Skipped]]:
    """Return logs that all have the cases that every arm has; the cases and the logs left out.

    A case is an arm's if half of its logs have it: one log that was cut short takes it from none.
    Where no log of an arm has all of those, the cases that every log has are what is compared.
    """
    cells = [_cells(log) for log in logs]
    of_arm: dict[str, set[Cell]] = {}
    for arm in arms:
        mine = [has for log, has in zip(logs, cells, strict=True) if log.arm == arm]
        counts = Counter(cell for has in mine for cell in has)
        of_arm[arm] = {cell for cell, n in counts.items() if 2 * n >= len(mine)}
    common = frozenset(set.intersection(*of_arm.values()))
    whole = {log.arm for log, has in zip(logs, cells, strict=True) if common and has >= common}
    lost: list[Skipped] = []
    every = frozenset().union(*cells)
    if len(whole) < len(arms):
        common = frozenset.intersection(*cells)
        if common and (extra := names_of_cases(every - common, every)):
            lost.append({"arm": "", "cases": extra})
    else:
        for arm, mine_has in of_arm.items():
            if extra := names_of_cases(mine_has - common, every):
                lost.append({"arm": arm, "cases": extra})
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
    cut: list[Skipped] = [
        {"arm": arm, "logs": names, "lacking": names_of_cases(missing, every), "of": of}
        for (arm, missing), names in lacking.items()
    ]
    return kept, lost, cut


def _place(cell: Cell) -> tuple[str, object]:
    return cell[0], case_key(cell[1])


def names_of_cases(cells: Set[Cell], every: Iterable[Cell]) -> list[str]:
    """Return the cases of some cells in order; with their metric where `every` has more of one."""
    others = {case for metric, case in every if (metric, case) not in cells}
    names = (
        f"{metric}{of_case(case)}" if case in others else str(case)
        for metric, case in sorted(cells, key=_place)
    )
    return list(dict.fromkeys(names))
