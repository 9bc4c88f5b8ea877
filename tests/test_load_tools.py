"""Where a study's tools are, and what of them is refused before anything is launched."""

from __future__ import annotations

from pathlib import Path

import pytest

from paribus.benchmarks import BENCHMARKS, benchmark_of
from paribus.core import Program, StudyError
from paribus.launch.arms import program
from paribus.studyfile.load import load_study
from studies import paribus, write_study


def write(folder: Path, benchmark: str, *, tools: str = "", arms: str = "") -> Path:
    path = folder / "study.toml"
    path.write_text(
        f'question = "Which?"\nfactor = "nothing"\n{tools}\n{arms or "[arms.a]"}\n[arms.b]\n'
        f"[[benchmarks]]\n{benchmark}\n[plan]\nblocks = 8\nseed = 1\n"
    )
    return path


def asked(path: Path) -> Program:
    study = load_study(path)
    one = study.benchmarks[0]
    return program(study.arms[0], one, benchmark_of(one))


def executable(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\necho here\n")
    path.chmod(0o755)
    return path


# --- path ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_relative_path_is_from_the_study_whatever_directory_one_is_in(tmp_path: Path) -> None:
    """The check before the launch and the launch look at the same place."""
    own = executable(tmp_path / "there" / "bin" / "osu_bw")
    (tmp_path / "here").mkdir()
    study = write(tmp_path / "there", 'name = "osu_bw"\npath = "./bin/osu_bw"')
    assert asked(study).argv[0] == str(own)
    done = paribus("run", "../there/study.toml", "--out", "out", cwd=tmp_path / "here")
    assert "no executable file" not in done.stderr
    assert "(logs/" in done.stdout, "the program was launched, and printed no table"
    own.unlink()
    done = paribus("run", "../there/study.toml", "--out", "out2", cwd=tmp_path / "here")
    assert done.returncode == 2
    assert f"no executable file {own}" in done.stderr


def test_a_name_without_a_slash_is_looked_up_on_the_path(tmp_path: Path) -> None:
    argv = asked(write(tmp_path, 'name = "osu_bw"\npath = "osu_bw_7"')).argv
    assert argv[0] == "osu_bw_7"


def test_a_directory_holds_the_program_by_its_usual_name(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for path in ("bin", "./bin", str(tmp_path / "bin"), f"{tmp_path}/bin/"):
        study = write(tmp_path, f'name = "npb_is"\nclass = "S"\npath = "{path}"')
        assert asked(study).argv == (f"{tmp_path}/bin/is.S.2",)
    netperf = asked(write(tmp_path, 'name = "netperf"\npath = "bin"'))
    assert (netperf.argv[0], netperf.server[0]) == (
        f"{tmp_path}/bin/netperf",
        f"{tmp_path}/bin/netserver",
    )
    image = asked(write(tmp_path, 'name = "npb_is"\npath = "/in/an/image/"'))
    assert image.argv == ("/in/an/image/is.A.2",)


@pytest.mark.parametrize(
    ("pairs", "all_ranks"),
    [
        ("c/mpi/pt2pt/standard", "c/mpi/collective/blocking"),
        ("libexec/osu-micro-benchmarks/mpi/pt2pt", "libexec/osu-micro-benchmarks/mpi/collective"),
    ],
    ids=["built", "installed"],
)
def test_a_suite_is_named_once(tmp_path: Path, pairs: str, all_ranks: str) -> None:
    """OSU 7.4 has a folder for each kind of benchmark, where it is built and where installed."""
    bw = executable(tmp_path / "osu" / pairs / "osu_bw")
    bcast = executable(tmp_path / "osu" / all_ranks / "osu_bcast")
    names = 'name = "osu_bw"\n[[benchmarks]]\nname = "osu_bcast"\n[[benchmarks]]\nname = "npb_cg"'
    study = load_study(write(tmp_path, names, tools='[tools]\nosu = "osu"\nnpb = "/opt/npb/"'))
    argv = [program(study.arms[0], one, benchmark_of(one)).argv[0] for one in study.benchmarks]
    assert argv == [str(bw), str(bcast), "/opt/npb/cg.A.2"]
    own = write(tmp_path, 'name = "osu_bw"\npath = "/usr/bin/x"', tools='[tools]\nosu = "osu"')
    assert asked(own).argv[0] == "/usr/bin/x"


def test_two_programs_of_one_name_in_a_suite_are_refused(tmp_path: Path) -> None:
    executable(tmp_path / "osu" / "openmpi" / "osu_bw")
    executable(tmp_path / "osu" / "mpich" / "osu_bw")
    with pytest.raises(StudyError, match=r"several programs are called osu_bw: .*mpich"):
        load_study(write(tmp_path, 'name = "osu_bw"', tools='[tools]\nosu = "osu"'))


def test_a_suite_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"tools.nbp: unknown key") as caught:
        load_study(write(tmp_path, 'name = "npb_is"', tools='[tools]\nnbp = "/opt"'))
    assert "did you mean 'npb'" in caught.value.fix


def test_a_required_path_may_come_from_tools(tmp_path: Path) -> None:
    study = write(tmp_path, 'name = "pynamic"', tools='[tools]\npynamic = "./built"')
    (tmp_path / "built").mkdir()
    assert f"{tmp_path}/built/pynamic_driver_mpi4py.py" in asked(study).needs


# --- what cannot be launched ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "said", "fix"),
    [
        ('class = "B"', 'is.A.2, which does not fit class = "B"', 'set class = "A"'),
        ("ranks = 4", "is.A.2, which does not fit ranks = 4", "set ranks = 2"),
    ],
)
def test_a_program_whose_name_says_something_else_is_refused(
    tmp_path: Path, more: str, said: str, fix: str
) -> None:
    with pytest.raises(StudyError) as caught:
        load_study(write(tmp_path, f'name = "npb_is"\npath = "/opt/is.A.2"\n{more}'))
    assert said in caught.value.cause
    assert fix in caught.value.fix
    assert caught.value.place == f'{tmp_path}/study.toml: benchmarks[0]: path = "/opt/is.A.2"'


def test_of_npb_the_kernel_must_fit_too_and_x_fits_all_ranks(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match='does not fit name = "npb_cg"') as caught:
        load_study(write(tmp_path, 'name = "npb_cg"\npath = "/opt/is.A.2"'))
    assert 'set name = "npb_is"' in caught.value.fix
    for path in ("/opt/is.A.x", "/opt/my-is", "/opt/is.A.4.intel"):
        load_study(write(tmp_path, f'name = "npb_is"\nranks = 4\npath = "{path}"'))


@pytest.mark.parametrize(
    ("kernel", "ranks", "legal"),
    [("bt", 2, "1, 4, 9, 16 ..."), ("sp", 8, "1, 4, 9, 16 ..."), ("cg", 6, "1, 2, 4, 8 ...")],
)
def test_a_number_of_ranks_with_which_no_npb_starts_is_refused(
    tmp_path: Path, kernel: str, ranks: int, legal: str
) -> None:
    with pytest.raises(StudyError, match=f"npb_{kernel} cannot be started with") as caught:
        load_study(write(tmp_path, f'name = "npb_{kernel}"\nranks = {ranks}'))
    assert caught.value.fix == f"set ranks to one of {legal}"


@pytest.mark.parametrize(("kernel", "ranks"), [("bt", 9), ("sp", 1), ("lu", 6), ("ep", 3)])
def test_other_numbers_are_not(tmp_path: Path, kernel: str, ranks: int) -> None:
    load_study(write(tmp_path, f'name = "npb_{kernel}"\nranks = {ranks}'))


PAIRS = ("latency", "bandwidth", "bibandwidth", "osu_latency", "osu_bw", "osu_get_latency")
SEVERAL = ("message_rate", "allreduce", "osu_mbw_mr", "osu_barrier", "imb_pingpong", "imb_biband")


@pytest.mark.parametrize("name", [*PAIRS, *SEVERAL])
def test_one_rank_is_refused_where_two_talk(tmp_path: Path, name: str) -> None:
    with pytest.raises(StudyError, match=f"{name} cannot be started with 1 rank") as caught:
        load_study(write(tmp_path, f'name = "{name}"\nranks = 1'))
    assert "set ranks = 2" in caught.value.fix
    four = write(tmp_path, f'name = "{name}"\nranks = 4')
    if name in SEVERAL:
        load_study(four)
    else:
        with pytest.raises(StudyError, match="cannot be started with 4 ranks"):
            load_study(four)


def test_all_of_it_is_said_at_once(tmp_path: Path) -> None:
    more = '[[benchmarks]]\nname = "npb_is"\npath = "/opt/is.A.2"\nclass = "B"'
    study = write(tmp_path, f'name = "latency"\nranks = 1\n{more}\n[[benchmarks]]\nname = "osu_bv"')
    with pytest.raises(StudyError) as caught:
        load_study(study)
    assert caught.value.cause.startswith("3 problems\n")


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_can_be_started_as_it_is_by_default(tmp_path: Path, name: str) -> None:
    """Nothing that a study checks early forbids the defaults."""
    benchmark = BENCHMARKS[name]
    needed = any(parameter.required for parameter in benchmark.parameters.values())
    if not needed and name != "command":  # its program is the user's
        load_study(write(tmp_path, f'name = "{name}"'))


# --- arms that switch ----------------------------------------------------------------------------


def test_before_commands_do_not_hide_a_missing_program(tmp_path: Path) -> None:
    arms = '[arms.a]\nbefore = "true"'
    write(tmp_path, f'name = "osu_bw"\npath = "{tmp_path}/bin/osu_bw"', arms=arms)
    executable(tmp_path / "b")
    study = tmp_path / "study.toml"
    study.write_text(study.read_text().replace("[arms.b]", '[arms.b]\nbefore = "true"'))
    dry = paribus("run", "study.toml", "--dry-run", cwd=tmp_path)
    said = " ".join(dry.stdout.split())
    missing = f"osu_bw: no executable file {tmp_path}/bin/osu_bw"
    assert f"a, before its `before` commands: {missing}" in said
    done = paribus("run", "study.toml", "--out", "out", cwd=tmp_path)
    assert done.returncode == 2
    assert f"osu_bw in a, after its `before` commands: no executable file {tmp_path}" in done.stderr
    assert not list((tmp_path / "out" / "logs").glob("0*")), "nothing was launched"


@pytest.mark.slow
def test_a_program_that_before_commands_bring_about_is_found(tmp_path: Path) -> None:
    tool = executable(tmp_path / "osu_bw")
    link = f"ln -sf {tool} {tmp_path}/mounted"
    arms = f'[arms.a]\nbefore = "{link}"'
    study = write(tmp_path, f'name = "osu_bw"\npath = "{tmp_path}/mounted"', arms=arms)
    study.write_text(study.read_text().replace("[arms.b]", f'[arms.b]\nbefore = "{link}"'))
    done = paribus("run", "study.toml", "--out", "out", cwd=tmp_path)
    assert done.returncode == 4, done.stderr
    assert list((tmp_path / "out" / "logs").glob("0*"))


@pytest.mark.slow
def test_a_study_without_missing_programs_is_measured_as_before(tmp_path: Path) -> None:
    study = write_study(tmp_path, arms='[arms.a]\nbefore = "true"\n[arms.b]\nbefore = "true"\n')
    done = paribus("run", study, "--out", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["fio", "ior", "mdtest", "storage"])
def test_files_go_to_the_directory_of_the_launch_by_default(name: str, tmp_path: Path) -> None:
    """Not to that of the study, which is the default of a user's own command only."""
    (one,) = load_study(write(tmp_path, f'name = "{name}"')).benchmarks
    assert one.parameters["directory"] is None
    (one,) = load_study(write(tmp_path, f'name = "{name}"\ndirectory = "here"')).benchmarks
    assert one.parameters["directory"] == str(tmp_path / "here")
