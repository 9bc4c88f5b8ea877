"""A profile of an application and the layers of a study: what is predicted, and what is refused."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import judgements
from judgements import printed
from paribus.__main__ import main
from paribus.core import (
    PARTS,
    Comparison,
    Judgement,
    Kind,
    Profile,
    Skeleton,
    Spread,
    StudyError,
    Word,
)
from paribus.lenses.profiles import prediction as words
from paribus.lenses.profiles.lens import predicted
from paribus.lenses.profiles.prediction import KINDS, forecasts, weigh
from paribus.lenses.profiles.study import profile_text, read_profile, shipped
from paribus.plan import freeze, read_plan, write_plan
from paribus.profile.calls import compressed
from paribus.report import export
from paribus.report.html import page
from paribus.report.stored import read_report
from paribus.studyfile.load import load_study
from stored import judged

NAMED = """question = "?"
factor = "transport"
profile = "{name}"
[arms.shm]
transport = "shm"
[arms.tcp]
transport = "tcp"
[[benchmarks]]
name = "latency"
"""
MEASURED = tuple(kind for part, kinds in KINDS.items() for kind in kinds if part != "one_sided")
GOOD = """schema = "paribus.profile/1"
name = "solver"
command = "mpirun -n 4 ./solver"
ranks = 4
[shares]
messages_small = 0.4
outside = 0.6
"""


def profile(**shares: float) -> Profile:
    return Profile("solver", "mpirun -n 4 ./solver", 4, shares)


def ratio(middle: float, wide: float = 1.01, level: float = 0.99) -> Comparison:
    return Comparison(20, middle, middle / wide, middle * wide, level)


def test_each_share_counts_with_the_ratio_of_its_layer() -> None:
    kinds: dict[str, Comparison] = {
        Kind.LATENCY: ratio(1.5),
        Kind.BANDWIDTH: ratio(1.0),
        Kind.MEMORY: ratio(1.0),
        Kind.COMPUTE: ratio(1.0),
    }
    one = weigh(profile(messages_small=0.4, messages_large=0.1, outside=0.5), kinds, "b")
    assert one.ratio == pytest.approx(0.4 * 1.5 + 0.1 + 0.5)
    assert one.low == pytest.approx((0.4 * 1.5 + 0.6) / 1.01)
    assert one.high == pytest.approx((0.4 * 1.5 + 0.6) * 1.01)
    assert one.level == pytest.approx(1 - 4 * 0.01)
    assert not one.given
    assert words.said(one) == "solver: no forecast; its time changes by +18.8 % to +21.2 %"


def test_what_lies_between_two_kinds_has_the_range_of_both() -> None:
    kinds: dict[str, Comparison] = {Kind.LATENCY: ratio(1.5), Kind.BANDWIDTH: ratio(1.1)}
    one = weigh(profile(messages_middle=1.0), kinds, "b")
    assert (one.low, one.high) == (pytest.approx(1.1 / 1.01), pytest.approx(1.5 * 1.01))
    assert 1.1 < one.ratio < 1.5


def test_a_layer_that_was_not_measured_leaves_no_verdict() -> None:
    kinds: dict[str, Comparison] = {Kind.LATENCY: ratio(1.5), Kind.MEMORY: ratio(1.0)}
    one = weigh(profile(messages_small=0.38, outside=0.62), kinds, "b")
    assert one.ratio == pytest.approx(0.62 + 0.38 * 1.5)
    assert words.said(one) == (
        "solver: no forecast. This study has no interval for time outside MPI, 62 %."
        " The other 38 % alone change the time by +18.4 % to +19.6 %."
    )
    none = weigh(profile(one_sided=1.0), kinds, "b")
    assert (none.given, none.ratio, none.low, none.high) == (False, 1.0, 1.0, 1.0)
    assert "alone change" not in words.said(none)


shares = st.lists(st.floats(0.001, 1), min_size=len(PARTS), max_size=len(PARTS)).map(
    lambda some: {part: one / math.fsum(some) for part, one in zip(PARTS, some, strict=True)}
)
ratios = st.lists(st.floats(0.5, 3), min_size=len(Kind), max_size=len(Kind))


@given(shares, st.floats(0.5, 3))
def test_equal_ratios_give_that_ratio(parts: dict[str, float], same: float) -> None:
    one = weigh(profile(**parts), dict.fromkeys(map(str, Kind), ratio(same)), "b")
    rest = parts["one_sided"]
    assert math.fsum(part.share for part in one.parts) == pytest.approx(1)
    assert one.ratio == pytest.approx(rest + (1 - rest) * same)
    assert one.low <= one.ratio <= one.high
    assert [part.part for part in one.unmeasured] == ["one_sided"]


@given(shares, ratios, st.sampled_from(list(Kind)), st.floats(1, 2))
def test_a_slower_layer_never_predicts_a_faster_application(
    parts: dict[str, float], some: list[float], which: Kind, more: float
) -> None:
    kinds: dict[str, Comparison] = {kind: ratio(one) for kind, one in zip(Kind, some, strict=True)}
    before = weigh(profile(**parts), kinds, "b")
    known = kinds[which]
    kinds[which] = replace(
        known, ratio=known.ratio * more, low=known.low * more, high=known.high * more
    )
    after = weigh(profile(**parts), kinds, "b")
    for end in ("ratio", "low", "high"):
        assert getattr(after, end) >= getattr(before, end) * (1 - 1e-12)


def test_a_report_predicts_and_reads_its_prediction_again(tmp_path: Path) -> None:
    base = judgements.two_arms()
    judgement = predicted(base, profile(messages_small=0.3, messages_large=0.7))
    (one,) = judgement.lenses["profiles"].predictions
    assert (one.given, one.replayed) == (False, False)
    said = printed(judgement)
    assert "Forecast, not measured" in said
    assert "For a forecast, name a profile with a skeleton" in said
    title = ">Forecast, not measured<"
    assert title in page(judgement, "")
    assert title not in page(base, "")
    file = tmp_path / "verdict.json"
    file.write_text(json.dumps(export.to_json(judgement)))
    again = read_report(file)
    assert again.lenses == judgement.lenses
    assert again.study.profile == judgement.study.profile


def test_a_study_with_a_profile_predicts() -> None:
    asked = replace(judgements.study(("latency", "triad")), profile=profile(messages_small=1.0))
    judgement = judged(asked, judgements.SCRIPT, name="profile", facts=judgements.FACTS)
    kinds, (one,) = judgement.lenses["profiles"]
    known = next(f for f in kinds if f.benchmark == Kind.LATENCY).comparison
    assert known
    assert (one.ratio, one.low, one.high) == pytest.approx((known.ratio, known.low, known.high))
    assert one.level == pytest.approx(0.95), "whichever look ended the study"


def test_a_report_is_made_with_a_profile(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, mine = tmp_path / "verdict.json", tmp_path / "mine.toml"
    file.write_text(json.dumps(export.to_json(judgements.two_arms())))
    mine.write_text(GOOD)
    main(["report", str(file), "--profile", str(mine), "--json"])
    (one,) = json.loads(capsys.readouterr().out)["predictions"]
    assert (one["application"], one["predicted"], one["word"]) == ("solver", True, None)
    assert "time outside MPI, 60 %" in one["text"]
    assert main(["report", str(file), "--profile", str(tmp_path / "no.toml")]) == 2
    assert "no.toml: cannot be read" in capsys.readouterr().err


def test_what_has_no_verdict_predicts_nothing() -> None:
    judgement = predicted(judgements.withheld(), profile(messages_small=1.0))
    assert not any(one.given for one in judgement.lenses["profiles"].predictions)
    assert "solver: no forecast" in printed(judgement)


def test_the_profile_of_another_program_is_noted() -> None:
    judgement = predicted(judgements.commands(), profile(outside=1.0))
    (one,) = judgement.lenses["profiles"].predictions
    assert one.programs
    assert "but the profile is of `mpirun -n 4 ./solver`" in words.basis(one)
    same = replace(profile(outside=1.0), command=f"mpirun -n 2 ./{one.programs[0]}")
    assert not predicted(judgements.commands(), same).lenses["profiles"].predictions[0].programs


def test_a_study_names_a_profile_and_its_plan_keeps_it(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(GOOD)
    study = tmp_path / "study.toml"
    text = NAMED.format(name="mine.toml")
    study.write_text(text)
    loaded = load_study(study)
    assert loaded.profile == replace(
        profile(),
        shares=dict.fromkeys(PARTS, 0.0)
        | {
            "messages_small": 0.4,
            "outside": 0.6,
        },
    )
    write_plan(freeze(loaded, {}), tmp_path)
    assert read_plan(tmp_path).study.profile == loaded.profile
    study.write_text(text.replace("mine.toml", "gromacs"))
    with pytest.raises(StudyError, match=r"gromacs: cannot be read: No such file(.|\n)*lammps"):
        load_study(study)


def test_a_profile_that_ships_is_known_by_name_and_says_where_it_was_taken(tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text(NAMED.format(name="lammps"))
    *_, replay = load_study(study).benchmarks
    known = read_profile(shipped()["lammps"])
    assert (replay.label, replay.ranks) == ("replay-lammps", 2)
    assert replay.parameters["calls"] == known.skeleton.calls
    assert known.taken
    assert known.machine
    assert known.library
    assert "in.lj" in known.source
    (tmp_path / "lammps").write_text(GOOD)
    own = load_study(study).profile
    assert own.name == "solver", "a file of that name is the user's own"


def test_a_profile_is_written_as_it_is_read(tmp_path: Path) -> None:
    one = replace(profile(), shares=dict.fromkeys(PARTS, 1 / len(PARTS)), machine='a "b" \\ \x7f é')
    path = tmp_path / "p.toml"
    path.write_text(profile_text(one, {"seconds": 1.5, "calls": {"Send": {"calls": 3}}}))
    again = read_profile(path)
    assert again == replace(one, shares=again.shares)
    assert dict(again.shares) == pytest.approx(dict(one.shares))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"paribus.profile/1"', '"paribus.verdict/1"', "is not a profile of schema"),
        ("0.6", "0.7", "shares: sum to 1.1"),
        ("0.6", "-0.6", "outside = -0.6: cannot be used"),
        ("0.6", "nan", "outside = nan: cannot be used"),
        ("0.6", "inf", "outside = inf: cannot be used"),
        ("0.6", "true", "outside = True: cannot be used"),
        ("outside", "outside_mpi", "outside_mpi: unknown key"),
        ("ranks", "rank", "unknown key"),
        ("ranks = 4", "ranks = 0", "ranks = 0: cannot be used"),
        ("[shares]", "[share]", "unknown key"),
        ("name", "name =", "line 2"),
    ],
)
def test_what_is_no_profile_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = tmp_path / "p.toml"
    path.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(StudyError) as refused:
        read_profile(path)
    assert said in str(refused.value)
    assert refused.value.fix


def test_a_missing_profile_is_named(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="cannot be read: No such file"):
        read_profile(tmp_path / "none.toml")


CALLS = compressed("paribus-calls 1 2 0\n")

# --- forecasts ---------------------------------------------------------------------------------


def replayed(**more: Any) -> Judgement:
    """Return a judgement whose study replayed an application, b taking 1.5 times as long."""
    asked = {"application": "solver", "calls": CALLS, "machine": "there", "samples": None}
    asked |= {"seconds": 1.0, "computing": 0.8, "spread": 0.0, "delay_share": None} | more
    base = judgements.commands()
    arm = base.study.arms[1].name
    one = replace(base.study.benchmarks[0], benchmark="replay", label="replay-solver")
    study = replace(base.study, benchmarks=(replace(one, parameters=asked),))
    head = next(one for one in base.headlines if one.decides and one.arm == arm)
    verdict = replace(head.verdict, word=Word.SLOWER)
    value = Spread(8, 1.0, 0.99, 1.01)
    head = replace(
        head,
        benchmark="replay-solver",
        comparison=Comparison(8, 1.5, 1.48, 1.52, 0.95),
        verdict=verdict,
        reference_value=value,
    )
    return replace(base, study=study, headlines=(head,), facts={})


def test_a_replay_gives_a_forecast_with_a_range_and_no_verdict() -> None:
    (one,) = forecasts(replayed(), ())
    assert (one.ratio, one.given, one.word) == (1.5, True, None)
    off = math.exp(0.09 + 0.1 * math.log(1.5))
    assert (one.low, one.high) == (pytest.approx(1.48 / off), pytest.approx(1.52 * off))
    assert words.said(one).startswith("solver: time +50.0 % (")
    assert words.said(one).endswith("forecast)")
    assert one.assumes == ("Assumption: computation takes as long as on there.",)
    shares = [part.share * (part.ratio or 0) for part in one.parts]
    assert math.fsum(shares) == pytest.approx(1.5)


def test_a_forecast_is_of_the_program_whose_calls_were_replayed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another program of the same name gets a range only."""
    file = tmp_path / "verdict.json"
    file.write_text(json.dumps(export.to_json(replayed())))
    for calls, same in ((CALLS, True), (compressed("paribus-calls 1 2 0\n\n"), False)):
        mine = replace(profile(outside=1.0), skeleton=Skeleton(calls, 1.0, 0.8))
        own = tmp_path / "own.toml"
        own.write_text(profile_text(mine, {}))
        assert main(["forecast", str(own), "--on", str(file), "--json"]) == 0
        (one,) = json.loads(capsys.readouterr().out)["forecasts"]
        assert (one["application"], one["given"]) == ("solver", same)
        assert main(["report", str(file), "--profile", str(own), "--json"]) in (0, 3)
        said = json.loads(capsys.readouterr().out)
        assert len(said["predictions"]) == 2 - same
        assert said["study"]["profile"]["skeleton"] is None


def test_where_processors_differ_computation_has_its_own_ratio() -> None:
    judgement = replayed()
    arms = [judgement.reference, judgement.headlines[0].arm]
    facts = {arm: {"cpu.model": arm} for arm in arms}
    judgement = replace(judgement, facts=facts)
    (none,) = forecasts(judgement, ())
    assert not none.given
    assert "no forecast" in words.said(none)
    (node,) = forecasts(judgement, (), {arms[1]: ratio(0.5)})
    assert node.ratio == pytest.approx(1.5 + 0.8 * (0.5 - 1), rel=1e-3)
    head = judgement.headlines[0]
    kinds = [
        replace(head, benchmark=kind, comparison=ratio(size))
        for kind, size in ((Kind.MEMORY, 0.5), (Kind.COMPUTE, 1.0))
    ]
    (between,) = forecasts(judgement, kinds)
    assert between.low < 1.48 + 0.8 * (0.5 - 1) < 1.52 < between.high


def test_a_replay_that_took_another_time_than_the_program_is_named() -> None:
    (one,) = forecasts(replayed(seconds=2.0), ())
    assert "the replay took 0.5 times as long as the program itself" in one.assumes[-1]
    (wide,) = forecasts(replayed(spread=0.3), ())
    assert wide.low < 1.48 / math.exp(0.3)


@pytest.mark.parametrize("more", [{"seconds": 0}, {"computing": "all"}, {"spread": 7}])
def test_a_plan_of_others_with_odd_values_has_no_forecast(more: dict[str, Any]) -> None:
    assert not list(forecasts(replayed(**more), ()))


def test_every_profile_that_ships_is_replayed(tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    names = '", "'.join(shipped())
    study.write_text(NAMED.replace('"{name}"', f'["{names}"]'))
    labels = [one.label for one in load_study(study).benchmarks]
    assert labels == ["latency", *(f"replay-{name}" for name in shipped())]


def test_stored_cases_are_forecast_as_the_page_says() -> None:
    """Programs and their replays, measured by tools/forecast.py."""
    cases = json.loads((Path(__file__).parent / "data/forecasts.json").read_text())["cases"]
    changed = [one for one in cases if abs(math.log(one["truth"][0])) > 0.05]
    for some, share in ((cases, 1 / 2), (changed, 1 / 4)):
        off = [abs(math.log(one["replay"][0] / one["truth"][0])) for one in some]
        nothing = [abs(math.log(one["truth"][0])) for one in some]
        assert median(off) < share * median(nothing)
    known = [one for one in changed if math.log(one["truth"][2] / one["truth"][1]) / 2 <= 0.1]
    near = [abs(math.log(one["replay"][0] / one["truth"][0])) <= 0.15 for one in known]
    assert sum(near) >= 0.9 * len(near)
    platforms = {"tcp", "mpich", "intelmpi", "gigabit", "slow", "near"}
    assert {one["platform"] for one in cases} == platforms
