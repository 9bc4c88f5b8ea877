"""Applications and GPU tools: what the contract test does not cover."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from outputs import FIXTURES, read, reading, refusal, text_of
from paribus.benchmarks import BENCHMARKS
from paribus.core import Benchmark, ParseError, Request, UserError
from paribus.readers import nvidia_topo
from paribus.readers.figures import counts, figures
from paribus.readers.text import columns, first

NAMES = (
    *("nccl_tests", "nvbandwidth", "p2p_bandwidth", "lammps", "qe", "vasp", "gromacs"),
    "pytorch_ddp",
)


def request_of(benchmark: Benchmark, ranks: int = 2, **own: Any) -> Request:
    return Request({k: p.default for k, p in benchmark.parameters.items()} | own, ranks)


# --- work held equal, contamination --------------------------------------------------------------


def test_lammps_does_the_same_work_whatever_the_build_and_the_ranks() -> None:
    """Temp, E_pair and TotEng at step 100 of bench/in.lj as in LAMMPS' own reference logs."""
    for name in ("lj_1rank", "lj_2ranks"):
        facts = reading(f"lammps/good-{name}").facts
        assert facts["work.lammps.Temp"] == 0.7574531
        assert facts["work.lammps.E_pair"] == -5.7585055
        assert facts["work.lammps.TotEng"] == -4.6223613


def test_a_starved_launch_says_so() -> None:
    assert reading("lammps/good-lj_2ranks").guards == ()
    (said,) = reading("lammps/good-lj_wheel_starved").guards
    assert "49.0 % of the CPU" in said
    assert reading("qe/good-al32_2ranks").guards == ()
    (said,) = reading("qe/good-al32_2ranks_starved").guards
    assert "used the CPU for 2.98 s of 8.45 s" in said


def test_several_runs_of_one_input_are_several_cases() -> None:
    found = reading("lammps/two_runs")
    loops = {str(s.case): s.values for s in found.samples if s.metric == "loop"}
    assert loops == {"run=1": (1.32194,), "run=2": (0.505995,)}
    assert found.parameters["steps"] == "100/50"
    text = text_of("lammps/two_runs")
    with pytest.raises(ParseError, match="runs begun: 2, ended: 1"):
        read("lammps", text.replace("Loop time of 0.5", "Lop time of 0.5"))


def test_nan_in_the_thermo_output_is_no_measurement() -> None:
    refusal("lammps/good-lj_2ranks", "-4.6223613", "nan", "TotEng of the last step is nan")


def test_quantum_espresso_is_compared_per_iteration() -> None:
    one, two = (reading(f"qe/good-{n}") for n in ("al32_1rank", "au_slab_2ranks"))
    for found, count, electrons in ((one, 7, 2.53), (two, 18, 24.33)):
        assert found.facts["work.qe.iterations"] == count
        (value,) = next(s.values for s in found.samples if s.metric == "iteration")
        assert value == pytest.approx(electrons / count)
    assert one.facts["work.qe.energy_ry"] == -133.77851708


@pytest.mark.parametrize(
    ("printed", "seconds"),
    [
        ("  1m 2.34s CPU   1m 4.56s WALL", 64.56),
        ("  1h 2m CPU      1h 5m WALL", 3900.0),
        ("  1d 2h 3m CPU   1d 3h 4m WALL", 97440.0),
        ("  59m59.99s CPU  10h59m WALL", 39540.0),
        ("  0m48.01s CPU     1m 0.03s WALL", 60.03),
        ("  0h59m CPU        1h 0m WALL", 3600.0),
    ],
)
def test_quantum_espresso_clocks(printed: str, seconds: float) -> None:
    """The formats of print_this_clock in UtilXlib/clocks_handler.f90."""
    text = text_of("qe/good-al32_2ranks")
    line = next(line for line in text.splitlines() if line.startswith("     PWSCF  "))
    found = read("qe", text.replace(line, f"     PWSCF        :  {printed}"))
    assert next(s.values for s in found.samples if s.metric == "wall") == (seconds,)
    for wrong in ("  0h 2m", "  0m 2.30s", "  1h", "  2.3s", " -1.28s", "  1m", ""):
        with pytest.raises(ParseError):
            read("qe", text.replace(line, f"     PWSCF        :  1.05s CPU {wrong} WALL"))


def test_quantum_espresso_says_what_its_iterations_leave_out() -> None:
    found = reading("qe/good-real-6_3_hybrid")
    assert {s.metric: s.values for s in found.samples} == {"iteration": (0.039,), "wall": (21.71,)}
    assert "aceinit" in found.guards[-1]


def test_other_programs_of_quantum_espresso_may_follow_in_a_log() -> None:
    text = text_of("qe/good-real-6_1_revision")
    phonons = (
        "\n     Program PHONON v.6.1 starts on 12Jul2017\n     PHONON  :  9.99s CPU\n   JOB DONE.\n"
    )
    assert read("qe", text + phonons) == read("qe", text)
    for between in ("", "   JOB DONE.\n", "     Program PWSCF v.6.1 starts on 12Jul2017\n"):
        with pytest.raises(ParseError, match="there twice"):
            read("qe", text + between + phonons.replace("PHONON v", "PHONON "))


def test_vasp_counts_electronic_iterations() -> None:
    found = reading("vasp/good-handmade_relaxation")
    assert found.facts["work.vasp.iterations"] == 8
    assert found.facts["work.vasp.ionic_steps"] == 3
    values = {s.metric: s.values for s in found.samples}
    assert len(values["ionic_step"]) == 3
    assert values["iteration"][0] == pytest.approx(sum(values["ionic_step"]) / 8)
    assert (found.ranks, found.parameters["threads"]) == (16, 2)


def test_dllogger_may_say_how_many_ranks_there_are() -> None:
    text = text_of("pytorch_ddp/good-handmade_dllogger")
    assert read("pytorch_ddp", text).ranks is None
    more = text.replace("batch_size :", "world_size : 16  batch_size :")
    assert read("pytorch_ddp", more).ranks == 16


def test_a_simulation_that_was_killed_is_refused_whatever_it_printed() -> None:
    for name in ("killed_after_160_steps", "timeout_2ranks"):
        with pytest.raises(ParseError, match="ended by a signal"):
            reading(f"gromacs/fail-{name}")


def test_lines_of_many_kinds_are_found_in_one_pass() -> None:
    pattern = re.compile(r"\n(?:steps (?P<steps>\d+)|(?P<left>\w+): (?P<right>\w+))$", re.M)
    text = "a: b\nsteps 1\n steps 2\nsteps 3 \nc: d\nsteps 4"
    assert columns(text, pattern) == {"steps": ["1", "4"], "left": ["a", "c"], "right": ["b", "d"]}
    assert columns("", pattern) == {"steps": [], "left": [], "right": []}
    assert first(text, "steps", re.compile(r"\w+ (\d)$", re.M), 10)[1] == "4"
    assert first(text, "steps", re.compile("x")) is None


def test_whole_columns_are_numbers_or_refused() -> None:
    assert counts(["1", "20"]) == [1, 20]
    assert figures(["1.5", "20.0"]) == [1.5, 20.0]
    assert counts([]) == figures([]) == []
    for words in (["1", "\u0664"], ["1", "-1"]):
        with pytest.raises(ParseError, match="expected a whole number"):
            counts(words)
    for words in (["1.0", "\u0664.0"], ["1.0", "0.0"], ["1.0", "9" * 400 + ".0"]):
        with pytest.raises(ParseError, match="expected a figure above zero"):
            figures(words)


@pytest.mark.parametrize(
    ("output", "old", "new", "said"),
    [
        ("gromacs/good-spc_2ranks", "Constraining", "Performance: 1.0 2.0 Con", "damaged or there"),
        ("gromacs/good-spc_2ranks", "Constraining", "x Finished mdrun", "there twice"),
        ("qe/good-al32_2ranks", "     init_run", "x JOB DONE. init_run", "there twice"),
        ("qe/good-al32_2ranks", "     init_run", "x convergence NOT achieved", "did not converge"),
        ("vasp/good-handmade_relaxation", "POTLOK", "x -- Iteration ", "headings of iterations"),
        ("vasp/good-handmade_relaxation", "2(   1)", "2(   2)", r"iteration 5 is called 2\(2\)"),
        ("vasp/good-handmade_relaxation", "2(   1)", "1(   1)", r"1\(1\) again: responses"),
        ("vasp/good-real-5_3_3_two_decimals", "time    1.67", "time    1.6712", "two decimals"),
        ("qe/good-real-6_1_final_scf", f"states={9:13}", f"states={8:13}", "of bands chan"),
        ("lammps/good-lj_2ranks", "Neigh ", "x Loop time of ", "runs begun: 1, ended: 2"),
        (
            *("pynamic/good-exe_np2", "Pynamic: mpi test"),
            *("Pynamic: x\nPynamic: mpi test", "'Pynamic: x' is not what"),
        ),
        ("pytorch_ddp/good-handmade_dllogger", "Iteration: 50", "Iteration: 55", "is missing"),
    ],
)
def test_a_second_or_a_strange_line_is_not_passed_over(
    output: str, old: str, new: str, said: str
) -> None:
    refusal(output, old, new, said, times=1)


def test_epochs_of_one_line_each_say_no_speed() -> None:
    text = text_of("pytorch_ddp/good-handmade_dllogger")
    kept = [line for line in text.splitlines() if not re.search(r"Iteration: [1-9]\d+", line)]
    again = next(line for line in kept if "Iteration: 0 " in line)
    kept.insert(kept.index(again) + 1, again.replace("Epoch: 0", "Epoch: 1"))
    with pytest.raises(ParseError, match="one line per epoch"):
        read("pytorch_ddp", "\n".join(kept))


# --- GPU tools -----------------------------------------------------------------------------------


def test_bus_bandwidth_is_that_of_the_collective() -> None:
    """all_reduce moves 2 (n - 1) / n of its size per rank: doc/PERFORMANCE.md of nccl-tests."""
    for name, size, factor in (
        ("2_10_unchecked", 1 << 33, 7 / 4),
        ("2_18_all_gather_gb10", 1 << 32, 1 / 2),
    ):
        found = reading(f"nccl_tests/good-real-{name}")
        figures = {(s.metric, s.case.get("bytes")): s.values[0] for s in found.samples}
        speed = size / figures["time", size] / 1e3
        assert figures["bus_bandwidth", size] == pytest.approx(speed * factor)
    unnamed = reading("nccl_tests/good-real-2_10_unchecked")
    assert unnamed.parameters["collective"] == "all_reduce"  # of no other the factor is above 1
    assert unnamed.ranks == 8
    assert "not checked" in unnamed.guards[0]


def test_text_and_json_of_nvbandwidth_agree() -> None:
    text = reading("nvbandwidth/good-handmade_pairs").samples
    table = reading("nvbandwidth/good-handmade_json").samples
    assert [s.case for s in text] == [s.case for s in table]
    assert len(text) == 30
    for one, other in zip(text, table, strict=True):
        assert one.values[0] == pytest.approx(other.values[0], abs=0.006)


def test_pairs_without_peer_access_are_named() -> None:
    found = reading("p2p_bandwidth/good-real-rtx4090_no_access")
    assert found.facts["gpu.pairs_without_peer_access"] == ["0-1", "1-0"]
    assert "no peer access" in found.guards[0]
    assert not any(s.case.get("source") == s.case.get("target") for s in found.samples)


def test_the_topologies_of_pcie_differ_in_their_facts() -> None:
    """Balance, Common and Cascade: two GPUs per socket, all under one host bridge, one switch."""
    links = {
        name: nvidia_topo.read((FIXTURES / "nvidia_topo" / f"handmade_{name}.out").read_text())
        for name in ("balance", "common", "cascade", "nvlink")
    }
    pairs = {name: facts["gpu.topology.GPU1.GPU2"] for name, facts in links.items()}
    assert pairs == {"balance": "SYS", "common": "PXB", "cascade": "PIX", "nvlink": "NV18"}
    assert {facts["gpu.topology.gpus"] for facts in links.values()} == {4}
    assert links["cascade"]["gpu.topology.GPU0.mlx5_0"] == "PXB"


@pytest.mark.parametrize("name", ["balance", "common", "cascade", "nvlink"])
def test_a_damaged_topology_is_refused(name: str) -> None:
    text = (FIXTURES / "nvidia_topo" / f"handmade_{name}.out").read_text()
    lines = text.splitlines()
    right = nvidia_topo.read(text)
    matrix = range(1, next(i for i, line in enumerate(lines) if not line))
    assert nvidia_topo.recognise(text)
    assert nvidia_topo.read("banner\n" + text.replace("\n", "\r\n") + "bye\n") == right
    for i in (0, *matrix):
        for kept in ([], [lines[i][: len(lines[i]) // 3]], [lines[i], lines[i]], ["x", lines[i]]):
            damaged = "\n".join([*lines[:i], *kept, *lines[i + 1 :]])
            # Before the heading and after the last row stands what is no matrix.
            if (i == 0 and kept[:1] == ["x"]) or (i == matrix[-1] and kept == [lines[i]] * 2):
                assert nvidia_topo.read(damaged) == right
                continue
            with pytest.raises(ParseError):
                nvidia_topo.read(damaged)
    with pytest.raises(ParseError, match="2 times"):
        nvidia_topo.read(text + text)


def test_a_link_must_be_the_same_from_both_ends() -> None:
    text = text_of("nvidia_topo/handmade_common")
    first = text.splitlines()[1]
    with pytest.raises(ParseError, match="GPU0 and GPU1 have two links in the table"):
        nvidia_topo.read(text.replace(first, first.replace("PXB", "PIX", 1)))


# --- every reader --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_long_output_reads_like_a_short_one(name: str) -> None:
    """Ordinary lines of a long launch, many times over; ./dev bench has the speed."""
    (good, *_) = sorted((FIXTURES / name).glob("good-*.out"))
    text = good.read_text()
    padding = "".join(f"  ordinary line {i} of no interest, 0.5 0.25\n" for i in range(120_000))
    half = padding.index("\n", len(padding) // 2) + 1
    long = padding[:half] + text + padding[half:]
    assert read(name, long).samples == read(name, text).samples


# --- inputs of our own ---------------------------------------------------------------------------


def test_inputs_have_the_size_that_is_asked_for() -> None:
    lammps, qe = BENCHMARKS["lammps"], BENCHMARKS["qe"]
    argv = lammps.command(request_of(lammps, atoms=64_000, steps=7)).argv
    assert [pair for pair in pairwise(argv) if pair[0] in ("cells", "steps")] == [
        ("cells", "2"),
        ("steps", "7"),
    ]
    text = qe.command(request_of(qe, atoms=108)).files["pw.in"]
    assert sum(line.startswith("Al 0.") for line in text.splitlines()) == 108
    assert len(set(text.splitlines())) > 108
    assert "celldm(1) = 22.9500" in text
    assert "{" not in text.replace("{scratch}", "")
    for benchmark, atoms in ((lammps, 33_000), (qe, 33)):
        with pytest.raises(UserError, match=r"4 atoms|32000 atoms"):
            benchmark.command(request_of(benchmark, atoms=atoms))


def test_vasp_brings_its_inputs_along(tmp_path: Path) -> None:
    vasp = BENCHMARKS["vasp"]
    with pytest.raises(UserError, match="cannot be read"):
        vasp.command(request_of(vasp, input=str(tmp_path)))
    for name in ("INCAR", "KPOINTS", "POSCAR", "POTCAR"):
        (tmp_path / name).write_text(name.lower())
    program = vasp.command(request_of(vasp, input=str(tmp_path)))
    assert program.files["POTCAR"] == "potcar"
    assert program.outputs == ("OUTCAR",)
