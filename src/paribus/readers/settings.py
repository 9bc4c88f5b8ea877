"""What an output says of how it was measured: each setting by its name, sorted by settings.toml.

A setting is a key (another value is another benchmark), without effect on the figures (by a row
that says why), or a fact of the arm: what no row of the table names is held to be a fact, so that
nothing that a tool prints is passed over without a word.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

from paribus.readers.text import HEAD

PRINTED = "printed."
"""Facts under this prefix, and the name of the tool's file, are settings that an output shows."""

LINES = "lines"
"""The setting that holds the lines which are no `name: value`."""

LONGEST = 400
"""Characters of a line that are looked at, and of a value that are kept."""

MOST = 400
"""Settings of one output that are kept: more is a table that no row of ours names."""

_SEVERAL = re.compile(
    r"\t+(?![ ]*[:=])|[ ]{2,}(?=[A-Za-z][\w /.()-]{0,40}?[ ]*[:=][ ])|,[ ](?=[a-z_]+=)"
)
_PAIR = re.compile(r"([A-Za-z_(][\w ./()\[\]%*+&'<>,-]{0,60}?)[ ]*[:=]+[ ]*(\S.*)?")
_BARE = r"[-=#*+|_~.:\s]*|-?\d[\d.,eE%+-]*(?:[ \t|,]+\S+)*"
"""Rules, and rows that begin with a number: tables are the business of the readers."""


_RESULT = re.compile(
    r"(?<![\d.])\d+\.\d+(?![\d]*\.\d)|\d %|\d%|\b\d{1,2}:\d\d:\d\d\b|\d{4}-\d\d-\d\d"
)
"""What is in figures of a run, and in dates."""


class Silent(NamedTuple):
    """Lines that do not matter, and why."""

    lines: str
    why: str


class Pairs(NamedTuple):
    """Lines that hold several settings, and how each is found in them: its name, if not `name`."""

    lines: re.Pattern[str]
    pair: re.Pattern[str]
    name: str


class Table(NamedTuple):
    """How the settings of the outputs of one file of readers are sorted.

    `keys`, `facts` and `known` match whole names, or lines without one; `settled` whole lines,
    `nothing` those that do not matter. `command` matches a line that echoes a command.
    """

    keys: re.Pattern[str]
    facts: re.Pattern[str]
    known: re.Pattern[str]
    settled: re.Pattern[str]
    nothing: tuple[Silent, ...]
    pairs: tuple[Pairs, ...]
    command: re.Pattern[str] | None


class Printed(NamedTuple):
    """The settings that an output shows: keys and facts, by name."""

    keys: Mapping[str, str] = {}
    facts: Mapping[str, str] = {}


NOTHING_PRINTED = Printed()
_NONE = r"(?!)"


@cache
def tables() -> Mapping[str, Table]:
    """Return the table of every file of readers that has one, and of every harness."""
    text = files("paribus.readers").joinpath("settings.toml").read_text(encoding="utf-8")
    every = tomllib.loads(text)
    common = every.pop("all")["nothing"]
    return {name: _table(entry, common) for name, entry in every.items()}


def _table(entry: Mapping[str, Any], common: Sequence[Mapping[str, Any]]) -> Table:
    rows = entry.get("nothing", ())
    cut = (row["lines"] for row in (*rows, *(row for row in common if row.get("cut"))))
    lines = _any((_BARE, *entry.get("read", ()), *cut))
    command = entry.get("command")
    return Table(
        re.compile(_any(entry.get("keys", ()))),
        re.compile(_any(entry.get("facts", ()))),
        re.compile(_any(entry.get("known", ()))),
        re.compile(rf"^[ \t#]*+(?:{lines})[ \t]*$\n?", re.M),
        tuple(Silent(row["lines"], row["why"]) for row in (*rows, *common)),
        tuple(
            Pairs(
                re.compile(rf"^[ \t#]*+{one['lines']}$", re.M),
                re.compile(one["pair"]),
                one.get("name", ""),
            )
            for one in entry.get("pairs", ())
        ),
        re.compile(rf"^[ \t#]*{command}$", re.M) if command else None,
    )


def _any(patterns: Iterable[str]) -> str:
    return "|".join(f"(?:{one})" for one in patterns) or _NONE


def printed(file: str, text: str) -> Printed:
    """Return the settings that an output shows whose reader is in `file`.

    Of a long output the first 64 KiB count: tools print their settings before their figures.
    """
    table = tables().get(file)
    if table is None:
        return NOTHING_PRINTED
    tree, lines = _lines(text)
    more = [] if tree else [*_more(table, lines)]
    return _sorted(file, table.settled.sub("", lines), tuple(more), tree)


def matters_not(file: str, line: str) -> bool:
    """Return whether a row of the table of `file` says that a line does not matter."""
    table = tables().get(file)
    return table is not None and _silent(file).fullmatch(line.strip(" \t#")) is not None


@cache
def _silent(file: str) -> re.Pattern[str]:
    return re.compile(_any(one.lines for one in tables()[file].nothing))


def _lines(text: str) -> tuple[bool, str]:
    """Return an output as lines: JSON, which is a tree, with each value under its path."""
    start = text.find("{")
    if start >= 0 and not text[:start].strip():
        try:
            return True, "\n".join(_flat(json.JSONDecoder().raw_decode(text, start)[0], ""))
        except (ValueError, RecursionError):
            return True, ""
    return False, text[:HEAD]


def _flat(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for inner in value[:64]:
            yield from _flat(inner, path)
    else:
        said = value if isinstance(value, str) else json.dumps(value)
        yield f"{path} = {' '.join(said.split())[:LONGEST]}"


def _more(table: Table, lines: str) -> Iterator[tuple[str, str]]:
    """Yield the settings of lines that hold several, and of commands that are echoed."""
    for one in table.pairs:
        for found in one.lines.finditer(lines):
            for said in one.pair.finditer(found[0]):
                name, value = (one.name, said[1]) if one.name else (said[1], said[2])
                yield name, value.strip() or "yes"
    if table.command is not None and (echoed := table.command.search(lines)):
        yield from _options(echoed[1])


def _options(command: str) -> Iterator[tuple[str, str]]:
    """Yield the options of a command by name, each with the word after it if that is its value."""
    words = [word.strip("'\"") for word in command.split()]
    for word, after in zip(words, [*words[1:], "-"], strict=True):
        if len(word) > 1 and word[0] == "-" and not word[1].isdigit():
            yield f"option {word}", "yes" if after.startswith("-") else after


@lru_cache(maxsize=512)
def _sorted(file: str, rest: str, more: tuple[tuple[str, str], ...], tree: bool) -> Printed:
    """Return settings by name from what is left of a text: outputs of a folder have the same."""
    table = tables()[file]
    found: dict[str, list[str]] = {}
    for name, value in (*more, *_settings(rest)):
        if name in found or len(found) < MOST:
            found.setdefault(name, []).append(value)
    keys: dict[str, str] = {}
    facts: dict[str, str] = {}
    for name, values in found.items():
        if table.known.fullmatch(name):
            continue
        once = dict.fromkeys(values)
        if name == LINES:
            keys |= {line: "yes" for line in once if table.keys.fullmatch(line)}
            once = {line: None for line in once if line not in keys and _tells(table, line, line)}
            if once:
                facts[f"{PRINTED}{file}.{LINES}"] = "\n".join(once)
        elif table.keys.fullmatch(name):
            keys[name.rpartition(".")[2] if tree else name] = ", ".join(once)
        elif _tells(table, name, text := ", ".join(once)):
            facts[f"{PRINTED}{file}.{name}"] = text
    return Printed(keys, facts)


def _tells(table: Table, name: str, text: str) -> bool:
    """Return whether a setting is a fact: what has a fraction or a time in it is a result."""
    return table.facts.fullmatch(name) is not None or not _RESULT.search(text)


def _settings(rest: str) -> Iterator[tuple[str, str]]:
    """Yield the settings in lines by name; a line itself where it has none."""
    for whole in rest.split("\n"):
        line = whole[:LONGEST].strip(" \t#|")
        if not line:
            continue
        parts = [part for part in _SEVERAL.split(line) if part.strip()]
        pairs = [_PAIR.fullmatch(part.strip()) for part in parts]
        if all(pairs):
            for pair in pairs:
                if pair is not None:
                    yield " ".join(pair[1].split()), " ".join((pair[2] or "").split())
        else:
            yield LINES, " ".join(line.split())
