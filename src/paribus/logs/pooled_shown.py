"""A pool of sites on a terminal, as JSON of schema paribus.pool/1, and as an HTML page."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from paribus.core import Comparison, Word, format_ratio, units
from paribus.logs.change import Measured
from paribus.logs.pooled import LEVEL, SCATTERED, Pool, Row
from paribus.logs.pooling import FEWEST, FEWEST_FOR_RANGE
from paribus.report import first as one_axis
from paribus.report import tables, wording
from paribus.report.markup import Html, document, element, escape, forest_of, join, table
from paribus.report.printing import Row as Printed
from paribus.report.printing import heading, item, line, print_rows
from paribus.report.unequal import LIKELY
from paribus.words.lists import listed
from paribus.words.values import reason_of

if TYPE_CHECKING:
    from rich.console import Console

SCHEMA = "paribus.pool/1"
MOST_FACTS = 5
NOTE = (
    "Each ratio is arm / reference, with 95 %. A site's interval knows at which looks its study"
    " could end; the interval of all sites allows for sites that differ. The weight of a site"
    " follows from its own error and from the scatter between sites."
)


def print_pool(pool: Pool, console: Console) -> None:
    """Print a sentence for each benchmark and arm, then the sites, one below the other."""
    first = pool.sites[0]
    for row in pool.rows:
        line(console, sentence(row), style="bold")
    line(console, f"{len(pool.sites)} sites: {first.plan.study.question}", style="dim")
    for one in pool.sites:
        item(console, about(one), name=one.name, indent=0)
    for row in pool.rows:
        heading(console, title(row))
        rows = [
            Printed((name, format_ratio(known.ratio), wording.interval_text(known), share))
            for name, known, share in lines(row)
        ]
        if rows:
            head = ("site", "times as slow", "[interval]", "weight")
            print_rows(console, head, rows, right={1, 2, 3}, coloured=(0,))
        for text in notes(row):
            line(console, text)
    for text in _at_the_end(pool):
        line(console, text)
    line(console, NOTE, style="dim")


def _at_the_end(pool: Pool) -> Iterator[str]:
    """Yield what is not pooled, and which sites may be one machine."""
    yield from (f"Not pooled: {text}" for text in pool.not_pooled)
    if pool.alike:
        known = f"{listed(pool.alike, 5)}: the machine of an earlier site, by all that is recorded"
        yield f"{known}. One machine is one site."


def sentence(row: Row) -> str:
    """Return what all sites say of a benchmark, or why they say nothing together."""
    what = f"{row.benchmark}: {row.arm}"
    if row.verdict is None or row.comparison is None:
        return f"{what}: {len(row.sites)} of {FEWEST} sites have a figure; nothing is pooled."
    size = wording.estimate(row.comparison.times(row.metric.better))
    return f"{what} is {row.verdict.word.value} over {len(row.sites)} sites: {size} times as slow."


def title(row: Row) -> str:
    """Return benchmark, arm, metric and margin of a row."""
    better = f"{row.metric.name}, {row.metric.better} is better"
    return f"{row.benchmark}, {row.arm}: {better}, margin {units.percent(row.margin)}"


def about(one: Measured) -> str:
    """Return when a site measured, and the sentence of its own study."""
    began = one.judgement.started
    day = "" if began is None else time.strftime("%Y-%m-%d, ", time.gmtime(began))
    return f"{day}{one.judgement.sentence}"


def lines(row: Row) -> Iterator[tuple[str, Comparison, str]]:
    """Yield for each site, then for all and for another site, its name, times as slow, and weight.

    The weight is a text, "" for all sites.
    """
    better = row.metric.better
    for one in row.sites:
        yield one.name, one.comparison.times(better), units.percent(one.weight)
    if row.comparison is not None:
        yield "all sites", row.comparison.times(better), ""
        if row.another:
            another = Comparison(0, row.comparison.ratio, *row.another, LEVEL)
            yield "another site", another.times(better), ""


def notes(row: Row) -> Iterator[str]:
    """Yield sentences on a row: its scatter, the facts that divide the sites, those left out."""
    for name, why in row.left.items():
        yield f"Left out: {name}, {why}"
    if row.pooled is None:
        return
    between = units.percent(math.expm1(row.pooled.between))
    if row.pooled.scattered > SCATTERED:
        yield "The sites scatter no more than their own errors explain."
    else:
        yield f"The sites scatter by {between} (standard deviation) beyond their own errors."
    if len(row.sites) < FEWEST_FOR_RANGE:
        yield f"From {FEWEST_FOR_RANGE} sites on there is a range for another one."
    if row.facts:
        named = [one.key for one in row.facts[:MOST_FACTS]]
        others = len(row.facts) - len(named)
        more = f", and {units.count(others, 'fact')} more" if others else ""
        yield (
            f"Beyond the widest gap: {listed(row.apart, 5)}. There these facts are otherwise:"
            f" {', '.join(named)}{more}. With {len(row.sites)} sites many facts divide them by"
            " chance: none of this is an explanation."
        )


# --- JSON ------------------------------------------------------------------------------------


def to_json(pool: Pool) -> dict[str, Any]:
    """Return the pool as JSON values; docs/pool-schema.json describes them."""
    study = pool.sites[0].plan.study
    return {
        "schema": SCHEMA,
        "question": study.question,
        "factor": study.factor,
        "reference": study.arms[0].name,
        "level": LEVEL,
        "sites": [
            {
                "name": one.name,
                "plan_sha256": one.judgement.plan_sha256,
                "started": one.judgement.started,
                "sentence": one.judgement.sentence,
            }
            for one in pool.sites
        ],
        "rows": [_row(row) for row in pool.rows],
        "not_pooled": list(pool.not_pooled),
        "alike": list(pool.alike),
    }


def _row(row: Row) -> dict[str, Any]:
    comparison = row.comparison
    return {
        "benchmark": row.benchmark,
        "arm": row.arm,
        "metric": {"name": row.metric.name, "unit": row.metric.unit, "better": row.metric.better},
        "margin": row.margin,
        "word": row.verdict.word.value if row.verdict else Word.NO_DATA.value,
        "reason": reason_of(row.verdict) if row.verdict else "too few sites",
        "ratio": comparison.ratio if comparison else None,
        "low": comparison.low if comparison else None,
        "high": comparison.high if comparison else None,
        "another_site": list(row.another) if row.another else None,
        "between": row.pooled.between if row.pooled else None,
        "scattered_p": row.pooled.scattered if row.pooled else None,
        "sites": [
            {
                "name": one.name,
                "ratio": one.comparison.ratio,
                "log_error": one.error,
                "weight": one.weight,
            }
            for one in row.sites
        ],
        "left_out": dict(row.left),
        "apart": list(row.apart),
        "dividing_facts": [one.key for one in row.facts],
    }


# --- HTML ------------------------------------------------------------------------------------


def page(pool: Pool) -> str:
    """Return the whole HTML page."""
    study = pool.sites[0].plan.study
    sites = (
        element("div", element("b", escape(one.name)), escape(f" {about(one)}"), kind="line")
        for one in pool.sites
    )
    header = element(
        "header",
        element("p", escape(study.question), kind="question"),
        *_answer(pool),
        *sites,
    )
    left = (element("p", escape(text)) for text in _at_the_end(pool))
    note = element("p", escape(NOTE), kind="small")
    return document(study.question, join(header, *map(_section, pool.rows), *left, note))


def _answer(pool: Pool) -> Iterator[Html]:
    """Yield the answer: a sentence, or a list of them below the number of sites."""
    texts = [escape(sentence(row)) for row in pool.rows]
    yield element("h1", texts[0] if len(texts) == 1 else escape(f"{len(pool.sites)} sites"))
    if len(texts) > 1:
        yield element("ul", *(element("li", one) for one in texts))


def _section(row: Row) -> Html:
    parts = [element("h2", escape(title(row)))]
    shown = list(lines(row))
    if shown and row.verdict:
        scale = one_axis.Scale((row.margin, times) for _, times, _ in shown)
        head = (
            (one_axis.axis(scale), "axis"),
            *((Html(t), "number") for t in ("Times as slow", "Weight")),
        )
        chip = tables.chip(row.verdict.word, reason_of(row.verdict))
        body = [
            element(
                "tr",
                element("th", escape(name), scope="row", kind="text"),
                element("td", chip if name == "all sites" else ""),
                element("td", one_axis.bar(scale, row.margin, [(times, "open")]), kind="axis"),
                element("td", tables.ratio_of(times), kind="number"),
                element("td", share, kind="number used"),
            )
            for name, times, share in shown
        ]
        caption = f"How many times as slow {row.arm} is at each site, the margin shaded"
        parts.append(forest_of("Site", caption, head, body))
    parts += [element("p", escape(text)) for text in notes(row)]
    if row.facts:
        facts = [
            [escape(t) for t in (d.key, d.reference_value, d.arm_value, LIKELY[d.rank])]
            for d in row.facts
        ]
        head_of = ["Fact", "Other sites", "Beyond the gap", "Weight"]
        parts.append(table(head_of, facts, "Facts that divide the sites", range(4)))
    return element("section", *parts)
