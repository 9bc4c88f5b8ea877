"""A study whose files go away while it runs ends with the cause, and reports no success."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from paribus.store import Store, read_count
from processes import ran
from studies import RANDOM, command, paribus, write_study


def removed(name: str) -> Callable[[Path], object]:
    return lambda out: (out / name).unlink()


def replaced(out: Path) -> None:
    shutil.copy(out / "launches.db", out / "copy")
    (out / "copy").rename(out / "launches.db")


def moved(out: Path) -> None:
    out.rename(out.with_name("elsewhere"))


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (removed("launches.db"), "launches.db: was deleted, moved or renamed while the study ran"),
        (replaced, "launches.db: was replaced by another file while the study ran"),
        (removed("launches.db-wal"), "launches.db-wal: was deleted"),
        (removed("plan.json"), "plan.json: was deleted"),
        (moved, "the study directory was moved, renamed or deleted while the study ran"),
    ],
)
def test_files_that_go_away_in_mid_run_end_the_study(
    tmp_path: Path, change: Callable[[Path], object], cause: str
) -> None:
    study = write_study(tmp_path, script=RANDOM, plan="blocks = 1000")
    out = tmp_path / "out"
    with subprocess.Popen(
        command("run", study, "--out", out),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            deadline = time.monotonic() + 60
            while read_count(out).launches < 3 and time.monotonic() < deadline:
                time.sleep(0.02)
            change(out)
            said, errors = process.communicate(timeout=60)
        finally:
            process.terminate()
    assert process.returncode == 2, errors
    assert cause in errors
    assert "Traceback" not in errors
    assert "steady" not in said
    assert not list(tmp_path.rglob("verdict.json"))
    if change is moved:
        out.with_name("elsewhere").rename(out)
        with Store(out, write=True) as store:
            assert {one.outcome.error for one in store.launches()} == {""}


def test_logs_deleted_between_launches_are_made_again(tmp_path: Path) -> None:
    before = f'before = "rm -rf {tmp_path}/out/logs"'
    study = write_study(tmp_path, arms=f"[arms.a]\n{before}\n[arms.b]\n{before}\n")
    paribus("run", study, "--out", "out", cwd=tmp_path, code=0)


@pytest.mark.parametrize("then", ["echo 2.5", "exit 1"])
def test_logs_deleted_by_a_launch_are_no_failure_of_the_arm(tmp_path: Path, then: str) -> None:
    script = f"rm -rf {tmp_path}/out/logs; {then}"
    study = write_study(tmp_path, script=script)
    done = paribus("run", study, "--out", "out", cwd=tmp_path, code=2)
    assert "logs: was deleted" in done.stderr
    assert "--resume" in done.stderr
    assert "Traceback" not in done.stderr
    with Store(tmp_path / "out") as store:
        assert list(store.launches(void=True)) == []


CALLS = {
    "bind_plan": "store.bind_plan('a' * 64)",
    "append": "store.append(Launch(2, 0, 'b', 'a', 0), Outcome(State.OK, 0.0, 0.0, 0, ()))",
    "void": "store.void([1], 'because')",
    "keep_gathered": "store.keep_gathered([Gathered('a', 'n', 0.0, {})])",
}


@pytest.mark.parametrize("call", CALLS)
def test_a_write_that_fails_is_a_store_error(tmp_path: Path, call: str) -> None:
    """The limit of file sizes makes write(2) fail: SQLite then says that the disk has an error."""
    code = f"""
import os, resource
from pathlib import Path
from paribus.core.errors import StoreError
from paribus.core.model import *
from paribus.store.store import Gathered, Store
directory = Path({str(tmp_path)!r})
with Store(directory, write=True) as store:
    store.append(Launch(1, 0, 'b', 'a', 0), Outcome(State.OK, 0.0, 0.0, 0, ()))
    limit = (directory / 'launches.db-wal').stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    try:
        {CALLS[call]}
    except StoreError as error:
        print(error)
"""
    done = ran([sys.executable, "-c", code], code=0)
    assert "cannot be used: disk I/O error" in done.stdout
    assert "--resume" in done.stdout
