"""What the parsers have in common: texts of the kernel as values, without ever raising.

Each takes a text or an Unknown, and returns an Unknown as it is: number("12") is 12.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from paribus.probes.archive import Archive, Unknown

_CHOSEN = re.compile(r"\[([^\[\]]*)\]")
_WHOLE = re.compile(r"-?[0-9]{1,19}")


def scalar(text: str | Unknown) -> Any:
    """Return a file's text as an int, or as a string with single spaces; an Unknown as it is."""
    if isinstance(text, Unknown):
        return text
    return int(text) if _WHOLE.fullmatch(text) else " ".join(text.split())


def number(text: str | Unknown) -> int | float | Unknown:
    """Return the number that `text` is; UNSUPPORTED for an empty text, UNREADABLE for any other."""
    if isinstance(text, Unknown):
        return text
    text = text.strip()
    if _WHOLE.fullmatch(text):
        return int(text)
    try:
        value = float(text)
    except ValueError:
        return Unknown.UNREADABLE if text else Unknown.UNSUPPORTED
    return value if math.isfinite(value) else Unknown.UNREADABLE


def about(value: Any, digits: int) -> Any:
    """Return an int rounded to `digits` significant digits, anything else as it is.

    For values that the kernel derives from the memory that was free at boot: a few pages more or
    less are no difference between machines.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        return value
    return round(value, digits - len(str(abs(value))))


def chosen(text: str | Unknown) -> str | Unknown:
    """Return the alternative in brackets: "madvise" of "always [madvise] never"."""
    if isinstance(text, Unknown):
        return text
    match = _CHOSEN.search(text)
    return match[1] if match else " ".join(text.split())


def read_all(archive: Archive, paths: Mapping[str, str]) -> dict[str, Any]:
    """Return the scalar of each file by its key: `paths` maps keys to paths."""
    return {key: scalar(archive.read(path)) for key, path in paths.items()}


def one_or_list(values: Iterable[Any]) -> Any:
    """Return the value that all of `values` share; where they differ, a sorted list of them.

    The first Unknown if there is one; ABSENT of no values at all.
    """
    distinct = list(dict.fromkeys(values))
    for value in distinct:
        if isinstance(value, Unknown):
            return value
    if len(distinct) == 1:
        return distinct[0]
    return sorted(distinct, key=str) if distinct else Unknown.ABSENT


def all_known(values: Iterable[Any]) -> list[Any] | Unknown:
    """Return `values` as a list, or the first Unknown among them."""
    found = list(values)
    return next((value for value in found if isinstance(value, Unknown)), found)


def fields(text: str, separator: str = ":") -> list[tuple[str, str]]:
    """Return the "name: value" lines of `text` as pairs, in order."""
    pairs = (line.partition(separator) for line in text.split("\n"))
    return [(name.strip(), value.strip()) for name, sep, value in pairs if sep]


Spans = list[tuple[int, int]]  # first and last core of each part


def ranges(cores: str | Unknown) -> Spans | Unknown:
    """Return the parts of a kernel list: [(0, 3), (8, 8)] for "0-3,8".

    UNREADABLE unless they ascend, as the kernel writes them: so no core is counted twice.
    """
    if isinstance(cores, Unknown):
        return cores
    found: Spans = []
    for part in cores.split(",") if cores else ():
        low, dash, high = part.partition("-")
        first, last = number(low), number(high if dash else low)
        if not isinstance(first, int) or not isinstance(last, int) or not first <= last < 1 << 20:
            return Unknown.UNREADABLE
        if first <= (found[-1][1] if found else -1):
            return Unknown.UNREADABLE
        found.append((first, last))
    return found


def count_of(cores: str | Unknown) -> int | Unknown:
    """Return how many cores a kernel list names: 5 for "0-3,8"."""
    spans = ranges(cores)
    return spans if isinstance(spans, Unknown) else sum(last - first + 1 for first, last in spans)


def common(one: Spans, other: Spans) -> int:
    """Return how many cores are in both `one` and `other`."""
    total, pending = 0, list(reversed(other))
    for first, last in one:
        while pending and pending[-1][1] < first:
            pending.pop()
        while pending and pending[-1][0] <= last:
            total += min(last, pending[-1][1]) - max(first, pending[-1][0]) + 1
            if pending[-1][1] > last:
                break
            pending.pop()
    return total


def holds(spans: Spans, core: int) -> bool:
    """Return whether `core` is in one of `spans`."""
    return any(first <= core <= last for first, last in spans)


def placed(machines: object, lists: object) -> list[tuple[str, Spans]]:
    """Return machine and cores of each rank, from a list of each; [] unless all are known."""
    if not isinstance(machines, list) or not isinstance(lists, list):
        return []
    parsed = (ranges(text) if isinstance(text, str) else None for text in lists)
    cores = [spans for spans in parsed if spans and isinstance(spans, list)]
    if not len(machines) == len(lists) == len(cores):
        return []
    return [(str(machine), spans) for machine, spans in zip(machines, cores, strict=True)]


def parts_of_cores(ranks: Sequence[tuple[str, Spans]]) -> list[float]:
    """Return how many cores each rank of `placed` has, at most 1: 0.5 where two ranks share one."""
    counts = Counter((machine, tuple(spans)) for machine, spans in ranks)

    def part(machine: str, spans: Spans) -> float:
        sharing = (
            count
            for (other, cores), count in counts.items()
            if other == machine and common(spans, list(cores))
        )
        return min(1.0, common(spans, spans) / sum(sharing))

    parts = {place: part(place[0], list(place[1])) for place in counts}
    return [parts[machine, tuple(spans)] for machine, spans in ranks]
