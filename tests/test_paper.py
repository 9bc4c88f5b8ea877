"""`export --to paper`: LaTeX compiles it, and the twelve rules are answered for each study.

LaTeX is that of the PATH, or what continuous integration unpacks.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import judgements
from paribus.core import Judgement
from paribus.paper import article, latex, rules
from studies import paribus
from study_directories import write_directory
from test_report_paper import EVERY, EVIL, evil, golden

UNPACKED = os.environ.get("PARIBUS_TEST_LATEX", "/opt/paribus-tests/latex")
PATH = f"{os.environ['PATH']}:{UNPACKED}"
GOLDEN = Path(__file__).parent / "golden"


def compiled(folder: Path, *programs: str) -> str:
    """Return what the last of the programs said of main.tex; each must find nothing wrong."""
    said = ""
    for program in programs:
        found = shutil.which(program, path=PATH)
        if found is None:
            pytest.skip(f"{program} is not installed")
        words = [found, *(["-halt-on-error", "-interaction=nonstopmode"] * (program != "bibtex"))]
        done = subprocess.run([*words, "main"], cwd=folder, capture_output=True, check=False)
        said = done.stdout.decode(errors="replace")
        assert done.returncode == 0, said[-2000:]
    return said


def shown(folder: Path, *bodies: str) -> str:
    """Return what pdfLaTeX said of texts of papers, one after the other."""
    start, end = article.MAIN.split(r"\maketitle")[0], r"\end{document}"
    (folder / "main.tex").write_text(start + "\n\\clearpage\n".join(bodies) + end)
    return compiled(folder, "pdflatex")


def bodies(judgement: Judgement) -> list[str]:
    texts = article.files(judgement, "", {}, 88)
    return [texts[f"{name}.tex"] for name in ("results", "methods", "rules", "tables")]


def test_a_study_becomes_a_paper(tmp_path: Path) -> None:
    """Figures of the asked width and all, without a warning; a second export replaces the first."""
    study = write_directory(tmp_path / "study", {"a": 1.0, "b": 1.1}, blocks=20)
    done = paribus("export", str(study), "--to", "paper", "--width", "70mm", cwd=tmp_path)
    done = paribus(
        "export", str(study), "--to", "paper", "--title", "50 % of $x$", cwd=tmp_path, code=0
    )
    paper = study / "paper"
    assert set(done.stdout.split()) == {str(p) for p in paper.rglob("*") if p.is_file()}
    said = compiled(paper, "pdflatex", "bibtex", "pdflatex", "pdflatex")
    assert "Output written on main.pdf" in said
    assert not re.findall("undefined|Rerun|multiply|Overfull|too large", said)
    cited = re.findall(r"\\bibitem\{(\w+)\}", (paper / "main.bbl").read_text())
    assert {"paribus", "study", "hoefler2015"} <= set(cited)
    box = re.search(
        rb"/MediaBox\s*\[\s*0 0 ([\d.]+)", (paper / "figures/overview.pdf").read_bytes()
    )
    assert box
    assert float(box[1]) == pytest.approx(88 / 25.4 * 72, abs=1)


@pytest.mark.slow
def test_every_judgement_compiles(tmp_path: Path) -> None:
    shown(tmp_path, *(text for name in EVERY for text in bodies(EVERY[name]())))


@pytest.mark.slow
def test_no_name_is_a_command(tmp_path: Path) -> None:
    """Names, units and titles that are LaTeX stop nothing, in whatever part of the paper."""
    texts = [latex.escape(f"start {text} end") for text in EVIL]
    shown(tmp_path, *texts, *(body for text in EVIL for body in bodies(evil(text))))


@pytest.mark.parametrize("name", ["two_arms", "logs", "scaling", "empty", "withheld"])
def test_the_twelve_rules(name: str) -> None:
    found = rules.answers(EVERY[name]())
    said = [f"{n}. {one.rule}. {one.kept}. {one.text}\n" for n, one in enumerate(found, 1)]
    assert len(said) == 12
    golden(GOLDEN / f"rules-{name}.txt", "\n".join(said))


def test_every_work_that_is_cited_has_an_entry() -> None:
    entries = article.files(judgements.two_arms(), "", {}, 88)["references.bib"]
    known = re.findall(r"@\w+\{(\w+),", entries)
    assert len(known) == len(set(known))
    assert {*article.CITED.values(), "hoefler2015"} == set(known)
    assert entries.count("{") == entries.count("}")
