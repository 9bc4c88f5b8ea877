"""What launches took of energy, in sentences."""

from __future__ import annotations

from paribus.core import Energy, format_changes, format_value

TITLE = "Energy of a launch"

TITLES = {"rapl": "RAPL", "nvml": "NVML", "ipmi": "IPMI", "slurm": "Slurm"}
"""What a source is called."""

BASIS = {
    "rapl": "RAPL: processor packages and memory of the launch's nodes, whatever else ran there;"
    " GPUs, networks and power supplies are not in it",
    "nvml": "NVML: all NVIDIA GPUs of the launch's nodes, whatever else ran there",
    "ipmi": "IPMI: the launch's nodes as a whole, as their BMCs say: the mean power over the last"
    " part of a launch, at least a third of it, times its duration",
    "slurm": "Slurm: the launch's nodes, as its plug-in acct_gather_energy counts them"
    " (ConsumedEnergyRaw)",
}
"""What each source counts."""

DENIED = (
    "not known, for only root may read /sys/class/powercap/*/energy_uj (CVE-2020-8694); ask for"
    " read permission there, such as by a udev rule"
)

WORDS = {"less": "takes less", "more": "takes more", "equal": "takes as much"}
"""What a verdict on energy is called; the others keep their word."""


def said(one: Energy) -> str:
    """Return the verdict, the change of the energy with its interval, and both values."""
    middle, least, most = format_changes((one.ratio, one.low, one.high))
    ours, theirs = map(format_value, one.joules)
    word = WORDS.get(one.word, one.word)
    what = f"{one.benchmark} ({TITLES[one.source]})"
    return f"{what}: {word}, {middle} ({least} to {most}): {theirs} J, against {ours} J"
