"""The judgement of logs: that of their tables, and what the logs themselves say of it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from paribus.compare.comparable import first_files, other_work
from paribus.compare.imported import Answers, judge_table, merged
from paribus.compare.log_notices import MOST_TOLD, first_few, notices_of, told_unread
from paribus.compare.logs import Log
from paribus.compare.pairing import (
    PUBLISHED,
    Kind,
    Logs,
    Pairing,
    made,
    several_in_a_file,
    sources_of,
)
from paribus.compare.provenance import IN_TURNS
from paribus.errors import UserError
from paribus.judge.conclude import sentence
from paribus.judgement import Finding, Judgement, Notice, Verdict, Word
from paribus.model import Sample
from paribus.tables.table import build
from paribus.units import count, plural

LEAST_FIGURES = 8
"""Different figures in a log that tells copies: time and rate of one measurement are one figure."""

BY_CHANCE = 1e-4
"""Probability, at most, that any two of all logs are alike though nobody copied one."""

SCATTER = 0.005
"""Of launches, relative, at least: figures of few digits hide it, and are alike without copying."""

MOST_REFUSED = 0.10
"""Share of an arm's logs of a tool that may be refused, as in `stats.reliability`."""

AS_PUBLISHED = "published figures carry no interval, and nothing else of them was held equal"
LUCK_ALONE = "`--pair order` shows the interval that luck alone would have left, without a verdict"
TWO_ZONES = "if the dates are of two time zones, `--pair name` leaves them out of account"
TWO_TOOLS = " (two tools differ by 14 % on the same latency: one is never held against another)"
UNTIMED = (
    "nothing says which logs were made close in time, so drift of the machine cannot be told from"
    " a difference; give logs that keep the times of their files, or a table with a column block"
)
BY_ORDER = (
    "logs in the order of their names need not have been made close in time, so drift of the"
    " machine cannot be told from a difference; without `--pair` {} decide"
)

_WORDS = {
    "The table does not tell": "Logs do not tell",
    "the table does not tell": "the logs do not tell",
    "as far as the table tells": "as far as the logs tell",
}


def judge_logs(logs: Logs, answers: Answers, *, directory: str = "") -> Judgement:
    """Return the judgement of `logs`, in the same form as that of a study.

    Raises UserError, saying what was found, when nothing can be compared, and as `judge_table`.
    """
    if len(logs.arms) < 2:
        fix = "give the folder, or the log, of another arm beside it"
        raise UserError("is one arm only", place=logs.arms[0], fix=fix)
    if not logs.kinds:
        of_tools = {label.split(maxsplit=1)[0].rstrip(":,") for label in logs.apart}
        raise UserError(
            nothing(logs),
            place=" and ".join(logs.arms),
            fix="give outputs of the same benchmark with the same parameters for each arm"
            f"{TWO_TOOLS if len(of_tools) > 1 else ''}; `paribus list` names what is read",
        )
    tools = {kind.label: kind.tool for kind in logs.kinds}
    parts, designs = [], []
    for (pairing, why), source in sources_of(logs).items():
        part = judge_table(build([source]), answers, directory=directory, tools=tools)
        kinds = [k for k in logs.kinds if (k.pairing, k.why) == (pairing, why)]
        parts.append(_as_paired(part, pairing, kinds))
        apart = pairing == "time" and ": unpaired" in part.design
        designs.append(f"{_read_from(kinds, why, apart=apart)} {_of_logs(part.design)}")
    readings = {kind.label: kind.logs[0].reading for kind in logs.kinds}
    selections = tuple(
        replace(s, parameters=readings[s.label].parameters, ranks=readings[s.label].ranks or 0)
        for part in parts
        for s in part.study.benchmarks
    )
    study = replace(parts[0].study, benchmarks=selections)
    whole = merged(parts, study)
    reasons = _reasons(logs)
    notices = [*notices_of(logs), *_withholding(reasons), *whole.notices]
    notices.sort(key=lambda n: n.level != "warning")
    return _held(
        replace(whole, design=" ".join(designs), notices=tuple(notices)),
        {label: why for of_name in reasons.values() for label, why in of_name.items()},
    )


def nothing(logs: Logs) -> str:
    """Return why nothing can be compared: what was found instead."""
    found = "; ".join(logs.apart[:MOST_TOLD]) or "no log of a tool that is known here"
    found += f"; and {len(logs.apart) - MOST_TOLD} more" * (len(logs.apart) > MOST_TOLD)
    refused = [one for one in logs.unread if one.tool or one.lost] or list(logs.unread)
    said = f"; {told_unread(refused, 5)}" if refused else ""
    return f"hold nothing to compare: {found}{said}"


def _as_paired(part: Judgement, pairing: Pairing, kinds: Sequence[Kind]) -> Judgement:
    """Return a part of the judgement as far as its way of pairing supports it."""
    fix = {"order unknown": "The times of the files would show it: keep them when copying."}
    if pairing in ("name", "order") and all(made(kind.logs)[0] for kind in kinds):
        fix = {"order unknown": f"Without `--pair` {made(kinds[0].logs)[0]} show it."}
    notices = tuple(
        replace(n, fix=fix.get(n.name, n.fix), text=_of_logs(n.text)) for n in part.notices
    )
    part = replace(
        part,
        notices=notices,
        headlines=_worded(part.headlines),
        cases=_worded(part.cases),
        pairs=_worded(part.pairs),
    )
    said = {head.benchmark: head.verdict.reason for head in part.headlines}
    why = {kind.label: _why_withheld(kind, said[kind.label]) for kind in kinds}
    return _held(part, {label: reason for label, reason in why.items() if reason})


def _why_withheld(kind: Kind, reason: str) -> str:
    """Return why the way of pairing supports no verdict on a kind; `reason` is what its table gave.

    "" if the table's word and reason stand.
    """
    says, _ = made(kind.logs)
    if any(log.reading.version == PUBLISHED for log in kind.logs):
        return AS_PUBLISHED
    apart = kind.pairing == "time" and reason.endswith(IN_TURNS)
    if kind.pairing == "order" and says:
        return BY_ORDER.format(says)
    if kind.pairing in ("order", "none") or (apart and not says):
        return UNTIMED
    if not apart:
        return ""
    even = len(set(Counter(log.arm for log in kind.logs).values())) == 1
    hints = [LUCK_ALONE if even else "", TWO_ZONES if "time zone" in says else ""]
    return "; ".join([reason, *filter(None, hints)])


def _worded(found: Sequence[Finding]) -> tuple[Finding, ...]:
    return tuple(
        replace(f, verdict=replace(f.verdict, reason=_of_logs(f.verdict.reason))) for f in found
    )


def _of_logs(text: str) -> str:
    """Return what was said of a table as it is true of logs."""
    for table, logs in _WORDS.items():
        text = text.replace(table, logs)
    return text


def _held(judgement: Judgement, why: Mapping[str, str]) -> Judgement:
    """Return the judgement with the verdicts of some benchmarks withheld, for the reason given."""
    if not why:
        return judgement

    def held(found: Sequence[Finding]) -> tuple[Finding, ...]:
        return tuple(
            replace(f, verdict=Verdict(Word.WITHHELD, why[f.benchmark], final=True))
            if f.benchmark in why
            else f
            for f in found
        )

    heads = held(judgement.headlines)
    return replace(
        judgement,
        headlines=heads,
        cases=held(judgement.cases),
        pairs=held(judgement.pairs),
        sentence=sentence(heads),
    )


def _read_from(kinds: Sequence[Kind], why: str, *, apart: bool) -> str:
    """Return in one sentence what was read and how it is paired, if its times are not `apart`."""
    tools = list(dict.fromkeys(_tool(log) for kind in kinds for log in kind.logs))
    files = {log.path for kind in kinds for log in kind.logs}
    how = f"not paired: {why[5:]}" if why.startswith("not: ") else f"paired: {why}"
    how = how.replace("paired: neighbours", "ordered", 1) if apart else how
    found = count(len(files), "log")
    if any(several_in_a_file(kind.logs) for kind in kinds):
        outputs = count(sum(len(kind.logs) for kind in kinds), "output")
        found = f"{outputs} in {count(len(files), 'file')}"
    return f"{found} of {first_few(tools)}, {how}."


def _tool(log: Log) -> str:
    version = "" if log.reading.version == "not printed" else log.reading.version
    return f"{log.reading.benchmark} {version}".strip()


# --- what withholds --------------------------------------------------------------------------


def _reasons(logs: Logs) -> dict[str, dict[str, str]]:
    """Return by notice, then by kind, why verdicts are withheld; the last counts."""
    return {
        "launches failed": _refused_too_often(logs),
        "copies": _copies(logs),
        "work differs": _other_work(logs),
    }


def _copies(logs: Logs) -> dict[str, str]:
    """Return for each kind with several logs of one launch why its verdict is withheld.

    A copied log is no second launch: it would make an interval narrow, or arms alike. Logs that
    carry other dates are not copies. Figures of few digits are alike by chance in some logs; where
    they are in most, they hide how launches scatter.
    """
    found = {}
    for kind in logs.kinds:
        alike: dict[tuple[tuple[Sample, ...], float], list[str]] = {}
        for log in kind.logs:
            if log.reading.version != PUBLISHED:
                key = log.reading.samples, log.at if log.dated else 0.0
                alike.setdefault(key, []).append(f"{log.arm}/{log.name}")
        pairs = math.comb(len(kind.logs), 2)
        twins, copied = [], []
        for (samples, _), names in alike.items():
            figures = _figures(samples) if len(names) > 1 else {}
            if len(set[float]().union(*figures.values())) >= LEAST_FIGURES:
                twins.append(names)
                copied += [names] if _by_chance(figures) * pairs < BY_CHANCE else []
        if copied:
            found[kind.label] = (
                f"{_the_same(copied)}: a log that was copied is no second launch; give the log of"
                " each launch once"
            )
        elif 2 * sum(map(len, twins)) > len(kind.logs):
            found[kind.label] = (
                f"{_the_same(twins)}: copies of one log, or figures of too few digits to tell"
                " launches apart; give the log of each launch once, and let the tool print more"
                " digits or larger cases"
            )
    return found


def _the_same(groups: Sequence[Sequence[str]]) -> str:
    """Return in words which logs have the same figures; there is one group at least."""
    others = len(groups) - 1
    are = "group is" if others == 1 else "groups are"
    more = f", and {others} other {are} alike" * bool(others)
    return f"{first_files(groups[0])} have the same figures{more}"


def _figures(samples: Sequence[Sample]) -> dict[str, set[float]]:
    """Return the different figures of each metric."""
    figures: dict[str, set[float]] = {}
    for sample in samples:
        figures.setdefault(sample.metric, set()).update(sample.values)
    return figures


def _by_chance(figures: Mapping[str, Collection[float]]) -> float:
    """Return how likely it is that another launch prints the same figures.

    Of figures with two decimals, one of 42.17 that scatters by 0.5 % could as well be 21 others.
    """
    return 1 / math.prod(
        max(1.0, SCATTER * steps) for values in figures.values() for steps in _steps(values)
    )


def _steps(values: Collection[float]) -> Iterable[float]:
    """Yield how many steps each of a metric's figures is away from zero, as they are printed.

    A step is one of the last decimal that any has, or of as many digits as the longest has.
    """
    words = [f"{abs(value):.12f}".rstrip("0") for value in values]
    decimals = max(len(word.partition(".")[2]) for word in words)
    digits = max(len(word.replace(".", "").lstrip("0")) for word in words)
    for value in values:
        yield min(abs(value) * 10**decimals, 10.0 ** (digits - 1))


def _other_work(logs: Logs) -> dict[str, str]:
    """Return for each kind whose arms did not compute the same why its verdict is withheld."""
    found: dict[str, str] = {}
    for kind in logs.kinds:
        first = kind.logs[0]
        for log in kind.logs[1:]:
            for key in other_work(first, log)[:1]:
                name = key.rpartition(".")[2]
                values = [one.reading.facts.get(key, "not said") for one in (first, log)]
                found.setdefault(
                    kind.label,
                    f"the work is not the same: {name} is {values[0]} in {first.name} of"
                    f" {first.arm} and {values[1]} in {log.name} of {log.arm}",
                )
    return found


def _refused_too_often(logs: Logs) -> dict[str, str]:
    """Return for each kind of which many logs were refused why its verdict is withheld.

    Logs of launches that failed are no sample at random: that they did may be what differs.
    """
    found = {}
    every = Counter(log.arm for kind in logs.kinds for log in kind.logs)
    every.update(one.arm for one in logs.unread if one.tool)
    lost = Counter(one.arm for one in logs.unread if one.lost)
    for kind in logs.kinds:
        good = Counter(log.arm for log in kind.logs)
        bad = Counter(one.arm for one in logs.unread if one.tool == kind.tool)
        all_of = {arm: good[arm] + bad[arm] for arm in logs.arms}
        # Which tool a lost launch was of is not known: they count against every tool.
        if _too_many(lost, {arm: every[arm] + lost[arm] for arm in logs.arms}):
            bad, all_of = lost, {arm: every[arm] + lost[arm] for arm in logs.arms}
        if _too_many(bad, all_of):
            counts = [f"{bad[arm]} of {all_of[arm]} of {arm}" for arm in logs.arms]
            found[kind.label] = (
                f"many {plural('log')} show no success ({', '.join(counts)}): why they do not may"
                " be what differs"
            )
    return found


def _too_many(bad: Mapping[str, int], every: Mapping[str, int]) -> bool:
    return any(bad[arm] > MOST_REFUSED * every[arm] for arm in every)


def _withholding(reasons: Mapping[str, Mapping[str, str]]) -> Iterable[Notice]:
    for name, of_name in reasons.items():
        alike: dict[str, list[str]] = {}
        for label, why in of_name.items():
            alike.setdefault(why, []).append(label)
        for why, labels in alike.items():
            yield Notice(name, "warning", f"{first_few(labels)}: {why}.", tuple(labels))
