"""A short part of `./dev fuzz`, the same each time: no reader hangs, breaks, or reads nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import pytest

import fuzz_readers
from fuzz_readers import LONG, fault, fuzz, made, outputs, parsers
from paribus.benchmarks import BENCHMARKS
from paribus.core import Reading
from paribus.readers.known import HARNESSES

INPUTS = 500


@pytest.mark.parametrize("parser", parsers())
def test_any_text_is_read_or_refused_within_the_limit(
    parser: str, sample: Callable[[Iterable[int]], list[int]]
) -> None:
    numbers = sample(range(INPUTS))
    tried, finds = fuzz(parser, 1, numbers, seconds=100)
    assert tried == len(numbers)
    assert not [(find.number, find.name, find.wrong) for find in finds]


def test_every_benchmark_is_fuzzed_with_outputs_of_its_own() -> None:
    covered = [name for parser, reads in parsers().items() if parser != "files" for name in reads]
    assert sorted(covered) == sorted([*BENCHMARKS, *HARNESSES, "nvidia_topo", "topology"])
    for parser, reads in parsers().items():
        assert {name for name, _ in outputs(parser)} == set(reads)


def test_an_input_follows_from_seed_and_number() -> None:
    assert made("osu", 7, 3) == made("osu", 7, 3)
    assert made("osu", 7, 3) != made("osu", 8, 3)
    assert len({made("osu", 7, number) for number in range(50)}) > 45


FOUND = {
    "a kernel's line nested without end": ("latency", "\n", '\n{"bytes": ' + "[" * 100_000 + "\n"),
    "digits before the use of the CPU": ("lammps", " tau/day, ", f" tau/day, {'75' * LONG}"),
    "digits in a percentile": ("fio", "99.95th", f"99.{'95' * LONG}th"),
    "a word without end in a setting": ("pytorch_ddp", "DLL 2", f"DLL {'21' * LONG}2"),
}


@pytest.mark.parametrize("what", FOUND)
def test_what_was_found_stays_fixed(what: str) -> None:
    name, old, new = FOUND[what]
    read = next(r[name] for parser, r in parsers().items() if parser != "files" and name in r)
    goods = [p.read_text() for p in (fuzz_readers.FIXTURES / name).glob("good-*.out")]
    damaged = [good.replace(old, new, 1) for good in goods]
    assert damaged != goods
    assert not any(fault(name, read, text) for text in damaged)


def reading(text: str) -> Reading:
    return Reading("osu_bw", "1", {}, None, ())


def hanging(text: str) -> Reading:
    re.match(r"(a+)+$", "a" * 60 + "b")
    return reading(text)


def breaking(text: str) -> Reading:
    raise IndexError("no such column")


@pytest.mark.parametrize(
    ("reader", "said"),
    [
        (hanging, "takes longer than 0.2 s"),
        (breaking, "raises IndexError: no such column"),
        (reading, "reads nothing, without a word"),
    ],
)
def test_a_fault_is_found_and_can_be_repeated(
    reader: Callable[[str], Reading], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzz_readers, "LIMIT_S", 0.2)
    monkeypatch.setattr(fuzz_readers, "MOST", 100)
    bad = {**parsers(), "osu": dict.fromkeys(parsers()["osu"], reader)}
    monkeypatch.setattr(fuzz_readers, "parsers", lambda: bad)
    _, (find, *more) = fuzz("osu", 1, range(5, 9), seconds=0.5)
    assert said in find.wrong
    assert all(re.sub(r"\d+", "", other.wrong) != find.wrong for other in more)
    assert (find.name, find.text) == made("osu", 1, find.number)
    assert said in fault(find.name, reader, find.text)
