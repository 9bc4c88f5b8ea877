"""A clock that is set in mid-study is noticed and reported, and enters no duration."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from paribus.judge.notices import STEP
from paribus.launch.progress import Clock
from studies import launches_in, paribus, write_study

DAY_S = 86_400

# The day after from the moment on that a file is there: for Paribus alone, whose clock is asked.
SHIM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static long ahead(void) {
    const char *file = getenv("PARIBUS_TEST_CLOCK");
    return file && access(file, F_OK) == 0 ? 86400 : 0;
}
int clock_gettime(clockid_t id, struct timespec *at) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(id, at);
    if (id == CLOCK_REALTIME) at->tv_sec += ahead();
    return code;
}
time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
int gettimeofday(struct timeval *at, void *zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}
"""


def test_settings_are_seen_once_and_reach_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Clock()
    begin = one.now()
    assert one.step() == 0.0
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() - DAY_S)
    assert one.step() == pytest.approx(-DAY_S, abs=1)
    assert one.step() == 0.0
    assert 0 <= one.now() - begin < 60
    monkeypatch.setattr(time, "time", real)
    assert one.step() == pytest.approx(DAY_S, abs=1)


def test_a_jump_of_a_day_is_reported_and_in_no_duration(tmp_path: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    assert compiler, "the kernels need a compiler too"
    (tmp_path / "shim.c").write_text(SHIM)
    shim, jump = tmp_path / "shim.so", tmp_path / "jump"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-o", shim, tmp_path / "shim.c", "-ldl"], check=True
    )
    count = tmp_path / "count"
    script = f"echo >> {count}; [ $(wc -l < {count}) -ne 9 ] || touch {jump}; echo 2.50013"
    study = write_study(tmp_path, script=script)
    env: dict[str, Any] = {"LD_PRELOAD": str(shim), "PARIBUS_TEST_CLOCK": str(jump)}
    begin = time.monotonic()
    done = paribus("run", study, "--out", "out", cwd=tmp_path, **env)
    lasted = time.monotonic() - begin
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "was set during the study (+1 d 0 h)" in said
    stored = launches_in(tmp_path / "out", void=True)
    steps = [s for one in stored if (s := one.outcome.facts.get(STEP))]
    assert steps == [pytest.approx(DAY_S, abs=2)]
    assert sum(one.outcome.wall_s for one in stored) < lasted
    starts = [one.outcome.started for one in stored]
    assert max(starts) - min(starts) < lasted
