"""What a failed launch said of itself, out of what launchers and libraries say around it."""

from __future__ import annotations

import re
from collections.abc import Sequence

LONGEST = 200
"""Characters of a line that are quoted."""

MOST_LINES = 400
"""Lines from the end of an output that are looked at: programs say there what failed."""

# Open MPI and PRRTE draw such a line above and below what they have to say.
_BOX = re.compile(r"-{60,}")
_LAUNCHER = re.compile(
    # Open MPI's own lines, such as the stack of a rank that crashed.
    r"\[[\w.-]+:\d+\] |\*\*\* +(?:An error occurred in MPI|on |MPI_ERRORS_ARE_FATAL|and )"
    # What hydra (MPICH, Intel MPI) prints after the rank's own last word.
    r"|={60,}|=   |YOUR APPLICATION TERMINATED|This typically refers to|Please see the FAQ page"
    r"|Abort\(\d+\) on node |\[(?:proxy|mpiexec|cli_\d+)[:\]@]"
    r"|\d+ total process(?:es)? failed to start"
    r"|paribus-serve: the server |srun: (?:error|Job step|Force)|slurmstepd: "
    r"|Primary job +terminated"
)
_CRASH = re.compile(r"(?:\] Signal: |EXIT STRING: )(.*)")
_ERROR = re.compile(
    r"error|fatal|fail|cannot|can[`']?t\b|could ?n[o']t|unable|not found|no such|invalid|illegal"
    r"|refused|denied|abort|exception|killed|out of memory|missing|unknown|unrecognized",
    re.I,
)
# Scripts of ours: whoever says that a server ended does not know why, the others do.
_OURS = re.compile(r"paribus-\w+: (?!the server )")
_WARNING = re.compile(r"\bwarn(?:ing)?\b|\bnote:", re.I)


def why(out: str, err: str) -> tuple[str, str]:
    """Return the line that shows why a launch failed, and "out" or "err" for where it stands.

    What a script of ours said of it; else the last line that speaks of an error, by the program
    itself: of its stderr, else its stdout; else its last line on stderr; else what launcher or MPI
    library said; else its last line on stdout. ("", "out") where nothing was printed.
    """
    own_err, said_err = _apart(err)
    own_out, said_out = _apart(out)
    if ours := [line for line in own_err if _OURS.match(line)]:
        return ours[0][:LONGEST], "err"
    for where, lines in (("err", own_err), ("out", own_out)):
        if reported := [
            line for line in lines if _ERROR.search(line) and not _WARNING.search(line)
        ]:
            return reported[-1][:LONGEST], where
    if own_err:
        return own_err[-1][:LONGEST], "err"
    for where, several in (("err", said_err), ("out", said_out)):
        if several:
            return several[0][:LONGEST], where
    return (own_out[-1][:LONGEST] if own_out else ""), "out"


def _apart(text: str) -> tuple[list[str], list[str]]:
    """Return the lines that the program printed, and what launcher and MPI library said."""
    own: list[str] = []
    said: list[str] = []
    box: list[str] | None = None
    for line in (raw.strip() for raw in text.splitlines()[-MOST_LINES:]):
        if _BOX.fullmatch(line):
            if box:
                said.append(_sentence(" ".join(box)))
            box = [] if box is None else None
        elif box is not None:
            box += [line] if line else []
        elif crash := _CRASH.search(line):
            said.append(crash[1])
        elif _LAUNCHER.match(line):
            if "execvp error" in line or line.startswith("paribus-"):
                said.append(line.partition("): ")[2] or line)
        elif any(character.isalnum() for character in line):
            own.append(line)
    own += box or []
    return own, _telling(said)


def _sentence(box: str) -> str:
    """Return the first sentence of what a launcher says in a box, and which program it looked for.

    >>> _sentence("mpirun was unable to find the file. This error was first. Executable: nosuch")
    'mpirun was unable to find the file (nosuch)'
    """
    looked_for = re.search(r"Executable: (\S+)", box)
    first = re.split(r"\.\s|\.$", box)[0]
    return f"{first} ({looked_for[1]})" if looked_for else first


def _telling(said: Sequence[str]) -> list[str]:
    """Return what says more than that a process has failed, if anything does."""
    generic = ("Primary job", "mpirun detected that", "prterun detected that", "prterun has exited")
    return [one for one in said if not one.startswith(generic)] or list(said)
