"""A tool that does not exist, added to a copy of the tree as CONTRIBUTING.md says."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from paribus.benchmarks.files import load_file
from paribus.core import ParseError, UserError
from processes import ran
from studies import paribus, write_study

SAID = "executing the code of {}, a benchmark file of the study\n"


def study_that_counts(folder: Path) -> tuple[Path, Path, Path]:
    """Return a study, its benchmark file, and the file that has a line for each execution of it.

    The line says whether stderr had reported it by then.
    """
    study, count = write_study(folder), folder / "count"
    file = folder / "steady.py"
    seen = f"Path({str(folder / 'err')!r}).read_text().count('executing the code')"
    more = f"from pathlib import Path\nwith Path({str(count)!r}).open('a') as f:\n"
    file.write_text(f"{more}    print({seen}, file=f)\n{file.read_text()}")
    return study, file, count


@pytest.mark.parametrize("words", [("run", "--dry-run"), ("audit",), ("run", "--out", "out")])
def test_the_code_of_a_benchmark_file_is_executed_once_and_reported_before(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    study, file, count = study_that_counts(tmp_path)
    err = tmp_path / "err"
    script = f'exec 2>{err}; exec "$0" -m paribus "$@"'
    ran(["sh", "-c", script, sys.executable, *words, str(study)], cwd=tmp_path, timeout=250, code=0)
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
        done = paribus(*words, cwd=tmp_path, code=0)
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
    done = paribus(verb, study, cwd=tmp_path, code=2)
    assert f"everyone may write to {(tmp_path / open_one).resolve()}\n" in done.stderr
    assert "chmod go-w" in done.stderr
    assert str(file) in done.stderr
    assert "executing" not in done.stderr
    assert not count.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_refused(tmp_path: Path) -> None:
    study, file, count = study_that_counts(tmp_path)
    os.chown(file, 65534, 65534)
    done = paribus("run", "--dry-run", study, cwd=tmp_path, code=2)
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


ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text()
OWN = PAGE[PAGE.index("## Making it one of ours") :]
OUTPUT = re.findall(r"^```text\n(.*?)^```", OWN, re.M | re.S)[0]
READER, STARTER = map(textwrap.dedent, re.findall(r"^   ```python\n(.*?)^   ```", OWN, re.M | re.S))
LIST, BEFORE, LINE = "readers/known.py", '"mixbench": ("mixbench",),', '"spinrate": ("spinrate",),'
NEW = {
    "src/paribus/tools/readers/spinrate.py",
    "src/paribus/tools/spinrate.py",
    "tests/fixtures/spinrate/good-node.out",
    "tests/fixtures/spinrate/good-node.json",
    "tests/fixtures/spinrate/fail-clock.out",
}
EDITED = {f"src/paribus/{LIST}": 1, "docs/tools.md": None}
"""The files that change, with the lines that are new; of those that `./dev docs` writes, any."""


def in_copy(copy: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Return how a command of Python ended in the copy, of which it takes all modules."""
    env = {**os.environ, "PYTHONPATH": str(copy / "src")}
    return ran([sys.executable, *command], cwd=copy, env=env)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a copy of the tree in which the steps of the page have been taken."""
    for name in ("src", "tests", "tools", "docs"):
        ignored = shutil.ignore_patterns("__pycache__", "native")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    for name in ("pyproject.toml", "CHANGELOG.md", "CONTRIBUTING.md"):  # the second has the version
        shutil.copy(ROOT / name, tmp_path)
    package = tmp_path / "src" / "paribus"
    (package / "tools" / "readers" / "spinrate.py").write_text(READER)
    (package / "tools" / "spinrate.py").write_text(STARTER)
    assert LINE in PAGE
    text = (package / LIST).read_text()
    assert text.count(f"    {BEFORE}\n") == 1
    (package / LIST).write_text(text.replace(BEFORE, f"{BEFORE}\n    {LINE}"))
    fixtures = tmp_path / "tests" / "fixtures" / "spinrate"
    fixtures.mkdir()
    (fixtures / "good-node.out").write_text(OUTPUT)
    request = re.findall(r"the request is `(\{.*\})`", PAGE)[0]
    (fixtures / "good-node.json").write_text(json.dumps(json.loads(request)))
    (fixtures / "fail-clock.out").write_text("spinrate: cannot read the clock\n")
    return tmp_path


def test_the_steps_of_the_page_are_all_it_takes(copy: Path) -> None:
    """Contract and audit know the tool, and `paribus compare` reads it, by the steps alone."""
    files = ("tests/test_benchmarks_contract.py", "tests/test_classes.py")
    contract = ("-m", "pytest", "-q", "--thorough", "-p", "no:cacheprovider", *files)
    chosen = ("-k", "spinrate or parts_of_the_docs or no_row_is_idle")
    stale = in_copy(copy, *contract, *chosen)
    assert "stale: ./dev docs" in stale.stdout, stale.stdout + stale.stderr
    assert in_copy(copy, "tools/write_docs.py").returncode == 0
    done = in_copy(copy, *contract, *chosen)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\b1[0-9] passed", done.stdout), done.stdout
    assert {name: new for name, new in changed(copy).items() if name not in NEW} == EDITED
    assert changed(copy).keys() == NEW | EDITED.keys()
    log = copy / "tests" / "fixtures" / "spinrate" / "good-node.out"
    tried = in_copy(copy, "-m", "paribus.readers.try", "spinrate", str(log))
    assert "  rate: 812" in tried.stdout, tried.stdout + tried.stderr
    for name, file, why in (
        ("spinrat", log, "near it: spinrate"),
        ("spinrate", copy / "pyproject.toml", "pyproject.toml: "),
        ("spinrate", copy / "nowhere", "No such file"),
    ):
        refused = in_copy(copy, "-m", "paribus.readers.try", name, str(file))
        assert (refused.returncode, refused.stdout) == (2, "")
        assert why in refused.stderr
    for arm in "ab":
        (copy / arm).mkdir()
        for number in range(8):
            shutil.copy(log, copy / arm / f"{number}.log")
    compared = in_copy(copy, "-m", "paribus", "compare", "a", "b")
    assert re.search(r"\bspinrate +812 Mops/s", compared.stdout), compared.stdout + compared.stderr


def test_the_reader_alone_reads_the_output_of_the_page() -> None:
    alone = OWN[OWN.index("### A reader alone") :]
    code, *_ = re.findall(r"^```python\n(.*?)^```", alone, re.M | re.S)
    made: dict[str, Any] = {}
    exec(compile(code, "spinrate.py", "exec", dont_inherit=True), made)
    (one,) = made["HARNESS"].read(OUTPUT)
    assert one.reading.samples[0].values == (812.4, 815.02, 809.78)
    assert (one.reading.parameters, one.metrics[0].unit) == ({"milliseconds": 100}, "Mops/s")
    assert made["HARNESS"].recognise(OUTPUT)
    with pytest.raises(ParseError, match="not all there"):
        made["HARNESS"].read(OUTPUT.replace("loop 2", "loop"))


def changed(copy: Path) -> dict[str, int | None]:
    """Return the files of the copy that the tree lacks or has otherwise, with their new lines."""
    found: dict[str, int | None] = {}
    for path in (p for p in copy.rglob("*") if p.is_file() and "__pycache__" not in p.parts):
        name, text = str(path.relative_to(copy)), path.read_bytes()
        old = (ROOT / name).read_bytes() if (ROOT / name).exists() else b""
        if text != old:
            new = len(set(text.splitlines()) - set(old.splitlines()))
            found[name] = None if name.startswith("docs/") else new
    return found


def test_the_pages_give_the_lines_that_it_takes() -> None:
    lines = [len(block.strip().splitlines()) for block in (READER, STARTER)]
    reported = re.findall(r"`src/paribus/tools/(?:readers/)?spinrate.py`, (\d+) lines here", PAGE)
    assert list(map(int, reported)) == lines
    said = re.search(r"a reader of (\d+) lines and a starter of (\d+)", contributing())
    assert list(map(int, said.groups())) == lines


def contributing() -> str:
    return " ".join((ROOT / "CONTRIBUTING.md").read_text().split())
