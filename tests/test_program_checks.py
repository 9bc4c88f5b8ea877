"""Before anything is launched: the programs are there, and the MPI that starts them is theirs."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from mpis import installations
from paribus import containers
from paribus.benchmarks import BENCHMARKS
from paribus.core import (
    Arm,
    Completed,
    Container,
    Mpi,
    Program,
    State,
    Step,
    StudyError,
    UserError,
)
from paribus.launch.arms import Ready
from paribus.launch.launchers import port_of
from paribus.launch.local import LocalStation, capture
from paribus.launch.machine import HERE
from paribus.launch.programs import check_there, find_mpi_for
from paribus.launch.ready import make_ready
from paribus.launch.toolchain import find_mpi, mpi_of_library
from paribus.studyfile.load import load_study
from processes import executable, processes_with
from stations import launched_of
from studies import launches_in, paribus, write_arms

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

    done = launched_of(host, program, Ready(arm or Arm("a"), None, ()), folder, timeout_s)
    assert processes_with(MARK) == []
    return done, (folder / "out").read_text(), (folder / "err").read_text()


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


TOOLS = [name for name, benchmark in BENCHMARKS.items() if benchmark.program]


def write(folder: Path, name: str, more: str = "", arms: Sequence[str] = ()) -> Path:
    benchmark, plan = f'name = "{name}"\n{more}', "blocks = 8\nseed = 1"
    return write_arms(folder, *arms, benchmark=benchmark, plan=plan)


def inputs(folder: Path, name: str) -> str:
    """Return what a study must say of a tool that takes its work from the user."""
    for file in ("INCAR", "KPOINTS", "POSCAR", "POTCAR", "work"):
        (folder / file).write_text("")
    values = {"vasp": folder, "gromacs": folder / "work", "pytorch_ddp": folder / "work"}
    key = "script" if name == "pytorch_ddp" else "input"
    return f'{key} = "{values[name]}"' if name in values else ""


def test_a_file_that_may_not_be_executed_is_not_called_missing(tmp_path: Path) -> None:
    program = tmp_path / "solver"
    program.write_text("#!/bin/sh")
    study = load_study(write(tmp_path, "command", 'argv = ["./solver"]'))
    with pytest.raises(UserError, match=f"{program} is not executable") as caught:
        make_ready(study, lambda _: None)
    assert caught.value.fix.startswith(f"`chmod +x {program}`")
    program.unlink()
    program.mkdir()
    with pytest.raises(UserError, match=f"{program} is a directory, not a program"):
        make_ready(study, lambda _: None)


def test_a_directory_of_this_machine_is_not_called_one_of_another(tmp_path: Path) -> None:
    (tmp_path / "work").write_text("")
    more = f'argv = ["true"]\ndirectory = "{tmp_path}/work"'
    with pytest.raises(UserError, match=f"no directory {tmp_path}/work") as caught:
        make_ready(load_study(write(tmp_path, "command", more)), lambda _: None)
    assert caught.value.fix.startswith("give directory")


@pytest.mark.parametrize("name", TOOLS)
def test_a_tool_that_is_missing_is_said_with_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    benchmark = BENCHMARKS[name]
    more = inputs(tmp_path, name)
    if benchmark.parameters["path"].required:
        with pytest.raises(StudyError, match=r"benchmarks\[0\].path: is missing"):
            load_study(write(tmp_path, name))
        more = f'path = "{tmp_path}/nowhere"'
    with pytest.raises(UserError) as caught:
        make_ready(load_study(write(tmp_path, name, more)), lambda _: None)
    error = caught.value
    assert error.place.endswith(f"study.toml: {name}")
    assert error.cause.startswith("no program on the PATH called ")
    assert error.fix.endswith(f"get it: {benchmark.get}")
    assert 'path = "/..."' in error.fix


def test_all_that_is_missing_is_said_at_once(tmp_path: Path) -> None:
    path = write(tmp_path, "osu_bw", 'path = "/nowhere/one"')
    path.write_text(path.read_text() + '[[benchmarks]]\nname = "hpcg"\npath = "/nowhere/two"\n')
    with pytest.raises(UserError) as caught:
        make_ready(load_study(path), lambda _: None)
    assert caught.value.cause.startswith("2 problems\n")
    for said in (
        "osu_bw: no executable file /nowhere/one",
        "hpcg: no executable file /nowhere/two",
    ):
        assert caught.value.cause.count(said) == 1


@pytest.mark.parametrize("name", ["vasp", "gromacs", "pytorch_ddp", "pynamic"])
def test_what_only_the_user_can_give_is_asked_for(tmp_path: Path, name: str) -> None:
    with pytest.raises(StudyError, match="is missing") as caught:
        load_study(write(tmp_path, name))
    assert f"{name} needs it: " in caught.value.fix


def test_nothing_is_launched_and_nothing_is_left(tmp_path: Path) -> None:
    path = write(tmp_path, "osu_bw", 'path = "/nowhere/osu_bw"')
    done = paribus("run", path, "--out", tmp_path / "out", cwd=tmp_path, code=2)
    assert "no executable file /nowhere/osu_bw" in done.stderr
    assert not (tmp_path / "out").exists()


def test_files_that_a_program_reads_must_be_there(tmp_path: Path) -> None:
    qe = BENCHMARKS["qe"]
    program = Program(("sh",), mpi=False, needs=(str(tmp_path / "Al.UPF"),))
    with pytest.raises(UserError, match=r"no file that can be read at .*Al\.UPF"):
        check_there(Arm("a"), qe, program, "here", HERE)
    (tmp_path / "Al.UPF").write_text("")
    check_there(Arm("a"), qe, program, "here", HERE)
    netperf = Program(("sh",), mpi=False, server=("/nowhere/netserver", "-D"))
    with pytest.raises(UserError, match="no executable file /nowhere/netserver"):
        check_there(Arm("a"), qe, netperf, "here", HERE)


def test_what_cannot_be_seen_from_here_is_not_refused(tmp_path: Path) -> None:
    qe = BENCHMARKS["qe"]
    mounted = Program((f"{tmp_path}/bin/app",), mpi=False)
    check_there(Arm("a", before=(Step(("mount", "x")),)), qe, mounted, "here", HERE)
    image = Container("podman", image="an-image")
    check_there(Arm("a", container=image), qe, Program(("nowhere-app",), mpi=False), "here", HERE)
    own = Arm("a", env={"PATH": str(tmp_path)})
    executable(tmp_path / "app", "")
    check_there(own, qe, Program(("app",), mpi=False), "here", HERE)


# --- whose MPI -----------------------------------------------------------------------------------


def distribution() -> Mpi:
    """Return the distribution's Open MPI, which its applications are linked with; else skip."""
    try:
        mpi = find_mpi("/usr", HERE)
    except UserError as error:
        pytest.skip(f"no MPI of the distribution: {error.cause}")
    if mpi.family != "openmpi" or mpi.version[0] != 4:
        pytest.skip(f"the distribution's MPI is {mpi}")
    return mpi


def other(family: str, version: int) -> Mpi:
    for mpi in installations():
        if (mpi.family, mpi.version[0]) == (family, version):
            return mpi
    pytest.skip(f"no {family} {version}")


def program_of(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


@pytest.mark.parametrize("name", ["lmp", "pw.x", "hpcc"])
def test_another_family_is_refused_before_anything_is_launched(name: str) -> None:
    theirs, mpich, path = distribution(), other("mpich", 5), program_of(name)
    prefix = str(Path(mpich.mpirun).parent.parent)
    with pytest.raises(UserError, match="its ranks would not connect") as caught:
        find_mpi_for(Arm("a", mpi=prefix), [Program((path,))], "here", HERE)
    assert f"{path} is linked with {theirs} (" in caught.value.cause
    assert "libmpi.so.40 of /" in caught.value.cause
    assert caught.value.fix.startswith('give the arm mpi = "/usr"')


def test_open_mpi_5_starts_what_its_own_library_can_take_the_place_for() -> None:
    """Its mpirun puts its libraries first; it has none for Fortran's calls of version 4."""
    distribution()
    five = other("openmpi", 5)
    arm = Arm("a", mpi=str(Path(five.mpirun).parent.parent))
    assert find_mpi_for(arm, [Program((program_of("lmp"),))], "here", HERE).version[0] == 5
    with pytest.raises(UserError, match=r"libmpi_mpifh\.so\.40 of /"):
        find_mpi_for(arm, [Program((program_of("pw.x"),))], "here", HERE)


def test_an_arm_that_names_none_gets_the_one_that_fits_all_of_its_programs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    theirs, mpich = distribution(), other("mpich", 5)
    monkeypatch.setenv("PATH", f"{Path(mpich.mpirun).parent}:/usr/bin:/bin")
    programs = [Program((program_of("lmp"),)), Program((), kernel="latency")]
    assert find_mpi_for(Arm("a"), programs, "here", HERE).version == theirs.version
    assert find_mpi_for(Arm("a"), [Program(("sh", "-c", "true"))], "here", HERE) == mpich
    assert find_mpi_for(Arm("a"), programs[1:], "here", HERE) == mpich
    shell = Program(("/bin/sh", "-c", "exec $0", "hpcc"), needs=(program_of("hpcc"),))
    assert find_mpi_for(Arm("a"), [shell], "here", HERE).version == theirs.version


def test_a_library_that_lies_below_no_compiler_says_nothing(tmp_path: Path) -> None:
    library = tmp_path / "lib" / "libmpi.so.40"
    library.parent.mkdir()
    library.write_bytes(b"")
    assert mpi_of_library(library, HERE) is None
    theirs = distribution()
    found = mpi_of_library(Path("/usr/lib/x86_64-linux-gnu/libmpi.so.40"), HERE)
    assert (found.family, found.version) == (theirs.family, theirs.version)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lammps", "qe", "hpcc"])
def test_the_three_of_the_distribution_run_whatever_is_first_on_the_path(
    tmp_path: Path, name: str
) -> None:
    distribution()
    program_of(BENCHMARKS[name].program)
    mpich = other("mpich", 5)
    more = {"lammps": "steps = 10", "qe": "atoms = 4", "hpcc": "n = 300"}[name]
    study = write(tmp_path, name, more).read_text()
    (tmp_path / "study.toml").write_text(
        study.replace("[plan]", '[plan]\nbudget = "1 s"').replace(
            'factor = "nothing"', 'factor = "nothing"\nexplains = ["guard.", "work."]'
        )
    )
    path = f"{Path(mpich.mpirun).parent}:/usr/bin:/bin"
    done = paribus("run", "study.toml", "--out", "out", cwd=tmp_path, PATH=path)
    assert "with Open MPI 4" in done.stderr
    outcomes = [one.outcome for one in launches_in(tmp_path / "out")]
    assert outcomes
    assert {one.state for one in outcomes} == {State.OK}, done.stdout


@pytest.mark.slow
def test_ranks_that_each_started_alone_are_not_taken_for_two_outputs(tmp_path: Path) -> None:
    """As where the program is a script, of which no library is seen."""
    distribution()
    mpich, lmp = other("mpich", 5), program_of("lmp")
    executable(tmp_path / "lmp", f'exec {lmp} "$@"')
    prefix = Path(mpich.mpirun).parent.parent
    arms = [f'mpi = "{prefix}"'] * 2
    study = write(tmp_path, "lammps", f'path = "{tmp_path}/lmp"\nsteps = 10', arms)
    done = paribus("run", study, "--out", tmp_path / "out", "--json", cwd=tmp_path, code=4)
    said = done.stdout + done.stderr
    assert "each rank may have started alone" in said
