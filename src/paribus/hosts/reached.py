"""Other machines: each is reached by a command of this one that starts a shell there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Host:
    """A machine that is not this one, or a part of this one that stands for a machine.

    `name` is what the study calls it and what launchers know it by. `shell` is an argv of this
    machine that runs /bin/sh there, which takes its script from standard input, as
    `ssh NAME exec /bin/sh` does; its exit code is the shell's, 255 where there is no connection.
    `master` does so too, and makes the connection which `shell` then uses, and that ends with it;
    none where no connection is needed. MPI is looked for in `places` too, after the PATH there.
    """

    name: str
    shell: tuple[str, ...]
    master: tuple[str, ...] = ()
    places: tuple[Path, ...] = ()
