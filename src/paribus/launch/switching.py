"""Switching the platform to an arm and back: its `before`, `observe` and `after` commands.

They are run through a station of their own, which ends them and all that they started when Paribus
is interrupted or killed, but leaves alone what a finished command keeps running in the background.
A journal remembers every switch, so that the next sitting switches back what a killed one did not.
The exit code of a command proves no switch: what `observe` prints is the level.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from paribus.core import (
    LEVEL,
    Arm,
    Command,
    Facts,
    LaunchError,
    ParibusError,
    Step,
    Study,
    UserError,
)
from paribus.designs import design_of
from paribus.launch.local import Captured, LocalStation
from paribus.launch.others import switched
from paribus.launch.station import Station
from paribus.launch.unswitched import Switching
from paribus.store import Store
from paribus.store.journal import Journal

LIMIT_S = 600.0
"""Seconds that a command which switches the platform may take."""

OUTPUT_BYTES = 1 << 20
"""Bytes that are read of the output of such a command; the logs have all of it."""

_FIX = (
    "continue with --resume when the command works; if the study file must change, run the study"
    " without --resume"
)

CONFUSED = "two arms had the same level"

LONGEST = 1000
"""The most characters of a level."""


class Switches(Switching):
    """Switches between the arms of a study by their commands. Use as a context manager.

    With a `journal` the next sitting knows of every switch; with `logs`, a directory, the output of
    the commands is kept there, in one file for each arm. `stations` are by name of an arm: hosts of
    an arm with `before` are waited for, and its commands may be run on them.
    """

    def __init__(
        self,
        study: Study,
        journal: Journal | None = None,
        logs: Path | None = None,
        stations: Mapping[str, Station] | None = None,
    ) -> None:
        self.study = study
        self.journal = journal
        self.logs = logs
        self.stations = stations or {}
        self.host = LocalStation()
        self._at: list[Arm] = []  # the arms that were switched to, and not back from
        self.levels: dict[str, str] = {}  # as observed, by arm
        self.confused: tuple[str, ...] = ()  # two arms that were found at the same level

    def __enter__(self) -> Switches:
        self.host.__enter__()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            # Needed, as an interruption may come at any place, also while `after` is run.
            self._revert_after(self._at[:], error)
        finally:
            self.host.__exit__(kind, error, trace)

    @property
    def scratch(self) -> tuple[str, ...]:
        return (self.host.scratch,)

    def apply(self, arm: Arm) -> None:
        self._at.append(arm)
        if self.journal and arm.after:
            self.journal.switch(arm.name)
        self._execute(arm, "before", arm.before)
        if arm.before and (station := switched(self.stations.get(arm.name))):
            station.wait(f"arms.{arm.name}.hosts")
        self._observe(arm)

    def remember(self, store: Store) -> None:
        if any(arm.observe for arm in self.study.arms):
            for one in store.launches(samples=False):
                if LEVEL in one.outcome.facts:
                    self.levels[one.launch.arm] = one.outcome.facts[LEVEL]

    def void_confused(self, store: Store) -> None:
        launches = (one.launch for one in store.launches(samples=False))
        store.void([one.number for one in launches if one.arm in self.confused], CONFUSED)

    def facts(self, arm: Arm) -> Facts:
        return {LEVEL: self.levels[arm.name]} if arm.observe else {}

    def fallen(self, arms: Sequence[Arm]) -> ParibusError | None:
        try:
            for arm in arms:
                self._observe(arm)
        except ParibusError as error:
            return error
        return None

    def _observe(self, arm: Arm) -> None:
        """Read the level of `arm` by its commands; raises ParibusError if it is a wrong one."""
        if not arm.observe:
            return
        seen = self._execute(arm, "observe", arm.observe).strip()
        if wrong := self._wrong(arm, seen):
            kept = f" (their output: logs/switch-{arm.name}.log)" if self.logs else ""
            raise ParibusError(
                wrong,
                place=f"arms.{arm.name}.observe: {'; '.join(map(str, arm.observe))}",
                fix=f"check `before` and `observe`{kept}, then continue with --resume",
            )
        self.levels[arm.name] = seen

    def _wrong(self, arm: Arm, seen: str) -> str:
        """Return a sentence on what is wrong with the level `seen` of `arm`, "" if nothing is."""
        if not 0 < len(seen) <= LONGEST:
            return f"printed {len(seen):,} characters; a level has 1 to {LONGEST:,}"
        if arm.level not in ("", seen):
            return f"the level is {seen!r}; the study requires level = {arm.level!r}"
        if (before := self.levels.get(arm.name, seen)) != seen:
            return f"the level is {seen!r}; it was {before!r}"
        for other in self.study.arms:
            if other.name == arm.name or self.levels.get(other.name) != seen:
                continue
            alike = (arm.before, arm.observe) == (other.before, other.observe)  # as stages are
            given = arm.level == other.level == seen
            if not alike and not given and (arm.before or other.before):
                self.confused = arm.name, other.name
                return f"the level is {seen!r}, as in {other.name}: nothing was switched"
        return ""

    def revert(self, arm: Arm) -> None:
        # The hosts are left only between sessions: between launches that would cost a login each.
        ends = arm.after or any(step.limit_s for step in arm.before)
        station = switched(self.stations.get(arm.name))
        if design_of(self.study).session and ends and station:
            station.leave()
        try:
            self._execute(arm, "after", arm.after)
        except ParibusError:
            self._forget(arm)
            raise
        # Nothing is forgotten when `after` is interrupted: it is run again on exit.
        if self.journal and arm.after:
            self.journal.revert(arm.name)
        self._forget(arm)

    def _forget(self, arm: Arm) -> None:
        self._at = [one for one in self._at if one is not arm]

    @contextmanager
    def at(self, arms: Sequence[Arm]) -> Iterator[None]:
        begun: list[Arm] = []
        try:
            for arm in arms:
                begun.append(arm)
                self.apply(arm)
            yield
        except BaseException as error:
            self._revert_after(begun, error)
            raise
        self._revert_after(begun, None)

    def restore(self) -> None:
        for name in self.journal.switched() if self.journal else ():
            for arm in self.study.arms:
                if arm.name == name:
                    self.revert(arm)

    def _revert_after(self, arms: Sequence[Arm], error: BaseException | None) -> None:
        """Switch back from all of `arms`; of several errors the first one is raised."""
        first: ParibusError | None = None
        for arm in reversed(arms):
            try:
                self.revert(arm)
            except ParibusError as problem:
                first = first or problem
        if first is None:
            return
        if isinstance(error, ParibusError):
            error.fix = f"{error.fix}; switching back failed too: {first}"
        else:
            raise first

    def _execute(self, arm: Arm, what: str, commands: Sequence[Step]) -> str:
        """Return what `commands` printed on stdout; raises ParibusError for one that fails."""
        printed = ""
        for step in commands:
            place = f"arms.{arm.name}.{what}: {step}"
            begin = time.monotonic()
            done = (self._on_host if step.on else self._here)(arm, step, place)
            if done.exit_code != 0 and step.limit_s:
                raise _not_switched(done, place)
            if done.exit_code != 0:
                last = (done.stderr or done.stdout).strip().splitlines()[-1:]
                late = time.monotonic() - begin >= LIMIT_S
                how = f"no end within {LIMIT_S:g} s" if late else ""
                raise ParibusError(
                    f"{how or f'exit code {done.exit_code}'}{': ' + last[0] if last else ''}",
                    place=place,
                    fix=_FIX,
                )
            printed += done.stdout
        return printed

    def _on_host(self, arm: Arm, step: Step, place: str) -> Captured:
        """Run a command on a host or a hypervisor of `arm`, and return how it ended."""
        from paribus.hosts.host_machine import HostMachine

        station = switched(self.stations.get(arm.name))
        assert station is not None
        try:
            done = HostMachine(station.host(step.on)).capture(step.argv, timeout_s=LIMIT_S)
        except UserError as error:
            raise ParibusError(error.cause, place=place, fix=error.fix) from error
        self._keep(arm, place, (done.stdout, done.stderr))
        return done

    def _here(self, arm: Arm, step: Step, place: str) -> Captured:
        """Run a command on this machine, and return how it ended; what it leaves running stays."""
        # Output goes to memory: a file might be on a file system that the command unmounts.
        with _Memory("out") as out, _Memory("err") as err:
            try:
                done = self.host.run(
                    Command(_words(step)),
                    stdout=out.path,
                    stderr=err.path,
                    timeout_s=step.limit_s or LIMIT_S,
                    scratch="",
                    cwd=os.getcwd(),  # noqa: PTH109 -- a text for the warden
                    stay=True,
                )
            except LaunchError as error:
                raise ParibusError(error.cause, place=place, fix=_FIX) from error
            finally:
                texts = out.read(), err.read()
                self._keep(arm, place, texts)
            return Captured(done.exit_code, *texts)

    def _keep(self, arm: Arm, place: str, texts: Sequence[str]) -> None:
        if self.logs is not None:
            self.logs.mkdir(exist_ok=True)
            with (self.logs / f"switch-{arm.name}.log").open("a") as file:
                file.write(f"$ {place}\n{''.join(texts)}")


def _words(step: Step) -> tuple[str, ...]:
    """Return the argv of a step; a command of Paribus itself is started by this Python."""
    return (sys.executable, "-m", *step.argv) if step.limit_s else step.argv


def _not_switched(done: Captured, place: str) -> ParibusError:
    """Return the error for a failed `paribus topology switch`: its cause, and how to go on."""
    try:
        result = json.loads(done.stdout)
    except ValueError:
        message = done.stderr.strip().rpartition("paribus: ")[2]
        return ParibusError(
            message or f"exit code {done.exit_code}",
            place=place,
            fix="when this is done, continue the study with --resume",
        )
    if result["continue"]:
        fix = f"look at the server, then `{result['continue']}`; then continue with --resume"
        return ParibusError(result["cause"], place=place, fix=fix)
    return ParibusError(
        f"{result['result']}, the server is {result['shape']}: {result['cause']}",
        place=place,
        fix="remove the cause, then continue with --resume",
    )


class _Memory:
    """A file in memory that another process can write to by its `path`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> _Memory:
        self._descriptor = os.memfd_create(self.name)
        self.path = f"/proc/{os.getpid()}/fd/{self._descriptor}"
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def read(self) -> str:
        """Return the first OUTPUT_BYTES of what was written."""
        return os.pread(self._descriptor, OUTPUT_BYTES, 0).decode(errors="replace")
