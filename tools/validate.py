"""Running the proof of the statistics: every check of facts and of live studies.

    ./dev validate [--live N] [--load] [--only NUMBER ...] [--no-page]

Prints each figure beside its bound and writes docs/validation.md. --load carries the live studies
out a second time (checks 24 and 25), beside as many busy processes as there are cores. Exit code 1
if a bound is not kept.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial

from validation import live, page
from validation.checks import CHECKS
from validation.figures import Check


def main() -> int:
    """Carry the checks out, print them, write the page; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--live", type=int, default=3, metavar="N", help="live studies of each kind"
    )
    parser.add_argument("--load", action="store_true", help="once more under load")
    parser.add_argument("--only", type=int, nargs="+", metavar="NUMBER", help="only these; no page")
    parser.add_argument("--no-page", action="store_true", help="write no page")
    asked = parser.parse_args()
    begin = time.monotonic()
    found: list[Check] = []
    for number, execute in planned(asked.live, load=asked.load).items():
        if asked.only and number not in asked.only:
            continue
        check = execute()
        found.append(check)
        notify(check, time.monotonic() - begin)
    seconds = time.monotonic() - begin
    command = " ".join(["./dev validate", *sys.argv[1:]])
    if not asked.no_page and not asked.only:
        text = page.page(found, command=command, seconds=seconds, live=asked.live)
        page.PAGE.write_text(text)
        page.FIGURES.write_text(page.figures(found))
        print(f"written: {page.PAGE}")
    return 0 if all(check.passed for check in found) else 1


def planned(live_studies: int, *, load: bool) -> dict[int, Callable[[], Check]]:
    """Return what runs each check, by number and in its order."""
    checks: dict[int, Callable[[], Check]] = {
        one.number: partial(one.check, one.size) for one in CHECKS
    }
    if live_studies:
        checks[14] = partial(live.identical, live_studies)
        checks[15] = partial(live.delayed, live_studies)
    if live_studies and load:
        checks[24] = partial(live.identical, live_studies, load=True)
        checks[25] = partial(live.delayed, live_studies, load=True)
    return dict(sorted(checks.items()))


def notify(check: Check, seconds: float) -> None:
    """Print one check, as soon as it is known."""
    print(f"{check.number:>3}  {check.name}  ({seconds:.0f} s)")
    for figure in check.figures:
        kept = "" if figure.passed else "   FAILED"
        print(f"     {figure.what}: {figure.shown}   [{figure.limit}]{kept}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
