"""The thermo output of LAMMPS: what its last step says of the simulation."""

from __future__ import annotations

import re

from paribus.readers.text import line_at, refuse

_CLOCKS = {"Step", "CPU", "CPULeft", "T/CPU", "S/CPU", "Elapsed", "Elaplong", "Part", "Time"}
_NUMBER = re.compile(r"[-+]?(?:[\d.]+(?:e[-+]?\d+)?|nan|inf)", re.I)
_PAIR = re.compile(r"(\S{1,64}) += +(\S+)")


def last_thermo(text: str, start: int, end: int) -> dict[str, float]:
    """Return the last row of the table of a run: physical quantities by name, {} if none is seen.

    That is what two arms that did the same work agree on. Raises ParseError where one is no number.
    """
    names, row = _last_row(text, text.find("\n", start), end)
    found: dict[str, float] = {}
    for name, word in zip(names, row, strict=bool(row)):
        if name in _CLOCKS:
            continue
        if word.lower().strip("+-") in ("nan", "inf"):
            refuse(f"{name} of the last step is {word}: the simulation broke down")
        try:
            found[name] = float(word)
        except ValueError:
            continue
    return found


def _last_row(text: str, start: int, end: int) -> tuple[list[str], list[str]]:
    """Return the names of a table and its last row; [] for what is not there.

    From the end, because a table may have a million rows. Its first line, after `start`, says of
    which kind it is: `thermo_modify line` knows three.
    """
    head = line_at(text, start + 1)
    if head.startswith("---"):
        return (_last_yaml if head.strip() == "---" else _last_multi)(text, start, end)
    names: list[str] = []
    at = end
    while names[:1] != ["Step"]:
        if (at := text.rfind("Step", start, at)) < 0:
            names = head.split()
            break
        names = line_at(text, at).split()
    row: list[str] = []
    while (begin := text.rfind("\n", at if at >= 0 else start + 1, end)) >= 0:
        row, end = text[begin + 1 : end].split(), begin
        if len(row) == len(names) and (row[0].isdigit() or (at < 0 and _NUMBER.fullmatch(row[0]))):
            return names, row
    return names, []


def _last_multi(text: str, start: int, end: int) -> tuple[list[str], list[str]]:
    """Return names and values below the last line of dashes, each written NAME = VALUE."""
    begin = text.find("\n", max(start, text.rfind("- Step ", start, end)) + 1)
    pairs = _PAIR.findall(text, begin, end)
    return [name for name, _ in pairs], [value for _, value in pairs]


def _last_yaml(text: str, start: int, end: int) -> tuple[list[str], list[str]]:
    """Return names and last row of a table in YAML: lists with a comma after each element."""
    names, row = text.find("\nkeywords: [", start, end), text.rfind("\n  - [", start, end)
    if min(names, row) < 0:
        return [], []
    lists = (
        line_at(text, at + 1).partition("[")[2].rstrip("] ,").split(",") for at in (names, row)
    )
    named, values = ([word.strip(" '") for word in words] for words in lists)
    return (named, values) if len(named) == len(values) else ([], [])
