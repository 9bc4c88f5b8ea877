"""What launchers put before each line when they are asked to tell which rank wrote it."""

from __future__ import annotations

import re

HEAD = 1 << 16
"""Where the tag of a rank must be seen, in characters, so that nobody's untagged output is searched
further."""

_STREAM = "<stdout>:"
_NAMED = r"(?m)^(?:\w{3} [\w :]{16,24})?(?:\[[^]\n]{1,80}\]){0,3}<std(?:out|err)>:"
"""`[1,0]<stdout>:` of Open MPI (`--tag-output`, `--timestamp-output`, `--output tag`, `rank`,
`tag-detailed`, `timestamp`) and of horovodrun."""

_HINTS = ("0: ", "[0] ", "0]:")
_NUMBERED = (
    re.compile(r"^ *\d++: ?", re.M),
    re.compile(r"^\[\d++\] ?", re.M),
    re.compile(r"^\[[a-z]++\d++\]:", re.M),
)
"""`0: ` of Slurm (`srun --label`), `[0] ` of Hydra (`mpiexec -l` of MPICH and Intel MPI), and
`[default0]:` of torchrun (`--tee`)."""


def untagged(text: str) -> str:
    """Return `text` without the tags of ranks before its lines, the same text where there are none.

    A number before a line is a tag where most lines from the first to the last such line have one.
    """
    if _STREAM in text:
        # Open MPI 5 puts a blank behind; version 4 does not, and lines without one show it.
        blank = "" if re.search(f"{_NAMED}(?! )", text) else " "
        return re.sub(_NAMED + blank, "", text)
    head = text[:HEAD]
    if any(hint in head for hint in _HINTS):
        for tag in _NUMBERED:
            places = [found.start() for found in tag.finditer(text)]
            if places and 2 * len(places) > text.count("\n", places[0], places[-1]) + 1:
                return tag.sub("", text)
    return text
