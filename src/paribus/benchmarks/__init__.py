"""The benchmarks that Paribus knows, by name; each is imported when it is first needed.

The list is explicit, so that a comparison never depends on what else is installed. A benchmark of
the user is a Python file that the study names (files.py).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from itertools import chain
from pathlib import Path

from paribus.core import Benchmark, Selection, StudyError, UserError
from paribus.readers.kernel import KERNELS
from paribus.readers.known import TOOLS

_OTHERS = {
    "node": ("memory_bandwidth", "random_access", "roofline", "conjugate_gradient"),
    "own_npb": ("ep", "is", "cg", "mg", "ft", "lu", "sp", "bt"),
    "gpu": tuple(name for name in KERNELS if name.startswith("gpu_")),
    "storage": ("storage",),
    "training": ("training_proxy", "training"),
    "replay": ("replay",),
    "command": ("command",),
}
_FILES = {
    "own": tuple(name for name in KERNELS if name not in {*chain(*_OTHERS.values())}),
    **_OTHERS,
    **TOOLS,
}
"""The files here and in tools/, each with its benchmarks, in the order of `paribus list`."""

_FILE_OF = {name: file for file, names in _FILES.items() for name in names}


class _Benchmarks(Mapping[str, Benchmark]):
    """The benchmarks by name; a value is imported when it is first read."""

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
    """Return a benchmark; its file has one BENCHMARK, or the BENCHMARKS of a family."""
    file = _FILE_OF[name]
    room = "tools" if file in TOOLS or file == "training" else "benchmarks"
    contents = vars(import_module(f"paribus.{room}.{file}"))
    family: tuple[Benchmark, ...] = contents.get("BENCHMARKS") or (contents["BENCHMARK"],)
    return next(one for one in family if one.name == name)


SUITES = tuple(TOOLS)
"""The suites of other people's programs, such as "osu", each installed in one directory."""


def suite_of(name: str) -> str:
    """Return the name of the file that has a benchmark; of other people's programs, the suite."""
    return _FILE_OF[name]


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


def benchmark_of(selection: Selection) -> Benchmark:
    """Return the benchmark that `selection` names; raises UserError if its file has changed."""
    if selection.file is None:
        benchmark = get(selection.benchmark)
        if benchmark.choose is None:
            return benchmark
        return replace(benchmark, metrics=benchmark.choose(selection.parameters))
    from paribus.benchmarks.files import file_digest, load_file

    if file_digest(Path(selection.file)) != selection.file_sha256:
        raise StudyError(
            "has changed since the plan was frozen",
            place=selection.file,
            fix="put the old file back, or start anew in another directory",
        )
    return load_file(Path(selection.file))
