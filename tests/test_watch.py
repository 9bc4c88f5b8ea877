"""`paribus watch`: a study that runs elsewhere is shown until it ends, with its exit code."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from paribus.store import FILES, Board, Doing, Effect, Standing, write_standing
from paribus.store.watched import alive, read_standing
from studies import paribus, write_arms


def start(folder: Path, *words: str) -> subprocess.Popen[str]:
    argv = [sys.executable, "-m", "paribus", *words]
    pipe = subprocess.PIPE
    return subprocess.Popen(argv, cwd=folder, stdout=pipe, stderr=pipe, text=True)


def begun(folder: Path) -> subprocess.Popen[str]:
    """Return a `paribus run` that launches."""
    sleeps = 'name = "command"\nargv = ["sleep", "0.2"]'
    write_arms(folder, benchmark=sleeps, plan="blocks = 8\nseed = 1")
    running = start(folder, "run", "study.toml", "--out", "out")
    deadline = time.monotonic() + 60
    while not ((said := read_standing(folder / "out")) and said.text.startswith("blocks")):
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return running


def test_a_study_is_watched_to_its_end(tmp_path: Path) -> None:
    running = begun(tmp_path)
    with start(tmp_path, "watch", "out") as watching:
        said, errors = watching.communicate(timeout=60)
        running.communicate(timeout=60)
    assert running.returncode in (0, 3)
    assert watching.returncode == running.returncode, errors
    lines = [line.partition(" ")[2] for line in said.splitlines()]
    assert lines[0].startswith("blocks ")
    assert lines[-1] == "ended"
    assert len(set(lines)) == len(lines) > 2
    # A second watcher comes when all is over.
    with start(tmp_path, "watch", "out") as late:
        assert late.communicate(timeout=60)[0].endswith(" ended\n")
        assert late.returncode == running.returncode


def test_a_study_that_was_killed_is_not_waited_for(tmp_path: Path) -> None:
    running = begun(tmp_path)
    with start(tmp_path, "watch", "out") as watching:
        running.kill()
        running.communicate(timeout=60)
        _, errors = watching.communicate(timeout=60)
    assert watching.returncode not in (0, 3, 130)
    assert "the study has ended without saying how" in errors
    assert "--resume" in errors


def test_where_nothing_runs_there_is_nothing_to_watch(tmp_path: Path) -> None:
    done = paribus("watch", ".", cwd=tmp_path, timeout_s=60)
    assert done.returncode != 0
    assert "no study runs here" in done.stderr
    assert "no such directory" in paribus("watch", "gone", cwd=tmp_path, timeout_s=60).stderr


def test_what_is_said_is_whole_or_not_there(tmp_path: Path) -> None:
    assert read_standing(tmp_path) is None
    with Board(tmp_path) as board:
        assert alive(tmp_path)
        board.say("a")
        assert read_standing(tmp_path) == Standing("a")
        board.code = 3
    assert not alive(tmp_path)
    assert read_standing(tmp_path) == Standing("ended", 3)
    write_standing(tmp_path, Standing("b", job="7"))
    assert read_standing(tmp_path) == Standing("b", job="7")
    whole = (tmp_path / "progress.json").read_text()
    said = Standing("c", effects=(Effect("latency", "b", "slower", "why", 1.2, 1.1, None),))
    write_standing(tmp_path, replace(said, planned=20, failures=1))
    assert read_standing(tmp_path) == replace(said, planned=20, failures=1)
    doing = Doing(7, 2, "latency", "b", 1.8e9, {"latency": 1}, 8, 12.5, 3.0, None)
    write_standing(tmp_path, replace(said, doing=doing))
    assert read_standing(tmp_path) == replace(said, doing=doing)
    table = json.loads((tmp_path / "progress.json").read_text())
    for key, junk in [("blocks", [1]), ("blocks", {"a": "b"}), ("since", "now"), ("since", 1e300)]:
        odd = {**table, "doing": {**table["doing"], key: junk}}
        (tmp_path / "progress.json").write_text(json.dumps(odd))
        assert read_standing(tmp_path) is None, (key, junk)
    for end in range(len(whole) - 2):
        (tmp_path / "progress.json").write_text(whole[:end])
        assert read_standing(tmp_path) is None
    assert {path.name for path in tmp_path.iterdir()} <= set(FILES)
