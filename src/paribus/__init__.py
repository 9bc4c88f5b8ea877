"""Controlled comparisons of HPC and AI cluster platforms."""

from __future__ import annotations

TYPE_CHECKING = False  # to a type checker it is True; typing would delay `paribus --version`
if TYPE_CHECKING:
    from pathlib import Path

    from paribus.report.values import Values

__version__ = "0.1.0"


def load(directory: str | Path) -> Values:
    """Return the figures of all launches in `directory` as numpy columns: docs/values.md.

    `directory` is that of a study, or what `paribus compare PATH --out DIR` wrote. The columns have
    a method `to_pandas`. Raises paribus.core.errors.StoreError where no figures are.
    """
    from paribus.report import values

    return values.load(directory)
