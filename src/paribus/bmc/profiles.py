"""A profile file: how a BMC is reached, and by which steps each topology of a server is made.

It is data. What no standard says, such as the raw bytes of an IPMI command, comes from the site.
In goes TOML, out comes a `ProfileFile`. In short (docs/topology.md has all keys):

    [bmc]
    address  = "bmc1.example:443"
    user     = "paribus"
    password = { file = "bmc1.password" }
    ca       = "bmc-ca.pem"
    [profiles.cascade]
    shape = "Cascade"
    steps = [{ name = "BIOS", do = "bios", path = "..", attribute = "..", value = ".." }]
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from paribus.border import Place, fields, read_toml
from paribus.core import UserError, typed
from paribus.launch.local import capture

Kind = Literal["zone", "patch", "bios", "action", "ipmi", "command", "person"]
"""What a step is: `do` of the file."""

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
_FINGERPRINT = re.compile(r"(?:sha256:)?([0-9A-Fa-f]{2}(?::?[0-9A-Fa-f]{2}){31})")
_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]{1,253})(?::(\d{1,5}))?")
_ASKED_S = 300.0
_SYSTEM = "/redfish/v1/Systems/1"
_TIMEOUT_S = 30.0
_WHERE = "say where it is: { file = .. }, { env = .. } or { askpass = .. }"
_SOURCES = ("file", "env", "askpass")
LONGEST_SECRET = 1024
_RAW = re.compile(r"0x[0-9a-fA-F]{2}(?: 0x[0-9a-fA-F]{2}){1,63}")


@dataclass(frozen=True, slots=True)
class Access:
    """Address, user, where the password comes from, and what proves that this is the BMC.

    `password` is its source: "file", "env" or "askpass", and the name of that. One of `ca`, a file
    of PEM certificates, and `fingerprint`, 64 hex digits of SHA-256 of its certificate, is given.
    `system` is the path of the server in Redfish, `serial` the SerialNumber that it must show.
    `timeout_s` is for one answer. `ipmi_cipher` is the cipher suite of IPMI: 17, or 3 for old BMCs.
    """

    host: str
    port: int
    user: str
    password: tuple[str, str]
    ca: str = ""
    fingerprint: str = ""
    login: Literal["session", "basic"] = "session"
    system: str = _SYSTEM
    serial: str = ""
    timeout_s: float = _TIMEOUT_S
    ipmi_port: int = 623
    ipmi_cipher: str = "17"

    @property
    def place(self) -> str:
        """The address, as errors name it."""
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a profile: its `kind`, and its keys as the file has them, checked."""

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
    """Return the contents of a profile file; raises UserError with all that is wrong in it."""
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
    """Return the profile of a table [profiles.NAME]; notes or raises errors as Place does."""
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
    """Return one step of `steps`; notes or raises errors as Place does."""
    kind = place.need("do", fields.one_of(*_KEYS), 'do = "zone"')
    place.only(("name", "do", *_KEYS[kind]))
    keys: dict[str, Any] = {}
    for key in _KEYS[kind]:
        if key == "by":
            keys[key] = place.read(key, fields.one_of("actions", "patch"), "actions")
        elif key == "reads":
            keys[key] = place.need(key, _reads(kind), _READS[kind][0])
        else:
            reader = _READERS[_DOES[kind] if key == "undo" else key]
            keys[key] = place.need(key, reader, f"{key} = {_EXAMPLES.get(key, '..')}")
    return Step(place.need("name", fields.text, 'name = "switch 1 below switch 0"'), kind, keys)


def _reads(kind: str) -> Callable[[Any], dict[str, Any]]:
    """Return a reader of how the effect of a step is seen: its value after it, and before it."""
    example, readers = _READS[kind]

    def read(value: Any) -> dict[str, Any]:
        if fields.table(value).keys() != readers.keys():
            raise ValueError(f"write {example}")
        return {key: reader(value[key]) for key, reader in readers.items()}

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


def read_access(place: Place) -> Access:
    """Return what the [bmc] table gives; notes or raises StudyError as Place does."""
    known = (
        "address user password ca fingerprint login system serial timeout_s ipmi_port ipmi_cipher"
    )
    place.only(known.split())
    address = place.need("address", fields.text, 'address = "bmc1.example:443"')
    found = _ADDRESS.fullmatch(address)
    if not found or int(found[2] or 443) > 65_535:
        place.refuse("address", address, "is no HOST or HOST:PORT", 'such as "bmc1.example:443"')
    ca = place.read("ca", fields.text, "")
    pinned = place.read("fingerprint", _fingerprint, "")
    if bool(ca) == bool(pinned):
        place.refuse(
            "ca",
            None,
            "one of ca and fingerprint is needed, so that the BMC is known by its certificate",
            'ca = "bmc-ca.pem", or fingerprint = "sha256:..." (openssl x509 -fingerprint -sha256)',
        )
    if not isinstance(place.table.get("password", {}), dict):
        # The value may be the password itself: it is not shown.
        place.refuse("password", None, "stands in no profile file", _WHERE)
    return Access(
        host=found[1].strip("[]"),
        port=int(found[2] or 443),
        user=place.need("user", fields.text, 'user = "paribus"'),
        password=place.need("password", _source, 'password = { file = "/etc/bmc1.password" }'),
        ca=str(Path(place.file).parent / Path(ca).expanduser()) if ca else "",
        fingerprint=pinned,
        login=place.read("login", fields.one_of("session", "basic"), "session"),
        system=place.read("system", redfish_path, _SYSTEM),
        serial=place.read("serial", fields.text, ""),
        timeout_s=place.read("timeout_s", seconds, _TIMEOUT_S),
        ipmi_port=place.read("ipmi_port", fields.whole(1, 65_535), 623),
        ipmi_cipher=place.read("ipmi_cipher", fields.one_of("3", "17"), "17"),
    )


def secret_of(access: Access, beside: str) -> str:
    """Return the password; raises UserError where it cannot be had, or others can read its file.

    A relative path of a file is one beside `beside`, the profile file.
    """
    kind, name = access.password
    if kind == "env":
        text, at = os.environ.get(name, ""), f"environment variable {name}"
    elif kind == "askpass":
        done = capture([name, f"Password of {access.user} at {access.place}: "], timeout_s=_ASKED_S)
        text, at = (done.stdout if done.exit_code == 0 else ""), name
    else:
        path = Path(beside).parent / Path(name).expanduser()
        text, at = _private(path), str(path)
    text = text.rstrip("\r\n")
    if not text or len(text) > LONGEST_SECRET or not text.isprintable():
        raise UserError(
            "gives no password",
            place=at,
            fix="a password is one line of printable characters",
        )
    return text


def _private(path: Path) -> str:
    """Return the text of a file that only its owner may read; raises UserError for another one."""
    try:
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            fix = typed(("chmod", "600", path))
            raise UserError("others than its owner may read it", place=str(path), fix=fix)
        return path.read_text()[: LONGEST_SECRET + 2]
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"cannot be read: {getattr(error, 'strerror', 'not text')}",
            place=str(path),
            fix="write the password into this file, or name another one in [bmc]",
        ) from error


def _source(value: Any) -> tuple[str, str]:
    """Return where a password comes from: the kind of source and its name; raises ValueError."""
    if not isinstance(value, dict) or len(value) != 1 or not set(value) <= set(_SOURCES):
        raise ValueError(_WHERE)
    ((kind, name),) = value.items()
    return kind, fields.text(name)


def _fingerprint(value: Any) -> str:
    found = _FINGERPRINT.fullmatch(fields.text(value))
    if not found:
        raise ValueError("write SHA-256 as 64 hex digits")
    return found[1].replace(":", "").lower()


def seconds(value: Any) -> float:
    """Return a number of seconds that somebody can wait for; raises ValueError for others."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 86_400:
        raise ValueError("use seconds above 0, at most 86400")
    return float(value)


def redfish_path(value: Any) -> str:
    """Return the path of a Redfish resource; raises ValueError for another text."""
    text = fields.text(value)
    if not re.fullmatch(r"/redfish/v1(?:/[A-Za-z0-9._~!$&'()*+,;=:@%#-]+)*/?", text):
        raise ValueError('write a path such as "/redfish/v1/Systems/1"')
    return text


_EXAMPLES = {"endpoints": "[..]", "body": "{ .. }"}
_DOES = {"action": "body", "ipmi": "raw", "command": "run", "person": "ask"}
"""By kind of step, the key for what it does; `undo` is written in the same form."""

_READERS: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("zone", "path"), redfish_path),
    **dict.fromkeys(("attribute", "ask"), fields.text),
    "endpoints": _paths,
    "pointer": _pointer,
    "value": _value,
    "raw": _raw,
    "run": fields.command,
    "body": fields.table,
}
"""By key of a step, the function that checks its value."""

_READS: Mapping[str, tuple[str, Mapping[str, Callable[[Any], Any]]]] = {
    "action": (
        'reads = { path = "/redfish/v1/..", pointer = "/..", value = "..", before = ".." }',
        {"path": redfish_path, "pointer": _pointer, "value": _value, "before": _value},
    ),
    "ipmi": (
        'reads = { raw = "0x3c 0x11", prints = "01", before = "00" }',
        {"raw": _raw, "prints": fields.text, "before": fields.text},
    ),
    "command": (
        'reads = { run = "..", prints = "..", before = ".." }',
        {"run": fields.command, "prints": fields.text, "before": fields.text},
    ),
}
"""By kind of step, an example of its `reads`, and the functions that check the keys of that."""
