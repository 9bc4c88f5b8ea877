"""The calls of an application, replayed without it: what a forecast rests on (docs/profile.md)."""

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
"""Characters of the text of a skeleton, and what its expansion may take besides."""


def calls(value: Any) -> str:
    """Return a skeleton as profiles and plans hold it, base64 of xz; else raises ValueError."""
    expanded(word(value))
    return str(value)


def expanded(value: str) -> str:
    """Return the text of a skeleton; raises ValueError for anything else, and for a large one."""
    try:
        one = lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=MOST * 2)
        text = one.decompress(base64.b64decode(value, validate=True), MOST)
        if not one.eof or not text.startswith(b"paribus-calls 1 "):
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
    text = expanded(asked["calls"]) if asked["calls"] else ""  # none where it is only listed
    if text:
        need_ranks(request, NAME, exactly=int(text.split(" ", 3)[2]))
    argv = ["--ranks", str(request.ranks), "--application", str(asked["application"])]
    for key in ("samples", "delay_share"):
        if asked[key] is not None:
            argv += [f"--{key.replace('_', '-')}", str(asked[key])]
    return Program((*argv, "--file", FILE), NAME, files={FILE: text})


_SAID = "by `profile`: "
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
        "application": Parameter(None, word, f"{_SAID}the program", required=True),
        "calls": Parameter(None, calls, f"{_SAID}its skeleton", required=True),
        "seconds": Parameter(None, positive_time, f"{_SAID}how long that took", required=True),
        "computing": Parameter(None, share, f"{_SAID}share of its time outside MPI", required=True),
        "spread": Parameter(0.0, share, f"{_SAID}how far its runs were apart"),
        "machine": Parameter("", str, f"{_SAID}where it was taken"),
        "samples": Parameter(None, positive, "replays per launch at most, instead of 10"),
        "delay_share": Parameter(None, share, "wait this share of a replay: a known answer"),
    },
    ranks=2,
)
