"""Bytes, durations and figures, read from and written for people.

Prefixes are explicit: KiB, MiB, GiB are powers of 1024; kB, MB, GB powers of 1000.
A bare number of bytes is accepted; a bare number of seconds is not, because "2" says nothing.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence


def toml_list(words: Iterable[str]) -> str:
    """Return a list of texts as TOML writes it."""
    return f"[{', '.join(map(toml_text, words))}]"


def toml_key(name: str) -> str:
    """Return a key as TOML writes it: in quotation marks where it needs them."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_text(name)


def toml_text(text: str) -> str:
    """Return a text as TOML writes it: as JSON does, except for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


_BYTES = {
    "B": 1,
    "KiB": 1024,
    "MiB": 1024**2,
    "GiB": 1024**3,
    "TiB": 1024**4,
    "kB": 1000,
    "MB": 1000**2,
    "GB": 1000**3,
    "TB": 1000**4,
}
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
MOST_SECONDS = 1e9
"""The longest duration: clocks count no further than some hundred years."""

_RATES = {"bit": 1.0, "kbit": 1e3, "Mbit": 1e6, "Gbit": 1e9}
_QUANTITY = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z]*)\s*")


def _quantity(text: str, units: Mapping[str, float], what: str, example: str) -> float:
    """Return "4 KiB" in the base unit; raises ValueError, which names `what` and `example`."""
    match = _QUANTITY.fullmatch(text)
    known = ", ".join(units)
    if match is None or not math.isfinite(float(match[1]) * units.get(match[2], 1)):
        raise ValueError(f"{text!r} is not {what}; write for example {example!r}")
    if match[2] not in units:
        cause = f"unit {match[2]!r} is unknown" if match[2] else "the unit is missing"
        raise ValueError(f"{text!r}: {cause}; use one of {known}, for example {example!r}")
    return float(match[1]) * units[match[2]]


def parse_bytes(text: str | int) -> int:
    """Return the number of bytes that `text` names, such as "4 KiB" or 4096.

    Raises ValueError for a missing or unknown unit, a negative or a fractional byte count.

    >>> parse_bytes("4 KiB"), parse_bytes("1 MB"), parse_bytes(8)
    (4096, 1000000, 8)
    """
    if isinstance(text, bool):
        raise ValueError(f"{text!r} is not a number of bytes; write for example '4 KiB'")
    if isinstance(text, int):
        if text < 0:
            raise ValueError(f"{text} is a negative number of bytes")
        return text
    size = _quantity(text, _BYTES, "a size", "4 KiB")
    if size != int(size):
        raise ValueError(f"{text!r} is not a whole number of bytes")
    return int(size)


_PRICE = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,12})?) ?([^\W\d_]{1,12}|[$€£¥])/node-hour")


def parse_seconds(text: str) -> float:
    """Return the duration that `text` names, in seconds.

    Raises ValueError without a unit (a study never guesses between seconds and minutes), for 0, and
    beyond MOST_SECONDS.

    >>> parse_seconds("30 min"), parse_seconds("250 ms")
    (1800.0, 0.25)
    """
    if not isinstance(text, str):
        raise ValueError(f"{text!r} has no unit; write for example '{text} s'")
    seconds = _quantity(text, _SECONDS, "a duration", "2 s")
    if not 0 < seconds <= MOST_SECONDS:
        raise ValueError(f"{text!r} is not above 0, or is longer than 30 years")
    return seconds


def parse_price(text: str) -> tuple[float, str]:
    """Return what a node costs in an hour: the amount and its currency.

    Raises ValueError for another text, and for an amount that is not above 0.

    >>> parse_price("2.07 EUR/node-hour")
    (2.07, 'EUR')
    """
    found = _PRICE.fullmatch(text) if isinstance(text, str) else None
    if found is None or not float(found[1]) > 0:
        raise ValueError('write the price of a node: "2.07 EUR/node-hour"')
    return float(found[1]), found[2]


def parse_rate(text: str) -> int:
    """Return the rate that `text` names, in bits a second; "/s" may follow the unit.

    Raises ValueError without a unit: bits, not bytes, as networks are sold.

    >>> parse_rate("1 Gbit"), parse_rate("2.5 Mbit/s")
    (1000000000, 2500000)
    """
    if not isinstance(text, str):
        raise ValueError(f"{text!r} has no unit; write for example '1 Gbit'")
    return round(_quantity(text.strip().removesuffix("/s"), _RATES, "a rate", "1 Gbit"))


def parse_share(text: str | float) -> float:
    """Return a share such as a margin: "2 %" and 0.02 are both 0.02.

    Raises ValueError outside 0 < share < 1, so that a bare 2 is never read as 200 %.

    >>> parse_share("2 %"), parse_share(0.05)
    (0.02, 0.05)
    """
    if isinstance(text, str):
        match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*%\s*", text)
        if match is None:
            raise ValueError(f"{text!r} is not a share; write for example '2 %' or 0.02")
        share = float(match[1]) / 100
    elif isinstance(text, bool) or not isinstance(text, int | float):
        raise ValueError(f"{text!r} is not a share; write for example '2 %' or 0.02")
    else:
        share = float(text)
    if not 0 < share < 1:
        raise ValueError(f"{text!r} is outside 0 to 100 %; write for example '2 %' or 0.02")
    return share


def format_parameter(value: object) -> str:
    """Return a parameter's value for people; a text of over 200 characters is cut to its start.

    >>> format_parameter("x" * 1000)
    'xxxxxxxxxxxx...'
    """
    text = str(value)
    return text if len(text) <= 200 else f"{text[:12]}..."


def format_bytes(size: int) -> str:
    """Return `size` with the largest binary prefix that divides it.

    >>> [format_bytes(n) for n in (0, 8, 4096, 1048576, 1000)]
    ['0 B', '8 B', '4 KiB', '1 MiB', '1000 B']
    """
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if size and size % _BYTES[unit] == 0:
            return f"{size // _BYTES[unit]} {unit}"
    return f"{size} B"


def format_seconds(seconds: float) -> str:
    """Return a duration for people to read.

    >>> [format_seconds(s) for s in (0.0000012, 0.25, 5.04, 75, 3720, 180000)]
    ['1.2 us', '250 ms', '5.0 s', '1 min 15 s', '1 h 02 min', '2 d 2 h']
    """
    if seconds < 1e-3:
        return f"{seconds * 1e6:.3g} us"
    if seconds < 1:
        return f"{seconds * 1e3:.3g} ms"
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"


def format_value(value: float) -> str:
    """Return a figure with three significant digits or more, and no exponent below 1e9.

    >>> [format_value(v) for v in (0.1034, 5.872, 123.4, 15893.2, 2.512e7, 2.5e9)]
    ['0.103', '5.87', '123', '15,893', '25,100,000', '2.5e+09']
    """
    if value == 0:
        return "0"
    if abs(value) >= 1e6:
        short = f"{value:.3g}"
        return f"{float(short):,.0f}" if abs(value) < 1e9 else short
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    digits = max(0, 2 - math.floor(math.log10(abs(float(f"{value:.3g}")))))  # 9.997 is 10.0
    return f"{value:,.{digits}f}"


def format_change(ratio: float, decimals: int = 1) -> str:
    """Return how far the arm's value lies from the reference's: "+18.7 %" or "3.21x".

    From a factor of two on, a percentage misleads.

    >>> [format_change(r) for r in (1.187, 0.968, 0.9999, 3.214, 0.25)]
    ['+18.7 %', '-3.2 %', '+0.0 %', '3.21x', '4.00x lower']
    """
    if 0.5 < ratio < 2:
        return f"{(ratio - 1) * 100:+.{decimals}f} %".replace("-0.0 %", "+0.0 %")
    return f"{format_value(ratio)}x" if ratio >= 2 else f"{format_value(1 / ratio)}x lower"


def decimals_beyond(*ratios: float) -> int:
    """Return how many decimals show that all `ratios` lie on one side of 1; 0 where three do."""
    near = max(min(ratios) - 1, 1 - max(ratios))
    return math.ceil(-math.log10(near)) if 1e-9 < near < 5e-4 else 0


def format_ratio(ratio: float, like: float | None = None, decimals: int = 0) -> str:
    """Return a ratio with the digits that a 1 % difference needs, and with `decimals` or more.

    `like` gives the number of decimals, so that both ends of an interval match their middle.

    >>> [format_ratio(r) for r in (1.0, 1.1866, 12.34, 480.2, 0.0312, float("inf"))]
    ['1.000', '1.187', '12.3', '480', '0.0312', 'inf']
    >>> format_ratio(9.987, like=10.02)
    '10.0'
    """
    if not math.isfinite(ratio):
        return "inf"
    size = ratio if like is None or not math.isfinite(like) else like
    if size <= 0:
        return f"{ratio:.3f}"
    digits = decimals or 3 if 0.1 <= size < 10 else max(0, 2 - math.floor(math.log10(size)))
    return f"{ratio:,.{digits}f}"


def format_factor(ratio: float) -> str:
    """Return a ratio as a factor above 1; the sentence around it says "more" or "less".

    >>> format_factor(1.409), format_factor(0.2213), format_factor(0.9997)
    ('1.409x', '4.519x', '1.0003x')
    """
    return f"{format_ratio(max(ratio, 1 / ratio), decimals=decimals_beyond(ratio))}x"


def format_changes(ratios: Sequence[float]) -> list[str]:
    """Return several changes that are read together in one form: all as percent, or as factors.

    >>> format_changes([1.2, 0.987, 1.45]), format_changes([1.2, 0.708, 2.06])
    (['+20.0 %', '-1.3 %', '+45.0 %'], ['1.20x', '0.708x', '2.06x'])
    """
    if all(0.5 < ratio < 2 for ratio in ratios):
        return [format_change(ratio, max(1, decimals_beyond(*ratios) - 2)) for ratio in ratios]
    return [f"{format_value(ratio)}x" for ratio in ratios]


def format_interval(ratio: float, low: float, high: float, plus: str = "+") -> str:
    """Return a change and its interval: "-18.0 % [-18.6, -17.3]", "2.59x [2.57x, 2.62x]".

    Launches that were cut off by their time limit can leave an end open: "1.20x [1.10x, inf]".
    """
    if not (low > 0 or high < math.inf):
        return f"{format_changes([ratio])[0]} [no interval yet]"
    middle, *ends = format_changes((ratio, low, high))
    shown = ", ".join(ends).replace(" %", "").replace("infx", "inf").replace("+", plus)
    return f"{middle} [{shown}]"


def percent(share: float) -> str:
    """Return a share in percent without needless digits.

    >>> [percent(s) for s in (0.02, 0.005, 0.125, 0.03739, 1, 12)]
    ['2 %', '0.5 %', '12.5 %', '3.74 %', '100 %', '1,200 %']
    """
    hundredths = share * 100
    return f"{hundredths:,.0f} %" if abs(hundredths) >= 1000 else f"{hundredths:.3g} %"


def count(number: int, noun: str) -> str:
    """Return a number with its noun: "1 launch", "2 launches".

    >>> count(1, "launch"), count(3, "case"), count(15364, "block")
    ('1 launch', '3 cases', '15,364 blocks')
    """
    return f"{number:,} {noun if number == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """Return the plural of one of the nouns of the reports."""
    if noun.endswith("dy"):
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("ch", "s")) else f"{noun}s"
