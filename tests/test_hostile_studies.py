"""A study directory that came from anybody: whatever stands for a file, no verb hangs on it."""

from __future__ import annotations

import hashlib
import html
import io
import json
import os
import random
import re
import shutil
import socket
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from forked import Ended, Nursery, nursery
from paribus.cli.outputs import write_files
from paribus.core import ParibusError
from paribus.judge.conclude import judged
from paribus.report.export import to_json
from paribus.report.printing import console_on
from paribus.screen import printed
from paribus.screen.answer import stored
from paribus.screen.before import check_earlier
from paribus.screen.page import page
from paribus.store import GATHERED, LAUNCH, checksum
from serving import served
from studies import write_study
from study_directories import write_directory

# Plans, launches and reports with the right hashes, whose values no Paribus wrote: one refusal.
#
# Hashes keep accidents out, not authors: whoever can write a file can write its hash.

VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 10**30, 0.5, 1e300, float("nan")),
    *("", "nan", "\x1b[31m", "x" * 10_000, [], [[]], {}, {"a": None}),
)
CELLS: tuple[Any, ...] = (
    *(None, "", -1, 0, 2**62, 1e300, float("inf"), "nan", "x" * 10_000, b"\xff"),
    *("[" * 100_000, '{"a":' * 100_000, "[]", "{}", "true", '"x"', '{"a": null}'),
    *('{"rank.hosts": 5}', '{"cpu.cores": {"a": [1]}}', '["\\u001b[31m"]'),
    '{"load.running": 1e400}',
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


def forge(table: Any, path: tuple[Any, ...], value: Any) -> None:
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


def refused_or_reported(read: Callable[[], Any]) -> str:
    """Return how it ended to read something: "reported", "refused", or what else was raised."""
    try:
        read()
    except ParibusError as error:
        return "refused" if error.cause and error.place else f"without a place: {error.cause}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:200]
    return "reported"


def test_a_forged_plan_is_refused_or_judged(
    sound: Path, tmp_path: Path, sample: Callable[..., list[Any]]
) -> None:
    table = json.loads((sound / "plan.json").read_text())
    shutil.copytree(sound, tmp_path / "study")
    ends: dict[str, Any] = {}
    assert refused_or_reported(lambda: to_json(judged(tmp_path / "study"))) == "reported"
    for path, value in sample([(path, value) for path in places(table) for value in VALUES]):
        forged = json.loads((sound / "plan.json").read_text())
        forge(forged, path, value)
        seal(tmp_path / "study", forged)
        ends[refused_or_reported(lambda: to_json(judged(tmp_path / "study")))] = path, value
    assert ends.keys() <= {"reported", "refused"}, ends
    assert "refused" in ends


COLUMNS = {"launches": LAUNCH.split(", "), "gathered": GATHERED.split(", ")}


def forge_row(directory: Path, table: str, at: int, value: Any) -> bool:
    """Forge a cell of the last row, with its checksum; False where SQLite does not take it."""
    names = COLUMNS[table]
    with closing(sqlite3.connect(directory / "launches.db")) as db:
        query = f"SELECT {', '.join(names)} FROM {table} ORDER BY id DESC"
        row = list(db.execute(query).fetchone())
        row[at] = value
        new = f"UPDATE {table} SET {names[at]} = ?, checksum = ? WHERE id = ?"
        try:
            db.execute(new, (value, checksum(row[:-1]), row[0]))
        except (sqlite3.Error, OverflowError):
            return False
        db.commit()
    return True


def test_a_forged_row_is_refused_or_judged(
    sound: Path, tmp_path: Path, sample: Callable[..., list[Any]]
) -> None:
    cells = [(t, at, v) for t in COLUMNS for at in range(1, len(COLUMNS[t]) - 1) for v in CELLS]
    ends: dict[str, Any] = {}
    for table, at, value in sample(cells):
        shutil.rmtree(tmp_path / "study", ignore_errors=True)
        shutil.copytree(sound, tmp_path / "study")
        if forge_row(tmp_path / "study", table, at, value):
            ends[refused_or_reported(lambda: to_json(judged(tmp_path / "study")))] = (
                table,
                at,
                value,
            )
    assert ends.keys() <= {"reported", "refused"}, ends
    assert "refused" in ends


Sample = Callable[..., list[Any]]
DEEP = 100_000
WITHIN_S = 15
"""Seconds for a verb, on a machine that is busy."""


def _socket(path: Path) -> None:
    here = os.open(path.parent, os.O_RDONLY)  # a path of a socket has 108 bytes at most
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(f"/proc/self/fd/{here}/{path.name}")
    os.close(here)


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(3 << 29)


def _stuffed(path: Path) -> None:
    """Put a file that is whole in front of holes: what looks at its beginning reads on."""
    data = path.read_bytes() if path.is_file() else b""
    with path.open("wb") as file:
        file.write(data)
        file.truncate(3 << 29)


KINDS: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "socket": _socket,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "terminal": lambda path: path.symlink_to("/dev/tty"),
    "directory": lambda path: path.mkdir(),
    "dangling link": lambda path: path.symlink_to("nowhere/at/all"),
    "link to itself": lambda path: path.symlink_to(path.name),
    "holes": _sparse,
    "deep JSON": lambda path: path.write_text("[" * DEEP + "]" * DEEP),
    "deep tables": lambda path: path.write_text('{"a":' * DEEP + "1" + "}" * DEEP),
    "binary": lambda path: path.write_bytes(random.Random(1).randbytes(5000)),
    "empty": lambda path: path.touch(),
    "digits": lambda path: path.write_text("9" * 5000),
    "no rights": lambda path: path.touch(0),
}
LEFT = {"stuffed": _stuffed}
"""What is made of the file that was there."""

SCREENED = ("pocket:3", "--command", "echo took 1000", "--regex", "took ([0-9]+)", "--unit", "us")
VERBS: dict[str, tuple[str, ...]] = {
    "report": ("report", "bad"),
    "salvage": ("report", "bad", "--salvage", "--json"),
    "latex": ("report", "bad", "--to", "latex", "--to", "csv"),
    "export": ("export", "bad", "--to", "ipynb", "--to", "markdown"),
    "audit": ("audit", "bad"),
    "accept": ("audit", "bad", "--accept", "os.release=seen"),
    "pack": ("pack", "bad", "--out", "packed.zip"),
    "scrub": ("pack", "bad", "--scrub", "--out", "packed.zip"),
    "verify": ("verify", "bad"),
    "compare": ("compare", "good", "bad"),
    "pool": ("pool", "good", "bad", "copy"),
    "history": ("history", "good", "bad"),
    "against": ("run", "study.toml", "--out", "fresh", "--against", "bad"),
    "forecast": ("forecast", "lammps", "--on", "bad"),
    "calibration": ("run", "study.toml", "--dry-run", "--no-pilot", "--calibration", "bad"),
    "watch": ("watch", "bad"),
    "resume": ("run", "study.toml", "--out", "bad", "--resume"),
    "replace": ("run", "study.toml", "--out", "bad", "--replace"),
    "again": ("run", "study.toml", "--out", "bad"),
    "plan": ("run", "study.toml", "--dry-run", "--no-pilot"),
    "screen": ("screen", "bad"),
    "screen again": ("screen", *SCREENED, "--out", "bad", "--resume"),
    "earlier": ("screen", *SCREENED, "--out", "fresh", "--earlier", "bad"),
    "screened": ("run", "study.toml", "--dry-run", "--no-pilot", "--screen", "bad"),
}
OF_A_SCREEN = ("screen", "screen again", "earlier", "screened")


@pytest.fixture(scope="module")
def forks() -> Iterator[Nursery]:
    with nursery() as one:
        yield one


@pytest.fixture(scope="module")
def good(forks: Nursery, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a study that was run: its folder has the study file and the directory."""
    folder = tmp_path_factory.mktemp("good")
    write_study(folder, plan="blocks = 8")
    ended = forks.paribus("run", "study.toml", "--out", "good", cwd=folder, within_s=120)
    assert ended.code in (0, 3), ended.err
    shutil.copytree(folder / "good", folder / "copy")
    ended = forks.paribus("screen", *SCREENED, "--out", "fleet", cwd=folder, within_s=120)
    assert ended.code == 0, ended.err
    return folder


def source_of(verb: str) -> str:
    """Return what the verb is tried on: a screen, or a study."""
    return "fleet" if verb in OF_A_SCREEN else "good"


def fresh(good: Path, verb: str) -> None:
    """Put an intact copy at `bad`, and remove what verbs wrote beside."""
    bad = good / "bad"
    for path in (bad, good / "packed.zip", good / "fresh"):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    shutil.copytree(good / source_of(verb), bad)


def names(good: Path, ended: Ended) -> set[str]:
    """Return what a verb opened in the directory `bad`, from there; of the logs one."""
    found = set()
    for path in ended.opened:
        inside = os.path.relpath(good / re.sub(r"^file:|\?.*", "", path), good / "bad")
        if not inside.startswith("..") and inside != ".":
            found.add(inside)
            if inside == "launches.db":
                found |= {f"launches.db{end}" for end in ("-wal", "-shm", "-journal")}
    logs = sorted(name for name in found if name.startswith("logs/"))
    return (found - set(logs)) | ({logs[0], "logs"} if logs else set())


@pytest.fixture(scope="module")
def healthy(good: Path, forks: Nursery) -> dict[str, Ended]:
    """Return how each verb ends on the intact study."""
    found = {}
    for verb, words in VERBS.items():
        fresh(good, verb)
        found[verb] = forks.paribus(*words, cwd=good, within_s=120)
        assert found[verb].code in (0, 2), found[verb].err
        assert "Traceback" not in found[verb].err
    assert "is of" in found["earlier"].err, "a screen of the same day is refused"
    assert "round 1" not in found["earlier"].err, "before it is measured again"
    return found


def put(path: Path, kind: str) -> None:
    """Put a hostile thing in the place of a file or directory."""
    if kind in LEFT:
        LEFT[kind](path)
        return
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    KINDS[kind](path)


@pytest.mark.timeout(1200)
def test_whatever_stands_for_a_file_each_verb_ends_and_names_it(
    good: Path,
    forks: Nursery,
    healthy: dict[str, Ended],
    sample: Sample,
) -> None:
    """It ends as on the intact study, if it can do without the file, or with one error."""
    opened = {verb: names(good, ended) for verb, ended in healthy.items()}
    assert {"plan.json", "progress.json", "progress.lock", "lock"} <= set().union(*opened.values())
    cases = [
        (turns[at % len(turns)], name, kind)  # of the verbs that open a file, each in its turn
        for name in sorted(set().union(*opened.values()))
        if (turns := [verb for verb in VERBS if name in opened[verb]])
        for at, kind in enumerate((*KINDS, *LEFT), len(name))
        if not (kind in LEFT and (good / source_of(turns[0]) / name).is_dir())
    ]
    faults = []
    for verb, name, kind in sample(cases):
        fresh(good, verb)
        put(good / "bad" / name, kind)
        ended = forks.paribus(*VERBS[verb], cwd=good, within_s=WITHIN_S)
        new = [one for one in ended.complaints() if one not in healthy[verb].complaints()]
        same = ended.code == healthy[verb].code and not new
        reported = (
            ended.code in (2, healthy[verb].code)
            and len(new) == 1
            and Path(name).parts[0] in new[0]
        )
        if not (same or reported) or "Traceback" in ended.err:
            faults.append((verb, name, kind, ended.code, ended.err[-300:]))
            print(*faults[-1])
    assert not faults


def test_a_forged_screen_is_refused_or_reported(good: Path, tmp_path: Path, sample: Sample) -> None:
    """With the right hash: in screen.json, and in the rows of its launches."""
    whole = json.loads((good / "fleet" / "screen.json").read_text())
    bad = tmp_path / "fleet"
    shutil.copytree(good / "fleet", bad)
    ends: dict[str, Any] = {}

    def reported() -> None:
        answer = stored(bad)
        json.dumps(printed.to_json(answer), allow_nan=False)
        printed.print_answer(answer, console_on(io.StringIO()))
        page(answer)
        check_earlier(answer, replace(answer.screen, at=time.time() + 1e6, boots={}))

    for where, value in sample([(path, value) for path in places(whole) for value in VALUES]):
        forged = json.loads(json.dumps(whole))
        forge(forged, where, value)
        inside = {key: forged[key] for key in forged.keys() - {"schema", "sha256"}}
        text = json.dumps(inside, sort_keys=True)
        forged["sha256"] = hashlib.sha256(text.encode()).hexdigest()
        (bad / "screen.json").write_text(json.dumps(forged))
        with closing(sqlite3.connect(bad / "launches.db")) as db:
            db.execute("UPDATE meta SET value = ? WHERE key = 'plan'", (forged["sha256"],))
            db.commit()
        ends[refused_or_reported(reported)] = where, value
    for at, value in sample(
        [(at, v) for at in range(1, len(COLUMNS["launches"]) - 1) for v in CELLS]
    ):
        shutil.rmtree(bad)
        shutil.copytree(good / "fleet", bad)
        if forge_row(bad, "launches", at, value):
            ends[refused_or_reported(reported)] = at, value
    assert ends.keys() <= {"reported", "refused"}, ends
    assert "refused" in ends


def test_what_paribus_writes_goes_through_no_link(
    good: Path, forks: Nursery, healthy: dict[str, Ended], tmp_path: Path
) -> None:
    """A study that was unpacked may have links where reports go: to files of who reports."""
    canary, missing = tmp_path / "canary", tmp_path / "missing"
    given = ("plan.json", "launches.db")
    every = {
        verb: {name for name in names(good, healthy[verb]) if not name.startswith((*given, "logs"))}
        for verb in ("latex", "export", "accept", "resume", "salvage")
    }
    kept = {"lock", "progress.lock", "launches.count"}  # never replaced: a link is refused
    for verb, written in every.items():
        for links in (written - kept, *({name} for name in written & kept)):
            for target in (canary, missing):
                canary.write_text("mine")
                fresh(good, verb)
                for name in links:
                    (good / "bad" / name).unlink(missing_ok=True)
                    (good / "bad" / name).symlink_to(target)
                ended = forks.paribus(*VERBS[verb], cwd=good, within_s=WITHIN_S)
                assert canary.read_text() == "mine", (verb, links, ended)
                assert not missing.exists(), (verb, links, ended)
    assert {"verdict.json", "table.tex", "progress.draft", "lock"} <= set().union(*every.values())


def test_serve_names_each_bad_study_and_shows_the_others(
    good: Path, healthy: dict[str, Ended], tmp_path: Path, sample: Sample
) -> None:
    every = set().union(*(names(good, ended) for ended in healthy.values()))
    every = {name for name in every if not name.startswith("logs/")}
    where = tmp_path / "served"
    where.mkdir()
    shutil.copytree(good / "good", where / "sound")
    for name in every:
        for kind in (*KINDS, *LEFT):
            bad = where / f"of {name}, {kind}"
            shutil.copytree(good / "good", bad, ignore=shutil.ignore_patterns("logs"))
            if not (kind in LEFT and (bad / name).is_dir()):
                put(bad / name, kind)
    limit = ("prlimit", "--as=3072000000")
    with served(where, prefix=limit) as one:
        one.cookie = one.enter()
        begun = time.monotonic()
        table = json.loads(one.ask("/studies.json", Cookie=one.cookie).data)
        page = one.ask("/", Cookie=one.cookie).data.decode()
        assert time.monotonic() - begun < WITHIN_S
        found = {study["name"]: study for study in table["studies"]}
        assert set(found) == {path.name for path in where.iterdir()}
        assert found["sound"]["state"] == "ended"
        for kind in ("pipe", "socket", "device", "directory", "holes"):
            for name in ("progress.json", "progress.lock", "launches.count"):
                study = found[f"of {name}, {kind}"]
                if (name, kind) == ("progress.lock", "holes"):  # nobody reads what is in it
                    continue
                assert study["state"] == "broken", (name, kind)
                assert name in study["sentence"], study
                assert html.escape(study["sentence"].splitlines()[0]) in page
        for study in sample(found.values()):
            for path in ("", "launches/", "launches/1-0/", "resume/", "body", "files/values.csv"):
                begun = time.monotonic()
                answer = one.ask(f"/studies/{study['id']}/{path}", Cookie=one.cookie)
                assert answer.status in (200, 404, 409, 413), (study, path, answer.data[-300:])
                assert time.monotonic() - begun < WITHIN_S, (study, path)
