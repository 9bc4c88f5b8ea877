"""Which line of a failed launch is quoted: outputs of real failures, with what stands around it."""

from __future__ import annotations

from pathlib import Path

import pytest

from paribus.core import Benchmark, Command, Outcome, Parsed, Selection, State
from paribus.launch.failures import why
from paribus.launch.launching import MOST_PRINTED, Ended, Prepared, outcome_of, start
from paribus.launch.local import LocalStation

DATA = Path(__file__).parent / "data" / "failures"
NOT_FOUND = (
    "was unable to find the specified executable file, and therefore did not launch the job"
    " (nosuch)"
)
TOLD = {
    "openmpi4-segfault": ("Segmentation fault (11)", "err"),
    "openmpi5-segfault": ("Segmentation fault (11)", "err"),
    "mpich-segfault": ("Segmentation fault (signal 11)", "out"),
    "openmpi5-sigabrt": ("Aborted (6)", "err"),
    "openmpi4-abort": ("app: cannot open input file 'x.in'", "err"),
    "openmpi5-abort": ("app: cannot open input file 'x.in'", "err"),
    "mpich-abort": ("app: cannot open input file 'x.in'", "err"),
    "openmpi4-exit": ("app: bad option -q", "err"),
    "openmpi5-exit": ("app: bad option -q", "err"),
    "openmpi4-no_program": (f"mpirun {NOT_FOUND}", "err"),
    "openmpi5-no_program": (f"prterun {NOT_FOUND}", "err"),
    "mpich-no_program": ("execvp error on file nosuch (No such file or directory)", "err"),
    "openmpi4-no_program_bound": (
        "taskset: failed to execute nosuch: No such file or directory",
        "err",
    ),
    "openmpi4-lammps_unknown_command": (
        "ERROR: Unknown command: nosuchcommand 1 (src/input.cpp:274)",
        "out",
    ),
    "openmpi4-qe_bad_namelist": (
        'bad line in namelist &system: " &system bad=1" (error could be in the previous line)',
        "out",
    ),
    "openmpi5-qe_of_openmpi4": (
        "It looks like opal_init failed for some reason; your parallel process is likely to abort",
        "err",
    ),
    "sockperf-refused": (
        "sockperf: ERROR: Can`t connect socket (errno=111 Connection refused)",
        "out",
    ),
    "ib_write_bw-no_device": ("Unable to find the Infiniband/RoCE device", "err"),
    "qperf-refused": ("127.0.0.1: failed to connect", "out"),
    "iperf3-refused": ("iperf3: error - unable to connect to server: Connection refused", "err"),
    "python-no_module": ("ModuleNotFoundError: No module named 'nosuch'", "err"),
}


def text(name: str, kind: str) -> str:
    path = DATA / f"{name}.{kind}"
    return path.read_text(errors="replace") if path.exists() else ""


@pytest.mark.parametrize("name", TOLD)
def test_the_line_that_says_why(name: str) -> None:
    assert text(name, "out") or text(name, "err")
    assert why(text(name, "out"), text(name, "err")) == TOLD[name]


def test_every_failure_that_was_kept_is_expected_to_say_something() -> None:
    assert {path.stem for path in DATA.iterdir()} == set(TOLD)


def test_without_an_error_the_last_word_counts() -> None:
    assert why("step 1\nstep 2\n", "") == ("step 2", "out")
    assert why("step 1\n", "begun\nended early\n") == ("ended early", "err")
    assert why("ERROR: one\n", "begun\n") == ("ERROR: one", "out")
    assert why("", "Warning: no such file\n\n---\nlast\n") == ("last", "err")
    assert why("\n", "===\n") == ("", "out")
    ended = "paribus-serve: the server ended before it listened on port 7"
    assert why("", f"app: cannot bind\n{ended}\n") == ("app: cannot bind", "err")
    assert why("", f"{ended}\n") == (ended, "err")
    ours = "paribus-bind: rank 3 has no core; the list is: 0 1"
    assert why("", f"{ours}\nerror: rank 3 ended\n") == (ours, "err")
    assert len(why("", "error " * 1000)[0]) == 200


def launched(folder: Path, script: str) -> Outcome:
    """Return what came of a launch of `script`."""
    benchmark = Benchmark("own", "", "", (), lambda _: None, lambda _t, _r: Parsed(()))
    ended = Ended()
    with LocalStation() as host:
        prepared = Prepared(
            command=Command(("/bin/sh", "-c", script)),
            selection=Selection("own", "own", 1, {}),
            benchmark=benchmark,
            slots=(),
            facts={},
            out=folder / "1.out",
            err=folder / "1.err",
            scratch=f"{host.scratch}/launch",
            timeout_s=30.0,
        )
        start(host, prepared, ended)
    return outcome_of(prepared, ended)


def test_a_failed_launch_is_stored_with_that_line(tmp_path: Path) -> None:
    script = "echo loading >&2; echo 'app: cannot read x' >&2; echo done >&2; exit 3"
    outcome = launched(tmp_path, script)
    assert outcome.state is State.FAILED
    assert outcome.error == "exit code 3: app: cannot read x (logs/1.err)"


def test_an_output_beyond_all_bounds_is_invalid(tmp_path: Path) -> None:
    script = f"dd bs=1 count=1 seek={MOST_PRINTED} if=/dev/zero of={tmp_path}/1.out 2>/dev/null"
    outcome = launched(tmp_path, script)
    assert outcome.state is State.INVALID
    assert "larger than 256 MiB" in outcome.error
    said = launched(tmp_path, f"{script}; echo 'app: no such mesh' >&2; exit 4").error
    assert said == "exit code 4: app: no such mesh (logs/1.err)"
