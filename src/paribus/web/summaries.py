"""The summary of a study: its question, state, sentence and effects, read from its files."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from paribus.border import printable, read_json
from paribus.core import ParibusError, StoreError
from paribus.plan import read_plan
from paribus.report import wording
from paribus.store import Effect, Standing, Store, read_count
from paribus.store.watched import alive, read_standing
from paribus.web.found import STAMPED, Found, Kept, stamp

MOST_VERDICT = 1 << 28
"""Bytes of a verdict.json: that of 1,000 hosts has 60 MB."""


@dataclass(frozen=True, slots=True)
class Value:
    """The median of an arm in a benchmark; `text`: with its unit.

    Values with the same `what` (benchmark and parameters) and `how` (the arm without its hosts) can
    be compared between studies.
    """

    label: str
    arm: str
    what: str
    how: str
    value: float
    better: str
    margin: float
    text: str


@dataclass(frozen=True, slots=True)
class Summary:
    """What lists show of a study. `state`: running, queued, ended, stopped, lost or broken.

    `started`: seconds since the epoch. `launches`: how many are stored, `counted`: how many of them
    the report counts, `planned`: the most there can be. `code`: its exit code. `job`: the job in
    which it waits. The first of the `arms` is the reference. `copy`: equal for copies of one study,
    which hold the same launches. `boots`: by arm and host, the hash of the boot id that ranks saw.
    """

    found: Found
    state: str
    question: str
    sentence: str
    effects: tuple[Effect, ...] = ()
    started: float | None = None
    launches: int = 0
    code: int | None = None
    slow_nodes: tuple[str, ...] = ()
    planned: int = 0
    failures: int = 0
    counted: int | None = None
    job: str = ""
    factor: str = ""
    arms: tuple[str, ...] = ()
    benchmarks: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    copy: str = ""
    values: tuple[Value, ...] = ()
    boots: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def lost(self) -> Summary:
        """Return the summary of this study when its job has ended and it did not begin."""
        text = f"job {self.job} has ended, and the study did not begin"
        return replace(self, state="stopped" if self.launches else "lost", sentence=text)


class Summaries(Kept[Summary]):
    """A cache of summaries, made again when one of a study's files has changed."""

    def of(self, found: Found) -> Summary:
        """Return the summary of a study as it stands now."""
        try:
            running = found.measured and alive(found.path)
            standing = read_standing(found.path) if found.measured else None
        except StoreError as error:
            return _broken(found, error)
        return self.made(found, (stamp(found), running, standing), summary)


def summary(found: Found) -> Summary:
    """Return the summary of a study, read from its files."""
    try:
        return _summary(found)
    except (OSError, ParibusError, ValueError, TypeError, KeyError, AttributeError) as error:
        return _broken(found, error)


def _broken(found: Found, error: Exception) -> Summary:
    """Return the summary of a study that cannot be read."""
    reason = str(error) if isinstance(error, ParibusError) else f"{STAMPED[-1]} is not a verdict"
    if isinstance(error, OSError):
        reason = f"{Path(error.filename or '').name}: {error.strerror}"
    return Summary(found, "broken", found.name, f"cannot be read: {printable(reason)}")


def _summary(found: Found) -> Summary:
    """Return the summary of a study; raises for damaged files what `summary` catches."""
    standing = (read_standing(found.path) if found.measured else None) or Standing("")
    state = _state(found, standing) if found.measured else "ended"
    if state != "queued":
        standing = replace(standing, job="")  # its process is there
    if found.measured and not (found.path / "plan.json").exists():
        return Summary(
            found, state, found.name, standing.text, code=standing.code, job=standing.job
        )
    began, hosts = _began(found)
    known = Summary(
        found,
        state,
        "",
        standing.text,
        standing.effects,
        began,
        read_count(found.path).launches,
        standing.code,
        planned=standing.planned,
        failures=standing.failures,
        job=standing.job,
        hosts=hosts,
    )
    if state != "ended":
        plan = read_plan(found.path)
        return replace(
            known,
            question=plan.study.question,
            factor=plan.study.factor,
            arms=tuple(arm.name for arm in plan.study.arms),
            benchmarks=tuple(one.label for one in plan.study.benchmarks),
            copy=f"{plan.sha256} {began}",
        )
    table = read_json(found.path / STAMPED[-1], MOST_VERDICT, "a verdict")
    if not isinstance(table, dict):
        raise TypeError("not a table")
    study = table["study"]
    return replace(
        known,
        question=str(study["question"]),
        sentence=str(table["sentence"]),
        effects=tuple(_effect(one) for one in table["headlines"] if one.get("decides", True)),
        started=_time(table["started"]),
        slow_nodes=tuple(str(s["node"]) for one in table["matrices"] for s in one["slow_nodes"]),
        counted=sum(int(one["counted"]) for one in table["tallies"]),
        factor=str(study["factor"]),
        arms=tuple(str(one["name"]) for one in study["arms"]),
        benchmarks=tuple(str(one["label"]) for one in study["benchmarks"]),
        copy=f"{table['plan_sha256']} {table['started']}",
        values=values(table),
        boots=_boots(table["facts"]),
    )


def _began(found: Found) -> tuple[float | None, tuple[str, ...]]:
    """Return when the first launch of a study was started, and the nodes of its launches."""
    if found.measured:
        with suppress(StoreError), Store(found.path) as store:
            began, hosts = store.began()
            return _time(began), hosts
    return None, ()


def _time(seconds: object) -> float | None:
    """Return seconds since the epoch, None for anything else, and for dates beyond a calendar's."""
    return seconds if isinstance(seconds, int | float) and 0 < seconds < 1e11 else None


def _state(found: Found, standing: Standing) -> str:
    if alive(found.path):
        return "running"
    if standing.job:
        return "queued"
    # A Paribus before progress wrote a verdict after the last launch; (0, 0): there is none.
    *_, launches, _, verdict = stamp(found)
    if verdict == (0, 0):
        refused = standing.code in (1, 2, 3, 4) and not read_count(found.path).launches
        return "lost" if refused else "stopped"
    judged = standing.code is None and verdict >= launches
    return "ended" if standing.code in (0, 1, 3, 4) or judged else "stopped"


ELSEWHERE = ("name", "addresses", "hypervisors", "ssh")
"""Keys of an arm, and of its hosts, that name the arm or its hosts."""


def values(table: Mapping[str, Any]) -> tuple[Value, ...]:
    """Return the value of each arm in each headline; none for a malformed verdict."""
    try:
        how = {
            str(arm["name"]): json.dumps([_but(arm), _but(arm.get("hosts") or {})])
            for arm in table["study"]["arms"]
        }
        what = {
            str(one["label"]): json.dumps({k: v for k, v in one.items() if k != "label"})
            for one in table["study"]["benchmarks"]
        }
        found: dict[tuple[str, str], Value] = {}
        for one in table["headlines"]:
            label, metric = str(one["benchmark"]), one["metric"]
            for side, key in (("reference", "reference_value"), ("arm", "arm_value")):
                arm, value = str(one[side]), float((one[key] or {"median": 0})["median"])
                if SMALLEST < value < 1 / SMALLEST:
                    text = wording.quantity(value, str(metric["unit"]))
                    same = f"{what[label]} {metric}"
                    better, margin = str(metric["better"]), max(1e-4, float(one["margin"]))
                    of = Value(label, arm, same, how[arm], value, better, margin, text)
                    found.setdefault((label, arm), of)
    except (KeyError, TypeError, AttributeError, ValueError):
        return ()
    return tuple(found.values())


def _boots(facts: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return the hashes of boot ids that ranks of our kernels saw, by arm and host."""
    found = {}
    for arm, known in facts.items():
        lists = [known.get(key) for key in ("rank.hosts", "rank.machines")]
        pairs = zip(*lists, strict=False) if all(isinstance(one, list) for one in lists) else ()
        found[arm] = {str(host): str(boot) for host, boot in pairs}
    return found


SMALLEST = 1e-30
"""Values below this, or above its inverse, cannot have been measured."""


def _but(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table without the keys of ELSEWHERE, and without hosts."""
    return {key: value for key, value in table.items() if key not in (*ELSEWHERE, "hosts")}


def _effect(finding: Mapping[str, Any]) -> Effect:
    """Return the effect of a headline in the JSON of a verdict."""
    known = (finding["verdict"].get("size_known", True) and finding["comparison"]) or {}
    ends = [known.get(key) for key in ("ratio", "low", "high")]
    ratio, low, high = (one if isinstance(one, int | float) else None for one in ends)
    return Effect(
        str(finding["benchmark"]),
        str(finding["arm"]),
        str(finding["verdict"]["word"]),
        str(finding["verdict"]["reason"]),
        ratio,
        low,
        high,
        str(finding["metric"]["better"]),
    )


def when(seconds: float | None) -> str:
    """Return a day and minute in UTC."""
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds)) if seconds else ""
