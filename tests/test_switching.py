"""Switches of the platform: nothing of them is left, and what is switched is switched back."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
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
from paribus.store import Gathered, Store
from paribus.store.journal import Journal
from paribus.studyfile.load import load_study
from processes import children, ended, executable, gone, needs, processes_with
from studies import command, paribus, write_study

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


def test_commands_are_run_on_the_hypervisor(tmp_path: Path, station: SwitchedStation) -> None:
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


def test_the_hypervisor_reports_what_it_is(tmp_path: Path, station: SwitchedStation) -> None:
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
    done = paribus("run", path, "--dry-run", cwd=tmp_path, code=2)
    assert "vm1: no ssh server answers: Connection refused" in done.stderr
    assert "start them once, and accept the keys" in done.stderr
    known = tmp_path / "study.known_hosts"
    known.write_text("vm1 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGZvcmdlZCBrZXkgb2YgYSB0ZXN0Lg==\n")
    done = paribus("run", path, "--dry-run", cwd=tmp_path, code=2)
    assert "start them: --dry-run does not run `before` of b" in done.stderr
    assert not (tmp_path / "on").exists()


OURS = os.getpid()
"""A fraction of seconds that no other worker sleeps for."""


def switched(folder: Path, *, before: str = "", after: str = "", **more: str) -> Path:
    """Write a study whose arm b notes each switch in `folder`/switches, after doing more."""
    script = executable(
        folder / "switch.sh",
        '#!/bin/sh\nif [ "$1" = before ]; then\n'
        f"echo before >> {folder}/switches; {before or ':'}\nelse\n"
        f"{after or ':'}; echo after >> {folder}/switches\nfi\n",
    )
    arms = f'[arms.a]\n[arms.b]\nbefore = "{script} before"\nafter = "{script} after"\n'
    return write_study(folder, arms=arms, **more)


def switches_of(folder: Path) -> list[str]:
    path = folder / "switches"
    return path.read_text().split() if path.exists() else []


def killed(folder: Path, study: Path, number: signal.Signals, mark: str) -> int:
    """Start a study, send it a signal when a process with `mark` is there, return its exit code."""
    with subprocess.Popen(
        command("run", study, "--out", folder / "out"),
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        while not processes_with(mark):
            assert process.poll() is None
            time.sleep(0.01)
        wardens = children(process.pid)
        process.send_signal(number)
        process.wait(timeout=30)
    assert ended(wardens)
    return process.returncode


def test_a_program_that_before_must_bring_about_is_named_before_it(tmp_path: Path) -> None:
    solver, nowhere = tmp_path / "solver", tmp_path / "nowhere"
    arms = (
        f'[arms.a]\nargv = ["true"]\n[arms.b]\nargv = ["{solver}"]\n'
        f'before = "ln -s /bin/true {solver}"'
        f'\n[arms.c]\nargv = ["{nowhere}"]\nbefore = "true"'
    )
    study = tmp_path / "study.toml"
    study.write_text(
        f'question = "Which?"\nfactor = "build"\n{arms}\n[[benchmarks]]\nname = "command"\n'
    )
    done = paribus("audit", study, cwd=tmp_path, code=2)
    first, _, after = done.stderr.partition("facts, after `ln -s")
    for path in (solver, nowhere):
        assert f"command: no executable file {path}, unless its `before` commands" in first
    assert f"no executable file {solver}" not in after
    assert f"no executable file {nowhere}\n" in after


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_switching_back_waits_until_the_ranks_have_ended(
    tmp_path: Path, number: signal.Signals
) -> None:
    mark = f"rank{os.getpid()}"
    look = f"pgrep -f {mark} > {tmp_path}/ranks; true"
    hangs = f'[ "$(tail -n 1 {tmp_path}/switches)" != before ] || (trap "" TERM; sleep 60.{OURS})'
    study = switched(tmp_path, after=look, mark=mark, script=f"{hangs}; echo 1")
    # Facts are gathered first, switched; then a launch of the switched arm hangs.
    assert killed(tmp_path, study, number, f"sleep\x0060.{OURS}") == 130
    assert (tmp_path / "ranks").read_text() == ""
    assert switches_of(tmp_path)[-2:] == ["before", "after"]
    assert gone(mark)


def test_a_killed_study_is_switched_back_before_it_goes_on(tmp_path: Path) -> None:
    mark = f"rank{os.getpid()}"
    script = (
        f'if [ "$(tail -n 1 {tmp_path}/switches)" = before ] && [ ! -e {tmp_path}/go ];'
        f" then sleep 61.{OURS}; fi; echo 2.50013"
    )
    study = switched(tmp_path, mark=mark, script=script)
    assert killed(tmp_path, study, signal.SIGKILL, f"sleep\x0061.{OURS}") == -signal.SIGKILL
    assert switches_of(tmp_path)[-1] == "before"
    (tmp_path / "go").touch()
    paribus("run", study, "--out", "out", "--resume", cwd=tmp_path, code=0)
    every = switches_of(tmp_path)
    assert every == ["before", "after"] * (len(every) // 2)


def test_a_switch_in_progress_and_its_children_end_with_the_study(tmp_path: Path) -> None:
    before = f"setsid sleep 62.{OURS} & sleep 62.{OURS}"
    study = switched(tmp_path, before=before)
    for number in (signal.SIGINT, signal.SIGKILL):
        assert killed(tmp_path, study, number, f"sleep\x0062.{OURS}") in (130, -signal.SIGKILL)
        assert gone(f"sleep\x0062.{OURS}")
        subprocess.run(["rm", "-r", tmp_path / "out"], check=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_while_it_switches_back_is_no_way_around_it(
    tmp_path: Path, number: signal.Signals
) -> None:
    study = switched(tmp_path, after=f"sleep 0.3{OURS}")
    assert killed(tmp_path, study, number, f"sleep\x000.3{OURS}") == 130
    assert switches_of(tmp_path)[-1] == "after"


def test_a_daemon_that_a_switch_starts_stays_and_blocks_nothing(tmp_path: Path) -> None:
    before = f"sleep 63.{OURS} & echo $! > {tmp_path}/daemon"
    after = f"kill $(cat {tmp_path}/daemon)"
    at_b = f'[ "$(tail -n 1 {tmp_path}/switches)" = before ]'
    script = f"! {at_b} || kill -0 $(cat {tmp_path}/daemon) || exit 3; echo 2.50013"
    study = switched(tmp_path, before=before, after=after, script=script, plan="blocks = 8")
    paribus("run", study, "--out", "out", cwd=tmp_path, timeout_s=100, code=0)
    assert gone(f"sleep\x0063.{OURS}")


@pytest.mark.parametrize("after", ["", "exit 8"])
@pytest.mark.parametrize("unit", ["launch", "session"])
def test_a_switch_that_fails_half_way_is_switched_back_and_says_why(
    tmp_path: Path, unit: str, after: str
) -> None:
    before = "echo no such port >&2; exit 7"
    study = switched(tmp_path, before=before, after=after, plan=f'unit = "{unit}"')
    done = paribus("run", study, "--out", "out", cwd=tmp_path, code=2)
    assert "exit code 7: no such port" in done.stderr
    assert "arms.b.before" in done.stderr
    assert switches_of(tmp_path) == (["before"] if after else ["before", "after"])
    assert ("switching back failed too" in done.stderr) == bool(after)
    assert "no such port" in (tmp_path / "out" / "logs" / "switch-b.log").read_text()


def test_a_switch_whose_program_is_missing_names_it(tmp_path: Path) -> None:
    study = write_study(tmp_path, arms='[arms.a]\n[arms.b]\nbefore = "no-such-switch on"\n')
    done = paribus("run", study, "--out", "out", cwd=tmp_path, code=2)
    assert "arms.b.before: no-such-switch on: the program could not be started" in done.stderr
    assert "if the study file must change, run the study without --resume" in done.stderr


def test_the_journal_knows_what_is_still_switched(tmp_path: Path) -> None:
    study = load_study(switched(tmp_path, after="exit 5"))
    arm = study.arms[1]
    with Store(tmp_path, write=True) as store, Switches(study, Journal(store)) as switches:
        with pytest.raises(ParibusError, match="exit code 5"), switches.at([arm]):
            assert Journal(store).switched() == ["b"]
        assert Journal(store).switched() == ["b"]
        (tmp_path / "switch.sh").write_text(f"#!/bin/sh\necho $1 >> {tmp_path}/switches\n")
        switches.restore()
        assert Journal(store).switched() == []
    assert switches_of(tmp_path) == ["before", "after"]
