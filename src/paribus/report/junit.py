"""The verdicts as JUnit XML, which pipelines show: a test case for each comparison."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from paribus.core import Judgement, Word
from paribus.core import failing as of_rules
from paribus.designs import design_of
from paribus.report import lookup, sentences
from paribus.report.gate import Rule, failing
from paribus.report.wording import clean
from paribus.words.values import reason_of


def document(judgement: Judgement, rules: Sequence[Rule] = ()) -> str:
    """Return the XML: a failure by a rule of `--fail-on`, an error without a verdict.

    An undecided comparison that no rule fails is marked as skipped.
    """
    name = clean(judgement.study.question)
    suite = ElementTree.Element("testsuite", name=name)
    monitored = not design_of(judgement.study).has_end
    rows = lookup.rows(judgement)
    for head in rows:
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=clean(head.benchmark),
            name=clean(
                f"{head.arm} against {judgement.reference}"
                + ("" if head.decides else f", {head.metric.name}")
            ),
        )
        rule = next((rule for rule in rules if failing(head, rule, monitored=monitored)), None)
        kinds = {Word.WITHHELD: "error", Word.NO_DATA: "error", Word.UNDECIDED: "skipped"}
        kind = "failure" if rule else kinds.get(head.verdict.word, "")
        text = sentences.headline_sentence(judgement, head)
        if kind:
            inner = ElementTree.SubElement(case, kind, message=clean(reason_of(head.verdict)))
            if kind != "skipped":
                inner.set("type", str(rule) if rule else head.verdict.word.value)
            inner.text = text
        else:
            ElementTree.SubElement(case, "system-out").text = text
    of_lenses = list(of_rules(judgement, map(str, rules)))
    for rule_, text in of_lenses:
        case = ElementTree.SubElement(suite, "testcase", classname=rule_, name=clean(text))
        ElementTree.SubElement(case, "failure", message=clean(text), type=rule_)
    suite.set("tests", str(len(rows) + len(of_lenses)))
    for kind, attribute in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        suite.set(attribute, str(len(suite.findall(f"testcase/{kind}"))))
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=False) + "\n"
