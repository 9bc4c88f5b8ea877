"""Logs of batch jobs that really ran: no launch is lost, and none counts for another case.

The lines between the outputs are those that bash, Slurm, Open MPI and Hydra printed.
"""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

import studies
from log_folders import osu, read, why_unread, write

MPIRUN = "mpirun -np 2 --mca btl self,{arm} osu_latency\n"
HEADING = "\n# OSU MPI Latency Test v7.4\n# Datatype: MPI_CHAR.\n# Size       Avg Latency(us)\n"


def counts(tmp_path: Path, *pieces: str) -> tuple[dict[str, int], list[str]]:
    """Return how many launches each kind has in both of two logs, and why others were not read.

    The logs are made of `pieces`: "{arm}" is that of the log, each "OUTPUT\n" the next output.
    """
    for arm in ("sm", "tcp"):
        text = "".join(pieces).replace("{arm}", arm)
        for number in range(text.count("OUTPUT\n")):
            text = text.replace("OUTPUT\n", osu(1 + number / 50), 1)
        write(tmp_path, {f"{arm}.log": text})
    logs = read(tmp_path / "sm.log", tmp_path / "tcp.log")
    assert not logs.unmatched
    assert all(kind.counts["sm"] == kind.counts["tcp"] for kind in logs.kinds)
    found = {kind.label: kind.counts["sm"] for kind in logs.kinds}
    return found, [why_unread(one) for one in logs.unread if one.arm == "sm"]


def test_what_a_shell_traces_of_loops_and_conditions_names_no_case(tmp_path: Path) -> None:
    first = "+ for bench in pt2pt/osu_latency pt2pt/osu_bw\n++ seq 1 3\n"
    rounds = [
        f"+ for i in $(seq 1 3)\n+ [[ 2 -gt 1 ]]\n+ B=close\n+ '[' {number} -eq 1 ']'\n"
        f"+ {MPIRUN}OUTPUT\n+ (( n++ ))\n"
        for number in (1, 2, 3)
    ]
    assert counts(tmp_path, first, *rounds) == ({"osu_latency": 3}, [])


@pytest.mark.parametrize(
    "label",
    [
        "SLURM_ARRAY_TASK_ID={n}",
        "PBS_ARRAY_INDEX={n}",
        "Array task ID: {n}",
        "=== osu_latency #{n} ===",
        "run number {n}",
        "Mon Nov 30 10:53:0{n} UTC 2026 | latency | rep {n}",
    ],
)
def test_a_line_that_counts_launches_names_no_case(tmp_path: Path, label: str) -> None:
    several = (f"{label.format(n=n)}\nOUTPUT\n" for n in (1, 2, 3))
    assert list(counts(tmp_path, *several)[0].values()) == [3]
    (kind,) = read(tmp_path / "sm.log", tmp_path / "tcp.log").kinds
    assert len({log.counted for log in kind.logs}) == 3
    for arm in ("a", "b"):  # of a job array each has a file
        texts = {f"osu-{n}.out": f"{label.format(n=n)}\n{osu(1 + n / 50)}" for n in (1, 2, 3)}
        write(tmp_path / arm, texts)
    assert [kind.counts["a"] for kind in read(tmp_path / "a", tmp_path / "b").kinds] == [3]


def test_a_label_behind_a_count_replaces_the_one_before(tmp_path: Path) -> None:
    several = (f"run {n}: {size} threads\nOUTPUT\n" for n, size in enumerate((2, 4, 2, 4)))
    assert counts(tmp_path, *several)[0] == {
        "osu_latency (2)": 2,
        "osu_latency (4)": 2,
    }


def test_a_progress_bar_names_no_case(tmp_path: Path) -> None:
    first = "Benchmark: latency\nOUTPUT\nProgress: 50%\rProgress: 100%\n"
    last = "Benchmark: latency\nOUTPUT\n"
    assert counts(tmp_path, first, first, last)[0] == {"osu_latency": 3}


def test_a_numbered_device_is_a_case(tmp_path: Path) -> None:
    assert counts(tmp_path, *(f"GPU #{n}\nOUTPUT\n" for n in (1, 2)))[0] == {
        "osu_latency (#1)": 1,
        "osu_latency (#2)": 1,
    }


def test_a_warm_up_is_not_of_the_launches_that_are_counted_below_it(tmp_path: Path) -> None:
    several = (f"measurement {n}\nOUTPUT\n" for n in (1, 2, 3))
    found = counts(tmp_path, "warm-up\nOUTPUT\n", *several)[0]
    assert found == {"osu_latency": 3, "osu_latency (warm-up)": 1}
    both = (
        f"=== {fs} ===\n=== warm-up ===\nOUTPUT\n=== run 1 ===\nOUTPUT\n=== run 2 ===\nOUTPUT\n"
        for fs in ("lustre", "nfs")
    )
    assert counts(tmp_path, *both)[0] == {
        "osu_latency (lustre warm-up)": 1,
        "osu_latency (lustre)": 2,
        "osu_latency (nfs warm-up)": 1,
        "osu_latency (nfs)": 2,
    }


def test_a_job_that_was_requeued_goes_on_in_its_log(tmp_path: Path) -> None:
    killed = (
        "slurmstepd-node1: error: *** JOB 3 ON node1 CANCELLED AT 2026-11-30T10:23:43"
        " DUE TO JOB REQUEUE ***\n"
    )
    begun = [f"warm-up\nOUTPUT\nmeasurement 1\nOUTPUT\nmeasurement 2\n{HEADING}"]
    again = ["warm-up\nOUTPUT\n", *(f"measurement {n}\nOUTPUT\n" for n in (1, 2, 3))]
    start = "Starting on Mon Nov 30 10:2{n}:30 UTC 2026 restart {n}\n"
    found, lost = counts(tmp_path, start.format(n=0), *begun, killed, start.format(n=1), *again)
    assert found == {"osu_latency": 4, "osu_latency (warm-up)": 2}
    (why,) = lost
    assert "the launch failed" in why
    assert "REQUEUE" in why


def test_what_stands_between_two_outputs_is_no_setting_of_the_first(tmp_path: Path) -> None:
    dump = (
        "Address sizes:                           48 bits physical, 48 bits virtual\n"
        "\tlinux-vdso.so.1 (0x00007fdec2ac5000)\n"
        "\tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007fdec2520000)\n"
    )
    several = (f"## {{arm}} iteration {n} ##\n{dump}OUTPUT\n" for n in (1, 2, 3))
    assert counts(tmp_path, *several)[0] == {"osu_latency": 3}


FATAL = (
    "\0*** An error occurred in MPI_Init\n*** on a NULL communicator\n"
    "*** MPI_ERRORS_ARE_FATAL (processes in this communicator will now abort,\n"
    "***    and MPI will try to terminate your MPI job as well)\n"
)
"""As Open MPI 5.0 writes it, with the zero."""


def test_a_zero_in_a_log_takes_no_launch_from_it(tmp_path: Path) -> None:
    several = [f"run {n} attempt 1: {MPIRUN}OUTPUT\nReturn code: 0\n" for n in (1, 2, 3)]
    several[1] = f"run 2 attempt 1: {MPIRUN}{FATAL}Return code: 14\n" + several[1]
    found, lost = counts(tmp_path, *several)
    assert found == {"osu_latency": 3}
    (why,) = lost
    assert "MPI_ERRORS_ARE_FATAL" in why


def test_a_tar_of_logs_is_binary(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "logs.tar", "w") as archive:
        for name in ("a.log", "b.log"):
            text = osu(sizes=20).encode() * 9
            info = tarfile.TarInfo(name)
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text))
    whole = write(tmp_path / "b", {"b.log": osu()})
    assert [why_unread(one) for one in read(tmp_path / "logs.tar", whole).unread] == [
        "is a tar archive (unpack it first: tar -xf)"
    ]


def test_a_log_in_which_nothing_started_says_why(tmp_path: Path) -> None:
    nothing = (
        f"Run 1\n{'-' * 74}\nprterun was unable to launch the specified application as it could"
        f" not\naccess an executable:\n\n   Executable: /opt/ior\n   Node: node1\n{'-' * 74}\n"
    )
    write(tmp_path, {"a.log": nothing, "b.log": nothing})
    refused = studies.paribus(
        "compare", tmp_path / "a.log", tmp_path / "b.log", cwd=tmp_path, code=2
    )
    assert "failed launch: 'prterun was unable to launch" in " ".join(refused.stderr.split())


def test_a_summary_in_rows_of_the_tool_belongs_to_no_launch(tmp_path: Path) -> None:
    rows = "".join(f"{2**n:<10} {10 + n:12.2f}\n" for n in range(8))
    several = [f"--- {{arm}}: repetition {n} ---\nOUTPUT\n" for n in (1, 2, 3)]
    summary = f"Summary (size, mean latency us)\n{rows}"
    assert counts(tmp_path, *several, summary) == ({"osu_latency": 3}, [])
    # Nothing shows where a table of which rows may be missing ends.
    text = f"{HEADING}1                       0.35\n{summary}"
    found, lost = counts(tmp_path, *several[:2], f"--- {{arm}}: repetition 3 ---\n{text}")
    assert found == {"osu_latency": 2}
    assert len(lost) == 1


def test_a_table_that_a_time_limit_cut_is_of_a_failed_launch(tmp_path: Path) -> None:
    cut = (
        f"=== osu_latency #2 ===\n{HEADING}1                       0.35\n"
        "Abort is in progress...hit ctrl-c again to forcibly terminate\n\ntimed out after 2 s\n"
    )
    found, lost = counts(
        tmp_path, "=== osu_latency #1 ===\nOUTPUT\n", cut, "=== osu_latency #3 ===\nOUTPUT\n"
    )
    assert found == {"osu_latency": 2}
    (why,) = lost
    assert "the launch failed: 'Abort is in progress" in why


_LINES = """\
#----------------------------------------------------------------
#    Intel(R) MPI Benchmarks 2021.11, MPI-1 part
#----------------------------------------------------------------
# Date                  : Mon Nov 30 10:31:01 2026
# Machine               : x86_64
# MPI Version           : 4.1

# Calling sequence was:

# IMB-MPI1 PingPong -msglog 3:4 -iter 100

# List of Benchmarks to run:

# PingPong

#{rule}------------------------------------------
# Benchmarking PingPong
# #processes = 2
#---------------------------------------------------
       #bytes #repetitions      t[usec]   Mbytes/sec
            0          100         2.13         0.00
            8          100         2.27         3.52
           16          100         0.15       105.94


# All processes entering MPI_Finalize

"""
IMB = "".join(f"[0] {line}\n" for line in _LINES.replace("{rule}", "[0] -" * 9).split("\n"))
"""As `mpirun -l` of Intel MPI prints it: IMB writes its rule one dash at a time."""


def test_a_line_in_pieces_has_the_tag_of_hydra_before_each(tmp_path: Path) -> None:
    later = IMB.replace("10:31:01", "10:31:09")
    write(tmp_path, {"a.log": f"run 1\n{IMB}run 2\n{later}", "b.log": IMB})
    logs = read(tmp_path / "a.log", tmp_path / "b.log")
    assert not logs.unread
    assert [(kind.label, kind.counts) for kind in logs.kinds] == [
        ("imb_pingpong", {"a": 2, "b": 1})
    ]
