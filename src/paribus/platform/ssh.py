"""Hosts by OpenSSH."""

from __future__ import annotations

from collections.abc import Sequence

from paribus.errors import MachineError, UserError


def why_no_connection(name: str, printed: str, said: Sequence[str]) -> UserError:
    """Return why a host could not be reached."""
    lines = [*printed.splitlines(), *said] or ["no answer"]
    return MachineError(lines[-1].strip(), place=name, fix="x")
