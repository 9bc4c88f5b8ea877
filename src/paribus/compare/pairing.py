"""Which logs can be compared, and which of two arms belong together: by name, time or order.

What comes out are tables, so that the analysis is that of `paribus compare` on numbers.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median
from typing import Any, Literal

from paribus.benchmarks import BENCHMARKS
from paribus.compare.logs import Log, Unread, natural
from paribus.model import Case, Scalar
from paribus.tables.cases import case_key
from paribus.tables.table import Source
from paribus.units import count

QUARTER_S = 900.0
"""What time zones and changes of a clock are multiples of, in seconds."""

COPIED_S = 0.25
"""Files of one arm that follow each other within less (in the median) were copied: to start a
program takes longer. Their times say nothing of when they were measured."""

LEAST_NAMED = 0.5
"""Share of the logs that must have a namesake in every arm for names to pair them."""

WORK = "work."
"""Facts of a log under this prefix say what was computed: two arms must agree in them."""

PUBLISHED = "as published"
"""The version of readings that were printed somewhere, not measured: they are nobody's pair."""

SAME_WORK = 1e-6
"""Relative difference up to which figures of the work count as the same: rounding in a sum."""

SAME_TRAJECTORY = 0.01
"""The same for LAMMPS: atoms that differ in the last bit move apart within some hundred steps,
while temperature, energy and pressure of the same work stay close."""

Pairing = Literal["one", "time", "name", "order", "none"]
Asked = Literal["", "name", "time", "order"]
Key = tuple[str, tuple[tuple[str, Scalar], ...], int | None]
"""What two logs must share to be compared: tool, parameters, ranks."""


@dataclass(frozen=True, slots=True)
class Kind:
    """The logs of one kind, all with the same cases; how they are paired, and why so."""

    label: str
    tool: str
    logs: tuple[Log, ...]
    pairing: Pairing
    why: str


@dataclass(frozen=True, slots=True)
class Logs:
    """What was found in the folders of the arms: what can be compared, and what not.

    `apart`, `cases` and `partial` are sentences: on logs that have nothing to stand beside, on
    cases that not every arm has, and on logs that lack some.
    """

    arms: tuple[str, ...]
    kinds: tuple[Kind, ...]
    unread: tuple[Unread, ...]
    apart: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    partial: tuple[str, ...] = ()


def pair_logs(
    arms: tuple[str, ...], found: Sequence[Log], unread: Sequence[Unread], asked: Asked = ""
) -> Logs:
    """Return the logs that every arm has the like of, paired; `asked` names the way of pairing."""
    whole, apart = _comparable(found, arms)
    kinds, dropped, partial = [], [], []
    for label, mine in _problems(whole, arms, apart):
        kept, lost, lacking = _with_common_cases(mine, arms)
        dropped += [f"{label}: {told}" for told in lost]
        partial += [f"{label}, {told}" for told in lacking]
        if {log.arm for log in kept} != set(arms):
            apart.append(f"{label}: no case is in logs of every arm")
            continue
        tool = kept[0].reading.benchmark
        how, why, by_file = _pairing(kept, arms, asked)
        if by_file:
            kept = [replace(log, at=log.written or log.at) for log in kept]
        kinds.append(Kind(label, tool, tuple(kept), how, why))
    return Logs(arms, tuple(kinds), tuple(unread), tuple(apart), tuple(dropped), tuple(partial))


# --- what can be compared --------------------------------------------------------------------


def _key(log: Log) -> Key:
    reading = log.reading
    return reading.benchmark, tuple(sorted(reading.parameters.items())), reading.ranks


def _comparable(logs: Sequence[Log], arms: Sequence[str]) -> tuple[list[Log], list[str]]:
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


Cell = tuple[str, Case]


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


# --- what belongs together -------------------------------------------------------------------


def _pairing(logs: Sequence[Log], arms: Sequence[str], asked: Asked) -> tuple[Pairing, str, bool]:
    """Return how the logs of the arms belong together, why so, and if by the files' times."""
    counts = Counter(log.arm for log in logs)
    if max(counts.values()) == 1:
        return "one", "one log of each arm", False
    if any(log.reading.version == PUBLISHED for log in logs):
        return "none", "not: published figures are of no launch that is known", False
    named = _share_named(logs, arms) >= LEAST_NAMED
    even = len(set(counts.values())) == 1
    undated = _no_dates(logs)
    if asked == "time":
        return "time", "neighbours in time, as asked for", bool(undated)
    if asked == "name" and named:
        return "name", "logs of the same name, as asked for", False
    if asked == "order" and even:
        return "order", "logs in the order of their names, as asked for", False
    if not undated:
        return "time", "neighbours in time, by the dates that the logs carry", False
    copied = _no_file_times(logs, arms)
    reasons = [undated if any(log.dated for log in logs) else "", copied]
    why = "" if asked else f": {', and '.join(filter(None, reasons))}"
    if not (asked or copied):
        told = why if reasons[0] else ""
        return "time", f"neighbours in time, by the times of their files{told}", True
    if named:
        return "name", f"logs of the same name{why}", False
    if even:
        return "order", f"logs in the order of their names{why}", False
    return "none", f"not: the arms have different numbers of logs{why}", False


def made(logs: Sequence[Log], arms: Sequence[str]) -> tuple[str, dict[str, list[float]]]:
    """Return what tells when the logs of each arm were made, and when; "" if nothing does."""
    if not _no_dates(logs):
        says, times = "the dates in them", [log.at for log in logs]
    elif not _no_file_times(logs, arms):
        says, times = "the times of their files", [log.written or log.at for log in logs]
    else:
        return "", {}
    of_arm: dict[str, list[float]] = {}
    for log, at in zip(logs, times, strict=True):
        of_arm.setdefault(log.arm, []).append(at)
    return says, of_arm


def _no_dates(logs: Sequence[Log]) -> str:
    """Return why the dates in the logs do not tell when they were made, "" if they may."""
    if not all(log.dated for log in logs):
        return "not all of them carry a date"
    if len({log.at for log in logs}) == 1:
        return "they all carry the same date"
    if len({log.zoned for log in logs}) > 1:
        return "some of their dates are in UTC, some in a local time that is not named"
    if not (hours := _jump(logs)):
        return ""
    why = "another time zone, or a clock that was changed"
    return f"their dates jump by {hours:g} h against those times ({why})"


def _jump(logs: Sequence[Log]) -> float:
    """Return by how many hours dates jump against the times of the files, 0 if they do not.

    A zone or a changed clock shifts some by whole quarters of an hour; copied files lie anywhere.
    """
    if len(logs) < 6 or not all(log.alone and log.written for log in logs):
        return 0.0
    late = [log.written - log.at for log in logs]
    steps = [(one - min(late)) / QUARTER_S for one in late]
    if any(abs(step - round(step)) > 0.2 for step in steps):
        return 0.0
    return max(map(round, steps)) * QUARTER_S / 3600


def _no_file_times(logs: Sequence[Log], arms: Sequence[str]) -> str:
    """Return why the times of the files do not tell when the logs were made, "" if they may."""
    if not all(log.alone for log in logs):
        return "one file holds several"
    for arm in arms:
        times = sorted(log.written or log.at for log in logs if log.arm == arm)
        gaps = [after - before for before, after in pairwise(times)]
        if gaps and median(gaps) < COPIED_S:
            return "the files were copied, or their times are too coarse"
    return ""


def _own_name(log: Log) -> tuple[tuple[int, str], ...]:
    """Return a log's name without that of its arm, so that host-1.log and bridged-1.log match."""
    word = log.arm.rpartition("/")[2]
    return natural(re.sub(re.escape(word), "", log.name, flags=re.I))


def _share_named(logs: Sequence[Log], arms: Sequence[str]) -> float:
    """Return the share of logs that have one of the same name in every arm, 0 if any is twice."""
    names = Counter((log.arm, _own_name(log)) for log in logs)
    if max(names.values()) > 1:
        return 0.0
    shared = sum(all((arm, name) in names for arm in arms) for _, name in names)
    return shared / len(names)


# --- tables ----------------------------------------------------------------------------------


def sources_of(logs: Logs) -> dict[tuple[Pairing, str], Source]:
    """Return the figures of all kinds as tables, one for each way of pairing and its reason.

    A launch of several samples counts with their median.
    """
    groups: dict[tuple[Pairing, str], list[Kind]] = {}
    for kind in logs.kinds:
        groups.setdefault((kind.pairing, kind.why), []).append(kind)
    return {how: _source(logs.arms, how[0], kinds) for how, kinds in groups.items()}


def _source(arms: Sequence[str], pairing: Pairing, kinds: Sequence[Kind]) -> Source:
    import pyarrow as pa

    names = ["arm", "benchmark", "case", "metric", "unit", "better", "value"]
    names += {"time": ["time", "launch"], "none": ["launch"]}.get(pairing, ["block"])
    columns: dict[str, list[Any]] = {name: [] for name in names}
    files: list[str] = []
    written: dict[Case, str] = {}
    for kind in kinds:
        metrics = {metric.name: metric for metric in BENCHMARKS[kind.tool].metrics}
        for log, block in zip(kind.logs, _blocks(kind, arms), strict=True):
            row: dict[str, Any] = {"arm": log.arm, "benchmark": kind.label, "block": block}
            row |= {"time": round(log.at * 1e6), "launch": f"{log.arm}: {log.name}"}
            for sample in log.reading.samples:
                metric = metrics[sample.metric]
                if sample.case not in written:
                    written[sample.case] = sample.case.to_json()
                row |= {"case": written[sample.case], "metric": metric.name, "unit": metric.unit}
                row |= {"better": metric.better, "value": median(sample.values)}
                for name, column in columns.items():
                    column.append(row[name])
                files.append(str(log.path))
    kinds_of = {"time": pa.timestamp("us", "UTC"), "value": pa.float64()}
    return Source(
        name=" and ".join(arms) if len(arms) == 2 else ", ".join(arms),
        arm="",
        columns={
            name: pa.chunked_array([pa.array(column, kinds_of.get(name, pa.string()))])
            for name, column in columns.items()
        },
        place=lambda row: files[row],
    )


def _blocks(kind: Kind, arms: Sequence[str]) -> list[str]:
    """Return the block of each log of a kind."""
    if kind.pairing == "one":
        return ["1"] * len(kind.logs)
    if kind.pairing == "name":
        first = {_own_name(log): log.name for log in reversed(kind.logs) if log.arm == arms[0]}
        return [first.get(_own_name(log), log.name) for log in kind.logs]
    places: Counter[str] = Counter()
    found = []
    for log in kind.logs:
        places[log.arm] += 1
        found.append(str(places[log.arm]))
    return found
