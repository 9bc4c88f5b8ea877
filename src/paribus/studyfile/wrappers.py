"""What an arm starts instead of a benchmark's own command, and what it puts before it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from paribus.benchmarks.command import NAME as COMMAND
from paribus.benchmarks.command import argv
from paribus.benchmarks.tool import located
from paribus.border import Place, exists, fields
from paribus.core import BUILD, Arm, Benchmark, Selection

KEYS = ("argv", "wrap", "wrap_around", "build", "source")


def started_by(place: Place, folder: Path) -> dict[str, Any]:
    """Return the fields of an Arm that say what its launches start; paths are from `folder`."""
    none: list[str] = []
    wrap = list(place.read("wrap", argv, none))
    if "wrap_around" in place.table and not wrap:
        fix = 'add the wrapper: wrap = ["numactl", "--interleave=all"]'
        place.refuse("wrap_around", None, "there is no wrapper", fix)
    around = place.read("wrap_around", fields.one_of("rank", "launcher"), "rank")
    if wrap and "/" in wrap[0] and not wrap[0].startswith(BUILD):
        wrap[0] = located(folder, wrap[0])
    own = place.read("argv", argv, none)
    return {
        "argv": tuple(own),
        "wrap": tuple(wrap),
        "wrap_around": around,
        **_build(place, folder),
    }


def _build(place: Place, folder: Path) -> dict[str, Any]:
    """Return the commands that build the programs of an arm, and the source that they need."""
    build: tuple[tuple[str, ...], ...] = place.read("build", fields.commands, ())
    source = place.read("source", fields.text, "")
    if not build:
        if source:
            fix = 'add the command that builds it: build = "make CC=clang"'
            place.refuse("source", source, "nothing is built of it", fix)
        return {}
    path = (folder.resolve() / source).absolute()
    if not exists(path):
        fix = "give a file or directory, relative to the study file"
        place.refuse("source", source, "there is no such file or directory", fix)
    return {"build": build, "source": str(path)}


def check_builds(top: Place, arms: Sequence[Arm], selections: Sequence[Selection]) -> None:
    """Refuse an arm that needs a build which it does not have, and a build that nothing starts."""
    shared = [one.label for one in selections if BUILD in str(one.parameters)]
    for arm in arms:
        own = BUILD in str((arm.argv, arm.wrap, dict(arm.env)))
        if (own or shared) and not arm.build:
            what = "the arm" if own else shared[0]
            fix = 'add its build: build = "make CC=clang"'
            top.refuse(f"arms.{arm.name}", None, f"{what} uses {BUILD}, and nothing is built", fix)
        if arm.build and not (own or shared):
            fix = f'start what it makes: argv = ["{BUILD}/solver"], or path = "{BUILD}/bin"'
            top.refuse(f"arms.{arm.name}.build", None, "nothing starts what it builds", fix)


def locate(place: Place, folder: Path, benchmark: Benchmark, tool: str | None) -> None:
    """Set where the program of a benchmark is, and its working directory: both from the study.

    `tool` is where its suite is, if the study says so.
    """
    path = place.table.get("path", tool)
    if benchmark.parameters.get("path") and path is not None:
        place.table["path"] = located(folder, path) if isinstance(path, str) else path
    own_default = "." if benchmark.name == COMMAND else None  # others have the launch's directory
    directory = place.table.get("directory", own_default)
    if benchmark.parameters.get("directory") and isinstance(directory, str) and directory.strip():
        own = directory if "{" in directory else str(folder.resolve() / directory)
        place.table["directory"] = own


def check_argv(top: Place, arms: Sequence[Arm], selections: Sequence[Selection]) -> None:
    """Refuse a benchmark that lacks the program to start, and an arm's that nothing starts."""
    takes = [one for one in selections if "argv" in one.parameters]
    fix = 'add argv = ["./solver", "-n", "4"]'
    for one in takes:
        lacking = [arm.name for arm in arms if not arm.argv and not one.parameters["argv"]]
        if lacking:
            cause = f"{one.label} has no program to start in {', '.join(lacking)}"
            top.refuse("benchmarks", None, cause, f"{fix} to it, or to every arm")
    for arm in arms:
        if arm.argv and not takes:
            fix = 'add a benchmark with name = "command", or remove argv'
            top.refuse(f"arms.{arm.name}.argv", None, "no benchmark starts it", fix)
