"""A study directory that came from anybody: whatever stands for a file, no verb hangs on it."""

from __future__ import annotations

import html
import json
import os
import random
import re
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from forked import Ended, Nursery, nursery
from serving import served
from studies import write_study

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
}


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
    return folder


def fresh(good: Path) -> None:
    """Put an intact copy at `bad`, and remove what verbs wrote beside."""
    bad = good / "bad"
    for path in (bad, good / "packed.zip"):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    shutil.copytree(good / "good", bad)


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
        fresh(good)
        found[verb] = forks.paribus(*words, cwd=good, within_s=120)
        assert found[verb].code in (0, 2), found[verb].err
        assert "Traceback" not in found[verb].err
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
        if not (kind in LEFT and (good / "good" / name).is_dir())
    ]
    faults = []
    for verb, name, kind in sample(cases):
        fresh(good)
        put(good / "bad" / name, kind)
        ended = forks.paribus(*VERBS[verb], cwd=good, within_s=WITHIN_S)
        new = [one for one in ended.complaints() if one not in healthy[verb].complaints()]
        same = ended.code == healthy[verb].code and not new
        told = (
            ended.code in (2, healthy[verb].code)
            and len(new) == 1
            and Path(name).parts[0] in new[0]
        )
        if not (same or told) or "Traceback" in ended.err:
            faults.append((verb, name, kind, ended.code, ended.err[-300:]))
            print(*faults[-1])
    assert not faults


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
                fresh(good)
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
