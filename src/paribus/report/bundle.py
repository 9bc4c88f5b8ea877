"""The JavaScript that draws the figures of the HTML report, made once and kept on disk."""

from __future__ import annotations

import contextlib
import os
import resource
from pathlib import Path
from types import ModuleType

from paribus.border import cache_directory, make_directory, open_anew, why_not
from paribus.core import MachineError, UserError

SNIPPET = "window.vegaEmbed = vegaEmbed;"
END = "\n// end of bundle\n"
"""The last line of a complete bundle."""


def engine() -> ModuleType:
    """Return the module vl_convert, which draws; raises MachineError if it would crash.

    Its engine, V8, reserves so many addresses that it ends the process under `ulimit -v`.
    """
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    if most != resource.RLIM_INFINITY:
        raise MachineError(
            f"figures cannot be drawn under a limit of address space ({most >> 10} KiB)",
            place="ulimit -v",
            fix="`ulimit -v unlimited`, or on another machine, then `paribus report DIR`",
        )
    import vl_convert

    return vl_convert


def javascript() -> str:
    """Return the bundle of Vega, Vega-Lite and Vega-Embed: about 0.9 MB of script.

    Making it takes seconds; it is kept in the cache under the version of vl-convert. A cache that
    cannot be read or written is not used, nor is one that others can change, as browsers execute
    the script. Raises MachineError as `engine`.
    """
    from importlib.metadata import version

    kept, path = "", None
    # Without a home or a file there, it is made.
    with contextlib.suppress(UserError, OSError, UnicodeDecodeError):
        path = cache_directory() / f"vega-{version('vl-convert-python')}.js"
        kept = "" if why_not(path) else path.read_text(encoding="utf-8")
    if kept.endswith(END):
        return kept
    vl_convert = engine()
    # "</script" inside a string of the bundle would end the page's script element.
    made = vl_convert.javascript_bundle(SNIPPET).replace("</script", "<\\/script")
    text = f"{made}{END}"
    if path is not None:
        _keep(text, path)
    return text


def _keep(text: str, path: Path) -> None:
    with contextlib.suppress(OSError):
        make_directory(path.parent)
        if not why_not(path.parent):
            put(text, path)


def put(text: str, path: Path) -> None:
    """Write a file in one step, so that nobody ever reads half of it; raises OSError."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with open_anew(partial, encoding="utf-8") as file:
            file.write(text)
        partial.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise
