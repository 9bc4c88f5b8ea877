"""The pages on statistics say what the code does: constants, names, figures, pictures."""

from __future__ import annotations

import math
import re
from pathlib import Path
from statistics import NormalDist
from typing import cast

import numpy as np
import pytest

import draw_statistics
import pictures.few
from calibrate_few import AWAY, TOWARDS
from paribus.core import Settings, Word
from paribus.designs.auto import EXPENSIVE_S
from paribus.designs.sessions import FIRST_LOOK
from paribus.judge import cases, notices
from paribus.launch import pilot
from paribus.plan import frozen as plan
from paribus.stats import (
    drift,
    estimate,
    family,
    few,
    iterations,
    outliers,
    probes,
    reliability,
    sessions,
    states,
    summary,
    ties,
    verdict,
)
from paribus.stats.looks import LEVELS, LONGER, LOOKS, schedule
from pictures import protocols, recorded
from pictures.style import excludes_one
from validation import few_studies
from validation.controls import averaged_protocol_error, peeking_error
from validation.studies import MARGIN, any_look_error, ended, right_word, study

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "docs" / f"{name}.md" for name in ("statistics", "statistics-details", "notices")]
TEXT = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
PLAIN = re.sub(r"\s+", " ", TEXT)
STUDIES = protocols.STUDIES


def listed(numbers: tuple[int, ...]) -> str:
    *first, last = map(str, numbers)
    return f"{', '.join(first)} and {last}"


def percent(share: float) -> str:
    return f"{share * 100:g} %"


LEVEL = schedule(Settings().blocks).level

CONSTANTS = (
    f"after **{listed(LOOKS)}** complete",
    f"**{(1 - LEVEL) * 100:.1f} %** (a level of {LEVEL:.4f})",
    f"; {listed(LONGER)} follow",
    f"confidences of {' and '.join([', '.join(f'{c * 100:.0f}' for c in [0.90, 0.95]), '99'])} %",
    f"fewer than {LOOKS[0]} blocks no verdict",
    f"fixed before the first launch: {percent(MARGIN)}",
    f"at least {percent(plan.P99_MARGIN)} for a p99",
    f"Up to {estimate.EXACT_UP_TO} blocks the distribution is exact",
    f"fails in more than {percent(reliability.MOST_FAILING)} of the blocks",
    f"McNemar test on blocks, p < {reliability.LEVEL:.2f}".replace("0.05", ".05"),
    f"when {percent(cases.DECIDED_SHARE)} of its cases are too",
    f"with {family.LEAST_FOR_SHARE} cases or more by Benjamini and Hochberg",
    f"from {family.FLIPS:,} draws",
    f"its p99 (from {summary.LEAST_SAMPLES['p99']} samples on)",
    f"in two clusters, from {states.LEAST_LAUNCHES} launches on",
    f"at least {states.LEAST_IN_STATE} launches on each side of a gap",
    f"a gap that is {states.GAP:g} times as wide",
    f"at least {percent(round(math.expm1(states.LEAST_APART), 9))} apart",
    f"by {percent(probes.LEAST_DIFFERENCE)} or more with a {percent(probes.CONFIDENCE)} interval",
    f"at most {percent(probes.REDO_MOST)} of the blocks, and blind",
    f"more than {percent(reliability.MOST_CENSORED)} of an arm's launches",
    f"Of {drift.LEAST_LAUNCHES} launches or more the rank autocorrelation",
    f"launches {drift.LAGS[0]} to {drift.LAGS[-1]} apart",
    f"Of {outliers.LEAST_LAUNCHES} launches or more one is over",
    f"over {percent(notices.NOTABLE_INTERFERENCE)} of the samples took over",
    f"of the samples took over {summary.INTERFERENCE:g} times the median",
    f"switched to fewer than {sessions.LEAST_SWITCHES} times",
    f"the first look comes after {FIRST_LOOK},",
    f"switched {sessions.LEAST_SWITCHES} times in each direction",
    f"over {percent(ties.TIED_LIMIT)} of the blocks give the same ratio",
    f"a pilot of {pilot.ROUNDS} rounds",
    f"at least {iterations.LEAST}, at most what costs {percent(iterations.SHARE)} of the launch",
    f"*Looks* after {listed(few.LOOKS)} blocks",
    f"where a warm-up launch takes over {EXPENSIVE_S / 60:g} min",
    f"more than exp({few.UNEVEN:g} / sqrt(n - 1)) apart",
    f"({math.exp(few.UNEVEN / math.sqrt(few.START - 1)):.1f}-fold after {few.START} blocks",
    f"Of the 5 %, {percent(AWAY)} are for ends away from a",
    f"ratio of 1 and {percent(TOWARDS)} for ends towards it",
    f"against which nobody has won {2 / (1 - Settings().confidence):.0f}-fold",
)


@pytest.mark.parametrize("phrase", CONSTANTS)
def test_constants_are_those_of_the_code(phrase: str) -> None:
    assert phrase in PLAIN


def test_constants_that_are_words() -> None:
    assert ties.SMALL == 0.25
    assert "is over a quarter of the margin" in PLAIN
    assert tuple(LEVELS) == (0.90, 0.95, 0.99)
    z = NormalDist().inv_cdf((1 + verdict.TYPICAL_CONFIDENCE) / 2) + 1.645
    assert f"n = 4 + {math.ceil(math.pi / 3 * z**2)} (sigma / Delta)^2" in PLAIN
    assert round(verdict.TYPICAL_CONFIDENCE, 3) == round(1 - LEVEL, 3)
    source = (ROOT / "src/paribus/launch/execute.py").read_text()
    limits = (ROOT / "src/paribus/launch/execute.py").read_text()
    assert "max(10.0, 20 * max(first.values()))" in limits
    assert "20 times the slowest warm-up launch and at least 10 s" in PLAIN
    assert "> REDO_MOST * number" in source


def test_every_verdict_is_on_the_page() -> None:
    assert {word.value for word in Word if f"**{word.value}**" not in PLAIN} == set()


def test_all_twelve_rules_are_there() -> None:
    rows = re.findall(r"^\| (\d+)\. [^|]+ \| ([^|]+) \|$", TEXT, re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, 13))


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", TEXT):
        assert (ROOT / "docs" / target).is_file(), target
    for path in set(re.findall(r"`((?:tools|tests|src)/[\w./]+)`", TEXT)):
        assert (ROOT / path).exists(), path
    for path in set(re.findall(r"`((?:stats|report)/\w+\.py)`", TEXT)):
        assert (ROOT / "src" / "paribus" / path).is_file(), path


# --- figures -------------------------------------------------------------------------------------


def row_of(start: str) -> list[str]:
    """Return the cells of the one table row that begins with `start`."""
    (line,) = [line for line in TEXT.splitlines() if line.startswith(f"| {start}")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def numbers(cell: str) -> list[float]:
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?", cell)]


@pytest.mark.parametrize(
    "name", ["N1", "N2", "Drift", "Sticky", "Steps", "Alternating", "Bimodal", "Recorded"]
)
def test_errors_by_protocol(name: str) -> None:
    _, ours, theirs = row_of(f"{name}:" if name != "Recorded" else "Recorded launches")
    assert numbers(ours)[0] == pytest.approx(100 * any_look_error(study(name, STUDIES)), abs=1.2)
    if name == "Alternating":
        assert not theirs
        return
    launches = (100,) if name == "Recorded" else (10, 30, 100)
    for said, n in zip(numbers(theirs), launches, strict=False):
        found = 100 * averaged_protocol_error(name, 2000, n)
        assert said == pytest.approx(found, abs=0.51 if found > 10 else 0.06)


@pytest.mark.parametrize("effect", protocols.EFFECTS)
def test_cost(effect: float) -> None:
    cells = row_of(f"{effect * 100:g} % | ")[1:]
    for name, cell in zip(protocols.KINDS, cells, strict=True):
        blocks, right, averaged = numbers(cell)
        end = ended(name, STUDIES, effect)
        assert blocks == pytest.approx(end.blocks.mean(), abs=1.5)
        assert right == pytest.approx(100 * end.share(right_word(effect)), abs=3)
        other = protocols.averaged_right(name, STUDIES, effect)
        assert averaged == pytest.approx(100 * other, abs=3)
        wrong = set(Word) - {Word.UNDECIDED, right_word(effect)}
        assert end.share(*wrong) <= 0.0015  # the page: 0.04 % of 10,000


def test_shares_of_the_recorded_launches() -> None:
    windows = recorded.unit_windows(1)
    samples, launches = (
        100 * np.mean([excludes_one(one[which]) for one in windows]) for which in (0, 1)
    )
    assert f"{samples:.0f} % exclude a ratio of 1. With one median per launch {launches:.0f} %" in (
        PLAIN
    )
    _, apart, paired = recorded.runs()
    assert f"finds a difference in {100 * apart.mean():.0f} %, pairs in" in PLAIN
    assert f"pairs in {100 * paired.mean():.0f} %" in PLAIN


def test_peeking() -> None:
    assert abs(100 * peeking_error("N1", STUDIES) - 16) < 1.5
    assert "six looks at 5 % each err in 16 % of studies" in PLAIN
    assert "at most 0.04 % of these studies" in PLAIN


@pytest.mark.parametrize("effect", pictures.few.EFFECTS)
def test_cost_of_few_launches(effect: float) -> None:
    names, row = row_of("few launches | "), row_of(f"effect {effect * 100:g} % | ")
    cells = dict(zip(names, row, strict=True))
    for name in ("N1", "Recorded"):
        end = few_studies.ended(name, 1000, effect)
        right = few_studies.EQUAL if effect < MARGIN else few_studies.SLOWER
        blocks, share = map(float, cells[name].removesuffix(" %").split(" / "))
        assert end.blocks == pytest.approx(blocks, rel=0.06)
        assert abs(100 * end.share(right) - share) <= 4


# --- pictures ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", draw_statistics.PICTURES)
def test_pictures_are_what_the_tool_draws(name: str) -> None:
    text = (draw_statistics.FOLDER / f"{name}.svg").read_text(encoding="utf-8")
    drawn_from = draw_statistics.stamp(draw_statistics.specification(name))
    assert text.endswith(drawn_from), "stale: python tools/draw_statistics.py"
    assert len(text) < 40_000
    assert 'fill="white"' in text  # a background, for readers in the dark
    assert TEXT.count(f"](statistics/{name}.svg)") == 1


def test_no_other_pictures() -> None:
    files = {path.stem for path in draw_statistics.FOLDER.iterdir()}
    assert files == set(draw_statistics.PICTURES)


def test_drawing_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = (
        draw_statistics.write(tmp_path / folder, ["margin", "units"]) for folder in "ab"
    )
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()
        assert one.read_bytes().startswith(b"<svg")


def test_words_in_the_picture_of_the_margin_are_the_judges() -> None:
    spec = draw_statistics.PICTURES["margin"]()
    said = [cast(str, row["what"]) for row in spec["data"]["values"]]
    assert said == [
        *("faster", "equivalent", "equivalent", "undecided", "undecided", "undecided", "slower"),
    ]
