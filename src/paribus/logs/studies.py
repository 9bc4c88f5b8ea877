"""Compare study directories of one question: what both measured, and what changed between them.

In go directories; out comes `Compared`: for each later study the changes of effects (change.py),
the facts, settings and software that are not what they were, and what cannot be compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from paribus.audit.audit import audit_study, of_nodes, ranked
from paribus.audit.classes import classify
from paribus.audit.values import ERROR
from paribus.border import exists, is_directory, printable
from paribus.core import Difference, LeftOut, Selection, UserError, format_factor
from paribus.core.commandline import instead_of
from paribus.judge.conclude import Light, conclude, launch_facts
from paribus.judge.evidence import collect
from paribus.logs.change import Change, Changed, Measured, NotCompared, Step, changes
from paribus.logs.logs import arms_of
from paribus.plan import read_plan
from paribus.probes.variables import discreet_env
from paribus.store import Store
from paribus.words import lists
from paribus.words.lists import listed

NOT_COMPARABLE = "are not studies of the same question"
ABSENT = (None, "not given")
"""Value and text of a setting that a study does not give."""

GIVE = "give two study directories of the same arms and benchmarks, measured at different times"
WHERE = ("directory", "path")
"""Parameters that say where something lies, not what is measured: they belong to the platform."""

SIDES = ("first", "other")
"""The names of the two studies as arms of an audit."""

NOTHING_ACCEPTED: Mapping[str, str] = {}
VALUES = ("values.csv", "values.parquet")
"""Files of a study's directory with the values of its launches."""


@dataclass(frozen=True, slots=True)
class Compared:
    """The first study, and what changed from it to each of the others."""

    first: Measured
    steps: tuple[Step, ...]


def study_of(path: Path) -> Path:
    """Return the study directory whose logs, or values, `path` is; otherwise `path` itself.

    The study is read instead of its files: these know neither which launches count nor at which
    looks the verdicts fell.
    """
    of_study = path.name == "logs" or path.name in VALUES
    whole = all((path.parent / name).is_file() for name in ("plan.json", "launches.db"))
    return path.parent if of_study and whole and exists(path) else path


def are_studies(paths: Sequence[Path]) -> bool:
    """Return whether all of `paths` are study directories.

    Raises UserError for one given twice, and if only some of them are studies: a study has arms of
    its own, which logs cannot join.
    """
    found = [path for path in paths if is_directory(path) and (path / "plan.json").is_file()]
    if not found or len(found) == len(paths):
        whole = [path.resolve() for path in found]
        if twice := next((path for path in found if whole.count(path.resolve()) > 1), None):
            raise UserError("is given twice", place=printable(str(twice)), fix=GIVE)
        return bool(found)
    other = next(path for path in paths if path not in found)
    if not exists(other):
        raise UserError("does not exist", place=printable(str(other)), fix="check the spelling")
    if other.suffix == ".zip":
        raise UserError("is no directory", place=printable(str(other)), fix=instead_of(other))
    raise UserError(
        f"is a study directory, and {printable(str(other))} is not: it has no file plan.json",
        place=printable(str(found[0])),
        fix="compare studies with studies; to compare the outputs of a study with other logs, give"
        f" its folder {printable(str(found[0] / 'logs'))}",
    )


def compare_studies(paths: Sequence[Path], *, lone: bool = False) -> Compared:
    """Return the changes from the first of several study directories to each of the others.

    With `lone`, studies with one arm beside the reference are compared in this arm, whatever its
    names. Raises UserError for a directory given twice, a copy, and studies that share nothing.
    """
    names = arms_of(paths)
    first, *others = [read(name, path) for name, path in zip(names, paths, strict=True)]
    return Compared(first, tuple(_step(first, other, len(paths), lone=lone) for other in others))


def read(name: str, directory: Path) -> Measured:
    """Return the study in a directory: its plan, launches, judgement and facts, called `name`."""
    plan = read_plan(directory)
    with Store(directory) as store:
        store.check_plan(plan.sha256)
        evidence = collect(plan, store.launches(void=True, arrays=True))
        plan = plan.design.chosen(plan, evidence)
        return Measured(
            printable(name),
            plan,
            evidence,
            conclude(plan, store, evidence),
            of_nodes(store.gathered()),
            launch_facts(plan, map(Light(), store.launches(samples=False))),
        )


def _step(first: Measured, other: Measured, studies: int, *, lone: bool = False) -> Step:
    """Return what changed from `first` to `other`."""
    check_apart(first, other)
    arms, labels, left = in_both(first, other, lone=lone)
    heads, cases = changes(first, other, labels, arms, studies)
    reference = first.judgement.reference
    platform, equal = differences(first, other, [(reference, reference), *arms])
    changed = [(one.arm, one.word.value, one.benchmark, _size(one)) for one in heads]
    names = (first.name, other.name)
    if arms[0][0] != arms[0][1]:
        names = (f"{first.name} ({arms[0][0]})", f"{other.name} ({arms[0][1]})")
    text = sentence(names, first.judgement.reference, changed)
    return Step(first, other, heads, cases, platform, equal, tuple(left), text)


def sentence(
    studies: tuple[str, str], reference: str, changes: Sequence[tuple[str, str, str, float | None]]
) -> str:
    """Return changes in one sentence; each is arm, word, benchmark, and times as slow or None."""
    groups: dict[tuple[str, str], list[str]] = {}
    for arm, word, benchmark, ratio in changes:
        size = f" ({format_factor(ratio)})" if ratio is not None else ""
        groups.setdefault((arm, word), []).append(f"{benchmark}{size}")
    parts = [
        f"{_claim(word, arm, reference)} in {listed(of, 4, last=' and ')}"
        for (arm, word), of in groups.items()
    ]
    return f"From {studies[0]} to {studies[1]}: {'; '.join(parts)}."


def _claim(word: str, arm: str, reference: str) -> str:
    """Return for example "bridged worsened against host"."""
    arm, reference = lists.arm(arm), lists.arm(reference)
    if word == "withheld":
        return f"no verdict on the change of {arm}"
    if word in ("undecided", "no data"):
        return f"{word} for {arm}"
    return f"{arm} {'is ' * (word == 'unchanged')}{word} against {reference}"


def _size(one: Change) -> float | None:
    """Return how many times as slow an effect has become, None if no change is found."""
    found = one.comparison if one.word in (Changed.IMPROVED, Changed.WORSENED) else None
    return found.times(one.metric.better).ratio if found else None


def in_both(
    first: Measured, other: Measured, *, lone: bool = False
) -> tuple[list[tuple[str, str]], list[str], list[NotCompared]]:
    """Return what both studies have: arms, as pairs of their names in each, and benchmarks.

    The third element is what is not compared. Raises UserError if they share no arm or benchmark.
    """
    left: list[NotCompared] = []
    arms = shared_arms(first, other, left, lone=lone)
    labels = shared_labels(first, other, left)
    if not arms or not labels:
        why = "; ".join(one.text for one in left)
        place = f"{first.name} and {other.name}"
        raise UserError(f"{NOT_COMPARABLE}: {why}", place=place, fix=GIVE)
    return arms, labels, left


def check_apart(first: Measured, other: Measured) -> None:
    """Raise UserError for a copy: its launches are no second sample, and show no change."""
    one, two = first.judgement, other.judgement
    if one.plan_sha256 == two.plan_sha256 and one.started == two.started is not None:
        raise UserError(
            f"holds the same launches as {first.name}",
            place=other.name,
            fix="give two studies that were measured at different times, not a copy of one",
        )


# --- what both studies measured --------------------------------------------------------------


def shared_arms(
    first: Measured, other: Measured, left: list[NotCompared], *, lone: bool = False
) -> list[tuple[str, str]]:
    """Return the arms that both studies have, as pairs of names; add others to `left`.

    None if factor or reference differ.
    """
    one, two = first.plan.study, other.plan.study
    references = one.arms[0].name, two.arms[0].name
    if one.factor != two.factor:
        left.append(_differing("the factor", LeftOut.FACTOR_DIFFERS, one.factor, two.factor))
    if len(set(references)) > 1:
        left.append(_differing("the reference", LeftOut.REFERENCE_DIFFERS, *references))
    if left:
        return []
    names = [[arm.name for arm in study.arms[1:]] for study in (one, two)]
    if lone and len(names[0]) == len(names[1]) == 1:
        return [(names[0][0], names[1][0])]
    left += _only(first, other, "the arm", *names)
    return [(name, name) for name in names[0] if name in names[1]]


def shared_labels(first: Measured, other: Measured, left: list[NotCompared]) -> list[str]:
    """Return the labels of benchmarks that are the same in both studies; add others to `left`."""
    known = [{s.label: s for s in one.plan.study.benchmarks} for one in (first, other)]
    left += _only(first, other, "the benchmark", *map(list, known))
    shared = []
    for label in known[0]:
        if label not in known[1]:
            continue
        if difference := _other_benchmark(first, other, known[0][label], known[1][label]):
            left.append(difference)
        else:
            shared.append(label)
    return shared


def _only(
    first: Measured, other: Measured, what: str, ours: Sequence[str], theirs: Sequence[str]
) -> Iterator[NotCompared]:
    """Yield the names that only one of the studies has, of arms or benchmarks (`what`)."""
    for study, mine, them in ((first, ours, theirs), (other, theirs, ours)):
        for name in mine:
            if name not in them:
                yield NotCompared(f"{what} {name}", LeftOut.MISSING, {"only_in": study.name})


def _other_benchmark(
    first: Measured, other: Measured, one: Selection, two: Selection
) -> NotCompared | None:
    """Return the first difference between a benchmark in two studies, None if it is the same."""
    label = one.label
    metrics = [
        f"{m.name} ({m.unit}, {m.better} is better)"
        for m in (study.plan.metrics[label][0] for study in (first, other))
    ]
    cells = [
        study.evidence.cells_of(label, study.plan.metrics[label][0].name)
        for study in (first, other)
    ]
    if one.benchmark != two.benchmark:
        return _differing(label, LeftOut.BENCHMARK_DIFFERS, one.benchmark, two.benchmark)
    if one.ranks != two.ranks:
        return _differing(label, LeftOut.RANKS_DIFFER, one.ranks, two.ranks)
    keys = [
        key
        for key in dict.fromkeys((*one.parameters, *two.parameters))
        if key not in WHERE and plain(one.parameters.get(key)) != plain(two.parameters.get(key))
    ]
    if keys:
        values = [", ".join(f"{k} = {s.parameters.get(k)}" for k in keys) for s in (one, two)]
        return _differing(label, LeftOut.PARAMETERS_DIFFER, *values)
    if metrics[0] != metrics[1]:
        return _differing(label, LeftOut.METRICS_DIFFER, *metrics)
    if all(cells) and set(cells[0]) != set(cells[1]):
        cases = [", ".join(str(case) for _, case in some) for some in cells]
        return _differing(label, LeftOut.CASES_DIFFER, *cases)
    return None


def plain(value: Any) -> str:
    """Return a parameter as text, in which a list equals a tuple of the same."""
    return json.dumps(value, sort_keys=True, default=str)


def _differing(what: str, code: LeftOut, first: object, second: object) -> NotCompared:
    return NotCompared(what, code, {"first": str(first), "second": str(second)})


# --- what changed of the platform ------------------------------------------------------------


def differences(
    first: Measured,
    other: Measured,
    arms: Sequence[tuple[str, str]],
    accepted: Mapping[str, str] = NOTHING_ACCEPTED,
) -> tuple[tuple[Difference, ...], int]:
    """Return the differences of each of `arms` between two studies, and how many facts are equal.

    `arms` are pairs of its names in both. An arm in two studies is audited as two arms of one study
    in which nothing may differ, unless it is `accepted`.
    """
    found = list(_settings(first, other, arms))
    equal: set[str] = set()
    differing: set[str] = set()
    for pair in arms:
        sides = [
            replace(next(arm for arm in one.plan.study.arms if arm.name == name), name=side)
            for one, name, side in zip((first, other), pair, SIDES, strict=True)
        ]
        both = replace(first.plan.study, arms=tuple(sides), factor="nothing", explains=())
        answer = audit_study(
            both,
            {**other.plan.layers, **first.plan.layers},
            {
                s: one.nodes.get(n, {})
                for s, one, n in zip(SIDES, (first, other), pair, strict=True)
            },
            {
                label: {
                    side: one.launches.get(label, {}).get(name, ())
                    for side, one, name in zip(SIDES, (first, other), pair, strict=True)
                }
                for label in first.launches.keys() & other.launches.keys()
            },
            accepted,
        )
        equal |= answer.equal
        differing |= {one.key for one in answer.differences}
        found += [replace(one, arm=pair[1]) for one in answer.differences if _lasts(one)]
    return ranked(found), len(equal - differing)


def _lasts(one: Difference) -> bool:
    """Return whether a difference is of the platform, rather than of a moment or of one node."""
    return one.key == ERROR or not (one.node or classify(one.key).kind == "volatile")


def _settings(
    first: Measured, other: Measured, arms: Sequence[tuple[str, str]]
) -> Iterator[Difference]:
    """Yield the differences in what the study files say, and in the version of Paribus."""
    for before, name in (("", ""), *arms):
        ours, theirs = settings_of(first, before), settings_of(other, name)
        for key in sorted(ours.keys() | theirs.keys()):
            if ours.get(key, ABSENT)[0] != theirs.get(key, ABSENT)[0]:
                one, two = (str(side.get(key, ABSENT)[1]) for side in (ours, theirs))
                two += ", another value" if one == two else ""
                yield Difference(key, name, one, two, "unexplained", "stated in the study", 2)


def settings_of(study: Measured, arm: str) -> dict[str, tuple[Any, Any]]:
    """Return value and text, by key, of what a study file says of an arm, or with "" of the study.

    The text is how the value is shown: without secrets, and of a hash the first characters.
    """
    plan = study.plan
    if not arm:
        files = {s.label: s.file_sha256 for s in plan.study.benchmarks if s.file_sha256}
        hashes = {f"benchmark.{label}.file": sha256 for label, sha256 in files.items()}
        places = {
            f"benchmark.{s.label}.{key}": (s.parameters[key], s.parameters[key])
            for s in plan.study.benchmarks
            for key in WHERE
            if s.parameters.get(key)
        }
        hashes |= {f"software.{name}": version for name, version in plan.software.items()}
        return {key: (text, f"{text:.12}") for key, text in hashes.items()} | places
    mine = next(one for one in plan.study.arms if one.name == arm)
    table = asdict(replace(mine, name="", env={}))
    container = table.pop("container") or {}
    given = {**table, **{f"container.{key}": value for key, value in container.items()}}
    shown, nodes = discreet_env(mine.env), sorted(study.nodes.get(arm, {}))
    return {
        **{f"arm.{key}": (value, value) for key, value in given.items() if value},
        **{f"arm.env.{key}": (value, shown[key]) for key, value in mine.env.items()},
        **({"arm.nodes": (nodes, ", ".join(nodes))} if nodes else {}),
    }
