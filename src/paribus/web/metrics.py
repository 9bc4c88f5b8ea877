"""The state of studies and screens for other programs: OpenMetrics text, and JSON.

`paribus_ratio{study="net.study",benchmark="latency",arm="tcp"} 4.12` is a line for Prometheus.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from paribus.border import printable
from paribus.web.found import read_part
from paribus.web.summaries import Summary

MEDIA_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
SCHEMA = "paribus.studies/1"

FAMILIES = (
    ("paribus_study_running", "whether the study is running now"),
    ("paribus_study_launches", "launches that are stored"),
    ("paribus_study_planned", "launches that there are at most, 0 without an end"),
    ("paribus_study_failures", "launches that gave nothing usable"),
    ("paribus_ratio", "the arm's value over the reference's"),
    ("paribus_ratio_low", "lower end of the interval on the ratio"),
    ("paribus_ratio_high", "upper end of the interval on the ratio"),
    ("paribus_decided", "1 if the verdict says faster, slower or equivalent"),
    ("paribus_screen_began", "when the newest screen of a fleet began, seconds since the epoch"),
    ("paribus_screen_units", "nodes, GPUs or ends of links, by what the screen says of them"),
    ("paribus_screen_slow", "the speed of what is slow over that of the others"),
)

MOST_BYTES = 64 << 20
"""Bytes of the largest answer.json that is read."""

WORDS = ("slow", "lower group", "undecided", "failed", "no sign", "not screened")
"""The answers of a screen on a unit."""


@dataclass(frozen=True, slots=True)
class Screened:
    """The answer of a screen: how many `units` have each word.

    `began`: seconds since the epoch. `slow`: by slow unit and benchmark, its speed over that of the
    others.
    """

    name: str
    hosts: str
    benchmarks: tuple[str, ...]
    began: float
    units: Mapping[str, int]
    slow: Mapping[tuple[str, str], float]


def newest(folders: Iterable[Path]) -> list[Screened]:
    """Return the newest screen of each fleet and set of benchmarks, without unreadable ones."""
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
    """Return an answer.json as read; raises ValueError, KeyError, ... for what is none."""
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


def open_metrics(summaries: Sequence[Summary], screens: Sequence[Screened] = ()) -> str:
    """Return the state of studies and screens as OpenMetrics text (version 1.0.0)."""
    samples: dict[str, list[str]] = {name: [] for name, _ in FAMILIES}

    def add(name: str, value: object, **named: str) -> None:
        samples[name].append(f"{_labels(named)} {value}")

    for one in summaries:
        study = one.found.name
        if one.found.measured:
            add("paribus_study_running", int(one.state == "running"), study=study)
            add("paribus_study_launches", one.launches, study=study)
            add("paribus_study_planned", one.planned, study=study)
            add("paribus_study_failures", one.failures, study=study)
        for effect in one.effects:
            of = {"study": study, "benchmark": effect.benchmark, "arm": effect.arm}
            ends = {"": effect.ratio, "_low": effect.low, "_high": effect.high}
            for end, value in ends.items():
                if value is not None:
                    add(f"paribus_ratio{end}", repr(value), **of)
            decided = effect.word in ("faster", "slower", "equivalent")
            add("paribus_decided", int(decided), **of)
    for each in screens:
        of = {"screen": each.name, "hosts": each.hosts, "benchmarks": ",".join(each.benchmarks)}
        add("paribus_screen_began", repr(each.began), **of)
        for word, number in each.units.items():
            add("paribus_screen_units", number, **of, answer=word)
        for (unit, label), ratio in each.slow.items():
            add("paribus_screen_slow", repr(ratio), **of, unit=unit, benchmark=label)
    lines = []
    for name, text in FAMILIES:
        lines += [f"# TYPE {name} gauge", f"# HELP {name} {text}"]
        lines += [f"{name}{sample}" for sample in samples[name]]
    return "\n".join([*lines, "# EOF\n"])


def _labels(named: dict[str, str]) -> str:
    return "{" + ",".join(f'{k}="{v.translate(_ESCAPED)}"' for k, v in named.items()) + "}"


_ESCAPED = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


def to_json(summaries: Sequence[Summary]) -> dict[str, Any]:
    """Return the state of the studies as JSON values, by schema paribus.studies/1."""
    return {
        "schema": SCHEMA,
        "studies": [
            {
                "id": one.found.ident,
                "name": one.found.name,
                "state": one.state,
                "question": one.question,
                "sentence": one.sentence,
                "started": one.started,
                "launches": one.launches,
                "counted": one.counted,
                "planned": one.planned,
                "failures": one.failures,
                "exit_code": one.code,
                "effects": [asdict(effect) for effect in one.effects],
            }
            for one in summaries
        ],
    }
