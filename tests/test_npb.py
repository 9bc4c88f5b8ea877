"""The kernels of NPB: launched with the MPI that is here, refused, and with damaged values."""

from __future__ import annotations

import hashlib
import json
import math
import os
import random
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mpis import any_mpi
from native import NATIVE, Ended, started, together
from paribus.benchmarks import get
from paribus.core import Request, UserError
from paribus.launch import toolchain
from paribus.launch.machine import HERE
from paribus.launch.toolchain import find_mpi, kernel_path
from paribus.readers.kernel import read

NAMES = ("ep", "is", "cg", "mg", "ft", "lu", "sp", "bt")
VALUES = {"ep": 2, "is": 5, "cg": 1, "mg": 1, "ft": 12, "lu": 11, "sp": 10, "bt": 10}
"""How many official values a class has, S and W."""
LOG = math.log(2**18)
MILLIONS = {
    ("ep", "S"): 2**25 / 1e6,
    ("is", "S"): 10 * 2**16 / 1e6,
    # cg.f: 2 niter na (3 + nonzer (nonzer + 1) + 25 (5 + nonzer (nonzer + 1)) + 3)
    ("cg", "S"): 2 * 15 * 1400 * (3 + 56 + 25 * (5 + 56) + 3) / 1e6,
    ("mg", "S"): 58 * 4 * 32**3 / 1e6,
    # ft.f, with the logarithm of the points
    ("ft", "S"): 2**18 * (14.8157 + 7.19641 * LOG + 6 * (5.23518 + 7.21113 * LOG)) / 1e6,
    ("lu", "S"): 50 * (1984.77 * 12**3 - 10923.3 * 12**2 + 27770.9 * 12 - 144010) / 1e6,
    ("sp", "S"): 100 * (881.174 * 12**3 - 4683.91 * 12**2 + 11484.5 * 12 - 19272.4) / 1e6,
    ("bt", "S"): 60 * (3478.8 * 12**3 - 17655.7 * 12**2 + 28023.7 * 12) / 1e6,
}
"""Operations that the sources of NPB count."""


def launched(program: Path, *arguments: str, ranks: int) -> Ended:
    """Return how a launch ended; one repetition after the one that is not timed."""
    return started(program, *arguments, "--samples", "1", ranks=ranks)


@pytest.fixture(scope="module")
def program() -> Path:
    any_mpi()
    return kernel_path("npb", find_mpi(None, HERE), HERE)


@pytest.mark.parametrize("name", NAMES)
def test_class_s_is_verified_on_any_ranks(name: str, program: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        squares = name in ("sp", "bt")
        several = [1, 4, 9] if squares else [1, 2, 4] + ([3] if name == "ep" else [8])
        ends = pool.map(lambda n: launched(program, name, "--class", "S", ranks=n), several)
        for ranks, ended in zip(several, ends, strict=True):
            assert ended.returncode == 0, ended.stderr
            reading = read(ended.stdout)
            mops, seconds = (sample.values[0] for sample in reading.samples)
            assert mops * seconds == pytest.approx(MILLIONS[name, "S"], rel=1e-5)
            assert {sample.case.get("ranks") for sample in reading.samples} == {ranks}
            shares = reading.facts["rank.in_mpi"]
            assert len(shares) == ranks
            assert all(0 <= share <= 1 for share in shares)


LARGER = {
    **dict.fromkeys(("is", "cg", "mg", "ft"), ("A", 2)),
    **dict.fromkeys(("sp", "bt"), ("W", 25)),
    "ep": ("W", 2),
    "lu": ("W", 1),
}
"""One class and ranks of each benchmark; official values of all classes are compared below.

LU on one rank: where cores are shared, ranks that wait for each plane take minutes. The cells of SP
and BT differ in size where 25 ranks share class W.
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_larger_class_is_verified(name: str, program: Path) -> None:
    size, ranks = LARGER[name]
    ended = launched(program, name, "--class", size, ranks=ranks)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.slow
def test_ft_is_verified_on_more_ranks_than_planes(program: Path) -> None:
    """Class W has 32 planes; each process then has a part of them along both other axes."""
    ended = launched(program, "ft", "--class", "W", ranks=64)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize(("size", "probed"), [("W", False), ("A", True)])
def test_the_state_probe_needs_no_more_memory_than_the_program(
    size: str, probed: bool, program: Path
) -> None:
    """Of `is`, class W needs 10 MiB by its formula and class A 78; the probe's triad takes 24."""
    ended = launched(program, "is", "--class", size, ranks=1)
    assert ended.returncode == 0, ended.stderr
    last = json.loads(ended.stdout.splitlines()[-1])
    for state in last["probe"].values():
        assert (state["triad_gbps"] is not None) == probed
        assert state["clock_ghz"] > 0


REFUSED: dict[str, tuple[list[str], int, str]] = {
    "class": (["ep", "--class", "X"], 1, "--class needs one of S, W, A, B, C, D"),
    "ranks of cg": (["cg", "--class", "S"], 3, "class S takes 1, 2, 4, 8 ... 256 ranks, not 3"),
    "ranks of bt": (["bt", "--class", "W"], 2, "class W takes 1, 4, 9 ... 64 ranks, not 2"),
    "benchmark": (["sort"], 1, "the first argument must be one of ep, is, cg"),
    "ranks": (["is", "--class", "S", "--ranks", "2"], 1, "1 ranks, not the 2 asked for"),
}


@pytest.fixture(scope="module")
def failed(program: Path) -> dict[str, Ended]:
    """Return how launches ended whose values were damaged, and those that cannot be."""
    several = {name: ([name, "--class", "S", "--corrupt"], 1) for name in NAMES}
    several |= {what: (words, ranks) for what, (words, ranks, _) in REFUSED.items()}
    once = ("--samples", "1")
    return together({k: (program, [*words, *once], ranks) for k, (words, ranks) in several.items()})


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_result_fails_the_launch(name: str, failed: dict[str, Ended]) -> None:
    ended = failed[name]
    assert (ended.returncode, ended.stdout) == (1, "")
    assert f'{name}: verification failed at {{"class": "S", "ranks": 1}}' in ended.stderr


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_is_refused(what: str, failed: dict[str, Ended]) -> None:
    assert failed[what].returncode == 2
    assert REFUSED[what][2] in failed[what].stderr


def test_a_class_too_large_for_the_memory_is_refused(program: Path) -> None:
    if os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") > 70e9:
        pytest.skip("this machine has memory for class D of FT")
    ended = launched(program, "ft", "--class", "D", ranks=1)
    assert ended.returncode == 2
    said = "ft: class D does not fit in memory (65536 MiB for 1 of the ranks on a machine with "
    assert said in ended.stderr


@pytest.mark.parametrize(
    ("name", "ranks", "fix"),
    [
        ("is", 3, "set ranks to one of 1, 2, 4, 8 ... 512"),
        ("cg", 512, "set ranks to one of 1, 2, 4, 8 ... 256"),
        ("mg", 1024, "set ranks to one of 1, 2, 4, 8 ... 512"),
        ("ft", 512, "set ranks to one of 1, 2, 4, 8 ... 256"),
        ("lu", 32, "set ranks to one of 1, 2, 4, 8 ... 16"),
        ("sp", 8, "set ranks to one of 1, 4, 9 ... 16"),
        ("bt", 25, "set ranks to one of 1, 4, 9 ... 16"),
        ("ep", 257, "set ranks = 1 to 256"),
    ],
)
def test_illegal_ranks_are_refused_before_the_launch(name: str, ranks: int, fix: str) -> None:
    with pytest.raises(UserError, match=f"{name} of class S cannot be started") as caught:
        get(name).command(Request({"class": "S"}, ranks))
    assert caught.value.fix == fix


def test_is_of_class_d_takes_four_ranks_or_more() -> None:
    with pytest.raises(UserError) as caught:
        get("is").command(Request({"class": "D"}, 2))
    assert caught.value.fix == "set ranks to one of 4, 8, 16 ... 1024"


COMPARED = {
    "ep": "dd4eb356610581c5",
    "is": "9209abc6cfe975e5",
    "cg": "151b55d728c765b5",
    "mg": "374107b32e1ab2b3",
    "ft": "6858f10738221e9b",
    "lu": "0606b13f9e74148b",
    "sp": "53a322e77c0e1fc4",
    "bt": "208e5dc44066b04c",
}
"""Hashes of what the sources hold, made when every value was found in those of NPB 3.3.1."""
OFFICIAL = re.compile(r"(?:case '[SWABC]'|default):\s*return (\{.*?\});", re.DOTALL)
"""A class's problem and official values, in the source of a benchmark."""


def values_of(source: str) -> str:
    """Return a hash of the problems and official values of all classes."""
    table = source[source.index("problem(char size) {") :]
    numbers = [re.findall(r"-?[\d.]+(?:e[+-]?\d+)?", one) for one in OFFICIAL.findall(table)]
    assert len(numbers) == 6
    return hashlib.sha256(repr([[float(x) for x in one] for one in numbers]).encode()).hexdigest()


@pytest.mark.parametrize("name", NAMES)
def test_official_values_are_those_of_the_original(name: str) -> None:
    """Compared with the sources of NPB 3.3.1; classes B, C and D last too long to be launched."""
    source = (NATIVE / "npb" / f"{name}.hpp").read_text()
    assert values_of(source)[:16] == COMPARED[name]


def damaged(text: str, digit: random.Random) -> str:
    """Return a source in which each official value of classes S and W has a digit changed.

    One among the first six of a fraction, which the tolerance does not hide.
    """

    def of_class(match: re.Match[str]) -> str:
        line = match[0]
        start, values = 0, [*re.finditer(r"\d+\.\d{10,}", line)]
        if not values:  # IS: keys, ranks, signs
            ranks = re.findall(r"\{[^{}]*\}", line)[1]
            start = line.index(ranks)
            values = [*re.finditer(r"\d+", ranks)]
        for value in values:
            places = [at for at, c in enumerate(value[0][:7]) if c.isdigit()]
            at = start + value.start() + digit.choice(places)
            line = f"{line[:at]}{(int(line[at]) + 1) % 10}{line[at + 1 :]}"
        return line

    return re.sub(r"case '[SW]':\s*return \{.*?\};", of_class, text, flags=re.DOTALL)


@pytest.mark.slow
def test_every_damaged_official_value_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: Path
) -> None:
    """Each is named; IS counts the wrong ones of its ten rounds."""
    sources = tmp_path / "native"
    shutil.copytree(NATIVE, sources)
    for name, values in VALUES.items():
        path = sources / "npb" / f"{name}.hpp"
        whole = path.read_text()
        path.write_text(damaged(whole, random.Random(1)))
        changed = sum(a != b for a, b in zip(whole, path.read_text(), strict=True))
        assert changed == 2 * values
    monkeypatch.setattr(toolchain, "native_sources", lambda: sources)
    made = kernel_path("npb", find_mpi(None, HERE), HERE)
    try:
        for name, values in VALUES.items():
            for size in "SW":
                ended = launched(made, name, "--class", size, ranks=1)
                assert (ended.returncode, ended.stdout) == (1, ""), (name, size)
                _, _, said = ended.stderr.partition("verification failed at ")
                if name == "is":
                    assert f": {10 * values} ranks of keys" in said
                else:
                    assert said.count("the official value is") == values, said
    finally:
        made.unlink()
