"""A stored verdict in which somebody forged a value: refused, or shown, in every form."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import judgements
import test_calibrate
import test_cost
import test_energy
import test_explain
import test_matrices
import test_series
import test_weighing
from paribus.core import LENSES, Judgement
from paribus.plan import freeze
from paribus.report.export import to_json
from paribus.report.html import page
from paribus.report.printing import console_on
from paribus.report.short import print_short
from paribus.report.stored import read_report
from paribus.report.terminal import print_report
from test_hostile_studies import VALUES, forge, places, refused_or_reported

BUILT: dict[str, Callable[[], Judgement]] = {
    "": judgements.two_arms,
    "calibration": lambda: test_calibrate.found(test_calibrate.QUIET, "forged"),
    "cost": lambda: test_cost.priced("2 EUR/node-hour", "1 EUR/node-hour"),
    "energy": lambda: test_energy.study(1.3),
    "matrices": test_matrices.study,
    "parts": lambda: test_explain.judged(freeze(test_explain.study(), {}), test_explain.known),
    "profiles": lambda: test_weighing.predicted(
        judgements.two_arms(), test_weighing.profile(messages_small=1.0)
    ),
    "scaling": judgements.scaling,
    "series": lambda: test_series.found({"2.22": 1.2, "2.23": 1.2, "2.24": 1.2, "2.25": 1.2}),
}


MOST = 1200
"""Pages that are drawn of a lens: each takes a tenth of a second."""


COMPUTED = ("costs",)
"""What pages compute from the rest: what a file says of it is not read."""


def shown(judgement: Judgement) -> None:
    """Put the judgement into every form that people read."""
    for form in (print_report, print_short):
        form(judgement, console_on(io.StringIO(), 80))
    page(judgement, "")


@pytest.mark.parametrize("name", BUILT)
def test_it_is_refused_or_shown(
    name: str, tmp_path: Path, sample: Callable[..., list[Any]]
) -> None:
    text = json.dumps(to_json(BUILT[name]()))
    table = json.loads(text)
    keys = {name, "costs", *LENSES[name].keys} if name else table
    own = {key: value for key, value in table.items() if key in keys and value}
    assert own
    file = tmp_path / "verdict.json"
    ends: dict[str, Any] = {}
    every = [(path, value) for path in places(own) for value in VALUES]
    some = random.Random(name).sample(every, min(MOST, len(every)))
    for path, value in sample(some):
        forged = json.loads(text)
        forge(forged, path, value)
        file.write_text(json.dumps(forged))
        ends[refused_or_reported(lambda: shown(read_report(file)))] = path, value
    assert ends.keys() <= {"reported", "refused"}, ends
    table[next((key for key in own if key not in COMPUTED), "headlines")] = 7
    file.write_text(json.dumps(table))
    assert refused_or_reported(lambda: shown(read_report(file))) == "refused"
