"""Which logs are copies, or second records of one launch: neither is a second launch.

What an arm records twice counts once; a copied file withholds verdicts.

Two logs with the same figures are copies if so many figures are hardly the same by chance: with two
decimals, one of 42.17 that scatters by 0.5 % between launches could as well be 21 others. Identical
files are copies also if they have few figures, but a time of day that not every other log has.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from itertools import compress, permutations
from typing import Any, TypeVar

from paribus.core import Reason, Sample, grouped
from paribus.judge.headlines import Because
from paribus.logs.log import Log, Test, rare
from paribus.logs.reading import text_of

LEAST_FIGURES = 8
"""Different figures, at least, in a log that counts as a copy: time and rate are one figure."""

BY_CHANCE = 1e-4
"""Probability, at most, that any two of all logs are alike though nobody copied one."""

SCATTER = 0.005
"""By how much launches differ at least, relative to a figure.

Figures of few digits hide it, and are the same without copying.
"""

MOST_ALIKE = 32
"""Logs with the same figures, at most, of which each is compared with each."""

LEAST_TWINS = 3
"""Pairs, at least, that show by their number that all logs of a kind are records of two."""

KEPT = 256
"""Files whose printed numbers are cached: one holds outputs of many kinds."""

Key = TypeVar("Key")


def copied(logs: Sequence[Log]) -> Because | None:
    """Return why copies withhold the verdict on the logs of a kind, None if they do not.

    A copied log is no second launch: it would make an interval narrow, or arms alike. Logs that
    carry other dates are not copies. Figures of few digits are alike by chance in some logs; where
    they are in most, they hide how launches scatter. Files that are identical are copies, however
    few figures they have, unless chance explains it (`identical_by_chance`).
    """
    pairs = math.comb(len(logs), 2)
    twins, copies = [], []
    for group in _of_same_figures(logs):
        figures = _figures(group[0].reading.samples)
        if _different(figures) >= LEAST_FIGURES:
            twins.append(_names(group))
            copies += [_names(group)] if _by_chance(figures) * pairs < BY_CHANCE else []
    copies = copies or [_names(group) for group in _of_one_moment(logs)]
    known = {name for group in copies for name in group}
    files = [_names(one) for one, sure in _identical(logs) if sure and not known & {*_names(one)}]
    if copies or files:
        return Reason.LOGS_COPIED, {"groups": [*copies, *files], "identical": not copies}
    if 2 * sum(map(len, twins)) > len(logs):
        return Reason.LOGS_ALIKE, {"groups": twins}
    return None


def identical_by_chance(logs: Sequence[Log]) -> list[list[str]]:
    """Return groups of names of identical files that may be copies, but launches as well.

    So little in them differs from launch to launch that two launches can print the same.
    """
    return [
        _names(group)
        for group, sure in _identical(logs)
        if not sure and _different(_figures(group[0].reading.samples)) < LEAST_FIGURES
    ]


def recorded_again(logs: Sequence[Log]) -> Iterable[Log]:
    """Yield the logs of launches that another log of the arm records as well."""
    yield from _within(logs)
    yield from _in_other_forms(logs)


def _within(logs: Sequence[Log]) -> Iterable[Log]:
    """Yield the logs whose figures, and all that is rare in them, stand in another output too.

    So `tee` writes an output to a file, and a batch system what the whole job prints to another.
    Files that are identical are left to `copied`.
    """
    kinds: dict[tuple[str, Test], list[tuple[Log, Log]]] = {}
    for group in _of_same_figures(logs, dated=False):
        # Of two that say the same the later one, in the order of the files, is the second record.
        for one, other in permutations(group[::-1] if len(group) <= MOST_ALIKE else (), 2):
            fits = _alike(one, other) and _shown(one) <= _shown(other)
            if fits and _has(other, one) and _agree(_settings(one), _settings(other)):
                kinds.setdefault((one.arm, one.test), []).append((one, other))
    again = set[tuple[str, str]]()
    like = grouped(((log.arm, log.test), log) for log in logs) if kinds else {}
    for kind, pairs in kinds.items():
        of_each = {_key(log): _words(log.rare) for log in like[kind]}
        twos = [(_key(one), _key(other)) for one, other in pairs]
        sure = [_agree(one.labels, other.labels) for one, other in pairs]
        if not _each_has_a_twin([*compress(twos, sure)], of_each):
            sure = _surely_one(twos, of_each)
        for second, first in compress(twos, sure):
            if first not in again:
                again.add(second)
    yield from (log for log in logs if _key(log) in again)


def _each_has_a_twin(pairs: Collection[tuple[Key, Key]], every: Collection[Key]) -> bool:
    """Return whether each of a kind is in one pair: figures that are coarse make other groups."""
    twos = {*map(frozenset, pairs)}
    paired = [one for two in twos for one in two]
    once = len(paired) == len({*paired}) and {*every} <= {*paired}
    return once and len(twos) >= LEAST_TWINS


def _alike(one: Log, other: Log) -> bool:
    """Return whether two logs are of one arm and tool, and no parameter that both have differs."""
    (tool, mine, ranks), (its_tool, its, its_ranks) = one.test, other.test
    same = (one.arm, tool) == (other.arm, its_tool) and len({ranks, its_ranks} - {None}) < 2
    return same and _agree(dict(mine), dict(its))


def _agree(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return all(one[key] == other[key] for key in one.keys() & other.keys())


def _settings(log: Log) -> dict[str, Any]:
    """Return the settings that a log prints by name; what else it prints are lists of lines."""
    found = {**log.printed.keys, **log.printed.options, **log.printed.facts}
    return {key: value for key, value in found.items() if not isinstance(value, list)}


def _has(other: Log, one: Log) -> bool:
    """Return whether a log has all that is rare in another, but is none of an identical file.

    In one file they follow each other: a job shows again what it has just measured.
    """
    if not one.rare or not _words(one.rare) <= _words(other.rare):
        return False
    if one.path == other.path:
        return abs(one.part - other.part) == 1
    return _digest(one.path, one.written) != _digest(other.path, other.written)


def _key(log: Log) -> tuple[str, str]:
    return log.arm, log.name


@lru_cache(maxsize=1 << 10)
def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _in_other_forms(logs: Sequence[Log]) -> Iterable[Log]:
    """Yield the logs of launches that a program writes in several forms: all but what says most.

    So LAMMPS writes its log and its screen, ReFrame its report and a perflog. They are files of one
    arm, with the same figures and no two dates, but other settings; a copy has the same ones. All
    pairs of two forms are judged together, because the figures of one may be coarse.
    """
    by_forms: dict[Hashable, list[Log]] = {}
    for group in _of_same_figures(logs, dated=False):
        for arm, several in grouped((log.arm, log) for log in group).items():
            *others, more = sorted(several, key=lambda log: len(_shown(log)))
            files = {log.path for log in several}
            if min(len(files), len({*map(_shown, several)})) < len(several):
                continue
            for less in others:
                dates = {log.date for log in (less, more) if log.zoned == more.zoned} - {None}
                if len(dates) < 2 and _alike(less, more):
                    by_forms.setdefault((arm, _shown(less), _shown(more)), []).append(less)
    for several in by_forms.values():
        if math.prod(_by_chance(_figures(log.reading.samples)) for log in several) < BY_CHANCE:
            yield from several


def _shown(log: Log) -> frozenset[str]:
    """Return the names of the settings that a log shows."""
    return frozenset(log.reading.facts).union(*log.printed)


def _of_same_figures(logs: Sequence[Log], *, dated: bool = True) -> list[list[Log]]:
    """Return the groups of two or more logs with the same figures, and the same date if `dated`."""
    alike = grouped(
        ((log.reading.samples, log.date[0] if dated and log.date else 0.0), log) for log in logs
    )
    return [group for group in alike.values() if len(group) > 1]


def _of_one_moment(logs: Sequence[Log]) -> list[list[Log]]:
    """Return the groups of one date and figures in several files, none if that may be by chance.

    A perflog that grew has last month's launches. Runs of one file of Phoronix have one date.
    """
    dates = Counter(log.date for log in logs if log.date)
    at_once = sum(math.comb(several, 2) for several in dates.values())
    groups = [one for one in _of_same_figures(logs) if one[0].date]
    groups = [one for one in groups if len({log.path for log in one}) > 1]
    alike = math.prod(_by_chance(_figures(group[0].reading.samples)) for group in groups)
    return groups if math.comb(at_once, len(groups)) * alike < BY_CHANCE else []


def _names(logs: Iterable[Log]) -> list[str]:
    return [f"{log.arm}/{log.name}" for log in logs]


def _identical(logs: Sequence[Log]) -> list[tuple[list[Log], bool]]:
    """Return the groups of logs whose files are identical, and whether they surely are copies."""
    # A file of several launches is one file, however many of them are the same in another.
    likely = {log.path: log for group in _of_same_figures(logs, dated=False) for log in group}
    digests = ((_digest(path, log.written), log) for path, log in likely.items())
    alike = grouped((digest, log) for digest, log in digests if digest)
    groups = [group for group in alike.values() if len(group) > 1]
    of_each = {log.path: _printed(log.path, log.written) for log in (logs if groups else ())}
    paths = [[log.path for log in group] for group in groups]
    return list(zip(groups, _surely_one(paths, of_each), strict=True))


def _surely_one(
    groups: Iterable[Sequence[Key]], of_each: Mapping[Key, frozenset[str]]
) -> list[bool]:
    """Return of each group whether what is rare in its first shows that all are of one launch.

    What stands in every one outside the group shows nothing. `Log.dated` would not do: of a log
    without a date less would be known.
    """
    every = frozenset.intersection(*of_each.values()) if of_each else frozenset[str]()
    pairs = math.comb(len(of_each), 2)
    return [
        _never_alike(of_each[group[0]] - (every if {*of_each} - {*group} else set()), pairs)
        for group in groups
    ]


def _never_alike(words: Collection[str], pairs: int) -> bool:
    """Return whether in so many pairs of launches no two ever print the same of these words.

    None prints the same time of day; of numbers it takes LEAST_FIGURES.
    """
    numbers = [word for word in words if ":" not in word]
    odds = float(pairs)
    for number in numbers if len(numbers) >= LEAST_FIGURES else ():
        odds /= max(1.0, SCATTER * _steps_of(number))
    return odds < BY_CHANCE or len(numbers) < len(words)


@lru_cache(maxsize=1 << 14)
def _digest(path: str, _written: float) -> bytes:
    """Return the digest of a file's text, b"" for one that is gone or empty.

    When it was written is a part of the key of the cache alone.
    """
    text = text_of(path).strip()
    return sha256(text.encode(errors="replace")).digest() if text else b""


@lru_cache(maxsize=KEPT)
def _printed(path: str, _written: float) -> frozenset[str]:
    """Return what is rare in a file."""
    return frozenset(rare(text_of(path)))


def _steps_of(number: str) -> float:
    """Return at least how many steps of its last digit a printed number is away from zero."""
    digits = min(max(1.0, float(number.replace(".", ""))), 1e15)
    return float(10 ** math.floor(math.log10(digits)))


def _figures(samples: Sequence[Sample]) -> dict[str, set[float]]:
    """Return the different figures of each metric."""
    figures: dict[str, set[float]] = {}
    for sample in samples:
        figures.setdefault(sample.metric, set()).update(sample.values)
    return figures


def _different(figures: Mapping[str, Collection[float]]) -> int:
    """Return how many different figures there are; one that two metrics have counts once."""
    return len(set[float]().union(*figures.values()))


def _by_chance(figures: Mapping[str, Collection[float]]) -> float:
    """Return how likely it is that another launch prints the same figures of each metric."""
    return 1 / math.prod(
        max(1.0, SCATTER * steps) for values in figures.values() for steps in _steps(values)
    )


def _steps(values: Collection[float]) -> Iterable[float]:
    """Yield how many steps each of a metric's figures is away from zero, as they are printed.

    A step is one of the last decimal that any of them has. A figure has no more steps than a number
    of as many digits as the longest of them.
    """
    words = [f"{abs(value):.12f}".rstrip("0") for value in values]
    decimals = max(len(word.partition(".")[2]) for word in words)
    digits = max(len(word.replace(".", "").lstrip("0")) for word in words)
    for value in values:
        yield min(abs(value) * 10**decimals, 10.0 ** (digits - 1))
