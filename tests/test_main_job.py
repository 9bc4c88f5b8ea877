"""The main job on real MPI: shared memory against TCP, and bridged containers against the host."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from mpis import any_mpi
from paribus.core import State
from paribus.plan import read_plan
from paribus.store import Store
from processes import children, ended, ran
from studies import launches_in, scratch_of

USER = 12345
TRANSPORT = """
question = "How much slower is TCP?"
factor = "transport"
[arms.shm]
transport = "shm"
[arms.tcp]
transport = "tcp"
[[benchmarks]]
name = "latency"
bytes = ["8 B", "4 KiB"]
samples = 50
[plan]
blocks = 8
"""
BRIDGED = TRANSPORT.replace('factor = "transport"', 'factor = "network"').replace(
    '[arms.shm]\ntransport = "shm"\n[arms.tcp]\ntransport = "tcp"',
    '[arms.host]\ntransport = "tcp"\n[arms.bridged]\ntransport = "tcp"\n'
    'container = { engine = "namespace" }\nranks_per_host = 1',
)


def traces() -> dict[str, set[str]]:
    """Return what a launch could leave behind on the machine."""
    namespaces = set[str]()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ends while it is looked at
            namespaces |= {str(link.readlink()) for link in (process / "ns").iterdir()}
    return {
        "interfaces": {path.name for path in Path("/sys/class/net").iterdir()},
        "namespaces": namespaces,
        "mounts": set(Path("/proc/self/mounts").read_text().splitlines()),
        "named namespaces": {str(p) for p in Path("/run/netns").glob("*")},
    }


def new_traces(before: dict[str, set[str]], within_s: float = 5.0) -> dict[str, set[str]]:
    """Return what is there that was not before, once it has had time to go (nothing: at once)."""
    deadline = time.monotonic() + within_s
    while True:
        after = traces()
        new = {key: after[key] - before[key] for key in before if after[key] - before[key]}
        if not new or time.monotonic() > deadline:
            return new
        time.sleep(0.05)


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory that an ordinary user may enter and write to, and no trace left after."""
    folder = Path("/tmp") / f"p{os.getpid()}-{random.randrange(10**6)}"
    folder.mkdir(mode=0o777)
    folder.chmod(0o1777)
    before = traces()
    yield folder
    left = new_traces(before)
    files = scratch_of(folder / "out") if (folder / "out" / "launches.db").exists() else []
    shutil.rmtree(folder, ignore_errors=True)
    assert left == {}
    assert files == []


def as_user(user: int, command: list[str], env: dict[str, str]) -> list[str]:
    """Return `command` run as `user`, by a Python that this user may execute."""
    if os.getuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("becoming another user needs root and setpriv")
    become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for python in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        source = Path(__file__).parent.parent / "src"
        env["PYTHONPATH"] = f"{source}:{sysconfig.get_path('purelib')}"
        code = "import paribus, numpy, rich, subprocess as s, sys; s.run([sys.executable, '-V'])"
        tried = [*become, python, "-c", code]
        if subprocess.run(tried, env=env, capture_output=True, check=False).returncode == 0:
            return [*become, python, *command[1:]]
    pytest.skip(f"an ordinary user may execute no {version} here that sees this checkout")


def run(place: Path, study: str, *options: str, user: int | None = None) -> tuple[int, str, str]:
    """Run `study` in `place`, as `user` if one is given; return exit code, stdout, stderr."""
    mpi = any_mpi()
    (place / "study.toml").write_text(study)
    command = [sys.executable, "-m", "paribus", "run", "study.toml", "--out", "out", *options]
    env = {**os.environ, "PATH": f"{Path(mpi.mpicxx).parent}:{os.environ['PATH']}"}
    if user is not None:
        command = as_user(user, command, env)
        env |= {"HOME": str(place), "PARIBUS_CACHE": str(place / "cache")}
    done = ran(command, cwd=place, env=env, timeout=250)
    return done.returncode, done.stdout, done.stderr


def test_tcp_is_slower_than_shared_memory(place: Path) -> None:
    code, out, err = run(place, TRANSPORT)
    assert code == 0, out + err
    assert "tcp is slower in latency" in out
    verdict = json.loads((place / "out" / "verdict.json").read_text())
    (headline,) = verdict["headlines"]
    # Whatever the machine's state: TCP takes system calls, shared memory takes none.
    assert headline["comparison"]["low"] > 1.5
    launches = launches_in(place / "out")
    assert len(launches) == 18
    for one in launches:
        assert one.outcome.state is State.OK, one.outcome.error
        assert one.outcome.facts["rank.affinity"] == ["0", "1"] or len(os.sched_getaffinity(0)) > 2
        assert {len(sample.values) for sample in one.outcome.samples} <= set(range(20, 51))
        assert set(one.outcome.facts) >= {"mpi.library", "kernel.build", "limits.nofile"}


@pytest.mark.slow
@pytest.mark.parametrize("user", [None, USER], ids=["self", "ordinary user"])
def test_bridged_containers_against_the_host(place: Path, user: int | None) -> None:
    code, out, err = run(place, BRIDGED, user=user)
    assert code == 0, out + err
    assert "bridged" in out.splitlines()[0]
    launches = launches_in(place / "out")
    hosts = {arm: set() for arm in ("host", "bridged")}  # type: dict[str, set[str]]
    for one in launches:
        assert one.outcome.state is State.OK, one.outcome.error
        hosts[one.launch.arm].add(" ".join(one.outcome.facts["rank.hosts"]))
        assert len(set(one.outcome.facts["rank.machines"])) == 1
        # Two containers that each count as a host, and still a core for each rank.
        assert len(set(one.outcome.facts["rank.affinity"])) == 2
    assert hosts["bridged"] == {"c1 c2"}
    assert len(hosts["host"]) == 1


@pytest.mark.slow
def test_sigkill_inside_containers_leaves_nothing_and_resume_goes_on(place: Path) -> None:
    mpi = any_mpi()
    (place / "study.toml").write_text(BRIDGED)
    env = {**os.environ, "PATH": f"{Path(mpi.mpicxx).parent}:{os.environ['PATH']}"}
    before = traces()
    moments = random.Random(4)
    for kill in range(8):
        options = ["--resume"] if kill else []
        command = [sys.executable, "-m", "paribus", "run", "study.toml", "--out", "out", *options]
        with subprocess.Popen(
            command, cwd=place, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            while not (place / "out" / "launches.db").exists():
                time.sleep(0.02)
            time.sleep(moments.uniform(0.3, 1.5))
            wardens = children(process.pid)
            process.kill()
        assert ended(wardens)
        assert new_traces(before) == {}
    code, out, err = run(place, BRIDGED, "--resume")
    assert code == 0, out + err
    plan = read_plan(place / "out")
    with Store(place / "out") as store:
        assert store.counting() == {launch.number for launch in plan.launches}


def test_forbidden_namespaces_are_named_and_another_study_is_offered(place: Path) -> None:
    """A user namespace whose own limit of network namespaces is 0: none can be made inside."""
    if shutil.which("unshare") is None:
        pytest.skip("unshare is missing")
    mpi = any_mpi()
    (place / "study.toml").write_text(BRIDGED)
    script = 'echo 0 >/proc/sys/user/max_net_namespaces && exec "$@"'
    command = [sys.executable, "-m", "paribus", "run", "study.toml", "--out", "out"]
    done = ran(
        ["unshare", "--user", "--map-root-user", "sh", "-c", script, "sh", *command],
        cwd=place,
        env={**os.environ, "PATH": f"{Path(mpi.mpicxx).parent}:{os.environ['PATH']}"},
        code=2,
    )
    assert "user.max_net_namespaces is 0" in done.stderr
    assert "mpi-transport" in done.stderr
    assert not (place / "out").exists()
