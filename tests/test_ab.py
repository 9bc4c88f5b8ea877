"""`paribus ab`: two commands, a verdict, and the study file that was run."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.core import Step, UserError
from paribus.studyfile.load import load_study
from paribus.studyfile.written import Side, environment, split, study_file
from studies import paribus

WORDS = st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
NAMES = st.text("abcXYZ_", min_size=1, max_size=8)

# --- the words of a command ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("./solver -n 4", ("./solver", "-n", "4")),
        ("  sleep\t0.005 ", ("sleep", "0.005")),
        ("sh -c 'a | b > c; d && $E'", ("sh", "-c", "a | b > c; d && $E")),
        ('grep "a|b" file', ("grep", "a|b", "file")),
        (r"grep a\|b \$X", ("grep", "a|b", "$X")),
        ("grep ^foo$ a~b", ("grep", "^foo$", "a~b")),
        ("x --y=1 'z=2'", ("x", "--y=1", "z=2")),
    ],
)
def test_a_command_is_split_as_a_shell_does(text: str, words: tuple[str, ...]) -> None:
    assert split(text, "--a") == words


@pytest.mark.parametrize(
    ("text", "said", "fix"),
    [
        ("a | b", "'|' is for a shell, and none is started", "--a \"sh -c 'a | b'\""),
        ("a > out", "'>' is for a shell", "--a \"sh -c 'a > out'\""),
        ("a && b", "'&' is for a shell", "sh -c"),
        ("a; b", "';' is for a shell", "sh -c"),
        ("a $HOME/x", "'$H' is for a shell", "sh -c"),
        ('a "$HOME/x"', "'$H' is for a shell", "sh -c"),
        ("a `date`", "'`' is for a shell", "sh -c"),
        ("a $(date)", "'$(' is for a shell", "sh -c"),
        ("cat *.txt", "'*' is for a shell", "sh -c"),
        ("~/bin/a", "'~' is for a shell", "sh -c"),
        ("X=1 ./a", "'X=' is for a shell", "use --a-env X=..., or start a shell yourself"),
        ("a 'b", "quotation mark without its counterpart", "close it"),
        ("", "names no command", "name a program, such as ./solver"),
        ("''", "names no command", "name a program, such as ./solver"),
        ("a\udcff", "is not UTF-8", "script"),
    ],
)
def test_what_only_a_shell_understands_is_refused_with_the_shell_to_write(
    text: str, said: str, fix: str
) -> None:
    with pytest.raises(UserError) as refused:
        split(text, "--a")
    assert said in refused.value.cause
    assert fix in refused.value.fix
    assert refused.value.place.startswith("--a")


def test_the_command_of_the_fix_is_accepted() -> None:
    with pytest.raises(UserError) as refused:
        split("""echo "it's $X" | wc""", "--a")
    (argument,) = split(refused.value.fix.partition("--a ")[2], "--a")
    assert split(argument, "--a") == ("sh", "-c", """echo "it's $X" | wc""")


@pytest.mark.parametrize("text", ["X", "=1", ""])
def test_a_variable_has_a_name_and_a_value(text: str) -> None:
    with pytest.raises(UserError, match="sets no variable"):
        environment([text], "--a-env")
    assert environment(["X=", "Y=1=2"], "--a-env") == {"X": "", "Y": "1=2"}


# --- the study file ------------------------------------------------------------------------------


@given(WORDS, WORDS, st.dictionaries(NAMES, st.text(st.characters(exclude_categories=["Cs"]))))
def test_the_file_says_what_was_given(a: list[str], b: list[str], env: dict[str, str]) -> None:
    sides = Side("a", ("x", *a)), Side("b b", ("y", *b), env)
    table = tomllib.loads(
        study_file(sides, setup=a, benchmark={"regex": "\\d \x7f'\"", "ranks": 2}, plan={})
    )
    assert table["arms"]["a"]["argv"] == ["x", *a]
    assert table["arms"]["b b"]["argv"] == ["y", *b]
    assert table["arms"]["b b"].get("env", {}) == env
    assert table["factor"] == "command"
    assert table.get("explains", []) == (["env."] if env else [])
    assert table["benchmarks"] == [{"name": "command", "regex": "\\d \x7f'\"", "ranks": 2}]
    assert "plan" not in table


@pytest.mark.parametrize(
    ("argv", "env", "factor"),
    [("y", {}, "command"), ("x", {"X": "1"}, "env"), ("x", {}, "nothing")],
)
def test_the_factor_is_what_differs(
    tmp_path: Path, argv: str, env: dict[str, str], factor: str
) -> None:
    sides = Side("a", ("x",)), Side("b", (argv,), env)
    path = tmp_path / "ab.toml"
    path.write_text(study_file(sides, setup=("rm", "-f", "a b"), benchmark={}, plan={}))
    study = load_study(path)
    assert study.factor == factor
    assert study.arms[0].before == study.arms[1].before == (Step(("rm", "-f", "a b")),)


# --- as a user -----------------------------------------------------------------------------------


def test_two_commands_get_a_verdict_and_the_study_that_was_run(tmp_path: Path) -> None:
    words = ("ab", "--a", "sleep 0.01", "--b", "sleep 0.06", "--b-name", "long")
    done = paribus(*words, cwd=tmp_path, code=0)
    assert done.stdout.startswith("long is slower in command (")
    assert "the study is ab.toml" in done.stderr
    assert (tmp_path / "ab.study" / "report.html").exists()
    again = paribus("run", "ab.toml", "--out", "again", "--brief", cwd=tmp_path, code=0)
    assert again.stdout.startswith("long is slower in command (")
    third = paribus(*words, "--brief", "--to", "latex", "--fail-on", "slower", cwd=tmp_path, code=1)
    assert "long" in (tmp_path / "ab-2.study" / "table.tex").read_text()
    assert "the study is ab-2.toml" in third.stderr
    assert (tmp_path / "ab-2.study" / "plan.json").exists()


def test_the_options_arrive_in_the_study(tmp_path: Path) -> None:
    done = paribus(
        *("ab", "--a", "sh -c 'cat prepared; echo rate: $R.$(od -An -N2 -tu2 /dev/urandom)'"),
        *("--b", "sh -c 'cat prepared; echo rate: $R.$(od -An -N2 -tu2 /dev/urandom)'"),
        *("--a-env", "R=3", "--b-env", "R=4", "--setup", "sh -c 'echo READY > prepared'"),
        *("--regex", "rate: ([0-9]+)", "--unit", "Mop/s", "--higher", "--success", "READY"),
        *("--name", "rates", "--out", "here", "--budget", "5 min", "--json"),
        *("--margin", "3 %", "--blocks", "20"),
        cwd=tmp_path,
    )
    table = tomllib.loads((tmp_path / "rates.toml").read_text())
    assert table["factor"] == "env"
    assert table["plan"] == {"margin": "3 %", "blocks": 20, "budget": "5 min"}
    assert done.returncode == 0, done.stdout + done.stderr
    verdict = json.loads(done.stdout)
    (head,) = verdict["headlines"]
    assert head["verdict"]["word"] == "faster"
    assert head["metric"]["unit"] == "Mop/s"
    assert "success not checked" not in {notice["name"] for notice in verdict["notices"]}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--a", "x | y"), "'|' is for a shell"),
        (("--a", "no-such-program"), "no program on the PATH called no-such-program"),
        (("--a", "true", "--unit", "s"), "add --regex"),
        (("--a", "true", "--regex", "(x)"), "add --unit s"),
        (("--a", "true", "--regex", "(x)", "--unit", "kit/s"), "add --higher"),
        (("--a", "true", "--regex", "x", "--unit", "s"), "it has 0 groups"),
        (("--a", "true", "--a-name", "b"), "give them two names"),
        (("--a", "true", "--a-name", "a/b"), "is not a usable name"),
        (("--a", "true", "--name", "a/b"), "is not a usable name"),
        (("--a", "true", "--name", ".."), "is not a usable name"),
        (("--a", "true", "--ranks", "0"), "use a whole number from 1"),
        (("--a", "true", "--a-env", "API_TOKEN=x"), "looks like a secret"),
        (("--a", "true", "--budget", "soon"), "paribus: --budget 'soon': cannot be used"),
        (
            ("--a", "true", "--blocks", "0"),
            "--blocks 0: cannot be used\n  use a whole number from 8",
        ),
    ],
)
def test_a_refused_command_leaves_nothing_behind(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    done = paribus("ab", *words, "--b", "false", cwd=tmp_path, code=2)
    assert said in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("out", [(), ("--out", "here")], ids=["made", "given"])
def test_a_try_that_launched_nothing_leaves_nothing(tmp_path: Path, out: tuple[str, ...]) -> None:
    """Its plan was frozen, and the command before the first launch failed."""
    done = paribus(
        "ab", "--a", "true", "--b", "true", "--setup", "false", *out, cwd=tmp_path, code=2
    )
    assert "nothing was launched, so ab.toml is not kept" in done.stderr
    assert "arms.a.before: false: exit code 1" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_failed_try_makes_room_for_the_next_unless_it_was_edited(tmp_path: Path) -> None:
    words = ("ab", "--a", "false", "--b", "false", "--blocks", "8", "--brief")
    for _ in range(2):
        assert paribus(*words, cwd=tmp_path).returncode == 4
        assert {path.name for path in tmp_path.iterdir()} == {"ab.toml", "ab.study"}
    later = (tmp_path / "ab.study" / "plan.json").stat().st_mtime + 1
    os.utime(tmp_path / "ab.toml", (later, later))
    words = ("ab", "--a", "true", "--b", "true", "--blocks", "8", "--brief")
    for number in (2, 3):
        assert paribus(*words, cwd=tmp_path).returncode == 0
        assert (tmp_path / f"ab-{number}.study" / "verdict.json").exists()
    assert (tmp_path / "ab.toml").exists()
