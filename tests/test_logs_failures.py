"""Launches that failed in a log of many: each is named once, and no figure of one counts."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from log_folders import FIXTURES, osu
from paribus.logs.recognise import Held, readings
from paribus.readers.launches import MEASURES_NOTHING
from paribus.readers.text import plain

OUTPUTS = [
    plain((FIXTURES / one).read_text())
    for one in ("osu_latency/good-shm.out", "stream/good-real-32_threads.out")
]
DIED = (
    "srun: error: node1: task {}: Exited with exit code 1\n",
    "srun: error: node1: tasks {}: Killed\nslurmstepd: error: *** STEP 7.{} CANCELLED ***\n",
    "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   PID 1{}\n=   EXIT CODE: 139\n",
)
NEVER = (
    "srun: error: Unable to create step for job {}: More processors requested than permitted\n",
    "There are not enough slots available in the system to satisfy the {} slots\n",
    "./job{}.sh: line 7: mpirun: command not found\nexit code: 127\n",
    "mpirun was unable to find the specified executable file, and therefore\nExecutable: ./x{}\n",
    "[proxy:0@n1] launch_procs (launch.c:73): execvp error on file ./x{} (No such file)\n",
    "This test requires exactly two processes\n",
    "exit code: 12{}\n",
)
BEGINS: tuple[Callable[[int], str], ...] = (
    lambda at: f"+ srun -N 1 step{at}\n",
    lambda at: f"node1:~$ mpirun -np 2 ./step{at}\n",
    lambda at: f"=== step {at} ===\n",
)


def made(begin: Callable[[int], str], seed: int) -> tuple[str, int, int, set[int]]:
    """Return a log, how many outputs are good, how many failed, and the lines that say it."""
    draw = random.Random(seed)
    text, good, titled = "", 0, 0
    lines = set()
    steps = [
        None,
        *(draw.choice((None, "early", "late", "silent", "never")) for _ in range(7)),
        None,
    ]
    draw.shuffle(steps)
    for at, fails in enumerate(steps):
        text += begin(at)
        output = draw.choice(OUTPUTS)
        said = draw.choice(NEVER if fails == "never" else DIED).replace("{}", str(at))
        text += output if fails == "late" else ""
        if fails is not None:
            lines.add(text.count("\n") + 1)
            text += said
        text += output if fails in (None, "early") else ""
        good += fails is None
        titled += fails in ("early", "late")
    return text, good, titled, lines


@pytest.mark.parametrize("begin", BEGINS)
@pytest.mark.parametrize("seed", range(6))
def test_each_launch_of_a_batch_counts_once_or_is_named(
    begin: Callable[[int], str], seed: int
) -> None:
    text, good, titled, lines = made(begin, seed)
    held = readings(text)
    assert len(held.found) == good, text
    assert sum(one.output > 0 for one in held.problems) == titled
    assert {one.line for one in held.problems} == lines
    assert len(held.problems) == len(lines)


def _read(text: str) -> Held:
    return readings(plain(text))


@pytest.mark.parametrize("said", DIED)
def test_a_failure_that_nothing_places_is_of_the_output_next_to_it(said: str) -> None:
    """Where it may be either's, no figure of a launch that failed counts."""
    osu, stream = OUTPUTS
    for text, read in (
        (said + osu + stream, ["stream"]),
        (osu + said + stream, ["stream"]),
        (osu + stream + said, ["osu_latency"]),
        (said + osu, []),
    ):
        held = _read(text)
        assert [one.reading.benchmark for one in held.found] == read
        [problem] = held.problems
        assert problem.line == text[: text.index(said)].count("\n") + 1
        assert "the launch failed" in problem.detail


def test_a_command_above_a_failure_is_that_of_the_output_below() -> None:
    osu, stream = OUTPUTS
    text = f"+ srun ./a\n{osu}+ srun ./b\n{DIED[0]}{stream}{osu}"
    held = _read(text)
    assert [one.labels for one in held.found] == [{"command": "srun ./a"}, {"command": "srun ./b"}]


@pytest.mark.parametrize(
    "tool", ["gromacs/good-spc_1rank.out", "hpl/good-real-detailed_and_grepped.out"]
)
def test_lines_of_a_program_that_look_like_commands_part_no_launches(tool: str) -> None:
    """The trace of a shell begins with "+ ", and so do lines of some tools."""
    text = (FIXTURES / tool).read_text()
    held = _read(text + DIED[0] + OUTPUTS[0])
    assert [one.reading.benchmark for one in held.found] == ["osu_latency"]


def test_what_stands_above_json_of_other_machines_is_no_part_of_the_output_before() -> None:
    """fio's lines of a client say mode and engine, as those of a job do."""
    fio = FIXTURES / "fio"
    texts = [(fio / f"good-{one}.out").read_text() for one in ("real-3_1_write", "client-json")]
    expected = [_read(text).found[0].reading for text in texts]
    assert [one.reading for one in _read("\n".join(texts)).found] == expected


GOES_ON = (
    'srun: error: Ignoring conflicting option "x11" in plugin "x11"\n',
    "srun: error: SLURMD_DEBUG=verbose invalid. ignoring...\n",
    "slurmstepd: error: couldn't chdir to `/scratch/a': No such file: going to /tmp instead\n",
)


@pytest.mark.parametrize("said", GOES_ON)
def test_an_error_after_which_a_launch_goes_on_is_none_of_it(said: str) -> None:
    text = "".join(f"=== run {at} ===\n{said}{one}" for at, one in enumerate(OUTPUTS * 2))
    held = readings(text)
    assert (len(held.found), held.problems) == (4, [])
    assert len(readings(said + OUTPUTS[0]).found) == 1
    assert readings(said + DIED[0].format(0) + OUTPUTS[0]).problems


@pytest.mark.parametrize("command", ["", "+ srun -n 4 ./xthi\n"])
@pytest.mark.parametrize("below", [True, False])
def test_another_program_that_was_not_started_costs_no_output(command: str, below: bool) -> None:
    """As jobs of VASP begin that ask where their ranks are, on a machine without xthi."""
    vasp = plain((FIXTURES / "vasp" / "good-real-6_4_1_on_nodes.out").read_text())
    said = (
        "slurmstepd: error: execve(): ./xthi: No such file or directory\n"
        "slurmstepd: error: execve(): ./xthi: No such file or directory\n"
        f"srun: error: nid001234: tasks {','.join(map(str, range(0, 128, 2)))}: Exited with exit"
        " code 2\n"
    )
    begin = "+ srun -n 16 vasp_std\n" if command else ""
    whole = begin + vasp
    held = readings(whole + command + said if below else command + said + whole)
    [log] = held.found
    assert log.reading.samples == _read(vasp).found[0].reading.samples
    assert not any("error" in str(value) for value in log.printed.facts.values())
    [problem] = held.problems
    assert "another program was not started" in problem.detail
    assert (problem.lost, problem.tool) == (False, "")


def test_a_program_that_was_not_started_is_a_launch_where_its_like_has_outputs() -> None:
    osu = OUTPUTS[0]
    said = "slurmstepd: error: execve(): {}: Stale file handle\n"
    for text in (
        osu + said.format("./osu_latency") + osu,
        f"+ srun ./a\n{osu}{said.format('a')}",
        f"+ srun ./xthi\n{osu}{said.format('xthi')}",
    ):
        [problem] = _read(text).problems
        assert problem.lost
    died = said.format("xthi") + osu + DIED[0].format(0)
    assert not _read(died).found


@given(st.from_regex(r"(\./)?[A-Za-z_][A-Za-z0-9_.-]{0,15}", fullmatch=True))
def test_a_program_of_any_name_that_was_not_started_is_a_lost_launch(program: str) -> None:
    """A wrapper may have any name: only those that are known to measure nothing are none."""
    line = f"slurmstepd: error: execve(): {program}: No such file or directory\n"
    osu = OUTPUTS[0]
    for text, whole in ((line, 0), (osu + line, 1), (line + osu, 1), (osu + line + osu, 2)):
        held = _read(text)
        [problem] = held.problems
        assert problem.lost is (program.removeprefix("./") not in MEASURES_NOTHING)
        assert len(held.found) == whole


@pytest.mark.parametrize("tool", ["osu_latency/good-shm.out", "iperf3/good-tcp-text.out"])
@pytest.mark.parametrize(
    "said",
    [
        "This test requires exactly two processes",
        "iperf3: error - the server is busy running a test. try again later",
        "return code: 0\nreturn code: 124",
        "x: (g=0): rw=read, bs=4K\nerror: maximum number of jobs (8) reached.",
    ],
)
def test_what_failed_after_a_whole_output_is_neither_it_nor_the_next(said: str, tool: str) -> None:
    good = plain((FIXTURES / tool).read_text())
    text = f"size 1\n{good}size 2\n{said}\nsize 3\n{good}{said}\n"
    held = _read(text)
    lines = [n for n, line in enumerate(text.split("\n"), 1) if line == said.split("\n")[-1]]
    assert [why.line for why in held.problems] == lines
    assert all(why.lost for why in held.problems)
    first, second = held.found
    assert (first.labels, second.labels) == ({"words": "size 1"}, {"words": "size 3"})
    assert first.printed == second.printed == _read(good).found[0].printed


def test_an_exit_code_says_nothing_of_a_whole_output_above() -> None:
    """It may be that of the job."""
    assert not _read(f"{OUTPUTS[0]}rc=1\n{OUTPUTS[1]}exit code: 2\n").problems


def test_an_output_that_ends_in_what_its_tool_complains_of_failed_once() -> None:
    good = plain((FIXTURES / "iperf3/good-tcp-text.out").read_text())
    cut = good[: good.index("- - - - -")]
    held = _read(f"{good}{cut}iperf3: error - control socket has closed unexpectedly\n{good}")
    assert len(held.found) == 2
    (why,) = held.problems
    assert (why.output, why.tool) == (2, "iperf3")
    assert "control socket" in why.detail


STYLES = (
    *(
        "",
        "+ mpirun -np 2 ./bench\n",
        "=== run {} ===\n",
        "# lustre\n",
        "Starting launch {} of 9\n",
    ),
    *("#############\n# launch {} #\n#############\n", "ITER={}\n", "  1) gcc/12.2   2) osu/7.4\n"),
)
BOX = (
    f"{'=' * 80}\n=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   EXIT CODE: 9\n"
    f"=   CLEANING UP REMAINING PROCESSES\n{'=' * 80}\n"
    "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)\n"
    "This typically refers to a problem with your application.\n"
)
FRAMED = (
    f"{'-' * 74}\nmpirun was unable to launch the application as it could not access\n"
    f"Executable: ./x\n{'-' * 74}\n2 total processes failed to start\n"
)
ENDED = (
    BOX,
    "./job.sh: line 12:  4711 Killed                  ./bench\n",
    "./job.sh: line 12: 4711 Aborted                 (core dumped) ./bench\n",
    "srun: error: n1: task 0: Killed\n",
    "MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD\nwith errorcode -1.\n",
)
MISSING = (
    "./job.sh: line 12: ./bench: No such file or directory\n",
    "bash: osu_latency: command not found\n",
    "./bench: error while loading shared libraries: libmpi.so.40: cannot open shared object\n",
    FRAMED,
)


@given(
    style=st.sampled_from(STYLES),
    code=st.sampled_from(("", "rc={}\n", "exit code: {}\n\n")),
    at=st.integers(0, 8),
    failed=st.one_of(
        st.tuples(st.just(0), st.sampled_from(MISSING)),
        st.tuples(st.sampled_from((3, 6, 11)), st.sampled_from(ENDED)),
    ),
)
def test_one_launch_that_failed_counts_once_and_changes_no_other(
    style: str, code: str, at: int, failed: tuple[int, str]
) -> None:
    """Of nine; it has so many lines of an output, and the message may have lines of its own."""
    kept, message = failed
    launches = [
        style.replace("{}", str(i)) + osu(1 + i / 10) + code.replace("{}", "0") for i in range(9)
    ]
    lines = osu().splitlines(keepends=True)[:kept]
    died = style.replace("{}", str(at)) + "".join(lines) + message + code.replace("{}", "137")
    held = _read("".join((*launches[:at], died, *launches[at:])))
    clean = _read("".join(launches))
    assert [one.reading for one in held.found] == [one.reading for one in clean.found]
    assert [one.labels for one in held.found] == [one.labels for one in clean.found]
    (why,) = held.problems
    assert why.lost == (kept == 0)


@pytest.mark.parametrize("code", ["rc=2\n", "exit code: 137\n"])
def test_an_exit_code_is_that_of_the_output_above_where_others_are_0(code: str) -> None:
    """An output of OSU has no last line: with an exit code it may be half of one."""
    text = "".join(f"{osu()}rc=0\n" for _ in range(3)) + osu(2.0, 5) + code + osu() + "rc=0\n"
    held = _read(text)
    assert len(held.found) == 4
    (why,) = held.problems
    assert (why.output, why.tool) == (4, "osu_latency")


@pytest.mark.parametrize("program", ["module", "conda", "bc", "ibstat", "gnuplot"])
def test_a_shell_that_lacks_what_sets_up_costs_no_output_and_hides_no_failure(program: str) -> None:
    said = f"./job.sh: line 3: {program}: command not found\n"
    text = f"=== lustre ===\n{said}{osu()}=== nfs ===\n{said}mpirun: command not found\n"
    held = _read(text + f"=== nfs ===\n{said}{osu()}")
    assert [one.labels for one in held.found] == [{"==": "lustre"}, {"==": "nfs"}]
    assert [why.line for why in held.problems if why.lost] == [text.count("\n")]
    monitor = "./job.sh: line 9:  4711 Killed                  vmstat 1 > vmstat.log\n"
    assert not _read(f"{osu()}{monitor}{osu()}").problems


@pytest.mark.parametrize(
    "path", ["/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "/proc/sys/vm/drop_caches"]
)
def test_a_setting_of_the_kernel_that_a_script_may_not_make_is_no_failed_launch(path: str) -> None:
    said = f"/var/spool/slurmd/job7/slurm_script: line 9: {path}: Permission denied\n"
    assert not _read(f"{said}{osu()}").problems
    (why,) = _read(f"{said.replace(path, './solver')}{osu()}").problems
    assert why.lost
