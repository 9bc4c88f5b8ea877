"""Settings of logs as keys and as facts of their arms; and what facts differ between the arms.

A key distinguishes benchmarks. A fact is compared with the other arms', as in a study. Readers
sort them (readers/settings.py), and the user has the last word.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from paribus.audit.audit import Audit, audit_study
from paribus.audit.classes import classify
from paribus.benchmarks import BENCHMARKS
from paribus.border import printable
from paribus.core import Case, Facts, Reading, Sample, Scalar, Study, UserError, grouped
from paribus.logs.labels import WORDS, counted, in_all, only_numbered, said_of
from paribus.logs.log import Log, in_groups
from paribus.probes.discreet import discreet_value
from paribus.readers import kernel
from paribus.readers.known import file_of
from paribus.readers.reader import WORK
from paribus.readers.settings import LINES, PRINTED

RANKS = "ranks"
SCRIPT = f"{PRINTED}script."
"""Facts under this prefix were said above an output by its script."""

COLUMN = "column."
"""Facts under this prefix stand in a column of a table."""

PLACED = ("rank", "thread", "node", "gpu", "device", "task", "process", "cpu", "core")
"""What settings are called of which two whole machines have other numbers."""

MOST_NAMED = 12


@dataclass(frozen=True, slots=True)
class Moves:
    """What the user regards otherwise than the readers: names of settings."""

    part_of_arm: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.part_of_arm or self.keys)


AS_READ = Moves()
_ACCEPTED = "part of the arm, by --part-of-arm"


def part_of(name: str) -> str:
    """Return the key of the fact that a setting becomes with --part-of-arm."""
    return f"{PRINTED}arm.{canonical(name)}"


def canonical(name: str) -> str:
    """Return a setting's name as users may write it: "Num_Tasks" is "num tasks"."""
    return " ".join(name.replace("_", " ").replace("-", " ").lower().split())


def regarded(logs: Sequence[Log], moves: Moves) -> list[Log]:
    """Return logs with every setting that they show as parameter or fact of their reading.

    Raises UserError for a name of `moves` that none of them has.
    """
    found = _with_printed(logs)
    for option, names, move in (
        ("--part-of-arm", moves.part_of_arm, _as_fact),
        ("--key", moves.keys, _as_key),
    ):
        for name in names:
            moved = [move(log.reading, canonical(name)) for log in found]
            if found and all(reading is None for reading in moved):
                _refuse(option, name, found, facts=move is _as_key)
            found = [
                log if reading is None else replace(log, reading=reading)
                for log, reading in zip(found, moved, strict=True)
            ]
    return _by_case(found, frozenset(map(canonical, moves.part_of_arm)))


def _with_printed(logs: Sequence[Log]) -> list[Log]:
    """Return logs with what they print beside their readings.

    A key that some of them do not print because they are of another version is a fact where the
    others all have one value of it.
    """
    counts = Counter(log.reading.benchmark for log in logs)
    values = grouped(
        ((log.reading.benchmark, name), value)
        for log in logs
        for name, value in log.printed.keys.items()
    )
    silent = {
        (tool, name)
        for (tool, name), several in values.items()
        if len(several) < counts[tool] and len(set(several)) == 1
    }
    found = []
    for log, spoken in zip(logs, _spoken(logs), strict=True):
        reading, printed = log.reading, log.printed
        tool = reading.benchmark
        own = {k: v for k, v in printed.keys.items() if (tool, k) not in silent}
        others = {
            f"{PRINTED}{file_of(tool)}.{k}": v for k, v in printed.keys.items() if k not in own
        }
        parameters = _discreet({**own, **printed.options, **reading.parameters})
        facts = spoken | _discreet({**printed.facts, **others, **reading.facts})
        found.append(replace(log, reading=replace(reading, parameters=parameters, facts=facts)))
    return found


def _discreet(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings without secrets; of labels, which `_spoken` gives, they are gone already."""
    return {k: discreet_value(k, v) if isinstance(v, str) else v for k, v in settings.items()}


def _spoken(logs: Sequence[Log]) -> list[dict[str, str]]:
    """Return what the script of each log said of it, as facts: the command, the number of nodes.

    What distinguishes outputs of one kind in one file is no fact, but a part of what was measured;
    the words that all of them have in common are one.
    """

    def of_all(mine: Sequence[Log]) -> list[dict[str, str]]:
        said = {
            f"{SCRIPT}{LINES if form == WORDS else form}": said_of(form, words)
            for form in mine[0].labels
            if (words := in_all([log.labels.get(form, "") for log in mine]))
        }
        return [said] * len(mine)

    return in_groups(logs, lambda log: (log.test, log.file), of_all)


def _as_fact(reading: Reading, name: str) -> Reading | None:
    """Return a reading with a parameter, or what all its cases share, as fact; None without."""
    if name == RANKS and reading.ranks is not None:
        facts = {**reading.facts, part_of(name): reading.ranks}
        return replace(reading, ranks=None, facts=facts)
    mine = {key: value for key, value in reading.parameters.items() if canonical(key) == name}
    if mine:
        parameters = {k: v for k, v in reading.parameters.items() if k not in mine}
        facts = {**reading.facts, part_of(name): next(iter(mine.values()))}
        return replace(reading, parameters=parameters, facts=facts)
    values = {v for sample in reading.samples for k, v in sample.case.items if canonical(k) == name}
    if len(values) != 1:
        spoken = any(
            one.startswith(SCRIPT) and canonical(_name(one)) == name for one in reading.facts
        )
        return reading if spoken else None
    samples = tuple(_without(sample, name) for sample in reading.samples)
    return replace(reading, samples=samples, facts={**reading.facts, part_of(name): values.pop()})


def _without(sample: Sample, name: str) -> Sample:
    items = tuple(item for item in sample.case.items if canonical(item[0]) != name)
    return Sample(sample.metric, Case(items), sample.values, sample.batch)


def _as_key(reading: Reading, name: str) -> Reading | None:
    """Return a reading with a fact as parameter; None without."""
    key = next((one for one in _facts(reading) if canonical(_name(one)) == name), None)
    return None if key is None else _moved(reading, key)


def _moved(reading: Reading, key: str) -> Reading:
    """Return a reading with the fact `key` as parameter."""
    facts = dict(reading.facts)
    value = facts.pop(key)
    text = value if isinstance(value, str | int | float | bool) else json.dumps(value)
    return replace(reading, parameters={**reading.parameters, _name(key): text}, facts=facts)


def _refuse(option: str, name: str, logs: Iterable[Log], *, facts: bool) -> None:
    names = dict.fromkeys(
        canonical(one)
        for log in logs
        for one in (
            map(_name, _facts(log.reading))
            if facts
            else (*log.reading.parameters, *([RANKS] if log.reading.ranks else []))
        )
    )
    some = ", ".join(printable(one) for one in list(names)[:MOST_NAMED]) or "none"
    raise UserError(
        "names no setting that these logs show",
        place=f"{option} {printable(name)}",
        fix=f"give one of: {some}",
    )


def _facts(reading: Reading) -> list[str]:
    return [key for key in reading.facts if not key.startswith(WORK)]


def _name(key: str) -> str:
    """Return what a fact is called: without the prefix and the tool."""
    return key.split(".", 2)[2] if key.startswith(PRINTED) else key.partition(".")[2] or key


# --- facts with several values within an arm ----------------------------------------------------


def _by_case(logs: Sequence[Log], of_arm: Set[str]) -> list[Log]:
    """Return logs with those facts as parameters that distinguish cases.

    Such a fact has several values within an arm and the same ones in every arm: eight devices in
    one log of each arm are eight cases, and no launches of one. What a script said is none if the
    user holds it to be `of_arm`, or if it numbers the launches, as ports do. What only counts them
    is none either.
    """

    def distinguished(mine: list[Log]) -> list[Log]:
        for key in _cases(mine, of_arm):
            mine = [
                replace(log, reading=_moved(log.reading, key)) if key in log.reading.facts else log
                for log in mine
            ]
        return mine

    return in_groups(logs, lambda log: log.test, distinguished)


def _cases(logs: Sequence[Log], of_arm: Set[str]) -> list[str]:
    """Return the facts by which logs of one kind are of several cases; no two that say the same."""
    if file_of(logs[0].reading.benchmark) == kernel.TOOL:
        return []  # a study of ours has its cases; what its launches met is the matter of the audit
    keys = {
        key
        for log in logs
        for key in _facts(log.reading)
        if _name(key) != LINES and classify(key).kind != "volatile"
    }
    seen: set[tuple[int, ...]] = set()
    found = []
    for key in sorted(keys):
        values = [log.reading.facts.get(key) for log in logs]
        if all(value == values[0] for value in values):
            continue
        texts = [json.dumps(value, sort_keys=True) for value in values]
        if key.startswith(SCRIPT) and (canonical(_name(key)) in of_arm or only_numbered(texts)):
            continue
        if len({counted(key, text).said for text in texts}) == 1:
            continue
        by_arm: dict[str, set[str]] = {}
        for log, text in zip(logs, texts, strict=True):
            by_arm.setdefault(log.arm, set()).add(text)
        several = list(by_arm.values())
        if len(several) < 2 or len(several[0]) < 2 or any(one != several[0] for one in several):
            continue
        numbers = {text: at for at, text in enumerate(dict.fromkeys(texts))}
        partition = tuple(numbers[text] for text in texts)
        if partition not in seen:
            seen.add(partition)
            found.append(key)
    return found


# --- the audit ----------------------------------------------------------------------------------


def audited(
    kinds: Mapping[str, Sequence[Log]], study: Study, moves: Moves
) -> tuple[Audit, dict[str, Facts]]:
    """Return what differs between the arms by the facts in their logs, and these by arm.

    `kinds` are the logs that are compared, by their label. A fact that every launch has otherwise
    shows nothing of an arm.
    """
    arms = [arm.name for arm in study.arms]
    launches = {label: _of_arms(logs, arms) for label, logs in kinds.items()}
    layers = {
        label: BENCHMARKS[tool].layer if (tool := logs[0].reading.benchmark) in BENCHMARKS else ""
        for label, logs in kinds.items()
    }
    return _audited(launches, layers, study, map(part_of, moves.part_of_arm))


def audited_columns(
    facts: Mapping[str, Mapping[str, Mapping[str, str]]], study: Study, moves: Moves
) -> tuple[Audit, dict[str, Facts]]:
    """Return what differs between the arms by columns of a table, and these facts by arm.

    `facts` are those of each arm of each benchmark, by the name of the column.
    """
    reported = {
        label: {
            arm.name: {f"{COLUMN}{k}": v for k, v in of.get(arm.name, {}).items()}
            for arm in study.arms
        }
        for label, of in facts.items()
    }
    accepted = (f"{COLUMN}{name}" for name in moves.part_of_arm)
    return _audited(reported, dict.fromkeys(reported, ""), study, accepted)


def _audited(
    reported: Mapping[str, Mapping[str, Facts]],
    layers: Mapping[str, str],
    study: Study,
    accepted: Iterable[str],
) -> tuple[Audit, dict[str, Facts]]:
    """Return what differs between arms by facts: those of outputs by benchmark, others by arm."""
    launches = {
        label: {arm: [facts] for arm, facts in of.items()} for label, of in reported.items()
    }
    said = audit_study(study, layers, {}, launches, dict.fromkeys(accepted, _ACCEPTED))
    every: dict[str, Facts] = {
        arm.name: {key: value for of in reported.values() for key, value in of[arm.name].items()}
        for arm in study.arms
    }
    return said, every if any(every.values()) else {}


def _of_arms(logs: Sequence[Log], arms: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the facts of each arm: the value of all its launches, or the list of them."""
    mine = {arm: [log.reading.facts for log in logs if log.arm == arm] for arm in arms}
    keys = {key for log in logs for key in _facts(log.reading)}
    found: dict[str, dict[str, Any]] = {arm: {} for arm in arms}
    for key in sorted(keys):
        several = {
            arm: _distinct(facts[key] for facts in mine[arm] if key in facts) for arm in arms
        }
        if any(1 < len(values) == len(mine[arm]) for arm, values in several.items()):
            if _name(key) != LINES:
                continue
            several = {arm: [_common(values)] for arm, values in several.items()}
        for arm, values in several.items():
            if values:
                found[arm][key] = values[0] if len(values) == 1 else values
    return found if _of_one_form(found) else {arm: {} for arm in arms}


def _common(several: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines that all launches of an arm print, each of them beside others of its own."""
    return [line for line in (several or [()])[0] if all(line in one for one in several)]


def _of_one_form(facts: Mapping[str, Mapping[str, Any]]) -> bool:
    """Return whether outputs name their settings alike: text and JSON of one tool do not."""
    names = [set(one) for one in facts.values()]
    return bool(set.intersection(*names)) or not any(names)


def _distinct(values: Iterable[Any]) -> list[Any]:
    """Return the different ones of several values; mostly they are all the same."""
    every = list(values)
    if all(value == every[0] for value in every):
        return every[:1]
    return list({json.dumps(value, sort_keys=True): value for value in every}.values())


def differing(settings: Sequence[Mapping[str, Scalar | None]]) -> list[str]:
    """Return the names of those settings that several kinds of logs do not share."""
    names = dict.fromkeys(name for one in settings for name in one)
    return [name for name in names if len({repr(one.get(name)) for one in settings}) > 1]


def is_place(name: str) -> bool:
    """Return whether a setting is a number of ranks, threads, nodes or GPUs.

    That is what two whole machines differ in: --part-of-arm makes it a fact of the arms.
    """
    return any(word in name.lower() for word in PLACED)
