"""`paribus cluster cloud-init HOSTS`: user-data by which a new virtual machine becomes a node.

It installs packages, limits and the user's key, and forbids passwords. The format is cloud-init's
(https://docs.cloud-init.io/en/latest/reference/modules.html). It holds no secret, unless host keys
are pinned (--pin): then each node gets a private key that every process there may read.
"""

from __future__ import annotations

import argparse
import base64
import binascii
import os
import re
import struct
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paribus.border import as_error, read_bounded
from paribus.cluster.setup import key_pair
from paribus.core import Hosts, UserError, typed

MOST_BYTES = 16384
"""The most bytes of user-data that all large providers take (EC2 the fewest, before encoding)."""

PACKAGES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "debian": {
        "openmpi": ("openmpi-bin", "libopenmpi-dev", "g++"),
        "mpich": ("mpich", "libmpich-dev", "g++"),
        "none": ("g++",),
    },
    "rhel": {
        "openmpi": ("openmpi", "openmpi-devel", "gcc-c++"),
        "mpich": ("mpich", "mpich-devel", "gcc-c++"),
        "none": ("gcc-c++",),
    },
}
"""Packages by family of distributions and by MPI; "none" for an image that has one.

Ubuntu has Debian's names; Fedora, Alma and Rocky have those of RHEL, whose MPI is in
/usr/lib64/openmpi or /usr/lib64/mpich."""

PREFIXES = {"rhel": {"openmpi": "/usr/lib64/openmpi", "mpich": "/usr/lib64/mpich"}}
"""Where MPI is installed if that is not on the PATH."""

KEYS = frozenset(
    {
        *("disable_root", "no_ssh_fingerprints", "package_update", "packages", "ssh", "ssh_keys"),
        *("ssh_deletekeys", "ssh_genkeytypes", "ssh_pwauth", "users", "write_files"),
    }
)
"""Every key that is written, for a test: older releases of cloud-init ignore unknown keys."""

LIMITS = """\
# RDMA registers its buffers in locked memory; ranks open many files, and some have large stacks.
*  soft  memlock  unlimited
*  hard  memlock  unlimited
*  soft  stack    unlimited
*  hard  stack    unlimited
*  soft  nofile   65536
*  hard  nofile   65536
"""

SSHD = """\
# Launchers log in to many nodes at once: sshd turns logins away beyond 10 that have just begun.
MaxStartups 256
"""

_USER = re.compile(r"[a-z_][a-z0-9_-]{0,31}")
_PRIVATE = re.compile(r"^-----BEGIN .*PRIVATE KEY", re.MULTILINE)
_KINDS = (
    *("ssh-ed25519", "ssh-rsa", "sk-ssh-ed25519@openssh.com"),
    *(f"ecdsa-sha2-nistp{bits}" for bits in (256, 384, 521)),
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the nodes shall have: login name, public keys, distribution and MPI."""

    user: str
    keys: tuple[str, ...]
    distribution: str = "debian"
    mpi: str = "openmpi"


def public_key(text: str, place: str) -> str:
    """Return the public key that a file holds; raises UserError for anything else."""
    if _PRIVATE.search(text):
        raise UserError(
            "is a private key, which must not leave this machine",
            place=place,
            fix=f"name the public one beside it: {place}.pub",
        )
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    words = lines[0].split(None, 2) if len(lines) == 1 else []
    if len(words) < 2 or not _is_key(words[0], words[1]) or not lines[0].isprintable():
        raise UserError(
            "is not one public key of ssh",
            place=place,
            fix="name a file such as ~/.ssh/id_ed25519.pub; `ssh-keygen -t ed25519` makes one",
        )
    return lines[0]


def _is_key(kind: str, body: str) -> bool:
    """Return whether `body` is a key of this `kind`: decoded it begins with the kind's length, then
    the kind."""
    try:
        raw = base64.b64decode(body, validate=True)
        (size,) = struct.unpack(">I", raw[:4])
    except (binascii.Error, struct.error):
        return False
    return kind in _KINDS and raw[4 : 4 + size] == kind.encode()


def check_user(name: str) -> str:
    """Return `name` if new machines accept it as a login name; raises UserError."""
    if name == "root" or not _USER.fullmatch(name):
        cause = "root does not log in" if name == "root" else "is no login name"
        fix = "choose another: lower-case letters, digits, - and _"
        raise UserError(cause, place=f"--user {name}", fix=fix)
    return name


def user_data(wanted: Wanted, host_key: tuple[str, str] | None = None) -> str:
    """Return the text of user-data; `host_key`: the private and public host key of the node.

    Raises UserError where it is larger than MOST_BYTES.
    """
    import yaml

    table: dict[str, Any] = {
        "users": [
            "default",
            {
                "name": wanted.user,
                "shell": "/bin/bash",
                "lock_passwd": True,
                "ssh_authorized_keys": list(wanted.keys),
            },
        ],
        "disable_root": True,
        "ssh_pwauth": False,
        "ssh_deletekeys": True,
        "ssh_genkeytypes": ["ed25519"],
        "no_ssh_fingerprints": False,
        "ssh": {"emit_keys_to_console": True},
        "package_update": True,
        "packages": list(PACKAGES[wanted.distribution][wanted.mpi]),
        "write_files": [
            {"path": "/etc/security/limits.d/90-mpi.conf", "content": LIMITS},
            {"path": "/etc/ssh/sshd_config.d/90-mpi.conf", "content": SSHD},
        ],
    }
    if host_key:
        private, public = host_key
        table["ssh_keys"] = {"ed25519_private": private, "ed25519_public": public}
    text = yaml.dump(table, Dumper=_blocks(), sort_keys=False, width=1000)
    text = f"#cloud-config\n{text}"
    if len(text.encode()) > MOST_BYTES:
        raise UserError(
            f"user-data of {len(text.encode()):,} bytes, where providers take {MOST_BYTES:,}",
            place="--key",
            fix="give fewer keys",
        )
    return text


def _blocks() -> Any:
    """Return a YAML dumper that writes texts of several lines as blocks."""
    import yaml

    def text(writer: Any, value: str) -> Any:
        style = "|" if "\n" in value else None
        return writer.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    blocks: Any = type("Blocks", (yaml.SafeDumper,), {})
    blocks.add_representer(str, text)
    return blocks


def known_host(names: Sequence[str], public: str) -> str:
    """Return the line of known_hosts for a node of these names with the `public` host key."""
    return f"{','.join(names)} {' '.join(public.split()[:2])}\n"


MOST_KEY_BYTES = 16384


def write(arguments: argparse.Namespace, hosts: Hosts, directory: Path) -> int:
    """Write user-data for the nodes into `directory`, print what to do with it, and return 0.

    Without --pin it is one file for all, and the nodes make their host keys. With --pin each node
    has a file with a host key of its own, and `directory`/known_hosts has all public ones. Raises
    UserError.
    """
    if hosts.pocket:
        raise UserError(
            "pocket hosts are no virtual machines",
            place=arguments.hosts,
            fix="name the nodes that are to be: node[1-4]",
        )
    if not arguments.key or not arguments.user:
        raise UserError(
            "a node needs a user and a public key",
            place="cluster cloud-init",
            fix="add --user me --key ~/.ssh/id_ed25519.pub",
        )
    wanted = Wanted(
        check_user(arguments.user),
        tuple(map(_key, arguments.key)),
        arguments.distribution,
        arguments.packages,
    )
    files = _files(wanted, hosts, directory) if arguments.pin else {"user-data": user_data(wanted)}
    for name in files:
        if (directory / name).exists():
            raise UserError(
                "is there already",
                place=str(directory / name),
                fix="remove it, or choose another directory with --out",
            )
    with as_error(UserError, directory, "choose another directory with --out", named=True):
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            _write(directory / name, text)
    _print_next(arguments, wanted, directory)
    return 0


def _key(name: str) -> str:
    path = Path(name).expanduser()
    try:
        text = read_bounded(path, MOST_KEY_BYTES, "a public key")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        fix = "name a file such as ~/.ssh/id_ed25519.pub"
        raise UserError(f"cannot be read: {reason}", place=name, fix=fix) from error
    return public_key(text.decode(errors="replace"), name)


def _files(wanted: Wanted, hosts: Hosts, directory: Path) -> dict[str, str]:
    """Return the file of each node, with a host key of its own, and known_hosts."""
    files, known = {}, []
    with tempfile.TemporaryDirectory() as folder:
        for name in hosts.names:
            path = Path(folder, "key")
            public = key_pair(path, name)
            files[f"user-data-{name}"] = user_data(wanted, (path.read_text(), public))
            known.append(known_host([name], public))
            path.unlink()
    return {**files, "known_hosts": "".join(known)}


def _write(path: Path, text: str) -> None:
    """Write a new file that only its user can read: a host key may be in it."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)


def _print_next(arguments: argparse.Namespace, wanted: Wanted, directory: Path) -> None:
    """Print what to do with the files that were written."""
    hosts = arguments.hosts
    what = f"{directory}/user-data-NAME" if arguments.pin else f"{directory}/user-data"
    print(f"{what}: give it to the provider as user-data (custom data) of each new machine")
    prefix = PREFIXES.get(wanted.distribution, {}).get(wanted.mpi, "")
    options = f" --user {wanted.user}{f' --mpi {prefix}' if prefix else ''}"
    if arguments.out:  # known_hosts is in it, now or later
        options += f" {typed(('--out', arguments.out))}"
    print(f"when they are up: {typed(('paribus', 'cluster', 'check', hosts))}{options}")
    if arguments.pin:
        print(
            f"paribus: {what} holds a private host key: delete it when the machine is up, and know"
            " that every process on the machine may read its user-data",
            file=sys.stderr,
        )
    else:
        print(
            "compare the fingerprints that it prints with those on the console of each machine,"
            " then accept them: --accept-host-keys"
        )
