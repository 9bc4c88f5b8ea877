"""Study files: what is refused, and that every refusal names file, key, value and fix."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.core import ParibusError, Step, StoreError, StudyError
from paribus.plan import read_plan
from paribus.studyfile.load import load_study

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
    settings = study.settings
    assert (settings.margin, settings.blocks, settings.budget_s, settings.seed) == (
        0.03,
        12,
        3600,
        5,
    )


@pytest.mark.parametrize(
    ("old", "new", "told"),
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
        ("blocks = 12", "blocks = 1", ["plan.blocks", "from 8 to 1000"]),
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
        ("[arms.a]\n", "", ["arms", "1 arm"]),
        ("[arms.a]", '[arms."a/b"]', ["arms.a/b", "not a usable name"]),
        (
            "[plan]",
            '[[benchmarks]]\nname = "latency"\n[plan]',
            ["two benchmarks are called 'latency'", "label"],
        ),
        ("[plan]", "[plan", ["is not TOML", "line"]),
        ("before = [", "before = ['\"', ", ["arms.b.before", "cannot be used"]),
        ("before = [", "before = ['', ", ["arms.b.before"]),
    ],
)
def test_a_refusal_names_place_and_fix(tmp_path: Path, old: str, new: str, told: list[str]) -> None:
    assert GOOD.count(old) >= 1
    with pytest.raises(StudyError) as refused:
        load(tmp_path, GOOD.replace(old, new, 1))
    message = str(refused.value)
    assert "study.toml" in message
    assert refused.value.fix
    for part in told:
        assert part in message, message


def test_a_container_that_cannot_be_is_refused_with_the_whole_cause_and_the_fix(
    tmp_path: Path,
) -> None:
    container = 'container = { engine = "namespace", each = "rank", network = "bridge" }'
    with pytest.raises(StudyError) as refused:
        load(tmp_path, GOOD.replace('container = { engine = "namespace" }', container, 1))
    assert refused.value.cause.endswith("than the launcher gave to the others")
    assert refused.value.fix == 'use each = "host", or network = "host"'


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="cannot be read: No such file"):
        load_study(tmp_path / "none.toml")


def test_a_study_with_more_blocks_than_looks_are_planned_for(tmp_path: Path) -> None:
    load(tmp_path, GOOD.replace("blocks = 12", "blocks = 1000"))
    with pytest.raises(StudyError, match="from 8 to 1000"):
        load(tmp_path, GOOD.replace("blocks = 12", "blocks = 1001"))


@given(
    line=st.sampled_from(GOOD.strip().splitlines()),
    value=st.one_of(
        st.integers(-(2**63), 2**63 - 1).map(str),
        st.sampled_from(["[]", "{}", '""', "true", "nan", "[[1]]", "1979-05-27", "{ a = 1 }"]),
    ),
)
def test_any_value_in_any_place_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, line: str, value: str
) -> None:
    """Never anything but a study or an error of ours."""
    key = line.partition("=")[0]
    path = tmp_path_factory.mktemp("fuzz") / "study.toml"
    path.write_text(GOOD.replace(line, f"{key}= {value}" if "=" in line else line + value, 1))
    with contextlib.suppress(ParibusError):
        assert load_study(path).arms


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


def test_a_container_given_as_a_word(tmp_path: Path) -> None:
    text = re.sub(r"(?m)^container = .*$", 'container = "docker"', GOOD)
    assert text != GOOD
    with pytest.raises(StudyError, match='engine = "docker" }; the engines are namespace'):
        load(tmp_path, text)


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
