"""Settings of logs, as keys or as facts of the arms; and the audit of these facts.

A key distinguishes benchmarks: logs of another number of threads are another benchmark. A fact,
such as the version of a library, is compared between the arms as in a study. readers/settings.py
says which setting is which; the user has the last word by --key and --part-of-arm (`Moves`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from paribus.audit.classes import classify
from paribus.border import printable
from paribus.core import Case, Reading, Sample, Scalar, UserError, grouped
from paribus.logs.labels import WORDS, counted, in_all, only_numbered, without_name
from paribus.logs.log import Log, in_groups
from paribus.probes.discreet import discreet_value
from paribus.readers import kernel
from paribus.readers.known import file_of
from paribus.readers.reader import WORK
from paribus.readers.settings import LINES, PRINTED

RANKS = "ranks"
SCRIPT = f"{PRINTED}script."
"""Prefix of facts that a script printed above an output."""

PLACED = ("rank", "thread", "node", "gpu", "device", "task", "process", "cpu", "core", "token")
"""Words in the names of settings that two whole machines, or models, have in other numbers."""

MOST_NAMED = 12
"""Settings that the message of an error names."""


@dataclass(frozen=True, slots=True)
class Moves:
    """The names of settings that are facts of the arms, or keys, because the user says so."""

    part_of_arm: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.part_of_arm or self.keys)


AS_READ = Moves()
"""Every setting is what the readers say."""


def part_of(name: str) -> str:
    """Return the key of the fact that a setting becomes with --part-of-arm."""
    return f"{PRINTED}arm.{canonical(name)}"


def canonical(name: str) -> str:
    """Return a setting's name in one spelling: "Num_Tasks" and "num-tasks" are "num tasks"."""
    return " ".join(name.replace("_", " ").replace("-", " ").lower().split())


def regarded(logs: Sequence[Log], moves: Moves) -> list[Log]:
    """Return logs with every setting that they show as parameter (key) or fact of their reading.

    Facts that distinguish cases become parameters. Raises UserError for a name of `moves` that no
    log has.
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
    """Return logs with the settings that they print beside their readings among these.

    A key that some logs of a tool do not print is a fact if the others all have the same value: a
    version of the tool may not print it.
    """
    counts = Counter(log.reading.benchmark for log in logs)
    values = grouped(
        ((log.reading.benchmark, name), value)
        for log in logs
        for name, value in log.printed.keys.items()
    )
    not_in_all = {
        (tool, name)
        for (tool, name), several in values.items()
        if len(several) < counts[tool] and len(set(several)) == 1
    }
    found = []
    for log, of_script in zip(logs, _facts_of_scripts(logs), strict=True):
        reading, printed = log.reading, log.printed
        tool = reading.benchmark
        keys = {k: v for k, v in printed.keys.items() if (tool, k) not in not_in_all}
        others = {
            f"{PRINTED}{file_of(tool)}.{k}": v for k, v in printed.keys.items() if k not in keys
        }
        parameters = _discreet({**keys, **printed.options, **reading.parameters})
        facts = of_script | _discreet({**printed.facts, **others, **reading.facts})
        found.append(replace(log, reading=replace(reading, parameters=parameters, facts=facts)))
    return found


def _discreet(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings without secrets; labels have none (labels.py)."""
    return {k: discreet_value(k, v) if isinstance(v, str) else v for k, v in settings.items()}


def _facts_of_scripts(logs: Sequence[Log]) -> list[dict[str, str]]:
    """Return what the script of each log printed above it as facts: a command, a number of nodes.

    Of several outputs of one kind in one file these are the words that all labels have in common:
    what distinguishes the outputs is a part of what was measured.
    """

    def in_common(mine: Sequence[Log]) -> list[dict[str, str]]:
        facts = {
            f"{SCRIPT}{LINES if form == WORDS else form}": without_name(form, words)
            for form in mine[0].labels
            if (words := in_all([log.labels.get(form, "") for log in mine]))
        }
        return [facts] * len(mine)

    return in_groups(logs, lambda log: (log.test, log.file), in_common)


def _as_fact(reading: Reading, name: str) -> Reading | None:
    """Return a reading with the setting of a `canonical` name as a fact, None if it has none.

    The setting is the number of ranks, a parameter, or a parameter of cases with one value in all.
    What a script printed is a fact already.
    """
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
        of_script = any(
            key.startswith(SCRIPT) and canonical(_name(key)) == name for key in reading.facts
        )
        return reading if of_script else None
    samples = tuple(_without(sample, name) for sample in reading.samples)
    return replace(reading, samples=samples, facts={**reading.facts, part_of(name): values.pop()})


def _without(sample: Sample, name: str) -> Sample:
    """Return a sample at a case without the parameter of that name."""
    items = tuple(item for item in sample.case.items if canonical(item[0]) != name)
    return Sample(sample.metric, Case(items), sample.values, sample.batch)


def _as_key(reading: Reading, name: str) -> Reading | None:
    """Return a reading with the fact of a `canonical` name as parameter, None if it has none."""
    key = next((one for one in _facts(reading) if canonical(_name(one)) == name), None)
    return None if key is None else _moved(reading, key)


def _moved(reading: Reading, key: str) -> Reading:
    """Return a reading with the fact `key` as parameter."""
    facts = dict(reading.facts)
    value = facts.pop(key)
    text = value if isinstance(value, str | int | float | bool) else json.dumps(value)
    return replace(reading, parameters={**reading.parameters, _name(key): text}, facts=facts)


def _refuse(option: str, name: str, logs: Iterable[Log], *, facts: bool) -> None:
    """Raise UserError for a name that no log has; it names some of the facts, or parameters."""
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
    """Return the keys of a reading's facts, without those on the work that was done."""
    return [key for key in reading.facts if not key.startswith(WORK)]


def _name(key: str) -> str:
    """Return a fact's key without its prefix and the name of the tool."""
    return key.split(".", 2)[2] if key.startswith(PRINTED) else key.partition(".")[2] or key


# --- facts with several values within an arm ----------------------------------------------------


def _by_case(logs: Sequence[Log], of_arm: Set[str]) -> list[Log]:
    """Return logs with those facts as parameters that distinguish cases.

    Such a fact has several values within an arm and the same ones in every arm: eight devices in
    one log of each arm are eight cases, and no launches of one.
    """

    def distinguished(mine: list[Log]) -> list[Log]:
        for key in _case_facts(mine, of_arm):
            mine = [
                replace(log, reading=_moved(log.reading, key)) if key in log.reading.facts else log
                for log in mine
            ]
        return mine

    return in_groups(logs, lambda log: log.test, distinguished)


def _case_facts(logs: Sequence[Log], of_arm: Set[str]) -> list[str]:
    """Return the keys of facts by which logs of one test are of several cases.

    Of facts that divide the logs alike the first is enough. None are volatile facts, those that
    only count or number launches, as ports do, and labels of a script that are `of_arm` because
    the user says so.
    """
    if file_of(logs[0].reading.benchmark) == kernel.TOOL:
        return []  # our kernels print their cases; the audit compares the facts of their launches
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
        name = "" if key.endswith("s") else f"{_name(key)} "  # "iterations" count no launches
        # That some do not print it is no other value, as in `_with_printed`.
        telling = {text for text in texts if text != "null" or key.startswith(SCRIPT)}
        if len({counted(key, (name + text).replace('"', "")).words for text in telling}) == 1:
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


def facts_of_arms(logs: Sequence[Log], arms: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the facts of each arm: the value in all its launches, or the list of several values.

    A fact with another value in every launch of an arm is left out. No fact is returned if the
    outputs of the arms name their settings differently.
    """
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
    """Return the lines that are in all lists, one of each launch."""
    return [line for line in (several or [()])[0] if all(line in one for one in several)]


def _of_one_form(facts: Mapping[str, Mapping[str, Any]]) -> bool:
    """Return whether arms have names of facts in common: text and JSON of one tool have none."""
    names = [set(one) for one in facts.values()]
    return bool(set.intersection(*names)) or not any(names)


def _distinct(values: Iterable[Any]) -> list[Any]:
    """Return the different ones of several values, each once."""
    every = list(values)
    if all(value == every[0] for value in every):  # mostly they are
        return every[:1]
    return list({json.dumps(value, sort_keys=True): value for value in every}.values())


def differing(settings: Sequence[Mapping[str, Scalar | None]]) -> list[str]:
    """Return the names of the settings in which several kinds of logs differ."""
    names = dict.fromkeys(name for one in settings for name in one)
    return [name for name in names if len({repr(one.get(name)) for one in settings}) > 1]


def is_place(name: str) -> bool:
    """Return whether a setting is a number of ranks, threads, nodes, GPUs, tokens or the like.

    Two whole machines, or models, may differ in it: --part-of-arm makes it a fact of the arms.
    """
    return any(word in name.lower() for word in PLACED)
