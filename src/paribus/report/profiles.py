"""Advice by kind of application: on a terminal, in HTML, and as JSON values."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from paribus.core import Finding, Judgement, Kind
from paribus.report.markup import Html, element, escape
from paribus.report.printing import heading, item
from paribus.report.wording import clean, listing
from paribus.words import profiles as words

if TYPE_CHECKING:
    from rich.console import Console

FEWEST = 2
"""Kinds from which on there is something to choose by: one alone is the headline again."""


def of_arm(judgement: Judgement, arm: str) -> list[Finding]:
    """Return the kinds that were measured in an arm; none where they are too few for advice."""
    found = [one for one in judgement.profiles if one.arm == arm]
    return found if len(found) >= FEWEST else []


def missing(found: Sequence[Finding]) -> str:
    """Return which kinds were not measured."""
    measured = {one.benchmark for one in found}
    return words.not_measured(kind for kind in Kind if kind not in measured)


def _texts(one: Finding) -> tuple[str, str]:
    """Return what a finding says, and what it rests on."""
    return words.said(one), listing(one.verdict.figures["benchmarks"])


def print_profiles(judgement: Judgement, console: Console) -> None:
    """Print the advice for each arm: a line for each kind that was measured."""
    arms = [one.name for one in judgement.study.arms[1:]]
    for name, then in zip_longest(arms, arms[1:], fillvalue=""):
        if found := of_arm(judgement, name):
            heading(console, f"{words.TITLE}: {clean(name)}")
            for one in found:
                text, of = _texts(one)
                item(console, f"{text}; from {of}", name=words.NAMES[Kind(one.benchmark)])
            # Mostly all arms lack the same: then it is said once.
            if not then or missing(of_arm(judgement, then)) != missing(found):
                item(console, f"{missing(found)} {words.CAUTION}".strip(), style="dim")


def html_section(judgement: Judgement) -> Html:
    """Return the section of the HTML report, empty where there is no advice."""
    parts = []
    for arm in judgement.study.arms[1:]:
        found = of_arm(judgement, arm.name)
        rows = []
        for one in found:
            text, of = _texts(one)
            name = element("b", escape(f"{words.NAMES[Kind(one.benchmark)]}: "))
            rows.append(element("li", name, escape(text), element("small", escape(f" from {of}"))))
        if found:
            said = f"{missing(found)} {words.CAUTION}".strip()
            parts += [
                element("h2", escape(f"{words.TITLE}: {arm.name}")),
                element("ul", *rows),
                element("p", escape(said), kind="small"),
            ]
    return element("section", *parts, aria_label="Advice") if parts else Html("")


def advice(judgement: Judgement) -> list[dict[str, Any]]:
    """Return the advice as JSON values; `said` is for people, None for what was not measured."""
    found = []
    for arm in judgement.study.arms[1:]:
        own = {one.benchmark: one for one in of_arm(judgement, arm.name)}
        for kind in Kind if own else ():
            one = own.get(kind)
            said = words.said(one) if one else None
            name = {"kind": kind.value, "name": words.NAMES[kind]}
            found.append({"arm": arm.name, **name, "said": said})
    return found
