"""Tags of ranks before lines: as launchers really write them, and what only looks like them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mpis import each_mpi
from paribus.benchmarks import BENCHMARKS
from paribus.core import Command, Mpi, Placement
from paribus.launch.launchers import launch
from paribus.launch.local import LocalStation
from paribus.readers.tags import untagged

FIXTURES = Path(__file__).parent / "fixtures"
OPTIONS = {
    ("openmpi", 4): ("--tag-output", "--timestamp-output", "--tag-output --timestamp-output"),
    ("openmpi", 5): (
        *("--tag-output", "--output tag", "--output rank", "--output tag-detailed"),
        *("--output timestamp", "--output tag,timestamp"),
    ),
}
HYDRA = ("-l", "-prepend-rank")


LOGS = [
    *(FIXTURES / "osu_latency" / "good-alltypes_shm.out", FIXTURES / "npb_cg" / "good-a_2.out"),
    FIXTURES / "qe" / "good-al32_1rank.out",
]


def tagged(option: str, log: Path, mpi: Mpi, folder: Path) -> str:
    """Return a log behind the tags of a launcher's option, after a line on the error stream."""
    out, err = folder / "out", folder / "err"
    with LocalStation() as host:
        scratch = f"{host.scratch}/launch"
        command = launch(
            Command(("sh", "-c", f"echo warning >&2; cat '{log}'")),
            ranks=1,
            mpi=mpi,
            placement=Placement(),
            transport="auto",
            scratch=scratch,
        )
        at = command.argv.index(mpi.mpirun) + 1
        argv = (*command.argv[:at], *option.split(), *command.argv[at:])
        done = host.run(
            replace(command, argv=argv),
            stdout=str(out),
            stderr=str(err),
            timeout_s=60,
            scratch=scratch,
        )
    assert done.exit_code == 0, err.read_text()
    return err.read_text() + out.read_text()


@pytest.mark.parametrize("mpi", each_mpi())
def test_an_output_behind_the_launchers_own_tags_reads_the_same(mpi: Mpi, tmp_path: Path) -> None:
    for option in OPTIONS.get((mpi.family, mpi.version[0]), HYDRA):
        for log in LOGS:
            text, good = tagged(option, log, mpi, tmp_path), log.read_text()
            read = BENCHMARKS[log.parent.name].read
            assert read is not None
            assert not set(good.split("\n")) & set(text.split("\n")) - {""}
            assert read(text) == read(good), (option, log.parent.name)


@pytest.mark.parametrize(
    "text",
    [
        "a table\n0: 1.5\n\nof\n\nfew\n1: 2.5\n",
        "0: the first\nand\nmuch\nmore\nfollows\n0: the last\n",
        "MPI [0] startup\n[0] MPI startup(): Intel MPI\n# of\nother\nlines\n[0] MPI more\n",
        "at 12:10: nothing\n",
        "0: of\n1: hundred\n" + "lines\n" * 98,
        "",
    ],
)
def test_lines_that_only_look_alike_are_left(text: str) -> None:
    assert untagged(text) == text
