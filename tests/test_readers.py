"""Readers: what one says depends on the text alone, not on what else has been imported."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpis import each_mpi
from outputs import FIXTURES, read
from paribus.benchmarks import BENCHMARKS, get
from paribus.core import Command, Mpi, ParseError, Placement
from paribus.launch.launchers import launch
from paribus.launch.local import LocalStation
from paribus.readers.kernel import KERNELS, READER
from paribus.readers.known import HARNESSES, TOOLS, reader_of, readers
from paribus.readers.launches import FAILED, check_launch
from paribus.readers.tags import untagged
from paribus.readers.text import plain
from processes import ran

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
            assert not set(good.split("\n")) & set(text.split("\n")) - {""}
            name = log.parent.name
            assert read(name, text) == read(name, good), (option, name)


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


# Each tool in a process of its own, forked before any other was imported; or all of them in one
# process that has imported them in the order given. Pairs of outputs are read as well: whether two
# outputs are one too many must not depend on who else is there.
CODE = """
import hashlib, json, os, sys
from paribus.benchmarks import get
from paribus.core.errors import ParseError
from paribus.readers.known import HARNESSES, harnesses

order, alone, files = json.load(sys.stdin)
goods = [open(file).read() for file in files]
texts = [*goods, *(one + other for one, other in zip(goods, goods[1:] + goods[:1]))]

def answers(name):
    read = harnesses()[name].read if name in HARNESSES else get(name).read
    said = []
    for text in texts:
        try:
            said.append(repr(read(text)))
        except ParseError as error:
            said.append(f"{error.cause} {error.line}")
    return [hashlib.sha256(one.encode()).hexdigest()[:12] for one in said]

def in_a_child(name):
    there, back = os.pipe()
    if not os.fork():
        os.write(back, json.dumps(answers(name)).encode())
        os._exit(0)
    os.close(back)
    with open(there) as said:
        return json.load(said)

if not alone:
    [name in HARNESSES or get(name) for name in order]
print(json.dumps({name: (in_a_child if alone else answers)(name) for name in order}))
"""


def answers(order: list[str], files: list[Path], *, alone: bool) -> dict[str, list[str]]:
    """Return a digest of what each tool says of each text, in a fresh interpreter."""
    asked = json.dumps([order, alone, list(map(str, files))])
    done = ran([sys.executable, "-c", CODE], input=asked, code=0)
    said: dict[str, list[str]] = json.loads(done.stdout)
    return said


@pytest.mark.slow
def test_what_is_read_does_not_depend_on_what_else_was_imported() -> None:
    """Every good output, and every two of them, by every tool: alone, and beside all others."""
    tools = [*(name for name in BENCHMARKS if get(name).read is not None), *HARNESSES]
    files = sorted(p for name in tools for p in (FIXTURES / name).glob("good-*.out"))
    assert {file.parent.name for file in files} == set(tools)
    alone = answers(tools, files, alone=True)
    beside = answers(tools[::-1], files, alone=False)
    others = {
        name: [
            f"{files[at % len(files)]}" for at, one in enumerate(said) if one != beside[name][at]
        ]
        for name, said in alone.items()
    }
    assert not {name: several for name, several in others.items() if several}


def test_two_outputs_in_one_are_refused_where_only_one_program_is_asked_for() -> None:
    """They were read, 24 samples as if of one output, until osu_bw was imported as well."""
    both = "".join(
        (FIXTURES / name / "good-shm.out").read_text() for name in ("osu_latency", "osu_bw")
    )
    code = (
        "import sys; from paribus.benchmarks import get\n"
        "try: print(len(get('osu_latency').read(sys.stdin.read()).samples))\n"
        "except Exception as error: print(error.cause)"
    )
    done = ran([sys.executable, "-c", code], input=both, code=0)
    assert done.stdout == "2 titles of OSU programs: more than one output\n"


def test_the_list_names_what_each_file_holds() -> None:
    tools = [name for name in BENCHMARKS if get(name).read is not None]
    assert [name for several in TOOLS.values() for name in several] == tools
    assert [name for name in readers() if name != READER.name] == tools
    assert all(BENCHMARKS[name].marks == reader_of(name).marks for name in tools)


def test_kernels_are_measured_in_the_units_in_which_they_are_read() -> None:
    own = {name: one.metrics for name, one in BENCHMARKS.items() if not one.read}
    assert own.pop("command")  # whose figure has the unit that its study gives
    assert own.pop("training")  # which prints what the reader of pytorch_ddp reads
    assert {n: {m.name: m.unit for m in metrics} for n, metrics in own.items()} == {
        name: dict(kernel.units) for name, kernel in KERNELS.items()
    }


def test_a_launcher_is_believed_of_a_kernel_as_of_every_tool() -> None:
    """The kernel had printed its last line; a rank was killed after it."""
    good = next((FIXTURES / "latency").glob("good-*.out")).read_text()
    assert READER.read(good).benchmark == "latency"
    with pytest.raises(ParseError, match="the launch failed: '=   BAD TERMINATION"):
        READER.read(f"{good}=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n")


@pytest.mark.parametrize("digits", [19, 20, 400, 4000])
def test_a_size_that_no_tool_counts_in_is_damage(digits: int) -> None:
    """Beyond 2^63 - 1 nothing is printed by a tool; beyond 308 digits a float cannot hold it."""
    text = f"# OSU MPI Latency Test v7.4\n# Size          Latency (us)\n{'9' * digits}  1.50\n"
    with pytest.raises(ParseError, match=r"digits|Exceeds the limit"):
        get("osu_latency").read(text)


@pytest.mark.parametrize("said", FAILED)
def test_words_of_launchers_are_found_in_the_middle_of_a_line(said: str) -> None:
    with pytest.raises(ParseError, match="the launch failed: ") as refusal:
        check_launch(f"one line\n 4 1.2{said}3 0.1\nanother")
    assert refusal.value.line == 2


@given(st.lists(st.text("ab \r", max_size=6), max_size=6))
def test_of_a_line_that_was_written_over_the_last_form_is_left(lines: list[str]) -> None:
    text = re.sub(r"\r+\n", "\n", "\n".join(lines))
    if "\n" in text:
        left = "\n".join(line.rpartition("\r")[2] for line in text.split("\n"))
        assert plain("\n".join(lines)) == left


def test_a_long_line_is_searched_once() -> None:
    """From each of its places, it takes an hour."""
    text = "done\rdone\n" + "1.0 " * 500_000
    assert plain(text) == "done\n" + "1.0 " * 500_000


@pytest.mark.parametrize(("depths", "said"), [((2, 2), 2), ((2, 16), "2/16"), ((16, 2), "16/2")])
def test_what_each_job_of_fio_prints_is_a_setting_of_the_output(
    depths: tuple[int, int], said: int | str
) -> None:
    good = (FIXTURES / "fio" / "good-randread-text.out").read_text()
    head = good[: good.index("\n") + 1]
    jobs = zip((head, head.replace("rw=randread", "rw=write")), depths, strict=True)
    heads = (job.replace("iodepth=1", f"iodepth={depth}") for job, depth in jobs)
    parameters = reader_of("fio").read_clean("".join(heads) + good[len(head) :]).parameters
    assert parameters["depth"] == said
    assert parameters["mode"] == "randread/write"
    assert parameters["block"] == 4096


@pytest.mark.parametrize("tenths", [*range(90, 1000, 7), *range(95, 1000, 10)])
def test_figures_that_fio_rounds_behind_the_point_alone_are_read(tenths: int) -> None:
    """It prints 17.0 for 17.97, in each of the forms that it prints a rate in."""

    def printed(value: float) -> str:
        whole, part = divmod(value, 1.0)
        return f"{whole:.0f}.{f'{part:.1f}'[2:]}"

    good = (FIXTURES / "fio" / "good-randread-text.out").read_text()
    done = round((tenths + 0.6) * 1e5 * 1.001 / 4096)
    bytes_ = done * 4096
    line = (
        f"  read: IOPS={printed(done / 1001)}k, BW={printed(bytes_ / 1.001 / 2**20)}MiB/s"
        f" ({printed(bytes_ / 1.001 / 1e6)}MB/s)({printed(bytes_ / 2**20)}MiB/1001msec)"
    )
    text = re.sub(r"  read: IOPS=.*", line, good)
    text = re.sub(r"(issued rwts: total=)\d+", rf"\g<1>{done}", text)
    samples = reader_of("fio").read_clean(text).samples
    (bandwidth,) = (one.values[0] for one in samples if one.metric == "bandwidth")
    assert bandwidth == pytest.approx(bytes_ / 1.001 / 1e6, rel=0.02)
    wrong = text.replace(f"({printed(bytes_ / 1.001 / 1e6)}MB/s)", f"({tenths / 8:.1f}MB/s)")
    with pytest.raises(ParseError, match="do not agree"):
        reader_of("fio").read_clean(wrong)


def test_a_latency_of_ucx_counts_where_its_bandwidth_is_too_small_to_be_printed() -> None:
    good = (FIXTURES / "ucx_perftest" / "good-progress.out").read_text()
    slow = "Final:                  2000      7.662  3145.611  2282.239        0.00       0.00"
    text = re.sub(r"Final:.*", f"{slow}         318         438", good)
    (sample,) = (
        one for one in reader_of("ucx_perftest").read_clean(text).samples if one.metric == "latency"
    )
    assert sample.values == (2282.239,)
