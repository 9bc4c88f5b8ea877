"""Each difference made for real in one arm only, and seen by name: no mocks, no invented facts."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any, get_args

import pytest

from mpis import any_mpi, each_mpi, installations
from paribus.audit.audit import audit_study, of_nodes
from paribus.core import Mpi, Transport
from paribus.launch.gathering import asked, gather
from paribus.launch.local import LocalStation
from paribus.launch.ready import make_ready
from paribus.launch.unswitched import switches_of
from paribus.studyfile.load import load_study
from processes import executable, ran
from studies import RANDOM, STEADY, command, paribus, write_study

LATENCY = """
[[benchmarks]]
name = "latency"
bytes = ["8 B"]
samples = 20
"""
OURS = (
    "read -r _ _ _ up _ </proc/$PPID/stat;"
    " for p in $up $(cat /proc/$up/task/*/children); do {}; done"
)
"""Of sh: what is done to Paribus and to the processes that start its launches and switches."""


def prefix() -> str:
    return str(Path(any_mpi().mpicxx).parent.parent)


def study(one: str = "", other: str = "", factor: str = "nothing", more: str = LATENCY) -> str:
    """Return a study of two arms with the same MPI, unless an arm says otherwise."""
    arms = ""
    for name, text in (("plain", one), ("changed", other)):
        mpi = "" if "mpi =" in text else f'mpi = "{prefix()}"\n'
        arms += f'[arms.{name}]\ntransport = "shm"\n{mpi}{text}\n'
    return f'question = "?"\nfactor = "{factor}"\n{arms}{more}'


def audit(
    folder: Path, text: str, wrap: tuple[str, ...] = (), code: int = 3, **env: str
) -> dict[str, dict[str, Any]]:
    """Return the differences that `paribus audit` shows of a study, by key."""
    (folder / "study.toml").write_text(text)
    done = ran(
        [*wrap, *command("audit", "study.toml", "--json")],
        cwd=folder,
        env={**os.environ, **env},
        timeout=200,
        code=code,
    )
    answer = json.loads(done.stdout)
    assert answer["schema"] == "paribus.audit/1"
    return {one["key"]: one for one in answer["differences"] if not one["node"]}


def unexplained(found: dict[str, dict[str, Any]]) -> set[str]:
    return {key for key, one in found.items() if one["kind"] == "unexplained"}


def needs_root(*tools: str) -> None:
    if os.getuid() != 0:
        pytest.skip("making this difference needs root")
    for tool in tools:
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")


def in_namespace(*flags: str, script: str = ":") -> tuple[str, ...]:
    """Return what carries a command out in namespaces of its own, after `script`."""
    needs_root("unshare", "ip")
    tried = subprocess.run(["unshare", *flags, "true"], capture_output=True, check=False)
    if tried.returncode:
        pytest.skip(f"no namespaces here: {tried.stderr.decode().strip()}")
    return ("unshare", *flags, "sh", "-c", f'{script} && exec "$@"', "sh")


def ours(action: str) -> str:
    """Return a command of a study that runs `action` for $p, each of our processes."""
    return f"sh -c '{OURS.format(action)}'"


@pytest.mark.slow
def test_another_mpi_in_one_arm(tmp_path: Path) -> None:
    families = {mpi.family: mpi for mpi in installations()}
    if len(families) < 2:
        pytest.skip("one MPI family only, on the PATH, beside this Python or in PARIBUS_TEST_MPI")
    first, second = (str(Path(m.mpicxx).parent.parent) for m in list(families.values())[:2])
    text = study(f'mpi = "{first}"', f'mpi = "{second}"')
    found = audit(tmp_path, text)
    assert {"kernel.build", "program.build_id"} <= unexplained(found)
    assert any(key.startswith("lib.libmpi") for key in unexplained(found))
    found = audit(tmp_path, text.replace('"nothing"', '"mpi"'), code=0)
    assert found["kernel.build"]["kind"] == "factor"


@pytest.mark.slow
@pytest.mark.parametrize("mpi", each_mpi())
def test_the_factor_explains_what_a_launcher_sets_for_a_transport(mpi: Mpi, tmp_path: Path) -> None:
    """Each family has variables of its own for it, of which the study names none.

    The facts of each arm are gathered once and compared in all pairs.
    """
    prefix, names = Path(mpi.mpicxx).parent.parent, get_args(Transport)
    arms = "".join(f'[arms.{name}]\nmpi = "{prefix}"\ntransport = "{name}"\n' for name in names)
    path = tmp_path / "study.toml"
    path.write_text(f'question = "?"\nfactor = "transport"\n{arms}{LATENCY}')
    whole = load_study(path)
    ready = make_ready(whole, lambda _: None)
    with LocalStation() as here, switches_of(whole) as switches:
        nodes = of_nodes(gather(whole, ready, dict.fromkeys(names, here), switches, lambda _: None))
        for pair in combinations(whole.arms, 2):
            study = replace(whole, arms=pair)
            ours = {arm.name: ready[arm.name] for arm in pair}
            asks = asked(study, ours, switches)
            answer = audit_study(study, {"latency": "point to point"}, nodes, asks, {})
            kinds = {one.key: one.kind for one in answer.differences if not one.node}
            assert "unexplained" not in kinds.values()
            assert kinds["mpi.transport"] == "factor"


def test_another_blas_by_the_library_path(tmp_path: Path) -> None:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler (cc)")
    (tmp_path / "blas.c").write_text("double ddot_(void) { return FACTOR * 1.25; }\n")
    (tmp_path / "user.c").write_text("double ddot_(void); int main(void) { return ddot_() < 0; }\n")
    for name, factor in (("reference", 1), ("tuned", 2)):
        (tmp_path / name).mkdir()
        build = f"cc -shared -fPIC -DFACTOR={factor} -Wl,--build-id -Wl,-soname,libblas.so.3"
        target = f"{name}/libblas.so.3"
        subprocess.run([*build.split(), "blas.c", "-o", target], cwd=tmp_path, check=True)
    link = "cc user.c reference/libblas.so.3 -o user"
    subprocess.run(link.split(), cwd=tmp_path, check=True)
    module = STEADY.format(mark="blas").replace('"/bin/sh", "-c"', f'"{tmp_path}/user"')
    (tmp_path / "steady.py").write_text(module.replace('"shell"', '"compute"'))
    more = '[[benchmarks]]\nfile = "steady.py"\n'
    one, other = (
        f'env = {{ LD_LIBRARY_PATH = "{tmp_path}/{name}" }}' for name in ("reference", "tuned")
    )
    found = audit(tmp_path, study(one, other, more=more))
    assert "lib.libblas.so.build_id" in unexplained(found)
    assert found["lib.libblas.so.build_id"]["rank"] == 3
    assert "env.LD_LIBRARY_PATH" in unexplained(found)
    found = audit(tmp_path, study(one, other, more=more, factor="library"), code=0)
    assert found["lib.libblas.so.build_id"]["kind"] == "factor"


REAL_BLAS = {
    name: Path(f"/usr/lib/{os.uname().machine}-linux-gnu/{name}")
    for name in ("blas", "openblas-pthread", "openblas-serial", "blis-pthread")
}
"""Where Debian keeps the libblas.so.3 of each package, side by side."""

HPCC = """
[[benchmarks]]
name = "hpcc"
"""


def debian_mpi() -> str:
    """Return the prefix of the MPI that Debian's hpcc is built with."""
    hpcc = shutil.which("hpcc")
    if hpcc is None or not Path("/usr/bin/mpirun").exists():
        pytest.skip("no hpcc of the distribution with its MPI")
    return "/usr"


@pytest.mark.slow
@pytest.mark.parametrize("other", ["blas", "openblas-serial", "blis-pthread"])
def test_another_real_blas_by_the_library_path(tmp_path: Path, other: str) -> None:
    """The distribution's hpcc, asked where it is launched: OpenBLAS against another library."""
    mpi = f'mpi = "{debian_mpi()}"\n'
    for name in ("openblas-pthread", other):
        if not (REAL_BLAS[name] / "libblas.so.3").exists():
            pytest.skip(f"no libblas.so.3 of {name}")
    one, two = (
        f'{mpi}env = {{ LD_LIBRARY_PATH = "{REAL_BLAS[name]}" }}'
        for name in ("openblas-pthread", other)
    )
    found = audit(tmp_path, study(one, two, more=HPCC))
    said = found["lib.libblas.so.build_id"]
    assert said["kind"] == "unexplained"
    assert said["rank"] == 3
    assert said["reference_value"] != said["arm_value"]
    assert "lib.libblas.so.build_id" in unexplained(found)
    assert "lib.libmpi.so.build_id" not in found
    assert "env.unlisted" not in found
    explained = study(one, two, more=HPCC, factor="library")
    assert audit(tmp_path, explained, code=0)["lib.libblas.so.build_id"]["kind"] == "factor"


@pytest.mark.slow
def test_other_code_of_the_same_blas_by_its_variable(tmp_path: Path) -> None:
    """OPENBLAS_CORETYPE: the same library takes other kernels; only ranks that map it show them."""
    libraries = sorted(Path("/usr/lib").glob("**/openblas*/libblas.so.3"))
    if not libraries:
        pytest.skip("no OpenBLAS")
    flags = Path("/proc/cpuinfo").read_text()
    if "avx2" not in flags:
        pytest.skip("Haswell kernels need AVX2")
    one, other = (
        f'env = {{ LD_PRELOAD = "{libraries[0]}", OPENBLAS_NUM_THREADS = "1", {core} }}'
        for core in (
            'OPENBLAS_CORETYPE = "Haswell"',
            'OPENBLAS_CORETYPE = "Sandybridge"',
        )
    )
    more = f"{LATENCY}\n[plan]\nblocks = 8\nseed = 1\n"
    (tmp_path / "study.toml").write_text(study(one, other, more=more))
    paribus("run", "study.toml", "--out", "out", "--anyway", cwd=tmp_path, code=3)
    reported = json.loads((tmp_path / "out" / "verdict.json").read_text())["differences"]
    found = {one["key"]: one for one in reported}
    assert unexplained(found) == {"env.OPENBLAS_CORETYPE", "lib.blas.core"}
    core = found["lib.blas.core"]
    assert (core["reference_value"], core["arm_value"]) == ("Haswell", "Sandybridge")


def test_a_setting_of_mpi_beside_a_container_is_not_taken_for_its_doing(tmp_path: Path) -> None:
    """The container explains how MPI reaches its hosts, not what the study sets for one arm."""
    if any_mpi().family != "openmpi":
        pytest.skip("the variables are those of Open MPI")
    container = 'container = { engine = "namespace", each = "rank", network = "host" }'
    settings = 'env = { OMPI_MCA_btl_sm_eager_limit = "1024", OMPI_MCA_smsc = "^cma" }'
    text = study("", f"{container}\n{settings}", factor="container")
    found = audit(tmp_path, text)
    assert unexplained(found) == {"env.OMPI_MCA_btl_sm_eager_limit", "env.OMPI_MCA_smsc"}
    found = audit(tmp_path, text.replace(settings, ""), code=0)
    assert "container.engine" in found


def test_what_a_container_is_limited_to_is_not_the_container(tmp_path: Path) -> None:
    """Fewer open files and a lower priority in the arm with the container: both are reported."""
    needs_root("renice", "prlimit")
    container = 'container = { engine = "namespace", each = "rank", network = "host" }'
    lower = ours("prlimit --pid $p --nofile=1000: && renice -n 5 -p $p")
    back = ours("renice -n 0 -p $p")
    other = f'{container}\nbefore = "{lower}"\nafter = "{back}"'
    found = audit(tmp_path, study("", other, factor="container"))
    assert unexplained(found) == {"limits.nofile", "process.nice"}
    named = study("", other, factor="container").replace(
        "[arms.plain]", 'explains = ["limits.nofile", "process.nice"]\n[arms.plain]'
    )
    assert audit(tmp_path, named, code=0)["limits.nofile"]["kind"] == "factor"


def test_fewer_cores_in_one_arm(tmp_path: Path) -> None:
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2 or shutil.which("taskset") is None:
        pytest.skip("taking a core away needs two of them, and taskset")
    every = ",".join(map(str, cores))
    few = ours(f"taskset -a -p -c {cores[0]} $p")
    back = ours(f"taskset -a -p -c {every} $p")
    other = f'before = "{few}"\nafter = "{back}"'
    found = audit(tmp_path, study("", other))
    assert found["process.cpus"]["kind"] == "unexplained"
    assert found["process.cpus"]["arm_value"] == str(cores[0])


def test_a_quota_in_one_arm(tmp_path: Path) -> None:
    needs_root()
    base = Path("/sys/fs/cgroup/cpu")
    if not (base / "cpu.cfs_quota_us").parent.is_dir() or not os.access(base, os.W_OK):
        pytest.skip("no version 1 control group of cpu that can be written to")
    group = base / f"paribus-test-{os.getpid()}"
    group.mkdir()
    try:
        (group / "cpu.cfs_quota_us").write_text("150000")
        into, back = (ours(f"echo $p > {where}/cgroup.procs") for where in (group, base))
        found = audit(tmp_path, study("", f'before = "{into}"\nafter = "{back}"'))
    finally:
        group.rmdir()
    assert found["cgroup.cpus"]["kind"] == "unexplained"
    assert found["cgroup.cpus"]["reference_value"] == "unlimited"
    assert float(found["cgroup.cpus"]["arm_value"]) == 1.5


def test_a_library_loaded_first_in_one_arm(tmp_path: Path) -> None:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler (cc)")
    (tmp_path / "lib.c").write_text("int f(void) { return 1; }")
    build = "cc -shared -fPIC -Wl,--build-id lib.c -o libfirst.so"
    subprocess.run(build.split(), cwd=tmp_path, check=True)
    other = f'env = {{ LD_PRELOAD = "{tmp_path}/libfirst.so" }}'
    found = audit(tmp_path, study("", other))
    names = {"env.LD_PRELOAD", "lib.libfirst.so.build_id", "lib.libfirst.so.file"}
    assert unexplained(found) == names


def test_another_congestion_control_in_one_arm(tmp_path: Path) -> None:
    name = "net.ipv4.tcp_congestion_control"
    known = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    if "reno" not in known or len(known) < 2:
        pytest.skip(f"only {' '.join(known)} can be had here")
    other = next(one for one in known if one != "reno")
    wrap = in_namespace("--net", script=f"ip link set lo up && sysctl -qw {name}=reno")
    switch = f'before = "sysctl -qw {name}={other}"\nafter = "sysctl -qw {name}=reno"'
    found = audit(tmp_path, study("", switch), wrap)
    assert unexplained(found) == {"net.congestion_control"}
    assert found["net.congestion_control"]["arm_value"] == other
    explained = study("", switch, factor="network")
    found = audit(tmp_path, explained, wrap, code=0)
    assert found["net.congestion_control"]["kind"] == "factor"


def test_the_observed_level_of_a_switch_is_the_factor(tmp_path: Path) -> None:
    name = "net.ipv4.ip_forward"
    wrap = in_namespace("--net", script=f"ip link set lo up && sysctl -qw {name}=0")
    observe = f'observe = "sysctl -n {name}"'
    switch = f'before = "sysctl -qw {name}=1"\nafter = "sysctl -qw {name}=0"'
    found = audit(tmp_path, study(observe, f"{switch}\n{observe}", "network"), wrap, code=0)
    level = found["switch.level"]
    assert (level["kind"], level["reference_value"], level["arm_value"]) == ("factor", "0", "1")
    found = audit(tmp_path, study(observe, f"{switch}\n{observe}"), wrap)
    assert "switch.level" in unexplained(found)


def test_another_mtu_in_one_arm(tmp_path: Path) -> None:
    make = (
        # /sys shows the network of whoever mounted it.
        "mount -t sysfs sysfs /sys && ip link set lo up"
        " && ip link add eth0 type veth peer name far0 && ip link set far0 up"
        " && ip link set eth0 mtu 1500 up"
        " && ip addr add 10.9.8.7/24 dev eth0 && ip route add default dev eth0"
    )
    wrap = in_namespace("--net", "--mount", "--propagation", "private", script=make)
    switch = 'before = "ip link set eth0 mtu 1400"\nafter = "ip link set eth0 mtu 1500"'
    found = audit(tmp_path, study("", switch), wrap)
    assert unexplained(found) == {"net.ethernet.0.mtu"}
    values = (found["net.ethernet.0.mtu"][f"{side}_value"] for side in ("reference", "arm"))
    assert tuple(values) == ("1500", "1400")


def test_another_file_system_under_the_working_directory(tmp_path: Path) -> None:
    work = tmp_path / "t"
    work.mkdir()
    wrap = in_namespace("--mount", "--propagation", "private")
    # Lazily: what serves the launches may still be about to leave.
    switch = f'before = "mount -t ramfs none {work}"\nafter = "umount -l {work}"'
    found = audit(tmp_path, study("", switch), wrap, TMPDIR=str(work))
    assert "storage.working.type" in unexplained(found)
    assert found["storage.working.type"]["arm_value"] == "ramfs"


@pytest.mark.slow
def test_a_program_built_with_other_flags(tmp_path: Path) -> None:
    mpi = any_mpi()
    other = tmp_path / "other"
    (other / "bin").mkdir(parents=True)
    executable(other / "bin" / "mpicxx", f'exec {mpi.mpicxx} "$@" -O1 -fno-inline')
    for name in ("mpirun", "mpiexec"):
        (other / "bin" / name).symlink_to(Path(mpi.mpirun).resolve())
    libraries = Path(mpi.mpicxx).parent.parent / "lib"
    more = f'\nenv = {{ OPAL_PREFIX = "{prefix()}" }}' if mpi.family == "openmpi" else ""
    text = study(more.strip(), f'mpi = "{other}"{more}')
    found = audit(tmp_path, text, LD_LIBRARY_PATH=str(libraries), OPAL_PREFIX=prefix())
    assert unexplained(found) & {"kernel.build", "program.build_id"}


@pytest.mark.slow
def test_competing_load_in_one_arm_is_noted(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    # By itself it ends too. `timeout`, ended just when it has forked, leaves its command behind.
    spin = 'sh -c \\\\"ulimit -t 60; while :; do :; done\\\\" >/dev/null 2>&1 & echo $! >> ' + str(
        pids
    )
    start = f"sh -c '{'; '.join([spin] * 6)}'".replace('\\\\"', '\\"')
    stop = f"sh -c 'kill $(cat {pids}); rm {pids}'"
    arms = f'[arms.a]\n[arms.b]\nbefore = "{start}"\nafter = "{stop}"\n'
    path = write_study(
        tmp_path, arms=arms, factor="nothing", plan="blocks = 8", script="sleep 0.1; echo 2.50013"
    )
    paribus("run", path, "--out", "out", cwd=tmp_path, code=0)
    reported = json.loads((tmp_path / "out" / "verdict.json").read_text())["differences"]
    assert ("load.running", "noted") in {(one["key"], one["kind"]) for one in reported}


@pytest.mark.slow
def test_a_change_in_the_course_of_a_study_withholds_its_verdict(tmp_path: Path) -> None:
    name = "net.ipv4.tcp_congestion_control"
    known = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    if "reno" not in known or len(known) < 2:
        pytest.skip(f"only {' '.join(known)} can be had here")
    other = next(one for one in known if one != "reno")
    wrap = in_namespace("--net", script=f"ip link set lo up && sysctl -qw {name}=reno")
    script = (
        f"n=$(cat {tmp_path}/n 2>/dev/null || echo 0); n=$((n + 1)); echo $n > {tmp_path}/n;"
        f" [ $n -lt 9 ] || sysctl -qw {name}={other}; echo 2.50013"
    )
    path = write_study(tmp_path, script=script, plan="blocks = 8", factor="nothing")
    done = ran([*wrap, *command("run", path, "--out", "out")], cwd=tmp_path, timeout=200, code=3)
    said = " ".join(done.stdout.split())
    assert "net.congestion_control" in said
    assert "changed while the study went on" in said
    accepted = paribus(
        *("report", "out", "--accept", "net.congestion_control=no launch used the network"),
        cwd=tmp_path,
        code=0,
    )
    assert "reason given: no launch used the network" in " ".join(accepted.stdout.split())
    again = paribus("audit", "out", cwd=tmp_path, code=0)
    assert "no launch used the network" in " ".join(again.stdout.split())


@pytest.mark.slow
def test_an_update_between_blocks_ends_the_study(tmp_path: Path) -> None:
    """Looked for after every block here, not every ten minutes: the 7th finds another setting."""
    wrap = in_namespace("--net", script="ip link set lo up")
    script = (
        f"n=$(cat {tmp_path}/n 2>/dev/null || echo 0); n=$((n + 1)); echo $n > {tmp_path}/n;"
        f" [ $n -ne 13 ] || sysctl -qw net.ipv4.tcp_sack=0; {RANDOM}"
    )
    path = write_study(tmp_path, script=script, plan="blocks = 16", factor="nothing")
    code = (
        "import sys; from paribus.launch import execute; execute.GATHER_EVERY_S = 0.0;"
        "from paribus.__main__ import main; sys.exit(main(sys.argv[1:]))"
    )

    def run(*options: str) -> tuple[int, str]:
        done = ran(
            [*wrap, sys.executable, "-c", code, "run", str(path), "--out", "out", *options],
            cwd=tmp_path,
            timeout=200,
        )
        return done.returncode, " ".join(done.stdout.split())

    code_of_it, said = run()
    assert code_of_it == 3, said
    launches = int((tmp_path / "n").read_text())
    assert launches in (13, 14, 15, 16), "warm-up and six blocks, or one more"
    assert "net.ipv4.tcp_sack on" in said
    assert "Stopped early: the platform changed (net.ipv4.tcp_sack)" in said
    # Undone (the next namespace is a new one), it is reported all the same; accepted, it goes on.
    assert run("--resume")[0] == 3
    assert int((tmp_path / "n").read_text()) <= launches + 2
    code_of_it, said = run("--resume", "--accept", "net.ipv4.tcp_sack=no launch used the network")
    assert code_of_it == 0, said
    assert int((tmp_path / "n").read_text()) >= 32


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.long) for n in (2, 3))])
def test_identical_arms_have_nothing_unexplained(tmp_path: Path, seed: int) -> None:
    text = study(
        more=f'{LATENCY}\n[[benchmarks]]\nname = "allreduce"\nbytes = ["8 B"]\n'
        f"samples = 20\n[plan]\nblocks = 8\nseed = {seed}\n"
    )
    (tmp_path / "study.toml").write_text(text)
    paribus("run", "study.toml", "--out", "out", "--anyway", cwd=tmp_path, code=0)
    reported = json.loads((tmp_path / "out" / "verdict.json").read_text())
    assert {one["kind"] for one in reported["differences"]} <= {"noted", "unknown"}
    assert reported["equal_facts"] > 200
