"""Figures of which nothing says whether lower or higher is better: the user is asked.

Until then each is named, and left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from paribus.border import printable
from paribus.core import Metric, Notice, NoticeName, UserError
from paribus.logs import notices as words
from paribus.logs.comparable import metrics_of
from paribus.logs.imported import Answers
from paribus.logs.logs import Log
from paribus.logs.pairing import Kind, Logs


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
            f"nothing to compare: {words.undirected(asked[0].benchmarks, asked[0].figures)}",
            place=" and ".join(logs.arms),
            fix=words.direct(asked[0].figures),
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
