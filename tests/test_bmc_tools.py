"""Other tools against our emulated BMC, and Paribus against a BMC that is not ours."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from emulated import listening
from paribus.__main__ import main
from paribus.bmc.emulator.hardware import Hardware
from paribus.bmc.emulator.setup import USER

BIN = Path(sys.executable).parent
SECRET = "a-password-of-tests"


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("words", "seen"),
    [
        (["root"], '"Fabrics"'),
        (["Systems", "-1"], '"SerialNumber": "EMULATED-8GPU"'),
        (["Chassis"], '"Members@odata.count": 1'),
        (["SessionService"], '"SessionTimeout": 600'),
        (["AccountService"], '"Accounts"'),
        (["raw", "GET", "/redfish/v1/Fabrics/PCIe/Zones/Host0a"], "/Endpoints/GPU3"),
    ],
)
@pytest.mark.parametrize("login", ["Basic", "Session"])
def test_redfishtool_reads_the_emulator(words: list[str], seen: str, login: str) -> None:
    tool = BIN / "redfishtool"
    if not tool.exists():
        pytest.skip("redfishtool is not installed")
    with listening(Path("bmc")) as (bmc, address):
        secret = Path("bmc/password").read_text().strip()
        access = ["-r", address, "-u", USER, "-p", secret, "-S", "Always", "-A", login]
        done = subprocess.run([tool, *access, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert seen in done.stdout
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
