"""What HPC Challenge writes: seven benchmarks in one program, which exits 0 whatever happened."""

from __future__ import annotations

import math
import re
from collections.abc import Set

from paribus.core import Reading, Scalar
from paribus.readers.dates import SECONDS, date
from paribus.readers.figures import Fields
from paribus.readers.heads import Head
from paribus.readers.reader import Reader, single
from paribus.readers.text import begin, line_of, once, refuse, refuse_said
from paribus.tools.readers import linpack

_TITLE = "HPC Challenge Benchmark version "
_VERSION = re.compile(r"(\d+\.\d+\.\d+)\s")
_PAIR = re.compile(r"\n(\w+)=(\S*)[ \t]*(?=\n)")
_COMPLAINTS = ("cannot open file hpccinf.txt", ">>> Need at least", ">>> Illegal input")
_FEW = re.compile(r"0(\.00\d*)?|\d(\.\d+)?e-\d+")
"""A share of at most 1 %."""

# By metric: its name in the summary, and the factor to its unit.
_VALUES = {
    "hpl": ("HPL_Tflops", 1000.0),
    "dgemm": ("StarDGEMM_Gflops", 1.0),
    "stream_triad": ("StarSTREAM_Triad", 1.0),
    "ptrans": ("PTRANS_GBs", 1.0),
    "random_access": ("MPIRandomAccess_GUPs", 1.0),
    "fft": ("MPIFFT_Gflops", 1.0),
    "latency": ("AvgPingPongLatency_usec", 1.0),
    "bandwidth": ("AvgPingPongBandwidth_GBytes", 1.0),
}


def read(text: str) -> Reading:
    """Return the reading of hpccoutf.txt; raises ParseError with the line."""
    start = begin(text, _TITLE, "the title of HPCC", "HPCC", _COMPLAINTS) + len(_TITLE)
    version = _VERSION.match(text, start)
    if version is None:
        refuse("the version of HPCC is missing", line_of(text, start))
    section = once(text, "Begin of HPL section.")
    rows = linpack.rows(text, section, linpack.settings(text, section))
    summary = _summary(text)
    fields = Fields(text, summary, where=" in the summary")
    if summary.get("Success") != "1":
        refuse(f"Success={summary.get('Success', '')}: one of the benchmarks failed")
    ranks = fields.count("CommWorldProcs")
    parameters: dict[str, Scalar] = {
        key: fields.count(name)
        for key, name in (("n", "HPL_N"), ("nb", "HPL_NB"), ("p", "HPL_nprow"), ("q", "HPL_npcol"))
    }
    if not any([r.n, r.nb, r.p, r.q] == list(parameters.values()) for r in rows):
        refuse("no row of HPL has the N, NB, P and Q of the summary")
    # Without OpenMP in it, hpcc says 1 of STREAM however many threads the BLAS has.
    if summary.get("omp_get_max_threads") != "0":
        parameters["threads"] = fields.count("STREAM_Threads")
    # One rank alone has nobody to send to: hpcc prints -1 of all that it would measure.
    none = {name for name, value in summary.items() if ranks == 1 and value == "-1"}
    figures = {
        metric: fields.figure(name) * factor
        for metric, (name, factor) in _VALUES.items()
        if name not in none
    }
    _check(fields, none)
    return Reading("hpcc", version[1], parameters, ranks, single(**figures), linpack.cores(text))


def _summary(text: str) -> dict[str, str]:
    """Return the NAME=VALUE pairs of the summary; refuses one twice, and anything else in it."""
    begin = once(text, "Begin of Summary section.")
    end = once(text, "End of Summary section.")
    once(text, "End of HPC Challenge tests.")
    if end < begin:
        refuse("the end of the summary is before its beginning", line_of(text, end))
    pairs = _PAIR.findall(text, begin, end)
    summary = dict(pairs)
    # A pattern that finds whole lines finds as many as there are, or one is something else.
    if not len(summary) == len(pairs) == text.count("\n", begin, end) - 1:
        seen: set[str] = set()
        for number, row in enumerate(text[begin:end].split("\n")[1:-1], line_of(text, begin) + 1):
            pair = _PAIR.match(f"\n{row}\n")
            if pair is None or pair[1] in seen:
                refuse(f"expected a new NAME=VALUE, got {row[:60]!r}", number)
            seen.add(pair[1])
    return summary


def _check(fields: Fields, none: Set[str]) -> None:
    """Refuse figures that contradict each other, and checks that were not passed.

    `none` are the names without a figure.
    """
    tflops, seconds = fields.figure("HPL_Tflops"), fields.figure("HPL_time")
    work = linpack.operations(fields.count("HPL_N")) * 1e-12
    if not math.isclose(tflops * seconds, work, rel_tol=1e-4):
        refuse("HPL_Tflops times HPL_time is not the work of HPL_N")
    for unit in ("Latency_usec", "Bandwidth_GBytes"):
        names = [f"{of}PingPong{unit}" for of in ("Min", "Avg", "Max")]
        if none >= set(names):
            continue
        least, mean, most = map(fields.figure, names)
        if not least <= mean * (1 + 1e-4) <= most * (1 + 2e-4):
            refuse(f"AvgPingPong{unit} is not between minimum and maximum")
    if not _FEW.fullmatch(fields.words.get("MPIRandomAccess_ErrorsFraction", "")):
        refuse("MPIRandomAccess had more than 1 % errors, or does not say how many")
    refuse_said(fields.text, (" FAILED ",), "a check failed:")


READER = Reader(
    "hpcc",
    read,
    marks=(_TITLE,),
    heads=(
        Head(
            "This is the DARPA/DOE HPC Challenge Benchmark version ",
            above=linpack.BEFORE,
            holds=("HPLinpack ", "HPLinpack "),
        ),
    ),
    complaints=("cannot open file hpccinf.txt", ">>> Need at least "),
    versions="1.4 and 1.5",
    proof=(
        "title, all sections and both end marks once, Success=1, HPL's residual below the limit"
        " and PASSED, HPL_N, HPL_NB, grid and CommWorldProcs as asked, HPL_Tflops times HPL_time"
        " equal to the operations of N, at most 1 % of RandomAccess wrong"
    ),
    means=(
        "dgemm and stream_triad are per rank with all ranks at work; small N leaves STREAM in the"
        " caches; hpl and dgemm measure the BLAS that the loader found (fact lib.blas.core, where"
        " OpenBLAS says it); latency and bandwidth are means over ping-pongs of pairs with 8 B and"
        " 2 MB; threads are those of STREAM, the BLAS does not report its own"
    ),
    dates=(date("Current time (", r"Current time \((\d{9,11})\) is ", SECONDS),),
)
