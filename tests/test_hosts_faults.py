"""Whole studies on hosts that fail: bounded in time, the node named, nothing recorded lost."""

from __future__ import annotations

import os
import random
import re
import shlex
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from containers.gates import Gate, gated
from mpis import any_mpi
from paribus.core import State
from paribus.launch.execute import HOSTS
from paribus.launch.local import LocalStation
from paribus.plan import read_plan
from paribus.store import Store
from processes import children, needs, ran
from studies import command, launches_in, paribus

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

LAUNCHES = 18
"""Those of the study: a warm-up of each arm, and 8 blocks."""

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


# --- no fault ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_each_size_of_a_study_that_scales_takes_its_hosts(tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    scales = '[scaling]\nhosts = [1, 2]\nkind = "weak"\n[[benchmarks]]\nname = "triad"'
    text = STUDY.format(arm=POCKET).split("[[benchmarks]]")[0]
    study.write_text(f'{text}{scales}\nbytes = "64 KiB"\n[plan]\nseed = 1\n')
    with Sitting(study) as sitting:
        sitting.until(lambda: sitting.stored() >= 4)  # the warm-up of both sizes
        sitting.process.send_signal(signal.SIGINT)
        assert sitting.end()[0] == 130, sitting.said()
    seen = {
        one.launch.benchmark: len(set(one.outcome.facts["rank.hosts"]))
        for one in launches_in(tmp_path / "out")
        if one.outcome.state is State.OK
    }
    assert seen == {"triad on 1 host": 1, "triad on 2 hosts": 2}


# --- a host that goes --------------------------------------------------------------------------

PLACES = 20
"""Places of a study in which a host goes; 1 without --long."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        several = PLACES if metafunc.config.getoption("--long") else 1
        metafunc.parametrize("seed", [None] * several, ids=[f"place{i}" for i in range(several)])


def when(sitting: Sitting, draw: random.Random) -> str:
    """Wait for a place of a study, and return what it is called."""
    place = draw.choice(["facts", "before a launch", "MPI_Init", "in a launch", "the end"])
    after = LAUNCHES if place == "the end" else draw.randrange(LAUNCHES - 2)
    if place == "facts":
        sitting.until((sitting.out / "launches.db").exists)
    else:
        sitting.until(lambda: sitting.stored() >= after)
    if place == "MPI_Init":
        sitting.until(
            lambda: any(
                "/latency-" in _read(f"/proc/{one}/cmdline").split("\0")[0]
                for one in below(sitting.process.pid)
            )
        )
    most = {"before a launch": 0.02, "MPI_Init": 0.1, "the end": 0.3}.get(place, 0.7)
    time.sleep(draw.uniform(0, most))
    return f"{place}, after {after} launches"


@pytest.mark.slow
def test_a_host_that_goes_is_named_and_the_study_resumes(tmp_path: Path, seed: None) -> None:
    number = random.SystemRandom().randrange(1 << 30)
    draw = random.Random(number)
    study, host = write(tmp_path), draw.choice(["h1", "h2"])
    with Sitting(study) as sitting:
        sitting.until(lambda: len(sitting.pids()) == 2)
        place = f"{when(sitting, draw)}, {host}, seed {number}"
        pids = sitting.pids()
        if host not in pids:  # The study was over before.
            assert sitting.end()[0] == 0, place
            return
        os.kill(pids[host], signal.SIGKILL)
        before = launches(sitting.out)
        code, said = sitting.end()
    over = code == 0 and not (before ^ launches(tmp_path / "out"))
    if not over:
        assert code == 2, (place, said)
        assert f"{host}: " in said, (place, said)
        assert "--resume" in said, (place, said)
    planned_and_whole(study, before, host if "does not count" in said else "")


def planned_and_whole(study: Path, before: set[tuple[int, float]], named: str = "") -> None:
    """Resume a study; demand that it ends with the planned launches, and the report names `named`.

    `before` are launches that must not be lost.
    """
    out = study.parent / "out"
    paribus("run", study, "--out", out, "--resume", cwd=study.parent, code=0)
    whole(out, before)
    if named:
        reports = paribus("report", out, cwd=study.parent).stdout, (out / "report.html").read_text()
        assert all(f"{named}" in " ".join(one.split()) for one in reports)


def whole(out: Path, before: set[tuple[int, float]]) -> None:
    """Demand that each planned launch of a study counts once, and that `before` is still there."""
    assert before <= launches(out)
    with Store(out) as store:
        assert store.counting() == {one.number for one in read_plan(out).launches}
        assert all(one.outcome.state is State.OK for one in store.launches(samples=False))


def voided(out: Path) -> list[str]:
    """Return why launches of a study do not count."""
    return [one.void for one in launches_in(out, samples=False, void=True) if one.void]


# --- faults that pass, and faults that stay -------------------------------------------------------


def inside(pid: int, script: str) -> None:
    """Run a script in the host whose first process is `pid`."""
    argv = ["nsenter", "-t", str(pid), "-m", "-u", "-n", "-i", "-p", "/bin/sh", "-c", script]
    subprocess.run(argv, check=True, capture_output=True)


REBOOT = """
cat /proc/sys/kernel/random/uuid >/dev/shm/boot
mount --bind /dev/shm/boot /proc/sys/kernel/random/boot_id
kill -KILL $(grep -sL 2147483647 /proc/[0-9]*/cmdline | cut -d / -f 3 | grep -v -x -e 1 -e $$)
rm -rf /tmp/paribus-* /dev/shm/paribus-*
"""
"""A new boot_id, no process but the two that keep the host, no file of before."""


@pytest.mark.long
def test_a_study_goes_on_after_a_cut_link_and_a_reboot(tmp_path: Path) -> None:
    study = write(tmp_path)
    with Sitting(study) as sitting:
        sitting.until(lambda: sitting.stored() >= 3)
        pids = sitting.pids()
        inside(pids["h2"], "ip link set eth0 down")
        time.sleep(2)
        inside(pids["h2"], "ip link set eth0 up")
        sitting.until(lambda: sitting.stored() >= 9)
        inside(pids["h2"], REBOOT)
        code, said = sitting.end(120)
    assert code == 0, said
    out = tmp_path / "out"
    whole(out, set())
    why = voided(out)
    assert any(re.match(r"h2 \(from h1\): no launch started there for \d+ s", one) for one in why)
    assert "h2 was rebooted in mid-launch" in why
    assert HOSTS in why
    reported = " ".join(paribus("report", out, cwd=tmp_path).stdout.split())
    assert "do not count: h2 was rebooted in mid-launch" in reported


FULL = "mount -o remount,size=1m /tmp; cat /dev/zero >/tmp/filler 2>/dev/null; true"


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (FULL, "h2: the launch could not be started: its guard was ended, or could not write"),
        ("ip link set eth0 down", "h2 (from h1): no launch starts there any more"),
    ],
    ids=["disk", "link"],
)
@pytest.mark.long
def test_a_study_ends_resumable_while_a_host_is_of_no_use(
    tmp_path: Path, fault: str, said: str
) -> None:
    study = write(tmp_path)
    with Sitting(study) as sitting:
        sitting.until(lambda: sitting.stored() >= 3)
        before = launches(sitting.out)
        inside(sitting.pids()["h2"], fault)
        code, printed = sitting.end()
    assert code == 2, printed
    assert said in printed
    assert "no arm caused the failure" in printed
    assert "--resume" in printed
    planned_and_whole(study, before, said)


# --- hosts that are reached over ssh --------------------------------------------------------------


@pytest.fixture
def gate() -> Iterator[Gate]:
    """Two hosts with sshd, which are there before the study and after it."""
    needs("sshd")
    with LocalStation() as local, gated(2, f"{local.here}/pocket") as gate:
        yield gate


def over_ssh(gate: Gate, hosts: str = "") -> str:
    """Return what an arm says that reaches the hosts of `gate` over ssh."""
    names = hosts or ",".join(address for _, address in gate.addresses)
    ssh = f'user = "root", identity = "{gate.identity}", known_hosts = "{gate.known_hosts}"'
    return f'hosts = "{names}"\nssh = {{ {ssh} }}'


def run_over_ssh(study: Path, gate: Gate, *words: str) -> subprocess.CompletedProcess[str]:
    """Return how `paribus run` ended, started where the addresses of `gate` are known."""
    argv = [*gate.prefix, *command("run", study, "--out", study.parent / "out", *words)]
    return ran(argv, timeout=120, cwd=study.parent)


def on(gate: Gate, host: int, script: str) -> str:
    """Return what a shell on a host prints."""
    argv = [*gate.pocket.hosts[host].shell, "-c", script]
    return ran(argv, code=0).stdout


def test_one_machine_under_two_names_is_refused(gate: Gate, tmp_path: Path) -> None:
    first, second = (address for _, address in gate.addresses)
    other = first.rpartition(".")[0] + ".200"
    on(gate, 0, f"ip addr add {other}/16 dev eth0")
    known = Path(gate.known_hosts)
    known.write_text(known.read_text().replace(f"h1,{first}", f"h1,{first},{other}"))
    study = write(tmp_path, over_ssh(gate, f"{first},{second},{other}"))
    done = run_over_ssh(study, gate)
    assert done.returncode == 2
    assert f"{study}: arms.a.hosts: {first} and {other} are one machine" in done.stderr
    assert "name each machine once" in done.stderr
    assert not (tmp_path / "out").exists()


def test_two_clusters_are_not_the_same_machines(gate: Gate, tmp_path: Path) -> None:
    addresses = [address for _, address in gate.addresses]
    others = [f"{address.rpartition('.')[0]}.{100 + n}" for n, address in enumerate(addresses)]
    known = Path(gate.known_hosts)
    for n, (first, other) in enumerate(zip(addresses, others, strict=True)):
        on(gate, n, f"ip addr add {other}/16 dev eth0")
        known.write_text(known.read_text().replace(f",{first}", f",{first},{other}"))
    study = tmp_path / "study.toml"
    text = STUDY.replace('"nothing"', '"cluster"').replace("[arms.b]\n{arm}", "[arms.b]\n{b}")
    arms = {"arm": over_ssh(gate), "b": over_ssh(gate, ",".join(others[::-1]))}
    study.write_text(text.format(**arms))
    done = run_over_ssh(study, gate)
    assert done.returncode == 2
    assert f"{study}: arms.b.hosts: the hosts of the arms a and b are the same" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("there", "said"),
    [
        ("echo 'mpirun (Open MPI) 1.6.5'", "this host has Open MPI 1.6.5"),
        ("echo 'HYDRA build details:'; echo '    Version: 4.0.1'", "this host has MPICH 4.0.1"),
        ("exit 127", "no MPI that answers"),
    ],
)
def test_other_mpis_on_the_hosts_of_an_arm_are_refused(
    gate: Gate, tmp_path: Path, there: str, said: str
) -> None:
    mpi = any_mpi()
    on(
        gate,
        1,
        f"printf '#!/bin/sh\\n%s\\n' {shlex.quote(there)} >/tmp/mpirun && chmod 755 /tmp/mpirun &&"
        f" mount --bind /tmp/mpirun {mpi.mpirun}",
    )
    study = write(tmp_path, over_ssh(gate) + f'\nmpi = "{Path(mpi.mpirun).parent.parent}"')
    done = run_over_ssh(study, gate)
    assert done.returncode == 2
    assert f"{gate.addresses[1][1]}: {Path(mpi.mpirun)}" in done.stderr
    assert said in done.stderr
    assert f"install {mpi} at that path on every host" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.long
def test_a_lost_connection_is_made_again_or_the_host_is_named(gate: Gate, tmp_path: Path) -> None:
    """The server of a connection is killed; later sshd as well."""
    host = gate.addresses[1][1]
    study = write(tmp_path, over_ssh(gate))
    with Sitting(study, prefix=gate.prefix) as sitting:
        sitting.until(lambda: sitting.stored() >= 3)
        on(gate, 1, "kill -KILL $(pidof sshd | tr ' ' '\\n' | grep -v -x $(cat /run/sshd.pid))")
        sitting.until(lambda: sitting.stored() >= 9)
        before = launches(sitting.out)
        on(gate, 1, "kill -KILL $(pidof sshd)")
        code, said = sitting.end()
    assert code == 2, said
    assert f"{host}: the connection was lost in mid-launch, and there is no answer any more" in said
    assert "--resume" in said
    assert f"the connection to {host} was lost in mid-launch" in voided(tmp_path / "out")
    on(gate, 1, "/usr/sbin/sshd -f /run/paribus/sshd_config")
    done = run_over_ssh(study, gate, "--resume")
    assert done.returncode == 0, done.stderr
    whole(tmp_path / "out", before)
