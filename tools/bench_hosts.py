"""What hosts cost: a launch on them, a pocket cluster, a preflight. Called by bench.py --hosts."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from containers.gates import Gate, gated
from paribus.cluster.preflight import preflight
from paribus.core import Address, Command, Hosts, Ssh
from paribus.hosts.pocket import Pocket
from paribus.hosts.reached import Host
from paribus.hosts.remote import HostStation
from paribus.hosts.ssh import configure, reached_by
from paribus.launch.local import LocalStation
from paribus.launch.station import Station

LAUNCHES = 60


def hosts_cost() -> list[tuple[str, str, str]]:
    """Return rows of bench.py: what, how much, the goal."""
    rows = []
    root = os.geteuid() == 0
    with LocalStation() as local:
        with Pocket(2, directory=f"{local.here}/two") as pocket:
            rows.append(_launches("entered", pocket.hosts, local))
        if root:
            with gated(2, f"{local.here}/gated") as gate:
                rows.append(_launches("over ssh", _by_ssh(gate, local), local))
        took = [_up(4, f"{local.here}/four{turn}") for turn in range(5)]
        rows.append(("a pocket cluster of 4 hosts", f"{median(took):.2f} s", "1 s"))
        with Pocket(64, directory=f"{local.here}/many") as pocket:
            seconds = preflight(pocket.hosts).seconds
        rows.append(("preflight of 64 pocket hosts", f"{seconds:.1f} s", "20 s"))
    return rows


def _launches(way: str, hosts: Sequence[Host], local: LocalStation) -> tuple[str, str, str]:
    """Return how much longer a launch of `true` takes on hosts than on this machine, in turns."""
    with HostStation(hosts, local) as station:
        there, here = [], []
        for number in range(LAUNCHES):
            there.append(_launch(station, local.here, number))
            here.append(_launch(local, local.here, number))
    more = 1e3 * (median(there) - median(here))
    shown = f"{1e3 * median(there):.1f} ms, {more:.1f} ms more than on this machine"
    return f"a launch of `true` on a host, {way}", shown, "30 ms"


def _launch(station: Station, folder: str, number: int) -> float:
    begin = time.perf_counter()
    done = station.run(
        Command(("true",)),
        stdout=f"{folder}/out",
        stderr=f"{folder}/err",
        timeout_s=60.0,
        scratch=f"{station.scratch}/{number}",
    )
    if done.exit_code:
        raise RuntimeError(f"`true` ended with {done.exit_code}")
    return time.perf_counter() - begin


def _by_ssh(gate: Gate, local: LocalStation) -> tuple[Host, ...]:
    """Return the hosts of a pocket cluster behind their sshd."""
    addresses = tuple(Address(name, address) for name, address in gate.addresses)
    asked = Hosts(addresses, ssh=Ssh(user=gate.user, identity=gate.identity))
    config = configure(asked, gate.known_hosts, Path(local.here))
    return tuple(
        replace(one, shell=(*gate.prefix, *one.shell), master=(*gate.prefix, *one.master))
        for one in reached_by(config, asked.names)
    )


def _up(hosts: int, directory: str) -> float:
    begin = time.perf_counter()
    with Pocket(hosts, directory=directory):
        return time.perf_counter() - begin
