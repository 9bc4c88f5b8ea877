"""The clock jumps by a day in mid-study: no duration contains the jump, and the report says so."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from attack.arena import Arena
from attack.ground import write_study
from attack.stored import rows, whole
from attack.victim import ends, paribus, run_words, start

SHIM = r"""
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long shift(void) {
    const char *path = getenv("ATTACK_CLOCK");
    const char *by = getenv("ATTACK_CLOCK_BY");
    return path && by && access(path, F_OK) == 0 ? atol(by) : 0;
}
int clock_gettime(clockid_t id, struct timespec *at) {
    int failed = (int)syscall(SYS_clock_gettime, id, at);
    if (!failed && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) at->tv_sec += shift();
    return failed;
}
int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
"""
DAY_S = 86400
SAYS = re.compile(
    r"\bclock\b.{0,80}\b(jump|step|mov|shift|set|chang|back|forw|differ)", re.S | re.I
)


def jump(arena: Arena) -> None:
    """Let the clock jump forwards or backwards at a launch."""
    _jump(arena, arena.random.randint(1, 14), stops=False)


def between(arena: Arena) -> None:
    """Let it jump while the study is stopped, between two sittings."""
    _jump(arena, arena.random.randint(4, 12), stops=True)


def _jump(arena: Arena, launches: int, *, stops: bool) -> None:
    shim = _shim(arena)
    if shim is None:
        return
    file, by = arena.folder / "jumped", arena.random.choice((DAY_S, -DAY_S))
    env = {"LD_PRELOAD": str(shim), "ATTACK_CLOCK": str(file), "ATTACK_CLOCK_BY": str(by)}
    path = write_study(arena.folder)
    if not _sound(arena, env, by):
        return
    victim = start(arena, *run_words(arena, path), env=env)
    victim.until_launches(launches)
    time.sleep(arena.random.uniform(0.0, 0.03))
    if stops:
        victim.signal(signal.SIGKILL)
        victim.end()
        file.touch()
        ended = paribus(arena, *run_words(arena, path), env=env)
    else:
        file.touch()
        ended = victim.end()
    when = f"the clock jumps by {by:+d} s{' between two sittings' if stops else ''}"
    if ends(arena, ended, when):
        whole(arena, when)
    longest = max((abs(row.wall_s) for row in rows(arena.out)), default=0.0)
    arena.expect(longest < DAY_S / 2, f"{when}: a launch lasts {longest:.0f} s")
    if not stops:
        # What happens between two sittings looks like a study that rested for a day.
        again = paribus(arena, "report", arena.out, env=env)
        for said, name in ((ended.out, "run"), (again.out, "report")):
            arena.expect(bool(SAYS.search(said)), f"{when}: {name} does not say so")
    arena.expect("1 day" not in ended.out, f"{when}: the study is said to last a day")
    arena.nothing_left(when)


def _shim(arena: Arena) -> Path | None:
    """Return the library that makes the clock jump, or None where it cannot be compiled."""
    source, shim = arena.folder / "clock.c", arena.folder / "clock.so"
    source.write_text(SHIM)
    compiler = os.environ.get("CC", "cc")
    try:
        done = subprocess.run(
            [compiler, "-O1", "-shared", "-fPIC", "-o", shim, source],
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        arena.skipped = f"{compiler}: {error.strerror}"
        return None
    if done.returncode:
        arena.skipped = f"{compiler} does not compile a library: {done.stderr[:80]}"
        return None
    return shim


def _sound(arena: Arena, env: dict[str, str], by: int) -> bool:
    """Return whether the shim shifts the clock of a Python here at all."""
    file = Path(env["ATTACK_CLOCK"])
    file.touch()
    done = subprocess.run(
        [sys.executable, "-c", "import time; print(time.time())"],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=True,
    )
    file.unlink()
    if abs(float(done.stdout) - time.time() - by) > DAY_S / 2:
        arena.skipped = "the clock of this Python cannot be shifted"
        return False
    return True


ATTACKS = (jump, between)
