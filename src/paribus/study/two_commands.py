"""The study file of the verb ab: two commands of a shell line as the two arms of a study."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from paribus.errors import UserError

_QUOTED = re.compile(r"""\\.|'[^']*'|"(?:\\.|[^"\\$`])*\"""", re.DOTALL)
_SHELL = re.compile(r"[|&;<>()`*?]|\$[\w({]|(?:^|\s)~")
_VARIABLE = re.compile(r"\s*\w+=")

HEAD = """\
# Written by the verb ab of Paribus. To change something, edit it, then: paribus run FILE
"""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two: the name of its arm, its words, its variables."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)


def split(text: str, place: str) -> tuple[str, ...]:
    """Return the words of a command line, as a shell splits it.

    Raises UserError, which names `place`, for no words and for what only a shell understands.
    """
    inner = f"sh -c {shlex.quote(text)}"
    outer = shlex.quote(inner) if re.search(r'["$`\\]', inner) else f'"{inner}"'
    fix = f"start a shell yourself: {place} {outer}"
    try:
        text.encode()
        words = tuple(shlex.split(text))
    except UnicodeEncodeError:
        raise UserError("is not UTF-8", place=place, fix="put it into a script") from None
    except ValueError:
        cause = "has a quotation mark without its counterpart"
        raise UserError(cause, place=f"{place} {text}", fix="close it") from None
    bare = _QUOTED.sub("", text)
    if found := _SHELL.search(bare):
        cause = f"{found[0].strip()!r} is for a shell, and none is started"
        raise UserError(cause, place=f"{place} {text}", fix=fix)
    if found := _VARIABLE.match(bare):
        env = f"use {place}-env {found[0].strip()}..., or {fix}"
        cause = f"{found[0].strip()!r} is for a shell, and none is started"
        raise UserError(cause, place=f"{place} {text}", fix=env)
    if not words or not words[0]:
        raise UserError("names no command", place=place, fix=f"write {place} './solver -n 4'")
    return words


def environment(texts: Sequence[str], place: str) -> dict[str, str]:
    """Return variables of texts such as X=1; raises UserError for one without a name or "="."""
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
    """Return the text of a study of `sides`, the first the reference.

    `setup` is a command before each launch; `benchmark` and `plan` are keys of these tables, those
    without a value left out. The factor is what differs: the command, else its variables.
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


def toml_list(words: Sequence[str]) -> str:
    """Return a list of texts as TOML has it."""
    return f"[{', '.join(map(toml_text, words))}]"


def toml_key(name: str) -> str:
    """Return a key as TOML has it."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_text(name)


def toml_text(text: str) -> str:
    """Return a text as TOML has it: as JSON does, but for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
