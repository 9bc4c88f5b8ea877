"""A real Slurm whose nodes count energy: the counters are made, all that reads them is real."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from paribus.report import plots
from paribus.report.stored import read_report
from paribus.schedulers import slurm_energy
from schedulers.slurm import Site, slurm
from schedulers.test_slurm import Started, check_whole, study

SLEEPS = 'name = "command"\nargv = ["sleep", "0.5"]\ndirectory = "{scratch}"'
WATTS = {"h1": 250.0, "h2": 250.0, "h3": 150.0, "h4": 150.0}


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with slurm(4, {"p": ["h1", "h2"], "q": ["h3", "h4"]}, WATTS) as there:
        yield there


@pytest.mark.slow
def test_launches_have_the_energy_that_slurm_counts(site: Site, tmp_path: Path) -> None:
    """Two nodes of 250 W against two of 150 W, for half a second each."""
    study(tmp_path, SLEEPS, mpi='price = "2.07 EUR/node-hour"\n')
    words = ("run", "study.toml", "--out", "out", "--anyway")
    with Started(site, tmp_path, *words) as started:
        code, said = started.end(), " ".join(started.said().split())
    assert code in (0, 3), said  # on a busy machine the verdict on times may be withheld
    check_whole(tmp_path / "out")
    [energy] = read_report(tmp_path / "out" / "verdict.json").lenses["energy"]
    assert energy.source == "slurm"
    assert energy.word == "less" if code == 0 else energy.high < 1
    assert energy.ratio == pytest.approx(150 / 250, rel=0.2)
    assert energy.joules[0] > 2 * 250 * 0.5
    assert energy.joules[0] < 2 * 250 * 0.5 * 1.6, "a launch takes little longer than its command"
    assert "launch.energy" not in said, "what is measured anew is no difference of platforms"
    table = json.loads((tmp_path / "out" / "verdict.json").read_text())
    assert table["energy"][0]["text"] in said
    assert (code == 0) == bool(table.get("costs"))
    assert all(one["currency"] == "EUR" for one in table["node_hours"])
    assert plots.OF_WORK in (tmp_path / "out" / "report.html").read_text()
    assert site.jobs() == []


def test_a_site_that_counts_says_so_and_each_step_grows(site: Site) -> None:
    assert slurm_energy.counts(site.ask(*slurm_energy.config()))
    job = site.ask(
        *("sbatch", "--parsable", "--partition=q", "--nodes=1", "--output=/dev/null"),
        "--wrap=sleep 300",
    ).strip()
    try:
        seen: list[int] = []

        def grown() -> bool:
            [*of] = slurm_energy.read(site.ask(*slurm_energy.ask([job]))).values()
            seen.extend(of[0].values() if of else ())
            return len({*seen}) > 2

        site.until(lambda: any(f"{job} " in line and "RUN" in line for line in site.jobs()))
        site.until(grown)
        assert seen == sorted(seen)
    finally:
        site.ask("scancel", job)


def test_a_site_that_gathers_nothing_counts_nothing() -> None:
    """Its sstat says 0 joules, and so does sacct where there is accounting."""
    with slurm(1, {"p": ["h1"]}, {"h1": 250.0}, "none") as site:
        assert not slurm_energy.counts(site.ask(*slurm_energy.config()))
        asked = ("sbatch", "--parsable", "--partition=p", "--output=/dev/null", "--wrap=sleep 300")
        job = site.ask(*asked).strip()
        site.until(lambda: "|0" in site.ask(*slurm_energy.ask([job])))
        site.ask("scancel", job)
    still = {"h1": {"7.batch": 0}}
    assert slurm_energy.joules(still, still, ["h1"]) is None
    moves = {"h1": {"7.batch": 9}, "h2": {"7.0": 5}}
    assert slurm_energy.joules(moves, moves | {"h1": {"7.batch": 10}}, ["h1", "h2"]) is None
    assert slurm_energy.joules(moves, moves | {"h1": {"7.batch": 10}}, ["h1"]) == 1.0
