"""Hostile study files, tables and logs: an error or an answer, in bounded time and memory."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import resource
from collections.abc import Callable
from pathlib import Path

from attack.arena import Arena
from attack.ground import write_study
from attack.serving import OF_AUTHORS
from attack.victim import Ended, ends, paribus

ESC = "\x1b]0;owned\x07\x1b[31m"
WITHIN_S = 30.0
MOST_MIB = 800.0
ALL_MEMORY = {resource.RLIMIT_AS: 6 << 30}
"""What no input may use up; without it, a fault would take the whole machine along."""

HEAD = (
    'question = "Which?"\nfactor = "nothing"\n[arms.a]\n[arms.b]\n'
    '[[benchmarks]]\nfile = "shell.py"\n'
)


def _toml_texts(arena: Arena) -> dict[str, bytes]:
    """Return study files that no honest user writes."""
    draw, deep = arena.random, arena.random.choice((500, 5_000, 100_000))
    texts: dict[str, str] = {
        f"arrays {deep} deep": f"x = {'[' * deep}{']' * deep}\n{HEAD}",
        f"tables {deep} deep": f"x = {'{a=' * deep}1{'}' * deep}\n{HEAD}",
        "an integer of 5,000 digits": f"{HEAD}[plan]\nblocks = {'9' * 5000}\n",
        "an integer of 400 digits": f"{HEAD}[plan]\nseed = {'9' * 400}\n",
        "NUL in file": HEAD.replace("shell.py", "sh\\u0000ell.py"),
        "NUL in mpi": HEAD.replace("[arms.b]", '[arms.b]\nmpi = "/opt\\u0000/mpi"'),
        "NUL in env": HEAD.replace("[arms.b]", '[arms.b]\nenv = {A = "x\\u0000y"}'),
        "NUL in before": HEAD.replace("[arms.b]", '[arms.b]\nbefore = "a\\u0000b"'),
        "a key of 50,000 dots": f"{'a.' * 50_000}a = 1\n{HEAD}",
        "a table of 50,000 dots": f"{HEAD}[{'a.' * 50_000}a]\n",
        "ESC raw": f"# {ESC}\n{HEAD}",
        "ESC in question": HEAD.replace("Which?", "\\u001b[31mWhich?\\u0007\\u009b2J"),
        "ESC in a key": f'"\\u001b[31mkey" = 1\n{HEAD}',
        "ESC in an arm's name": HEAD.replace("arms.b", 'arms."\\u001b[31mb"'),
        "ESC in a benchmark's name": HEAD.replace('file = "shell.py"', 'name = "\\u001b[2Jx"'),
        "ESC in file": HEAD.replace("shell.py", "\\u001b[31mshell.py"),
        "ESC in mpi": HEAD.replace("[arms.b]", '[arms.b]\nmpi = "\\u001b[31m/mpi"'),
        "ESC in a parameter": f'{HEAD}script = "echo \\u001b[31m 2 end"\n',
        "ESC in a label": f'{HEAD}label = "\\u001b[31mx"\n',
        "ESC in the factor": HEAD.replace('"nothing"', '"\\u001b[31mx"'),
        "huge budget": f'{HEAD}[plan]\nbudget = "{"9" * 400} s"\n',
        "infinite margin": f"{HEAD}[plan]\nmargin = inf\n",
        "NaN margin": f"{HEAD}[plan]\nmargin = nan\n",
        "100,000 arms": "".join(f"[arms.a{i}]\n" for i in range(100_000)) + HEAD,
        "a date": f"{HEAD}[plan]\nblocks = 1979-05-27\n",
        "a BOM": f"\ufeff{HEAD}",
        "2 MiB": f"# {'x' * (2 << 20)}\n{HEAD}",
    }
    return {
        **{name: text.encode() for name, text in texts.items()},
        "UTF-16": HEAD.encode("utf-16"),
        "a program": Path("/bin/sh").read_bytes()[:200_000],
        "random bytes": draw.randbytes(5_000),
        "NUL bytes": HEAD.encode() + b"\0" * 100,
        "nothing": b"",
    }


def studies(arena: Arena) -> None:
    """Give study files of hostile content to run --dry-run and to audit."""
    write_study(arena.folder)
    texts = _toml_texts(arena)
    for name in arena.random.sample(sorted(texts), 6):
        path = arena.folder / "hostile.toml"
        path.write_bytes(texts[name])
        words = arena.random.choice((("audit",), ("run", "--dry-run", "--no-pilot")))
        _given(arena, (*words, path), f"study: {name} ({words[0]})", (0, 2, 3))


def strange_files(arena: Arena) -> None:
    """Give what is no file, or cannot be read, as a study, a benchmark, a table, a directory."""
    places: dict[str, Callable[[Path], object]] = {
        "a fifo": os.mkfifo,
        "a directory": lambda path: path.mkdir(),
        "/dev/zero": lambda path: path.symlink_to("/dev/zero"),
        "/dev/tty": lambda path: path.symlink_to("/dev/tty"),
        "a link to itself": lambda path: path.symlink_to(path.name),
        "an empty file": lambda path: path.touch(),
    }
    for name in arena.random.sample(sorted(places), 3):
        for verb in ("run", "file", "compare", "report", "record", "beside"):
            path = (
                arena.folder / f"strange-{arena.strikes}.{'csv' if verb == 'compare' else 'toml'}"
            )
            places[name](path)
            # A directory may be the root of a machine that was recorded.
            codes = (0, 2) if (verb, name) == ("record", "a directory") else (2,)
            _given(arena, _words(arena, verb, path), f"{verb}: {name}", codes)


def _words(arena: Arena, verb: str, path: Path) -> tuple[str | Path, ...]:
    """Return the words that make Paribus read `path`."""
    if verb == "file":
        write_study(arena.folder).write_text(HEAD.replace("shell.py", path.name))
        return ("run", arena.folder / "study.toml", "--dry-run", "--no-pilot")
    if verb == "report":
        out = arena.folder / f"study-{arena.strikes}"
        out.mkdir()
        (out / "plan.json").symlink_to(path)
        return ("report", out)
    if verb == "beside":
        return ("report", arena.ground.sample, "--beside", path)
    return {
        "run": ("run", path),
        "compare": ("compare", path),
        "record": ("record", "--from", path),
    }[verb]


def tables(arena: Arena) -> None:
    """Give hostile tables to compare."""
    sound = "block,arm,benchmark,metric,unit,value\n" + "".join(
        f"{block},{arm},b,time,us,{100 + arena.random.random()}\n"
        for block in range(20)
        for arm in "ab"
    )
    texts = {
        "200,000 columns": ",".join(f"c{i}" for i in range(200_000))
        + "\n"
        + "1," * 199_999
        + "1\n",
        "NUL in a cell": sound.replace("3,a,b", "3,a\0,b"),
        "ESC in a cell": sound.replace("3,a,b", f"3,a{ESC},b"),
        "ESC in every arm": sound.replace(",a,", f",a{ESC},"),
        "ESC in a column": sound.replace("benchmark", f"benchmark{ESC}"),
        "ESC in the benchmark": sound.replace(",b,time", f",{ESC}b,time"),
        "ESC in the unit": sound.replace(",us,", f",u{ESC}s,"),
        "ESC in a value": sound.replace(",us,1", f",us,{ESC}1"),
        "a formula as an arm": sound.replace(",a,", ",=1+1,").replace(",b,b", ",@b,b"),
        "a formula as a benchmark": sound.replace(",b,time", ",-2+3+cmd|' /C calc'!A0,time"),
        "a line of 20 MB": sound + "x" * 20_000_000 + "\n",
        "a quote that stays open": sound.replace("3,a,b", '3,"a,b') + "y,\n" * 1_000_000,
        "more launches than fit in a picture": _many(arena, 20_500),
        "UTF-16": "",
    }
    for name in arena.random.sample(sorted(texts), 4):
        path = arena.folder / "table.csv"
        path.write_bytes(texts[name].encode() or sound.encode("utf-16"))
        out = arena.folder / f"compared-{arena.strikes}"
        _given(arena, ("compare", path, "--out", out), f"table: {name}", (0, 2, 3, 4))
        _exports(arena, out, f"table: {name}")


def _many(arena: Arena, launches: int) -> str:
    lines = [
        f"{block},{arm},b,time,us,{100 + arena.random.random()}"
        for block in range(launches // 2)
        for arm in "ab"
    ]
    return "block,arm,benchmark,metric,unit,value\n" + "\n".join(lines) + "\n"


def logs(arena: Arena) -> None:
    """Give hostile logs to compare: one folder for each arm."""
    osu = "# OSU MPI Latency Test v7.1\n# Size          Latency (us)\n"
    rows = "".join(
        f"{2**i}                       {1.5 + arena.random.random():.2f}\n" for i in range(9)
    )
    texts = {
        "a line of 20 MB": osu + rows + "x" * 20_000_000,
        "ESC in a figure": osu + rows.replace("4  ", f"4 {ESC} "),
        "ESC in the title": osu.replace("Latency Test", f"Latency {ESC}Test") + rows,
        "NUL": osu + "\0" * 100_000 + rows,
        "no end": osu + rows * 10_000,
        "sizes of 400 digits": osu + "9" * 400 + " 1.50\n",
        "a program": Path("/bin/sh").read_bytes()[:100_000].decode("latin-1"),
    }
    for name in arena.random.sample(sorted(texts), 3):
        folders = [arena.folder / f"{arm}-{arena.strikes}" for arm in "ab"]
        for folder in folders:
            folder.mkdir()
            for i in range(3):
                (folder / f"run{i}.log").write_text(texts[name])
            (folder / f"{ESC[:5]}strange\nname.log").write_text(osu + rows)
        if arena.random.random() < 0.3:
            os.mkfifo(folders[0] / "fifo.log")
        out = arena.folder / f"compared-{arena.strikes}"
        _given(arena, ("compare", *folders, "--out", out), f"logs: {name}", (0, 2, 3, 4))
        _exports(arena, out, f"logs: {name}")


def printed(arena: Arena) -> None:
    """Let launches print terminal escapes and formulas where errors and reports show them."""
    bad = arena.random.choice(("\\033]0;owned\\007", "\\033[31m", "\\302\\233 2J", "=1+1", "@SUM"))
    script = f"printf '{bad} boom\\n' >&2; printf '{bad}x\\n'; exit 3"
    if arena.random.random() < 0.5:
        script = f"printf '{bad} is no number\\n'"
    arms = '[arms."=1+1"]\n[arms."@b"]\n' if arena.random.random() < 0.3 else "[arms.a]\n[arms.b]\n"
    path = write_study(arena.folder, script=script, arms=arms)
    ended = _given(arena, ("run", path, "--out", arena.out), f"a launch prints {bad}", (2, 4))
    _exports(arena, arena.out, f"a launch prints {bad}")
    if ended.code == 4:
        for words in (("report", arena.out), ("audit", arena.out)):
            _given(arena, words, f"{words[0]} where a launch printed {bad}", (0, 3, 4))


def _given(arena: Arena, words: tuple[str | Path, ...], when: str, codes: tuple[int, ...]) -> Ended:
    """Run one command on what is hostile; expect an answer with bounded means."""
    arena.strikes += 1
    ended = paribus(arena, *words, within_s=WITHIN_S, limits=ALL_MEMORY)
    ends(arena, ended, when, codes)
    arena.expect(ended.peak_mib < MOST_MIB, f"{when}: takes {ended.peak_mib:.0f} MiB")
    return ended


def _exports(arena: Arena, out: Path, when: str) -> None:
    """Expect of every CSV file neither control characters nor cells that are formulas."""
    for path in sorted(out.glob("*.csv")) if out.is_dir() else ():
        text = path.read_bytes().decode(errors="replace")
        raw = sorted({c for c in text if (c < " " and c not in "\r\n\t") or "\x7f" <= c <= "\x9f"})
        arena.expect(not raw, f"{when}: {raw} in {path.name}")
        cells = {cell for row in csv.reader(io.StringIO(text)) for cell in row if cell}
        for cell in cells:
            arena.expect(not _formula(cell), f"{when}: the cell {cell[:30]!a} in {path.name}")


def _formula(cell: str) -> bool:
    """Return whether a spreadsheet would calculate the cell instead of showing it."""
    if cell[0] not in "=+-@\t\r":
        return False
    with contextlib.suppress(ValueError):
        float(cell)
        return False
    return cell != "-"


ATTACKS = (studies, tables, strange_files, logs, printed, studies, *OF_AUTHORS)
