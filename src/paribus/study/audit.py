"""What was not held equal: differences between the facts of an arm and of the reference.

Facts come from inside the launches. A difference that the factor explains is expected; a volatile
one is noted by the noise measures, not here; any other is unexplained and withholds the verdict.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from paribus.judgement import Difference
from paribus.model import Facts, Study

VOLATILE = (
    "probe.",
    "load.",
    "rank.cpu_s",
    "rank.involuntary",
    "steal_s",
    "wall_s",
    "clock.cost_ns",
    "clock.tick_ns",
    "kernel.skew_us.",
)
"""Keys that differ from launch to launch on one unchanged machine."""

EXPLAINS: Mapping[str, tuple[str, ...]] = {
    "network": ("rank.hosts", "net.", "container."),
    "container": ("rank.hosts", "net.", "container."),
    "transport": ("mpi.transport",),
    "mpi": ("mpi.", "kernel.build"),
    "env": ("env.",),
    "nothing": (),
}
"""What each factor is expected to change. A study adds its own keys with `explains`."""


def audit(reference: Facts, arm: Facts, explained: Iterable[str], name: str) -> list[Difference]:
    """Return the facts of the arm `name` that differ from the reference's, volatile ones left out.

    `explained` holds keys, or prefixes ending in a dot.
    """
    prefixes = tuple(explained)
    found = []
    for key in sorted(reference.keys() | arm.keys()):
        ours, theirs = reference.get(key), arm.get(key)
        if ours != theirs and not matches(key, VOLATILE):
            kind = "factor" if matches(key, prefixes) else "unexplained"
            found.append(Difference(key, name, _show(ours), _show(theirs), kind))  # type: ignore[arg-type]
    return found


def explained_by(study: Study) -> tuple[str, ...]:
    """Return the keys and prefixes that the study's factor and `explains` account for."""
    return (*EXPLAINS.get(study.factor, ()), *study.explains)


def matches(key: str, patterns: Iterable[str]) -> bool:
    """Return whether `key` is one of `patterns` or under one that ends in a dot."""
    return any(key.startswith(p) if p.endswith(".") else key == p for p in patterns)


def typical(launches: Iterable[Facts]) -> tuple[dict[str, Any], list[str]]:
    """Return each fact's most frequent value, and the keys that should have stayed and did not."""
    counts: dict[str, Counter[str]] = {}
    for facts in launches:
        for key, value in facts.items():
            counts.setdefault(key, Counter())[json.dumps(value, sort_keys=True)] += 1
    common = {key: json.loads(values.most_common(1)[0][0]) for key, values in counts.items()}
    changed = [key for key, values in counts.items() if len(values) > 1]
    return common, sorted(key for key in changed if not matches(key, VOLATILE))


def _show(value: Any) -> str:
    if value is None:
        return "absent"
    return value if isinstance(value, str) else json.dumps(value)
