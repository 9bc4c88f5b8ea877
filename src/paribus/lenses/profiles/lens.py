"""Advice by kind of application, and predictions: on a terminal, in HTML, and as JSON values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from paribus.core import Finding, Judgement, Kind, Lens, Profile, Seen, format_changes
from paribus.lenses.profiles import kinds, prediction
from paribus.lenses.profiles.prediction import TITLE, Prediction, forecasts, predictions
from paribus.report import export, first, tables
from paribus.report.axes import COLOURS, Spec, layer, new_spec, tooltip
from paribus.report.effects import slowness
from paribus.report.html import Figures
from paribus.report.markup import Html, element, escape, forest_of, join, list_section
from paribus.report.printing import heading, item
from paribus.report.wording import DECIDED, change_text, clean, listing

if TYPE_CHECKING:
    from rich.console import Console


KINDS = ("computation", "in MPI")


def drawn(judgement: Judgement, some: Sequence[Prediction]) -> Iterator[tuple[str, Spec]]:
    """Yield a figure for each application that was replayed, with its name."""
    from paribus.report.figures import plain

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
            "scale": {"domain": list(KINDS), "range": [COLOURS[0], COLOURS[1]]},
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
    at = 0.0
    for kind, length in zip(KINDS, lengths, strict=True):
        yield {"arm": arm, "kind": kind, "from": at, "to": at + length, "shown": f"{length:.3g}"}
        at += length


class Rows(NamedTuple):
    """Findings on kinds of application (`benchmark` is a reasons.Kind), and predictions by arm."""

    kinds: tuple[Finding, ...]
    predictions: tuple[Prediction, ...] = ()


def judge(seen: Seen) -> Rows | None:
    """Return what launches mean for kinds of application, and for applications with a profile."""
    return _predicted(seen.judgement, kinds.kinds_of(seen), seen.plan.study.profile)


def predicted(judgement: Judgement, profile: Profile) -> Judgement:
    """Return `judgement` with what it says of the application of `profile`, by arm."""
    study = replace(judgement.study, profile=replace(profile, skeleton=None))
    rows = judgement.lenses.get("profiles", Rows(()))
    lenses = {**judgement.lenses, "profiles": _predicted(judgement, rows.kinds, profile)}
    return replace(judgement, study=study, lenses=lenses)


def _predicted(
    judgement: Judgement, found: tuple[Finding, ...], profile: Profile | None
) -> Rows | None:
    """Return forecasts of what was replayed, and the ranges of another `profile`."""
    replayed = tuple(forecasts(judgement, found))
    own = profile.skeleton.calls if profile and profile.skeleton else None
    known = own is not None and any(forecasts(judgement, found, calls=own))
    others = predictions(judgement.study, found, profile) if profile and not known else ()
    rows = Rows(found, (*replayed, *others))
    return rows if any(rows) else None


FEWEST = 2
"""Kinds from which on there is something to choose by: one alone is the headline again."""


def _of_arm(rows: Rows, arm: str) -> list[Finding]:
    """Return the kinds that were measured in an arm; none where they are too few for advice."""
    found = [one for one in rows.kinds if one.arm == arm]
    return found if len(found) >= FEWEST else []


def _missing(found: Sequence[Finding]) -> str:
    """Return which kinds were not measured."""
    measured = {one.benchmark for one in found}
    return kinds.not_measured(kind for kind in Kind if kind not in measured)


def _texts(one: Finding) -> tuple[str, str]:
    """Return what a finding says, and what it rests on."""
    return kinds.said(one), listing(one.verdict.figures["benchmarks"])


def _print_kinds(judgement: Judgement, rows: Rows, console: Console) -> None:
    """Print the advice for each arm: a line for each kind that was measured."""
    arms = [one.name for one in judgement.study.arms[1:]]
    for name, then in zip_longest(arms, arms[1:], fillvalue=""):
        if found := _of_arm(rows, name):
            heading(console, f"{kinds.TITLE}: {clean(name)}")
            for one in found:
                text, of = _texts(one)
                item(console, f"{text}; from {of}", name=kinds.NAMES[Kind(one.benchmark)])
            # Mostly all arms lack the same: then one line says so.
            if not then or _missing(_of_arm(rows, then)) != _missing(found):
                item(console, f"{_missing(found)} {kinds.CAUTION}".strip(), style="dim")


def _html_kinds(judgement: Judgement, rows: Rows) -> Html:
    """Return the section on kinds, empty where there is no advice."""
    parts = []
    for arm in judgement.study.arms[1:]:
        found = _of_arm(rows, arm.name)
        if found:
            said = f"{_missing(found)} {kinds.CAUTION}".strip()
            more = element("summary", "What is not measured")
            parts += [
                element("h2", escape(f"{kinds.TITLE}: {arm.name}")),
                _forest(found),
                element("details", more, element("p", escape(said))),
            ]
    return element("section", *parts, aria_label="Advice") if parts else Html("")


def _forest(found: Sequence[Finding]) -> Html:
    """Return a row a kind: its verdict, and how many times as slow it is, drawn on one axis."""
    sizes = [(one, slowness(one)) for one in found]
    scale = first.Scale((one.margin, size) for one, size in sizes)
    head = (
        (first.axis(scale), "axis"),
        (Html("Time"), "number"),
    )
    rows = []
    for one, size in sizes:
        name, _, cases = kinds.NAMES[Kind(one.benchmark)].partition(" (")
        text, of = _texts(one)
        title = f"{f'{cases[:-1]}; ' if cases else ''}from {of}: {text}"
        kind = one.verdict.word.name.lower() if one.verdict.word in DECIDED else "open"
        cells = (
            element("td", tables.chip(one.verdict.word, text)),
            element("td", first.bar(scale, one.margin, [(size, kind)]), kind="axis"),
            element("td", escape(change_text(one)), kind="number"),
        )
        named = element("th", escape(name), scope="row", kind="text", title=title)
        rows.append(element("tr", named, *cells))
    return forest_of("Kind", "How much longer each kind takes", head, rows)


def print_predictions(some: Sequence[Prediction], console: Console) -> None:
    """Print what is forecast, an arm after the other."""
    if some:
        heading(console, prediction.TITLE)
    for one in some:
        item(console, prediction.said(one), name=one.arm)
        item(console, prediction.basis(one), style="dim")


def _html_predictions(judgement: Judgement, rows: Rows, figures: Figures) -> Html:
    """Return the section on forecasts, empty where there is none."""
    lines = [
        (one.arm, prediction.said(one), f" {prediction.basis(one)}") for one in rows.predictions
    ]
    pictures = [figures.add(spec, spec["title"]) for _, spec in drawn(judgement, rows.predictions)]
    return join(list_section(prediction.TITLE, "Forecast", lines), *pictures)


def print_short(judgement: Judgement, rows: Rows, console: Console) -> None:
    """Print a line for each forecast of what was replayed."""
    for one in rows.predictions:
        if one.replayed:
            item(console, prediction.said(one), name=one.arm)


# --- the lens --------------------------------------------------------------------------------


def _text(judgement: Judgement, rows: Rows, console: Console) -> None:
    _print_kinds(judgement, rows, console)
    print_predictions(rows.predictions, console)


def _html(judgement: Judgement, rows: Rows, figures: Figures) -> Html:
    return join(_html_kinds(judgement, rows), _html_predictions(judgement, rows, figures))


def to_json(judgement: Judgement, rows: Rows) -> dict[str, Any]:
    """Return advice and predictions as JSON values."""
    return {
        "advice": _advice(judgement, rows),
        "predictions": [forecast_json(one) for one in rows.predictions],
    }


def forecast_json(one: Prediction) -> dict[str, Any]:
    """Return a forecast as JSON values; `text` is for people."""
    return {
        **{key: getattr(one, key) for key in ("arm", "application", "command")},
        "predicted": True,
        **export.plain(one),
        "text": f"{prediction.said(one)} {prediction.basis(one)}",
    }


def _advice(judgement: Judgement, rows: Rows) -> list[dict[str, Any]]:
    """Return the advice as JSON values; `said` is for people, None for what was not measured."""
    found = []
    for arm in judgement.study.arms[1:]:
        own = {one.benchmark: one for one in _of_arm(rows, arm.name)}
        for kind in Kind if own else ():
            one = own.get(kind)
            said = kinds.said(one) if one else None
            name = {"kind": kind.value, "name": kinds.NAMES[kind]}
            found.append({"arm": arm.name, **name, "said": said})
    return found


def from_json(table: Mapping[str, Any], judgement: Judgement) -> Rows | None:
    """Return both; raises ValueError for a finding of no such arm or kind."""
    from paribus.report import stored

    found = stored.findings(table, "profiles", judgement.study)
    for one in found:
        Kind(one.benchmark)
        stored.read_as(Sequence[str], one.verdict.figures["benchmarks"])
    rows = Rows(found, tuple(stored.read_as(Prediction, one) for one in table["predictions"]))
    if any(one.replayed and len(one.parts) != len(KINDS) for one in rows.predictions):
        raise ValueError("the forecast of a replay has computation and MPI")
    return rows if any(rows) else None


LENS = Lens(
    judge=judge,
    to_json=to_json,
    from_json=from_json,
    text=_text,
    html=_html,
    figures=lambda judgement, rows: drawn(judgement, rows.predictions),
    short=print_short,
    findings=lambda rows: rows.kinds,
)
