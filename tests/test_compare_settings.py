"""Settings of logs and columns of tables: keys, facts of the arms, and what says nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from paribus.__main__ import main

FIXTURES = Path(__file__).parent / "fixtures"
PERFTEST = (FIXTURES / "ib_write_bw" / "good-real-24_gpu_mib.out").read_text()
Verdict = dict[str, Any]
Compare = Callable[..., Verdict]


@pytest.fixture
def compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Compare:
    """A function that compares the logs of arms, and returns the verdict, or the message."""

    def of(arms: Mapping[str, Sequence[str]], *options: str) -> Verdict:
        for arm, texts in arms.items():
            for number, text in enumerate(texts):
                path = tmp_path / arm / f"{number}.log"
                path.parent.mkdir(exist_ok=True)
                path.write_text(text)
        code = main(["compare", *(str(tmp_path / arm) for arm in arms), *options, "--json"])
        said = capsys.readouterr()
        return json.loads(said.out) if said.out else {"code": code, "message": said.err}

    return of


def scaled(text: str, factor: float) -> str:
    """Return an output of perftest with other figures of its one row."""
    row = next(line for line in text.splitlines() if line.startswith(" 65536"))
    size, count, peak, mean, rate = row.split()
    figures = [f"{float(one) * factor:.6f}" for one in (peak, mean, rate)]
    return text.replace(row, f" {size}      {count}     " + "   ".join(figures))


def named(verdict: Verdict) -> dict[str, tuple[str, str, str]]:
    return {
        one["key"]: (one["reference_value"], one["arm_value"], one["kind"])
        for one in verdict["differences"]
    }


def launches(text: str, count: int = 8) -> list[str]:
    return [scaled(text, 1 + n / 1000) for n in range(count)]


def test_a_fact_of_the_arms_is_named_and_not_held_equal(compare: Compare) -> None:
    other = PERFTEST.replace("4096[B]", "2048[B]").replace(
        "Device         : mlx5_0", "Device         : mlx5_1"
    )
    verdict = compare({"a": [PERFTEST], "b": [scaled(other, 0.9)]})
    assert named(verdict) == {
        "perftest.mtu": ("4096", "2048", "noted"),
        "printed.perftest.Device": ("mlx5_0", "mlx5_1", "noted"),
    }
    assert verdict["equal_facts"] > 5
    assert verdict["facts"]["b"]["perftest.mtu"] == "2048"


def test_a_factor_that_explains_facts_withholds_for_what_it_does_not_explain(
    compare: Compare,
) -> None:
    other = launches(PERFTEST.replace("Link type       : IB", "Link type       : Ethernet"))
    arms = {"a": launches(PERFTEST), "b": other}
    word = compare(arms)["headlines"][0]["verdict"]
    assert word["word"] == "equivalent"
    held = compare(arms, "--factor", "library")["headlines"][0]["verdict"]
    assert (held["word"], held["code"]) == ("withheld", "unexplained_differences")


def test_what_each_launch_has_otherwise_says_nothing_of_an_arm(compare: Compare) -> None:
    arms = {
        arm: [text.replace("mlx5_0", f"{arm}{n}") for n, text in enumerate(launches(PERFTEST))]
        for arm in ("a", "b")
    }
    verdict = compare(arms)
    assert named(verdict) == {}
    heads = [one for one in verdict["headlines"] if one.get("decides", True)]
    assert [one["reference_value"]["launches"] for one in heads] == [8]


def test_several_devices_in_every_arm_are_cases(compare: Compare) -> None:
    one, two = launches(PERFTEST), launches(PERFTEST.replace("mlx5_0", "mlx5_1"))
    slower = [scaled(text, 0.5) for text in two]
    verdict = compare({"a": one + two, "b": one + slower})
    words = {one["benchmark"]: one["verdict"]["word"] for one in verdict["headlines"]}
    assert words == {
        "ib_write_bw (Device mlx5_0)": "equivalent",
        "ib_write_bw (Device mlx5_1)": "slower",
    }


def test_devices_that_only_one_arm_has_are_named_with_their_share(compare: Compare) -> None:
    mixed = [*launches(PERFTEST, 4), *launches(PERFTEST.replace("mlx5_0", "mlx5_1"), 4)]
    verdict = compare({"a": launches(PERFTEST), "b": mixed})
    assert named(verdict)["printed.perftest.Device"] == ("mlx5_0", "mlx5_0, mlx5_1", "noted")


THREADS = (FIXTURES / "stream" / "good-handmade-2_threads.out").read_text()
MORE = THREADS.replace("requested = 2", "requested = 4").replace("counted = 2", "counted = 4")


def test_whole_machines_with_other_numbers_of_cores_can_be_compared(compare: Compare) -> None:
    arms = {"small": [THREADS], "large": [MORE]}
    refused = compare(arms)
    assert refused["code"] == 2
    assert "nothing to compare" in refused["message"]
    assert "--part-of-arm threads" in refused["message"]
    verdict = compare(arms, "--part-of-arm", "threads")
    assert named(verdict) == {"printed.arm.threads": ("2", "4", "noted")}
    assert "Part of the arms (--part-of-arm): threads." in verdict["design"]


def test_what_else_differs_is_no_part_of_an_arm_unasked(compare: Compare) -> None:
    other = MORE.replace("80000000", "40000000")
    assert "--part-of-arm" not in compare({"a": [THREADS], "b": [other]})["message"]


def test_a_fact_can_be_a_key(compare: Compare) -> None:
    other = scaled(PERFTEST.replace("mlx5_0", "mlx5_1"), 0.9)
    arms = {"a": [PERFTEST], "b": [other]}
    assert compare(arms)["headlines"]
    refused = compare(arms, "--key", "device")
    assert "nothing to compare: ib_write_bw (Device mlx5_0)" in refused["message"]
    alike = compare({"a": [PERFTEST], "b": [scaled(PERFTEST, 0.9)]}, "--key", "device")
    assert "What distinguishes benchmarks (--key): device." in alike["design"]


@pytest.mark.parametrize("option", ["--key", "--part-of-arm"])
def test_a_setting_that_no_log_has_is_refused_with_those_there_are(
    compare: Compare, option: str
) -> None:
    refused = compare({"a": [PERFTEST], "b": [PERFTEST]}, option, "colour")
    assert refused["code"] == 2
    assert f"{option} colour: names no setting that these logs show" in refused["message"]
    assert ("mtu" if option == "--key" else "queue pairs") in refused["message"]


# --- tables ---------------------------------------------------------------------------------------


def table(tmp_path: Path, column: str, cell: Callable[[str, int, int], str]) -> Path:
    """Return a table of two arms in eight blocks, two launches in each, with another column."""
    rows = [
        f"{arm},app,time,{10 + (arm == 'b') + block / 100},{block},{n},{cell(arm, block, n)}"
        for block in range(8)
        for arm in ("a", "b")
        for n in (1, 2)
    ]
    path = tmp_path / "table.csv"
    head = f"arm,benchmark,metric,value,block,launch,{column}"
    path.write_text("\n".join([head, *rows]) + "\n")
    return path


@pytest.mark.parametrize(
    ("column", "cell", "fact"),
    [
        ("threads", lambda arm, *_: {"a": "64", "b": "32"}[arm], {"column.threads": ("64", "32")}),
        ("jobid", lambda arm, block, n: f"{arm}{block}{n}", {}),
        ("run", lambda _, block, n: str(2 * block + n), {}),
        ("std", lambda arm, *_: {"a": "1", "b": "2"}[arm], {}),
        ("site", lambda *_: "north", {}),
    ],
)
def test_a_column_that_differs_between_the_arms_is_a_fact(
    column: str,
    cell: Callable[[str, int, int], str],
    fact: Mapping[str, tuple[str, str]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = table(tmp_path, column, cell)
    assert main(["compare", str(path), "--unit", "s", "--better", "lower", "--json"]) == 0
    verdict = json.loads(capsys.readouterr().out)
    assert {key: value[:2] for key, value in named(verdict).items()} == fact
    ignored = [n for n in verdict["notices"] if n["name"] == "columns ignored"]
    assert bool(ignored) == (column != "threads")


def test_a_column_with_the_same_values_in_every_arm_is_part_of_the_case(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = table(tmp_path, "nodes", lambda _arm, _block, n: str(n))
    main(["compare", str(path), "--unit", "s", "--better", "lower", "--json"])
    verdict = json.loads(capsys.readouterr().out)
    assert [one["case"] for one in verdict["cases"]] == [{"nodes": 1}, {"nodes": 2}]


def test_a_column_is_what_the_user_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("--unit", "s", "--better", "lower", "--json")
    path = table(tmp_path, "run", lambda _arm, _block, n: str(n))
    main(["compare", str(path), *asked, "--key", "run"])
    verdict = json.loads(capsys.readouterr().out)
    assert [one["case"] for one in verdict["cases"]] == [{"run": 1}, {"run": 2}]
    assert "What distinguishes benchmarks (--key): run." in verdict["design"]
    for option, said in (
        ("--key=rnu", "paribus: --key rnu: names no other column of the table\n  give one of: run"),
        ("--part-of-arm=rnu", "paribus: --part-of-arm rnu: names no other column"),
        ("--repeated", "matters to logs, and this is a table"),
        ("--by=place", "matters to logs, and this is a table"),
    ):
        assert main(["compare", str(path), *asked, option]) == 2
        assert said in capsys.readouterr().err


def test_what_launches_of_a_study_met_makes_no_cases(compare: Compare) -> None:
    """Counts of a few values come in every arm: that distinguishes nothing."""
    text = (FIXTURES / "latency" / "good-0.out").read_text()
    header, *rows, end = text.splitlines()
    outputs = [
        "\n".join([header, *rows, json.dumps({**json.loads(end), "involuntary": n % 2})]) + "\n"
        for n in range(8)
    ]
    verdict = compare({"a": outputs, "b": outputs[::-1]})
    assert [one["benchmark"] for one in verdict["headlines"]] == ["latency"]


OSU = "# OSU MPI Allreduce Latency Test v5.8\n# Size       Avg Latency(us)\n4{:23.2f}\n8{:23.2f}\n"
PROLOGUE = """\
---------------------------------------
Begin PBS Prologue Tue Sep {day} 17:14:48 EDT 2010 12844988{day}
Job ID: 30535{day}.gpc-sched
Nodes: gpc-f134n0{day}
End PBS Prologue Tue Sep {day} 17:14:50 EDT 2010 12844988{day}
---------------------------------------
"""
EPILOGUE = """\
---------------------------------------
Begin PBS Epilogue Tue Sep {day} 17:36:07 EDT 2010 12845001{day}
Job ID: 30535{day}.gpc-sched
Session: 187{day}
Limits: neednodes={nodes}:ib:ppn=8,nodes={nodes}:ib:ppn=8,walltime=01:00:00
Resources: cput=713:42:30,mem=34638{day}672kb,vmem=375965{day}372kb,walltime=00:21:07
Nodes: gpc-f134n0{day}
End PBS Epilogue Tue Sep {day} 17:36:09 EDT 2010 12845001{day}
---------------------------------------
"""
USAGE = """
=====================================================================================
                  Resource Usage on 2025-06-{day} 00:24:42:
   Job Id:             1421125{day}.gadi-pbs
   Exit Status:        0
   Service Units:      6{day}.55
   NCPUs Requested:    {nodes}                     NCPUs Used: {nodes}
                                           CPU Time Used: 11:21:{day}
   Memory Requested:   600.0GB               Memory Used: 4{day}.87GB
   Walltime requested: 12:00:00            Walltime Used: 11:22:{day}
=====================================================================================
"""


@pytest.mark.parametrize("frame", [(PROLOGUE, EPILOGUE), ("", USAGE)])
@pytest.mark.parametrize("several", [True, False])
def test_what_pbs_says_of_a_job_is_a_fact_if_it_is_no_date_or_number(
    frame: tuple[str, str], several: bool, compare: Compare
) -> None:
    """As on gpc of SciNet, and on gadi of NCI; "Epilogue Tue Sep 10 17" was called a setting."""
    before, after = frame

    def arm(nodes: int, first: int) -> list[str]:
        days = range(first, first + 3)
        texts = [
            before.format(day=day) + OSU.format(day, day + 1) + after.format(day=day, nodes=nodes)
            for day in days
        ]
        return texts if several else ["".join(texts)]

    assert not named(compare({"a": arm(2, 10), "b": arm(2, 13)}))
    (*_, found) = named(compare({"a": arm(2, 10), "c": arm(4, 13)})).items()
    assert found[0] in ("printed.osu.Limits", "printed.osu.NCPUs Used")
    assert "2" in found[1][0]
    assert "4" in found[1][1]


def test_a_line_of_all_launches_is_compared_beside_lines_of_each(compare: Compare) -> None:
    own = "tuned for {arm}\nran on node1{n}{arm}\n"
    arms = {
        arm: [OSU.format(9 + n, 10 + n) + own.format(arm=arm, n=n) for n in range(3)]
        for arm in "ab"
    }
    said = named(compare(arms))["printed.osu.lines"]
    assert said[:2] == ("tuned for a", "tuned for b")


def test_another_concurrency_of_vllm_is_another_benchmark_and_a_sweep_is_divided(
    compare: Compare,
) -> None:
    """Above the summary up to 0.9, within it since; it was a fact of the arm."""
    new = (FIXTURES / "vllm_serving" / "good-real-dgx_spark.out").read_text()
    other = new.replace("concurrency:             25", "concurrency:             64")
    assert "Maximum request concurrency 64" in compare({"a": [new], "b": [other]})["message"]
    assert not named(compare({"a": [new], "c": [new.replace("57790 ", "57791 ")]}))
    old = (FIXTURES / "vllm_serving" / "good-real-docs.out").read_text()
    above = (
        "Traffic request rate: inf\nBurstiness factor: 1.0 (Poisson process)\n"
        "Maximum request concurrency: {}\n100%|#########| 32/32 [02:30<00:00,  4.71s/it]\n"
        "tip: install termplotlib and gnuplot to plot the metrics\n"
    )
    sweep = "".join(above.format(n) + old for n in (32, 64, 128))
    labels = [one["benchmark"] for one in compare({"d": [sweep], "e": [sweep]})["headlines"]]
    assert {one for one in labels if "concurrency" in one} == {
        f"vllm_serving (Maximum request concurrency {n})" for n in (32, 64, 128)
    }
    assert len({*labels}) == 3


NOTE = "NOTE: You have chosen a buffer size that is smaller than the default buffer size.\nCUDA R"
LOGGED = "\n[titan] 2026-02-24 19:45 - root - INFO - Training starts"
MADE = f"INFO - Compiling each TransformerBlock with torch.compile{LOGGED}"
MODEL = f"INFO - Model llama3 {{}} size: 8,030,261,248 total parameters{LOGGED}"
ON_GPU = "    #0: NVIDIA NVIDIA {}, compute cap.: 8.0, ECC: yes, stat: compatible\n"
BYTES = "11596411699 bytes to send"
SHOWN = {
    "stream/good-real-32_threads": ("Offset = 0", "Offset = 1024"),
    "nvbandwidth/good-real-v0_8_one_gpu": ("CUDA R", NOTE),
    "sockperf/good-real-3_10_udp": ("using recvfrom()", "using epoll_wait()"),
    "sockperf/good-tcp": (
        "sockperf: Starting",
        "sockperf: VMA Extra API is in use\nsockperf: Starting",
    ),
    "qperf/good-tcp": ("2 Cores: AMD EPYC 2.6GHz", "64 Cores: AMD EPYC 2.9GHz"),
    "netperf/good-stream": (" : demo", " : dirty data"),
    "netperf/good-keys": (
        "REQUEST_SIZE=-1",
        "REQUEST_SIZE=-1\nLOCAL_CONG_CONTROL=cubic",
        "REQUEST_SIZE=-1\nLOCAL_CONG_CONTROL=bbr",
    ),
    "netperf_rr/good-keys": (
        "RESPONSE_SIZE=1",
        "RESPONSE_SIZE=1\nBURST_SIZE=0",
        "RESPONSE_SIZE=1\nBURST_SIZE=16",
    ),
    "iperf3/good-verbose-text": ("131072 byte blocks", "1460 byte blocks"),
    "fio/good-randread-text": (
        "IO depths",
        "latency   : target=50.00msec, window=5.00sec\n IO depths",
    ),
    "fio/good-randrw-text": ("(R) 4096B-4096B", "(R) 4096B-64.0KiB", "(R) 4096B-128KiB"),
    "ior/good-posix-json": ('"fsyncperwrite": 0', '"fsyncperwrite": 1'),
    "ior/good-mpiio-text": (" -i 2", " -i 2 -O summaryFormat=default,useO_DIRECT=1"),
    "torchtitan/good-handmade-one_rank": (
        "INFO - Training starts",
        MADE,
    ),
    "gromacs/good-spc_1rank": (
        "PME domain",
        f"{ON_GPU.format('A100-SXM4-40GB')}PME domain",
        f"{ON_GPU.format('H100 PCIe')}PME domain",
    ),
    "gromacs/good-spc_2ranks": (
        "PME domain",
        "PME tasks will do all aspects on the GPU\nPME domain",
    ),
    "lammps/good-lj_1rank": (
        "Per MPI rank",
        "Device 0: NVIDIA A100, 108 CUs, 39/40 GB, 1.4 GHZ (Double Precision)\nPer MPI rank",
        "Device 0: NVIDIA A100, 108 CUs, 39/40 GB, 1.4 GHZ (Mixed Precision)\nPer MPI rank",
    ),
    "hpl/good-real-nvidia_1_0": ("variable 1.000", "variable 0.950"),
    "phoronix/good-GVNO2": ("E5-2620 v2 @ 2.60GHz", "E5-2690 v2 @ 3.00GHz"),
    "llama_bench/good-real-8cf427ff": ('"tensor_split": "0.00"', '"tensor_split": "1.00/3.00"'),
    "pytest_benchmark/good-two_tests": ('"disable_gc": false', '"disable_gc": true'),
    "megatron/good-handmade-arguments": (
        "  hidden_size ",
        "  attention_dropout ............................. 0.0\n  hidden_size ",
        "  attention_dropout ............................. 0.1\n  hidden_size ",
    ),
}
"""Outputs, and what another option of the tool prints in the place of some words of them."""


@pytest.mark.parametrize("name", SHOWN)
def test_an_option_that_an_output_shows_is_a_key_or_a_fact(name: str, compare: Compare) -> None:
    """The outputs were compared, and pooled in one file, without a word about it."""
    text = (FIXTURES / f"{name}.out").read_text()
    old, *new = SHOWN[name]
    assert old in text
    one, other = [text, *(text.replace(old, words) for words in new)][-2:]
    verdict = compare({"a": [one], "b": [other]})
    assert "nothing to compare" in verdict.get("message", "") or named(verdict)
    assert not named(compare({"a": [one], "c": [one]}))


def test_another_size_of_a_model_of_torchtitan_is_another_benchmark(compare: Compare) -> None:
    text = (FIXTURES / "torchtitan" / "good-handmade-one_rank.out").read_text()
    small, large = (
        text.replace("INFO - Training starts", MODEL.format(size)) for size in ("8B", "70B")
    )
    assert "Model llama3 8B" in compare({"a": [small], "b": [large]})["message"]


def test_an_amount_of_iperf3_is_compared_however_long_it_took(compare: Compare) -> None:
    """-n: "seconds" of arms of other speeds were other benchmarks."""
    text = (FIXTURES / "iperf3" / "good-verbose-text.out").read_text()
    fast, slow = (
        text.replace("1 second test", BYTES)
        .replace("0.00-1.00 ", f"0.00-{took} ")
        .replace("92.4 G", f"{rate} G")
        .replace("92.3 G", f"{rate} G")
        for took, rate in (("1.43", "64.9"), ("2.20", "42.1"))
    )
    (headline,) = compare({"a": [fast], "b": [slow]})["headlines"]
    assert headline["comparison"]["ratio"] == pytest.approx(42.1 / 64.9)
    other = slow.replace("10.8 GB", "5.40 GB").replace("2.20", "1.10").replace(BYTES, "5 bytes")
    assert "nothing to compare" in compare({"a": [fast], "c": [other]})["message"]


def test_tokens_that_another_model_makes_of_the_same_text_can_be_accepted(compare: Compare) -> None:
    text = (FIXTURES / "vllm_serving" / "good-real-docs.out").read_text()
    other = re.sub(r"(Total input tokens: +)(\d+)", lambda row: f"{row[1]}{int(row[2]) + 9}", text)
    assert "--part-of-arm input_tokens" in compare({"a": [text], "b": [other]})["message"]
    assert named(compare({"a": [text], "b": [other]}, "--part-of-arm", "input_tokens"))


def test_what_iperf3_left_out_of_the_text_is_compared_with_json(compare: Compare) -> None:
    """-O: an output with a warm-up was compared with one without, and no text with JSON."""
    text = (FIXTURES / "iperf3" / "good-tcp-text.out").read_text()
    row = "[  5]   {}.00-{}.00   sec  2.57 GBytes  22.0 Gbits/sec   17    895 KBytes       {}\n"
    warm = "".join(row.format(n, n + 1, "(omitted)") for n in range(3))
    first = text.index("[  5]   0.00-")
    other = text[:first] + warm + text[first:]
    assert "(omit 3)" in compare({"a": [text], "b": [other]})["message"]
    tree = (FIXTURES / "iperf3" / "good-tcp-json.out").read_text()
    assert compare({"c": [text], "d": [tree]})["headlines"]


@pytest.mark.parametrize(
    ("option", "line"),
    [
        ("-z 1", "Blocking Enabled: wait and barrier after each inner iteration (-m) "),
        ("-I 1", "Per-Iteration Report: CUDA event timing; i_* uses max over process rows "),
    ],
)
def test_options_that_nccl_tests_prints_when_they_are_asked_for_are_keys(
    option: str, line: str, compare: Compare
) -> None:
    """The lines are those of nccl-tests 2.19.6 (src/util.cu); without the option there is none."""
    text = (FIXTURES / "nccl_tests" / "good-real-2_18_all_reduce_gh200.out").read_text()
    settings = next(one for one in text.splitlines(keepends=True) if "nThread" in one)
    other = text.replace(settings, f"{settings}# {line}\n")
    said = compare({"plain": [text], "asked": [other]})["message"]
    assert f"nccl_tests ({line.partition(':')[0]}" in said, option
    assert "1 log of plain, none of asked" in said
