"""Where the studies that ship with Paribus, and its documentation, are on this machine."""

from __future__ import annotations

from pathlib import Path

from paribus.border import read_toml


def shipped_studies() -> dict[str, Path]:
    """Return the files of the studies that ship, by name: {"same": Path(".../same.toml"), ...}."""
    return {path.stem: path for path in sorted(shipped_folder().glob("*.toml"))}


def question_of(path: Path) -> str:
    """Return the question that a study file asks."""
    return str(read_toml(path, "a study file").get("question", ""))


def shipped_folder() -> Path:
    """Return where the studies are: in the package once installed, beside src/ in a checkout."""
    package = Path(__file__).parents[1]
    inside = package / "studies"
    return inside if inside.is_dir() else package.parent.parent / "studies"


def site() -> Path | None:
    """Return the folder of the built documentation, None where `./dev docs` has not run."""
    built = Path(__file__).parents[3] / "site"
    return built if (built / "index.html").is_file() else None


def documentation() -> Path:
    """Return the folder with README.md and, under docs, the pages: installed, or the checkout."""
    package = Path(__file__).parents[1]
    return package if (package / "docs").is_dir() else package.parent.parent
