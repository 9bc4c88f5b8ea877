"""The page on which a study is made: a form, and the study file that it writes beside it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from paribus.core import Benchmark, format_seconds, grouped
from paribus.judge.evidence import launch_seconds
from paribus.report.markup import Html, element, escape, join
from paribus.studyfile.shipping import question_of, shipped_studies
from paribus.web.making import CLOSED, FACTORS, benchmarks, found, values_here

PRESETS = {
    "First look": ("latency",),
    "Messages": ("latency", "bandwidth", "message_rate"),
    "Node": ("triad", "random_access", "ep"),
    "Whole stack": ("latency", "allreduce", "triad", "conjugate_gradient"),
}
"""Choices of benchmarks that are compiled at first use: nothing need be installed."""

STACK = ("collective", "point to point", "memory", "compute")
"""Layers as the picture of a preset has them, from collectives down to the core."""

BLOCKS, ARMS = 60, 2
USUAL_S = 1.0
"""Seconds of a launch where none has been measured here."""


def page(folder: Path) -> Html:
    """Return the page; studies are written into `folder`, where others say what launches take."""
    took = {name: seconds for name, (seconds, _) in launch_seconds(folder).items()}
    return join(
        element("h1", "New study"),
        element(
            "div",
            element(
                "form",
                _questions(),
                _factor(),
                _presets(took),
                _benchmarks(took),
                _plan(),
                id="fields",
            ),
            _editor(folder),
            kind="editor",
            id="making",
        ),
    )


def _questions() -> Html:
    options = [element("option", "a question of my own", value="")]
    options += [
        element("option", escape(question_of(path)), value=name)
        for name, path in shipped_studies().items()
    ]
    return _group(
        "Question",
        element("label", "Start from", element("select", *options, id="template")),
        element("label", "Question", _input("question", "Which is faster?")),
    )


def _factor() -> Html:
    options = [
        element(
            "option",
            escape(one.asks),
            value=name,
            data_a=one.example[0],
            data_b=one.example[1],
            data_here=", ".join(values_here(name)),
            data_closed=str(name in CLOSED).lower(),
        )
        for name, one in FACTORS.items()
    ]
    arms = [
        element(
            "div",
            element("label", f"{what} arm: name", _input(f"arm-{key}", key)),
            element("label", f"{what} arm: value", _input(f"value-{key}", "", list="values")),
            element("select", id=f"choice-{key}", aria_label=f"{what} arm: value", hidden=""),
        )
        for key, what in (("a", "Reference"), ("b", "Other"))
    ]
    return _group(
        "The one thing that differs",
        element("label", "Factor", element("select", *options, id="factor")),
        *arms,
        element("datalist", id="values"),
        element("p", "", id="here", kind="small", role="status"),
    )


def _presets(took: Mapping[str, float]) -> Html:
    """Return cards that choose benchmarks, each with its layers drawn and the minutes at most."""
    cards = []
    layer_of = {one.name: one.layer for one in benchmarks()}
    for title, names in PRESETS.items():
        minutes = sum(took.get(name, USUAL_S) for name in names) * ARMS * BLOCKS / 60
        said = f"{', '.join(names)}; up to {max(1, round(minutes))} min"
        parts = _stack({layer_of[name] for name in names}), element("b", escape(title))
        text = *parts, element("small", escape(said))
        cards.append(element("button", *text, type="button", data_preset=",".join(names)))
    return element("div", *cards, kind="presets", role="group", aria_label="Choices of benchmarks")


def _stack(layers: Collection[str]) -> Html:
    """Return the layers of a platform as a pile, those that are measured filled."""
    said = ", ".join(layer for layer in STACK if layer in layers)
    slabs = (
        f'<rect y="{9 * row}" width="30" height="7" opacity="{1 if layer in layers else 0.15}"/>'
        for row, layer in enumerate(STACK)
    )
    return Html(
        f'<svg width="30" height="34" fill="currentColor" role="img" aria-label="{said}">'
        f"<title>{said}</title>{''.join(slabs)}</svg>"
    )


def _benchmarks(took: Mapping[str, float]) -> Html:
    """Return the benchmarks by layer; those that are not here are folded below the others."""
    layers = grouped((one.layer, one) for one in benchmarks())
    parts = []
    for layer, several in layers.items():
        here = [_box(one, took.get(one.name)) for one in several if found(one)]
        missing = [
            element(
                "li",
                element("b", one.name),
                f" {escape(one.summary)}",
                element("small", escape(one.get)),
            )
            for one in several
            if not found(one)
        ]
        said = f"{len(missing)} not here"
        rest = element("details", element("summary", said), element("ul", *missing))
        chosen = element("span", "", kind="chosen")
        title = element("summary", escape(f"{layer} ({len(here)}) "), chosen)
        opened = {"open": ""} if layer == next(iter(layers)) else {}
        parts.append(element("details", title, *here, rest if missing else "", **opened))
    return _group("Benchmarks", *parts)


def _box(one: Benchmark, took: float | None) -> Html:
    state = {"checked": ""} if one.name == "latency" else {}
    seconds = f"; {format_seconds(took)} a launch" if took else ""
    of = {"name": "benchmark", "value": one.name, "data_s": f"{took or USUAL_S:.3f}", **state}
    return element(
        "label",
        element("input", type="checkbox", **of),
        element("span", element("b", escape(one.name)), escape(f" {one.summary}{seconds}")),
        kind="choice",
    )


def _plan() -> Html:
    return _group(
        "Plan",
        element("label", "Margin within which arms count as equivalent", _input("margin", "2 %")),
        element("label", "Blocks at most (empty: 60)", _input("blocks", "")),
        element("label", "Time for launches (empty: no limit)", _input("budget", "")),
    )


def _editor(folder: Path) -> Html:
    return element(
        "div",
        element("label", "Study file", element("textarea", id="text", spellcheck="false")),
        element("label", "Name", _input("name", "study")),
        element("p", escape(f"It is written into {folder}"), kind="small"),
        element(
            "div",
            element("p", "", id="said", role="status"),
            element("button", "Start", type="button", id="start", disabled=""),
            element("button", "Estimate its duration", type="button", id="estimate", disabled=""),
            element("button", "Download", type="button", id="download"),
            kind="buttons ready",
        ),
        element("pre", id="output", tabindex="0", hidden=""),
        kind="file",
    )


def _group(title: str, *parts: str) -> Html:
    return element("fieldset", element("legend", escape(title)), *parts)


def _input(name: str, value: str, **more: str) -> Html:
    return element("input", type="text", id=name, value=value, autocomplete="off", **more)
