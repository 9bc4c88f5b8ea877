"""The facts of the machines that the hosts of an arm are guests of, read over ssh."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace

from paribus import probes
from paribus.audit.hypervisors import of_hypervisor
from paribus.core import Arm, Facts, MachineError, ParseError
from paribus.launch.station import Station
from paribus.store import Gathered

LIMIT_S = 30.0
"""Seconds in which a hypervisor must have said what it is. Reading takes well under one."""


def beside(arm: Arm, station: Station, guests: Sequence[Gathered]) -> list[Gathered]:
    """Return the facts of the nodes of `arm`, those of their hypervisors added to each.

    Raises UserError, naming it, for a hypervisor that does not answer.
    """
    if not (arm.hosts and arm.hosts.hypervisors):
        return list(guests)
    from paribus.hosts.guests import SwitchedStation

    if not isinstance(station, SwitchedStation):
        return list(guests)
    nonce = f"n{secrets.token_hex(8)}"
    words = ("/bin/sh", "-c", probes.script(), "paribus-facts", nonce, "all")
    said = station.said_below(words, LIMIT_S)
    known = {name: _facts(name, text) for name, text in said.items()}
    return [
        replace(one, facts={**one.facts, **known[arm.hosts.below(number)]})
        for number, one in enumerate(guests)
    ]


def _facts(name: str, said: str) -> Facts:
    try:
        return of_hypervisor(probes.facts_from_stream(said))
    except ParseError as error:
        cause = f"this hypervisor gave no facts: {error.cause}"
        raise MachineError(cause, place=name, fix=f"try it: ssh {name} true") from error
