"""After a launch that failed across hosts: whether launches still start on all of them.

A cut link, or a host that hangs, makes launches fail whatever their arm. So the launcher starts
`true` on the same hosts, without the arm's settings: that needs nothing there but MPI.
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
"""Seconds that hosts which no launch starts on may take to come back."""

TRY_S = 10.0
"""Seconds in which a launch of `true` must have ended; it takes a fraction of one."""

PAUSE_S = 1.0
"""Seconds between two tries."""


def checked_hosts(
    outcome: Outcome, ready: Ready, station: Station, names: Sequence[str]
) -> tuple[Outcome, bool]:
    """Return `outcome`, as a fault if it failed because no launch starts on the hosts `names`.

    Also returns whether that is over: waits until launches start there again, up to BACK_S. Raises
    MachineError for a host that is gone.
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
    said = (
        f"started there for {time.monotonic() - begin:.0f} s" if back else "starts there any more"
    )
    error = f"{where}: no launch {said} ({outcome.error})"
    return replace(outcome, state=State.FAULT, samples=(), error=error), back


def _where(ready: Ready, station: Station, names: Sequence[str]) -> str:
    """Return between which hosts nothing starts: the first and another, or all of them."""
    for other in names[1:]:
        # Two are known already: to ask again may be to ask when the link is back.
        if len(names) == 2 or not _starts(ready, station, (names[0], other)):
            return f"{other} (from {names[0]})"
    return ", ".join(names)


def _starts(ready: Ready, station: Station, names: Sequence[str]) -> bool:
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
    own = replace(ready, arm=arm)
    command = compose_ours(own, Program(("true",)), len(names), scratch)
    nowhere = os.devnull
    try:
        done = station.run(
            command, stdout=nowhere, stderr=nowhere, timeout_s=TRY_S, scratch=scratch
        )
    except LaunchError:
        return False
    return done.exit_code == 0 and not done.timed_out
