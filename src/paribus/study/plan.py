"""The plan: every launch of a study in its order, frozen, seeded and hashed before the first."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from paribus import __version__
from paribus.errors import StoreError, StudyError
from paribus.model import Arm, Container, Launch, Metric, Selection, Settings, Study
from paribus.stats.looks import Looks, schedule
from paribus.stats.plan import Randomiser, arm_orders
from paribus.study.load import benchmark_of

SCHEMA = "paribus.plan/1"
DRAFT = "plan.draft"


@dataclass(frozen=True, slots=True)
class Plan:
    """A study with everything that is decided before its first launch.

    `metrics` of each benchmark, its figure of merit first; `software` says what would make
    launches of two sessions incomparable if it changed. The blocks of one benchmark carry the
    numbers 0 (warm-up) to `study.settings.blocks`.
    """

    study: Study
    looks: Looks
    launches: tuple[Launch, ...]
    metrics: Mapping[str, tuple[Metric, ...]]
    software: Mapping[str, str]
    sha256: str = ""

    def blocks(self) -> Iterator[tuple[Launch, ...]]:
        """Yield the launches block by block, in the order in which they are to be started."""
        for _, block in groupby(self.launches, key=lambda one: (one.block, one.benchmark)):
            yield tuple(block)


def plan(study: Study) -> list[Launch]:
    """Return every launch of `study` in order: pure, and equal for equal seeds.

    Round after round, each benchmark once in random order; within it each arm once, by coin flip
    for two arms and by rows of random Latin squares for more. Raises StudyError without a seed.
    """
    seed = study.settings.seed
    if seed is None:
        raise StudyError("has no seed", place=study.path, mend="freeze it first, or set plan.seed")
    arms = [arm.name for arm in study.arms]
    labels = [selection.label for selection in study.benchmarks]
    rounds = study.settings.blocks + 1
    orders = {label: arm_orders(arms, rounds, seed, f"arms of {label}") for label in labels}
    launches: list[Launch] = []
    for block in range(rounds):
        for label in Randomiser(seed, f"benchmarks of round {block}").shuffled(labels):
            for arm in orders[label][block]:
                number = len(launches) + 1
                launches.append(Launch(number, block, label, arm, _launch_seed(seed, number)))
    return launches


def freeze(study: Study, software: Mapping[str, str]) -> Plan:
    """Return the plan of `study`; a seed is drawn if it has none."""
    if study.settings.seed is None:
        settings = dataclasses.replace(study.settings, seed=secrets.randbelow(2**31))
        study = dataclasses.replace(study, settings=settings)
    frozen = Plan(
        study=study,
        looks=schedule(study.settings.blocks, study.settings.confidence),
        launches=tuple(plan(study)),
        metrics={s.label: benchmark_of(s).metrics for s in study.benchmarks},
        software=dict(software),
    )
    return dataclasses.replace(frozen, sha256=_digest(_to_table(frozen)))


def write_plan(frozen: Plan, directory: Path) -> None:
    """Write plan.json, durably and at once; raises StoreError if it is there already."""
    path = directory / "plan.json"
    table = {"sha256": frozen.sha256, **_to_table(frozen)}
    draft = directory / DRAFT
    try:
        with draft.open("w") as file:
            file.write(_layout(table))
            file.flush()
            os.fsync(file.fileno())
        os.link(draft, path)
        draft.unlink()
    except FileExistsError:
        raise StoreError(
            "a plan is frozen here already",
            place=str(path),
            mend="continue it with --resume, or choose another directory with --out",
        ) from None
    except OSError as error:
        raise StoreError(
            f"cannot be written: {error.strerror}",
            place=str(path),
            mend="check the directory's permissions and free space, or choose another with --out",
        ) from error


def read_plan(directory: Path) -> Plan:
    """Return the plan frozen in `directory`.

    Raises StoreError when it is missing, of a newer version, or not what was frozen.
    """
    path = directory / "plan.json"
    try:
        table = json.loads(path.read_text())
    except FileNotFoundError:
        raise StoreError(
            "is not a study directory: it has no plan.json",
            place=str(directory),
            mend="give the directory that `paribus run` made (its --out)",
        ) from None
    except (OSError, ValueError) as error:
        raise StoreError(f"cannot be read: {error}", place=str(path), mend="restore it") from error
    if not isinstance(table, dict) or table.get("schema") != SCHEMA:
        raise StoreError(
            f"is not a plan of version {SCHEMA}", place=str(path), mend="update Paribus"
        )
    digest = table.pop("sha256", "")
    if digest != _digest(table):
        raise StoreError(
            "has been changed since it was frozen",
            place=str(path),
            mend="restore it, or start anew in another directory",
        )
    return _from_table(table, digest)


def check_same(frozen: Plan, study: Study, software: Mapping[str, str]) -> None:
    """Raise StoreError if `study` or the software is not what the plan was frozen with."""
    ours = _study_table(frozen.study)
    theirs = _study_table(study)
    if study.settings.seed is None:
        theirs["settings"]["seed"] = ours["settings"]["seed"]
    for key in ours:
        if ours[key] != theirs[key]:
            raise StoreError(
                f"`{key}` has changed since the plan was frozen",
                place=study.path,
                mend="restore the study file, or start anew in another directory with --out",
            )
    for name, version in frozen.software.items():
        if software.get(name) != version:
            raise StoreError(
                f"{name} was {version[:12]} when the plan was frozen and is"
                f" {software.get(name, 'missing')[:12]} now",
                place=study.path,
                mend="use the same version of Paribus, or start anew in another directory",
            )


def software() -> dict[str, str]:
    """Return what must not change between the sessions of one study."""
    digest = hashlib.sha256()
    native = Path(__file__).parent.parent / "native"
    for source in sorted(native.rglob("*.[ch]pp")):
        digest.update(source.relative_to(native).as_posix().encode() + source.read_bytes())
    return {"paribus": __version__, "kernels": digest.hexdigest()}


def _launch_seed(seed: int, number: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed} launch {number}".encode()).digest()[:4], "big")


def _study_table(study: Study) -> dict[str, Any]:
    table: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(study)))
    del table["path"]
    return table


def _to_table(frozen: Plan) -> dict[str, Any]:
    table: dict[str, Any] = {
        "schema": SCHEMA,
        "software": dict(frozen.software),
        "study": _study_table(frozen.study) | {"path": frozen.study.path},
        "looks": {"at": list(frozen.looks.at), "level": frozen.looks.level},
        "metrics": {
            label: [dataclasses.asdict(metric) for metric in metrics]
            for label, metrics in frozen.metrics.items()
        },
        "columns": [field.name for field in dataclasses.fields(Launch)],
        "launches": [dataclasses.astuple(launch) for launch in frozen.launches],
    }
    normal: dict[str, Any] = json.loads(json.dumps(table))
    return normal


def _from_table(table: dict[str, Any], digest: str) -> Plan:
    study = table["study"]
    return Plan(
        study=Study(
            question=study["question"],
            factor=study["factor"],
            arms=tuple(_arm(arm) for arm in study["arms"]),
            benchmarks=tuple(Selection(**selection) for selection in study["benchmarks"]),
            settings=Settings(**study["settings"]),
            explains=tuple(study["explains"]),
            path=study["path"],
        ),
        looks=Looks(tuple(table["looks"]["at"]), table["looks"]["level"]),
        launches=tuple(Launch(*row) for row in table["launches"]),
        metrics={
            label: tuple(Metric(**metric) for metric in metrics)
            for label, metrics in table["metrics"].items()
        },
        software=table["software"],
        sha256=digest,
    )


def _arm(table: dict[str, Any]) -> Arm:
    container = table["container"]
    return Arm(
        **{
            **table,
            "container": Container(**container) if container else None,
            "before": tuple(tuple(argv) for argv in table["before"]),
            "after": tuple(tuple(argv) for argv in table["after"]),
        }
    )


def _digest(table: Mapping[str, Any]) -> str:
    text = json.dumps(table, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _layout(table: Mapping[str, Any]) -> str:
    """Return `table` as JSON for readers: indented, but each launch on a line of its own."""
    launches = ",\n    ".join(json.dumps(row) for row in table["launches"])
    rest = json.dumps({k: v for k, v in table.items() if k != "launches"}, indent=2)
    return f'{rest[:-2]},\n  "launches": [\n    {launches}\n  ]\n}}\n'
