"""Which outputs of a text are of one launch, and which launches failed.

Each line that says that a launch failed is that of an output, or of none. N complete outputs are N
launches only where nothing says that one command started N of them, or that N ranks wrote them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath

from paribus.core import Unreadable, grouped
from paribus.logs.labels import COMMAND, above, starts
from paribus.logs.log import Unread
from paribus.logs.output import Failure, Output
from paribus.logs.ranks import is_alone, started
from paribus.readers.known import complaints
from paribus.readers.launches import (
    FAILED,
    NEVER_STARTED,
    exit_code,
    not_started,
    says_failed,
)
from paribus.readers.text import within

LONGEST = 160
"""Characters of a line that are quoted."""

MEASURES_NOTHING = frozenset({"xthi", "hello_jobstep", "gpus_for_tasks", "hostname", "nvidia-smi"})
"""Programs that jobs start before what they measure, to show where their ranks and GPUs are."""

LEAST_TORN = 3
"""Outputs of a tool in a text that hold lines of another, from which on they are mixed: one or two
may lack their title.
"""


def _begun(text: str, outputs: Sequence[Output]) -> dict[int, str]:
    """Return the lines below which a launch begins, by their numbers.

    Headings between outputs are those of a form that stands above the first as well. The code with
    which a launch ended is above the next.
    """
    forms = {label.form for label in outputs[0].labels}
    lines = enumerate(text.split("\n"), 1)
    return {n: line for n, line in lines if starts(line, forms) or exit_code(line) is not None}


def failures(text: str, outputs: Sequence[Output]) -> list[Failure]:
    """Set which outputs failed, and return the launches that failed without one.

    A line that says so is of the output above it, or of the one below if a launch begins between
    the two, or if none is above. It is of neither if launches begin on both sides, if the program
    was never started, or below one that was not. Lines of one launch count once. What a tool
    complains of is of the output above only if that is not whole, and an exit code of none if an
    output stands directly above.
    """
    titled = [one for one in outputs if one.title or one.readers]
    titles = [one.title_line for one in titled]
    phrases = (*FAILED, *complaints())
    if not within(phrases, text) and exit_code(text) is None:
        return []
    lines = enumerate(text.split("\n"), 1)
    said = {n: s.strip() for n, s in lines if says_failed(s, phrases) or exit_code(s)}
    begun = {n: s for n, s in _begun(text, outputs).items() if n not in said or exit_code(s)}
    numbers = [*begun]
    lost: dict[tuple[int, int], list[Failure]] = {}
    for number, line in said.items():
        before, never = (bool(within(of, line)) for of in (complaints(), NEVER_STARTED))
        one = Failure(number, line[:LONGEST], before=before and bool(titles))
        below, after = bisect_left(titles, number), bisect_left(numbers, number)
        least, most = ([0, *titles][below], [*titles, number + len(text)][below])
        parted = bool(after) and numbers[after - 1] > least
        again = after < len(numbers) and numbers[after] < most
        here = lost.get((below, after), [])
        if exit_code(line) and below and not parted:
            continue
        of = [] if again or one.before else titled[below : below + 1]
        if below and not parted and not (one.before and titled[below - 1].failure):
            of = [titled[below - 1]]
        if of and not never and not here:
            of[0].failure = of[0].failure or one
            continue
        if not here or (one.before and (here[-1].before or within(NEVER_STARTED, here[-1].said))):
            labels = above([begun[numbers[after - 1]]], 0).labels if parted else ()
            another = _is_another(not_started(line), titled)
            one = one._replace(labels=labels, another=another)
            lost.setdefault((below, after), []).append(one)
    return [one for several in lost.values() for one in several]


def _is_another(program: str, outputs: Sequence[Output]) -> bool:
    """Return whether a program that was not started is one that measures nothing.

    Any other, a wrapper of the user's too, may be a launch whose output is missing, unless the
    command above an output names it.
    """
    above_each = (PurePath(word) for one in outputs for word in one.said.get(COMMAND, "").split())
    return program in MEASURES_NOTHING and program not in {path.name for path in above_each}


def without_failures(text: str) -> str:
    """Return an output that is whole without lines on launches that failed: they are of others."""
    phrases = (*FAILED, *complaints())
    if not within(phrases, text):
        return text
    return "\n".join(line for line in text.split("\n") if not says_failed(line, phrases))


def tagged_launches(
    text: str, outputs: Sequence[Output], ranks: Sequence[str]
) -> list[list[Output]]:
    """Return by launch the outputs that several ranks wrote, and set whose each is.

    `ranks` are those of all lines by the tags before them. What a script says without a tag parts
    launches.
    """
    tags = [ranks[one.title_line - 1] for one in outputs] if ranks else []
    if len({*tags} - {""}) < 2:
        return []
    begun = [number for number in _begun(text, outputs) if not ranks[number - 1]]
    written = [one for one, tag in zip(outputs, tags, strict=True) if tag]
    for one in written:
        one.wrote = f"rank {ranks[one.title_line - 1]}"
    return list(grouped((bisect_left(begun, one.title_line), one) for one in written).values())


def take_out_mixed(outputs: Sequence[Output]) -> None:
    """Refuse all outputs of a tool of which several hold lines of each other.

    So they are where ranks write into one file without turns: what is whole by chance is no sample.
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
    """Say in what was read which outputs are of ranks of one launch; `launches` have tags.

    If one of these failed, so did all: none of their figures counts.
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
    """Return the outputs that one command started, by launch, and set which each is.

    Of others that ranks of a job may have written the logs say how many ranks these are.
    """
    found = []
    for several in grouped(((one.first_below, one.name), one) for one in outputs).values():
        logs = [log for one in several for log in one.found]
        if len(several) < 2 or not logs or not all(is_alone(log.reading) for log in logs):
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
    """Return that an output of a tool counts for nothing, because its launch failed."""
    said = f"{tool}: the launch failed: {failure.said!r}"
    return Unread(Unreadable.REFUSED, said, tool, line=failure.line)
