"""Plans, launches and reports with the right hashes, whose values no Paribus wrote: one refusal.

Hashes keep accidents out, not authors: whoever can write a file can write its hash.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from paribus.cli.outputs import write_files
from paribus.core import ParibusError
from paribus.judge.conclude import judged
from paribus.plan import read_plan
from paribus.report.export import to_json
from paribus.report.stored import read_report
from paribus.store import GATHERED, LAUNCH, checksum
from study_directories import write_directory

VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 10**30, 0.5, 1e300, float("nan")),
    *("", "nan", "\x1b[31m", "x" * 10_000, [], [[]], {}, {"a": None}),
)
CELLS: tuple[Any, ...] = (
    *(None, "", -1, 0, 2**62, 1e300, float("inf"), "nan", "x" * 10_000, b"\xff"),
    *("[" * 100_000, '{"a":' * 100_000, "[]", "{}", "true", '"x"', '{"a": null}'),
    *(
        '{"rank.hosts": 5}',
        '{"cpu.cores": {"a": [1]}}',
        '["\\u001b[31m"]',
        '{"load.running": 1e400}',
    ),
)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = write_directory(tmp_path_factory.mktemp("sound") / "study", {"a": 1.0, "b": 1.1})
    write_files(judged(directory), directory)
    return directory


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where the values of a table are; of a list the first and the last."""
    if path:
        yield path
    if isinstance(value, dict):
        for key, one in value.items():
            yield from places(one, (*path, key))
    elif isinstance(value, list):
        for at in sorted({0, len(value) - 1} if value else ()):
            yield from places(value[at], (*path, at))


def put(table: Any, path: tuple[Any, ...], value: Any) -> None:
    for key in path[:-1]:
        table = table[key]
    table[path[-1]] = value


def seal(directory: Path, table: dict[str, Any]) -> None:
    """Write a plan with the hash that it has, to which the launches are bound."""
    table.pop("sha256", None)
    text = json.dumps(table, sort_keys=True, separators=(",", ":"))
    table["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    (directory / "plan.json").write_text(json.dumps(table))
    with closing(sqlite3.connect(directory / "launches.db")) as db:
        db.execute("UPDATE meta SET value = ? WHERE key = 'plan'", (table["sha256"],))
        db.commit()


def refused_or_told(read: Callable[[], Any]) -> str:
    """Return how it ended to read something: "told", "refused", or what else was raised."""
    try:
        read()
    except ParibusError as error:
        return "refused" if error.cause and error.place else f"without a place: {error.cause}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:200]
    return "told"


def test_a_forged_plan_is_refused_or_judged(
    sound: Path, tmp_path: Path, sample: Callable[..., list[Any]]
) -> None:
    table = json.loads((sound / "plan.json").read_text())
    shutil.copytree(sound, tmp_path / "study")
    ends: dict[str, Any] = {}
    for path, value in sample([(path, value) for path in places(table) for value in VALUES]):
        forged = json.loads((sound / "plan.json").read_text())
        put(forged, path, value)
        seal(tmp_path / "study", forged)
        ends[refused_or_told(lambda: to_json(judged(tmp_path / "study")))] = path, value
    assert ends.keys() <= {"told", "refused"}, ends
    assert "refused" in ends


def test_a_forged_row_is_refused_or_judged(
    sound: Path, tmp_path: Path, sample: Callable[..., list[Any]]
) -> None:
    names = {"launches": LAUNCH.split(", "), "gathered": GATHERED.split(", ")}
    cells = [(t, at, v) for t in names for at in range(1, len(names[t]) - 1) for v in CELLS]
    ends: dict[str, Any] = {}
    for table, at, value in sample(cells):
        shutil.rmtree(tmp_path / "study", ignore_errors=True)
        shutil.copytree(sound, tmp_path / "study")
        with closing(sqlite3.connect(tmp_path / "study" / "launches.db")) as db:
            query = f"SELECT {', '.join(names[table])} FROM {table} ORDER BY id DESC"
            row = list(db.execute(query).fetchone())
            row[at] = value
            new = f"UPDATE {table} SET {names[table][at]} = ?, checksum = ? WHERE id = ?"
            try:
                db.execute(new, (value, checksum(row[:-1]), row[0]))
            except (sqlite3.Error, OverflowError):
                continue  # the table itself does not take it
            db.commit()
        ends[refused_or_told(lambda: to_json(judged(tmp_path / "study")))] = table, at, value
    assert ends.keys() <= {"told", "refused"}, ends
    assert "refused" in ends


def test_a_forged_report_is_refused_or_told(
    sound: Path, tmp_path: Path, sample: Callable[..., list[Any]]
) -> None:
    text = (sound / "verdict.json").read_text()
    file = tmp_path / "verdict.json"
    ends: dict[str, Any] = {}
    cases = [(path, value) for path in places(json.loads(text)) for value in VALUES]
    for path, value in sample(cases):
        forged = json.loads(text)
        put(forged, path, value)
        file.write_text(json.dumps(forged))
        ends[refused_or_told(lambda: to_json(read_report(file)))] = path, value
    assert ends.keys() <= {"told", "refused"}, ends
    assert "refused" in ends


def test_a_plan_that_was_not_forged_is_read(sound: Path) -> None:
    assert read_plan(sound).study.question == "Which?"
