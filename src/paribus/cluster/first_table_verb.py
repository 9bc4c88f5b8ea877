"""`--first-table`: latency and bandwidth of all pairs of a cluster's nodes, shown and drawn."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from paribus.core import Hosts, UserError
from paribus.hosts.reached import Host


def show(
    hosts: Hosts, there: Sequence[Host], *, network: str, mpi: str, directory: Path, quiet: bool
) -> None:
    """Measure all pairs of the nodes `there`; print the table unless `quiet`, draw it as files.

    Outputs and pictures are in `directory`/first-table. Raises UserError for a single node, and as
    make_ready and first_table do.
    """
    from paribus.core import Arm
    from paribus.hosts.remote import HostStation
    from paribus.launch.local import LocalStation
    from paribus.launch.ready import make_ready
    from paribus.lenses.matrices.first_table import asked, first_table
    from paribus.lenses.matrices.lens import print_matrix, write_matrices
    from paribus.report.printing import console_on

    if len(there) < 2:
        raise UserError("one node has no pairs", place="--first-table", fix="name two or more")
    arm = Arm("cluster", mpi=mpi or None, hosts=replace(hosts, network=network))
    study = asked(arm, len(there))
    folder = directory / "first-table"
    folder.mkdir(parents=True, exist_ok=True)
    with LocalStation() as local, HostStation(there, local) as station:
        ready = make_ready(study, _tell, {arm.name: station})[arm.name]
        matrices = first_table(station, ready, study, folder, _tell)
    if not quiet:
        console = console_on(sys.stdout)
        for matrix in matrices:
            console.print()
            print_matrix(matrix, console)
        sys.stdout.flush()  # Drawing takes a second.
    write_matrices(matrices, folder, {"png", "svg"})
    print(
        f"paribus: the heat maps, and the outputs of all launches, are in {folder}", file=sys.stderr
    )


def _tell(text: str) -> None:
    print(f"paribus: {text}", file=sys.stderr)
