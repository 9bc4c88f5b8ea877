"""The HTML page in a real browser: quiet console, no request, every figure drawn, it fits."""

from __future__ import annotations

import html
import math
import re
import time
import unicodedata
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from pypdf import PdfReader

import browser
import judgements
from paribus.__main__ import main
from paribus.cli import outputs
from paribus.core import (
    Case,
    Difference,
    Judgement,
    Metric,
    Notice,
    NoticeName,
    Spread,
    UserError,
    format_ratio,
    slowness,
)
from paribus.judge.conclude import judged
from paribus.report import bundle, figures, heat, lookup, plots, wording
from paribus.report.axes import drawn, log_ticks, panels
from paribus.report.html import write_html
from paribus.report.markup import escape
from paribus.report.stored import read_report
from paribus.words.study import summary
from paribus.words.values import flag_of, notice_fix, notice_text
from study_directories import write_directory

EVERY = judgements.ALL | judgements.MORE
ASK = {
    "drawn": "[...document.querySelectorAll('.plot')].filter(p => p.querySelector('svg')).length",
    "figures": "document.querySelectorAll('.plot').length",
    "overflow": "document.documentElement.scrollWidth - document.documentElement.clientWidth",
    "broken": "String(window.broken)",
    "images": "document.images.length",
    "background": "getComputedStyle(document.body).backgroundColor",
    "ink": "getComputedStyle(document.querySelector('.plot svg text')).fill",
    "empty": "[...document.querySelectorAll('.plot svg')].filter("
    "s => s.querySelectorAll('.mark-symbol path').length === 0).length",
}


def outside(opened: browser.Opened, page: Path) -> list[str]:
    return [r for r in opened.requests if r != page.as_uri() and not r.startswith("data:")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "width", "dark"),
    [
        *((name, 400, True) for name in judgements.ALL),
        *((name, 1200, False) for name in judgements.ALL if name != "reliability"),
        ("two_arms", 400, False),
        ("two_arms", 1200, True),
    ],
)
def test_opens_quietly(
    chromium: browser.Browser, tmp_path: Path, name: str, width: int, dark: bool
) -> None:
    page = tmp_path / "report.html"
    judgement = judgements.ALL[name]()
    write_html(judgement, page)
    opened = chromium.open(page, width=width, dark=dark, ask=ASK)
    assert opened.complaints == []
    assert outside(opened, page) == []
    expected = sum(name != "overview" for name, _ in figures.all_figures(judgement))
    assert opened.answers["figures"] == opened.answers["drawn"] == expected
    assert opened.answers["overflow"] <= 0
    assert opened.answers["broken"] == "undefined"
    assert opened.answers["images"] == 0
    assert opened.answers["empty"] == 0
    assert opened.answers["background"] == ("rgb(20, 23, 27)" if dark else "rgb(255, 255, 255)")
    if expected:
        assert opened.answers["ink"] == ("rgb(232, 234, 237)" if dark else "rgb(27, 31, 36)")


def test_the_browser_would_show(chromium: browser.Browser, tmp_path: Path) -> None:
    """The checks above can fail: an error, a request and an injected script are all seen."""
    page = tmp_path / "bad.html"
    page.write_text(
        "<!doctype html><img src='http://example.invalid/x.png'>"
        "<script>window.broken=1; document.documentElement.dataset.drawn='0'; nosuch()</script>"
    )
    opened = chromium.open(page, ask={"broken": "String(window.broken)"})
    assert any("nosuch" in c for c in opened.complaints)
    assert outside(opened, page) == ["http://example.invalid/x.png"]
    assert opened.answers["broken"] == "1"


def test_policy_stops_an_injected_script(chromium: browser.Browser, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    write_html(judgements.two_arms(), page)
    start, body, end = page.read_text().rpartition("</body>")
    injected = "<script>window.broken=1;fetch('http://example.invalid/')</script>"
    page.write_text(f"{start}{injected}{body}{end}")
    opened = chromium.open(page, ask=ASK)
    assert opened.answers["broken"] == "undefined"
    assert outside(opened, page) == []
    assert opened.complaints


LEADS = re.compile(
    r'<h([23])[^>]*>(?P<lead>[^<]*</h\1>(?:<p(?:(?!</p>).)*</p>)*)(?:<div class="figures">)?<figure'
    r"[^>]*><figcaption>(?P<caption>[^<]+)",
    re.DOTALL,
)
"""A heading and its text right above a figure, and what stands over that."""


def solid(text: str) -> str:
    """Return a text without spaces, which a PDF has where it likes."""
    return "".join(unicodedata.normalize("NFKC", text).split())


def solid_html(text: str) -> str:
    return solid(html.unescape(re.sub(r"<[^>]*>", "", text)))


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
def test_prints_on_white_paper(chromium: browser.Browser, tmp_path: Path, name: str) -> None:
    """The picture of all headlines is on the first page, and each figure below its heading."""
    page, pdf = tmp_path / "report.html", tmp_path / "report.pdf"
    judgement = EVERY[name]()
    write_html(judgement, page)
    assert chromium.open(page, dark=True, pdf=pdf).complaints == []
    texts = [solid(one.extract_text()) for one in PdfReader(pdf).pages]
    for finding in [one for one in judgement.headlines if one.comparison][:5]:
        assert "timesasslow" in texts[0].lower()
        assert solid_html(escape(finding.benchmark)) in texts[0]
    found = [*LEADS.finditer(page.read_text(encoding="utf-8"))]
    for one in found:
        lead, caption = solid_html(one["lead"]), solid_html(one["caption"])
        assert any(caption in text.partition(lead)[2] for text in texts), one["lead"]
    if name == "two_arms":
        assert len(found) == 5
        assert 2 <= len(texts) <= 6


class Cells(HTMLParser):
    """Collects the text of a page, and what its tags and attributes are."""

    def __init__(self) -> None:
        super().__init__()
        self.text: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self._script = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self._script = tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._script = False

    def handle_data(self, data: str) -> None:
        if not self._script:
            self.text.append(data)


def parsed(judgement: Judgement, tmp_path: Path) -> Cells:
    page = tmp_path / "report.html"
    write_html(judgement, page)
    cells = Cells()
    cells.feed(page.read_text(encoding="utf-8"))
    return cells


@pytest.mark.parametrize("name", EVERY)
def test_tables_hold_every_number(name: str, tmp_path: Path) -> None:
    """Without JavaScript nothing is lost."""
    judgement = EVERY[name]()
    found = parsed(judgement, tmp_path).text
    text, whole = " ".join(found), "".join(found).replace("\u00a0", " ")
    beside = (*judgement.layers, *judgement.endpoints, *judgement.pairs)
    for f in (*judgement.headlines, *judgement.cases, *beside):
        if f not in judgement.layers:
            assert wording.clean(wording.value_text(f.reference_value, f.metric)) in text
            assert wording.clean(wording.value_text(f.arm_value, f.metric)) in text
        if times := slowness(f):
            assert format_ratio(times.ratio) in text
            assert wording.interval_text(times) in text
        assert f.verdict.word.value in text
    reported = [t for n in judgement.notices for t in (n.name, notice_text(n), notice_fix(n))]
    design = () if lookup.nothing_came(judgement) else (judgement.design,)
    for said in (summary(judgement.sentence, judgement.headlines), *design, *reported):
        assert wording.clean(said).replace("`", "") in whole.replace("`", "")
    for point in judgement.points:
        assert wording.clean(flag_of(point)) in text
    for tally in judgement.tallies:
        assert wording.clean(tally.first_error) in text
    for facts in judgement.facts.values():
        assert all(wording.clean(key) in text for key in facts)


def test_what_withholds_a_verdict_is_shown_and_what_is_explained_is_folded(tmp_path: Path) -> None:
    base = judgements.withheld()
    long = [
        Difference(f"net.ethernet.0.x{n}", "bridged", "a" * 120, "b" * 120, "factor", "by design")
        for n in range(9)
    ]
    reported = Difference(
        "env.OMP_PLACES", "bridged", "(absent)", "cores", "accepted", "one thread"
    )
    silent = Difference("machine.sku", "bridged", "(denied)", "(denied)", "unknown")
    parsed(replace(base, differences=(*base.differences, *long, reported, silent)), tmp_path)
    raw = (tmp_path / "report.html").read_text().rpartition("Not held equal")[2]
    raw = raw.partition("</section>")[0]
    shown, _, folded = raw.partition("<details><summary>What else differs</summary>")
    for count in (
        "1 UNEXPLAINED",
        "1 accepted",
        "13 changed by the factor",
        "69 unknown",
    ):
        assert f"</svg> {count}</span>" in shown
    for cell in ("cpu.governor", "performance", "powersave", "env.OMP_PLACES", "one thread"):
        assert cell in shown
        assert cell not in folded
    assert "<summary>changed by the factor: 13 (container.engine, container.network," in folded
    assert ", and 7 more)</summary>" in folded
    assert folded.count("a" * 120) == 9
    assert folded.count("by design") == 0, "one caption for all, and here that of the first"
    assert "<summary>unknown: 69</summary>" in folded


def test_what_changed_in_the_arms_is_reported_of_each_from_before_to_after(tmp_path: Path) -> None:
    base = judgements.incomplete()
    moved = tuple(
        Difference("process.nice", arm, "19", "0", "unexplained", "changed", 1, "n1")
        for arm in ("host", "bridged")
    )
    parsed(replace(base, differences=moved), tmp_path)
    raw = (tmp_path / "report.html").read_text().rpartition("Not held equal")[2]
    cells = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", raw.partition("</table>")[0])
    said = [re.sub("<[^>]*>", "", cell) for cell in cells]
    assert said[:5] == ["Fact", "Arm", "From", "To", "Why"]
    assert [said[6:9], said[11:14]] == [["host", "19", "0"], ["bridged", "19", "0"]]


def test_outcomes_name_what_happened(tmp_path: Path) -> None:
    base = judgements.two_arms()
    first, *others = (replace(t, failed=0, timed_out=0, invalid=0) for t in base.tallies)
    page = tmp_path / "report.html"
    write_html(replace(base, tallies=(first, *others)), page)
    assert f"none of {first.launches} launches" in page.read_text()
    assert "timed out" not in page.read_text().partition('id="outcomes"')[2]
    late = replace(first, timed_out=3)
    write_html(replace(base, tallies=(late, *others)), page)
    assert f"3 timed out of {late.launches} launches" in page.read_text()
    assert "invalid" not in page.read_text().partition('id="outcomes"')[2].partition("</table>")[0]


def test_the_change_of_two_studies_is_visible_on_a_telephone(
    chromium: browser.Browser, tmp_path: Path
) -> None:
    old = write_directory(tmp_path / "before.study", {"host": 1.0, "bridged": 1.19})
    new = write_directory(tmp_path / "after.study", {"host": 1.0, "bridged": 1.05}, seed=2)
    assert main(["compare", str(old), str(new), "--out", str(tmp_path / "out")]) == 0
    page = tmp_path / "out" / "report.html"
    page.write_text(page.read_text().replace("<html", '<html data-drawn="no figures"', 1))
    ask = {
        "boxes": "[...document.querySelectorAll('.changes tbody svg')]"
        ".map(e => e.getBoundingClientRect()).map(b => [b.width, b.right])"
    }
    boxes = chromium.open(page, width=400, ask=ask).answers["boxes"]
    assert len(boxes) == 2
    assert all(width > 150 and right <= 400 for width, right in boxes)


def test_tables_of_cases_are_folded_and_say_what_is_in_them(tmp_path: Path) -> None:
    base = judgements.two_arms()
    page = tmp_path / "report.html"
    one = base.of_benchmark("latency", base.cases)[0]
    several = tuple(replace(one, case=Case.of(bytes=8 * n)) for n in range(1, 14))
    write_html(replace(base, cases=several), page)
    start = '<details class="long"><summary>latency, 13 cases: 13 slower</summary>'
    folded = page.read_text().partition(start)[2].partition("</details>")[0]
    assert folded.count("<tr>") == 1 + 13


def test_one_quantity_is_drawn_once(tmp_path: Path) -> None:
    """Mop/s and seconds of the same work, whose quartiles between two launches are not inverse."""
    base = judgements.two_arms()
    rate, time = Metric("mops", "Mop/s", "higher"), Metric("time", "s", "lower")
    one = replace(base.of_benchmark("bandwidth", base.cases)[0], metric=rate)
    mops = Spread(8, 3436.0, 2561.0, 7079.0), Spread(8, 1309.0, 1239.0, 1974.0)
    took = Spread(8, 0.01965, 0.00946, 0.03001), Spread(8, 0.05098, 0.0378, 0.05427)
    cases = (
        replace(one, reference_value=mops[0], arm_value=mops[1]),
        replace(one, metric=time, reference_value=took[0], arm_value=took[1]),
    )
    assert [p.metric for p in drawn(replace(base, cases=cases), "bandwidth")] == [rate]
    steady = replace(cases[1], arm_value=took[0])
    both = replace(base, cases=(cases[0], steady))
    assert len(drawn(both, "bandwidth")) == 2, "another ratio is another quantity"
    page = tmp_path / "report.html"
    write_html(replace(base, cases=cases), page)
    assert "bandwidth: time in s, lower is better" in page.read_text(), "the table has it"
    assert "time: ratio with interval" not in page.read_text()


def test_long_notes_are_folded(tmp_path: Path) -> None:
    several = (judgements.troubled(), judgements.logs(), judgements.logs_apart())
    notices = tuple(notice for one in several for notice in one.notices)
    count = len([notice for notice in notices if notice.level == "note"])
    parsed(replace(several[0], notices=notices), tmp_path)
    raw = (tmp_path / "report.html").read_text()
    assert f"<summary>{count} notes: blocks rerun, " in raw
    figures = {"benchmarks": ["latency"], "keys": [{"key": "cpu.model", "equal": True}]}
    short = Notice(NoticeName.ACCEPTED_WITHOUT_NEED, "note", figures=figures)
    parsed(replace(judgements.sessions(), notices=(short,) * 8), tmp_path)
    assert "8 notes:" not in (tmp_path / "report.html").read_text(), "they have few words"


def test_imported_numbers_have_no_plan(tmp_path: Path) -> None:
    text = " ".join(parsed(judgements.imported(), tmp_path).text)
    assert "Plan" not in text
    assert "seed" not in text
    assert "paribus run" not in text
    assert "elsewhere" in text


def test_a_sweep_of_one_point_a_figure_is_drawn_as_one_figure() -> None:
    """HPL's P and Q change together: a figure for each Q would have one P."""
    base = judgements.two_arms()
    one = base.of_benchmark("latency", base.cases)[0]
    grids = (Case.of(n=10000, p=1, q=4), Case.of(n=10000, p=2, q=2))
    judgement = replace(base, cases=tuple(replace(one, case=grid) for grid in grids))
    (panel,) = panels(judgement, "latency")
    assert (panel.key, panel.group) == (None, "")
    assert [f.case for f in panel.cases] == list(grids)
    swept = (*grids, Case.of(n=10000, p=4, q=4))
    judgement = replace(base, cases=tuple(replace(one, case=grid) for grid in swept))
    assert {p.key for p in panels(judgement, "latency")} == {"p"}


def test_sizes_that_are_withheld_are_not_drawn() -> None:
    base = judgements.censored()
    first, barrier = base.headlines
    assert first.comparison
    one_sided = replace(first, comparison=replace(first.comparison, high=math.inf))
    (panel,) = panels(base, "barrier")
    assert "ratio" not in [name for name, *_ in plots.of_panel(base, panel)]
    overview = plots.overview(replace(base, headlines=(one_sided, barrier)))
    assert overview is not None
    (row,) = overview["data"]["values"]
    assert row["benchmark"] == "latency"
    assert (row["low"], row["high"]) == (first.comparison.low, first.comparison.ratio)


@pytest.mark.parametrize("monitor", [False, True])
def test_the_way_of_an_interval_is_drawn_look_by_look(tmp_path: Path, monitor: bool) -> None:
    directory = write_directory(
        tmp_path / "study", {"a": 1.0, "b": 1.015}, blocks=60, most=60, noise=0.06, monitor=monitor
    )
    judgement = judged(directory)
    (head,) = judgement.headlines
    assert head.comparison
    assert replace(head.history[-1], blocks=head.comparison.blocks) == head.comparison
    after = [step.blocks for step in head.history]
    if monitor:
        assert (after[-1], len(after)) == (60, 30)
    else:
        assert after == [n for n in judgement.looks if n <= head.comparison.blocks]
        assert len(after) > 2
    assert after == sorted(set(after))
    spec = plots.narrowing(judgement, "latency")
    assert spec is not None
    drawn = [step for step in head.history if step.low > 0 and step.high < math.inf]
    assert [(row["blocks"], row["low"]) for row in spec["data"]["values"]] == [
        (step.blocks, step.low) for step in drawn
    ]
    not_ours = replace(judgement.study, settings=replace(judgement.study.settings, seed=None))
    assert plots.narrowing(replace(judgement, study=not_ours), "latency") is None
    outputs.write_files(judgement, directory)
    (again,) = read_report(directory).headlines
    assert again.history == head.history


def test_hostile_texts_stay_texts(tmp_path: Path) -> None:
    cells = parsed(judgements.hostile(), tmp_path)
    assert "img" not in cells.tags
    assert cells.tags.count("script") == 3
    assert not [name for name, _ in cells.attributes if name.startswith("on")]
    raw = (tmp_path / "report.html").read_text()
    assert "\x1b" not in raw
    assert "\u202e" not in raw


def test_page_is_accessible(tmp_path: Path) -> None:
    cells = parsed(judgements.two_arms(), tmp_path)
    raw = (tmp_path / "report.html").read_text()
    assert '<html lang="en">' in raw
    assert cells.tags.count("h1") == 1
    assert cells.tags.count("caption") == cells.tags.count("table")
    assert cells.tags.count("figcaption") == cells.tags.count("figure")
    assert raw.count('role="img" aria-label="') == cells.tags.count("figure")
    assert "http://" not in "".join(v or "" for _, v in cells.attributes)
    assert not [v for k, v in cells.attributes if k in ("src", "srcset", "data")]


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    line = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * line[0] + 0.7152 * line[1] + 0.0722 * line[2]


def contrast(a: str, b: str) -> float:
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def test_contrast() -> None:
    """WCAG 2.1: 4.5 for text, 3 for marks in figures, in both schemes."""
    from paribus.report.axes import COLOURS, FAILED, UNDECIDED

    css = (Path(plots.__file__).parent / "page.css").read_text()
    schemes = [dict(re.findall(r"--([\w-]+): (#\w{6})", part)) for part in css.split("@media")[:2]]
    assert len(schemes[0]) == len(schemes[1]) > 8
    for scheme in schemes:
        for name in ("ink", "soft", "link", "faster", "slower", "equivalent", "differs", "few"):
            assert contrast(scheme[name], scheme["page"]) >= 4.5, name
        for colour in (*COLOURS, FAILED, UNDECIDED):
            assert contrast(colour, scheme["page"]) >= 3, colour
        colours = ("slow-a", "slow-b", "slow-c", "fast-a", "fast-b", "fast-c", "level")
        for box in ("box", "warn", *colours):
            assert contrast(scheme["ink"], scheme[box]) >= 4.5


def test_large_report_is_fast(tmp_path: Path) -> None:
    """10 benchmarks x 20 sizes x 2 arms x 60 blocks in under 1 s, bundle cached."""
    judgement = judgements.large()
    bundle.javascript()
    begin = time.process_time()
    write_html(judgement, tmp_path / "report.html")
    assert time.process_time() - begin < 1
    assert (tmp_path / "report.html").stat().st_size < 4_000_000


def test_bundle_without_a_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("PARIBUS_CACHE", str(tmp_path / "file" / "below"))
    assert bundle.javascript().endswith(bundle.END)


def test_the_bundle_is_kept_in_the_one_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARIBUS_CACHE", str(tmp_path / "chosen"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    made = bundle.javascript()
    (kept,) = (tmp_path / "chosen").iterdir()
    assert kept.read_text() == made
    assert not (tmp_path / "other").exists()
    kept.write_text(made[: len(made) // 2])
    assert bundle.javascript() == kept.read_text() == made, "a torn one is not believed"


def test_unwritable_report_says_so(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="the report cannot be written: No such file"):
        write_html(judgements.two_arms(), tmp_path / "missing" / "report.html")
    (tmp_path / "taken").mkdir()
    with pytest.raises(UserError, match="cannot be written"):
        write_html(judgements.two_arms(), tmp_path / "taken")
    assert [p.name for p in tmp_path.iterdir()] == ["taken"]


def test_report_is_not_read_in_parts(tmp_path: Path) -> None:
    """An old report stays whole until the new one is."""
    page = tmp_path / "report.html"
    write_html(judgements.two_arms(), page)
    first = page.stat().st_ino
    write_html(judgements.three_arms(), page)
    assert page.stat().st_ino != first
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_figures_are_files(tmp_path: Path) -> None:
    judgement, folder = judgements.two_arms(), tmp_path / "figures"
    written = figures.write_figures(judgement, folder)
    assert len(written) == len({p.name for p in written}) == 3 * 7
    assert sorted(folder.iterdir()) == sorted(written)
    for path in written:
        head = path.read_bytes()[:8]
        marks = {".svg": b"<svg", ".png": b"\x89PNG\r\n\x1a\n", ".pdf": b"%PDF-"}
        assert head.startswith(marks[path.suffix])
    assert {"overview.svg", "launches.pdf", "00-latency.svg"} <= {p.name for p in written}
    line = (folder / "launches.svg").read_text()
    assert "<title>Every launch. line: usual for host; dashed: not counted" in line
    assert re.search("<title>[^<]+</title><desc>[^<]+", (folder / "overview.svg").read_text())
    assert (folder / "launches.png").stat().st_size > 10_000


@pytest.mark.parametrize("name", judgements.ALL)
def test_figures_of_every_judgement(name: str, tmp_path: Path) -> None:
    written = figures.write_figures(judgements.ALL[name](), tmp_path, {"svg"})
    assert all("NaN" not in p.read_text() for p in written)


def test_unknown_figure_format(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no figures as jpeg"):
        figures.write_figures(judgements.two_arms(), tmp_path, {"jpeg"})


def test_figures_in_a_place_that_is_taken(tmp_path: Path) -> None:
    (tmp_path / "figures").touch()
    with pytest.raises(UserError, match="figures cannot be written"):
        figures.write_figures(judgements.two_arms(), tmp_path / "figures", {"svg"})


def test_size_zero_has_a_place_and_its_name() -> None:
    base = judgements.two_arms()
    zero = replace(base.cases[0], case=Case.of(bytes=0))
    judgement = replace(base, cases=(zero, *base.cases))
    panel = panels(judgement, "latency")[0]
    spec = plots.curves(judgement, panel)
    rows = spec["data"]["values"]
    assert {r["x"] for r in rows if r["case"] == "0 B"} == {4.0}
    assert "'4':'0 B'" in spec["layer"][0]["encoding"]["x"]["axis"]["labelExpr"]


def test_several_parameters_make_several_panels() -> None:
    base = judgements.two_arms()
    cases = tuple(
        replace(c, case=Case.of(pairs=pairs, bytes=c.case.get("bytes")))
        for pairs in (1, 4)
        for c in base.of_benchmark("latency", base.cases)
        if c.case is not None
    )
    judgement = replace(base, cases=cases)
    made = panels(judgement, "latency")
    assert [(p.key, p.group, len(p.cases)) for p in made] == [
        ("bytes", "pairs=1", 10),
        ("bytes", "pairs=4", 10),
    ]
    assert len({name for name, _ in figures.all_figures(judgement)}) == len(
        list(figures.all_figures(judgement))
    )


def test_each_row_of_the_map_of_cases_has_a_name_of_its_own() -> None:
    """The metrics of many_to_one had five rows with one name."""
    base = judgements.two_arms()
    cases = tuple(
        replace(c, case=Case.of(pairs=pairs, bytes=c.case.get("bytes")), metric=metric)
        for pairs in (1, 4)
        for metric in (Metric("first", "us", "lower"), Metric("second", "us", "lower"))
        for c in base.of_benchmark("latency", base.cases)
        if c.case is not None
    )
    rows = re.findall(r'<th[^>]*scope="row".*?</th>', heat.maps(replace(base, cases=cases)))
    assert len(rows) == len({*rows}) == 4


def test_no_numeric_parameter_means_dots() -> None:
    base = judgements.two_arms()
    panel = panels(base, "triad")[0]
    assert panel.key is None
    assert plots.curves(base, panel)["layer"][0]["mark"]["type"] == "rule"


@pytest.mark.parametrize(
    ("low", "high"), [(0.999, 1.001), (0.5, 2), (1, 1e9), (1e-9, 1), (3, 3.01), (7e5, 9e5)]
)
def test_axes_have_ticks_within(low: float, high: float) -> None:
    ticks = log_ticks(low, high)
    assert 2 <= len(ticks) <= 8
    assert all(low * 0.9999 <= t <= high * 1.0001 for t in ticks)
    assert ticks == sorted(set(ticks))
