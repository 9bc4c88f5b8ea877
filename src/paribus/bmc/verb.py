"""`paribus topology switch` and `emulate`: another topology through a BMC, or an emulated one."""

from __future__ import annotations

import argparse
import json
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paribus.cli import add_action
from paribus.cli.hosts import accepts_keys, add_host_keys
from paribus.core import typed

if TYPE_CHECKING:
    from paribus.bmc.steps import Plan
    from paribus.bmc.switch import Result
    from paribus.topology.tree import Tree

FAILED = 4


def add_switch(actions: Any) -> None:
    """Declare `paribus topology switch`."""
    new = add_action(actions, "switch", "set another topology through a BMC", switch_topology)
    new.add_argument("host", metavar="HOST", help="a host, or the root of a /sys")
    new.add_argument("profile", metavar="PROFILE", help="what to switch to, as in the file")
    new.add_argument(
        "--through", metavar="FILE", type=Path, required=True, help="profile file: BMC and steps"
    )
    new.add_argument("--dry-run", action="store_true", help="print every request, send none")
    new.add_argument("--yes", action="store_true", help="do not ask before the plan is run")
    new.add_argument(
        "--idle",
        action="store_true",
        help="say that nobody uses the server; `idle` of the file must succeed too",
    )
    new.add_argument(
        "--continue",
        dest="go_on",
        action="store_true",
        help="finish a switch that was killed, or roll back one that stopped",
    )
    new.add_argument("--json", action="store_true", help='print JSON, schema "paribus.switch/1"')
    add_host_keys(new)


def add_emulate(actions: Any) -> None:
    """Declare `paribus topology emulate`."""
    new = add_action(actions, "emulate", "answer as the BMC of an 8-GPU server, to try it", emulate)
    new.add_argument("directory", metavar="DIRECTORY", type=Path, help="of the emulated server")
    new.add_argument("--port", type=int, default=0, help="port on 127.0.0.1 (default: a free one)")
    new.add_argument(
        "--dialect",
        choices=("actions", "patch", "bios", "oem"),
        default="actions",
        help="how its topology is changed (default: the actions of the standard)",
    )
    new.add_argument(
        "--fault",
        metavar="N=FAULT",
        action="append",
        default=[],
        help="what goes wrong with its Nth write, such as 3=hang-after (repeatable)",
    )
    new.add_argument("--boot", metavar="S", type=float, default=2.0, help="seconds of a boot")


def switch_topology(arguments: argparse.Namespace) -> int:
    """Return the exit code of `paribus topology switch`."""
    from paribus.bmc.client import Client
    from paribus.bmc.journal import Journal, place_of
    from paribus.bmc.profiles import read_profiles, secret_of
    from paribus.bmc.switch import Switching, Ways, go_on, plan_lines, switch
    from paribus.topology.shape import shape_of

    host, name = arguments.host, arguments.profile
    file = read_profiles(arguments.through)
    profile = file.profile(name)
    secret = secret_of(file.access, file.path)
    words = ("paribus", "topology", "switch", host, name, "--through", arguments.through)
    command = typed((*words, "--continue"))

    def confirm(plan: Plan, tree: Tree) -> bool:
        for line in plan_lines(plan, shape_of(tree).name, profile.shape, whole=arguments.dry_run):
            print(line, file=sys.stderr if arguments.json else sys.stdout)
        if arguments.dry_run:
            raise _DryRun
        return arguments.yes or _ask("Switch now")

    try:
        with Journal(place_of(file.access)) as journal, Client(file.access, secret) as client:
            job = Switching(
                host=host,
                file=file,
                profile=profile,
                journal=journal,
                ways=Ways(client, secret, _ask, file.settle_s),
                look=lambda: _found(host, arguments),
                confirm=confirm,
                held=arguments.idle,
                say=lambda text: print(f"  {text}", file=sys.stderr, flush=True),
            )
            try:
                result = (go_on if arguments.go_on else switch)(job)
            except KeyboardInterrupt:
                if journal.unfinished:
                    print(f"paribus: interrupted; go on with\n  {command}", file=sys.stderr)
                raise
    except _DryRun:
        return 0
    return _end(result, host, command, as_json=arguments.json)


class _DryRun(Exception):  # noqa: N818 -- a way out, no error
    """`--dry-run`: the plan was shown, and nothing is to follow."""


def _found(host: str, arguments: argparse.Namespace) -> Tree:
    """Return the tree that the operating system of a host finds now; raises ParibusError.

    A path is the root of a /sys, as that of an emulated server.
    """
    if "/" in host or host in (".", ".."):
        from paribus.topology.sysfs import from_sysfs

        return from_sysfs(Path(host))
    from paribus.cluster.opened import tree_of_host

    return tree_of_host(host, accepts_keys(arguments.accept_host_keys))


def _ask(question: str) -> bool:
    """Return whether a person at the terminal says yes; nobody there is no."""
    if not sys.stdin.isatty():
        return False
    print(f"{question}? [yes/no] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() == "yes"


def _end(result: Result, host: str, command: str, *, as_json: bool) -> int:
    """Print how a switch ended and return the exit code; `command` would continue it."""
    from paribus.bmc.switch import ended
    from paribus.topology.shape import canonical_hash, shape_of

    seen = shape_of(result.tree).name if result.tree else None
    if as_json:
        table = {
            "schema": "paribus.switch/1",
            "host": host,
            "result": result.how,
            "cause": result.cause,
            "shape": seen,
            "hash": canonical_hash(result.tree) if result.tree else None,
            "continue": command if result.how == "stopped" else None,
        }
        print(json.dumps(table, indent=1))
    else:
        print(ended(result.how, host, seen or "", result.cause, command))
    return 0 if result.how in ("switched", "already") else FAILED


def emulate(arguments: argparse.Namespace) -> int:
    """Answer as an emulated BMC until ended: `paribus topology emulate DIRECTORY`."""
    from paribus.bmc.emulator.faults import FAULTS, parse_faults
    from paribus.bmc.emulator.setup import emulated
    from paribus.core import UserError

    directory = arguments.directory
    try:
        faults = parse_faults(arguments.fault)
    except ValueError as error:
        raise UserError(str(error), place="--fault", fix=f"known: {', '.join(FAULTS)}") from None
    with emulated(
        directory,
        dialect=arguments.dialect,
        faults=faults,
        boot_s=arguments.boot,
        port=arguments.port,
    ) as (_, address):
        print(f"An emulated BMC of an 8-GPU server answers at https://{address}.")
        host, through = f"{directory}/host", directory / "bmc.toml"  # without a "/": a host by ssh
        print("Try:", typed(("paribus", "topology", "show", host)))
        switch = ("paribus", "topology", "switch", host, "cascade", "--through", through)
        print("    ", typed(switch), flush=True)
        threading.Event().wait()
    return 0
