"""What Paribus itself costs, measured against plain loops, interleaved in one session.

    ./dev bench [--write]
    ./dev bench --scale
    ./dev bench --profiler [--mpi PREFIX]

Prints a table; --write puts it into docs/fidelity.md. --scale is a group of its own:
it takes minutes and 1.5 GB of disk. Every figure is a ratio or a
difference of two things timed turn by turn, because the machines are shared and noisy.
"""

from __future__ import annotations

import argparse
import datetime
import json
import multiprocessing
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from paribus import containers
from paribus.benchmarks import benchmark_of
from paribus.core import (
    Arm,
    Case,
    Command,
    Container,
    Launch,
    Outcome,
    Placement,
    Sample,
    Selection,
    Settings,
    State,
    Study,
)
from paribus.judge.evidence import collect
from paribus.launch import launchers, toolchain
from paribus.launch.arms import compose
from paribus.launch.execute import execute
from paribus.launch.local import LocalStation, capture
from paribus.launch.machine import HERE
from paribus.launch.ready import make_ready
from paribus.plan import frozen as plans
from paribus.probes import script
from paribus.store import Store
from paribus.topology.capacities import read_capacities, shipped
from paribus.topology.predict import LOADS, forecasts
from paribus.topology.read import PROFILES, from_path, profile

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "fidelity.md"
SIXTEEN = ROOT / "tests" / "fixtures" / "topology" / "hwloc-dgx2-16xv100-nvswitch.xml"
OUTSIDE = """
import re
from paribus.core.model import Benchmark, Case, Metric, Parsed, Program, Sample

def command(request):
    # A different figure each time, so that no look decides and all blocks are run.
    return Program(("od", "-An", "-N2", "-tu2", "/dev/urandom"), mpi=False)

def parse(text, request):
    return Parsed((Sample("time", Case(), (float(text) + 1,)),))

BENCHMARK = Benchmark("echo", "shell", "prints a constant", (Metric("time", "us", "lower"),),
                      command, parse, ranks=1)
"""


def main() -> None:
    """Measure, print, and write the page when asked."""
    parser = argparse.ArgumentParser(description="What Paribus itself costs.")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    parser.add_argument("--scale", action="store_true", help="1,000 hosts, 10,000 launches")
    parser.add_argument("--hosts", action="store_true", help="launches on hosts, pocket clusters")
    parser.add_argument("--profiler", action="store_true", help="what `paribus profile` costs")
    parser.add_argument("--mpi", metavar="PREFIX", help="with --profiler: of this MPI")
    parser.add_argument("--serve", action="store_true", help="what the workbench costs")
    arguments = parser.parse_args()
    if arguments.serve:
        from bench_serve import serve_cost

        show(serve_cost())
        return
    if arguments.hosts:
        from bench_hosts import hosts_cost

        show(hosts_cost())
        return
    if arguments.profiler:
        from bench_profile import profiler_cost

        show(profiler_cost(arguments.mpi))
        return
    if arguments.scale:
        from bench_scale import scale_cost

        show(scale_cost())
        return
    from bench_logs import log_cost

    # First: what this process holds later counts as its children's memory.
    compared = [*table_cost(), *log_cost()]
    rows = [
        *launch_cost(),
        *fabric_cost(),
        *probe_cost(),
        *topology_cost(),
        *kernel_cost(),
        *start_up(),
        *analysis_cost(),
        *report_cost(),
        *compared,
    ]
    show(rows)
    if arguments.write:
        write_page(rows)


def show(rows: list[tuple[str, str, str]]) -> None:
    """Print rows of the table."""
    width = max(len(row[0]) for row in rows)
    for what, measured, bound in rows:
        print(f"{what:{width}}  {measured:>24}  {bound}")


def interleaved(
    one: Callable[[], float], other: Callable[[], float], turns: int
) -> tuple[list[float], list[float]]:
    """Return the figures of two measurements taken in turns, the order drawn by coin."""
    coin = random.Random(1)
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(turns):
        pair = [(one, ours), (other, theirs)]
        if coin.random() < 0.5:
            pair.reverse()
        for measure, kept in pair:
            kept.append(measure())
    return ours, theirs


def launch_cost() -> list[tuple[str, str, str]]:
    """A study of 60 launches, and one of 120, against a plain loop over the same command line."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "echo.py"
        file.write_text(OUTSIDE)

        def study(launches: int) -> float:
            one = _study(file, blocks=launches // 2 - 1)  # and the warm-up block, of two arms
            frozen = plans.freeze(one, plans.software())
            directory = Path(tempfile.mkdtemp(dir=folder))
            ready = make_ready(one, lambda _: None)
            with Store(directory, write=True) as store, LocalStation() as host:
                begin = time.perf_counter()
                execute(frozen, store, dict.fromkeys(ready, host), ready, lambda _: None)
                seconds = time.perf_counter() - begin
                done = len(list(store.launches(samples=False)))
            if done != launches:
                raise RuntimeError(f"{done} launches instead of {launches}")
            return seconds

        one = _study(file, blocks=29)
        selection = one.benchmarks[0]
        ready = make_ready(one, lambda _: None)["a"]
        same = compose(ready, selection, benchmark_of(selection), seed=1, scratch=folder)

        def plain() -> float:
            begin = time.perf_counter()
            for _ in range(60):
                subprocess.run(
                    same.argv, env={**os.environ, **same.env}, capture_output=True, check=True
                )
            return time.perf_counter() - begin

        short, theirs = interleaved(lambda: study(60), plain, 5)
        long, again = interleaved(lambda: study(120), plain, 5)
    plain_s = statistics.median([*theirs, *again])
    short_s, long_s = statistics.median(short), statistics.median(long)

    def each(seconds: float) -> str:
        return f"{seconds / 60 * 1e3:.2f} ms"

    return [
        ("plain loop, per launch", each(plain_s), ""),
        ("Paribus, per launch of 60, facts of the arms included", each(short_s), ""),
        ("harness cost per launch of 60, facts included", each(short_s - plain_s), "bound: 10 ms"),
        ("harness cost of each further launch", each(long_s - short_s - plain_s), "bound: 6 ms"),
    ]


def fabric_cost() -> list[tuple[str, str, str]]:
    """What two bridged containers add to a launch of `true`."""
    container = Container("namespace")
    why = containers.check(container, capture)
    if why:
        return [("bridged containers", f"not here: {why}", "")]
    with tempfile.TemporaryDirectory() as folder, LocalStation() as host:

        def seconds(inside: bool) -> float:
            scratch = f"{host.scratch}/launch"
            command = Command(("true",))
            if inside:
                command = containers.wrap_launcher(command, container, hosts=2, scratch=scratch)
            done = host.run(
                command,
                stdout=f"{folder}/out",
                stderr=f"{folder}/err",
                timeout_s=30,
                scratch=scratch,
            )
            if done.exit_code != 0:
                raise RuntimeError(Path(f"{folder}/err").read_text())
            return done.wall_s

        inside, bare = interleaved(lambda: seconds(True), lambda: seconds(False), 20)
    extra = statistics.median(a - b for a, b in zip(inside, bare, strict=True))
    return [("two bridged containers, per launch", f"{extra * 1e3:.0f} ms", "")]


def kernel_cost() -> list[tuple[str, str, str]]:
    """What recording one sample costs in a kernel, and the two probes of the machine's state."""
    mpi = toolchain.find_mpi(None, HERE)
    kernel = str(toolchain.kernel_path("latency", mpi, HERE))

    def lines(*words: str) -> list[dict[str, float]]:
        command = launchers.launch(
            Command((kernel, *words)),
            ranks=2,
            mpi=mpi,
            placement=Placement(),
            transport="auto",
            scratch="/tmp",
        )
        done = capture(command.argv, env=command.env)
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

    recorded = [lines("--self-test")[0]["record_ns"] for _ in range(5)]
    probed = [lines("--ranks", "2", "--bytes", "8")[-1]["probe_ms"] for _ in range(5)]
    return [
        ("recording a sample, clock reading included", _ns(recorded), "bound: 30 ns"),
        ("both state probes", f"{statistics.median(probed):.0f} ms", "bound: 60 ms"),
    ]


def probe_cost() -> list[tuple[str, str, str]]:
    """The questions to a machine: its files alone, which every launch asks, and everything."""

    def asked(depth: str) -> float:
        return _seconds(["sh", "-c", script(), "facts", "a5b6c7", depth])

    files, everything = interleaved(lambda: asked("files"), lambda: asked("all"), 15)
    return [
        ("facts of a machine from files", f"{statistics.median(files) * 1e3:.0f} ms", ""),
        ("all facts of a machine", f"{statistics.median(everything) * 1e3:.0f} ms", ""),
    ]


def topology_cost() -> list[tuple[str, str, str]]:
    """The PCIe trees of this machine and of one with 16 GPUs, and predictions for three trees."""
    stated = read_capacities(shipped())
    trees = [profile(name) for name in PROFILES]
    work: tuple[tuple[str, Callable[[], object], str], ...] = (
        ("PCIe tree of this machine", lambda: from_path(Path("/")), "bound: 20 ms"),
        (
            "PCIe tree of a machine of 16 GPUs, hwloc's XML",
            lambda: from_path(SIXTEEN),
            "bound: 100 ms",
        ),
        (
            "predictions of all loads for three trees",
            lambda: forecasts(trees, LOADS, stated),
            "bound: 1 s",
        ),
    )
    rows = []
    for what, once, bound in work:
        seconds = []
        for _ in range(15):
            begin = time.perf_counter()
            once()
            seconds.append(time.perf_counter() - begin)
        rows.append((what, f"{statistics.median(seconds) * 1e3:.1f} ms", bound))
    return rows


def _ns(values: list[float]) -> str:
    return f"{statistics.median(values):.1f} ns"


def start_up() -> list[tuple[str, str, str]]:
    """Start-up of the command line, beside a bare interpreter."""
    rows = []
    command = [sys.executable, "-m", "paribus"]
    for flag, bound in (("--version", "bound: 100 ms"), ("--help", "bound: 150 ms")):
        ours, bare = interleaved(
            lambda flag=flag: _seconds([*command, flag]),  # type: ignore[misc]
            lambda: _seconds([sys.executable, "-c", "pass"]),
            15,
        )
        figure = f"{statistics.median(ours) * 1e3:.0f} ms"
        rows.append((f"paribus {flag}", figure, bound))
    rows.append(("bare interpreter", f"{statistics.median(bare) * 1e3:.0f} ms", ""))
    return rows


def analysis_cost() -> list[tuple[str, str, str]]:
    """The statistics alone, as `./dev validate` measures them (check 16)."""
    from validation.speed import speed

    return [
        (figure.what, figure.shown, f"bound: {figure.limit.removeprefix('≤ ')}")
        for figure in speed(10_000).figures
    ]


def report_cost() -> list[tuple[str, str, str]]:
    """From the last launch to the finished report: 60 blocks x 10 benchmarks x 20 sizes."""
    from paribus.cli.outputs import conclude_and_write

    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        frozen = _large(directory)
        with Store(directory) as store:
            launches = store.launches(void=True)
            evidence = collect(frozen, launches)
            conclude_and_write(frozen, store)  # fills the cache of the report's bundle
        last: list[float] = []
        whole: list[float] = []
        for _ in range(3):
            for times, known in ((last, evidence), (whole, None)):
                with Store(directory) as store:
                    begin = time.perf_counter()
                    conclude_and_write(frozen, store, known)
                    times.append(time.perf_counter() - begin)
    return [
        ("last launch to report, 60 x 10 x 20", f"{statistics.median(last):.2f} s", "bound: 1.5 s"),
        ("report of a stored study", f"{statistics.median(whole):.2f} s", "bound: 3 s"),
    ]


def _large(directory: Path) -> plans.Plan:
    """Fill `directory` with a study of 1,220 launches of 20 cases with 200 samples each."""
    noise = random.Random(2)
    sizes = [1 << i for i in range(20)]
    selections = tuple(
        Selection(f"latency{i}", "latency", 2, {"bytes": sizes}, 60.0) for i in range(10)
    )
    study = Study(
        "How long?", "nothing", (Arm("a"), Arm("b")), selections, Settings(blocks=60, seed=1)
    )
    frozen = plans.freeze(study, plans.software())
    plans.write_plan(frozen, directory)
    with Store(directory, write=True) as store:
        store._open().execute("PRAGMA synchronous=OFF")  # only filling it is not measured
        for launch in frozen.launches:
            store.append(launch, _made_up(launch, sizes, noise))
    return frozen


def _made_up(launch: Launch, sizes: list[int], noise: random.Random) -> Outcome:
    level = noise.lognormvariate(0, 0.02)
    samples = tuple(
        Sample(
            "latency",
            Case.of(bytes=size),
            tuple((1 + size / 1e4) * level * noise.lognormvariate(0, 0.05) for _ in range(200)),
        )
        for size in sizes
    )
    return Outcome(State.OK, float(launch.number), 0.1, 0, ("x",), samples, {"cpu.model": "x"})


def table_cost() -> list[tuple[str, str, str]]:
    """`paribus compare` of 10^5 rows, from the start of the process to the printed verdict."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        # In a process of its own: what this one held would count as the memory of its children.
        writer = multiprocessing.get_context("spawn").Process(target=_write_tables, args=(folder,))
        writer.start()
        writer.join()
        for path in sorted(Path(folder).iterdir()):
            command = [sys.executable, "-m", "paribus", "compare", str(path)]
            taken = [_cpu_and_memory(command) for _ in range(3)]
            cpu, memory = (statistics.median(column) for column in zip(*taken, strict=True))
            figure = f"{cpu:.1f} s, {memory / 1e6:.0f} MB"
            what = f"compare 10^5 rows, {path.suffix[1:]}, CPU time"
            rows.append((what, figure, "bound: 10 s, 250 MB"))
    return rows


def _write_tables(folder: str) -> None:
    """Write the same 10^5 rows as CSV, Parquet and JSON Lines into `folder`."""
    from pyarrow import csv, parquet

    table = _many_rows()
    csv.write_csv(table, f"{folder}/table.csv")
    parquet.write_table(table, f"{folder}/table.parquet")
    with Path(folder, "table.jsonl").open("w") as file:
        for batch in table.to_batches(max_chunksize=100_000):
            file.writelines(f"{json.dumps(row)}\n" for row in batch.to_pylist())


def _many_rows() -> Any:
    """Return 2 arms x 50 blocks x 20 benchmarks x 50 cases as a table, without samples."""
    import numpy as np
    import pyarrow as pa

    noise = np.random.default_rng(3)
    block, arm, benchmark, case = np.indices((50, 2, 20, 50)).reshape(4, -1)
    level = np.exp(noise.normal(0, 0.02, (50, 2, 20)))[block, arm, benchmark]
    values = (5 + case / 10) * (1 + arm / 20) * level * np.exp(noise.normal(0, 0.01, len(arm)))
    return pa.table(
        {
            "arm": np.array(["host", "bridged"])[arm],
            "block": block + 1,
            "benchmark": np.array([f"benchmark {i}" for i in range(20)])[benchmark],
            "case": np.array([f"bytes={8 * (i + 1)}" for i in range(50)])[case],
            "metric": np.full(len(arm), "latency"),
            "unit": np.full(len(arm), "us"),
            "better": np.full(len(arm), "lower"),
            "value": values,
        }
    )


def _cpu_and_memory(argv: list[str]) -> tuple[float, float]:
    """Return the CPU seconds that a command takes and the most memory it held, in bytes."""
    started = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(started.pid, 0)
    started.returncode = os.waitstatus_to_exitcode(status)
    if started.returncode != 0:
        raise RuntimeError(f"{argv[-1]}: exit code {started.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024.0


def _study(file: Path, blocks: int) -> Study:
    import hashlib

    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    selection = Selection("echo", "echo", 1, {}, 60.0, str(file), digest)
    return Study(
        "How long?", "nothing", (Arm("a"), Arm("b")), (selection,), Settings(blocks=blocks)
    )


def _seconds(argv: list[str]) -> float:
    begin = time.perf_counter()
    subprocess.run(argv, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begin


def write_page(rows: list[tuple[str, str, str]]) -> None:
    """Write the section of figures, with machine, command and date."""
    table = "\n".join(f"| {what} | {measured} | {bound} |" for what, measured, bound in rows)
    load = os.getloadavg()[0]
    before, title, section = PAGE.read_text().partition("## What Paribus itself costs\n")
    scale = "".join(section.partition("\n`./dev bench --scale`")[1:])
    PAGE.write_text(f"""{before}{title}
Measured by `./dev bench --write` on {datetime.date.today().isoformat()}: {os.cpu_count()} cores,
{_processor()}, Linux {platform.release()}, Python {platform.python_version()}, load average
{load:.1f} at the end. Each pair of figures was taken in turns, in one session; medians.

| what | measured | bound |
|---|---|---|
{table}

The plain loop starts the same command line with `subprocess.run`. The report is of 60 blocks x 10
benchmarks x 20 sizes x 200 samples. The bound of 10 MB/s is of the wall clock.
{scale}""")


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


if __name__ == "__main__":
    main()
