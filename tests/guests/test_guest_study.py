"""A study on two guests that its commands start and end, from the command line to the report."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from guests.started import Guests
from paribus.core import MachineError
from paribus.hosts import guests as waiting
from paribus.launch.stations import stations
from paribus.launch.unswitched import switches_of
from paribus.studyfile.load import load_study
from studies import paribus

pytestmark = [pytest.mark.guests, pytest.mark.timeout(2400)]

STUDY = """\
question = "What do emulated guests cost?"
factor   = "virtualisation"
# An emulated machine is another one: other processors, less memory, the limits of its own init.
explains = ["cpu.", "limits.", "memory.", "process.cpus", "storage.", "rank.affinity",
    "hypervisor.os.pid_max", # of a pocket host, which has its own
    "process.nice"] # of these tests, which a shared machine may run with less priority

[arms.physical]
hosts = "pocket:2"

[arms.virtual]
hosts       = "vm[1-2]"
hypervisors = "hyper1"
ssh         = {{ config = "{rack}/ssh_config", known_hosts = "{rack}/known_hosts" }}
network     = "10.79.0.0/24"
before      = {{ on = "hyper1", run = "sh {rack}/power on" }}
after       = {{ on = "hyper1", run = "sh {rack}/power off" }}

[[benchmarks]]
name    = "latency"
bytes   = ["8 B"]
samples = 20

[plan]
unit     = "session"
launches = 1
blocks   = 8
seed     = {seed}
"""

SEED = 16
"""An order of sessions with four switches to the guests, not eight: each takes minutes."""


def write(folder: Path, rack: Path) -> Path:
    path = folder / "guests.toml"
    path.write_text(STUDY.format(rack=rack, seed=SEED))
    return path


def test_a_study_of_guests_and_their_hypervisor(tmp_path: Path) -> None:
    if not shutil.which("mpicxx"):
        pytest.skip("no mpicxx on the PATH: guests see the MPI of this machine, in /usr")
    with Guests(tmp_path / "rack", 2, "--off") as rack:
        study = write(tmp_path, rack.folder)
        done = paribus("run", study, "--out", "out", "--json", cwd=tmp_path, timeout_s=2300, code=0)
        off = (tmp_path / "out" / "logs" / "switch-virtual.log").read_text().splitlines()[-1]
        assert off == "off"
    (one,) = json.loads(done.stdout)["headlines"]
    assert one["arm"] == "virtual"
    assert one["arm_value"]["median"] > one["reference_value"]["median"]
    audit = paribus("audit", tmp_path / "out", "--json", cwd=tmp_path)
    facts = json.loads(audit.stdout)["facts"]["virtual"]
    assert set(facts) == {"vm1", "vm2"}
    here = Path("/proc/sys/kernel/osrelease").read_text().strip()
    for guest in facts.values():
        assert guest["cpu.hypervisor"] == "yes"
        assert guest["layers.machine"]
        assert guest["os.release"] != here
        assert guest["hypervisor.os.release"] == here
        assert guest["hypervisor.memory.ksm"] in (0, 1)
    assert "emulated guests cost" in (tmp_path / "out" / "report.html").read_text()


def test_a_guest_without_network_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Something accepts connections for it, as a hypervisor does, and nothing comes back."""
    monkeypatch.setattr(waiting, "BACK_S", 1.0)
    with Guests(tmp_path / "rack", 2, "--off", "--link", "none") as rack:
        study = load_study(write(tmp_path, rack.folder))
        with (
            stations(study) as opened,
            switches_of(study, stations=opened) as switches,
            pytest.raises(MachineError) as error,
        ):
            switches.apply(study.arms[1])
    said = str(error.value)
    assert "vm1 does not answer 1 s after `before`: no ssh server answers: Connection timed" in said
    assert "see on its console whether it starts and has its network" in error.value.fix
