"""What Slurm is asked and what it answers: without one."""

from __future__ import annotations

import json
import math
import re
import time
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.border import of_json
from paribus.core import AllocationError, Hosts, Launch, Scheduler, StudyError
from paribus.judge.evidence import Evidence
from paribus.launch.lease import check_time
from paribus.launch.station import Station
from paribus.schedulers.dialect import Job, Phase
from paribus.schedulers.known import DIALECTS
from paribus.studyfile.load import load_study
from studies import write_arms

slurm = DIALECTS["slurm"]

# As squeue 22.05.8 of Debian 12 printed them on 2026-11-23, with the format of slurm.queue().
PRINTED = """\
1|CANCELLED|4:58|h[1-2]|paribus-0123456789-1-a|None
6|FAILED|1:00:00|h4|failed|NonZeroExitCode
2|PENDING|5:00||paribus-0123456789-1-a|PartitionConfig
3|PENDING|16:40:00||paribus-0123456789-1-a|PartitionTimeLimit
5|PENDING|10:00||paribus-0123456789-2-b|Resources
4|RUNNING|54:51|h[1-3]|paribus-0123456789-1-a|None
"""


def test_states_as_they_were_printed() -> None:
    jobs = slurm.read_queue(PRINTED, now=1000.0)
    phases = {**dict.fromkeys("16", Phase.ENDED), **dict.fromkeys("235", Phase.WAITS)}
    assert {key: job.phase for key, job in jobs.items()} == {**phases, "4": Phase.RUNS}
    assert [key for key, job in jobs.items() if job.never] == ["2", "3"]
    assert (jobs["4"].nodes, jobs["4"].ends_at) == (("h1", "h2", "h3"), 1000.0 + 54 * 60 + 51)
    assert str(jobs["2"]) == "PENDING: PartitionConfig"


@pytest.mark.parametrize(
    "line", ["x|RUNNING|1:00|h1|a|None", "4| |1:00|h1|a|None", "4|RUNNING|1:00|h1"]
)
def test_what_is_no_line_of_squeue_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(repr(line))} is not a line of squeue$"):
        slurm.read_queue(PRINTED + line)


RECORDED = Path(__file__).with_name("recorded")


def test_json_says_what_the_text_says() -> None:
    """Recorded one after the other: a job without a limit has an end in the text, in 364 days."""
    text = slurm.read_queue((RECORDED / "slurm.txt").read_text(), now=0.0)
    read = slurm.read_queue((RECORDED / "slurm.json").read_text())
    assert len(read) == 7
    assert {key: replace(job, ends_at=0.0) for key, job in read.items()} == {
        key: replace(job, ends_at=0.0) for key, job in text.items()
    }
    assert read["1"].nodes == ("h1", "h2")
    assert (
        read["1"].ends_at
        == json.loads((RECORDED / "slurm.json").read_text())["jobs"][[*read].index("1")]["end_time"]
    )
    assert [key for key, job in read.items() if job.never] == ["2", "6"]


def test_a_controller_that_is_away_has_no_empty_queue() -> None:
    """Squeue ends with exit code 0 then."""
    with pytest.raises(ValueError, match="Failed while looking for jobs"):
        slurm.read_queue((RECORDED / "slurm_away.json").read_text())


def newer(states: list[str], end: object, limit: object) -> Job:
    """A job in the form of data_parser v0.0.40, of its page (slurm.schedmd.com/rest_api.html)."""
    row = {"job_id": 9, "name": "x", "job_state": states, "state_reason": "None", "nodes": "h1"}
    row |= {"end_time": end, "time_limit": limit}
    [job] = slurm.read_queue(json.dumps({"errors": [], "jobs": [row]})).values()
    return job


@pytest.mark.parametrize(
    ("states", "phase"),
    [
        (["RUNNING"], Phase.RUNS),
        (["RUNNING", "CONFIGURING"], Phase.WAITS),
        (["CANCELLED", "COMPLETING"], Phase.ENDED),
        (["PENDING", "REQUEUED"], Phase.WAITS),
    ],
)
def test_the_json_of_newer_versions(states: list[str], phase: Phase) -> None:
    number = {"set": True, "infinite": False, "number": 1795598487}
    job = newer(states, number, number)
    assert (job.phase, job.state) == (phase, ",".join(states))
    assert job.ends_at == (1795598487.0 if phase is Phase.RUNS else 0.0)
    without = newer(["RUNNING"], number, {"set": True, "infinite": True, "number": 0})
    assert without.ends_at == math.inf


KEYS = ("job_id", "name", "job_state", "state_reason", "nodes", "end_time", "time_limit")


def test_json_without_what_it_must_have_is_refused() -> None:
    for key in KEYS:
        damaged = json.loads((RECORDED / "slurm.json").read_text())
        del damaged["jobs"][2][key]
        with pytest.raises(ValueError, match="squeue --json"):
            slurm.read_queue(json.dumps(damaged))
    for key in ("job_id", "job_state", "end_time"):
        damaged = json.loads((RECORDED / "slurm.json").read_text())
        damaged["jobs"][2][key] = []
        with pytest.raises(ValueError, match="squeue --json"):
            slurm.read_queue(json.dumps(damaged))
    for text in ("{", "{}", '{"errors": []}', '{"errors": [], "jobs": 3}', '{"errors": 7}'):
        with pytest.raises(ValueError, match=r"squeue|Expecting|line"):
            slurm.read_queue(text)


@pytest.mark.parametrize(
    ("left", "seconds"),
    [("9", None), ("4:58", 298), ("1:00:00", 3600), ("1-00:04:58", 86698), ("UNLIMITED", math.inf)],
)
def test_time_that_is_left(left: str, seconds: float | None) -> None:
    """As squeue's page describes %L; days and no limit were not seen."""
    line = f"4|RUNNING|{left}|h1|x|None"
    if seconds is None:
        with pytest.raises(ValueError, match="no time"):
            slurm.read_queue(line)
    else:
        assert slurm.read_queue(line, now=0.0)["4"].ends_at == seconds


@given(
    name=st.from_regex(r"paribus-[0-9a-f]{10}-[A-Za-z0-9._+-]{1,40}", fullmatch=True),
    minutes=st.integers(1, 10**6),
)
def test_the_script_shows_all_that_it_does(name: str, minutes: int) -> None:
    asked = Scheduler("slurm", 3, 60.0 * minutes, "p", "a", "c", ("--qos=short",))
    lines = slurm.script(asked, name).splitlines()
    assert lines[0] == "#!/bin/sh"
    assert [line for line in lines if line.startswith("#SBATCH ")] == [
        *(f"#SBATCH --job-name={name}", "#SBATCH --nodes=3", f"#SBATCH --time={minutes}"),
        *("#SBATCH --exclusive", "#SBATCH --partition=p", "#SBATCH --account=a"),
        *("#SBATCH --constraint=c", "#SBATCH --no-requeue", "#SBATCH --output=/dev/null"),
        "#SBATCH --qos=short",
    ]
    assert [line for line in lines if not line.startswith("#")] == [f"exec sleep {60 * minutes}"]


def test_a_step_takes_part_in_all_of_the_job_and_forgets_it() -> None:
    argv = slurm.shell(Job("42", "a", Phase.RUNS, "RUNNING"), "h2")
    assert argv[0] == "srun"
    assert {"--jobid=42", "--nodelist=h2", "--overlap", "--whole", "--unbuffered"} <= set(argv)
    assert re.search(r"unset .*SLURM_.*exec /bin/sh$", argv[-1])


WHOLE = 'scheduler = { name = "slurm", nodes = 2, time = "90 min", options = ["--qos=x"] }'


def load(folder: Path, lines: str) -> Hosts | None:
    return load_study(write_arms(folder, lines, factor="cluster"), lambda _: None).arms[0].hosts


def test_an_arm_asks_for_nodes_and_plans_keep_it(tmp_path: Path) -> None:
    hosts = load(tmp_path, WHOLE)
    assert hosts.scheduler == Scheduler("slurm", 2, 5400.0, options=("--qos=x",))
    assert len(hosts.names) == 2
    assert of_json(Hosts, json.loads(json.dumps(asdict(hosts)))) == hosts


@pytest.mark.parametrize(
    ("lines", "cause"),
    [
        (WHOLE.replace("slurm", "lsf"), r"arms\.a\.scheduler\.name = 'lsf'"),
        (WHOLE.replace("nodes = 2, ", ""), "nodes: is missing"),
        (WHOLE.replace("nodes = 2", "nodes = 0"), "nodes = 0: cannot be used"),
        (WHOLE.replace(', time = "90 min"', ""), "time: is missing"),
        (WHOLE.replace("90 min", "90"), "time = '90': cannot be used"),
        (WHOLE.replace("90 min", "90 s"), "whole minutes"),
        (WHOLE.replace("--qos=x", "--nodes=7"), "--nodes is given by Paribus as `nodes`"),
        (WHOLE.replace("--qos=x", "-t5"), "-t is given by Paribus as `time`"),
        (WHOLE.replace("--qos=x", "--wrap=id"), "--wrap is given by Paribus"),
        (WHOLE.replace("--qos=x", "qos"), "is no option"),
        (WHOLE.replace("--qos=x", "--a\\nrm -rf x"), "is no option"),
        (WHOLE.replace("nodes", "partition = 'a b', nodes"), "one word"),
        (WHOLE.replace("nodes", "partion = 'p', nodes"), "did you mean 'partition'"),
        (f'hosts = "n1"\n{WHOLE}', "nodes come from its scheduler"),
        (f'{WHOLE}\nbefore = {{ on = "n1", run = "true" }}', "is no host"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(tmp_path: Path, lines: str, cause: str) -> None:
    with pytest.raises(StudyError) as refused:
        load(tmp_path, lines)
    assert re.search(cause, str(refused.value))


class Lease:
    """An allocation that ends some seconds from now."""

    def __init__(self, left_s: float) -> None:
        self.ends_at = time.time() + left_s

    def ended(self) -> None: ...


def evidence(*walls_s: float) -> Evidence:
    """The evidence of launches that took so long."""
    entries = [SimpleNamespace(wall_s=wall_s) for wall_s in walls_s]
    return cast(Evidence, SimpleNamespace(entries=lambda _: entries))


def test_a_block_that_may_not_fit_is_not_started() -> None:
    """Two launches, the slowest so far of 30 s: 90 s with what is kept free."""
    block = [Launch(number, 1, "x", arm, 1) for number, arm in enumerate("ab")]
    for left_s, fits in ((95.0, True), (85.0, False)):
        lease = Lease(left_s)
        stations = [cast(Station, SimpleNamespace(lease=one)) for one in (None, lease)]
        with nullcontext() if fits else pytest.raises(AllocationError, match="may take 90 s"):
            check_time(stations, evidence(10, 30, 20), block)
        check_time(stations, evidence(), block)
    check_time([cast(Station, SimpleNamespace(lease=None))], evidence(1e9), block)
