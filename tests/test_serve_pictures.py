"""Pages of the workbench that draw: two studies, a question over time, hosts, a new study."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from browser import PROGRAM
from paribus.core import StudyError
from paribus.store import Effect
from paribus.web import hosts, summaries, trend
from paribus.web.found import Found, find
from paribus.web.making import checked, started, study_text
from paribus.web.summaries import Summaries, Summary, Value
from serving import Served, visiting

needs_browser = pytest.mark.skipif(PROGRAM is None, reason="no Chromium on this machine")

AT = re.compile(r'cx="([\d.]+)%" cy="([\d.]+)"')


def places(text: str) -> list[tuple[float, float]]:
    """Return where circles are."""
    return [(float(x), float(y)) for x, y in AT.findall(text)]


def test_two_studies_are_drawn_on_one_axis(five_served: Served) -> None:
    """The effect fell from 1.3 to 1.1: the later, lower circle is further left, and so is 0.85."""
    ids = [five_served.ident(name) for name in ("may", "june")]
    text = five_served.page(f"/compare/?of={ids[1]}&of={ids[0]}")
    rows = text.partition("forest changes")[2].partition("</table>")[0].split("<tr>")[2:]
    assert [re.search(r"#change-0-\d\">(\w+)", row)[1] for row in rows] == ["latency", "barrier"]
    for row in rows:
        before, after, change = places(row)
        assert after[0] < before[0]
        assert after[1] > before[1]
        one = float(re.findall(r'class="one" x1="([\d.]+)%"', row)[1])
        assert change[0] < one
        assert "▲</span> improved" in row
    for name, ident in zip(("may", "june"), ids, strict=True):
        assert f'<a href="../studies/{ident}/">{name}</a>' in text
    assert f'href="../trend/?of={ids[1]}"' in text


def test_both_studies_have_a_curve_over_size(five_served: Served) -> None:
    ids = [five_served.ident(name) for name in ("may", "june")]
    text = five_served.page(f"/compare/?of={ids[0]}&of={ids[1]}")
    shown = re.findall(r'<svg class="strip curves".*?</svg>', text)
    assert len(shown) == 4  # values and effects, of two benchmarks
    for values, effects in (shown[:2], shown[2:]):
        # Two arms in two studies of three sizes; the time grows with the size.
        assert values.count("<circle") == 12
        assert values.count('<circle class="first"') == 6
        assert [y for _, y in places(values)[:3]] == sorted((y for _, y in places(values)[:3]))[
            ::-1
        ]
        first, later = places(effects)[:3], places(effects)[3:]
        assert all(a[1] < b[1] for a, b in zip(first, later, strict=True)), "1.3 is above 1.1"
        assert effects.count('class="band"') == 3
        assert "may: 1.2" in effects


def test_a_question_is_drawn_over_time(five_served: Served) -> None:
    text = five_served.page(f"/trend/?of={five_served.ident('june')}")
    assert re.search(r"2 studies from 2026-10-0\d to 2026-11-0\d", text)
    rows = re.findall(r"<tr>(<th .*?)</tr>", text)[1:]
    assert [re.search(r">(\w+)</th>", row)[1] for row in rows] == ["latency", "barrier"]
    for row in rows:
        (x1, y1), (x2, y2) = places(row)
        assert x1 < x2
        assert y1 < y2, "slower is higher"
        reported = re.findall(r'aria-label="(\w+), (\S+) [^"]*: slower 1\.\d+ \[', row)
        assert [name for name, _ in reported] == ["may", "june"]
    assert "kernels" not in text
    alone = five_served.page(f"/trend/?of={five_served.ident('kernels')}")
    assert "No trend yet" in alone
    assert five_served.ask("/trend/?of=x", Cookie=five_served.cookie).status == 404


def test_a_copy_is_no_second_study_of_a_trend(five_studies: Path) -> None:
    every = [Summaries().of(one) for one in find([five_studies]).found.values()]
    may = next(one for one in every if one.found.name == "may")
    assert [one.found.name for one in trend.like(may, every)] == ["may", "june"]
    copy = replace(may, found=replace(may.found, ident="other", name="copy"))
    assert len(trend.like(may, [*every, copy])) == 2


def test_figures_that_nobody_measured_are_no_error(five_studies: Path) -> None:
    """Whoever can write to a directory can write any figures into its verdict."""
    [may] = [
        Summaries().of(one) for one in find([five_studies]).found.values() if one.name == "may"
    ]
    odd = (0.0, -1.0, 5e-324, 1e308, float("inf"), float("nan"), None)
    effects = [
        Effect("latency", "b", "slower", "", ratio, low, high, better)
        for ratio in odd
        for low, high in ((1e308, 5e-324), (5e-324, 1e308), (None, None))
        for better in ("lower", "higher")
    ]
    assert "No study has an effect" not in trend.page([replace(may, effects=tuple(effects))])
    table = json.loads((five_studies / "may" / "verdict.json").read_text())
    for change in ({"arms": 3}, {"arms": [{"name": "host", "hosts": "x"}]}, {"benchmarks": [None]}):
        forged = {**table, "study": {**table["study"], **change}}
        assert summaries.values(forged) == ()
    for value in odd[:1] + odd[2:6]:
        heads = [{**one, "arm_value": {"median": value}} for one in table["headlines"]]
        known = summaries.values({**table, "headlines": heads})
        assert {one.arm for one in known} == {"host"}


def study(name: str, *values: Value, started: float = 0.0) -> Summary:
    found = Found(name, name, Path(name), measured=True)
    return Summary(found, "ended", "Which?", "", started=started, values=values)


def level(arm: str, value: float, how: str = "plain", better: str = "lower") -> Value:
    return Value("latency", arm, "latency 8 B", how, value, better, 0.02, f"{value} us")


SMALL = {"cpu.model": "EPYC", "cpu.cores": 2, "memory.total_kib": 16 << 20}
LARGE = {**SMALL, "cpu.cores": 64}
BUSY = {**LARGE, "cpu.governor": "powersave"}


def cells(*studies: tuple[Summary, hosts.Nodes]) -> dict[str, list[str]]:
    """Return the cells of the map by host."""
    text = hosts.page([], studies, {})
    rows = re.findall(r"<tr>(<th class=.*?)</tr>", text.partition("<tbody>")[2])
    return {re.search(r">(\w+)</a>", row)[1]: re.findall("<td.*?</td>", row) for row in rows}


def test_a_machine_is_shown_once() -> None:
    """By name and hardware: two arms and two studies are one, other cores another."""
    listed = [
        (study("new", started=9.0), [("b", "vm", BUSY)]),
        (study("old", started=1.0), [("a", "vm", LARGE), ("b", "vm", LARGE), ("c", "vm", SMALL)]),
    ]
    large, small = hosts.machines(listed)
    assert (large.hardware, small.hardware) == ("EPYC, 64 cores, 16 GiB", "EPYC, 2 cores, 16 GiB")
    assert {name: arms for name, (_, arms) in large.used.items()} == {
        "old": ["a", "b"],
        "new": ["b"],
    }
    assert large.facts == BUSY, "the newest are shown"
    text = hosts.page([], listed, {"broken": "cannot be read"})
    assert "2 hosts" in text
    assert "governor: powersave" in text
    assert "cpupower frequency-set" in text, "what would change it, as doctor says"
    assert "broken: cannot be read" in text


def test_two_names_of_one_boot_are_one_machine() -> None:
    """As an address and a host name are; nodes of one arm are distinguished."""
    by_name = replace(study("a"), boots={"x": {"n1": "b0", "n2": "b1"}})
    by_address = replace(study("b", started=1.0), boots={"x": {"n1": "b0"}})
    unknown = study("c", started=2.0)
    listed = [
        (by_name, [("x", "n1", LARGE), ("x", "n2", LARGE)]),
        (by_address, [("x", "10.0.0.1", LARGE)]),
        (unknown, [("x", "10.0.0.2", LARGE), ("x", "n2", SMALL)]),
    ]
    found = hosts.machines(listed)
    assert [one.name for one in found] == ["n1, 10.0.0.1", "n2", "10.0.0.2", "n2"]
    assert [*found[0].used] == ["a", "b"]
    later = replace(study("d", started=3.0), boots={"x": {"n": "b1", "m": "b1"}})
    joined = hosts.machines([*listed, (later, [("x", "10.0.0.2", LARGE)])])
    assert [one.name for one in joined] == ["n1, 10.0.0.1", "n2, 10.0.0.2", "n2"]
    assert [*joined[1].used] == ["a", "c", "d"], "what was thought another one is the same"


def test_a_host_stands_against_the_median_of_all() -> None:
    names = ("n1", "n2", "n3")
    several = [(name, name, LARGE) for name in names]
    times = [level(name, value) for name, value in zip(names, (1.0, 1.3, 1.0), strict=True)]
    found = cells((study("one", *times), several))
    assert list(found) == ["n2", "n1", "n3"], "the slowest first"
    assert 'class="s2"' in found["n2"][0]
    assert ">1.30<" in found["n2"][0]
    assert 'class="h0"' in found["n1"][0]
    rates = [replace(one, better="higher") for one in times]
    assert ">0.77<" in cells((study("one", *rates), several))["n2"][0], "of a rate more is faster"


def test_what_cannot_be_compared_is_not() -> None:
    """Arms of other settings, nodes that were used together, and one host alone have no cell."""
    one, two = ("a", "n1", LARGE), ("b", "n2", LARGE)
    assert cells((study("x", level("a", 1.0), level("b", 2.0, "in a container")), [one, two])) == {}
    together = [("a", "n1", LARGE), ("a", "n2", LARGE)]
    assert cells((study("x", level("a", 1.0)), together)) == {}
    assert cells((study("x", level("a", 1.0)), [one])) == {}
    assert len(cells((study("x", level("a", 1.0), level("b", 2.0)), [one, two]))) == 2


def test_values_of_a_study_are_those_of_its_verdict(five_studies: Path) -> None:
    every = {one.name: Summaries().of(one) for one in find([five_studies]).found.values()}
    values = {(one.label, one.arm): one for one in every["may"].values}
    assert len(values) == 4
    host, bridged = values["latency", "host"], values["latency", "bridged"]
    assert bridged.value / host.value == pytest.approx(1.3, rel=0.02)
    assert host.how == bridged.how, "arms that differ by their name alone"
    assert every["runs"].values == ()


# --- a new study


def test_each_fault_has_the_key_of_its_field(tmp_path: Path) -> None:
    """As data of the error, not read out of its text; also where no text can be made of a form."""
    arms = [{"name": "a", "value": "shm"}, {"name": "b: x = 'y'", "value": "tpc"}]
    form = {"question": "", "factor": "transport", "arms": arms, "benchmarks": ["latency"]}
    found: Any = checked(tmp_path, study_text({**form, "margin": "x", "blocks": "3"}))["faults"]
    assert found.keys() == {"arms.b: x = 'y'", "plan.margin", "plan.blocks"}
    assert found["plan.blocks"] == "cannot be used; use a whole number from 8 to 1000"
    arms[1]["name"] = "b.1"
    found = checked(tmp_path, study_text(form))["faults"]
    assert found == {"arms.b.1.transport": 'cannot be used; use one of "auto", "shm", "tcp"'}
    arms[1]["value"] = "tcp"
    found = checked(tmp_path, study_text({**form, "benchmarks": []}))["faults"]
    assert found.keys() == {"benchmarks"}
    with pytest.raises(StudyError) as refused:
        study_text({**form, "factor": "wrapper", "arms": [{"name": "a", "value": "nice | tee x"}]})
    assert refused.value.faults.keys() == {"arms.a.wrap"}
    with pytest.raises(StudyError) as refused:
        started(tmp_path, "../x", study_text(form))
    assert refused.value.faults.keys() == {"name"}
    assert checked(tmp_path, study_text(form))["faults"] == {}


@needs_browser
@pytest.mark.parametrize("width", [1000, 400])
def test_a_form_chooses_marks_and_keeps_its_start_in_sight(five_served: Served, width: int) -> None:
    with visiting(viewport={"width": width, "height": 800}) as page:
        page.goto(five_served.link())
        page.goto(f"{page.url}new/")
        page.wait_for_selector("#start:enabled")
        page.get_by_label("Other arm: value").last.select_option("auto")
        page.wait_for_function("() => document.getElementById('text').value.includes('auto')")
        assert page.get_by_text("20 not here").is_visible()
        assert not page.get_by_text("osu_latency", exact=True).is_visible()
        *_, node, whole = page.locator(".presets svg").all()
        assert node.get_attribute("aria-label") == "memory, compute"
        assert whole.locator("[opacity='1']").count() == 4
        page.get_by_role("button", name="Whole stack").click()
        page.get_by_text("2 arms, 4 benchmarks, at most 60 blocks; up to about").wait_for()
        assert page.locator(".chosen").filter(has_text="1 chosen").count() == 4
        blocks = page.get_by_label("Blocks at most")
        blocks.fill("3")
        page.wait_for_selector("#blocks[aria-invalid=true]")
        note = page.locator("#fault-blocks")
        assert note.inner_text() == "cannot be used; use a whole number from 8 to 1000"
        assert blocks.get_attribute("aria-describedby") == "fault-blocks"
        assert note.bounding_box()["y"] - blocks.bounding_box()["y"] < 60
        blocks.fill("20")
        page.wait_for_selector("#start:enabled")
        assert page.locator("[aria-invalid], .fault").count() == 0
        page.get_by_label("Factor").select_option("wrapper")
        page.locator("#value-b").fill("nice | tee x")
        page.wait_for_selector("#value-b[aria-invalid=true]")
        assert page.locator("#start").is_disabled()
        page.locator("#value-b").fill("nice -n 5")
        page.wait_for_selector("#start:enabled")
        page.evaluate("scrollTo(0, document.getElementById('blocks').offsetTop)")
        box = page.locator("#start").bounding_box()
        assert 0 < box["y"] < 800 - box["height"]
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert [one for one in page.complaints if "409" not in one] == [], "what the form refused"
