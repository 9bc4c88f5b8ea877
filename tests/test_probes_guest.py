"""Recorded facts against the truth: what the command line and the set-up in machines/guest.sh
dictate of the guest, as root and as nobody.
"""

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
USERS = ("root", "nobody")
ABSENT, DENIED, UNSUPPORTED = ({"unknown": why} for why in ("absent", "denied", "unsupported"))


@cache
def archive(user: str) -> Archive:
    return from_tar(MACHINES / f"tcg-guest-numa-{user}.tar.gz")


@cache
def facts(user: str) -> Facts:
    return facts_of(archive(user))


both = pytest.mark.parametrize("user", USERS)


@both
def test_sockets_cores_and_threads(user: str) -> None:
    """-smp 16,sockets=2,cores=4,threads=2 -cpu max,vendor=GenuineIntel, isolcpus=15."""
    seen = facts(user)
    assert (seen["cpu.sockets"], seen["cpu.cores"], seen["cpu.count"]) == (2, 8, 16)
    assert (seen["cpu.threads_per_core"], seen["cpu.smt"], seen["cpu.smt_active"]) == (2, "on", 1)
    assert (seen["cpu.vendor"], seen["cpu.hypervisor"]) == ("GenuineIntel", "yes")
    assert seen["cpu.cache.l3_shared_by"] == 8  # the threads of a socket
    assert (seen["cpu.online"], seen["cpu.isolated"]) == ("0-15", 15)
    assert {"isolcpus=15", "transparent_hugepage=madvise"} <= set(seen["os.cmdline"])
    assert seen["memory.transparent_hugepage"] == "madvise"
    assert seen["cpu.governor"] == ABSENT  # an emulated processor has no frequency
    assert seen["layers.all"] == ["qemu"]


@both
def test_numa_nodes_and_their_distances(user: str) -> None:
    """-numa node for each of eight cores, -numa dist 12 within a socket and 32 across."""
    seen = facts(user)
    assert (seen["numa.nodes"], seen["numa.cpus"]) == (8, [2] * 8)
    assert seen["numa.distance"] == [
        " ".join(
            "10" if one == other else "12" if one // 4 == other // 4 else "32" for other in range(8)
        )
        for one in range(8)
    ]
    assert seen["numa.memory_balance"] == [1.0] * 8
    assert seen["memory.total_kib"] == 49_400_000  # 48 GiB without what the kernel keeps
    pages = [seen[f"memory.hugepages.{kib}kB"] for kib in (2048, 1048576)]
    assert pages == [32, 1]


def test_memory_modules_and_firmware() -> None:
    """-m 48G is a memory device for every 16 GiB; -smbios type=0, 1, 2 and 17."""
    for user in USERS:
        seen = facts(user)
        assert (seen["machine.vendor"], seen["machine.product"]) == ("QEMU", "NUMA guest")
        assert (seen["machine.sku"], seen["machine.family"]) == ("guest-numa", "TCG")
        assert (seen["machine.bios_vendor"], seen["machine.bios_date"]) == ("Paribus", "01/02/2026")
        assert (seen["machine.board"], seen["machine.board_version"]) == ("Board", 3)
    root = facts("root")
    assert (root["memory.slots"], root["memory.slots_filled"]) == (3, 3)
    assert root["memory.slot_kinds"] == ["3 x 16 GB RAM 4800 MT/s 4800 MT/s ?"]
    assert root["memory.slot_places"] == ["BANK DIMM_ 0", "BANK DIMM_ 1", "BANK DIMM_ 2"]
    assert root["memory.slot_ecc"] == "Multi-bit ECC"
    assert facts("nobody")["memory.slots"] == DENIED


@both
def test_devices_behind_the_switch(user: str) -> None:
    """Two NVMe and a NIC below a switch on node 4; a NIC on a root port; one without a bridge."""
    seen = facts(user)
    assert (seen["pci.nvme.count"], seen["storage.disk.count"]) == (2, 2)
    for n in range(2):
        assert seen[f"pci.nvme.{n}.pci.id"] == "1b36:0010 1af4:1100"
        assert (seen[f"pci.nvme.{n}.pci.bridges"], seen[f"pci.nvme.{n}.numa_node"]) == (3, 4)
        assert seen[f"pci.nvme.{n}.pci.path_width"] == 1  # of the switch, whose port has 16
        assert seen[f"storage.disk.{n}.rotational"] == 0
    cards = [
        tuple(
            seen[f"net.ethernet.{n}.{key}"]
            for key in ("driver", "pci.bridges", "numa_node", "speed")
        )
        for n in range(seen["net.ethernet.count"])
    ]
    assert cards == [
        ("e1000e", 1, -1, 1000),
        ("e1000e", 3, 4, 1000),
        ("virtio_net", 0, -1, UNSUPPORTED),
    ]
    assert seen["net.ethernet.2.pci.width"] == ABSENT  # it is on the root complex: no link


def test_access_control_of_the_port_above_the_switch() -> None:
    """setpci ECAP_ACS+6.w=1d there, nothing at the other root port; the switch has none of it."""
    assert facts("root")["pci.acs"] == {"SV RR CR UF": 1, "none": 1}
    assert facts("nobody")["pci.acs"] == DENIED


@both
def test_what_ethtool_says_of_emulated_cards(user: str) -> None:
    """e1000e has no channels, virtio_net no pause frames and no firmware; none has DCB."""
    seen = facts(user)
    assert (seen["net.ethernet.1.firmware"], seen["net.ethernet.2.firmware"]) == (
        "2.1-0",
        UNSUPPORTED,
    )
    assert {seen[f"net.ethernet.{n}.rings"]["RX"] for n in range(3)} == {256}
    assert seen["net.ethernet.1.channels"] == UNSUPPORTED
    assert seen["net.ethernet.2.channels"] == {"Combined": 1}
    assert seen["net.ethernet.1.pause"] == {"Autonegotiate": "on", "RX": "on", "TX": "on"}
    assert seen["net.ethernet.2.pause"] == UNSUPPORTED
    assert seen["net.ethernet.1.coalescing"]["rx-usecs"] == 3
    assert "tcp-segmentation-offload" in seen["net.ethernet.1.offloads"]


@both
def test_interfaces_of_other_kinds(user: str) -> None:
    seen = facts(user)
    assert (seen["net.bond.0.mode"], seen["net.bridge.0.stp_state"]) == ("balance-xor 2", 1)
    assert (seen["net.vlan.count"], seen["net.vlan.0.name"]) == (1, "eth2.7")
    assert (seen["net.veth.count"], seen["net.loopback.count"]) == (2, 1)


@both
def test_soft_roce(user: str) -> None:
    """rdma link add type rxe on both e1000e: their PCI devices are those of the cards."""
    seen = facts(user)
    assert seen["rdma.count"] == 2
    for n, (bridges, node) in enumerate(((1, -1), (3, 4))):
        port = {key.removeprefix(f"rdma.{n}."): value for key, value in seen.items()}
        assert (port["link_layer"], port["state"]) == ("Ethernet", "4: ACTIVE")
        assert (port["phys_state"], port["rate"]) == ("5: LinkUp", "2.5 Gb/sec (1X SDR)")
        # Link-local, and the IPv4 address in the form of an IPv6 one: two or more, all of them v2.
        assert set(port["gid_types"].values()) == {"RoCE v2"}
        assert len(port["gid_types"]) >= 2
        assert port["pkeys"] == ["0xffff"]
        assert port["software"] is True
        assert (port["pci.bridges"], port["numa_node"]) == (bridges, node)
        assert port["name"] == f"rxe_{port['net.name']}"
        assert port["firmware"] == UNSUPPORTED
        assert port["counter.out_of_seq_request"] == 0
        # rping over the first, and its type of service set: 8 messages and their answers at least.
        assert (port["counter.rcvd_pkts"] >= 16, port["roce_tos"] == 104) == (n == 0, n == 0)
    assert seen["limits.memlock"] == -1


@both
def test_limits_of_the_control_groups(user: str) -> None:
    """Version 2 alone; processors and processes limited above our own group, the rest in it."""
    seen = facts(user)
    assert (seen["cgroup.version"], seen["cgroup.path"]) == ("2", "/study.slice/launch")
    assert (seen["cgroup.cpus"], seen["cgroup.cpu_weight"]) == (4.0, 200)
    assert (seen["cgroup.memory_bytes"], seen["cgroup.memory_high_bytes"]) == (4 << 30, 3 << 30)
    assert (seen["cgroup.swap_bytes"], seen["cgroup.pids"]) == (0, 4096)
    assert (seen["cgroup.cpuset"], seen["cgroup.mems"]) == ("0-7", "0-3")
    assert (seen["process.cpus"], seen["process.mems"]) == ("0-7", "0-3")
    assert seen["cgroup.io_max"] == ["rbps=104857600 wbps=max riops=max wiops=5000"]
    assert seen["cgroup.cpu_shares"] == ABSENT  # there is no version 1 beside it
    # The group above was stopped while eight processors of ours were busy; our own file says 0.
    own = archive(user).text("/sys/fs/cgroup/study.slice/launch/cpu.stat")
    assert "nr_throttled 0" in own.split("\n")
    assert seen["load.throttled_periods"] >= 1
    assert seen["load.throttled_us"] >= 100_000


def test_an_ordinary_user_sees_all_but_what_root_alone_may_read() -> None:
    root, nobody = facts("root"), facts("nobody")
    differ = {key for key in root.keys() | nobody.keys() if root.get(key) != nobody.get(key)}
    lasting = {key for key in differ if not key.startswith(("load.", "memory.slot"))}
    assert lasting == {"process.capabilities", "pci.acs"}


def test_another_guest_differs_in_what_its_command_line_changes_and_in_nothing_else() -> None:
    """The machine "moved" of guest.sh: what a study would be told of two arms like these."""
    one, other = facts("root"), facts_of(from_tar(MACHINES / "tcg-guest-moved-root.tar.gz"))
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
    guest = archive("root")
    files = {change(path): text for path, text in guest.files.items()}
    links = {change(path): change(there) for path, there in guest.links.items()}
    return facts_of(replace(guest, files=files, links=links))


def test_a_switch_on_the_other_host_bridge_is_another_shape() -> None:
    """Even where the firmware names no NUMA node; the number of a host bridge is no matter."""
    shape = facts("root")["pci.shape"]
    assert rewritten(lambda path: path.replace("pci0000:80/", "pci0000:00/"))["pci.shape"] != shape
    assert rewritten(lambda path: path.replace("pci0000:80/", "pci0000:c0/"))["pci.shape"] == shape


def test_limits_of_disks_have_no_number_and_no_order() -> None:
    guest = archive("root")
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
    guest = archive("root")
    files = {
        "/proc/meminfo": guest.text("/proc/meminfo").replace("49424944 kB", "49424948 kB"),
        "/proc/sys/fs/file-max": "4920212\n",
    }
    assert files["/proc/meminfo"] != guest.text("/proc/meminfo")
    assert facts_of(replace(guest, files={**guest.files, **files})) == facts("root")
    less = guest.text("/proc/meminfo").replace("49424944 kB", "43133488 kB")  # a node's 6 GiB less
    seen = facts_of(replace(guest, files={**guest.files, "/proc/meminfo": less}))
    assert seen["memory.total_kib"] == 43_100_000


def test_load_around_a_launch_counts_quotas_of_groups_above(tmp_path: Path) -> None:
    """Read without a shell, it is what facts.sh reads."""
    guest = archive("root")
    for path, text in guest.files.items():
        if path.startswith(("/proc/", "/sys/fs/cgroup/")) and isinstance(text, str):
            (tmp_path / path[1:]).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path[1:]).write_text(text)
    seen = load_facts(tmp_path)
    for key in ("load.throttled_periods", "load.throttled_us", "load.busy_s"):
        assert seen[key] == facts("root")[key]


def test_a_speed_that_the_kernel_does_not_know_is_no_speed() -> None:
    guest = archive("root")
    card = guest.links["/sys/class/net/eth0/device"].rpartition("/")[2]
    for text in ("Unknown\n", "Unknown speed\n"):
        path = f"/sys/bus/pci/devices/{card}/current_link_speed"
        seen = facts_of(replace(guest, files={**guest.files, path: text}))
        assert seen["net.ethernet.0.pci.speed"] == UNSUPPORTED


@pytest.mark.parametrize("why", [Unknown.ABSENT, Unknown.UNSUPPORTED])
def test_an_rdma_port_without_device_and_without_interface_is_not_called_software(
    why: Unknown,
) -> None:
    guest = archive("root")
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
