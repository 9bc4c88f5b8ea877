"""How ./dev test runs tests: on several workers, some alone, damaged inputs by a sample."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest
from scipy.stats import hypergeom

from chances import CHANCE, at_most
from processes import ran

HERE = Path(__file__).parent
TESTS = """
import os, time
from pathlib import Path
import pytest

LOG = Path(__file__).parent / "log"

@pytest.mark.parametrize("n", range(6))
def test_with_others(n):
    time.sleep(0.2)

@pytest.mark.parametrize("n", range(3))
def test_a_share_of_delay_follows_the_case(n):
    begun = time.monotonic()
    time.sleep(0.2)
    with LOG.open("a") as log:
        log.write(f"alone {begun} {time.monotonic()}\\n")

@pytest.mark.parametrize("n", range(6))
def test_others_again(n):
    begun = time.monotonic()
    time.sleep(0.05)
    with LOG.open("a") as log:
        log.write(f"shared {begun} {time.monotonic()}\\n")

def test_sampled(sample):
    with LOG.open("a") as log:
        log.write(f"sample {sample(range(800))}\\n")

@pytest.mark.skip(reason="nothing to see")
def test_skipped():
    pass
"""

NOT_BESIDE_PROCESSES = """
import time
from pathlib import Path

HERE = Path(__file__).parent

def test_what_looks_at_the_machine_does_not_wait_for_what_starts_nothing():
    begun = time.monotonic()
    while not (HERE / "seen").exists() and time.monotonic() < begun + 30:
        time.sleep(0.01)
    (HERE / "log").touch()
    assert (HERE / "seen").exists()
"""

STARTING_NOTHING = """
import os, subprocess, time
from pathlib import Path
import pytest

@pytest.mark.parametrize("n", range(4))
def test_quiet(n):
    begun = time.monotonic()
    (Path(__file__).parent / "seen").touch()
    time.sleep(0.1)
    with (Path(__file__).parent / "log").open("a") as log:
        log.write(f"quiet {begun} {time.monotonic()}\\n")

def test_no_process_is_started():
    if "PYTEST_XDIST_WORKER" in os.environ:
        with pytest.raises(AssertionError, match="starts a process"):
            subprocess.run(["true"])
"""

TOGETHER = """
import os
from pathlib import Path
import pytest

@pytest.mark.parametrize("n", range(6))
def test_on_one_worker(n):
    with (Path(__file__).parent / "log").open("a") as log:
        log.write(f"worker {os.environ.get('PYTEST_XDIST_WORKER')}\\n")
"""


def outcome(folder: Path, *options: str) -> tuple[str, list[str]]:
    """Return what pytest printed about tests with our conftest, and what the tests noted."""
    folder.mkdir()
    for name in ("conftest.py", "drawing.py"):
        (folder / name).write_text((HERE / name).read_text())
    (folder / "test_some.py").write_text(TESTS)
    (folder / "test_ssh.py").write_text(TOGETHER)
    (folder / "test_attack.py").write_text(NOT_BESIDE_PROCESSES)
    (folder / "test_matrices.py").write_text(STARTING_NOTHING)
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    done = ran(argv, cwd=folder, code=0)
    return done.stdout, (folder / "log").read_text().splitlines()


def test_tests_are_alone_or_on_one_worker_and_the_rest_is_counted(tmp_path: Path) -> None:
    options = ("-n", "2", "--dist", "loadgroup", "--no-loadscope-reorder", "--sample-seed", "7")
    said, log = outcome(tmp_path / "a", *options, "--deselect", "test_attack.py")
    workers = [line for line in log if line.startswith("worker ")]
    assert len(workers) == 6
    assert len(set(workers)) == 1
    spans = [line.split() for line in log if line.startswith(("alone ", "shared ", "quiet "))]
    times = [(kind, float(begin), float(end)) for kind, begin, end in spans]
    alone = [(begin, end) for kind, begin, end in times if kind == "alone"]
    assert len(alone) == 3
    for begin, end in alone:
        met = [(b, e) for _, b, e in times if b < end and e > begin]
        assert met == [(begin, end)]
    # They come last: a worker holds two tests at most that it was given before.
    first = min(begin for begin, _ in alone)
    assert sum(begin > first for kind, begin, _ in times if kind == "shared") <= 2
    assert "sampled: 100 of 800 inputs, kills and simulated studies (--sample-seed 7" in said
    assert "skipped: 1 tests" in said
    assert re.search(r"^27 passed, 1 skipped in ", said.splitlines()[-1])


def test_what_starts_nothing_waits_for_no_look_at_the_machine(tmp_path: Path) -> None:
    beside = ("-n", "2", "--dist", "loadgroup", "-k", "test_attack or test_matrices")
    outcome(tmp_path / "a", *beside)


def test_a_sample_is_that_of_its_seed_whichever_worker_draws_it(tmp_path: Path) -> None:
    def drawn(name: str, *options: str) -> str:
        said, log = outcome(tmp_path / name, "-k", "sampled", *options)
        assert "sampled:" in said
        return next(line for line in log if line.startswith("sample "))

    first = drawn("a", "-n", "2", "--dist", "loadgroup", "--sample-seed", "7")
    assert drawn("b", "--sample-seed", "7") == first
    assert drawn("c", "--sample-seed", "8") != first
    assert drawn("d", "--thorough") == f"sample {list(range(800))}"


@pytest.mark.parametrize(("tried", "of"), [(24, 100), (125, 1000), (2500, 20_000)])
def test_a_sample_passes_its_bound_wherever_all_pass_theirs(tried: int, of: int) -> None:
    """But for one sample in 100,000; a bound lower by one study would refuse more."""
    bound = at_most(0.06, tried, of)
    beyond = [hypergeom.sf(round(bound * tried) - less, of, 0.06 * of, tried) for less in (0, 1)]
    assert beyond[0] <= CHANCE < beyond[1]
    assert at_most(0.06, of, of) == pytest.approx(0.06)


def test_what_is_alone_or_together_exists() -> None:
    modules = {path.stem for path in HERE.rglob("test_*.py")}
    names = {
        name
        for path in HERE.rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(), re.M)
    }
    # By its path: containers/ has a conftest of its own.
    spec = importlib.util.spec_from_file_location("shared_conftest", HERE / "conftest.py")
    assert spec
    assert spec.loader
    conftest = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(conftest)
    assert conftest.MODULES.keys() <= modules
    assert modules >= conftest.QUIET
    assert conftest.ALONE.keys() | conftest.TIMED.keys() <= modules | names
    assert not conftest.QUIET & (conftest.MODULES.keys() | conftest.ALONE.keys())
