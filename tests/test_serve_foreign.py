"""A study that somebody else began, and a lock that somebody else wrote: nothing is believed."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from paribus.__main__ import main
from paribus.core import (
    Address,
    Arm,
    Container,
    Hosts,
    Selection,
    Settings,
    Ssh,
    Step,
    Study,
    UserError,
)
from paribus.launch.background import interrupt
from paribus.launch.foreign import SHOWN, ForeignError, check_trusted, executed
from paribus.plan import frozen as plans
from paribus.plan import read_plan
from paribus.plan.begun import note
from paribus.store import LOCK
from paribus.studyfile.load import load_study
from processes import on_a_terminal
from serving import Served, served
from studies import command, write_study

# --- resume


def arms(mark: Path) -> str:
    return f'[arms.a]\nbefore = "touch {mark}"\nafter = "true"\n[arms.b]\n'


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """Return an unpacked study, its study file within it; `ran` appears if any of it executes."""
    directory = tmp_path / "unpacked" / "theirs.study"
    directory.mkdir(parents=True)
    study = write_study(directory, arms=arms(tmp_path / "ran"), factor="x", plan="blocks = 8")
    frozen = plans.freeze(load_study(study), plans.software())
    plans.write_plan(frozen, directory)
    return directory


def resume(directory: Path, *words: str) -> int:
    study = str(directory / "study.toml")
    return main(["run", study, "--out", str(directory), "--resume", *words])


def hash_of(directory: Path) -> str:
    return read_plan(directory).sha256


def test_resume_executes_nothing_of_a_study_that_somebody_else_began(
    theirs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in ((), ("--trust", "0" * 64), ("--trust", hash_of(theirs)[: SHOWN - 1])):
        assert resume(theirs, *words) == 2
        cause, fix = capsys.readouterr().err.splitlines()
        assert "to run it executes its author's commands" in cause
        assert fix.endswith(f"add --trust {hash_of(theirs)[:SHOWN]}")
    assert not (tmp_path / "ran").exists()
    assert {path.name for path in theirs.iterdir()} == {"plan.json", "steady.py", "study.toml"}


def test_a_terminal_shows_what_resume_would_execute(theirs: Path, tmp_path: Path) -> None:
    words = command("run", theirs / "study.toml", "--out", theirs, "--resume")
    code, shown = on_a_terminal(words, theirs)
    assert code == 2
    assert f"arms[0].before: touch {tmp_path / 'ran'}" in shown
    assert f"benchmarks[0].file: {theirs / 'steady.py'}" in shown
    assert "benchmarks[0].parameters.script: echo 2.50013" in shown
    assert not (tmp_path / "ran").exists()


def test_what_was_shown_is_what_is_executed(
    theirs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A trusted plan: neither another benchmark file nor another study file takes its place."""
    trusted = ("--trust", hash_of(theirs))
    harm = f"open({str(tmp_path / 'ran')!r}, 'w').close()\n"
    bench, study = theirs / "steady.py", theirs / "study.toml"
    reported, asked = bench.read_text(), study.read_text()
    bench.write_text(harm + reported)
    assert resume(theirs, *trusted) == 2
    assert "is not the benchmark file that the plan was frozen with" in capsys.readouterr().err
    bench.write_text(reported)
    (theirs / "other.py").write_text(harm + reported)
    study.write_text(asked.replace("steady.py", "other.py"))
    assert resume(theirs, *trusted) == 2
    build = 'build = "touch MARK"\nsource = "."\nwrap = ["{build}/x"]'
    for other in (build, 'before = "touch MARK"\nafter = "true"'):
        said = other.replace("MARK", str(tmp_path / "ran"))
        study.write_text(asked.replace("[arms.b]\n", f"[arms.b]\n{said}\n"))
        assert resume(theirs, *trusted) == 2
        assert "has changed since the plan was frozen" in capsys.readouterr().err
    assert not (tmp_path / "ran").exists()


def test_own_studies_are_known_by_plan_and_study_file(tmp_path: Path) -> None:
    """A colleague can copy the plan of a study, and put other files beside a study file."""
    own, copied = tmp_path / "own", tmp_path / "copied"
    for folder in (own, copied):
        folder.mkdir()
    study = write_study(own, arms=arms(tmp_path / "ran"), factor="x")
    plan = plans.freeze(load_study(study), plans.software())
    with pytest.raises(ForeignError):
        check_trusted(plan, study, own / "study.study", "")
    note(plan)
    check_trusted(plan, study, own / "study.study", "")
    check_trusted(plan, own / ".." / "own" / "study.toml", own / "study.study", "")
    shutil.copy(study, copied)
    (copied / "link.toml").symlink_to(study)
    for other in (copied / "study.toml", copied / "link.toml"):
        with pytest.raises(ForeignError):
            check_trusted(plan, other, copied / "study.study", "")
    with pytest.raises(ForeignError):
        check_trusted(plans.freeze(load_study(study), {}), study, own / "study.study", "")


def test_a_note_that_others_could_write_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    study = write_study(tmp_path)
    plan = plans.freeze(load_study(study), plans.software())
    before = os.umask(0o002)
    try:
        note(plan)
    finally:
        os.umask(before)
    check_trusted(plan, study, tmp_path / "study.study", "")
    state.chmod(0o777)
    with pytest.raises(ForeignError, match=f"everyone may write to {state}"):
        check_trusted(plan, study, tmp_path / "study.study", "")


def test_every_text_of_a_study_that_leads_to_code_is_shown() -> None:
    arm = Arm(
        "one",
        mpi="/two",
        hosts=Hosts((Address("three", "four"),), ssh=Ssh(config="/five"), launcher="srun"),
        container=Container("podman", image="six", options=("--seven", "eight\nnine")),
        env={"LD_PRELOAD": "/ten"},
        before=(Step(("eleven", "a b"), "twelve"),),
        after=(Step(("thirteen",)),),
        observe=(Step(("fourteen",)),),
        argv=("fifteen",),
        wrap=("sixteen",),
        build=(("seventeen", "-x"), ("eighteen",)),
        source="/nineteen",
    )
    one = Selection("label", "osu", 2, {"path": "/twenty", "argv": ["twenty-one"]}, file="/last")
    shown = executed(Study("?", "x", (arm, Arm("other")), (one,), Settings()))
    assert shown == [
        ("arms[0].name", "one"),
        ("arms[0].mpi", "/two"),
        ("arms[0].container.engine", "podman"),
        ("arms[0].container.image", "six"),
        ("arms[0].container.options", "--seven 'eight\\nnine'"),
        ("arms[0].hosts.addresses.name", "three"),
        ("arms[0].hosts.addresses.address", "four"),
        ("arms[0].hosts.ssh.config", "/five"),
        ("arms[0].hosts.launcher", "srun"),
        ("arms[0].env.LD_PRELOAD", "/ten"),
        ("arms[0].before on twelve", "eleven 'a b'"),
        ("arms[0].after", "thirteen"),
        ("arms[0].observe", "fourteen"),
        ("arms[0].argv", "fifteen"),
        ("arms[0].wrap", "sixteen"),
        ("arms[0].build", "seventeen -x"),
        ("arms[0].build", "eighteen"),
        ("arms[0].source", "/nineteen"),
        ("arms[1].name", "other"),
        ("benchmarks[0].label", "label"),
        ("benchmarks[0].benchmark", "osu"),
        ("benchmarks[0].parameters.path", "/twenty"),
        ("benchmarks[0].parameters.argv", "twenty-one"),
        ("benchmarks[0].file", "/last"),
    ]


def post(server: Served, path: str) -> tuple[int, dict[str, str]]:
    page = server.ask("/", Cookie=server.cookie).data
    token = re.search(rb'name="csrf" content="([^"]+)"', page)[1].decode()
    answer = server.ask(path, "POST", b"", Cookie=server.cookie, X_Paribus_CSRF=token)
    return answer.status, json.loads(answer.data)


def test_the_browser_shows_what_resume_would_execute_and_asks(theirs: Path, tmp_path: Path) -> None:
    with served(theirs.parent, "--share", "1 h") as one:
        guest = one.enter(one.looking.get(timeout=20))
        one.cookie = one.enter()
        table = json.loads(one.ask("/studies.json", Cookie=one.cookie).data)
        study = f"/studies/{table['studies'][0]['id']}"
        for path in (f"{study}/act/resume", f"{study}/act/resume?trust=guess"):
            status, said = post(one, path)
            assert status == 409
            assert said["see"] == "resume/"
        page = one.ask(f"{study}/resume/", Cookie=one.cookie)
        assert page.status == 200
        text = page.data.decode()
        assert f"touch {tmp_path / 'ran'}" in text
        assert str(theirs / "steady.py") in text
        assert one.ask(f"{study}/resume/", Cookie=guest).status == 403
        time.sleep(0.5)
        assert not (tmp_path / "ran").exists()
        assert re.search(r'data-to="\.\./act/resume\?trust=[0-9a-f]{64}"', text)


# --- stop

HOLDS = """
import sys, time
from pathlib import Path
from paribus.store.standing import Board
try:
    with Board(Path(sys.argv[1])):
        print("holds", flush=True)
        time.sleep(600)
except KeyboardInterrupt:
    sys.exit(7)
"""


@contextmanager
def started(*argv: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@contextmanager
def holder(directory: Path) -> Iterator[subprocess.Popen[str]]:
    directory.mkdir()
    with started(sys.executable, "-c", HOLDS, str(directory)) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "holds\n"
        yield process


def test_stop_ends_only_who_holds_the_lock(tmp_path: Path) -> None:
    """Whoever can write to a study directory can write any pid into its lock."""
    at = tmp_path / "out"
    with holder(at) as holds, started("sleep", "600") as bystander:
        lock = at / LOCK
        honest = lock.read_text()
        for pid in (str(bystander.pid), "1", "0", "-1", str(2**22 + 1), "9" * 40):
            lock.write_text(f"{pid} {socket.gethostname()}\n")
            with pytest.raises(UserError, match="no signal was sent") as refused:
                interrupt(at)
            assert "Ctrl-C" in refused.value.fix
        lock.write_text(f"{holds.pid} elsewhere\n")
        with pytest.raises(UserError, match="runs on elsewhere, as process"):
            interrupt(at)
        assert (holds.poll(), bystander.poll()) == (None, None)
        lock.write_text(honest)
        interrupt(at)
        assert holds.wait(20) == 7
        with pytest.raises(UserError, match="no study runs there"):
            interrupt(at)
        assert bystander.poll() is None


def test_the_lock_of_another_study_is_not_this_ones(tmp_path: Path) -> None:
    with holder(tmp_path / "victims") as victim, holder(tmp_path / "bait"):
        theirs, bait = tmp_path / "victims" / LOCK, tmp_path / "bait" / LOCK
        bait.write_text(theirs.read_text())
        with pytest.raises(UserError, match="no signal was sent"):
            interrupt(bait.parent)
        bait.unlink()
        for make in (bait.symlink_to, bait.hardlink_to):
            make(theirs)
            with pytest.raises(UserError, match="no signal was sent"):
                interrupt(bait.parent)
            bait.unlink()
        assert victim.poll() is None
        os.kill(victim.pid, signal.SIGINT)
        assert victim.wait(20) == 7
