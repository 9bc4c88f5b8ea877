"""The pictures of the page, measured in a real browser: where they stand, and what they show."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import pytest

import browser
import judgements
from log_folders import FIXTURES, write
from paribus.cli import outputs
from paribus.core import Judgement, State, Word, format_ratio, slowness
from paribus.judge.conclude import judged
from paribus.paper import latex, markdown
from paribus.report import bundle, figures, heat, spread, track, unequal
from paribus.report.effects import effects
from paribus.report.html import write_html
from paribus.report.stored import read_report
from paribus.store import Store
from serving import visiting
from studies import paribus
from study_directories import write_directory
from test_report_short import of_nine

EVERY = judgements.ALL | judgements.MORE
needs_browser = pytest.mark.skipif(browser.PROGRAM is None, reason="no Chromium on this machine")
OPEN = "document.querySelectorAll('details').forEach(d => d.open = true), "
ASK = {
    "forest": "document.querySelector('.forest').getBoundingClientRect().bottom",
    "links": "[...document.querySelectorAll('.contents a, .forest a, .heat a')]"
    ".filter(a => !document.getElementById(a.hash.slice(1))).length",
    "listed": "document.querySelector('.contents ul').checkVisibility()",
    "chosen": "document.querySelector('.jump').checkVisibility()",
    "words": """(() => {
        const main = document.querySelector('main');
        const walk = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
        let words = [];
        for (let node; node = walk.nextNode();) {
            const e = node.parentElement, range = document.createRange();
            const beside = '.contents, .values, .unseen, .heat, svg, title';
            if (e.closest(beside) || !e.checkVisibility()) continue;
            range.selectNodeContents(node);
            const at = range.getBoundingClientRect();
            if (at.width && at.top < innerHeight)
                words.push(...node.textContent.split(/\\s+/).filter(w => /[a-z]{2}/i.test(w)));
        }
        return words; })()""",
    "places": "[...document.querySelectorAll('#answer .forest tbody tr')].map(row => {"
    "const x = e => e.getBoundingClientRect(), dot = row.querySelector('circle'),"
    "one = x(row.querySelector('.one')).x;"
    "return [row.querySelector('th').innerText, row.querySelector('.chip').className,"
    "dot && x(dot).x + x(dot).width / 2 - one]; })",
}
AXIS = """(() => {
    const middle = e => { const r = e.getBoundingClientRect(); return r.x + r.width / 2; };
    const [tick] = [...document.querySelectorAll('#answer .forest thead text')]
        .filter(e => e.textContent === '1');
    return middle(tick) - middle(document.querySelector('#answer .forest tbody .one')); })()"""
OVERLAP = """(() => {
    const of = [...document.querySelectorAll('#answer .forest thead text')]
        .map(e => [e.textContent, e.getBoundingClientRect()]);
    const meet = (a, b) => a.x < b.right && b.x < a.right && a.y < b.bottom && b.y < a.bottom;
    return of.flatMap(([one, a], i) => of.slice(i + 1).filter(([, b]) => meet(a, b))
        .map(([other]) => `${one} ${other}`)); })()"""
CUT = (
    f"({OPEN} [...document.querySelectorAll('main *')]"
    ".filter(e => !e.closest('pre, .unseen, nav, .tree')"
    " && e.checkVisibility() && (e.getBoundingClientRect().right > innerWidth + 1"
    " || getComputedStyle(e).overflowX !== 'visible' && e.scrollWidth > e.clientWidth + 1))"
    ".map(e => `${e.tagName} ${e.className} ${e.textContent.slice(0, 40)}`).slice(0, 5))"
)


HEIGHT = "document.documentElement.scrollHeight"
REACHED = """() => {
    const at = document.activeElement, table = at.matches('.scroll') ? at : at.parentElement;
    if (at === document.body) return null;
    return table?.querySelector('table')?.closest('section')?.querySelector('h2')?.id ?? '';
}"""
"""The section of the table that has the focus, or that opens by what has it; null at the end."""


def written(judgement: Judgement, tmp_path: Path) -> Path:
    page = tmp_path / "report.html"
    write_html(judgement, page)
    return page


@pytest.mark.parametrize(
    ("width", "height"), [(1440, 900), (1200, 780), (1000, 900), (641, 900), (400, 800)]
)
def test_the_picture_of_nine_benchmarks_is_on_the_first_screen(
    chromium: browser.Browser, tmp_path: Path, width: int, height: int
) -> None:
    judgement = replace(of_nine(), notices=of_nine().notices[:3])
    page = written(judgement, tmp_path)
    asked = ASK | {"axis": AXIS, "overlap": OVERLAP}
    found = chromium.open(page, width=width, height=height, ask=asked).answers
    assert 0 < found["forest"] <= height
    assert found["overlap"] == []
    assert abs(found["axis"]) < 2
    assert found["links"] == 0
    assert (found["listed"], found["chosen"]) == (width >= 1200, width < 1200)
    rows = effects(judgement)
    assert len(found["places"]) == len(rows) == 9
    for (name, chip, right), one in zip(found["places"], rows, strict=True):
        assert name == one.finding.benchmark
        assert one.kind in chip
        assert one.times is not None
        assert (right > 1) == (one.times.ratio > 1.02), name
        if one.finding.verdict.word is Word.SLOWER:
            assert right > 2


FIRST = ("two_arms", "troubled", "incomplete", "three_arms", "withheld", "monitor", "reliability")


@pytest.mark.parametrize("name", FIRST)
def test_the_first_screen_has_few_words(
    chromium: browser.Browser, tmp_path: Path, name: str
) -> None:
    """Question, answer, names, verdicts, captions; not units, and labels in other pictures."""
    page = written(EVERY[name](), tmp_path)
    answers = chromium.open(page, width=1440, height=900, ask=ASK).answers
    assert len(answers["words"]) <= 60, " ".join(answers["words"])
    assert len(answers["words"]) > 20


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(EVERY) - {"hostile"}))
def test_nothing_is_cut_on_a_telephone(
    chromium: browser.Browser, tmp_path: Path, name: str
) -> None:
    """Also where all is unfolded; only commands and trees scroll."""
    page = written(EVERY[name](), tmp_path)
    assert chromium.open(page, width=400, height=800, ask={"cut": CUT}).answers["cut"] == []


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize("name", FIRST)
def test_a_page_is_accessible_with_all_that_opens(name: str, tmp_path: Path) -> None:
    from axe_playwright_python.sync_playwright import Axe

    address = written(EVERY[name](), tmp_path).as_uri()
    with visiting(bypass_csp=True) as page:
        page.goto(address)
        page.wait_for_selector("html[data-drawn]")
        page.evaluate(f"{OPEN} null")
        found = Axe().run(page).response["violations"]
        assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []


@needs_browser
def test_the_keyboard_reaches_the_table_of_every_figure(tmp_path: Path) -> None:
    with visiting() as page:
        page.goto(written(judgements.two_arms(), tmp_path).as_uri())
        page.wait_for_selector("html[data-drawn]")
        drawn = page.evaluate(
            "[...document.querySelectorAll('section:has(.plot) h2')].map(e => e.id)"
        )
        assert len(drawn) == 5
        reached = set()
        for _ in range(200):
            page.keyboard.press("Tab")
            if (place := page.evaluate(REACHED)) is None:
                break
            reached.add(place)
        assert place is None, "the end of the page"
        assert reached >= set(drawn)


def test_the_choice_of_a_telephone_leads_there(chromium: browser.Browser, tmp_path: Path) -> None:
    ask = {
        "chosen": "(s => { s.value = 'reading';"
        " s.dispatchEvent(new Event('change', { bubbles: true })); return location.hash; })"
        "(document.querySelector('.jump'))"
    }
    page = written(judgements.two_arms(), tmp_path)
    assert chromium.open(page, width=400, ask=ask).answers["chosen"] == "#reading"


def test_too_few_launches_have_a_chip_of_their_own(tmp_path: Path) -> None:
    text = written(judgements.incomplete(), tmp_path).read_text()
    head = text.partition('id="answer"')[2].partition("</header>")[0]
    assert head.count('class="chip few"') == 5
    assert head.count("10/16 launches") == 5
    assert "undecided" not in head.partition("<details")[0]


@pytest.mark.parametrize("name", EVERY)
def test_the_map_shows_every_case_of_a_sweep(name: str) -> None:
    judgement = EVERY[name]()
    drawn = heat.maps(judgement)
    cells = re.findall(r'<td class="([a-z0-9 ]+)" title="([^"]*)">([^<]*)</td>', drawn)
    for found in judgement.cases:
        times = slowness(found)
        if times is None or "\x1b" in found.benchmark or not drawn:
            continue
        size = times.ratio
        reported = f"{size:.2f}" if size < 9.995 else format_ratio(size)
        shown = [title for _, title, ratio in cells if ratio == reported]
        swept = f"{found.case}:" in " ".join(title for _, title, _ in cells)
        assert shown or not swept, found
    for kind, title, ratio in cells:
        if "s" in kind.split()[0]:
            assert float(ratio.replace(",", "")) >= 1
        if "f" in kind.split()[0]:
            assert float(ratio) <= 1
        open_words = ("undecided", "withheld", "no data", "reliability differs")
        assert ("open" in kind) == any(word in title for word in open_words)


@pytest.mark.parametrize("name", EVERY)
def test_every_launch_is_on_the_time_line_once(name: str) -> None:
    judgement = EVERY[name]()
    drawn = str(track.picture(judgement))
    points = [*judgement.points, *judgement.voided]
    assert drawn.count("<title>") == len(points)
    assert drawn.count('class="cross"') == sum(p.state is not State.OK for p in points)
    assert drawn.count('class="far"') == sum(
        bool(p.outlying) for p in points if p.state is State.OK
    )
    assert drawn.count('class="busy"') == sum(bool(p.disturbed) for p in points)
    usable = [p for p in points if p.state is State.OK]
    assert drawn.count('class="out"') == sum(bool(p.level) and not p.block for p in usable)
    none = sum(not p.level for p in usable)
    assert drawn.count('class="none"') == none, "without a value there is no bar"
    assert ("circle: no value" in track.caption(judgement)) == bool(none)
    places = [float(x) for x in re.findall(r'x1="([0-9.]+)%"', drawn)]
    assert all(0 <= x <= 100 for x in places)


def test_too_many_launches_are_not_drawn(tmp_path: Path) -> None:
    base = judgements.two_arms()
    many = tuple(replace(base.points[0], number=n) for n in range(track.MOST_POINTS + 1))
    crowded = replace(base, points=many)
    assert track.picture(crowded) == ""
    assert "launches.csv lists them all" in written(crowded, tmp_path).read_text()


def test_a_benchmark_is_one_panel(tmp_path: Path) -> None:
    """Its parts stand side by side on a page, in a column of a journal below each other."""
    figures.write_figures(judgements.two_arms(), tmp_path / "page", {"svg"})
    figures.write_figures(judgements.two_arms(), tmp_path / "column", {"svg"}, width=88 * 96 / 25.4)
    wide, narrow = ((tmp_path / one / "00-latency.svg").read_text() for one in ("page", "column"))
    widths = {
        re.match(r'<svg[^>]* width="([0-9.]+)"', p.read_text())[1] for p in tmp_path.glob("page/*")
    }
    assert {float(w) for w in widths} == {figures.WIDEST}
    places = [
        re.findall(r'<g transform="translate\(([0-9.]+) ([0-9.]+)\)"><svg', s)
        for s in (wide, narrow)
    ]
    assert [float(x) > 0 for x, _ in places[0]] == [False, True]
    assert [float(y) > 0 for _, y in places[1]] == [False, True]
    assert "<title>latency</title><desc>latency (us)" in wide
    ids = re.findall(r' id="([^"]+)"', wide)
    assert len(ids) == len(set(ids)) > 1


def test_tables_of_a_paper_include_the_figures(tmp_path: Path) -> None:
    names = ["overview", "00-latency", "launches"]
    pictures = {
        f"figures/{name}.pdf": figures.captions(judgements.two_arms())[name] for name in names
    }
    tex = latex.document(judgements.two_arms(), "", pictures)
    assert re.findall(r"includegraphics\[width=\\linewidth\]\{(.*?)\}", tex) == list(pictures)
    assert r"\usepackage{graphicx}" in tex
    assert "Times as slow as host" in tex
    text = markdown.document(judgements.two_arms(), "", pictures)
    assert re.findall(r"^!\[[^]]+\]\((.*)\)$", text, re.M) == list(pictures)


def test_launches_are_spread_where_a_notice_speaks_of_it(tmp_path: Path) -> None:
    judgement = judgements.monitor()
    spoken = {b for n in judgement.notices if n.name == "two states" for b in n.benchmarks}
    assert spoken == {"barrier"}
    drawn = spread.figure(judgement, "barrier")
    counted = [p for p in judgement.points if p.benchmark == "barrier" and p.block and p.level]
    assert drawn.count("<circle") == len(counted) > 100
    assert spread.figure(judgement, "latency") == ""
    assert spread.figure(replace(judgement, notices=(), lenses={}), "barrier") == ""
    text = written(judgement, tmp_path).read_text()
    assert text.count('class="strip"') == 1
    assert text.count("Samples: what share") == 1


def test_the_bars_of_the_audit_are_full(tmp_path: Path) -> None:
    """Each is of a layer; the one unexplained fact is of the hardware."""
    text = written(judgements.withheld(), tmp_path).read_text()
    (layers,) = re.findall(r'<svg class="audit.*?</svg>', text)
    names = re.findall(r'<text x="0"[^>]*>([^<]+)', layers)
    assert names[:3] == ["hardware", "system", "network"]
    by_height: dict[str, float] = {}
    for y, width in re.findall(r'y="(\d+)" width="([0-9.]+)%"', layers):
        by_height[y] = by_height.get(y, 0.0) + float(width)
    assert list(by_height.values()) == pytest.approx([100 - unequal.NAMES] * len(names), abs=0.1)
    hardware, rest = layers.split('<text x="0" y="29"')
    assert ">1 UNEXPLAINED<" in hardware
    assert "unexplained" not in rest.partition("<title>")[2]
    counted = [int(n) for n in re.findall(r"<title>(\d+) equal", layers)]
    assert sum(counted) == judgements.withheld().equal_facts


def test_kinds_of_application_are_drawn_where_they_stand(tmp_path: Path) -> None:
    """As the headlines are: right of 1 is slower, in the colour of the verdict."""
    text = written(judgements.monitor(), tmp_path).read_text()
    part = text.partition(">Kinds of application")[2].partition("</table>")[0]
    rows = part.partition("<tbody>")[2].split("</tr>")[:-1]
    assert len(rows) == 3
    for row in rows:
        one = float(re.search(r'class="one" x1="([0-9.]+)%"', row)[1])
        kind, at = re.search(r'<circle class="(\w+)" cx="([0-9.]+)%"', row).groups()
        assert kind == "slower"
        assert float(at) > one
        assert "from " in re.search('title="([^"]+)"', row)[1]


def test_samples_are_drawn_where_words_speak_of_their_distribution() -> None:
    """A dot for each endpoint, from min to p99, and a line of all, which passes near the median."""
    judgement = judgements.troubled()
    lines, dots = (by_arm(one) for one in spread.samples(judgement, "latency")["layer"])
    assert list(lines) == list(dots) == ["host", "bridged"]
    for arm, mine in dots.items():
        assert sorted(mine) == [0.0, 0.25, 0.5, 0.99]
        assert [mine[share] for share in sorted(mine)] == sorted(mine.values())
        assert len(lines[arm]) == 40
        assert list(lines[arm]) == sorted(lines[arm]), "upwards"
        assert list(lines[arm].values()) == sorted(lines[arm].values())
        assert mine[0.25] < 1.03 * lines[arm][0.5125] < mine[0.99]
    assert all(dots["host"][share] < dots["bridged"][share] for share in dots["host"])
    assert spread.samples(replace(judgement, endpoints=(), notices=()), "latency") is None
    assert spread.samples(judgements.two_arms(), "latency") is None, "all are slower"
    [states] = [n for n in judgement.notices if n.name == "two states"][:1]
    moved = replace(judgement, notices=(replace(states, benchmarks=("bandwidth",)),))
    for mine in by_arm(spread.samples(moved, "bandwidth")["layer"][0]).values():
        assert list(mine) == sorted(mine, reverse=True), "of a rate more is faster"


def by_arm(layer: dict[str, Any]) -> dict[str, dict[float, float]]:
    """Return the values of a layer of samples by arm and share."""
    found: dict[str, dict[float, float]] = {}
    for row in layer["data"]["values"]:
        found.setdefault(row["arm"], {})[row["share"]] = row["value"]
    return found


def test_a_distribution_is_that_of_all_samples_of_launches_that_count(tmp_path: Path) -> None:
    effects = {"a": 1.0, "b": 1.3}
    directory = write_directory(tmp_path / "one", effects, samples=25, noise=0.1, sizes=(8,))
    with Store(directory) as store:
        counted = [one for one in store.launches() if one.launch.arm == "b" and one.launch.block]
    every = sorted(value for one in counted for value in one.outcome.samples[0].values)
    of_a, of_b = judged(directory).distributions
    assert (of_a.arm, of_b.arm, len(every)) == ("a", "b", 8 * 25)
    assert of_b.values == pytest.approx(every[2::5], rel=1e-4)
    sweep = write_directory(tmp_path / "two", effects, samples=25, noise=0.1, sizes=(8, 65536))
    several = judged(sweep)
    for one, finding in zip(several.distributions[1:], several.headlines, strict=True):
        assert median(one.values) == pytest.approx(finding.arm_value.median, rel=0.05)
    outputs.write_files(several, sweep)
    assert read_report(sweep / "verdict.json").distributions == several.distributions


def test_a_report_of_160_launches_is_small_and_soon_drawn(
    chromium: browser.Browser, tmp_path: Path
) -> None:
    base = of_nine()
    judgement = replace(base, points=base.points[:160])
    bundle.javascript()
    begun = time.process_time()
    page = written(judgement, tmp_path)
    assert time.process_time() - begun < 1
    assert page.stat().st_size <= 1_500_000
    opened = chromium.open(page, width=1440, ask={"height": HEIGHT})
    assert opened.seconds < 1
    assert opened.answers["height"] < 11_000, "of nine benchmarks"
    assert chromium.open(page, width=400, ask={"height": HEIGHT}).answers["height"] < 17_000
    assert opened.complaints == []
    assert [r for r in opened.requests if r != page.as_uri() and not r.startswith("data:")] == []


def test_paper_takes_six_pages_at_most(chromium: browser.Browser, tmp_path: Path) -> None:
    page, pdf = written(of_nine(), tmp_path), tmp_path / "report.pdf"
    chromium.open(page, pdf=pdf)
    assert len(re.findall(rb"/Type\s*/Page\b", pdf.read_bytes())) <= 6


def test_a_roofline_has_the_roof_of_each_arm(tmp_path: Path) -> None:
    lines = [*map(json.loads, (FIXTURES / "roofline" / "good-0.out").read_text().splitlines())]
    for arm, factor in (("one", 1.0), ("two", 2.0)):
        scaled = [
            {**line, "samples": [factor * value for value in line["samples"]]}
            if "samples" in line
            else line
            for line in lines
        ]
        write(tmp_path, {f"{arm}/1.log": "".join(f"{json.dumps(line)}\n" for line in scaled)})
    paribus("compare", "one", "two", "--out", "out", "--to", "svg", cwd=tmp_path, code=3)
    drawn = (tmp_path / "out" / "figures" / "00-roofline.svg").read_text()
    said = re.findall(r">(\w+): (\d+) GB/s, (\d+) Gop/s, ridge at ([\d.]+) per byte<", drawn)
    roofs = {arm: [row[1:] for row in said if row[0] == arm] for arm in ("one", "two")}
    assert len(roofs["one"]) == 3  # of double, float and int
    for (slow, low, ridge), (fast, high, same) in zip(*roofs.values(), strict=True):
        assert (int(fast) / int(slow), int(high) / int(low)) == pytest.approx((2, 2), rel=0.01)
        assert same == ridge
