"""Sentences about a switch of the PCIe topology: its plan, and how it ended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any


def plan_lines(plan: Any, shape: str, wanted: str, *, whole: bool) -> Iterator[str]:
    """Yield the lines that show a plan: its writes; `whole`: as requests, and how it is undone."""
    yield f"{shape} is to become {wanted}. In this order, each sent once:"
    for number, write in enumerate(plan.writes, 1):
        yield f"{number:3}  {write if whole else brief(write)}"
    if not whole:
        return
    yield "If this fails, what took effect is undone:"
    for number, write in enumerate(plan.backs, 1):
        yield f"{number:3}  {write}"


def brief(write: Any) -> str:
    """Return a write in one short line: its step, and what shows its effect."""
    check = write.check
    end = PurePosixPath(str(check.value)).name
    what = {"has": f"add {end}", "lacks": f"remove {end}", "is": f"{check.pointer[1:]} = {end}"}
    return f"{write.step}: {what.get(check.how) or write}"


def ended(how: str, host: str, shape: str, cause: str, command: str) -> str:
    """Return how a switch ended, as the last sentence about it."""
    if how == "already":
        return f"{host} is {shape} already: nothing was sent."
    if how == "switched":
        return f"{host} is {shape}: its operating system finds it, with all of its devices."
    if how == "rolled back":
        return (
            f"Rolled back: {host} is {shape} as before; its operating system finds it.\n  {cause}"
        )
    return (
        f"Stopped: {host} may be neither as before nor as wanted. Leave it drained.\n  {cause}\n"
        f"  Look at the server, then go on with: {command}"
    )
