"""Kernels of memory and computation, launched with the MPI that is here, damaged, and refused."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from native import NATIVE, NODE, Ended, program_of, started, together
from paribus.benchmarks import get
from paribus.core import Request, UserError
from paribus.launch import toolchain
from paribus.readers.kernel import read

QUICK = {
    "memory_bandwidth": ("--bytes", "8,4096", "--samples", "3"),
    "random_access": ("--table", "65536"),
    "roofline": ("--array", "65536", "--samples", "3"),
    "conjugate_gradient": ("--nx", "16", "--ny", "16", "--nz", "16", "--sets", "2"),
}
HPCG = {
    1: {1: 0.175288, 2: 0.083595, 5: 0.000417347, 10: 1.63531e-07, 15: 1.25057e-11},
    2: {1: 0.186457, 2: 0.0969335, 5: 0.00754721, 10: 3.86172e-06, 15: 1.27628e-08},
    4: {1: 0.194597, 2: 0.105289, 5: 0.0205085, 10: 4.28125e-05, 15: 1.81353e-07},
}
"""Scaled residual by ranks and iteration, as HPCG 3.1 prints it of 16 x 16 x 16 points a rank."""


def start(name: str, *arguments: str, ranks: int = 2) -> Ended:
    """Return how a launch of a kernel ended."""
    return started(program_of(name), *arguments, ranks=ranks)


def cases(ended: Ended) -> list[dict[str, Any]]:
    """Return the lines of the cases of a launch that went well."""
    assert ended.returncode == 0, ended.stderr
    read(ended.stdout)  # refuses a case that is missing or double, and a value of 0
    return [json.loads(line) for line in ended.stdout.splitlines()[1:-1]]


REFUSED: dict[str, tuple[str, tuple[str, ...], int, str]] = {
    "grid": ("conjugate_gradient", ("--nx", "20"), 1, "must be multiples of 8"),
    "shape": ("conjugate_gradient", ("--nx", "16", "--nz", "136"), 1, "16 x 48 x 136 points"),
    "memory": ("conjugate_gradient", ("--nx", "512", "--ny", "512", "--nz", "512"), 4, "not fit"),
    "argument": ("conjugate_gradient", ("--samples", "3"), 1, "unknown argument --samples"),
    "table": ("random_access", ("--table", "65537"), 1, "needs half, or a power of two of at"),
    "ranks": ("random_access", (), 3, "takes 1, 2, 4, 8 ... ranks, not 3"),
    "array": ("roofline", ("--array", "100"), 1, "--array: the least is 768"),
    "bytes": ("memory_bandwidth", ("--bytes", ""), 1, "--bytes needs a list or a range"),
}


@pytest.fixture(scope="module")
def failed() -> dict[str, Ended]:
    """Return how launches ended whose data were damaged, and those that cannot be."""
    programs = {name: program_of(name) for name in NODE}
    several = {name: (programs[name], [*QUICK[name], "--corrupt"], 2) for name in NODE}
    several |= {what: (programs[of], [*w], ranks) for what, (of, w, ranks, _) in REFUSED.items()}
    return together(several)


@pytest.mark.parametrize("name", NODE)
def test_wrong_data_are_seen(name: str, failed: dict[str, Ended]) -> None:
    ended = failed[name]
    assert (ended.returncode, ended.stdout) == (1, "")
    assert f"{name}: wrong data at " in ended.stderr or "the result is INVALID" in ended.stderr


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_is_refused(what: str, failed: dict[str, Ended]) -> None:
    ended = failed[what]
    assert (ended.returncode, ended.stdout) == (2, "")
    assert REFUSED[what][3] in ended.stderr


def test_memory_bandwidth_is_that_of_five_loops() -> None:
    found = [
        (one["case"]["op"], one["case"]["bytes"])
        for one in cases(start("memory_bandwidth", *QUICK["memory_bandwidth"]))
    ]
    loops = ("copy", "scale", "add", "triad", "dot")
    assert found == [(loop, size) for size in (8, 4096) for loop in loops]


@pytest.mark.slow
def test_arrays_are_four_times_the_caches() -> None:
    """Those of one rank, which may use every core that this process may."""
    caches: dict[str, int] = {}
    for core in os.sched_getaffinity(0):
        levels = Path(f"/sys/devices/system/cpu/cpu{core}/cache").glob("index*")
        data = [one for one in levels if (one / "type").read_text() != "Instruction\n"]
        if data:
            last = max(data, key=lambda one: int((one / "level").read_text()))
            size = (last / "size").read_text().strip()
            caches[(last / "shared_cpu_list").read_text()] = int(size[:-1]) * 1024
    wanted = 4 * (sum(caches.values()) or 32 << 20)
    if 3 * wanted > os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 8:
        pytest.skip(f"three arrays of {wanted >> 20} MiB take an eighth of the memory here")
    for one in cases(start("memory_bandwidth", "--samples", "1", ranks=1)):
        assert set(one["case"]) == {"op"}
        assert wanted <= one["work"]["array_bytes"] <= wanted + 4096


def test_a_table_is_updated_where_the_rules_say() -> None:
    """On one, two and four ranks: the sum of the whole table distinguishes its places."""
    words, mask = 65536 // 8, 2**64 - 1
    table, number = list(range(words)), 1
    for _ in range(4 * words):
        number = (number << 1 & mask) ^ (7 if number >> 63 else 0)
        table[number & (words - 1)] ^= number
    expected = str(sum((i + 1) * word for i, word in enumerate(table)) & mask)
    for ranks in (1, 2, 4):
        [line] = cases(start("random_access", "--table", str(65536 // ranks), ranks=ranks))
        assert line["sum"] == expected
        assert line["work"] == {"table_bytes": 65536, "updates": 4 * words}
        assert len(line["in_mpi"]) == ranks


def test_half_of_the_memory_is_asked_for() -> None:
    """A rank that may not map as much says so, and does not take less."""
    limited = (*("-c", 'ulimit -v 1500000 && exec "$@"', "sh"), str(program_of("random_access")))
    ended = started(Path("/bin/sh"), *limited, "--table", "half", ranks=1)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert 'random_access: no memory left at {"ranks": 1}' in ended.stderr


def test_a_roofline_has_all_intensities_of_each_type() -> None:
    found = cases(start("roofline", *QUICK["roofline"]))
    points = [(one["case"]["type"], one["case"]["intensity"]) for one in found]
    types = ("double", "float", "int")
    assert points == [(one, 2.0**n) for one in types for n in range(-4, 7)]
    for one in found:
        assert one["work"][f"vector_bits.{one['case']['type']}"] in (128, 256, 512)


@pytest.mark.parametrize("ranks", sorted(HPCG))
def test_residuals_and_rating_are_those_of_hpcg(ranks: int) -> None:
    rating, sets = cases(start("conjugate_gradient", *QUICK["conjugate_gradient"], ranks=ranks))
    residuals = dict(enumerate(rating["residuals"], 1))
    assert len(residuals) == 50
    for iteration, residual in HPCG[ranks].items():
        assert residuals[iteration] == pytest.approx(residual, rel=1e-5)
    assert rating["work"] == {"rating": "short", "iterations": 50}

    across = {1: (16, 16), 2: (32, 16), 4: (32, 32)}[ranks]
    levels = [[n >> level for n in (*across, 16)] for level in range(4)]
    nonzeros = [(3 * x - 2) * (3 * y - 2) * (3 * z - 2) for x, y, z in levels]
    vectors = 2 * (3 * 50 + 1) * 2 * 4096 * ranks
    operations = vectors + 51 * 2 * nonzeros[0] + 50 * (10 * sum(nonzeros[:3]) + 4 * nonzeros[3])
    assert rating["operations"] == pytest.approx(operations, rel=1e-6)
    spent = sum(sets["samples"]) + 2 * rating["setup_s"] / 10
    assert rating["samples"] == [pytest.approx(1e-9 * 2 * operations / spent, rel=1e-5)]
    assert len(sets["in_mpi"]) == ranks


def test_a_delay_is_seen() -> None:
    _, sets = cases(start("conjugate_gradient", *QUICK["conjugate_gradient"], "--delay-us", "1e6"))
    assert min(sets["samples"]) > 0.8


@pytest.mark.parametrize(
    ("name", "parameters", "ranks", "said"),
    [
        ("conjugate_gradient", {"nx": 16, "ny": 16, "nz": 136}, 1, "by more than a factor of 8"),
        ("random_access", {"table": 65536}, 6, "cannot be started with 6 ranks"),
    ],
)
def test_illegal_requests_are_refused_before_the_launch(
    name: str, parameters: dict[str, Any], ranks: int, said: str
) -> None:
    with pytest.raises(UserError, match=said):
        get(name).command(Request(parameters, ranks))


@pytest.mark.parametrize(
    ("name", "key", "value", "fix"),
    [
        ("conjugate_gradient", "nx", 20, "use a multiple of 8 from 16 to 512"),
        ("random_access", "table", "3 MiB", "use a power of two of at least 16 KiB"),
        ("random_access", "table", ["1 MiB"], "use a size from 768 B to 1 TiB"),
        ("roofline", "array", "1 KB : 1 MB", "write for example"),
    ],
)
def test_parameters_that_cannot_be(name: str, key: str, value: Any, fix: str) -> None:
    with pytest.raises(ValueError, match=fix):
        get(name).parameters[key].read(value)


DAMAGES = [
    ("roofline/pass.hpp", "x[k] * factor + two", "x[k] * factor + one", "wrong data at"),
    ("random_access.cpp", "words_ ^ rank_) & bit", "words_ ^ rank_) & 0", "by the wrong rank"),
    ("common/loops.hpp", "c[i] = a[i] + b[i]", "c[i] = a[i] - b[i]", "wrong data at"),
    # The preconditioner is no longer symmetric.
    (
        "conjugate_gradient/multigrid.hpp",
        "smooth_back(r, x);\n    }\n    // The",
        "}\n    //",
        "the preco",
    ),
    # Nor is the matrix, at the edges of the grid.
    ("conjugate_gradient/block.hpp", "first[k] = side[k] > 0", "first[k] = side[k] < 0", "INVALID"),
    ("conjugate_gradient.cpp", "Precondition::none, 12", "Precondition::none, 10", "took 11 iter"),
    (
        "conjugate_gradient.cpp",
        "Precondition::optimised, 2}",
        "Precondition::optimised, 1}",
        "took",
    ),
    (
        "conjugate_gradient.cpp",
        "10 * reference_iterations",
        "reference_iterations / 2",
        "not reach",
    ),
]
"""Of a source: what stands there once, what then does, and what the kernel says of itself."""


@pytest.mark.slow
@pytest.mark.parametrize(("file", "whole", "instead", "said"), DAMAGES)
def test_a_damaged_source_is_noticed(
    file: str, whole: str, instead: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = tmp_path / "native"
    shutil.copytree(NATIVE, sources)
    text = (sources / file).read_text()
    assert text.count(whole) == 1
    (sources / file).write_text(text.replace(whole, instead))
    monkeypatch.setattr(toolchain, "native_sources", lambda: sources)
    name = {"common": "memory_bandwidth"}.get(file.partition("/")[0], re.split("[./]", file)[0])
    made = program_of(name)
    try:
        ended = started(made, *QUICK[name], ranks=2)
        assert (ended.returncode, ended.stdout) == (1, "")
        assert said in ended.stderr
    finally:
        made.unlink()
