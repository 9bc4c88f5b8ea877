"""An application's profile, and what a study predicts from it: names and sentences."""

from __future__ import annotations

from collections.abc import Mapping

from paribus.core import Kind, Prediction, format_changes, percent
from paribus.words.lists import listed
from paribus.words.profiles import NAMES as KINDS

PARTS: Mapping[str, str] = {
    "messages_small": "small messages",
    "messages_middle": "middle messages",
    "messages_large": "large messages",
    "collectives_small": "small collectives",
    "collectives_middle": "middle collectives",
    "collectives_large": "large collectives",
    "one_sided": "one-sided",
    "storage": "I/O by MPI",
    "waiting": "waiting for several kinds",
    "other": "other MPI",
    "outside": "time outside MPI",
}
SIZES = "Small: up to 1 KiB; large: from 64 KiB on."

NOT_SEPARATED = "Compute and memory are not separated: the profiler reads no hardware counters."
STARVED = "other programs, or files, held it up; repeat the profile when nothing else is running."
LATE = "Time inside MPI includes waiting for ranks that come late."

TITLE = "Predicted from a profile, not measured"


def estimated(timed: float, error: float) -> str:
    """Return how exact a profile is of which not all calls were timed."""
    return (
        f"All calls were counted and {percent(timed)} timed: of short ones one of 32, by a draw."
        f" So times are estimates: a share is within {percent(error)} of the time of what"
        " timing all would give (95 %)."
    )


def said(one: Prediction) -> str:
    """Return what is predicted for the application in one arm."""
    middle, low, high = format_changes((one.ratio, one.low, one.high))
    change = f"{middle} ({low} to {high})"
    if one.word is not None:
        return f"{one.application}: {one.word}, time {change} (predicted)"
    known = percent(sum(part.share for part in one.parts if part.ratio is not None))
    missing = "; ".join(f"{PARTS[part.part]}, {percent(part.share)}" for part in one.unmeasured)
    start = f"{one.application}: no verdict (predicted). This study has no interval for {missing}."
    if not any(part.ratio is not None for part in one.parts):
        return start
    return f"{start} The other {known} alone change the time by {change}."


def basis(one: Prediction) -> str:
    """Return what a prediction rests on, and with which confidence."""
    kinds = dict.fromkeys(
        KINDS[Kind(kind)] for part in one.parts for kind in part.kinds if part.ratio is not None
    )
    rests = f"From {listed(list(kinds))}; confidence at least {percent(one.level)}. "
    return f"{rests if kinds else ''}{note(one)}{LATE}"


def note(one: Prediction) -> str:
    """Return that the study is of another program than the profile, "" where it is not."""
    if not one.programs:
        return ""
    return f"The study starts {listed(one.programs)}, but the profile is of `{one.command}`. "
