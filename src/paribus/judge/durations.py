"""How long launches took in the study directories at hand: measured, never estimated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from statistics import median

from paribus.border import read_json
from paribus.core import StoreError
from paribus.plan import MOST_BYTES
from paribus.store import check_version, open_for_reading
from paribus.store.damage import converted

MOST = 200
"""Study directories that are looked into."""


def launch_seconds(folder: Path) -> dict[str, tuple[float, int]]:
    """Return the median seconds of a launch and how many there were, by benchmark.

    Of the launches that succeeded in the study directories in `folder` and one level below. A
    directory that cannot be read is passed over: `paribus report` says what it lacks.
    """
    found: dict[str, list[float]] = {}
    for path in sorted([*folder.glob("*/plan.json"), *folder.glob("*/*/plan.json")])[:MOST]:
        for benchmark, seconds in _launches(path):
            found.setdefault(benchmark, []).append(seconds)
    return {name: (median(seconds), len(seconds)) for name, seconds in found.items()}


def _launches(plan: Path) -> Iterator[tuple[str, float]]:
    """Yield the benchmark and the seconds of each launch beside a plan."""
    try:
        selections = read_json(plan, MOST_BYTES, "a plan")["study"]["benchmarks"]
        names = {one["label"]: one["benchmark"] for one in selections}
        path = plan.with_name("launches.db")
        with converted(path), closing(open_for_reading(path)) as store:
            check_version(store, path, write=False)
            query = "SELECT benchmark, wall_s FROM launches WHERE state = 'ok' AND void IS NULL"
            rows = store.execute(query).fetchall()
    except (OSError, ValueError, KeyError, TypeError, StoreError):
        return
    yield from ((names[label], seconds) for label, seconds in rows if label in names)
