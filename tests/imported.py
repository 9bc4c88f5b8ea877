"""Judgements of numbers from elsewhere: generated tables and logs, compared as any other."""

from __future__ import annotations

import csv
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager
from functools import cache
from pathlib import Path
from random import Random

import log_folders
from log_folders import FIXTURES, many, osu, perflog
from paribus.core import Judgement
from paribus.lenses.published.beside import beside
from paribus.lenses.published.reading import load_publication
from paribus.logs.imported import Answers, judge_table
from paribus.logs.tables.files import read_tables

AT = 1_763_683_200.0


@contextmanager
def folder() -> Iterator[Path]:
    """Yield an empty working directory: what is printed names files as they were given."""
    with tempfile.TemporaryDirectory(prefix="paribus-golden-") as made, chdir(made):
        yield Path()


def tabled(rows: Sequence[dict[str, object]]) -> Judgement:
    with Path("numbers.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return judge_table(read_tables([Path("numbers.csv")]), Answers())


def row(arm: str, size: int, value: float, **more: object) -> dict[str, object]:
    of = {"benchmark": "osu_latency", "arm": arm, "metric": "latency", "unit": "us"}
    return {**of, "better": "lower", "case": f"bytes={size}", "value": f"{value:.4f}", **more}


@cache
def imported() -> Judgement:
    """Return what a table of numbers comes to: no facts, no seed, no launches, unpaired."""
    draw = Random(4)
    rows = [
        row(arm, size, (9 + size / 400) * effect * draw.lognormvariate(0, 0.01))
        for arm, effect in (("old", 1.0), ("new", 1.04))
        for size in (8, 1024)
        for _ in range(12)
    ]
    with folder():
        return tabled(rows)


@cache
def table() -> Judgement:
    """Return what a table of blocks comes to of which some lack an arm, in a fixed order."""
    draw = Random(5)
    rows = [
        row(
            arm, size, (9 + size / 400) * effect * draw.lognormvariate(0, 0.01), block=block,
            time=f"2026-03-0{1 + block // 10}T10:{(5 * block) % 60:02}:{30 * place:02}",
            operator="me",
        )
        for block in range(1, 15)
        for place, (arm, effect) in enumerate((("old", 1.0), ("new", 1.04)))
        for size in (8, 1024)
        if (block, arm) != (7, "new")
    ]  # fmt: skip
    few = [{**one, "benchmark": "osu_bcast"} for one in rows if int(str(one["block"])) < 5]
    with folder():
        return tabled([*rows, *few])


@cache
def turns() -> Judgement:
    """Return what launches without blocks come to, paired by their times, one left over."""
    draw = Random(6)
    arms = ("old", "new", "new", "old") * 6 + ("old",)
    levels = {"old": 1.0, "new": 1.04}
    rows = [
        row(arm, 8, 9 * levels[arm] * draw.lognormvariate(0, 0.01), time=100 * place)
        for place, arm in enumerate(arms)
    ]
    with folder():
        return tabled(rows)


def integers(sizes: Sequence[int], level: float) -> str:
    """Return an output of osu_latency for integers of these `sizes`."""
    heading, _, _ = osu().partition("1   ")
    rows = (f"{size:<10}{level * (10 + place):17.2f}\n" for place, size in enumerate(sizes))
    return heading.replace("MPI_CHAR", "MPI_INT") + "".join(rows)


@cache
def logs() -> Judgement:
    """Return what two folders come to whose logs differ in what they hold, and in when.

    Beside them stands what somebody published, who did not say everything.
    """
    imb = (FIXTURES / "imb_pingpong" / "good-2018_title.out").read_text()
    lines = [line for line in imb.splitlines() if line.startswith("# Date ")]
    with folder():
        for place, (arm, effect, version) in enumerate((("old", 1.0, "7.4"), ("new", 1.06, "7.5"))):
            texts = {
                name: text.replace("v7.4", f"v{version}")
                for name, text in many(effect, seed=place).items()
            }
            texts["imb.log"] = imb.replace(lines[0], f"# Date : Sat Nov 21 05:0{place}:00 2026")
            for number, sizes in enumerate(((1, 2, 4, 8), (4, 8, 16, 32))):
                texts[f"int{number}.log"] = integers(sizes, effect ** (number + 0.5))
            if arm == "new":
                texts["run3.log"] = osu(effect, sizes=5, version=version)
                texts["notes.txt"] = "Measured on a Saturday.\n"
            else:
                texts["float.log"] = osu().replace("MPI_CHAR", "MPI_FLOAT")
            began = AT + 86400 * place
            times = [began + 600 * number for number in range(len(texts))]
            log_folders.write(Path(arm), texts, times)
        found = log_folders.judged(Path("old"), Path("new"), pair="name")
        publication = Path("published.toml")
        publication.write_text(PUBLISHED)
        return beside(found, [load_publication(publication)])


PUBLISHED = """
title = "The new network"
year = 2021
missing = ["versions of the drivers"]
[arms]
old = "10 GbE"
new = "25 GbE"
[[figures]]
benchmark = "osu_latency"
metric = "latency"
case = { bytes = 8 }
values = { old = 12.5, new = 11.0 }
"""


@cache
def logs_apart() -> Judgement:
    """Return what folders come to in which nothing supports a verdict."""
    eam, lj = (
        (FIXTURES / "lammps" / f"good-{name}.out").read_text()
        for name in ("lj_wheel_starved", "lj_2ranks")
    )
    qe = (FIXTURES / "qe" / "good-al32_1rank.out").read_text()
    first, *steps = re.split(r"(?m)^(?=     iteration # )", qe)
    said = f"convergence has been achieved in {len(steps):3} iterations"
    fewer = "".join([first, *steps[:1], *steps[2:]])
    fewer = fewer.replace(said, said.replace(str(len(steps)), str(len(steps) - 1)))
    alike = many(count=8, seed=3, sizes=16)
    other = many(1.1, count=8, seed=2, sizes=16)
    row_ = next(line for line in lj.splitlines() if line.startswith("     100 "))
    cold = "     100   0.73006073   -5.6701563            0    -4.620098   0.73839877 "
    alike["perf.log"], other["perf.log"] = (
        perflog({"elapsed": (3.0, "s", ""), "power": (350.0, "W", "")}, seed) for seed in (1, 2)
    )
    alike["swept.log"], other["swept.log"] = (
        "".join(log_folders.osu(level, title="Multi Latency") for level in levels)
        for levels in ((1, 2, 4, 8), (1.1, 2, 4.1, 8))
    )
    with folder():
        log_folders.write(Path("old"), {**alike, "al.out": qe, "lj.lammps": lj, "s.lammps": eam})
        other["run3.log"] = other["run2.log"]
        other["run5.log"] = "# OSU MPI Latency Test v7.4\nkilled\n"
        moved = {"al.out": fewer, "lj.lammps": lj.replace(row_, cold), "s.lammps": eam}
        log_folders.write(Path("new"), {**other, **moved})
        return log_folders.judged(Path("old"), Path("new"), pair="name")


@cache
def logs_untimed() -> Judgement:
    """Return what two folders come to whose logs have lost their times."""
    with folder():
        for seed, (arm, effect) in enumerate((("old", 1.0), ("new", 1.06))):
            log_folders.write(Path(arm), many(effect, count=8, seed=seed))
        return log_folders.judged(Path("old"), Path("new"))
