"""Fleets of stations that do as a script says: what rounds must stand, without processes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from paribus.core import Address, Arm, Command, Completed, Hosts, MachineError
from paribus.launch.arms import Ready
from paribus.screen import plan
from paribus.screen.fleet import Fleet
from paribus.screen.known import Known, known_of
from paribus.screen.plan import Screen
from paribus.screen.rounds import execute
from paribus.store import Store

Speed = Callable[[int], float]
"""Number of the launch on this node, from 1 -> its figure, higher is better."""


class Node:
    """A station of one node: `speed` says what its launches print, `does` what else happens.

    "hangs": the launch ends only when it is asked to; "stuck": not even then; "dies": no answer.
    """

    lease = None

    def __init__(self, name: str, speed: Speed, does: Mapping[int, str] | None = None) -> None:
        self.name, self.speed, self.does = name, speed, dict(does or {})
        self.scratch = self.here = f"/nowhere/{name}"
        self.launched = 0
        self.beside: tuple[str, ...] = ()
        self._reported = threading.Event()
        self.released = threading.Event()

    def __enter__(self) -> Node:
        return self

    def __exit__(self, *_: object) -> None: ...

    def figure(self, command: Command) -> float:
        """Return what a launch prints."""
        return self.speed(self.launched)

    def run(self, command: Command, *, stdout: str, stderr: str, **_: Any) -> Completed:
        self.launched += 1
        what = self.does.get(self.launched, "")
        Path(stderr).write_text("")
        if what == "dies":
            raise MachineError("there is no answer any more", place=self.name, fix="")
        Path(stdout).write_text(f"rate: {self.figure(command):.6f}\n")
        if what == "hangs":
            assert self._reported.wait(60)
            self._reported.clear()
            return Completed(-15, 20.0)
        if what == "stuck":
            assert self.released.wait(60)
        return Completed(0, 0.01, load=({}, {}), beside=self.beside)

    def cancel(self) -> None:
        self._reported.set()

    def check_room(self, *_: str) -> None: ...


def screen_of(nodes: Sequence[Node], at_once: int = 0, **more: Any) -> Screen:
    figure = {"regex": "rate: (.*)", "unit": "MB/s", "better": "higher"}
    return plan.Screen(
        hosts="scripted",
        nodes=tuple(one.name for one in nodes),
        selections=plan.selections((), "/bin/true", figure, 1),
        margins={"command": 0.04},
        seed=7,
        at=0.0,
        at_once=at_once,
        **more,
    )


def fleet_of(nodes: Sequence[Node]) -> Fleet:
    stations: dict[str, Any] = {one.name: one for one in nodes}
    ready = {
        one.name: Ready(Arm(one.name, hosts=Hosts((Address(one.name, one.name),))), None, ())
        for one in nodes
    }
    return Fleet(stations, ready)


def linked(
    nodes: Sequence[Node],
    speed: Callable[[str, str], float],
    over: Mapping[str, Callable[[str, str], float]] | None = None,
) -> Fleet:
    """Return a fleet whose pairs have the figure that `speed` returns for the two nodes.

    `over` has another for some networks.
    """
    fleet = fleet_of(nodes)

    def paired(names: Sequence[str], network: str) -> Any:
        station = Node("|".join(names), lambda _: (over or {}).get(network, speed)(*names))
        hosts = Hosts(tuple(Address(name, name) for name in names))
        return station, Ready(Arm(station.name, hosts=hosts), None, ())

    fleet.paired = paired
    return fleet


def executed(
    screen: Screen, nodes: Sequence[Node], folder: Path, fleet: Fleet | None = None
) -> tuple[Known, list[str]]:
    """Carry a screen out in `folder`, or what is left of it; return what is known, and said."""
    said: list[str] = []
    with Store(folder, write=True) as store:
        store.bind_plan(screen.digest)
        known = known_of(screen, store.launches(void=True))
        execute(known, store, fleet or fleet_of(nodes), said.append)
    return known, said
