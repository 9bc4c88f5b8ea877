"""Finding the error message of a failed launch among the lines of launchers and MPI libraries.

Of "./solver: error: no input file" and twenty lines by which mpirun reports that a process ended,
the first is the one to show.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

LONGEST = 200
"""The most characters of a line that are quoted."""

MOST_LINES = 400
"""Lines from the end of an output that are looked at: programs print their errors there."""

# Open MPI and PRRTE draw such a line above and below their messages.
_BOX = re.compile(r"-{60,}")
# How lines begin that are not the program's own.
_LAUNCHER = re.compile(
    # Open MPI's own lines, such as the stack of a rank that crashed.
    r"\[[\w.-]+:\d+\] |\*\*\* +(?:An error occurred in MPI|on |MPI_ERRORS_ARE_FATAL|and )"
    # What hydra (MPICH, Intel MPI) prints after the last line of the rank.
    r"|={60,}|=   |YOUR APPLICATION TERMINATED|This typically refers to|Please see the FAQ page"
    r"|Abort\(\d+\) on node |\[(?:proxy|mpiexec|cli_\d+)[:\]@]"
    r"|\d+ total process(?:es)? failed to start"
    r"|paribus-serve: the server |srun: (?:error|Job step|Force)|slurmstepd: "
    r"|Primary job +terminated"
)
# Open MPI: "[node1:71] Signal: Segmentation fault (11)"; hydra: "EXIT STRING: Killed (signal 9)".
_CRASH = re.compile(r"(?:\] Signal: |EXIT STRING: )(.*)")
_ERROR = re.compile(
    r"error|fatal|fail|cannot|can[`']?t\b|could ?n[o']t|unable|not found|no such|invalid|illegal"
    r"|refused|denied|abort|exception|killed|out of memory|missing|unknown|unrecognized",
    re.I,
)
# Our own scripts know why a launch failed, except for a server that ended.
_OURS = re.compile(r"paribus-\w+: (?!the server )")
_WARNING = re.compile(r"\bwarn(?:ing)?\b|\bnote:", re.I)


def why(out: str, err: str) -> tuple[str, str]:
    """Return the line that shows why a launch failed, and "out" or "err" for where it stands.

    In order of preference: the line of a script of ours; the last line of the program that looks
    like an error, on stderr, then on stdout; its last line on stderr; a message of the launcher or
    MPI library; its last line on stdout. ("", "out") if nothing was printed.
    """
    of_program_err, of_launcher_err = _divided(err)
    of_program_out, of_launcher_out = _divided(out)
    if ours := [line for line in of_program_err if _OURS.match(line)]:
        return ours[0][:LONGEST], "err"
    for where, lines in (("err", of_program_err), ("out", of_program_out)):
        if errors := [line for line in lines if _ERROR.search(line) and not _WARNING.search(line)]:
            return errors[-1][:LONGEST], where
    if of_program_err:
        return of_program_err[-1][:LONGEST], "err"
    for where, messages in (("err", of_launcher_err), ("out", of_launcher_out)):
        if messages:
            return messages[0][:LONGEST], where
    return (of_program_out[-1][:LONGEST] if of_program_out else ""), "out"


def _divided(text: str) -> tuple[list[str], list[str]]:
    """Return the lines of the program itself, and the messages of launcher and MPI library."""
    of_program: list[str] = []
    messages: list[str] = []
    box: list[str] | None = None  # the lines so far within a box
    for line in (raw.strip() for raw in text.splitlines()[-MOST_LINES:]):
        if _BOX.fullmatch(line):
            if box:
                messages.append(_sentence(" ".join(box)))
            box = [] if box is None else None
        elif box is not None:
            box += [line] if line else []
        elif crash := _CRASH.search(line):
            messages.append(crash[1])
        elif _LAUNCHER.match(line):
            if "execvp error" in line or line.startswith("paribus-"):
                messages.append(line.partition("): ")[2] or line)
        elif any(character.isalnum() for character in line):
            of_program.append(line)
    of_program += box or []
    return of_program, _informative(messages)


def _sentence(box: str) -> str:
    """Return the first sentence of a launcher's message, and the program that it looked for.

    >>> _sentence("mpirun was unable to find the file. This error was first. Executable: nosuch")
    'mpirun was unable to find the file (nosuch)'
    """
    looked_for = re.search(r"Executable: (\S+)", box)
    first = re.split(r"\.\s|\.$", box)[0]
    return f"{first} ({looked_for[1]})" if looked_for else first


def _informative(messages: Sequence[str]) -> list[str]:
    """Return the messages that say more than that a process has failed; all if none does."""
    generic = ("Primary job", "mpirun detected that", "prterun detected that", "prterun has exited")
    return [one for one in messages if not one.startswith(generic)] or list(messages)
