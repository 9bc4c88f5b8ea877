"""The pages of studies that go on: a monitored one, and one that waits, in a real browser."""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from browser import PROGRAM
from paribus.cli import outputs
from paribus.core import Case, Outcome, Sample, State
from paribus.judge.conclude import judged
from paribus.plan import read_plan
from paribus.store import Board, Store
from paribus.web.found import find
from paribus.web.summaries import summary
from serving import served, visiting
from study_directories import write_directory

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium on this machine")

MONITORED = """\
question = "Does it stay as fast?"
factor = "nothing"
[arms.a]
[arms.b]
[[benchmarks]]
name = "command"
argv = ["sleep", "0.05"]
[plan]
monitor = true
seed = 1
"""


def block_more(directory: Path, block: int) -> None:
    """Append a block to a study of write_directory, of launches that all take 3 us."""
    plan = read_plan(directory)
    with Store(directory, write=True) as store:
        for number, some in enumerate(plan.blocks()):
            if number == block:
                for launch in some:
                    samples = tuple(
                        Sample("latency", Case.of(bytes=size), (3.0,)) for size in (8, 65536)
                    )
                    at = 1.7e9 + launch.number
                    store.append(launch, Outcome(State.OK, at, 0.5, 0, ("x",), samples))
                return


def caption(page: Any) -> str:
    return str(page.locator("#report dd", has_text="launches in").inner_text())


def test_a_monitored_study_shows_its_history_and_grows(tmp_path: Path) -> None:
    """An effect of 10 % that became 25 % at block 21; then a block while somebody looks."""
    directory = write_directory(
        tmp_path / "week",
        {"host": 1.0, "bridged": 1.1},
        seed=3,
        blocks=40,
        since=21,
        then={"host": 1.0, "bridged": 1.25},
        monitor=True,
        most=10_000,
    )
    outputs.write_files(judged(directory), directory)
    with served(tmp_path) as one, visiting() as page:
        page.goto(one.link())
        assert re.search(r"slower\s+1\.25", page.locator("tbody").inner_text())
        page.get_by_role("link", name="Which?").click()
        page.wait_for_selector("html[data-drawn]")
        page.get_by_text("the ratio moved").first.click()
        shown = page.locator("#report").inner_text()
        assert "monitoring, verdicts so far" in shown
        assert "the effect itself has changed (noticed at block 35" in shown
        assert "Blocks 1 to 20 slower, 1.10" in shown
        figure = page.get_by_role("figure", name=re.compile("as more blocks came"))
        assert figure.locator("svg").count() == 1
        assert "80 launches in" in caption(page)
        block_more(directory, 41)
        page.wait_for_selector("html[data-version]", timeout=60_000)
        assert "82 launches in" in caption(page)
        assert figure.locator("svg").count() == 1
        assert page.complaints == []


@pytest.mark.slow
def test_a_monitored_study_is_started_stopped_and_resumed(tmp_path: Path) -> None:
    with served(tmp_path) as one, visiting() as page:
        page.goto(one.link())
        page.get_by_role("link", name="New study").click()
        page.wait_for_selector("#start:enabled")
        page.get_by_label("Study file").fill(MONITORED)
        page.get_by_label("Name").last.fill("stays")
        page.wait_for_selector("#start:enabled")
        page.get_by_role("button", name="Start").click()
        page.wait_for_url("**/studies/*/", timeout=60_000)
        page.wait_for_selector(".live[data-running='true']")
        page.wait_for_selector("html[data-version]", timeout=60_000)
        assert "monitoring, verdicts so far" in page.locator("#report").inner_text()
    with served(tmp_path) as one, visiting() as page:  # the server started again: it goes on
        page.goto(one.link())
        assert page.locator(".state", has_text="running").is_visible()
        page.get_by_role("link", name="Does it stay as fast?").click()
        page.wait_for_selector(".live[data-running='true']")
        page.get_by_role("button", name="Stop", exact=True).click()
        page.get_by_role("button", name="Stop the study").click()
        page.get_by_text("interrupted (exit code 130)").wait_for(timeout=60_000)
        first = count_in(tmp_path / "stays.study")
        page.get_by_role("button", name="Resume").click()
        page.locator("#now .blocks").wait_for(timeout=60_000)
        assert page.locator("#progress").inner_text() == "running, without a planned end"
        page.get_by_role("button", name="Stop", exact=True).click()
        page.get_by_role("button", name="Stop the study").click()
        page.get_by_text("interrupted (exit code 130)").wait_for(timeout=60_000)
        assert count_in(tmp_path / "stays.study") > first
        page.get_by_role("link", name="Studies").click()
        assert page.get_by_text("interrupted", exact=True).is_visible()
        assert page.complaints == []


def count_in(directory: Path) -> int:
    with Store(directory) as store:
        return sum(1 for _ in store.launches(samples=False))


def test_a_study_that_waits_is_listed_with_what_it_waits_for(tmp_path: Path) -> None:
    directory = tmp_path / "queued"
    directory.mkdir()
    with Board(directory) as board:
        board.wait("job 7 for arm p: PENDING (Resources)")
        [found] = find([tmp_path]).found.values()
        assert summary(found).state == "running"
        with served(tmp_path) as one, visiting() as page:
            page.clock.install()
            page.goto(one.link())
            assert "job 7 for arm p: PENDING (Resources)" in page.locator("main").inner_text()
            board.wait("job 7 for arm p: PENDING (Priority)")
            page.clock.fast_forward(31_000)
            page.get_by_text("PENDING (Priority)").wait_for()
            page.get_by_role("link", name="queued").click()
            page.get_by_text("PENDING").wait_for()
            assert "Not begun yet" in page.locator("#report").inner_text()
            assert page.get_by_role("button", name="Stop", exact=True).is_enabled()
            page.locator('a[href="launches/"]').click()
            assert "no launch" in page.locator("main").inner_text().lower()
    assert find([tmp_path]).found == {}  # nothing of it is there, and nobody


def test_the_page_of_a_study_that_was_stopped_while_it_waited_stays(tmp_path: Path) -> None:
    """Of such a study nothing is left but what it printed: there is no report to ask for."""
    directory = tmp_path / "queued"
    directory.mkdir()
    with ExitStack() as study:
        study.enter_context(Board(directory)).wait("job 7 for arm p: PENDING (Resources)")
        with served(tmp_path) as one, visiting() as page:
            page.goto(one.link())
            page.get_by_role("link", name="queued").click()
            page.get_by_text("Not begun yet").wait_for()
            study.close()
            page.get_by_text("ended (exit code 0)").wait_for()
            page.wait_for_timeout(2_500)  # it looks every second
            assert page.complaints == []


@pytest.mark.slow  # the link must last until both pages are open
def test_a_page_says_that_it_is_no_longer_up_to_date(tmp_path: Path) -> None:
    write_directory(tmp_path / "s", {"a": 1.0, "b": 1.1})
    stale = "This page is no longer up to date: reload it, or sign in again."
    with served(tmp_path, "--share", "20 s") as one, visiting() as page:
        page.goto(one.looking.get(timeout=20))
        hosts = page.context.new_page()
        hosts.goto(f"{page.url}hosts/")
        page.get_by_role("link", name="Which?").click()
        page.get_by_text("not running").wait_for()
        for open_one in (page, hosts):
            open_one.get_by_text(stale).wait_for(timeout=60_000)
