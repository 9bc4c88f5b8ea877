"""IOR: parallel writing and reading of files."""

from __future__ import annotations

from paribus.benchmarks.parameters import flag, folder, one_of, positive
from paribus.benchmarks.tool import options, path_or, tool
from paribus.core import Case, Metric, Parameter, Program, Request, parse_bytes
from paribus.tools.readers.ior import READER


def command(request: Request) -> Program:
    """Return IOR's command line, its files in the launch's own directory."""
    asked = request.parameters
    directory = asked["directory"] or "{scratch}"
    sizes = {"api": "-a", "block": "-b", "transfer": "-t", "segments": "-s", "repetitions": "-i"}
    argv = [path_or(request, "ior"), *options(request, sizes), "-w", "-r"]
    argv += ["-F"] if asked["access"] == "file-per-process" else []
    argv += options(request, {"fsync": "-e", "reorder": "-C", "direct": "--posix.odirect"})
    return Program((*argv, "-o", f"{directory}/paribus-ior-{{port}}"))


def cases(request: Request) -> list[tuple[str, Case]]:
    """Return both directions."""
    return [("bandwidth", Case.of(op=op)) for op in ("write", "read")]


BENCHMARK = tool(
    READER,
    layer="storage",
    summary="IOR: all ranks write a file, then read it, one value for each repetition",
    metrics=(Metric("bandwidth", "MiB/s", "higher"), Metric("iops", "1/s", "higher")),
    command=command,
    cases=cases,
    optional=("iops",),
    parameters={
        "api": Parameter("POSIX", one_of("POSIX", "MPIIO"), "-a"),
        "block": Parameter(16777216, parse_bytes, "-b: bytes of each rank in a segment"),
        "transfer": Parameter(1048576, parse_bytes, "-t: bytes of one read or write"),
        "segments": Parameter(1, positive, "-s"),
        "repetitions": Parameter(3, positive, "-i"),
        "access": Parameter(
            "file-per-process",
            one_of("file-per-process", "single-shared-file"),
            "-F, or one file for all",
        ),
        "fsync": Parameter(True, flag, "-e: writing ends when the file system has the data"),
        "reorder": Parameter(True, flag, "-C: each rank reads what another node wrote"),
        "direct": Parameter(False, flag, "O_DIRECT: past the page cache"),
        "directory": Parameter(None, folder, "the file system, instead of the scratch folder"),
    },
    program="ior",
    get="https://github.com/hpc/ior: ./bootstrap && ./configure && make",
)
