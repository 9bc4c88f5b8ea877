"""The contract that every benchmark keeps, checked on captured output without a line per benchmark.

tests/fixtures/<benchmark>/good-*.out is what success prints, with the request in a .json beside
it; fail-*.out is what failure prints. Damage to a good output must give an error or exactly the
same samples: a digit replaced by another cannot be seen, everything else can.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from paribus.benchmarks import BENCHMARKS
from paribus.errors import ParseError
from paribus.model import Benchmark, Parsed, Request

ROOT = Path(__file__).parents[1]
FIXTURES = ROOT / "tests" / "fixtures"
GOOD = sorted(p for name in BENCHMARKS for p in (FIXTURES / name).glob("good-*.out"))
FAIL = sorted(p for name in BENCHMARKS for p in (FIXTURES / name).glob("fail-*.out"))
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
STDERR = "[node0:4711] 1 more process has sent help message help-mpi-btl-tcp.txt / client"
BANNER = ["*" * 60, "Welcome to the cluster. {maintenance} on 2026-12-01, 08:00", "", "* 12 34 *"]


def benchmark_of(path: Path) -> Benchmark:
    return BENCHMARKS[path.parent.name]


def request_of(path: Path) -> Request:
    beside = path.with_suffix(".json")
    if beside.exists():
        table = json.loads(beside.read_text())
        return Request(table["parameters"], table["ranks"])
    benchmark = benchmark_of(path)
    return Request({k: p.default for k, p in benchmark.parameters.items()}, benchmark.ranks)


def parsed(path: Path, text: str) -> Parsed | str:
    """Return what the benchmark reads in `text`, or the sentence with which it refuses."""
    try:
        return benchmark_of(path).parse(text, request_of(path))
    except ParseError as error:
        return error.cause


def damaged(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Yield every damage that is tried on an output: its name, and the damaged text."""

    def joined(*parts: list[str]) -> str:
        return "\n".join(line for part in parts for line in part) + "\n"

    for i, line in enumerate(lines):
        before, after = lines[:i], lines[i + 1 :]
        where = f"line {i + 1}"
        yield f"{where} cut in half", joined(before, [line[: len(line) // 2]], after)
        yield f"output cut inside {where}", "\n".join([*before, line[: len(line) // 2]])
        yield f"output cut after {where}", joined(before, [line])
        yield f"{where} dropped", joined(before, after)
        yield f"{where} twice", joined(before, [line, line], after)
        yield f"stderr before {where}", joined(before, [STDERR, line], after)
        middle = len(line) // 2
        torn = f"{line[:middle]}{STDERR}\n{line[middle:]}"
        yield f"stderr inside {where}", joined(before, [torn], after)
        yield f"colour on {where}", joined(before, [f"\x1b[32m{line}\x1b[0m"], after)
        yield f"{where} and the next swapped", joined(before, after[:1], [line], after[1:])
        for match in NUMBER.finditer(line):
            for new in ("NaN", "nan", "Infinity", "-1", "", "null", '"7"', "1e999", "0"):
                text = line[: match.start()] + new + line[match.end() :]
                yield f"{where}: {match[0]} -> {new!r}", joined(before, [text], after)
    yield "nothing at all", ""
    yield "the output twice", joined(lines, lines)
    yield "two outputs interleaved", joined(*([line, line] for line in lines))
    yield "only line ends", "\n" * len(lines)


def test_every_benchmark_has_a_captured_output() -> None:
    without = [name for name in BENCHMARKS if not any(p.parent.name == name for p in GOOD)]
    assert not without
    assert FAIL


@pytest.mark.parametrize("path", GOOD, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_good_output_gives_every_case_asked_for(path: Path) -> None:
    found = parsed(path, path.read_text())
    assert isinstance(found, Parsed), found
    request, benchmark = request_of(path), benchmark_of(path)
    assert {s.metric for s in found.samples} == {m.name for m in benchmark.metrics}
    if "bytes" in request.parameters:
        sizes = [s.case.get("bytes") for s in found.samples]
        assert sizes == list(request.parameters["bytes"]) * len(benchmark.metrics)
    assert all("." in key or key.endswith("_s") for key in found.facts)
    json.dumps(dict(found.facts), allow_nan=False)


@pytest.mark.parametrize("path", GOOD, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_damage_is_refused_or_harmless(path: Path) -> None:
    good = path.read_text()
    right = parsed(path, good)
    assert isinstance(right, Parsed)
    slipped, refused = [], 0
    for name, text in damaged(good.splitlines()):
        found = parsed(path, text)
        if isinstance(found, str):
            refused += 1
        elif sorted(found.samples, key=str) != sorted(right.samples, key=str):
            slipped.append(name)
    assert not slipped
    assert refused > len(good.splitlines())


@pytest.mark.parametrize("path", GOOD, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_what_a_batch_system_adds_is_harmless(path: Path) -> None:
    good = path.read_text()
    right = parsed(path, good)
    around = ["\n".join(BANNER) + "\n" + good, good + "\n".join(BANNER) + "\n"]
    for text in (*around, good.replace("\n", "\r\n"), good + "\n\n"):
        assert parsed(path, text) == right


@pytest.mark.parametrize("path", GOOD, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_another_request_is_refused(path: Path) -> None:
    request, benchmark = request_of(path), benchmark_of(path)
    if "bytes" in request.parameters:
        for sizes in ([*request.parameters["bytes"], 2**30], request.parameters["bytes"][:-1]):
            other = Request({**request.parameters, "bytes": sizes}, request.ranks)
            with pytest.raises(ParseError):
                benchmark.parse(path.read_text(), other)


@pytest.mark.parametrize("path", FAIL, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_failure_is_refused_with_one_sentence(path: Path) -> None:
    with pytest.raises(ParseError) as caught:
        benchmark_of(path).parse(path.read_text(), request_of(path))
    assert "\n" not in caught.value.cause
    assert 10 < len(caught.value.cause) < 200


@pytest.mark.parametrize("name", BENCHMARKS)
def test_documented_as_it_is(name: str) -> None:
    """docs/benchmarks.md has one row for it: layer, unit and direction of each metric."""
    benchmark = BENCHMARKS[name]
    rows = (ROOT / "docs" / "benchmarks.md").read_text().splitlines()
    row = [r for r in rows if r.startswith(f"| `{name}` |")]
    assert len(row) == 1, f"docs/benchmarks.md needs one row that begins with | `{name}` |"
    cells = [cell.strip() for cell in row[0].strip("|").split("|")]
    assert cells[1] == benchmark.layer
    expected = ", ".join(f"`{m.name}` ({m.unit}, {m.better})" for m in benchmark.metrics)
    assert cells[2] == expected
    for parameter in benchmark.parameters:
        assert f"`{parameter}`" in row[0], f"{name}: parameter {parameter} is not in its row"


@pytest.mark.parametrize("name", BENCHMARKS)
def test_small_and_consistent(name: str) -> None:
    benchmark = BENCHMARKS[name]
    module = ROOT / "src" / "paribus" / "benchmarks" / f"{name}.py"
    assert len(module.read_text().splitlines()) <= 100
    assert all(0 < m.margin < 1 and m.better in ("lower", "higher") for m in benchmark.metrics)
    assert len({m.name for m in benchmark.metrics}) == len(benchmark.metrics)
    for key, parameter in benchmark.parameters.items():
        if parameter.default is not None:
            assert parameter.read(parameter.default) == parameter.default, key
    defaults = {k: p.default for k, p in benchmark.parameters.items()}
    assert benchmark.command(Request(defaults, benchmark.ranks)).argv
