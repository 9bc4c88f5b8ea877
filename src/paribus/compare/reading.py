"""What files of logs hold: read on several cores where they are many.

Nothing in a file is executed, and one that cannot be read costs only itself.
"""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import cache
from io import FileIO
from itertools import chain, repeat
from multiprocessing import get_context
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any, NamedTuple

from paribus.compare.recognise import Found, Problem, Seen, look, readings
from paribus.errors import ParseError
from paribus.inputs import open_regular
from paribus.model import Case, Reading, Sample
from paribus.readers import nvidia_topo
from paribus.readers.known import readers
from paribus.readers.launches import FAILED
from paribus.readers.text import HEAD, line_at, plain
from paribus.reasons import Unreadable
from paribus.units import count, format_bytes

MOST_BYTES = 256 << 20
"""A longer file is no log of these tools, and is not read."""

MOST_WORKERS = 8
SHARE = 8 << 20
"""Bytes that are worth a process: some hundred thousand lines, a quarter second of reading."""

GROUP = 1 << 20
"""Bytes of files that are held at a time, those of one tool to be read one after the other."""

_PACKED = (
    (b"\x1f\x8b", Unreadable.COMPRESSED, "gunzip"),
    (b"\x28\xb5\x2f\xfd", Unreadable.COMPRESSED, "unzstd"),
    (b"\xfd7zXZ", Unreadable.COMPRESSED, "unxz"),
    (b"BZh", Unreadable.COMPRESSED, "bunzip2"),
    (b"PK\x03\x04", Unreadable.ARCHIVE, "unzip"),
    (b"\xff\xfe", Unreadable.UTF_16, ""),
    (b"\xfe\xff", Unreadable.UTF_16, ""),
)


class Held(NamedTuple):
    """What a file holds, and what of it was not read, and why."""

    found: list[Found]
    problems: list[Problem]


def is_log(path: Path) -> bool:
    """Return whether a file begins as the output of a tool that is known here."""
    try:
        with open(open_regular(path), "rb") as file:  # noqa: PTH123 - of a descriptor
            return bool(look(plain(file.read(HEAD).decode(errors="replace"))).near)
    except OSError:
        return False


def read_files(files: Sequence[tuple[str, int]]) -> Iterator[Held]:
    """Yield what each file holds, in their order; `files` are paths with their sizes in bytes."""
    groups = list(_groups(files))
    workers = min(
        len(os.sched_getaffinity(0)), MOST_WORKERS, sum(size for _, size in files) // SHARE
    )
    done = 0
    with _uncollected():
        if workers > 1:
            try:
                with ProcessPoolExecutor(workers, _context(), gc.disable) as pool:
                    for packed in pool.map(_read_packed, groups):
                        yield from _unpacked(packed)
                        done += 1
            except (BrokenProcessPool, OSError):
                pass  # no room for more processes: the rest is read here
        yield from chain.from_iterable(map(_read_group, groups[done:]))


@contextmanager
def _uncollected() -> Iterator[None]:
    """Keep the collector of cycles from going over all that was read: there are none in it."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()


def _context() -> BaseContext:
    """Return how processes are started: forked where no thread can hold a lock.

    To import the readers again takes longer.
    """
    alone = len([*Path("/proc/self/task").iterdir()]) == 1
    return get_context("fork" if alone else "spawn")


def _groups(files: Sequence[tuple[str, int]]) -> Iterator[list[tuple[str, int]]]:
    """Yield the files, in their order, as many at a time as may be held."""
    group: list[tuple[str, int]] = []
    size = 0
    for file in files:
        if group and size + file[1] > GROUP:
            yield group
            group, size = [], 0
        group.append(file)
        size += file[1]
    if group:
        yield group


# --- a group of files ------------------------------------------------------------------------


def _read_group(files: Iterable[tuple[str, int]]) -> list[Held]:
    """Return what files hold, in their order.

    Those of one tool are read one after the other: going from reader to reader takes twice as long,
    for the processor finds none of what it needs in its caches.
    """
    texts = [_text(path, size) for path, size in files]
    held: list[Held] = [Held([], [])] * len(texts)
    for at in sorted(range(len(texts)), key=lambda at: texts[at].seen.near):
        text, seen, why = texts[at]
        held[at] = Held([], [why]) if why else Held(*readings(text, seen))
    return held


class _Text(NamedTuple):
    """The text of a file and what it shows, or `why` it is not read."""

    text: str
    seen: Seen
    why: Problem | None


def _text(path: str, size: int) -> _Text:
    """Return the text of a file; of what is no log only the beginning is looked at."""
    try:
        return _opened(path, size)
    except OSError as error:
        return _unread(Unreadable.CANNOT_BE_READ, error.strerror or "")


def _unread(code: Unreadable, detail: str = "") -> _Text:
    return _Text("", Seen([], clean=False), Problem(code, detail))


def _opened(path: str, size: int) -> _Text:
    if size > MOST_BYTES:
        return _unread(Unreadable.TOO_LARGE, format_bytes(MOST_BYTES))
    if not size:
        return _unread(Unreadable.EMPTY)
    with FileIO(open_regular(path)) as opened:
        raw = opened.read(HEAD)
        for magic, code, tool in _PACKED:
            if raw.startswith(magic):
                return _unread(code, tool)
        if b"\0" in raw:
            return _unread(Unreadable.BINARY)
        text = plain(raw.decode(errors="replace"))
        seen = look(text)
        if not seen.near:
            return _unread(*_no_tool(text))
        if size > len(raw):
            raw += opened.read(size - len(raw)) or b""  # what is written meanwhile is not read
            text = plain(raw.decode(errors="replace"))
            seen = look(text)
    return _Text(text, seen, None)


def _no_tool(text: str) -> tuple[Unreadable, str]:
    """Return why a text is of no tool: a launch may have failed before its tool said its name."""
    if nvidia_topo.recognise(text):
        return _wiring(text)
    found = [at for said in _failures() if (at := text.find(said)) >= 0]
    if not found:
        return Unreadable.UNKNOWN_TOOL, ""
    return Unreadable.LAUNCH_FAILED, line_at(text, min(found)).strip()[:160]


@cache
def _failures() -> tuple[str, ...]:
    """Return what launchers say of a launch that failed, and tools before they say their name."""
    tools = (said for reader in readers().values() for said in reader.complaints)
    return (*FAILED, *dict.fromkeys(tools))


def _wiring(text: str) -> tuple[Unreadable, str]:
    """Return how many pairs of GPUs and adapters each kind of link joins."""
    try:
        facts = nvidia_topo.read(text)
    except ParseError as error:
        return Unreadable.WIRING_DAMAGED, error.cause
    links = Counter(str(v) for k, v in facts.items() if k != "gpu.topology.gpus")
    told = ", ".join(f"{n} {link}" for link, n in sorted(links.items())) or "no pair"
    gpus = count(int(facts["gpu.topology.gpus"]), "GPU")
    return Unreadable.WIRING, f"{gpus} (nvidia-smi topo -m; pairs by link: {told})"


# --- between processes -----------------------------------------------------------------------
# As tuples of plain values, and what many launches share once: which metrics they have at which
# cases. To send objects of our own takes several times as long.

_Shape = tuple[tuple[str, ...], tuple[Case, ...], tuple[int, ...]]
"""Of the samples of a reading: metrics, cases and batches."""


def _read_packed(files: Iterable[tuple[str, int]]) -> tuple[list[Any], list[Any]]:
    shapes: dict[_Shape, int] = {}
    held = [
        ([(one.part, one.date, *_packed(one.reading, shapes)) for one in held.found], held.problems)
        for held in _read_group(files)
    ]
    return [(names, [case.items for case in at], batch) for names, at, batch in shapes], held


def _packed(reading: Reading, shapes: dict[_Shape, int]) -> tuple[Any, ...]:
    r = reading
    metrics, cases, values, batches = zip(*r.samples, strict=True)
    shape = shapes.setdefault((metrics, cases, batches), len(shapes))
    flat = [value for several in values for value in several]
    figures = flat if len(flat) == len(values) else values
    return r.benchmark, r.version, r.parameters, r.ranks, shape, figures, r.facts, r.guards


def _unpacked(packed: tuple[list[Any], list[Any]]) -> Iterator[Held]:
    shapes = [(names, [Case(items) for items in at], batch) for names, at, batch in packed[0]]
    for found, problems in packed[1]:
        yield Held(
            [Found(part, _reading(shapes, *one), date) for part, date, *one in found], problems
        )


def _reading(
    shapes: Sequence[Any],
    benchmark: str,
    version: str,
    said: Any,
    ranks: int | None,
    shape: int,
    figures: Any,
    facts: Any,
    guards: Any,
) -> Reading:
    metrics, cases, batches = shapes[shape]
    values = figures if isinstance(figures, tuple) else zip(figures, strict=True)
    rows = zip(metrics, cases, values, batches, strict=True)
    # Not by its own constructor: the process that made them has looked at the values.
    samples = tuple(map(tuple.__new__, repeat(Sample), rows))
    return Reading(benchmark, version, said, ranks, samples, facts, guards)
