"""The errors that Paribus raises on purpose.

ParibusError            cause, place, next step; exit code of the command line
|-- UserError           the study, an argument or the machine must be changed (exit 2)
|   |-- StudyError      a study file says something that cannot be done
|   |-- StoreError      a study directory cannot be used
|   |-- UnequalError    the arms are not what the study says, so it is not measured (exit 3)
|   `-- MachineError    the measuring machine lacks something; no arm is to blame
|       `-- AllocationError   the scheduler ended an allocation; the study goes on in another
|           `-- ShareError    the plan has the next block in another allocation
`-- LaunchError         one launch gave nothing usable; the study goes on
    |-- HostError       a host failed meanwhile and is there again; no arm is to blame
    `-- ParseError      what a program printed is not what success prints
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

INTERRUPTED = 130
READER_LEFT = 141
"""What a shell says of a program that SIGPIPE ended, 128 + 13, as its reader wanted no more."""


def exit_code(error: BaseException) -> int:
    """Return the exit code of a verb that ends by `error`; never 1, which is that of --fail-on."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, BrokenPipeError):
        return READER_LEFT
    return error.exit_code if isinstance(error, ParibusError) else ParibusError.exit_code


class ParibusError(Exception):
    """An error a user can act on: what happened, where, and what to do about it."""

    exit_code = 2

    def __init__(self, cause: str, *, place: str = "", fix: str = "") -> None:
        super().__init__(cause)
        self.cause = cause
        self.place = place
        self.fix = fix

    def __str__(self) -> str:
        text = f"{self.place}: {self.cause}" if self.place else self.cause
        return f"{text}\n  {self.fix}" if self.fix else text


class UserError(ParibusError):
    """The study, an argument or the machine must be changed first."""


class StudyError(UserError):
    """A study file says something that cannot be done; names file, key, value and fix.

    `faults` has for each key what is wrong and what to do, for a form that shows it at its field.
    """

    def __init__(
        self, cause: str, *, place: str = "", fix: str = "", faults: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(cause, place=place, fix=fix)
        self.faults = faults or {}


def together(problems: Sequence[UserError], place: str) -> UserError:
    """Return one problem as it is, several as one error of the study file `place`."""
    if len(problems) == 1:
        return problems[0]
    reported, faults = [], dict[str, str]()
    for one in problems:
        where = "" if one.place == place else f"{one.place}: "
        reported.append(f"\n  {where}{one.cause}\n    {one.fix}")
        faults |= one.faults if isinstance(one, StudyError) else {}
    cause = f"{len(reported)} problems{''.join(reported)}"
    return StudyError(cause, place=place, fix="fix them, then try again", faults=faults)


class StoreError(UserError):
    """A study directory cannot be used as it is."""


class UnequalError(UserError):
    """The arms differ in more than the factor, or in nothing at all."""

    exit_code = 3


class MachineError(UserError):
    """The measuring machine lacks what a launch needs (space, descriptors): no arm is to blame."""


class AllocationError(MachineError):
    """The scheduler ended an allocation, or its time is up: the study goes on in another one."""


class ShareError(AllocationError):
    """An allocation has had its share of the blocks: the plan has the next one in another."""


class LaunchError(ParibusError):
    """One launch gave nothing usable."""

    exit_code = 4


class HostError(LaunchError):
    """A host failed in mid-launch and is there again; no arm is to blame."""


class ParseError(LaunchError):
    """What a program printed is not what success prints.

    `line` is the 1-based number of the offending line, 0 when no single line is to blame. `alone`:
    as if each rank had started by itself: several outputs in one, or that of one rank. `form`: the
    launch did what it was asked for, but in a form that no reader understands.
    """

    def __init__(
        self,
        cause: str,
        *,
        line: int = 0,
        place: str = "",
        fix: str = "",
        alone: bool = False,
        form: bool = False,
    ) -> None:
        super().__init__(cause, place=place, fix=fix)
        self.line = line
        self.alone = alone
        self.form = form
