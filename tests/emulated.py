"""An emulated BMC in this process, without sockets: what tests of many faults switch through."""

from __future__ import annotations

import http.client
import io
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from paribus.bmc.client import Client
from paribus.bmc.emulator.faults import FaultPlan
from paribus.bmc.emulator.hardware import Hardware
from paribus.bmc.emulator.service import Bmc, Dialect
from paribus.bmc.emulator.setup import USER, emulated, profile_text, rendered
from paribus.bmc.journal import Journal
from paribus.bmc.profiles import read_profiles
from paribus.bmc.switch import Result, Switching, Ways, switch
from paribus.topology.sysfs import from_sysfs

PASSWORD = "a-password-of-tests"
SETTLE_S = 0.2


class Wire:
    """What stands for a connection: it hands requests to a Bmc, and bytes back."""

    sock = None

    def __init__(self, bmc: Bmc) -> None:
        self.bmc = bmc

    def request(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> None:
        self.method = method
        self.answer = self.bmc.answer(method, path, headers, body or b"")
        if self.answer.how.startswith("hang"):
            raise TimeoutError
        if self.answer.how.startswith("reset"):
            raise ConnectionResetError("Connection reset by peer")

    def getresponse(self) -> http.client.HTTPResponse:
        answer = http.client.HTTPResponse(self, method=self.method)  # type: ignore[arg-type]
        answer.begin()
        return answer

    def makefile(self, _: str) -> io.BytesIO:
        return io.BytesIO(rendered(self.answer, self.method, self.bmc.skew_s))

    def close(self) -> None:
        pass


def need_certificate() -> None:
    """Skip a test of a BMC that listens where there is nothing to make its certificate with."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl")


@contextmanager
def listening(directory: Path, **how: Any) -> Iterator[tuple[Bmc, str]]:
    """Yield a BMC that listens and its address, as `emulated` does, or skip the test."""
    need_certificate()
    with emulated(directory, **how) as found:
        yield found


def emulated_bmc(
    directory: Path, dialect: Dialect = "actions", faults: Mapping[int, str] | None = None
) -> Bmc:
    """Return a BMC, whose server is at directory/host, and write directory/bmc.toml."""
    directory.mkdir(parents=True, exist_ok=True)
    bmc = Bmc(Hardware(directory / "host"), USER, PASSWORD, dialect)
    bmc.faults = FaultPlan(dict(faults or {}))
    (directory / "bmc.toml").write_text(profile_text("127.0.0.1:1", dialect))
    return bmc


def switched(
    bmc: Bmc,
    name: str = "cascade",
    *,
    go: Callable[[Switching], Result] = switch,
    journal: type[Journal] = Journal,
    ask: Callable[[str], bool] = lambda _: True,
) -> Result:
    """Return how a switch of the emulated server ended."""
    directory = bmc.hardware.root.parent
    file = read_profiles(directory / "bmc.toml")
    file = replace(file, settle_s=SETTLE_S, boot_s=1.0)
    kept = directory / "password"  # of one that listens
    secret = kept.read_text().strip() if kept.exists() else PASSWORD
    with (
        journal(directory / "journal") as lines,
        Client(file.access, secret, lambda _: Wire(bmc)) as client,  # type: ignore[arg-type,return-value]
    ):
        job = Switching(
            host="server",
            file=file,
            profile=file.profile(name),
            journal=lines,
            ways=Ways(client, secret, ask, SETTLE_S),
            look=lambda: from_sysfs(bmc.hardware.root),
            confirm=lambda plan, tree: True,
            say=lambda text: None,
        )
        return go(job)


LAN = """\
name "sim"
{more}
set_working_mc 0x20
startlan 1
  addr 127.0.0.1 {port}
  priv_limit admin
  allowed_auths_admin none md2 md5 straight
  guid a123456789abcdefa123456789abcdef
endlan
user 2 true "paribus" "ipmi-secret" admin 10 none md2 md5 straight
"""
EMU = """\
mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr
sel_enable 0x20 1000 0x0a
mc_enable 0x20
"""


@contextmanager
def simulated(folder: Path, more: str = "") -> Iterator[int]:
    """Yield the port of OpenIPMI's simulator of a BMC, or skip; `more` is of its configuration."""
    if not (shutil.which("ipmi_sim") and shutil.which("ipmitool")):
        pytest.skip("ipmi_sim or ipmitool is not installed (Debian: openipmi, ipmitool)")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    (folder / "lan.conf").write_text(LAN.format(more=more, port=port))
    (folder / "sim.emu").write_text(EMU)
    words = ["ipmi_sim", "-c", "lan.conf", "-f", "sim.emu", "-s", str(folder), "-n"]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(words, cwd=folder, stdin=-1, stdout=quiet, stderr=quiet) as process:
        try:
            yield port
        finally:
            process.terminate()
