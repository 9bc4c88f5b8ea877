"""What `paribus compare` costs on logs: of a thousand small ones, and of 100 MB of all kinds.

Nothing but recorded rows is in the 100 MB, in three forms: files as they were recorded; launches of
one kind one after the other in the log of a job; and outputs of applications that go on for hours.
They are read form by form, and mixed: every recorded log as often in each form that it has.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import cycle, islice
from pathlib import Path

from paribus.benchmarks import BENCHMARKS
from paribus.readers.known import file_of, reader_of
from paribus.readers.settings import printed, tables
from paribus.readers.text import plain

FIXTURES = Path(__file__).parent.parent / "tests" / "fixtures"
BYTES = 100e6
LAUNCHES = 10
"""Of one kind, in the log of a job."""

LONG = 1_200_000
"""Bytes of the output of a long calculation."""

PARSE = """\
import sys
from pathlib import Path
from paribus.logs.logs import find_logs
if __name__ == "__main__":
    _, logs, unread = find_logs([Path(path) for path in sys.argv[1:]])
    refused = {one.detail for one in unread}
    sys.exit(str(refused) if len(unread) > len(logs) // 50 else 0)
"""

SPLIT = """\
import sys
from pathlib import Path
for folder in sys.argv[1:]:
    for path in Path(folder).iterdir():
        path.read_text().split()
"""
"""What to measure a machine's speed by: Python's own first step of reading a table."""


def log_cost() -> list[tuple[str, str, str]]:
    """Return rows of the table: CPU time, and that of the wall clock."""
    rows = [_thousand()]
    good = recorded()
    sums, most = (0.0, 0.0, 0.0), 0.0
    for form, texts in FORMS.items():
        with tempfile.TemporaryDirectory() as alone:
            size, files = _write(Path(alone), _repeated(texts(good), BYTES / len(FORMS) / 2))
            cpu, wall, memory = _taken("-c", PARSE, f"{alone}/a", f"{alone}/b")
        sums = (sums[0] + size, sums[1] + cpu, sums[2] + wall)
        most = max(most, memory)
        what = f"recognise and read {size / 1e6:.0f} MB, {files:,} {form}, CPU time (wall)"
        bound = "bound: 14 MB/s" if texts is _small else ""
        rows.append((what, _speed(size, cpu, wall, memory), bound))
    what = f"recognise and read {sums[0] / 1e6:.0f} MB, the three in equal bytes, CPU time (wall)"
    rows.append((what, _speed(*sums, most), ""))
    with tempfile.TemporaryDirectory() as mixed:
        every = [text for texts in FORMS.values() for text in texts(good)]
        size, files = _write(Path(mixed), _repeated(every, BYTES / 2))
        cpu, wall, memory = _taken("-c", PARSE, f"{mixed}/a", f"{mixed}/b")
        what = f"recognise and read {size / 1e6:.0f} MB of mixed logs, {files:,} files, CPU (wall)"
        rows.append((what, _speed(size, cpu, wall, memory), "bound: 30 MB/s"))
        cpu, wall, memory = _taken("-c", SPLIT, f"{mixed}/a", f"{mixed}/b")
        what = "open the same files and split their text into words, one process"
        rows.append((what, _speed(size, cpu, wall, memory), ""))
        cpu, wall, memory = _taken("-m", "paribus", "compare", f"{mixed}/a", f"{mixed}/b")
        what = f"compare the same {size / 1e6:.0f} MB, analysis and report included, CPU time"
        rows.append((what, f"{cpu:.1f} s, {memory / 1e6:.0f} MB", "bound: 10 s, 300 MB"))
    return [*rows, _one_file(good), *_settings_cost(good)]


def _one_file(good: Mapping[str, str]) -> tuple[str, str, str]:
    """Return what one file of long outputs costs that is as long as all others together."""
    with tempfile.TemporaryDirectory() as folder:
        whole = "".join(text.rstrip("\n") + "\n" for text in _repeated(_long(good), BYTES))
        size = Path(folder, "all.log").write_text(whole)
        del whole
        cpu, _, memory = _taken("-c", PARSE, f"{folder}/all.log")
    what = f"recognise and read one file of {size / 1e6:.0f} MB, memory over its size"
    return what, f"{size / 1e6 / cpu:.0f} MB/s, {memory / size:.1f}", "bound: 5"


def _settings_cost(good: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield what it costs to sort the settings of outputs, over what reading them costs."""
    tables()  # they are compiled once
    read = sort = 0.0
    for name, said in good.items():
        benchmark, text = name.partition("/")[0], plain(said)
        reader = reader_of(benchmark)
        for again in range(3):
            begun = time.process_time()
            reader.read_clean(text)
            middle = time.process_time()
            printed(file_of(benchmark), f"{text}\n# {again}\n")
            read, sort = read + middle - begun, sort + time.process_time() - middle
    what = "sorting the settings of outputs of all kinds, over the time of reading them"
    yield what, f"{sort / read:.2f}", "bound: 1"


def _repeated(texts: Sequence[str], size: float) -> Iterator[str]:
    """Yield all of the texts as often as come nearest to a size, but once."""
    for _ in range(max(1, round(size / sum(map(len, texts))))):
        yield from texts


def recorded() -> dict[str, str]:
    """Return the outputs of good launches of every tool, by name."""
    return {
        f"{name}/{path.stem}": path.read_text()
        for name, benchmark in BENCHMARKS.items()
        if benchmark.read is not None
        for path in sorted((FIXTURES / name).glob("good-*.out"))
    }


def _thousand() -> tuple[str, str, str]:
    good = recorded()
    with tempfile.TemporaryDirectory() as folder:
        size, files = _write(Path(folder), islice(cycle(good.values()), 500))
        cpu, _, memory = _taken("-m", "paribus", "compare", f"{folder}/a", f"{folder}/b")
    what = f"compare {files:,} logs of {len(good)} recorded kinds, {size / 1e6:.1f} MB, CPU time"
    return what, f"{cpu:.2f} s, {memory / 1e6:.0f} MB", "bound: 2 s"


def _write(folder: Path, texts: Iterable[str]) -> tuple[int, int]:
    """Write a log for each arm of every text; return their bytes and how many they are."""
    places = [folder / arm for arm in ("a", "b")]
    for place in places:
        place.mkdir(parents=True)
    size = files = 0
    for number, text in enumerate(texts):
        for place in places:
            size += (place / f"{number}.log").write_text(text)
            files += 1
    return size, files


def _taken(*words: str) -> tuple[float, float, float]:
    """Return CPU and wall seconds and the most bytes held, each the median of three."""
    taken = []
    for _ in range(3):
        begun = time.monotonic()
        started = subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(started.pid, 0)
        wall = time.monotonic() - begun
        started.returncode = os.waitstatus_to_exitcode(status)
        if started.returncode not in (0, 3):  # 3: a verdict is withheld
            raise RuntimeError(f"{words[:2]}: exit code {started.returncode}")
        taken.append((usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss * 1024.0))
    cpu, wall, memory = (statistics.median(column) for column in zip(*taken, strict=True))
    return cpu, wall, memory


def _speed(size: float, cpu: float, wall: float, memory: float) -> str:
    mega = size / 1e6
    return f"{mega / cpu:.0f} ({mega / wall:.0f}) MB/s, {memory / 1e6:.0f} MB"


# --- the three forms -------------------------------------------------------------------------


def _small(good: Mapping[str, str]) -> list[str]:
    """Return outputs as they were recorded."""
    return list(good.values())


def _jobs(good: Mapping[str, str]) -> list[str]:
    """Return logs of jobs that launch the same some dozen times."""
    return [text * LAUNCHES for text in good.values()]


def _long(good: Mapping[str, str]) -> list[str]:
    """Return outputs of applications of which a part was repeated, as in a longer calculation."""
    return [grown(good[name]) for name, grown in _LONG.items()]


FORMS = {
    "files as recorded": _small,
    "logs of jobs of many launches": _jobs,
    "outputs of long calculations": _long,
}


def _grown(begin: str, end: str, text: str) -> str:
    """Return `text` with what lies between two patterns repeated."""
    part = re.search(rf"({begin}.*?){end}", text, re.M | re.S)
    if part is None:
        raise ValueError(f"no {begin!r} before {end!r}")
    return text[: part.start()] + part[1] * (LONG // len(part[1])) + text[part.start() :]


def _later(more: float, found: re.Match[str]) -> str:
    """Return what was found, its seconds (the first group, at its end) and `more`."""
    return f"{found[0][: -len(found[1])]}{float(found[1]) + more:.3f}"


def _vasp(text: str) -> str:
    """Return an OUTCAR of many ionic steps: they are numbered, and the clocks say their time."""
    begin, end = (text.rindex("\n\n---", 0, text.index(f" Iteration    {n}(")) for n in (2, 3))
    step, times = text[begin:end], LONG // (end - begin)
    steps = (step.replace(" Iteration    2(", f" Iteration {n:>4}(") for n in range(2, times + 2))
    rest = text[text.index(" reached required") :]
    for clock, each in (("Total CPU time used", 4.6), ("User time", 4.6), ("Elapsed time", 4.7)):
        rest = re.sub(
            rf"{clock} \(sec\): +([\d.]+)",
            partial(_later, each * times),
            rest,
        )
    return text[:begin] + "".join(steps) + rest


def _json(key: str, separators: tuple[str, str], text: str) -> str:
    """Return JSON with a longer list of that name, as more jobs or intervals make it."""
    said = json.loads(text)
    said[key] *= LONG // 8 // len(json.dumps(said[key], indent=2))
    return json.dumps(said, indent=2, separators=separators)


_LONG: Mapping[str, Callable[[str], str]] = {
    "lammps/good-lj_2ranks": partial(_grown, r"^ +0 [^\n]*\n", r"^ +\d"),
    "lammps/good-lj_wheel_starved": partial(_grown, r"^ +0 [^\n]*\n", r"^ +\d"),
    "gromacs/good-spc_2ranks": partial(_grown, r"^ +Step +Time\n", "^DD  step"),
    "gromacs/good-spc_1rank": partial(_grown, r"^ +Step +Time\n", "^ +Step +Time"),
    "qe/good-al32_2ranks": partial(_grown, "^     Self-consistent Calc", r"^ +init_run"),
    "qe/good-au_slab_2ranks": partial(_grown, "^     Self-consistent Calc", r"^ +init_run"),
    "vasp/good-handmade_relaxation": _vasp,
    "fio/good-randrw-json": partial(_json, "jobs", (",", " : ")),
    "iperf3/good-streams-json": partial(_json, "intervals", (",", ":\t")),
}
