"""The JavaScript that draws the figures of the HTML report, made once and kept on disk."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from paribus.drafts import cache_directory
from paribus.trust import make_directory, why_not

SNIPPET = "window.vegaEmbed = vegaEmbed;"
END = "\n// end of bundle\n"
"""The last line of a bundle that was written to its end."""


def javascript(cache: Path | None = None) -> str:
    """Return the bundle of Vega, Vega-Lite and Vega-Embed: about 0.9 MB of script.

    Making it takes seconds; it is kept in `cache` (default: `cache_directory()`) under the
    version of vl-convert. A cache that cannot be read or written only costs the time, and so does
    one that others can change: browsers execute what comes from it.
    """
    from importlib.metadata import version

    path = (cache or cache_directory()) / f"vega-{version('vl-convert-python')}.js"
    try:
        kept = "" if why_not(path) else path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        kept = ""
    if kept.endswith(END):
        return kept
    import vl_convert

    # "</script" inside a string of the bundle would end the page's script element.
    made = vl_convert.javascript_bundle(SNIPPET).replace("</script", "<\\/script")
    text = f"{made}{END}"
    _keep(text, path)
    return text


def _keep(text: str, path: Path) -> None:
    """Write the bundle in one step, so that no other process ever reads half of it."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        make_directory(path.parent)
        if why_not(path.parent):
            return
        partial.write_text(text, encoding="utf-8")
        partial.chmod(0o644)
        partial.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            partial.unlink()
