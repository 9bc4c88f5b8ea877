"""`paribus list`: the benchmarks and the studies that ship."""

from __future__ import annotations

import argparse
import json
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paribus.model import Benchmark

EXAMPLE = """\
example:
  paribus list
  paribus list --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    parser.description = "List the benchmarks, with their parameters, and the studies that ship."
    parser.epilog = EXAMPLE
    parser.add_argument("--json", action="store_true", help='print JSON, schema "paribus.list/1"')
    parser.set_defaults(carry_out=list_all)


def list_all(arguments: argparse.Namespace) -> int:
    """Return the exit code of `paribus list`."""
    from paribus.benchmarks import BENCHMARKS
    from paribus.cli.shipped import question_of, shipped_studies

    studies = {name: question_of(path) for name, path in shipped_studies().items()}
    if arguments.json:
        table = {
            "schema": "paribus.list/1",
            "benchmarks": [
                {
                    "name": b.name,
                    "layer": b.layer,
                    "summary": b.summary,
                    "metrics": [
                        {"name": m.name, "unit": m.unit, "better": m.better} for m in b.metrics
                    ],
                    "parameters": {key: p.help for key, p in b.parameters.items()},
                    "program": b.program or None,
                    "found": _found(b),
                    "get": b.get or None,
                    "means": b.means or None,
                }
                for b in BENCHMARKS.values()
            ],
            "studies": studies,
        }
        print(json.dumps(table, indent=2))
        return 0
    for benchmark in BENCHMARKS.values():
        merit = benchmark.metrics[0]
        print(f"{benchmark.name:16} {benchmark.layer}: {merit.unit}, {merit.better} is better")
        print(textwrap.indent(textwrap.fill(benchmark.summary, 76), "    "))
        if benchmark.program:
            where = _found(benchmark)
            place = f"here: {where}" if where else f"not found; to get it: {benchmark.get}"
            print(textwrap.indent(textwrap.fill(place, 76), "    "))
        keys = ", ".join(benchmark.parameters)
        print(textwrap.indent(textwrap.fill(f"parameters: {keys}", 76), "    "))
    print("\nstudies that ship:")
    for name, question in studies.items():
        print(f"  {name:20} {question}")
    return 0


def _found(benchmark: Benchmark) -> str | None:
    """Return where a benchmark's program is on the PATH; our own kernels need nothing."""
    from paribus.trust import find_program

    return find_program(benchmark.program) if benchmark.program else None
