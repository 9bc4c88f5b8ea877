"""The contract that every benchmark keeps, checked on captured output without a line per benchmark.

tests/fixtures/<benchmark>/good-*.out is what success prints, with the request in a .json beside
it; fail-*.out is what failure prints. Damage to a good output must give an error or exactly the
same samples: a digit replaced by another cannot be seen, everything else can.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import write_docs
from outputs import FIXTURES, read
from paribus.benchmarks import BENCHMARKS
from paribus.core import Benchmark, Parsed, ParseError, Request
from paribus.readers.tags import untagged

ROOT = Path(__file__).parents[1]
GOOD = sorted(p for name in BENCHMARKS for p in (FIXTURES / name).glob("good-*.out"))
READ = [p for p in GOOD if BENCHMARKS[p.parent.name].read is not None]
FAIL = sorted(p for name in BENCHMARKS for p in (FIXTURES / name).glob("fail-*.out"))
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
WORD = re.compile(r"\S+")
INSTEAD = ("NaN", "-1", "", "nan", "Infinity", "null", '"7"', "1e999", "0")
STDERR = "[node0:4711] 1 more process has sent help message help-mpi-btl-tcp.txt / client"
TAGS = (
    *("[1,0]<stdout>:", "[1,0]<stdout>: ", "[0]<stdout>: ", "[1,0][node0:24992]<stdout>: "),
    *("Sun Nov 22 07:44:08 2026[1,0]<stdout>:", "[Sun Nov 22 07:44:08 2026][1,0]<stdout>: "),
    *("0: ", "  0: ", "[0] ", "[default0]:"),
)
"""What Open MPI 4 and 5, Slurm, Hydra and torchrun put before the lines of rank 0."""
BANNER = ["*" * 60, "Welcome to the cluster. {maintenance} on 2026-12-01, 08:00", "", "* 12 34 *"]


Sample = Callable[[Iterable[Any]], list[Any]]


def benchmark_of(path: Path) -> Benchmark:
    one = BENCHMARKS[path.parent.name]
    if one.choose is None:
        return one
    return replace(one, metrics=one.choose(request_of(path).parameters))


def request_of(path: Path) -> Request:
    beside = path.with_suffix(".json")
    if beside.exists():
        table = json.loads(beside.read_text())
        return Request(table["parameters"], table["ranks"])
    benchmark = BENCHMARKS[path.parent.name]
    return Request({k: p.default for k, p in benchmark.parameters.items()}, benchmark.ranks)


def parsed(path: Path, text: str) -> Parsed | str:
    """Return what the benchmark reads in `text`, or the sentence with which it refuses."""
    try:
        return benchmark_of(path).parse(text, request_of(path))
    except ParseError as error:
        return error.cause


def joined(*parts: list[str]) -> str:
    return "\n".join(line for part in parts for line in part) + "\n"


def damaged(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Yield every damage that is tried on an output: its name, and the damaged text.

    Every line is cut, dropped, doubled, torn, coloured and moved, and a number on it replaced. All
    numbers and pairs of words are, by everything, on the first line of each form. In an output of
    more than 100 lines the ways take turns, so that each line is damaged in some.
    """
    seen: set[str] = set()
    turns = 1 + len(lines) // 100
    for i, line in enumerate(lines):
        form = NUMBER.sub("0", line).replace(" ", "")
        first = form not in seen
        seen.add(form)
        for k, (name, text) in enumerate(torn(lines, i)):
            if (i + k) % turns == 0:
                yield f"line {i + 1} {name}", text
        for name, text in replaced(line, i, everything=first and len(line) < 200, turns=turns):
            yield f"line {i + 1}: {name}", joined(lines[:i], [text], lines[i + 1 :])
    yield "nothing at all", ""
    yield "the output twice", joined(lines, lines)
    yield "two outputs interleaved", joined(*([line, line] for line in lines))
    yield "only line ends", "\n" * len(lines)


def torn(lines: list[str], i: int) -> Iterator[tuple[str, str]]:
    """Yield the output with its line `i` cut, dropped, doubled, interrupted, coloured or moved."""
    before, line, after = lines[:i], lines[i], lines[i + 1 :]
    half = len(line) // 2
    yield "cut in half", joined(before, [line[:half]], after)
    yield "and all after it cut off inside", "\n".join([*before, line[:half]])
    yield "is the last", joined(before, [line])
    yield "dropped", joined(before, after)
    yield "twice", joined(before, [line, line], after)
    yield "after a line of stderr", joined(before, [STDERR, line], after)
    yield "torn by a line of stderr", joined(before, [line[:half] + STDERR, line[half:]], after)
    yield "in colour", joined(before, [f"\x1b[32m{line}\x1b[0m"], after)
    yield "and the next swapped", joined(before, after[:1], [line], after[1:])


def replaced(line: str, i: int, *, everything: bool, turns: int) -> Iterator[tuple[str, str]]:
    """Yield the line with a number replaced, or two words that differ in form exchanged."""
    numbers = list(NUMBER.finditer(line))
    for match in numbers if everything else numbers[i % len(numbers or "1") :][:1]:
        for new in INSTEAD[i % turns :: turns] if everything else INSTEAD[i % len(INSTEAD) :][:1]:
            yield f"{match[0]} -> {new!r}", line[: match.start()] + new + line[match.end() :]
    for left, right in pairwise(WORD.finditer(line)) if everything else ():
        if telling(left[0], right[0]):
            swapped = line[left.end() : right.start()].join((right[0], left[0]))
            yield (
                f"{left[0]} and {right[0]} swapped",
                line[: left.start()] + swapped + line[right.end() :],
            )


def telling(one: str, other: str) -> bool:
    """Return whether two words differ in form: two equal figures cannot be distinguished."""
    return re.sub(r"\d+", "0", one) != re.sub(r"\d+", "0", other)


def test_every_benchmark_has_a_captured_output() -> None:
    without = [name for name in BENCHMARKS if not any(p.parent.name == name for p in GOOD)]
    assert not without
    assert FAIL


@pytest.mark.parametrize("path", GOOD, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_good_output_gives_every_case_asked_for(path: Path) -> None:
    found = parsed(path, path.read_text())
    assert isinstance(found, Parsed), found
    request, benchmark = request_of(path), benchmark_of(path)
    assert {s.metric for s in found.samples} <= {m.name for m in benchmark.metrics}
    assert benchmark.metrics[0].name in {s.metric for s in found.samples}
    if request.parameters.get("bytes"):
        sizes = {s.case.get("bytes") for s in found.samples}
        assert sizes == set(request.parameters["bytes"])
    assert all("." in key or key.endswith("_s") for key in found.facts)
    json.dumps(dict(found.facts), allow_nan=False)


@pytest.mark.slow
@pytest.mark.parametrize("path", GOOD, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_damage_is_refused_or_harmless(path: Path, sample: Sample) -> None:
    good = path.read_text()
    right = parsed(path, good)
    assert isinstance(right, Parsed)
    samples, benchmark, asked = set(right.samples), benchmark_of(path), request_of(path)
    slipped, refused = [], 0
    every = list(damaged(good.splitlines()))
    tried = sample(every)
    for name, text in tried:
        try:
            found = benchmark.parse(text, asked)
        except ParseError:
            refused += 1
        else:
            if set(found.samples) != samples or len(found.samples) != len(samples):
                slipped.append(name)
    assert not slipped
    assert refused > min(len(good.splitlines()), 100) * len(tried) / len(every) / 2
    if len(tried) == len(every):
        assert refused > min(len(good.splitlines()), 100)


@pytest.mark.slow
@pytest.mark.parametrize("path", READ, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_by_itself_it_says_the_same(path: Path, sample: Sample) -> None:
    """`read` knows no request: a shorter table may pass, never another or a hole in it."""
    benchmark, good = benchmark_of(path), path.read_text()
    right = read(benchmark.name, good)
    request = request_of(path)
    assert right.benchmark == benchmark.name
    assert right.samples == benchmark.parse(good, request).samples
    assert right.version
    assert right.ranks in (None, request.ranks)
    lines = good.splitlines()
    places = [
        (i, kept)
        for i, line in enumerate(lines)
        for kept in ([STDERR, line], [line[: len(line) // 2]], [line, line], [line, *lines])
    ]
    for i, kept in sample(places):
        text = "\n".join([*lines[:i], *kept, *lines[i + 1 :]]) + "\n"
        try:
            found = read(benchmark.name, text)
        except ParseError:
            continue
        assert set(found.samples) <= set(right.samples), f"line {i + 1}: {kept[0]}"
        assert {s.metric for s in found.samples} <= {s.metric for s in right.samples}


@pytest.mark.parametrize("path", READ, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_recognised_by_content_and_as_nothing_else(path: Path) -> None:
    """Whoever else takes the text for its own must find its own figures in it."""
    text = path.read_text()
    known = [b for b in BENCHMARKS.values() if b.recognise is not None and b.recognise(text)]
    assert BENCHMARKS[path.parent.name] in known
    for other in known:
        assert {s.metric for s in read(other.name, text).samples} <= {m.name for m in other.metrics}


@pytest.mark.parametrize("path", GOOD, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_what_a_batch_system_adds_is_harmless(path: Path) -> None:
    good = path.read_text()
    right = parsed(path, good)
    banner = "\n".join(BANNER) + "\n"
    texts = [banner + good, good + banner, good.replace("\n", "\r\n"), good + "\n\n"]
    if benchmark_of(path).read is not None:
        texts.append("".join(f"\x1b[1;32m{line}\x1b[0m\n" for line in good.splitlines()))
    for text in texts:
        assert parsed(path, text) == right


@pytest.mark.parametrize("path", READ, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_tags_of_ranks_are_no_part_of_the_output(path: Path) -> None:
    good, name = untagged(path.read_text()), path.parent.name
    right = read(name, good)
    banner = "\n".join(BANNER) + "\n"
    for tag in TAGS:
        tagged = "".join(f"{tag}{line}\n" for line in good.splitlines())
        assert read(name, tagged) == right, tag
        behind = f"{banner}{tag.replace('out', 'err')}{STDERR}\n{tagged}"
        assert read(name, behind) == read(name, f"{banner}{STDERR}\n{good}"), tag


@pytest.mark.parametrize("path", GOOD, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_another_request_is_refused(path: Path) -> None:
    request, benchmark = request_of(path), benchmark_of(path)
    if asked := request.parameters.get("bytes"):
        for sizes in ([*asked, 2 * max(asked)], asked[:-1]):
            other = Request({**request.parameters, "bytes": sizes}, request.ranks)
            with pytest.raises(ParseError):
                benchmark.parse(path.read_text(), other)


@pytest.mark.parametrize("path", FAIL, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_failure_is_refused_with_one_sentence(path: Path) -> None:
    with pytest.raises(ParseError) as caught:
        benchmark_of(path).parse(path.read_text(), request_of(path))
    assert "\n" not in caught.value.cause
    assert 10 < len(caught.value.cause) < 250


def test_the_written_parts_of_the_docs_are_those_of_the_code() -> None:
    stale = [path.name for path, text in write_docs.pages().items() if path.read_text() != text]
    assert stale == [], "stale: ./dev docs"


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_tool_says_what_its_figures_mean(name: str) -> None:
    benchmark = BENCHMARKS[name]
    if benchmark.read is None:
        return
    assert all((benchmark.versions, benchmark.proof, benchmark.means, benchmark.get))
    assert benchmark.program


@pytest.mark.parametrize("name", BENCHMARKS)
def test_small_and_consistent(name: str) -> None:
    benchmark = BENCHMARKS[name]
    assert benchmark.name == name
    assert all(0 < m.margin < 1 and m.better in ("lower", "higher") for m in benchmark.metrics)
    assert len({m.name for m in benchmark.metrics}) == len(benchmark.metrics)
    for key, parameter in benchmark.parameters.items():
        if parameter.default is not None:
            assert parameter.read(parameter.default) == parameter.default, key
    defaults = {k: p.default for k, p in benchmark.parameters.items()}
    assert benchmark.command(Request(defaults, benchmark.ranks)).argv
