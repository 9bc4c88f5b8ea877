"""`paribus pack`: a study in one file comes back as it was, and without names if asked."""

from __future__ import annotations

import html
import json
import re
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from paribus.__main__ import main
from paribus.cli import outputs
from paribus.cli.exports import TEXTS
from paribus.core import StoreError
from paribus.judge.conclude import judged
from paribus.launch.scrubbing import Names
from paribus.report.export import to_json
from paribus.store.pack import SUMS, pack, unpack
from studies import paribus
from study_directories import write_directory

PRIVATE = ("node17.cluster.example", "10.20.30.40", "aa:bb:cc:dd:ee:ff", "/home/ada/")


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """Return a study of hosts with names, addresses and a user in facts and logs."""
    host, address, mac, home = PRIVATE
    facts = {
        "rank.hosts": [host],
        "net.0.mac": mac,
        "net.0.address": address,
        "mpi.version": "4.1.4.0",
        "kernel.build": f"{home}kernels",
    }
    directory = write_directory(
        tmp_path / "study",
        {"host": 1.0, "bridged": 1.2},
        blocks=18,
        facts={"host": facts, "bridged": {**facts, "net.0.address": "10.20.30.41"}},
    )
    (directory / "logs").mkdir()
    (directory / "logs" / "0001-0-host-latency.out").write_text(
        f"on {host} (node17) at {address}, {mac}, by {home}bin/latency\n8 2.5\n"
    )
    outputs.write_files(judged(directory), directory)
    return directory


def carried_out(*words: str, code: int = 0) -> str:
    done = paribus("pack", *words, cwd=Path.cwd(), timeout_s=60)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def test_a_study_comes_back_as_it_was(study: Path, tmp_path: Path) -> None:
    assert "study.zip" in carried_out(str(study))
    back = tmp_path / "back"
    carried_out("--open", str(tmp_path / "study.zip"), "--out", str(back))
    for path in study.rglob("*"):
        if path.is_file() and path.name != "lock":
            assert (back / path.relative_to(study)).read_bytes() == path.read_bytes(), path
    assert to_json(judged(back))["headlines"] == to_json(judged(study))["headlines"]
    with zipfile.ZipFile(tmp_path / "study.zip") as archive:
        archive.extractall(tmp_path / "by-hand")
    argv = ["sha256sum", "--quiet", "-c", SUMS]
    subprocess.run(argv, cwd=tmp_path / "by-hand", check=True, capture_output=True)


def test_scrubbed_names_are_nowhere_and_verdicts_stay(study: Path, tmp_path: Path) -> None:
    carried_out(str(study), "--scrub")
    back = tmp_path / "back"
    unpack(tmp_path / "study.zip", back)
    whole = b"".join(path.read_bytes() for path in back.rglob("*") if path.is_file())
    for name in (*PRIVATE, "node17", "10.20.30.41", str(tmp_path)):
        assert name.encode() not in whole, name
    before, after = to_json(judged(study)), to_json(judged(back))
    assert after["sentence"] == before["sentence"]
    kinds = [(d["key"], d["kind"]) for d in before["differences"]]
    assert [(d["key"], d["kind"]) for d in after["differences"]] == kinds
    assert after["facts"]["host"]["mpi.version"] == "4.1.4.0"
    assert (back / "logs" / "0001-0-host-latency.out").read_text().endswith("8 2.5\n")


def test_different_names_stay_different() -> None:
    names = Names(["n1", "n2", "n10"])
    assert names.text("n1 n2 n10 n1") == "node1 node2 node3 node1"
    assert names.text("n11 xn1") == "n11 xn1"
    assert names.text("10.0.0.1 and 10.0.0.2, 127.0.0.1") == "192.0.2.4 and 192.0.2.5, 127.0.0.1"


def repacked(source: Path, target: Path, change) -> Path:
    with zipfile.ZipFile(source) as archive, zipfile.ZipFile(target, "w") as out:
        files = {name: archive.read(name) for name in archive.namelist()}
        for name, data in change(files).items():
            out.writestr(name, data)
    return target


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda f: {**f, "verdict.json": b"{}"}, "verdict.json has been changed"),
        (lambda f: {k: v for k, v in f.items() if k != "plan.json"}, "does not name the files"),
        (lambda f: {**f, "extra": b""}, "does not name the files"),
        (lambda f: {k: v for k, v in f.items() if k != SUMS}, "did not write it"),
        (
            lambda f: {**f, "../evil": b"", SUMS: f[SUMS] + b"0" * 64 + b"  ../evil\n"},
            "names a file outside of it",
        ),
        (
            lambda f: {**f, "/evil": b"", SUMS: f[SUMS] + b"0" * 64 + b"  /evil\n"},
            "names a file outside of it",
        ),
    ],
)
def test_what_was_changed_is_refused_and_leaves_nothing(
    study: Path, tmp_path: Path, change, says: str
) -> None:
    pack(study, ["plan.json", "launches.db", "verdict.json"], tmp_path / "a.zip")
    damaged = repacked(tmp_path / "a.zip", tmp_path / "b.zip", change)
    with pytest.raises(StoreError, match=says):
        unpack(damaged, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "evil").exists()


def test_a_cut_file_is_refused(study: Path, tmp_path: Path) -> None:
    pack(study, ["plan.json", "launches.db"], tmp_path / "a.zip")
    data = (tmp_path / "a.zip").read_bytes()
    for end in range(0, len(data), 997):
        (tmp_path / "b.zip").write_bytes(data[:end])
        with pytest.raises(StoreError):
            unpack(tmp_path / "b.zip", tmp_path / "out")
        assert not (tmp_path / "out").exists()


def test_nothing_is_overwritten(study: Path, tmp_path: Path) -> None:
    carried_out(str(study))
    assert "exists already" in carried_out(str(study), code=2)
    said = carried_out("--open", str(tmp_path / "study.zip"), code=2)
    assert "cannot be made: File exists" in said
    assert json.loads((study / "verdict.json").read_text())


def test_the_suite_s_file_has_every_launch(study: Path) -> None:
    """What is written for OpenBenchmarking.org is what our reader of such files demands."""
    from paribus.logs.harnesses.phoronix import read
    from paribus.paper.openbenchmarking import document
    from paribus.readers.harness import Measured

    judgement = judged(study)
    found = [one for one in read(document(judgement)) if isinstance(one, Measured)]
    written = sorted((one.arm, one.reading.samples[0].values[0] * 1e6) for one in found)  # in us
    ours = [(one.arm, value) for one in judgement.figures for value in one.values.values()]
    assert written == [(arm, pytest.approx(value)) for arm, value in sorted(ours)]
    assert {one.metrics[0].better for one in found} == {"lower"}


def test_each_format_is_exported_without_a_report(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pandas = pytest.importorskip("pandas")
    named = {name: study / file for name, file in TEXTS.items()} | {
        "parquet": study / "values.parquet"
    }
    for name, path in named.items():
        path.unlink(missing_ok=True)
        assert main(["export", str(study), "--to", name]) == 0
        *figures, last = capsys.readouterr().out.splitlines()
        assert last == str(path)
        assert {Path(one).parent.name for one in figures} <= {"figures"}  # which the text includes
        assert all(Path(one).stat().st_size for one in (*figures, last))
    whole = pandas.read_parquet(named["parquet"])
    assert len(whole) == len(list(judged(study).figures)) * 2  # two cases
    assert main(["export", str(study), "--to", "svg"]) == 0
    assert "figures/" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["export", str(study)])
    bare = study.parent / "bare"  # a verdict.json alone, as it may be sent
    bare.mkdir()
    (bare / "verdict.json").write_bytes((study / "verdict.json").read_bytes())
    capsys.readouterr()
    assert main(["export", str(bare), "--to", "parquet"]) == 2
    assert "values.parquet: is not there" in capsys.readouterr().err


def test_the_notebook_shows_the_texts_of_others_as_text(study: Path) -> None:
    from dataclasses import replace

    from markdown_it import MarkdownIt

    from paribus.paper.notebook import document

    judgement = judged(study)
    evil = "<img src=x onerror=alert(1)> **a** [b](javascript:c) `d` $e$ # f"
    judgement = replace(judgement, study=replace(judgement.study, question=evil, factor=evil))
    source = "".join(json.loads(document(judgement))["cells"][0]["source"])
    shown = MarkdownIt("commonmark", {"html": True}).render(source)
    assert set(re.findall(r"<(/?\w+)", shown)) == {"h1", "/h1", "p", "/p", "strong", "/strong"}
    assert html.unescape(re.search("<h1>(.*)</h1>", shown)[1]) == evil


def test_the_notebook_draws_from_the_files(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    from paribus.paper.notebook import document

    notebook = json.loads(document(judged(study)))
    assert notebook["nbformat"] == 4
    assert "".join(notebook["cells"][0]["source"]).startswith("# Which?\n\n**bridged is slower")
    monkeypatch.chdir(study)
    names: dict[str, object] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    figures = [pyplot.figure(number) for number in pyplot.get_fignums()]
    assert len(figures) == 3
    ratios, cases, launches = (one.axes[0] for one in figures)
    assert [text.get_text() for text in ratios.get_yticklabels()] == ["latency: bridged"]
    assert [line.get_label() for line in cases.get_lines()] == ["host", "bridged"]
    drawn: list[Any] = [line.get_xydata() for line in launches.get_lines()]
    assert sum(map(len, drawn)) == 36
    pyplot.close("all")
