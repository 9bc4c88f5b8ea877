"""The page on which a study is made: a form, and the study file that it writes beside it."""

from __future__ import annotations

from pathlib import Path

from paribus.core import Benchmark
from paribus.report.markup import Html, attribute, element, escape, join
from paribus.studyfile.shipping import question_of, shipped_studies
from paribus.web.making import FACTORS, benchmarks, found, values_here


def page(folder: Path) -> Html:
    """Return the page; studies are written into `folder`."""
    return join(
        element("h1", "New study"),
        element(
            "div",
            element("form", _questions(), _factor(), _benchmarks(), _plan(), id="fields"),
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
        )
        for name, one in FACTORS.items()
    ]
    first = next(iter(FACTORS.values())).example
    arms = [
        element(
            "div",
            element("label", f"{what} arm: name", _input(f"arm-{key}", key)),
            element("label", f"{what} arm: value", _input(f"value-{key}", value)),
        )
        for key, what, value in (("a", "Reference", first[0]), ("b", "Other", first[1]))
    ]
    return _group(
        "The one thing that differs",
        element("label", "Factor", element("select", *options, id="factor")),
        *arms,
        element("p", "", id="here", kind="small", role="status"),
    )


def _benchmarks() -> Html:
    layers: dict[str, list[Html]] = {}
    for one in benchmarks():
        layers.setdefault(one.layer, []).append(_box(one))
    first = next(iter(layers))
    parts = [
        element("details", element("summary", escape(layer)), *boxes, **_open(layer == first))
        for layer, boxes in layers.items()
    ]
    return _group("Benchmarks", *parts)


def _box(one: Benchmark) -> Html:
    here = found(one)
    state = " checked" if one.name == "latency" else "" if here else " disabled"
    return element(
        "label",
        Html(f'<input type="checkbox" name="benchmark" value="{attribute(one.name)}"{state}>'),
        escape(f" {one.name}: {one.summary}"),
        Html("") if here else element("small", escape(f"not here: {one.get}")),
    )


def _open(first: bool) -> dict[str, str]:
    return {"open": ""} if first else {}


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
        element("p", "", id="said", role="status"),
        element("label", "Name", _input("name", "study")),
        element("p", escape(f"It is written into {folder}"), kind="small"),
        element(
            "p",
            element("button", "Start", type="button", id="start", disabled=""),
            element("button", "Estimate its duration", type="button", id="estimate", disabled=""),
            element("button", "Download", type="button", id="download"),
            kind="buttons",
        ),
        element("pre", id="output", tabindex="0", hidden=""),
        kind="file",
    )


def _group(title: str, *parts: str) -> Html:
    return element("fieldset", element("legend", escape(title)), *parts)


def _input(name: str, value: str) -> Html:
    whole = element("input", type="text", id=name, value=value, autocomplete="off")
    return Html(whole.removesuffix("</input>"))
