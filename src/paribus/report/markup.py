"""HTML as values: text becomes markup only through `escape`, so exactly once."""

from __future__ import annotations

import html
import re
from collections.abc import Collection, Iterable, Sequence
from importlib.resources import files
from typing import NewType

from paribus.core import count
from paribus.report.wording import clean

Html = NewType("Html", str)
"""Text that is safe to put between tags."""


def escape(text: str) -> Html:
    """Return text from anywhere as HTML."""
    return Html(html.escape(clean(text), quote=False))


def prose(text: str) -> Html:
    """Return sentences as HTML: commands in backquotes as code, a percent sign with its figure."""
    shown = re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))
    return Html(re.sub(r"(?<=\d) (?=%)", "\u00a0", shown))


def attribute(text: str) -> str:
    """Return text from anywhere as the inside of a double-quoted attribute."""
    return html.escape(clean(text), quote=True)


def join(*parts: str) -> Html:
    """Return the parts one after the other; they must be HTML already."""
    return Html("".join(parts))


def element(tag: str, *children: str, kind: str | None = None, **attributes: str) -> Html:
    """Return an element; `children` are HTML already, attribute values are escaped here.

    `kind` is its class; an underscore in an attribute's name becomes a hyphen. An input has no end.
    """
    named = {"class": kind, **{k.replace("_", "-"): v for k, v in attributes.items()}}
    inside = "".join(f' {k}="{attribute(v)}"' for k, v in named.items() if v is not None)
    return Html(f"<{tag}{inside}>{''.join(children)}{'' if tag == 'input' else f'</{tag}>'}")


def tabular(
    caption: Html, head: Sequence[Html], rows: Sequence[Html], kind: str | None = None, **more: str
) -> Html:
    """Return a table of cells of its `head` and of `rows`; `caption` is its first child."""
    top = element("thead", element("tr", *head))
    return element("table", caption, top, element("tbody", "\n".join(rows)), kind=kind, **more)


def heads(names: Iterable[str]) -> list[Html]:
    """Return the names of columns as cells."""
    return [element("th", escape(name), scope="col") for name in names]


MOST_ROWS = 12
"""Rows beyond which a table that may be folded is: a telephone shows about as many."""


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[Html]],
    caption: str,
    left: Collection[int] = (0,),
    *,
    fold: bool = False,
    summary: str = "",
) -> Html:
    """Return a table that scrolls inside its own box; the columns in `left` are text.

    With `fold` a long one opens at a click, and with a `summary` any. On a telephone a row is a
    card, where each cell has the head of its column beside it.
    """
    kinds = ["text" if i in left else "number" for i in range(len(head))]
    top = [element("th", escape(h), kind=k, scope="col") for h, k in zip(head, kinds, strict=True)]
    body = []
    for row in rows:
        first = element("th", row[0], kind=kinds[0], scope="row")
        rest = [
            element("td", c, kind=k, data_label=h)
            for c, k, h in zip(row[1:], kinds[1:], head[1:], strict=True)
        ]
        body.append(element("tr", first, *rest))
    inner = tabular(element("caption", escape(caption)), top, body)
    box = element("div", inner, kind="scroll", tabindex="0", role="region", aria_label=caption)
    if not summary and not (fold and len(rows) > MOST_ROWS):
        return box
    said = summary or f"{caption} ({count(len(rows), 'row')})"
    return element("details", element("summary", escape(said)), box, kind="long")


def forest_of(
    what: str, caption: str, head: Sequence[tuple[Html, str]], rows: Sequence[Html], kind: str = ""
) -> Html:
    """Return a table whose rows are drawn: `what` each is of, its verdict, then the columns `head`.

    That has what stands above each, and its class. Who cannot see it gets the `caption`.
    """
    unseen = ((element("span", text, kind="unseen"), "text") for text in (what, "Verdict"))
    top = [element("th", text, kind=k, scope="col") for text, k in (*unseen, *head)]
    said = element("caption", escape(caption), kind="unseen")
    return tabular(said, top, rows, f"forest {kind}".rstrip())


def section(title: str, place: str, *content: str) -> Html:
    """Return a part of a page under its title, whose id is `place`; nothing without content."""
    head = element("h2", escape(title), id=place)
    return element("section", head, *content) if any(content) else Html("")


def pairs(facts: Sequence[tuple[str, str]]) -> Html:
    """Return names with their values, as a description list."""
    listed = [join(element("dt", escape(k)), element("dd", escape(v))) for k, v in facts]
    return element("dl", *(element("div", p) for p in listed), kind="facts")


def asset(name: str) -> str:
    """Return a file of the page: its style, or the script that draws."""
    return files("paribus.report").joinpath(name).read_text(encoding="utf-8")


POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""What a page without scripts may load: nothing."""


def document(
    title: str, body: Html, style: str = "", *, policy: str = POLICY, scripts: str = ""
) -> str:
    """Return a whole HTML page in the style of reports and `style`, without scripts by default."""
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"<style>\n{asset('page.css')}{style}</style>\n"
    )
    return framed(title, head, f"<body>\n<main>\n{body}\n</main>\n{scripts}</body>")


def framed(title: str, head: str, body: str) -> str:
    """Return a whole HTML page of what else is in its `head`, and its `body`."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)} - Paribus</title>\n{head}</head>\n{body}\n</html>\n"
    )
