"""Building the programs of an arm by its `build` commands: once for a study, or for each block.

They are built in a copy of their source, and every file of the build is hashed.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from paribus.border import as_error, exists, why_not
from paribus.core import (
    BUILD,
    SEED,
    Arm,
    Built,
    Command,
    Facts,
    Program,
    Study,
    UserError,
    count,
    format_bytes,
)
from paribus.launch.local import Captured, LocalStation
from paribus.launch.machine import HERE, distrusted, first_errors
from paribus.stats.schedule import Randomiser

LIMIT_S = 3600.0
"""Seconds that one command of a build may take."""

MOST_FILES = 20_000
MOST_BYTES = 1 << 30
"""The most files and bytes of a source: a study file beside large data is to name a folder."""

MARK = ".paribus-builds"
"""The file by which Paribus recognises a directory of builds as its own, and may remove it."""


def build(
    study: Study, place: Path, notify: Callable[[str], None], *, again: bool, builds: int
) -> Study:
    """Return `study` with the programs of its arms built below `place`; see ready.built.

    `builds` is the number of blocks with a build of their own, 0 if all share one.
    """
    _claim(place)
    arms = tuple(_arm(arm, study, place, notify, again=again, builds=builds) for arm in study.arms)
    _refuse_equal(study, arms)
    return replace(study, arms=arms)


def _claim(place: Path) -> None:
    """Make `place`, or refuse one that is not a directory of builds, or not the user's own."""
    fix = "remove or rename it, or choose another study directory with --out"
    with as_error(UserError, place, fix, "no directory of builds can be made here"):
        if exists(place) and any(place.iterdir()) and not exists(place / MARK):
            cause = "is there already, and is no directory of builds"
            raise UserError(cause, place=str(place), fix=fix)
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
    if reason := why_not(place):
        raise distrusted(str(place), reason)
    (place / MARK).touch()


def _arm(
    arm: Arm, study: Study, place: Path, notify: Callable[[str], None], *, again: bool, builds: int
) -> Arm:
    """Return `arm` with its programs built, `builds` times; unchanged if it builds none."""
    if not arm.build:
        return arm
    folder = place / arm.name
    if not builds:
        return from_folder(arm, Built(str(folder), _hash(_made(arm, study, folder, notify, again))))
    if not again:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(exist_ok=True)
    draw = Randomiser(study.settings.seed or 0, f"builds of {arm.name}")
    seeds = tuple(draw.below(2**31) for _ in range(builds))
    manifests = []
    for number, seed in enumerate(seeds, 1):
        commands = tuple(filled(argv, str(seed), SEED) for argv in arm.build)
        seeded = replace(arm, build=commands)
        manifests.append(_made(seeded, study, folder / number_of(number), notify, again))
    if builds > 1 and len(set(manifests)) == 1:
        cause = f"all {count(builds, 'build')} of it are equal, byte by byte"
        fix = f"check that its commands make another layout of each {SEED}"
        raise UserError(cause, place=f"{study.path}: arms.{arm.name}.build", fix=fix)
    return from_folder(arm, Built(str(folder / number_of(1)), _hash("".join(manifests)), seeds))


def _made(arm: Arm, study: Study, folder: Path, notify: Callable[[str], None], again: bool) -> str:
    """Return the manifest of the build in `folder`: made now, or with `again` if it is missing."""
    manifest = folder.with_name(f"{folder.name}.sha256")
    if not (again and manifest.is_file()):
        notify(f"{arm.name}: {'; '.join(map(shlex.join, arm.build))}")
        manifest.unlink(missing_ok=True)  # a manifest is there only beside a complete build
        shutil.rmtree(folder, ignore_errors=True)
        _copy(Path(arm.source), folder, f"{study.path}: arms.{arm.name}.source")
        _execute(arm, folder, f"{study.path}: arms.{arm.name}.build")
        manifest.write_text(_manifest(folder, _names(folder)))
    # The names are those at the end of the build: launches may have left other files since.
    names = [line.partition("  ")[2] for line in manifest.read_text().splitlines()]
    return _manifest(folder, names)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _copy(source: Path, folder: Path, place: str) -> None:
    """Copy a file, or a directory without version control, study directories and other builds.

    Raises UserError if it is too large or cannot be copied; `place` is that in the study file.
    """
    try:
        if source.is_dir():
            _check_size(source, place)
            shutil.copytree(source, folder, symlinks=True, ignore=_left_out)
        else:
            folder.mkdir()
            shutil.copy2(source, folder)
    except (OSError, shutil.Error) as error:
        # Of a directory, a list of (from, to, why).
        first = error.args[0][0] if isinstance(error, shutil.Error) else None
        cause = f"{first[0]}: {first[2]}" if isinstance(first, tuple) else str(error)
        fix = 'make it readable, or name the directory of the source alone: source = "src"'
        raise UserError(f"cannot be copied: {cause}", place=place, fix=fix) from error


def _check_size(source: Path, place: str) -> None:
    count = size = 0
    for at, names, files in os.walk(source):
        names[:] = [name for name in names if name not in _left_out(at, names)]
        count += len(names) + len(files)
        size += sum(Path(at, name).lstat().st_size for name in files)
        if count > MOST_FILES or size > MOST_BYTES:
            raise UserError(
                f"{source} has more than {MOST_FILES:,} files or {format_bytes(MOST_BYTES)}",
                place=place,
                fix='name the directory of the source alone: source = "src"',
            )


def _left_out(at: str, names: Sequence[str]) -> set[str]:
    marks = ("plan.json", "launches.db", MARK)
    return {
        name
        for name in names
        if name == ".git" or any(exists(Path(at, name, mark)) for mark in marks)
    }


def _execute(arm: Arm, folder: Path, place: str) -> None:
    """Run the commands of a build in `folder`; their output goes to FOLDER.log beside it."""
    log = folder.with_name(f"{folder.name}.log")
    log.unlink(missing_ok=True)
    env = {name: value.replace(BUILD, str(folder)) for name, value in arm.env.items()}
    with LocalStation() as station:
        for argv in arm.build:
            out, err = (folder.with_name(f"{folder.name}.{end}") for end in ("out", "err"))
            filled = tuple(word.replace(BUILD, str(folder)) for word in argv)
            if not HERE.find_program(filled[0], env.get("PATH")) and "/" not in filled[0]:
                fix = "install it, or give its path"
                raise UserError(f"no program on the PATH called {argv[0]}", place=place, fix=fix)
            done = station.run(
                Command(filled, env=env),
                stdout=str(out),
                stderr=str(err),
                timeout_s=LIMIT_S,
                scratch="",
                cwd=str(folder),
            )
            printed = [one.read_text(errors="replace") for one in (out, err)]
            with log.open("a") as kept:
                kept.write(f"$ {shlex.join(filled)}\n{''.join(printed)}")
            out.unlink()
            err.unlink()
            if done.exit_code or done.timed_out:
                how = f"took more than {LIMIT_S:.0f} s" if done.timed_out else "failed"
                errors = first_errors(Captured(done.exit_code, *printed))
                raise UserError(
                    f"`{shlex.join(argv)}` {how}: {errors}",
                    place=place,
                    fix=f"the full log is {log}",
                )


def _names(folder: Path) -> list[str]:
    """Return the relative paths of all files below `folder`, sorted; unprintable ones left out."""
    found = (Path(at, name) for at, _, files in os.walk(folder) for name in files)
    names = (str(path.relative_to(folder)) for path in found if path.is_file())
    return sorted(name for name in names if name.isprintable())


def _manifest(folder: Path, names: Sequence[str]) -> str:
    """Return the SHA-256 of files as sha256sum prints them; of a missing file a dash."""
    lines = []
    for name in names:
        path, digest = folder / name, "-"
        if path.is_file():
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        lines.append(f"{digest}  {name}\n")
    return "".join(lines)


def _refuse_equal(study: Study, arms: Sequence[Arm]) -> None:
    """Refuse builds by different commands that gave the same files: the factor had no effect."""
    seen: dict[str, Arm] = {}
    for arm in arms:
        if arm.built is None:
            continue
        other = seen.setdefault(arm.built.digest, arm)
        if other.build != arm.build:
            raise UserError(
                f"the builds of {other.name} and {arm.name} are equal, byte by byte",
                place=study.path,
                fix="check that the build uses what differs between the commands, such as $(CC)",
            )


def from_build(program: Program, built: Built) -> Program:
    """Return `program` with the directory of the build in place of {build}."""
    return replace(
        program,
        argv=filled(program.argv, built.folder),
        server=filled(program.server, built.folder),
        needs=filled(program.needs, built.folder),
        env=filled_values(program.env, built.folder),
        files=filled_values(program.files, built.folder),
        cwd=program.cwd.replace(BUILD, built.folder),
    )


def of_block(arm: Arm, built: Built, block: int) -> tuple[Arm, Facts]:
    """Return `arm` with the programs that it has in a block, and the fact of that build's seed.

    Without builds for each block, `arm` is returned as it is, and no fact.
    """
    if not built.seeds:
        return arm, {}
    of_this = built._replace(folder=str(Path(built.folder).with_name(number_of(block))))
    seed: Facts = {"build.seed": str(built.seeds[block - 1])}
    return from_folder(arm, of_this, old=built.folder), seed


def number_of(block: int) -> str:
    """Return the folder of a block's build, 007, so that all paths of programs are equally long."""
    return f"{block:03}"


def from_folder(arm: Arm, made: Built, old: str = BUILD) -> Arm:
    """Return `arm` with the directory of the build `made` in place of `old`."""
    return replace(
        arm,
        argv=filled(arm.argv, made.folder, old),
        wrap=filled(arm.wrap, made.folder, old),
        env=filled_values(arm.env, made.folder, old),
        built=made,
    )


def filled(words: Sequence[str], new: str, old: str = BUILD) -> tuple[str, ...]:
    return tuple(word.replace(old, new) for word in words)


def filled_values(table: Mapping[str, str], new: str, old: str = BUILD) -> dict[str, str]:
    return {key: value.replace(old, new) for key, value in table.items()}
