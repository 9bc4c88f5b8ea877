"""Folders of logs as users have them, and what the report says of them."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from pathlib import Path

from paribus.benchmarks import BENCHMARKS
from paribus.core import Judgement
from paribus.logs import words
from paribus.logs.imported import Answers
from paribus.logs.log import Unread
from paribus.logs.logged import judge_logs
from paribus.logs.logs import find_logs
from paribus.logs.pairing import Kind, Logs, pair_logs
from paribus.words.values import notice_text

FIXTURES = Path(__file__).parent / "fixtures"
TOOLS = BENCHMARKS.keys() - {"command"}  # what a program of the user's prints is no known log
GOOD = sorted(p for name in TOOLS for p in (FIXTURES / name).glob("good-*.out"))


def osu(level: float = 1.0, sizes: int = 8, *, version: str = "7.4", title: str = "Latency") -> str:
    """Return an output of osu_latency whose figures are `level` times 10, 11, 12, ... us."""
    return osu_of([level * (10 + i) for i in range(sizes)], version=version, title=title)


def osu_of(figures: Sequence[float], *, version: str = "7.4", title: str = "Latency") -> str:
    rows = "".join(f"{2**i:<10}{figure:17.2f}\n" for i, figure in enumerate(figures))
    heading = f"# OSU MPI {title} Test v{version}\n# Datatype: MPI_CHAR.\n"
    return f"\n{heading}# Size       Avg Latency(us)\n{rows}"


LIMITS = {"lower": ("null", "0.1"), "higher": ("-0.1", "null"), "": ("-0.1", "0.1")}


def perflog(figures: dict[str, tuple[float, str, str]], seed: int) -> str:
    """Return ten rows of a perflog; a figure has a value, a unit and a direction or none."""
    draw = random.Random(seed)
    columns = ["result", "job_completion_time", "job_exitcode", "name", "num_tasks"]
    for name in figures:
        columns += [f"{name}_{part}" for part in ("value", "unit", "lower_thres", "upper_thres")]
    rows = ["|".join(columns)]
    for job in range(10):
        cells = ["pass", f"2026-11-22T10:{job:02}:00", "0", "test", "4"]
        for value, unit, better in figures.values():
            shown = f"{value * draw.lognormvariate(0, 0.001):.6g}"
            cells += [shown, unit, *LIMITS[better]]
        rows.append("|".join(cells))
    return "\n".join(rows) + "\n"


def write(folder: Path, texts: dict[str, str], times: Sequence[float] | None = None) -> Path:
    for number, (name, text) in enumerate(texts.items()):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if times is not None:
            os.utime(path, (times[number], times[number]))
    return folder


def many(
    effect: float = 1.0,
    count: int = 12,
    seed: int = 1,
    name: str = "run{}.log",
    sizes: int = 8,
) -> dict[str, str]:
    draw = random.Random(seed)
    levels = [effect * draw.lognormvariate(0, 0.01) for _ in range(count)]
    return {name.format(i): osu(level, sizes) for i, level in enumerate(levels, 1)}


def read(*paths: Path, pair: str = "") -> Logs:
    return pair_logs(*find_logs(paths), pair)  # type: ignore[arg-type]


def judged(*paths: Path, pair: str = "") -> Judgement:
    return judge_logs(read(*paths, pair=pair), Answers())


def words_of(judgement: Judgement) -> dict[str, str]:
    return {finding.benchmark: finding.verdict.word.value for finding in judgement.headlines}


def names_of(judgement: Judgement) -> set[str]:
    return {notice.name for notice in judgement.notices}


def text_of(judgement: Judgement, name: str) -> str:
    return next(notice_text(notice) for notice in judgement.notices if notice.name == name)


def why_paired(kind: Kind) -> str:
    return words.pairing(kind.pairing, kind.grounds)


def why_unread(one: Unread) -> str:
    return words.unread(one.code, one.detail)


def in_turns(tmp_path: Path, effect: float, *, step: float = 60.0) -> tuple[Path, Path]:
    """Write twelve logs of each arm whose file times say that a coin put them in turns."""
    coin = random.Random(5)
    times: dict[str, list[float]] = {"a": [], "b": []}
    for block in range(12):
        order = ["a", "b"] if coin.random() < 0.5 else ["b", "a"]
        for place, arm in enumerate(order):
            times[arm].append(1.7e9 + step * (2 * block + place))
    a = write(tmp_path / "a", many(), times["a"])
    return a, write(tmp_path / "b", many(effect, seed=2, name="slurm-{}.out"), times["b"])
