"""What schedulers are asked, and what recorded answers say: all alike, and of some their own."""

from __future__ import annotations

import json
import math
import time
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.border import of_json
from paribus.core import Hosts, Scheduler, StudyError
from paribus.schedulers.dialect import Job, Phase, key_of
from paribus.schedulers.gridengine import phase_of
from paribus.schedulers.known import DIALECTS, in_job
from paribus.studyfile.load import load_study
from studies import write_arms

RECORDED = Path(__file__).parent / "recorded"
READERS = {
    "gridengine.xml": DIALECTS["gridengine"].read_queue,
    **dict.fromkeys(("openpbs_runs.txt", "openpbs_waits.txt"), DIALECTS["pbs"].read_queue),
    "torque.txt": DIALECTS["torque"].read_queue,
    **{
        f"flux_{name}.json": DIALECTS["flux"].read_queue
        for name in ("runs", "waits", "held", "ended")
    },
    **dict.fromkeys(("slurm.txt", "slurm.json"), DIALECTS["slurm"].read_queue),
    **{
        f"kubernetes_{name}.json": DIALECTS["kubernetes"].read_queue
        for name in ("runs", "quota", "mpijob_runs")
    },
}


def recorded(name: str) -> dict[str, Job]:
    return READERS[name]((RECORDED / name).read_text(), 1000.0)


def test_jobs_of_grid_engine() -> None:
    runs, waits, held = recorded("gridengine.xml").values()
    begun = datetime(2026, 11, 23, 20, 42, 38).timestamp()  # as qstat, in the local time zone
    assert runs == Job("1", runs.name, Phase.RUNS, "r", "", ("h1", "h2"), begun + 600)
    assert (waits.phase, str(waits), waits.never) == (Phase.WAITS, "qw: waiting", False)
    assert (held.phase, str(held), held.never) == (Phase.WAITS, "hqw: held", True)
    assert {job.name[:18] for job in (runs, waits, held)} == {"paribus-0123456789"}


def test_jobs_of_pbs() -> None:
    [runs] = recorded("openpbs_runs.txt").values()
    begun = time.mktime(datetime(2024, 12, 29, 20, 13, 12).timetuple())
    assert runs == Job("14", "myscript_1", Phase.RUNS, "R", "", ("f41a0fbae027",), begun + 3600)
    [waits] = recorded("openpbs_waits.txt").values()
    assert (waits.ident, waits.phase, waits.never) == ("4259576.pbssrv1", Phase.WAITS, False)
    assert waits.reason.endswith("per-user limit reached on resource ncpus")


def test_jobs_of_torque() -> None:
    """A value of several lines is one; a job without a walltime has no end."""
    first, second = recorded("torque.txt").values()
    assert (first.nodes, first.ends_at) == (("cnode025.bw.nitech.ac.jp",), 1000.0 + 2516937)
    assert second.nodes == ("cnode002.bw.nitech.ac.jp", "cnode003.bw.nitech.ac.jp")
    assert second.ends_at == math.inf


def test_jobs_of_flux() -> None:
    [runs] = recorded("flux_runs.json").values()
    ends = 9223372036.0
    assert runs == Job("91088924704768", "sleep", Phase.RUNS, "RUN", "", ("3db47f546663",), ends)
    [waits] = recorded("flux_waits.json").values()
    assert (waits.phase, str(waits), waits.never) == (Phase.WAITS, "SCHED", False)
    [held] = recorded("flux_held.json").values()
    assert (held.phase, held.never) == (Phase.WAITS, True)
    [ended] = recorded("flux_ended.json").values()
    assert (ended.phase, str(ended)) == (Phase.ENDED, "INACTIVE: CANCELED")
    several = [json.loads((RECORDED / f"flux_{n}.json").read_text()) for n in ("runs", "waits")]
    read = DIALECTS["flux"].read_queue(json.dumps({"jobs": several}))
    assert [*read] == [runs.ident, waits.ident]


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("gridengine.xml", "<state>r</state>", "<state>Y</state>"),
        ("openpbs_runs.txt", "job_state = R", "job_state = Y"),
        ("torque.txt", "job_state = R", "job_state = Y"),
        ("flux_runs.json", '"state": "RUN"', '"state": "Y"'),
        ("slurm.txt", "|SUSPENDED|", "|Y|"),
        ("kubernetes_runs.json", '"phase":"Running"', '"phase":"Y"'),
        ("kubernetes_runs.json", '"phase":"Running"', '"phase":"Unknown"'),
    ],
)
def test_a_state_that_nobody_knows_is_waited_on_by_its_name(name: str, old: str, new: str) -> None:
    text = (RECORDED / name).read_text()
    assert old in text
    known = {job.state for job in recorded(name).values()}
    jobs = READERS[name](text.replace(old, new)).values()
    job = next(job for job in jobs if job.state not in known)
    assert job.phase is Phase.WAITS
    assert job.state in new


@pytest.mark.parametrize("name", READERS)
def test_an_answer_that_is_cut_or_damaged_is_refused_or_read(name: str) -> None:
    """No crash; and a cut never takes a node's name for another's."""
    text = (RECORDED / name).read_text()
    nodes = {node for job in recorded(name).values() for node in job.nodes}
    for i in range(0, len(text), max(1, len(text) // 200)):
        for damaged in (text[:i] + "\n", text[:i] + text[i + 1 :], text[:i] + "\0" + text[i:]):
            with suppress(ValueError):
                READERS[name](damaged)
        # Text is only read to the end of a line (allocations.py sees to it).
        whole = text[: text.rfind("\n", 0, i) + 1] if name.endswith(".txt") else text[:i]
        with suppress(ValueError):
            cut = READERS[name](whole)
            assert {one for job in cut.values() for one in job.nodes} <= nodes


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    for dialect in DIALECTS.values():
        for read in (dialect.read_queue, dialect.read_submitted, dialect.read_offer):
            with suppress(ValueError):
                read(text)


ASKED = {"partition": "p", "account": "lab", "constraint": "c"}


@pytest.mark.parametrize(
    ("name", "more", "lines"),
    [
        (
            "gridengine",
            {"slots": 16, "parallel_environment": "mpi", "options": ("-P x",)},
            (
                "#$ -S /bin/sh|#$ -N paribus-1|#$ -pe mpi 48|#$ -l h_rt=5400|#$ -q p|#$ -A lab"
                "|#$ -l c|#$ -r n|#$ -w e|#$ -j y -o /dev/null|#$ -P x"
            ),
        ),
        (
            "pbs",
            {"slots": 16, "options": ("-P x",)},
            (
                "#PBS -S /bin/sh|#PBS -N paribus-1|#PBS -l select=3:ncpus=16:c"
                "|#PBS -l place=scatter:exclhost|#PBS -l walltime=1:30:00|#PBS -q p|#PBS -A lab"
                "|#PBS -r n|#PBS -j oe|#PBS -o /dev/null|#PBS -P x"
            ),
        ),
        (
            "torque",
            {"slots": 16},
            (
                "#PBS -S /bin/sh|#PBS -N paribus-1|#PBS -l nodes=3:ppn=16:c"
                "|#PBS -l walltime=1:30:00|#PBS -q p|#PBS -A lab|#PBS -r n|#PBS -j oe"
                "|#PBS -o /dev/null"
            ),
        ),
        (
            "flux",
            {"options": ("--setattr=x=1",)},
            (
                "# flux: --job-name=paribus-1|# flux: --nodes=3|# flux: --exclusive"
                "|# flux: --time-limit=90m|# flux: --output=/dev/null|# flux: --queue=p"
                "|# flux: --bank=lab|# flux: --requires=c|# flux: --setattr=x=1"
            ),
        ),
    ],
)
def test_a_script_shows_all_that_it_does(name: str, more: dict[str, object], lines: str) -> None:
    asked = Scheduler(name, 3, 5400.0, **ASKED, **more)  # type: ignore[arg-type]
    first, *options, reason, command, rest = DIALECTS[name].script(asked, "paribus-1").split("\n")
    assert (first, "|".join(options), command, rest) == ("#!/bin/sh", lines, "exec sleep 5400", "")
    assert reason.startswith("# Holds its nodes for a study of Paribus")


@pytest.mark.parametrize(
    ("name", "said", "key"),
    [
        # As qsub 8.1.9 printed them on 2026-11-23.
        ("gridengine", 'Job was rejected because job requests unknown queue "nope.q"', "partition"),
        ("gridengine", 'requested parallel environment "nope" does n', "parallel_environment"),
        ("gridengine", 'Unable to run job: unknown resource "gold"', "constraint"),
        ("gridengine", 'job rejected: the requested project "foo" does not exist', "options"),
        # marbl/canu issue 891; E3SM-Project/E3SM issue 1318; radical-cybertools/radical.pilot 58.
        ("torque", "qsub: submit error (Unknown queue MSG=requested queue not found)", "partition"),
        ("torque", "exceeds queue resource limits MSG=cannot satisfy queue max walltime", "time"),
        ("torque", "exceeds queue resource limits MSG=cannot locate feasible nodes", "nodes"),
        ("pbs", "qsub: Unknown queue", "partition"),
        # flux-framework/flux-core pull request 7204.
        ("flux", "requested nnodes (20) exceeds policy limit of 16 for queue debug", "nodes"),
        # As sbatch 22.05.8 printed it; the next as its source has it, then reasons of squeue.
        ("slurm", "sbatch: error: invalid partition specified: nope", "partition"),
        ("slurm", "Batch job submission failed: Invalid feature specification", "constraint"),
        *(("slurm", "PartitionTimeLimit", "time"), ("slurm", "PartitionNodeLimit", "nodes")),
        ("slurm", "InvalidAccount", "account"),
        # As API server and kubectl 1.37.2 printed them on 2026-11-25.
        ("kubernetes", 'no matches for kind "JobSet" in version "jobset.x-k8s.io/v1a2"', "kind"),
        ("kubernetes", 'unknown field "spec.template.spec.prioritty"', "pod"),
        ("kubernetes", "this user may not create jobs.batch in --namespace=lab", "namespace"),
        *((name, "something else", "") for name in DIALECTS),
    ],
)
def test_a_rejection_leads_to_the_key_of_the_study(name: str, said: str, key: str) -> None:
    assert key_of(DIALECTS[name], said) == key


@pytest.mark.parametrize(
    ("name", "printed", "job"),
    [
        ("slurm", "42;cluster\n", "42"),
        ("gridengine", "42\n", "42"),
        ("pbs", "3472664.pbshpc\n", "3472664.pbshpc"),
        ("torque", "7\n", "7"),
        ("flux", "ƒiFkbMhFM\n", "91088924704768"),
        ("flux", "fiFkbMhFM\n", "91088924704768"),
        ("kubernetes", "job.batch/paribus-0123456789-1-a-x7k2p\n", "paribus-0123456789-1-a-x7k2p"),
        *((name, "error: 42\n", "") for name in DIALECTS),
    ],
)
def test_the_job_that_was_submitted_is_read(name: str, printed: str, job: str) -> None:
    assert DIALECTS[name].read_submitted(printed) == job


@pytest.mark.parametrize(
    ("name", "away"),
    [
        ("slurm", "sbatch: error: Unable to contact slurm controller (connect failure)"),
        ("slurm", "Batch job submission failed: Transport endpoint is not connected"),
        ("gridengine", 'unable to send message to qmaster using port 6444 on host "a": got send'),
        ("pbs", "qstat: cannot connect to server pbs (errno=111)"),
        ("flux", "flux-jobs: ERROR: Unable to connect to Flux"),
        ("kubernetes", "Unable to connect to the server: EOF"),
    ],
)
def test_a_scheduler_that_is_away_is_distinguished_from_one_that_refuses(
    name: str, away: str
) -> None:
    assert DIALECTS[name].unreachable(away)
    assert not DIALECTS[name].unreachable("unknown queue")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("slurm", "slurm_load_jobs error: Invalid job id specified"),
        ("pbs", "qstat: Unknown Job Id 123456.pbssrv2"),
        ("torque", "qstat: 1.s Job has finished, use -x"),
        ("flux", "JobID 999999 unknown"),
    ],
)
def test_a_job_that_is_gone_is_known_by_the_words_of_its_scheduler(name: str, said: str) -> None:
    assert [one for one in DIALECTS if DIALECTS[one].gone(said)] == (
        ["pbs", "torque"] if name in ("pbs", "torque") else [name]
    )


@pytest.mark.parametrize(
    ("name", "printed", "offered"),
    [
        (
            "slurm",
            "cpu|36|128|2-00:00:00|up\ngpu|4|64|infinite|down\n",
            ["cpu: 36 nodes of 128 CPUs, at most 2-00:00:00", "gpu: 4 nodes of 64 CPUs, down"],
        ),
        (
            "gridengine",
            "CLUSTER QUEUE LOAD USED RES AVAIL TOTAL a c\n---\np.q 2.0 1 0 3 4 0 0",
            ["p.q: 4 slots, 3 free"],
        ),
        (
            "pbs",
            "Queue Max Tot Ena Str Que\n----- --- --- --- --- ---\nworkq 0 3 yes no 1\n",
            ["workq: 3 jobs, stopped"],
        ),
        ("flux", "free|3|48\ndown|1|16\n", ["free: 3 nodes, 48 cores", "down: 1 node, 16 cores"]),
        ("kubernetes", '|{"cpu":"2","pods":"9"}\n' * 2, ["2 nodes of cpu 2"]),
    ],
)
def test_what_a_scheduler_offers_is_reported(name: str, printed: str, offered: list[str]) -> None:
    assert DIALECTS[name].read_offer(printed) == offered


def test_states_of_grid_engine() -> None:
    """Letters as qstat(1) has them."""
    phases = [phase_of(state).value for state in ("qw", "r", "hr", "dr", "t", "s", "?")]
    assert phases == ["waits", "runs", "runs", "ended", "waits", "waits", "waits"]


def test_a_job_is_known_from_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JOB_ID", "SGE_TASK_ID", "PBS_JOBID", "FLUX_JOB_ID"):
        monkeypatch.delenv(name, raising=False)
    assert not any(map(in_job, ("gridengine", "pbs", "torque", "flux")))
    monkeypatch.setenv("JOB_ID", "7")
    assert in_job("gridengine") == "", "others set JOB_ID too"
    monkeypatch.setenv("SGE_TASK_ID", "undefined")
    monkeypatch.setenv("PBS_JOBID", "8.s")
    assert (in_job("gridengine"), in_job("pbs")) == ("7", "8.s")


GRID = (
    'scheduler = { name = "gridengine", nodes = 2, time = "2 h", slots = 4,'
    ' parallel_environment = "mpi", options = ["-P lab"] }'
)
SLURM = 'scheduler = { name = "slurm", nodes = 2, time = "2 h" }'
TORQUE = 'scheduler = { name = "torque", nodes = 2, time = "2 h", slots = 4 }'


def load(folder: Path, a: str, b: str = "") -> Hosts:
    return load_study(write_arms(folder, a, b, factor="cluster"), lambda _: None).arms[0].hosts


def test_an_arm_asks_for_nodes_and_says_how_ssh_reaches_them(tmp_path: Path) -> None:
    hosts = load(tmp_path, f'{GRID}\nssh = {{ user = "me" }}')
    asked = Scheduler("gridengine", 2, 7200.0, "", "", "", ("-P lab",), 4, "mpi")
    assert (hosts.scheduler, hosts.ssh.user) == (asked, "me")
    assert of_json(Hosts, json.loads(json.dumps(asdict(hosts)))) == hosts


@pytest.mark.parametrize(
    ("a", "b", "cause"),
    [
        (GRID.replace(' parallel_environment = "mpi",', ""), "", "environment: is missing"),
        (GRID.replace('"mpi"', '"-q"'), "", "must not begin with '-'"),
        (GRID.replace("slots = 4", "slots = 0"), "", "slots = 0: cannot be used"),
        (GRID.replace("-P lab", "-pe mpi 9"), "", "-pe is given by Paribus as `parallel_envir"),
        (GRID.replace("-P lab", "-w n"), "", "-w is given by Paribus so that launches find"),
        (GRID.replace('"gridengine"', '"pbs"'), "", "parallel_environment: is not for PBS"),
        (TORQUE.replace(", slots = 4", ""), "", "slots: is missing"),
        (TORQUE.replace('"torque"', '"flux"'), "", "slots: is not for Flux"),
        (TORQUE.replace('"torque"', '"slurm"'), "", "slots: is not for Slurm"),
        (TORQUE.replace("slots = 4", 'slots = 4, options = ["-qfast"]'), "", "-q is given by Pari"),
        (GRID, TORQUE, "another arm asks Grid Engine, and a study asks one scheduler"),
        (f"{SLURM}\nssh = {{}}", "", "Slurm itself leads to this arm's nodes"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(tmp_path: Path, a: str, b: str, cause: str) -> None:
    with pytest.raises(StudyError) as refused:
        load(tmp_path, a, b)
    assert cause in str(refused.value)
