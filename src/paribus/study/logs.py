"""Logs of tools that ran elsewhere: recognised by what they say, read, and laid side by side.

What comes out is the same table that `paribus compare` makes of numbers, so that the analysis is
one. Nothing in a log is executed, and a file that cannot be read costs only itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from paribus.benchmarks import BENCHMARKS
from paribus.errors import ParseError, UserError
from paribus.model import Metric, Reading
from paribus.tables.table import Source

MOST_BYTES = 256 << 20
"""A longer file is no log of these tools, and is not read."""

SETTLED_S = 1.0
"""Files that were all written within this many seconds per file were copied: their times say
nothing of when they were measured."""

Pairing = Literal["name", "time", "order", "none"]


@dataclass(frozen=True, slots=True)
class Log:
    """One output that was read: whose it is, and what it says.

    `name` is the file's path below its arm's folder, `at` when it was written or, where the log
    says so itself, measured (seconds since the epoch).
    """

    arm: str
    name: str
    path: Path
    at: float
    reading: Reading


@dataclass(frozen=True, slots=True)
class Logs:
    """What was found in the folders of the arms.

    `unread` maps a file to the reason why it was not read; `apart` says in sentences which logs
    have nothing to stand beside; `pairing` is how logs of two arms belong together, `why` why.
    """

    arms: tuple[str, ...]
    logs: tuple[Log, ...]
    unread: Mapping[Path, str]
    apart: tuple[str, ...]
    pairing: Pairing
    why: str


def are_logs(paths: Sequence[Path]) -> bool:
    """Return whether `paths` are to be read as logs, rather than as tables of numbers."""
    return any(
        path.is_dir() or (path.is_file() and bool(_recognised(_head(path)))) for path in paths
    )


def read_logs(paths: Sequence[Path]) -> Logs:
    """Return the logs below `paths`, a file or a folder for each arm, the reference first.

    Raises UserError when an arm has none, or none that the others have as well.
    """
    arms = _names(paths)
    unread: dict[Path, str] = {}
    found: list[Log] = []
    for arm, path in zip(arms, paths, strict=True):
        for file in _files(path):
            name = file.name if path.is_file() else file.relative_to(path).as_posix()
            found += _read(arm, name, file, unread)
    kept, apart = _comparable(found, arms)
    if not kept:
        raise UserError(
            _nothing(found, unread, apart),
            place=", ".join(map(str, paths)),
            mend="give outputs of the same benchmark with the same parameters for each arm;"
            " `paribus list` names what is read",
        )
    pairing, why = _pairing(kept, arms)
    return Logs(arms, tuple(kept), unread, tuple(apart), pairing, why)


def source_of(logs: Logs) -> Source:
    """Return the samples of all logs as rows of a table."""
    import pyarrow as pa

    columns: dict[str, list[Any]] = {
        name: []
        for name in ("arm", "benchmark", "case", "metric", "unit", "better", "value", "sample")
    }
    columns |= {"block": []} if logs.pairing in ("name", "order") else {}
    columns |= {"time": []} if logs.pairing == "time" else {}
    files: list[Path] = []
    labels = _labels(logs.logs)
    places = _places(logs.logs, logs.pairing)
    for log in logs.logs:
        for metric, case, index, value in _values(log.reading):
            row = {
                "arm": log.arm,
                "benchmark": labels[_key(log)],
                "case": case,
                "metric": metric.name,
                "unit": metric.unit,
                "better": metric.better,
                "value": value,
                "sample": index,
                "block": places.get(id(log), ""),
                "time": log.at,
            }
            for name, column in columns.items():
                column.append(row[name])
            files.append(log.path)
    if not any(columns["sample"]):
        del columns["sample"]
    return Source(
        name=", ".join(logs.arms),
        arm="",
        columns={name: pa.chunked_array([pa.array(c)]) for name, c in columns.items()},
        place=lambda row: str(files[row]),
    )


def _names(paths: Sequence[Path]) -> tuple[str, ...]:
    """Return what the arms are called: what tells their paths apart, from the end."""
    parts = [path.absolute().parts for path in paths]
    for length in range(1, max(map(len, parts)) + 1):
        names = ["/".join(part[-length:]) for part in parts]
        if len(set(names)) == len(names):
            return tuple(names)
    raise UserError(
        "is given twice", place=str(paths[0]), mend="give the folder of another arm beside it"
    )


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    found = [file for file in path.rglob("*") if file.is_file() and not _hidden(file, path)]
    return sorted(found, key=lambda file: _natural(file.relative_to(path).as_posix()))


def _hidden(file: Path, below: Path) -> bool:
    return any(part.startswith(".") for part in file.relative_to(below).parts)


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts log2 before log10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def _head(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(1 << 16).decode(errors="replace")
    except OSError:
        return ""


def _recognised(text: str) -> list[str]:
    return [b.name for b in BENCHMARKS.values() if b.recognise is not None and b.recognise(text)]


def _read(arm: str, name: str, file: Path, unread: dict[Path, str]) -> list[Log]:
    """Return what one file holds, of each tool that recognises it."""
    try:
        status = file.stat()
        if status.st_size > MOST_BYTES:
            unread[file] = f"is larger than {MOST_BYTES >> 20} MiB"
            return []
        text = file.read_bytes().decode(errors="replace")
    except OSError as error:
        unread[file] = f"cannot be read: {error.strerror}"
        return []
    found, problems = [], []
    for tool in _recognised(text):
        reader = BENCHMARKS[tool].read
        try:
            reading = reader(text) if reader is not None else None
        except ParseError as error:
            at = f", line {error.line}" if error.line else ""
            problems.append(f"{tool}: {error}{at}")
            continue
        if reading is not None:
            started = reading.facts.get("log.started")
            at_s = float(started) if isinstance(started, int | float) else status.st_mtime
            found.append(Log(arm, name, file, at_s, reading))
    if not found:
        unread[file] = problems[0] if problems else "is no output of a tool that is known here"
    return found


Key = tuple[str, tuple[tuple[str, Any], ...], int | None]
"""What two logs must share to be compared: tool, parameters, ranks."""


def _key(log: Log) -> Key:
    reading = log.reading
    return reading.benchmark, tuple(sorted(reading.parameters.items())), reading.ranks


def _comparable(logs: Sequence[Log], arms: Sequence[str]) -> tuple[list[Log], list[str]]:
    """Return the logs whose like every arm has, and sentences on the others."""
    having: dict[Key, set[str]] = {}
    for log in logs:
        having.setdefault(_key(log), set()).add(log.arm)
    whole = {key for key, names in having.items() if names == set(arms)}
    apart = []
    for key, names in having.items():
        if key not in whole:
            count = sum(_key(log) == key for log in logs)
            others = ", ".join(arm for arm in arms if arm not in names)
            apart.append(f"{_told(key)}: {count} of {', '.join(sorted(names))}, none of {others}")
    return [log for log in logs if _key(log) in whole], apart


def _told(key: Key) -> str:
    benchmark, parameters, ranks = key
    said = [f"{name} {value}" for name, value in parameters]
    said += [f"{ranks} ranks"] if ranks else []
    return f"{benchmark} ({', '.join(said)})" if said else benchmark


def _labels(logs: Iterable[Log]) -> dict[Key, str]:
    """Return what each kind of log is called: the tool, with what tells it from its like."""
    keys = list(dict.fromkeys(map(_key, logs)))
    tools = [key[0] for key in keys]
    return {key: key[0] if tools.count(key[0]) == 1 else _told(key) for key in keys}


def _values(reading: Reading) -> Iterable[tuple[Metric, str, int, float]]:
    metrics = {metric.name: metric for metric in BENCHMARKS[reading.benchmark].metrics}
    for sample in reading.samples:
        for index, value in enumerate(sample.values):
            yield metrics[sample.metric], sample.case.to_json(), index, value


def _pairing(logs: Sequence[Log], arms: Sequence[str]) -> tuple[Pairing, str]:
    """Return how the logs of two arms belong together, and why so."""
    most = max(
        sum(_key(log) == key and log.arm == arm for log in logs)
        for key in {_key(log) for log in logs}
        for arm in arms
    )
    if most == 1:
        return "name", "one log of each arm"
    times = sorted(log.at for log in logs)
    spread = times[-1] - times[0] > SETTLED_S * len(times)
    if spread and len(set(times)) == len(times):
        said = all("log.started" in log.reading.facts for log in logs)
        whose = "they say when they were measured" if said else "the times of their files"
        return "time", f"logs that are neighbours in time, by {whose}"
    names = {arm: sorted((_key(log), log.name) for log in logs if log.arm == arm) for arm in arms}
    if all(names[arm] == names[arms[0]] for arm in arms):
        return "name", "logs of the same name"
    counts = {
        key: {sum(_key(log) == key and log.arm == arm for log in logs) for arm in arms}
        for key in {_key(log) for log in logs}
    }
    if all(len(several) == 1 for several in counts.values()):
        return "order", "logs in the order of their names: nothing else says which belong together"
    return "none", "the arms have different numbers of logs, and nothing says when they were made"


def _places(logs: Sequence[Log], pairing: Pairing) -> dict[int, str]:
    """Return the block of each log, by its identity."""
    if pairing == "name":
        only = max(sum(_key(x) == _key(log) and x.arm == log.arm for x in logs) for log in logs)
        return {id(log): "1" if only == 1 else log.name for log in logs}
    counts: dict[tuple[Key, str], int] = {}
    found = {}
    for log in logs:
        counts[_key(log), log.arm] = counts.get((_key(log), log.arm), 0) + 1
        found[id(log)] = str(counts[_key(log), log.arm])
    return found


def _nothing(logs: Sequence[Log], unread: Mapping[Path, str], apart: Sequence[str]) -> str:
    """Return why nothing can be compared: what was found instead."""
    found = "; ".join(apart[:10]) if logs else "no log of a tool that is known here"
    files = [f"{path.name} {why}" for path, why in unread.items()]
    said = f"; not read: {'; '.join(files[:5])}" if files else ""
    return f"hold nothing to compare: {found}{said}"
