"""`paribus screen HOSTS`: which nodes or links of a fleet are slow, with one error rate for all."""

from __future__ import annotations

import argparse
from pathlib import Path

from paribus.cli.hosts import add_host_keys, add_ssh

EXAMPLE = """\
example:
  paribus screen pocket:4 --with ep              # four hosts on this machine, to try it
  paribus screen node[1-64] --dry-run            # rounds and minutes
  paribus screen node[1-64] --with memory_bandwidth --with "storage directory=/scratch"
  paribus screen hosts.txt --command './bench -n 4' --regex 'rate: (.*)' --unit MB/s --higher
  paribus screen node[1-64] --links --rack node[1-32]      # latency and bandwidth of pairs
  paribus screen --scheduler slurm:batch --wait "8 h"      # nodes as their users' jobs end
  paribus screen node[1-64] --resume             # continue what was interrupted
  paribus screen node-1-64.screen                # the answer again, and nothing is launched

HOSTS is a nodeset (node[1-4,7]), a hostfile in any dialect, or pocket:N.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    parser.description = (
        "Say which nodes of a fleet are slow: three rounds of launches on all nodes nominate,\n"
        "and rounds after them prove it, with one error rate for the whole fleet. With --links:\n"
        "which ends, paths and groups of links are slow, by launches on pairs of nodes."
    )
    parser.add_argument(
        "hosts",
        metavar="HOSTS",
        nargs="?",
        default="",
        help="node[1-64], a hostfile, pocket:N, a screen",
    )
    parser.add_argument(
        "--with",
        dest="benchmarks",
        metavar="BENCHMARK",
        action="append",
        default=[],
        help='a benchmark, with parameters: "cg ranks=4" (repeatable; memory_bandwidth and ep)',
    )
    parser.add_argument(
        "--links", action="store_true", help="pairs of nodes: latency and bandwidth both ways"
    )
    parser.add_argument(
        "--rack",
        dest="racks",
        metavar="NODES",
        action="append",
        default=[],
        help="with --links: nodes of one switch (repeatable; Slurm knows its own)",
    )
    parser.add_argument("--command", metavar="CMD", default="", help="a program of your own")
    parser.add_argument(
        "--directory",
        metavar="DIR",
        help='where it works on the nodes (here); "{scratch}": its own',
    )
    parser.add_argument("--regex", help="with --command: its one group is the figure, not time")
    parser.add_argument("--unit", help="with --regex: the unit of the figure")
    parser.add_argument("--higher", action="store_true", help="with --regex: higher is better")
    parser.add_argument(
        "--margin",
        metavar="SHARE",
        action="append",
        default=[],
        help="nodes this much slower are alike: 5%%, or ep=2%% (repeatable; 4%%, gpu_gemm 8%%)",
    )
    _add_course(parser)
    _add_access(parser)
    _add_answer(parser)
    parser.set_defaults(carry_out=screen)


def _add_course(parser: argparse.ArgumentParser) -> None:
    """Declare how the screen goes."""
    parser.add_argument(
        "--out", metavar="DIR", type=Path, help="instead of ./HOSTS.screen, of links ./HOSTS.links"
    )
    parser.add_argument("--resume", action="store_true", help="continue the screen in DIR")
    parser.add_argument("--dry-run", action="store_true", help="say how many rounds and minutes")
    parser.add_argument("--budget", metavar="TIME", help='start no round after this, such as "1 h"')
    parser.add_argument(
        "--at-once", metavar="N", type=int, default=0, help="nodes launched on at once (all)"
    )
    parser.add_argument(
        "--step",
        metavar="N",
        type=int,
        default=64,
        help="so many of them begin in a second (64; 0: all)",
    )


def _add_access(parser: argparse.ArgumentParser) -> None:
    """Declare how nodes are reached, by Slurm or as the verb cluster does."""
    parser.add_argument(
        "--scheduler", metavar="slurm:PARTITION", default="", help="its idle nodes, in one job"
    )
    parser.add_argument("--time", metavar="TIME", default="1 h", help="to hold them for (1 h)")
    parser.add_argument(
        "--wait", metavar="TIME", help="all its nodes in batches, as each comes free within TIME"
    )
    parser.add_argument(
        "--partners",
        metavar="N",
        type=int,
        default=8,
        help="with --wait: a node beside so many others at least (8)",
    )
    parser.add_argument(
        "--network",
        metavar="NET",
        dest="networks",
        action="append",
        default=[],
        help="CIDR or interface for MPI (with --links repeatable: each is measured)",
    )
    parser.add_argument("--mpi", metavar="PREFIX", default="", help="where MPI is on the nodes")
    add_ssh(parser)
    add_host_keys(parser)


def _add_answer(parser: argparse.ArgumentParser) -> None:
    """Declare what is done with the answer."""
    parser.add_argument("--json", action="store_true", help='print JSON, schema "paribus.screen/1"')
    parser.add_argument(
        "--earlier", metavar="DIR", type=Path, help="a screen of another day: who is slow again"
    )
    parser.add_argument("--drain", action="store_true", help="drain the slow nodes by scontrol")
    parser.add_argument("--kubectl", action="store_true", help="print lines of kubectl instead")
    parser.add_argument("--fail-on", choices=("slow",), help="exit with 1 where a node is slow")


def screen(arguments: argparse.Namespace) -> int:
    """Return the exit code of the verb."""
    from paribus.screen.sitting import carried_out

    return carried_out(arguments)
