"""What `paribus record` wrote of machines: held against each other, and laid beside figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from paribus.audit.audit import Audit, audit_study, ranked
from paribus.audit.classes import factors
from paribus.audit.values import typical
from paribus.benchmarks import BENCHMARKS
from paribus.border import exists, is_directory, is_file, printable
from paribus.core import (
    Arm,
    Difference,
    Facts,
    Judgement,
    Reason,
    Settings,
    Study,
    UserError,
    typed,
)
from paribus.judge.withhold import withhold
from paribus.logs.logs import arms_of, natural
from paribus.probes import facts_of, from_root, from_tar

UNPACKED = "unknown.json"
"""A directory that holds it is a recording, unpacked."""

_PACKED = {".gz", ".tgz", ".tar"}
"""What the names of recordings end in, one after the other."""

MOST_NODES = 10_000


def read_recordings(path: Path) -> dict[str, Facts]:
    """Return the facts of each node by its name: of one recording, or of a folder of them.

    Raises UserError for anything else; a recording is read within the bounds of `from_tar`.
    """
    shown = printable(str(path))
    if not exists(path):
        raise UserError("does not exist", place=shown, fix="check the spelling")
    if not is_directory(path):
        return {_name(path): facts_of(from_tar(path))}
    if is_file(path / UNPACKED):
        return {path.resolve().name: facts_of(from_root(path))}
    if (path / "plan.json").exists():
        fix = "for one study: `paribus audit DIR`; for two: `paribus compare DIR DIR`"
        raise UserError("is the directory of a study, not a recording", place=shown, fix=fix)
    inside = sorted(path.iterdir(), key=lambda one: natural(one.name))
    files = [one for one in inside if one.suffix in _PACKED and not is_directory(one)]
    if not files:
        fix = "on each machine: `paribus record --out NAME.tar.gz`"
        raise UserError("holds no recording of a machine", place=shown, fix=fix)
    if len(files) > MOST_NODES:
        raise UserError(f"holds more than {MOST_NODES:,} recordings", place=shown)
    return {_name(one): facts_of(from_tar(one)) for one in files}


def _name(path: Path) -> str:
    """Return what a recording is called: its file's name without what it ends in."""
    while path.suffix in _PACKED:
        path = path.with_suffix("")
    return path.name


def audit_recordings(
    paths: Sequence[Path], factor: str, accepted: Mapping[str, str]
) -> tuple[Study, dict[str, dict[str, Facts]], Audit]:
    """Return the machines as arms of a study without benchmarks, their facts, and what differs.

    `factor` explains what it explains in a study, "" nothing. Raises UserError for one that is not
    shipped, and as `read_recordings`.
    """
    if factor and factor not in factors():
        fix = f"give one of {', '.join(factors())}; or leave it out, to see every difference"
        raise UserError("explains no fact", place=f"--factor {printable(factor)!r}", fix=fix)
    whole = arms_of(paths)
    names = [_name(Path(name)) for name in whole]
    names = names if len(set(names)) == len(names) else list(whole)
    nodes = {name: read_recordings(path) for name, path in zip(names, paths, strict=True)}
    arms = tuple(Arm(name) for name in nodes)
    question = f"What differs between {' and '.join(nodes)}?"
    study = Study(question, factor, arms, (), Settings())
    return study, nodes, audit_study(study, {}, nodes, {}, accepted)


def with_facts(judgement: Judgement, given: Sequence[str], reference: str) -> Judgement:
    """Return a judgement of figures from elsewhere with the audit of the machines they are of.

    `given` are recordings in the order of the arms, or ARM=PATH; see `beside_facts`.
    """
    nodes = {arm: read_recordings(path) for arm, path in _by_arm(judgement, given, reference)}
    study = judgement.study
    known = [s for s in study.benchmarks if s.benchmark in BENCHMARKS]
    layers = {s.label: BENCHMARKS[s.benchmark].layer for s in known}
    said = audit_study(study, layers, nodes, {}, {})
    return beside_facts(judgement, said, {arm: typical(of.values()) for arm, of in nodes.items()})


def beside_facts(judgement: Judgement, said: Audit, facts: Mapping[str, Facts]) -> Judgement:
    """Return a judgement of figures from elsewhere with what an audit says of their arms.

    Where the factor is one that explains facts, what it does not explain withholds verdicts, as in
    a study; otherwise every difference is noted.
    """
    differences = said.differences
    unexplained: set[str] = set()
    if judgement.study.factor in factors():
        unexplained = {one.arm for one in differences if one.kind == "unexplained"}
    else:
        differences = tuple(map(_noted, differences))
    every = {arm: {**judgement.facts.get(arm, {}), **mine} for arm, mine in facts.items()}
    judgement = replace(
        judgement,
        differences=ranked((*judgement.differences, *differences)),
        equal_facts=judgement.equal_facts + len(said.equal),
        facts=every,
    )
    return withhold(
        judgement,
        lambda f: (
            (Reason.UNEXPLAINED_DIFFERENCES, {}) if unexplained & {f.arm, f.reference} else None
        ),
    )


def _noted(one: Difference) -> Difference:
    return replace(one, kind="noted") if one.kind == "unexplained" else one


def _by_arm(judgement: Judgement, given: Sequence[str], reference: str) -> list[tuple[str, Path]]:
    """Return the recording of each arm; raises UserError where that is not clear."""
    arms = [arm.name for arm in judgement.study.arms]
    parts = [one.partition("=") for one in given]
    named = {arm: Path(path) for arm, sign, path in parts if sign and arm in arms}
    fix = f"give one for each arm: --facts {typed(f'{arm}=FILE' for arm in arms)}"
    if named and len(named) == len(given) == len(arms):
        return [(arm, named[arm]) for arm in arms]
    if named or reference:
        cause = "names some arms only" if named else "is in no clear order beside --reference"
        raise UserError(cause, place="--facts", fix=fix)
    if len(given) != len(arms):
        cause = f"has {len(given)} recordings for {len(arms)} arms ({', '.join(arms)})"
        raise UserError(printable(cause), place="--facts", fix=fix)
    return list(zip(arms, map(Path, given), strict=True))
