"""Commands of a batch system that misbehave: small shell scripts on a PATH, for each dialect.

They keep jobs as files, and answer as the real ones do, but for the next calls that `fault` names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from processes import executable

_COMMANDS = r"""#!/bin/sh
here=@HERE@
case ${0##*/}:$* in
    squeue:*--json*)
        [ -s "$here/plain" ] || { echo "squeue: unrecognized option '--json'" >&2 && exit 1; }
        ;;
    squeue:*) [ ! -s "$here/plain" ] || plain=yes ;;
esac
id() { for job in "$here"/jobs/*; do [ ! -e "$job" ] || echo "${job##*/}"; done; }
case ${0##*/}:$* in
    kubectl:auth* | kubectl:get\ events*) exit ;;
    kubectl:get\ --raw*)
        [ -e "$here/away" ] || exit 0
        cat "$here/unreachable" >&2
        exit 1
        ;;
    sbatch:* | qsub:* | flux:batch* | kubectl:create*) kind=submit ;;
    squeue:* | qstat:* | flux:jobs\ --json* | kubectl:get*) kind=queue ;;
    qselect:* | flux:jobs*) kind=select ;;
    *) kind=cancel ;;
esac
fault=right
if [ -s "$here/faults.$kind" ]; then
    read -r fault <"$here/faults.$kind"
    sed -i 1d "$here/faults.$kind"
fi
echo "$kind $fault" >>"$here/log"
case $fault in
    unreachable) cat "$here/unreachable" >&2 && exit 1 ;;
    refused) cat "$here/refused" >&2 && exit 1 ;;
esac

render() {
    if [ -n "$plain" ]; then
        for number in $(id); do
            name=$(cat "$here/jobs/$number")
            sed "s/@ID@/$number/; s/@NAME@/$name/; s/@STATE@/$1/" "$here/plain"
        done
        return
    fi
    cat "$here/head"
    before=
    for number in $(id); do
        printf '%s' "$before"
        sed "s/@ID@/$number/g; s/@NAME@/$(cat "$here/jobs/$number")/g; s/@STATE@/$1/g" "$here/row"
        before=$(cat "$here/between")
    done
    cat "$here/tail"
}

named() {
    for number in $(id); do
        [ "$(cat "$here/jobs/$number")" != "$1" ] || echo "$number"
    done
}

case $kind in
    submit)
        name=$(sed -n 's/^\(#.*-N \|#.*--job-name=\| *paribus\/name: \)//p')
        number=$(($(cat "$here/count") + 1))
        echo "$number" >"$here/count"
        echo "$name" >"$here/jobs/$number"
        answer=$(sed "s/@ID@/$number/; s/@F58@/$((number + 1))/" "$here/submitted")
        ;;
    queue)
        state=$(cat "$here/state")
        [ "$fault" != unknown ] || state=Y9
        answer=$(render "$state")
        ;;
    select)
        case " $*" in
            *\ -N* | *--name=*) for name in "$@"; do named "${name#--name=}"; done ;;
            *) id ;;
        esac
        exit 0
        ;;
    cancel)
        for name in "$@"; do
            name=${name#--selector=paribus/job=}
            name=${name%%,*}
            rm -f "$here/jobs/$name"
            for number in $(named "${name#--name=}"); do rm -f "$here/jobs/$number"; done
        done
        [ "$fault" != slow ] || exec sleep 30
        exit 0
        ;;
esac
case $fault in
    slow) exec sleep 30 ;;
    wrong) echo 'Message of the day: maintenance on Monday' ;;
    empty) ;;
    partial) printf '%s' "$answer" | head -c $((${#answer} * 2 / 3)) ;;
    *) [ -z "$answer" ] || printf '%s\n' "$answer" ;;
esac
"""


@dataclass(frozen=True)
class Manners:
    """How the commands of one dialect answer. A job has the nodes h1 and h2 while it runs.

    `plain` is the row of a squeue that knows JSON, where it is asked for text.
    """

    programs: tuple[str, ...]
    row: str
    runs: str
    submitted: str
    unreachable: str
    refused: str
    key: str
    head: str = ""
    between: str = ""
    tail: str = ""
    plain: str = ""


_PBS = """\
Job Id: @ID@.s
    Job_Name = @NAME@
    job_state = @STATE@
    exec_host = h1/0*2+h2/0*2
    Resource_List.walltime = 00:10:00
    stime = Mon Nov 23 20:00:00 2026
"""
_SGE = """\
<job_list state="running"><JB_job_number>@ID@</JB_job_number><JB_name>@NAME@</JB_name>
<state>@STATE@</state><JAT_start_time>2026-11-23T20:00:00</JAT_start_time>
<queue_name>p.q@HOST@</queue_name><hard_request name="h_rt">600</hard_request></job_list>
"""
_QSTAT = ("qsub", "qstat", "qdel", "qselect", "ssh")

_POD = """\
{"kind": "Pod",
 "metadata": {"name": "@ID@-@INDEX@", "namespace": "lab", "labels": {"job-name": "@ID@"},
  "annotations": {"batch.kubernetes.io/job-completion-index": "@INDEX@"}},
 "spec": {"nodeName": "@NODE@"},
 "status": {"phase": "@STATE@", "podIP": "@NODE@", "containerStatuses": [
  {"name": "ranks", "state": {"running": {"startedAt": "2026-11-25T04:00:00Z"}}}]}}
"""
_PODS = [
    _POD.replace("@INDEX@", str(index)).replace("@NODE@", f"h{index + 1}") for index in range(2)
]
_JOB = """\
{"kind": "Job", "metadata": {"name": "@ID@", "annotations": {"paribus/name": "@NAME@",
 "paribus/nodes": "2", "paribus/seconds": "600"}}, "spec": {}, "status": {}}
"""

_SLURM = Manners(
    programs=("sbatch", "squeue", "srun", "scancel", "sinfo"),
    row="@ID@|@STATE@|9:00|h[1-2]|@NAME@|None\n",
    runs="RUNNING",
    submitted="@ID@",
    unreachable="sbatch: error: Unable to contact slurm controller (connect failure)",
    refused="sbatch: error: invalid partition specified: p",
    key="partition",
)
_SLURM_JOB = """\
{"job_id": @ID@, "name": "@NAME@", "job_state": "@STATE@", "state_reason": "None",
 "nodes": "h[1-2]", "time_limit": 10, "end_time": 1795598487}
"""

MANNERS: Mapping[str, Manners] = {
    "slurm": _SLURM,
    "slurm, JSON": replace(
        _SLURM,
        head='{"errors": [], "jobs": [',
        row=_SLURM_JOB,
        between=",",
        tail="]}\n",
        plain=_SLURM.row,
    ),
    "gridengine": Manners(
        programs=(*_QSTAT, "qconf"),
        head="<?xml version='1.0'?>\n<job_info><queue_info>\n",
        row="".join(_SGE.replace("@HOST@", f"@{host}") for host in ("h1", "h2")),
        tail="</queue_info></job_info>\n",
        runs="r",
        submitted="@ID@",
        unreachable="error: commlib error: got select error (Connection refused)",
        refused='Unable to run job: Job was rejected because job requests unknown queue "p".',
        key="partition",
    ),
    "pbs": Manners(
        programs=(*_QSTAT, "pbs_rstat"),
        row=_PBS,
        runs="R",
        submitted="@ID@.s",
        unreachable="qstat: cannot connect to server s (errno=111)",
        refused="qsub: Unknown queue",
        key="partition",
    ),
    "torque": Manners(
        programs=(*_QSTAT, "qchkpt"),
        row=_PBS.replace("    stime", "    start_time"),
        runs="R",
        submitted="@ID@.s",
        unreachable="Communication failure.\nqstat: cannot connect to server s (errno=15096)",
        refused="qsub: submit error (Unknown queue MSG=requested queue not found)",
        key="partition",
    ),
    "flux": Manners(
        programs=("flux", "ssh"),
        head='{"jobs": [',
        row='{"id": @ID@, "name": "@NAME@", "state": "@STATE@", "nodelist": "h[1-2]",'
        ' "expiration": 1795464000.0}\n',
        between=",",
        tail="]}\n",
        runs="RUN",
        submitted="f@F58@",
        unreachable="flux-jobs: ERROR: Unable to connect to Flux",
        refused="flux-batch: ERROR: requested nnodes (2) exceeds policy limit of 1 for queue p",
        key="nodes",
    ),
    "kubernetes": Manners(
        programs=("kubectl",),
        head='{"items": [',
        row=",".join([_JOB, *_PODS]),
        between=",",
        tail="]}\n",
        runs="Running",
        submitted="job.batch/@ID@",
        unreachable="The connection to the server 10.77.255.254:16443 was refused - did you"
        " specify the right host or port?",
        refused='Error from server (NotFound): namespaces "x" not found',
        key="namespace",
    ),
}


class Commands:
    """The commands of one dialect in `folder`, which is made; `bin` goes on the PATH."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.manners = folder, MANNERS[name]
        self.bin = folder / "bin"
        for one in ("bin", "jobs"):
            (folder / one).mkdir(parents=True)
        manners = self.manners
        files = {"head": manners.head, "row": manners.row, "tail": manners.tail, "count": "0\n"}
        files |= {
            "between": manners.between,
            "plain": manners.plain,
            "submitted": f"{manners.submitted}\n",
        }
        files |= {"unreachable": manners.unreachable, "refused": manners.refused}
        for file, text in {**files, "state": manners.runs, "log": ""}.items():
            (folder / file).write_text(text)
        for program in manners.programs:
            executable(self.bin / program, _COMMANDS.replace("@HERE@", str(folder)))

    def fault(self, kind: str, *faults: str) -> None:
        """Let the next calls of a kind, submit, queue or cancel, answer so."""
        (self.folder / f"faults.{kind}").write_text("".join(f"{one}\n" for one in faults))

    def jobs(self) -> list[Path]:
        """Return the jobs that have not ended."""
        return sorted((self.folder / "jobs").iterdir())

    def asked(self, kind: str) -> list[str]:
        """Return how the calls of a kind were answered."""
        lines = (line.split() for line in (self.folder / "log").read_text().splitlines())
        return [fault for its, fault in lines if its == kind]
