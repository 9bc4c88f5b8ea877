"""The proof of the statistics, carried out: every check of facts and of live studies.

    ./dev validate [--live N] [--load] [--only NUMBER ...] [--no-page]

Prints each figure beside its bound and writes docs/validation.md. Exit code 1 if one is not kept.
"""

from __future__ import annotations

import argparse
import sys
import time

from validation import page
from validation.checks import CHECKS
from validation.figures import Check


def main() -> int:
    """Carry the checks out, print them, write the page; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--live", type=int, default=3, metavar="N", help="live studies of each kind"
    )
    parser.add_argument("--load", action="store_true", help="the live ones with a competing load")
    parser.add_argument("--only", type=int, nargs="+", metavar="NUMBER", help="only these checks")
    parser.add_argument("--no-page", action="store_true", help="write no page")
    asked = parser.parse_args()
    begin = time.monotonic()
    found: list[Check] = []
    for planned in CHECKS:
        check = planned.check(planned.size)
        found.append(check)
        tell(check, time.monotonic() - begin)
    seconds = time.monotonic() - begin
    command = " ".join(["./dev validate", *sys.argv[1:]])
    if not asked.no_page:
        text = page.page(found, command=command, seconds=seconds, live=asked.live)
        page.PAGE.write_text(text)
        print(f"written: {page.PAGE}")
    return 0 if all(check.passed for check in found) else 1


def tell(check: Check, seconds: float) -> None:
    """Print one check, as soon as it is known."""
    print(f"{check.number:>3}  {check.name}  ({seconds:.0f} s)")
    for figure in check.figures:
        kept = "" if figure.passed else "   FAILED"
        print(f"     {figure.what}: {figure.shown}   [{figure.limit}]{kept}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
