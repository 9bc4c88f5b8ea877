"""Study directories whose launches are drawn by a seeded formula: no machine needed."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from paribus.core import Arm, Case, Outcome, Sample, Selection, Settings, State, Study
from paribus.plan import frozen as plans
from paribus.store import Gathered, Store

SIZES = (8, 65536)
FACTS = {"cpu.model": "EPYC", "os.release": "6.1", "net.0.mtu": 1500, "load.running": 1}


def write_directory(
    directory: Path,
    effects: Mapping[str, float],
    *,
    seed: int = 1,
    blocks: int = 8,
    most: int = 18,
    noise: float = 0.004,
    samples: int = 1,
    facts: Mapping[str, Mapping[str, Any]] | None = None,
    env: Mapping[str, Mapping[str, str]] | None = None,
    sizes: Sequence[int] = SIZES,
    labels: Sequence[str] = ("latency",),
    factor: str = "network",
    started: float = 1.7e9,
    failing: str = "",
    since: int = 0,
    then: Mapping[str, float] | None = None,
    question: str = "Which?",
    **settings: Any,
) -> Path:
    """Write a study of `labels` (latency) and return its directory.

    `effects` are the arms with their ratio to the first, which has 1. `blocks` of `most` are
    there, from `since` on with the ratios `then`; launches of the arm `failing` fail, others have
    so many `samples` of each size. `facts` are added to those of an arm's node.
    """
    arms = tuple(Arm(name, env=(env or {}).get(name, {})) for name in effects)
    selections = tuple(Selection(label, "latency", 2, {"bytes": list(sizes)}) for label in labels)
    plan = Settings(**{"blocks": most, "seed": seed, "margin": 0.02} | settings)
    frozen = plans.freeze(Study(question, factor, arms, selections, plan), plans.software())
    directory.mkdir()
    plans.write_plan(frozen, directory)
    draw = random.Random(seed)
    with Store(directory, write=True) as store:
        store.bind_plan(frozen.sha256)
        store.keep_gathered(
            [Gathered(a, "n1", started, {**FACTS, **(facts or {}).get(a, {})}) for a in effects]
        )
        for launch in chain.from_iterable(frozen.blocks()):
            if launch.block > blocks:
                break
            at = started + launch.number
            ratios = then if then and launch.block >= since else effects
            if launch.arm == failing:
                store.append(launch, Outcome(State.FAILED, at, 0.5, 1, ("x",), error="exit code 1"))
                continue
            usual = [(size, size**0.5 * ratios[launch.arm]) for size in sizes]
            found = tuple(
                Sample(
                    "latency",
                    Case.of(bytes=size),
                    tuple(value * draw.gauss(1, noise) for _ in range(samples)),
                )
                for size, value in usual
            )
            store.append(launch, Outcome(State.OK, at, 0.5, 0, ("x",), found))
    return directory
