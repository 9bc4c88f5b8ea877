"""What the layers of a study predict for an application, by its profile."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Weighed:
    """A part of an application's time (design.PARTS), its `share`, and the kinds that it is of.

    The ratio of times is None where the study has no interval for all of these kinds.
    """

    part: str
    share: float
    kinds: tuple[str, ...]
    ratio: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Prediction:
    """What an arm's layers predict for an application: the ratio of its times, never measured.

    Without a `word` a part has no interval, and the ratio is the one if that part stays as it is.
    `level` is the least confidence; `programs` are those of the study if it starts others.
    """

    arm: str
    application: str
    command: str
    parts: tuple[Weighed, ...]
    ratio: float
    low: float
    high: float
    level: float
    word: str | None
    programs: tuple[str, ...] = ()

    @property
    def unmeasured(self) -> tuple[Weighed, ...]:
        return tuple(part for part in self.parts if part.ratio is None)
