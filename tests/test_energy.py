"""Energy of launches: simulated counters of RAPL, which wrap around or must not be read."""

from __future__ import annotations

import json
import random
from pathlib import Path

import jsonschema
import pytest

import judgements
from judgements import printed
from log_folders import FIXTURES
from paribus.core import OF_WORK, Judgement, Launch, ParseError, Settings
from paribus.hosts.guard import energy_of, report_of
from paribus.probes.energy import joules
from paribus.probes.load import during
from paribus.probes.machine import load_facts
from paribus.readers.known import readers
from paribus.report import export, html, plots
from paribus.report.stored import read_report
from stored import Script, Twist, judged
from test_cost import SCHEMA

ZONES = {
    "intel-rapl:0": ("package-0", 5_000_000),
    "intel-rapl:0:0": ("core", 4_000_000),
    "intel-rapl:0:1": ("dram", 1_000_000),
    "intel-rapl:1": ("psys", 9_000_000),
    "intel-rapl-mmio:0": ("package-0", 5_000_000),
}
MOST = 262_143_328_850


def machine(root: Path, **counters: int) -> Path:
    for zone, (name, value) in ZONES.items():
        folder = root / "sys/class/powercap" / zone
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "name").write_text(f"{name}\n")
        (folder / "energy_uj").write_text(f"{counters.get(name, value)}\n")
        (folder / "max_energy_range_uj").write_text(f"{MOST}\n")
    return root


def test_packages_and_memory_are_added_and_nothing_is_counted_twice(tmp_path: Path) -> None:
    before = load_facts(machine(tmp_path))
    later = machine(
        tmp_path, **{"package-0": 7_500_000, "dram": 1_500_000, "core": 9, "psys": 99_000_000}
    )
    assert joules(before, load_facts(later), 1.0) == {"rapl": pytest.approx(3.0)}
    assert not [key for key in during(before, load_facts(later)) if "energy" in key]


def test_a_counter_that_wraps_around_goes_on(tmp_path: Path) -> None:
    before = load_facts(machine(tmp_path, **{"package-0": MOST - 1_000_000}))
    after = load_facts(machine(tmp_path, **{"package-0": 2_000_000}))
    assert joules(before, after, 1.0) == {"rapl": pytest.approx(3.0)}
    no_limit = {key: value for key, value in after.items() if not key.endswith(".most_uj")}
    assert joules(before, no_limit, 1.0) == {}


def test_what_must_not_be_read_is_denied_and_no_energy(tmp_path: Path) -> None:
    """A node's `grep -s` leaves such a counter out; its name is there."""
    machine(tmp_path)
    (tmp_path / "sys/class/powercap/intel-rapl:0/energy_uj").unlink()
    facts = load_facts(tmp_path)
    assert facts["load.energy.intel-rapl:0.uj"] == {"unknown": "denied"}
    assert joules(facts, facts, 1.0) == {}
    assert joules({}, {}, 1.0) == {}


def said(package: int) -> bytes:
    """Return what the guard of a launch says, on a node with one package."""
    base = "/sys/class/powercap/intel-rapl:0"
    loads = [
        f"{base}/name:package-0\n{base}/energy_uj:{value}\n{base}/max_energy_range_uj:{MOST}"
        for value in (1_000_000, package)
    ]
    head = "exit 0\nown 1\nseconds 0 1\nwindow 0 1"
    return f"{head}\nbefore\n{loads[0]}\nafter\n{loads[1]}\nwhole\n".encode()


def test_the_nodes_of_a_launch_are_added_each_machine_once() -> None:
    reports = [report_of(said(2_000_000)), report_of(said(4_000_000)), report_of(said(4_000_000))]
    known = [(node, report) for node, report in enumerate(reports) if report]
    assert energy_of(known, ("x", "y", "y")) == {"rapl": pytest.approx(4.0)}
    silent = report_of(said(4_000_000).replace(b"energy_uj", b"nothing"))
    assert silent is not None
    assert energy_of([*known, (3, silent)], ("x", "y", "y", "z")) == {}
    assert energy_of([], ()) == {}


def study(ratio: float) -> Judgement:
    """Return a study of equal times, whose second arm takes `ratio` of the energy."""

    def twist(launch: Launch, attempt: int) -> Twist:
        draw = random.Random(f"{launch.number}")
        used = 100.0 * draw.gauss(1, 0.02) * (ratio if launch.arm == "bridged" else 1.0)
        return Twist(facts={"launch.energy_j": used, f"{OF_WORK}image": used / 50})

    asked = judgements.study(("barrier",), settings=Settings(seed=3))
    return judged(
        asked,
        Script({"barrier": {"bridged": 1.0}}, twist=twist, scatter={"barrier": 0.02}),
        name="energy",
        facts=judgements.FACTS,
    )


@pytest.mark.parametrize(("ratio", "word"), [(1.3, "more"), (1.0, "equal"), (0.7, "less")])
def test_energy_has_a_verdict_of_its_own_in_every_output(
    tmp_path: Path, ratio: float, word: str
) -> None:
    judgement = study(ratio)
    energy, each = judgement.lenses["energy"]
    assert (each.source, each.per, each.word) == ("nvml", "image", word)
    assert each.joules[0] == pytest.approx(energy.joules[0] / 50)
    assert energy.word == word
    assert energy.low <= ratio <= energy.high
    assert energy.joules[1] / energy.joules[0] == pytest.approx(ratio, rel=0.03)
    table = export.to_json(judgement)
    jsonschema.validate(table, json.loads(SCHEMA.read_text()))
    (tmp_path / "verdict.json").write_text(json.dumps(table))
    assert read_report(tmp_path / "verdict.json").lenses == judgement.lenses
    assert table["energy"][1]["text"].startswith("barrier (NVML, each image): takes ")
    assert " J/image, against " in table["energy"][1]["text"]
    text = table["energy"][0]["text"]
    assert text.startswith("barrier (RAPL): takes ")
    assert text in printed(judgement)
    assert text in html.page(judgement, "")
    drawn = plots.spent(judgement)
    assert drawn is not None
    [row] = [one for one in drawn["data"]["values"] if one["line"] == "barrier: energy (RAPL)"]
    assert (row["low"], row["high"]) == (energy.low, energy.high)
    assert row["verdict"] in text


def test_a_denied_counter_is_named_in_the_report() -> None:
    denied = {"load.energy.intel-rapl:0.uj": {"unknown": "denied"}}
    script = Script({"barrier": {"bridged": 1.0}}, twist=lambda *_: Twist(facts=denied))
    asked = judgements.study(("barrier",), settings=Settings(seed=3))
    judgement = judged(asked, script, name="denied")
    assert "only root may read /sys/class/powercap/*/energy_uj" in printed(judgement)


def test_a_script_may_say_the_joules_of_its_unit() -> None:
    text = (FIXTURES / "training" / "good-0.out").read_text()
    reading = readers()["pytorch_ddp"].read(text.replace(" loss=", " j_per_image=2.5 loss="))
    assert reading.facts[f"{OF_WORK}image"] == 2.5
    assert "pytorch_ddp.j_per_image" not in reading.facts
    with pytest.raises(ParseError):
        readers()["pytorch_ddp"].read(text.replace(" loss=", " j_per_image=nan loss="))
