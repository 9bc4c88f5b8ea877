"""The reader of what our own kernels print: lines of JSON, by the contract of docs/kernels.md.

It demands the first line, which echoes every argument; every case that these announce, exactly
once; and the last line. Nothing else may stand between them.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import permutations, product
from statistics import median
from typing import Any, NamedTuple

from paribus.core import GPU_ARRAY, OF_WORK, Case, ParseError, Reading, Sample, Scalar, of_case
from paribus.readers.heads import Head
from paribus.readers.reader import WORK, Reader
from paribus.readers.text import refuse

MARK = '{"paribus_kernel": '
TOOL = "a kernel of Paribus"


class Kernel(NamedTuple):
    """What a kernel measures: metrics with their units, and the arguments that name its cases."""

    units: Mapping[str, str]
    keys: tuple[str, ...] = ("bytes",)


KERNELS = {
    "latency": Kernel({"latency": "us"}),
    "bandwidth": Kernel({"bandwidth": "MB/s"}),
    "bibandwidth": Kernel({"bandwidth": "MB/s"}),
    "message_rate": Kernel({"message_rate": "msg/s"}),
    "pairs": Kernel({"latency": "us", "bandwidth": "MB/s"}, ("from", "to", "bytes")),
    "many_to_one": Kernel(
        {
            "goodput": "Mbit/s",
            "flow": "Mbit/s",
            "fairness": "share",
            "loaded_latency": "us",
            "idle_latency": "us",
        },
        ("bytes", "connections"),
    ),
    "bcast": Kernel({"time": "us"}),
    "allgather": Kernel({"time": "us"}),
    "allreduce": Kernel({"time": "us"}),
    "alltoall": Kernel({"time": "us"}),
    "alltoallv": Kernel({"time": "us"}),
    "barrier": Kernel({"time": "us"}, ()),
    "halo": Kernel({"time": "us"}),
    "ring": Kernel({"bandwidth": "MB/s"}),
    "overlap": Kernel({"exposed": "percent", "total": "us", "pure": "us", "compute": "us"}),
    "triad": Kernel({"bandwidth": "GB/s"}),
    "loader": Kernel({"load": "ms", "first_call": "ms", "startup": "ms"}, ("count", "functions")),
    "memory_bandwidth": Kernel({"bandwidth": "GB/s"}, ("op", "bytes")),
    "random_access": Kernel({"updates": "Gup/s"}, ("ranks",)),
    "roofline": Kernel({"performance": "Gop/s"}, ("type", "intensity")),
    "conjugate_gradient": Kernel({"gflops": "Gflop/s", "time": "s"}, ("nx", "ny", "nz", "ranks")),
    **dict.fromkeys(
        ("ep", "is", "cg", "mg", "ft", "lu", "sp", "bt"),
        Kernel({"mops": "Mop/s", "time": "s"}, ("class", "ranks")),
    ),
    "replay": Kernel({"time": "s"}, ("application", "ranks")),
    "training_proxy": Kernel({"step": "ms", "exposed": "ms", "compute": "ms"}, ("model", "ranks")),
    "gpu_stream": Kernel({"bandwidth": "GB/s"}, ("gpu", "op", "bytes")),
    "gpu_roofline": Kernel({"performance": "Gop/s"}, ("gpu", "type", "intensity", "bytes")),
    "gpu_gemm": Kernel(dict.fromkeys(("performance", "first", "sustained"), "Gop/s"), ()),
    "gpu_latency": Kernel({"time": "us", "issue": "us"}, ("gpu",)),
    "gpu_copy": Kernel({"bandwidth": "GB/s", "time": "us"}, ("gpu", "memory", "way", "bytes")),
    "gpu_peer": Kernel({"bandwidth": "GB/s", "latency": "us"}),
    "gpu_allreduce": Kernel({"bus_bandwidth": "GB/s", "time": "us"}, ("gpus", "bytes")),
    "storage": Kernel({"bandwidth": "MB/s", "rate": "1/s"}, ("op",)),
}
STORAGE = {
    "bandwidth": ("write", "read"),
    "rate": ("random_read", "random_write", "create", "stat", "unlink"),
}
"""The operations of `storage`, by their metric."""
_LOOPS = ("copy", "scale", "add", "triad", "dot")
_POINTS: Mapping[str, Mapping[str, Sequence[Scalar]]] = {
    "memory_bandwidth": {"op": _LOOPS},
    "roofline": {
        "type": ("double", "float", "int"),
        "intensity": (0.0625, 0.125, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64),
    },
    "gpu_stream": {"op": _LOOPS},
    "gpu_roofline": {
        "type": ("float", "double", "int", "half"),  # the usual; an output may be of another one
        "intensity": tuple(2.0**power for power in range(-4, 7)),
    },
    "gpu_copy": {"memory": ("pinned", "pageable"), "way": ("to", "from")},
}
"""Values of keys that no argument sets; intensities are operations per byte of memory."""

_TOO_LITTLE = ("half", "bfloat16")
"""Types of which two are computed together: their least intensity is 1/8, not 1/16."""


def read(text: str) -> Reading:
    """Return the reading of a kernel's output; raises ParseError unless it is whole."""
    lines = list(_lines(text))
    if not lines:
        raise ParseError("the kernel printed nothing: no first line")
    (at, header), *rest = lines
    try:
        kernel, arguments = _announced(header, at)
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        refuse(f"not a whole first line of a kernel: {error!r}", at)
    if not rest or rest[-1][1].get("end") is not True:
        raise ParseError("the last line is missing: the kernel did not finish", line=lines[-1][0])
    (at, end), body = rest[-1], rest[:-1]
    if end.get("check") != "passed":
        refuse(f"the check of the data did not pass: {end.get('check')!r}", at)
    beside: dict[str, Scalar | list[float]] = {}
    units = KERNELS[kernel].units
    samples = tuple(_sample(number, line, units, beside) for number, line in body)
    _check_complete(samples, cases_of(kernel, arguments, header["ranks"]), at)
    parameters: dict[str, Scalar] = {
        name: value
        for name, value in arguments.items()
        if name not in ("bytes", "libraries") and isinstance(value, str | int | float)
    }
    facts = {**_header_facts(header), **_end_facts(end), **beside}
    return Reading(kernel, str(header["version"]), parameters, header["ranks"], samples, facts)


def cases_of(kernel: str, arguments: Mapping[str, Any], ranks: int) -> list[tuple[str, Case]]:
    """Return metric and case of all that a kernel measures with these arguments."""
    if kernel in _OWN_CASES:
        return list(_OWN_CASES[kernel](arguments, ranks))
    units, keys = KERNELS[kernel]
    known: dict[str, Any] = {**arguments, "ranks": ranks, **_POINTS.get(kernel, {})}
    if kernel.startswith("gpu_"):
        known |= _of_gpus(arguments)
    names = {"count": "modules" if arguments.get("kind") == "python" else "libraries"}
    points = {
        names.get(key, key): [value] if isinstance(value, str | int) else value
        for key in keys
        if (value := known[key]) not in (None, [])  # memory_bandwidth may have no size
    }
    cases = [
        Case.of(**dict(zip(points, values, strict=True))) for values in product(*points.values())
    ]
    return [
        (metric, case)
        for metric in units
        for case in cases
        if not (case.get("type") in _TOO_LITTLE and case.get("intensity") == 2**-4)
    ]


def _of_gpus(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of keys of most kernels of GPUs."""
    gpus = int(arguments["gpus"])
    known = {"gpus": gpus, "gpu": range(gpus), "bytes": arguments.get("bytes") or [GPU_ARRAY]}
    kind = arguments.get("type", "usual")
    return known if kind == "usual" else {**known, "type": kind}


def _products(arguments: Mapping[str, Any], _ranks: int) -> Iterator[tuple[str, Case]]:
    """Yield each shape of each GPU; of the largest also its first figure, and that under load."""
    sizes = sorted(map(int, arguments["size"]))
    rows, load_s = int(arguments["rows"]), int(arguments["load_s"])
    for gpu in range(int(arguments["gpus"])):
        shapes = [(rows or size, size, size) for size in sizes]
        cases = [Case.of(gpu=gpu, type=arguments["type"], m=m, n=n, k=k) for m, n, k in shapes]
        yield from (("performance", case) for case in cases)
        if load_s:
            yield from ((metric, cases[-1]) for metric in ("first", "sustained"))


def _peers(arguments: Mapping[str, Any], _ranks: int) -> Iterator[tuple[str, Case]]:
    """Yield each pair of GPUs one way with its latency, each both ways, and all pairs at once."""
    for size in arguments["bytes"] or (GPU_ARRAY,):
        for a, b in permutations(range(int(arguments["gpus"])), 2):
            pair = (("from", a), ("to", b))
            yield "latency", Case((*pair, ("way", "one"), ("bytes", size)))
            yield "bandwidth", Case((*pair, ("way", "one"), ("bytes", size)))
            if a < b:
                yield "bandwidth", Case((*pair, ("way", "both"), ("bytes", size)))
        yield "bandwidth", Case.of(way="all", bytes=size)


def _pairs(arguments: Mapping[str, Any], ranks: int) -> Iterator[tuple[str, Case]]:
    """Yield the latency of each pair at the least size, at the others both its bandwidths."""
    for place, size in enumerate(sorted(arguments["bytes"])):
        for a, b in permutations(range(ranks), 2):
            if place or a < b:
                case = Case((("from", a), ("to", b), ("bytes", size)))
                yield "bandwidth" if place else "latency", case


def _flows(arguments: Mapping[str, Any], ranks: int) -> Iterator[tuple[str, Case]]:
    """Yield every metric at each size and number of connections; the flow for each sender."""
    senders = arguments.get("senders") or ranks - 3
    for metric in KERNELS["many_to_one"].units:
        for size, number in product(arguments["bytes"], arguments["connections"]):
            case = Case.of(bytes=size, connections=number)
            if metric != "flow":
                yield metric, case
                continue
            for sender in range(1, senders + 1):
                yield metric, Case((*case.items, ("sender", sender)))


_OWN_CASES: Mapping[str, Callable[[Mapping[str, Any], int], Iterable[tuple[str, Case]]]] = {
    "pairs": _pairs,
    "many_to_one": _flows,
    "gpu_gemm": _products,
    "gpu_peer": _peers,
    "storage": lambda _arguments, _ranks: (
        (metric, Case.of(op=op)) for metric, several in STORAGE.items() for op in several
    ),
}
"""Kernels whose metrics are not all measured at the same cases."""


def _lines(stdout: str) -> Iterable[tuple[int, dict[str, Any]]]:
    """Yield the number and the JSON of each of the kernel's lines.

    What a batch system prints before the first and after the last is skipped. Raises ParseError
    for anything between them, and for a second output.
    """
    inside = ended = False
    for number, raw in enumerate(stdout.splitlines(), 1):
        text = raw.strip()
        if not text.startswith('{"'):
            if inside and not ended and text:
                refuse(f"expected a line of the kernel, got {text[:60]!r}", number)
            continue
        if ended:
            refuse("the output goes on after its last line", number)
        try:
            line = json.loads(text, parse_constant=_finite, parse_float=_finite)
        except (ValueError, RecursionError) as error:
            refuse(f"not a whole line of the kernel ({error}): {text[:60]!r}", number)
        if inside == ("paribus_kernel" in line):
            refuse("a second first line" if inside else "the first line is missing", number)
        inside, ended = True, "end" in line
        yield number, line


def _announced(header: Mapping[str, Any], at: int) -> tuple[str, dict[str, Any]]:
    """Return the kernel that printed a first line, and the arguments that it echoes."""
    keys = ("paribus_kernel", "kernel", "ranks", "version")
    contract, kernel, ranks, _ = (header[key] for key in keys)
    if contract != 1 or kernel not in KERNELS:
        refuse(f"expected a kernel of contract 1, got {str(kernel)[:78]!r} of {contract!r}", at)
    if type(ranks) is not int:
        refuse(f"a number of ranks of {ranks!r}", at)
    for key in ("hosts", "boot", "affinity"):
        if not isinstance(header.get(key), list) or len(header[key]) != ranks:
            refuse(f"{key!r} does not name every rank: {header.get(key)!r}", at)
    arguments = {**header["args"], "like": header.get("like")}
    for key in {"bytes", "connections"}.intersection(KERNELS[kernel].keys):
        arguments[key] = [int(number) for number in arguments[key]]
    if kernel == "many_to_one" and not 0 <= int(arguments["senders"]) <= ranks - 3:
        refuse(f"{arguments['senders']!r} senders among {ranks} ranks", at)
    return kernel, arguments


def _sample(
    at: int,
    line: Mapping[str, Any],
    units: Mapping[str, str],
    beside: dict[str, Scalar | list[float]],
) -> Sample:
    """Return one case line as a sample, and add the facts on the line to `beside`.

    These are the median start skew, how much of a collective is hidden, each rank's share of time
    in MPI, how much of a file was in page caches and who had written it, which GPU it was with
    which versions, what was computed, and, for a pair of ranks that was measured again with fewer
    pairs at once, the figure before.
    """
    try:
        case = Case.of(**line["case"])
        name = str(line["metric"])
        if name not in units:
            refuse(f"unknown metric {line['metric']!r}", at)
        values = _numbers(line["samples"])
        if line["unit"] != units[name]:
            refuse(f"{name} is in {units[name]}, the line says {line['unit']!r}", at)
        if line["count"] != len(values):
            refuse(f"{line['count']} samples were taken, {len(values)} are on the line", at)
        if "skew_us" in line:
            if len(skews := _numbers(line["skew_us"])) != len(values):
                refuse(f"{len(values)} samples, but {len(skews)} figures of skew", at)
            beside[f"kernel.skew_us.{case}"] = median(skews)
        if "in_mpi" in line:
            beside["rank.in_mpi"] = list(_numbers(line["in_mpi"]))
        for key, value in dict(line.get("work", ())).items():
            if type(value) not in (int, float, str):
                raise ValueError(f"work of {value!r}")
            beside[f"{WORK}{key}"] = value
        for key, of in (("overlap", case), ("crowded", f"{name}.{case}"), ("cached", case)):
            if key in line and not (key == "cached" and line[key] is None):
                beside[f"kernel.{key}.{of}"] = _numbers([line[key]])[0]
        beside.update(_gpus(line))
        for key in {"written_by", "driver", "runtime", "nccl", "cublaslt"}.intersection(line):
            beside[f"kernel.{key if key == 'written_by' else f'gpu.{key}'}"] = str(line[key])
        for unit, joules in dict(line.get("j_per", ())).items():
            beside[f"{OF_WORK}{unit}"] = _numbers([joules])[0]
        if "direct" in line:
            beside[f"kernel.gpu.direct.{case}"] = str(line["direct"]).lower()
        if type(line["batch"]) is not int:
            refuse(f"a batch of {line['batch']!r} iterations", at)
        return Sample(name, case, values, line["batch"])
    except (KeyError, TypeError, ValueError) as error:
        refuse(f"not a case of the kernel: {error}", at)


def _gpus(line: Mapping[str, Any]) -> dict[str, str]:
    """Return facts on the GPUs of a case: name and PCI address, by the GPU's number.

    A line names one GPU by itself, and several that take part together in lists.
    """
    several = list(zip(line.get("names", ()), line.get("buses", ()), strict=True))
    known = dict(enumerate(several))
    if "bus" in line:
        known[int(line["case"]["gpu"])] = line["name"], line["bus"]
    facts = {}
    for gpu, (name, bus) in known.items():
        facts[f"kernel.gpu.{gpu}.name"] = str(name)
        facts[f"kernel.gpu.{gpu}.address"] = str(bus).lower()
    return facts


def _check_complete(
    samples: Sequence[Sample], announced: Sequence[tuple[str, Case]], at: int
) -> None:
    """Refuse a case that is missing, that is there twice, or that is not announced."""
    found = Counter((sample.metric, sample.case) for sample in samples)
    expected = set(announced)
    for one, times in found.items():
        if one not in expected or times > 1:
            why = "twice" if one in expected else "but the first line does not name it"
            refuse(f"{one[0]}{of_case(one[1])} is there {why}", at)
    for name, case in announced:
        if (name, case) not in found:
            refuse(f"{name}{of_case(case)} is missing", at)


def _header_facts(header: Mapping[str, Any]) -> dict[str, Any]:
    limits = header.get("limits") or {}
    facts = {
        "mpi.library": header.get("mpi"),
        # A library without one: lib.libmpi.so.digest distinguishes it from others.
        "mpi.build_id": header.get("mpi_build_id") or {"unknown": "absent"},
        "rank.hosts": header["hosts"],
        "rank.machines": header["boot"],
        "rank.affinity": header["affinity"],
        **{f"limits.{key}": value for key, value in limits.items()},
        "clock.tick_ns": header.get("tick_ns"),
        "clock.cost_ns": header.get("clock_ns"),
        "kernel.version": header.get("version"),
    }
    return {**facts, **_mapped_facts(header)}


def _mapped_facts(header: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts on libraries and surroundings in the first line, as in docs/facts.md.

    "" means that the kernel does not know; older kernels lack some keys.
    """
    names = {
        "transport": "mpi.transport_taken",
        "ucx": "mpi.ucx",
        "libfabric": "mpi.libfabric",
        "blas_core": "lib.blas.core",
        "hypervisor": "rank.hypervisor",
        "cgroup": "rank.cgroup",
        "mapped": "rank.libraries",
        "loaded": "mpi.loaded",
    }
    facts = {key: header[name] for name, key in names.items() if header.get(name)}
    if facts.get("mpi.transport_taken") == "unclear":
        facts["mpi.transport_taken"] = {"unknown": "unclear"}
    for name, build_id in (header.get("libraries") or {}).items():
        base = name.partition(".so")[0] + ".so" if ".so" in name else name
        key = "program" if name == "program" else f"lib.{base}"
        kind, _, digest = str(build_id).partition("digest:")
        facts[f"{key}.build_id" if kind else f"{key}.digest"] = kind or digest
    return facts


def _end_facts(end: Mapping[str, Any]) -> dict[str, Any]:
    facts = {
        "rank.cpu_s": end.get("cpu_s"),
        "rank.involuntary": end.get("involuntary"),
        "steal_s": end.get("steal_s"),
        "wall_s": end.get("wall_s"),
    }
    for when, state in (end.get("probe") or {}).items():
        facts |= {f"probe.{when}.{key}": value for key, value in state.items()}
    return facts


def _finite(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise ValueError(f"{text} is not a measurement")
    return value


def _numbers(values: Any) -> tuple[float, ...]:
    """Return a list of numbers as it is; raises ValueError for anything else."""
    if not isinstance(values, list) or any(type(v) not in (int, float) for v in values):
        raise ValueError(f"not a list of numbers: {str(values)[:60]}")
    return tuple(map(float, values))


READER = Reader(
    TOOL,
    read,
    marks=(MARK,),
    heads=(Head(MARK),),
    versions="of contract 1",
    proof="first and last line, arguments echoed, every case once, the check of the data passed",
    means="docs/kernels.md",
)
