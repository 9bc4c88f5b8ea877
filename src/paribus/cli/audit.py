"""`paribus audit STUDY|DIR|RECORDING...`: what differs between the arms beyond the factor."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from paribus.audit.accepted import add_accepted, parse_accepted
from paribus.audit.audit import Audit, Nodes
from paribus.audit.first import NOTHING, indistinct, meant, not_in_factor, unvaried
from paribus.audit.values import ERROR
from paribus.border import is_directory
from paribus.cli.exports import add_accept
from paribus.cli.hosts import add_host_keys, add_hosts, hosts_by_arm
from paribus.core import Facts, Study, fold, units
from paribus.report.printing import console_on, heading, item, line
from paribus.report.unequal import cut_names, how_to_separate, print_differences
from paribus.store import Store

if TYPE_CHECKING:
    from rich.console import Console

EXAMPLE = """\
example:
  paribus audit container-network                  # before the first launch
  paribus audit network-study                      # of a study directory, after
  paribus audit network-study --accept cpu.microcode="one node is newer; stated in the paper"
  paribus audit here.tar.gz there.tar.gz           # two machines, as `paribus record` wrote them
"""


@dataclass(frozen=True, slots=True)
class _Seen:
    """What is shown: a study, the facts of the nodes of each arm, and the answer of the audit."""

    study: Study
    nodes: Mapping[str, Nodes]
    answer: Audit


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "List what differs between the arms of a study beyond its factor. For a study file,"
        " Paribus gathers the facts of every node now, through the launcher and container of each"
        " arm. For a study directory, it uses the facts that the launches recorded. Of several"
        " recordings of machines, or folders of them, it lists what differs; no study is needed."
    )
    parser.add_argument(
        "what",
        metavar="STUDY|DIR|RECORDING",
        nargs="+",
        help="a study file, one that ships, or DIR; or recordings, the reference first",
    )
    parser.add_argument(
        "--factor", default="", help="of recordings: the factor of a study that would explain facts"
    )
    parser.add_argument(
        "--all", action="store_true", help="list all differences, including unknown facts"
    )
    add_accept(parser)
    add_hosts(parser)
    add_host_keys(parser)
    parser.add_argument("--json", action="store_true", help='print JSON, schema "paribus.audit/1"')
    parser.set_defaults(execute=audit)


def audit(arguments: argparse.Namespace) -> int:
    """Return the exit code of `paribus audit`."""
    from paribus.logs import recordings

    accepted = parse_accepted(arguments.accept)
    recordings.refuse_options(arguments)
    if len(arguments.what) > 1:
        return recordings.audit_recorded(arguments, accepted)
    path = Path(arguments.what[0])
    if is_directory(path):
        seen = _of_directory(path, accepted)
    else:
        hosts = hosts_by_arm(arguments.hosts)
        seen = _of_study(str(path), accepted, hosts, accept_keys=arguments.accept_host_keys)
    recordings.note_unused(accepted, seen.answer)
    code = exit_code(seen.study, seen.nodes, seen.answer)
    if arguments.json:
        clean = code == 0
        table = recordings.to_json(seen.study, seen.nodes, seen.answer, clean=clean)
        print(json.dumps(table, indent=2))
    else:
        console = console_on(sys.stdout)
        print_audit(seen.study, seen.nodes, seen.answer, console, everything=arguments.all)
    return code


def print_audit(
    study: Study,
    nodes: Mapping[str, Nodes],
    answer: Audit,
    console: Console,
    *,
    everything: bool = False,
) -> None:
    """Print the answer of `paribus audit`: one sentence, then what differs."""
    line(console, _answer(study, answer), style="bold")
    line(console, _asked(study, nodes), style="dim")
    console.print()
    equal = f"{units.count(len(answer.equal), 'fact')} equal in all arms."
    several = len(study.arms) > 2
    print_differences(answer.differences, equal, console, several=several, everything=everything)
    if steps := how_to_separate(study, answer.differences):
        heading(console, "Which of them makes a difference")
        for step in steps:
            item(console, step)


def _answer(study: Study, answer: Audit) -> str:
    """Return the answer as the first sentence, with the next step where facts differ."""
    count = len({d.key for d in answer.differences if d.kind == "unexplained"})
    if same := indistinct(study, answer):
        names = " and ".join((study.arms[0].name, *same))
        return f"Nothing differs between the arms {names}, not even the factor ({study.factor})."
    if not count and study.factor == NOTHING:
        return "No unexplained differences between the arms, as the factor (nothing) demands."
    if not count:
        return (
            f"No unexplained differences: every difference is the factor ({study.factor})"
            " or follows from it."
        )
    what = "fact differs" if count == 1 else "facts differ"
    text = f"{count} {what} beyond the factor ({study.factor}): verdicts are withheld."
    if same := unvaried(study, answer):
        clause = not_in_factor(study, same)
        text = f"{clause[0].upper()}{clause[1:]}. {text}"
    if asked := meant(study):
        text += f" {asked[0].upper()}{asked[1:]} Else"
    return (
        f"{text} {'make' if asked else 'Make'} them"
        ' equal, name them under `explains`, or accept them with --accept KEY="reason".'
    )


def _asked(study: Study, nodes: Mapping[str, Mapping[str, Facts]]) -> str:
    """Return the sentence that names the nodes of each arm."""
    sides = [
        f"{arm.name} ({cut_names(fold(nodes.get(arm.name, {}))) or 'no nodes'})"
        for arm in study.arms
    ]
    return f"Facts of {sides[0]} against {'; '.join(sides[1:])}."


def exit_code(study: Study, nodes: Mapping[str, Nodes], answer: Audit) -> int:
    """Return the exit code: 3, 4 or 0.

    3: there is an unexplained difference, or an arm differs from the reference in nothing, not even
    the factor; 4: a node gave no facts.
    """
    if indistinct(study, answer) or any(one.kind == "unexplained" for one in answer.differences):
        return 3
    return 4 if any(ERROR in facts for arm in nodes.values() for facts in arm.values()) else 0


def _of_directory(directory: Path, accepted: Mapping[str, str]) -> _Seen:
    """Return the audit of the facts that the launches of a study directory recorded."""
    from paribus.audit.audit import of_nodes
    from paribus.judge.conclude import audited
    from paribus.plan import read_plan

    plan = read_plan(directory)
    add_accepted(directory, accepted)
    with Store(directory) as store:
        store.check_plan(plan.sha256)
        return _Seen(plan.study, of_nodes(store.gathered()), audited(plan, store))


def _of_study(
    name: str, accepted: Mapping[str, str], hosts: Mapping[str, str], *, accept_keys: bool
) -> _Seen:
    """Return the audit of facts gathered now, through the launcher and container of each arm."""
    from paribus.audit.audit import audit_study, of_nodes
    from paribus.benchmarks import benchmark_of
    from paribus.cli.hosts import reached
    from paribus.cli.shipped import announce, find_study
    from paribus.launch.gathering import asked, gather
    from paribus.launch.ready import built, make_switched_ready
    from paribus.launch.unswitched import switches_of
    from paribus.studyfile.load import load_study

    study = load_study(find_study(name), announce, hosts)
    with (
        reached(study, accept_keys=accept_keys) as opened,
        switches_of(study, stations=opened) as switches,
        built(study, None, _notify, again=False) as whole,
    ):
        ready = make_switched_ready(whole, _notify, opened, switches)
        nodes = of_nodes(gather(study, ready, opened, switches, _notify))
        known = asked(study, ready, switches)
    layers = {s.label: benchmark_of(s).layer for s in study.benchmarks}
    return _Seen(study, nodes, audit_study(study, layers, nodes, known, accepted))


def _notify(text: str) -> None:
    print(f"preparing {text}", file=sys.stderr)
