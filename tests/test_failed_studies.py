"""A study without usable output says alike everywhere how many launches failed, and why."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from judgements import BRIDGED, FACTS, HOST, MACHINE, SCRIPT, study
from paribus.audit.values import ERROR, NODES
from paribus.core import NoticeName, Settings
from paribus.report.advice import next_steps
from paribus.words.values import notice_text
from stored import STARTED, Gathered, judged, nodes
from studies import paribus, write_study

SILENT = Gathered("bridged", "node 1 of 2", STARTED, {ERROR: "no answer within 15 s", NODES: 2})


def test_an_arm_without_facts_is_a_warning() -> None:
    """The audit has nothing to compare there, so it withholds nothing."""
    found = judged(study(("latency",)), SCRIPT, name="x", facts=(FACTS[0], SILENT))
    (reported,) = [one for one in found.notices if "facts of bridged" in notice_text(one)]
    assert (reported.name, reported.level) == (NoticeName.NOT_CHECKED, "warning")
    assert "No data on the facts of bridged (no answer within 15 s)" in notice_text(reported)


def test_an_arm_with_facts_of_one_node_is_none() -> None:
    facts = (nodes("host", MACHINE, HOST), nodes("bridged", MACHINE, BRIDGED), SILENT)
    found = judged(study(("latency",)), SCRIPT, name="x", facts=facts)
    assert not [one for one in found.notices if "facts of bridged" in notice_text(one)]


def test_a_budget_that_ends_before_the_first_block_is_said_with_what_to_do() -> None:
    asked = study(("latency", "triad"), settings=Settings(seed=1, budget_s=0.01))
    found = judged(asked, SCRIPT, name="x", facts=FACTS)
    (spent,) = [one for one in found.notices if one.name is NoticeName.BUDGET_USED]
    assert spent.benchmarks == ("latency", "triad")
    (step,) = next_steps(found)
    assert step.startswith("No data (latency, triad): the budget ended before the first block")
    assert "Raise the budget" in step


WARM_UP = "4 warm-up launches"
"""The warm-up of both arms, which was rerun once."""


@pytest.mark.parametrize("script", ["echo oops", "exit 3"])
def test_a_failed_study_counts_its_launches_gives_the_reason_and_shows_no_more(
    tmp_path: Path, script: str
) -> None:
    done = paribus(
        "run", write_study(tmp_path, script=script), "--out", "out", cwd=tmp_path, code=4
    )
    text = " ".join(done.stdout.split())
    verdict = json.loads((tmp_path / "out" / "verdict.json").read_text())
    error = verdict["tallies"][0]["first_error"]
    assert verdict["sentence"] == f"No data for b in steady (a: {error})."
    assert text.startswith(verdict["sentence"])
    assert WARM_UP in text
    assert "4 failed; none counted." in text
    assert "0 failed" not in text
    assert "steady, a: 2 of 2 warm-up launches failed" in text
    assert "4 launches without usable output" in text
    assert verdict["headlines"][0]["verdict"]["figures"] == {"arm": "a", "error": error}
    assert [(t["counted"], t["warm_up"], t["warm_up_failed"]) for t in verdict["tallies"]] == [
        (0, 2, 2),
        (0, 2, 2),
    ]
    assert verdict["wall_s"] > verdict["launches"][-1]["at_s"]
    for of_good_launches in ("margin", "ratio", "in random order", "equal in all arms", "better"):
        assert of_good_launches not in done.stdout
    page = (tmp_path / "out" / "report.html").read_text().partition("<main>")[2]
    assert WARM_UP in page
    assert "2 of 2 warm-up launches failed" in page
    assert "Ratio: arm / reference" not in page


def test_a_benchmark_that_fails_in_one_arm_names_it(tmp_path: Path) -> None:
    script = "[ -z $BROKEN ] || exit 3; echo 2.5"
    arms = '[arms.a]\n[arms.b]\nenv = { BROKEN = "1" }\n'
    study = write_study(tmp_path, script=script, arms=arms)
    done = paribus("run", study, "--out", "out", cwd=tmp_path)
    text = " ".join(done.stdout.split())
    assert text.startswith("No data for b in steady (b: exit code 3")
    assert "0 launches" not in text
    assert "4 warm-up launches" in text
    assert "2 failed; none counted" in text
    assert "the factor: 1 env.BROKEN: (absent) -> (not shown, value 1)" in text
    audited = paribus("audit", "out", cwd=tmp_path, code=0)
    assert "env.BROKEN" in audited.stdout
    assert "Nothing differs" not in audited.stdout
