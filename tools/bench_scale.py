"""A study of 1,000 hosts, 10,000 launches and 100 M samples: plan, store, audit and report.

The store is filled by a script; each figure is taken in a process of its own, so that its memory is
not that of the others.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from paribus.audit.audit import audit_study
from paribus.core import (
    Address,
    Arm,
    Case,
    Hosts,
    Launch,
    Outcome,
    Sample,
    Selection,
    Settings,
    State,
    Study,
    nodeset,
)
from paribus.plan import frozen as plans
from paribus.store import Gathered, Store

HOSTS = 1000
BLOCKS = 999  # and the warm-up, of 5 benchmarks in 2 arms: 10,000 launches
SIZES = tuple(1 << n for n in range(20))
SAMPLES = 500  # of 20 sizes: 10,000 in a launch
BOUNDS = {
    "plan": "bound: 2 s",
    "fold": "bound: 1 s",
    "audit": "bound: 5 s",
    "report": "bound: 20 s, 1,000 MB",
}
WHAT = {
    "plan": "freeze and write 10,000 launches on 1,000 hosts",
    "fold": "fold 100,000 names",
    "audit": "audit 2 arms x 1,000 nodes x 300 facts",
    "fill": "store 10,000 launches of 1,000 ranks, 100 M samples",
    "report": "report of them",
}


def scale_cost() -> list[tuple[str, str, str]]:
    """Return what each stage of such a study takes, in CPU time and memory."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for stage, what in WHAT.items():
            argv = [sys.executable, __file__, stage, folder]
            done = subprocess.run(argv, check=True, capture_output=True, text=True)
            wall_s, cpu_s, memory = json.loads(done.stdout.splitlines()[-1])
            figure = f"{wall_s:.2f} s ({cpu_s:.2f} s CPU), {memory / 1e6:.0f} MB"
            rows.append((what, figure, BOUNDS.get(stage, "")))
    return rows


def study() -> Study:
    """Return a study of two arms of 1,000 hosts each."""
    arms = tuple(
        Arm(name, hosts=Hosts(tuple(Address(f"{name}{n}", f"{name}{n}") for n in range(HOSTS))))
        for name in ("old", "new")
    )
    selections = tuple(
        Selection(f"allreduce{i}", "allreduce", HOSTS, {"bytes": list(SIZES)}, 60.0)
        for i in range(5)
    )
    return Study("How long?", "cluster", arms, selections, Settings(blocks=BLOCKS, seed=1))


def nodes(arm: str) -> list[Gathered]:
    """Return 300 facts of each node; one node differs in three, two more in one."""
    facts = {f"env.FACT_{i}": f"value {i}" for i in range(280)} | {
        f"cpu.fact{i}": list(range(i)) for i in range(20)
    }
    odd: dict[int, dict[str, Any]] = {7: {"env.FACT_1": "other", "memory.total_b": 1 << 30}}
    return [
        Gathered(
            arm,
            f"{arm}{n}",
            1.0,
            {**facts, "memory.total_b": 1 << 37, "bios.version": f"1.{n % 3}", **odd.get(n, {})},
        )
        for n in range(HOSTS)
    ]


def plan(directory: Path) -> None:
    """Freeze a plan and write it."""
    plans.write_plan(plans.freeze(study(), plans.software()), directory)


def fold(_: Path) -> None:
    """Fold 100,000 names."""
    names = [f"rack{n // 1000}-node{n}" for n in range(100_000)]
    nodeset.fold(names)


def audit(_: Path) -> None:
    """Audit nodes that were gathered."""
    one = study()
    known = {arm.name: {g.node: g.facts for g in nodes(arm.name)} for arm in one.arms}
    audit_study(one, {}, known, {}, {})


def fill(directory: Path) -> None:
    """Store what the plan plans."""
    import numpy as np

    frozen = plans.read_plan(directory)
    noise = np.random.default_rng(1)
    with Store(directory, write=True) as store:
        store._open().execute("PRAGMA synchronous=OFF")
        store.bind_plan(frozen.sha256)
        store.keep_gathered([g for arm in frozen.study.arms for g in nodes(arm.name)])
        for launch in frozen.launches:
            store.append(launch, _made_up(launch, noise))


def _made_up(launch: Launch, noise: Any) -> Outcome:
    level = noise.lognormal(0, 0.02)
    samples = tuple(
        Sample(
            "time",
            Case.of(bytes=size),
            tuple(((1 + size / 1e4) * level * noise.lognormal(0, 0.05, SAMPLES)).tolist()),
        )
        for size in SIZES
    )
    facts = {
        "rank.hosts": [f"{launch.arm}{n}" for n in range(HOSTS)],
        "rank.machines": [f"{n:06x}" for n in range(HOSTS)],
        "rank.affinity": ["0"] * HOSTS,
        "rank.cgroup": ["/"] * HOSTS,
        "rank.libraries": ["7b4b149200b2"] * HOSTS,
        "rank.cpu_s": noise.uniform(0.3, 0.4, HOSTS).round(4).tolist(),
        "rank.involuntary": noise.integers(0, 9, HOSTS).tolist(),
        "cpu.model": "x",
    }
    return Outcome(State.OK, float(launch.number), 0.1, 0, ("x",), samples, facts)


def report(directory: Path) -> None:
    """Conclude, and write the report."""
    from paribus.cli.outputs import conclude_and_write

    frozen = plans.read_plan(directory)
    with Store(directory) as store:
        conclude_and_write(frozen, store)


if __name__ == "__main__":
    begin, spent = time.perf_counter(), time.process_time()
    globals()[sys.argv[1]](Path(sys.argv[2]))
    wall_s, cpu_s = time.perf_counter() - begin, time.process_time() - spent
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps([wall_s, cpu_s, memory]))
