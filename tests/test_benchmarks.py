"""The list of benchmarks, those from outside, and the parameters that a study sets."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import OUTSIDE
from paribus.benchmarks import BENCHMARKS, get
from paribus.benchmarks.files import load_file
from paribus.benchmarks.parameters import positive, real, sizes
from paribus.benchmarks.tool import options
from paribus.core import Case, ParseError, Request, StudyError, UserError, format_bytes
from paribus.readers.kernel import READER

DOCS = Path(__file__).parents[1] / "docs"
FIXTURES = Path(__file__).parent / "fixtures"


# --- names and files ------------------------------------------------------------------------------


def test_an_unknown_name_gets_the_nearest_one() -> None:
    assert get("latency") is BENCHMARKS["latency"]
    with pytest.raises(UserError, match="no such benchmark") as caught:
        get("allreduc")
    assert "did you mean 'allreduce'?" in caught.value.fix


def test_every_kernel_has_its_benchmark() -> None:
    native = Path(__file__).parents[1] / "src" / "paribus" / "native"
    kernels = {path.stem for path in native.glob("*.c*")}
    programs = {
        b.command(Request({k: p.default for k, p in b.parameters.items()}, b.ranks)).kernel
        for b in BENCHMARKS.values()
    }
    assert kernels == programs - {None}


def outside(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "own.py"
    path.write_text(text)
    return path


def test_the_benchmark_that_bench_measures_with_works(tmp_path: Path) -> None:
    benchmark = load_file(outside(tmp_path, OUTSIDE))
    assert benchmark.name == "echo"
    (sample,) = benchmark.parse(" 41\n", Request({}, 1)).samples
    assert sample.values == (42.0,)


def documented_example() -> str:
    text = (DOCS / "benchmarks.md").read_text()
    found = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_documented_example_fits_its_title_and_works(tmp_path: Path) -> None:
    source = documented_example()
    assert len(source.splitlines()) <= 40
    benchmark = load_file(outside(tmp_path, source))
    assert benchmark.name == "sha256"
    request = Request({}, 1)
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed")
    argv = benchmark.command(request).argv
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)
    samples = benchmark.parse(done.stdout, request).samples
    assert [s.case for s in samples] == [Case.of(bytes=n) for n in (16, 64, 256, 1024, 8192, 16384)]
    with pytest.raises(ParseError, match="got 2"):
        benchmark.parse(done.stdout * 2, request)
    with pytest.raises(ParseError, match="expected 6 figures"):
        benchmark.parse(done.stdout.rpartition(" ")[0], request)


@pytest.mark.parametrize(
    ("text", "cause", "place"),
    [
        ("x = (", "is not Python", "own.py, line 1"),
        ("x = 1", "defines no BENCHMARK", "own.py"),
        ("BENCHMARK = 'latency'", "is not a Benchmark", "own.py"),
        ("import os\nimport nothing_like_it", "ModuleNotFoundError", "own.py, line 2"),
        ("def f():\n    return 1 / 0\nf()", "ZeroDivisionError", "own.py, line 2"),
        ("\0", "is not Python|fails", "own.py"),
    ],
)
def test_a_file_that_cannot_be_used(tmp_path: Path, text: str, cause: str, place: str) -> None:
    with pytest.raises(UserError, match=cause) as caught:
        load_file(outside(tmp_path, text))
    assert caught.value.place.endswith(place)
    assert caught.value.fix


OWN = """
from paribus.core.model import Benchmark, Case, Metric, Parameter, Parsed, Program, Sample
METRIC = Metric("time", "s", "lower")
def command(request):
    return Program(("true",), mpi=False)
def parse(stdout, request):
    return Parsed((Sample("time", Case(), (1.0,)),))
BENCHMARK = Benchmark("own", "shell", "prints a time", (METRIC,), command, parse, ranks=1)
"""


@pytest.mark.parametrize(
    ("sound", "wrong", "cause"),
    [
        ('"s", "lower"', '"s", "fewer"', 'better=\'fewer\': give "lower" or "higher"'),
        ('"s", "lower"', '"s", "lower", margin=2', "margin=2: give a share between 0 and 1"),
        ('"s", "lower"', '"s", "lower", margin="2 %"', "margin='2 %'"),
        ('"s", "lower"', '"s", "lower", endpoint="p50"', "endpoint='p50'"),
        ('"s", "lower"', '"s", "lower", small_us=-1', "small_us=-1"),
        ('"s", "lower"', 'None, "lower"', "unit=None"),
        ('Metric("time"', 'Metric(""', "give one line of text"),
        ('"own", "shell"', '"own\\n", "shell"', "has the name"),
        ("(METRIC,)", "METRIC", "give (Metric(...),), with the comma"),
        ("(METRIC,)", "()", "give a tuple of one Metric or more"),
        ("(METRIC,)", "(METRIC, METRIC)", "two metrics of one name"),
        ("command, parse", "command, 'parse'", "a parse that is no function"),
        ("parse(stdout, request)", "parse(stdout)", "does not take what it is given: parse(stdout"),
        ("command(request)", "command()", "does not take what it is given: command(request)"),
        ("ranks=1", "ranks='all'", "ranks='all'"),
        ("ranks=1", "ranks=True", "ranks=True: give a whole number"),
        ("ranks=1", "parameters={'n': 3}", "give Parameter"),
        ("ranks=1", "parameters={'n': Parameter({1}, int, '')}", "give JSON values"),
        ("ranks=1", "parameters={'n': Parameter('x', int, '')}", "'x': its own reader refuses"),
        ("ranks=1", "parameters={'n': Parameter(1, {2: 3}.pop, '')}", "reader fails: KeyError: 1"),
        ("ranks=1", "parameters={'n': Parameter(1, exit, '')}", "reader fails: SystemExit: 1"),
    ],
)
def test_a_benchmark_is_checked_when_its_file_is_loaded(
    tmp_path: Path, sound: str, wrong: str, cause: str
) -> None:
    assert load_file(outside(tmp_path, OWN)).name == "own"
    assert sound in OWN
    with pytest.raises(UserError, match=re.escape(cause)) as caught:
        load_file(outside(tmp_path, OWN.replace(sound, wrong)))
    assert caught.value.place.endswith("own.py")


def test_a_value_that_the_reader_of_a_file_fails_on_is_refused(tmp_path: Path) -> None:
    taken = "parameters={'n': Parameter(None, lambda value: value['x'], '')}"
    benchmark = load_file(outside(tmp_path, OWN.replace("ranks=1", taken)))
    with pytest.raises(ValueError, match="its reader fails: TypeError"):
        benchmark.parameters["n"].read(3)


@pytest.mark.parametrize(
    ("wrong", "cause"),
    [
        ("None", "command() returns no Program"),
        ("Program(())", "has no argv"),
        ('Program("true")', "give a tuple of texts"),
        ('Program(("sleep", 1))', "give a tuple of texts"),
        ('Program(("true",), env={"N": 1})', "env={'N': 1}: give a dict of texts"),
        ('Program(("true",), files={"../x": ""})', "give a name without directories"),
        ('Program(("true",), threads=-1)', "threads=-1"),
        ('Program(("true",), cwd=1)', "cwd=1: give a path"),
        ('Program(("true",), mpi="no")', "mpi='no': give True or False"),
        ('Program(("true",), bound=0)', "bound=0: give True or False"),
        ("1 / 0", "command() fails: ZeroDivisionError"),
        ("exit(3)", "command() fails: SystemExit: 3"),
    ],
)
def test_a_program_is_checked_before_it_is_launched(tmp_path: Path, wrong: str, cause: str) -> None:
    source = OWN.replace('Program(("true",), mpi=False)', wrong)
    benchmark = load_file(outside(tmp_path, source))
    with pytest.raises(StudyError, match=re.escape(cause)):
        benchmark.command(Request({}, 1))


@pytest.mark.parametrize(
    ("wrong", "cause"),
    [
        ("None", "returned no Parsed"),
        ("Parsed(())", "returned no Parsed with a tuple of samples"),
        ("Parsed([1.0])", "returned no Parsed with a tuple of samples"),
        ('Parsed((Sample("tmie", Case(), (1.0,)),))', "a sample of 'tmie', which its metrics do"),
        ('Parsed((Sample("time", Case(), (1.0,)),) * 2)', "two samples of 'time'"),
        ('Parsed((Sample("time", {"bytes": 8}, (1.0,)),))', "give Case.of(bytes=8) or the like"),
        ('Parsed((Sample("time", Case.of(bytes=[8]), (1.0,)),))', "give Case.of(bytes=8)"),
        ('Parsed((Sample("time", Case(), (True,)),))', "of 'time' with True: give numbers"),
        ('Parsed((Sample("time", Case(), ("1",)),))', "give a tuple of numbers, not ('1',)"),
        ('Parsed((Sample("time", Case(), 1.0),))', "give a tuple of numbers, not 1.0"),
        ('Parsed((Sample("time", Case(), (1.0,)),), {"a": {1}})', "facts that are not JSON"),
        ("[][0]", "parse() fails: IndexError"),
        ("exit(1)", "parse() fails: SystemExit: 1"),
    ],
)
def test_what_a_file_makes_of_an_output_is_checked(tmp_path: Path, wrong: str, cause: str) -> None:
    source = OWN.replace('Parsed((Sample("time", Case(), (1.0,)),))', wrong)
    benchmark = load_file(outside(tmp_path, source))
    with pytest.raises((ParseError, ValueError), match=re.escape(cause)):
        benchmark.parse("1.0", Request({}, 1))


def test_programs_of_a_file_are_those_beside_it(tmp_path: Path) -> None:
    argv = '("./solver", "./in.txt"), needs=("data/in.txt", "python3")'
    source = OWN.replace('("true",)', f'{argv}, files={{"run.sh": "x"}}, server=("./run.sh",)')
    program = load_file(outside(tmp_path, source)).command(Request({}, 1))
    assert program.argv == (str(tmp_path / "solver"), "./in.txt")
    assert program.needs == (str(tmp_path / "data/in.txt"), "python3")
    assert program.server == ("./run.sh",)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file"):
        load_file(tmp_path / "nothing.py")
    with pytest.raises(UserError, match="directory"):
        load_file(tmp_path)


# --- parameters -----------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 2**31 - 1), min_size=1, max_size=20, unique=True))
def test_sizes_survive_being_written_and_read(numbers: list[int]) -> None:
    assert sizes([format_bytes(n) for n in numbers]) == numbers
    assert sizes(numbers) == numbers
    assert sizes(sizes(numbers)) == numbers


@given(st.integers(1, 2**31 - 1), st.integers(1, 2**31 - 1))
def test_a_range_doubles_and_holds_both_ends(one: int, other: int) -> None:
    low, high = sorted((one, other))
    found = sizes(f"{format_bytes(low)} : {format_bytes(high)}")
    assert (found[0], found[-1]) == (low, high)
    assert all(b == 2 * a for a, b in pairwise(found[:-1]))
    if len(found) > 1:
        assert found[-2] < found[-1] <= 2 * found[-2]


@pytest.mark.parametrize(
    "value",
    [
        *([], ["8"], ["4 KB"], [8, 8], ["1 KiB", 1024], [0], [-8], [8.5], [True], None, {"low": 8}),
        *("8 B : ", "1 MiB : 1 B", "0 B : 8 B", "2 GiB"),
    ],
)
def test_sizes_that_cannot_be_meant(value: Any) -> None:
    with pytest.raises(ValueError, match=r"\w{4}"):
        sizes(value)


@pytest.mark.parametrize("value", [0, -1, 1.5, "3", True, None, 2**31])
def test_counts_that_cannot_be_meant(value: Any) -> None:
    with pytest.raises(ValueError, match="whole number"):
        positive(value)


@pytest.mark.parametrize("value", [-0.1, "0.1", True, None, float("nan"), float("inf")])
def test_numbers_that_cannot_be_meant(value: Any) -> None:
    with pytest.raises(ValueError, match="use a number"):
        real(value)


def test_osu_programs_refuse_sizes_that_they_would_not_measure() -> None:
    read = BENCHMARKS["osu_latency"].parameters["bytes"].read
    assert read("4 B : 32 B") == [4, 8, 16, 32]
    for value in (["8 B", "100 B"], "4 B : 33 B"):
        with pytest.raises(ValueError, match="double"):
            read(value)


# --- command lines and what kernels print ---------------------------------------------------------


def request(name: str, **parameters: Any) -> Request:
    benchmark = BENCHMARKS[name]
    defaults = {k: p.default for k, p in benchmark.parameters.items()}
    return Request({**defaults, **parameters}, 2)


def test_only_what_was_set_reaches_the_command_line() -> None:
    program = get("latency").command(request("latency", bytes=[8, 4096], delay_us=1.5))
    assert program.kernel == "latency"
    assert program.argv == (
        *("--ranks", "2", "--bytes", "8,4096"),
        *("--delay-us", "1.5", "--like", "paribus"),
    )
    found = get("loader").command(request("loader", count=3, functions=2)).libraries
    assert found == (3, 2, "libraries")
    osu = get("osu_bw").command(request("osu_bw", bytes=[8, 16], iterations=7, path="/o/osu_bw"))
    assert osu.argv == ("/o/osu_bw", "-m", "8:16", "-i", "7")


def good(name: str) -> tuple[list[dict[str, Any]], Request]:
    """Return the lines of a captured output, and the request that it answers."""
    path = FIXTURES / name / "good-0.out"
    table = json.loads(path.with_suffix(".json").read_text())
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return lines, Request(table["parameters"], table["ranks"])


def test_facts_of_a_launch() -> None:
    lines, asked = good("allreduce")
    text = "\n".join(map(json.dumps, lines))
    facts = get("allreduce").parse(text, asked).facts
    header, end = lines[0], lines[-1]
    assert facts["mpi.library"] == header["mpi"]
    assert facts["rank.affinity"] == header["affinity"]
    assert facts["limits.nofile"] == header["limits"]["nofile"]
    assert facts["clock.cost_ns"] == header["clock_ns"]
    assert facts["rank.involuntary"] == end["involuntary"]
    assert facts["probe.after.triad_gbps"] == end["probe"]["after"]["triad_gbps"]
    assert facts["kernel.skew_us.8 B"] > 0


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (lambda lines: lines[0].update(ranks=1), "'hosts' does not name every rank"),
        (lambda lines: lines[0].update(kernel="bcast"), "allreduce was asked for"),
        (lambda lines: lines[0].update(kernel="mine"), "a kernel of contract 1, got 'mine' of 1"),
        (lambda lines: lines[0].update(paribus_kernel=2), "of contract 1, got 'allreduce' of 2"),
        (lambda lines: lines[0].update(affinity=["0"]), "'affinity' does not name every rank"),
        (lambda lines: lines[0].update(like="osu"), "like = 'paribus' was asked for"),
        (lambda lines: lines[0]["args"].update(bytes=[8]), "but the first line does not name it"),
        (lambda lines: (lines[0]["args"].update(bytes=[8]), lines.pop(2)), "is missing"),
        (lambda lines: lines[0]["args"].update(samples=5), "samples = 4 was asked for"),
        (lambda lines: lines[1].update(unit="ms"), "time is in us, the line says 'ms'"),
        (lambda lines: lines[1].update(metric="speed"), "unknown metric 'speed'"),
        (lambda lines: lines[1].update(count=3), "3 samples were taken, 4 are on the line"),
        (lambda lines: lines[1].update(skew_us=[0.1]), "4 samples, but 1 figures of skew"),
        (lambda lines: lines[1].update(batch=1.5), "a batch of 1.5"),
        (lambda lines: lines[1].update(samples=[0.1, 0.1, 0.1, 0.0]), "not a measurement"),
        (lambda lines: lines[1].update(case={"bytes": 16}), "16 B is there but the first line"),
        (lambda lines: lines[-1].update(check="failed"), "did not pass: 'failed'"),
        (lambda lines: lines.pop(), "the last line is missing"),
        (lambda lines: lines.pop(0), "the first line is missing"),
        (lambda lines: lines.pop(1), "time at 8 B is missing"),
        (lambda lines: lines.insert(2, lines[1]), "time at 8 B is there twice"),
        (lambda lines: lines.clear(), "the kernel printed nothing"),
    ],
)
def test_each_refusal_says_what_is_wrong(change: Any, cause: str) -> None:
    lines, asked = good("allreduce")
    change(lines)
    with pytest.raises(ParseError, match=cause):
        get("allreduce").parse("\n".join(map(json.dumps, lines)), asked)


@pytest.mark.parametrize("name", ["allreduce", "triad", "lammps", "npb_is", "ior"])
def test_kernels_and_tools_share_the_check_of_what_was_asked_for(name: str) -> None:
    """The same sentences: another number of ranks, another parameter than the output echoes."""
    path = sorted((FIXTURES / name).glob("good-*.out"))[0]
    table = json.loads(path.with_suffix(".json").read_text())
    asked, text = Request(table["parameters"], table["ranks"]), path.read_text()
    ranks = rf"{asked.ranks + 1} ranks were asked for, the output says {asked.ranks}"
    with pytest.raises(ParseError, match=ranks):
        get(name).parse(text, replace(asked, ranks=asked.ranks + 1))
    echoed = get(name).read or READER.read
    key, said = next((k, v) for k, v in echoed(text).parameters.items() if type(v) is int)
    other = replace(asked, parameters={**asked.parameters, key: said + 1})
    cause = f"{key} = {said + 1} was asked for, the output says {said}"
    with pytest.raises(ParseError, match=cause):
        get(name).parse(text, other)


def test_a_kernel_echoes_every_parameter_that_was_set() -> None:
    lines, asked = good("allreduce")
    delayed = replace(asked, parameters={**asked.parameters, "delay_us": 5.0})
    with pytest.raises(ParseError, match=r"delay_us = 5.0 was asked for, the output says None"):
        get("allreduce").parse("\n".join(map(json.dumps, lines)), delayed)


def test_options_are_those_of_the_parameters_that_are_set() -> None:
    asked = {"gid": 0, "size": None, "fsync": False, "direct": True, "mode": "rw"}
    table = {"mode": "-m", "gid": "-x", "size": "-s", "fsync": "-e", "direct": "-D", "other": "-o"}
    assert options(Request(asked, 1), table) == ["-m", "rw", "-x", "0", "-D"]
