"""Stations that do as a script says: what execution must stand, without a process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from paribus.core import Benchmark, Command, Completed, MachineError, Parsed, Program, Selection
from paribus.launch.arms import Ready, compose
from paribus.launch.station import Lease, Station

Answer = Callable[[Path, Path], Completed]
"""Writes the two outputs of a launch and returns how it ended."""


def prints(text: str, wall_s: float = 0.01, exit_code: int = 0) -> Answer:
    """Return an answer that prints `text` on stdout."""

    def answer(out: Path, err: Path) -> Completed:
        out.write_text(text)
        err.write_text("")
        return Completed(exit_code, wall_s)

    return answer


def hangs(out: Path, err: Path) -> Completed:
    """Print half of what was wanted, until the time limit ends it."""
    out.write_text("2.5")
    err.write_text("")
    return Completed(-15, 10.0, timed_out=True)


class ScriptedStation:
    """Gives the nth launch of an arm the nth answer, the last one again and again.

    Arms are known by their variable ARM, none by "". A station that asks for facts hears nothing.
    """

    lease: Lease | None = None
    asleep: MachineError | None = None

    def __init__(self, folder: Path, **answers: list[Answer]) -> None:
        self.scratch = self.here = str(folder / "scratch")
        Path(self.scratch).mkdir()
        self.answers = answers
        self.launched: list[str] = []

    def __enter__(self) -> ScriptedStation:
        return self

    def __exit__(self, *_: object) -> None: ...

    def run(self, command: Command, *, stdout: str, stderr: str, **_: Any) -> Completed:
        if stdout.endswith("answers.out"):
            return Completed(0, 0.01)
        arm = command.env.get("ARM", "")
        answers = self.answers[arm]
        answer = answers[min(self.launched.count(arm), len(answers) - 1)]
        self.launched.append(arm)
        return answer(Path(stdout), Path(stderr))

    def cancel(self) -> None: ...

    def check_room(self, *others: str) -> None: ...


def launched(
    station: Station, command: Command, folder: Path, timeout_s: float, scratch: str = ""
) -> Completed:
    """Return how a command ended on a station, its output in the files out and err of a folder."""
    return station.run(
        command,
        stdout=str(folder / "out"),
        stderr=str(folder / "err"),
        timeout_s=timeout_s,
        scratch=scratch or f"{station.scratch}/launch",
    )


def launched_of(
    station: Station,
    program: Program,
    ready: Ready,
    folder: Path,
    timeout_s: float = 60.0,
    ranks: int = 1,
    **parameters: Any,
) -> Completed:
    """Return how a launch of a program in an arm ended, as if a benchmark had asked for it."""
    benchmark = Benchmark("own", "test", "", (), lambda _: program, lambda _text, _: Parsed(()))
    asked, scratch = Selection("own", "own", ranks, parameters), f"{station.scratch}/launch"
    command = compose(ready, asked, benchmark, seed=1, scratch=scratch)
    return launched(station, command, folder, timeout_s, scratch)
