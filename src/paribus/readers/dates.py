"""Dates in outputs: when a tool says that it ran."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

from paribus.readers.text import first

CTIME = r"(\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4})"
"""The pattern of a date as ctime(3) writes it."""

LOCAL = "%a %b %d %H:%M:%S %Y"
"""The form of strptime for ctime(3), which names no time zone."""

SECONDS = ""
"""The form of a date in seconds since the epoch."""


class Date(NamedTuple):
    """How a tool writes when it ran.

    `mark` is a text in the date's line, and `pattern` matches that line: its group is the date.
    `form` is that of strptime, or SECONDS; `zoned` is whether the date is in UTC.
    """

    mark: str
    pattern: re.Pattern[str]
    form: str
    zoned: bool


def date(mark: str, pattern: str, form: str = LOCAL, *, utc: bool = False) -> Date:
    """Return how a tool writes a date; `utc` says that it is in UTC, as seconds always are."""
    return Date(mark, re.compile(pattern), form, utc or form == SECONDS)


def started(dates: Iterable[Date], text: str) -> tuple[float, bool] | None:
    """Return the date of an output in seconds since the epoch, and whether its zone is known.

    None if it has none. A date without a zone is taken as UTC: those of two machines may differ by
    hours more, and those of one machine by an hour when its clock is changed.

    >>> imb = date("# Date ", rf"# Date +: {CTIME}")
    >>> started([imb], "# Date                  : Fri Jun 27 02:00:00 2025")
    (1750989600.0, False)
    """
    for mark, pattern, form, zoned in dates:
        found = first(text, mark, pattern)
        if found and (seconds := _seconds(found[1], form)) is not None:
            return seconds, zoned
    return None


@lru_cache(maxsize=100)
def _seconds(text: str, form: str) -> float | None:
    """Return a date as seconds since the epoch, None if it is none."""
    text = re.sub(r"(?<=:) ", "", " ".join(text.split()))  # QE: " 4:45: 3"
    try:
        if form == SECONDS:
            return float(text)
        return datetime.strptime(text, form).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None
