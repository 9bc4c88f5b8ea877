"""What High Performance Conjugate Gradients writes into its two files."""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import repeat

from paribus.core import Reading, Row, Scalar, of_tool
from paribus.readers.figures import Fields
from paribus.readers.heads import Head
from paribus.readers.reader import Reader, single
from paribus.readers.text import begin, line_of, refuse

_TITLE = "HPCG-Benchmark\nversion="
# Until 3.0 the file was YAML; Intel's binary puts the problem in the place of its own name.
_NESTED = "\n  Distributed Processes: "
_NAMED = re.compile(
    r"^\S+ version: V?(\d+\.\d+)[ \t]*\nRelease date: [^\n]*\nMachine Summary:[ \t]*\Z", re.M
)
_RATING = "Final Summary::HPCG result is VALID with a GFLOP/s rating of"
_SPEED = "GFLOP/s Summary::"
_OVERALL = "Total with convergence and optimization phase overhead"
_SUMMARIES = ("Final", "GFLOP/s", "Floating", "Benchmark Time")
_LEVELS = "::Coarse Grids::"
_VERSION = re.compile(r"\d+\.\d+")
_OFFICIAL = "Final Summary::Official results execution time (sec) must be at least"
_CHECKS = (
    "Spectral Convergence Tests::Result",
    "Departure from Symmetry |x'Ay-y'Ax|/(2*||x||*||A||*||y||)/epsilon::Result",
    "Iteration Count Information::Result",
    "Reproducibility Information::Result",
)


def read(text: str) -> Reading:
    """Return the reading of HPCG-Benchmark_*.txt or *.yaml; raises ParseError with the line.

    The other file, hpcg*.txt, may stand before or after it.
    """
    if _TITLE not in text and _NESTED in text:
        text, start = _flat(text)
    else:
        start = begin(text, _TITLE, "the title of HPCG", "HPCG", ("INVALID",))
    values = _values(text, start)
    fields = Fields(text, values)
    for check in _CHECKS:
        if fields.word(check) != "PASSED":
            fields.refuse(f"{check} is {fields.word(check)[:20]!r}", check)
    rating = fields.figure(_RATING)
    if fields.word(_RATING) != fields.word(_SPEED + _OVERALL):
        fields.refuse("the rating is not the Gflop/s of the summary", _RATING)
    work = fields.figure("Floating Point Operations Summary::Total") * 1e-9
    seconds = fields.figure("Benchmark Time Summary::Total")
    raw = fields.figure(_SPEED + "Raw Total")
    if not math.isclose(raw * seconds, work, rel_tol=1e-4):
        fields.refuse("Gflop/s times seconds are not the operations", _SPEED + "Raw Total")
    if not 0.5 * raw < rating <= 1.0001 * raw:
        fields.refuse("the rating is far from the raw Gflop/s", _RATING)
    ranks = fields.count("Machine Summary::Distributed Processes")
    # NVIDIA's binary does not print the third of the local dimensions.
    thirds = sum(key.startswith("Local Domain Dimensions::n") for key in values) > 2
    parameters = _grid(fields, ranks, thirds=thirds)
    parameters["threads"] = fields.count("Machine Summary::Threads per processes")
    per_set = "Iteration Count Information::Optimized CG iterations per set"
    facts = {
        "hpcg.time_s": seconds,
        "hpcg.iterations_per_set": fields.count(per_set),
        "hpcg.reference_kernels": text.count("Final Summary::Reference version of", start),
    }
    official, guards = values.get(_OFFICIAL, "").strip(), tuple[str, ...]()
    if official.isdigit() and seconds < int(official):
        guards = (f"HPCG ran for {seconds:.0f} s: an official result takes {official} s or more",)
    samples = single(gflops=rating)
    return Reading("hpcg", fields.word("version"), parameters, ranks, samples, facts, guards)


def _grid(fields: Fields, ranks: int, *, thirds: bool) -> dict[str, Scalar]:
    """Return the local grid as parameters; that times the grid of ranks must be the global one."""
    parameters: dict[str, Scalar] = {}
    places = 1
    for axis in "xyz":
        parts = fields.count(f"Processor Dimensions::np{axis}")
        whole = fields.count(f"Global Problem Dimensions::Global n{axis}")
        given = thirds or axis != "z"
        local = fields.count(f"Local Domain Dimensions::n{axis}") if given else whole // parts
        if whole != local * parts:
            refuse(f"the global n{axis} is not the local one times the ranks")
        parameters[f"n{axis}"] = local
        places *= parts
    if places != ranks:
        refuse(f"{ranks} ranks were started, the grid has {places}")
    return parameters


def _flat(text: str) -> tuple[str, int]:
    """Return the YAML of HPCG 3.0 as lines of 3.1, "Machine Summary::Distributed Processes=2".

    With it, where the output begins.
    """
    at = begin(text, _NESTED, "the processes of HPCG", "HPCG", ("INVALID",))
    named = _NAMED.search(text, 0, at)
    if named is None:
        refuse("the title of HPCG with its version is missing", line_of(text, at))
    start = named.start()
    # Of the title's line only the version is needed, and there is no line of that key.
    lines = [f"version={named[1]}"]
    parents: list[tuple[int, str]] = []
    for line in text[start:].split("\n")[1:]:
        key, colon, value = f"{line.rstrip()} ".partition(": ")
        if not (colon and key.strip()):
            lines.append(line)
            continue
        name = key.strip(" _")
        depth = len(key) - len(key.lstrip())
        while parents and depth <= parents[-1][0]:
            parents.pop()
        lines.append("::".join([*(parent for _, parent in parents), f"{name}={value}"]))
        if not value:
            parents.append((depth, name))
    return text[:start] + "\n".join(lines), start


def _values(text: str, start: int) -> dict[str, str]:
    """Return the values by key, without keys that come several times."""
    # The levels of the multigrid have the same keys, and nothing that is read.
    lines = [
        line.rstrip() for line in text[start:].split("\n") if "=" in line and _LEVELS not in line
    ]
    values = {key: value for key, _, value in map(str.rpartition, lines, repeat("="))}
    if len(values) < len(lines):
        for key, times in Counter(line.rpartition("=")[0] for line in lines).items():
            if times == 1:
                continue
            if key in _CHECKS or key.startswith(_SUMMARIES):
                refuse(f"{key!r} is there twice", line_of(text, text.rfind(f"\n{key}=") + 1))
            del values[key]
    if not _VERSION.fullmatch(values.get("version", "")):
        refuse("the version of HPCG is missing", line_of(text, start))
    return values


READER = Reader(
    "hpcg",
    read,
    marks=(_TITLE, _NESTED),
    heads=(
        Head("HPCG-Benchmark", r"HPCG-Benchmark[ \t]*\n[ \t]*version="),
        Head(
            "Distributed Processes: ",
            above=r"\S+ version: V?\d.*|Release date: .*|Machine Summary:",
            indent=2,
        ),
    ),
    versions="3.0 and 3.1",
    proof=(
        "VALID with a rating, the four checks PASSED, the rating equal to the overall Gflop/s of"
        " the summary, raw Gflop/s times seconds equal to the operations, local grid times"
        " process grid equal to the global one, ranks as asked; INVALID comes with exit code 0"
    ),
    means=(
        "limited by memory bandwidth and allreduce, 1 to 4 % of HPL; vendors' binaries are tuned,"
        " the reference code is not: the fact hpcg.reference_kernels counts the untuned kernels;"
        " small grids fit into caches"
    ),
    facts=(
        of_tool(
            "hpcg.reference_kernels",
            reason="more or fewer kernels are the reference code, which is not tuned",
        ),
        Row(
            ("hpcg.iterations_per_set",),
            "identity",
            "a tuned code may need more iterations for the same residual: its rating pays for them",
            {"other": 1},
        ),
    ),
)
