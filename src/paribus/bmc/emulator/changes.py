"""What a write to the emulated server would change, checked before anything does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from paribus.bmc.emulator.answers import Refusal
from paribus.bmc.emulator.hardware import ATTRIBUTE, GPUS, HOSTS, SHAPES, Hardware
from paribus.bmc.emulator.resources import BIOS, ENDPOINTS, FABRIC, OEM, RESET, SYSTEM, ZONES, Json


@dataclass(frozen=True, slots=True)
class Change:
    """A write that is possible: `carry_out(wired)` makes it, `slow` ones are answered with a task.

    `resource` is what it changes; `tags` are the ETags that the body gives, by resource. `guarded`:
    without an ETag it is refused.
    """

    resource: str
    carry_out: Callable[[bool], None]
    slow: bool = False
    guarded: bool = True
    tags: Mapping[str, str] = field(default_factory=dict)

    def check_tags(self, if_match: str | None, now: Callable[[str], str]) -> None:
        """Raise Refusal for an ETag that is missing (428) or no longer right (412, 428).

        That those in the body are answered with 428 is the standard's (Zone 1.6.3, AddEndpoint).
        """
        if if_match is None and not self.tags and self.guarded:
            raise Refusal(428, "send the ETag of the resource")
        if if_match not in (None, "*", now(self.resource)):
            raise Refusal(412, "the resource is no longer as the request has it")
        for path, tag in self.tags.items():
            if tag != now(path):
                raise Refusal(428, f"{path} is no longer as the request has it")


def change(
    hardware: Hardware, dialect: str, method: str, path: str, table: Json, shown: Mapping[str, Json]
) -> Change:
    """Return what a write would change; raises Refusal for one that the server does not take."""
    if method == "POST" and path == RESET:
        return _power(hardware, table)
    if method == "POST" and path.startswith(f"{ZONES}/") and dialect == "actions":
        return _moved(hardware, path, table)
    if method == "PATCH" and path in shown and path.startswith(f"{ZONES}/"):
        if dialect != "patch":
            raise Refusal(400, "Links.Endpoints is read-only", code="PropertyNotWritable")
        return _patched(hardware, path, table)
    if method == "PATCH" and path == f"{BIOS}/Settings" and dialect == "bios":
        shape = table.get("Attributes", {}).get(ATTRIBUTE)
        return Change(path, lambda _: hardware.settings.update({ATTRIBUTE: _known(shape)}))
    if method == "POST" and path == OEM and dialect == "oem":
        _off(hardware)
        shape = _known(table.get("Topology"))
        return Change(FABRIC, lambda wired: _set(hardware, shape, wired), slow=True, guarded=False)
    if path not in shown:
        raise Refusal(404, "this is not there")
    raise Refusal(405, f"{method} is not for this")


def _set(hardware: Hardware, shape: str, wired: bool) -> None:
    before = {host: list(ends) for host, ends in hardware.wires.items()}
    hardware.set_shape(shape)
    if not wired:
        hardware.wires = before


def _known(shape: Any) -> str:
    if shape not in SHAPES:
        raise Refusal(400, f"use one of {', '.join(SHAPES)}")
    return str(shape)


def _off(hardware: Hardware) -> None:
    if hardware.power != "Off":
        raise Refusal(409, "the server is on: power it off first")


def _power(hardware: Hardware, table: Json) -> Change:
    kind = table.get("ResetType")
    if kind not in ("On", "ForceOff", "GracefulShutdown"):
        raise Refusal(400, "use On, ForceOff or GracefulShutdown")
    act = hardware.start if kind == "On" else hardware.stop
    return Change(SYSTEM, lambda _: act(), guarded=False)


def _gpu(reference: Any) -> str:
    """Return the GPU that a reference leads to."""
    path = reference.get("@odata.id") if isinstance(reference, dict) else None
    name = path.rpartition("/")[2] if isinstance(path, str) else ""
    if path != f"{ENDPOINTS}/{name}" or name not in (*GPUS, *HOSTS):
        raise Refusal(400, "no such endpoint")
    if name in HOSTS or name in GPUS[:4]:
        raise Refusal(409, f"{name} is wired to its port and cannot be moved")
    return name


def _moved(hardware: Hardware, path: str, table: Json) -> Change:
    zone, _, action = path.removeprefix(f"{ZONES}/").partition("/Actions/Zone.")
    if zone not in HOSTS or action not in ("AddEndpoint", "RemoveEndpoint"):
        raise Refusal(404, "this is not there")
    name = _gpu(table.get("Endpoint"))
    _off(hardware)
    at = next((host for host in HOSTS if name in hardware.zones[host]), "")
    tags = {
        place: table[key]
        for key, place in (("ZoneETag", f"{ZONES}/{zone}"), ("EndpointETag", f"{ENDPOINTS}/{name}"))
        if isinstance(table.get(key), str)
    }
    if action == "AddEndpoint":
        if at:
            raise Refusal(409, f"{name} is in zone {at}")
        return Change(
            f"{ZONES}/{zone}", lambda wired: hardware.add(zone, name, wired=wired), True, tags=tags
        )
    if at != zone:
        raise Refusal(400, f"{name} is not in this zone")
    return Change(
        f"{ZONES}/{zone}", lambda wired: hardware.remove(zone, name, wired=wired), tags=tags
    )


def _patched(hardware: Hardware, path: str, table: Json) -> Change:
    zone = path.rpartition("/")[2]
    asked = table.get("Links", {}).get("Endpoints")
    if not isinstance(asked, list):
        raise Refusal(400, "write Links.Endpoints")
    prefix = f"{ENDPOINTS}/"
    names = [str(one.get("@odata.id", "")).removeprefix(prefix) for one in asked]
    fixed = [end for end in hardware.zones[zone] if end in HOSTS or end in GPUS[:4]]
    if not set(fixed) <= set(names) or not set(names) <= {*HOSTS, *GPUS}:
        raise Refusal(400, "an endpoint is not there, or is wired to its port")
    _off(hardware)
    new = [name for name in names if name not in hardware.zones[zone]]
    for name in new:
        _gpu({"@odata.id": prefix + name})
        if any(name in ends for ends in hardware.zones.values()):
            raise Refusal(409, f"{name} is in another zone")
    old = [name for name in hardware.zones[zone] if name not in names]

    def carry_out(wired: bool) -> None:
        for name in old:
            hardware.remove(zone, name, wired=wired)
        for name in new:
            hardware.add(zone, name, wired=wired)

    return Change(path, carry_out)
