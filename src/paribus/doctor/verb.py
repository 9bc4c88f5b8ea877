"""`paribus doctor`: how fit this machine is to measure on."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paribus.doctor.fitness import Fitness

EXAMPLE = """\
example:
  paribus doctor
  paribus doctor --mpi /opt/openmpi --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    parser.description = (
        "Check whether this machine is fit for measurements, and list fixes. The check watches the"
        " machine for 2 s and makes short launches for about 10 s. It changes nothing and needs no"
        " privilege."
    )
    parser.add_argument("--mpi", metavar="MPI", help="installation directory or family, as in arms")
    parser.add_argument("--json", action="store_true", help='print JSON, schema "paribus.doctor/1"')
    parser.set_defaults(execute=doctor)


def doctor(arguments: argparse.Namespace) -> int:
    """Return the exit code of `paribus doctor`."""
    from paribus.doctor.trial import examine

    fitness = examine(_notify, mpi=arguments.mpi)
    if arguments.json:
        json.dump(to_json(fitness), sys.stdout, indent=2, allow_nan=False)
        print()
    else:
        from paribus.doctor.printed import print_fitness
        from paribus.report.printing import console_on

        print_fitness(fitness, console_on(sys.stdout))
    return 0 if fitness.fit else 1


def to_json(fitness: Fitness) -> dict[str, object]:
    """Return the schema paribus.doctor/1 (docs/screen.md)."""
    return {
        "schema": "paribus.doctor/1",
        "fit": fitness.fit,
        "findings": [asdict(finding) for finding in fitness.findings],
        "resolution": dict(fitness.resolution),
    }


def _notify(text: str) -> None:
    print(text, file=sys.stderr)
