"""Outputs of Paribus' own kernels, read by what they say of themselves.

`parse` of a kernel checks an output against what was asked for; a log that lies about has no
request, so it is made of the first line, which echoes every argument.
"""

from __future__ import annotations

import json

from paribus.benchmarks import get
from paribus.errors import ParseError, UserError
from paribus.model import Reading, Request, Scalar

MARK = '{"paribus_kernel": '
TOOL = "a kernel of Paribus"


def read(text: str) -> Reading:
    """Return what a kernel printed; raises ParseError for anything but a whole output."""
    at = text.find(MARK)
    if at < 0:
        raise ParseError("the kernel printed nothing: no first line")
    line = text.count("\n", 0, at) + 1
    try:
        header, _ = json.JSONDecoder().raw_decode(text, at)
        benchmark = get(str(header["kernel"]))
        said = {**header["args"], "like": header.get("like")}
        ranks, version = int(header["ranks"]), str(header["version"])
        if "bytes" in benchmark.parameters:
            said["bytes"] = [int(size) for size in said["bytes"]]
    except UserError as error:
        raise ParseError(f"{error.place[:80]} is no kernel of Paribus", line=line) from error
    except (
        AttributeError,
        KeyError,
        OverflowError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        cause = f"not a whole first line of a kernel: {error!r}"
        raise ParseError(cause[:240], line=line) from error
    names = {name: value for name, value in said.items() if name in benchmark.parameters}
    parsed = benchmark.parse(text, Request(names, ranks))
    parameters: dict[str, Scalar] = {
        name: value
        for name, value in said.items()
        if name not in ("bytes", "libraries") and isinstance(value, str | int | float)
    }
    return Reading(benchmark.name, version, parameters, ranks, parsed.samples, parsed.facts)
