"""The calls of a program's ranks in their order: from the profiler's records to a skeleton.

A skeleton is what native/replay.cpp replays: each rank's calls with sizes and partners, and the
time between them as computation, without the program's data (docs/profile.md). Its text is

    paribus-calls 1 RANKS GROUPS
    N MEMBER ...               each group of ranks that a collective is of
    CALLS EVENTS               for each rank: how many lines of calls and how many events follow
    send PEER TAG BYTES SLOT   each call that differs from the others
    CALL NS ...                the events: a call, and the time before it
"""

from __future__ import annotations

import base64
import json
import lzma
import re
from array import array
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MOST_EVENTS = 1 << 17
"""Of all ranks together, in a skeleton: half a megabyte of text, and the work of a second."""

MOST_TAGS = 1 << 15
"""Tags that every MPI has (MPI 4.1, section 9.1.2): of more, two are one, which only matters to
messages between two ranks that are under way at once."""

NO_PEER, ANY = -1, -2
"""As native/profile/trace.hpp writes a partner: none, and whoever sends."""

_AS = {
    **{name: name.lower() for name in ("Barrier", "Bcast", "Reduce", "Allreduce", "Scan")},
    **{name: name.lower() for name in ("Exscan", "Gather", "Scatter", "Allgather", "Alltoall")},
    **{name: name.lower() for name in ("Gatherv", "Scatterv", "Allgatherv", "Alltoallv")},
    **{f"Reduce_scatter{block}": "reduce_scatter" for block in ("", "_block")},
}
"""What a collective is called in a skeleton. Reduce_scatter has the mean of its sizes there."""


@dataclass(slots=True, eq=False)
class Call:
    """A call of a rank to MPI; `code` is its name in a skeleton, such as "allreduce".

    `gap`: seconds computed since the call before; `in_mpi`: seconds that it took; `began`: when, in
    seconds of the host's clock. `group` is an index into Traced.groups. `peer` is the partner, or
    the root, `size` in bytes, and `starts` whether it only starts. `counts` are bytes of each rank
    of a collective whose sizes differ. `over` are the calls that a wait is for, `back` is what a
    `sendrecv` receives. `partner` is the other end of a message; `kept` are calls that a skeleton
    has, and `slot` is the place of its request there.
    """

    code: str
    gap: float
    in_mpi: float = 0.0
    began: float = 0.0
    group: int = -1
    peer: int = NO_PEER
    tag: int = 0
    size: int = 0
    starts: bool = False
    counts: Sequence[int] = ()
    over: Sequence[Call] = ()
    back: Call | None = None
    partner: Call | None = None
    kept: bool = False
    slot: int = -1


@dataclass(slots=True)
class Traced:
    """The calls of all ranks, by rank, and the groups of ranks (communicators) that they name.

    `hosts` are those of the ranks. `full` is whether the program made more calls than were kept,
    `odd` whether one of them names a communicator or requests that the profiler does not know.
    """

    ranks: list[list[Call]]
    groups: list[tuple[int, ...]]
    hosts: list[str]
    full: bool = False
    odd: bool = False


def read_trace(paths: Iterable[Path]) -> Traced:
    """Return the calls in the files of the profiler, one for each rank."""
    groups: dict[tuple[int, ...], int] = {}
    found: dict[int, tuple[list[Call], str]] = {}
    full = odd = False
    for path in paths:
        head, _, body = path.read_bytes().partition(b"\n")
        header = json.loads(head)
        numbers = [groups.setdefault(tuple(one), len(groups)) for one in header["groups"]]
        found[header["rank"]] = list(_calls(body, header, numbers)), header["host"]
        full |= header["full"]
        odd |= header["odd"]
    calls = [found[rank] for rank in sorted(found)]
    return Traced([one for one, _ in calls], list(groups), [host for _, host in calls], full, odd)


def _calls(body: bytes, header: Mapping[str, Any], groups: Sequence[int]) -> Iterator[Call]:
    """Yield the calls in the words that trace.hpp writes; those that are not replayed as a gap.

    A call is a word with its name and the number n of values, three times in ticks, and n values.
    `groups` are the numbers in Traced of the rank's groups.
    """
    words = array("q")
    words.frombytes(body)
    at, number, idle = 0, 0, 0.0
    made: dict[int, Call] = {}  # by the number of the call that made a request: what it stands for
    while at < len(words):
        name, n = header["names"][words[at] & 255], words[at] >> 8
        gap, in_mpi, began = (header["seconds_per_tick"] * words[at + one] for one in (1, 2, 3))
        known = words[at + 4 : at + 4 + n].tolist()
        call = Call("", gap + idle, in_mpi, header["opened_s"] + began)
        at, idle = at + 4 + n, 0.0
        if name.startswith(("Wait", "Test")):
            call.code, call.over = "wait", [made[one] for one in known if one in made]
            yield call
        elif name in ("Start", "Startall"):
            for one in filter(made.__contains__, known):
                first = made[one]
                call.code, call.group, call.peer = first.code, first.group, first.peer
                call.tag, call.size, call.starts = first.tag, first.size, True
                made[one] = call
                yield call
                call = Call("", 0.0, 0.0, call.began)
        elif not known or known[0] < 0 or name.endswith("_init"):
            idle = call.gap + in_mpi
            if known and known[0] >= 0:
                made[number] = _named(call, name.removesuffix("_init"), known, groups)
        else:
            made[number] = _named(call, name, known, groups)
            yield call
        number += 1


def _named(call: Call, name: str, known: Sequence[int], groups: Sequence[int]) -> Call:
    """Return `call` with what its record `known` holds: group, peer or root, tag, bytes."""
    call.group, call.starts = groups[known[0]], name.startswith("I")
    if code := _AS.get(name[1:].capitalize() if call.starts else name):
        call.code, call.size, call.peer, call.counts = code, known[1], known[2], known[3:]
        return call
    call.peer, call.tag, call.size = known[1:4]
    call.code = "recv" if name.lower().endswith("recv") else "send"
    if len(known) == 6:
        call.code = "sendrecv"
        call.back = Call("recv", 0.0, 0.0, call.began, call.group, known[4], known[5])
    return call


def match(traced: Traced) -> None:
    """Set the partner of each message, and at the receiver its size and tag.

    Messages between two ranks of one communicator and tag are received in the order in which they
    were sent (MPI 4.1, section 3.5). Where a receive takes them from whoever sends, or with any
    tag, it is the one that left first.
    """
    sent: dict[tuple[int, int], dict[tuple[int, int], deque[Call]]] = {}
    for rank, calls in enumerate(traced.ranks):
        for call in calls:
            if call.code in ("send", "sendrecv") and call.peer >= 0:
                queues = sent.setdefault((call.peer, call.group), defaultdict(deque))
                queues[rank, call.tag].append(call)
    for rank, calls in enumerate(traced.ranks):
        for call in (one.back or one for one in calls):
            if call.code != "recv" or call.peer == NO_PEER:
                continue
            queues = sent.get((rank, call.group), {})
            wanted = [(call.peer, call.tag)]
            if call.peer == ANY or call.tag < 0:
                wanted = [
                    (source, tag)
                    for source, tag in queues
                    if call.peer in (ANY, source) and (call.tag < 0 or call.tag == tag)
                ]
            if known := [key for key in wanted if key in queues]:
                call.peer, call.tag = key = min(known, key=lambda key: queues[key][0].began)
                other = queues[key].popleft()
                call.partner, other.partner, call.size = other, call, other.size
                if not queues[key]:
                    del queues[key]


_CODES = frozenset(_AS.values())
_MESSAGES = ("send", "recv", "sendrecv")


@dataclass(frozen=True, slots=True)
class Loop:
    """The part of a program that its skeleton replays: from one call of a name to another.

    `code` is "" for all of it, else what MPI_X is called in a skeleton; `first` and `last` count
    from 1 on, `last` 0 for the last one.
    """

    code: str = ""
    first: int = 1
    last: int = 0

    def __str__(self) -> str:
        """As `--loop` takes it; "" for all of the program."""
        places = f":{self.first}-{self.last or ''}" if self.first > 1 or self.last else ""
        return f"MPI_{self.code.capitalize()}{places}" if self.code else ""


WHOLE = Loop()


def loop_of(text: str) -> Loop:
    """Return what `--loop` names; raises ValueError with the form for anything else.

    >>> loop_of("MPI_Allreduce:2-")
    Loop(code='allreduce', first=2, last=0)
    """
    found = re.fullmatch(r"(?:MPI_)?([A-Za-z_]+)(?::([0-9]{1,9})-([0-9]{0,9}))?", text)
    if not found or found[1].lower() not in _CODES:
        names = ", ".join(f"MPI_{one.capitalize()}" for one in sorted(_CODES))
        raise ValueError(f"write MPI_Allreduce, or MPI_Allreduce:2-100; one of {names}")
    return Loop(found[1].lower(), max(1, int(found[2] or 1)), int(found[3] or 0))


def select(traced: Traced, loop: Loop) -> list[list[Call]]:
    """Return the calls of each rank in `loop`, and mark those that a skeleton has.

    Of more than MOST_EVENTS it is the middle, between two collectives of all ranks where there are
    such. A message is kept with both of its ends, a collective with the calls of all its ranks.
    Raises ValueError where a rank does not make the call that often.
    """
    spans = [_span(calls, loop) for calls in traced.ranks]
    total = sum(last - first for first, last in spans)
    if total > MOST_EVENTS:
        everybody = [g for g, one in enumerate(traced.groups) if len(one) == len(traced.ranks)]
        marks = [
            [i for i in range(*span) if calls[i].group in everybody and calls[i].code in _CODES]
            for calls, span in zip(traced.ranks, spans, strict=True)
        ]
        last = min(map(len, marks)) - 1
        if some := max(last, 0) * MOST_EVENTS // total:
            at = (last - some) // 2
            spans = [(mine[at] + 1, mine[at + some] + 1) for mine in marks]
        else:
            spans = [(a, a + (b - a) * MOST_EVENTS // total) for a, b in spans]
    selected = [calls[first:last] for calls, (first, last) in zip(traced.ranks, spans, strict=True)]
    _keep(traced, selected)
    return selected


def _span(calls: Sequence[Call], loop: Loop) -> tuple[int, int]:
    """Return the half-open range of a rank's calls that are in the loop."""
    if not loop.code:
        return 0, len(calls)
    places = [i for i, one in enumerate(calls) if one.code == loop.code]
    last = loop.last or len(places)
    if not loop.first < last <= len(places):
        raise ValueError(f"a rank calls it {len(places)} times")
    return places[loop.first - 1] + 1, places[last - 1] + 1


def _keep(traced: Traced, selected: Sequence[Sequence[Call]]) -> None:
    """Mark what is whole of the `selected` calls of each rank."""
    for one in (half for calls in selected for call in calls for half in (call, call.back) if half):
        one.kept = True
    halves = [half for calls in selected for call in calls for half in (call, call.back) if half]
    cut = [
        one for one in halves if one.code in _MESSAGES and not (one.partner and one.partner.kept)
    ]
    for _, together in _collectives(traced):
        whole = all(one.kept for one in together) and len({one.code for one in together}) == 1
        for one in together:
            one.partner = one if whole else None
        if whole:
            _agree(together)
    cut += [one for one in halves if one.code in _CODES and one.partner is None]
    for one in cut:
        one.kept = False


def timing(traced: Traced, selected: Sequence[Sequence[Call]]) -> dict[str, Any]:
    """Return figures of the `selected` calls of a loop, for people.

    `seconds` of the slowest rank by the clock, those that the longest one had `counted` as its own,
    and the mean `computing` outside MPI; of the time in MPI the share `late` that waits for ranks
    that came later, and of the messages the share `early` that was sent before it was needed and
    `off_node` between two hosts. The first two are of ranks of one host, which share a clock.
    `sizes` counts calls by name and power of two of the bytes.
    """
    late = in_mpi = 0.0
    early = messages = off_node = 0
    sizes: dict[str, dict[str, int]] = {}
    for rank, calls in enumerate(selected):
        for call in calls:
            in_mpi += call.in_mpi
            if call.code != "wait":
                of = sizes.setdefault(call.code, {})
                bound = str(1 << max(0, call.size - 1).bit_length())
                of[bound] = of.get(bound, 0) + 1
            last = call.began
            halves = (call.back or call, *call.over)
            for one in halves:
                if one.code == "recv" and one.partner and (one is not call or not call.starts):
                    messages += 1
                    near = traced.hosts[one.peer] == traced.hosts[rank]
                    off_node += not near
                    early += near and one.partner.began < call.began
                    last = max(last, one.partner.began if near else last)
            late += min(last - call.began, call.in_mpi)
    late += _late_in_collectives(traced)
    return {
        "seconds": max(map(_wall_s, selected)),
        "counted": max(sum(one.gap + one.in_mpi for one in calls) for calls in selected),
        "computing": sum(one.gap for calls in selected for one in calls) / len(selected),
        "late": late / in_mpi if in_mpi else 0.0,
        "early": early / messages if messages else 0.0,
        "off_node": off_node / messages if messages else 0.0,
        "sizes": sizes,
    }


def _wall_s(calls: Sequence[Call]) -> float:
    """Return the seconds by the clock, in which a rank may have waited for its core as well."""
    if not calls:
        return 0.0
    first, last = calls[0], calls[-1]
    return last.began + last.in_mpi - first.began + first.gap


def _late_in_collectives(traced: Traced) -> float:
    """Return the seconds that ranks waited in kept collectives for the last one to come."""
    late = 0.0
    for members, together in _collectives(traced):
        if together[0].kept and len({traced.hosts[rank] for rank in members}) == 1:
            last = max(one.began for one in together)
            late += sum(min(last - one.began, one.in_mpi) for one in together)
    return late


def _collectives(traced: Traced) -> Iterator[tuple[tuple[int, ...], tuple[Call, ...]]]:
    """Yield the ranks of each collective, and the call of each."""
    for group, members in enumerate(traced.groups):
        of_ranks = (
            [one for one in traced.ranks[rank] if one.group == group and one.code in _CODES]
            for rank in members
        )
        for together in zip(*of_ranks, strict=False):
            yield members, together


def _agree(together: Sequence[Call]) -> None:
    """Give the calls of a collective the sizes that all of its ranks must have alike."""
    code = together[0].code
    sizes = [one.size for one in together]
    if code == "alltoallv":
        received = [one.counts for one in together]
        for i, one in enumerate(together):
            one.counts = [*(each[i] for each in received), *received[i]]
    for one in together:
        if code in ("gatherv", "scatterv", "allgatherv"):
            one.counts = sizes
        elif code != "alltoallv":
            one.size = sum(sizes) // len(sizes)


def skeleton(traced: Traced, selected: Sequence[Sequence[Call]]) -> str:
    """Return the text of a skeleton of the calls that are kept of the `selected` ones.

    It computes as long as they do together: also before what is left out, such as messages to
    MPI_PROC_NULL.
    """
    lines = [f"paribus-calls 1 {len(traced.ranks)} {len(traced.groups)}"]
    lines += [f"{len(one)} {' '.join(map(str, one))}" for one in traced.groups]
    tags: dict[tuple[int, int], int] = {}
    for calls in selected:
        rows: dict[str, int] = {}
        events: list[str] = []
        gap = 0.0
        slots = _Slots()
        for call in calls:
            gap += call.gap
            kept = call.kept or (call.back and call.back.kept)
            row = _row(call, tags, slots) if kept else ""
            if row:
                ns = max(0, round(1e9 * gap))
                step = 10 ** max(0, len(str(ns)) - 2)
                ns -= ns % step  # two digits are kept; the rest is in the next gap
                events.append(f"{rows.setdefault(row, len(rows))} {ns}")
                gap -= 1e-9 * ns
        rest = max(0, round(1e9 * gap))
        if slots.taken or rest:  # a wait for nothing still computes before
            row = " ".join(map(str, ("wait", len(slots.taken), *sorted(slots.taken))))
            events.append(f"{rows.setdefault(row, len(rows))} {rest}")
        lines += [f"{len(rows)} {len(events)}", *rows, *events]
    return "\n".join(lines) + "\n"


def compressed(text: str) -> str:
    """Return the text of a skeleton as profiles and plans hold it: base64 of xz."""
    return base64.b64encode(lzma.compress(text.encode(), preset=9)).decode()


class _Slots:
    """Places for requests: the lowest one that is free."""

    def __init__(self) -> None:
        self.taken: set[int] = set()

    def take(self, call: Call) -> int:
        """Give a call's request a place and return it, -1 for a call that makes no request."""
        if not call.starts:
            return -1
        call.slot = next(i for i in range(len(self.taken) + 1) if i not in self.taken)
        self.taken.add(call.slot)
        return call.slot

    def free(self, calls: Iterable[Call]) -> list[int]:
        """Free the places of these calls' requests and return them, sorted."""
        found = sorted({one.slot for one in calls if one.slot >= 0})
        for one in calls:
            one.slot = -1
        self.taken.difference_update(found)
        return found


def _row(call: Call, tags: dict[tuple[int, int], int], slots: _Slots) -> str:
    """Return the line of a call, "" for a wait for nothing."""
    if call.code == "wait":
        freed = slots.free(call.over)
        return f"wait {len(freed)} {' '.join(map(str, freed))}" if freed else ""
    if call.code in _CODES:
        sizes = " ".join(map(str, call.counts or (call.size,)))
        return f"{call.code} {call.group} {max(call.peer, 0)} {slots.take(call)} {sizes}"

    def half(one: Call) -> str:
        tag = tags.setdefault((one.group, one.tag), len(tags)) % MOST_TAGS
        return f"{one.peer} {tag} {one.size}"

    if call.back and call.kept and call.back.kept:
        return f"sendrecv {half(call)} {half(call.back)}"
    one = call.back if call.back and call.back.kept else call
    return (
        f"{one.code if one is not call or not call.back else 'send'} {half(one)} {slots.take(one)}"
    )
