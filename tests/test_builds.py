"""Programs that arms build for themselves: each in its own copy, once for a study, and hashed."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from paribus.core import UserError
from paribus.launch import builds
from paribus.studyfile.load import load_study
from studies import paribus

STUDY = """
question = "Does the build matter?"
factor = "build"
[arms.a]
{a}
[arms.b]
{b}
[[benchmarks]]
name = "command"
argv = ["{{build}}/tool"]
regex = 'took (.*) s'
unit = "s"
better = "lower"
success = "DONE"
[plan]
blocks = 8
seed = 1
"""
SAYS = """#!/bin/sh
# The program that a build makes of this: it reads its own file, beside it.
echo "took $(cat "${0%/*}/figure") s"
echo DONE
"""


def write(folder: Path, a: str, b: str) -> Path:
    """Write a study of two builds, and the source of both."""
    source = folder / "src"
    source.mkdir(exist_ok=True)
    (source / "tool.sh").write_text(SAYS)
    (source / "Makefile").write_text(
        "tool: tool.sh\n\tinstall tool.sh tool && echo $(FIGURE) >figure\n"
    )
    path = folder / "study.toml"
    path.write_text(STUDY.format(a=a, b=b))
    return path


def made(figure: str) -> str:
    return f'build = "make FIGURE={figure}"\nsource = "src"\n'


needs_make = pytest.mark.skipif(not shutil.which("make"), reason="no make")


@pytest.mark.slow
@needs_make
def test_each_arm_starts_what_it_built_and_a_resumed_study_the_same(tmp_path: Path) -> None:
    study = write(tmp_path, made("2.0"), made("1.0"))
    done = paribus("run", study, "--out", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "b is faster" in done.stdout
    assert "build.command: make FIGURE=2.0 -> make FIGURE=1.0" in done.stdout
    verdict = json.loads((tmp_path / "out" / "verdict.json").read_text())
    assert verdict["cases"][0]["comparison"]["ratio"] == pytest.approx(0.5)
    # The source is as it was, and each build has the log of its commands.
    assert sorted(one.name for one in (tmp_path / "src").iterdir()) == ["Makefile", "tool.sh"]
    place = tmp_path / "out.build"
    assert "$ make FIGURE=1.0\n" in (place / "b.log").read_text()
    # What a launch leaves there is no part of the build, and nothing is built anew.
    (place / "b" / "result.txt").write_text("of a launch")
    again = paribus("run", study, "--out", "out", "--resume", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert "preparing" not in again.stderr
    (place / "b" / "figure").write_text("3.0")
    other = paribus("run", study, "--out", "out", "--resume", cwd=tmp_path)
    assert other.returncode != 0
    assert "the build of b was" in other.stderr
    # A new study builds anew.
    new = paribus("run", study, "--out", "out", "--replace", cwd=tmp_path)
    assert new.returncode == 0, new.stderr
    assert not (place / "b" / "result.txt").exists()


@needs_make
def test_an_audit_and_a_dry_run_leave_no_build(tmp_path: Path) -> None:
    study = write(tmp_path, made("2.0"), made("1.0"))
    there = sorted(one.name for one in tmp_path.iterdir())
    for words in (("audit", study), ("run", study, "--dry-run")):
        temporary = tmp_path / "tmp"
        temporary.mkdir()
        done = paribus(*words, cwd=tmp_path, TMPDIR=str(temporary))
        assert done.returncode == 0, done.stderr
        assert list(temporary.iterdir()) == []
        temporary.rmdir()
    assert sorted(one.name for one in tmp_path.iterdir()) == there


@needs_make
@pytest.mark.parametrize(
    ("a", "b", "said", "fix"),
    [
        (made("1.0"), 'build = "make FIGURE=1.0 -s"\nsource = "src"', "equal, byte by byte", "CC"),
        (made("1.0"), 'build = "make nothing"\nsource = "src"', "`make nothing` failed", "b.log"),
        (made("1.0"), 'build = "no-such-tool"\nsource = "src"', "called no-such-tool", "install"),
        (made("1.0"), 'build = "true"\nsource = "src"', "no executable file", "install it"),
    ],
)
def test_a_build_that_gives_nothing_to_compare_is_refused(
    tmp_path: Path, a: str, b: str, said: str, fix: str
) -> None:
    done = paribus("run", write(tmp_path, a, b), "--out", "out", cwd=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert said in done.stderr
    assert fix in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        (made("1"), "", "arms.b: command uses {build}, and nothing is built"),
        (made("1"), 'source = "src"', "nothing is built of it"),
        (made("1"), 'build = "make"\nsource = "scr"', "no such file or directory"),
        (made("1"), 'build = []\nsource = "src"', "nothing is built of it"),
    ],
)
def test_an_arm_without_its_build_is_refused(tmp_path: Path, a: str, b: str, said: str) -> None:
    with pytest.raises(UserError) as refused:
        load_study(write(tmp_path, a, b))
    assert said in str(refused.value)


def test_a_build_that_nothing_starts_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, made("1"), made("2"))
    path.write_text(path.read_text().replace("{build}/tool", "/bin/echo"))
    with pytest.raises(UserError, match="nothing starts what it builds"):
        load_study(path)


def test_what_cannot_be_copied_or_made_is_named(tmp_path: Path) -> None:
    study = load_study(write(tmp_path, made("1.0"), made("2.0")))
    os.mkfifo(tmp_path / "src" / "pipe")
    with (
        pytest.raises(UserError, match=r"cannot be copied: .*pipe") as refused,
        builds.built(study, tmp_path / "out.build", lambda _: None, again=False),
    ):
        pass
    assert refused.value.place.endswith("arms.a.source")
    (tmp_path / "file.build").touch()
    with (
        pytest.raises(UserError, match="no directory of builds can be made"),
        builds.built(study, tmp_path / "file.build", lambda _: None, again=False),
    ):
        pass


@needs_make
def test_a_build_that_was_not_finished_is_made_anew(tmp_path: Path) -> None:
    """As after a kill in the middle of it, and after a command that failed."""
    path, place = write(tmp_path, made("1.0"), made("2.0")), tmp_path / "out.build"

    def digest(*, again: bool) -> list[str]:
        with builds.built(load_study(path), place, lambda _: None, again=again) as study:
            return [arm.built.digest for arm in study.arms if arm.built]

    whole = digest(again=False)
    (place / "b.sha256").unlink()
    (place / "b" / "tool").unlink()
    assert digest(again=True) == whole
    makefile = tmp_path / "src" / "Makefile"
    right = makefile.read_text()
    makefile.write_text("tool:\n\tfalse\n")
    with pytest.raises(UserError, match="failed"):
        digest(again=False)
    makefile.write_text(right)
    assert digest(again=True) == whole


def test_directories_of_others_and_large_sources_are_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = load_study(write(tmp_path, made("1.0"), made("2.0")))
    place = tmp_path / "out.build"
    place.mkdir()
    (place / "mine").touch()
    with (
        pytest.raises(UserError, match="no directory of builds"),
        builds.built(study, place, lambda _: None, again=False),
    ):
        pass
    assert (place / "mine").exists()
    monkeypatch.setattr(builds, "MOST_FILES", 1)
    with (
        pytest.raises(UserError, match="than 1 files") as refused,
        builds.built(study, tmp_path / "other.build", lambda _: None, again=False),
    ):
        pass
    assert 'source = "src"' in refused.value.fix
