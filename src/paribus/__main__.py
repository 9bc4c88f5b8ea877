# PYTHON_ARGCOMPLETE_OK
"""The command line: finds the verb, hands over, and turns errors into exit codes."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Return the exit code of `paribus ARGV`; see docs/commands.md."""
    words = sys.argv[1:] if argv is None else list(argv)
    if words == ["--version"]:
        from paribus import __version__

        print(f"paribus {__version__}")
        return 0
    from paribus.cli import dispatch

    return dispatch(words)


if __name__ == "__main__":
    sys.exit(main())
