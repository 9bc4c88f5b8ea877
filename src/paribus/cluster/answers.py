"""The answers of nodes about themselves: node.sh runs on all at once and prints "KEY VALUE" lines.

"mpi.launcher /usr/bin/mpirun" and "limit.nofile 1024" become values of facts of an Answer.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources

from paribus.hosts.reached import Host
from paribus.hosts.session import Session, SessionError, nonce, with_each

ASK_S = 20.0
"""Seconds that a node may take to answer."""

_CLOCK_READINGS = 3

LONGEST = 1000
"""Characters of the longest value."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of one node.

    `facts`: the values of each key of node.sh. `failure`: how it failed to answer, "" if it did
    not; then `stderr` has its last errors, and `code` the exit code of its shell. `banner`: lines
    that login scripts printed. `offset_s`: how far its clock is ahead of this machine's, in s, to
    +-`offset_error_s`; NaN if not known. `connect_s`: the time until its shell answered; `trip_s`:
    that of one question; `answer_s`: that of the whole answer.
    """

    name: str
    facts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    failure: str = ""
    stderr: str = ""
    code: int | None = None
    banner: tuple[str, ...] = ()
    offset_s: float = float("nan")
    offset_error_s: float = float("nan")
    connect_s: float = 0.0
    trip_s: float = 0.0
    answer_s: float = 0.0

    @property
    def answered(self) -> bool:
        """Whether its facts can be used."""
        return not self.failure

    def all(self, key: str) -> Sequence[str]:
        """Return all values of `key`."""
        return self.facts.get(key, ())

    def one(self, key: str) -> str:
        """Return the first value of `key`, "" for none."""
        values = self.facts.get(key, ())
        return values[0] if values else ""


def ask(hosts: Sequence[Host], *, prefix: str = "", timeout_s: float = ASK_S) -> tuple[Answer, ...]:
    """Return the answer of each host, in their order; `prefix`: where MPI is, "" to look for it."""
    script = script_of("node.sh")

    def talk(session: Session) -> Answer:
        return _answer(session, script, prefix)

    return tuple(
        _failed(host, found, timeout_s) if isinstance(found, SessionError) else found
        for host, found in zip(hosts, with_each(hosts, timeout_s, talk), strict=True)
    )


def script_of(name: str) -> str:
    """Return the text of a script of this room."""
    return resources.files("paribus.cluster").joinpath(name).read_text(encoding="utf-8")


def _answer(session: Session, script: str, prefix: str) -> Answer:
    """Return what a host answers to `script` in its session, with the offset of its clock."""
    mark, begin = nonce(), time.monotonic()
    session.send(
        f'echo; echo {mark}; while read -r word && [ "$word" = clock ]; do date +%s.%N; done\n'
    )
    banner = tuple(line for line in session.until(mark) if line.strip())
    connect_s = time.monotonic() - begin
    readings = [_reading(session) for _ in range(_CLOCK_READINGS)]
    trip_s, offset_s = min(readings)
    places = shlex.quote(":".join(map(str, session.host.places)))
    given = f"mark={mark} prefix={shlex.quote(prefix)} places={places}"
    session.send(f"end\n{{ {given}\n{script}}} </dev/null\n")
    facts: dict[str, list[str]] = {}
    for line in session.until(mark):
        key, _, value = line.partition(" ")
        facts.setdefault(key, []).append(value.strip()[:LONGEST])
    missing = [key for key in ("user", "arch", "hostname") if not facts.get(key)]
    return Answer(
        session.host.name,
        facts,
        failure=f"said nothing about its {missing[0]}" if missing else "",
        banner=banner,
        offset_s=offset_s,
        offset_error_s=trip_s / 2,
        connect_s=connect_s,
        trip_s=trip_s,
        answer_s=time.monotonic() - begin,
    )


def _reading(session: Session) -> tuple[float, float]:
    """Return the time of a round trip, and how far the clock there is ahead, both in s."""
    begin, here = time.monotonic(), time.time()
    session.send("clock\n")
    line = session.line()
    trip = time.monotonic() - begin
    whole, _, part = line.strip()[:40].partition(".")
    if not whole.isdecimal() or len(whole) > 12:
        return trip, float("nan")
    if part.isdecimal():
        return trip, float(f"{int(whole)}.{part}") - (here + trip / 2)
    # Without nanoseconds (busybox) the time is known to the second.
    return trip + 1.0, int(whole) + 0.5 - (here + trip / 2)


def _failed(host: Host, error: SessionError, timeout_s: float) -> Answer:
    failure = {
        "silent": f"no answer within {timeout_s:g} s",
        "flood": "prints without end",
        "ended": "cannot be reached" if error.code == 255 else "ends before it has answered",
    }[error.kind]
    return Answer(host.name, failure=failure, stderr=error.stderr, code=error.code)
