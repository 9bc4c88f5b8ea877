"""The scripts and style sheets of the pages."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from paribus.report import markup
from paribus.report.bundle import javascript


@cache
def asset(name: str) -> tuple[bytes, str] | None:
    """Return the bytes of a file and their media type, None for a name that there is not."""
    kinds = {"css": "text/css", "js": "text/javascript"}
    if name == "vega.js":
        text = javascript()
    elif name in ("page.css", "page.js"):
        text = markup.asset(name)
    elif name in ("workbench.css", "workbench.js", "making.js"):
        text = files("paribus.web").joinpath("static", name).read_text(encoding="utf-8")
    else:
        return None
    return text.encode(), kinds[name.rpartition(".")[2]]
