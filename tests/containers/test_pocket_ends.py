"""Nothing is left of a pocket cluster, whoever is killed, at whatever moment, MPI included."""

from __future__ import annotations

import os
import random
import signal
import socket
import sys
import time
from pathlib import Path

import pytest

from containers.fabrics import PROGRAM, namespaces
from containers.gates import start_sshd
from containers.pockets import Held, spaces, ticks
from mpis import any_mpi
from paribus.border import find_program
from paribus.core import Mpi
from paribus.launch.local import capture
from processes import executable, processes_with

LONG = PROGRAM.replace("i < 16", "i < 1000000000").replace(
    "  for (int i",
    '  char name[64];\n  snprintf(name, sizeof name, "/tmp/rank-%d", rank);\n'
    '  fclose(fopen(name, "w"));\n  for (int i',
    1,
)
"""A program that exchanges messages until it is killed, once it has said that it does."""

OPENMPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """With --long 52 of them: of the controller and of Paribus, 12 of them in MPI."""
    if "number" in metafunc.fixturenames:
        many = metafunc.config.getoption("--long")
        most = {"moment": 10, "mpi": 3} if many else {"moment": 2, "mpi": 1}
        kind = "mpi" if "mpi" in metafunc.function.__name__ else "moment"
        metafunc.parametrize("number", range(most[kind]))


def files_of(directory: str) -> list[str]:
    """Return what is left in the file systems of this machine by the sitting of `directory`."""
    scratch = Path(directory).parent
    return [str(p) for p in (scratch, Path("/dev/shm", scratch.name)) if p.exists()]


def nothing_left(directory: str, seen: set[str], before: set[str]) -> None:
    """Demand that all that bears the name of `directory`, and the namespaces `seen`, go in 10 s."""
    scratch, now = str(Path(directory).parent), ticks()
    deadline = time.monotonic() + 10
    while True:
        left = processes_with(scratch), seen & spaces(now), files_of(directory)
        if not any(left):
            break
        assert time.monotonic() < deadline, left
        time.sleep(0.02)
    assert scratch not in Path("/proc/self/mountinfo").read_text()
    assert {name for _, name in socket.if_nameindex()} <= before


def interfaces() -> set[str]:
    return {name for _, name in socket.if_nameindex()}


def made_by(held: Held) -> set[str]:
    """Return the namespaces of what is started in the cluster's name, as they are now."""
    found: set[str] = set()
    for pid in processes_with(held.directory):
        try:
            found |= namespaces(Path(f"/proc/{pid}"))
        except OSError:
            continue
    return found - namespaces(Path("/proc/self"))


@pytest.mark.slow
@pytest.mark.parametrize("who", ["controller", "paribus"])
@pytest.mark.parametrize("identity", ["root", "user"])
def test_nothing_is_left_after_a_kill_at_any_moment(number: int, who: str, identity: str) -> None:
    """From before the first host is there until after the last; with a link for every second."""
    before = interfaces()
    moment = random.Random(f"{number} {who} {identity}").uniform(0, 0.7)
    link = {"rate": "1 Gbit", "delay": "500 us"} if number % 2 else None
    held = Held(4, identity=identity, link=link)
    deadline = time.monotonic() + moment
    seen: set[str] = set()
    while time.monotonic() < deadline:
        seen |= made_by(held)
    kill(held, who)
    nothing_left(held.directory, seen, before)


def kill(held: Held, who: str) -> None:
    """Kill Paribus, or the controller, which it then notices only when it leaves the context."""
    if who == "paribus":
        held.process.kill()
        held.process.communicate()
        return
    for pid in processes_with(f"{held.directory}/pocket.sh"):
        os.kill(pid, signal.SIGKILL)
    held.process.communicate()


def test_the_controller_alone_takes_the_hosts_with_it() -> None:
    """All is gone though Paribus lives on; only the files wait for it."""
    before = interfaces()
    with Held(2) as held:
        seen = made_by(held)
        assert len(seen) >= 15
        os.kill(held.about["controller"], signal.SIGKILL)
        deadline, now = time.monotonic() + 10, ticks()
        while seen & spaces(now) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not seen & spaces(now)
    nothing_left(held.directory, seen, before)


@pytest.mark.slow
def test_a_hung_fabric_is_ended_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first process is stopped, so that it does not answer the end of Paribus.

    A sleep of 10 ms takes 100, as on a busy machine.
    """
    executable(tmp_path / "sleep", '[ "$1" != 0.01 ] || set -- 0.1\nexec /bin/sleep "$@"')
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    before = interfaces()
    held = Held(1)
    held.about = held.answer()
    seen = made_by(held)
    for pid in processes_with(f"{held.directory}/fabric.sh"):
        os.kill(pid, signal.SIGSTOP)
    held.process.kill()
    held.process.communicate()
    nothing_left(held.directory, seen, before)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> tuple[Mpi, str]:
    """An MPI, and the text of a program of it that never ends."""
    mpi, folder = any_mpi(), tmp_path_factory.mktemp("long")
    (folder / "long.cpp").write_text(LONG)
    done = capture([mpi.mpicxx, "-O1", "-o", str(folder / "long"), str(folder / "long.cpp")])
    if done.exit_code:
        pytest.skip(f"{mpi.mpicxx} compiles nothing: {done.stderr}")
    return mpi, (folder / "long").read_bytes().hex()


@pytest.mark.slow
@pytest.mark.parametrize("who", ["controller", "paribus"])
@pytest.mark.parametrize("identity", ["root", "user"])
def test_nothing_is_left_after_a_kill_in_mpi(
    number: int, who: str, identity: str, program: tuple[Mpi, str]
) -> None:
    """As root with a rank on each of two hosts, if there is sshd; else with both on one host."""
    mpi, text = program
    before = interfaces()
    sshd = find_program("sshd", f"{os.environ['PATH']}:/usr/sbin")
    across = identity == "root" and sshd is not None
    held = Held(2, identity=identity)
    held.about = held.answer()
    if across:
        start_sshd(Path(held.directory), ("h1", "h2"), lambda n, argv: held.inside(n, argv=argv))
    settings = "".join(f"export {name}={value}\n" for name, value in OPENMPI.items())
    where = ""
    for host in range(2):
        # The hosts do not see this machine's /tmp.
        copy = "import sys; open('/tmp/long', 'wb').write(bytes.fromhex(sys.stdin.read()))"
        held.inside(host, text, argv=("-c", f'exec {sys.executable} -I -S -c "{copy}"'))
        held.inside(host, "chmod 755 /tmp/long")
    if across:
        held.inside(0, among_hosts(held.directory))
        own = "--map-by ppr:1:node -H h1:1,h2:1"
        where = own if mpi.family == "openmpi" else "-hosts h1,h2 -ppn 1"
    held.ask(0, f"{settings}exec {mpi.mpirun} -n 2 {where} /tmp/long")
    last = held.about["pids"][1 if across else 0]
    deadline = time.monotonic() + 60
    while not Path(f"/proc/{last}/root/tmp/rank-1").exists():
        if time.monotonic() > deadline:
            held.process.kill()
            pytest.fail(f"no rank came: {held.process.communicate()}")
        time.sleep(0.02)
    seen = made_by(held)
    time.sleep(random.Random(f"{number} {who} {identity}").uniform(0, 0.3))
    kill(held, who)
    nothing_left(held.directory, seen, before)
    assert not processes_with("/tmp/long")


def among_hosts(directory: str) -> str:
    """Return a script that lets a host reach the others by ssh, as on a cluster."""
    key, known = (Path(directory, name).read_text() for name in ("key", "known_hosts"))
    return f"""\
umask 077
cat >/tmp/key <<'END'
{key}END
cat >/tmp/known <<'END'
{known}END
cat >/tmp/config <<'END'
Host *
    IdentityFile /tmp/key
    IdentitiesOnly yes
    UserKnownHostsFile /tmp/known
    StrictHostKeyChecking yes
    BatchMode yes
END
chmod 644 /tmp/config
mount --bind /tmp/config /etc/ssh/ssh_config
ssh h2 hostname
"""
