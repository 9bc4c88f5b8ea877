"""Arms whose `before` names a PCIe topology: refusals, a failed switch, the shipped study."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from emulated import listening
from paribus.bmc.emulator.hardware import Hardware
from paribus.bmc.emulator.setup import profile_text
from paribus.core import Study, StudyError, UserError
from paribus.judge.conclude import judged
from paribus.report.html import Figures, body
from paribus.studyfile.load import load_study
from paribus.studyfile.shipping import shipped_studies
from paribus.studyfile.switches import server_tree
from studies import paribus
from study_directories import write_directory

TOPOLOGY = 'topology = "cascade", through = "bmc.toml", host = "bmc/host"'
PERSON = """
[[profiles.cascade.steps]]
name = "cable"
do   = "person"
ask  = "Move the cable"
undo = "Move it back"
"""


def study_text(before: str, more: str = "", *, factor: str = "pcie_topology") -> str:
    return (
        f'question = "?"\nfactor = "{factor}"\n'
        f"[arms.a]\n[arms.b]\nbefore = {{ {before} }}\n{more}\n"
        '[[benchmarks]]\nname = "command"\nargv = ["true"]\n[plan]\nunit = "session"\n'
    )


def loaded(folder: Path, text: str) -> Study:
    if not (folder / "bmc.toml").exists():
        (folder / "bmc.toml").write_text(profile_text("127.0.0.1:1", "actions"))
    (folder / "study.toml").write_text(text)
    return load_study(folder / "study.toml")


def test_a_topology_becomes_a_switch_its_observation_and_its_level(tmp_path: Path) -> None:
    arm = loaded(tmp_path, study_text(TOPOLOGY)).arms[1]
    (step,) = arm.before
    host = str(tmp_path / "bmc/host")
    assert step.argv[:5] == ("paribus", "topology", "switch", host, "cascade")
    assert step.limit_s > 600
    assert arm.observe[0].argv == ("paribus", "topology", "show", host, "--shape")
    assert arm.level == "Cascade"


def test_the_report_draws_the_tree_beside_the_arms_that_have_it(tmp_path: Path) -> None:
    (arm,) = loaded(tmp_path, study_text(TOPOLOGY)).arms[1:]
    Hardware(tmp_path / "bmc/host")
    fact = server_tree(arm)
    text = str(fact["pci.tree"])
    assert "GPU-0000" not in text  # the keys of devices name one machine
    named = {"a": fact, "b": fact, "c": {"pci.tree": "<script>"}}
    directory = write_directory(tmp_path / "s", {"a": 1.0, "b": 1.0, "c": 1.0}, facts=named)
    page = body(judged(directory), Figures())
    drawn = re.findall(
        r"<figcaption>(PCIe tree of .*?)</figcaption><svg.*?<title>(\w+)", page, re.S
    )
    assert drawn == [("PCIe tree of a, b", "Balance")]
    assert "pci.tree" not in page
    assert server_tree(loaded(tmp_path, study_text(TOPOLOGY)).arms[0]) == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (study_text(TOPOLOGY.replace("cascade", "ring")), "no profile 'ring'"),
        (study_text(TOPOLOGY.replace("bmc.toml", "other.toml")), "No such file"),
        (study_text(TOPOLOGY.partition(", host")[0]), "not one host by name"),
        (study_text(TOPOLOGY, 'observe = "true"'), "is not needed beside"),
        (study_text(TOPOLOGY, factor="env"), "does not explain the facts of PCIe"),
        (study_text(TOPOLOGY).replace('"session"', '"launch"'), "before every launch"),
    ],
)
def test_what_cannot_be_switched_is_refused_when_the_study_is_loaded(
    tmp_path: Path, text: str, said: str
) -> None:
    with pytest.raises(UserError, match=re.escape(said)):
        loaded(tmp_path, text)


def test_a_step_that_asks_a_person_is_refused(tmp_path: Path) -> None:
    text = profile_text("127.0.0.1:1", "actions").partition("[profiles.cascade]")[0]
    profile = f'[profiles.cascade]\nshape = "Cascade"\n{PERSON}'
    (tmp_path / "bmc.toml").write_text(text + profile)
    with pytest.raises(StudyError, match="a study asks nobody"):
        loaded(tmp_path, study_text(TOPOLOGY))


@pytest.fixture
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.mark.slow
@pytest.mark.usefixtures("_own_state")
def test_a_dry_run_shows_every_request_and_a_failed_switch_stops_the_study(tmp_path: Path) -> None:
    """The BMC refuses the third write of the switch, and all of its way back."""
    with listening(tmp_path / "bmc", faults=dict.fromkeys(range(3, 400), "error")) as (bmc, _):
        text = study_text(TOPOLOGY.replace('"bmc.toml"', '"bmc/bmc.toml"'))
        (tmp_path / "study.toml").write_text(text)
        dry = paribus("run", "study.toml", "--dry-run", cwd=tmp_path)
        assert "Balance is to become Cascade" in dry.stdout, dry.stderr
        assert dry.stdout.count("POST ") == 20
        assert bmc.faults.writes == 0
        done = paribus("run", "study.toml", "--out", "out", cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert "arms.b.before: paribus topology switch" in done.stderr
    assert "--through" in done.stderr
    assert "--continue`; then continue with --resume" in " ".join(done.stderr.split())


@pytest.mark.long
@pytest.mark.usefixtures("_own_state")
def test_the_study_that_ships_distinguishes_the_topologies(tmp_path: Path) -> None:
    """Balance against Cascade, and two of its benchmarks: one for each direction."""
    assert paribus("new", "pcie-topology", cwd=tmp_path).returncode == 0
    path = tmp_path / "pcie-topology.toml"
    text = path.read_text()
    assert text == shipped_studies()["pcie-topology"].read_text()
    text = re.sub(r"\[arms.common\]\n.*\n", "", text)
    path.write_text(re.sub(r'.*"predicted ring".*\n', "", text))
    with listening(tmp_path / "bmc", boot_s=0.1) as (bmc, _):
        done = paribus("run", "pcie-topology.toml", "--out", "out", cwd=tmp_path)
        assert bmc.faults.writes > 8 * 10
    assert done.returncode == 0, done.stderr + done.stdout
    table = json.loads((tmp_path / "out" / "verdict.json").read_text())
    words = {one["benchmark"]: one["verdict"]["word"] for one in table["headlines"]}
    assert words == {"predicted p2p": "faster", "predicted input": "slower"}
    levels = [one for one in table["differences"] if one["key"] == "switch.level"]
    assert [one["kind"] for one in levels] == ["factor"]
    page = (tmp_path / "out" / "report.html").read_text()
    assert "predicted, not measured" in page
    assert re.findall(r"<title>(\w+) \(.*?switch", page) == ["Balance", "Cascade"]
