"""A damaged launches.db is refused with its cause, or salvaged with what is lost; never misread."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
from collections import Counter
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from fuzz_store import BAD, damaged, damages, figures, make_store
from paribus.__main__ import main
from paribus.core import State, StoreError
from paribus.judge.evidence import launch_seconds
from paribus.plan import read_plan
from paribus.store import Store
from paribus.store.damage import passed_over
from paribus.web.rendering import compared, rendered


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stores")
    make_store(folder / "closed", folder / "killed")
    return folder


@pytest.fixture
def closed(stores: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(stores / "closed", tmp_path / "out"))


@pytest.fixture
def killed(stores: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(stores / "killed", tmp_path / "out"))


def hit(directory: Path, text: bytes, *, last: bool = False) -> None:
    """Flip a bit in the first or last `text` of the database."""
    path = directory / "launches.db"
    data = bytearray(path.read_bytes())
    at = data.rfind(text) if last else data.find(text)
    assert at >= 0
    data[at] ^= 1
    path.write_bytes(bytes(data))


@pytest.mark.parametrize(("name", "step"), [("closed", 1200), ("killed", 8000)])
def test_damage_is_refused_or_reported_and_changes_no_figure(
    stores: Path, name: str, step: int
) -> None:
    """A sample of what `python tests/fuzz_store.py` does at every byte."""
    found = damaged(stores / name, list(damages(stores / name, step)), salvage=True)
    outcomes = Counter[str]()
    for (_, _, _, outcome), number in found.items():
        outcomes[outcome] += number
    assert outcomes.total() >= 150
    assert not [key for key in found if key[-1] in BAD]
    assert outcomes["refused"] > 20
    assert outcomes["named"] > 20


def test_what_a_kill_leaves_is_whole(stores: Path) -> None:
    assert figures(stores / "killed") == figures(stores / "closed")
    assert (stores / "killed" / "launches.db-wal").stat().st_size > 0


def test_report_names_the_row_and_salvage_what_is_lost(
    closed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Store(closed) as store:
        rows = list(store.launches(void=True))
    (row,) = (i for i, one in enumerate(rows, 1) if one.launch.number == 5)
    hit(closed, b"y" * 2000)
    before = (closed / "launches.db").read_bytes()
    assert main(["report", str(closed)]) == 2
    said = capsys.readouterr().err
    assert f"damaged: row {row} of launches" in said
    assert "--salvage" in said
    assert main(["report", str(closed), "--salvage"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "launches.db is damaged" in said
    assert f"1 launch of {len(rows)} (number 5 of the plan)" in said
    assert (closed / "launches.db").read_bytes() == before
    notice = json.loads((closed / "verdict.json").read_text())["notices"][0]
    assert notice["name"] == "launches lost"
    assert notice["figures"]["launches"] == [5]
    assert notice["figures"]["whole"] == len(rows) - 1


def test_verdicts_are_withheld_where_facts_of_nodes_are_lost(
    closed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hit(closed, b"long " * 100)
    assert main(["report", str(closed), "--salvage"]) == 3
    assert "facts of nodes (row 1)" in " ".join(capsys.readouterr().out.split())


def test_reliability_is_not_judged_by_what_is_left(tmp_path: Path) -> None:
    make_store(tmp_path / "good", tmp_path / "killed")
    with Store(tmp_path / "good") as store:
        launches = list(store.launches())
    (tmp_path / "out").mkdir()
    shutil.copy(tmp_path / "good" / "plan.json", tmp_path / "out")
    with Store(tmp_path / "out", write=True) as store:
        store.bind_plan(read_plan(tmp_path / "out").sha256)
        for one in launches:
            bad = replace(one.outcome, state=State.FAILED, samples=(), error="constructed")
            store.append(one.launch, bad if one.launch.arm == "b" else one.outcome)
    assert figures(tmp_path / "out")["headlines"][0]["verdict"]["word"] == "reliability differs"
    hit(tmp_path / "out", b"y" * 2000)
    word = figures(tmp_path / "out", salvage=True)["headlines"][0]["verdict"]
    assert word["word"] == "withheld"
    assert "launches are lost" in word["reason"]


def test_a_lost_write_ahead_log_or_an_older_copy_is_missed(killed: Path, stores: Path) -> None:
    (killed / "launches.db-wal").unlink()
    for write in (False, True):
        with pytest.raises(StoreError, match=r"damaged|schema version 0"):
            list(read(killed, write=write))
    shutil.copy(stores / "closed" / "launches.db", killed)
    assert len(list(read(killed))) == 28
    with Store(killed, write=True) as store:
        store.void([1], "one more")
        count = (killed / "launches.count").read_bytes()
    shutil.copy(stores / "closed" / "launches.db", killed)
    (killed / "launches.count").write_bytes(count)
    with pytest.raises(StoreError, match="holds 2 launches that do not count, but once held 3"):
        list(read(killed))


def read(directory: Path, *, write: bool = False) -> list[int]:
    with Store(directory, write=write) as store:
        return [one.launch.number for one in store.launches(void=True)]


def test_what_is_damaged_is_not_continued(closed: Path) -> None:
    hit(closed, b"y" * 2000)
    with pytest.raises(StoreError, match="damaged: row 5 of launches") as refused:
        Store(closed, write=True).__enter__()
    assert "--salvage" in refused.value.fix


def test_a_damaged_index_is_not_continued_and_salvaged_whole(closed: Path) -> None:
    db = sqlite3.connect(closed / "launches.db")
    (page,) = db.execute(
        "SELECT rootpage FROM sqlite_master WHERE name = 'sqlite_autoindex_samples_1'"
    ).fetchone()
    (size,) = db.execute("PRAGMA page_size").fetchone()
    db.close()
    data = bytearray((closed / "launches.db").read_bytes())
    data[(page - 1) * size : page * size] = bytes(size)
    (closed / "launches.db").write_bytes(bytes(data))
    with pytest.raises(StoreError, match="damaged"):
        Store(closed, write=True).__enter__()
    with Store(closed, salvage=True) as store:
        assert len(list(store.launches(void=True))) == 28
        assert not store.lost


def test_a_store_without_checksums_is_reported_on_and_not_continued(closed: Path) -> None:
    before = figures(closed)
    db = sqlite3.connect(closed / "launches.db")
    db.executescript(
        "ALTER TABLE launches DROP COLUMN content; ALTER TABLE launches DROP COLUMN checksum;"
        "ALTER TABLE gathered DROP COLUMN checksum; PRAGMA user_version = 3;"
    )
    db.close()
    (closed / "launches.count").unlink()
    assert figures(closed) == before
    with pytest.raises(StoreError, match="this Paribus writes version 4") as refused:
        Store(closed, write=True).__enter__()
    assert "the Paribus that began it" in refused.value.fix


def test_a_version_that_has_no_checksums_is_not_believed_where_there_are_some(
    closed: Path,
) -> None:
    db = sqlite3.connect(closed / "launches.db")
    db.execute("PRAGMA user_version = 3")
    db.close()
    with pytest.raises(StoreError, match="damaged: its beginning"):
        Store(closed).__enter__()


def test_the_database_of_another_study_is_refused(closed: Path) -> None:
    with Store(closed, write=True) as store:
        store._open().execute("UPDATE meta SET value = 'another' WHERE key = 'plan'")
    assert main(["report", str(closed)]) == 2


def test_a_count_that_is_behind_or_unreadable_says_nothing(closed: Path) -> None:
    for text in ("", "{", '{"launches": 900, "void": 0, "gathered": 0, "checksum": 1}', "[1]"):
        (closed / "launches.count").write_text(text)
        assert len(read(closed)) == 28
    (closed / "launches.count").unlink()
    assert len(read(closed, write=True)) == 28
    assert json.loads((closed / "launches.count").read_text())["launches"] == 28


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
FOREIGN = {
    "view": f"ALTER TABLE launches RENAME TO was; CREATE VIEW launches AS {ENDLESS}"
    " SELECT was.* FROM n JOIN was ON was.id = -n.i",
    "view of another name": f"CREATE VIEW other AS {ENDLESS} SELECT i FROM n",
    "trigger": "CREATE TRIGGER t AFTER INSERT ON launches BEGIN INSERT INTO meta SELECT i, i FROM"
    " launches AS l, meta AS m, (SELECT 1 AS i); END",
    "virtual table": "PRAGMA writable_schema = 1; INSERT INTO sqlite_master VALUES"
    " ('table', 'other', 'other', 0, 'CREATE VIRTUAL TABLE other USING any')",
    "column": "ALTER TABLE launches ADD COLUMN more AS (hex(zeroblob(9)))",
}


@pytest.mark.parametrize("definition", FOREIGN.values(), ids=FOREIGN)
def test_what_computes_is_refused_before_anything_is_read_from_it(
    closed: Path, definition: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """By every verb that reads launches.db: an endless view never ends, and hears no signal."""
    with closing(sqlite3.connect(closed / "launches.db")) as db:
        db.executescript(definition)
    out = str(closed)
    for words in (
        ["report", out],
        ["report", out, "--salvage"],
        ["export", out, "--to", "csv"],
        ["audit", out],
        ["compare", out],
        ["compare", out, str(shutil.copytree(closed, closed.with_name("copy")))],
        ["pack", out, "--scrub"],
    ):
        assert main(words) == 2, words
        assert "whoever reads it computes it anew" in capsys.readouterr().err, words
    with pytest.raises(StoreError, match="computes it anew"), Store(closed, write=True):
        pass
    assert "computes it anew" in rendered(closed, measured=True).error
    assert "computes it anew" in compared({closed: "", closed.with_name("copy"): ""}).error
    assert launch_seconds(closed.parent) == {}


def test_a_statement_ends_by_a_signal(closed: Path) -> None:
    """Also where what is damaged would be skipped."""
    old = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        for context in (nullcontext(), passed_over()):
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            with Store(closed) as store, pytest.raises(KeyboardInterrupt), context:
                store.ask(f"{ENDLESS} SELECT sum(i) FROM n")
    finally:
        signal.signal(signal.SIGALRM, old)


def test_a_statement_ends_in_time(closed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paribus.store.bounded.MOST_S", 0.2)
    with Store(closed) as store:
        with pytest.raises(StoreError, match=r"takes more than 0\.2 s"):
            store.ask(f"{ENDLESS} SELECT sum(i) FROM n")
        assert len(list(store.launches())) == len(list(store.launches(samples=False))) > 0
