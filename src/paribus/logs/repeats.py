"""Whether outputs of one kind are launches of one case, or cases: what a file says of its outputs.

Labels between them distinguish cases. Where nothing stands between them, or only the names of files
could show it, their figures may show that they are cases: then no verdict is possible until the
user says which.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from statistics import fmean, median
from typing import Any, Literal

from paribus.core import Scalar, grouped
from paribus.logs.comparable import metrics_of
from paribus.logs.labels import counted_up, of_files, without_last_number
from paribus.logs.log import Log, in_groups

LEVEL = 0.01
"""Probability up to which figures of repeats in another order would rise and fall together so."""

MOST_SCATTER = 1.5
"""How many times the largest figure of a file's outputs may be the smallest, if these are launches
of one case."""

LEAST_EXPLAINED = 0.8
"""Share of the scatter of an arm's figures that the names of files explain, if these are cases.

With 8 figures or more, 3 or more of each name, noise alone explains so much in fewer than 1 % of
arms (F test).
"""

LEAST_FOLD = 1.1
"""How many times the mean figure of one name is that of another, at least, if these are cases."""

Repeats = Literal["", "repeated", "place", "name"]
"""What the user says of outputs that print the same settings: launches of one case, or the n-th of
a file is case n, or the name of a file is that of a case."""


def by_case(logs: Sequence[Log], by: Repeats = "") -> list[Log]:
    """Return logs with what distinguishes cases among their parameters.

    That is "label", where labels differ between the outputs of a kind in one file: what is not the
    same in all of them; or the name of the file, without what counts. Or it is "place", that of an
    output among those of its kind in a file.
    """
    if by == "repeated":
        return list(logs)
    say = {"place": _places, "name": _named}.get(by, _labels)

    def distinguished(alike: list[Log]) -> Iterable[Log]:
        mine = in_groups(alike, lambda log: log.file, _numbered)
        return map(Log.with_parameters, mine, say(mine))

    return in_groups(logs, lambda log: log.test, distinguished)


def _places(logs: Sequence[Log]) -> list[dict[str, Scalar]]:
    """Return the place of each log in its file; nothing where every file holds one."""
    counts: Counter[tuple[str, str]] = Counter()
    found: list[dict[str, Scalar]] = []
    for log in logs:
        counts[log.file] += 1
        found.append({"place": counts[log.file]})
    return found if max(counts.values()) > 1 else [{} for _ in logs]


def _named(logs: Sequence[Log]) -> list[dict[str, Scalar]]:
    names = _names(logs)
    return [{"label": name} if len(set(names)) > 1 else {} for name in names]


def _names(logs: Sequence[Log]) -> list[str]:
    """Return what the name of each log's file says but what counts and dates launches.

    Where a name is still that of one log only, all names are without their last number, unless it
    alone distinguishes them, leaves gaps, as 2, 4, 8 nodes do, and is the same in every arm.
    """
    names = of_files([log.name for log in logs])
    files = {(log.arm, name, log.path) for log, name in zip(logs, names, strict=True)}
    counts = Counter((arm, name) for arm, name, _ in files)
    if min(counts.values()) > 1:
        return names
    short = [without_last_number(name) for name in names]
    of_arms = grouped(counts).values()
    swept = all(set(one) == set(names) for one in of_arms) and not counted_up(names)
    return names if swept and len(set(short)) == 1 else short


def _labels(logs: Sequence[Log]) -> list[dict[str, Scalar]]:
    """Return what the labels of each log say, in forms of which some file has several labels.

    Where an arm has all labels of the others, as if launches of these failed, all are called alike.
    """
    forms = dict.fromkeys(
        form
        for several in grouped((log.file, log) for log in logs).values()
        for form in dict.fromkeys(form for log in several for form in log.labels)
        if len({log.labels.get(form, "") for log in several}) > 1
    )
    if not forms:
        return [{} for _ in logs]

    def words(log: Log) -> list[str]:
        return [word for form in forms for word in log.labels.get(form, "").split()]

    def said(mine: list[Log]) -> list[dict[str, Scalar]]:
        return [{"label": one} if one else {} for one in _telling([*map(words, mine)])]

    of_arms = [*map(set, grouped((log.arm, (*words(log),)) for log in logs).values())]
    together = all(one <= max(of_arms, key=len) for one in of_arms)
    return in_groups(logs, lambda log: together or log.arm, said)


def _numbered(logs: list[Log]) -> list[Log]:
    """Return the logs of a file; labels that are only numbers in order only count launches."""
    found = logs
    for form in {form for log in logs for form in log.labels}:
        said = [log.labels.get(form, "") for log in logs]
        if len(said) > 1 and all(one.isdecimal() and len(one) < 9 for one in said):
            first = int(said[0])
            if list(map(int, said)) == list(range(first, first + len(said))):
                found = [_counted_by(form, log) for log in found]
    return found


def _counted_by(form: str, log: Log) -> Log:
    rest = {other: said for other, said in log.labels.items() if other != form}
    return replace(log, labels=rest, counted=log.labels[form])


def _telling(labels: Sequence[Sequence[str]]) -> list[str]:
    """Return the words that are not in all labels, each after the option or name it belongs to.

    Where labels have the same words, the values that differ of options; all words if none does.
    What stands there twice, as a shell and a script print it, is given once.

    >>> _telling([["-np", "2", "osu"], ["-np", "4", "osu"]])
    ['-np 2', '-np 4']
    >>> _telling([["-np", "2", "-c", "4", "osu"], ["-np", "4", "-c", "2", "osu"]])
    ['-np 2 -c 4', '-np 4 -c 2']
    """
    several = dict.fromkeys(map(tuple, labels))
    words = set.intersection(*({*one} for one in several))
    pairs = set.intersection(*({*pairwise(("", *one))} for one in several))

    def outside(label: Sequence[str], *, values: bool) -> str:
        found: dict[str, None] = {}
        for before, word in pairwise(("", *label)):
            is_value = before.startswith("-") or word[0].isdigit()
            if word not in words or (values and is_value and (before, word) not in pairs):
                if before and is_value:
                    found.pop(before, None)
                found[f"{before} {word}" if before and is_value else word] = None
        return " ".join(found)

    for values in (False, True):
        said = {one: outside(one, values=values) for one in several}
        if len({*said.values()}) == len(several):
            return [said[tuple(one)] for one in labels]
    return [" ".join(one) for one in labels]


# --- what figures show -----------------------------------------------------------------------


def _by_name(logs: Sequence[Log], *, in_turns: bool) -> dict[str, Any]:
    """Return what shows that files of several names may be cases: nothing if their figures do not.

    An arm has several files of each name, and the names explain how their figures differ; or every
    arm has the same names, and the figures of these are as different as those of cases.
    """
    arms: dict[str, dict[str, list[float]]] = {}
    for log, name in zip(logs, _names(logs), strict=True):
        arms.setdefault(log.arm, {}).setdefault(name, []).append(_figure(log))
    names = list(next(iter(arms.values())))
    same = len(names) > 1 and all(one.keys() == set(names) for one in arms.values())
    series = [[fmean(one[name]) for name in names] for one in arms.values()] if same else []
    alike = not in_turns and any(together(*two) <= LEVEL for two in combinations(series, 2))
    for one in arms.values():
        means = [fmean(several) for several in one.values()]
        every = [value for several in one.values() for value in several]
        total = sum((value - fmean(every)) ** 2 for value in every)
        rest = sum((v - fmean(several)) ** 2 for several in one.values() for v in several)
        often = len(every) >= 8 and min(map(len, one.values())) >= 3
        explained = often and total - rest >= LEAST_EXPLAINED * total
        fold = math.exp(max(means) - min(means))
        if fold > (LEAST_FOLD if explained or alike else MOST_SCATTER if same else math.inf):
            return {"why": "names", "fold": fold, "outputs": len(every), "names": list(one)[:3]}
    return {}


def unclear(logs: Sequence[Log], *, in_turns: bool) -> dict[str, Any]:
    """Return what shows that the outputs may be cases, nothing if they are launches.

    Launches are those that their script numbers, and those that a harness counts. If the arms were
    launched `in_turns`, what drifts lets their figures rise and fall together.
    """
    if said := _of_ranks(logs) or _by_name(logs, in_turns=in_turns):
        return said
    files = grouped((log.file, log) for log in logs)
    open_yet = {key: mine for key, mine in files.items() if len(mine) > 1 and not _counted(mine)}
    series = {key: [_figure(log) for log in mine] for key, mine in open_yet.items()}
    for key, figures in series.items():
        fold = math.exp(max(figures) - min(figures))
        if fold > MOST_SCATTER:
            said = {"why": "scatter", "fold": fold}
            return {**said, "outputs": len(figures), "file": Path(open_yet[key][0].path).name}
    if in_turns or len(files) > len({arm for arm, _ in files}):
        return {}
    for (key, one), (_, other) in combinations(series.items(), 2):
        chance = together(one, other) if len(one) == len(other) else 1.0
        if chance <= LEVEL:
            said = {"why": "together", "chance": chance}
            return {**said, "outputs": len(one), "file": Path(open_yet[key][0].path).name}
    return {}


def _of_ranks(logs: Sequence[Log]) -> dict[str, Any]:
    """Return what shows that outputs may be those of the ranks of one launch.

    Their log says that so many ranks were started, or several began in the same second.
    """
    for mine in grouped((log.file, log) for log in logs if not log.metrics).values():
        at_once = (
            len(mine) > 2 and all(log.dated for log in mine) and len({log.at for log in mine}) < 2
        )
        if at_once or mine[0].ranks:
            said = {"why": "ranks", "ranks": mine[0].ranks}
            return {**said, "outputs": len(mine), "file": Path(mine[0].path).name}
    return {}


def _counted(logs: Sequence[Log]) -> bool:
    """Return whether something says that the logs of a file are launches of one case."""
    if any(log.metrics for log in logs):
        return True
    return len({log.counted for log in logs}) == len(logs)


def _figure(log: Log) -> float:
    """Return the logarithm of the figure of merit of a log, on average over its cases."""
    name = metrics_of(log)[0].name
    values = [median(s.values) for s in log.reading.samples if s.metric == name]
    values = values or [median(s.values) for s in log.reading.samples]
    return fmean([math.log(value) for value in values if value > 0] or [0.0])


def together(one: Sequence[float], other: Sequence[float]) -> float:
    """Return how probable it is that figures in random order rise and fall together as these do.

    That is exact: of all orders of the second, the share with as many pairs of places at which
    both rise or both fall. Equal figures do neither.

    >>> together([1, 2, 3, 4, 5], [1, 2, 3, 4, 5]) * 120
    1.0
    """
    pairs = [(i, j) for j in range(len(one)) for i in range(j)]
    alike = sum((one[i] - one[j]) * (other[i] - other[j]) > 0 for i, j in pairs)
    # How many orders of n things have k pairs in their first order: of the n-th, 0 to n - 1.
    orders = [1]
    for n in range(2, len(one) + 1):
        longer = [0] * (len(orders) + n - 1)
        for k, ways in enumerate(orders):
            for more in range(n):
                longer[k + more] += ways
        orders = longer
    return sum(orders[alike:]) / math.factorial(len(one))
