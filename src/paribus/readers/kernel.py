"""What Paribus' own kernels print, read against a request or by what they say of themselves.

The contract is docs/kernels.md. The reader demands the first line, every requested case exactly
once, every argument echoed as asked, and the last line; between first and last nothing else. A log
that lies about has no request, so it is made of the first line, which echoes every argument.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

from paribus.errors import ParseError
from paribus.model import Case, Parsed, Reading, Request, Sample, Scalar
from paribus.readers.reader import Reader
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
    "bcast": Kernel({"time": "us"}),
    "allgather": Kernel({"time": "us"}),
    "allreduce": Kernel({"time": "us"}),
    "alltoall": Kernel({"time": "us"}),
    "barrier": Kernel({"time": "us"}, ()),
    "triad": Kernel({"bandwidth": "GB/s"}),
    "loader": Kernel({"load": "ms", "first_call": "ms", "startup": "ms"}, ("count", "functions")),
}


def read(text: str) -> Reading:
    """Return what a kernel printed; raises ParseError for anything but a whole output."""
    at = text.find(MARK)
    if at < 0:
        raise ParseError("the kernel printed nothing: no first line")
    line = text.count("\n", 0, at) + 1
    try:
        header, _ = json.JSONDecoder().raw_decode(text, at)
        kernel = str(header["kernel"])
        if kernel not in KERNELS:
            refuse(f"{kernel[:78]!r} is no kernel of Paribus", line)
        said = {**header["args"], "like": header.get("like")}
        ranks, version = int(header["ranks"]), str(header["version"])
        if "bytes" in KERNELS[kernel].keys:
            said["bytes"] = [int(size) for size in said["bytes"]]
    except (
        AttributeError,
        KeyError,
        OverflowError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        cause = f"not a whole first line of a kernel: {error!r}"
        raise ParseError(cause[:240], line=line) from error
    parsed = read_asked(kernel, text, Request(said, ranks))
    parameters: dict[str, Scalar] = {
        name: value
        for name, value in said.items()
        if name not in ("bytes", "libraries") and isinstance(value, str | int | float)
    }
    return Reading(kernel, version, parameters, ranks, parsed.samples, parsed.facts)


def read_asked(kernel: str, text: str, request: Request) -> Parsed:
    """Return what a kernel printed; raises ParseError unless it is whole and what was asked for."""
    units, keys = KERNELS[kernel]
    lines = list(_lines(text))
    if not lines:
        raise ParseError("the kernel printed nothing: no first line")
    (at, header), *rest = lines
    _check_header(kernel, header, request, at)
    if not rest or rest[-1][1].get("end") is not True:
        raise ParseError("the last line is missing: the kernel did not finish", line=lines[-1][0])
    (at, end), body = rest[-1], rest[:-1]
    if end.get("check") != "passed":
        refuse(f"the check of the data did not pass: {end.get('check')!r}", at)
    skew: dict[str, float] = {}
    samples = tuple(_sample(at, line, units, skew) for at, line in body)
    _check_complete(samples, request, units, keys, rest[-1][0])
    return Parsed(samples, {**_header_facts(header), **_end_facts(end), **skew})


def _lines(stdout: str) -> Iterable[tuple[int, dict[str, Any]]]:
    """Yield the kernel's lines with their numbers.

    What a batch system prints before the first and after the last is passed over; nothing may
    stand between, nor may a second output follow.
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


def _check_header(kernel: str, header: Mapping[str, Any], request: Request, at: int) -> None:
    contract, name = header.get("paribus_kernel"), header.get("kernel")
    if (contract, name) != (1, kernel):
        refuse(f"expected kernel {kernel!r} of contract 1, got {name!r} of {contract!r}", at)
    if header.get("ranks") != request.ranks:
        refuse(f"{request.ranks} ranks were asked for, {header.get('ranks')!r} were started", at)
    for key in ("hosts", "boot", "affinity"):
        if not isinstance(header.get(key), list) or len(header[key]) != request.ranks:
            refuse(f"{key!r} does not name every rank: {header.get(key)!r}", at)
    echoed = {**(header.get("args") or {}), "like": header.get("like")}
    for key, asked in request.parameters.items():
        if asked is not None and not _equal(asked, echoed.get(key)):
            refuse(f"{key} = {asked!r} was asked for, the kernel says {echoed.get(key)!r}", at)


def _sample(
    at: int, line: Mapping[str, Any], units: Mapping[str, str], skew: dict[str, float]
) -> Sample:
    """Return one case line as a sample, its median start skew added to `skew`."""
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
            skew[f"kernel.skew_us.{case}"] = median(skews)
        if type(line["batch"]) is not int:
            refuse(f"a batch of {line['batch']!r} iterations", at)
        return Sample(name, case, values, line["batch"])
    except (KeyError, TypeError, ValueError) as error:
        refuse(f"not a case of the kernel: {error}", at)


def _check_complete(
    samples: Sequence[Sample],
    request: Request,
    metrics: Iterable[str],
    keys: Sequence[str],
    at: int,
) -> None:
    """Refuse a case that is missing, double, or was not asked for."""
    if keys == ("bytes",):
        cases = [Case.of(bytes=size) for size in request.parameters["bytes"]]
    else:
        names = {"count": "libraries", "functions": "functions"}
        cases = [Case.of(**{names[key]: request.parameters[key] for key in keys})]
    asked = {(metric, case) for metric in metrics for case in cases}
    found = [(sample.metric, sample.case) for sample in samples]
    for one in found:
        if one not in asked or found.count(one) > 1:
            why = "twice" if one in asked else "but was not asked for"
            refuse(f"{one[0]} at {one[1]} is there {why}", at)
    for name, case in sorted(asked - set(found)):
        refuse(f"{name} at {case} is missing", at)


def _header_facts(header: Mapping[str, Any]) -> dict[str, Any]:
    limits = header.get("limits") or {}
    facts = {
        "mpi.library": header.get("mpi"),
        # A library without one: lib.libmpi.so.digest tells it from others.
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
    """Return what the first line says of libraries and surroundings, as docs/facts.md has it.

    "" is how a kernel says that it does not know; those that are older than a key do not have it.
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


def _equal(asked: Any, said: Any) -> bool:
    if isinstance(asked, float) and isinstance(said, int | float):
        return math.isclose(asked, said, rel_tol=1e-6)
    return (list(asked) == said) if isinstance(asked, list | tuple) else bool(asked == said)


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
    versions="of contract 1",
    proof="first and last line, arguments echoed, every case once, the check of the data passed",
    means="docs/kernels.md",
)
