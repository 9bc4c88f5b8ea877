"""When a tool says that it ran: the dates that outputs carry."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache

_C = r"(\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4})"
"""A date as ctime(3) writes it."""

_CTIME = "%a %b %d %H:%M:%S %Y"
_GMT = "%d %b %Y %H:%M:%S"
"""As iperf3 writes it, always in GMT (iperf_time.c)."""

_DATES: dict[str, tuple[tuple[str, str, str], ...]] = {
    "imb": (("# Date ", rf"# Date +: {_C}", _CTIME),),
    "hpl": (("start time ", rf".*start time {_C}", _CTIME),),
    "hpcc": (("Current time (", r"Current time \((\d{9,11})\) is ", ""),),
    "ior": (("Began", rf'(?:.*")?Began"? *: *"?{_C}', _CTIME),),
    "mdtest": (
        ("started at ", r".*started at (\d\d/\d\d/\d{4} \d\d:\d\d:\d\d) --", "%m/%d/%Y %H:%M:%S"),
    ),
    "iperf3": (
        ('"timesecs":', r'.*"timesecs":\s*(\d{9,11})\b', ""),
        ("Time: ", r"Time: \w{3}, (\d\d \w{3} \d{4} \d\d:\d\d:\d\d) ", _GMT),
    ),
    "fio": (
        ('"timestamp"', r'.*"timestamp" ?: ?(\d{9,11})\b', ""),
        ("pid=", rf".*pid=\d+: {_C}", _CTIME),
    ),
    "qe": (
        (
            "starts on ",
            r".*starts on +(\d+\w{3}\d{4} at [ \d]\d:[ \d]\d:[ \d]\d)",
            "%d%b%Y at %H:%M:%S",
        ),
    ),
    "vasp": (("date ", r".*date (\d{4}\.\d\d\.\d\d +\d\d:\d\d:\d\d)", "%Y.%m.%d %H:%M:%S"),),
    "gromacs": (
        ("Log file opened", rf"Log file opened on {_C}", _CTIME),
        ("Started mdrun", rf"Started mdrun on rank 0 {_C}", _CTIME),
    ),
    "pynamic": (
        ("run on ", r".*run on (\d\d/\d\d/\d\d \d\d:\d\d:\d\d) with", "%m/%d/%y %H:%M:%S"),
    ),
}
"""Of a tool, or its family: what its date's line holds, the line up to the date, and how the date
is written ("": in seconds).
"""

_PATTERNS = {
    tool: [(mark, re.compile(pattern), form) for mark, pattern, form in several]
    for tool, several in _DATES.items()
}


def started(tool: str, text: str) -> tuple[float, bool] | None:
    """Return when an output says that it was made, and whether in a known zone; None without.

    In seconds since the epoch; a date without a zone is taken as UTC, so that of two machines it
    can be off by hours, and within one night of the year by one among the logs of one machine.

    >>> started("imb_pingpong", "# Date                  : Fri Jun 27 02:00:00 2025")
    (1750989600.0, False)
    """
    for mark, pattern, form in _PATTERNS.get(tool.partition("_")[0], []):
        at = text.find(mark)
        while at >= 0:
            if match := pattern.match(text, text.rfind("\n", 0, at) + 1):
                if (seconds := _seconds(match[1], form)) is not None:
                    return seconds, not form or form == _GMT
                break
            line_end = text.find("\n", at)
            at = text.find(mark, line_end) if line_end >= 0 else -1
    return None


@lru_cache(maxsize=100)
def _seconds(said: str, form: str) -> float | None:
    """Return a date as seconds since the epoch, None if it is none."""
    said = re.sub(r"(?<=:) ", "", " ".join(said.split()))  # QE: " 4:45: 3"
    try:
        if not form:
            return float(said)
        return datetime.strptime(said, form).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None
