"""Facts of the machines in tests/machines, and the page that explains every key."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zipfile import ZipFile

import pytest

from paribus.probes import Archive, facts_of, load_between, unknown
from paribus.probes import machine as here
from paribus.probes.archive import Unknown, patterns
from paribus.probes.environment import environment_facts
from paribus.probes.ethtool import dcb_facts, ethtool_counters, ethtool_facts
from paribus.probes.facts import GROUPS
from paribus.probes.files import from_root, from_tar, to_tar
from paribus.probes.gpu import gpu_facts
from paribus.probes.load import beside, during
from paribus.probes.machine import cores, load_facts, processor_times
from paribus.probes.rdma import rdma_facts

ROOT = Path(__file__).parents[1]
HERE = ROOT / "tests" / "machines"
sys.path.insert(0, str(HERE))
from handmade import MACHINES, gpu_server, infiniband  # noqa: E402

RECORDED = sorted(path.name.removesuffix(".tar.gz") for path in HERE.glob("*.tar.gz"))
NAMES = [*RECORDED, *(f"handmade-{name}" for name in MACHINES)]


@cache
def machine(name: str) -> Archive:
    if name.startswith("handmade-"):
        return MACHINES[name.removeprefix("handmade-")]
    return from_tar(HERE / f"{name}.tar.gz")


def golden(name: str) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads((HERE / f"{name}.json").read_text())
    return facts


def test_every_kind_of_machine_is_there() -> None:
    assert set(RECORDED) >= {"kvm-root", "kvm-nobody", "namespace", "podman", "tcg-guest-busybox"}
    assert {path.stem for path in HERE.glob("*.json")} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_golden_facts(name: str) -> None:
    """Reviewed once; `python tests/machines/keep.py` writes them anew."""
    assert json.loads(json.dumps(dict(facts_of(machine(name))))) == golden(name)


@pytest.mark.parametrize("name", NAMES)
def test_an_archive_survives_the_tar_file_and_the_directory(name: str, tmp_path: Path) -> None:
    to_tar(machine(name), tmp_path / "a.tar.gz")
    to_tar(machine(name), tmp_path / "b.tar.gz")
    assert (tmp_path / "a.tar.gz").read_bytes() == (tmp_path / "b.tar.gz").read_bytes()
    unpacked = tmp_path / "unpacked"
    unpacked.mkdir()
    subprocess.run(["tar", "-xzf", str(tmp_path / "a.tar.gz"), "-C", str(unpacked)], check=True)
    assert facts_of(from_tar(tmp_path / "a.tar.gz")) == golden(name)
    assert facts_of(from_root(unpacked)) == golden(name)


def test_gpus_that_differ_only_in_temperature_keep_their_places() -> None:
    """Else the NUMA node of GPU 0 would change from launch to launch."""
    one, other = gpu_server(), gpu_server()
    rows = str(one.tools["nvidia-smi"][1]).split("\n")  # type: ignore[index]
    warm = [row.replace(f", {31 + n}, 0 %", f", {90 - n}, 0 %") for n, row in enumerate(rows[1:])]
    assert warm != rows[1:]
    tools = {**other.tools, "nvidia-smi": (0, "\n".join([rows[0], *warm]))}
    cold, hot = facts_of(one), facts_of(Archive(other.files, tools, other.links))
    stable = {key for key in cold if ".now." not in key}
    assert {key for key in stable if cold[key] != hot[key]} == set()
    assert cold["gpu.0.now.temperature_c"] != hot["gpu.0.now.temperature_c"]


# --- the page ---------------------------------------------------------------------------------


def keys_of(*parts: str) -> list[str]:
    """Return the keys of parts of probes/keys.toml: `gpu.N.{model, memory}` are two."""
    every = tomllib.loads((ROOT / "src" / "paribus" / "probes" / "keys.toml").read_text())
    found = []
    for key in (key for part in parts for one in every[part] for key in one["keys"]):
        before, _, several = key.partition("{")
        found += [before + one for one in several.rstrip("}").split(", ")]
    return found


def documented() -> set[str]:
    return {*keys_of("node", "study", "rank")}


def pattern_of(key: str) -> re.Pattern[str]:
    text = re.escape(key)
    text = text.replace("DEVICE", r"(net\.[a-z]+|rdma|gpu|pci\.[a-z]+)\.[0-9]+")
    text = text.replace("ROLE", "[a-z]+").replace(r"\.N\.", r"\.[0-9]+\.")
    return re.compile(text.replace("NAME", r"[^\s]+"))


@pytest.mark.parametrize("name", NAMES)
def test_each_fact_has_one_parser(name: str) -> None:
    groups = (*GROUPS, environment_facts, gpu_facts, rdma_facts)
    several = [group(machine(name)) for group in groups]
    counts = Counter(key for facts in several for key in facts)
    assert {key for key, count in counts.items() if count > 1} == set()


def test_every_key_of_every_machine_is_documented() -> None:
    known = [pattern_of(key) for key in documented()]
    keys = {key for name in NAMES for key in golden(name)}
    assert len(keys) > 350
    assert {key for key in keys if not any(p.fullmatch(key) for p in known)} == set()


def test_every_documented_key_is_one_that_code_gives() -> None:
    """Seen at a machine at hand; of keys that none of them has, the name must be in the code."""
    keys = {key for name in NAMES for key in golden(name)}
    rooms = "core probes launch hosts containers schedulers benchmarks readers"
    sources = "".join(
        path.read_text()
        for room in rooms.split()
        for path in (ROOT / "src" / "paribus" / room).rglob("*.py")
    )
    unseen = [key for key in documented() if not any(pattern_of(key).fullmatch(k) for k in keys)]
    last = {key: re.sub(r"\.(NAME|UNIT)$", "", key).rpartition(".")[2] for key in unseen}
    assert {key for key, word in last.items() if word not in sources} == set()
    # What a study says of an arm and what a launch leaves are of no machine; stored studies have
    # most of it. Each key that is in none of them stands here by name.
    stored = of_studies()
    unseen = [key for key in unseen if not any(pattern_of(key).fullmatch(k) for k in stored)]
    of_arms = ("adapter.", "build.", "command.", "container.", "hypervisor.", "wrapper.")
    of_launches = ("launch.", "load.energy.", "load.gpu.", "load.during.gpu.", "nccl.", "screen.")
    assert {key for key in unseen if not key.startswith((*of_arms, *of_launches))} == {
        *("clock.offset_s", "placement.job", "placement.nodes", "placement.adapter"),
        *("load.during.adapter_bytes", "load.during.other_bytes", "env.others"),
        *("gpu.N.memory_mode", "gpu.N.performance", "numa.gpu_nodes"),
        *("net.ROLE.N.counter.NAME", "net.ROLE.N.trust"),
        *("lib.NAME.digest", "lib.blas.core", "program.digest", "mpi.libfabric", "mpi.ucx"),
    }


def of_studies() -> set[str]:
    """Return the keys of facts in the studies that come with Paribus."""
    found: set[bytes] = set()
    for archive in sorted((ROOT / "artifacts").glob("*.zip")):
        with ZipFile(archive) as stored:
            for name in stored.namelist():
                found |= set(re.findall(rb'"([a-z][!#-~]*)": ?', stored.read(name)))
    return {key.decode() for key in found}


def test_a_path_that_is_read_is_a_path_that_means_something() -> None:
    """Nothing is read that no parser asks for: each pattern's last name is in a parser."""
    sources = "".join(
        path.read_text() for path in (ROOT / "src" / "paribus" / "probes").glob("*.py")
    )
    names = {pattern.rpartition("/")[2] for pattern in patterns()}
    plain = {name for name in names if not re.search(r"[\[*]", name) and not name.isdecimal()}
    assert {name for name in plain if not re.search(rf"[/\"]{re.escape(name)}\b", sources)} == set()


# --- this machine --------------------------------------------------------------------------------


def test_load_is_read_fast_and_grows() -> None:
    before = load_facts()
    assert before["load.average_1min"] >= 0
    for _ in range(200_000):
        pass
    grown = load_between(before, load_facts())
    assert grown["load.context_switches"] >= 0
    assert load_between(before, {**before, "load.busy_s": {"unknown": "denied"}}).keys() == (
        load_between(before, before).keys() - {"load.busy_s"}
    )


def test_who_was_busy_beside_a_launch() -> None:
    """Of readings by hand: 7 is Paribus, 8 its rank, 9 and 11 others; 10 began meanwhile."""
    before = {1: ("init", 0, 5.0), 7: ("paribus", 1, 1.0), 9: ("yes", 1, 3.0), 11: ("yes", 1, 0.0)}
    after = {
        **before,
        7: ("paribus", 1, 2.0),
        8: ("rank", 7, 2.0),
        9: ("yes", 1, 4.9),
        10: ("cc1", 11, 0.5),
        11: ("yes", 1, 1.1),
        12: ("idle", 1, 0.01),
    }
    assert beside(before, after, 7, 2.0) == ["yes 150%", "cc1 25%"]
    assert beside(before, after, 7, 0.0) == []
    circle = {3: ("a", 4, 1.0), 4: ("b", 3, 1.0)}
    assert beside({}, circle, 7, 1.0) == ["b 100%", "a 100%"]


def test_a_launch_that_follows_at_once_is_read_around_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """`cc1` is busy in launches only, `make` in between only, `yes` always: seconds since 0."""
    now, busy, between, readings = 0.0, 0.0, 0.0, 0

    def read() -> dict[int, tuple[str, int, float]]:
        nonlocal readings
        readings += 1
        return {10: ("yes", 1, now), 11: ("cc1", 1, busy), 12: ("make", 1, between)}

    monkeypatch.setattr(here, "processor_times", read)
    monkeypatch.setattr(here, "time", SimpleNamespace(monotonic=lambda: now))
    others = here.Others()

    def after(gap: float) -> tuple[str, ...]:
        nonlocal now, busy, between
        now, between = now + gap, between + gap
        others.begin()
        now, busy = now + 2.0, busy + 2.0
        return others.end()

    assert [after(gap) for gap in (0.0, 0.004, 0.09)] == [
        ("yes 100%", "cc1 100%"),
        ("yes 100%", "cc1 100%"),
        ("yes 100%", "cc1 96%"),
    ]
    assert readings == 4, "before the first, and after each"
    assert after(30.0) == ("yes 100%", "cc1 100%"), "what was before the launch is not beside it"
    assert readings == 6


def test_processes_are_read_with_the_names_that_they_gave_themselves(tmp_path: Path) -> None:
    own = processor_times()[os.getpid()]
    assert own[1] == os.getppid()
    assert own[2] == pytest.approx(sum(os.times()[:2]), abs=0.05)
    numbers = " ".join(["0"] * 9 + ["150", "50"] + ["0"] * 30)
    for number, text in (
        ("7", f"7 (a) (b c) S 1 {numbers}"),
        ("8", f"8 (kworker/0:1-events) I 2 {numbers}"),
        ("9", "9 (torn"),
        ("10", ""),
    ):
        (tmp_path / "proc" / number).mkdir(parents=True)
        (tmp_path / "proc" / number / "stat").write_text(text)
    found = processor_times(tmp_path)
    assert found == {7: ("a) (b c", 1, 2.0), 8: ("kworker", 2, 2.0)}
    assert processor_times(tmp_path / "none") == {}


def test_counters_of_adapters_are_reported_by_their_growth(tmp_path: Path) -> None:
    for port, count in (("1", 4), ("2", 5)):
        base = tmp_path / "sys/class/infiniband/mlx5_0/ports" / port / "counters"
        base.mkdir(parents=True)
        (base / "symbol_error").write_text(f"{count}\n")
    before = load_facts(tmp_path)
    assert before["load.rdma.symbol_error"] == 9
    (base / "symbol_error").write_text("8\n")
    assert during(before, load_facts(tmp_path)) == {"load.during.rdma.symbol_error": 3}


MLNX_QOS = """DCBX mode: OS controlled
Priority trust state: dscp
dscp2prio mapping:
\tprio:0 dscp:07,06,05,04,03,02,01,00,
Receive buffer size (bytes): 130944,130944,0,0,0,0,0,0,max_buffer_size=262016
Cable len: 7
PFC configuration:
\tpriority    0   1   2   3   4   5   6   7
\tenabled     0   0   0   1   0   0   0   0
\tbuffer      0   0   0   1   0   0   0   0
tc: 0 ratelimit: unlimited, tsa: ets, bw: 50%
\t priority:  0
\t priority:  1
tc: 3 ratelimit: 40.0 Gbps, tsa: ets, bw: 50%
\t priority:  3
tc: 6 ratelimit: unlimited, tsa: strict
\t priority:  6
"""


def test_flow_control_by_priority_is_read_of_both_tools() -> None:
    """mlnx_qos by what its users show of it; dcb's answers are in the hand-made machine."""
    found = dcb_facts(Archive({}, {"mlnx_qos-p0": (0, MLNX_QOS)}), "p0")
    assert (found["trust"], found["pfc"]) == ("dscp", [3])
    assert found["ets"] == {"tc_tsa": "ets ets strict", "tc_bw": "50 50 0", "prio_tc": "0 0 3 6"}
    for status, text, why in (
        (1, "Attribute read: Operation not supported\n", Unknown.UNSUPPORTED),
        (1, "Attribute read: Permission denied\n", Unknown.DENIED),
        (137, "", Unknown.TIMED_OUT),
        (0, "Usage: dcb [ -s ] pfc show dev STRING\n", Unknown.UNREADABLE),
        (0, "[1]", Unknown.UNREADABLE),
        (0, '{"pfc_cap":8}', Unknown.UNREADABLE),
    ):
        assert dcb_facts(Archive({}, {"dcb-pfc-p0": (status, text)}), "p0") == {"pfc": why}
    assert dcb_facts(Archive({}, {"dcb-pfc-p0": Unknown.ABSENT}), "p0") == {"pfc": Unknown.ABSENT}
    assert dcb_facts(Archive({}), "p0") == {}


def test_where_irqbalance_moves_interrupts_their_places_are_not_facts() -> None:
    archive = infiniband()
    for name, line in (("present", "/run/irqbalance"), ("consumers", "daemon irqbalance")):
        lists = {**archive.lists, name: ["window 3", line]}
        facts = facts_of(replace(archive, lists=lists))
        assert {v for k, v in facts.items() if k.endswith(".irq_cpus")} == {"irqbalance"}
    hidden = {**archive.files, "/proc/irq/96/smp_affinity_list": Unknown.DENIED}
    facts = facts_of(replace(archive, files=hidden))
    assert facts["rdma.0.irq_cpus"] == {"unknown": "denied"}
    assert facts["rdma.1.irq_cpus"] == ["3 x 0-127"]
    lines = ["0000:41:00.0 96 97 cut", "0000:81:00.0"]
    facts = facts_of(replace(archive, lists={**archive.lists, "interrupts": lines}))
    assert facts["rdma.0.irq_cpus"] == {"unknown": "cut"}
    assert facts["rdma.1.irq_cpus"] == {"unknown": "absent"}
    assert "pci.nvme.0.irq_cpus" not in facts


def test_two_values_in_a_line_of_ethtool_are_two() -> None:
    text = "Coalesce parameters for p0:\nAdaptive RX: on  TX: off\nrx-usecs: 8\nCQE mode RX: n/a"
    found = ethtool_facts(Archive({}, {"ethtool-c-p0": (0, text + "  TX: n/a\n")}), "p0")
    assert found["coalescing"] == {"Adaptive RX": "on", "Adaptive TX": "off", "rx-usecs": 8}


def test_pauses_and_discards_are_counted_apart_from_settings() -> None:
    text = "     rx_prio3_pause: 17\n     rx_discards_phy: 0\n     junk: x\n"
    found = ethtool_counters(Archive({}, {"ethtool-S-p0": (0, text)}), "p0")
    assert found == {"counter.rx_prio3_pause": 17, "counter.rx_discards_phy": 0}
    for tools in ({}, {"ethtool-S-p0": Unknown.ABSENT}, {"ethtool-S-p0": (94, "no stats")}):
        assert ethtool_counters(Archive({}, tools), "p0") == {}


def test_power_limits_are_those_of_each_kind_of_package() -> None:
    base = "/sys/class/powercap/intel-rapl:"
    files: dict[str, str | Unknown] = {}
    for package in range(2):
        files[f"{base}{package}/name"] = f"package-{package}\n"
        files[f"{base}{package}/constraint_0_power_limit_uw"] = "350000000\n"
        files[f"{base}{package}/constraint_1_power_limit_uw"] = "420000000\n"
    assert facts_of(Archive(files))["cpu.frequency.power_limits_w"] == [350.0, 420.0]
    files[f"{base}1/constraint_0_power_limit_uw"] = "270000000\n"
    assert facts_of(Archive(files))["cpu.frequency.power_limits_w"] == [
        [270.0, 420.0],
        [350.0, 420.0],
    ]
    files[f"{base}1/constraint_0_power_limit_uw"] = Unknown.DENIED
    assert facts_of(Archive(files))["cpu.frequency.power_limits_w"] == {"unknown": "denied"}
    assert facts_of(Archive({}))["cpu.frequency.power_limits_w"] == {"unknown": "absent"}


def test_nvidias_libraries_are_known_by_version_and_digest() -> None:
    lists = {
        "libraries": ["/opt/solve", "/opt/lib/libnccl.so.2", "/opt/lib/libcublas.so.12"],
        "real": ["/opt/solve", "/opt/lib/libnccl.so.2.21.5", "/opt/lib/libcublas.so.12.4.5.8"],
        "build_ids": ["040000001400000003000000474e5500" + "ab" * 20, "-", "-"],
        "digests": ["/opt/lib/libnccl.so.2 232230936-17", "/opt/lib/libcublas.so.12 9-"],
    }
    facts = facts_of(Archive({}, lists=lists))
    assert facts["nccl.version"] == "2.21.5"
    assert facts["lib.libnccl.so.digest"] == "232230936-17"
    assert facts["lib.libnccl.so.build_id"] == {"unknown": "absent"}
    assert facts["program.build_id"] == "ab" * 20
    assert "program.digest" not in facts
    assert "nccl.version" not in facts_of(Archive({}, lists={"libraries": ["/opt/solve"]}))


def test_an_unknown_is_recognised_and_a_value_is_not() -> None:
    assert unknown({"unknown": "absent"})
    assert not any(unknown(value) for value in ("unknown", {}, {"a": 1}, ["unknown"], None, 0))


STAT = "77 (a) b (c)) R 1 77 77 0 -1 4194304 98 0 0 0 0 0 0 0 27 7 1 0 900 1 1 {zeros}"


@pytest.mark.parametrize(
    ("number", "name"), [(0, "other"), (1, "fifo"), (3, "batch"), (5, "idle"), (9, "9")]
)
def test_the_priority_of_ranks_is_reported(number: int, name: str) -> None:
    zeros = " ".join(["0"] * 16 + [str(number)] + ["0"] * 11)
    text = STAT.format(zeros=zeros)
    archive = Archive({"/proc/self/stat": text, "/proc/self/autogroup": "/autogroup-4 nice -5"})
    facts = facts_of(archive)
    assert facts["process.nice"] == 7
    assert facts["process.policy"] == name
    assert facts["process.autogroup_nice"] == -5


@pytest.mark.parametrize("text", ["", "77 (sh) R 1 2", "(", "a" * 9])
def test_half_a_line_of_the_process_is_no_priority(text: str) -> None:
    facts = facts_of(Archive({"/proc/self/stat": text, "/proc/self/autogroup": text}))
    for key in ("process.nice", "process.policy", "process.autogroup_nice"):
        assert unknown(facts[key])


def test_what_keeps_the_time_of_day_is_asked_of_systemd_and_of_chrony() -> None:
    mark = {"present": ["/run/systemd/timesync/synchronized"]}
    tracking = "A9FEA97B,169.254.169.123,4,1763,-0.000002,0,0,0,0,0,0,0,16.3,{}"
    cases = [
        (Archive({}, lists=mark), "yes"),
        (Archive({}, tools={"chronyc": (0, tracking.format("Normal"))}), "yes"),
        (Archive({}, tools={"chronyc": (0, tracking.format("Not synchronised"))}), "no"),
        (Archive({}, tools={"chronyc": Unknown.ABSENT}), {"unknown": "absent"}),
    ]
    for archive, expected in cases:
        assert facts_of(archive)["clock.synchronised"] == expected


def test_priorities_of_packets_are_reported_by_no_name_of_an_interface() -> None:
    group = "/sys/fs/cgroup/net_cls,net_prio/job"
    texts = {
        "/proc/self/cgroup": "4:net_cls,net_prio:/job",
        f"{group}/net_prio.ifpriomap": "lo 0\neth0 5\nib0 3",
        f"{group}/net_cls.classid": "65537",
    }
    facts = facts_of(Archive(texts))
    assert facts["cgroup.net_priorities"] == ["3", "5"]
    assert facts["cgroup.net_class"] == 65537


def test_this_machine_is_read_without_a_shell() -> None:
    assert facts_of(from_root(Path("/")))["os.release"] == os.uname().release
    assert cores(allowed=frozenset({0})) == (0,)


def test_what_is_no_plain_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    os.mkfifo(tmp_path / "proc" / "cmdline")
    assert facts_of(from_root(tmp_path))["os.cmdline"] == {"unknown": "unsupported"}
