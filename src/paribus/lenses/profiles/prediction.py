"""Forecasts: how long an application takes in an arm, without starting it there; always a range.

Where a study replayed the application's calls (benchmark `replay`), the ratio is that of the
replays, in which both arms compute for equal times; docs/profile.md has how far such forecasts were
off. A profile without a skeleton is *weighed*: the ratio is the sum over the parts of its time of
share x ratio of the part's kinds (kinds.py). Example: 0.8 x 1.0 outside MPI and 0.2 x 1.5 in
messages are 1.1, 10 % more time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from paribus.benchmarks import replay
from paribus.core import (
    Comparison,
    Finding,
    Judgement,
    Kind,
    Profile,
    Selection,
    Study,
    format_changes,
    percent,
    usable,
)
from paribus.lenses.profiles.kinds import NAMES
from paribus.report import export
from paribus.report.axes import COLOURS, Spec, layer, new_spec, tooltip
from paribus.report.figures import plain
from paribus.report.html import Figures
from paribus.report.markup import Html, join
from paribus.report.printing import heading, item
from paribus.report.rows import list_section
from paribus.report.stored import read_as
from paribus.report.wording import clean
from paribus.words.lists import listed

if TYPE_CHECKING:
    from rich.console import Console

MARGIN = 0.02
"""The margin of times in a study that sets none, as a share."""

APART = 0.15
"""How far ln of the time of a replay may be from the program's before a sentence says so."""

ERROR = 0.09, 0.1
"""How far ln of a forecast may be off: by the first, and by the second times ln of its own ratio.
From 12 cases on a noisy machine; docs/profile.md has the errors on others."""

_MESSAGES = (Kind.LATENCY, Kind.BANDWIDTH)
_COLLECTIVES = (Kind.SMALL_COLLECTIVES, Kind.LARGE_COLLECTIVES)
_COMPUTING = (Kind.MEMORY, Kind.COMPUTE)
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
    "outside": _COMPUTING,
}
"""The kinds between which the ratio of a part lies, all of which must be measured; () for none.
Middle sizes are between latency and bandwidth, time outside MPI between memory and compute."""


@dataclass(frozen=True, slots=True)
class Weighed:
    """A part of an application's time (core.PARTS), its `share`, and the `kinds` that it lies in.

    `ratio`, in [low, high], is that of times; None where the study has not an interval for each of
    these kinds.
    """

    part: str
    share: float
    kinds: tuple[str, ...]
    ratio: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Prediction:
    """The range of the ratio of an application's time in an arm to that in the reference.

    `given`: the range is narrow enough to be called a forecast, within the margin or beyond it on
    one side. `replayed`: it rests on a replay of the calls; else parts of the time without an
    interval count as unchanged. `level`: the least confidence of the measured intervals. `assumes`:
    sentences. `programs`: those that the study starts, where they are not the application.
    """

    arm: str
    application: str
    command: str
    ratio: float
    low: float
    high: float
    level: float
    parts: tuple[Weighed, ...]
    programs: tuple[str, ...] = ()
    given: bool = False
    replayed: bool = False
    assumes: tuple[str, ...] = ()
    word: None = None

    @property
    def unmeasured(self) -> tuple[Weighed, ...]:
        """The parts for which the study has no interval."""
        return tuple(part for part in self.parts if part.ratio is None)


def forecasts(
    judgement: Judgement,
    kinds: Sequence[Finding],
    nodes: Mapping[str, Comparison] = MappingProxyType({}),
    calls: str = "",
) -> Iterator[Prediction]:
    """Yield the forecast of each application that the study replayed, for each arm.

    With `calls` only those of the skeleton with these calls: two programs may have the same name.
    `nodes`: the ratio of times of the program on one node, by arm, for arms whose processors
    differ; without it computation lies between the ratios of memory and of arithmetic (`kinds`).
    """
    for selection in judgement.study.benchmarks:
        if selection.benchmark != replay.NAME or (asked := _asked(selection)) is None:
            continue
        if calls not in ("", selection.parameters["calls"]):
            continue
        for one in judgement.headlines:
            if one.benchmark == selection.label and one.decides and (known := usable(one)):
                computing = _computing(judgement, one.arm, kinds, nodes)
                found = _forecast(judgement, asked, one.arm, known, computing)
                unlike = _unlike(asked, one, judgement.reference)
                yield replace(found, assumes=(*found.assumes, *unlike))


def _asked(selection: Selection) -> Mapping[str, Any] | None:
    """Return the parameters of a replay; None where a plan of others has unusable ones."""
    try:
        return {
            key: replay.BENCHMARK.parameters[key].read(selection.parameters[key])
            for key in ("application", "calls", "machine", "seconds", "computing", "spread")
        }
    except (KeyError, ValueError):
        return None


def _unlike(asked: Mapping[str, Any], head: Finding, reference: str) -> Iterator[str]:
    """Yield a sentence if the replay took another time in the reference than the program did."""
    if head.reference_value is None:
        return
    ratio = head.reference_value.median / asked["seconds"]
    if ratio > 0 and abs(math.log(ratio)) > APART + asked["spread"]:
        yield f"In {reference} the replay took {ratio:.2g} times as long as the program itself."


def _computing(
    judgement: Judgement,
    arm: str,
    kinds: Sequence[Finding],
    nodes: Mapping[str, Comparison],
) -> tuple[tuple[float, float] | None, str]:
    """Return the range of the ratio of computing times, None if unknown, and a sentence on it."""
    models = [judgement.facts.get(one, {}).get("cpu.model") for one in (judgement.reference, arm)]
    if arm in nodes:
        return (nodes[arm].low, nodes[arm].high), "Computation is scaled by the study on one node."
    if models[0] == models[1]:
        return (1.0, 1.0), ""
    ends = [c for f in kinds if f.arm == arm and f.benchmark in _COMPUTING and (c := usable(f))]
    if len(ends) < len(_COMPUTING):
        return None, "The processors differ, and memory or arithmetic was not measured."
    between = min(one.low for one in ends), max(one.high for one in ends)
    return between, "The processors differ: computation is scaled as memory or arithmetic."


def _forecast(
    judgement: Judgement,
    asked: Mapping[str, Any],
    arm: str,
    known: Comparison,
    computing: tuple[tuple[float, float] | None, str],
) -> Prediction:
    """Return the forecast for an arm: the replay's ratio `known`, with the computation scaled.

    `computing`: the ratios between which the computation scales, None if unknown, and why.
    """
    between, why = computing
    share, low, high = asked["computing"], *(between or (1.0, 1.0))
    # The replay computes for equal times: what these change by is added to its ratio.
    off = off_by(known.ratio, asked["spread"])
    ends = (
        max(known.low + share * (low - 1), 1e-9) / off,
        (known.high + share * (high - 1)) * off,
    )
    middle = math.sqrt(low * high)
    ratio = max(known.ratio + share * (middle - 1), 1e-9)
    mpi = Weighed("mpi", 1 - share, (), max(known.ratio - share, 0.0) / max(1 - share, 1e-9))
    where = asked["machine"] or "the machine of its profile"
    as_there = f"Assumption: computation takes as long as on {where}."
    return Prediction(
        arm=arm,
        application=asked["application"],
        command="",
        ratio=ratio,
        low=min(ends[0], ratio),
        high=max(ends[1], ratio),
        level=known.level,
        parts=(Weighed("outside", share, (), middle, low, high), mpi),
        given=between is not None and decided(*ends, margin_of(judgement.study)),
        replayed=True,
        assumes=tuple(filter(None, (as_there, why))),
    )


def off_by(ratio: float, spread: float) -> float:
    """Return the factor by which a replay's ratio may be too high or too low for the program's.

    `spread` is that of the profile's own launches, as a share.
    """
    return math.exp(math.hypot(ERROR[0] + ERROR[1] * abs(math.log(ratio)), spread))


def margin_of(study: Study) -> float:
    """Return the margin of times of a study, as a share."""
    return MARGIN if study.settings.margin is None else study.settings.margin


def decided(low: float, high: float, margin: float) -> bool:
    """Return whether a range of ratios lies on one side of the margin, or wholly within it."""
    least, most = 1 / (1 + margin), 1 + margin
    return low > most or high < least or least < low <= high < most


def predictions(study: Study, kinds: Sequence[Finding], profile: Profile) -> Iterator[Prediction]:
    """Yield the range of the time of `profile` for each arm, weighed by the findings on kinds."""
    sure = 1 - (1 - study.settings.confidence) / (len(study.arms) - 1)  # over all looks
    for arm in study.arms[1:]:
        own = {f.benchmark: f for f in kinds if f.arm == arm.name}
        known = {kind: replace(c, level=sure) for kind, f in own.items() if (c := usable(f))}
        yield replace(weigh(profile, known, arm.name), programs=_others(study, profile))


def weigh(profile: Profile, kinds: Mapping[str, Comparison], arm: str) -> Prediction:
    """Return a range for `profile` from the ratios of times of `kinds`; it is never `given`.

    A part without intervals counts as unchanged.
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
        assumes=(LATE,),
    )


def _part(part: str, share: float, kinds: Mapping[str, Comparison]) -> Weighed:
    """Return a part with the mean ratio of its kinds, and the range of all their intervals."""
    of = KINDS[part]
    if not of or not all(kind in kinds for kind in of):
        return Weighed(part, share, tuple(of))
    some = [kinds[kind] for kind in of]
    middle = math.exp(math.fsum(math.log(one.ratio) for one in some) / len(some))
    low, high = min(one.low for one in some), max(one.high for one in some)
    return Weighed(part, share, tuple(of), middle, low, high)


def _others(study: Study, profile: Profile) -> tuple[str, ...]:
    """Return the user's programs that the study starts; none if one is the profile's program."""
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

TITLE = "Forecast, not measured"


def said(one: Prediction) -> str:
    """Return the forecast for one arm in a sentence, or that there is none, and why."""
    middle, low, high = format_changes((one.ratio, one.low, one.high))
    if one.given:
        return f"{one.application}: time {middle} ({low} to {high}, forecast)"
    if not one.replayed and one.unmeasured:
        missing = "; ".join(f"{PARTS[part.part]}, {percent(part.share)}" for part in one.unmeasured)
        start = f"{one.application}: no forecast. This study has no interval for {missing}."
        known = percent(math.fsum(part.share for part in one.parts if part.ratio is not None))
        if len(one.unmeasured) == len(one.parts):
            return start
        return f"{start} The other {known} alone change the time by {low} to {high}."
    return f"{one.application}: no forecast; its time changes by {low} to {high}"


def basis(one: Prediction) -> str:
    """Return what a forecast rests on and assumes; where it is none, what would make it one."""
    kinds = dict.fromkeys(
        NAMES[Kind(kind)] for part in one.parts for kind in part.kinds if part.ratio is not None
    )
    rests = "Based on a replay of its MPI calls, with equal computation in both arms."
    if not one.replayed:
        of = listed(list(kinds))
        rests = f"From {of}; confidence at least {percent(one.level)}." if kinds else ""
    needs = "" if one.given else NEEDS[one.replayed]
    return " ".join(filter(None, (rests, note(one), *one.assumes, needs)))


NEEDS = {
    True: "To narrow the range, run the program itself (benchmark `command`).",
    False: "For a forecast, name a profile with a skeleton (`paribus profile -- CMD`) in the study:"
    " profile = FILE.",
}


def note(one: Prediction) -> str:
    """Return the warning that the study starts another program than the profile's, else ""."""
    if not one.programs:
        return ""
    return f"The study starts {listed(one.programs)}, but the profile is of `{one.command}`."


# --- reports ---------------------------------------------------------------------------------

TIMES = ("computation", "in MPI")


def drawn(judgement: Judgement, some: Sequence[Prediction]) -> Iterator[tuple[str, Spec]]:
    """Yield the name of a file and the figure for each application that was replayed."""
    for name in dict.fromkeys(one.application for one in some if one.replayed):
        own = [one for one in some if one.application == name and one.replayed]
        yield f"forecast-{plain(name)}", figure(judgement, own)


def figure(judgement: Judgement, some: Sequence[Prediction]) -> Spec:
    """Return the bars of one application: time over that in the reference, with each range."""
    first = some[0]
    rows = list(_bars(clean(judgement.reference), [part.share for part in first.parts]))
    ranges = []
    for one in some:
        arm = clean(one.arm)
        rows += _bars(arm, [part.share * (part.ratio or 0.0) for part in one.parts])
        middle, low, high = format_changes((one.ratio, one.low, one.high))
        shown = f"{middle} ({low} to {high})"
        ranges.append({"arm": arm, "low": one.low, "high": one.high, "shown": shown})
    described = "; ".join(f"{one['arm']}: {one['shown']}" for one in ranges)
    title = f"{clean(first.application)}: {TITLE[0].lower()}{TITLE[1:]}"
    spec = new_spec(title, described)
    names = [clean(judgement.reference), *(one["arm"] for one in ranges)]
    axis = {"title": f"time, {names[0]} = 1", "format": "~g"}
    x: Spec = {"field": "from", "type": "quantitative", "axis": axis, "scale": {"zero": True}}
    y: Spec = {"field": "arm", "type": "nominal", "sort": names, "title": None}
    colour = {
        "color": {
            "field": "kind",
            "type": "nominal",
            "scale": {"domain": list(TIMES), "range": [COLOURS[0], COLOURS[1]]},
            "title": None,
        }
    }
    tips = tooltip(arm="arm", kind="part", shown="share of the reference's time")
    whisker = {"y": y, "x": {**x, "field": "low"}, "x2": {"field": "high"}}
    bars = layer(
        {"type": "bar", "height": 16}, {"y": y, "x": x, "x2": {"field": "to"}}, colour | tips
    )
    rule = layer(
        {"type": "rule", "strokeWidth": 2, "color": COLOURS[5]},
        whisker,
        tooltip(arm="arm", shown="forecast"),
    )
    layers = [bars | {"data": {"values": rows}}, rule | {"data": {"values": ranges}}]
    return spec | {"height": 28 * len(names), "layer": layers}


def _bars(arm: str, lengths: Sequence[float]) -> Iterator[Spec]:
    """Yield the bars of an arm, computation and MPI, end to end."""
    at = 0.0
    for kind, length in zip(TIMES, lengths, strict=True):
        yield {"arm": arm, "kind": kind, "from": at, "to": at + length, "shown": f"{length:.3g}"}
        at += length


def print_predictions(some: Sequence[Prediction], console: Console) -> None:
    """Print the forecasts, one arm after the other."""
    heading(console, TITLE)
    for one in some:
        item(console, said(one), name=one.arm)
        item(console, basis(one), style="dim")


def html_predictions(judgement: Judgement, some: Sequence[Prediction], figures: Figures) -> Html:
    """Return the section on forecasts."""
    lines = [(one.arm, said(one), f" {basis(one)}") for one in some]
    pictures = [figures.add(spec, spec["title"]) for _, spec in drawn(judgement, some)]
    return join(list_section(TITLE, "Forecast", lines), *pictures)


def forecast_json(one: Prediction) -> dict[str, Any]:
    """Return a forecast as JSON values; `text` is for people."""
    return {
        **{key: getattr(one, key) for key in ("arm", "application", "command")},
        "predicted": True,
        **export.plain(one),
        "text": f"{said(one)} {basis(one)}",
    }


def from_json(table: Mapping[str, Any]) -> Prediction:
    """Return a forecast that `forecast_json` wrote; raises ValueError for anything else."""
    found: Prediction = read_as(Prediction, table)
    if found.replayed and len(found.parts) != len(TIMES):
        raise ValueError("the forecast of a replay has computation and MPI")
    return found
