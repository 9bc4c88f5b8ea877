"""Stand-in for GPUs: what the links of a server carry, predicted from its PCIe tree, not measured.

Each launch reads the tree that the server's operating system finds then. Its figures are arithmetic
over stated capacities (docs/topology.md), so the metric is named `predicted`.
"""

import json
import sys
from pathlib import Path

from paribus.core import (
    Benchmark,
    Case,
    Metric,
    Parameter,
    Parsed,
    ParseError,
    Program,
    Request,
    Sample,
)

PREDICTED = Metric("predicted", "GB/s", "higher")
LOADS = ("p2p", "host-to-device", "ring-allreduce")


def load(value: object) -> str:
    """Return a load of `paribus topology predict`; raises ValueError for another."""
    if value not in LOADS:
        raise ValueError(f"use one of {', '.join(LOADS)}")
    return str(value)


def server(value: object) -> str:
    """Return a host, or the root of a /sys beside this file; raises ValueError."""
    if not isinstance(value, str) or not value or value.startswith("-"):
        raise ValueError('name a host, or the root of a /sys: "bmc/host"')
    return str(Path(__file__).parent.absolute() / value) if "/" in value else value


def command(request: Request) -> Program:
    words = ("topology", "predict", request.parameters["server"])
    wanted = ("--load", request.parameters["load"], "--json")
    return Program((sys.executable, "-m", "paribus", *words, *wanted), mpi=False)


def parse(stdout: str, request: Request) -> Parsed:
    """Return one sample per figure in GB/s; demands that they are said to be predicted."""
    try:
        table = json.loads(stdout)
        rows = [row for row in table["predicted"] if row["unit"] == "GB/s"]
        said = table["measured"], [row["load"] for row in rows], table["trees"]
        wanted = False, [request.parameters["load"]] * len(rows), [request.parameters["server"]]
        if said != wanted or not rows:
            raise ParseError(f"expected predictions of {wanted}, got {said}")
        samples = [
            Sample("predicted", Case.of(of=row["of"].replace(" ", "-")), tuple(row["values"]))
            for row in rows
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise ParseError(f"expected JSON of `paribus topology predict`: {error}") from None
    return Parsed(tuple(samples))


BENCHMARK = Benchmark(
    "pcie_stand_in",
    "gpu",
    "stand-in for GPUs: bandwidth predicted from the PCIe tree",
    (PREDICTED,),
    command,
    parse,
    parameters={
        "load": Parameter("p2p", load, "what is predicted"),
        "server": Parameter(None, server, "the server whose tree is read", required=True),
    },
    ranks=1,
)
