"""Any number of starts at once: one writes the study directory, which is whole; others say so."""

from __future__ import annotations

from pathlib import Path

import pytest

from paribus.__main__ import main
from paribus.plan import read_plan
from paribus.store import Store
from pausing import Ended, Task, ended
from studies import RANDOM, interrupted, paribus, write_study

PLAN = "blocks = 8"
LAUNCHES = 18
RUN = ["run", "study.toml", "--out", "goal"]
REFUSED = ("another `paribus run` is at work in this directory", "already exists")


def whole(directory: Path, launches: int = LAUNCHES) -> None:
    """Check that a study directory has all its launches, and that its verdict can be reported."""
    plan = read_plan(directory)
    with Store(directory) as store:
        assert store.check_plan(plan.sha256)
        assert len(store.counting()) == launches
    assert main(["report", str(directory), "--brief"]) == 0


def says_so(end: Ended) -> bool:
    """Return whether a start ended for another was quicker, with cause and next step alone."""
    *_, cause, fix = end.errors.rstrip("\n").split("\n")
    return (
        end.code == 2
        and cause.startswith("paribus: goal: ")
        and cause.endswith(REFUSED)
        and fix.startswith("  ")
    )


def tasks(folder: Path, numbers: range | tuple[int, ...], starts: list[list[str]]) -> list[Task]:
    """Return a task for each step, in a folder of its own that has a study."""
    made = []
    for number in numbers:
        own = folder / str(number)
        own.mkdir()
        write_study(own, plan=PLAN)
        made.append(Task(str(own), "goal", starts, step=number))
    return made


@pytest.mark.slow("steps")
@pytest.mark.parametrize("steps", [(1, 2, 3, 4), (5, 6, 7, 8, 9), (11, 13, 16, 20, 30)], ids=str)
def test_a_start_between_any_two_steps_of_another(tmp_path: Path, steps: tuple[int, ...]) -> None:
    """Without the lock, both had run a study there: from step 6 on."""
    several = tasks(tmp_path, steps, [RUN, RUN])
    for task, ends in zip(several, ended(several), strict=True):
        assert sorted(end.code for end in ends) == [0, 2], (task.step, ends)
        assert sum(map(says_so, ends)) == 1, (task.step, ends)
        whole(Path(task.folder, "goal"))


def test_where_both_had_won(tmp_path: Path) -> None:
    several = tasks(tmp_path, (7,), [RUN, RUN, RUN])
    (ends,) = ended(several)
    assert sorted(end.code for end in ends) == [0, 2, 2], ends
    assert sum(map(says_so, ends)) == 2
    whole(tmp_path / "7" / "goal")


@pytest.mark.slow("seed")
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("more", [[], ["--replace"]], ids=["new", "replace"])
def test_many_starts_with_pauses_that_are_drawn(tmp_path: Path, seed: int, more: list[str]) -> None:
    write_study(tmp_path, plan=PLAN)
    if more:
        assert paribus(*RUN, cwd=tmp_path).returncode == 0
    (ends,) = ended([Task(str(tmp_path), "goal", [[*RUN, *more]] * 5, seed=seed)])
    assert [end.code for end in ends].count(0) == 1, ends
    assert sum(map(says_so, ends)) == 4, ends
    whole(tmp_path / "goal")


def test_a_study_is_resumed_once(tmp_path: Path) -> None:
    study = write_study(tmp_path, script=f"sleep 0.05; {RANDOM}", plan=PLAN)
    directory = interrupted(study, cwd=tmp_path, out="goal")
    resume = [*RUN, "--resume"]
    (ends,) = ended([Task(str(tmp_path), "goal", [resume] * 3, step=20)])
    assert sorted(end.code for end in ends) == [0, 2, 2], ends
    assert sum(map(says_so, ends)) == 2, ends
    whole(directory)


def test_without_a_directory_each_start_has_its_own(tmp_path: Path) -> None:
    """As a second one that starts later has: its name says which."""
    write_study(tmp_path, plan=PLAN)
    (ends,) = ended([Task(str(tmp_path), "study.study", [["run", "study.toml"]] * 3, seed=1)])
    assert [end.code for end in ends] == [0, 0, 0], ends
    names = ("study.study", "study-2.study", "study-3.study")
    assert {path.name for path in tmp_path.glob("*.study")} == set(names)
    for name in names:
        whole(tmp_path / name)
    assert sum("a study is at work in study" in end.errors for end in ends) == 2, ends


@pytest.mark.parametrize("out", [[], ["--out", "goal"]], ids=["names", "out"])
def test_two_commands_at_once(tmp_path: Path, out: list[str]) -> None:
    words = ["ab", "--a", "true", "--b", "true", "--blocks", "8", *out]
    (ends,) = ended([Task(str(tmp_path), "goal" if out else "ab", [words] * 3, seed=2)])
    files = {path.name for path in tmp_path.iterdir()}
    if out:
        assert sorted(end.code for end in ends) == [0, 2, 2], ends
        assert len(files - {"goal"}) == 1, files
        whole(tmp_path / "goal")
    else:
        assert [end.code for end in ends] == [0, 0, 0], ends
        assert files == {f"ab{n}.{end}" for n in ("", "-2", "-3") for end in ("toml", "study")}
