"""Files from outside: regular, bounded, and refused in one sentence where they are not."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import re
import shutil
import socket
import subprocess
import tarfile
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paribus.benchmarks.files import load_file
from paribus.border import MOST_DEPTH, MOST_TEXT, open_regular, read_bounded, read_toml
from paribus.core import ParibusError, Request, Study, UserError
from paribus.studyfile.load import load_study
from paribus.tools.vasp import command as vasp
from studies import paribus, write_study

STUDIES = sorted((Path(__file__).parent.parent / "studies").glob("*.toml"))
PLAIN = 'question = "q"\nfactor = "env"\n[arms.a]\n[arms.b]\n[[benchmarks]]\nname = "latency"\n'
MOST_MEMORY = 256 << 20
"""Bytes of addresses for the verb that refuses a file."""


def refused(
    *words: str | Path, cwd: Path, exit_code: int = 2, most_s: float = 30.0
) -> subprocess.CompletedProcess[str]:
    """Return how a verb ended that had little memory, after asserting that it said why, soon."""

    done = paribus(*words, cwd=cwd, timeout_s=most_s, memory=MOST_MEMORY)
    assert "Traceback" not in done.stderr, done.stderr[-2000:]
    assert done.returncode == exit_code, done.stderr
    assert re.search("^paribus: ", done.stderr, re.MULTILINE)
    assert len(done.stderr) < 2000 + sum(len(str(word)) for word in words)
    return done


# --- reading -------------------------------------------------------------------------------------


def special(folder: Path) -> dict[str, Path]:
    """Return what is no regular file, by the error about it."""
    os.mkfifo(folder / "fifo")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(folder / "socket"))
    (folder / "link").symlink_to("/dev/zero")
    return {
        "it is a pipe": folder / "fifo",
        "it is a socket": folder / "socket",
        "it is a device": folder / "link",
        "Is a directory": folder,
        "NUL": folder / "a\0b",
        "File name too long": folder / ("x" * 300),
    }


def test_only_regular_files_are_read_and_to_their_bound(tmp_path: Path) -> None:
    for said, path in special(tmp_path).items():
        with pytest.raises(OSError, match=said):
            read_bounded(path, 10, "a test")
    before = sum(1 for _ in Path("/proc/self/fd").iterdir())
    for name in ("fifo", "link"):
        with pytest.raises(OSError, match=r"pipe|device"):
            open_regular(tmp_path / name)
    assert sum(1 for _ in Path("/proc/self/fd").iterdir()) == before
    file = tmp_path / "file"
    file.write_bytes(b"0123456789")
    assert read_bounded(file, 10, "a test") == b"0123456789"
    with pytest.raises(OSError, match="9 B, the most that a test may have"):
        read_bounded(file, 9, "a test")
    assert b"Linux" in read_bounded("/proc/version", 4096, "a file of size 0")
    with pytest.raises(OSError, match="larger than 5 B"):
        read_bounded("/proc/version", 5, "a file of size 0")


def test_the_file_is_looked_at_again_once_it_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody puts a pipe in the place of the file between the two looks."""
    file = tmp_path / "file"
    file.write_bytes(b"x")
    os.mkfifo(tmp_path / "fifo")
    opened = os.open

    def swapped(path: object, flags: int) -> int:
        (tmp_path / "fifo").replace(file)
        return opened(file, flags)

    monkeypatch.setattr(os, "open", swapped)
    with pytest.raises(OSError, match="it is a pipe, not a file"):
        read_bounded(file, 10, "a test")


# --- study files ---------------------------------------------------------------------------------

MANY = 50_000
DAMAGED = {
    "dots": ".".join("a" * MANY) + " = 1",
    "dots with spaces": " . ".join("a" * MANY) + " = 1",
    "dots of quoted words": ".\"b\".'c.d'.".join("a" * (MANY // 3)) + " = 1",
    "dots of escapes": ".".join(['"\\""'] * MANY) + " = 1",
    "dots of empty words": ".".join(['""'] * MANY) + " = 1",
    "dots in a header": f"[{'.'.join('a' * MANY)}]",
    "dots in a list header": f"[[{'.'.join('a' * MANY)}]]",
    "dots in an inline table": f"x = {{ {'.'.join('a' * MANY)} = 1 }}",
    "dots behind a text": 'x = "\\"" \n' + ".".join("a" * MANY) + " = 1",
    "lists": f"x = {'[' * MANY}{']' * MANY}",
    "inline tables": f"x = {'{a=' * 2000}1{'}' * 2000}",
    "lists not too deep for the parser": f"x = {'[' * 50}{']' * 50}",
    "digits": f"x = {'9' * 5000}",
    "hexadecimal digits": f"x = 0x{'f' * 20_000}",
    "65 bits": f"x = {2**64}",
    "NUL in a key": '"a\\u0000b" = 1',
    "too long": "# \n" * (MOST_TEXT // 3 + 1),
    "no UTF-8": "\udcff = 1",
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_study_costs_neither_memory_nor_time(tmp_path: Path, name: str) -> None:
    study = tmp_path / "study.toml"
    study.write_bytes(f"{DAMAGED[name]}\n{PLAIN}".encode(errors="surrogateescape"))
    refused("run", study, "--dry-run", "--no-pilot", cwd=tmp_path)
    with pytest.raises((OSError, ValueError)):
        read_toml(study, "a study file")


COSTLY = {
    "quotes": '"\\"' * (MOST_TEXT // 3 - 99),
    "open texts": '"""\\' * (MOST_TEXT // 4 - 99),
    "one word": "a" * (MOST_TEXT - 999),
    "spaces": "a" + " " * (MOST_TEXT - 999) + "b",
    "many short keys": "".join(f"a.b.c.d.e.f.g.h.i.j.k{i}=1\n" for i in range(30_000)),
    "many tables": "".join(f"[a{i}]\n" for i in range(110_000)),
    "many lists": "x=[" + "[]," * (MOST_TEXT // 3 - 999) + "]",
}
"""Studies of the largest size, that cost the most to parse."""


@pytest.mark.slow
@pytest.mark.parametrize("name", COSTLY)
def test_the_costliest_study_of_its_size_is_cheap(tmp_path: Path, name: str) -> None:
    study = tmp_path / "study.toml"
    study.write_text(COSTLY[name])
    assert len(COSTLY[name]) < MOST_TEXT
    refused("run", study, "--dry-run", "--no-pilot", cwd=tmp_path)


def test_the_deepest_key_is_read_and_dots_elsewhere_mean_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text(f"{'.'.join('a' * MOST_DEPTH)} = 1\n")
    table = read_toml(path, "a test")
    for _ in range(MOST_DEPTH):
        table = table["a"]
    assert table == 1
    path.write_text(f'x = """\n{"wait ... " * 50}\n{"1.5, " * 99}"""\n# {". " * 99}\n')
    assert read_toml(path, "a test")["x"].count("...") == 50
    path.write_text(f"{'.'.join('a' * (MOST_DEPTH + 1))} = 1\n")
    with pytest.raises(ValueError, match=f"a key of more than {MOST_DEPTH} parts"):
        read_toml(path, "a test")


NUL = [
    *('question = "a\\u0000"', 'factor = "a\\u0000"', 'explains = ["a\\u0000"]'),
    *('arms.a.mpi = "/a\\u0000b"', 'arms.a.env.X = "a\\u0000"', 'arms.a.before = "a \\u0000"'),
    'arms.a.after = ["true", "a \\u0000"]',
    'arms.a.container = { engine = "podman", image = "\\u0000" }',
]


@pytest.mark.parametrize("line", NUL)
def test_nul_is_refused_wherever_a_study_has_a_text(tmp_path: Path, line: str) -> None:
    study = tmp_path / "study.toml"
    key = line.partition(" ")[0]
    kept = "\n".join(row for row in PLAIN.splitlines() if not row.startswith(f"{key} "))
    study.write_text(f"{line}\n{kept.replace('[arms.a]', '')}\n[arms.c]\n")
    with pytest.raises(UserError, match=f"{re.escape(key)}.* holds a NUL character"):
        load_study(study)


@pytest.mark.parametrize("key", ["file", "name", "label", "timeout", "bytes"])
def test_nul_is_refused_in_benchmarks(tmp_path: Path, key: str) -> None:
    study = tmp_path / "study.toml"
    study.write_text(
        PLAIN.replace("name =", "name =" if key == "name" else f'{key} = "\\u0000"\n#')
    )
    if key == "name":
        study.write_text(PLAIN.replace("latency", "\\u0000"))
    with pytest.raises(UserError, match=rf"benchmarks\.0\.{key} holds a NUL character"):
        load_study(study)


@pytest.mark.slow
def test_a_study_that_is_no_file(tmp_path: Path) -> None:
    for said, path in special(tmp_path).items():
        if said != "NUL":  # no argument can have one
            done = refused("run", path, "--dry-run", cwd=tmp_path, most_s=20)
            assert said in done.stderr or "no such study file" in done.stderr
    done = refused("run", "latency", cwd=tmp_path)
    assert "is a benchmark, not a study" in done.stderr
    done = refused("compare", "here", "there", cwd=tmp_path)
    assert "or for each arm a file or folder of logs" in done.stderr
    refused("audit", "/dev/zero", cwd=tmp_path)
    refused("audit", tmp_path / "fifo", cwd=tmp_path)


# --- whatever else is read -----------------------------------------------------------------------


@pytest.fixture
def bad(tmp_path: Path) -> dict[str, Path]:
    """What may lie where a file is expected: a device, a pipe, and more than is ever read."""
    os.mkfifo(tmp_path / "fifo")
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(2 << 30)  # sparse: it takes no space
    return {"device": Path("/dev/zero"), "pipe": tmp_path / "fifo", "larger": large}


@pytest.mark.slow
def test_other_inputs_are_bounded(tmp_path: Path, bad: dict[str, Path]) -> None:
    study = write_study(tmp_path)
    paribus("run", study, "--out", "out", cwd=tmp_path, code=0)
    for said, path in bad.items():
        for words in (
            ("run", study, "--beside", path, "--out", "new"),
            ("compare", path, "--reference", "a"),
            ("compare", path, path.parent / "other"),
            ("record", "--from", path),
        ):
            assert re.search(said, refused(*words, cwd=tmp_path).stderr) or "other" in str(words)
        for name in ("plan.json", "accepted.json"):
            folder = tmp_path / f"{said}-{name}"
            shutil.copytree(tmp_path / "out", folder)
            (folder / name).unlink(missing_ok=True)
            (folder / name).symlink_to(path)
            assert said in refused("report", folder, cwd=tmp_path).stderr
            assert said in refused("audit", folder, cwd=tmp_path).stderr
        with pytest.raises(UserError, match=said):
            load_file(path)
        folder = tmp_path / f"vasp-{said}"
        folder.mkdir()
        (folder / "INCAR").symlink_to(path)
        with pytest.raises(UserError, match=said):
            vasp(Request({"input": str(folder), "threads": 1, "program": ""}, 1))


def test_a_benchmark_file_that_is_no_file_is_refused_by_the_study(
    tmp_path: Path, bad: dict[str, Path]
) -> None:
    for said, path in bad.items():
        study = write_study(tmp_path)
        study.write_text(study.read_text().replace('"steady.py"', f'"{path}"'))
        assert said in refused("run", study, "--dry-run", cwd=tmp_path).stderr


@pytest.mark.slow
def test_forged_plans_and_reasons_are_refused(tmp_path: Path) -> None:
    from paribus.plan import SCHEMA
    from paribus.plan.frozen import _digest

    for text in ("[" * 100_000, "9" * 5000, '{"a": ' * 50_000, "\xff"):
        (tmp_path / "plan.json").write_text(text, encoding="latin-1")
        refused("report", tmp_path, cwd=tmp_path)
    several: list[dict[str, object]] = [{}, {"study": 1}]
    several += [{"study": {"question": []}}, {"study": {"arms": [3]}}]
    for forged in several:
        table = {"schema": SCHEMA, **forged}
        sealed = json.dumps({**table, "sha256": _digest(table)})
        (tmp_path / "plan.json").write_text(sealed)
        assert "is not a plan" in refused("report", tmp_path, cwd=tmp_path).stderr


@pytest.mark.slow
def test_names_that_are_too_long_are_no_files(tmp_path: Path) -> None:
    name = "x" * 5000
    for words in (
        *(("run", name), ("audit", name), ("compare", name), ("compare", name, "b")),
        *(("report", name), ("record", "--from", name), ("run", "same", "--beside", name)),
        *(("run", "same", "--out", name), ("record", "--out", name)),
    ):
        refused(*words, cwd=tmp_path, most_s=100)


# --- tables, logs, recordings --------------------------------------------------------------------


@pytest.mark.slow
def test_tables_of_too_many_columns(tmp_path: Path) -> None:
    columns = ["arm", "block", "benchmark", "metric", "value", *(f"c{i}" for i in range(200_000))]
    rows = [f"{arm},{block},x,y,{block + 1.5}" for block in range(3) for arm in "ab"]
    for some in (columns[:1001], columns[:90_000], columns):
        path = tmp_path / "wide.csv"
        more = "," * (len(some) - 5)
        path.write_text("\n".join((",".join(some), *(row + more for row in rows))) + "\n")
        done = paribus("compare", path, cwd=tmp_path, code=2)
        assert re.search("columns, more than 1,000|line 1: is longer than 1 MiB", done.stderr)
    path = tmp_path / "wide.jsonl"
    path.write_text(json.dumps(dict.fromkeys(columns[:2000], 1)) + "\n")
    assert "columns, more than 1,000" in paribus("compare", path, cwd=tmp_path).stderr
    path = tmp_path / "cell.csv"
    path.write_text(f"arm,benchmark,{'x' * 200_000},value\na,b,c,1\n")
    done = paribus("compare", path, cwd=tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)


def test_parquet_that_unpacks_to_more_than_a_table_may_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    from paribus.logs.tables import files

    path = tmp_path / "t.parquet"
    texts = dict.fromkeys(("arm", "benchmark", "metric"), ["a"] * 1000)
    parquet.write_table(pa.table({**texts, "value": [1.0] * 1000}), path)
    assert len(files.read(path).rows) == 1000
    monkeypatch.setattr(files, "MOST_ROWS", 999)
    with pytest.raises(UserError, match="unpacks to 1,000 rows"):
        files.read(path)


def test_cases_of_deep_json_are_texts() -> None:
    from paribus.logs.tables.table import read_case

    deep = '{"a":' * 100_000
    assert dict(read_case(deep).items) == {"case": deep}


def test_pipes_and_devices_among_logs_cost_only_themselves(tmp_path: Path) -> None:
    for arm in "ab":
        (tmp_path / arm).mkdir()
        os.mkfifo(tmp_path / arm / "pipe.log")
        (tmp_path / arm / "zero.log").symlink_to("/dev/zero")
        with (tmp_path / arm / "large.log").open("wb") as file:
            file.truncate(1 << 30)
    done = paribus("compare", "a", "b", cwd=tmp_path, timeout_s=30, code=2)
    assert "Traceback" not in done.stderr


def test_recordings_are_bounded_whatever_they_say_of_themselves(tmp_path: Path) -> None:
    """A header of a tar may be larger than all that is counted: here the name of a member."""
    path = tmp_path / "bomb.tar.gz"
    member = tarfile.TarInfo("x" * 10)
    with gzip.open(path, "wb", 1) as packed:
        header = tarfile.TarInfo("././@LongLink")
        header.type, header.size = tarfile.GNUTYPE_LONGNAME, 900 << 20
        packed.write(header.tobuf(tarfile.GNU_FORMAT))
        for _ in range(900):
            packed.write(bytes(1 << 20))
        packed.write(member.tobuf())
    assert "larger than facts" in refused("record", "--from", path, cwd=tmp_path).stderr
    folder = tmp_path / "unpacked"
    folder.mkdir()
    (folder / "unknown.json").write_text("{}")
    (folder / "links.json").write_text("{}")
    (folder / "secret").symlink_to("/etc/hostname")
    paribus("record", "--from", folder, cwd=tmp_path, code=0)
    with (folder / "large").open("wb") as file:
        file.truncate(1 << 30)
    assert "larger than" in refused("record", "--from", folder, cwd=tmp_path).stderr
    for data in (b"", gzip.compress(b""), gzip.compress(b"x")[:-4], b"\x1f\x8b" + bytes(99)):
        path.write_bytes(data)
        refused("record", "--from", path, cwd=tmp_path)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name in ("unknown.json", "links.json"):
            deep = tarfile.TarInfo(name)
            deep.size = 100_000
            tar.addfile(deep, io.BytesIO(b"[" * 100_000))
    path.write_bytes(buffer.getvalue())
    refused("record", "--from", path, cwd=tmp_path)


# --- damage --------------------------------------------------------------------------------------

VALUES = (
    *("1e999", "nan", "-inf", "-0", "0x" + "f" * 400, "9" * 4400, str(2**63), "-1", "true", "1.5"),
    *("1979-05-27", "07:32:00", "1979-05-27T00:32:00-07:00", '"\\u0000"', '"\\u001b"', "0", "2"),
    *('"9e99 h"', '"1e400 s"', '"0 s"', '"-1 s"', '"200 %"', '"1 B : 1e9 TiB"', '""', "[]", "{}"),
    *('["a", 1]', "[[1]]", "{ a = 1 }", '"\'"', '"a b"', "9223372036854775807", '["1 B", "1 B"]'),
    *('"latency"', '"core"', '"duet"', '"cases"', '"a.py"', '"' + "x" * 5000 + '"', "[1e308, 1]"),
)
PIECES = (
    *('"', "'", '"""', "'''", "[", "]", "[[", "]]", "{", "}", "=", ".", ",", "#", "\n", "\\", " "),
    *("a.b.c = 1\n", "[plan]\n", "[arms.x]\n", "[[benchmarks]]\n", "[" * 400, "a." * 40, "\0"),
    *("\u202e", "\ud7ff", "\ud800", "\U0010ffff", "é", ""),
)


WHOLE = """
question = "Which?"
factor = "env"
explains = ["env.X"]

[arms.a]
mpi = "openmpi"
transport = "tcp"
env = { X = "1", OMP_NUM_THREADS = "2" }
before = ["true", "sh -c 'echo x'"]
after = "true"
argv = ["./a", "-n"]
wrap = ["nice", "-n", "5"]
wrap_around = "launcher"
[arms.b]
argv = ["./b"]
container = { engine = "podman", network = "bridge", each = "host", image = "x" }

[[benchmarks]]
name = "latency"
label = "small"
ranks = 2
timeout = "2 min"
endpoints = ["p99", "median"]
bytes = "1 B : 64 KiB"
[[benchmarks]]
name = "stream"
threads = "all"
[[benchmarks]]
name = "incast"
[[benchmarks]]
name = "fio"
[[benchmarks]]
name = "command"
regex = "took (.*) s"
unit = "s"
better = "lower"
success = "DONE"
directory = "case"

[plan]
margin = "2 %"
confidence = 0.95
blocks = 60
budget = "1 h"
seed = 7
bind = "core"
unit = "session"
launches = 3
layout = "pairs"
decides = "headline"
monitor = false
"""


def damaged(text: str, draw: random.Random) -> str:
    """Return `text` with one to four changes: most a value replaced, else cut, doubled or moved."""
    for _ in range(draw.randint(1, 4)):
        values = [match.span(1) for match in re.finditer(r"= *([^\n#]*)", text)]
        if values and draw.random() < 0.9:
            low, high = draw.choice(values)
            new = draw.choice(VALUES)
        else:
            low, high = sorted(draw.randrange(len(text) + 1) for _ in range(2))
            high = min(high, low + draw.choice((1, 3, 20, 200)))
            new = draw.choice((*PIECES, text[low:high] * 2, text[-high : -low or None]))
        text = text[:low] + new + text[high:]
    return text


@settings(max_examples=25)
@given(st.integers(0, 2**32))
def test_a_damaged_study_is_a_study_or_refused(seed: int) -> None:
    """Twenty damaged studies a seed, of one with every key and of those that ship."""
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "study.toml"
        for _ in range(20):
            text = damaged(draw.choice([WHOLE, *(one.read_text() for one in STUDIES)]), draw)
            path.write_bytes(text.encode(errors="surrogatepass"))
            begun = time.monotonic()
            found: Study | ParibusError
            try:
                found = load_study(path)
            except ParibusError as error:
                found = error
            except BaseException as error:
                raise AssertionError(text) from error
            assert isinstance(found, Study) or found.place
            assert isinstance(found, Study) or len(str(found)) < 2000
            assert time.monotonic() - begun < 20
