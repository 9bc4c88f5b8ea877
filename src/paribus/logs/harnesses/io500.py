"""What IO500 prints, and writes into result_summary.txt: its phases and their score."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from paribus.core import Case, Metric, Reading, Sample
from paribus.readers.figures import figure, near
from paribus.readers.harness import NOT_WRITTEN, Harness, Measured
from paribus.readers.heads import Head
from paribus.readers.text import line_of, refuse

BANDWIDTHS = ("ior-easy-write", "ior-hard-write", "ior-easy-read", "ior-hard-read")
RATES = (
    *("mdtest-easy-write", "mdtest-hard-write", "find", "mdtest-easy-stat", "mdtest-hard-stat"),
    *("mdtest-easy-delete", "mdtest-hard-read", "mdtest-hard-delete"),
)
METRICS = (
    Metric("score", "IO500", "higher"),
    Metric("bandwidth", "GiB/s", "higher"),
    Metric("rate", "kIOPS", "higher"),
)
"""The score decides: it is the geometric mean of those of both kinds of phases."""

# "[RESULT]       ior-easy-write        0.146316 GiB/s : time 300.331 seconds"
_ROW = re.compile(
    r"\n\[RESULT\] +(\S+) +(\d+\.\d+) (GiB/s|kIOPS) *: time (\d+\.\d+) seconds *(\[INVALID\])?"
    r" *(?=\n|\Z)"
)
# "[SCORE ] Bandwidth 0.072008 GiB/s : IOPS 12.206056 kiops : TOTAL 0.937512 [INVALID]"
_SCORE = re.compile(
    r"\n\[SCORE ?(INVALID)?\] Bandwidth (\d+\.\d+) Gi?B/s *: IOPS (\d+\.\d+) kiops *"
    r": TOTAL (\d+\.\d+) *(\[INVALID\])? *(?=\n|\Z)"
)
_VERSION = re.compile(r"\nIO500 version (\S+)[^\n]*")
_ROUNDED = 1e-4
"""Figures have six digits after the point; phases of 0.001 GiB/s have four that count."""


def read(text: str) -> list[Measured]:
    """Return the one launch in it; raises ParseError where a phase or the score is missing."""
    text = f"\n{text}"
    rows, scores = list(_ROW.finditer(text)), list(_SCORE.finditer(text))
    if len(rows) != text.count("[RESULT"):
        refuse("a line with [RESULT] is not whole", line_of(text, text.find("[RESULT")) - 1)
    found = {row[1]: row for row in rows}
    expected = {**dict.fromkeys(BANDWIDTHS, "GiB/s"), **dict.fromkeys(RATES, "kIOPS")}
    if missing := [name for name in expected if name not in found]:
        refuse(f"the phase {missing[0]} is missing: IO500 did not end")
    if len(scores) != 1 or text.count("[SCORE") - text.count("[SCOREX") != 1:
        refuse(f"of lines with [SCORE] and all of its figures there are {len(scores)}, not one")
    if len(found) != len(rows):
        refuse("a phase is there twice: two outputs in one")
    values = {}
    for name, row in found.items():
        if expected.get(name) != row[3]:
            cause = f"no phase {name} in {row[3]} is known: the standard run has 12"
            refuse(cause, line_of(text, row.start()))
        values[name] = figure(row[2], line_of(text, row.start()))
    score = scores[0]
    figures = [figure(word, line_of(text, score.start())) for word in score.group(2, 3, 4)]
    means = [_mean([values[name] for name in names]) for names in (BANDWIDTHS, RATES)]
    for printed, mean in zip(figures, [*means, math.sqrt(means[0] * means[1])], strict=True):
        if not near(printed, mean, _ROUNDED):
            refuse(f"{printed} is not the mean of the phases", line_of(text, score.start()))
    samples = [Sample("score", Case(), (figures[2],))]
    for name, value in values.items():
        metric = "bandwidth" if name in BANDWIDTHS else "rate"
        samples.append(Sample(metric, Case.of(phase=name), (value,)))
    invalid = [name for name, row in found.items() if row[5]]
    guards = [f"IO500 marks {', '.join(invalid)} as INVALID"] if invalid else []
    if not invalid and (score[1] or score[5]):
        guards = ["IO500 marks its score as INVALID"]
    version = _VERSION.search(text)
    reading = Reading(
        "io500",
        version[1] if version else NOT_WRITTEN,
        {},
        None,
        tuple(samples),
        guards=tuple(guards),
    )
    return [Measured(reading, None, METRICS)]


def _mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


HARNESS = Harness(
    "io500",
    read,
    marks=("[RESULT]       ior-easy-write",),
    heads=(
        Head(
            "[RESULT",
            r"\[RESULT(?:-invalid)?\] +ior-easy-write ",
            above=r"IO500 version .*|ERROR INVALID .*",
        ),
    ),
    launches="a file is one launch: the score, and each of its 12 phases as a case",
    versions="isc20 to isc24",
    proof=(
        "each of the 12 phases once, the score their geometric mean; what IO500 marks as INVALID,"
        " such as a write of less than 300 s, is a warning"
    ),
    from_text=True,
)
