"""What nvbandwidth prints, as text or JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from paribus.core import Case, Reading, Sample
from paribus.readers.heads import Head
from paribus.readers.reader import Reader, of_device
from paribus.readers.text import found, line_of, once, refuse, refuse_said
from paribus.tools.readers.matrix import Cells, matrix

_VERSION = re.compile(r"nvbandwidth Version: v?(\S+)[ \t]*$", re.M)
_RUNNING = re.compile(r"Running (\w+)\.[ \t]*$", re.M)
_DESCRIPTION = re.compile(r"(\S.*) (bandwidth \(GB/s\)|\(ns\))[ \t]*$", re.M)
_SUM = re.compile(r"SUM (\w+) (\d+\.\d\d)[ \t]*$", re.M)
_COMPLAINTS = (
    "ASSERT in expression",
    "Invalid value when checking the pattern",
    "[CUDA_ERROR",
    "ERROR:",
)
_FIGURE = re.compile(r"\d+(\.\d+)?(e[+-]?\d+)?")
_JSON = json.JSONDecoder()
_METRIC = {"bandwidth (GB/s)": "bandwidth", "(ns)": "latency"}


# A launch asks for many test cases, and the next launch for the same.
@lru_cache(maxsize=128)
def cases_of(name: str, rows: int, columns: int) -> tuple[Case, ...]:
    """Return the cases of a matrix, row after row."""
    return tuple(
        Case.of(test=name, row=row, column=column)
        for row in range(rows)
        for column in range(columns)
    )


def read(text: str) -> Reading:
    """Return the cells of every matrix; cells that are not available are left out."""
    refuse_said(text, _COMPLAINTS, "nvbandwidth says:")
    if (at := text.find('"nvbandwidth"')) >= 0:
        return _of_json(text, text.rfind("{", 0, at))
    version = _VERSION.match(text, once(text, "nvbandwidth Version:"))
    if version is None:
        refuse("the line 'nvbandwidth Version:' is damaged")
    samples: list[Sample] = []
    summed = found(text, "SUM ", _SUM)
    described = [m for mark in _METRIC for m in found(text, f" {mark}", _DESCRIPTION)]
    described.sort(key=re.Match.start)
    started = [match[1] for match in found(text, "Running ", _RUNNING)]
    if text.count("Running ") != len(started) or len(set(started)) != len(started):
        refuse("a line 'Running NAME.' is damaged or there twice")
    if not summed and not described and "Waived" in text:
        refuse("every test case was waived: this machine has not the devices that they need")
    if not len(summed) == len(described) == text.count("\nSUM ") or not summed:
        refuse(f"{len(described)} matrices are announced, {len(summed)} are summed up")
    for heading, total in zip(described, summed, strict=True):
        cells, columns, end = matrix(text, heading.end() + 1)
        if text[end : total.start()].strip() or heading.start() > total.start():
            refuse(f"something stands before 'SUM {total[1]}'", line_of(text, end))
        if not any(total[1].startswith(name) for name in started):
            refuse(f"{total[1]} was not announced", line_of(text, total.start()))
        samples += _samples(cells, columns, total[1], _METRIC[heading[2]], float(total[2]))
    waived = text.count("\nWaived")
    done = {name for name in started for total in summed if total[1].startswith(name)}
    if len(started) > len(done) + waived:
        refuse("a test case was begun and has neither a matrix nor the word 'Waived'")
    return _reading(version[1], samples, waived)


def _of_json(text: str, at: int) -> Reading:
    """Return the reading of the JSON form: {"nvbandwidth": {"testcases": [...]}}."""
    once(text, '"nvbandwidth"')
    try:
        tree: Any = _JSON.raw_decode(text, max(at, 0))[0]["nvbandwidth"]
        if "error" in tree:
            refuse(f"nvbandwidth says: {str(tree['error'])[:160]!r}")
        samples: list[Sample] = []
        waived = 0
        names = [str(test["name"]) for test in tree["testcases"]]
        for test, name in zip(tree["testcases"], names, strict=True):
            if test["status"] == "Waived":
                waived += 1
                continue
            if test["status"] != "Passed" or "error" in test:
                refuse(f"{name}: {test.get('error', test['status'])}"[:160])
            named = str(test["bandwidth_description"]).rpartition(" ")[0].rpartition(" ")[2]
            metric = {"bandwidth": "bandwidth", "latency": "latency"}[named]
            rows = test["bandwidth_matrix"]
            if len({len(row) for row in rows}) != 1:
                refuse(f"{name}: its rows are not of one length")
            cells = [None if word == "N/A" else _figure(word) for row in rows for word in row]
            samples += _samples(cells, len(rows[0]), name, metric, float(test["sum"]))
        version = str(tree["version"])
    except (ValueError, KeyError, TypeError, IndexError) as error:
        refuse(f"the JSON is damaged: {type(error).__name__}: {str(error)[:100]}")
    if len(set(names)) != len(names) or not version:
        refuse("the JSON names a test case twice, or no version")
    return _reading(version.removeprefix("v"), samples, waived)


def _reading(version: str, samples: Sequence[Sample], waived: int) -> Reading:
    """Return the reading, with the number of test cases that were waived as a fact."""
    facts = {"nvbandwidth.waived": waived}
    return Reading("nvbandwidth", version, {}, None, tuple(samples), facts)


def _figure(word: object) -> float:
    if not isinstance(word, str) or not _FIGURE.fullmatch(word):
        raise ValueError(f"{word!r} is not a figure")
    return float(word)


def _samples(cells: Cells, columns: int, name: str, metric: str, total: float) -> Iterable[Sample]:
    """Return a sample of each cell; refuses cells that do not add up to `total`, their printed sum.

    Copies of a GPU to itself are N/A, or 0.00 in older versions.
    """
    values = [value for value in cells if value is not None]
    # Printed with two decimals (text) or six digits (JSON).
    if abs(sum(values) - total) > 0.0051 * (len(values) + 1) + 1e-5 * total or not values:
        refuse(f"{name}: the cells add up to {sum(values):.2f}, not to {total:.2f}")
    rows = len(cells) // columns
    diagonal = slice(0, columns * columns, columns + 1)
    if rows == columns and len({value is None for value in cells[diagonal]}) > 1:
        refuse(f"{name}: rows are not in order, for some of the diagonal is N/A and some is not")
    if rows > 1:
        cells[diagonal] = [value or None for value in cells[diagonal]]
    every = zip(cases_of(name, rows, columns), cells, strict=True)
    return [Sample(metric, case, (value,)) for case, value in every if value is not None]


READER = Reader(
    "nvbandwidth",
    read,
    marks=("nvbandwidth Version:", '"nvbandwidth"'),
    heads=(Head("nvbandwidth Version:"), Head("{", r'"nvbandwidth"\s*:')),
    versions="0.2 to 0.10",
    proof=(
        "version once, every test case begun has its matrices, rows and columns numbered from 0,"
        " cells that add up to the printed SUM, status Passed, no assertion and no error"
    ),
    means=(
        "median of 3 copies of 512 MiB; GB of 10^9 B, latencies in ns; ce is the copy engine, sm a"
        " kernel; cells that are N/A are left out; a sum of pairs measured one after the other is"
        " no bandwidth of the whole"
    ),
    facts=(of_device("nvbandwidth.waived"),),
)
