"""`--fail-on`, JUnit, and the examples of docs/ab.md, as pipelines use them."""

from __future__ import annotations

import json
import os
import re
import shlex
from argparse import ArgumentTypeError
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import judgements
from paribus import load
from paribus.cli.exports import parse_rules
from paribus.core import Finding, UserError, Word
from paribus.logs.changes_verb import changes
from paribus.report import junit
from paribus.report.gate import Rule, failing, failures
from processes import executable, ran
from studies import command, paribus, write_study
from test_report_paper import EVIL, evil

ROOT = Path(__file__).parent.parent
SLOWER = """if [ "$FACTOR" = slow ]; then echo 3.5; else echo 2.50013; fi"""
ARMS = '[arms.plain]\n[arms.slow]\nenv = { FACTOR = "slow" }\n'


def head(name: str) -> Finding:
    (found,) = [f for f in judgements.two_arms().headlines if f.benchmark == name]
    return found


def with_word(f: Finding, word: Word, **changes: Any) -> Finding:
    return replace(f, verdict=replace(f.verdict, word=word, **changes))


LATENCY = head("latency")  # us, 1.182 [1.169, 1.202]
BANDWIDTH = head("bandwidth")  # MB/s, 0.872 [0.863, 0.881]: 13.5 to 15.9 % slower


@pytest.mark.parametrize(
    ("finding", "rule", "fails"),
    [
        (LATENCY, "slower", True),
        (BANDWIDTH, "slower", True),
        (LATENCY, "slower:16%", True),
        (LATENCY, "slower:17.5 %", False),
        (BANDWIDTH, "slower:13%", True),
        (BANDWIDTH, "slower:14%", False),
        (with_word(LATENCY, Word.FASTER), "slower", False),
        (with_word(LATENCY, Word.FASTER), "slower:1%", False),
        (head("allreduce"), "slower", False),
        (head("allreduce"), "slower:4%", True),
        (head("allreduce"), "slower:5%", False),
        (head("allreduce"), "undecided", True),
        (head("triad"), "undecided", False),
        (head("triad"), "slower:1%", False),
        (with_word(LATENCY, Word.WITHHELD), "slower", False),
        (with_word(LATENCY, Word.WITHHELD), "slower:5%", False),
        (with_word(LATENCY, Word.RELIABILITY), "slower:5%", False),
        (with_word(LATENCY, Word.RELIABILITY), "reliability", True),
        (replace(LATENCY, comparison=None), "slower:5%", False),
        (with_word(LATENCY, Word.SLOWER, size_known=False), "slower", True),
        (with_word(LATENCY, Word.SLOWER, size_known=False), "slower:5%", False),
        (with_word(LATENCY, Word.SLOWER, size_known=False), "slower:2%", True),
        (with_word(LATENCY, Word.UNDECIDED, final=False), "slower:5%", False),
    ],
)
def test_which_verdicts_fail(finding: Finding, rule: str, fails: bool) -> None:
    (parsed,) = parse_rules(rule)
    assert failing(finding, parsed) == fails


def test_an_interval_that_is_valid_at_any_time_counts_before_the_end() -> None:
    (rule,) = parse_rules("slower:5%")
    so_far = with_word(LATENCY, Word.SLOWER, final=False)
    assert failing(so_far, rule, monitored=True)
    assert not failing(so_far, rule)


def test_rules_are_parsed_and_the_first_that_is_met_is_named() -> None:
    rules = parse_rules("slower:5 %, slower ,reliability")
    assert rules == [Rule(Word.SLOWER, 0.05), Rule(Word.SLOWER), Rule(Word.RELIABILITY)]
    found = failures([LATENCY, head("triad"), with_word(LATENCY, Word.RELIABILITY)], rules)
    assert [str(rule) for _, rule in found] == ["slower:5 %", "reliability"]


@pytest.mark.parametrize(
    "text", ["", "slowr", "slower:", "slower:5", "slower:200%", "undecided:5%"]
)
def test_what_is_no_rule(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="write for example slower, or slower:5%"):
        parse_rules(text)


# --- JUnit -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", judgements.ALL)
def test_each_comparison_is_a_test_case(name: str) -> None:
    judgement = judgements.ALL[name]()
    suites = ElementTree.fromstring(junit.document(judgement, parse_rules("slower:5%")))
    (suite,) = suites
    cases = suite.findall("testcase")
    assert len(cases) == int(suite.attrib["tests"]) == len(judgement.headlines)
    counted = {
        tag: len(suite.findall(f"testcase/{tag}")) for tag in ("failure", "error", "skipped")
    }
    attributes = {"failure": "failures", "error": "errors", "skipped": "skipped"}
    assert {tag: int(suite.attrib[attributes[tag]]) for tag in counted} == counted
    for case, f in zip(cases, judgement.headlines, strict=True):
        expected = {
            Word.WITHHELD: "error", Word.NO_DATA: "error", Word.UNDECIDED: "skipped",
        }.get(f.verdict.word, "system-out")  # fmt: skip
        if failing(f, Rule(Word.SLOWER, 0.05), monitored=judgement.study.settings.monitor):
            expected = "failure"
        (inner,) = case
        assert inner.tag == expected
        assert inner.text


@pytest.mark.parametrize("text", [*EVIL, "]]>", "<!--", "\ud800", "\x00", "\ufffe"])
def test_no_name_breaks_the_xml(text: str) -> None:
    (suite,) = ElementTree.fromstring(junit.document(evil(text)))
    assert len(suite.findall("testcase/error")) == 2


def test_without_a_rule_nothing_fails() -> None:
    assert "<failure" not in junit.document(judgements.two_arms())
    assert junit.document(judgements.two_arms(), parse_rules("undecided")).count("<failure") == 1


# --- the verbs -------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_slower_arm_fails_a_pipeline(tmp_path: Path) -> None:
    """40 % slower: by the word, and beyond 30 %, but not beyond 45 %; with files, and in JSON."""
    study = write_study(tmp_path, script=SLOWER, arms=ARMS)
    words = ("run", study, "--out", "out", "--fail-on", "slower:30%", "--to", "junit")
    done = paribus(*words, cwd=tmp_path, code=1)
    assert "paribus: --fail-on slower:30 %: steady: arm slow is slower than plain" in done.stderr
    assert done.stdout.endswith("\nWritten:\n  out/junit.xml\n")
    assert 'failures="1"' in (tmp_path / "out" / "junit.xml").read_text()
    for rule, code in (("slower", 1), ("slower:45%", 0), ("undecided,reliability", 0)):
        again = paribus("report", "out", "--fail-on", rule, "--brief", cwd=tmp_path, code=code)
        assert ("--fail-on" in again.stderr) == bool(code)
    as_json = paribus(
        "report", "out", "--json", "--to", "csv", "--fail-on", "slower", cwd=tmp_path, code=1
    )
    assert json.loads(as_json.stdout)["schema"] == "paribus.verdict/1"
    assert "out/table.csv" in as_json.stderr


@pytest.mark.slow
def test_a_report_of_compare_is_reported_again_and_written_for_a_paper(tmp_path: Path) -> None:
    rows = ["arm,benchmark,metric,value,unit,better,block"]
    rows += [f"{a},b,t,{9 + 2 * (a == 'y') + n / 99},s,lower,{n}" for n in range(9) for a in "xy"]
    (tmp_path / "numbers.csv").write_text("\n".join(rows))
    done = paribus("compare", "numbers.csv", "--out", "out", "--to", "latex", cwd=tmp_path, code=0)
    assert "  out/table.tex\n" in done.stdout
    (tmp_path / "numbers.csv").unlink()
    (tmp_path / "out").rename(tmp_path / "moved")
    for what in ("moved", "moved/verdict.json"):
        again = paribus(
            *("report", what, "--to", "markdown", "--to", "pdf", "--title", "Table 1"),
            *("--width", "88mm", "--fail-on", "slower"),
            cwd=tmp_path,
            code=1,
        )
        assert again.stdout.splitlines()[0] == done.stdout.splitlines()[0]
        assert "  report:     moved/report.html\n" in again.stdout
        assert "  moved/table.md\n" in again.stdout
        assert "  moved/figures/overview.pdf\n" in again.stdout
    assert (tmp_path / "moved" / "table.md").read_text().startswith("**Table 1**")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("compare", "a", "b", "--to", "latex"), "--to: writes files\n  say where: add --out DIR"),
        (("report", "r", "--to", "word"), "invalid choice: 'word'"),
        (("report", "r", "--width", "8 parsec"), "'8 parsec' is no length"),
        (("report", "r", "--width", "1mm"), "'1mm' is not between 40mm and 1320mm"),
        (("report", "r", "--fail-on", "slow"), "'slow' is none of slower, undecided, reliability"),
        (("report", "v.json"), "v.json: cannot be read: No such file"),
    ],
)
def test_what_cannot_be_is_an_error_with_its_fix(
    words: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    done = paribus(*words, cwd=tmp_path, code=2)
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_change_between_studies_that_worsened_fails(tmp_path: Path) -> None:
    level = tmp_path / "level"
    study = write_study(tmp_path, script=SLOWER.replace("echo 3.5", f"cat {level}"), arms=ARMS)
    for name, slow in (("before", "2.6"), ("after", "3.5")):
        level.write_text(slow)
        assert paribus("run", study, "--out", f"{name}.study", cwd=tmp_path).returncode == 0
    words = ("compare", "before.study", "after.study", "--brief")
    plain = paribus(*words, cwd=tmp_path)
    gated = paribus(*words, "--fail-on", "slower:10%", cwd=tmp_path)
    assert (plain.returncode, gated.returncode) == (0, 1), plain.stdout + plain.stderr
    assert "paribus: --fail-on slower:10 %: slow in steady: worsened" in gated.stderr
    assert paribus(*words, "--fail-on", "slower:60%", cwd=tmp_path).returncode == 0
    assert paribus(*words, "--out", "change", cwd=tmp_path).returncode == 0
    values = load(tmp_path / "change")
    assert set(values["file"]) == {"before.study", "after.study"}
    assert len(values["value"]) == 2 * 16
    refused = paribus(*words, "--to", "latex", "--out", "o", cwd=tmp_path, code=2)
    assert "--to: is not possible with study directories" in refused.stderr
    assert "`paribus report DIR`" in refused.stderr


# --- the examples of the docs ----------------------------------------------------------------


def fences(kind: str) -> list[str]:
    page = (ROOT / "docs" / "ab.md").read_text().partition("\n## In a pipeline\n")[2]
    return re.findall(rf"```{kind}\n(.*?)```", page, re.DOTALL)


def commands(example: str) -> list[tuple[str, bool]]:
    """Return the commands of a pipeline, each with whether it is run after a failure."""
    found, script, always = [], False, False
    for line in example.splitlines():
        assert line.strip(), line
        assert not re.match(r"(  )* \S|.*\t|.*: .*: ", line.split(" run: ")[0]), line
        script = line.strip() == "script:" or (script and line.startswith("    - "))
        always = "if: always()" in line or (always and not line.strip().startswith("- "))
        if " run: " in line:
            found.append((line.partition(" run: ")[2], always))
        elif script and line.startswith("    - "):
            found.append((line.removeprefix("    - "), False))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["GitHub", "GitLab"])
@pytest.mark.parametrize("slower", [True, False])
def test_the_examples_do_what_the_page_says(kind: str, slower: bool, tmp_path: Path) -> None:
    """Their commands in a shell, with a program of two versions; installing was done before."""
    example = fences("yaml")[("GitHub", "GitLab").index(kind)]
    (study,) = fences("toml")
    level = "3.5" if slower else "2.50013"
    (tmp_path / "ci.toml").write_text(study)
    for path, text in (("old/program", "2.50013"), ("program", level)):
        program = tmp_path / path
        program.parent.mkdir(exist_ok=True)
        executable(program, f"echo took {text} s\necho DONE")
    shim = tmp_path / "bin" / "paribus"
    shim.parent.mkdir()
    executable(shim, f'exec {shlex.join(command())} "$@"')
    env = {"PATH": f"{shim.parent}:{os.environ['PATH']}", "GITHUB_STEP_SUMMARY": "summary"}
    failed = False
    for line, always in commands(example):
        if line.startswith(("pip install", "make", "git worktree")) or (failed and not always):
            continue
        done = ran(["sh", "-e", "-c", line], cwd=tmp_path, env={**os.environ, **env})  # fmt: skip
        assert done.returncode == (1 if slower and "paribus run" in line else 0), done.stderr
        failed = failed or done.returncode != 0
    assert failed == slower
    suites = ElementTree.parse(tmp_path / "result" / "junit.xml").getroot()
    assert suites[0].attrib["failures"] == str(int(slower))
    if kind == "GitHub":
        word = "slower" if slower else "equivalent"
        assert f"| {word} |" in (tmp_path / "summary").read_text()
    else:
        assert "junit: result/junit.xml" in example


def test_a_rule_about_one_study_is_none_about_a_change() -> None:
    with pytest.raises(UserError, match="is about one study"):
        changes([], None, parse_rules("less-steady"), as_json=False)
