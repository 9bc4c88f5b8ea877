"""The table [series] of a study file: the key, such as `mpi`, whose values are the arms' order."""

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
    """Return the keys in which neighbouring arms may differ, as the table [series] names them."""
    place = top.within("series", top.table["series"])
    place.only(("over",))
    over: list[str] = place.need("over", _keys, 'over = "mpi", the key in which the arms differ')
    return Asked({"series": {"over": over}})


def _keys(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(fields.texts(value))


def check(top: Place, study: Study) -> None:
    """Refuse neighbouring arms that differ in nothing, or in other keys than those of `over`."""
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
