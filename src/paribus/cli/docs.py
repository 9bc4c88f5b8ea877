"""`paribus docs`: the built pages in a browser, or where the pages are."""

from __future__ import annotations

import argparse
import difflib
import os
from pathlib import Path

from paribus.core import UserError

EXAMPLE = """\
example:
  paribus docs                 # the first page
  paribus docs schedulers      # a page by its name
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Print the place of a page of the documentation, and open it where there is a display:"
        " the site that `./dev docs` built, else the Markdown that it is made of."
    )
    parser.add_argument("page", metavar="PAGE", nargs="?", help="a page by its name (README)")
    parser.set_defaults(execute=show)


def show(arguments: argparse.Namespace) -> int:
    """Return the exit code of `paribus docs`; raises UserError for an unknown page."""
    from paribus.studyfile.shipping import documentation, site

    built = site()
    pages = _pages(documentation(), ".md") if built is None else _pages(built, ".html")
    name = arguments.page or "README"
    if name not in pages:
        close = difflib.get_close_matches(name, pages, n=3) or sorted(pages)
        fix = f"`paribus docs` shows the first page; others: {', '.join(close)}"
        raise UserError("no such page", place=name, fix=fix)
    if built is None:
        print(f"{pages[name]} (Markdown: `./dev docs` in a checkout makes pages with a search)")
        return 0
    print(pages[name].as_uri())
    if os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        import webbrowser

        webbrowser.open(pages[name].as_uri())
    return 0


def _pages(folder: Path, ending: str) -> dict[str, Path]:
    """Return the pages below `folder` by their names; the list of tutorials is "tutorials"."""
    docs = folder / "docs"
    found = {path.stem: path for path in sorted(docs.glob(f"tutorials/*{ending}"))}
    found |= {path.stem: path for path in sorted(docs.glob(f"*{ending}"))}
    found["tutorials"] = found.pop("README", folder)
    return {**found, "README": folder / f"README{ending}"}
