"""Threads: cores and OpenMP's variables for as many as were asked for, and no verdict without."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mpis import any_mpi, each_mpi
from paribus.benchmarks import BENCHMARKS
from paribus.core import (
    Arm,
    Command,
    Mpi,
    Program,
    Request,
    Selection,
    State,
    StudyError,
    UserError,
)
from paribus.launch.arms import Ready, bound, compose, concrete
from paribus.launch.launchers import bind
from paribus.launch.local import LocalStation
from paribus.launch.machine import HERE
from paribus.launch.ready import make_ready
from paribus.launch.station import Node
from paribus.launch.toolchain import find_mpi
from paribus.probes.machine import cores, shares, siblings
from paribus.studyfile.load import load_study
from stations import launched_of
from studies import launches_in, paribus, write_arms

CORES = tuple(sorted(os.sched_getaffinity(0)))[:2]
needs_two_cores = pytest.mark.skipif(len(CORES) < 2, reason="needs 2 cores")

SOURCE = r"""
#define _GNU_SOURCE
#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(void) {
  static int core[1024];
  cpu_set_t mask;
  char line[8192] = "";
  int threads = 0;
  sched_getaffinity(0, sizeof mask, &mask);
#pragma omp parallel
  {
    core[omp_get_thread_num()] = sched_getcpu();
#pragma omp single
    threads = omp_get_num_threads();
  }
  for (int i = 0; i < threads; i++) sprintf(line + strlen(line), " %d", core[i]);
  printf("threads %d places %d on%s", threads, omp_get_num_places(), line);
  /* With places, the runtime keeps the first thread on the first of them. */
  if (!omp_get_num_places()) printf(" of %d", CPU_COUNT(&mask));
  printf("\n");
  return 0;
}
"""


@pytest.fixture(scope="module")
def openmp(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of a program that prints its threads, and on which cores they are."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("openmp")
    (folder / "threads.c").write_text(SOURCE)
    argv = [compiler, "-fopenmp", "-o", "threads", "threads.c"]
    done = subprocess.run(argv, cwd=folder, capture_output=True, check=False)
    if done.returncode:
        pytest.skip("the C compiler has no OpenMP")
    return str(folder / "threads")


def started(
    program: Program, folder: Path, ready: Ready, ranks: int = 1, **parameters: Any
) -> list[str]:
    """Return the lines that a launch of `program` printed, sorted."""
    out, err = folder / "out", folder / "err"
    with LocalStation() as host:
        done = launched_of(host, program, ready, folder, ranks=ranks, **parameters)
    assert done.exit_code == 0, err.read_text()
    return sorted(out.read_text().splitlines())


@needs_two_cores
@pytest.mark.parametrize("asked", [0, 2])
def test_a_program_without_ranks_has_its_threads_on_cores_of_their_own(
    openmp: str, tmp_path: Path, asked: int
) -> None:
    ready = Ready(Arm("a"), None, CORES, share=2)
    (said,) = started(Program((openmp,), mpi=False, threads=asked), tmp_path, ready)
    assert said == f"threads 2 places 2 on {CORES[0]} {CORES[1]}"


@needs_two_cores
def test_one_thread_is_one_core_and_unbound_is_unbound(openmp: str, tmp_path: Path) -> None:
    one = Program((openmp,), mpi=False, threads=1)
    (said,) = started(one, tmp_path, Ready(Arm("a"), None, CORES[::-1], share=2))
    assert said.startswith("threads 1 ")
    assert said.endswith(f" on {CORES[1]} of 1")
    every = Program((openmp,), mpi=False, threads=0)
    (said,) = started(every, tmp_path, Ready(Arm("a"), None, (), share=3))
    assert said.startswith("threads 3 places 0 ")
    assert said.endswith(f" of {len(os.sched_getaffinity(0))}")


@needs_two_cores
@pytest.mark.parametrize("mpi", each_mpi())
def test_every_rank_has_threads_on_its_own_cores(openmp: str, tmp_path: Path, mpi: Mpi) -> None:
    ready = Ready(Arm("a"), mpi, (*CORES, *CORES[::-1]), share=4)
    said = started(Program((openmp,), threads=0), tmp_path, ready, ranks=2)
    # OMP_PROC_BIND goes by the number of the core, whatever order the mask was given in.
    assert said == [f"threads 2 places 2 on {CORES[0]} {CORES[1]}"] * 2
    said = started(Program((openmp,), threads=1), tmp_path, ready, ranks=2)
    assert sorted(line.split(" on ")[1] for line in said) == [f"{core} of 1" for core in CORES]


@needs_two_cores
def test_an_arm_may_make_the_threads_its_factor(openmp: str, tmp_path: Path) -> None:
    program = Program((openmp,), mpi=False, threads=0)
    for number in (1, 2):
        arm = Arm("a", env={"OMP_NUM_THREADS": str(number)})
        (said,) = started(program, tmp_path, Ready(arm, None, CORES, share=2))
        assert said.startswith(f"threads {number} ")
        assert said.endswith(" of 1" if number == 1 else f" on {CORES[0]} {CORES[1]}")


def test_a_program_that_is_not_one_of_threads_hears_nothing_of_them() -> None:
    stream, latency = BENCHMARKS["stream"], BENCHMARKS["latency"]
    ready = Ready(Arm("a", env={"OMP_NUM_THREADS": "7"}), None, (), share=64)
    plain = Selection("latency", "latency", 2, {"bytes": [8]})
    assert concrete(ready, plain, latency) is plain
    every = Selection("stream", "stream", 1, {"threads": "all"})
    assert concrete(ready, every, stream).parameters["threads"] == 7
    ready = Ready(Arm("a"), None, (), share=64)
    assert concrete(ready, every, stream).parameters["threads"] == 64
    lammps = Selection("lammps", "lammps", 5, {**_defaults("lammps"), "threads": "all"})
    assert concrete(ready, lammps, BENCHMARKS["lammps"]).parameters["threads"] == 12


def _defaults(name: str) -> dict[str, Any]:
    return {key: one.default for key, one in BENCHMARKS[name].parameters.items()}


@pytest.mark.parametrize(
    "name", [n for n, b in BENCHMARKS.items() if "threads" in b.parameters and n != "pytorch_ddp"]
)
def test_threads_are_one_parameter_everywhere(name: str) -> None:
    benchmark = BENCHMARKS[name]
    for value, wanted in (("all", 0), (3, 3), (1, 1)):
        read = benchmark.parameters["threads"].read(value)
        program = benchmark.command(Request({**_defaults(name), "threads": read}, benchmark.ranks))
        assert program.threads == wanted
        assert "OMP_NUM_THREADS" not in program.env
    for wrong in (0, -1, True, 1.5, "two", None):
        with pytest.raises(ValueError, match='or "all"'):
            benchmark.parameters["threads"].read(wrong)


def test_the_other_number_of_threads_is_refused() -> None:
    stream = BENCHMARKS["stream"]
    text = (Path(__file__).parent / "fixtures/stream/good-handmade-2_threads.out").read_text()
    asked = {**_defaults("stream"), "threads": 2}
    assert stream.parse(text, Request(asked, 1)).samples
    with pytest.raises(Exception, match=r"threads = 4 was asked for, the output says 2"):
        stream.parse(text, Request({**asked, "threads": 4}, 1))


def test_a_core_left_over_is_no_ranks() -> None:
    started = bind(Command(("app",)), bound(("",) * 3, {"": (3, 1, 2, 0, 5)}, 2))
    assert started.argv[3:] == ("paribus-bind", "3,1 2,0", "app")


def test_cores_are_those_of_the_node_not_of_this_machine(tmp_path: Path) -> None:
    """Eight ranks are refused where there are two cores, and bound where there are eight."""
    any_mpi()
    study = load_study(write_arms(tmp_path, benchmark='name = "allreduce"\nranks = 8'))
    two, eight = (Node("", tuple((core,) for core in range(n))) for n in (2, 8))
    with pytest.raises(StudyError, match=r"needs 8 ranks, but this machine lets .* 2 cores"):
        make_ready(study, lambda _: None, node=two, build=False)
    ready = make_ready(study, lambda _: None, node=eight, build=False)["a"]
    argv = compose(ready, study.benchmarks[0], BENCHMARKS["allreduce"], seed=1, scratch="/s").argv
    assert "0 1 2 3 4 5 6 7" in argv


@pytest.mark.parametrize("ranks", [2, 4])
def test_ranks_yield_alike_in_containers_and_out(tmp_path: Path, ranks: int) -> None:
    """By itself Open MPI counts hosts: four containers would not yield, four ranks of one would."""
    b = 'container = { engine = "namespace" }\nranks_per_host = 1'
    asked = f'name = "allreduce"\nranks = {ranks}'
    study = load_study(
        write_arms(tmp_path, b=b, benchmark=asked, factor="container", plan='bind = "none"')
    )
    mpi = Mpi("openmpi", (5, 0, 11), "/o/bin/mpicxx", "/o/bin/mpirun")
    found = []
    for arm in study.arms:
        ready = Ready(arm, mpi, (), kernels={"allreduce": ("/kernel",)}, share=2)
        argv = compose(
            ready, study.benchmarks[0], BENCHMARKS["allreduce"], seed=1, scratch="/s/t"
        ).argv
        found.append(argv[argv.index("mpi_yield_when_idle") + 1])
    assert found == [str(int(ranks > 2))] * 2


def test_shares_are_of_physical_cores(tmp_path: Path) -> None:
    for core, together in enumerate(("0,2", "1,3", "0,2", "1,3")):
        folder = tmp_path / f"sys/devices/system/cpu/cpu{core}/topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(together)
    every = frozenset(range(4))
    assert cores(tmp_path, every) == (0, 1, 2, 3)
    physical = siblings(tmp_path, every)
    assert physical == [(0, 2), (1, 3)]
    # Two launches at the same time on siblings would slow each other down.
    assert shares(physical, 2) == [(0, 2), (1, 3)]
    assert shares(physical, 3) == [(), (), ()]
    assert cores(tmp_path, frozenset((1, 2, 3))) == (1, 2, 3)
    assert siblings(tmp_path, frozenset((1, 2, 3))) == [(1, 3), (2,)]


def test_more_threads_than_cores_are_refused_before_anything_is_launched(
    openmp: str, tmp_path: Path
) -> None:
    any_mpi()
    (tmp_path / "lmp").symlink_to(openmp)
    asked = f'name = "lammps"\npath = "{tmp_path}/lmp"\nranks = 2\nthreads = 4096'
    path = write_arms(tmp_path, benchmark=asked)
    with pytest.raises(StudyError, match=r"lammps needs 2 ranks of 4096 threads, but .* cores"):
        make_ready(load_study(path), lambda _: None)
    path.write_text(path.read_text().replace("4096", '"many"'))
    with pytest.raises(StudyError, match="whole number"):
        load_study(path)


# --- real programs -------------------------------------------------------------------------------

DRIVEN = """
question = "Do {name}'s threads count?"
factor = "nothing"
explains = ["guard.", "work."]
[arms.a]
[arms.b]
[[benchmarks]]
name = "{name}"
threads = 2
{size}
blocks = 8
budget = "1 s"
seed = 1
"""


@pytest.mark.slow
@needs_two_cores
@pytest.mark.parametrize(
    ("name", "program", "size", "said"),
    [
        ("lammps", "lmp", "ranks = 1\nsteps = 20\n[plan]", ""),
        ("hpcc", "hpcc", 'n = 500\n[plan]\nbind = "none"', ""),
        (
            "qe",
            "pw.x",
            "ranks = 1\natoms = 4\n[plan]",
            "threads = 2 was asked for, the output says 1",
        ),
    ],
)
def test_threads_seen_are_threads_asked_for(
    tmp_path: Path, name: str, program: str, size: str, said: str
) -> None:
    """Debian's LAMMPS has OpenMP in it, its HPCC a BLAS with threads, its pw.x neither."""
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    try:
        find_mpi("/usr", HERE)
    except UserError as error:
        pytest.skip(f"no MPI of the distribution: {error.cause}")
    study = tmp_path / "study.toml"
    study.write_text(DRIVEN.format(name=name, size=size))
    done = paribus("run", study, "--out", tmp_path / "out", cwd=tmp_path)
    outcomes = [one.outcome for one in launches_in(tmp_path / "out", void=True)]
    if said:
        assert {one.state for one in outcomes} == {State.INVALID}
        assert said in outcomes[0].error
        return
    # 4: what one second allows may give no verdict.
    assert done.returncode in (0, 3, 4), done.stderr
    assert {one.state for one in outcomes} == {State.OK}, done.stdout
    if name == "lammps":
        text = next((tmp_path / "out/logs").glob("0001-*.out")).read_text()
        assert "1 MPI tasks x 2 OpenMP threads" in text
