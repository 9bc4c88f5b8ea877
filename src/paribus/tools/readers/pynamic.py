"""What Pynamic (LLNL) prints of importing many generated shared libraries."""

from __future__ import annotations

import re

from paribus.core import Reading, Scalar, of_tool
from paribus.readers.dates import date
from paribus.readers.figures import counts, figure
from paribus.readers.heads import Head
from paribus.readers.reader import Reader, single
from paribus.readers.text import columns, line_at, line_of, once, refuse, within

_FAILED = ("ImportError:", "ModuleNotFoundError:", "Traceback (most recent call last)")
_PROOFS = (
    "driver beginning... now importing modules",
    "driver finished importing all modules... visiting all module functions",
    "module test passed!",
    "testing mpi capability...",
    "mpi test passed!",
)
_SECONDS = "time = (?P<{}>[0-9.e-]+) secs"
_TITLE = re.compile(r"\nPynamic: (?:Sequoia Benchmark )?Version (\d+(?:\.\d+)+)[ \t]*$", re.M)
# Of `other` there is one: the title.
_LINES = re.compile(
    r"\n(?:[ \t]*Pynamic: [ \t]*(?:run on \S+ \S+ with (?P<ranks>\d+) MPI tasks"
    rf"|(?P<proof>{'|'.join(map(re.escape, _PROOFS))})"
    rf"|module import {_SECONDS.format('import')}|module visit {_SECONDS.format('visit')}"
    rf"|startup {_SECONDS.format('startup')}|fractal mpi {_SECONDS.format('fractal')})[ \t]*$"
    r"|[ \t]*(?P<other>Pynamic: ))",
    re.M,
)
_TIMES = ("import", "visit", "startup", "fractal")
_SUMMARY = re.compile(r"summary of (\S+) executable and (\d+) shared libraries[ \t]*$", re.M)
_SIZE = re.compile(r"\nSize of aggregate ([a-z ]+) of shared libraries: (\S+)[ \t]*$", re.M)


def read(text: str) -> Reading:
    """Return the reading of Pynamic's output, and of a summary of the build beside it."""
    if failed := within(_FAILED, text):
        at = min(map(text.find, failed))
        refuse(f"Pynamic failed: {line_at(text, at).strip()[:120]!r}", line_of(text, at))
    titles = _TITLE.findall(f"\n{text}")
    if len(titles) != 1:
        refuse(f"expected one title of Pynamic with its version, got {len(titles)}")
    lines = columns(text, _LINES)
    if len(lines["other"]) > 1:
        others = [m.start() for m in _LINES.finditer(f"\n{text}") if m["other"]]
        at = next(at for at in others if not _TITLE.match(f"\n{text}", at))
        refuse(f"{line_at(text, at)[:80]!r} is not what Pynamic prints", line_of(text, at))
    if lines["proof"] != list(_PROOFS):
        missing = [proof for proof in _PROOFS if proof not in lines["proof"]]
        refuse(f"{missing[0]!r} is missing" if missing else "the lines are not in order")
    for name in ("ranks", *_TIMES):
        if len(lines[name]) != 1 and (lines[name] or name != "startup"):
            refuse(f"what it says of {name} is there {len(lines[name])} times, not once")
    parameters, facts = _summary(text)
    samples = single(**{name: figure(value) for name in _TIMES for value in lines[name]})
    (ranks,) = counts(lines["ranks"])
    if not ranks:
        refuse("the number of MPI tasks is 0")
    return Reading("pynamic", titles[0], parameters, ranks, samples, facts)


def _summary(text: str) -> tuple[dict[str, Scalar], dict[str, str]]:
    """Return the number of libraries as parameter, and their sizes as facts; none if not there."""
    text = f"\n{text}"
    if "\nsummary of " not in text:
        return {}, {}
    at = once(text, "\nsummary of ", "the summary of the build") + 1
    summary = _SUMMARY.match(text, at)
    if summary is None:
        refuse("the summary of the build is damaged", line_of(text, at) - 1)
    sizes = {name.replace(" ", "_"): size for name, size in _SIZE.findall(text)}
    parameters: dict[str, Scalar] = {"libraries": int(summary[2])}
    return parameters, {f"pynamic.{name}": size for name, size in sizes.items()}


READER = Reader(
    "pynamic",
    read,
    marks=("Pynamic: Version ", "Pynamic: Sequoia Benchmark Version "),
    heads=(
        Head(
            "Pynamic: ",
            r"Pynamic: (?:Sequoia Benchmark )?Version ",
            above=r"rank - \d+|\*{40,}|summary of pynamic-.*|Size of aggregate .*",
        ),
    ),
    versions="1.1 to 1.3 with mpi4py or pyMPI",
    proof=(
        "title once, modules imported and visited, 'module test passed!' and 'mpi test passed!',"
        " MPI tasks as asked, no traceback: the executable exits 0 after an ImportError"
    ),
    means=(
        "one figure per launch, of rank 0 after a barrier; 20 libraries take milliseconds, so only"
        " the documented size stresses a file system; the first launch finds cold caches; startup"
        " counts from a timestamp that users often give in whole seconds"
    ),
    dates=(date("run on ", r".*run on (\d\d/\d\d/\d\d \d\d:\d\d:\d\d) with", "%m/%d/%y %H:%M:%S"),),
    facts=(
        of_tool(
            "pynamic.",
            reason="another amount of code to load: the figures do not compare",
        ),
    ),
)
