"""The interface by which the platform is switched between arms; here for arms without commands.

Where arms have commands (`before`, `after`, `observe`), switching.py is loaded and runs them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from paribus.core import Arm, Facts, ParibusError, Study
from paribus.launch.station import Station
from paribus.store import Store
from paribus.store.journal import Journal


class Switching:
    """Switches between arms without commands: does nothing. Use as a context manager."""

    def __enter__(self) -> Switching:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Switch back from the arm that the platform is switched to."""

    @property
    def scratch(self) -> tuple[str, ...]:
        """The scratch directory of the host that commands are run through, if there is one."""
        return ()

    def apply(self, arm: Arm) -> None:
        """Switch to `arm`; raises ParibusError for a command that fails, or for a wrong level."""

    def revert(self, arm: Arm) -> None:
        """Switch back from `arm`; raises ParibusError for a command that fails."""

    def at(self, arms: Sequence[Arm]) -> AbstractContextManager[None]:
        """Switch to `arms` for the context, and back after it, even if a switch to them fails."""
        return nullcontext()

    def restore(self) -> None:
        """Switch back from the arms at which a killed sitting left the platform."""

    def remember(self, store: Store) -> None:
        """Read the levels at which the launches that count in `store` were made."""

    def void_confused(self, store: Store) -> None:
        """Void all launches of arms that were found at the same level.

        One of them was never switched; which one is not known.
        """

    def facts(self, arm: Arm) -> Facts:
        """Return the level of `arm` as the fact LEVEL, none if the arm does not observe it."""
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
    """Return the Switching for the arms of `study`; arguments as those of switching.Switches."""
    if not any(arm.before or arm.after or arm.observe for arm in study.arms):
        return Switching()
    from paribus.launch.switching import Switches

    return Switches(study, journal, logs, stations)
