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
    """Return text from anywhere as the contents of a double-quoted attribute."""
    return html.escape(clean(text), quote=True)


def join(*parts: str) -> Html:
    """Return the parts one after the other; they must be HTML already."""
    return Html("".join(parts))


def element(tag: str, *children: str, kind: str | None = None, **attributes: str) -> Html:
    """Return an element; `children` are HTML already, attribute values are escaped here.

    `kind` is its class; an underscore in an attribute's name becomes a hyphen. <input> has no end
    tag.
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
"""The most rows of a table that is not folded: about as many as a telephone shows."""


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

    It is folded if it has a `summary`, or with `fold` if it is long. On a telephone a row is a
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
    line = summary or f"{caption} ({count(len(rows), 'row')})"
    return element("details", element("summary", escape(line)), box, kind="long")


def forest_of(
    what: str, caption: str, head: Sequence[tuple[Html, str]], rows: Sequence[Html], kind: str = ""
) -> Html:
    """Return a table whose rows have bars: columns for `what` a row is of, the verdict, and `head`.

    `head` has contents and CSS class of each further column head. The `caption` is for those who
    cannot see it.
    """
    unseen = ((element("span", text, kind="unseen"), "text") for text in (what, "Verdict"))
    top = [element("th", text, kind=k, scope="col") for text, k in (*unseen, *head)]
    hidden = element("caption", escape(caption), kind="unseen")
    return tabular(hidden, top, rows, f"forest {kind}".rstrip())


def forest_row(
    name: Html, verdict: Html, *cells: tuple[Html, str], kind: str | None = None
) -> Html:
    """Return a row of `forest_of`: what it is of, the verdict, and cells with their CSS classes."""
    first = element("th", name, scope="row", kind="text")
    others = (element("td", text, kind=k) for text, k in cells)
    return element("tr", first, element("td", verdict), *others, kind=kind)


def section(title: str, place: str, *content: str) -> Html:
    """Return a part of a page under its title, whose id is `place`; "" without content."""
    head = element("h2", escape(title), id=place)
    return element("section", head, *content) if any(content) else Html("")


def pairs(facts: Sequence[tuple[str, str]]) -> Html:
    """Return names with their values, as a description list."""
    listed = [join(element("dt", escape(k)), element("dd", escape(v))) for k, v in facts]
    return element("dl", *(element("div", p) for p in listed), kind="facts")


def asset(name: str) -> str:
    """Return the text of a file beside this one: page.css or page.js."""
    return files("paribus.report").joinpath(name).read_text(encoding="utf-8")


POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""The content security policy of a page without scripts: it may load nothing."""


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
    """Return a whole HTML page; `head` is added to its head."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)} - Paribus</title>\n{head}</head>\n{body}\n</html>\n"
    )
