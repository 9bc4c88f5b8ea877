"""Whether outputs of one kind are launches of one case, or several cases.

Four outputs of OSU below "=== ib0", "=== ib0", "=== eth0", "=== eth0" are two cases: labels between
outputs distinguish cases. Where nothing stands between them, or only names of files could show it,
their figures may still show that they are cases: then the verdict is withheld until the user says
what they are, by --repeated or --by.
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
"""Up to this p value the figures of two arms rise and fall together as those of cases do."""

MOST_SCATTER = 1.5
"""Ratio, at most, of the largest to the smallest figure of a file, if these are of one case."""

LEAST_EXPLAINED = 0.8
"""Share of an arm's sum of squares that the names of files explain at least, if these are cases.

With 8 figures or more, 3 or more of each name, noise alone explains so much in fewer than 1 % of
arms (F test).
"""

LEAST_FOLD = 1.1
"""Ratio, at least, of the mean figures of two names, if these are cases."""

Repeats = Literal["", "repeated", "place", "name"]
"""What the user says of outputs that print the same settings. "repeated": they are launches of one
case; "place": the n-th of a file is case n; "name": each name of a file is a case."""


def by_case(logs: Sequence[Log], by: Repeats = "") -> list[Log]:
    """Return logs with a parameter that distinguishes cases, where there are several.

    The parameter "label" holds what differs between the labels of outputs of a kind in one file;
    with `by="name"`, the name of the file without what counts launches. With `by="place"` the
    parameter "place" holds the place, from 1, among the outputs of the kind in the file.
    """
    if by == "repeated":
        return list(logs)
    parameters_of = {"place": _places, "name": _named}.get(by, _labels)

    def distinguished(alike: list[Log]) -> Iterable[Log]:
        mine = in_groups(alike, lambda log: log.file, _numbered)
        return map(Log.with_parameters, mine, parameters_of(mine))

    return in_groups(logs, lambda log: log.test, distinguished)


def _places(logs: Sequence[Log]) -> list[dict[str, Scalar]]:
    """Return the parameter "place" of each log; none where every file holds one log."""
    counts: Counter[tuple[str, str]] = Counter()
    found: list[dict[str, Scalar]] = []
    for log in logs:
        counts[log.file] += 1
        found.append({"place": counts[log.file]})
    return found if max(counts.values()) > 1 else [{} for _ in logs]


def _named(logs: Sequence[Log]) -> list[dict[str, Scalar]]:
    """Return the parameter "label" of each log by the name of its file; none for one name only."""
    names = _names(logs)
    return [{"label": name} if len(set(names)) > 1 else {} for name in names]


def _names(logs: Sequence[Log], *, in_turns: bool = False) -> list[str]:
    """Return the name of each log's file without what counts and dates launches.

    If some name is still that of one file only, all names lose their last number: it may count
    launches. It stays if it is a parameter: it alone distinguishes the names, has the same values
    in every arm, and has gaps, as 2, 4, 8 nodes, or figures that are those of cases: JUBE numbers
    the points of a sweep and their repeats alike.
    """
    names = of_files([log.name for log in logs])
    files = {(log.arm, name, log.path) for log, name in zip(logs, names, strict=True)}
    counts = Counter((arm, name) for arm, name, _ in files)
    if min(counts.values()) > 1:
        return names
    short = [without_last_number(name) for name in names]
    arms = grouped(counts)
    alone = len(set(short)) == 1 < len(set(names))
    swept = alone and all(set(one) == set(names) for one in arms.values())
    if swept and counted_up(names):
        figures = {(log.arm, n): _figure(log) for log, n in zip(logs, names, strict=True)}
        high = [_high([figures[arm, name] for name in sorted(set(names))]) for arm in arms]
        swept = not in_turns and any(
            one == other and math.comb(len(set(names)), len(one)) * LEVEL >= 1
            for one, other in combinations(high, 2)
        )
    return names if swept else short


def _labels(logs: Sequence[Log]) -> list[dict[str, Scalar]]:
    """Return the parameter "label" of each log: the words that differ between labels of an arm.

    Only forms count of which some file has several labels. Where an arm has all labels of the
    others, as if launches of these failed, the words are those that differ in all arms together.
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

    def parameters(of_arm: list[Log]) -> list[dict[str, Scalar]]:
        return [{"label": one} if one else {} for one in _telling([*map(words, of_arm)])]

    of_arms = [*map(set, grouped((log.arm, (*words(log),)) for log in logs).values())]
    together = all(one <= max(of_arms, key=len) for one in of_arms)
    return in_groups(logs, lambda log: together or log.arm, parameters)


def _numbered(logs: list[Log]) -> list[Log]:
    """Return the logs of a file, with labels that only count them, 1, 2, 3, as their numbers."""
    found = logs
    for form in {form for log in logs for form in log.labels}:
        texts = [log.labels.get(form, "") for log in logs]
        if len(texts) > 1 and all(text.isdecimal() and len(text) < 9 for text in texts):
            first = int(texts[0])
            if list(map(int, texts)) == list(range(first, first + len(texts))):
                found = [_counted_by(form, log) for log in found]
    return found


def _counted_by(form: str, log: Log) -> Log:
    """Return a log whose label of a form is the number of its launch."""
    rest = {other: text for other, text in log.labels.items() if other != form}
    return replace(log, labels=rest, counted=log.labels[form])


def _telling(labels: Sequence[Sequence[str]]) -> list[str]:
    """Return, for labels in words, those that are not in all labels, each behind its option.

    If labels have the same words, the values of options that differ; if none does, all words. What
    a label has twice, as a shell and a script print it, is given once.

    >>> _telling([["-np", "2", "osu"], ["-np", "4", "osu"]])
    ['-np 2', '-np 4']
    >>> _telling([["-np", "2", "-c", "4", "osu"], ["-np", "4", "-c", "2", "osu"]])
    ['-np 2 -c 4', '-np 4 -c 2']
    """
    distinct = dict.fromkeys(map(tuple, labels))
    in_all = set.intersection(*({*one} for one in distinct))
    pairs_in_all = set.intersection(*({*pairwise(("", *one))} for one in distinct))

    def differing(label: Sequence[str], *, values: bool) -> str:
        found: dict[str, None] = {}
        for before, word in pairwise(("", *label)):
            is_value = before.startswith("-") or word[0].isdigit()
            if word not in in_all or (values and is_value and (before, word) not in pairs_in_all):
                if before and is_value:
                    found.pop(before, None)
                found[f"{before} {word}" if before and is_value else word] = None
        return " ".join(found)

    for values in (False, True):
        names = {one: differing(one, values=values) for one in distinct}
        if len({*names.values()}) == len(distinct):
            return [names[tuple(one)] for one in labels]
    return [" ".join(one) for one in labels]


# --- what figures show -----------------------------------------------------------------------


def _by_name(logs: Sequence[Log], *, in_turns: bool) -> dict[str, Any]:
    """Return why files of several names may be cases, as figures of a notice; empty if they do not.

    Either an arm has several files of each name, and the names explain how their figures differ;
    or every arm has the same names, whose figures are as different as those of cases.
    """
    arms: dict[str, dict[str, list[float]]] = {}
    for log, name in zip(logs, _names(logs, in_turns=in_turns), strict=True):
        arms.setdefault(log.arm, {}).setdefault(name, []).append(_figure(log))
    names = list(next(iter(arms.values())))
    same = len(names) > 1 and all(one.keys() == set(names) for one in arms.values())
    series = [[fmean(one[name]) for name in names] for one in arms.values()] if same else []
    alike = not in_turns and any(together(*two) <= LEVEL for two in combinations(series, 2))
    for by_name in arms.values():
        means = [fmean(values) for values in by_name.values()]
        every = [value for values in by_name.values() for value in values]
        total = sum((value - fmean(every)) ** 2 for value in every)
        rest = sum((v - fmean(values)) ** 2 for values in by_name.values() for v in values)
        enough = len(every) >= 8 and min(map(len, by_name.values())) >= 3
        explained = enough and total - rest >= LEAST_EXPLAINED * total
        fold = math.exp(max(means) - min(means))
        if fold > (LEAST_FOLD if explained or alike else MOST_SCATTER if same else math.inf):
            return {"why": "names", "fold": fold, "outputs": len(every), "names": list(by_name)[:3]}
    return {}


def _high(series: Sequence[float]) -> set[int]:
    """Return the places of what is above the widest gap of a series, none if that is narrow.

    Of all orders of n figures, one in C(n, k) has its k high ones at given places.
    """
    below, above = max(pairwise(sorted(series)), key=lambda two: two[1] - two[0])
    wide = math.exp(above - below) > MOST_SCATTER
    return {at for at, value in enumerate(series) if wide and value >= above}


def unclear(logs: Sequence[Log], *, in_turns: bool) -> dict[str, Any]:
    """Return why the outputs of a kind may be cases, as figures of a notice; empty for launches.

    Launches are those that their script numbers, and those that a harness counts. If the arms were
    launched `in_turns`, a drift lets their figures rise and fall together, so that shows nothing.
    """
    if why := _of_ranks(logs) or _by_name(logs, in_turns=in_turns):
        return why
    files = grouped((log.file, log) for log in logs)
    open_yet = {key: mine for key, mine in files.items() if len(mine) > 1 and not _counted(mine)}
    series = {key: [_figure(log) for log in mine] for key, mine in open_yet.items()}
    for key, figures in series.items():
        fold = math.exp(max(figures) - min(figures))
        if fold > MOST_SCATTER:
            return _why("scatter", open_yet[key], fold=fold)
    if in_turns or len(files) > len({arm for arm, _ in files}):
        return {}
    for (key, one), (_, other) in combinations(series.items(), 2):
        chance = together(one, other) if len(one) == len(other) else 1.0
        if chance <= LEVEL:
            return _why("together", open_yet[key], chance=chance)
    return {}


def _why(why: str, of_file: Sequence[Log], **figures: float) -> dict[str, Any]:
    """Return the figures of the notice, of the outputs in one file."""
    return {
        "why": why,
        **figures,
        "outputs": len(of_file),
        "file": Path(of_file[0].path).name,
    }


def _of_ranks(logs: Sequence[Log]) -> dict[str, Any]:
    """Return why outputs may be those of the ranks of one launch, as `unclear` does.

    Their log says that several ranks were started, or more than two began in the same second.
    """
    for mine in grouped((log.file, log) for log in logs if not log.metrics).values():
        at_once = (
            len(mine) > 2 and all(log.dated for log in mine) and len({log.at for log in mine}) < 2
        )
        if at_once or mine[0].ranks:
            return _why("ranks", mine, ranks=mine[0].ranks)
    return {}


def _counted(logs: Sequence[Log]) -> bool:
    """Return whether something says that the logs of a file are launches of one case."""
    if any(log.metrics for log in logs):
        return True
    return len({log.counted for log in logs}) == len(logs)


def _figure(log: Log) -> float:
    """Return the mean over its cases of the logarithm of a log's figure of merit."""
    name = metrics_of(log)[0].name
    values = [median(s.values) for s in log.reading.samples if s.metric == name]
    values = values or [median(s.values) for s in log.reading.samples]
    return fmean([math.log(value) for value in values if value > 0] or [0.0])


def together(one: Sequence[float], other: Sequence[float]) -> float:
    """Return p of Kendall's test, one-sided and exact, that two series rise and fall together.

    That is, of all orders of the second, the share with at least as many pairs of places at which
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
