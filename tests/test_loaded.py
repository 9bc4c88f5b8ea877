"""What runs is what is loaded: lines of Paribus in a finished run, and those that idle."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from processes import ran

ROOT = Path(__file__).parent.parent
ROOM = 1.05

COUNT = """\
import sys
from pathlib import Path
ran = set()
def seen(frame, event, _):
    code = frame.f_code
    if event == "call" and code.co_name[0] != "<" and code.co_flags & 2:  # no body of a class
        ran.add(code.co_filename)
def lines(idle):
    files = [m.__file__ for n, m in sys.modules.items() if n.split(".")[0] == "paribus"]
    files = [f for f in files if f and not (idle and f in ran)]
    return sum(len(Path(f).read_text().splitlines()) for f in files)
"""
RUN = f"""{COUNT}
from paribus.__main__ import main
sys.setprofile(seen)
code = main(["run", "study.toml", "--out", "out"])
sys.setprofile(None)
print("counted", code, lines(False), lines(True))
"""
READ = f"""{COUNT}
from paribus.studyfile.load import load_study
load_study(Path("study.toml"))
print("counted", 0, lines(False), 0)
"""


def counted(script: str, folder: Path) -> tuple[int, int]:
    """Return the lines that are loaded at the end, and those of files of which nothing ran."""
    study = (ROOT / "studies" / "same.toml").read_text()
    study = study.partition('\n[[benchmarks]]\nname = "allreduce"')[0]
    quick = 'bytes = ["8 B"]\nsamples = 20\n[plan]\nblocks = 8\n'
    (folder / "study.toml").write_text(study + quick)
    done = ran([sys.executable, "-c", script], cwd=folder)
    (line,) = (one for one in done.stdout.splitlines() if one.startswith("counted "))
    _, code, loaded, idle = line.split()
    assert code == "0", done.stderr
    return int(loaded), int(idle)


def test_a_study_is_read_with_few_lines(tmp_path: Path) -> None:
    loaded, _ = counted(READ, tmp_path)
    assert loaded <= 9_000 * ROOM


@pytest.mark.slow
def test_a_finished_run_has_little_loaded_that_does_not_run(tmp_path: Path) -> None:
    """What was loaded on 29 November 2026; 27,000 lines are the aim."""
    loaded, idle = counted(RUN, tmp_path)
    assert loaded <= 31_610 * ROOM
    assert idle <= 1_575 * ROOM
