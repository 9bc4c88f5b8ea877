"""Programs of libfabric: fi_pingpong, and those of fabtests."""

from __future__ import annotations

from functools import partial

from paribus.benchmarks.parameters import matching, one_of, positive
from paribus.benchmarks.tool import options, path_or, tool
from paribus.core import Case, Metric, Parameter, Program, Request
from paribus.tools.readers.fabtests import READERS

SIZES = (64, 256, 1024, 4096, 65536, 1048576)
"""What the programs measure unless they are asked for all sizes."""

_PROGRAMS = (
    *("fi_rdm_pingpong", "fi_rdm_tagged_pingpong", "fi_msg_pingpong", "fi_dgram_pingpong"),
    *("fi_rdm_bw", "fi_rdm_tagged_bw", "fi_msg_bw", "fi_rma_bw"),
)


def command(name: str, request: Request) -> Program:
    """Return client and server of a program."""
    asked = request.parameters
    program = path_or(request, asked.get("program", name))
    argv = (program, *options(request, {"provider": "-p", "iterations": "-I", "endpoint": "-e"}))
    client = (*argv, "-P", "{port}", "{server}")
    return Program(client, mpi=False, server=(*argv, "-B", "{port}"))


def cases(request: Request) -> list[tuple[str, Case]]:
    """Return a time at each size; a datagram holds those of 1 KiB at most."""
    asked = request.parameters
    whole = "dgram" not in (asked.get("endpoint"), *asked.get("program", "").split("_"))
    return [("time", Case.of(bytes=size)) for size in SIZES if whole or size <= 1024]


_provider = matching(".+", 'write the name of a provider, such as "tcp"')
_COMMON = {
    "provider": Parameter("tcp", _provider, "-p: of libfabric, as `fi_info` names it"),
    "iterations": Parameter(1000, positive, "-I: transfers of each size"),
}
_OWN = {
    "fi_pingpong": {"endpoint": Parameter("msg", one_of("msg", "rdm", "dgram"), "-e")},
    "fabtests": {"program": Parameter("fi_rdm_pingpong", one_of(*_PROGRAMS), "which of them")},
}
_SUMMARIES = {
    "fi_pingpong": "libfabric: half the round trip of a message",
    "fabtests": "libfabric: the time of a transfer, by the program that is named",
}
BENCHMARKS = tuple(
    tool(
        READERS[name],
        layer="network",
        summary=summary,
        metrics=(Metric("time", "us", "lower", small_us=2.0),),
        command=partial(command, name),
        cases=cases,
        parameters={**_COMMON, **_OWN[name]},
        ranks=1,
        program=name if name == "fi_pingpong" else "fi_rdm_pingpong",
        get="Debian, Ubuntu: libfabric-bin; https://github.com/ofiwg/libfabric: fabtests",
    )
    for name, summary in _SUMMARIES.items()
)
