"""What kernels allocate is known before their first launch, by their own formula."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from native import program_of, started
from paribus.core import Address, Arm, Container, Hosts, Selection, UserError
from paribus.launch.arms import Ready
from paribus.launch.memory import check_memory
from paribus.studyfile.load import load_study
from processes import ran
from studies import paribus, write_arms

GIB = 2**30
LARGE = "this machine has memory for class D of FT"
SMALL = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") < 70 * GIB


def needed(kernel: str, *arguments: str) -> dict[str, Any]:
    """Return what a kernel says without a launcher."""
    argv = [str(program_of(kernel)), *arguments, "--memory"]
    done = ran(argv, timeout=60, code=0)
    return json.loads(done.stdout)


def write(folder: Path) -> Path:
    return write_arms(
        folder, benchmark='name = "ft"\nranks = 1\nclass = "D"', plan="blocks = 8\nseed = 1"
    )


@pytest.mark.parametrize(
    ("kernel", "arguments", "gib", "what"),
    [
        ("npb", ("ft", "--class", "D", "--ranks", "1"), 64, "class D does"),
        ("npb", ("ft", "--class", "D", "--ranks", "4"), 24, "class D does"),
        (
            "conjugate_gradient",
            ("--nx", "512", "--ny", "512", "--nz", "512"),
            61.4,
            "the grid does",
        ),
        ("random_access", ("--table", str(8 * GIB)), 8, f"a table of {8 * GIB} bytes"),
        ("random_access", ("--table", "half"), 0, ""),
        ("roofline", ("--array", str(GIB)), 1, f"arrays of {GIB} bytes do"),
        ("memory_bandwidth", ("--bytes", str(GIB)), 3, f"buffers for {GIB} bytes do"),
        ("memory_bandwidth", (), 0, ""),
        ("alltoall", ("--bytes", str(GIB), "--ranks", "3"), 6, f"buffers for {GIB} bytes do"),
        ("training_proxy", ("--model", "vgg16"), 1.031, "the gradients of vgg16 do"),
    ],
)
def test_a_kernel_says_what_each_rank_takes(
    kernel: str, arguments: tuple[str, ...], gib: float, what: str
) -> None:
    said = needed(kernel, *arguments)
    assert said["bytes"] / GIB == pytest.approx(gib, rel=1e-3)
    assert said["what"].startswith(what)


@pytest.mark.skipif(not SMALL, reason=LARGE)
def test_the_launch_refuses_by_the_same_figure() -> None:
    for kernel, arguments in (
        ("npb", ("ft", "--class", "D")),
        ("conjugate_gradient", ("--nx", "512", "--ny", "512", "--nz", "512")),
    ):
        said = needed(kernel, *arguments)
        ended = started(program_of(kernel), *arguments, ranks=1, code=2)
        mib = round(said["bytes"] / 2**20)
        assert f"{said['what']} not fit in memory ({mib} MiB for 1 of the ranks" in ended.stderr


def test_what_cannot_be_asked_is_refused() -> None:
    argv = [str(program_of("npb")), "ft", "--class", "X", "--memory"]
    done = ran(argv, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--class needs one of S, W, A, B, C, D" in done.stderr


@pytest.mark.skipif(not SMALL, reason=LARGE)
@pytest.mark.parametrize(
    "words",
    [("run", "--dry-run"), ("audit",), ("run", "--out", "out")],
    ids=["dry", "audit", "run"],
)
def test_a_class_too_large_for_a_node_is_refused_before_the_first_launch(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    done = paribus(*words, write(tmp_path), cwd=tmp_path, code=2)
    said = "study.toml: ft in a: class D does not fit in memory (64 GiB for 1 rank on this machine"
    assert said in done.stderr
    assert "make it smaller, or spread its ranks over more hosts" in done.stderr
    assert not list(tmp_path.glob("out/logs/*"))


def refused(folder: Path, arm: Arm, nodes: dict[int, dict[str, Any]], ranks: int) -> str:
    """Return the errors of an arm on whose nodes each rank takes a table of 1 GiB."""
    one = Selection("one", "random_access", ranks, {"table": GIB})
    study = replace(load_study(write(folder)), benchmarks=(one,))
    ready = Ready(arm, None, (), kernels={"one": (str(program_of("random_access")),)})
    try:
        check_memory(study, ready, nodes)
    except UserError as error:
        return error.cause
    return ""


def test_ranks_are_counted_where_they_share_a_memory(tmp_path: Path) -> None:
    """A share of 0.9 may be taken: 1.1 GiB are too little for one rank, 2.3 enough for two."""
    small, large = ({"memory.total_kib": gib * 2**20} for gib in (1.1, 2.3))
    alone = Arm("a")
    assert "(1 GiB for 1 rank on this machine with 1.1 GiB)" in refused(
        tmp_path, alone, {0: small}, 1
    )
    assert not refused(tmp_path, alone, {0: large}, 2)
    assert "(4 GiB for 4 ranks on" in refused(tmp_path, alone, {0: large}, 4)
    assert not refused(tmp_path, alone, {}, 4)  # a node that reported nothing
    limited = {**large, "cgroup.memory_bytes": 1.1 * GIB}
    assert "on this machine, in a control group" in refused(tmp_path, alone, {0: limited}, 1)
    assert not refused(tmp_path, alone, {0: {**large, "cgroup.memory_bytes": "unlimited"}}, 2)

    boxes = Arm(
        "a", container=Container("namespace", network="bridge", each="host"), ranks_per_host=1
    )
    assert "(4 GiB for 4 ranks on this machine" in refused(
        tmp_path, boxes, dict.fromkeys(range(4), large), 4
    )
    assert not refused(
        tmp_path, boxes, dict.fromkeys(range(2), limited | {"cgroup.memory_bytes": 1.2 * GIB}), 2
    )
    pocket = Arm("a", hosts=Hosts(pocket=2))
    assert "(4 GiB for 4 ranks on this machine" in refused(
        tmp_path, pocket, dict.fromkeys(range(2), large), 4
    )

    hosts = Arm("a", hosts=Hosts((Address("n1", "n1"), Address("n2", "n2"))))
    assert not refused(tmp_path, hosts, {0: large, 1: large}, 4)
    assert "(2 GiB for 2 ranks on n2 with 1.1 GiB)" in refused(
        tmp_path, hosts, {0: large, 1: small}, 4
    )
