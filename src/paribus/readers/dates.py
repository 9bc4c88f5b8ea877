"""When a tool says that it ran: the dates that outputs carry."""

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
"""How ctime(3) writes a date: in a zone that is not named."""

SECONDS = ""
"""A date in seconds since the epoch."""


class Date(NamedTuple):
    """How a tool writes when it ran.

    `mark` is in the date's line; `pattern` matches that line up to the date, which is its group;
    `form` is that of strptime; `zoned` says that the date is in UTC.
    """

    mark: str
    pattern: re.Pattern[str]
    form: str
    zoned: bool


def date(mark: str, pattern: str, form: str = LOCAL, *, utc: bool = False) -> Date:
    """Return how a tool writes a date; seconds since the epoch are in a known zone."""
    return Date(mark, re.compile(pattern), form, utc or form == SECONDS)


def started(dates: Iterable[Date], text: str) -> tuple[float, bool] | None:
    """Return when an output says that it was made, and whether in a known zone; None without.

    In seconds since the epoch; a date without a zone is taken as UTC, so that of two machines it
    can be off by hours, and within one night of the year by one among the logs of one machine.

    >>> imb = date("# Date ", rf"# Date +: {CTIME}")
    >>> started([imb], "# Date                  : Fri Jun 27 02:00:00 2025")
    (1750989600.0, False)
    """
    for mark, pattern, form, zoned in dates:
        said = first(text, mark, pattern)
        if said and (seconds := _seconds(said[1], form)) is not None:
            return seconds, zoned
    return None


@lru_cache(maxsize=100)
def _seconds(said: str, form: str) -> float | None:
    """Return a date as seconds since the epoch, None if it is none."""
    said = re.sub(r"(?<=:) ", "", " ".join(said.split()))  # QE: " 4:45: 3"
    try:
        if form == SECONDS:
            return float(said)
        return datetime.strptime(said, form).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None
