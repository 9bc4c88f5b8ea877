"""Study files: what is refused, and that every refusal names file, key, value and fix."""

from __future__ import annotations

from pathlib import Path

import pytest

from paribus.benchmarks import BENCHMARKS, benchmark_of
from paribus.core import Program, Step, StoreError, StudyError
from paribus.launch.arms import program
from paribus.plan import read_plan
from paribus.studyfile.load import load_study
from processes import executable
from studies import paribus


def write(folder: Path, benchmark: str, *, tools: str = "", arms: str = "") -> Path:
    path = folder / "study.toml"
    path.write_text(
        f'question = "Which?"\nfactor = "nothing"\n{tools}\n{arms or "[arms.a]"}\n[arms.b]\n'
        f"[[benchmarks]]\n{benchmark}\n[plan]\nblocks = 8\nseed = 1\n"
    )
    return path


def asked(path: Path) -> Program:
    study = load_study(path)
    one = study.benchmarks[0]
    return program(study.arms[0], one, benchmark_of(one))


# --- path ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_relative_path_is_from_the_study_whatever_directory_one_is_in(tmp_path: Path) -> None:
    """The check before the launch and the launch look at the same place."""
    own = executable(tmp_path / "there" / "bin" / "osu_bw", "echo here")
    (tmp_path / "here").mkdir()
    study = write(tmp_path / "there", 'name = "osu_bw"\npath = "./bin/osu_bw"')
    assert asked(study).argv[0] == str(own)
    done = paribus("run", "../there/study.toml", "--out", "out", cwd=tmp_path / "here")
    assert "no executable file" not in done.stderr
    assert "(logs/" in done.stdout, "the program was launched, and printed no table"
    own.unlink()
    done = paribus("run", "../there/study.toml", "--out", "out2", cwd=tmp_path / "here", code=2)
    assert f"no executable file {own}" in done.stderr


def test_a_name_without_a_slash_is_looked_up_on_the_path(tmp_path: Path) -> None:
    argv = asked(write(tmp_path, 'name = "osu_bw"\npath = "osu_bw_7"')).argv
    assert argv[0] == "osu_bw_7"


def test_a_directory_holds_the_program_by_its_usual_name(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for path in ("bin", "./bin", str(tmp_path / "bin"), f"{tmp_path}/bin/"):
        study = write(tmp_path, f'name = "npb_is"\nclass = "S"\npath = "{path}"')
        assert asked(study).argv == (f"{tmp_path}/bin/is.S.2",)
    netperf = asked(write(tmp_path, 'name = "netperf"\npath = "bin"'))
    assert (netperf.argv[0], netperf.server[0]) == (
        f"{tmp_path}/bin/netperf",
        f"{tmp_path}/bin/netserver",
    )
    image = asked(write(tmp_path, 'name = "npb_is"\npath = "/in/an/image/"'))
    assert image.argv == ("/in/an/image/is.A.2",)


@pytest.mark.parametrize(
    ("pairs", "all_ranks"),
    [
        ("c/mpi/pt2pt/standard", "c/mpi/collective/blocking"),
        ("libexec/osu-micro-benchmarks/mpi/pt2pt", "libexec/osu-micro-benchmarks/mpi/collective"),
    ],
    ids=["built", "installed"],
)
def test_a_suite_is_named_once(tmp_path: Path, pairs: str, all_ranks: str) -> None:
    """OSU 7.4 has a folder for each kind of benchmark, where it is built and where installed."""
    bw = executable(tmp_path / "osu" / pairs / "osu_bw", "echo here")
    bcast = executable(tmp_path / "osu" / all_ranks / "osu_bcast", "echo here")
    names = 'name = "osu_bw"\n[[benchmarks]]\nname = "osu_bcast"\n[[benchmarks]]\nname = "npb_cg"'
    study = load_study(write(tmp_path, names, tools='[tools]\nosu = "osu"\nnpb = "/opt/npb/"'))
    argv = [program(study.arms[0], one, benchmark_of(one)).argv[0] for one in study.benchmarks]
    assert argv == [str(bw), str(bcast), "/opt/npb/cg.A.2"]
    own = write(tmp_path, 'name = "osu_bw"\npath = "/usr/bin/x"', tools='[tools]\nosu = "osu"')
    assert asked(own).argv[0] == "/usr/bin/x"


def test_two_programs_of_one_name_in_a_suite_are_refused(tmp_path: Path) -> None:
    executable(tmp_path / "osu" / "openmpi" / "osu_bw", "echo here")
    executable(tmp_path / "osu" / "mpich" / "osu_bw", "echo here")
    with pytest.raises(StudyError, match=r"several programs are called osu_bw: .*mpich"):
        load_study(write(tmp_path, 'name = "osu_bw"', tools='[tools]\nosu = "osu"'))


def test_a_suite_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"tools.nbp: unknown key") as caught:
        load_study(write(tmp_path, 'name = "npb_is"', tools='[tools]\nnbp = "/opt"'))
    assert "did you mean 'npb'" in caught.value.fix


def test_a_required_path_may_come_from_tools(tmp_path: Path) -> None:
    study = write(tmp_path, 'name = "pynamic"', tools='[tools]\npynamic = "./built"')
    (tmp_path / "built").mkdir()
    assert f"{tmp_path}/built/pynamic_driver_mpi4py.py" in asked(study).needs


# --- what cannot be launched ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "said", "fix"),
    [
        ('class = "B"', 'is.A.2, which does not fit class = "B"', 'set class = "A"'),
        ("ranks = 4", "is.A.2, which does not fit ranks = 4", "set ranks = 2"),
    ],
)
def test_a_program_whose_name_says_something_else_is_refused(
    tmp_path: Path, more: str, said: str, fix: str
) -> None:
    with pytest.raises(StudyError) as caught:
        load_study(write(tmp_path, f'name = "npb_is"\npath = "/opt/is.A.2"\n{more}'))
    assert said in caught.value.cause
    assert fix in caught.value.fix
    assert caught.value.place == f'{tmp_path}/study.toml: benchmarks[0]: path = "/opt/is.A.2"'


def test_of_npb_the_kernel_must_fit_too_and_x_fits_all_ranks(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match='does not fit name = "npb_cg"') as caught:
        load_study(write(tmp_path, 'name = "npb_cg"\npath = "/opt/is.A.2"'))
    assert 'set name = "npb_is"' in caught.value.fix
    for path in ("/opt/is.A.x", "/opt/my-is", "/opt/is.A.4.intel"):
        load_study(write(tmp_path, f'name = "npb_is"\nranks = 4\npath = "{path}"'))


@pytest.mark.parametrize(
    ("kernel", "ranks", "legal"),
    [
        *(("bt", 2, "1, 4, 9, 16 ..."), ("sp", 8, "1, 4, 9, 16 ..."), ("cg", 6, "1, 2, 4, 8 ...")),
        *(("bt", 9, ""), ("sp", 1, ""), ("lu", 6, ""), ("ep", 3, "")),
    ],
)
def test_a_number_of_ranks_with_which_no_npb_starts_is_refused(
    tmp_path: Path, kernel: str, ranks: int, legal: str
) -> None:
    if not legal:
        load_study(write(tmp_path, f'name = "npb_{kernel}"\nranks = {ranks}'))
        return
    with pytest.raises(StudyError, match=f"npb_{kernel} cannot be started with") as caught:
        load_study(write(tmp_path, f'name = "npb_{kernel}"\nranks = {ranks}'))
    assert caught.value.fix == f"set ranks to one of {legal}"


PAIRS = ("latency", "bandwidth", "bibandwidth", "osu_latency", "osu_bw", "osu_get_latency")
SEVERAL = ("message_rate", "allreduce", "osu_mbw_mr", "osu_barrier", "imb_pingpong", "imb_biband")


@pytest.mark.parametrize("name", [*PAIRS, *SEVERAL])
def test_one_rank_is_refused_where_two_talk(tmp_path: Path, name: str) -> None:
    with pytest.raises(StudyError, match=f"{name} cannot be started with 1 rank") as caught:
        load_study(write(tmp_path, f'name = "{name}"\nranks = 1'))
    assert "set ranks = 2" in caught.value.fix
    four = write(tmp_path, f'name = "{name}"\nranks = 4')
    if name in SEVERAL:
        load_study(four)
    else:
        with pytest.raises(StudyError, match="cannot be started with 4 ranks"):
            load_study(four)


def test_all_of_it_is_said_at_once(tmp_path: Path) -> None:
    more = '[[benchmarks]]\nname = "npb_is"\npath = "/opt/is.A.2"\nclass = "B"'
    study = write(tmp_path, f'name = "latency"\nranks = 1\n{more}\n[[benchmarks]]\nname = "osu_bv"')
    with pytest.raises(StudyError) as caught:
        load_study(study)
    assert caught.value.cause.startswith("3 problems\n")


def test_every_benchmark_can_be_started_as_it_is_by_default(tmp_path: Path) -> None:
    """Nothing that a study checks early forbids the defaults."""
    names = [
        name
        for name, one in BENCHMARKS.items()  # of `command` the program is the user's
        if name != "command" and not any(each.required for each in one.parameters.values())
    ]
    asked_for = "\n[[benchmarks]]\n".join(f'name = "{name}"' for name in names)
    assert len(load_study(write(tmp_path, asked_for)).benchmarks) == len(names)


# --- arms that switch ----------------------------------------------------------------------------


def test_before_commands_do_not_hide_a_missing_program(tmp_path: Path) -> None:
    arms = '[arms.a]\nbefore = "true"'
    write(tmp_path, f'name = "osu_bw"\npath = "{tmp_path}/bin/osu_bw"', arms=arms)
    executable(tmp_path / "b", "echo here")
    study = tmp_path / "study.toml"
    study.write_text(study.read_text().replace("[arms.b]", '[arms.b]\nbefore = "true"'))
    dry = paribus("run", "study.toml", "--dry-run", cwd=tmp_path)
    said = " ".join(dry.stdout.split())
    missing = f"osu_bw: no executable file {tmp_path}/bin/osu_bw"
    assert f"a, before its `before` commands: {missing}" in said
    done = paribus("run", "study.toml", "--out", "out", cwd=tmp_path, code=2)
    assert f"osu_bw in a, after its `before` commands: no executable file {tmp_path}" in done.stderr
    assert not list((tmp_path / "out" / "logs").glob("0*")), "nothing was launched"


@pytest.mark.slow
def test_a_program_that_before_commands_bring_about_is_found(tmp_path: Path) -> None:
    tool = executable(tmp_path / "osu_bw", "echo here")
    link = f"ln -sf {tool} {tmp_path}/mounted"
    arms = f'[arms.a]\nbefore = "{link}"'
    study = write(tmp_path, f'name = "osu_bw"\npath = "{tmp_path}/mounted"', arms=arms)
    study.write_text(study.read_text().replace("[arms.b]", f'[arms.b]\nbefore = "{link}"'))
    paribus("run", "study.toml", "--out", "out", cwd=tmp_path, code=4)
    assert list((tmp_path / "out" / "logs").glob("0*"))


@pytest.mark.parametrize("name", ["fio", "ior", "mdtest", "storage"])
def test_files_go_to_the_directory_of_the_launch_by_default(name: str, tmp_path: Path) -> None:
    """Not to that of the study, which is the default of a user's own command only."""
    (one,) = load_study(write(tmp_path, f'name = "{name}"')).benchmarks
    assert one.parameters["directory"] is None
    (one,) = load_study(write(tmp_path, f'name = "{name}"\ndirectory = "here"')).benchmarks
    assert one.parameters["directory"] == str(tmp_path / "here")


GOOD = """
question = "Which?"
factor = "network"
[arms.a]
[arms.b]
env = { X = "1" }
before = ["echo 'one word' two"]
container = { engine = "namespace" }
[[benchmarks]]
name = "latency"
bytes = ["8 B", "4 KiB"]
timeout = "2 min"
[plan]
margin = "3 %"
blocks = 12
budget = "1 h"
seed = 5
"""


def load(tmp_path: Path, text: str) -> object:
    path = tmp_path / "study.toml"
    path.write_text(text)
    return load_study(path)


def test_a_whole_study(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(GOOD)
    study = load_study(path)
    assert [arm.name for arm in study.arms] == ["a", "b"]
    assert study.arms[1].before == (Step(("echo", "one word", "two")),)
    assert study.arms[1].env == {"X": "1"}
    assert study.arms[1].container is not None
    assert study.arms[1].container.network == "bridge"
    assert list(study.benchmarks[0].parameters["bytes"]) == [8, 4096]
    assert study.benchmarks[0].timeout_s == 120
    plan = study.settings
    assert (plan.margin, plan.blocks, plan.budget_s, plan.seed) == (0.03, 12, 3600, 5)


@pytest.mark.parametrize(
    ("old", "new", "reported"),
    [
        ('question = "Which?"', "", ["question", "is missing"]),
        ('factor = "network"', 'factor = ""', ["factor", "''"]),
        ("[arms.b]", "[arms.b]\nmpii = 'x'", ["arms.b.mpii", "unknown key", "did you mean 'mpi'"]),
        ("[plan]", "[plan]\nblock = 9", ["plan.block", "did you mean 'blocks'"]),
        ("[plan]", "[plans]", ["plans", "did you mean 'plan'"]),
        ('bytes = ["8 B"', 'byte = ["8 B"', ["benchmarks[0].byte", "did you mean 'bytes'"]),
        ('"4 KiB"', '"4 KB"', ["benchmarks[0].bytes", "4 KB", "KiB"]),
        ('name = "latency"', 'name = "latancy"', ["latancy", "did you mean 'latency'"]),
        ('timeout = "2 min"', "timeout = 2", ["benchmarks[0].timeout = 2", "no unit"]),
        ('margin = "3 %"', "margin = 3", ["plan.margin = 3", "2 %"]),
        ("blocks = 12", "blocks = 7", ["plan.blocks = 7", "from 8"]),
        ("blocks = 12", "blocks = 1001", ["plan.blocks", "from 8 to 1000"]),
        ("seed = 5", "seed = -5", ["plan.seed = -5"]),
        ("seed = 5", "bind = 'socket'", ["plan.bind = 'socket'", '"core"']),
        ("seed = 5", "confidence = 0.5", ["plan.confidence", "0.95"]),
        ('engine = "namespace"', 'engine = "dcoker"', ["arms.b.container.engine", "podman"]),
        ('engine = "namespace"', 'engine = "dcoker"', ["arms.b.container.engine", '"docker"']),
        ('engine = "namespace"', 'engine = "docker"', ["needs an image", 'image = "debian:12"']),
        (
            'engine = "namespace"',
            'engine = "apptainer", image = "docker://x"',
            ["fetched by every rank", "`apptainer pull image.sif docker://x`"],
        ),
        ('engine = "namespace"', 'engine = "namespace", network = "host"', ["container", "bridge"]),
        ('engine = "namespace"', 'engine = "namespace", image = "x"', ["no images", "podman"]),
        ('env = { X = "1" }', "env = { X = 1 }", ["arms.b.env", 'X = "1"']),
        ('env = { X = "1" }', 'env = { "X=Y" = "1" }', ["X=Y", "environment variable"]),
        ('env = { X = "1" }', "simulate = 'x'", ["arms.b.simulate", "is not supported yet"]),
        ('env = { X = "1" }', "modules = ['x']", ["arms.b.modules", "`mpi` and `env`"]),
        ("[arms.a]\n", "", ["arms", "1 arm"]),
        ("[arms.a]", '[arms."a/b"]', ["arms.a/b", "not a usable name"]),
        (
            "[plan]",
            '[[benchmarks]]\nname = "latency"\n[plan]',
            ["two benchmarks are called 'latency'", "label"],
        ),
        (
            'container = { engine = "namespace" }',
            'container = "docker"',
            ['engine = "docker" }; the engines are namespace'],
        ),
        (
            '{ engine = "namespace" }',
            '{ engine = "namespace", each = "rank", network = "bridge" }',
            ["than the launcher gave to the others", 'use each = "host", or network = "host"'],
        ),
        ("[plan]", "[plan", ["is not TOML", "line"]),
        ("before = [", "before = ['\"', ", ["arms.b.before", "cannot be used"]),
        ("before = [", "before = ['', ", ["arms.b.before"]),
    ],
)
def test_a_refusal_names_place_and_fix(
    tmp_path: Path, old: str, new: str, reported: list[str]
) -> None:
    assert GOOD.count(old) >= 1
    with pytest.raises(StudyError) as refused:
        load(tmp_path, GOOD.replace(old, new, 1))
    message = str(refused.value)
    assert "study.toml" in message
    assert refused.value.fix
    for part in reported:
        assert part in message, message


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="cannot be read: No such file"):
        load_study(tmp_path / "none.toml")


ASKED = {
    "clusters": {"first": "node[1-2]", "second": "node[3-4]"},
    "vm-npb": {"physical": "node[1-36]", "virtual": "vm[1-36]"},
}
"""Hosts of studies that have none of their own, and ask for them by name."""


def test_virtual_machines_are_compared_at_two_sizes() -> None:
    from paribus.studyfile.shipping import shipped_studies

    study = load_study(shipped_studies()["vm-npb"], hosts=ASKED["vm-npb"])
    sizes: dict[str, list[int]] = {one.of: [] for one in study.benchmarks}
    for one in study.benchmarks:
        sizes[one.of].append(one.ranks)
        assert one.parameters["class"] == "C"
    squares = {"npb_bt", "npb_sp"}
    assert {name for name, found in sizes.items() if found == [16, 36]} == squares
    assert sum(found == [16, 32] for found in sizes.values()) == 6
    with pytest.raises(StudyError) as refused:
        load_study(shipped_studies()["vm-npb"])
    assert "--hosts physical=" in str(refused.value)
    assert "--hosts virtual=" in str(refused.value)


def test_every_study_that_ships_loads() -> None:
    from paribus.studyfile.shipping import shipped_studies

    studies = shipped_studies()
    assert {"container-network", "mpi-transport", "same"} <= set(studies)
    del studies["roce-ib"]  # it asks for more than hosts: tests/test_adapters.py
    del studies["pcie-topology"]  # it needs a profile file: tests/test_topology_study.py
    for name, path in studies.items():
        assert load_study(path, hosts=ASKED.get(name, {})).question.endswith("?")
        assert sum(1 for line in path.read_text().splitlines() if line.strip()) <= 30


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (GOOD.encode("utf-16"), "is text in UTF-16; save it as UTF-8"),
        (b"\x7fELF\0\0\xd0", "is a binary file, not text"),
        (
            GOOD.encode().replace(b"factor", b"\xe9", 1),
            "is not UTF-8 (at line 3); save it as UTF-8",
        ),
        (b"a = 1\nb = \n", "(at line 2, column 5)"),
    ],
)
def test_a_file_that_is_no_text_says_what_it_is(tmp_path: Path, data: bytes, said: str) -> None:
    path = tmp_path / "study.toml"
    path.write_bytes(data)
    with pytest.raises(StudyError) as refused:
        load_study(path)
    assert said in refused.value.cause
    assert refused.value.fix.startswith("correct it, or give the path of a study file")


def test_a_byte_order_mark_is_no_problem(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    assert load_study(path) == load(tmp_path, GOOD)


def test_directories_and_files_that_were_mixed_up(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text("{}")
    with pytest.raises(StudyError, match="this is a study directory: `paribus report"):
        load_study(tmp_path)
    (tmp_path / "study.toml").write_text(GOOD)
    with pytest.raises(StoreError, match="is a file, not a study directory") as refused:
        read_plan(tmp_path / "study.toml")
    assert refused.value.fix.startswith("`paribus run ")


def test_a_report_of_a_study_file_names_the_directory_that_it_filled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("study.toml", "sent.zip", "study.study/plan.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(GOOD)
    with pytest.raises(StoreError) as refused:
        read_plan(Path("study.toml"))
    assert "`paribus report study.study`" in refused.value.fix
    with pytest.raises(StoreError, match="is not a study directory") as refused:
        read_plan(Path("study"))
    assert "`paribus report study.study`" in refused.value.fix
    with pytest.raises(StoreError) as refused:
        read_plan(Path("sent.zip"))
    assert "`paribus pack --open sent.zip`" in refused.value.fix


def test_all_problems_of_a_file_are_reported_at_once(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(
        'question = "?"\nfactr = "network"\n[arms.a]\ntransprt = "shm"\n[arms.b]\nmpi = 3\n'
        '[[benchmarks]]\nname = "latncy"\n[[benchmarks]]\nname = "latency"\nranks = 0\n'
        '[[benchmarks]]\nfile = "own.py"\nname = "own"\n[plan]\nblocks = 3\nmargin = "lots"\n'
    )
    with pytest.raises(StudyError, match="9 problems") as refused:
        load_study(path)
    said = str(refused.value)
    for place in (
        *("factr", "factor: is missing", "arms.a.transprt", "arms.b.mpi = 3", "plan.blocks = 3"),
        *("benchmarks[0].name = 'latncy'", "benchmarks[1].ranks = 0", "benchmarks[2].name"),
        "plan.margin = 'lots'",
    ):
        assert said.count(f"\n  {place}") == 1, said
