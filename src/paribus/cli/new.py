"""`paribus new`: write a commented study file to edit, or a copy of one that ships."""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from paribus.cli.shipped import find_shipped
from paribus.core import UserError, typed
from paribus.studyfile.written import write_study

EXAMPLE = """\
examples:
  paribus new                        # the usual keys with comments, in study.toml
  paribus new memory                 # a copy of a study that ships, to edit
  paribus new latency-study.toml
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Write a commented study file, or a copy of one that ships, to edit."
    parser.add_argument(
        "what",
        nargs="?",
        default="study.toml",
        metavar="FILE.toml|NAME",
        help="the file to write, or the name of a study that ships (default: study.toml)",
    )
    parser.set_defaults(execute=new)


def new(arguments: argparse.Namespace) -> int:
    """Write the file, print its name, and return the exit code; raises UserError."""
    asked = Path(arguments.what)
    if asked.suffix == ".toml":
        text = files("paribus.cli").joinpath("new-study.toml").read_text(encoding="utf-8")
    else:
        shipped = find_shipped(arguments.what)
        text = shipped.read_text(encoding="utf-8")
        _copy_sources(tomllib.loads(text), shipped.parent)
    path = write_study(text, asked.with_suffix(""))
    audit, run = (typed(("paribus", verb, path)) for verb in ("audit", "run"))
    print(f"{path}\nEdit it, then: {audit}; {run}")
    return 0


def _copy_sources(study: Mapping[str, Any], folder: Path) -> None:
    """Copy the sources and benchmark files of `study` to the working directory.

    Raises UserError where another file has the name of one.
    """
    names = {arm["source"] for arm in study["arms"].values() if "source" in arm}
    names |= {one["file"] for one in study["benchmarks"] if "file" in one}
    for name in sorted(names):
        try:
            with Path(name).open("xb") as file:
                file.write((folder / name).read_bytes())
        except FileExistsError:
            if Path(name).read_bytes() != (folder / name).read_bytes():
                fix = "rename it, or start in another directory"
                raise UserError("is there already", place=name, fix=fix) from None
