"""`paribus screen HOSTS`: which nodes or links of a fleet are slow, with one error rate for all."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from paribus.cli.hosts import add_host_keys, add_ssh, seconds

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

BENCHMARK = 'a benchmark, with parameters: "cg ranks=4" (repeatable; memory_bandwidth and ep)'
MARGIN = "ignore smaller differences: 5%%, or ep=2%% (repeatable; 4%%, gpu_gemm 8%%)"
NETWORK = "CIDR or interface for MPI (with --links repeatable: each is measured)"
RACK = "with --links: nodes of one switch (repeatable; Slurm knows its own)"
WAIT = "with --scheduler: all its nodes, in batches as they become free within TIME"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    parser.description = (
        "Say which nodes of a fleet are slow: three rounds of launches on all nodes nominate,\n"
        "and rounds after them prove it, with one error rate for the whole fleet. With --links:\n"
        "which ends, paths and groups of links are slow, by launches on pairs of nodes."
    )
    add, flag = parser.add_argument, partial(parser.add_argument, action="store_true")
    several = partial(parser.add_argument, action="append", default=[])
    nodes = "node[1-64], a hostfile, pocket:N, a screen"
    add("hosts", metavar="HOSTS", nargs="?", default="", help=nodes)
    several("--with", dest="benchmarks", metavar="BENCHMARK", help=BENCHMARK)
    flag("--links", help="pairs of nodes: latency and bandwidth both ways")
    several("--rack", dest="racks", metavar="NODES", help=RACK)
    add("--command", metavar="CMD", default="", help="a program of your own")
    where = 'with --command: where on the nodes it works (here); "{scratch}": its own'
    add("--directory", metavar="DIR", help=where)
    add("--regex", help="with --command: its one group is the figure, not time")
    add("--unit", help="with --regex: the unit of the figure")
    flag("--higher", help="with --regex: higher is better")
    several("--margin", metavar="SHARE", help=MARGIN)
    _add_course(parser)
    several("--network", metavar="NET", dest="networks", help=NETWORK)
    add("--mpi", metavar="PREFIX", default="", help="where MPI is on the nodes")
    add_ssh(parser)
    add_host_keys(parser)
    flag("--json", help='print JSON, schema "paribus.screen/1"')
    earlier = "a screen of another day: who is slow again"
    add("--earlier", metavar="DIR", type=Path, help=earlier)
    flag("--drain", help="drain the slow nodes by scontrol")
    flag("--kubectl", help="print lines of kubectl instead")
    add("--fail-on", choices=("slow",), help="exit with 1 where a node is slow")
    parser.set_defaults(execute=screen)


def _add_course(parser: argparse.ArgumentParser) -> None:
    """Declare how the screen goes, and when its nodes are had."""
    add, number = parser.add_argument, partial(parser.add_argument, metavar="N", type=_whole)
    duration = partial(parser.add_argument, metavar="TIME", type=seconds)
    out = "directory (./HOSTS.screen, of links ./HOSTS.links)"
    add("--out", metavar="DIR", type=Path, help=out)
    add("--resume", action="store_true", help="continue the screen in DIR")
    add("--dry-run", action="store_true", help="say how many rounds and minutes")
    duration("--budget", help='start no round after this, such as "1 h"')
    number("--at-once", default=0, help="nodes launched on at once (all)")
    number("--step", default=64, help="launches that begin in a second (64; 0: all)")
    partition = "screen its idle nodes, in one job"
    add("--scheduler", metavar="slurm:PARTITION", default="", help=partition)
    duration("--time", default=3600.0, help="with --scheduler: limit of that job (1 h)")
    duration("--wait", help=WAIT)
    number("--partners", default=8, help="with --wait: fewest other nodes in a batch (8)")


def _whole(text: str) -> int:
    if text.isdecimal() and len(text) < 7:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0 to 999999")


def screen(arguments: argparse.Namespace) -> int:
    """Return the exit code of the verb."""
    from paribus.screen.sitting import executed

    return executed(arguments)
