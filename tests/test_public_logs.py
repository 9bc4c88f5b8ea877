"""Logs, reports and tables of people who compare clusters: each report is true.

Each folder of tests/data/public holds files in the layout of a public report (SOURCE says which)
and EXPECTED.toml: which files are compared, and what a person reads in them. That was written from
the files, never from what Paribus says. Its keys:

`[[compare]]`: `paths`, `options`; `arms` (default: the files' names); `code`, the exit code;
`refused`, pieces of the message, alone or beside figures (either is right then); `differ`, pairs of
values that the report names as not held equal; `says`, pieces of the report.

`[[compare.figures]]`: `of`, words that the label, a parameter or the case of one finding holds, and
`without`, words that it does not; `ratio`, to 1 %; `launches` of each arm; `metric`; `word`. A
benchmark that no figure names must not be there.

`[[topology]]`: `file`, `numa` of each GPU, `shape`, or `refused`.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from paribus.__main__ import main

PUBLIC = Path(__file__).parent / "data" / "public"


class Command(NamedTuple):
    """One command of a folder, and what is expected of it."""

    id: str
    folder: Path
    expected: Mapping[str, Any]


def _commands(kind: str) -> Iterator[Command]:
    for file in sorted(PUBLIC.glob("*/EXPECTED.toml")):
        for one in tomllib.loads(file.read_text()).get(kind, ()):
            named = [*one["paths"], *one.get("options", ())] if kind == "compare" else [one["file"]]
            yield Command(f"{file.parent.name}: {' '.join(named)}", file.parent, one)


COMPARED = list(_commands("compare"))
DRAWN = list(_commands("topology"))


def test_every_folder_says_what_is_expected_and_where_it_is_from() -> None:
    folders = [folder for folder in PUBLIC.iterdir() if folder.is_dir()]
    assert len(folders) >= 43
    for folder in folders:
        assert {"SOURCE", "EXPECTED.toml"} <= {path.name for path in folder.iterdir()}, folder.name
    assert {one.folder.name for one in (*COMPARED, *DRAWN)} == {folder.name for folder in folders}
    ids = [one.id for one in (*COMPARED, *DRAWN)]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("command", COMPARED, ids=lambda c: c.id)
def test_a_comparison_says_what_is_so(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert list(_compared(command, capsys)) == []


@pytest.mark.parametrize("command", DRAWN, ids=lambda c: c.id)
def test_a_topology_says_what_is_so(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert list(_drawn(command, capsys)) == []


# --- comparisons --------------------------------------------------------------------------------


def _compared(command: Command, capsys: pytest.CaptureFixture[str]) -> Iterator[str]:
    """Yield what a comparison says that is not so."""
    expected = command.expected
    argv = [
        "compare",
        *(str(command.folder / name) for name in expected["paths"]),
        *expected.get("options", ()),
    ]
    code, out, err = _said([*argv, "--json"], capsys)
    if not out.startswith("{"):
        yield from _unlike(expected, err)
        return
    figures = expected.get("figures", ())
    if not figures:
        yield f"compared, and expected to be refused: {json.loads(out)['sentence']}"
        return
    verdict = json.loads(out)
    if code != expected.get("code", code):
        yield f"exit code {code}"
    arms = [arm["name"] for arm in verdict["study"]["arms"]]
    if arms != expected.get("arms", [Path(name).stem for name in expected["paths"]]):
        yield f"arms {arms}"
    yield from _figures(verdict, figures)
    for values in expected.get("differ", ()):
        if not any(_is_named(values, one) for one in verdict["differences"]):
            yield f"not named as a difference: {values}"
    if pieces := expected.get("says"):
        report = " ".join(_said(argv, capsys)[1].split())
        yield from (f"not said: {piece}" for piece in pieces if piece not in report)


def _said(argv: Sequence[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Return exit code, output and errors of a command; a usage error is one too."""
    capsys.readouterr()
    try:
        code = main(argv)
    except SystemExit as ended:
        code = int(ended.code or 0)
    said = capsys.readouterr()
    return code, said.out, said.err


def _unlike(expected: Mapping[str, Any], err: str) -> Iterator[str]:
    if "refused" not in expected:
        yield f"refused: {err.strip()}"
    else:
        message = err.lower()
        lacking = [piece for piece in expected["refused"] if piece.lower() not in message]
        yield from (f"{piece!r} is not in the message: {err.strip()}" for piece in lacking)


def _is_named(values: Sequence[str], difference: Mapping[str, Any]) -> bool:
    """Return whether a difference between arms is that of two values, or of longer ones."""
    said = difference["reference_value"], difference["arm_value"]
    return all(value in one for value, one in zip(values, said, strict=True))


def _figures(verdict: Mapping[str, Any], figures: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    selections = {one["label"]: one for one in verdict["study"]["benchmarks"]}
    headlines = list(verdict["headlines"])
    seen: set[str] = set()
    for figure in figures:
        mine = [one for one in headlines if _is_of(figure, one, selections)]
        if len(mine) != 1:
            mine = [one for one in verdict["cases"] if _is_of(figure, one, selections)]
        if len(mine) != 1:
            yield f"{len(mine)} findings of {figure['of']}"
            continue
        seen.add(mine[0]["benchmark"])
        yield from _other_figures(mine[0], figure)
    if others := {one["benchmark"] for one in headlines} - seen:
        yield f"not expected: {sorted(others)}"


def _is_of(figure: Mapping[str, Any], finding: Mapping[str, Any], selections: Any) -> bool:
    metric = finding["metric"]["name"]
    if metric != figure.get("metric", metric):
        return False
    if "metric" not in figure and not finding.get("decides", True):
        return False
    of = selections[finding["benchmark"]]
    words = {"ranks": of["ranks"], **of["parameters"], **(finding["case"] or {})}
    text = " ".join([of["benchmark"], of["label"], *(f"{k} {v}" for k, v in words.items())])
    text = text.replace("_", " ").lower()

    def holds(word: str) -> bool:
        piece = re.escape(word.replace("_", " ").lower())
        return re.search(rf"(?<![\w.]){piece}(?![\w.])", text) is not None

    return all(map(holds, figure["of"])) and not any(map(holds, figure.get("without", ())))


def _other_figures(finding: Mapping[str, Any], figure: Mapping[str, Any]) -> Iterator[str]:
    """Yield in what a finding is not what is expected."""
    ratio = finding["comparison"] and finding["comparison"]["ratio"]
    if "ratio" in figure and (ratio is None or abs(ratio / figure["ratio"] - 1) > 0.01):
        yield f"{figure['of']}: ratio {ratio}, and {figure['ratio']} is so"
    launches = [finding[value]["launches"] for value in ("reference_value", "arm_value")]
    if launches != figure.get("launches", launches):
        yield f"{figure['of']}: launches {launches}, and {figure['launches']} are so"
    word = finding["verdict"]["word"]
    if word != figure.get("word", word):
        yield f"{figure['of']}: {word}, and {figure['word']} is so"


# --- topologies ---------------------------------------------------------------------------------


def _drawn(command: Command, capsys: pytest.CaptureFixture[str]) -> Iterator[str]:
    """Yield what is wrong in the report of a topology."""
    expected = command.expected
    file = str(command.folder / expected["file"])
    _, out, err = _said(["topology", "show", file, "--json"], capsys)
    if not out.startswith("{"):
        yield from _unlike(expected, err)
        return
    if "numa" not in expected:
        yield "read, and expected to be refused"
        return
    tree = json.loads(out)
    found = {
        gpu: bridge["numa"]
        for socket in tree["sockets"]
        for bridge in socket["bridges"]
        for gpu in _gpus(bridge)
    }
    if found != expected["numa"]:
        yield f"NUMA nodes {found}"
    if tree["shape"]["name"] != expected.get("shape", tree["shape"]["name"]):
        yield f"the shape {tree['shape']['name']}"


def _gpus(node: Mapping[str, Any]) -> Iterator[str]:
    if node["kind"] == "gpu":
        yield node["name"]
    for inner in node.get("children", ()):
        yield from _gpus(inner)
