"""No launcher: one process, on this machine or on the first host of the placement."""

from __future__ import annotations

import shlex
from dataclasses import replace

from paribus.core import Command, Placement

# What binding.py reads first, so that a rank variable inherited from a batch system is not obeyed.
RANK = {"PARIBUS_RANK": "0"}


def launch(program: Command, *, placement: Placement) -> Command:
    """Return `program` started once; through the launch agent, or ssh, where hosts are given.

    ssh carries no environment, so that of `program` goes into the remote command line.
    """
    env = {**program.env, **RANK}
    if not placement.hosts:
        return replace(program, env=env)
    settings = (f"{key}={value}" for key, value in env.items())
    remote = shlex.join(("env", *settings, *program.argv))
    return replace(program, argv=(placement.agent or "ssh", placement.hosts[0][0], remote))
