"""Where studies and screens stand, for other programs: OpenMetrics text, paribus.studies/1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from paribus.web.screens import Screened
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


def open_metrics(summaries: Sequence[Summary], screens: Sequence[Screened] = ()) -> str:
    """Return where studies and screens stand as OpenMetrics text (version 1.0.0)."""
    samples: dict[str, list[str]] = {name: [] for name, _ in FAMILIES}
    for one in summaries:
        named = {"study": one.found.name}
        if one.found.measured:
            running = float(one.state == "running")
            samples["paribus_study_running"].append(f"{_labels(named)} {running:g}")
            samples["paribus_study_launches"].append(f"{_labels(named)} {one.launches}")
            samples["paribus_study_planned"].append(f"{_labels(named)} {one.planned}")
            samples["paribus_study_failures"].append(f"{_labels(named)} {one.failures}")
        for effect in one.effects:
            labels = _labels({**named, "benchmark": effect.benchmark, "arm": effect.arm})
            figures = {"": effect.ratio, "_low": effect.low, "_high": effect.high}
            for end, value in figures.items():
                if value is not None:
                    samples[f"paribus_ratio{end}"].append(f"{labels} {value!r}")
            decided = effect.word in ("faster", "slower", "equivalent")
            samples["paribus_decided"].append(f"{labels} {decided:d}")
    for each in screens:
        named = {"screen": each.name, "hosts": each.hosts}
        named["benchmarks"] = ",".join(each.benchmarks)
        samples["paribus_screen_began"].append(f"{_labels(named)} {each.began!r}")
        for word, number in each.units.items():
            labels = _labels({**named, "answer": word})
            samples["paribus_screen_units"].append(f"{labels} {number}")
        for (unit, label), ratio in each.slow.items():
            labels = _labels({**named, "unit": unit, "benchmark": label})
            samples["paribus_screen_slow"].append(f"{labels} {ratio!r}")
    lines = []
    for name, text in FAMILIES:
        lines += [f"# TYPE {name} gauge", f"# HELP {name} {text}"]
        lines += [f"{name}{sample}" for sample in samples[name]]
    return "\n".join([*lines, "# EOF\n"])


def _labels(named: dict[str, str]) -> str:
    return "{" + ",".join(f'{k}="{_escaped(v)}"' for k, v in named.items()) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def to_json(summaries: Sequence[Summary]) -> dict[str, Any]:
    """Return where the studies stand as JSON values."""
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
