"""The answer of a screen as JSON and on a terminal: what is wrong first, healthy nodes folded."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from paribus.core import Difference, fold, grouped
from paribus.report.printing import heading, item, line, raw
from paribus.report.unequal import LIKELY
from paribus.screen import operators, words
from paribus.screen.answer import WORDS, Answer, Line, Two, written
from paribus.screen.course import ERROR, Question

if TYPE_CHECKING:
    from rich.console import Console


SCHEMA = "paribus.screen/1"


def to_json(answer: Answer) -> dict[str, Any]:
    """Return the whole answer as a JSON object, by docs/screen-schema.json."""
    screen = answer.screen
    drain, resume = operators.commands(answer)
    return {
        "schema": SCHEMA,
        "hosts": screen.hosts,
        "began": screen.at,
        "seed": screen.seed,
        "complete": answer.whole,
        "error": ERROR,
        "rounds": answer.course.round,
        "looks": list(answer.course.at.get(False, ())),
        "launches": answer.launches,
        "benchmarks": [
            {
                "name": label,
                "metric": screen.metric(label).name,
                "unit": screen.metric(label).unit,
                "better": screen.metric(label).better,
                "margin": margin,
                "detectable": answer.found.get(label),
            }
            for label, margin in screen.margins.items()
        ],
        "nodes": [_node(one) for one in answer.lines],
        "groups": [_group(two) for two in answer.groups],
        "links": [_way(one) for one in answer.ways],
        "pairs": [
            {"benchmark": label, "from": one, "to": other, "speed": speed}
            for label, of in answer.speeds.items()
            for (one, other), speed in sorted(of.items())
        ],
        "exclude": operators.exclude(answer),
        "drain": drain,
        "resume": resume,
    }


def _node(line: Line) -> dict[str, Any]:
    return {
        "node": line.node,
        "word": line.word,
        "why": line.why,
        "again": line.again or None,
        "speeds": dict(line.speeds),
        "evidence": [_question(one) for one in line.suspects],
        "facts": [_fact(one) for one in line.facts],
    }


def _question(one: Question) -> dict[str, Any]:
    ends = (end if math.isfinite(end) else None for end in one.effect)
    return {
        "benchmark": one.metric,
        "word": one.word,
        **dict(zip(("ratio", "low", "high"), ends, strict=True)),
        "fresh_rounds": len(one.fresh),
        "look": one.look or None,
        "to_go": one.to_go,
    }


def _fact(one: Difference) -> dict[str, Any]:
    what = {"key": one.key, "value": one.arm_value, "others": one.reference_value}
    return {**what, "likely": LIKELY[one.rank], "reason": one.reason}


def _group(two: Two) -> dict[str, Any]:
    return {
        "benchmark": two.suspect.metric,
        "upper": list(two.upper),
        "lower": list(two.lower),
        "evidence": _question(two.suspect),
        "facts": [_fact(one) for one in two.facts],
    }


def _way(line: Line) -> dict[str, Any]:
    is_path = line.kind == "path"
    evidence = [
        {**_question(one), "pair": written(one.unit) if is_path else None} for one in line.suspects
    ]
    what = {"kind": line.kind, "between": list(line.sides), "word": line.word, "why": line.why}
    return {**what, "pairs": list(line.pairs), "evidence": evidence}


STYLES = {"slow": "bold red", "undecided": "yellow", "failed": "bold red"}


def print_answer(answer: Answer, console: Console) -> None:
    """Print the answer, its evidence and what the screen promises."""
    line(console, words.headline(answer), style="bold")
    line(console, words.measured(answer))
    for two in answer.groups:
        heading(console, "Two groups")
        item(console, words.group(two))
        _print_facts(two.facts, console)
    if answer.ways:
        heading(console, f"Links ({len(answer.ways)})")
    for way in answer.ways:
        text = f"{way.word}: {words.cause(answer, way)}"
        item(console, text, name=words.way(way), style=STYLES[way.word])
    for word in WORDS:
        lines = answer.having(word)
        if lines:
            heading(console, f"{words.TITLES[word]} ({len(lines)})")
        alike = grouped(((words.cause(answer, one), one.facts), one.node) for one in lines)
        for (cause, facts), nodes in alike.items():
            names, style = fold(nodes), STYLES.get(word, "")
            item(console, cause or names, name=names if cause else "", style=style)
            _print_facts(facts, console)
    heading(console, "What this means")
    for sentence in words.promise(answer):
        item(console, sentence)


def print_commands(answer: Answer, console: Console, *, kubernetes: bool) -> None:
    """Print the commands that take the slow nodes out of use, and those that bring them back."""
    out, back = operators.reported(answer, kubernetes=kubernetes)
    if out:
        heading(console, "For operators")
    for text in out:
        raw(console, f"  {text}")
    if back:
        item(console, "After the repair:")
    for text in back:
        raw(console, f"  {text}")


def _print_facts(facts: tuple[Difference, ...], console: Console) -> None:
    for one in facts:
        values = f"{one.key} {one.arm_value}, others: {one.reference_value}"
        item(console, f"{values} ({LIKELY[one.rank]})", indent=6)
