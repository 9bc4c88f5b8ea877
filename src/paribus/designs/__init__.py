"""How a study is planned, launched, judged and described: its design, one file for each.

A setting of [plan] names a design. The standard one is the base class of all others, which override
what differs. A study may name two, such as duets without an end: then it has a class with both as
bases, in the order of DESIGNS.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module

from paribus.core import Settings, Study
from paribus.designs.standard import Design

DESIGNS: Mapping[tuple[str, object], str] = {
    ("design", "calibrate"): "paribus.designs.calibrate:Calibrate",
    ("unit", "session"): "paribus.designs.sessions:Sessions",
    ("unit", "build"): "paribus.designs.builds:Builds",
    ("layout", "duet"): "paribus.designs.duet:Duet",
    ("monitor", True): "paribus.designs.monitored:Monitored",
    ("design", "few"): "paribus.designs.few:Few",
    ("design", "explain"): "paribus.designs.explain:Explain",
    ("design", "series"): "paribus.designs.series:InOrder",
    ("design", "allocations"): "paribus.designs.lent:Lent",
    ("design", "auto"): "paribus.designs.auto:Auto",
}
"""The module and class of a design, by the setting of [plan] and its value that name it."""


def design_of(study: Study) -> Design:
    """Return the design of a study; only the modules that its settings name are loaded."""
    return _class_of(_named(study.settings))(study)


def least_blocks(design: str) -> int:
    """Return the fewest blocks of a study whose [plan] has this `design`."""
    return _class_of(tuple(p for at, p in DESIGNS.items() if at == ("design", design))).least_blocks


def _named(settings: Settings) -> tuple[str, ...]:
    return tuple(p for (key, value), p in DESIGNS.items() if getattr(settings, key) == value)


@cache
def _class_of(places: tuple[str, ...]) -> type[Design]:
    """Return the class at a place "MODULE:CLASS", one with several as bases; Design without any."""
    split = (place.split(":") for place in places)
    found = [getattr(import_module(module), name) for module, name in split] or [Design]
    return found[0] if len(found) == 1 else type("Design", tuple(found), {})
