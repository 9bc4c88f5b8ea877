"""Secrets in the environment: under whatever name, no value reaches a file or a terminal."""

from __future__ import annotations

import gzip
import json
import re
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mpis import any_mpi
from paribus.core import Arm, Benchmark, Container, Metric, Parsed, Program, Selection, StudyError
from paribus.launch.arms import Ready, asked_of, compose, discreet
from paribus.probes import Archive, facts_of
from paribus.probes.scrub import scrubbed
from paribus.probes.variables import kept, looks_secret, prefixes, reported, shown
from paribus.studyfile.load import load_study
from studies import paribus, write_arms, write_study

WORDS = ("PASS", "PWD", "AUTH", "JWT", "TOKEN", "KEY", "CREDENTIALS", "COOKIE", "session_id")
NAMES = (
    *("UCX_PASS", "SLURM_OPAQUE", "OMPI_MCA_orte_precondition_transports"),
    *("OMPI_MCA_site_grant", "OMPI_GRANT", "PMIX_SERVER_GRANT", "PRTE_MCA_grant", "FI_PSM3_UUID"),
    *("FI_GRANT", "NCCL_COMM_ID", "NCCL_GRANT", "I_MPI_GRANT", "I_MPI_HYDRA_UUID", "MPICH_GRANT"),
    *("MPIR_CVAR_GRANT", "UCX_GRANT", "UCX_TLSX", "UCC_GRANT", "OMP_GRANT", "MKL_GRANT"),
    *("LD_GRANT", "CUDA_GRANT", "HYDRA_GRANT", "MV2_GRANT", "SINGULARITY_DOCKER_PASSWORD"),
    *("APPTAINER_GRANT", "DATABASE_URL", "MYPASSWORD", "AWS_SECRET_ACCESS_KEY", "PGPWD"),
    "KRB5_COOKIE",
    *dict.fromkeys(
        ("SLURM_JWT", *(f"{one}{WORDS[at % len(WORDS)]}" for at, one in enumerate(prefixes())))
    ),
    # Also where what stands before is a setting by the list.
    *("UCX_IB_PASS", "OMPI_MCA_btl_tcp_password", "FI_TCP_AUTH", "NCCL_SOCKET_TOKEN"),
    *("I_MPI_OFI_JWT", "MPIR_CVAR_CH4_KEY", "FI_CXI_AUTH_KEYS", "MPICH_OFI_credential"),
)
SECRETS = {name: f"hunter{number:03}grail" for number, name in enumerate(NAMES)}
FOUND = re.compile(rb"hunter\d{3}grail")
SETTINGS = {"UCX_LOG_LEVEL": "error", "NCCL_DEBUG": "VERSION", "OMP_WAIT_POLICY": "passive"}


def contents(path: Path) -> Iterator[bytes]:
    """Yield what a file holds, also what is packed in it: gzip, and every cell of a database."""
    data = path.read_bytes()
    yield data
    if data[:2] == b"\x1f\x8b":
        yield gzip.decompress(data)
    if data[:6] == b"SQLite":
        with closing(sqlite3.connect(path)) as db:
            for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type='table'"):
                for row in db.execute(f"SELECT * FROM {table}"):
                    yield repr(row).encode()
                    for cell in row:
                        if isinstance(cell, bytes):
                            yield zlib.decompress(cell)


def leaks(folder: Path, *printed: str) -> dict[str, set[bytes]]:
    found = {"printed": set(FOUND.findall("".join(printed).encode()))}
    for path in folder.rglob("*"):
        if path.is_file():
            found[path.name] = {one for text in contents(path) for one in FOUND.findall(text)}
    return {name: values for name, values in found.items() if values}


def study_with_mpi(folder: Path) -> Path:
    """Write a study of two ranks, one arm in containers, and return its path."""
    mpi = Path(any_mpi().mpicxx).parent.parent
    arm, benchmark = f'mpi = "{mpi}"\ntransport = "shm"', 'name = "barrier"\nsamples = 10'
    other, plan = f'{arm}\nenv = {{ UCX_TLS = "sm" }}', "seed = 1\nblocks = 8"
    return write_arms(folder, arm, other, benchmark=benchmark, factor="env", plan=plan)


def test_the_names_are_many_and_of_every_prefix() -> None:
    assert len(NAMES) == len(set(NAMES)) > 60
    assert all(any(name.startswith(prefix) for name in NAMES) for prefix in prefixes())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["shell", "mpi"])
def test_no_secret_of_the_environment_is_stored_or_printed(kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    study = write_study(folder) if kind == "shell" else study_with_mpi(folder)
    env: dict[str, Any] = {**SECRETS, **SETTINGS}
    verbs = [
        ("run", study, "--out", "out"),
        ("report", "out", "--json"),
        ("audit", study, "--all"),
        ("audit", "out", "--json", "--all"),
        ("run", study, "--dry-run"),
        ("record", "--out", "here.tar.gz"),
        ("record", "--from", "here.tar.gz"),
    ]
    if kind == "mpi":
        verbs = [verbs[0], verbs[3], ("doctor", "--json"), ("doctor",)]
    for words in verbs:
        done = paribus(*words, cwd=folder, **env)
        assert done.returncode in (0, 1, 3), (words, done.stderr)
        assert leaks(folder, done.stdout, done.stderr) == {}, words
        if "audit" in words:
            assert "UCX_LOG_LEVEL" in done.stdout or "--json" not in words
    if kind == "shell":
        shown = paribus("record", "--from", "here.tar.gz", cwd=folder).stdout
        for name, value in SETTINGS.items():
            assert re.search(rf"^env\.{name} +{value}$", shown, re.MULTILINE)
        assert re.search(r"^env\.UCX_PASS +\(redacted\)$", shown, re.MULTILINE)


@pytest.mark.slow
def test_what_an_arm_sets_stands_in_the_plan_and_nowhere_else(tmp_path: Path) -> None:
    """Not as a hash either, by which a short value could be guessed; equal ones stay equal."""
    values = ("1234", "1234", "4321")
    arms = "".join(
        f'[arms.{name}]\nenv = {{ OWN_THING = "hunter{value[:3]}grail", X = "{name}" }}\n'
        for name, value in zip("abc", values, strict=True)
    )
    study = write_study(tmp_path, arms=arms)
    for words in (("run", study, "--out", "out"), ("run", study, "--dry-run"), ("audit", study)):
        done = paribus(*words, cwd=tmp_path, code=0)
        assert FOUND.findall((done.stdout + done.stderr).encode()) == []
    found = leaks(tmp_path)
    assert found.keys() == {"study.toml", "plan.json"}
    with closing(sqlite3.connect(tmp_path / "out" / "launches.db")) as db:
        rows = set(
            db.execute("SELECT arm, json_extract(facts, '$.\"env.OWN_THING\"') FROM launches")
        )
    assert dict(rows) == {
        "a": "(not shown, value 1)",
        "b": "(not shown, value 1)",
        "c": "(not shown, value 2)",
    }


def test_command_lines_are_stored_without_the_values_that_they_carry() -> None:
    """A server beside the client gets its variables on the command line, quoted twice."""
    benchmark = Benchmark(
        "x",
        "x",
        "",
        (Metric("t", "us", "lower"),),
        lambda _: Program(("client",), mpi=False, server=("server", "{port}")),
        lambda _text, _request: Parsed(()),
    )
    env = {"OWN_THING": "hunter001grail it's", "UCX_TLS": "tcp"}
    for container in (None, Container("namespace")):
        one = Ready(Arm("a", env=env, container=container), None, ())
        whole, stored = (
            compose(which, Selection("x", "x", 1, {}), benchmark, seed=0, scratch="/s")
            for which in (one, discreet(one))
        )
        assert FOUND.search(repr(whole).encode())
        assert not FOUND.search(repr(stored).encode())
        assert "UCX_TLS=tcp" in repr(stored.argv)
        assert len(stored.argv) == len(whole.argv)


@pytest.mark.parametrize(
    "name",
    ["DB_PASSWORD", "API_TOKEN", "ssh_key", "SLURM_JWT", "UCX_PASS", "MYSECRET", "PGPWD_PWD"],
)
def test_a_secret_in_the_study_itself_is_refused_with_the_way_to_hand_it_on(
    name: str, tmp_path: Path
) -> None:
    arms = f'[arms.a]\n[arms.b]\nenv = {{ OMP_NUM_THREADS = "1", {name} = "hunter001grail" }}\n'
    with pytest.raises(StudyError, match=rf"arms\.b\.env\.{name}: looks like a secret") as caught:
        load_study(write_study(tmp_path, arms=arms))
    assert f"export {name} before `paribus run`" in caught.value.fix
    assert not FOUND.search(str(caught.value).encode())


@pytest.mark.parametrize("name", ["TOKENIZERS_PARALLELISM", "UCX_RC_CREDITS", "PWD", "KEYBOARD"])
def test_what_only_sounds_like_a_secret_is_not_refused(name: str, tmp_path: Path) -> None:
    arms = f'[arms.a]\n[arms.b]\nenv = {{ {name} = "1" }}\n'
    assert load_study(write_study(tmp_path, arms=arms)).arms[1].env == {name: "1"}


def test_an_error_in_a_table_of_variables_does_not_print_the_table(tmp_path: Path) -> None:
    arms = '[arms.a]\n[arms.b]\nenv = { OWN_THING = "hunter001grail", X = 1 }\n'
    with pytest.raises(StudyError, match=r"arms\.b\.env: cannot be used") as caught:
        load_study(write_study(tmp_path, arms=arms))
    assert not FOUND.search(str(caught.value).encode())


def test_no_setting_of_the_list_looks_like_a_secret() -> None:
    assert [name for name in kept() if looks_secret(name)] == []
    assert len(kept()) == len(set(kept())) > 500
    assert all(name == name.strip("*") or name.count("*") == 1 for name in kept())


@pytest.mark.parametrize(
    ("name", "value", "known"),
    [
        ("UCX_TLS", "tcp", True),
        ("UCX_TLS_", "tcp", False),
        ("ucx_tls", "tcp", False),
        ("OMPI_MCA_btl_tcp_if_include", "lo", True),
        ("OMPI_MCA_orte_hnp_uri", "1;tcp://10.0.0.1:3", False),
        ("NCCL_SOCKET_IFNAME", "http://me:hunter2@proxy", False),
        ("LD_PRELOAD", "password=hunter2", False),
        ("UCX_IB_pkey", "0x7fff", False),
    ],
)
def test_a_value_is_known_by_its_whole_name(name: str, value: str, known: bool) -> None:
    assert shown(name, value) is known


def test_an_archive_of_an_earlier_version_is_read_without_its_secrets() -> None:
    """Its values were chosen by prefix alone; they are neither facts nor recorded again."""
    lines = [f"{name}={value}" for name, value in SECRETS.items()] + ["UCX_TLS=tcp"]
    archive = Archive({}, lists={"environment": lines})
    for one in (archive, scrubbed(archive, set())):
        assert facts_of(one)["env.UCX_TLS"] == "tcp"
        assert not FOUND.search(repr(facts_of(one)).encode())
    assert not FOUND.search(repr(scrubbed(archive, set())).encode())


def test_passwords_on_the_kernels_command_line_are_no_facts() -> None:
    text = "ro rd.iscsi.password=hunter001grail wwkey=hunter002grail iommu.passthrough=1 quiet"
    archive = Archive({"/proc/cmdline": text})
    for one in (archive, scrubbed(archive, set())):
        assert facts_of(one)["os.cmdline"] == [
            *("ro", "rd.iscsi.password=(redacted)", "wwkey=(redacted)"),
            *("iommu.passthrough=1", "quiet"),
        ]
    assert not FOUND.search(repr(scrubbed(archive, set())).encode())


OUTPUT = """\
# OSU MPI Latency Test v7.5
# Size          Latency (us)
8                       1.5{arm}
16                      1.6{arm}
"""


@pytest.mark.parametrize(
    "said",
    [
        "+ mpirun -n 2 ./osu_latency --token=SECRET{arm}",
        "$ HF_TOKEN=SECRET{arm} mpirun -n 2 ./osu_latency --api-key SECRET{arm}",
        "export WANDB_API_KEY=SECRET{arm}",
        "API token: SECRET{arm}",
        "# token: SECRET{arm}",
        "Cloning from https://user:SECRET{arm}@host/code",
        "DB_PASSWORD = SECRET{arm}",
        "+ curl -H 'Authorization: Bearer SECRET{arm}' http://host/",
        "cmd: ./load --token=SECRET{arm} --max-tokens 512",
    ],
)
@pytest.mark.parametrize("outputs", [1, 2])
def test_a_secret_that_a_script_echoes_into_a_log_is_not_shown(
    said: str, outputs: int, tmp_path: Path
) -> None:
    """Whether it is a fact of the arm, or distinguishes two outputs of one file."""
    for arm in "12":
        lines = [said.format(arm=arm if outputs == 1 else n) for n in range(outputs)]
        text = "".join(f"{line}\n{OUTPUT.format(arm=arm)}" for line in lines)
        (tmp_path / f"{arm}.log").write_text(text)
    words = ("compare", "1.log", "2.log")
    ways = (("--json", "--out", "out"), ("--full",))
    reported = [paribus(*words, *way, cwd=tmp_path) for way in ways]
    written = [path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert "osu_latency" in reported[0].stdout
    assert written
    # Two that differ do not look the same, or launches of two cases would be those of one.
    hidden = {*re.findall(r"\bhidden-[a-p]{4}\b", reported[0].stdout)}
    assert len(hidden) == 2 if outputs == 1 else hidden
    assert len(json.loads(reported[0].stdout)["headlines"]) == outputs
    for text in (*(one.stdout + one.stderr for one in reported), *map(repr, written)):
        assert "SECRET" not in text


FLAGS = "--xla_gpu_autotune_level={} --xla_dump_to={} --xla_gpu_enable_triton_gemm=false"


@pytest.mark.parametrize(
    "path",
    ["/home/alice/my=dump", '"/home/alice/a b/dump"', "dump/alice", "~alice/dump", "./alice"],
)
def test_paths_are_hidden_and_nothing_else(path: str) -> None:
    known = reported("XLA_FLAGS", FLAGS.format(0, path)) or ""
    assert "alice" not in known
    assert "/" not in known
    assert re.sub("hidden-[a-z]{4}", "X", known) == FLAGS.format(0, "X")
    assert reported("XLA_FLAGS", known) == known, "a record is read again"
    assert reported("XLA_FLAGS", FLAGS.format(0, "/home/bob/dump")) != known
    assert reported("XLA_FLAGS", FLAGS.format(4, path)) == known.replace("level=0", "level=4")
    plain = "--xla_gpu_autotune_level=0 --xla_disable_hlo_passes=a,b:c"
    assert reported("XLA_FLAGS", plain) == plain


def test_a_path_with_spaces_is_hidden_whole() -> None:
    known = reported("CUDA_CACHE_PATH", "/home/alice/my cache, 2/.nv")
    assert known is not None
    assert re.fullmatch("hidden-[a-z]{4}", known)
    assert reported("CUDA_HOME", "/usr/local/cuda-13.0") == "/usr/local/cuda-13.0"
    assert reported("XLA_FLAGS", "--token=/x:hunter2") is None


@pytest.mark.parametrize("name", ["XLA_FLAGS", "CUDA_CACHE_PATH", "CUDA_MPS_PIPE_DIRECTORY"])
def test_paths_of_users_are_in_no_fact_and_no_record(name: str) -> None:
    archive = Archive({}, lists={"environment": [f"{name}=/data/alice/cache"]})
    for one in (archive, scrubbed(archive, ["node7"])):
        assert re.fullmatch("hidden-[a-z]{4}", facts_of(one)[f"env.{name}"])
        assert facts_of(one) == facts_of(archive)
    arm = Arm("a", env={name: "/data/alice/cache"})
    assert asked_of(arm, [arm])[f"env.{name}"] == facts_of(archive)[f"env.{name}"]
    assert "alice" not in str(discreet(Ready(arm, None, ())))
