"""The picture of the design for few launches: its order, and what its looks say."""

from __future__ import annotations

import math

from paribus.report.axes import Spec
from paribus.stats import few as design
from paribus.stats.schedule import rounds
from pictures.style import GOOD, A, B, axis, band, beside, intervals, line_at, paint
from validation.few_studies import EQUAL, SLOWER, WORDS, at_looks, ended, run_to_the_end, study
from validation.noise import NOISE
from validation.studies import MARGIN

SHOWN = 15
"""Which of the simulated studies the picture shows."""

BLOCKS = 8
EFFECT = 0.10


def few() -> Spec:
    """Return the launches of one simulated study in their order, and its first looks."""
    found = study("N1", 200)
    arms = {"A": found.reference[SHOWN], "B": found.arm[SHOWN] + math.log1p(EFFECT)}
    order = list(rounds(tuple(arms), ("",), BLOCKS, 2, start=design.START))[2:]
    launches = [
        {"number": number, "time": math.exp(arms[arm][block - 1]), "what": arm}
        for number, (block, _, arm, _) in enumerate(order, start=1)
    ]
    colours = paint(tuple(arms), (A, B))
    for channel in colours.values():
        channel["legend"] = {"orient": "bottom"}
    start: Spec = band("x", 0.5, 2 * design.START + 0.5)
    pairs = [line_at("x", 2 * n + 0.5) for n in range(design.START, BLOCKS)]
    left: Spec = {
        "title": {"text": "in order of time", "subtitle": "twelve launches shuffled, then pairs"},
        "width": 270,
        "height": 190,
        "data": {"values": launches},
        "layer": [
            start,
            *pairs,
            {
                "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
                "encoding": {
                    "x": axis("number", "launch", (0.5, 2 * BLOCKS + 0.5), grid=False),
                    "y": axis("time", "time of the launch", (0.95, 1.15), format=".2f"),
                    **colours,
                },
            },
        ],
    }
    return beside(
        "Twelve launches in fully random order, then pairs; and the interval of the study at its"
        " first looks, from 6 blocks on, for true effects of 10, 4 and 0 %.",
        [left, *map(_looks, (0.10, 0.04, 0.0))],
    ) | {"resolve": {"scale": {"color": "independent", "shape": "independent"}}}


def _looks(effect: float) -> Spec:
    """Return the intervals of the study at its looks until the verdict."""
    found = study("N1", 200)
    low, high = at_looks(found, effect)
    end = run_to_the_end(found, effect)
    stopped, word = int(end.stopped[SHOWN]), WORDS[end.words[SHOWN]]
    names = ("looked at", "the last look")
    shift = math.log1p(effect)
    data = [
        {
            "blocks": str(n),
            "what": names[n == stopped],
            "low": math.exp(low[SHOWN, look]),
            "high": math.exp(high[SHOWN, look]),
            "ratio": math.exp(found.estimate[SHOWN, look] + shift),
        }
        for look, n in enumerate(found.looks.tolist())
        if n <= stopped
    ]
    colours = paint(names, (GOOD, B))
    for channel in colours.values():
        channel["legend"] = None
    x = {
        "field": "blocks",
        "type": "ordinal",
        "sort": None,
        "axis": {"title": "blocks", "labelAngle": 0},
    }
    y = axis("low", "ratio", (0.95, 1.15), format=".2f")
    return {
        "title": {
            "text": f"true effect {effect * 100:g} %",
            "subtitle": f"{word} after {stopped} blocks",
        },
        "width": 60 + 18 * len(data),
        "height": 190,
        "data": {"values": data},
        "layer": [
            band("y", 1 / (1 + MARGIN), 1 + MARGIN),
            line_at("y", 1),
            *intervals(x, y, colours),
        ],
    }


EFFECTS = (0.0, 0.01, 0.05, 0.10, 0.30)


def few_table(studies: int) -> str:
    """Return mean blocks and right verdicts by true effect and noise, as the page has them."""
    lines = [f"| few launches | {' | '.join(NOISE)} |", "|---" * (len(NOISE) + 1) + "|"]
    for effect in EFFECTS:
        right = EQUAL if effect < MARGIN else SLOWER
        ends = [ended(name, studies, effect) for name in NOISE]
        cells = [f"{end.blocks:.1f} / {end.share(right) * 100:.0f} %" for end in ends]
        lines.append(f"| effect {effect * 100:g} % | {' | '.join(cells)} |")
    return "\n".join(lines)
