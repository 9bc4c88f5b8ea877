"""`paribus audit A.tar.gz B.tar.gz`: what differs between recorded machines, without a study.

A recording is what `paribus record` wrote on a machine. Each one, or each folder of them, is an
arm, whose facts the audit compares as those of a study.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from paribus.audit.accepted import in_vain
from paribus.audit.audit import Audit, Nodes, audit_study, ranked
from paribus.audit.classes import factors
from paribus.audit.values import typical
from paribus.benchmarks import BENCHMARKS
from paribus.border import exists, is_directory, is_file, printable
from paribus.core import (
    Arm,
    Facts,
    Judgement,
    Settings,
    Study,
    UserError,
    count,
    grouped,
    natural,
    typed,
)
from paribus.judge.headlines import unexplained, withhold
from paribus.logs.logs import arms_of
from paribus.probes import facts_of
from paribus.probes.files import from_root, from_tar
from paribus.words.notices import needless

UNPACKED = "unknown.json"
"""The file in which a directory shows that it is an unpacked recording."""

_PACKED = {".gz", ".tgz", ".tar"}
"""Endings of the names of recordings: "node1.tar.gz" has two."""

MOST_NODES = 10_000


def read_recordings(path: Path) -> dict[str, Facts]:
    """Return the facts of each node by its name: of one recording, or of a folder of recordings.

    Raises UserError for any other path; a recording is read within the bounds of `from_tar`.
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
        fix = f"take {MOST_NODES:,} of them"
        raise UserError(f"holds {len(files):,} recordings", place=shown, fix=fix)
    return {_name(one): facts_of(from_tar(one)) for one in files}


def _name(path: Path) -> str:
    """Return the name of a recording: that of its file without endings."""
    while path.suffix in _PACKED:
        path = path.with_suffix("")
    return path.name


def audit_recordings(
    paths: Sequence[Path], factor: str, accepted: Mapping[str, str]
) -> tuple[Study, dict[str, dict[str, Facts]], Audit]:
    """Return a study without benchmarks whose arms are the machines, their facts, and the audit.

    The facts are by arm and node. `factor` explains the facts that it explains in a study; ""
    explains none. Raises UserError for a factor that is not shipped, and as `read_recordings`.
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
    """Return a judgement of figures from elsewhere with the audit of their machines' recordings.

    `given` are the recordings in the order of the arms, or as ARM=PATH.
    """
    nodes = {arm: read_recordings(path) for arm, path in _by_arm(judgement, given, reference)}
    answer = audit_study(judgement.study, _layers(judgement.study), nodes, {}, {})
    return _beside_facts(
        judgement, answer, {arm: typical(of.values()) for arm, of in nodes.items()}
    )


def _layers(study: Study) -> dict[str, str]:
    known = (s for s in study.benchmarks if s.benchmark in BENCHMARKS)
    return {s.label: BENCHMARKS[s.benchmark].layer for s in known}


def with_reported(
    judgement: Judgement, reported: Mapping[str, Mapping[str, Facts]], accepted: Iterable[str]
) -> Judgement:
    """Return a judgement of figures from elsewhere with the audit of the facts beside them.

    `reported` are these facts by benchmark and arm; `accepted` are keys in which arms may differ,
    by the user's word.
    """
    arms = [arm.name for arm in judgement.study.arms]
    launches = {label: {arm: [of.get(arm, {})] for arm in arms} for label, of in reported.items()}
    reasons = dict.fromkeys(accepted, "part of the arm, by --part-of-arm")
    answer = audit_study(judgement.study, _layers(judgement.study), {}, launches, reasons)
    every = {
        arm: {key: value for of in reported.values() for key, value in of.get(arm, {}).items()}
        for arm in arms
    }
    return _beside_facts(judgement, answer, every if any(every.values()) else {})


def _beside_facts(judgement: Judgement, answer: Audit, facts: Mapping[str, Facts]) -> Judgement:
    """Return a judgement of figures from elsewhere with the audit of their arms, and its facts.

    If the factor is one that explains facts, a difference that it does not explain withholds
    verdicts, as in a study; otherwise every difference is noted.
    """
    differences = answer.differences
    if judgement.study.factor not in factors():
        differences = tuple(
            replace(one, kind="noted") if one.kind == "unexplained" else one for one in differences
        )
    every = {arm: {**judgement.facts.get(arm, {}), **mine} for arm, mine in facts.items()}
    judgement = replace(
        judgement,
        differences=ranked((*judgement.differences, *differences)),
        equal_facts=judgement.equal_facts + len(answer.equal),
        facts=every,
    )
    return withhold(judgement, lambda f: unexplained(differences, {f.arm, f.reference}))


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


LIKELY = (
    "No known effect on figures",
    "Rarely affects figures",
    "Often affects figures",
    "Almost always affects figures",
)
"""What each rank of a difference, from 0, means where no benchmark is named."""


def refuse_options(arguments: argparse.Namespace) -> None:
    """Raise UserError for options that do not fit recordings, or a study; and for one recording."""
    several = len(arguments.what) > 1
    to_reach = arguments.hosts or arguments.accept_host_keys
    if to_reach and (several or is_directory(Path(arguments.what[0]))):
        place = "--hosts" if arguments.hosts else "--accept-host-keys"
        fix = "leave it out, or audit a study file: these machines were reached already"
        raise UserError("reaches no host", place=place, fix=fix)
    if several:
        return
    (what,) = arguments.what
    if Path(what).suffix in _PACKED or is_file(Path(what) / UNPACKED):
        show = typed(("paribus", "record", "--from", what))
        fix = f"give another beside it; to see what is in it: {show}"
        raise UserError("is one recording", place=what, fix=fix)
    if arguments.factor:
        fix = "leave it out: a study names its own factor"
        raise UserError("is not possible with a study", place="--factor", fix=fix)


def note_unused(accepted: Mapping[str, str], answer: Audit) -> None:
    """Print on the error stream which accepted keys have no effect."""
    differing = {one.key for one in answer.differences}
    if unused := in_vain(accepted, differing, answer.equal):
        print(f"note: --accept without effect: {needless(unused)}", file=sys.stderr)


def audit_recorded(arguments: argparse.Namespace, accepted: Mapping[str, str]) -> int:
    """Return the exit code of `paribus audit` on recordings: 3 where something differs, else 0."""
    paths = [Path(name) for name in arguments.what]
    study, nodes, answer = audit_recordings(paths, arguments.factor, accepted)
    note_unused(accepted, answer)
    code = 3 if any(one.kind == "unexplained" for one in answer.differences) else 0
    if arguments.json:
        print(json.dumps(to_json(study, nodes, answer, clean=code == 0), indent=2))
    else:
        _show(study, nodes, answer, everything=arguments.all)
    return code


def to_json(
    study: Study, nodes: Mapping[str, Nodes], answer: Audit, *, clean: bool
) -> dict[str, object]:
    """Return the schema paribus.audit/1 (docs/audit.md)."""
    return {
        "schema": "paribus.audit/1",
        "question": study.question,
        "factor": study.factor,
        "arms": [arm.name for arm in study.arms],
        "clean": clean,
        "equal": sorted(answer.equal),
        "differences": [asdict(one) for one in answer.differences],
        "facts": {
            arm: {node: dict(facts) for node, facts in by.items()} for arm, by in nodes.items()
        },
    }


def _show(study: Study, nodes: Mapping[str, Nodes], answer: Audit, *, everything: bool) -> None:
    """Print one sentence, the unexplained differences by likely effect, and the others by kind."""
    from paribus.report.printing import console_on, line
    from paribus.report.unequal import print_differences

    console = console_on(sys.stdout)
    open_ = [one for one in answer.differences if one.kind == "unexplained"]
    number = len({one.key for one in open_})
    beyond = f" beyond the factor ({study.factor})" if study.factor else ""
    text = f"{count(number, 'fact')} {'differs' if number == 1 else 'differ'}{beyond}."
    light = "that matters " * any(one.kind in ("noted", "accepted") for one in answer.differences)
    line(console, text if number else f"No fact {light}differs{beyond}.", style="bold")
    names = [
        f"{arm} ({count(len(of), 'recording')})" if len(of) > 1 else arm
        for arm, of in nodes.items()
    ]
    line(console, f"Recorded facts of {names[0]} against {'; '.join(names[1:])}.", style="dim")
    console.print()
    by_reason = grouped(((one.rank, one.reason), one) for one in open_)
    for (rank, reason), mine in by_reason.items():
        line(console, f"{LIKELY[rank]}: {reason}", indent=2, hang=2, style="bold")
        for one in mine:
            arm = f" ({one.arm})" if len(study.arms) > 2 else ""
            text = f"{one.key}{arm}: {one.reference_value} -> {one.arm_value}"
            line(console, text, indent=4, hang=2)
    rest = [one for one in answer.differences if one.kind != "unexplained"]
    equal = f"{count(len(answer.equal), 'fact')} equal in all."
    print_differences(rest, equal, console, several=len(study.arms) > 2, everything=everything)
