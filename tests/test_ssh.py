"""Hosts by OpenSSH: a real server on the loopback, with keys of its own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from paribus.border import Place
from paribus.cli.hosts import reached as hosts_of_study
from paribus.core import Command, Completed, Hosts, LaunchError, MachineError, UserError
from paribus.hosts.reached import Host
from paribus.hosts.remote import HostStation
from paribus.hosts.ssh import (
    HostKey,
    UnknownKeysError,
    accept,
    configure,
    reach,
    scan,
    why_no_connection,
)
from paribus.launch.local import LocalStation
from paribus.studyfile.hosts import hosts_of
from paribus.studyfile.load import load_study
from processes import descendants, ended, executable, gone, processes_with
from stations import launched
from studies import write_study

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/bin:/sbin:/bin")

pytestmark = [
    pytest.mark.skipif(not SSHD, reason="no sshd"),
    pytest.mark.skipif(os.geteuid() != 0, reason="an ssh server of a test's own needs root"),
]

CONFIG = """
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/{name}
AuthorizedKeysFile {folder}/authorized_keys
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin prohibit-password
PidFile none
LogLevel ERROR
"""

INSIDE = 'mount -t tmpfs tmpfs /run && mkdir /run/sshd && exec "$0" -D -e -f "$1"'


class Server:
    """An ssh server; its sessions end with it."""

    def __init__(self, folder: Path, name: str, port: int, more: str = "") -> None:
        self.folder, self.name, self.port = folder, name, port
        if not (folder / name).exists():
            key(folder / name)
        config = folder / f"{name}.conf"
        config.write_text(CONFIG.format(folder=folder, name=name, port=port) + more)
        argv = ["unshare", "--mount", "/bin/sh", "-c", INSIDE, str(SSHD), str(config)]
        self.process = subprocess.Popen(argv, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.02)
        self.end()
        raise AssertionError("sshd does not answer")

    def end(self) -> None:
        """End it and its sessions."""
        below = [self.process.pid, *descendants(self.process.pid)]
        for pid in below:
            try:
                os.kill(pid, 9)
            except ProcessLookupError:
                continue
        self.process.wait()


def key(path: Path, passphrase: str = "") -> None:
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-f", str(path)]
    subprocess.run(words, check=True)


def free_ports(several: int) -> list[int]:
    """Return neighbouring ports on which nobody listens."""
    # Workers of one test run do not begin at the same ones.
    for first in range(23000 + os.getpid() % 100 * 50, 33000, 50):
        sockets = [socket.socket() for _ in range(several)]
        try:
            for i, one in enumerate(sockets):
                one.bind(("127.0.0.1", first + i))
            return [first + i for i in range(several)]
        except OSError:
            continue
        finally:
            for one in sockets:
                one.close()
    raise AssertionError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ssh")
    key(folder / "id")
    key(folder / "locked", "of a person")
    several = [(folder / f"{name}.pub").read_text() for name in ("id", "locked")]
    (folder / "authorized_keys").write_text("".join(several))
    return folder


@pytest.fixture(scope="module")
def servers(folder: Path) -> Iterator[list[Server]]:
    found = [Server(folder, f"key{i}", port) for i, port in enumerate(free_ports(2))]
    yield found
    for one in found:
        one.end()


@pytest.fixture
def local() -> Iterator[LocalStation]:
    with LocalStation() as local:
        yield local


def options(folder: Path, tmp_path: Path, text: str) -> Hosts:
    ssh = {"user": "root", "identity": str(folder / "id"), "known_hosts": str(tmp_path / "known")}
    hosts = hosts_of(Place("test", "", {"hosts": text, "ssh": ssh}), Path())
    assert hosts is not None
    return hosts


def reached(hosts: Hosts, local: LocalStation, *, accept: bool = False) -> tuple[Host, ...]:
    return reach(hosts, hosts.ssh.known_hosts, Path(local.here), lambda _: accept)


def both(servers: list[Server]) -> str:
    return f"127.0.0.1:{servers[0].port}-{servers[1].port}"


def trusted(hosts: Hosts, local: LocalStation) -> tuple[Host, ...]:
    """Return the hosts, after their keys have been accepted."""
    with pytest.raises(UnknownKeysError) as caught:
        reached(hosts, local)
    assert "SHA256:" in caught.value.cause
    reached(hosts, local, accept=True)
    return reached(hosts, local)


def hosts_through(text: str, jump: str) -> Hosts:
    """Return hosts that are reached through jump hosts."""
    hosts = hosts_of(Place("test", "", {"hosts": text, "ssh": {"jump": jump}}), Path())
    assert hosts is not None
    return hosts


def start(station: HostStation, tmp_path: Path, script: str, timeout_s: float = 30.0) -> Completed:
    return launched(station, Command(("/bin/sh", "-c", script)), tmp_path, timeout_s)


def test_a_study_whose_arms_have_unknown_hosts_is_asked_for_each(
    servers: list[Server], folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = f"user = 'root', identity = '{folder / 'id'}', known_hosts = '{tmp_path / 'known'}'"
    arms = "".join(
        f"[arms.{arm}]\nhosts = '127.0.0.1:{server.port}'\nssh = {{ {keys} }}\n"
        for arm, server in zip("ab", servers, strict=True)
    )
    study = load_study(write_study(tmp_path, arms=arms))
    with (
        pytest.raises(UnknownKeysError, match="SHA256:") as refused,
        hosts_of_study(study, accept_keys=False),
    ):
        pass
    assert "--accept-host-keys" in refused.value.fix
    assert not (tmp_path / "known").exists()
    with hosts_of_study(study, accept_keys=True) as opened:
        assert set(opened) == {"a", "b"}
    assert capsys.readouterr().err.count("shows the host key") == 2
    with hosts_of_study(study, accept_keys=False) as opened:
        assert set(opened) == {"a", "b"}


def test_ports_behind_one_address_are_hosts_with_a_key_each(
    servers: list[Server], folder: Path, tmp_path: Path, local: LocalStation
) -> None:
    hosts = trusted(options(folder, tmp_path, both(servers)), local)
    names = [f"127.0.0.1-{one.port}" for one in servers]
    assert [host.name for host in hosts] == names
    lines = (tmp_path / "known").read_text().splitlines()
    assert [line.split()[0] for line in lines] == names
    assert len({line.split()[2] for line in lines}) == 2
    assert (tmp_path / "known").stat().st_mode & 0o777 == 0o600
    assert (Path(local.here) / "ssh_config").stat().st_mode & 0o777 == 0o600
    with HostStation(hosts, local) as station:
        agent = f"{station.agent} {names[1]} 'echo from $SSH_CONNECTION >&2; exit 3'"
        done = start(station, tmp_path, f"echo $SSH_CONNECTION; {agent}")
        assert done.exit_code == 3
        assert (tmp_path / "out").read_text().split()[3] == str(servers[0].port)
        assert (tmp_path / "err").read_text().split()[-1] == str(servers[1].port)
        scratch = Path(station.scratch)
    assert not scratch.exists()
    assert not Path("/dev/shm", scratch.name).exists()


def test_a_changed_host_key_names_file_and_line(
    servers: list[Server], folder: Path, tmp_path: Path, local: LocalStation
) -> None:
    name = f"127.0.0.1-{servers[0].port}"
    other = (folder / "key1.pub").read_text().split()
    (tmp_path / "known").write_text(f"# mine\n{name} {other[0]} {other[1]}\n")
    hosts = reached(options(folder, tmp_path, f"127.0.0.1:{servers[0].port}"), local)
    with pytest.raises(UserError, match=f"{tmp_path}/known:2: the host key of {name} is not"):
        HostStation(hosts, local).__enter__()
    with pytest.raises(UserError, match="known:2: another key is known"):
        accept(scan(hosts), tmp_path / "known")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"user": "nobody-here"}, "the login was refused .publickey.*user"),
        ({"identity": ""}, "the login was refused"),
        ({"identity": "locked"}, "the login was refused .*passphrase.*ssh-add"),
    ],
)
def test_a_login_that_is_refused_is_not_asked_about(
    servers: list[Server],
    folder: Path,
    tmp_path: Path,
    local: LocalStation,
    change: dict[str, Any],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    name = f"127.0.0.1:{servers[0].port}"
    asked = options(folder, tmp_path, name)
    trusted(asked, local)
    if change.get("identity"):
        change = {"identity": str(folder / change["identity"])}
    hosts = reached(replace(asked, ssh=replace(asked.ssh, **change)), local)
    with pytest.raises(MachineError, match=f"(?s){name.replace(':', '-')}: {said}"):
        HostStation(hosts, local).__enter__()


def test_hosts_behind_a_jump_host_whose_key_is_not_known(
    servers: list[Server], folder: Path, tmp_path: Path, local: LocalStation
) -> None:
    """Its key is shown and accepted as those of hosts are; it may be one of them."""
    first, second = servers
    asked = options(folder, tmp_path, f"127.0.0.1:{second.port}")
    asked = replace(asked, ssh=replace(asked.ssh, jump=f"root@127.0.0.1:{first.port}"))
    shown: list[str] = []
    with pytest.raises(UnknownKeysError, match=f"127.0.0.1.:{first.port} SHA256:"):
        reached(asked, local)

    def accepts(keys: Sequence[HostKey]) -> bool:
        shown.extend(one.name for one in keys)
        return True

    for _ in range(2):  # the second time nothing is asked
        hosts = reach(asked, asked.ssh.known_hosts, Path(local.here), accepts)
    assert shown == [f"[127.0.0.1]:{first.port}", f"127.0.0.1-{second.port}"]
    with HostStation(hosts, local) as station:
        assert start(station, tmp_path, "echo $SSH_CONNECTION").exit_code == 0
    assert (tmp_path / "out").read_text().split()[3] == str(second.port)
    config = configure(hosts_through("a,gate,b", "me@gate"), "known", tmp_path).read_text()
    assert [line.split()[1] for line in config.splitlines() if "ProxyJump" in line] == [
        "me@gate"
    ] * 2


@pytest.mark.parametrize(
    ("printed", "cause"),
    [
        ("ssh: Could not resolve hostname gate: Name or service not known", "known for gate"),
        ("root@gate: Permission denied (publickey).", "the login was refused"),
        ("stdio forwarding failed", "the jump host leads no further"),
        ("", "the ssh server closed the connection"),
    ],
)
def test_what_failed_at_a_jump_host_is_said(printed: str, cause: str) -> None:
    """As OpenSSH 9.2 prints it: that the connection was closed follows from it."""
    closed = "kex_exchange_identification: Connection closed by remote host"
    assert cause in why_no_connection("node1", f"{printed}\n{closed}\n", ()).cause


def test_nobody_there_is_said_at_once(folder: Path, tmp_path: Path, local: LocalStation) -> None:
    (port,) = free_ports(1)
    begin = time.monotonic()
    with pytest.raises(MachineError, match="no ssh server answers: Connection refused"):
        reached(options(folder, tmp_path, f"127.0.0.1:{port}"), local)
    assert time.monotonic() - begin < 5


@pytest.mark.parametrize(
    ("forced", "said"),
    [
        ("echo Welcome; exec /bin/sh", "login script there prints 'Welcome' on standard output"),
        ("exec /bin/sh-is-not-here", "no shell could be had|there is no /bin/sh"),
        ("TMPDIR=/proc exec /bin/sh", "no scratch directory can be created: .*/proc/"),
        ("TMPDIR={folder}/full exec /bin/sh", "its files cannot be written|no space|no inodes"),
    ],
)
def test_what_a_login_lacks_is_named_with_host_and_fix(
    folder: Path, tmp_path: Path, local: LocalStation, forced: str, said: str
) -> None:
    (folder / "full").mkdir(exist_ok=True)
    mount = f"mountpoint -q {folder}/full || mount -t tmpfs -o size=8k tmpfs {folder}/full; "
    mount = mount if "full" in forced else ""
    script = executable(tmp_path / "forced", f"{mount}{forced.format(folder=folder)}")
    server = Server(folder, "odd", free_ports(1)[0], f"ForceCommand {script}\n")
    try:
        hosts = trusted(options(folder, tmp_path, f"127.0.0.1:{server.port}"), local)
        with pytest.raises(UserError, match=said) as caught:
            HostStation(hosts, local).__enter__()
        assert caught.value.place.startswith(f"127.0.0.1-{server.port}")
        assert caught.value.fix
    finally:
        server.end()


def test_a_connection_that_is_lost_fails_the_launch_and_the_next_one_works(
    servers: list[Server], folder: Path, tmp_path: Path, local: LocalStation
) -> None:
    hosts = trusted(options(folder, tmp_path, f"127.0.0.1:{servers[0].port}"), local)
    with HostStation(hosts, local) as station:
        script = "read -r keeper <../keeper.0; kill -9 $(ps -o ppid= -p $keeper); sleep 60"
        with pytest.raises(LaunchError, match=r"the connection to 127.* was lost in mid-launch"):
            start(station, tmp_path, script)
        assert start(station, tmp_path, "true").exit_code == 0
        scratch = Path(station.scratch)
    assert not scratch.exists()


SITTING = """
import sys
from paribus.core.command import Command
from paribus.hosts.reached import Host
from paribus.launch.local import LocalStation
from paribus.hosts.remote import HostStation
from paribus.hosts.ssh import reach
from paribus.core.hosts import Address, Hosts, Link, Ssh
from pathlib import Path

with LocalStation() as local:
    hosts = reach({asked!r}, {asked.ssh.known_hosts!r}, Path(local.here), bool)
    with HostStation(hosts, local) as station:
        print(station.scratch, local.here, flush=True)
        command = Command(("/bin/sh", "-c", "trap '' TERM; setsid sleep {mark} & sleep {mark}"))
        scratch = f"{{station.scratch}}/launch"
        station.run(command, stdout="out", stderr="err", timeout_s=60, scratch=scratch)
"""


@pytest.mark.slow
def test_a_killed_paribus_leaves_nothing_behind_its_connections(
    servers: list[Server], folder: Path, tmp_path: Path, local: LocalStation
) -> None:
    asked, mark = options(folder, tmp_path, both(servers)), f"75{os.getpid()}"
    trusted(asked, local)
    sitting = subprocess.Popen(
        [sys.executable, "-c", SITTING.format(asked=asked, mark=mark)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    places = [Path(word) for word in sitting.stdout.readline().split()]
    while not processes_with(f"sleep\0{mark}"):
        assert sitting.poll() is None
    clients = descendants(sitting.pid)
    sitting.kill()
    sitting.wait()
    sitting.stdout.close()
    assert gone(f"sleep\0{mark}")
    assert ended(clients)
    deadline = time.monotonic() + 10
    shared = [Path("/dev/shm", place.name) for place in places]
    while any(place.exists() for place in (*places, *shared)):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_server_that_ends_in_mid_launch_is_named(
    folder: Path, tmp_path: Path, local: LocalStation
) -> None:
    server = Server(folder, "brief", free_ports(1)[0])
    try:
        hosts = trusted(options(folder, tmp_path, f"127.0.0.1:{server.port}"), local)
        with HostStation(hosts, local) as station:
            cut = threading.Timer(1.0, server.end)
            cut.start()
            with pytest.raises(MachineError, match=f"127.0.0.1-{server.port}: .*no answer"):
                start(station, tmp_path, "sleep 20")
            cut.join()
    finally:
        server.end()
        for left in (Path(station.scratch), Path("/dev/shm", Path(station.scratch).name)):
            shutil.rmtree(left)
