"""What hyperfine writes with --export-json: every start of each command, with its exit code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from paribus.core import Case, Metric, Reading, Sample
from paribus.readers.harness import (
    NOT_WRITTEN,
    Failed,
    Harness,
    Measured,
    check_statistics,
    name_of,
)
from paribus.readers.heads import Head
from paribus.readers.json import amount, document, inner
from paribus.readers.text import refuse

METRICS = (Metric("time", "s", "lower"),)
ROUNDED = 1e-6
"""Relative difference of its own statistics from those of its times, at most: all have 9 digits."""


def read(text: str) -> list[Measured | Failed]:
    """Return every timed start of every command: each is a process, so each is a launch."""
    results = inner(document(text, '"results":'), "results")
    if not isinstance(results, list) or not results:
        refuse("hyperfine reports no command")
    names = [name_of(result, "command") for result in results]
    if twice := {name for name in names if names.count(name) > 1}:
        cause = f"the command {min(twice)!r} is there twice: give each a name of its own (-n)"
        refuse(cause)
    return [
        one for name, result in zip(names, results, strict=True) for one in _launches(name, result)
    ]


def _launches(name: str, result: Any) -> Iterator[Measured | Failed]:
    """Yield the starts of one command; raises ParseError where its times are not whole."""
    if not {"times", "exit_codes"} <= result.keys():
        refuse("lacks times or exit codes of each start: export it with a newer one, such as 1.20")
    times, codes = inner(result, "times"), inner(result, "exit_codes")
    values = [amount(times, at) for at in range(len(times))]
    if not values or len(values) != len(codes):
        refuse(f"{name!r} has {len(values)} times and {len(codes)} exit codes")
    check_statistics(result, values, ROUNDED, f"the times of {name!r}")
    for value, code in zip(values, codes, strict=True):
        if code is not None and type(code) is not int:
            refuse(f"an exit code of {name!r} is {str(code)[:20]!r}")
        if code == 0:
            samples = (Sample("time", Case(), (value,)),)
            reading = Reading("hyperfine", NOT_WRITTEN, {"command": name}, None, samples)
            yield Measured(reading, None, METRICS, name)
        else:
            ended = "was ended by a signal" if code is None else f"ended with exit code {code}"
            yield Failed(f"a start of {name!r} {ended}", {"command": name}, name)


HARNESS = Harness(
    "hyperfine",
    read,
    marks=('{\n  "results": [\n    {\n      "command": "',),
    heads=(Head("{", r'"results"\s*:\s*\[\s*\{\s*"command"\s*:'),),
    launches="every timed start of a command is a launch; warm-up starts are not in the file",
    versions="1.20",
    proof=(
        "as many exit codes as times, each 0, or that launch failed; mean, median, smallest and"
        " largest are those of the times"
    ),
    arms="command",
    alike="give a command the same name in both files (hyperfine -n), or measure both in one file",
    complaints=("Error: Command terminated with non-zero exit code",),
)
