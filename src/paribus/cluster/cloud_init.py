"""User-data for cloud-init: what a new virtual machine of any provider needs to be a node.

Packages, limits, the user's key, and no password login. The format is cloud-init's
(https://docs.cloud-init.io/en/latest/reference/modules.html). It holds no secret, unless host keys
are pinned: then each node gets a private key that every process there may read.
"""

from __future__ import annotations

import base64
import binascii
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paribus.core import UserError

MOST_BYTES = 16384
"""Bytes of user-data that the strictest large provider takes (EC2, before its encoding)."""

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
"""By family of distributions and by MPI; "none" for an image that brings one, or a node of yours.

Debian's names are Ubuntu's too, and those of RHEL are Fedora's, Alma's and Rocky's: there MPI lies
in /usr/lib64/openmpi or /usr/lib64/mpich."""

PREFIXES = {"rhel": {"openmpi": "/usr/lib64/openmpi", "mpich": "/usr/lib64/mpich"}}
"""Where MPI lies if it is not on the PATH."""

KEYS = frozenset(
    {
        *("disable_root", "no_ssh_fingerprints", "package_update", "packages", "ssh", "ssh_keys"),
        *("ssh_deletekeys", "ssh_genkeytypes", "ssh_pwauth", "users", "write_files"),
    }
)
"""Every key that is written: cloud-init itself ignores an unknown one in older releases."""

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
    """What the nodes are to be: login name, public keys, and where packages come from."""

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
    """Return whether `body` is a key of its `kind`: it begins with the kind, after its length."""
    try:
        raw = base64.b64decode(body, validate=True)
        (size,) = struct.unpack(">I", raw[:4])
    except (binascii.Error, struct.error):
        return False
    return kind in _KINDS and raw[4 : 4 + size] == kind.encode()


def check_user(name: str) -> str:
    """Return a login name that new machines take; raises UserError."""
    if name == "root" or not _USER.fullmatch(name):
        cause = "root does not log in" if name == "root" else "is no login name"
        fix = "choose another: lower-case letters, digits, - and _"
        raise UserError(cause, place=f"--user {name}", fix=fix)
    return name


def user_data(wanted: Wanted, host_key: tuple[str, str] | None = None) -> str:
    """Return the text of user-data; with `host_key` (private, public) that key is the node's.

    Raises UserError where it is larger than providers take.
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
    """Return a writer of YAML that shows texts of several lines as such."""
    import yaml

    def text(writer: Any, value: str) -> Any:
        style = "|" if "\n" in value else None
        return writer.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    blocks: Any = type("Blocks", (yaml.SafeDumper,), {})
    blocks.add_representer(str, text)
    return blocks


def known_host(names: Sequence[str], public: str) -> str:
    """Return the line of known_hosts for a node with the `public` host key."""
    return f"{','.join(names)} {' '.join(public.split()[:2])}\n"
