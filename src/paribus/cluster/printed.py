"""The result of a preflight on a terminal: a table of nodes, then the findings, worst first."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from paribus.core import Hosts, UserError, count, fold, format_bytes, format_seconds
from paribus.hosts.reached import Host
from paribus.report.printing import Row, heading, item, line, print_rows

if TYPE_CHECKING:
    from rich.console import Console

    from paribus.cluster.checks import Finding
    from paribus.cluster.preflight import Preflight


def show_first_table(
    hosts: Hosts, there: Sequence[Host], *, network: str, mpi: str, directory: Path, quiet: bool
) -> None:
    """Measure all pairs of the nodes `there`, print the matrices unless `quiet`, and draw them.

    Outputs and pictures go into `directory`/first-table. Raises UserError for a single node, and as
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
        ready = make_ready(study, _notify, {arm.name: station})[arm.name]
        matrices = first_table(station, ready, study, folder, _notify)
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


def _notify(text: str) -> None:
    print(f"paribus: {text}", file=sys.stderr)


STYLES = {"broken": "bold red", "warning": "yellow", "information": "", "ok": "dim"}
TITLES = {
    "broken": "Broken: MPI launches would fail, hang or be invalid",
    "warning": "Warnings",
    "information": "Good to know",
    "ok": "Fine",
}
HEAD = ("nodes", "address", "cores", "memory", "MPI", "clock", "answers in")

MOST_ROWS = 16
"""Nodes up to which each has a row of its own; of more, those that are alike share one."""


def print_preflight(found: Preflight, console: Console) -> None:
    """Print the nodes as a table, then the findings by grade, with the fix of each."""
    line(console, sentence(found), style="bold")
    console.print()
    print_rows(console, HEAD, _rows(found), right={2, 3, 5, 6}, coloured=())
    print_findings(found.findings, len(found.answers), console)


def print_findings(findings: Sequence[Finding], nodes: int, console: Console) -> None:
    """Print findings on a cluster of so many nodes by grade, with the fix of each."""
    for grade, title in TITLES.items():
        mine = [one for one in findings if one.grade == grade]
        if mine:
            heading(console, title)
            for one in mine:
                _print(one, nodes, console)


def sentence(found: Preflight) -> str:
    """Return the sentence on whether the cluster is ready for MPI."""
    nodes = count(len(found.answers), "node")
    took = f"({format_seconds(found.seconds)})"
    broken = [one.check for one in found.findings if one.grade == "broken"]
    if broken:
        checks = ", ".join(dict.fromkeys(broken))
        return f"{nodes}: not ready for MPI; broken: {checks} {took}."
    warned = sum(one.grade == "warning" for one in found.findings)
    end = f", {count(warned, 'warning')}" if warned else ""
    return f"{nodes}: ready for MPI{end} {took}."


def _rows(found: Preflight) -> list[Row]:
    """Return the rows of nodes; where there are many, those that are alike share one."""
    from paribus.cluster.mpi import named
    from paribus.cluster.preflight import cores, memory

    alike: dict[tuple[str, ...], list[int]] = {}
    for number, one in enumerate(found.answers):
        key: tuple[str, ...] = (
            str(cores(one) or "-"),
            format_bytes(memory(one) // 2**30 * 2**30) if memory(one) else "-",
            named(one) if one.answered else one.failure,
        )
        one_each = len(found.answers) <= MOST_ROWS
        alike.setdefault((*key, str(number)) if one_each else key, []).append(number)
    rows = []
    for key, numbers in alike.items():
        nodes = [found.answers[number] for number in numbers]
        addresses = [
            str(found.chosen[one.name].address.ip) for one in nodes if one.name in found.chosen
        ]
        offsets = [abs(one.offset_s) for one in nodes if not math.isnan(one.offset_s)]
        slowest = max(one.connect_s + one.trip_s for one in nodes)
        rows.append(
            Row(
                (
                    fold(one.name for one in nodes),
                    f"{addresses[0]}{', ...' * (len(addresses) > 1)}" if addresses else "-",
                    *key[:3],
                    f"+-{format_seconds(max(offsets))}" if offsets else "-",
                    format_seconds(slowest) if slowest else "-",
                )
            )
        )
    return rows


def _print(finding: Finding, nodes: int, console: Console) -> None:
    everywhere = len(finding.nodes) in (0, nodes)
    where = "" if everywhere else f"{fold(finding.nodes)}: "
    item(console, f"{where}{finding.cause}", style=STYLES[finding.grade], name=finding.check)
    if finding.fix:
        item(console, finding.fix, indent=6, name="fix")
