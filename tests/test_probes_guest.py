"""What the guests of machines/guest.sh taught: who sees what, and what differs between two."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from paribus.audit.classes import classify
from paribus.core import Facts
from paribus.probes import Archive, facts_of
from paribus.probes.archive import Unknown
from paribus.probes.files import from_tar
from paribus.probes.machine import load_facts

MACHINES = Path(__file__).parent / "machines"
UNSUPPORTED = {"unknown": "unsupported"}


@cache
def archive() -> Archive:
    return from_tar(MACHINES / "tcg-guest-numa-root.tar.gz")


@cache
def facts() -> Facts:
    return facts_of(archive())


@pytest.mark.parametrize("machine", ["tcg-guest-numa", "tcg-guest-moved", "kvm"])
def test_an_ordinary_user_sees_all_but_what_root_alone_may_read(machine: str) -> None:
    root, nobody = (
        facts_of(from_tar(MACHINES / f"{machine}-{u}.tar.gz")) for u in ("root", "nobody")
    )
    differ = {key for key in root.keys() | nobody.keys() if root.get(key) != nobody.get(key)}
    lasting = {key for key in differ if not key.startswith(("load.", "memory.slot"))}
    assert lasting == {"process.capabilities"} | ({"pci.acs"} if machine != "kvm" else set())


def test_another_guest_differs_in_what_its_command_line_changes_and_in_nothing_else() -> None:
    """The machine "moved" of guest.sh: what a study would learn of two arms like these."""
    one, other = facts(), facts_of(from_tar(MACHINES / "tcg-guest-moved-root.tar.gz"))
    differ = {
        key: other.get(key)
        for key in one.keys() | other.keys()
        if one.get(key) != other.get(key) and classify(key).kind in ("identical", "covaries")
    }
    assert differ.pop("pci.shape") != one["pci.shape"]
    assert [row.split()[:2] for row in differ.pop("numa.distance")[:2]] == [
        ["10", "11"],
        ["11", "10"],
    ]
    assert differ == {
        "cgroup.cpus": 3.0,
        "cgroup.memory_bytes": 5 << 30,
        "memory.slot_kinds": ["3 x 16 GB RAM 5600 MT/s 5600 MT/s ?"],
        "net.ethernet.1.irq_cpus": ["3 x 0-15"],
        "net.ethernet.1.numa_node": -1,
        "net.ethernet.1.pci.bridges": 1,
        "pci.acs": {"none": 3},
        "pci.nvme.0.numa_node": 5,
        "pci.nvme.1.numa_node": 5,
        "rdma.0.roce_tos": 96,
        "rdma.1.numa_node": -1,
        "rdma.1.pci.bridges": 1,
    }


# --- what the guest taught ------------------------------------------------------------------------


def rewritten(change: Callable[[str], str]) -> Facts:
    """Return the facts with change(path) for every file and link of the guest."""
    guest = archive()
    files = {change(path): text for path, text in guest.files.items()}
    links = {change(path): change(there) for path, there in guest.links.items()}
    return facts_of(replace(guest, files=files, links=links))


def test_a_switch_on_the_other_host_bridge_is_another_shape() -> None:
    """Even where the firmware names no NUMA node; the number of a host bridge is no matter."""
    shape = facts()["pci.shape"]
    assert rewritten(lambda path: path.replace("pci0000:80/", "pci0000:00/"))["pci.shape"] != shape
    assert rewritten(lambda path: path.replace("pci0000:80/", "pci0000:c0/"))["pci.shape"] == shape


def test_limits_of_disks_have_no_number_and_no_order() -> None:
    guest = archive()
    path = "/sys/fs/cgroup/study.slice/launch/io.max"
    for text in (
        "259:0 rbps=5 wbps=max\n8:16 rbps=1 wbps=9\n",
        "8:0 rbps=1 wbps=9\n8:1 rbps=5 wbps=max",
    ):
        seen = facts_of(replace(guest, files={**guest.files, path: text}))
        assert seen["cgroup.io_max"] == ["rbps=1 wbps=9", "rbps=5 wbps=max"]
    above = "/sys/fs/cgroup/study.slice/io.max"
    seen = facts_of(replace(guest, files={**guest.files, above: "8:0 riops=3"}))
    assert seen["cgroup.io_max"] == ["rbps=104857600 wbps=max riops=max wiops=5000", "riops=3"]
    seen = facts_of(replace(guest, files={**guest.files, path: ""}))
    assert seen["cgroup.io_max"] == []  # which is known: nothing is limited


def test_a_page_more_or_less_is_no_difference() -> None:
    """Seen between two boots of this guest: 49424944 and 49424948 kB, 4920249 and 4920212 files."""
    guest = archive()
    files = {
        "/proc/meminfo": guest.text("/proc/meminfo").replace("49424944 kB", "49424948 kB"),
        "/proc/sys/fs/file-max": "4920212\n",
    }
    assert files["/proc/meminfo"] != guest.text("/proc/meminfo")
    assert facts_of(replace(guest, files={**guest.files, **files})) == facts()
    less = guest.text("/proc/meminfo").replace("49424944 kB", "43133488 kB")  # a node's 6 GiB less
    seen = facts_of(replace(guest, files={**guest.files, "/proc/meminfo": less}))
    assert seen["memory.total_kib"] == 43_100_000


def test_load_around_a_launch_counts_quotas_of_groups_above(tmp_path: Path) -> None:
    """Read without a shell, it is what facts.sh reads."""
    guest = archive()
    for path, text in guest.files.items():
        if path.startswith(("/proc/", "/sys/fs/cgroup/")) and isinstance(text, str):
            (tmp_path / path[1:]).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path[1:]).write_text(text)
    seen = load_facts(tmp_path)
    for key in ("load.throttled_periods", "load.throttled_us", "load.busy_s"):
        assert seen[key] == facts()[key]


def test_a_speed_that_the_kernel_does_not_know_is_no_speed() -> None:
    guest = archive()
    card = guest.links["/sys/class/net/eth0/device"].rpartition("/")[2]
    for text in ("Unknown\n", "Unknown speed\n"):
        path = f"/sys/bus/pci/devices/{card}/current_link_speed"
        seen = facts_of(replace(guest, files={**guest.files, path: text}))
        assert seen["net.ethernet.0.pci.speed"] == UNSUPPORTED


@pytest.mark.parametrize("why", [Unknown.ABSENT, Unknown.UNSUPPORTED])
def test_an_rdma_port_without_device_and_without_interface_is_not_called_software(
    why: Unknown,
) -> None:
    guest = archive()
    files = {
        path: why if path.endswith("gid_attrs/ndevs/0") else text
        for path, text in guest.files.items()
    }
    seen = facts_of(replace(guest, files=files))
    assert seen["rdma.0.software"] == {"unknown": why.value}
    assert "rdma.0.net.name" not in seen
    own = {f"/sys/class/infiniband/rxe_eth{n}/device": "/sys/devices/pci0000:00" for n in range(2)}
    seen = facts_of(replace(guest, files=files, links={**guest.links, **own}))
    assert seen["rdma.0.software"] is False
