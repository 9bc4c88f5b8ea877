"""`paribus compare` on logs as users have them: real outputs, real names, real damage."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import shutil
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paribus.benchmarks import BENCHMARKS
from paribus.compare.dates import started
from paribus.compare.imported import Answers
from paribus.compare.logged import judge_logs
from paribus.compare.logs import Log, arms_of, find_logs
from paribus.compare.pairing import Logs, pair_logs
from paribus.errors import UserError
from paribus.judgement import Judgement, Word
from paribus.model import Arm, Case, Reading, Sample, Selection, Settings, Study
from paribus.study import plan as plans
from studies import paribus

FIXTURES = Path(__file__).parent / "fixtures"
GOOD = sorted(p for name in BENCHMARKS for p in (FIXTURES / name).glob("good-*.out"))


def osu(level: float = 1.0, sizes: int = 8, *, version: str = "7.4", title: str = "Latency") -> str:
    """Return an output of osu_latency whose figures are `level` times 10, 11, 12, ... us."""
    return osu_of([level * (10 + i) for i in range(sizes)], version=version, title=title)


def osu_of(figures: Sequence[float], *, version: str = "7.4", title: str = "Latency") -> str:
    rows = "".join(f"{2**i:<10}{figure:17.2f}\n" for i, figure in enumerate(figures))
    heading = f"# OSU MPI {title} Test v{version}\n# Datatype: MPI_CHAR.\n"
    return f"\n{heading}# Size       Avg Latency(us)\n{rows}"


def write(folder: Path, texts: dict[str, str], times: Sequence[float] | None = None) -> Path:
    for number, (name, text) in enumerate(texts.items()):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if times is not None:
            os.utime(path, (times[number], times[number]))
    return folder


def many(
    effect: float = 1.0, count: int = 12, seed: int = 1, name: str = "run{}.log"
) -> dict[str, str]:
    draw = random.Random(seed)
    return {name.format(i): osu(effect * draw.lognormvariate(0, 0.01)) for i in range(1, count + 1)}


def read(*paths: Path, pair: str = "") -> Logs:
    return pair_logs(*find_logs(paths), pair)  # type: ignore[arg-type]


def judged(*paths: Path, pair: str = "") -> Judgement:
    return judge_logs(read(*paths, pair=pair), Answers())


def words_of(judgement: Judgement) -> dict[str, str]:
    return {finding.benchmark: finding.verdict.word.value for finding in judgement.headlines}


def names_of(judgement: Judgement) -> set[str]:
    return {notice.name for notice in judgement.notices}


def text_of(judgement: Judgement, name: str) -> str:
    return next(notice.text for notice in judgement.notices if notice.name == name)


def in_turns(tmp_path: Path, effect: float, *, step: float = 60.0) -> tuple[Path, Path]:
    """Write twelve logs of each arm whose file times say that a coin put them in turns."""
    coin = random.Random(5)
    times: dict[str, list[float]] = {"a": [], "b": []}
    for block in range(12):
        order = ["a", "b"] if coin.random() < 0.5 else ["b", "a"]
        for place, arm in enumerate(order):
            times[arm].append(1.7e9 + step * (2 * block + place))
    a = write(tmp_path / "a", many(), times["a"])
    return a, write(tmp_path / "b", many(effect, seed=2, name="slurm-{}.out"), times["b"])


# --- what is there ---------------------------------------------------------------------------


def test_several_cores_read_the_same_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refusals and the order of files included; where no process can be started, one reads."""
    for arm in ("a", "b"):
        for tool in ("osu_bw", "hpl", "lammps"):
            shutil.copytree(FIXTURES / tool, tmp_path / arm / tool)
    arms = [tmp_path / "a", tmp_path / "b"]
    alone = find_logs(arms)
    assert len(alone[1]) > 10
    assert alone[2]
    monkeypatch.setattr("paribus.compare.logs.SHARE", 1)
    assert find_logs(arms) == alone

    def refused(*_: object) -> None:
        raise OSError("no more processes")

    monkeypatch.setattr("paribus.compare.logs.ProcessPoolExecutor", refused)
    assert find_logs(arms) == alone


def test_every_good_fixture_is_read_and_none_is_faster_than_itself(tmp_path: Path) -> None:
    for arm in ("one", "other"):
        for path in GOOD:
            (tmp_path / arm / path.parent.name).mkdir(parents=True, exist_ok=True)
            shutil.copy(path, tmp_path / arm / path.parent.name)
    _, logs, unread = find_logs([tmp_path / "one", tmp_path / "other"])
    seen = {(log.arm, log.name) for log in logs}
    names = [f"{path.parent.name}/{path.name}" for path in GOOD]
    missing = [n for n in names if ("one", n) not in seen]
    assert not missing, [one.why for one in unread if one.name in missing]
    tools = {log.reading.benchmark for log in logs}
    assert tools == set(BENCHMARKS)
    found = judged(tmp_path / "one", tmp_path / "other")
    said = {f.verdict.word for f in (*found.headlines, *found.cases)}
    assert not said & {Word.FASTER, Word.SLOWER}
    assert {f.comparison.ratio for f in found.headlines if f.comparison} == {1.0}


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
    (b / "x.log.gz").write_bytes(gzip.compress(osu().encode()))
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
    why = {one.name: one.why for one in logs.unread}
    assert "is binary" in why["core"]
    assert "gunzip" in why["x.log.gz"]
    assert "UTF-16" in why["wide.log"]
    assert why["empty.err"] == "is empty"
    assert why["notes.txt"] == "is no output of a tool that is known here"
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
    (told,) = (notice.text for notice in found.notices if notice.name == "not read")
    assert "b/notes2.txt, b/notes.txt are no output of a tool that is known here" in told
    assert "b/fail.log is of a launch that failed: 'This test requires exactly two" in told
    assert words_of(found) == {"osu_latency": "withheld"}
    assert found.headlines[0].comparison is not None
    assert found.headlines[0].comparison.ratio == pytest.approx(1.1, rel=0.01)
    done = paribus("compare", "a", "b", cwd=tmp_path)
    assert done.returncode == 3
    for name in ("x.log.gz", "pipe", "huge.log", "loop", "core"):
        assert name in done.stdout + "".join(n.text for n in found.notices)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_named(tmp_path: Path) -> None:
    a = write(tmp_path / "a", {"x.log": osu(), "secret.log": osu(), "d/y.log": osu()})
    (a / "secret.log").chmod(0)
    (a / "d").chmod(0)
    _, logs, unread = find_logs([a, write(tmp_path / "b", {"x.log": osu()})])
    assert {one.name: one.why for one in unread} == dict.fromkeys(
        ("secret.log", "d"), "cannot be read: Permission denied"
    )
    assert len(logs) == 2
    (a / "d").chmod(0o755)


def test_nothing_to_compare_is_exit_2_and_says_what_was_found(tmp_path: Path) -> None:
    imb = (FIXTURES / "imb_pingpong").glob("good-*.out")
    write(tmp_path / "a", {"x.log": osu(), "odd.txt": "?"})
    write(tmp_path / "b", {"y.log": next(imb).read_text()})
    done = paribus("compare", "a", "b", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    said = " ".join(done.stderr.split())
    assert "osu_latency: 1 log of a, none of b" in said
    assert "imb_pingpong" in said
    assert "1 log of b, none of a" in said
    assert "two tools differ by 14 % on the same latency" in said
    (tmp_path / "c").mkdir()
    done = paribus("compare", "a", "c", cwd=tmp_path)
    assert done.returncode == 2
    done = paribus("compare", "a", "nowhere", cwd=tmp_path)
    assert done.returncode == 2
    assert "nowhere" in done.stderr
    done = paribus("compare", "a", cwd=tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_other_parameters_are_left_out_by_name(tmp_path: Path) -> None:
    other = osu().replace("MPI_CHAR", "MPI_FLOAT")
    a = write(tmp_path / "a", {"x.log": osu(), "y.log": other})
    b = write(tmp_path / "b", {"x.log": osu(1.2)})
    found = judged(a, b)
    assert words_of(found) == {"osu_latency": "withheld"}
    assert text_of(found, "not comparable") == (
        "Left out, for want of the like: osu_latency (datatype MPI_FLOAT): 1 log of a, none of b."
    )


def test_cases_that_one_arm_lacks_are_left_out_by_name(tmp_path: Path) -> None:
    a, b = write(tmp_path / "a", many()), write(tmp_path / "b", many(1.1))
    (b / "run3.log").write_text(osu(1.1, sizes=5))
    found = judged(a, b)
    assert words_of(found) == {"osu_latency": "slower"}
    assert "osu_latency, b: run3.log lacks 3 of 8 cases (32 B, 64 B, 128 B)" in text_of(
        found, "logs cut short"
    )
    assert found.headlines[0].comparison is not None
    assert found.headlines[0].comparison.blocks == 11
    for path in b.iterdir():
        path.write_text(osu(1.1, sizes=6))
    found = judged(a, b)
    assert "2 cases not in every arm, in a: 64 B, 128 B" in text_of(found, "cases left out")
    assert len(found.cases) == 6


def test_versions_are_told(tmp_path: Path) -> None:
    a = write(tmp_path / "a", {"x.log": osu()})
    found = judged(a, write(tmp_path / "b", {"x.log": osu(version="7.5")}))
    assert "osu_latency is not of one version: a 7.4; b 7.5" in text_of(found, "versions differ")
    assert "osu_latency 7.4, osu_latency 7.5" in found.design


def test_a_version_that_a_tool_does_not_print_is_not_told(tmp_path: Path) -> None:
    text = (FIXTURES / "incast" / "good-handmade-three-senders.out").read_text()
    write(tmp_path, {"a.log": text, "b.log": text})
    found = judged(tmp_path / "a.log", tmp_path / "b.log")
    assert found.design.startswith("2 logs of incast, paired: one log of each arm.")
    shown = {(f.metric.name, str(f.case)) for f in found.cases}
    assert {("sender", f"queue_pairs={q}, sender={n}") for q in (4, 16, 64) for n in (1, 2, 3)} < (
        shown
    )


def test_one_launch_without_a_neighbour_is_told_as_one(tmp_path: Path) -> None:
    a, b = in_turns(tmp_path, 1.1)
    write(a, {"late.log": osu()}, [time.time() + 1e6])
    assert text_of(judged(a, b), "launches left out").startswith("1 launch has no neighbour")


def test_two_tools_are_never_mixed_and_the_report_says_so(tmp_path: Path) -> None:
    imb = next(iter(sorted((FIXTURES / "imb_pingpong").glob("good-*.out")))).read_text()
    for arm in ("a", "b"):
        write(tmp_path / arm, {"imb.log": imb, "osu.log": osu()})
    found = judged(tmp_path / "a", tmp_path / "b")
    assert set(words_of(found)) == {"osu_latency", "imb_pingpong"}
    assert "no figure of one is to be held against" in text_of(found, "tools not mixed")
    assert not found.layers


def test_what_a_log_says_against_itself_is_a_warning(tmp_path: Path) -> None:
    text = (FIXTURES / "lammps" / "good-lj_wheel_starved.out").read_text()
    for arm in ("a", "b"):
        write(tmp_path / arm, {"log.lammps": text})
    found = judged(tmp_path / "a", tmp_path / "b")
    assert "of the CPU" in text_of(found, "contamination")


def test_other_work_withholds_the_verdict(tmp_path: Path) -> None:
    one, other = ((FIXTURES / "lammps" / f"good-{n}_2ranks.out").read_text() for n in ("eam", "lj"))
    a = write(tmp_path / "a", {"x.log": one})
    for text in (other, one):
        b = write(tmp_path / "b", {"x.log": text})
        try:
            found = judged(a, b)
        except UserError:
            continue  # its parameters differ already
        reason = found.headlines[0].verdict.reason
        assert ("the work is not the same" in reason) == (text is other)


# --- what belongs together -------------------------------------------------------------------


def test_one_log_each_gives_ratios_by_case_and_no_interval(tmp_path: Path) -> None:
    write(tmp_path, {"host.log": osu(), "bridged.log": osu(1.5)})
    done = paribus("compare", "host.log", "bridged.log", "--json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (3, "")
    told = json.loads(done.stdout)
    assert [arm["name"] for arm in told["study"]["arms"]] == ["host", "bridged"]
    assert "paired: one log of each arm" in told["design"]
    (head,) = told["headlines"]
    assert head["verdict"]["reason"].startswith("one launch each: no interval can be given")
    assert (head["comparison"]["low"], head["comparison"]["high"]) == (None, None)
    ratios = [case["comparison"]["ratio"] for case in told["cases"]]
    assert ratios == pytest.approx([1.5] * 8, rel=0.01)
    printed = paribus("compare", "host.log", "bridged.log", cwd=tmp_path).stdout
    assert "1 B: 1.500; 2 B: 1.500; 4 B: 1.500" in " ".join(printed.split())


def test_file_times_in_turns_pair_neighbours(tmp_path: Path) -> None:
    found = judged(*in_turns(tmp_path, 1.1))
    assert words_of(found) == {"osu_latency": "slower"}
    assert "paired: neighbours in time, by the times of their files" in found.design
    assert "Came first in blocks: a " in found.design
    assert len(found.points) == 24
    assert found.started == 1.7e9
    assert "stopping not planned" in names_of(found)
    same = judged(*in_turns(tmp_path / "same", 1.0))
    assert words_of(same)["osu_latency"] in ("equivalent", "undecided")


def test_one_arm_after_the_other_is_no_comparison(tmp_path: Path) -> None:
    a = write(tmp_path / "a", many(), [1.7e9 + 60 * i for i in range(12)])
    b = write(tmp_path / "b", many(1.5), [1.7e9 + 7200 + 60 * i for i in range(12)])
    found = judged(a, b)
    (head,) = found.headlines
    assert head.verdict.word is Word.WITHHELD
    assert "do not alternate in time" in head.verdict.reason
    assert "`--pair order` shows the interval" in head.verdict.reason
    (head,) = judged(a, b, pair="order").headlines
    assert head.verdict.word is Word.WITHHELD
    assert head.comparison is not None
    assert 1 < head.comparison.low < 1.5 < head.comparison.high < 2
    assert words_of(judged(a, b, pair="name")) == {"osu_latency": "slower"}


def test_copied_files_are_paired_by_name_with_a_warning(tmp_path: Path) -> None:
    found = judged(write(tmp_path / "a", many()), write(tmp_path / "b", many(1.1, seed=2)))
    assert words_of(found) == {"osu_latency": "slower"}
    assert "paired: logs of the same name: the files were copied" in found.design
    assert "order unknown" in names_of(found)


def test_names_match_without_the_name_of_their_arm(tmp_path: Path) -> None:
    a = write(tmp_path / "host", many(name="host-run{}.txt"))
    b = write(tmp_path / "bridged", many(1.1, seed=2, name="Bridged-run0{}.txt"))
    assert "logs of the same name" in judged(a, b).design


def test_the_order_of_names_alone_withholds_the_verdict(tmp_path: Path) -> None:
    a = write(tmp_path / "a", many())
    b = write(tmp_path / "b", many(1.5, seed=2, name="slurm-77{}.out"))
    found = judged(a, b)
    (head,) = found.headlines
    assert head.verdict.word is Word.WITHHELD
    assert "nothing says which logs were made close in time" in head.verdict.reason
    assert head.comparison is not None
    assert 1.4 < head.comparison.low < head.comparison.ratio < head.comparison.high < 1.6
    assert "paired: logs in the order of their names" in found.design


def test_unlike_numbers_without_times_have_a_ratio_only(tmp_path: Path) -> None:
    a = write(tmp_path / "a", many(count=9))
    found = judged(a, write(tmp_path / "b", many(1.5, count=4, name="slurm-{}.out")))
    (head,) = found.headlines
    assert "not paired: the arms have different numbers of logs" in found.design
    assert head.verdict.word is Word.WITHHELD
    assert head.comparison is not None
    assert head.comparison.ratio == pytest.approx(1.5, rel=0.02)
    assert head.comparison.high == float("inf")


def test_overlapping_names_pair_what_they_can(tmp_path: Path) -> None:
    a, b = write(tmp_path / "a", many(count=12)), write(tmp_path / "b", many(1.1, count=11))
    found = judged(a, b)
    assert found.headlines[0].comparison is not None
    assert found.headlines[0].comparison.blocks == 11
    assert "run12.log" in text_of(found, "blocks left out")


def test_dates_in_the_logs_win_over_the_times_of_files(tmp_path: Path) -> None:
    logs = []
    for arm, level in (("a", 1.0), ("b", 1.1)):
        for i in range(12):
            samples = (Sample("latency", Case.of(bytes=8), (level * (10 + 0.01 * (i % 5)),)),)
            facts = {"log.started": 1.6e9 + 100 * i + 50 * (arm == "b")}
            reading = Reading("osu_latency", "7.4", {}, 2, samples, facts)
            at = float(facts["log.started"])
            logs.append(Log(arm, f"{arm}{i}", tmp_path / "x", at, True, True, reading))
    found = judge_logs(pair_logs(("a", "b"), logs, ()), Answers())
    assert "by the dates that the logs carry" in found.design
    assert words_of(found) == {"osu_latency": "slower"}


def test_logs_with_dates_are_paired_by_them_whatever_the_files_say(tmp_path: Path) -> None:
    """One file for each arm, with ten outputs of IMB one after the other: they say when."""
    text = (FIXTURES / "imb_pingpong" / "good-msglen.out").read_text()
    line = next(one for one in text.splitlines() if one.startswith("# Date "))
    for arm in ("a", "b"):
        outputs = []
        for i in range(10):
            minute = 2 * i + (arm == "b") if i % 3 else 2 * i + (arm == "a")
            outputs.append(text.replace(line, f"# Date : Sat Nov 21 05:{minute:02d}:00 2026"))
        write(tmp_path / arm, {"imb.log": "".join(outputs)})
    logs = read(tmp_path / "a", tmp_path / "b")
    (kind,) = logs.kinds
    assert (kind.pairing, len(kind.logs)) == ("time", 20)
    found = judge_logs(logs, Answers())
    assert "neighbours in time, by the dates that the logs carry" in found.design
    assert "Came first in blocks: a 6 and b 4" in found.design


@pytest.mark.parametrize(
    "name",
    [
        *("imb_pingpong", "hpl", "hpcc", "qe", "vasp", "gromacs"),
        *("iperf3", "fio", "ior", "mdtest", "pynamic"),
    ],
)
def test_tools_that_print_a_date_are_dated(name: str) -> None:
    """Ours were recorded in 2025 or later, those of others from 2020 on."""
    texts = [(path.stem, path.read_text()) for path in GOOD if path.parent.name == name]
    found = [(stem, said[0]) for stem, text in texts if (said := started(name, text))]
    assert found
    assert all((1.57e9 if "real" in stem else 1.73e9) < at < 2e9 for stem, at in found)


def test_many_refused_logs_withhold_the_verdict(tmp_path: Path) -> None:
    a, b = in_turns(tmp_path, 1.1)
    for i in (2, 5, 9):
        (b / f"slurm-{i}.out").write_text("# OSU MPI Latency Test v7.4\nkilled\n")
    found = judged(a, b)
    assert words_of(found) == {"osu_latency": "withheld"}
    assert "0 of 12 of a, 3 of 12 of b" in text_of(found, "launches failed")


def test_launches_that_failed_before_their_tool_said_its_name_count(tmp_path: Path) -> None:
    a, b = in_turns(tmp_path, 1.1)
    for i, name in enumerate(("slots", "np1", "unroot")):
        shutil.copy(FIXTURES / "osu_latency" / f"fail-{name}.out", b / f"lost-{i}.out")
    (b / "notes.txt").write_text("An error occurred on Monday, all was well on Tuesday.\n")
    found = judged(a, b)
    assert words_of(found) == {"osu_latency": "withheld"}
    assert "0 of 12 of a, 3 of 15 of b" in text_of(found, "launches failed")
    said = text_of(found, "not read")
    assert "b/lost-0.out is of a launch that failed: 'There are not enough slots" in said
    assert "b/lost-1.out is of a launch that failed: 'This test requires exactly two" in said
    assert "b/notes.txt is no output of a tool that is known here" in said


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


def test_the_wiring_of_gpus_among_the_logs_is_told(tmp_path: Path) -> None:
    for arm, name in (("a", "balance"), ("b", "cascade")):
        text = (FIXTURES / "nvidia_topo" / f"handmade_{name}.out").read_text()
        write(tmp_path / arm, {"x.log": osu(), "topo.txt": text})
    (tmp_path / "b" / "cut.txt").write_text("\n".join(text.splitlines()[:3]))
    said = text_of(judged(tmp_path / "a", tmp_path / "b"), "not read")
    wiring = "is no benchmark but the wiring of 4 GPUs (nvidia-smi topo -m; pairs by link: "
    assert f"a/topo.txt {wiring}2 NODE, 2 PIX, 6 SYS)" in said
    assert f"b/topo.txt {wiring}6 PIX, 4 PXB)" in said
    assert "b/cut.txt is a damaged output of nvidia-smi topo -m: " in said


def test_three_folders_are_three_arms(tmp_path: Path) -> None:
    folders = [
        write(tmp_path / name, many(effect, seed=place))
        for place, (name, effect) in enumerate((("a", 1.0), ("b", 1.1), ("c", 1.3)))
    ]
    found = judged(*folders)
    assert [(f.arm, f.verdict.word.value) for f in found.headlines] == [
        ("b", "slower"),
        ("c", "slower"),
    ]
    assert len(found.pairs) == 3


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


def test_arms_are_called_what_tells_their_paths_apart(tmp_path: Path) -> None:
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


# --- the report ------------------------------------------------------------------------------


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


def test_a_thousand_logs_are_judged_within_five_seconds(tmp_path: Path) -> None:
    draw = random.Random(5)
    for arm, effect in (("a", 1.0), ("b", 1.1)):
        texts = {
            f"run{n}.log": osu_of(
                [effect * (10 + i) * draw.lognormvariate(0, 0.01) for i in range(8)]
            )
            for n in range(500)
        }
        write(tmp_path / arm, texts)
    begin = time.process_time()
    found = judged(tmp_path / "a", tmp_path / "b")
    assert time.process_time() - begin < 5
    assert words_of(found) == {"osu_latency": "slower"}


def test_arms_measured_one_after_the_other_are_said_to_be_though_names_pair_them(
    tmp_path: Path,
) -> None:
    a, b = many(count=8, seed=1), many(1.1, count=8, seed=2)
    write(tmp_path / "a", a, times=[1.7e9 + 600 * i for i in range(8)])
    write(tmp_path / "b", b, times=[1.7e9 + 86400 + 600 * i for i in range(8)])
    found = judged(tmp_path / "a", tmp_path / "b", pair="name")
    told = [notice.text for notice in found.notices if notice.name == "one arm after the other"]
    assert len(told) == 1
    assert "all logs of a were made before those of b" in told[0]
    write(tmp_path / "c", b, times=[1.7e9 + 60 + 600 * i for i in range(8)])
    found = judged(tmp_path / "a", tmp_path / "c", pair="name")
    assert "one arm after the other" not in {notice.name for notice in found.notices}


def test_copied_logs_are_no_launches(tmp_path: Path) -> None:
    a, b = many(count=8, seed=1), many(1.1, count=8, seed=2)
    write(tmp_path / "a", a)
    write(tmp_path / "b", {**b, "run3.log": b["run2.log"]})
    found = judged(tmp_path / "a", tmp_path / "b", pair="name")
    assert words_of(found) == {"osu_latency": "withheld"}
    assert "b/run2.log, b/run3.log have the same figures" in found.headlines[0].verdict.reason
    # Also where the arms are copies of each other: nothing is as equal as a log and itself.
    write(tmp_path / "c", a)
    found = judged(tmp_path / "a", tmp_path / "c", pair="name")
    assert words_of(found) == {"osu_latency": "withheld"}
    assert "and 7 other groups are alike" in found.headlines[0].verdict.reason
    # One figure may well come out the same twice.
    write(tmp_path / "d", {name: osu(sizes=1) for name in a})
    write(tmp_path / "e", {name: osu(1.1, sizes=1) for name in a})
    found = judged(tmp_path / "d", tmp_path / "e", pair="name")
    assert "same figures" not in found.headlines[0].verdict.reason


def test_every_notice_is_in_the_documentation() -> None:
    root = Path(__file__).parent.parent
    page = " ".join((root / "docs" / "compare.md").read_text().split())
    for module in ("logged", "beside"):
        text = (root / "src" / "paribus" / "compare" / f"{module}.py").read_text()
        names = re.findall(r'(?:Notice|_sentences)\(\s*"([a-z ]+)"', text)
        names += ["work differs", "launches failed", "copies"]
        assert names
        for name in names:
            assert f"**{name}**" in page, name


# --- properties ------------------------------------------------------------------------------

NAMES = st.from_regex(
    r"(run|rep|osu)[-_ .]?[0-9]{1,4}(-[a-z]{1,3})?(\.(log|out|txt))?", fullmatch=True
)


@settings(max_examples=60, deadline=None)
@given(
    names=st.lists(NAMES, min_size=1, max_size=12, unique=True),
    dropped=st.sets(st.integers(0, 11)),
    prefix=st.booleans(),
    seed=st.integers(0, 2**16),
)
def test_names_pair_each_log_with_its_namesake_once(
    names: list[str], dropped: set[int], prefix: bool, seed: int
) -> None:
    """Whatever the names and their order, a block has one log of an arm and names that agree."""
    logs = []
    for arm in ("host", "bridged"):
        for i, name in enumerate(names):
            if arm == "bridged" and i in dropped:
                continue
            sample = Sample("latency", Case.of(bytes=8), (10.0 + i,))
            reading = Reading("osu_latency", "7.4", {}, 2, (sample,))
            called = f"{arm}-{name}" if prefix else name
            logs.append(Log(arm, called, Path(called), 1.7e9, False, True, reading))
    random.Random(seed).shuffle(logs)
    logs.sort(key=lambda log: log.arm != "host")  # arms come one after the other
    if not {log.arm for log in logs} >= {"host", "bridged"}:
        return
    paired = pair_logs(("host", "bridged"), logs, ())
    (kind,) = paired.kinds
    assert Counter(log.arm for log in kind.logs) == Counter(log.arm for log in logs)
    if kind.pairing != "name":
        return
    found = judge_logs(paired, Answers())
    ratio = found.headlines[0].comparison
    assert ratio is not None
    assert ratio.ratio == 1.0, "a log stands beside another than its namesake"
