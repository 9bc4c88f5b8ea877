"""Logs as they lie in public repositories: what makes a whole output unread, or two tests one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from log_folders import FIXTURES
from paribus.core import Reading
from paribus.logs.reading import read_files
from paribus.logs.recognise import Held
from studies import paribus

NCCL = FIXTURES / "nccl_tests"
ROW = re.compile(r"^( +\d+ +\d+ +\w+ .*?)(-1|0)( +[\d.]+ +[\d.]+)", re.M)


def read(folder: Path, text: str) -> Held:
    path = folder / "job.log"
    path.write_text(text)
    [held] = read_files([(str(path), path.stat().st_size)])
    return held


def alone(folder: Path, text: str) -> Reading:
    held = read(folder, text)
    assert not held.problems
    [log] = held.found
    return log.reading


def table(rows: list[str], devices: int = 4) -> str:
    """Return an output of nccl-tests before 2.17, which does not say of which collective it is."""
    ranks = "".join(
        f"#  Rank {n:2d} Group  0 Pid  {100 + n} on  node{n} device  0 [0x07] A100\n"
        for n in range(devices)
    )
    return (
        "# nThread 1 nGpus 1 minBytes 1048576 maxBytes 2097152 step: 2(factor)"
        " warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0\n#\n# Using devices\n"
        f"{ranks}#\n"
        "#                                 out-of-place                       in-place\n"
        "#       size         count      type   redop    root     time   algbw   busbw #wrong"
        "     time   algbw   busbw #wrong\n"
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)"
        "            (us)  (GB/s)  (GB/s)\n" + "\n".join(rows) + "\n"
        "# Out of bounds values : 0 OK\n"
    )


def rows(
    factor: float, kind: str, in_place: str, speeds: tuple[float, ...], share: float = 1.0
) -> tuple[str, float]:
    """Return rows of 1 and 2 MiB at algorithm bandwidths in GB/s, and the mean of the bus.

    `share` is how much of a size counts.
    """
    found, buses = [], 0.0
    for n, speed in enumerate(speeds):
        size = 1048576 << n
        half = f"{share * size / speed / 1e3:7.1f} {speed:7.2f} {speed * factor:7.2f}"
        found.append(f"{size:12d} {size // 4:12d} float {kind} {half} 0 {half} {in_place}")
        buses += speed * factor
    return "\n".join(found), buses / len(speeds)


def unnamed(factor: float, kind: str, in_place: str, *speeds: float) -> str:
    lines, mean = rows(factor, kind, in_place, speeds)
    return table([lines]) + f"# Avg bus bandwidth    : {mean:g}\n#\n"


@pytest.mark.parametrize(
    ("factor", "kind", "in_place", "collective"),
    [
        (1.5, "sum -1", "0", "all_reduce"),
        (0.75, "sum -1", "0", "reduce_scatter"),
        (0.75, "none -1", "N/A", "alltoall"),
        (0.75, "none -1", "0", "all_gather"),
        (1.0, "none 0", "0", "broadcast"),
        (1.0, "sum 0", "0", "reduce"),
        (1.0, "sum -1", "N/A", "sendrecv"),
    ],
)
@pytest.mark.parametrize("fast", [1.0, 100.0])
def test_a_table_of_nccl_tests_without_a_name_shows_its_collective(
    factor: float, kind: str, in_place: str, collective: str | None, fast: float, tmp_path: Path
) -> None:
    """Two collectives in a folder are two tests, also where a slow network carries them."""
    reading = alone(tmp_path, unnamed(factor, kind, in_place, 0.32 * fast, 0.44 * fast))
    assert reading.parameters.get("collective") == collective
    bus = next(s for s in reading.samples if s.metric == "bus_bandwidth")
    assert bus.values[0] == pytest.approx(0.32 * fast * factor, rel=0.02)


@pytest.mark.parametrize(
    ("name", "factor", "kind", "in_place", "share"),
    [
        ("alltoallv", 0.75, "none -1", "N/A", 1.0),
        ("all_reduce_bias", 1.5, "sum -1", "0", 1.0),
        ("hypercube", 1.0, "none -1", "0", 0.75),
    ],
)
@pytest.mark.parametrize("above", ["# Collective test starting: {}_perf", "$ ./{}_perf -g 1"])
def test_every_program_of_nccl_and_rccl_tests_is_read_with_its_version(
    name: str, factor: float, kind: str, in_place: str, share: float, above: str, tmp_path: Path
) -> None:
    """Two in one log: the title of the second, above its settings, is not the first's."""
    lines, mean = rows(factor, kind, in_place, (20.0, 40.0), share)
    own = table([lines]) + f"# Avg bus bandwidth    : {mean:g}\n#\n"
    title = "# rccl-tests version 2.17.{}-develop:ab rccl-headers=22803 rccl-library=22707\n"
    both = "".join(title.format(n) + f"{above.format(name)}\n{own}" for n in (8, 9))
    held = read(tmp_path, both)
    assert not held.problems
    assert [log.reading.version for log in held.found] == ["2.17.8-develop:ab", "2.17.9-develop:ab"]
    for log in held.found:
        assert log.reading.parameters["collective"] == name
        assert log.reading.facts["nccl.version"] == "2.27.7"
        bus = next(s for s in log.reading.samples if s.metric == "bus_bandwidth")
        assert bus.values[0] == pytest.approx(20.0 * factor, rel=0.01)


def test_a_time_of_few_digits_is_taken_from_its_bandwidth(tmp_path: Path) -> None:
    """From ten seconds on nccl-tests prints `1.0e+07`: 5 percent of it are not known."""
    size = 17179869184
    lines = f"{size} {size // 4} float sum -1 9527230 1.80 2.71 0 1.0e+07 1.69 2.54 0"
    text = table([lines]).replace("1048576", str(size)).replace("2097152", str(size))
    reading = alone(tmp_path, text + "# Avg bus bandwidth    : 2.62\n")
    times = {s.metric: s.values[0] for s in reading.samples}
    assert times["time"] == 9527230
    assert times["time_in_place"] == pytest.approx(size / 1.69 / 1e3)
    wrong = text.replace("1.0e+07", "1.2e+07") + "# Avg bus bandwidth    : 2.62\n"
    assert "are not 1.69 GB/s" in read(tmp_path, wrong).problems[0].detail


def test_a_line_that_is_written_in_pieces_has_a_tag_before_each(tmp_path: Path) -> None:
    """Open MPI 4 tags what it forwards: a program that flushes in a line tears it."""
    text = (NCCL / "good-real-2_10_alltoall.out").read_text()
    plain = alone(tmp_path, text)
    tag = "[1,0]<stdout>:"
    torn = "".join(tag + ROW.sub(rf"\1\2{tag}\3", line) for line in text.splitlines(True))
    assert torn.count(tag) > text.count("\n")
    assert alone(tmp_path, torn) == plain
    other = re.sub(rf"(?<=.){re.escape(tag)}", "[1,3]<stdout>:", torn)
    assert read(tmp_path, other).problems  # what another rank wrote into the line


NOISE = (
    "== CALIPER: (0): Registered MPI service\n",
    "MPICH Slingshot Network Summary: 3 network timeouts\n",
)


@pytest.mark.parametrize("line", NOISE)
def test_lines_of_a_library_are_no_part_of_a_table_and_name_nothing(
    line: str, tmp_path: Path
) -> None:
    text = (FIXTURES / "osu_latency" / "good-tcp.out").read_text()
    plain = alone(tmp_path, text)
    row = text.index("\n", text.index("# Size")) + 1
    assert alone(tmp_path, text[:row] + line * 3 + text[row:]) == plain
    several = read(tmp_path, text + line + text + line.replace("3", "7") + text)
    assert [log.reading for log in several.found] == [plain] * 3
    assert len({repr(log.labels) for log in several.found}) == 1


def listed_twice(text: str) -> str:
    """Return what HPL prints where HPL.dat lists each of its sizes twice."""
    rule = "=" * 80
    begin, end = text.index(f"{rule}\nT/V"), text.index(f"{rule}\n\nFinished")
    text = text[:begin] + 2 * text[begin:end] + text[end:]
    text = re.sub(r"(?m)^N +: +(\d.*)$", r"\g<0> \1", text)
    counts = r"(?<=Finished) +(\d+)|(\d+)(?= tests completed and passed)"
    return re.sub(counts, lambda one: f" {2 * int(one[1] or one[2])}", text)


def test_a_system_of_hpl_that_is_listed_twice_is_solved_twice(tmp_path: Path) -> None:
    text = (FIXTURES / "hpl" / "good-multi_np2.out").read_text()
    once = alone(tmp_path, text)
    twice = alone(tmp_path, listed_twice(text))
    assert [s.case for s in twice.samples] == [s.case for s in once.samples]
    assert [s.values for s in twice.samples] == [(*s.values, *s.values) for s in once.samples]
    short = read(tmp_path, re.sub(r"(?m)^(N +: +(\d+))", r"\1 \2", text))
    assert "not as many rows" in short.problems[0].detail


def test_a_run_of_lammps_without_its_figures_is_a_warm_up(tmp_path: Path) -> None:
    """`run 50 post no` prints the line of the loop and nothing of its speed."""
    text = (FIXTURES / "lammps" / "good-lj_2ranks.out").read_text()
    plain = alone(tmp_path, text)
    begin, end = text.index("Per MPI rank memory"), text.index("\n", text.index("Loop time of")) + 1
    warm = re.sub(r"Loop time of \S+", "Loop time of 0.0123", text[begin:end])
    assert alone(tmp_path, text[:begin] + warm + "\n" + text[begin:]) == plain
    cut = read(tmp_path, text[:begin] + text[begin:end] + text[text.index("Total wall time") :])
    assert "'Performance:' is missing" in cut.problems[0].detail


@pytest.mark.parametrize(
    ("first", "said"),
    [
        ("Server listening on 5201 (test #1)", "the client's is read"),
        ("Client connecting to 10.0.0.2, TCP port 5001", "iperf 2 is not read"),
        ("Server listening on TCP port 5001", "iperf 2 is not read"),
        ("[ReFrame Setup]\n  version:           4.10.4", "--report-file=FILE, or the perflogs"),
        ("From Workspace: ws (hash: 64ac0ff9)", "give the folder experiments of the workspace"),
        ("workspace_hash: 64ac0ff9\nworkspace_name: ws", "give the folder experiments"),
        ('{\n  "workspace_hash": "64ac0ff9",', "give the folder experiments"),
        (':::MLLOG {"namespace": "", "key": "run_start"}', "run_start to run_stop make a table"),
        ('  "average_bus_bandwidth": {"bandwidth": 45.4},', "JSON (-J) is not read"),
    ],
)
def test_the_other_side_of_a_network_and_summaries_are_no_launch_that_failed(
    first: str, said: str, tmp_path: Path
) -> None:
    rule = "-" * 60
    row = "[  5]   0.00-1.00   sec  7.29 GBytes  62.6 Gbits/sec"
    held = read(tmp_path, f"{rule}\n{first}\n{rule}\n[ ID] Interval   Transfer   Bitrate\n{row}\n")
    [problem] = held.problems
    assert said in problem.detail
    assert not problem.tool
    good = (FIXTURES / "iperf3" / "good-both-streams-text.out").read_text()
    cut = good.replace("iperf Done.", "")
    for name, text in (("a", (tmp_path / "job.log").read_text()), ("b", cut)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "out.txt").write_text(text)
    refused = paribus("compare", "a", "b", cwd=tmp_path, code=2).stderr
    assert "2 files not read" in refused
    assert "a/out.txt" in refused


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("...........\nMean +- std dev: 917 us +- 86 us\n", "-o FILE"),
        ("  Time (mean ± σ):     101.3 ms ±   0.4 ms    [User: 0.7 ms]\n", "--export-json"),
        ("Name (time in us)     Min       Max      Mean   StdDev\n", "--benchmark-json"),
        ("Benchmark           Time             CPU   Iterations\n", "--benchmark_out"),
    ],
)
def test_the_text_of_a_harness_names_the_file_that_is_read(
    text: str, said: str, tmp_path: Path
) -> None:
    [problem] = read(tmp_path, f"started\n{text}").problems
    assert said in problem.detail
    assert (problem.line, problem.tool) == (2 + text.startswith("..."), "")


EPILOGUE = (
    """Selecting previously unselected package libjq1:amd64.
Preparing to unpack .../libjq1_1.6_amd64.deb ...
Setting up jq (1.6-2.1) ...
"""
    + 'JOB START 1170\nresources {"count": 4}\n' * 90
)


def test_what_opens_and_closes_each_launch_parts_no_launches(tmp_path: Path) -> None:
    """`JOB START` above each and `JOB END` below: the first has no `JOB END` above it."""
    text = (FIXTURES / "osu_latency" / "good-tcp.out").read_text()
    launches = (
        f"The cgroup id is {13954 + 77 * n}\nFLUX-RUN START osu-iter-{n}\n{text}"
        f"FLUX-RUN END osu-iter-{n}\n"
        for n in range(5)
    )
    held = read(tmp_path, "".join(launches) + EPILOGUE)
    assert len(held.found) == 5
    assert {repr(log.labels) for log in held.found} == {"{'words': 'FLUX-RUN START osu'}"}


def test_outputs_below_the_names_of_other_hosts_say_how_they_are_compared(tmp_path: Path) -> None:
    """One iperf3 for each pair of nodes, below the name of each, in two clusters."""
    text = (FIXTURES / "iperf3" / "good-tcp-text.out").read_text()
    for arm, hosts in (("a", ("node1", "node2")), ("b", ("gpu5", "gpu6"))):
        (tmp_path / f"{arm}.log").write_text("".join(f"{one}\n{text}\n" for one in hosts))
    refused = paribus("compare", "a.log", "b.log", cwd=tmp_path, code=2).stderr
    assert "names of hosts: --repeated, or --by place" in " ".join(refused.split())
    shown = paribus("compare", "a.log", "b.log", "--by", "place", cwd=tmp_path, code=3).stdout
    assert "iperf3 (place 1)" in shown


def test_what_stands_below_the_last_of_several_is_no_setting_of_it(tmp_path: Path) -> None:
    text = (FIXTURES / "hpl" / "good-multi_np2.out").read_text()
    held = read(tmp_path, text * 3 + EPILOGUE)
    assert len(held.found) == 3
    assert len({repr(log.printed) for log in held.found}) == 1


def test_what_a_page_says_of_a_table_of_babelstream_is_no_row(tmp_path: Path) -> None:
    text = (FIXTURES / "babelstream" / "good-real-v4_cuda.out").read_text()
    prose = "```\n\nThe figures\n\nCopy : 91018.241\nTriad : 93484.396\n"
    assert alone(tmp_path, text + prose) == alone(tmp_path, text)
    row = text.strip().split("\n")[-1]
    [problem] = read(tmp_path, f"{text}{prose}{row}\n").problems
    assert "after the table" in problem.detail


def test_the_release_of_a_vendors_hpl_is_part_of_its_version(tmp_path: Path) -> None:
    """Two of them in a log: each has the title above it. Both are HPLinpack 2.1."""
    old = (FIXTURES / "hpl" / "good-real-nvidia_1_0.out").read_text()
    new = (FIXTURES / "hpl" / "good-handmade-nvidia_per_gpu.out").read_text()
    amd = (FIXTURES / "hpl" / "good-real-amd_zen.out").read_text()
    held = read(tmp_path, old + new + amd)
    assert not held.problems
    assert [log.reading.version for log in held.found] == [
        "2.1 (HPL-NVIDIA 1.0.0)",
        "2.1 (HPL-NVIDIA 24.9.0)",
        "2.3 (AMD Zen HPL 2024_10_08)",
    ]


def test_a_table_of_rccl_tests_in_place_alone_is_named_as_such(tmp_path: Path) -> None:
    """-O 0: "the program ended before its table" was not true."""
    half = table(["1048576 262144 float sum -1 60.0 17.48 26.21 0"])
    half = half.replace("     out-of-place                  ", "").replace(
        " #wrong     time   algbw   busbw #wrong", " #wrong"
    )
    [problem] = read(tmp_path, half + "# Avg bus bandwidth    : 26.21\n").problems
    assert "without columns out of place" in problem.detail
    cut = half[: half.index("#      ")]
    assert "ended before its table" in read(tmp_path, cut).problems[0].detail


LINE = "+--------------+--------------+----------+---------+---------+----------+----------+\n"
UCX = (
    LINE
    + "|              |              |       {} (usec)        |   bandwidth (MB/s)  |"
    + "  message rate (msg/s) |\n"
    + LINE
    + "|    Stage     | # iterations | 50.0%ile | average | overall |  average |  overall |"
    + "  average  |  overall  |\n"
    + LINE
)
PART = "[thread {}]   500000   0.300   1.000   1.000    7.63    7.63  1000000  1000000\n"


@pytest.mark.parametrize(
    ("latency", "rate", "threads"), [(1.0, 2000000, 2), (1.25, 3500000, 4), (4.0, 1000000, 4)]
)
@pytest.mark.parametrize("kind", [" latency", "overhead"])
def test_several_threads_of_ucx_perftest_are_another_benchmark(
    kind: str, latency: float, rate: int, threads: int, tmp_path: Path
) -> None:
    """-T: the last line has four figures, the mean latency, and the sums of the rates."""
    final = f"Final:        1000000     {latency:.3f}    {rate * 8 / 2**20:.2f}    {rate}\n"
    parts = "".join(map(PART.format, range(threads)))
    texts = [UCX.format(kind) + several + final for several in (parts, "")]
    for reading in [alone(tmp_path, text) for text in texts]:
        assert reading.parameters == {"iterations": 1000000, "threads": threads}
        values = {one.metric: one.values[0] for one in reading.samples}
        if kind == "overhead":
            assert values == {"bandwidth": round(rate * 8 / 2**20, 2), "message_rate": rate}
        else:
            assert values == {"latency": latency}
    wrong = texts[0].replace(str(rate), str(rate // 2))
    assert "us each" in read(tmp_path, wrong).problems[0].detail
    cut = texts[0][: texts[0].rindex(str(rate))] + "\n"
    assert read(tmp_path, cut).problems


def test_counts_of_ucx_perftest_may_have_separators(tmp_path: Path) -> None:
    """-N, in the locale en_US."""
    last = "Final:        1000000      0.300     1.000     1.000        7.63       7.63"
    plain = f"{UCX.format('overhead')}{last}      1000000      1000000\n"
    counted = plain.replace("1000000", "1,000,000")
    assert alone(tmp_path, counted) == alone(tmp_path, plain)
    for cut in (last, f"{last}      1000000"):  # without one or both rates
        assert read(tmp_path, f"{UCX.format('overhead')}{cut}\n").problems


@pytest.mark.parametrize("device", ["CUDA MANAGED", "MANAGED", "CXL"])
def test_titles_of_osu_name_every_device(device: str, tmp_path: Path) -> None:
    """-d managed of a blocking collective, and -d cxl, were "not read"."""
    text = (FIXTURES / "osu_allreduce" / "good-full_shm.out").read_text()
    reading = alone(tmp_path, text.replace("OSU MPI", f"OSU MPI-{device}"))
    assert reading.parameters["device"] == device.rpartition(" ")[2]


def test_where_the_windows_of_osu_lie_is_a_setting(tmp_path: Path) -> None:
    """The line of one-sided programs; that of the others was read."""
    text = (FIXTURES / "osu_get_latency" / "good-v58.out").read_text()
    line = "# Rank 0 Memory on DEVICE (D) and Rank 1 Memory on MANAGED (M)\n# Size"
    reading = alone(tmp_path, text.replace("# Size", line))
    assert reading.parameters["buffers"] == "DEVICE MANAGED"


def test_sizes_of_imb_may_be_a_list(tmp_path: Path) -> None:
    """-msgsize of newer versions: it says which points are measured, not how."""
    text = (FIXTURES / "imb_pingpong" / "good-msglen.out").read_text()
    asked = text.replace("-msglen lens", "-msgsize 8,4096,100")
    assert alone(tmp_path, asked) == alone(tmp_path, text)


def test_imb_between_memories_of_gpus_is_another_benchmark(tmp_path: Path) -> None:
    """IMB-MPI1-GPU: "title and last line are missing" was not true."""
    text = (FIXTURES / "imb_pingpong" / "good-five.out").read_text()
    for title, options in (("part (GPU)", "(GPU)"), ("part", None)):
        held = read(tmp_path, text.replace("MPI-1 part", f"MPI-1 {title}"))
        assert not held.problems
        assert {log.reading.parameters.get("options") for log in held.found} == {options}
