"""When a launch began, as tools print it: the fact `launch.date`, by which logs are ordered."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_FORMS = ("%a %b %d %H:%M:%S %Y", "%m/%d/%Y %H:%M:%S")


def launch_date(said: object) -> dict[str, str]:
    """Return the fact for seconds since the epoch or a printed date; nothing for anything else.

    A printed date bears no zone: it stays as it is, in the time of the machine that printed it.
    """
    if isinstance(said, int | float) and not isinstance(said, bool):
        if not 1e8 < said < 1e11:
            return {}
        return {"launch.date": datetime.fromtimestamp(said, UTC).isoformat(timespec="seconds")}
    for form in _FORMS:
        try:
            date = datetime.strptime(re.sub(r" +", " ", str(said).strip()), form)
        except ValueError:
            continue
        return {"launch.date": date.isoformat()}
    return {}
