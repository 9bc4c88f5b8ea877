"""Ranks of one launch: how many there are by the labels of a log, and the lines of each together.

Of "srun -n 4 ./stream" four outputs of STREAM are those of the ranks of one launch, not four
launches. Where tags show which rank wrote each line, lines of several ranks may be interleaved.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from paribus.benchmarks import BENCHMARKS
from paribus.core import Reading
from paribus.logs.labels import COMMAND

_LAUNCHER = re.compile(
    r"(?:^|.*[\s/])(?:mpirun|mpiexec(?:\.hydra)?|srun|prun|aprun|jsrun|ibrun|flux run|orterun"
    r"|prterun|mpirun_rsh|horovodrun|torchrun)(?=\s)"
)
_OF_TWO_WORDS = re.compile(r"\s--?(?:g?mca|pmixmca|prtemca|genv|env)\s+\S+\s+\S+")
"""Options with two words behind them, such as "--mca btl tcp,self"."""

_OPTION = re.compile(r"(-[A-Za-z]|--?[A-Za-z][\w-]+)[= ]?(\d+)?$")
_TOTAL = ("-n", "-np", "--np", "--ntasks", "--n")
_EACH = ("--ntasks-per-node", "--tasks-per-node", "--nproc_per_node", "--nproc-per-node", "-ppn")
_NODES = ("-N", "--nodes", "--nnodes")
"""Options of launchers: for all ranks, for those of each node, and for the nodes."""

_JOB = re.compile(
    r"(?i)(?<![\w-])(?:(?:SLURM_|PBS_|LSB_DJOB_)?(?:n_?tasks|num_?tasks|n_?procs|numproc|np)"
    r"|OMPI_COMM_WORLD_SIZE|(?:(?:number of|total|mpi) +)*(?:tasks|ranks|processes))"
    r" *[=: ] *(\d{1,7})\b|(?<![\w.-])(\d{1,7}) (?:mpi )?(?:tasks|ranks|processes)\b"
)
"""What a script says of all ranks: "SLURM_NTASKS=16", "number of tasks: 16", "16 MPI ranks"."""


class Started(NamedTuple):
    """How many ranks were started by what a log says, and whether its echoed command says so."""

    ranks: int
    by_command: bool


def started(labels: Mapping[str, str]) -> Started:
    """Return how many ranks the launch below some labels has; 1 where they do not say it.

    >>> started({"command": "srun -N 2 --ntasks-per-node=4 ./stream -n 3"})
    Started(ranks=8, by_command=True)
    >>> started({"SLURM_NTASKS": "SLURM_NTASKS=16"}).ranks, started({"words": "np4 on node1"}).ranks
    (16, 1)
    """
    if ranks := _of_command(labels.get(COMMAND, "")):
        return Started(ranks, by_command=True)
    found = (_JOB.search(words) for form, words in labels.items() if form != COMMAND)
    ranks = max([int(one[1] or one[2]) for one in found if one], default=1)
    return Started(ranks, by_command=False)


def _of_command(command: str) -> int:
    """Return how many ranks a command starts, 0 if it does not say it."""
    launcher = _LAUNCHER.match(command)
    if launcher is None:
        return 0
    found: dict[str, int] = {}
    before = ""
    for word in _OF_TWO_WORDS.sub("", command[launcher.end() :]).split():
        option = _OPTION.match(word)
        if option and option[2]:
            found.setdefault(option[1], int(option[2]))
        elif word.isdecimal() and before.startswith("-"):
            found.setdefault(before, int(word))
        elif not word.startswith("-") and (not before.startswith("-") or "=" in before):
            break  # the program: all that follows are arguments of it
        before = word
    total, each, nodes = (
        next((found[name] for name in names if name in found), 0)
        for names in (_TOTAL, _EACH, _NODES)
    )
    if not (each or nodes):
        return total
    return total or (each or 1) * (nodes or 1)


def is_of_one_rank(reading: Reading) -> bool:
    """Return whether each rank writes an output of its own: of a program without MPI, or 1 rank."""
    if reading.ranks is not None:
        return reading.ranks == 1
    tool = BENCHMARKS.get(reading.benchmark)
    return tool is not None and tool.ranks == 1


def by_rank(ranks: Sequence[str]) -> list[int]:
    """Return the places of lines in an order in which those of a rank follow each other.

    `ranks` is which rank wrote each line, "" for none. Such lines stay where they are: a script
    prints them between launches.

    >>> by_rank(["", "1", "0", "1", "", "0"])
    [0, 2, 1, 3, 4, 5]
    """
    found: list[int] = []
    stretch: list[int] = []
    for at, rank in enumerate([*ranks, ""]):
        if rank:
            stretch.append(at)
        else:
            found += [*sorted(stretch, key=lambda one: int(ranks[one])), at]
            stretch = []
    return found[:-1]


def in_order(text: str, order: Sequence[int]) -> str:
    """Return a text with its lines in another order."""
    lines = text.split("\n")
    return "\n".join([lines[at] for at in order])
