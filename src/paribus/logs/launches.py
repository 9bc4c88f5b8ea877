"""Which outputs of a text are of one launch, and which launches failed.

Each line that says that a launch failed, such as "srun: error: node1: task 0: Killed", is that of
the launch of one output, or of a launch without output. N complete outputs are N launches, unless
one command started N ranks of which each wrote one, or tags show that ranks of one launch did.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import PurePath

from paribus.core import Unreadable, grouped
from paribus.logs.labels import COMMAND, starts
from paribus.logs.labels import above as labels_above
from paribus.logs.log import Unread
from paribus.logs.output import Failure, Output
from paribus.logs.ranks import is_of_one_rank, started
from paribus.readers.known import complaints
from paribus.readers.launches import (
    BY_SHELL,
    FAILED,
    MEASURES_NOTHING,
    NEVER_STARTED,
    by_shell,
    exit_code,
    not_started,
    says_failed,
)
from paribus.readers.text import within

LONGEST = 160
"""Characters of a line that are quoted."""

LEAST_TORN = 3
"""Outputs of a tool with lines of another output, from which on all of the text are mixed.

One or two such may come from an output that lacks its title.
"""


def _first_lines(text: str, outputs: Sequence[Output]) -> dict[int, str]:
    """Return the lines below which a launch begins, by their numbers.

    These are echoed commands, prompts, headings of a form that stands above the first output, lines
    that count launches as those above an output do, and the exit code of the launch before.
    """
    forms = {label.form for label in outputs[0].labels}
    counted = [label for one in outputs for label in one.labels if label.counts]
    alike = {re.sub(r"\d+", "", " ".join(label)) for label in counted}
    words = [*{re.sub(r"\d+", "", label.counts).split()[0] for label in counted}]

    def begins(line: str) -> bool:
        if starts(line, forms) or exit_code(line) is not None:
            return True
        labels = labels_above([line], 0).labels if within(words, line) else ()
        return any(o.counts and re.sub(r"\d+", "", " ".join(o)) in alike for o in labels)

    return {n: line for n, line in enumerate(text.split("\n"), 1) if begins(line)}


def failures(text: str, outputs: Sequence[Output]) -> list[Failure]:
    """Set `failure` of the outputs whose launches failed; return the launches without an output.

    Marks divide the text: titles of outputs, and lines below which a launch begins. Each line that
    says that a launch failed is judged by the marks above and below it, in `_without_output`. An
    exit code directly below an output counts only if others are 0: else it may be that of the job.
    A program that a shell did not find, and that measures nothing, is of no launch.
    """
    phrases = (*FAILED, *complaints())
    if not within((*phrases, *BY_SHELL), text) and exit_code(text) is None:
        return []
    lines = [*enumerate(text.split("\n"), 1)]
    codes = {n: code for n, line in lines if (code := exit_code(line)) is not None}
    failing = {n: s.strip() for n, s in lines if codes.get(n) or says_failed(s, phrases)}
    titled = {one.title_line: one for one in outputs if one.title or one.readers}
    begun = _first_lines(text, outputs)
    begun = {n: line for n, line in begun.items() if n in codes or n not in failing}
    by_code = 0 in codes.values()
    marks = [0, *sorted({*titled, *begun}), len(lines) + 1]
    found: list[Failure] = []
    for at, numbers in grouped((bisect_left(marks, n), n) for n in failing).items():
        above, below = (titled.get(mark) for mark in marks[at - 1 : at + 1])
        begins = "" if above else begun.get(marks[at - 1], "")
        several = []
        for number in numbers:
            failure = _failure(number, failing[number], begins, titled.values())
            if failure.another and by_shell(failing[number]):
                found.append(failure._replace(labels=()))
            elif by_code or not (above and number in codes):
                several.append(failure)
        found += _without_output(several, above, below, alone=not titled)
    return sorted(found, key=lambda failure: failure.line)


def _failure(number: int, line: str, begins: str, outputs: Collection[Output]) -> Failure:
    """Return what a line says of a failed launch; `begins` is the line above that begins it, or "".

    `outputs` are those of the whole text.
    """
    labels = labels_above([begins], 0).labels if begins else ()
    program = not_started(line)
    unstarted = bool(program or within(NEVER_STARTED, line))
    before = bool(within(complaints(), line))
    another = _measures_nothing(program, outputs)
    return Failure(number, line[:LONGEST], labels, another, before, unstarted)


def _without_output(
    failing: Sequence[Failure], above: Output | None, below: Output | None, *, alone: bool
) -> list[Failure]:
    """Return which failures between two marks are of launches without an output, each launch once.

    `above` and `below` are the outputs whose titles the marks are, None for other marks. A failure
    is of the output above, or else of that below, and is set there: not if the program was never
    started, nor below a launch without an output. What a tool complains of is never of the output
    below, and of that above only once; another complaint is of another launch, unless they stand
    `alone`, in a text without outputs: HPCC complains twice.
    """
    lost: list[Failure] = []
    for failure in failing:
        output = None if failure.before else below
        if above and not (failure.before and above.failure):
            output = above
        if output and not lost and not failure.unstarted:
            output.failure = output.failure or failure
        elif not lost or (
            failure.before and (lost[-1].unstarted or (lost[-1].before and not alone))
        ):
            lost.append(failure)
    return lost


def _measures_nothing(program: str, outputs: Iterable[Output]) -> bool:
    """Return whether no output is missing if a program was not started, such as hostname.

    Of any other, a wrapper of the user's too, the output may be missing. So it may be if the
    command above an output names the program.
    """
    if program not in MEASURES_NOTHING:
        return False
    commands = (one.labels_in_force.get(COMMAND, "") for one in outputs)
    return all(program != PurePath(word).name for line in commands for word in line.split())


def without_failures(text: str) -> str:
    """Return an output without lines that say that a launch failed.

    For an output that is whole: these lines are of another launch.
    """
    phrases = (*FAILED, *complaints())
    if not within(phrases, text):
        return text
    return "\n".join(line for line in text.split("\n") if not says_failed(line, phrases))


def tagged_launches(
    text: str, outputs: Sequence[Output], ranks: Sequence[str]
) -> list[list[Output]]:
    """Return the outputs that several ranks wrote, in a list for each launch, and set `wrote`.

    `ranks` is which rank wrote each line, by the tags before them. The first line of a launch that
    has no tag, which a script printed, separates launches. Empty where not several ranks wrote.
    """
    tags = [ranks[one.title_line - 1] for one in outputs] if ranks else []
    if len({*tags} - {""}) < 2:
        return []
    begun = [number for number in _first_lines(text, outputs) if not ranks[number - 1]]
    written = [one for one, tag in zip(outputs, tags, strict=True) if tag]
    for one in written:
        one.wrote = f"rank {ranks[one.title_line - 1]}"
    return list(grouped((bisect_left(begun, one.title_line), one) for one in written).values())


def take_out_mixed(outputs: Sequence[Output]) -> None:
    """Refuse all outputs of a tool if LEAST_TORN or more hold lines of each other.

    So they do where ranks write into one file at the same time: those that are whole by chance are
    no sample of all.
    """
    code = Unreadable.MIXED
    torn = Counter(why.tool for one in outputs for why in one.problems if why.code is code)
    mixed = {tool for tool, number in torn.items() if number >= LEAST_TORN}
    for one in outputs:
        tools = {*(log.reading.benchmark for log in one.found), *(why.tool for why in one.problems)}
        if not tools.isdisjoint(mixed):
            one.found = []
            one.problems = [Unread(code, tool, tool) for tool in sorted(tools & mixed)]
        one.problems = [
            replace(why, code=Unreadable.REFUSED)
            if why.code is code and why.tool not in mixed
            else why
            for why in one.problems
        ]


def labels_by_rank(outputs: Sequence[Output], launches: Sequence[Sequence[Output]]) -> None:
    """Add to the logs of outputs that ranks of one launch wrote the label of the rank.

    `launches` are those that tags show, if there are any. If one of the outputs of a launch failed,
    so did the launch: all are refused.
    """
    launches = launches or _started_together(outputs)
    for launch in launches:
        died = next((one.failure for one in launch if one.failure), None)
        for one in launch:
            logs, one.found = one.found, []
            if died is None:
                one.found = [replace(o, labels={**o.labels, "wrote": one.wrote}) for o in logs]
            else:
                one.problems += [refused_with(died, log.reading.benchmark) for log in logs]


def _started_together(outputs: Sequence[Output]) -> list[list[Output]]:
    """Return the outputs that ranks of one command wrote, in a list for each launch; set `wrote`.

    Where a job, not the command, shows that ranks may have written them, their logs get its number
    of `ranks`.
    """
    found = []
    for several in grouped(((one.first_below, one.name), one) for one in outputs).values():
        logs = [log for one in several for log in one.found]
        if len(several) < 2 or not logs or not all(is_of_one_rank(log.reading) for log in logs):
            continue
        ranks, by_command = started(logs[0].labels)
        if by_command and len(several) == ranks:
            for number, one in enumerate(several, 1):
                one.wrote = f"output {number}/{ranks}"
            found.append(several)
        elif ranks > 1 and (by_command or len(several) % ranks == 0):
            for one in several:
                one.found = [replace(log, ranks=ranks) for log in one.found]
    return found


def refused_with(failure: Failure, tool: str) -> Unread:
    """Return that an output of a tool is refused because its launch failed."""
    cause = f"{tool}: the launch failed: {failure.text!r}"
    return Unread(Unreadable.REFUSED, cause, tool, line=failure.line)
