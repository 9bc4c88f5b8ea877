"""The network that an arm names, on real hosts: refused before a launch where a host lacks it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mpis import any_mpi
from paribus.__main__ import main
from paribus.launch.interfaces import addresses
from studies import write_study

ARMS = '[arms.a]\nhosts = "pocket:2"\n{a}\n[arms.b]\nhosts = "pocket:2"\n{b}\n'


def written(folder: Path, named: str, b: str = "") -> str:
    a = f'network = "{named}"'
    path = write_study(folder, arms=ARMS.format(a=a, b=b or a), more="ranks = 2")
    program = folder / "steady.py"
    program.write_text(program.read_text().replace("mpi=False", "mpi=True"))
    return str(path)


@pytest.mark.parametrize("named", ["10.99.0.0/16", "ib7", "fd00::/8"])
def test_a_network_that_hosts_lack_is_refused_before_a_launch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], named: str
) -> None:
    """Open MPI would leave an unknown range out, and measure another network."""
    out = tmp_path / "out"
    assert main(["run", written(tmp_path, named), "--out", str(out)]) == 2
    cause, fix = capsys.readouterr().err.splitlines()[-2:]
    assert cause.endswith(
        f"arms.a.network: h1 and h2 have no network {named}; h1 has lo, eth0 (10.77.0.1/16)"
    )
    assert "every host of the arm" in fix
    assert not out.exists()


@pytest.mark.parametrize("named", ["10.77.0.0/16", "10.0.0.0/8", "eth0", "ib7,eth0"])
def test_one_that_they_have_is_not(tmp_path: Path, named: str) -> None:
    assert main(["run", written(tmp_path, named), "--dry-run", "--no-pilot"]) == 0


def test_one_that_commands_of_the_arm_may_bring_is_looked_for_after_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = written(tmp_path, "eth0", 'network = "ib7"\nbefore = "true"')
    assert main(["run", study, "--dry-run", "--no-pilot"]) == 0
    assert main(["run", study, "--out", str(tmp_path / "out")]) == 2
    assert "arms.b.network: h1 and h2 have no network ib7" in capsys.readouterr().err
    assert not list((tmp_path / "out" / "logs").glob("0*"))


@pytest.mark.installed
def test_shared_memory_between_hosts_is_refused_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = Path(any_mpi().mpirun).parent
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    arm = '[arms.{0}]\nhosts = "pocket:2"\ntransport = "shm"\n{1}\n'
    kernel = '[[benchmarks]]\nname = "latency"'
    beside = "\n".join((arm.format("a", "ranks_per_host = 2"), arm.format("b", "")))
    study = str(
        write_study(tmp_path, arms=beside, factor="nothing", more=kernel, plan='bind = "none"')
    )
    assert main(["run", study, "--dry-run", "--no-pilot"]) == 2
    said = capsys.readouterr().err
    assert "arms.b.transport: ranks of latency on h1, h2 have no shared memory in common" in said


def test_an_address_that_no_route_leads_to_counts_too() -> None:
    """As that of a router, or of a fabric without numbers between its switches."""
    routes = [
        "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask",
        "eth0\t00004D0A\t00000000\t0001\t0\t0\t0\t0000FFFF",
    ]
    trie = ["|-- 10.77.0.1", "/32 host LOCAL", "|-- 192.0.2.7", "/32 host LOCAL"]
    found = [(name, str(address)) for name, address in addresses(routes, trie)]
    assert found == [("eth0", "10.77.0.1/16"), ("", "192.0.2.7/32")]
