"""Storage: files written and read by all ranks, and small files, by a kernel of ours."""

from __future__ import annotations

from typing import Any

from paribus.benchmarks.own import native
from paribus.benchmarks.parameters import folder, one_of, positive
from paribus.core import Metric, Parameter, parse_bytes


def _blocks(value: Any) -> int:
    """Return a number of bytes that O_DIRECT accepts: a multiple of 4 KiB."""
    found = parse_bytes(value)
    if found < 4096 or found % 4096:
        raise ValueError("use a multiple of 4 KiB")
    return found


BENCHMARK = native(
    "storage",
    "files written and read by all ranks, in order and at random; many small files",
    Metric("bandwidth", "MB/s", "higher", margin=0.05),
    Metric("rate", "1/s", "higher", margin=0.05),
    layer="storage",
    samples=3,
    intervals=True,
    extra={
        "directory": Parameter(
            None, folder, "where the files lie, instead of PARIBUS_DIRECTORY or the scratch folder"
        ),
        "access": Parameter(
            "file-per-rank", one_of("file-per-rank", "shared-file"), "a file for each rank, or one"
        ),
        "mode": Parameter(
            "buffered",
            one_of("buffered", "direct"),
            "through the page cache, or past it (O_DIRECT)",
        ),
        "size": Parameter(64 << 20, _blocks, "bytes of each rank"),
        "transfer": Parameter(1 << 20, _blocks, "bytes of a write or read in order"),
        "random": Parameter(4096, _blocks, "bytes of a write or read at a random place"),
        "operations": Parameter(500, positive, "writes and reads at random places, of each rank"),
        "files": Parameter(500, positive, "empty files of each rank"),
    },
)
