"""What perftest's programs (ib_write_bw and its kin) print, or write as their report files."""

from __future__ import annotations

from functools import partial

from paribus.core import Reading, of_tool
from paribus.readers.heads import Head
from paribus.readers.reader import Reader
from paribus.tools.readers.perftest_json import of_json
from paribus.tools.readers.perftest_text import of_text

PROGRAMS = {
    "ib_write_bw": ("RDMA_Write", "bw"),
    "ib_write_lat": ("RDMA_Write", "lat"),
    "ib_send_bw": ("Send", "bw"),
    "ib_send_lat": ("Send", "lat"),
    "ib_read_bw": ("RDMA_Read", "bw"),
    "ib_read_lat": ("RDMA_Read", "lat"),
}
"""By program the operation in its title, and whether it measures bandwidth or latency."""

VERSIONS = "4.4 to 26.04"
_PROOF = (
    "title, settings and heading once, every size asked for, queue pairs, connection and iterations"
    " as asked;"
)
_AGREE = {
    "bw": " size times message rate is the bandwidth",
    "lat": " minimum, median, percentiles and maximum in order",
}
_MEANS = {
    "bw": "MiB = 2^20, whatever the label says; the average over all iterations, never the peak",
    "lat": (
        "half the round trip (of a read the whole), median of the iterations; with -D there are"
        " means only, another statistic; t_stdev is cut to whole us and not used"
    ),
}
_NAMES = {"bw": "BW", "lat": "Latency"}


def read(program: str, verb: str, kind: str, text: str) -> Reading:
    """Return the reading of a program's output, or of its report file."""
    of = of_json if "test_info" in text else of_text
    return of(program, verb, kind, text)


def _marks(verb: str, name: str) -> tuple[str, ...]:
    """Return the titles as they are in the text, where they are indented, and in a report file."""
    found = []
    for both in ("", "Bidirectional "):
        for posted in ("", "Post List "):
            title = f"{verb} {both}{posted}{name} Test"
            found += [f"\n{'':20}{title}", f'"{title.replace(" ", "_")}"']
    return tuple(found)


_ABOVE = (
    r"-{80,100}|WARNING: .*|Perftest doesn't .*|initializing CUDA|Listing all CUDA devices.*"
    r"|CUDA device \d+: .*|Picking device No\. .*|\[pid = \d+, dev = \d+\] .*|creating CUDA Ctx"
    r"|making it the current CUDA Ctx|cuMemAlloc.*|allocated .*GPU buffer .*|Using .*GPU.*"
    r"|\*{20,}|\* Waiting for client to connect\.\.\. \*"
)


def _heads(verb: str, name: str) -> tuple[Head, ...]:
    """Return the heads of an output and of a report file."""
    title = rf"{verb} (?:Bidirectional )?(?:Post List )?{name} Test"
    report = rf'"?test_info"?: *\{{\s*"?test"?: *"{title.replace(" ", "_")}"'
    return (
        Head(verb, rf"{title} *(?=\n|\Z)", above=_ABOVE, indent=20),
        Head("{", report),
    )


READERS = {
    program: Reader(
        program,
        partial(read, program, verb, _NAMES[kind]),
        marks=_marks(verb, _NAMES[kind]),
        heads=_heads(verb, _NAMES[kind]),
        complaints=("Unable to find the Infiniband/RoCE device",),
        versions=VERSIONS,
        proof=_PROOF + _AGREE[kind],
        means=_MEANS[kind],
        facts=(
            of_tool(
                "perftest.link_type",
                "perftest.transport_type",
                "perftest.mtu",
                reason="another kind of link, or packets of another size",
                follows=("rdma.*", "net.*"),
            ),
            of_tool(
                "perftest.tx_depth",
                reason="how many messages are under way decides what a rate or a latency means",
            ),
        ),
    )
    for program, (verb, kind) in PROGRAMS.items()
}
