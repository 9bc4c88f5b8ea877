"""Studies and publications by path, or by the name of one that ships with Paribus."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from paribus.border import exists
from paribus.core import Judgement, UserError
from paribus.studyfile.shipping import shipped_folder, shipped_studies

if TYPE_CHECKING:
    from paribus.lenses.published.reading import Publication


def find_study(text: str) -> Path:
    """Return the study file at the path `text`, or the one that ships under this name.

    Raises UserError with the nearest name.
    """
    from paribus.benchmarks import BENCHMARKS

    ships = shipped_studies()
    if text in BENCHMARKS and text not in ships and not exists(Path(text)):
        fix = f"name it in a study: `paribus new` writes one; `paribus list {text}`: its parameters"
        raise UserError("is a benchmark, not a study", place=text, fix=fix)
    return _find(text, ships, "no such study file, and none that ships")


def find_shipped(name: str) -> Path:
    """Return the study that ships under `name`; raises UserError with the nearest name."""
    return _find_name(name, shipped_studies(), "no study of this name ships")


def announce(text: str) -> None:
    """Print on stderr what is about to be done, such as executing a benchmark file."""
    print(text, file=sys.stderr)


def add_beside(parser: argparse.ArgumentParser) -> None:
    """Declare --beside, which shows published figures beside one's own."""
    parser.add_argument(
        "--beside",
        metavar="FILE",
        action="append",
        default=[],
        help="show published figures beside these: a TOML file, or the name of one that ships",
    )


def read_published(texts: Sequence[str]) -> list[Publication]:
    """Return the published figures that --beside names: paths, or names of those that ship."""
    if not texts:
        return []
    from paribus.lenses.published.reading import load_publication

    ships = _shipped_publications()
    return [
        load_publication(_find(text, ships, "no such file, and none that ships")) for text in texts
    ]


def with_published(judgement: Judgement, publications: Sequence[Publication]) -> Judgement:
    """Return the judgement with published figures beside its own; no verdict rests on them."""
    if not publications:
        return judgement
    from paribus.lenses.published.beside import beside

    return beside(judgement, publications)


def shipped_publication(path: Path) -> Path | None:
    """Return the publication that ships under the name `path`; None for a file or unknown name."""
    return None if exists(path) else _shipped_publications().get(path.name.removesuffix(".toml"))


def publications() -> dict[str, Publication]:
    """Return the publications that ship, by name."""
    from paribus.lenses.published.reading import load_publication

    return {name: load_publication(path) for name, path in _shipped_publications().items()}


def _shipped_publications() -> dict[str, Path]:
    return {path.stem: path for path in sorted((shipped_folder() / "published").glob("*.toml"))}


def _find(text: str, ships: Mapping[str, Path], cause: str) -> Path:
    path = Path(text)
    if exists(path) or path.suffix == ".toml":
        return path
    return _find_name(text, ships, cause)


def _find_name(text: str, ships: Mapping[str, Path], cause: str) -> Path:
    if text in ships:
        return ships[text]
    close = difflib.get_close_matches(text, ships, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"those that ship: {', '.join(ships)}"
    raise UserError(cause, place=text, fix=hint)
