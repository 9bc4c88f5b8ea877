"""Joining names and numbers for a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


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


_ENGLISH = """
a about above after again against all alone also an and another any are as at be been before below
beside best better between both but by can case cases did do does down each either every few first
for from half has have here high higher how i if in into is it its last least less like low lower
many may more most must my new next no none not nothing now of off old on once one only open or
other others our out over own per same second several slow so some such than that the their them
then there these they this those three time times to too two under up was we were what when where
which who with without worse worst you
"""
_VERDICTS = "arm arms equivalent faster neither reference slower undecided"
TAKEN = frozenset([*_ENGLISH.split(), *_VERDICTS.split()])
"""Words of sentences that an arm may have as its name."""


def arm(name: str) -> str:
    """Return the name of an arm for a sentence, so that it is not read as another word.

    In a list, before a colon and in a table the name is written as it is.

    >>> arm("bridged"), arm("a"), arm("my host"), arm("2.5")
    ('bridged', 'arm a', 'arm "my host"', 'arm 2.5')
    """
    if " " in name:
        return f'arm "{name}"'
    taken = name.lower() in TAKEN or not any(map(str.isalpha, name))
    return f"arm {name}" if taken else name


def arms(names: Iterable[str], most: int | None = None) -> str:
    """Return the names of several arms for a sentence, with "and" before the last.

    >>> arms(["a", "b"])
    'arm a and b'
    """
    return listed(list(map(arm, names)), most, last=" and ")


def and_others(names: Sequence[str], number: int = 0) -> str:
    """Return up to three names to stand before a verb, and how many more there are.

    `number` is how many there are, if that is more than `names`.

    >>> and_others("abcde"), and_others("ab"), and_others("abc", 9)
    ('a, b, c, and 2 more,', 'a, b', 'a, b, c, and 6 more,')
    """
    others = max(number, len(names)) - 3
    return f"{', '.join(names[:3])}, and {others} more," if others > 0 else ", ".join(names)


def ranges(numbers: Sequence[int]) -> str:
    """Return ascending numbers as text, runs of them as ranges.

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
