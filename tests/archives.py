"""Archives of the recorded machines, unpacked."""

from __future__ import annotations

import tarfile
from pathlib import Path


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a tar of this repository; Python before 3.11.4 knows no filters, 3.12 asks for one."""
    with tarfile.open(archive) as tar:
        if hasattr(tarfile, "data_filter"):
            tar.extractall(folder, filter="tar")
        else:
            tar.extractall(folder)
