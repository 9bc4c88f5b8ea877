"""The key `extremes` of a study file: from which slowdown on a launch is named."""

from __future__ import annotations

from pathlib import Path

from paribus.border import Place, fields
from paribus.core import Asked, Keys


def asked(top: Place, folder: Path) -> Asked:
    return Asked({"extremes": top.read("extremes", fields.whole(1, 9), 1)})


KEYS = Keys(study=asked)
