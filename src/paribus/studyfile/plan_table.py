"""The [plan] table of a study file."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from paribus.border import Place, fields
from paribus.core import Settings, Study, parse_seconds, parse_share
from paribus.stats import few
from paribus.stats.looks import LONGER, LOOKS
from paribus.studyfile import switches

_PLAN_KEYS = (
    *("margin", "confidence", "blocks", "budget", "seed", "bind"),
    *("unit", "launches", "layout", "decides", "monitor", "every", "same_nodes", "design"),
)


def settings_of(top: Place) -> Settings:
    """Return the settings of a study file; raises StudyError for a value out of range."""
    place = top.within("plan", top.table.get("plan", {}))
    place.only(_PLAN_KEYS)
    design: Literal["standard", "few", "auto"] = "auto"
    design = place.read("design", fields.one_of("standard", "few", "auto"), design)
    fewest = few.LOOKS[0] if design == "few" else LOOKS[0]
    return Settings(
        margin=place.read("margin", parse_share, None),
        confidence=place.read("confidence", fields.confidence, 0.95),
        blocks=place.read("blocks", fields.whole(fewest, LONGER[-1]), 60),
        budget_s=place.read("budget", parse_seconds, None),
        seed=place.read("seed", fields.whole(0, 2**63 - 1), None),
        bind=place.read("bind", fields.one_of("core", "none"), "core"),
        unit=place.read("unit", fields.one_of("launch", "session"), "launch"),
        launches=place.read("launches", fields.whole(1, 1000), 5),
        layout=place.read("layout", fields.one_of("pairs", "duet"), "pairs"),
        decides=place.read("decides", fields.one_of("headline", "cases"), "headline"),
        monitor=place.read("monitor", fields.one_of(True, False), False),
        every_s=place.read("every", parse_seconds, 0.0),
        same_nodes=place.read("same_nodes", fields.one_of(True, False), False),
        design=design,
    )


def check_design(top: Place, study: Study) -> None:
    """Refuse settings of the plan that contradict each other."""
    settings = study.settings
    if settings.layout == "duet" and settings.unit == "session":
        top.refuse("plan.layout", "duet", "sessions cannot be duets", "remove one of the two")
    if settings.layout == "duet" and any(arm.hosts for arm in study.arms):
        top.refuse("plan.layout", "duet", "is of one machine, not of hosts", "drop one of the two")
    if settings.layout == "duet" and settings.bind == "none":
        top.refuse("plan.bind", "none", "the arms of a duet need cores of their own", 'drop "bind"')
    if settings.every_s and not settings.monitor:
        top.refuse("plan.every", None, "is for monitor = true", "add it, or drop `every`")
    if "launches" in top.table.get("plan", {}) and settings.unit != "session":
        top.refuse("plan.launches", None, "counts launches per session", 'add unit = "session"')
    if settings.design == "few" and (why := why_not_few(study)):
        top.refuse("plan.design", "few", *why)
    switches.check_topologies(top, study)


def why_not_few(study: Study) -> tuple[str, str] | None:
    """Return why a study cannot be one of few launches, and what to do; None if it can."""
    settings = study.settings
    if len(study.arms) != 2:
        return "compares two arms", "make a study for each pair of arms"
    if settings.confidence != 0.95:
        return "is calibrated for a confidence of 0.95", "leave confidence out"
    if settings.blocks > few.LOOKS[-1]:
        return f"ends after {few.LOOKS[-1]} blocks at the latest", "lower blocks"
    if settings.monitor or study.scaling or settings.decides == "cases":
        return (
            "has an end and compares one size by its headline",
            'leave out monitor, [scaling] and decides = "cases"',
        )
    return None


def settled_design(study: Study) -> Study:
    """Return `study` with the standard design where only that is possible or was meant.

    Sessions and duets have no start that could be shuffled: they get fewer launches on request.
    """
    settings = study.settings
    if settings.design != "auto" or (
        settings.unit == "launch" and settings.layout == "pairs" and not why_not_few(study)
    ):
        return study
    return replace(study, settings=replace(settings, design="standard"))
