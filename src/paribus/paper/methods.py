"""How the figures of a study, or of numbers from elsewhere, came about: the paragraph of a paper.

Every sentence is made from the plan and the judgement, so that it is true of this study. A part of
it may read: "The margin of practical equivalence is 3 % (latency) and 5 % (triad), symmetric in the
logarithm: ...", with the benchmarks in brackets where they differ.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence

from paribus.core import Finding, Judgement, Word, count, grouped, lenses, percent, total
from paribus.designs import design_of
from paribus.words.designs.standard import SEVERAL, Words
from paribus.words.lists import listed

MOST_NAMED = 12
"""Benchmarks that are listed by name; of the others, the number."""

ENDPOINTS = {
    "median": "the median",
    "p99": "the 99th percentile, counted from the good end,",
    "p25": "the 25th percentile, counted from the good end,",
    "min": "the best",
}


def methods(judgement: Judgement) -> str:
    """Return the paragraph, of a study of a design or of numbers from elsewhere; plain text."""
    design = design_of(judgement.study)
    if judgement.study.settings.seed is None:
        parts = [_elsewhere(judgement), *_estimates(judgement)]
    else:
        parts = [
            design.launched(),
            *(lens.methods(judgement, rows) for lens, rows in lenses(judgement)),
            *_cut(judgement, design),
            *_measured(judgement),
            design.estimated(judgement),
            design.stopped(judgement),
        ]
    parts += [_margins(judgement.headlines), *_families(judgement, design)]
    parts += _platforms(judgement)
    parts.append(_made(judgement))
    return " ".join(part for part in parts if part)


# --- studies ---------------------------------------------------------------------------------


def _cut(judgement: Judgement, design: Words) -> list[str]:
    """Return sentences on launches that failed, and what became of them, where some did."""
    found, sentences = total(judgement.tallies), []
    if found.failures:
        sentences.append(f"{found.text}.")
    if any(tally.failed or tally.invalid for tally in judgement.tallies):
        sentences.append(design.failed)
    if any(tally.timed_out for tally in judgement.tallies):
        sentences.append("A launch that its time limit cut off ranks as slower than all others.")
    return sentences


def _measured(judgement: Judgement) -> list[str]:
    """Return sentences on what a launch contributes, and a benchmark with several cases."""
    by_endpoint: dict[str, list[str]] = {}
    for selection in judgement.study.benchmarks:
        by_endpoint.setdefault(selection.endpoints[0], []).append(selection.label)
    each = [
        f"{ENDPOINTS[endpoint]} of its samples{_named(labels, by_endpoint)}"
        for endpoint, labels in by_endpoint.items()
    ]
    sentences = [f"A launch contributes {listed(each, last=' and ')} at each case."] if each else []
    if any(_cases(judgement, head) > 1 for head in judgement.headlines):
        sentences.append(
            "The headline of a benchmark is the mean of the log ratios of its cases; its values are"
            " geometric means over them."
        )
    return sentences


# --- numbers from elsewhere ------------------------------------------------------------------


def _elsewhere(judgement: Judgement) -> str:
    """Return how the launches of numbers from elsewhere were made, as far as it is known."""
    return (
        "The launches were made elsewhere: their number, and their order, were not planned here."
        f" {judgement.design}"
    ).strip()


def _estimates(judgement: Judgement) -> list[str]:
    """Return the sentence on estimates: of pairs, or of launches that nothing pairs."""
    found = [f for f in judgement.headlines if f.comparison is not None]
    ways: dict[str, list[str]] = {}
    for f in found:
        assert f.comparison is not None
        known = f.comparison.low > 0 or math.isfinite(f.comparison.high)
        level = percent(f.comparison.level)
        if f.comparison.blocks and known:
            way = (
                "Hodges-Lehmann estimate from the log ratios of pairs, signed-rank interval at"
                f" {level}"
            )
        elif known:
            way = (
                "Hodges-Lehmann shift of the logarithms of independent launches, rank-sum interval"
                f" at {level}"
            )
        else:
            way = "quotient of the medians, no interval"
        ways.setdefault(way, []).append(f.benchmark)
    each = [f"{way}{_named(labels, ways)}" for way, labels in ways.items()]
    start = f"Ratio of an arm to the reference ({judgement.reference})"
    return [f"{start}: {listed(each, last='; ')}."] if each else []


# --- both ------------------------------------------------------------------------------------


def _margins(heads: Sequence[Finding]) -> str:
    """Return the sentence on margins of equivalence, "" without headlines."""
    by_margin = grouped((percent(head.margin), head.benchmark) for head in heads)
    if not by_margin:
        return ""
    each = [f"{margin}{_named(labels, by_margin)}" for margin, labels in by_margin.items()]
    return (
        f"The margin of practical equivalence is {listed(each, last=' and ')}, symmetric in the"
        " logarithm: an arm is faster or slower if its whole interval lies beyond the margin,"
        " equivalent if all of it lies within, and otherwise undecided."
    )


def _families(judgement: Judgement, design: Words) -> list[str]:
    """Return the sentence on how the verdicts of cases are corrected for their number."""
    settings = judgement.study.settings
    ways: dict[str, list[str]] = {}
    error = percent((1 - settings.confidence) / max(1, len(judgement.study.arms) - 1))
    for head in judgement.headlines:
        size = _cases(judgement, head, every=True)
        if size < 2 or head.comparison is None or head.verdict.word is Word.WITHHELD:
            continue
        unpaired = settings.seed is None and not head.comparison.blocks
        if settings.seed is None:  # of logs that are judged both ways, each has half of the error
            error = percent(1 - head.comparison.level)
        way = design.corrected(size, error)
        if unpaired and size < SEVERAL:
            way = f"Holm at {error}"
        ways.setdefault(way, []).append(head.benchmark)
    each = [f"{way}{_named(labels, ways)}" for way, labels in ways.items()]
    start = "Verdicts on single cases are corrected for multiple comparisons"
    return [f"{start}: {listed(each, last='; ')}."] if each else []


def _platforms(judgement: Judgement) -> list[str]:
    """Return the sentence on which facts of the platforms are equal, and which are not."""
    if not (judgement.differences or judgement.equal_facts):
        return []
    equal = f"{count(judgement.equal_facts, 'fact')} of the platforms were equal in all arms"
    kinds = {d.kind for d in judgement.differences}
    differ = [
        text
        for kind, text in (
            (
                "unexplained",
                "others differ, and the factor does not explain it",
            ),
            ("accepted", "some that differ were accepted with a reason"),
        )
        if kind in kinds
    ]
    return [f"{'; '.join([equal, *differ])}. The factor is {judgement.study.factor}."]


def _made(judgement: Judgement) -> str:
    """Return the sentence on when and by which version it was measured, or analysed."""
    day = ""
    if judgement.started is not None:
        day = f" on {time.strftime('%Y-%m-%d', time.gmtime(judgement.started))}"
    by = judgement.versions.get("paribus") or judgement.versions.get("reported by", "")
    if judgement.study.settings.seed is None:
        return f"Analysed with Paribus {by}."
    return f"Measured{day} with Paribus {by}; plan {judgement.plan_sha256[:12]} (SHA-256)."


def _cases(judgement: Judgement, head: Finding, *, every: bool = False) -> int:
    """Return the number of cases of a headline; with `every` that of all its benchmark's metrics.

    All of these make one family, whose verdicts are corrected together.
    """
    return sum(
        f.arm == head.arm and (every or f.metric.name == head.metric.name)
        for f in judgement.of_benchmark(head.benchmark, judgement.cases)
    )


def _named(labels: Sequence[str], ways: Mapping[str, object]) -> str:
    """Return the benchmarks of one of the `ways` as " (latency, triad)", "" for the only way."""
    unique = list(dict.fromkeys(labels))
    return f" ({listed(unique, MOST_NAMED)})" if len(ways) > 1 else ""
