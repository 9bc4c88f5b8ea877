"""Several outputs in one file are read as if each were alone, whatever stands between their lines.

What was found adds up: every title is that of an output that was read, or refused with its tool.
"""

from __future__ import annotations

import gzip
import html
import random
import re
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import pytest

from paribus.benchmarks import BENCHMARKS
from paribus.logs import recognise
from paribus.logs.divide import divided, titles
from paribus.logs.labels import COMMAND, Label
from paribus.logs.logs import find_logs
from paribus.logs.reading import is_log, read_files
from paribus.logs.recognise import Held, readings
from paribus.logs.repeats import by_case
from paribus.readers.known import every
from paribus.readers.text import plain

FIXTURES = Path(__file__).parent / "fixtures"
GOOD = [path for name in every() for path in sorted((FIXTURES / name).glob("good-*.out"))]
LIBRARIES = (
    "[1741244344.655540] [node0:1963139:0]    perftest.c:800  UCX  WARN  CPU affinity is not set\n",
    "node0:880:880 [0] NCCL INFO Bootstrap : Using eth0:172.17.0.2<0>\n",
    "[node0:598920] 3 more processes have sent help message help-mpi-btl-openib.txt / no device\n",
    "libibverbs: Warning: couldn't load driver 'libmlx5-rdmav34.so'\n",
    f"{'-' * 74}\nWARNING: No InfiniBand device.\n\n  Local host: node0\n{'-' * 74}\n",
)
BETWEEN = (
    "",
    "\n\n",
    "$ ./measure again\n",
    "node17\nThu Nov 26 23:05:47 UTC 2026\n",
    "=== run 3 ===\n",
    "+ srun -n 2 ./program\n",
    "\nreal\t0m3.2s\nuser\t0m1.0s\nsys\t0m0.1s\n",
    "export CUDA_VISIBLE_DEVICES=0,1\n",
)
TRIES = 1600

Sample = Callable[..., list[int]]


@cache
def text_of(path: Path) -> str:
    text = plain(path.read_text())
    return text if text.endswith("\n") else f"{text}\n"


@cache
def alone(path: Path) -> Held:
    return readings(text_of(path))


def said(held: Held) -> list[object]:
    """Return what is read of a text: not which output of it, nor what warns of a library's line."""
    found = [(one.reading, one.date, one.metrics, one.within) for one in held.found]
    return [
        (r.benchmark, r.version, r.parameters, r.ranks, r.samples, r.facts, *rest)
        for r, *rest in found
    ]


def with_libraries(text: str, rng: random.Random) -> str:
    """Return a text with lines of libraries between some of its lines."""
    lines = text.splitlines(keepends=True)
    return "".join(line + (rng.choice(LIBRARIES) if rng.random() < 0.15 else "") for line in lines)


def drawn(rng: random.Random, most: int = 6) -> list[Path]:
    """Return two outputs or more of any tools in any order; some logs repeat one."""
    paths = [rng.choice(GOOD) for _ in range(rng.randint(2, most))]
    return paths[:1] * len(paths) if rng.random() < 0.3 else paths


def test_outputs_of_one_file_say_what_each_says_alone(sample: Sample) -> None:
    for seed in sample(range(TRIES)):
        rng = random.Random(seed)
        paths, noisy = drawn(rng), rng.random() < 0.5
        text = ""
        for path in paths:
            own = with_libraries(text_of(path), rng) if noisy else text_of(path)
            text += rng.choice(BETWEEN) + own
        held = readings(text)
        assert said(held) == [one for path in paths for one in said(alone(path))], (seed, paths)
        assert held.outputs == sum(alone(path).outputs for path in paths), seed
        assert held.read == sum(alone(path).read for path in paths), seed


def test_one_that_was_cut_costs_only_itself_and_is_named(sample: Sample) -> None:
    for seed in sample(range(TRIES)):
        rng = random.Random(seed)
        before, cut, after = (rng.choice(GOOD) for _ in range(3))
        lines = text_of(cut).splitlines(keepends=True)
        short = "".join(lines[: rng.randint(1, len(lines))])
        begun = [title for title in titles(short) if title.tools]
        if not begun:
            continue  # it was cut before its title
        between = rng.choice(BETWEEN)
        held = readings(f"{text_of(before)}{between}{short}{between}{text_of(after)}")
        found, first, last = said(held), said(alone(before)), said(alone(after))
        assert found[: len(first)] == first, (seed, before, cut, after)
        assert found[len(found) - len(last) :] == last, (seed, before, cut, after)
        named = [problem for problem in held.problems if problem.tool in begun[-1].tools]
        assert named or len(found) > len(first) + len(last), (seed, before, cut, after)
        assert held.outputs >= alone(before).outputs + alone(after).outputs + 1


def each_line(text: str, form: Callable[[str], str]) -> str:
    return "".join(map(form, text.splitlines(keepends=True)))


FORMS: dict[str, Callable[[str], str]] = {
    "a list in a page": lambda text: each_line(text, lambda li: f"    {li}" if li.strip() else li),
    "a tab": lambda text: each_line(text, lambda li: f"\t{li}" if li.strip() else li),
    "srun -l": lambda text: each_line(text, lambda li: f"0: {li}"),
    "mpirun --tag-output": lambda text: each_line(text, lambda li: f"[1,0]<stdout>:{li}"),
    "GitHub Actions": lambda text: each_line(text, lambda li: f"2026-11-26T23:05:47.1234567Z {li}"),
    "ts": lambda text: each_line(text, lambda li: f"[2026-11-26 23:05:47] {li}"),
    "Jenkins": lambda text: each_line(text, lambda li: f"23:05:47  {li}"),
    "a terminal": lambda text: text.replace("\n", "\r\n"),
    "colours": lambda text: each_line(text, lambda li: f"\x1b[32m{li[:-1]}\x1b[0m\n"),
    "a progress bar": lambda text: each_line(
        text, lambda li: f" 10 %\r 100 %\r{li}" if li.strip() else li
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_what_is_put_before_every_line_changes_nothing(form: str, sample: Sample) -> None:
    for place in sample(range(len(GOOD))):
        path, other = GOOD[place], GOOD[place - 1]
        one = readings(plain(FORMS[form](text_of(path))))
        assert said(one) == said(alone(path)), path
        both = readings(plain(FORMS[form](text_of(path) + text_of(other))))
        assert said(both) == said(alone(path)) + said(alone(other)), (path, other)


COPIES: dict[str, Callable[[int, str], str]] = {
    "cat -n": lambda n, li: f"{n:6}\t{li}",
    "a copy with numbers of lines": lambda n, li: f"{n:4} {li}",
    "ts -s": lambda n, li: f"{n / 10:.6f} {li}",
    "seconds since the epoch": lambda n, li: f"{1795238066 + n} {li}",
    "stern": lambda n, li: f"nccl-launcher-x7k2p launcher {li}",
    "the log of a container": lambda n, li: f"2026-11-26T23:05:{n % 60:02}.12Z stdout F {li}",
    "Ray": lambda n, li: f"(Worker pid=1234, ip=10.0.0.1) {li}",
    "a diff": lambda n, li: f"+{li}",
    "a comment": lambda n, li: f"# {li}",
    "pdsh": lambda n, li: f"node0: {li}",
    "a logger": lambda n, li: f"2026-11-26 23:05:{n % 60:02},123 - INFO - {li}",
    "glog": lambda n, li: f"I1126 23:05:{n % 60:02}.123456 1234 run.cc:{n}] {li}",
    "a page, blanks kept": lambda n, li: li.replace(" ", "\xa0"),
    "the source of a page": lambda n, li: html.escape(li),
    "colours without their escape": lambda _, li: f"[32m{li.rstrip()}[0m\n",
    "colours of cat -v": lambda _, li: f"^[[1;32m{li.rstrip()}^[[0m\n",
    "a block of YAML": lambda n, li: f"stdout: |-\n    {li}" if n == 1 else f"    {li}",
}


@pytest.mark.parametrize("form", COPIES)
def test_a_copy_says_what_the_output_says(form: str, tmp_path: Path, sample: Sample) -> None:
    """Whatever a program, a page or an editor put before each line, of any tool."""
    copied, log = COPIES[form], tmp_path / "log"
    for place in sample(range(len(GOOD))):
        whole = GOOD[place].read_text()
        lines = whole.splitlines(keepends=True)
        if len(lines) < 8 or "<?xml" in whole or "<stdout>" in whole:
            continue  # too few to show a form; an XML of these blanks is no XML
        said_of = []
        for text in (whole, "".join(copied(n, line) for n, line in enumerate(lines, 1))):
            log.write_text(text)
            said_of.append(said(next(read_files([(str(log), log.stat().st_size)]))))
        assert said_of[0] == said_of[1] != [], GOOD[place]


def test_a_refusal_names_the_line_of_the_file() -> None:
    good = text_of(FIXTURES / "osu_latency" / "good-shm.out")
    damaged = good.replace("4096  ", "4096 x", 1)
    (problem,) = readings(damaged).problems
    line = problem.line
    assert line > damaged[: damaged.index("4096 x")].count("\n")
    for above in ("", "".join(LIBRARIES), good, good + LIBRARIES[0]):
        for noise in ("", LIBRARIES[1]):
            head, _, rest = damaged.partition("# Size")
            (problem,) = readings(f"{above}{head}{noise}# Size{rest}").problems
            expected = line + above.count("\n") + noise.count("\n")
            assert problem.line == expected, (problem.detail, above, noise)


def test_a_program_that_is_not_read_ends_the_output_before_it(tmp_path: Path) -> None:
    good = text_of(FIXTURES / "osu_latency" / "good-shm.out")
    other = good.replace("MPI Latency Test", "MPI Reduce_local Latency Test")
    held = readings(good + other + good)
    assert (held.outputs, held.read) == (3, 2)
    assert said(held) == 2 * said(readings(good))
    (problem,) = held.problems
    assert "MPI Reduce_local Latency Test" in problem.detail
    assert problem.code == "refused"


def test_several_rows_below_one_title_of_netperf_are_as_many_launches() -> None:
    text = text_of(FIXTURES / "netperf" / "good-stream.out")
    row = text.splitlines(keepends=True)[-1]
    (one,) = readings(text).found
    held = readings(text + row + "\n" + row)
    assert (held.outputs, held.read) == (3, 3)
    assert [found.reading.samples for found in held.found] == 3 * [one.reading.samples]
    damaged = readings(text + row.replace(".", "") + row)
    assert (damaged.outputs, damaged.read) == (3, 2)
    assert damaged.problems[0].tool == "netperf"


@pytest.mark.parametrize("above", ["", "a line\n" * 20])
def test_a_launch_below_the_title_of_another_fails_by_itself(above: str) -> None:
    text = text_of(FIXTURES / "netperf" / "good-stream.out")
    row = text.splitlines(keepends=True)[-1]
    killed = "srun: error: node1: task 0: Killed\n"
    for place in range(3):
        rows = [row, row, row]
        rows[place] += killed
        held = readings(above + text.removesuffix(row) + "".join(rows))
        assert (held.outputs, held.read) == (3, 2)
        (problem,) = held.problems
        assert (problem.code, problem.output) == ("refused", place + 1)
        assert problem.line == (above + text).count("\n") + place + 1


def test_a_part_that_is_too_long_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    good = text_of(FIXTURES / "osu_latency" / "good-shm.out")
    long = text_of(FIXTURES / "lammps" / "good-lj_1rank.out")
    monkeypatch.setattr(recognise, "MOST_CUT", len(good) + 10)
    held = readings(good + long + good)
    assert said(held) == 2 * said(readings(good))
    assert "an output of more than" in held.problems[0].detail
    assert held.problems[0].tool == "lammps"
    assert readings(long).found  # one that is alone is read


def test_a_compressed_log_is_read(tmp_path: Path) -> None:
    path = FIXTURES / "osu_latency" / "good-shm.out"
    for arm in ("a", "b"):
        (tmp_path / arm).mkdir()
        (tmp_path / arm / "osu.log.gz").write_bytes(
            gzip.compress(path.read_bytes() * 2) + gzip.compress(path.read_bytes())
        )
    _, logs, unread = find_logs([tmp_path / "a", tmp_path / "b"])
    assert [log.reading.samples for log in logs] == 6 * [
        readings(text_of(path)).found[0].reading.samples
    ]
    assert unread == []
    bomb = gzip.compress(bytes(80 << 20))
    (tmp_path / "a" / "zeros.gz").write_bytes(bomb)
    (tmp_path / "a" / "short.gz").write_bytes(gzip.compress(path.read_bytes())[:-20])
    _, logs, unread = find_logs([tmp_path / "a", tmp_path / "b"])
    assert len(logs) == 6
    assert len(unread) == 2


def labels_of(lines: Sequence[str]) -> list[dict[str, str]]:
    """Return the labels of outputs with these lines above them."""
    good = text_of(FIXTURES / "osu_latency" / "good-shm.out")
    held = readings("".join(f"{line}\n{good}" for line in lines))
    assert held.read == len(lines)
    return [dict(found.labels) for found in held.found]


@pytest.mark.parametrize(
    "form",
    [
        "$ mpirun -np 2 osu_latency -d {}",
        "user@node:~/omb$ srun osu_latency {}",
        "root@node:~# osu_latency -d {}",
        "+ mpirun -np 2 osu_latency -d {}",
        "mpirun -np 2 ./osu_latency D {}",
        "export DEVICE={}",
        "DEVICE={} PORT=1",
        "=== device {} ===",
        "--- {} ---",
        "[device {}]",
        "Device: {}",
        "on {}",
        "{}",
        "# device {}",
        "#device={}",
        "############\n# device: {}   #\n# date: Mon Nov 30 00:41:51 UTC 2026\n############",
        "Currently Loaded Modules:\n  1) zlib/1.2.13   2) {} (H)\n",
        "Loading {}\n  Loading requirement: zlib\n\nCurrently Loaded Modulefiles:\n 1) zlib ",
    ],
)
def test_a_line_above_an_output_says_what_it_is_of(form: str) -> None:
    found = labels_of([form.format(one) for one in ("mlx5_0", "mlx5_1")])
    assert len({tuple(one.items()) for one in found}) == 2, found
    assert all(COMMAND in one for one in found) == ("osu_latency" in form)


CLOSINGS = (
    "done\n",
    "run 3 finished\n",
    "Finished at Thu Nov 26 23:05:47 UTC 2026\n",
    "=== all tests passed ===\n",
    "Exit code: 0\n",
    "Job completed successfully.\n",
    "node0:~ $\n",
    "user@node0:~/bench$\n",
    "2026-11-26 23:05:47\n",
    "\nreal\t0m3.2s\nuser\t0m1.0s\nsys\t0m0.1s\n",
    "",
)


def named_in(text: str) -> list[tuple[Label, ...]]:
    """Return the labels of each output, but for commands: what is echoed is of what follows."""
    return [
        tuple(one for one in part.labels if one.form != COMMAND) for part in divided(plain(text))
    ]


def test_what_an_output_ends_with_is_no_label_of_the_next(sample: Sample) -> None:
    """Of all fixtures, any two at once, with what scripts and shells say after the first."""
    draw = random.Random(5)
    assert len(GOOD) > 400
    others = [GOOD[at] for at in sample(range(len(GOOD)))]
    for first in GOOD:
        second, closing = draw.choice(others), draw.choice(CLOSINGS)
        mine, theirs = named_in(text_of(first)), named_in(text_of(second))
        if not theirs:
            continue
        joined = named_in(f"{text_of(first)}{closing}{text_of(second)}")
        assert len(joined) == len(mine) + len(theirs)
        assert joined[len(mine) :] == theirs, (first, closing, second)


def test_what_stands_below_the_last_output_names_none() -> None:
    """A line that no list has: it closes each output, so it is no heading of the second."""
    output = text_of(FIXTURES / "osu_latency" / "good-tcp.out")
    assert named_in(f"{output}our harness says goodnight\n" * 2) == [(), ()]
    (lustre,), (nfs,) = named_in(f"lustre\n{output}good night\nnfs\n{output}good night\n")
    assert (lustre.words, nfs.words) == ("lustre", "nfs")


@pytest.mark.parametrize(
    "form",
    [
        "=== run {} ===",
        "iteration {}",
        "--- Trial #{} of 10 ---",
        "Thu Nov 2{} 23:05:47 UTC 2026",
        "2026-11-2{}T23:05:47+01:00",
        "Submitted batch job 8812{}",
        "$ ./run.sh --seed={}",
        "+ mpirun -np 2 osu_latency > out/{}.log",
        "i={}",
        "real\t0m1.{}s",
    ],
)
def test_what_only_counts_and_dates_is_no_label(form: str) -> None:
    found = labels_of([form.format(one) for one in (3, 4)])
    assert len({tuple(one.items()) for one in found}) == 1, found


@pytest.mark.parametrize("tool", ["osu_latency/good-shm.out", "iperf3/good-tcp-text.out"])
@pytest.mark.parametrize("above", ["# streams: {}", "Loaded:\n  1) gcc/{}", "+ cd {}\n+ ls"])
def test_what_a_script_says_of_the_next_output_is_no_setting_of_the_one_before(
    above: str, tool: str
) -> None:
    good = text_of(FIXTURES / tool)
    (alone,) = readings(good).found
    several = readings("".join(f"{above.format(n)}\n{good}" for n in (1, 2, 3))).found
    assert [log.printed for log in several] == [alone.printed] * 3


def test_what_a_shell_does_first_makes_no_case_of_the_first_launch() -> None:
    good = text_of(FIXTURES / "osu_latency" / "good-shm.out")
    run = f"+ mpirun -np 2 osu_latency\n{good}"
    logs = by_case(readings(f"+ cd /tmp\n+ module load openmpi/5\n{run}{run}").found)
    assert len({log.test for log in logs}) == 1
    text = f"{run}+ module load openmpi/5\n{run}{run}+ module load mpich\n{run}{run}"
    logs = by_case(readings(text).found)
    of = ("module load openmpi/5", "module load mpich")
    assert [log.reading.parameters["label"] for log in logs[1:]] == [of[0], of[0], of[1], of[1]]


def test_an_output_that_is_indented_as_in_a_page_has_its_title_where_it_is() -> None:
    good = text_of(FIXTURES / "osu_latency" / "good-shm.out").strip()
    indented = good.replace("\n", "\n        ")
    text = "        A line of the page.\n" * 99 + f"\n        {indented}\n"
    (one,) = divided(text)
    assert one.text[one.at :].startswith("# OSU MPI")
    assert one.title_line == 101
    held = readings(text)
    assert (len(held.found), held.problems) == (1, [])


def test_lines_of_other_text_between_outputs_are_of_no_output() -> None:
    good = text_of(FIXTURES / "osu_latency" / "good-shm.out")
    text = f"Loading modules\n{good}\nDone.\nnode3\n{good}"
    first, second = divided(text)
    assert second.text == good.lstrip("\n")
    assert second.line(1) == text[: text.rindex("# OSU")].count("\n") + 1
    assert "Loading" not in first.text


@pytest.mark.parametrize("name", sorted(BENCHMARKS))
def test_every_reader_says_how_its_outputs_begin(name: str) -> None:
    if BENCHMARKS[name].read is not None and name in every():
        assert every()[name].heads


def test_a_launch_that_failed_before_its_title_costs_only_itself() -> None:
    good = text_of(FIXTURES / "osu_latency" / "good-shm.out")
    failed = "There are not enough slots available in the system\n"
    for text, expected in (
        (f"$ mpirun osu\n{good}$ mpirun osu\n{failed}$ mpirun osu\n{good}", (2, 1)),
        (f"$ mpirun osu\n{failed}$ mpirun osu\n{good}", (1, 1)),
        (f"+ mpirun osu\n{good}+ mpirun osu\n{failed}", (1, 1)),
        (f"{good}{failed}{good}", (2, 1)),  # what was not started printed nothing
    ):
        held = readings(text)
        assert said(held) == expected[0] * said(readings(good)), text
        lost = [one for one in held.problems if one.code == "launch_failed"]
        assert len(lost) == expected[1]
        assert all(one.detail == failed.strip() for one in lost)


@pytest.mark.parametrize(
    "piece",
    [
        "# OSU MPI Latency Test v7.4\n",
        '{\n"fio version" : 1\n',
        '    {\n"fio version" : 1\n# OSU MPI Latency Test v7.4\n',
        "tcp_lat:\n    latency  =  1 us\n",
        "Epoch: [0][1/9] x\n",
        "DLL 1 2 - PARAMETER x\n",
        f"{'-' * 74}\nA\n",
        "n:1:2 [0] NCCL INFO x\n# OSU MPI Latency Test v7.4\n",
        "$ mpirun a\nSegmentation fault\n# OSU MPI Latency Test v7.4\n",
        "=== a ===\nb: c\nd=1\n# OSU MPI Latency Test v7.4\n",
    ],
)
def test_many_titles_take_no_longer_each_than_few(piece: str) -> None:
    def taken(times: int) -> float:
        text, begun = piece * times, time.process_time()
        divided(text)
        return time.process_time() - begun

    taken(100)
    assert min(taken(16_000) for _ in range(2)) < 20 * min(taken(2_000) for _ in range(3)) + 0.05


@pytest.mark.parametrize("prompt", ["$ ", "user@node:~$ ls\n", "[user@node ~]$ ./other &\n", "$\n"])
def test_a_prompt_between_two_lines_of_an_output_is_no_part_of_it(prompt: str) -> None:
    good = text_of(FIXTURES / "osu_latency" / "good-shm.out")
    lines = good.splitlines(keepends=True)
    prompt = prompt if prompt.endswith("\n") else f"{prompt}echo\n"
    for place in range(2, len(lines)):
        text = "".join([*lines[:place], prompt, *lines[place:]])
        assert said(readings(text)) == said(readings(good)), place
        assert said(readings(text + text)) == 2 * said(readings(good)), place


def test_the_output_of_an_unknown_program_costs_nobody_anything() -> None:
    good = text_of(FIXTURES / "osu_latency" / "good-shm.out")
    other = "$ ./unknown 1 2\n1 2.50\n2 3.50\n"
    for text, times in ((good + other, 1), (other + good, 1), (good + other + good + other, 2)):
        held = readings(text)
        assert said(held) == times * said(readings(good))
        assert held.problems == []


def test_a_label_between_rows_of_netperf_is_of_the_next() -> None:
    text = text_of(FIXTURES / "netperf" / "good-stream.out")
    row = text.splitlines(keepends=True)[-1]
    held = readings(f"$ netperf -H a\n{text}$ netperf -P 0 -H b\n{row}")
    assert [dict(one.labels) for one in held.found] == [
        {"command": "netperf -H a"},
        {"command": "netperf -P 0 -H b"},
    ]


def test_the_command_above_an_output_is_its_own() -> None:
    good = text_of(FIXTURES / "osu_latency" / "good-shm.out")
    text = "".join(f"=== run {n} ===\n$ export A={n}\n$ osu_latency -x {n}\n{good}" for n in "12")
    first, second = divided(text)
    for number, part in enumerate((first, second), 1):
        lines = part.text.splitlines()
        assert lines[:2] == [f"$ export A={number}", f"$ osu_latency -x {number}"]
        assert lines[-1] == good.splitlines()[-1]


def test_qperf_behind_a_blank_that_a_program_puts_before_it() -> None:
    """As oec-hardware prints it: the first line alone has the blank."""
    text = (
        "[2024-05-11 19:30:32,915][INFO] The command is: qperf 192.168.0.102 udp_lat.\n"
        "[2024-05-11 19:30:34,960][INFO] Execute command qperf 192.168.0.102 udp_lat succeed.\n"
        " udp_lat:\n    latency  =  {} ms\n\n"
    )
    held = readings(plain(text.format("5.39") + text.format("5.63")))
    assert [one.reading.samples[0].values[0] for one in held.found] == pytest.approx([5390, 5630])
    assert not held.problems


def test_a_unit_behind_the_average_of_nccl_tests_is_harmless() -> None:
    text = plain((FIXTURES / "nccl_tests" / "good-real-2_10_alltoall.out").read_text())
    with_unit = re.sub(r"(?m)^(# Avg bus bandwidth +: \S+) *$", r"\1 GB/s", text)
    assert with_unit != text
    assert repr(readings(with_unit).found) == repr(readings(text).found)


@pytest.mark.parametrize(
    "begin",
    [
        *("INFO:root:", "2026-11-30 01:02:03,123 - bench - INFO - ", "node01: ", "osu\tRun it\t"),
        "(Worker pid=1) ",
    ],
)
def test_what_stands_before_all_lines_hides_no_output(begin: str, tmp_path: Path) -> None:
    text = text_of(FIXTURES / "osu_latency" / "good-shm.out")
    lines = "".join(f"{begin}{line}\n" for line in f"size 1\n{text}size 2\n{text}".split("\n"))
    path = tmp_path / "x.log"
    path.write_text(lines)
    (held,) = read_files([(str(path), path.stat().st_size)])
    assert [one.labels["words"] for one in held.found] == ["size 1", "size 2"]
    assert [one.reading for one in held.found] == [readings(text).found[0].reading] * 2
    assert is_log(path)
    for another in ("node02: ", "(Worker pid=2) "):
        other = "".join(f"{another}{line}\n" for line in text.split("\n"))
        path.write_text(lines + other)
        (held,) = read_files([(str(path), path.stat().st_size)])
        assert (held.found, len(held.problems)) == ([], 1)
