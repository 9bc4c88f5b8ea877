"""`run --against DIR`: a new arm, beside the reference measured again, against a stored study.

The reference must be what it was in the stored study. So a difference in its facts, or in what the
study file says of it, ends the run (UnequalError) before anything is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from paribus.audit.first import MOST_NAMED
from paribus.core import Difference, Facts, Study, UnequalError, UserError, count, matches, typed
from paribus.judge.evidence import Evidence
from paribus.logs.change import Measured
from paribus.logs.studies import are_studies, differences, in_both, read
from paribus.plan import Plan, freeze, with_sizes

Nodes = Mapping[str, Mapping[str, Facts]]
"""Facts by arm and node."""

Check = Callable[[Plan, Nodes, Mapping[str, str]], None]
"""Raises UnequalError: by the plan, the facts of nodes, and the accepted keys with reasons."""

CANCELS = ("software.", "arm.nodes", "*.directory", "*.path")
"""Keys of differences that do not count, because both arms of a study share them: the version of
Paribus, nodes of a kind, where files lie."""


def stored(directory: Path, study: Study, accepted: Mapping[str, str]) -> Measured:
    """Return the study in `directory`, against which an arm of `study` is to be judged.

    Raises UserError if that is no finished study of the same question, and UnequalError if the
    study file says something else of the reference that is not `accepted`.
    """
    if not are_studies([directory]):
        fix = "give the directory that `paribus run` made"
        raise UserError("is no study directory: no file plan.json", place=str(directory), fix=fix)
    then = read(directory.resolve().name, directory)
    if not then.judgement.complete:
        again = typed(("paribus", "run", then.plan.study.path, "--out", directory, "--resume"))
        fix = f"continue it first: {again}"
        raise UserError("is not finished", place=str(directory), fix=fix)
    now = planned(then, freeze(with_sizes(study, then.plan.study), {}))
    in_both(then, now, lone=True)
    refuse(then, now, accepted)
    return then


def check(then: Measured, *, alone: bool = False) -> Check:
    """Return the check that raises UnequalError if a node of the reference is not as `then`.

    The arm that is measured `alone` stands in place of the reference.
    """

    def compare(plan: Plan, nodes: Nodes, accepted: Mapping[str, str]) -> None:
        arm = plan.study.arms[0].name if alone else ""
        refuse(then, replace(planned(then, plan), nodes=nodes), accepted, arm)

    return compare


def planned(then: Measured, plan: Plan) -> Measured:
    """Return `plan` as a study to be compared with `then`: nothing of it is measured yet."""
    return replace(
        then,
        name="this study",
        plan=plan,
        evidence=Evidence(plan.metrics),
        nodes={},
        launches={},
    )


def refuse(then: Measured, now: Measured, accepted: Mapping[str, str], arm: str = "") -> None:
    """Raise UnequalError, which names them, for differences of an arm between `then` and `now`.

    The arm is the reference unless `arm` names another. See `others` for what counts.
    """
    study, name = now.plan.study, arm or then.judgement.reference
    found = others(then, now, accepted, name)
    if not found:
        return
    reported = [f"\n    {one.key}: {one.reference_value} -> {one.arm_value}" for one in found]
    if len(reported) > MOST_NAMED:
        reported[MOST_NAMED:] = [f"\n    and {len(reported) - MOST_NAMED} more"]
    raise UnequalError(
        f"{name} is not {'what' if arm else 'the reference that'} {then.name} measured"
        f" ({count(len(found), 'difference')}):{''.join(reported)}",
        place=study.path,
        fix="measure where it is what it was; or accept one that cannot matter, which the report"
        f' then shows: --accept {found[0].key}="reason"; or measure a new reference without'
        " --against",
    )


def others(
    then: Measured, now: Measured, accepted: Mapping[str, str], arm: str
) -> Sequence[Difference]:
    """Return the unexplained differences of an arm: in facts, and in what the study file says.

    Those that are `accepted`, or in CANCELS, do not count. Nor do recorded values of environment
    variables that the arm sets: the study file says these.
    """
    found, _ = differences(then, now, [(arm, arm)], accepted)
    arms = (one for study in (then, now) for one in study.plan.study.arms if one.name == arm)
    cancels = (*CANCELS, *(f"env.{name}" for one in arms for name in one.env))
    return [
        one
        for one in found
        if one.kind == "unexplained" and one.key not in accepted and not matches(one.key, cancels)
    ]
