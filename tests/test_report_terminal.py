"""The report on a terminal and in a pipe: golden text, widths, hostile input."""

from __future__ import annotations

import io
import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import judgements
from paribus.core import (
    Comparison,
    Difference,
    Judgement,
    Reason,
    Verdict,
    Word,
    format_ratio,
)
from paribus.report import advice, html, sentences, unequal, wording
from paribus.report.export import to_json
from paribus.report.printing import console_on
from paribus.report.ranking import place_text, ranking
from paribus.report.terminal import MOST_NOTES, print_report
from paribus.stats.betting import confidence_sequence
from paribus.stats.estimate import compare
from paribus.words.study import sentence
from paribus.words.values import notice_text, reason_of

GOLDEN = Path(__file__).parent / "golden"
EVERY = judgements.ALL | judgements.MORE


def printed(judgement: Judgement, width: int = 80, *, brief: bool = False, **options: Any) -> str:
    file = io.StringIO()
    print_report(judgement, Console(file=file, width=width, **options), brief=brief)
    return file.getvalue()


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", EVERY)
def test_golden(name: str, width: int) -> None:
    """Rewrite with UPDATE_GOLDEN=1 after a wanted change, and read the difference."""
    path = GOLDEN / f"terminal-{name}-{width}.txt"
    text = printed(EVERY[name](), width)
    assert text.isascii() or name == "hostile", "an old terminal without UTF-8 gets the same report"
    for line in text.split("\n"):
        assert line.isprintable()
        assert line == line.rstrip()
        assert len(line) <= width or name == "hostile"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()


def test_the_sentence_of_many_benchmarks_names_the_first_and_counts_the_rest() -> None:
    head = judgements.two_arms().headlines[0]
    said = sentence([replace(head, benchmark=f"b{i}") for i in range(20)])
    assert said.startswith("bridged is slower in b0 (1.")
    assert "b7 (" in said
    assert said.endswith(") and 12 more.")


def test_colour_only_where_a_word_claims_something(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_no_columns_are_as_many_as_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell without a terminal may set COLUMNS=0."""
    texts = []
    for columns in ("0", "80"):
        monkeypatch.setenv("COLUMNS", columns)
        file = io.StringIO()
        print_report(EVERY["two_arms"](), console_on(file))
        texts.append(file.getvalue())
    assert texts[0] == texts[1] != ""


def test_paths_are_not_wrapped(tmp_path: Path) -> None:
    directory = tmp_path / ("a-directory-with-a-long-name-" * 4) / "and one more"
    directory.mkdir(parents=True)
    (directory / "report.html").touch()
    (directory / "logs").mkdir()
    text = printed(replace(judgements.two_arms(), directory=str(directory)))
    assert f"  report:     {directory / 'report.html'}\n" in text
    assert f"  outputs:    {directory / 'logs'}\n" in text
    assert "launches.db" not in text


def test_many_differences_are_cut_but_not_the_unexplained() -> None:
    noted = tuple(Difference(f"env.X{n}", "bridged", "0", "1", "noted") for n in range(30))
    bad = tuple(
        Difference(f"cpu.x{n}", "bridged", "EPYC", "Xeon", "unexplained", "it counts", 3)
        for n in range(20)
    )
    text = printed(replace(judgements.two_arms(), differences=(*noted, *bad)))
    assert text.count(": EPYC -> Xeon") == 20
    assert text.count("almost always affects these figures: it counts") == 20
    assert f"{30 - unequal.MOST_SHOWN} more: env.X" in text
    assert text.index("UNEXPLAINED: 20") < text.index("\nbenchmark ")


def test_what_several_arms_differ_in_is_named_once_beyond_the_first_few() -> None:
    noted = tuple(
        Difference(f"env.X{n}", arm, "0", arm, "noted") for n in range(9) for arm in ("b", "c")
    )
    text = " ".join(printed(replace(judgements.three_arms(), differences=noted)).split())
    assert text.count("env.X8") == 1
    assert "12 more: env.X3," in text


def test_what_is_unknown_is_counted_apart() -> None:
    absent = tuple(Difference(f"gpu.{n}", "bridged", "(absent)", "5", "unknown") for n in range(7))
    text = printed(replace(judgements.two_arms(), differences=absent))
    assert "unknown: 7" in text
    assert "gpu.3" not in text


def test_an_accepted_difference_shows_its_reason() -> None:
    why = "both clocks were pinned by hand"
    one = Difference("cpu.governor", "bridged", "performance", "powersave", "accepted", why, 3)
    text = " ".join(printed(replace(judgements.two_arms(), differences=(one,))).split())
    assert f"cpu.governor: performance -> powersave; reason given: {why}" in text


def test_sentences_name_both_values() -> None:
    base = judgements.two_arms()
    said = sentences.headline_sentence(base, base.headlines[0])
    assert said == (
        "latency: bridged is slower than host: 27.1 us against 22.9 us (geometric mean over "
        "10 cases); 1.182 [1.169, 1.202] times as slow; lower is better."
    )
    undecided = sentences.headline_sentence(base, base.headlines[2])
    assert "undecided whether bridged differs from host by more than 5 %" in undecided


@pytest.mark.parametrize("word", list(Word))
def test_every_word_has_a_sentence_and_a_sign(word: Word) -> None:
    base = judgements.two_arms()
    head = base.headlines[0]
    verdict = replace(head.verdict, word=word)
    said = sentences.headline_sentence(base, replace(head, verdict=verdict))
    assert said.startswith("latency: ")
    assert wording.SYMBOLS[word]


def test_size_withheld_stands_where_the_size_stood() -> None:
    base = judgements.censored()
    first, barrier = base.headlines
    assert first.comparison
    assert barrier.comparison
    one_sided = replace(first, comparison=replace(first.comparison, high=math.inf))
    text = printed(replace(base, headlines=(one_sided, barrier)))
    (line,) = [part for part in text.splitlines() if part.startswith("barrier ")]
    assert "size withheld" in line
    assert "slower" in line
    ratio = format_ratio(barrier.comparison.ratio)
    assert ratio not in text
    assert "1.187 [1.169, inf]" in text
    said = sentences.headline_sentence(base, barrier)
    assert "bridged is slower than host" in said
    assert "size withheld" in said
    assert ratio not in said


def test_a_monitored_effect_that_changed_is_stated_before_and_since() -> None:
    judgement = judgements.monitor()
    before, since = "locks 1 to 12 slower, 1.226 [1.181, 1.292]", "blocks 13 to 60 slower, 3.051"
    assert f"since block 13, before: b{before}" in reason_of(judgement.headlines[1].verdict)
    page = html.page(judgement, "")
    assert before in page
    assert since in page
    (notice,) = (n for n in to_json(judgement)["notices"] if n["name"] == "the ratio moved")
    assert [(e["first"], e["last"], e["noticed"]) for e in notice["figures"]["effects"]] == [
        (1, 12, 27),
        (13, 60, None),
    ]


def test_duet_says_at_the_same_time() -> None:
    base = judgements.two_arms()
    duet = replace(base.study, settings=replace(base.study.settings, layout="duet"))
    assert "ran at the same time" in printed(replace(base, study=duet), 500)


def test_notes_are_few_and_whole_and_so_are_warnings() -> None:
    both = (*judgements.troubled().notices, *judgements.logs().notices)
    base = replace(judgements.troubled(), notices=both)
    text = printed(base)
    notes = [n for n in base.notices if n.level == "note"]
    assert f"{len(notes) - MOST_NOTES} more in the HTML report" in text
    joined = " ".join(text.split())
    assert all(" ".join(notice_text(n).split()) in joined for n in notes[:MOST_NOTES])
    assert "..." not in joined
    assert "neighbours of this arm.\n" in text


def test_a_brief_report_is_the_answer_warnings_and_the_table() -> None:
    judgement = judgements.censored()
    text = printed(judgement, brief=True)
    paragraphs = text.strip().split("\n\n")
    assert len(paragraphs) == 2
    assert paragraphs[0].replace("\n", " ").startswith(judgement.sentence)
    assert "Warning, time-outs" in paragraphs[0]
    lines = paragraphs[1].splitlines()
    assert len(lines) == 1 + 2 * len(judgement.headlines)
    assert text.splitlines()[-2] in printed(judgement)


def test_a_brief_report_says_why_a_verdict_is_withheld() -> None:
    judgement = judgements.withheld()
    head = next(h for h in judgement.headlines if h.verdict.word is Word.WITHHELD)
    said = f"Withheld (latency, barrier; unexplained: cpu.governor): {reason_of(head.verdict)}"
    assert said in " ".join(printed(judgement, brief=True).split())


def test_only_supported_orders_are_drawn() -> None:
    base = judgements.three_arms()
    clear, open_end = ranking(base, "latency"), ranking(base, "message_rate")
    assert clear is not None
    assert open_end is not None
    assert [(p.arm, place_text(p)) for p in clear.places] == [
        ("shared-memory", "1"), ("tcp-loopback", "2"), ("tcp-bridge", "3"),
    ]  # fmt: skip
    assert [place_text(p) for p in open_end.places] == ["1", "2 to 3", "2 to 3"]
    assert ranking(judgements.two_arms(), "latency") is None


def test_a_ranking_turns_pairs_round() -> None:
    """The same order comes out whichever arm of a pair was the reference."""
    base = judgements.three_arms()
    *others, last = base.of_benchmark("latency", base.pairs)
    found = last.comparison
    assert found is not None
    turned = replace(
        last,
        arm=last.reference,
        reference=last.arm,
        verdict=replace(last.verdict, word=Word.FASTER),
        comparison=replace(found, ratio=1 / found.ratio, low=1 / found.high, high=1 / found.low),
        arm_value=last.reference_value,
        reference_value=last.arm_value,
    )
    before = ranking(base, "latency")
    after = ranking(replace(base, pairs=(*others, turned)), "latency")
    assert before is not None
    assert after is not None
    assert [(p.arm, p.best, p.worst) for p in after.places] == [
        (p.arm, p.best, p.worst) for p in before.places
    ]
    assert wording.estimate_text(after.places[2].above) == wording.estimate_text(last)


def test_equivalent_arms_share_their_places() -> None:
    base = judgements.three_arms()
    pairs = tuple(
        replace(p, verdict=replace(p.verdict, word=Word.EQUIVALENT))
        for p in base.of_benchmark("latency", base.pairs)
    )
    ranked = ranking(replace(base, pairs=pairs), "latency")
    assert ranked is not None
    assert [place_text(p) for p in ranked.places] == ["1 to 3"] * 3
    assert [p.above and p.above.verdict.word for p in ranked.places] == [
        None, Word.EQUIVALENT, Word.EQUIVALENT,
    ]  # fmt: skip


def test_withheld_for_another_reason_than_the_audit() -> None:
    base = judgements.two_arms()
    said = Verdict(Word.WITHHELD, Reason.TOO_FEW_SAMPLES, True, figures={"endpoint": "p99"})
    tied = replace(base.headlines[0], verdict=said)
    steps = advice.next_steps(replace(base, headlines=(tied, *base.headlines[1:]), points=()))
    (step,) = [one for one in steps if one.startswith("Withheld (latency): ")]
    assert reason_of(said) in step
    assert not any("explains" in s for s in steps)


def test_a_study_that_a_change_ended_does_not_say_that_it_simply_goes_on() -> None:
    base = judgements.incomplete()
    moved = Difference("gpu.0.driver", "bridged", "550", "551", "unexplained", "changed", 3, "n1")
    (step, *_) = advice.next_steps(replace(base, differences=(moved,)))
    assert "gpu.0.driver" in step
    assert "Start again in another directory" in step
    assert "--resume --accept gpu.0.driver=REASON" in step


def needing(blocks: int) -> Judgement:
    """Return the demo, its allreduce undecided after 60 blocks and in need of so many."""
    base = judgements.two_arms()
    head = base.headlines[2]
    assert head.comparison
    verdict = replace(head.verdict, blocks_needed=blocks)
    head = replace(head, comparison=replace(head.comparison, blocks=60), verdict=verdict)
    return replace(base, headlines=(*base.headlines[:2], head, *base.headlines[3:]))


def test_next_steps() -> None:
    steps = advice.next_steps(needing(67))
    more = "about 7 more blocks needed, each a launch of each arm. Set blocks = 67 under [plan]"
    assert any(more in s for s in steps)
    assert any("logs/0092-" in s for s in steps)
    assert any("cpu.governor" in s for s in advice.next_steps(judgements.withheld()))
    unfinished = advice.next_steps(judgements.incomplete())
    assert "--resume" in unfinished[0]
    assert not any("set blocks" in s.lower() for s in unfinished)
    assert not advice.next_steps(judgements.three_arms())
    base = judgements.two_arms()
    head = base.headlines[2]
    for needed, said in ((None, "widen the margin"), (8, "widen"), (5000, "about 5,000 blocks")):
        verdict = replace(head.verdict, blocks_needed=needed)
        (step,) = advice.next_steps(
            replace(base, headlines=(replace(head, verdict=verdict),), points=(), voided=())
        )
        assert said in step
        assert "set blocks" not in step.lower()
    hostile = advice.run_command(judgements.hostile())
    assert hostile.startswith("paribus run 'a'\"'\"'b ")


@pytest.mark.parametrize(
    ("blocks", "budget_s", "said"),
    [
        (60, None, "Set blocks = 67 under [plan]"),
        (90, 60.0, "Raise the budget under [plan]"),
        (61, 60.0, "Set blocks = 67 and raise the budget under [plan]"),
    ],
)
def test_more_blocks_may_take_a_larger_budget(
    blocks: int, budget_s: float | None, said: str
) -> None:
    base = needing(67)
    settings = replace(base.study.settings, blocks=blocks, budget_s=budget_s)
    changed = replace(base, study=replace(base.study, settings=settings))
    assert any(said in step for step in advice.next_steps(changed))


def undecided(base: Judgement, blocks: int, level: float, needed: int | None = None) -> Judgement:
    """Return `base` with nothing but one undecided headline of so many blocks."""
    said = Verdict(Word.UNDECIDED, Reason.TOO_FEW_BLOCKS, final=True, blocks_needed=needed)
    none_yet = Comparison(blocks, 1.1, 0.0, math.inf, level)
    head = replace(base.headlines[0], verdict=said, comparison=none_yet)
    return replace(base, headlines=(head,), points=(), voided=(), complete=True, differences=())


@pytest.mark.parametrize(("level", "fewest"), [(0.95, 6), (0.975, 7), (0.99, 8), (1 - 2 / 256, 8)])
def test_too_few_blocks_are_shown_the_fewest_of_an_interval(level: float, fewest: int) -> None:
    """Those of a table: as many as `compare` gives an interval from."""
    assert compare([0.1] * (fewest - 1), level).high == math.inf
    assert compare([0.1] * fewest, level).high < math.inf
    for blocks in (1, 2, fewest - 1):
        (step,) = advice.next_steps(undecided(judgements.imported(), blocks, level))
        assert f"a verdict takes at least {fewest} blocks ({blocks} so far)" in step
        assert "measured region" not in step
    (step,) = advice.next_steps(undecided(judgements.imported(), 4, level, needed=45))
    assert f"takes at least {fewest} blocks (4 so far), here about 45" in step
    (step,) = advice.next_steps(undecided(judgements.imported(), fewest, level))
    assert "lengthen the measured region" in step


def test_groups_of_a_table_have_one_look_each() -> None:
    table = replace(judgements.imported(), looks=(8, 12))
    assert "all looks" not in printed(table, 500)
    assert "all looks" not in html.page(table, "")
    assert "all looks" in html.page(judgements.two_arms(), "")


def test_one_way_out_is_reported_once_for_all_of_an_arms_benchmarks_that_have_it() -> None:
    base = undecided(judgements.imported(), 2, 0.95)
    (head,) = base.headlines
    longer = undecided(judgements.imported(), 6, 0.95).headlines[0]
    assert head.arm != "other"
    heads = [replace(head, benchmark=name) for name in ("osu_bw", "hpl")]
    others = [replace(longer, benchmark="qe"), replace(head, arm="other")]
    steps = advice.next_steps(replace(base, headlines=(*heads, *others)))
    reported = [step.partition(": ")[0] for step in steps]
    assert reported == [
        f"Undecided (osu_bw, hpl, {head.arm})",
        f"Undecided (qe, {head.arm})",
        f"Undecided ({head.benchmark}, other)",
    ]


def test_too_few_blocks_of_a_study_are_shown_its_first_look_with_an_interval() -> None:
    base = judgements.two_arms()
    assert base.looks[:2] == (8, 12)
    for level, fewest in ((0.987, 8), (0.9935, 12)):
        (step,) = advice.next_steps(undecided(base, 5, level))
        assert f"at least {fewest} blocks (5 so far). See why the others failed" in step
    settings = replace(base.study.settings, budget_s=60.0)
    hurried = replace(base, study=replace(base.study, settings=settings))
    (step,) = advice.next_steps(undecided(hurried, 5, 0.987, needed=70))
    assert "here about 70. Set blocks = 70 and raise the budget under [plan]" in step


@pytest.mark.parametrize("level", [0.95, 0.975, 0.99])
def test_too_few_blocks_of_a_monitored_study_are_shown_the_fewest_of_a_bet(level: float) -> None:
    fewest = next(n for n in range(1, 40) if confidence_sequence([0.1] * n, level).low > 0)
    (step,) = advice.next_steps(undecided(judgements.monitor(), 5, level))
    assert f"takes at least {fewest} blocks" in step


def test_long_texts_are_cut_and_say_so() -> None:
    assert wording.clean("x" * 9000).endswith("x [cut]")
