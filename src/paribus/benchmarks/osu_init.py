"""osu_init of the OSU Micro-Benchmarks, where the site has them built."""

import re

from paribus.benchmarks import _osu, _osu_text
from paribus.benchmarks._tool import line_of, once, path_or, refuse, tool
from paribus.model import Case, Metric, Program, Reading, Request, Sample

_TITLE = re.compile(r"# OSU MPI Init Test v(\d+\.\d+[\w.]*)\s*$", re.M)
_FIGURES = re.compile(r"^nprocs: (\d+), min: (\d+) ms, max: (\d+) ms, avg: (\d+) ms\s*$", re.M)


def command(request: Request) -> Program:
    """Return the program's command line."""
    return Program((path_or(request, "osu_init"),))


def read(text: str) -> Reading:
    """Return the slowest rank's MPI_Init; the program prints whole milliseconds."""
    if text.count("# OSU MPI") > 1:
        at, end = _osu_text.own_part(text, "Init")
        text = text[:end]
    else:
        at = once(text, "# OSU MPI", "the title of osu_init")
    title, figures = _TITLE.match(text, at), _FIGURES.findall(text, at)
    if not title or len(figures) != 1 or text.count("nprocs:") != 1:
        refuse("expected title and 'nprocs: ..., min: ... ms' once", line_of(text, at))
    ranks, low, high, mean = map(int, figures[0])
    if not 0 < low <= mean <= high:
        refuse(f"the mean {mean} ms is not between {low} and {high} ms", line_of(text, at) + 1)
    samples = (
        Sample("init", Case(), (float(high),)),
        Sample("init_mean", Case(), (float(mean),)),
    )
    return Reading("osu_init", title[1], {}, ranks, samples)


_osu_text.READ.add("init")

BENCHMARK = tool(
    "osu_init",
    layer="start-up",
    summary="OSU: how long MPI_Init takes: the slowest rank, and the mean over ranks",
    metrics=(
        Metric("init", "ms", "lower", margin=0.05),
        Metric("init_mean", "ms", "lower", margin=0.05),
    ),
    reader=read,
    marks=("# OSU MPI Init Test v",),
    command=command,
    program="osu_init",
    get=_osu.GET,
    versions=_osu.VERSIONS,
    proof="title and the line of figures once, min <= avg <= max, the ranks asked for",
    means="whole milliseconds, so 20 ms are known to 5 %; the launcher's own start is not in it",
)
