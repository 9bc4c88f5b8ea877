"""`paribus profile -- CMD`: where the time of an MPI program goes, for a study to weigh."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paribus.border import as_error, exists, printable
from paribus.core import StoreError, UserError

if TYPE_CHECKING:
    from paribus.profile.calls import Loop
    from paribus.profile.profiler import Taken

EXAMPLE = """\
example:
  paribus profile -- mpirun -n 4 ./solver input.txt      # writes solver.profile.toml
  paribus profile --output lmp.toml -- mpirun -n 2 lmp -in in.lj

Then `profile = "solver.profile.toml"` in a study replays the program's calls in its arms, and
forecasts how long the program takes there.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    parser.description = (
        "Run an MPI program once and count where its time goes: small and large messages,"
        " collectives, waiting, and outside MPI. The program is not changed."
    )
    parser.add_argument("--output", metavar="FILE", type=Path, help="(NAME.profile.toml)")
    parser.add_argument("--name", help="name of the application (default: its program)")
    parser.add_argument(
        "--runs",
        metavar="N",
        type=positive,
        default=1,
        help="runs; the one with the median compute time counts (1)",
    )
    parser.add_argument(
        "--loop",
        metavar="CALL",
        type=named_loop,
        help="leave out set-up: from the first to the last MPI_Allreduce, or MPI_Allreduce:2-100",
    )
    parser.add_argument("--mpi", metavar="MPI", help="the MPI that the program is linked with")
    parser.add_argument("--json", action="store_true", help='print JSON, "paribus.profile/2"')
    parser.add_argument("command", metavar="CMD", nargs="+", help="the command, after --")
    parser.set_defaults(execute=profile)


def profile(arguments: argparse.Namespace) -> int:
    """Return the exit code of `paribus profile`."""
    from paribus.lenses.profiles.study import SCHEMA, profile_text
    from paribus.profile.calls import WHOLE
    from paribus.profile.profiler import take_middle

    argv: list[str] = arguments.command
    name = printable(arguments.name or program_of(argv))
    output: Path = arguments.output or Path(f"{name}.profile.toml")
    if not name.strip() or (arguments.output is None and "/" in name):
        fix = "use --name NAME, and --output FILE"
        raise UserError("is not a usable name", place=f"--name {name!r}", fix=fix)
    logs = [output.with_name(f"{output.stem}.{end}") for end in ("out", "err")]
    if exists(output):
        fix = "choose another with --output, or remove it"
        raise StoreError("already exists", place=str(output), fix=fix)
    print(f"paribus: the output of the command goes to {logs[0]} and {logs[1]}", file=sys.stderr)
    with as_error(UserError, output, "choose another --output"):
        loop = arguments.loop or WHOLE
        taken = take_middle(argv, name, arguments.mpi, logs, loop, arguments.runs)
        output.write_text(profile_text(taken.profile, _beside(taken), taken.skeleton))
    if arguments.json:
        known = asdict(taken.profile) | _beside(taken)
        known["skeleton"] = {**(known["skeleton"] or {}), **taken.skeleton} or None
        json.dump({"schema": SCHEMA, **known}, sys.stdout, indent=2, allow_nan=False)
        print()
    else:
        from paribus.lenses.profiles.taken import print_taken
        from paribus.report.printing import console_on

        print_taken(taken, console_on(sys.stdout))
        print(f'\nWritten to {output}. In a study: profile = "{output}"')
    return 0


def named_loop(text: str) -> Loop:
    """Return what --loop names; raises ArgumentTypeError with the form."""
    from paribus.profile.calls import loop_of

    try:
        return loop_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def positive(text: str) -> int:
    """Return a whole number from 1 to 99; raises ArgumentTypeError for anything else."""
    if not text.isdecimal() or not 1 <= int(text[:9]) <= 99:
        raise argparse.ArgumentTypeError("use a whole number from 1 to 99")
    return int(text)


def program_of(argv: list[str]) -> str:
    """Return the name of the program that a launcher starts: of the first argument that is one.

    Without such an argument it is the name of the launcher itself.
    """
    from paribus.border import find_program

    for word in argv[1:]:
        if not word.startswith("-") and not word.isdecimal() and find_program(word):
            return Path(word).stem
    return Path(argv[0]).stem


def _beside(taken: Taken) -> dict[str, Any]:
    """Return what a profile's file has beside the profile itself."""
    from paribus.lenses.profiles.study import BESIDE

    return {key: getattr(taken, key) for key in BESIDE}
