"""The kernel of storage: launched with the MPI that is here, refused, damaged and killed."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from native import Ended, program_of, started
from paribus.readers.kernel import read
from processes import ran

FEW = ("--size", "262144", "--transfer", "65536", "--operations", "20", "--files", "10")
KINDS: dict[str, tuple[str, ...]] = {
    "own files": FEW,
    "one file": (*FEW, "--access", "shared-file"),
    "direct": (*FEW, "--mode", "direct"),
    "corrupt": (*FEW, "--corrupt"),
    "odd": (*FEW, "--random", "5000"),
    "no multiple": (*FEW, "--size", "69632"),
    "too large": ("--size", str(1 << 60)),
}


@pytest.fixture(scope="module")
def launches(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Ended, list[str]]]:
    """Return how launches of 2 ranks ended, and what is left in the directory of each."""
    program = program_of("storage")

    def launch(arguments: tuple[str, ...]) -> tuple[Ended, list[str]]:
        # Under /var/tmp, for a memory file system may have no O_DIRECT.
        folder = tmp_path_factory.mktemp("files")
        ended = started(program, *arguments, ranks=2, PARIBUS_DIRECTORY=str(folder))
        return ended, [one.name for one in folder.iterdir()]

    with ThreadPoolExecutor(3) as pool:
        ends = {kind: pool.submit(launch, arguments) for kind, arguments in KINDS.items()}
    return {kind: one.result() for kind, one in ends.items()}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["own files", "one file", "direct"])
def test_files_are_written_and_read(
    kind: str,
    launches: dict[str, tuple[Ended, list[str]]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Three repetitions, and one before; each rank reads 4 + 20 transfers, and 20 of its own."""
    ended, left = launches[kind]
    if "has no O_DIRECT" in ended.stderr:
        pytest.skip("no O_DIRECT in the directory for temporary files")
    assert (ended.returncode, left) == (0, []), ended.stderr
    reading = read(ended.stdout)
    assert all(len(sample.values) == 3 for sample in reading.samples)
    assert len(reading.samples) == 7
    assert f'"checked": {4 * 2 * (4 * 16 + 20 + 20)}' in ended.stdout
    assert reading.facts["kernel.written_by"] == "the next rank"
    assert 0 <= reading.facts["kernel.cached.op=read"] <= 1
    if kind == "direct":
        where = ["stat", "-f", "-c", "%T", str(tmp_path_factory.getbasetemp())]
        in_memory = subprocess.run(where, stdout=-1, check=True).stdout == b"tmpfs\n"
        assert reading.facts["kernel.cached.op=read"] == in_memory


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "code", "says"),
    [
        ("corrupt", 1, 'storage: wrong data at {"op": "read"}: rank 1, position 0 of 64'),
        ("odd", 2, "storage: --random is not a multiple of 4096"),
        ("no multiple", 2, "storage: --size is not a multiple of --transfer"),
        ("too large", 1, f"the files need {2 << 40} MiB"),
    ],
)
def test_what_cannot_be_is_refused_and_leaves_nothing(
    kind: str, code: int, says: str, launches: dict[str, tuple[Ended, list[str]]]
) -> None:
    ended, left = launches[kind]
    assert (ended.returncode, ended.stdout, left) == (code, "", [])
    assert says in ended.stderr


def test_a_directory_that_is_missing_is_named() -> None:
    ended = started(program_of("storage"), *FEW, "--directory", "/nowhere", ranks=1)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "storage: no files can be made in /nowhere: No such file or directory" in ended.stderr


def test_a_full_disk_is_a_sentence(tmp_path: Path) -> None:
    """A file system with 8 inodes takes the data, but not the small files."""
    program = program_of("storage")
    mount = f"mount -t tmpfs -o size=1m,nr_inodes=8 none {tmp_path}"
    launch = f"PARIBUS_DIRECTORY={tmp_path} {program} {' '.join(FEW)}; ls {tmp_path}"
    argv = ["unshare", "-m", "sh", "-c", f"{mount} || exit 77; {launch}"]
    done = ran(argv, timeout=60)
    if done.returncode == 77 or done.stderr.startswith("unshare:"):
        pytest.skip("a file system cannot be mounted here")
    assert done.stdout == ""
    assert 'storage: {"op": "create"}: a small file: No space left on device' in done.stderr


@pytest.mark.slow
def test_a_killed_launch_leaves_no_file(tmp_path: Path) -> None:
    """As when the kernel ends a process that takes too much memory."""
    argv = [str(program_of("storage")), "--samples", "100000", "--max-case-s", "100"]
    env = {**os.environ, "PARIBUS_DIRECTORY": str(tmp_path)}
    with subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL) as launch:
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob("*/data-0")) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert any(tmp_path.iterdir())
        launch.send_signal(signal.SIGKILL)
    while any(tmp_path.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(tmp_path.iterdir())
