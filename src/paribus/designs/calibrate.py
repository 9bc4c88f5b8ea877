"""Calibration: the reference of a study against itself, to see what noise alone looks like."""

from __future__ import annotations

from dataclasses import replace

from paribus.core import Arm, Study, StudyError
from paribus.designs.standard import Design
from paribus.stats.looks import Looks, nominal_level

LEAST_BLOCKS = 18
"""Blocks of the first look: with fewer, states and drift are not seen, nor scatter estimated."""

MOST_ARMS = 1000
TWICE = 2


class Calibrate(Design):
    """The plan of a study without looks before LEAST_BLOCKS; both arms are its reference."""

    def refusal(self) -> tuple[str, object, str, str] | None:
        fix = "leave it out, and use the verb: paribus calibrate STUDY"
        cause = "is what `paribus calibrate` makes of a study"
        return None if "calibration" in self.study.asked else ("design", "calibrate", cause, fix)

    def settled(self, study: Study) -> Study:
        return study if "calibration" in study.asked else calibrated(study)

    def stages(self) -> tuple[Arm, ...]:
        if "calibration" in self.study.asked:
            arms_of(self.study)
        return self.study.arms

    def looks(self) -> Looks:
        planned = super().looks().at
        at = tuple(look for look in planned if look >= LEAST_BLOCKS) or planned[-1:]
        return Looks(at, nominal_level(round(1 - self.settings.confidence, 12), at))

    def sentence(self) -> str:
        return f"Both arms are the reference of a study. {super().sentence()}"


def arms_of(study: Study) -> int:
    """Return the number of arms of the study that is calibrated; raises ValueError if forged."""
    table = study.asked.get("calibration")
    arms = table.get("arms") if isinstance(table, dict) else None
    if not isinstance(arms, int) or not 0 < arms <= MOST_ARMS or len(study.arms) != TWICE:
        raise ValueError("it is a calibration of no study")
    return arms


def calibrated(study: Study) -> Study:
    """Return `study` as one that compares its reference with itself.

    Raises StudyError for one that has no end, or several allocations.
    """
    if study.settings.monitor or study.settings.allocations:
        fix = "remove monitor and allocations from [plan]"
        raise StudyError("a calibration has an end, in one allocation", place=study.path, fix=fix)
    reference = study.arms[0]
    settings = replace(study.settings, design="calibrate")
    if reference.hosts and reference.hosts.scheduler:
        settings = replace(settings, same_nodes=True)
    return replace(
        study,
        question=f"Does {reference.name} differ from itself?",
        factor="nothing",
        explains=(),
        arms=(reference, replace(reference, name=f"{reference.name}-again")),
        settings=settings,
        hosts={name: one for name, one in study.hosts.items() if name == reference.name},
        asked={"calibration": {"arms": len(study.arms)}},
    )


def alone(study: Study, arm: str) -> Study:
    """Return `study` as one that launches `arm` only, twice in each block.

    Raises StudyError for an arm that it does not have.
    """
    chosen = [one for one in study.arms if one.name == arm]
    if not chosen:
        fix = f"arms: {', '.join(one.name for one in study.arms)}"
        raise StudyError(f"has no arm {arm!r}", place=study.path, fix=fix)
    others = tuple(one for one in study.arms if one.name != arm)
    return calibrated(replace(study, arms=(*chosen, *others)))
