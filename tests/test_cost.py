"""What a unit of work costs: the ratio of times, weighed by the price of the nodes."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

import judgements
from judgements import printed
from paribus.core import Address, Hosts, Judgement, StudyError, Word, format_value, parse_price
from paribus.launch import pilot
from paribus.lenses.cost.lens import Cost, costs, rows_of
from paribus.lenses.cost.node_hours import held as held_ahead
from paribus.lenses.cost.node_hours import used
from paribus.plan import freeze, read_plan, write_plan
from paribus.report import export, plots
from paribus.report.figures import all_figures
from paribus.report.html import page
from paribus.report.stored import read_report
from paribus.studyfile.load import load_study

SCHEMA = Path(__file__).parents[1] / "docs" / "verdict-schema.json"
base = judgements.two_arms


def priced(*prices: str, hosts: tuple[int, int] = (0, 0)) -> Judgement:
    """The judgement of two arms, with a price and a number of hosts in each."""
    arms = tuple(
        replace(arm, price=price, hosts=Hosts(pocket=number) if number else None)
        for arm, price, number in zip(base().study.arms, prices, hosts, strict=True)
    )
    return looked(replace(base(), study=replace(base().study, arms=arms)))


def looked(judgement: Judgement) -> Judgement:
    """The judgement with its costs anew."""
    return replace(judgement, lenses={**judgement.lenses, "cost": rows_of(judgement)})


def times() -> dict[str, tuple[float, float, float]]:
    """The ratio of times of each headline, rates as their inverse."""
    found = {}
    for one in base().headlines:
        known = one.comparison
        ends = (known.ratio, known.low, known.high)
        if one.metric.better == "higher":
            ends = (1 / known.ratio, 1 / known.high, 1 / known.low)
        found[one.benchmark] = ends
    return found


def ends(one: Cost) -> tuple[float, float, float]:
    return one.ratio, one.low, one.high


def test_equal_prices_cost_what_the_time_is() -> None:
    found = costs(priced("2 EUR/node-hour", "2 EUR/node-hour"))
    assert {one.benchmark: ends(one) for one in found} == {
        name: pytest.approx(known) for name, known in times().items()
    }
    assert len({one.metric.better for one in base().headlines}) == 2, "times and rates are there"


@given(st.floats(0.01, 1e4), st.floats(0.01, 1e4), st.integers(1, 64), st.integers(1, 64))
def test_nodes_and_prices_scale_ratio_and_interval(
    first: float, second: float, here: int, there: int
) -> None:
    texts = [f"{price:.4f} EUR/node-hour" for price in (first, second)]
    prices = [parse_price(text)[0] for text in texts]
    ranks = {one.label: one.ranks or 1 for one in base().study.benchmarks}
    for one in costs(priced(*texts, hosts=(here, there))):
        nodes = [min(number, ranks[one.benchmark]) for number in (here, there)]
        assert one.nodes == tuple(nodes)
        factor = nodes[1] * prices[1] / (nodes[0] * prices[0])
        assert ends(one) == pytest.approx([end * factor for end in times()[one.benchmark]])
        assert one.low <= one.ratio <= one.high
        bounds = {
            Word.FASTER: one.high < 1 / (1 + one.margin),
            Word.SLOWER: one.low > 1 + one.margin,
        }
        assert all(held == (one.word is word) for word, held in bounds.items())


def test_slower_may_be_cheaper_in_every_output(tmp_path: Path) -> None:
    judgement = priced("2.00 EUR/node-hour", "0.10 EUR/node-hour")
    said = printed(judgement)
    assert "Cost of a unit of work" in said
    assert "cheaper, " in said
    assert "1 node at 0.1 EUR an hour, against 1 node at 2 EUR an hour" in said
    assert "cheaper, " in page(judgement, "")
    table = export.to_json(judgement)
    jsonschema.validate(table, json.loads(SCHEMA.read_text()))
    assert {one["word"] for one in table["costs"]} == {"cheaper"}
    drawn = plots.spent(judgement)
    assert drawn is not None
    rows = {row["line"]: row for row in drawn["data"]["values"]}
    for name, known in times().items():
        assert rows[f"{name}: time"]["ratio"] == pytest.approx(known[0])
    for one in costs(judgement):
        row = rows[f"{one.benchmark}: cost"]
        assert (row["ratio"], row["low"], row["high"]) == ends(one)
        assert (row["verdict"], row["supported"]) == ("cheaper", True)
    assert plots.OF_WORK in page(judgement, "")
    assert "time-cost-energy" in {name for name, _ in all_figures(judgement)}
    assert plots.spent(base()) is None, "neither price nor energy"
    (tmp_path / "verdict.json").write_text(json.dumps(table))
    assert costs(read_report(tmp_path / "verdict.json")) == costs(judgement)


def held(judgement: Judgement, *seconds: float) -> Judgement:
    """The judgement with so many seconds of launches in each arm, in equal parts of benchmarks."""
    names = [arm.name for arm in judgement.study.arms]
    each = dict(zip(names, seconds, strict=True))
    number = len(judgement.study.benchmarks)
    tallies = [replace(one, wall_s=each[one.arm] / number) for one in judgement.tallies]
    return replace(judgement, tallies=tuple(tallies))


def test_node_hours_are_wall_time_by_nodes_in_every_output(tmp_path: Path) -> None:
    base = held(priced("2 EUR/node-hour", "3 EUR/node-hour"), 1800.0, 3600.0)
    addresses = tuple(Address(name, name) for name in ("n1", "n2", "n3"))
    first, second = base.study.arms
    second = replace(second, hosts=Hosts(addresses=addresses))
    judgement = looked(replace(base, study=replace(base.study, arms=(first, second))))
    assert [(one.nodes, one.hours, one.money) for one in used(judgement)] == [
        (1, pytest.approx(0.5), pytest.approx(1.0)),
        (3, pytest.approx(3.0), pytest.approx(9.0)),
    ]
    said = "3.00 node-hours (3 nodes), 9.00 EUR"
    assert f"{second.name}: {said}" in printed(judgement)
    assert said in page(judgement, "")
    table = export.to_json(judgement)
    jsonschema.validate(table, json.loads(SCHEMA.read_text()))
    assert table["node_hours"][1]["text"] == said
    (tmp_path / "verdict.json").write_text(json.dumps(table))
    assert used(read_report(tmp_path / "verdict.json")) == used(judgement)


def test_node_hours_of_this_machine_alone_are_not_said() -> None:
    pocket = tuple(replace(arm, hosts=Hosts(pocket=2)) for arm in base().study.arms)
    for arms in (base().study.arms, pocket):
        judgement = replace(base(), study=replace(base().study, arms=arms))
        judgement = looked(held(judgement, 9.0, 9.0))
        assert used(judgement) == []
        assert "node_hours" not in export.to_json(judgement)


@pytest.mark.parametrize("monitor", [False, True])
def test_node_hours_are_estimated_from_a_pilot(tmp_path: Path, monitor: bool) -> None:
    """Rounds until the first look and the last block, with the warm-up; by hand here."""
    keys = 'price = "2 EUR/node-hour"\nscheduler = {{ name = "slurm", nodes = {}, time = "1 h" }}\n'
    text = 'question = "?"\nfactor = "cluster"\n'
    text += "".join(f"[arms.{name}]\n{keys.format(nodes)}" for name, nodes in (("a", 2), ("b", 4)))
    text += '[[benchmarks]]\nname = "latency"\n[plan]\n'
    text += "monitor = true\n" if monitor else "blocks = 19\n"
    (tmp_path / "study.toml").write_text(text)
    plan = freeze(load_study(tmp_path / "study.toml"), {})
    label = plan.study.benchmarks[0].label
    lines = held_ahead(plan, pilot.Pilot({(label, "a"): 18.0, (label, "b"): 9.0}, {}, {}, None))
    if monitor:
        assert lines[0] == "a: 0.0100 node-hours (2 nodes), 0.0200 EUR, in a round"
        return
    first = 1 + plan.looks.at[0]
    least, most = format_value(0.01 * first), format_value(0.01 * 20)
    money = f"{format_value(0.02 * first)} to {format_value(0.02 * 20)} EUR"
    assert lines[0] == f"a: {least} to {most} node-hours (2 nodes), {money}, in launches"
    assert lines[1] == lines[0].replace("a: ", "b: ").replace("(2", "(4")
    whole = [format_value(number * 27 * 6 / 3600) for number in (first, 20)]
    assert f"held all the time: {' to '.join(whole)} node-hours (6 nodes)" in lines[2]


def test_without_prices_nothing_is_said() -> None:
    assert costs(base()) == []
    assert "Cost of a unit" not in page(looked(base()), "")
    assert "costs" not in export.to_json(looked(base()))


def test_what_has_no_verdict_has_no_cost() -> None:
    base = judgements.withheld()
    arms = tuple(replace(arm, price="1 EUR/node-hour") for arm in base.study.arms)
    held = {one.benchmark for one in base.headlines if one.verdict.word is Word.WITHHELD}
    found = costs(replace(base, study=replace(base.study, arms=arms)))
    assert held
    assert not held & {one.benchmark for one in found}


STUDY = """\
question = "?"
factor = "transport"
[arms.shm]
transport = "shm"
price = "2.07 EUR/node-hour"
[arms.tcp]
transport = "tcp"
price = "1 EUR/node-hour"
[[benchmarks]]
name = "latency"
"""


def test_a_study_has_prices_and_its_plan_keeps_them(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    write_plan(freeze(load_study(path), {}), tmp_path)
    kept = [arm.price for arm in read_plan(tmp_path).study.arms]
    assert kept == ["2.07 EUR/node-hour", "1 EUR/node-hour"]


@pytest.mark.parametrize(
    ("new", "cause"),
    [
        ('price = "1 USD/node-hour"', "the price of shm is in EUR"),
        ('price = "1 EUR"', "cannot be used"),
        ('price = "0 EUR/node-hour"', "cannot be used"),
        ('price = "-1 EUR/node-hour"', "cannot be used"),
        ('price = "nan EUR/node-hour"', "cannot be used"),
        ("price = 1", "cannot be used"),
        ("", "arms.tcp.price: is missing, and shm has one"),
    ],
)
def test_prices_that_cannot_be_compared_are_refused(tmp_path: Path, new: str, cause: str) -> None:
    path = tmp_path / "study.toml"
    path.write_text(STUDY.replace('price = "1 EUR/node-hour"', new))
    with pytest.raises(StudyError) as refused:
        load_study(path)
    assert cause in str(refused.value)
    assert refused.value.fix


@given(st.text())
def test_any_text_is_a_price_above_0_or_refused(text: str) -> None:
    try:
        amount, currency = parse_price(text)
    except ValueError:
        return
    assert 0 < amount < math.inf
    assert currency
