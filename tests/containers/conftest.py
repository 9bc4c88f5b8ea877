"""Who starts the containers, where, and with which program."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from containers.fabrics import MPIS, PROGRAM, USER
from paribus.core import Mpi
from paribus.launch.local import capture


@pytest.fixture(params=["root", "user"])
def identity(request: pytest.FixtureRequest) -> list[str]:
    """What to put before a command so that root, or an ordinary user, runs it."""
    if request.param == "root":
        if os.geteuid() != 0:
            pytest.skip("not root")
        return []
    if os.geteuid() != 0:
        return []
    if not shutil.which("setpriv"):
        pytest.skip("setpriv is not installed: the tests cannot become an ordinary user")
    return ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--"]


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A directory that an ordinary user can reach, which pytest's own is not."""
    path = Path(tempfile.mkdtemp(prefix="paribus-containers-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture(params=MPIS or [None], ids=lambda m: m.family if m else "no-mpi", scope="module")
def program(request: pytest.FixtureRequest, folder: Path) -> tuple[Mpi, str]:
    """The compiled test program and the MPI that it belongs to."""
    mpi: Mpi | None = request.param
    if mpi is None:
        pytest.skip("no MPI found: set PARIBUS_TEST_MPI to its prefix")
    source, binary = folder / "program.cpp", folder / f"program.{mpi.family}"
    source.write_text(PROGRAM)
    done = capture([mpi.mpicxx, "-O1", "-o", str(binary), str(source)])
    if done.exit_code:
        pytest.skip(f"{mpi.mpicxx} compiles nothing: {done.stderr}")
    return mpi, str(binary)
