"""The steps of a profile -> writes, each with what shows its effect, and the writes that undo them.

A write is data: it stands in the journal, `--dry-run` prints it, and its effect is read again
after a kill. A zone that shall get GPU4, for example, gives the request

    POST /redfish/v1/Fabrics/PCIe/Zones/Host0a/Actions/Zone.AddEndpoint
    {"Endpoint": {"@odata.id": "/redfish/v1/Fabrics/PCIe/Endpoints/GPU4"}}

its check, that the zone's list "has" GPU4, and the RemoveEndpoint that undoes it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from paribus.bmc.client import Client, Distrusted, Resource
from paribus.bmc.profiles import Profile, Step
from paribus.core import UserError


@dataclass(frozen=True, slots=True)
class Check:
    """What shows that a write took effect. `how` "": nothing does but the tree itself.

    "is": the value at `pointer` of the resource `path` is `value`; "has" and "lacks": `value` is a
    reference in the list there, or none; "prints": `value` is what the command `argv` prints, on
    this machine, or as bytes by IPMI (`by`).
    """

    how: Literal["", "is", "has", "lacks", "prints"] = ""
    path: str = ""
    pointer: str = ""
    value: Any = None
    argv: tuple[str, ...] = ()
    by: Literal["", "ipmi", "command"] = ""


@dataclass(frozen=True, slots=True)
class Write:
    """One change, sent at most once. `step`: the name in the profile, or "power".

    `etags`: where ETags of which resources go: into the header If-Match, or into keys of the body.
    `argv` are the words of a command, the bytes of an IPMI request, or the one text of a question.
    """

    step: str
    by: Literal["redfish", "ipmi", "command", "person"]
    check: Check
    method: str = ""
    path: str = ""
    body: Mapping[str, Any] = field(default_factory=dict)
    etags: Mapping[str, str] = field(default_factory=dict)
    argv: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.by == "redfish":
            tags = "".join(f" [{key}: ETag of {path}]" for key, path in self.etags.items())
            return f"{self.method} {self.path} {json.dumps(self.body)}{tags}"
        what = {"ipmi": "ipmitool raw", "command": "execute", "person": "ask a person:"}[self.by]
        return f"{what} {' '.join(self.argv)}"


@dataclass(frozen=True, slots=True)
class Plan:
    """The writes that make a topology, in their order, and in `backs` those that undo them.

    The last of `writes` is undone by the first of `backs`, and so on.
    """

    writes: tuple[Write, ...]
    backs: tuple[Write, ...]


Holds = Callable[[Check], bool | None]
"""Returns whether the effect of a write can be seen, None where nothing shows it (switch.holds)."""

Pair = tuple[Write, Write]
"""A write, and the one that undoes it."""


def plan_of(profile: Profile, client: Client, holds: Holds) -> Plan:
    """Return what is to be written, from what the BMC shows now; raises BmcError as Client does.

    All endpoints are removed before any is added: a device is in one zone at a time. Raises
    UserError where a step could not be undone: its `before` is not what is there.
    """
    read = _Reader(client, holds)
    pairs: list[Pair] = []
    zones = [step for step in profile.steps if step.kind == "zone"]
    for step in profile.steps:
        if zones and step is zones[0]:  # all zones together, at the place of the first
            for adding in (False, True):
                pairs += [pair for one in zones for pair in _zone(one, read, adding=adding)]
        elif step.kind != "zone":
            pairs += _PLANNERS[step.kind](step, read)
    for write, back in pairs:
        if back.check.how in ("is", "prints") and not holds(back.check):
            raise UserError(
                f"{write.step!r} would be undone to {back.check.value!r}, which is not there now",
                place=f"profiles.{profile.name}",
                fix="switch to a profile first from which this one is reached",
            )
    writes = tuple(pair[0] for pair in pairs)
    backs = tuple(pair[1] for pair in reversed(pairs))
    if writes and profile.power == "off":
        off, on = _power(client.access.system, profile.stop, read)
        return Plan((off, *writes, on), (off, *backs, on))
    return Plan(writes, backs)


class _Reader:
    """Resources of the BMC as a plan finds them, each read once."""

    def __init__(self, client: Client, holds: Holds) -> None:
        self.client = client
        self.holds = holds
        self.known: dict[str, Resource] = {}

    def at(self, path: str) -> dict[str, Any]:
        """Return the resource at a path; raises BmcError as Client does."""
        if path not in self.known:
            self.known[path] = self.client.get(path)
        return self.known[path].table

    def target(self, path: str, action: str, default: str) -> str:
        """Return the path that an action of a resource is posted to, else `default`."""
        actions = self.at(path).get("Actions")
        found = actions.get(action) if isinstance(actions, dict) else None
        place = found.get("target") if isinstance(found, dict) else None
        return place if isinstance(place, str) and place.startswith("/redfish/v1/") else default


def references(table: Mapping[str, Any], pointer: str) -> list[str]:
    """Return the paths in a list of references; raises KeyError or TypeError for another thing."""
    return [one["@odata.id"] for one in at_pointer(table, pointer)]


def at_pointer(table: Any, pointer: str) -> Any:
    """Return the value at a JSON pointer; raises KeyError or TypeError where there is none."""
    for key in pointer.split("/")[1:]:
        table = table[int(key)] if isinstance(table, list) else table[key]
    return table


_ENDPOINTS = "/Links/Endpoints"


def _ends(step: Step, read: _Reader) -> tuple[list[str], list[str]]:
    """Return the endpoints that a zone has, and those that it shall have."""
    zone = step.keys["zone"]
    try:
        return references(read.at(zone), _ENDPOINTS), list(step.keys["endpoints"])
    except (KeyError, TypeError):
        raise Distrusted(
            "the zone shows no endpoints",
            place=f"{read.client.access.place} {zone}",
            fix=f"check `zone` of the step {step.name!r}",
        ) from None


def _zone(step: Step, read: _Reader, *, adding: bool) -> list[Pair]:
    """Return what removes the endpoints that a zone shall lose, or adds those that it shall get."""
    now, wanted = _ends(step, read)
    kept = [end for end in now if end in wanted]
    ends = [end for end in (wanted if adding else now) if end not in kept]
    if step.keys["by"] == "actions":
        pairs = [
            (_moved(step, "Add", end, read), _moved(step, "Remove", end, read)) for end in ends
        ]
        return pairs if adding else [(remove, add) for add, remove in pairs]
    if not ends:
        return []
    every, shown = (wanted, ends[-1]) if adding else (now, ends[0])
    with_them = _patched(step, every, shown, "has")
    without = _patched(step, kept, shown, "lacks")
    return [(with_them, without) if adding else (without, with_them)]


def _moved(step: Step, action: Literal["Add", "Remove"], end: str, read: _Reader) -> Write:
    """Return the standard's action (Zone 1.5.0): both ETags go into the body."""
    zone = step.keys["zone"]
    name = f"Zone.{action}Endpoint"
    return Write(
        step.name,
        "redfish",
        Check("has" if action == "Add" else "lacks", zone, _ENDPOINTS, end),
        "POST",
        read.target(zone, f"#{name}", f"{zone}/Actions/{name}"),
        {"Endpoint": {"@odata.id": end}},
        {"ZoneETag": zone, "EndpointETag": end},
    )


def _patched(step: Step, ends: Iterable[str], shown: str, how: Literal["has", "lacks"]) -> Write:
    """Return a PATCH of the list, which the standard does not have and some vendors do."""
    zone = step.keys["zone"]
    body = {"Links": {"Endpoints": [{"@odata.id": end} for end in ends]}}
    check = Check(how, zone, _ENDPOINTS, shown)
    return Write(step.name, "redfish", check, "PATCH", zone, body, {"If-Match": zone})


def _set(step: Step, read: _Reader) -> list[Pair]:
    """Return the PATCH of a property, or of a BIOS attribute for the next boot (Settings 1.4.0).

    The list is empty where the value is there already; so it is for the other kinds of steps.
    """
    path, value = step.keys["path"], step.keys["value"]
    pointer: str = step.keys.get("pointer", "")
    target, more = path, {}
    if step.kind == "bios":
        pointer = f"/Attributes/{step.keys['attribute']}"
        settings = read.at(path).get("@Redfish.Settings")
        settings = settings if isinstance(settings, dict) else {}
        place = settings.get("SettingsObject", {})
        target = str(place.get("@odata.id", path)) if isinstance(place, dict) else path
        if "OnReset" in settings.get("SupportedApplyTimes", []):
            more = {"@Redfish.SettingsApplyTime": {"ApplyTime": "OnReset"}}
    before = _value_at(step, read, path, pointer)
    if before == value:
        return []

    def write(new: Any) -> Write:
        body: Any = new
        for key in reversed(pointer.split("/")[1:]):
            body = {key: body}
        check = Check("is", target, pointer, new)
        return Write(
            step.name, "redfish", check, "PATCH", target, body | more, {"If-Match": target}
        )

    return [(write(value), write(before))]


def _acted(step: Step, read: _Reader) -> list[Pair]:
    """Return the POST of a vendor's action, and that of the action which undoes it."""
    reads = step.keys["reads"]
    if _value_at(step, read, reads["path"], reads["pointer"]) == reads["value"]:
        return []

    def write(body: Any, value: Any) -> Write:
        check = Check("is", reads["path"], reads["pointer"], value)
        return Write(step.name, "redfish", check, "POST", step.keys["path"], body)

    return [(write(step.keys["body"], reads["value"]), write(step.keys["undo"], reads["before"]))]


def _value_at(step: Step, read: _Reader, path: str, pointer: str) -> Any:
    """Return the value of a property now; raises UserError where there is none."""
    try:
        return at_pointer(read.at(path), pointer)
    except (KeyError, TypeError, ValueError, IndexError):
        raise UserError(
            f"the step {step.name!r} finds nothing at {pointer}",
            place=f"{read.client.access.place} {path}",
            fix="check `path` and the name of the property in the profile",
        ) from None


def _elsewhere(step: Step, read: _Reader) -> list[Pair]:
    """Return a command on this machine, an IPMI request, or a question, and what undoes it."""
    by: Any = step.kind
    key = {"ipmi": "raw", "command": "run", "person": "ask"}[step.kind]

    def write(words: str | Sequence[str], printed: str) -> Write:
        argv = (words,) if isinstance(words, str) else tuple(words)
        reads = step.keys.get("reads")
        if reads is None:
            return Write(step.name, by, Check(), argv=argv)
        asked = tuple(reads["raw" if by == "ipmi" else "run"])
        return Write(step.name, by, Check("prints", value=printed, argv=asked, by=by), argv=argv)

    reads = step.keys.get("reads", {"prints": "", "before": ""})
    forth = write(step.keys[key], reads["prints"])
    if read.holds(forth.check):
        return []
    return [(forth, write(step.keys["undo"], reads["before"]))]


_PLANNERS = {
    **dict.fromkeys(("patch", "bios"), _set),
    "action": _acted,
    **dict.fromkeys(("ipmi", "command", "person"), _elsewhere),
}


def _power(system: str, stop: str, read: _Reader) -> Pair:
    """Return the writes that power the system off and on (ComputerSystem.Reset)."""
    default = f"{system}/Actions/ComputerSystem.Reset"
    target = read.target(system, "#ComputerSystem.Reset", default)

    def write(kind: str, state: str) -> Write:
        check = Check("is", system, "/PowerState", state)
        return Write("power", "redfish", check, "POST", target, {"ResetType": kind})

    return write(stop, "Off"), write("On", "On")
