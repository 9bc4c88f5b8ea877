"""How the values of a fact are shown beside each other."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from paribus.core import count, fold
from paribus.probes.archive import unknown

Shares = Mapping[str, Fraction]
"""The values of one fact, as JSON, to the share of the nodes that have it."""

MOST_SHOWN = 160
"""Characters of a value that are shown."""

MOST_NAMES = 4
"""Names of hosts that are listed one by one."""

LONG = 40
"""Characters from which a list is shown by what the other side does not have."""


def shown(ours: Shares, theirs: Shares, *, names: bool = False) -> tuple[str, str]:
    """Return the values of both sides as text; of long lists only what they do not share.

    Long lists of `names` of hosts are nodesets.
    """
    if names and len(ours) == len(theirs) == 1:
        lists = [json.loads(next(iter(side))) for side in (ours, theirs)]
        if all(isinstance(one, list) and len(one) > MOST_NAMES for one in lists):
            one, other = (_folded(list(map(str, each))) for each in lists)
            return one, other
    if len(ours) == len(theirs) == 1:
        words, others = (Counter(_words(json.loads(next(iter(side))))) for side in (ours, theirs))
        only, more = (list(each.elements()) for each in (words - others, others - words))
        if min(words.total(), others.total()) > 2 and (only or more):
            return _text(only, "only: "), _text(more, "only: ")
    return _side(ours), _side(theirs)


def names_moved(first: str, last: str) -> tuple[str, str]:
    """Return which names of a list went until a later one, and which came, all of them."""
    before, after = (list(map(str, json.loads(text))) for text in (first, last))
    gone = [name for name in before if name not in after]
    new = [name for name in after if name not in before]
    return f"gone: {', '.join(gone) or 'none'}", f"new: {', '.join(new) or 'none'}"


def _folded(names: list[str]) -> str:
    """Return names of hosts, one a rank, as a nodeset."""
    several = f" ({count(len(names), 'rank')})" if len(set(names)) < len(names) else ""
    return f"{_text(fold(names))}{several}"


def _words(value: Any) -> list[str]:
    """Return the parts of a long list, table or search path, such as the flags of a processor."""
    if isinstance(value, dict):
        words = [f"{name} {inner}" for name, inner in value.items()]
    elif isinstance(value, list):
        words = [str(one) for one in value]
    else:
        words = value.split(":") if isinstance(value, str) else []
    return words if sum(map(len, words)) > LONG else []


def _side(shares: Shares) -> str:
    parts = []
    for text, share in sorted(shares.items(), key=lambda pair: (-pair[1], pair[0])):
        some = "" if share == 1 else f" (on {share.numerator} of {share.denominator} nodes)"
        parts.append(f"{_text(json.loads(text))}{some}")
    return "; ".join(parts)


def _text(value: Any, before: str = "") -> str:
    if unknown(value):
        return f"({value['unknown']})"
    if isinstance(value, list):
        told = ", ".join(str(one) or "(empty)" for one in value)
        text = before + told if value else "nothing more" if before else "none"
    else:
        whole = isinstance(value, float) and value.is_integer()  # a median of counts
        text = value if isinstance(value, str) else json.dumps(int(value) if whole else value)
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 4]} ..."
