"""What a client refuses of a BMC, and that a write is sent once; over TLS on loopback."""

from __future__ import annotations

import hashlib
import os
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from emulated import listening
from paribus.bmc.access import Access, secret_of
from paribus.bmc.client import BmcError, Client, Distrusted, NoAnswer, Refused
from paribus.bmc.profiles import read_profiles
from paribus.core import UserError

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
    asked = tmp_path / "askpass"
    asked.write_text("#!/bin/sh\necho from-askpass\n")
    asked.chmod(0o700)
    assert secret_of(replace(access, password=("askpass", str(asked))), "") == "from-askpass"
    assert os.environ.get("IPMI_PASSWORD") is None
