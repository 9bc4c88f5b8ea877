"""What the OSU Micro-Benchmarks (5.3 to 7.5) have in common: command line and table.

They print one value per size, already a mean over iterations: one sample per case.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from paribus.benchmarks._parameters import positive, sizes
from paribus.errors import ParseError
from paribus.model import Benchmark, Case, Metric, Parameter, Parsed, Program, Request, Sample

_NUMBER = r"\d+(?:\.\d+)?"
_VERSION = re.compile(r"v(\d+\.\d+)\b")


def osu(
    program: str, *, title: str, column: str, layer: str, summary: str, metric: Metric
) -> Benchmark:
    """Return the benchmark of one OSU program.

    `title` begins its first line; `column` is in the heading of its figure of merit, written
    without spaces, for 5.3 has "Latency (us)" and 7.4 "Avg Latency(us)".
    """
    return Benchmark(
        name=program,
        layer=layer,
        summary=summary,
        metrics=(metric,),
        command=partial(command, program),
        parse=partial(read, title, column, metric),
        parameters={
            "program": Parameter(program, _path, "path of the program, if it is not on the PATH"),
            "bytes": Parameter(
                sizes("8 B : 1 MiB"), _doubling, 'a range that doubles, such as "8 B : 1 MiB"'
            ),
            "iterations": Parameter(None, positive, "iterations, instead of the program's own"),
        },
    )


def _doubling(value: object) -> list[int]:
    found = sizes(value)
    if any(after != 2 * before for before, after in pairwise(found)):
        raise ValueError('OSU programs double from size to size: write "8 B : 1 MiB"')
    return found


def _path(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("write the path of the program in quotes")
    return value


def command(program: str, request: Request) -> Program:
    """Return the program's command line."""
    asked = request.parameters["bytes"]
    argv = [str(request.parameters.get("program", program)), "-m", f"{asked[0]}:{asked[-1]}"]
    if request.parameters.get("iterations"):
        argv += ["-i", str(request.parameters["iterations"])]
    return Program(tuple(argv))


def read(title: str, column: str, metric: Metric, stdout: str, request: Request) -> Parsed:
    """Return one sample per size; raises ParseError unless the table is there, whole, and once.

    Between the heading and the last size asked for every line must be a row of as many columns as
    the heading has. The number of ranks is not in the table: the launcher is relied upon for it.
    """
    version, columns, found = "", 0, dict[int, float]()
    asked: Sequence[int] = request.parameters["bytes"]
    for number, raw in enumerate(stdout.splitlines(), 1):
        line = raw.strip()
        if line.startswith("# OSU"):
            if version or not line.startswith(f"# {title}"):
                raise ParseError(f"expected {title!r} once, got {line!r}", line=number)
            match = _VERSION.search(line)
            version = match[1] if match else ""
            if not version:
                raise ParseError(f"no version: {line!r}", line=number)
        elif line.startswith("# Size"):
            if not version or columns:
                raise ParseError("a heading without its title, or a second one", line=number)
            columns = len(headings := re.split(r"\s{2,}", line.removeprefix("# ")))
            if column not in (headings[1:2] or [""])[0].replace(" ", ""):
                raise ParseError(f"expected a column {column!r}, got {line!r}", line=number)
        elif columns and not found and line.startswith("#"):
            continue  # 7.2 tells the datatype after the heading
        elif columns and len(found) < len(asked):
            size, value = _row(line, columns, number)
            if size != asked[len(found)]:
                raise ParseError(
                    f"expected the row of {asked[len(found)]} bytes, got {line!r}", line=number
                )
            found[size] = value
        elif columns and re.match(rf"{_NUMBER}\s+{_NUMBER}", line):
            raise ParseError(f"a row that was not asked for: {line!r}", line=number)
    if len(found) < len(asked):
        raise ParseError(
            f"the row of {asked[len(found)]} bytes is missing"
            if columns
            else "no table was printed"
        )
    try:
        samples = [Sample(metric.name, Case.of(bytes=s), (v,)) for s, v in found.items()]
    except ValueError as error:
        raise ParseError(str(error)) from error
    return Parsed(tuple(samples), {"osu.version": version})


def _row(line: str, columns: int, number: int) -> tuple[int, float]:
    """Return size and value of a row; raises ParseError for anything else, a failed check too."""
    parts = line.split()
    if len(parts) != columns or not all(re.fullmatch(rf"{_NUMBER}|Pass", p) for p in parts):
        raise ParseError(f"expected a row of {columns} columns, got {line!r}", line=number)
    if not parts[0].isdigit() or not re.fullmatch(r"\d+\.\d\d", parts[1]):
        raise ParseError(f"expected '<bytes> <value>', got {line!r}", line=number)
    return int(parts[0]), float(parts[1])
