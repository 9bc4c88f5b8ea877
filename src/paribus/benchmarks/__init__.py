"""The benchmarks that Paribus knows: an explicit list, so that a comparison never changes with
what else is installed. One from outside is a Python file that the study names (`load_file`).
"""

from __future__ import annotations

import difflib
import hashlib
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

from paribus.errors import StudyError, UserError
from paribus.inputs import MOST_TEXT, read_bounded
from paribus.model import Benchmark, Selection
from paribus.readers.known import TOOLS
from paribus.trust import why_not

_FILES = {
    "own": (
        "latency",
        "bandwidth",
        "bibandwidth",
        "message_rate",
        "bcast",
        "allgather",
        "allreduce",
        "alltoall",
        "barrier",
        "triad",
        "loader",
    ),
    **TOOLS,
}
"""The files of this folder, each with its benchmarks; `paribus list` keeps this order."""

_FILE_OF = {name: file for file, names in _FILES.items() for name in names}


class _Benchmarks(Mapping[str, Benchmark]):
    """The benchmarks by name, each imported when it is first asked for."""

    def __getitem__(self, name: str) -> Benchmark:
        if name not in _FILE_OF:
            raise KeyError(name)
        return _imported(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_FILE_OF)

    def __len__(self) -> int:
        return len(_FILE_OF)

    def __contains__(self, name: object) -> bool:
        return name in _FILE_OF


@cache
def _imported(name: str) -> Benchmark:
    """Return a benchmark: a file holds one BENCHMARK, or BENCHMARKS of a family."""
    held = vars(import_module(f"paribus.benchmarks.{_FILE_OF[name]}"))
    several: tuple[Benchmark, ...] = held.get("BENCHMARKS") or (held["BENCHMARK"],)
    return next(one for one in several if one.name == name)


BENCHMARKS: Mapping[str, Benchmark] = _Benchmarks()


def get(name: str) -> Benchmark:
    """Return the benchmark called `name`; raises UserError with the nearest name that there is."""
    if name in BENCHMARKS:
        return BENCHMARKS[name]
    close = difflib.get_close_matches(name, BENCHMARKS, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise UserError(
        "no such benchmark", place=repr(name), fix=f"{hint}`paribus list` names them all"
    )


_LOADED: dict[tuple[Path, str], Benchmark] = {}


def benchmark_of(selection: Selection) -> Benchmark:
    """Return the benchmark that `selection` names; raises UserError if its file has changed."""
    if selection.file is None:
        return get(selection.benchmark)
    if file_digest(Path(selection.file)) != selection.file_sha256:
        raise StudyError(
            "has changed since the plan was frozen",
            place=selection.file,
            fix="put the old file back, or start anew in another directory",
        )
    return load_file(Path(selection.file))


def file_digest(path: Path) -> str:
    """Return the hash of a benchmark's file; raises StudyError if it cannot be read."""
    try:
        return hashlib.sha256(read_bounded(path, MOST_TEXT, "a benchmark file")).hexdigest()
    except OSError as error:
        raise StudyError(
            f"cannot be read: {error.strerror}", place=str(path), fix="put the file back"
        ) from error


def load_file(path: Path, tell: Callable[[str], None] | None = None) -> Benchmark:
    """Return the BENCHMARK that the Python file at `path` defines.

    `tell` hears of it before the code is executed: once, for equal content is not executed again.
    Raises UserError when the file is missing, could be changed by others (nothing is executed
    then), is not Python, fails when it is loaded, or defines no BENCHMARK; the place is the file
    and, where there is one, its line.
    """
    try:
        source = read_bounded(path, MOST_TEXT, "a benchmark file")
    except OSError as error:
        raise UserError(
            f"cannot be read: {error.strerror}",
            place=str(path),
            fix="give the path of a Python file, relative to the study file",
        ) from error
    if reason := why_not(path):
        raise UserError(
            f"is code that a study executes, and others could change it: {reason}",
            place=str(path),
            fix="read it, then let nobody else change it (`chown`, `chmod go-w`), or copy it to a"
            " directory of your own",
        )
    digest = hashlib.sha256(source).hexdigest()
    if (path, digest) not in _LOADED:
        if tell is not None:
            tell(f"executing the code of {path}, a benchmark file of the study")
        _LOADED[path, digest] = _executed(path, source, digest)
    return _LOADED[path, digest]


def _executed(path: Path, source: bytes, digest: str) -> Benchmark:
    """Return the BENCHMARK that `source` defines; errors as load_file."""
    # A name of its own per content: dataclasses and pickles look their module up by name.
    module = ModuleType(f"paribus_benchmark_{digest[:16]}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    try:
        exec(compile(source, str(path), "exec"), module.__dict__)
    except SyntaxError as error:
        place = f"{path}, line {error.lineno}" if error.lineno else str(path)
        raise UserError(f"is not Python: {error.msg}", place=place, fix="fix it") from error
    except Exception as error:
        raise UserError(
            f"fails when it is loaded: {type(error).__name__}: {error}",
            place=_place(path, error),
            fix="fix it: `python FILE` must work",
        ) from error
    benchmark = getattr(module, "BENCHMARK", None)
    if not isinstance(benchmark, Benchmark):
        said = "defines no BENCHMARK" if benchmark is None else "its BENCHMARK is not a Benchmark"
        raise UserError(
            said, place=str(path), fix="end it with BENCHMARK = Benchmark(...): CONTRIBUTING.md"
        )
    return benchmark


def _place(path: Path, error: Exception) -> str:
    """Return the file, with the last of its lines that led to `error`."""
    line, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return f"{path}, line {line}" if line else str(path)
