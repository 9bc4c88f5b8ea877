"""Paribus as a job script sees it: a verdict, or one line with cause, place and next step."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from mpis import any_mpi
from paribus.border import cache_directory
from paribus.core import UserError
from paribus.schedulers.known import present
from processes import ran
from studies import RANDOM, command, write_arms, write_study
from study_directories import write_directory


def in_private() -> list[str]:
    """Return what gives a command mounts of its own; skips where nobody may mount."""
    if os.getuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("mounting needs root and unshare")
    return ["unshare", "--mount"]


def as_job(script: str, *words: str | Path, cwd: Path, private: bool = False) -> tuple[int, str]:
    """Return exit code and stderr of `paribus WORDS` after `script`, without a terminal.

    With `private`, mounts of the script are its own.
    """
    shell = ["bash", "-c", f'{script}; exec "$@"', "bash"]
    done = ran(
        [*(in_private() if private else ()), *shell, *command(*words)],
        cwd=cwd,
        env={key: value for key, value in os.environ.items() if key != "PARIBUS_CACHE"},
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode in (0, 2), done.stderr
    assert ("in steady." in done.stdout) == (done.returncode == 0), done.stdout + done.stderr
    return done.returncode, done.stderr.rpartition("paribus: ")[2]


@pytest.mark.parametrize(
    "script",
    [
        "unset HOME; umask 077; exec <&-; ulimit -n 256; ulimit -t 600",
        "export HOME=/proc/nowhere; ulimit -v 2000000",
    ],
)
def test_a_verdict_all_the_same(script: str, tmp_path: Path) -> None:
    study = write_study(tmp_path, script=RANDOM, plan="blocks = 8")
    code, said = as_job(script, "run", study, "--out", "out", cwd=tmp_path)
    assert code == 0, said
    assert (tmp_path / "out/verdict.json").stat().st_mode & 0o077 == (
        0 if "077" in script else 0o044
    )


@pytest.mark.parametrize("options", ["", "-o noexec", "-o size=4m"])
def test_a_tmp_of_its_own(options: str, tmp_path: Path) -> None:
    """As PrivateTmp and hardened nodes have it; what launches execute lies elsewhere."""
    write_study(tmp_path, script=RANDOM, plan="blocks = 8")
    hold = f"mkdir tmp; mount -t tmpfs {options} none tmp; export TMPDIR=$PWD/tmp"
    assert as_job(hold, "run", "study.toml", cwd=tmp_path, private=True)[0] == 0


REFUSED = {
    "ulimit -v 200000": ("ulimit -v", "524288"),
    "ulimit -v 60000": ("ulimit -v", "524288"),
    "ulimit -d 60000": ("ulimit -d", "524288"),
    "ulimit -n 100": ("ulimit -n", "256"),
    "ulimit -f 16": ("ulimit -f", "16384"),
    "ulimit -t 5": ("ulimit -t", "5 s"),
    "umask 0777": ("umask", "777"),
    "export TMPDIR=/proc/nowhere": ("/proc/nowhere", "TMPDIR"),
    "mkdir gone; cd gone; rmdir ../gone": ("working directory", "cd"),
}


@pytest.mark.parametrize("script", REFUSED)
def test_a_limit_that_is_too_low_is_named(script: str, tmp_path: Path) -> None:
    study = write_study(tmp_path, script=RANDOM)
    code, said = as_job(script, "run", study, cwd=tmp_path)
    assert code == 2
    assert all(word in said for word in REFUSED[script]), said
    assert said.count("\n") == 2
    assert not list(tmp_path.glob("*.study"))


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("mount --bind . .; mount -o remount,ro,bind .; cd $PWD", ("Read-only", "--out")),
        ("mkdir tmp; mount -t tmpfs -o size=100k none tmp; export TMPDIR=$PWD/tmp", ("no space",)),
        ("mkdir tmp; mount -t tmpfs -o ro none tmp; export TMPDIR=$PWD/tmp", ("TMPDIR",)),
    ],
)
def test_a_place_that_cannot_be_written_is_named(
    script: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    write_study(tmp_path, script=RANDOM)
    code, said = as_job(script, "run", "study.toml", cwd=tmp_path, private=True)
    assert code == 2
    assert all(word in said for word in words), said


@pytest.mark.installed
@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("mount -t tmpfs -o size=64k none home; cat /dev/zero >home/fill", ("No space left",)),
        ("mount -t tmpfs -o ro none home", ("Read-only",)),
    ],
)
def test_a_home_over_quota_has_no_place_for_kernels(
    script: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    write_arms(tmp_path, benchmark='name = "latency"\nbytes = [8]')
    where = f"PATH={Path(any_mpi().mpicxx).parent}:$PATH HOME=$PWD/home"
    hold = f"mkdir home; export {where}; unset XDG_CACHE_HOME; {script} 2>/dev/null"
    code, said = as_job(hold, "run", "study.toml", cwd=tmp_path, private=True)
    assert code == 2
    assert all(word in said for word in (*words, "PARIBUS_CACHE", "home/.cache")), said


def test_a_user_without_home_and_name_is_reported_what_to_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("HOME", "PARIBUS_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 3_999_999_999)
    monkeypatch.setattr(os, "geteuid", lambda: 3_999_999_999)
    with pytest.raises(UserError, match="user 3999999999 is unknown") as caught:
        cache_directory()
    assert "PARIBUS_CACHE" in caught.value.fix
    present()


def test_a_report_under_a_limit_of_addresses_lacks_only_its_page(tmp_path: Path) -> None:
    """V8, which draws, reserves more than any limit leaves, and ends the process."""
    study = write_directory(tmp_path / "study", {"host": 1.0, "bridged": 1.2})
    limit = f"ulimit -c 0; ulimit -v 4000000; export XDG_CACHE_HOME={tmp_path}/cache"
    argv = ["bash", "-c", f'{limit}; exec "$@"', "bash", *command("report", study, "--brief")]
    env = {key: value for key, value in os.environ.items() if key != "PARIBUS_CACHE"}
    done = ran(argv, env=env, code=0)
    assert "bridged is slower" in done.stdout
    assert "report.html is not written: ulimit -v" in done.stderr
    assert (study / "verdict.json").exists()
    again = ran([*argv, "--to", "pdf"], env=env, code=2)
    assert "figures cannot be drawn" in again.stderr


def test_a_full_disk_keeps_no_report_from_its_reader(tmp_path: Path) -> None:
    """Neither the database, of which SQLite makes a file to share, nor the text needs space."""
    write_directory(tmp_path / "study", {"host": 1.0, "bridged": 1.2})
    fill = "mkdir d; mount -t tmpfs -o size=2m none d; cp -r study d; cat /dev/zero 2>&1 >d/x"
    for words, code in (
        ("report d/study --brief", 0),
        ("report d/study --json", 0),
        ("report d/study --brief --fail-on slower", 1),
        ("compare d/study --brief --out d/report", 2),
        ("report d/study --brief --to csv", 2),
    ):
        argv = [*in_private(), "sh", "-c", f'{fill}; exec "$@"', "sh", *command(*words.split())]
        done = ran(argv, cwd=tmp_path)
        shutil.rmtree(tmp_path / "d")
        assert done.returncode == code, done.stderr
        assert "bridged is slower in latency" in done.stdout
        assert "No space left on device" in done.stderr
        assert "Traceback" not in done.stderr


def test_the_end_of_cpu_time_is_said(tmp_path: Path) -> None:
    """Of Paribus itself, before the system kills it; of a launch, it is no arm's failure."""
    study = write_study(tmp_path, script="while :; do :; done")
    argv = ["bash", "-c", 'ulimit -t 11; exec "$@"', "bash", *command("run", study, "--out", "out")]
    done = ran(argv, cwd=tmp_path, code=2)
    assert "the limit of CPU time was reached (`ulimit -t`)" in done.stderr
    assert "--resume" in done.stderr
