"""HPC Challenge driven for real, and what the readers of NPB, HPL and others prove of a figure."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpis import installations
from outputs import FIXTURES, read, reading, text_of
from paribus.benchmarks import BENCHMARKS
from paribus.core import Mpi, ParseError, Program, Request, State, UserError
from paribus.launch.launchers.openmpi import ROOT
from paribus.store import Store
from paribus.tools import linpack
from paribus.tools.readers.linpack import operations
from studies import paribus

CORES = """
question = "What do newer vector instructions give?"
factor = "instructions"
explains = ["env.OPENBLAS_CORETYPE", "lib.blas.core"]
[arms.own]
[arms.nehalem]
env = { OPENBLAS_CORETYPE = "Nehalem" }
[[benchmarks]]
name = "hpcc"
n = 300
nb = 32
[plan]
seed = 1
blocks = 8
"""


def hpcc() -> str:
    """Return the path of hpcc with OpenBLAS; skips the caller where there is none."""
    path = shutil.which("hpcc")
    if path is None:
        pytest.skip("hpcc is not installed (Debian: apt install hpcc libopenblas0-pthread)")
    linked = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
    if "libopenblas" not in linked:
        pytest.skip("the BLAS of hpcc is not OpenBLAS (Debian: apt install libopenblas0-pthread)")
    return path


def matching(path: str) -> Mpi:
    """Return an MPI whose launcher `path` understands; skips the caller where there is none."""
    linked = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
    family = "openmpi" if "libmpi.so.40" in linked else "mpich"
    for mpi in installations():
        if mpi.family == family:
            return mpi
    pytest.skip(f"hpcc is built for {family}, and there is none")


def started(program: Program, mpi: Mpi, ranks: int, folder: Path) -> str:
    """Return what `program` printed and wrote when `mpi` launched it in `folder`."""
    for name, text in program.files.items():
        (folder / name).write_text(text)
    done = subprocess.run(
        [mpi.mpirun, "-np", str(ranks), *program.argv],
        cwd=folder,
        env={**os.environ, **ROOT, **program.env},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    written = [path.read_text() for path in sorted(folder.glob("hpccoutf.txt"))]
    return done.stdout + "".join(written)


@pytest.mark.slow
def test_hpcc_in_two_arms_with_the_blas_kernel_that_each_really_used(tmp_path: Path) -> None:
    mpi = matching(hpcc())
    (tmp_path / "study.toml").write_text(CORES)
    path = f"{Path(mpi.mpirun).parent}:{os.environ['PATH']}"
    done = paribus("run", "study.toml", "--out", "out", cwd=tmp_path, PATH=path)
    assert done.returncode == 0, done.stdout + done.stderr
    with Store(tmp_path / "out") as store:
        stored = list(store.launches())
    assert [one.outcome.error for one in stored if one.outcome.state is not State.OK] == []
    cores: dict[str, set[str]] = {}
    for one in stored:
        cores.setdefault(one.launch.arm, set()).add(one.outcome.facts["lib.blas.core"])
        metrics = {sample.metric for sample in one.outcome.samples}
        assert metrics == {metric.name for metric in BENCHMARKS["hpcc"].metrics}
    assert cores["nehalem"] == {"Nehalem"}
    assert len(cores["own"]) == 1
    assert cores["own"] != {"Nehalem"}
    verdict = json.loads((tmp_path / "out" / "verdict.json").read_text())
    assert "lib.blas.core" in json.dumps(verdict)


def test_every_combination_of_the_input_file_is_solved_by_the_real_hpl(tmp_path: Path) -> None:
    mpi = matching(hpcc())
    asked = {"n": [100, 130], "nb": [16, 32], "p": [1, 2], "q": [2, 1]}
    challenge = BENCHMARKS["hpcc"].command(
        Request({"n": 100, "nb": 16, "p": 1, "q": 2, "threads": 1}, 2)
    )
    own = linpack.input_file(asked["n"], asked["nb"], asked["p"], asked["q"], device=8)
    rest = challenge.files["hpccinf.txt"][challenge.files["hpccinf.txt"].index("#####") :]
    program = Program(challenge.argv, files={"hpccinf.txt": own + rest}, env=challenge.env)
    text = started(program, mpi, 2, tmp_path)
    begin = text.index("Begin of HPL section.")
    solved = text[begin : text.index("Current time", begin)]
    found = BENCHMARKS["hpl"].parse(solved, Request(asked, 2))
    assert len(found.samples) == 8
    with pytest.raises(ParseError, match="is missing"):
        BENCHMARKS["hpl"].parse(solved, Request({**asked, "n": [100, 130, 160]}, 2))


@pytest.mark.parametrize("name", ["hpl", "hpcc"])
def test_a_grid_that_does_not_fit_the_ranks_is_refused_before_any_launch(name: str) -> None:
    defaults = {key: p.default for key, p in BENCHMARKS[name].parameters.items()}
    with pytest.raises(UserError, match="has 2 places for 4 ranks") as caught:
        BENCHMARKS[name].command(Request(defaults, 4))
    assert "p times q is ranks" in caught.value.fix


def test_hpcg_reads_its_grid_and_seconds_from_the_file() -> None:
    asked = {"nx": 16, "ny": 24, "nz": 32, "seconds": 30, "threads": 1}
    program = BENCHMARKS["hpcg"].command(Request(asked, 2))
    assert program.files["hpcg.dat"].splitlines()[2:] == ["16 24 32", "30"]
    assert program.outputs == ("HPCG-Benchmark*.txt", "hpcg*.txt")


NPB = sorted(FIXTURES.glob("npb_*/good-a_*.out"))


def field(text: str, name: str, value: str) -> str:
    """Return an NPB output with `value` in the field `name` of its footer."""
    at = text.rindex(f" {name}")
    start, end = text.index("=", at) + 1, text.index("\n", at)
    return f"{text[:start]} {value.rjust(24)}{text[end:]}"


@given(path=st.sampled_from(NPB), wrong=st.sampled_from([0.5, 0.9, 1.02, 1.1, 2.0]))
def test_npb_operations_prove_the_time(path: Path, wrong: float) -> None:
    """The operations that a kernel's source counts: any Mop/s with its time, and no other time."""
    name, text = path.parent.name, path.read_text()
    right = read(name, text)
    mops, seconds = (sample.values[0] for sample in right.samples)
    assert math.isclose(seconds, float(value(text, "Time in seconds")), abs_tol=0.0051)
    slower = 10 / seconds
    own = field(text, "Time in seconds", "10.00")
    own = field(own, "Mop/s total", f"{mops / slower:.2f}")
    own = field(own, "Mop/s/process", f"{mops / slower / (right.ranks or 1):.2f}")
    found = {s.metric: s.values[0] for s in read(name, own).samples}
    assert math.isclose(found["time"], 10, rel_tol=0.01 * slower / mops + 1e-6)
    with pytest.raises(ParseError):
        read(name, field(own, "Time in seconds", f"{10 * wrong:.2f}"))


def value(text: str, name: str) -> str:
    at = text.rindex(f" {name}")
    return text[text.index("=", at) + 1 : text.index("\n", at)].strip()


@given(n=st.integers(1000, 200000), seconds=st.floats(10, 1e5), wrong=st.floats(1.01, 3))
def test_hpl_operations_prove_the_time(n: int, seconds: float, wrong: float) -> None:
    text = text_of("hpl/good-handmade-2_3")
    head, _, tail = text.partition("WR11C2R4")
    _, _, tail = tail.partition("\n")
    gflops = operations(n) * 1e-9 / seconds

    def row(figure: float) -> str:
        return f"WR11C2R4{n:12d}   192     1     4 {seconds:18.2f}     {figure:18.4e}"

    second = next(line for line in tail.splitlines() if line.startswith("WR11"))
    rest = tail.replace(second, row(gflops).replace("1     4 ", "2     2 "))
    rest = rest.replace("N      :   10000", f"N      : {n:7d}")
    head = head.replace("N      :   10000", f"N      : {n:7d}")
    good = read("hpl", f"{head}{row(gflops)}\n{rest}")
    assert math.isclose(good.samples[0].values[0], gflops, rel_tol=1e-4)
    with pytest.raises(ParseError, match="are not the work of"):
        read("hpl", f"{head}{row(gflops * wrong)}\n{rest}")


@pytest.mark.parametrize("name", ["npb_cg", "npb_is"])
def test_npb_with_threads_says_how_many(name: str) -> None:
    text = text_of(f"{name}/good-real-omp_s_1")
    found = read(name, text)
    assert (found.ranks, found.parameters["parallel"], found.parameters["threads"]) == (1, "OMP", 1)
    with pytest.raises(ParseError, match="Total threads = 1, but Avail threads = 4"):
        read(name, field(text, "Avail threads", "4"))
    with pytest.raises(ParseError, match=r"Mop/s/thread 5\.00 times 1 is not Mop/s total"):
        read(name, field(text, "Mop/s/thread", "5.00"))
    serial = text.replace("-OMP)", "-SER)")
    assert "threads" not in read(name, serial).parameters
    with pytest.raises(ParseError, match="'Mop/s/process' is missing"):
        read(name, text.replace("(NPB3.3-OMP) -", "3.3 --"))


def test_what_a_script_greps_of_an_output_behind_it_is_no_second_output() -> None:
    text = text_of("npb_cg/good-a_2")
    grepped = "".join(line for line in text.splitlines(keepends=True) if "Mop/s" in line)
    assert read("npb_cg", text + grepped).samples == read("npb_cg", text).samples
    with pytest.raises(ParseError, match="'Mop/s total' is there twice"):
        read("npb_cg", text.replace(grepped, grepped * 2))


def test_npb_kernels_that_nobody_reads_may_stand_around_one_that_is_read() -> None:
    text = text_of("npb_cg/good-real-omp_s_1")
    other = text.replace("CG Benchmark", "UA Benchmark")
    assert read("npb_cg", other + text + other).samples == read("npb_cg", text).samples
    with pytest.raises(ParseError, match="there twice"):
        read("npb_cg", text + text.replace("CG Benchmark", "MG Benchmark"))


@pytest.mark.parametrize(
    ("name", "asked", "argv"),
    [
        ("npb_cg", {"class": "B", "suffix": "ranks"}, ("cg.B.8",)),
        ("npb_cg", {"class": "B", "suffix": "x"}, ("cg.B.x",)),
        ("npb_cg", {"class": "B", "suffix": "x", "path": "/opt/cg"}, ("/opt/cg",)),
        ("stream", {"threads": 4}, ("stream",)),
        ("mixbench", {"backend": "cuda", "threads": None}, ("mixbench-cuda",)),
    ],
)
def test_command_lines(name: str, asked: dict[str, Any], argv: tuple[str, ...]) -> None:
    assert BENCHMARKS[name].command(Request(asked, 8)).argv == argv


def test_babelstream_takes_its_size_and_type_from_the_command_line() -> None:
    asked = {"backend": "cuda", "elements": 1024, "times": 5, "precision": "float"}
    program = BENCHMARKS["babelstream"].command(
        Request({**asked, "triad_only": True, "threads": 1}, 1)
    )
    assert program.argv[3:] == (
        *("cuda-stream", "-n", "5", "-s", "1024"),
        *("--float", "--only", "Triad"),
    )


def test_pynamic_starts_in_its_own_folder_with_the_time(tmp_path: Path) -> None:
    """The real driver needs a long build; a script in its place shows folder and argument."""
    own = tmp_path / "pynamic_driver_mpi4py.py"
    own.write_text("import os, sys, time; print(os.getcwd(), time.time() - float(sys.argv[1]))\n")
    program = BENCHMARKS["pynamic"].command(Request({"form": "script", "path": str(own)}, 1))
    done = subprocess.run(program.argv, capture_output=True, text=True, check=True)
    folder, seconds = done.stdout.split()
    assert Path(folder) == tmp_path
    assert 0 < float(seconds) < 60


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("mixbench/fail-handmade-alternating", "the one named read-only is"),
        ("mixbench/fail-handmade-killed", "the program ended before"),
        ("nvbandwidth/fail-handmade_waived", "every test case was waived"),
        ("ib_write_bw/fail-handmade-cut", "the program ended before"),
        ("npb_ep/fail-handmade-wrong_np", "Total processes = 1, but Compiled procs = 2"),
        ("lammps/fail-killed", "runs begun: 1, ended: 0"),
        (
            "npb_cg/fail-wrong_np",
            "num of procs allocated ( 1 ) is not equal to compiled number of procs ( 2 )",
        ),
    ],
)
def test_the_reason_reports_what_is_wrong(path: str, said: str) -> None:
    with pytest.raises(ParseError) as caught:
        reading(path)
    assert said in caught.value.cause


# By what is damaged: the output, what is replaced in it and by what, and the refusal.
OUT_OF_ORDER = {
    "footer before its table": (
        "nccl_tests/good-real-rccl_mi100",
        (r"(#  +out-of-place.*)(# Out of bounds values : 0 OK\n)", r"\2\1"),
        "after the table",
    ),
    "part of a row among rows": (
        "nccl_tests/good-real-2_10_broadcast",
        (r"(?<=\n)( +4096 +1024 +float)", r"\1 \n\1"),
        "not a whole row: '4096 ",
    ),
    "size that is no number of bytes": (
        "nccl_tests/good-real-rccl_mi100",
        (r"(?<=\n) +8 +2 ", "          00             2 "),
        "not a whole row: '00 ",
    ),
    "figure that is none in a row of 0 B": (
        "nccl_tests/good-real-2_10_alltoall",
        (r" 1\.63 ", " 1.6.3 "),
        "not a whole row: '0 ",
    ),
    "more rows than GPUs": (
        "p2p_bandwidth/good-real-rtx4090_no_access",
        (r"(\n +1 [^\n]*)(\nUnidirectional P2P=Enabled)", r"\1\1\2"),
        "rows from 0 on, of 2 figures",
    ),
    "title of no matrix": (
        "p2p_bandwidth/good-real-rtx4090_no_access",
        ("Unidirectional P2P=Enabled", "Unilateral P2P=Enabled"),
        "no title of a matrix: 'Unilateral",
    ),
    "row torn in two": (
        "nvbandwidth/good-handmade_pairs",
        (r"(\n 1     26.34)(       N/A)", r"\1\n 7\2"),
        "something stands before 'SUM device_to_device_memcpy_read_ce'",
    ),
    "half precision not measured in one row": (
        "mixbench/good-handmade-cuda",
        (r"0\.10,  695\.00,1390\.00", "0.00,     inf,    inf"),
        "is not a measurement",
    ),
    "row after the closing line": (
        "mixbench/good-cpu",
        (r"\n( +512, [^\n]*\n)(-+\n)\Z", r"\n\1\2\1"),
        "after the end of the table",
    ),
    "rows first, heading last": (
        "stream/good-handmade-2_threads",
        (r"\A(.*\n)(Function[^\n]*)(\nCopy.*\nTriad[^\n]*)(.*)\Z", r"\3\n\1\4\2"),
        "has no rows",
    ),
    "share of a GPU that is not the whole by their number": (
        "hpl/good-handmade-nvidia_per_gpu",
        (r"3\.964e\+04", "3.864e+04"),
        "1.268e+06 Gflop/s are not 3.864e+04 of each of 4 times 8 GPUs",
    ),
    "check of another section in YAML": (
        "hpcg/good-real-3_0_yaml",
        (r"Iteration Count Information: \n", ""),
        "'Iteration Count Information::Result' is missing",
    ),
    "rating that is not the summary's in YAML": (
        "hpcg/good-real-3_0_yaml",
        (r"rating of: 3\.28908", "rating of: 3.38908"),
        "the rating is not the Gflop/s of the summary",
    ),
    "rows first, heading of CSV last": (
        "babelstream/good-omp_csv",
        (r"\A(function[^\n]*)(\nCopy.*)\Z", r"\2\1"),
        "no rows",
    ),
}


@pytest.mark.parametrize(("path", "damage", "said"), OUT_OF_ORDER.values(), ids=OUT_OF_ORDER)
def test_a_table_out_of_order_is_refused(path: str, damage: tuple[str, str], said: str) -> None:
    damaged, times = re.subn(*damage, text_of(path), count=1, flags=re.S)
    assert times == 1
    with pytest.raises(ParseError) as caught:
        read(path.partition("/")[0], damaged)
    assert said in caught.value.cause
