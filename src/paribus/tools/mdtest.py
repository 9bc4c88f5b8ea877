"""mdtest: how many files and directories a file system makes, stats, reads and removes."""

from __future__ import annotations

from paribus.benchmarks.parameters import folder, one_of, positive
from paribus.benchmarks.tool import options, path_or, tool
from paribus.core import Case, Metric, Parameter, Program, Request
from paribus.tools.readers.mdtest import NAMES, OWN, READER


def command(request: Request) -> Program:
    """Return mdtest's command line, its tree in the launch's own directory."""
    asked = request.parameters
    directory = asked["directory"] or "{scratch}"
    argv = [path_or(request, "mdtest"), *options(request, {"items": "-n", "iterations": "-i"})]
    argv += {"all": [], "files": ["-F"], "directories": ["-D"]}[asked["kind"]]
    return Program((*argv, "-u", "-d", f"{directory}/paribus-mdtest-{{port}}"))


def cases(request: Request) -> list[tuple[str, Case]]:
    """Return the operations that are asked for; `rename` is not in mdtest before 3.3."""
    kinds = ("directories", "files")
    asked = kinds if request.parameters["kind"] == "all" else (request.parameters["kind"],)
    found = [f"{NAMES[kind].lower()} {word}" for kind in asked for word in OWN[kind]]
    return [("rate", Case.of(op=op)) for op in (*found, "tree creation", "tree removal")]


BENCHMARK = tool(
    READER,
    layer="storage",
    summary="mdtest: files and directories made, looked up, read and removed per second",
    metrics=(Metric("rate", "ops/s", "higher", margin=0.05),),
    command=command,
    cases=cases,
    spare=[("rate", Case.of(op="directory rename"))],
    parameters={
        "items": Parameter(1000, positive, "-n: files and directories of every rank"),
        "iterations": Parameter(3, positive, "-i: repetitions, of which the mean counts"),
        "kind": Parameter("all", one_of("all", "files", "directories"), "-F, -D"),
        "directory": Parameter(None, folder, "the file system, instead of the scratch folder"),
    },
    program="mdtest",
    get="https://github.com/hpc/ior: ./bootstrap && ./configure && make",
)
