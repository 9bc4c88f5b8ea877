"""perftest's report file (--out_json): one size, settings and figures.

perftest 4.5 writes its keys without quotes, which is no JSON; later ones with (both are read). The
unit of the bandwidth is not said: it is the one in which size times message rate comes out.
"""

from __future__ import annotations

import re

from paribus.core import Reading
from paribus.readers.figures import count, figure
from paribus.readers.reader import point, single
from paribus.readers.text import line_of, once, refuse
from paribus.tools.readers.perftest_text import (
    DISORDER,
    FACTS,
    NEEDED,
    TO_MIB,
    fits,
    ordered,
    parameters_of,
    set_iterations,
)

_END = re.compile(r"\n[ \t]*\}[ \t]*\n[ \t]*\}")
_PAIR = re.compile(
    r'\n[ \t]*+"?([A-Za-z][\w .]*+)"?: ?(?:"([^"\n]*+)"|([^",\s]++)),? *$',
    re.M,
)
_BEHIND = re.compile(r'(?<=[{,])[ \t]*(?=")')
_LAST = re.compile(r"(?<=\S)[ \t]*\}")
"""Where a line begins in a report that perftest wrote itself: another program may leave it out."""

_BARE = re.compile(r"\n[ \t]*+(?:\},[ \t]*+)?$", re.M)
_PEAK = re.compile(r"[0-9]+\.[0-9]+")
_NAMES = {key: key.replace(" ", "_") for key in (*NEEDED, *FACTS)}
_TITLE = re.compile(r"(\w+?)_(Bidirectional_)?(?:Post_List_)?(BW|Latency)_Test")


def of_json(program: str, verb: str, kind: str, text: str) -> Reading:
    """Return the reading of a report file; raises ParseError with the line."""
    text = _BEHIND.sub("\n", _LAST.sub("\n}", text))
    start = once(text, "test_info", "perftest's 'test_info'")
    results = once(text, "results", "perftest's 'results'")
    end = _END.search(text, results)
    if end is None or not start < results:
        refuse("the report has no end, or it is not in order", line_of(text, start))
    report = _pairs(text, text.index("\n", start), end.start())
    title = _TITLE.fullmatch(report.get("test", ""))
    if not title or (title[1], title[3]) != (verb, kind):
        refuse(f"test {report.get('test')!r} is not {program}'s", line_of(text, start))
    settings = {key: report[name] for key, name in _NAMES.items() if name in report}
    parameters = parameters_of(settings, bidirectional=bool(title[2]))
    line = line_of(text, results)
    size, iterations = (count(report.get(key, ""), line) for key in ("MsgSize", "n_iterations"))
    case = point(bytes=size)
    if kind == "BW":
        bandwidth, rate = _bandwidth(report, size, line)
        samples = single(case, bandwidth=bandwidth, message_rate=rate)
        peak = report.get("BW_peak", "")
        if not _PEAK.fullmatch(peak):
            refuse(f"a peak of {peak!r}", line)
        set_iterations(parameters, [iterations] if float(peak) > 0 else [], 1)
    elif "t_typical" in report or "t_min" in report:
        keys = ("t_min", "t_typical", "percentile_99", "percentile_99.9", "t_max", "t_avg")
        low, median, p99, p999, high, mean = (figure(report.get(key, ""), line) for key in keys)
        if not ordered(low, median, p99, p999, high, mean):
            refuse(DISORDER, line)
        samples = single(case, latency=median, latency_p99=p99)
        parameters["statistic"] = "median"
        set_iterations(parameters, [iterations], 1)
    else:
        mean = figure(report.get("t_avg", ""), line)
        samples = single(case, latency=mean)
        parameters["statistic"] = "mean"
    facts = {fact: settings[key] for key, fact in FACTS.items() if key in settings}
    return Reading(program, "not printed", parameters, None, samples, facts)


def _pairs(text: str, start: int, end: int) -> dict[str, str]:
    """Return keys and values of the lines from `start` to `end`; refuses a line without a pair."""
    found = _PAIR.findall(text, start, end)
    report = {key: quoted or bare for key, quoted, bare in found}
    lines = text.count("\n", start, end) - len(_BARE.findall(text, start, end))
    if not len(report) == len(found) == lines:
        seen: set[str] = set()
        for number, line in enumerate(text[start + 1 : end].split("\n"), line_of(text, start) + 1):
            key = pair[1] if (pair := _PAIR.match(f"\n{line}")) else ""
            if key in seen or not (key or _BARE.match(f"\n{line}")):
                refuse(f"expected 'key: value' once, got {line.strip()[:80]!r}", number)
            seen |= {key} - {""}
        refuse("the report is not in order", line_of(text, start))
    return report


def _bandwidth(report: dict[str, str], size: int, line: int) -> tuple[float, float]:
    """Return MiB/s and million messages/s."""
    average, rate = (figure(report.get(key, ""), line) for key in ("BW_average", "MsgRate"))
    for scale in (TO_MIB["MiB/sec"], TO_MIB["Gb/sec"]):
        if fits(average * scale, size, rate, 0.0051 * scale):
            break
    else:
        refuse(f"{average} is neither MiB/s nor Gbit/s of {rate} million times {size} B", line)
    return average * scale, rate
