"""A directory with all that an emulated BMC needs, and all that a switch of its server needs."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from paribus.bmc.emulator.faults import FaultPlan
from paribus.bmc.emulator.hardware import ATTRIBUTE, GPUS, HOSTS, SHAPES, Hardware
from paribus.bmc.emulator.listening import listening
from paribus.bmc.emulator.resources import BIOS, ENDPOINTS, FABRIC, OEM, SERIAL, ZONES
from paribus.bmc.emulator.service import Bmc, Dialect
from paribus.core import UserError
from paribus.launch.local import capture

USER = "paribus"
_DAYS = "30"


@contextmanager
def emulated(
    directory: Path,
    *,
    dialect: Dialect = "actions",
    shape: str = "Balance",
    faults: dict[int, str] | None = None,
    boot_s: float = 0.0,
    port: int = 0,
) -> Iterator[tuple[Bmc, str]]:
    """Yield an emulated BMC and its address while it answers.

    `directory` gets host/, the files of /sys of the server, which is there while the server is on;
    ca.pem, key.pem and password; and bmc.toml, a profile file with the three topologies.
    """
    directory.mkdir(parents=True, exist_ok=True)
    certificate, key = directory / "ca.pem", directory / "key.pem"
    _make_certificate(certificate, key)
    password = secrets.token_urlsafe(18)
    _write_private(directory / "password", password + "\n")
    bmc = Bmc(Hardware(directory / "host", shape, boot_s), USER, password, dialect)
    bmc.faults = FaultPlan(dict(faults or {}))
    with listening(bmc, certificate, key, port) as address:
        (directory / "bmc.toml").write_text(profile_text(address, dialect))
        yield bmc, address


def _make_certificate(certificate: Path, key: Path) -> None:
    """Make a self-signed certificate of 127.0.0.1, unless it is there; needs openssl."""
    if certificate.exists() and key.exists():
        return
    _write_private(key, "")
    done = capture(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-days", _DAYS, "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"),
            *("-keyout", str(key), "-out", str(certificate)),
        ]
    )
    if done.exit_code != 0:
        raise UserError(
            f"no certificate: {(done.stderr.strip().splitlines() or ['?'])[-1][:200]}",
            place=str(certificate),
            fix="install openssl",
        )


def _write_private(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_text(text)


def profile_text(address: str, dialect: Dialect) -> str:
    """Return a profile file for the emulated server."""
    head = f"""\
# An emulated BMC: paribus topology emulate
[bmc]
address  = "{address}"
user     = "{USER}"
password = {{ file = "password" }}
ca       = "ca.pem"
serial   = "{SERIAL}"

[host]
idle     = "true"      # a command that succeeds where nobody uses the server
settle_s = 5
boot_s   = 30
"""
    return head + "".join(
        f'\n[profiles.{shape.lower()}]\nshape = "{shape}"\n{_STEPS[dialect](shape)}'
        for shape in SHAPES
    )


def _step(shape: str, name: str, *lines: str) -> str:
    """Return a step of a profile as TOML."""
    head = f'\n[[profiles.{shape.lower()}.steps]]\nname = "{name}"\n'
    return head + "".join(f"{line}\n" for line in lines)


def _zone_steps(shape: str, by: str) -> str:
    steps = ""
    for host in HOSTS:
        ends = [host, *(GPUS[:4] if host == "Host0a" else ())]
        ends += GPUS[4:] if host == SHAPES[shape] else ()
        listed = "".join(f'    "{ENDPOINTS}/{end}",\n' for end in ends)
        vendor = ('by = "patch"',) if by == "patch" else ()
        zone = f'zone = "{ZONES}/{host}"'
        ends_ = f"endpoints = [\n{listed}]"
        steps += _step(shape, f"port {host}", 'do = "zone"', zone, *vendor, ends_)
    return steps


def _bios_steps(shape: str) -> str:
    place = f'path = "{BIOS}"'
    return _step(
        shape,
        "BIOS setting",
        'do = "bios"',
        place,
        f'attribute = "{ATTRIBUTE}"',
        f'value = "{shape}"',
    )


def _oem_steps(shape: str) -> str:
    before = "Balance" if shape != "Balance" else "Cascade"
    seen = f'path = "{FABRIC}", pointer = "/Oem/Emulated/Topology"'
    return _step(
        shape,
        "OEM action",
        'do = "action"',
        f'path = "{OEM}"',
        f'body = {{ Topology = "{shape}" }}',
        f'undo = {{ Topology = "{before}" }}',
        f'reads = {{ {seen}, value = "{shape}", before = "{before}" }}',
    )


_STEPS = {
    "actions": lambda shape: _zone_steps(shape, "actions"),
    "patch": lambda shape: _zone_steps(shape, "patch"),
    "bios": _bios_steps,
    "oem": _oem_steps,
}
