"""Sentences and cells that the terminal, the HTML page and the exports share: pure text.

Every function returns plain text; whoever prints it escapes it for the medium.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from paribus.judgement import Comparison, Finding, Judgement, Point, Spread, Tally, Word
from paribus.model import Metric, State
from paribus.units import format_bytes, format_value

WARM_UP = 0
"""The block that is recorded, never counted."""

SYMBOLS = {
    Word.FASTER: "▲",
    Word.SLOWER: "▼",
    Word.EQUIVALENT: "=",
    Word.UNDECIDED: "?",
    Word.RELIABILITY: "!",
    Word.WITHHELD: "×",
    Word.NO_DATA: "–",
}
"""One sign per verdict, so that colour is never the only carrier of meaning."""

MOST_BLOCKS = 1000
"""Blocks above which more of them is no advice (a study refuses them, stats/looks.py)."""

LONGEST = 2000
"""Characters of one text from outside that a report shows; the logs keep the rest."""


def clean(text: str) -> str:
    """Return `text` on one line, without control or direction-changing characters.

    Host names, error messages and study texts come from outside; a terminal obeys escape
    sequences, so each unprintable character is shown as \\xNN instead.
    """
    shown = text if len(text) <= LONGEST else f"{text[:LONGEST]} [cut]"
    flat = shown.replace("\r\n", " ").replace("\n", " ").replace("\t", " ")
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in flat
    )


def direction(metric: Metric) -> str:
    """Return "lower is better" or "higher is better"."""
    return f"{metric.better} is better"


def ratio_text(ratio: float, like: float | None = None) -> str:
    """Return a ratio with the digits that a 1 % difference needs.

    `like` gives the number of decimals, so that both ends of an interval match their middle.

    >>> [ratio_text(r) for r in (1.0, 1.1866, 12.34, 480.2, 0.0312, float("inf"))]
    ['1.000', '1.187', '12.3', '480', '0.0312', 'inf']
    >>> ratio_text(9.987, like=10.02)
    '10.0'
    """
    if not math.isfinite(ratio):
        return "inf"
    size = ratio if like is None else like
    if size <= 0:
        return f"{ratio:.3f}"
    digits = 3 if 0.1 <= size < 10 else max(0, 2 - math.floor(math.log10(size)))
    return f"{ratio:,.{digits}f}"


def has_interval(comparison: Comparison | None) -> bool:
    """Return whether the blocks sufficed for an interval (not 0 to infinity)."""
    return comparison is not None and comparison.low > 0 and math.isfinite(comparison.high)


def interval_text(comparison: Comparison) -> str:
    """Return "[low, high]", or "[no interval yet]" while the blocks are too few."""
    if not has_interval(comparison):
        return "[no interval yet]"
    low = ratio_text(comparison.low, like=comparison.ratio)
    return f"[{low}, {ratio_text(comparison.high, like=comparison.ratio)}]"


def percent(share: float) -> str:
    """Return a share in percent without needless digits.

    >>> [percent(s) for s in (0.02, 0.005, 0.125, 0.03739)]
    ['2 %', '0.5 %', '12.5 %', '3.74 %']
    """
    return f"{share * 100:.3g} %"


def equal_text(judgement: Judgement) -> str:
    """Return how many facts were compared and found equal."""
    if not judgement.facts:
        return "No facts were recorded."
    differ = "other " if judgement.differences else ""
    none = "" if judgement.differences else "No fact differs: "
    return f"{none}{count(judgement.equal_facts, f'{differ}fact')} equal in all arms."


def quantity(value: float, unit: str) -> str:
    """Return a value with its unit, such as "5.87 us"; a figure without unit stands alone."""
    return f"{format_value(value)} {unit}".rstrip()


def value_text(spread: Spread | None, metric: Metric) -> str:
    """Return the median launch in the metric's unit, or "none"."""
    return "none" if spread is None else quantity(spread.median, metric.unit)


def spread_text(spread: Spread) -> str:
    """Return the quartiles of the launch medians, without unit: "5.81 to 5.97"."""
    return f"{format_value(spread.low)} to {format_value(spread.high)}"


def band(margin: float) -> tuple[float, float]:
    """Return the ratios between which two arms count as equal for practice.

    The margin is symmetric in the logarithm (docs/statistics.md): 1 / (1 + margin) to 1 + margin.
    """
    return 1 / (1 + margin), 1 + margin


def supported(judgement: Judgement, finding: Finding) -> bool:
    """Return whether the family supports the verdict of this row, so that it may be coloured.

    A case among many is only highlighted when the headline of its benchmark is decided; the
    figure of merit decides, so other metrics of the benchmark follow its headline.
    """
    decided = {Word.FASTER, Word.SLOWER, Word.EQUIVALENT, Word.RELIABILITY}
    if finding.verdict.word not in decided:
        return False
    if finding.case is None:
        return True
    return any(
        head.verdict.word in decided
        for head in judgement.of_benchmark(finding.benchmark, judgement.headlines)
        if head.arm == finding.arm
    )


def count(number: int, noun: str) -> str:
    """Return a number with its noun: "1 launch", "2 launches".

    >>> count(1, "launch"), count(3, "case"), count(0, "block")
    ('1 launch', '3 cases', '0 blocks')
    """
    plural = f"{noun}es" if noun.endswith(("ch", "s")) else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"


def listing(items: Sequence[str], most: int = 5) -> str:
    """Return the items joined by commas, the tail as "and n more"."""
    if len(items) <= most:
        return ", ".join(items)
    return f"{', '.join(items[:most])} and {len(items) - most} more"


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
    reference, word = judgement.reference, finding.verdict.word
    claims = {
        Word.FASTER: f"{finding.arm} is faster than {reference}",
        Word.SLOWER: f"{finding.arm} is slower than {reference}",
        Word.EQUIVALENT: f"{finding.arm} and {reference} are equivalent "
        f"within {percent(finding.margin)}",
        Word.UNDECIDED: f"undecided whether {finding.arm} differs from {reference} "
        f"by more than {percent(finding.margin)}",
        Word.RELIABILITY: f"{finding.arm} and {reference} do not fail equally often",
        Word.WITHHELD: f"no verdict on {finding.arm} against {reference}",
        Word.NO_DATA: f"no usable launches to compare {finding.arm} with {reference}",
    }
    said = f"{finding.benchmark}: {claims[word]}"
    if finding.comparison is None:
        return clean(f"{said}.")
    how_many = len(case_findings(judgement, finding))
    over = f" (geometric mean over {count(how_many, 'case')})" if how_many > 1 else ""
    name = "" if finding.metric.name == finding.benchmark else f"{finding.metric.name} "
    arm = value_text(finding.arm_value, finding.metric)
    against = value_text(finding.reference_value, finding.metric)
    return clean(
        f"{said}: {name}{arm} against {against}{over}; "
        f"ratio {ratio_text(finding.comparison.ratio)} {interval_text(finding.comparison)}; "
        f"{direction(finding.metric)}."
    )


def case_findings(judgement: Judgement, headline: Finding) -> tuple[Finding, ...]:
    """Return the cases that a headline summarises: its benchmark, arm and metric."""
    return tuple(
        f
        for f in judgement.of_benchmark(headline.benchmark, judgement.cases)
        if f.arm == headline.arm and f.metric.name == headline.metric.name
    )


def cases_sentence(judgement: Judgement, headline: Finding) -> str:
    """Return what the single cases say: counts by verdict, and the two ends of the ratios."""
    cases = case_findings(judgement, headline)
    words = [f.verdict.word for f in cases]
    counts = ", ".join(f"{words.count(w)} {w.value}" for w in Word if w in words)
    found = sorted(
        ((f.comparison.ratio, str(f.case)) for f in cases if f.comparison), key=lambda x: x[0]
    )
    if len(found) < 2:
        return clean(counts)
    (low, at_low), (high, at_high) = found[0], found[-1]
    return clean(
        f"{counts}; ratio from {ratio_text(low)} ({at_low}) to {ratio_text(high)} ({at_high})"
    )


def tally_of(judgement: Judgement, benchmark: str, arm: str) -> Tally:
    """Return the tally of a benchmark in an arm; all zero where none was made."""
    for tally in judgement.tallies:
        if (tally.benchmark, tally.arm) == (benchmark, arm):
            return tally
    return Tally(benchmark, arm, counted=0, failed=0, timed_out=0, invalid=0)


def failures(tally: Tally) -> int:
    """Return the launches of a tally that gave nothing usable."""
    return tally.failed + tally.timed_out + tally.invalid


def attempted(tallies: Iterable[Tally]) -> tuple[int, int]:
    """Return (launches, failures among them) over some tallies, warm-up left out."""
    listed = list(tallies)
    return sum(t.counted for t in listed), sum(failures(t) for t in listed)


def failure_text(tally: Tally) -> str:
    """Return the failures of a tally by kind: "2 failed, 1 timed out", or "none"."""
    kinds = (
        (tally.failed, "failed"),
        (tally.timed_out, "timed out"),
        (tally.invalid, "invalid output"),
    )
    return ", ".join(f"{n} {word}" for n, word in kinds if n) or "none"


def benchmarks(judgement: Judgement) -> tuple[str, ...]:
    """Return the labels of the study's benchmarks, in its order, then any others found."""
    found = [s.label for s in judgement.study.benchmarks]
    for finding in (*judgement.headlines, *judgement.cases):
        if finding.benchmark not in found:
            found.append(finding.benchmark)
    return tuple(found)


def next_steps(judgement: Judgement) -> tuple[str, ...]:
    """Return what the user can do now, most pressing first; empty when nothing is open."""
    steps = []
    if not judgement.complete:
        steps.append(
            f"Unfinished: {run_command(judgement)} --resume goes on with the same schedule."
        )
    if any(h.verdict.word is Word.WITHHELD for h in judgement.headlines):
        keys = sorted({d.key for d in judgement.differences if d.kind == "unexplained"})
        named = f" ({listing(keys)})" if keys else ""
        steps.append(
            f"Withheld: make the arms equal where they must not differ{named}, or add keys that "
            "the factor changes to explains = [...] in the study; then measure again."
        )
    if judgement.complete:
        steps += [_more_blocks(h) for h in judgement.headlines if h.verdict.word is Word.UNDECIDED]
    broken = [p for p in judgement.points if p.state is not State.OK]
    if broken:
        steps.append(_read_logs(broken))
    return tuple(clean(s) for s in steps)


def _more_blocks(finding: Finding) -> str:
    """Return the way out of an undecided verdict; `blocks_needed` counts blocks in all."""
    done = finding.comparison.blocks if finding.comparison else 0
    needed = finding.verdict.blocks_needed
    who = f"Undecided ({finding.benchmark}, {finding.arm})"
    otherwise = "lengthen the measured region, quiet the machine or widen the margin"
    if needed is None or needed <= done:
        return f"{who}: {otherwise}, in a new study."
    if needed > MOST_BLOCKS:
        return (
            f"{who}: about {needed:,} blocks would be needed; rather {otherwise}, in a new study."
        )
    return (
        f"{who}: about {count(needed - done, 'more block')} needed; set blocks = {needed} under "
        "[plan] and run into a new directory."
    )


def _read_logs(broken: Sequence[Point]) -> str:
    first = broken[0]
    return (
        f"{count(len(broken), 'launch')} gave nothing usable; what they printed is in "
        f"logs/NNNN-*.err and .out, first logs/{first.number:04d}-*."
    )


def run_command(judgement: Judgement) -> str:
    """Return the command that continues this very study directory."""
    return f"paribus run {_quoted(judgement.study.path)} --out {_quoted(judgement.directory)}"


def reproduce_command(judgement: Judgement) -> str:
    """Return the command that measures the same plan again into a new directory."""
    again = f"{judgement.directory.rstrip('/')}-again"
    return f"paribus run {_quoted(judgement.study.path)} --out {_quoted(again)}"


def _quoted(path: str) -> str:
    import shlex

    return shlex.quote(clean(path)) if path else "STUDY.toml"


def case_text(finding: Finding) -> str:
    """Return the case of a row, or "all cases" for a headline."""
    return "all cases" if finding.case is None else clean(str(finding.case))


def parameters_text(parameters: Mapping[str, object]) -> str:
    """Return the parameters that are set, sizes with their unit.

    >>> parameters_text({"bytes": (8, 4096), "samples": None, "like": "osu"})
    'bytes = 8 B, 4 KiB; like = osu'
    """

    def one(key: str, value: object) -> str:
        if isinstance(value, list | tuple):
            return ", ".join(one(key, v) for v in value)
        if key == "bytes" and isinstance(value, int) and not isinstance(value, bool):
            return format_bytes(value)
        return str(value)

    return "; ".join(f"{k} = {one(k, v)}" for k, v in parameters.items() if v is not None)


def tick_label(key: str, value: float) -> str:
    """Return how an axis names a point of a case parameter: bytes with their unit."""
    if key == "bytes":
        return format_bytes(int(value))
    return f"{value:g}"


def report_command(judgement: Judgement) -> str:
    """Return the command that makes the reports again from the study directory."""
    return f"paribus report {_quoted(judgement.directory)}"
