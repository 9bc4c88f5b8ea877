"""Draw the pictures of the pages on statistics, and print its tables of cost.

    python tools/draw_statistics.py           # docs/statistics/*.svg
    python tools/draw_statistics.py --table   # the tables instead, from 10,000 studies each

Everything drawn is computed by Paribus' own functions from the recorded launches in tests/data or
from simulated ones with fixed seeds. Each file ends with the SHA-256 of the specification that it
was drawn from, by which the tests see a stale one.
"""

from __future__ import annotations

import argparse
import hashlib
import html
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from paribus.report.axes import Spec
from pictures.few import few, few_table
from pictures.protocols import cost, table
from pictures.recorded import family, pairs, states, units
from pictures.style import STYLE
from pictures.verdicts import looks, margin

PLACES, LONG = re.compile(r' (?:d|transform)="[^"]*"'), re.compile(r"(\.\d)\d+")
NAMES = re.compile(r"\bclip\d+\b")
FOLDER = Path(__file__).parents[1] / "docs" / "statistics"

PICTURES: dict[str, Callable[[], Spec]] = {
    one.__name__: one for one in (states, units, pairs, margin, looks, few, cost, family)
}


def rounded(value: Any) -> Any:
    """Return a specification with its numbers to five digits: the last ones differ by processor."""
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(one) for one in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


def specification(name: str) -> str:
    """Return what picture `name` is drawn from, as JSON."""
    return json.dumps(rounded(PICTURES[name]() | {"config": STYLE}), sort_keys=True)


def stamp(text: str) -> str:
    """Return the last line of a picture drawn from `text`."""
    return f"<!-- drawn from {hashlib.sha256(text.encode()).hexdigest()} -->\n"


def draw(text: str) -> str:
    """Return the SVG of a specification, stamped; coordinates to a tenth of a pixel.

    Names of clipping paths are numbered anew: Vega counts them over all that a process draws.
    """
    import vl_convert

    svg = vl_convert.vegalite_to_svg(text).rstrip()
    svg = PLACES.sub(lambda found: LONG.sub(r"\1", found.group()), svg)
    names = list(dict.fromkeys(NAMES.findall(svg)))
    svg = NAMES.sub(lambda found: f"clip{names.index(found.group()) + 1}", svg)
    # Vega leaves out what it must not repeat for every mark: the description as well.
    reported = f"<title>{html.escape(json.loads(text)['description'])}</title>"
    return f"{svg.replace('>', '>' + reported, 1)}\n{stamp(text)}"


def write(folder: Path, names: Iterable[str] = PICTURES) -> list[Path]:
    """Write the pictures `names` into `folder` and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name in names:
        paths.append(folder / f"{name}.svg")
        paths[-1].write_text(draw(specification(name)), encoding="utf-8")
    return paths


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--table", action="store_true", help="print the tables of cost")
    if parser.parse_args().table:
        print(table(10_000), few_table(10_000), sep="\n\n")
        return
    for path in write(FOLDER):
        print(path)


if __name__ == "__main__":
    main()
