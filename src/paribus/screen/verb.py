"""`paribus screen HOSTS`: which nodes or links of a fleet are slow, with one error rate for all."""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paribus.border import open_anew
from paribus.cli.hosts import accepts_keys, add_host_keys, add_ssh, ssh_of
from paribus.core import Hosts, Selection, UserError, fold, parse_seconds

if TYPE_CHECKING:
    from paribus.screen.answer import Answer
    from paribus.screen.fleet import Fleet, Reached
    from paribus.screen.plan import Screen
    from paribus.store import Gathered

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

exit codes: 0 answered, 1 --fail-on, 2 user error, 130 interrupted (resumable)
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
    from paribus.screen import plan
    from paribus.screen.answer import stored

    # Read and checked first: a screen takes hours.
    arguments.earlier = stored(arguments.earlier) if arguments.earlier else None
    asked = Path(arguments.hosts)
    if arguments.hosts and os.path.lexists(asked / plan.NAME):
        return _shown(arguments, stored(asked), asked)
    if bool(arguments.hosts) == bool(arguments.scheduler):
        fix = "name HOSTS, or --scheduler slurm:PARTITION"
        raise UserError("one of the two says which nodes", place="HOSTS, --scheduler", fix=fix)
    if arguments.racks and not arguments.links:
        raise UserError("racks matter to links alone", place="--rack", fix="add --links")
    if len(arguments.networks) > 1 and not arguments.links:
        cause = "several networks matter to links alone"
        raise UserError(cause, place="--network", fix="add --links, or name one")
    if arguments.wait:
        _check_wait(arguments)
    arguments.hosts = arguments.hosts or arguments.scheduler
    kind = "links" if arguments.links else "screen"
    return _screened(arguments, arguments.out or Path(f"{_name(arguments.hosts)}.{kind}"))


def _name(text: str) -> str:
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(text).name).strip("-.") or "hosts"
    return name[:64]


def _check_wait(arguments: argparse.Namespace) -> None:
    """Raise UserError for what a screen in batches cannot be."""
    without = "leave --wait out"
    if not arguments.scheduler:
        raise UserError("only jobs wait", place="--wait", fix="add --scheduler slurm:PARTITION")
    if arguments.links:
        cause = "links between batches would not be measured"
        raise UserError(cause, place="--links --wait", fix=without)
    if arguments.partners < 2:
        cause = "a node is compared with two others at least"
        raise UserError(cause, place="--partners", fix="name more")


def _screened(arguments: argparse.Namespace, directory: Path) -> int:
    """Run the screen in `directory`, or what is left of it; return the exit code."""
    from paribus.screen import plan
    from paribus.screen.answer import stored

    frozen = plan.read(directory) if arguments.resume else None
    with ExitStack() as stack:
        if not arguments.dry_run:
            stack.enter_context(plan.claimed(directory))
        if not (frozen or arguments.dry_run):
            plan.check_free(directory)
        if frozen and bool(arguments.wait) != bool(plan.batches(directory)):
            cause = f"was {'not ' if arguments.wait else ''}given when {directory} was begun"
            raise UserError(cause, place="--wait", fix="repeat the command line that began it")
        if arguments.wait and not arguments.dry_run:
            _in_batches(arguments, directory, frozen)
        else:
            reached = _reached(arguments, directory, frozen, stack)
            _measured(arguments, directory, frozen, reached)
        if arguments.dry_run:
            return 0
    return _shown(arguments, stored(directory), directory)


def _in_batches(arguments: argparse.Namespace, directory: Path, top: Screen | None) -> None:
    """Screen what comes free of a partition, in directories below `directory`."""
    from paribus.core import Scheduler
    from paribus.screen import plan
    from paribus.screen.batches import Night, in_batches
    from paribus.screen.fleet import partition_of

    partition, end = partition_of(arguments.scheduler), _end(arguments)
    night = Night(
        directory=directory,
        each=Scheduler("slurm", 1, parse_seconds(arguments.time), partition=partition),
        key=_key(directory),
        least=1 + arguments.partners,
        deadline=min(end, time.time() + parse_seconds(arguments.wait)),
        end=end,
        network=_network(arguments),
        tell=_tell,
    )

    def measure(batch: Path, frozen: Screen | None, reached: Reached) -> None:
        with plan.claimed(batch):
            _measured(arguments, batch, frozen, reached, top)

    in_batches(night, top is not None, measure)


def _end(arguments: argparse.Namespace) -> float:
    """Return when the budget ends that begins now, in seconds since the epoch."""
    return time.time() + parse_seconds(arguments.budget) if arguments.budget else math.inf


def _network(arguments: argparse.Namespace) -> str:
    """Return the first network that is named, "" for none: what is not on links has one."""
    return str(next(iter(arguments.networks), ""))


def _key(directory: Path) -> str:
    """Return by what jobs of a screen are known in the queue."""
    return hashlib.sha256(str(directory.absolute()).encode()).hexdigest()[:10]


def _measured(
    arguments: argparse.Namespace,
    directory: Path,
    frozen: Screen | None,
    reached: Reached,
    top: Screen | None = None,
) -> None:
    """Make and store the launches on hosts that are reached, or only forecast them.

    Of a batch: `top` is the screen that began in an earlier sitting.
    """
    from paribus.launch.local import LocalStation
    from paribus.screen import plan
    from paribus.screen.answer import check_earlier
    from paribus.screen.fleet import answering, facts_of
    from paribus.screen.fleet import opened as fleet_opened

    with ExitStack() as stack:
        reached, cores = answering(reached)
        asked = plan.selections(
            arguments.benchmarks,
            arguments.command,
            _figure(arguments),
            cores,
            links=arguments.links,
        )
        selections, networks = plan.over(asked, arguments.networks)
        local = stack.enter_context(LocalStation())
        wanted = reached, local, selections, arguments.mpi, _tell, arguments.networks
        fleet = stack.enter_context(fleet_opened(*wanted))
        counted = any(map(plan.uses_one_gpu, selections))
        facts = facts_of(fleet) if counted or not arguments.dry_run else []
        new = _new(arguments, reached, fleet, selections, networks, facts)
        if arguments.dry_run:
            from paribus.screen.rounds import show

            plan.check_enough(new)
            show(new, fleet, local)
            return
        if arguments.earlier:
            began = frozen or new
            check_earlier(arguments.earlier, began.at, began.boots)
        if known := frozen or top:
            plan.check_same(known, new, directory, "selections" if frozen else "margins")
        if not frozen:
            plan.check_enough(new)
        if reached.singly and not (directory.parent / plan.NAME).exists():
            plan.write(new, directory.parent)
        _carried_out(directory, frozen, new, fleet, facts, reached.until)


def _new(
    arguments: argparse.Namespace,
    reached: Reached,
    fleet: Fleet,
    selections: Sequence[Selection],
    networks: Mapping[str, str],
    facts: Sequence[Gathered],
) -> Screen:
    """Return the screen that the command line asks for, on what there is."""
    from paribus.screen import plan
    from paribus.screen.fleet import boots_of, gpus_of

    names = tuple(fleet.stations)
    return plan.Screen(
        hosts=arguments.hosts,
        nodes=names,
        selections=tuple(selections),
        margins=plan.margins_of(arguments.margin, selections),
        seed=plan.new_seed(),
        at=time.time(),
        network=_network(arguments),
        networks=networks,
        mpi=arguments.mpi,
        at_once=arguments.at_once or _at_once(reached.hosts),
        absent=fleet.absent,
        links=arguments.links,
        racks=plan.racks_of(_racks(arguments), names) if arguments.links else {},
        gpus=gpus_of(facts) if any(map(plan.uses_one_gpu, selections)) else {},
        boots=boots_of(fleet),
        step=max(0, arguments.step),
        families=reached.families,
    )


def _reached(
    arguments: argparse.Namespace, directory: Path, frozen: Screen | None, stack: ExitStack
) -> Reached:
    """Return the hosts that are asked for, reached until `stack` ends."""
    from paribus.screen.fleet import Reached, lent, partition_of, smallest_batch

    if arguments.scheduler:
        partition, time_s = partition_of(arguments.scheduler), parse_seconds(arguments.time)
        wanted: Sequence[str] = frozen.nodes if frozen else ()
        families = 1.0
        if arguments.wait:  # a dry run, of the smallest batch: who will be free nobody knows
            wanted, families = smallest_batch(partition, 1 + arguments.partners)
            _tell(f"a batch of {len(wanted)} nodes, of {fold(wanted)}")
        held = lent(partition, time_s, _key(directory), _tell, wanted, _network(arguments))
        reached = replace(stack.enter_context(held), families=families)
        return replace(reached, until=min(reached.until, _end(arguments)))
    from paribus.cluster.opened import asked_hosts, opened

    accepts = accepts_keys(arguments.accept_host_keys)
    hosts = asked_hosts(arguments.hosts, ssh_of(arguments), _network(arguments))
    known = Path(hosts.ssh.known_hosts or directory.with_suffix(".known_hosts"))
    there = stack.enter_context(opened(hosts, known, accepts, mpi=arguments.mpi))
    return Reached(hosts, there, until=_end(arguments))


def _carried_out(
    directory: Path,
    frozen: Screen | None,
    new: Screen,
    fleet: Fleet,
    facts: Sequence[Gathered],
    until: float,
) -> None:
    """Freeze the `new` screen, or go on with that which is `frozen`, and make its launches."""
    from paribus.screen import plan, rounds
    from paribus.store import Store

    with Store(directory, write=True, held=True) as store:
        if frozen is None:
            plan.write(new, directory)
        frozen = frozen or new
        store.bind_plan(frozen.digest)
        store.keep_gathered(facts)
        known = rounds.known_of(frozen, store.launches(void=True), str(directory))
        try:
            rounds.carry_out(frozen, store, fleet, known, _tell, until - time.time())
        except KeyboardInterrupt:
            _tell("interrupted; every stored launch is kept: continue with --resume")
            raise


def _shown(arguments: argparse.Namespace, answer: Answer, directory: Path) -> int:
    """Show an answer as it was asked for; return the exit code."""
    from paribus.report.printing import console_on
    from paribus.screen import operators
    from paribus.screen.answer import with_earlier
    from paribus.screen.page import page
    from paribus.screen.printed import print_answer, print_commands, to_json

    if arguments.earlier:
        answer = with_earlier(answer, arguments.earlier)
    text = json.dumps(to_json(answer), indent=2, allow_nan=False)
    if arguments.json:
        print(text)
    else:
        console = console_on(sys.stdout)
        print_answer(answer, console)
        print_commands(answer, console, kubernetes=arguments.kubectl)
    sys.stdout.flush()  # the answer needs no file
    _written(directory / "answer.json", f"{text}\n")
    _written(directory / "screen.html", page(answer, kubernetes=arguments.kubectl))
    if arguments.drain:
        for sentence in operators.drain(answer):
            _tell(sentence)
    _tell(f"the fleet as a page: {directory / 'screen.html'}")
    return int(arguments.fail_on == "slow" and answer.slow)


def _written(path: Path, text: str) -> None:
    try:
        with open_anew(path, encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        fix = "check permissions and space"
        raise UserError(f"cannot be written: {error.strerror}", place=str(path), fix=fix) from error


def _figure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return what the command prints, as keys of a study file; raises UserError."""
    if not arguments.regex and (arguments.unit or arguments.higher):
        fix = "add --regex '...' for a figure that the command prints"
        raise UserError("wall time is in s, lower is better", place="--unit, --higher", fix=fix)
    if (arguments.regex or arguments.directory) and not arguments.command:
        fix = "add --command CMD"
        raise UserError("there is no command", place="--regex, --directory", fix=fix)
    found = {key: getattr(arguments, key) for key in ("regex", "unit", "directory")}
    if arguments.regex:
        found["better"] = "higher" if arguments.higher else "lower"
    return {key: value for key, value in found.items() if value is not None}


def _racks(arguments: argparse.Namespace) -> list[str]:
    """Return the nodesets of racks: as they are asked for, or as Slurm knows its switches."""
    if arguments.racks or not arguments.scheduler:
        return list(arguments.racks)
    from paribus.screen.fleet import switches

    return switches()


def _at_once(hosts: Hosts) -> int:
    """Return how many nodes are launched on at once: pocket hosts that share cores, in turn."""
    from paribus.launch.local import this_node

    cores = len(this_node().cores)
    return cores if hosts.pocket > cores else 0


def _tell(text: str) -> None:
    print(f"paribus: {text}", file=sys.stderr, flush=True)
