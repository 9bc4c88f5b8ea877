"""A study directory that came from anybody: whatever stands for a file, no verb hangs on it."""

from __future__ import annotations

import os
import random
import re
import shutil
import socket
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from forked import Ended, Nursery, nursery
from studies import write_study

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
    "compare": ("compare", "good", "bad"),
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
    """Return a study that was carried out: its folder has the study file and the directory."""
    folder = tmp_path_factory.mktemp("good")
    write_study(folder, plan="blocks = 8")
    ended = forks.paribus("run", "study.toml", "--out", "good", cwd=folder, within_s=120)
    assert ended.code in (0, 3), ended.err
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


def test_whatever_stands_for_a_file_each_verb_ends_and_names_it(
    good: Path,
    forks: Nursery,
    healthy: dict[str, Ended],
    sample: Callable[[Iterable[tuple[str, str, str]]], list[tuple[str, str, str]]],
) -> None:
    """It ends as on the intact study, if it can do without the file, or with one error."""
    opened = {verb: names(good, ended) for verb, ended in healthy.items()}
    assert {"plan.json", "progress.json", "progress.lock", "lock"} <= set().union(*opened.values())
    cases = [
        (verb, name, kind)
        for verb in VERBS
        for name in sorted(opened[verb])
        for kind in (*KINDS, *LEFT)
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
