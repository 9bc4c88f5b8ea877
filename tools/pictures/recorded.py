"""Pictures made from recorded launches: two states, what the unit is, why pairs, families."""

from __future__ import annotations

import csv
import gzip
import itertools
import math
from functools import cache

import numpy as np

from paribus.core import Comparison, Word
from paribus.report.axes import FAILED, UNDECIDED, Spec
from paribus.report.figures import INK
from paribus.stats.estimate import compare
from paribus.stats.family import claims
from paribus.stats.schedule import arm_orders
from paribus.stats.states import higher_sides, two_states
from paribus.stats.verdict import judge
from pictures.style import (
    GOOD,
    B,
    axis,
    band,
    beside,
    coloured,
    excludes_one,
    line_at,
    paint,
    reported,
)
from validation.controls import recorded_samples
from validation.families import recorded_families
from validation.noise import DATA, recorded_series
from validation.studies import LOOKS, MARGIN


def states() -> Spec:
    """Return launches over time of the recorded machine: two states, and nothing to announce it."""
    with gzip.open(DATA / "noise-launches.csv.gz", "rt") as file:
        rows = [row for row in csv.DictReader(file) if row["transport"] == "shm"]
    values = [float(row["pp8_p50"]) for row in rows]
    higher, found = higher_sides(values), two_states(values)
    assert higher is not None
    assert found is not None
    first = float(rows[0]["t_s"])
    stretches = sum(side for side, _ in itertools.groupby(higher))
    names = ("lower state", "higher state")
    data = [
        {"at": (float(row["t_s"]) - first) / 60, "us": value, "what": names[side]}
        for row, value, side in zip(rows, values, higher, strict=True)
    ]
    return {
        "title": {
            "text": "One unchanged machine: every launch of an 8 B ping-pong",
            "subtitle": f"{found.higher} of {found.launches} launches are in a second state, "
            f"{found.apart:.2g} times slower, in {stretches} unbroken stretches",
        },
        "description": "Medians of launches over 17 minutes: most at 0.1 us, and a few stretches "
        "at 0.34 us with nothing between.",
        "width": 560,
        "height": 170,
        "data": {"values": data},
        "mark": {"type": "point", "filled": True, "size": 32, "opacity": 0.85},
        "encoding": {
            "x": axis("at", "minutes since the first launch", grid=False),
            "y": axis(
                "us",
                "median of the launch (us)",
                (0.08, 0.5),
                log=True,
                values=[0.1, 0.2, 0.3, 0.4, 0.5],
            ),
            **paint(names, (GOOD, B)),
        },
    }


UNIT_BLOCKS = 8


@cache
def unit_windows(step: int) -> list[tuple[Comparison, Comparison]]:
    """Return, for runs of recorded launches as eight blocks of identical arms, both intervals.

    First with samples as units, then with launches; the same launches, order and method.
    """
    found = []
    for samples in recorded_samples():
        for start in range(0, samples.shape[0] - 2 * UNIT_BLOCKS + 1, step):
            run = np.log(samples[start : start + 2 * UNIT_BLOCKS].astype(float))
            orders = arm_orders(("a", "b"), UNIT_BLOCKS, start, "picture")
            sign = np.array([1 if order[0] == "a" else -1 for order in orders])
            pairs = sign[:, None] * (run[1::2] - run[::2])
            medians = np.median(run, axis=1)
            launches = sign * (medians[1::2] - medians[::2])
            found.append((compare(pairs.ravel(), 0.95), compare(launches, 0.95)))
    return found


def units() -> Spec:
    """Return intervals of identical arms: samples as units against launches as units."""
    windows = unit_windows(2 * UNIT_BLOCKS)
    names = ("holds 1: right", "excludes 1: wrong")
    panels: list[Spec] = []
    for which, unit in enumerate(("samples", "launches")):
        found = [window[which] for window in windows]
        wrong = sum(map(excludes_one, found))
        data = [
            {"study": i, "low": c.low, "high": c.high, "what": names[excludes_one(c)]}
            for i, c in enumerate(found)
        ]
        blank = {"field": "study", "type": "ordinal", "axis": None}
        whisker = {
            "mark": {"type": "rule", "strokeWidth": 3, "clip": True},
            "encoding": {
                "x": axis("low", "ratio of identical arms", (0.93, 1.07), format=".2f"),
                "x2": {"field": "high"},
                "y": blank,
                **coloured(paint(names, (GOOD, FAILED))),
            },
        }
        panels.append(
            {
                "title": {
                    "text": f"{unit} as units",
                    "subtitle": f"{wrong} of {len(found)} intervals exclude 1",
                },
                "width": 265,
                "height": 190,
                "data": {"values": data},
                "layer": [line_at("x", 1), whisker],
            }
        )
    return beside(
        f"95 % intervals of {len(windows)} comparisons of identical arms, twice: "
        "with samples as units they are short and most exclude 1, with launches as units they are "
        "longer and hold 1.",
        panels,
    )


RUN = 20
"""Launches of an arm in the picture of sequence against pairs."""


def in_sequence(run: np.ndarray) -> Comparison:
    """Return what the first half against the second half says: mean logs, Welch's interval."""
    from scipy.stats import ttest_ind

    half = len(run) // 2
    found = ttest_ind(run[half:], run[:half], equal_var=False)
    low, high = found.confidence_interval(0.95)
    ratio = math.exp(run[half:].mean() - run[:half].mean())
    return Comparison(half, ratio, math.exp(low), math.exp(high), 0.95)


def in_pairs(run: np.ndarray, seed: int) -> tuple[Comparison, list[str]]:
    """Return what neighbours in coin-flip order say of the same launches, and their arms."""
    orders = arm_orders(("A", "B"), len(run) // 2, seed, "picture")
    sign = np.array([1 if order[0] == "A" else -1 for order in orders])
    return compare(sign * (run[1::2] - run[::2]), 0.95), [arm for order in orders for arm in order]


@cache
def runs() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return all runs of 2 x RUN recorded launches (logs), and which protocol errs on which.

    First all A and then all B, second pairs.
    """
    found = np.lib.stride_tricks.sliding_window_view(recorded_series(), 2 * RUN, axis=1)
    found = found.reshape(-1, 2 * RUN)
    apart = [excludes_one(in_sequence(run)) for run in found]
    paired = [excludes_one(in_pairs(run, seed)[0]) for seed, run in enumerate(found)]
    return found, np.array(apart), np.array(paired)


def drifting_run() -> int:
    """Return the run whose halves differ most among those in which the machine kept its state."""
    found = runs()[0]
    halves = np.abs(found[:, RUN:].mean(axis=1) - found[:, :RUN].mean(axis=1))
    for place in np.argsort(-halves).tolist():
        if two_states(np.exp(found[place]).tolist()) is None and np.ptp(found[place]) < 0.1:
            return int(place)
    raise ValueError("no run without a change of state")


def pairs() -> Spec:
    """Return the same recorded launches as two halves and as pairs."""
    seed = drifting_run()
    run = runs()[0][seed]
    paired, order = in_pairs(run, seed)
    level, title = np.exp(run - np.median(run)), "time / usual time"
    protocols = (
        ("all A, then all B", ["A"] * RUN + ["B"] * RUN, in_sequence(run)),
        ("pairs, in an order that a coin decides", order, paired),
    )
    panels: list[Spec] = []
    for name, arms, found in protocols:
        data = [
            {"launch": i + 1, "level": value, "what": arm}
            for i, (value, arm) in enumerate(zip(level.tolist(), arms, strict=True))
        ]
        panels.append(
            {
                "title": {"text": name, "subtitle": f"B / A = {reported(found)}"},
                "width": 265,
                "height": 170,
                "data": {"values": data},
                "mark": {"type": "point", "filled": True, "size": 45, "opacity": 1},
                "encoding": {
                    "x": axis("launch", "launch", (0, 2 * RUN + 1), grid=False),
                    "y": axis("level", None if panels else title, (0.95, 1.06), format=".2f"),
                    **paint(("A", "B"), (GOOD, B)),
                },
            }
        )
    return beside(
        "40 launches of one unchanged machine that slowly gets slower. Called A in "
        "the first half and B in the second they differ; called A and B in pairs they do not.",
        panels,
    )


CASES = tuple(
    f"{transport}, {section}"
    for transport in ("shm", "tcp")
    for section in ("8 B", "4 KiB", "1 MiB", "allreduce", "triad")
)
FAMILY_BLOCKS = 27
SHIFTED = (1, 3, 6, 8)
"""Cases that really differ in the picture of a family, by 5 %."""


def shifted_family() -> tuple[int, np.ndarray]:
    """Return the first simulated family with two false findings if each case stands alone.

    Its number, and its log ratios (case, block).
    """
    ratios = recorded_families(200)[:, :, :FAMILY_BLOCKS].copy()
    ratios[:, SHIFTED] += math.log1p(0.05)
    same = [case for case in range(len(CASES)) if case not in SHIFTED]
    for number, cases in enumerate(ratios):
        if sum(excludes_one(compare(cases[case], 0.95)) for case in same) == 2:
            return number, cases
    raise ValueError("no family with two false findings")


def family() -> Spec:
    """Return the cases of one benchmark: alone, and as the family supports them."""
    number, ratios = shifted_family()
    series = [dict(enumerate(one.tolist())) for one in ratios]
    words = (Word.SLOWER.value, Word.EQUIVALENT.value, Word.UNDECIDED.value)
    data = []
    for case, claim in enumerate(claims(series, [MARGIN] * len(series), LOOKS, seed=number)):
        alone = compare(ratios[case], 0.95)
        shown = compare(ratios[case], claim.level)
        said = judge(shown, better="lower", margin=MARGIN, last=True)
        data.append(
            {
                "case": CASES[case] + (" (+5 %)" if case in SHIFTED else ""),
                "alone_low": alone.low,
                "alone_high": alone.high,
                "low": shown.low,
                "high": shown.high,
                "ratio": shown.ratio,
                "what": said.word.value if claim.supported else Word.UNDECIDED.value,
            }
        )
    row: Spec = {
        "field": "case",
        "type": "nominal",
        "sort": None,
        "axis": {"title": None, "labelLimit": 200},
    }
    x = axis("low", "ratio of identical arms, but where 5 % was added", (0.94, 1.12), format=".2f")
    colours = paint(words, (B, GOOD, UNDECIDED))
    return {
        "description": "Ten cases of one study; the four that differ by 5 % are supported by the "
        "family, the others are not, though alone some would seem to differ.",
        "width": 400,
        "height": 24 * len(CASES),
        "data": {"values": data},
        "layer": [
            band("x", 1 / (1 + MARGIN), 1 + MARGIN),
            line_at("x", 1),
            {
                "mark": {"type": "bar", "size": 9, "color": INK, "opacity": 0.25, "clip": True},
                "encoding": {
                    "x": {**x, "field": "alone_low"},
                    "x2": {"field": "alone_high"},
                    "y": row,
                },
            },
            {
                "mark": {"type": "rule", "strokeWidth": 2, "clip": True},
                "encoding": {"x": x, "x2": {"field": "high"}, "y": row, **coloured(colours)},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 50, "opacity": 1},
                "encoding": {"x": {**x, "field": "ratio"}, "y": row, **colours},
            },
        ],
    }
