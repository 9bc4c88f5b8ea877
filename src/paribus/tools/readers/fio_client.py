"""What `fio --client` prints: jobs on several machines, as text or as JSON, and their sum.

The figures of a job are those of all clients together: rates and bandwidths are added up, the mean
latency is that of all operations. Percentiles of several clients cannot be joined, so they are
there for one client alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from paribus.core import Reading, Sample, Scalar
from paribus.readers.json import amount, document, inner
from paribus.readers.reader import single
from paribus.readers.text import line_of, refuse
from paribus.tools.readers.fio_json import job_of_json, parameters_of, shared
from paribus.tools.readers.fio_text import JOB, Figures, job_of_text, of_op, parameters_of_text

ALL = "All clients"
"""What fio calls the sum over clients where there are two or more."""

TITLE = re.compile(r"(?:^|\n)hostname=\S+, be=\d, [^\n]*\bfio=fio-(\d+\.\d+\S*?), flags=")
_HEAD = re.compile(r"\n<[^\n>]*> (\S[^\n]*): \(g=(\d+)\): rw=")
_ISSUED = re.compile(r"\n     issued rwts?: total=(\d+),(\d+),")
_STATUS = "\nRun status group "


class _Job(NamedTuple):
    """A job as one client reports it: its figures by direction, and its processes."""

    name: str
    figures: Figures
    processes: int


def of_client_text(text: str) -> Reading:
    """Return the reading of the text of `fio --client`; raises ParseError with the line."""
    text = f"\n{text}"
    versions = TITLE.findall(text)
    clients = len(versions)
    heads = _HEAD.findall(text)
    if not heads:
        refuse("fio --client: no line '<HOST> NAME: (g=0): rw=...'")
    blocks = list(JOB.finditer(text))
    if len(blocks) != text.count("): err="):
        refuse("fio --client: a job's first line is not whole", line_of(text, blocks[0].start()))
    wholes = [one for one in blocks if one[1] == ALL]
    if len(wholes) != (clients > 1) or (wholes and wholes[0] is not blocks[-1]):
        refuse(f"fio --client: no sum {ALL!r} of {clients} clients at the end: fio did not end")
    for group in {number for _, number in heads}:
        if f"{_STATUS}{group} " not in text:
            refuse(f"fio --client: no run status of group {group}: fio did not end")
    jobs, done = [], [0, 0]
    ends = [*(block.start() for block in blocks[1:]), len(text)]
    for block, end in zip(blocks, ends, strict=True):
        if block[3] != "0":
            cause = f"fio says err={block[3]}{block[4][:120]}"
            refuse(cause, line_of(text, block.start()))
        if block[1] == ALL:
            continue
        status = text.find(_STATUS, block.start(), end)
        found = job_of_text(text, block.start(), status if status >= 0 else end)
        jobs.append(_Job(block[1], found, int(block[2])))
        for at, op in enumerate(("read", "write")):
            done[at] += round(found[op]["operations"]) if op in found else 0
    _check_text(text, wholes, jobs, done)
    names = {name.split("> ", 1)[-1] for name, _ in heads}
    if lost := {name for name, _ in heads if name not in {job.name for job in jobs}}:
        named = [group for name, group in heads if name in lost]
        if any(all(g != group or n in lost for n, g in heads) for group in named):
            refuse(f"fio --client: nothing of job {sorted(lost)[0]!r}: fio did not end")
    parameters = parameters_of_text(text, sum(job.processes for job in jobs))
    return _reading("/".join(dict.fromkeys(versions)), clients, parameters, jobs, names)


def _check_text(
    text: str, wholes: Sequence[re.Match[str]], jobs: Iterable[_Job], done: Sequence[int]
) -> None:
    """Refuse a sum over clients that is not the sum of what they report."""
    for whole in wholes:
        line = line_of(text, whole.start())
        if int(whole[2]) != sum(job.processes for job in jobs):
            refuse(f"fio --client: {whole[2]} jobs of all clients, but others are reported", line)
        issued = _ISSUED.findall(text, whole.start())
        if [tuple(map(int, one)) for one in issued] != [tuple(done)]:
            refuse("fio --client: the operations of all clients are not those of each", line)


def of_client_json(text: str) -> Reading:
    """Return the reading of the JSON of `fio --client`; raises ParseError."""
    tree = document(text, '"fio version"')
    version = str(inner(tree, "fio version")).removeprefix("fio-")
    stats = inner(tree, "client_stats")
    if not isinstance(stats, list) or not stats:
        refuse("fio --client reports no job")
    mine = [one for one in stats if inner(one, "jobname") != ALL]
    wholes = [one for one in stats if inner(one, "jobname") == ALL]
    hosts = {(inner(one, "hostname"), inner(one, "port")) for one in mine}
    if len(wholes) != (len(hosts) > 1):
        refuse(f"fio --client: no sum {ALL!r} of {len(hosts)} clients: fio did not end")
    jobs: list[_Job] = []
    asked: list[Mapping[str, Scalar]] = []
    for one in mine:
        options = {**tree.get("global options", {}), **inner(one, "job options")}
        parameters = parameters_of(options)
        processes = int(str(parameters.pop("jobs")))
        asked.append(parameters)
        jobs.append(_Job(str(inner(one, "jobname")), job_of_json(one, options), processes))
    for whole in wholes:
        for op in ("read", "write"):
            total = sum(amount(one, op, "total_ios", zero=True) for one in mine)
            if amount(whole, op, "total_ios", zero=True) != total:
                refuse("fio --client: the operations of all clients are not those of each")
    parameters = {"jobs": sum(job.processes for job in jobs), **shared(asked)}
    return _reading(version, len(hosts), parameters, jobs, {job.name for job in jobs})


def _reading(
    version: str,
    clients: int,
    parameters: Mapping[str, Scalar],
    jobs: Sequence[_Job],
    names: Iterable[str],
) -> Reading:
    """Return the sum of what clients report of each job, by direction."""
    several = len({job.name for job in jobs}) > 1 or len({*names}) > 1
    samples: list[Sample] = []
    for name in dict.fromkeys(job.name for job in jobs):
        mine = [job for job in jobs if job.name == name]
        for op in ("read", "write"):
            if of := [job.figures[op] for job in mine if op in job.figures]:
                case = of_op(op, name if several else "")
                samples += single(case, **_sum(of))
    settings = {**parameters, "clients": clients} if clients > 1 else parameters
    return Reading("fio", version, settings, None, tuple(samples))


def _sum(several: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the figures of all clients together; of one client its own, with percentiles."""
    if len(several) == 1:
        return {key: value for key, value in several[0].items() if key != "operations"}
    found = {key: sum(one[key] for one in several) for key in ("bandwidth", "iops")}
    if all("latency" in one for one in several):
        done = sum(one["operations"] for one in several)
        whole = sum(one["operations"] * one["latency"] for one in several)
        found["latency"] = whole / done
    return found
