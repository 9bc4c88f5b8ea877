"""`paribus record`: the facts of this machine in a file without names, or those of such a file."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from paribus.border import as_error, exists, is_directory, printable
from paribus.core import Facts, typed

if TYPE_CHECKING:
    from paribus.probes import Archive

EXAMPLE = """\
example:
  paribus record                          # writes machine.tar.gz
  paribus record --out epyc.tar.gz
  paribus record --from epyc.tar.gz       # shows the facts in it

Host names, addresses, serial numbers, users and paths under /home are removed before anything
is written. Check the file before you share it: it is a tar archive of plain text files.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Record the facts of this machine, or show a recording."
    parser.add_argument("--out", metavar="FILE", type=Path, help="(machine.tar.gz)")
    parser.add_argument(
        "--from", metavar="FILE", type=Path, dest="source", help="show the facts of a recording"
    )
    parser.add_argument("--json", action="store_true", help="the facts, as JSON")
    parser.set_defaults(execute=record)


def record(arguments: argparse.Namespace) -> int:
    """Return the exit code of `paribus record`."""
    from paribus.core import StoreError, UserError
    from paribus.probes import facts_of
    from paribus.probes.files import from_root, from_tar, to_tar

    if arguments.source is not None:
        source: Path = arguments.source
        if arguments.out is not None:
            fix = "leave it out: --from shows what is recorded, and records nothing"
            raise UserError("nothing is written", place="--out", fix=fix)
        archive = from_root(source) if is_directory(source) else from_tar(source)
        if not archive.files and is_directory(source) and not exists(source / "unknown.json"):
            raise UserError(
                "holds no facts of a machine",
                place=str(source),
                fix="give what `paribus record` wrote, that unpacked, or the root of a machine",
            )
        _show(facts_of(archive), as_json=arguments.json)
        return 0
    out: Path = arguments.out or Path("machine.tar.gz")
    if exists(out):
        raise StoreError("already exists", place=str(out), fix="choose another with --out")
    archive = read_this_machine()
    with as_error(StoreError, out, "choose another with --out"):
        count = to_tar(archive, out)
    facts = facts_of(archive)
    if arguments.json:
        _show(facts, as_json=True)
        return 0
    known = sum(not _unknown(value) for value in facts.values())
    print(f"{out}: {count} texts, {out.stat().st_size} B, scrubbed")
    show = typed(("paribus", "record", "--from", out))
    print(f"{known} facts known, {len(facts) - known} unknown; to see them: {show}")
    return 0


def read_this_machine() -> Archive:
    """Return what facts.sh reads on this machine at its greatest depth, without names.

    Raises ParseError where it fails.
    """
    import getpass
    import secrets
    import socket

    from paribus.core import ParseError
    from paribus.launch.local import capture
    from paribus.probes import from_stream, script
    from paribus.probes.nvml import with_nvml
    from paribus.probes.scrub import scrubbed

    done = capture(["sh", "-c", script(), "facts", secrets.token_hex(6), "deep"], timeout_s=120.0)
    if done.exit_code != 0:
        raise ParseError(f"exit code {done.exit_code}: {done.stderr.strip()[:200]}", place="sh")
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a uid without a name, as containers have
        user = ""
    names = {socket.gethostname(), socket.getfqdn(), *({user} - {"root"})}
    return scrubbed(with_nvml(from_stream(done.stdout)), names)


def _unknown(value: object) -> bool:
    from paribus.probes import unknown

    return unknown(value)


def _show(facts: Facts, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"schema": "paribus.facts/1", "facts": dict(facts)}, indent=2))
        return
    for key, value in facts.items():
        text = value if isinstance(value, str) else json.dumps(value)
        if _unknown(value):
            text = f"({value['unknown']})"
        print(f"{key:40} {printable(text)}")
