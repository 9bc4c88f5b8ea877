"""What llama-bench of llama.cpp writes with -o json or jsonl: tokens/s of prompts and answers."""

from __future__ import annotations

import json
import re
from typing import Any

from paribus.core import Case, Metric, Reading, Sample, Scalar
from paribus.readers.figures import near
from paribus.readers.harness import Harness, Measured, name_of, when
from paribus.readers.heads import Head
from paribus.readers.json import amount, inner, within_text
from paribus.readers.text import refuse

MARK = '[\n  {\n    "build_commit": "'
_LINE = r'\{"build_commit"[^\n]*"n_prompt": (\d+), "n_gen": (\d+),(?: "n_depth": (\d+),)?[^\n]*'
"""A line of -o jsonl: one of a test that is above begins the output of another start."""

METRICS = (Metric("speed", "tokens/s", "higher"),)
COUNTS = ("n_batch", "n_ubatch", "n_threads")
"""Settings that two files must share; those of which one file has several distinguish its tests."""

FIXED = ("model_type", "type_k", "type_v", "n_gpu_layers", "split_mode", "flash_attn")
"""Settings that two files must share, and all tests of one."""

_ROUNDED = 1e-5
"""Rates have six digits."""


def read(text: str) -> list[Measured]:
    """Return the one launch in it: tests and repetitions are within a process."""
    lines = [json.loads(line[0]) for line in re.finditer(f"(?m)^{_LINE}", text)]
    rows = lines or within_text(text, MARK)
    if not isinstance(rows, list) or not rows:
        refuse("llama-bench reports no test")
    for key in FIXED:
        if len(found := {str(inner(row, key)) for row in rows}) > 1:
            refuse(f"tests of several {key} ({', '.join(sorted(found))[:80]}): a file for each")
    several = [key for key in COUNTS if len({amount(row, key) for row in rows}) > 1]
    samples = [_sample(row, several) for row in rows]
    first = rows[0]
    parameters: dict[str, Scalar] = {key: name_of(first, key) for key in FIXED}
    parameters |= {key: int(amount(first, key)) for key in COUNTS if key not in several}
    version = f"{name_of(first, 'build_commit')} ({name_of(first, 'build_number')})"
    reading = Reading("llama_bench", version, parameters, None, tuple(samples))
    return [Measured(reading, when(inner(first, "test_time")), METRICS)]


def _sample(row: Any, several: list[str]) -> Sample:
    """Return the speed of each repetition of a test; raises ParseError if its times say another.

    `several` are the COUNTS that distinguish tests of this file.
    """
    prompt, answer = (int(amount(row, key, zero=True)) for key in ("n_prompt", "n_gen"))
    tokens = prompt + answer
    test = "+".join(f"{kind}{n}" for kind, n in (("pp", prompt), ("tg", answer)) if n)
    if not tokens:
        refuse("a test of no token")
    times, rates = inner(row, "samples_ns"), inner(row, "samples_ts")
    took_ns = [amount(times, at) for at in range(len(times))]
    printed = [amount(rates, at) for at in range(len(rates))]
    if not took_ns or len(took_ns) != len(printed):
        refuse(f"{test} has {len(took_ns)} times and {len(printed)} rates")
    speeds = [tokens * 1e9 / ns for ns in took_ns]
    if not all(near(one, other, _ROUNDED) for one, other in zip(printed, speeds, strict=True)):
        refuse(f"a rate of {test} is not {tokens} tokens by its time")
    for key, values, share in (("avg_ns", took_ns, 1e-9), ("avg_ts", speeds, 1e-6)):
        mean = sum(values) / len(values)
        if abs(amount(row, key) - mean) > 1 + share * mean:
            refuse(f"{key} of {test} is not the mean of its repetitions")
    if depth := int(amount(row, "n_depth", zero=True)) if "n_depth" in row else 0:
        test += f" at {depth}"
    case = Case.of(test=test, **{key: int(amount(row, key)) for key in several})
    return Sample("speed", case, tuple(speeds))


HARNESS = Harness(
    "llama_bench",
    read,
    marks=(MARK, '{"build_commit": "'),
    heads=(
        Head("[", r'\{\s*"build_commit"\s*:'),
        Head("{", r'"build_commit"\s*:', block=rf"{_LINE}\n?"),
    ),
    launches=(
        "a file is one launch, because the program runs all tests in one process: a repetition is a"
        " sample, pp512 a prompt of 512 tokens, tg128 an answer of 128"
    ),
    versions="build 5163 (-o json), 6865 to 9010 (-o jsonl)",
    proof=(
        "every rate is the tokens of its test by its time, and the means are those of the"
        " repetitions"
    ),
    from_text=True,
)
