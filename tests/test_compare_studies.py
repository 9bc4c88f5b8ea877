"""`paribus compare` of study directories: each effect, its change, and what changed in between."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from paribus.__main__ import main
from study_directories import write_directory
from test_report_export import faults

TWO = {"host": 1.0, "bridged": 1.19}
LESS = {"host": 1.0, "bridged": 1.05}
SCHEMA = json.loads((Path(__file__).parent.parent / "docs" / "change-schema.json").read_text())


def compared(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, str, str]:
    """Return exit code, stdout and stderr of `paribus compare WORDS`."""
    code = main(["compare", *map(str, words)])
    said = capsys.readouterr()
    return code, said.out, said.err


def as_json(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, dict[str, Any]]:
    code, text, _ = compared(capsys, *words, "--json")
    found: dict[str, Any] = json.loads(text)
    assert faults(found, SCHEMA) == []
    return code, found


FILE = """
question = "Which?"
factor = "command"
[arms.a]
argv = ["./x"]
[arms.b]
argv = ["./y"]
[[benchmarks]]
name = "command"
[plan]
blocks = 8
"""


@pytest.mark.parametrize("verb", ["ab", "run"])
def test_the_same_commands_in_two_directories_are_the_same_question(
    tmp_path: Path,
    verb: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where they lie belongs to the platform; what a study measures is not another thing there."""
    words = ["ab", "--a", "./x", "--b", "./y", "--blocks", "8", "--out", "out", "--brief"]
    if verb == "run":
        words = ["run", "study.toml", "--out", "out", "--brief"]
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        Path("study.toml").write_text(FILE)
        for program in ("x", "y"):
            Path(program).write_text("#!/bin/sh\nsleep 0.01\n")
            Path(program).chmod(0o755)
        assert main(words) == 0
    capsys.readouterr()
    code, found = as_json(capsys, tmp_path / "old" / "out", tmp_path / "new" / "out")
    assert code == 0
    (step,) = found["steps"]
    assert [one["benchmark"] for one in step["headlines"]] == ["command"]
    assert ("benchmark.command.directory", str(tmp_path / "new")) in [
        (one["key"], one["after"]) for one in step["platform"]
    ]
    assert step["not_compared"] == []


def test_two_studies_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = write_directory(tmp_path / "old", TWO)
    facts = {arm: {"os.release": "6.6"} for arm in TWO}
    new = write_directory(tmp_path / "new", LESS, seed=2, started=1.8e9, facts=facts)
    code, found = as_json(capsys, old, new)
    (step,) = found["steps"]
    (head,) = step["headlines"]
    assert code == 0
    assert found["sentence"].startswith("From old to new: bridged improved against host in latency")
    assert [one["name"] for one in found["studies"]] == ["old", "new"]
    assert head["before"]["comparison"]["ratio"] == pytest.approx(1.19, rel=0.01)
    assert head["after"]["comparison"]["ratio"] == pytest.approx(1.05, rel=0.01)
    change = head["comparison"]
    assert change["low"] < 1.05 / 1.19 < change["high"]
    assert change["ratio"] == pytest.approx(
        head["after"]["comparison"]["ratio"] / head["before"]["comparison"]["ratio"]
    )
    assert head["verdict"]["word"] == "improved"
    assert [one["case"] for one in step["cases"]] == [{"bytes": 8}, {"bytes": 65536}]
    assert {one["verdict"]["word"] for one in step["cases"]} == {"improved"}
    assert [(d["key"], d["arm"], d["after"]) for d in step["platform"]] == [
        ("os.release", "bridged", "6.6"),
        ("os.release", "host", "6.6"),
    ]
    _, text, _ = compared(capsys, old, new)
    assert "os.release (bridged, host): 6.1 -> 6.6" in text
    assert "improved" in text
    assert "new: slower, 1.0" in text
    _, text, _ = compared(capsys, new, old)
    assert "bridged worsened against host in latency (1.13" in text
    assert "Warning: old was measured before the first study" in text


def test_one_machine_against_itself_is_quiet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = write_directory(tmp_path / "one", TWO)
    two = write_directory(
        tmp_path / "two", TWO, seed=2, started=1.8e9, facts={"host": {"load.running": 40}}
    )
    code, found = as_json(capsys, one, two)
    assert code == 0
    assert found["steps"][0]["platform"] == []
    assert found["steps"][0]["equal_facts"] == 3
    assert found["sentence"] == "From one to two: bridged is unchanged against host in latency."


def test_what_study_files_say_otherwise_is_a_change_of_the_platform(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    env = {"bridged": {"OMPI_MCA_btl": "tcp,self", "API_TOKEN": "one"}}
    after = {"bridged": {"OMPI_MCA_btl": "vader,self", "API_TOKEN": "other"}}
    one = write_directory(tmp_path / "one", TWO, env=env)
    two = write_directory(tmp_path / "two", TWO, seed=2, started=1.8e9, env=after)
    _, found = as_json(capsys, one, two)
    reported = {d["key"]: (d["before"], d["after"]) for d in found["steps"][0]["platform"]}
    assert reported == {
        "arm.env.OMPI_MCA_btl": ("tcp,self", "vader,self"),
        "arm.env.API_TOKEN": ("(not shown)", "(not shown), another value"),
    }


def test_several_studies_are_compared_with_the_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [
        write_directory(tmp_path / name, effects, seed=i, blocks=12, started=1.7e9 + 1e6 * i)
        for i, (name, effects) in enumerate((("a", TWO), ("b", LESS), ("c", TWO)))
    ]
    code, found = as_json(capsys, *paths)
    assert code == 0
    words = [step["headlines"][0]["verdict"]["word"] for step in found["steps"]]
    assert words == ["improved", "unchanged"]
    _, pair = as_json(capsys, *paths[:2])
    (wide,), (narrow,) = (s["headlines"] for s in (found["steps"][0], pair["steps"][0]))
    assert wide["comparison"]["low"] < narrow["comparison"]["low"]  # the error is shared


@pytest.mark.parametrize(
    ("settings", "blocks"),
    [({"monitor": True}, 60), ({"unit": "session", "launches": 2}, 12), ({"decides": "cases"}, 12)],
)
def test_every_design_has_a_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], settings: dict[str, Any], blocks: int
) -> None:
    one, two = (
        write_directory(
            tmp_path / name, effects, seed=seed, blocks=blocks, started=1e9 * seed, **settings
        )
        for seed, (name, effects) in enumerate((("one", TWO), ("two", LESS)), start=1)
    )
    code, found = as_json(capsys, one, two)
    verdict = found["steps"][0]["headlines"][0]["verdict"]
    assert (code, verdict["word"]) == (0, "improved")
    assert verdict["final"] is not settings.get("monitor", False)
    assert [one["verdict"]["word"] for one in found["steps"][0]["cases"]] == ["improved"] * 2


def test_a_withheld_verdict_withholds_the_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = write_directory(tmp_path / "old", TWO)
    facts = {"bridged": {"cpu.model": "Xeon"}}
    new = write_directory(tmp_path / "new", LESS, seed=2, started=1.8e9, facts=facts)
    code, found = as_json(capsys, old, new)
    verdict = found["steps"][0]["headlines"][0]["verdict"]
    assert code == 3
    assert (verdict["word"], verdict["because"]) == ("withheld", "new")
    assert verdict["code"] == "unexplained_differences"
    _, text, _ = compared(capsys, old, new)
    assert text.startswith("From old to new: no verdict on the change of bridged in latency.")


def test_a_study_without_data_has_no_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = write_directory(tmp_path / "old", TWO)
    new = write_directory(tmp_path / "new", TWO, seed=2, blocks=0, most=8, started=1.8e9)
    code, found = as_json(capsys, old, new)
    assert code == 4
    assert found["steps"][0]["headlines"][0]["verdict"]["word"] == "no data"
    assert found["steps"][0]["headlines"][0]["comparison"] is None


def test_failures_and_unfinished_studies_have_no_verdict_on_a_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = write_directory(tmp_path / "old", TWO)
    broken = write_directory(tmp_path / "broken", TWO, seed=2, failing="bridged", started=1.8e9)
    begun = write_directory(tmp_path / "begun", TWO, seed=3, blocks=5, started=1.8e9)
    code, found = as_json(capsys, old, broken)
    assert (code, found["steps"][0]["headlines"][0]["verdict"]["word"]) in (
        (3, "withheld"),
        (4, "no data"),
    )
    code, found = as_json(capsys, old, begun)
    verdict = found["steps"][0]["headlines"][0]["verdict"]
    assert (code, verdict["word"], verdict["because"]) == (0, "undecided", "begun")


def test_only_what_both_studies_share_is_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = write_directory(tmp_path / "one", {**TWO, "podman": 1.3}, labels=("latency", "small"))
    two = write_directory(tmp_path / "two", {**TWO, "vm": 1.4}, seed=2, started=1.8e9)
    code, found = as_json(capsys, one, two)
    (step,) = found["steps"]
    assert code == 0
    assert [(h["benchmark"], h["arm"]) for h in step["headlines"]] == [("latency", "bridged")]
    assert [one["text"] for one in step["not_compared"]] == [
        "the arm podman is only in one",
        "the arm vm is only in two",
        "the benchmark small is only in one",
    ]
    _, text, _ = compared(capsys, one, two)
    assert "the arm vm is only in two" in text


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"effects": {"bare": 1.0, "bridged": 1.1}}, "the reference is another: host in one study"),
        ({"effects": {"host": 1.0, "vm": 1.1}}, "the arm vm is only in two"),
        ({"factor": "transport"}, "the factor is another: network in one study, transport in the"),
        ({"sizes": (8, 4096)}, "latency has other parameters: bytes = [8, 65536] in one study"),
    ],
)
def test_studies_of_another_question_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], other: dict[str, Any], why: str
) -> None:
    one = write_directory(tmp_path / "one", TWO)
    two = write_directory(tmp_path / "two", **{"effects": TWO, "seed": 2, **other})
    code, _, said = compared(capsys, one, two)
    assert code == 2
    assert "are not studies of the same question" in said
    assert why in said


def test_a_copy_is_no_second_study(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = write_directory(tmp_path / "one", TWO)
    shutil.copytree(one, tmp_path / "copy")
    code, _, said = compared(capsys, one, tmp_path / "copy")
    assert code == 2
    assert "copy: holds the same launches as one" in said


def test_one_study_is_reported_as_report_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = write_directory(tmp_path / "one", TWO)
    code, text, _ = compared(capsys, one)
    assert code == 0
    assert text.startswith("bridged is slower in latency (1.1")
    assert not (one / "verdict.json").exists()
    assert main(["report", str(one)]) == 0
    assert capsys.readouterr().out.splitlines()[0] == text.splitlines()[0]


def test_a_study_and_logs_are_not_mixed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = write_directory(tmp_path / "one", TWO)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "osu.log").write_text("# OSU MPI Latency Test v7.4\n")
    for paths in ((one, tmp_path / "mine"), (tmp_path / "mine", one)):
        code, _, said = compared(capsys, *paths)
        assert code == 2
        assert "is a study directory, and" in said
        assert f"give its folder {one / 'logs'}" in said
    two = write_directory(tmp_path / "two", TWO, seed=2, started=1.8e9)
    code, _, said = compared(capsys, one, tmp_path / "nothing")
    assert (code, "nothing: does not exist" in said) == (2, True)
    code, _, said = compared(capsys, one, two, one)
    assert (code, "one: is given twice" in said) == (2, True)
    (tmp_path / "packed.zip").write_bytes(b"PK")
    code, _, said = compared(capsys, tmp_path / "packed.zip", two)
    assert (code, f"`paribus pack --open {tmp_path / 'packed.zip'}`" in said) == (2, True)
    code, _, said = compared(capsys, one, two, "--unit", "s")
    assert (code, "--unit: is not possible with study directories" in said) == (2, True)
    code, _, said = compared(capsys, one, two, "--beside", "containers-2021")
    assert (code, "--beside: is not possible" in said) == (2, True)


def test_out_holds_the_page_and_the_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = "<b>&\x1b[31m"
    sizes = (8, 512, 65536)
    old = write_directory(tmp_path / "old", TWO, sizes=sizes)
    facts = {"host": {"os.release": hostile}, "bridged": {"os.release": hostile}}
    new = write_directory(tmp_path / "new", LESS, seed=2, started=1.8e9, facts=facts, sizes=sizes)
    out = tmp_path / "out"
    code, text, _ = compared(capsys, old, new, "--out", out)
    assert code == 0
    assert "\x1b[31m" not in text
    page = (out / "report.html").read_text()
    assert "From old to new: bridged improved against host" in page
    assert "&lt;b&gt;&amp;" in page
    assert "<b>&" not in page
    assert "<script" not in page
    values, effects = re.findall(r'class="strip curves"[^>]* aria-label="([^"]*)"', page)
    assert re.sub(r" (\d\.?\d)\d*", r" \1", effects) == "old: 1.1 to 1.1; new: 1.0 to 1.0"
    assert re.findall(r"(\w+, \w+): [23]\.\d+ to [23]\d\d\.?\d*", values) == [
        *("host, old", "bridged, old", "host, new", "bridged, new")
    ]
    assert "64 KiB" in page
    assert json.loads((out / "change.json").read_text())["schema"] == "paribus.change/1"
