"""What HPL (2.0 to 2.3) and the HPL inside HPCC print: settings, rows, residuals.

A row, such as "WR11C2R4        8000   192     1     2              12.34             2.7679e+01",
gives N, NB, P, Q, a time with two decimals, and Gflop/s. The operations are known (HPL_pdtest.c:
2/3 N^3 + 3/2 N^2), so that time and speed can be checked against each other.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from paribus.core import grouped
from paribus.readers.text import line_of, refuse

BEFORE = r"={70,90}|#{60,80}|Core: \w+|HPL-NVIDIA \d.*|AMD Zen HPL \S+|Using AOCL .*|Derived from:"
"""Lines above a title: rules, and what OpenBLAS and the vendors' binaries print when they start."""

_CORE = re.compile(r"\nCore: (\w+)[ \t]*(?![^\n])")
_SETTING = re.compile(r"^([A-Z][A-Z0-9]*) +: ([\t -~]*(?:\n(?: {6}[\t -~]*|[ \t]*))*)$", re.M)
"""A setting with its values: more of them are on lines that are indented."""

_LINE = re.compile(
    r"\n(?:W([RC]\w+(?: \d{3}(?=(?: +\d+){4} +\d+\.))?)"
    r" +(\d+) +(\d+) +(\d+) +(\d+) +(\d+\.\d\d) +(\d\.\d+e[+-]\d\d)"
    r"(?: +\( *(\d\.\d+e[+-]\d\d)\))?"
    r"|\|\|Ax-b\|\|_oo/\(eps\*[^=\n]*= +([0-9.]+(?:e[+-]\d\d)?) \.{6} (PASSED|FAILED))"
    r"[ \t]*(?![^\n])"
)
_TOTALS = re.compile(
    r"\nFinished +(\d+) tests with the following results:\n"
    r" +(\d+) tests completed and passed residual checks,\n"
    r" +(\d+) tests completed and failed residual checks,\n"
    r" +(\d+) tests skipped because of illegal input values\.(?![^\n])"
)
_LIMIT = re.compile(r"\n- Computational tests pass if scaled residuals are less than +(\d+\.\d+)\n")
_Line = tuple[str, ...]
"""The groups of _LINE: variant, N, NB, P, Q, time, speed and speed of each GPU for a row, then
residual and PASSED or FAILED for a residual; the other groups are "".

NVIDIA's binary prints the speed of each GPU since 2023; AMD's has a swap behind the variant.
"""

_ROUNDED = re.compile(r"\n\[WARNING\] Change Input (NB?) (\d+) to (\d+)[ \t]*(?![^\n])")
"""A warning of NVIDIA's binary: it solves a system of whole blocks instead."""

_LISTS = ("PFACT", "NBMIN", "NDIV", "RFACT", "BCAST", "DEPTH")
"""Settings of which HPL tries all values with each other."""


class Row(NamedTuple):
    """One solved system: its encoded variant, its parameters, and its Gflop/s."""

    variant: str
    n: int
    nb: int
    p: int
    q: int
    gflops: float


def cores(text: str) -> dict[str, str]:
    """Return the kernels that OpenBLAS chose, as a fact; nothing where it did not say."""
    found = sorted(set(_CORE.findall("\n" + text))) if "Core: " in text else []
    return {"lib.blas.core": "/".join(found)} if found else {}


def settings(text: str, start: int) -> dict[str, list[str]]:
    """Return the settings that HPL prints below its title, by name, each as a list of words."""
    begin = text.find("The following parameter values will be used:", start)
    if begin < 0:
        refuse("HPL does not say which settings it uses")
    ends = [at for rule in ("\n---", "\n===") if (at := text.find(rule, begin)) >= 0]
    block = text[text.find("\n", begin) : min(ends, default=len(text))]
    parts = _SETTING.split(block)
    between, names, values = parts[::3], parts[1::3], parts[2::3]
    if other := "".join(between).strip():
        refuse(
            f"expected a setting of HPL, got {other.splitlines()[0][:60]!r}", line_of(text, begin)
        )
    found = dict(zip(names, map(str.split, values), strict=True))
    if len(found) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        refuse(f"the setting {twice} is there twice", line_of(text, begin))
    if missing := [key for key in ("N", "NB", "P", "Q", *_LISTS) if not found.get(key)]:
        refuse(f"the setting {missing[0]} of HPL is missing", line_of(text, begin))
    return found


def rows(text: str, start: int, asked: dict[str, list[str]]) -> list[Row]:
    """Return the solved systems after `start`, as many as the settings `asked` for.

    Raises ParseError where one is missing or its residual is not below the limit.
    """
    limit = _LIMIT.search(text, start)
    if limit is None:
        cause = "the limit of the residuals is missing: HPL.dat has a threshold of 0 or less"
        refuse(cause, line_of(text, start))
    places = list(_LINE.finditer(text, start))
    lines = [place.groups("") for place in places]
    for number, (line, place) in enumerate(zip(lines, places, strict=True)):
        # A row, its residual, the next row.
        if wrong := _wrong_residual(line, limit[1]) if number % 2 else _wrong_row(line):
            refuse(wrong, line_of(text, place.start() + 1))
    _check_count(text, start, lines, asked)
    return [
        Row(variant, int(n), int(nb), int(p), int(q), float(gflops))
        for variant, n, nb, p, q, _, gflops, _, _, _ in lines[::2]
    ]


def _wrong_row(line: _Line) -> str:
    """Return why a line is not a whole row, "" if it is one."""
    _, n, _, p, q, seconds, speed, share, residual, _ = line
    if residual:
        return "a residual without the row that it belongs to"
    gflops = float(speed)
    if not (gflops > 0 and int(n)):
        return f"{speed} Gflop/s is not a figure"
    right = operations(int(n)) * 1e-9 / gflops
    if abs(right - float(seconds)) > 0.006 + 1e-3 * right:
        return f"{speed} Gflop/s for {seconds} s are not the work of N = {n}"
    if share and abs(float(share) * int(p) * int(q) - gflops) > 1e-3 * gflops:
        return f"{speed} Gflop/s are not {share} of each of {p} times {q} GPUs"
    return ""


def _wrong_residual(line: _Line, limit: str) -> str:
    """Return why a line is not a residual that passed, "" if it is one."""
    residual, word = line[8:]
    if not residual:
        return "the row before has no residual check"
    if word == "FAILED" or not float(residual) < float(limit):
        return f"residual check failed: {residual} is not below {limit}"
    return ""


def _check_count(text: str, start: int, lines: list[_Line], settings: dict[str, list[str]]) -> None:
    """Refuse rows that are not those of the settings, or not those that the last lines count."""
    totals = _TOTALS.findall(text, start)
    if len(totals) != 1:
        refuse("the counts of passed and failed tests are missing")
    finished, passed, failed, skipped = map(int, totals[0])
    if failed or skipped or finished != passed:
        refuse(f"of {finished} tests {failed} failed and {skipped} were skipped")
    solved = lines[::2]
    if not (2 * len(solved) == len(lines) == 2 * passed > 0):
        had = f"{len(solved)} rows and {len(lines) // 2} residuals"
        refuse(f"{passed} tests passed, but there are {had}")
    grids = zip(settings["P"], settings["Q"], strict=False)
    rounded = grouped(((name, n), to) for name, n, to in _ROUNDED.findall(text, start))
    blocks = [rounded.get(("NB", nb), [nb])[-1] for nb in settings["NB"]]
    # A size that is listed again is solved again.
    asked = Counter(
        (_whole(n, nb, rounded.get(("N", n), ())), nb, *grid)
        for n, nb, grid in product(settings["N"], blocks, grids)
    )
    counted = Counter(line[1:5] for line in solved)
    if asked.keys() != counted.keys():
        refuse("the rows are not those of the settings N, NB, P and Q")
    times = math.prod(len(settings[key]) for key in _LISTS)
    if any(counted[one] != number * times for one, number in asked.items()):
        refuse("there are not as many rows as the settings ask for")


def _whole(n: str, nb: str, rounded: Sequence[str]) -> str:
    """Return the N that was solved for `n` with blocks of `nb`: one of those it was `rounded` to.

    It is rounded to another N for each size of the blocks.
    """
    if not rounded or not nb.isdecimal() or not int(nb):
        return n
    return next((to for to in (n, *rounded) if int(to) % int(nb) == 0), n)


def operations(n: int) -> float:
    """Return the floating-point operations that HPL counts (HPL_pdtest.c)."""
    return n * n * (2 / 3 * n + 3 / 2)
