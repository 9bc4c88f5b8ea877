"""The study directory: durable, whole, never double, never mixed."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import sys
from array import array
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.core import Case, Launch, Outcome, Sample, State, StoreError
from paribus.store import SCHEMA_VERSION, Gathered, Store, read_facts, unpack
from paribus.store.rows import pack
from processes import ran


def test_facts_of_nodes_come_back_in_order(tmp_path: Path) -> None:
    first = [
        Gathered("host", "n1", 1.5, {"cpu.model": "EPYC", "cpu.governor": {"unknown": "absent"}}),
        Gathered("bridged", "c1", 2.5, {"net.0.mtu": 1500, "rank.affinity": ["0", "1"]}),
    ]
    later = [Gathered("host", "n1", 9.0, {"facts.error": "no answer"})]
    with Store(tmp_path, write=True) as store:
        assert store.gathered() == []
        store.keep_gathered(first)
        store.keep_gathered(later)
    with Store(tmp_path) as store:
        assert store.gathered() == [*first, *later]


LAUNCH = Launch(number=3, block=1, benchmark="latency", arm="host", seed=7)
SAMPLES = (
    Sample("latency", Case.of(bytes=8), (0.1, 0.2, 0.30000000000000004), batch=16),
    Sample("latency", Case.of(bytes=4096, note='a "quoted" \u2126'), (5e-324, 1.7e308)),
)


def outcome(state: State = State.OK, samples: tuple[Sample, ...] = SAMPLES) -> Outcome:
    return Outcome(state, 1e9, 0.5, 0, ("a", "b c"), samples, {"k": [1, "x"]}, "")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path, write=True) as store:
        yield store


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False)))
def test_samples_are_kept_to_the_last_bit(values: list[float]) -> None:
    assert unpack(pack(tuple(values))) == tuple(values)


def test_what_compression_makes_little_smaller_is_kept_plain() -> None:
    dice = random.Random(1)
    ticks = [dice.randrange(900, 1100) / 1000 for _ in range(500)]
    noise = [dice.lognormvariate(0, 0.05) for _ in range(500)]
    assert len(pack(ticks)) < 2400
    assert array("d", noise).tobytes() in pack(noise)
    assert unpack(pack(noise)) == tuple(noise)


def test_what_is_stored_comes_back_equal(store: Store, tmp_path: Path) -> None:
    store.append(LAUNCH, outcome())
    with Store(tmp_path) as reader:
        (found,) = reader.launches()
    assert found.launch == LAUNCH
    assert found.outcome == outcome()
    assert found.void is None


def test_a_launch_counts_at_most_once(store: Store) -> None:
    store.append(LAUNCH, outcome())
    with pytest.raises(StoreError):
        store.append(LAUNCH, outcome())
    assert len(list(store.launches())) == 1
    store.void([LAUNCH.number], "because")
    assert store.counting() == set()
    store.append(LAUNCH, outcome(State.FAILED, ()))
    everything = list(store.launches(void=True))
    assert [(s.attempt, s.void) for s in everything] == [(0, "because"), (1, None)]
    assert store.counting() == {LAUNCH.number}


def test_a_launch_that_cannot_be_stored_whole_is_not_stored(store: Store) -> None:
    twice = (SAMPLES[0], SAMPLES[0])
    with pytest.raises(StoreError):
        store.append(LAUNCH, outcome(samples=twice))
    assert list(store.launches(void=True)) == []
    store.append(LAUNCH, outcome())


def test_full_sync_and_write_ahead_log_are_on(store: Store) -> None:
    db = store._open()
    assert db.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    assert db.execute("PRAGMA synchronous").fetchone()[0] == 2


def test_a_second_writer_is_refused(store: Store, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="at work in this directory"):
        Store(tmp_path, write=True).__enter__()


def test_another_plan_is_refused(store: Store) -> None:
    store.bind_plan("a" * 64)
    store.bind_plan("a" * 64)
    with pytest.raises(StoreError, match="of plan aaaaaaaaaaaa, not bbbbbbbbbbbb"):
        store.bind_plan("b" * 64)


@pytest.mark.parametrize("write", [True, False])
def test_a_database_of_a_newer_version_is_refused(tmp_path: Path, write: bool) -> None:
    with Store(tmp_path, write=True) as store:
        store._open().execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    with pytest.raises(StoreError, match="update Paribus"):
        Store(tmp_path, write=write).__enter__()


def test_what_is_not_a_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "launches.db").write_text("not a database, by far not" * 50)
    with pytest.raises(StoreError, match="cannot be used"):
        Store(tmp_path, write=True).__enter__()
    with pytest.raises(StoreError, match="no launches are stored here"):
        Store(tmp_path / "nowhere").__enter__()


def in_mount_namespace(setup: str, directory: Path, code: str) -> list[str]:
    """Return the lines that `code` prints after `setup` (sh, $1 is the directory) mounted things.

    The namespace is this test's own, so its mounts are gone when it ends.
    """
    if os.getuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("mounting needs root and unshare")
    script = f'{setup} && exec "$2" -c "$3"'
    done = ran(
        ["unshare", "--mount", "sh", "-c", script, "sh", str(directory), sys.executable, code],
        code=0,
    )
    return done.stdout.splitlines()


def test_a_full_disk_keeps_what_was_stored(tmp_path: Path) -> None:
    code = f"""
import os
from pathlib import Path
from paribus.core.errors import StoreError
from paribus.core.model import *
from paribus.store.store import Store
directory = Path({str(tmp_path)!r})
stored = 0
with Store(directory, write=True) as store:
    try:
        for number in range(1, 1000):
            values = tuple(float.fromhex(os.urandom(7).hex()) + 1 for _ in range(4000))
            store.append(Launch(number, number, "b", "a", 0),
                         Outcome(State.OK, 0.0, 0.0, 0, (), (Sample("m", Case(), values),)))
            stored += 1
    except StoreError as error:
        print(error)
with Store(directory, write=True) as store:
    print(len(list(store.launches())) == stored > 0)
"""
    lines = in_mount_namespace('mount -t tmpfs -o size=2m none "$1"', tmp_path, code)
    assert "no space is left" in lines[0]
    assert "--resume" in lines[1]
    assert lines[-1] == "True"


def test_a_read_only_directory_can_be_read_and_not_written(tmp_path: Path) -> None:
    with Store(tmp_path, write=True) as store:
        store.append(LAUNCH, outcome())
    code = f"""
from pathlib import Path
from paribus.core.errors import StoreError
from paribus.store.store import Store
with Store(Path({str(tmp_path)!r})) as reader:
    print(len(list(reader.launches())))
try:
    Store(Path({str(tmp_path)!r}), write=True).__enter__()
except StoreError as error:
    print(error)
"""
    setup = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1"'
    lines = in_mount_namespace(setup, tmp_path, code)
    assert lines[0] == "1"
    assert "cannot write here: Read-only file system" in lines[1]
    assert "--out" in lines[2]


def test_the_database_itself_says_one_attempt_counts(tmp_path: Path) -> None:
    with Store(tmp_path, write=True) as store:
        store.append(LAUNCH, outcome())
    db = sqlite3.connect(tmp_path / "launches.db")
    with pytest.raises(sqlite3.IntegrityError):
        db.execute(
            "INSERT INTO launches SELECT NULL, number, 9, block, benchmark, arm, place, seed,"
            " state, started, wall_s, exit_code, argv, facts, error, NULL, content, 0 FROM launches"
        )
    db.close()


def test_hostile_names_stay_inside_the_logs_folder(store: Store, tmp_path: Path) -> None:
    out, err = store.log_paths(Launch(1, 0, "../../x", "a/b", 0))
    assert out.parent == err.parent == tmp_path / "logs"
    assert out.name == "0001-0-a_b-.._.._x.out"


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), 0.0, -1.0])
def test_arrays_hold_the_values_that_tuples_do(store: Store, wrong: float) -> None:
    store.append(LAUNCH, outcome())
    (whole,), (arrays,) = (list(store.launches(arrays=way)) for way in (False, True))
    for one, other in zip(whole.outcome.samples, arrays.outcome.samples, strict=True):
        assert one == other._replace(values=tuple(other.values))
        assert isinstance(other.values, array)
        with pytest.raises(ValueError, match="is not a measurement"):
            Sample(one.metric, one.case, array("d", [1.0, wrong, 2.0]))


TEXTS = st.text(st.sampled_from('a1 ,:[]{}"\\é'), max_size=8)
FACTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=3),
)


@given(st.dictionaries(TEXTS, FACTS, max_size=5))
def test_facts_come_back_as_json_gives_them(facts: dict[str, object]) -> None:
    text = json.dumps(facts)
    assert read_facts(text) == facts
    assert read_facts(json.dumps(facts, separators=(",", ":"))) == facts


@given(st.dictionaries(TEXTS, FACTS, min_size=1, max_size=3), st.data())
def test_damaged_facts_are_what_json_makes_of_them(
    facts: dict[str, object], data: st.DataObject
) -> None:
    text = json.dumps(facts)
    place = data.draw(st.integers(0, len(text) - 1))
    text = text[:place] + data.draw(TEXTS) + text[place + 1 :]
    try:
        expected = json.loads(text)
    except json.JSONDecodeError:
        with pytest.raises(json.JSONDecodeError):
            read_facts(text)
    else:
        assert read_facts(text) == expected


def test_lists_that_launches_have_in_common_are_one() -> None:
    one, other = (read_facts(json.dumps({"rank.hosts": ["a", "b"], "n": n})) for n in (1, 2))
    assert one["rank.hosts"] is other["rank.hosts"]
