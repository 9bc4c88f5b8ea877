"""The native kernels, compiled with an MPI that is here and started by its own launcher.

Timing is never judged here but for the known delay, which is made far larger than any noise.
"""

from __future__ import annotations

import functools
import json
import math
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from native import COLLECTIVES, KERNELS, LIKES, NATIVE, NODE, PROGRAMS, SIZED, program_of, started
from paribus.readers.kernel import read
from processes import ran

LEAST = {"triad": 1, "loader": 1, "many_to_one": 4}
"""How many ranks kernels need, if not two."""
METRICS = {
    "latency": ("latency", "us"),
    "bandwidth": ("bandwidth", "MB/s"),
    "bibandwidth": ("bandwidth", "MB/s"),
    "message_rate": ("message_rate", "msg/s"),
    "triad": ("bandwidth", "GB/s"),
    "ring": ("bandwidth", "MB/s"),
    **dict.fromkeys([*COLLECTIVES, "alltoallv", "halo", "barrier"], ("time", "us")),
}
REFUSED_BY_RANKS = [
    ("latency", ["--ranks", "4"], "2 ranks, not the 4 asked for"),
    ("latency", ["--byte", "8"], "unknown argument --byte"),
    ("pairs", ["--bytes", "8"], "needs two sizes"),
    ("alltoallv", ["--bytes", "1073741824"], "more in all than MPI counts"),
]
REFUSALS = [
    ("latency", ["--byte", "8"], "unknown argument --byte"),
    ("latency", ["--bytes", "8,,9"], "neither a list"),
    ("latency", ["--bytes", "16:8"], "neither a list"),
    ("latency", ["--bytes", "8:32,16"], "16 bytes is asked for twice"),
    ("latency", ["--bytes"], "needs a list or a range"),
    ("latency", ["--bytes", "4294967296"], "more than MPI counts"),
    ("latency", ["--samples", "0"], "at least 1"),
    ("latency", ["--samples", "ten"], "whole number"),
    ("latency", ["--like", "nccl"], "paribus, osu, imb"),
    ("latency", ["--like", "osu", "--delay-us", "5"], "do not go with --like"),
    ("bandwidth", ["--bytes", "0"], "the least is 1"),
    ("allreduce", ["--bytes", "8,9"], "not a multiple of 4"),
    ("barrier", ["--bytes", "8"], "unknown argument --bytes"),
    ("barrier", ["--corrupt"], "unknown argument --corrupt"),
    ("triad", ["--like", "osu"], "unknown argument --like"),
    ("halo", ["--dims", "4"], "--dims needs a whole number from 2 to 3"),
    ("overlap", ["--collective", "bcast"], "--collective needs one of allreduce, alltoall"),
    ("many_to_one", ["--connections", "4,65,4"], "whole numbers, each once, from 1 to 64"),
    ("many_to_one", ["--over", "udp"], "--over needs one of mpi, sockets"),
    ("many_to_one", ["--iterations", "9"], "unknown argument --iterations"),
    ("loader", ["--count", "3"], "--libraries, --count and --functions"),
]


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def cases(self) -> list[dict[str, Any]]:
        return self.lines[1:-1]


Start = Callable[..., Ended]


@pytest.fixture(scope="session")
def start() -> Start:
    """Return a function that starts a kernel on some ranks and waits for its end.

    Kernels are those of users, in their cache.
    """

    def run(kernel: str, *arguments: str, ranks: int = 2) -> Ended:
        done = started(program_of(kernel), *arguments, ranks=ranks)
        return Ended(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of 3 libraries of 4 functions, as CONTRIBUTING describes them."""
    folder = tmp_path_factory.mktemp("libraries")
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("g++")
    if compiler is None:
        pytest.skip("no C compiler")
    for library in range(3):
        names = [f"paribus_{library:04d}_{f:04d}" for f in range(4)]
        text = "".join(f"int {name}(int);\n" for name in names)
        for f, name in enumerate(names):
            other = names[(f + 1) % 4]
            text += (
                f"int {name}(int x) {{ return x < 0 ? {other}(-x) : x + {library}*1000+{f}; }}\n"
            )
        source = folder / f"libparibus_{library:04d}.c"
        source.write_text(text)
        target = str(source.with_suffix(".so"))
        subprocess.run([compiler, "-shared", "-fPIC", str(source), "-o", target], check=True)
    return folder


def sizes(kernel: str, text: str) -> list[str]:
    return [] if kernel == "barrier" else ["--bytes", text]


def wanted(kernel: str, libraries: Path) -> dict[str, tuple[list[str], int]]:
    """Return the arguments and ranks of a kernel's launches, by kind."""
    found: dict[str, tuple[list[str], int]] = {}
    if kernel == "loader":
        quick = ["--libraries", str(libraries), "--count", "3", "--functions", "4"]
    else:
        quick = [*sizes(kernel, "8,4096"), "--samples", "6", "--max-case-s", "0.01"]
    if kernel == "overlap":
        found["alltoall"] = [*quick, "--collective", "alltoall"], 3
    if kernel == "halo":
        found["3 dimensions"] = [*quick, "--dims", "3"], 6
    if kernel == "alltoallv":
        found["another seed"] = [*quick, "--seed", "2"], 4
    if kernel == "many_to_one":
        quick = ["--bytes", "8,4096", "--samples", "6", "--max-case-s", "0.06"]
        quick += ["--connections", "1,3"]
        found["sockets"] = [*quick, "--over", "sockets", "--senders", "2"], 6
        found["too many"] = [*quick, "--senders", "2"], 4
        found["receiver of mpi"] = [*quick, "--receiver", "h1"], 4
        nowhere = ["--over", "sockets", "--receiver", "255.255.255.255"]
        found["nowhere"] = [*quick, *nowhere], 4
    for ranks in (1, 2, 4):
        found[f"{ranks} ranks"] = quick, ranks
    if kernel != "barrier":
        found["corrupt"] = [*quick, "--corrupt"], max(2, LEAST.get(kernel, 2))
    if kernel in LIKES:
        for like in ("osu", "imb"):
            found[like] = [*sizes(kernel, "8,65536"), "--like", like, "--iterations", "40"], 2
    found |= {" ".join(words): (words, 2) for one, words, _ in REFUSED_BY_RANKS if one == kernel}
    return found


Launches = Callable[[str, str], Ended]


@pytest.fixture(scope="session")
def launches(start: Start, libraries: Path) -> Launches:
    """Return a function of kernel and kind: how that launch ended.

    All launches of a kernel are made when the first is asked for, four at a time, as most of the
    time goes into waiting for the launcher.
    """

    @functools.cache
    def of(kernel: str) -> dict[str, Ended]:
        with ThreadPoolExecutor(4) as pool:
            pending = {
                kind: pool.submit(start, kernel, *arguments, ranks=ranks)
                for kind, (arguments, ranks) in wanted(kernel, libraries).items()
            }
        return {kind: done.result() for kind, done in pending.items()}

    return lambda kernel, kind: of(kernel)[kind]


def every_pair(ranks: int) -> list[tuple[str, tuple[int, int, int]]]:
    """Return what `pairs` prints at 8 B and 4 KiB: latency once a pair, bandwidth each way."""
    ways = [(a, b) for a in range(ranks) for b in range(ranks) if a != b]
    return [
        *(("latency", (a, b, 8)) for a, b in ways if a < b),
        *(("bandwidth", (a, b, 4096)) for a, b in ways),
    ]


def check_overlap(cases: list[dict[str, Any]]) -> None:
    """Check the shares of every size against the times beside them, by OSU's formula."""
    for at in range(0, len(cases), 4):
        exposed, total, pure, compute = (one["samples"] for one in cases[at : at + 4])
        alone = sorted(pure)[3]
        least = min(alone, *compute)
        assert exposed == pytest.approx([100 * (t - least) / alone for t in total], rel=1e-3)
        hidden = max(0.0, 100 - sorted(exposed)[3])
        assert cases[at]["overlap"] == pytest.approx(hidden, rel=1e-3, abs=1e-3)


def every_flow(senders: int) -> list[tuple[str, tuple[int, ...]]]:
    """Return what `many_to_one` prints at 8 B and 4 KiB, 1 and 3 connections."""
    found: list[tuple[str, tuple[int, ...]]] = []
    for case in ((8, 1), (8, 3), (4096, 1), (4096, 3)):
        found += [("goodput", case), ("fairness", case)]
        found += [("flow", (*case, sender)) for sender in range(1, senders + 1)]
        found += [("idle_latency", case), ("loaded_latency", case)]
    return found


@pytest.mark.slow("kernel")
@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("kernel", KERNELS)
def test_output_contract(launches: Launches, kernel: str, ranks: int) -> None:
    ended = launches(kernel, f"{ranks} ranks")
    pair = kernel in ("latency", "bandwidth", "bibandwidth")
    if (pair and ranks != 2) or ranks < LEAST.get(kernel, 2):
        assert (ended.code, ended.out) == (2, "")
        assert f"{kernel}: needs" in ended.err
        return
    assert ended.code == 0, ended.err
    first, *cases, last = ended.lines

    assert first["paribus_kernel"] == 1
    assert (first["kernel"], first["ranks"], first["like"]) == (kernel, ranks, "paribus")
    for key in ("hosts", "boot", "affinity"):
        assert len(first[key]) == ranks
    assert len(set(first["boot"])) == 1
    assert set(first["limits"]) == {"nofile", "memlock", "stack"}
    assert first["mpi"]
    assert 0 < first["tick_ns"] < 1e6
    assert 0 < first["clock_ns"] < 1e5

    if kernel == "loader":
        assert [c["metric"] for c in cases] == ["startup", "load", "first_call"]
        assert all(c["case"] == {"libraries": 3, "functions": 4} for c in cases)
    elif kernel == "pairs":
        assert [(c["metric"], tuple(c["case"].values())) for c in cases] == every_pair(ranks)
        assert all(1 <= c["at_once"] <= ranks // 2 for c in cases)
        assert all(3 <= len(c["samples"]) <= 6 for c in cases)
    elif kernel == "overlap":
        metrics = ["exposed", "total", "pure", "compute"]
        found = [(c["metric"], c["case"]["bytes"]) for c in cases]
        assert found == [(metric, size) for size in (8, 4096) for metric in metrics]
        assert all(len(c["samples"]) == 6 for c in cases)
        check_overlap(cases)
    elif kernel == "many_to_one":
        assert [(c["metric"], tuple(c["case"].values())) for c in cases] == every_flow(1)
        assert all(3 <= len(c["samples"]) <= 6 for c in cases if "latency" not in c["metric"])
    else:
        expected = [{}] if kernel == "barrier" else [{"bytes": 8}, {"bytes": 4096}]
        assert [c["case"] for c in cases] == expected
        assert all((c["metric"], c["unit"]) == METRICS[kernel] for c in cases)
        assert all(len(c["samples"]) == 6 for c in cases)
        assert all(("skew_us" in c) == (not pair) for c in cases)
        assert all(len(c.get("skew_us", c["samples"])) == 6 for c in cases)
    for case in cases:
        assert case["batch"] >= 1
        assert case["count"] == len(case["samples"])
        assert all(math.isfinite(value) and value > 0 for value in case["samples"])
        assert all(value >= 0 for value in case.get("skew_us", []))

    assert (last["end"], last["check"]) == (True, "passed")
    assert last["checked"] > 0 or kernel == "barrier"
    assert len(last["cpu_s"]) == len(last["involuntary"]) == ranks
    assert last["wall_s"] > 0
    assert last["steal_s"] >= 0
    assert last["probe_ms"] > 0
    for state in (last["probe"]["before"], last["probe"]["after"]):
        assert state["triad_gbps"] > 0
        assert state["clock_ghz"] > 0
        assert state["core_to_core_ns"] is None or state["core_to_core_ns"] > 0


@pytest.mark.slow
def test_overlap_of_alltoall(launches: Launches) -> None:
    ended = launches("overlap", "alltoall")
    assert ended.code == 0, ended.err
    check_overlap(ended.cases)
    assert ended.lines[-1]["checked"] == 2 * 3 * 3 * (8 + 4096)
    facts = read(ended.out).facts
    assert facts["kernel.overlap.8 B"] == ended.cases[0]["overlap"]


def test_a_delay_behind_the_wait_is_not_hidden(start: Start) -> None:
    """5 ms after each collective: computation of as long cannot hide them, on a busy machine."""
    few = ("--bytes", "8", "--samples", "3", "--warmup", "1", "--iterations", "1")
    exposed, total, pure, compute = start("overlap", *few, "--delay-us", "5000").cases
    assert min(pure["samples"]) > 4_000
    assert min(compute["samples"]) > 4_000
    assert min(total["samples"]) > 8_000
    assert min(exposed["samples"]) > 5
    assert exposed["overlap"] < 95


@pytest.mark.slow
def test_a_halo_is_exchanged_on_the_grid_that_mpi_chooses(
    launches: Launches,
) -> None:
    """Two rounds of 8 B and 4 KiB, from both neighbours of each rank in each dimension."""
    for kind, ranks, grid in (("4 ranks", 4, [2, 2]), ("3 dimensions", 6, [3, 2, 1])):
        ended = launches("halo", kind)
        assert ended.code == 0, ended.err
        assert [case["grid"] for case in ended.cases] == [grid, grid]
        assert ended.lines[-1]["checked"] == 2 * ranks * 2 * len(grid) * (8 + 4096)


@pytest.mark.slow
def test_the_sizes_of_alltoallv_are_uneven_and_sum_up(
    launches: Launches,
) -> None:
    """A rank receives as much as in alltoall, whatever the seed; two ranks have equal sizes."""
    one, other = (
        launches("alltoallv", kind).cases[1]["sizes"] for kind in ("4 ranks", "another seed")
    )
    assert one != other
    for sizes in (one, other):
        assert len(set(sizes)) > 2
        assert sum(sizes) == 4 * 4096
        assert all(0 <= size <= 2 * 4096 for size in sizes)
    assert launches("alltoallv", "2 ranks").cases[1]["sizes"] == [4096, 4096]
    volume = {k: launches(k, "4 ranks").lines[-1]["checked"] for k in ("alltoall", "alltoallv")}
    assert volume["alltoallv"] == volume["alltoall"]


@pytest.mark.slow
def test_flows_of_many_to_one(launches: Launches) -> None:
    """All ranks are on one host: the victim is rank 1, its partner the last, two of three send."""
    ended = launches("many_to_one", "sockets")
    assert ended.code == 0, ended.err
    read(ended.out)  # refuses a flow that is missing or double
    cases = ended.cases
    found = [(c["metric"], tuple(c["case"].values())) for c in cases]
    assert found == every_flow(2)
    assert [c["rank"] for c in cases if c["metric"] == "flow"] == 4 * [2, 3]
    sums = [c["samples"] for c in cases if c["metric"] == "goodput"]
    flows = [c["samples"] for c in cases if c["metric"] == "flow"]
    fair = [c["samples"] for c in cases if c["metric"] == "fairness"]
    for i, (total, shares) in enumerate(zip(sums, fair, strict=True)):
        parts = list(zip(*flows[2 * i : 2 * i + 2], strict=True))
        assert total == pytest.approx([sum(rates) for rates in parts], rel=1e-5)
        jain = [sum(x) ** 2 / len(x) / sum(v * v for v in x) for x in parts]
        assert shares == pytest.approx(jain, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "code", "says"),
    [
        ("too many", 2, "--senders is more than the ranks without receiver, victim and partner"),
        ("receiver of mpi", 2, "--receiver is for --over sockets"),
        ("nowhere", 1, "cannot connect to 255.255.255.255, port "),
    ],
)
def test_roles_and_places_that_cannot_be(
    launches: Launches, kind: str, code: int, says: str
) -> None:
    ended = launches("many_to_one", kind)
    assert (ended.code, ended.out) == (code, "")
    assert says in ended.err


def test_a_delay_of_the_senders_is_seen(start: Start) -> None:
    """4 ms before each message of 1,000 B leave 2 Mbit/s; no noise makes that more."""
    few = ("--bytes", "1000", "--connections", "1", "--samples", "3", "--max-case-s", "0.1")
    ended = start("many_to_one", *few, "--delay-us", "4000", ranks=4)
    [flow] = [c for c in ended.cases if c["metric"] == "flow"]
    assert 0.1 < min(flow["samples"]) < max(flow["samples"]) < 2.5


@pytest.mark.slow("kernel")
@pytest.mark.parametrize("kernel", [*SIZED, "overlap", "pairs", "many_to_one", "loader"])
def test_wrong_data_are_seen(launches: Launches, kernel: str) -> None:
    ended = launches(kernel, "corrupt")
    assert ended.code == 1
    assert ended.out == ""
    case = {
        "loader": '{"libraries": 3, "functions": 4}',
        "pairs": '{"from": 0, "to": 1, "bytes": 8}',
        "many_to_one": '{"bytes": 8, "connections": 1}',
    }.get(kernel, '{"bytes": 8}')
    rank = 0 if kernel == "many_to_one" else 1  # the receiver
    assert f"{kernel}: wrong data at {case}: rank {rank}, position" in ended.err


@pytest.mark.slow("kernel")
@pytest.mark.parametrize("like", ["osu", "imb"])
@pytest.mark.parametrize("kernel", LIKES)
def test_as_other_programs_define_it(launches: Launches, kernel: str, like: str) -> None:
    ended = launches(kernel, like)
    assert ended.code == 0, ended.err
    assert ended.lines[0]["like"] == like
    assert [(c["batch"], len(c["samples"])) for c in ended.cases] == [(40, 1)] * len(ended.cases)


def long_enough(ended: Ended) -> bool:
    """Return whether half of the samples of each case last 100 ticks and a microsecond."""
    least_us = max(1.0, 0.1 * ended.lines[0]["tick_ns"])
    spans = [sorted(2 * c["batch"] * value for value in c["samples"]) for c in ended.cases]
    return all(several[len(several) // 2] >= least_us for several in spans)


def test_a_sample_lasts_100_ticks_and_a_microsecond(start: Start) -> None:
    """Unless the ranks shared a core when the batch was planned: then another launch counts."""
    for _ in range(5):
        ended = start("latency", "--bytes", "1,8,64", "--samples", "50")
        if long_enough(ended):
            break
    assert long_enough(ended), ended.out


@pytest.mark.slow
def test_a_share_of_delay_follows_the_case(start: Start) -> None:
    """The least of several launches: on a busy machine both ranks may have to share a core."""

    def least(*more: str) -> float:
        few = ("--bytes", "1048576", "--samples", "20")
        launches = [start("latency", *few, *more) for _ in range(3)]
        return min(min(ended.cases[0]["samples"]) for ended in launches)

    assert 5 < least("--delay-share", "20") / least() < 200


@pytest.mark.parametrize("kernel", ["latency", "allreduce"])
def test_a_delay_may_come_from_the_environment(
    start: Start, kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an arm of a study carries it: only that arm is slowed.

    3 ms in every operation can neither hide in noise nor come out of it.
    """
    monkeypatch.setenv("PARIBUS_DELAY_US", "3000")
    few = ("--bytes", "8", "--samples", "5", "--iterations", "1")
    ended = start(kernel, *few)
    assert ended.lines[0]["args"]["delay_us"] == 3000
    floor = 1500 if kernel == "latency" else 3000  # a latency is half of its operation
    assert min(ended.cases[0]["samples"]) > 0.8 * floor
    assert start(kernel, *few, "--delay-us", "1").lines[0]["args"]["delay_us"] == 1


@pytest.mark.parametrize(
    ("kernel", "text", "says"),
    [
        ("latency", "5 %", "PARIBUS_DELAY_SHARE=5 % is not a number"),
        ("loader", "0.05", "has no operation to delay"),
    ],
)
def test_a_delay_that_cannot_be_is_refused(
    start: Start, kernel: str, text: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARIBUS_DELAY_SHARE", text)
    ended = start(kernel)
    assert ended.code != 0
    assert not ended.out
    assert says in ended.err


def test_sizes_as_list_and_as_range(start: Start) -> None:
    def seen(text: str, kernel: str = "latency") -> list[int]:
        ended = start(kernel, "--bytes", text, "--samples", "1", "--iterations", "1")
        assert ended.code == 0, ended.err
        return [case["case"]["bytes"] for case in ended.cases]

    assert seen("1:16") == [1, 2, 4, 8, 16]
    assert seen("0:3") == [0, 1, 2, 3]
    assert seen("3:20,4096") == [3, 6, 12, 20, 4096]
    assert seen("4:32", "allreduce") == [4, 8, 16, 32]


@pytest.mark.slow("kernel")
@pytest.mark.parametrize(("kernel", "arguments", "says"), REFUSED_BY_RANKS)
def test_refusals(launches: Launches, kernel: str, arguments: list[str], says: str) -> None:
    ended = launches(kernel, " ".join(arguments))
    assert ended.code == 2
    assert ended.out == ""
    assert says in ended.err


@pytest.mark.parametrize(("kernel", "arguments", "says"), REFUSALS)
def test_what_arguments_alone_refuse(kernel: str, arguments: list[str], says: str) -> None:
    """Without a launcher: arguments are read before MPI starts."""
    argv = [str(program_of(kernel)), "--memory", *arguments]
    done = ran(argv, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr


def test_sizes_that_do_not_fit_in_memory(start: Start) -> None:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    size = min(2**31 - 8, total) // 8 * 8
    ranks = 2 * math.ceil(total / (3 * size)) if 3 * 2 * size < total else 2
    if ranks > 16:
        pytest.skip(f"would take {ranks} ranks to ask for more memory than there is")
    ended = start("triad", "--bytes", str(size), ranks=ranks)
    assert ended.code == 2
    assert "do not fit in memory" in ended.err


def test_missing_library(start: Start, libraries: Path) -> None:
    ended = start(
        "loader", "--libraries", str(libraries), "--count", "4", "--functions", "4", ranks=1
    )
    assert ended.code == 1
    assert "cannot read" in ended.err
    assert "libparibus_0003.so" in ended.err


def test_help_and_self_test(start: Start) -> None:
    ended = start("latency", "--help")
    assert ended.code == 0
    assert "--bytes LIST|FROM:TO" in ended.out
    ended = start("latency", "--self-test")
    assert ended.code == 0
    [figures] = ended.lines
    assert figures["clock_ns"] > 0
    assert figures["record_ns"] > 0


def test_kernels_name_what_they_are_and_share_one_loop() -> None:
    texts = {path.name: path.read_text() for path in NATIVE.rglob("*.?pp")}
    positional = re.compile(r"\b(Spec( \w+)?|Session \w+\()\{[^}]")
    assert not [name for name, text in texts.items() if positional.search(text)]
    of_mpi = {name: text for name, text in texts.items() if "namespace paribus::gpu" not in text}
    loops = {name for name, text in of_mpi.items() if "for (const long bytes :" in text}
    assert loops == {"cases.hpp", "memory_bandwidth.cpp", "triad.cpp"}


def test_every_kernel_is_documented_and_tested() -> None:
    assert sorted(path.stem for path in NATIVE.glob("*.cpp")) == sorted(PROGRAMS)
    page = (NATIVE.parents[2] / "docs" / "kernels.md").read_text()
    table = page.partition("## The kernels")[2].partition("\n## ")[0]
    named = re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| ([^|]+) \|", table, re.M)))
    assert {*KERNELS, *NODE, "ep", "is", "cg", "mg", "ft", "lu", "sp", "bt"} <= {*named}
    assert len(named) == len({*named})
