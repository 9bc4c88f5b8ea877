"""Host keys: which are known, what a host shows, and accepting it, which is always asked for."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from paribus.core import Hosts, UserError
from paribus.hosts.reached import Host
from paribus.hosts.ssh import configure, reached_by, why_no_connection
from paribus.launch.local import capture

AT_ONCE = 64
SCAN_S = 30.0

GLOBAL = "/etc/ssh/ssh_known_hosts"
"""The keys that whoever runs this machine knows."""


@dataclass(frozen=True, slots=True)
class HostKey:
    """The key that a host showed: its name, the fingerprint to compare, the line of known_hosts."""

    name: str
    fingerprint: str
    line: str


Accepts = Callable[[Sequence[HostKey]], bool]
"""Returns whether the user accepts host keys that are not known."""


class UnknownKeysError(UserError):
    """Host keys are not known; `keys` are those that the hosts showed, to `accept` or not."""

    keys: Sequence[HostKey] = ()


def reach(asked: Hosts, known_hosts: str, directory: Path) -> tuple[Host, ...]:
    """Return the hosts that are asked for; what ssh needs for them is written into `directory`.

    Raises UnknownKeysError, with the fingerprints, where host keys are not in `known_hosts`.
    """
    hosts = reached_by(configure(asked, known_hosts, directory), asked.names)
    if unknown := [host for host in hosts if not known(host.name, known_hosts)]:
        keys = scan(unknown)
        shown = "".join(f"\n    {key.name} {key.fingerprint}" for key in keys)
        error = UnknownKeysError(
            f"the host keys of {len(unknown)} of {len(hosts)} hosts are not known:{shown}",
            place=known_hosts,
            fix="compare them with what `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` prints"
            " there, then accept them",
        )
        error.keys = keys
        raise error
    return hosts


def known(name: str, file: str) -> bool:
    """Return whether a key of the host is in `file`, or known to this machine."""
    return any(
        capture(["ssh-keygen", "-F", name, "-f", path]).exit_code == 0
        for path in (file, GLOBAL)
        if Path(path).is_file()
    )


def scan(hosts: Sequence[Host]) -> list[HostKey]:
    """Return the keys that `hosts` show, without logging in; by way of their jump hosts.

    Raises UserError with the fix for one that cannot be reached.
    """
    if not hosts:
        return []
    with ThreadPoolExecutor(min(AT_ONCE, len(hosts))) as pool:
        return list(pool.map(_scan, hosts))


def _scan(host: Host) -> HostKey:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "key")
        argv = [host.shell[0], *host.shell[1:3]]
        for option in (
            # Into a file of its own that is thrown away: whether it is right is still open.
            *("StrictHostKeyChecking=accept-new", f"UserKnownHostsFile={file}"),
            *("GlobalKnownHostsFile=/dev/null", "HashKnownHosts=no", "ControlPath=none"),
            # The key is shown before anybody logs in, so nobody tries.
            *("PreferredAuthentications=none", "PubkeyAuthentication=no"),
        ):
            argv += ["-o", option]
        done = capture([*argv, host.name, "exit"], timeout_s=SCAN_S)
        if not file.is_file() or not (line := file.read_text().strip()):
            raise why_no_connection(host.name, done.stderr, ())
        words = capture(["ssh-keygen", "-lf", str(file)]).stdout.split()
        fingerprint = f"{words[1]} {words[-1]}" if len(words) > 2 else "?"
        return HostKey(host.name, fingerprint, line)


def accept(keys: Sequence[HostKey], file: Path) -> None:
    """Add `keys` to a file of known hosts, which is made if it is not there.

    Raises UserError where another key of the same kind is known for one of them.
    """
    there = file.read_text().splitlines() if file.is_file() else []
    added = []
    for key in keys:
        name, kind, text = key.line.split()[:3]
        for number, line in enumerate(there, 1):
            words = line.split()
            if words[:2] == [name, kind] and words[2] != text:
                raise UserError(
                    f"another key is known for {key.name}",
                    place=f"{file}:{number}",
                    fix="if you know why it changed, remove that line, then accept the new key",
                )
        if key.line not in there:
            added.append(key.line)
    if added:
        descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "a") as out:
            out.write("".join(f"{line}\n" for line in added))
