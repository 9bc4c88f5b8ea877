"""facts.sh itself, for real: every shell that is here, files that block, tools that hang."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from mpis import each_mpi
from paribus.audit.audit import Question, audit
from paribus.core import Arm, Facts, Mpi, ParseError, Settings, Study
from paribus.launch.launchers.openmpi import ROOT
from paribus.probes import Archive, facts_from_stream, from_stream, script
from paribus.probes.archive import Unknown
from processes import executable, ran

SHELLS = [
    pytest.param(
        command.split(),
        id=command,
        marks=[] if shutil.which(command.split()[0]) else pytest.mark.skip(reason="not here"),
    )
    for command in ("sh", "dash", "bash", "busybox ash")
]
BUILD_ID = "-Wl,--build-id"
PLAIN = {"PATH": os.environ["PATH"], "HOME": "/"}


def answer(
    shell: Sequence[str] = ("sh",),
    depth: str = "files",
    program: str = "",
    *,
    text: str = "",
    env: Mapping[str, str] = PLAIN,
    cwd: Path | None = None,
) -> str:
    done = ran(
        [*shell, "-c", text or script(), "facts", "a5b6c7", depth, program],
        errors="replace",
        env=dict(env),
        cwd=cwd,
        timeout=60,
        code=0,
    )
    assert done.stderr == ""
    return done.stdout


def lasting(facts: Facts) -> Facts:
    return {key: value for key, value in facts.items() if not key.startswith("load.")}


def library(out: Path, text: str, *options: str) -> Path:
    """Return a shared library of this C source, else skip."""
    if not shutil.which("cc"):
        pytest.skip("no C compiler")
    out.parent.mkdir(exist_ok=True)
    words = ["cc", "-shared", "-fPIC", "-x", "c", "-", f"-Wl,-soname,{out.name}", *options]
    ran([*words, "-o", out], input=text, code=0)
    return out


def calling(out: Path, linked: Path, *options: str) -> Path:
    """Return a program that calls f() of a library."""
    text = "int f(void); int main(void) { return f(); }"
    ran(["cc", *options, "-x", "c", "-", "-x", "none", linked, "-o", out], input=text, code=0)
    return out


def with_library(program: Path, folder: Path) -> Facts:
    """Return the facts of a program whose loader looks into this folder first."""
    env = {**PLAIN, "LD_LIBRARY_PATH": str(folder)}
    return facts_from_stream(answer(program=str(program), env=env))


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_gives_the_same_facts(shell: list[str]) -> None:
    facts = lasting(facts_from_stream(answer(shell)))
    assert facts == lasting(facts_from_stream(answer()))
    assert facts["os.release"] == os.uname().release
    assert facts["cpu.count"] == os.sysconf("SC_NPROCESSORS_ONLN")
    assert facts["limits.nofile"] > 0


@pytest.mark.skipif(not shutil.which("busybox"), reason="no busybox")
def test_busybox_alone_is_enough(tmp_path: Path) -> None:
    """Its shell with its own tools and none else, as on a node that has nothing more."""
    programs = "ash awk cat cksum grep head ls od readlink sed sleep sort tail tr wc"
    for name in programs.split():
        (tmp_path / name).symlink_to(shutil.which("busybox") or "")
    env = {"PATH": str(tmp_path), "HOME": "/"}
    alone = facts_from_stream(answer([str(tmp_path / "ash")], "all", env=env))
    others = lasting(facts_from_stream(answer(depth="all")))
    tools = ("mpi.", "ucx.", "libfabric.", "net.", "memory.slot", "clock.sync", "gpu.", "pci.acs")
    assert {k: alone.get(k) for k in others if not k.startswith(tools)} == {
        k: v for k, v in others.items() if not k.startswith(tools)
    }
    assert isinstance(alone["load.consumers"], list)


def with_path(path: Path) -> str:
    """Return the script with `path` in the place of /proc/cmdline."""
    return script().replace("/proc/cmdline", str(path))


@pytest.mark.slow
def test_a_file_that_is_too_slow_is_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    """Its lines can be counted in time, but not passed on."""
    (tmp_path / "slow").write_text("quiet\n")
    grep = tmp_path / "bin" / "grep"
    grep.parent.mkdir()
    executable(grep, 'case "$*" in *-c*) ;; */slow*) exec sleep 60 ;; esac\nexec /bin/grep "$@"')
    env = {**PLAIN, "PATH": f"{grep.parent}:{PLAIN['PATH']}"}
    archive = from_stream(answer(text=with_path(tmp_path / "slow"), env=env))
    assert archive.read(str(tmp_path / "slow")) is Unknown.TIMED_OUT
    assert archive.text("/proc/meminfo").startswith("MemTotal: ")


@pytest.mark.slow
def test_a_file_that_blocks_is_named_and_costs_no_other_fact(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "blocks")
    start = time.monotonic()
    env = {**PLAIN, "PARIBUS_TEST": str(tmp_path)}
    archive = from_stream(answer(text=with_path(tmp_path / "blocks"), env=env))
    assert time.monotonic() - start < 20
    assert archive.read(str(tmp_path / "blocks")) is Unknown.TIMED_OUT
    assert texts(archive) == texts(from_stream(answer())) - {"/proc/cmdline"}
    assert not started_with(f"PARIBUS_TEST={tmp_path}")


def texts(archive: Archive) -> set[str]:
    return {path for path, text in archive.files.items() if isinstance(text, str)}


def started_with(setting: str) -> list[str]:
    """Return the processes that have `setting` in their environment: nobody waits for them."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if setting.encode() in path.read_bytes().split(b"\0"):
                found.append(str(path))
        except OSError:
            continue
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "known"),
    [
        (b"quiet\0\xff\xfe\x01 ro\n", True),
        (os.urandom(1 << 20), True),
        (b"x" * (64 << 20), False),
        (b"word " * 20_000, False),
        (b"word\n" * (64 << 17), True),
        (b"", True),
        (b"quiet\rro\n", True),
        (b"/proc/meminfo:MemTotal: 1 kB\n::a5b6c7 end\n", None),
    ],
    ids=["binary", "junk", "64 MB line", "long line", "42 MB lines", "empty", "return", "forged"],
)
def test_whatever_a_file_holds_the_others_are_read(
    tmp_path: Path, content: bytes, known: bool | None
) -> None:
    (tmp_path / "file").write_bytes(content)
    text = with_path(tmp_path / "file")
    if known is None:  # a nonce is never known beforehand; were it, the answer would be refused
        with pytest.raises(ParseError, match=r"mixed up|missing|stops"):
            from_stream(answer(text=text))
        return
    stream = answer(text=text)
    archive = from_stream(stream)
    assert len(stream) < 9 << 20
    assert isinstance(archive.read(str(tmp_path / "file")), str) is known
    assert archive.text("/proc/meminfo").startswith("MemTotal: ")
    facts_from_stream(stream)


@pytest.mark.skipif(os.geteuid() == 0 and not shutil.which("setpriv"), reason="needs setpriv")
def test_a_file_that_is_denied_is_not_absent(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x\n")
    secret.chmod(0)
    ordinary = ("setpriv", "--reuid", "65534", "--clear-groups") if os.geteuid() == 0 else ()
    for directory in (tmp_path, *tmp_path.parents[:2]):
        if directory.owner() == "root" and directory != Path("/"):
            directory.chmod(0o755)
    archive = from_stream(answer((*ordinary, "sh"), text=with_path(secret), cwd=Path("/")))
    assert archive.read(str(secret)) is Unknown.DENIED
    assert archive.read("/proc/sys/kernel/no_such_thing") is Unknown.ABSENT


@pytest.mark.slow
def test_a_tool_that_hangs_is_ended_and_named(tmp_path: Path) -> None:
    for name, body in (("ucx_info", "sleep 60"), ("fi_info", "echo 'libfabric: 1.21.0'")):
        executable(tmp_path / name, f"exec {body}")
    executable(tmp_path / "tc", "yes 'qdisc netem 1: dev eth0'")
    start = time.monotonic()
    stream = answer(depth="all", env={**PLAIN, "PATH": f"{tmp_path}:{PLAIN['PATH']}"})
    assert time.monotonic() - start < 20
    facts = facts_from_stream(stream)
    assert facts["ucx.version"] == {"unknown": "timed out"}
    assert facts["libfabric.version"] == "1.21.0"
    assert facts["net.qdiscs"] == {"unknown": "cut"}


def test_values_of_variables_that_are_not_allowed_never_leave_the_node() -> None:
    env = {
        **PLAIN,
        "DATABASE_URL": "postgres://hunter2",
        "OMPI_MCA_btl": "tcp,self",
        "UCX_TLS": "line one\nOMPI_MCA_btl=forged",
        "FI_AUTH_KEY": "hunter2",
        "NCCL_PROXY": "http://me:hunter2@proxy:3128",
        "LD_LIBRARY_PATH": "/ümläut\xff",
    }
    stream = answer(env=env)
    facts = facts_from_stream(stream)
    assert "postgres" not in stream
    assert "DATABASE_URL" in stream
    assert facts["env.OMPI_MCA_btl"] == "tcp,self"
    assert facts["env.UCX_TLS"] == "line one\nOMPI_MCA_btl=forged"
    assert facts["env.FI_AUTH_KEY"] == facts["env.NCCL_PROXY"] == {"unknown": "redacted"}
    assert facts["env.unlisted"] == sorted(
        ["DATABASE_URL", *facts_from_stream(answer())["env.unlisted"]]
    )
    assert "hunter2" not in str(facts)


def test_settings_of_libraries_for_gpus_differ_by_their_values() -> None:
    """Two nodes with TF32 on and off are not equal: a hash of names could not distinguish them."""
    names = (
        *("NVIDIA_TF32_OVERRIDE", "CUBLAS_WORKSPACE_CONFIG", "PYTORCH_ALLOC_CONF", "XLA_FLAGS"),
        *("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "JAX_DEFAULT_MATMUL_PRECISION", "MIOPEN_FIND_MODE"),
        *("CUBLAS_EMULATE_SINGLE_PRECISION", "PYTORCH_TUNABLEOP_ENABLED", "MIOPEN_DEBUG_CONV_GEMM"),
    )
    on, off = (
        facts_from_stream(answer(env={**PLAIN, **dict.fromkeys(names, value)})) for value in "10"
    )
    for name in names:
        assert (on[f"env.{name}"], off[f"env.{name}"]) == ("1", "0")
    study = Study("Which?", "nothing", (Arm("a"), Arm("b")), (), Settings())
    found = audit({"n": on}, {"n": off}, Question(study, "b", ("point to point",))).differences
    kinds = {one.key: one.kind for one in found}
    assert {kinds[f"env.{name}"] for name in names} == {"unexplained"}


def test_which_gpus_slurm_has_lent_is_no_setting() -> None:
    """Two jobs with one of eight GPUs each are equal; how many they have counts."""
    lent = {"SLURM_JOB_GPUS": "3", "SLURM_GPUS_ON_NODE": "1", "CUDA_VISIBLE_DEVICES": "3"}
    ours = facts_from_stream(answer(env=PLAIN | lent))
    theirs = facts_from_stream(answer(env=PLAIN | lent | {"CUDA_VISIBLE_DEVICES": "5"}))
    assert ours["job.env.CUDA_VISIBLE_DEVICES"] == "3"
    assert ours["env.SLURM_GPUS_ON_NODE"] == "1"
    own = facts_from_stream(answer(env={**PLAIN, "CUDA_VISIBLE_DEVICES": "3"}))
    assert own["env.CUDA_VISIBLE_DEVICES"] == "3"
    study = Study("Which?", "nothing", (Arm("a"), Arm("b")), (), Settings())
    found = audit({"n": ours}, {"n": theirs}, Question(study, "b", ("gpu",))).differences
    assert [one.key for one in found if one.kind == "unexplained"] == []


def test_a_limit_a_library_path_and_a_directory_are_those_of_the_launch(tmp_path: Path) -> None:
    text = f'ulimit -n 333; cd {tmp_path}; exec sh -c "$0" facts a5b6c7 all /bin/bash'
    done = ran(["sh", "-c", text, script()], env=PLAIN, code=0)
    facts = facts_from_stream(done.stdout)
    assert facts["limits.nofile"] == facts["limits.hard.nofile"] == 333
    assert from_stream(done.stdout).lists["directories"][0] == f"working {tmp_path}"
    assert facts["program.missing"] == []
    assert len(facts["program.build_id"]) == 40
    assert facts["lib.libc.so.build_id"] != facts["program.build_id"]


def test_another_library_by_the_loaders_path_is_seen(tmp_path: Path) -> None:
    """The same program, another libtinfo first on LD_LIBRARY_PATH: another build-id, named."""
    one, other = (
        library(tmp_path / where / "libpick.so.1", f"int f(void) {{ return {value}; }}", BUILD_ID)
        for where, value in (("a", 1), ("b", 2))
    )
    program = calling(tmp_path / "main", one)
    facts = [with_library(program, of.parent) for of in (one, other)]
    assert facts[0]["lib.libpick.so.build_id"] != facts[1]["lib.libpick.so.build_id"]
    assert facts[0]["program.build_id"] == facts[1]["program.build_id"]
    lost = facts_from_stream(answer(program=str(program)))
    assert lost["program.missing"] == ["libpick.so.1"]


def test_a_library_that_is_named_by_its_path_is_seen_and_the_loader_is_none(
    tmp_path: Path,
) -> None:
    """LD_PRELOAD, and the C library's own name by it: neither is lost."""
    first = library(tmp_path / "libfirst.so.1", "int f(void) { return 1; }", BUILD_ID)
    sh = os.path.realpath("/bin/sh")
    plain = facts_from_stream(answer(program=sh))
    found = from_stream(answer(program=sh)).lists["libraries"]
    libc = next(path for path in found if "/libc.so" in path)
    facts = facts_from_stream(answer(program=sh, env={**PLAIN, "LD_PRELOAD": f"{first} {libc}"}))
    assert len(facts["lib.libfirst.so.build_id"]) == 40
    assert facts["lib.libc.so.build_id"] == plain["lib.libc.so.build_id"]
    added = {key for key in facts.keys() - plain.keys() if key.startswith("lib.")}
    assert added == {"lib.libfirst.so.build_id", "lib.libfirst.so.file"}
    assert not any(key.startswith("lib.ld") for key in facts)


def test_the_priority_is_that_of_the_launch() -> None:
    mine = os.getpriority(os.PRIO_PROCESS, 0)
    facts = facts_from_stream(answer(["nice", "-n", "3", "sh"]))
    assert facts["process.nice"] == min(19, mine + 3)
    if shutil.which("chrt"):
        assert facts_from_stream(answer(["chrt", "-b", "0", "sh"]))["process.policy"] == "batch"


# --- who else was busy, and what has no build-id -------------------------------------------------


def test_who_else_used_the_processors_is_named_and_not_what_is_ours(tmp_path: Path) -> None:
    for name in ("rival", "our rank"):
        shutil.copy(shutil.which("yes") or "/usr/bin/yes", tmp_path / name)
    start = f"{tmp_path}/rival >/dev/null 2>&1 & echo $!"  # its parent ends: nobody here started it
    done = ran(["sh", "-c", start], code=0)
    ours = subprocess.Popen([str(tmp_path / "our rank")], stdout=subprocess.DEVNULL)
    try:
        seen: set[str] = set()
        for _ in range(40):  # on a busy machine it may get no tick in so short a time
            facts = facts_from_stream(answer(depth="all"))
            seen |= {text.rpartition(" ")[0] for text in facts["load.consumers"]}
            if "rival" in seen:
                break
    finally:
        os.kill(int(done.stdout), signal.SIGKILL)
        ours.kill()
        ours.wait()
    assert "rival" in seen
    assert "our rank" not in seen
    assert "load.consumers" not in facts_from_stream(answer())


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="needs root, unshare")
def test_where_processes_are_hidden_nobody_is_said_to_be_idle() -> None:
    hide = "mount -t proc -o hidepid=2 proc /proc && setpriv --reuid 65534 --regid 65534"
    hide += ' --clear-groups sh "$@"; exit $?'  # a child of number 1, which belongs to root
    shell = ["unshare", "--mount", "--pid", "--fork", "sh", "-c", hide, "hidden"]
    allowed = subprocess.run([*shell, "-c", "true"], capture_output=True, check=False)
    if allowed.returncode != 0:
        pytest.skip("/proc may not be mounted here")
    facts = facts_from_stream(answer(shell, depth="all", cwd=Path("/")))
    assert facts["load.consumers"] == {"unknown": "denied"}


def test_two_builds_without_build_id_are_distinguished(tmp_path: Path) -> None:
    plain = ("-Wl,--build-id=none", "-frecord-gcc-switches")
    built = [
        library(tmp_path / where / "libpick.so.1", f"int f(void) {{ return {value}; }}", *plain)
        for where, value in (("a", 1), ("b", 2), ("c", 1))
    ]
    program = calling(tmp_path / "main", built[0], "-O1", *plain)
    one, other, again = (with_library(program, of.parent) for of in built)
    assert one["lib.libpick.so.build_id"] == one["program.build_id"] == {"unknown": "absent"}
    assert one["lib.libpick.so.digest"] == again["lib.libpick.so.digest"]
    assert one["lib.libpick.so.digest"] != other["lib.libpick.so.digest"]
    assert one["program.digest"] == other["program.digest"]
    assert "lib.libc.so.digest" not in one
    assert any("GCC" in text or "clang" in text for text in one["program.compiler"])
    if any("GCC" in text for text in one["program.compiler"]):
        assert any("-O1" in text.split() for text in one["program.flags"])


# --- tools that are not at hand, by what their makers document ------------------------------------

SMI = """#!/bin/sh
# Refuses a query whole for a field that this version does not know, as nvidia-smi does.
case $2 in
--query-gpu=*)
    fields=${2#*=}
    for field in $(echo "$fields" | tr , ' '); do
        # shellcheck disable=SC2194 # UNKNOWN is filled in
        case " UNKNOWN " in *" $field "*)
            echo "Field \\"$field\\" is not a valid field to query."; exit 2 ;;
        esac
    done
    echo "$fields" | sed 's/,/, /g'
    echo "$fields" | sed -e 's/,/, /g' -e 's/pci.bus_id/00000000:3B:00.0/' \\
        -e 's/[a-z_]*\\.active/0x4/' ;;
--query-compute-apps=*) echo "gpu_bus_id, pid, used_gpu_memory [MiB]" ;;
--query-remapped-rows=*)
    echo "gpu_bus_id, remapped_rows.correctable, remapped_rows.uncorrectable"
    echo "00000000:3B:00.0, 1, 0" ;;
*) exit 3 ;;
esac
"""


@pytest.mark.parametrize(
    "unknown",
    [
        "",
        "clocks_event_reasons.active",
        "clocks_event_reasons.active remapped_rows.correctable remapped_rows.pending",
        "clocks_event_reasons.active clocks_throttle_reasons.active mig.mode.current name.x",
    ],
    ids=["new", "older", "without rows", "neither name"],
)
def test_a_field_that_nvidia_smi_does_not_know_costs_no_other(tmp_path: Path, unknown: str) -> None:
    executable(tmp_path / "nvidia-smi", SMI.replace("UNKNOWN", unknown))
    facts = facts_from_stream(
        answer(depth="all", env={**PLAIN, "PATH": f"{tmp_path}:{PLAIN['PATH']}"})
    )
    assert facts["gpu.count"] == 1
    assert facts["gpu.0.compute_mode"] == "compute_mode"
    assert facts["gpu.0.now.processes"] == 0
    neither = "clocks_throttle_reasons.active" in unknown
    assert facts.get("gpu.0.now.throttle_reasons") == (None if neither else "0x4")
    assert ("gpu.0.mig" in facts) is ("mig" not in unknown)
    rows = facts["gpu.0.now.remapped_rows"]["correctable"]
    assert rows == (1 if "remapped" in unknown else "remapped_rows.correctable")


def test_slow_tools_are_asked_in_every_audit(tmp_path: Path) -> None:
    """Not for recordings alone: memory modules, the time server, the wiring of GPUs."""
    for name, text in (
        ("dmidecode", "Memory Device\\n\\tSize: 64 GB\\n\\tType: DDR5\\n\\tSpeed: 4800 MT/s\\n"),
        ("chronyc", "A9,ntp,3,1700000000.1,0.000002,0.1,0.1,1,0,0.1,0.01,0.02,64.5,Normal\\n"),
        ("nvidia-smi", "name, pci.bus_id\\nH100, 00000000:3B:00.0\\n"),
        ("dcb", '{"prio_pfc":["off","off","off","on","off","off","off","off"]}\\n'),
    ):
        executable(tmp_path / name, f"printf '{text}'")
    stream = answer(depth="all", env={**PLAIN, "PATH": f"{tmp_path}:{PLAIN['PATH']}"})
    facts = facts_from_stream(stream)
    assert facts["memory.slot_kinds"] == ["1 x 64 GB DDR5 4800 MT/s ? ?"]
    assert (facts["clock.synchronised"], facts["clock.offset_s"]) == ("yes", 2e-06)
    assert {"nvidia-topology", "nvidia-processes"} <= from_stream(stream).tools.keys()
    for key in facts:
        if key.endswith(".pfc"):
            assert facts[key] == [3]


@pytest.mark.parametrize("mpi", each_mpi())
def test_facts_come_through_a_launcher(mpi: Mpi) -> None:
    """With Open MPI, which repeats our arguments in the environment, and with the others."""
    env = {**os.environ, **ROOT, **mpi.env, "OMPI_MCA_btl": "tcp,self", "UCX_TLS": "tcp"}
    done = ran(
        [mpi.mpirun, "-n", "1", "sh", "-c", script(), "facts", "a5b6c7", "all", "/bin/sh"],
        errors="replace",
        env=env,
        timeout=60,
        code=0,
    )
    facts = facts_from_stream(done.stdout)
    assert facts["env.UCX_TLS"] == "tcp"
    assert facts["os.release"] == os.uname().release
    launch = {key for key in facts if key.startswith("job.env.")}
    assert bool(launch) is (mpi.family in ("openmpi", "intelmpi"))
    assert not any("a5b6c7" in str(value) for value in facts.values())
