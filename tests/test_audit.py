"""The audit: any difference is reported, permutations are not, the unknown is never equal."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from paribus.audit.accepted import add_accepted, in_vain, parse_accepted, read_accepted
from paribus.audit.audit import Audit, Question, audit, audit_study, between_nodes, changes, moved
from paribus.audit.classes import classify, factors
from paribus.audit.first import check, meant
from paribus.audit.values import ERROR, NODES, typical, unsteady
from paribus.cli.audit import print_audit
from paribus.core import (
    LEVEL,
    Arm,
    Facts,
    Selection,
    Settings,
    StoreError,
    Study,
    UnequalError,
    UserError,
    matches,
)
from paribus.report.unequal import print_differences
from paribus.store import Gathered, Store
from paribus.words.notices import needless
from studies import paribus, write_study
from test_classes import KEYS

STUDY = Study(
    question="Which?",
    factor="nothing",
    arms=(Arm("a"), Arm("b")),
    benchmarks=(Selection("latency", "latency", 2, {}),),
    settings=Settings(),
)
POINT = ("point to point",)
NODE: Facts = dict.fromkeys(KEYS, "same")
HELD = [key for key in KEYS if classify(key).kind in ("identical", "covaries")]
ABSENT, DENIED = {"unknown": "absent"}, {"unknown": "denied"}


def ask(
    reference: dict[str, Facts],
    arm: dict[str, Facts],
    factor: str = "nothing",
    explains: tuple[str, ...] = (),
    **options: Any,
) -> Audit:
    study = replace(STUDY, factor=factor, explains=explains)
    return audit(reference, arm, Question(study, "b", options.pop("layers", POINT), **options))


def kinds(answer: Audit) -> dict[str, str]:
    return {one.key: one.kind for one in answer.differences}


def one(facts: Facts) -> dict[str, Facts]:
    return {"n1": facts}


def test_what_is_held_equal_is_reported_and_what_varies_withholds_nothing() -> None:
    answer = ask(one(NODE), one({**NODE, **dict.fromkeys(HELD, "other")}))
    assert kinds(answer) == dict.fromkeys(HELD, "unexplained")
    assert answer.equal == frozenset(KEYS) - {*HELD}
    for difference in answer.differences:
        assert (difference.reference_value, difference.arm_value) == ("same", "other")
        assert difference.reason == classify(difference.key).reason
    varied = dict.fromkeys(set(KEYS) - set(HELD), "other")
    assert "unexplained" not in kinds(ask(one(NODE), one({**NODE, **varied}))).values()


@given(st.data())
def test_any_injected_difference_is_found_among_many_nodes(data: st.DataObject) -> None:
    key = data.draw(st.sampled_from(HELD))
    count = data.draw(st.integers(1, 6))
    odd = data.draw(st.integers(0, count - 1))
    nodes: dict[str, Facts] = {f"n{i}": NODE for i in range(count)}
    changed = {**nodes, f"n{odd}": {**NODE, key: "other"}}
    assert kinds(ask(nodes, changed)) == {key: "unexplained"}
    assert kinds(ask(changed, nodes)) == {key: "unexplained"}


@given(st.data())
def test_neither_the_order_nor_the_number_of_nodes_matters(data: st.DataObject) -> None:
    some = data.draw(st.lists(st.sampled_from(["x", "y", "z"]), min_size=1, max_size=5))
    times = data.draw(st.integers(1, 3))
    shuffled = data.draw(st.permutations(some * times))
    ours: dict[str, Facts] = {f"n{i}": {"cpu.model": v} for i, v in enumerate(some)}
    theirs: dict[str, Facts] = {f"m{i}": {"cpu.model": v} for i, v in enumerate(shuffled)}
    answer = ask(ours, theirs)
    assert answer.differences == ()
    assert answer.equal == {"cpu.model"}


def test_other_shares_of_the_same_values_differ() -> None:
    ours: dict[str, Facts] = {f"n{i}": {"cpu.model": v} for i, v in enumerate("xxxy")}
    theirs: dict[str, Facts] = {f"n{i}": {"cpu.model": v} for i, v in enumerate("xyyy")}
    (difference,) = ask(ours, theirs).differences
    assert difference.kind == "unexplained"
    assert difference.reference_value == "x (on 3 of 4 nodes); y (on 1 of 4 nodes)"


@pytest.mark.parametrize("why", ["denied", "timed out", "unsupported", "cut", "redacted"])
@pytest.mark.parametrize("other", ["known", {"unknown": "denied"}, ABSENT, None])
def test_what_could_not_be_read_is_neither_equal_nor_different(why: str, other: Any) -> None:
    ours, theirs = {"cpu.model": {"unknown": why}}, {} if other is None else {"cpu.model": other}
    for pair in ((ours, theirs), (theirs, ours), (ours, ours)):
        answer = ask(one(pair[0]), one(pair[1]))
        assert kinds(answer) == {"cpu.model": "unknown"}
        assert answer.equal == frozenset()


def test_absent_everywhere_is_unknown_and_absent_on_one_side_differs() -> None:
    assert kinds(ask(one({"cpu.model": ABSENT}), one({"cpu.model": ABSENT}))) == {
        "cpu.model": "unknown"
    }
    for nothing in ({}, {"env.OMP_NUM_THREADS": ABSENT}):
        answer = ask(one(nothing), one({"env.OMP_NUM_THREADS": "4"}))
        assert kinds(answer) == {"env.OMP_NUM_THREADS": "unexplained"}
        assert answer.differences[0].reference_value == "(absent)"


def test_what_a_container_may_hide_is_unknown_where_it_is_absent() -> None:
    assert kinds(ask(one({"cgroup.cpus": "0.5"}), one({}))) == {"cgroup.cpus": "unknown"}
    assert kinds(ask(one({"cgroup.cpus": "0.5"}), one({"cgroup.cpus": "unlimited"}))) == {
        "cgroup.cpus": "unexplained"
    }


def test_a_node_that_gave_half_its_facts_makes_them_unknown_not_different() -> None:
    broken = {ERROR: "node 2 of 2: no answer within 30 s"}
    answer = ask({"n1": NODE}, {"n1": NODE, "n2": broken})
    assert set(kinds(answer).values()) == {"unknown"}
    assert answer.equal == frozenset()


@pytest.mark.parametrize("name", factors())
def test_a_factor_explains_its_facts_and_no_other(name: str) -> None:
    changed = {key: f"{value} changed" for key, value in NODE.items()}
    for key, kind in kinds(ask(one(NODE), one(changed), factor=name)).items():
        explains = (*factors()[name].explains, *((LEVEL,) if name != "nothing" else ()))
        mine = matches(key, explains) and key in HELD
        assert (kind == "factor") == mine, key


def test_a_study_explains_by_key_prefix_and_pattern() -> None:
    changed = {**NODE, "cpu.model": "x", "limits.memlock": 1, "net.ethernet.0.mtu": 9000}
    answer = ask(one(NODE), one(changed), explains=("cpu.model", "limits.", "net.*.mtu"))
    assert set(kinds(answer).values()) == {"factor"}


def test_what_follows_from_the_factor_is_explained_and_says_from_what() -> None:
    changed = {**NODE, "mpi.library": "MPICH", "rank.libraries": "x", "mpi.loaded": "y"}
    answer = ask(one(NODE), one(changed), factor="mpi")
    assert "unexplained" not in kinds(answer).values()
    alone = ask(one(NODE), one({**NODE, "rank.libraries": "x"}), factor="mpi")
    assert kinds(alone) == {"rank.libraries": "unexplained"}
    flags = ask(one(NODE), one({**NODE, "cpu.flags": "x"}), explains=("cpu.model",))
    assert kinds(flags) == {"cpu.flags": "unexplained"}
    both = ask(
        one(NODE), one({**NODE, "cpu.flags": "x", "cpu.model": "y"}), explains=("cpu.model",)
    )
    assert kinds(both) == {"cpu.flags": "explained", "cpu.model": "factor"}
    assert "follows from cpu.model" in [one.reason for one in both.differences]


def test_an_accepted_difference_carries_the_reason_and_no_longer_withholds() -> None:
    changed = {**NODE, "cpu.microcode": "0x2", "cpu.model": "x"}
    answer = ask(one(NODE), one(changed), accepted={"cpu.microcode": "told in the paper"})
    assert kinds(answer) == {"cpu.microcode": "accepted", "cpu.model": "unexplained"}
    (accepted,) = [one for one in answer.differences if one.kind == "accepted"]
    assert accepted.reason == "told in the paper"


@pytest.mark.parametrize(
    "option", ["cpu.model", "cpu.model=", "=why", "cpu.*=why", "cpu.=why", "net.?=why", "cpu=  "]
)
def test_accepting_takes_one_key_and_a_reason(option: str) -> None:
    with pytest.raises(UserError, match="--accept"):
        parse_accepted([option])
    assert parse_accepted(['cpu.model="a=b"']) == {"cpu.model": '"a=b"'}


def test_differences_are_ranked_by_what_is_measured() -> None:
    changed = {**NODE, "lib.libblas.so.file": "openblas", "net.ethernet.0.mtu": 9000}
    compute = ask(one(NODE), one(changed), layers=("compute",))
    assert [d.key for d in compute.differences] == ["lib.libblas.so.file", "net.ethernet.0.mtu"]
    latency = ask(one(NODE), one(changed), layers=POINT)
    assert [d.key for d in latency.differences] == ["net.ethernet.0.mtu", "lib.libblas.so.file"]
    assert [d.rank for d in latency.differences] == [3, 0]


def test_volatile_facts_are_noted_only_where_they_differ_notably() -> None:
    def answer(theirs: float) -> dict[str, str]:
        key = "load.cpu_pressure_10s"
        return kinds(ask(one({key: 1.0}), one({key: theirs})))

    assert answer(5.0) == {}
    assert answer(60.0) == {"load.cpu_pressure_10s": "noted"}


def test_medians_of_counts_are_shown_as_counts() -> None:
    ours, theirs = one({"rank.involuntary": 21304.0}), one({"rank.involuntary": 12981.5})
    (difference,) = ask(ours, theirs).differences
    assert (difference.reference_value, difference.arm_value) == ("21304", "12981.5")


def test_long_lists_are_shown_by_what_they_do_not_share() -> None:
    flags = [f"flag{i}" for i in range(100)]
    ours, theirs = one({"cpu.flags": [*flags, "avx512f"]}), one({"cpu.flags": [*flags, "sse9"]})
    (difference,) = ask(ours, theirs).differences
    assert (difference.reference_value, difference.arm_value) == ("only: avx512f", "only: sse9")


def test_search_paths_are_shown_by_what_they_do_not_share() -> None:
    base = ["/opt/software/mpi/lib", "/opt/software/blas/lib", "/opt/software/blas/lib"]
    key = "env.LD_LIBRARY_PATH"
    ours, theirs = one({key: ":".join(base)}), one({key: ":".join([*base, base[0]])})
    (difference,) = ask(ours, theirs).differences
    reported = (difference.reference_value, difference.arm_value)
    assert reported == ("nothing more", "only: /opt/software/mpi/lib")
    (difference,) = ask(ours, one({key: ":".join([*base, base[0], ""])})).differences
    assert difference.arm_value == "only: /opt/software/mpi/lib, (empty)"
    # In another order nothing is missing, so the whole paths are shown.
    (difference,) = ask(ours, one({key: ":".join(base[::-1])})).differences
    assert difference.reference_value == ":".join(base)


def test_nodes_of_one_arm_that_differ_are_noted_with_their_name() -> None:
    nodes = {f"n{i}": dict(NODE) for i in range(3)}
    nodes["n2"]["cpu.microcode"] = "0x2"
    (difference,) = between_nodes(nodes, Question(STUDY, "b", POINT))
    assert (difference.node, difference.kind, difference.arm_value) == ("n2", "noted", "0x2")


def test_what_changes_in_the_course_of_a_study_is_unexplained() -> None:
    question = Question(STUDY, "b", POINT)
    later = {**NODE, "gpu.0.driver": "551", "load.average_1min": 9, "cgroup.path": "/other"}
    (difference,) = moved(one(NODE), one(later), question)
    assert (difference.key, difference.kind) == ("gpu.0.driver", "unexplained")
    assert "while the study went on" in difference.reason
    accepted = replace(question, accepted={"gpu.0.driver": "only the string changed"})
    assert [d.kind for d in moved(one(NODE), one(later), accepted)] == ["accepted"]
    assert moved(one(NODE), {"n2": later}, question) == ()
    assert moved(one(NODE), one({**NODE, "cpu.model": DENIED}), question) == ()


def test_a_study_reports_each_difference_once_for_its_likeliest_benchmark() -> None:
    study = replace(STUDY, arms=(Arm("a"), Arm("b"), Arm("c")))
    ours, theirs = {"lib.libblas.so.file": "x"}, {"lib.libblas.so.file": "y"}
    launches = {
        label: {"a": [ours] * 3, "b": [theirs] * 3, "c": [ours]} for label in ("latency", "hpl")
    }
    layers = {"latency": "point to point", "hpl": "compute"}
    (difference,) = audit_study(study, layers, {}, launches, {}).differences
    assert (difference.arm, difference.rank) == ("b", 3)


def test_ranks_know_their_own_limits_better_than_who_looks_from_beside() -> None:
    nodes = {arm: one({"limits.memlock": 1, "os.release": "6.1"}) for arm in "ab"}
    launches = {
        "latency": {
            "a": [{"limits.memlock": 1, "os.release": "seen from outside a"}],
            "b": [{"limits.memlock": 2, "os.release": "seen from outside b"}],
        }
    }
    answer = audit_study(STUDY, {"latency": POINT[0]}, nodes, launches, {})
    assert kinds(answer) == {"limits.memlock": "unexplained"}
    assert answer.equal == {"os.release"}


@pytest.mark.parametrize(
    ("factor", "asked"),
    [("transprt", "transport"), ("containers", "container"), ("wheather", ""), ("mpi", "")],
)
def test_a_misspelt_factor_is_asked_for(factor: str, asked: str) -> None:
    assert meant(replace(STUDY, factor=factor)) == (
        f'did you mean factor = "{asked}"?' if asked else ""
    )
    if asked:
        answer = ask(one({"mpi.transport": "shm"}), one({"mpi.transport": "tcp"}), factor)
        assert f'Did you mean factor = "{asked}"? Else make' in printed(factor, answer)
        with pytest.raises(UnequalError) as refused:
            check(replace(STUDY, factor=factor), answer, anyway=False)
        assert refused.value.fix.startswith(f'did you mean factor = "{asked}"? Else make')


def test_how_a_lower_limit_of_open_files_is_given_to_all_arms() -> None:
    high, low = one({"limits.nofile": 20000}), one({"limits.nofile": 16384})
    for sides in ((high, low), (low, high)):
        answer = ask(*sides, factor="container", explains=("mpi.",))
        with pytest.raises(UnequalError) as refused:
            check(replace(STUDY, factor="container"), answer, anyway=False)
        assert refused.value.fix.startswith("`ulimit -n 16384` in this shell")


def test_nothing_is_no_factor_that_explains_differences() -> None:
    said = printed("nothing", ask(one(NODE), one(NODE)))
    assert "No unexplained differences between the arms" in said
    assert "every difference is the factor" not in said


def printed(factor: str, answer: Audit) -> str:
    text = io.StringIO()
    nodes: dict[str, dict[str, Facts]] = {"a": one(NODE), "b": one(NODE)}
    print_audit(replace(STUDY, factor=factor), nodes, answer, Console(file=text, width=300))
    return text.getvalue()


def test_a_silent_node_is_reported_by_name() -> None:
    silent: Facts = {ERROR: "no answer within 15 s", NODES: 1}
    nodes = {"a": one(NODE), "b": {"node 1 of 1": silent}}
    answer = audit_study(STUDY, {"latency": POINT[0]}, nodes, {}, {})
    reported = {d.key: d for d in answer.differences}
    assert {d.kind for d in answer.differences} == {"unknown"}
    assert reported[ERROR].arm_value == "node 1 of 1: no answer within 15 s"
    assert answer.equal == frozenset()


def test_typical_values_and_what_is_unsteady() -> None:
    launches = [{"cpu.model": "x", "rank.involuntary": [n, n]} for n in (1, 2, 90)]
    launches += [{"cpu.model": "y", "rank.involuntary": [3, 3]}]
    assert typical(launches) == {"cpu.model": "x", "rank.involuntary": 2.5}
    assert unsteady(launches) == ["cpu.model"]
    assert unsteady([{"cpu.model": "x"}, {"cpu.model": DENIED}]) == []
    assert unsteady([{"cpu.model": None}, {"cpu.model": "x"}, {"cpu.model": "x"}]) == ["cpu.model"]


@given(
    st.dictionaries(
        st.sampled_from(KEYS),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
            lambda inner: (
                st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=2)
            ),
            max_leaves=5,
        ),
        max_size=5,
    )
)
def test_values_of_any_form_can_be_compared_and_shown(facts: dict[str, Any]) -> None:
    facts = json.loads(json.dumps(facts))
    answer = ask(one(NODE), one(facts))
    assert all(isinstance(one.arm_value, str) for one in answer.differences)
    assert {one.key for one in answer.differences} | answer.equal <= set(KEYS)


def test_a_pattern_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    study = write_study(tmp_path)
    done = paribus(
        "run", study, "--out", "out", "--accept", "cpu.*=all of it", cwd=tmp_path, code=2
    )
    assert "full key" in done.stderr
    assert not (tmp_path / "out").exists()


def test_accepting_what_does_not_differ_is_reported() -> None:
    differing, equal = {"cpu.microcode", "os.release"}, {"cpu.model"}
    assert in_vain(["os.release"], differing, equal) == []
    unused = in_vain(["cpu.microcod", "cpu.model", "os.release"], differing, equal)
    assert needless(unused) == (
        "cpu.microcod is not a fact of these arms (did you mean cpu.microcode?);"
        " cpu.model is equal in all arms"
    )


def test_what_was_accepted_stays_with_the_directory(tmp_path: Path) -> None:
    assert read_accepted(tmp_path) == {}
    assert add_accepted(tmp_path, {"cpu.model": "one"}) == {"cpu.model": "one"}
    assert add_accepted(tmp_path, {"os.release": "two"}) == {
        "cpu.model": "one",
        "os.release": "two",
    }
    assert read_accepted(tmp_path) == {"cpu.model": "one", "os.release": "two"}
    (tmp_path / "accepted.json").write_text("[1]")
    with pytest.raises(StoreError, match="reasons"):
        read_accepted(tmp_path)


def test_a_study_file_and_its_directory_give_the_same_answer(tmp_path: Path) -> None:
    arms = '[arms.a]\n[arms.b]\nenv = { OMP_NUM_THREADS = "3" }\n'
    study = write_study(tmp_path, arms=arms, factor="nothing", plan="blocks = 8")
    before = paribus("audit", study, cwd=tmp_path)
    done = paribus("run", study, "--out", "out", "--anyway", cwd=tmp_path)
    after = paribus("audit", "out", cwd=tmp_path)
    for answer in (before, done, after):
        assert answer.returncode == 3, answer.stdout + answer.stderr
        assert "UNEXPLAINED: 1" in answer.stdout
        assert "env.OMP_NUM_THREADS: (absent) -> 3" in answer.stdout
    given = paribus(
        "audit", "out", "--accept", "env.OMP_NUM_THREADS=one thread", cwd=tmp_path, code=0
    )
    assert "reason given: one thread" in given.stdout


def test_a_reference_that_changed_withholds_every_verdict(tmp_path: Path) -> None:
    study = write_study(tmp_path, plan="blocks = 8", factor="nothing")
    paribus("run", study, "--out", "out", cwd=tmp_path, code=0)
    with Store(tmp_path / "out", write=True) as store:
        first = next(one for one in store.gathered() if one.arm == "a")
        store.keep_gathered([replace(first, facts={**first.facts, "os.release": "another"})])
    assert paribus("audit", "out", cwd=tmp_path).returncode == 3
    again = paribus("report", "out", cwd=tmp_path, code=3)
    assert "os.release" in again.stdout
    assert "withheld" in again.stdout


def test_nodes_that_differ_alike_are_one_line_whose_names_fold() -> None:
    nodes = {f"n{number}": {"cpu.microcode": "0x1"} for number in range(1, 1001)}
    nodes |= {f"n{number}": {"cpu.microcode": "0x2"} for number in range(1, 400)}
    (difference,) = between_nodes(nodes, Question(STUDY, "b", POINT))
    assert difference.node == "n[1-399]"


def test_hosts_of_many_ranks_fold() -> None:
    ours = one({"rank.hosts": [f"old{rank // 2}" for rank in range(2000)]})
    theirs = one({"rank.hosts": [f"new{rank}" for rank in range(1000)]})
    (difference,) = ask(ours, theirs).differences
    assert difference.reference_value == "old[0-999] (2,000 ranks)"
    assert difference.arm_value == "new[0-999]"


def test_a_transport_that_follows_the_wiring_is_noted_until_every_arm_sets_it() -> None:
    study = replace(STUDY, factor="pcie_topology")
    nodes = {"a": one(NODE), "b": one(NODE)}
    answer = audit_study(study, {}, nodes, {}, {})
    (noted,) = answer.differences
    assert (noted.key, noted.kind, noted.arm) == ("env.NCCL_P2P_LEVEL", "noted", "b")
    assert 'env = { NCCL_P2P_LEVEL = "SYS" }' in noted.reason
    said = io.StringIO()
    print_differences(answer.differences, "", Console(file=said, width=300))
    assert "env.NCCL_P2P_LEVEL: (absent) in all arms; NCCL chooses" in said.getvalue()
    pinned = tuple(replace(arm, env={"NCCL_P2P_LEVEL": "SYS"}) for arm in study.arms)
    assert audit_study(replace(study, arms=pinned), {}, nodes, {}, {}).differences == ()
    site = {"env.NCCL_P2P_LEVEL": "SYS", **NODE}
    assert audit_study(study, {}, {"a": one(site), "b": one(site)}, {}, {}).differences == ()


def test_nodes_without_facts_fold_by_the_reason() -> None:
    silent = {f"node {number} of 900": {ERROR: "no answer", NODES: 900} for number in range(2, 901)}
    nodes: dict[str, dict[str, Facts]] = {"a": {"n1": {}, **silent}, "b": {"n1": {}}}
    (difference,) = audit_study(STUDY, {}, nodes, {}, {}).differences
    assert difference.node == "node [2-900] of 900"
    assert difference.arm_value == "node [2-900] of 900: no answer"


def test_nodes_that_changed_alike_fold() -> None:
    gathered = [
        Gathered("b", f"n{number}", at, {"cpu.governor": governor})
        for at, governor in ((1.0, "performance"), (2.0, "powersave"))
        for number in range(1, 201)
    ]
    (difference,) = changes(gathered, STUDY, POINT, {})
    assert (difference.key, difference.node) == ("cpu.governor", "n[1-200]")


def test_a_long_nodeset_is_cut_and_counted() -> None:
    nodes = {f"n{number}": {"cpu.microcode": f"{number % 3 // 2}"} for number in range(900)}
    differences = between_nodes(nodes, Question(STUDY, "b", POINT))
    text = io.StringIO()
    print_differences(differences, "", Console(file=text, width=160))
    assert "cpu.microcode: 1 on n[2,5,8," in text.getvalue()
    assert " 0 on the other nodes (b)" in " ".join(text.getvalue().split())
    assert "... (300 nodes), 0 on" in " ".join(text.getvalue().split())
