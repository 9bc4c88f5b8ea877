"""The launches as a result file of the Phoronix Test Suite, which OpenBenchmarking.org shows.

The layout is that of its composite.xml (10.8): a system for each arm, a result for each figure of a
benchmark, with every launch in <RawString>.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from xml.etree import ElementTree

from paribus import __version__
from paribus.core import Case, Facts, Judgement, Metric
from paribus.report.wording import clean

Key = tuple[str, str, Case]
"""Benchmark, name of the metric, case."""

CLIENT = "Phoronix Test Suite v10.8.4"
HARDWARE = (  # what a part is called there, and the fact that it is here
    ("Processor", "cpu.model"),
    ("Memory", "memory.total_kib"),
    ("Board", "machine.product"),
)
SOFTWARE = (("OS", "os.distribution"), ("Kernel", "os.release"), ("MPI", "mpi.version"))


def document(judgement: Judgement) -> str:
    """Return the XML; a judgement without figures of launches gives systems only."""
    root = ElementTree.Element("PhoronixTestSuite")
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(judgement.started or 0))
    _texts(
        ElementTree.SubElement(root, "Generated"),
        Title=judgement.study.question,
        LastModified=when,
        TestClient=CLIENT,
        Description=f"{judgement.sentence} Measured by Paribus {__version__}.",
    )
    for arm in judgement.study.arms:
        facts = judgement.facts.get(arm.name, {})
        _texts(
            ElementTree.SubElement(root, "System"),
            Identifier=arm.name,
            Hardware=_listed(facts, HARDWARE),
            Software=_listed(facts, SOFTWARE),
            User="",
            TimeStamp=when,
            TestClientVersion="10.8.4",
            Notes="",
        )
    for (key, metric), by_arm in _figures(judgement).items():
        _result(root, key, metric, by_arm)
    ElementTree.indent(root)
    return '<?xml version="1.0"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _figures(
    judgement: Judgement,
) -> Mapping[tuple[Key, Metric], Mapping[str, Sequence[float]]]:
    """Return the figures of all launches by benchmark, metric and case, then by arm."""
    found: dict[tuple[Key, Metric], dict[str, list[float]]] = {}
    for one in judgement.figures:
        for (name, case), value in one.values.items():
            key = one.benchmark, name, case
            found.setdefault((key, one.metrics[name]), {}).setdefault(one.arm, []).append(value)
    return found


def _result(
    root: ElementTree.Element, key: Key, metric: Metric, by_arm: Mapping[str, Sequence[float]]
) -> None:
    """Add the result of a metric of a benchmark at a case, with the launches of each arm."""
    benchmark, name, case = key
    result = ElementTree.SubElement(root, "Result")
    identifier = "".join(c if c.isalnum() else "-" for c in benchmark.lower())
    _texts(
        result,
        Identifier=f"local/paribus-{identifier}-1.0.0",
        Title=benchmark,
        AppVersion=__version__,
        Arguments="",
        Description=" - ".join(part for part in (name, str(case)) if part),
        Scale=metric.unit,
        Proportion="HIB" if metric.better == "higher" else "LIB",
        DisplayFormat="BAR_GRAPH",
    )
    data = ElementTree.SubElement(result, "Data")
    for arm, values in by_arm.items():
        _texts(
            ElementTree.SubElement(data, "Entry"),
            Identifier=arm,
            Value=repr(math.fsum(values) / len(values)),
            RawString=":".join(map(repr, values)),
            JSON="",
        )


def _listed(facts: Facts, shown: Sequence[tuple[str, str]]) -> str:
    """Return the facts that are `shown` and known, such as "OS: Debian 12, Kernel: 6.1.0"."""
    named = ((title, facts.get(key)) for title, key in shown)
    return ", ".join(f"{t}: {v}" for t, v in named if isinstance(v, str | int))


def _texts(parent: ElementTree.Element, **texts: str) -> None:
    """Add an element for each name, with its text."""
    for name, text in texts.items():
        ElementTree.SubElement(parent, name).text = clean(text)
