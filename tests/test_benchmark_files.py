"""The code of a benchmark file: executed once, said before, never of a file others can change."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from paribus.benchmarks.files import load_file
from paribus.core import UserError
from studies import paribus, write_study

SAID = "executing the code of {}, a benchmark file of the study\n"


def study_that_counts(folder: Path) -> tuple[Path, Path, Path]:
    """Return a study, its benchmark file, and the file that has a line for each execution of it.

    The line says whether stderr had told of it by then.
    """
    study, count = write_study(folder), folder / "count"
    file = folder / "steady.py"
    seen = f"Path({str(folder / 'err')!r}).read_text().count('executing the code')"
    more = f"from pathlib import Path\nwith Path({str(count)!r}).open('a') as f:\n"
    file.write_text(f"{more}    print({seen}, file=f)\n{file.read_text()}")
    return study, file, count


@pytest.mark.parametrize("words", [("run", "--dry-run"), ("audit",), ("run", "--out", "out")])
def test_the_code_of_a_benchmark_file_is_executed_once_and_told_before(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    study, file, count = study_that_counts(tmp_path)
    err = tmp_path / "err"
    script = f'exec 2>{err}; exec "$0" -m paribus "$@"'
    done = subprocess.run(
        ["sh", "-c", script, sys.executable, *words, str(study)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, err.read_text()
    assert err.read_text().startswith(SAID.format(file))
    assert err.read_text().count("executing") == 1
    assert count.read_text() == "1\n"


@pytest.mark.slow
def test_report_and_audit_of_a_directory_execute_no_code_of_the_study(tmp_path: Path) -> None:
    study, file, count = study_that_counts(tmp_path)
    (tmp_path / "err").write_text("")
    assert paribus("run", study, "--out", "out", cwd=tmp_path).returncode == 0
    count.unlink()
    file.write_text(f"from pathlib import Path\nPath({str(count)!r}).touch()\n")
    study.unlink()
    for words in (("report", "out"), ("audit", "out")):
        done = paribus(*words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "executing" not in done.stderr
    file.unlink()
    assert paribus("report", "out", cwd=tmp_path).returncode == 0
    assert not count.exists()


@pytest.mark.parametrize("verb", ["run", "audit"])
@pytest.mark.parametrize("open_one", ["steady.py", "."])
def test_a_file_that_others_can_change_is_refused_before_its_code_is_executed(
    verb: str, open_one: str, tmp_path: Path
) -> None:
    study, file, count = study_that_counts(tmp_path)
    (tmp_path / open_one).chmod(0o777)
    done = paribus(verb, study, cwd=tmp_path)
    assert done.returncode == 2
    assert f"everyone may write to {(tmp_path / open_one).resolve()}\n" in done.stderr
    assert "chmod go-w" in done.stderr
    assert str(file) in done.stderr
    assert "executing" not in done.stderr
    assert not count.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_refused(tmp_path: Path) -> None:
    study, file, count = study_that_counts(tmp_path)
    os.chown(file, 65534, 65534)
    done = paribus("run", "--dry-run", study, cwd=tmp_path)
    assert done.returncode == 2
    assert f"{file} belongs to nobody" in done.stderr
    assert not count.exists()


def test_a_changed_file_is_executed_again_and_an_equal_one_is_not(tmp_path: Path) -> None:
    _, file, count = study_that_counts(tmp_path)
    (tmp_path / "err").write_text("")
    said: list[str] = []
    first = load_file(file, said.append)
    assert load_file(file, said.append) is first
    file.write_text(file.read_text().replace('"steady", "shell"', '"other", "shell"'))
    assert load_file(file, said.append).name == "other"
    assert len(said) == len(count.read_text().splitlines()) == 2
    file.chmod(0o666)
    with pytest.raises(UserError, match="others could change it"):
        load_file(file)
