"""`paribus topology switch` and `emulate` as a user has them: over TLS, and with other tools."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shlex
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from emulated import emulated_bmc, listening, need_certificate, simulated, switched
from paribus.__main__ import main
from paribus.bmc.client import BmcError, Client, Distrusted, NoAnswer, Refused
from paribus.bmc.emulator.service import Dialect
from paribus.bmc.emulator.setup import USER
from paribus.bmc.profiles import Access, read_profiles, secret_of
from paribus.bmc.steps import Check, Write
from paribus.bmc.switch import Ways, holds, send
from paribus.core import UserError
from processes import executable, ran

ROOT = "/redfish/v1"
JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The directory of an emulated BMC that listens."""
    place = tmp_path_factory.mktemp("bmc")
    with listening(place):
        yield place


def opened(place: Path, **more: object) -> tuple[Access, str]:
    file = read_profiles(place / "bmc.toml")
    return replace(file.access, timeout_s=5.0, **more), secret_of(file.access, file.path)  # type: ignore[arg-type]


@contextmanager
def answering(
    place: Path, answer: bytes, pause_s: float = 0.0
) -> Iterator[tuple[int, list[bytes]]]:
    """Yield a port where every request gets `answer`, byte by byte with a pause, and what came."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(place / "ca.pem", place / "key.pem")
    came: list[bytes] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                plain, _ = listener.accept()
            except OSError:
                return
            try:
                with context.wrap_socket(plain, server_side=True) as made:
                    came.append(made.recv(65536))
                    for part in (
                        [answer[i : i + 1] for i in range(len(answer))] if pause_s else [answer]
                    ):
                        made.sendall(part)
                        time.sleep(pause_s)
            except OSError:
                pass  # the client has left

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1], came
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)


def sized(body: bytes, kind: bytes = b"application/json") -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s" % (
        kind,
        len(body),
        body,
    )


HOSTILE = {
    "more than 4 MiB": sized(b'{"a":"' + b"x" * 10_000_000 + b'"}'),
    "too many levels": sized(b"[" * 100_000 + b"]" * 100_000),
    "a redirect to evil.example": b"HTTP/1.1 302 Found\r\nLocation: https://evil.example/\r\n"
    b"Content-Length: 0\r\n\r\n",
    "type text/html": sized(b"<html>", b"text/html"),
    "not JSON": sized(b"{'a': 1}"),
    "no JSON object": sized(b"[1, 2]"),
    "not JSON.": sized(b'{"a": "\xff"}'),
    "status 206": b"HTTP/1.1 206 Partial\r\nContent-Type: application/json\r\n"
    b"Content-Length: 2\r\n\r\n{}",
}


@pytest.mark.parametrize("named", HOSTILE)
def test_a_hostile_answer_is_refused_by_name(there: Path, named: str) -> None:
    with answering(there, HOSTILE[named]) as (port, _):
        access, secret = opened(there, port=port, login="basic")
        with pytest.raises(Distrusted, match=named.rstrip(".")), Client(access, secret) as client:
            client.get(ROOT)


@pytest.mark.parametrize(
    "head",
    [
        b"X-Auth-Token: a\x01b\r\nLocation: /redfish/v1/SessionService/Sessions/1\r\n",
        b"X-Auth-Token: "
        + b"x" * 5000
        + b"\r\nLocation: /redfish/v1/SessionService/Sessions/1\r\n",
        b"Location: /redfish/v1/SessionService/Sessions/1\r\n",
        b"X-Auth-Token: abc\r\nLocation: https://evil.example/redfish/v1/Sessions/1\r\n",
        b"X-Auth-Token: abc\r\nLocation: /etc/passwd\r\n",
    ],
)
def test_a_session_that_is_none_is_refused(there: Path, head: bytes) -> None:
    with answering(there, JSON + head + b"Content-Length: 2\r\n\r\n{}") as (port, came):
        access, secret = opened(there, port=port)
        with pytest.raises(BmcError), Client(access, secret):
            pass
        assert len(came) == 1


def test_cookies_are_never_sent_back(there: Path) -> None:
    answer = JSON + b"Set-Cookie: SESSION=evil; Path=/\r\nContent-Length: 2\r\n\r\n{}"
    with answering(there, answer) as (port, came):
        access, secret = opened(there, port=port, login="basic")
        with Client(access, secret) as client:
            client.get(ROOT)
            client.write("PATCH", ROOT, {})
    assert len(came) == 2
    assert b"cookie" not in b"".join(came).lower()


def test_a_write_is_sent_once_however_slowly_it_is_answered(there: Path) -> None:
    """Each byte comes within the time; the whole answer does not."""
    with answering(there, sized(b"{}" + b" " * 200), pause_s=0.1) as (port, came):
        access, secret = opened(there, port=port, login="basic")
        begin = time.monotonic()
        client = Client(replace(access, timeout_s=0.5), secret)
        with client, pytest.raises(NoAnswer):
            client.write("PATCH", ROOT, {"a": 1})
        assert time.monotonic() - begin < 3
    assert len(came) == 1


def test_a_certificate_that_nobody_trusts_gets_nothing(there: Path, tmp_path: Path) -> None:
    with listening(tmp_path):
        pass  # its certificate is another
    access, secret = opened(there, ca=str(tmp_path / "ca.pem"))
    with pytest.raises(Distrusted, match="certificate is not trusted"), Client(access, secret):
        pass


def test_a_pinned_certificate_is_enough_and_another_is_refused(there: Path) -> None:
    der = ssl.PEM_cert_to_DER_cert((there / "ca.pem").read_text())
    access, secret = opened(there, ca="", fingerprint=hashlib.sha256(der).hexdigest())
    with Client(access, secret) as client:
        assert client.get(ROOT).table["Product"] == "Paribus emulator"
    wrong = replace(access, fingerprint="0" * 64)
    with pytest.raises(Distrusted, match="not the pinned one"), Client(wrong, secret):
        pass


def test_a_wrong_password_is_no_way_in_and_is_not_shown(there: Path) -> None:
    access, _ = opened(there)
    with pytest.raises(Refused) as caught, Client(access, "not-the-password"):
        pass
    assert "does not let paribus in" in str(caught.value)
    assert "not-the-password" not in str(caught.value)


def test_nobody_there_is_named(there: Path) -> None:
    access, secret = opened(there, port=1)
    with pytest.raises(NoAnswer, match="no connection"), Client(access, secret):
        pass


HEAD = '[bmc]\naddress = "b"\nuser = "u"\npassword = { file = "p" }\n'
STEP = 'steps = [{ name = "n", do = "person", ask = "a", undo = "b" }]'
PROFILE = f'[profiles.a]\nshape = "Cascade"\n{STEP}\n'


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (HEAD + PROFILE, "one of ca and fingerprint"),
        (HEAD + 'ca = "c"\nfingerprint = "00"\n' + PROFILE, "64 hex digits"),
        (
            HEAD.replace('{ file = "p" }', '"secret"') + 'ca = "c"\n' + PROFILE,
            "stands in no profile file",
        ),
        (HEAD + 'ca = "c"\n', "holds no profile"),
        (HEAD + 'ca = "c"\n' + PROFILE.replace("person", "magic"), "magic"),
        (HEAD + 'ca = "c"\n' + PROFILE.replace("Cascade", "Octopus"), "Octopus"),
        (HEAD + 'ca = "c"\n' + PROFILE.replace("undo", "und"), "unknown key"),
        (HEAD.replace('"b"', '"b:99999"') + 'ca = "c"\n' + PROFILE, "HOST or HOST:PORT"),
        ("nonsense", "is not TOML"),
    ],
)
def test_a_wrong_profile_file_is_refused(tmp_path: Path, text: str, named: str) -> None:
    path = tmp_path / "bmc.toml"
    path.write_text(text)
    with pytest.raises(UserError, match=named) as caught:
        read_profiles(path)
    assert "secret" not in str(caught.value)


def test_passwords_come_from_private_places_only(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "p"
    path.write_text("pass word\n")
    path.chmod(0o640)
    access = Access("b", 1, "u", ("file", "p"))
    with pytest.raises(UserError, match="others than its owner"):
        secret_of(access, str(tmp_path / "bmc.toml"))
    path.chmod(0o600)
    assert secret_of(access, str(tmp_path / "bmc.toml")) == "pass word"
    monkeypatch.setenv("BMC_SECRET", "")
    with pytest.raises(UserError, match="gives no password"):
        secret_of(replace(access, password=("env", "BMC_SECRET")), "")
    asked = executable(tmp_path / "askpass", "echo from-askpass")
    assert secret_of(replace(access, password=("askpass", str(asked))), "") == "from-askpass"
    assert os.environ.get("IPMI_PASSWORD") is None


PAGE = Path(__file__).parent.parent / "docs" / "topology.md"
BIN = Path(sys.executable).parent


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


def test_the_commands_of_the_page_do_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    """Those of its first block; `emulate` itself is the next test's."""
    page = PAGE.read_text().partition("\n## Switching")[2]
    block = re.search(r"```sh\n(.*?)```", page, re.S)
    assert block
    commands = [shlex.split(line)[1:] for line in block[1].splitlines()]
    assert commands[0] == ["topology", "emulate", "bmc", "&"]
    assert len(commands) == 5
    with listening(Path("bmc")) as (bmc, _):
        for words in commands[1:]:
            assert main(words) == 0, words
            said = capsys.readouterr()
            if "--dry-run" in words:
                assert "Balance is to become Cascade" in said.out
                assert said.out.count("POST ") == 20
                assert bmc.faults.writes == 0
            if "--yes" in words:
                assert "10 of 10: power: PowerState = On" in said.err
        assert json.loads(said.out)["result"] == "switched"
        assert json.loads(said.out)["shape"] == "Balance"
        assert bmc.accounts.sessions == {}
        secret = Path("bmc/password").read_text().strip()
    kept = "".join(path.read_text() for path in Path("state").rglob("*.journal"))
    assert kept.count('"what": "sent"') == 10
    assert secret not in kept


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_question_is_no_part_of_the_json(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["topology", "switch", "bmc/host", "cascade", "--through", "bmc/bmc.toml", "--json"]
    with listening(Path("bmc")):
        for answer, code in (("no\n", 2), ("yes\n", 0)):
            monkeypatch.setattr("sys.stdin", Terminal(answer))
            assert main(words) == code
            said = capsys.readouterr()
            assert "Switch now? [yes/no]" in said.err
    assert json.loads(said.out)["result"] == "switched"


@pytest.mark.parametrize("directory", ["bmc's $(touch gone)", "."])
def test_emulate_answers_until_it_is_ended(directory: str) -> None:
    """In a directory whose name is for a shell, or this one; what it says to try is tried."""
    need_certificate()
    words = [sys.executable, "-m", "paribus", "topology", "emulate", directory, "--boot", "0.1"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            assert "answers at https://127.0.0.1:" in process.stdout.readline()
            for _ in range(2):
                tried = process.stdout.readline().removeprefix("Try:").strip()
                name, *asked = shlex.split(tried)
                assert name == "paribus"
                assert main([*asked, *(["--yes"] if "switch" in asked else [])]) == 0
        finally:
            process.terminate()
        assert process.wait(10) == 130
    assert not Path(directory, "host").exists()


@pytest.mark.parametrize("dialect", ["actions", "patch", "bios", "oem"])
def test_each_dialect_leads_to_each_topology_and_back(tmp_path: Path, dialect: Dialect) -> None:
    bmc = emulated_bmc(tmp_path, dialect)
    for name in ("cascade", "balance", "common", "balance"):
        if (dialect, name, bmc.hardware.shape) == ("oem", "balance", "Common"):
            with pytest.raises(UserError, match="would be undone to 'Cascade'"):
                switched(bmc, name)
            continue
        result = switched(bmc, name)
        assert (result.how, result.cause) == ("switched", "")
    assert bmc.faults.writes


STEPS = """
[[profiles.cascade.steps]]
name  = "site command"
do    = "command"
run   = "sh -c 'echo far > wire'"
undo  = "sh -c 'echo near > wire'"
reads = { run = "cat wire", prints = "far", before = "near" }

[[profiles.cascade.steps]]
name  = "the cable"
do    = "person"
ask   = "Is the cable in port 2"
undo  = "Is the cable in port 1"
"""


@pytest.mark.parametrize("answer", [True, False])
def test_commands_and_persons_are_steps_too(tmp_path: Path, answer: bool) -> None:
    """What the person says no to is rolled back, with what a command did before."""
    bmc = emulated_bmc(tmp_path)
    path = tmp_path / "bmc.toml"
    head, _, rest = path.read_text().partition("[profiles.common]")
    path.write_text(head + STEPS + "\n[profiles.common]" + rest)
    (tmp_path / "wire").write_text("near\n")
    asked: list[str] = []

    def ask(question: str) -> bool:
        asked.append(question)
        return answer or "port 1" in question

    result = switched(bmc, ask=ask)
    assert result.how == ("switched" if answer else "rolled back"), result
    assert (tmp_path / "wire").read_text() == ("far\n" if answer else "near\n")
    assert asked == ["Is the cable in port 2", *([] if answer else ["Is the cable in port 1"])]


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('"EMULATED-8GPU"', '"ANOTHER"', "this is another server"),
        ('idle     = "true"', 'idle     = "false"', "it is not idle"),
        ('idle     = "true"', "", "nobody says that it is idle"),
        ("Zones/Host1a", "Zones/Host9z", "GET gives 404"),
    ],
)
def test_what_does_not_fit_changes_nothing(
    old: str, new: str, named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with listening(Path("bmc")) as (bmc, _):
        path = Path("bmc/bmc.toml")
        path.write_text(path.read_text().replace(old, new))
        words = ["topology", "switch", "bmc/host", "cascade", "--through", "bmc/bmc.toml", "--yes"]
        assert main(words) in (2, 4)
        said = capsys.readouterr().err
        assert named in said or named in said.replace("\n", " ")
        assert bmc.faults.writes == 0
        assert bmc.accounts.sessions == {}


def test_a_switch_that_fails_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    with listening(Path("bmc"), faults={4: "conflict"}):
        words = ["topology", "switch", "bmc/host", "cascade", "--through", "bmc/bmc.toml", "--yes"]
        assert main(words) == 4
        assert "Rolled back: bmc/host is Balance as before" in capsys.readouterr().out


def test_a_real_shape_only_comes_from_an_operating_system(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`balance` names a tree that ships; here it would be a host, and there is none."""
    with listening(Path("bmc")):
        words = ["topology", "switch", "bmc/none", "cascade", "--through", "bmc/bmc.toml"]
        assert main(words) == 2
        assert "no PCI devices" in capsys.readouterr().err


@pytest.mark.slow
def test_the_validator_of_the_standard_finds_nothing(tmp_path: Path) -> None:
    tool = BIN / "rf_protocol_validator"
    if not tool.exists():
        pytest.skip("redfish-protocol-validator is not installed")
    bundles = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
    with listening(tmp_path / "bmc") as (_, address):
        secret = (tmp_path / "bmc/password").read_text().strip()
        words = [str(tool), "-u", USER, "-p", secret, "-r", f"https://{address}", "--no-cert-check"]
        words += ["--avoid-http-redirect", "--report-type", "tsv", "--report-dir", str(tmp_path)]
        env = {key: value for key, value in os.environ.items() if key not in bundles}
        done = ran(words, env=env)
    found = re.search(r"PASS: (\d+), WARN: (\d+), FAIL: (\d+)", done.stdout + done.stderr)
    assert found, done.stderr[-500:]
    assert int(found[1]) > 300
    assert (found[2], found[3]) == ("0", "0"), "".join(
        line
        for path in tmp_path.glob("*.tsv")
        for line in path.read_text().splitlines(True)
        if "\tFAIL\t" in line or "\tWARN\t" in line
    )


def test_sushy_reads_the_emulator(tmp_path: Path) -> None:
    sushy = pytest.importorskip("sushy")
    with listening(tmp_path / "bmc") as (_, address):
        secret = (tmp_path / "bmc/password").read_text().strip()
        root = sushy.Sushy(
            f"https://{address}/redfish/v1/",
            auth=sushy.auth.SessionAuth(USER, secret),
            verify=str(tmp_path / "bmc/ca.pem"),
        )
        system = root.get_system("/redfish/v1/Systems/1")
        assert (system.serial_number, system.power_state.value) == ("EMULATED-8GPU", "On")


def test_ipmi_bytes_of_a_site_reach_a_simulator(tmp_path: Path) -> None:
    """A read of the device id answers; an OEM command, which it does not know, fails and is undone.

    ipmi_sim is OpenIPMI's: what a vendor's command would do cannot be tried here.
    """
    with simulated(tmp_path) as port:
        access = Access("127.0.0.1", 1, "paribus", ("env", "X"), ipmi_port=port, ipmi_cipher="3")
        ways = Ways(Client(access, "ipmi-secret"), "ipmi-secret", lambda _: False, 0.1)
        device = ("0x06", "0x01")
        seen = Check("prints", value="20 09 08 9f", argv=device, by="ipmi")
        deadline = time.monotonic() + 20
        answer, refused = send(Write("id", "ipmi", seen, argv=device), ways)
        while answer and time.monotonic() < deadline:
            answer, refused = send(Write("id", "ipmi", seen, argv=device), ways)
        assert (answer, refused) == ("", False)
        assert holds(seen, ways) is False
        oem, _ = send(Write("oem", "ipmi", seen, argv=("0x3c", "0x10", "0x01")), ways)
        assert "0xc1" in oem


def test_the_certificate_of_the_emulator_is_of_this_machine_alone(tmp_path: Path) -> None:
    with listening(tmp_path / "bmc") as (_, address):
        host, port = address.split(":")
        assert host == "127.0.0.1"
        pem = ssl.get_server_certificate((host, int(port)))
        assert pem.split() == (tmp_path / "bmc/ca.pem").read_text().split()
    assert (tmp_path / "bmc/key.pem").stat().st_mode & 0o077 == 0
