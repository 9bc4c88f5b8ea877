"""Reports of running studies: made again when files have changed and a browser shows the study."""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Executor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from paribus.core import StoreError
from paribus.store.watched import alive
from paribus.web.found import Found, stamp, what_is
from paribus.web.rendering import Rendered, rendered, workers

POLL_S = 1.0
"""Seconds between two looks at the files of a study that a browser shows."""

BEAT_S = 15.0
"""Seconds after which a stream without news sends a beat."""

LEAST_S = 3.0
SHARE = 0.03
"""The report of a running study is made every LEAST_S at most, and takes this share of one core."""


@dataclass
class _Kept:
    """The newest report of a study: made from files with this `stamp`, `at` (monotonic clock).

    `version` counts the reports; `making` is the task that makes the next.
    """

    report: Rendered | None = None
    stamp: object = None
    at: float = 0.0
    version: int = 0
    making: asyncio.Task[None] | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Live:
    """The reports of all studies, made one at a time in another process."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}
        self._workers: Executor | None = None

    def close(self) -> None:
        """End the process that makes reports at once: a long report can take minutes."""
        if self._workers is not None:
            results: Any = getattr(self._workers, "_result_queue", None)  # shutdown() drops it
            self._workers.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                process.terminate()
            # If a report was half sent, the pool's thread waits for the rest while the pipe has a
            # writer, and this process is one.
            with suppress(AttributeError):
                results._writer.close()

    async def report(self, found: Found) -> Rendered:
        """Return the report of a study, made first where it is due."""
        kept = self._kept.setdefault(found.ident, _Kept())
        if kept.report is None or self._due(found, kept):
            await self._make(found, kept)
        assert kept.report is not None
        return kept.report

    async def newest(self, found: Found, wait_s: float) -> Rendered | None:
        """Return the newest report there is, and begin to make one that is due.

        Without any, wait for `wait_s` seconds at most; None where it is still being made then.
        """
        kept = self._kept.setdefault(found.ident, _Kept())
        making = self._begin(found, kept)
        if kept.report is None and making is not None:
            await asyncio.wait([making], timeout=wait_s)
        return kept.report

    async def call(self, function: object, *values: object) -> Rendered:
        """Return what a function of rendering.py returns, called in the process for reports."""
        for again in (True, False):
            if self._workers is None:
                self._workers = workers()
            try:
                loop = asyncio.get_running_loop()
                return await loop.run_in_executor(self._workers, function, *values)  # type: ignore[arg-type]
            except BrokenProcessPool:
                self._workers = None
                if not again:
                    break
        return Rendered("", "", 0.0, "the process that makes reports was ended, perhaps for memory")

    async def events(
        self,
        found: Found,
        state: Callable[[], Awaitable[dict[str, object]]],
        ends: Callable[[], float],
    ) -> AsyncIterator[tuple[str, dict[str, object]]]:
        """Yield the events of a study as (name, data), until `ends` (of the monotonic clock).

        "progress": what `state` returns, whenever it has changed; "report": the version of a new
        report; "beat": nothing has happened for BEAT_S.
        """
        sent: object = None
        version, sent_at = -1, time.monotonic()
        while time.monotonic() < ends():
            now = await state()
            kept = self._kept.setdefault(found.ident, _Kept())
            if now != sent:
                sent = now
                yield "progress", now
                sent_at = time.monotonic()
            self._begin(found, kept)
            if kept.report is not None and kept.version != version:
                if version != -1 and what_is(found.path):
                    yield "report", {"version": kept.version}
                    sent_at = time.monotonic()
                version = kept.version
            if time.monotonic() - sent_at > BEAT_S:
                yield "beat", {}
                sent_at = time.monotonic()
            await asyncio.sleep(POLL_S)

    def _begin(self, found: Found, kept: _Kept) -> asyncio.Task[None] | None:
        """Begin to make a report if it is due and not begun; return the task, if there is one."""
        if (kept.making is None or kept.making.done()) and self._due(found, kept):
            kept.making = asyncio.create_task(self._make(found, kept))
        return kept.making

    def _due(self, found: Found, kept: _Kept) -> bool:
        """Return whether a report is to be made: files changed, and the last is not too recent."""
        try:
            now = _now(found)
        except StoreError:
            return True
        if kept.stamp == now:
            return False
        if kept.report is None or not now[1]:
            return True
        return time.monotonic() - kept.at >= max(LEAST_S, kept.report.cpu_s / SHARE)

    async def _make(self, found: Found, kept: _Kept) -> None:
        async with kept.lock:
            try:
                now = _now(found)
            except StoreError:
                now = stamp(found), False
            if kept.report is not None and kept.stamp == now:
                return
            make = partial(rendered, measured=found.measured, running=now[1])
            kept.report = await self.call(make, found.path)
            kept.stamp, kept.at = now, time.monotonic()
            kept.version += 1


def _now(found: Found) -> tuple[object, bool]:
    """Return the stamp of a study's files, and whether it runs; raises StoreError."""
    return stamp(found), alive(found.path)
