"""`paribus screen` on pocket hosts: one does twice the work, one is killed in mid-round."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from paribus import containers
from paribus.containers.fabric import NETWORK
from paribus.core import Container
from paribus.hosts.links import kernel_has
from paribus.launch.local import capture
from paribus.store import Store
from studies import paribus

# The time of the loop on a core: a launch of 60 ms takes 10 to 20 to start and is measured in steps
# of 10, and on a busy machine it waits for a core.
TIMES = "/proc/self/schedstat"
WORK = (
    f"sh -c 'n=20000; [ $(uname -n) != h2 ] || n=40000; read b r <{TIMES}; i=0;"
    f" while [ $i -lt $n ]; do i=$((i+1)); done; read e r <{TIMES}; echo ns: $((e-b))'"
)
FIRST = re.compile(r"^NSpid:.*\t1$", re.MULTILINE)


def first_process(host: str, folder: str) -> int:
    """Return the first process of a pocket host whose files lie below `folder`."""
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            mine = len(words) > 4 and words[1].startswith(folder) and words[3] == host
            if mine and FIRST.search((entry / "status").read_text()):
                return int(entry.name)
    raise AssertionError(f"{host} is not there")


def screened(
    folder: Path, words: Sequence[str], path: str, at: str, act: Callable[[], None]
) -> tuple[int, dict[str, Any]]:
    """Return exit code and answer of a screen in `folder`, beside which `act` is done at `at`."""
    if reason := containers.check(Container("namespace"), capture):
        pytest.skip(reason)
    (folder / "t").mkdir()
    argv = [sys.executable, "-m", "paribus", "screen", *words, "--json", "--out", "out"]
    env = {**os.environ, "TMPDIR": str(folder / "t"), "PATH": path}
    with subprocess.Popen(
        argv, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as screen:
        assert screen.stderr is not None
        assert screen.stdout is not None
        for line in screen.stderr:
            if at in line:
                act()
        answer = json.loads(screen.stdout.read())
    return screen.returncode, answer


@pytest.mark.slow
def test_a_slow_host_is_named_and_a_killed_one_costs_nobody_a_round(tmp_path: Path) -> None:
    if not Path(TIMES).exists():
        pytest.skip(f"this kernel has no {TIMES}")
    temporary = tmp_path / "t"

    def kill() -> None:
        os.kill(first_process("h6", str(temporary)), signal.SIGKILL)

    figure = ("--command", WORK, "--regex", "ns: (.*)", "--unit", "ns")
    words_of = ("pocket:8", *figure, "--margin", "20%", "--fail-on", "slow")
    code, answer = screened(tmp_path, words_of, os.environ["PATH"], "round 2:", kill)
    assert code == 1
    words = {one["node"]: one["word"] for one in answer["nodes"]}
    assert words["h2"] == "slow"
    assert words["h6"] == "failed"
    assert "slow" not in {word for node, word in words.items() if node != "h2"}
    [slow] = (one for one in answer["nodes"] if one["node"] == "h2")
    [evidence] = slow["evidence"]
    # An interval of 95 % misses the truth in one run of twenty.
    assert evidence["low"] - 0.05 < 0.5 < evidence["high"] + 0.05
    others = [one for one in answer["nodes"] if one["node"] not in ("h2", "h6")]
    assert all(one["speeds"] for one in others)
    with Store(tmp_path / "out") as store:
        gathered = {one.node: one.facts for one in store.gathered()}
    assert {node for node, facts in gathered.items() if "cpu.model" in facts} == set(words)
    assert list(temporary.iterdir()) == []


@pytest.mark.slow
def test_the_end_of_a_host_that_sends_slowly_is_named(tmp_path: Path) -> None:
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    if "tbf" not in kernel_has(path):
        pytest.skip("this kernel limits no rate")

    def limit() -> None:
        pid = first_process("h3", str(tmp_path / "t"))
        slow = ["tc", "qdisc", "replace", "dev", "eth0", "root", "tbf", "rate", "100mbit"]
        user = ["-U", "--preserve-credentials"] if os.geteuid() else []
        inside = ["nsenter", "-t", str(pid), *user, "-n", *slow, "burst", "64kb", "latency", "9ms"]
        subprocess.run(inside, check=True, env={**os.environ, "PATH": path})

    measured = ("--with", "bandwidth bytes=65536 samples=5", "--margin", "30%")
    code, answer = screened(tmp_path, ("pocket:4", "--links", *measured), path, "round 1:", limit)
    assert code == 0
    words = {one["node"]: one["word"] for one in answer["nodes"]}
    assert words.pop("h3") == "slow"
    assert "slow" not in words.values()
    assert {one["word"] for one in answer["links"]} <= {"undecided"}
    assert {(one["from"], one["to"]) for one in answer["pairs"]} >= {("h1", "h3"), ("h3", "h1")}
    assert list((tmp_path / "t").iterdir()) == []


@pytest.mark.slow
def test_links_are_measured_over_each_network_that_is_named(tmp_path: Path) -> None:
    """The one network of pocket hosts, by its interface and by its range: two rows of each pair."""
    networks = ("--network", "eth0", "--network", NETWORK)
    measured = ("--with", "latency bytes=8 samples=3", "--budget", "15 s")
    words = ("pocket:4", "--links", *networks, *measured)
    code, _ = screened(tmp_path, words, os.environ["PATH"], "", lambda: None)
    assert code == 0
    labels = ("latency.eth0", "latency.10.77.0.0-16")
    with Store(tmp_path / "out") as store:
        launches = list(store.launches())
    assert {one.launch.benchmark for one in launches} == {*labels}
    assert {(one.outcome.error, len(one.outcome.samples)) for one in launches} == {("", 1)}
    assert {len(one.launch.arm.split("|")) for one in launches} == {2}
    done = paribus(
        "screen", "pocket:4", "--links", "--network", "eth0", "--network", "ib7", cwd=tmp_path
    )
    assert done.returncode == 2
    assert "no network ib7" in done.stderr
