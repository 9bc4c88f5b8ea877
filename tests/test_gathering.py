"""Facts from inside the arms, on real launches: every node, bounded in time and size, named."""

from __future__ import annotations

import os
import random
import stat
import subprocess
import time
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpis import any_mpi
from paribus.audit.audit import changes, of_nodes
from paribus.audit.values import ERROR, NODES
from paribus.core import Command, Completed, Study
from paribus.launch import asking, gathering
from paribus.launch.arms import Ready
from paribus.launch.gathering import asked, gather, gather_arm, read_answer
from paribus.launch.local import LocalStation
from paribus.launch.ready import make_ready
from paribus.launch.unswitched import switches_of
from paribus.probes.machine import load_facts
from paribus.store import Gathered, Store
from paribus.studyfile.load import load_study
from processes import gone
from studies import paribus, write_arms, write_study


def study_of(folder: Path, **options: str) -> Study:
    return load_study(write_study(folder, **options))


def gathered(study: Study, ready: dict[str, Ready] | None = None) -> list[Gathered]:
    ready = ready or make_ready(study, lambda _: None)
    with LocalStation() as host, switches_of(study) as switches:
        return gather(study, ready, dict.fromkeys(ready, host), switches, lambda _: None)


def answering(folder: Path, text: str) -> str:
    """Return a launcher of our own making that does what `text` says in place of launching."""
    path = folder / "launcher"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


class Through(LocalStation):
    """A station that starts everything through a launcher of our own making."""

    def __init__(self, host: LocalStation, launcher: str) -> None:
        super().__init__()
        self.host, self.launcher, self.launches = host, launcher, 0
        self.scratch = host.scratch

    def cancel(self) -> None:
        self.host.cancel()

    def run(self, command: Command, **options: Any) -> Completed:
        self.launches += 1
        return self.host.run(replace(command, argv=(self.launcher, *command.argv)), **options)


def error_of(folder: Path, text: str) -> str:
    """Return what is reported of an arm whose launcher does what `text` says."""
    study = study_of(folder)
    ready = make_ready(study, lambda _: None)["a"]
    with LocalStation() as host:
        (one,) = gather_arm(study, ready, Through(host, answering(folder, text)))
    assert one.facts.keys() == {ERROR, NODES}
    return str(one.facts[ERROR])


def several(folder: Path, odd: str, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Gathered], int]:
    """Return what three nodes reported and in how many launches; the second does as `odd` says."""
    monkeypatch.setattr(gathering, "nodes_of", lambda *_: 3)
    study = study_of(folder)
    ready = make_ready(study, lambda _: None)["a"]
    launcher = (
        f"touch {folder}/once; export count=$(cat {folder}/once); echo again > {folder}/once\n"
        f'PARIBUS_RANK=0 "$@" & (export PARIBUS_RANK=1; {odd}) & PARIBUS_RANK=2 "$@" & wait'
    )
    with LocalStation() as host:
        through = Through(host, answering(folder, launcher))
        return gather_arm(study, ready, through), through.launches


def test_every_arm_answers_from_inside(tmp_path: Path) -> None:
    arms = '[arms.a]\n[arms.b]\nenv = { OMP_NUM_THREADS = "3", OWN_THING = "xyzzy" }\n'
    nodes = of_nodes(gathered(study_of(tmp_path, arms=arms)))
    assert nodes.keys() == {"a", "b"}
    ((name, facts),) = nodes["b"].items()
    assert name == os.uname().nodename
    assert facts["os.release"] == os.uname().release
    assert facts["env.OMP_NUM_THREADS"] == "3"
    assert "env.OMP_NUM_THREADS" not in nodes["a"][name]
    assert "xyzzy" not in str(facts)
    # What an arm's `env` sets is the fact env.NAME; the list of all other names is the same.
    assert facts["env.unlisted"] == nodes["a"][name]["env.unlisted"]


def test_a_launch_and_a_node_share_no_fact_but_the_load(tmp_path: Path) -> None:
    """Each fact has one implementation; the load of a launch and of a node come from one parser."""
    paribus("run", write_study(tmp_path, plan="blocks = 8"), "--out", "out", cwd=tmp_path, code=0)
    with Store(tmp_path / "out") as store:
        of_launches = {key for one in store.launches() for key in one.outcome.facts}
        of_nodes = {key for one in store.gathered() for key in one.facts}
    assert "load.running" in of_launches
    assert {"cpu.model", "os.release", "load.running"} <= of_nodes
    assert of_launches & of_nodes <= load_facts().keys()


class Elsewhere(LocalStation):
    """A station whose processes have other numbers than ours, and another /proc."""

    def run(self, command: Command, *, stdout: str, stderr: str, **_: Any) -> Completed:
        root = [] if os.geteuid() == 0 else ["--map-root-user"]
        argv = ["unshare", *root, "--pid", "--fork", "--mount-proc", "/bin/sh", "-c"]
        argv += ['exec "$@" >"$0" 2>/dev/null', stdout, *command.argv]
        done = subprocess.run(argv, env={**os.environ, **command.env}, check=False)
        return Completed(done.returncode, 0.1)


def test_answers_come_from_where_our_process_is_unknown(tmp_path: Path) -> None:
    study = study_of(tmp_path)
    ready = make_ready(study, lambda _: None)["a"]
    with Elsewhere() as station:
        try:
            subprocess.run(["unshare", "-r", "true"], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            pytest.skip("no namespaces here")
        (one,) = gather_arm(study, ready, station)
    assert ERROR not in one.facts
    assert one.facts["os.release"] == os.uname().release


def test_arms_are_switched_and_switched_back_and_it_is_said(tmp_path: Path) -> None:
    mark = tmp_path / "switched"
    arms = f'[arms.a]\n[arms.b]\nbefore = "touch {mark}"\nafter = "rm {mark}"\n'
    study = study_of(tmp_path, arms=arms)
    said: list[str] = []
    ready = make_ready(study, said.append)
    with LocalStation() as host, switches_of(study) as switches:
        gather(study, ready, dict.fromkeys(ready, host), switches, said.append)
    assert any("touch" in line for line in said)
    assert not mark.exists()


def test_what_the_study_asks_for_is_known_before_the_first_launch(tmp_path: Path) -> None:
    study = study_of(tmp_path, arms='[arms.a]\n[arms.b]\nenv = { FACTOR = "slow" }\n')
    facts = asked(study, make_ready(study, lambda _: None), switches_of(study))["steady"]
    assert "env.FACTOR" not in facts["a"][0]
    assert facts["b"][0]["env.FACTOR"] == "(not shown, value 1)"


def test_a_banner_before_the_facts_does_not_matter(tmp_path: Path) -> None:
    study = study_of(tmp_path)
    ready = make_ready(study, lambda _: None)["a"]
    with LocalStation() as host:
        (plain,) = gather_arm(study, ready, host)
        speaking = answering(
            tmp_path,
            'echo "*** Welcome to this cluster ***"; printf "no newline: "; "$@"; echo bye',
        )
        (behind,) = gather_arm(study, ready, Through(host, speaking))
    assert len(plain.facts) > 100
    lasting = [
        {key: value for key, value in one.facts.items() if not key.startswith(("load.", "cgroup."))}
        for one in (plain, behind)
    ]
    assert lasting[0] == lasting[1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("exit 0", "no answer"),
        ("echo Welcome to this cluster", "no facts in the output of"),
        ("echo 'out of space' >&2; exit 7", "exit code 7: out of space"),
        ('"$@" | head -n 40', "stops after"),
    ],
)
def test_a_node_that_does_not_answer_is_named_with_the_reason(
    tmp_path: Path, text: str, said: str
) -> None:
    assert said in error_of(tmp_path, text)


def test_a_node_that_hangs_is_ended_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathering, "LIMIT_S", 1.0)
    mark = f"hangs-{os.getpid()}"
    assert "no answer within 1 s" in error_of(tmp_path, f"sh -c 'sleep 300; : {mark}'")
    assert gone(mark)


def test_all_nodes_are_asked_by_one_launch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes, launches = several(tmp_path, '"$@"', monkeypatch)
    assert all(ERROR not in one.facts for one in nodes)
    name = os.uname().nodename
    assert [one.node for one in nodes] == [f"{name} (node {i} of 3)" for i in (1, 2, 3)]
    # A launcher that is slow to read here and now may let two answers run into each other.
    assert 1 <= launches <= 4
    assert all(one.facts["os.release"] == os.uname().release for one in nodes)


@pytest.fixture(scope="module")
def enough_s(tmp_path_factory: pytest.TempPathFactory) -> float:
    """Seconds in which three nodes answer at once, whoever else uses the machine.

    On two cores with a load of 15 one alone took 0.7 to 1 s.
    """
    study = study_of(tmp_path_factory.mktemp("enough"))
    ready = make_ready(study, lambda _: None)["a"]
    with LocalStation() as host:
        began = time.monotonic()
        gather_arm(study, ready, host)
        return max(3.0, 20 * (time.monotonic() - began))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("odd", "said"),
    [
        ("sleep 300", "no answer within"),
        ('"$@" | sed 20d', "line 20 of its answer is missing"),
        ("head -c 200000 /dev/urandom", "no facts"),
        # What comes after too much is not read, so the others answer first.
        ('sleep 1; head -c 67108864 /dev/zero | tr "\\000" x', "more than"),
    ],
)
def test_a_node_that_does_not_answer_costs_no_other_its_facts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, enough_s: float, odd: str, said: str
) -> None:
    monkeypatch.setattr(gathering, "LIMIT_S", enough_s)
    monkeypatch.setattr(gathering, "NODE_S", 0.0)
    (first, second, third), launches = several(tmp_path, odd, monkeypatch)
    assert ERROR not in first.facts
    assert ERROR not in third.facts
    assert second.facts.keys() == {ERROR, NODES}
    assert second.node == "node 2 of 3"
    assert said in second.facts[ERROR]
    assert launches <= 4


@pytest.mark.slow
@pytest.mark.parametrize("odd", ["exit 3", '"$@" | head -n 40', "echo Welcome"])
def test_a_node_that_failed_among_the_others_is_asked_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, odd: str
) -> None:
    nodes, launches = several(tmp_path, f'if [ "$count" ]; then "$@"; else {odd}; fi', monkeypatch)
    assert all(ERROR not in one.facts for one in nodes)
    assert launches >= 2


def test_nodes_that_all_fail_are_not_asked_alone_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathering, "ALONE_S", 0.0)
    (tmp_path / "steady.py").touch()
    study = study_of(tmp_path)
    monkeypatch.setattr(gathering, "nodes_of", lambda *_: 3)
    ready = make_ready(study, lambda _: None)["a"]
    with LocalStation() as host:
        through = Through(host, answering(tmp_path, "exit 7"))
        nodes = gather_arm(study, ready, through)
    assert through.launches == 1
    assert [one.facts[ERROR] for one in nodes] == ["exit code 7"] * 3
    assert [one.node for one in nodes] == [f"node {i} of 3" for i in (1, 2, 3)]


@cache
def said_by(rank: int) -> bytes:
    """Return what the script of the ranks prints around an answer with awkward lines."""
    facts = f"i=0; while [ $i -lt 9 ]; do echo; echo 'n{rank}|{rank}.0.3'; printf '%01999d\n' 7; "
    facts += "i=$((i + 1)); done"
    done = subprocess.run(
        ["sh", "-c", asking.ANSWER, "sh", "ma", "rk", "all", "", facts, "true", "false"],
        capture_output=True,
        env={**os.environ, "PARIBUS_RANK": str(rank)},
        check=True,
    )
    return done.stdout


@given(st.integers(), st.sampled_from((1, 10, 60)))
def test_answers_that_run_into_each_other_are_whole_or_missing(seed: int, often: int) -> None:
    """Cut anywhere, and dealt in any order: no text is ever read that its node did not print."""
    dealt = random.Random(seed)
    left = {rank: said_by(rank) for rank in range(3)}
    stream = b"Last login: today"
    while any(left.values()):
        rank = dealt.choice([rank for rank, rest in left.items() if rest])
        # Mostly whole lines, or nothing would ever be whole.
        size = dealt.choice((1, 100, 1000, 4095)) if dealt.randrange(often) == 0 else 0
        size = size or left[rank].index(b"\n") + 1
        stream, left[rank] = stream + left[rank][:size], left[rank][size:]
    texts, wrong = asking.answers_of(stream, "mark", 2)
    assert texts.keys() | wrong.keys() <= {0, 1, 2}
    for rank, answers in texts.items():
        one = "".join(f"\nn{rank}|{rank}.0.3\n{7:01999d}\n" for _ in range(9))
        assert answers == (one, one)


def test_an_answer_that_nobody_broke_into_is_whole() -> None:
    texts, wrong = asking.answers_of(b"$ " + said_by(0) + b"noise\n" + said_by(1), "mark", 2)
    assert (sorted(texts), wrong) == ([0, 1], {})
    assert asking.answers_of(said_by(0).replace(b"\n", b"\r\n"), "mark", 2)[0] == {0: texts[0]}
    stopped = {0: "its answer stops after 0 lines"}
    assert asking.answers_of(said_by(0), "mark", 3) == ({}, stopped)


def test_a_name_that_only_one_arm_has_by_another_way_is_still_reported(tmp_path: Path) -> None:
    arms = '[arms.a]\nenv = { FACTOR = "quick" }\n[arms.b]\n'
    study = study_of(tmp_path, arms=arms)
    ready = make_ready(study, lambda _: None)
    with LocalStation() as host:
        (plain,) = gather_arm(study, ready["b"], host)
        through = Through(host, answering(tmp_path, 'export NEITHER=1 FACTOR=2; "$@"'))
        (other,) = gather_arm(study, ready["b"], through)
        through = Through(host, answering(tmp_path, 'export FACTOR=2; "$@"'))
        (same,) = gather_arm(study, ready["b"], through)
    assert plain.facts["env.unlisted"] != other.facts["env.unlisted"]
    assert plain.facts["env.unlisted"] == same.facts["env.unlisted"]


@pytest.mark.installed
def test_containers_that_stand_for_hosts_are_all_asked(tmp_path: Path) -> None:
    host = f'transport = "tcp"\nmpi = "{Path(any_mpi().mpicxx).parent.parent}"'
    bridged = f'{host}\ncontainer = {{ engine = "namespace" }}\nranks_per_host = 1'
    study = load_study(write_arms(tmp_path, host, bridged, factor="network"))
    try:
        ready = make_ready(study, lambda _: None)
    except Exception as error:
        pytest.skip(f"containers do not work here: {error}")
    nodes = of_nodes(gathered(study, ready))
    assert sorted(nodes["b"]) == ["c1", "c2"]
    assert nodes["b"]["c1"]["net.ethernet.0.mtu"] == 1500
    assert {"ipc", "net", "pid"} <= set(nodes["b"]["c2"]["layers.namespaces"])
    assert "lib.libc.so.build_id" in nodes["a"][os.uname().nodename]


def test_a_change_that_was_undone_is_reported_and_each_fact_once(tmp_path: Path) -> None:
    study = study_of(tmp_path)
    half = {ERROR: "node 1 of 1: stopped", "load.running": 1}
    drivers = ("550", "551", "552", None, "550")
    several = [
        Gathered("a", "n1", float(at), {"gpu.0.driver": driver, "load.running": at})
        if driver
        else Gathered("a", "n1", float(at), half)
        for at, driver in enumerate(drivers)
    ]
    (one,) = changes(several, study, ("compute",), {})
    assert (one.key, one.reference_value, one.arm_value) == ("gpu.0.driver", "550", "551")
    (said,) = changes(several, study, ("compute",), {"gpu.0.driver": "only tools were new"})
    assert (said.kind, said.reason) == ("accepted", "only tools were new")
    assert changes([several[0], several[3], several[4]], study, ("compute",), {}) == ()
    other = Gathered("a", "n1", 9.0, {ERROR: "node 1 of 1: no answer", NODES: 1})
    assert changes([several[3], other], study, ("compute",), {}) == ()


def test_a_node_that_failed_once_and_answered_later_is_known() -> None:
    silent = {ERROR: "node 2 of 2: no answer", NODES: 2}
    first, second = Gathered("a", "n1", 1.0, {"x": 1}), Gathered("a", "n2", 2.0, {"x": 1})
    failed = Gathered("a", "node 2 of 2", 1.0, silent)
    assert of_nodes([first, failed])["a"] == {"n1": {"x": 1}, "node 2 of 2": silent}
    assert of_nodes([first, failed, second])["a"] == {"n1": {"x": 1}, "n2": {"x": 1}}


def test_half_an_answer_is_an_error() -> None:
    with pytest.raises(Exception, match="facts"):
        read_answer("Last login: today\n")
