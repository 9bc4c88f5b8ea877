"""JSON that tools print: one document in a text, and the values in it, each checked."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import islice
from typing import Any, NoReturn

from paribus.core import ParseError
from paribus.readers.text import line_of, refuse


def document(text: str, mark: str) -> dict[str, Any]:
    """Return the JSON object that holds `mark`, which must be in `text` exactly once.

    The object begins with a brace at the beginning of a line; text before and after it is skipped.
    Blanks in the mark do not count, because jq, Python and editors change them. Raises ParseError
    for what is not JSON, for NaN and for a key with two values.
    """
    at = _once(text, mark)
    start = 0 if text.startswith("{") else text.rfind("\n{", 0, at) + 1
    if text[start : start + 1] != "{":
        refuse("the JSON does not begin with '{'", line_of(text, at))
    found = _whole(text, start)
    if at < start or not isinstance(found, dict):
        refuse("is not JSON of this tool", line_of(text, start))
    return found


def within_text(text: str, mark: str) -> Any:
    """Return the JSON value that begins with `mark`, which must be in `text` exactly once.

    Raises ParseError as `document` does.
    """
    return _whole(text, _once(text, mark))


def _once(text: str, mark: str) -> int:
    """Return where `mark` stands, whatever the blanks; raises ParseError as text.once does."""
    places = [found.start() for found in islice(in_json(mark).finditer(text), 2)]
    if not places:
        refuse(f"{mark!r} is missing")
    if len(places) > 1:
        refuse(f"{mark!r} is there twice: two outputs in one", line_of(text, places[1]), alone=True)
    return places[0]


@cache
def in_json(mark: str) -> re.Pattern[str]:
    """Return the pattern of a part of JSON, with any blanks between its strings and signs."""
    return re.compile(r"\s*".join(map(re.escape, re.findall(r'"[^"]*"?|\S', mark))))


def _whole(text: str, start: int) -> Any:
    """Return the JSON value that begins at `start`; raises ParseError."""
    try:
        return decoded(text, start)
    except (json.JSONDecodeError, RecursionError) as error:
        refuse(_why(error), getattr(error, "lineno", 0) or line_of(text, start))


def _why(error: json.JSONDecodeError | RecursionError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"is not whole JSON: {error.msg}"
    return "is not JSON of this tool: nested too deep"


@lru_cache(maxsize=1)
def decoded(text: str, start: int) -> Any:
    """Return the JSON value that begins at `start`; asked again, the same object.

    Raises JSONDecodeError, RecursionError, and ParseError for NaN and a key with two values.
    """
    return _DECODER.raw_decode(text, start)[0]


_BEGINS = re.compile(r"^\{", re.M)
_ENDS = re.compile(r"[ \t]*(?:\n|\Z)")


def rows(text: str) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Yield the begin, the end and the value of each JSON object that begins a line.

    Raises ParseError as `document` does, and for what follows one on its last line.
    """
    begun = _BEGINS.search(text)
    while begun:
        start = begun.start()
        try:
            found, end = _DECODER.raw_decode(text, start)
        except (json.JSONDecodeError, RecursionError) as error:
            refuse(_why(error), getattr(error, "lineno", 0) or line_of(text, start))
        if not _ENDS.match(text, end):
            refuse("is not whole JSON: Extra data", line_of(text, end))
        yield start, end, found
        begun = _BEGINS.search(text, end)


_BEFORE_OBJECT = re.compile(r"\s*[\[,]\s*(?=\{)")


def in_array(text: str) -> list[str]:
    """Return the objects of a JSON array as they are written, such as by `jq -s`; else none."""
    found: list[str] = []
    at = 0 if text.startswith("[") else len(text)
    while begin := _BEFORE_OBJECT.match(text, at):
        try:
            at = _DECODER.raw_decode(text, begin.end())[1]
        except (json.JSONDecodeError, RecursionError, ParseError):
            return []
        found.append(text[begin.end() : at])
    return found if text[at:].strip() == "]" else []


def inner(tree: Any, *path: str | int) -> Any:
    """Return what keys and indices lead to; raises ParseError with the first that is missing."""
    found = tree
    try:
        for step in path:
            found = found[step]
    except (KeyError, IndexError, TypeError):
        inner(tree, *path[:-1])  # refuses what leads there, if that is missing already
        refuse(f"{'.'.join(map(str, path))} is missing")
    return found


def amount(tree: Any, *path: str | int, zero: bool = False) -> float:
    """Return the number that `path` leads to; it must be finite, and above zero unless `zero`."""
    value = inner(tree, *path)
    if type(value) not in (int, float):
        refuse(f"{'.'.join(map(str, path))} is {str(value)[:40]!r}, not a number")
    if not (0 <= value < math.inf) or (value == 0 and not zero):
        refuse(f"{'.'.join(map(str, path))} is {value}: not a measurement")
    return float(value)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):  # iperf3 repeats keys for each stream, with the same value
        for key, value in pairs:
            if found[key] != value:
                refuse(f"the JSON has {key!r} twice, with different values")
    return found


def _constant(word: str) -> NoReturn:
    refuse(f"{word} is not a measurement")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant)
