"""A profile file: how a BMC is reached, and by which steps each topology of a server is made.

It is data. What no standard says, such as the raw bytes of an IPMI command, comes from the site.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from paribus.bmc.access import Access, read_access, redfish_path, seconds
from paribus.border import Place, fields, read_toml
from paribus.core import UserError

Kind = Literal["zone", "patch", "bios", "action", "ipmi", "command", "person"]

SHAPES = ("Balance", "Common", "Cascade", "direct", "one switch", "mixed", "NVSwitch")

_KEYS: Mapping[str, tuple[str, ...]] = {
    "zone": ("zone", "endpoints", "by"),
    "patch": ("path", "pointer", "value"),
    "bios": ("path", "attribute", "value"),
    "action": ("path", "body", "undo", "reads"),
    "ipmi": ("raw", "undo", "reads"),
    "command": ("run", "undo", "reads"),
    "person": ("ask", "undo"),
}
_RAW = re.compile(r"0x[0-9a-fA-F]{2}(?: 0x[0-9a-fA-F]{2}){1,63}")


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a profile: what `kind` it is, and its keys as the file has them, checked."""

    name: str
    kind: Kind
    keys: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Profile:
    """A topology: the shape that the operating system must find, and the steps that make it.

    `power`: "off" where the server must be off meanwhile, "none" for a change under power. `stop`
    is the ResetType that powers it off.
    """

    name: str
    shape: str
    steps: tuple[Step, ...]
    power: Literal["off", "none"] = "off"
    stop: str = "GracefulShutdown"


@dataclass(frozen=True, slots=True)
class ProfileFile:
    """A whole file. `idle` is a command that succeeds where nobody uses the server.

    `settle_s`: how long an effect may take to show after a write, `boot_s`: the server to answer.
    """

    path: str
    access: Access
    idle: tuple[str, ...] = ()
    settle_s: float = 60.0
    boot_s: float = 900.0
    profiles: Mapping[str, Profile] = field(default_factory=dict)

    def profile(self, name: str) -> Profile:
        """Return the profile of a name; raises UserError where there is none."""
        if name not in self.profiles:
            raise UserError(
                f"no profile {name[:80]!r}; it has {', '.join(self.profiles)}",
                place=self.path,
                fix="name one of these",
            )
        return self.profiles[name]


def read_profiles(path: Path) -> ProfileFile:
    """Return what a profile file says; raises UserError with all that is wrong in it."""
    problems: list[UserError] = []
    place = Place(str(path), "", _toml(path), problems)
    place.only(("bmc", "host", "profiles"))
    access = None
    with place.noting():
        access = read_access(place.within("bmc", place.need("bmc", fields.table, "[bmc]")))
    none: dict[str, Any] = {}
    nothing: tuple[str, ...] = ()
    host = place.within("host", place.read("host", fields.table, none))
    host.only(("idle", "settle_s", "boot_s"))
    idle = host.read("idle", fields.command, nothing)
    settle_s = host.read("settle_s", seconds, 60.0)
    boot_s = host.read("boot_s", seconds, 900.0)
    profiles = {}
    for name, table in place.read("profiles", fields.table, none).items():
        with place.noting():
            profiles[name] = _profile(place.within(f"profiles.{name}", table), name)
    if not profiles and not problems:
        place.refuse("profiles", None, "holds no profile", "add one: [profiles.cascade]")
    place.finish()
    assert access is not None
    return ProfileFile(str(path), access, idle, settle_s, boot_s, profiles)


def _toml(path: Path) -> dict[str, Any]:
    try:
        return read_toml(path, "a profile file")
    except OSError as error:
        cause = error.strerror or str(error)
        raise UserError(cause, place=str(path), fix="name a profile file") from error
    except ValueError as error:
        raise UserError(str(error), place=str(path), fix="fix the file, then try again") from error


def _profile(place: Place, name: str) -> Profile:
    place.only(("shape", "power", "stop", "steps"))
    steps = place.need("steps", fields.items, 'steps = [{ name = "..", do = "zone", .. }]')
    if not 0 < len(steps) <= 64:
        place.refuse("steps", None, f"{len(steps)} steps", "write 1 to 64 of them")
    return Profile(
        name,
        place.need("shape", fields.one_of(*SHAPES), 'shape = "Cascade"'),
        tuple(
            _step(place.within(f"{place.path}.steps[{number}]", table))
            for number, table in enumerate(steps)
        ),
        place.read("power", fields.one_of("off", "none"), "off"),
        place.read("stop", fields.one_of("GracefulShutdown", "ForceOff"), "GracefulShutdown"),
    )


def _step(place: Place) -> Step:
    kind = place.need("do", fields.one_of(*_KEYS), 'do = "zone"')
    place.only(("name", "do", *_KEYS[kind]))
    readers: dict[str, Any] = {
        "zone": redfish_path,
        "path": redfish_path,
        "pointer": _pointer,
        "attribute": fields.text,
        "value": _value,
        "raw": _raw,
        "run": fields.command,
        "ask": fields.text,
    }
    keys: dict[str, Any] = {
        key: place.need(key, readers[key], f"{key} = ..") for key in _KEYS[kind] if key in readers
    }
    if kind == "zone":
        keys["endpoints"] = place.need("endpoints", _paths, "endpoints = [..]")
        keys["by"] = place.read("by", fields.one_of("actions", "patch"), "actions")
    if kind == "action":
        keys["body"] = place.need("body", fields.table, "body = { .. }")
    if "undo" in _KEYS[kind]:
        same = {"action": fields.table, "ipmi": _raw, "person": fields.text}
        keys["undo"] = place.need("undo", same.get(kind, readers["run"]), "undo = ..")
    if "reads" in _KEYS[kind]:
        keys["reads"] = place.need("reads", _reads(kind), _READS[kind])
    return Step(place.need("name", fields.text, 'name = "switch 1 below switch 0"'), kind, keys)


_READS = {
    "action": 'reads = { path = "/redfish/v1/..", pointer = "/..", value = "..", before = ".." }',
    "ipmi": 'reads = { raw = "0x3c 0x11", prints = "01", before = "00" }',
    "command": 'reads = { run = "..", prints = "..", before = ".." }',
}


def _reads(kind: str) -> Any:
    """Return a reader of how the effect of a step is seen: its value after it, and before it."""

    def read(value: Any) -> dict[str, Any]:
        readers: dict[str, dict[str, Any]] = {
            "action": {
                "path": redfish_path,
                "pointer": _pointer,
                "value": _value,
                "before": _value,
            },
            "ipmi": {"raw": _raw, "prints": fields.text, "before": fields.text},
            "command": {
                "run": fields.command,
                "prints": fields.text,
                "before": fields.text,
            },
        }
        wanted = readers[kind]
        if fields.table(value).keys() != wanted.keys():
            raise ValueError(f"write {_READS[kind]}")
        return {key: reader(value[key]) for key, reader in wanted.items()}

    return read


def _raw(value: Any) -> tuple[str, ...]:
    if not _RAW.fullmatch(fields.text(value)):
        raise ValueError('write bytes such as "0x3c 0x10 0x01": network function, command, data')
    return tuple(value.lower().split())


def _pointer(value: Any) -> str:
    if not re.fullmatch(r"(?:/[^/~]+){1,16}", fields.text(value)):
        raise ValueError('write a JSON pointer such as "/Oem/Vendor/Mode"')
    return str(value)


def _value(value: Any) -> str | int | bool:
    if not isinstance(value, str | int | bool):
        raise ValueError("use a text, a whole number, or true or false")
    return value


def _paths(value: Any) -> tuple[str, ...]:
    found = tuple(redfish_path(item) for item in fields.items(value))
    if len(set(found)) < len(found):
        raise ValueError("an endpoint is named twice")
    return found
