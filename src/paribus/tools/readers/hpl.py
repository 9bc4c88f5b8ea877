"""What High-Performance Linpack prints; every N, NB, P and Q is a case."""

from __future__ import annotations

import re

from paribus.core import Case, Reading, Sample, Scalar, grouped
from paribus.readers.dates import CTIME, date
from paribus.readers.heads import Head
from paribus.readers.reader import Reader, point
from paribus.readers.text import HEAD, begin, line_of, once, refuse
from paribus.tools.readers import linpack

_TITLE = "HPLinpack 2."
_VERSION = re.compile(r"HPLinpack (2\.\d)\s")
_BUILD = re.compile(r"^(?:HPL-NVIDIA|AMD Zen HPL) \d\S*", re.M)
_COMPLAINTS = (">>> Need at least", ">>> Illegal input", "HPL ERROR")
_ONE = ("PMAP", "SWAP", "L1", "U", "A", "EQUIL", "ALIGN", "MXSWP")


def case_of(n: int, nb: int, p: int, q: int, variant: str) -> Case:
    """Return the case of a solved system; `variant` is "" if all have the same."""
    more = {"variant": variant} if variant else {}
    return point(n=n, nb=nb, p=p, q=q, **more)


def read(text: str) -> Reading:
    """Return the reading of HPL's output, of stdout or HPL.out; raises ParseError with the line."""
    start = begin(text, _TITLE, "the title of HPL", "HPL", _COMPLAINTS)
    version = _VERSION.match(text, start)
    if version is None:
        refuse("the version of HPL is missing", line_of(text, start))
    end = once(text, "End of Tests.")
    settings = linpack.settings(text, start)
    # Scripts print what they grep of an output behind it.
    found = linpack.rows(text[:end], start, settings)
    variants = {row.variant for row in found}
    ranks = {row.p * row.q for row in found}
    several = len(variants) > 1
    speeds = grouped(
        (case_of(r.n, r.nb, r.p, r.q, r.variant if several else ""), r.gflops) for r in found
    )
    samples = tuple(Sample("gflops", case, tuple(values)) for case, values in speeds.items())
    parameters: dict[str, Scalar] = {
        key.lower(): " ".join(settings[key]) for key in _ONE if key in settings
    }
    if len(variants) == 1:
        parameters["variant"] = variants.pop()
    all_ranks = ranks.pop() if len(ranks) == 1 else None
    release = version[1] + "".join(f" ({one})" for one in _BUILD.findall(text[:start])[-1:])
    return Reading("hpl", release, parameters, all_ranks, samples, linpack.cores(text))


def _recognise(text: str) -> bool:
    """Return whether a text is of HPL: HPCC has the whole output of HPL inside its own."""
    first, *challenges = text[:HEAD].split("HPC Challenge Benchmark")
    after = (one.partition("End of HPC Challenge tests")[2] for one in challenges)
    return _TITLE in first or any(_TITLE in rest for rest in after)


READER = Reader(
    "hpl",
    read,
    marks=(_TITLE,),
    heads=(Head("HPLinpack ", r"HPLinpack \d", above=linpack.BEFORE),),  # not HPL.dat
    complaints=(">>> Need at least ",),
    versions="2.0 to 2.3",
    proof=(
        "title and 'End of Tests.' once, a row for every combination of the settings printed"
        " above, each followed by a residual below the limit and PASSED, the counts of passed"
        " tests, Gflop/s times seconds equal to the operations of N"
    ),
    means=(
        "the BLAS as much as the machine: OpenBLAS's Haswell kernels gave 99 Gflop/s where its"
        " SkylakeX kernels gave 130 on the same cores; N decides how much of the time is"
        " communication; four digits; one figure per launch and combination; the threads of the"
        " BLAS are not printed"
    ),
    belongs=_recognise,
    dates=(date("start time ", rf".*start time {CTIME}"),),
)
