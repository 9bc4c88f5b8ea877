"""`paribus verify`: what is stored agrees with itself, or the difference is named."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from paribus.cli import outputs
from paribus.core import Sample
from paribus.judge.conclude import judged
from paribus.plan import read_plan
from paribus.store import Store
from paribus.store import pack as packs
from studies import launches_in, paribus, write_study


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a study of two real commands whose figures stand in what they print."""
    folder = tmp_path_factory.mktemp("verify")
    words = ("ab", "--a", "echo took 100.5 ms", "--b", "echo took 150.5 ms")
    paribus(*words, "--regex", r"took ([\d.]+)", "--unit", "ms", cwd=folder, timeout_s=120, code=0)
    return folder / "ab.study"


def verified(path: Path) -> subprocess.CompletedProcess[str]:
    return paribus("verify", path, cwd=path.parent, timeout_s=60)


def packed(directory: Path) -> Path:
    """Return a study as one file with the hash of each file, as its author would write it."""
    file = directory.with_suffix(".zip")
    names = [one.name for one in directory.iterdir() if "lock" not in one.name]
    packs.pack(directory, names, file)
    return file


@pytest.fixture
def copy(measured: Path, tmp_path: Path) -> Path:
    """Return a copy of the study for a test to change."""
    shutil.copytree(measured, tmp_path / "copy")
    return tmp_path / "copy"


def test_a_study_as_it_was_measured_agrees(copy: Path) -> None:
    for path, first in ((packed(copy), "each has its hash"), (copy, "which has no hashes")):
        done = verified(path)
        assert done.returncode == 0, done.stdout + done.stderr
        lines = done.stdout.splitlines()
        assert first in lines[0]
        assert "launches read again, same figures as stored" in lines[1]
        assert int(lines[1].split()[1]) == len(launches_in(copy, void=True)) >= 16
        assert lines[2].startswith("verdicts: version ")
        assert "not proved" in lines[-2]


def _log(copy: Path) -> Path:
    return sorted((copy / "logs").glob("*.out"))[5]


def another_figure(copy: Path) -> str:
    log = _log(copy)
    log.write_text(log.read_text().replace("0.5", "0.6"))
    return f"logs/{log.name}: gives other figures"


def no_figure(copy: Path) -> str:
    log = _log(copy)
    log.write_text("nothing\n")
    return f"logs/{log.name}: "


def no_output(copy: Path) -> str:
    log = _log(copy)
    log.unlink()
    return f"logs/{log.name}: is missing"


def other_samples(copy: Path) -> str:
    """A forger halves the figures of one arm in a store of its own, and has them judged."""
    with Store(copy) as store:
        gathered, launches = store.gathered(), list(store.launches(void=True))
    for file in copy.glob("launches.*"):
        file.unlink()
    with Store(copy, write=True) as forged:
        forged.bind_plan(read_plan(copy).sha256)
        forged.keep_gathered(gathered)
        for one in launches:
            samples = one.outcome.samples
            if one.launch.arm == "b":
                samples = tuple(
                    Sample(of.metric, of.case, [v / 2 for v in of.values]) for of in samples
                )
            forged.append(one.launch, replace(one.outcome, samples=samples), void=one.void)
    outputs.write_files(judged(copy), copy)
    return "gives other figures"


def forged(copy: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the stored verdict."""
    stored = json.loads((copy / "verdict.json").read_text())
    change(stored)
    (copy / "verdict.json").write_text(json.dumps(stored))


def another_word(copy: Path) -> str:
    forged(copy, lambda of: of["headlines"][0]["verdict"].update(word="equivalent"))
    return "equivalent, 1.498 ["


def another_ratio(copy: Path) -> str:
    forged(copy, lambda of: of["headlines"][0]["comparison"].update(ratio=1.498001))
    return "slower, 1.498 ["


CHANGES = (another_figure, no_figure, no_output, other_samples, another_word, another_ratio)


@pytest.mark.parametrize("change", CHANGES, ids=lambda one: one.__name__)
def test_what_differs_is_named(copy: Path, change: Callable[[Path], str]) -> None:
    """The hashes are right each time: they are those of whoever packed it."""
    named = change(copy)
    done = verified(packed(copy))
    assert done.returncode == 1, done.stdout + done.stderr
    assert any("DIFFERS" in line and named in line for line in done.stdout.splitlines()), (
        named,
        done.stdout,
    )


def test_an_output_that_is_no_file_holds_nobody_up(copy: Path) -> None:
    """A named pipe would hold up whoever reads it."""
    log = _log(copy)
    log.unlink()
    os.mkfifo(log)
    done = verified(copy)
    assert (done.returncode, f"logs/{log.name}: is missing" in done.stdout) == (1, True), (
        done.stdout + done.stderr
    )


@pytest.mark.parametrize("text", ["[]", "{", "null"])
def test_what_is_no_verdict_is_refused_in_a_line(copy: Path, text: str) -> None:
    (copy / "verdict.json").write_text(text)
    done = verified(copy)
    assert done.returncode == 2, done.stdout
    assert "verdict.json" in done.stderr
    assert len(done.stderr.splitlines()) == 2


def test_a_verdict_of_no_version_differs(copy: Path) -> None:
    """Whoever forges a verdict does not escape by leaving the version out."""
    (copy / "verdict.json").write_text('{"headlines": 3, "versions": []}')
    done = verified(copy)
    assert (done.returncode, "DIFFERS" in done.stdout) == (1, True), done.stdout + done.stderr


def test_verdicts_of_another_version_are_listed(copy: Path) -> None:
    another_word(copy)
    forged(copy, lambda of: of["versions"].update({"reported by": "0.0.9"}))
    done = verified(copy)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "verdicts: stored by version 0.0.9; this is" in done.stdout
    assert "DIFFERS" in done.stdout


def test_a_damaged_file_is_no_study(copy: Path) -> None:
    file = packed(copy)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    done = verified(file)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) <= 3


def test_a_benchmark_that_is_a_file_is_not_executed(tmp_path: Path) -> None:
    study = write_study(tmp_path, plan="blocks = 8")
    paribus("run", study, "--out", "out", cwd=tmp_path, timeout_s=120, code=0)
    for file in tmp_path.glob("*.py"):
        file.write_text("import pathlib\npathlib.Path('executed').touch()\n")
    done = verified(tmp_path / "out")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "a Python file, which is not executed" in done.stdout
    assert not [*tmp_path.rglob("executed")]
