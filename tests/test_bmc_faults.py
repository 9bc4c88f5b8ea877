"""Every fault of an emulated BMC at every write, and kill -9 at every line of the journal.

However it goes: switched and proven, rolled back and proven, or stopped; never a second time the
same write, never a wrong shape called right, never a session left.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from emulated import emulated_bmc, listening, switched
from paribus.__main__ import main
from paribus.bmc.emulator.faults import FAULTS, parse_faults
from paribus.bmc.emulator.hardware import Hardware
from paribus.bmc.emulator.service import Bmc, Dialect
from paribus.bmc.emulator.setup import USER
from paribus.bmc.journal import Journal
from paribus.bmc.switch import Result, go_on
from paribus.core import UserError
from paribus.topology.shape import shape_of
from paribus.topology.sysfs import from_sysfs
from processes import ran

BIN = Path(sys.executable).parent
SECRET = "a-password-of-tests"


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


SEEN = {
    ("root",): '"Fabrics"',
    ("Systems", "-1"): '"SerialNumber": "EMULATED-8GPU"',
    ("Chassis",): '"Members@odata.count": 1',
    ("SessionService",): '"SessionTimeout": 600',
    ("AccountService",): '"Accounts"',
    ("raw", "GET", "/redfish/v1/Fabrics/PCIe/Zones/Host0a"): "/Endpoints/GPU3",
}


@pytest.mark.parametrize("login", ["Basic", "Session"])
def test_redfishtool_reads_the_emulator(login: str) -> None:
    tool = BIN / "redfishtool"
    if not tool.exists():
        pytest.skip("redfishtool is not installed")
    with listening(Path("bmc")) as (bmc, address):
        secret = Path("bmc/password").read_text().strip()
        access = ["-r", address, "-u", USER, "-p", secret, "-S", "Always", "-A", login]
        for words, seen in SEEN.items():
            assert seen in ran([tool, *access, *words], code=0).stdout
        assert bmc.accounts.sessions == {}


CONFIG = """
SUSHY_EMULATOR_AUTH_FILE = "users"
SUSHY_EMULATOR_FAKE_DRIVER = True
SUSHY_EMULATOR_FAKE_SYSTEMS = [
    {
        "uuid": "5a1b0000-0000-4000-8000-000000000019",
        "name": "node",
        "power_state": "On",
        "nics": [],
    }
]
"""
WIRE = """
import sys
from pathlib import Path
from paribus.bmc.emulator.hardware import Hardware
Hardware(Path("host"), sys.argv[1])
Path("wired").write_text(sys.argv[1])
"""
PROFILE = """
[bmc]
address  = "127.0.0.1:{port}"
user     = "paribus"
password = {{ env = "POWER_PASSWORD" }}
ca       = "bmc/ca.pem"
login    = "basic"
system   = "/redfish/v1/Systems/5a1b0000-0000-4000-8000-000000000019"

[host]
idle     = "true"
settle_s = 20
boot_s   = 20

[profiles.cascade]
shape = "Cascade"
stop  = "{stop}"

[[profiles.cascade.steps]]
name  = "the site's own rewiring"
do    = "command"
run   = "{python} wire.py Cascade"
undo  = "{python} wire.py Balance"
reads = {{ run = "cat wired", prints = "Cascade", before = "Balance" }}
"""


@contextmanager
def sushy_emulator(directory: Path) -> Iterator[int]:
    """Yield the port of OpenStack's emulated BMC, which knows power and no fabric."""
    bcrypt = pytest.importorskip("bcrypt")
    tool = BIN / "sushy-emulator"
    if not tool.exists():
        pytest.skip("sushy-tools is not installed")
    with listening(directory / "bmc"):  # for its certificate
        pass
    hashed = bcrypt.hashpw(SECRET.encode(), bcrypt.gensalt(4)).decode()
    (directory / "users").write_text(f"paribus:{hashed}\n")
    (directory / "emulator.conf").write_text(CONFIG)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = [str(tool), "--fake", "--config", "emulator.conf", "-i", "127.0.0.1", "-p", str(port)]
    words += ["--ssl-certificate", "bmc/ca.pem", "--ssl-key", "bmc/key.pem"]
    with (
        Path("emulator.log").open("w") as log,
        subprocess.Popen(words, cwd=directory, stdout=log, stderr=log) as process,
    ):
        try:
            _await(port, process)
            yield port
        finally:
            process.terminate()


def _await(port: int, process: subprocess.Popen[bytes]) -> None:
    trusted = ssl.create_default_context(cafile="bmc/ca.pem")
    deadline = time.monotonic() + 60
    while True:
        try:
            with urllib.request.urlopen(f"https://127.0.0.1:{port}/redfish/v1/", context=trusted):
                return
        except urllib.error.HTTPError:
            return
        except OSError:
            assert process.poll() is None, Path("emulator.log").read_text()
            assert time.monotonic() < deadline, Path("emulator.log").read_text()
            time.sleep(0.2)


@pytest.mark.parametrize("stop", ["GracefulShutdown", "ForceOff"])
def test_a_bmc_that_knows_power_alone_is_enough_beside_a_command(
    stop: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POWER_PASSWORD", SECRET)
    Hardware(Path("host"), "Balance")
    Path("wired").write_text("Balance")
    Path("wire.py").write_text(WIRE)
    with sushy_emulator(tmp_path) as port:
        Path("power.toml").write_text(PROFILE.format(port=port, stop=stop, python=sys.executable))
        words = ["topology", "switch", "./host", "cascade", "--through", "power.toml"]
        assert main([*words, "--yes", "--json"]) == 0, capsys.readouterr()
        said = json.loads(capsys.readouterr().out)
        assert (said["result"], said["shape"]) == ("switched", "Cascade")
        (journal,) = Path("state").rglob("*.journal")
        lines = [json.loads(line) for line in journal.read_text().splitlines()]
        assert [line["how"] for line in lines if line["what"] == "ended"] == ["", "", ""]
        assert main(["topology", "show", "./host", "--shape"]) == 0
        assert capsys.readouterr().out == "Cascade\n"
    assert SECRET not in journal.read_text()


WRITES: dict[Dialect, int] = {"actions": 10, "patch": 4, "bios": 3, "oem": 3}
EVERY: list[tuple[Dialect, str, int]] = [
    (dialect, fault, number)
    for dialect, count in WRITES.items()
    for fault in FAULTS
    for number in range(1, count + 1)
]


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory in memory, if there is one: a tree is some hundred files."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as path:
        yield Path(path)


def real(bmc: Bmc) -> str:
    """Return the shape that the operating system would find, "off" where there is none."""
    return shape_of(from_sysfs(bmc.hardware.root)).name if bmc.hardware.root.exists() else "off"


def check(bmc: Bmc, result: Result, what: object) -> None:
    """Check what holds after every switch."""
    if result.how == "switched":
        assert real(bmc) == "Cascade", what
    elif result.how == "rolled back":
        assert (real(bmc), bool(result.cause)) == ("Balance", True), what
    else:
        assert (result.how, bool(result.cause)) == ("stopped", True), what
    assert bmc.accounts.sessions == {}, what
    check_writes(bmc, what)


def check_writes(bmc: Bmc, what: object) -> None:
    """Check that no write was sent twice: power alone is switched again on the way back."""
    sent: Counter[tuple[str, str]] = Counter()
    for method, path, data in bmc.requests:
        if method in ("POST", "PATCH") and "/SessionService/" not in path:
            table = json.loads(data)
            bare = {key: value for key, value in table.items() if not key.endswith("ETag")}
            sent[path, json.dumps(bare)] += 1
    for (path, body), count in sent.items():
        assert count <= (2 if "Reset" in path else 1), (what, path, body)


def test_every_fault_at_every_write_ends_well(
    place: Path,
    sample: Callable[..., list[tuple[Dialect, str, int]]],
) -> None:
    assert len(EVERY) >= 200
    ends: Counter[str] = Counter()
    for dialect, fault, number in sample(EVERY, 200):
        what = dialect, fault, number
        bmc = emulated_bmc(place / "bmc", dialect, {number: fault})
        result = switched(bmc)
        assert bmc.faults.writes >= number, what
        check(bmc, result, what)
        if not FAULTS[fault].does:
            assert result.how == "rolled back", what
        ends[result.how] += 1
        shutil.rmtree(place / "bmc")
    assert ends["switched"]
    assert ends["rolled back"]


def test_two_faults_leave_a_server_that_one_command_brings_back(place: Path) -> None:
    bmc = emulated_bmc(place, "actions", {7: "error", 9: "error"})
    result = switched(bmc)
    assert result.how == "stopped"
    assert "rolling back failed too" in result.cause
    with pytest.raises(UserError, match="not finished"):
        switched(bmc)
    assert switched(bmc, go=go_on).how == "rolled back"
    assert real(bmc) == "Balance"
    with pytest.raises(UserError, match="no switch is unfinished"):
        switched(bmc, go=go_on)
    assert switched(bmc).how == "switched"


def test_a_gpu_that_falls_out_on_the_way_is_no_success(place: Path) -> None:
    """The shape alone would be right; the zones show all devices."""
    bmc = emulated_bmc(place, "actions", {9: "half"})
    result = switched(bmc)
    assert result.how == "rolled back"
    assert "7 GPUs" in result.cause
    check(bmc, result, "half")


KILLED = """
import os, signal, sys
from pathlib import Path
from dataclasses import replace
from paribus.bmc.client import Client
from paribus.bmc.journal import Journal
from paribus.bmc.profiles import read_profiles, secret_of
from paribus.bmc.switch import Ways
from paribus.bmc.switch import Switching, switch
from paribus.topology.sysfs import from_sysfs

place, at, when = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]

class Killing(Journal):
    def note(self, what, **more):
        if len(self.lines) == at and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        if len(self.lines) == at and when == "within":
            os.write(self._descriptor, b'{"what": "se')
            os.kill(os.getpid(), signal.SIGKILL)
        super().note(what, **more)
        if len(self.lines) == at + 1 and when == "after":
            os.kill(os.getpid(), signal.SIGKILL)

file = read_profiles(place / "bmc.toml")
file = replace(file, settle_s=0.2, boot_s=1.0, access=replace(file.access, timeout_s=0.5))
secret = secret_of(file.access, file.path)
with Killing(place / "journal") as journal, Client(file.access, secret) as client:
    switch(Switching("server", file, file.profile("cascade"), journal,
        Ways(client, secret, lambda _: True, 0.2), lambda: from_sysfs(place / "host"),
        lambda plan, tree: True, lambda text: None))
"""

LINES = 23
"""Lines of the journal of a switch by ten writes: begin, way, two for each write, end."""


@pytest.mark.slow
def test_a_kill_at_any_line_is_finished_or_rolled_back(
    place: Path, sample: Callable[..., list[tuple[int, str, str]]]
) -> None:
    """A real process is killed, and leaves its session; another goes on."""
    every = [
        (line, when, fault)
        for line in range(LINES)
        for when in ("before", "within", "after")
        for fault in ("", "hang-before")
    ]
    for line, when, fault in sample(every, 24):
        what = line, when, fault
        faults = {max(1, (line - 1) // 2): fault} if fault else {}
        with listening(place / "bmc", faults=faults) as (bmc, _):
            words = [sys.executable, "-c", KILLED, str(place / "bmc"), str(line), when]
            done = ran(words)
            assert done.returncode in (-signal.SIGKILL, 0), (what, done.stderr)
            with Journal(place / "bmc/journal") as journal:
                begun = journal.unfinished is not None
            if done.returncode == 0:
                assert real(bmc) in ("Cascade", "Balance")
            elif begun:
                result = switched(bmc, go=go_on)
                assert result.how in ("switched", "rolled back"), (what, result)
                check(bmc, result, what)
            else:  # nothing was begun, or it had ended
                assert real(bmc) == ("Balance" if line < 2 else "Cascade"), what
                check_writes(bmc, what)
        shutil.rmtree(place / "bmc")


def test_a_fault_plan_is_checked() -> None:
    assert parse_faults(["3=hang-after"]) == {3: "hang-after"}
    for text in ("hang-after", "0=lie", "2=nonsense"):
        with pytest.raises(ValueError, match="N=FAULT"):
            parse_faults([text])
