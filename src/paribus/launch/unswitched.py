"""Switching between arms: nothing is done where no commands are given, and nothing is loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from paribus.core import Arm, Facts, ParibusError, Study
from paribus.launch.station import Station
from paribus.store import Store
from paribus.store.journal import Journal


class Switching:
    """Between arms without commands: they are as they are. Use as a context manager."""

    def __enter__(self) -> Switching:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Switch back from what the platform is at."""

    @property
    def scratch(self) -> tuple[str, ...]:
        """The scratch directory of the host that commands are run through, if there is one."""
        return ()

    def apply(self, arm: Arm) -> None:
        """Switch to `arm`; raises ParibusError for a command that fails, or for a wrong level."""

    def revert(self, arm: Arm) -> None:
        """Switch back from `arm`; raises ParibusError for a command that fails."""

    def at(self, arms: Sequence[Arm]) -> AbstractContextManager[None]:
        """Switch to `arms` and in any case back, also from a switch that failed half-way."""
        return nullcontext()

    def restore(self) -> None:
        """Switch back from the arms that a killed sitting left the platform at."""

    def remember(self, store: Store) -> None:
        """Know the levels at which the launches that count in `store` were made."""

    def void_confused(self, store: Store) -> None:
        """Void all launches of arms that were found at one level: one of them was never switched.

        Which one is not known, unless the study gives the level of each.
        """

    def facts(self, arm: Arm) -> Facts:
        """Return the level of `arm` as a fact, none if the arm does not observe it."""
        return {}

    def fallen(self, arms: Sequence[Arm]) -> ParibusError | None:
        """Return the error of the first of `arms` that is no longer at its level, None if none."""
        return None


def switches_of(
    study: Study,
    journal: Journal | None = None,
    logs: Path | None = None,
    stations: Mapping[str, Station] | None = None,
) -> Switching:
    """Return what switches between the arms of `study`; see switching.Switches."""
    if not any(arm.before or arm.after or arm.observe for arm in study.arms):
        return Switching()
    from paribus.launch.switching import Switches

    return Switches(study, journal, logs, stations)
