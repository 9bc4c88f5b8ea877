"""Sort a table's columns whose names Paribus does not know: facts of the arms, or cases.

A column with one value in all rows of an arm, and another in another arm, such as "kernel", is a
fact. One with several values within an arm, the same in every arm, such as "threads", distinguishes
cases. One with another value in each row, such as the number of a job, or that differs in any other
way, is left out, and named.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from paribus.border import printable
from paribus.core import Scalar, UserError, grouped
from paribus.logs.tables.table import Row, Table, in_order, scalar

_COUNTS = re.compile(
    r"(?:.*[ _])?(?:run|reps?|repeat|repetition|replicate|trial|round|attempt|loop|iter"
    r"|iteration|index|seed|job|(?:job ?)?id|date|time(?:stamp)?|n|no|number|file|std(?:dev)?|sd"
    r"|sem|cv|error|ci|min|max)[ #]*",
    re.I,
)
"""Names of columns that count rows, date them, say where they were read, or how they spread."""

COLUMN = "column."
"""The beginning of the key of a fact that stands in a column."""

Facts = dict[str, dict[str, dict[str, str]]]
"""Values of facts by benchmark, arm and key."""


def distinguishes(name: str) -> bool:
    """Return whether a column of this name may be a fact or distinguish cases; "job_id" may not."""
    return _COUNTS.fullmatch(name.strip()) is None


def sort_columns(
    table: Table, keys: Collection[str] = (), part_of_arm: Collection[str] = ()
) -> tuple[Table, Facts]:
    """Return a table whose cases have the columns that distinguish them, and the facts of the arms.

    By the user's word `keys` are columns that distinguish cases, and `part_of_arm` are columns, or
    parameters of cases, that are facts of the arms. Raises UserError for a name that no column of
    the table has.
    """
    for option, names in (("--key", keys), ("--part-of-arm", part_of_arm)):
        known = {*table.ignored, *(k for row in table.rows if names for k, _ in row.case.items)}
        if wrong := [name for name in names if name not in known]:
            fix = f"give one of: {', '.join(map(printable, sorted(known))) or 'none'}"
            place = f"{option} {printable(wrong[0])}"
            raise UserError("names no other column of the table", place=place, fix=fix)
    groups = grouped((row.benchmark, at) for at, row in enumerate(table.rows))
    rows = list(table.rows)
    facts: Facts = {}
    used: set[str] = set()
    for benchmark, places in groups.items():
        mine = [rows[at] for at in places]
        named = {name: kind for name in table.ignored if (kind := _kind(name, mine))}
        named |= dict.fromkeys(set(keys) & set(table.ignored), "case")
        named |= dict.fromkeys(set(part_of_arm) & set(table.ignored), "fact")
        cases = [name for name, kind in named.items() if kind == "case"]
        for at in places if cases or part_of_arm else ():
            rows[at] = _with_cases(rows[at], cases, part_of_arm)
        for name in [name for name, kind in named.items() if kind == "fact"]:
            for arm, values in _of_arms(name, mine).items():
                of = facts.setdefault(benchmark, {}).setdefault(arm, {})
                of[f"{COLUMN}{name}"] = ", ".join(dict.fromkeys(values))
        for name in part_of_arm:
            for row in mine:
                if (value := dict(row.case.items).get(name)) is not None:
                    of = facts.setdefault(benchmark, {}).setdefault(row.arm, {})
                    of[f"{COLUMN}{name}"] = str(value)
        used |= named.keys()
    left = tuple(name for name in table.ignored if name not in used)
    return replace(table, rows=rows, ignored=left), facts


def _with_cases(row: Row, names: Sequence[str], without: Collection[str]) -> Row:
    """Return a row with columns among the parameters of its case, and some of these left out."""
    others: Mapping[str, str] = dict(row.others)
    items: dict[str, Scalar] = {k: v for k, v in row.case.items if k not in without}
    return row._replace(case=in_order({**items, **{n: scalar(others.get(n, "")) for n in names}}))


def _of_arms(name: str, rows: Iterable[Row]) -> dict[str, list[str]]:
    """Return the values of a column by arm."""
    return grouped((row.arm, dict(row.others).get(name, "")) for row in rows)


def _kind(name: str, rows: Sequence[Row]) -> str:
    """Return what a column is: "fact" or "case", "" if it is left out."""
    if not distinguishes(name):
        return ""
    of_arm = list(_of_arms(name, rows).values())
    distinct = [set(values) for values in of_arm]
    if all(len(values) == 1 for values in distinct):
        return "fact" if any(values != distinct[0] for values in distinct) else ""
    if len(distinct) < 2 or any(values != distinct[0] for values in distinct):
        return ""
    cells = len({(row.metric, row.case) for row in rows})
    other_in_each_row = any(
        len(set(values)) * cells >= len(values) > 2 * cells for values in of_arm
    )
    return "" if other_in_each_row and _counting(distinct[0]) else "case"


def _counting(values: Collection[str]) -> bool:
    """Return whether values are whole numbers without a gap, such as 1, 2, 3."""
    numbers = sorted(int(value) for value in values if value.isdecimal())
    return len(numbers) == len(values) and numbers == list(
        range(numbers[0], numbers[0] + len(numbers))
    )
