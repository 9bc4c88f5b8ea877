"""Running writes and checks: by Redfish, by IPMI, by a command, by a person."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from paribus.bmc.access import Access
from paribus.bmc.client import BmcError, Client, NoAnswer, Refused
from paribus.bmc.steps import Check, Write, at_pointer, references
from paribus.border import printable
from paribus.launch.local import Captured, capture

_COMMAND_S = 600.0
_POLL_S = (0.02, 2.0)
"""Seconds between two looks at an effect: first, and at most."""


@dataclass(frozen=True, slots=True)
class Ways:
    """How writes leave this machine. `ask` puts a question to a person, who answers yes or no."""

    client: Client
    secret: str
    ask: Callable[[str], bool]
    settle_s: float


def send(write: Write, ways: Ways) -> tuple[str, bool]:
    """Send a write once. Return how it ended, as a clause, "" for a success that was stated.

    And whether it was refused for certain, so that no effect need be waited for. Another failure
    says nothing about the effect. Raises nothing that a BMC causes.
    """
    try:
        if write.by == "redfish":
            return _redfish(write, ways), False
        if write.by == "person":
            return ("", False) if ways.ask(write.argv[0]) else ("the person said no", True)
        done = _ipmi(write.argv, ways) if write.by == "ipmi" else _execute(write.argv)
        return ("" if done.exit_code == 0 else _failed(done)), False
    except BmcError as error:
        return error.cause, isinstance(error, Refused) and 400 <= error.status < 500


def _redfish(write: Write, ways: Ways) -> str:
    body, match = dict(write.body), ""
    for key, path in write.etags.items():
        tag = ways.client.get(path).etag
        if key == "If-Match":
            match = tag
        elif tag:
            body[key] = tag
    receipt = ways.client.write(write.method, write.path, body, match)
    if not receipt.monitor:
        return ""
    state = ways.client.follow(receipt.monitor, time.monotonic() + ways.settle_s)
    if state == "Completed":
        return ""
    return f"its task ends in {state}" if state else "its task does not end"


def holds(check: Check, ways: Ways) -> bool | None:
    """Return whether an effect can be seen, None where only the tree shows it; raises BmcError."""
    if not check.how:
        return None
    if check.how == "prints":
        done = _ipmi(check.argv, ways) if check.by == "ipmi" else _execute(check.argv)
        if done.exit_code != 0:
            raise NoAnswer(_failed(done), place=" ".join(check.argv))
        return " ".join(done.stdout.split()) == str(check.value)
    table = ways.client.get(check.path).table
    try:
        if check.how == "is":
            return bool(at_pointer(table, check.pointer) == check.value)
        return (check.value in references(table, check.pointer)) == (check.how == "has")
    except (KeyError, TypeError, ValueError, IndexError):
        raise Refused(
            f"shows nothing at {check.pointer}", place=f"{ways.client.access.place} {check.path}"
        ) from None


def settles(check: Check, ways: Ways) -> bool | None:
    """Return whether an effect shows within the time that it may take; as `holds`."""
    deadline = time.monotonic() + ways.settle_s
    pause = _POLL_S[0]
    while True:
        try:
            seen = holds(check, ways)
        except BmcError:
            if time.monotonic() >= deadline:
                raise
            seen = False
        if seen is not False or time.monotonic() >= deadline:
            return seen
        time.sleep(min(pause, max(0.0, deadline - time.monotonic())))
        pause = min(2 * pause, _POLL_S[1])


def _ipmi(argv: tuple[str, ...], ways: Ways) -> Captured:
    """Return how an IPMI request ended: bytes of the site's file, over lanplus (RMCP+)."""
    access: Access = ways.client.access
    host = ["-I", "lanplus", "-H", access.host, "-p", str(access.ipmi_port), "-U", access.user]
    # -E takes the password from the environment: other users see an argv.
    words = ["ipmitool", *host, "-E", "-C", access.ipmi_cipher, "-N", "5", "-R", "1", "raw", *argv]
    return capture(words, env={"IPMI_PASSWORD": ways.secret}, timeout_s=access.timeout_s)


def _execute(argv: tuple[str, ...]) -> Captured:
    return capture(argv, timeout_s=_COMMAND_S)


def _failed(done: Captured) -> str:
    last = (done.stderr or done.stdout).strip().splitlines()[-1:]
    return f"exit code {done.exit_code}{': ' + printable(last[0][:200]) if last else ''}"
