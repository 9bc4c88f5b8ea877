"""The RDMA adapter of an arm: what it changes, what the audit sees of it, and what it carried."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from paribus.audit.audit import Question, audit
from paribus.benchmarks import BENCHMARKS
from paribus.cli.shipped import find_shipped
from paribus.core import (
    Adapter,
    Address,
    Arm,
    Command,
    Completed,
    Facts,
    Hosts,
    Mpi,
    Parsed,
    Selection,
    State,
    Study,
    StudyError,
    UserError,
)
from paribus.core.facts import OF_ADAPTER, OF_OTHERS
from paribus.hosts.guard import carried_by, report_of
from paribus.launch.adapters import with_adapter
from paribus.launch.arms import Ready, asked_of, compose
from paribus.launch.launching import Ended, Prepared, outcome_of
from paribus.plan import freeze, read_plan, write_plan
from paribus.probes import facts_of
from paribus.probes.adapter import adapter_facts, ports
from paribus.probes.archive import Archive
from paribus.probes.carried import carried, networks
from paribus.probes.files import from_tar
from paribus.studyfile.load import load_study
from studies import paribus, write_arms

MACHINES = Path(__file__).parent / "machines"
sys.path.insert(0, str(MACHINES))
from handmade import infiniband  # noqa: E402

MPICH = Mpi("mpich", (5, 0, 2), "/m/bin/mpicxx", "/m/bin/mpirun")
HOSTS = Hosts(addresses=tuple(Address(name, name) for name in ("n1", "n2")))
ROCE = Adapter("mlx5_1", gid_index=3)


def loaded(folder: Path, key: str) -> Study:
    hosts = 'hosts = "n[1-2]"'
    return load_study(write_arms(folder, f"{hosts}\n{key}", hosts, factor="interconnect"))


# --- the study file ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "adapter"),
    [
        ('"mlx5_1"', Adapter("mlx5_1")),
        ('"mlx4_0:2"', Adapter("mlx4_0", 2)),
        ('{ device = "mlx5_1", gid_index = 3 }', ROCE),
    ],
)
def test_an_adapter_is_written_as_text_or_table(
    tmp_path: Path, written: str, adapter: Adapter
) -> None:
    study = loaded(tmp_path, f"adapter = {written}")
    assert study.arms[0].adapter == adapter
    plan = freeze(study, {})
    write_plan(plan, tmp_path)
    assert read_plan(tmp_path).study.arms == study.arms


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('adapter = "?"', "this study has no adapter of its own"),
        ('adapter = "mlx5_0:first"', "write DEVICE or DEVICE:PORT"),
        ('adapter = { device = "mlx5_0", gid = 3 }', "known: device, port, gid_index"),
        ('adapter = "mlx5_0"\ntransport = "tcp"', "transport = 'tcp': leaves the adapter out"),
        ("adapter = { port = 1 }", 'device = "mlx5_0"'),
    ],
)
def test_an_adapter_that_cannot_be_used_says_what_to_write(
    tmp_path: Path, line: str, said: str
) -> None:
    with pytest.raises(StudyError) as refused:
        loaded(tmp_path, line)
    assert said in str(refused.value)


def test_an_adapter_needs_hosts(tmp_path: Path) -> None:
    path = write_arms(tmp_path, 'adapter = "mlx5_0"', factor="interconnect")
    with pytest.raises(StudyError, match=r"arms\.a\.adapter: this arm has no hosts"):
        load_study(path)


# --- study 5 -------------------------------------------------------------------------------------


def test_roce_ib_asks_for_each_thing_that_it_needs() -> None:
    with pytest.raises(StudyError) as refused:
        load_study(find_shipped("roce-ib"))
    said = str(refused.value)
    for what in ("arms.infiniband.hosts", "arms.roce.hosts"):
        assert f"{what}: this study has no hosts of its own" in said
    for what in ("arms.infiniband.adapter", "arms.roce.adapter"):
        assert f"{what}: this study has no adapter of its own" in said
    assert "input: this study has none of its own for qe" in said
    assert "input: this study has none of its own for vasp" in said
    assert "6 problems" in said


def test_roce_ib_with_what_it_asks_for_prints_its_plan(tmp_path: Path) -> None:
    """On pocket hosts: everything is composed, nothing launched; adapters are asked for later."""
    for name in ("INCAR", "KPOINTS", "POSCAR", "POTCAR"):
        (tmp_path / name).write_text("text\n")
    text = find_shipped("roce-ib").read_text()
    for old, new in (
        ('adapter = "?"', 'adapter = "mlx5_0"'),
        ('"qe", ranks = 192, atoms = 112, input = "?"', f'"qe", input = "{tmp_path}/INCAR"'),
        ('input = "?"', f'input = "{tmp_path}"'),
        ("[plan]", '[plan]\nbind = "none"'),
        ('[arms.roce]\nhosts   = "?"\nadapter = "mlx5_0"', f"[arms.roce]\nhosts = '?'\n{GID}"),
    ):
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "own.toml").write_text(text)
    hosts = [f"--hosts={arm}=pocket:4" for arm in ("infiniband", "roce")]
    done = paribus("run", "own.toml", "--dry-run", "--no-pilot", *hosts, cwd=tmp_path, code=0)
    said = " ".join(done.stdout.split())
    assert "factor interconnect; arms infiniband, roce (the first is the reference)" in said
    for label in ("incast 64 B", "osu_alltoall", "hpl", "hpcg", "npb_is", "lammps", "qe", "vasp"):
        assert f" {label}: " in said
    assert "infiniband, missing: vasp: no program on the PATH called vasp_std" in said
    assert "-d mlx5_0 -i 1" in said
    assert "-d mlx5_1 -i 1 -x 3" in said


GID = 'adapter = { device = "mlx5_1", gid_index = 3 }'


# --- what a launch is given --------------------------------------------------------------


def composed(
    name: str, adapter: Adapter | None, network: str = "10.1.0.0/16", **parameters: object
) -> Command:
    benchmark = BENCHMARKS[name]
    default = {key: one.default for key, one in benchmark.parameters.items()}
    ranks = max(2, benchmark.ranks) if name == "incast" else 1
    selection = Selection(name, name, ranks, {**default, **parameters})
    arm = Arm("a", hosts=replace(HOSTS, network=network), adapter=adapter)
    return compose(Ready(arm, MPICH, ()), selection, benchmark, seed=1, scratch="/s/1")


def test_perftest_takes_the_arms_adapter_on_both_sides() -> None:
    text = " ".join(composed("ib_write_bw", ROCE).argv)
    assert text.count("-d mlx5_1 -i 1 -x 3") == 2
    assert " -d " not in " ".join(composed("ib_write_bw", None).argv)
    own = " ".join(composed("ib_write_bw", ROCE, device="mlx5_7").argv)
    assert own.count("-d mlx5_7") == 2


def test_the_senders_of_an_incast_find_the_host_of_rank_0() -> None:
    argv = composed("incast", ROCE).argv
    at = argv.index("ib_write_bw")
    assert argv[at + 1] == "n1"
    assert argv[-6:] == ("-d", "mlx5_1", "-i", "1", "-x", "3")


def test_mpi_is_given_the_adapter_and_not_the_interface_of_its_network() -> None:
    command = composed("incast", ROCE)
    assert command.env["UCX_NET_DEVICES"] == "mlx5_1:1"
    assert command.env["UCX_IB_GID_INDEX"] == "3"
    scripts = [i for i, word in enumerate(command.argv) if word == "paribus-network"]
    names = [command.argv[i + 4] for i in scripts]
    assert names == ["HYDRA_IFACE", "FI_TCP_IFACE"]
    plain = composed("incast", None)
    names = [plain.argv[i + 4] for i, word in enumerate(plain.argv) if word == "paribus-network"]
    assert names == ["HYDRA_IFACE", "FI_TCP_IFACE UCX_NET_DEVICES"]


def test_mpi_chooses_where_no_network_is_named() -> None:
    command = composed("incast", None, network="")
    assert not {"HYDRA_IFACE", "FI_TCP_IFACE", "UCX_NET_DEVICES"} & command.env.keys()
    assert "paribus-network" not in command.argv


# --- the audit -----------------------------------------------------------------------------------


def of_arm(adapter: Adapter) -> Facts:
    node = facts_of(infiniband())
    arm = Arm("a", hosts=HOSTS, adapter=adapter)
    own = adapter_facts(node, adapter.device, adapter.port, adapter.gid_index)
    return {**node, **own, **asked_of(arm, [arm])}


def test_the_port_of_an_arm_is_reported_by_its_own_facts() -> None:
    node = facts_of(infiniband())
    assert ports(node) == ["mlx5_0:1", "mlx5_1:1"]
    fabric, ethernet = of_arm(Adapter("mlx5_0")), of_arm(Adapter("mlx5_1", gid_index=1))
    assert (fabric["adapter.link_layer"], ethernet["adapter.link_layer"]) == (
        "InfiniBand",
        "Ethernet",
    )
    assert fabric["adapter.pkeys"] == ["0x8001", "0xffff"]
    assert ethernet["adapter.gid_type"] == "RoCE v2"
    assert of_arm(Adapter("mlx5_1"))["adapter.gid_type"] == ["IB/RoCE v1", "RoCE v2"]
    assert ethernet["adapter.driver"] == "mlx5_core"
    assert (ethernet["adapter.net.mtu"], ethernet["adapter.net.pfc"]) == (9000, [3])
    assert "adapter.net.mtu" not in fabric
    assert adapter_facts(node, "mlx5_0", 2, None) == {}


def test_a_node_without_the_port_is_refused_with_those_that_it_has() -> None:
    node = facts_of(infiniband())
    assert with_adapter(ROCE, "n1", node, "here")["adapter.link_layer"] == "Ethernet"
    with pytest.raises(UserError) as refused:
        with_adapter(Adapter("mlx5_2"), "n1", node, "here")
    assert "n1 has no RDMA port mlx5_2:1" in str(refused.value)
    assert "mlx5_0:1, mlx5_1:1" in str(refused.value)
    down = {**node, "rdma.1.state": "1: DOWN"}
    with pytest.raises(UserError, match=r"mlx5_1:1 of n1 is not active \(1: DOWN\)"):
        with_adapter(ROCE, "n1", down, "here")


def test_soft_roce_of_a_recorded_guest_is_reported_and_counted_in_packets() -> None:
    """Recorded in a guest of qemu: rxe has no `counters`, no device of its own, no firmware."""
    guest = from_tar(MACHINES / "tcg-guest-numa-root.tar.gz")
    facts = facts_of(guest)
    found = adapter_facts(facts, "rxe_eth0", 1, 1)
    assert (found["adapter.link_layer"], found["adapter.gid_type"]) == ("Ethernet", "RoCE v2")
    assert (found["adapter.software"], found["adapter.net.driver"]) == (True, "e1000e")
    assert found["adapter.firmware"] == {"unknown": "unsupported"}
    packets = facts["rdma.0.counter.sent_pkts"] + facts["rdma.0.counter.rcvd_pkts"]
    assert networks(guest) == {"rxe_eth0:1": 64 * packets, "rxe_eth1:1": 0}


@pytest.mark.parametrize(
    ("factor", "withheld"), [("interconnect", False), ("network", False), ("mpi", True)]
)
def test_the_factor_explains_another_adapter(factor: str, withheld: bool) -> None:
    found = differences(of_arm(Adapter("mlx5_0")), of_arm(ROCE), factor)
    assert {"adapter.link_layer", "adapter.gid_type", "adapter.pkeys"} <= found.keys()
    assert "placement.adapter" in found
    assert ("unexplained" in found.values()) == withheld


@pytest.mark.parametrize("key", ["cpu.model", "os.release", "mpi.library", "limits.memlock"])
def test_the_factor_explains_nothing_else_of_the_nodes(key: str) -> None:
    ours, theirs = of_arm(Adapter("mlx5_0")), of_arm(ROCE)
    found = differences({**ours, key: "one"}, {**theirs, key: "other"}, "interconnect")
    assert [name for name, kind in found.items() if kind == "unexplained"] == [key]


def differences(ours: Facts, theirs: Facts, factor: str) -> Mapping[str, str]:
    study = load_study(find_shipped("same"))
    question = Question(replace(study, factor=factor), "b", ("point to point",))
    found = audit({"n1": ours}, {"n1": theirs}, question)
    return {one.key: one.kind for one in found.differences}


# --- what networks carried -----------------------------------------------------------------------

NET = """Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop
    lo: {0} 1 0 0 0 0 0 0 {0} 1 0 0 0 0 0 0
  eth0: {0} 1 0 0 0 0 0 0 {1} 1 0 0 0 0 0 0
"""
PORT = "/sys/class/infiniband/{}/ports/1/{}/{}"


def counting(device: str, group: str, names: tuple[str, str], value: int) -> dict[str, str]:
    return {PORT.format(device, group, name): f"{value}\n" for name in names}


def machine(value: int) -> Archive:
    return Archive(
        {
            "/proc/net/dev": NET.format(value, 2 * value),
            **counting("mlx5_0", "counters", ("port_xmit_data", "port_rcv_data"), value),
            **counting("efa_0", "hw_counters", ("tx_bytes", "rx_bytes"), value),
            **counting("rxe0", "hw_counters", ("sent_pkts", "rcvd_pkts"), value),
            **counting("old_0", "counters", ("port_xmit_data", "port_rcv_data"), (1 << 32) - 1),
            PORT.format("siw0", "hw_counters", "np_cnp_sent"): "7",
        }
    )


def test_each_network_is_counted_in_bytes() -> None:
    """Words of 4 bytes, bytes, packets; an adapter that does not count is none that counted 0."""
    grown = {"eth0": 3000, "mlx5_0:1": 8000, "efa_0:1": 2000, "rxe0:1": 128000}
    assert carried(machine(500), machine(1500)) == grown
    assert carried(machine(1500), machine(500)) == {}


def test_a_guard_reports_what_networks_carried() -> None:
    def readings(value: int) -> str:
        paths = machine(value).files
        lines = [
            f"{path}:{line}" for path in paths for line in machine(value).text(path).split("\n")
        ]
        return "\n".join(lines)

    head = "exit 0\nown 1\nseconds 1.00 2.00\nwindow 1.00 2.00\nspent 0m0.00s 0m0.00s"
    said = f"{head}\nbefore\n{readings(500)}\nafter\n{readings(1500)}\nwhole\n"
    report = report_of(said.encode())
    assert report.carried["rxe0:1"] == 128000
    other = replace(report, carried={"rxe0:1": 1})
    found = carried_by([(0, other), (0, report), (1, other)], ["n1", "n2"])
    assert (found["n1"]["rxe0:1"], found["n2"]) == (128000, {"rxe0:1": 1})


def outcome(folder: Path, layer: str, *networks: Mapping[str, int], wall_s: float = 1.0):
    """Return what came of a launch on hosts whose networks carried so much."""
    for name in ("1.out", "1.err"):
        (folder / name).write_text("")
    benchmark = replace(BENCHMARKS["latency"], layer=layer, parse=lambda _t, _r: Parsed(()))
    launch = Prepared(
        command=Command(("program",)),
        selection=Selection("own", "own", 2, {}),
        benchmark=benchmark,
        slots=(),
        facts={},
        out=folder / "1.out",
        err=folder / "1.err",
        scratch="",
        timeout_s=30.0,
        adapter=Adapter("mlx5_1"),
    )
    by_host = {f"n{n}": one for n, one in enumerate(networks, 1)}
    return outcome_of(launch, Ended(done=Completed(0, wall_s, carried=by_host)))


MIB = 1 << 20
USED, IDLE = {"mlx5_1:1": 9 * MIB, "eth0": 5000}, {"mlx5_1:1": 700, "eth0": 9 * MIB}


def test_a_launch_whose_messages_took_the_adapter_is_good(tmp_path: Path) -> None:
    found = outcome(tmp_path, "point to point", USED, USED)
    assert found.state is State.OK
    assert (found.facts[OF_ADAPTER], found.facts[OF_OTHERS]) == (9 * MIB, 5000)


@pytest.mark.parametrize("layer", ["network", "point to point", "collective", "application"])
def test_a_launch_that_fell_back_to_tcp_is_invalid(tmp_path: Path, layer: str) -> None:
    found = outcome(tmp_path, layer, USED, IDLE)
    assert found.state is State.INVALID
    assert found.error == (
        "the messages did not take mlx5_1:1: on n2 it counted 700 B during the launch,"
        " eth0 9,437,184 B"
    )


@pytest.mark.parametrize(
    ("layer", "networks", "wall_s"),
    [
        ("memory", IDLE, 1.0),  # no messages
        ("compute", {"mlx5_1:1": 700, "eth0": 90_000}, 1.0),  # few, and not elsewhere
        ("point to point", {"mlx5_1:1": 9000, "eth0": 9 * MIB}, 1.0),
        ("point to point", {"eth0": 9 * MIB}, 1.0),  # an adapter that does not count
    ],
)
def test_what_proves_nothing_condemns_no_launch(
    tmp_path: Path, layer: str, networks: Mapping[str, int], wall_s: float
) -> None:
    found = outcome(tmp_path, layer, USED, networks, wall_s=wall_s)
    assert found.state is State.OK


def test_datagrams_of_a_long_launch_are_no_messages(tmp_path: Path) -> None:
    quiet = {"mlx5_1:1": 900_000, "eth0": 900 * MIB}
    assert outcome(tmp_path, "application", quiet, quiet, wall_s=1800).state is State.INVALID
    assert outcome(tmp_path, "application", quiet, quiet, wall_s=60).state is State.OK


def test_one_host_has_no_messages_to_count(tmp_path: Path) -> None:
    assert outcome(tmp_path, "point to point", IDLE).state is State.OK
