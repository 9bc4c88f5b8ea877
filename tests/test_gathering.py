"""Facts from inside the arms, on real launches: every node, bounded in time and size, named."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from mpis import any_mpi
from paribus.audit.audit import ERROR, NODES
from paribus.host import LocalHost
from paribus.judgement import Difference
from paribus.model import Study
from paribus.store import Gathered
from paribus.study import gathering
from paribus.study.arms import Ready, make_ready
from paribus.study.gathering import asked, changes, gather, gather_arm, of_nodes, read_answer
from paribus.study.load import load_study
from processes import gone
from studies import write_study


def study_of(folder: Path, **options: str) -> Study:
    return load_study(write_study(folder, **options))


def gathered(study: Study, ready: dict[str, Ready] | None = None) -> list[Gathered]:
    ready = ready or make_ready(study, lambda _: None)
    with LocalHost() as host:
        return gather(study, ready, host, lambda _: None)


def answering(folder: Path, text: str) -> str:
    """Return a launcher of our own making that does what `text` says in place of launching."""
    path = folder / "launcher"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def error_of(folder: Path, text: str) -> str:
    """Return what is told of an arm whose launcher does what `text` says."""
    study = study_of(folder)
    ready = make_ready(study, lambda _: None)["a"]
    from dataclasses import replace

    from paribus.model import Command, Completed

    launcher = answering(folder, text)

    class Through:
        def __init__(self, host: LocalHost) -> None:
            self.host = host

        def run(self, command: Command, **options: object) -> Completed:
            argv = (launcher, *command.argv)
            return self.host.run(replace(command, argv=argv), **options)  # type: ignore[arg-type]

    with LocalHost() as host:
        (one,) = gather_arm(study, ready, Through(host))
    assert one.facts.keys() == {ERROR, NODES}
    return str(one.facts[ERROR])


def test_every_arm_answers_from_inside(tmp_path: Path) -> None:
    arms = '[arms.a]\n[arms.b]\nenv = { OMP_NUM_THREADS = "3", SECRET_THING = "xyzzy" }\n'
    nodes = of_nodes(gathered(study_of(tmp_path, arms=arms)))
    assert nodes.keys() == {"a", "b"}
    ((name, facts),) = nodes["b"].items()
    assert name == os.uname().nodename
    assert facts["os.release"] == os.uname().release
    assert facts["env.OMP_NUM_THREADS"] == "3"
    assert "env.OMP_NUM_THREADS" not in nodes["a"][name]
    assert "xyzzy" not in str(facts)


def test_arms_are_switched_and_switched_back_and_it_is_said(tmp_path: Path) -> None:
    mark = tmp_path / "switched"
    arms = f'[arms.a]\n[arms.b]\nbefore = "touch {mark}"\nafter = "rm {mark}"\n'
    study = study_of(tmp_path, arms=arms)
    said: list[str] = []
    with LocalHost() as host:
        gather(study, make_ready(study, said.append), host, said.append)
    assert any("touch" in line for line in said)
    assert not mark.exists()


def test_what_the_study_asks_for_is_known_before_the_first_launch(tmp_path: Path) -> None:
    study = study_of(tmp_path, arms='[arms.a]\n[arms.b]\nenv = { FACTOR = "slow" }\n')
    facts = asked(study, make_ready(study, lambda _: None))["steady"]
    assert "env.FACTOR" not in facts["a"][0]
    assert facts["b"][0]["env.FACTOR"].startswith("(hash")


def test_a_banner_before_the_facts_does_not_matter(tmp_path: Path) -> None:
    study = study_of(tmp_path)
    ready = make_ready(study, lambda _: None)["a"]
    with LocalHost() as host:
        (plain,) = gather_arm(study, ready, host)
    assert len(plain.facts) > 100


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("exit 0", "no answer"),
        ("echo Welcome to this cluster", "no facts in what the node printed"),
        ("echo 'out of space' >&2; exit 7", "exit code 7: out of space"),
        ('"$@" | head -n 40', "stops after"),
        ('"$@" | sed 20d', "line 20 of its answer is missing"),
        ("head -c 200000 /dev/urandom; exit 0", "no facts"),
        ('head -c 67108864 /dev/zero | tr "\\000" x', "more than"),
    ],
)
def test_a_node_that_does_not_answer_is_named_with_the_reason(
    tmp_path: Path, text: str, said: str
) -> None:
    error = error_of(tmp_path, text)
    assert error.startswith("node 1 of 1: ")
    assert said in error


def test_a_node_that_hangs_is_ended_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathering, "LIMIT_S", 1.0)
    mark = f"hangs-{os.getpid()}"
    assert "no answer within 1 s" in error_of(tmp_path, f"sh -c 'sleep 300; : {mark}'")
    assert gone(mark)


def test_containers_that_stand_for_hosts_are_asked_one_by_one(tmp_path: Path) -> None:
    mpi = any_mpi()
    path = tmp_path / "study.toml"
    path.write_text(
        'question = "?"\nfactor = "network"\n[arms.host]\ntransport = "tcp"\n'
        f'mpi = "{Path(mpi.mpicxx).parent.parent}"\n'
        f'[arms.bridged]\ntransport = "tcp"\nmpi = "{Path(mpi.mpicxx).parent.parent}"\n'
        'container = { engine = "namespace" }\n[[benchmarks]]\nname = "latency"\n'
    )
    study = load_study(path)
    try:
        ready = make_ready(study, lambda _: None)
    except Exception as error:
        pytest.skip(f"containers do not work here: {error}")
    nodes = of_nodes(gathered(study, ready))
    assert sorted(nodes["bridged"]) == ["c1", "c2"]
    assert nodes["bridged"]["c1"]["net.ethernet.0.mtu"] == 1500
    assert {"ipc", "net", "pid"} <= set(nodes["bridged"]["c2"]["layers.namespaces"])
    assert "lib.libc.so.build_id" in nodes["host"][os.uname().nodename]


def test_changes_are_told_from_the_first_to_the_last(tmp_path: Path) -> None:
    study = study_of(tmp_path)
    several = [
        Gathered("a", "n1", 1.0, {"gpu.0.driver": "550"}),
        Gathered("b", "n1", 1.0, {"gpu.0.driver": "550"}),
        Gathered("a", "n1", 2.0, {"gpu.0.driver": "551"}),
        Gathered("b", "n1", 2.0, {"gpu.0.driver": "550"}),
    ]
    (one,) = changes(several, study, ("compute",), {})
    assert isinstance(one, Difference)
    assert (one.arm, one.key, one.kind, one.node) == ("a", "gpu.0.driver", "unexplained", "n1")


def test_a_node_that_failed_once_and_answered_later_is_known() -> None:
    silent = {ERROR: "node 2 of 2: no answer", NODES: 2}
    first, second = Gathered("a", "n1", 1.0, {"x": 1}), Gathered("a", "n2", 2.0, {"x": 1})
    failed = Gathered("a", "node 2 of 2", 1.0, silent)
    assert of_nodes([first, failed])["a"] == {"n1": {"x": 1}, "node 2 of 2": silent}
    assert of_nodes([first, failed, second])["a"] == {"n1": {"x": 1}, "n2": {"x": 1}}


def test_half_an_answer_is_an_error() -> None:
    with pytest.raises(Exception, match="facts"):
        read_answer("Last login: today\n")
