"""What llama-bench of llama.cpp writes, in each form but SQL: tokens/s of prompts and answers.

JSON (-o json, jsonl) has every repetition; the table that it prints by default, and CSV, have the
mean of a test:

    | model           |       size |     params | backend | ngl |  test |             t/s |
    | --------------- | ---------: | ---------: | ------- | --: | ----: | --------------: |
    | qwen3 0.6B Q8_0 | 761.80 MiB |   751.63 M | ROCm    | 999 | pp512 | 1932.32 ± 20.70 |

    build: e77056f (5163)
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from typing import Any

from paribus.core import Case, Metric, Reading, Sample, Scalar
from paribus.readers.figures import figure, near
from paribus.readers.harness import Harness, Measured, name_of, when
from paribus.readers.heads import Head
from paribus.readers.json import amount, inner, within_text
from paribus.readers.settings import PRINTED
from paribus.readers.text import line_of, refuse

MARK = '[\n  {\n    "build_commit": "'
_LINE = r'\{"build_commit"[^\n]*"n_prompt": (\d+), "n_gen": (\d+),(?: "n_depth": (\d+),)?[^\n]*'
"""A line of -o jsonl: one of a test that is above begins the output of another start."""

_CSV = "build_commit,build_number,"
_CSV_ROW = re.compile(r'"\w+","\d+",.*"[ \t]*')
_NUMBER = re.compile(r"-?\d{1,15}(?:\.\d{1,15})?")
_TABLE = "| model "
_ABOVE = r"(?:ggml|load|register|llama)_\w+: .*|Device \d+: .*"
"""Messages on the devices, before the table."""

_HEADING = re.compile(r"(?m)^(?:\| +\w+ +)+\| +test +\| +t/s +\|[ \t]*$")
_ROW = re.compile(r"(?m)^(?!\| *-{3,})[^|\n]*(?:\|[^|\n]*){3,}$")
_BUILD = re.compile(r"(?m)^build: (\w+) \((\d+)\)[ \t]*$")
_TEST = re.compile(r"((?:pp|tg|pp[1-9]\d*\+tg)[1-9]\d*)(?: @ d([1-9]\d*))?")
_SPEED = re.compile(r"(\d+\.\d\d) \S{1,4} \d+\.\d\d")
"""The sign between mean and standard deviation has several bytes, which not every copy keeps."""

MEAN = {"figure": "mean of repetitions"}
"""What distinguishes a launch of which the repetitions are not known."""

METRICS = (Metric("speed", "tokens/s", "higher"),)
COUNTS = ("n_batch", "n_ubatch", "n_threads")
"""Settings that two files must share; those of which one file has several distinguish its tests."""

_COLUMNS = ("n_batch", "n_ubatch", "threads")
"""COUNTS, as a table names them."""

FIXED = ("model_type", "type_k", "type_v", "n_gpu_layers", "split_mode", "flash_attn")
"""Settings that two files must share, and all tests of one."""

_FACT = f"{PRINTED}llama_bench."
"""Begins the keys of facts; those of JSON are found as settings are."""

_READ = frozenset(
    (
        *("build_commit", "build_number", *FIXED, *COUNTS, "n_prompt", "n_gen"),
        *("n_depth", "test_time", "avg_ns", "stddev_ns", "avg_ts", "stddev_ts"),
    )
)
"""Columns of CSV that are no facts."""

_ROUNDED = 1e-5
"""Rates have six digits."""


def read(text: str) -> list[Measured]:
    """Return the one launch in it: tests and repetitions are within a process."""
    if heading := _HEADING.search(text):
        return [Measured(_table(text, heading), None, METRICS)]
    lines = [json.loads(line[0]) for line in re.finditer(f"(?m)^{_LINE}", text)]
    of_csv = _CSV in text
    rows = _of_csv(text) if of_csv else lines or within_text(text, MARK)
    if not isinstance(rows, list) or not rows:
        refuse("llama-bench reports no test")
    for key in FIXED:
        if len(found := {str(inner(row, key)) for row in rows}) > 1:
            refuse(f"tests of several {key} ({', '.join(sorted(found))[:80]}): a file for each")
    several = [key for key in COUNTS if len({amount(row, key) for row in rows}) > 1]
    samples = [_sample(row, several, _mean if of_csv else _repetitions) for row in rows]
    first = rows[0]
    parameters: dict[str, Scalar] = {key: name_of(first, key) for key in FIXED}
    parameters |= {key: int(amount(first, key)) for key in COUNTS if key not in several}
    facts = {}
    if of_csv:
        parameters |= MEAN
        facts = {f"{_FACT}{key}": v for key, v in first.items() if key not in _READ}
    version = f"{name_of(first, 'build_commit')} ({name_of(first, 'build_number')})"
    reading = Reading("llama_bench", version, parameters, None, tuple(samples), facts)
    return [Measured(reading, when(inner(first, "test_time")), METRICS)]


def _sample(
    row: Any, several: list[str], speeds_of: Callable[[Any, int, str], list[float]]
) -> Sample:
    """Return the speed of each repetition of a test; raises ParseError if its times say another.

    `several` are the COUNTS that distinguish tests of this file; `speeds_of` reads a row with its
    number of tokens and its name.
    """
    prompt, answer = (int(amount(row, key, zero=True)) for key in ("n_prompt", "n_gen"))
    tokens = prompt + answer
    test = "+".join(f"{kind}{n}" for kind, n in (("pp", prompt), ("tg", answer)) if n)
    if not tokens:
        refuse("a test of no token")
    speeds = speeds_of(row, tokens, test)
    if depth := int(amount(row, "n_depth", zero=True)) if "n_depth" in row else 0:
        test += f" at {depth}"
    case = Case.of(test=test, **{key: int(amount(row, key)) for key in several})
    return Sample("speed", case, tuple(speeds))


def _repetitions(row: Any, tokens: int, test: str) -> list[float]:
    """Return the speed of each repetition, from its time."""
    times, rates = inner(row, "samples_ns"), inner(row, "samples_ts")
    took_ns = [amount(times, at) for at in range(len(times))]
    printed = [amount(rates, at) for at in range(len(rates))]
    if not took_ns or len(took_ns) != len(printed):
        refuse(f"{test} has {len(took_ns)} times and {len(printed)} rates")
    speeds = [tokens * 1e9 / ns for ns in took_ns]
    if not all(near(one, other, _ROUNDED) for one, other in zip(printed, speeds, strict=True)):
        refuse(f"a rate of {test} is not {tokens} tokens by its time")
    for key, values, share in (("avg_ns", took_ns, 1e-9), ("avg_ts", speeds, 1e-6)):
        mean = sum(values) / len(values)
        if abs(amount(row, key) - mean) > 1 + share * mean:
            refuse(f"{key} of {test} is not the mean of its repetitions")
    return speeds


def _mean(row: Any, tokens: int, test: str) -> list[float]:
    """Return the mean speed of a test, of which CSV has no repetition.

    It is above the tokens by the mean time by about the squared variation of the times.
    """
    took_ns, speed = amount(row, "avg_ns"), amount(row, "avg_ts")
    varies = amount(row, "stddev_ns", zero=True) / took_ns
    if not near(speed, tokens * 1e9 / took_ns, _ROUNDED + 2 * varies**2):
        refuse(f"the rate of {test} is not {tokens} tokens by its time")
    return [speed]


def _of_csv(text: str) -> list[dict[str, Any]]:
    """Return the rows of CSV, with numbers as JSON has them; messages may stand between them."""
    at = text.index(_CSV)
    head, *below = text[at:].splitlines()
    names = head.split(",")
    found = []
    for number, line in enumerate(below, line_of(text, at) + 1):
        if '","' in line:
            cells = next(csv.reader([line]))
            if not _CSV_ROW.fullmatch(line) or len(cells) != len(names):
                refuse(f"no row of its CSV: {line[:120]!r}", number)
            found.append(dict(zip(names, map(_value, cells), strict=True)))
    return found


def _value(cell: str) -> str | float:
    """Return what a cell of CSV is in JSON."""
    if not _NUMBER.fullmatch(cell):
        return cell
    return float(cell) if "." in cell else int(cell)


def _table(text: str, heading: re.Match[str]) -> Reading:
    """Return what the table says that is printed by default; messages may stand between its rows.

    It has no column for what is left as it is by default.
    """
    end = _BUILD.search(text, heading.end())
    if end is None:
        refuse("the table ends without its line 'build: ...'", line_of(text, heading.start()))
    names, rows = _cells(heading[0]), []
    for line in _ROW.finditer(text, heading.end(), end.start()):
        cells = _cells(line[0])
        test, speed = _TEST.fullmatch(cells[-2]), _SPEED.fullmatch(cells[-1])
        if len(cells) != len(names) or test is None or speed is None or not all(cells):
            refuse(f"no row of the table: {line[0][:120]!r}", line_of(text, line.start()))
        case = f"{test[1]} at {test[2]}" if test[2] else test[1]
        rows.append((case, figure(speed[1]), dict(zip(names, cells[:-2], strict=False))))
    if not rows:
        refuse("the table has no row", line_of(text, heading.start()))
    _, _, first = rows[0]
    several = [name for name in first if len({row[name] for _, _, row in rows}) > 1]
    for name in several:
        if name not in _COLUMNS:
            found = ", ".join(sorted({row[name] for _, _, row in rows}))
            refuse(f"tests of several {name} ({found[:80]}): a file for each")
    cases = [
        Case.of(test=test, **{key: int(figure(row[key])) for key in several})
        for test, _, row in rows
    ]
    samples = tuple(Sample.column("speed", cases, [speed for _, speed, _ in rows]))
    parameters = {one: name_of(first, one) for one in first if one not in (*several, "backend")}
    facts = {f"{_FACT}backends": first["backend"]} if "backend" in first else {}
    return Reading("llama_bench", f"{end[1]} ({end[2]})", parameters | MEAN, None, samples, facts)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.sub(r"^\||\|[ \t]*$", "", line).split("|")]


HARNESS = Harness(
    "llama_bench",
    read,
    marks=(MARK, '{"build_commit": "', _CSV, " params | backend "),
    heads=(
        Head("[", r'\{\s*"build_commit"\s*:'),
        Head("{", r'"build_commit"\s*:', block=rf"{_LINE}\n?"),
        Head(_CSV),
        Head(_TABLE, r"\| model +\| +size \| +params \| .*\| +test \| +t/s \|", above=_ABOVE),
    ),
    launches=(
        "a file is one launch, because all tests are in one process: a repetition is a sample,"
        " pp512 a prompt of 512 tokens, tg128 an answer of 128; a table and CSV have means, and"
        " are not compared with repetitions"
    ),
    versions="build 5163 (-o json), 6865 to 9010 (-o jsonl, csv), 7693 to 9536 (tables)",
    proof=(
        "every rate is the tokens of its test by its time, and the means are those of the"
        " repetitions; a table ends with the build"
    ),
    from_text=True,
)
