"""What Megatron-LM prints while it trains: a line for an iteration, or for every so many."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from paribus.core import Case, Metric, Reading, Sample, Scalar
from paribus.readers.figures import figure
from paribus.readers.harness import NOT_WRITTEN, Harness, Measured
from paribus.readers.heads import Head
from paribus.readers.text import line_of, line_with, once, refuse

BEGUN = "[before the start of training step] datetime: "
WORLD = "using world size: "
_EXIT = re.compile(r"exiting program at iteration (\d+)\b")
_LATE = "exiting program after "
"""The beginning of the line that says that the time limit ended the training."""

_MARK = " elapsed time per iteration (ms): "
# One line: " [2024-09-03 15:54:54] iteration       10/      80 | consumed samples:        10240 |
# elapsed time per iteration (ms): 13035.3 | throughput per GPU (TFLOP/s/GPU): 812.5 | ...
# | global batch size:  1024 | ... | number of skipped iterations: 0 | number of nan iterations: 0|"
_ROW = re.compile(
    r"iteration +(\d+)/ *(\d+) \| consumed samples: +(\d+) \|(?: skipped samples: +\d+ \|)?"
    r" elapsed time per iteration \(ms\): (\d+\.\d) \|"
    r"(?: throughput per GPU \(TFLOP/s/GPU\): (\d+\.\d) \|)?([^\n]*?)"
    r" global batch size: +(\d+) \|([^\n]*?)"
    r" number of skipped iterations: +(\d+) \| number of nan iterations: +(\d+) \|[ \t]*(?=\n|\Z)"
)
_WORLD = re.compile(rf"{WORLD}(\d+),")
_DIVERGED = re.compile(r" (\w*loss): (?:nan|[+-]?inf)\b", re.I)
METRICS = (Metric("step", "ms", "lower"), Metric("speed", "TFLOP/s", "higher"))
"""The speed is that of one GPU, in the same lines, which may lack it."""

_Row = re.Match[str]


def read(text: str) -> list[Measured]:
    """Return the one training in it; raises ParseError where it diverged, or did not end."""
    rows = list(_ROW.finditer(text))
    if not rows or len(rows) != text.count(_MARK):
        refuse("a line of an iteration is not whole, or there is none", line_with(text, _MARK))
    if BEGUN in text:
        once(text, BEGUN, "the line 'before the start of training step'")
    interval = _check(text, rows)
    number, last = map(int, rows[-1].group(1, 2))
    exits = [int(one) for one in _EXIT.findall(text)]
    ended = exits and number <= exits[0] < number + interval
    if number + interval <= last and not ended and _LATE not in text:
        cause = f"the last line is of iteration {number} of {last}, and no line says that it ended"
        refuse(cause, line_of(text, rows[-1].start()))
    kept = [row for row in rows[1:] if row[9] == "0"]
    if not kept:
        refuse("no line after the first one, which holds the start, that skipped no iteration")
    samples = [Sample("step", Case(), tuple(figure(row[4]) for row in kept))]
    if all(row[5] for row in kept):
        samples.append(Sample("speed", Case(), tuple(figure(row[5]) for row in kept)))
    parameters: dict[str, Scalar] = {"batch": int(rows[0][7])}
    world = {int(one) for one in _WORLD.findall(text)}
    if len(world) > 1:
        refuse("two world sizes: two outputs in one")
    skipped = sum(int(row[9]) for row in rows)
    guards = (f"{skipped} iterations were skipped, and their lines left out",) if skipped else ()
    ranks = world.pop() if world else None
    reading = Reading("megatron", NOT_WRITTEN, parameters, ranks, tuple(samples), guards=guards)
    return [Measured(reading, None, METRICS[: len(samples)])]


def _check(text: str, rows: Sequence[_Row]) -> int:
    """Return how many iterations lie between lines; refuses lines that contradict each other."""
    for row in rows:
        if int(row[10]):
            refuse(f"{row[10]} iterations with NaN", line_of(text, row.start()))
        if diverged := _DIVERGED.search(row[0]):
            cause = f"{diverged[1]} is no number: the training diverged"
            refuse(cause, line_of(text, row.start()))
        if row.group(2, 7) != rows[0].group(2, 7) or bool(row[5]) != bool(rows[0][5]):
            refuse("another number of iterations or batch than above", line_of(text, row.start()))
    steps = [int(b[1]) - int(a[1]) for a, b in pairwise(rows)]
    interval = steps[0] if steps else int(rows[0][2])
    batch = int(rows[0][7])
    for (one, other), step in zip(pairwise(rows), steps, strict=True):
        line = line_of(text, other.start())
        if step != interval or step < 1:
            cause = f"iteration {other[1]} after {one[1]}: two outputs in one, or a missing line"
            refuse(cause, line)
        if int(other[3]) - int(one[3]) != step * batch:
            refuse(f"{other[3]} samples are not {step} batches of {batch} more", line)
        if one[5] and not _same_work(one, other):
            refuse(f"{other[5]} TFLOP/s in {other[4]} ms is other work than above", line)
    return interval


def _same_work(one: _Row, other: _Row) -> bool:
    """Return whether speed by time may be the same in two lines; both are printed to 0.1."""
    (least, most), (least_other, most_other) = (
        [(float(row[4]) + slack) * (float(row[5]) + slack) for slack in (-0.06, 0.06)]
        for row in (one, other)
    )
    return least_other <= most and most_other >= least


HARNESS = Harness(
    "megatron",
    read,
    marks=(_MARK, BEGUN),
    heads=(
        Head(WORLD, rf"{WORLD}\d+, data-parallel size", holds=(BEGUN[:20],)),
        Head(BEGUN[:20], re.escape(BEGUN)),
    ),
    launches=(
        "a training is one launch and each of its lines a sample; the first line is left out, for"
        " the start is in it, and those with skipped iterations"
    ),
    versions="core 0.8 to 0.15",
    proof=(
        "lines of equal steps up to the last iteration, or to the words that it ended; samples are"
        " steps by batch, TFLOP/s by time the same in all lines, no NaN"
    ),
    from_text=True,
)
