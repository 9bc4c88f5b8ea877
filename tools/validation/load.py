"""A competing load: processes of our own that keep every core busy, and always end."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

BUSY = """
import os, sys, threading
def end_with_parent():
    sys.stdin.buffer.read()
    os._exit(0)
threading.Thread(target=end_with_parent, daemon=True).start()
block = bytearray(32 << 20)
while True:
    if sys.argv[1] == "compute":
        sum(i * i for i in range(100_000))
    else:
        bytes(block)
"""
"""Ends when its stdin closes: when it is asked to, and also when whoever started it was killed."""


@contextmanager
def competing_load() -> Iterator[tuple[int, ...]]:
    """Keep as many processes as this machine has cores busy; yields their ids.

    Every other one computes, the others copy 32 MiB again and again. None of them is polite: they
    have the same priority as what is measured, and are bound to no core.
    """
    kinds = ["compute" if i % 2 == 0 else "copy" for i in range(os.cpu_count() or 1)]
    started: list[subprocess.Popen[bytes]] = []
    try:
        for kind in kinds:
            started.append(
                subprocess.Popen([sys.executable, "-c", BUSY, kind], stdin=subprocess.PIPE)
            )
        yield tuple(process.pid for process in started)
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.communicate()
