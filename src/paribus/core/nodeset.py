"""Names of many hosts as one text, such as node[1-4,7]: what clusters' own tools write and take.

Reading is ClusterShell's (CONTRIBUTING.md says why).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import prod

MOST_NAMES = 100_000
"""The most names that one text may stand for: beyond any cluster, and a few seconds of work."""

_BRACKET = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"\s*(-?[0-9]+)\s*-\s*(-?[0-9]+)\s*(?:/\s*([0-9]+)\s*)?")  # 1-9 or 1-9/2
_DIGITS = re.compile(r"[0-9]\[([0-9, /-]*)\]")  # brackets after a digit: node1[9-10]

MOST_DIGITS = 18
"""The most digits of a number within brackets."""

_NUMBERED = re.compile(r"([^0-9]*)([0-9]+)(.*)", re.DOTALL)  # rack, 07, -a of rack07-a


def parts(text: str) -> list[str]:
    """Return the parts of a nodeset between commas outside of brackets."""
    hidden = _BRACKET.sub(lambda found: found[0].replace(",", "\0"), text)
    return [one.replace("\0", ",") for one in hidden.split(",")]


def size(text: str) -> int:
    """Return an upper bound of the number of names of a nodeset, without making them.

    Raises ValueError for brackets with anything but numbers and ranges.
    """
    return sum(
        prod(map(_numbers, _BRACKET.findall(one)))
        for part in parts(text)
        for one in re.split("[!&^]", part)  # ClusterShell's difference, intersection and xor
    )


def _numbers(inside: str) -> int:
    """Return how many numbers brackets hold: 4 in "1-3,7"."""
    if re.search(r"[^0-9, /-]", inside) or re.search(rf"[0-9]{{{MOST_DIGITS + 1}}}", inside):
        cause = f"numbers of at most {MOST_DIGITS} digits stand in brackets"
        raise ValueError(f"{cause}; write names such as node[1-4,7]")
    found = 0
    for one in inside.split(","):
        ends = _RANGE.fullmatch(one)
        first, last, step = map(int, ends.groups("1")) if ends else (0, 0, 1)
        found += max(0, last - first) // max(1, step) + 1
    return found


def check_names(number: int) -> None:
    """Raise ValueError for more than MOST_NAMES names."""
    if number > MOST_NAMES:
        said = f"{number:,}" if number < 10**15 else "over 10^15"
        raise ValueError(f"{said} names; {MOST_NAMES:,} are the most")


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
    check_names(size(text))
    for inside in _DIGITS.findall(text):
        if len({*map(len, re.findall("[0-9]+", inside))}) > 1:  # ClusterShell: 1[9-10] is [19-110]
            said = "a digit before brackets with numbers of several lengths"
            raise ValueError(f"{said}; write node[19,110], not node1[9,10]")
    try:
        return tuple(NodeSet(text, resolver=RESOLVER_NOGROUP))
    except NodeSetException as error:
        raise ValueError(f"{error}; write names such as node[1-4,7]") from None


def fold(names: Iterable[str]) -> str:
    """Return the nodeset that stands for `names`, the inverse of `expand`.

    Names are folded by the first number in them.

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
    # Padded are [09-10], where 10 has the two digits of 09; not [9-10], of as many as needed.
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
    """Return "[8-10,12]" for several numbers, "8" for one, padded to `width` digits."""
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
