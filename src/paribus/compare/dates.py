"""When a tool says that it ran: the dates that outputs carry."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_C = r"(\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4})"
"""A date as ctime(3) writes it."""

_CTIME = "%a %b %d %H:%M:%S %Y"

_DATES: dict[str, tuple[tuple[str, str], ...]] = {
    "imb": ((rf"^# Date +: {_C}", _CTIME),),
    "hpl": ((rf"start time {_C}", _CTIME),),
    "hpcc": ((r"^Current time \((\d{9,11})\) is ", ""),),
    "ior": ((rf'^"?Began"? *: *"?{_C}', _CTIME), (rf'"Began": *"{_C}"', _CTIME)),
    "mdtest": ((r"started at (\d\d/\d\d/\d{4} \d\d:\d\d:\d\d) --", "%m/%d/%Y %H:%M:%S"),),
    "iperf3": (
        (r'"timesecs":\s*(\d{9,11})\b', ""),
        (r"^Time: \w{3}, (\d\d \w{3} \d{4} \d\d:\d\d:\d\d) ", "%d %b %Y %H:%M:%S"),
    ),
    "fio": ((r'"timestamp" ?: ?(\d{9,11})\b', ""), (rf"pid=\d+: {_C}", _CTIME)),
    "qe": ((r"starts on +(\d+\w{3}\d{4} at [ \d]\d:[ \d]\d:[ \d]\d)", "%d%b%Y at %H:%M:%S"),),
    "vasp": ((r"date (\d{4}\.\d\d\.\d\d +\d\d:\d\d:\d\d)", "%Y.%m.%d %H:%M:%S"),),
    "gromacs": (
        (rf"^Log file opened on {_C}", _CTIME),
        (rf"^Started mdrun on rank 0 {_C}", _CTIME),
    ),
    "pynamic": ((r"run on (\d\d/\d\d/\d\d \d\d:\d\d:\d\d) with", "%m/%d/%y %H:%M:%S"),),
}
"""Of a tool, or its family: where its date stands, and how it is written ("": in seconds)."""

_PATTERNS = {
    tool: [(re.compile(pattern, re.M), form) for pattern, form in several]
    for tool, several in _DATES.items()
}


def started(tool: str, text: str) -> float | None:
    """Return when an output says that it was made, None if it does not say so.

    In seconds since the epoch; a date without a zone is taken as UTC, so that of two machines it
    can be off by hours, but not among the logs of one.

    >>> started("imb_pingpong", "# Date                  : Fri Jun 27 02:00:00 2025")
    1750989600.0
    """
    for pattern, form in _PATTERNS.get(tool.partition("_")[0], []):
        if match := pattern.search(text):
            said = re.sub(r"(?<=:) ", "", " ".join(match[1].split()))  # QE: " 4:45: 3"
            try:
                if not form:
                    return float(said)
                return datetime.strptime(said, form).replace(tzinfo=UTC).timestamp()
            except ValueError:
                continue
    return None
