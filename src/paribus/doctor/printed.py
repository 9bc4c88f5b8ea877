"""What `paribus doctor` found, on a terminal: the worst first, with the fix for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paribus.core import percent
from paribus.report.printing import ascii_only, heading, item, line

if TYPE_CHECKING:
    from rich.console import Console

    from paribus.doctor.fitness import Finding, Fitness

STYLES = {"poor": "red", "fair": "yellow", "good": "green", "unknown": "dim"}
SIGNS = {"poor": ("✗", "x"), "fair": ("!", "!"), "unknown": ("?", "?"), "good": ("✓", "+")}
"""The sign of a grade on a terminal, and what stands for it where only ASCII is drawn."""

TITLES = {
    "poor": "Likely to distort measurements",
    "fair": "Reduces the resolution, or worth knowing",
    "unknown": "Unknown on this machine",
    "good": "Good",
}


def print_fitness(fitness: Fitness, console: Console) -> None:
    """Print the findings by grade; of what is not good, why it matters and the fix."""
    line(console, sentence(fitness), style="bold")
    for grade, title in TITLES.items():
        mine = [finding for finding in fitness.findings if finding.grade == grade]
        if mine:
            heading(console, title)
            for finding in mine:
                _print(finding, console)


def sentence(fitness: Fitness) -> str:
    """Return whether the machine is fit, and the smallest difference that it resolves."""
    poor = [finding.name for finding in fitness.findings if finding.grade == "poor"]
    text = (
        f"Not fit for measurements: {', '.join(poor)}."
        if poor
        else "Fit for measurements: no likely source of distortion was found."
    )
    if not fitness.resolution:
        return f"{text} The smallest detectable difference is unknown."
    worst = max(fitness.resolution, key=lambda label: fitness.resolution[label])
    share = fitness.resolution[worst]
    return f"{text} Differences below about {percent(share)} ({worst}) are not detectable here."


def _print(finding: Finding, console: Console) -> None:
    """Print a finding; what it means only where it is not good."""
    sign = f"{SIGNS[finding.grade][ascii_only(console)]} " if console.is_terminal else ""
    item(console, finding.found, style=STYLES[finding.grade], name=f"{sign}{finding.name}")
    if finding.grade in ("poor", "fair") and finding.means:
        item(console, finding.means, indent=6)
    if finding.fix:
        item(console, finding.fix, indent=6, name="fix")
