"""Units as tools, harnesses and their users write them: one table, for all readers.

A known unit is converted to that in which figures of its kind are compared: "ms" to "s", "Gbit/s"
to "MB/s". Any other stays as it is written; figures in two such units are never compared.
"""

from __future__ import annotations

import re

from paribus.border import printable
from paribus.core import Direction

_SECONDS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("us", "usec", "\u00b5s", "\u03bcs", "microsecond", "microseconds"), 1e-6),
    **dict.fromkeys(("ns", "nsec", "nanosecond", "nanoseconds"), 1e-9),
    **dict.fromkeys(("ps", "picosecond", "picoseconds"), 1e-12),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
}
TEN = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
TWO = {f"{prefix}i": 1024.0**n for n, prefix in enumerate(("K", "M", "G", "T", "P"), 1)}
TWO["ki"] = TWO["Ki"]
_PREFIXES = {**TEN, **TWO, **{f"10^{n}": 10.0**n for n in (3, 6, 9, 12)}}
_WORDS = {
    "kilo": 1e3, "mega": 1e6, "giga": 1e9, "tera": 1e12,
    "kibi": TWO["Ki"], "mebi": TWO["Mi"], "gibi": TWO["Gi"], "tebi": TWO["Ti"],
}  # fmt: skip
_SIZES = {
    **dict.fromkeys(("B", "Byte", "Bytes", "byte", "bytes"), 1.0),
    **dict.fromkeys(("b", "bit", "bits", "Bit", "Bits"), 1 / 8),
}
"""Bytes and bits differ by one letter only, so its case counts."""

_COUNTED = frozenset(
    (
        *("atom-step", "cell", "edge", "element", "event", "file", "frame", "image", "io"),
        *("iteration", "key", "message", "msg", "op", "operation", "packet", "particle", "pixel"),
        *("point", "query", "read", "record", "request", "row", "sample", "sequence", "step"),
        *("timestep", "token", "transaction", "update", "word", "write"),
        *("img", "it", "iter", "pkt", "req", "seq", "tok", "txn"),
    )
)
"""Nouns that are counted, in the singular: of any other word a k may be the first letter."""

_SPEEDS = re.compile(r"([kKMGT]?)(IOPS|TEPS|LUPS|FPS|QPS|RPS|TPS)")

_PERIODS = {1.0: "s", 60.0: "min", 3600.0: "h", 86400.0: "day"}

_PER = re.compile(r"(.+?) ?(?:/ ?| per | Per )([A-Za-z]+)")
_GLUED = re.compile(r"(.+?)(ps|PS)")


def canonical(unit: str) -> tuple[float, str]:
    """Return the factor to the unit in which figures of this kind are compared, and that unit.

    Times are in s, rates of bytes and of bits in MB/s, floating-point speeds in Gflop/s, counts
    without prefix, by the period that is named; others stay.

    >>> canonical("ms"), canonical("GB/s"), canonical("Gflops"), canonical("widgets")
    ((0.001, 's'), (1000.0, 'MB/s'), (1.0, 'Gflop/s'), (1.0, 'widgets'))
    >>> canonical("Gb/sec"), canonical("Mbps"), canonical("h"), canonical("ktimesteps/s")
    ((125.0, 'MB/s'), (0.125, 'MB/s'), (3600.0, 's'), (1000.0, 'timesteps/s'))
    >>> canonical("images/s"), canonical("ns/day"), canonical("images per minute")
    ((1.0, 'images/s'), (1.0, 'ns/day'), (1.0, 'images/min'))
    """
    text = " ".join(unit.split())
    if (seconds := seconds_of(text)) is not None:
        return seconds, "s"
    if (speed := _speed(text)) is not None:
        return speed, "Gflop/s"
    if match := _SPEEDS.fullmatch(text):
        return TEN[match[1]], match[2]
    above, seconds = _rate(text)
    if seconds is None:
        return 1.0, printable(text)
    if (size := size_of(above)) is not None:
        return size * 1e-6 / seconds, "MB/s"
    number, noun = (1.0, above) if seconds_of(above) is not None else _counted(above)
    return number, printable(f"{noun}/{_PERIODS.get(seconds, 's')}")


def better_of(unit: str) -> Direction | None:
    """Return which values in a unit of `canonical` are better, None if the unit does not show it.

    >>> better_of("s"), better_of("images/s"), better_of("ns/day"), better_of("h/ns")
    ('lower', 'higher', 'higher', 'lower')
    >>> better_of("s/step"), better_of("W"), better_of("Gflop/s")
    ('lower', None, 'higher')
    """
    if unit == "s":
        return "lower"
    if _SPEEDS.fullmatch(unit):
        return "higher"
    above, _, below = unit.partition("/")
    takes, per = seconds_of(above), seconds_of(below)
    if takes is not None and below:
        return "higher" if per is not None and per > takes else "lower"
    return None if per is None else "higher"


def seconds_of(unit: str) -> float | None:
    """Return how many seconds a unit of time has, None for any other.

    >>> seconds_of("usec"), seconds_of("min"), seconds_of("m")
    (1e-06, 60.0, None)
    """
    found = _SECONDS.get(unit)
    return found if found is not None or len(unit) < 3 else _SECONDS.get(unit.lower())


def size_of(unit: str, *, two: bool = False) -> float | None:
    """Return how many bytes a unit of data has, None for any other.

    `two`: iperf3, netperf and perftest count bytes, not bits, in powers of two, and write K, M, G.

    >>> size_of("KiB"), size_of("Mbit"), size_of("GBytes"), size_of("megabytes"), size_of("mb")
    (1024.0, 125000.0, 1000000000.0, 1000000.0, None)
    >>> size_of("MBytes", two=True), size_of("Mbits", two=True)
    (1048576.0, 125000.0)
    """
    for word, size in _SIZES.items():
        prefix = unit.removesuffix(word)
        if two and size == 1.0 and f"{prefix}i" in TWO and prefix != unit:
            return TWO[f"{prefix}i"]
        if prefix != unit and prefix in _PREFIXES:
            return _PREFIXES[prefix] * size
        if prefix != unit and len(word) > 1 and prefix.lower() in _WORDS:
            return _WORDS[prefix.lower()] * size
    return None


def rate_of(unit: str, *, two: bool = False) -> float | None:
    """Return how many bytes per second a unit of data over time is, None for any other.

    `two` is that of `size_of`.

    >>> rate_of("10^6bits/s"), rate_of("MB/sec", two=True)
    (125000.0, 1048576.0)
    >>> rate_of("MB/sec"), rate_of("Gbits/sec"), rate_of("Gbps"), rate_of("images/s")
    (1000000.0, 125000000.0, 125000000.0, None)
    """
    above, seconds = _rate(unit)
    size = size_of(above, two=two) if seconds is not None else None
    return None if size is None or seconds is None else size / seconds


def _rate(unit: str) -> tuple[str, float | None]:
    """Return the unit before "/s" or "per minute", and the seconds of the period, None for none."""
    if match := _PER.fullmatch(unit):
        return match[1].strip(), seconds_of(match[2])
    match = _GLUED.fullmatch(unit)
    if match and size_of(match[1]) is not None:  # Mbps, GBps
        return match[1], 1.0
    return unit, None


def _counted(above: str) -> tuple[float, str]:
    """Return factor and plural of a noun with a prefix: 1000 and "timesteps" for "ktimesteps"."""
    for prefix, number in TEN.items():
        noun = above.removeprefix(prefix)
        single = noun.lower().removesuffix("s")
        if (noun != above or not prefix) and single in _COUNTED:
            return number, f"{single}s"
    return 1.0, above


def _speed(unit: str) -> float | None:
    """Return how many Gflop/s a unit of floating-point speed is, None for any other unit."""
    above, seconds = _rate(unit)
    match = re.fullmatch(r"([kKmMgGtTpPeE]?)flops?", above, re.I)
    if match is None or (seconds is None and not above.lower().endswith("s")):
        return None
    prefix = match[1] if match[1] in TEN else match[1].upper()
    return TEN[prefix] * 1e-9 / (seconds or 1.0)
