"""The answer of a screen as JSON; docs/screen-schema.json describes it."""

from __future__ import annotations

import math
from typing import Any

from paribus.core import Difference
from paribus.report.unequal import LIKELY
from paribus.screen import operators
from paribus.screen.answer import Answer, Line, Two
from paribus.stats.screen import ERROR, Suspect

SCHEMA = "paribus.screen/1"


def to_json(answer: Answer) -> dict[str, Any]:
    """Return the whole answer."""
    screen = answer.screen
    return {
        "schema": SCHEMA,
        "hosts": screen.hosts,
        "began": screen.at,
        "seed": screen.seed,
        "complete": answer.whole,
        "error": ERROR,
        "rounds": answer.standing.round,
        "looks": list(answer.standing.looks),
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
        "exclude": operators.exclude(answer),
        "drain": operators.shown(operators.drains(answer)),
        "resume": operators.shown(operators.resumes(answer)),
    }


def _node(line: Line) -> dict[str, Any]:
    return {
        "node": line.node,
        "word": line.word,
        "why": line.why,
        "again": line.again or None,
        "speeds": dict(line.speeds or {}),
        "evidence": [_suspect(one) for one in line.suspects],
        "facts": [_fact(one) for one in line.facts],
    }


def _suspect(one: Suspect) -> dict[str, Any]:
    figures = {"ratio": one.ratio, "low": one.low, "high": one.high}
    return {
        "benchmark": one.metric,
        "word": one.word,
        **{key: value if math.isfinite(value) else None for key, value in figures.items()},
        "fresh_rounds": len(one.fresh),
        "look": one.look or None,
        "to_go": one.to_go,
    }


def _fact(one: Difference) -> dict[str, Any]:
    return {
        "key": one.key,
        "value": one.arm_value,
        "others": one.reference_value,
        "likely": LIKELY[one.rank],
        "reason": one.reason,
    }


def _group(two: Two) -> dict[str, Any]:
    return {
        "benchmark": two.label,
        "upper": list(two.upper),
        "lower": list(two.lower),
        "evidence": _suspect(two.suspect),
        "facts": [_fact(one) for one in two.facts],
    }
