"""The energy of processor packages and memory, as RAPL counts it: microjoules that wrap around.

Source: linux, Documentation/power/powercap/powercap.rst. The zones core and uncore are parts of a
package, and psys has packages in it: none of them is added. Since CVE-2020-8694 only root may read
energy_uj.
"""

from __future__ import annotations

from typing import Any

from paribus.model import Facts
from paribus.probes.archive import Archive, Unknown
from paribus.probes.values import number

ENERGY = "load.energy."
"""What the counters of zones begin with, as facts."""

_ZONES = "/sys/class/powercap/"
FILES = ("name", "energy_uj", "max_energy_range_uj")


def energy_facts(archive: Archive) -> dict[str, Any]:
    """Return the counter of each package and each memory, and where it wraps, in microjoules."""
    facts: dict[str, Any] = {}
    for (zone,) in archive.matches(f"{_ZONES}*/name"):
        name = archive.text(f"{_ZONES}{zone}/name").strip()
        if zone.startswith("intel-rapl:") and (name.startswith("package") or name == "dram"):
            counter = archive.read(f"{_ZONES}{zone}/energy_uj")
            # `grep -s` on a node leaves out what it must not read.
            known = Unknown.DENIED if counter is Unknown.ABSENT else number(counter)
            facts[f"{ENERGY}{zone}.uj"] = known
            most = number(archive.read(f"{_ZONES}{zone}/max_energy_range_uj"))
            facts[f"{ENERGY}{zone}.most_uj"] = most
    return facts


def joules(before: Facts, after: Facts) -> float | None:
    """Return the energy from `before` to `after` of all zones, None where one is not known.

    A counter that is lower has wrapped around, once: at 200 W the usual range lasts 20 min.
    """
    total = 0.0
    counters = [key for key in after if key.startswith(ENERGY) and not key.endswith(".most_uj")]
    for key in counters:
        then, now = before.get(key), after[key]
        most = after.get(key.removesuffix("uj") + "most_uj")
        if not isinstance(then, int) or not isinstance(now, int):
            return None
        if now < then:
            if not isinstance(most, int) or then > most:
                return None
            now += most
        total += (now - then) / 1e6
    return total if counters else None
