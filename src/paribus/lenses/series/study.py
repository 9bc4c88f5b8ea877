"""The table [series] of a study file: what the arms are an order of."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

from paribus.border import Place, fields
from paribus.core import Asked, Keys, Study, matches
from paribus.core.changes import changes
from paribus.designs import design_of


def series_of(top: Place, folder: Path) -> Asked:
    """Return what the table [series] says."""
    place = top.within("series", top.table["series"])
    place.only(("over",))
    over: list[str] = place.need("over", _keys, 'over = "mpi", the key in which the arms differ')
    return Asked({"series": {"over": over}})


def _keys(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(fields.texts(value))


def check(top: Place, study: Study) -> None:
    """Refuse neighbours that differ in nothing, or in what is not `over`."""
    if design_of(study).ranks:
        fix = "remove plan.design, or the table [series]"
        top.refuse("plan.design", None, "is not that of a series", fix)
    over = study.asked["series"]["over"]
    known = (*over, *(f"{key}." for key in over))
    for one, other in pairwise(study.arms):
        keys = changes(one, other)
        if not keys:
            fix = "order arms that differ"
            top.refuse(f"arms.{other.name}", None, f"differs from {one.name} in nothing", fix)
        if beyond := [key for key in keys if not matches(key, known)]:
            cause = f"differs from {one.name} in {', '.join(beyond)} too"
            fix = f"make these equal, or name them: over = {json.dumps([*over, *beyond])}"
            top.refuse(f"arms.{other.name}", None, cause, fix)


KEYS = Keys(study=series_of, check=check)
