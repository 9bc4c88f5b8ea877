"""The page on which a study is made: a form becomes a study file, which is checked and started.

{"factor": "env", "arms": [{"name": "a", "value": ""}, {"name": "b", "value": "X=1"}], ...} becomes
`factor = "env"`, `[arms.a]`, `[arms.b]` and `env = { X = "1" }`.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen
from tempfile import NamedTemporaryFile
from typing import Any, get_args

from paribus.benchmarks import BENCHMARKS
from paribus.border import find_program
from paribus.core import (
    Benchmark,
    ParibusError,
    StudyError,
    Transport,
    UserError,
    commandline,
    count,
    format_seconds,
    grouped,
    toml_key,
    toml_list,
    toml_text,
)
from paribus.judge.evidence import launch_seconds
from paribus.launch import background
from paribus.launch.machine import HERE
from paribus.launch.toolchain import FAMILIES, find_mpi
from paribus.report.markup import Html, element, escape, join
from paribus.studyfile.load import load_study
from paribus.studyfile.shipping import question_of, shipped_studies
from paribus.studyfile.written import made_directory, write_study
from paribus.web.actions import log_of

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,59}")
"""The names that a study file made here may have."""

DRY_RUN_S = 600.0
"""Seconds that an estimate may take."""


@dataclass(frozen=True, slots=True)
class Factor:
    """A factor: how the form names it, values of two arms as an example, and the key of an arm."""

    asks: str
    example: tuple[str, str]
    key: str


FACTORS: Mapping[str, Factor] = {
    "transport": Factor("the transport that MPI uses", ("shm", "tcp"), "transport"),
    "mpi": Factor("the MPI library", ("openmpi", "mpich"), "mpi"),
    "env": Factor("environment variables", ("", "OMP_PROC_BIND=close"), "env"),
    "wrapper": Factor("a command before each rank", ("", "numactl --interleave=all"), "wrap"),
    "container": Factor("a container", ("", "podman IMAGE"), "container"),
    "cluster": Factor("the hosts", ("node[1-4]", "other[1-4]"), "hosts"),
}


def study_text(form: Mapping[str, Any]) -> str:
    """Return the text of the study file for a form; raises UserError for one of another shape."""
    try:
        factor = FACTORS[form["factor"]]
        arms = [(str(one["name"]).strip(), str(one["value"]).strip()) for one in form["arms"]]
        names = [str(name) for name in form["benchmarks"]]
        plan = {key: str(form.get(key, "")).strip() for key in ("margin", "blocks", "budget")}
        question = str(form["question"]).strip() or f"Does it matter: {factor.asks}?"
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(f"not understood: {error!r:.80}", place="form", fix="reload it") from None
    lines = [f"question = {toml_text(question)}", f"factor = {toml_text(form['factor'])}"]
    for name, value in arms:
        lines += ["", f"[arms.{toml_key(name)}]", *_arm(name, factor.key, value)]
    for name in names:
        lines += ["", "[[benchmarks]]", f"name = {toml_text(name)}"]
    if any(plan.values()):
        lines += ["", "[plan]", *(_setting(key, text) for key, text in plan.items() if text)]
    return "\n".join(lines) + "\n"


def _arm(name: str, key: str, value: str) -> list[str]:
    """Return the lines of an arm's table; none for an empty value."""
    if not value:
        return []
    if key == "env":
        pairs = [one.partition("=") for one in _words(value)]
        variables = ", ".join(f"{toml_key(key)} = {toml_text(text)}" for key, _, text in pairs)
        return [f"env = {{ {variables} }}"]
    if key == "wrap":
        return [f"wrap = {toml_list(_wrapper(name, value))}"]
    if key == "container":
        engine, _, image = value.partition(" ")
        named = f", image = {toml_text(image.strip())}" if image.strip() else ""
        return [f"container = {{ engine = {toml_text(engine)}{named} }}"]
    return [f"{key} = {toml_text(value)}"]


def _wrapper(arm: str, text: str) -> Sequence[str]:
    try:
        return commandline.split(text)
    except commandline.NotSplitError as error:
        fix = error.fix or "put it into a script, and name that"
        faults = {f"arms.{arm}.wrap": f"{error}; {fix}"}
        raise StudyError(str(error), place=f"wrapper {text}", fix=fix, faults=faults) from None


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return [text]


def _setting(key: str, text: str) -> str:
    return f"{key} = {text}" if text.isdecimal() else f"{key} = {toml_text(text)}"


def template(name: str) -> str:
    """Return the text of a study that ships; raises UserError for another name."""
    path = shipped_studies().get(name)
    if path is None:
        raise UserError("no study of this name ships", place=name, fix="choose one of the list")
    return path.read_text(encoding="utf-8")


def found(benchmark: Benchmark) -> bool:
    """Return whether a benchmark's program is in the PATH, or is compiled at first use."""
    return not benchmark.program or find_program(benchmark.program) is not None


def values_here(factor: str) -> list[str]:
    """Return the values of a factor that this machine has, for the form to offer.

    They are what the PATH has of MPI libraries, engines and wrappers; none for factors without a
    list. Any other value may be written, but for those of CLOSED.
    """
    if factor == "transport":
        return list(get_args(Transport))
    if factor == "mpi":
        return [family for family in FAMILIES if _mpi(family)]
    if factor == "container":
        return ["namespace", *(one for one in _ENGINES if find_program(one))]
    if factor == "wrapper":
        return [text for text in _WRAPPERS if find_program(text.split()[0])]
    return []


CLOSED = ("transport",)
"""Factors whose values are all known: no other may be written."""

_ENGINES = ("podman", "docker", "apptainer", "singularity")
_WRAPPERS = ("numactl --interleave=all", "taskset -c 0", "nice -n 5", "chrt -b 0")


def _mpi(family: str) -> bool:
    with suppress(ParibusError):
        return bool(find_mpi(family, HERE))
    return False


def benchmarks() -> list[Benchmark]:
    """Return the benchmarks that the form offers: all but `command`, which needs parameters."""
    return [one for one in BENCHMARKS.values() if one.name != "command"]


def checked(folder: Path, text: str) -> dict[str, object]:
    """Return the result of loading a study's text as a file in `folder`.

    "problems" is the error, "" for none, "faults" its parts by their keys in the file, "summary"
    a line on a study without problems.
    """
    name = str(folder)
    try:
        # A file of its own: another page may be checked at the same time.
        with NamedTemporaryFile(
            "w", encoding="utf-8", dir=folder, prefix=".study-in-the-browser-", suffix=".toml"
        ) as draft:
            name = draft.name
            draft.write(text)
            draft.flush()
            study = load_study(Path(name))
    except (ParibusError, OSError) as error:
        problems = str(error).replace(name, "study")
        faults = error.faults if isinstance(error, StudyError) else {}
        return {"problems": problems, "faults": faults, "summary": ""}
    summary = (
        f"{count(len(study.arms), 'arm')}, {count(len(study.benchmarks), 'benchmark')},"
        f" at most {count(study.settings.blocks, 'block')}"
    )
    return {"problems": "", "faults": {}, "summary": summary}


def started(folder: Path, name: str, text: str) -> tuple[Path, Popen[bytes]]:
    """Write a study and start `paribus run` on it; return its directory and the process.

    Raises ParibusError for a study that the loader refuses, and where it cannot be started.
    """
    path = _written(folder, name, text)
    directory = path.with_suffix(".study")
    made_directory(directory)  # in which `paribus run` writes its progress while it waits
    argv = [sys.executable, "-m", "paribus", "run", path.name, "--out", directory.name]
    return directory, background.start(argv, folder, log_of(directory))


def estimated(folder: Path, name: str, text: str) -> str:
    """Return the output of `paribus run --dry-run` on a study, whose file is then removed."""
    path = _written(folder, name or "study", text)
    try:
        argv = [sys.executable, "-m", "paribus", "run", path.name, "--dry-run"]
        return background.finished(argv, folder, DRY_RUN_S)
    finally:
        path.unlink(missing_ok=True)


def _written(folder: Path, name: str, text: str) -> Path:
    if not NAME.fullmatch(name):
        cause, fix = "is no name for a study file", "use letters, digits, . _ + -"
        raise StudyError(cause, place=repr(name), fix=fix, faults={"name": f"{cause}; {fix}"})
    if problems := checked(folder, text)["problems"]:
        raise StudyError(str(problems), place=name, fix="correct the text")
    return write_study(text, folder / name, with_directory=True)


def form_of(data: bytes) -> Mapping[str, Any]:
    """Return the table of a form sent as JSON; raises UserError."""
    try:
        table = json.loads(data)
        if isinstance(table, dict):
            return table
    except (ValueError, RecursionError):
        pass
    raise UserError("not understood", place="form", fix="reload the page")


# --- the page ------------------------------------------------------------------------------------

PRESETS = {
    "First look": ("latency",),
    "Messages": ("latency", "bandwidth", "message_rate"),
    "Node": ("triad", "random_access", "ep"),
    "Whole stack": ("latency", "allreduce", "triad", "conjugate_gradient"),
}
"""Cards that choose several benchmarks; all of these are compiled at first use."""

STACK = ("collective", "point to point", "memory", "compute")
"""The layers in the picture of a preset, from the top."""

BLOCKS, ARMS = 60, 2
USUAL_S = 1.0
"""Seconds of a launch where none has been measured here."""


def page(folder: Path) -> Html:
    """Return the page; studies are written into `folder`, whose others give the launch times."""
    took = {name: seconds for name, (seconds, _) in launch_seconds(folder).items()}
    return join(
        element("h1", "New study"),
        element(
            "div",
            element(
                "form",
                _questions(),
                _factor(),
                _presets(took),
                _benchmarks(took),
                _plan(),
                id="fields",
            ),
            _editor(folder),
            kind="editor",
            id="making",
        ),
    )


def _questions() -> Html:
    """Return the group of fields for the question of a study."""
    options = [element("option", "a question of my own", value="")]
    options += [
        element("option", escape(question_of(path)), value=name)
        for name, path in shipped_studies().items()
    ]
    return _group(
        "Question",
        element("label", "Start from", element("select", *options, id="template")),
        element("label", "Question", _input("question", "Which is faster?")),
    )


def _factor() -> Html:
    """Return the group of fields for the factor and the two arms."""
    options = [
        element(
            "option",
            escape(one.asks),
            value=name,
            data_a=one.example[0],
            data_b=one.example[1],
            data_here=", ".join(values_here(name)),
            data_closed=str(name in CLOSED).lower(),
        )
        for name, one in FACTORS.items()
    ]
    arms = [
        element(
            "div",
            element("label", f"{what} arm: name", _input(f"arm-{key}", key)),
            element("label", f"{what} arm: value", _input(f"value-{key}", "", list="values")),
            element("select", id=f"choice-{key}", aria_label=f"{what} arm: value", hidden=""),
        )
        for key, what in (("a", "Reference"), ("b", "Other"))
    ]
    return _group(
        "The one thing that differs",
        element("label", "Factor", element("select", *options, id="factor")),
        *arms,
        element("datalist", id="values"),
        element("p", "", id="here", kind="small", role="status"),
    )


def _presets(took: Mapping[str, float]) -> Html:
    """Return the PRESETS as cards, each with its layers drawn and the most minutes it takes."""
    cards = []
    layer_of = {one.name: one.layer for one in benchmarks()}
    for title, names in PRESETS.items():
        minutes = sum(took.get(name, USUAL_S) for name in names) * ARMS * BLOCKS / 60
        names_and_time = f"{', '.join(names)}; up to {max(1, round(minutes))} min"
        parts = _stack({layer_of[name] for name in names}), element("b", escape(title))
        text = *parts, element("small", escape(names_and_time))
        cards.append(element("button", *text, type="button", data_preset=",".join(names)))
    return element("div", *cards, kind="presets", role="group", aria_label="Choices of benchmarks")


def _stack(layers: Collection[str]) -> Html:
    """Return a picture of STACK in which the layers that are measured are filled."""
    title = ", ".join(layer for layer in STACK if layer in layers)
    slabs = (
        f'<rect y="{9 * row}" width="30" height="7" opacity="{1 if layer in layers else 0.15}"/>'
        for row, layer in enumerate(STACK)
    )
    return Html(
        f'<svg width="30" height="34" fill="currentColor" role="img" aria-label="{title}">'
        f"<title>{title}</title>{''.join(slabs)}</svg>"
    )


def _benchmarks(took: Mapping[str, float]) -> Html:
    """Return the benchmarks by layer; those without their program are folded below the others."""
    layers = grouped((one.layer, one) for one in benchmarks())
    parts = []
    for layer, several in layers.items():
        here = [_box(one, took.get(one.name)) for one in several if found(one)]
        missing = [
            element(
                "li",
                element("b", one.name),
                f" {escape(one.summary)}",
                element("small", escape(one.get)),
            )
            for one in several
            if not found(one)
        ]
        label = f"{len(missing)} not here"
        rest = element("details", element("summary", label), element("ul", *missing))
        chosen = element("span", "", kind="chosen")
        title = element("summary", escape(f"{layer} ({len(here)}) "), chosen)
        opened = {"open": ""} if layer == next(iter(layers)) else {}
        parts.append(element("details", title, *here, rest if missing else "", **opened))
    return _group("Benchmarks", *parts)


def _box(one: Benchmark, took: float | None) -> Html:
    state = {"checked": ""} if one.name == "latency" else {}
    seconds = f"; {format_seconds(took)} a launch" if took else ""
    of = {"name": "benchmark", "value": one.name, "data_s": f"{took or USUAL_S:.3f}", **state}
    return element(
        "label",
        element("input", type="checkbox", **of),
        element("span", element("b", escape(one.name)), escape(f" {one.summary}{seconds}")),
        kind="choice",
    )


def _plan() -> Html:
    return _group(
        "Plan",
        element("label", "Margin within which arms count as equivalent", _input("margin", "2 %")),
        element("label", "Blocks at most (empty: 60)", _input("blocks", "")),
        element("label", "Time for launches (empty: no limit)", _input("budget", "")),
    )


def _editor(folder: Path) -> Html:
    """Return the editor of the study file, with its name and what checks it found."""
    return element(
        "div",
        element("label", "Study file", element("textarea", id="text", spellcheck="false")),
        element("label", "Name", _input("name", "study")),
        element("p", escape(f"It is written into {folder}"), kind="small"),
        element(
            "div",
            element("p", "", id="said", role="status"),
            element("button", "Start", type="button", id="start", disabled=""),
            element("button", "Estimate its duration", type="button", id="estimate", disabled=""),
            element("button", "Download", type="button", id="download"),
            kind="buttons ready",
        ),
        element("pre", id="output", tabindex="0", hidden=""),
        kind="file",
    )


def _group(title: str, *parts: str) -> Html:
    return element("fieldset", element("legend", escape(title)), *parts)


def _input(name: str, value: str, **more: str) -> Html:
    return element("input", type="text", id=name, value=value, autocomplete="off", **more)
