"""perftest's report file (--out_json): one size, settings and figures.

perftest 4.5 writes its keys without quotes, which is no JSON; later ones with (both are read). The
unit of the bandwidth is not said: it is the one in which size times message rate comes out.
"""

from __future__ import annotations

import re

from paribus.benchmarks._perftest_text import (
    SAID,
    TO_MIB,
    bandwidths,
    case_of,
    fits,
    latencies,
    parameters_of,
    set_iterations,
)
from paribus.benchmarks._tool import count, figure, line_of, once, refuse
from paribus.model import Reading, Sample

_END = re.compile(r"\n[ \t]*\}[ \t]*\n[ \t]*\}")
_KEY = re.compile(r'\s*"?([A-Za-z][\w .]*?)"?: (?:"([^"]*)"|([^",\s]+)),? *')


def of_json(program: str, verb: str, kind: str, text: str) -> Reading:
    """Return what a report file says; raises ParseError with the line."""
    start = once(text, "test_info", "perftest's 'test_info'")
    results = once(text, "results", "perftest's 'results'")
    end = _END.search(text, results)
    if end is None or not start < results:
        refuse("the report has no end, or it is not in order", line_of(text, start))
    said: dict[str, str] = {}
    block = text[text.index("\n", start) + 1 : end.start()]
    for number, row in enumerate(block.split("\n"), line_of(text, start) + 1):
        if row.strip() in ("", "},", "results: {", '"results": {'):
            continue
        pair = _KEY.fullmatch(row)
        if not pair or pair[1] in said:
            refuse(f"expected 'key: value' once, got {row.strip()[:80]!r}", number)
        said[pair[1]] = pair[3] if pair[2] is None else pair[2]
    title = re.fullmatch(
        rf"{verb}_(Bidirectional_)?(?:Post_List_)?{kind}_Test", said.get("test", "")
    )
    if not title:
        refuse(f"test {said.get('test')!r} is not {program}'s", line_of(text, start))
    settings = {key.replace("_", " "): value for key, value in said.items()}
    parameters = parameters_of(settings, bidirectional=bool(title[1]))
    line = line_of(text, results)
    size, iterations = (count(said.get(key, ""), line) for key in ("MsgSize", "n_iterations"))
    samples: list[Sample]
    if kind == "BW":
        samples = _bandwidth(said, size, line)
        peak = said.get("BW_peak", "")
        if not re.fullmatch(r"\d+\.\d+", peak):
            refuse(f"a peak of {peak!r}", line)
        set_iterations(parameters, [iterations] if float(peak) > 0 else [], 1)
    elif "t_typical" in said or "t_min" in said:
        keys = ("t_min", "t_typical", "percentile_99", "percentile_99.9", "t_max", "t_avg")
        *points, mean = (figure(said.get(key, ""), line) for key in keys)
        low, median, p99, p999, high = points
        samples = latencies(size, (low, median, p99, p999, high), mean, line)
        parameters["statistic"] = "median"
        set_iterations(parameters, [iterations], 1)
    else:
        mean = figure(said.get("t_avg", ""), line)
        samples = [Sample("latency", case_of(size), (mean,))]
        parameters["statistic"] = "mean"
    facts = {f"perftest.{k.lower().replace(' ', '_')}": settings[k] for k in SAID if k in settings}
    return Reading(program, "not printed", parameters, None, tuple(samples), facts)


def _bandwidth(said: dict[str, str], size: int, line: int) -> list[Sample]:
    average, rate = (figure(said.get(key, ""), line) for key in ("BW_average", "MsgRate"))
    for scale in (TO_MIB["MiB/sec"], TO_MIB["Gb/sec"]):
        if fits(average * scale, size, rate, 0.0051 * scale):
            break
    else:
        refuse(f"{average} is neither MiB/s nor Gbit/s of {rate} million times {size} B", line)
    return bandwidths(size, average * scale, rate)
