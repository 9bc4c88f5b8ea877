"""docs/validation.md, written whole."""

from __future__ import annotations

import datetime
import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path

from validation.figures import Check

PAGE = Path(__file__).parents[2] / "docs" / "validation.md"
FIGURES = PAGE.with_suffix(".json")

NOT_PROVED = """\
- Real networks between machines, GPUs and batch systems. Live checks and recorded launches are of
  two-core virtual machines, over shared memory and TCP on loopback.
- Other effects. In the simulations effects are constant factors, in the live studies a constant
  share of the operation's own time. An effect on the tail alone needs the endpoint p99; its
  coverage is not simulated.
- Arms that differ in kind, except for few launches (check 27): see [one arm alone has
  two states](statistics-details.md#one-arm-alone-has-two-states).
- Both arms with the same states in unequal shares
  ([few launches](statistics-details.md#few-launches-in-detail)).
- The level of the looks for other log ratios than symmetric and independent ones. Under drift,
  sticky states and steps it holds by simulation only (checks 1 to 4).
- The error rate of live studies. {live} of each cannot separate an error of 5 % from one of 1 %."""


def rows_of(check: Check) -> list[str]:
    """Return the rows of the table that belong to `check`, one for each figure."""
    rows = []
    for place, figure in enumerate(check.figures):
        number, name = (str(check.number), check.name) if place == 0 else ("", "")
        outcome = "" if figure.passed else " **failed**"
        found = f"{figure.worst}{outcome}"
        rows.append(f"| {number} | {name} | {figure.what} | {found} | {figure.limit} |")
    return rows


def figures(checks: Sequence[Check]) -> str:
    """Return all values as JSON, a row a figure: check, figure, found, bound, passed."""
    rows = [
        json.dumps([check.number, figure.what, figure.shown, figure.limit, figure.passed])
        for check in checks
        for figure in check.figures
    ]
    return "[\n" + ",\n".join(rows) + "\n]\n"


def processor() -> str:
    """Return the processor's name."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def page(checks: Sequence[Check], *, command: str, seconds: float, live: int) -> str:
    """Return the page: what was found, where and how, and what is not proved."""
    import numpy

    failed = [str(check.number) for check in checks if not check.passed]
    outcome = (
        f"**{len(failed)} of {len(checks)} failed: {', '.join(failed)}.**"
        if failed
        else f"All {len(checks)} passed."
    )
    table = "\n".join(row for check in checks for row in rows_of(check))
    done = "\n".join(f"{check.number}. {check.done}" for check in checks)
    version = f"Python {platform.python_version()}, numpy {numpy.__version__}"
    return f"""# The proof of the statistics

[statistics.md](statistics.md) describes what Paribus does with launches. This page shows how often
that errs, each figure with its bound. `./dev validate` writes the whole page. {outcome}

All figures but those of live checks and timings come from fixed seeds, so `./dev validate` gives
the same figures anywhere. `./dev test` executes the same functions with fewer studies.
[validation.json](validation.json) has the values for each kind of noise.

| # | check | figure | found | bound |
|---|---|---|---|---|
{table}

## What was done

{done}

The kinds of noise (`tools/validation/noise.py`; on the log scale, both arms alike): **N1** normal,
sd 1.5 %; **N2** sd 2 %, and 7 % of launches slowed by 40 % on average; **Drift** AR(1) 0.95 of sd
1.5 %, and 1.5 % between launches; **Sticky** two states 8 % apart, each for tens of launches;
**Bimodal** the same two states at random; **Alternating** the same two in turns; **Steps** the
level moves by 4 % about every 80 launches; **Recorded** launches of a real, noisy machine
(`tests/data/`). The others of checks 26 and 27 are in `tools/validation/few_noise.py`.

## Where and when

`{command}` on {datetime.date.today().isoformat()}: {os.cpu_count()} cores, {processor()},
Linux {platform.release()}, {version}; {seconds:.0f} s in all, load average
{os.getloadavg()[0]:.1f} at the end.

## What is not proved

{NOT_PROVED.format(live=live or "None")}
"""
