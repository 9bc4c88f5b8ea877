"""`paribus cluster cloud-init HOSTS`: user-data for new virtual machines."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from paribus.border import read_bounded
from paribus.cluster.cloud_init import (
    PREFIXES,
    Wanted,
    check_user,
    known_host,
    public_key,
    user_data,
)
from paribus.cluster.keypair import key_pair
from paribus.core import Hosts, UserError, typed

MOST_KEY_BYTES = 16384


def write(arguments: argparse.Namespace, hosts: Hosts, directory: Path) -> int:
    """Write user-data for the nodes into `directory`, and say what to do with it; returns 0.

    Without --pin it is one file for all, and the nodes make their host keys. With --pin each node
    has a file with a host key of its own, and `directory`/known_hosts has them all.
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
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            _write(directory / name, text)
    except OSError as error:
        raise UserError(
            f"cannot be written: {error.strerror}",
            place=str(error.filename or directory),
            fix="choose another directory with --out",
        ) from error
    _tell(arguments, wanted, directory)
    return 0


def _key(name: str) -> str:
    path = Path(name).expanduser()
    try:
        text = read_bounded(path, MOST_KEY_BYTES, "a public key")
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or error
        fix = "name a file such as ~/.ssh/id_ed25519.pub"
        raise UserError(f"cannot be read: {said}", place=name, fix=fix) from error
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
    """Write a file that only its user reads: a host key may be in it."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)


def _tell(arguments: argparse.Namespace, wanted: Wanted, directory: Path) -> None:
    hosts = arguments.hosts
    what = f"{directory}/user-data-NAME" if arguments.pin else f"{directory}/user-data"
    print(f"{what}: give it to the provider as user-data (custom data) of each new machine")
    prefix = PREFIXES.get(wanted.distribution, {}).get(wanted.mpi, "")
    options = f" --user {wanted.user}{f' --mpi {prefix}' if prefix else ''}"
    if arguments.out:  # its known_hosts is there, and later that of accepted keys
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
