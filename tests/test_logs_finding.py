"""Which files are logs, and whose: real outputs, real names, real damage."""

from __future__ import annotations

import json
import lzma
import os
import shutil
import time
from collections import Counter
from pathlib import Path

import pytest

from log_folders import (
    FIXTURES,
    GOOD,
    TOOLS,
    judged,
    names_of,
    osu,
    read,
    text_of,
    why_unread,
    words_of,
    write,
)
from paribus.benchmarks import BENCHMARKS
from paribus.core import Arm, Selection, Settings, Study, UserError, Word
from paribus.designs.auto import as_few
from paribus.logs.imported import Answers
from paribus.logs.logged import judge_logs
from paribus.logs.logs import arms_of, find_logs
from paribus.plan import frozen as plans
from paribus.words.values import notice_text
from studies import paribus


def test_every_good_fixture_is_read_and_none_is_faster_than_itself(tmp_path: Path) -> None:
    for arm in ("one", "other"):
        for path in GOOD:
            (tmp_path / arm / path.parent.name).mkdir(parents=True, exist_ok=True)
            shutil.copy(path, tmp_path / arm / path.parent.name)
    _, logs, unread = find_logs([tmp_path / "one", tmp_path / "other"])
    seen = {(log.arm, log.name) for log in logs}
    names = [f"{path.parent.name}/{path.name}" for path in GOOD]
    missing = [n for n in names if ("one", n) not in seen]
    assert not missing, [why_unread(one) for one in unread if one.name in missing]
    tools = {log.reading.benchmark for log in logs}
    assert tools == TOOLS - {"training"}  # whose lines are those of pytorch_ddp's convention
    found = judged(tmp_path / "one", tmp_path / "other")
    said = {f.verdict.word for f in (*found.headlines, *found.cases)}
    assert not said & {Word.FASTER, Word.SLOWER}
    assert {f.comparison.ratio for f in found.headlines if f.comparison} == {1.0}


def test_a_log_and_the_screen_of_a_run_are_one_launch(tmp_path: Path) -> None:
    """LAMMPS writes log.lammps besides, which lacks settings that the screen shows."""
    folder = FIXTURES / "lammps"
    for arm in ("one", "two"):
        (tmp_path / arm).mkdir()
        shutil.copy(folder / "good-lj_2ranks.out", tmp_path / arm / "screen.out")
        shutil.copy(folder / "good-log_lj_2ranks.out", tmp_path / arm / "log.lammps")
    found = read(tmp_path / "one", tmp_path / "two")
    (kind,) = found.kinds
    assert [log.name for log in kind.logs] == ["screen.out", "screen.out"]
    assert {why_unread(one) for one in found.unread} == {
        "is another output of a launch that is read"
    }
    shutil.copy(tmp_path / "one" / "screen.out", tmp_path / "one" / "copied.out")
    (kind,) = read(tmp_path / "one", tmp_path / "two").kinds
    assert {log.name for log in kind.logs} >= {"screen.out", "copied.out"}


def test_the_report_and_the_perflog_of_a_session_are_the_same_launches(tmp_path: Path) -> None:
    """ReFrame writes both, the perflog into a folder of its own; a later row is a launch more."""
    report, perflog = (
        (FIXTURES / "reframe" / f"good-{form}.out").read_text() for form in ("report", "perflog")
    )
    for arm, figure in (("one", "12345.678912"), ("two", "23456.789123")):
        texts = {"run.json": report, "perflogs/generic/sleepy.log": perflog}
        for name, text in texts.items():
            first, _, second = text.rpartition("12345.6")
            changed = f"{first}50.5{second}".replace("12345.6", figure)
            write(tmp_path / arm, {name: changed})
    found = read(tmp_path / "one", tmp_path / "two")
    assert [{log.name for log in kind.logs} for kind in found.kinds] == [
        {"run.json#1"},
        {"run.json#2"},
    ]
    assert {why_unread(one) for one in found.unread} == {
        "is another output of a launch that is read"
    }
    row = perflog.splitlines()[1].replace("12345.6", "12321.123456").replace("3144.", "4567.")
    with (tmp_path / "one/perflogs/generic/sleepy.log").open("a") as file:
        file.write(f"{row}\n")
    kinds = read(tmp_path / "one", tmp_path / "two").kinds
    assert len(kinds[0].logs) == 3


@pytest.mark.parametrize("path", GOOD, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_two_outputs_in_one_file_are_both_read_or_the_file_is_named(
    tmp_path: Path, path: Path
) -> None:
    """Cut apart where an output begins, never into more or other figures than it has."""
    write(tmp_path, {"alone.log": path.read_text(), "twice.log": path.read_text() * 2})
    (_, alone, _), (_, twice, unread) = (
        find_logs([tmp_path / f"{n}.log"]) for n in ("alone", "twice")
    )
    figures = {log.reading.samples for log in alone}
    assert figures
    assert {log.reading.samples for log in twice} <= figures
    if not unread:
        assert len(twice) == 2 * len(alone)
        assert not any(log.alone for log in twice)


def test_a_batch_script_that_runs_several_tools_is_taken_apart(tmp_path: Path) -> None:
    texts = [
        (FIXTURES / f"osu_{n}" / "good-shm.out").read_text() for n in ("latency", "bw", "bibw")
    ]
    banner = "Job 4711 starts on node0\n"
    write(tmp_path, {"a.out": banner + "".join(texts), "b.out": "".join(texts[::-1])})
    found = judged(tmp_path / "a.out", tmp_path / "b.out")
    assert words_of(found) == dict.fromkeys(("osu_latency", "osu_bw", "osu_bibw"), "withheld")
    assert [f.comparison.ratio for f in found.headlines if f.comparison] == [1.0, 1.0, 1.0]


def test_what_cannot_be_read_is_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    a, b = write(tmp_path / "a", {"x.log": osu()}), write(tmp_path / "b", {"x.log": osu(1.1)})
    (b / "core").write_bytes(b"\x7fELF\0\1\2")
    (b / "x.log.xz").write_bytes(lzma.compress(osu().encode()))
    (b / "wide.log").write_bytes(osu().encode("utf-16"))
    (b / "empty.err").touch()
    (b / "notes.txt").write_text("the fans were loud\n")
    (b / "shot.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    (b / ".hidden").write_text("not looked at")
    with (b / "huge.log").open("wb") as file:
        file.truncate(300 << 20)
    os.mkfifo(b / "pipe")
    (b / "loop").symlink_to(b / "loop")
    (b / "gone").symlink_to(b / "nowhere")
    (b / "up").symlink_to(tmp_path, target_is_directory=True)
    (b / "again.log").symlink_to(b / "x.log")
    (b / "fail.log").write_text((FIXTURES / "osu_latency" / "fail-np1.out").read_text())
    (b / "cut.log").write_text("# OSU MPI Latency Test v7.4\n# Size       Avg Latency(us)\n")
    begin = time.monotonic()
    logs = read(a, b)
    assert time.monotonic() - begin < 5
    why = {one.name: why_unread(one) for one in logs.unread}
    assert "is binary" in why["core"]
    assert "compressed" in why["x.log.xz"]
    assert "UTF-16" in why["wide.log"]
    assert why["empty.err"] == "is empty"
    assert why["notes.txt"] == "is not the output of a known tool"
    assert "256 MiB" in why["huge.log"]
    assert "pipe" in why["pipe"]
    assert "cannot be read: Too many levels" in why["loop"]
    assert "cannot be read: No such file" in why["gone"]
    assert why["up"] == "is a link to a folder"
    assert "is the same file as" in why.get("again.log", "") + why.get("x.log", "")
    assert why["cut.log"].startswith("osu_latency: ")
    assert "fail.log" in why
    assert ".hidden" not in why
    (b / "notes2.txt").write_text("more thoughts")
    found = judge_logs(read(a, b), Answers())
    (reported,) = (notice_text(notice) for notice in found.notices if notice.name == "not read")
    assert "b/notes2.txt, b/notes.txt are not the output of a known tool" in reported
    assert "b/fail.log is from a failed launch: 'This test requires exactly two" in reported
    assert words_of(found) == {"osu_latency": "withheld"}
    assert found.headlines[0].comparison is not None
    assert found.headlines[0].comparison.ratio == pytest.approx(1.1, rel=0.01)
    done = paribus("compare", "a", "b", cwd=tmp_path)
    assert done.returncode == 3
    for name in ("x.log.xz", "pipe", "huge.log", "loop", "core"):
        assert name in done.stdout + "".join(notice_text(n) for n in found.notices)


def test_a_folder_that_does_not_exist_is_said_to_be_missing(tmp_path: Path) -> None:
    write(tmp_path / "host", {"x.log": osu()})
    with pytest.raises(UserError, match="nope: does not exist"):
        find_logs([tmp_path / "host", tmp_path / "nope"])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_named(tmp_path: Path) -> None:
    a = write(tmp_path / "a", {"x.log": osu(), "secret.log": osu(), "d/y.log": osu()})
    (a / "secret.log").chmod(0)
    (a / "d").chmod(0)
    _, logs, unread = find_logs([a, write(tmp_path / "b", {"x.log": osu()})])
    assert {one.name: why_unread(one) for one in unread} == dict.fromkeys(
        ("secret.log", "d"), "cannot be read: Permission denied"
    )
    assert len(logs) == 2
    (a / "d").chmod(0o755)


def test_the_linpack_inside_hpcc_is_no_log_of_linpack(tmp_path: Path) -> None:
    text = (FIXTURES / "hpcc" / "good-openblas_np2.out").read_text()
    write(tmp_path, {"a/x.txt": text, "b/x.txt": text})
    found = judged(tmp_path / "a", tmp_path / "b")
    assert words_of(found) == {"hpcc": "withheld"}
    assert "not read" not in names_of(found)
    linpack = (FIXTURES / "hpl" / "good-multi_np2.out").read_text()
    write(tmp_path, {"a/x.txt": linpack + text})
    _, logs, unread = find_logs([tmp_path / "a"])
    assert {log.reading.benchmark for log in logs} | {one.tool for one in unread} == {"hpl", "hpcc"}


def test_the_wiring_of_gpus_among_the_logs_is_reported(tmp_path: Path) -> None:
    for arm, name in (("a", "balance"), ("b", "cascade")):
        text = (FIXTURES / "nvidia_topo" / f"handmade_{name}.out").read_text()
        write(tmp_path / arm, {"x.log": osu(), "topo.txt": text})
    (tmp_path / "b" / "cut.txt").write_text("\n".join(text.splitlines()[:3]))
    said = text_of(judged(tmp_path / "a", tmp_path / "b"), "not read")
    wiring = "is not a benchmark: the wiring of 4 GPUs (nvidia-smi topo -m; pairs by link: "
    assert f"a/topo.txt {wiring}2 NODE, 2 PIX, 6 SYS)" in said
    assert f"b/topo.txt {wiring}6 PIX, 4 PXB)" in said
    assert "b/cut.txt is a damaged output of nvidia-smi topo -m: " in said


def test_a_folder_inside_the_other_is_an_arm_of_its_own(tmp_path: Path) -> None:
    write(tmp_path / "all", {"x.log": osu(), "new/x.log": osu(1.5)})
    logs = read(tmp_path / "all", tmp_path / "all" / "new")
    assert logs.arms == ("all", "new")
    assert [(log.arm, log.name) for log in logs.kinds[0].logs] == [
        ("all", "x.log"),
        ("new", "x.log"),
    ]


def test_a_log_and_a_folder(tmp_path: Path) -> None:
    write(tmp_path, {"old.log": osu(), "new/1.log": osu(1.5), "new/2.log": osu(1.5)})
    found = judged(tmp_path / "old.log", tmp_path / "new")
    assert words_of(found) == {"osu_latency": "withheld"}
    assert [arm.name for arm in found.study.arms] == ["old", "new"]


def test_arms_are_called_what_distinguishes_their_paths(tmp_path: Path) -> None:
    def named(*paths: str) -> tuple[str, ...]:
        return arms_of([tmp_path / path for path in paths])

    assert named("x/host", "x/bridged") == ("host", "bridged")
    assert named("host/logs", "bridged/logs") == ("host", "bridged")
    assert named("1/host/logs/osu", "2/host/logs/osu") == ("1", "2")
    assert named("a", "a/../b") == ("a", "b")
    with pytest.raises(UserError, match="given twice"):
        named("a", "b/../a")


def test_studies_of_paribus_are_logs_as_well(tmp_path: Path) -> None:
    """Their arms are kept apart, and the warm-up does not count."""
    text = (FIXTURES / "latency" / "good-0.out").read_text()
    arms = (Arm("host"), Arm("bridged"))
    selection = Selection("latency", "latency", 2, {"bytes": [8, 65536]})
    study = Study("?", "network", arms, (selection,), Settings(blocks=8, seed=3))
    frozen = plans.freeze(study, plans.software())
    (tmp_path / "one").mkdir()
    plans.write_plan(frozen, tmp_path / "one")
    for launch in frozen.launches[:6]:
        name = f"logs/{launch.number:04d}-0-{launch.arm}-latency.out"
        write(tmp_path / "one", {name: text, name.replace(".out", ".err"): ""})
    for path in (tmp_path / "one", tmp_path / "one" / "logs"):
        logs = read(path)
        assert logs.arms == (f"{path.name}/host", f"{path.name}/bridged")
        assert not logs.unread
        assert Counter(log.arm for log in logs.kinds[0].logs) == dict.fromkeys(logs.arms, 2)
    found = judged(tmp_path / "one")
    assert found.headlines[0].metric.margin == BENCHMARKS["latency"].metrics[0].margin
    assert "latency 1" in found.design
    mine = write(tmp_path / "mine", {"kernel.log": text})
    assert [arm.name for arm in judged(tmp_path / "one", mine).study.arms] == [
        "one/host",
        "one/bridged",
        "mine",
    ]


def test_the_order_of_logs_is_the_one_that_the_warm_up_led_to(tmp_path: Path) -> None:
    """The frozen plan of a study of long launches leaves it open; the names of its logs show."""
    text = (FIXTURES / "latency" / "good-0.out").read_text()
    selection = Selection("latency", "latency", 2, {"bytes": [8, 65536]})
    settings = Settings(blocks=8, seed=3, design="auto")
    study = Study("?", "network", (Arm("host"), Arm("bridged")), (selection,), settings)
    frozen = plans.freeze(study, plans.software())
    (tmp_path / "one").mkdir()
    plans.write_plan(frozen, tmp_path / "one")
    launched = as_few(frozen).launches[2:12]
    assert [one.arm for one in launched] != [one.arm for one in frozen.launches[2:12]]
    for launch in launched:
        write(tmp_path / "one", {f"logs/{launch.number:04d}-0-{launch.arm}-latency.out": text})
    for log in read(tmp_path / "one").kinds[0].logs:
        assert log.arm.rpartition("/")[2] in log.name


def test_hostile_names_and_texts_are_data(tmp_path: Path) -> None:
    hostile = "\x1b[31m<script>alert(1)<\u202e"
    for arm, level in (("a", 1.0), ("b", 1.5)):
        folder = write(tmp_path / f"{arm}{hostile}", {f"{hostile}.log": osu(level)})
        (folder / os.fsdecode(b"\xff\xfe.log")).write_text("# OSU MPI Latency Test v7.4\n\x1b[2J")
    folders = sorted(tmp_path.iterdir())
    done = paribus("compare", *map(str, folders), "--out", str(tmp_path / "out"), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (3, "")
    page = (tmp_path / "out" / "report.html").read_text()
    for text in (done.stdout, page):
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert "<script>alert" not in page
    json.loads((tmp_path / "out" / "verdict.json").read_text())
    done = paribus("compare", *map(str, folders), "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["headlines"][0]["verdict"]["word"] == "withheld"
