"""The meanings of the exit codes of each verb: for its help, and for docs/commands.md."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from functools import partial

from paribus.core.errors import INTERRUPTED, READER_LEFT

JUDGED = {
    0: "a verdict was reached; *equivalent* and *undecided* are verdicts",
    1: "a rule of --fail-on is met, or `calibrate` sees a difference; it comes before 3 and 4",
    3: "a verdict is withheld: the arms differ in more than the factor (before the first launch"
    " too), or the numbers cannot support one",
    4: "a benchmark gave no valid data",
}
"""Codes of verbs that end with verdicts; `watch` returns that of the study."""

EVERY = {
    2: "user error: the study, an argument, the machine or the output needs a change, which the"
    " message names",
    INTERRUPTED: "interrupted; what is finished is stored",
    READER_LEFT: "the reader of the pipe ended, as `head -1` does",
}
"""Codes of every verb."""

DONE = {0: "done"}
"""The code of verbs whose answer is never a failure."""

OF_VERBS: Mapping[str, Mapping[int, str]] = {
    **dict.fromkeys(("run", "ab", "explain", "calibrate", "report", "compare", "watch"), JUDGED),
    "verify": {
        0: "all agrees, or the verdicts are those of another version, whose differences are listed",
        1: "something differs",
    },
    "audit": {
        0: "nothing differs beyond the factor",
        3: "unexplained differences",
        4: "no facts from a node",
    },
    "record": DONE | {4: "the facts could not be read"},
    "profile": DONE | {4: "the program failed, or gave no profile"},
    "cluster": DONE | {4: "a precondition is broken, or a node was not reached"},
    "screen": DONE
    | {1: "--fail-on slow: a node or a group is slow", 4: "no launch on any node gave a figure"},
    "topology": DONE
    | {
        3: "`diff`: the trees differ",
        4: "no tree in what was read; `switch`: rolled back, or stopped",
    },
    "doctor": {0: "fit", 1: "something is likely to distort measurements"},
    "self-test": {0: "all of it works", 2: "something does not, and its line gives the cause"},
}
"""Codes by verb; all others have `DONE`."""


def of(verb: str) -> dict[int, str]:
    """Return what each exit code of a verb means, in the order of codes."""
    return dict(sorted((EVERY | dict(OF_VERBS.get(verb, DONE))).items()))


def section(verb: str) -> str:
    """Return the section on exit codes in a verb's help."""
    wrapped = partial(textwrap.fill, width=80, subsequent_indent=" " * 7)
    rows = (wrapped(f"  {code:<4} {text.replace('*', '')}") for code, text in of(verb).items())
    return "\n".join(["\nexit codes:", *rows, ""])
