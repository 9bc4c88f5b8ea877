"""Programs that an arm builds for itself: once for a study, or for a block of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp

from paribus.core import BUILD, Arm, Built, Facts, Program, Study
from paribus.designs import design_of


@contextmanager
def built(
    study: Study, place: Path | None, notify: Callable[[str], None], *, again: bool
) -> Iterator[Study]:
    """Yield `study` with the programs of each arm built below `place`, ARM by ARM.

    Where blocks have builds of their own, an arm has a directory of these, numbered as the blocks;
    its programs are those of the first until `of_block` names others. With `again`, builds that are
    there stay as they are: those of the study that is continued.
    Without a `place` they are made in a temporary directory, of each arm one alone, and removed in
    the end. Raises UserError for a command that fails, for a source that is too large, and for a
    `place` that is not Paribus' own.
    """
    if not any(arm.build for arm in study.arms):
        yield study
        return
    builds = design_of(study).builds
    from paribus.launch.building import build

    with ExitStack() as stack:
        if place is None:
            place = Path(mkdtemp(prefix="paribus-build-"))
            stack.callback(shutil.rmtree, place, ignore_errors=True)
            builds = min(1, builds)
        yield build(study, place.absolute(), notify, again=again, builds=builds)


def digests(study: Study) -> dict[str, str]:
    """Return the hash of each arm's build, by a name for errors."""
    return {f"the build of {arm.name}": arm.built.digest for arm in study.arms if arm.built}


def from_build(program: Program, built: Built | None) -> Program:
    """Return `program` with the directory of the build in the places that name it."""
    if built is None:
        return program
    return replace(
        program,
        argv=filled(program.argv, built.folder),
        server=filled(program.server, built.folder),
        needs=filled(program.needs, built.folder),
        env=filled_values(program.env, built.folder),
        files=filled_values(program.files, built.folder),
        cwd=program.cwd.replace(BUILD, built.folder),
    )


def of_block(arm: Arm, block: int) -> Arm:
    """Return `arm` with the programs that it has in a block: its own, or those of all."""
    if arm.built is None or not arm.built.seeds:
        return arm
    first = arm.built.folder
    own = arm.built._replace(folder=str(Path(first).with_name(number_of(block))))
    return from_folder(arm, own, stands=first)


def facts_of_block(arm: Arm, block: int) -> Facts:
    """Return the number that the build of a block was made with, where each has its own."""
    seeds = arm.built.seeds if arm.built else ()
    return {"build.seed": str(seeds[block - 1])} if seeds else {}


def number_of(block: int) -> str:
    """Return the name of a build: all are equally long, for so are then the paths of programs."""
    return f"{block:03}"


def from_folder(arm: Arm, made: Built, stands: str = BUILD) -> Arm:
    return replace(
        arm,
        argv=filled(arm.argv, made.folder, stands),
        wrap=filled(arm.wrap, made.folder, stands),
        env=filled_values(arm.env, made.folder, stands),
        built=made,
    )


def filled(words: Sequence[str], folder: str, stands: str = BUILD) -> tuple[str, ...]:
    return tuple(word.replace(stands, folder) for word in words)


def filled_values(table: Mapping[str, str], folder: str, stands: str = BUILD) -> dict[str, str]:
    return {key: value.replace(stands, folder) for key, value in table.items()}
