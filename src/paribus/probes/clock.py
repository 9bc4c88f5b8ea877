"""The clock that programs read, and whether the time of day is kept by a server."""

from __future__ import annotations

from typing import Any

from paribus.probes.archive import Archive, Unknown
from paribus.probes.values import number, read_all

_CLOCK = "/sys/devices/system/clocksource/clocksource0/"
_FILES = {
    "clock.source": _CLOCK + "current_clocksource",
    "clock.sources": _CLOCK + "available_clocksource",
}


def clock_facts(archive: Archive) -> dict[str, Any]:
    """Return the clock source, whether the time is kept by a server, chrony's offset in s."""
    facts = read_all(archive, _FILES)
    if "/run/systemd/timesync/synchronized" in archive.lists.get("present", ()):
        return {**facts, "clock.synchronised": "yes"}
    tracking = archive.tool("chronyc")
    if isinstance(tracking, Unknown):
        return {**facts, "clock.synchronised": tracking}
    # chronyc -c tracking: id, name, stratum, reference time, system time offset, ..., leap status.
    cells = tracking.split(",")
    synchronised = "yes" if cells[-1].strip() == "Normal" else "no"
    offset = number(cells[4]) if len(cells) > 4 else Unknown.UNREADABLE
    return {**facts, "clock.synchronised": synchronised, "clock.offset_s": offset}
