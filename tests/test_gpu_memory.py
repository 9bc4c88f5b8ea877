"""The arrays of GPUs: of one size in all arms, which the smallest card has memory for."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from paribus.benchmarks import get
from paribus.core import Arm, MachineError, Selection, Settings, StoreError, Study, format_bytes
from paribus.launch.arms import Ready
from paribus.launch.local import Captured
from paribus.launch.machine import Machine
from paribus.launch.memory import fitted
from paribus.plan import check_same, freeze, read_plan, with_sizes
from paribus.screen.plan import selections
from processes import ran
from studies import command
from test_gpu_scripts import card  # noqa: F401 - a fixture

GIB = 2**30


@dataclass(frozen=True)
class OfCards:
    """A machine whose GPUs have so many bytes; None: it is asleep."""

    memory: tuple[int, ...] | None

    def capture(self, argv: list[str], *, env: Mapping[str, str], timeout_s: float) -> Captured:
        assert argv == ["gpu", "cards"]
        if self.memory is None:
            raise MachineError("is asleep")
        return Captured(0, f"{list(self.memory)}\n", "") if self.memory else Captured(2, "", "no")


def sized(name: str, *cards: tuple[int, ...] | None, **parameters: Any) -> list[int] | None:
    """Return the sizes that a benchmark gets where each arm's machine has such cards."""
    defaults = {key: one.default for key, one in get(name).parameters.items()}
    one = Selection(name, name, 1, {**defaults, **parameters})
    arms = tuple(Arm(f"arm{number}") for number in range(len(cards)))
    study = Study("?", "nothing", arms, (one,), Settings(), path="study.toml")
    ready = {
        arm.name: Ready(arm, None, (), {name: ("gpu",)}, machine=cast(Machine, OfCards(memory)))
        for arm, memory in zip(arms, cards, strict=True)
    }
    (found,) = fitted(study, ready, lambda _: None).benchmarks
    size: list[int] | None = found.parameters["bytes"]
    return size


def test_the_smallest_card_decides_for_all_arms() -> None:
    assert sized("gpu_stream", (80 * GIB,), (80 * GIB,)) == [GIB]
    assert sized("gpu_stream", (80 * GIB,), (6 * GIB,)) == [GIB]
    assert sized("gpu_stream", (80 * GIB,), (6 * GIB - 1,)) == [GIB // 2]
    assert sized("gpu_stream", (2 * GIB,), (80 * GIB,)) == [GIB // 4]
    assert sized("gpu_roofline", (2 * GIB,), (80 * GIB,)) == [GIB]
    assert sized("gpu_roofline", (2 * GIB - 1,), (80 * GIB,)) == [GIB // 2]


def test_only_cards_that_are_used_and_answer_count() -> None:
    assert sized("gpu_stream", (80 * GIB, 4 * GIB), (80 * GIB,)) == [GIB]
    assert sized("gpu_stream", (80 * GIB, 4 * GIB), (80 * GIB,), gpus=2) == [GIB // 2]
    assert sized("gpu_stream", (), (4 * GIB,)) == [GIB // 2]
    assert sized("gpu_stream", None, ()) == [GIB]


def test_sizes_that_are_asked_for_stay() -> None:
    assert sized("gpu_stream", (4 * GIB,), (80 * GIB,), bytes=[GIB]) == [GIB]
    copies = get("gpu_copy").parameters["bytes"].default
    assert sized("gpu_copy", (1,), (1,)) == copies
    assert sized("gpu_gemm", (1,), (1,), bytes=None) is None


def test_a_frozen_plan_and_a_stored_study_keep_their_sizes() -> None:
    def study(**parameters: Any) -> Study:
        one = Selection("gpu_stream", "gpu_stream", 1, {"gpus": 1, **parameters})
        return Study("?", "nothing", (Arm("a"), Arm("b")), (one,), Settings(), path="study.toml")

    frozen = freeze(study(bytes=[GIB // 4]), {})
    assert with_sizes(study(bytes=None), frozen.study).benchmarks == frozen.study.benchmarks
    check_same(frozen, study(bytes=None), {})
    with pytest.raises(StoreError, match=r"`benchmarks\.gpu_stream\.bytes` has changed"):
        check_same(frozen, study(bytes=[GIB]), {})
    with pytest.raises(StoreError, match=r"`benchmarks\.gpu_stream\.gpus` has changed"):
        check_same(frozen, study(bytes=None, gpus=2), {})


def test_a_screen_says_its_size() -> None:
    several = selections(["gpu_stream", "gpu_roofline bytes=4096"], "", {}, 2)
    assert [one.parameters["bytes"] for one in several] == [[GIB], [4096]]


STUDY = """\
question = "?"
factor   = "nothing"
explains = ["env.PARIBUS_SHIM_MEMORY"]
[arms.large]
[arms.small]
env = {{ PARIBUS_SHIM_MEMORY = "1048576" }}
[[benchmarks]]
name = "gpu_stream"
samples = 3
{more}
[plan]
blocks = 8
margin = 0.9
"""


@pytest.mark.slow
def test_a_study_of_two_cards_fits_the_smaller(tmp_path: Path, card: dict[str, str]) -> None:  # noqa: F811
    """The size stands in plan, command and report, and a resumed study keeps it."""
    file = tmp_path / "study.toml"
    file.write_text(STUDY.format(more=""))
    env = {**os.environ, **card}
    done = ran(command("run", file, "--out", tmp_path / "out"), env=env, timeout=300)
    size = 1 << 17  # three take 384 KiB of 512, half of the smaller card's
    plan = read_plan(tmp_path / "out")
    assert plan.study.benchmarks[0].parameters["bytes"] == [size], done.stderr
    assert f"arrays of {format_bytes(size)} in all arms, for the smallest GPU" in done.stderr
    assert f"op=copy, {format_bytes(size)}" in (tmp_path / "out" / "report.html").read_text()
    for log in (tmp_path / "out" / "logs").glob("*.out"):
        first = json.loads(log.read_text().splitlines()[0])
        assert first["args"]["bytes"] == [size], log.name
    again = ran(command("run", file, "--out", tmp_path / "out", "--resume"), env=env, timeout=300)
    assert again.returncode == done.returncode == 0, again.stderr


@pytest.mark.slow
def test_what_is_too_large_for_the_smaller_card_is_refused(
    tmp_path: Path,
    card: dict[str, str],  # noqa: F811
) -> None:
    file = tmp_path / "study.toml"
    file.write_text(STUDY.format(more="bytes = 2097152"))
    argv = command("run", file, "--out", tmp_path / "out")
    done = ran(argv, env={**os.environ, **card}, timeout=300)
    said = "no memory left for 2097152 bytes more (ask for less, in all arms)"
    assert said in " ".join(done.stdout.split()), done.stderr
