"""Slurm's srun as launcher: real ranks on two nodes, and what is left of a launch that is ended."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from mpis import any_mpi, each_mpi
from paribus.border import of_json
from paribus.core import Command, Hosts, Mpi, Placement, Slot, StudyError, UserError
from paribus.launch.launchers import launch, srun
from paribus.studyfile.load import load_study
from processes import executable, ran
from schedulers.slurm import Site
from schedulers.test_slurm import LATENCY, Started, check_whole, run, site, stored, study
from studies import launches_in, write_arms

__all__ = ["site"]  # the fixture

OPEN = Mpi("openmpi", (5, 0, 11), "/o/bin/mpicxx", "/o/bin/mpirun")
INTEL = Mpi("intelmpi", (2021, 18), "/i/bin/mpicxx", "/i/bin/mpiexec")
ASKED = 'scheduler = { name = "slurm", nodes = 2, time = "90 min" }'
WITH_SRUN = f'{ASKED}\nlauncher = "srun"'
THERE = 'directory = "{scratch}"'
ARGV = '["sh", "-c", "echo $SLURM_PROCID:$SLURMD_NODENAME"]'
LISTED = "MPI plugin types are...\n\tpmix\n\tnone\n\tpmi2\nspecific pmix plugin versions: pmix_v4\n"


def keys(mpi: Mpi) -> str:
    prefix = Path(mpi.mpicxx).parents[1]
    return f'mpi = "{prefix}"\nlauncher = "srun"\ntransport = "tcp"\nranks_per_host = 1\n'


@pytest.mark.slow
@pytest.mark.parametrize("mpi", each_mpi())
def test_srun_starts_ranks_on_both_nodes(site: Site, tmp_path: Path, mpi: Mpi) -> None:
    if mpi.family == "intelmpi":
        pytest.skip("Slurm's libpmi2, which Intel MPI needs, is not installed")
    study(tmp_path, LATENCY, mpi=keys(mpi))
    said = run(site, tmp_path, "run", "study.toml", "--out", "out")
    check_whole(tmp_path / "out")
    launches = launches_in(tmp_path / "out")
    for one in launches:
        assert (
            one.outcome.facts["rank.hosts"]
            == {"p": ["h1", "h2"], "q": ["h3", "h4"]}[one.launch.arm]
        )
        assert len(one.outcome.facts["rank.affinity"]) == 2  # as asked for, or it were invalid
        assert "/bin/sh" in one.outcome.argv
        assert f"--mpi={srun.PLUGINS[mpi.family][0]}" in one.outcome.argv
    assert "Transport between ranks: network (seen by the ranks), in all arms" in said
    assert site.jobs() == []


@pytest.mark.slow
@pytest.mark.parametrize("end", ["time limit", "interrupt", "kill"])
def test_no_rank_stays_on_a_node(site: Site, tmp_path: Path, end: str) -> None:
    """The launch hangs, the user interrupts it, or Paribus itself is killed."""
    seconds = f"{9000 + os.getpid() % 900}.{len(end)}"
    hangs = f'name = "command"\nargv = ["sleep", "{seconds}"]\nranks = 2\n{THERE}'
    hangs += "\ntimeout = '3 s'" if end == "time limit" else ""
    study(tmp_path, hangs, mpi=keys(any_mpi()))
    with Started(site, tmp_path, "run", "study.toml", "--out", "out") as started:
        started.until(lambda: len(sleeping(seconds)) == 2)
        if end == "time limit":
            started.until(lambda: stored(tmp_path / "out") >= 1)
            started.process.send_signal(2)
        else:
            started.process.send_signal(2 if end == "interrupt" else 9)
        assert started.end() == {"kill": -9}.get(end, 130), started.said()
        site.until(lambda: not sleeping(seconds))
    if end == "time limit":
        first = launches_in(tmp_path / "out")[0]
        assert first.outcome.error == "still busy after 3 s, the time limit"
    for line in site.jobs():  # of the killed
        site.ask("scancel", line.split()[0])


def load(folder: Path, lines: str) -> Hosts:
    return load_study(write_arms(folder, lines, factor="cluster"), lambda _: None).arms[0].hosts


def sleeping(seconds: str) -> list[str]:
    """Return the processes, wherever on this machine, that sleep for so many seconds."""
    wanted = f"sleep\0{seconds}\0".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if path.read_bytes() == wanted:
                found.append(path.parent.name)
    return found


@pytest.mark.slow
def test_ranks_in_turn_are_where_the_study_wants_them(site: Site, tmp_path: Path) -> None:
    """Four ranks of two nodes, each of which is asked by the launch where it is."""
    text = keys(any_mpi()).replace("host = 1", "host = 2") + 'order = "host"\n'
    study(tmp_path, f'name = "command"\nargv = {ARGV}\nranks = 4\n{THERE}', mpi=text)
    path = tmp_path / "study.toml"
    path.write_text(f'{path.read_text()}bind = "none"\n')
    said = run(site, tmp_path, "run", "study.toml", "--out", "out")
    logs = [log.read_text().split() for log in (tmp_path / "out" / "logs").glob("*.out")]
    pairs = {tuple(sorted(words)) for words in logs if len(words) == 4}
    assert ("0:h1", "1:h2", "2:h1", "3:h2") in pairs, said


def test_the_plugin_is_one_that_both_have() -> None:
    assert srun.read_plugins(LISTED) == ["pmix", "none", "pmi2"]
    assert srun.read_plugins("srun: MPI types are...\nsrun: none\nsrun: pmi2\n") == ["none", "pmi2"]
    assert srun.choose_plugin(OPEN, ["none", "pmix"], "s") == "pmix"
    assert srun.choose_plugin(INTEL, ["pmi2", "pmix"], "s") == "pmi2"
    with pytest.raises(UserError) as raised:
        srun.choose_plugin(OPEN, ["none", "pmi2"], "study.toml: arms.p")
    assert raised.value.place == "study.toml: arms.p.launcher"
    assert "srun offers none, pmi2" in raised.value.cause
    assert "Open MPI 5.0.11 needs pmix" in raised.value.cause


def test_the_settings_of_the_library_are_variables_of_the_ranks() -> None:
    slots = (Slot("a", (0,)), Slot("b", (0,)), Slot("a", (1,)))
    where = Placement(slots, agent="/s/agent.sh", network="10.1.0.0/16", pmi="pmix")
    program = Command(("/bin/app",), {"COLOUR": "green"}, {"input": "text"})
    command = launch(
        program, ranks=3, mpi=OPEN, placement=where, transport="tcp", scratch="/s/launch-7"
    )
    assert command.env["OMPI_MCA_btl"] == "tcp,self"
    assert command.env["OMPI_MCA_btl_tcp_if_include"] == "10.1.0.0/16"
    assert command.env["OMPI_MCA_btl_sm_backing_directory"] == "/dev/shm/s/launch-7"
    assert command.env["COLOUR"] == "green"
    assert command.files == {"input": "text", "ranks.txt": "a\nb\na\n"}
    assert {"--nodes=2", "--ntasks=3", "--mpi=pmix", "--cpu-bind=none"} < set(command.argv)
    assert command.argv[-3:] == ("a", "/s/launch-7", "/bin/app")


@pytest.mark.parametrize(
    ("lines", "cause"),
    [
        (f'{ASKED}\nlauncher = "prun"', "arms.a.launcher = 'prun': cannot be used"),
        ('launcher = "srun"', "srun starts ranks on nodes of `scheduler` only"),
        ('hosts = "n1"\nlauncher = "srun"', "srun starts ranks on nodes of `scheduler` only"),
        (
            f'{ASKED}\nlauncher = "srun"\ncontainer = {{ engine = "podman" }}',
            "srun is not used with containers",
        ),
    ],
)
def test_where_srun_cannot_start_ranks_the_study_is_refused(
    tmp_path: Path, lines: str, cause: str
) -> None:
    with pytest.raises(StudyError) as refused:
        load(tmp_path, lines)
    assert cause in str(refused.value)


def test_the_launcher_is_part_of_the_plan(tmp_path: Path) -> None:
    assert load(tmp_path, ASKED) == replace(hosts := load(tmp_path, WITH_SRUN), launcher="")
    assert hosts.launcher == "srun"
    assert of_json(Hosts, json.loads(json.dumps(asdict(hosts)))) == hosts


def test_where_srun_is_missing_nothing_waits_in_a_queue(tmp_path: Path) -> None:
    """Inside a job: the other programs are there, and would have been asked."""
    study(tmp_path, LATENCY, mpi='launcher = "srun"\n')
    (tmp_path / "bin").mkdir()
    for name in ("sbatch", "squeue", "scancel"):
        executable(tmp_path / "bin" / name, f": >{tmp_path}/asked")
    argv = [sys.executable, "-m", "paribus", "run", "study.toml", "--out", "out"]
    env = {**os.environ, "PATH": str(tmp_path / "bin"), "SLURM_JOB_ID": "7"}
    done = ran(argv, cwd=tmp_path, env=env, code=2)
    assert "arms.p.scheduler: Slurm is not here: no `srun` on the PATH" in done.stderr
    assert not (tmp_path / "asked").exists()
