"""What IOR prints, as text or JSON: options, a row for each direction and repetition, a summary.

access    bw(MiB/s)  IOPS       Latency(s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   ...
write     2762.36    5113       0.000391    8192       1024.00    0.001840   0.003129   ...
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from paribus.core import Reading, Sample, Scalar
from paribus.readers.dates import CTIME, date
from paribus.readers.figures import count, figure
from paribus.readers.heads import Head
from paribus.readers.json import amount, document, inner
from paribus.readers.reader import Reader, of_nodes, point
from paribus.readers.text import begin, line_of, once, refuse
from paribus.readers.units import size_of

_COMPLAINTS = ("ERROR: ", "WARNING: Incorrect data", "WARNING: incorrect data")
_MARK = ": MPI Coordinated Test of Parallel I/O"
_JSON = '"stoneWallingWearOut":'
_TITLE = re.compile(r"IOR-(\S+): MPI Coordinated Test of Parallel I/O")
_OPTION = re.compile(
    r"\n(api|access|segments|tasks|nodes|clients per node|repetitions|xfersize|blocksize)"
    r" +: ([^\n]*)"
)
_STONEWALL = re.compile(
    r"\n(?:stonewallingTime +: |stonewalling pairs accessed[^\n]* time: )([\d.]*)"
)
_SUMMED = "IOR's summary (IO500 prints none: give its result_summary.txt)"
_SIZE = re.compile(r"(\d+(?:\.\d+)?) (bytes|KiB|MiB|GiB|TiB)")
_PASSED_OVER = re.compile(
    r"Results:|------|Commencing |Verifying contents of the file\(s\) just written\.|\s*(?:"
    r"Max (?:Write|Read): +\d+\.\d\d MiB/sec \(\d+\.\d\d MB/sec\)|remove(?: +-){6,8} +\d+\.\d+ +\d+"
    r"|[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}"
    r"|Using Time Stamp \d+ \(0x[0-9a-f]+\) for Data Signature"
    r"|hints (?:passed to MPI_File_open\(\)|returned from opened file) \{|\w+ = [^\n]*|\}"
    r")?$"
)
"""Lines between the rows that are skipped: IOR 3.2 and 3.3 print there what their summary has too,
with -W when they began to compare what was written, with -v hints of MPI-IO and a signature of the
data.
"""

_SMALLER = "\nWARNING: Using actual aggregate bytes moved"

_COLUMNS = {"bw(MiB/s)", "xfer(KiB)", "wr/rd(s)", "total(s)", "iter"}
_OPTIONS = ("api", "access", "segments", "tasks", "repetitions", "xfersize", "blocksize")


def read(text: str) -> Reading:
    """Return bandwidth, and operations per second where printed, of every repetition."""
    mark = _JSON if _JSON in text else _MARK
    at = begin(text, mark, "IOR's title", "IOR", _COMPLAINTS)
    return _of_json(document(text, mark)) if mark == _JSON else _of_text(text, at)


def _of_json(tree: dict[str, Any]) -> Reading:
    """Return the reading of the JSON form."""
    tests = inner(tree, "tests")
    if len(tests) != 1:
        refuse(f"{len(tests)} tests in one output: one is read", form=True)
    inner(tree, "Finished")
    if stopped := inner(tests, 0, "Parameters").get("deadlineForStonewall"):
        _refuse_stonewall(stopped, 0)
    asked = inner(tests, 0, "Options")
    options = {key: str(inner(asked, key)) for key in (*_OPTIONS, "nodes")}
    block = _size(options["blocksize"], 0) / 1024
    rows: dict[str, list[tuple[float, float]]] = {}
    for number, row in enumerate(inner(tests, 0, "Results")):
        pair = amount(row, "bwMiB"), amount(row, "iops")
        rows.setdefault(str(inner(row, "access")), []).append(pair)
        if amount(row, "blockKiB") != block:
            refuse(f"row {number} has another block size")
    summary = {}
    for entry in inner(tree, "summary"):
        keys = ("bwMaxMIB", "bwMinMIB", "bwMeanMIB")
        high, low, mean = (amount(entry, key) for key in keys)
        summary[str(inner(entry, "operation"))] = (high, low, mean)
    return _reading(str(inner(tree, "Version")), options, rows, summary, 0)


def _of_text(text: str, at: int) -> Reading:
    """Return the reading of the text form, whose title is at `at`."""
    title = _TITLE.match(text, text.rfind("\n", 0, at) + 1)
    if not title:
        refuse("expected 'IOR-VERSION: MPI Coordinated Test of Parallel I/O'", line_of(text, at))
    if text.find("\nSummary:\n", at) >= 0 and text.find("\nResults:", at) < 0:
        cause = f"IOR {title[1]} prints its options as IOR before 3.2 did, which is not read"
        refuse(cause, form=True)
    results = once(text, "\nResults:", "IOR's heading 'Results:'")
    if stopped := _STONEWALL.search(text, at):
        _refuse_stonewall(stopped[1], line_of(text, stopped.start() + 1))
    if (smaller := text.find(_SMALLER, at)) >= 0:
        reported = "the file had not the size that was asked for, so other bytes were moved"
        refuse(
            f"{reported}: write it whole, or give the result_summary.txt of IO500",
            line_of(text, smaller + 1),
            form=True,
        )
    summed = once(text, "\nSummary of all tests:", _SUMMED)
    finished = once(text, "\nFinished ", "IOR's last line 'Finished'")
    found = _OPTION.findall(text, at, results)
    options = {key: value.rstrip(" ") for key, value in found}
    if len(options) < len(found):
        keys = [key for key, _ in found]
        twice = next(key for key in keys if keys.count(key) > 1)
        refuse(f"{twice} is there twice", line_of(text, text.rfind(f"\n{twice} ", at, results) + 1))
    if missing := [key for key in _OPTIONS if key not in options]:
        refuse(f"the option {missing[0]} is missing", line_of(text, at))
    aggregate = _size(options["blocksize"], 0) * count(options["tasks"])
    aggregate *= count(options["segments"])
    if not aggregate:
        refuse("a block size, tasks or segments of nothing", line_of(text, at))
    rows = _rows(text[results + 1 : summed], line_of(text, results + 1), aggregate / 2**20)
    line = line_of(text, summed + 1)
    summary = _summary(text[summed + 1 : finished].split("\n"), line)
    return _reading(title[1], options, rows, summary, line)


def _refuse_stonewall(seconds: object, line: int) -> NoReturn:
    """Refuse an output that was stopped by time: its rows do not show how many bytes were moved."""
    reported = (
        f"it was stopped after {str(seconds)[:20]} s (-D), so its bytes are not those asked for"
    )
    instead = "give sizes instead, or of IO500 its result_summary.txt"
    refuse(f"{reported}, and differ from launch to launch: {instead}", line, form=True)


def _rows(text: str, first: int, mib: float) -> dict[str, list[tuple[float, float]]]:
    """Return bandwidth and operations per second of each repetition, by direction.

    The second is 0 if it is not printed. `mib` is how many MiB each repetition moves.
    """
    names: list[str] = []
    found: dict[str, list[tuple[float, float]]] = {}
    for line, row in enumerate(text.split("\n"), first):
        cells = row.split()
        if not names or len(cells) != len(names) or cells[0] not in ("write", "read"):
            if not names and cells[:1] == ["access"]:
                names = cells
                _check_columns(names, line)
            elif not _PASSED_OVER.match(row.rstrip()):
                refuse(f"expected a row of {len(names)} columns, got {row.strip()[:80]!r}", line)
            continue
        by_name = dict(zip(names, cells, strict=True))
        rate, took = (figure(by_name[key], line) for key in ("bw(MiB/s)", "total(s)"))
        if abs(rate * took / mib - 1) > _slack(took, rate):
            refuse(f"{rate} MiB/s for {took} s are not {mib:g} MiB", line)
        iops = 0.0
        if "IOPS" in by_name:
            keys = ("IOPS", "wr/rd(s)", "xfer(KiB)")
            iops, busy, each = (figure(by_name[key], line) for key in keys)
            if abs(iops * busy * each / 1024 / mib - 1) > _slack(busy, iops):
                refuse(f"{iops:g} operations per second do not give {mib:g} MiB", line)
        rows = found.setdefault(cells[0], [])
        if by_name["iter"] != str(len(rows)):
            refuse(f"repetition {by_name['iter']} of {cells[0]} instead of {len(rows)}", line)
        rows.append((rate, iops))
    return found


def _check_columns(names: list[str], line: int) -> None:
    if missing := _COLUMNS.difference(names):
        refuse(f"the column {min(missing)} is missing", line)
    first = ["access", "bw(MiB/s)", *(["IOPS"] if "IOPS" in names else [])]
    if names[: len(first)] != first:  # of transfers of 1 MiB they are the same figures, nearly
        refuse(f"expected the columns {', '.join(first)}, got {', '.join(names)[:40]}", line)


def _slack(seconds: float, rate: float) -> float:
    """Return the share by which two printed figures may differ: s have six decimals, rates two."""
    return 0.002 + min(1e-6 / seconds, 0.02) + min(0.006 / rate, 0.02)


def _summary(lines: Sequence[str], line: int) -> dict[str, tuple[float, float, float]]:
    """Return largest, smallest and mean bandwidth by direction."""
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
        high, low, mean = (figure(word, number) for word in cells[1:4])
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
        of_rows = (max(rates), min(rates), sum(rates) / len(rates))
        if any(abs(a / b - 1) > 0.001 for a, b in zip(of_rows, summary[op], strict=True)):
            refuse(f"the summary of {op} is not that of its rows", line)
        samples.append(Sample("bandwidth", point(op=op), rates))
        if all(iops for _, iops in found):
            samples.append(Sample("iops", point(op=op), tuple(iops for _, iops in found)))
    parameters: dict[str, Scalar] = {
        "api": options["api"],
        "access": options["access"],
        "segments": count(options["segments"]),
        "repetitions": repetitions,
        "block": _size(options["blocksize"], line),
        "transfer": _size(options["xfersize"], line),
    }
    tasks = count(options["tasks"])
    nodes = options.get("nodes", "")
    if not nodes and (each := count(options.get("clients per node", ""), line)):
        nodes = str(-(-tasks // each))  # before IOR 3.3 it has to follow from that
    facts = {"ior.nodes": count(nodes, line)}
    return Reading("ior", version, parameters, tasks, tuple(samples), facts)


def _size(word: str, line: int) -> int:
    """Return the bytes of a size such as "8 MiB"."""
    found = _SIZE.fullmatch(word)
    if not found:
        refuse(f"expected a size such as '1 MiB', got {word[:40]!r}", line)
    return round(float(found[1]) * (size_of(found[2]) or 0.0))


READER = Reader(
    "ior",
    read,
    marks=(": MPI Coordinated Test of Parallel I/O", '"stoneWallingWearOut":'),
    heads=(
        Head("IOR-", r"IOR-\S+: MPI Coordinated Test of Parallel I/O"),
        Head("{", r'"Version"\s*:[^\n]*,\s*"Began"\s*:'),
    ),
    versions="3.2 to 4.1",
    proof=(
        "no ERROR; api, access, sizes, segments and repetitions as asked; a row for each direction"
        " and repetition; bytes and time give the bandwidth, the summary its extremes and mean"
    ),
    means=(
        "MiB = 2^20; the time from the first open to the last close; on one node a read comes from"
        " the page cache unless O_DIRECT or -C with several nodes keeps it from there"
    ),
    dates=(date("Began", rf'(?:.*")?Began"? *: *"?{CTIME}'),),
    facts=(of_nodes("ior.nodes"),),
)
