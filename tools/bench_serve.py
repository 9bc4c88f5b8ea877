"""What the workbench costs: first page, long lists, many viewers, a study that is watched."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from paribus.cli import outputs
from paribus.core import Case, Outcome, Sample, State
from paribus.judge.conclude import judged
from paribus.plan import freeze, software, write_plan
from paribus.store import Store
from paribus.studyfile.load import load_study

STUDY = """\
question = "Which?"
factor = "nothing"
[arms.a]
[arms.b]
{benchmarks}
[plan]
blocks = {blocks}
seed = 1
"""
BENCHMARK = '[[benchmarks]]\nname = "latency"\nlabel = "{label}"\nbytes = [8, 65536]'
WATCHED = """\
question = "Is a study slower while somebody watches it?"
factor = "the viewer"
[arms.alone]
before = ["rm -f {folder}/watch"]
[arms.watched]
before = ["touch {folder}/watch"]
[[benchmarks]]
name = "triad"
ranks = 1
bytes = "1 MiB"
[plan]
blocks = {blocks}
margin = "0.5 %"
seed = 1
"""
"""A kernel that computes on one core, watched in one of the arms: a launch counts by its median."""

VIEWERS = 50


def serve_cost() -> list[tuple[str, str, str]]:
    """Return what the pages take, and what watching takes from a study that runs."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        _studies(folder, 100)
        with _served(folder) as one:
            first = one.timed("/")
            again = median(one.timed("/") for _ in range(20))
        _long(folder / "long")
        with _served(folder) as one:
            ident = one.ident("long")
            listed = median(one.timed(f"/studies/{ident}/launches/") for _ in range(3))
        rows = [
            ("first page of 100 studies, first time", f"{first * 1e3:.0f} ms", "bound: 150 ms"),
            ("first page of 100 studies, again", f"{again * 1e3:.1f} ms", "bound: 150 ms"),
            ("500 of 10,000 launches", f"{listed * 1e3:.0f} ms", ""),
        ]
        return [*rows, *_viewers(folder), _disturbance(folder)]


def _studies(folder: Path, count: int) -> None:
    """Write one judged study, and copies of it."""
    first = folder / "study-000"
    _write(first, blocks=8)
    outputs.write_files(judged(first), first)
    for number in range(1, count):
        shutil.copytree(first, folder / f"study-{number:03}")


def _long(directory: Path) -> None:
    _write(directory, blocks=999, benchmarks=5)


def _write(directory: Path, blocks: int, benchmarks: int = 1) -> None:
    file = directory.with_suffix(".toml")
    several = [BENCHMARK.format(label=f"latency-{n}") for n in range(benchmarks)]
    file.write_text(STUDY.format(blocks=blocks, benchmarks="\n".join(several)))
    plan = freeze(load_study(file), software())
    directory.mkdir()
    write_plan(plan, directory)
    with Store(directory, write=True) as store:
        store.bind_plan(plan.sha256)
        for launch in plan.launches:
            at = 1.7e9 + launch.number
            samples = tuple(
                Sample("latency", Case.of(bytes=size), (1.0 + launch.seed % 1000 / 1e5,), 1)
                for size in (8, 65536)
            )
            store.append(launch, Outcome(State.OK, at, 0.5, 0, ("latency",), samples))


def _viewers(folder: Path) -> list[tuple[str, str, str]]:
    """Return the CPU time of a server with viewers of a running study, and its page's delay."""
    with _running(folder, "many", blocks=60) as study, _served(folder) as one:
        ident = one.begun(folder, "many")
        viewers = [
            threading.Thread(target=one.watch, args=(f"/studies/{ident}/events", 30.0), daemon=True)
            for _ in range(VIEWERS)
        ]
        before, begun = one.cpu_s(), time.monotonic()
        for viewer in viewers:
            viewer.start()
        time.sleep(10)
        delay = median(one.timed("/") for _ in range(10))
        for viewer in viewers:
            viewer.join()
        share = (one.cpu_s() - before) / (time.monotonic() - begun)
        study.terminate()
    return [
        (f"{VIEWERS} viewers of a study that runs: CPU", f"{share:.1%} of a core", ""),
        (f"first page beside {VIEWERS} viewers", f"{delay * 1e3:.1f} ms", "bound: 150 ms"),
    ]


def _disturbance(folder: Path) -> tuple[str, str, str]:
    """Return by how much a viewer slows down the launches of the study that it watches.

    The study's own arms are with and without the viewer, who comes and goes with a file.
    """
    with _running(folder, "effect", blocks=400) as study, _served(folder) as one:
        ident = one.begun(folder, "effect")
        while study.poll() is None:
            if (folder / "watch").exists():
                one.watch(f"/studies/{ident}/events", 0.5)
            time.sleep(0.02)
    (head,) = json.loads((folder / "effect" / "verdict.json").read_text())["headlines"]
    said = head["comparison"]
    figure = f"{said['ratio']:.4f} [{said['low']:.4f}, {said['high']:.4f}]"
    return "launches of a study that is watched, ratio", figure, "goal: 0.995 to 1.005"


@contextmanager
def _running(folder: Path, name: str, blocks: int) -> Iterator[subprocess.Popen[bytes]]:
    text = WATCHED.replace("{folder}", str(folder)).replace("{blocks}", str(blocks))
    (folder / f"{name}.toml").write_text(text)
    argv = [sys.executable, "-m", "paribus", "run", f"{name}.toml", "--out", name]
    null = subprocess.DEVNULL
    study = subprocess.Popen(argv, cwd=folder, stdout=null, stderr=null)
    try:
        yield study
    finally:
        study.terminate()
        study.wait()


class _Server:
    def __init__(self, process: subprocess.Popen[str], port: int, cookie: str) -> None:
        self.process, self.port, self.cookie = process, port, cookie

    def get(self, path: str) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        asking = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        asking.request("GET", path, headers={"Cookie": self.cookie})
        answer = asking.getresponse()
        assert answer.status == 200, (path, answer.status)
        return asking, answer

    def timed(self, path: str) -> float:
        begun = time.perf_counter()
        asking, answer = self.get(path)
        answer.read()
        took = time.perf_counter() - begun
        asking.close()
        return took

    def watch(self, path: str, seconds: float) -> None:
        """Open a stream of events, and leave it after a while: what came is not looked at."""
        asking, _ = self.get(path)
        time.sleep(seconds)
        asking.close()

    def begun(self, folder: Path, name: str) -> str:
        """Return the id of a study that has its first launch."""
        deadline = time.monotonic() + 60
        while not (folder / name / "launches.count").exists():
            assert time.monotonic() < deadline
            time.sleep(0.2)
        time.sleep(2)  # the list of studies stands for that long
        ident = self.ident(name)
        self.timed(f"/studies/{ident}/")
        return ident

    def ident(self, name: str) -> str:
        asking, answer = self.get("/studies.json")
        found = re.search(rf'"id":"([0-9a-f]+)","name":"{name}"', answer.read().decode())
        asking.close()
        assert found
        return found[1]

    def cpu_s(self) -> float:
        """Return the CPU seconds of the server and of the process that makes reports."""
        tick = os.sysconf("SC_CLK_TCK")
        pids = [self.process.pid, *_children(self.process.pid)]
        stats = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
        return sum(int(one[11]) + int(one[12]) for one in stats) / tick


def _children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(one) for one in text.split()]


@contextmanager
def _served(folder: Path) -> Iterator[_Server]:
    argv = [sys.executable, "-m", "paribus", "serve", str(folder)]
    process = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        lines = (re.search(r"open: http://127.0.0.1:(\d+)(/\S+)", one) for one in process.stderr)
        found = next(one for one in lines if one)
        asking = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=60)
        asking.request("GET", found[2])
        cookie = str(asking.getresponse().headers["set-cookie"]).partition(";")[0]
        yield _Server(process, int(found[1]), cookie)
    finally:
        process.terminate()
        process.wait()
        process.stderr.close()


if __name__ == "__main__":
    for what, figure, bound in serve_cost():
        print(f"{what:50} {figure:>20}  {bound}")
