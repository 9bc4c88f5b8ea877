"""Compares Paribus' kernels with the programs that they can follow, as a study of Paribus.

    python tools/bench_fidelity.py --osu DIRECTORY [--mpi PREFIX] [--transport shm] [--only osu_bw]

Three arms are launched in random order, block by block: the reference program, the same again as a
control, and the kernel with --like. So the intervals, the noise gate and the verdicts are those of
every study; the margin is 3 %. With Intel MPI, IMB-MPI1 lies beside its mpirun and is compared too.
With --real-time, as root, the ranks go before all other processes: for a machine that is not quiet.
docs/fidelity.md says how to build the reference programs, and what was measured.
Ends with 1 if a cell of the kernels is not inside the margin, and with 2 if nothing was compared.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paribus.core import Benchmark, Case, Metric, Mpi, Parsed, ParseError, Program, Request, Sample
from paribus.launch.machine import HERE
from paribus.launch.toolchain import find_mpi, kernel_path
from paribus.readers import kernel
from paribus.tools.readers import imb, osu

SIZES = (8, 4096, 65536, 1048576)
MARGIN = 0.03
SIDE = "FIDELITY_SIDE"
"""The variable in which the arms differ: whether the kernel or the reference program is started."""

MB_S = Metric("rate", "MB/s", "higher", MARGIN)
US = Metric("time", "us", "lower", MARGIN)
MESSAGES = Metric("rate", "msg/s", "higher", MARGIN)


@dataclass(frozen=True)
class Pair:
    """A reference program, the kernel that follows it, and the metric that is compared."""

    kernel: str
    metric: Metric


PAIRS = {
    "osu_latency": Pair("latency", US),
    "osu_bw": Pair("bandwidth", MB_S),
    "osu_bibw": Pair("bibandwidth", MB_S),
    "osu_mbw_mr": Pair("message_rate", MESSAGES),
    "osu_bcast": Pair("bcast", US),
    "osu_allgather": Pair("allgather", US),
    "osu_allreduce": Pair("allreduce", US),
    "osu_alltoall": Pair("alltoall", US),
    "PingPong": Pair("latency", US),
    "Uniband": Pair("bandwidth", MB_S),
    "Biband": Pair("bibandwidth", MB_S),
    "Bcast": Pair("bcast", US),
    "Allgather": Pair("allgather", US),
    "Allreduce": Pair("allreduce", US),
    "Alltoall": Pair("alltoall", US),
}
"""OSU's programs by their names, and the benchmarks of IMB-MPI1."""


def benchmark(name: str, ours: str, theirs: str) -> Benchmark:
    """Return the benchmark of one pair: `ours` and `theirs` are the paths of the programs."""
    pair = PAIRS[name]
    of_osu = name.startswith("osu_")
    # OSU's programs pass through all sizes: so memory and caches have seen the same.
    sizes = f"{SIZES[0]}:{SIZES[-1]}" if of_osu else ",".join(map(str, SIZES))
    mine = [ours, "--bytes", sizes, "--samples", "1", "--like", "osu" if of_osu else "imb"]
    reference = [theirs, "-m", sizes] if of_osu else [theirs, name, "-msglen", "{scratch}/sizes"]
    files = {
        "side": f'[ "${SIDE}" != ours ] || exec {shlex.join(mine)}\nexec {" ".join(reference)}\n',
        "sizes": "".join(f"{size}\n" for size in SIZES),
    }

    def command(_: Request) -> Program:
        return Program(("/bin/sh", "{scratch}/side"), files=files, needs=(ours, theirs))

    def parse(stdout: str, _: Request) -> Parsed:
        return Parsed(tuple(figures(name, stdout)))

    return Benchmark(name, "wire", f"{name} and {pair.kernel}", (pair.metric,), command, parse)


def figures(name: str, stdout: str) -> Iterator[Sample]:
    """Yield the figure of each size that either side has printed."""
    pair = PAIRS[name]
    if '{"paribus_kernel"' in stdout:
        reading = kernel.READER.read(stdout)
    elif name.startswith("osu_"):
        reading = osu.READERS[name].read(stdout)
    else:
        reading = imb.READERS[f"imb_{name.lower()}"].read(stdout)
    found = {one.case.get("bytes"): one for one in reading.samples}
    for size in SIZES:
        if size not in found:
            raise ParseError(f"{name} has no figure at {size} bytes")
        yield Sample(pair.metric.name, Case.of(bytes=size), found[size].values)


def study(folder: Path, names: Sequence[str], mpi: Mpi, osu_folder: Path | None, how: Any) -> Path:
    """Write the study of `names` into `folder`, and return its file."""
    prefix = Path(mpi.mpirun).parent.parent
    wrap = 'wrap = ["chrt", "--fifo", "1"]\n' if how.real_time else ""
    arms = "".join(
        f'[arms."{arm}"]\nmpi = {json.dumps(str(prefix))}\ntransport = "{how.transport}"\n'
        f'env = {{ {SIDE} = "{arm}" }}\n{wrap}\n'
        for arm in ("reference", "again", "ours")
    )
    text = (
        'question = "Do the kernels measure what the reference programs measure?"\n'
        f'factor = "program"\nexplains = ["env.{SIDE}", "program.*", "lib.*"]\n\n{arms}'
        f"[plan]\nblocks = {how.blocks}\n\n"
    )
    for name in names:
        ours = kernel_path(PAIRS[name].kernel, mpi, HERE)
        theirs = program_of(name, mpi, osu_folder)
        (folder / f"{name}.py").write_text(
            f"import sys\n\nsys.path.insert(0, {str(Path(__file__).parent)!r})\n"
            "from bench_fidelity import benchmark\n\n"
            f"BENCHMARK = benchmark({name!r}, {str(ours)!r}, {str(theirs)!r})\n"
        )
        text += f'[[benchmarks]]\nfile = "{name}.py"\nranks = 2\n\n'
    path = folder / f"{how.transport}.toml"
    path.write_text(text)
    return path


def program_of(name: str, mpi: Mpi, osu_folder: Path | None) -> Path | None:
    """Return the path of a reference program, None where it is not there."""
    if not name.startswith("osu_"):
        path = Path(mpi.mpirun).with_name("IMB-MPI1")
        return path if path.is_file() else None
    found = sorted(osu_folder.rglob(name)) if osu_folder else []
    return next((one.absolute() for one in found if one.is_file()), None)


def table(verdict: Path) -> list[str]:
    """Return the rows of docs/fidelity.md: ratio and interval, * where not inside the margin."""
    cases = json.loads(verdict.read_text())["cases"]
    cells: dict[tuple[str, str], dict[int, str]] = {}
    for one in cases:
        ratio, word = one["comparison"], one["verdict"]["word"]
        text = "-"
        if ratio and ratio["low"] is not None:
            text = f"{ratio['ratio']:.3f} ({ratio['low']:.3f} to {ratio['high']:.3f})"
        mark = "" if word == "equivalent" else " *"
        cells.setdefault((one["benchmark"], one["arm"]), {})[one["case"]["bytes"]] = text + mark
    rows = [
        "| program | arm | 8 B | 4 KiB | 64 KiB | 1 MiB |",
        "|---|---|---|---|---|---|",
    ]
    for (name, arm), by_size in cells.items():
        rows.append(f"| {name} | {arm} | {' | '.join(by_size.get(s, '-') for s in SIZES)} |")
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--osu", type=Path, help="where OSU's programs lie, built with this MPI")
    parser.add_argument("--mpi", help="prefix or family, as in a study")
    parser.add_argument("--transport", default="shm", choices=("shm", "tcp"))
    parser.add_argument("--only", action="append", choices=PAIRS, help="a program (repeatable)")
    parser.add_argument("--real-time", action="store_true", help="ranks in SCHED_FIFO (root)")
    parser.add_argument("--blocks", type=int, default=60)
    parser.add_argument("--out", type=Path, default=Path("out/fidelity"))
    how = parser.parse_args()
    mpi = find_mpi(how.mpi, HERE)
    names = [name for name in how.only or PAIRS if program_of(name, mpi, how.osu)]
    if not names:
        print("no reference program was found: --osu DIRECTORY, or Intel MPI", file=sys.stderr)
        return 2
    how.out.mkdir(parents=True, exist_ok=True)
    file = study(how.out, names, mpi, how.osu, how)
    directory = how.out / f"{how.transport}.study"
    argv = [sys.executable, "-m", "paribus", "run", str(file), "--out", str(directory), "--replace"]
    done = subprocess.run([*argv, "--brief"], check=False)
    if not (directory / "verdict.json").exists():
        return done.returncode or 2
    rows = table(directory / "verdict.json")
    print("\n".join(rows))
    return int(any("*" in row for row in rows if "| ours |" in row))


if __name__ == "__main__":
    sys.exit(main())
