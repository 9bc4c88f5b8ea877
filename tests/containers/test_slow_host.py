"""A host that is slow for real: one of four pocket hosts has half of what the others have."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from paribus.launch.local import capture
from processes import children

HOSTS = ("h1", "h2", "h3", "h4")
SLOW = "h2"
PERIOD_US = 20_000
SHARES = {host: 0.18 if host == SLOW else 0.36 for host in HOSTS}
"""Of a core. Two cores suffice: together it is less than what they have.

On Linux 6.18 ranks got up to 0.05 of a core more than their quota in some runs, not on all hosts:
a host with 80 % of what the others have was then not distinguished.
"""

STUDY = """
question = "Is one of four hosts slow?"
factor = "nothing"
[arms.a]
hosts = "pocket:4"
[arms.b]
hosts = "pocket:4"
[[benchmarks]]
name = "ep"
class = "W"
ranks = 4
samples = 3
[plan]
blocks = 8
"""


@pytest.fixture
def groups() -> Iterator[Mapping[str, Path]]:
    """Yield a control group for each host, which limits it to its share."""
    root = Path("/sys/fs/cgroup")
    whole = (root / "cgroup.controllers").exists()  # version 2
    root = root if whole else root / "cpu"
    made: dict[str, Path] = {}
    try:
        try:
            for host, share in SHARES.items():
                made[host] = root / f"paribus-test-{os.getpid()}-{host}"
                made[host].mkdir()
                quota = str(round(share * PERIOD_US))
                if whole:
                    limits = {"cpu.max": f"{quota} {PERIOD_US}", "cpu.weight": "10000"}
                else:
                    limits = {"cpu.cfs_period_us": str(PERIOD_US), "cpu.cfs_quota_us": quota}
                    # Beside other tests they have their shares all the same.
                    limits["cpu.shares"] = "100000"
                for name, text in limits.items():
                    (made[host] / name).write_text(text)
        except OSError as error:
            pytest.skip(f"no control group with a limit of the processor: {error}")
        yield made
    finally:
        for group in made.values():
            with suppress(FileNotFoundError):
                _remove(group)


def _remove(group: Path) -> None:
    """Remove a control group once its processes have ended."""
    deadline = time.monotonic() + 10
    while True:
        try:
            return group.rmdir()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def _below(pid: int) -> Iterator[int]:
    for child in children(pid):
        yield child
        yield from _below(child)


def _confine(study: int, groups: Mapping[str, Path], known: set[int]) -> None:
    """Move the processes of the pocket hosts of a `study` into the groups of their hosts."""
    own = Path("/proc/self/ns/uts").readlink()
    for pid in set(_below(study)) - known:
        with suppress(OSError):  # it has ended
            if Path(f"/proc/{pid}/ns/uts").readlink() == own:
                continue
            named = capture(["nsenter", "-t", str(pid), "-u", "hostname"])
            if group := groups.get(named.stdout.strip()):
                (group / "cgroup.procs").write_text(str(pid))
                known.add(pid)


@pytest.mark.installed
@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="control groups are root's")
def test_a_host_with_less_of_its_core_is_named(tmp_path: Path, groups: Mapping[str, Path]) -> None:
    (tmp_path / "slow.toml").write_text(STUDY)
    known: set[int] = set()
    with (tmp_path / "said").open("w") as said:
        study = subprocess.Popen(
            [sys.executable, "-m", "paribus", "run", "slow.toml", "--anyway"],
            cwd=tmp_path,
            stdout=said,
            stderr=said,
        )
        try:
            while study.poll() is None:
                _confine(study.pid, groups, known)
                time.sleep(0.1)
        finally:
            study.terminate()
            study.wait(20)
    text = (tmp_path / "said").read_text()
    assert study.returncode == 0, text
    assert known
    found = json.loads((tmp_path / "slow.study" / "verdict.json").read_text())
    notices = [one["figures"] for one in found["notices"] if one["name"] == "slow hosts"]
    assert {one["arm"] for one in notices} == {"a", "b"}, text
    for one in notices:
        assert [slow["host"] for slow in one["slow"]] == [SLOW], text
        assert 0.4 < one["slow"][0]["share"] / one["share"] < 0.7, text
    assert f"only a part of their cores on {SLOW}" in " ".join(text.split())
