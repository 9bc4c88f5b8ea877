"""Files of a machine as facts take them: bounded text, or why there is none."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from paribus.probes.archive import FILE_BYTES, Unknown


def files_of(root: Path, wanted: Iterable[str]) -> dict[str, str | Unknown]:
    """Return the text of each file under `root` that matches one of the shell patterns `wanted`."""
    found = (path for pattern in wanted for path in sorted(root.glob(pattern.lstrip("/"))))
    return {"/" + str(path.relative_to(root)): read_file(path) for path in found}


def read_file(path: Path) -> str | Unknown:
    """Return the text of a file, or why there is none: UNSUPPORTED for what is no plain file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:  # noqa: PTH123 - of a descriptor
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return Unknown.UNSUPPORTED
            data = file.read(FILE_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return Unknown.ABSENT
    except PermissionError:
        return Unknown.DENIED
    except OSError:
        return Unknown.UNSUPPORTED
    return Unknown.CUT if len(data) > FILE_BYTES else data.decode(errors="replace")
