"""What only a rank can say: mapped libraries, the way that messages took, for real."""

from __future__ import annotations

import ctypes.util
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mpis import any_mpi, each_mpi
from paribus.benchmarks import BENCHMARKS
from paribus.core import Mpi, Request
from paribus.launch.launchers.openmpi import ROOT
from paribus.launch.machine import HERE
from paribus.launch.toolchain import kernel_path
from paribus.probes.archive import unknown
from processes import ran

ASKED = {"bytes": (8,), "samples": 20}
# How each family is asked to leave shared memory for TCP on this machine.
TCP = {
    "openmpi": {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "tcp,self"},
    "mpich": {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self", "FI_PROVIDER": "tcp"},
}


def facts(mpi: Mpi, env: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return what the reader of the latency kernel makes of a launch with two ranks."""
    request = Request(ASKED, 2)
    command = [str(kernel_path("latency", mpi, HERE)), *BENCHMARKS["latency"].command(request).argv]
    oversubscribe = {"OMPI_MCA_rmaps_base_oversubscribe": "1"}
    oversubscribe["PRTE_MCA_rmaps_default_mapping_policy"] = ":oversubscribe"
    done = ran(
        [mpi.mpirun, "-n", "2", *command],
        env={**os.environ, **ROOT, **mpi.env, **oversubscribe, **(env or {})},
        timeout=120,
        code=0,
    )
    request = Request({key: ASKED.get(key) for key in BENCHMARKS["latency"].parameters}, 2)
    return dict(BENCHMARKS["latency"].parse(done.stdout, request).facts)


@pytest.mark.parametrize("mpi", each_mpi())
def test_the_way_that_messages_took_is_seen_not_asked(mpi: Mpi) -> None:
    if mpi.family not in TCP:
        pytest.skip("no recipe for this family")
    default, tcp = facts(mpi), facts(mpi, TCP[mpi.family])
    assert default["mpi.transport_taken"] == "memory"
    assert tcp["mpi.transport_taken"] == "loopback"
    assert default["lib.libc.so.build_id"] == tcp["lib.libc.so.build_id"]
    assert default["program.build_id"] == tcp["program.build_id"]
    assert default["mpi.loaded"] or default["mpi.library"]


@pytest.mark.slow
@pytest.mark.parametrize("mpi", each_mpi())
def test_libraries_are_distinguished_and_equal_launches_are_equal(mpi: Mpi) -> None:
    one, two = facts(mpi), facts(mpi)
    same = [key for key in one if key.startswith(("lib.", "program.", "mpi.", "rank.h", "rank.l"))]
    # What others' traffic hid is unknown, and equals nothing.
    known = [key for key in same if not (unknown(one[key]) or unknown(two[key]))]
    assert {key for key in known if one[key] != two[key]} == set()
    # A library without a build-id, such as MPICH's wheel, is identified by its contents.
    by_contents = {"mpi.build_id"} if "lib.libmpi.so.digest" in same else set()
    assert set(same) - set(known) - {"mpi.transport_taken"} == by_contents
    assert {"lib.libmpi.so.build_id", "lib.libmpi.so.digest"} & set(same)
    assert all(one[key] for key in same if key.endswith("build_id"))
    assert len(set(one["rank.libraries"])) == 1
    assert len(one["rank.cgroup"]) == 2


FLOOD = """
import socket, threading
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
other = server.accept()[0]
threading.Thread(target=lambda: [None for _ in iter(lambda: other.recv(1 << 18), b"")]).start()
print("flooding", flush=True)
while True:
    client.sendall(bytes(1 << 18))
"""


@pytest.mark.slow
def test_traffic_of_others_is_not_taken_for_that_of_the_ranks() -> None:
    """While somebody floods the loopback interface: the right word, or none."""
    mpi = any_mpi()
    if mpi.family not in TCP:
        pytest.skip("no recipe for this family")
    with subprocess.Popen([sys.executable, "-c", FLOOD], stdout=subprocess.PIPE) as flood:
        try:
            assert flood.stdout.readline() == b"flooding\n"
            words = [
                [facts(mpi, env)["mpi.transport_taken"] for _ in range(2)]
                for env in ({}, TCP[mpi.family])
            ]
        finally:
            flood.kill()
    for said, word in zip(words, ("memory", "loopback"), strict=True):
        assert all(one == word or unknown(one) for one in said)
    assert "memory" in words[0]


@pytest.mark.slow
def test_another_blas_in_front_of_the_program_is_named() -> None:
    """Any OpenBLAS that is here, by LD_PRELOAD: its build-id, and the kernels that it chose."""
    found = [
        path
        for path in Path("/usr/lib").glob("**/openblas*/libblas.so.3")
        if ctypes.util.find_library("gfortran")
    ]
    if not found:
        pytest.skip("no OpenBLAS")
    plain = facts(any_mpi())
    with_blas = facts(any_mpi(), {"LD_PRELOAD": str(found[0]), "OPENBLAS_CORETYPE": "Sandybridge"})
    assert "lib.blas.core" not in plain
    assert with_blas["lib.blas.core"].lower() == "sandybridge"
    assert with_blas["lib.libblas.so.build_id"]
    assert with_blas["rank.libraries"] != plain["rank.libraries"]


def test_a_library_without_build_id_has_the_digest_that_the_shell_gives_it(tmp_path: Path) -> None:
    mpi = any_mpi()
    (tmp_path / "pick.c").write_text("int picked(void) { return 1; }")
    library = tmp_path / "libpick.so.1"
    build = ["-shared", "-fPIC", "-Wl,--build-id=none", "-o", str(library)]
    subprocess.run(
        [mpi.mpicxx, *build, str(tmp_path / "pick.c")], env={**os.environ, **mpi.env}, check=True
    )
    reported = facts(mpi, {"LD_PRELOAD": str(library)})
    size, ends = library.stat().st_size, 2 * library.read_bytes()
    assert size < 1 << 18  # both ends are the whole
    sum_of_it = subprocess.run(["cksum"], input=ends, capture_output=True, check=True).stdout
    assert reported["lib.libpick.so.digest"] == f"{size}-{sum_of_it.split()[0].decode()}"
    assert "lib.libpick.so.build_id" not in reported


def test_a_first_line_without_the_newer_keys_is_still_read() -> None:
    fixture = Path(__file__).parent / "fixtures" / "latency" / "good-0"
    asked = json.loads(fixture.with_suffix(".json").read_text())
    request = Request(asked["parameters"], asked["ranks"])
    parsed = BENCHMARKS["latency"].parse(fixture.with_suffix(".out").read_text(), request)
    assert "mpi.transport_taken" not in parsed.facts
    assert parsed.facts["mpi.library"]
