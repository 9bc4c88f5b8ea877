"""What launches took of energy, in sentences."""

from __future__ import annotations

from paribus.energy import Energy
from paribus.units import format_changes, format_value

TITLE = "Energy of a launch"

BASIS = (
    "processor packages and memory of the launch's nodes, whatever else ran there (RAPL); GPUs,"
    " networks and power supplies are not in it"
)

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
    return f"{one.benchmark}: {word}, {middle} ({least} to {most}): {theirs} J, against {ours} J"
