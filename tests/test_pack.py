"""`paribus pack`: a study in one file comes back as it was, and without names if asked."""

from __future__ import annotations

import hashlib
import html
import json
import os
import random
import re
import resource
import shutil
import stat
import struct
import subprocess
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from forked import Nursery, nursery
from paribus.__main__ import main
from paribus.cli import outputs
from paribus.cli.exports import TEXTS
from paribus.core import Arm, Step, StoreError
from paribus.judge.conclude import judged
from paribus.launch.scrubbing import Names, unnamed
from paribus.report.export import to_json
from paribus.store.pack import SUMS, pack, unpack
from processes import ran
from studies import command, paribus
from study_directories import write_directory

Files = dict[str, bytes]
LOG = "logs/0001-0-a-latency.out"
NESTED = {"x": b"a file", "x/y": b"below it"}
WITHIN_S = 20
MIB = 1 << 20


@pytest.fixture(scope="module")
def forks() -> Iterator[Nursery]:
    with nursery() as one:
        yield one


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a small study, packed."""
    folder = tmp_path_factory.mktemp("packed")
    directory = write_directory(folder / "study", {"a": 1.0, "b": 1.1}, blocks=3)
    (directory / "logs").mkdir()
    (directory / LOG).write_text("8 2.5\n" * 50)
    pack(directory, ["plan.json", "launches.db", "launches.count", "logs"], folder / "study.zip")
    return folder / "study.zip"


def files_of(sound: Path) -> Files:
    with zipfile.ZipFile(sound) as archive:
        return {name: archive.read(name) for name in archive.namelist() if name != SUMS}


def summed(files: Files) -> Files:
    """Return files with their hashes, as `pack` writes them."""
    sums = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in files.items())
    return {**files, SUMS: sums.encode()}


def zipped(path: Path, files: Files, kind: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", kind) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


Made = Callable[[Path, Path], Any]
"""Makes of the sound file another, at the second path."""


def of(change: Callable[[Files], Files], kind: int = zipfile.ZIP_DEFLATED) -> Made:
    """Return what changes the files and then sums them."""
    return lambda sound, path: zipped(path, summed(change(files_of(sound))), kind)


def after(change: Callable[[Files], Files]) -> Made:
    """Return what changes the files that are summed."""
    return lambda sound, path: zipped(path, change(summed(files_of(sound))))


def evil_name(name: str) -> Made:
    return of(lambda files: {**files, name: b"evil"})


def twice(name: str) -> Made:
    """Return what holds a file of this name twice."""

    def made(sound: Path, path: Path) -> None:
        zipped(path, summed(files_of(sound)))
        with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr(name, b"other")

    return made


def with_mode(mode: int) -> Callable[[Path, Path], None]:
    def made(sound: Path, path: Path) -> None:
        files = summed({**files_of(sound), "verdict.json": b"/etc/passwd"})
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in files.items():
                info = zipfile.ZipInfo(name)
                info.external_attr = (mode if name == "verdict.json" else 0o100644) << 16
                archive.writestr(info, data)

    return made


def listed(at: int, wrong: bytes) -> Made:
    """Return what has other bytes in this place of each member's entry in the list."""

    def made(sound: Path, path: Path) -> None:
        data = bytearray(zipped(path, summed(files_of(sound))).read_bytes())
        for found in re.finditer(rb"PK\x01\x02", bytes(data)):
            data[found.start() + at : found.start() + at + len(wrong)] = wrong
        path.write_bytes(data)

    return made


def overlapping(sound: Path, path: Path) -> None:
    """Let many names lead to one member of many bytes."""
    files = ["plan.json", *(f"logs/{number:04d}" for number in range(2999))]
    data = bytes(MIB)
    crc, deflated = zlib.crc32(data), zlib.compress(data, 9)[2:-4]
    digest = hashlib.sha256(data).hexdigest()
    sums = "".join(f"{digest}  {name}\n" for name in files).encode()
    body = b"".join(_header(b"x", deflated, crc, len(data), 8)) + deflated
    at = len(body)
    body += b"".join(_header(SUMS.encode(), sums, zlib.crc32(sums), len(sums), 0)) + sums
    listed = b"".join(
        _listed(name.encode(), len(deflated), crc, len(data), 8, 0) for name in files
    ) + _listed(SUMS.encode(), len(sums), zlib.crc32(sums), len(sums), 0, at)
    path.write_bytes(body + listed + _end(len(files) + 1, len(listed), len(body)))


def _header(name: bytes, packed: bytes, crc: int, size: int, how: int) -> tuple[bytes, bytes]:
    fields = (b"PK\x03\x04", 20, 0, how, 0, 0, crc, len(packed), size, len(name), 0)
    return struct.pack("<4sHHHHHIIIHH", *fields), name


def _listed(name: bytes, packed: int, crc: int, size: int, how: int, at: int) -> bytes:
    fields = (b"PK\x01\x02", 20, 20, 0, how, 0, 0, crc, packed, size, len(name), *[0] * 5, at)
    return struct.pack("<4sHHHHHHIIIHHHHHII", *fields) + name


def _end(count: int, size: int, at: int) -> bytes:
    return struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, count % 65536, count % 65536, size, at, 0)


def huge_list(sound: Path, path: Path) -> None:
    """Let a list of files that nobody wrote have 3 MB of the smallest entries, again and again."""
    entry = _listed(b"a", 0, 0, 0, 0, 0)
    listed = entry * (40 * MIB // len(entry))
    path.write_bytes(listed + _end(1, len(listed), 0))


def huge_sums(sound: Path, path: Path) -> None:
    """Let 3 MB be the list of hashes, which unpacks to 3 GB."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("plan.json", b"{}")
        with archive.open(SUMS, "w", force_zip64=True) as target:
            for _ in range(3000):
                target.write(bytes(MIB))


def zip64_end(*numbers: int) -> Callable[[Path, Path], None]:
    """Put an end of zip64 in front of the end: count twice, size of the list, its place."""

    def made(sound: Path, path: Path) -> None:
        data = sound.read_bytes()
        end = data.rindex(b"PK\x05\x06")
        fields = (b"PK\x06\x06", 44, 45, 45, 0, 0, *numbers)
        record = struct.pack("<4sQHHIIQQQQ", *fields)
        locator = struct.pack("<4sIQI", b"PK\x06\x07", 0, end, 1)
        last = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, *[0xFFFF] * 2, *[0xFFFFFFFF] * 2, 0)
        path.write_bytes(data[:end] + record + locator + last)

    return made


def holes(sound: Path, path: Path) -> None:
    path.touch()
    os.truncate(path, 3 << 30)


CASES: dict[str, tuple[Made, str]] = {
    "an absolute name": (evil_name("/tmp/evil-of-a-zip"), "outside of it"),
    "a name above": (evil_name("../evil"), "outside of it"),
    "a name above, inside": (evil_name("logs/../../evil"), "outside of it"),
    "a name of Windows": (evil_name("..\\evil"), "outside of it"),
    "a name with ESC": (evil_name("logs/\x1b[2Jx"), "outside of it"),
    "a name of many levels": (evil_name("a/" * 2000 + "a"), "outside of it"),
    "a name of 60,000 letters": (evil_name("a" * 60_000), "File name too long"),
    "a dot": (evil_name("."), "outside of it"),
    "one name twice": (twice("plan.json"), "does not name the files"),
    "two lists": (twice(SUMS), "has no SHA256SUMS"),
    "folders": (after(lambda files: {**files, "logs/": b""}), "outside of it"),
    "a link": (with_mode(stat.S_IFLNK | 0o777), "no regular file"),
    "a pipe": (with_mode(stat.S_IFIFO | 0o644), "no regular file"),
    "a device": (with_mode(stat.S_IFCHR | 0o644), "no regular file"),
    "a file and what is below": (of(lambda files: {**files, **NESTED}), "cannot be written"),
    "encrypted": (listed(8, b"\x01"), "is encrypted"),
    "an unknown compression": (listed(10, b"\x5d\0"), "compresses nothing"),
    "bzip2": (of(dict, zipfile.ZIP_BZIP2), "compresses nothing"),
    "lzma": (of(dict, zipfile.ZIP_LZMA), "compresses nothing"),
    "overlapping members": (overlapping, "would unpack to 3000 MiB"),
    "a list of 40 MB": (huge_list, "more than a study can"),
    "hashes of 3 GB": (huge_sums, "does not name the files"),
    "sizes of 4 GB": (listed(24, b"\xfe\xff\xff\xff"), "SHA256SUMS does not name the files"),
    "zip64: a list of 2^63 bytes": (zip64_end(1, 1, 2**63, 0), "not a whole zip file"),
    "zip64: a place of 2^64": (zip64_end(1, 1, 100, 2**64 - 1), "not a whole zip file"),
    "zip64: many files": (zip64_end(2**60, 2**60, 100, 0), "not a whole zip file"),
    "no study": (of(lambda _: {"holiday.jpg": b"\xff\xd8", "notes.txt": b"x"}), "holds no study"),
    "a plan of something else": (of(lambda _: {"plan.json": b'{"plan": "x"}'}), "holds no study"),
    "no list": (lambda s, p: zipped(p, files_of(s)), "has no SHA256SUMS"),
    "a file that was changed": (after(lambda f: {**f, LOG: b"8 1\n"}), f"{LOG} has been changed"),
    "a file fewer": (after(lambda f: {k: f[k] for k in f if k != LOG}), "does not name the files"),
    "a file more": (after(lambda f: {**f, "extra": b""}), "does not name the files"),
    "nothing": (lambda _, p: p.touch(), "not a whole zip file"),
    "an empty zip": (lambda _, p: zipped(p, {}), "has no SHA256SUMS"),
    "text": (lambda _, p: p.write_text("hello" * 999), "not a whole zip file"),
    "a pipe to read": (lambda _, p: os.mkfifo(p), "it is a pipe"),
    "zeros to read": (lambda _, p: p.symlink_to("/dev/zero"), "it is a device"),
    "a folder": (lambda _, p: p.mkdir(), "Is a directory"),
    "nowhere": (lambda _, p: p.symlink_to("nowhere"), "No such file"),
    "a link to itself": (lambda _, p: p.symlink_to(p.name), "Too many levels"),
    "holes": (holes, "not a whole zip file"),
    "8,000 files": (of(lambda files: files | {f"logs/{n}": b"" for n in range(8_000)}), ""),
    "sound": (lambda s, p: p.write_bytes(s.read_bytes()), ""),
}


@pytest.mark.parametrize("case", CASES)
def test_a_zip_ends_in_a_study_or_one_line(
    case: str, sound: Path, forks: Nursery, tmp_path: Path
) -> None:
    made, cause = CASES[case]
    where = tmp_path / "where"
    where.mkdir()
    made(sound, where / "a.zip")
    begun = time.monotonic()
    ended = forks.paribus("pack", "--open", "a.zip", cwd=where, within_s=WITHIN_S)
    assert time.monotonic() - begun < WITHIN_S
    assert "Traceback" not in ended.err, ended.err[-2000:]
    if not cause:
        assert ended.code == 0, ended.err
        assert "each as it was packed" in ended.out
        return
    assert ended.code == 2, (ended.code, ended.err)
    [said] = ended.complaints()
    assert cause in said
    assert "a.zip" in said or cause in ("cannot be written", "File name too long")
    assert len(ended.err) < 1000 + len(cause) or cause == "File name too long"
    assert [path.name for path in where.iterdir()] == ["a.zip"]
    assert not (tmp_path / "evil").exists()
    assert not Path("/tmp/evil-of-a-zip").exists()


def test_damage_of_each_region_ends_in_a_study_or_one_line(
    sound: Path, tmp_path: Path, sample: Callable[..., list[Any]]
) -> None:
    """Each byte of the headers and the list changed, and regions cut out or filled in turn."""
    data, draw = sound.read_bytes(), random.Random(1)
    headers = {
        at
        for found in re.finditer(rb"PK", data)
        for at in range(found.start(), min(found.start() + 90, len(data)))
    }
    cases = [(at, 1, bit) for at in sorted(headers) for bit in (0xFF, 0x01, 0x80)]
    cases += [(draw.randrange(len(data)), draw.choice((1, 8, 100, 5000)), 0) for _ in range(3000)]
    target, damaged = tmp_path / "out", tmp_path / "b.zip"
    ends = set()
    for at, size, bit in sample(cases):
        part = bytes(one ^ bit for one in data[at : at + size]) if bit else draw.randbytes(size)
        left = data[:at] + part + data[at + size :] if draw.random() < 0.8 or bit else data[:at]
        damaged.write_bytes(left)
        try:
            unpack(damaged, target)
        except StoreError as error:
            said = error.place and error.cause
            ends.add("refused" if said and "\n" not in said and not target.exists() else str(error))
        else:
            for name, was in files_of(sound).items():
                assert (target / name).read_bytes() == was, (at, size, bit)
            shutil.rmtree(target)
            ends.add("sound")
    assert ends <= {"refused", "sound"}
    assert "refused" in ends


def test_what_is_packed_can_be_opened_and_links_are_not_left_out_in_silence(tmp_path: Path) -> None:
    """A study whose plan is a link would else be packed without one."""
    directory = write_directory(tmp_path / "study", {"a": 1.0, "b": 1.1}, blocks=3)
    (directory / "logs").mkdir()
    (directory / "logs" / "odd\nname").write_text("x")
    names = ["plan.json", "launches.db", "logs"]
    with pytest.raises(StoreError, match="no file of a study is called so"):
        pack(directory, names, tmp_path / "a.zip")
    (directory / "logs" / "odd\nname").rename(directory / "logs" / "even")
    assert pack(directory, names, tmp_path / "a.zip") == 3
    assert unpack(tmp_path / "a.zip", tmp_path / "out") == 3
    for path in (directory / "plan.json", directory / "logs" / "even"):
        path.rename(tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
        with pytest.raises(StoreError, match="it is a link"):
            pack(directory, names, tmp_path / "b.zip")
        path.unlink()
        (tmp_path / "elsewhere").rename(path)
    assert not (tmp_path / "b.zip").exists()


def test_a_full_disk_is_said_before_anything_is_written(sound: Path, tmp_path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

    words = command("pack", "--open", sound, "--out", tmp_path / "out")
    done = ran(words, preexec_fn=limit, code=2)
    assert "cannot be written: File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


PRIVATE = ("node17.cluster.example", "10.20.30.40", "aa:bb:cc:dd:ee:ff", "/home/ada/")


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """Return a study of hosts with names, addresses and a user in facts and logs."""
    host, address, mac, home = PRIVATE
    facts = {
        "rank.hosts": [host],
        "net.0.mac": mac,
        "net.0.address": address,
        "mpi.version": "4.1.4.0",
        "kernel.build": f"{home}kernels",
    }
    directory = write_directory(
        tmp_path / "study",
        {"host": 1.0, "bridged": 1.2},
        blocks=18,
        facts={"host": facts, "bridged": {**facts, "net.0.address": "10.20.30.41"}},
    )
    (directory / "logs").mkdir()
    (directory / "logs" / "0001-0-host-latency.out").write_text(
        f"on {host} (node17) at {address}, {mac}, by {home}bin/latency\n8 2.5\n"
    )
    outputs.write_files(judged(directory), directory)
    return directory


def executed(*words: str, code: int = 0) -> str:
    done = paribus("pack", *words, cwd=Path.cwd(), timeout_s=60, code=code)
    return done.stdout + done.stderr


def test_a_study_comes_back_as_it_was(study: Path, tmp_path: Path) -> None:
    assert "study.zip" in executed(str(study))
    back = tmp_path / "back"
    executed("--open", str(tmp_path / "study.zip"), "--out", str(back))
    for path in study.rglob("*"):
        if path.is_file() and path.name != "lock":
            assert (back / path.relative_to(study)).read_bytes() == path.read_bytes(), path
    assert to_json(judged(back))["headlines"] == to_json(judged(study))["headlines"]
    with zipfile.ZipFile(tmp_path / "study.zip") as archive:
        archive.extractall(tmp_path / "by-hand")
    argv = ["sha256sum", "--quiet", "-c", SUMS]
    subprocess.run(argv, cwd=tmp_path / "by-hand", check=True, capture_output=True)


def test_scrubbed_names_are_nowhere_and_verdicts_stay(study: Path, tmp_path: Path) -> None:
    executed(str(study), "--scrub")
    back = tmp_path / "back"
    unpack(tmp_path / "study.zip", back)
    whole = b"".join(path.read_bytes() for path in back.rglob("*") if path.is_file())
    for name in (*PRIVATE, "node17", "10.20.30.41", str(tmp_path)):
        assert name.encode() not in whole, name
    before, after = to_json(judged(study)), to_json(judged(back))
    assert after["sentence"] == before["sentence"]
    kinds = [(d["key"], d["kind"]) for d in before["differences"]]
    assert [(d["key"], d["kind"]) for d in after["differences"]] == kinds
    assert after["facts"]["host"]["mpi.version"] == "4.1.4.0"
    assert (back / "logs" / "0001-0-host-latency.out").read_text().endswith("8 2.5\n")


def test_different_names_stay_different() -> None:
    names = Names(["n1", "n2", "n10"])
    assert names.text("n1 n2 n10 n1") == "node1 node2 node3 node1"
    assert names.text("n11 xn1") == "n11 xn1"
    assert names.text("10.0.0.1 and 10.0.0.2, 127.0.0.1") == "192.0.2.4 and 192.0.2.5, 127.0.0.1"


def test_commands_that_switch_an_arm_are_scrubbed_and_stay_commands() -> None:
    arm = Arm("a", before=(Step(("ssh", "n1", "on"), on="n1", limit_s=9.0),), env={"NODE": "n1"})
    found = Names(["n1"]).value(arm)
    step = Step(("ssh", "node1", "on"), "node1", 9.0)
    assert found == replace(arm, before=(step,), env={"NODE": "node1"})
    assert type(found.before[0]) is Step


def test_names_of_control_groups_and_what_init_is_given_are_scrubbed() -> None:
    line = ["quiet", "rdinit=/site/agent", "iommu=pt", "--", "--token", "s3cret"]
    facts = {"os.cmdline": line, "cgroup.path": "/site/job_17", "cpu.count": 2}
    found = unnamed(facts)
    assert not re.search("site|17|s3cret|token", json.dumps(found))
    assert [one.partition("=")[0] for one in found["os.cmdline"]] == ["quiet", "rdinit", "iommu"]
    assert (found["cpu.count"], found["os.cmdline"][2]) == (2, "iommu=pt")
    other = unnamed({**facts, "cgroup.path": "/site/job_18"})
    assert other["cgroup.path"] != found["cgroup.path"], "what differs still differs"


def test_nothing_is_overwritten(study: Path, tmp_path: Path) -> None:
    executed(str(study))
    assert "exists already" in executed(str(study), code=2)
    said = executed("--open", str(tmp_path / "study.zip"), code=2)
    assert "cannot be made: File exists" in said
    assert json.loads((study / "verdict.json").read_text())


def test_the_suite_s_file_has_every_launch(study: Path) -> None:
    """What is written for OpenBenchmarking.org is what our reader of such files demands."""
    from paribus.logs.harnesses.phoronix import read
    from paribus.paper.openbenchmarking import document
    from paribus.readers.harness import Measured

    judgement = judged(study)
    found = [one for one in read(document(judgement)) if isinstance(one, Measured)]
    written = sorted((one.arm, one.reading.samples[0].values[0] * 1e6) for one in found)  # in us
    ours = [(one.arm, value) for one in judgement.figures for value in one.values.values()]
    assert written == [(arm, pytest.approx(value)) for arm, value in sorted(ours)]
    assert {one.metrics[0].better for one in found} == {"lower"}


def test_each_format_is_exported_without_a_report(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pandas = pytest.importorskip("pandas")
    named = {name: study / file for name, file in TEXTS.items()} | {
        "parquet": study / "values.parquet"
    }
    for name, path in named.items():
        path.unlink(missing_ok=True)
        assert main(["export", str(study), "--to", name]) == 0
        *figures, last = capsys.readouterr().out.splitlines()
        assert last == str(path)
        assert {Path(one).parent.name for one in figures} <= {"figures"}  # which the text includes
        assert all(Path(one).stat().st_size for one in (*figures, last))
    whole = pandas.read_parquet(named["parquet"])
    assert len(whole) == len(list(judged(study).figures)) * 2  # two cases
    assert main(["export", str(study), "--to", "svg"]) == 0
    assert "figures/" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["export", str(study)])
    bare = study.parent / "bare"  # a verdict.json alone, as it may be sent
    bare.mkdir()
    (bare / "verdict.json").write_bytes((study / "verdict.json").read_bytes())
    capsys.readouterr()
    assert main(["export", str(bare), "--to", "parquet"]) == 2
    assert "values.parquet: is not there" in capsys.readouterr().err


def test_the_notebook_shows_the_texts_of_others_as_text(study: Path) -> None:
    from dataclasses import replace

    from markdown_it import MarkdownIt

    from paribus.paper.notebook import document

    judgement = judged(study)
    evil = "<img src=x onerror=alert(1)> **a** [b](javascript:c) `d` $e$ # f"
    judgement = replace(judgement, study=replace(judgement.study, question=evil, factor=evil))
    source = "".join(json.loads(document(judgement))["cells"][0]["source"])
    shown = MarkdownIt("commonmark", {"html": True}).render(source)
    assert set(re.findall(r"<(/?\w+)", shown)) == {"h1", "/h1", "p", "/p", "strong", "/strong"}
    assert html.unescape(re.search("<h1>(.*)</h1>", shown)[1]) == evil


def test_the_notebook_draws_from_the_files(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    from paribus.paper.notebook import document

    notebook = json.loads(document(judged(study)))
    assert notebook["nbformat"] == 4
    assert "".join(notebook["cells"][0]["source"]).startswith("# Which?\n\n**bridged is slower")
    monkeypatch.chdir(study)
    names: dict[str, object] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    figures = [pyplot.figure(number) for number in pyplot.get_fignums()]
    assert len(figures) == 3
    ratios, cases, launches = (one.axes[0] for one in figures)
    assert [text.get_text() for text in ratios.get_yticklabels()] == ["latency: bridged"]
    assert [line.get_label() for line in cases.get_lines()] == ["host", "bridged"]
    drawn: list[Any] = [line.get_xydata() for line in launches.get_lines()]
    assert sum(map(len, drawn)) == 36
    pyplot.close("all")
