"""The launches of a study in the browser: narrowed, each with its value, its like, its samples."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from browser import PROGRAM
from paribus.cli import outputs
from paribus.core import Case, Metric, Sample, State
from paribus.judge.conclude import judged
from paribus.store import Store
from paribus.web import launches
from serving import Served, served, visiting
from studies import paribus
from study_directories import write_directory

needs_browser = pytest.mark.skipif(PROGRAM is None, reason="no Chromium on this machine")

FAILS = """\
question = "Why does it fail?"
factor = "nothing"
[arms.a]
[arms.b]
[[benchmarks]]
name = "command"
argv = ["sh", "-c", "echo reads; echo 'cannot open mesh.dat' >&2; exit 3"]
[plan]
blocks = 8
seed = 1
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    here = tmp_path_factory.mktemp("launches")
    labels = ("latency", "barrier")
    write_directory(here / "two", {"a": 1.0, "b": 1.2}, blocks=8, labels=labels, sizes=(4, 16))
    write_directory(here / "half", {"a": 1.0, "b": 1.0}, blocks=8, failing="b")
    for name in ("two", "half"):
        outputs.write_files(judged(here / name), here / name)
    return here


@pytest.fixture(scope="module")
def server(folder: Path):
    with served(folder) as one:
        one.cookie = one.enter()
        yield one


def shown(server: Served, name: str, query: str = "") -> list[list[str]]:
    """Return the cells of the list of launches, as a browser without scripts shows them."""
    path = f"/studies/{server.ident(name)}/launches/{query}"
    text = server.page(path)
    body = text.partition("<tbody>")[2].partition("</tbody>")[0]
    rows = re.findall(r"<tr>(.*?)</tr>", body, re.S)
    cells = [re.findall(r"<t[hd].*?>(.*?)</t[hd]>", row, re.S) for row in rows]
    return [[re.sub("<[^>]*>", "", cell) for cell in row] for row in cells]


@pytest.mark.parametrize(
    ("name", "query", "number"),
    [
        ("two", "", 36),
        ("two", "?benchmark=barrier", 18),
        ("two", "?benchmark=barrier&arm=b", 9),
        ("two", "?outcome=counted", 32),
        ("two", "?outcome=not counted&arm=a".replace(" ", "%20"), 2),
        ("half", "?outcome=failed", 9),
        ("half", "?outcome=failed&arm=a", 0),
        ("two", "?arm=nobody", 0),
        ("two", "?rows=10", 10),
        ("two", "?rows=x", 36),
    ],
)
def test_the_list_is_narrowed(server: Served, name: str, query: str, number: int) -> None:
    assert len(shown(server, name, query)) == number


def test_a_launch_has_its_value_and_its_second(server: Served, folder: Path) -> None:
    """Of two cases, of 4 and 16 bytes, the value is the geometric mean, the newest comes first."""
    rows = shown(server, "two")
    with Store(folder / "two") as store:
        every = list(store.launches(void=True))
    last = every[-1]
    small, large = (one.values[0] for one in last.outcome.samples)
    assert rows[0][0] == str(last.launch.number)
    value, unit = rows[0][4].split()
    assert float(value) == pytest.approx((small * large) ** 0.5, rel=0.01)
    assert unit == "us"
    after = last.outcome.started - every[0].outcome.started
    assert rows[0][6] == f"+{after:,.1f} s"
    assert rows[-1][6] == "+0.0 s"


@needs_browser
def test_the_time_line_leads_to_a_launch_and_that_to_its_like(server: Served) -> None:
    with visiting(permissions=["clipboard-read", "clipboard-write"]) as page:
        page.goto(server.link())
        page.goto(f"{page.url}studies/{server.ident('two')}/launches/")
        assert page.locator(".track a").count() == 36
        page.get_by_label("Benchmark", exact=True).select_option("barrier")
        page.get_by_text("18 of 36 launches").wait_for()
        assert "benchmark=barrier" in page.url
        page.locator(".track a").nth(5).dispatch_event("click")
        page.wait_for_url("**/launches/*-0/")
        title = page.locator("h1").inner_text()
        label, arm, block = re.fullmatch(r"(\w+), ([ab]), (.*)", title).groups()
        assert page.locator(".strip .far").count() == 1
        assert re.search(
            r"Times as slow as the median of its arm\s+(0\.9|1\.0)", page.inner_text("main")
        )
        page.get_by_role("button", name="Copy").click()
        page.get_by_role("button", name="Copied").wait_for()
        assert page.evaluate("navigator.clipboard.readText()") == "x"
        partner = page.get_by_role("link", name=re.compile("of the same block"))
        assert partner.count() == 1
        partner.click()
        other = "b" if arm == "a" else "a"
        page.get_by_role("heading", name=f"{label}, {other}, {block}", exact=True).wait_for()
        back = page.get_by_role("link", name=re.compile("of the same block"))
        assert back.inner_text() == f"{arm} of the same block"
        assert page.complaints == []


def test_a_failed_launch_shows_its_last_lines_first(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(FAILS)
    paribus("run", "study.toml", "--out", "out", cwd=tmp_path)
    with Store(tmp_path / "out") as store:
        assert next(iter(store.launches(void=True))).outcome.state is State.FAILED
    with served(tmp_path) as one:
        one.cookie = one.enter()
        path = f"/studies/{one.ident('out')}/launches/1-0/"
        text = one.page(path)
    last = text.index('class="wrapped failed" tabindex="0">cannot open mesh.dat')
    assert last < text.index("<h2>Command")
    assert text.count("cannot open mesh.dat</pre>") == 2


def test_no_extreme_of_many_samples_is_lost() -> None:
    values = [1.0 + 0.001 * (n % 7) for n in range(20_000)]
    values[777], values[15_001] = 9.0, 0.5
    metric = Metric("latency", "us", "lower")
    sample = Sample("latency", Case.of(bytes=8), values)
    text = launches.of_launch([sample], [metric])
    assert text.count("<circle") <= launches.MOST_DOTS
    heights = [float(y) for y in re.findall(r'<circle cx="[\d.]+%" cy="([\d.]+)"', text)]
    assert (min(heights), max(heights)) == (4.0, launches.ROW - 4)
    assert "20,000 samples, 0.499 to 8.97 medians" in text
    assert launches.of_launch([sample], []) == ""
