"""`paribus pack DIR`: a study as one file, for a colleague or a journal, and back."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from paribus.border import exists, is_directory
from paribus.core import ParibusError, StoreError

EXAMPLE = """\
examples:
  paribus pack network-study                 # writes network-study.zip
  paribus pack network-study --scrub         # without names of hosts and users, and addresses
  paribus pack --open network-study.zip      # checks every file, then unpacks into network-study
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Pack a study into one zip file with the hash of each file, or open one."
    parser.add_argument("path", metavar="DIR|FILE.zip", type=Path, help="study directory")
    parser.add_argument("--open", action="store_true", help="check and unpack FILE.zip")
    parser.add_argument("--scrub", action="store_true", help="replace names, addresses and users")
    parser.add_argument(
        "--out", metavar="PATH", type=Path, help="what to write (NAME.zip, or NAME)"
    )
    parser.set_defaults(execute=pack)


def pack(arguments: argparse.Namespace) -> int:
    """Return the exit code of `paribus pack`; raises StoreError."""
    from paribus.cli.directory import FILES, refuse_at_work
    from paribus.core import count
    from paribus.plan import read_plan
    from paribus.store import pack as packs
    from paribus.words.lists import listed

    path: Path = arguments.path
    if arguments.open:
        if arguments.scrub:
            fix = "leave it out; then pack the study that comes out with --scrub"
            raise StoreError("a file is unpacked as it is", place="--scrub", fix=fix)
        directory = arguments.out or (path.with_suffix("") if path.name else path)
        number = packs.unpack(path, directory)
        _check_study(path, directory)
        print(f"{directory}: a study of {count(number, 'file')}, each as it was packed")
        return 0
    read_plan(path)
    refuse_at_work(path)
    out = arguments.out or path.with_name(f"{path.resolve().name}.zip")
    if exists(out) or is_directory(out):
        raise StoreError("exists already", place=str(out), fix="choose another with --out")
    names = [name for name in FILES if name not in ("lock", "progress.lock")]
    if not arguments.scrub:
        number = packs.pack(path, names, out)
    else:
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "study"
            _scrub(path, copy)
            number = packs.pack(copy, names, out)
    print(f"{out}: {count(number, 'file')}, {out.stat().st_size} B")
    if short := _shortened(path):
        print(f"not whole, in the study as well: {listed(short, 3)} in logs/")
    if arguments.scrub:
        print("scrubbed; look into its logs before you share it: programs print what they like")
    return 0


def _check_study(file: Path, directory: Path) -> None:
    """Remove `directory`, and raise StoreError, if what was unpacked from `file` has no plan."""
    import shutil

    from paribus.plan import read_plan

    try:
        read_plan(directory)
    except ParibusError as error:
        shutil.rmtree(directory, ignore_errors=True)
        cause = f"holds no study: its plan.json {error.cause}"
        raise StoreError(cause, place=str(file), fix="ask for the file anew") from error


def _shortened(directory: Path) -> list[str]:
    """Return the names of the logs whose middle was left out when they were stored."""
    from paribus.border import left_out_of

    logs = sorted((directory / "logs").glob("*"))
    return [one.name for one in logs if one.is_file() and left_out_of(one)]


def _scrub(directory: Path, copy: Path) -> None:
    """Write the scrubbed copy with its reports; raises StoreError if a verdict differs."""
    from paribus.cli.outputs import conclude_and_write
    from paribus.judge.conclude import judged
    from paribus.launch.scrubbing import same_verdicts, scrub
    from paribus.report.export import to_json
    from paribus.store import Store

    plan = scrub(directory, copy)
    with Store(copy) as store:
        judgement = conclude_and_write(plan, store)
    if not same_verdicts(to_json(judged(directory)), to_json(judgement)):
        raise StoreError(
            "a verdict would change without the names: a name decides what is equal",
            place=str(directory),
            fix="pack it without --scrub",
        )
