"""A job of a batch system, whichever that is: its state, its nodes, and when it ends."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Phase(Enum):
    """What a state means for a study. `WAITS` is also that of a state that nobody here knows."""

    WAITS = "waits"
    RUNS = "runs"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod of Kubernetes, which stands for the node that it is on."""

    node: str
    namespace: str
    name: str
    address: str


@dataclass(frozen=True, slots=True)
class Job:
    """One job as its scheduler describes it.

    `state` and `reason` are the scheduler's own words. `nodes` are in the order in which it lists
    them, and `ends_at` is in seconds since the epoch; both are only there while the job runs.
    `never`: the scheduler says that it will not start as it was asked for. `pods`: those of a
    running job of Kubernetes, one on each node, in the order of `nodes`.
    """

    ident: str
    name: str
    phase: Phase
    state: str
    reason: str = ""
    nodes: tuple[str, ...] = ()
    ends_at: float = 0.0
    never: bool = False
    pods: tuple[Pod, ...] = ()

    def __str__(self) -> str:
        return f"{self.state}: {self.reason}" if self.reason else self.state
