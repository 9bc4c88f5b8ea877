"""Measure incast on links of pocket hosts: three senders, a receiver, and a victim beside it.

    tools/incast_on_a_link.py [RATE]

On five pocket hosts whose links have RATE ("1 Gbit"): h1 receives and has the victim, h2 to h4
send, h5 has the victim's partner. One launch of the kernel `many_to_one` over sockets and one over
MPI, with messages of 64 KiB on 1, 4 and 16 connections. Prints a table.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paribus.benchmarks import benchmark_of
from paribus.core import Arm, Hosts, Sample, Selection, Settings, State, Study
from paribus.hosts.links import read_link
from paribus.launch import launching
from paribus.launch.ready import make_ready
from paribus.launch.stations import stations

SENDERS = 3


def samples_of(
    link: Mapping[str, str], parameters: Mapping[str, Any], folder: Path
) -> tuple[Sample, ...]:
    """Return the samples of one launch with SENDERS senders; its outputs stay in `folder`."""
    hosts = Hosts(pocket=SENDERS + 2, order="host", link=read_link(link))
    asked = {"over": "sockets", **parameters}
    selection = Selection("many_to_one", "many_to_one", SENDERS + 3, asked)
    arm = Arm("pocket", hosts=hosts)
    study = Study("", "nothing", (arm,), (selection,), Settings(bind="none"), path="incast")
    benchmark = benchmark_of(selection)
    with stations(study) as opened:
        station = opened[arm.name]
        ready = make_ready(study, lambda _: None, opened)[arm.name]
        scratch = f"{station.scratch}/incast"
        logs = folder / "incast.out", folder / "incast.err"
        prepared = launching.prepare(ready, (selection, benchmark), 1, scratch, logs, 120.0)
        outcome = launching.launched(station, prepared)
    if outcome.state is not State.OK:
        raise SystemExit(f"the launch failed: {outcome.error}")
    return outcome.samples


def launched(
    link: Mapping[str, str], parameters: Mapping[str, Any], folder: Path
) -> dict[str, dict[int, float]]:
    """Return the median of each metric by sender (0: of all) of a launch of one case."""
    found: dict[str, dict[int, float]] = {}
    for sample in samples_of(link, parameters, folder):
        sender = int(sample.case.get("sender") or 0)
        found.setdefault(sample.metric, {})[sender] = statistics.median(sample.values)
    return found


def main() -> None:
    rate = sys.argv[1] if sys.argv[1:] else "1 Gbit"
    print(
        "| over | connections | goodput | flows (Mbit/s) | fairness | latency idle, loaded (us) |"
    )
    print("|---|---|---|---|---|---|")
    for over in ("sockets", "mpi"):
        for connections in (1, 4, 16):
            asked = {"over": over, "bytes": [65536], "connections": [connections]}
            with tempfile.TemporaryDirectory() as folder:
                found = launched({"rate": rate}, asked, Path(folder))
            one = {name: values.get(0, 0.0) for name, values in found.items()}
            flows = ", ".join(f"{value:.0f}" for value in found["flow"].values())
            print(
                f"| {over} | {connections} | {one['goodput']:.0f} | {flows} |"
                f" {one['fairness']:.3f} | {one['idle_latency']:.0f}, {one['loaded_latency']:.0f} |"
            )


if __name__ == "__main__":
    main()
