"""How the emulated BMC goes wrong on purpose: which write, and in which way.

`--fault 3=hang-after`, for example, makes its third write take effect and stay without an answer.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """What the BMC does with the write that it strikes.

    `means` says it for people. `does`: whether the write takes effect; `status`: that of HTTP with
    which it then fails, 0 for none; `task`: the state in which its task ends, "" where only a slow
    write has a task.
    """

    means: str
    does: bool = True
    status: int = 0
    task: str = ""


FAULTS = {  # by name, as --fault takes it
    "hang-before": Fault("takes the request and never answers; nothing happens", does=False),
    "hang-after": Fault("does it and never answers"),
    "reset-before": Fault("resets the connection; nothing happens", does=False),
    "reset-after": Fault("does it and resets the connection"),
    "half": Fault("answers success and shows it, but the switch does not follow"),
    "lie": Fault("answers success; nothing happens", does=False),
    "late": Fault("answers 202, and does it a moment later than its task says", task="Completed"),
    "exception": Fault("its task ends in Exception; nothing happens", does=False, task="Exception"),
    "exception-after": Fault("does it, and its task ends in Exception", task="Exception"),
    "lost-task": Fault("does it, and forgets the task", task="Completed"),
    "endless-task": Fault("its task never ends; nothing happens", does=False, task="Completed"),
    "unauthorized": Fault("has forgotten the session", does=False),
    "busy": Fault("503 with Retry-After; nothing happens", does=False, status=503),
    "busy-after": Fault("does it and answers 503 with Retry-After", status=503),
    "error": Fault("500; nothing happens", does=False, status=500),
    "error-after": Fault("does it and answers 500", status=500),
    "conflict": Fault("409; nothing happens", does=False, status=409),
    "stale": Fault("somebody else has touched the resource: its ETag is another", does=False),
    "skew": Fault("does it; its clock has moved by a year"),
    "html": Fault("does it and answers a web page"),
    "huge": Fault("does it and answers 10 MB of JSON"),
    "deep": Fault("does it and answers JSON of 100,000 levels"),
    "redirect": Fault("does it and redirects to another host"),
    "cut": Fault("does it and ends the connection in mid-answer"),
    "not-json": Fault("does it and answers what is not JSON"),
    "elsewhere": Fault("does it; its task is on another host", task="Completed"),
}


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
    """Return faults by number of write, from "3=hang-after"; raises ValueError for other texts.

    >>> parse_faults(["3=hang-after", "5=lie"])
    {3: 'hang-after', 5: 'lie'}
    """
    plan = {}
    for text in texts:
        number, _, fault = text.partition("=")
        if not number.isdecimal() or not int(number) or fault not in FAULTS:
            raise ValueError(f"{text!r}: write N=FAULT, such as 3=hang-after")
        plan[int(number)] = fault
    return plan
