"""How the emulated BMC goes wrong on purpose: which write, and in which way."""

from __future__ import annotations

from dataclasses import dataclass

FAULTS = {
    "hang-before": "takes the request and never answers; nothing happens",
    "hang-after": "does it and never answers",
    "reset-before": "resets the connection; nothing happens",
    "reset-after": "does it and resets the connection",
    "half": "answers success and shows it, but the switch does not follow",
    "lie": "answers success; nothing happens",
    "late": "answers 202, and does it a moment later than its task says",
    "exception": "its task ends in Exception; nothing happens",
    "exception-after": "does it, and its task ends in Exception",
    "lost-task": "does it, and forgets the task",
    "endless-task": "its task never ends; nothing happens",
    "unauthorized": "has forgotten the session",
    "busy": "503 with Retry-After; nothing happens",
    "busy-after": "does it and answers 503 with Retry-After",
    "error": "500; nothing happens",
    "error-after": "does it and answers 500",
    "conflict": "409; nothing happens",
    "stale": "somebody else has touched the resource: its ETag is another",
    "skew": "does it; its clock has moved by a year",
    "html": "does it and answers a web page",
    "huge": "does it and answers 10 MB of JSON",
    "deep": "does it and answers JSON of 100,000 levels",
    "redirect": "does it and redirects to another host",
    "cut": "does it and ends the connection in mid-answer",
    "not-json": "does it and answers what is not JSON",
    "elsewhere": "does it; its task is on another host",
}
"""Each fault, and what the BMC does with the write that it strikes."""

BEFORE = {
    *("hang-before", "reset-before", "lie", "exception", "endless-task", "unauthorized"),
    *("busy", "error", "conflict", "stale"),
}
"""Faults with which the write has no effect."""


@dataclass(slots=True)
class FaultPlan:
    """The faults by the number of the write that each strikes; writes are counted from 1.

    A write is a POST, PATCH or DELETE that changes the server: sessions and accounts do not count.
    """

    at: dict[int, str]
    writes: int = 0

    def next(self) -> str:
        """Return the fault of the write that has come, "" for none."""
        self.writes += 1
        return self.at.get(self.writes, "")


def parse_faults(texts: list[str]) -> dict[int, str]:
    """Return the plan that texts such as "3=hang-after" give; raises ValueError for others."""
    plan = {}
    for text in texts:
        number, _, fault = text.partition("=")
        if not number.isdecimal() or not int(number) or fault not in FAULTS:
            raise ValueError(f"{text!r}: write N=FAULT, such as 3=hang-after")
        plan[int(number)] = fault
    return plan
