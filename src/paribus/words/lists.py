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


def and_others(names: Sequence[str], number: int = 0, most: int = 3) -> str:
    """Return the first of several names before a verb; there may be a larger `number` of them.

    >>> and_others("abcde"), and_others("ab"), and_others("abc", 9)
    ('a, b, c, and 2 more,', 'a, b', 'a, b, c, and 6 more,')
    """
    others = max(number, len(names)) - most
    return f"{', '.join(names[:most])}, and {others} more," if others > 0 else ", ".join(names)


def ranges(numbers: Sequence[int]) -> str:
    """Return ascending numbers as text.

    >>> ranges([3, 5, 6, 7])
    '3, 5 to 7'
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(f"{a}" if a == b else f"{a} to {b}" for a, b in runs)
