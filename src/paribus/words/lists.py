"""Names joined for a sentence."""

from __future__ import annotations

from collections.abc import Sequence


def listed(names: Sequence[str], most: int | None = None, *, last: str = ", ") -> str:
    """Return names as a list; beyond `most` of them the number of the others.

    `last` stands before the last name of a list that is whole.

    >>> listed("abc"), listed("abc", last=" and "), listed("abcd", 2), listed("")
    ('a, b, c', 'a, b and c', 'a, b and 2 more', '')
    """
    if most is not None and len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    *first, end = names or ("",)
    return f"{', '.join(first)}{last}{end}" if first else end


def and_others(names: Sequence[str], most: int = 3) -> str:
    """Return the first of several names before a verb.

    >>> and_others("abcde"), and_others("ab")
    ('a, b, c, and 2 more,', 'a, b')
    """
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[:most])}, and {len(names) - most} more,"
