"""A tree as JSON, schema paribus.topology/1, and back (docs/topology.md)."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

from paribus.border import of_json
from paribus.core import ParseError
from paribus.topology.shape import canonical_hash, shape_of
from paribus.topology.tree import Link, Tree, finished

SCHEMA = "paribus.topology/1"


def to_json(tree: Tree) -> dict[str, Any]:
    """Return `tree` with its shape and hashes; what is empty or not given is left out."""
    return {
        "schema": SCHEMA,
        "shape": asdict(shape_of(tree)),
        "hash": canonical_hash(tree),
        "wiring": canonical_hash(tree, keys=False),
        **_bare(asdict(tree)),
    }


def _bare(value: Any) -> Any:
    """Return `value` without what is empty or None, at any depth."""
    if isinstance(value, dict):
        inner = {name: _bare(item) for name, item in value.items()}
        return {name: item for name, item in inner.items() if item not in (None, "", [], {})}
    return [_bare(item) for item in value] if isinstance(value, list | tuple) else value


def to_line(tree: Tree) -> str:
    """Return `tree` as JSON in one line, without the keys of devices, which identify a machine."""
    bare = tree.mapped(lambda node: replace(node, key=""))
    return json.dumps(to_json(bare), separators=(",", ":"))


def recognise(text: str) -> bool:
    """Return whether `text` is a tree as `to_json` makes it."""
    return text.lstrip().startswith("{") and f'"{SCHEMA}"' in text[:400]


def read(text: str) -> Tree:
    """Return the tree that `to_json` gave; raises ParseError for anything else."""
    try:
        table = json.loads(text)
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", 0)
        raise ParseError("the tree is not JSON", line=line) from None
    try:
        if table["schema"] != SCHEMA:
            raise ParseError(f"the schema is {str(table['schema'])[:40]!r}, not {SCHEMA!r}")
        tree = of_json(Tree, {"sockets": (), **table}, rules=_RULES, later=True)
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        raise ParseError(
            f"the tree in JSON lacks something, or has it of a wrong type: {error!s:.80}"
        ) from None
    return finished(tree)


def _link(table: Any) -> Link:
    link: Link = of_json(Link, table, rules={float: _amount, int: _amount}, later=True)
    return link


def _amount(value: Any) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (number and 0 < value < 1e6):
        raise ValueError(f"{value!r:.40} is no number of a link")
    return value  # type: ignore[no-any-return]


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 31:
        raise ValueError(f"{value!r:.40} is no whole number")
    return value


_RULES = {Link: _link, int: _whole}
