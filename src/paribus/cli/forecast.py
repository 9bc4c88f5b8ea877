"""`paribus forecast PROFILE... --on STUDY`: how long applications would take in its arms."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from paribus.core import Comparison, Judgement, UserError

if TYPE_CHECKING:
    from paribus.lenses.profiles.prediction import Prediction

EXAMPLE = """\
examples:
  paribus forecast solver.profile.toml --on network.study
  paribus forecast lammps hpcg --on network.study        # profiles that ship
  paribus forecast --on network.study --json             # of all that the study replayed

A forecast needs a replay: name the profile in the study, `profile = "solver.profile.toml"`. Without
one there is a range only. Nothing is launched.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Forecast the time of applications in the arms of a study."
    parser.add_argument(
        "profiles",
        metavar="PROFILE",
        nargs="*",
        help="profiles (default: those that the study replayed)",
    )
    parser.add_argument(
        "--on", metavar="STUDY", type=Path, required=True, help="study directory, or its report"
    )
    parser.add_argument(
        "--one-node",
        metavar="STUDY",
        type=Path,
        help="a study of the program on one node of each arm: how fast these compute",
    )
    parser.add_argument("--json", action="store_true", help="print the forecasts as JSON")
    parser.set_defaults(execute=forecast)


def forecast(arguments: argparse.Namespace) -> int:
    """Return the exit code of the verb."""
    from paribus.lenses.profiles.prediction import forecast_json, print_predictions
    from paribus.report.printing import console_on

    judgement = _judged(arguments.on)
    nodes = _one_node(_judged(arguments.one_node)) if arguments.one_node else {}
    if arguments.one_node and not nodes.keys() & {arm.name for arm in judgement.study.arms}:
        fix = f"name a study of the arms of {arguments.on} that has a ratio of their times"
        raise UserError(
            "says nothing of these arms", place=f"--one-node {arguments.one_node}", fix=fix
        )
    found = list(_found(judgement, arguments.profiles, nodes))
    if not found and any(one.benchmark == "replay" for one in judgement.study.benchmarks):
        fix = "continue the study: paribus run STUDY --out DIR --resume"
        raise UserError("its replays have no ratio yet", place=str(arguments.on), fix=fix)
    if not found:
        raise UserError(
            "the study replayed no application",
            place=str(arguments.on),
            fix='add profile = "solver.profile.toml" to the study file, and run it anew',
        )
    if arguments.json:
        rows = [forecast_json(one) for one in found]
        json.dump({"schema": "paribus.forecast/1", "forecasts": rows}, sys.stdout, indent=2)
        print()
    else:
        print_predictions(found, console_on(sys.stdout))
    return 0


def _judged(directory: Path) -> Judgement:
    """Return the judgement of a study directory, or that of a stored report."""
    from paribus.judge.conclude import judged
    from paribus.report.stored import is_report, read_report

    return read_report(directory) if is_report(directory) else judged(directory)


def _one_node(judgement: Judgement) -> dict[str, Comparison]:
    """Return the ratio of times of the first benchmark, by arm; raises UserError for a rate."""
    from paribus.core import usable

    first = judgement.study.benchmarks[0].label
    heads = [one for one in judgement.headlines if one.benchmark == first and one.decides]
    if any(one.metric.better != "lower" for one in heads):
        fix = 'use one of a time: benchmark `command` with measure = "wall"'
        raise UserError("is no study of a time", place=f"--one-node: {first}", fix=fix)
    return {one.arm: known for one in heads if (known := usable(one))}


def _found(
    judgement: Judgement, names: Sequence[str], nodes: dict[str, Comparison]
) -> Iterator[Prediction]:
    """Yield the forecasts of the profiles `names`, or of all that were replayed without names.

    `nodes`: ratios of times on one node, by arm.
    """
    from paribus.lenses.profiles.prediction import forecasts, predictions
    from paribus.lenses.profiles.study import find_profile, read_profile

    rows = judgement.lenses.get("profiles")
    kinds = rows.kinds if rows else ()
    if not names:
        yield from forecasts(judgement, kinds, nodes)
    for name in names:
        profile = read_profile(find_profile(name, Path()))
        calls = profile.skeleton.calls if profile.skeleton else None
        own = list(forecasts(judgement, kinds, nodes, calls)) if calls else []
        yield from own or predictions(judgement.study, kinds, profile)
