"""Controlled comparisons of HPC and AI cluster platforms."""

from __future__ import annotations

TYPE_CHECKING = False  # to a type checker it is True; typing would delay `paribus --version`
if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any

    from paribus.core import Direction
    from paribus.report.values import Values

DEVELOPMENT = ".dev0"


def _version() -> str:
    """Return what the build wrote beside this file; in a checkout the newest of CHANGELOG.md."""
    here = __file__.rpartition("/")[0]
    try:  # without pathlib, which would delay `paribus --version`
        with open(f"{here}/VERSION", encoding="utf-8") as file:  # noqa: PTH123
            return file.read().strip()
    except FileNotFoundError:
        with open(f"{here}/../../CHANGELOG.md", encoding="utf-8") as file:  # noqa: PTH123
            heading = next(line for line in file if line[:3] == "## ").split()
        return heading[1] + DEVELOPMENT * (heading[2:] == ["(unreleased)"])


__version__ = _version()


def load(directory: str | Path) -> Values:
    """Return the figures of all launches in `directory` as numpy columns: docs/report.md.

    `directory` is that of a study, or what `paribus compare PATH --out DIR` wrote. The columns have
    a method `to_pandas`. Raises paribus.core.errors.StoreError where no figures are.
    """
    from paribus.report import values

    return values.load(directory)


def compare(
    table: Mapping[str, Any],
    *,
    reference: str = "",
    unit: str = "",
    better: Direction | None = None,
    margin: float | None = None,
) -> dict[str, Any]:
    """Return what `paribus compare TABLE --json` says of a table in memory: `paribus.verdict/1`.

    `table` is a data frame of pandas, or a mapping of columns (docs/compare.md#tables); `margin` is
    a share, such as 0.02. Raises paribus.core.errors.UserError for what the table does not say and
    a comparison needs.

    >>> blocks = range(1, 9)
    >>> rows = [(arm, block) for block in blocks for arm in ("old", "new")]
    >>> found = compare({
    ...     "arm": [arm for arm, _ in rows],
    ...     "block": [block for _, block in rows],
    ...     "benchmark": ["solver"] * 16,
    ...     "metric": ["time"] * 16,
    ...     "value": [(80 if arm == "new" else 100) + block / 10 for arm, block in rows],
    ... }, reference="old", unit="s", better="lower", margin=0.02)
    >>> (head,) = found["headlines"]
    >>> head["verdict"]["word"], round(head["comparison"]["ratio"], 3)
    ('faster', 0.801)
    """
    from paribus.logs.imported import Answers, judge_table
    from paribus.logs.tables.files import of_columns
    from paribus.report import export

    answers = Answers(reference=reference, unit=unit, better=better, margin=margin)
    return export.to_json(judge_table(of_columns(table), answers))
