"""The queue of a real Slurm and a study that waits in it, in a real browser beside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from browser import PROGRAM
from paribus.core import UserError
from paribus.launch.background import interrupt
from processes import executable
from schedulers.slurm import Site
from schedulers.test_slurm import check_whole, run, site, study
from serving import served, visiting

__all__ = ["site"]  # the fixture

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium on this machine")

SCRIPT = "<script>document.title='taken'</script>"
TAKEN = ("sbatch", "--parsable", "--partition=p", "--nodes=2", "--exclusive", "--output=/dev/null")


@pytest.fixture
def studies(site: Site, tmp_path: Path) -> Iterator[Path]:
    """Return a folder of studies; none of them runs or waits after the test."""
    folder = tmp_path / "studies"
    folder.mkdir()
    yield folder
    for directory in folder.glob("*.study"):
        with suppress(UserError):
            interrupt(directory)
    for line in site.jobs():
        site.ask("scancel", line.split()[0])
    site.until(lambda: site.jobs() == [])


@pytest.fixture
def browser(site: Site, tmp_path: Path) -> Path:
    """Return a Chromium in the network of the site, where the server listens."""
    return executable(tmp_path / "chromium", f'exec {" ".join(site.prefix)} {PROGRAM} "$@"')


@pytest.mark.slow
def test_the_queue_is_as_it_is_now(site: Site, studies: Path, browser: Path) -> None:
    with served(studies, prefix=site.prefix, env=site.env) as one, visiting(browser) as page:
        page.goto(one.link())
        page.get_by_role("link", name="Hosts and jobs").click()
        page.get_by_text("No job of this user.").wait_for()
        runs = site.ask(*TAKEN, f"--job-name={SCRIPT}", "--wrap=sleep 300").strip()
        waits = site.ask(*TAKEN, "--wrap=sleep 300").strip()
        try:
            page.get_by_role("row", name=f"{waits} wrap PENDING").wait_for()
            shown = page.get_by_role("row", name=f"{runs} {SCRIPT}").inner_text()
            assert "RUNNING" in shown
            assert "h1, h2" in shown
            assert page.title() != "taken"
            site.ask("scancel", runs)
            page.get_by_role("row", name=f"{waits} wrap RUNNING").wait_for()
            site.controller.end()
            said = "Slurm does not list its jobs on this host: "
            page.get_by_text(said).wait_for(timeout=60_000)
        finally:
            site.restart_controller()
        page.get_by_role("row", name=f"{waits} wrap RUNNING").wait_for(timeout=90_000)
        site.ask("scancel", waits)
        page.get_by_text("No job of this user.").wait_for(timeout=90_000)
        assert page.complaints == []


@pytest.mark.slow
def test_a_study_waits_in_the_queue_and_goes_on(
    site: Site, tmp_path: Path, studies: Path, browser: Path
) -> None:
    """Started from the form while its nodes are taken, and stopped: none of its jobs stays."""
    text = study(tmp_path, nodes=2).read_text()
    taken = site.ask(*TAKEN, "--wrap=sleep 300").strip()
    with served(studies, prefix=site.prefix, env=site.env) as one, visiting(browser) as page:
        page.goto(one.link())
        page.get_by_role("link", name="New study").click()
        start(page, text, "mine")
        page.get_by_text("submitted job").wait_for()
        page.get_by_role("link", name="Hosts and jobs").click()
        page.get_by_role("row", name="PENDING: Resources").get_by_role("link").click()
        page.get_by_text("for arm p: PENDING").wait_for()
        assert "Not begun yet" in page.locator("#report").inner_text()
        page.get_by_role("button", name="Stop", exact=True).click()
        page.get_by_role("button", name="Stop the study").click()
        page.get_by_text("interrupted (exit code 130)").wait_for(timeout=60_000)
        site.until(lambda: [line.split()[0] for line in site.jobs()] == [taken])
        page.get_by_role("link", name="New study").click()
        start(page, text, "again")
        page.get_by_text("submitted job").wait_for()
        site.ask("scancel", taken)
        page.wait_for_url("**/studies/*/", timeout=90_000)
        page.get_by_text("ended (exit code").wait_for(timeout=90_000)
        page.get_by_role("link", name="Hosts and jobs").click()
        host = page.locator("details.host", has_text="h3")  # of which there is one
        host.locator("summary").click()
        host.get_by_text("again.study, as q").wait_for()
        page.get_by_text("No job of this user.").wait_for()
        assert page.complaints == []
    check_whole(studies / "again.study")


def test_a_study_whose_own_job_is_gone_waits_no_more(
    site: Site, studies: Path, browser: Path
) -> None:
    study(studies, nodes=1)
    words = ("--detach", "--detach-option=--partition=p", "--detach-option=--hold")
    run(site, studies, "run", "study.toml", "--out", "out", *words, code=0)
    [job] = [line.split()[0] for line in site.jobs()]
    with served(studies, prefix=site.prefix, env=site.env) as one, visiting(browser) as page:
        page.goto(one.link())
        row = page.get_by_role("row", name="out")
        assert f"in the queue as job {job}" in row.inner_text()
        assert row.locator(".state").inner_text() == "in a queue"
        page.get_by_role("link", name="Hosts and jobs").click()
        page.get_by_role("row", name=f"{job} paribus-").get_by_role("link", name="out").click()
        site.ask("scancel", job)
        site.until(lambda: site.jobs() == [])
        page.get_by_role("link", name="Studies").click()
        row.locator(".state", has_text="did not begin").wait_for(timeout=60_000)
        assert f"job {job} has ended, and the study did not begin" in row.inner_text()
        row.get_by_role("link", name="out").click()
        page.locator("#progress", has_text=f"job {job} has ended").wait_for(timeout=60_000)


def start(page: Any, text: str, name: str) -> None:
    """Start a study from its text on the page of a new one."""
    page.wait_for_selector("#start:enabled")
    page.get_by_label("Study file").fill(text)
    page.get_by_label("Name").last.fill(name)
    page.wait_for_selector("#start:enabled")
    page.get_by_role("button", name="Start").click()
