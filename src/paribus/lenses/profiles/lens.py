"""Advice by kind of application, and forecasts: on a terminal, in HTML, and as JSON values.

kinds.py has the findings on kinds, prediction.py the forecasts, which is loaded only for these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from paribus.core import Finding, Judgement, Kind, Lens, Profile, Seen, slowness
from paribus.lenses.profiles import kinds
from paribus.report import first, tables
from paribus.report.axes import Spec
from paribus.report.html import Figures
from paribus.report.markup import Html, element, escape, forest_of, join
from paribus.report.printing import heading, item
from paribus.report.wording import clean, kind_of
from paribus.words.lists import listed

if TYPE_CHECKING:
    from rich.console import Console

    from paribus.lenses.profiles.prediction import Prediction


class Rows(NamedTuple):
    """Findings on kinds of application, whose `benchmark` is a Kind, and forecasts by arm."""

    kinds: tuple[Finding, ...]
    predictions: tuple[Prediction, ...] = ()


def judge(seen: Seen) -> Rows | None:
    """Return the findings on kinds, and the forecasts of applications with a profile."""
    return _predicted(seen.judgement, kinds.kinds_of(seen), seen.plan.study.profile)


def predicted(judgement: Judgement, profile: Profile) -> Judgement:
    """Return `judgement` with the forecasts for the application of `profile`."""
    study = replace(judgement.study, profile=replace(profile, skeleton=None))
    rows = judgement.lenses.get("profiles", Rows(()))
    lenses = {**judgement.lenses, "profiles": _predicted(judgement, rows.kinds, profile)}
    return replace(judgement, study=study, lenses=lenses)


def _predicted(
    judgement: Judgement, found: tuple[Finding, ...], profile: Profile | None
) -> Rows | None:
    """Return the kinds, the forecasts of what was replayed, and the ranges of another `profile`.

    None without any of them.
    """
    if profile is None and not any(one.benchmark == "replay" for one in judgement.study.benchmarks):
        return Rows(found) if found else None
    from paribus.lenses.profiles.prediction import forecasts, predictions

    replayed = tuple(forecasts(judgement, found))
    own = profile.skeleton.calls if profile and profile.skeleton else None
    known = own is not None and any(forecasts(judgement, found, calls=own))
    others = predictions(judgement.study, found, profile) if profile and not known else ()
    rows = Rows(found, (*replayed, *others))
    return rows if any(rows) else None


FEWEST = 2
"""The fewest kinds that are shown: one alone would repeat the headline."""


def _of_arm(rows: Rows, arm: str) -> list[Finding]:
    """Return the kinds that were measured in an arm; none where they are too few for advice."""
    found = [one for one in rows.kinds if one.arm == arm]
    return found if len(found) >= FEWEST else []


def _missing(found: Sequence[Finding]) -> str:
    """Return the sentence that names the kinds that were not measured."""
    measured = {one.benchmark for one in found}
    return kinds.not_measured(kind for kind in Kind if kind not in measured)


def _texts(one: Finding) -> tuple[str, str]:
    """Return the verdict on a kind, and the names of the benchmarks that it rests on."""
    return kinds.said(one), listed(one.verdict.figures["benchmarks"], 5)


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
            text = f"{_missing(found)} {kinds.CAUTION}".strip()
            more = element("summary", "What is not measured")
            parts += [
                element("h2", escape(f"{kinds.TITLE}: {arm.name}")),
                _forest(found),
                element("details", more, element("p", escape(text))),
            ]
    return element("section", *parts, aria_label="Advice") if parts else Html("")


def _forest(found: Sequence[Finding]) -> Html:
    """Return a table, a row for each kind: its verdict, and how many times as slow it is, drawn."""
    sizes = [(one, slowness(one)) for one in found]
    scale = first.Scale((one.margin, size) for one, size in sizes)
    head = (
        (first.axis(scale), "axis"),
        (Html("Times as slow"), "number"),
    )
    rows = []
    for one, size in sizes:
        name, _, cases = kinds.NAMES[Kind(one.benchmark)].partition(" (")
        text, of = _texts(one)
        title = f"{f'{cases[:-1]}; ' if cases else ''}from {of}: {text}"
        kind = kind_of(one.verdict.word)
        cells = (
            element("td", tables.chip(one.verdict.word, text)),
            element("td", first.bar(scale, one.margin, [(size, kind)]), kind="axis"),
            element("td", tables.ratio_of(size) if size else "", kind="number"),
        )
        named = element("th", escape(name), scope="row", kind="text", title=title)
        rows.append(element("tr", named, *cells))
    return forest_of("Kind", "How many times as slow each kind is", head, rows)


def print_short(judgement: Judgement, rows: Rows, console: Console) -> None:
    """Print a line for each forecast that rests on a replay."""
    replayed = [one for one in rows.predictions if one.replayed]
    if replayed:
        from paribus.lenses.profiles.prediction import said

        for one in replayed:
            item(console, said(one), name=one.arm)


# --- the lens --------------------------------------------------------------------------------


def _text(judgement: Judgement, rows: Rows, console: Console) -> None:
    _print_kinds(judgement, rows, console)
    if rows.predictions:
        from paribus.lenses.profiles.prediction import print_predictions

        print_predictions(rows.predictions, console)


def _html(judgement: Judgement, rows: Rows, figures: Figures) -> Html:
    advice = _html_kinds(judgement, rows)
    if not rows.predictions:
        return advice
    from paribus.lenses.profiles.prediction import html_predictions

    return join(advice, html_predictions(judgement, rows.predictions, figures))


def to_json(judgement: Judgement, rows: Rows) -> dict[str, Any]:
    """Return advice and predictions as JSON values."""
    table: dict[str, Any] = {"advice": _advice(judgement, rows), "predictions": []}
    if rows.predictions:
        from paribus.lenses.profiles.prediction import forecast_json

        table["predictions"] = [forecast_json(one) for one in rows.predictions]
    return table


def _advice(judgement: Judgement, rows: Rows) -> list[dict[str, Any]]:
    """Return the advice as JSON values; the key `said` is None for kinds that were not measured."""
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
    """Return the stored rows; raises ValueError for a finding on an unknown arm or kind."""
    from paribus.report import stored

    found = stored.findings(table, "profiles", judgement.study)
    for one in found:
        Kind(one.benchmark)
        stored.read_as(Sequence[str], one.verdict.figures["benchmarks"])
    forecasts: tuple[Prediction, ...] = ()
    if table["predictions"]:
        from paribus.lenses.profiles.prediction import from_json as forecast_of

        forecasts = tuple(map(forecast_of, table["predictions"]))
    return Rows(found, forecasts) if found or forecasts else None


def _figures(judgement: Judgement, rows: Rows) -> Iterable[tuple[str, Spec]]:
    if not rows.predictions:
        return ()
    from paribus.lenses.profiles.prediction import drawn

    return drawn(judgement, rows.predictions)


LENS = Lens(
    judge=judge,
    to_json=to_json,
    from_json=from_json,
    text=_text,
    html=_html,
    figures=_figures,
    short=print_short,
    findings=lambda rows: rows.kinds,
)
