"""The judgement of logs: that of their tables, and what the logs themselves say of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from paribus.benchmarks import BENCHMARKS
from paribus.compare.comparable import iterations, other_work
from paribus.compare.imported import Answers, judge_table, merged
from paribus.compare.logs import Log, Unread, natural
from paribus.compare.pairing import PUBLISHED, Kind, Logs, Pairing, made, sources_of
from paribus.compare.provenance import IN_TURNS
from paribus.errors import UserError
from paribus.judgement import Finding, Judgement, Notice, Verdict, Word
from paribus.model import Sample
from paribus.study.conclude import sentence
from paribus.tables.table import build
from paribus.units import count, plural

LEAST_FIGURES = 8
"""Different figures in a log from which another one does not have all of them by chance."""

MOST_TOLD = 10
MOST_REFUSED = 0.10
"""Share of an arm's logs of a tool that may be refused, as in `stats.reliability`."""

AS_PUBLISHED = "published figures carry no interval, and nothing else of them was held equal"
LUCK_ALONE = "`--pair order` shows the interval that luck alone would have left, without a verdict"
BY_ORDER = (
    "nothing says which logs were made close in time, so drift of the machine cannot be told from"
    " a difference; give logs that keep the times of their files, or a table with a column block"
)


def judge_logs(logs: Logs, answers: Answers, *, directory: str = "") -> Judgement:
    """Return the judgement of `logs`, in the same form as that of a study.

    Raises UserError, saying what was found, when nothing can be compared, and as `judge_table`.
    """
    if not logs.kinds:
        raise UserError(
            nothing(logs),
            place=" and ".join(logs.arms),
            mend="give outputs of the same benchmark with the same parameters for each arm (two"
            " tools differ by 14 % on the same latency: one is never held against another);"
            " `paribus list` names what is read",
        )
    tools = {kind.label: kind.tool for kind in logs.kinds}
    parts, designs = [], []
    for (pairing, why), source in sources_of(logs).items():
        part = judge_table(build([source]), answers, directory=directory, tools=tools)
        kinds = [k for k in logs.kinds if (k.pairing, k.why) == (pairing, why)]
        parts.append(_as_paired(part, pairing, kinds))
        designs.append(f"{_read_from(kinds, why)} {part.design}")
    readings = {kind.label: kind.logs[0].reading for kind in logs.kinds}
    selections = tuple(
        replace(s, parameters=readings[s.label].parameters, ranks=readings[s.label].ranks or 0)
        for part in parts
        for s in part.study.benchmarks
    )
    study = replace(parts[0].study, benchmarks=selections)
    whole = merged(parts, study)
    reasons = _reasons(logs)
    notices = [*_notices(logs), *_withholding(reasons), *whole.notices]
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
    said = f"; {_told(refused, 5)}" if refused else ""
    return f"hold nothing to compare: {found}{said}"


def _as_paired(part: Judgement, pairing: Pairing, kinds: Sequence[Kind]) -> Judgement:
    """Return a part of the judgement as far as its way of pairing supports it."""
    mend = {"order unknown": "The times of the files would show it: keep them when copying."}
    notices = tuple(
        replace(
            n,
            mend=mend.get(n.name, n.mend),
            text=n.text.replace("The table does not tell", "Logs do not tell"),
        )
        for n in part.notices
    )
    why = {kind.label: BY_ORDER for kind in kinds if pairing == "order"}
    why |= {
        head.benchmark: f"{head.verdict.reason}; {LUCK_ALONE}"
        for head in part.headlines
        if pairing == "time" and head.verdict.reason.endswith(IN_TURNS)
    }
    why |= {
        kind.label: AS_PUBLISHED
        for kind in kinds
        if any(log.reading.version == PUBLISHED for log in kind.logs)
    }
    return _held(replace(part, notices=notices), why)


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


def _read_from(kinds: Sequence[Kind], why: str) -> str:
    tools = list(dict.fromkeys(_tool(log) for kind in kinds for log in kind.logs))
    files = {log.path for kind in kinds for log in kind.logs}
    named = ", ".join(tools[:6]) + (f" and {len(tools) - 6} more" if len(tools) > 6 else "")
    how = f"not paired: {why[5:]}" if why.startswith("not: ") else f"paired: {why}"
    return f"{count(len(files), 'log')} of {named}, {how}."


def _tool(log: Log) -> str:
    version = "" if log.reading.version == "not printed" else log.reading.version
    return f"{log.reading.benchmark} {version}".strip()


# --- notices ---------------------------------------------------------------------------------


def _notices(logs: Logs) -> Iterable[Notice]:
    if logs.unread:
        refused = any(one.tool or one.lost for one in logs.unread)
        yield Notice(
            "not read",
            "warning" if refused else "note",
            f"{_told(logs.unread, 2 * MOST_TOLD)}.",
            figures={_place(one): one.why for one in logs.unread[:1000]},
        )
    yield from _sentences("not comparable", "Left out, for want of the like: ", logs.apart)
    yield from _sentences(
        "logs cut short", "Left out, for they lack cases that others have: ", logs.partial
    )
    yield from _sentences("cases left out", "Cases left out: ", logs.cases)
    yield from _versions(logs)
    yield from _iterations(logs)
    yield from _guards(logs)
    yield from _one_after_the_other(logs)
    yield from _two_tools(logs)


def _sentences(name: str, begin: str, told: Sequence[str]) -> Iterable[Notice]:
    if told:
        more = f"; and {len(told) - MOST_TOLD} more" * (len(told) > MOST_TOLD)
        text = f"{begin}{'; '.join(told[:MOST_TOLD])}{more}."
        yield Notice(name, "warning", text, figures={"all": list(told[:1000])})


def _told(unread: Sequence[Unread], most: int) -> str:
    """Return what was not read, alike reasons together."""
    by_reason: dict[tuple[str, bool], list[str]] = {}
    for one in unread:
        by_reason.setdefault((one.why, bool(one.tool)), []).append(f"{one.arm}/{one.name}")
    told = []
    for (why, tool), names in by_reason.items():
        many = len(names) > 1 and why.startswith("is ")
        told.append(f"{_files(names)}{':' * tool} {'are' + why[2:] if many else why}")
    more = f"; and {len(told) - most} more reasons" * (len(told) > most)
    return f"{count(len(unread), 'file')} not read: {'; '.join(told[:most])}{more}"


def _files(names: Sequence[str]) -> str:
    more = f", and {len(names) - 3} more," * (len(names) > 3)
    return f"{', '.join(names[:3])}{more}"


def _place(one: Unread) -> str:
    return f"{one.arm}/{one.name}".encode("utf-8", "backslashreplace").decode()


def _versions(logs: Logs) -> Iterable[Notice]:
    for kind in logs.kinds:
        by_arm: dict[str, set[str]] = {}
        for log in kind.logs:
            by_arm.setdefault(log.arm, set()).add(log.reading.version)
        if len(set().union(*by_arm.values())) > 1:
            told = "; ".join(f"{arm} {', '.join(sorted(v))}" for arm, v in by_arm.items())
            yield Notice(
                "versions differ",
                "warning",
                f"{kind.label} is not of one version: {told}. Part of the ratio may be the"
                " program's.",
                (kind.label,),
            )


def _iterations(logs: Logs) -> Iterable[Notice]:
    """Say of calculations that took other numbers of iterations what is compared of them."""
    for kind in logs.kinds:
        by_arm: dict[str, set[str]] = {}
        for log in kind.logs:
            by_arm.setdefault(log.arm, set()).add(str(iterations(log)))
        if len(set().union(*by_arm.values())) > 1:
            told = "; ".join(
                f"{arm} {', '.join(sorted(n, key=natural))}" for arm, n in by_arm.items()
            )
            yield Notice(
                "iterations differ",
                "note",
                f"{kind.label} did not take as many iterations in every log: {told}. What is"
                " compared is the time of one.",
                (kind.label,),
            )


def _guards(logs: Logs) -> Iterable[Notice]:
    """Yield what logs say against their own figures, such as a CPU time far below the wall time."""
    for kind in logs.kinds:
        for arm in logs.arms:
            said = [
                f"{log.name}: {guard}"
                for log in kind.logs
                if log.arm == arm
                for guard in log.reading.guards
            ]
            if said:
                more = f"; and {len(said) - 3} more" * (len(said) > 3)
                yield Notice(
                    "contamination",
                    "warning",
                    f"{kind.label}, {arm}: {'; '.join(said[:3])}{more}.",
                    (kind.label,),
                    figures={"said": said[:1000]},
                )


def _one_after_the_other(logs: Logs) -> Iterable[Notice]:
    """Say of logs that are paired by name which arms were measured one after the other."""
    reference, *others = logs.arms
    for kind in logs.kinds:
        if kind.pairing != "name" or any(log.reading.version == PUBLISHED for log in kind.logs):
            continue
        says, times = made(kind.logs, logs.arms)
        for arm in others if says else ():
            pair = sorted((reference, arm), key=lambda name: min(times[name]))
            if len(times[arm]) > 1 and max(times[pair[0]]) < min(times[pair[1]]):
                yield Notice(
                    "one arm after the other",
                    "warning",
                    f"{kind.label}: by {says} all logs of {pair[0]} were made before those of"
                    f" {pair[1]}: what else changed meanwhile is part of the ratio.",
                    (kind.label,),
                    mend="Launch the arms in turns.",
                )


def _two_tools(logs: Logs) -> Iterable[Notice]:
    """Say of tools that measure something by the same name that they are not mixed."""
    alike: dict[tuple[str, str], dict[str, list[str]]] = {}
    for kind in logs.kinds:
        benchmark = BENCHMARKS[kind.tool]
        family = kind.tool.partition("_")[0] if benchmark.read else "paribus"
        of_layer = alike.setdefault((benchmark.layer, benchmark.metrics[0].unit), {})
        of_layer.setdefault(family, []).append(kind.label)
    for (layer, unit), families in alike.items():
        if len(families) > 1:
            labels = [label for several in families.values() for label in several]
            told = ", ".join(labels[:6]) + (", ..." if len(labels) > 6 else "")
            yield Notice(
                "tools not mixed",
                "note",
                f"{told} give figures of the {layer} layer in {unit}, each in its own way: every"
                " ratio is of one program with itself, and no figure of one is to be held against"
                " a figure of another.",
                tuple(labels),
            )


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

    A copied log is no second launch: it would make an interval narrow, or arms alike.
    """
    found = {}
    for kind in logs.kinds:
        alike: dict[tuple[Sample, ...], list[str]] = {}
        for log in kind.logs:
            samples = log.reading.samples
            figures = {value for sample in samples for value in sample.values}
            if len(figures) >= LEAST_FIGURES and log.reading.version != PUBLISHED:
                alike.setdefault(samples, []).append(f"{log.arm}/{log.name}")
        copied = [names for names in alike.values() if len(names) > 1]
        if copied:
            more = f", and {len(copied) - 1} other groups are alike" * (len(copied) > 1)
            found[kind.label] = (
                f"{_files(copied[0])} have the same figures{more}: a log that was copied is no"
                " second launch; give the log of each launch once"
            )
    return found


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
        for label, why in of_name.items():
            yield Notice(name, "warning", f"{label}: {why}.", (label,))
