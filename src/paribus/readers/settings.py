"""The settings that an output prints, such as "Number of threads: 4", sorted by settings.toml.

That table says which setting is a key (another value is another benchmark), and which does not
matter, with the reason. What it does not name is a fact of the arm, so that nothing that a tool
prints is ignored in silence.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Literal, NamedTuple

from paribus.core import ParseError
from paribus.readers.heads import Head
from paribus.readers.json import decoded
from paribus.readers.known import every, file_of
from paribus.readers.text import HEAD

PRINTED = "printed."
"""Prefix of facts that an output prints; behind it stands the name of its reader's file."""

LINES = "lines"
"""The name of the fact that holds the lines which are no `name: value`."""

LONGEST = 400
"""Characters of a line that are searched, and of a value that are kept."""

MOST = 400
"""Settings of one output that are kept as facts: more are of a table that settings.toml does not
name, or of a list of all ranks."""

MOST_KNOWN = 20_000
"""Lines that are cached with their settings: most come again."""

MOST_OF_LIST = 64
"""Values of a list in JSON that are read."""

_SEVERAL = re.compile(
    r"\t+(?![ ]*[:=])|[ ]{2,}(?=[A-Za-z][\w /.()-]{0,40}?[ ]*[:=][ ])|,[ ](?=[a-z_]+=)"
)
_PAIR = re.compile(
    r"([A-Za-z_(][\w ./()\[\]%*+&'<>,-]{0,60}?)[ ]*"
    r"(?!(?<=\d):\d\d:\d\d\b)[:=]+[ ]*(\S.*)?"  # a colon in a time of day is no separator
)
_ROWS = re.compile(r"\n[ \t#|]*+-?\d[^\n]*+")
"""Rows of figures, which are skipped: readers check tables. They are found fast by the end of the
line before."""

_BRACE = re.compile(r"\s*+(?=\{|\[\s*\{)")
_RULE = r"[-=#*+|_~.:\s]*"

_RESULT = re.compile(
    r"(?<![\d.])\d+\.\d+(?![\d]*\.\d)|\d %|\d%|\b\d{1,2}:\d\d:\d\d\b|\d{4}-\d\d-\d\d"
)
"""What figures of a launch, and dates, look like: "5.12", "97 %", "0:12:30", "2026-11-30"."""

NONE = r"(?!)"
"""The pattern that matches nothing."""

Kind = Literal["key", "option", "fact"]


class Silent(NamedTuple):
    """Lines that do not matter, and why; those from `lines` to a line with `until`, if given."""

    lines: str
    why: str
    until: str = ""


class Pairs(NamedTuple):
    """Lines that hold several settings, and the pattern of each: name and value.

    With `name` that is the name of all, and the pattern has the value alone.
    """

    lines: re.Pattern[str]
    pair: re.Pattern[str]
    name: str


class Table(NamedTuple):
    """How the settings of the outputs of one file of readers are sorted.

    `keys`, `options` and `facts` match the names of such settings, or whole lines without a name;
    `known` those that the reader itself returns. `settled` matches whole lines that the reader
    reads, `nothing` are those that do not matter, `command` matches a line that echoes a command.
    """

    keys: re.Pattern[str]
    options: re.Pattern[str]
    facts: re.Pattern[str]
    known: re.Pattern[str]
    settled: re.Pattern[str]
    nothing: tuple[Silent, ...]
    pairs: tuple[Pairs, ...]
    command: re.Pattern[str] | None


class Printed(NamedTuple):
    """The settings that an output prints: keys and facts, by name.

    `options` are keys that some outputs do not have: their absence is another value.
    """

    keys: Mapping[str, str] = {}
    options: Mapping[str, str] = {}
    facts: Mapping[str, Any] = {}


NOTHING_PRINTED = Printed()


def tables() -> Mapping[str, Table]:
    """Return the table of every file of readers that has one, and of every harness."""
    return {name: _table(name) for name in _entries() if name != "all"}


@cache
def _entries() -> Mapping[str, Any]:
    """Return the tables of settings.toml, one for each file of readers, and `all`."""
    text = files("paribus.readers").joinpath("settings.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def _table(file: str) -> Table:
    """Return the table of a file of readers; it is compiled when first needed."""
    entry, common = _entries()[file], _entries()["all"]["nothing"]
    facts = (*entry.get("facts", ()), *_entries()["all"]["facts"])
    rows = entry.get("nothing", ())
    cut = (row["lines"] for row in (*rows, *(row for row in common if row.get("cut"))))
    command = entry.get("command")
    return Table(
        re.compile(_any(entry.get("keys", ()))),
        re.compile(_any(entry.get("options", ()))),
        re.compile(_any(facts)),
        re.compile(_any(entry.get("known", ()))),
        re.compile(_any((_RULE, *entry.get("read", ()), *cut))),
        tuple(Silent(row["lines"], row["why"], row.get("until", "")) for row in (*rows, *common)),
        tuple(
            Pairs(re.compile(one["lines"]), re.compile(one["pair"]), one.get("name", ""))
            for one in entry.get("pairs", ())
        ),
        re.compile(command) if command else None,
    )


def _any(patterns: Iterable[str]) -> str:
    return "|".join(f"(?:{one})" for one in patterns) or NONE


def printed(file: str, text: str) -> Printed:
    """Return the settings that an output prints; `file` is that of its reader.

    Of a long output the first 64 KiB count: tools print their settings before their figures.
    """
    if file not in _entries():
        return NOTHING_PRINTED
    found: dict[tuple[Kind, str], list[str]] = {}
    for kind, name, value in _settings_of(file, text):
        if kind == "fact" and len(found) >= MOST and (kind, name) not in found:
            continue
        values = found.setdefault((kind, name), [])
        if value not in values:
            values.append(value)
    by_kind: dict[Kind, dict[str, str]] = {"key": {}, "option": {}, "fact": {}}
    for (kind, name), values in found.items():
        by_kind[kind][name] = ", ".join(values)
    facts: dict[str, Any] = {f"{PRINTED}{file}.{k}": v for k, v in by_kind["fact"].items()}
    if several := found.get(("fact", LINES)):
        facts[f"{PRINTED}{file}.{LINES}"] = several
    return Printed(by_kind["key"], by_kind["option"], facts)


def what_matters(file: str, text: str) -> str:
    """Return an output without the lines that do not matter by its table.

    JSON is written as a line for each value, which begins with its path.
    """
    tree = _tree(file, text)
    lines = text if tree is None else "\n".join(_flat(tree, "", lambda _: False))
    return _silent(file).sub("", lines)


@cache
def _silent(file: str) -> re.Pattern[str]:
    rows = (
        rf"(?:{one.lines})(?:\n[^\n]*)*?\n[^\n]*{re.escape(one.until)}[^\n]*"
        if one.until
        else one.lines
        for one in _table(file).nothing
    )
    return re.compile(rf"^[ \t#|]*+(?:{_any(rows)})[ \t|]*$\n?", re.M)


# --- lines ---------------------------------------------------------------------------------------


class _Line(NamedTuple):
    """The settings of a line, each with kind, name and value.

    With `until`, the lines that follow do not count, up to one that holds this text.
    """

    settings: tuple[tuple[Kind, str, str], ...]
    until: str = ""


def _settings_of(file: str, text: str) -> Iterator[tuple[Kind, str, str]]:
    """Yield kind, name and value of the settings in the lines of an output."""
    if (tree := _tree(file, text)) is not None:
        lines = [*_flat(tree, "", lambda path: _is_settled(file, path))]
    else:
        lines = _ROWS.sub("", f"\n{text[:HEAD]}").split("\n")
    until = ""
    for line in lines:
        if until:
            until = "" if until in line else until
        else:
            settings, until = _of_line(file, line[:LONGEST].strip(" \t#|"), tree is not None)
            yield from settings


@lru_cache(maxsize=MOST_KNOWN)
def _of_line(file: str, line: str, tree: bool) -> _Line:
    """Return the settings of a line; `tree`: it is a value of JSON behind its path."""
    if not line:
        return _Line(())
    table = _table(file)
    for one in table.nothing:
        if one.until and re.match(one.lines, line):
            return _Line((), one.until)
    more = tuple(_more(table, line))
    settled = table.settled.fullmatch(line) is not None

    def is_fact(name: str, value: str, matched: str) -> bool:
        if table.known.fullmatch(matched) or (settled and (name, value) not in more):
            return False
        return table.facts.fullmatch(matched) is not None or not _RESULT.search(value)

    found: list[tuple[Kind, str, str]] = []
    for name, value in (*more, *_settings(line)):
        matched = line if name == LINES else name
        kind: Kind = "fact"
        if table.keys.fullmatch(matched):
            kind = "key"
        elif table.options.fullmatch(matched):
            kind = "option"
        if kind != "fact":
            inner = tree and (name, value) not in more
            found.append((kind, name.rpartition(".")[2] if inner else name, value))
        elif is_fact(name, value, matched):
            found.append(("fact", name, value))
    return _Line(tuple(found))


def _settings(line: str) -> Iterator[tuple[str, str]]:
    """Yield name and value of each setting in a line; LINES and the line itself if it has none."""
    pairs: list[re.Match[str] | None] = [None]
    if ":" in line or "=" in line:  # without either no part is a pair
        several = "\t" in line or "  " in line or ", " in line
        parts = _SEVERAL.split(line) if several else [line]
        pairs = [_PAIR.fullmatch(part.strip()) for part in parts if part.strip()]
    if all(pairs):
        for pair in pairs:
            if pair is not None:
                yield " ".join(pair[1].split()), " ".join((pair[2] or "").split())
    else:
        yield LINES, " ".join(line.split())


def _more(table: Table, line: str) -> Iterator[tuple[str, str]]:
    """Yield the settings of a line that holds several, and of a command that it echoes."""
    for one in table.pairs:
        if one.lines.fullmatch(line):
            for pair in one.pair.finditer(line):
                name, value = (one.name, pair[1]) if one.name else (pair[1], pair[2])
                yield name, value.strip() or "yes"
    if table.command is not None and (echoed := table.command.fullmatch(line)):
        yield from _options(echoed[1])


def _options(command: str) -> Iterator[tuple[str, str]]:
    """Yield the options of a command, each with the word behind it, or "yes" if that is none."""
    words = [word.strip("'\"") for word in command.split()]
    for word, after in zip(words, [*words[1:], "-"], strict=True):
        if len(word) > 1 and word[0] == "-" and not word[1].isdigit():
            name, given, value = word.partition("=")
            yield f"option {name}", value if given else "yes" if after.startswith("-") else after


# --- JSON ----------------------------------------------------------------------------------------


def _tree(file: str, text: str) -> Any:
    """Return the JSON object, or list of objects, that a text begins with, None without one.

    Lines may stand before it, as those of `fio --client`, if it is a document of the file's tools:
    JSON that a launcher writes below an output is none.
    """
    start = _BRACE.match(text)
    if start is None:
        at = text.find("\n{", 0, HEAD) + 1 if "{" in text else 0
        if not at or not any(head.begins(text, at) for head in _documents(file)):
            return None
    try:
        return decoded(text, start.end() if start else at)
    except (ValueError, RecursionError, ParseError):
        return {} if start else None


@cache
def _documents(file: str) -> tuple[Head, ...]:
    """Return the heads of outputs in JSON of the tools of a file."""
    own = (one for one in every().values() if file_of(one.name) == file)
    return tuple(head for one in own for head in one.heads if head.document)


def _flat(value: Any, path: str, settled: Callable[[str], bool]) -> Iterator[str]:
    """Yield a line, `path = value`, for each value of a tree that is not below a settled path."""
    if isinstance(value, dict):
        for key, inner in value.items():
            below = f"{path}.{key}" if path else str(key)
            if not (isinstance(inner, dict | list) and settled(below)):
                yield from _flat(inner, below, settled)
    elif isinstance(value, list):
        for inner in value[:MOST_OF_LIST]:
            yield from _flat(inner, path, settled)
    else:
        text = value if isinstance(value, str) else json.dumps(value)
        yield f"{path} = {' '.join(text.split())[:LONGEST]}"


@lru_cache(maxsize=1024)
def _is_settled(file: str, path: str) -> bool:
    """Return whether the table settles all below a path: its rows match the path and a dot."""
    return _table(file).settled.fullmatch(f"{path}.") is not None
