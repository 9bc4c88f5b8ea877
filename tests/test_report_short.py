"""The report on a terminal: a picture of the answer, in one direction, on one screen."""

from __future__ import annotations

import io
import json
import math
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

import judgements
from paribus.cli import outputs
from paribus.core import (
    Comparison,
    Finding,
    Judgement,
    Notice,
    NoticeName,
    Reason,
    Word,
    format_ratio,
    slowness,
)
from paribus.report.effects import BAR, Effect, bar, effects, place, reach
from paribus.report.lookup import case_findings, nothing_came
from paribus.report.printing import ROOM
from paribus.report.short import print_short
from paribus.report.wording import has_interval
from paribus.words.notices import CONSEQUENCES
from paribus.words.study import sentence, summary
from paribus.words.values import consequences, warnings
from paribus.words.verdicts import why_held
from processes import on_a_terminal
from studies import command

EVERY = judgements.ALL | judgements.MORE


class Utf8(io.StringIO):
    encoding = "utf-8"


class Ascii(io.StringIO):
    encoding = "ascii"


def printed(judgement: Judgement, width: int = 80, *, utf8: bool = True) -> list[str]:
    file = Utf8() if utf8 else Ascii()
    print_short(judgement, Console(file=file, width=width))
    return file.getvalue().splitlines()


def of_nine() -> Judgement:
    """Return the demo with nine benchmarks, figures that take room, and many warnings."""
    base = judgements.two_arms()
    names = ("latency", "message_rate", "barrier", "triad", "ep", "cg", "bcast", "alltoall", "is")
    heads = tuple(replace(base.headlines[i % 5], benchmark=name) for i, name in enumerate(names))
    spread = heads[1].reference_value
    assert spread is not None
    rate = replace(heads[1].metric, unit="msg/s")
    wide = (replace(spread, median=2_050_000.0), replace(spread, median=138_000.0))
    heads = (
        heads[0],
        replace(heads[1], metric=rate, reference_value=wide[0], arm_value=wide[1]),
        *heads[2:],
    )
    clock = Notice(NoticeName.CLOCK_SET, "warning", figures={"jumps_s": [-3.2]})
    made = [n for n in judgements.troubled().notices if n.level == "warning"]
    return replace(base, headlines=heads, notices=(*made, *made, clock)[:9])


def test_an_end_that_is_not_known_reaches_the_edge() -> None:
    """A bar that ended at the ratio would seem to leave out 1."""
    head = judgements.two_arms().headlines[0]
    assert head.comparison is not None
    far = replace(head.comparison, ratio=1.2, low=0.0, high=1.4)
    shown = [Effect(replace(head, comparison=far), far)]
    drawn = bar(shown[0], reach(shown), 21)
    assert set(drawn[:11]) == {"━"}, "1 is in it"
    other = Effect(head, replace(far, low=1.1, high=math.inf))
    assert bar(other, reach([other]), 21).endswith("━")


def test_nine_benchmarks_fit_on_a_screen() -> None:
    judgement = of_nine()
    lines = printed(judgement)
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    rows = {line.split()[0]: line for line in lines if "●" in line}
    assert list(rows) == [head.benchmark for head in judgement.headlines]
    assert rows["message_rate"].endswith("2.05 M → 138 k msg/s")
    assert any(line.startswith("6 more (") for line in lines)


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", EVERY)
def test_every_judgement_fits(name: str, width: int) -> None:
    lines = printed(EVERY[name](), width)
    assert max(map(len, lines)) <= width or name == "hostile"
    assert len(lines) <= 26
    assert all(c.isprintable() for line in lines for c in line)


@pytest.mark.parametrize("name", EVERY)
def test_an_ascii_terminal_gets_the_same(name: str) -> None:
    judgement = replace(EVERY[name](), directory="")
    assert not [c for line in printed(judgement, utf8=False) for c in line if c in "▲▼×–…→┊━●│"]


@pytest.mark.parametrize("name", EVERY)
def test_all_rows_have_one_direction(name: str) -> None:
    judgement = EVERY[name]()
    text = "\n".join(printed(judgement, 200))
    far = reach(effects(judgement))
    for one in effects(judgement):
        known = one.finding.comparison
        if one.times is None or known is None:
            continue
        turned = one.finding.metric.better == "higher"
        assert one.times.ratio == pytest.approx(1 / known.ratio if turned else known.ratio)
        assert one.times.low <= one.times.ratio <= one.times.high
        assert format_ratio(one.times.ratio) in text
        at, middle = bar(one, far).find("●"), BAR // 2
        if one.finding.verdict.word is Word.SLOWER and has_interval(one.times):
            assert one.times.low > 1 + one.finding.margin * 0.99
            assert at > middle
        if one.finding.verdict.word is Word.FASTER and has_interval(one.times):
            assert at < middle


def test_an_interval_that_is_open_on_one_side_stays_so() -> None:
    head = judgements.two_arms().headlines[1]
    assert head.metric.better == "higher"
    for low, high in ((0.0, 0.8), (0.5, float("inf"))):
        turned = slowness(replace(head, comparison=Comparison(9, 0.7, low, high, 0.95)))
        assert turned is not None
        assert (turned.low, turned.high) == (
            0.0 if high == float("inf") else 1 / high,
            float("inf") if low == 0 else 1 / low,
        )


def test_the_margin_has_one_place_whatever_its_size() -> None:
    for margin in (0.01, 0.05, 0.2):
        assert place(1 + margin, margin) == pytest.approx(1)
        assert place(1 / (1 + margin), margin) == pytest.approx(-1)
    assert place(1.0, 0.05) == 0
    assert place(15.0, 0.02) > place(2.0, 0.02) > place(1.1, 0.02) > 1


def test_too_few_launches_are_said_to_be_too_few() -> None:
    judgement = judgements.incomplete()
    lines = printed(judgement)
    assert lines[0].startswith("bridged has too few launches in all 5 benchmarks (largest so far:")
    assert "barrier, 1.207x" in " ".join(lines[:2])
    rows = [line for line in lines if "10/16 launches" in line]
    assert len(rows) == 5
    assert all("… too few" in row and "undecided" not in row for row in rows)
    assert {one.kind for one in effects(judgement)} == {"few"}
    assert {one.kind for one in effects(judgements.two_arms()) if not one.few} > {"slower"}


def test_a_sentence_begins_with_what_was_found() -> None:
    """Also with a figure that does not decide; names of arms stay as they are."""
    held = judgements.withheld().headlines[0]
    slower = next(f for f in judgements.two_arms().headlines if f.verdict.word is Word.SLOWER)
    aside = replace(held, verdict=slower.verdict)
    said = sentence([held], [aside])
    assert said.startswith("bridged is slower in latency")
    assert said.endswith("; no verdict for bridged in latency latency: cpu.governor differs.")
    assert sentence([held]).startswith("No verdict for bridged")


def test_a_summary_counts_and_names_the_largest_effect() -> None:
    base = judgements.two_arms()
    said = summary(base.sentence, base.headlines)
    assert said == (
        "bridged is slower in 3 of 5 benchmarks (most in barrier, 1.229x), equivalent in triad, "
        "undecided in allreduce."
    )
    assert summary("b is slower in a.", base.headlines) == "b is slower in a."
    logs = judgements.logs()
    assert summary(logs.sentence, logs.headlines) == (
        "arm new is slower in osu_latency (datatype MPI_CHAR) (1.064x), unless the machine changed"
        " between 2025-11-21 00:00 and 2025-11-22 01:50; without a verdict in imb_pingpong (one"
        " launch each); too few launches in osu_latency (datatype MPI_INT) (so far 1.060x slower)."
    ), "a reservation is never cut"
    three = judgements.three_arms()
    many = [replace(h, arm=f"arm{i}") for i in range(5) for h in three.headlines[:2]]
    assert summary("x" * 200, many).endswith("; 2 more arms.")


def test_a_terminal_gets_the_short_report_and_a_pipe_the_full_one(
    tmp_path: pytest.TempPathFactory,
) -> None:
    directory = str(tmp_path)
    judgement = replace(judgements.two_arms(), directory=directory)
    outputs.write_files(judgement, tmp_path)  # type: ignore[arg-type]
    shown = {}
    for option in ("", "--full", "--brief", "--json"):
        words = command("report", directory, *filter(None, [option]))
        piped = subprocess.run(words, capture_output=True, text=True, check=False).stdout
        code, drawn = on_a_terminal(words, Path(), errors=sys.stderr, NO_COLOR="1", COLUMNS="80")
        assert code == 0
        shown[option] = (drawn, piped)
    reported, piped = shown[""]
    assert "●" in reported
    assert len(reported.splitlines()) <= 24
    assert f"{directory}/report.html" in reported.replace("\n", "")
    assert "Other endpoints" in piped
    assert "●" not in piped
    for option in ("--brief", "--json"):
        assert _plain(shown[option][0]) == shown[option][1]
    assert "Other endpoints" in shown["--full"][0]
    assert shown["--full"][1] == piped


def _plain(text: str) -> str:

    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.mark.parametrize("name", sorted(EVERY))
def test_what_disturbs_is_said_or_that_nothing_does(name: str) -> None:
    """A screen names a warning, a fact that differs, or says that there is neither."""
    judgement = EVERY[name]()
    text = "\n".join(printed(judgement, 100))
    warned = warnings(judgement)
    differ = any(one.kind == "unexplained" for one in judgement.differences)
    quiet = bool(judgement.headlines) and not (warned or differ or nothing_came(judgement))
    assert ("No warnings" in text) == quiet
    assert all(consequences(one) for one in warned)
    assert sorted(map(id, warned)) == sorted(
        id(one) for one in judgement.notices if one.level == "warning"
    )


def test_every_warning_has_a_consequence() -> None:
    """But those that withhold by a reason, which they name."""
    schema = json.loads((Path(__file__).parents[1] / "docs/verdict-schema.json").read_text())
    every = schema["$defs"]["notice"]["properties"]["name"]["oneOf"]
    named = {NoticeName(one["const"]) for one in every if "warning" in one["title"]}
    by_reason = {NoticeName.WORK_DIFFERS, NoticeName.LAUNCHES_FAILED, NoticeName.REPEATS_UNCLEAR}
    assert len(named) > 25
    assert named - by_reason <= {*CONSEQUENCES}


def test_a_mean_of_cases_that_are_far_apart_has_both_ends() -> None:
    """Where cases differ 1.5-fold, and not by chance, their mean stands for none of them."""
    whole = judgements.two_arms()
    head = whole.headlines[0]
    cases = [one for one in case_findings(whole, head) if one.comparison]
    assert len(cases) > 1

    def with_ratio(one: Finding, ratio: float, wide: float) -> Finding:
        assert one.comparison
        known = replace(one.comparison, ratio=ratio, low=ratio / wide, high=ratio * wide)
        return replace(one, comparison=known)

    for apart, wide, there in ((1.4, 1.01, False), (8.0, 1.01, True), (8.0, 3.0, False)):
        unlike = tuple(with_ratio(o, apart if o is cases[0] else 1.0, wide) for o in cases)
        alone = replace(whole, headlines=(head,), cases=unlike, lenses={})
        text = "\n".join(printed(alone, 100))
        assert (f"{head.benchmark}: 1.000x (" in text) == there
        assert (f" to {format_ratio(apart)}x ({cases[0].case})" in text) == there
        crowded = replace(alone, headlines=(head,) * ROOM)
        assert f"{head.benchmark}: 1.000x (" not in "\n".join(printed(crowded, 100))


def test_what_left_logs_out_gives_way_to_what_may_be_the_cause() -> None:
    base = judgements.two_arms()
    left_out = Notice(NoticeName.NOT_READ, "warning", figures={"all": [], "number": 0})
    cause = next(n for n in judgements.troubled().notices if n.name is NoticeName.TRANSPORTS_DIFFER)
    withheld = Notice(NoticeName.COPIES, "warning", ("cg",), {"code": "logs_copied", "groups": []})
    several = replace(base, notices=(left_out, cause, withheld))
    assert warnings(several) == [withheld, cause, left_out]


def test_a_sentence_names_the_fact_that_withholds() -> None:
    found = judgements.withheld()
    assert found.sentence == "No verdict for bridged in latency and barrier: cpu.governor differs."
    heads = [h for one in "abcdef" for h in (replace(found.headlines[0], benchmark=one * 20),)]
    assert summary(sentence(heads), heads) == (
        "bridged is without a verdict in all 6 benchmarks (cpu.governor differs)."
    )
    several = {"facts": ["a", "b", "c"]}
    assert why_held(Reason.UNEXPLAINED_DIFFERENCES, several) == "a, b and 1 more differ"
    of_old = why_held(Reason.UNEXPLAINED_DIFFERENCES, {})
    assert of_old == "the arms differ in more than the factor"
