"""The commands by which operators take slow nodes out of use: sbatch, scontrol and kubectl.

`paribus screen` prints them, and runs those of Slurm with --drain. A node whose reason does not
begin with words.PREFIX was drained by somebody else, and stays as it is.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from paribus.core import UserError, fold, grouped
from paribus.screen import words
from paribus.screen.answer import Answer, Line
from paribus.screen.course import nodes_of
from paribus.screen.slurm import ask_slurm, is_out

REFUSED = "drain where scontrol may be used by you; the lines are printed without --drain"

_NODE = re.compile(r"(?!(?i:all)$)[\w.-]+")


def exclude(answer: Answer) -> str:
    """Return the option of sbatch that leaves slow and failed nodes out, "" where there is none."""
    lines = (*answer.having("slow"), *answer.having("failed"))
    names = {nodes_of(one.node)[0] for one in lines}
    return f"--exclude={fold(sorted(names))}" if names else ""


def slow_nodes(answer: Answer) -> dict[str, list[Line]]:
    """Return the slow nodes, each with its lines: a node is slow if one of its GPUs is."""
    return grouped((nodes_of(one.node)[0], one) for one in answer.having("slow"))


def commands(answer: Answer, *, kubernetes: bool = False) -> tuple[list[str], list[str]]:
    """Return the commands that take the slow nodes out of use, and those that bring them back.

    They are lines for a shell: Slurm drains a node, Kubernetes keeps pods off it; both keep the
    reason.
    """
    out: list[Sequence[str]] = []
    back: list[Sequence[str]] = []
    for node, lines in slow_nodes(answer).items():
        if kubernetes:
            note = f"paribus/screen={words.reason(lines)}"
            out.append(("kubectl", "cordon", node))
            out.append(("kubectl", "annotate", "--overwrite", "node", node, note))
            back.append(("kubectl", "uncordon", node))
            back.append(("kubectl", "annotate", "node", node, "paribus/screen-"))
        else:
            out.append(_drained(node, lines))
            back.append(("scontrol", "update", f"NodeName={node}", "State=RESUME"))
    return [*map(shlex.join, out)], [*map(shlex.join, back)]


def reported(answer: Answer, *, kubernetes: bool) -> tuple[list[str], list[str]]:
    """Return the lines for operators as `commands` does, before them the option for sbatch."""
    out, back = commands(answer, kubernetes=kubernetes)
    left_out = "" if kubernetes else exclude(answer)
    return [*filter(None, [left_out]), *out], back


def _drained(node: str, lines: Sequence[Line]) -> tuple[str, ...]:
    """Return the command by which Slurm drains a node."""
    return "scontrol", "update", f"NodeName={node}", "State=DRAIN", f"Reason={words.reason(lines)}"


def drain(answer: Answer) -> list[str]:
    """Drain the slow nodes by Slurm, and return a sentence on each.

    Raises UserError where Slurm does not answer or refuses: the nodes before that one are drained.
    """
    reported = []
    slow = slow_nodes(answer)
    for node in slow:
        if not _NODE.fullmatch(node):  # such as ALL, of a screen that somebody wrote
            fix = "drain it by hand: only names of single nodes are given to scontrol"
            raise UserError("is no name of one node", place=repr(node), fix=fix)
    for node, lines in slow.items():
        state, why = _state(node)
        if (why or is_out(state)) and not why.startswith(words.PREFIX):
            reason = f"another owner's reason: {why or 'none is given'}"
            reported.append(f"{node}: left as it is: {state}, with {reason}")
        else:
            ask_slurm(_drained(node, lines), REFUSED)
            reported.append(f"{node}: drained")
    return reported


def _state(node: str) -> tuple[str, str]:
    """Return the state of a node in Slurm and its reason, "" for none."""
    text = ask_slurm(("scontrol", "show", "node", node), REFUSED)
    state = re.search(r"\bState=(\S+)", text)
    #    Reason=Not responding [root@2026-01-31T10:00:00]
    why = re.search(r"^\s*Reason=(.*?)(?: \[\S+@\S+\])?$", text, re.MULTILINE)
    if not state:
        raise UserError("scontrol shows no such node", place=node, fix=REFUSED)
    return state[1], why[1].strip() if why else ""
