"""How the figures of a study, or of numbers from elsewhere, came about: the paragraph of a paper.

Every sentence is made of the plan and of what was judged by it, so that it is true of this study.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence

from paribus.core import (
    Finding,
    Judgement,
    Study,
    Word,
    count,
    format_seconds,
    lenses,
    percent,
    total,
)
from paribus.words.lists import listed

SEVERAL = 8
"""Cases from which on the share of wrong words is controlled, as stats/family.py does."""

MOST_NAMED = 12

ENDPOINTS = {
    "median": "the median",
    "p99": "the 99th percentile, counted from the good end,",
    "p25": "the 25th percentile, counted from the good end,",
    "min": "the best",
}


def methods(judgement: Judgement) -> str:
    """Return the paragraph, of a study or of numbers from elsewhere; plain text."""
    if judgement.study.settings.seed is None:
        parts = [_elsewhere(judgement), *_estimates(judgement)]
    else:
        parts = [
            _launched(judgement.study),
            *(lens.methods(judgement, rows) for lens, rows in lenses(judgement)),
            *_cut(judgement),
            *_measured(judgement),
        ]
        parts += [_ratio(judgement), _signs(judgement), _stopped(judgement)]
    parts += [_margins(judgement.headlines), *_families(judgement), *_platforms(judgement)]
    parts.append(_made(judgement))
    return " ".join(part for part in parts if part)


# --- studies ---------------------------------------------------------------------------------


def _launched(study: Study) -> str:
    """Return what a block is, and how its order was drawn."""
    settings = study.settings
    names = [arm.name for arm in study.arms]
    arms = listed(names, last=" and ")
    seed = f"(seed {settings.seed})"
    several = len(study.benchmarks) > 1
    if settings.unit == "session":
        benchmarks = "each benchmark" if several else "the benchmark"
        return (
            f"Sessions of {arms} were randomised in blocks: each block held one session of each"
            f" arm, {_order(names)} {seed}. A session was a warm-up launch of {benchmarks} and then"
            f" {count(settings.launches, 'launch')} of it; the median of these launches counts"
            " once."
        )
    if settings.layout == "duet":
        placed = (
            "started at the same time, each on its own share of the cores, which was assigned at"
            f" random {seed}"
        )
    else:
        placed = f"one directly after the other, {_order(names)} {seed}"
    said = (
        f"Launches of {arms} were randomised in blocks: each block held one launch of each arm,"
        f" {placed}."
    )
    if settings.shuffled:
        said = (
            f"The first {count(settings.shuffled, 'launch')} of each of {arms} were started in one"
            f" order, drawn at random {seed}."
        )
        if settings.blocks > settings.shuffled:
            said += f" Blocks followed: each held one launch of each arm, {placed}."
    if several:
        said += " In each round every benchmark that was still open had one block, in random order."
    if settings.every_s:
        said += f" A round started every {format_seconds(settings.every_s)}."
    return f"{said} The first block of a benchmark was a warm-up and does not count."


def _order(names: Sequence[str]) -> str:
    if len(names) > 2:
        return "in the order of the rows of random Latin squares"
    return "in an order drawn at random for each block"


def _cut(judgement: Judgement) -> list[str]:
    """Return how many launches failed, and what became of them, where some did."""
    found, said = total(judgement.tallies), []
    if found.failures:
        said.append(f"{found.text}.")
    if any(tally.failed or tally.invalid for tally in judgement.tallies):
        said.append(
            "The value of a session is that of its launches that succeeded."
            if judgement.study.settings.unit == "session"
            else "A block with a failed launch was rerun once, and gives no ratio if one failed"
            " again; reliability is judged by first attempts."
        )
    if any(tally.timed_out for tally in judgement.tallies):
        said.append("A launch that its time limit cut off ranks as slower than all others.")
    return said


def _measured(judgement: Judgement) -> list[str]:
    """Return what a launch contributes, and what a benchmark with several cases does."""
    of: dict[str, list[str]] = {}
    for selection in judgement.study.benchmarks:
        of.setdefault(selection.endpoints[0], []).append(selection.label)
    each = [
        f"{ENDPOINTS[endpoint]} of its samples{_of(labels, of)}" for endpoint, labels in of.items()
    ]
    said = [f"A launch contributes {listed(each, last=' and ')} at each case."] if each else []
    if any(_cases(judgement, head) > 1 for head in judgement.headlines):
        said.append(
            "The headline of a benchmark is the mean of the log ratios of its cases; its values are"
            " geometric means over them."
        )
    return said


def _ratio(judgement: Judgement) -> str:
    settings = judgement.study.settings
    against = f"The ratio of an arm to the reference ({judgement.reference})"
    if settings.monitor:
        return (
            f"{against} was estimated from the log ratios within blocks, with a confidence sequence"
            f" (betting) that is valid at {percent(settings.confidence)} at any time."
        )
    if settings.shuffled:
        return (
            f"{against} is the weighted median of the differences between the arms' logarithms in"
            " the shuffled start and of the averages of two log ratios within later blocks, with"
            " the exact interval of the two counts together (Mann-Whitney and signed rank)."
        )
    return (
        f"{against} is the Hodges-Lehmann estimate from the log ratios within blocks, with the"
        " interval of the signed-rank distribution."
    )


def _signs(judgement: Judgement) -> str:
    """Return which headlines of a study of few launches rest on signs: stats/few.py."""
    signs = {one.benchmark for one in judgement.headlines if one.verdict.figures.get("uneven")}
    if not signs:
        return ""
    return (
        f"The arms' launches of {listed(sorted(signs), last=' and ')} scattered differently: there"
        " the ratio is the median within blocks, with the exact interval of the sign test."
    )


def _stopped(judgement: Judgement) -> str:
    """Return when the evidence was weighed, at which level, and what ended a benchmark."""
    settings, looks = judgement.study.settings, judgement.looks
    if settings.monitor:
        return "The study has no planned end, so every verdict is one so far."
    if not looks:
        return ""
    when = listed([str(look) for look in looks], last=" and ")
    once = len(looks) == 1
    at = f"once, after {count(looks[0], 'block')}" if once else f"after {when} blocks"
    ends = f"its headline{' and 90 % of its cases' * (settings.decides == 'cases')}"
    said = f"The evidence was evaluated {at}, as fixed before the first launch;"
    said += f" a benchmark ended when {ends} had a verdict, or after {looks[-1]} blocks at most"
    if settings.budget_s is not None:
        said += f", or when {format_seconds(settings.budget_s)} of launches were used up"
    over = [] if once else ["all looks"]
    over += ["all comparisons with the reference"] if len(judgement.study.arms) > 2 else []
    level = f"Each interval of a headline has a level of {percent(judgement.level)}"
    if settings.design == "few":
        level = (
            "Each end of an interval has a level of its look and of its side, 1.5 % away from a"
            " ratio of 1 and 3.5 % towards it over all looks"
        )
    sure = percent(1 - settings.confidence)
    promise = f", so that {listed(over, last=' and ')} together err in at most {sure} of studies"
    unfinished = "" if judgement.complete else " The study is unfinished."
    return f"{said}. {level}{promise if over else ''}.{unfinished}"


# --- numbers from elsewhere ------------------------------------------------------------------


def _elsewhere(judgement: Judgement) -> str:
    return (
        "The launches were made elsewhere: their number, and their order, were not planned here."
        f" {judgement.design}"
    ).strip()


def _estimates(judgement: Judgement) -> list[str]:
    """Return the estimates in use: of pairs, of launches that nothing pairs, or none."""
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
    each = [f"{way}{_of(labels, ways)}" for way, labels in ways.items()]
    said = f"Ratio of an arm to the reference ({judgement.reference})"
    return [f"{said}: {listed(each, last='; ')}."] if each else []


# --- both ------------------------------------------------------------------------------------


def _margins(heads: Sequence[Finding]) -> str:
    of: dict[str, list[str]] = {}
    for head in heads:
        of.setdefault(percent(head.margin), []).append(head.benchmark)
    if not of:
        return ""
    each = [f"{margin}{_of(labels, of)}" for margin, labels in of.items()]
    return (
        f"The margin of practical equivalence is {listed(each, last=' and ')}, symmetric in the"
        " logarithm: an arm is faster or slower if its whole interval lies beyond the margin,"
        " equivalent if all of it lies within, and otherwise undecided."
    )


def _families(judgement: Judgement) -> list[str]:
    """Return how the verdicts of cases are corrected for their number."""
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
        if settings.monitor:
            way = "intervals widened for their number (Bonferroni)"
        elif size >= SEVERAL:
            way = f"Benjamini and Hochberg at {error}"
        else:
            way = f"Holm at {error}" if unpaired else f"a closed test at {error}"
        ways.setdefault(way, []).append(head.benchmark)
    each = [f"{way}{_of(labels, ways)}" for way, labels in ways.items()]
    said = "Verdicts on single cases are corrected for multiple comparisons"
    return [f"{said}: {listed(each, last='; ')}."] if each else []


def _platforms(judgement: Judgement) -> list[str]:
    """Return what was seen to be equal, and what was not."""
    if not (judgement.differences or judgement.equal_facts):
        return []
    said = f"{count(judgement.equal_facts, 'fact')} of the platforms were equal in all arms"
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
    return [f"{'; '.join([said, *differ])}. The factor is {judgement.study.factor}."]


def _made(judgement: Judgement) -> str:
    day = ""
    if judgement.started is not None:
        day = f" on {time.strftime('%Y-%m-%d', time.gmtime(judgement.started))}"
    by = judgement.versions.get("paribus") or judgement.versions.get("reported by", "")
    if judgement.study.settings.seed is None:
        return f"Analysed with Paribus {by}."
    return f"Measured{day} with Paribus {by}; plan {judgement.plan_sha256[:12]} (SHA-256)."


def _cases(judgement: Judgement, head: Finding, *, every: bool = False) -> int:
    """Return the cases of a headline; `every` one of the benchmark, which make one family."""
    return sum(
        f.arm == head.arm and (every or f.metric.name == head.metric.name)
        for f in judgement.of_benchmark(head.benchmark, judgement.cases)
    )


def _of(labels: Sequence[str], ways: Mapping[str, object]) -> str:
    """Return " (of which benchmarks)"; nothing where all have one way."""
    unique = list(dict.fromkeys(labels))
    return f" ({listed(unique, MOST_NAMED)})" if len(ways) > 1 else ""
