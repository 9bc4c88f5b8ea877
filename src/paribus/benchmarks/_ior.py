"""IOR's output, text and JSON: options, a row for each direction and repetition, a summary."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from paribus.benchmarks._dates import launch_date
from paribus.benchmarks._json import amount, document, inner
from paribus.benchmarks._tool import count, figure, line_at, line_of, once, refuse
from paribus.model import Case, Reading, Sample, Scalar

_TITLE = re.compile(r"^IOR-(\S+): MPI Coordinated Test of Parallel I/O", re.M)
_OPTION = re.compile(
    r"^(api|access|segments|tasks|nodes|repetitions|xfersize|blocksize) +: (.*?) *$"
)
_SIZE = re.compile(r"(\d+(?:\.\d+)?) (bytes|KiB|MiB|GiB|TiB)")
_BYTES = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_MAX = re.compile(r"Max (?:Write|Read): +\d+\.\d\d MiB/sec \(\d+\.\d\d MB/sec\)")
_REMOVE = re.compile(r"remove(?: +-){8} +\d+\.\d+ +\d+")
"""What IOR 3.3 prints between its rows and its summary, which says the same."""

_COLUMNS = {"bw(MiB/s)", "xfer(KiB)", "wr/rd(s)", "total(s)", "iter"}
_OPTIONS = ("api", "access", "segments", "tasks", "nodes", "repetitions", "xfersize", "blocksize")


def read(text: str) -> Reading:
    """Return bandwidth, and operations per second where printed, of every repetition."""
    for mark in ("ERROR: ", "WARNING: Incorrect data", "WARNING: incorrect data"):
        if (at := text.find(mark)) >= 0:
            refuse(f"IOR says {line_at(text, at).strip()[:160]!r}", line_of(text, at))
    if '"stoneWallingWearOut":' in text:
        return _of_json(document(text, '"stoneWallingWearOut":'))
    return _of_text(text)


def _of_json(said: dict[str, Any]) -> Reading:
    tests = inner(said, "tests")
    if len(tests) != 1:
        refuse(f"{len(tests)} tests in one output: one is read")
    inner(said, "Finished")
    options = {key: str(inner(tests, 0, "Options", key)) for key in _OPTIONS}
    rows: dict[str, list[tuple[float, float]]] = {}
    for number, row in enumerate(inner(tests, 0, "Results")):
        pair = amount(row, "bwMiB"), amount(row, "iops")
        rows.setdefault(str(inner(row, "access")), []).append(pair)
        if amount(row, "blockKiB") * 1024 != _size(options["blocksize"], 0):
            refuse(f"row {number} has another block size")
    summary = {}
    for entry in inner(said, "summary"):
        keys = ("bwMaxMIB", "bwMinMIB", "bwMeanMIB")
        high, low, mean = (amount(entry, key) for key in keys)
        summary[str(inner(entry, "operation"))] = (high, low, mean)
    options["began"] = str(said.get("Began", ""))
    return _reading(str(inner(said, "Version")), options, rows, summary, 0)


def _of_text(text: str) -> Reading:
    at = once(text, ": MPI Coordinated Test of Parallel I/O", "IOR's title")
    title = _TITLE.search(text, text.rfind("\n", 0, at) + 1)
    if not title:
        refuse("expected 'IOR-VERSION: MPI Coordinated Test of Parallel I/O'", line_of(text, at))
    results = once(text, "\nResults:", "IOR's heading 'Results:'")
    summed = once(text, "\nSummary of all tests:", "IOR's summary")
    once(text, "\nFinished ", "IOR's last line 'Finished'")
    options: dict[str, str] = {}
    for number, row in enumerate(text[at:results].split("\n"), line_of(text, at)):
        if found := _OPTION.match(row):
            if found[1] in options:
                refuse(f"{found[1]} is there twice", number)
            options[found[1]] = found[2]
    if missing := [key for key in _OPTIONS if key not in options]:
        refuse(f"the option {missing[0]} is missing", line_of(text, at))
    aggregate = _size(options["blocksize"], 0) * count(options["tasks"])
    aggregate *= count(options["segments"])
    if not aggregate:
        refuse("a block size, tasks or segments of nothing", line_of(text, at))
    began = re.search(r"^Began +: (.*)$", text[at:results], re.M)
    options["began"] = began[1] if began else ""
    rows = _rows(text[results + 1 : summed], line_of(text, results + 1), aggregate / 2**20)
    block = text[summed + 1 :].split("\nFinished ")[0]
    summary = _summary(block.split("\n"), line_of(text, summed + 1))
    return _reading(title[1], options, rows, summary, line_of(text, summed + 1))


def _rows(text: str, line: int, mib: float) -> dict[str, list[tuple[float, float]]]:
    """Return bandwidth and rate of each repetition by direction; 0 where no rate is printed."""
    names: list[str] = []
    found: dict[str, list[tuple[float, float]]] = {}
    for number, row in enumerate(text.split("\n"), line):
        cells = row.split()
        if not cells or row.startswith(("Results:", "------", "Commencing ")):
            continue
        if _MAX.fullmatch(row.strip()) or _REMOVE.fullmatch(row.strip()):
            continue
        if cells[0] == "access" and not names:
            names = cells
            if missing := _COLUMNS.difference(cells):
                refuse(f"the column {min(missing)} is missing", number)
            continue
        if len(cells) != len(names) or cells[0] not in ("write", "read"):
            refuse(f"expected a row of {len(names)} columns, got {row.strip()[:80]!r}", number)
        said = dict(zip(names, cells, strict=True))
        rate, took = figure(said["bw(MiB/s)"], number), figure(said["total(s)"], number)
        if abs(rate * took / mib - 1) > _slack(took, rate):
            refuse(f"{rate} MiB/s for {took} s are not {mib:g} MiB", number)
        iops = figure(said["IOPS"], number) if "IOPS" in said else 0.0
        if iops:
            busy, each = figure(said["wr/rd(s)"], number), figure(said["xfer(KiB)"], number)
            if abs(iops * busy * each / 1024 / mib - 1) > _slack(busy, iops):
                refuse(f"{said['IOPS']} operations per second do not give {mib:g} MiB", number)
        rows = found.setdefault(cells[0], [])
        if count(said["iter"], number) != len(rows):
            refuse(f"repetition {said['iter']} of {cells[0]} instead of {len(rows)}", number)
        rows.append((rate, iops))
    return found


def _slack(seconds: float, rate: float) -> float:
    """Return by what share two printed figures may differ: six decimals of s, two of rates."""
    return 0.002 + min(1e-6 / seconds, 0.02) + min(0.006 / rate, 0.02)


def _summary(lines: Sequence[str], line: int) -> dict[str, tuple[float, float, float]]:
    found = {}
    names: list[str] = []
    for number, row in enumerate(lines, line):
        cells = row.split()
        if not cells or row.startswith("Summary of"):
            continue
        if cells[0] == "Operation":
            names = cells
            if cells[1:4] != ["Max(MiB)", "Min(MiB)", "Mean(MiB)"]:
                refuse("expected the columns Max(MiB), Min(MiB), Mean(MiB)", number)
            continue
        if not names or len(cells) != len(names) or cells[0] in found:
            refuse(f"expected a direction and its summary, got {row.strip()[:80]!r}", number)
        high, low, mean = (figure(cell, number) for cell in cells[1:4])
        found[cells[0]] = (high, low, mean)
    return found


def _reading(
    version: str,
    options: Mapping[str, str],
    rows: Mapping[str, list[tuple[float, float]]],
    summary: Mapping[str, tuple[float, float, float]],
    line: int,
) -> Reading:
    """Return the reading, if rows and summary agree and no repetition is missing."""
    repetitions = count(options["repetitions"])
    if set(rows) != set(summary):
        refuse(f"rows of {sorted(rows)}, a summary of {sorted(summary)}", line)
    samples = []
    for op, found in rows.items():
        if len(found) != repetitions:
            refuse(f"{repetitions} repetitions of {op} were asked for, got {len(found)}", line)
        rates = tuple(rate for rate, _ in found)
        said = (max(rates), min(rates), sum(rates) / len(rates))
        if any(abs(a / b - 1) > 0.001 for a, b in zip(said, summary[op], strict=True)):
            refuse(f"the summary of {op} is not that of its rows", line)
        samples.append(Sample("bandwidth", Case.of(op=op), rates))
        if all(iops for _, iops in found):
            samples.append(Sample("iops", Case.of(op=op), tuple(iops for _, iops in found)))
    parameters: dict[str, Scalar] = {
        "api": options["api"],
        "access": options["access"],
        "segments": count(options["segments"]),
        "repetitions": repetitions,
        "block": _size(options["blocksize"], line),
        "transfer": _size(options["xfersize"], line),
    }
    facts = {"ior.nodes": count(options["nodes"]), **launch_date(options["began"])}
    return Reading("ior", version, parameters, count(options["tasks"]), tuple(samples), facts)


def _size(word: str, line: int) -> int:
    found = _SIZE.fullmatch(word)
    if not found:
        refuse(f"expected a size such as '1 MiB', got {word[:40]!r}", line)
    return round(float(found[1]) * _BYTES[found[2]])
