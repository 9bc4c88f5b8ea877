"""How verbs end: 1 is the code of --fail-on alone, and stderr holds a line, not a traceback."""

from __future__ import annotations

import ast
import builtins
import fcntl
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from paribus.__main__ import main
from paribus.cli.ending import after
from paribus.core import StudyError, exit_code
from paribus.store import Standing, write_standing
from processes import ran
from studies import command
from study_directories import write_directory


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study directory with its reports, so that nothing but the report takes time."""
    directory = write_directory(
        tmp_path_factory.mktemp("endings") / "study", {"host": 1.0, "bridged": 1.2}
    )
    assert main(["report", str(directory), "--brief"]) == 0
    write_standing(directory, Standing("ended", 0))
    return directory


def begun(*words: str | Path, **how: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(*words),
        stdout=how.pop("stdout", subprocess.PIPE),  # type: ignore[call-overload]
        stderr=subprocess.PIPE,
        text=True,
        **how,
    )


def said(process: subprocess.Popen[str]) -> str:
    """Return what it says on stderr, without a traceback, when it has ended."""
    err = str(process.communicate(timeout=200)[1])
    assert "Traceback" not in err, err
    assert "Exception ignored" not in err, err
    assert process.returncode != 1, err
    return err


def test_no_exception_has_the_code_of_a_rule() -> None:
    for kind in vars(builtins).values():
        if isinstance(kind, type) and issubclass(kind, BaseException):
            group = issubclass(kind, BaseExceptionGroup)
            error = kind.__new__(kind, *(("", [ValueError()]) if group else ()))
            assert exit_code(error) in (2, 130, 141), kind


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (StudyError("is no study", place="a.toml", fix="write one"), 2, "a.toml: is no study"),
        (MemoryError(), 2, "no memory is left"),
        (ImportError("x.so: failed to map segment from shared object"), 2, "no memory is left"),
        (RuntimeError("can't start new thread"), 2, "no memory is left"),
        (SystemError("error return without exception set"), 2, "no memory is left"),
        (RecursionError("maximum recursion depth exceeded"), 2, "nested more deeply"),
        (PermissionError(13, "Permission denied", "/x"), 2, "/x: Permission denied"),
        (OSError(36, "File name too long", "/x"), 2, "too long\n  give another path"),
        (OSError(40, "Too many levels of symbolic links", "/x"), 2, "links\n  give another path"),
        (OSError(28, "No space left on device"), 2, "no space or no inodes are left"),
        (BrokenPipeError(32, "Broken pipe"), 141, ""),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_an_error_is_one_line_and_its_next_step(
    error: BaseException, code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert after(error) == code
    err = capsys.readouterr().err
    assert words in err
    assert err.count("\n") == (2 if words else 0)


PACKAGE = Path(__file__).parent.parent / "src" / "paribus"
WITHOUT_STEP = {"ParibusError", "ParseError", "HostError", "AtWorkError"}
"""What holds another error, a line of an output, and two whose step is that of the study."""


def test_every_error_says_what_to_do_next() -> None:
    trees = {path: ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}
    nodes = [(path, node) for path, tree in trees.items() for node in ast.walk(tree)]
    kinds, found = set[str](), {"ParibusError"}
    while found - kinds:
        kinds |= found
        found |= {
            node.name
            for _, node in nodes
            if isinstance(node, ast.ClassDef) and kinds & {ast.unparse(base) for base in node.bases}
        }
    bare = []
    for path, node in nodes:
        if isinstance(node, ast.Call):
            name, given = ast.unparse(node.func), {one.arg for one in node.keywords}
            step = {"fix", None} & given or len(node.args) > 2
            if not step and (name == "as_error" or name in kinds - WITHOUT_STEP):
                bare.append(f"{path.relative_to(PACKAGE)}:{node.lineno}: {ast.unparse(node)[:90]}")
    assert len(kinds) > 9
    assert [one for one in bare if "the store is not open" not in one] == []


@pytest.mark.parametrize(
    "words",
    [
        "record --out {}",
        "topology show balance --svg {}",
        "topology predict balance --window {}",
        "topology emulate {}",
        "pack {study} --out {}",
        "profile --output {} -- true",
    ],
)
def test_an_output_below_a_file_is_refused_with_place_cause_and_step(
    words: str, study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    out = tmp_path / "file" / "x"
    asked = [one.format(out, study=study) for one in words.split()]
    assert main(asked) == 2
    cause, step = capsys.readouterr().err.splitlines()[-2:]
    assert cause.startswith(f"paribus: {tmp_path}/file"), cause
    assert "cannot be" in cause
    assert "Not a directory" in cause
    assert step.startswith("  ")
    assert "--resume" not in step


@pytest.mark.parametrize(
    ("words", "option"),
    [
        ("record --from {study} --out x", "--out"),
        ("pack --open {study} --scrub", "--scrub"),
    ],
)
def test_an_option_that_would_be_ignored_is_refused(
    words: str, option: str, study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([one.format(study=study) for one in words.split()]) == 2
    cause, step = capsys.readouterr().err.splitlines()
    assert cause.startswith(f"paribus: {option}: ")
    assert step.startswith("  leave it out")


def test_a_defect_of_ours_shows_where_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert after(ValueError("what nobody expected")) == 2
    assert "report it" in capsys.readouterr().err


@pytest.mark.parametrize("stream", ["/dev/full", "closed"])
@pytest.mark.parametrize(
    "words", ["report DIR", "report DIR --json", "list", "--version", "report --help"]
)
def test_output_that_cannot_be_written_is_said(words: str, stream: str, study: Path) -> None:
    argv = [str(study) if word == "DIR" else word for word in words.split()]
    to = ">&-" if stream == "closed" else f">{stream}"
    done = ran(["sh", "-c", f'"$@" {to}', "sh", *command(*argv)], code=2)
    assert done.stderr.startswith("paribus: standard output: cannot be written")
    assert done.stderr.count("\n") == 2


def test_messages_that_cannot_be_written_end_nothing(study: Path) -> None:
    argv = command("report", study, "--fail-on", "slower", "--to", "csv")
    done = subprocess.run(
        ["sh", "-c", '"$@" 2>/dev/full <&-', "sh", *argv], capture_output=True, check=False
    )
    assert done.returncode == 1, "the rule's own code"
    assert b"slower" in done.stdout


@pytest.mark.parametrize("step", [7000, pytest.param(500, marks=pytest.mark.slow)])
def test_a_reader_that_leaves_at_any_byte_ends_it_quietly(study: Path, step: int) -> None:
    """Of the last bytes, which fit into the pipe, nobody knows whether they were read."""
    size = len(subprocess.run(command("report", study, "--json"), stdout=-1, check=True).stdout)
    for most in [*range(0, size - 4096, step), size]:
        ours, theirs = os.pipe()
        fcntl.fcntl(theirs, fcntl.F_SETPIPE_SZ, 4096)
        process = begun("report", study, "--json", stdout=theirs)
        os.close(theirs)
        left = most
        while left > 0 and (data := os.read(ours, min(left, 4096))):
            left -= len(data)
        os.close(ours)
        assert said(process) == ""
        assert process.returncode == (0 if most == size else 141), most


def in_control(pid: int) -> bool:
    """Return whether Paribus, not the Python that still starts, answers signals."""
    status = Path(f"/proc/{pid}/status").read_text()
    caught = int(status.partition("SigCgt:")[2].split()[0], 16)
    return bool(caught >> (signal.SIGTERM - 1) & 1)


@pytest.mark.parametrize("moments", [6, pytest.param(60, marks=pytest.mark.slow)])
def test_an_interrupt_at_any_moment_ends_with_130(study: Path, moments: int) -> None:
    """Also while modules load: Python's import machinery can lose a KeyboardInterrupt."""
    lasts = time.monotonic()
    assert said(begun("report", study)) == ""
    lasts = time.monotonic() - lasts
    codes = set()
    for moment in range(moments):
        process = begun("report", study)
        while process.poll() is None and not in_control(process.pid):
            time.sleep(0.001)
        time.sleep(lasts * moment / moments)
        process.send_signal(signal.SIGTERM if moment % 3 == 2 else signal.SIGINT)
        assert said(process) == "", moment
        codes.add(process.returncode)
    assert codes <= {0, 130}
    assert 130 in codes


FEW = (60, 150, 500, 600)
MANY = (32, 40, 80, 100, 120, 200, 250, 300, 400, 511, 513, 640, 900)


@pytest.mark.parametrize("limits", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
def test_little_memory_ends_in_one_line(study: Path, limits: tuple[int, ...]) -> None:
    """Libraries that find too little end the process themselves, one of them by SIGINT."""
    codes = set()
    for mib in limits:

        def limit(most: int = mib << 20) -> None:
            resource.setrlimit(resource.RLIMIT_AS, (most, most))

        process = begun("report", study, "--brief", preexec_fn=limit)
        err = said(process)
        codes.add(process.returncode)
        assert process.returncode == 0 or "ulimit -v" in err, mib
        assert err.count("\n") == (2 if process.returncode else 0), err
        assert "damaged" not in err
    assert codes == {0, 2}


@pytest.mark.parametrize("verb", ["audit DIR", "pack DIR --out FILE", "watch DIR", "list", "help"])
def test_verbs_that_do_not_judge_are_not_refused_and_end_in_one_line(
    study: Path, verb: str, tmp_path: Path
) -> None:
    places = {"DIR": study, "FILE": tmp_path / "packed.zip"}
    codes = set()
    for mib in (20, 30, 400):

        def limit(most: int = mib << 20) -> None:
            resource.setrlimit(resource.RLIMIT_AS, (most, most))

        words = [places.get(word, word) for word in verb.split()]
        process = begun(*words, preexec_fn=limit)
        err = said(process)
        fine = process.returncode in (0, 3)  # audit finds differences
        codes.add(fine)
        assert fine or "no memory is left" in err, (mib, err)
        assert err.count("\n") == (0 if fine else 2), (mib, err)
        assert (tmp_path / "packed.zip").exists() <= fine
    assert True in codes


def test_no_thread_of_a_library_computes_beside_launches(study: Path) -> None:
    """OpenBLAS starts one a core when numpy is loaded; none inherits how it is kept from that."""
    code = (
        "import os, subprocess, sys; from paribus.__main__ import main;"
        f"assert main(['compare', {str(study)!r}, '--brief']) == 0;"
        "import numpy; numpy.ones((500, 500)) @ numpy.ones((500, 500));"
        "print(len(os.listdir('/proc/self/task')), file=sys.stderr);"
        "subprocess.run(['env'], stdout=sys.stderr)"
    )
    env = {key: value for key, value in os.environ.items() if not key.startswith("OPENBLAS")}
    done = ran([sys.executable, "-c", code], env=env, code=0)
    threads, *inherited = done.stderr.splitlines()
    assert int(threads) == 1
    assert not [one for one in inherited if "OPENBLAS" in one]
