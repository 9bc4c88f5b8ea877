"""What `paribus compare` costs on logs: of a thousand small ones, and of 100 MB of long ones."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from itertools import cycle
from pathlib import Path

from paribus.benchmarks import BENCHMARKS

FIXTURES = Path(__file__).parent.parent / "tests" / "fixtures"
CHATTER = "[node0:{:05d}] the launcher says something of a transport that it has not chosen\n"
MEGABYTES = 100


def log_cost() -> list[tuple[str, str, str]]:
    """Return rows of the table, in CPU time: the wall clock of a shared machine is not ours."""
    good = [
        path.read_text()
        for name, benchmark in BENCHMARKS.items()
        if benchmark.read is not None
        for path in sorted((FIXTURES / name).glob("good-*.out"))
    ]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        size = _small(Path(folder), good)
        seconds, memory = _taken(folder)
        what = f"compare 1,000 logs of {len(good)} recorded kinds, {size / 1e6:.1f} MB, CPU time"
        rows.append((what, f"{seconds:.2f} s, {memory / 1e6:.0f} MB", "bound: 5 s"))
    with tempfile.TemporaryDirectory() as folder:
        size = _long(Path(folder), good)
        seconds, memory = _taken(folder)
        figure = f"{size / 1e6 / seconds:.0f} MB/s, {memory / 1e6:.0f} MB"
        what = f"compare {MEGABYTES} MB of mixed logs of 1 MB, per CPU time"
        rows.append((what, figure, "bound: 50 MB/s"))
    return rows


def _taken(folder: str) -> tuple[float, float]:
    """Return the CPU seconds and the most bytes held, of the median of three."""
    command = [sys.executable, "-m", "paribus", "compare", f"{folder}/a", f"{folder}/b"]
    taken = []
    for _ in range(3):
        started = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(started.pid, 0)
        started.returncode = os.waitstatus_to_exitcode(status)
        if started.returncode not in (0, 3):  # 3: a verdict is withheld
            raise RuntimeError(f"compare: exit code {started.returncode}")
        taken.append((usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024.0))
    seconds, memory = (statistics.median(column) for column in zip(*taken, strict=True))
    return seconds, memory


def _small(folder: Path, texts: list[str]) -> int:
    """Write 500 logs for each arm, as they were recorded; return their bytes."""
    size = 0
    for arm in ("a", "b"):
        (folder / arm).mkdir()
        for number, text in zip(range(500), cycle(texts), strict=False):
            size += (folder / arm / f"{number}.log").write_text(text)
    return size


def _long(folder: Path, texts: list[str]) -> int:
    """Write logs of 1 MB: recorded ones, with what a talkative launcher says after them."""
    size = 0
    for arm in ("a", "b"):
        (folder / arm).mkdir()
    step = max(1, len(texts) // (MEGABYTES // 2))
    for number, text in enumerate(texts[::step][: MEGABYTES // 2]):
        said = "".join(map(CHATTER.format, range((10**6 - len(text)) // len(CHATTER.format(0)))))
        for arm in ("a", "b"):
            size += (folder / arm / f"{number}.log").write_text(text + said)
    return size
