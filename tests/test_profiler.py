"""`paribus profile` with real MPI: a program whose calls are known, and those it must refuse."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mpis import any_mpi, each_mpi, installations
from paribus.__main__ import main
from paribus.core import Mpi, Skeleton, UserError
from paribus.launch.local import Captured
from paribus.launch.machine import first_errors
from paribus.lenses.profiles.study import read_profile
from paribus.lenses.profiles.taken import print_taken
from paribus.probes.discreet import discreet
from paribus.profile.profiler import read_records, summed
from paribus.report.printing import console_on
from processes import ran

DATA = Path(__file__).parent / "data"
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
TWO = ("-n", "2")
MPICH = Path(os.environ.get("PARIBUS_TEST_MPICH", "/opt/paribus-tests/mpich"))
"""Where Debian's libmpich-dev and libmpich12 are unpacked, not installed."""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in AS_ROOT.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return how to get a program of tests/data for an MPI, compiled once."""
    folder = tmp_path_factory.mktemp("known")

    def compiled(mpi: Mpi, name: str = "known") -> Path:
        made = folder / f"{name}-{mpi.family}-{mpi.version[0]}"
        if not made.exists():
            words = [mpi.mpicxx, "-O1", "-pthread", "-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX"]
            ran(
                [*words, str(DATA / f"{name}.cpp"), "-o", str(made)],
                env={**os.environ, **mpi.env},
                code=0,
            )
        return made

    return compiled


def setting(mpi: Mpi, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set what the installation needs, as a user's module file does."""
    for name, value in mpi.env.items():
        monkeypatch.setenv(name, value)
    if mpi.family == "openmpi":
        # More ranks than cores are allowed to poll; 5 has another name for it.
        monkeypatch.setenv("OMPI_MCA_rmaps_base_oversubscribe", "1")
        monkeypatch.setenv("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe")


def fortran_of(mpi: Mpi, gfortran: str) -> list[str] | None:
    """Return the command, and what follows the source, that compiles Fortran for `mpi`, if any."""
    if mpi.family == "openmpi":
        wrapper = Path(mpi.mpicxx).with_name("mpif90")
        return [str(wrapper)] if wrapper.exists() else None
    if mpi.family == "mpich":
        # The wheel has no Fortran; programs of Debian's packages are of the same ABI.
        modules, libraries = "usr/lib/*/fortran/gfortran-mod-*/mpich", "usr/lib/*/libmpichfort.so"
        place, names = MPICH, ("-lmpichfort", "-lmpich")
    else:
        major = subprocess.check_output([gfortran, "-dumpversion"], text=True).split(".")[0]
        modules, libraries = f"include/mpi/gfortran/{major.strip()}.*", "lib/libmpifort.so"
        place, names = Path(mpi.mpicxx).parents[1], ("-lmpifort", "-lmpi")
    found = [*place.glob(modules), *(one.parent for one in place.glob(libraries))]
    if len(found) != 2:
        return None
    rpath = f"-Wl,--disable-new-dtags,-rpath,{found[1]}"
    return [gfortran, f"-I{found[0]}", f"-L{found[1]}", rpath, *names]


def counted(capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the JSON that was printed, and its calls by name."""
    said = json.loads(capsys.readouterr().out)
    return said, {name: row["calls"] for name, row in said["calls"].items()}


@pytest.mark.slow
@pytest.mark.installed
@pytest.mark.parametrize("mpi", each_mpi())
def test_every_call_is_counted(
    mpi: Mpi, programs: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    setting(mpi, monkeypatch)
    argv = [mpi.mpirun, *TWO, str(programs(mpi)), "threads"]
    assert main(["profile", "--json", "--output", "p.toml", "--", *argv]) == 0
    said, calls = counted(capsys)
    assert calls == {
        "Send": 2000,
        "Recv": 2000,
        "Isend": 22,
        "Irecv": 22,
        "Waitall": 22,
        "Allreduce": 10,
        "Barrier": 2,
        "Alltoall": 2,
        "Send_init": 1,
        "Recv_init": 1,
        "Start": 6,
        "Wait": 6,
        "Win_create": 2,
        "Win_fence": 4,
        "Put": 2,
        "Win_free": 2,
    }
    assert said["calls"]["Send"]["bytes"] == 2000 * 8
    assert said["calls"]["Isend"]["bytes"] == 2 * (10 * (1 << 19) + 8)
    assert said["calls"]["Allreduce"]["bytes"] == 10 * 4
    assert said["calls"]["Alltoall"]["bytes"] == 2 * 4096
    seen = {part for part, most in said["most"].items() if most > 0}
    assert seen == {
        *("messages_small", "messages_large", "collectives_small", "collectives_middle"),
        *("one_sided", "waiting", "other", "outside"),
    }
    assert sum(said["shares"].values()) == pytest.approx(1, abs=1e-4)
    assert 0 < said["own"] < 1
    assert said["cpu"] > 0
    assert {"openmpi": "Open MPI v", "mpich": "MPICH", "intelmpi": "Intel"}[mpi.family] in (
        said["library"].replace("(R)", "")
    )
    found = read_profile(Path("p.toml"))
    assert (found.name, found.skeleton) == (programs(mpi).stem, None)  # two threads call MPI
    assert sorted(path.name for path in Path().iterdir()) == ["p.err", "p.out", "p.toml"]


@pytest.mark.installed
@pytest.mark.parametrize("mpi", each_mpi())
def test_times_that_are_drawn_agree_with_those_of_every_call(
    mpi: Mpi, programs: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every 32nd message is late: by a fixed stride of 32, none or all of those were seen."""
    setting(mpi, monkeypatch)
    argv = [mpi.mpirun, *TWO, str(programs(mpi, "brief"))]
    assert main(["profile", "--json", "--output", "p.toml", "--", *argv]) == 0
    said, calls = counted(capsys)
    assert calls == {"Send": 1_000_000, "Recv": 1_000_000}
    inside = float(Path("p.out").read_text())
    whole = 2 * said["seconds"]
    # The program's own clock is read beside each call, which the profiler does not see.
    beside = 60e-9 * calls["Recv"]
    # A rank that waits for its core makes few calls very long. How exact a draw of those is can
    # only be shown: 0.006 to 0.14 in seven runs on two cores with a load of 12 to 20.
    assert 0 < said["error"] < (0.2 if said["cpu"] > 0.9 else 1)
    assert said["calls"]["Recv"]["seconds"] == pytest.approx(
        inside - beside / 2, abs=2 * said["error"] * whole + beside
    )
    assert 1 / 33 < said["timed"] < 1


@pytest.mark.installed
@pytest.mark.parametrize("module", ["mpi", "mpi_f08"])
@pytest.mark.parametrize("mpi", each_mpi())
def test_fortran_is_counted(
    mpi: Mpi, module: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The bindings of Open MPI call PMPI, which no wrapper of C sees; those of MPICH do both."""
    gfortran = shutil.which("gfortran") or shutil.which("gfortran-12")
    compiler = fortran_of(mpi, gfortran) if gfortran else None
    if not compiler or (mpi.family == "intelmpi" and module == "mpi_f08"):
        pytest.skip(f"no gfortran, or no module {module} of {mpi.family} for it")
    monkeypatch.setenv("OMPI_FC", str(gfortran))
    setting(mpi, monkeypatch)
    flags = ["-cpp", *(["-DF08"] if module == "mpi_f08" else [])]
    source = [*flags, str(DATA / "known.f90"), "-o", "known"]
    subprocess.run([compiler[0], *source, *compiler[1:]], check=True)
    capsys.readouterr()
    assert main(["profile", "--json", "--", mpi.mpirun, *TWO, "./known"]) == 0
    said, calls = counted(capsys)
    assert calls == {
        "Send": 1000,
        "Recv": 1000,
        "Isend": 20,
        "Irecv": 20,
        "Waitall": 20,
        "Allreduce": 10,
    }
    assert said["calls"]["Isend"]["bytes"] == 20 * 524288
    assert {part for part, most in said["most"].items() if most > 0} == {
        *("messages_small", "messages_large", "collectives_small", "outside"),
    }


@pytest.mark.installed
@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("exit", "ended without MPI_Finalize"),
        ("fail", "the command failed"),
        ("alone", "one rank exchanges no messages"),
        ("serial", "no rank called MPI_Init"),
    ],
)
def test_a_program_that_gives_no_profile(
    how: str,
    said: str,
    programs: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    mpi = any_mpi()
    setting(mpi, monkeypatch)
    known = str(programs(mpi))
    argv = {
        "serial": [sys.executable, "-c", "pass", "--mpi"],
        "alone": [mpi.mpirun, "-n", "1", "./alone"],
    }.get(how, [mpi.mpirun, *TWO, known, how])
    if how == "alone":
        source = "#include <mpi.h>\nint main() { MPI_Init(0, 0); MPI_Finalize(); }\n"
        Path("alone.cpp").write_text(source)
        subprocess.run([mpi.mpicxx, "alone.cpp", "-o", "alone"], check=True)
    assert main(["profile", "--output", "p.toml", "--", *argv]) in (2, 4)
    err = capsys.readouterr().err
    assert said in err
    assert not Path("p.toml").exists()
    assert not list(Path().glob(".paribus*"))


@pytest.mark.installed
def test_a_program_of_another_mpi_is_named(
    programs: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    families = {mpi.family: mpi for mpi in installations()}
    if not {"openmpi", "mpich"} <= families.keys():
        pytest.skip("needs Open MPI and MPICH")
    mpi = families["openmpi"]
    setting(mpi, monkeypatch)
    argv = [mpi.mpirun, *TWO, str(programs(families["mpich"]))]
    assert main(["profile", "--", *argv]) == 2
    assert "the program uses another MPI than the launcher" in capsys.readouterr().err
    assert main(["profile", "--output", "q.toml", "--mpi", "nothing", "--", *argv]) == 2


def record(rank: int, ranks: int = 2, **changes: Any) -> dict[str, Any]:
    calls = [
        ["Send", "messages_small", 10, 0.25, 80, 4, 0.0001],
        ["Waitall", "waiting", 1, 0.25, 0, 1, 0],
    ]
    made = {"rank": rank, "ranks": ranks, "threads": 1, "seconds": 1.0 + rank, "own_s": 0.01}
    made["cpu_s"] = 0.5
    return {
        **made,
        "init_s": 0.1,
        "library": "Open MPI v5.0.1, package: X",
        "calls": calls,
    } | changes


def test_shares_are_of_the_time_of_all_ranks() -> None:
    taken = summed([record(0), record(1)], "solver", "mpirun")
    assert taken.profile.shares["messages_small"] == pytest.approx(0.5 / 3, abs=1e-6)
    assert taken.profile.shares["outside"] == pytest.approx(2 / 3, abs=1e-6)
    assert (taken.least["waiting"], taken.most["waiting"]) == (0.125, 0.25)
    assert taken.calls["Send"] == {"calls": 20, "seconds": 0.5, "bytes": 160}
    assert taken.profile.library == "Open MPI v5.0.1"
    assert taken.cpu == 0.25
    file = io.StringIO()
    print_taken(taken, console_on(file, 200))
    assert "A rank had 25 % of a core: other programs" in file.getvalue()
    assert taken.own == pytest.approx(0.02 / 3, abs=1e-6)
    assert taken.timed == pytest.approx(10 / 22, abs=1e-4)
    assert taken.error == pytest.approx(1.96 * (2 * 0.0001) ** 0.5 / 3, abs=1e-4)
    assert "within 0.924 % of the time" in " ".join(file.getvalue().split())


def test_of_a_program_without_messages_none_were_early() -> None:
    taken = summed([record(0), record(1)], "solver", "mpirun")
    known = {"whole": True, "loop": "", "events": 2, "late": 0.5, "early": 0.0, "off_node": 0.0}
    skeleton = Skeleton("", 1.0, 0.5)
    shares = dict.fromkeys(taken.profile.shares, 0.0)
    for messages in (0.0, 0.5):
        of = {**shares, "messages_large": messages, "outside": 1 - messages}
        profile = replace(taken.profile, skeleton=skeleton, shares=of)
        file = io.StringIO()
        print_taken(replace(taken, profile=profile, skeleton=known), console_on(file, 200))
        assert "waits for ranks that come later" in file.getvalue()
        assert ("of the messages were sent" in file.getvalue()) is bool(messages)


@pytest.mark.parametrize(
    ("records", "said"),
    [
        ([record(0, 4), record(3, 4)], "no record of 2 ranks, the first of them rank 1"),
        ([record(0), record(1), record(0)], "started MPI more than once"),
    ],
)
def test_records_that_are_not_whole(
    records: list[dict[str, Any]], said: str, tmp_path: Path
) -> None:
    for number, one in enumerate(records):
        (tmp_path / f"{one['rank']}.{number}").write_text(json.dumps(one))
    with pytest.raises(UserError, match=said):
        read_records(tmp_path, "mpirun")


def test_a_profile_holds_no_secret_of_the_command() -> None:
    argv = ["mpirun", "-n", "4", "./solver", "--token", "abc", "--password=x", "PASSWORD=y", "-v"]
    argv += ["--in", "file.txt", "https://me:pw@host/x", "token:", "abc", "--pass", "12"]
    argv += ["--max-tokens", "512", "--key-size=8k", "http://host/x", "--api-key"]
    hidden = "(not shown)"
    assert discreet(argv) == [
        *("mpirun", "-n", "4", "./solver", "--token", hidden, f"--password={hidden}"),
        *(f"PASSWORD={hidden}", "-v", "--in", "file.txt", hidden, "token:", hidden, "--pass"),
        hidden,
        *("--max-tokens", "512", "--key-size=8k", "http://host/x", "--api-key"),
    ]


def test_what_lies_there_is_not_overwritten(capsys: pytest.CaptureFixture[str]) -> None:
    Path("true.profile.toml").touch()
    assert main(["profile", "--", "true"]) == 2
    assert "true.profile.toml: already exists" in capsys.readouterr().err


def test_the_rules_that_open_mpi_draws_do_not_hide_the_program_that_is_missing() -> None:
    said = (
        f"{'-' * 74}\nmpirun was unable to launch\nor execute an executable:\n\nExecutable: ./x\n"
    )
    assert first_errors(Captured(1, "", said)).endswith("an executable:; Executable: ./x")
