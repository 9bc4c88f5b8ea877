"""Every figure of a report as a file for a paper: SVG or PNG, drawn without a browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import Any

from paribus.errors import UserError
from paribus.judgement import Judgement, Matrix
from paribus.report import heat, lookup, plots
from paribus.report.axes import Spec, drawn

WIDTH = 520
PNG_SCALE = 2.0
INK = "#1b1f24"
FORMATS = ("svg", "png")

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
    """Yield (name, spec) of every figure of the report, in its order; names are unique."""
    for better in ("lower", "higher"):
        spec = plots.overview(judgement, better)
        if spec is not None:
            yield f"overview-{better}-is-better", spec
    for number, benchmark in enumerate(lookup.benchmarks(judgement)):
        start = f"{number:02d}-{_plain(benchmark)}"
        maps = heat.of_benchmark(judgement, benchmark)
        for name, heat_map in _heat_maps(maps):
            yield f"{start}-{name}", heat_map
        for index, panel in enumerate(() if maps else drawn(judgement, benchmark)):
            name = f"{start}-{index}" if index else start
            if plots.has_values(panel.cases):
                yield f"{name}-absolute", plots.curves(judgement, panel)
            if plots.has_ratios(panel.cases):
                yield f"{name}-ratio", plots.ratios(judgement, panel)
        spec = plots.timeline(judgement, benchmark)
        if spec is not None:
            yield f"{start}-launches", spec


def write_figures(
    judgement: Judgement, directory: Path, formats: Set[str] = frozenset(FORMATS)
) -> list[Path]:
    """Write every figure into `directory` (made if missing) and return the paths.

    Raises UserError for an unknown format, and when a file cannot be written.
    """
    return _write(all_figures(judgement), directory, formats)


def write_matrices(
    matrices: Sequence[Matrix], directory: Path, formats: Set[str] = frozenset(FORMATS)
) -> list[Path]:
    """Write the heat map of each matrix into `directory`; otherwise as `write_figures`."""
    return _write(_heat_maps(matrices), directory, formats)


def _heat_maps(matrices: Sequence[Matrix]) -> Iterator[tuple[str, Spec]]:
    for group in heat.groups(matrices):
        for matrix in group:
            name = _plain(f"{matrix.arm} {matrix.metric.name} {matrix.case}")
            yield name, heat.heat_map(matrix, group)


def _write(drawings: Iterator[tuple[str, Spec]], directory: Path, formats: Set[str]) -> list[Path]:
    import vl_convert

    unknown = sorted(set(formats) - set(FORMATS))
    if unknown:
        raise UserError(f"no figures as {', '.join(unknown)}", fix="choose svg, png or both")
    written = []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, spec in drawings:
            text = json.dumps(spec | {"width": WIDTH, "config": CONFIG})
            if "svg" in formats:
                path = directory / f"{name}.svg"
                path.write_text(vl_convert.vegalite_to_svg(text), encoding="utf-8")
                written.append(path)
            if "png" in formats:
                path = directory / f"{name}.png"
                path.write_bytes(vl_convert.vegalite_to_png(text, scale=PNG_SCALE))
                written.append(path)
    except OSError as error:
        raise UserError(
            f"figures cannot be written: {error.strerror}",
            place=str(error.filename or directory),
            fix="free space there, or make it writable",
        ) from error
    return written


def _plain(label: str) -> str:
    """Return a benchmark's label as part of a file name."""
    return re.sub(r"[^A-Za-z0-9]+", "-", label).strip("-").lower()[:40] or "benchmark"
