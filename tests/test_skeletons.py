"""Skeletons: the calls of real programs, what a replay of them does, and what any program keeps."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import native
from mpis import each_mpi
from paribus.__main__ import main
from paribus.benchmarks import replay
from paribus.core import Mpi, Request, StudyError
from paribus.launch.machine import HERE
from paribus.launch.toolchain import kernel_path
from paribus.lenses.profiles.study import digest, read_profile
from paribus.profile.calls import (
    ANY,
    NO_PEER,
    WHOLE,
    Call,
    Loop,
    Traced,
    compressed,
    loop_of,
    match,
    select,
    skeleton,
)
from paribus.studyfile.load import load_study
from test_profiler import place, programs, setting  # noqa: F401

# --- programs that were never run -------------------------------------------------------------

TWO = ["paribus-calls 1 2 1", "2 0 1"]


def each(text: str) -> Iterator[list[list[str]]]:
    """Yield the calls of each rank of a skeleton, in their order, as words."""
    lines = iter(text.splitlines())
    _, _, ranks, groups = next(lines).split()
    for _ in range(int(groups)):
        next(lines)
    for _ in range(int(ranks)):
        calls, events = map(int, next(lines).split())
        rows = [next(lines).split() for _ in range(calls)]
        yield [rows[int(next(lines).split()[0])] for _ in range(events)]


step = st.tuples(
    st.sampled_from(["message", "late", "exchange", "sum", "uneven", "whoever", "nobody"]),
    st.integers(0, 2),
    st.integers(1, 2),
    st.integers(0, 5000),
)


def program(steps: Sequence[tuple[str, int, int, int]]) -> Traced:
    """Return what three ranks did that took these steps: kind, rank, distance, bytes."""
    ranks: list[list[Call]] = [[], [], []]

    def add(rank: int, call: Call) -> Call:
        call.began = float(len(ranks[rank]))
        call.gap = 1.23456e-6 * len(ranks[rank])
        ranks[rank].append(call)
        return call

    for kind, a, apart, size in steps:
        b = (a + apart) % 3
        if kind == "sum":
            for rank in range(3):
                add(rank, Call("allreduce", 0.0, group=0, size=size))
        elif kind == "nobody":
            add(a, Call("send", 0.0, group=0, tag=5, size=size))
            add(b, Call("recv", 0.0, group=0, tag=5, size=size))
        elif kind == "uneven":
            for rank in range(3):
                each_of = [size * (rank + 1) + other for other in range(3)]
                add(rank, Call("alltoallv", 0.0, group=0, size=size, counts=each_of))
        elif kind == "exchange":
            for rank, other in ((a, b), (b, a)):
                back = Call("recv", 0.0, group=0, peer=other, tag=1, size=9999)
                add(rank, Call("sendrecv", 0.0, group=0, peer=other, tag=1, size=size, back=back))
        elif kind == "late":
            sent = add(a, Call("send", 0.0, group=0, peer=b, tag=2, size=size, starts=True))
            got = add(b, Call("recv", 0.0, group=0, peer=a, tag=2, size=9999, starts=True))
            add(a, Call("wait", 0.0, over=[sent]))
            add(b, Call("wait", 0.0, over=[got]))
        else:
            tag = 3 if kind == "message" else 4
            add(a, Call("send", 0.0, group=0, peer=b, tag=tag, size=size))
            peer, tag = (a, 3) if kind == "message" else (ANY, 4)
            add(b, Call("recv", 0.0, group=0, peer=peer, tag=tag, size=9999))
    return Traced(ranks, [(0, 1, 2)], ["h"] * 3)


def computing(text: str) -> list[int]:
    """Return the nanoseconds that each rank computes."""
    return [sum(gaps) for gaps in gaps_of(text)]


def gaps_of(text: str) -> list[list[int]]:
    """Return the nanoseconds that each rank computes before each of its calls."""
    lines = text.splitlines()
    at = 1 + int(lines[0].split()[3])
    found = []
    for _ in range(int(lines[0].split()[2])):
        calls, events = map(int, lines[at].split())
        at += 1 + calls + events
        found.append([int(one.split()[1]) for one in lines[at - events : at]])
    return found


def check(text: str, inside: Sequence[Sequence[Call]] = ()) -> None:
    """Check that every message of a skeleton has both ends, every sum all ranks, every wait one.

    And that it computes as long as the calls `inside` the loop do.
    """
    for calls, ns in zip(inside, computing(text), strict=bool(inside)):
        assert abs(ns - 1e9 * sum(one.gap for one in calls)) <= 1
    ends: dict[tuple[int, int, str], list[list[str]]] = defaultdict(lambda: [[], []])
    sums, uneven = [], []
    for rank, words in enumerate(each(text)):
        active: set[str] = set()
        sums.append([call for call in words if call[0] == "allreduce"])
        uneven.append([list(map(int, call[4:])) for call in words if call[0] == "alltoallv"])
        for call in words:
            if call[0] in ("send", "sendrecv"):
                ends[rank, int(call[1]), call[2]][0].append(call[3])
            if call[0] == "recv":
                ends[int(call[1]), rank, call[2]][1].append(call[3])
            if call[0] == "sendrecv":
                ends[int(call[4]), rank, call[5]][1].append(call[6])
            if call[0] in ("send", "recv") and call[4] != "-1":
                assert call[4] not in active, "a request is lost"
                active.add(call[4])
            if call[0] == "wait":
                assert active.issuperset(call[2:])
                active.difference_update(call[2:])
        assert not active, "a request is never waited for"
    assert all(sent == received for sent, received in ends.values())
    assert all(one == sums[0] for one in sums)
    for counts_of in zip(*uneven, strict=True):
        for i, j in product(range(3), repeat=2):
            assert counts_of[i][j] == counts_of[j][3 + i], "sent is what is received"


@given(st.lists(step, max_size=40))
def test_a_skeleton_has_every_call_with_both_of_its_ends(
    steps: list[tuple[str, int, int, int]],
) -> None:
    traced = program(steps)
    match(traced)
    inside = select(traced, WHOLE)
    text = skeleton(traced, inside)
    check(text, inside)
    made = [[call for call in calls if call != ["wait", "0"]] for calls in each(text)]
    to_nobody = [
        sum(one.code in ("send", "recv") and one.peer == NO_PEER for one in calls)
        for calls in traced.ranks
    ]
    every = zip(traced.ranks, to_nobody, strict=True)
    assert [*map(len, made)] == [len(calls) - none for calls, none in every]
    assert replay.expanded(compressed(text)) == text


def test_as_many_tags_as_messages_are_matched_at_once_and_within_what_mpi_has() -> None:
    """A program that counts its tags up; looking through all of them took minutes."""
    number = 40_000
    sent = [Call("send", 0.0, group=0, peer=1, tag=tag, size=tag) for tag in range(number)]
    got = [Call("recv", 0.0, group=0, peer=0, tag=tag) for tag in reversed(range(number))]
    traced = Traced([sent, got], [(0, 1)], ["h", "h"])
    match(traced)
    text = skeleton(traced, select(traced, WHOLE))
    assert [one.size for one in got] == [*reversed(range(number))]
    assert max(int(call[2]) for calls in each(text) for call in calls) == 32767


@given(st.lists(step, min_size=1, max_size=40), st.integers(1, 60))
def test_of_a_long_program_the_middle_is_kept(
    steps: list[tuple[str, int, int, int]], most: int
) -> None:
    traced = program(steps)
    match(traced)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("paribus.profile.calls.MOST_EVENTS", most)
        inside = select(traced, WHOLE)
    check(skeleton(traced, inside), inside)
    assert sum(map(len, inside)) <= max(most, 3 * len(steps)) or len(steps) == 1


@given(st.lists(step, max_size=40), st.data())
def test_a_part_of_a_program_is_whole_in_itself(
    steps: list[tuple[str, int, int, int]], data: st.DataObject
) -> None:
    """Wherever each rank's record was cut, by a loop or because it was full."""
    traced = program(steps)
    traced.ranks = [calls[: data.draw(st.integers(0, len(calls)))] for calls in traced.ranks]
    match(traced)
    number = min(sum(one.code == "allreduce" for one in calls) for calls in traced.ranks)
    loop = Loop("allreduce", 1, 2) if number > 1 and data.draw(st.booleans()) else WHOLE
    inside = select(traced, loop)
    check(skeleton(traced, inside), inside)
    if loop is not WHOLE:
        sums = [[call.code for call in calls].count("allreduce") for calls in inside]
        assert sums == [1, 1, 1]


@pytest.mark.parametrize(
    "text", ["MPI_Send", "Allreduce:x-", "MPI_Allreduce:3", "", "Allreduce:1-2-3"]
)
def test_what_is_no_loop_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="MPI_Allreduce:2-100"):
        loop_of(text)


@given(st.sampled_from(["allreduce", "barrier"]), st.integers(1, 99), st.integers(0, 99))
def test_a_loop_is_written_as_it_is_read(code: str, first: int, last: int) -> None:
    loop = Loop(code, first, last)
    assert loop_of(str(loop)) == loop


# --- programs that are run --------------------------------------------------------------------


def profiled(argv: Sequence[str], name: str, *options: str) -> tuple[Any, str]:
    """Return the profile of a command, and the text of its skeleton."""
    assert main(["profile", "--name", name, *options, "--", *argv]) == 0
    found = read_profile(Path(f"{name}.profile.toml"))
    assert found.skeleton
    return found, replay.expanded(found.skeleton.calls)


def counts(text: str) -> Counter[tuple[str, ...]]:
    """Return how often each rank makes each call, without tags and requests."""
    known = {"send": (1, 3), "recv": (1, 3), "sendrecv": (1, 3, 4, 6)}
    return Counter(
        (str(rank), call[0], *(call[i] for i in known.get(call[0], range(3, len(call)))))
        for rank, calls in enumerate(each(text))
        for call in calls
        if call[0] != "wait"
    )


@pytest.mark.slow
@pytest.mark.installed
@pytest.mark.parametrize("mpi", each_mpi())
@pytest.mark.parametrize("name", ["known", "varied"])
def test_a_replay_makes_the_calls_of_the_program(
    name: str,
    mpi: Mpi,
    programs: Any,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The profile of three replays and two before them holds every call five times."""
    setting(mpi, monkeypatch)
    launcher = [mpi.mpirun, "-n", "2"]
    _, text = profiled([*launcher, str(programs(mpi, name))], name)
    made = counts(text)
    if name == "known":
        assert made["0", "send", "1", "8"] == 1000 + 1
        assert made["0", "send", "1", "64"] == 3
        assert sum(n for call, n in made.items() if call[1] == "allreduce") == 10
    else:
        assert {call[1] for call in made} == {
            *("bcast", "reduce", "allreduce", "gatherv", "scatterv", "allgatherv", "alltoallv"),
            *("scan", "allgather", "alltoall", "sendrecv", "send", "recv", "barrier"),
        }
        assert made["0", "alltoallv", "-1", "3000", "70000", "3000", "3000"] == 3
        assert made["1", "recv", "0", "2000"] == 3
    file = Path("calls.txt")
    file.write_text(text)
    kernel = str(kernel_path("replay", mpi, HERE))
    argv = ["--ranks", "2", "--application", "known", "--file", str(file), "--samples", "3"]
    _, again = profiled([*launcher, kernel, *argv], "again")
    others = counts(again)
    assert all(others[call] >= 5 * n for call, n in made.items())


@pytest.mark.slow
@pytest.mark.installed
@pytest.mark.parametrize("how", ["busy", "asleep"])
@pytest.mark.parametrize("mpi", each_mpi())
def test_what_others_compute_on_its_cores_is_no_computation_of_the_program(
    how: str,
    mpi: Mpi,
    programs: Any,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each rank computes, or sleeps, for 0.3 s between its barriers, beside others on each core."""
    setting(mpi, monkeypatch)
    burn = [sys.executable, "-c", "while True: pass"]
    others = [subprocess.Popen(burn) for _ in range(2 * len(os.sched_getaffinity(0)))]
    try:
        argv = [mpi.mpirun, "-n", "2", str(programs(mpi, "steps")), how]
        found, text = profiled(argv, "steps", "--loop", "MPI_Barrier")
    finally:
        for one in others:
            one.kill()
            one.wait()
    for ns in computing(text):
        assert 0.297e9 < ns < (0.36e9 if how == "busy" else 1e9)
    by_clock = float(Path("steps.profile.out").read_text().partition("seconds: ")[2])
    assert by_clock > 0.3
    assert 0.9 * by_clock < found.skeleton.seconds < 1.1 * by_clock + 0.1


@pytest.mark.slow
@pytest.mark.installed
@pytest.mark.parametrize("mpi", each_mpi())
def test_short_steps_are_as_long_together_as_at_once(
    mpi: Mpi,
    programs: Any,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They lost up to four fifths to a clock that the kernel renews each tick only."""
    setting(mpi, monkeypatch)
    argv = [mpi.mpirun, "-n", "2", str(programs(mpi, "steps")), "short"]
    _, text = profiled(argv, "short", "--loop", "MPI_Barrier")
    for once, *steps in gaps_of(text):  # of each gap two digits; the rest is in the next one
        assert len(steps) >= 300
        assert 0.7 < sum(steps) / once < 1.4  # other programs share caches and clocks


GOOD = "\n".join([*TWO, "1 1", "send 1 0 8 -1", "0 5", "1 1", "recv 0 0 8 -1", "0 5"]) + "\n"
DAMAGED = {
    "cut": GOOD[:30],
    "word": GOOD.replace("send", "system"),
    "peer": GOOD.replace("send 1", "send 7"),
    "slot": GOOD.replace("8 -1", "8 -9"),
    "empty": "",
}


@pytest.fixture(scope="module")
def replays(tmp_path_factory: pytest.TempPathFactory) -> dict[str, native.Ended]:
    """Return how replays of damaged skeletons ended, and of a good one."""
    folder, several = tmp_path_factory.mktemp("damaged"), {}
    for damage, text in {**DAMAGED, "none": GOOD}.items():
        (folder / damage).write_text(text)
        argv = ["--application", "x", "--file", str(folder / damage)]
        several[damage] = native.program_of("replay"), argv, 2
    return native.together(several)


@pytest.mark.installed
@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_skeleton_is_refused_by_the_replay(
    damage: str, replays: dict[str, native.Ended]
) -> None:
    assert replays["none"].returncode == 0, replays["none"].stderr
    assert replays[damage].returncode != 0
    assert "is no skeleton of calls" in replays[damage].stdout + replays[damage].stderr


def test_what_is_no_skeleton_is_refused(tmp_path: Path) -> None:
    for bad in ("", "AAAA", "%%%", compressed("something else"), compressed("x" * (65 << 20))):
        with pytest.raises(ValueError, match=r"write it in quotes|it is no skeleton of calls"):
            replay.calls(bad)


def test_a_skeleton_that_was_changed_is_refused(tmp_path: Path) -> None:
    text = compressed("paribus-calls 1 2 0\n")
    other = compressed("paribus-calls 1 2 0\n\n")
    file = tmp_path / "p.toml"
    file.write_text(
        'schema = "paribus.profile/2"\nname = "x"\ncommand = "x"\nranks = 2\n'
        "[shares]\noutside = 1\n[skeleton]\nseconds = 1\ncomputing = 0.5\n"
        f'calls = "{other}"\nsha256 = "{digest(text)}"\n'
    )
    with pytest.raises(StudyError, match="its hash differs"):
        read_profile(file)
    file.write_text(file.read_text().replace(digest(text), digest(other)))
    assert read_profile(file).skeleton


def test_a_replay_has_the_ranks_of_its_profile() -> None:
    asked = {key: one.default for key, one in replay.BENCHMARK.parameters.items()}
    asked |= {"application": "x", "calls": compressed("paribus-calls 1 4 0\n")}
    program = replay.command(Request(asked, 4))
    assert program.files == {"calls.txt": "paribus-calls 1 4 0\n"}
    with pytest.raises(Exception, match="cannot be started with 2 ranks"):
        replay.command(Request(asked, 2))


def test_a_study_may_have_nothing_but_replays(tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    head = 'question = "?"\nfactor = "transport"\nprofile = "cg"\n{}'
    arms = '[arms.a]\ntransport = "shm"\n[arms.b]\ntransport = "tcp"\n'
    for said in ("", "benchmarks = []\n"):
        study.write_text(head.format(said) + arms)
        assert [one.benchmark for one in load_study(study).benchmarks] == ["replay"]
    study.write_text((head.format("") + arms).replace('profile = "cg"\n', ""))
    with pytest.raises(StudyError, match="benchmarks: is missing"):
        load_study(study)
