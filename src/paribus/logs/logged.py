"""Judge logs: paired logs (`pairing.Logs`) in, one `Judgement` of all of them out.

Kinds of logs that are paired alike become one table, which imported.py judges as it does numbers.
To that are added the notices on logs, such as files that were not read, and what withholds a
verdict: copies, failed launches, other work in each arm, outputs that may be cases.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations
from typing import Any

from paribus.benchmarks import BENCHMARKS
from paribus.border import printable
from paribus.core import (
    DatedBy,
    Judgement,
    Metric,
    Notice,
    NoticeName,
    Reason,
    Unreadable,
    UserError,
    grouped,
    natural,
)
from paribus.judge.headlines import Because, withhold
from paribus.logs import notices, words
from paribus.logs.comparable import Unmatched, iterations, metrics_of, other_work
from paribus.logs.copies import copied, identical_by_chance
from paribus.logs.imported import Answers, enough, judge_arranged, merged
from paribus.logs.labels import of_files, without_last_number
from paribus.logs.log import Log, Unread
from paribus.logs.notices import nothing, unread
from paribus.logs.pairing import Kind, Logs, Pairing, made, several_in_a_file, source_of
from paribus.logs.provenance import alternate, not_in_turns, reserved
from paribus.logs.recordings import with_reported
from paribus.logs.repeats import unclear
from paribus.logs.settings import differing, facts_of_arms, is_place, part_of
from paribus.logs.tables.launches import arrange
from paribus.logs.tables.table import Table, build
from paribus.readers.known import harnesses

NOT_PRINTED = "not printed"
"""The version in readings of a tool that prints none."""

MOST_KEPT = 1000
"""Entries of a list in the figures of a notice."""


def notices_of(logs: Logs) -> Iterable[Notice]:
    """Yield the notices on logs, without those that withhold a verdict."""
    if logs.unread:
        refused = any(one.tool or one.lost for one in logs.unread)
        yield Notice(
            NoticeName.NOT_READ,
            "warning" if refused else "note",
            figures=unread_figures(logs.unread),
        )
    if logs.unmatched:
        yield Notice(
            NoticeName.NOT_COMPARABLE, "warning", figures=unmatched_figures(logs.unmatched)
        )
    if logs.partial:
        yield Notice(NoticeName.TRUNCATED_LOGS, "warning", figures=_kept(logs.partial))
    if logs.cases:
        yield Notice(NoticeName.CASES_LEFT_OUT, "warning", figures=_kept(logs.cases))
    yield from _versions(logs)
    yield from _iterations(logs)
    yield from _guards(logs)
    yield from _two_tools(logs)


def unread_figures(unread: Sequence[Unread]) -> dict[str, Any]:
    """Return the figures of the notice "not read": by reason the files, and lines in them."""
    by_reason = grouped(
        ((one.code, _unnumbered(one.detail), bool(one.tool) or one.code is Unreadable.REFUSED), one)
        for one in unread
    )
    reasons = []
    for (code, _, of_tool), several in by_reason.items():
        detail = several[0].detail
        names = list(dict.fromkeys(map(_place, several)))
        lines = sorted({one.line for one in several if one.line})
        reason = {"code": code, "detail": detail, "of_tool": of_tool, "files": len(names)}
        reasons.append({**reason, "names": names[:MOST_KEPT], "lines": lines[:MOST_KEPT]})
    files = {_place(one) for one in unread}
    return {"files": len(files), "reasons": reasons[:MOST_KEPT], "number": len(reasons)}


def _unnumbered(detail: str) -> str:
    """Return a reason without numbers in what it quotes: those of a process, of a host."""
    return re.sub("'.*'", lambda quoted: re.sub(r"\d+", "", quoted[0]), detail)


def unmatched_figures(unmatched: Sequence[Unmatched]) -> dict[str, Any]:
    """Return the figures of the notice "not comparable"."""
    return _kept(
        [{"label": one.label, "counts": one.counts, "example": one.example} for one in unmatched]
    )


def _kept(several: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the figures of a notice on several things: MOST_KEPT of them, and their number."""
    return {"all": list(several[:MOST_KEPT]), "number": len(several)}


def _place(one: Unread) -> str:
    return f"{one.arm}/{one.name}".encode("utf-8", "backslashreplace").decode()


def _by_arm(kind: Kind, of: Callable[[Log], str]) -> dict[str, list[str]]:
    """Return the values of `of` in the logs of each arm, empty if all logs have the same."""
    by_arm = grouped((log.arm, of(log)) for log in kind.logs)
    values = {arm: sorted({*mine}, key=natural) for arm, mine in by_arm.items()}
    return values if len({*chain(*values.values())}) > 1 else {}


def _with_equal_values(of: Mapping[str, Any]) -> Iterable[list[str]]:
    """Return the labels in groups whose values are equal."""
    return grouped((repr(value), label) for label, value in of.items()).values()


def _versions(logs: Logs) -> Iterable[Notice]:
    """Yield notices on kinds whose logs are of several versions of their tool."""
    found = {
        kind.label: versions
        for kind in logs.kinds
        if (versions := _by_arm(kind, lambda log: log.reading.version))
    }
    for labels in _with_equal_values(found):
        versions = found[labels[0]]
        known = NOT_PRINTED not in chain(*versions.values())
        figures = {"versions": versions, "known": known}
        yield Notice(NoticeName.VERSIONS_DIFFER, "warning", tuple(labels), figures)


def _iterations(logs: Logs) -> Iterable[Notice]:
    """Yield notices on kinds whose logs took different numbers of iterations."""
    for kind in logs.kinds:
        if numbers := _by_arm(kind, lambda log: str(iterations(log))):
            figures = {"iterations": numbers}
            yield Notice(NoticeName.ITERATIONS_DIFFER, "note", (kind.label,), figures)


def _guards(logs: Logs) -> Iterable[Notice]:
    """Yield notices on logs that show a disturbance, such as a CPU time far below the wall time."""
    for kind in logs.kinds:
        alike = grouped(
            (guard, f"{log.arm}/{log.name}") for log in kind.logs for guard in log.reading.guards
        )
        if alike:
            guards = [{"guard": guard, "logs": names} for guard, names in alike.items()]
            arms = list(dict.fromkeys(log.arm for log in kind.logs if log.reading.guards))
            figures = {"arms": arms, "guards": guards[:MOST_KEPT], "number": len(guards)}
            yield Notice(NoticeName.CONTAMINATION, "warning", (kind.label,), figures)


def _two_tools(logs: Logs) -> Iterable[Notice]:
    """Yield notices that tools of one layer and unit, such as OSU and IMB, are not mixed."""
    alike: dict[tuple[str, str], dict[str, list[str]]] = {}
    for kind in (kind for kind in logs.kinds if kind.tool in BENCHMARKS):
        benchmark = BENCHMARKS[kind.tool]
        family = kind.tool.partition("_")[0] if benchmark.read else "paribus"
        of_layer = alike.setdefault((benchmark.layer, benchmark.metrics[0].unit), {})
        of_layer.setdefault(family, []).append(kind.label)
    for (layer, unit), families in alike.items():
        if len(families) > 1:
            labels = [label for several in families.values() for label in several]
            figures = {"layer": layer, "unit": unit}
            yield Notice(NoticeName.TOOLS_NOT_MIXED, "note", tuple(labels), figures)


# --- logs that are paired alike --------------------------------------------------------------


def way(kind: Kind) -> Pairing:
    """Return how the logs of a kind are paired in the end, "none" if they are not.

    Logs in order of time have no pairs if the arms do not alternate; logs in the order of their
    names have none if the launches are enough to be judged unpaired.
    """
    if kind.pairing == "order" and _many(kind):
        return "none"
    times = grouped((log.arm, log.at) for log in kind.logs)
    return "none" if kind.pairing == "time" and not alternate(times) else kind.pairing


def _many(kind: Kind) -> bool:
    """Return whether the reference and another arm have launches enough to be judged unpaired."""
    return enough([*kind.counts.values()])


def alike(kinds: Iterable[Kind]) -> Iterable[list[Kind]]:
    """Return kinds in groups that make one table: paired alike, and judged in the same ways."""
    return grouped(
        ((kind.pairing, kind.grounds, way(kind), _many(kind)), kind) for kind in kinds
    ).values()


def judged(kinds: Sequence[Kind], arms: Sequence[str], answers: Answers) -> Judgement:
    """Return the judgement of kinds that are `alike`."""

    def table_of(how: Pairing) -> Table:
        tools = {kind.label: kind.tool for kind in kinds}
        return replace(build([source_of(arms, how, kinds)]), tools=tools)

    pairing = way(kinds[0])
    table = table_of("time" if kinds[0].pairing == "time" else pairing)
    (found,) = arrange(table, answers.reference)
    if found.kind == "blocks" and _many(kinds[0]):
        (alone,) = arrange(table_of("none"), answers.reference)
        found = replace(found, alone=alone.groups)
    (part,) = judge_arranged(table, found, answers)
    dated_by = {kind.label: made(kind.logs).by for kind in kinds}
    if pairing == "order":
        part = withhold(part, lambda f: _by_order(dated_by[f.benchmark]))
    # What would show an order that is not known, if anything.
    shows = kinds[0].pairing in ("name", "order") and all(dated_by.values())
    by = dated_by[kinds[0].label] if shows else None
    notices = (
        replace(n, figures={**n.figures, "dated_by": by})
        if n.name is NoticeName.ORDER_UNKNOWN
        else n
        for n in part.notices
    )
    return replace(part, notices=tuple(notices))


def _by_order(dated_by: DatedBy | None) -> Because:
    """Return why logs that are paired in the order of their names have no verdict."""
    if dated_by is None:
        return Reason.TIMES_UNKNOWN, {}
    return Reason.PAIRED_BY_ORDER, {"dated_by": dated_by}


# --- figures of which nothing says whether lower or higher is better -------------------------


def directed(logs: Logs, answers: Answers) -> tuple[Logs, list[Notice], Answers]:
    """Return the logs with the figures alone whose direction is known, by file or by --better.

    With them, notices that ask the user for the direction of the others, and the answers that are
    not used yet. Raises UserError if nothing is left to compare, naming the option that answers,
    and for an answer on a figure whose direction is not open.
    """
    unsaid = {m.name for kind in logs.kinds for m in metrics_of(kind.logs[0]) if m.unsaid}
    for name, better in answers.directions.items():
        if name not in unsaid:
            raise UserError(
                "is no figure of these logs whose direction is open",
                place=f"--better {printable(name)}={better}",
                fix=f"leave it out; open: {', '.join(map(printable, sorted(unsaid))) or 'none'}",
            )
    kinds: list[Kind] = []
    asked: list[Notice] = []
    for kind in logs.kinds:
        found, open_yet = _directed(kind, answers)
        if found is not None:
            kinds.append(found)
        if open_yet:
            figures = {"metrics": open_yet}
            asked.append(Notice(NoticeName.DIRECTION_UNKNOWN, "warning", (kind.label,), figures))
    if asked and not kinds:
        raise UserError(
            f"nothing to compare: {notices.undirected(asked[0].benchmarks, asked[0].figures)}",
            place=" and ".join(logs.arms),
            fix=notices.direct(asked[0].figures),
        )
    left = replace(answers, better=None, directions={}) if unsaid else answers
    return replace(logs, kinds=tuple(kinds)), asked, left


def _directed(kind: Kind, answers: Answers) -> tuple[Kind | None, list[dict[str, Any]]]:
    """Return a kind with the figures whose direction is known, None without any.

    With it the names and units of the figures whose direction is open.
    """
    known: dict[str, Metric] = {}
    open_yet = []
    measured = {sample.metric for log in kind.logs for sample in log.reading.samples}
    for metric in metrics_of(kind.logs[0]):
        better = answers.directions.get(metric.name) or answers.better
        if not metric.unsaid:
            known[metric.name] = metric
        elif better:
            known[metric.name] = replace(metric, better=better, unsaid=False)
        elif metric.name in measured:
            open_yet.append({"name": printable(metric.name), "unit": metric.unit})
    if not measured & known.keys():
        return None, open_yet
    logs = tuple(_with(log, known) if log.metrics else log for log in kind.logs)
    return replace(kind, logs=logs), open_yet


def _with(log: Log, known: Mapping[str, Metric]) -> Log:
    """Return a log of a harness with the `known` metrics alone."""
    samples = tuple(s for s in log.reading.samples if s.metric in known)
    metrics = tuple(known[m.name] for m in log.metrics if m.name in known)
    return replace(log, metrics=metrics, reading=replace(log.reading, samples=samples))


# --- all logs --------------------------------------------------------------------------------


def judge_logs(logs: Logs, answers: Answers, *, directory: str = "") -> Judgement:
    """Return the judgement of `logs`, in the same form as that of a study.

    `answers` are the user's options, `directory` is where the reports are written, "" for nowhere.
    Raises UserError, saying what was found, when nothing can be compared, and as `judge_table`.
    """
    _check_comparable(logs)
    logs, asked, answers = directed(_reference_first(logs, answers.reference), answers)
    parts, designs = [], [*filter(None, [words.ASKED.get(logs.by)])]
    for kinds in alike(logs.kinds):
        part = judged(kinds, logs.arms, answers)
        ordered = kinds[0].pairing in ("time", "order") and way(kinds[0]) == "none"
        designs += [_read_from(kinds, apart=ordered), part.design]
        parts.append(part)
    designs += filter(None, [_outputs(logs)])
    readings = {kind.label: kind.logs[0].reading for kind in logs.kinds}
    selections = tuple(
        replace(s, parameters=readings[s.label].parameters, ranks=readings[s.label].ranks or 0)
        for part in parts
        for s in part.study.benchmarks
    )
    study = replace(parts[0].study, benchmarks=selections)
    of_kinds = {kind.label: made(kind.logs) for kind in logs.kinds}
    whole = reserved(merged(parts, study), of_kinds, "logs")
    reasons = _reasons(logs)
    unknown = [n for n in whole.notices if n.name is NoticeName.ORDER_UNKNOWN]
    others = [n for n in whole.notices if n not in unknown[:-1]]
    notices = [
        *notices_of(logs),
        *asked,
        *not_in_turns(whole, of_kinds),
        *_withholding(reasons),
        *_identical(logs),
        *others,
    ]
    notices.sort(key=lambda n: n.level != "warning")
    why = {label: because for of_name in reasons.values() for label, because in of_name.items()}
    designs += filter(None, [words.regarded(answers.moves.part_of_arm, answers.moves.keys)])
    whole = replace(whole, directory=directory, design=" ".join(designs), notices=tuple(notices))
    facts = {kind.label: facts_of_arms(kind.logs, logs.arms) for kind in logs.kinds}
    whole = with_reported(whole, facts, map(part_of, answers.moves.part_of_arm))
    return withhold(whole, lambda f: why.get(f.benchmark))


def _reference_first(logs: Logs, reference: str) -> Logs:
    """Return logs in which the arm that --reference names is the first, where it names one.

    A name of no arm changes nothing: `arrange` refuses it.
    """
    arms = tuple(sorted(logs.arms, key=lambda arm: arm != reference))
    kinds = (
        replace(kind, logs=tuple(sorted(kind.logs, key=lambda log: log.arm != reference)))
        for kind in logs.kinds
    )
    return replace(logs, arms=arms, kinds=tuple(kinds))


def _check_comparable(logs: Logs) -> None:
    """Raise UserError for one arm only, and where no kind of logs is in every arm."""
    if len(logs.arms) < 2:
        lost = f"; {unread(unread_figures(logs.unread), 5)}" if logs.unread else ""
        raise UserError(
            f"is one arm only{lost}",
            place=logs.arms[0],
            fix="give the folder, or the log, of another arm too; divide a log that holds both",
        )
    if not logs.kinds:
        several = len({one.tool for one in logs.unmatched}) > 1
        of_tools = [u for u in logs.unread if u.tool or u.lost or u.code is Unreadable.REFUSED]
        raise UserError(
            nothing(unmatched_figures(logs.unmatched), unread_figures(of_tools or logs.unread)),
            place=" and ".join(logs.arms),
            fix="give outputs of the same benchmark with the same parameters for each arm"
            + " (two tools differ by 14 % on the same latency, so they are not compared)" * several
            + "; `paribus list` names the known tools"
            + "; convert a format of your own (docs/tutorials/training.md)" * (not several)
            + "".join(f"; {one}" for one in dict.fromkeys(map(_alike, logs.unmatched)) if one)
            + _another_way(logs.unmatched),
        )


def _another_way(unmatched: Sequence[Unmatched]) -> str:
    """Return the option that makes kinds of two arms comparable, as the end of a sentence, or "".

    Whole machines may differ in numbers of ranks or GPUs alone, and outputs in labels alone, such
    as names of hosts.
    """
    for one, other in combinations(unmatched, 2):
        having = [{arm for arm, count in of.counts.items() if count} for of in (one, other)]
        if one.tool != other.tool or having[0] & having[1]:
            continue
        names = differing([one.settings, other.settings])
        if names == ["label"] and one.settings.keys() == other.settings.keys():
            return words.BY_LABEL
        if names and all(map(is_place, names)):
            return words.by_place(names)
    return ""


def _outputs(logs: Logs) -> str:
    """Return how many outputs there were, "" if each file was one that was read."""
    whole = words.held(logs.files, logs.outputs, logs.read)
    return whole if (logs.outputs, logs.read) != (logs.files, logs.files) else ""


def _alike(one: Unmatched) -> str:
    """Return what makes files of the harness comparable that wrote the logs, "" for other logs."""
    harness = harnesses().get(one.tool)
    return harness.alike if harness else ""


def _read_from(kinds: Sequence[Kind], *, apart: bool) -> str:
    """Return in one sentence what was read and how it is paired.

    `apart` is whether the arms are ordered in time or by name, and have no pairs.
    """
    logs = [log for kind in kinds for log in kind.logs]
    several = any(several_in_a_file(kind.logs) for kind in kinds)
    tools = {(log.reading.benchmark, log.reading.version): None for log in logs}
    return words.read_from(
        len({log.path for log in logs}),
        len(logs) if several else None,
        [name if version == NOT_PRINTED else f"{name} {version}" for name, version in tools],
        words.how_paired(kinds[0].pairing, kinds[0].grounds, apart=apart),
    )


# --- what withholds a verdict ----------------------------------------------------------------

MOST_REFUSED = 0.10
"""Share of an arm's logs of a tool that may be refused, as in `stats.reliability`."""


def _reasons(logs: Logs) -> dict[NoticeName, dict[str, Because]]:
    """Return why verdicts are withheld, by notice and label of a kind; the last reason counts."""
    return {
        NoticeName.LAUNCHES_FAILED: _refused_too_often(logs),
        NoticeName.COPIES: {
            kind.label: because for kind in logs.kinds if (because := copied(kind.logs))
        },
        NoticeName.WORK_DIFFERS: _other_work(logs),
        NoticeName.REPEATS_UNCLEAR: {
            kind.label: (Reason.REPEATS_UNCLEAR, figures)
            for kind in (() if logs.by else logs.kinds)
            if (figures := unclear(kind.logs, in_turns=kind.in_turns))
        },
    }


def _identical(logs: Logs) -> Iterable[Notice]:
    """Yield notices on identical files that may be copies, but launches as well."""
    for kind in logs.kinds:
        if groups := identical_by_chance(kind.logs):
            yield Notice(NoticeName.COPIES, "warning", (kind.label,), {"groups": groups})


def _other_work(logs: Logs) -> dict[str, Because]:
    """Return for each kind whose logs did not compute the same why its verdict is withheld."""
    found: dict[str, Because] = {}
    for kind in logs.kinds:
        first = kind.logs[0]
        for log in kind.logs[1:]:
            for key in other_work(first, log)[:1]:
                two = [
                    {
                        "arm": one.arm,
                        "log": one.name,
                        "value": one.reading.facts.get(key, "not given"),
                    }
                    for one in (first, log)
                ]
                figures = {"fact": key.rpartition(".")[2], "logs": two}
                found.setdefault(kind.label, (Reason.WORK_DIFFERS, figures))
    return found


def _refused_too_often(logs: Logs) -> dict[str, Because]:
    """Return for each kind of which many logs were refused why its verdict is withheld.

    Logs of launches that failed are no sample at random: that they did may be what differs.
    """
    found: dict[str, Because] = {}
    every = Counter(log.arm for kind in logs.kinds for log in kind.logs)
    every.update(one.arm for one in logs.unread if one.tool)
    failed = _failed_launches(logs)
    # Launches of which not even the tool is known count against every tool, apart if there are two.
    open_to = max(2, len(logs.kinds))
    lost = Counter(one.arm for one, of in failed if one.lost and len(of) == open_to)
    with_lost = {arm: every[arm] + lost[arm] for arm in logs.arms}
    for kind in logs.kinds:
        good = Counter(log.arm for log in kind.logs)
        mine = [(one, of) for one, of in failed if kind in of]
        bad = Counter(one.arm for one, of in mine if one.tool or len(of) < open_to)
        open_yet = any(one.tool and len(of) > 1 for one, of in mine)
        all_of = {arm: good[arm] + bad[arm] for arm in logs.arms}
        if _too_many(lost, with_lost):
            bad, all_of, open_yet = lost, with_lost, len(logs.kinds) > 1
        if _too_many(bad, all_of):
            counts = [(arm, bad[arm], all_of[arm]) for arm in logs.arms]
            found[kind.label] = Reason.LOGS_REFUSED, {"arms": counts, "open": open_yet}
    return found


def _failed_launches(logs: Logs) -> list[tuple[Unread, list[Kind]]]:
    """Return each launch that gave no figures, with the kinds that it may be of.

    It may be of all kinds of its tool and parameters. Of these only those count whose logs have its
    labels, if there are any; then only those with files of its name, if its own has no figures. It
    may be of a kind that is not compared, such as a size at which all launches of one arm failed.
    """
    every: list[Kind | Unmatched] = [*logs.kinds, *logs.unmatched]
    files = {log.path for kind in every for log in kind.logs}
    # By place: a kind that is not compared may have the label of one that is.
    labels = [{repr(log.labels): log.labels for log in k.logs}.values() for k in every]
    names = [{*_names(k.logs)} for k in every]
    found = []
    for one in logs.unread:
        if not (one.tool or one.lost):
            continue
        places = [
            at
            for at, k in enumerate(every)
            if one.lost
            or (one.tool == k.tool and one.of.items() <= k.logs[0].reading.parameters.items())
        ]
        if mine := one.labels.items():
            places = [at for at in places if any(mine <= i.items() for i in labels[at])] or places
        for name in _names([one]) if one.path not in files else ():
            places = [at for at in places if name in names[at]] or places
        found.append((one, [logs.kinds[at] for at in places if at < len(logs.kinds)]))
    return found


def _names(logs: Iterable[Log | Unread]) -> list[str]:
    """Return the names of files without counts, and then each without its last number."""
    whole = of_files([log.name for log in logs])
    return [*whole, *map(without_last_number, whole)]


def _too_many(bad: Mapping[str, int], every: Mapping[str, int]) -> bool:
    """Return whether more than MOST_REFUSED of the logs of some arm are bad."""
    return any(bad[arm] > MOST_REFUSED * every[arm] for arm in every)


def _withholding(reasons: Mapping[NoticeName, Mapping[str, Because]]) -> Iterable[Notice]:
    """Yield the notices on what withholds verdicts; kinds with the same reason share one."""
    for name, of_name in reasons.items():
        for labels in _with_equal_values(of_name):
            code, figures = of_name[labels[0]]
            yield Notice(name, "warning", tuple(labels), {"code": code, **figures})
