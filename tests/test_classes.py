"""The tables of classes and factors: complete, with a reason for everything, and nothing idle."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from paribus.audit.classes import UNCLASSED, classify, factors, rows
from paribus.benchmarks import BENCHMARKS
from paribus.core import CLASSES, LEVEL, Arm, Container, Request, Row, matches
from paribus.launch.arms import asked_of
from paribus.readers.known import TOOLS, facts_of, readers
from test_probes import keys_of

ROOT = Path(__file__).parent.parent
LAYERS = {b.layer for b in BENCHMARKS.values()} | {"compute", "storage", "network", "application"}
DEVICES = ("net.ethernet.0", "rdma.0", "gpu.0", "pci.nvme.0", "storage.disk.0")
OF_A_RANK = (
    "gate.reasons",
    *("rank.hosts", "rank.machines", "rank.affinity", "rank.cpu_s", "rank.involuntary"),
    *("mpi.library", "mpi.build_id", "mpi.transport", "kernel.build", "kernel.version"),
    *("container.engine", "container.network", "container.each", "kernel.skew_us.8 B"),
    *("kernel.cached.op=read", "kernel.written_by"),
    *("kernel.gpu.0.name", "kernel.gpu.0.address", "kernel.gpu.driver"),
    "kernel.gpu.direct.from=0, to=1",
    *("kernel.gpu.nccl", "kernel.gpu.cublaslt"),
    *("steal_s", "wall_s", "clock.tick_ns", "clock.cost_ns", "env.OMPI_MCA_btl", "env.OMP_PLACES"),
    *("env.LD_LIBRARY_PATH", "env.MKL_NUM_THREADS", "env.BLIS_NUM_THREADS"),
    *("probe.before.core_to_core_ns", "probe.after.clock_ghz", "probe.before.triad_gbps"),
    *("env.OMPI_MCA_coll_tuned_use_dynamic_rules", "env.HYDRA_TOPOLIB", "env.OMPI_MCA_plm"),
    *("env.APPTAINER_NAME", "env.SINGULARITY_NAME"),  # as apptainer 1.4.5 sets them
    *("env.OPENBLAS_CORETYPE", "env.OMPI_MCA_num_procs", "lib.blas.core", "lib.libblas.so.file"),
    *("lib.libmpi.so.file", "lib.libc.so.file", "lib.libz.so.file", "env.PMIX_PREFIX"),
    *("limits.nproc", "limits.hard.nproc", "storage.anything", "net.core.rmem_max", "os.lsm"),
    "limits.memlock",
    *("work.qe.iterations", "work.qe.energy_ry", "gpu.links", "launch.cpu_s", "launch.involuntary"),
    *("env.UCX_NET_DEVICES", "env.UCX_IB_GID_INDEX", "env.OMPI_MCA_btl_openib_if_include"),
    *("env.NCCL_IB_HCA", "adapter.link_layer", "printed.gromacs.GPU support"),
    *("load.during.rdma.retry_exceeded_err", "load.during.rdma.rcvd_seq_err"),
    *("load.during.rdma.symbol_error", "load.during.busy_s", "lib.libnccl.so.build_id"),
)
"""Keys that kernels and studies make, and some that stand in probes/keys.toml by their pattern."""


def documented() -> list[str]:
    """Return the keys of probes/keys.toml, the words in capitals filled in."""
    found = []
    for key in keys_of("outputs", "node", "study", "rank"):
        filled = key.replace("ROLE", "ethernet").replace("NAME", "x").replace(".N.", ".0.")
        devices = DEVICES if "DEVICE" in key else [""]
        found += [filled.replace("DEVICE", device) for device in devices]
    return found


def reported() -> dict[str, list[Any]]:
    """Return every fact that a reader of tools finds in the good fixtures, with its values."""
    found: dict[str, list[Any]] = {}
    for name, benchmark in BENCHMARKS.items():
        if benchmark.read is None:
            continue
        found[f"{name}.version"] = ["1"]  # what _tool.py adds
        for path in (ROOT / "tests" / "fixtures" / name).glob("good*.out"):
            for key, value in benchmark.read(path.read_text()).facts.items():
                found.setdefault(key, []).append(value)
    return found


def reported_by_kernels() -> set[str]:
    """Return every fact that the readers of kernels find in the good fixtures."""
    found: set[str] = set()
    for name, benchmark in BENCHMARKS.items():
        if benchmark.read is not None:
            continue
        for path in (ROOT / "tests" / "fixtures" / name).glob("good*.out"):
            asked = json.loads(path.with_suffix(".json").read_text())
            request = Request(asked["parameters"], asked["ranks"])
            found |= benchmark.parse(path.read_text(), request).facts.keys()
    return found


TOLD = reported()
OF_TOOLS: list[Row] = list({row.keys: row for file in TOOLS for row in facts_of(file)}.values())
KEYS = [*documented(), *OF_A_RANK, *sorted(TOLD.keys() - {*documented(), *OF_A_RANK})]


def test_the_documented_keys_are_found() -> None:
    assert len(documented()) > 200
    assert {"cpu.model", "net.ethernet.0.mtu", "gpu.0.pci.width", "env.unlisted"} <= set(
        documented()
    )


def test_what_a_study_asks_for_is_documented() -> None:
    arm = Arm("b", container=Container("namespace"), ranks_per_host=2)
    assert asked_of(arm, [arm]).keys() | {LEVEL, "kernel.build"} <= set(documented())


def test_every_documented_key_has_a_class() -> None:
    assert [key for key in KEYS if classify(key) is UNCLASSED] == []


def test_what_tools_report_has_a_class() -> None:
    """Over all good outputs: nothing is held equal merely because nobody thought of it."""
    assert [key for key in sorted(TOLD) if classify(key) is UNCLASSED] == []


def test_what_kernels_report_has_a_class() -> None:
    """`kernel.overlap.` had none, and withheld each verdict of a study with `overlap`."""
    reported = reported_by_kernels()
    assert {"kernel.overlap.8 B", "kernel.skew_us.8 B"} <= reported
    assert [key for key in sorted(reported) if classify(key) is UNCLASSED] == []
    assert classify("kernel.overlap.8 B").kind == "volatile"


def test_what_tools_measure_anew_is_not_held_equal() -> None:
    measured = [key for key in TOLD if key.endswith((".date", "_s", ".said"))]
    assert measured
    assert [key for key in measured if classify(key).kind != "volatile"] == []
    # A date, or a number with a fraction, is measured, but for the end that a computation came to.
    held = {key for key in TOLD if classify(key).kind == "identical"}
    odd = [key for key in held for value in TOLD[key] if isinstance(value, float) or _date(value)]
    assert odd == []


def _date(value: object) -> bool:
    return isinstance(value, str) and bool(re.search(r"\d:\d\d|20\d\d-", value))


@pytest.mark.parametrize(
    ("factor", "leader", "key"),
    [
        ("interconnect", "rdma.0.link_layer", "perftest.link_type"),
        ("interconnect", "net.ethernet.0.mtu", "perftest.mtu"),
        ("network", "net.congestion_control", "iperf3.congestion"),
        ("container", "rank.hosts", "ior.nodes"),
        ("instance", "gpu.0.model", "babelstream.device"),
        ("mpi", "mpi.library", "work.lammps.Temp"),
        ("library", "lib.libblas.so.build_id", "work.qe.energy_ry"),
    ],
)
def test_what_tools_report_can_follow_from_the_factor(factor: str, leader: str, key: str) -> None:
    assert key in TOLD
    assert matches(leader, factors()[factor].explains)
    assert classify(key).kind == "covaries"
    assert matches(leader, classify(key).follows)


def test_every_row_has_a_reason_and_a_known_class() -> None:
    for row in (*rows(), *OF_TOOLS):
        assert row.kind in CLASSES, row.keys
        assert len(row.reason.split()) >= 4, row.keys
        assert row.moves.keys() <= LAYERS | {"other"}, row.keys
        assert "other" in row.moves, row.keys
        assert set(row.moves.values()) <= {0, 1, 2, 3}, row.keys
        assert bool(row.follows) == (row.kind == "covaries"), row.keys
        assert row.notable is None or row.kind == "volatile", row.keys


def test_no_row_is_idle() -> None:
    """Each decides about a documented key: it matches one that no row before it does."""
    deciding = {classify(key).keys for key in KEYS}
    idle = [row.keys for row in (*rows(), *OF_TOOLS) if row.keys not in deciding]
    assert idle == []


def test_what_only_a_tool_gives_is_classed_by_its_reader() -> None:
    """A new tool needs no row in the table of classes, and none there is of a tool."""
    assert len(OF_TOOLS) >= 9
    names = {key.removeprefix("work.").partition(".")[0] for row in rows() for key in row.keys}
    assert names & {*TOOLS, *readers()} == {"ucx"}  # the library, which is no tool
    for file, several in TOOLS.items():
        own = {file, *several}
        keys = {key.removeprefix("work.") for row in facts_of(file) for key in row.keys}
        assert {key.partition(".")[0] for key in keys} <= own


def test_a_fact_that_nobody_has_classed_must_be_equal() -> None:
    row = classify("something.entirely.new")
    assert row.kind == "identical"
    assert row.likely(["point to point"]) > 0


def test_what_moves_a_figure_depends_on_what_is_measured() -> None:
    blas = classify("lib.libblas.so.build_id")
    assert blas.likely(["compute"]) == 3
    assert blas.likely(["point to point"]) == 0
    assert blas.likely(["point to point", "compute"]) == 3
    mtu = classify("net.ethernet.0.mtu")
    assert mtu.likely(["collective"]) > mtu.likely(["memory"])


def test_other_gpus_are_what_other_hardware_is() -> None:
    for name in ("instance", "cluster"):
        explains = factors()[name].explains
        assert all(matches(f"kernel.gpu.{key}", explains) for key in ("0.name", "driver"))
        assert not matches("kernel.gpu.runtime", explains), "that is software"
    assert classify("kernel.gpu.0.address").kind == classify("gpu.0.address").kind == "identity"


def test_shipped_factors_are_documented_and_explain_known_keys() -> None:
    text = (ROOT / "docs" / "audit.md").read_text()
    for name, factor in factors().items():
        assert f"`{name}`" in text
        assert len(factor.reason.split()) >= 4
        for pattern in factor.explains:
            assert any(matches(key, [pattern]) for key in KEYS), f"{name}: {pattern}"


def test_each_factor_leaves_something_to_be_equal() -> None:
    for factor in factors().values():
        held = [key for key in KEYS if classify(key).kind == "identical"]
        assert any(not matches(key, factor.explains) for key in held), factor.name
