"""Reports for papers: tables, methods, figures, and what is read of a stored verdict."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import judgements
from paribus.border import csv_cell
from paribus.core import Arm, Case, Judgement, Notice, NoticeName, StoreError
from paribus.paper import latex, markdown, paper
from paribus.paper.methods import methods
from paribus.report import export, figures, lookup, stored
from paribus.words.values import notice_text, reason_of
from test_matrices import matrices, with_matrices
from test_report_terminal import printed

GOLDEN = Path(__file__).parent / "golden"
EVERY = judgements.ALL | judgements.MORE
SET = ("two_arms", "three_arms", "withheld", "hostile", "logs")
"""Judgements whose LaTeX has a golden file: Markdown, of all, shows the rest."""


def planned(name: str) -> Judgement:
    """Return a judgement with a hash of its plan, and a version, that no change of ours moves."""
    made = EVERY[name]()
    return replace(made, plan_sha256="5" * 64, versions={**made.versions, "reported by": "0.1.0"})


def golden(path: Path, text: str) -> None:
    """Rewrite with UPDATE_GOLDEN=1 after a wanted change, and read the difference."""
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize("name", EVERY)
def test_markdown(name: str) -> None:
    golden(GOLDEN / f"paper-{name}.md", markdown.document(planned(name)))


@pytest.mark.parametrize("name", SET)
def test_latex(name: str) -> None:
    golden(GOLDEN / f"paper-{name}.tex", latex.document(planned(name)))


def test_the_foot_of_a_table_names_no_process() -> None:
    names = ("number", "benchmark", "arm", "block", "outlying", "disturbed")
    first = dict(zip(names, (19, "latency", "host", 3, None, ["stolen time"]), strict=True))
    busy = {"numbers": [19, 20], "first": first, "counted": 16, "busy": {"make -j": 4}}
    notice = Notice(NoticeName.DISTURBED_LAUNCHES, "warning", ("latency",), {**busy, "many": True})
    assert "make -j (in 4)" in notice_text(notice)
    text = markdown.document(replace(planned("two_arms"), notices=(notice,)))
    assert "2 of 16 launches are outside the noise gate, and count as well." in text
    assert "make -j" not in text
    assert "logs/0019" not in text


# --- what others wrote is shown, never obeyed -------------------------------------------------

EVIL = (
    *("[x](http://e.org)", "a|b", "`c`", "**d**", "<b>e</b>", "&amp;", "@everyone", "#1", "$x$"),
    *("\\input{/etc/passwd}", "}", "{", "%", "[1cm]", "*", "a--b", "~", "^", "_", "\x1b[31m"),
    *("=1+1", "-2", "+3", "@SUM(A1)", "![i](j)", "www.e.org", "https://e.org", "\n\n# h", '"'),
    "''",
)


def evil(text: str) -> Judgement:
    """Return a judgement in which every name is `text`."""
    base = judgements.withheld()
    arms = (Arm(f"{text}r"), Arm(text))
    metric = replace(base.headlines[0].metric, unit=text)
    heads = tuple(replace(f, benchmark=text, arm=text, metric=metric) for f in base.headlines)
    named = replace(base.study, question=text, arms=arms, factor=text)
    return replace(base, study=named, headlines=heads, cases=())


@pytest.mark.parametrize("text", EVIL)
def test_no_name_is_markup_in_markdown(text: str) -> None:
    lines = markdown.document(evil(text), title=text).splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert len(rows) == 4
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {9}
    for line in lines:
        plain = re.sub(r"</?sup>|&(?:\w+|#[0-9]+);|\\.", "", line)
        plain = re.sub(r"^\*\*(.*?)\*\*", r"\1", plain)
        assert not re.search(r"[<>&@`*_\[~$#]|://|www\.", plain), line
    assert "\x1b" not in "\n".join(lines)


TOKEN = re.compile(r"\\(?P<command>[A-Za-z]+|.)|(?P<special>[{}$&#^_%~])|[^\\{}$&#^_%~]+", re.S)
KNOWN = re.compile(
    "begin|end|centering|small|setlength|tabcolsep|caption|toprule|midrule|bottomrule|textsuperscript|smallskip|footnotesize"
    "|linewidth|par|paragraph|textbackslash|textasciicircum|textasciitilde|textless|textgreater"
    "|textbar|textquotedbl|textasciigrave"
)


def tokens(text: str) -> Iterator[re.Match[str]]:
    at = 0
    while at < len(text):
        found = TOKEN.match(text, at)
        assert found, text[at : at + 20]
        yield found
        at = found.end()


def check_latex(text: str) -> None:
    """Assert that LaTeX would set it: groups and environments close, rows have all their cells."""
    body = "".join(line for line in text.splitlines(keepends=True) if line[:1] != "%")
    depth, environments = 0, []
    for found in tokens(body):
        command, special = found["command"], found["special"]
        if command and command.isalpha():
            assert KNOWN.fullmatch(command), command
            name = re.match(r"\{(\w+)\}", body[found.end() :])
            if command == "begin" and name:
                environments.append(name[1])
            elif command == "end" and name:
                assert environments.pop() == name[1]
        elif command:
            assert command in "{}$&#_%\\", command
        elif special in ("{", "}"):
            depth += 1 if special == "{" else -1
            assert depth >= 0
        elif special:
            assert special == "&", special
            assert environments[-1] == "tabular"
    assert depth == 0
    assert environments == []
    for columns, rows in re.findall(
        r"\\begin\{tabular\}\{(\w+)\}(.*?)\\end\{tabular\}", body, re.S
    ):
        for row in rows.split("\\\\\n")[:-1]:
            assert len(re.findall(r"(?<!\\)&", row)) == len(columns) - 1, row
            first = re.sub(r"\\(toprule|midrule)|\s", "", row)
            assert first[:1] not in ("[", "*"), row


@pytest.mark.parametrize("text", EVIL)
def test_no_name_is_a_command_in_latex(text: str) -> None:
    check_latex(latex.document(evil(text), title=text))


@pytest.mark.parametrize("name", EVERY)
def test_latex_can_be_set(name: str) -> None:
    check_latex(latex.document(EVERY[name]()))


def test_the_check_of_latex_finds_what_is_wrong() -> None:
    good = latex.document(judgements.withheld())
    check_latex(good)
    for wrong in (
        good.replace("latency & us", "latency us", 1),
        good.replace("latency & us", "[1] & us", 1),
        good.replace("latency & us", r"\input{x} & us", 1),
        good.replace("latency & us", "{latency & us", 1),
        good.replace(r"95 \%", "95 $", 1),
        good.replace(r"\end{minipage}", "", 1),
    ):
        assert wrong != good
        with pytest.raises(AssertionError):
            check_latex(wrong)


@pytest.mark.parametrize("text", EVIL)
def test_the_table_as_csv_reads_back_and_computes_nothing(text: str) -> None:
    file = io.StringIO(newline="")
    judgement = evil(text)
    export.table_csv(judgement, file)
    rows = list(csv.DictReader(io.StringIO(file.getvalue(), newline="")))
    for row, f in zip(rows, judgement.headlines, strict=True):
        assert tuple(row) == export.TABLE_COLUMNS
        assert row["arm"] == csv_cell(text)
        assert not any(re.match(r" *[=+@-]|\t|\r", row[c]) for c in ("arm", "benchmark", "unit"))
        assert f.comparison is not None
        assert float(row["ratio"]) == f.comparison.ratio
        assert row["note"] == f"{reason_of(f.verdict)}."


# --- tables ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY)
def test_every_headline_is_a_row_and_every_verdict_that_is_none_has_a_note(name: str) -> None:
    judgement = EVERY[name]()
    table = paper.headlines(judgement)
    rows = lookup.rows(judgement)
    assert len(rows) == len(judgement.headlines) + len(judgement.others)
    assert [row for row in rows if row.decides] == [*judgement.headlines]
    for f, cells, mark in zip(rows, table.rows, table.marks, strict=True):
        assert cells[-1] == f.verdict.word.value
        if f.verdict.word in paper.SAID and f.verdict.size_known and f.verdict.final:
            assert not mark or "unless" in f.verdict.figures
        else:
            assert table.notes[mark]
        if f.comparison and not f.verdict.size_known:
            assert "size withheld" in cells


def test_a_title_replaces_the_question() -> None:
    judgement = judgements.two_arms()
    assert markdown.document(judgement).startswith(f"**{judgement.study.question}**")
    assert markdown.document(judgement, "Table 1").startswith("**Table 1**\n")
    assert r"\caption{Table 1}" in latex.document(judgement, "Table 1")


def test_many_cases_are_no_table_of_a_paper() -> None:
    base = judgements.two_arms()
    (first, *_) = base.cases
    many = tuple(replace(first, case=Case.of(bytes=n)) for n in range(paper.MOST_CASES + 1))
    judgement = replace(base, cases=many)
    assert "latency by case" not in markdown.document(judgement)
    assert "The cases of latency are in cases.csv." in markdown.document(judgement)


# --- methods ---------------------------------------------------------------------------------


def changed(**settings: Any) -> str:
    base = judgements.two_arms()
    study = replace(base.study, settings=replace(base.study.settings, **settings))
    return methods(replace(base, study=study))


def test_designs_that_no_golden_file_shows_have_their_own_methods() -> None:
    duet = changed(layout="duet")
    assert "started at the same time, each on its own share of the cores" in duet
    assert "one directly after the other" not in duet
    assert "or when 2 min 00 s of launches were used up" in changed(budget_s=120.0)
    assert "its headline and 90 % of its cases had a verdict" in changed(decides="cases")


# --- stored verdicts --------------------------------------------------------------------------


def kept(judgement: Judgement, folder: Path) -> Path:
    path = folder / "verdict.json"
    path.write_text(json.dumps(export.to_json(judgement), allow_nan=False))
    return path


@pytest.mark.parametrize("name", EVERY)
def test_a_stored_verdict_is_reported_as_the_judgement_was(name: str, tmp_path: Path) -> None:
    judgement = EVERY[name]()
    path = kept(judgement, tmp_path)
    again = stored.read_report(path)
    assert json.loads(json.dumps(export.to_json(again))) == json.loads(path.read_text())
    assert printed(again) == printed(judgement)
    assert markdown.document(again) == markdown.document(judgement)
    assert list(figures.all_figures(again)) == list(figures.all_figures(judgement))
    assert stored.read_report(tmp_path) == again


def test_heat_maps_are_kept(tmp_path: Path) -> None:
    judgement = with_matrices(matrices(8, "host"))
    again = stored.read_report(kept(judgement, tmp_path))
    assert list(figures.all_figures(again)) == list(figures.all_figures(judgement))


def spots(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the place of every value; of a list that of its first entry."""
    if path:
        yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from spots(inner, (*path, key))
    elif isinstance(value, list) and value:
        yield from spots(value[0], (*path, 0))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "least"), [("withheld", 80), ("scaling", 20)])
def test_a_damaged_verdict_is_an_error_or_can_be_shown(
    tmp_path: Path, name: str, least: int
) -> None:
    """Each value in turn is another, or gone: no traceback (all six damages of each were tried)."""
    whole = export.to_json(judgements.ALL[name]())
    whole["facts"] = {arm: {"cpu.model": "x"} for arm in whole["facts"]}
    damaged = list(spots(whole))
    if name == "scaling":
        damaged = [path for path in damaged if path[0] == name or name in path]
    text, refused = json.dumps(whole), 0
    for number, path in enumerate(damaged):
        bad: Any = (None, "x", [], {}, -1, "delete")[number % 6]
        table = json.loads(text)
        inner = table
        for step in path[:-1]:
            inner = inner[step]
        if bad == "delete":
            del inner[path[-1]]
        else:
            inner[path[-1]] = bad
        (tmp_path / "verdict.json").write_text(json.dumps(table))
        try:
            judgement = stored.read_report(tmp_path)
        except StoreError:
            refused += 1
            continue
        markdown.document(judgement)
        printed(judgement)
        list(figures.all_figures(judgement))
    assert refused > least


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is not JSON"),
        (b'{"schema": NaN}', "is not JSON"),
        (b"[1]", "is not a verdict of schema paribus.verdict/1"),
        (b'{"schema": "paribus.verdict/2"}', "is not a verdict of schema"),
        (b'{"schema": "paribus.verdict/1"}', "is not a verdict: KeyError"),
        (b"[" * 100_000, "is nested more deeply than can be read"),
        (b"\xff\xfe", "is not JSON"),
    ],
    ids=("empty", "NaN", "list", "newer", "nothing else", "deep", "bytes"),
)
def test_what_is_no_verdict(content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "verdict.json").write_bytes(content)
    with pytest.raises(StoreError, match=re.escape(said)) as caught:
        stored.read_report(tmp_path)
    assert "paribus compare PATH --out DIR" in caught.value.fix


# --- figures ---------------------------------------------------------------------------------

COLUMN = 88 / 25.4 * 96
"""The width of a column, 88 mm, in px."""


def test_figures_have_the_width_that_is_asked_for(tmp_path: Path) -> None:
    judgement = judgements.logs_untimed()
    paths = figures.write_figures(judgement, tmp_path, title="T & <t> " * 12, width=COLUMN)
    assert len(paths) == 3 * 2
    for path in paths:
        data = path.read_bytes()
        if path.suffix == ".png":
            assert data.startswith(b"\x89PNG\r\n\x1a\n")
            assert struct.unpack(">I", data[16:20])[0] == pytest.approx(COLUMN * 300 / 96, abs=2)
            density = data[:100].partition(b"pHYs")[2]
            assert int.from_bytes(density[:4], "big") == round(300 / 0.0254)
        elif path.suffix == ".svg":
            found = re.search(rb'^<svg[^>]* width="([0-9.]+)"', data)
            assert found is not None
            assert float(found[1]) == pytest.approx(COLUMN, abs=0.5)
            assert b"T &amp; &lt;t&gt;" in data
        else:
            assert data.startswith(b"%PDF-")
            box = re.search(rb"/MediaBox *\[0 0 ([0-9.]+)", data)
            assert box is not None
            assert float(box[1]) == pytest.approx(88 / 25.4 * 72, abs=0.5)


def test_a_long_title_is_set_in_lines_that_fit(tmp_path: Path) -> None:
    title = "A title that is quite long and does not fit a single column of a journal"
    (path, *_) = figures.write_figures(
        judgements.two_arms(), tmp_path, {"svg"}, title=title, width=COLUMN
    )
    lines = re.findall(r">([^<>]+)</(?:text|tspan)>", path.read_text())
    held = [line for line in lines if line in title]
    assert " ".join(held) == title
    assert len(held) > 1
