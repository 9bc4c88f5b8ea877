"""The state probe: blocks whose launches met two states of the machine, and arms that differ.

Seeds are fixed, so every figure is the same each time; bounds leave three standard errors.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paribus.stats.probes import REDO_MOST, ProbeOfLaunch, arms_differ, discordant_blocks
from recorded import rows

FIGURES = ("core_to_core_ns", "triad_gbps", "clock_ghz")


def probe_of(row: dict[str, str], block=None, arm: str = "") -> ProbeOfLaunch:
    figures = {key: float(row[key]) for key in row if "." in key and row[key]}
    return ProbeOfLaunch(
        (row["benchmark"], int(row["block"])) if block is None else block,
        arm or row["arm"],
        figures,
    )


def simulated(draw, blocks, higher, ratio=3.0, levels=(1.0, 1.0)):
    """Return probes of two arms; `higher(block, arm)` says whether a launch is in the state."""
    found = []
    for block in range(blocks):
        for arm, level in zip("ab", levels, strict=True):
            base = draw.gauss(0, 0.08) + math.log(level)
            base += math.log(ratio) * higher(block, arm)
            found.append(
                ProbeOfLaunch(
                    block,
                    arm,
                    {
                        f"{when}.{name}": math.exp(
                            base * (name == FIGURES[0]) + draw.gauss(0, 0.05)
                        )
                        for name in FIGURES
                        for when in ("before", "after")
                    },
                )
            )
    return found


def test_a_recorded_machine_with_two_states_is_seen_through():
    """Study 1 is of a machine that flipped; its launches of 8 B differ by a third or by 60 %."""
    mine = [row for row in rows("probe-launches.csv.gz") if row["study"] == "1"]
    times: dict[tuple[str, int], dict[str, float]] = defaultdict(dict)
    for row in mine:
        times[row["benchmark"], int(row["block"])][row["arm"]] = math.log(float(row["us_8B"]))
    torn = {block for block, two in times.items() if abs(two["one"] - two["two"]) > 0.5}
    found = discordant_blocks([probe_of(row) for row in mine])
    assert len(torn) == 7
    assert torn < found
    assert len(found) == 9
    assert len(found) <= REDO_MOST * len(times)
    assert arms_differ([probe_of(row) for row in mine], "one") == ()


@pytest.mark.parametrize("study", "23456789")
def test_recorded_studies_in_one_state_have_no_discordant_block(study):
    mine = [probe_of(r) for r in rows("probe-launches.csv.gz") if r["study"] == study]
    assert len(mine) >= 36
    for launches in range(2, len(mine) + 1, 2):
        assert discordant_blocks(mine[:launches]) == set()


@pytest.mark.parametrize("launches", [12, 24, 48])
def test_resampled_launches_of_one_state_seldom_have_a_discordant_block(launches):
    draw = random.Random(10)
    one = [r for r in rows("probe-launches.csv.gz") if r["study"] in "2345678"]
    reported = 0
    for _ in range(500):
        drawn = draw.choices(one, k=launches)
        reported += bool(
            discordant_blocks([probe_of(r, i // 2, "ab"[i % 2]) for i, r in enumerate(drawn)])
        )
    assert reported / 500 <= 0.01


@pytest.mark.parametrize("blocks", [6, 12, 30])
def test_normal_noise_has_no_discordant_block(blocks):
    draw = random.Random(11)
    reported = [discordant_blocks(simulated(draw, blocks, lambda *_: False)) for _ in range(300)]
    assert sum(map(bool, reported)) <= 1


def test_blocks_in_two_states_are_reported_and_those_alike_are_not():
    draw = random.Random(12)
    for _ in range(30):
        probes = simulated(draw, 20, lambda b, arm: b >= 12 or (b, arm) in ((4, "a"), (7, "b")))
        assert discordant_blocks(probes) == {4, 7}


def test_a_long_noisy_study_does_not_close_the_gap():
    draw = random.Random(21)
    for _ in range(10):
        probes = []
        for block in range(120):
            for arm in "ab":
                higher = block >= 72 or (block, arm) == (1, "a")
                values = (math.log(3.5) * higher + draw.gauss(0, 0.12) for _ in range(2))
                names = ("before.x", "after.x")
                figures = dict(zip(names, map(math.exp, values), strict=True))
                probes.append(ProbeOfLaunch(block, arm, figures))
        found = discordant_blocks(probes)
        assert 1 in found
        assert len(found) <= 3


def test_a_state_that_changes_inside_a_launch():
    probes = simulated(random.Random(13), 12, lambda b, _: b >= 6)
    changed = dict(probes[0].figures) | {"after.core_to_core_ns": 3.0}
    probes[0] = ProbeOfLaunch(0, "a", changed)
    assert discordant_blocks(probes) == {0}


def test_an_arm_that_is_always_in_the_other_state_is_a_finding_and_no_block_is_done_again():
    draw = random.Random(14)
    probes = simulated(draw, 12, lambda _, arm: arm == "b")
    assert discordant_blocks(probes) == set()
    (found,) = arms_differ(probes, "a")
    assert (found.figure, found.arm, found.kind) == ("core_to_core_ns", "b", "level")
    assert found.low < 3 < found.high


def test_an_arm_that_is_more_often_in_the_other_state_is_a_finding():
    draw = random.Random(15)
    probes = simulated(draw, 30, lambda b, arm: arm == "b" and b % 3 == 0)
    assert discordant_blocks(probes) == set()
    (found,) = arms_differ(probes, "a")
    assert (found.kind, found.only_arm, found.only_reference) == ("share", 10, 0)
    assert found.p < 0.05


def test_arms_of_another_level_on_a_machine_with_two_states():
    """Levels as far apart as the states: b's lower is a's higher."""
    probes = simulated(
        random.Random(16), 20, lambda b, arm: b >= 10 or (b, arm) == (3, "a"), levels=(1.0, 3.0)
    )
    assert discordant_blocks(probes) == {3}
    (found,) = arms_differ(probes, "a")
    assert (found.kind, found.ratio) == ("level", pytest.approx(3, rel=0.1))


@pytest.mark.parametrize("blocks", [8, 12, 30])
def test_arms_alike_are_seldom_found_to_differ(blocks):
    draw = random.Random(17)
    reported = 0
    for _ in range(300):
        probes = [
            ProbeOfLaunch(
                b, arm, {f"before.{name}": draw.lognormvariate(0, 0.2) for name in FIGURES}
            )
            for b in range(blocks)
            for arm in "ab"
        ]
        reported += bool(arms_differ(probes, "a"))
    assert reported / 300 <= 0.04 + 3 * math.sqrt(0.04 / 300)


def test_few_missing_and_senseless_figures():
    draw = random.Random(18)
    torn = simulated(draw, 5, lambda b, arm: (b, arm) == (2, "a"))
    assert discordant_blocks(torn) == set()
    assert discordant_blocks([]) == set()
    assert arms_differ([], "a") == ()
    empty = [ProbeOfLaunch(b, arm, {}) for b in range(20) for arm in "ab"]
    assert discordant_blocks(empty) == set()
    odd = [
        ProbeOfLaunch(b, arm, {"before.x": 0.0, "after.x": math.inf})
        for b in range(20)
        for arm in "ab"
    ]
    assert discordant_blocks(odd) == set()
    assert arms_differ(odd, "a") == ()


@given(st.randoms(use_true_random=False), st.floats(0.1, 10))
@settings(max_examples=20, deadline=None)
def test_discordance_knows_neither_units_nor_names_nor_the_order_of_launches(draw, scale):
    probes = simulated(random.Random(19), 14, lambda b, arm: b > 8 or (b, arm) == (2, "b"))
    expected = discordant_blocks(probes)
    assert expected == {2}
    other = [
        ProbeOfLaunch(
            p.block,
            {"a": "b", "b": "a"}[p.arm],
            {key: value * scale for key, value in p.figures.items()},
        )
        for p in draw.sample(probes, len(probes))
    ]
    assert discordant_blocks(other) == expected
