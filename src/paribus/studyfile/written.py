"""Writing a study file for two commands that were given as arguments (`paribus ab`).

It is written to ab.toml, or ab-2.toml and so on: never over a file that is there.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count, takewhile
from pathlib import Path

from paribus.border import as_error, exists
from paribus.core import StudyError, UserError, commandline, toml_key, toml_list, toml_text

HEAD = """\
# Written by the verb ab of Paribus. To change something, edit it, then: paribus run FILE
"""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two commands: the name of its arm, its words, its environment variables."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)


def split(text: str, place: str) -> tuple[str, ...]:
    """Return the words of a command that the option `place` ("--a") gives as one text.

    Raises UserError, which names the option, for what `commandline.split` refuses.
    """
    try:
        return commandline.split(text)
    except commandline.NotSplitError as error:
        quoted = f'"{error.shell}"'
        if re.search(r'["$`\\!]', error.shell):
            quoted = shlex.quote(error.shell)
        fix = error.fix or f"start a shell yourself: {place} {quoted}"
        if error.variable:
            fix = f"use {place}-env {error.variable}..., or {fix}"
        raise UserError(str(error), place=f"{place} {text}".rstrip(), fix=fix) from None


def environment(texts: Sequence[str], place: str) -> dict[str, str]:
    """Return variables by name from `texts` such as X=1, which the option `place` gives.

    Raises UserError for one without a name or "=".
    """
    found = {}
    for text in texts:
        name, given, value = text.partition("=")
        if not (name and given):
            raise UserError("sets no variable", place=f"{place} {text}", fix=f"write {place} X=1")
        found[name] = value
    return found


def study_file(
    sides: tuple[Side, Side],
    *,
    setup: Sequence[str] = (),
    benchmark: Mapping[str, str | int | None],
    plan: Mapping[str, str | int | None],
) -> str:
    """Return the text of a study file that compares `sides`, the first being the reference.

    `setup` is a command before each launch; `benchmark` and `plan` are keys of these tables (None:
    left out). The factor is "command" where the commands differ, else "env", their variables.
    """
    a, b = sides
    factor = "command" if a.argv != b.argv else "env" if a.env != b.env else "nothing"
    lines = [
        HEAD,
        f"question = {toml_text(f'How does {b.name} compare with {a.name}?')}",
        f"factor = {toml_text(factor)}",
    ]
    if factor == "command" and a.env != b.env:
        lines.append('explains = ["env."]  # the sides have variables of their own')
    for side in sides:
        lines += ["", f"[arms.{toml_key(side.name)}]", f"argv = {toml_list(side.argv)}"]
        if side.env:
            each = ", ".join(
                f"{toml_key(name)} = {toml_text(one)}" for name, one in side.env.items()
            )
            lines.append(f"env = {{ {each} }}")
        if setup:
            lines.append(f"before = {toml_list([shlex.join(setup)])}")
    lines += ["", "[[benchmarks]]", 'name = "command"', *_keys(benchmark)]
    if any(one is not None for one in plan.values()):
        lines += ["", "[plan]", *_keys(plan)]
    return "\n".join(lines) + "\n"


def _keys(table: Mapping[str, str | int | None]) -> list[str]:
    return [
        f"{key} = {toml_text(one) if isinstance(one, str) else one}"
        for key, one in table.items()
        if one is not None
    ]


def write_study(text: str, stem: Path, *, with_directory: bool = False) -> Path:
    """Write a study file and return its path: STEM.toml, or STEM-2.toml and so on if taken.

    With `with_directory`, a path is taken if STEM.study is there too. Raises StudyError if it
    cannot be written.
    """
    for path in _names(stem):
        if exists(path) or (with_directory and exists(path.with_suffix(".study"))):
            continue
        try:
            written = text.encode()  # before there is a file
            with path.open("xb") as file:
                file.write(written)
        except FileExistsError:
            continue
        except (OSError, ValueError) as error:
            with suppress(OSError, ValueError):
                path.unlink()  # a part of it, if the disk is full
            cause = getattr(error, "strerror", None) or error
            other = "choose another name, or another directory"
            fix = "write it in UTF-8" if isinstance(error, UnicodeError) else other
            raise StudyError(f"cannot be written: {cause}", place=str(path), fix=fix) from error
        return path
    raise AssertionError("count() has no end")


def last_study(stem: Path) -> Path | None:
    """Return the file that `write_study` wrote last for `stem`, None if there is none."""
    taken = list(takewhile(exists, _names(stem)))
    return taken[-1] if taken else None


def _names(stem: Path) -> Iterator[Path]:
    yield stem.with_name(f"{stem.name}.toml")
    yield from (stem.with_name(f"{stem.name}-{number}.toml") for number in count(2))


def made_directory(directory: Path) -> None:
    """Make the study directory if it is missing; raises UserError if it cannot be made."""
    fix = "choose another directory with --out"
    with as_error(UserError, directory, fix, "cannot be created"):
        directory.mkdir(parents=True, exist_ok=True)
