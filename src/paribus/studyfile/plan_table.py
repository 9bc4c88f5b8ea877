"""The [plan] table of a study file."""

from __future__ import annotations

from paribus.border import Place, fields
from paribus.core import Settings, Study, parse_seconds, parse_share
from paribus.designs import DESIGNS, design_of, least_blocks
from paribus.stats.looks import LONGER
from paribus.studyfile import switches

_PLAN_KEYS = (
    *("margin", "confidence", "blocks", "budget", "seed", "bind"),
    *("unit", "launches", "layout", "decides", "monitor", "every", "same_nodes", "design"),
)


def settings_of(top: Place) -> Settings:
    """Return the settings of a study file; raises StudyError for a value out of range."""
    place = top.within("plan", top.table.get("plan", {}))
    place.only(_PLAN_KEYS)
    designs = ("standard", *(str(value) for key, value in DESIGNS if key == "design"))
    design = place.read("design", fields.one_of(*designs), "auto")
    return Settings(
        margin=place.read("margin", parse_share, None),
        confidence=place.read("confidence", fields.confidence, 0.95),
        blocks=place.read("blocks", fields.whole(least_blocks(design), LONGER[-1]), 60),
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
    design = design_of(study)
    if settings.every_s and design.has_end:
        top.refuse("plan.every", None, "is for monitor = true", "add it, or drop `every`")
    if "launches" in top.table.get("plan", {}) and not design.session:
        top.refuse("plan.launches", None, "counts launches per session", 'add unit = "session"')
    if refused := design.refusal():
        key, value, cause, fix = refused
        top.refuse(f"plan.{key}", value, cause, fix)
    switches.check_topologies(top, study)
