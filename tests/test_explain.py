"""`paribus explain`: what arms differ in, what a block launches, and which change counts."""

from __future__ import annotations

import io
import json
import math
import random
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice, permutations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2
from scipy.stats import t as student

from paribus.__main__ import main
from paribus.audit.audit import explained_by
from paribus.core import (
    Address,
    Arm,
    Case,
    Comparison,
    Container,
    Difference,
    Hosts,
    Judgement,
    Notice,
    NoticeName,
    Outcome,
    Sample,
    Selection,
    Settings,
    Ssh,
    State,
    StoreError,
    Study,
    StudyError,
    Word,
)
from paribus.core.changes import (
    Part,
    changes,
    combined,
    confidence_of,
    divisible,
    parts_of,
    plain_name,
    value_text,
    values_of,
)
from paribus.core.units import percent
from paribus.designs import design_of
from paribus.designs.explain import Explain, belonging, explained
from paribus.judge.conclude import judgement_of
from paribus.judge.evidence import Evidence
from paribus.judge.headlines import headlines
from paribus.lenses.parts.lens import COLUMNS, LENS, REST, TITLE, change, figure
from paribus.plan import Plan, check_same, freeze, read_plan, write_plan
from paribus.plan.frozen import sealed
from paribus.report import spread, track
from paribus.report.advice import next_steps, run_command
from paribus.report.export import to_json
from paribus.report.figures import write_figures
from paribus.report.html import page
from paribus.report.printing import console_on
from paribus.report.short import print_short
from paribus.report.stored import read_report
from paribus.report.terminal import print_report
from paribus.report.unequal import how_to_separate
from paribus.report.wording import SIZE_WITHHELD
from paribus.stats import opposites, parts
from paribus.store import Store, read_count
from paribus.studyfile.load import load_study
from processes import executable
from studies import command, launches_in, paribus
from test_report_export import faults

NEEDS = st.lists(st.integers(0, 7), min_size=2, max_size=8).map(
    # A change needs an earlier one, so that an order is possible.
    lambda drawn: tuple((one % n,) if n and one % 3 == 0 else () for n, one in enumerate(drawn))
)
ENV = {"OMP_PROC_BIND": "close", "OMP_PLACES": "cores", "OMP_DYNAMIC": "true"}


def study(env: Mapping[str, str] = ENV, path: str = "", **plan: Any) -> Study:
    """Return a study of one command whose second arm sets variables, to be explained."""
    made = Study(
        "Which?",
        "env",
        (Arm("old"), Arm("new", env=env)),
        (Selection("command", "command", 1, {"argv": ["true"]}, 60.0),),
        Settings(**{"seed": 4, "margin": 0.02, **plan}),
        path=path,
    )
    return explained(made)


def of_many(several: int = 9) -> Study:
    """Return a study whose second arm sets a transport and so many variables, not yet explained."""
    arm = Arm("new", env={f"OMP_{n:02}": "1" for n in range(several)}, transport="tcp")
    return replace(study(path="up.toml"), arms=(Arm("old"), arm), asked={})


def judged(frozen: Plan, log: Any, noise: float = 0.01) -> Judgement:
    """Return the judgement of launches that take exp(log(names of what is switched)), with noise.

    Launched until every benchmark is settled, as a sitting does.
    """
    evidence, draw = Evidence(frozen.metrics), random.Random(7)
    names = {part.name for part in parts_of(frozen.study)}
    for number, block in enumerate(frozen.blocks()):
        for launch in block:
            on = frozenset(launch.arm.split("+")[1:]) if launch.arm not in ("old", "new") else names
            on = frozenset() if launch.arm == "old" else frozenset(on)
            wall = math.exp(log(on) + draw.gauss(0, noise))
            sample = Sample("wall", Case(), (wall,))
            outcome = Outcome(State.OK, float(launch.number), wall, 0, ("true",), (sample,))
            evidence.add(launch, outcome)
        found = headlines(frozen, evidence, frozen.study.benchmarks[0])
        if number and all(one.verdict.final for one in found):
            break
    return judgement_of(frozen, evidence, directory="", over={"command": True})


# --- stations and parts ----------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(NEEDS, st.integers(0, 2**31), st.integers(0, 60))
def test_stations_keep_constraints_and_parts_add_up(
    needs: parts.Needs, seed: int, block: int
) -> None:
    order = parts.order(needs, seed, "x", block)
    assert sorted(order) == list(range(len(needs)))
    stations = parts.stations(order, needs)
    whole = (1 << len(needs)) - 1
    assert {0, whole} <= set(stations)
    assert len(stations) == len(set(stations)) <= 8 * math.ceil(len(needs) / 3)
    for station in stations:
        for change_, wanted in enumerate(needs):
            if station >> change_ & 1:
                assert all(station >> one & 1 for one in wanted)
    draw = random.Random(seed)
    logs = {one: draw.gauss(0, 1) for one in stations}
    found = parts.parts(logs, order, needs)
    assert math.isclose(sum(found), logs[whole] - logs[0], abs_tol=1e-9)


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 3), st.integers(0, 10_000))
def test_the_parts_of_up_to_three_changes_are_shapley_values(several: int, seed: int) -> None:
    """In every block, whatever acts on what: against the definition, over all orders."""
    draw, needs = random.Random(seed), ((),) * several
    logs = {one: draw.gauss(0, 1) for one in range(1 << several)}
    mean = [0.0] * several
    turns = list(permutations(range(several)))
    for turn in turns:
        station = 0
        for one in turn:
            mean[one] += (logs[station | 1 << one] - logs[station]) / len(turns)
            station |= 1 << one
    order = parts.order(needs, seed, "x", 1)
    assert parts.stations(order, needs) == tuple(range(1 << several))
    assert parts.parts(logs, order, needs) == pytest.approx(mean)


def test_each_order_that_constraints_allow_is_as_likely() -> None:
    """And over a run of blocks as often as it should, to within one."""
    needs: parts.Needs = ((), (0,), (), ())
    runs = [
        [parts.order(needs, seed, "x", block) for block in range(1, opposites.RUN + 1)]
        for seed in range(400)
    ]
    assert all(max(Counter(run).values()) <= 2 for run in runs)
    counts = Counter(order for run in runs for order in run)
    assert len(counts) == 12
    expected = 400 * opposites.RUN / 12
    distance = sum((n - expected) ** 2 / expected for n in counts.values())
    assert distance < chi2.ppf(0.999, 11)


def test_how_two_changes_act_together_is_found_beside_a_third() -> None:
    logs = {one: 0.1 * (one & 1) + 0.2 * (one & 3 == 3) + 0.4 * (one & 7 == 7) for one in range(8)}
    found = parts.interplay(logs, (0, 1, 2), ((), (), ()))
    assert found == pytest.approx({(0, 1): 0.4, (0, 2): 0.2, (1, 2): 0.2})


def test_an_exact_word_is_possible_at_every_look() -> None:
    for several in range(2, 9):
        looks = parts.looks(several, 60)
        assert 2 ** (1 - looks.at[0]) <= looks.level
        assert looks.any_p(looks.level) <= 0.05 / (several + parts.BESIDE) * 1.001
    assert parts.looks(3, 8).at == (8,)
    with pytest.raises(ValueError, match="8 blocks: too few for exact intervals of 8 parts"):
        parts.looks(8, 8)


def test_students_quantile_is_that_of_the_tables() -> None:
    values = [math.exp(one) for one in (0.1, 0.3, 0.1, 0.2, 0.4, 0.1, 0.2, 0.3, 0.1, 0.2, 0.1, 0.2)]
    logs = [math.log(one) for one in values]
    found = parts.compare(logs, 0.998, 4)
    mean = sum(logs) / 12
    sd = math.sqrt(sum((one - mean) ** 2 for one in logs) / 11)
    half = float(student.ppf(0.999, 11)) * sd / math.sqrt(12)
    assert math.log(found.ratio) == pytest.approx(mean)
    assert math.log(found.high) >= mean + 0.999 * half
    assert parts.compare(logs, 0.998, 3).ratio != found.ratio


# --- changes of arms -------------------------------------------------------------------------


def test_changes_are_the_keys_in_which_arms_differ() -> None:
    first = Arm("a", env={"X": "1", "GONE": "2"}, mpi="openmpi")
    second = Arm(
        "b",
        env={"X": "2"},
        mpi="mpich",
        container=Container("podman"),
        ranks_per_host=1,
        wrap=("n",),
    )
    found = changes(first, second)
    assert sorted(found) == [
        *("container", "env.GONE", "env.X", "mpi", "ranks_per_host", "wrap"),
    ]
    both = changes(second, replace(second, container=Container("podman", network="host")))
    assert both == ("container.network",)
    assert changes(first, replace(first, name="other", price="1 EUR/node-hour")) == ()


@settings(max_examples=40, deadline=None)
@given(st.sets(st.integers(0, 5)))
def test_a_station_is_the_reference_with_some_keys_of_the_arm(on: set[int]) -> None:
    first = Arm("a", env={"X": "1"}, hosts=Hosts((Address("n1", "n1"),)))
    second = Arm(
        "b",
        env={"Y": "2"},
        transport="tcp",
        hosts=Hosts((Address("n2", "n2"),), launcher="srun"),
        build=(("make",),),
        source="src",
    )
    keys = changes(first, second)
    assert len(keys) == 6
    switched = [key for n, key in enumerate(keys) if n in on]
    between = combined(first, second, switched, "between")
    assert set(changes(first, between)) == set(switched)
    assert set(changes(between, second)) == set(keys) - set(switched)
    assert values_of(combined(first, second, keys, "b")) == values_of(second)


@pytest.mark.parametrize(
    ("key", "arm", "said"),
    [
        ("env.OMP_PROC_BIND", Arm("b", env={"OMP_PROC_BIND": "close"}), "OMP_PROC_BIND = close"),
        ("env.X", Arm("b"), "X unset"),
        ("mpi", Arm("b", mpi="mpich"), "mpi = mpich"),
        ("mpi", Arm("b"), "mpi = default"),
        ("container.network", Arm("b", container=Container("podman")), "network = bridge"),
        ("container", Arm("b"), "no container"),
        ("wrap", Arm("b", wrap=("nice", "-n", "5")), "wrap"),
    ],
)
def test_a_change_is_said_as_a_study_file_has_it(key: str, arm: Arm, said: str) -> None:
    assert value_text(key, arm) == said


# --- the plan --------------------------------------------------------------------------------


def test_the_plan_is_frozen_and_the_same_for_the_same_seed(tmp_path: Path) -> None:
    made = study()
    frozen = freeze(made, {})
    assert freeze(made, {}) == frozen
    blocks = list(frozen.blocks())
    assert len(blocks) == 61
    assert all(len({one.arm for one in block}) == 8 for block in blocks)
    assert len({tuple(one.arm for one in block) for block in blocks}) > 55  # in random order
    write_plan(frozen, tmp_path)
    read = read_plan(tmp_path)
    assert read == frozen
    assert [one.name for one in read.design.stages()][:2] == ["old", "new"]
    check_same(read, made, {})


MUTANTS: tuple[Any, ...] = (
    lambda one: replace(one, settings=replace(one.settings, seed=5)),
    lambda one: replace(one, settings=replace(one.settings, blocks=27)),
    lambda one: replace(one, settings=replace(one.settings, margin=0.05)),
    lambda one: replace(one, asked={"parts": one.asked["parts"][:-1]}),
    lambda one: replace(one, asked={"parts": [{**p, "needs": []} for p in one.asked["parts"]]}),
    lambda one: replace(one, asked={"parts": [{**p, "name": "x"} for p in one.asked["parts"]]}),
    lambda one: replace(one, arms=(one.arms[0], replace(one.arms[1], env={**ENV, "X": "1"}))),
)


@pytest.mark.parametrize("mutant", MUTANTS)
def test_what_the_launches_follow_from_is_frozen(mutant: Any) -> None:
    made = study()
    constrained = [dict(one) for one in made.asked["parts"]]
    constrained[1]["needs"] = [0]
    made = replace(made, asked={"parts": constrained})
    frozen = freeze(made, {})
    other = mutant(made)
    assert freeze(other, {}).sha256 != frozen.sha256
    with pytest.raises(Exception, match="has changed since the plan was frozen"):
        check_same(frozen, other, {})


def test_a_study_without_explain_is_resumed_as_the_plan_has_it() -> None:
    """`paribus run STUDY --resume` goes on with what `paribus explain STUDY` froze."""
    plain = Study(
        "Which?",
        "env",
        (Arm("old"), Arm("new", env=ENV)),
        study().benchmarks,
        Settings(margin=0.02),
    )
    frozen = freeze(study(), {})
    check_same(frozen, frozen.design.settled(plain), {})


FORGED: tuple[Any, ...] = (
    [{"name": str(n), "keys": ["env.X"], "needs": []} for n in range(30)],
    [{"name": "x", "keys": ["env.X"]}, {"name": "y", "keys": [], "needs": []}],
    [
        {"name": "x", "keys": ["env.OMP_PLACES"], "needs": [7]},
        {"name": "y", "keys": ["mpi"], "needs": []},
    ],
    [
        {"name": "x", "keys": ["hosts.launcher"], "needs": []},
        {"name": "y", "keys": ["mpi"], "needs": []},
    ],
    [1, 2],
)


@pytest.mark.parametrize("forged", FORGED)
def test_parts_that_no_plan_has_are_refused(tmp_path: Path, forged: Any) -> None:
    frozen = freeze(study(), {})
    other = replace(frozen.study, asked={"parts": forged})
    write_plan(sealed(replace(frozen, study=other)), tmp_path)
    with pytest.raises(StoreError, match="is not a plan"):
        read_plan(tmp_path)


def test_parts_of_three_arms_are_no_verdict(tmp_path: Path) -> None:
    table = to_json(judged(freeze(study(), {}), known))
    table["study"]["arms"].append({**table["study"]["arms"][1], "name": "third"})
    (tmp_path / "verdict.json").write_text(json.dumps(table))
    done = paribus("report", tmp_path / "verdict.json", cwd=tmp_path, code=2)
    assert "verdict.json: " in done.stderr
    assert "defect" not in done.stderr


def test_a_report_names_the_command_that_explains_again() -> None:
    judgement = judged(freeze(study(path="up.toml"), {}), known)
    words = "paribus explain up.toml --reference old --arm new --out"
    assert run_command(replace(judgement, directory="out")).startswith(words)


# --- refusals --------------------------------------------------------------------------------

FILE = """question = "Which?"
factor = "env"
[arms.old]
[arms.new]
env = {{ {env} }}
{more}
[[benchmarks]]
name = "command"
argv = ["true"]
"""


def written(folder: Path, env: Mapping[str, str] = ENV, more: str = "", plan: str = "") -> Path:
    path = folder / "study.toml"
    pairs = ", ".join(f'{key} = "{value}"' for key, value in env.items())
    path.write_text(FILE.format(env=pairs, more=more) + plan)
    return path


CIRCLE = """[parts.needs]
"env.OMP_PLACES" = ["env.OMP_DYNAMIC"]
"env.OMP_DYNAMIC" = ["env.OMP_PLACES"]"""


@pytest.mark.parametrize(
    ("more", "cause", "fix"),
    [
        ('[parts]\ntogether = [["env.X", "mpi"]]', "env.X is no change between", "changes:"),
        ('[parts]\nneeds = { "env.OMP_PLACES" = ["env.Z"] }', "env.Z is no change", "changes:"),
        (CIRCLE, "changes need each other", "group those that need each other"),
        (
            '[parts]\nnames = { "env.OMP_PLACES" = "x", "env.OMP_DYNAMIC" = "x" }',
            "two parts are called x",
            "name them",
        ),
        (
            '[parts]\ntogether = [["env.OMP_PLACES", "env.OMP_DYNAMIC", "env.OMP_PROC_BIND"]]',
            "old and new differ in 1 change that can be switched",
            "paribus run STUDY",
        ),
        ("[arms.third]\n", "has 3 arms to explain, not two", "--reference ARM --arm ARM"),
        ("[scaling]\nranks = [2, 4]", "one size", "remove [scaling]"),
    ],
)
def test_what_cannot_be_explained_is_refused(
    tmp_path: Path, more: str, cause: str, fix: str
) -> None:
    path = written(tmp_path, more=more)
    text = path.read_text()
    if "scaling" in more:  # of programs with ranks
        text = text.replace('name = "command"\nargv = ["true"]', 'name = "barrier"')
        path.write_text(text)
    done = paribus("explain", path, cwd=tmp_path, code=2)
    assert cause in done.stderr
    assert fix in done.stderr
    assert "study.toml" in done.stderr
    assert not (tmp_path / "study-explain.study" / "plan.json").exists()


def test_options_that_would_change_nothing_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path)
    done = paribus("explain", path, "--margin", "5 %", "--dry-run", cwd=tmp_path, code=2)
    assert "--margin: applies to two commands, --a and --b" in done.stderr
    done = paribus("explain", "--a", "true", "--b", "true", "--resume", cwd=tmp_path, code=2)
    assert "--resume: applies to an existing study" in done.stderr


def test_options_of_run_hold_for_two_commands_too(tmp_path: Path) -> None:
    words = ("--a", "true", "--b", "true", "--b-env", "ONE=1", "--b-env", "OTHER=1")
    shown = paribus("explain", *words, "--dry-run", "--no-pilot", cwd=tmp_path, code=0).stdout
    assert "no estimate of the duration (it takes pilot launches): --no-pilot is given" in shown
    done = paribus("explain", *words, "--arm", "third", cwd=tmp_path, code=2)
    assert "third" in done.stderr


@pytest.mark.parametrize(
    ("plan", "cause"),
    [
        ('unit = "session"', "no sessions"),
        ('layout = "duet"', "duets"),
        ("monitor = true", "with an end"),
        ('decides = "cases"', "remove decides"),
    ],
)
def test_designs_that_cannot_be_explained_are_refused(
    tmp_path: Path, plan: str, cause: str
) -> None:
    done = paribus("explain", written(tmp_path, plan=f"[plan]\n{plan}\n"), cwd=tmp_path, code=2)
    assert cause in done.stderr


def test_more_than_eight_changes_are_grouped_first() -> None:
    found = parts_of(explained(of_many()))
    assert [part.name for part in found] == ["transport", "environment"]
    assert len(found[1].keys) == 9


def test_a_table_of_parts_groups_names_and_constrains(tmp_path: Path) -> None:
    more = (
        '[parts]\ntogether = [["env.OMP_PLACES", "env.OMP_DYNAMIC"]]\n'
        'names = { "env.OMP_PROC_BIND" = "binding" }\n'
        'needs = { "env.OMP_PROC_BIND" = ["env.OMP_PLACES"] }'
    )
    made = explained(load_study(written(tmp_path, more=more)))
    assert parts_of(made) == (
        Part("OMP_PLACES and OMP_DYNAMIC", ("env.OMP_PLACES", "env.OMP_DYNAMIC")),
        Part("binding", ("env.OMP_PROC_BIND",), (0,)),
    )
    design = design_of(replace(made, settings=replace(made.settings, seed=1)))
    assert [arm.name for arm in design.stages()] == [
        *("old", "new", "old+OMP_PLACES and OMP_DYNAMIC"),
    ]
    assert set(made.explains) == {f"env.{name}" for name in ENV}


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (("A_1", *(f"B_{n}" for n in range(8))), ["A_1", "environment"]),
        ([f"OMP_{n}" for n in range(9)], ["OMP_0 to OMP_2", "OMP_3 to OMP_5", "OMP_6 to OMP_8"]),
    ],
)
def test_more_than_eight_variables_are_families_or_thirds(
    names: Sequence[str], found: list[str]
) -> None:
    parts_ = parts_of(study(dict.fromkeys(names, "1")))
    assert [part.name for part in parts_] == found
    assert sorted(key for part in parts_ for key in part.keys) == [f"env.{one}" for one in names]


def test_the_changes_of_a_group_are_explained_by_themselves() -> None:
    whole = of_many()
    with pytest.raises(StudyError, match="no group of changes is called 'transport'"):
        explained(whole, within=["transport"])
    made = explained(whole, within=["environment"])
    assert made.arms[1] == replace(whole.arms[1], transport="auto")
    assert [len(part.keys) for part in parts_of(made)] == [3, 3, 3]
    frozen = freeze(made, {})
    check_same(frozen, frozen.design.settled(whole), {})
    again = judged(frozen, lambda on: 0.1 * any("OMP_0" in one for one in on))
    assert "--arm new --within environment" in run_command(again)
    file = io.StringIO()
    slower = judged(freeze(explained(whole), {}), lambda on: 0.1 * ("environment" in on))
    print_report(slower, console_on(file, 200))
    next_ = "Which change of environment: `paribus explain up.toml --reference old --arm new"
    assert f"{next_} --within environment`" in file.getvalue()


def test_the_stages_of_a_group_share_one_error() -> None:
    """Of 81 variables: thirds of thirds; the study without groups takes what is left."""
    whole = of_many(81)
    within: list[str] = []
    left, stages = 0.05, 0
    while True:
        made = freeze(explained(whole, within=within), {})
        groups = [one.name for one in parts_of(made.study) if divisible(one)]
        own = left / 2 if groups else left
        several = len(parts_of(made.study))
        assert made.looks == parts.looks(several, 60, 1 - own)
        assert confidence_of(made.study, parts_of(made.study)) == pytest.approx(1 - own)
        left, stages = left - own, stages + 1
        if not groups:
            break
        within.append(groups[0])
    assert left == 0
    assert stages == 5
    assert within[:2] == ["environment", "OMP_00 to OMP_26"]
    words = design_of(made.study)
    assert "99.7 % confidence" in words.promise(several_looks=True)
    again = run_command(judged(made, lambda on: 0.0))
    assert again.count("--within") == 4
    lone = study()  # three changes, none of them a group
    assert confidence_of(lone, parts_of(lone)) == 0.95


def test_what_belongs_together_is_switched_as_one() -> None:
    """An installation, as a module sets it; the hosts and how they are reached."""
    old = Arm("old", hosts=Hosts((Address("n1", "n1"),)))
    new = Arm(
        "new",
        mpi="/opt/ompi-5",
        env={"LD_LIBRARY_PATH": "/x:/opt/ompi-5/lib", "CUDA_HOME": "/opt/cuda", "OMP_X": "/opt"},
        hosts=Hosts((Address("n2", "n2"), Address("n3", "n3")), ssh=Ssh(user="me")),
    )
    keys = changes(old, new)
    hosts, installed = ("hosts.addresses", "hosts.ssh"), ("mpi", "env.LD_LIBRARY_PATH")
    assert belonging(old, new, keys) == [installed, hosts]
    assert plain_name(hosts) == "hosts"
    assert value_text("hosts.addresses", new) == "hosts = n[2-3]"
    kept = {"parts": {"together": [["env.LD_LIBRARY_PATH"]]}}
    made = explained(replace(study(), arms=(old, new), asked=kept, factor="upgrade"))
    assert [part.name for part in parts_of(made)] == [
        *("mpi", "hosts", "CUDA_HOME", "LD_LIBRARY_PATH", "OMP_X"),
    ]


def test_a_container_comes_before_the_ranks_on_its_hosts() -> None:
    bridged = Arm("new", transport="tcp", container=Container("namespace"), ranks_per_host=1)
    made = replace(study(), arms=(Arm("old"), bridged), asked={}, factor="network")
    found = {part.name: part for part in parts_of(explained(made))}
    at = [*found]
    assert [at[one] for one in found["ranks_per_host"].needs] == ["container"]


# --- the verdict -----------------------------------------------------------------------------


def known(on: frozenset[str]) -> float:
    """Return a game: 10 %, 5 %, nothing, and 6 % more where the first two are both switched."""
    log = math.log(1.10) * ("OMP_PLACES" in on) + math.log(1.05) * ("OMP_DYNAMIC" in on)
    return log + math.log(1.06) * ({"OMP_PLACES", "OMP_DYNAMIC"} <= on)


def test_parts_have_what_they_make_and_what_acts_together_is_named() -> None:
    judgement = judged(freeze(study(), {}), known)
    (row,) = judgement.lenses["parts"]
    found = {one.name: one for one in row.parts}
    truth = {
        "OMP_PLACES": 1.10 * math.sqrt(1.06),
        "OMP_DYNAMIC": 1.05 * math.sqrt(1.06),
        "OMP_PROC_BIND": 1.0,
    }
    for name, ratio in truth.items():
        assert found[name].comparison.low <= ratio <= found[name].comparison.high
    assert [found[name].word for name in truth] == [Word.SLOWER, Word.SLOWER, Word.EQUIVALENT]
    (pair,) = row.acting
    assert {pair.name, pair.beside} == {"OMP_PLACES", "OMP_DYNAMIC"}
    assert pair.comparison.low <= 1.06 <= pair.comparison.high
    product = math.prod(one.comparison.ratio for one in row.parts) * row.rest.ratio
    assert product == pytest.approx(row.whole.ratio)
    said = judgement.sentence
    assert said.startswith("arm new is slower in command (1.")
    assert "OMP_PLACES = cores makes +13" in said
    assert "OMP_PROC_BIND has no part (equivalent)" in said
    assert "on top of both" in said


def test_a_study_goes_on_until_each_part_has_its_word() -> None:
    """A gap of 30 % is seen at the first look; whether a change in it does nothing, later."""

    frozen = freeze(study(), {})
    quiet, noisy = (
        judged(frozen, lambda on: 0.26 * ("OMP_PLACES" in on), noise) for noise in (0.005, 0.05)
    )
    assert quiet.headlines[0].comparison.blocks == frozen.looks.at[0]
    assert noisy.headlines[0].comparison.blocks > frozen.looks.at[0]
    assert noisy.headlines[0].verdict.final


def test_a_gap_that_is_not_there_is_an_answer() -> None:
    judgement = judged(freeze(study(), {}), lambda on: 0.0)
    assert "The gap is not reproduced here." in judgement.sentence
    (row,) = judgement.lenses["parts"]
    assert {one.word for one in row.parts} == {Word.EQUIVALENT}
    assert not row.acting


def test_a_rest_that_may_be_nothing_is_no_sign_of_changes_that_act_together() -> None:
    judgement = judged(freeze(study(), {}), lambda on: 0.1 * ("OMP_PLACES" in on))
    (row,) = judgement.lenses["parts"]
    for low, high, said in ((0.9, 1.2, False), (1.03, 1.1, True), (0.9, 0.97, True)):
        mixed = replace(row, rest=replace(row.rest, ratio=1.05, low=low, high=high))
        html = page(replace(judgement, lenses={"parts": (mixed,)}), "")
        assert ("Changes act on each other" in html) is said


def failing(frozen: Plan, is_bad: Any, blocks: int = 1000, how: State = State.FAILED) -> Evidence:
    """Return the evidence of so many blocks, in which the launches fail that are bad."""
    evidence = Evidence(frozen.metrics)
    for block in islice(frozen.blocks(), 1 + blocks):
        for launch in block:
            wall = math.exp(known(frozenset(launch.arm.split("+")[1:])))
            bad = launch.block and is_bad(launch)
            samples = () if bad else (Sample("wall", Case(), (wall,)),)
            state = how if bad else State.OK
            evidence.add(launch, Outcome(state, float(launch.number), wall, 0, ("x",), samples))
    return evidence


def test_combinations_that_fail_leave_the_blocks_to_go_to_the_arms() -> None:
    """Parts of which there is no whole block leave open how many blocks they need."""
    frozen = freeze(study(), {})
    evidence = failing(frozen, lambda launch: "+" in launch.arm, blocks=9)
    [found] = headlines(frozen, evidence, frozen.study.benchmarks[0])
    assert not found.verdict.final


@pytest.mark.parametrize(
    ("arms", "word", "said"),
    [
        (("old", "new"), Word.WITHHELD, "Parts are reported once the whole has a verdict."),
        (("new",), Word.RELIABILITY, "Parts have no verdicts where launches fail."),
    ],
)
def test_a_whole_of_which_half_fails_leaves_no_part(
    arms: tuple[str, ...], word: Word, said: str
) -> None:
    frozen = freeze(study(), {})
    evidence = failing(frozen, lambda one: one.arm in arms and one.block % 2)
    judgement = judgement_of(frozen, evidence, directory="", over={"command": True})
    (row,) = judgement.lenses["parts"]
    assert {row.word, *(one.word for one in row.parts)} == {word}
    assert said in judgement.sentence


def test_a_size_that_is_withheld_is_that_of_no_part() -> None:
    """Of launches that the time limit cut off, as in all reports; the word may stand."""
    frozen = freeze(study(), {})
    evidence = failing(
        frozen, lambda one: one.arm == "new" and one.block == 3, blocks=12, how=State.TIMEOUT
    )
    judgement = judgement_of(frozen, evidence, directory="", over={"command": True})
    (row,) = judgement.lenses["parts"]
    assert not row.size_known
    assert "Parts are reported once" not in judgement.sentence
    file = io.StringIO()
    print_report(judgement, console_on(file, 80))
    shown = file.getvalue().split(TITLE)[1].split("The part of a change")[0]
    rows = [one for one in shown.splitlines() if re.search("OMP_|not explained|all changes", one)]
    assert len(rows) == len(row.parts) + 2
    assert all(SIZE_WITHHELD in one and "%" not in one for one in rows), shown
    assert not re.search(r"[0-9] %", judgement.sentence)
    assert not [*LENS.figures(judgement, (row,))]
    _, *cells = LENS.csv[1](judgement, (row,))
    at = COLUMNS.index("ratio")
    assert {one for row in cells for one in row[at : at + 5]} == {None}
    assert faults(json.loads(json.dumps(to_json(judgement), allow_nan=False))) == []


def test_launches_that_fail_only_with_a_change_name_it() -> None:
    """The arm fails too, so that no combination is to blame."""
    frozen = freeze(study(), {})

    def said(is_bad: Any) -> str:
        evidence = failing(frozen, is_bad)
        judgement = judgement_of(frozen, evidence, directory="", over={"command": True})
        file = io.StringIO()
        print_short(judgement, console_on(file, 80))
        for shown in (file.getvalue(), page(judgement, "")):
            for text in re.findall("Launches fail only [^.]*[.]", judgement.sentence):
                assert text in shown
        return judgement.sentence

    def is_on(launch: Any) -> bool:
        return launch.arm == "new" or "OMP_DYNAMIC" in launch.arm

    flaky = said(lambda launch: is_on(launch) and launch.number % 5 == 0)
    assert "Launches fail only with OMP_DYNAMIC." in flaky
    fixed = said(lambda launch: not is_on(launch) and launch.number % 5 == 0)
    assert "Launches fail only without OMP_DYNAMIC." in fixed
    for all_over in (lambda launch: launch.number % 9 == 0, lambda launch: launch.number == 20):
        assert "Launches fail only" not in said(all_over)


def test_a_part_that_stays_undecided_says_what_decides_it() -> None:
    """By the estimate on which all advice rests (stats/verdict.py, blocks_needed)."""

    def said(part: float, noise: float) -> tuple[str, int | None]:
        frozen = freeze(study(blocks=18), {})
        judgement = judged(frozen, lambda on: part * ("OMP_PLACES" in on), noise)
        (row,) = judgement.lenses["parts"]
        return judgement.sentence, row.needed

    sentence, needed = said(0.055, 0.05)
    found = re.search(r"undecided \(about (\d+) blocks needed\)", sentence)
    assert found
    assert int(found[1]) == needed
    assert needed > 18
    sentence, needed = said(0.055, 0.5)
    assert "undecided (less noise, or a wider margin, needed)" in sentence
    assert needed
    assert needed > Explain.most_blocks
    sentence, needed = said(0.5, 0.001)
    assert "undecided (" not in sentence
    assert needed is None


def test_a_study_with_an_undecided_part_leaves_something_to_do() -> None:
    """Whatever the whole is, and as in all studies where a headline is undecided."""
    frozen = freeze(study(blocks=18), {})
    for noise, left in ((0.05, True), (0.001, False)):
        judgement = judged(frozen, lambda on: 0.5 * ("OMP_PLACES" in on), noise)
        (row,) = judgement.lenses["parts"]
        assert row.word is Word.SLOWER
        assert left is any(one.word is Word.UNDECIDED for one in row.parts)
        steps = next_steps(judgement)
        assert left is any(one.startswith("Undecided (") for one in steps), steps
        assert left is not ("Nothing left to do" in page(judgement, "")), noise


def test_pictures_of_launches_show_combinations() -> None:
    judgement = judged(freeze(study(), {}), known)
    spoken = Notice(NoticeName.OUTLYING_LAUNCHES, "note", ("command",))
    shown = replace(judgement, notices=(*judgement.notices, spoken))
    assert "combinations" in spread.figure(shown, "command")
    assert "combinations" in page(judgement, "")
    stations = {p.arm for p in judgement.points}
    assert set(track.colours(judgement)) == stations
    assert len(stations) > len(set(track.colours(judgement).values())) == 3


def test_reports_hold_the_parts_and_are_read_again(tmp_path: Path) -> None:
    judgement = judged(freeze(study(), {}), known)
    file = io.StringIO()
    print_report(judgement, console_on(file, 80))
    text = file.getvalue()
    assert "Which change makes the difference" in text
    assert max(map(len, text.splitlines())) <= 80
    html = page(judgement, "")
    assert "OMP_PLACES = cores" in html
    table = to_json(judgement)
    assert [one["name"] for one in table["parts"][0]["parts"]] == [
        *("OMP_DYNAMIC", "OMP_PLACES", "OMP_PROC_BIND"),
    ]
    assert faults(json.loads(json.dumps(table, allow_nan=False))) == []
    (tmp_path / "verdict.json").write_text(json.dumps(table))
    again = read_report(tmp_path / "verdict.json")
    assert again.lenses["parts"] == judgement.lenses["parts"]
    assert to_json(again)["parts"] == table["parts"]


def test_the_waterfall_is_drawn_from_the_reference_to_the_arm(tmp_path: Path) -> None:
    """Each bar begins where the one before it ended; the last is the whole."""
    judgement = judged(freeze(study(), {}), known)
    (row,) = judgement.lenses["parts"]
    written = {p.name: p for p in write_figures(judgement, tmp_path)}
    svg, png, pdf = (written[f"parts-00-command.{kind}"] for kind in ("svg", "png", "pdf"))
    ranked = sorted(row.parts, key=lambda one: -abs(math.log(one.comparison.ratio)))
    root = ElementTree.fromstring(svg.read_text())
    texts = ["".join(one.itertext()) for one in root.iter("{http://www.w3.org/2000/svg}text")]
    named = [one.text for one in row.parts]
    assert {"old", "new", REST, *named} <= set(texts)
    assert png.read_bytes().startswith(b"\x89PNG")
    assert min(int.from_bytes(png.read_bytes()[at : at + 4], "big") for at in (16, 20)) > 300
    assert pdf.read_bytes().startswith(b"%PDF")
    assert pdf.stat().st_size > 5000
    bars = figure(judgement, row)["data"]["values"]
    assert [bar["name"] for bar in bars] == ["old", *(one.text for one in ranked), REST, "new"]
    at = 1.0
    for bar in bars[1:-1]:
        assert bar["from"] == pytest.approx(at)
        assert bar["low"] <= bar["to"] <= bar["high"]
        at = bar["to"]
    assert bars[-1]["to"] == pytest.approx(at) == pytest.approx(row.whole.ratio)
    shown = [bar["shown"] for bar in bars]
    described = " ".join(root.itertext())
    assert all(one in described for one in shown)  # for those who do not see it


def test_five_changes_of_which_some_need_others() -> None:
    env = {f"OMP_{name}": "1" for name in "ABCDE"}
    made = study(env)
    held = [dict(one) for one in made.asked["parts"]]
    held[3]["needs"] = [1]
    frozen = freeze(replace(made, asked={"parts": held}), {})
    for block in frozen.blocks():
        assert 8 <= len(block) <= 11
        for one in block:
            on = one.arm.split("+")[1:]
            assert "OMP_D" not in on or "OMP_B" in on
    judgement = judged(frozen, lambda on: 0.1 * ("OMP_D" in on) + 0.05 * ("OMP_A" in on))
    (row,) = judgement.lenses["parts"]
    words = {one.name: one.word for one in row.parts}
    assert words.pop("OMP_D") is words.pop("OMP_A") is Word.SLOWER
    assert set(words.values()) == {Word.EQUIVALENT}


def test_changes_are_shown_as_percent_or_factors() -> None:
    assert change(Comparison(12, 1.142, 1.131, 1.154, 0.99)) == "+14.2 % [13.1, 15.4]"
    assert change(Comparison(12, 3.0, 1.9, 4.0, 0.99)) == "3.00x [1.90x, 4.00x]"
    assert change(Comparison(4, 1.1, 0.0, math.inf, 0.99)) == "+10.0 % [no interval yet]"
    assert change(Comparison(30, 1.2, 1.1, math.inf, 0.99)) == "1.20x [1.10x, inf]"
    assert percent(0.05) == "5 %"


def test_differences_say_how_they_are_switched() -> None:
    rows = [
        Difference("os.kernel", "new", "6.1", "6.8", "unexplained", "", 1),
        Difference("env.OMP_PLACES", "new", "cores", "threads", "unexplained", "", 3),
        Difference("mpi.version", "new", "4.1", "5.0", "factor", "", 2),
        Difference("load.running", "new", "1", "2", "noted", "", 3),
    ]
    lone = Study("", "", (Arm("old"),), (), Settings())
    lines = how_to_separate(lone, rows)
    assert lines[:3] == [
        "env.OMP_PLACES: switched by `env`",
        "mpi.version: switched by `mpi`",
        "cannot be separated from each other: os.kernel",
    ]
    assert "--a-env OMP_PLACES=cores --b-env OMP_PLACES=threads" in lines[3]
    assert "52 launches or more" in lines[3]
    assert how_to_separate(lone, rows[:1]) == []
    noted = [replace(one, kind="noted") for one in rows]
    assert how_to_separate(lone, noted) == []
    assert how_to_separate(lone, noted, ["noted"])[:2] == lines[:2]


def test_what_the_audit_says_can_be_switched_is_what_explain_switches() -> None:
    """Of a study file: the keys of its arms, not the many facts that follow from one key."""
    keys = ("net.ethernet.0.mtu", "container.network", "container.engine", "env.OMP_PLACES")
    rows = [Difference(key, "b", "1", "2", "factor", "", 1) for key in keys]
    boxed = Arm("b", container=Container("namespace", network="bridge"))
    for arm, said in ((boxed, 0), (replace(boxed, env={"OMP_PLACES": "cores"}), 3)):
        of_file = Study("", "", (Arm("a"), arm), (), Settings(), path="x.toml")
        lines = how_to_separate(of_file, rows)
        assert len(lines) == said
        named = [one.partition(": switched by")[0] for one in lines[:-1]]
        assert named == (list(changes(*of_file.arms)) if said else [])


# --- live ------------------------------------------------------------------------------------

PROGRAM = """#!/bin/sh
t=200
[ "$OMP_SCHEDULE" = static ] && t=$((t + 60))
[ "$OMP_NESTED" = true ] && t=$((t + 30))
[ "$OMP_SCHEDULE$OMP_NESTED" = statictrue ] && t=$((t + 20))
echo "took $t ms"
"""
LIVE = ("OMP_SCHEDULE=static", "OMP_NESTED=true", "OMP_DYNAMIC=true")


def two_commands(program: Path, *words: str) -> list[str]:
    env = [word for one in LIVE for word in ("--b-env", one)]
    figure = ["--regex", r"took (\d+) ms", "--unit", "ms"]
    return ["--a", str(program), "--b", str(program), *env, *figure, *words]


def test_two_commands_are_explained_to_the_end(tmp_path: Path) -> None:
    """By figures without noise: 30 and 15 % by themselves, 10 % more together, and nothing."""
    words = two_commands(executable(tmp_path / "solver", PROGRAM), "--out", "out", "--to", "csv")
    done = paribus("explain", *words, cwd=tmp_path, code=0)
    verdict = json.loads((tmp_path / "out" / "verdict.json").read_text())
    (row,) = verdict["parts"]
    found = {one["name"]: one["comparison"]["ratio"] for one in row["parts"]}
    base, one, other, both = 200, 260, 230, 310
    first = math.sqrt(one / base * both / other)
    assert found["OMP_SCHEDULE"] == pytest.approx(first, rel=1e-9)
    assert found["OMP_NESTED"] == pytest.approx(both / base / first, rel=1e-9)
    assert found["OMP_DYNAMIC"] == pytest.approx(1.0)
    (pair,) = row["acting"]
    assert pair["comparison"]["ratio"] == pytest.approx(both * base / one / other)
    assert "OMP_DYNAMIC has no part (equivalent)" in " ".join(done.stdout.split())
    assert verdict["study"]["plan"]["design"] == "explain"
    stored = [one.launch for one in launches_in(tmp_path / "out", samples=False)]
    assert len(stored) == 8 * (1 + parts.looks(3, 60).at[0])
    rows = (tmp_path / "out" / "parts.csv").read_text().splitlines()
    assert rows[0].startswith("benchmark,arm,metric,kind,name,keys,ratio")
    assert len(rows) == 1 + 3 + 2 + 1


def test_a_study_that_is_killed_goes_on_with_the_same_schedule(tmp_path: Path) -> None:
    program = executable(tmp_path / "solver", PROGRAM)
    more = "[plan]\nseed = 3\nblocks = 12\n"
    env = dict(one.split("=") for one in LIVE)
    path = written(tmp_path, env, plan=more)
    text = path.read_text()
    figure = 'regex = "took (.*) ms"\nunit = "ms"\nbetter = "lower"'
    path.write_text(text.replace('argv = ["true"]', f'argv = ["{program}"]\n{figure}'))
    with subprocess.Popen(
        command("explain", path, "--out", "out"),
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        while read_count(tmp_path / "out").launches < 20 and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    frozen = read_plan(tmp_path / "out")
    done = paribus("run", path, "--out", "out", "--resume", cwd=tmp_path, code=0)
    assert read_plan(tmp_path / "out") == frozen
    with Store(tmp_path / "out") as store:
        counting = store.counting()
    assert set(counting) == {one.number for one in frozen.launches}
    assert "OMP_SCHEDULE = static makes +" in done.stdout


SWITCHED = """question = "?"
factor = "policy"
[arms.old]
before = ["sh -c 'echo a > state'"]
observe = ["cat state"]
[arms.new]
before = ["sh -c 'echo b > state'"]
observe = ["cat state"]
after = ["sh -c 'echo a > state'"]
env = { OMP_NESTED = "true" }
[[benchmarks]]
name = "command"
argv = ["sh", "-c", "grep -q b state && echo took 240 ms || echo took 200 ms"]
regex = "took (.*) ms"
unit = "ms"
better = "lower"
[plan]
seed = 2
blocks = 12
"""


def test_what_commands_switch_is_one_change_of_several(tmp_path: Path) -> None:
    """A station between the arms is at the level of one of them, as its commands have it."""
    (tmp_path / "study.toml").write_text(SWITCHED.replace("state", str(tmp_path / "state")))
    done = paribus("explain", "study.toml", cwd=tmp_path, code=0)
    said = " ".join(done.stdout.split())
    assert "switch makes +20.0 % [20.0, 20.0]; OMP_NESTED has no part (equivalent)" in said
    assert (tmp_path / "state").read_text() == "a\n"


def test_a_combination_that_fails_is_named(tmp_path: Path) -> None:
    solver = executable(tmp_path / "solver", '[ "$ONE$OTHER" = 1 ] && exit 3\necho took 5 ms')
    words = ["--a", str(solver), "--b", str(solver), "--b-env", "ONE=1", "--b-env", "OTHER=1"]
    done = paribus("explain", *words, "--out", "out", cwd=tmp_path)
    said = " ".join(done.stdout.split())
    assert "Combinations fail that no arm is (a+ONE, a+OTHER)" in said
    assert "group changes that belong together under [parts]" in said


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ('[ "$TWO" = 1 ]', "all launches with TWO failed, and no others"),
        ('[ "$ONE$TWO" = 11 ]', "all launches with ONE and TWO failed, and no others"),
        ("true", ""),
    ],
)
def test_the_changes_with_which_nothing_runs_are_named(tmp_path: Path, bad: str, said: str) -> None:
    solver = executable(tmp_path / "solver", f"{bad} && exit 3\necho took 5 ms")
    words = ["--a", str(solver), "--b", str(solver), "--b-env", "ONE=1", "--b-env", "TWO=1"]
    done = paribus("explain", *words, "--out", "out", cwd=tmp_path)
    shown = " ".join(done.stdout.split())
    assert "command stopped early: " in shown
    assert said in shown
    assert ("and no others" in shown) == bool(said)
    assert faults(json.loads((tmp_path / "out/verdict.json").read_text())) == []


def test_a_dry_run_says_stations_and_minutes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = executable(tmp_path / "solver", PROGRAM)
    done = paribus("explain", *two_commands(program, "--dry-run"), cwd=tmp_path, code=0)
    assert "explains 3 changes:" in done.stdout
    assert "a+OMP_NESTED+OMP_SCHEDULE" in done.stdout
    assert "the study takes" in done.stdout
    assert main(["explain"]) == 2
    assert "there is nothing to explain" in capsys.readouterr().err


def test_a_difference_that_no_change_explains_withholds() -> None:
    """The audit explains what is switched, and what follows from it: nothing else."""
    container = Arm("new", container=Container("namespace"), env={"X": "1"})
    made = replace(study(), arms=(Arm("old"), container), asked={}, explains=(), factor="upgrade")
    known_ = explained_by(explained(made))
    assert "container." in known_
    assert "env.X" in known_
    assert "env." not in known_
    assert "os." not in known_


def test_an_unknown_arm_is_named() -> None:
    with pytest.raises(StudyError, match="has no arm 'newer'"):
        explained(study(), "old", "newer")


def test_the_design_is_one_of_a_study_file_too(tmp_path: Path) -> None:
    path = written(tmp_path, plan='[plan]\ndesign = "explain"\nseed = 1\n')
    made = load_study(path)
    assert isinstance(design_of(made), Explain)
    assert [part.name for part in parts_of(made)] == sorted(ENV)
