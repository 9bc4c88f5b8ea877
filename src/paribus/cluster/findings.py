"""What a check found: data that a terminal, a report and a program read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Grade = Literal["broken", "warning", "information", "ok"]
GRADES: tuple[Grade, ...] = ("broken", "warning", "information", "ok")
"""The worst first."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing about the cluster: the check, its grade, what was found and what fixes it.

    "broken": MPI launches would fail, hang or be invalid. "warning": they may, or figures suffer.
    "information": good to know. `nodes` are those concerned, none for all. `fix` is a command or a
    sentence.
    """

    check: str
    grade: Grade
    cause: str
    nodes: tuple[str, ...] = ()
    fix: str = ""


def worst_first(findings: list[Finding]) -> tuple[Finding, ...]:
    """Return the findings by grade, those of a grade in the order in which they were made."""
    return tuple(sorted(findings, key=lambda one: GRADES.index(one.grade)))
