"""Pair the logs of the arms: by their dates, by the times of their files, or as the user says.

In go all logs that were read; out comes `Logs`: the kinds that can be compared, each with the way
in which its logs are paired. `source_of` writes them as the rows of a table, so that logs are
analysed as `paribus compare` does numbers: neighbours in time, say, become blocks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, Literal

from paribus.core import Case, DatedBy, Direction, Unreadable, Untimed, grouped, natural
from paribus.logs.comparable import Skipped, Unmatched, comparable, metrics_of
from paribus.logs.copies import recorded_again
from paribus.logs.log import Log, Unread, in_groups
from paribus.logs.provenance import Made
from paribus.logs.repeats import Repeats, by_case
from paribus.logs.settings import AS_READ, Moves, regarded
from paribus.logs.tables.table import Row, Source, in_order


def with_one_unit(logs: Sequence[Log]) -> list[Log]:
    """Return logs in which each metric of one test has one unit and direction.

    Where files of a harness give a metric in units that readers/units.py does not convert to each
    other, or with other directions, its name says so, such as "time in ticks": metrics of two names
    are never compared.
    """

    def named(mine: Sequence[Log]) -> list[Log]:
        forms: dict[str, set[tuple[str, Direction, bool]]] = {}
        for metric in (metric for log in mine for metric in log.metrics):
            form = (metric.unit, metric.better, metric.unsaid)
            forms.setdefault(metric.name, set()).add(form)
        return [_by_unit(log, forms) for log in mine]

    return in_groups(logs, lambda log: log.test, named)


def _by_unit(log: Log, forms: Mapping[str, set[tuple[str, Direction, bool]]]) -> Log:
    """Return a log with the unit, or the direction, in the name of each metric of several forms.

    A form is a unit, a direction, and whether that is not known.
    """
    names = {}
    for metric in log.metrics:
        several = forms[metric.name]
        if len({unit for unit, *_ in several}) > 1:
            names[metric.name] = f"{metric.name} in {metric.unit}"
        elif len(several) > 1 and not metric.unsaid:
            names[metric.name] = f"{metric.name}, {metric.better} is better"
    if not names:
        return log
    metrics = tuple(replace(m, name=names.get(m.name, m.name)) for m in log.metrics)
    samples = tuple(s._replace(metric=names.get(s.metric, s.metric)) for s in log.reading.samples)
    return replace(log, metrics=metrics, reading=replace(log.reading, samples=samples))


QUARTER_S = 900.0
"""Time zones differ by a multiple of this, in seconds."""

COPIED_S = 0.25
"""Files of an arm whose median distance in time is less, in seconds, were copied.

To start a program takes longer. Their times do not say when they were measured.
"""

LEAST_NAMED = 0.5
"""Share of the logs that must have a namesake in every arm, if names pair them."""

Name = tuple[tuple[int, str], ...]
"""A file's name as `natural` sorts it."""

Pairing = Literal["one", "time", "name", "order", "none"]
"""What pairs logs: each arm has one, neighbours in time, names, the order of names, or nothing."""

Asked = Literal["", "name", "time", "order"]
"""The argument of --pair, "" without it."""


@dataclass(frozen=True, slots=True)
class Grounds:
    """Why logs are paired as they are.

    `asked`: the way that `--pair` names; `granted`: whether they are paired so.
    `by`: whether dates in the logs, or times of their files, show the order.
    `undated`: why the dates do not show it, where that matters, with the `hours` by which they
    jump; `copied`: why the times of the files do not.
    """

    asked: Asked = ""
    granted: bool = False
    by: Literal["", "dates", "files"] = ""
    undated: Untimed | None = None
    hours: float = 0.0
    copied: Untimed | None = None


@dataclass(frozen=True, slots=True)
class Kind:
    """The logs of one kind, all with the same cases; how they are paired, and why so.

    `label` is what the kind is called, such as "osu_latency (2 ranks)", `tool` its benchmark.
    """

    label: str
    tool: str
    logs: tuple[Log, ...]
    pairing: Pairing
    grounds: Grounds

    @property
    def counts(self) -> dict[str, int]:
        """Return how many logs each arm has."""
        return dict(Counter(log.arm for log in self.logs))

    @property
    def in_turns(self) -> bool:
        """Return whether dates, or times of files, show that the arms alternate in time."""
        return made(self.logs).in_turns


@dataclass(frozen=True, slots=True)
class Logs:
    """What was found in the folders of the arms: what can be compared, and what not.

    `arms`: the names of the arms, the reference first. `kinds`: what can be compared.
    `unread`: what was not read. `unmatched`: logs without a match in another arm.
    `cases`: cases that not every arm has; `partial`: logs that lack cases; both by label.
    `by`: what the user says of several outputs in one file.
    `files`, `outputs`, `read`: how many files of logs there are, how many outputs in them, and how
    many of these were read.
    """

    arms: tuple[str, ...]
    kinds: tuple[Kind, ...]
    unread: tuple[Unread, ...]
    unmatched: tuple[Unmatched, ...] = ()
    cases: tuple[Skipped, ...] = ()
    partial: tuple[Skipped, ...] = ()
    by: Repeats = ""
    files: int = 0
    outputs: int = 0
    read: int = 0


def pair_logs(
    arms: tuple[str, ...],
    found: Sequence[Log],
    unread: Sequence[Unread],
    asked: Asked = "",
    by: Repeats = "",
    moves: Moves = AS_READ,
) -> Logs:
    """Return the logs of kinds that every arm has, with how each kind is paired.

    `found` and `unread` are those of `logs.find_logs`; `asked`, `by` and `moves` are the user's
    options --pair, --repeated or --by, and --part-of-arm and --key. Raises UserError for names in
    `moves` that no log has.
    """
    again = dict.fromkeys((log.arm, log.name) for log in recorded_again(found))
    found = [log for log in found if (log.arm, log.name) not in again]
    unread = [*unread, *(Unread(Unreadable.SAME_RUN, arm=arm, name=name) for arm, name in again)]
    sorted_out = comparable(by_case(with_one_unit(regarded(found, moves)), by), arms)
    kinds = []
    for label, mine in sorted_out.kinds:
        how, grounds = _pairing(mine, arms, asked)
        by_file = grounds.by == "files"
        logs = [replace(log, at=log.written or log.at) for log in mine] if by_file else mine
        kinds.append(Kind(label, logs[0].reading.benchmark, tuple(logs), how, grounds))
    left_out = tuple(sorted_out.unmatched), tuple(sorted_out.cases), tuple(sorted_out.partial)
    # The launches in a harness's file count as one output.
    read = {(one.path, 0 if one.metrics else one.name) for one in found}
    refused = {(one.path, one.output) for one in unread if one.output}
    files = {one.path for one in found} | {one.path for one in unread if one.output}
    outputs = len(read) + len(refused)
    return Logs(arms, tuple(kinds), tuple(unread), *left_out, by, len(files), outputs, len(read))


def _pairing(logs: Sequence[Log], arms: Sequence[str], asked: Asked) -> tuple[Pairing, Grounds]:
    """Return how the logs of one kind are paired, and why so."""
    counts = Counter(log.arm for log in logs)
    if max(counts.values()) == 1:
        return "one", Grounds()
    (undated, hours), copied = _no_dates(logs), _no_file_times(logs, arms)
    if asked == "time":
        by: Literal["dates", "files"] = "files" if undated else "dates"
        return "time", Grounds(asked, granted=True, by=by, copied=copied if undated else None)
    if asked == "name" and _share_named(logs, _own_names(logs, arms), arms) >= LEAST_NAMED:
        return "name", Grounds(asked, granted=True)
    if asked == "order" and len(set(counts.values())) == 1:
        return "order", Grounds(asked, granted=True)
    if not undated:
        return "time", Grounds(asked, by="dates")
    # That none of them carries a date needs no notice.
    lack = undated if any(log.dated for log in logs) else None
    if not copied:
        return "time", Grounds(asked, by="files", undated=lack, hours=hours)
    return "none", Grounds(asked, undated=lack, hours=hours, copied=copied)


def made(logs: Sequence[Log]) -> Made:
    """Return when the logs of each arm were made, by their dates or the times of their files."""
    if not _no_dates(logs)[0]:
        says = DatedBy.DATES if logs[0].zoned else DatedBy.DATES_WITHOUT_ZONE
        times = [log.at for log in logs]
    elif not _no_file_times(logs, {log.arm for log in logs}):
        says, times = DatedBy.FILES, [log.written or log.at for log in logs]
    else:
        return Made()
    return Made(says, grouped((log.arm, at) for log, at in zip(logs, times, strict=True)))


def _no_dates(logs: Sequence[Log]) -> tuple[Untimed | None, float]:
    """Return why the dates in the logs do not show their order, None if they may.

    With it, by how many hours the dates jump, 0 if they do not.
    """
    dates = [log.date for log in logs if log.date]
    if len(dates) < len(logs):
        return Untimed.NOT_ALL_DATED, 0.0
    if len({at for at, _ in dates}) == 1:
        return Untimed.ONE_DATE, 0.0
    if len({zoned for _, zoned in dates}) > 1:
        return Untimed.ZONES_MIXED, 0.0
    hours = _jump(logs, [at for at, _ in dates])
    return (Untimed.DATES_JUMP if hours else None), hours


def _jump(logs: Sequence[Log], dates: Sequence[float]) -> float:
    """Return by how many hours dates jump against the times of the files, 0 if they do not.

    Another time zone or clock shifts some logs by whole quarters of an hour. If the differences are
    no such multiples, the files were copied, and show nothing.
    """
    if len(logs) < 6 or not all(log.alone and log.written for log in logs):
        return 0.0
    late = [log.written - at for log, at in zip(logs, dates, strict=True)]
    steps = [(one - min(late)) / QUARTER_S for one in late]
    if any(abs(step - round(step)) > 0.2 for step in steps):
        return 0.0
    return max(map(round, steps)) * QUARTER_S / 3600


def _no_file_times(logs: Sequence[Log], arms: Iterable[str]) -> Untimed | None:
    """Return why the times of the files do not show the order of the logs, None if they may."""
    if several_in_a_file(logs):
        return Untimed.SEVERAL_IN_A_FILE
    for arm in arms:
        times = sorted(log.written or log.at for log in logs if log.arm == arm)
        gaps = [after - before for before, after in pairwise(times)]
        if gaps and median(gaps) < COPIED_S:
            return Untimed.FILES_COPIED
    return None


def several_in_a_file(logs: Sequence[Log]) -> bool:
    """Return whether one file holds several of these logs."""
    return max(Counter(log.file for log in logs).values()) > 1


def _own_names(logs: Sequence[Log], arms: Sequence[str]) -> list[Name]:
    """Return the names by which logs are namesakes: as they are, or without that of their arm.

    Without it host-1.log and bridged-1.log match; but an arm's name may be a part of any word.
    """
    words = [log.arm.rpartition("/")[2] for log in logs]
    numbered = several_in_a_file(logs)
    names = [log.name if numbered else _file_name(log) for log in logs]
    whole = [natural(name) for name in names]
    own = [
        natural(re.sub(re.escape(word), "", name, flags=re.I))
        for word, name in zip(words, names, strict=True)
    ]
    return max(whole, own, key=lambda names: _share_named(logs, names, arms))


def _file_name(log: Log) -> str:
    """Return a log's name without its number among the outputs in its file."""
    name, _, number = log.name.rpartition("#")
    return name if number.isdigit() and name.endswith(Path(log.path).name) else log.name


def _share_named(logs: Sequence[Log], names: Sequence[Name], arms: Sequence[str]) -> float:
    """Return the share of logs that have one of the same name in every arm, 0 if any is twice."""
    counts = Counter((log.arm, name) for log, name in zip(logs, names, strict=True))
    if max(counts.values()) > 1:
        return 0.0
    return sum(all((arm, name) in counts for arm in arms) for _, name in counts) / len(counts)


# --- tables ----------------------------------------------------------------------------------


def source_of(arms: Sequence[str], pairing: Pairing, kinds: Sequence[Kind]) -> Source:
    """Return the figures of kinds that are paired alike as a table, for each launch one row a case.

    A launch of several samples counts with their median.
    """
    rows: list[Row] = []
    cases: dict[Case, Case] = {}
    for kind in kinds:
        metrics = {metric.name: metric for metric in metrics_of(kind.logs[0])}
        for log, block in zip(kind.logs, _blocks(kind, pairing, arms), strict=True):
            place = f"{log.path}{log.name.removeprefix(_file_name(log))}"
            placed: dict[str, Any] = {"block": block}
            if pairing in ("time", "none"):
                placed = {"launch": f"{log.arm}: {log.name}"}
            if pairing == "time":
                placed |= {"time": log.at, "clock": "a date with a time zone"}
            for sample in log.reading.samples:
                metric = metrics[sample.metric]
                case = cases.get(sample.case)
                if case is None:
                    case = cases[sample.case] = in_order(dict(sample.case.items))
                rows.append(
                    Row(
                        place=place,
                        arm=log.arm,
                        benchmark=kind.label,
                        metric=metric.name,
                        value=median(sample.values),
                        case=case,
                        unit=metric.unit,
                        better=metric.better,
                        **placed,
                    )
                )
    return Source(" and ".join(arms) if len(arms) == 2 else ", ".join(arms), rows)


def _blocks(kind: Kind, pairing: Pairing, arms: Sequence[str]) -> list[str]:
    """Return the block of each log of a kind."""
    if pairing == "one":
        return ["1"] * len(kind.logs)
    if pairing == "name":
        named = list(zip(_own_names(kind.logs, arms), kind.logs, strict=True))
        first = {name: log.name for name, log in named if log.arm == arms[0]}
        return [first.get(name, log.name) for name, log in named]
    places: Counter[str] = Counter()
    found = []
    for log in kind.logs:
        places[log.arm] += 1
        found.append(str(places[log.arm]))
    return found
