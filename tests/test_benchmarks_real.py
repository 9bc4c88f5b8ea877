"""Outputs that others published: where they come from, and what no request of ours asks for.

tests/test_benchmarks_contract.py damages those that a launch of ours could have printed.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from outputs import FIXTURES, read, reading, refusal, text_of
from paribus.core import Case, ParseError
from paribus.logs.recognise import near, readings
from paribus.readers import nvidia_topo
from paribus.readers.text import plain

ROOT = Path(__file__).parents[1]
REAL = sorted(FIXTURES.glob("*/*real*.out"))
OTHER = [path for path in REAL if path.name.startswith("other-")]
LOGS = sorted((FIXTURES / "pytorch_ddp").glob("good-*.out"))


@pytest.mark.parametrize("path", REAL, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_an_output_of_others_says_its_source_and_no_address(path: Path) -> None:
    beside = path.with_suffix(".json")
    if beside.exists():
        source = json.loads(beside.read_text())["source"]
    else:
        source = (path.parent / "README").read_text()
        assert path.stem in source
    assert "GitHub" in source or "github.com" in source
    text = path.read_text()
    without = re.sub(r"^ GID: .*$", "", text, flags=re.M)
    assert not re.search(r"\b[0-9a-f]{2}(?::[0-9a-f]{2}){5}\b", without), "a hardware address"
    assert not re.search(r"\b(?:10|172|192)(?:\.\d{1,3}){3}\b", text), "an address"
    assert not re.search(r"255:255:(?!10:00:00:0[12])", text), "an address in a GID"
    assert not re.search(r"/home/\w|\w@[a-z]", text), "somebody's name"


@pytest.mark.parametrize("path", OTHER, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_what_no_launch_of_ours_asks_for_is_read_too(path: Path) -> None:
    good = path.read_text()
    right = read(path.parent.name, good)
    assert near(good) == [path.parent.name]
    lines = good.splitlines()
    refused = 0
    for i, line in enumerate(lines):
        for kept in ([], [line, line], [line[: len(line) // 2]], ["torn", line]):
            text = "\n".join([*lines[:i], *kept, *lines[i + 1 :]]) + "\n"
            try:
                found = read(path.parent.name, text)
            except ParseError:
                refused += 1
            else:
                assert set(found.samples) == set(right.samples), f"line {i + 1}: {kept}"
    assert refused > len(lines)


def test_mdtest_leaves_out_what_it_did_not_do() -> None:
    found = {s.case: s.values for s in reading("mdtest/other-real-3_4_creation_only").samples}
    assert found == {
        Case.of(op="file creation"): (2943.686,),
        Case.of(op="tree creation"): (1079.858,),
    }
    found = {s.case: s.values for s in reading("mdtest/other-real-3_3_stonewall").samples}
    assert found == {
        Case.of(op="file creation"): (226976.016,),
        Case.of(op="tree creation"): (1.923,),
    }


@pytest.mark.parametrize(
    ("name", "old", "new", "said", "line"),
    [
        ("hpcc/good-openblas_np2", "\nHPL_eps=", "\nof it HPL_eps=", "a new NAME=VALUE", 454),
        ("hpcc/good-openblas_np2", "\nHPL_eps=", "\nHPL_N=", "a new NAME=VALUE", 461),
        ("hpl/good-multi_np2", "\nDEPTH  :", "\nxDEPTH  :", "got 'xDEPTH", 17),
        ("hpl/good-multi_np2", "0.0052710 ...... PASSED", "16.1 ...... PASSED", "16.1 is not", 55),
        ("npb_cg/good-a_2", "6680.04", "\u0666680.04", "two decimals", 40),
        ("fio/good-randread-text", "99.00th", "nan99.00th", "are not whole", 6),
        ("ior/good-posix-text", "\nread ", "\n read x", "expected a row", 36),
        ("mdtest/good-shm", "1379251.562", "1379251.5e9", "with four figures", 19),
    ],
)
def test_a_table_read_at_once_reports_the_line_that_is_wrong(
    name: str, old: str, new: str, said: str, line: int
) -> None:
    assert refusal(name, old, new, said, times=1).line == line


def test_a_rate_of_mdtest_is_not_made_up_for_by_its_time() -> None:
    text = text_of("mdtest/good-real-3_3_rates_and_times")
    begin = text.index("   File stat")
    with pytest.raises(ParseError, match="the row of File stat is missing"):
        read("mdtest", text[:begin] + text[text.index("\n", begin) + 1 :])


def test_latencies_of_nvbandwidth_have_a_heading_of_their_own() -> None:
    found = reading("nvbandwidth/other-real-v0_10_latency")
    assert {s.metric for s in found.samples} == {"latency"}
    assert len(found.samples) == 8 * 7


@pytest.mark.parametrize(
    ("name", "text", "pattern"),
    [
        ("ib_read_bw/good-real-ndr_gbits", "Conflicting CPU frequency", "its clock is the CPU's"),
        ("nccl_tests/good-real-2_10_unchecked", "validation: 0", "were not checked"),
    ],
)
def test_what_an_output_says_against_itself_is_reported(name: str, text: str, pattern: str) -> None:
    assert text in text_of(name)
    assert any(pattern in guard for guard in reading(name).guards)


def test_a_deviation_that_touches_the_next_column_is_taken_apart() -> None:
    found = {s.metric: s.values for s in reading("ib_send_lat/good-real-rxe_columns_touch").samples}
    assert found == {"latency": (692.41,), "latency_p99": (1216.65,)}


@pytest.mark.parametrize("name", ["real-a100_pairs", "real-rtx5090", "real-one_gpu_one_nic"])
def test_matrices_that_nvidia_smi_printed(name: str) -> None:
    found = nvidia_topo.read(text_of(f"nvidia_topo/{name}"))
    expected = {
        "real-a100_pairs": {"GPU0.GPU1": "NV12", "GPU0.GPU2": "SYS", "GPU2.GPU3": "NV12"},
        "real-rtx5090": {"GPU0.GPU1": "PHB"},
        "real-one_gpu_one_nic": {"GPU0.mlx5_0": "PHB"},
    }[name]
    assert {key: found[f"gpu.topology.{key}"] for key in expected} == expected


# --- several trainings in one log --------------------------------------------------------------


@pytest.mark.parametrize("times", [2, 3])
@pytest.mark.parametrize("path", LOGS, ids=lambda p: p.stem)
def test_trainings_one_after_the_other_are_taken_apart(path: Path, times: int) -> None:
    alone = read(path.parent.name, path.read_text())
    text = plain(path.read_text()) * times
    found, problems, *_ = readings(text)
    assert problems == []
    assert [one.part for one in found] == list(range(1, times + 1))
    assert all(one.reading.samples == alone.samples for one in found)


def test_scripts_of_two_kinds_in_one_log_are_both_read_or_reported() -> None:
    for first in LOGS:
        for second in LOGS:
            text = plain(first.read_text() + second.read_text())
            found, problems, *_ = readings(text)
            own = [read(path.parent.name, path.read_text()).samples for path in (first, second)]
            reported = any("two outputs in one" in problem.detail for problem in problems)
            assert reported or [one.reading.samples for one in found] == own, (
                first.stem,
                second.stem,
            )


def test_a_training_that_was_cut_costs_itself_and_not_the_one_after_it() -> None:
    text = text_of("pytorch_ddp/good-handmade_torchvision")
    cut = text[: text.index("Training time")]
    found, problems, *_ = readings(cut + text)
    assert not found or [one.reading.samples for one in found] == [
        read("pytorch_ddp", text).samples
    ]
    assert found or problems
