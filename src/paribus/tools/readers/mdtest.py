"""What mdtest prints: a row for each operation, in operations per second, such as

Operation                      Max            Min           Mean        Std Dev
Directory creation        :      26871.818      16015.007      22434.966       4648.316
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection

from paribus.core import Reading, Sample, Scalar
from paribus.readers.dates import date
from paribus.readers.heads import Head
from paribus.readers.reader import Reader, of_nodes, point
from paribus.readers.text import begin, line_of, once, refuse

_TITLE = re.compile(r"mdtest-(\S+) was launched with ([1-9]\d*) total task\(s\) on (\d+) node")
_ITEMS = re.compile(r"\n(\d+) tasks, (\d+) (files/directories|files?|directories) *(?=\n)")
_SHARED = re.compile(r"\nCommand line used: [^\n]* '?-S\b")
"""With -S all tasks work on the same files, so their number is not that of each task."""

_SUMMARY = re.compile(
    r"\nSUMMARY(?: rate)?(?: \(in ops/sec\))? *: *\(of (\d+) iterations?\) *\n"
    r" +Operation +(?:per Rank: )?Max +Min +Mean +Std Dev *\n(?: +-+)+ *(?=\n)"
)
_TIMES = "\nSUMMARY time"
"""The beginning of the heading of a second table (-P): the same as times."""

_END = "\n-- finished at "
_ROW = re.compile(
    r"^ +((?:Directory|File|Tree) (?:creation|stat|rename|read|removal)) *:? +"
    r"(\d+\.\d+) +(\d+\.\d+) +(\d+\.\d+) +(\d+\.\d+) *$",
    re.M,
)
_STOPPED = re.compile(
    r"^(?: +File create \(stonewall\) *: +NA +NA +\d+\.\d+ +NA *|V-\d: .*)\n", re.M
)
"""Rows that are left out: with -W the rate until the first task stopped (3.3), and those of -V."""

_COMPLAINTS = ("ERROR: ", "FAIL", "was launched with -")
_WARNING = re.compile(r"^WARNING: (unable to (?!use realpath).*\S)", re.M)
_LAUNCHED = " was launched with "
NAMES = {"directories": "Directory", "files": "File"}
OWN = {
    "directories": ("creation", "stat", "rename", "removal"),
    "files": ("creation", "stat", "read", "removal"),
}


def read(text: str) -> Reading:
    """Return the mean rate of every operation over mdtest's iterations."""
    at = begin(text, _LAUNCHED, "mdtest's line 'was launched with'", "mdtest", _COMPLAINTS)
    title = _TITLE.match(text, text.rfind("\n", 0, at) + 1)
    items, summary = _ITEMS.search(text, at), _SUMMARY.search(text, at)
    if not (title and items and summary) or text.count("\nSUMMARY") - text.count(_TIMES) != 1:
        refuse("title, number of items or heading of the table are not whole", line_of(text, at))
    once(text, _END[1:], "mdtest's last line '-- finished at'")
    if items[1] != title[2]:
        refuse(f"{title[2]} tasks and {items[1]} tasks", line_of(text, items.start() + 1))
    table = text[summary.end() :].partition(_END)[0].partition(_TIMES)[0]
    table = _STOPPED.sub("", table)
    parts = _ROW.split(table)
    if "".join(parts[::6]).strip():
        for number, row in enumerate(table.split("\n"), line_of(text, summary.end())):
            if row.strip() and not _ROW.match(row):
                refuse(f"expected an operation with four figures, got {row.strip()[:80]!r}", number)
    names, iterations = parts[1::6], int(summary[1])
    kind = "files" if items[3] == "file" else items[3]
    _check_rows(names, title[1], kind)
    samples = []
    figures = (map(float, parts[at::6]) for at in range(2, 6))
    for name, high, low, mean, spread in zip(names, *figures, strict=True):
        if high == low == mean == spread == 0.0:
            continue
        if not (mean > 0 and _fit(high, low, mean, spread, iterations)):
            line = line_of(text, text.index(name, summary.end()))
            refuse(f"maximum, minimum, mean and deviation of {name} do not fit", line)
        samples.append(Sample("rate", point(op=name.lower()), (mean,)))
    tasks = int(title[2])
    parameters: dict[str, Scalar] = {
        "items": int(items[2]) // (1 if _SHARED.search(text, at) else tasks),
        "kind": "all" if "/" in kind else kind,
        "iterations": iterations,
    }
    facts = {"mdtest.nodes": int(title[3])}
    warned = _WARNING.search(text, at) if "WARNING: unable to " in text else None
    guards = (f"mdtest says {warned[1][:120]!r}",) if warned else ()
    return Reading("mdtest", title[1], parameters, tasks, tuple(samples), facts, guards)


def _fit(high: float, low: float, mean: float, spread: float, n: int) -> bool:
    """Return whether `n` values can have these figures, which are printed with three decimals."""
    # Version 3.3 takes the ends from all tasks: these agree to six digits, and deviate by nothing.
    if not low <= mean <= high or (spread == 0.0 and high - low > max(0.0015, 2e-5 * high)):
        return False
    # What values between low and high with this mean can deviate at most (Bhatia-Davis).
    most = math.sqrt((high - mean) * (mean - low) * n / max(n - 1, 1))
    return spread <= most + 0.001 + 1e-6 * high


def _check_rows(rows: Collection[str], version: str, kind: str) -> None:
    """Refuse a table that lacks a row of its kind: mdtest prints all, with 0 for what it left out.

    Version 4 renames directories, and some of version 3 do.
    """
    kinds = ("directories", "files") if "/" in kind else (kind,)
    wanted = [f"{NAMES[one]} {word}" for one in kinds for word in OWN[one]]
    if not version.startswith("4") and "Directory rename" not in rows:
        wanted = [row for row in wanted if row != "Directory rename"]
    for row in (*wanted, "Tree creation", "Tree removal"):
        if row not in rows:
            refuse(f"the row of {row} is missing")


READER = Reader(
    "mdtest",
    read,
    marks=(_LAUNCHED,),
    heads=(Head("mdtest-", rf"mdtest-\S+{_LAUNCHED}", above="-- started at .*"),),
    versions="1.9.3 to 4.1",
    proof=(
        "tasks, items, kind and iterations as asked, every operation with maximum, minimum, mean"
        " and deviation that fit each other, '-- finished at'"
    ),
    means=(
        "the mean over iterations, for single ones are not printed; with few files of one node"
        " it is the speed of the kernel's caches, and a read of empty files opens and closes only"
    ),
    dates=(
        date(
            "started at ", r".*started at (\d\d/\d\d/\d{4} \d\d:\d\d:\d\d) --", "%m/%d/%Y %H:%M:%S"
        ),
    ),
    facts=(of_nodes("mdtest.nodes"),),
)
