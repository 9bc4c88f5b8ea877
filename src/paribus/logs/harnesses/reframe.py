"""What ReFrame writes of performance tests: its report (JSON), and its perflogs.

A perflog is a heading, "result|job_completion_time|...|triad_value|triad_unit|...", and a row for
each job, with a column for each performance variable.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from paribus.border import printable
from paribus.core import Case, Direction, Metric, Reading, Sample, Scalar
from paribus.readers.harness import (
    LONGEST_NAME,
    NOT_WRITTEN,
    Failed,
    Harness,
    Measured,
    name_of,
    when,
)
from paribus.readers.heads import Head
from paribus.readers.json import amount, document, in_json, inner
from paribus.readers.text import once, refuse
from paribus.readers.units import better_of, canonical

REPORT = '"session_info": {'
PERFLOG = "result|job_completion_time|"
FORMAT = "4."
"""The beginning of the data versions of the report that are read."""

_APART = ("partition", "environ")
"""Where, and with what, a test is launched: a parameter only if a file has several, because two
clusters name their partitions differently."""

_OTHERS = re.compile(
    r"name|num_tasks|result|descr|perfvalues|job_completion_time\w*|job_submit_time|jobid|job_exitcode"
    r"|\w+_(?:value|unit|ref|lower_thres|upper_thres)|(?:display|short|unique)_name|hashcode|\w*uuid"
    r"|run_index|time_\w+|fail_\w+|(?:stage|output|sources)dir|prefix|sourcepath|filename|scheduler"
    r"|job_std\w+|build_\w+|max_pending_time|fixture|partition|environ|strict_check|valid_\w+|check_\w+"
    r"|errors|message|exc_info|job_script"
)
"""Columns of the perflog, and keys of a case of the report, that are no facts of an arm: other
fields have them, or they count and date jobs."""


class _Figure(NamedTuple):
    """One performance variable as ReFrame writes it: a value, or its text, with its limits."""

    name: str
    value: Any
    unit: str
    lower: Any
    upper: Any


class _Job(NamedTuple):
    """One launch of a test: its settings, date, why it failed ("" if not), and its figures."""

    settings: Mapping[str, Any]
    date: tuple[float, bool] | None
    failed: str
    figures: tuple[_Figure, ...]


def read(text: str) -> list[Measured | Failed]:
    """Return every job of every performance test, from a report or a perflog."""
    if in_json(REPORT).search(text):
        version, jobs = _of_report(text)
    else:
        version, jobs = NOT_WRITTEN, _of_perflog(text)
    jobs = [job for job in jobs if job.figures or job.failed]
    if not jobs:
        refuse("ReFrame reports no performance variable: none of its tests measures one")
    several: dict[tuple[str, str], set[str]] = {}
    for job in jobs:
        for key in _APART:
            several.setdefault((_test(job), key), set()).add(str(job.settings.get(key)))
    return [_launch(job, version, several) for job in jobs]


def _test(job: _Job) -> str:
    return name_of(job.settings, "name")


def _launch(
    job: _Job, version: str, several: Mapping[tuple[str, str], set[str]]
) -> Measured | Failed:
    """Return one job as a launch, in the units of units.py.

    `several` are the values of each test's _APART in the whole file.
    """
    test = _test(job)
    if job.failed:
        return Failed(f"{test!r} {job.failed}", {"test": test})
    metrics, samples = [], []
    for one in job.figures:
        factor, unit = canonical(one.unit)
        better = _better(one, unit)
        name = name_of(one.name)
        metrics.append(Metric(name, unit, better or "higher", unsaid=better is None))
        samples.append(Sample(name, Case(), (factor * amount(one.value),)))
    parameters: dict[str, Scalar] = {"test": test}
    for key in _APART:
        if len(several[test, key]) > 1:
            parameters[key] = name_of(job.settings, key)
    tasks = job.settings.get("num_tasks")
    ranks = int(amount(tasks)) if tasks not in (None, "null") else None
    facts = {f"reframe.{key}": text for key, text in _facts(job.settings)}
    reading = Reading("reframe", version, parameters, ranks, tuple(samples), facts)
    return Measured(reading, job.date, tuple(metrics))


def _facts(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the settings of a job that are facts of its arm, as text: those not in _OTHERS."""
    for key, value in settings.items():
        if not _OTHERS.fullmatch(key) and isinstance(value, str | int | float | list | dict | None):
            text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
            yield key, printable(" ".join(text.split()))[:LONGEST_NAME]


def _date(settings: Mapping[str, Any]) -> tuple[float, bool] | None:
    """Return when a job ended; only as seconds since the epoch is the zone in every form."""
    unix = settings.get("job_completion_time_unix")
    if unix in (None, "null", ""):
        return when(settings.get("job_completion_time"))
    return amount(float(unix)), True


def _better(one: _Figure, unit: str) -> Direction | None:
    """Return which values are better: a limit on one side shows it, or else the unit may."""
    limits = [one.lower not in (None, "null", ""), one.upper not in (None, "null", "")]
    if sum(limits) == 1:
        return "higher" if limits[0] else "lower"
    return better_of(unit)


# --- the report ----------------------------------------------------------------------------------


def _of_report(text: str) -> tuple[str, list[_Job]]:
    """Return the version of ReFrame, and the jobs of a report."""
    tree = document(text, REPORT)
    session = inner(tree, "session_info")
    if not str(session.get("data_version")).startswith(FORMAT):
        refuse(
            f"is a report of data version {str(session.get('data_version'))[:20]!r}; Paribus reads"
            " 4.x, which ReFrame 4.7 and newer write: use those, or the perflog"
        )
    runs = inner(tree, "runs")
    # Only jobs that failed are retried: a second chance for slow ones would favour the slower arm.
    if "--max-retries" in str(session.get("cmdline")):
        runs = runs[:1]
    jobs = []
    for run in runs:
        cases = inner(run, "testcases")
        if len(cases) != amount(run, "num_cases", zero=True):
            refuse(f"has {len(cases)} test cases, not the {run['num_cases']} that it announces")
        jobs += [job for case in cases if (job := _of_case(case))]
    return str(inner(session, "version")), jobs


def _of_case(case: Mapping[str, Any]) -> _Job | None:
    """Return a test case of the report as a job, None where it was skipped or measures nothing."""
    result, phase = inner(case, "result"), case.get("fail_phase")
    values = case.get("perfvalues") or {}
    figures = [
        _Figure(key.split(":", 2)[-1], value[0], str(value[4]), value[2], value[3])
        for key, value in values.items()
    ]
    failed = ""
    if result == "pass":
        if code := case.get("job_exitcode"):
            failed = f"ended with exit code {code}"
    elif result == "skip":
        return None
    elif result not in ("fail", "abort", "xfail", "xpass"):
        refuse(f"{case.get('name')!r} has the result {str(result)[:20]!r}, which is unknown")
    elif phase != "performance" or not figures:
        failed = f"failed in {phase or result}: {str(case.get('fail_reason'))[:80]!r}"
    settings = {**case, "name": inner(case, "name")}
    return _Job(settings, _date(case), failed, tuple(figures))


# --- the perflog ---------------------------------------------------------------------------------


def _of_perflog(text: str) -> list[_Job]:
    """Return the jobs of a perflog: a heading, and a row for each job."""
    at = once(text, PERFLOG, "the heading of the perflog")
    start = text.rfind("\n", 0, at) + 1
    before = text.count("\n", 0, start)
    heading, *rows = text[start:].split("\n")
    columns = heading.split("|")
    variables = [c.removesuffix("_value") for c in columns if c.endswith("_value")]
    if len(set(columns)) < len(columns) or not {"name", "job_exitcode"} < {*columns}:
        refuse("the heading of the perflog is damaged, or lacks name or job_exitcode", before + 1)
    jobs = []
    seen: set[str] = set()
    for number, row in enumerate(rows, before + 2):
        if "|" not in row:  # what a batch script prints behind it
            continue
        if row in seen:
            refuse("a row is there twice", number)
        seen.add(row)
        cells = row.split("|")
        if len(cells) != len(columns):
            refuse(f"{len(cells)} columns where the heading has {len(columns)}", number)
        jobs.append(_of_row(dict(zip(columns, cells, strict=True)), variables, number))
    return jobs


def _of_row(row: Mapping[str, str], variables: Iterable[str], line: int) -> _Job:
    """Return the job of a row, by columns; raises ParseError with its line."""
    if row["result"] not in ("pass", "fail", "xfail", "xpass"):
        refuse(f"the result {row['result'][:20]!r} is unknown", line)
    row = {key: "null" if cell == "None" else cell for key, cell in row.items()}
    figures, failed = [], ""
    if row["job_exitcode"] not in ("0", "null"):  # squeue, for one, does not know it
        failed = f"ended with exit code {row['job_exitcode'][:20]}"
    for name in variables:
        text = row[f"{name}_value"]
        if text in ("null", ""):
            failed = failed or f"has no {name}"
            continue
        try:
            value = json.loads(text)
        except ValueError:
            refuse(f"{name} is {text[:20]!r}, not a number", line)
        limits = row[f"{name}_lower_thres"], row[f"{name}_upper_thres"]
        figures.append(_Figure(name, value, row[f"{name}_unit"], *limits))
    settings: dict[str, Any] = dict(row)
    if (tasks := row.get("num_tasks", "null")) != "null":
        settings["num_tasks"] = int(tasks)
    return _Job(settings, _date(row), failed, tuple(figures))


HARNESS = Harness(
    "reframe",
    read,
    marks=(REPORT, PERFLOG),
    heads=(Head("{", r'"session_info"\s*:'), Head(PERFLOG)),
    launches=(
        "every job of a test is a launch; one outside ReFrame's own limits counts as well, for"
        " without it an arm would lose its slow launches; retries (--max-retries) do not count"
    ),
    versions="4.10.4: reports of data version 4.2, perflogs of the default format",
    proof=(
        "as many test cases as announced, every row as long as the heading, exit code 0, no failure"
        " before the performance stage; direction by a threshold that stands alone, or by the unit"
    ),
)
