"""A benchmark of the user: a Python file that a study names, executed once and checked completely.

All that it defines and returns is checked: a metric with a misspelt direction would invert a
verdict, and a sample of a metric that is not declared would be ignored without a message.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from numbers import Real
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

from paribus.border import MOST_TEXT, as_error, read_bounded, why_not
from paribus.core import (
    Benchmark,
    Case,
    Direction,
    Endpoint,
    Metric,
    Parameter,
    ParibusError,
    Parsed,
    ParseError,
    Program,
    Request,
    Sample,
    Scalar,
    StudyError,
    UserError,
    of_case,
)

_HOW = "see docs/benchmarks.md"

_RAISED = (Exception, SystemExit)
"""What code of a file may raise: one that exits must not decide the exit code of Paribus."""

_LOADED: dict[tuple[Path, str], Benchmark] = {}


def file_digest(path: Path) -> str:
    """Return the hash of a benchmark's file; raises StudyError if it cannot be read."""
    with as_error(StudyError, path, "put the file back", "cannot be read"):
        return hashlib.sha256(read_bounded(path, MOST_TEXT, "a benchmark file")).hexdigest()


def load_file(path: Path, notify: Callable[[str], None] | None = None) -> Benchmark:
    """Return the BENCHMARK that the Python file at `path` defines.

    `notify` gets a message before the code is executed, which it is once for equal content. Raises
    UserError if the file is missing, could be changed by others (then nothing is executed), is not
    Python, fails when it is loaded, or defines no BENCHMARK; the place is the file and its line.
    """
    fix = "give the path of a Python file, relative to the study file"
    with as_error(UserError, path, fix, "cannot be read"):
        source = read_bounded(path, MOST_TEXT, "a benchmark file")
    if reason := why_not(path):
        raise UserError(
            f"is code that a study executes, and others could change it: {reason}",
            place=str(path),
            fix="read it, then let nobody else change it (`chown`, `chmod go-w`), or copy it to a"
            " directory of your own",
        )
    digest = hashlib.sha256(source).hexdigest()
    if (path, digest) not in _LOADED:
        if notify is not None:
            notify(f"executing the code of {path}, a benchmark file of the study")
        _LOADED[path, digest] = _executed(path, source, digest)
    return _LOADED[path, digest]


def _executed(path: Path, source: bytes, digest: str) -> Benchmark:
    """Return the BENCHMARK that `source` defines; errors as load_file."""
    # A module of a unique name: dataclasses and pickle look their module up by its name.
    module = ModuleType(f"paribus_benchmark_{digest[:16]}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    try:
        exec(compile(source, str(path), "exec"), module.__dict__)
    except SyntaxError as error:
        place = f"{path}, line {error.lineno}" if error.lineno else str(path)
        raise UserError(f"is not Python: {error.msg}", place=place, fix="fix it") from error
    except _RAISED as error:
        raise UserError(
            f"fails when it is loaded: {type(error).__name__}: {error}",
            place=_place(path, error),
            fix="fix it: `python FILE` must work",
        ) from error
    benchmark = getattr(module, "BENCHMARK", None)
    if not isinstance(benchmark, Benchmark):
        cause = "defines no BENCHMARK" if benchmark is None else "its BENCHMARK is not a Benchmark"
        raise UserError(
            cause, place=str(path), fix="end it with BENCHMARK = Benchmark(...): CONTRIBUTING.md"
        )
    if wrong := next(_wrong(benchmark), ""):
        raise UserError(f"its BENCHMARK {wrong}", place=str(path), fix="see docs/benchmarks.md")
    return replace(
        benchmark,
        command=partial(_command, path, benchmark.command),
        parse=partial(_parse, path, benchmark),
        parameters={
            key: replace(one, read=partial(_value, one.read))
            for key, one in benchmark.parameters.items()
        },
    )


def _place(path: Path, error: BaseException) -> str:
    """Return the file and the last of its lines in the traceback of `error`."""
    line, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return f"{path}, line {line}" if line else str(path)


def _wrong(benchmark: Benchmark) -> Iterator[str]:
    """Yield what is wrong with a benchmark, to follow "its BENCHMARK"."""
    for key in ("name", "layer", "summary"):
        if not _is_line(getattr(benchmark, key)):
            yield f"has the {key} {getattr(benchmark, key)!r}: give one line of text"
    if isinstance(benchmark.metrics, Metric):
        yield "has a metric without a tuple around it: give (Metric(...),), with the comma"
        return
    if not _tuple_of(benchmark.metrics, Metric):
        yield f"has the metrics {benchmark.metrics!r:.80}: give a tuple of one Metric or more"
        return
    for metric in benchmark.metrics:
        yield from _wrong_metric(metric)
    names = [metric.name for metric in benchmark.metrics]
    if len(set(names)) < len(names):
        yield f"has two metrics of one name: {', '.join(names)}"
    for key, given in (("command", ("request",)), ("parse", ("stdout", "request"))):
        if not callable(function := getattr(benchmark, key)):
            yield f"has a {key} that is no function: {function!r}"
        elif not _takes(function, given):
            yield f"has a {key} that does not take what it is given: {key}({', '.join(given)})"
    if type(benchmark.ranks) is not int or benchmark.ranks < 1:
        yield f"has ranks={benchmark.ranks!r}: give a whole number from 1"
    if not isinstance(benchmark.parameters, Mapping):
        yield f"has the parameters {benchmark.parameters!r}: give a dict"
        return
    for key, one in benchmark.parameters.items():
        sound = isinstance(one, Parameter) and callable(one.read) and isinstance(one.help, str)
        if not (isinstance(key, str) and key.isidentifier() and sound):
            yield f"has the parameter {key!r}: {one!r}: give Parameter(default, reader, help)"
        elif not _is_json(one.default):
            yield f"has the parameter {key!r} with the default {one.default!r}: give JSON values"
        elif one.default is not None and (why := _refused(one)):
            yield f"has the parameter {key!r} with the default {one.default!r}: {why}"


def _refused(parameter: Parameter) -> str:
    """Return why a parameter's own reader refuses its default, "" if it does not."""
    try:
        _value(parameter.read, parameter.default)
    except ValueError as error:
        return f"its own reader refuses that ({error})"
    return ""


def _wrong_metric(metric: Metric) -> Iterator[str]:
    start = f"has the metric {metric.name!r} with"
    if not _is_line(metric.name):
        yield f"{start} that name: give one line of text"
    if not isinstance(metric.unit, str):
        yield f'{start} unit={metric.unit!r}: give a text such as "us" ("" for a plain number)'
    for key, allowed in (("better", get_args(Direction)), ("endpoint", get_args(Endpoint))):
        if getattr(metric, key) not in allowed:
            choice = " or ".join(f'"{one}"' for one in allowed)
            yield f"{start} {key}={getattr(metric, key)!r}: give {choice}"
    for key in ("margin", "small_margin"):
        value = getattr(metric, key)
        if not (_is_number(value) and 0 < value < 1):
            yield f"{start} {key}={value!r}: give a share between 0 and 1 (0.02 is 2 %)"
    if not (_is_number(metric.small_us) and 0 <= metric.small_us < math.inf):
        yield f"{start} small_us={metric.small_us!r}: give a time in us, 0 for none"
    if not isinstance(metric.sampled, str):
        yield f"{start} sampled={metric.sampled!r}: give the name of the samples"


def _value(read: Callable[[Any], Any], value: Any) -> Any:
    """Return the result of a parameter's reader; raises ValueError if it fails or is no JSON."""
    try:
        found = read(value)
    except ValueError:
        raise
    except _RAISED as error:
        raise ValueError(f"its reader fails: {type(error).__name__}: {error}") from error
    if not _is_json(found):
        raise ValueError(f"its reader makes {found!r} of it, which plan.json cannot hold")
    return found


def _command(path: Path, command: Callable[[Request], Any], request: Request) -> Program:
    """Return the program that the file's command() returns; raises StudyError for anything else.

    Its relative paths are relative to the file.
    """
    try:
        program: object = command(request)
    except _RAISED as error:
        raise _failed(path, "command()", error) from error
    if not isinstance(program, Program):
        raise StudyError("command() returns no Program", place=str(path), fix=_HOW)
    if wrong := next(_unsound(program), ""):
        raise StudyError(f"what command() returns {wrong}", place=str(path), fix=_HOW)
    found = partial(_from, path.parent, program.files)
    return replace(
        program,
        argv=(*map(found, program.argv[:1]), *program.argv[1:]),
        server=(*map(found, program.server[:1]), *program.server[1:]),
        needs=tuple(map(found, program.needs)),
    )


def _from(folder: Path, files: Mapping[str, str], name: str) -> str:
    """Return the path of a program: relative to `folder` if it is one, and not one of `files`."""
    if "/" not in name or name.startswith(("/", "{")) or name.removeprefix("./") in files:
        return name
    return str(folder / name)


def _unsound(program: Program) -> Iterator[str]:
    """Yield what is wrong with a program, to follow "what command() returns"."""
    if not (program.argv or program.kernel):
        yield "has no argv: give the program and its arguments"
    for key in ("argv", "server", "outputs", "needs"):
        words = getattr(program, key)
        if not isinstance(words, tuple) or not all(isinstance(word, str) for word in words):
            yield f"has {key}={words!r}: give a tuple of texts"
    for key in ("files", "env"):
        if not isinstance(table := getattr(program, key), Mapping) or not all(
            isinstance(word, str) for pair in table.items() for word in pair
        ):
            yield f"has {key}={table!r}: give a dict of texts"
    for name in program.files:
        if "/" in name or name in ("", ".", ".."):
            yield f"has the file {name!r}: give a name without directories"
    if not isinstance(program.cwd, str):
        yield f"has cwd={program.cwd!r}: give a path"
    for key in ("mpi", "bound"):
        if not isinstance(getattr(program, key), bool):
            yield f"has {key}={getattr(program, key)!r}: give True or False"
    if program.threads is not None and not (
        isinstance(program.threads, int) and program.threads >= 0
    ):
        yield f"has threads={program.threads!r}: give a whole number, 0 for all cores"


def _parse(path: Path, benchmark: Benchmark, stdout: str, request: Request) -> Parsed:
    """Return the result of the file's parse(); raises ParseError if it is not a sound Parsed."""
    try:
        parsed = benchmark.parse(stdout, request)
    except (ParibusError, ValueError):
        raise
    except _RAISED as error:
        raise ParseError(str(_failed(path, "parse()", error).cause), place=str(path)) from error
    sound = isinstance(parsed, Parsed) and _tuple_of(parsed.samples, Sample)
    if not sound:
        raise ParseError(f"parse() of {path} returned no Parsed with a tuple of samples")
    declared = [metric.sampled or metric.name for metric in benchmark.metrics]
    for sample in parsed.samples:
        if sample.metric not in declared:
            raise ParseError(
                f"parse() of {path} returned a sample of {sample.metric!r}, which its metrics do"
                f" not declare ({', '.join(declared)})"
            )
    if not any(sample.metric == declared[0] for sample in parsed.samples):
        raise ParseError(f"parse() of {path} returned no sample of {declared[0]!r}, which decides")
    for sample in parsed.samples:
        if wrong := next(_wrong_sample(sample), ""):
            raise ParseError(f"parse() of {path} returned a sample of {sample.metric!r}{wrong}")
    cells = Counter((sample.metric, sample.case) for sample in parsed.samples)
    if twice := next((cell for cell, times in cells.items() if times > 1), None):
        where = of_case(twice[1])
        raise ParseError(f"parse() of {path} returned two samples of {twice[0]!r}{where}")
    if not _is_json(parsed.facts):
        raise ParseError(f"parse() of {path} returned facts that are not JSON: {parsed.facts!r}")
    return parsed


def _wrong_sample(sample: Sample) -> Iterator[str]:
    """Yield what is wrong with a sample, to follow the name of its metric."""
    case = sample.case
    if not isinstance(case, Case) or not all(isinstance(v, Scalar) for _, v in case.items):
        yield f" at {case!r:.80}: give Case.of(bytes=8) or the like, or Case() if there is only one"
    elif wrong := [v for v in sample.values if isinstance(v, bool) or not isinstance(v, Real)]:
        yield f"{of_case(case)} with {wrong[0]!r:.80}: give numbers"


def _failed(path: Path, what: str, error: BaseException) -> StudyError:
    return StudyError(
        f"{what} fails: {type(error).__name__}: {error}", place=_place(path, error), fix="fix it"
    )


def _takes(function: Callable[..., Any], given: tuple[str, ...]) -> bool:
    """Return whether a function can be called with `given`, as far as its signature shows."""
    try:
        inspect.signature(function).bind(*given)
    except ValueError:
        return True  # a function of C need not have a signature
    except TypeError:
        return False
    return True


def _is_line(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip()) and value.isprintable()


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_json(value: object) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _tuple_of(values: object, kind: type) -> bool:
    return isinstance(values, tuple) and bool(values) and all(isinstance(v, kind) for v in values)
