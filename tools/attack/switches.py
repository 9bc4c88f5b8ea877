"""`before` and `after` under signals and SIGKILL: the platform is never switched twice, or left so.

The commands switch a file that stands for the platform, and keep a journal that says in which order
they and the launches began and ended.
"""

from __future__ import annotations

import contextlib
import signal
import time
from pathlib import Path

from attack.arena import Arena
from attack.ground import write_study
from attack.stored import whole
from attack.victim import Ended, clean, ends, paribus, run_words, start

SWITCH = """#!/bin/sh
# switch before|after ARM: what the study calls to switch its platform.
cd "{folder}" || exit 1
echo "$1+ $2" >>journal
if [ "$1" = after ]; then
    # shellcheck disable=SC2013 # a word a line
    for pid in $(cat ranks 2>/dev/null); do
        state=$(sed 's/.*) //' "/proc/$pid/stat" 2>/dev/null | cut -c1)
        [ -z "$state" ] || [ "$state" = Z ] || echo "rank-alive $2" >>journal
    done
    if [ -f daemon ]; then
        kill "$(cat daemon)" 2>/dev/null
        rm -f daemon
    fi
fi
sh -c 'sleep {takes}; exit 0' </dev/null
daemon="{daemon}"
if [ "$1 $daemon" = "before True" ]; then
    sleep 300 &
    echo $! >daemon
fi
echo "$1- $2" >>journal
"""
LAUNCH = """
echo $$ >>"{folder}/ranks"
echo "launch+" >>"{folder}/journal"
sleep {takes} & wait $!
echo $((PARIBUS_SEED % 1000 + 1)) end
"""


def interrupted(arena: Arena) -> None:
    """INT, TERM, HUP at any moment: switched back before Paribus leaves, ranks ended first."""
    number = arena.random.choice((signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
    path = _study(arena, sessions=arena.random.random() < 0.3)
    victim = start(arena, *run_words(arena, path))
    if victim.until_moment(2 * arena.ground.calm_s) and victim.in_control():
        group = arena.random.random() < 0.5
        with contextlib.suppress(ProcessLookupError):
            victim.signal(number, group=group)
    ended = victim.end()
    when = f"{number.name} in a study that switches"
    clean(arena, ended, when)
    arena.nothing_left(when)
    _judge(arena, when, over=True)
    _finish(arena, path)


def killed(arena: Arena) -> None:
    """SIGKILL twice at any moment: resume switches back before anything else."""
    path = _study(arena, sessions=arena.random.random() < 0.3)
    for _ in range(2):
        victim = start(arena, *run_words(arena, path))
        if victim.until_moment(2 * arena.ground.calm_s):
            victim.signal(signal.SIGKILL)
            arena.strikes += 1
        victim.end()
        arena.nothing_left("SIGKILL in a study that switches", 4.0)
        _judge(arena, "SIGKILL", over=False)
    _finish(arena, path)


def in_before(arena: Arena) -> None:
    """A signal while `before` runs: it ends with all its children, and is switched back."""
    number = arena.random.choice((signal.SIGKILL, signal.SIGINT, signal.SIGTERM))
    path = _study(arena, switch_s=3.0)
    victim = start(arena, *run_words(arena, path))
    journal = arena.folder / "journal"
    if not victim.until(journal.exists):
        ends(arena, victim.end(), "a study that switches")
        return
    time.sleep(arena.random.uniform(0.0, 0.5))
    victim.signal(number)
    ended = victim.end()
    when = f"{number.name} during `before`"
    clean(arena, ended, when)
    # `after` takes 3 s itself; after SIGKILL nobody may run it.
    arena.nothing_left(when, 2.0)
    said = journal.read_text().split("\n")
    arena.expect("before- a" not in said and "before- b" not in said, f"{when}: it went on")
    _write_switch(arena, takes=0.02, daemon=False)
    _judge(arena, when, over=number is not signal.SIGKILL)
    _finish(arena, path)


def daemon(arena: Arena) -> None:
    """A daemon that `before` starts, and that keeps its stdout open, blocks nothing."""
    path = _study(arena, daemon=True)
    ended = paribus(arena, *run_words(arena, path), within_s=60.0)
    arena.expect(ended.code is not None, "a daemon that `before` started blocks the study")
    if ended.code is not None:
        _judge_finished(arena, ended)
    arena.nothing_left("a study whose `before` starts a daemon")


def _study(
    arena: Arena, *, sessions: bool = False, switch_s: float = 0.02, daemon: bool = False
) -> Path:
    _write_switch(arena, takes=switch_s, daemon=daemon)
    switch = arena.folder / "switch"
    arms = "".join(
        f'[arms.{arm}]\nbefore = "{switch} before {arm}"\nafter = "{switch} after {arm}"\n'
        for arm in "ab"
    )
    script = LAUNCH.format(folder=arena.folder, takes=0.05)
    unit = '\nunit = "session"\nlaunches = 1' if sessions else ""
    return write_study(arena.folder, script=script, arms=arms, plan=f"blocks = 8{unit}")


def _write_switch(arena: Arena, *, takes: float, daemon: bool) -> None:
    path = arena.folder / "switch"
    path.write_text(SWITCH.format(folder=arena.folder, takes=takes, daemon=daemon))
    path.chmod(0o755)


def _judge(arena: Arena, when: str, *, over: bool) -> None:
    """Expect of the journal that every `before` was followed by its `after`, and in peace."""
    path = arena.folder / "journal"
    switched = ""
    for line in path.read_text().splitlines() if path.exists() else ():
        word, _, arm = line.partition(" ")
        if word == "before+":
            arena.expect(
                not switched, f"{when}: `before` of {arm} while the platform is that of {switched}"
            )
            switched = arm
        elif word == "after-":
            switched = ""
        elif word == "launch+":
            arena.expect(bool(switched), f"{when}: a launch on a platform that is not switched")
        arena.expect(word != "rank-alive", f"{when}: `after` ran while a rank still ran")
    if over:
        arena.expect(not switched, f"{when}: the platform stays that of {switched}")


def _finish(arena: Arena, path: Path) -> None:
    ended = paribus(arena, *run_words(arena, path))
    _judge_finished(arena, ended)
    arena.nothing_left("after resume")


def _judge_finished(arena: Arena, ended: Ended) -> None:
    right = ends(arena, ended, "resume")
    _judge(arena, "after resume", over=True)
    if right:
        whole(arena, "after resume")


ATTACKS = (interrupted, killed, in_before, interrupted, killed, daemon)
