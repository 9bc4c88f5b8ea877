"""What the layers of a study predict for one application: its profile weighs their ratios.

Expected time / reference = sum over parts of share x ratio, for a part that takes the share w of
the time and whose layer's ratio is r takes w r afterwards. The ends of the intervals are summed in
the same way: if every interval holds, so does the sum, hence (Bonferroni) with a confidence of at
least 1 - sum of what each may be wrong (docs/statistics-details.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from paribus.core import Comparison, Finding, Kind, Profile, Study, format_changes, percent, usable
from paribus.lenses.profiles.kinds import NAMES
from paribus.stats.verdict import word_of
from paribus.words.lists import listed

MARGIN = 0.02
"""Of a study that sets none: the margin of times."""

_MESSAGES = (Kind.LATENCY, Kind.BANDWIDTH)
_COLLECTIVES = (Kind.SMALL_COLLECTIVES, Kind.LARGE_COLLECTIVES)
KINDS: Mapping[str, tuple[Kind, ...]] = {
    "messages_small": (Kind.LATENCY,),
    "messages_middle": _MESSAGES,
    "messages_large": (Kind.BANDWIDTH,),
    "collectives_small": (Kind.SMALL_COLLECTIVES,),
    "collectives_middle": _COLLECTIVES,
    "collectives_large": (Kind.LARGE_COLLECTIVES,),
    "one_sided": (),
    "storage": (Kind.STORAGE,),
    "waiting": (*_MESSAGES, *_COLLECTIVES),
    "other": _COLLECTIVES,
    "outside": (Kind.MEMORY, Kind.COMPUTE),
}
"""The kinds between which the ratio of a part lies, all of which must be measured; () for none.
Middle sizes are between latency and bandwidth, time outside MPI between memory and compute."""


@dataclass(frozen=True, slots=True)
class Weighed:
    """A part of an application's time (design.PARTS), its `share`, and the kinds that it is of.

    The ratio of times is None where the study has no interval for all of these kinds.
    """

    part: str
    share: float
    kinds: tuple[str, ...]
    ratio: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Prediction:
    """What an arm's layers predict for an application: the ratio of its times, never measured.

    Without a `word` a part has no interval, and the ratio is the one if that part stays as it is.
    `level` is the least confidence; `programs` are those of the study if it starts others.
    """

    arm: str
    application: str
    command: str
    ratio: float
    low: float
    high: float
    level: float
    word: str | None
    parts: tuple[Weighed, ...]
    programs: tuple[str, ...] = ()

    @property
    def unmeasured(self) -> tuple[Weighed, ...]:
        return tuple(part for part in self.parts if part.ratio is None)


def predictions(study: Study, kinds: Sequence[Finding], profile: Profile) -> tuple[Prediction, ...]:
    """Return what the findings on `kinds` of application predict for `profile`, by arm."""
    margin = MARGIN if study.settings.margin is None else study.settings.margin
    found = []
    for arm in study.arms[1:]:
        own = {f.benchmark: f for f in kinds if f.arm == arm.name}
        known = {kind: c for kind, f in own.items() if (c := usable(f)) is not None}
        one = weigh(profile, known, arm.name, margin)
        found.append(replace(one, programs=_others(study, profile)))
    return tuple(found)


def weigh(profile: Profile, kinds: Mapping[str, Comparison], arm: str, margin: float) -> Prediction:
    """Return the prediction for `profile` from the ratios of times of `kinds`.

    Where a part is not measured, ratio and interval are those of the whole time if that part
    stays as it is, and there is no word.
    """
    parts = tuple(_part(part, w, kinds) for part, w in profile.shares.items() if w > 0)
    measured = [part for part in parts if part.ratio is not None]
    rest = math.fsum(part.share for part in parts if part.ratio is None)
    ratio, low, high = (
        rest + math.fsum(part.share * getattr(part, end) for part in measured)
        for end in ("ratio", "low", "high")
    )
    used = {kind for part in measured for kind in part.kinds}
    wrong = math.fsum(1 - kinds[kind].level for kind in used)
    return Prediction(
        arm=arm,
        application=profile.name,
        command=profile.command,
        parts=parts,
        ratio=ratio,
        low=low,
        high=high,
        level=max(1 - wrong, 0.0),
        word=None if len(measured) < len(parts) else word_of(low, high, margin),
    )


def _part(part: str, share: float, kinds: Mapping[str, Comparison]) -> Weighed:
    """Return a part with the ratio of its kind, or the range of the kinds that it is between."""
    of = KINDS[part]
    if not of or not all(kind in kinds for kind in of):
        return Weighed(part, share, tuple(of))
    some = [kinds[kind] for kind in of]
    middle = math.exp(math.fsum(math.log(one.ratio) for one in some) / len(some))
    low, high = min(one.low for one in some), max(one.high for one in some)
    return Weighed(part, share, tuple(of), middle, low, high)


def _others(study: Study, profile: Profile) -> tuple[str, ...]:
    """Return the user's programs that the study starts, where the profile names none of them."""
    argvs: list[Sequence[str]] = [arm.argv for arm in study.arms if arm.argv]
    argvs += [one.parameters["argv"] for one in study.benchmarks if one.parameters.get("argv")]
    programs = dict.fromkeys(Path(str(argv[0])).name for argv in argvs)
    words = {Path(word).name for word in profile.command.split()}
    return () if words & programs.keys() else tuple(programs)


# --- words -----------------------------------------------------------------------------------

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
LATE = "Time inside MPI includes waiting for ranks that come late."

TITLE = "Predicted from a profile, not measured"


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
        NAMES[Kind(kind)] for part in one.parts for kind in part.kinds if part.ratio is not None
    )
    rests = f"From {listed(list(kinds))}; confidence at least {percent(one.level)}. "
    return f"{rests if kinds else ''}{note(one)}{LATE}"


def note(one: Prediction) -> str:
    """Return that the study is of another program than the profile, "" where it is not."""
    if not one.programs:
        return ""
    return f"The study starts {listed(one.programs)}, but the profile is of `{one.command}`. "
