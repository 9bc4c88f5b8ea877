"""The judgement of logs: that of their tables, and what the logs themselves say of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from paribus.border import printable
from paribus.core import Judgement, Metric, Notice, NoticeName, Reason, UserError, Word
from paribus.judge.headlines import Because, withhold
from paribus.logs import notices, words
from paribus.logs.comparable import Apart, metrics_of, other_work
from paribus.logs.copies import copied, identical_by_chance
from paribus.logs.imported import Answers, merged
from paribus.logs.launches import alike, judged, way
from paribus.logs.log_notices import (
    NOT_PRINTED,
    apart_figures,
    not_in_turns,
    notices_of,
    unread_figures,
)
from paribus.logs.logs import Log
from paribus.logs.notices import nothing, unread
from paribus.logs.pairing import Kind, Logs, several_in_a_file
from paribus.logs.recordings import beside_facts
from paribus.logs.repeats import unclear
from paribus.logs.settings import apart_by_place, audited
from paribus.readers.known import harnesses

# Figures of which nothing says whether lower or higher is better: the user is asked.
#
# Until then each is named, and left out.


def directed(logs: Logs, answers: Answers) -> tuple[Logs, list[Notice], Answers]:
    """Return logs of whose figures it is known which are better, and what is asked of the others.

    Also the answers that are still open. Raises UserError where nothing is left to compare, naming
    the option that answers, and for an answer that nobody asked for.
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
    """Return a kind with the figures whose direction is known, None without any, and the others."""
    known: dict[str, Metric] = {}
    open_yet = []
    measured = {sample.metric for log in kind.logs for sample in log.reading.samples}
    for metric in metrics_of(kind.logs[0]):
        said = answers.directions.get(metric.name) or answers.better
        if not metric.unsaid:
            known[metric.name] = metric
        elif said:
            known[metric.name] = replace(metric, better=said, unsaid=False)
        elif metric.name in measured:
            open_yet.append({"name": printable(metric.name), "unit": metric.unit})
    if not measured & known.keys():
        return None, open_yet
    logs = tuple(_with(log, known) if log.metrics else log for log in kind.logs)
    return replace(kind, logs=logs), open_yet


def _with(log: Log, known: Mapping[str, Metric]) -> Log:
    """Return a log of a harness with the metrics that are known alone."""
    samples = tuple(s for s in log.reading.samples if s.metric in known)
    metrics = tuple(known[m.name] for m in log.metrics if m.name in known)
    return replace(log, metrics=metrics, reading=replace(log.reading, samples=samples))


MOST_REFUSED = 0.10
"""Share of an arm's logs of a tool that may be refused, as in `stats.reliability`."""


def judge_logs(logs: Logs, answers: Answers, *, directory: str = "") -> Judgement:
    """Return the judgement of `logs`, in the same form as that of a study.

    Raises UserError, saying what was found, when nothing can be compared, and as `judge_table`.
    """
    if len(logs.arms) < 2:
        lost = f"; {unread(unread_figures(logs.unread), 5)}" if logs.unread else ""
        raise UserError(
            f"is one arm only{lost}",
            place=logs.arms[0],
            fix="give the folder, or the log, of another arm too",
        )
    if not logs.kinds:
        several = len({one.tool for one in logs.apart}) > 1
        refused = [one for one in logs.unread if one.tool or one.lost] or logs.unread
        raise UserError(
            nothing(apart_figures(logs.apart), unread_figures(refused)),
            place=" and ".join(logs.arms),
            fix="give outputs of the same benchmark with the same parameters for each arm"
            + " (two tools differ by 14 % on the same latency, so they are not compared)" * several
            + "; `paribus list` names the known tools"
            + "".join(f"; {one}" for one in dict.fromkeys(map(_alike, logs.apart)) if one)
            + _by_place(logs.apart),
        )
    logs, asked, answers = directed(logs, answers)
    parts, designs = [], [*filter(None, [words.ASKED.get(logs.by)])]
    for kinds in alike(logs.kinds):
        part = judged(kinds, logs.arms, answers, directory)
        ordered = kinds[0].pairing in ("time", "order") and way(kinds[0]) == "none"
        designs += [_read_from(kinds, apart=ordered), part.design]
        parts.append(part)
    designs += filter(None, [_held(logs)])
    readings = {kind.label: kind.logs[0].reading for kind in logs.kinds}
    selections = tuple(
        replace(s, parameters=readings[s.label].parameters, ranks=readings[s.label].ranks or 0)
        for part in parts
        for s in part.study.benchmarks
    )
    study = replace(parts[0].study, benchmarks=selections)
    whole = merged(parts, study)
    reasons = _reasons(logs)
    unknown = [n for n in whole.notices if n.name is NoticeName.ORDER_UNKNOWN]
    others = [n for n in whole.notices if n not in unknown[:-1]]
    apart = [k for k in logs.kinds if _is_open(whole, k) and not k.in_turns]
    notices = [
        *notices_of(logs),
        *asked,
        *not_in_turns(apart),
        *_withholding(reasons),
        *_identical(logs),
        *others,
    ]
    notices.sort(key=lambda n: n.level != "warning")
    why = {label: because for of_name in reasons.values() for label, because in of_name.items()}
    designs += filter(None, [words.regarded(answers.moves.part_of_arm, answers.moves.keys)])
    whole = replace(whole, design=" ".join(designs), notices=tuple(notices))
    said, facts = audited({kind.label: kind.logs for kind in logs.kinds}, study, answers.moves)
    return withhold(beside_facts(whole, said, facts), lambda f: why.get(f.benchmark))


def _by_place(apart: Sequence[Apart]) -> str:
    """Return how to compare whole machines: their logs differ in numbers of ranks or GPUs alone."""
    for at, one in enumerate(apart):
        for other in apart[at + 1 :]:
            having = [{arm for arm, count in of.counts.items() if count} for of in (one, other)]
            if one.tool != other.tool or having[0] & having[1]:
                continue
            if names := apart_by_place([one.settings, other.settings]):
                return words.by_place(names)
    return ""


def _held(logs: Logs) -> str:
    """Return how many outputs there were, "" where each file was one that was read."""
    whole = words.held(logs.files, logs.outputs, logs.read)
    return whole if (logs.outputs, logs.read) != (logs.files, logs.files) else ""


def _alike(one: Apart) -> str:
    """Return what would make files of a harness comparable, "" for any other log."""
    harness = harnesses().get(one.tool)
    return harness.alike if harness else ""


def _is_open(judgement: Judgement, kind: Kind) -> bool:
    """Return whether some verdict on a kind is not withheld."""
    return any(
        head.verdict.word is not Word.WITHHELD
        for head in judgement.headlines
        if head.benchmark == kind.label
    )


def _read_from(kinds: Sequence[Kind], *, apart: bool) -> str:
    """Return in one sentence what was read and how it is paired; arms may lie `apart` in time."""
    outputs = sum(len(kind.logs) for kind in kinds)
    several = any(several_in_a_file(kind.logs) for kind in kinds)
    return words.read_from(
        len({log.path for kind in kinds for log in kind.logs}),
        outputs if several else None,
        list(dict.fromkeys(_tool(log) for kind in kinds for log in kind.logs)),
        words.how_paired(kinds[0].pairing, apart=apart, **asdict(kinds[0].grounds)),
    )


def _tool(log: Log) -> str:
    version = "" if log.reading.version == NOT_PRINTED else log.reading.version
    return f"{log.reading.benchmark} {version}".strip()


# --- what withholds --------------------------------------------------------------------------


def _reasons(logs: Logs) -> dict[NoticeName, dict[str, Because]]:
    """Return by notice, then by kind, why verdicts are withheld; the last counts."""
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
    """Yield which files are identical that may be copies as well as launches."""
    for kind in logs.kinds:
        if groups := identical_by_chance(kind.logs):
            yield Notice(NoticeName.COPIES, "warning", (kind.label,), {"groups": groups})


def _other_work(logs: Logs) -> dict[str, Because]:
    """Return for each kind whose arms did not compute the same why its verdict is withheld."""
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
    lost = Counter(one.arm for one in logs.unread if one.lost)
    for kind in logs.kinds:
        good = Counter(log.arm for log in kind.logs)
        of = kind.logs[0].reading.parameters.items()
        bad = Counter(
            one.arm
            for one in logs.unread
            if one.tool == kind.tool and one.of.items() <= of  # which test it was may be known
        )
        all_of = {arm: good[arm] + bad[arm] for arm in logs.arms}
        # Which tool a lost launch was of is not known: they count against every tool.
        if _too_many(lost, {arm: every[arm] + lost[arm] for arm in logs.arms}):
            bad, all_of = lost, {arm: every[arm] + lost[arm] for arm in logs.arms}
        if _too_many(bad, all_of):
            counts = [(arm, bad[arm], all_of[arm]) for arm in logs.arms]
            found[kind.label] = Reason.LOGS_REFUSED, {"arms": counts}
    return found


def _too_many(bad: Mapping[str, int], every: Mapping[str, int]) -> bool:
    return any(bad[arm] > MOST_REFUSED * every[arm] for arm in every)


def _withholding(reasons: Mapping[NoticeName, Mapping[str, Because]]) -> Iterable[Notice]:
    for name, of_name in reasons.items():
        alike: list[tuple[Because, list[str]]] = []
        for label, because in of_name.items():
            mine = next((labels for one, labels in alike if one == because), None)
            if mine is None:
                alike.append((because, [label]))
            else:
                mine.append(label)
        for (code, figures), labels in alike:
            yield Notice(name, "warning", tuple(labels), {"code": code, **figures})
