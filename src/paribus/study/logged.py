"""The judgement of logs: that of their table, and what the logs themselves say of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from paribus.judgement import Judgement, Notice
from paribus.study.imported import Answers, judge_table
from paribus.study.logs import Log, Logs, source_of
from paribus.tables.table import build
from paribus.units import count

WORK = "work."
"""Facts of a log under this prefix say what was computed: two arms must agree in them."""

SAME_WORK = 1e-6
"""Relative difference up to which figures of the work count as the same: rounding in a sum."""

MOST_TOLD = 10


def judge_logs(logs: Logs, answers: Answers, *, directory: str = "") -> Judgement:
    """Return the judgement of `logs`, in the same form as that of a study.

    Raises UserError as `judge_table` does.
    """
    judgement = judge_table(build([source_of(logs)]), answers, directory=directory)
    return replace(
        judgement,
        design=f"{_read_from(logs)} {judgement.design}",
        notices=tuple(
            sorted([*_notices(logs), *judgement.notices], key=lambda n: n.level != "warning")
        ),
    )


def _read_from(logs: Logs) -> str:
    tools = sorted({_tool(log) for log in logs.logs})
    files = {log.path for log in logs.logs}
    return f"{count(len(files), 'log')} of {', '.join(tools)}; paired: {logs.why}."


def _tool(log: Log) -> str:
    return f"{log.reading.benchmark} {log.reading.version}".strip()


def _notices(logs: Logs) -> Iterable[Notice]:
    yield from _unread(logs)
    if logs.pairing == "order":
        yield Notice(
            "paired by order",
            "warning",
            "Nothing says which logs were made close in time: they were paired in the order of"
            " their names, so drift of the machine is not controlled.",
            mend="Give logs that keep the times of their files, or a table with a column block.",
        )
    for sentence in logs.apart[:MOST_TOLD]:
        yield Notice("not comparable", "warning", f"Left out: {sentence}.")
    yield from _versions(logs)
    yield from _work(logs)
    yield from _guards(logs)


def _unread(logs: Logs) -> Iterable[Notice]:
    if not logs.unread:
        return
    told = [f"{path.name} {why}" for path, why in list(logs.unread.items())[:MOST_TOLD]]
    more = len(logs.unread) - len(told)
    yield Notice(
        "not read",
        "warning",
        f"{count(len(logs.unread), 'file')} not read: {'; '.join(told)}"
        + (f"; and {more} more." if more else "."),
        figures={str(path): why for path, why in logs.unread.items()},
    )


def _versions(logs: Logs) -> Iterable[Notice]:
    versions: dict[str, dict[str, set[str]]] = {}
    for log in logs.logs:
        of_tool = versions.setdefault(log.reading.benchmark, {})
        of_tool.setdefault(log.arm, set()).add(log.reading.version)
    for benchmark, by_arm in versions.items():
        if len(set().union(*by_arm.values())) > 1:
            told = "; ".join(f"{arm} {', '.join(sorted(v))}" for arm, v in by_arm.items())
            yield Notice(
                "versions differ",
                "warning",
                f"{benchmark} is not of one version: {told}.",
                (benchmark,),
            )


def _work(logs: Logs) -> Iterable[Notice]:
    """Say where the arms did not compute the same."""
    seen: dict[tuple[str, str], dict[str, set[object]]] = {}
    for log in logs.logs:
        for key, value in log.reading.facts.items():
            if key.startswith(WORK):
                by_arm = seen.setdefault((log.reading.benchmark, key), {})
                by_arm.setdefault(log.arm, set()).add(value)
    for (benchmark, key), by_arm in seen.items():
        values = [value for several in by_arm.values() for value in several]
        if not _alike(values):
            told = "; ".join(f"{arm} {_some(several)}" for arm, several in by_arm.items())
            yield Notice(
                "work differs",
                "warning",
                f"{benchmark} did not do the same work: {key.removeprefix(WORK)} is {told}.",
                (benchmark,),
            )


def _alike(values: Sequence[object]) -> bool:
    numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    if len(numbers) == len(values):
        return all(math.isclose(numbers[0], v, rel_tol=SAME_WORK) for v in numbers)
    return len(set(map(str, values))) == 1


def _some(values: Iterable[object]) -> str:
    shown = sorted(map(str, values))
    return ", ".join(shown[:3]) + (", ..." if len(shown) > 3 else "")


def _guards(logs: Logs) -> Iterable[Notice]:
    said: dict[tuple[str, str], list[str]] = {}
    for log in logs.logs:
        for guard in log.reading.guards:
            said.setdefault((log.reading.benchmark, log.arm), []).append(f"{log.name}: {guard}")
    for (benchmark, arm), several in said.items():
        told = "; ".join(several[:3]) + (f"; and {len(several) - 3} more" * (len(several) > 3))
        yield Notice(
            "contamination",
            "warning",
            f"{benchmark}, {arm}: {told}.",
            (benchmark,),
            figures={"logs": len(several)},
        )
