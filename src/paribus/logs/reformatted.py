"""JSON that another program wrote again: the same values with other blanks.

`jq`, Python and editors change the blanks between the values of a tool's file, by which readers
find it, or their way in it. Such a file is written once more as its tool writes it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from paribus.readers.known import every
from paribus.readers.text import HEAD

MOST = 16 << 20
"""Characters of a text up to which it is written again."""

_STYLES: tuple[Mapping[str, Any], ...] = (
    {"indent": 2},
    {"separators": (",", ":")},
    {"indent": 2, "separators": (",", " : ")},
    {},
)
"""How tools write JSON, as arguments of json.dumps."""


def is_json(text: str) -> bool:
    """Return whether a text begins as JSON of a known tool, whatever the blanks in it."""
    if text.lstrip()[:1] not in ("{", "["):
        return False
    head = _squeezed(text[:HEAD])
    return any(mark in head for mark in _marks())


def reformatted(text: str) -> Iterator[str]:
    """Yield a text as tools write JSON, nothing where it is not whole JSON."""
    try:
        documents = list(_documents(text)) if len(text) <= MOST else []
    except (ValueError, RecursionError):
        return
    for style in _STYLES if documents else ():
        yield "".join(f"{json.dumps(one, ensure_ascii=False, **style)}\n" for one in documents)


def _squeezed(text: str) -> str:
    return "".join(text.split())


@cache
def _marks() -> tuple[str, ...]:
    """Return the marks of JSON, without blanks."""
    return tuple(_squeezed(mark) for one in every().values() for mark in one.marks if '"' in mark)


def _documents(text: str) -> Iterator[Any]:
    """Yield the documents that follow each other in a text; raises ValueError for other text."""
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        document, at = _DECODER.raw_decode(text, at)
        yield document


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; raises ValueError for a key with two values, of which one would be lost."""
    found = dict(pairs)
    if len(found) < len(pairs) and any(found[key] != value for key, value in pairs):
        raise ValueError("a key has two values")
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_once)
