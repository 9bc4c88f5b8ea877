"""HPC Challenge: seven benchmarks in one program, which exits 0 whatever happened."""

from __future__ import annotations

import math
import re

from paribus.benchmarks import _linpack
from paribus.benchmarks._parameters import positive, threads
from paribus.benchmarks._tool import count, figure, line_at, line_of, once, refuse, tool
from paribus.errors import UserError
from paribus.model import (
    Case,
    Metric,
    Parameter,
    Program,
    Reading,
    Request,
    Sample,
    Scalar,
)

_TITLE = "HPC Challenge Benchmark version "
_VERSION = re.compile(r"(\d+\.\d+\.\d+)\s")
_PAIR = re.compile(r"^(\w+)=(\S*)[ \t]*$", re.M)
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


def command(request: Request) -> Program:
    """Return hpcc with an hpccinf.txt made of the parameters; it writes hpccoutf.txt."""
    asked = request.parameters
    n, nb, p, q = ([asked[key]] for key in ("n", "nb", "p", "q"))
    _linpack.check_grid(request, "hpcc", p, q)
    if request.ranks < 2:
        raise UserError(
            "one rank has no other to exchange messages with, and HPCC measures that as well",
            place="hpcc: ranks = 1",
            mend="ask for two or more, with p times q as many",
        )
    text = _linpack.input_file(n, nb, p, q, device=8) + (
        "##### this line is a separator #####\n"
        "0 Number of additional problem sizes for PTRANS\n1200 values of N\n"
        "0 number of additional blocking sizes for PTRANS\n64 values of NB\n"
    )
    files = {"hpccinf.txt": text}
    return _linpack.program(request, "hpcc", files=files, outputs=("hpccoutf.txt",))


def read(text: str) -> Reading:
    """Return what stands in hpccoutf.txt; raises ParseError with the line."""
    for mark in ("cannot open file hpccinf.txt", ">>> Need at least", ">>> Illegal input"):
        if (at := text.find(mark)) >= 0:
            refuse(f"HPCC says {line_at(text, at).strip()[:100]!r}", line_of(text, at))
    start = once(text, _TITLE, "the title of HPCC") + len(_TITLE)
    version = _VERSION.match(text, start)
    if version is None:
        refuse("the version of HPCC is missing", line_of(text, start))
    section = once(text, "Begin of HPL section.")
    said = _linpack.settings(text, section)
    rows = _linpack.rows(text, section, said)
    values, line = _summary(text)
    if values.get("Success") != "1":
        refuse(f"Success={values.get('Success', '')}: one of the benchmarks failed")
    ranks = count(values.get("CommWorldProcs", ""), line.get("CommWorldProcs", 0))
    parameters: dict[str, Scalar] = {}
    for key, name in (("n", "HPL_N"), ("nb", "HPL_NB"), ("p", "HPL_nprow"), ("q", "HPL_npcol")):
        parameters[key] = count(values.get(name, ""), line.get(name, 0))
    if not any([r.n, r.nb, r.p, r.q] == list(parameters.values()) for r in rows):
        refuse("no row of HPL has the N, NB, P and Q of the summary")
    # Without OpenMP in it, hpcc says 1 of STREAM however many threads the BLAS has.
    if values.get("omp_get_max_threads") != "0":
        said_threads = values.get("STREAM_Threads", "")
        parameters["threads"] = count(said_threads, line.get("STREAM_Threads", 0))
    samples = []
    for metric, (name, factor) in _VALUES.items():
        if name not in values:
            refuse(f"{name} is missing in the summary")
        value = figure(values[name], line[name]) * factor
        samples.append(Sample(metric, Case(), (value,)))
    _check(text, values, line)
    return Reading("hpcc", version[1], parameters, ranks, tuple(samples), _linpack.cores(text))


def _summary(text: str) -> tuple[dict[str, str], dict[str, int]]:
    """Return the pairs of the summary, and their lines; refuses one that is there twice."""
    begin = once(text, "Begin of Summary section.")
    end = once(text, "End of Summary section.")
    once(text, "End of HPC Challenge tests.")
    if end < begin:
        refuse("the end of the summary is before its beginning", line_of(text, end))
    first = line_of(text, begin)
    values: dict[str, str] = {}
    line: dict[str, int] = {}
    for number, row in enumerate(text[begin:end].split("\n")[1:-1], first + 1):
        pair = _PAIR.match(row)
        if pair is None or pair[1] in values:
            refuse(f"expected a new NAME=VALUE, got {row[:60]!r}", number)
        values[pair[1]], line[pair[1]] = pair[2], number
    return values, line


def _check(text: str, values: dict[str, str], line: dict[str, int]) -> None:
    """Refuse figures that contradict each other, and checks that were not passed."""
    tflops, seconds = (
        figure(values.get(k, ""), line.get(k, 0)) for k in ("HPL_Tflops", "HPL_time")
    )
    work = _linpack.operations(int(values["HPL_N"])) * 1e-12
    if not math.isclose(tflops * seconds, work, rel_tol=1e-4):
        refuse("HPL_Tflops times HPL_time is not the work of HPL_N", line["HPL_Tflops"])
    for unit in ("Latency_usec", "Bandwidth_GBytes"):
        least, mean, most = (
            figure(values.get(f"{which}PingPong{unit}", ""), line.get(f"AvgPingPong{unit}", 0))
            for which in ("Min", "Avg", "Max")
        )
        if not least <= mean * (1 + 1e-4) <= most * (1 + 2e-4):
            refuse(f"AvgPingPong{unit} is not between minimum and maximum")
    if not re.fullmatch(
        r"0(\.00\d*)?|\d(\.\d+)?e-\d+", values.get("MPIRandomAccess_ErrorsFraction", "")
    ):
        refuse("MPIRandomAccess had more than 1 % errors, or does not say how many")
    if (at := text.find(" FAILED ")) >= 0:
        refuse(f"a check failed: {line_at(text, at).strip()[:80]!r}", line_of(text, at))


BENCHMARK = tool(
    "hpcc",
    layer="compute",
    summary="HPC Challenge: HPL, DGEMM, STREAM, PTRANS, RandomAccess, FFT, ping-pong",
    metrics=(
        Metric("hpl", "Gflop/s", "higher"),
        Metric("dgemm", "Gflop/s", "higher"),
        Metric("stream_triad", "GB/s", "higher"),
        Metric("ptrans", "GB/s", "higher", margin=0.05),
        Metric("random_access", "GUP/s", "higher", margin=0.05),
        Metric("fft", "Gflop/s", "higher", margin=0.05),
        Metric("latency", "us", "lower", small_us=2.0),
        Metric("bandwidth", "GB/s", "higher"),
    ),
    reader=read,
    marks=(_TITLE,),
    command=command,
    parameters={
        "n": Parameter(4000, positive, "order of HPL's matrix; the other sizes follow from it"),
        "nb": Parameter(128, positive, "block size of HPL"),
        "threads": Parameter(1, threads, 'threads of each rank, or "all"'),
        "p": Parameter(1, positive, "rows of the process grid"),
        "q": Parameter(2, positive, "columns of the process grid; p times q is ranks"),
    },
    program="hpcc",
    get="Debian: apt install hpcc libopenblas0; https://hpcchallenge.org",
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
        " 2 MB; threads are those of STREAM, the BLAS does not tell its own"
    ),
)
