"""What withholds a verdict on logs, or warns of it."""

from __future__ import annotations

import gzip
import random
import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from log_folders import (
    FIXTURES,
    in_turns,
    judged,
    many,
    names_of,
    osu,
    osu_of,
    read,
    text_of,
    words_of,
    write,
)
from paribus.benchmarks import BENCHMARKS
from paribus.core import DatedBy, NoticeName, Reason, Request, UserError, Word
from paribus.logs.imported import Answers
from paribus.logs.logged import judge_logs
from paribus.logs.logs import find_logs
from paribus.logs.pairing import made
from paribus.logs.recognise import readings
from paribus.words.values import notice_text, reason_of


def test_many_refused_logs_withhold_the_verdict(tmp_path: Path) -> None:
    a, b = in_turns(tmp_path, 1.1)
    for i in (2, 5, 9):
        (b / f"slurm-{i}.out").write_text("# OSU MPI Latency Test v7.4\nkilled\n")
    found = judged(a, b)
    assert words_of(found) == {"osu_latency": "withheld"}
    assert "0 of 12 of arm a, 3 of 12 of b" in text_of(found, "launches failed")


def test_launches_that_failed_before_their_tool_said_its_name_count(tmp_path: Path) -> None:
    a, b = in_turns(tmp_path, 1.1)
    for i, name in enumerate(("slots", "np1", "unroot")):
        shutil.copy(FIXTURES / "osu_latency" / f"fail-{name}.out", b / f"lost-{i}.out")
    (b / "notes.txt").write_text("An error occurred on Monday, all was well on Tuesday.\n")
    found = judged(a, b)
    assert words_of(found) == {"osu_latency": "withheld"}
    assert "0 of 12 of arm a, 3 of 15 of b" in text_of(found, "launches failed")
    said = text_of(found, "not read")
    assert "b/lost-0.out is from a failed launch: 'There are not enough slots" in said
    assert "b/lost-1.out is from a failed launch: 'This test requires exactly two" in said
    assert "b/notes.txt is not the output of a known tool" in said


def test_too_few_launches_are_those_of_the_reference_that_was_named(tmp_path: Path) -> None:
    """Not of the first folder: --reference may name another."""
    folders = [write(tmp_path / arm, many(count=3, seed=n), [0] * 3) for n, arm in enumerate("ab")]
    (head,) = judge_logs(read(*folders), Answers(reference="b")).headlines
    assert (head.arm, head.verdict.figures["launches"]) == ("a", {"b": 3, "a": 3})


def test_what_was_launched_later_is_said_of_the_reference_that_was_named(tmp_path: Path) -> None:
    folders = [
        write(tmp_path / arm, many(seed=n), [1e9 + 1e6 * n + 100 * i for i in range(12)])
        for n, arm in enumerate("abc")
    ]
    notices = judge_logs(read(*folders), Answers(reference="c")).notices
    shown = [n.figures for n in notices if n.name is NoticeName.ONE_ARM_AFTER_THE_OTHER]
    assert [(one["first"], one["second"]) for one in shown] == [("a", "c"), ("b", "c")]


HPL_DAT = "HPLinpack benchmark input file\nA node\nHPL.out      output file name (if any)\n6\n"
BESIDE = {
    "HPL.dat": HPL_DAT,
    "stream.c": 'printf("Failed Validation on a[]\\n"); // STREAM version $Revision: 5.10 $\n',
    "job.sh": f"#!/bin/bash\ncat > HPL.dat <<END\n{HPL_DAT}END\nsrun xhpl\n",
    "plot.py": "# OSU MPI Latency Test v7.4\nwords = line.split()\n",
    "README.md": osu(3.0),
}


def test_what_lies_beside_outputs_is_no_launch_that_failed(tmp_path: Path) -> None:
    """Inputs, scripts and sources quote titles; a README shows figures of elsewhere."""
    a, b = in_turns(tmp_path, 1.1)
    before = judged(a, b)
    for name, text in BESIDE.items():
        for run in range(12):
            write(b, {f"run{run}/{name}": text})
    found = judged(a, b)
    assert found.headlines == before.headlines
    assert words_of(found) == {"osu_latency": "slower"}
    assert "launches failed" not in names_of(found)
    assert "b/run0/README.md" in text_of(found, "not read")
    write(tmp_path, {"alone.md": osu(3.0), "README.md": osu(3.0)})  # given by itself it is read
    assert len(judged(tmp_path / "alone.md", tmp_path / "README.md").headlines) == 1


def test_no_file_that_a_tool_writes_is_called_as_a_source(tmp_path: Path) -> None:
    """Of all tools, under the names that they give their results themselves."""
    yaml = (FIXTURES / "hpcg" / "good-real-3_0_yaml.out").read_text()
    written = {"HPCG-Benchmark-3.0_2016.11.08.yaml": yaml}
    text = (FIXTURES / "hpcg" / "good-benchmark_np2.out").read_text()
    for benchmark in BENCHMARKS.values():
        defaults = {key: one.default for key, one in benchmark.parameters.items()}
        with suppress(UserError):  # it needs more than its defaults
            program = benchmark.command(Request(defaults, benchmark.ranks))
            written |= dict.fromkeys((one.replace("*", "1") for one in program.outputs), text)
    assert len(written) > 3
    _, logs, unread = find_logs([write(tmp_path / "a", written)])
    assert [one.code for one in unread] == []
    assert {log.name for log in logs} == {*written}


def test_an_input_that_a_tool_is_given_is_no_output_of_it() -> None:
    inputs = {}
    for name, benchmark in BENCHMARKS.items():
        defaults = {key: one.default for key, one in benchmark.parameters.items()}
        with suppress(UserError):  # it needs more than its defaults
            for file, text in benchmark.command(Request(defaults, benchmark.ranks)).files.items():
                inputs[name, file] = text if isinstance(text, str) else text[0]
    assert {"hpl", "hpcc", "hpcg"} <= {name for name, _ in inputs}
    for place, text in inputs.items():
        held = readings(text)
        assert not held.found, place
        assert not [one for one in held.problems if one.tool], place


def test_the_screen_of_a_launch_beside_its_log_is_none_that_failed(tmp_path: Path) -> None:
    """What mdrun prints on the terminal has the performance, but not what it was of."""
    log = (FIXTURES / "gromacs" / "good-spc_2ranks.out").read_text()
    screen = (
        "             :-) GROMACS - gmx mdrun, 2023.3 (-:\n\nExecutable:   /usr/bin/gmx\n"
        "Command line:\n  gmx mdrun -s water.tpr\n\nUsing 2 MPI processes\nstarting mdrun 'Water'\n"
        "5000 steps,     10.0 ps.\n"
    )
    for arm in ("a", "b"):
        for run in range(9):
            write(tmp_path / arm, {f"run{run}/md.log": log, f"run{run}/out.log": screen})
    found = judged(tmp_path / "a", tmp_path / "b")
    assert "launches failed" not in names_of(found)
    assert "18 files not read" in text_of(found, "not read")


def test_a_size_at_which_one_arm_failed_withholds_no_other(tmp_path: Path) -> None:
    """What failed does not say of which size it is; the names of the files do."""
    failed = "# OSU MPI Latency Test v7.4\nkilled\n"
    for arm, effect in (("a", 1.0), ("b", 1.1)):
        for size in (2, 4, 8):
            runs = many(effect, count=12, seed=size, name=f"size-{size}-{{}}.out", sizes=1)
            runs = {n: re.sub("(?m)^1 ", f"{size} ", text) for n, text in runs.items()}
            fails = size == 8 and arm == "b"
            write(tmp_path / arm, dict.fromkeys(runs, failed) if fails else runs)
    a, b = tmp_path / "a", tmp_path / "b"
    found = judged(a, b)
    assert words_of(found) == {"osu_latency (2 B)": "slower", "osu_latency (4 B)": "slower"}
    assert "12 files not read" in text_of(found, "not read")
    write(b, {f"size-2-{run}.out": failed for run in (1, 2, 3)})
    found = judged(a, b)
    assert "0 of 12 of arm a, 3 of 12 of b" in text_of(found, "launches failed")
    assert words_of(found) == {"osu_latency (2 B)": "withheld", "osu_latency (4 B)": "slower"}


def test_what_a_launcher_writes_around_an_output_is_no_setting_of_it(tmp_path: Path) -> None:
    """Flux's record of a job, with a name that counts the launches; and what its broker says."""
    job = '{{"tasks": [], "attributes": {{"user": {{"study_id": "osu-2-iter-{}"}}}}}}'
    event = '{{"timestamp":17242925{}.35,"name":"init"}}'
    for arm, effect in (("a", 1.0), ("b", 1.1)):
        runs = many(effect, count=12, seed=len(arm), name="osu-iter-{}.out")
        head = 'broker.info[0]: online: osu-{0}-0 (ranks 0)\n    keygen.hostname = "osu-{0}-0"\n'
        tail = "START OF JOBSPEC\n" + job + "\nSTART OF EVENTLOG\n" + event + "\n"
        write(
            tmp_path / arm,
            {
                name: head.format(at) + text + tail.format(at, 10 + at)
                for at, (name, text) in enumerate(runs.items())
            },
        )
    found = read(tmp_path / "a", tmp_path / "b")
    assert [kind.label for kind in found.kinds] == ["osu_latency"]
    names = ("user", "broker", "keygen")
    assert not any(
        name in key for name in names for log in found.kinds[0].logs for key in log.reading.facts
    )


def test_a_fact_that_counts_launches_parts_no_cases(tmp_path: Path) -> None:
    for arm, effect in (("a", 1.0), ("b", 1.1)):
        runs = many(effect, count=12, seed=len(arm))
        texts = {n: f"# Study : osu-2-iter-{at}\n{t}" for at, (n, t) in enumerate(runs.items())}
        write(tmp_path / arm, texts)
    (kind,) = read(tmp_path / "a", tmp_path / "b").kinds
    assert (kind.label, len(kind.logs)) == ("osu_latency", 24)


def test_copied_logs_are_no_launches(tmp_path: Path) -> None:
    a, b = many(count=8, seed=3, sizes=16), many(1.1, count=8, seed=2, sizes=16)
    write(tmp_path / "a", a)
    write(tmp_path / "b", {**b, "run3.log": b["run2.log"]})
    found = judged(tmp_path / "a", tmp_path / "b", pair="name")
    assert words_of(found) == {"osu_latency": "withheld"}
    assert "b/run2.log, b/run3.log have the same figures" in reason_of(found.headlines[0].verdict)
    # Also where the arms are copies of each other: nothing is as equal as a log and itself.
    write(tmp_path / "c", a)
    found = judged(tmp_path / "a", tmp_path / "c", pair="name")
    assert words_of(found) == {"osu_latency": "withheld"}
    assert "and 7 other groups are alike" in reason_of(found.headlines[0].verdict)
    # One figure may well come out the same twice.
    write(tmp_path / "d", {name: osu(sizes=1) for name in a})
    write(tmp_path / "e", {name: osu(1.1, sizes=1) for name in a})
    found = judged(tmp_path / "d", tmp_path / "e", pair="name")
    assert "same figures" not in reason_of(found.headlines[0].verdict)


def test_a_copied_file_is_no_launch_however_few_figures_it_has(tmp_path: Path) -> None:
    # IMB's logs say when they were made, to the second, and the barrier has few figures.
    text = (FIXTURES / "imb_barrier" / "good-np4.out").read_text()
    line = next(one for one in text.splitlines() if one.startswith("# Date "))
    for arm, hour in (("a", "05"), ("b", "06")):
        dates = [f"# Date : Sat Nov 21 {hour}:{n:02}:00 2026" for n in range(8)]
        write(tmp_path / arm, {f"run{n}.log": text.replace(line, d) for n, d in enumerate(dates)})
    assert "copies" not in names_of(judged(tmp_path / "a", tmp_path / "b"))
    copy = (tmp_path / "a" / "run3.log").read_bytes()
    (tmp_path / "a" / "again.log").write_bytes(copy)
    found = judged(tmp_path / "a", tmp_path / "b")
    (barrier,) = (head for head in found.headlines if head.benchmark == "imb_barrier")
    assert barrier.verdict.word is Word.WITHHELD
    assert reason_of(barrier.verdict).startswith(
        "a/again.log, a/run3.log are identical files: a copied log is not"
    )


def streams(folder: Path, effect: float) -> dict[str, str]:
    """Write eight outputs of STREAM, a file each, and return them: four figures are in each."""
    text = (FIXTURES / "stream" / "good-real-32_threads.out").read_text()
    rows = re.compile(r"^((?:Copy|Scale|Add|Triad): +)(\S+)((?: +\S+){3})", re.M)
    draw = random.Random(effect)

    def row(found: re.Match[str]) -> str:
        factor = effect * draw.gauss(1, 0.01)
        times = (f"{float(word) / factor:12.6f}" for word in found[3].split())
        return f"{found[1]}{float(found[2]) * factor:.1f}{''.join(times)}"

    texts = {f"run{n}.txt": rows.sub(row, text) for n in range(8)}
    write(folder, texts)
    return texts


RECORDED_AGAIN: Mapping[str, Callable[[dict[str, str]], dict[str, bytes]]] = {
    "in the job's own output": lambda texts: {
        f"slurm-{n}.out": f"2026-11-30\n{text}\nok\n".encode()
        for n, text in enumerate(texts.values())
    },
    "in one output of all jobs": lambda texts: {"all.out": "\n".join(texts.values()).encode()},
    "shown by a later command of the job": lambda texts: {
        name: f"{text}\n{text}".encode() for name, text in texts.items()
    },
    "copied with a line above": lambda texts: {
        f"old/{name}": f"ok\n{text}".replace("\n", "\r\n").encode() for name, text in texts.items()
    },
    "with the rank before each line": lambda texts: {
        f"ranks/{name}": re.sub("^", "0: ", f"ok\n{text.strip()}", flags=re.M).encode()
        for name, text in texts.items()
    },
}


@pytest.mark.parametrize("how", RECORDED_AGAIN)
def test_a_launch_that_two_files_record_counts_once(tmp_path: Path, how: str) -> None:
    texts, _ = streams(tmp_path / "a", 1.0), streams(tmp_path / "b", 1.1)
    alone = judged(tmp_path / "a", tmp_path / "b").headlines[0]
    for name, raw in RECORDED_AGAIN[how](texts).items():
        (tmp_path / "a" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "a" / name).write_bytes(raw)
    found = judged(tmp_path / "a", tmp_path / "b")
    (head,) = found.headlines
    assert head.verdict.word is Word.FASTER
    assert (head.comparison, head.arm_value) == (alone.comparison, alone.arm_value)
    assert "another output of a launch that is read" in text_of(found, "not read")


@pytest.mark.parametrize("count", [3, 8])
def test_launches_of_few_digits_that_are_all_recorded_twice_count_once(
    tmp_path: Path, count: int
) -> None:
    """A figure of three digits shows nothing by itself; that each has one twin does."""
    for arm, effect in (("a", 1.0), ("b", 1.2)):
        texts = [osu(effect * (1 + 0.02 * n), sizes=1) for n in range(count)]
        write(tmp_path / arm, {f"run{n}.log": text for n, text in enumerate(texts)})
        write(tmp_path / arm, {f"job{n}.out": f"job\n{t}\nok\n" for n, t in enumerate(texts)})
    (kind,) = read(tmp_path / "a", tmp_path / "b").kinds
    assert kind.counts == {"a": count, "b": count}


def test_launches_of_a_deterministic_program_are_no_second_record_of_one(tmp_path: Path) -> None:
    """Their figures are coarse, and all else that they print is the same in each of an arm."""
    text = osu(1.0, sizes=1)
    for arm, prime in (("a", 7919), ("b", 7907)):
        worked = "".join(f"energy {n}.{n * prime:09}\n" for n in range(1, 20))
        runs = {f"run{n}.log": f"job {n}\n{worked}{text}" for n in range(6)}
        write(tmp_path / arm, runs)
    assert "not read" not in names_of(judged(tmp_path / "a", tmp_path / "b"))


@pytest.mark.parametrize("change", [gzip.compress, lambda raw: raw.replace(b"\n", b"\r\n")])
def test_a_copy_that_is_written_otherwise_is_a_copy(
    tmp_path: Path, change: Callable[[bytes], bytes]
) -> None:
    streams(tmp_path / "a", 1.0)
    streams(tmp_path / "b", 1.1)
    (tmp_path / "b" / "again").write_bytes(change((tmp_path / "a" / "run3.txt").read_bytes()))
    (head,) = judged(tmp_path / "a", tmp_path / "b").headlines
    assert reason_of(head.verdict).startswith("a/run3.txt, b/again are identical files")


def test_identical_files_that_launches_can_print_count_and_are_named(tmp_path: Path) -> None:
    for arm, effect in (("a", 1.0), ("b", 1.1)):
        levels = [effect * (1 + 0.002 * n) for n in range(12)]
        write(tmp_path / arm, {f"run{n}.log": osu(level, 1) for n, level in enumerate(levels)})
    (tmp_path / "a" / "again.log").write_bytes((tmp_path / "a" / "run3.log").read_bytes())
    found = judged(tmp_path / "a", tmp_path / "b")
    assert words_of(found) == {"osu_latency": "slower"}
    said = text_of(found, "copies")
    assert said.startswith("osu_latency: a/again.log, a/run3.log are identical files. They hold so")
    assert "so each counts as a launch" in said
    # What else a launch prints shows that two are one.
    for path in [*(tmp_path / "a").iterdir(), *(tmp_path / "b").iterdir()]:
        if path.name != "again.log":
            draw = random.Random(str(path))
            took = "".join(f"prologue {n} took {draw.uniform(1, 9):.5f} s\n" for n in range(9))
            path.write_text(took + path.read_text())
    (tmp_path / "a" / "again.log").write_bytes((tmp_path / "a" / "run3.log").read_bytes())
    found = judged(tmp_path / "a", tmp_path / "b")
    assert words_of(found) == {"osu_latency": "withheld"}
    assert "are identical files: a copied log" in text_of(found, "copies")


def coarse(effect: float, launch: int) -> str:
    """Return a table of two digits, of which one distinguishes the launches from 10 on."""
    last = effect * (0.5 + 0.01 * max(launch - 10, 0))
    return osu_of([*(effect * (0.11 + 0.02 * i) for i in range(19)), last])


def test_figures_of_two_digits_may_be_the_same_in_some_launches_but_not_in_most(
    tmp_path: Path,
) -> None:
    for arm, effect in (("a", 1.0), ("b", 1.1)):
        some = {f"run{n}.log": coarse(effect, n) for n in range(8, 20)}
        write(tmp_path / arm, some)
        write(tmp_path / f"most-{arm}", dict.fromkeys(some, coarse(effect, 0)))
    assert "copies" not in names_of(judged(tmp_path / "a", tmp_path / "b", pair="name"))
    found = judged(tmp_path / "most-a", tmp_path / "most-b", pair="name")
    assert words_of(found) == {"osu_latency": "withheld"}
    assert "too few digits to distinguish launches" in text_of(found, "copies")


def test_logs_of_other_dates_are_no_copies(tmp_path: Path) -> None:
    text = (FIXTURES / "imb_pingpong" / "good-2018_title.out").read_text()
    line = next(one for one in text.splitlines() if one.startswith("# Date "))
    for arm, clock in (("a", "05:00:00"), ("b", "05:01:00"), ("c", "05:00:00")):
        write(tmp_path / arm, {"imb.log": text.replace(line, f"# Date : Sat Nov 21 {clock} 2026")})
    assert "copies" in names_of(judged(tmp_path / "a", tmp_path / "c"))
    assert "copies" not in names_of(judged(tmp_path / "a", tmp_path / "b"))


def test_copies_of_a_dated_log_are_no_launches_whenever_their_files_were_written(
    tmp_path: Path,
) -> None:
    """One date in all logs shows no order, and the times of their files make no launches."""
    public = FIXTURES.parent / "data" / "public" / "b-08-hpcc"
    arms = []
    for place, arm in enumerate("AB"):
        text = (public / f"{arm}.txt").read_text()
        times = [1.7e9 + 100 * n + 10 * place for n in range(8)]
        arms.append(write(tmp_path / arm, {f"run{n}.log": text for n in range(8)}, times))
    (kind,) = read(*arms).kinds
    assert made(kind.logs).by is DatedBy.FILES
    (head,) = judged(*arms).headlines
    assert (head.verdict.word, head.verdict.code) == (Word.WITHHELD, Reason.LOGS_COPIED)


def test_what_is_true_of_several_benchmarks_is_said_once(tmp_path: Path) -> None:
    text = (FIXTURES / "imb_bcast" / "good-five.out").read_text()
    a = write(tmp_path / "a", {"x.log": text})
    b = write(tmp_path / "b", {"x.log": text.replace("2021.11", "2021.10")})
    found = judged(a, b)
    reported = [n for n in found.notices if n.name in ("copies", "versions differ")]
    assert [len(n.benchmarks) for n in reported] == [5, 5]
    several = "imb_pingpong, imb_bcast, imb_allgather, imb_alltoall, imb_allreduce"
    assert text_of(found, "copies").startswith(f"{several}: a/x.log, b/x.log have the same figures")
    assert text_of(found, "versions differ").startswith(
        f"{several} are not of one version: arm a 2021"
    )


def test_an_arm_that_lacks_launches_costs_the_others_no_verdict(tmp_path: Path) -> None:
    folders = [write(tmp_path / arm, many(count=7, seed=place)) for place, arm in enumerate("abc")]
    for i in (2, 5):
        (tmp_path / "c" / f"run{i}.log").unlink()
    words = {f.arm: f.verdict for f in judged(*folders, pair="name").headlines}
    assert words["b"].word is not Word.WITHHELD
    assert words["c"].word is Word.WITHHELD
    assert "the logs do not show it; add the missing launches" in reason_of(words["c"])


def test_other_work_withholds_the_verdict(tmp_path: Path) -> None:
    one, other = ((FIXTURES / "lammps" / f"good-{n}_2ranks.out").read_text() for n in ("eam", "lj"))
    a = write(tmp_path / "a", {"x.log": one})
    for text in (other, one):
        b = write(tmp_path / "b", {"x.log": text})
        try:
            found = judged(a, b)
        except UserError:
            continue  # its parameters differ already
        reason = reason_of(found.headlines[0].verdict)
        assert ("the work is not the same" in reason) == (text is other)


def test_calculations_of_other_numbers_of_iterations_are_compared_by_the_time_of_one(
    tmp_path: Path,
) -> None:
    text = (FIXTURES / "qe" / "good-al32_1rank.out").read_text()
    first, *steps = re.split(r"(?m)^(?=     iteration # )", text)
    fewer = first + "".join(steps[:1] + steps[2:])
    said = f"convergence has been achieved in {len(steps):3} iterations"
    assert said in fewer
    fewer = fewer.replace(said, said.replace(str(len(steps)), str(len(steps) - 1)))
    a, b = write(tmp_path / "a", {"x.out": text}), write(tmp_path / "b", {"x.out": fewer})
    found = judged(a, b)
    (head,) = found.headlines
    assert "the work is not the same" not in reason_of(head.verdict)
    assert head.comparison is not None
    assert head.comparison.ratio == pytest.approx(len(steps) / (len(steps) - 1))
    assert text_of(found, "iterations differ") == (
        f"qe took different numbers of iterations: arm a {len(steps)}; b {len(steps) - 1}."
        " The comparison uses the time of one iteration."
    )
    assert "iterations differ" not in names_of(judged(a, write(tmp_path / "c", {"x.out": text})))


def test_trajectories_that_moved_apart_are_of_the_same_work(tmp_path: Path) -> None:
    """The last row as LAMMPS gave it on two process grids: 32,000 atoms after 2,500 steps."""
    text = (FIXTURES / "lammps" / "good-lj_2ranks.out").read_text()
    row = next(line for line in text.splitlines() if line.startswith("     100 "))
    one = "     100   0.70006073   -5.6701563            0    -4.620098   0.73839877 "
    a = write(tmp_path / "a", {"x.log": text.replace(row, one)})
    for other, same in (
        ("     100   0.69634819   -5.6645379            0   -4.6200482    0.7704337 ", True),
        ("     100   0.73006073   -5.6701563            0    -4.620098   0.73839877 ", False),
        ("     100   0.70006073   -5.4701563            0    -4.620098   0.73839877 ", False),
    ):
        b = write(tmp_path / "b", {"x.log": text.replace(row, other)})
        reason = reason_of(judged(a, b).headlines[0].verdict)
        assert ("the work is not the same" not in reason) == same
    assert "E_pair is -5.6701563 in x.log of arm a and -5.4701563 in x.log of b" in reason


def test_what_a_log_says_against_itself_is_a_warning(tmp_path: Path) -> None:
    text = (FIXTURES / "lammps" / "good-lj_wheel_starved.out").read_text()
    for arm in ("a", "b"):
        write(tmp_path / arm, {f"{n}.lammps": text for n in "stuvwxyz"})
    found = judged(tmp_path / "a", tmp_path / "b")
    (reported,) = (notice for notice in found.notices if notice.name == "contamination")
    assert notice_text(reported).startswith("lammps, a and b: a/s.lammps, a/t.lammps, a/u.lammps, ")
    assert " and 10 more: " in notice_text(reported)
    assert notice_text(reported).count("of the CPU") == 1
    (guard,) = reported.figures["guards"]
    assert guard["logs"] == [f"{arm}/{n}.lammps" for arm in "ab" for n in "stuvwxyz"]


def test_a_form_that_nobody_reads_is_no_launch_that_failed(tmp_path: Path) -> None:
    """A throughput of sockperf beside each ping-pong withheld the verdict on the latency."""
    folder = FIXTURES / "sockperf"
    throughput = (folder / "fail-real-throughput.out").read_text()
    good = (folder / "good-real-3_10_udp.out").read_text()
    for arm in ("one", "two"):
        write(tmp_path / arm, {"latency.log": good, "throughput.log": throughput})
    found = judged(tmp_path / "one", tmp_path / "two")
    assert "launches failed" not in names_of(found)
    assert "let it ping-pong" in text_of(found, "not read")


SWEEP = "+ mpirun -np {} osu_allreduce\n"
DIED = "srun: error: node1: task 3: Exited with exit code 1\n"


@pytest.mark.parametrize("known", [True, False])
def test_a_failure_withholds_the_case_that_it_is_of(known: bool, tmp_path: Path) -> None:
    """By the command above it; without, it counts for all, and the reason says so."""
    draw = random.Random(1)
    arms = []
    for arm, level in (("a", 1.0), ("b", 1.2)):
        text = ""
        for ranks in (4, 8):
            for _ in range(10):
                text += SWEEP.format(ranks) + osu(level * draw.lognormvariate(0, 0.01))
        command = SWEEP.format(8) if known else "+ ./prepare\n"
        failed = (command + DIED) * 5 + SWEEP.format(4) + osu(level) if arm == "b" else ""
        arms.append(write(tmp_path / arm, {"job.log": text + failed}))
    found = judged(*arms)
    said = words_of(found)
    withheld = {label for label, word in said.items() if word == "withheld"}
    assert withheld == {label for label in said if "8" in label or not known}
    assert len(said) == 2
    assert ("no log says of which case" in text_of(found, "launches failed")) is not known


def test_a_failure_is_of_the_case_that_its_file_is_named_for(tmp_path: Path) -> None:
    arms = []
    for arm, level in (("a", 1.0), ("b", 1.2)):
        texts = many(level, 10, 1, "large-{}.log", sizes=16) | many(level, 10, 2, "small-{}.log")
        large = {n: t.replace("MPI_CHAR", "MPI_FLOAT") for n, t in texts.items() if "large" in n}
        lost = {f"large-{n}.log": DIED for n in range(20, 26)} if arm == "b" else {}
        arms.append(write(tmp_path / arm, texts | large | lost))
    said = words_of(judged(*arms))
    assert [label for label, word in said.items() if word == "withheld"] == [
        label for label in said if "FLOAT" in label
    ]
    assert len(said) == 2


def test_logs_that_are_not_compared_may_be_called_as_a_kind_that_is(tmp_path: Path) -> None:
    """Those without a setting are called as the only kind that has it; what failed is theirs."""
    text = (FIXTURES / "osu_mbw_mr" / "good-shm.out").read_text()
    failed = "# OSU MPI Multiple Bandwidth / Message Rate Test v7.4\nkilled\n"
    for arm in ("a", "b"):
        write(tmp_path / arm, {f"w64-{run}.out": text for run in range(9)})
    write(tmp_path / "a", {f"none-{n}.out": text.replace(" ] [ window size: 64", "") for n in "12"})
    write(tmp_path / "b", {f"none-{n}.out": failed for n in "12"})
    logs = read(tmp_path / "a", tmp_path / "b")
    assert (
        [one.label for one in logs.kinds] == [one.label for one in logs.unmatched] == ["osu_mbw_mr"]
    )
    assert "launches failed" not in names_of(judged(tmp_path / "a", tmp_path / "b"))


def test_launches_that_failed_with_and_without_an_output_count_together(tmp_path: Path) -> None:
    good = [osu(1 + i / 1000) for i in range(10)]
    lost = "./job.sh: line 12: ./osu_latency: No such file or directory\nrc=127\n"
    bad = f"{osu()}srun: error: n1: task 0: Killed\nrc=137\n"
    texts = {arm: "".join(f"{one}rc=0\n" for one in good) for arm in "ab"}
    texts["b"] = bad + texts["b"] + lost
    for arm, text in texts.items():
        write(tmp_path / arm, {"job.log": text})
    found = judged(tmp_path / "a", tmp_path / "b")
    assert words_of(found) == {"osu_latency": "withheld"}
    assert "0 of 10 of arm a, 2 of 12 of b" in text_of(found, "launches failed")
