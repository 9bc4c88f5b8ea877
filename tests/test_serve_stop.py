"""Stop in the browser: of a study that a script started in the background it must end too."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from browser import PROGRAM
from paribus.core import UserError
from paribus.launch.background import interrupt
from paribus.store.watched import alive, read_holder, read_standing
from paribus.web import now
from paribus.web.found import find
from serving import served, visiting
from test_serve_foreign import HOLDS

needs_browser = pytest.mark.skipif(PROGRAM is None, reason="no Chromium on this machine")

STUDY = """\
question = "Does it end?"
factor = "nothing"
[arms.one]
[arms.other]
[[benchmarks]]
name = "command"
argv = ["sleep", "0.5"]
[plan]
blocks = 60
"""


@contextmanager
def in_the_background(tmp_path: Path) -> Iterator[Path]:
    """Start a study as scripts do, and yield its directory once launches are stored.

    A shell without job control lets what it puts behind `&` ignore SIGINT.
    """
    (tmp_path / "study.toml").write_text(STUDY)
    script = f"nohup {sys.executable} -m paribus run study.toml --out out >log 2>&1 & echo $!"
    done = subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, check=True)
    directory, pid = tmp_path / "out", int(done.stdout)
    try:
        deadline = time.monotonic() + 60
        while not ((said := read_standing(directory)) and said.doing and said.doing.block):
            assert time.monotonic() < deadline, (tmp_path / "log").read_text()
            time.sleep(0.1)
        status = Path(f"/proc/{pid}/status").read_text()
        ignored = int(status.partition("SigIgn:")[2].split()[0], 16)
        assert ignored >> (signal.SIGINT - 1) & 1
        assert ignored >> (signal.SIGHUP - 1) & 1
        yield directory
    finally:
        if alive(directory):
            os.kill(pid, signal.SIGTERM)


def is_over(directory: Path) -> bool:
    deadline = time.monotonic() + 30
    while alive(directory) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not alive(directory)


@needs_browser
def test_the_button_stops_a_study_that_ignores_ctrl_c(tmp_path: Path) -> None:
    with in_the_background(tmp_path) as directory, served(tmp_path) as one, visiting() as page:
        page.goto(one.link())
        page.get_by_role("link", name="Does it end?").click()
        page.locator("#now .blocks").wait_for()
        assert "resume" not in page.locator("main").inner_text().lower()
        page.get_by_role("button", name="Stop", exact=True).click()
        page.get_by_role("button", name="Let it run").click()
        page.locator("dialog").wait_for(state="hidden")
        assert alive(directory)
        page.get_by_role("button", name="Stop", exact=True).click()
        page.get_by_role("button", name="Stop the study").press("Enter")
        page.get_by_text("interrupted (exit code 130)").wait_for(timeout=60_000)
        assert is_over(directory)
        assert page.get_by_role("button", name="Resume").is_enabled()
        assert page.get_by_role("button", name="Stop", exact=True).count() == 0
        assert page.complaints == []


@contextmanager
def deaf(directory: Path, *ignored: str) -> Iterator[int]:
    """Yield the pid of who holds the lock of a study and ignores some signals."""
    directory.mkdir()
    names = " ".join(ignored)
    script = f'trap \'\' {names}; exec "$0" "$@"'
    argv = ["sh", "-c", script, sys.executable, "-c", HOLDS, str(directory)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "holds\n"
        try:
            yield process.pid
        finally:
            process.kill()


@pytest.mark.parametrize(("ignored", "sent"), [("INT", "TERM"), ("INT TERM", "HUP")])
def test_the_first_signal_that_is_heard_is_sent(tmp_path: Path, ignored: str, sent: str) -> None:
    with deaf(tmp_path / "s", *ignored.split()) as pid:
        interrupt(tmp_path / "s")
        _, status = os.waitpid(pid, 0)
        assert os.waitstatus_to_exitcode(status) == -getattr(signal, f"SIG{sent}")


def test_who_ignores_all_signals_is_named(tmp_path: Path) -> None:
    with deaf(tmp_path / "s", "INT", "TERM", "HUP") as pid:
        with pytest.raises(UserError, match=f"process {pid} ignores SIGINT") as refused:
            interrupt(tmp_path / "s")
        assert refused.value.fix.startswith(f"`kill -KILL {pid}`")
        assert alive(tmp_path / "s")


def state(watched: now.Watched, directory: Path) -> dict[str, Any]:
    [found] = find([directory]).found.values()
    return watched.state(found)


def test_what_goes_on_although_it_was_asked_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory, watched = tmp_path / "s", now.Watched()
    with deaf(directory, "INT"):
        [found] = find([directory]).found.values()
        watched.stopping(found)
        said = state(watched, directory)
        assert (said["running"], said["stopping"], said["text"]) == (True, True, now.STOPPING)
        monkeypatch.setattr(now, "STOP_S", 0.0)
        said = state(watched, directory)
        assert (said["running"], said["stopping"]) == (True, False)
        assert "has not stopped within" in said["text"]
        assert f"`kill -KILL {read_holder(directory).pid}`" in said["text"]


HANDING_OVER = """
from paribus.web.live import Live
from paribus.web.rendering import workers
if __name__ == "__main__":
    live = Live()
    live._workers = workers()
    live._workers.submit(bytes, 50_000_000)
    assert live._workers._result_queue._reader.poll(60)
    live.close()
"""


def test_a_report_that_is_being_handed_over_does_not_hold_up_the_end(tmp_path: Path) -> None:
    """The server waited for its rest for ever, from a worker that it had ended itself."""
    (tmp_path / "end.py").write_text(HANDING_OVER)
    done = subprocess.run([sys.executable, tmp_path / "end.py"], timeout=60, check=False)
    assert done.returncode == 0
