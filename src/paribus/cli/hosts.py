"""Hosts of a study on the command line: their keys are accepted here, and only when asked for."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from paribus.model import Study

if TYPE_CHECKING:
    from paribus.platform.station import Station


def add_host_keys(parser: argparse.ArgumentParser) -> None:
    """Declare --accept-host-keys, which several verbs share."""
    parser.add_argument(
        "--accept-host-keys",
        action="store_true",
        help="accept the keys that hosts show which are not known yet, and print them",
    )


@contextmanager
def reached(study: Study, *, accept_keys: bool) -> Iterator[Mapping[str, Station]]:
    """Open the stations of `study`; accept unknown host keys if asked to, or if the user says so.

    Raises UnknownKeysError, with the fingerprints, otherwise.
    """
    from paribus.platform.hostkeys import UnknownKeysError, accept
    from paribus.platform.stations import stations

    try:
        with stations(study) as opened:
            yield opened
            return
    except UnknownKeysError as error:
        if not accept_keys and not _said_yes(error.cause):
            fix = f"{error.fix}: with --accept-host-keys"
            raise UnknownKeysError(error.cause, place=error.place, fix=fix) from None
        if accept_keys:
            print(f"paribus: {error.cause}\n  accepted into {error.place}", file=sys.stderr)
        accept(error.keys, Path(error.place))
    with reached(study, accept_keys=accept_keys) as opened:
        yield opened


def _said_yes(cause: str) -> bool:
    """Return whether somebody at a terminal says that the keys are right."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    print(f"paribus: {cause}", file=sys.stderr)
    print("Are these the hosts' fingerprints? (yes/no) ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip() == "yes"
