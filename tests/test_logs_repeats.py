"""Outputs of one file: launches of one case, or cases; what is printed between them decides."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from itertools import permutations
from pathlib import Path
from statistics import NormalDist
from typing import Any

import pytest
from scipy.stats import kendalltau

from log_folders import osu
from paribus.__main__ import main
from paribus.logs.logs import find_logs
from paribus.logs.reading import read_files
from paribus.logs.repeats import LEVEL, together
from paribus.logs.settings import AS_READ, regarded

TITLE = "\n# OSU MPI Latency Test v7.4\n# Datatype: MPI_CHAR.\n# Size       Avg Latency(us)\n"


def output(latency: float, above: str = "") -> str:
    return f"{above}{TITLE}8{latency:>26.2f}\n16{latency + 0.5:>25.2f}\n"


def judged(
    capsys: pytest.CaptureFixture[str], folder: Path, arms: Sequence[Sequence[str]], *more: str
) -> tuple[int, dict[str, dict[str, Any]], dict[str, Any]]:
    """Return exit code, headlines by their label, and the whole, of two files of outputs."""
    paths = [folder / "one.log", folder / "two.log"]
    for path, outputs in zip(paths, arms, strict=True):
        path.write_text("".join(outputs))
    code = main(["compare", *map(str, paths), "--json", *more])
    said = capsys.readouterr()
    if not said.out:
        return code, {}, {"refused": said.err}
    whole = json.loads(said.out)
    return code, {one["benchmark"]: one for one in whole["headlines"]}, whole


def noisy(count: int, mean: float, seed: int) -> list[float]:
    rng = random.Random(seed)
    return [mean * rng.uniform(0.99, 1.01) for _ in range(count)]


CAPS = pytest.CaptureFixture[str]


def test_what_differs_in_labels_is_part_of_what_was_measured(capsys: CAPS, tmp_path: Path) -> None:
    pairs = ("0,1", "0,2", "0,3")
    arms = [
        [
            output(times * place, f"export HIP_VISIBLE_DEVICES={pair}\n$ mpirun -n 2 osu_latency\n")
            for place, pair in enumerate(pairs, 1)
        ]
        for times in (10.0, 13.0)
    ]
    _, heads, whole = judged(capsys, tmp_path, arms)
    assert list(heads) == [f"osu_latency (HIP_VISIBLE_DEVICES={pair})" for pair in pairs]
    assert all(one["comparison"]["ratio"] == pytest.approx(1.3, abs=0.02) for one in heads.values())
    assert "6 outputs found in 2 files, 6 read." in whole["design"]
    _, heads, whole = judged(capsys, tmp_path, arms, "--repeated")
    assert list(heads) == ["osu_latency"]
    assert whole["design"].startswith("Outputs in one file")


def test_only_the_words_that_differ_within_an_arm_are_its_labels(
    capsys: CAPS, tmp_path: Path
) -> None:
    arms = [
        [output(10.0 * n, f"$ {how} osu_latency -d mlx5_{n}\n") for n in (1, 2)]
        for how in ("mpirun -n 2", "singularity exec image.sif mpirun -n 2")
    ]
    _, heads, _ = judged(capsys, tmp_path, arms)
    assert list(heads) == ["osu_latency (-d mlx5_1)", "osu_latency (-d mlx5_2)"]


@pytest.mark.parametrize("tag", ["{}: ", "[{}] ", "[1,{}]<stdout>:", "[default{}]:"])
def test_outputs_of_several_ranks_are_cases(tag: str, capsys: CAPS, tmp_path: Path) -> None:
    """Each rank of one launch ran the program: eight of these are one launch."""
    arms = [
        [
            "".join(tag.format(rank) + line for line in output(one).splitlines(keepends=True))
            for rank, one in enumerate(noisy(8, mean, 7))
        ]
        for mean in (10.0, 13.0)
    ]
    code, heads, _ = judged(capsys, tmp_path, arms)
    assert list(heads) == [f"osu_latency (rank {rank})" for rank in range(8)]
    assert (code, {one["verdict"]["word"] for one in heads.values()}) == (3, {"withheld"})
    _, heads, _ = judged(capsys, tmp_path, arms, "--repeated")
    assert heads["osu_latency"]["verdict"]["word"] == "slower"


AROUND: dict[str, Callable[[str], str]] = {
    "colours": lambda text: "".join(f"\x1b[1m{one}\x1b[0m" for one in text.splitlines(True)),
    "returns": lambda text: text.replace("\n", "\r\n"),
    "old Mac": lambda text: text.replace("\n", "\r"),
    "times": lambda text: "".join(f"12:59:58 {one}" for one in text.splitlines(True)),
    "dates": lambda text: "".join(f"2025-01-02T12:59:58Z {one}" for one in text.splitlines(True)),
    "pods": lambda text: "".join(f"[pod/osu-1/mpi2] {one}" for one in text.splitlines(True)),
    "quoted": lambda text: "".join(f"> {one}" for one in text.splitlines(True)),
    "a mark": lambda text: f"\ufeff{text}",
}
"""What else may have happened to the lines of a log."""


@pytest.mark.parametrize("around", AROUND)
def test_ranks_are_seen_whatever_else_happened_to_the_lines(around: str, tmp_path: Path) -> None:
    """And nothing else before lines, such as hours that differ, is the number of a rank."""
    texts = [output(one) for one in (10.0, 11.0)]
    tagged = [
        "".join(f"{rank}: {line}" for line in text.splitlines(True))
        for rank, text in enumerate(texts)
    ]
    untagged = AROUND[around](texts[0]) + AROUND[around](texts[1]).replace("12:59", "13:01")
    ranks: list[dict[str, str]] = [{"wrote": "rank 0"}, {"wrote": "rank 1"}]
    for text, right in ((AROUND[around]("".join(tagged)), ranks), (untagged, [{}, {}])):
        path = tmp_path / "job.log"
        path.write_bytes(text.encode())
        [held] = read_files([(str(path), path.stat().st_size)])
        assert [one.labels for one in held.found] == right


def test_labels_that_no_other_arm_has_are_not_compared(capsys: CAPS, tmp_path: Path) -> None:
    arms = [[output(10.0 * n, f"node{first + n}\n") for n in (1, 2)] for first in (0, 2)]
    code, _, said = judged(capsys, tmp_path, arms)
    assert code == 2
    assert "osu_latency (node1): 1 log of arm one, none of arm two" in str(said["refused"])
    _, heads, _ = judged(capsys, tmp_path, arms, "--by", "place")
    assert set(heads) == {"osu_latency (place 1)", "osu_latency (place 2)"} or len(heads) == 0


@pytest.mark.parametrize("above", ["=== run {} ===\n", "iteration {} of 10\n", "{}\n"])
def test_what_counts_numbers_launches(above: str, capsys: CAPS, tmp_path: Path) -> None:
    arms = [
        [output(at, above.format(n)) for n, at in enumerate(noisy(10, mean, seed), 1)]
        for seed, mean in ((1, 10.0), (2, 12.0))
    ]
    _, heads, _ = judged(capsys, tmp_path, arms)
    assert list(heads) == ["osu_latency"]
    assert heads["osu_latency"]["verdict"]["word"] == "slower"


def test_outputs_without_labels_that_scatter_withhold_until_it_is_said_what_they_are(
    capsys: CAPS, tmp_path: Path
) -> None:
    arms = [[output(times * n) for n in range(1, 9)] for times in (10.0, 12.0)]
    code, heads, whole = judged(capsys, tmp_path, arms)
    assert code == 3
    assert heads["osu_latency"]["verdict"]["code"] == "repeats_unclear"
    notice = next(one for one in whole["notices"] if one["name"] == "repeats unclear")
    assert "8 outputs that nothing distinguishes" in notice["text"]
    assert "--repeated" in notice["text"]
    assert "--by place" in notice["text"]
    code, heads, whole = judged(capsys, tmp_path, arms, "--repeated")
    assert heads["osu_latency"]["verdict"]["word"] == "undecided"
    assert whole["design"].startswith("Outputs in one file")
    _, heads, whole = judged(capsys, tmp_path, arms, "--by", "place")
    assert len(heads) == 8
    assert whole["design"].startswith("The n-th output")
    assert all(one["comparison"]["ratio"] == pytest.approx(1.2, abs=0.03) for one in heads.values())


def test_outputs_that_rise_and_fall_together_withhold(capsys: CAPS, tmp_path: Path) -> None:
    shape = noisy(10, 10.0, 3)
    arms = [[output(times * at) for at in shape] for times in (1.0, 1.1)]
    _, heads, _ = judged(capsys, tmp_path, arms)
    verdict = heads["osu_latency"]["verdict"]
    assert verdict["code"] == "repeats_unclear"
    assert verdict["figures"]["why"] == "together"


def test_the_test_of_ranks_is_exact() -> None:
    for count in (2, 3, 5, 6):
        first = list(range(count))
        chances = [together(first, one) for one in permutations(first)]
        for level in (0.01, 0.05, 0.3):
            assert sum(chance <= level for chance in chances) <= level * len(chances)
    rng = random.Random(1)
    for count in (8, 12, 20):
        one, other = ([rng.gauss(0, 1) for _ in range(count)] for _ in range(2))
        expected = kendalltau(one, other, alternative="greater", method="exact").pvalue
        assert together(one, other) == pytest.approx(expected)


def test_noise_alone_withholds_one_comparison_in_a_hundred() -> None:
    rng = random.Random(2)
    tries = 2000
    found = sum(
        together(*([rng.gauss(0, 1) for _ in range(10)] for _ in range(2))) <= LEVEL
        for _ in range(tries)
    )
    most = tries * LEVEL + NormalDist().inv_cdf(1 - 1e-6) * (tries * LEVEL) ** 0.5
    assert found <= most


BARRIER = "\n# OSU MPI Barrier Latency Test v5.8\n# Avg Latency(us)\n{:18.2f}\n"
USERNETES = (("4-64", 40.58, 40.58), ("8-128", 60.45, 61.30), ("16-256", 94.59, 101.97))
"""Barriers on nodes and ranks, which OSU does not print: by names of converged-computing's
flux-usernetes, on the nodes and in containers on them."""


def of_files(
    capsys: CAPS, folder: Path, files: Sequence[tuple[str, float, float]], *more: str
) -> tuple[int, dict[str, dict[str, Any]], dict[str, Any]]:
    """Return the same of two folders of files with these names, each of one barrier."""
    for name, *times in files:
        for arm, time in zip(("one", "two"), times, strict=True):
            (folder / arm / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / arm / name).write_text(BARRIER.format(time))
    code = main(["compare", str(folder / "one"), str(folder / "two"), "--json", *more])
    whole = json.loads(capsys.readouterr().out)
    return code, {one["benchmark"]: one for one in whole["headlines"]}, whole


@pytest.mark.parametrize("name", ["osu_barrier-{}-1.out", "osu_barrier-n{}.out"])
def test_files_of_a_sweep_are_no_launches_of_one_case(
    name: str, capsys: CAPS, tmp_path: Path
) -> None:
    files = [
        (name.format(where if "-1" in name else where.partition("-")[0]), one, two)
        for where, one, two in USERNETES
    ]
    _, heads, whole = of_files(capsys, tmp_path, files)
    assert heads["osu_barrier"]["verdict"]["code"] == "repeats_unclear"
    notice = next(one for one in whole["notices"] if one["name"] == "repeats unclear")
    assert "figures differ 2.3-fold by name: add --by name" in notice["text"]
    _, heads, _ = of_files(capsys, tmp_path, files, "--by", "name")
    ratios = [one["comparison"]["ratio"] for one in heads.values()]
    assert ratios == pytest.approx([two / one for _, one, two in files])


def test_files_that_rise_and_fall_together_by_name_withhold(capsys: CAPS, tmp_path: Path) -> None:
    files = [(f"n{2**n}.out", 10.0 + n / 2, 12.0 + n / 2) for n in range(6)]
    _, heads, _ = of_files(capsys, tmp_path, files)
    assert heads["osu_barrier"]["verdict"]["code"] == "repeats_unclear"


def test_files_whose_names_only_count_are_launches(capsys: CAPS, tmp_path: Path) -> None:
    one, two = noisy(9, 10.0, 1), [16.0, *noisy(8, 12.0, 2)]  # the first was slow
    files = [(f"barrier-{n}.out", a, b) for n, (a, b) in enumerate(zip(one, two, strict=True), 1)]
    for option in ((), ("--by", "name")):
        _, heads, _ = of_files(capsys, tmp_path, files, *option)
        assert heads["osu_barrier"]["verdict"]["word"] == "slower"


def test_the_repeats_of_ramble_are_launches_of_its_experiments(
    capsys: CAPS, tmp_path: Path
) -> None:
    """It writes experiments/APPLICATION/WORKLOAD/bw_8.1/bw_8.1.out: n_repeats of Ramble 0.5.0."""
    files = [
        (f"experiments/osu/bw/bw_{size}.{n}/bw_{size}.{n}.out", size * one, 1.2 * size * two)
        for size in (8, 16)
        for n, (one, two) in enumerate(zip(noisy(8, 1.0, size), noisy(8, 1.0, 3), strict=True), 1)
    ]
    _, heads, _ = of_files(capsys, tmp_path, files)
    assert heads["osu_barrier"]["verdict"]["code"] == "repeats_unclear"
    _, heads, _ = of_files(capsys, tmp_path, files, "--by", "name")
    assert [name[-5:] for name in heads] == ["bw_8)", "w_16)"]
    assert [one["verdict"]["word"] for one in heads.values()] == ["slower", "slower"]


@pytest.mark.parametrize("levels", [(1.0, 1.0), (1.0, 2.0)])
def test_numbers_that_jube_gives_to_points_of_a_sweep_are_cases(
    levels: tuple[float, float], capsys: CAPS, tmp_path: Path
) -> None:
    """It writes RUN/000000_execute/work/stdout, and numbers parameters and repeats alike."""
    files = [
        (f"{n:06}_execute/work/stdout", levels[n // 8] * one, 1.2 * levels[n // 8] * two)
        for n, (one, two) in enumerate(zip(noisy(16, 10.0, 1), noisy(16, 10.0, 2), strict=True))
    ]
    _, heads, _ = of_files(capsys, tmp_path, files)
    code = heads["osu_barrier"]["verdict"]["code"]
    assert (code == "repeats_unclear") is (levels[1] > 1)
    _, heads, _ = of_files(capsys, tmp_path, files, "--by", "name")
    assert len(heads) == (16 if levels[1] > 1 else 1)
    _, heads, _ = of_files(capsys, tmp_path, files, "--repeated")
    assert heads["osu_barrier"]["verdict"]["code"] != "repeats_unclear"


def test_a_command_of_flux_reports_cases_apart(capsys: CAPS, tmp_path: Path) -> None:
    command = "time flux run -N{} --tasks-per-node=96 osu_barrier\n"
    arms = [
        [f"{command.format(n)}{BARRIER.format(t * n)}\nreal\t0m7.8s\n" for n in (2, 4)]
        for t in (4.0, 4.2)
    ]
    _, heads, _ = judged(capsys, tmp_path, arms)
    assert list(heads) == ["osu_barrier (-N2)", "osu_barrier (-N4)"]


def test_what_all_commands_of_an_arm_share_is_a_fact_of_it(capsys: CAPS, tmp_path: Path) -> None:
    """Beside what distinguishes cases, and whether a shell exports it or an option says it."""
    command = "+ export UCX_TLS={}\n+ mpirun -np {} -x UCX_TLS ./osu_latency\n"
    option = "+ mpirun -np {1} -x UCX_TLS={0} ./osu_latency\n"
    for form in (command, option):
        arms = [
            [
                output(at, form.format(tls, ranks))
                for at in noisy(8, mean, 1)
                for tls in ("rc", "dc")
            ]
            for mean, ranks in ((10.0, 4), (12.0, 64))
        ]
        _, heads, whole = judged(capsys, tmp_path, arms)
        assert [one.rpartition("UCX_TLS=")[2] for one in heads] == ["rc)", "dc)"]
        [differs] = whole["differences"]
        assert differs["key"] == "printed.script.command"
        assert "-np 4" in str(differs)
        assert "-np 64" in str(differs)


def test_headings_of_markdown_label_what_stands_in_their_fences(tmp_path: Path) -> None:
    text = "".join(f"# IO on {name}\n\nAs measured.\n\n```\n{output(9.0)}```\n\n" for name in "ab")
    path = tmp_path / "report.md"
    path.write_text(text)
    [held] = read_files([(str(path), path.stat().st_size)])
    assert [one.labels["#"] for one in held.found] == ["IO on a", "IO on b"]


@pytest.mark.parametrize(
    ("job", "above"),
    [
        ("Authorization required, but no protocol specified\n", "size 8\n"),
        ("The output (if any) follows:\n\n", "osu on lustre\n"),
        ("=== Job 881 on cluster1 ===\n", "=== run 1 ===\n"),
        ("Warning: Permanently added 'n2' (ED25519) to the list of known hosts.\n", ""),
    ],
)
def test_what_is_said_of_the_whole_job_makes_no_case_of_its_first_launch(
    job: str, above: str, capsys: CAPS, tmp_path: Path
) -> None:
    arms = [[job, *(output(value, above) for value in noisy(8, 9.0, n))] for n in (1, 2)]
    code, heads, _ = judged(capsys, tmp_path, arms, "--repeated")
    assert (code, list(heads)) == (0, ["osu_latency"])
    code, heads, _ = judged(capsys, tmp_path, arms)
    assert list(heads) == ["osu_latency"]


def test_headings_of_two_levels_are_two_labels(tmp_path: Path) -> None:
    text = "# Notes\n" + "".join(f"### {n} ranks\n```\n{output(9.0)}```\n" for n in (2, 4))
    path = tmp_path / "report.md"
    path.write_text(text)
    [held] = read_files([(str(path), path.stat().st_size)])
    assert [one.labels["###"] for one in held.found] == ["2 ranks", "4 ranks"]


def test_a_case_that_failed_in_one_arm_leaves_the_other_comparable(
    capsys: CAPS, tmp_path: Path
) -> None:
    both = [output(9.0, "=== 8 bytes ===\n"), output(20.0, "=== 4096 bytes ===\n")]
    one = [output(8.0, "=== 8 bytes ===\n"), f"=== 4096 bytes ===\n{TITLE}"]
    _, heads, _ = judged(capsys, tmp_path, [both, one])
    assert list(heads) == ["osu_latency"]


def test_labels_that_differ_in_the_order_of_their_words_are_of_two_cases(
    capsys: CAPS, tmp_path: Path
) -> None:
    above = ("+ mpirun -np 2 -c 4 osu\n", "+ mpirun -np 4 -c 2 osu\n")
    arms = [[output(level, one) for one in above] for level in (10.0, 11.0)]
    _, heads, _ = judged(capsys, tmp_path, arms)
    assert list(heads) == ["osu_latency (-np 2 -c 4)", "osu_latency (-np 4 -c 2)"]


def test_what_a_script_said_stays_with_its_output(tmp_path: Path) -> None:
    """Outputs of two programs in turns: each keeps the command that stands above it."""
    titles = {"osu_latency": "Latency", "osu_multi_lat": "Multi Latency"}
    texts = [f"$ mpirun -np 2 {name}\n{osu(title=title)}" for name, title in titles.items()]
    (tmp_path / "all.log").write_text("".join(2 * texts))
    found = regarded(find_logs([tmp_path / "all.log"])[1], AS_READ)
    said = [(one.reading.benchmark, one.reading.facts["printed.script.command"]) for one in found]
    assert said == 2 * [(name, f"mpirun -np 2 {name}") for name in titles]
