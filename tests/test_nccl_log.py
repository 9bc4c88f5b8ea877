"""What NCCL's debug log says of a launch, and what the audit makes of a silent fall-back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from paribus.probes.nccl_log import nccl_facts
from studies import paribus, write_study

LOGS = Path(__file__).parent / "fixtures" / "nccl_log"


def of(name: str) -> dict[str, Any]:
    return nccl_facts((LOGS / f"{name}.log").read_text())


def test_what_carried_the_channels_and_what_was_chosen() -> None:
    assert of("ib") == {
        "nccl.network": ["IBext_v8"],
        "nccl.transports": ["NET/IBext_v8/GDRDMA", "P2P/CUMEM/read"],
        "nccl.nics": ["mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"],
        "nccl.channels": [16],
        "nccl.choices": [
            "from 4 B: TREE LL",
            "from 65536 B: TREE LL128",
            "from 1048576 B: RING SIMPLE",
        ],
    }
    assert of("node")["nccl.choices"] == [
        "AllReduce from 4096 B: TREE LL, 2 channels",
        "AllReduce from 8388608 B: RING LL128, 16 channels",
        "AllReduce from 268435456 B: NVLS SIMPLE, 16 channels",
    ]
    assert of("rccl")["nccl.transports"] == ["SHM/direct/direct"]
    assert nccl_facts("no line of NCCL's\nNCCL INFO\n") == {}


def test_a_network_of_two_words_and_an_adapter_of_another_rank() -> None:
    """By net.cc: the name that a plugin gives itself, and PXN, where a rank sends for others."""
    head = "node1:10:20 [0] NCCL INFO"
    ways = ("NET/AWS Libfabric/0/GDRDMA", "NET/AWS Libfabric/3(6)/GDRDMA/Shared")
    lines = [f"{head} Channel 00/0 : 0[0] -> 8[0] [send] via {way}" for way in ways]
    lines += [
        f"{head} NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>",
        f"{head} Channel 01/0 : 1[1] -> 9[1] [send] via NET/IB/1(0)/GDRDMA(PCI)",
        f"{head} Channel 01/0 : 1[1] -> 2[2] via P2P/indirect/3[3] comm 0x55 nRanks 16",
    ]
    assert nccl_facts("\n".join(lines)) == {
        "nccl.transports": [
            "NET/AWS Libfabric/GDRDMA",
            "NET/AWS Libfabric/PXN/GDRDMA/Shared",
            "NET/IB/PXN/GDRDMA(PCI)",
            "P2P/indirect",
        ],
        "nccl.nics": ["device 3", "mlx5_0", "mlx5_1"],
    }


def test_tags_of_launchers_and_torn_lines_cost_a_line_each() -> None:
    lines = (LOGS / "ib.log").read_text().splitlines()
    tagged = "\n".join(f"[1,{n % 4}]<stdout>:{line}" for n, line in enumerate(lines))
    assert nccl_facts(tagged) == of("ib")
    for n, line in enumerate(lines):
        torn = nccl_facts("\n".join([*lines[:n], line[: len(line) // 2], *lines[n + 1 :]]))
        assert torn.keys() <= of("ib").keys()
        assert set(torn["nccl.transports"]) <= set(of("ib")["nccl.transports"])


@pytest.mark.slow
def test_a_silent_fall_back_withholds_the_verdict(tmp_path: Path) -> None:
    """The factor, a setting of NCCL, explains no transport."""
    arms = "".join(
        f'[arms.{arm}]\nenv = {{ NCCL_DEBUG = "INFO", NCCL_IB_HCA = "{log}" }}\n'
        for arm, log in (("all", "ib"), ("one", "one_nic"), ("none", "socket"))
    )
    script = f"cat {LOGS}/$NCCL_IB_HCA.log >&2; echo 2.5"
    path = write_study(tmp_path, script=script, arms=arms, plan="blocks = 8")
    paribus("run", str(path), "--out", "o", cwd=tmp_path, code=3)
    table = json.loads((tmp_path / "o" / "verdict.json").read_text())
    wrong = {
        (one["key"], one["arm"])
        for one in table["differences"]
        if one["kind"] == "unexplained" and one["key"].startswith("nccl.")
    }
    assert wrong == {
        ("nccl.nics", "one"),
        *((f"nccl.{what}", "none") for what in ("nics", "network", "transports")),
    }
    assert table["facts"]["all"]["nccl.channels"] == [16]
