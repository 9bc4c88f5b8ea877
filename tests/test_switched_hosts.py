"""Hosts that commands start and end: waited for, left, entered again; commands on hypervisors."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from paribus.core import Command, MachineError, ParibusError, Study
from paribus.hosts import guests
from paribus.hosts.guests import SwitchedStation
from paribus.hosts.reached import Host
from paribus.launch.gathering import beside
from paribus.launch.local import LocalStation
from paribus.launch.switching import Switches
from paribus.store import Gathered
from paribus.studyfile.load import load_study
from processes import needs
from studies import paribus, write_study

OFF = "echo 'ssh: connect to host vm1 port 22: Connection refused' >&2; exit 255"


def study(folder: Path, **more: str) -> Study:
    """Return a study whose arm b has a guest, which is on while the file `on` is there."""
    keys = {
        "before": f'{{ on = "hyper1", run = "touch {folder}/on" }}',
        "after": f'{{ on = "hyper1", run = "rm -f {folder}/on" }}',
        **more,
    }
    arm = "".join(f"{key} = {value}\n" for key, value in keys.items())
    arms = f'[arms.a]\n[arms.b]\nhosts = "vm1"\nhypervisors = "hyper1"\n{arm}'
    return load_study(write_study(folder, arms=arms, plan='unit = "session"', more="ranks = 1"))


@pytest.fixture
def station(tmp_path: Path) -> Iterator[SwitchedStation]:
    """A guest that is off, and its hypervisor; shells of this machine stand for both."""
    script = f"[ -e {tmp_path}/on ] || {{ {OFF}; }}; exec /bin/sh"
    guest = Host("vm1", ("/bin/sh", "-c", script, "ssh"))
    hypervisor = Host("hyper1", ("env", "PLACE=hypervisor", "/bin/sh"))
    with LocalStation() as local, SwitchedStation([guest], local, [hypervisor]) as found:
        yield found


def launched(station: SwitchedStation, out: Path) -> str:
    scratch = f"{station.scratch}/1"
    words = Command(("/bin/sh", "-c", "echo here"))
    done = station.run(words, stdout=str(out), stderr="/dev/null", timeout_s=10, scratch=scratch)
    assert done.exit_code == 0
    return out.read_text()


def test_a_guest_is_switched_on_waited_for_and_left(
    tmp_path: Path, station: SwitchedStation
) -> None:
    found = study(tmp_path)
    assert "no ssh server answers" in str(station.asleep)
    with Switches(found, stations={"b": station}) as switches:
        for _ in range(2):
            with switches.at([found.arms[1]]):
                assert station.asleep is None
                assert launched(station, tmp_path / "out") == "here\n"
            assert not (tmp_path / "on").exists()
            assert not Path(station.scratch).exists()  # left before it was switched off


def test_a_connection_to_a_guest_of_before_is_made_anew(
    tmp_path: Path, station: SwitchedStation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a guest was ended under it, its connection may be silent for as long as TCP waits."""
    found = study(tmp_path)
    monkeypatch.setattr(guests, "PROBE_S", 0.2)
    with Switches(found, stations={"b": station}) as switches:
        switches.apply(found.arms[1])
        os.kill(_keeper(station), signal.SIGSTOP)
        begin = time.monotonic()
        switches.apply(found.arms[1])
        assert time.monotonic() - begin < 10
        assert launched(station, tmp_path / "out") == "here\n"


def _keeper(station: SwitchedStation) -> int:
    """Return the process that stays on the guest."""
    path = Path(station.scratch, "keeper.0")
    while not (path.exists() and path.read_text().strip()):
        time.sleep(0.01)
    return int(path.read_text())


def test_a_guest_that_does_not_come_is_named_in_time(
    tmp_path: Path, station: SwitchedStation, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = study(tmp_path, before='"true"', after='"true"')
    monkeypatch.setattr(guests, "BACK_S", 0.5)
    begin = time.monotonic()
    with (
        Switches(found, stations={"b": station}) as switches,
        pytest.raises(MachineError) as error,
    ):
        switches.apply(found.arms[1])
    assert time.monotonic() - begin < 10
    assert str(error.value).startswith("arms.b.hosts: vm1 does not answer 0 s after `before`: no ")
    assert "see on its console" in error.value.fix


def test_commands_are_carried_out_on_the_hypervisor(
    tmp_path: Path, station: SwitchedStation
) -> None:
    observe = '{ on = "hyper1", run = "sh -c \'echo $PLACE\'" }'
    found = study(tmp_path, observe=observe)
    with Switches(found, logs=tmp_path / "logs", stations={"b": station}) as switches:
        switches.apply(found.arms[1])
        assert switches.levels == {"b": "hypervisor"}
    assert "hyper1: sh -c echo $PLACE" in (tmp_path / "logs" / "switch-b.log").read_text()
    failing = study(
        tmp_path, before='{ on = "hyper1", run = "sh -c \'echo no such domain; exit 1\'" }'
    )
    with (
        pytest.raises(ParibusError, match="exit code 1: no such domain") as error,
        Switches(failing, stations={"b": station}) as switches,
    ):
        switches.apply(failing.arms[1])
    assert error.value.place.startswith("arms.b.before: hyper1: sh -c")


def test_the_hypervisor_tells_what_it_is(tmp_path: Path, station: SwitchedStation) -> None:
    arm = study(tmp_path).arms[1]
    (one,) = beside(arm, station, [Gathered("b", "vm1", 0.0, {"os.release": "guest's"})])
    assert one.facts["os.release"] == "guest's"
    release = Path("/proc/sys/kernel/osrelease").read_text().strip()
    assert one.facts["hypervisor.os.release"] == release
    assert {"hypervisor.cpu.count", "hypervisor.memory.total_kib"} <= one.facts.keys()
    assert not any(key.startswith("hypervisor.env.") for key in one.facts)
    silent = Host("hyper1", ("/bin/sh", "-c", OFF))
    station.hypervisors = (silent,)
    with pytest.raises(ParibusError, match="hyper1"):
        beside(arm, station, [one])


def test_a_guest_that_is_off_and_was_never_on_needs_a_known_key(tmp_path: Path) -> None:
    needs("ssh")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]  # free, as soon as the block ends
    arms = '[arms.a]\n[arms.b]\nhosts = "vm1"\n'
    arms += f'ssh = {{ config = "config" }}\nbefore = "touch {tmp_path}/on"\n'
    (tmp_path / "config").write_text(f"Host vm1\n  HostName 127.0.0.1\n  Port {port}\n")
    path = write_study(tmp_path, arms=arms, more="ranks = 1")
    done = paribus("run", path, "--dry-run", cwd=tmp_path)
    assert done.returncode == 2
    assert "vm1: no ssh server answers: Connection refused" in done.stderr
    assert "start them once, and accept the keys" in done.stderr
    known = tmp_path / "study.known_hosts"
    known.write_text("vm1 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGZvcmdlZCBrZXkgb2YgYSB0ZXN0Lg==\n")
    done = paribus("run", path, "--dry-run", cwd=tmp_path)
    assert done.returncode == 2
    assert "start them: --dry-run does not run `before` of b" in done.stderr
    assert not (tmp_path / "on").exists()
