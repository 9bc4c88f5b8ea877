"""Whether each node answered, and how: what else could be wrong with a connection."""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import median

from paribus.cluster.answers import Answer
from paribus.cluster.checks import Finding
from paribus.core import format_seconds
from paribus.hosts.ssh import why_no_connection

SLOW_S = 2.0
"""Seconds for a connection after which a node is called slow."""


def reached(answers: Sequence[Answer]) -> list[Finding]:
    """Return a finding for each way in which nodes did not answer."""
    alike: dict[tuple[str, str], list[str]] = {}
    for one in answers:
        if not one.answered:
            alike.setdefault(_why(one), []).append(one.name)
    found = [Finding("reach", "broken", why, tuple(n), fix) for (why, fix), n in alike.items()]
    number = sum(one.answered for one in answers)
    if number:
        found.append(Finding("reach", "ok", f"{number} of {len(answers)} answer"))
    return found


def _why(answer: Answer) -> tuple[str, str]:
    said = answer.said.splitlines()[-1].strip() if answer.said.strip() else ""
    if answer.failure.startswith("no answer"):
        prompt = re.search(r"(password|passphrase)[^\n]*:\s*$", answer.said, re.IGNORECASE)
        if prompt:
            return "it asks for a password", (
                "Paribus asks for none: load a key into your agent (ssh-add), or --identity FILE"
            )
        return f"{answer.failure}{f' ({said})' if said else ''}", (
            "log in by hand and look: a file system that does not answer, a load that is too high,"
            " or a login script that waits"
        )
    if answer.failure == "cannot be reached":
        error = why_no_connection(answer.name, answer.said, ())
        return error.cause, error.fix
    if answer.failure == "prints without end":
        return "it prints without end", "look at what its login scripts print (~/.bashrc)"
    ended = f" ({said})" if said else f" (exit code {answer.code})" if answer.code else ""
    return f"{answer.failure}{ended}", (
        "Paribus needs a POSIX shell as /bin/sh there; a login shell such as /sbin/nologin, a"
        " forced command or a login script that ends the session prevents it"
    )


def banners(answers: Sequence[Answer]) -> list[Finding]:
    """Return a warning for nodes whose login prints something where programs expect data."""
    alike: dict[str, list[str]] = {}
    for one in answers:
        if one.banner:
            alike.setdefault(one.banner[0][:60], []).append(one.name)
    return [
        Finding(
            "banner",
            "warning",
            f"login scripts print on standard output: {said!r}",
            tuple(nodes),
            "print only for people: put [ -t 1 ] before it in ~/.bashrc or /etc/profile.d; scp and"
            " MPI's launchers stumble over it",
        )
        for said, nodes in alike.items()
    ]


def slow(answers: Sequence[Answer]) -> list[Finding]:
    """Return a warning for nodes that take long to log in to."""
    usual = median(one.connect_s for one in answers)
    nodes = [one for one in answers if one.connect_s > max(SLOW_S, 5 * usual)]
    if not nodes:
        return [Finding("answer", "ok", f"a shell after {format_seconds(usual)}")]
    worst = max(one.connect_s for one in nodes)
    cause = f"a shell only after {format_seconds(worst)}; the others: {format_seconds(usual)}"
    fix = "UseDNS no in sshd_config, a name service that answers, shorter login scripts"
    return [Finding("answer", "warning", cause, tuple(one.name for one in nodes), fix)]


def tools(answers: Sequence[Answer]) -> list[Finding]:
    """Return findings for programs that nodes lack."""
    alike: dict[str, list[str]] = {}
    for one in answers:
        for tool in one.all("missing"):
            alike.setdefault(tool, []).append(one.name)
    packages = {"taskset": "util-linux", "ssh": "openssh-client"}
    soft = {
        "taskset": "launches cannot be bound to cores",
        "ssh": "mpirun cannot start ranks on other nodes by itself; Paribus does it for it",
    }
    return [
        Finding(
            "tools",
            "warning" if tool == "taskset" else "information" if tool in soft else "broken",
            f"{tool} is missing" + (f": {soft[tool]}" if tool in soft else ""),
            tuple(nodes),
            f"install {packages.get(tool, 'coreutils')}",
        )
        for tool, nodes in alike.items()
    ]
