"""Sentences about a judgement that its reports share: pure text, nothing escaped."""

from __future__ import annotations

from collections.abc import Sequence

from paribus.benchmarks import BENCHMARKS
from paribus.core import (
    Finding,
    Judgement,
    Tally,
    Word,
    count,
    format_ratio,
    format_seconds,
    grouped,
    percent,
    slowness,
    total,
)
from paribus.designs import design_of
from paribus.report import lookup
from paribus.report.wording import (
    DECIDED,
    WARM_UP,
    clean,
    direction,
    estimate_text,
    has_interval,
    provisional,
    value_text,
)
from paribus.stats.summary import LEAST_SAMPLES
from paribus.words import lists
from paribus.words.lists import listed
from paribus.words.values import way_of

MOST_RATIOS = 30
ELSEWHERE = "Per-case verdicts are corrected for their number, at the error of the headline."
BETWEEN_RANKS = frozenset({"point to point", "collective", "compute", "application"})
"""Layers of tools whose ranks send messages."""


def launches_text(judgement: Judgement) -> str:
    """Return how much was measured: "200 launches in 3 min, 2 failed"; "elsewhere" for a table."""
    if not lookup.measured(judgement):
        return "elsewhere"
    found = total(judgement.tallies)
    took = f" in {format_seconds(judgement.wall_s)}" if judgement.wall_s else ""
    warm_up = sum(t.warm_up for t in judgement.tallies)
    cold = sum(t.warm_up_failed for t in judgement.tallies)
    if cold and not found.launches:
        return f"{count(warm_up, 'warm-up launch')}{took}, {cold} failed; none counted"
    blocks = len({p.block for p in judgement.points if p.block != WARM_UP})
    number = count(found.launches, "launch") + design_of(judgement.study).launched_in(blocks)
    also = f"; {count(cold, 'warm-up launch')} failed" if cold else ""
    return f"{number}{took}, {found.failures} failed{found.of_first}{also}"


def is_kernel(benchmark: str) -> bool:
    """Return whether a benchmark is one of our own kernels, and no program of others."""
    known = BENCHMARKS.get(benchmark)
    return known is not None and not known.program and benchmark != "command"


def transport_text(judgement: Judgement) -> str:
    """Return the transport between ranks in each arm, once for benchmarks with the same.

    "" if no benchmark sends messages between ranks; "not known" for numbers from elsewhere.
    """
    if not lookup.measured(judgement):
        tools = (s.benchmark for s in judgement.study.benchmarks)
        sends = any(BENCHMARKS[t].layer in BETWEEN_RANKS for t in tools if t in BENCHMARKS)
        return "not known" if sends else ""
    each: dict[str, str] = {}
    for label in dict.fromkeys(one.benchmark for one in judgement.carriers):
        arms = [one for one in judgement.carriers if one.benchmark == label]
        each[label] = "; ".join(f"{one.arm}: {way_of(one)}" for one in arms)
        if len({way_of(one) for one in arms}) == 1:
            each[label] = f"{way_of(arms[0])}, in all arms"
    alike = grouped((text, label) for label, text in each.items())
    if len(alike) == 1:
        return clean(next(iter(alike)))
    return clean(". ".join(f"{listed(labels, 5)}: {text}" for text, labels in alike.items()))


def rests_on(judgement: Judgement, finding: Finding) -> str:
    """Return "14 of 16 blocks" if a finding does not rest on all blocks so far, else "".

    Blocks with failed launches give no ratio, nor do incomplete ones of a table; blocks after the
    last look do not count yet.
    """
    attempted = lookup.attempted_blocks(judgement, finding.benchmark)
    rests = finding.comparison.blocks if finding.comparison else 0  # 0: not paired in blocks
    every = design_of(judgement.study).counted(attempted)
    return f"{rests} of {every}" if 0 < rests < attempted else ""


def ratio_note(judgement: Judgement) -> str:
    """Return sentences on what a ratio divides, and on the confidence of its interval."""
    design = design_of(judgement.study)
    promise = design.promise(several_looks=lookup.several_looks(judgement))
    if any(has_interval(f.comparison) for f in judgement.others):
        promise += (
            " Figures that do not decide are corrected for the number of all figures of their"
            " benchmark."
        )
    fewer = any(rests_on(judgement, head) for head in judgement.headlines)
    ratio = "Times as slow: arm / reference, of a rate reference / arm"
    if not lookup.measured(judgement):
        # Of logs and tables an interval may share the error with one of other pairs.
        levels = sorted({f.comparison.level for f in judgement.headlines if f.comparison})
        if any(level > judgement.study.settings.confidence for level in levels):
            promise += f" Each is at {' or '.join(map(percent, levels))}."
        left = " Incomplete blocks are left out of the ratio." * fewer
        return f"{ratio}. {promise}{left}"
    left = f" Blocks with a failed launch, and those {design.left_out}, are left out of the ratio."
    return (
        f"{ratio}, {design.compared()}, so it can differ from the quotient of the"
        f" two medians shown. {promise}{left * fewer}"
    )


def cases_note(judgement: Judgement, cases: Sequence[Finding]) -> str:
    """Return sentences on how verdicts on cases are corrected; "" if none was to be decided."""
    if len(cases) < 2 or not {f.verdict.word for f in cases} & {*DECIDED, Word.UNDECIDED}:
        return ""
    return design_of(judgement.study).of_cases() if lookup.measured(judgement) else ELSEWHERE


def levels_text(cases: Sequence[Finding]) -> str:
    """Return the confidence of the intervals of cases: one level, or the range of several."""
    levels = sorted({f.comparison.level for f in cases if f.comparison})
    if not levels:
        return ""
    if len(levels) == 1:
        return f"each at {percent(levels[0])}"
    span = f"{percent(levels[0])} to {percent(levels[-1])}"
    return f"each at its own level, {span}, adjusted for selection (FCR)"


def endpoints_note(found: Sequence[Finding]) -> str:
    """Return sentences on the endpoints that do not decide."""
    shown = {f.metric.endpoint for f in found}
    meanings = {
        "median": "median: the typical sample",
        "p99": f"p99: the slow tail, over the cases with {LEAST_SAMPLES['p99']} samples or more",
        "p25": "p25: interference-free",
        "min": "min: the best sample",
    }
    legend = "; ".join(text for endpoint, text in meanings.items() if endpoint in shown)
    return f"{legend}. Each is judged separately and does not change a headline."


def nothing_disturbed(judgement: Judgement) -> str:
    """Return "No warnings: ..." with numbers of equal facts and failures; "" if there is any.

    Also "" for unexplained differences, and without a usable launch.
    """
    warned = any(one.level == "warning" for one in judgement.notices)
    unexplained = any(one.kind == "unexplained" for one in judgement.differences)
    if warned or unexplained or not judgement.headlines or lookup.nothing_came(judgement):
        return ""
    unknown = sum(one.kind == "unknown" for one in judgement.differences)
    known = [f"{count(judgement.equal_facts, 'fact')} equal"] if judgement.equal_facts else []
    known += [f"{unknown} unknown"] if unknown else []
    if (found := total(judgement.tallies)).launches:
        known.append(f"{count(found.failures, 'launch')} failed")
    return f"No warnings{': ' if known else ''}{listed(known, 5)}"


def equal_text(judgement: Judgement) -> str:
    """Return the sentence on how many facts are equal in all arms."""
    if not judgement.facts:
        return "No facts were recorded, so other differences are unknown."
    differ = "other " if judgement.differences else ""
    if not (judgement.differences or judgement.equal_facts):
        return "No fact is known of both arms yet, so differences are unknown."
    none = "" if judgement.differences else "No fact differs: "
    return f"{none}{count(judgement.equal_facts, f'{differ}fact')} equal in all arms."


def versus(finding: Finding, reference: str) -> str:
    """Return the two absolute values: "bridged 24.1 us, host 20.3 us"."""
    return (
        f"{finding.arm} {value_text(finding.arm_value, finding.metric)}, "
        f"{reference} {value_text(finding.reference_value, finding.metric)}"
    )


def headline_sentence(judgement: Judgement, finding: Finding) -> str:
    """Return one sentence that cannot be read the wrong way round.

    It names both arms, both absolute values with unit, the ratio with its interval, and which
    direction is better.
    """
    word = finding.verdict.word
    arm, reference = lists.arm(finding.arm), lists.arm(judgement.reference)
    now = " so far" if provisional(finding.verdict) else ""
    claims = {
        Word.FASTER: f"{arm} is faster than {reference}{now}",
        Word.SLOWER: f"{arm} is slower than {reference}{now}",
        Word.EQUIVALENT: f"{arm} and {reference} are equivalent "
        f"within {percent(finding.margin)}{now}",
        Word.UNDECIDED: f"undecided whether {arm} differs from {reference} "
        f"by more than {percent(finding.margin)}",
        Word.RELIABILITY: f"{arm} and {reference} fail at different rates",
        Word.WITHHELD: f"no verdict for {arm} against {reference}",
        Word.NO_DATA: f"no usable launches to compare {arm} with {reference}",
    }
    claim = f"{finding.benchmark}: {claims[word]}"
    if finding.comparison is None:
        return clean(f"{claim}.")
    how_many = len(lookup.case_findings(judgement, finding))
    over = f" (geometric mean over {count(how_many, 'case')})" if how_many > 1 else ""
    name = "" if finding.metric.name == finding.benchmark else f"{finding.metric.name} "
    of_arm = value_text(finding.arm_value, finding.metric)
    against = value_text(finding.reference_value, finding.metric)
    size = estimate_text(finding) + " times as slow" * finding.verdict.size_known
    return clean(
        f"{claim}: {name}{of_arm} against {against}{over}; {size}; {direction(finding.metric)}."
    )


def cases_sentence(judgement: Judgement, headline: Finding) -> str:
    """Return the numbers of cases by verdict, and the least and greatest of their ratios."""
    cases = lookup.case_findings(judgement, headline)
    words = [f.verdict.word for f in cases]
    counts = ", ".join(f"{words.count(w)} {w.value}" for w in Word if w in words)
    found = sorted(
        ((times.ratio, str(f.case)) for f in cases if (times := slowness(f))),
        key=lambda x: x[0],
    )
    if len(found) < 2:
        return clean(counts)
    (low, at_low), (high, at_high) = found[0], found[-1]
    ends = f"{format_ratio(low)} ({at_low}) to {format_ratio(high)} ({at_high})"
    return clean(f"{counts}; times as slow from {ends}")


def ratios_by_case(judgement: Judgement, headline: Finding) -> str:
    """Return the ratio of each case, if there are no blocks and so no verdicts; else ""."""
    known = [
        (times, f.case) for f in lookup.case_findings(judgement, headline) if (times := slowness(f))
    ]
    if any(comparison.blocks for comparison, _ in known):
        return ""
    ratios = [f"{case}: {format_ratio(comparison.ratio)}" for comparison, case in known]
    more = f"; {len(ratios) - MOST_RATIOS} more in the HTML report"
    return clean("; ".join(ratios[:MOST_RATIOS]) + more * (len(ratios) > MOST_RATIOS))


def failure_text(tally: Tally) -> str:
    """Return the failures of a tally: "2 failed, 1 timed out of 60 launches", or "none of 60"."""
    kinds = (
        (tally.failed, "failed"),
        (tally.timed_out, "timed out"),
        (tally.invalid, "invalid output"),
        (tally.faults, "hit by a fault of a machine"),
    )
    several = ", ".join(f"{n} {word}" for n, word in kinds if n)
    said = [f"{several} of {count(tally.launches, 'launch')}{total([tally]).of_first}"]
    said = said if tally.failures else []
    if tally.warm_up_failed:
        said.append(f"{tally.warm_up_failed} of {count(tally.warm_up, 'warm-up launch')} failed")
    return "; ".join(said) or f"none of {count(tally.launches, 'launch')}"
