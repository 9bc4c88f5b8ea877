"""Paribus against 100 launches of each arm, averaged: the picture, and the table of cost."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from paribus.core import Word
from paribus.report.axes import Spec
from pictures.style import GOOD, B, axis, beside, line_at, paint
from validation.noise import NOISE
from validation.studies import MARGIN, any_look_error, ended, right_word, study

STUDIES = 4000
"""Simulated studies behind a point of the picture: one standard error is at most 0.8 %."""

KINDS = ("N1", "N2", "Drift", "Sticky", "Steps", "Recorded")
EFFECTS = (0.0, 0.01, 0.05, 0.10, 0.30)
AVERAGED = 100
"""Launches per arm of the protocol that Paribus is compared with."""


@cache
def averaged_ends(name: str, studies: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the 95 % intervals (log) of 100 launches of A, then 100 of B, by Welch's t."""
    from scipy.stats import ttest_ind

    rng = np.random.default_rng([100, list(NOISE).index(name)])
    rows = NOISE[name](rng, studies, 2 * AVERAGED)
    found = ttest_ind(rows[:, AVERAGED:], rows[:, :AVERAGED], axis=1, equal_var=False)
    ends = found.confidence_interval(0.95)
    return ends.low, ends.high


def averaged_right(name: str, studies: int, effect: float) -> float:
    """Return how often its interval gives the right word against the same margin."""
    low, high = (ends + math.log1p(effect) for ends in averaged_ends(name, studies))
    delta = math.log1p(MARGIN)
    right = low > delta
    if right_word(effect) is Word.EQUIVALENT:
        right = (low > -delta) & (high < delta)
    return float(right.mean())


def averaged_wrong(name: str, studies: int) -> float:
    """Return how often it finds identical arms to differ."""
    low, high = averaged_ends(name, studies)
    return float(((low > 0) | (high < 0)).mean())


def cost() -> Spec:
    """Return errors, right verdicts and launches of both protocols, by kind of noise."""
    ours, theirs = "Paribus", f"{AVERAGED} launches per arm, averaged"
    data = []
    for name in KINDS:
        ends = [ended(name, STUDIES, effect) for effect in EFFECTS]
        right = [end.share(right_word(effect)) for effect, end in zip(EFFECTS, ends, strict=True)]
        blocks = float(np.mean([end.blocks.mean() for end in ends]))
        data.append([name, ours, any_look_error(study(name, STUDIES)), np.mean(right), blocks])
        right = [averaged_right(name, STUDIES, effect) for effect in EFFECTS]
        wrong = averaged_wrong(name, STUDIES)
        data.append([name, theirs, wrong, np.mean(right), AVERAGED])
    fields = ("noise", "what", "wrong", "right", "launches")
    rows = [dict(zip(fields, one, strict=True)) for one in data]
    titles: tuple[tuple[str, str, tuple[int, int], Spec], ...] = (
        (
            "wrong",
            "identical arms told apart",
            (0, 1),
            {"format": ".0%", "values": [0, 0.5, 1]},
        ),
        (
            "right",
            "right verdicts, five effects",
            (0, 1),
            {"format": ".0%", "values": [0, 0.5, 1]},
        ),
        ("launches", "mean launches per arm", (0, 105), {}),
    )
    panels: list[Spec] = []
    for field, title, domain, more in titles:
        y: Spec = {"field": "noise", "type": "nominal", "sort": None, "axis": None}
        if not panels:
            y["axis"] = {"title": None, "ticks": False, "domain": False}
        panels.append(
            {
                "title": title,
                "width": 165,
                "height": 26 * len(KINDS),
                "data": {"values": rows},
                "layer": [
                    *([line_at("x", 0.05)] if field == "wrong" else []),
                    {
                        "mark": {"type": "point", "filled": True, "size": 75, "opacity": 1},
                        "encoding": {
                            "x": axis(field, None, domain, **more),
                            "y": y,
                            "yOffset": {"field": "what", "type": "nominal", "sort": None},
                            **paint((ours, theirs), (GOOD, B)),
                        },
                    },
                ],
            }
        )
    return beside(
        "In drift, sticky states, steps and recorded noise the averaged protocol "
        "tells identical arms apart in more than half of studies, Paribus in one of twenty, with "
        "fewer launches.",
        panels,
    )


def table(studies: int) -> str:
    """Return the table of cost in Markdown: mean blocks, right verdicts of both protocols."""
    lines = [
        f"| true effect | {' | '.join(KINDS)} |",
        "|---" * (len(KINDS) + 1) + "|",
    ]
    for effect in EFFECTS:
        cells = []
        for name in KINDS:
            end = ended(name, studies, effect)
            share, other = end.share(right_word(effect)), averaged_right(name, studies, effect)
            cells.append(f"{end.blocks.mean():.0f} / {share * 100:.0f} % / {other * 100:.0f} %")
        lines.append(f"| {effect * 100:g} % | {' | '.join(cells)} |")
    return "\n".join(lines)
