"""`paribus audit A.tar.gz B.tar.gz`: what differs between machines, without a study; its JSON."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from paribus.audit.accepted import in_vain
from paribus.border import is_file
from paribus.core import UserError, typed
from paribus.words.notices import needless

if TYPE_CHECKING:
    from paribus.audit.audit import Audit, Nodes
    from paribus.core import Difference, Study

LIKELY = (
    "No known effect on figures",
    "Rarely affects figures",
    "Often affects figures",
    "Almost always affects figures",
)
"""What the rank of a difference means where no benchmark is named."""

RECORDED = (".tar.gz", ".tgz", ".tar")


def refuse_options(arguments: argparse.Namespace) -> None:
    """Raise UserError for options of a study beside recordings, and for one recording alone."""
    if len(arguments.what) > 1:
        if arguments.hosts or arguments.accept_host_keys:
            place = "--hosts" if arguments.hosts else "--accept-host-keys"
            fix = "leave it out, or audit a study: recordings are of machines already reached"
            raise UserError("is not possible with recordings", place=place, fix=fix)
        return
    (what,) = arguments.what
    if what.endswith(RECORDED) or is_file(Path(what) / "unknown.json"):
        show = typed(("paribus", "record", "--from", what))
        fix = f"give another beside it; to see what is in it: {show}"
        raise UserError("is one recording", place=what, fix=fix)
    if arguments.factor:
        fix = "leave it out: a study names its own factor"
        raise UserError("is not possible with a study", place="--factor", fix=fix)


def note_unused(accepted: Mapping[str, str], answer: Audit) -> None:
    """Print which accepted keys have no effect."""
    differing = {one.key for one in answer.differences}
    if unused := in_vain(accepted, differing, answer.equal):
        print(f"note: --accept without effect: {needless(unused)}", file=sys.stderr)


def audit_recorded(arguments: argparse.Namespace, accepted: Mapping[str, str]) -> int:
    """Return the exit code of `paribus audit` on recordings: 3 where something differs, else 0."""
    from paribus.logs.recordings import audit_recordings

    paths = [Path(name) for name in arguments.what]
    study, nodes, answer = audit_recordings(paths, arguments.factor, accepted)
    note_unused(accepted, answer)
    code = 3 if any(one.kind == "unexplained" for one in answer.differences) else 0
    if arguments.json:
        print(json.dumps(to_json(study, nodes, answer, clean=code == 0), indent=2))
    else:
        _show(study, nodes, answer, everything=arguments.all)
    return code


def to_json(
    study: Study, nodes: Mapping[str, Nodes], answer: Audit, *, clean: bool
) -> dict[str, object]:
    """Return the schema paribus.audit/1 (docs/audit.md)."""
    return {
        "schema": "paribus.audit/1",
        "question": study.question,
        "factor": study.factor,
        "arms": [arm.name for arm in study.arms],
        "clean": clean,
        "equal": sorted(answer.equal),
        "differences": [asdict(one) for one in answer.differences],
        "facts": {
            arm: {node: dict(facts) for node, facts in by.items()} for arm, by in nodes.items()
        },
    }


def _show(study: Study, nodes: Mapping[str, Nodes], answer: Audit, *, everything: bool) -> None:
    """Print one sentence, what differs by its likely effect, and the rest by its kind."""
    from paribus.core import count
    from paribus.report.printing import console_on, line
    from paribus.report.unequal import print_differences

    console = console_on(sys.stdout)
    open_ = [one for one in answer.differences if one.kind == "unexplained"]
    number = len({one.key for one in open_})
    beyond = f" beyond the factor ({study.factor})" if study.factor else ""
    said = f"{count(number, 'fact')} {'differs' if number == 1 else 'differ'}{beyond}."
    line(console, said if number else f"No fact differs{beyond}.", style="bold")
    names = [
        f"{arm} ({count(len(of), 'recording')})" if len(of) > 1 else arm
        for arm, of in nodes.items()
    ]
    line(console, f"Recorded facts of {names[0]} against {'; '.join(names[1:])}.", style="dim")
    console.print()
    by_reason: dict[tuple[int, str], list[Difference]] = {}
    for one in open_:
        by_reason.setdefault((one.rank, one.reason), []).append(one)
    for (rank, reason), mine in by_reason.items():
        line(console, f"{LIKELY[rank]}: {reason}", indent=2, hang=2, style="bold")
        for one in mine:
            arm = f" ({one.arm})" if len(study.arms) > 2 else ""
            said = f"{one.key}{arm}: {one.reference_value} -> {one.arm_value}"
            line(console, said, indent=4, hang=2)
    rest = [one for one in answer.differences if one.kind != "unexplained"]
    equal = f"{count(len(answer.equal), 'fact')} equal in all."
    print_differences(rest, equal, console, several=len(study.arms) > 2, everything=everything)
