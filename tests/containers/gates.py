"""Pocket hosts with sshd, as machines have it; root alone can start one that lets others in."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from paribus.containers.fabric import address
from paribus.hosts.pocket import Pocket
from processes import needs

CONFIG = """\
Port 22
HostKey /run/paribus/host_key
AuthorizedKeysFile /run/paribus/authorized_keys
PidFile /run/sshd.pid
AuthenticationMethods publickey
PermitRootLogin prohibit-password
UsePAM no
UseDNS no
MaxStartups 1000
MaxSessions 1000
AcceptEnv *
"""

# Without PAM, sshd turns away an account with a locked password, as root's is on Ubuntu.
START = """\
mkdir -m 700 /run/sshd /run/paribus
cd /run/paribus || exit 1
umask 077
printf '%s\\n' "$1" >host_key
printf '%s\\n' "$2" >authorized_keys
printf '%s\\n' "$3" >sshd_config
sed 's/^root:!/root:*/' /etc/shadow >shadow
mount --bind shadow /etc/shadow
umask 022
cd /
PATH=$PATH:/usr/sbin:/sbin
"$(command -v sshd)" -f /run/paribus/sshd_config -E /run/sshd.log </dev/null >/dev/null 2>&1
until [ -s /run/sshd.pid ]; do
    tries=$((tries + 1))
    [ "$tries" -lt 1000 ] || { cat /run/sshd.log >&2 && exit 1; }
    sleep 0.01
done
"""


@dataclass(frozen=True, slots=True)
class Gate:
    """What an ssh client needs to reach the hosts of `pocket`, and where it must be started.

    `prefix` goes before `ssh`: the addresses exist only in the fabric's network namespace, which
    it enters. `addresses` has each host's name with its address.
    """

    pocket: Pocket
    prefix: tuple[str, ...]
    addresses: tuple[tuple[str, str], ...]
    port: int
    user: str
    identity: str
    known_hosts: str


@contextmanager
def gated(hosts: int, directory: str) -> Iterator[Gate]:
    """Yield a pocket cluster with sshd on each host; skips the test where there can be none."""
    if os.geteuid():
        pytest.skip("not root")
    needs("ssh-keygen", "sshd")
    with Pocket(hosts, directory=directory) as pocket:
        yield _gate(pocket)


def _gate(pocket: Pocket) -> Gate:
    """Start sshd on each host of `pocket`, with which all of it ends."""

    def start(number: int, argv: tuple[str, ...]) -> None:
        subprocess.run([*pocket.hosts[number].shell, *argv], check=True, stdin=subprocess.DEVNULL)

    place = Path(pocket.directory)
    addresses = start_sshd(place, pocket.names, start)
    prefix = ("nsenter", "-t", str(_fabric(pocket)), "-n", "--")
    return Gate(pocket, prefix, addresses, 22, "root", f"{place}/key", f"{place}/known_hosts")


def start_sshd(
    place: Path, names: Sequence[str], start: Callable[[int, tuple[str, ...]], object]
) -> tuple[tuple[str, str], ...]:
    """Start sshd on pocket hosts, whose shells `start` gives arguments; return their addresses.

    What clients need is then in `place`: key and known_hosts.
    """
    addresses = tuple((name, address(i)) for i, name in enumerate(names, 1))
    own = _key(place / "key")
    lines = []
    for number, (name, at) in enumerate(addresses):
        lines.append(f"{name},{at} {_key(place / name)}")
        start(number, ("-c", START, "sh", (place / name).read_text(), own, CONFIG))
    (place / "known_hosts").write_text("".join(lines))
    return addresses


def _key(path: Path) -> str:
    """Return the public key of a pair that is made at `path`."""
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(path)]
    subprocess.run(words, check=True)
    return path.with_name(f"{path.name}.pub").read_text()


def _fabric(pocket: Pocket) -> int:
    """Return the first process of the fabric, in which the network of the hosts is."""
    wanted = f"/bin/sh\0{pocket.directory}/fabric.sh\0".encode()
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            ours = entry.name.isdigit() and (entry / "cmdline").read_bytes().startswith(wanted)
            # Its copies, before they start what they start, have the same words.
            if ours and re.search(r"^NSpid:.*\t1$", (entry / "status").read_text(), re.M):
                return int(entry.name)
    raise ProcessLookupError(wanted)
