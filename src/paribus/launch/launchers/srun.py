"""Slurm's srun: each launch is a step of the job that has the nodes, and srun starts its ranks.

Other launchers start their daemons by the agent, inside a guard on each node. srun's ranks are
children of slurmd instead. So the agent starts a command on each other node that holds the launch
there: its guard makes the launch's directory, reads how busy the node is, and ends all processes
with the launch's mark in their environment. It ends when the ranks of its node have closed a pipe.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from pathlib import PurePosixPath

from paribus.core import Command, Family, Mpi, Placement, UserError

LIST = ("srun", "--mpi=list")
"""The command that lists the plug-ins of --mpi."""

JOB = "PARIBUS_JOB"
"""The variable of shells on lent nodes that has the number of the job."""

PLUGINS: dict[Family, tuple[str, ...]] = {
    "openmpi": ("pmix",),
    "mpich": ("pmi2",),
    "intelmpi": ("pmi2",),
}
"""The plug-ins that each family's library works with, best first."""

INTEL = "I_MPI_PMI_LIBRARY"

# Waits on a node until its $2 ranks have opened and closed the pipe; $1 is the node.
_HOLD = """\
mkfifo "ranks.$1" && exec 4<>"ranks.$1" || exit 2
left=$2
while [ "$left" -gt 0 ]; do
  read -r _ <&4
  left=$((left - 1))
done
exec 3<"ranks.$1" 4<&-
read -r _ <&3
exit 0
"""

# Starts a rank, on another node than the first ($1) once the pipe, and so the launch's directory
# ($2), is there. The pipe stays open as long as the rank lives.
_RANK = """\
first=$1 pipe=$2/ranks.$SLURMD_NODENAME
shift 2
if [ "$SLURMD_NODENAME" != "$first" ]; then
  tries=0
  until [ -p "$pipe" ]; do
    tries=$((tries + 1))
    [ "$tries" -lt 3000 ] || {
      echo "paribus-srun: $SLURMD_NODENAME was not ready for ranks in 30 s" >&2
      exit 2
    }
    sleep 0.01
  done
  exec 9>"$pipe"
  echo >&9
fi
cd "$PARIBUS_CWD" || exit 2
exec "$@"
"""

# Holds the launch on all $3 (node=ranks ...), by the agent $1 and _HOLD $2, then starts the step.
_STEP = f"""\
agent=$1 hold=$2 others=$3 SLURM_HOSTFILE=$4
shift 4
PARIBUS_CWD=$(pwd)
export SLURM_HOSTFILE PARIBUS_CWD
number=0
for one in $others; do
  number=$((number + 1))
  export "PARIBUS_GUARD_$number=$PARIBUS_LAUNCH"
done
for one in $others; do
  "$agent" "${{one%=*}}" "$hold ${{one%=*}} ${{one##*=}}" &
done
srun "--jobid=${JOB}" "$@"
"""


def launch(program: Command, *, ranks: int, placement: Placement, scratch: str) -> Command:
    """Return the command of a step of `ranks` ranks, each where its slot says.

    `program` has the environment that its library needs. The step shares the job's nodes with the
    steps by which Paribus entered them, and binds no rank: `bind` does.
    """
    first = placement.hosts[0][0]
    others = " ".join(f"{name}={number}" for name, number in placement.hosts[1:])
    hold = f"exec {shlex.join(('/bin/sh', '-c', _HOLD, 'paribus-hold'))}"
    names = PurePosixPath(scratch, "ranks.txt")
    options = (
        *("--quiet", "--overlap", "--whole", "--overcommit", "--mem=0", "--export=ALL"),
        *("--cpu-bind=none", "--distribution=arbitrary", "--kill-on-bad-exit=1", "--chdir=/"),
        *(f"--nodes={len(placement.hosts)}", f"--ntasks={ranks}", f"--mpi={placement.pmi}"),
    )
    step = ("/bin/sh", "-c", _STEP, "paribus-srun", placement.agent or "", hold, others, str(names))
    rank = ("/bin/sh", "-c", _RANK, "paribus-rank", first, scratch)
    files = {**program.files, names.name: "".join(f"{one.node}\n" for one in placement.slots)}
    return replace(program, argv=(*step, *options, *rank, *program.argv), files=files)


def read_plugins(printed: str) -> list[str]:
    """Return the plug-ins in the output of LIST: one on each line, below a title.

    >>> read_plugins("MPI plugin types are...\\n\\tnone\\n\\tpmi2\\nspecific pmix plugin versions")
    ['none', 'pmi2']
    """
    lines = (re.fullmatch(r"(?:srun: )?\s*(\w+)\s*", line) for line in printed.splitlines())
    return [line[1] for line in lines if line]


def choose_plugin(mpi: Mpi, offered: list[str], place: str) -> str:
    """Return the plug-in of `offered` that starts ranks of `mpi`.

    Raises UserError if none does; `place` is that of the arm in the study file.
    """
    needs = PLUGINS.get(mpi.family, ())
    found = next((one for one in needs if one in offered), "")
    if not found:
        raise UserError(
            f"srun offers {', '.join(offered) or 'no plug-in'} (`{' '.join(LIST)}`), and {mpi}"
            f" needs {' or '.join(needs) or 'its own launcher'}",
            place=f"{place}.launcher",
            fix="remove `launcher`: then the MPI's own starts the ranks",
        )
    return found
