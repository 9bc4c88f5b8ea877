"""The site that `./dev docs` builds: the Markdown pages as they are, from the root of the checkout.

README.md is its first page. What stands here is only which pages follow it, in which order.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from paribus import __version__

PARTS = {
    "Start": ["tutorials/README", "recipes", "tested"],
    "By task": [
        *("ab", "compare", "explain", "screen", "clusters", "schedulers", "containers", "profile"),
        *("topology", "serve"),
    ],
    "Reference": [
        *("study-file", "commands", "benchmarks", "tools", "report", "notices", "audit", "facts"),
        "kernels",
    ],
    "Explanation": ["statistics", "statistics-details", "validation", "fidelity"],
    "Contribute": ["packaging/README", "CONTRIBUTING", "src/paribus/native/README", "CHANGELOG"],
}
TUTORIALS = [
    *("first-study", "two-commands", "logs", "partitions", "training", "containers", "gpus"),
    *("which-change", "screen", "paper"),
]
AT_THE_ROOT = tuple(PARTS["Contribute"])

project = "Paribus"
version = __version__
html_title = f"Paribus {__version__}"
root_doc = "README"
include_patterns = ["README.md", *(f"{one}.md" for one in AT_THE_ROOT), "docs/**.md"]
exclude_patterns = [*(".*", "tests", "out", "site", "dist", "ondemand", "studies", "tools")]
extensions = ["myst_parser"]
myst_heading_anchors = 4
html_theme = "furo"
html_copy_source = False
html_show_copyright = False
html_show_search_summary = False  # a browser fetches no text of pages from file://
html_static_path = ["static"]
html_css_files = ["site.css"]


def add_parts(_: Any, page: str, source: list[str]) -> None:
    """Append to a page the list of those below it."""
    if page == root_doc:
        for part, pages in PARTS.items():
            names = [one if one in AT_THE_ROOT else f"docs/{one}" for one in pages]
            source[0] += _listed(part, names)
    elif page == "docs/tutorials/README":
        source[0] += _listed("Tutorials", TUTORIALS)


def _listed(caption: str, pages: list[str]) -> str:
    return "\n".join(["", "```{toctree}", ":hidden:", f":caption: {caption}", "", *pages, "```\n"])


def name_the_first(app: Any, failed: Exception | None) -> None:
    """Give the first page the name under which browsers look for it."""
    if failed is None:
        shutil.copy(Path(app.outdir, f"{root_doc}.html"), Path(app.outdir, "index.html"))


def setup(app: Any) -> None:
    """Register the functions of this file with Sphinx."""
    app.connect("source-read", add_parts)
    app.connect("build-finished", name_the_first)
