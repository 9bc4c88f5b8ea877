"""Binding ranks to cores, the same for every launcher; and programs that need no launcher."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from paribus.core import Adapter, Command, Placement, Slot

# Each rank binds itself by this script, then executes the program.
#
# The launchers' own binding cannot be used: two containers that each count as a host bind both of
# their ranks to core 0 by Open MPI's default, and the ping-pong then shows a scheduler tick.
#
# Variables with the rank: serial.py, Open MPI, PMIx launchers, hydra and Slurm's PMI-2, srun.
_SCRIPT = """\
rank=${PARIBUS_RANK:-${OMPI_COMM_WORLD_RANK:-${PMIX_RANK:-${PMI_RANK:-${SLURM_PROCID:-}}}}}
cores=$1
shift
case $rank in
'' | *[!0-9]*)
  echo "paribus-bind: the launcher set no rank variable, so no core can be chosen" >&2
  exit 2 ;;
esac
left=$rank
for core in $cores; do
  if [ "$left" -eq 0 ]; then
    command -v taskset >/dev/null || {
      echo "paribus-bind: taskset is not installed on $(uname -n): install util-linux" >&2
      exit 2
    }
    exec taskset -c "$core" "$@"
  fi
  left=$((left - 1))
done
echo "paribus-bind: rank $rank has no core; the list is: $cores" >&2
exit 2
"""


def bind(program: Command, slots: Sequence[Slot]) -> Command:
    """Return the command by which rank n executes `program` bound to the cores of the nth slot.

    Cores are those of the slot's own node, so two nodes may list the same ones. Without cores in
    the slots `program` is returned as it is. Needs only sh and taskset where the rank starts; a
    rank that cannot be bound as asked exits with 2 and a sentence instead of running unbound.
    """
    groups = list(takewhile(bool, (slot.cores for slot in slots)))
    if not groups:
        return program
    listed = " ".join(",".join(map(str, group)) for group in groups)
    argv = ("/bin/sh", "-c", _SCRIPT, "paribus-bind", listed, *program.argv)
    return replace(program, argv=argv)


def adapter_env(adapter: Adapter) -> dict[str, str]:
    """Return the variables of UCX, of Open MPI's own verbs layer, and of NCCL for `adapter`.

    UCX: UCX_NET_DEVICES leaves TCP out, and shared memory in. NCCL_IB_HCA: `=` is an exact name.
    """
    port = str(adapter)
    env = {
        "UCX_NET_DEVICES": port,
        "OMPI_MCA_btl_openib_if_include": port,
        "NCCL_IB_HCA": f"={port}",
    }
    if adapter.gid_index is not None:
        names = ("UCX_IB_GID_INDEX", "OMPI_MCA_btl_openib_gid_index", "NCCL_IB_GID_INDEX")
        env |= dict.fromkeys(names, str(adapter.gid_index))
    return env


# `bind` reads this variable first, before one of a batch system that may be inherited.
RANK = {"PARIBUS_RANK": "0"}


def launch(program: Command, *, placement: Placement) -> Command:
    """Return the command that starts `program` once, on the first host of `placement`, if any.

    The launch agent, or ssh, leads there. Neither passes variables on, so those of `program` go
    into the remote command line.
    """
    env = {**program.env, **RANK}
    if not placement.hosts:
        return replace(program, env=env)
    settings = (f"{key}={value}" for key, value in env.items())
    remote = shlex.join(("env", *settings, *program.argv))
    return replace(program, argv=(placement.agent or "ssh", placement.hosts[0][0], remote))
