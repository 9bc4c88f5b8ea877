"""Replaying the MPI calls of an application without it, for forecasts (docs/profile.md).

The skeleton, base64 of xz, is a text that begins with "paribus-calls 1 RANKS".
"""

from __future__ import annotations

import base64
import binascii
import lzma
from functools import partial
from typing import Any

from paribus.benchmarks.asked import parse
from paribus.benchmarks.parameters import need_ranks, positive, word
from paribus.core import Benchmark, Metric, Parameter, Program, Request
from paribus.readers.kernel import READER, cases_of

NAME = "replay"
FILE = "calls.txt"

MOST = 64 << 20
"""The most characters of the text of a skeleton; decompressing may take as many bytes again."""


def calls(value: Any) -> str:
    """Return a skeleton, base64 of xz, as it is; raises ValueError if it is none."""
    expanded(word(value))
    return str(value)


def expanded(value: str) -> str:
    """Return the text of a skeleton; raises ValueError if it is none, or larger than MOST."""
    try:
        decompressor = lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=MOST * 2)
        text = decompressor.decompress(base64.b64decode(value, validate=True), MOST)
        if not decompressor.eof or not text.startswith(b"paribus-calls 1 "):
            raise ValueError
        return text.decode("ascii")
    except (lzma.LZMAError, binascii.Error, ValueError):
        fix = 'write profile = "FILE" at the top of the study, with what `paribus profile` wrote'
        raise ValueError(f"it is no skeleton of calls: {fix}") from None


def positive_time(value: Any) -> float:
    """Return seconds above 0; raises ValueError for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
        raise ValueError("use a time above 0, in seconds")
    return float(value)


def share(value: Any) -> float:
    """Return a number from 0 to 1; raises ValueError for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError("a share is a number from 0 to 1")
    return float(value)


def command(request: Request) -> Program:
    """Return the command line; raises UserError for other ranks than those of the profile."""
    asked = request.parameters
    text = expanded(asked["calls"]) if asked["calls"] else ""  # "" if it is only listed
    if text:
        need_ranks(request, NAME, exactly=int(text.split(" ", 3)[2]))
    argv = ["--ranks", str(request.ranks), "--application", str(asked["application"])]
    for key in ("samples", "delay_share"):
        if asked[key] is not None:
            argv += [f"--{key.replace('_', '-')}", str(asked[key])]
    return Program((*argv, "--file", FILE), NAME, files={FILE: text})


_BY = "by `profile`: "
BENCHMARK = Benchmark(
    name=NAME,
    layer="application",
    summary="the calls of an application in their order, with computation of equal length between",
    metrics=(Metric("time", "s", "lower"),),
    command=command,
    parse=partial(
        parse,
        READER,
        benchmark=NAME,
        version="kernel.version",
        cases=lambda request: cases_of(NAME, request.parameters, request.ranks),
        echoed=frozenset({"application", "samples", "delay_share"}),
    ),
    parameters={
        "application": Parameter(None, word, f"{_BY}the program", required=True),
        "calls": Parameter(None, calls, f"{_BY}its skeleton", required=True),
        "seconds": Parameter(None, positive_time, f"{_BY}how long that took", required=True),
        "computing": Parameter(None, share, f"{_BY}share of its time outside MPI", required=True),
        "spread": Parameter(0.0, share, f"{_BY}how far its runs were apart"),
        "machine": Parameter("", str, f"{_BY}where it was taken"),
        "samples": Parameter(None, positive, "replays per launch at most, instead of 10"),
        "delay_share": Parameter(None, share, "wait this share of a replay: a known answer"),
    },
    ranks=2,
)
