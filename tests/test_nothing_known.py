"""Studies whose silence might be taken for an answer: no facts of an arm, no whole block."""

from __future__ import annotations

from judgements import BRIDGED, FACTS, HOST, MACHINE, SCRIPT, study
from paribus.audit.values import ERROR, NODES
from paribus.core import NoticeName, Settings
from paribus.report.advice import next_steps
from paribus.words.values import notice_text
from stored import STARTED, Gathered, judged, nodes

SILENT = Gathered("bridged", "node 1 of 2", STARTED, {ERROR: "no answer within 15 s", NODES: 2})


def test_an_arm_without_facts_is_a_warning() -> None:
    """The audit has nothing to compare there, so it withholds nothing."""
    found = judged(study(("latency",)), SCRIPT, name="x", facts=(FACTS[0], SILENT))
    (told,) = [one for one in found.notices if "facts of bridged" in notice_text(one)]
    assert (told.name, told.level) == (NoticeName.NOT_CHECKED, "warning")
    assert "No data on the facts of bridged (no answer within 15 s)" in notice_text(told)


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
