"""Groups of rows, by their codes, without a loop over rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]


def number(columns: Sequence[tuple[Any, int]]) -> tuple[Ints, Ints]:
    """Return the group of every row, counted from 0, and the first row of every group.

    `columns` are codes with their bound. Groups are in the order of their codes, the first
    column first; no columns make one group of all rows.
    """
    import numpy as np

    (codes, size), *others = columns
    key: Any = np.asarray(codes, dtype=np.int64)
    for codes, bound in others:
        if size * bound >= 1 << 62:
            unique, key = np.unique(key, return_inverse=True)
            size = len(unique)
        key = key * bound + codes
        size *= bound
    _, first, groups = np.unique(key, return_index=True, return_inverse=True)
    return groups.astype(np.int64), first.astype(np.int64)


def repeated(groups: Ints, count: int) -> tuple[int, int] | None:
    """Return the first row that is in the group of an earlier one, and that one, or None."""
    import numpy as np

    if len(groups) == count:
        return None
    order = np.argsort(groups, kind="stable")
    again = np.flatnonzero(groups[order][1:] == groups[order][:-1])
    later = order[again + 1]
    which = int(np.argmin(later))
    return int(later[which]), int(order[again[which]])


def medians(groups: Ints, count: int, values: Floats) -> Floats:
    """Return the median of each of `count` groups, none of them empty."""
    import numpy as np

    if len(groups) == count:
        alone = np.empty(count)
        alone[groups] = values
        return alone
    ordered, starts = _sorted(groups, count, values)
    sizes = np.diff(starts)
    low = ordered[starts[:-1] + (sizes - 1) // 2]
    high = ordered[starts[:-1] + sizes // 2]
    middle: Floats = low / 2 + high / 2
    return np.where(low == high, low, middle)


def split(groups: Ints, count: int, values: Floats) -> list[Floats]:
    """Return the values of each group, in ascending order."""
    import numpy as np

    ordered, starts = _sorted(groups, count, values)
    return np.split(ordered, starts[1:-1])


def least(groups: Ints, count: int, values: Floats) -> Floats:
    """Return the smallest value of each group."""
    import numpy as np

    found = np.full(count, np.inf)
    np.minimum.at(found, groups, values)
    return found


def _sorted(groups: Ints, count: int, values: Floats) -> tuple[Floats, Ints]:
    import numpy as np

    order = np.lexsort((values, groups))
    starts = np.concatenate([[0], np.cumsum(np.bincount(groups, minlength=count))])
    return values[order], starts
