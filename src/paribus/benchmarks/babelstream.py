"""BabelStream, where the site has it built: memory bandwidth of CPUs and GPUs."""

from __future__ import annotations

import re
from collections.abc import Iterable

from paribus.benchmarks._parameters import flag, one_of, positive, threads, wanted_threads
from paribus.benchmarks._shell import with_stderr
from paribus.benchmarks._tool import count, figure, line_at, line_of, once, path_or, refuse, tool
from paribus.model import (
    Case,
    Metric,
    Parameter,
    Program,
    Reading,
    Request,
    Sample,
    Scalar,
)

_TEXT = "BabelStream\nVersion: "
_CSV = "function,num_times,n_elements,sizeof,max_"
_ARRAYS = {"Copy": 2, "Mul": 2, "Add": 3, "Triad": 3, "Dot": 2, "Nstream": 4}
_CLASSIC = list(_ARRAYS)[:5]
_SETTING = re.compile(
    r"^(Version|Implementation|Running|Number of elements|Precision|Array size"
    r"|Using [\w ]+ device):? +(\S[^\n]*)$",
    re.M,
)
_HEADING = re.compile(
    r"^Function +(MB/s|MBytes/sec|MiB/s|MiBytes/sec) +Min \(sec\) +Max +Average *$", re.M
)
_CELL = r" +(\d+\.\d+)"
_ROW = re.compile(rf"(\w+){_CELL * 4}[ \t]*")
_CSV_UNIT = re.compile(r"(MB|mbytes|MiB|mibytes)_per_sec,min_runtime,max_runtime,avg_runtime[ \t]*")
_RUNNING = re.compile(r"(?:Running +)?(?:(?:Classic +|All +)?kernels|(\w+)) +(\d+) times")
_ARRAY = re.compile(r"(\d+\.\d) (MB|MiB)\b")


def command(request: Request) -> Program:
    """Return the program of one back end; stderr comes with stdout: there it says what failed."""
    asked = request.parameters
    arguments = ["-n", str(asked["times"]), "-s", str(asked["elements"])]
    arguments += ["--float"] if asked["precision"] == "float" else []
    arguments += ["--only", "Triad"] if asked["triad_only"] else []
    program = path_or(request, f"{asked['backend']}-stream")
    return Program(
        with_stderr(program, *arguments),
        mpi=False,
        needs=(program,),
        threads=wanted_threads(asked) if asked["backend"] == "omp" else None,
    )


def cases(request: Request) -> Iterable[tuple[str, Case]]:
    """Return the five kernels, or Triad alone."""
    names = ["Triad"] if request.parameters["triad_only"] else _CLASSIC
    return [(name.lower(), Case()) for name in names]


def read(text: str) -> Reading:
    """Return what BabelStream printed, as text or with --csv; raises ParseError with the line."""
    for mark in ("FAILED validation", "Validation failed on", "Unrecognized argument"):
        if (at := text.find(mark)) >= 0:
            refuse(f"BabelStream says {line_at(text, at).strip()[:100]!r}", line_of(text, at))
    version, parameters, facts, rates, alone = _csv(text) if _CSV in text else _text(text)
    names = list(rates)
    if names != [alone] and (alone or names not in (_CLASSIC, list(_ARRAYS))):
        refuse(f"expected rows of {alone or ', '.join(_CLASSIC)}, got {', '.join(names)[:60]}")
    names.sort(key=lambda name: name != "Triad")
    samples = tuple(Sample(name.lower(), Case(), (rates[name],)) for name in names)
    return Reading("babelstream", version, parameters, None, samples, facts)


Found = tuple[str, dict[str, Scalar], dict[str, str], dict[str, float], str]
"""Version, parameters, facts, MB/s by kernel, and the kernel if only one was asked for."""


def _text(text: str) -> Found:
    start = once(text, _TEXT, "the title of BabelStream")
    heading = _HEADING.search(text, start)
    if heading is None:
        refuse(
            "the heading of the table is missing: the program ended before", line_of(text, start)
        )
    said: dict[str, str] = {}
    for match in _SETTING.finditer(text, start, heading.start()):
        if match[1] in said:
            refuse(f"{match[1]!r} is there twice", line_of(text, match.start()))
        said[match[1]] = match[2].strip()
    for key in ("Version", "Implementation", "Running", "Precision", "Array size"):
        if key not in said:
            refuse(f"{key!r} is missing before the table", line_of(text, start))
    running, array = _RUNNING.match(said["Running"]), _ARRAY.match(said["Array size"])
    width = {"double": 8, "float": 4}.get(said["Precision"])
    if running is None or array is None or width is None:
        refuse(
            "Running, Precision or Array size says what no BabelStream says", line_of(text, start)
        )
    unit = 1e6 if heading[1][:2] == "MB" else 2.0**20
    parameters: dict[str, Scalar] = {
        "implementation": said["Implementation"],
        "precision": said["Precision"],
        "times": count(running[2]),
    }
    size = float(array[1]) * (1e6 if array[2] == "MB" else 2**20)
    slack = 0.06e6
    if "Number of elements" in said:
        parameters["elements"] = count(said["Number of elements"])
        exact = int(parameters["elements"]) * width
        if abs(exact - size) > slack:
            refuse("the array size is not the elements", line_of(text, start))
        size, slack = exact, 0.0
    else:
        parameters["array_mb"] = float(array[1])
    first = line_of(text, heading.start()) + 1
    rates: dict[str, float] = {}
    for number, line in enumerate(text[heading.end() + 1 :].split("\n"), first):
        row = _ROW.fullmatch(line)
        if row is None or row[1] not in _ARRAYS or row[1] in rates:
            break
        rates[row[1]] = _rate(row.groups(), unit, size, slack, 1.1e-5, number)
    else:
        number = first
    _nothing_more(text, number)
    device = [value for key, value in said.items() if key.startswith("Using")]
    facts = {"babelstream.device": device[0]} if device else {}
    return said["Version"], parameters, facts, rates, (running[1] or "").capitalize()


def _csv(text: str) -> Found:
    at = once(text, _CSV, "the heading of the table")
    unit = _CSV_UNIT.fullmatch(line_at(text, at)[len(_CSV) :])
    if unit is None or line_at(text, at)[: len(_CSV)] != _CSV:
        refuse("the heading of the table is damaged", line_of(text, at))
    first = line_of(text, at) + 1
    rates: dict[str, float] = {}
    same: set[tuple[str, ...]] = set()
    number = first
    for number, line in enumerate(text[at:].split("\n")[1:], first):
        cells = line.strip().split(",")
        if len(cells) != 8 or cells[0] not in _ARRAYS or cells[0] in rates:
            break
        same.add(tuple(cells[1:4]))
        size = count(cells[2], number) * count(cells[3], number)
        rate = 1e6 if unit[1] in ("MB", "mbytes") else 2.0**20
        words = (cells[0], cells[4], cells[5], cells[6], cells[7])
        rates[cells[0]] = _rate(words, rate, size, 0.0, 0.0, number)
    _nothing_more(text, number)
    if len(same) != 1:
        refuse("the rows are of several array sizes", first)
    times, elements, width = map(int, same.pop())
    if width not in (4, 8):
        refuse(f"elements of {width} bytes", first)
    parameters: dict[str, Scalar] = {
        "precision": "double" if width == 8 else "float",
        "times": times,
        "elements": elements,
    }
    # CSV does not say what was asked for; a lone Copy is what a cut table looks like.
    alone = next(iter(rates)) if len(rates) == 1 and "Copy" not in rates else ""
    return "5" if unit[1] in ("MB", "MiB") else "1 to 4", parameters, {}, rates, alone


def _rate(
    words: tuple[str, ...], unit: float, size: float, slack: float, tick: float, line: int
) -> float:
    """Return the MB/s of a row, if they are the bytes of its kernel in the shortest time.

    `slack` is how well the array's bytes are known, `tick` how well the times are.
    """
    name, rate = words[0], figure(words[1], line) * unit / 1e6
    least, most, mean = (float(w) if float(w) == 0 and tick else figure(w, line) for w in words[2:])
    seconds = _ARRAYS[name] * size * 1e-6 / rate
    allowed = tick + seconds * (2e-5 + slack / size if size else 1.0)
    if abs(seconds - least) > allowed or not least <= mean <= most:
        refuse(f"{words[1]} are not {_ARRAYS[name]} arrays of {size:.0f} B in {words[2]} s", line)
    return rate


def _nothing_more(text: str, line: int) -> None:
    """Refuse rows of a table after its end: something stands between them."""
    for number, row in enumerate(text.split("\n")[line - 1 :], line):
        if row.startswith(("Copy", "Mul", "Add", "Triad", "Dot", "Nstream", "BabelStream")):
            refuse(f"a row after the end of the table: {row[:60]!r}", number)


BENCHMARK = tool(
    "babelstream",
    layer="memory",
    summary="BabelStream: memory bandwidth of five simple loops on a CPU or GPU, best of all",
    metrics=tuple(
        Metric(name, "MB/s", "higher") for name in ("triad", "copy", "mul", "add", "dot", "nstream")
    ),
    reader=read,
    marks=(_TEXT, _CSV),
    command=command,
    cases=cases,
    optional=("copy", "mul", "add", "dot", "nstream"),
    parameters={
        "backend": Parameter("omp", one_of("omp", "cuda", "hip"), "which of its programs"),
        "elements": Parameter(33554432, positive, "elements of each of the three arrays"),
        "times": Parameter(100, positive, "repetitions; the first is not counted"),
        "precision": Parameter("double", one_of("double", "float"), "type of the elements"),
        "triad_only": Parameter(False, flag, "only Triad"),
        "threads": Parameter("all", threads, "OpenMP threads of omp, each on its own core, or all"),
    },
    program="omp-stream",
    get="https://github.com/UoB-HPC/BabelStream: cmake -Bbuild -DMODEL=omp, cmake --build build",
    versions="2.0 to 5.0",
    proof=(
        "title or CSV heading once, the kernels it ran in order and complete, the rate equal to"
        " the bytes divided by the minimum time, min <= avg <= max, elements, times and precision"
        " as asked, no validation failed"
    ),
    means=(
        "MB = 10^6, from the fastest repetition but the first, so a peak and not a mean; arrays"
        " must be far larger than the caches; the number of OpenMP threads is not printed; not"
        " comparable with STREAM, which counts other loops"
    ),
    ranks=1,
)
