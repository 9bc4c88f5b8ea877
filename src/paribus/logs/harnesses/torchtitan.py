"""What torchtitan prints while it trains: tokens per second and GPU, step by step."""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import fmean

from paribus.core import Case, Metric, Reading, Sample, Scalar
from paribus.readers.figures import figure
from paribus.readers.harness import NOT_WRITTEN, Harness, Measured
from paribus.readers.heads import Head
from paribus.readers.text import line_of, line_with, refuse

BEGUN = "Training starts at step "
ENDED = "Training completed"
_MARK = "  tps: "
# One line: "[titan] 2025-03-12 11:10:20,511 - root - INFO - step: 22  loss:  6.2250  memory:
# 1.41GiB(1.79%)  tps: 193,831  tflops: 18.36  mfu: 1.86%"
_ROW = re.compile(
    r" INFO - step: +(\d+)  loss: +(\S+)  (?:grad_norm: +(\S+)  )?memory: +\d+\.\d+GiB\(\d+\.\d+%\)"
    r"  tps: ([\d,]+)(?:  tflops: ([\d,]+\.\d\d)  mfu: (?:\d+\.\d\d%|N/A))?[ \t]*(?=\n|\Z)"
)
_BEGINS = re.compile(rf"{BEGUN}(\d+)")
_OLD = re.compile(
    r"local batch size (\d+), global batch size (\d+),(?: gradient accumulation steps \d+,)?"
    r" sequence length (\d+), total steps (\d+)"
)
_NEW = re.compile(
    r"(?<!\d)(\d+) tokens per DP rank, (\d+) tokens per train step,"
    r"(?: gradient accumulation steps \d+,)?"
    r" maximum context length (\d+), total steps (\d+)"
)
METRICS = (Metric("speed", "tokens/s", "higher"), Metric("flops", "TFLOP/s", "higher"))
"""Both are those of one GPU, in the same lines, which may lack the second."""

_Row = re.Match[str]


def read(text: str) -> list[Measured]:
    """Return the one training in it; raises ParseError where it diverged, or did not end."""
    rows = list(_ROW.finditer(text))
    if not rows or len(rows) != text.count(" INFO - step:"):
        refuse("a line of a step is not whole, or there is none", line_with(text, _MARK))
    steps = _steps(text, rows)
    settings = {one.groups() for pattern in (_OLD, _NEW) for one in pattern.finditer(text)}
    if len(settings) > 1:
        refuse("two trainings with other batches: two outputs in one")
    if ENDED not in text:
        refuse(f"{ENDED!r} is missing: the last line is of step {max(steps)}")
    if not settings:
        refuse("the line with batches, sequence length and total steps is missing")
    *numbers, total = map(int, settings.pop())
    _check_steps(text, list(steps), total)
    kept = [lines for number, lines in steps.items() if number != min(steps)]
    if not kept:
        refuse("no step after the first one, which holds the start")
    samples = [
        Sample("speed", Case(), tuple(fmean(_number(row[4]) for row in one) for one in kept))
    ]
    if all(row[5] for row in rows):
        flops = tuple(fmean(_number(row[5]) for row in one) for one in kept)
        samples.append(Sample("flops", Case(), flops))
    names = (
        ("local_batch", "global_batch", "sequence")
        if _OLD.search(text)
        else ("tokens_of_a_rank", "tokens_of_a_step", "sequence")
    )
    parameters: dict[str, Scalar] = dict(zip(names, numbers, strict=True))
    reading = Reading("torchtitan", NOT_WRITTEN, parameters, None, tuple(samples))
    return [Measured(reading, None, METRICS[: len(samples)])]


def _steps(text: str, rows: Sequence[_Row]) -> dict[int, list[_Row]]:
    """Return the lines of each step, one or one of each rank; refuses steps out of order."""
    found: dict[int, list[_Row]] = {}
    for row in rows:
        line = line_of(text, row.start())
        for word in (row[2], row[3] or "0"):
            if not re.fullmatch(r"\d+\.\d+|0", word):
                refuse(f"{word} is no loss or norm: the training diverged", line)
        if found and int(row[1]) < max(found):
            refuse(f"step {row[1]} after {max(found)}: two outputs in one", line)
        found.setdefault(int(row[1]), []).append(row)
        if row[5]:
            one, other = (_number(r[5]) / _number(r[4]) for r in (rows[-1], row))
            slack = sum(0.006 / _number(r[5]) + 0.6 / _number(r[4]) for r in (rows[-1], row))
            if abs(one / other - 1) > slack:
                refuse(f"{row[5]} TFLOP/s of {row[4]} tokens/s is other work than below", line)
    counts = {len(lines) for lines in found.values()}
    if len(counts) > 1:
        refuse("a step has lines of other ranks than another")
    return found


def _check_steps(text: str, numbers: Sequence[int], last: int) -> None:
    """Refuse steps unless they are the first and every n-th, up to the last that was planned."""
    begins = [int(one) for one in _BEGINS.findall(text)]
    every = numbers[-1] - numbers[-2] if len(numbers) > 1 else last
    expected = [n for n in range(begins[0], last + 1) if n == 1 or n % every == 0] if begins else []
    if numbers != expected:
        refuse(f"steps {', '.join(map(str, numbers))[:80]} of {last}: a line is missing")


def _number(word: str) -> float:
    return figure(word.replace(",", ""))


HARNESS = Harness(
    "torchtitan",
    read,
    marks=(BEGUN, _MARK),
    heads=(
        Head(
            "[titan] ",
            rf"\[titan\] [^\n]* INFO - {BEGUN}\d+",
            above=rf"\[titan\] (?!.*(?:step: | - {ENDED}|Process group destroyed)).*",
            block=rf"(?:[^\n]*{BEGUN}[^\n]*\n)+",
        ),
    ),
    launches=(
        "a training is one launch and each step a sample, the mean of its ranks where several"
        " write; the first step is left out, for the start is in it"
    ),
    versions="0.1 to 0.2",
    proof=(
        "lines of steps in order and at equal distances, the words that the training completed,"
        " loss and norm are numbers, TFLOP/s by tokens/s the same in all lines"
    ),
    from_text=True,
)
