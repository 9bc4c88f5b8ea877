"""GPUs and BMCs that say how much energy a launch took: on this machine, and on hosts.

There is neither here. A library stands for NVML; the BMC is OpenIPMI's simulator with a module that
knows DCMI's command, and it is asked by the real ipmitool.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from emulated import simulated
from paribus.core import Command, Completed
from paribus.hosts.reached import Host
from paribus.hosts.remote import HostStation
from paribus.launch.local import LocalStation, mean_power
from paribus.probes import energy
from paribus.probes.archive import Archive
from paribus.probes.energy import energy_facts, joules, summed
from paribus.probes.gpu_counters import gpu_counters
from paribus.probes.load import used_gpus
from processes import executable, ran

SOURCES = Path(__file__).with_name("energy")
SECONDS = 6.2
"""Of a launch for which a BMC is asked: 5 s, and what a clock of whole seconds loses."""


def compiled(source: Path, into: Path) -> Path:
    subprocess.run(["cc", "-shared", "-fPIC", "-o", into, source], check=True)
    return into


def executed(folder: Path, script: str, *, host: bool, **env: str) -> Completed:
    """Return how a shell's script ended, on a host reached by a shell, or on this machine."""
    command = Command(("/bin/sh", "-c", script))
    words = ("env", *(f"{key}={value}" for key, value in env.items()), "/bin/sh")
    out, err = str(folder / "out"), str(folder / "err")
    with LocalStation() as local:
        if not host:
            scratch = f"{local.scratch}/a"
            return local.run(command, stdout=out, stderr=err, timeout_s=60.0, scratch=scratch)
        with HostStation([Host("a", words)], local) as station:
            scratch = f"{station.scratch}/a"
            return station.run(command, stdout=out, stderr=err, timeout_s=60.0, scratch=scratch)


# --- GPUs --------------------------------------------------------------------------------------


@pytest.fixture
def gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The variables with which a library stands for NVML; two GPUs have counted 5 J and 7 J."""
    compiled(SOURCES / "nvml.c", tmp_path / "libnvidia-ml.so.1")
    (tmp_path / "counters").write_text("5000 7000\n")
    (tmp_path / "nvidiactl").touch()
    monkeypatch.setattr(energy, "GPUS", str(tmp_path / "nvidiactl"))
    return {"LD_LIBRARY_PATH": str(tmp_path), "NVML_COUNTERS": str(tmp_path / "counters")}


def test_a_host_with_gpus_says_what_they_took(tmp_path: Path, gpus: dict[str, str]) -> None:
    grow = f"echo 6500 7250 >{tmp_path}/counters"
    done = executed(tmp_path, grow, host=True, **gpus)
    assert done.energy_j["nvml"] == pytest.approx(1.75)
    unknown = executed(tmp_path, f"echo 9000 - >{tmp_path}/counters", host=True, **gpus)
    assert "nvml" not in unknown.energy_j, "one of them does not count"
    (tmp_path / "counters").write_text("9000 9000")
    anew = executed(tmp_path, f"echo 1 9000 >{tmp_path}/counters", host=True, **gpus)
    assert "nvml" not in anew.energy_j, "the driver was loaded anew"


def test_this_machine_says_what_its_gpus_took(tmp_path: Path, gpus: dict[str, str]) -> None:
    """In a process of its own: where libraries are is read when a process begins."""
    script = """\
import sys; from pathlib import Path; from paribus.probes import energy
energy.GPUS = sys.argv[2]; sys.path.insert(0, sys.argv[3])
from test_energy_sources import executed
folder = Path(sys.argv[1]); grow = f"echo 5000 7900 >{folder}/counters"
print(executed(folder, grow, host=False).energy_j["nvml"])"""
    argv = [sys.executable, "-c", script, str(tmp_path), energy.GPUS, str(Path(__file__).parent)]
    env = {**os.environ, **gpus}
    done = ran(argv, env=env)
    assert done.stdout.strip() == "0.9", done.stderr


@pytest.mark.parametrize("host", [True, False])
def test_the_gate_hears_of_a_launch_s_gpus(
    tmp_path: Path, gpus: dict[str, str], host: bool
) -> None:
    """Heat, the power brake and other processes put it outside; the power cap does not."""
    state = tmp_path / "state"
    state.write_text("power 100 heat 100 brake 0 clock 345\n")
    after = "power 9000000000 heat 400000100 brake 0 clock 345 pid 7 used 97"
    script = """\
import sys; from pathlib import Path; from paribus.probes import energy
energy.GPUS = sys.argv[2]; sys.path.insert(0, sys.argv[3])
from test_energy_sources import executed
from paribus.audit.gate import gate
from paribus.probes.load import during
folder = Path(sys.argv[1]); change = f"sleep 0.1; echo {sys.argv[4]} >{folder}/state"
done = executed(folder, change, host=sys.argv[5] == "host", **eval(sys.argv[6]))
before, then = done.load
print(*gate(before, then, {}, 1.0), sep="\\n")
own = {"kernel.gpu.0.name": "H100", "kernel.gpu.0.address": "0000:1b:00.0"}
print(len([one for one in gate(before, then, own, 1.0) if "GPU-1" in one]))
print(len([one for one in gate(before, then, own, 1.0) if "GPU-0" in one]))
print({k: v for k, v in during(before, then).items() if "GPU-0" in k})"""
    env = {**gpus, "NVML_STATE": str(state)}
    argv = [sys.executable, "-c", script, str(tmp_path), energy.GPUS, str(Path(__file__).parent)]
    argv += [after, "host" if host else "here", str(env if host else {})]
    full = {**os.environ, **env}
    done = ran(argv, env=full)
    *reasons, mine, other, facts = done.stdout.strip().split("\n")
    assert (mine, other) == ("2", "0"), "the launch was on the second GPU"
    slowed = "had its clock lowered 40 % of the time by the heat of its memory or chip"
    used = "other processes used 97 % of"
    assert sorted(one for one in reasons if "GPU" in one) == [
        *(f"GPU-{n} {slowed}" for n in (0, 1)),
        *(f"{used} GPU-{n}" for n in (0, 1)),
    ], done.stderr
    assert eval(facts) == {
        "load.during.gpu.GPU-0.throttled_power_ns": 8999999900.0,
        "load.during.gpu.GPU-0.throttled_heat_ns": 4e8,
        "load.during.gpu.GPU-0.throttled_power_brake_ns": 0.0,
        "load.during.gpu.GPU-0.others_percent": 97,
        "load.during.gpu.GPU-0.clock_least_mhz": 345,
    }


@pytest.mark.parametrize(
    ("launch", "gpus"),
    [
        ({"kernel.gpu.0.address": "0000:1b:00.0"}, "b"),
        ({f"kernel.gpu.{n}.address": f"0000:1{x}:00.0" for n, x in enumerate("ab")}, "ab"),
        ({"kernel.gpu.0.address": "0000:99:00.0"}, "abc"),  # of a driver's other view
        ({"env.CUDA_VISIBLE_DEVICES": "GPU-bbbb-2"}, "b"),
        ({"env.CUDA_VISIBLE_DEVICES": "GPU-a, GPU-c"}, "ac"),
        ({"env.CUDA_VISIBLE_DEVICES": "MIG-GPU-cccc-3/1/0"}, "c"),
        ({"env.CUDA_VISIBLE_DEVICES": "GPU-"}, "abc"),
        ({"env.CUDA_VISIBLE_DEVICES": "GPU-b,1"}, "abc"),
        ({"env.CUDA_VISIBLE_DEVICES": "1"}, "abc"),
        ({"env.CUDA_VISIBLE_DEVICES": "MIG-1f2e"}, "abc"),
        ({"env.CUDA_VISIBLE_DEVICES": ""}, "abc"),
        ({"kernel.gpu.0.address": "0000:1a:00.0", "env.CUDA_VISIBLE_DEVICES": "GPU-b"}, "a"),
        ({}, "abc"),
    ],
)
def test_the_gpus_of_a_launch(launch: dict[str, str], gpus: str) -> None:
    """By what our kernels say, else by UUIDs; all where that is not known."""
    uuids = {"a": "GPU-aaaa-1", "b": "GPU-bbbb-2", "c": "GPU-cccc-3"}
    counted = {f"load.gpu.{uuid}.address": f"0000:1{x}:00.0" for x, uuid in uuids.items()}
    assert used_gpus(counted, launch) == {uuids[x] for x in gpus}
    without = {f"load.gpu.{uuid}.throttled_heat_ns": 0 for uuid in uuids.values()}
    asked = "env.CUDA_VISIBLE_DEVICES" in launch and "kernel.gpu.0.address" not in launch
    assert used_gpus(without, launch) == {uuids[x] for x in (gpus if asked else "abc")}


def test_without_a_driver_nothing_is_said() -> None:
    if Path(energy.GPUS).exists():
        pytest.skip("this machine has GPUs")
    assert gpu_counters() == {}


# --- the BMC -----------------------------------------------------------------------------------

ASKED = "-I lanplus -p {port} -H 127.0.0.1 -U paribus -P ipmi-secret -C 3"


@contextmanager
def bmc(folder: Path) -> Iterator[str]:
    """Start a BMC whose power is that of folder/power; yields a PATH with an ipmitool for it."""
    if shutil.which("ipmi_sim"):
        compiled(SOURCES / "dcmi.c", folder / "dcmi.so")
    (folder / "bin").mkdir()
    (folder / "power").write_text("90 90 90 90 1000 1")
    with simulated(folder, f'loadlib "{folder}/dcmi.so" "{folder}/power"') as port:
        asked = ASKED.format(port=port)
        tool = executable(
            folder / "bin" / "ipmitool", f'exec {shutil.which("ipmitool")} {asked} "$@"'
        )
        deadline = time.monotonic() + 20
        ask = [str(tool), "dcmi", "power", "reading"]
        while subprocess.run(ask, capture_output=True, check=False).returncode:
            assert time.monotonic() < deadline, "the simulator does not come up"
        yield f"{folder}/bin:{os.environ['PATH']}"


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(energy, "BMC", str(tmp_path / "power"))
    with bmc(tmp_path) as found:
        monkeypatch.setenv("PATH", found)
        yield found


def test_the_longest_mean_within_a_launch_is_asked_for(tmp_path: Path, path: str) -> None:
    """Or that of the BMC's own period, of which it says how long it is."""
    (tmp_path / "power").write_text("254 67 370 251 1000 1")
    spans = {4.0: None, 5.0: 5, 14.9: 5, 100.0: 60, 4000.0: 3600}
    for wall_s, span in spans.items():
        facts = mean_power(wall_s)
        assert facts.get("load.energy.ipmi.s") == span
        assert joules({}, facts, wall_s) == ({"ipmi": 251 * wall_s} if span else {})
    (tmp_path / "power").write_text("254 67 370 240 30000 0")
    facts = mean_power(60.0)
    assert (facts["load.energy.ipmi.w"], facts["load.energy.ipmi.s"]) == (240, 30)
    assert joules({}, facts, 60.0) == {"ipmi": 240 * 60.0}
    assert joules({}, facts, 100.0) == {}, "30 s say little of 100 s"
    assert joules({}, facts, 20.0) == {}, "30 s had more in them"
    (tmp_path / "power").write_text("no power meter")
    assert mean_power(60.0) == {}


@pytest.mark.slow
@pytest.mark.parametrize("host", [True, False])
def test_a_launch_has_the_mean_power_of_its_machine(tmp_path: Path, path: str, host: bool) -> None:
    later = f"echo 300 90 310 280 1000 1 >{tmp_path}/power; sleep {SECONDS}"
    done = executed(tmp_path, later, host=host, PATH=path)
    assert done.energy_j["ipmi"] == pytest.approx(280 * done.wall_s)
    assert "ipmi" not in executed(tmp_path, "true", host=host, PATH=path).energy_j


# As others quote ipmitool: of BMCs that do not measure, and that measure over a second.
OFF = """\
    Instantaneous power reading:                   235 Watts
    Minimum during sampling period:                235 Watts
    Maximum during sampling period:                235 Watts
    Average power reading over sample period:      235 Watts
    IPMI timestamp:                           Thu Jan  1 00:00:00 1970
    Sampling period:                          00000000 Seconds.
    Power reading state is:                   deactivated
"""
SECOND = """\
    Instantaneous power reading:                    50 Watts
    Minimum during sampling period:                  6 Watts
    Maximum during sampling period:                304 Watts
    Average power reading over sample period:       49 Watts
    IPMI timestamp:                           Thu Feb 15 08:36:01 2024
    Sampling period:                          00000001 Seconds.
    Power reading state is:                   activated
"""


@pytest.mark.parametrize(("said", "known"), [(OFF, {}), (SECOND, {"w": 49, "s": 1}), ("x", {})])
def test_what_a_bmc_says_that_does_not_help(said: str, known: dict[str, int]) -> None:
    """OFF: openbmc-test-automation; SECOND: a documentation of tools for IPMI."""
    facts = energy_facts(Archive({"/ipmi/power": said, "/ipmi/span": ""}))
    assert facts == {f"load.energy.ipmi.{key}": value for key, value in known.items()}
    assert joules({}, facts, 60.0) == {}


def test_sources_are_summed_where_all_machines_have_them() -> None:
    both = {"x": {"rapl": 1.0, "nvml": 2.0}, "y": {"rapl": 3.0}}
    assert summed(both) == {"rapl": 4.0}  # type: ignore[arg-type]
