"""Logs of large machines and of other builds, in forms that public logs have.

The outputs are our own, changed to what those programs print: names of programs, numbers that fill
their columns, lists of ranks, lines of thousands of ranks above the first of the output.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from outputs import read, reading, text_of
from paribus.__main__ import main
from paribus.core import ParseError
from paribus.logs.labels import above
from paribus.logs.log import Log
from paribus.logs.logs import find_logs
from paribus.readers.settings import printed

HELLO = "Hello from rank {}, thread 0, on nid00{}. (core affinity = {})\n"
PLACED = "".join(HELLO.format(rank, 1000 + rank // 128, rank % 128) for rank in range(2048))
"""What a program that shows the placement prints above an output: more than 64 KiB."""


def logs_of(folder: Path, name: str, text: str) -> list[Log]:
    (folder / name).write_text(text)
    return find_logs([folder / name])[1]


@pytest.mark.parametrize("name", ["mdrun_mpi", "mdrun", "mdrun_mpi_d", "mdrun_threads"])
def test_a_build_of_mdrun_alone_has_another_name(name: str, tmp_path: Path) -> None:
    text = text_of("gromacs/good-spc_2ranks")
    other = text.replace("GROMACS - gmx mdrun,", f"GROMACS - {name},")
    assert other != text
    (log,) = logs_of(tmp_path, "md.log", other)
    assert log.reading.samples == read("gromacs", text).samples
    assert log.reading.ranks == 2
    both = logs_of(tmp_path, "md.log", other + text)
    assert [log.reading.samples for log in both] == [log.reading.samples] * 2


def test_another_program_of_gromacs_is_not_mdrun(tmp_path: Path) -> None:
    text = text_of("gromacs/good-spc_2ranks")
    grompp = ":-) GROMACS - gmx grompp, 2022.5 (-:\n\nReading file topol.top\n"
    assert len(logs_of(tmp_path, "md.log", grompp + text)) == 1


@pytest.mark.parametrize("ranks", [4, 64, 512, 1024, 8192])
def test_the_ranks_of_vasp_fill_their_column(ranks: int) -> None:
    text = text_of("vasp/good-handmade_relaxation")
    pattern = re.compile(r" running +(?:on +\d+ total cores|\d+ mpi-ranks,.*)")
    assert len(pattern.findall(text)) == 1
    line = f" running {ranks:4d} mpi-ranks, with    1 threads/rank"
    found = read("vasp", pattern.sub(line, text))
    assert (found.ranks, found.parameters["threads"]) == (ranks, 1)


@pytest.mark.parametrize("name", ["N", "NB"])
def test_nvidias_hpl_solves_a_system_of_whole_blocks(name: str) -> None:
    text = text_of("hpl/good-handmade-nvidia_per_gpu")
    (sample,) = read("hpl", text).samples
    solved = dict(sample.case.items)[name.lower()]
    asked = int(solved) + 416
    setting = re.search(rf"(?m)^{name} +: +\d+ *$", text[text.index("will be used:") :])
    assert setting
    other = text.replace(setting[0], f"{name:6} : {asked:7d} ")
    with pytest.raises(Exception, match="the rows are not those of the settings"):
        read("hpl", other)
    said = (
        f"[WARNING] Change Input {name} {asked} to {solved}\nHPL-NVIDIA settings from environment"
    )
    assert read("hpl", other.replace("HPL-NVIDIA settings from environment", said)).samples == (
        sample,
    )


def test_mdtest_on_many_tasks_with_more_to_say() -> None:
    """Ends over tasks that agree to six digits, and what -V prints in the table."""
    text = text_of(RATES)
    row = re.search(r"(?m)^   File creation .*\n", text)
    assert row
    for figures, good in (
        ("1817.810 1817.808 1817.809", True),
        ("1818.810 1816.808 1817.809", False),
    ):
        high, low, mean = figures.split()
        line = f"   File creation             : {high} {low} {mean} 0.000\n"
        other = text.replace(row[0], f"{line}V-1: Entering timestamp...\n", 1)
        if good:
            assert (1817.809,) in [one.values for one in read("mdtest", other).samples]
        else:
            with pytest.raises(Exception, match="File creation do not fit"):
                read("mdtest", other)


def test_nvidias_hpl_rounds_a_size_for_each_size_of_the_blocks() -> None:
    text = text_of("hpl/good-handmade-nvidia_per_gpu")
    begin, rest = text.split("will be used:")
    row = re.search(r"(?m)^W\w+ .*\n", rest)
    residual = re.search(r"(?m)^\|\|Ax-b\|\|_oo/.*\n", rest)
    assert row
    assert residual
    variant, _, _, p, q, *_ = row[0].split()
    rows, cases = "", []
    for nb in (384, 512):
        n = 250000 // nb * nb
        took = (2 / 3 * n**3 + 3 / 2 * n**2) / 1e9 / 173500
        share = 173500 / int(p) / int(q)
        rows += f"[WARNING] Change Input N 250000 to {n}\n"
        rows += f"{variant} {n} {nb} {p} {q} {took:.2f} 1.735e+05 ( {share:.3e})\n{residual[0]}"
        cases.append((n, nb))
    for name, values in (("N", "250000"), ("NB", "384 512")):
        rest = re.sub(rf"(?m)^{name} +: .*$", f"{name:6} : {values}", rest, count=1)
    rest = rest.replace(row[0], "\n").replace(residual[0], rows)
    rest = re.sub(
        r"(Finished +|^ +)1( tests(?: completed and passed)?)", r"\g<1>2\2", rest, flags=re.M
    )
    for damaged in ("0 512", "x 512"):
        other = f"{begin}will be used:{rest}".replace("384 512", damaged, 1)
        with pytest.raises(ParseError, match="the rows are not those of the settings"):
            read("hpl", other)
    found = [dict(one.case.items) for one in read("hpl", f"{begin}will be used:{rest}").samples]
    assert [(one["n"], one["nb"]) for one in found] == cases


def test_nvidias_hpcg_prints_two_of_three_local_dimensions() -> None:
    text = text_of("hpcg/good-benchmark_np2")
    whole = read("hpcg", text)
    less = re.sub(r"(?m)^Local Domain Dimensions::nz=.*\n", "", text)
    assert less != text
    assert read("hpcg", less).parameters == whole.parameters
    damaged = re.sub(r"(?m)^(Local Domain Dimensions::n)[xz]=.*\n", "", text)
    with pytest.raises(Exception, match="Local Domain Dimensions::nx' is missing"):
        read("hpcg", damaged)


# --- mdtest ------------------------------------------------------------------------------------

RATES = "mdtest/good-real-3_3_rates_and_times"


@pytest.mark.parametrize(
    ("rates", "times"),
    [
        ("SUMMARY: (of 1 iterations)", None),
        ("SUMMARY rate: (of 1 iterations)", "SUMMARY time: (of 1 iterations)"),
        (
            "SUMMARY rate (in ops/sec): (of 1 iterations)",
            "SUMMARY time (in ms/op): (of 1 iterations)",
        ),
    ],
)
def test_mdtest_heads_its_tables_in_many_ways(rates: str, times: str | None) -> None:
    text = text_of(RATES)
    wanted = read("mdtest", text).samples
    head, second, last = re.split(r"(?=SUMMARY time)|(?=-- finished)", text)
    head = head.replace("SUMMARY rate: (of 1 iterations)", rates)
    body = "" if times is None else second.replace("SUMMARY time: (of 1 iterations)", times)
    assert read("mdtest", head + body + last).samples == wanted


def test_a_map_of_thousands_of_ranks_is_no_damage(tmp_path: Path) -> None:
    text = text_of(RATES)
    nodes = "Nodemap: " + "1" * 208 + "0" * 61_000 + "\n"
    at = re.search(r"(?m)^\d+ tasks, ", text)
    assert at
    (log,) = logs_of(tmp_path, "mdtest.txt", text[: at.start()] + nodes + text[at.start() :])
    assert log.reading.samples == read("mdtest", text).samples
    other = text[: at.start()] + nodes.replace("Nodemap", "Map") + text[at.start() :]
    assert not logs_of(tmp_path, "mdtest.txt", other)


def test_files_that_all_tasks_share_are_not_divided_among_them() -> None:
    text = text_of("mdtest/good-real-3_3_64_tasks")
    own = read("mdtest", text)
    said = re.search(r"(?m)^64 tasks, (\d+) (files\S*)", text)
    command = re.search(r"(?m)^Command line used: .*$", text)
    assert said
    assert command
    assert own.parameters["items"] == int(said[1]) // 64
    shared = text.replace(command[0], f"{command[0]} -S")
    assert read("mdtest", shared).parameters["items"] == int(said[1])
    one = shared.replace(said[0], "64 tasks, 1 file")
    found = read("mdtest", one)
    assert (found.parameters["items"], found.parameters["kind"]) == (1, "files")


# --- IMB ---------------------------------------------------------------------------------------


def test_sizes_that_need_too_much_memory_are_cases_that_imb_lacks() -> None:
    found = reading("imb_alltoall/fail-mem_limit")
    sizes = {dict(sample.case.items)["bytes"] for sample in found.samples}
    assert max(sizes) == 262144  # the size after it is announced, and was not measured
    text = text_of("imb_alltoall/fail-mem_limit")
    without = re.sub(r"(?m)^ *\d+ out-of-mem.*\n", "", text)
    with pytest.raises(Exception, match="the table ends with 262144"):
        read("imb_alltoall", without)
    found = reading("imb_alltoallv/fail-real-time_limit")  # of -time, all sizes after it
    assert max(dict(sample.case.items)["bytes"] for sample in found.samples) == 16


# --- what stands above -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "output",
    ["imb_alltoall/good-five", "hpcg/good-benchmark_np2", "mdtest/good-shm"],
)
@pytest.mark.parametrize(
    "write", [Path.write_bytes, lambda p, raw: p.write_bytes(gzip.compress(raw))]
)
def test_an_output_is_found_below_a_line_of_each_rank(
    output: str, write: Callable[[Path, bytes], object], tmp_path: Path
) -> None:
    text = text_of(output)
    tool = output.partition("/")[0]
    assert len(PLACED) > 1 << 16
    path = tmp_path / "job.out"
    write(path, (PLACED + text).encode())
    mine = [log.reading for log in find_logs([path])[1] if log.reading.benchmark == tool]
    assert [one.samples for one in mine] == [read(tool, text).samples]


def test_settings_are_found_below_a_line_of_each_rank(tmp_path: Path) -> None:
    text = text_of("mdtest/good-shm")
    (alone,) = logs_of(tmp_path, "alone.out", text)
    (below,) = logs_of(tmp_path, "below.out", PLACED + text)
    assert alone.printed.options
    assert below.printed.options == alone.printed.options


def test_files_with_much_above_are_logs_and_no_tables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [tmp_path / "one.out", tmp_path / "two.out"]
    for path in paths:
        path.write_text(PLACED + text_of("imb_alltoall/good-five"))
    assert main(["compare", *map(str, paths)]) in (0, 3)
    assert "imb_alltoall" in capsys.readouterr().out


# --- what a script says ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "End run 1 of 20",
        "=== END RUN 1 ===",
        "Ending test",
        "0.03user 0.05system 10:51.52elapsed 0%CPU (0avgtext+0avgdata 15960maxresident)k",
        "862inputs+8outputs (2major+2800minor)pagefaults 0swaps",
    ],
)
def test_what_ends_a_run_is_no_label_of_the_next(line: str) -> None:
    said = above(["8   1.0", line, "Start run 2 of 20"], 0).labels
    assert [(one.words, one.counts) for one in said] == [("Start", "run 2 of 20")]
    assert above(["8   1.0", "Endurance node7", ""], 0).labels


def shown(line: str) -> dict[str, object]:
    return {**printed("stream", line).facts}


def test_times_since_1970_and_the_account_of_a_job_are_no_settings() -> None:
    assert not shown("Start time: 1725008049")
    assert not shown("end_time = 1725008049.25")
    assert not shown("Application 3743942 resources: utime ~245s, stime ~2s, Rss ~788524")
    assert shown("Total bytes: 1725008049")
    assert shown("Start node: 17")


def of(command: str, seed: int) -> str:
    rows = "".join(f"{8 << n:<12}{10.0 + n + seed / 100:>14.2f}\n" for n in range(4))
    return (
        f"{command}\n\n# OSU MPI Allreduce Latency Test v5.8\n# Size       Avg Latency(us)\n{rows}"
    )


@pytest.mark.parametrize("outputs", [1, 3])
def test_commands_that_differ_between_the_arms_are_not_held_equal(
    outputs: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [tmp_path / "four.log", tmp_path / "many.log"]
    for ranks, path in zip((4, 64), paths, strict=True):
        command = f"+ mpirun -np {ranks} ./osu_allreduce"
        path.write_text("".join(of(command, seed + ranks) for seed in range(outputs)))
    main(["compare", *map(str, paths)])
    said = " ".join(capsys.readouterr().out.split())
    assert "script.command: mpirun -np 4 ./osu_allreduce -> mpirun -np 64 ./osu_allreduce" in said
    assert main(["compare", *map(str, paths), "--key", "command"]) == 2
    assert "nothing to compare" in capsys.readouterr().err


def test_commands_that_both_arms_have_are_cases(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for arm, times in (("one", 0), ("two", 50)):
        (tmp_path / arm).mkdir()
        for ranks in (4, 64):
            text = of(f"$ mpirun -np {ranks} ./osu_allreduce", ranks + times)
            (tmp_path / arm / f"np{ranks}.log").write_text(text)
    main(["compare", str(tmp_path / "one"), str(tmp_path / "two")])
    said = " ".join(capsys.readouterr().out.split())
    assert "osu_allreduce (command mpirun -np 4 ./osu_allreduce)" in said
    assert "osu_allreduce (command mpirun -np 64 ./osu_allreduce)" in said


def test_a_port_of_each_launch_makes_no_case(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for arm in ("one", "two"):
        (tmp_path / arm).mkdir()
        for number in range(8):
            text = of(f"$ mpirun -np 4 --port {18511 + number} ./osu_allreduce", number)
            (tmp_path / arm / f"run{number}.log").write_text(text)
    given = ["compare", str(tmp_path / "one"), str(tmp_path / "two")]
    main(given)
    assert "osu_allreduce (" not in capsys.readouterr().out
    for path in tmp_path.glob("*/*.log"):
        path.write_text(path.read_text().replace("--port 1851", "--host node"))
    main(given)
    assert "--host node7 ./osu_allreduce)" in capsys.readouterr().out
    main([*given, "--part-of-arm", "command"])
    assert "osu_allreduce (" not in capsys.readouterr().out


# --- names of files ----------------------------------------------------------------------------


def swept(folder: Path, slow: float, sizes: tuple[int, ...]) -> Path:
    folder.mkdir()
    for nodes in sizes:
        for run in range(1, 6):
            at = slow * (1 + nodes / 8) + run / 50
            text = of("", 0).replace("10.00", f"{at:.2f}").replace("11.00", f"{at + 1:.2f}")
            text = text.replace("12.00", f"{at + 2:.2f}").replace("13.00", f"{at + 3:.2f}")
            (folder / f"allreduce-{nodes}-{run}.out").write_text(text)
    return folder


def test_files_whose_names_show_cases_are_not_pooled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arms = [swept(tmp_path / name, at, (4, 8, 16)) for name, at in (("a", 20.0), ("b", 30.0))]
    given = list(map(str, arms))
    assert main(["compare", *given]) == 3
    said = " ".join(capsys.readouterr().out.split())
    assert "(allreduce-4, allreduce-8, allreduce-16, ...) print the same settings" in said
    main(["compare", *given, "--repeated"])
    assert "repeats unclear" not in capsys.readouterr().out
    main(["compare", *given, "--by", "name"])
    said = capsys.readouterr().out
    assert "repeats unclear" not in said
    assert [f"osu_allreduce (allreduce-{nodes})" in said for nodes in (4, 8, 16)] == [True] * 3


def test_files_that_are_only_counted_are_launches(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arms = [swept(tmp_path / name, at, (8,)) for name, at in (("a", 20.0), ("b", 30.0))]
    main(["compare", *map(str, arms)])
    assert "repeats unclear" not in capsys.readouterr().out


# --- what others put before and between the lines ------------------------------------------------

TABLE = """\
[1645027038.674035] [host2:43:0]   +---------------+---------------------------+------------------+
[1645027038.674043] [host2:43:0]   | mpi ep_cfg[3] | tagged message by ucp_tag_send*() from host |
[1645027038.674047] [host2:43:0]   |       0..2007 | eager short               | rc_mlx5/mlx5_0:1 |
"""


def test_tables_of_ucx_may_stand_between_the_rows(tmp_path: Path) -> None:
    text = of("$ mpirun -n 2 ./osu_allreduce", 0)
    head, size, rows = text.partition("# Size       Avg Latency(us)\n")
    (log,) = logs_of(tmp_path, "ucx.log", TABLE + head + size + TABLE + rows)
    (alone,) = logs_of(tmp_path, "alone.log", text)
    assert log.reading.samples == alone.reading.samples


def test_outputs_that_are_refused_for_one_reason_are_reported_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hello = "# OSU MPI Hello World Test v5.8\nThis is a test with 4 processes\n"
    for name in ("one.log", "two.log"):
        (tmp_path / name).write_text("".join(of("", seed) + hello for seed in range(20)))
    main(["compare", str(tmp_path / "one.log"), str(tmp_path / "two.log")])
    said = " ".join(capsys.readouterr().out.split())
    assert said.count("OSU MPI Hello World Test v5.8") == 1
    assert re.search(r", lines \d+, \d+, \d+ and 17 more\.", said)
    assert "2 files not read" in said


BEFORE = {
    "ts": "Mar 04 10:11:{:02d} ",
    "journald": "Mar  4 10:11:{:02d} node1 bench[4711]: ",
    "GitLab": "2024-03-04T10:11:{:02d}.123456Z 01O ",
    "kubectl": "[pod/nccl-test-launcher-abc12/main] ",
    "kubectl with times": "[pod/nccl-0/main] 2024-03-04T10:11:{:02d}.123456789Z ",
    "compose": "worker-1  | ",
    "a quoted message": "> > ",
}


@pytest.mark.parametrize("before", BEFORE.values(), ids=BEFORE)
@pytest.mark.parametrize(
    "output", ["imb_alltoall/good-five", "lammps/good-lj_2ranks", "hpcg/good-benchmark_np2"]
)
def test_what_stands_before_every_line_is_no_part_of_it(
    before: str, output: str, tmp_path: Path
) -> None:
    text = text_of(output)
    lines = text.rstrip("\n").split("\n")
    tagged = "".join(f"{before.format(at % 60)}{line}\n" for at, line in enumerate(lines))
    wanted = [log.reading.samples for log in logs_of(tmp_path, "plain.out", text)]
    assert [log.reading.samples for log in logs_of(tmp_path, "tagged.out", tagged)] == wanted
    assert wanted


def test_a_mark_of_byte_order_hides_no_setting_of_the_first_line(tmp_path: Path) -> None:
    text = "# Dimensions size = 3\n" + of("", 0).lstrip("\n")
    (plain,) = logs_of(tmp_path, "plain.out", text)
    (marked,) = logs_of(tmp_path, "marked.out", "\ufeff" + text)
    assert marked.reading.parameters == plain.reading.parameters


def test_a_node_of_superbench_is_not_lost(tmp_path: Path) -> None:
    text = text_of("superbench/good-two_nodes")
    assert len(logs_of(tmp_path, "whole.out", text)) == 3
    (tmp_path / "glued.out").write_text("WARNING: slow " + text)
    _, logs, unread = find_logs([tmp_path / "glued.out"])
    assert not logs
    assert "does not begin with '{'" in unread[0].detail


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "2020-08-19T16:34:58+01:00|reframe 3.0-dev6 (rev: 3f0c45d4)|Osu_bw on a:b using c|",
            "those",
        ),
        (
            "[RESULT] BW   phase 1            ior_easy_write                9.838 GB/s : time",
            "2018",
        ),
    ],
)
def test_older_forms_are_named(line: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_text(f"{line}\n{line}\n")
    _, _, unread = find_logs([tmp_path / "old.txt"])
    assert said in unread[0].detail
    assert unread[0].detail.startswith(("reframe: ", "io500: "))
    assert not unread[0].tool  # no launch that failed
