"""Whether launches still start on all hosts, after one on several hosts failed.

A cut link, or a host that hangs, makes launches fail whatever their arm. To see that, the launcher
starts `true` on the same hosts, without the arm's settings: it needs nothing there but MPI.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace

from paribus.core import Address, LaunchError, Outcome, Program, State
from paribus.launch.arms import Ready, compose_ours
from paribus.launch.station import Station

BACK_S = 20.0
"""Seconds that hosts may take to come back if no launch starts on them."""

TRY_S = 10.0
"""Seconds in which a launch of `true` must have ended; it takes a fraction of one."""

PAUSE_S = 1.0
"""Seconds between two tries."""


def checked_hosts(
    outcome: Outcome, ready: Ready, station: Station, names: Sequence[str]
) -> tuple[Outcome, bool]:
    """Return `outcome`, as a fault if it failed because no launch starts on the hosts `names`.

    The second value is whether that fault is over: this waits up to BACK_S until launches start
    there again. Raises MachineError for a host that is gone.
    """
    names = tuple(dict.fromkeys(names))
    if outcome.state in (State.OK, State.FAULT) or ready.mpi is None or len(names) < 2:
        return outcome, False
    begin = time.monotonic()
    if _starts(ready, station, names):
        return outcome, False
    where = _where(ready, station, names)
    back = False
    while not back and time.monotonic() - begin < BACK_S:
        time.sleep(PAUSE_S)
        back = _starts(ready, station, names)
    what = (
        f"started there for {time.monotonic() - begin:.0f} s" if back else "starts there any more"
    )
    error = f"{where}: no launch {what} ({outcome.error})"
    return replace(outcome, state=State.FAULT, samples=(), error=error), back


def _where(ready: Ready, station: Station, names: Sequence[str]) -> str:
    """Return the host to which nothing starts from the first, "node2 (from node1)", or all."""
    for other in names[1:]:
        # Of two hosts it is known already; by a second try the link may be back.
        if len(names) == 2 or not _starts(ready, station, (names[0], other)):
            return f"{other} (from {names[0]})"
    return ", ".join(names)


def _starts(ready: Ready, station: Station, names: Sequence[str]) -> bool:
    """Return whether a launch of `true`, one rank on each host, ends with 0 in TRY_S."""
    hosts = ready.arm.hosts
    assert hosts is not None
    known = {one.name: one for one in hosts.addresses}
    used = tuple(known.get(name, Address(name, name)) for name in names)
    arm = replace(
        ready.arm,
        hosts=replace(hosts, addresses=used),
        ranks_per_host=1,
        env={},
        transport="auto",
        container=None,
    )
    scratch = f"{station.scratch}/true"
    command = compose_ours(replace(ready, arm=arm), Program(("true",)), len(names), scratch)
    nowhere = os.devnull
    try:
        done = station.run(
            command, stdout=nowhere, stderr=nowhere, timeout_s=TRY_S, scratch=scratch
        )
    except LaunchError:
        return False
    return done.exit_code == 0 and not done.timed_out
