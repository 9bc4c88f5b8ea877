"""What vLLM's benchmark of a server prints (`vllm bench serve`), and saves with --save-result."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from paribus.core import Case, Metric, Reading, Sample, Scalar
from paribus.readers.figures import figure
from paribus.readers.harness import NOT_WRITTEN, Failed, Harness, Measured, when
from paribus.readers.heads import Head
from paribus.readers.json import amount, document, in_json, inner
from paribus.readers.text import line_of, once, refuse, within

MARK = " Serving Benchmark Result "
METRICS = {
    "Output token throughput (tok/s)": Metric("output", "tokens/s", "higher"),
    "Request throughput (req/s)": Metric("requests", "requests/s", "higher"),
    "Median TTFT (ms)": Metric("first_token", "ms", "lower"),
    "P99 TTFT (ms)": Metric("first_token_p99", "ms", "lower", margin=0.1),
    "Median TPOT (ms)": Metric("each_token", "ms", "lower"),
    "P99 TPOT (ms)": Metric("each_token_p99", "ms", "lower", margin=0.1),
}
_COUNTS = ("Successful requests", "Total input tokens", "Total generated tokens")
_DURATION = "Benchmark duration (s)"
_FAILED = "Failed requests"
_SGLANG = "Backend"
"""What only SGLang's bench_serving prints, which took this summary from vLLM."""
_ABOVE = (
    r"Starting .*|Initial test run .*|Skipping .*|Warm(?:ing )?up .*|Profiler .*|Self timing .*"
    r"|(?:\w+=)?Namespace\(.*|Traffic r.*|Will increase RPS .*|Probe request rate: .*"
    r"|Burstiness factor: .*|Maximum request concurrency: .*|#(?:In|Out)put tokens: .*|tip: .*"
    r"|(?:INFO|WARNING)\b.*| *\d+%\|.*"
)
"""Lines above the title: settings, messages and the progress bar."""

RESULT = '"tokenizer_id":'
_KEYS = {
    "completed": "Successful requests",
    "failed": _FAILED,
    "duration": _DURATION,
    "total_input_tokens": "Total input tokens",
    "total_output_tokens": "Total generated tokens",
    "request_throughput": "Request throughput (req/s)",
    "output_throughput": "Output token throughput (tok/s)",
    "median_ttft_ms": "Median TTFT (ms)",
    "p99_ttft_ms": "P99 TTFT (ms)",
    "median_tpot_ms": "Median TPOT (ms)",
    "p99_tpot_ms": "P99 TPOT (ms)",
}
"""The keys of the result in JSON, and the rows of the summary that say the same."""

_END = re.compile(r"\n={40,}[ \t]*(?=\n|\Z)")
_ROW = re.compile(r"\n(\w[\w ]*(?: \([\w/]+\))?): +(\S+)[ \t]*(?=\n|\Z)")


def read(text: str) -> list[Measured | Failed]:
    """Return the one launch in it: a benchmark of a server with some number of requests."""
    if in_json(RESULT).search(text):
        tree = document(text, RESULT)
        said = {row: tree[key] for key, row in _KEYS.items() if key in tree}
        said.setdefault(_FAILED, int(amount(tree, "num_prompts") - amount(tree, "completed")))
        # As the summary prints them: where both are kept, they are one launch.
        words = {row: f"{v:.2f}" if isinstance(v, float) else str(v) for row, v in said.items()}
        return _launch(words, 1, when(str(inner(tree, "date")).replace("-", "T")))
    at = once(text, MARK, "the title of vLLM's benchmark")
    end = _END.search(text, at)
    if end is None:
        refuse("the last line of the summary is missing: it is not whole", line_of(text, at))
    found = _ROW.findall(text, at, end.start() + 1)
    rows = dict(found)
    if len(rows) != len(found):
        refuse("a line of the summary is there twice", line_of(text, at))
    return _launch(rows, line_of(text, at))


def _launch(
    words: Mapping[str, str], line: int, date: tuple[float, bool] | None = None
) -> list[Measured | Failed]:
    """Return the launch of a summary's rows, which begin at `line`.

    Its rates are computed: a large model answers 0.02 requests/s, which is printed so.
    """
    # No line is of times that were not asked for (--percentile-metrics, --metric-percentiles).
    left_out = [word for word in ("TTFT", "TPOT", "P99") if word not in " ".join(words)]
    metrics = {key: one for key, one in METRICS.items() if not within(left_out, key)}
    if missing := [key for key in (*_COUNTS, _DURATION, *metrics) if key not in words]:
        refuse(f"the line {missing[0]!r} is missing, or damaged", line)
    done, given, made = (int(figure(words[key])) for key in _COUNTS)
    parameters: dict[str, Scalar] = {"requests": done, "input_tokens": given}
    if _SGLANG in words:
        parameters["client"] = "sglang"
    if int(words.get(_FAILED, "0") or 0):
        return [Failed(f"{words[_FAILED]} requests failed", parameters)]
    seconds = figure(words[_DURATION])
    values = {key: figure(words[key]) for key in metrics}
    for key, total in (
        ("Request throughput (req/s)", done),
        ("Output token throughput (tok/s)", made),
    ):
        rate, values[key] = values[key], total / seconds
        if abs(values[key] - rate) > 0.0051 + rate * 0.0051 / seconds:
            refuse(f"{key[:-8]} {rate} is not {total} in {seconds} s", line)
    for name in ("TTFT", "TPOT"):
        tail = values.get(f"P99 {name} (ms)", math.inf)
        if values.get(f"Median {name} (ms)", 0.0) > tail:
            refuse(f"the P99 of {name} is below its median", line)
    samples = tuple(Sample(one.name, Case(), (values[key],)) for key, one in metrics.items())
    facts = {"vllm_serving.generated_tokens": made}
    reading = Reading("vllm_serving", NOT_WRITTEN, parameters, None, samples, facts)
    return [Measured(reading, date, tuple(metrics.values()))]


HARNESS = Harness(
    "vllm_serving",
    read,
    marks=(MARK, RESULT),
    heads=(
        Head("=======", rf"=+{MARK}", above=_ABOVE),
        Head("{", rf'"date"\s*:[^{{}}\[\]]*{RESULT[:-1]}\s*:'),
    ),
    launches=(
        "a summary is one launch: its requests ran at the same time; another number of requests, or"
        " of tokens in them, is another benchmark"
    ),
    versions="0.9 and later, text and JSON",
    proof=(
        "every line of the summary once, requests and tokens by the duration give the rates, no"
        " request failed"
    ),
    from_text=True,
)
