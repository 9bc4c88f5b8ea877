"""Recordings of machines: held against each other, and laid beside figures from elsewhere."""

from __future__ import annotations

import gzip
import json
import shutil
import tarfile
from pathlib import Path

import pytest

from archives import unpack
from log_folders import many, write
from studies import paribus
from test_probes_hostile_archives import add, tar_of

MACHINES = Path(__file__).parent / "machines"
HERE, OTHER = MACHINES / "kvm-root.tar.gz", MACHINES / "tcg-guest-numa-root.tar.gz"


def audited(tmp_path: Path, *words: str | Path) -> tuple[int, dict[str, object]]:
    done = paribus("audit", *words, "--json", cwd=tmp_path)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def kinds(answer: dict[str, object]) -> dict[str, str]:
    differences = answer["differences"]
    assert isinstance(differences, list)
    return {one["key"]: one["kind"] for one in differences if not one["node"]}


def test_two_machines_are_compared_without_a_study(tmp_path: Path) -> None:
    code, answer = audited(tmp_path, HERE, OTHER)
    assert (code, answer["clean"], answer["factor"]) == (3, False, "")
    assert answer["arms"] == ["kvm-root", "tcg-guest-numa-root"]
    assert kinds(answer)["cpu.model"] == "unexplained"
    text = paribus("audit", HERE, OTHER, cwd=tmp_path).stdout
    assert text.startswith("233 facts differ.\n")
    assert "    cpu.model: AMD EPYC -> QEMU TCG CPU version 2.5+\n" in text
    assert "verdict" not in text


def test_a_factor_explains_what_it_does_in_a_study(tmp_path: Path) -> None:
    code, answer = audited(tmp_path, HERE, OTHER, "--factor", "cluster")
    assert (code, kinds(answer)["cpu.model"]) == (3, "factor")
    assert kinds(answer)["limits.nofile"] == "unexplained"
    open_ = [key for key, kind in kinds(answer).items() if kind == "unexplained"]
    accepted = [word for key in open_ for word in ("--accept", f"{key}=known")]
    code, answer = audited(tmp_path, HERE, OTHER, "--factor", "cluster", *accepted)
    assert (code, answer["clean"]) == (0, True)
    done = paribus("audit", HERE, OTHER, "--factor", "cluster", *accepted, cwd=tmp_path)
    assert done.stdout.startswith("No fact that matters differs beyond the factor (cluster).")


def test_a_machine_does_not_differ_from_itself(tmp_path: Path) -> None:
    shutil.copy(HERE, tmp_path / "again.tar.gz")
    done = paribus("audit", HERE, "again.tar.gz", cwd=tmp_path)
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "No fact differs.")


def test_a_folder_of_recordings_is_one_side_and_an_unpacked_one_is_a_recording(
    tmp_path: Path,
) -> None:
    (tmp_path / "cluster").mkdir()
    for number, name in enumerate(("tcg-guest-numa-root", "tcg-guest-moved-root")):
        shutil.copy(MACHINES / f"{name}.tar.gz", tmp_path / "cluster" / f"n{number}.tar.gz")
    (tmp_path / "unpacked").mkdir()
    unpack(HERE, tmp_path / "unpacked")
    _, answer = audited(tmp_path, "unpacked", "cluster")
    facts = answer["facts"]
    assert isinstance(facts, dict)
    assert {arm: list(nodes) for arm, nodes in facts.items()} == {
        "unpacked": ["unpacked"],
        "cluster": ["n0", "n1"],
    }
    assert kinds(answer) == kinds(audited(tmp_path, HERE, "cluster")[1])


def refused(tmp_path: Path, *words: str | Path) -> str:
    done = paribus(*words, cwd=tmp_path, code=2)
    assert done.stderr.startswith("paribus: ")
    assert "Traceback" not in done.stderr
    return done.stderr


def test_what_is_no_recording_is_refused_with_the_fix(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "a.study").mkdir()
    (tmp_path / "a.study" / "plan.json").write_text("{}")
    (tmp_path / "text.tar.gz").write_text("no tar\n")
    said = {
        "paribus record --from": ("audit", HERE),
        "is given twice": ("audit", HERE, HERE),
        "holds no recording": ("audit", HERE, "empty"),
        "paribus compare DIR DIR": ("audit", HERE, "a.study"),
        "text.tar.gz": ("audit", HERE, "text.tar.gz"),
        "does not exist": ("audit", HERE, "nowhere.tar.gz"),
        "explains no fact": ("audit", HERE, OTHER, "--factor", "colour"),
        "--hosts": ("audit", HERE, OTHER, "--hosts", "a=b"),
        "names its own factor": ("audit", "mpi-transport", "--factor", "cluster"),
    }
    for text, words in said.items():
        assert text in refused(tmp_path, *words)


def test_an_archive_made_to_do_harm_is_refused_by_both_verbs(tmp_path: Path) -> None:
    (tmp_path / "bomb.tar.gz").write_bytes(gzip.compress(bytes(200 << 20), 1))
    link = tar_of(
        lambda tar: add(tar, "proc/cmdline", type=tarfile.SYMTYPE, linkname="/etc/passwd")
    )
    (tmp_path / "link.tar.gz").write_bytes(gzip.compress(link))
    write(tmp_path / "a", many())
    write(tmp_path / "b", many(1.1, seed=2))
    for name in ("bomb.tar.gz", "link.tar.gz"):
        assert name in refused(tmp_path, "audit", HERE, name)
        assert name in refused(tmp_path, "compare", "a", "b", "--facts", HERE, name)


def test_what_a_recording_holds_is_shown_and_obeyed_by_nothing(tmp_path: Path) -> None:
    for name, release in (("x", b"6.1\x1b[31m"), ("y", b"6.2\x1b]0;title\x07")):

        def members(tar: tarfile.TarFile, release: bytes = release) -> None:
            for path in ("unknown.json", "links.json"):
                add(tar, path, b"{}")
            add(tar, "proc/sys/kernel/osrelease", release)

        (tmp_path / f"{name}.tar.gz").write_bytes(gzip.compress(tar_of(members)))
    done = paribus("audit", "x.tar.gz", "y.tar.gz", "--all", cwd=tmp_path)
    assert "os.release" in done.stdout
    assert not set("\x1b\x07") & set(done.stdout)


# --- beside figures ------------------------------------------------------------------------------


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    write(tmp_path / "a", many())
    write(tmp_path / "b", many(1.1, seed=2))
    return tmp_path


def compared(logs: Path, *words: str | Path) -> tuple[int, dict[str, object]]:
    done = paribus("compare", "a", "b", *words, "--json", cwd=logs)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def word(answer: dict[str, object]) -> str:
    heads = answer["headlines"]
    assert isinstance(heads, list)
    return str(heads[0]["verdict"]["word"])


def test_without_a_factor_the_differences_stand_beside_the_verdict(logs: Path) -> None:
    code, bare = compared(logs)
    assert (code, word(bare), bare["differences"]) == (0, "slower", [])
    code, answer = compared(logs, "--facts", HERE, OTHER)
    assert (code, word(answer)) == (0, "slower")
    assert {kinds(answer)["cpu.model"], *kinds(answer).values()} == {"noted", "unknown"}
    facts, equal = answer["facts"], answer["equal_facts"]
    assert isinstance(facts, dict)
    assert isinstance(equal, int)
    assert (facts["a"]["cpu.model"], equal > 100) == ("AMD EPYC", True)
    done = paribus("compare", "a", "b", "--facts", HERE, OTHER, "--out", "out", cwd=logs)
    assert ": switched by `before, after`" in done.stdout
    assert "`paribus explain --a ./program --b ./program" in " ".join(done.stdout.split())
    assert "cpu.model: AMD EPYC -> QEMU TCG CPU version 2.5+" in done.stdout
    assert "QEMU TCG CPU" in (logs / "out" / "report.html").read_text()


def test_a_factor_that_does_not_explain_them_withholds_the_verdict(logs: Path) -> None:
    code, answer = compared(logs, "--facts", HERE, OTHER, "--factor", "cluster")
    assert (code, word(answer), kinds(answer)["cpu.model"]) == (3, "withheld", "factor")
    code, answer = compared(logs, "--facts", HERE, OTHER, "--factor", "age of the machine")
    assert (code, word(answer)) == (0, "slower")


def test_each_recording_goes_to_its_arm(logs: Path) -> None:
    """In the order of the arms, or by their names: with --reference the order is not clear."""
    named = ("--facts", f"b={OTHER}", f"a={HERE}")
    for words in (named, (*named, "--reference", "b")):
        facts = compared(logs, *words)[1]["facts"]
        assert isinstance(facts, dict)
        assert facts["a"]["cpu.model"] == "AMD EPYC"
    clear = "--facts a=FILE b=FILE"
    unclear: list[tuple[str | Path, ...]] = [
        ("--facts", HERE),
        ("--facts", HERE, f"b={OTHER}"),
        ("--facts", HERE, OTHER, "--reference", "a"),
    ]
    for given in unclear:
        said = refused(logs, "compare", "a", "b", *given)
        assert clear in said


def test_a_study_has_facts_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "a.study").mkdir()
    (tmp_path / "a.study" / "plan.json").write_text("{}")
    assert "--facts" in refused(tmp_path, "compare", "a.study", "--facts", HERE)
