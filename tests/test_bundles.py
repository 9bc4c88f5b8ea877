"""`paribus run FILE.zip`: a study that was packed is measured again, by somebody else."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from paribus.__main__ import main
from paribus.plan import frozen as plans
from paribus.plan import read_plan
from paribus.store import pack as packs
from paribus.studyfile.load import load_study
from studies import write_study

STUDY = """
question = "Which?"
factor = "env"
[arms.a]
env = {{ X = "1" }}
{hosts}
[arms.b]
env = {{ X = "2" }}
{hosts}
[[benchmarks]]
name = "command"
argv = ["sh", "-c", "echo $X >> {mark}"]
[plan]
blocks = 8
"""


def packed(folder: Path, study: Path) -> Path:
    """Return the file that the plan of a study is packed into: of launches it has none."""
    directory = folder / "theirs"
    directory.mkdir()
    plans.write_plan(plans.freeze(load_study(study), plans.software()), directory)
    packs.pack(directory, ["plan.json"], folder / "theirs.zip")
    return folder / "theirs.zip"


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    study = tmp_path / "author.toml"
    study.write_text(STUDY.format(hosts="", mark=tmp_path / "ran"))
    return packed(tmp_path, study)


def trust(file: Path) -> tuple[str, str]:
    return "--trust", read_plan(file.with_suffix("")).sha256


def test_nothing_of_it_is_executed_before_its_plan_is_trusted(
    theirs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in ((), ("--dry-run",), ("--trust", "0" * 64)):
        out = tmp_path / "out"
        assert main(["run", str(theirs), "--out", str(out), *words]) == 2
        cause, fix = capsys.readouterr().err.splitlines()
        assert "to run it executes its author's commands" in cause
        assert fix.endswith(f"add --trust {trust(theirs)[1][:32]}")
        assert not out.exists()
        assert not (tmp_path / "ran").exists()


def test_the_plan_is_measured_again_and_resumed(
    theirs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    words = ["run", str(theirs), "--out", str(out)]
    assert main([*words, *trust(theirs), "--json"]) in (0, 3)
    old, new = read_plan(theirs.with_suffix("")), read_plan(out)
    assert replace(new.study, path=old.study.path) == old.study
    assert (new.launches, new.looks, new.metrics) == (old.launches, old.looks, old.metrics)
    ran = (tmp_path / "ran").read_text().split()
    of_arm = {"a": "1", "b": "2"}
    assert ran == [of_arm[one.arm] for one in old.launches]  # in the author's order
    capsys.readouterr()
    before = json.loads((out / "verdict.json").read_text())["headlines"]
    assert main([*words, "--resume", "--json"]) in (0, 3)  # trusted once, and nothing is left to do
    assert json.loads((out / "verdict.json").read_text())["headlines"] == before
    assert (tmp_path / "ran").read_text().split() == ran


def test_hosts_are_those_of_who_measures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = tmp_path / "author.toml"
    hosts = 'hosts = "node[1-2]"\nnetwork = "10.0.0.0/8"\nssh = { identity = "/home/ada/key" }'
    study.write_text(
        STUDY.format(hosts=hosts, mark=tmp_path / "ran").replace("argv", "ranks = 2\nargv")
    )
    file = packed(tmp_path, study)
    words = ["run", str(file), "--out", str(tmp_path / "out"), *trust(file), "--dry-run"]
    words.append("--no-pilot")
    assert main(words) == 2
    assert "this study has no hosts of its own" in capsys.readouterr().err
    ours = ["--hosts", "a=rack[7-8]", "--hosts", "b=rack[7-8]"]
    assert main([*words, *ours, "--hosts", "c=rack1"]) == 2
    assert "the arms are a, b" in capsys.readouterr().err

    from paribus.cli.resumed import bundled

    for arm in bundled(file, {"a": "rack[7-8]", "b": "rack[7-8]"}, "").arms:
        assert (arm.hosts.names, arm.hosts.network) == (("rack7", "rack8"), "10.0.0.0/8")
        assert not arm.hosts.ssh.identity


def test_what_is_not_packed_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = packed(tmp_path, write_study(tmp_path, plan="blocks = 8"))
    assert main(["run", str(file), "--out", str(tmp_path / "out"), *trust(file)]) == 2
    said = capsys.readouterr().err
    assert "the benchmark steady is a Python file, which is not packed" in said
    shutil.copy(file, tmp_path / "bad.zip")
    with (tmp_path / "bad.zip").open("r+b") as bad:
        bad.truncate(100)
    assert main(["run", str(tmp_path / "bad.zip")]) == 2
    assert "is not a whole zip file" in capsys.readouterr().err
