"""Benchmarks around other people's tools: a reader (paribus/tools/readers) and a command line.

`paribus run` and `paribus compare` read with the same code: `tool` makes a Benchmark whose `parse`
is that reader, plus the check of what was asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from importlib.resources import files
from pathlib import Path

from paribus.benchmarks.asked import Cases, Printed, parse
from paribus.benchmarks.parameters import matching
from paribus.border import exists, is_directory
from paribus.core import Benchmark, Case, Metric, Parameter, Program, Request, UserError
from paribus.readers.reader import Reader


def shipped(name: str) -> str:
    """Return the text of an input file that ships with Paribus, in the folder inputs."""
    return (files("paribus.benchmarks") / "inputs" / name).read_text(encoding="utf-8")


# For tools that print what failed, or what they use, on stderr: readers get only stdout.
_SCRIPT = (
    'command -v "$0" >/dev/null || { echo "$0: not found" >&2; exit 127; }; exec "$0" "$@" 2>&1'
)


def with_stderr(program: str, *arguments: str) -> tuple[str, ...]:
    """Return the argv of `program` with its stderr in its stdout; a missing one says so itself."""
    return ("/bin/sh", "-c", _SCRIPT, program, *arguments)


DEEPEST = 4
"""The most folders between the directory of a suite and a program of it."""


def tool(
    reader: Reader,
    *,
    layer: str,
    summary: str,
    metrics: tuple[Metric, ...],
    command: Callable[[Request], Program],
    program: str,
    get: str,
    parameters: Mapping[str, Parameter] | None = None,
    cases: Cases | None = None,
    printed: Printed | None = None,
    optional: Sequence[str] = (),
    spare: Collection[tuple[str, Case]] = (),
    passed: Callable[[Request], Collection[Case]] | None = None,
    echoed: Collection[str] = (),
    ranks: int = 2,
) -> Benchmark:
    """Return the benchmark of a tool that others made, with the name of its reader.

    `cases(request)` returns the (metric, case) pairs that must be there exactly once; by default
    every metric at every size of "bytes", or at the empty case. `printed(reading)` replaces it if
    the output's own head decides. `optional` metrics may be missing, but not at some cases
    only; `spare` pairs may be missing, as not every version of the tool has them. Those cases that
    `passed(request)` returns must be there, but are no samples: the tool cannot leave them out.
    Parameters that are `echoed` must be in the output. A parameter "path" for the program is added.
    """
    return Benchmark(
        name=reader.name,
        layer=layer,
        summary=summary,
        metrics=metrics,
        command=command,
        parse=partial(
            parse,
            reader,
            benchmark=reader.name,
            version=f"{reader.name}.version",
            cases=cases or partial(_by_size, [m.name for m in metrics if m.name not in optional]),
            printed=printed,
            optional=tuple(optional),
            spare=frozenset(spare),
            passed=passed,
            echoed=tuple(echoed),
        ),
        parameters={
            "path": Parameter(None, _path, "the program, or its directory, if not on the PATH"),
            **(parameters or {}),
        },
        ranks=ranks,
        read=reader.read,
        recognise=reader.recognise,
        marks=reader.marks,
        program=program,
        get=get,
        versions=reader.versions,
        proof=reader.proof,
        means=reader.means,
    )


def path_or(request: Request, program: str) -> str:
    """Return the path of the program from the parameter "path", or its name for the PATH.

    If "path" is a directory, or ends in "/", the program is in it or in folders below, as OSU has
    one for each kind of benchmark. Raises UserError if several have a program of that name.
    """
    path = str(request.parameters.get("path") or program)
    if "/" not in path or not (path.endswith("/") or is_directory(Path(path))):
        return path
    for levels in range(DEEPEST + 1):
        found = sorted(filter(exists, Path(path).glob(f"{'*/' * levels}{program}")))
        if len(found) > 1:
            raise UserError(
                f"several programs are called {program}: {', '.join(map(str, found))}",
                place=f'path = "{path}"',
                fix=f'give the path of one: path = "{found[0]}"',
            )
        if found:
            return str(found[0])
    return str(Path(path) / program)


def options(request: Request, table: Mapping[str, str]) -> list[str]:
    """Return the options for those parameters in `table` (option by parameter) that are set.

    A parameter that is true is the option alone, one that is false none; others have their value
    after the option.
    """
    words: list[str] = []
    for key, option in table.items():
        value = request.parameters.get(key)
        if value is not None and value is not False:
            words += [option] if value is True else [option, str(value)]
    return words


_path = matching(".+", "write the path of the program in quotes")


def _by_size(metrics: Sequence[str], request: Request) -> list[tuple[str, Case]]:
    sizes = request.parameters.get("bytes")
    every = [Case()] if sizes is None else [Case.of(bytes=size) for size in sizes]
    return [(metric, case) for metric in metrics for case in every]
