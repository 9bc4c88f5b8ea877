"""What logs themselves say of the comparison: what was left out, and what speaks against it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from paribus.benchmarks import BENCHMARKS
from paribus.core import Notice, NoticeName, Unreadable
from paribus.logs.comparable import Apart, iterations
from paribus.logs.logs import Unread, natural
from paribus.logs.pairing import Kind, Logs, made

NOT_PRINTED = "not printed"
"""The version in readings of a tool that prints none."""

MOST_KEPT = 1000
"""Entries of a list in the figures of a notice."""


def notices_of(logs: Logs) -> Iterable[Notice]:
    """Yield what a reader must know of the logs, but for what withholds a verdict."""
    if logs.unread:
        refused = any(one.tool or one.lost for one in logs.unread)
        yield Notice(
            NoticeName.NOT_READ,
            "warning" if refused else "note",
            figures=unread_figures(logs.unread),
        )
    if logs.apart:
        yield Notice(NoticeName.NOT_COMPARABLE, "warning", figures=apart_figures(logs.apart))
    if logs.partial:
        yield Notice(NoticeName.TRUNCATED_LOGS, "warning", figures=_kept(logs.partial))
    if logs.cases:
        yield Notice(NoticeName.CASES_LEFT_OUT, "warning", figures=_kept(logs.cases))
    yield from _versions(logs)
    yield from _iterations(logs)
    yield from _guards(logs)
    yield from _two_tools(logs)


def unread_figures(unread: Sequence[Unread]) -> dict[str, Any]:
    """Return what was not read, files of one reason together."""
    by_reason: dict[tuple[Unreadable, str, bool], list[str]] = {}
    for one in unread:
        by_reason.setdefault((one.code, one.detail, bool(one.tool)), []).append(_place(one))
    reasons = [
        {
            "code": code,
            "detail": detail,
            "of_tool": of_tool,
            "files": len(names),
            "names": names[:MOST_KEPT],
        }
        for (code, detail, of_tool), names in by_reason.items()
    ]
    return {"files": len(unread), "reasons": reasons[:MOST_KEPT], "number": len(reasons)}


def apart_figures(apart: Sequence[Apart]) -> dict[str, Any]:
    """Return which logs have no match in another arm."""
    return _kept(
        [{"label": one.label, "counts": one.counts, "example": one.example} for one in apart]
    )


def _kept(several: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"all": list(several[:MOST_KEPT]), "number": len(several)}


def _place(one: Unread) -> str:
    return f"{one.arm}/{one.name}".encode("utf-8", "backslashreplace").decode()


def _by_arm(kind: Kind) -> dict[str, list[Any]]:
    """Return the logs of a kind by their arm."""
    found: dict[str, list[Any]] = {}
    for log in kind.logs:
        found.setdefault(log.arm, []).append(log)
    return found


def _versions(logs: Logs) -> Iterable[Notice]:
    alike: dict[tuple[tuple[str, tuple[str, ...]], ...], list[str]] = {}
    for kind in logs.kinds:
        versions = {
            arm: tuple(sorted({log.reading.version for log in mine}))
            for arm, mine in _by_arm(kind).items()
        }
        if len(set().union(*versions.values())) > 1:
            alike.setdefault(tuple(versions.items()), []).append(kind.label)
    for several, labels in alike.items():
        known = all(NOT_PRINTED not in versions for _, versions in several)
        figures = {"versions": dict(several), "known": known}
        yield Notice(NoticeName.VERSIONS_DIFFER, "warning", tuple(labels), figures)


def _iterations(logs: Logs) -> Iterable[Notice]:
    """Say of calculations that took other numbers of iterations what is compared of them."""
    for kind in logs.kinds:
        numbers = {
            arm: sorted({str(iterations(log)) for log in mine}, key=natural)
            for arm, mine in _by_arm(kind).items()
        }
        if len(set().union(*numbers.values())) > 1:
            figures = {"iterations": numbers}
            yield Notice(NoticeName.ITERATIONS_DIFFER, "note", (kind.label,), figures)


def _guards(logs: Logs) -> Iterable[Notice]:
    """Yield what logs say against their own figures, such as a CPU time far below the wall time."""
    for kind in logs.kinds:
        alike: dict[str, list[str]] = {}
        for log in kind.logs:
            for guard in log.reading.guards:
                alike.setdefault(guard, []).append(f"{log.arm}/{log.name}")
        if alike:
            guards = [{"guard": guard, "logs": names} for guard, names in alike.items()]
            arms = list(dict.fromkeys(log.arm for log in kind.logs if log.reading.guards))
            figures = {"arms": arms, "guards": guards[:MOST_KEPT], "number": len(guards)}
            yield Notice(NoticeName.CONTAMINATION, "warning", (kind.label,), figures)


def not_in_turns(kinds: Sequence[Kind]) -> Iterable[Notice]:
    """Yield what is known of when the arms of kinds were launched that do not alternate in time."""
    alike: dict[tuple[str | None, str, str], list[str]] = {}
    for kind in kinds:
        says, times = made(kind.logs)
        reference, *others = kind.counts
        for arm in others:
            first = second = ""
            if says:
                one, other = sorted((reference, arm), key=lambda name: min(times[name]))
                if max(times[one]) < min(times[other]):
                    first, second = one, other
            labels = alike.setdefault((says, first, second), [])
            labels += [kind.label] if kind.label not in labels else []
    for (dated_by, first, second), labels in alike.items():
        figures = {"dated_by": dated_by}
        if first:
            figures |= {"first": first, "second": second}
        name = NoticeName.ONE_ARM_AFTER_THE_OTHER if first else NoticeName.NOT_IN_TURNS
        yield Notice(name, "warning", tuple(labels), figures)


def _two_tools(logs: Logs) -> Iterable[Notice]:
    """Say of tools that measure something by the same name that they are not mixed."""
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
