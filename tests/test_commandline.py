"""A command is split as a shell splits it, or refused with what a shell then takes."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.__main__ import main
from paribus.benchmarks.parameters import argv
from paribus.bmc.profiles import read_profiles
from paribus.border import fields
from paribus.core import NotSplitError, UserError, split
from paribus.studyfile.load import load_study
from paribus.studyfile.written import split as split_option
from paribus.web.making import study_text
from studies import write_study

LINES = st.text("ab /-=\"'\\$~#*?[]{}!\n|;&<>()`", max_size=12)
DROP = "echo 3 > /proc/sys/vm/drop_caches"
SHELL = "\"sh -c 'echo 3 > /proc/sys/vm/drop_caches'\""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with files for patterns to match."""
    folder = tmp_path_factory.mktemp("words")
    for name in ("a", "b", "ab", "bb"):
        (folder / name).touch()
    return folder


def by_shell(line: str, place: Path) -> list[str]:
    """Return the words after a program on a line, as a shell makes them."""
    code = f"printf '%s\\0' begin {line}"
    done = subprocess.run(["sh", "-c", code], cwd=place, capture_output=True, check=True)
    return done.stdout.decode().split("\0")[1:-1]


def shell_for(line: str) -> str:
    """Return the command to write instead of a line that needs a shell, else nothing."""
    try:
        split(line)
    except NotSplitError as error:
        return error.shell
    return ""


@given(LINES)
def test_words_are_those_of_a_shell_or_none(place: Path, line: str) -> None:
    try:
        words = split(line)
    except NotSplitError:
        return
    assert by_shell(line.strip(), place) == list(words)


@given(LINES)
def test_what_to_write_instead_is_taken_and_starts_that_shell(place: Path, line: str) -> None:
    if not (shell := shell_for(line)):
        return
    assert split(shell) == ("sh", "-c", line.strip())
    with pytest.raises(ValueError, match="none is started: ") as study:
        fields.command(line)
    written = str(study.value).rpartition("none is started: write ")[2]
    assert fields.command(tomllib.loads(f"before = {written}")["before"])[2] == line.strip()
    with pytest.raises(UserError) as option:
        split_option(line, "--a")
    shown = option.value.fix.rpartition("start a shell yourself: ")[2]
    [name, value] = by_shell(shown, place)
    assert name == "--a"
    assert split_option(value, "--a") == ("sh", "-c", line.strip())


def test_a_command_too_long_to_be_shown_whole_is_not_shown_in_part() -> None:
    with pytest.raises(ValueError, match=r"put it into a script\Z"):
        fields.command("echo " + "x" * fields.LONGEST + " > out")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('bash -c "echo $X"', ("bash", "-c", "echo $X")),
        ('sudo /bin/sh -ec "for i in 1 2; do echo `date` $i; done"', None),
        ('sh -c "echo \\$X"', ()),  # a shell would take the backslash away
        ('sh -x "$X"', ()),
        ('./solver "$X"', ()),
    ],
)
def test_a_shell_that_is_started_gets_its_variables(
    line: str, words: tuple[str, ...] | None
) -> None:
    if words == ():
        with pytest.raises(NotSplitError, match="is for a shell"):
            split(line)
    else:
        assert split(line)[-1] == line.split('"')[1]


@pytest.mark.parametrize("key", ["before", "after", "observe", "build"])
def test_a_study_whose_command_needs_a_shell_is_refused(
    key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the error says to write is written into the study, and then the study is taken."""
    given = f'"{DROP}"'
    study = write_study(tmp_path, arms=f"[arms.a]\n{key} = {given}\n[arms.b]\n", plan="blocks = 8")
    assert main(["run", str(study), "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert f"arms.a.{key} = '{DROP}': cannot be used\n  '>' is for a shell" in said
    assert not (tmp_path / "out").exists()
    shown = said.rpartition(": write ")[2].splitlines()[0]
    assert shown == SHELL
    study.write_text(study.read_text().replace(given, shown))
    if key == "build":
        with pytest.raises(UserError, match="nothing starts what it builds"):
            load_study(study)
    else:
        steps = getattr(load_study(study).arms[0], key)
        assert [one.argv for one in steps] == [("sh", "-c", DROP)]


def test_so_are_commands_on_hosts_and_those_of_a_server(tmp_path: Path) -> None:
    arms = f'[arms.a]\nhosts = "n1"\nbefore = {{ on = "n1", run = "{DROP}" }}\n[arms.b]\n'
    with pytest.raises(UserError, match="is for a shell"):
        load_study(write_study(tmp_path, arms=arms))
    profile = tmp_path / "bmc.toml"
    profile.write_text('[host]\nidle = "a | b"\n[profiles.x]\n')
    with pytest.raises(UserError, match="is for a shell"):
        read_profiles(profile)


def test_a_wrapper_of_a_form_is_a_command_too() -> None:
    form = {
        "factor": "wrapper",
        "arms": [{"name": "a", "value": ""}, {"name": "b", "value": "nice -n 5"}],
        "benchmarks": ["latency"],
        "question": "",
    }
    assert 'wrap = ["nice", "-n", "5"]' in study_text(form)
    form["arms"] = [{"name": "a", "value": ""}, {"name": "b", "value": "nice >out"}]
    with pytest.raises(UserError, match="'>' is for a shell"):
        study_text(form)


def test_a_text_instead_of_a_list_is_answered_with_the_list_that_works() -> None:
    for value, meant in (
        ("./solver -n '4 5'", ["./solver", "-n", "4 5"]),
        ('./solver "a\\\\b"', ["./solver", "a\\b"]),
        ("a | 'b \\c'", ["sh", "-c", "a | 'b \\c'"]),
        ("X=1 ./solver", ["sh", "-c", "X=1 ./solver"]),
        ("./solver 'x", ["./solver", "-n", "4"]),
    ):
        with pytest.raises(ValueError, match="write a list of the program") as refused:
            argv(value)
        shown = str(refused.value).partition("arguments: ")[2]
        assert argv(tomllib.loads(f"argv = {shown}")["argv"]) == meant


@pytest.mark.parametrize("line", ["cd /tmp", "ulimit -n 1000", "module load gcc", ". ./env.sh"])
def test_what_a_shell_runs_in_itself_is_refused(line: str, tmp_path: Path) -> None:
    """As a program it is not there, or changes nothing."""
    with pytest.raises(NotSplitError, match="changes the shell that runs it") as caught:
        split(line)
    assert caught.value.fix.startswith("put it before the program into one script")
    assert ("`mpi` and `env`" in caught.value.fix) == line.startswith("module")
    arms = f'[arms.a]\nbefore = "{line}"\n[arms.b]\n'
    with pytest.raises(UserError, match=f"'{line.split()[0]}' changes the shell"):
        load_study(write_study(tmp_path, arms=arms))
