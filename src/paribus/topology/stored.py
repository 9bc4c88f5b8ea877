"""A tree as JSON, schema paribus.topology/1, and back (docs/topology.md)."""

from __future__ import annotations

import json
from dataclasses import asdict, fields, replace
from typing import Any

from paribus.core import ParseError
from paribus.topology.shape import canonical_hash, shape_of
from paribus.topology.tree import Kind, Link, Node, Peer, PeerKind, Socket, Tree, finished

SCHEMA = "paribus.topology/1"

_DEEPEST = 80
_KINDS: tuple[str, ...] = Kind.__args__  # type: ignore[attr-defined]
_PEERS: tuple[str, ...] = PeerKind.__args__  # type: ignore[attr-defined]


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
    """Return `tree` as JSON in one line, without the keys of devices: they name one machine."""

    def bare(node: Node) -> Node:
        return replace(node, key="", children=tuple(map(bare, node.children)))

    sockets = tuple(replace(s, bridges=tuple(map(bare, s.bridges))) for s in tree.sockets)
    return json.dumps(to_json(replace(tree, sockets=sockets)), separators=(",", ":"))


def recognise(text: str) -> bool:
    """Return whether `text` is such a tree."""
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
        tree = Tree(
            _text(table["source"]),
            tuple(_socket(socket) for socket in table.get("sockets", ())),
            tuple(_peer(peer) for peer in table.get("peers", ())),
            _text(table.get("virtual", "")),
            tuple(_text(code) for code in table.get("lacks", ())),
            _text(table.get("product", "")),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ParseError(
            f"the tree in JSON lacks something, or has it of a wrong type: {error!s:.80}"
        ) from None
    return finished(tree)


def _socket(table: Any) -> Socket:
    package = table.get("package")
    return Socket(
        None if package is None else _whole(package),
        tuple(_whole(node) for node in table.get("numa", ())),
        tuple(_node(bridge, 0) for bridge in table.get("bridges", ())),
    )


def _node(table: Any, depth: int) -> Node:
    if depth > _DEEPEST or table["kind"] not in _KINDS:
        raise ValueError("kind")
    texts = {name: _text(table.get(name, "")) for name in ("address", "name", "model", "key")}
    numa, redirects = table.get("numa"), table.get("redirects")
    return Node(
        table["kind"],
        **texts,
        link=_link(table.get("link", {})),
        numa=None if numa is None else _whole(numa),
        redirects=None if redirects is None else redirects is True,
        children=tuple(_node(child, depth + 1) for child in table.get("children", ())),
    )


def _link(table: Any) -> Link:
    values = {part.name: table.get(part.name) for part in fields(Link)}
    for name, value in values.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is not None and not (number and 0 < value < 1e6):
            raise ValueError(name)
    return Link(**values)


def _peer(table: Any) -> Peer:
    if table["kind"] not in _PEERS:
        raise ValueError("kind")
    gbs = table.get("gbs")
    count = _whole(table["count"])
    return Peer(
        _text(table["a"]),
        _text(table["b"]),
        table["kind"],
        count,
        None if gbs is None else float(gbs),
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.40} is no text")
    return value


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 31:
        raise ValueError(f"{value!r:.40} is no whole number")
    return value
