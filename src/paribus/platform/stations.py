"""The stations of a study: which of its arms are carried out where."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

from paribus.model import Study
from paribus.platform.local import LocalStation
from paribus.platform.station import Station


@contextmanager
def stations(study: Study) -> Iterator[Mapping[str, Station]]:
    """Open the station of each arm of `study`, by the arm's name, and close all at the end.

    Arms share one, but for those of a duet, which launch at the same time.
    """
    with ExitStack() as stack:
        if study.settings.layout == "duet":
            yield {arm.name: stack.enter_context(LocalStation()) for arm in study.arms}
        else:
            yield dict.fromkeys(
                (arm.name for arm in study.arms), stack.enter_context(LocalStation())
            )
