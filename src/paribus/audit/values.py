"""The values of facts: as text for comparison, as numbers, and the usual one of many launches."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from paribus.audit.classes import classify
from paribus.core import Facts, Row, grouped
from paribus.probes.archive import Unknown, fact, unknown

ERROR = "facts.error"
"""The fact of a node that gave no facts, or not all of them: the reason."""

NODES = "facts.nodes"
"""The fact beside it: the number of nodes of its arm."""

ABSENT = json.dumps(fact(Unknown.ABSENT))
HALF = json.dumps(fact(Unknown.UNREADABLE))


def text_of(facts: Facts, key: str) -> str:
    """Return the value of a fact as JSON: ABSENT if it is missing, HALF if the answer was cut."""
    if key not in facts:
        return HALF if ERROR in facts else ABSENT
    value = facts[key]
    return _quoted(value) if type(value) is str else json.dumps(value, sort_keys=True)


@lru_cache(1 << 16)
def _quoted(text: str) -> str:
    """Return a text as JSON: thousands of nodes have the same."""
    return json.dumps(text)


def unread(text: str) -> bool:
    """Return whether a value (as of `text_of`) is unknown for another reason than being absent."""
    return text != ABSENT and text.startswith('{"unknown"') and unknown(json.loads(text))


def number_of(value: Any) -> float | None:
    """Return a number as it is, the mean of a list of them, None for anything else."""
    if isinstance(value, list):
        if value and set(map(type, value)) <= {int, float}:
            return statistics.fmean(value)
        several = [number_of(one) for one in value]
        known = [one for one in several if one is not None]
        return statistics.fmean(known) if known and len(known) == len(several) else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def held(row: Row) -> bool:
    """Return whether facts of this class should be equal, and stay as they are."""
    return row.kind in ("identical", "covaries")


def typical(launches: Iterable[Facts]) -> dict[str, Any]:
    """Return the usual value of each fact: the most frequent one, or the median if volatile."""
    values = grouped(item for facts in launches for item in facts.items())
    return {key: _usual(key, several) for key, several in values.items()}


def unsteady(launches: Sequence[Facts]) -> list[str]:
    """Return the facts that should not change between launches, and have several known values."""
    seen: dict[str, set[str]] = {}
    last: dict[str, Any] = {}
    for facts in launches:
        for key, value in facts.items():
            # Most of thousands of launches have the same object as the one before.
            if value is last.get(key, facts) or not held(classify(key)):
                continue
            last[key] = value
            if not unread(text := text_of(facts, key)):
                seen.setdefault(key, set()).add(text)
    return sorted(key for key, values in seen.items() if len(values) > 1)


def _usual(key: str, values: Sequence[Any]) -> Any:
    if classify(key).kind == "volatile":
        numbers = [number for number in map(number_of, values) if number is not None]
        if len(numbers) == len(values):
            return float(f"{statistics.median(numbers):.12g}")  # without rounding errors of means
    if set(map(type, values)) == {str}:
        return Counter(values).most_common(1)[0][0]
    distinct = {id(value): value for value in values}
    counts: Counter[str] = Counter()
    for one, times in Counter(map(id, values)).items():
        counts[json.dumps(distinct[one], sort_keys=True)] += times
    return json.loads(counts.most_common(1)[0][0])
