"""The doctor on nodes with GPUs: what nvidia-smi printed on an H100, and what differs from it."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from mpis import any_mpi
from paribus.doctor import gpu, trial
from paribus.doctor.fitness import Finding, rows, settings_of
from paribus.launch.gpu_toolchain import gpu_compiler
from processes import executable
from test_doctor import by_name

TOOLS = Path(__file__).parent / "gpu" / "stand_in"
H100 = Path(__file__).parent / "gpu" / "h100" / "smi-q.txt"
HEAD = "GPU 00000000:00:06.0"


def changed(text: str, path: str, value: str) -> str:
    """Return what nvidia-smi printed with another value in the line of `path`."""
    at = 0
    for depth, name in enumerate(path.split("/"), 1):
        line = re.compile(rf"^{' ' * 4 * depth}{re.escape(name)} *(: .*)?$", re.M).search(text, at)
        assert line, path
        at = line.start()
    return f"{text[:at]}{line[0].partition(' : ')[0]} : {value}{text[line.end() :]}"


def two(path: str = "", value: str = "") -> gpu.Cards:
    """Return two cards, of which the second says otherwise in one line."""
    head, _, card = H100.read_text().partition(HEAD)
    other = changed(card, path, value) if path else card
    return gpu.read(f"{head}{HEAD}{card}{HEAD.replace('06', '07')}{other}")


def test_the_h100_that_was_measured_on_is_fit() -> None:
    found = by_name([*gpu.graded(gpu.read(H100.read_text())), *gpu.graded(two(), busy=True)])
    assert {one.grade for name, one in found.items() if name != "GPU"} == {"good"}
    assert found["GPU"] == Finding("GPU", "unknown", "not in nvidia-smi -q: fabric")
    assert found["GPU: power limit"].found == "700.00 W of 700.00 W"


@pytest.mark.parametrize("row", rows("gpu"), ids=lambda row: row["name"])
def test_every_row_names_the_card_that_differs(row: dict[str, str]) -> None:
    said = gpu.read(H100.read_text())["0000:00:06.0"]
    path = next(path for path in row["query"] if path in said)
    odd = "1" if "least" in row else "Odd"
    found = by_name(gpu.graded(two(path, odd), busy=bool(row.get("busy"))))
    one = found[f"GPU: {row['name']}"]
    assert (one.grade, one.means, one.fix) == (row["otherwise"], row["means"], row["fix"])
    assert one.found.startswith(odd) or f": {odd}" in one.found
    assert one.found.endswith("(GPU 1)")


def test_what_only_root_may_read_is_unknown() -> None:
    found = by_name(gpu.graded(gpu.read(changed(H100.read_text(), "ECC Mode/Current", "[N/A]"))))
    assert found["GPU"].found == "not in nvidia-smi -q: ECC, fabric"
    text = changed(H100.read_text(), "PCI/Replays Since Reset", "Insufficient Permissions")
    assert by_name(gpu.graded(gpu.read(text)))["GPU: PCIe replays"].grade == "good"


def on_the_bus(root: Path, *devices: tuple[str, str]) -> None:
    """Make devices of these vendors and classes, the first at 0000:00:06.0."""
    for number, (vendor, kind) in enumerate(devices, 6):
        device = root / f"sys/bus/pci/devices/0000:00:{number:02x}.0"
        device.mkdir(parents=True)
        (device / "vendor").write_text(f"{vendor}\n")
        (device / "class").write_text(f"{kind}\n")


def test_gpus_of_amd_are_said_to_be_there(tmp_path: Path) -> None:
    """A Radeon, its sound, an MI250X, an MI300X; of each a class of its own."""
    kinds = ("0x030000", "0x040300", "0x038000", "0x120000")
    on_the_bus(tmp_path, *(("0x1002", kind) for kind in kinds))
    (found,) = gpu.unseen({}, tmp_path)
    assert (found.name, found.grade) == ("GPU: AMD", "unknown")
    assert found.found == "3 GPUs of AMD, not examined: only NVIDIA's are"


def test_a_gpu_that_nvidia_smi_lacks_is_missed(tmp_path: Path) -> None:
    on_the_bus(tmp_path, *[("0x10de", "0x030200")] * 2)
    (found,) = gpu.unseen(gpu.read(H100.read_text()), tmp_path)
    assert found.found == "missing in nvidia-smi -q: 1 of 2 GPUs"
    assert gpu.unseen(two(), tmp_path) == []


def test_gpus_without_a_driver_that_works_are_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A GPU of NVIDIA, its sound, and a BMC's; the library is newer than the module."""
    on_the_bus(tmp_path, ("0x10de", "0x030200"), ("0x10de", "0x040300"), ("0x1a03", "0x030000"))
    said = "Failed to initialize NVML: Driver/library version mismatch"
    executable(tmp_path / "nvidia-smi", f"echo '{said}'; exit 18")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert gpu.cards() == {}
    (found,) = gpu.unseen({}, tmp_path)
    assert (found.grade, found.found) == ("unknown", f"1 GPU; nvidia-smi: {said}")
    assert found.fix
    assert gpu.unseen({}, tmp_path / "no") == []


def test_older_drivers_name_lines_otherwise() -> None:
    text = H100.read_text().replace("Clocks Event Reasons\n", "Clocks Throttle Reasons\n")
    found = by_name(gpu.graded(gpu.read(text)))
    assert found["GPU: power brake"].grade == "good"
    hot = changed(text, "Clocks Throttle Reasons/HW Slowdown/HW Thermal Slowdown", "Active")
    said = by_name(gpu.graded(gpu.read(hot)))["GPU: thermal throttling"]
    assert said.found == "HW Thermal Slowdown: Active; SW Thermal Slowdown: Not Active"


def test_who_else_computes_is_poor() -> None:
    others = "    Processes\n" + "".join(
        f"        GPU instance ID : N/A\n        Process ID                        : {pid}\n"
        "            Type                          : C\n"
        for pid in (4711, 4712)
    )
    text = re.sub(r"    Processes +: None\n", others, H100.read_text())
    found = by_name(gpu.around(gpu.read(text)))["GPU: other processes"]
    assert (found.grade, found.found) == ("poor", "2 processes (4711, 4712)")
    none = by_name(gpu.around(gpu.read(H100.read_text())))["GPU: other processes"]
    assert none.grade == "good"


def test_cores_beside_the_card(tmp_path: Path) -> None:
    device = tmp_path / "sys/bus/pci/devices/0000:00:06.0"
    device.mkdir(parents=True)
    (device / "numa_node").write_text("1\n")
    several = gpu.read(H100.read_text())
    first = min(os.sched_getaffinity(0))
    for local, grade in ((f"{first}-{first + 3}", "good"), (f"{first + 500}", "fair")):
        (device / "local_cpulist").write_text(f"{local}\n")
        assert by_name(gpu.around(several, tmp_path))["GPU: cores"].grade == grade


def test_errors_on_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    errors = (
        "\t Link 0: Replay Errors: 0\n\t Link 0: Recovery Errors: 2\n\t Link 1: CRC Errors: 1\n"
    )
    (tmp_path / "nvlink").write_text(f"GPU 0: NVIDIA H100 (UUID: GPU-0)\n{errors}")
    log = "[ 7.1] NVRM: Xid (PCI:0000:00:06): 79, pid=1, GPU has fallen off the bus."
    executable(tmp_path / "dmesg", f"echo '{log}'")
    (tmp_path / "sys/class/infiniband").mkdir(parents=True)
    monkeypatch.setenv("PATH", f"{tmp_path}:{TOOLS}:{os.environ['PATH']}")
    monkeypatch.setenv("PARIBUS_SHIM_NVLINK", str(tmp_path / "nvlink"))
    found = by_name(gpu.around({}, tmp_path))
    assert found["GPU: NVLink errors"].found == "3 since they were reset"
    assert found["GPU: Xid"].found == "79 of 0000:00:06"
    assert found["GPU: peermem"].grade == "fair"
    (tmp_path / "dmesg").write_text("#!/bin/sh\necho 'read kernel buffer failed' >&2; exit 1\n")
    (tmp_path / "nvlink").write_text("")
    found = by_name(gpu.around({}, tmp_path))
    assert found["GPU: NVLink errors"].grade == found["GPU: Xid"].grade == "unknown"


def test_a_node_s_facts_are_graded_by_the_same_rows() -> None:
    facts = {
        "gpu.0.persistence": "Enabled",
        "gpu.1.persistence": "Disabled",
        "gpu.1.ecc": "Enabled",
    }
    found = [one for one in settings_of(facts) if one.grade != "good"]
    assert [(one.name, one.grade) for one in found] == [("GPU: persistence", "poor")]


@pytest.mark.slow
def test_launches_show_resolution_and_the_link_under_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the stand-in's GPU and nvidia-smi, whose card is idle but for these launches."""
    mpi = any_mpi()
    for key, value in {
        "PATH": f"{TOOLS}:{os.environ['PATH']}",
        "PARIBUS_CACHE": str(tmp_path),
        "PARIBUS_SHIM_GPUS": "1",
        "PARIBUS_SHIM_SMI": str(H100),
        "PARIBUS_SHIM_IDLE": "yes",
    }.items():
        monkeypatch.setenv(key, value)
    gpu_compiler.cache_clear()
    monkeypatch.setattr(trial, "GPU_LAUNCHES_S", 15.0)
    monkeypatch.setattr(trial, "LEAST_PAIRS", 1)
    (one,) = trial.GPU_TRIALS
    small = replace(one, parameters={**one.parameters, "bytes": [4096]})
    monkeypatch.setattr(trial, "GPU_TRIALS", (small,))
    idle = by_name(gpu.graded(gpu.cards(), busy=True))
    assert idle["GPU: PCIe generation"].found == "1 of 5"
    found, resolved = trial.of_gpus(lambda _: None, str(Path(mpi.mpicxx).parent.parent))
    gpu_compiler.cache_clear()
    assert by_name(found)["GPU: PCIe generation"].found == "5 of 5"
    assert 0 < resolved["gpu_copy"] < 10
