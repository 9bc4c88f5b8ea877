"""Names of many hosts as one text, such as node[1-4,7]: what clusters' own tools write and take.

Reading is ClusterShell's (docs/dependencies.md says why).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

MOST_NAMES = 100_000
"""Names that one text may stand for: beyond any cluster, and a few seconds of work."""

_NUMBERED = re.compile(r"([^0-9]*)([0-9]+)(.*)", re.DOTALL)


def expand(text: str) -> tuple[str, ...]:
    """Return the names that a nodeset stands for, sorted, each once.

    Groups (@name) are refused: what they mean depends on the machine. Raises ValueError with the
    fix for a text that is no nodeset, and for one of more than MOST_NAMES names.

    >>> expand("node[08-10],login")
    ('login', 'node08', 'node09', 'node10')
    """
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

    if "@" in text:
        raise ValueError("write names, such as node[1-4]; a user name goes into ssh.user")
    try:
        names = NodeSet(text, resolver=RESOLVER_NOGROUP)
        if len(names) > MOST_NAMES:
            raise ValueError(f"{len(names):,} names; {MOST_NAMES:,} are the most")
        return tuple(names)
    except NodeSetException as error:
        raise ValueError(f"{error}; write names such as node[1-4,7]") from None


def fold(names: Iterable[str]) -> str:
    """Return the nodeset that stands for `names`: what `expand` turns into them again.

    The first number of a name folds.

    >>> fold(["node8", "node10", "node9", "gate"])
    'gate,node[8-10]'
    """
    plain: set[str] = set()
    numbered = []
    for name in names:
        found = _NUMBERED.fullmatch(name)
        if found is None:
            plain.add(name)
        else:
            numbered.append(found.groups())
    # 10 after 09 has two digits as well; 10 after 9 has as many as it needs.
    padded = {
        (before, after, len(digits))
        for before, digits, after in numbered
        if digits.startswith("0") and len(digits) > 1
    }
    groups: dict[tuple[str, str, int], set[int]] = {}
    for before, digits, after in numbered:
        width = len(digits) if (before, after, len(digits)) in padded else 0
        groups.setdefault((before, after, width), set()).add(int(digits))
    folded = [
        f"{before}{_ranges(numbers, width)}{after}"
        for (before, after, width), numbers in groups.items()
    ]
    return ",".join(sorted([*plain, *folded]))


def _ranges(numbers: set[int], width: int) -> str:
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    parts = [
        f"{first:0{width}}" if first == last else f"{first:0{width}}-{last:0{width}}"
        for first, last in runs
    ]
    return parts[0] if len(numbers) == 1 else f"[{','.join(parts)}]"
