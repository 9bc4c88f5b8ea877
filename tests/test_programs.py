"""What a program may need: files, outputs, environment, a server. Really started."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from paribus import containers
from paribus.core import (
    Arm,
    Benchmark,
    Completed,
    Container,
    Metric,
    Parsed,
    Program,
    Request,
    Selection,
)
from paribus.launch.arms import Ready, compose
from paribus.launch.launchers import port_of
from paribus.launch.local import LocalStation, capture
from processes import processes_with

MARK = f"paribus-test-of-programs-{os.getpid()}"
SERVER = """
import socket, sys
with socket.create_server(("", int(sys.argv[1])), family=socket.AF_INET) as listening:
    print("the server prints", flush=True)
    while True:
        there, _ = listening.accept()
        there.sendall(b"%s\\n" % socket.gethostname().encode())
        there.close()
"""
CLIENT = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as there:
    print(sys.argv[1], there.makefile().read().strip(), socket.gethostname())
"""
SERVED = Program(
    (sys.executable, "{scratch}/client.py", "{server}", "{port}", MARK),
    mpi=False,
    files={"client.py": CLIENT, "server.py": SERVER},
    server=(sys.executable, "{scratch}/server.py", "{port}", MARK),
)


@pytest.fixture
def host() -> Iterator[LocalStation]:
    with LocalStation() as host:
        yield host
    assert not Path(host.scratch).exists()


def started(
    host: LocalStation,
    folder: Path,
    program: Program,
    arm: Arm | None = None,
    timeout_s: float = 30.0,
) -> tuple[Completed, str, str]:
    """Return how a launch of `program` in `arm` ended, its stdout and its stderr."""

    def parse(stdout: str, request: Request) -> Parsed:
        raise NotImplementedError

    benchmark = Benchmark(
        "own", "test", "", (Metric("time", "us", "lower"),), lambda request: program, parse
    )
    scratch = f"{host.scratch}/launch"
    command = compose(
        Ready(arm or Arm("a"), None, ()),
        Selection("own", "own", 1, {}),
        benchmark,
        seed=1,
        scratch=scratch,
    )
    out, err = folder / "out", folder / "err"
    done = host.run(command, stdout=str(out), stderr=str(err), timeout_s=timeout_s, scratch=scratch)
    assert processes_with(MARK) == []
    return done, out.read_text(), err.read_text()


def shell(script: str, **more: object) -> Program:
    return Program(("/bin/sh", "-c", script, MARK), mpi=False, **more)  # type: ignore[arg-type]


def test_files_are_in_the_working_directory_with_their_words_filled_in(
    host: LocalStation, tmp_path: Path
) -> None:
    program = shell("pwd; cat in.txt", files={"in.txt": "from {scratch}\n"})
    _, out, _ = started(host, tmp_path, program)
    scratch = f"{host.scratch}/launch"
    assert out.splitlines() == [scratch, f"from {scratch}"]


def test_files_that_it_writes_are_read_after_stdout_in_order(
    host: LocalStation, tmp_path: Path
) -> None:
    script = "echo two >r-2.txt; echo one >r-1.txt; echo no >other; mkdir r-3.txt; echo printed"
    _, out, _ = started(host, tmp_path, shell(script, outputs=("r-*.txt", "never")))
    assert out.splitlines() == ["printed", "one", "two"]


def test_what_it_wrote_before_a_time_limit_is_kept(host: LocalStation, tmp_path: Path) -> None:
    program = shell("echo half >r; exec sleep 60", outputs=("r",))
    done, out, _ = started(host, tmp_path, program, timeout_s=0.5)
    assert done.timed_out
    assert out == "half\n"


def test_the_environment_of_an_arm_wins_over_what_a_program_needs(
    host: LocalStation, tmp_path: Path
) -> None:
    program = shell('echo "$ONE $TWO"', env={"ONE": "{scratch}", "TWO": "own"})
    _, out, _ = started(host, tmp_path, program, Arm("a", env={"TWO": "the arm's"}))
    assert out == f"{host.scratch}/launch the arm's\n"


def test_a_server_is_there_before_its_client_and_gone_after(
    host: LocalStation, tmp_path: Path
) -> None:
    done, out, err = started(host, tmp_path, SERVED)
    assert done.exit_code == 0, err
    assert out.split() == ["127.0.0.1", socket.gethostname(), socket.gethostname()]
    assert "the server prints" in err


@pytest.mark.parametrize("engine", ["namespace", "podman"])
def test_in_containers_the_server_is_on_another_host(
    host: LocalStation, tmp_path: Path, engine: str
) -> None:
    container = Container(engine)  # type: ignore[arg-type]
    if reason := containers.check(container, capture):
        pytest.skip(reason)
    done, out, err = started(host, tmp_path, SERVED, Arm("a", container=container))
    assert done.exit_code == 0, err
    assert out.split() == ["c2", "c2", "c1"]


def test_a_client_that_fails_ends_the_server_too(host: LocalStation, tmp_path: Path) -> None:
    program = replace(SERVED, argv=("/bin/sh", "-c", "exit 7"))
    done, _, _ = started(host, tmp_path, program)
    assert done.exit_code == 7


@pytest.mark.slow
def test_a_time_limit_ends_client_and_server(host: LocalStation, tmp_path: Path) -> None:
    deaf = ("/bin/sh", "-c", "trap '' TERM; sleep 60", MARK)
    done, _, _ = started(host, tmp_path, replace(SERVED, argv=deaf), timeout_s=1.0)
    assert done.timed_out


def test_a_server_that_does_not_begin_is_said_and_nothing_is_measured(
    host: LocalStation, tmp_path: Path
) -> None:
    program = shell("echo measured", server=("/bin/sh", "-c", "exit 3"))
    begun = time.monotonic()
    done, out, err = started(host, tmp_path, program)
    assert done.exit_code == 2
    assert time.monotonic() - begun < 10
    assert out == ""
    assert "the server ended before it listened" in err


def test_somebody_elses_server_is_not_taken_for_ours(host: LocalStation, tmp_path: Path) -> None:
    port = port_of(f"{host.scratch}/launch")
    with socket.create_server(("127.0.0.1", port)):
        done, out, err = started(host, tmp_path, SERVED)
    assert done.exit_code == 2
    assert out == ""
    assert f"port {port} is taken" in err


def test_a_datagram_server_counts_as_well(host: LocalStation, tmp_path: Path) -> None:
    code = (
        "import socket, sys, time; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM);"
        " s.bind(('127.0.0.1', int(sys.argv[1]))); time.sleep(60)"
    )
    program = shell("echo there", server=(sys.executable, "-c", code, "{port}", MARK))
    done, out, err = started(host, tmp_path, program)
    assert (done.exit_code, out) == (0, "there\n"), err
