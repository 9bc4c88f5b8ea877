"""Other people's machines: what the probes read of hwloc's recordings agrees with hwloc's answer.

tests/machines/hwloc, written by tests/machines/from_hwloc.py: source and licence are there.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from archives import unpack
from paribus.probes import Archive, facts_of, unknown
from paribus.probes.files import from_root, from_tar, to_tar
from paribus.probes.machine import cores, shares, siblings

HERE = Path(__file__).parent / "machines" / "hwloc"
EXPECTED: dict[str, dict[str, Any]] = json.loads((HERE / "expected.json").read_text())
QUANTITIES = ("threads", "cores", "sockets", "numa", "pci")

# hwloc answers for the part to which a control group is bound; facts are of the whole machine,
# by the recording's name: threads, cores, sockets, NUMA nodes.
WHOLE = {
    "16amd64-4n4c-cgroup-distance-merge": (16, 16, 4, 4),
    "32amd64-4s2n4c-cgroup2": (32, 32, 4, 8),
}
# hwloc reads masks. Those of cpu 3 were made up to test that hwloc drops a socket that contradicts
# another; the lists, which we read, were left as they were, of four sockets.
CONTRADICTED = {("40intel64-4n10c+pci-conflicts", "sockets"): 4}
# Kernels before 2.6.25 have masks and no lists, the made-up ones have what their test needs.
UNLISTED = {
    *("16em64t-4s2c2t", "2i386-2c-nohugepage", "8ia64-2n2s2c", "96em64t-4no4pa3ca2co"),
    *("fakeheterocpunuma", "fakememinitiators-1np2c+1npp+gi"),
}
UNKNOWN = {
    "threads": UNLISTED - {"fakememinitiators-1np2c+1npp+gi"} | {"16ia64-8n2s", "256ppc-8n8s4t"},
    "cores": UNLISTED,
    "sockets": UNLISTED,
    "numa": UNLISTED | {"256ppc-8n8s4t", "20s390-2g6s4c"},
    "pci": {name for name, answer in EXPECTED.items() if not answer["pci"]},
}
KINDS = {
    "0108": "nvme",
    "02": "network",
    "03": "display",
    "0b40": "coprocessor",
    "12": "accelerator",
}


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("machines")
    for name in EXPECTED:
        unpack(HERE / f"{name}.tar.xz", folder / name)
    return folder


def answer(name: str) -> dict[str, Any]:
    """Return hwloc's numbers; of PCI devices those of kinds that are read, None for none."""
    found = EXPECTED[name]
    counts = {key: found[key] and len(found[key]) for key in ("threads", "cores", "sockets")}
    pci: Counter[str] = Counter()
    for code, count in found["pci"].items():
        for start, kind in KINDS.items():
            pci[kind] += count * code.startswith(start)
    numbers = {**counts, "numa": found["numa"], "pci": dict(+pci) or None}
    if found["limited"]:
        numbers |= zip(QUANTITIES, WHOLE[name], strict=False)
    return numbers | {what: n for (which, what), n in CONTRADICTED.items() if which == name}


@pytest.mark.parametrize("name", EXPECTED)
def test_what_is_read_agrees_with_hwloc(name: str, unpacked: Path, tmp_path: Path) -> None:
    """From the machine's files, and from a recording of them."""
    archive, true = from_root(unpacked / name), answer(name)
    facts = facts_of(archive)
    keys = ("cpu.count", "cpu.cores", "cpu.sockets", "numa.nodes", "pci.devices")
    values = (facts.get(key) for key in keys)
    found = dict(zip(QUANTITIES, (None if unknown(v) else v for v in values), strict=True))
    assert found == {what: None if name in UNKNOWN[what] else true[what] for what in QUANTITIES} | (
        {"pci": true["pci"]}
    )
    to_tar(archive, tmp_path / "a.tar.gz")
    assert facts_of(from_tar(tmp_path / "a.tar.gz")) == facts


@pytest.mark.parametrize("name", EXPECTED)
def test_cores_for_ranks_are_those_of_hwloc(name: str, unpacked: Path) -> None:
    """Also in the part to which a control group is bound."""
    threads, true = frozenset(EXPECTED[name]["threads"]), EXPECTED[name]["cores"]
    found = siblings(unpacked / name, threads)
    assert sorted(thread for core in found for thread in core) == sorted(threads)
    if name in UNLISTED:
        assert found == [(thread,) for thread in sorted(threads)]
    elif true:
        assert found == sorted(map(tuple, true))
    for parts in (1, 2, 3):
        several = shares(found, parts)
        firsts = {core[0] for core in found}
        assert all(set(share[: len(found) // parts]) <= firsts for share in several)
        assert len({thread for share in several for thread in share}) == sum(map(len, several))


@pytest.mark.parametrize("name", EXPECTED)
def test_a_part_of_a_machine_has_parts_of_its_cores(name: str, unpacked: Path) -> None:
    threads = frozenset(EXPECTED[name]["threads"])
    some = frozenset(thread for thread in threads if thread % 3)
    whole = siblings(unpacked / name, threads)
    left = [tuple(thread for thread in core if thread in some) for core in whole]
    assert sorted(siblings(unpacked / name, some)) == sorted(core for core in left if core)
    assert set(cores(unpacked / name, some)) == some


def test_settings_are_read_as_the_kernel_writes_them(tmp_path: Path) -> None:
    for path, text in (
        ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never"),
        ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance"),
        ("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave"),
        ("proc/sys/kernel/numa_balancing", "0"),
        ("proc/cpuinfo", "vendor_id : A\nflags : fpu\n\nvendor_id : A\nflags : fpu\n"),
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text + "\n")
    assert {
        "memory.transparent_hugepage": "madvise",
        "cpu.governor": ["performance", "powersave"],
        "memory.numa_balancing": 0,
        "cpu.vendor": "A",
        "cpu.hypervisor": "no",
    }.items() <= facts_of(from_root(tmp_path)).items()


def test_memory_of_gpus_is_no_node_of_processors(unpacked: Path) -> None:
    facts = facts_of(from_root(unpacked / "nvidiagpunumanodes"))
    assert (facts["numa.nodes"], facts["numa.gpu_nodes"], facts["gpu.count"]) == (2, 6, 6)
    assert facts["numa.cpus"] == [16, 16]  # online, of 88 in each
    assert facts["numa.memory_balance"] == [1.0, 1.0]
    assert facts["numa.distance"] == ["10 40", "40 10"]
    assert facts["gpu.0.model"] == {"unknown": "absent"}


# --- by hand, as the kernel documents it ----------------------------------------------------------

CPU = "/sys/devices/system/cpu/"
NODE = "/sys/devices/system/node/"


def machine(threads: dict[int, dict[str, str]], **files: str) -> dict[str, Any]:
    """Return the facts of a machine with these files below the topology of each thread."""
    texts = {
        f"{CPU}cpu{cpu}/topology/{name}": text
        for cpu, files in threads.items()
        for name, text in files.items()
    }
    return dict(facts_of(Archive({**texts, **{CPU + name: t for name, t in files.items()}})))


def three(facts: dict[str, Any]) -> tuple[Any, Any, Any]:
    values = (facts[f"cpu.{name}"] for name in ("sockets", "cores", "threads_per_core"))
    one, two, last = (value["unknown"] if unknown(value) else value for value in values)
    return one, two, last


def test_the_cores_of_a_compute_unit_are_not_threads_of_one(tmp_path: Path) -> None:
    """As AMD's families 15h and 16h: 64 cores in 4 sockets, not 32; core_id repeats by die."""
    threads = {
        cpu: {
            "thread_siblings_list": f"{cpu // 2 * 2}-{cpu // 2 * 2 + 1}",
            "core_siblings_list": f"{cpu // 16 * 16}-{cpu // 16 * 16 + 15}",
            "core_id": str(cpu % 8),
            "physical_package_id": str(cpu // 16),
        }
        for cpu in range(64)
    }
    assert three(machine(threads, online="0-63")) == (4, 64, 1)
    for cpu, files in threads.items():
        folder = tmp_path / f"sys/devices/system/cpu/cpu{cpu}/topology"
        folder.mkdir(parents=True)
        for name, text in files.items():
            (folder / name).write_text(text + "\n")
    assert siblings(tmp_path, frozenset(range(64))) == [(cpu,) for cpu in range(64)]


def test_numbers_that_repeat_do_not_join_cores_of_two_dies() -> None:
    threads = {
        cpu: {
            "core_cpus_list": f"{cpu % 8},{cpu % 8 + 8}",
            "package_cpus_list": "0-15",
            "core_id": str(cpu % 4),
            "die_id": str(cpu % 8 // 4),
        }
        for cpu in range(16)
    }
    assert three(machine(threads, online="0-15")) == (1, 8, 2)


PAIR = {
    0: {"thread_siblings_list": "0", "core_siblings_list": "0-1", "physical_package_id": "0"},
    1: {"thread_siblings_list": "1", "core_siblings_list": "0-1", "physical_package_id": "0"},
}


@pytest.mark.parametrize(
    ("change", "online", "expected"),
    [
        ({}, "0-1", (1, 2, 1)),
        ({"core_siblings_list": "0-1\n\0"}, "0-1\n\0", (1, 2, 1)),  # Linux 5.15
        ({"core_siblings_list": "1"}, "0-1", ("unreadable", 2, 1)),
        ({"thread_siblings_list": "0-1"}, "0-1", (1, "unreadable", "unreadable")),
        ({"thread_siblings_list": "0"}, "0-1", (1, "unreadable", "unreadable")),
        ({"thread_siblings_list": "1-"}, "0-1", (1, "unreadable", "unreadable")),
        ({}, "0-2", ("absent", "absent", "absent")),  # one has no topology
        ({}, "1", (1, 1, 1)),  # as lxcfs shows a container's part of it
        ({}, "0,1,x", ("unreadable", "unreadable", "unreadable")),
    ],
)
def test_threads_must_agree_on_who_belongs_together(
    change: dict[str, str], online: str, expected: tuple[Any, Any, Any]
) -> None:
    assert three(machine(PAIR | {1: PAIR[1] | change}, online=online)) == expected


@pytest.mark.parametrize(
    ("numbers", "sockets"),
    [("00", 1), ("01", 2), (("-1", "-1"), "unsupported"), ("0x", "unreadable")],
)
def test_numbers_of_sockets_stand_in_where_there_are_no_lists(
    numbers: tuple[str, ...], sockets: int | str
) -> None:
    threads = {
        cpu: {"thread_siblings_list": str(cpu), "physical_package_id": number}
        for cpu, number in enumerate(numbers)
    }
    assert three(machine(threads, online="0-1")) == (sockets, 2, 1)


def nodes(*several: tuple[str, int]) -> dict[str, Any]:
    """Return the facts of NUMA nodes with these processors and KiB."""
    files = {CPU + "online": "0-3"}
    for number, (cpus, size) in enumerate(several):
        files[f"{NODE}node{number}/cpulist"] = cpus + "\n"
        files[f"{NODE}node{number}/meminfo"] = f"Node {number} MemTotal: {size} kB\n"
        files[f"{NODE}node{number}/distance"] = " ".join(
            "10" if other == number else "20" for other in range(len(several))
        )
    return {key: value for key, value in facts_of(Archive(files)).items() if key[:5] == "numa."}


def test_nodes_without_memory_or_without_processors() -> None:
    # Memory without processors (CXL, NVDIMM, HBM) is a node; processors without memory are none,
    # but show; what has neither (a place for a device) does not.
    assert nodes(("0-1", 100), ("2-3", 0), ("", 100), ("", 0)) == {
        "numa.nodes": 2,
        "numa.cpus": [2, 2, 0],
        "numa.memory_balance": [1.5, 0.0, 1.5],
        "numa.distance": ["10 20 20", "20 10 20", "20 20 10"],
    }
    assert nodes(("0-3,8-11", 100))["numa.cpus"] == [4]  # of which 4 are online
    assert set(map(str, nodes(("0-3", 100), ("0-3", 100)).values())) == {
        "{'unknown': 'unreadable'}"
    }
