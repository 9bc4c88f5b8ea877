"""The plan: every launch of a study in its order, frozen, seeded and hashed before the first.

A `Study` goes in, and plan.json comes out, with its SHA-256. `read_plan` refuses one that has been
changed since; `check_same` refuses a study file, or a version of Paribus, that has.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from paribus import __version__
from paribus.benchmarks import benchmark_of
from paribus.border import as_error, exists, of_json, open_anew, read_json
from paribus.core import (
    Endpoint,
    Launch,
    Metric,
    Selection,
    StoreError,
    Study,
    check_sound,
    instead_of,
)
from paribus.designs import design_of
from paribus.designs.standard import Design
from paribus.stats.looks import Looks
from paribus.stats.schedule import EVEN

SCHEMA = "paribus.plan/1"
RENAMED = "paribus.plan.frozen/1"
"""The name of the same schema in commits between 0.1.0 and 0.2.0."""

DRAFT = "plan.draft"
MOST_BYTES = 64 << 20
"""The most bytes of plan.json; the launches of the largest study take about 13 MB."""

P99_MARGIN = 0.10
"""The least margin of a p99."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A study with everything that is decided before its first launch.

    The blocks of one benchmark have the numbers 0 (warm-up) to `study.settings.blocks`.
    """

    study: Study
    looks: Looks
    launches: tuple[Launch, ...]  # none of a study without end: they follow from seed and `even`
    metrics: Mapping[str, tuple[Metric, ...]]  # by label: at each endpoint; the first decides
    software: Mapping[str, str]  # versions: with others, launches would not be comparable
    layers: Mapping[str, str] = field(default_factory=dict)  # by label
    sha256: str = ""
    even: int = 0  # that of stats/schedule.py; in older plans 0

    @property
    def design(self) -> Design:
        """How the study is launched, judged and described."""
        return design_of(self.study)

    @property
    def session(self) -> int:
        """The launches that make a session, 0 where the launch itself is the unit."""
        return self.design.session

    def shuffled(self, block: int) -> bool:
        """Return whether the launches of `block` are shuffled: only before the first look."""
        return 0 < block <= min((self.design.shuffled, *self.looks.at[:1]))

    def used_up(self, launches_s: float) -> bool:
        """Return whether `launches_s` seconds spent in launches use up the budget."""
        budget = self.study.settings.budget_s
        return budget is not None and launches_s >= budget

    def blocks(self) -> Iterator[tuple[Launch, ...]]:
        """Yield the launches block by block, in the order in which they are to be started.

        A block holds one benchmark in all stages; in a study of sessions, one session of all
        benchmarks in each stage. A launch of a shuffled block is yielded alone, as one that
        fails is rerun in its place.
        """
        by_session = self.session > 0

        def key(one: Launch) -> tuple[int, str, str]:
            alone = one.arm if self.shuffled(one.block) else ""
            return one.block, "" if by_session else one.benchmark, alone

        for _, block in groupby(self.launches or self.design.launches(self.even), key):
            yield tuple(block)


def plan(study: Study, even: int = EVEN) -> list[Launch]:
    """Return every launch of `study` in order; equal seeds give equal plans.

    A round has each benchmark once, in random order; within it stands each stage once, in the order
    that stats/schedule.py draws for `even`. Raises StudyError without a seed.
    """
    return list(design_of(study).launches(even))


def metrics_of(selection: Selection) -> tuple[Metric, ...]:
    """Return the figures that each launch of a benchmark contributes, the one that decides first.

    These are every metric at the endpoint that decides, and the figure of merit at the others.
    """
    merit, *others = benchmark_of(selection).metrics
    first, *beside = selection.endpoints
    return (
        *(at_endpoint(metric, first) for metric in (merit, *others)),
        *(at_endpoint(merit, endpoint) for endpoint in beside),
    )


def at_endpoint(metric: Metric, endpoint: Endpoint) -> Metric:
    """Return `metric` at `endpoint`; the margin of a p99 is at least 10 %: tails vary more."""
    if endpoint == "median":
        return metric
    wide = endpoint == "p99"
    return dataclasses.replace(
        metric,
        name=f"{metric.name} {endpoint}",
        sampled=metric.name,
        endpoint=endpoint,
        margin=max(metric.margin, P99_MARGIN) if wide else metric.margin,
        small_margin=max(metric.small_margin, P99_MARGIN) if wide else metric.small_margin,
    )


def freeze(study: Study, software: Mapping[str, str]) -> Plan:
    """Return the plan of `study`; a seed is drawn if it has none."""
    study = seeded(study)
    design = design_of(study)
    frozen = Plan(
        study=study,
        looks=design.looks(),
        # Without an end, launches follow from the seed as they are needed.
        launches=tuple(design.launches(EVEN)) if design.has_end else (),
        metrics={s.label: metrics_of(s) for s in study.benchmarks},
        software=dict(software),
        layers={s.label: benchmark_of(s).layer for s in study.benchmarks},
        even=EVEN,
    )
    return sealed(frozen)


def seeded(study: Study, seed: int | None = None) -> Study:
    """Return `study` with a seed: that of its file, else `seed`, else one that is drawn."""
    if study.settings.seed is not None:
        return study
    settings = dataclasses.replace(
        study.settings, seed=secrets.randbelow(2**31) if seed is None else seed
    )
    return dataclasses.replace(study, settings=settings)


def sealed(frozen: Plan) -> Plan:
    """Return a plan with the digest of what it says now."""
    return dataclasses.replace(frozen, sha256=_digest(_to_table(frozen)))


def write_plan(frozen: Plan, directory: Path) -> None:
    """Write plan.json, durably and at once; raises StoreError if it is there already."""
    path = directory / "plan.json"
    table = {"sha256": frozen.sha256, **_to_table(frozen)}
    draft = directory / DRAFT
    fix = "check the directory's permissions and free space, or choose another with --out"
    with as_error(StoreError, path, fix, named=True):
        with open_anew(draft) as file:
            file.write(_layout(table))
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)
        except FileExistsError:
            raise StoreError(
                "a plan is frozen here already",
                place=str(path),
                fix="continue it with --resume, or choose another directory with --out",
            ) from None
        draft.unlink()


def read_plan(directory: Path) -> Plan:
    """Return the plan frozen in `directory`.

    Raises StoreError when it is missing, of a newer version, or not what was frozen.
    """
    path = directory / "plan.json"
    try:
        table = read_json(path, MOST_BYTES, "a plan")
    except NotADirectoryError:
        raise StoreError(
            "is a file, not a study directory", place=str(directory), fix=instead_of(directory)
        ) from None
    except FileNotFoundError:
        lacks = "it has no plan.json" if exists(directory) else "it does not exist"
        cause = f"is not a study directory: {lacks}"
        raise StoreError(cause, place=str(directory), fix=instead_of(directory)) from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        fix = "make it readable, or restore it"
        raise StoreError(f"cannot be read: {why}", place=str(path), fix=fix) from error
    if not isinstance(table, dict) or table.get("schema") not in (SCHEMA, RENAMED):
        raise StoreError(
            f"is not a plan of version {SCHEMA}", place=str(path), fix="update Paribus"
        )
    digest = table.pop("sha256", "")
    if digest != _digest(table):
        raise StoreError(
            "has been changed since it was frozen",
            place=str(path),
            fix="restore it, or start anew in another directory",
        )
    try:
        return _sound(_from_table(table, digest))
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise StoreError(
            f"is not a plan: {type(error).__name__}: {error}",
            place=str(path),
            fix="restore it, or start anew in another directory",
        ) from error


def _sound(frozen: Plan) -> Plan:
    """Return `frozen`; raises ValueError for contents that no plan has, as a forged one may."""
    check_sound(frozen.study)
    looks, labels = frozen.looks, [one.label for one in frozen.study.benchmarks]
    planned = bool(looks.at) or not frozen.design.has_end
    frozen.design.stages()  # raises ValueError for arms of which it can make no stages
    known = all(frozen.metrics.get(label) and label in frozen.layers for label in labels)
    if not (known and planned and 0 < looks.level < 1 and min(looks.at, default=1) > 0):
        raise ValueError("its looks or metrics are of no study")
    return frozen


def with_sizes(study: Study, frozen: Study) -> Study:
    """Return `study` with those sizes of arrays that it leaves open taken from `frozen`."""
    known = {one.label: one.parameters.get("bytes") for one in frozen.benchmarks}

    def sized(one: Selection) -> Selection:
        if one.label not in known or not benchmark_of(one).arrays:
            return one
        size = one.parameters["bytes"] or known[one.label]
        return dataclasses.replace(one, parameters={**one.parameters, "bytes": size})

    return dataclasses.replace(study, benchmarks=tuple(map(sized, study.benchmarks)))


def check_same(frozen: Plan, study: Study, software: Mapping[str, str]) -> None:
    """Raise StoreError if `study` or the software is not what the plan was frozen with."""
    study = with_sizes(study, frozen.study)
    before, now = _study_table(frozen.study), _study_table(study)
    if design_of(study).is_open:  # plans of older versions leave nothing open
        now["settings"]["design"] = before["settings"]["design"]
    if study.settings.seed is None:
        now["settings"]["seed"] = before["settings"]["seed"]
    if before != now:
        raise StoreError(
            f"`{_changed(before, now)}` has changed since the plan was frozen",
            place=study.path,
            fix="restore the study file, or start anew in another directory with --out",
        )
    for name, version in frozen.software.items():
        if software.get(name) != version:
            raise StoreError(
                f"{name} was {version[:12]} when the plan was frozen and is"
                f" {software.get(name, 'missing')[:12]} now",
                place=study.path,
                fix="use the same version of Paribus, or start anew in another directory",
            )


_AS_WRITTEN = {"settings": "plan", **{f"{one}_s": one for one in ("budget", "every", "timeout")}}
"""Keys of a study file that have another name in a plan."""


def _changed(before: Any, now: Any) -> str:
    """Return the first key in which two tables of a study differ, as its file has it."""
    words = []
    while isinstance(before, dict) and isinstance(now, dict) and before != now:
        # None and no such key differ too: a plan of an older version lacks newer parameters.
        key = next(one for one in {**before, **now} if before.get(one, ...) != now.get(one, ...))
        none: Any = {} if key == "asked" else None
        before, now = (_by_name(one.get(key, none)) for one in (before, now))
        words.append(_AS_WRITTEN.get(key, key))
    return ".".join(one for one in words if one not in ("parameters", "asked"))


def _by_name(value: Any) -> Any:
    """Return a table of arms or benchmarks by their names; any other value as it is."""
    if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
        return {str(one.get("label", one.get("name"))): one for one in value}
    return value


def software() -> dict[str, str]:
    """Return what must not change between the sittings of one study: version, hash of kernels."""
    digest = hashlib.sha256()
    native = Path(__file__).parents[1] / "native"
    for source in sorted(native.rglob("*.[ch]*")):
        digest.update(source.relative_to(native).as_posix().encode() + source.read_bytes())
    return {"paribus": __version__, "kernels": digest.hexdigest()}


def _study_table(study: Study) -> dict[str, Any]:
    table: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(study)))
    del table["path"], table["hosts"]  # how they were named may change
    return {key: value for key, value in table.items() if key != "asked" or value}


def _to_table(frozen: Plan) -> dict[str, Any]:
    given = {"hosts": dict(frozen.study.hosts)} if frozen.study.hosts else {}
    table = {
        "schema": SCHEMA,
        "software": dict(frozen.software),
        "study": _study_table(frozen.study) | {"path": frozen.study.path} | given,
        "looks": {"at": list(frozen.looks.at), "level": frozen.looks.level},
        "metrics": {
            label: [dataclasses.asdict(metric) for metric in metrics]
            for label, metrics in frozen.metrics.items()
        },
        "layers": dict(frozen.layers),
        "columns": [column.name for column in dataclasses.fields(Launch)],
        "launches": [dataclasses.astuple(launch) for launch in frozen.launches],
        **({"even": frozen.even} if frozen.even else {}),
    }
    return dict(json.loads(json.dumps(table)))


def _from_table(table: dict[str, Any], digest: str) -> Plan:
    names = {one.name for one in dataclasses.fields(Study)}
    known = {key: value for key, value in table["study"].items() if key in names}
    study: Study = of_json(Study, known | {"arms": [_arm(arm) for arm in known["arms"]]})
    looks = table["looks"]
    at, level = of_json(tuple[int, ...], looks["at"]), of_json(float, looks["level"])
    return Plan(
        study=study,
        looks=design_of(study).looks_of(at, level),
        launches=of_json(tuple[Launch, ...], table["launches"]),
        metrics=of_json(Mapping[str, tuple[Metric, ...]], table["metrics"]),
        software=of_json(Mapping[str, str], table["software"]),
        layers=of_json(Mapping[str, str], table["layers"]),
        sha256=of_json(str, digest),
        even=of_json(int, table.get("even", 0)),
    )


def _arm(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table of an arm; in older plans a command of it is only the list of its words."""
    steps = {
        key: [row if isinstance(row[0], list) else [row] for row in table[key]]
        for key in ("before", "after", "observe")
        if key in table
    }
    return {**table, **steps}


def _digest(table: Mapping[str, Any]) -> str:
    text = json.dumps(table, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _layout(table: Mapping[str, Any]) -> str:
    """Return `table` as JSON for readers: indented, but each launch on a line of its own."""
    launches = ",\n    ".join(json.dumps(row) for row in table["launches"])
    rest = json.dumps({k: v for k, v in table.items() if k != "launches"}, indent=2)
    return f'{rest[:-2]},\n  "launches": [\n    {launches}\n  ]\n}}\n'
