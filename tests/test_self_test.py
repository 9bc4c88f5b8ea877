"""`paribus self-test`: says that an installation works, and never of one that does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from processes import executable
from studies import paribus


def test_an_installation_that_works(tmp_path: Path) -> None:
    done = paribus("self-test", cwd=tmp_path)
    lines = done.stdout.splitlines()
    assert (done.returncode, lines[-1]) == (0, "all of it works"), done.stdout + done.stderr
    assert [line[:7].strip() for line in lines[:-1]] == ["ok"] * 5
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("program", "does", "fails"),
    [
        ("sleep", "#!/bin/sh\nexec /bin/sleep 0.2\n", "a delay of 50 % is found"),
        ("sleep", "#!/bin/sh\nexit 1\n", "launches run"),
        ("mpicxx", "#!/bin/sh\nexit 1\n", "a kernel compiles"),
    ],
)
def test_one_that_does_not_is_not_passed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, does: str, fails: str
) -> None:
    """A clock that counts no delay, launches that fail, and a compiler that compiles nothing."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in {"mpicxx": "#!/bin/sh\nexit 1\n", program: does}.items():
        executable(folder / name, text)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin:/usr/sbin:/sbin")
    done = paribus("self-test", cwd=tmp_path, code=2)
    assert f"FAILED {fails}: " in done.stdout
    assert done.stdout.endswith("NOT all of it works\n")
    assert "Traceback" not in done.stderr
