"""The plan: pure, seeded, frozen, and never mixed with another."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.core import Arm, Container, Selection, Settings, Step, StoreError, Study
from paribus.designs.auto import as_few
from paribus.plan import check_same, freeze, plan, read_plan, write_plan
from paribus.plan import frozen as plans
from paribus.stats.schedule import orders

SOFTWARE = {"paribus": "1", "kernels": "abc"}


def study(arms: int = 2, benchmarks: tuple[str, ...] = ("latency",), **settings: object) -> Study:
    return Study(
        question="Which?",
        factor="network",
        arms=tuple(
            Arm(
                f"arm{i}",
                before=(Step(("true",), on="node1"),),
                container=Container("namespace") if i else None,
            )
            for i in range(arms)
        ),
        benchmarks=tuple(
            Selection(name, name, 2, {"bytes": [8], "samples": 10}, 60.0) for name in benchmarks
        ),
        settings=Settings(**{"seed": 1, "blocks": 12, **settings}),  # type: ignore[arg-type]
        path="study.toml",
    )


ARMS, (LATENCY,) = study().arms, study().benchmarks


@given(arms=st.integers(2, 5), seed=st.integers(0, 2**63 - 1), blocks=st.integers(8, 40))
def test_every_block_holds_each_arm_once(arms: int, seed: int, blocks: int) -> None:
    one = study(arms, ("latency", "allreduce"), seed=seed, blocks=blocks)
    launches = plan(one)
    assert len(launches) == (blocks + 1) * arms * 2
    assert [launch.number for launch in launches] == list(range(1, len(launches) + 1))
    counts = Counter((launch.block, launch.benchmark, launch.arm) for launch in launches)
    assert set(counts.values()) == {1}
    # A block is not interleaved with another: its launches are neighbours.
    frozen = freeze(one, SOFTWARE)
    assert all(len(block) == arms for block in frozen.blocks())
    assert plan(one) == launches


def test_another_seed_gives_another_order() -> None:
    orders = {tuple(one.arm for one in plan(study(seed=seed, blocks=40))) for seed in range(20)}
    assert len(orders) == 20


def test_a_plan_survives_the_disk(tmp_path: Path) -> None:
    frozen = freeze(study(3, ("latency", "allreduce")), SOFTWARE)
    write_plan(frozen, tmp_path)
    assert read_plan(tmp_path) == frozen
    with pytest.raises(StoreError, match="--resume"):
        write_plan(frozen, tmp_path)


def test_a_seed_is_drawn_once_and_kept() -> None:
    one = study(seed=None)
    frozen = freeze(one, SOFTWARE)
    assert frozen.study.settings.seed is not None
    assert freeze(one, SOFTWARE).study.settings.seed != frozen.study.settings.seed
    check_same(frozen, one, SOFTWARE)


LOPSIDED = next(
    seed
    for seed in range(10_000)
    if len(set(islice(orders(("arm0", "arm1"), seed, "arms of latency", after=1, even=0), 1, 9)))
    == 1
)
"""A seed by whose coins one arm comes first in all of the first eight blocks."""


@pytest.mark.parametrize("monitor", [False, True])
def test_a_plan_of_an_older_version_keeps_its_order(tmp_path: Path, monitor: bool) -> None:
    """Also a monitored one, whose launches are not on disk: they follow from the seed."""
    one = study(seed=LOPSIDED, monitor=monitor)
    older = dataclasses.replace(freeze(one, SOFTWARE), even=0)
    kept = () if monitor else tuple(plan(one, even=0))
    write_plan(plans.sealed(dataclasses.replace(older, launches=kept)), tmp_path)
    assert "even" not in json.loads((tmp_path / "plan.json").read_text())
    read = read_plan(tmp_path)
    check_same(read, one, SOFTWARE)
    drawn = [tuple(launch.arm for launch in block) for block in islice(read.blocks(), 1, 13)]
    coins = islice(orders(("arm0", "arm1"), LOPSIDED, "arms of latency", after=1, even=0), 1, 13)
    assert drawn == list(coins)
    assert len(set(drawn[:8])) == 1
    assert as_few(read).launches[:2] == tuple(plan(one, even=0))[:2]
    new = freeze(one, SOFTWARE)
    assert len({block[0].arm for block in islice(new.blocks(), 1, 9)}) == 2


@pytest.mark.parametrize(
    ("change", "reported"),
    [
        ({"factor": "other"}, "factor"),
        ({"settings": Settings(seed=1, blocks=13)}, "plan.blocks"),
        ({"settings": Settings(seed=2, blocks=12)}, "plan.seed"),
        ({"arms": (Arm("x"), Arm("y"))}, "arms.arm0"),
        ({"arms": (ARMS[0], dataclasses.replace(ARMS[1], env={"X": "1"}))}, "arms.arm1.env.X"),
        ({"arms": ARMS[::-1]}, "arms"),
        ({"benchmarks": (dataclasses.replace(LATENCY, ranks=3),)}, "benchmarks.latency.ranks"),
        (
            {"benchmarks": (dataclasses.replace(LATENCY, parameters={"samples": 10}),)},
            "benchmarks.latency.bytes",
        ),
        (
            {
                "benchmarks": (
                    dataclasses.replace(
                        LATENCY, parameters={**LATENCY.parameters, "of a newer version": None}
                    ),
                )
            },
            "benchmarks.latency.of a newer version",
        ),
    ],
)
def test_a_changed_study_is_never_continued(change: dict[str, object], reported: str) -> None:
    frozen = freeze(study(), SOFTWARE)
    with pytest.raises(StoreError, match=f"`{reported}` has changed"):
        check_same(frozen, dataclasses.replace(study(), **change), SOFTWARE)  # type: ignore[arg-type]


def test_changed_software_is_never_mixed() -> None:
    frozen = freeze(study(), SOFTWARE)
    with pytest.raises(StoreError, match="kernels was abc"):
        check_same(frozen, study(), {**SOFTWARE, "kernels": "xyz"})


@pytest.mark.parametrize("damage", ["seed", "order", "version", "cut", "list"])
def test_a_damaged_plan_is_refused(tmp_path: Path, damage: str) -> None:
    write_plan(freeze(study(), SOFTWARE), tmp_path)
    path = tmp_path / "plan.json"
    table = json.loads(path.read_text())
    if damage == "seed":
        table["study"]["settings"]["seed"] = 99
    elif damage == "order":
        table["launches"][0], table["launches"][1] = table["launches"][1], table["launches"][0]
    elif damage == "version":
        table["schema"] = "paribus.plan/2"
    text = json.dumps([] if damage == "list" else table)
    path.write_text(text[:-10] if damage == "cut" else text)
    with pytest.raises(StoreError) as refused:
        read_plan(tmp_path)
    assert refused.value.fix


def test_a_folder_without_a_plan(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is not a study directory: it has no plan"):
        read_plan(tmp_path)
    with pytest.raises(StoreError, match="is not a study directory: it does not exist"):
        read_plan(tmp_path / "missing")


def test_the_plan_knows_the_kernels_it_was_made_with() -> None:
    """A resume with other kernels is refused by this digest: it must be that of every source."""
    native = Path(plans.__file__).parents[1] / "native"
    sources = sorted(path for path in native.rglob("*") if path.suffix in (".cpp", ".hpp", ".cu"))
    assert {path.suffix for path in sources} == {".cpp", ".hpp", ".cu"}
    digest = hashlib.sha256()
    for source in sources:
        digest.update(source.relative_to(native).as_posix().encode() + source.read_bytes())
    assert plans.software()["kernels"] == digest.hexdigest()
