"""The values that Paribus hands from room to room: benchmarks, launches, samples, facts.

A benchmark makes a Program of a Request; a launch of it gives an Outcome, whose samples hold the
values of one metric at one case: Sample("latency", Case.of(bytes=8), (1.42, 1.39), batch=100).
"""

from __future__ import annotations

import json
import math
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import repeat
from typing import Annotated, Any, Literal, NamedTuple

Direction = Literal["lower", "higher"]
Endpoint = Literal["median", "p99", "p25", "min"]
Scalar = str | int | float | bool

Open = Annotated[float, "open"]
"""A float that JSON has as null where it is infinite."""

Source = Literal["rapl", "nvml", "ipmi", "slurm"]
"""Who counted energy: processors, GPUs, the machine's BMC, or the scheduler."""

GPU_ARRAY = 1 << 30
"""Bytes of an array of a GPU's benchmark where nothing else is asked for, and cards have room."""

OF_WORK = "launch.energy.nvml_j_per."
"""The beginning of the keys of facts that hold joules for a unit of work; the unit follows."""

NO_FACTOR = "not given (use --factor)"
"""The factor of a comparison if nobody says what was changed."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A named quantity with its unit, its better direction and its practical-equivalence margin.

    `margin` is a share (0.02 is 2 %); `small_us`, for times in us, is the reference value below
    which a difference must exceed `small_margin` instead (docs/statistics.md, "margin").

    `endpoint` is the one figure that a launch contributes: the median of its samples, or the
    p99, p25 or min counted from the good end (for bandwidths p99 is the slow end as well).
    `sampled` is the name under which the samples were recorded, if it is not `name`.
    `unsaid`: neither the tool nor its file says which values are better, so `better` says nothing,
    and a comparison asks (logs/logged.py).
    """

    name: str
    unit: str
    better: Direction
    margin: float = 0.02
    small_us: float = 0.0
    small_margin: float = 0.05
    endpoint: Endpoint = "median"
    sampled: str = ""
    unsaid: bool = False


class Case(NamedTuple):
    """A parameter point of a benchmark, such as bytes=4096; sorts by its values.

    A tuple, as Sample is: a study has millions of them, which are made, hashed and compared.
    """

    items: tuple[tuple[str, Scalar], ...] = ()

    @classmethod
    def of(cls, **parameters: Scalar) -> Case:
        return cls(tuple(parameters.items()))

    def get(self, key: str) -> Scalar | None:
        return dict(self.items).get(key)

    def to_json(self) -> str:
        """Return the case as canonical JSON: the form in which stores and exports keep it."""
        return json.dumps(dict(self.items), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Case:
        return cls(tuple(json.loads(text).items()))

    def __str__(self) -> str:
        from paribus.core.units import format_bytes

        def one(key: str, value: Scalar) -> str:
            if key == "bytes" and isinstance(value, int):
                return format_bytes(value)
            return f"{key}={value}"

        return ", ".join(one(k, v) for k, v in self.items) or "all"


def of_case(case: Case) -> str:
    """Return " at 8 B", to follow a name; "" for the case without parameters."""
    return f" at {case}" if case.items else ""


class _Sample(NamedTuple):
    metric: str
    case: Case
    values: Sequence[float]
    batch: int


def _good(values: Sequence[float]) -> bool:
    if isinstance(values, array):
        import numpy as np

        return bool(len(n := np.frombuffer(values)) and n.min() > 0 and n.max() < math.inf)
    return bool(values) and all(map(math.isfinite, values)) and min(values) > 0  # no NaN in min()


class Sample(_Sample):
    """The values that one launch recorded for one metric at one case, in the metric's unit.

    Each value stands for `batch` iterations timed together. Refuses, with ValueError, no value
    at all and any value that is NaN, infinite, or not above zero: no number is better than a
    wrong one.
    """

    __slots__ = ()

    def __new__(cls, metric: str, case: Case, values: Sequence[float], batch: int = 1) -> Sample:
        if batch < 1:
            raise ValueError(f"{metric}{of_case(case)}: a batch of {batch}")
        try:
            good = 0 < values[0] < math.inf if len(values) == 1 else _good(values)
        except (TypeError, ValueError) as error:
            cause = f"{metric}{of_case(case)}: give a tuple of numbers, not {values!r:.80}"
            raise ValueError(cause) from error
        if not good:
            wrong = next((v for v in values if not 0 < v < math.inf), None)
            cause = "no values" if wrong is None else f"{wrong} is not a measurement"
            raise ValueError(f"{metric}{of_case(case)}: {cause}")
        return tuple.__new__(cls, (metric, case, values, batch))

    @classmethod
    def column(cls, metric: str, cases: Sequence[Case], values: Sequence[float]) -> list[Sample]:
        """Return a sample of one value for each case: the rows of a table of means.

        Raises ValueError as Sample does, and where there are not as many values as cases.
        """
        if len(cases) != len(values):
            raise ValueError(f"{metric}: {len(values)} values at {len(cases)} cases")
        if not (values and all(map(math.isfinite, values)) and min(values) > 0):
            return [cls(metric, case, (value,)) for case, value in zip(cases, values, strict=True)]
        rows = zip(repeat(metric), cases, zip(values, strict=True), repeat(1), strict=False)
        return list(map(tuple.__new__, repeat(cls), rows))


Facts = Mapping[str, Any]
"""Dotted keys (`cpu.model`, `mpi.version`) to JSON values: what probes and kernels saw."""

LEVEL = "switch.level"
"""The fact that holds the level of an arm, as its `observe` commands printed it."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a benchmark's output says: its samples, and the facts that only a rank can know."""

    samples: tuple[Sample, ...]
    facts: Facts = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reading:
    """What the output of a tool says by itself, without knowing what was asked for.

    `parameters` are those that the output echoes and that two outputs must share to be compared
    (sizes and other points of a sweep are cases, not parameters); `ranks` are as the output counts
    them, None if it does not. `guards` are sentences on contamination that the output carries,
    such as a CPU time far below the wall time.
    """

    benchmark: str
    version: str
    parameters: Mapping[str, Scalar]
    ranks: int | None
    samples: tuple[Sample, ...]
    facts: Facts = field(default_factory=dict)
    guards: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Program:
    """What to start for every rank. `argv[0]` is a path, or a name looked up on the PATH.

    `kernel` names one of Paribus' own programs instead: it is compiled with the arm's MPI, and the
    path of the executable put in front of `argv`. With `libraries` of (count, functions, kind),
    that many shared "libraries" or modules of "python" of that many functions are generated, and
    `--libraries DIRECTORY` is appended.
    `mpi` is False for a program that is started without a launcher: one process whatever the ranks.

    The working directory is `cwd`, or the launch's own scratch directory, removed after it. `files`
    are put there before (name to text, executable); the text of those that match `outputs`
    (patterns of names) is appended to stdout after the end, so that logs and `parse` see it. `env`
    is what the program needs; the arm's own `env` wins. `server` is the argv of the other side of a
    network benchmark: it is started first, on a second host of the arm where it has hosts, else on
    this machine, and ended with the launch. In `argv`, `server`, `files` and `env` the words
    {scratch}, {server} (address of the other side), {first} (of rank 0) and {port} (a free one) are
    replaced.

    `threads` is the number of OpenMP threads of every rank, 0 for its share of the cores that
    the arm leaves: the rank is bound to as many cores, OMP_NUM_THREADS and its like are set, and
    `command` and `parse` find the number as the parameter "threads". None: one core, and no such
    variables; if not `bound`, any core (in a duet, of its half).
    `needs` are programs, and files by their absolute path, that must be there before anything is
    launched, as `argv[0]` and `server[0]` must; the first is the one that a shell in `argv` starts.
    `modules` are Python modules that `argv[0]`, a Python, must find.
    """

    argv: tuple[str, ...]
    kernel: str | None = None
    libraries: tuple[int, int, str] | None = None
    mpi: bool = True
    files: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    server: tuple[str, ...] = ()
    threads: int | None = None
    needs: tuple[str, ...] = ()
    bound: bool = True
    cwd: str = ""
    modules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of a benchmark; for `parse`, `wall_s` is the seconds that the launch took."""

    parameters: Mapping[str, Any]
    ranks: int
    wall_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter that a study may set on a benchmark: default, reader of its value, meaning.

    `read` turns the TOML value into the value for `command`; it raises ValueError with the fix.
    A study that does not set a `required` one is refused. The default is dropped if the study sets
    the parameter named `unless`: it describes an input that ships, not one of the user's own.
    `needs` is another parameter and the only value of it with which this one changes anything.
    """

    default: Any
    read: Callable[[Any], Any]
    help: str
    required: bool = False
    unless: str = ""
    needs: tuple[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A program plus how to start it plus how to read it.

    command(request) -> Program
    parse(stdout, request) -> Parsed, or raises ParseError with the line; demands positive proof
    (success marker, every requested case, parameters and ranks echoed as asked).
    The first of `metrics` is the figure of merit: the one that decides. `choose`, if given,
    returns the metrics for parameters that say what is measured. With `stderr`, `parse` gets that
    too, after stdout. If `reads` returns False for the parameters, `parse` needs no output and
    gets "".

    Of tools that others made: read(text) -> Reading, raises ParseError as parse does;
    recognise(text) says whether a text is this tool's output at all, by one of its `marks` near the
    beginning. In words: `program` is its name on the PATH, `get` how to install it, `versions`
    which are understood, `proof` what an output must show to be believed, and `means` what its
    figures mean and what they do not.

    Of GPUs: how many `arrays` of "bytes" lie in a card's memory at once. A study that does not set
    "bytes" gets them before its plan is frozen, by the smallest card (launch/memory.py).
    """

    name: str
    layer: str
    summary: str
    metrics: tuple[Metric, ...]
    command: Callable[[Request], Program]
    parse: Callable[[str, Request], Parsed]
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    ranks: int = 2
    read: Callable[[str], Reading] | None = None
    recognise: Callable[[str], bool] | None = None
    marks: tuple[str, ...] = ()
    program: str = ""
    get: str = ""
    versions: str = ""
    proof: str = ""
    means: str = ""
    choose: Callable[[Mapping[str, Any]], tuple[Metric, ...]] | None = None
    stderr: bool = False
    reads: Callable[[Mapping[str, Any]], bool] | None = None
    arrays: int = 0


@dataclass(frozen=True, slots=True)
class Launch:
    """One planned start of a program. Block 0 is the warm-up: recorded, never counted.

    `place` is 0 except in sessions, where it numbers the launches of one arm within the block: 0
    is the session's own warm-up (never counted), and 1, 2, ... are its replicates.
    """

    number: int
    block: int
    benchmark: str
    arm: str
    seed: int
    place: int = 0


class State(StrEnum):
    """How a launch ended. FAULT: the measuring machine lacked something; it never counts."""

    OK = "ok"
    FAILED = "failed"
    TIMEOUT = "timeout"
    INVALID = "invalid"
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a launch gave: stored in one transaction, before anything is computed from it.

    `started` is seconds since the epoch. `error` is one sentence when `state` is not OK.
    """

    state: State
    started: float
    wall_s: float
    exit_code: int | None
    argv: tuple[str, ...]
    samples: tuple[Sample, ...] = ()
    facts: Facts = field(default_factory=dict)
    error: str = ""
