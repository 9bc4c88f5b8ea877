"""`paribus watch DIR`: show the progress of a study that runs in another process, until it ends."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from paribus.border import exists
from paribus.core import StoreError
from paribus.store import Standing
from paribus.store.watched import alive, read_standing

EXAMPLE = """\
example:
  paribus run study.toml --out study --detach
  paribus watch study                  # from any machine that sees the directory
"""

POLL_S = 1.0
"""Seconds between two looks."""

ASKED = 10
"""The scheduler is asked about a job that waits once in so many looks."""

GONE = 5
"""Looks in a row that must find no process at work: one may fall between two owners of a lock."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Show what a study does until it ends; return its exit code."
    parser.add_argument("directory", metavar="DIR", type=Path, help="study directory")
    parser.set_defaults(execute=watch)


def watch(arguments: argparse.Namespace) -> int:
    """Print each new line on the study's progress until it ends; return its exit code.

    Nothing is written. Raises StoreError where no `paribus run` has begun in the directory, and
    where one has ended without an exit code.
    """
    from paribus.schedulers import detached

    directory: Path = arguments.directory
    shown, found_none, looks = "", 0, 1
    while True:
        standing = read_standing(directory)
        if standing and standing.text != shown:
            shown = standing.text
            print(f"{time.strftime('%H:%M:%S')} {shown}", flush=True)
        if standing and standing.code is not None:
            return standing.code
        if standing and standing.job and not alive(directory):
            found_none = 0 if looks % ASKED or not detached.is_gone(standing.job) else GONE
        else:
            found_none = 0 if alive(directory) else found_none + 1
        looks += 1
        if found_none >= GONE:
            if not exists(directory):
                fix = "give the directory of a study (its --out)"
                raise StoreError("no such directory", place=str(directory), fix=fix)
            raise StoreError(
                _ended(standing),
                place=str(directory),
                fix="continue it: `paribus run STUDY --out DIR --resume`; see what is stored:"
                " `paribus report DIR`",
            )
        time.sleep(POLL_S)


def _ended(standing: Standing | None) -> str:
    if standing is None:
        return "no study runs here: there is no progress.json, or none that is whole"
    if standing.job:
        return (
            f"job {standing.job} has ended, and the study did not begin: it was cancelled, or its"
            " node does not see this directory, or Paribus, at this path"
        )
    return "the study has ended without saying how"
