"""The report on a terminal and in a pipe: golden text, widths, hostile input."""

from __future__ import annotations

import doctest
import io
import os
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from rich.console import Console

import judgements
from paribus.judgement import Difference, Judgement, Word
from paribus.report import axes, wording
from paribus.report.terminal import MOST_DIFFERENCES, print_report

GOLDEN = Path(__file__).parent / "golden"


def printed(judgement: Judgement, width: int = 80, **options: object) -> str:
    file = io.StringIO()
    print_report(judgement, Console(file=file, width=width, **options))
    return file.getvalue()


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", judgements.ALL)
def test_golden(name: str, width: int) -> None:
    """Rewrite with UPDATE_GOLDEN=1 after a wanted change, and read the difference."""
    path = GOLDEN / f"terminal-{name}-{width}.txt"
    text = printed(judgements.ALL[name](), width)
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize("name", sorted(set(judgements.ALL) - {"hostile"}))
def test_fits_80_columns(name: str) -> None:
    assert max(map(len, printed(judgements.ALL[name]()).splitlines())) <= 80


@pytest.mark.parametrize("name", judgements.ALL)
def test_pipe_is_plain(name: str) -> None:
    text = printed(judgements.ALL[name]())
    assert all(c.isprintable() or c == "\n" for c in text)
    assert all(line == line.rstrip() for line in text.splitlines())


def test_ascii_pipe() -> None:
    """An old terminal without UTF-8 gets the same report."""
    printed(judgements.two_arms()).encode("ascii")


def test_colour_only_where_the_family_supports_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    coloured = printed(judgements.two_arms(), force_terminal=True, color_system="standard")
    assert "\x1b[1;33mslower" in coloured
    assert "\x1b[2mundecided" in coloured
    held = printed(judgements.withheld(), force_terminal=True, color_system="standard")
    assert "\x1b[2mwithheld" in held


def test_no_color_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    text = printed(judgements.two_arms(), force_terminal=True, color_system="standard")
    assert "\x1b[1;33m" not in text
    assert "slower" in text


def test_paths_are_not_wrapped(tmp_path: Path) -> None:
    directory = tmp_path / ("a-directory-with-a-long-name-" * 4) / "and one more"
    directory.mkdir(parents=True)
    (directory / "report.html").touch()
    (directory / "logs").mkdir()
    text = printed(replace(judgements.two_arms(), directory=str(directory)))
    assert f"  report:     {directory / 'report.html'}\n" in text
    assert f"  as printed: {directory / 'logs'}\n" in text
    assert "launches.db" not in text


def test_absolute_values_and_direction_stand_beside_every_ratio() -> None:
    base = judgements.two_arms()
    lines = printed(base).splitlines()
    for head in base.headlines:
        at = next(i for i, line in enumerate(lines) if line.startswith(f"{head.benchmark} "))
        assert wording.value_text(head.arm_value, head.metric) in lines[at]
        assert wording.value_text(head.reference_value, head.metric) in lines[at]
        assert wording.direction(head.metric) in lines[at + 1]


def test_many_differences_are_cut_but_not_the_unexplained() -> None:
    noted = tuple(Difference(f"env.X{n}", "bridged", "0", "1", "noted") for n in range(30))
    bad = Difference("cpu.model", "bridged", "EPYC", "Xeon", "unexplained")
    text = printed(replace(judgements.two_arms(), differences=(*noted, bad)))
    assert "cpu.model: EPYC -> Xeon (NOT EXPLAINED by the factor)" in text
    assert f"and {31 - MOST_DIFFERENCES} more" in text


def test_sentences_name_both_values() -> None:
    base = judgements.two_arms()
    said = wording.headline_sentence(base, base.headlines[0])
    assert said == (
        "latency: bridged is slower than host: 26.6 us against 22.4 us (geometric mean over "
        "10 cases); ratio 1.187 [1.182, 1.192]; lower is better."
    )
    undecided = wording.headline_sentence(base, base.headlines[2])
    assert "undecided whether bridged differs from host by more than 5 %" in undecided


@pytest.mark.parametrize("word", list(Word))
def test_every_word_has_a_sentence_and_a_sign(word: Word) -> None:
    base = judgements.two_arms()
    head = base.headlines[0]
    verdict = replace(head.verdict, word=word)
    said = wording.headline_sentence(base, replace(head, verdict=verdict))
    assert said.startswith("latency: ")
    assert wording.SYMBOLS[word]


def test_cases_are_not_supported_without_their_headline() -> None:
    base = judgements.two_arms()
    case = base.cases[0]
    assert case.verdict.word is Word.SLOWER
    assert wording.supported(base, case)
    open_verdict = replace(base.headlines[0].verdict, word=Word.UNDECIDED)
    doubtful = replace(base, headlines=(replace(base.headlines[0], verdict=open_verdict),))
    assert not wording.supported(doubtful, case)


def test_next_steps() -> None:
    steps = wording.next_steps(judgements.two_arms())
    assert any("about 7 more blocks needed; set blocks = 67 under [plan]" in s for s in steps)
    assert any("logs/0057-" in s for s in steps)
    assert any("cpu.governor" in s for s in wording.next_steps(judgements.withheld()))
    unfinished = wording.next_steps(judgements.incomplete())
    assert "--resume" in unfinished[0]
    assert not any("set blocks" in s for s in unfinished)
    assert not wording.next_steps(judgements.three_arms())
    base = judgements.two_arms()
    head = base.headlines[2]
    for needed, said in ((None, "widen the margin"), (8, "widen"), (5000, "about 5,000 blocks")):
        verdict = replace(head.verdict, blocks_needed=needed)
        (step,) = wording.next_steps(
            replace(base, headlines=(replace(head, verdict=verdict),), points=())
        )
        assert said in step
        assert "set blocks" not in step
    hostile = wording.run_command(judgements.hostile())
    assert hostile.startswith("paribus run 'a'\"'\"'b ")


@pytest.mark.parametrize("module", [wording, axes])
def test_examples(module: ModuleType) -> None:
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0


def test_long_texts_are_cut_and_say_so() -> None:
    assert wording.clean("x" * 9000).endswith("x [cut]")
