"""Hosts whose ranks get less of their cores than those of the other hosts, by what ranks report."""

from __future__ import annotations

from array import array
from typing import Any

from paribus.core import Notice, NoticeName, State
from paribus.stats.matrix import lagging
from paribus.store import Stored

PREEMPTIONS_S = 1.0
"""Preemptions of a rank per second from which its time off the core was taken; else it slept."""


class Lag:
    """What each host's worst rank lacked of its core, launch by launch: wall over CPU time."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, tuple[str, ...]], list[array[float]]] = {}
        self._labels: dict[tuple[str, tuple[str, ...]], dict[str, None]] = {}

    def add(self, one: Stored) -> None:
        """Take in a launch; one that does not count, or whose ranks report nothing, is not."""
        import numpy as np

        facts = one.outcome.facts
        hosts, wall_s = facts.get("rank.hosts"), facts.get("wall_s")
        cpu, switches = facts.get("rank.cpu_s"), facts.get("rank.involuntary")
        lists = [each for each in (hosts, cpu, switches) if isinstance(each, list)]
        good = one.void is None and one.outcome.state is State.OK and wall_s
        if not good or len(lists) < 3 or len(set(map(len, lists))) > 1:
            return
        of_ranks = np.array([cpu, switches], dtype=float)
        if not (np.isfinite(of_ranks).all() and (of_ranks[0] > 0).all()):
            return
        lost = np.log(np.maximum(wall_s / of_ranks[0], 1.0))
        lost[of_ranks[1] / wall_s <= PREEMPTIONS_S] = 0.0
        names = {host: place for place, host in enumerate(dict.fromkeys(lists[0]))}
        worst = np.zeros(len(names))
        np.maximum.at(worst, [names[host] for host in lists[0]], lost)
        key = one.launch.arm, tuple(names)
        self._rows.setdefault(key, []).append(array("f", worst))
        self._labels.setdefault(key, {})[one.launch.benchmark] = None

    def notices(self) -> list[Notice]:
        """Return a warning for each arm, and set of hosts, of which some are slow."""
        import numpy as np

        found = []
        for (arm, hosts), rows in self._rows.items():
            table = np.array(rows, dtype=np.float64)
            slow = lagging(table)
            usual = np.median(table, axis=0)
            others = np.delete(usual, [one.first for one in slow])
            figures: dict[str, Any] = {
                "arm": arm,
                "launches": len(rows),
                "hosts": len(hosts),
                "share": float(np.exp(-np.median(others))) if len(others) else None,
                "slow": [
                    {"host": hosts[one.first], "share": float(np.exp(-usual[one.first]))}
                    for one in slow
                ],
            }
            if slow:
                labels = tuple(self._labels[arm, hosts])
                found.append(Notice(NoticeName.SLOW_HOSTS, "warning", labels, figures))
        return found
