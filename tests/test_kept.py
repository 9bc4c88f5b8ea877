"""Of a launch that prints much the reader gets all; the ends are kept, and a gap is no secret."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import log_folders
from paribus.__main__ import main
from paribus.benchmarks.command import BENCHMARK as COMMAND
from paribus.border import kept, left_out, left_out_of, shorten
from paribus.core import Benchmark, Command, Outcome, Parsed, Selection, State, Unreadable
from paribus.hosts.reached import Host
from paribus.hosts.remote import HostStation
from paribus.launch import launching
from paribus.launch.launching import Ended, Prepared, outcome_of, start
from paribus.launch.local import LocalStation
from paribus.logs.logs import find_logs
from studies import write_arms

FEW = 4096
"""Bytes of each end that are kept in these tests: nothing depends on how many these are."""

LOUD = "(dd if=/dev/zero bs={bytes} count=1 2>/dev/null | tr '\\0' x; echo)"
SCRIPT = f"{LOUD}; echo 'rate: 25 MB/s'; {LOUD}; {LOUD} >&2"


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "KEPT_BYTES", FEW)
    monkeypatch.setattr(launching, "KEPT_BYTES", FEW)


def script(size: int) -> str:
    return SCRIPT.format(bytes=size)


@given(st.integers(0, 4 * FEW), st.integers(0, 4 * FEW))
def test_both_ends_and_what_is_between_are_the_whole(
    tmp_path_factory: pytest.TempPathFactory, size: int, newline: int
) -> None:
    log = tmp_path_factory.getbasetemp() / "log"
    whole = bytearray(bytes(range(65, 91)) * 700)[:size]
    whole[newline : newline + 1] = b"\n"
    log.write_bytes(whole)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kept, "KEPT_BYTES", FEW)
        missing = shorten(log)
    if not missing:
        assert log.read_bytes() == whole
        assert len(whole) <= 2 * FEW
    else:
        line = f"\n[paribus: {missing:,} bytes are left out here]\n".encode()
        assert log.read_bytes() == whole[:FEW] + line + whole[FEW + missing :]
        assert len(whole) == 2 * FEW + missing
    assert left_out(log.read_bytes()) == left_out_of(log) == missing


def test_what_only_looks_like_the_line_is_none() -> None:
    for text in (
        b"[paribus: no bytes are left out here]",
        b"x [paribus: 5 bytes are left out here]",
    ):
        assert left_out(text) == 0
    assert left_out(b"a\r\n[paribus: 1,005 bytes are left out here]\r\n") == 1005


@contextmanager
def station_of(kind: str) -> Iterator[LocalStation | HostStation]:
    with LocalStation() as local:
        if kind == "here":
            yield local
            return
        with HostStation([Host("n1", ("/bin/sh",))], local) as hosts:
            yield hosts


def launched(
    station: LocalStation | HostStation,
    folder: Path,
    selection: Selection,
    benchmark: Benchmark,
    env: Mapping[str, str] | None = None,
) -> tuple[Prepared, Outcome]:
    """Return a launch that prints more than is kept, and what came of it."""
    launch = Prepared(
        command=Command(("/bin/sh", "-c", script(3 * FEW)), env=env or {}),
        selection=selection,
        benchmark=benchmark,
        slots=(),
        facts={},
        out=folder / "1.out",
        err=folder / "1.err",
        scratch=f"{station.scratch}/launch",
        timeout_s=60.0,
    )
    ended = Ended()
    start(station, launch, ended)
    return launch, outcome_of(launch, ended)


@pytest.mark.parametrize("kind", ["here", "on a host"])
def test_the_reader_gets_the_whole_and_the_ends_are_kept(kind: str, tmp_path: Path) -> None:
    read: list[str] = []

    def parse(text: str, _: object) -> Parsed:
        read.append(text)
        return Parsed(())

    selection = Selection("own", "own", 1, {})
    benchmark = Benchmark("own", "", "", (), lambda _: None, parse, stderr=True)
    with station_of(kind) as station:
        launch, outcome = launched(station, tmp_path, selection, benchmark)
    assert outcome.state is State.OK, outcome.error
    assert "\nrate: 25 MB/s\n" in read[0]
    assert read[0].count("x") == 9 * FEW
    # A newline after each line of x, and the line with the rate.
    sizes = {launch.out: 6 * FEW + 2 + len("rate: 25 MB/s\n"), launch.err: 3 * FEW + 1}
    missing = {log: size - 2 * FEW for log, size in sizes.items()}
    assert {log: left_out_of(log) for log in sizes} == missing
    assert outcome.facts[kept.LEFT_OUT] == sum(missing.values())
    assert "rate" not in launch.out.read_text()


@pytest.mark.parametrize(
    ("parameters", "env", "kept_bytes"),
    [
        ({}, {}, FEW // 8),
        ({"success": "rate"}, {}, FEW),
        ({"regex": "rate: (.*) MB/s"}, {}, FEW),
        ({}, {"NCCL_DEBUG": "INFO"}, FEW),
    ],
)
def test_of_what_nobody_reads_less_is_kept_and_none_is_read(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    parameters: dict[str, str],
    env: dict[str, str],
    kept_bytes: int,
) -> None:
    """Where the wall time is the figure, an output above what may be read is no failure either."""
    monkeypatch.setattr(launching, "UNREAD_BYTES", FEW // 8)
    if kept_bytes < FEW:
        monkeypatch.setattr(launching, "MOST_PRINTED", FEW)
    asked = dict.fromkeys(COMMAND.parameters) | parameters
    selection = Selection("command", "command", 0, asked)
    with LocalStation() as station:
        launch, outcome = launched(station, tmp_path, selection, COMMAND, env)
    assert outcome.state is State.OK, outcome.error
    sizes = [log.stat().st_size for log in (launch.out, launch.err)]
    assert all(0 <= size - 2 * kept_bytes < 60 for size in sizes), "both ends, and the line"
    assert outcome.facts[kept.KEPT] == kept_bytes


def test_a_launch_that_fails_says_why_before_its_log_is_shortened(tmp_path: Path) -> None:
    """What it says stands between much else, where nothing is kept."""
    says = f"{LOUD.format(bytes=5 * FEW)} >&2; echo 'no licence' >&2; exit 3"
    study = write(tmp_path, says)
    main(["run", str(study), "--out", str(tmp_path / "out"), "--brief"])
    verdict = json.loads((tmp_path / "out" / "verdict.json").read_text())
    [notice] = [one for one in verdict["notices"] if one["name"] == "given up"]
    assert "no licence" in notice["text"]
    assert all(left_out_of(log) for log in (tmp_path / "out" / "logs").glob("*.err"))


def write(folder: Path, program: str) -> Path:
    arm = f'argv = ["sh", "-c", {json.dumps(program)}]'
    rate = 'name = "command"\nregex = "rate: (.*) MB/s"\nunit = "MB/s"\nbetter = "higher"'
    other = f'{arm}\nenv.X = "1"'
    return write_arms(folder, arm, other, benchmark=rate, factor="env", plan="blocks = 8")


def test_report_and_pack_say_that_logs_are_not_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, script(2 * FEW))
    assert main(["run", "study.toml", "--out", "out"]) == 3  # all rates are equal: too coarse
    logs = sorted(Path("out/logs").glob("*.out"))
    assert len(logs) >= 16
    assert all(left_out_of(log) for log in logs)
    said = " ".join(capsys.readouterr().out.split())
    expected = f"The logs of {len(logs)} launches are not whole"
    assert expected in said
    assert main(["report", "out"]) == 3
    assert expected in " ".join(capsys.readouterr().out.split())
    assert expected in " ".join(Path("out/report.html").read_text().split())
    for scrub in ([], ["--scrub"]):
        assert main(["pack", "out", "--out", f"packed{len(scrub)}.zip", *scrub]) == 0
        said = capsys.readouterr().out
        assert f"not whole, in the study as well: {logs[0].with_suffix('.err').name}, " in said
        name = f"opened{len(scrub)}"
        assert main(["pack", "--open", f"packed{len(scrub)}.zip", "--out", name]) == 0
        assert main(["report", name]) == 3
        assert expected in " ".join(capsys.readouterr().out.split())
        assert all(left_out_of(log) for log in Path(name, "logs").glob("*.out"))


def test_a_log_with_a_gap_is_not_compared_as_if_it_were_whole(tmp_path: Path) -> None:
    """Neither one as it is kept nor one that was joined with others by hand."""
    folders = [
        log_folders.write(tmp_path / name, log_folders.many(effect))
        for name, effect in (("a", 1.0), ("b", 1.2))
    ]
    log = folders[0] / "run1.log"
    log.write_text(log.read_text() + "# progress\n" * FEW)
    missing = shorten(log)
    joined = folders[1] / "run2.log"
    joined.write_bytes((folders[1] / "run3.log").read_bytes() + log.read_bytes())
    _, logs, unread = find_logs(folders)
    assert len(logs) == 22
    assert [(one.name, one.code, one.detail, one.tool) for one in unread] == [
        (name, Unreadable.SHORTENED, f"{missing:,} B", "osu_latency")
        for name in ("run1.log", "run2.log")
    ]
    found = log_folders.text_of(log_folders.judged(*folders), "not read")
    assert "a/run1.log, b/run2.log: are not whole" in found
