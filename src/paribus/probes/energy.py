"""What a machine says of the energy that it takes: processors, GPUs, and all of it.

Processor packages and memory by RAPL: microjoules that wrap around (linux,
Documentation/power/powercap/powercap.rst). The zones core and uncore are parts of a package, and
psys has packages in it: none of them is added. Since CVE-2020-8694 only root may read energy_uj.

GPUs by NVML: gpu_counters.py. A whole machine by IPMI: DCMI's mean power (DCMI 1.5, 6.6.1), asked
for after a launch, over the longest of the BMC's periods that lies within it. Nothing is asked
during a launch, for the BMC interrupts the processors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paribus.core import OF_WORK, Facts, Source
from paribus.probes.archive import Archive, Unknown
from paribus.probes.values import number

ENERGY = "load.energy."
"""How the facts begin that are counters of energy."""

JOULES: Mapping[Source, str] = {
    "rapl": "launch.energy_j",
    "nvml": "launch.energy.nvml_j",
    "ipmi": "launch.energy.ipmi_j",
    "slurm": "launch.energy.slurm_j",
}
"""The fact of a launch that holds the joules that its nodes took meanwhile, by source."""


def work_of(fact: str) -> str:
    """Return the unit of a fact that holds joules per unit of work, "" for any other fact."""
    return fact.removeprefix(OF_WORK) if fact.startswith(OF_WORK) else ""


_ZONES = "/sys/class/powercap/"
FILES = ("name", "energy_uj", "max_energy_range_uj")

_GPU = f"{ENERGY}gpu."
_POWER = f"{ENERGY}ipmi."

GPUS, BMC = "/dev/nvidiactl", "/dev/ipmi0"
"""Files of a machine that has GPUs of NVIDIA, and of one that can ask its BMC."""

LEAST_S = 5
"""Seconds of the shortest period over which a BMC shows the mean power."""

LEAST_PART = 3
"""The period of a mean is at least the launch's duration divided by this."""

GPU_SCRIPT = Path(__file__).with_name("gpu_counters.py")
"""Prints the counters of GPUs, one a line, PATH:VALUE, as `grep -H` prints a file."""

POWER = """\
power() { # power SECONDS: the mean power over a part of the last SECONDS, as lines of files
    [ -e "$bmc" ] && [ "$1" -ge 5 ] || return 0
    for one in 3600:1_hour 1800:30_min 900:15_min 420:7_min 180:3_min 60:1_min 30:30_sec \\
        15:15_sec 5:5_sec; do
        span=${one%:*}
        [ "$span" -gt "$1" ] || break
    done
    # Not every BMC has the mode of several periods.
    said=$(timeout 5 ipmitool dcmi power reading "${one#*:}" 2>/dev/null) || {
        span=
        said=$(timeout 5 ipmitool dcmi power reading 2>/dev/null) || return 0
    }
    printf '%s\\n' "$said" | sed 's,^,/ipmi/power:,'
    printf '/ipmi/span:%s\\n' "$span"
}
"""
"""A function of sh that asks the BMC, where the variable `bmc` says that it is reached."""


def energy_facts(archive: Archive) -> dict[str, Any]:
    """Return the counters of packages, memory and GPUs in microjoules, and the mean power."""
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
    for (gpu,) in archive.matches("/gpu/*"):
        used = number(archive.read(f"/gpu/{gpu}"))
        facts[f"{_GPU}{gpu}.uj"] = used * 1000 if isinstance(used, int) else Unknown.UNSUPPORTED
    return facts | _power(archive.text("/ipmi/power"), archive.text("/ipmi/span"))


def _power(output: str, span: str) -> dict[str, Any]:
    """Return the mean power in W and its period in s, from `ipmitool dcmi power reading`.

    `span` is the period in s that was asked for, "" for the BMC's own. The output is not split into
    lines: where a BMC states no time, ipmitool 1.8.19 writes no end of line behind it.
    """
    mean = re.search(r"Average power reading over sample period: +(\d+) Watts", output)
    period = re.search(r"Sampling period: +(\d+) Seconds", output)
    seconds = int(span) if span.isdecimal() else int(period[1]) if period else 0
    if mean is None or not seconds or not re.search(r"reading state is: +activated", output):
        return {}
    return {f"{_POWER}w": int(mean[1]), f"{_POWER}s": seconds}


def joules(before: Facts, after: Facts, wall_s: float) -> dict[Source, float]:
    """Return the joules that a launch of `wall_s` seconds took, by each source that knows them.

    A counter of RAPL that is lower after the launch has wrapped around, once: at 200 W the usual
    range lasts 20 min. One of a GPU is lower where its driver was loaded anew: then GPUs' energy is
    unknown.
    """
    counters = [key for key in after if key.startswith(ENERGY) and key.endswith(".uj")]
    gpus = [key for key in counters if key.startswith(_GPU)]
    packages = [key for key in counters if key not in gpus]
    found: dict[Source, float | None]
    found = {"rapl": _grown(before, after, packages), "nvml": _grown(before, after, gpus)}
    mean, period = after.get(f"{_POWER}w"), after.get(f"{_POWER}s")
    if mean and period and wall_s / LEAST_PART <= period <= wall_s:
        found["ipmi"] = mean * wall_s
    return {source: used for source, used in found.items() if used is not None}


def _grown(before: Facts, after: Facts, counters: list[str]) -> float | None:
    """Return by how many joules all `counters` grew; None where one is unknown, or without any."""
    total = 0.0
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


def summed(machines: Mapping[str, Mapping[Source, float]]) -> dict[Source, float]:
    """Return the joules of all machines together, by each source that all of them have."""
    if not machines:
        return {}
    by_source = [*machines.values()]
    shared = set(by_source[0]).intersection(*by_source[1:])
    return {
        source: sum(used[source] for used in by_source)
        for source in by_source[0]
        if source in shared
    }
