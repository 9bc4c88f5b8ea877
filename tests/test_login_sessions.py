"""A study that is resumed from another login session, and variables that came or went."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paribus.__main__ import main
from paribus.launch.scrubbing import scrub
from paribus.probes.archive import Archive
from paribus.probes.environment import environment_facts
from paribus.probes.variables import of_session, prefixes
from paribus.store import Gathered, Store, gathered_row
from studies import RANDOM, interrupted, paribus, write_study
from study_directories import write_directory

ANOTHER = {
    "tmux": {"TMUX": "/tmp/tmux-0/default,1,0", "TMUX_PANE": "%1", "TERM_PROGRAM": "tmux"},
    "screen": {"STY": "1.pts-0.n1", "WINDOW": "0", "TERMCAP": "SC"},
    "ssh": {
        "SSH_CLIENT": "a 1 22",
        "SSH_CONNECTION": "a 1 b 22",
        "SSH_TTY": "/dev/pts/1",
        "XDG_SESSION_ID": "3",
        "XDG_RUNTIME_DIR": "/run/user/0",
        "KRB5CCNAME": "FILE:/tmp/x",
    },
    "desktop": {
        "DISPLAY": ":0",
        "WAYLAND_DISPLAY": "wayland-0",
        "XAUTHORITY": "/run/x",
        "DBUS_SESSION_BUS_ADDRESS": "unix:path=/run/bus",
        "XDG_SESSION_TYPE": "wayland",
    },
    "service": {"INVOCATION_ID": "0" * 32, "JOURNAL_STREAM": "8:1", "SYSTEMD_EXEC_PID": "1"},
    "modules": {
        "LOADEDMODULES": "",
        "_LMFILES_": "",
        "MODULESHOME": "/usr/share/lmod/lmod",
        "LMOD_CMD": "/usr/lmod",
        "_ModuleTable001_": "x",
        "__LMOD_REF_COUNT_PATH": "/bin:1",
        "MODULES_CMD": "/usr/modulecmd",
        "__MODULES_LMINIT": "x",
        "PATH_modshare": "/bin:1",
        "BASH_FUNC_module%%": "() { :\n}",
    },
    "venv": {"VIRTUAL_ENV": "/home/me/venv", "VIRTUAL_ENV_PROMPT": "(venv)", "CONDA_SHLVL": "1"},
    "sudo": {"SUDO_USER": "me", "SUDO_COMMAND": "/bin/sh", "SUDO_UID": "1", "MAIL": "/var/mail/x"},
    "batch": {"PBS_JOBID": "1", "NSLOTS": "2", "LSB_JOBID": "3", "SGE_TASK_ID": "1"},
}
"""Variables that sessions of each kind have."""

MATTERS = (
    *("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "BASH_ENV", "PYTHONPATH", "XDG_CACHE_HOME"),
    *("GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK", "OPENMPI_ROOT", "MY_SOLVER_MODE", "http_proxy"),
    *("CONDA_OVERRIDE_CUDA", "PYENV_VERSION", "CFLAGS", "DISPLAYED", "WINDOWS"),
)


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with study.toml, begun in out."""
    folder = tmp_path_factory.mktemp("begun")
    study = write_study(folder, script=f"sleep 0.02; {RANDOM}", plan="blocks = 8")
    interrupted(study, cwd=folder)
    return folder


Resume = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def out(begun: Path, tmp_path: Path) -> Path:
    """Return a copy of the directory of a study that has launches left."""
    return Path(shutil.copytree(begun / "out", tmp_path / "out"))


@pytest.fixture
def resume(begun: Path, out: Path) -> Resume:
    """A function that resumes it, with further options and variables."""

    def resumed(*more: str, **env: Any) -> subprocess.CompletedProcess[str]:
        words = ("run", str(begun / "study.toml"), "--out", str(out), "--resume", "--json", *more)
        return paribus(*words, cwd=begun, timeout_s=250.0, **env)

    return resumed


def test_names_of_sessions_are_listed_and_no_others() -> None:
    names = [name for several in ANOTHER.values() for name in several]
    assert [name for name in names if not of_session(name)] == []
    assert [name for name in MATTERS if of_session(name)] == []
    assert [prefix for prefix in prefixes() if of_session(f"{prefix}X")] == []


def test_names_of_programs_are_kept_without_their_values() -> None:
    lines = [f"{name}=hunter2" for several in ANOTHER.values() for name in several]
    mine = ["MY_API_TOKEN=hunter2", "SOLVER=hunter2", "A=1"]
    facts = environment_facts(Archive({}, lists={"environment": [*lines, *mine]}))
    assert facts["env.unlisted"] == ["A", "MY_API_TOKEN", "SOLVER"]
    assert "hunter2" not in str(facts)


def test_a_study_is_resumed_from_another_session(resume: Resume) -> None:
    """From all of them at once: what one adds is what all add."""
    done = resume(**{name: text for several in ANOTHER.values() for name, text in several.items()})
    assert done.returncode == 0, done.stdout + done.stderr
    verdict = json.loads(done.stdout)
    assert verdict["headlines"][0]["verdict"]["word"] == "undecided"
    assert not {"unexplained", "accepted"} & {d["kind"] for d in verdict["differences"]}


def test_what_came_or_went_is_named_before_the_first_launch_and_can_be_accepted(
    out: Path, resume: Resume
) -> None:
    def stored() -> tuple[set[int], int]:
        with Store(out) as store:
            return store.counting(), len(store.gathered())

    before = stored()
    done = resume(SOLVER_MODE="fast", AND_MORE="1")
    assert done.returncode == 3, done.stderr
    said = " ".join(done.stderr.split())
    assert "1 fact changed since the study began" in said
    assert "env.unlisted: gone: none -> new: AND_MORE, SOLVER_MODE (a on " in said
    assert '--resume --accept env.unlisted="reason"' in said
    assert stored() == before
    done = resume("--accept", "env.unlisted=it reads neither", SOLVER_MODE="fast", AND_MORE="1")
    assert done.returncode == 0, done.stderr
    accepted = [d for d in json.loads(done.stdout)["differences"] if d["kind"] == "accepted"]
    assert {(d["key"], d["reason"], d["arm_value"]) for d in accepted} == {
        ("env.unlisted", "it reads neither", "new: AND_MORE, SOLVER_MODE")
    }


def test_a_sitting_that_was_refused_does_no_harm_to_the_next(resume: Resume) -> None:
    assert resume(SOLVER_MODE="fast").returncode == 3
    done = resume()
    assert done.returncode == 0, done.stdout + done.stderr


def test_with_anyway_it_is_measured_without_a_verdict(resume: Resume) -> None:
    done = resume("--anyway", SOLVER_MODE="fast")
    assert done.returncode == 3
    kinds = {(d["key"], d["kind"]) for d in json.loads(done.stdout)["differences"]}
    assert ("env.unlisted", "unexplained") in kinds


# --- studies of older versions -------------------------------------------------------------------


def older(directory: Path) -> None:
    """Make the facts of nodes those that an older version stored: a hash of all names."""
    with Store(directory, write=True) as store:
        rows = [
            gathered_row(i, Gathered(one.arm, one.node, one.at, _older(one.facts)))
            for i, one in enumerate(store.gathered(), start=1)
        ]
        for number, *_, facts, checksum in rows:
            change = "UPDATE gathered SET facts = ?, checksum = ? WHERE id = ?"
            store.change(change, (facts, checksum, number))


def _older(facts: Any) -> dict[str, Any]:
    return {"env.others": "0123456789ab", **{k: v for k, v in facts.items() if k != "env.unlisted"}}


def test_a_study_of_an_older_version_is_reported_and_resumed(out: Path, resume: Resume) -> None:
    older(out)
    assert main(["report", str(out), "--brief"]) == 0
    done = resume()
    assert done.returncode == 0, done.stdout + done.stderr
    kinds = {(d["key"], d["kind"]) for d in json.loads(done.stdout)["differences"]}
    assert {kind for key, kind in kinds if key.startswith("env.")} <= {"unknown"}


def test_hashes_of_an_older_version_are_still_compared(tmp_path: Path, capsys: Any) -> None:
    facts = {"host": {"env.others": "a"}, "bridged": {"env.others": "b"}}
    directory = write_directory(
        tmp_path / "old", {"host": 1.0, "bridged": 1.0}, facts=facts, factor="nothing"
    )
    assert main(["report", str(directory), "--json"]) == 3
    found = json.loads(capsys.readouterr().out)["differences"]
    assert ("env.others", "unexplained") in {(d["key"], d["kind"]) for d in found}


def test_names_are_hashed_in_a_scrubbed_copy_and_what_differs_still_differs(
    tmp_path: Path,
) -> None:
    facts = {"host": {"env.unlisted": ["ACME", "B"]}, "bridged": {"env.unlisted": ["B"]}}
    source = write_directory(tmp_path / "one", {"host": 1.0, "bridged": 1.0}, facts=facts)
    scrub(source, tmp_path / "copy")
    with Store(tmp_path / "copy") as store:
        host, bridged = (one.facts["env.unlisted"] for one in store.gathered())
    assert "ACME" not in str(host)
    assert len(set(host) - set(bridged)) == 1
    assert set(bridged) < set(host)
