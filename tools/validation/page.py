"""docs/validation.md, written whole."""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Sequence
from pathlib import Path

from validation.figures import Check, Figure

PAGE = Path(__file__).parents[2] / "docs" / "validation.md"

NOT_PROVED = """\
- Real networks between machines, GPUs and batch systems: live checks and recorded launches are
  of two-core virtual machines, over shared memory and TCP on loopback.
- Effects are constant factors in the simulations, and a constant share of the operation's own time
  in the live studies. An effect that moves only the tail needs the endpoint p99; that its interval
  covers is not simulated here.
- With a different scatter in the two arms the estimate is still the pseudo-median of the log
  ratios; its coverage was not simulated.
- The level of the looks is calibrated for log ratios that are symmetric and independent. Under
  drift, sticky states and steps it holds by simulation only (checks 1 to 4).
- Live studies are counted, not calibrated: {live} of each cannot tell an error of 5 % from one
  of 1 %."""


def rows_of(check: Check) -> list[str]:
    """Return the rows of the table that belong to `check`, one for each figure."""
    rows = []
    for place, figure in enumerate(check.figures):
        number, name = (str(check.number), check.name) if place == 0 else ("", "")
        rows.append(
            f"| {number} | {name} | {figure.what} | {figure.shown} | {figure.limit} "
            f"| {verdict(figure)} |"
        )
    return rows


def verdict(figure: Figure) -> str:
    """Return what the figure says of its check, in one word."""
    return "passed" if figure.passed else "**failed**"


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
    done = "\n".join(f"{check.number}. **{check.name}.** {check.done}" for check in checks)
    version = f"Python {platform.python_version()}, numpy {numpy.__version__}"
    return f"""# The proof of the statistics

[statistics.md](statistics.md) says what Paribus does with launches. This page says how often that
errs: each figure stands beside the bound that it must keep. It is written whole by
`./dev validate`; nothing in it is written by hand. {outcome}

Everything but the live checks and the timings comes from fixed seeds: `./dev validate` gives the
same figures anywhere, and `./dev test` carries out the same functions with fewer studies.

| # | check | figure | found | bound | |
|---|---|---|---|---|---|
{table}

## What was done

{done}

The kinds of noise (`tools/validation/noise.py`; on the log scale, both arms alike): **N1** normal,
sd 1.5 %; **N2** sd 2 %, and 7 % of launches slowed by 40 % on average; **Drift** AR(1) 0.95 of sd
1.5 %, and 1.5 % between launches; **Sticky** two states 8 % apart, each lasting tens of launches;
**Bimodal** the same two at random; **Alternating** the same two in turns; **Steps** the level moves
4 % every 80 launches or so; **Recorded** launches of a real, noisy machine (`tests/data/`).

## Where and when

`{command}` on {datetime.date.today().isoformat()}: {os.cpu_count()} cores, {processor()},
Linux {platform.release()}, {version}; {seconds:.0f} s in all, load average
{os.getloadavg()[0]:.1f} at the end.

## What is not proved

{NOT_PROVED.format(live=live or "none")}
"""
