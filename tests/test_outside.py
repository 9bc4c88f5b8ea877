"""Text from outside is shown, never obeyed: no verb passes a control character on."""

from __future__ import annotations

import ast
import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.border import Screen, csv_cell, printable, screened
from paribus.report.printing import console_on
from processes import on_a_terminal
from studies import command, paribus, write_study

SOURCE = Path(__file__).parent.parent / "src" / "paribus"
EVIL = "\x1b]0;owned\x07\x1b[35;46mE\x9b31m\x7f\u202e\u2066\b\r"
"""A title for the window, colours in two ways, a change of direction, and ways to overwrite."""

IN_TOML = json.dumps(EVIL)[1:-1]
OBEYED = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def raw(text: str) -> list[str]:
    """Return the characters of `text` that a terminal obeys, but line ends and tabs."""
    return [c for c in text if unicodedata.category(c) in OBEYED and c not in "\n\t"]


@given(st.text())
def test_whatever_is_printable_stays_and_nothing_else(text: str) -> None:
    shown = printable(text)
    assert raw(shown) == [] == [c for c in shown if c in "\n\t"]
    assert printable(shown) == shown
    assert not raw(printable(text, keep="\n"))
    if not raw(text) and not set(text) & set("\n\t"):
        assert len(shown) == len(text) or any(unicodedata.category(c) in "CoCn" for c in text)


def test_cells_that_begin_as_formulas_are_texts() -> None:
    for start in ("=", "+", "-", "@", "\t", "\r", "  ="):
        assert csv_cell(f"{start}cmd|' /C calc'!A0").startswith("'"), start
    assert [csv_cell(text) for text in ("host", "a=b", "Größe 5 µs", "")] == [
        "host",
        "a=b",
        "Größe 5 µs",
        "",
    ]
    assert csv_cell(EVIL + "\n") == printable(EVIL + "\n")


def test_a_screen_stands_before_both_streams_and_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    out, err = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    with screened():
        print(f"a{EVIL}\tb")
        print(EVIL, file=sys.stderr)
        sys.stdout.writelines([EVIL, "\n"])
        assert isinstance(sys.stdout, Screen)
        assert not sys.stdout.isatty()
    assert sys.stdout is out
    assert not raw(out.getvalue() + err.getvalue())
    assert out.getvalue().count("\n") == 2
    assert "\t" in out.getvalue()


def test_a_console_keeps_its_own_colours_and_no_others() -> None:
    from rich.text import Text

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    file = Terminal()
    console = console_on(file)
    console.print(Text(EVIL, style="bold red"))
    console.print(EVIL, style="bold red", markup=False)
    plain = re.sub(r"\x1b\[(1;31|0)m", "", file.getvalue())
    assert file.getvalue() != plain
    assert not raw(plain)


def test_consoles_are_made_in_one_place_and_no_stream_is_written_behind_the_screen() -> None:
    makers, writers = set(), set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("Console"):
                makers.add(path.name)
            if isinstance(node, ast.Attribute) and ast.unparse(node) in BEHIND:
                writers.add(path.name)
    assert makers <= {"printing.py"}
    assert writers == set()


BEHIND = ("sys.__stdout__", "sys.__stderr__", "sys.stdout.buffer", "sys.stderr.buffer")


# --- the verbs -----------------------------------------------------------------------------------


def assert_shown(done: subprocess.CompletedProcess[str], *exit_codes: int) -> None:
    """Assert that a verb ended so, printed nothing that is obeyed, and showed that it was there."""
    assert done.returncode in exit_codes, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert raw(done.stdout + done.stderr) == []
    assert re.search(r"\\(x|u00)1b", done.stdout + done.stderr)


def hostile_study(folder: Path, script: str) -> Path:
    """Return a study with an escape sequence in every text that a study may choose."""
    path = write_study(
        folder,
        script=script,
        arms=f'[arms.a]\nenv = {{ OMP_X = "a{IN_TOML}" }}\n'
        f'[arms.b]\nenv = {{ OMP_X = "b{IN_TOML}" }}\n',
        plan="blocks = 8",
        factor=f"env{IN_TOML}",
    )
    text = path.read_text().replace("Which?", f"Which{IN_TOML}?")
    path = folder / f"study{EVIL}.toml"
    path.write_text(f'explains = ["{IN_TOML}"]\n{text}')
    return path


@pytest.mark.slow
def test_a_study_of_hostile_texts_and_launches_that_print_them(tmp_path: Path) -> None:
    escaped = EVIL.encode().hex(" ")
    octal = "".join(f"\\{int(byte, 16):03o}" for byte in escaped.split())
    script = f'printf "{octal}" >&2; case $OMP_X in a*) echo 2.5;; *) exit 3;; esac'
    study = hostile_study(tmp_path, script.replace("\\", "\\\\").replace('"', '\\"'))
    assert_shown(paribus("run", study, "--dry-run", "--no-pilot", cwd=tmp_path), 0)
    assert_shown(paribus("run", study, "--dry-run", cwd=tmp_path), 3)
    words = ("run", study, "--dry-run", "--anyway")  # what its launches printed is kept in TMPDIR
    assert_shown(paribus(*words, cwd=tmp_path, TMPDIR=str(tmp_path)), 4)
    out = f"out{EVIL}"
    assert_shown(paribus("run", study, "--out", out, cwd=tmp_path), 3)
    assert_shown(paribus("run", study, "--out", out, "--anyway", cwd=tmp_path), 0, 3, 4)
    assert_shown(paribus("run", study, "--out", out, cwd=tmp_path), 2)
    assert_shown(paribus("report", out, cwd=tmp_path), 0, 3, 4)
    assert_shown(paribus("report", out, "--json", cwd=tmp_path), 0, 3, 4)
    assert_shown(paribus("audit", out, "--all", cwd=tmp_path), 0, 3, 4)
    assert_shown(paribus("audit", study, "--accept", "x\x1b\x9b=y", cwd=tmp_path), 0, 3, 4)
    assert_shown(paribus("compare", out, cwd=tmp_path), 2, 3, 4)
    for name in ("cases.csv", "launches.csv", "report.html", "verdict.json"):
        assert raw((tmp_path / out / name).read_text()) == [], name


@pytest.mark.parametrize(
    "change",
    [
        ('question = "Which?"', f'question = "a{IN_TOML}'),
        ('question = "Which?"', f"question = '{EVIL}'"),
        ('question = "Which?"', f'"{IN_TOML}" = 1'),
        ("[arms.a]", f'[arms."{IN_TOML}"]'),
        ("[arms.a]", f'[arms.a]\ntransport = "{IN_TOML}"'),
        ("[arms.a]", f'[arms.a]\nmpi = "/{IN_TOML}"'),
        ("[arms.a]", f'[arms.a]\nbefore = "{IN_TOML}"'),
        ("[arms.a]", f'[arms.a]\nbefore = ["""sh -c "echo \'{IN_TOML}\' >&2; exit 1" """]'),
        ('file = "steady.py"', f'file = "{IN_TOML}"'),
        ('file = "steady.py"', f'name = "{IN_TOML}"'),
        ('file = "steady.py"', f'file = "steady.py"\nlabel = "{IN_TOML}"'),
        ('file = "steady.py"', f'name = "latency"\nbytes = "{IN_TOML}"'),
        ('file = "steady.py"', 'file = "broken.py"'),
        ("[plan]", f'[plan]\nbudget = "{IN_TOML}"'),
        ("[arms.a]", f'[arms.a]\ncontainer = {{ engine = "podman", image = "{IN_TOML}" }}'),
    ],
)
def test_a_refused_study_names_what_it_refuses(tmp_path: Path, change: tuple[str, str]) -> None:
    study = write_study(tmp_path)
    (tmp_path / "broken.py").write_text(f"raise ValueError({EVIL!r})\n")
    study.write_text(study.read_text().replace(*change, 1))
    done = paribus("run", study, "--out", "out", cwd=tmp_path)
    assert raw(done.stdout + done.stderr) == []
    assert "Traceback" not in done.stderr
    assert done.returncode == 2


@pytest.mark.slow
def test_tables_logs_and_figures_of_hostile_texts(tmp_path: Path) -> None:
    rows = [
        {
            "extra\x1b]0;": EVIL,
            "arm": arm + EVIL,
            "block": block,
            "time": 2 * block + (arm == "+b"),
            "benchmark": f"=cmd{EVIL}",
            "case": EVIL,
            "metric": f"@time{EVIL}",
            "unit": f"-us{EVIL}",
            "better": "lower",
            "value": 5 + block % 3 / 10 + ("+b" in arm),
        }
        for block in range(1, 21)
        for arm in ("=1+1", "+b")
    ]
    path = tmp_path / f"t{EVIL}.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    figures = tmp_path / f"{EVIL}.toml"
    figures.write_text(
        f'title = "{IN_TOML}"\nyear = "{IN_TOML}"\nfactor = "{IN_TOML}"\n[arms]\na = "{IN_TOML}"\n'
        f'"{IN_TOML}" = "x"\n[[figures]]\nbenchmark = "osu_latency"\ncase = {{ bytes = 8 }}\n'
        f'note = "{IN_TOML}"\nvalues = {{ a = 1.0, "{IN_TOML}" = 2.0 }}\n'
    )
    assert_shown(paribus("compare", path, "--beside", figures, "--out", "o", cwd=tmp_path), 0, 3)
    for name in ("cases.csv", "launches.csv"):
        with (tmp_path / "o" / name).open(newline="") as file:
            cells = [cell for row in csv.reader(file) for cell in row]
        assert raw("".join(cells)) == []
        texts = [cell for cell in cells if not re.fullmatch(r"-?[\d.]+(e-?\d+)?", cell)]
        assert [cell for cell in texts if cell[:1] in set("=+-@")] == []
        assert any(cell.startswith("'=1+1") for cell in texts)
    assert_shown(paribus("compare", figures, cwd=tmp_path), 0, 3)
    assert_shown(paribus("compare", path, "--reference", EVIL, cwd=tmp_path), 2)
    path.write_text(path.read_text().replace("value", f"val{EVIL}"))
    assert_shown(paribus("compare", path, cwd=tmp_path), 2)
    path.write_text(f"arm,value{EVIL}\n{EVIL},{EVIL}\n")
    assert_shown(paribus("compare", path, cwd=tmp_path), 2)
    assert_shown(paribus("compare", f"none{EVIL}", "b", cwd=tmp_path), 2)


def test_logs_of_hostile_names_and_texts(tmp_path: Path) -> None:
    for arm in "ab":
        folder = tmp_path / f"{arm}{EVIL}"
        folder.mkdir()
        (folder / f"{EVIL}.log").write_text(f"# OSU MPI Latency Test v7.4\n# {EVIL}\n8 {EVIL}\n")
        (folder / f"{EVIL}2.log").write_text(f"mpirun: {EVIL} Segmentation fault {EVIL}\n")
    folders = sorted(tmp_path.iterdir())
    assert_shown(paribus("compare", *folders, cwd=tmp_path), 2, 3, 4)


def test_facts_programs_and_options_of_hostile_texts(tmp_path: Path) -> None:
    root = tmp_path / f"machine{EVIL}"
    (root / "proc").mkdir(parents=True)
    (root / "proc" / "cpuinfo").write_text(f"processor\t: 0\nmodel name\t: fast{EVIL}\n\n")
    (root / "proc" / "cmdline").write_text(f"quiet{EVIL}\n")
    assert_shown(paribus("record", "--from", root, cwd=tmp_path), 0)
    assert_shown(paribus("record", "--from", root / "none", cwd=tmp_path), 2)
    there = tmp_path / f"bin{EVIL}"
    there.mkdir()
    shutil.copy("/bin/true", there / "osu_latency")
    path = f"{there}:{os.environ['PATH']}"
    assert_shown(paribus("list", "osu_latency", cwd=tmp_path, PATH=path), 0)
    assert_shown(paribus("list", "--json", cwd=tmp_path, PATH=path), 0)
    assert_shown(paribus("doctor", "--mpi", f"/{EVIL}", cwd=tmp_path), 0, 1, 2)
    assert_shown(paribus("run", f"x{EVIL}", cwd=tmp_path), 2)
    assert_shown(paribus("run", "same", f"--{EVIL}", cwd=tmp_path), 2)
    assert_shown(paribus(EVIL, cwd=tmp_path), 2)


def test_what_is_prepared_and_what_is_drawn_on_a_terminal(tmp_path: Path) -> None:
    """On a terminal, colours and the cursor are ours, and nothing else is an escape sequence."""
    study = hostile_study(tmp_path, "echo 2.5")
    words = command("run", study, "--out", "out", "--anyway", "--full")
    code, text = on_a_terminal(words, tmp_path, TERM="xterm-256color")
    assert code in (0, 3)
    assert r"\x1b" in text
    assert "\x1b[1m" in text
    ours = r"\x1b\[(\?25[hl]|[0-9]*[AK]|2K|[0-9;]*m)|\r"
    assert "35;46" not in re.sub(r"\\x1b\[35;46mE", "", text)
    assert raw(re.sub(ours, "", text)) == []
