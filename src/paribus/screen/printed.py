"""The answer of a screen on a terminal: what is wrong first, healthy nodes as one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paribus.core import Difference, fold
from paribus.report.printing import heading, item, line, raw
from paribus.report.unequal import LIKELY
from paribus.screen import operators, words
from paribus.screen.answer import WORDS, Answer, Line

if TYPE_CHECKING:
    from rich.console import Console

STYLES = {"slow": "bold red", "undecided": "yellow", "failed": "bold red"}


def print_answer(answer: Answer, console: Console) -> None:
    """Print the answer, its evidence and what it promises."""
    line(console, words.headline(answer), style="bold")
    line(console, words.measured(answer))
    for two in answer.groups:
        heading(console, "Two groups")
        item(console, words.group(answer, two))
        _print_facts(two.facts, console)
    for word in WORDS:
        lines = answer.having(word)
        if not lines:
            continue
        heading(console, f"{words.TITLES[word]} ({len(lines)})")
        alike: dict[tuple[str, tuple[Difference, ...]], list[Line]] = {}
        for one in lines:
            alike.setdefault((words.cause(answer.screen, one), one.facts), []).append(one)
        for (cause, facts), several in alike.items():
            names = fold(one.node for one in several)
            style = STYLES.get(word, "")
            item(console, cause or names, name=names if cause else "", style=style)
            _print_facts(facts, console)
    heading(console, "What this means")
    for sentence in words.promise(answer):
        item(console, sentence)


def print_commands(answer: Answer, console: Console, *, kubernetes: bool) -> None:
    """Print what takes the slow nodes out, and what brings them back."""
    if not (left_out := operators.exclude(answer)):
        return
    heading(console, "For operators")
    out, back = operators.drains(answer), operators.resumes(answer)
    if kubernetes:
        out, back = operators.cordons(answer), operators.uncordons(answer)
    for text in (*([] if kubernetes else [left_out]), *operators.shown(out)):
        raw(console, f"  {text}")
    if back:
        item(console, "After the repair:")
    for text in operators.shown(back):
        raw(console, f"  {text}")


def _print_facts(facts: tuple[Difference, ...], console: Console) -> None:
    for one in facts:
        said = f"{one.key} {one.arm_value}, others: {one.reference_value}"
        item(console, f"{said} ({LIKELY[one.rank]})", indent=6)
