"""Every figure of a report as a file for a paper: SVG, PNG or PDF, drawn without a browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import chain
from pathlib import Path
from textwrap import wrap
from typing import Any

from paribus.border import as_error, open_anew
from paribus.core import Judgement, UserError, cases_of, lenses
from paribus.report import lookup, plots, spread, track
from paribus.report.axes import Spec, drawn
from paribus.report.bundle import engine
from paribus.report.markup import element, escape, join
from paribus.report.wording import clean

WIDTH = 520
PNG_SCALE = 2.0
PRINTED = 300
CHARACTER = 7.5
"""Average width in px of a letter of a title, rather too large."""

INK = "#1b1f24"
FORMATS = ("svg", "png", "pdf")
WIDEST = 900
PLAIN = """text{font:11px sans-serif;fill:#1b1f24} .usual{stroke:#dde1e6;stroke-width:1}
.pair{stroke:#8a8f98;stroke-width:.7} .out{stroke-dasharray:3 2;opacity:.55} .busy{stroke:#d19a00}
.none{fill:#fff;stroke-width:1.2} .cross{fill:#d0432f;font-size:16px}
.far{fill:none;stroke:#d0432f;stroke-width:1.5}"""
"""The style of the time line outside the page, as page.css has it for light."""


CONFIG: dict[str, Any] = {
    "background": "white",
    "font": "sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": INK,
        "titleColor": INK,
        "titleFontWeight": "normal",
        "gridColor": "#dde1e6",
        "domainColor": "#8a8f98",
        "tickColor": "#8a8f98",
        "labelFontSize": 11,
        "titleFontSize": 12,
    },
    "legend": {"labelColor": INK, "labelFontSize": 12, "symbolSize": 70},
    "title": {"color": INK, "anchor": "start", "fontSize": 13},
}


def all_figures(judgement: Judgement) -> Iterator[tuple[str, Spec]]:
    """Yield (name, spec) of the summary and of every figure of the report that has one.

    They come in its order; names are unique.
    """
    if (overview := plots.overview(judgement)) is not None:
        yield "overview", overview
    if (spec := plots.spent(judgement)) is not None:
        yield "time-cost-energy", spec
    for lens, rows in lenses(judgement):
        yield from lens.figures(judgement, rows)
    for start, benchmark in names(judgement).items():
        for name, spec in _of_benchmark(judgement, benchmark):
            yield f"{start}-{name}", spec


def names(judgement: Judgement) -> dict[str, str]:
    """Return the benchmarks by the names of their files: {"00-latency": "latency", ...}."""
    labels = lookup.benchmarks(judgement)
    return {f"{number:02d}-{plain(label)}": label for number, label in enumerate(labels)}


def captions(judgement: Judgement) -> dict[str, str]:
    """Return the captions of the figures for a paper, by name of a figure."""
    times = f"Times as slow as {judgement.reference}: intervals of the headlines, margins shaded"
    of_panel = "{}: values with quartiles, and ratios with intervals, the margin shaded"
    return {
        "overview": times,
        **{name: of_panel.format(label) for name, label in names(judgement).items()},
        "launches": f"Every launch. {track.caption(judgement).capitalize()}",
    }


def _of_benchmark(judgement: Judgement, benchmark: str) -> Iterator[tuple[str, Spec]]:
    instead = cases_of(judgement, benchmark)
    for one in (one for group in (instead.groups if instead else ()) for one in group):
        yield one.name, one.spec
    for index, panel in enumerate(() if instead else drawn(judgement, benchmark)):
        start = f"{index}-" if index else ""
        yield from ((f"{start}{n}", spec) for n, _, spec in plots.of_panel(judgement, panel))
    if (spec := plots.narrowing(judgement, benchmark)) is not None:
        yield "interval", spec
    if (spec := spread.samples(judgement, benchmark)) is not None:
        yield "samples", spec


def write_figures(
    judgement: Judgement,
    directory: Path,
    formats: Set[str] = frozenset(FORMATS),
    *,
    title: str = "",
    width: float | None = None,
) -> list[Path]:
    """Write the figures into `directory` (made if missing), one per benchmark, and return paths.

    `title` stands above each, `width` is that of every figure in px of 1/96 inch. Raises
    UserError for an unknown format, and if a file cannot be written.
    """
    wide, panels = width or WIDEST, names(judgement)
    drawings: Iterator[tuple[str, Spec | str]] = (
        (name, _sized(spec, title, wide))
        for name, spec in all_figures(judgement)
        if not any(name.startswith(f"{start}-") for start in panels)
    )
    composed = (
        (start, _panel(specs, label, title, wide))
        for start, label in panels.items()
        if (specs := [spec for _, spec in _of_benchmark(judgement, label)])
    )
    line = track.picture(judgement, f"{wide:.0f}", style=PLAIN)
    every = chain(drawings, composed, [("launches", str(line))] if line else [])
    return write_drawings(every, directory, formats, for_print=width is not None)


GAP, ROOMY = 12.0, 480.0
"""Px between the parts of a panel, and the least width of one with two side by side."""


def _panel(specs: Sequence[Spec], label: str, title: str, width: float) -> str:
    """Return the figures of a benchmark as one SVG.

    Each keeps its own title only if there are more than values and ratios.
    """
    columns = 2 if width >= ROOMY and len(specs) > 1 else 1
    each = (width - GAP * (columns - 1)) / columns
    top, high, parts, said = 0.0, 0.0, [], []
    for number, text in enumerate(wrap(clean(title), int(width / CHARACTER)) if title else ()):
        top = 18.0 * (number + 1) + 4
        style = 'font-family="sans-serif" font-size="13" font-weight="bold"'
        parts.append(f'<text x="0" y="{top - 8:.0f}" {style} fill="{INK}">{escape(text)}</text>')
    for number, spec in enumerate(specs):
        part = spec if len(specs) > 2 else {k: v for k, v in spec.items() if k != "title"}
        # Each part needs ids of clip paths of its own.
        svg = _vega(_sized(part, "", each)).replace("clip", f"part{number}-clip")
        size = _SIZE.search(svg)
        assert size is not None
        left = (each + GAP) * (number % columns)
        parts.append(f'<g transform="translate({left:.2f} {top:.2f})">{svg}</g>')
        said.append(str(spec["description"]))
        high = max(high, float(size[2]))
        if number % columns == columns - 1 or spec is specs[-1]:
            top, high = top + high + GAP, 0.0
    space = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    box = f'width="{width:.1f}" height="{top:.1f}" viewBox="0 0 {width:.1f} {top:.1f}"'
    reported = join(element("title", escape(label)), element("desc", escape(" ".join(said))))
    white = '<rect width="100%" height="100%" fill="white"/>'
    return f"<svg {box} {space}>{reported}{white}{''.join(parts)}</svg>"


def _sized(spec: Spec, title: str, width: float | None) -> Spec:
    """Return a figure with `title` above its own, wrapped, and of this width."""
    if title or width is not None:
        most = int((width or WIDTH) / CHARACTER)
        own = wrap(spec.get("title", ""), most)
        lines = {"text": wrap(clean(title), most), "subtitle": own} if title else {"text": own}
        spec = spec | {"title": lines} if title or own else spec
    if width is not None:
        spec = spec | {"width": width, "autosize": {"type": "fit-x", "contains": "padding"}}
        for one in spec["layer"] if width < WIDTH else ():
            axis = one["encoding"].get("x", {}).get("axis") or {}
            if axis.get("orient") == "top":  # the names above a heat map would overlap
                axis["labelAngle"] = -90
    return spec


def write_drawings(
    drawings: Iterable[tuple[str, Spec | str]],
    directory: Path,
    formats: Set[str],
    *,
    for_print: bool = False,
) -> list[Path]:
    """Write figures by name, specs or SVG, into `directory`, as `write_figures` does."""
    unknown = sorted(set(formats) - set(FORMATS))
    if unknown:
        raise UserError(
            f"no figures as {', '.join(unknown)}", fix=f"choose among {', '.join(FORMATS)}"
        )
    written = []
    fix = "free space there, or make it writable"
    with as_error(UserError, directory, fix, "figures cannot be written", named=True):
        directory.mkdir(parents=True, exist_ok=True)
        for name, spec in drawings:
            drawn = spec if isinstance(spec, str) else _svg(spec)
            for ending in (one for one in FORMATS if one in formats):
                path = directory / f"{name}.{ending}"
                with open_anew(path, "wb") as file:
                    file.write(_as(drawn, ending, for_print=for_print))
                written.append(path)
    return written


def _svg(spec: Spec) -> str:
    """Return a figure as SVG with title and description for those who cannot see it.

    Its own title is not drawn, as captions have it; that of the user is drawn above.
    """
    title = spec["title"]
    if isinstance(title, str) or "subtitle" not in title:
        spec = {k: v for k, v in spec.items() if k != "title"}
    names = title if isinstance(title, str) else " ".join(title["text"])
    said = join(element("title", escape(names)), element("desc", escape(spec["description"])))
    return _START.sub(lambda start: f"{start[0]}{said}", _vega(spec), count=1)


def _vega(spec: Spec) -> str:
    text = json.dumps({"width": WIDTH, "config": CONFIG} | spec)
    return str(engine().vegalite_to_svg(text))


def _as(svg: str, ending: str, *, for_print: bool = False) -> bytes:
    """Return a figure in the format of this file name's ending.

    A PNG `for_print`, of a width that was asked for, has PRINTED dots per inch.
    """
    if ending == "svg":
        return svg.encode()
    if ending == "pdf":
        return bytes(engine().svg_to_pdf(_SIZE.sub(_in_points, svg, count=1)))
    if for_print:
        return bytes(engine().svg_to_png(svg, scale=72 / 96, ppi=PRINTED))
    return bytes(engine().svg_to_png(svg, scale=PNG_SCALE))


_START = re.compile(r"<svg[^>]*>")
_SIZE = re.compile(r'width="([0-9.]+)" height="([0-9.]+)"')


def _in_points(match: re.Match[str]) -> str:
    """Return the size of an SVG in points, as the conversion to PDF takes px for points."""
    width, height = (float(px) * 72 / 96 for px in match.groups())
    return f'width="{width}" height="{height}"'


def plain(label: str) -> str:
    """Return a benchmark's label as part of a file name."""
    return re.sub(r"[^A-Za-z0-9]+", "-", label).strip("-").lower()[:40] or "benchmark"
