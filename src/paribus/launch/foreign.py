"""Refusing to resume studies that this user did not begin: that executes their author's commands.

Nothing in a study directory proves who began it, as its author may have written anything there. So
plan/begun.py notes it elsewhere.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Any

from paribus.border import printable, read_toml, why_not
from paribus.core import Step, Study, StudyError, UserError
from paribus.plan import Plan
from paribus.plan.begun import entry_of

SHOWN = 32
"""Digits of a plan's hash that --trust needs: nobody can make two plans that share 128 bits."""


class ForeignError(UserError):
    """A study that this user neither began nor trusts was to be run."""


def check_trusted(plan: Plan, file: Path, directory: Path, trusted: str) -> None:
    """Raise ForeignError for a study that this user did not begin with the study file `file`.

    `trusted` is the value of --trust: the beginning of the plan's hash, or "". For a trusted plan,
    raises StudyError if a benchmark file is not the one that the plan was frozen with.
    """
    if not (reason := _why_foreign(plan, file)):
        return
    if len(trusted) < SHOWN or not plan.sha256.startswith(trusted):
        raise ForeignError(
            f"{reason}: to run it executes its author's commands",
            place=str(directory),
            fix="read them: a terminal shows them, and plan.json holds them; then"
            f" add --trust {plan.sha256[:SHOWN]}",
        )
    _check_files(plan, file)


def executed(study: Study) -> list[tuple[str, str]]:
    """Return the place and value of every text in the arms and benchmarks of a study.

    Each can lead to code: commands, programs, variables, images, options and files. Values that
    are the default are left out.
    """
    rows = [
        row
        for kind, every in (("arms", study.arms), ("benchmarks", study.benchmarks))
        for number, one in enumerate(every)
        for row in _texts(f"{kind}[{number}]", one)
    ]
    return [(printable(at), printable(text)) for at, text in rows]


def _texts(at: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield at, value
    elif isinstance(value, Step):
        yield f"{at} on {value.on}" if value.on else at, shlex.join(value.argv)
    elif is_dataclass(value):
        for field in fields(value):
            if getattr(value, field.name) != _default(field):
                yield from _texts(f"{at}.{field.name}", getattr(value, field.name))
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from _texts(f"{at}.{key}", one)
    elif isinstance(value, list | tuple):
        if value and all(isinstance(one, str) for one in value):
            yield at, shlex.join(value)
        else:
            for one in value:
                yield from _texts(at, one)


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _why_foreign(plan: Plan, file: Path) -> str:
    """Return a clause on why a study is not known as this user's, "" if it is."""
    foreign = "is not known as begun by this user"
    try:
        entry = entry_of(plan, file)
        if entry.is_file():
            return f"{foreign} ({reason})" if (reason := why_not(entry)) else ""
    except (OSError, RuntimeError):
        pass
    return foreign


def _check_files(plan: Plan, file: Path) -> None:
    """Raise StudyError for a benchmark file that is not of the plan: to load one executes it."""
    from paribus.benchmarks.files import file_digest

    known = {one.file_sha256 for one in plan.study.benchmarks}
    try:
        tables = read_toml(file, "a study file").get("benchmarks")
    except (OSError, ValueError):
        return  # load_study says why it cannot be read
    for table in tables if isinstance(tables, list) else ():
        named = table.get("file") if isinstance(table, dict) else None
        if isinstance(named, str) and file_digest(file.parent / named) not in known:
            raise StudyError(
                "is not the benchmark file that the plan was frozen with",
                place=str(file.parent / named),
                fix="put that file back, or run the study anew in another directory",
            )
