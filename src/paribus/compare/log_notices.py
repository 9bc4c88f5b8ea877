"""What logs themselves say of the comparison: what was left out, and what speaks against it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from paribus.benchmarks import BENCHMARKS
from paribus.compare.comparable import iterations
from paribus.compare.logs import Unread, natural
from paribus.compare.pairing import Logs, made
from paribus.judgement import Notice
from paribus.reasons import Unreadable
from paribus.units import count
from paribus.words import logs as words
from paribus.words.lists import listed

MOST_TOLD = 10

NOT_PRINTED = "not printed"
"""The version in readings of a tool that prints none."""

MOST_NAMED = 6
"""Logs or benchmarks that a sentence names."""


def notices_of(logs: Logs) -> Iterable[Notice]:
    """Yield what a reader must know of the logs, but for what withholds a verdict."""
    if logs.unread:
        refused = any(one.tool or one.lost for one in logs.unread)
        yield Notice(
            "not read",
            "warning" if refused else "note",
            f"{told_unread(logs.unread, 2 * MOST_TOLD)}.",
            figures={_place(one): one.why for one in logs.unread[:1000]},
        )
    yield from _sentences(
        "not comparable",
        "Skipped, no matching log in the other arm: ",
        [a.text for a in logs.apart],
    )
    yield from _sentences(
        "logs cut short", "Skipped, truncated (cases of other logs are missing): ", logs.partial
    )
    yield from _sentences("cases left out", "Cases skipped: ", logs.cases)
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


def told_unread(unread: Sequence[Unread], most: int) -> str:
    """Return what was not read, alike reasons together."""
    by_reason: dict[tuple[Unreadable, str, bool], list[str]] = {}
    for one in unread:
        key = one.code, one.detail, bool(one.tool)
        by_reason.setdefault(key, []).append(f"{one.arm}/{one.name}")
    told = [
        words.unread_files(code, detail, names, of_tool=of_tool)
        for (code, detail, of_tool), names in by_reason.items()
    ]
    more = f"; and {len(told) - most} more reasons" if len(told) > most else ""
    return f"{count(len(unread), 'file')} not read: {'; '.join(told[:most])}{more}"


def _place(one: Unread) -> str:
    return f"{one.arm}/{one.name}".encode("utf-8", "backslashreplace").decode()


def _versions(logs: Logs) -> Iterable[Notice]:
    alike: dict[tuple[str, bool], list[str]] = {}
    for kind in logs.kinds:
        by_arm: dict[str, set[str]] = {}
        for log in kind.logs:
            by_arm.setdefault(log.arm, set()).add(log.reading.version)
        if len(set().union(*by_arm.values())) > 1:
            told = "; ".join(f"{arm} {', '.join(sorted(v))}" for arm, v in by_arm.items())
            known = NOT_PRINTED not in set().union(*by_arm.values())
            alike.setdefault((told, known), []).append(kind.label)
    for (told, known), labels in alike.items():
        yield Notice(
            "versions differ",
            "warning",
            f"{listed(labels, MOST_NAMED)} {'is' if len(labels) == 1 else 'are'} not"
            f"{'' if known else ' known to be'} of one"
            f" version: {told}. Part of the ratio may be the program's.",
            tuple(labels),
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
            alike: dict[str, list[str]] = {}
            for log in kind.logs:
                for guard in log.reading.guards if log.arm == arm else ():
                    alike.setdefault(guard, []).append(log.name)
            if alike:
                said = [f"{listed(names, MOST_NAMED)}: {guard}" for guard, names in alike.items()]
                every = [f"{name}: {guard}" for guard, names in alike.items() for name in names]
                more = f"; and {len(said) - 3} more" * (len(said) > 3)
                yield Notice(
                    "contamination",
                    "warning",
                    f"{kind.label}, {arm}: {'; '.join(said[:3])}{more}.",
                    (kind.label,),
                    figures={"said": every[:1000]},
                )


def _one_after_the_other(logs: Logs) -> Iterable[Notice]:
    """Say of logs that are paired by name which arms were measured one after the other."""
    reference, *others = logs.arms
    alike: dict[str, list[str]] = {}
    for kind in logs.kinds:
        if kind.pairing != "name":
            continue
        says, times = made(kind.logs)
        if says is None:
            continue
        for arm in others:
            pair = sorted((reference, arm), key=lambda name: min(times[name]))
            if len(times[arm]) > 1 and max(times[pair[0]]) < min(times[pair[1]]):
                by = words.DATED_BY[says]
                told = f"by {by} all logs of {pair[0]} were made before those of {pair[1]}"
                alike.setdefault(told, []).append(kind.label)
    for told, labels in alike.items():
        yield Notice(
            "one arm after the other",
            "warning",
            f"{listed(labels, MOST_NAMED)}: {told}: what else changed meanwhile is part of the"
            " ratio.",
            tuple(labels),
            fix="Launch the arms in turns.",
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
            yield Notice(
                "tools not mixed",
                "note",
                f"{listed(labels, MOST_NAMED)} give figures of the {layer} layer in {unit}, each"
                " in its own way: every ratio is of one program with itself, and no figure of one"
                " is to be held against a figure of another.",
                tuple(labels),
            )
