"""`paribus record`: what is written names nobody, and says what the machine said."""

from __future__ import annotations

import getpass
import json
import re
import socket
import sys
import tarfile
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

from paribus.__main__ import main
from paribus.probes import Archive, facts_of
from paribus.probes.files import from_tar
from paribus.probes.nvml import with_nvml
from paribus.probes.scrub import scrubbed

MACHINES = Path(__file__).parent / "machines"


def texts(path: Path) -> Iterator[tuple[str, str]]:
    with tarfile.open(path) as tar:
        for member in tar:
            content = tar.extractfile(member)
            yield member.name, (content.read() if content else b"").decode(errors="replace")


def test_record_and_show(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "here.tar.gz"
    assert main(["record", "--out", str(out)]) == 0
    reported = capsys.readouterr().out
    assert str(out) in reported
    assert "scrubbed" in reported
    assert main(["record", "--from", str(out), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["schema"] == "paribus.facts/1"
    assert shown["facts"] == facts_of(from_tar(out))
    assert main(["record", "--from", str(out)]) == 0
    assert re.search(r"^os\.release +\S+$", capsys.readouterr().out, re.MULTILINE)
    assert main(["record", "--out", str(out)]) == 2
    assert main(["record", "--from", str(tmp_path / "none.tar.gz")]) == 2
    assert main(["record", "--out", str(tmp_path / "no" / "such.tar.gz")]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_a_directory_without_facts_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.txt").write_text("x")
    for words in ((), ("--json",)):
        assert main(["record", "--from", str(tmp_path), *words]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith(f"paribus: {tmp_path}: holds no facts of a machine\n")
        assert err.count("\n") == 2


def test_nothing_in_a_recording_of_this_machine_names_it(tmp_path: Path) -> None:
    assert main(["record", "--out", str(tmp_path / "here.tar.gz")]) == 0
    whole = "".join(f"{name}\n{text}\n" for name, text in texts(tmp_path / "here.tar.gz"))
    secrets = {socket.getfqdn(), getpass.getuser()} - {"localhost", "root"}
    for path in ("/etc/machine-id", "/proc/sys/kernel/random/boot_id"):
        if Path(path).is_file():
            secrets.add(Path(path).read_text().strip())
    for address in Path("/sys/class/net").glob("*/address"):
        secrets |= {address.read_text().strip()} - {"00:00:00:00:00:00", ""}
    found = {secret for secret in secrets if len(secret) > 3 and secret in whole}
    assert found == set()
    assert not re.search(r"\b(?!00000000)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-", whole)


HOSTILE = {
    "/proc/cmdline": "root=UUID=3f2c9a54-0000-4a1b-9c3d-8e7f6a5b4c3d ip=10.1.2.3::10.1.2.1:n17:eth0"
    " nfsroot=10.1.2.9:/x console=ttyS0 host=n17.cluster.example",
    "/proc/self/mountinfo": "22 1 0:20 /alice / rw - ext4 /dev/disk/by-uuid/3f2c rw\n"
    "23 22 0:21 / /home/alice/work rw shared:1 - nfs4 10.1.2.9:/export/alice rw,addr=10.1.2.9\n"
    "24 22 0:22 / /secret/project rw - ext4 /dev/sdb rw\n",
    "/proc/self/cgroup": "0::/docker/" + "ab12" * 16 + "\n",
    "/proc/net/route": "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\n"
    "eth0\t00000000\t0102010A\t0003\t0\t0\t0\t00000000\n"
    "eth0\t0002010A\t00000000\t0001\t0\t0\t0\t00FFFFFF\n",
    "/sys/class/net/eth0/uevent": "INTERFACE=eth0\nMAC=de:ad:be:ef:00:01\nIFINDEX=2",
    "/sys/class/net/eth0/type": "1",
    "/sys/class/dmi/id/bios_version": "2.1.7.0",
    "/proc/driver/nvidia/gpus/0000:3b:00.0/information": "Model: H100\nGPU UUID: GPU-3f2c9a54-0000-"
    "4a1b-9c3d-8e7f6a5b4c3d\nVideo BIOS: 96.00.89.00.01\nSerial Number: 1654922006532\n",
}


def test_names_addresses_and_serials_are_taken_out_and_facts_stay() -> None:
    archive = Archive(
        HOSTILE,
        {
            "dmidecode": (0, "Memory Device\n\tSize: 64 GB\n\tSerial Number: 80CE01\n"),
            "ompi_info": (0, "config:user:alice\nconfig:host:n17\ncompiler:c:command:gcc"),
            "ethtool-i-eth0": (0, "driver: mlx5_core\nfirmware-version: 22.31.10.14"),
        },
        lists={
            "environment": ["HOME", "LD_LIBRARY_PATH=/home/alice/lib", "UCX_NET_DEVICES=n17:1"],
            "directories": ["working /home/alice/work/run7", "temporary /tmp"],
            "consumers": ["window 4", "3 alice's own", "1 secret/project"],
            "libraries": ["/home/alice/bin/solve", "/home/alice/lib/libcublas.so.12"],
            "real": ["/home/alice/bin/solve", "/home/alice/lib/libcublas.so.12.4.5"],
            "build_ids": ["-", "-"],
            "digests": ["/home/alice/bin/solve 9-1", "/home/alice/lib/libcublas.so.12 7-3"],
            "compiler": ["GCC: (GNU) 12.2.0", "GNU C17 12.2.0 -O3 -I/home/alice/include"],
        },
        host="n17.cluster.example",
    )
    clean = scrubbed(archive, {"alice", "n17.cluster.example"})
    whole = repr(clean)
    private = (
        *("alice", "n17", "10.1.2", "0102010A", "0002010A", "de:ad", "3f2c", "ab12ab12"),
        *("1654922006532", "80CE01", "secret/project", "HOME'", "export", "example"),
    )
    assert [word for word in private if word in whole] == []

    before, after = facts_of(archive), facts_of(clean)
    assert after["machine.bios_version"] == "2.1.7.0"
    assert after["gpu.0.vbios"] == "96.00.89.00.01"
    assert after["net.ethernet.0.firmware"] == "22.31.10.14"
    assert after["net.ethernet.0.name"] == "eth0"
    assert after["mpi.build.compiler"] == "gcc"
    assert after["layers.containers"] == ["docker"]
    for place in ("working", "temporary"):
        for key in (f"storage.{place}.type", f"storage.{place}.remote"):
            assert after[key] == before[key]
    assert after["storage.working.type"] == "nfs4"
    for key in ("program.digest", "lib.libcublas.so.digest", "program.compiler"):
        assert after[key] == before[key]
    assert after["program.flags"] == ["GNU C17 12.2.0 -O3 -I/home/user/include"]
    assert before["load.consumers"] == ["alice's own 75%", "secret/project 25%"]
    assert after["load.consumers"] == ["command 100%"]
    assert scrubbed(clean, set()) == clean


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("/nfs7/alice99/lib:/usr/lib", "/nfs7/node0/lib:/usr/lib"),
        ("/lustre/bob/lib", "/lustre/user/lib"),
        ("/scratch/bob/lib:/work/carol", "/scratch/user/lib:/work/user"),
        ("/opt/software/mpi/lib", "/opt/software/mpi/lib"),
    ],
)
def test_users_are_taken_out_of_search_paths(value: str, kept: str) -> None:
    archive = Archive({}, lists={"environment": [f"LD_LIBRARY_PATH={value}"]})
    clean = scrubbed(archive, {"alice99"})
    assert clean.lists["environment"] == [f"LD_LIBRARY_PATH={kept}"]


@pytest.mark.parametrize("path", sorted(MACHINES.glob("*.tar.gz")), ids=lambda path: path.name)
def test_the_recordings_of_this_repository_are_scrubbed(path: Path) -> None:
    archive = from_tar(path)
    assert archive.host == "node0"
    assert facts_of(scrubbed(archive, set())) == facts_of(archive)


# --- GPUs by NVML --------------------------------------------------------------------------------


class NvmlError(Exception):
    pass


def hand_made_nvml(**answers: object) -> types.ModuleType:
    """Return a module that answers as NVML's documentation says: no GPU is at hand here."""
    module = types.ModuleType("pynvml")

    def unsupported(*_: object) -> object:
        raise NvmlError("Not Supported")

    def __getattr__(name: str) -> object:  # noqa: N807 - of the module
        if name in answers:
            return lambda *_: answers[name]
        if name.startswith("nvml"):
            return unsupported
        raise AttributeError(name)

    module.__dict__.update({"NVMLError": NvmlError, "__getattr__": __getattr__})
    return module


def test_nvml_stands_in_for_nvidia_smi(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = types.SimpleNamespace(total=85520809984, used=555745280)
    module = hand_made_nvml(
        nvmlInit=None,
        nvmlShutdown=None,
        nvmlDeviceGetCount=1,
        nvmlDeviceGetHandleByIndex=object(),
        nvmlDeviceGetName=b"NVIDIA H100 80GB HBM3",
        nvmlDeviceGetMemoryInfo=memory,
        nvmlDeviceGetEccMode=(1, 1),
        nvmlDeviceGetComputeMode=3,
        nvmlDeviceGetPowerManagementLimit=700000,
        nvmlDeviceGetClockInfo=1755,
        nvmlDeviceGetRemappedRows=(1, 0, 0, 0),
        nvmlDeviceGetComputeRunningProcesses=[object(), object()],
        nvmlDeviceGetPciInfo=types.SimpleNamespace(busId="00000000:3B:00.0"),
    )
    monkeypatch.setitem(sys.modules, "pynvml", module)
    facts = facts_of(with_nvml(Archive({})))
    assert facts["gpu.count"] == 1
    assert facts["gpu.0.model"] == "NVIDIA H100 80GB HBM3"
    assert facts["gpu.0.memory"] == "81559 MiB"
    assert facts["gpu.0.ecc"] == "Enabled"
    assert facts["gpu.0.compute_mode"] == "Exclusive_Process"
    assert facts["gpu.0.power_limit"] == "700.00 W"
    assert facts["gpu.0.mig"] == {"unknown": "unsupported"}
    assert facts["gpu.0.now.memory_used"] == "530 MiB"
    assert facts["gpu.0.now.clock_sm"] == "1755 MHz"
    assert facts["gpu.0.now.processes"] == 2
    assert facts["gpu.0.now.remapped_rows"] == {
        "correctable": 1,
        "uncorrectable": 0,
        "pending": "No",
        "failure": "No",
    }
    assert facts["gpu.0.address"] == "0000:3b:00.0"
    kept = Archive({}, {"nvidia-smi": (0, "name\nother")})
    assert with_nvml(kept) is kept


@pytest.mark.parametrize("module", [None, hand_made_nvml()], ids=["no library", "no driver"])
def test_without_nvml_nothing_changes(
    monkeypatch: pytest.MonkeyPatch, module: types.ModuleType | None
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", module)
    assert facts_of(with_nvml(Archive({})))["gpu.count"] == 0
