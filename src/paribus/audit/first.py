"""Checks by the audit before the first launch: whether a study can have a verdict at all."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from paribus.audit.audit import Audit
from paribus.audit.classes import factors
from paribus.audit.values import ERROR
from paribus.core import Difference, Study, UnequalError, count

NOTHING = "nothing"
"""The factor of a study whose arms are meant to be identical."""

MOST_NAMED = 6
"""The most differences that an error names; `paribus audit` lists all."""

_OF_FACTOR = ("factor", "explained")
_BEYOND = ("accepted", "unexplained")


def indistinct(study: Study, answer: Audit) -> tuple[str, ...]:
    """Return the arms that differ from the reference in nothing, not even in the factor."""
    return _alike(study, answer, (*_OF_FACTOR, *_BEYOND))


def unvaried(study: Study, answer: Audit) -> tuple[str, ...]:
    """Return the arms that do not differ from the reference in the factor, whatever else does."""
    return _alike(study, answer, _OF_FACTOR)


def _alike(study: Study, answer: Audit, kinds: tuple[str, ...]) -> tuple[str, ...]:
    """Return the arms that show no difference of these kinds from the reference.

    An arm with other commands that switch it, or other hosts, is taken to differ even if no fact
    shows it, and so is an arm with a node that gave no facts.
    """
    if study.factor == NOTHING:
        return ()
    reference, *others = study.arms
    silent = {one.arm for one in answer.differences if one.key == ERROR}
    differing = {one.arm for one in answer.differences if one.kind in kinds and not one.node}
    return tuple(
        arm.name
        for arm in others
        if arm.name not in differing
        and not silent & {arm.name, reference.name}
        and (arm.before, arm.after) == (reference.before, reference.after)
        and arm.hosts == reference.hosts
    )


def not_in_factor(study: Study, arms: tuple[str, ...]) -> str:
    """Return the clause on `arms`, the result of `unvaried`."""
    names = " and ".join((study.arms[0].name, *arms))
    return f"the arms {names} do not differ in the factor ({study.factor})"


def meant(study: Study) -> str:
    """Return "did you mean ...?" if the study's factor is a misspelt shipped one, else "".

    An unknown factor explains nothing, so all that the shipped one changes would be unexplained.
    """
    if study.factor in factors():
        return ""
    close = difflib.get_close_matches(study.factor, factors(), n=1, cutoff=0.75)
    return f'did you mean factor = "{close[0]}"?' if close else ""


def _lowered(unexplained: Sequence[Difference]) -> str:
    """Return how to give all arms the lower limit of open files, "" if it does not differ.

    Container engines such as podman cannot keep a high one.
    """
    for one in unexplained:
        values = (one.reference_value, one.arm_value)
        if one.key == "limits.nofile" and all(value.isdecimal() for value in values):
            least = min(map(int, values))
            return f"`ulimit -n {least}` in this shell gives all arms the lower limit. Else "
    return ""


def check_unchanged(study: Study, found: Sequence[Difference], *, anyway: bool) -> None:
    """Raise UnequalError, unless `anyway`, if `found` has unexplained changes since the beginning.

    Launches before and after would be pooled, or the verdict withheld.
    """
    changes: dict[str, list[str]] = {}
    for one in found:
        if one.kind == "unexplained":
            text = f"{one.key}: {one.reference_value} -> {one.arm_value}"
            changes.setdefault(text, []).append(f"{one.arm} on {one.node}")
    if not changes or anyway:
        return
    lines = [f"\n    {text} ({', '.join(where)})" for text, where in changes.items()]
    if len(lines) > MOST_NAMED:
        lines[MOST_NAMED:] = [f"\n    and {len(lines) - MOST_NAMED} more"]
    key = next(one.key for one in found if one.kind == "unexplained")
    raise UnequalError(
        f"{count(len(changes), 'fact')} changed since the study began, so a verdict on launches of"
        f" before and after would be withheld:{''.join(lines)}",
        place=study.path,
        fix="continue it where this is what it was; or accept a change, which the report then"
        f' shows: --resume --accept {key}="reason"; or measure without a verdict: --anyway',
    )


def check(study: Study, answer: Audit, *, anyway: bool) -> None:
    """Raise UnequalError, before a study is measured, if its verdicts could mean nothing.

    That is if an arm does not differ from the reference at all, or, unless `anyway`, in something
    that the factor does not explain.
    """
    if same := indistinct(study, answer):
        names = " and ".join((study.arms[0].name, *same))
        raise UnequalError(
            f"nothing differs between the arms {names}, not even the factor ({study.factor})",
            place=study.path,
            fix='make the arms differ, or set factor = "nothing" to measure the noise',
        )
    unexplained = [one for one in answer.differences if one.kind == "unexplained"]
    if not unexplained or anyway:
        return
    reported = [
        f"\n    {one.key}{f' on {one.node}' * bool(one.node)} ({one.arm}):"
        f" {one.reference_value} -> {one.arm_value}"
        for one in unexplained[:MOST_NAMED]
    ]
    if len(unexplained) > MOST_NAMED:
        reported.append(
            f"\n    and {len(unexplained) - MOST_NAMED} more; `paribus audit` lists them"
        )
    cause = (
        f"{count(len(unexplained), 'difference')} between the arms that the factor"
        f" ({study.factor}) does not explain"
    )
    if same := unvaried(study, answer):
        cause = f"{not_in_factor(study, same)}; {cause}"
    hint = f"{asked} Else " if (asked := meant(study)) else _lowered(unexplained)
    raise UnequalError(
        f"{cause}:{''.join(reported)}",
        place=study.path,
        fix=f"{hint}make them equal, name them under `explains` if the factor causes them, accept"
        ' one with --accept KEY="reason", or measure without a verdict with --anyway',
    )
