"""Which studies this user began, noted outside of their directories, below XDG_STATE_HOME.

By its plan and its study file: what lies at another path is another file.
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
    """Return the file that is there if this user began a study; raises RuntimeError without HOME.

    It is empty: some thousand studies take no space but their names. A study file means others
    beside it: where a link to it lies counts, not where the link leads.
    """
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state"
    name = plan.sha256.encode() + b"\0" + os.fsencode(file.parent.resolve() / file.name)
    return Path(base, "paribus", "begun", hashlib.sha256(name).hexdigest())
