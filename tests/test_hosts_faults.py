"""Whole studies on hosts that fail: bounded in time, the node named, nothing recorded lost."""

from __future__ import annotations

import os
import re
import shlex
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from mpis import any_mpi
from paribus.platform.local import LocalStation
from paribus.platform.pocket import Pocket
from processes import children
from studies import command

STUDY = """
question = "Does anything differ?"
factor = "nothing"
[arms.a]
{arm}
[arms.b]
{arm}
[[benchmarks]]
name = "latency"
ranks = 2
bytes = ["8 B"]
samples = 10
iterations = 10
[plan]
seed = 1
blocks = 8
"""

POCKET = 'hosts = "pocket:2"'

ENDED_S = 60.0
"""Seconds in which a sitting ends whose node has gone: a quarter of that, on a quiet machine."""


@pytest.fixture(autouse=True)
def _needs(monkeypatch: pytest.MonkeyPatch) -> None:
    any_mpi()
    if os.geteuid():
        pytest.skip("needs root: it ends processes of hosts, and cuts their links")
    # Where hosts have a disk of their own.
    monkeypatch.delenv("TMPDIR", raising=False)


def write(folder: Path, arm: str = POCKET) -> Path:
    path = folder / "study.toml"
    path.write_text(STUDY.format(arm=arm))
    return path


class Sitting:
    """A sitting of a study just started; `hosts` are the first processes of its pocket hosts."""

    def __init__(self, study: Path, *words: str, prefix: tuple[str, ...] = ()) -> None:
        self.out = study.parent / "out"
        self.log = (study.parent / "said").open("w+")
        self.process = subprocess.Popen(
            [*prefix, *command("run", study, "--out", self.out, *words)],
            stdout=subprocess.DEVNULL,
            stderr=self.log,
            cwd=study.parent,
        )

    def __enter__(self) -> Sitting:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self.log.close()

    def until(self, true: Callable[[], object]) -> None:
        """Wait until something is true, while the sitting goes on."""
        deadline = time.monotonic() + 120
        while not true():
            assert self.process.poll() is None, self.said()
            assert time.monotonic() < deadline
            time.sleep(0.005)

    def end(self, within_s: float = ENDED_S) -> tuple[int, str]:
        """Return how it ended, in time, and what it said."""
        code = self.process.wait(within_s)
        return code, self.said()

    def said(self) -> str:
        self.log.flush()
        return Path(self.log.name).read_text()

    def pids(self) -> dict[str, int]:
        """Return the first process of each pocket host, by name."""
        found = {}
        for pid in below(self.process.pid):
            words = _read(f"/proc/{pid}/cmdline").split("\0")
            first = re.search(r"^NSpid:.*\t1$", _read(f"/proc/{pid}/status"), re.MULTILINE)
            if len(words) > 3 and words[1].endswith("/host.sh") and first:
                found[words[3]] = pid
        return found

    def stored(self) -> int:
        """Return how many launches are stored."""
        return len(launches(self.out))


def below(pid: int) -> list[int]:
    return [one for child in children(pid) for one in (child, *below(child))]


def _read(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


def launches(out: Path) -> set[tuple[int, float]]:
    """Return number and start of every stored launch; none while the store is being made."""
    try:
        with closing(sqlite3.connect(f"file:{out}/launches.db?mode=ro", uri=True)) as db:
            return set(db.execute("SELECT number, started FROM launches"))
    except sqlite3.OperationalError:
        return set()


# --- hosts that are reached over ssh --------------------------------------------------------------


@pytest.fixture
def gated() -> Iterator[Pocket]:
    """Two hosts with sshd, which are there before the study and after it."""
    with (
        LocalStation() as local,
        Pocket(2, sshd=True, directory=f"{local.here}/pocket") as pocket,
    ):
        yield pocket


def over_ssh(pocket: Pocket, hosts: str = "") -> str:
    """Return what an arm says that reaches the hosts of `pocket` over ssh."""
    gate = pocket.gate
    assert gate is not None
    names = hosts or ",".join(address for _, address in gate.addresses)
    ssh = f'user = "root", identity = "{gate.identity}", known_hosts = "{gate.known_hosts}"'
    return f'hosts = "{names}"\nssh = {{ {ssh} }}'


def run_over_ssh(study: Path, pocket: Pocket, *words: str) -> subprocess.CompletedProcess[str]:
    """Return how `paribus run` ended, started where the addresses of `pocket` are known."""
    assert pocket.gate is not None
    argv = [*pocket.gate.prefix, *command("run", study, "--out", study.parent / "out", *words)]
    return subprocess.run(
        argv, capture_output=True, text=True, timeout=120, check=False, cwd=study.parent
    )


def on(pocket: Pocket, host: int, script: str) -> str:
    """Return what a shell on a host prints."""
    argv = [*pocket.hosts[host].shell, "-c", script]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def test_one_machine_under_two_names_is_refused(gated: Pocket, tmp_path: Path) -> None:
    assert gated.gate is not None
    first, second = (address for _, address in gated.gate.addresses)
    other = first.rpartition(".")[0] + ".200"
    on(gated, 0, f"ip addr add {other}/16 dev eth0")
    known = Path(gated.gate.known_hosts)
    known.write_text(known.read_text().replace(f"h1,{first}", f"h1,{first},{other}"))
    study = write(tmp_path, over_ssh(gated, f"{first},{second},{other}"))
    done = run_over_ssh(study, gated)
    assert done.returncode == 2
    assert f"{study}: arms.a.hosts: {first} and {other} are one machine" in done.stderr
    assert "name each machine once" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("there", "said"),
    [
        ("echo 'mpirun (Open MPI) 1.6.5'", "this host has Open MPI 1.6.5"),
        ("echo 'HYDRA build details:'; echo '    Version: 4.0.1'", "this host has MPICH 4.0.1"),
        ("exit 127", "no MPI that answers"),
    ],
)
def test_other_mpis_on_the_hosts_of_an_arm_are_refused(
    gated: Pocket, tmp_path: Path, there: str, said: str
) -> None:
    mpi = any_mpi()
    on(
        gated,
        1,
        f"printf '#!/bin/sh\\n%s\\n' {shlex.quote(there)} >/tmp/mpirun && chmod 755 /tmp/mpirun &&"
        f" mount --bind /tmp/mpirun {mpi.mpirun}",
    )
    study = write(tmp_path, over_ssh(gated) + f'\nmpi = "{Path(mpi.mpirun).parent.parent}"')
    done = run_over_ssh(study, gated)
    assert done.returncode == 2
    assert gated.gate is not None
    assert f"{gated.gate.addresses[1][1]}: {Path(mpi.mpirun)}" in done.stderr
    assert said in done.stderr
    assert f"install {mpi} at that path on every host" in done.stderr
    assert not (tmp_path / "out").exists()
