"""Readers of the parameters that a study sets on a benchmark: TOML value in, checked value out.

All raise ValueError with the fix; the study loader adds file and key.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from paribus.border import fields, is_directory
from paribus.core import (
    Request,
    UserError,
    commandline,
    count,
    format_bytes,
    parse_bytes,
    toml_list,
)

MOST_OF_MPI = 2**31 - 1
"""The most bytes that MPI counts in one call: its counts are int."""


def sizes(value: Any, most: int = MOST_OF_MPI) -> list[int]:
    """Return sizes in bytes up to `most`, each once, in the order given.

    `value` is a list, or a range that doubles from its low end to its high end, both included.
    Raises ValueError for other values.

    >>> sizes(["8 B", "4 KiB"]), sizes("1 B : 6 B"), sizes(64)
    ([8, 4096], [1, 2, 4, 6], [64])
    """
    if isinstance(value, str) and ":" in value:
        low, _, high = value.partition(":")
        found = _doubled(parse_bytes(low), parse_bytes(high), value)
    else:
        items = value if isinstance(value, list | tuple) else [value]
        if not items or not all(isinstance(item, str | int) for item in items):
            raise ValueError('write sizes such as ["8 B", "4 KiB"], or a range "1 B : 1 MiB"')
        found = [parse_bytes(item) for item in items]
    if len(set(found)) != len(found):
        raise ValueError("a size is there twice")
    if min(found) < 1 or max(found) > most:
        why = ", the most that MPI counts in one call" if most == MOST_OF_MPI else ""
        raise ValueError(f"sizes go from 1 B to {most} B{why}")
    return found


def _doubled(low: int, high: int, text: str) -> list[int]:
    if not 1 <= low <= high:
        raise ValueError(f"{text!r}: a range goes from 1 B or more up, such as '1 B : 1 MiB'")
    found = [low]
    while found[-1] * 2 < high:
        found.append(found[-1] * 2)
    return found if found[-1] == high else [*found, high]


def doubling(value: Any) -> list[int]:
    """Return sizes, ascending, for a program that doubles the size from the first to the last.

    >>> doubling(["64 B", "8 B"])
    [8, 64]
    """
    found = sorted(sizes(value))
    for size in found:
        if size not in (passed := doubled(found)):
            steps = ", ".join(map(format_bytes, passed[-2:]))
            raise ValueError(
                f"{format_bytes(size)} is not among the sizes that the program measures: it"
                f" doubles from {format_bytes(found[0])} on ({steps}, ...)"
            )
    return found


def doubled(asked: Sequence[int]) -> list[int]:
    """Return the sizes that a program measures which doubles from the first of `asked` to the last.

    After 0 comes 1.

    >>> doubled([8, 64])
    [8, 16, 32, 64]
    """
    found = list(asked[:1])
    while found and (after := 2 * found[-1] or 1) <= asked[-1]:
        found.append(after)
    return found


def need_ranks(request: Request, name: str, *, exactly: int = 0, least: int = 0) -> None:
    """Raise UserError if the ranks asked for are not `exactly` so many, or fewer than `least`."""
    if (exactly and request.ranks != exactly) or request.ranks < least:
        refuse_ranks(request, name, f"= {exactly}" if exactly else f"= {least} or more")


def refuse_ranks(request: Request, name: str, legal: str) -> NoReturn:
    """Raise UserError for the ranks asked for; `legal` says which `name` takes: "= 2 or more"."""
    raise UserError(
        f"{name} cannot be started with {count(request.ranks, 'rank')}",
        place=f"ranks = {request.ranks}",
        fix=f"set ranks {legal}",
    )


def positive(value: Any) -> int:
    """Return a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 2**31:
        raise ValueError("use a whole number of at least 1")
    return value


def whole(value: Any) -> int:
    """Return a whole number that is not negative."""
    return 0 if value == 0 and not isinstance(value, bool) else positive(value)


def between(low: int, high: int, fix: str = "") -> Callable[[Any], int]:
    """Return the reader of a whole number from `low` to `high`; `fix` replaces its advice."""

    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError(fix or f"use a whole number from {low} to {high}")
        return value

    return read


def several(value: Any, fix: str, sound: Callable[[int], bool] = bool) -> list[int]:
    """Return different whole numbers of at least 1, each `sound`; `fix` is the advice otherwise."""
    found = [positive(item) for item in (value if isinstance(value, list | tuple) else [value])]
    if not found or len(set(found)) != len(found) or not all(map(sound, found)):
        raise ValueError(fix)
    return found


def threads(value: Any) -> int | str:
    """Return a whole number of threads, or "all": as many as a rank has cores in the arm."""
    if value == "all":
        return "all"
    try:
        return positive(value)
    except ValueError:
        raise ValueError('use a whole number of at least 1, or "all"') from None


def wanted_threads(asked: Mapping[str, Any]) -> int:
    """Return the parameter "threads" as a Program takes it: 0 for "all"."""
    return 0 if asked["threads"] == "all" else int(asked["threads"])


def real(value: Any) -> float:
    """Return a number that is not negative, such as a delay."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("use a number, such as 0.05")
    if not (math.isfinite(value) and value >= 0):
        raise ValueError("use a number that is not negative, such as 0.05")
    return float(value)


one_of = fields.one_of
flag = one_of(True, False)


def word(value: Any) -> str:
    """Return a text that is not empty, such as a path; raises ValueError for anything else."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError("write it in quotes")
    return value


def absolute(value: Any) -> str:
    """Return an absolute path: a relative one would be looked for in the launch's directory."""
    path = word(value)
    if not path.startswith("/"):
        raise ValueError("write an absolute path, such as '/home/me/input'")
    return path


def folder(value: Any) -> str:
    """Return the absolute path of a directory, without a slash at its end."""
    if not isinstance(value, str) or not value.startswith("/"):
        raise ValueError('write the whole path of a folder that all ranks see, such as "/scratch"')
    return value.rstrip("/") or "/"


def matching(pattern: str, fix: str) -> Callable[[Any], str]:
    """Return the reader of a text that is all of `pattern`; `fix` is what to write."""

    def read(value: Any) -> str:
        if not isinstance(value, str) or not re.fullmatch(pattern, value, re.S):
            raise ValueError(fix)
        return value

    return read


address = matching(r"[\w.:-]+", "write the host name or address of rank 0 that the senders reach")
"""The reader of a host name or an address."""


def words(value: Any) -> list[str]:
    """Return a list of texts, such as more arguments of a program."""
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        raise ValueError('write a list of texts, such as ["-sf", "omp"]')
    return list(value)


def located(folder: Path, path: str) -> str:
    """Return `path`, relative to `folder`, as an absolute one; a name for the PATH as it is."""
    if not path or path.startswith("{") or not ("/" in path or is_directory(folder / path)):
        return path
    return str(folder.resolve() / path) + "/" * path.endswith("/")


def argv(value: Any) -> list[str]:
    """Return a program and its arguments from a list.

    Raises ValueError for a text, with the list that it stands for.

    >>> argv(["./solver", "-n", "4"])
    ['./solver', '-n', '4']
    """
    if isinstance(value, str):
        try:
            meant = commandline.split(value) if value.strip() else ("./solver",)
        except commandline.NotSplitError as error:
            meant = ("sh", "-c", value) if error.shell else ("./solver", "-n", "4")
        raise ValueError(f"write a list of the program and its arguments: {toml_list(meant)}")
    found = words(value)
    if not found or not found[0].strip():
        raise ValueError('name a program: ["./solver", "-n", "4"]')
    return found
