"""N outputs are N launches only where nothing says that they are of the ranks of one."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from log_folders import FIXTURES
from paribus.__main__ import main
from paribus.core import Unreadable
from paribus.logs.ranks import started
from paribus.logs.reading import read_files
from paribus.logs.recognise import Held

CAPS = pytest.CaptureFixture[str]
ALONE = (
    "stream/good-real-32_threads.out",
    "babelstream/good-omp_t2.out",
    "npb_ep/good-handmade.out",
)
ERROR = "srun: error: node1: task 1: Exited with exit code 1\n"


def text_of(name: str) -> str:
    return (FIXTURES / name).read_text()


STREAM = text_of("stream/good-real-32_threads.out")


def read(folder: Path, text: str) -> Held:
    path = folder / "job.log"
    path.write_text(text)
    [held] = read_files([(str(path), path.stat().st_size)])
    return held


def mixed(text: str, ranks: int, seed: int, form: str = "{}: ") -> str:
    """Return the lines of so many ranks that print the same at the same time, each tagged."""
    draw = random.Random(seed)
    left = {rank: text.splitlines(True) for rank in range(ranks)}
    found = ""
    while left:
        rank = draw.choice([*left])
        found += form.format(rank) + left[rank].pop(0)
        left = {one: lines for one, lines in left.items() if lines}
    return found


@pytest.mark.parametrize("form", ["{}: ", "[{}] ", "[default{}]:", "[1,{}]<stdout>:"])
@pytest.mark.parametrize("seed", range(4))
def test_mixed_lines_of_ranks_are_read_by_rank(form: str, seed: int, tmp_path: Path) -> None:
    launch = "+ srun -l ./stream_c\n" + mixed(STREAM, 4, seed, form)
    once, whole = read(tmp_path, launch), read(tmp_path, launch * 2)
    for held, launches in ((once, 1), (whole, 2)):
        assert not held.problems
        assert [one.labels["wrote"] for one in held.found] == [
            f"rank {n}" for n in range(4)
        ] * launches
    assert {one.reading.samples for one in once.found} == {
        read(tmp_path, STREAM).found[0].reading.samples
    }


def test_a_refused_output_of_mixed_ranks_has_the_line_of_its_file(tmp_path: Path) -> None:
    lines = mixed(STREAM, 2, 1).splitlines(True)
    at = next(n for n, line in enumerate(lines) if line.startswith("1: Triad:"))
    lines[at] = "1: Triad: damaged\n"
    held = read(tmp_path, "".join(lines))
    assert len(held.found) == 1
    [problem] = held.problems
    assert lines[problem.line - 1].startswith("1: ")


@pytest.mark.parametrize(
    "tag",
    ["0: ", "[0] ", "[rank0]:", "[1,0]<stdout>:", "[pod/osu-1/mpi] ", "Nov 26 10:00:00 0: "],
)
def test_one_launch_with_tags_is_not_lost_among_others_without(tag: str, tmp_path: Path) -> None:
    osu = text_of("osu_latency/good-shm.out").lstrip()
    tagged = "".join(tag + line for line in osu.splitlines(True))
    held = read(tmp_path, STREAM * 4 + tagged + STREAM)
    [alone] = read(tmp_path, osu).found
    assert not held.problems
    assert [one.reading.benchmark for one in held.found] == ["stream"] * 4 + [
        "osu_latency",
        "stream",
    ]
    assert held.found[4].reading == alone.reading


def test_ranks_of_one_launch_among_others_are_its_cases(tmp_path: Path) -> None:
    held = read(tmp_path, text_of("lammps/good-lj_1rank.out") + mixed(STREAM, 2, 3))
    assert [one.labels.get("wrote") for one in held.found] == [None, "rank 0", "rank 1"]


@pytest.mark.parametrize(
    ("above", "outputs", "ranks"),
    [
        ("+ srun -n 4 ./stream_c\n", 4, "cases"),
        ("$ mpirun -np 4 --bind-to core ./stream_c -n 7\n", 4, "cases"),
        ("$ mpirun --mca btl self,vader -np 4 ./stream_c\n", 4, "cases"),
        ("$ mpiexec.hydra -n 4 ./stream_c\n", 4, "cases"),
        ("+ srun -N 2 --ntasks-per-node=2 ./stream_c\n", 4, "cases"),
        ("+ srun -n 4 ./stream_c\n", 8, "unclear"),
        ("+ srun -n 4 ./stream_c\n", 3, "unclear"),
        ("Tasks: 4\n", 4, "unclear"),
        ("SLURM_NTASKS=4\n\n", 8, "unclear"),
        ("Running on 4 MPI ranks\n", 4, "unclear"),
        ("Tasks: 4\n", 6, "launches"),
        ("+ srun -n 1 ./stream_c\n", 4, "launches"),
        ("+ ./stream_c -n 4\n", 4, "launches"),
        ("$ srun ./stream_c -n 4\n", 4, "launches"),
        ("", 4, "launches"),
    ],
)
def test_what_says_that_outputs_are_of_ranks(
    above: str, outputs: int, ranks: str, tmp_path: Path
) -> None:
    held = read(tmp_path, above + STREAM * outputs)
    assert len(held.found) == outputs
    wrote = [one.labels.get("wrote") for one in held.found]
    assert wrote == [f"output {n + 1}/4" if ranks == "cases" else None for n in range(outputs)]
    assert {one.ranks for one in held.found} == ({4} if ranks == "unclear" else {0})


def test_a_command_above_each_output_makes_launches(tmp_path: Path) -> None:
    """So do outputs of a program of several ranks, which prints once."""
    osu = text_of("osu_latency/good-shm.out")
    for text in (
        ("+ mpirun -np 2 ./stream_c\n" + STREAM) * 2,
        "+ mpirun -np 2 ./osu_latency\n" + osu * 2,
    ):
        assert [dict(one.labels).keys() for one in read(tmp_path, text).found] == [{"command"}] * 2


@pytest.mark.parametrize(
    "between", ["UCX 1.15.0 on 3 rails\n", "load 0.52\n" * 60, "| a | 1.5 |\n"]
)
def test_figures_below_a_command_do_not_hide_it(between: str, tmp_path: Path) -> None:
    osu = text_of("osu_latency/good-shm.out")
    command = "+ mpirun -np {} ./osu_latency\n" + between
    held = read(tmp_path, command.format(2) + osu + command.format(4) + osu)
    said = [one.labels["command"] for one in held.found]
    assert said == ["mpirun -np 2 ./osu_latency", "mpirun -np 4 ./osu_latency"]


def test_ranks_that_say_who_they_are_count_no_launches(tmp_path: Path) -> None:
    for line in ("Hello from rank {} of 3\n", "Process {}/3 on node1\n", "MPI task #{} of 3\n"):
        held = read(tmp_path, "".join(line.format(n) + STREAM for n in range(3)))
        assert {one.counted for one in held.found} == {""}
        assert len({one.labels["words"] for one in held.found}) == 3, line


@pytest.mark.parametrize("tag", ["", "{}: "])
def test_a_launch_of_which_one_rank_failed_has_no_figures(tag: str, tmp_path: Path) -> None:
    ranks = mixed(STREAM, 3, 1, tag) if tag else STREAM * 3
    command = "+ srun -n 3 ./stream_c\n"
    held = read(tmp_path, command + ranks + ERROR + command + ranks)
    assert len(held.found) == 3
    assert len(held.problems) == 3
    assert all("the launch failed" in one.detail for one in held.problems)


def judged(capsys: CAPS, folder: Path, above: str, files: int, *more: str) -> dict[str, Any]:
    """Return the report of two arms with so many files, of four outputs each."""
    draw = random.Random(1)
    for arm, level in (("one", 1.0), ("two", 0.8)):
        (folder / arm).mkdir(exist_ok=True)
        for n in range(files):
            text = above
            for _ in range(4):
                rate = level * draw.lognormvariate(0, 0.01)
                text += stream(rate)
            (folder / arm / f"{n}.log").write_text(text)
    main(["compare", str(folder / "one"), str(folder / "two"), "--json", *more])
    whole: dict[str, Any] = json.loads(capsys.readouterr().out)
    return whole


def stream(level: float) -> str:
    found = []
    for line in STREAM.splitlines():
        name, _, rest = line.partition(":")
        if name in ("Copy", "Scale", "Add", "Triad"):
            rate, *times = map(float, rest.split())
            scaled = " ".join(f"{t / level:.6f}" for t in times)
            found.append(f"{name}: {rate * level:.1f} {scaled}")
        else:
            found.append(line)
    return "\n".join(found) + "\n"


def test_a_job_of_several_tasks_withholds_until_it_is_said(capsys: CAPS, tmp_path: Path) -> None:
    whole = judged(capsys, tmp_path, "SLURM_NTASKS=4\n", 8)
    assert {one["verdict"]["code"] for one in whole["headlines"]} == {"repeats_unclear"}
    notice = next(one for one in whole["notices"] if one["name"] == "repeats unclear")
    assert "4 outputs and names 4 ranks: add --by place" in notice["text"]
    heads = judged(capsys, tmp_path, "SLURM_NTASKS=4\n", 8, "--by", "place")["headlines"]
    assert {one["benchmark"] for one in heads} == {f"stream (place {n})" for n in range(1, 5)}
    assert {one["verdict"]["word"] for one in heads} == {"slower"}


def test_ranks_of_a_command_are_cases(capsys: CAPS, tmp_path: Path) -> None:
    heads = judged(capsys, tmp_path, "+ srun -n 4 ./stream_c\n", 1)["headlines"]
    assert {one["verdict"]["word"] for one in heads} == {"withheld"}
    assert {one["benchmark"] for one in heads} == {f"stream (output {n}/4)" for n in range(1, 5)}


@pytest.mark.parametrize(
    ("command", "ranks"),
    [
        ("jsrun -n 6 -a 1 ./x", 6),
        ("flux run -N2 --tasks-per-node=48 ./x", 96),
        ("time srun --mpi=pmix -N4 ./x", 4),
        ("torchrun --nnodes=2 --nproc_per_node 4 x.py -n 3", 8),
        ("mpirun -x A=1 -np 2 ./x", 2),
        ("mpirun -hostfile /etc/hosts.txt --oversubscribe -np 16 /opt/x -np 3", 16),
        ("mpirun ./x -np 3", 1),
        ("./x -n 4", 1),
    ],
)
def test_how_many_ranks_a_command_starts(command: str, ranks: int) -> None:
    assert started({"command": command}).ranks == ranks


def test_outputs_of_ranks_with_lines_of_each_other_are_no_sample(tmp_path: Path) -> None:
    """Some are whole by chance; one or two that are torn may lack a title."""
    half = len(STREAM) // 2
    torn = STREAM[:half] + STREAM + STREAM[half:]
    mixed = read(tmp_path, STREAM * 4 + torn * 4)
    assert (mixed.found, mixed.read) == ([], 0)
    assert mixed.outputs == len(mixed.problems) == 12  # a title each: of torn ones two
    assert {(one.code, one.tool) for one in mixed.problems} == {(Unreadable.MIXED, "stream")}
    few = read(tmp_path, STREAM * 6 + torn)
    assert len(few.found) >= 6
    assert {one.code for one in few.problems} == {Unreadable.REFUSED}
