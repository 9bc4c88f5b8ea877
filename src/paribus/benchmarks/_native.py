"""What the native kernels have in common: parameters, command line, and the reader of their lines.

The contract is docs/kernels.md. The reader demands the first line, every requested case exactly
once, every argument echoed as asked, and the last line; between first and last nothing else.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from statistics import median
from typing import Any, NoReturn

from paribus.benchmarks._parameters import one_of, positive, real, sizes
from paribus.errors import ParseError
from paribus.model import Benchmark, Case, Metric, Parameter, Parsed, Program, Request, Sample

# Both sides of the usual protocol switches (4, 8, 16, 64 KiB: eager limits, single copy, pipeline).
SIZES = "8 B, 64 B, 512 B, 2 KiB, 4 KiB, 8 KiB, 16 KiB, 32 KiB, 64 KiB, 128 KiB, 256 KiB, 1 MiB"

# docs/statistics.md, "margin": collectives vary more than the wire does.
COLLECTIVE = Metric("time", "us", "lower", margin=0.05)


def native(
    kernel: str,
    *,
    layer: str,
    summary: str,
    metrics: tuple[Metric, ...],
    bytes: str | None = SIZES,  # noqa: A002 - the study's own word
    like: bool = True,
    extra: Mapping[str, Parameter] | None = None,
    libraries: bool = False,
) -> Benchmark:
    """Return the benchmark of one native kernel; `bytes` of None: it has no sizes."""
    parameters: dict[str, Parameter] = {}
    if bytes is not None:
        parameters["bytes"] = Parameter(
            sizes(bytes.split(", ")), sizes, 'message sizes: ["8 B", "4 KiB"] or "1 B : 1 MiB"'
        )
    if not libraries:
        parameters |= {
            "samples": Parameter(None, positive, "samples per case at most, instead of 200"),
            "iterations": Parameter(
                None, positive, "iterations per sample, instead of as many as the clock needs"
            ),
            "delay_us": Parameter(None, real, "wait this long in every operation: a known answer"),
            "delay_share": Parameter(None, real, "wait this share of the operation's own time"),
        }
    if like:
        parameters["like"] = Parameter(
            "paribus", one_of("paribus", "osu", "imb"), "measure as this program defines it"
        )
    return Benchmark(
        name=kernel,
        layer=layer,
        summary=summary,
        metrics=metrics,
        command=partial(command, kernel, libraries),
        parse=partial(read, kernel, metrics),
        parameters={**parameters, **(extra or {})},
    )


def command(kernel: str, libraries: bool, request: Request) -> Program:
    """Return the kernel's command line: every parameter that was set, and the ranks to refuse."""
    argv = ["--ranks", str(request.ranks)]
    for key, value in request.parameters.items():
        if value is not None:
            text = ",".join(map(str, value)) if key == "bytes" else str(value)
            argv += [f"--{key.replace('_', '-')}", text]
    count, functions = (request.parameters.get(key) for key in ("count", "functions"))
    return Program(tuple(argv), kernel, (int(count), int(functions)) if libraries else None)  # type: ignore[arg-type]


def read(kernel: str, metrics: Sequence[Metric], stdout: str, request: Request) -> Parsed:
    """Return what the kernel printed; raises ParseError for anything but a whole, right output."""
    lines = list(_lines(stdout))
    if not lines:
        raise ParseError("the kernel printed nothing: no first line")
    (at, header), *rest = lines
    _check_header(kernel, header, request, at)
    if not rest or rest[-1][1].get("end") is not True:
        raise ParseError("the last line is missing: the kernel did not finish", line=lines[-1][0])
    (at, end), body = rest[-1], rest[:-1]
    if end.get("check") != "passed":
        _refuse(at, f"the check of the data did not pass: {end.get('check')!r}")
    skew: dict[str, float] = {}
    samples = tuple(_sample(at, line, metrics, skew) for at, line in body)
    _check_complete(samples, request, metrics, rest[-1][0])
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
                _refuse(number, f"expected a line of the kernel, got {text[:60]!r}")
            continue
        if ended:
            _refuse(number, "the output goes on after its last line")
        try:
            line = json.loads(text, parse_constant=_finite, parse_float=_finite)
        except (ValueError, RecursionError) as error:
            _refuse(number, f"not a whole line of the kernel ({error}): {text[:60]!r}")
        if inside == ("paribus_kernel" in line):
            _refuse(number, "a second first line" if inside else "the first line is missing")
        inside, ended = True, "end" in line
        yield number, line


def _check_header(kernel: str, header: Mapping[str, Any], request: Request, at: int) -> None:
    contract, name = header.get("paribus_kernel"), header.get("kernel")
    if (contract, name) != (1, kernel):
        _refuse(at, f"expected kernel {kernel!r} of contract 1, got {name!r} of {contract!r}")
    if header.get("ranks") != request.ranks:
        _refuse(at, f"{request.ranks} ranks were asked for, {header.get('ranks')!r} were started")
    for key in ("hosts", "boot", "affinity"):
        if not isinstance(header.get(key), list) or len(header[key]) != request.ranks:
            _refuse(at, f"{key!r} does not name every rank: {header.get(key)!r}")
    echoed = {**(header.get("args") or {}), "like": header.get("like")}
    for key, asked in request.parameters.items():
        if asked is not None and not _equal(asked, echoed.get(key)):
            _refuse(at, f"{key} = {asked!r} was asked for, the kernel says {echoed.get(key)!r}")


def _sample(
    at: int, line: Mapping[str, Any], metrics: Sequence[Metric], skew: dict[str, float]
) -> Sample:
    """Return one case line as a sample, its median start skew added to `skew`."""
    try:
        case = Case.of(**line["case"])
        metric = next(m for m in metrics if m.name == line["metric"])
        values = _numbers(line["samples"])
        if line["unit"] != metric.unit:
            _refuse(at, f"{metric.name} is in {metric.unit}, the line says {line['unit']!r}")
        if line["count"] != len(values):
            _refuse(at, f"{line['count']} samples were taken, {len(values)} are on the line")
        if "skew_us" in line:
            if len(skews := _numbers(line["skew_us"])) != len(values):
                _refuse(at, f"{len(values)} samples, but {len(skews)} figures of skew")
            skew[f"kernel.skew_us.{case}"] = median(skews)
        if type(line["batch"]) is not int:
            _refuse(at, f"a batch of {line['batch']!r} iterations")
        return Sample(metric.name, case, values, line["batch"])
    except StopIteration:
        _refuse(at, f"unknown metric {line.get('metric')!r}")
    except (KeyError, TypeError, ValueError) as error:
        _refuse(at, f"not a case of the kernel: {error}")


def _check_complete(
    samples: Sequence[Sample], request: Request, metrics: Sequence[Metric], at: int
) -> None:
    """Refuse a case that is missing, double, or was not asked for."""
    keys = [key for key in ("bytes", "count", "functions") if key in request.parameters]
    if keys == ["bytes"]:
        cases = [Case.of(bytes=size) for size in request.parameters["bytes"]]
    else:
        names = {"count": "libraries", "functions": "functions"}
        cases = [Case.of(**{names[key]: request.parameters[key] for key in keys})]
    asked = {(metric.name, case) for metric in metrics for case in cases}
    found = [(sample.metric, sample.case) for sample in samples]
    for one in found:
        if one not in asked or found.count(one) > 1:
            why = "twice" if one in asked else "but was not asked for"
            _refuse(at, f"{one[0]} at {one[1]} is there {why}")
    for name, case in sorted(asked - set(found)):
        _refuse(at, f"{name} at {case} is missing")


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


def _refuse(line: int, cause: str) -> NoReturn:
    raise ParseError(cause if len(cause) <= 240 else f"{cause[:240]} ...", line=line)
