"""Other machines: each is reached by a command of this one that starts a shell there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Host:
    """A machine that is not this one, or a part of this one that stands for a machine.

    `name`: its name in the study and for launchers. `shell`: an argv of this machine that runs
    /bin/sh there, which reads its script from standard input, as `ssh NAME exec /bin/sh` does; its
    exit code is the shell's, 255 without a connection. `master`: an argv that does the same, and
    opens the connection which `shell` then uses until it ends; () where none is needed. `places`:
    where MPI is looked for after the PATH there.
    """

    name: str
    shell: tuple[str, ...]
    master: tuple[str, ...] = ()
    places: tuple[Path, ...] = ()
