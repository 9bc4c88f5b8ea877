"""Which slow tests a run tries: few by their cost, and more whose own code has changed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import drawing
import studies
from processes import ran


def test_few_of_the_costly_ones_are_drawn_and_seeds_in_a_row_draw_all() -> None:
    costs = (0.0, 3.9, 4.0, 9.9, 20.0)
    units = {f"{seconds}-{n}": seconds for seconds in costs for n in range(80)}
    now = drawing.this_turn()
    draws = [drawing.drawn(units, now + later) for later in range(40)]
    for drawn in draws:
        assert len(drawn) == 320 / 20 + 80 / 40
        assert sum(unit.startswith("20.0-") for unit in drawn) == 80 / 40
    assert drawing.drawn(units, now + 1) == draws[1]
    most = float("inf")
    for least, share in drawing.SHARES:  # what a class has is tried by so many runs in a row
        tried = set().union(*draws[-share:])
        assert {unit for unit in units if least <= units[unit] < most} <= tried
        most = least
    assert drawing.drawn({"the only one": 99.0}, 1) == {"the only one"}


def test_of_what_changed_as_many_are_tried_as_time_allows() -> None:
    most = drawing.OWN_S
    own = {"a": 0.6 * most, "b": 0.38 * most, "c": 0.02 * most, "d": 0.8 * most}
    assert drawing.own(own) == {"a", "b", "c"}
    assert drawing.own({"a": drawing.OWN_S + 1}) == drawing.own({}) == set()


def test_costs_of_what_was_not_tried_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing, "COSTS", tmp_path / "costs.txt")

    def kept(seconds: dict[str, list[float]], slow: str = "") -> dict[str, float]:
        drawing.costs.cache_clear()
        drawing.write_costs(seconds, {slow})
        drawing.costs.cache_clear()
        return dict(drawing.costs())

    tried = {
        "test_b.py::test_b": [0.1],
        "test_c.py::test_c": [0.6],
        "test_a.py::test_a": [2.0, 4.0],
    }
    assert list(drawing.unknown(tried).items()) == [
        ("test_a.py::test_a", 3.0),
        ("test_c.py::test_c", 0.6),
    ]
    first = kept({"test_a.py::test_a": [2.0, 4.0], "test_b.py::test_b": [0.1]})
    assert first == {"test_a.py::test_a": 3.0}
    assert drawing.unknown({"test_a.py::test_a": [9.0]}) == {}
    second = kept({"test_c.py::test_c": [9.0], "test_d.py::test_d": [0.2]}, "test_d.py::test_d")
    assert second == first | {"test_c.py::test_c": 9.0, "test_d.py::test_d": 0.2}
    assert kept({"test_a.py::test_a": [0.1]}) == {k: v for k, v in second.items() if "_a" not in k}
    drawing.costs.cache_clear()


@pytest.mark.parametrize(
    ("file", "own"),
    [
        ("tests/test_npb.py", "tests/test_npb.py"),
        ("src/paribus/tools/readers/npb.py", "tests/test_npb.py"),
        ("src/paribus/native/npb/ft.hpp", "tests/test_npb.py"),
        ("src/paribus/native/common/clock.cpp", "tests/test_node_kernels.py"),
        ("src/paribus/audit/classes.toml", "tests/test_classes.py"),
        ("src/paribus/cli/pack.py", "tests/test_pack.py"),
        ("src/paribus/bmc/switch.py", "tests/test_bmc_faults.py"),
        ("tests/forked.py", "tests/test_pack.py"),
        ("tools/validation/noise.py", "tests/test_stats_betting.py"),
    ],
)
def test_a_file_that_changed_is_that_of_the_tests_which_name_it(file: str, own: str) -> None:
    assert own in drawing.concerned([file])


def test_what_most_tests_name_is_the_own_of_none() -> None:
    general = ["src/paribus/core/__init__.py", "tests/studies.py", "docs/audit.md"]
    assert drawing.concerned(general) == {}
    assert len(drawing.concerned(["src/paribus/core/__init__.py"], most=1000)) > 50


def test_files_differ_from_where_the_branch_began_or_from_the_commit_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*words: str) -> str:
        who = ("-c", "user.name=n", "-c", "user.email=e")
        argv = ["git", *who, *words]
        return ran(argv, cwd=tmp_path, code=0).stdout

    def committed(name: str) -> str:
        (tmp_path / name).write_text(name)
        git("add", "-A")
        git("commit", "-qm", name)
        return git("rev-parse", "HEAD").strip()[:12]

    monkeypatch.setattr(drawing, "ROOT", tmp_path)
    assert drawing.changed() == ("", [])
    git("init", "-q", "-b", "main")
    first, second = committed("a"), committed("b")
    assert drawing.changed() == (first, ["b"])
    git("checkout", "-qb", "branch")
    committed("c")
    committed("d")
    (tmp_path / "e").touch()
    assert drawing.changed() == (second, ["c", "d", "e"])
    assert drawing.changed("HEAD~") == ("HEAD~", ["d", "e"])


def test_a_call_in_a_fork_is_as_one_of_a_user(tmp_path: Path) -> None:
    """And leaves nothing to the next: neither variables nor limits nor its directory."""
    for words in (("nonsense",), ("report", "nowhere"), ("list",)):
        done = [one(*words, cwd=tmp_path) for one in (studies.paribus, studies.started)]
        assert len({(one.returncode, one.stdout, one.stderr) for one in done}) == 1, words
    assert studies.paribus("--version", cwd=tmp_path, memory=64 << 20).returncode == 0
    study = studies.write_study(tmp_path, script="echo $HERE")
    assert studies.paribus("run", study, "--dry-run", cwd=tmp_path, HERE="7").returncode == 0
    fails = studies.paribus("run", study, "--dry-run", cwd=tmp_path, TMPDIR=str(tmp_path))
    assert fails.returncode == 4
    with pytest.raises(subprocess.TimeoutExpired):
        studies.paribus("run", studies.write_study(tmp_path), cwd=tmp_path, timeout_s=0.05)
