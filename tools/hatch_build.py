"""What a build takes as its version, and writes beside the package: read by pyproject.toml.

A release is the commit with the tag of the newest heading of CHANGELOG.md. Other commits are of a
development version of it, and name themselves.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).parent.parent
BUILT = ROOT / "src" / "paribus" / "VERSION"


def version() -> str:
    """Return the version of this tree; of an unpacked sdist that of its build.

    Raises ValueError where the tag of this commit is not that of the newest heading.
    """
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("paribus_itself", ROOT / "src" / "paribus" / "__init__.py")
    assert spec is not None
    assert spec.loader is not None
    package = module_from_spec(spec)
    spec.loader.exec_module(package)
    heading = str(package.__version__)
    if BUILT.exists() or not (ROOT / ".git").exists():
        return heading
    release = heading.removesuffix(package.DEVELOPMENT)
    tags = _git("tag", "--points-at", "HEAD", "--list", "v[0-9]*").split()
    if tags and f"v{heading}" not in tags:
        raise ValueError(f"tagged {', '.join(tags)}, but CHANGELOG.md is at {heading}")
    if tags and not _git("status", "--porcelain", "--untracked-files=no"):
        return heading
    commit = _git("rev-parse", "--short=12", "HEAD")
    return f"{release}{package.DEVELOPMENT}" + (f"+g{commit}" if commit else "")


def _git(*words: str) -> str:
    """Return what git says of this tree, "" where it is not installed or refuses."""
    try:
        done = subprocess.run(
            ["git", *words], cwd=ROOT, capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


class Hook(BuildHookInterface):  # type: ignore[type-arg]
    """Puts the version into wheels and sdists; an editable installation reads CHANGELOG.md."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable" or BUILT.exists():
            return
        written = Path(self.directory) / "VERSION"
        written.parent.mkdir(parents=True, exist_ok=True)
        written.write_text(f"{self.metadata.version}\n")
        at = "paribus/VERSION" if self.target_name == "wheel" else "src/paribus/VERSION"
        build_data["force_include"][str(written)] = at

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        (Path(self.directory) / "VERSION").unlink(missing_ok=True)
