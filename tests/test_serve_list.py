"""The list of `paribus serve`: what needs somebody first, narrowed, sorted, two to be compared."""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path

import pytest

from browser import PROGRAM
from paribus.store import Board, Effect
from paribus.web.found import find
from paribus.web.overview import SQUARES, overview
from paribus.web.summaries import Summaries
from serving import Served, visiting
from study_directories import write_directory

needs_browser = pytest.mark.skipif(PROGRAM is None, reason="no Chromium on this machine")


def listed(five_served: Served, query: str = "") -> list[str]:
    """Return the names of the studies in their order, as a browser without scripts shows them."""
    text = five_served.ask(f"/{query}", Cookie=five_served.cookie).data.decode()
    return re.findall(r"<small>([a-z]+)</small></div></th>", text)


def test_what_needs_somebody_comes_first(five_served: Served) -> None:
    assert listed(five_served) == ["runs", "cut", "kernels", "june", "may"]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("?state=ended", ["kernels", "june", "may"]),
        ("?verdict=slower", ["june", "may"]),
        ("?factor=kernel", ["kernels"]),
        ("?text=BRIDGED", ["june", "may"]),
        ("?text=barrier&verdict=faster", ["kernels"]),
        ("?host=n1&text=cut", ["cut"]),
        ("?host=n2", []),
        ("?sort=effect", ["cut", "may", "kernels", "june", "runs"]),
        ("?sort=nonsense&rows=-1", ["runs", "cut", "kernels", "june", "may"]),
    ],
)
def test_the_list_is_narrowed_and_sorted(five_served: Served, query: str, names: list[str]) -> None:
    assert listed(five_served, query) == names


def test_squares_and_bars_are_of_one_direction(five_served: Served) -> None:
    """A rate of half is twice as slow: right of the middle, as every effect that is worse."""
    text = five_served.ask("/?text=cut", Cookie=five_served.cookie).data.decode()
    assert 'title="latency b: too few 2.000"' in text
    assert float(re.search(r'<circle class="\w+" cx="([\d.]+)%"', text)[1]) > 50
    text = five_served.ask("/?text=kernels", Cookie=five_served.cookie).data.decode()
    assert text.count('class="square faster"') == 2
    assert float(re.search(r'<circle class="\w+" cx="([\d.]+)%"', text)[1]) < 50


@pytest.mark.parametrize("better", ["lower", "higher"])
def test_figures_that_nobody_measured_are_no_error(tmp_path: Path, better: str) -> None:
    """Whoever can write to a directory can write any figures into its state."""
    odd = (0.0, -1.0, 5e-324, 1e308, float("inf"), float("nan"), None)
    directory = write_directory(tmp_path / "s", {"a": 1.0, "b": 1.1})
    effects = [
        Effect("latency", "b", "slower", "", ratio, low, high, better)
        for ratio in odd
        for low in odd
        for high in odd
    ]
    with Board(directory) as board:
        board.say("x", effects)
        board.code = 130
    [found] = find([tmp_path]).found.values()
    one = Summaries().of(found)
    assert len(one.effects) == len(effects)
    assert f"+{len(effects) - SQUARES}" in overview([one], {"sort": "effect"})


@needs_browser
@pytest.mark.parametrize("width", [1440, 1000])
def test_a_row_has_40_px(five_served: Served, width: int) -> None:
    """And shows the name of its study whole, however long the question is."""
    with visiting(viewport={"width": width, "height": 900}) as page:
        page.goto(five_served.link())
        page.evaluate(
            "document.querySelectorAll('.asks a').forEach(a => a.append(' why'.repeat(99)))"
        )
        ends = page.evaluate(
            """[...document.querySelectorAll('.asks')].map(cell =>
            cell.getBoundingClientRect().right
            - cell.querySelector('small').getBoundingClientRect().right)"""
        )
        assert min(ends) >= 0
        heights = page.evaluate(
            "[...document.querySelectorAll('.studies tbody tr')].map((r) => r.offsetHeight)"
        )
        assert len(heights) == 5
        assert max(heights) <= 42
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@needs_browser
def test_studies_that_do_not_fit_are_disabled_with_the_reason(five_served: Served) -> None:
    with visiting() as page:
        page.goto(five_served.link())
        compare = page.locator("#compare")
        assert compare.is_disabled()
        page.get_by_label("Choose may").press("Space")
        other = page.get_by_label("Choose kernels")
        assert other.is_disabled()
        assert other.get_attribute("title") == "kernels has another factor than may"
        assert "has another factor" in page.locator("#reason").inner_text()
        assert compare.is_disabled()
        page.get_by_label("Choose june").check()
        assert compare.inner_text() == "Compare the 2 chosen"
        page.get_by_role("searchbox").fill("bridged")
        page.get_by_text("2 of 5 studies").wait_for()
        assert "text=bridged" in page.url
        assert page.get_by_label("Choose june").is_checked()
        compare.click()
        page.get_by_role("heading", name="From may to june", exact=True).wait_for()
        assert page.complaints == []


def test_a_thousand_studies_are_listed_in_300_ms(five_studies: Path, tmp_path: Path) -> None:
    """In processor time, of studies whose files have been read before."""
    for number in range(1000):
        (tmp_path / f"s{number}").mkdir()
        shutil.copy(five_studies / "may" / "verdict.json", tmp_path / f"s{number}")
    kept = Summaries()

    def shown() -> str:
        return overview([kept.of(one) for one in find([tmp_path]).found.values()], {})

    assert "1,000 studies" in shown()
    took = []
    for _ in range(3):
        begun = time.process_time()
        text = shown()
        took.append(time.process_time() - begun)
    assert min(took) < 0.3
    assert text.count("<tr>") == 101
    assert "900 more</a>" in text
