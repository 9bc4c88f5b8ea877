"""LAMMPS and GROMACS: forms that others' logs showed, and what is refused in them."""

from __future__ import annotations

import re

import pytest

from outputs import read, reading, text_of
from paribus.core import ParseError, Reading
from paribus.readers.settings import printed


def figures(reading: Reading) -> dict[str, float]:
    return {sample.metric: sample.values[0] for sample in reading.samples}


# Lines of logs that GROMACS 2023.3 wrote on LUMI (GitHub: Lumi-supercomputer/gromacs-on-lumi-
# workshop, exercises 1.1 and 3.1) and another on 40 ranks with GPUs: the rest shows the reader
# nothing.
MDRUN = """
                      :-) GROMACS - gmx mdrun, 2023.3 (-:
   dt                             = {dt}
   nsteps                         = {steps}
There are: {atoms} Atoms
Started mdrun on rank 0 Fri Jan 19 08:36:44 2024
{between}
\tStatistics over {done} steps using 3 frames
{ranks}

               Core t (s)   Wall t (s)        (%)
       Time:{time}
                 (ns/day)    (hour/ns)
Performance:{speed}
Finished mdrun on rank 0 Fri Jan 19 08:38:02 2024
"""
ONE = {
    "dt": "0.0025",
    "steps": "-1",
    "atoms": "109992",
    "between": "\nstep 201: resetting all time and cycle counters\n"
    "Step 400: Run time exceeded 0.017 hours, will terminate the run within 100 steps",
    "done": "501",
    "ranks": "On 1 MPI rank",
    "time": "       46.022       46.022      100.0",
    "speed": "        1.408       17.045",
}
TWO = ONE | {
    "between": "step 16501: resetting all time and cycle counters\n"
    "Step 33100: Run time exceeded 0.017 hours, will terminate the run within 100 steps",
    "done": "33201",
    "ranks": "On 1 MPI rank doing PP, using 7 OpenMP threads, and\n"
    "on 1 MPI rank doing PME, using 7 OpenMP threads",
    "time": "      436.930       31.221     1399.5",
    "speed": "      115.538        0.208",
}
FORTY = TWO | {
    "dt": "0.002",
    "steps": "50000",
    "atoms": "95561",
    "between": "",
    "done": "50001",
    "ranks": "On 30 MPI ranks doing PP, each using 5 OpenMP threads, and\n"
    "on 10 MPI ranks doing PME, each using 5 OpenMP threads",
    "time": "     7636.529       38.314    19931.6",
    "speed": "      225.512        0.106",
}


@pytest.mark.parametrize(
    ("lines", "ranks", "threads", "steps", "expected"),
    [
        (ONE, 1, 1, -1, {"ns_per_day": 1.408}),
        (TWO, 2, 7, -1, {"ns_per_day": 115.538}),
        (FORTY, 40, 5, 50000, {"ns_per_day": 225.512, "wall": 38.314}),
    ],
)
def test_ranks_of_pme_and_inputs_without_an_end(
    lines: dict[str, str], ranks: int, threads: int, steps: int, expected: dict[str, float]
) -> None:
    found = read("gromacs", MDRUN.format(**lines))
    assert (found.ranks, found.parameters["threads"]) == (ranks, threads)
    assert found.parameters["steps"] == steps
    assert figures(found) == expected


def test_double_precision_is_part_of_the_version() -> None:
    """As gmx_d of Debian 12 writes it."""
    text = MDRUN.format(**FORTY).replace(
        "2023.3 (-:", "2022.5-Debian_2022.5_2 (double precision) (-:"
    )
    assert read("gromacs", text).version == "2022.5-Debian_2022.5_2 (double precision)"


@pytest.mark.parametrize(
    ("lines", "change", "said"),
    [
        (TWO, {"ranks": TWO["ranks"].partition("\n")[0]}, "one is missing or damaged"),
        (TWO, {"ranks": TWO["ranks"].partition("\n")[2]}, "title or 'On N MPI ranks'"),
        (TWO, {"ranks": TWO["ranks"].replace(", and", "")}, "title or 'On N MPI ranks'"),
        (ONE, {"between": "step 201: resetting all time and cycle counters"}, "-maxh ended them"),
        (ONE, {"done": "x"}, "-maxh ended them"),
        (ONE, {"done": "900"}, "are 300 steps of 0.0025 ps, not 699"),
        (FORTY, {"steps": "0", "done": "1"}, "0 steps were to be made"),
        (FORTY, {"dt": "x"}, "dt is there 0 times"),
        (FORTY, {"dt": "0.004"}, "are 25001 steps of 0.004 ps, not 50001"),
        (FORTY, {"done": "401"}, "50000 steps were to be made, 401 were$"),
        (FORTY, {"done": "401", "between": ONE["between"]}, "401 were: its time, -maxh, ran out"),
        (FORTY, {"between": "\nRestarting from checkpoint, appending to previous log file."},
         "was continued from a checkpoint"),
    ],
)  # fmt: skip
def test_steps_that_were_not_made_are_refused(
    lines: dict[str, str], change: dict[str, str], said: str
) -> None:
    with pytest.raises(ParseError, match=said):
        read("gromacs", MDRUN.format(**(lines | change)))


# What GROMACS 2025.3 printed on TRUBA, and in its log where PME was tuned (GitHub: bogrum/truba-
# gromacs-benchmark).
REFUSED = """-------------------------------------------------------
Program:     gmx mdrun, version 2025.3
Source file: src/gromacs/taskassignment/decidegpuusage.cpp (line 244)
Function:    bool gmx::decideWhetherToUseGpusForPmeWithThreadMpi(bool, TaskTarget)

"""
TUNED = """
NOTE: The number of threads is not equal to the number of (logical) cpus
      and the -pin option is set to auto: will not pin threads to cpus.

       P P   -   P M E   L O A D   B A L A N C I N G

 PP/PME load balancing changed the cut-off and PME settings:
           particle-particle                    PME
            rcoulomb  rlist            grid      spacing   1/beta
   initial  1.000 nm  1.001 nm      64  64  64   0.152 nm  0.320 nm
   final    1.011 nm  1.012 nm      60  60  60   0.162 nm  0.324 nm
 cost-ratio           1.03             0.82
 (note that these numbers concern only part of the total PP and PME load)

   rcoulomb                       = 1
"""


def test_what_tuning_of_pme_found_is_no_setting() -> None:
    """It is another one from launch to launch, and parted launches of one input."""
    said = printed("gromacs", TUNED)
    assert (said.keys, said.facts) == ({"rcoulomb": "1"}, {})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\nStarted Steepest Descents on rank 0 Sat May  9 02:11:11 2020\n", "makes no steps in"),
        ("\nstarting mdrun 'Protein in water'\n50000 steps,    100.0 ps.\n", "on the terminal"),
        ("\n           Step           Time\n          17000       34.00000\n", "come to its end"),
        (
            f"\n{REFUSED}Feature not implemented:\nPME tasks were\nto run\n",
            "says: 'PME tasks were'",
        ),
        (f"\n{REFUSED}Fatal error:\nThere is no domain\n", "says: 'There is no domain'"),
    ],
)
def test_what_has_no_account_of_time_is_called_by_its_name(text: str, said: str) -> None:
    with pytest.raises(ParseError, match=said):
        read("gromacs", f"      :-) GROMACS - gmx mdrun, 2020.1 (-:\n{text}")


def test_a_rerun_is_no_simulation() -> None:
    """It has no statistics, and its frames are not the steps of the input."""
    lines = FORTY | {"time": "        0.268        0.134      199.9"}
    text = MDRUN.format(**(lines | {"speed": "        1.289       18.613"}))
    without = re.sub(r"\n\tStatistics.*", "", text)
    with pytest.raises(ParseError, match=r"are 1 steps of 0\.002 ps, not 50001: is it a rerun"):
        read("gromacs", without)


def test_slow_runs_have_more_digits_than_are_printed() -> None:
    eff = figures(reading("lammps/good-real-eff_slow"))
    assert eff["rate"] == pytest.approx(100 / 321.392)
    assert eff["ns_per_day"] == pytest.approx(24 / 36907727.05)
    reaxff = figures(reading("lammps/good-real-reaxff_2ranks"))
    assert reaxff["ns_per_day"] == pytest.approx(24 / 262.173)
    femto = text_of("lammps/good-real-reaxff_2ranks").replace("ns/day", "fs/day")
    found = figures(read("lammps", femto.replace("hours/ns", "hours/fs")))
    assert found["ns_per_day"] == pytest.approx(24e-6 / 262.173)


@pytest.mark.parametrize(
    ("name", "energy"),
    [("run_0_first", -4.6246624), ("lines_multi", -4.6247), ("lines_yaml", -4.62466240347456)],
)
def test_what_the_last_step_says_in_tables_of_each_kind(name: str, energy: float) -> None:
    text = text_of(f"lammps/good-lj_{name}")
    found = read("lammps", text)
    assert found.facts["work.lammps.TotEng"] == energy
    assert found.parameters["steps"] == 200
    assert read("lammps", text.replace("', '", ", ")).facts.keys() == found.facts.keys()
    at = text.rindex(f"{energy:g}"[:5])
    broken = f"{text[:at]}nan{re.sub(r'^[-.0-9]+', '', text[at:])}"
    with pytest.raises(ParseError, match="TotEng of the last step is nan"):
        read("lammps", broken)


def test_a_table_without_steps_has_a_last_row_too() -> None:
    text = text_of("lammps/good-lj_run_0_first")
    without = re.sub(r"^   Step    ", "", text, flags=re.M)
    without = re.sub(r"^ +(?:0|200) {3}", "   ", without, flags=re.M)
    assert read("lammps", without).facts == read("lammps", text).facts


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("\n% CPU use", "\n", "'% CPU use' is missing"),
        ("1 procs for 0 steps", "2 procs for 0 steps", "2 procs are not 1 tasks x 1 threads"),
        (
            "for 0 steps with 864 atoms\n",
            "for 0 steps with 864 atoms\nPerformance: 1.0 x\n",
            "'Per",
        ),
        ("for 200 steps", "for 0 steps", "a run of 0 steps has a line 'Performance:'"),
        ("Performance:", "Performanc:", "a rerun has none"),
    ],
)
def test_a_run_of_no_steps_is_left_out_if_it_is_whole(old: str, new: str, said: str) -> None:
    text = text_of("lammps/good-lj_run_0_first")
    if old.startswith("\n%"):
        text = re.sub(r"\n[\d.]+(?=% CPU use)", "\n", text, count=1)
        old = new = "\n% CPU use"
    assert old in text
    with pytest.raises(ParseError, match=said):
        read("lammps", text.replace(old, new, 1))


def test_a_run_of_no_steps_without_its_end_is_one_with_post_no() -> None:
    text = text_of("lammps/good-lj_run_0_first")
    begin = text.index("\n", text.index("for 0 steps"))
    short = text[:begin] + "\n\n" + text[text.index("Generated", begin) :]
    assert read("lammps", short).samples == read("lammps", text).samples


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("LAMMPS (29 Sep 2021)\nRunning on 2 partitions of processors\n", "log of each partition"),
        ("LAMMPS (29 Sep 2021)\nTotal wall time: 0:00:00\n", "no run has ended"),
    ],
)
def test_a_log_without_runs_is_refused(text: str, said: str) -> None:
    with pytest.raises(ParseError, match=said):
        read("lammps", text)


def test_what_times_nothing_is_called_so() -> None:
    text = text_of("lammps/good-lj_run_0_first")
    begin = text.index("Performance:")
    rest = text[begin : text.index("\n", begin) + 1]
    empty = text.replace(rest, "").replace("for 200 steps", "for 0 steps")
    with pytest.raises(ParseError, match="nothing in it is timed"):
        read("lammps", empty)


@pytest.mark.parametrize(
    "line",
    [
        "WARNING: Lost atoms: original 864 current 863 (src/thermo.cpp:495)",
        "WARNING: Wall time limit reached (src/src/timer.cpp:201)",
        "Fix halt condition for fix-id h met on step 130 with value 130",
    ],
)
def test_a_run_that_did_less_than_was_asked_for_is_reported(line: str) -> None:
    text = text_of("lammps/good-lj_run_0_first").replace("Loop time", f"{line}\nLoop time")
    (said,) = [one for one in read("lammps", text).guards if "did less" in one]
    assert line in said
