"""`paribus serve` under a real JupyterHub: two users sign in, each sees only their own studies."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError

import pytest

from paribus.cli import outputs
from paribus.judge.conclude import judged
from serving import visiting
from study_directories import write_directory

pytestmark = pytest.mark.hub

CONFIG = """
c.JupyterHub.bind_url = "http://127.0.0.1:{port}/hubbase/"
c.JupyterHub.hub_ip = "127.0.0.1"
c.JupyterHub.hub_port = {hub}
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{api}"
c.ConfigurableHTTPProxy.command = ["{proxy}"]
c.JupyterHub.authenticator_class = "dummy"
c.DummyAuthenticator.password = "pw"
c.Authenticator.allowed_users = {{"ada", "bob"}}
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = "{home}/{{username}}"
c.Spawner.cmd = ["{bin}/jupyterhub-singleuser"]
c.Spawner.args = ["--allow-root"]
c.Spawner.default_url = "/paribus/"
c.Spawner.http_timeout = 120
c.JupyterHub.db_url = "sqlite:///{home}/hub.sqlite"
c.JupyterHub.cookie_secret_file = "{home}/cookie_secret"
"""


def free_ports(count: int) -> list[int]:
    taken = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in taken]
    for one in taken:
        one.close()
    return ports


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of a hub, with a study of ada's and one of bob's."""
    home = tmp_path_factory.mktemp("home")
    for user in ("ada", "bob"):
        (home / user).mkdir()
        study = write_directory(home / user / f"of-{user}", {"a": 1.0, "b": 1.1}, blocks=18)
        outputs.write_files(judged(study), study)
    port, internal, api = free_ports(3)
    bin_ = Path(sys.executable).parent
    proxy = Path(os.environ["PARIBUS_TEST_HUB_PROXY"])
    text = CONFIG.format(port=port, hub=internal, api=api, proxy=proxy, home=home, bin=bin_)
    (home / "config.py").write_text(text)
    log = (home / "hub.log").open("wb")
    argv = [str(bin_ / "jupyterhub"), "-f", str(home / "config.py")]
    process = subprocess.Popen(argv, cwd=home, stdout=log, stderr=log, start_new_session=True)
    address = f"http://127.0.0.1:{port}/hubbase/"
    try:
        _wait(f"{address}hub/login", process, home / "hub.log")
        yield address
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)
        log.close()


def _wait(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 120
    while True:
        try:
            with urllib.request.urlopen(address, timeout=5) as answer:
                if answer.status == 200:
                    return
        except (URLError, OSError):
            pass
        assert process.poll() is None, log.read_text()[-3000:]
        assert time.monotonic() < deadline, log.read_text()[-3000:]
        time.sleep(0.3)


def sign_in(page, hub: str, user: str) -> None:
    page.goto(f"{hub}hub/login")
    page.fill("#username_input", user)
    page.fill("#password_input", "pw")
    page.click("#login_submit")
    page.wait_for_url(f"**/user/{user}/paribus/", timeout=120_000)


def test_each_user_sees_their_own_studies(hub: str) -> None:
    with visiting() as page:
        sign_in(page, hub, "ada")
        assert "of-ada" in page.locator("main").inner_text()
        assert "of-bob" not in page.locator("main").inner_text()
        page.get_by_role("link", name="Which?").click()
        page.wait_for_selector("html[data-drawn]")
        page.get_by_text("not running").wait_for()  # an event arrived
        # What changes something passes the hub: its own check is of this site.
        page.goto(f"{hub}user/ada/paribus/new/")
        page.wait_for_selector("#start:enabled")
        # The server of somebody else.
        answer = page.goto(f"{hub}user/bob/paribus/")
        assert answer.status in (403, 404, 503)
        assert "of-bob" not in page.content()
        assert page.complaints == [] or all("40" in one or "503" in one for one in page.complaints)
    with visiting() as page:
        sign_in(page, hub, "bob")
        assert "of-bob" in page.locator("main").inner_text()
        assert page.goto(f"{hub}user/ada/paribus/").status == 403


def test_a_visitor_is_sent_to_the_login(hub: str) -> None:
    with visiting() as page:
        page.goto(f"{hub}user/ada/paribus/")
        assert "/hub/login" in page.url
