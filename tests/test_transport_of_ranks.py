"""The transport between ranks stands in every report, and a warning where the arms differ in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from paribus.cli import outputs
from paribus.core import Judgement
from paribus.words.values import notice_fix, notice_text, way_of
from studies import stored

OWN = """
from paribus.core.model import Benchmark, Case, Metric, Parsed, Program, Sample

def command(request):
    return Program(("/bin/true",))

def parse(text, request):
    return Parsed((Sample("time", Case(), (float(text),)),))

BENCHMARK = Benchmark(
    "own", "LAYER", "an MPI program", (Metric("time", "us", "lower"),), command, parse, ranks=2,
)
"""
CONTAINER = 'container = { engine = "namespace" }'
BOXED = f"{CONTAINER}\nranks_per_host = 1"


def judged(
    folder: Path,
    bare: str = "",
    boxed: str = BOXED,
    *,
    factor: str = "container",
    layer: str = "point to point",
    more: str = "",
    facts: Mapping[str, Mapping[str, Any]] | None = None,
) -> Judgement:
    """Return the judgement of stored launches of an MPI program in two arms."""
    (folder / "own.py").write_text(OWN.replace("LAYER", layer))
    path = folder / "study.toml"
    path.write_text(
        f'question = "Which?"\nfactor = "{factor}"\n{more}\n[arms.bare]\n{bare}\n[arms.boxed]\n'
        f'{boxed}\n[[benchmarks]]\nfile = "own.py"\n[plan]\nblocks = 8\nseed = 1\n'
    )
    return stored(path, folder / "x.study", lambda launch: (facts or {}).get(launch.arm, {}))


def reported(judgement: Judgement) -> list[str]:
    return [notice_text(n) for n in judgement.notices if n.name == "transports differ"]


def test_memory_against_network_is_a_warning_in_every_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = judged(tmp_path)
    (notice,) = (n for n in found.notices if n.name == "transports differ")
    assert (notice.level, notice.benchmarks) == ("warning", ("own",))
    assert "ranks_per_host" in notice_fix(notice)
    outputs.print_judgement(found, as_json=False)
    page = (tmp_path / "x.study" / "report.html").read_text()
    for text in (" ".join(capsys.readouterr().out.split()), page):
        assert "Transport between ranks" in text
        assert "bare: within one host, shared memory possible; boxed: between 2 hosts" in text
        assert "transports differ: own:" in text.replace("<b>", "").replace("</b>", "")
    verdict = json.loads((tmp_path / "x.study" / "verdict.json").read_text())
    assert [(t["arm"], t["ways"], t["source"]) for t in verdict["transports"]] == [
        ("bare", ["one host"], "placement"),
        ("boxed", ["hosts"], "placement"),
    ]


@pytest.mark.parametrize(
    ("bare", "boxed"),
    [
        ("", CONTAINER),
        ("", f"{CONTAINER}\nranks_per_host = 2"),
        ('transport = "tcp"', f'{BOXED}\ntransport = "tcp"'),
        ("", 'container = { engine = "namespace", each = "rank", network = "host" }'),
    ],
)
def test_arms_of_one_transport_give_no_warning(tmp_path: Path, bare: str, boxed: str) -> None:
    found = judged(tmp_path, bare, boxed)
    assert len(found.carriers) == 2
    assert not reported(found)


@pytest.mark.parametrize("how", [{"factor": "transport"}, {"more": 'explains = ["mpi."]'}])
def test_a_transport_that_is_the_factor_gives_no_warning(
    tmp_path: Path, how: dict[str, Any]
) -> None:
    assert not reported(judged(tmp_path, **how))


def test_a_benchmark_without_messages_gives_no_warning(tmp_path: Path) -> None:
    assert not reported(judged(tmp_path, layer="memory"))


def test_what_the_ranks_saw_decides(tmp_path: Path) -> None:
    """One that could not see it is described by its place; one asked for memory, by what it saw."""
    seen: dict[str, dict[str, Any]] = {
        "bare": {"mpi.transport_taken": "loopback"},
        "boxed": {"mpi.transport_taken": {"unknown": "unclear"}},
    }
    found = judged(tmp_path, facts=seen)
    assert [(c.ways, c.source) for c in found.carriers] == [
        (("loopback",), "ranks"),
        (("hosts",), "placement"),
    ]
    assert not reported(found)


def test_rdma_against_tcp_is_a_warning(tmp_path: Path) -> None:
    seen = {
        arm: {"mpi.transport_taken": way} for arm, way in (("bare", "rdma"), ("boxed", "network"))
    }
    (text,) = reported(judged(tmp_path, facts=seen))
    assert "bare RDMA (seen by the ranks); boxed network (seen by the ranks)" in text


@pytest.mark.parametrize(("others", "source"), [(5000, "adapters"), (9 << 20, "placement")])
def test_what_adapters_counted_decides_for_programs_that_see_nothing(
    tmp_path: Path, others: int, source: str
) -> None:
    counted = {"load.during.adapter_bytes": 1 << 20, "load.during.other_bytes": others}
    found = judged(tmp_path, facts={"boxed": counted})
    assert [one.source for one in found.carriers] == ["placement", source]
    if source == "adapters":
        assert way_of(found.carriers[1]) == "RDMA (counted by the adapters)"
