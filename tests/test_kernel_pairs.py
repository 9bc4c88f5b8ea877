"""The kernel `pairs` with real MPI: every pair once, the slow ones again and alone.

The ranks share the cores of this machine, so no figure is judged but the known delay of one rank.
"""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Callable
from itertools import chain, combinations
from typing import Any

import pytest

from mpis import any_mpi
from native import NATIVE, compiled, program_of
from paribus.core import Metric
from paribus.judge.evidence import figures
from paribus.lenses.matrices.matrix import of_launches
from paribus.readers.kernel import read
from processes import ran

QUICK = ("--bytes", "8,4096", "--samples", "4", "--max-case-s", "0.002")
SLOW_US = "8000"
"""What one rank waits in every operation: far beyond what sharing a core costs."""

SCHEDULE = """
#include <cstdio>
#include <cstdlib>
#include "common/tournament.hpp"
int main(int, char** argv) {
    const int ranks = std::atoi(argv[1]), at_once = std::atoi(argv[3]);
    std::mt19937_64 dice(std::strtoull(argv[2], nullptr, 10));
    auto rounds = paribus::tournament(ranks, dice);
    std::vector<paribus::Duel> all;
    for (const auto& round : rounds) all.insert(all.end(), round.begin(), round.end());
    if (at_once > 0) rounds = paribus::packed(all, static_cast<std::size_t>(at_once), ranks);
    for (const auto& round : rounds) {
        for (const auto& [low, high] : round) std::printf("%d-%d ", low, high);
        std::printf("\\n");
    }
}
"""

Rounds = list[list[tuple[int, ...]]]


def launched(ranks: int, *, slow: int | None = None, seed: int = 1) -> str:
    """Return what the kernel prints on `ranks` ranks, of which `slow` waits in each operation."""
    mpi = any_mpi()
    argv = [mpi.mpirun]
    env = {**os.environ, **mpi.env, "PARIBUS_SEED": str(seed)}
    if mpi.family == "openmpi":
        argv += ["--oversubscribe", "--bind-to", "none"]
        env |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        env |= {"OMPI_MCA_mpi_yield_when_idle": "1"}
    parts = [range(ranks)]
    if slow is not None:
        parts = [range(slow), range(slow, slow + 1), range(slow + 1, ranks)]
    for number, part in enumerate(parts):
        wait = [f"PARIBUS_DELAY_US={SLOW_US}"] if slow in part else []
        argv += [":"] * (number > 0)
        argv += ["-n", str(len(part)), "env", *wait, str(program_of("pairs")), *QUICK]
    done = ran(argv, timeout=120, env=env, code=0)
    return done.stdout


def cases(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()[1:-1]]


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [3, 4, 7])
def test_every_pair_is_there_once_and_read(ranks: int) -> None:
    text = launched(ranks)
    reading = read(text)  # refuses a pair that is missing or double
    assert len(reading.samples) == ranks * (ranks - 1) * 3 // 2
    for case in cases(text):
        assert 1 <= case["at_once"] <= ranks // 2
        assert ("crowded" in case) == (case["at_once"] < ranks // 2)


@pytest.mark.slow
def test_a_slow_rank_is_measured_again_alone() -> None:
    """Its pairs stay slow, whatever else is going on; nothing else takes so long alone."""
    for _ in range(3):  # On a busy machine all pairs may be so slow at first that none stands out.
        text = launched(5, slow=2)
        latency = [c for c in cases(text) if c["metric"] == "latency"]
        mine = [c for c in latency if 2 in (c["case"]["from"], c["case"]["to"])]
        if {c["at_once"] for c in mine} == {1}:
            break
    assert {c["at_once"] for c in mine} == {1}
    assert all(c["crowded"] > 0 for c in mine)
    least_us = float(SLOW_US) / 2
    assert all(statistics.median(c["samples"]) > least_us for c in mine)
    usual = statistics.median(statistics.median(c["samples"]) for c in latency if c not in mine)
    assert usual < least_us
    facts = read(text).facts
    assert facts["kernel.crowded.latency.from=0, to=2, 8 B"] == mine[0]["crowded"]


@pytest.fixture(scope="module")
def rounds(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int, int, int], Rounds]:
    """Return what gives the rounds of so many ranks, with a seed, of so many pairs (0: all)."""
    folder = tmp_path_factory.mktemp("schedule")
    (folder / "schedule.cpp").write_text(SCHEDULE)
    program = folder / "schedule"
    assert compiled(folder / "schedule.cpp", program, f"-I{NATIVE}") == ""

    def drawn(ranks: int, seed: int, at_once: int) -> Rounds:
        argv = [str(program), str(ranks), str(seed), str(at_once)]
        out = ran(argv, code=0).stdout
        return [
            [tuple(map(int, duel.split("-"))) for duel in line.split()] for line in out.splitlines()
        ]

    return drawn


@pytest.mark.parametrize("ranks", [2, 3, 4, 5, 8, 33, 64])
def test_everyone_meets_everyone_once(
    rounds: Callable[[int, int, int], Rounds], ranks: int
) -> None:
    """In n - 1 rounds of n / 2 pairs (n rounds if n is odd); in rounds of a fourth as well."""
    pairs = list(combinations(range(ranks), 2))
    found = rounds(ranks, 1, 0)
    assert len(found) == (ranks - 1 if ranks % 2 == 0 else ranks)
    assert all(len(one) == ranks // 2 for one in found)
    few = rounds(ranks, 1, max(1, ranks // 4))
    assert all(len(one) <= max(1, ranks // 4) for one in few)
    for several in (found, few):
        assert sorted(duel for one in several for duel in one) == pairs
        assert all(len(set(chain(*one))) == 2 * len(one) for one in several)


def test_the_order_of_rounds_is_seeded(rounds: Callable[[int, int, int], Rounds]) -> None:
    assert rounds(8, 1, 0) == rounds(8, 1, 0)
    assert rounds(8, 1, 0) != rounds(8, 2, 0)


@pytest.mark.long
def test_a_slow_rank_is_named() -> None:
    """From three real launches to the name; the ranks take turns on few cores, hence the delay."""
    metrics = [Metric("latency", "us", "lower")]
    readings = [read(launched(6, slow=4, seed=seed)) for seed in (1, 2, 3)]
    launches = [figures(one.samples, metrics)[0] for one in readings]
    [latency] = of_launches(launches, metrics)
    assert [one.node for one in latency.slow_nodes] == ["4"], latency.sentences
