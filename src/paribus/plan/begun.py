"""Which studies this user began, noted outside of their directories, below XDG_STATE_HOME.

`--resume` executes what a plan names, and a study directory may come from anybody: so it asks
unless the user began the study of this plan, from the study file at this path.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from paribus.border import make_directory
from paribus.plan.frozen import Plan


def note(plan: Plan) -> None:
    """Note that this user begins a study; where that cannot be noted, `--resume` will ask."""
    with suppress(OSError, RuntimeError):
        entry = entry_of(plan, Path(plan.study.path))
        make_directory(entry.parent)
        entry.touch(mode=0o600)


def entry_of(plan: Plan, file: Path) -> Path:
    """Return the path of the empty file that notes `plan` as begun from the study file `file`.

    A study file names others beside it: so of a link to it the link's place counts, not where the
    link leads. Raises RuntimeError without HOME.
    """
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state"
    name = plan.sha256.encode() + b"\0" + os.fsencode(file.parent.resolve() / file.name)
    return Path(base, "paribus", "begun", hashlib.sha256(name).hexdigest())
