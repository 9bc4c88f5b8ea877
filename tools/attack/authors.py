"""What an author may have put into a study directory, a zip file, a plan, a report or a program."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attack.arena import Arena
from attack.ground import write_study
from attack.inputs import ALL_MEMORY, ESC, MOST_MIB, WITHIN_S
from attack.victim import Ended, ends, paribus

FILES = (
    *("plan.json", "launches.db", "launches.db-wal", "launches.db-shm", "launches.db-journal"),
    *("launches.count", "progress.json", "progress.lock", "progress.draft", "lock", "logs"),
    *("verdict.json", "report.html", "cases.csv", "values.csv", "values.parquet", "accepted.json"),
    *(".report.html.partial", "accepted.json.draft", "table.tex", "figures"),
)
CODES = (0, 2, 3, 4)


def _socket(path: Path) -> None:
    here = os.open(path.parent, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(f"/proc/self/fd/{here}/{path.name}")
    os.close(here)


def _sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, 1500 << 20)


KINDS: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a socket": _socket,
    "/dev/zero": lambda path: path.symlink_to("/dev/zero"),
    "/dev/tty": lambda path: path.symlink_to("/dev/tty"),
    "a folder": lambda path: path.mkdir(),
    "a link to nowhere": lambda path: path.symlink_to("nowhere/at/all"),
    "a link to itself": lambda path: path.symlink_to(path.name),
    "holes": _sparse,
    "deep JSON": lambda path: path.write_text("[" * 100_000),
    "deep tables": lambda path: path.write_text('{"a":' * 100_000),
    "a program": lambda path: path.write_bytes(Path("/bin/sh").read_bytes()[:100_000]),
    "nothing": lambda path: path.touch(),
}


def _copied(arena: Arena, name: str = "theirs") -> Path:
    directory = arena.folder / f"{name}-{arena.strikes}"
    shutil.copytree(arena.ground.sample, directory)
    return directory


def _verbs(arena: Arena, directory: Path) -> tuple[str | Path, ...]:
    """Return words that make Paribus read a study directory."""
    verbs: tuple[tuple[str | Path, ...], ...] = (
        ("report", directory),
        ("report", directory, "--salvage"),
        ("report", directory, "--to", "latex", "--to", "junit", "--json"),
        ("export", directory, "--to", "ipynb", "--to", "csv"),
        ("audit", directory),
        ("audit", directory, "--accept", "os.release=seen"),
        ("pack", directory, "--out", arena.folder / f"packed-{arena.strikes}.zip"),
        ("verify", directory),
        ("pack", directory, "--scrub", "--out", arena.folder / f"packed-{arena.strikes}.zip"),
        ("compare", arena.ground.sample, directory),
        ("watch", directory),
        ("run", arena.ground.sample.parent / "study.toml", "--out", directory),
    )
    return arena.random.choice(verbs)


def study_files(arena: Arena) -> None:
    """Put what is no file of a study in its place, and a canary where links lead."""
    canary = arena.folder / "canary"
    canary.write_text("mine")
    kinds = {**KINDS, "a link to a file of the user": lambda path: path.symlink_to(canary)}
    for _ in range(8):
        directory, name = _copied(arena), arena.random.choice(FILES)
        path, kind = directory / name, arena.random.choice(sorted(kinds))
        if path.is_dir():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        kinds[kind](path)
        words = _verbs(arena, directory)
        when = f"{kind} as {name}: {' '.join(map(str, words[:1] + words[2:]))}"
        _given(arena, words, when)
        arena.expect(canary.read_text() == "mine", f"{when}: wrote into a file of the user")
        arena.expect(not (directory / "nowhere").exists(), f"{when}: wrote where a link leads")


def zips(arena: Arena) -> None:
    """Damage a packed study, in its bytes or its members, and open it."""
    draw, sound = arena.random, arena.folder / "sound.zip"
    if not ends(arena, paribus(arena, "pack", arena.ground.sample, "--out", sound), "pack"):
        return
    data = sound.read_bytes()
    for _ in range(8):
        at = draw.randrange(len(data))
        if draw.random() < 0.6:  # headers and the list are at the end, and where PK is
            at = data.find(b"PK", at) + draw.randrange(60) if b"PK" in data[at:] else at
        part = draw.randbytes(draw.choice((1, 2, 4, 100)))
        damaged = data[:at] + part + data[at + len(part) :]
        file, out = arena.folder / f"{arena.strikes}.zip", arena.folder / f"out-{arena.strikes}"
        file.write_bytes(damaged if draw.random() < 0.8 else damaged[: draw.randrange(len(data))])
        if draw.random() < 0.3:
            _forged(arena, file)
        _given(arena, ("verify", file), f"a damaged zip to verify, at {at}")
        ended = _given(arena, ("pack", "--open", file, "--out", out), f"a damaged zip, at {at}")
        arena.expect(
            out.exists() == (ended.code == 0), f"a damaged zip, at {at}: leaves {out.name}"
        )
        outside = [path.name for path in arena.folder.parent.glob("evil*")]
        arena.expect(not outside, f"a zip writes {outside} outside of it")


def _forged(arena: Arena, file: Path) -> None:
    """Write a zip with the right hashes, and names or sizes of no study."""
    draw = arena.random
    name = draw.choice(("../evil", "/evil", "logs/../../evil", "a" * 300, f"x{ESC}", "a/b/c/d/e/f"))
    files = {"plan.json": b"{}", name: draw.randbytes(10)}
    sums = "".join(f"{hashlib.sha256(v).hexdigest()}  {k}\n" for k, v in files.items())
    kind = draw.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED, zipfile.ZIP_LZMA))
    with zipfile.ZipFile(file, "w", kind) as archive:
        for key, value in {**files, "SHA256SUMS": sums.encode()}.items():
            archive.writestr(key, value)


def forged(arena: Arena) -> None:
    """Change a value of plan.json, with its hash made anew, or of verdict.json, and read it."""
    for _ in range(8):
        directory = _copied(arena)
        name = arena.random.choice(("plan.json", "verdict.json", "progress.json"))
        table = json.loads((directory / name).read_text())
        where, value = _changed(arena, table)
        if name == "plan.json":
            table.pop("sha256", None)
            text = json.dumps(table, sort_keys=True, separators=(",", ":"))
            table["sha256"] = hashlib.sha256(text.encode()).hexdigest()
        (directory / name).write_text(json.dumps(table))
        words = _verbs(arena, directory)
        if name == "verdict.json":
            words = ("report", directory / name, "--to", arena.random.choice(("latex", "csv")))
        _given(arena, words, f"{name}, {where} = {value!r:.40}: {words[0]}")


def _changed(arena: Arena, table: Any) -> tuple[str, Any]:
    """Put something else in a place of a JSON value that is drawn; return the place and it."""
    draw, path, at = arena.random, [], table
    value: Any = draw.choice(
        (None, [], {}, "", ESC, "x" * 100_000, -1, 0, 1e300, 10**30, True, [[]], {"a": None}, "nan")
    )
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        key = draw.choice(keys)
        path.append(str(key))
        inner = at[key]
        if not isinstance(inner, dict | list) or not inner or draw.random() < 0.2:
            at[key] = value
            return ".".join(path), value
        at = inner


PROGRAMS = {
    "prints NaN": "echo nan",
    "prints infinity": "echo inf",
    "prints less than nothing": "echo -1",
    "prints 5,000 digits": "printf '%05000d\\n' 7",
    "prints 60 MB": "yes | head -c 60000000",
    "prints NUL": "printf '2.5\\0\\0\\n'",
    "leaves a child": "sleep 60 & echo 2.5",
    "leaves a session": "setsid sleep 60 >/dev/null 2>&1 & echo 2.5",
    "leaves 50 children": "for i in $(seq 50); do sleep 60 & done; echo 2.5",
    "kills its parent": "kill -9 $PPID; echo 2.5",
    "kills its group": "kill -9 0",
    "stops itself": "kill -STOP $$; echo 2.5",
    "fills its directory": "head -c 50000000 /dev/zero >fill; echo 2.5",
    "removes its directory": 'rm -rf "$PWD" "$TMPDIR"; echo 2.5',
    "takes the rights away": "chmod 0 .; echo 2.5",
    "makes pipes": "mkfifo a b c; ln -s / d; echo 2.5",
    "lies about its end": "echo 2.5; exit 3",
    "says that it was cut": "echo '[paribus: 12 bytes are left out here]'; echo 2.5",
    "closes its output": "exec >&-; echo 2.5",
}


def programs(arena: Arena) -> None:
    """Measure programs that print, fork, fill and lie: an answer, and nothing of them is left."""
    for name in arena.random.sample(sorted(PROGRAMS), 3):
        folder = arena.folder / f"program-{arena.strikes}"
        folder.mkdir()
        more = 'timeout = "1 s"' if name == "stops itself" else ""
        study = write_study(folder, script=PROGRAMS[name], more=more)
        arena.strikes += 1
        ended = paribus(arena, "run", study, "--out", folder / "out", within_s=120)
        ends(arena, ended, f"a program {name}", CODES)
        arena.nothing_left(f"a program {name}")


def _given(arena: Arena, words: tuple[str | Path, ...], when: str) -> Ended:
    arena.strikes += 1
    ended = paribus(arena, *words, within_s=WITHIN_S, limits=ALL_MEMORY)
    ends(arena, ended, when, CODES)
    arena.expect(ended.peak_mib < MOST_MIB, f"{when}: takes {ended.peak_mib:.0f} MiB")
    return ended


ATTACKS = (study_files, zips, forged, programs, study_files, forged)
