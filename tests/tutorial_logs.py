"""Logs for the tutorial "Logs that I have": recorded outputs, their times scaled by a known factor.

    python3 tests/tutorial_logs.py FOLDER

writes FOLDER/osu and FOLDER/nccl, each with `old` and `new`: eight logs a side, in turns by the
times of the files. `new` takes 1.06 times as long in OSU and 0.9 times in NCCL. Launches scatter
by 1 %.
"""

from __future__ import annotations

import os
import random
import re
import sys
from pathlib import Path

FIXTURES = Path(__file__).parent / "fixtures"
OSU = FIXTURES / "osu_latency" / "good-tcp.out"
NCCL = FIXTURES / "nccl_tests" / "good-real-2_18_all_reduce_gh200.out"

FIRST = 1_764_000_000
"""When the first launch ended, in seconds since 1970; the others follow, a minute apart."""


def osu(factor: float) -> str:
    """Return the output of osu_latency with all latencies `factor` times as long."""
    return re.sub(
        r"(?m)^(\d+ +)(\d+\.\d+)$", lambda m: f"{m[1]}{float(m[2]) * factor:.2f}", OSU.read_text()
    )


def nccl(factor: float) -> str:
    """Return the output of all_reduce_perf with all times `factor` times as long."""
    rows = re.compile(r"(?m)(?<= )(\d+\.\d\d) +(\d+\.\d\d) +(\d+\.\d\d)(?= +0\b)")

    def row(found: re.Match[str]) -> str:
        time, algorithm, bus = (float(one) for one in found.groups())
        rates = f"{algorithm / factor:8.2f}{bus / factor:8.2f}"
        return f"{time * factor:8.2f}{rates}"

    text = rows.sub(row, NCCL.read_text())
    buses = [float(one) for one in re.findall(r" (\d+\.\d\d) +0\b", text)]
    mean = sum(buses) / len(buses)
    return re.sub(r"(?<=# Avg bus bandwidth    : )\S+", f"{mean:.4f}", text)


def write(folder: Path) -> None:
    """Write both tools' logs below `folder`."""
    draw = random.Random(41)
    for name, make, effect in (("osu", osu, 1.06), ("nccl", nccl, 0.9)):
        for number in range(16):
            arm = "new" if number % 2 else "old"
            factor = draw.lognormvariate(0, 0.01) * (effect if arm == "new" else 1.0)
            path = folder / name / arm / f"run{number // 2 + 1}.log"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(make(factor))
            os.utime(path, (FIRST + 60 * number, FIRST + 60 * number))


if __name__ == "__main__":
    write(Path(sys.argv[1]))
