"""A program of the user's own: what a study file says of it, what is read, and what is refused."""

from __future__ import annotations

import json
import math
import os
import statistics
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpis import each_mpi
from paribus.benchmarks import BENCHMARKS, benchmark_of, command
from paribus.core import Arm, Command, Mpi, ParseError, Program, Request, Selection, StudyError
from paribus.launch.arms import Ready, asked_of, compose, program
from paribus.launch.local import LocalStation
from paribus.studyfile.load import load_study
from processes import executable
from stations import launched
from studies import launches_in, paribus

OPENMPI = Mpi("openmpi", (4, 1), "mpicxx", "mpirun")
NICE = ("nice", "-n", "5")
WRAPPED = min(19, os.nice(0) + 5)
"""The nice value of what NICE starts, of tests that are nice themselves too."""


def wrapped_study(folder: Path, arm: str, *, factor: str = "wrapper", ranks: str = "") -> Path:
    path = folder / "study.toml"
    path.write_text(
        f'question = "Which?"\nfactor = "{factor}"\n[arms.bare]\n[arms.wrapped]\n{arm}\n'
        f'[[benchmarks]]\nname = "command"\nargv = ["sh", "-c", "nice"]\n{ranks}\n'
        "[plan]\nseed = 1\nblocks = 8\n"
    )
    return path


def composed(ranks: int = 2, **arm: Any) -> tuple[str, ...]:
    """Return the argv of a launch of `sh` in an arm that is bound to two cores."""
    asked = dict.fromkeys(("regex", "measure", "unit", "better", "success", "directory"))
    one = Selection("command", "command", ranks, {**asked, "argv": ["sh"]})
    ready = Ready(Arm("wrapped", **arm), OPENMPI, (0, 1), share=2)
    return compose(ready, one, benchmark_of(one), seed=0, scratch="/s/1").argv


def test_a_wrapper_stands_before_the_program_of_each_rank_within_the_binding() -> None:
    argv = composed(wrap=NICE)
    assert argv[0] == "mpirun"
    assert argv[-4:] == (*NICE, "sh")
    assert argv.index("nice") > argv.index("paribus-bind")


def test_a_wrapper_of_the_launcher_stands_before_all() -> None:
    argv = composed(wrap=NICE, wrap_around="launcher")
    assert argv[:4] == (*NICE, "mpirun")
    assert argv.count("nice") == 1
    assert composed(0, wrap=NICE, wrap_around="launcher") == composed(0, wrap=NICE) == (*NICE, "sh")


def test_a_wrapper_is_a_fact_of_its_arm() -> None:
    facts = asked_of(Arm("wrapped", wrap=(*NICE, "a b")), ())
    assert facts["wrapper.argv"] == "nice -n 5 'a b'"
    assert facts["wrapper.around"] == "rank"


@pytest.mark.parametrize(
    ("arm", "said"),
    [
        ('wrap = "nice -n 5"', 'of the program and its arguments: ["nice", "-n", "5"]'),
        ("wrap = []", "name a program"),
        ('wrap_around = "launcher"', "there is no wrapper"),
        ('wrap = ["nice"]\nwrap_around = "host"', 'use one of "rank", "launcher"'),
    ],
)
def test_a_wrapper_that_cannot_be_is_refused(tmp_path: Path, arm: str, said: str) -> None:
    with pytest.raises(StudyError) as refused:
        load_study(wrapped_study(tmp_path, arm))
    assert said in str(refused.value)


def test_a_wrapper_beside_the_study_is_found_there(tmp_path: Path) -> None:
    study = load_study(wrapped_study(tmp_path, 'wrap = ["./numa.sh", "x"]'))
    assert study.arms[1].wrap == (f"{tmp_path}/numa.sh", "x")


@pytest.mark.parametrize("name", ["no-such-wrapper", "./missing.sh"])
def test_a_missing_wrapper_is_refused_before_the_first_launch(tmp_path: Path, name: str) -> None:
    study = wrapped_study(tmp_path, f'wrap = ["{name}"]')
    done = paribus("run", study, "--out", "out", cwd=tmp_path, code=2)
    assert f"{name.removeprefix('./')}" in done.stderr
    assert "wrap of wrapped" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_program_that_only_the_wrapper_leads_to_is_found_and_a_missing_one_is_not(
    tmp_path: Path,
) -> None:
    hidden = tmp_path / "image" / "hidden"
    hidden.parent.mkdir()
    executable(hidden, "echo DONE")
    into = f'wrap = ["env", "PATH={hidden.parent}:/usr/bin:/bin"]'
    path = wrapped_study(tmp_path, into)
    path.write_text(path.read_text().replace('["sh", "-c", "nice"]', '["hidden"]'))
    done = paribus("run", path, "--out", "out", cwd=tmp_path, code=2)
    assert "no program on the PATH called hidden" in done.stderr
    path.write_text(path.read_text().replace("[arms.bare]", f"[arms.bare]\n{into}"))
    done = paribus("run", path, "--out", "out", "--anyway", cwd=tmp_path)
    assert "nothing differs between the arms bare and wrapped" in done.stderr, "it was found"
    path.write_text(path.read_text().replace('"hidden"', '"missing"'))
    done = paribus("run", path, "--out", "out2", cwd=tmp_path)
    assert "no program missing, neither here nor behind `env PATH=" in done.stderr


@pytest.mark.slow
def test_the_factor_explains_what_a_wrapper_changes_and_another_does_not(tmp_path: Path) -> None:
    arm = 'wrap = ["nice", "-n", "5"]'
    paribus("run", wrapped_study(tmp_path, arm), "--out", "out", "--brief", cwd=tmp_path, code=0)
    logs: dict[str, set[str]] = {"bare": set(), "wrapped": set()}
    for one in launches_in(tmp_path / "out"):
        (log,) = (tmp_path / "out" / "logs").glob(f"{one.launch.number:04d}-*.out")
        logs[one.launch.arm].add(log.read_text())
    assert logs == {"bare": {f"{os.nice(0)}\n"}, "wrapped": {f"{WRAPPED}\n"}}
    done = paribus(
        "run", wrapped_study(tmp_path, arm, factor="env"), "--out", "two", cwd=tmp_path, code=3
    )
    assert "wrapper.argv" in done.stderr
    assert "process.nice" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("mpi", each_mpi())
def test_each_rank_is_wrapped(tmp_path: Path, mpi: Mpi) -> None:
    prefix = Path(mpi.mpirun).parent.parent
    own = f'mpi = "{prefix}"\nwrap = ["nice", "-n", "5"]'
    path = wrapped_study(tmp_path, own, ranks=f'ranks = 2\nsuccess = "{WRAPPED}\\n{WRAPPED}\\n"')
    around = f'{own}\nwrap_around = "launcher"'
    path.write_text(path.read_text().replace("[arms.bare]", f"[arms.bare]\n{around}"))
    done = paribus("run", path, "--out", "out", "--json", cwd=tmp_path, code=0)
    tallies = json.loads(done.stdout)["tallies"]
    assert all(one["failed"] == one["invalid"] == 0 for one in tallies)
    argv = {one.launch.arm: one.outcome.argv for one in launches_in(tmp_path / "out")}
    assert argv["bare"][:3] == argv["wrapped"][-6:-3] == NICE


COMMAND = BENCHMARKS["command"]
DEFAULTS = {key: parameter.default for key, parameter in COMMAND.parameters.items()}
FIGURE: dict[str, Any] = {"regex": "took (.*) s", "unit": "s", "better": "lower"}


def asked(wall_s: float = 0.25, ranks: int = 0, **parameters: Any) -> Request:
    return Request({**DEFAULTS, "argv": ["true"], **parameters}, ranks, wall_s)


def write(
    folder: Path,
    more: str = "",
    arms: str = "[arms.a]\n[arms.b]\n",
    plan: str = "",
    factor: str = "nothing",
) -> Path:
    """Write a study of the benchmark `command` and return its path."""
    path = folder / "study.toml"
    path.write_text(
        f'question = "Which?"\nfactor = "{factor}"\n{arms}\n'
        f'[[benchmarks]]\nname = "command"\n{more}\n[plan]\nseed = 1\n{plan}\n'
    )
    return path


def started(path: Path, arm: int = 0) -> Program:
    study = load_study(path)
    one = study.benchmarks[0]
    return program(study.arms[arm], one, benchmark_of(one))


# --- what is read --------------------------------------------------------------------------------


def test_the_wall_time_is_the_figure_without_a_regex() -> None:
    (sample,) = COMMAND.parse("whatever\n", asked(0.25)).samples
    assert (sample.metric, sample.values) == ("wall", (0.25,))


def test_success_must_be_in_the_output() -> None:
    assert COMMAND.parse("all DONE\n", asked(success="DONE")).samples
    with pytest.raises(ParseError, match=r"success = 'DONE' is not in the output; .*'out of luck'"):
        COMMAND.parse("out of\nluck\n", asked(success="DONE"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "matches nothing: correct it; there is no output"),
        ("no figure here\n", "matches nothing: correct it; the output ends with 'no figure here'"),
        ("took 1 s\ntook 2 s\n", "matches 2 times, where one figure decides: make it match"),
        ("took 1 s\n" * 5000, "matches 1000 times or more, where one"),
        ("took no s\n", "gives 'no', which is no number above zero: put the parentheses"),
        ("took 1,234 s\n", "gives '1,234', which is no number"),
        ("took 1_234 s\n", "gives '1_234', which is no number"),
        ("took 0 s\n", "gives '0', which is no number above zero"),
        ("took -1 s\n", "gives '-1', which is no number above zero"),
        ("took nan s\n", "gives 'nan', which is no number"),
        ("took 1e999 s\n", "gives '1e999', which is no number"),
        (f"{'x' * 999}\ntook \x1b[5m\x07 s\nlast line\n", r"x took \x1b[5m\x07 s last line"),
    ],
)
def test_what_is_no_single_figure_is_refused_with_the_end_of_the_output(
    text: str, said: str
) -> None:
    with pytest.raises(ParseError) as refused:
        COMMAND.parse(text, asked(**FIGURE))
    assert said in refused.value.cause
    assert len(refused.value.cause) < 250
    assert refused.value.cause.isprintable()


@settings(max_examples=30)
@given(st.floats(min_value=1e-300, max_value=1e300), st.text(max_size=40), st.text(max_size=40))
def test_a_figure_is_read_whatever_is_printed_around_it(
    value: float, before: str, after: str
) -> None:
    text = f"{before}\ntook {value!r} s\n{after}"
    if (before + after).count("took ") == 0:
        (sample,) = COMMAND.parse(text, asked(**FIGURE)).samples
        assert math.isclose(sample.values[0], value)


def test_the_output_is_searched_as_the_log_shows_it() -> None:
    """Numbers before lines are tags of ranks in the logs of tools, and the user's own here."""
    one = asked(**{**FIGURE, "regex": "^0: (.*)$"})
    (sample,) = COMMAND.parse("0: 1.5\r\n1: 2.5\r\n", one).samples
    assert sample.values == (1.5,)


def test_ranks_that_all_print_the_figure_are_named_as_the_cause() -> None:
    with pytest.raises(ParseError, match="let one rank alone print it"):
        COMMAND.parse("took 1 s\ntook 1 s\n", asked(ranks=2, **FIGURE))


@pytest.mark.parametrize("regex", ["(a+)+$", "((?:a|aa)+)+b"])
def test_a_regex_that_would_search_for_years_is_stopped(
    regex: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "SEARCH_S", 0.2)
    begin = time.monotonic()
    with pytest.raises(ParseError, match=r"was stopped after 0.2 s: it backtracks"):
        COMMAND.parse("a" * 5000 + "!", asked(**{**FIGURE, "regex": regex}))
    assert time.monotonic() - begin < 5


def test_an_output_that_is_too_long_to_search_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "MOST_SEARCHED", 1 << 10)
    with pytest.raises(ParseError, match=r"has 4 KiB, more than regex is applied to \(1 KiB\)"):
        COMMAND.parse("x" * 4096, asked(**FIGURE))


# --- what a study file says ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("", "command has no program to start in a, b"),
        ('argv = "./solver -n 4"', 'write a list of the program and its arguments: ["./solver", '),
        ("argv = []", "name a program"),
        ("argv = [1]", "write a list of texts"),
        ('argv = ["x"]\nmeasure = "cpu"', 'use one of "wall"'),
        ('argv = ["x"]\nregex = "("', "it is no regular expression: "),
        ('argv = ["x"]\nregex = "took"', "it has 0 groups: put one pair of parentheses"),
        ('argv = ["x"]\nregex = "(a)(b)"', "it has 2 groups"),
        (f'argv = ["x"]\nregex = "({"a" * 1000})"', "use 1000 characters at most"),
        ('argv = ["x"]\nregex = "(a)"', "a figure has a unit and a direction"),
        ('argv = ["x"]\nregex = "(a)"\nunit = "s"', 'add better = "lower" or "higher"'),
        ('argv = ["x"]\nbetter = "less"', 'use one of "lower", "higher"'),
        ('argv = ["x"]\nunit = "s"', "the wall time is in s, and lower is better"),
        (
            'argv = ["x"]\nmeasure = "wall"\nregex = "(a)"\nunit = "s"\nbetter = "lower"',
            "two measures",
        ),
        ('argv = ["x"]\nsuccess = ""', "write it in quotes"),
        ('argv = ["x"]\nargs = ["y"]', "did you mean 'argv'?"),
    ],
)
def test_a_study_that_cannot_mean_anything_is_refused(tmp_path: Path, more: str, said: str) -> None:
    with pytest.raises(StudyError) as refused:
        load_study(write(tmp_path, more))
    assert said in str(refused.value)


def test_an_arm_may_have_a_program_of_its_own(tmp_path: Path) -> None:
    arms = '[arms.a]\n[arms.b]\nargv = ["./b", "-n"]\n'
    path = write(tmp_path, 'argv = ["a"]', arms=arms)
    assert started(path, 0).argv == ("a",)
    assert started(path, 1).argv == (f"{tmp_path}/b", "-n")
    with pytest.raises(StudyError, match="command has no program to start in a"):
        load_study(write(tmp_path, arms=arms))


def test_the_program_of_an_arm_needs_a_benchmark_that_starts_it(tmp_path: Path) -> None:
    path = write(tmp_path, 'argv = ["a"]', arms='[arms.a]\n[arms.b]\nargv = ["x"]\n')
    path.write_text(path.read_text().replace('"command"\nargv = ["a"]', '"latency"'))
    with pytest.raises(StudyError, match=r"arms.b.argv: no benchmark starts it"):
        load_study(path)


def test_paths_and_the_working_directory_are_those_of_the_study(tmp_path: Path) -> None:
    here = started(write(tmp_path, 'argv = ["./x", "in.dat"]'))
    assert (here.argv, here.cwd) == ((f"{tmp_path}/x", "in.dat"), str(tmp_path))
    there = started(write(tmp_path, 'argv = ["x"]\ndirectory = "case1"'))
    assert (there.argv, there.cwd) == (("x",), f"{tmp_path}/case1")
    own = started(write(tmp_path, 'argv = ["/x"]\ndirectory = "{scratch}"'))
    assert (own.argv, own.cwd) == (("/x",), "{scratch}")


def test_without_ranks_there_is_no_mpi_and_no_core(tmp_path: Path) -> None:
    alone, ranks = (started(write(tmp_path, f'argv = ["x"]{r}')) for r in ("", "\nranks = 1"))
    assert (alone.mpi, alone.bound) == (False, False)
    assert (ranks.mpi, ranks.bound) == (True, True)


# --- launches ------------------------------------------------------------------------------------

SLOW = """argv = ["sh", "-c", "test -e study.toml && sleep 0.0$T && echo DONE"]"""


def test_a_slower_command_is_found_by_its_wall_time(tmp_path: Path) -> None:
    arms = '[arms.a]\nenv = { T = "1" }\n[arms.b]\nenv = { T = "6" }\n'
    path = write(tmp_path, f'{SLOW}\nsuccess = "DONE"', arms=arms, factor="env")
    done = paribus("run", path, "--out", "out", cwd=tmp_path, code=0)
    assert "b is slower in command" in done.stdout
    assert "success not checked" not in done.stdout
    one = launches_in(tmp_path / "out")[0]
    (sample,) = one.outcome.samples
    assert sample.metric == "wall"
    assert sample.values[0] == one.outcome.wall_s
    assert one.outcome.argv[0] == "sh", "no shell or taskset of ours is in the wall time"


def test_a_figure_on_stderr_counts_too_and_the_report_says_what_is_not_proven(
    tmp_path: Path,
) -> None:
    script = (
        "printf unfinished; echo rate: 3.50$(od -An -N2 -tu2 /dev/urandom | tr -dc 0-9) Mop/s >&2"
    )
    more = f'argv = ["sh", "-c", "{script}"]\nregex = "^rate: (.*) Mop"'
    path = write(tmp_path, more + '\nunit = "Mop/s"\nbetter = "higher"')
    done = paribus("run", path, "--out", "out", "--json", cwd=tmp_path, code=0)
    verdict = json.loads(done.stdout)
    (notice,) = (n for n in verdict["notices"] if n["name"] == "success not checked")
    assert notice["figures"] == {"by_figure": ["command"]}
    assert notice["level"] == "note"
    (head,) = verdict["headlines"]
    assert (head["metric"]["unit"], head["metric"]["better"]) == ("Mop/s", "higher")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ('argv = ["no-such-program"]', "no program on the PATH called no-such-program"),
        ('argv = ["./missing"]', "no executable file"),
        ('argv = ["true"]\ndirectory = "missing"', "no directory"),
    ],
)
def test_what_is_missing_is_refused_before_the_first_launch(
    tmp_path: Path, more: str, said: str
) -> None:
    done = paribus("run", write(tmp_path, more), "--out", "out", cwd=tmp_path, code=2)
    assert said in done.stderr
    assert not (tmp_path / "out").exists()


def test_the_arms_of_a_duet_share_the_cores_out(tmp_path: Path) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one core cannot be shared out")
    more = 'argv = ["sh", "-c", "grep Cpus_allowed_list /proc/self/status"]'
    path = write(tmp_path, more, plan='layout = "duet"\nblocks = 8')
    paribus("run", path, "--out", "out", cwd=tmp_path, code=0)
    texts = {one.read_text() for one in (tmp_path / "out" / "logs").glob("*.out")}
    assert len(texts) == 2, "each arm has a half, and takes both in turn"


def test_a_wall_time_has_little_in_it_but_the_program(tmp_path: Path) -> None:
    """Forking the warden, which is a Python, is no part of it; bare spawns are the measure."""
    true = next(path for path in ("/bin/true", "/usr/bin/true") if Path(path).exists())
    ours, bare = [], []
    with LocalStation() as station:
        for i in range(40):
            one = Command((true,))
            done = launched(station, one, tmp_path, 10, f"{station.scratch}/{i}")
            ours.append(done.wall_s)
            begin = time.monotonic()
            os.waitpid(os.posix_spawn(true, ["true"], {}), 0)
            bare.append(time.monotonic() - begin)
    assert min(ours) < min(bare) + 0.0015
    assert statistics.median(ours) < 2 * statistics.median(bare) + 0.003
