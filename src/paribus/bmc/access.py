"""How a BMC is reached and trusted: the [bmc] table of a profile file."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from paribus.border import Place, fields
from paribus.core import UserError, typed
from paribus.launch.local import capture

_FINGERPRINT = re.compile(r"(?:sha256:)?([0-9A-Fa-f]{2}(?::?[0-9A-Fa-f]{2}){31})")
_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]{1,253})(?::(\d{1,5}))?")
_ASKED_S = 300.0
_SYSTEM = "/redfish/v1/Systems/1"
_TIMEOUT_S = 30.0
_WHERE = "say where it is: { file = .. }, { env = .. } or { askpass = .. }"
_SOURCES = ("file", "env", "askpass")
LONGEST_SECRET = 1024


@dataclass(frozen=True, slots=True)
class Access:
    """Address, user, where the password comes from, and what proves that this is the BMC.

    One of `ca`, a file of PEM certificates, and `fingerprint`, 64 hex digits of SHA-256 of its
    certificate, is given. `serial` is the SerialNumber of the system that it must show.
    `ipmi_cipher` is the cipher suite of IPMI: 17, or 3 for old BMCs.
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
    print_ = place.read("fingerprint", _fingerprint, "")
    if bool(ca) == bool(print_):
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
        fingerprint=print_,
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
    """Return seconds that somebody can wait for."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 86_400:
        raise ValueError("use seconds above 0, at most 86400")
    return float(value)


def redfish_path(value: Any) -> str:
    """Return the path of a Redfish resource."""
    text = fields.text(value)
    if not re.fullmatch(r"/redfish/v1(?:/[A-Za-z0-9._~!$&'()*+,;=:@%#-]+)*/?", text):
        raise ValueError('write a path such as "/redfish/v1/Systems/1"')
    return text
