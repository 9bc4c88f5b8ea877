"""Texts of single values that every report shares: "1.187 [1.182, 1.192]", "5.87 us".

All functions return plain text, which callers escape for their medium. Sentences about a whole
judgement are in sentences.py, what to do next in advice.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from paribus.border import printable
from paribus.core import (
    Comparison,
    Endpoint,
    Finding,
    Metric,
    Spread,
    Verdict,
    Word,
    decimals_beyond,
    format_bytes,
    format_parameter,
    format_ratio,
    format_value,
)

WARM_UP = 0
"""The block that is recorded, never counted."""


def block_text(block: int) -> str:
    """Return "block 11", or "warm-up"."""
    return "warm-up" if block == WARM_UP else f"block {block}"


SYMBOLS = {
    Word.FASTER: "▲",
    Word.SLOWER: "▼",
    Word.EQUIVALENT: "=",
    Word.UNDECIDED: "?",
    Word.RELIABILITY: "!",
    Word.WITHHELD: "⊘",
    Word.NO_DATA: "–",
}
"""One sign per verdict, so that colour is never the only carrier of meaning."""

DECIDED = frozenset({Word.FASTER, Word.SLOWER, Word.EQUIVALENT, Word.RELIABILITY})
"""The verdicts that claim something, and so the only ones in colour."""


def kind_of(word: Word) -> str:
    """Return the CSS class of a verdict's colour, "open" for one that claims nothing."""
    return word.name.lower() if word in DECIDED else "open"


ENDPOINTS: Mapping[Endpoint, str] = {
    "median": "median",
    "p99": "p99",
    "p25": "p25",
    "min": "minimum",
}
"""The names of endpoints in reports."""

SIZE_WITHHELD = "size withheld"

LONGEST = 2000
"""The most characters of a text from outside that a report shows; the logs have all of it."""


def clean(text: str) -> str:
    """Return `text` on one line, without control or direction-changing characters.

    Host names, error messages and study texts come from outside; a terminal obeys escape
    sequences, so each unprintable character is shown as \\xNN instead.
    """
    shown = text if len(text) <= LONGEST else f"{text[:LONGEST]} [cut]"
    return printable(shown.replace("\r\n", " ").replace("\n", " ").replace("\t", " "))


def direction(metric: Metric) -> str:
    """Return "lower is better" or "higher is better"."""
    return f"{metric.better} is better"


def has_interval(comparison: Comparison | None) -> bool:
    """Return whether a comparison has an interval, that is at least one known end.

    Launches that were cut off by their time limit can leave the other end open.
    """
    return comparison is not None and (comparison.low > 0 or math.isfinite(comparison.high))


def interval_text(comparison: Comparison) -> str:
    """Return "[low, high]", or "[no interval yet]" while the blocks are too few.

    Without blocks there will never be one: "[no interval]".
    """
    if not has_interval(comparison):
        return "[no interval yet]" if comparison.blocks else "[no interval]"
    ends, like = (comparison.low, comparison.high), comparison.ratio
    low, high = (format_ratio(end, like, decimals_beyond(*ends)) for end in ends)
    return f"[{low if comparison.low > 0 else '0'}, {high}]"


def ratio_text(known: Comparison) -> str:
    """Return the ratio with the digits of its interval: "1.187"."""
    return format_ratio(known.ratio, decimals=decimals_beyond(known.low, known.high))


def estimate(known: Comparison) -> str:
    """Return "1.187 [1.182, 1.192]"."""
    return f"{ratio_text(known)} {interval_text(known)}"


def estimate_text(finding: Finding) -> str:
    """Return how many times as slow an arm is, "1.187 [1.182, 1.192]", "size withheld", "none"."""
    if finding.comparison is None:
        return "none"
    if not finding.verdict.size_known:
        return SIZE_WITHHELD
    return estimate(finding.comparison.times(finding.metric.better))


def provisional(verdict: Verdict) -> bool:
    """Return whether a verdict that claims something may still change: "so far"."""
    return verdict.word in DECIDED and not verdict.final


def quantity(value: float, unit: str) -> str:
    """Return a value with its unit, such as "5.87 us"; the unit "1" is left out.

    An infinite value, of launches that their time limit cut off, is "cut off".
    """
    unit = "" if unit == "1" else unit
    return f"{format_value(value)} {unit}".rstrip() if math.isfinite(value) else "cut off"


_LADDERS = (
    ("ns", "us", "ms", "s"),
    *(tuple(f"{prefix}{unit}" for prefix in ("", *"kMGTP")) for unit in ("B/s", "bit/s", "flop/s")),
)
"""Units that differ by a thousand, smallest first."""


def scaled(value: float, unit: str) -> tuple[str, str]:
    """Return a value and its unit; from 10,000 on in a larger unit, so that few digits suffice.

    >>> scaled(17.3, "us"), scaled(2_050_000, "msg/s"), scaled(2_940_000, "MB/s"), scaled(2904, "s")
    (('17.3', 'us'), ('2.05 M', 'msg/s'), ('2.94', 'TB/s'), ('2,904', 's'))
    """
    ladder = next((one for one in _LADDERS if unit in one), ("", *"kMGTP"))
    at = start = next((place for place, one in enumerate(ladder) if one == unit), 0)
    while at + 1 < len(ladder) and 1000 <= abs(value) < math.inf and (at > start or value >= 1e4):
        value, at = value / 1000, at + 1
    number = quantity(value, "")
    if unit in ladder:
        return number, ladder[at]
    return f"{number} {ladder[at]}".rstrip(), "" if unit == "1" else unit


def both(finding: Finding, arrow: str) -> str:
    """Return the values of both arms, an equal unit once: "2.05 M -> 138 k msg/s"."""
    values = [v for v in (finding.reference_value, finding.arm_value) if v is not None]
    shown = [scaled(value.median, finding.metric.unit) for value in values]
    if len({unit for _, unit in shown}) == 1:
        numbers = f" {arrow} ".join(number for number, _ in shown)
        return clean(f"{numbers} {shown[0][1]}".rstrip())
    return clean(f" {arrow} ".join(f"{number} {unit}" for number, unit in shown))


def value_text(spread: Spread | None, metric: Metric) -> str:
    """Return the median launch in the metric's unit, or "none"."""
    return "none" if spread is None else quantity(spread.median, metric.unit)


def spread_text(spread: Spread) -> str:
    """Return the quartiles of the launch medians, without unit: "5.81 to 5.97"."""
    return f"{quantity(spread.low, '')} to {quantity(spread.high, '')}"


def band(margin: float) -> tuple[float, float]:
    """Return the ratios between which two arms count as practically equivalent.

    The margin is symmetric in the logarithm (docs/statistics.md): 1 / (1 + margin) to 1 + margin.
    """
    return 1 / (1 + margin), 1 + margin


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
        return format_parameter(value)

    return "; ".join(f"{k} = {one(k, v)}" for k, v in parameters.items() if v is not None)


def tick_label(key: str, value: float) -> str:
    """Return the label of a value of a case parameter on an axis: bytes with their unit."""
    if key == "bytes":
        return format_bytes(int(value))
    return f"{value:g}"
