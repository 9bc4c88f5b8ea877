"""Reading the keys of a TOML file: checked values, and errors that name the key, cause and fix.

`place.read("blocks", whole(6, 500), 60)` is the value of `blocks`, 60 if the key is absent; of
blocks = "many" the error says "plan.blocks = 'many': cannot be used", and "use a whole number ...".
A reader is a function from the value of a key to a checked one; it raises ValueError with the fix.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn, TypeVar

from paribus.core import Endpoint, StudyError, UserError, commandline, together, toml_text

ENDPOINTS: tuple[Endpoint, ...] = ("median", "p99", "p25", "min")

LONGEST = 300
"""The most characters of a refused key or value that an error shows."""

MOST_PROBLEMS = 20
"""The most problems of a file that are reported at once."""

T = TypeVar("T")


class Place:
    """A table in a TOML file: `path` names it ("plan", "arms.a"), "" for the file as a whole.

    With a list of `problems`, a value that is refused is noted there and its default taken, so
    that one reading of the file finds all of them; `finish` raises them together. Without, each
    refusal is raised at once.
    """

    def __init__(
        self, file: str, path: str, table: Any, problems: list[UserError] | None = None
    ) -> None:
        self.file = file
        self.path = path
        self.problems = problems
        if not isinstance(table, dict):
            self.refuse("", table, "is not a table", "write it as a table: [..] or { .. }")
        self.table: dict[str, Any] = table

    def refuse(self, key: str, value: Any, cause: str, fix: str) -> NoReturn:
        """Raise StudyError about `key`; its `value` is shown unless it is None."""
        where = cut(".".join(part for part in (self.path, key) if part))
        shown = "" if value is None else f" = {cut(repr(value))}"
        cause, fix = cut(cause), cut(fix)
        faults = {where: f"{cause}; {fix}"}
        raise StudyError(f"{where}{shown}: {cause}", place=self.file, fix=fix, faults=faults)

    def within(self, path: str, table: Any) -> Place:
        """Return another table of this file, whose problems are noted with those of this one."""
        return Place(self.file, path, table, self.problems)

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Note a UserError that the context raises, if problems are noted here."""
        try:
            yield
        except UserError as error:
            if self.problems is None:
                raise
            if not self.full:
                self.problems.append(error)

    @property
    def full(self) -> bool:
        """Whether so many problems are noted that no more would be reported."""
        return self.problems is not None and len(self.problems) >= MOST_PROBLEMS

    def finish(self) -> None:
        """Raise the problems that were noted: one as it is, several in one StudyError."""
        if self.problems:
            raise together(self.problems, self.file)

    def only(self, known: Iterable[str]) -> None:
        """Refuse each key that is not `known`, with the nearest one that is.

        The first one without a near one gets a list of all.
        """
        names = list(known)
        every = f"known: {', '.join(names)}"
        for key in self.table:
            if key not in names and not self.full:
                close = difflib.get_close_matches(key, names, n=1)
                hint = f"did you mean {close[0]!r}?" if close else every
                every = every if close else "remove it"
                with self.noting():
                    self.refuse(key, None, "unknown key", hint)

    def read(self, key: str, reader: Callable[[Any], T], default: T) -> T:
        """Return what `reader` makes of a key, `default` without it or where that was noted."""
        with self.noting():
            return self.need(key, reader, "") if key in self.table else default
        return default

    def need(self, key: str, reader: Callable[[Any], T], example: str) -> T:
        """Return what `reader` makes of a key; raises StudyError, `example` being the fix."""
        if key not in self.table:
            self.refuse(key, None, "is missing", f"add a line such as: {example}")
        try:
            return reader(self.table[key])
        except ValueError as error:
            value, fix = self.table[key], cut(str(error))
            if isinstance(value, dict):  # not shown: there may be a password in it
                value, fix = None, f"write [[{key}]]: a list" if reader is items else fix
            self.refuse(key, value, "cannot be used", fix)


def cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} [cut]"


# Readers: each returns the checked value of a key, or raises ValueError with the fix.


def text(value: Any) -> str:
    """Return a text that is not blank."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError('write a text in quotes, such as "..."')
    return value


def texts(value: Any) -> tuple[str, ...]:
    """Return a list of texts."""
    return tuple(text(item) for item in items(value))


def endpoints(value: Any) -> tuple[Endpoint, ...]:
    """Return endpoints, of which the first decides: a name of ENDPOINTS, or a list of them."""
    names = texts([value] if isinstance(value, str) else value)
    if not names or len(set(names)) < len(names) or not set(names) <= set(ENDPOINTS):
        raise ValueError(f"list some of {', '.join(ENDPOINTS)}; the first decides")
    return names  # type: ignore[return-value]


def items(value: Any) -> list[Any]:
    """Return a list of any values."""
    if not isinstance(value, list):
        raise ValueError("write a list: [...]")
    return value


def table(value: Any) -> dict[str, Any]:
    """Return a table."""
    if not isinstance(value, dict):
        raise ValueError("write a table")
    return value


def environment(value: Any) -> Mapping[str, str]:
    """Return environment variables by name."""
    for key, one in table(value).items():
        if not isinstance(one, str):
            raise ValueError(f'write the value of {key} as text: {key} = "{one}"')
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", key) or "\0" in one:
            raise ValueError(f"{key!r} cannot be an environment variable")
    return dict(value)


def commands(value: Any) -> tuple[tuple[str, ...], ...]:
    """Return commands, given as one text or a list of texts, each as `command` returns it."""
    return tuple(map(command, [value] if isinstance(value, str) else items(value)))


def command(value: Any) -> tuple[str, ...]:
    """Return the words of a command that is given as one text; no shell will run it."""
    try:
        return commandline.split(text(value))
    except commandline.NotSplitError as error:
        fix = f"{error}: {error.fix or f'write {toml_text(error.shell)}'}"
        if cut(fix) != fix:  # a command that is cut is no advice
            fix = f"{error}: put it into a script"
        raise ValueError(fix) from None


def confidence(value: Any) -> float:
    """Return a confidence for which the looks are calibrated."""
    if value not in (0.90, 0.95, 0.99):
        raise ValueError("use 0.90, 0.95 or 0.99: the looks are calibrated for these")
    return float(value)


def one_of(*words: Any) -> Callable[[Any], Any]:
    """Return a reader of one of `words`; 1 is not true."""

    def read(value: Any) -> Any:
        if (type(value), value) not in ((type(word), word) for word in words):
            raise ValueError(f"use one of {', '.join(map(json.dumps, words))}")
        return value

    return read


def whole(low: int, high: int) -> Callable[[Any], int]:
    """Return a reader of whole numbers from `low` to `high`."""

    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError(f"use a whole number from {low} to {high}")
        return value

    return read
