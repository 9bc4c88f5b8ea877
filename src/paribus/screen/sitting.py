"""One call of `paribus screen`: from its options to launches, stored, and the answer, shown.

A screen takes hours and may be continued (--resume): then the plan *frozen* in its directory
counts, and the command line must ask for the same.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import re
import secrets
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from paribus.benchmarks.command import better
from paribus.cli import parser_of
from paribus.cli.hosts import accepts_keys, ssh_of
from paribus.cluster.opened import asked_hosts, opened
from paribus.core import Scheduler, Selection, StoreError, UserError, fold
from paribus.launch.local import LocalStation, this_node
from paribus.report.printing import console_on
from paribus.screen import operators, plan, rounds
from paribus.screen.answer import stored
from paribus.screen.batches import Night, in_batches
from paribus.screen.before import check_earlier, with_earlier
from paribus.screen.fleet import Fleet, Reached, answering, facts_of, gpus_of
from paribus.screen.fleet import opened as fleet_opened
from paribus.screen.known import known_of
from paribus.screen.page import page
from paribus.screen.plan import Screen
from paribus.screen.printed import print_answer, print_commands, to_json
from paribus.screen.slurm import lent, partition_of, smallest_batch, switches
from paribus.store import Gathered, Store

_OF_ANSWERS = ("hosts", "json", "earlier", "drain", "kubectl", "fail_on")
"""What the command line may say where a screen is shown again; the rest is about launches."""
_NAMES = {"benchmarks": "with", "racks": "rack", "networks": "network"}


def executed(arguments: argparse.Namespace) -> int:
    """Screen what the command line names, or show what was screened; return the exit code."""
    # Read and checked first: a screen takes hours.
    arguments.earlier = stored(arguments.earlier) if arguments.earlier else None
    directory = Path(arguments.hosts)
    if not (arguments.hosts and os.path.lexists(directory / plan.NAME)):
        _check(arguments)
        arguments.hosts = arguments.hosts or arguments.scheduler
        arguments.network = next(iter(arguments.networks), "")  # what is not on links has one
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(arguments.hosts).name).strip("-.") or "hosts"
        kind = "links" if arguments.links else "screen"
        directory = arguments.out or Path(f"{name[:64]}.{kind}")
        _screen(arguments, directory)
        if arguments.dry_run:
            return 0
        return _shown(arguments, directory)
    usual = vars(parser_of(["screen"]).parse_args(["screen"]))
    for option, value in vars(arguments).items():
        if option not in _OF_ANSWERS and value != usual[option]:
            place = f"--{_NAMES.get(option, option).replace('_', '-')}"
            cause = f"{directory} is shown again, and nothing is launched"
            fix = f"leave it out; the command line of its screen with --out {directory} --resume"
            raise UserError(cause, place=place, fix=f"{fix} continues it")
    return _shown(arguments, directory, again=True)


def _check(arguments: argparse.Namespace) -> None:
    """Raise UserError for options that do not go together."""
    cause = place = fix = ""
    if bool(arguments.hosts) == bool(arguments.scheduler):
        cause, place = "one of the two says which nodes", "HOSTS, --scheduler"
        fix = "name HOSTS, or --scheduler slurm:PARTITION"
    elif arguments.dry_run and arguments.json:
        cause, place, fix = "there is no answer yet", "--dry-run --json", "leave --json out"
    elif len(arguments.networks) > 1 and not arguments.links:
        cause, place = "several networks matter to links alone", "--network"
        fix = "add --links, or name one"
    elif arguments.wait and arguments.links:
        cause, place = "links between batches would not be measured", "--links --wait"
        fix = "leave --wait out"
    elif arguments.wait and arguments.partners < 2:
        cause, place = "a node is compared with two others at least", "--partners"
        fix = "name more"
    if cause:
        raise UserError(cause, place=place, fix=fix)
    _figure(arguments)


def _screen(arguments: argparse.Namespace, directory: Path) -> None:
    """Make the launches of the screen in `directory`, those that are left, or only a forecast."""
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
            _measured(arguments, directory, frozen, _reached(arguments, directory, frozen, stack))


def _in_batches(arguments: argparse.Namespace, directory: Path, top: Screen | None) -> None:
    """Screen nodes of a partition as they come free, in batches below `directory`.

    `top`: the plan of the whole, where an earlier sitting began it.
    """
    partition, end = partition_of(arguments.scheduler), _end(arguments)
    night = Night(
        directory=directory,
        each=Scheduler("slurm", 1, arguments.time, partition=partition),
        key=_key(directory),
        least=1 + arguments.partners,
        deadline=min(end, time.time() + arguments.wait),
        end=end,
        network=arguments.network,
        notify=_notify,
    )

    def measure(batch: Path, frozen: Screen | None, reached: Reached) -> None:
        with plan.claimed(batch):
            _measured(arguments, batch, frozen, reached, top)

    in_batches(night, top is not None, measure)


def _end(arguments: argparse.Namespace) -> float:
    """Return when --budget ends if it begins now, in seconds since the epoch."""
    return time.time() + arguments.budget if arguments.budget else math.inf


def _key(directory: Path) -> str:
    """Return the name of this screen's jobs in the queue."""
    return hashlib.sha256(os.fsencode(directory.absolute())).hexdigest()[:10]


def _reached(
    arguments: argparse.Namespace, directory: Path, frozen: Screen | None, stack: ExitStack
) -> Reached:
    """Return the hosts that are asked for; `stack` ends their connections, or their job."""
    if arguments.scheduler:
        partition, time_s = partition_of(arguments.scheduler), arguments.time
        wanted: Sequence[str] = frozen.nodes if frozen else ()
        families = 1.0
        if arguments.wait:  # a dry run, of the smallest batch: who will be free nobody knows
            wanted, families = smallest_batch(partition, 1 + arguments.partners)
            _notify(f"a batch of {len(wanted)} nodes, of {fold(wanted)}")
        held = lent(partition, time_s, _key(directory), _notify, wanted, arguments.network)
        reached = stack.enter_context(held)
        until = min(reached.until, _end(arguments))
        return replace(reached, families=families, until=until)
    accepts = accepts_keys(arguments.accept_host_keys)
    hosts = asked_hosts(arguments.hosts, ssh_of(arguments), arguments.network)
    known = Path(hosts.ssh.known_hosts or directory.with_suffix(".known_hosts"))
    there = stack.enter_context(opened(hosts, known, accepts, mpi=arguments.mpi))
    return Reached(hosts, there, until=_end(arguments))


def _measured(
    arguments: argparse.Namespace,
    directory: Path,
    frozen: Screen | None,
    reached: Reached,
    top: Screen | None = None,
) -> None:
    """Make and store the launches on hosts that are reached, or only forecast them.

    `frozen`: the plan in `directory`, if there is one. `top`: of a new batch, the plan of the whole
    screen, where an earlier sitting began it.
    """
    with ExitStack() as stack:
        reached, cores = answering(reached)
        what = arguments.benchmarks, arguments.command, _figure(arguments), cores
        asked = plan.selections(*what, links=arguments.links)
        selections, networks = plan.over(asked, arguments.networks)
        local = stack.enter_context(LocalStation())
        wanted = reached, local, selections, arguments.mpi, _notify, arguments.networks
        fleet = stack.enter_context(fleet_opened(*wanted))
        counted = any(map(plan.uses_one_gpu, selections))
        facts = facts_of(fleet) if counted or not arguments.dry_run else []
        new = replace(
            _new(arguments, reached, fleet, selections),
            networks=networks,
            gpus=gpus_of(facts) if counted else {},
        )
        if arguments.dry_run or not frozen:
            plan.check_enough(new)
        if arguments.dry_run:
            rounds.show(new, fleet, local)
            return
        if arguments.earlier:
            check_earlier(arguments.earlier, frozen or new)
        if known := frozen or top:
            plan.check_same(known, new, directory, "selections" if frozen else "margins")
        if reached.singly and not (directory.parent / plan.NAME).exists():
            plan.write(new, directory.parent)
        _launched(directory, frozen, new, fleet, facts, reached.until)


def _new(
    arguments: argparse.Namespace, reached: Reached, fleet: Fleet, several: Sequence[Selection]
) -> Screen:
    """Return the plan of what the command line asks for, on the nodes that can be used."""
    names, cores = tuple(fleet.stations), len(this_node().cores)
    racks = arguments.racks or (switches() if arguments.links and arguments.scheduler else [])
    in_turn = cores if reached.hosts.pocket > cores else 0  # pocket hosts that share cores
    return Screen(
        hosts=arguments.hosts,
        nodes=names,
        selections=tuple(several),
        margins=plan.margins_of(arguments.margin, several),
        seed=secrets.randbelow(2**31),
        at=time.time(),
        network=arguments.network,
        mpi=arguments.mpi,
        at_once=arguments.at_once or in_turn,
        absent=fleet.absent,
        links=arguments.links,
        racks=plan.racks_of(racks, names),
        boots={name: "".join(one.boots) for name, one in fleet.stations.items()},
        step=arguments.step,
        families=reached.families,
    )


def _launched(
    directory: Path,
    frozen: Screen | None,
    new: Screen,
    fleet: Fleet,
    facts: Sequence[Gathered],
    until: float,
) -> None:
    """Make the launches of the `frozen` screen, or of the `new` one, which is then frozen.

    `until`: when they must end, in seconds since the epoch.
    """
    with Store(directory, write=True, held=True) as store:
        if frozen is None:
            plan.write(new, directory)
        frozen = frozen or new
        store.bind_plan(frozen.digest)
        store.keep_gathered(facts)
        known = known_of(frozen, store.launches(void=True), str(directory))
        try:
            rounds.execute(known, store, fleet, _notify, until - time.time())
        except KeyboardInterrupt:
            _notify("interrupted; every stored launch is kept: continue with --resume")
            raise


def _shown(arguments: argparse.Namespace, directory: Path, *, again: bool = False) -> int:
    """Show the answer as it was asked for, `again` also without its files; return the exit code."""
    answer = stored(directory)
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
    try:
        plan.put(directory / "answer.json", f"{text}\n")
        plan.put(directory / "screen.html", page(answer, kubernetes=arguments.kubectl))
        _notify(f"the fleet as a page: {directory / 'screen.html'}")
    except StoreError as error:
        if not again:
            raise
        _notify(f"{error.place}: {error.cause}")
    for sentence in operators.drain(answer) if arguments.drain else ():
        _notify(sentence)
    if arguments.fail_on == "slow" and answer.slow:
        return 1
    return 0 if any(one.word not in ("failed", "not screened") for one in answer.lines) else 4


def _figure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return what the options say of the command's figure, as keys of a study file; or refuse."""
    found = {key: getattr(arguments, key) for key in ("regex", "unit", "directory")}
    if arguments.regex and arguments.unit:
        found["better"] = better(arguments.unit, higher=arguments.higher)
    return {key: value for key, value in found.items() if value is not None}


def _notify(text: str) -> None:
    print(f"paribus: {text}", file=sys.stderr, flush=True)
