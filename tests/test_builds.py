"""Programs that arms build for themselves: each in its own copy, once for a study, and hashed."""

from __future__ import annotations

import json
import math
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats as scipy_stats

from paribus.core import UserError
from paribus.launch import building
from paribus.launch.ready import built
from paribus.stats.sessions import analysed
from paribus.store import Store
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
    done = paribus("run", study, "--out", "out", cwd=tmp_path, code=0)
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
    again = paribus("run", study, "--out", "out", "--resume", cwd=tmp_path, code=0)
    assert "preparing" not in again.stderr
    (place / "b" / "figure").write_text("3.0")
    other = paribus("run", study, "--out", "out", "--resume", cwd=tmp_path)
    assert other.returncode != 0
    assert "the build of b was" in other.stderr
    # A new study builds anew.
    paribus("run", study, "--out", "out", "--replace", cwd=tmp_path, code=0)
    assert not (place / "b" / "result.txt").exists()


@needs_make
def test_an_audit_and_a_dry_run_leave_no_build(tmp_path: Path) -> None:
    study = write(tmp_path, made("2.0"), made("1.0"))
    there = sorted(one.name for one in tmp_path.iterdir())
    for words in (("audit", study), ("run", study, "--dry-run")):
        temporary = tmp_path / "tmp"
        temporary.mkdir()
        paribus(*words, cwd=tmp_path, TMPDIR=str(temporary), code=0)
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
    done = paribus("run", write(tmp_path, a, b), "--out", "out", cwd=tmp_path, code=2)
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
        built(study, tmp_path / "out.build", lambda _: None, again=False),
    ):
        pass
    assert refused.value.place.endswith("arms.a.source")
    (tmp_path / "file.build").touch()
    with (
        pytest.raises(UserError, match="no directory of builds can be made"),
        built(study, tmp_path / "file.build", lambda _: None, again=False),
    ):
        pass


@needs_make
def test_a_build_that_was_not_finished_is_made_anew(tmp_path: Path) -> None:
    """As after a kill in the middle of it, and after a command that failed."""
    path, place = write(tmp_path, made("1.0"), made("2.0")), tmp_path / "out.build"

    def digest(*, again: bool) -> list[str]:
        with built(load_study(path), place, lambda _: None, again=again) as study:
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
        built(study, place, lambda _: None, again=False),
    ):
        pass
    assert (place / "mine").exists()
    monkeypatch.setattr(building, "MOST_FILES", 1)
    with (
        pytest.raises(UserError, match="than 1 files") as refused,
        built(study, tmp_path / "other.build", lambda _: None, again=False),
    ):
        pass
    assert 'source = "src"' in refused.value.fix


# --- another build for each block ----------------------------------------------------------------

TIMER = r"""
#include <stdio.h>
#include <time.h>
/* A program that its layout costs up to 5 %: the shortest of nine waits. */
int main(void) {
    double best = 1e9, wait = 3e6 * (1 + 0.05 * (SEED % 1000) / 1000) * COST;
    for (int i = 0; i < 9; i++) {
        struct timespec a, b, nap = {0, (long)wait};
        clock_gettime(CLOCK_MONOTONIC, &a);
        nanosleep(&nap, NULL);
        clock_gettime(CLOCK_MONOTONIC, &b);
        double took = (b.tv_sec - a.tv_sec) + 1e-9 * (b.tv_nsec - a.tv_nsec);
        if (took < best) best = took;
    }
    printf("took %.7f s\nDONE\n", best);
    return 0;
}
"""
needs_cc = pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")


def several(folder: Path, plan: str, *, seeds: tuple[object, object], cost: float = 1.0) -> Path:
    """Write a study of two arms whose builds take `seeds`; the second costs so much more."""
    a, b = (
        f'build = "cc -DSEED={seed} -DCOST={much} tool.c -o tool"\nsource = "src"\n'
        for seed, much in zip(seeds, (1.0, cost), strict=True)
    )
    path = write(folder, a, b)
    (folder / "src" / "tool.c").write_text(TIMER)
    path.write_text(path.read_text().replace("blocks = 8\nseed = 1\n", plan))
    return path


def verdict_of(folder: Path, path: Path, out: str = "out") -> dict[str, Any]:
    paribus("run", path, "--out", out, cwd=folder, code=0)
    return dict(json.loads((folder / out / "verdict.json").read_text()))


@pytest.mark.slow
@needs_cc
def test_one_build_shows_a_difference_that_is_its_layout_and_several_show_none(
    tmp_path: Path,
) -> None:
    """The arms are alike; a layout costs 0 to 5 %. Seed 999: 5 % of it, seed 0: none."""
    lucky = several(tmp_path, "blocks = 12\nseed = 21\n", seeds=(0, 999))
    (head,) = verdict_of(tmp_path, lucky, "one")["headlines"]
    assert head["verdict"]["word"] == "slower"
    assert head["comparison"]["ratio"] == pytest.approx(1.05, abs=0.01)
    path = several(tmp_path, "builds = 18\nlaunches = 2\nseed = 21\n", seeds=("{seed}", "{seed}"))
    verdict = verdict_of(tmp_path, path)
    (head,) = verdict["headlines"]
    assert head["verdict"]["word"] == "equivalent"
    (notice,) = (one for one in verdict["notices"] if one["name"] == "builds")
    assert notice["figures"]["share"] > 0.5
    assert 0.005 < notice["figures"]["sd_build"] < 0.03
    shown = paribus("report", "out", cwd=tmp_path).stdout
    blocks = head["comparison"]["blocks"]
    assert f"{4 * blocks} launches in {blocks} builds of each arm" in " ".join(shown.split()[:40])


@pytest.mark.slow
@needs_cc
def test_a_difference_that_is_not_the_layout_s_is_found_over_builds(tmp_path: Path) -> None:
    plan = "builds = 18\nlaunches = 2\nseed = 21\n"
    path = several(tmp_path, plan, seeds=("{seed}", "{seed}"), cost=1.1)
    (head,) = verdict_of(tmp_path, path)["headlines"]
    assert head["verdict"]["word"] == "slower"
    assert head["comparison"]["low"] < 1.1 < head["comparison"]["high"]


@pytest.mark.slow
@needs_cc
def test_fewer_than_eight_builds_say_what_follows_the_build_and_no_verdict(tmp_path: Path) -> None:
    plan = "builds = 4\nlaunches = 3\nseed = 21\n"
    path = several(tmp_path, plan, seeds=("{seed}", "{seed}"), cost=1.5)
    verdict = verdict_of(tmp_path, path)
    (head,) = verdict["headlines"]
    assert (head["verdict"]["word"], head["comparison"]["low"]) == ("undecided", None)
    (notice,) = (one for one in verdict["notices"] if one["name"] == "builds")
    assert "A verdict on the arms takes 8 builds of each" in notice["text"]
    assert notice["figures"]["share"] > 0.5
    # Each launch was of the build of its block, whose number is a fact and is in its log.
    stored = Store(tmp_path / "out")
    with stored:
        launches = list(stored.launches())
    seen = {(one.launch.arm, one.launch.block): one.outcome for one in launches}
    assert len({one.facts["build.seed"] for one in seen.values()}) == 8
    for (arm, block), outcome in seen.items():
        assert outcome.argv[-1].endswith(f"out.build/{arm}/{block:03}/tool")
        log = tmp_path / "out.build" / arm / f"{block:03}.log"
        assert f"-DSEED={outcome.facts['build.seed']} " in log.read_text()
    # A study that is resumed takes these builds; another one of the same seed makes them again.
    made = (tmp_path / "out.build" / "b" / "004.sha256").read_text()
    again = paribus("run", path, "--out", "out", "--resume", cwd=tmp_path)
    assert (again.returncode, "preparing" in again.stderr) == (0, False), again.stderr
    (tmp_path / "out.build" / "b" / "004" / "tool").write_text("other")
    other = paribus("run", path, "--out", "out", "--resume", cwd=tmp_path)
    assert "the build of b was" in other.stderr
    verdict_of(tmp_path, path, "new")
    assert (tmp_path / "new.build" / "b" / "004.sha256").read_text() == made


@needs_cc
def test_builds_whose_seed_is_drawn_are_those_of_the_plan_when_resumed(tmp_path: Path) -> None:
    path = several(tmp_path, "builds = 2\nlaunches = 1\n", seeds=("{seed}", "{seed}"))
    verdict_of(tmp_path, path)
    shutil.rmtree(tmp_path / "out.build")
    paribus("run", path, "--out", "out", "--resume", cwd=tmp_path, code=0)


@pytest.mark.parametrize(
    ("plan", "seeds", "said"),
    [
        ("blocks = 8\n", ("{seed}", 1), "is for blocks with builds of their own"),
        ("builds = 8\n", ("{seed}", 1), "all its builds would have one layout"),
        ("builds = 8\nblocks = 8\n", ("{seed}", "{seed}"), "is what `builds` says"),
        ("builds = 8\nunit = 'session'\n", ("{seed}", "{seed}"), "is what `builds` says"),
        ("builds = 1\n", ("{seed}", "{seed}"), "from 2 to 100"),
        ("builds = 8\ndesign = 'few'\n", ("{seed}", "{seed}"), "here builds count"),
        ("builds = 8\nlayout = 'duet'\n", ("{seed}", "{seed}"), "plan.layout"),
        ("builds = 8\nmonitor = true\n", ("{seed}", "{seed}"), "remove"),
    ],
)
def test_builds_that_a_plan_cannot_have_are_refused(
    tmp_path: Path, plan: str, seeds: tuple[object, object], said: str
) -> None:
    with pytest.raises(UserError) as refused:
        load_study(several(tmp_path, plan, seeds=seeds))
    assert said in str(refused.value)


def test_a_benchmark_that_no_arm_builds_is_refused_beside_builds(tmp_path: Path) -> None:
    path = several(tmp_path, "builds = 8\n", seeds=("{seed}", "{seed}"))
    path.write_text(path.read_text() + '[[benchmarks]]\nname = "ep"\n')
    with pytest.raises(UserError, match="a does not build its program"):
        load_study(path)


@needs_make
def test_builds_that_are_all_equal_are_refused(tmp_path: Path) -> None:
    build = "build = \"sh -c 'make FIGURE=1; : {seed}'\"\nsource = 'src'\n"
    path = write(tmp_path, build, build)
    path.write_text(path.read_text().replace("blocks = 8", "builds = 2"))
    done = paribus("run", path, "--out", "out", cwd=tmp_path)
    assert "all 2 builds of it are equal, byte by byte" in done.stderr
    assert not (tmp_path / "out").exists()


def test_an_analysis_of_variance_shares_scatter_between_builds_and_launches() -> None:
    """Fisher's example of paired values: against scipy's F, and a build that is far off."""
    rng = np.random.default_rng(1)
    groups = rng.normal(0, 1, (6, 1)) + rng.normal(0, 0.5, (6, 5))
    between, within = analysed([groups.tolist()])
    f = scipy_stats.f_oneway(*groups).statistic
    assert f == pytest.approx(1 + 5 * between**2 / within**2)
    assert within == pytest.approx(math.sqrt(groups.var(axis=1, ddof=1).mean()))
    one_off = [[[0.0, 0.01]] * 3 + [[0.5, 0.51]], [[0.0, 0.01]] * 4]
    between, within = analysed(one_off)
    assert between**2 / (between**2 + within**2) > 0.99
    assert all(math.isnan(one) for one in analysed([[[1.0]], [[2.0]]]))
