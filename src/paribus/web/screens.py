"""The newest screen of each fleet in the folders: what monitoring systems are told of it."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paribus.border import printable
from paribus.web.found import read_part

MOST_BYTES = 64 << 20
WORDS = ("slow", "lower group", "undecided", "failed", "no sign", "not screened")


@dataclass(frozen=True, slots=True)
class Screened:
    """What a screen says: how many units of each word.

    `slow`: the speed of each unit that is, by benchmark, over that of the others.
    """

    name: str
    hosts: str
    benchmarks: tuple[str, ...]
    began: float
    units: Mapping[str, int]
    slow: Mapping[tuple[str, str], float]


def newest(folders: Iterable[Path]) -> list[Screened]:
    """Return the newest screen of each fleet and benchmarks; answers that cannot be read are left
    out."""
    found: dict[tuple[str, tuple[str, ...]], Screened] = {}
    for folder in folders:
        with suppress(OSError, AttributeError, KeyError, RecursionError, TypeError, ValueError):
            text, size = read_part(folder / "answer.json", MOST_BYTES)
            if size <= MOST_BYTES:
                one = _screened(folder.name, json.loads(text))
                key = one.hosts, one.benchmarks
                found[key] = max(found.get(key, one), one, key=lambda each: each.began)
    return sorted(found.values(), key=lambda one: one.name)


def _screened(name: str, table: Mapping[str, Any]) -> Screened:
    """Return what a JSON answer says; raises what Python raises for one that is none."""
    began = float(table["began"])
    if not math.isfinite(began):
        raise ValueError("no date")
    units = Counter(str(one["word"]) for one in table["nodes"])
    named = [(one["node"], one) for one in table["nodes"]]
    named += [(" - ".join(map(str, one["between"])), one) for one in table["links"]]
    return Screened(
        name=printable(name),
        hosts=str(table["hosts"]),
        benchmarks=tuple(str(one["name"]) for one in table["benchmarks"]),
        began=began,
        units={word: units[word] for word in WORDS},
        slow={
            (str(unit), str(one["benchmark"])): float(one["ratio"])
            for unit, line in named
            for one in line["evidence"]
            if one["word"] == "slow" and math.isfinite(one["ratio"])
        },
    )
